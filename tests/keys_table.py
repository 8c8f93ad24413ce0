"""What every key of every file is for: an edit that changes the outcome of a small world, and one that does not.

An edit is (file, old, new): the first `old` in that file becomes `new`. `given` are edits that come before both.
"""

from __future__ import annotations

from dataclasses import dataclass

Edit = tuple[str, str, str]

WORLD = {
    "pack.yaml": """\
pack: p
include: [other.yaml]
constraints: {limit: 10}
define:
  large: action.args.amount > state.constraints.limit
rules:
  - name: small
    tools: [pay]
    check: '!large'
    on_fail:
      error: "{action.args.amount} is too much"
      hint: Pay less.
""",
    "other.yaml": """\
pack: other
rules:
  - name: look_once
    tools: [look]
    check: count_calls(state.ledger, 'look') == 0
""",
    "tools.yaml": """\
toolset: desk
tools:
  look:
    access: read
    args:
      what: {type: string}
    returns: {type: object, properties: {price: {type: number}, colours: {type: array, items: {type: string}}}}
    run: {canned: [{args: {what: a}, result: {price: 7, colours: [red, blue]}}]}
    on_success:
      set: {facts.price: result.data.price}
    on_failure:
      set: {flags.lost: true}
  pay:
    args:
      amount: {type: number}
      note: {type: string, default: ''}
    run: {python: "tools.py:pay"}
    on_success:
      - set: {facts.paid: action.args.amount}
  ask:
    args: {}
    run: {user: {}}
    on_success:
      set: {facts.said: result.data}
""",
    "tools.py": """\
import time
from pathlib import Path

TRIES = []


def pay(amount, note):
    return {"receipt": amount}


def pay_twice(amount, note):
    return {"receipt": 2 * amount}


def slow(what):
    time.sleep(0.5)
    return {"price": 7, "colours": []}


def shaky(what):
    TRIES.append(what)
    return {"success": len(TRIES) > 1, "data": {"price": 7, "colours": []}}
""",
    "program.py": 'print(\'{"price": 8, "colours": []}\')\n',
    "scenario.yaml": """\
scenario: s
task: a
toolset: tools.yaml
packs: [pack.yaml]
replies: [well]
decide:
  script:
    - when: state.step == 0
      propose: {tool: look, args: {what: "{state.task}"}}
    - when: state.step == 1
      propose: {tool: pay, args: {amount: 5}}
    - when: state.step == 2
      propose: {tool: pay, args: {amount: 50}}
    - when: state.step == 3
      propose: {tool: ask}
    - propose: {tool: finish, args: {answer: bye}}
""",
    "chat.json": """\
{"id": "one", "messages": [{"role": "user", "content": "a"},
 {"role": "assistant", "content": null, "tool_calls": [{"id": "1", "type": "function",
  "function": {"name": "look", "arguments": "{\\"what\\": \\"a\\"}"}}]},
 {"role": "tool", "tool_call_id": "1", "name": "look", "content": "{\\"price\\": 9}"}]}
""",
    "more.json": """\
{"id": "two", "messages": [{"role": "user", "content": "b"}]}
""",
    "some.cases.yaml": """\
cases: c
packs: [pack.yaml]
toolset: tools.yaml
tests:
  - name: too much
    history: [{tool: look, args: {what: a}}]
    propose: {tool: pay, args: {amount: 50}}
    expect: {effect: deny, rules: [small]}
  - name: little
    propose: {tool: pay, args: {amount: 5}}
    expect: allow
""",
}


@dataclass(frozen=True)
class Key:
    """What a key is for.

    Arguments:
        changes: an edit of this key that changes the outcome; None: it is only shown in reports.
        same: an edit of this key that leaves the outcome as it is.
        given: edits that make a world for both.
        quiet: more of them, for `same` only.

    """

    changes: Edit | None
    same: Edit
    given: tuple[Edit, ...] = ()
    quiet: tuple[Edit, ...] = ()


def _top(new: str) -> Edit:
    return "pack.yaml", "rules:\n", f"{new}\nrules:\n"


def _rule(new: str) -> Edit:
    return "pack.yaml", "    check: '!large'", f"    {new}\n    check: '!large'"


def _more_rules(new: str) -> Edit:
    return "pack.yaml", "rules:\n", f"rules:\n  - {new}\n"


def _tool(tool: str, new: str) -> Edit:
    return "tools.yaml", f"  {tool}:\n", f"  {tool}:\n    {new}\n"


def _pay(new: str) -> Edit:
    return "tools.yaml", "      - set: {facts.paid: action.args.amount}", f"      - {new}"


def _scenario(new: str) -> Edit:
    return "scenario.yaml", "decide:\n", f"{new}\ndecide:\n"


def _cases(new: str) -> Edit:
    return "some.cases.yaml", "tests:\n", f"{new}\ntests:\n"


def _case(new: str) -> Edit:
    return "some.cases.yaml", "  - name: too much\n", f"  - name: too much\n    {new}\n"


def _past(new: str) -> Edit:
    return "some.cases.yaml", "[{tool: look, args", f"[{{{new}, tool: look, args"


def _is(file: str, old: str, new: str) -> Edit:
    return file, old, new


QUIET = (_is("scenario.yaml", "amount: 50", "amount: 6"),)  # nothing is denied then
NEEDS_FACT = _rule("condition: has(state.facts.vip)")
SOFTER = _more_rules("{name: softer, tools: [pay], check: '!large', on_fail: {effect: warn, error: hm}}")
PRIORITY = (_top("resolve: priority"), SOFTER)
ALONE = (_top("vocabulary: {}"),)
NO_FLAGS = _is("pack.yaml", "vocabulary: {}", "vocabulary: {flags: [other]}")
_LOOK_RUN = "{canned: [{args: {what: a}, result: {price: 7, colours: [red, blue]}}]}"
_PAID = "      - set: {facts.paid: action.args.amount}"
_LOST = "    on_failure:\n      set: {flags.lost: true}\n"
_SCRIPT = WORLD["scenario.yaml"].partition("decide:")[2]


def _declared(new: str) -> Edit:
    return "pack.yaml", "vocabulary: {}", f"vocabulary: {{{new}}}"


def _look_runs(new: str) -> Edit:
    return "tools.yaml", _LOOK_RUN, new


def _look_says(new: str) -> Edit:
    return "tools.yaml", "set: {facts.price: result.data.price}", new


def _http(new: str) -> Edit:
    return _look_runs("{http: {url: 'http://127.0.0.1:PORT/{action.args.what}'" + new + "}}")


def _first(new: str) -> Edit:
    return "scenario.yaml", "  script:\n", f"  script:\n    - {new}\n"


LOOKS_FAIL = (_is("scenario.yaml", "task: a", "task: b"),)  # no canned answer fits
GET = (_http(", method: GET, headers: {X-Key: {env: KEYS_TEST}}"),)
RECORDING = (_is("scenario.yaml", _SCRIPT, "\n  recording: {file: chat.json, format: openai-chat}\n"),)
DECIDED = (_is("scenario.yaml", _SCRIPT, " {model: {model: openai/y}}\n"),)
SUMMARISED = "summarise: {model: {model: openai/x}}"
WARMER = "summarise: {model: {model: openai/x, temperature: 1}}"
GOALS = (
    _scenario("goals: [{name: g, done_when: has(state.facts.paid)}, {name: h, done_when: has(state.facts.said)}]"),
)
NESTED = (_scenario("goals: [{name: g, goals: [{name: h, done_when: has(state.facts.paid)}]}]"),)
ROWS = (_is("some.cases.yaml", "amount: 50", "amount: '{row.n}'"), _case("for: [{n: 50}]"))
LONG = (_is("some.cases.yaml", "rules: [small]", "rules: [small], error: 50 is too much, hint: Pay less."),)

KEYS: dict[str, Key] = {
    # ---- packs
    "pack PackFile.pack": Key(
        _is("pack.yaml", "pack: p", "pack: q"), _is("pack.yaml", "pack: p", "pack: q"), (), QUIET
    ),
    "pack PackFile.description": Key(None, _top("description: Other words.")),
    "pack PackFile.version": Key(None, _top("version: 2")),
    "pack PackFile.include": Key(
        _is("pack.yaml", "include: [other.yaml]\n", ""),
        _is("pack.yaml", "[other.yaml]", "[other.yaml, other.yaml]"),
        (_is("scenario.yaml", "tool: pay, args: {amount: 5}", "tool: look, args: {what: a}"),),
    ),
    "pack PackFile.active": Key(_top("active: state.step > 5"), _top("active: true")),
    "pack PackFile.resolve": Key(
        _top("resolve: priority"),
        _top("resolve: strictest"),
        (SOFTER, _is("pack.yaml", "{name: softer", "{name: softer, priority: 5")),
    ),
    "pack PackFile.default": Key(_top("default: deny"), _top("default: allow")),
    "pack PackFile.constraints": Key(
        _is("pack.yaml", "{limit: 10}", "{limit: 100}"),
        _is("pack.yaml", "{limit: 10}", "{limit: 11}"),
        (),
        (_scenario("constraints: {limit: 10}"),),
    ),
    "pack PackFile.vocabulary": Key(_top("vocabulary: {facts: {vip: bool?}}"), _top("vocabulary: {}"), (NEEDS_FACT,)),
    "pack PackFile.define": Key(
        _is("pack.yaml", "large: action.args.amount >", "large: action.args.amount + 20.0 >"),
        _is("pack.yaml", "define:\n", "define:\n  unused: state.step > 1\n"),
        (_is("scenario.yaml", "amount: 5}", "amount: 4}"),),
    ),
    "pack PackFile.rules": Key(_more_rules("{name: none, check: false}"), _more_rules("{name: all, check: true}")),
    "pack Declared.tools": Key(
        _declared("tools: {send: {to: string}}"),
        _declared("tools: {look: {what: string}}"),
        (*ALONE, _more_rules("{name: sends, tools: [send], check: action.args.to != ''}")),
    ),
    "pack Declared.tags": Key(
        _declared("tags: [charge]"),
        _declared("tags: [other]"),
        (*ALONE, _rule("condition: '!(\"charge\" in action.tags)'")),
    ),
    "pack Declared.facts": Key(
        _declared("facts: {vip: bool?}"), _declared("facts: {other: bool?}"), (*ALONE, NEEDS_FACT)
    ),
    "pack Declared.flags": Key(
        _declared("flags: [broke]"),
        _declared("flags: [other]"),
        (*ALONE, _rule("condition: '!has(state.flags.broke)'")),
    ),
    "pack Declared.constraints": Key(
        _declared("constraints: {cap: number?}"),
        _declared("constraints: {other: number?}"),
        (*ALONE, _rule("condition: has(state.constraints.cap)")),
    ),
    "pack RuleModel.name": Key(
        _is("pack.yaml", "name: small", "name: tiny"),
        _is("pack.yaml", "name: small", "name: tiny"),
        (_is("some.cases.yaml", ", rules: [small]", ""),),
        QUIET,
    ),
    "pack RuleModel.description": Key(None, _rule("description: Pay little.")),
    "pack RuleModel.category": Key(None, _rule("category: money")),
    "pack RuleModel.priority": Key(
        _is("pack.yaml", "{name: softer", "{name: softer, priority: 5"),
        _is("pack.yaml", "{name: softer", "{name: softer, priority: -5"),
        (_top("resolve: priority"), SOFTER, _rule("priority: 0")),
        (_is("pack.yaml", "resolve: priority", "resolve: strictest"),),
    ),
    "pack RuleModel.mode": Key(_rule("mode: shadow"), _rule("mode: enforce")),
    "pack RuleModel.tools": Key(_is("pack.yaml", "[pay]", "[pay, look]"), _is("pack.yaml", "[pay]", "[pay, pay]")),
    "pack RuleModel.condition": Key(_rule("condition: state.step > 7"), _rule("condition: state.step > -1")),
    "pack RuleModel.check": Key(_is("pack.yaml", "'!large'", "large"), _is("pack.yaml", "'!large'", "'!(large)'")),
    "pack RuleModel.grant": Key(
        _is("pack.yaml", "action.tool == 'look'", "action.access == 'write'"),
        _is("pack.yaml", "action.tool == 'look'", "action.tool in ['look']"),
        (_top("default: deny"), _more_rules("{name: looks, grant: \"action.tool == 'look'\"}")),
    ),
    "pack RuleModel.on_fail": Key(
        _is("pack.yaml", "on_fail: No.", "on_fail: Never."),
        _is("pack.yaml", "on_fail: No.", "on_fail: Never."),
        (
            _is(
                "pack.yaml",
                'on_fail:\n      error: "{action.args.amount} is too much"\n      hint: Pay less.',
                "on_fail: No.",
            ),
        ),
        QUIET,
    ),
    "pack RuleModel.examples": Key(_rule("examples: [1]"), _rule("examples: []")),
    "pack OnFail.error": Key(
        _is("pack.yaml", "is too much", "is a lot"), _is("pack.yaml", "is too much", "is a lot"), (), QUIET
    ),
    "pack OnFail.hint": Key(_is("pack.yaml", "Pay less.", "No."), _is("pack.yaml", "Pay less.", "No."), (), QUIET),
    "pack OnFail.effect": Key(
        _is("pack.yaml", "hint: Pay less.", "hint: Pay less.\n      effect: warn"),
        _is("pack.yaml", "hint: Pay less.", "hint: Pay less.\n      effect: deny"),
    ),
    "pack OnFail.halt": Key(
        _is("pack.yaml", "hint: Pay less.", "hint: Pay less.\n      halt: true"),
        _is("pack.yaml", "hint: Pay less.", "hint: Pay less.\n      halt: false"),
    ),
    # ---- toolsets
    "toolset ToolsetFile.toolset": Key(None, _is("tools.yaml", "toolset: desk", "toolset: shop")),
    "toolset ToolsetFile.description": Key(None, _is("tools.yaml", "tools:\n", "description: A desk.\ntools:\n")),
    "toolset ToolsetFile.fails_when": Key(
        _is("tools.yaml", "tools:\n", "fails_when: action.tool == 'look'\ntools:\n"),
        _is("tools.yaml", "tools:\n", "fails_when: false\ntools:\n"),
    ),
    "toolset ToolsetFile.redact": Key(
        _is("tools.yaml", "tools:\n", "redact: [look.args.what]\ntools:\n"),
        _is("tools.yaml", "tools:\n", "redact: [look.data.weight]\ntools:\n"),
    ),
    "toolset ToolsetFile.tools": Key(
        _is("tools.yaml", "  ask:\n", "  inquire:\n"),
        _is("tools.yaml", "tools:\n", "tools:\n  spare: {run: {user: {}}}\n"),
    ),
    "toolset Tool.description": Key(None, _tool("pay", "description: Takes money.")),
    "toolset Tool.access": Key(
        _tool("pay", "access: read"), _tool("pay", "access: write"), (_rule("condition: action.access == 'write'"),)
    ),
    "toolset Tool.tags": Key(
        _is("tools.yaml", "tags: [charge]", "tags: [cost, charge]"),
        _is("tools.yaml", "tags: [charge]", "tags: [charge, charge]"),
        (_tool("pay", "tags: [charge]"), _rule("condition: size(action.tags) < 2 || action.tags[0] == action.tags[1]")),
    ),
    "toolset Tool.args": Key(
        _is("tools.yaml", "amount: {type: number}", "amount: {type: number, maximum: 4}"),
        _is("tools.yaml", "amount: {type: number}", "amount: {type: number, maximum: 400}"),
    ),
    "toolset Tool.returns": Key(
        _is("tools.yaml", "price: {type: number}", "cost: {type: number}"),
        _is("tools.yaml", "price: {type: number}", "price: {type: integer}"),
    ),
    "toolset Tool.run": Key(
        _look_runs("{canned: [{args: {what: a}, result: {price: 6}}]}"),
        _look_runs("{canned: [{result: {price: 7, colours: [red, blue]}}]}"),
    ),
    "toolset Tool.timeout": Key(
        _tool("look", "timeout: 0.05"), _tool("look", "timeout: 20"), (_look_runs("{python: 'tools.py:slow'}"),)
    ),
    "toolset Tool.retries": Key(
        _tool("look", "retries: 1"), _tool("look", "retries: 0"), (_look_runs("{python: 'tools.py:shaky'}"),)
    ),
    "toolset Tool.fails_when": Key(
        _tool("look", "fails_when: result.data.price == 7"), _tool("look", "fails_when: result.data.price == 8")
    ),
    "toolset Tool.on_success": Key(
        _look_says("set: {facts.price: result.data.price + 1.0}"), _look_says("set: {facts.price: (result.data.price)}")
    ),
    "toolset Tool.on_failure": Key(
        _is("tools.yaml", _LOST, ""), _is("tools.yaml", "{flags.lost: true}", "{flags.lost: '!false'}"), LOOKS_FAIL
    ),
    "toolset Block.when": Key(
        _look_says("when: false\n      set: {facts.price: result.data.price}"),
        _look_says("when: true\n      set: {facts.price: result.data.price}"),
    ),
    "toolset Block.each": Key(
        _is("tools.yaml", "each: result.data.colours", "each: result.data.colours.filter(c, c == 'red')"),
        _is("tools.yaml", "each: result.data.colours", "each: result.data.colours.filter(c, true)"),
        (_look_says("each: result.data.colours\n      set: {'facts.seen[item]': true}"),),
    ),
    "toolset Block.set": Key(
        _is("tools.yaml", "set: {facts.said", "set: {facts.heard"),
        _is("tools.yaml", "{facts.said: result.data}", "{facts.said: '[result.data][0]'}"),
    ),
    "toolset Block.unset": Key(
        _is("tools.yaml", _PAID, _PAID + "\n      - unset: [facts.price]"),
        _is("tools.yaml", _PAID, _PAID + "\n      - unset: [facts.said]"),
    ),
    "toolset Block.finish": Key(
        _is("tools.yaml", _PAID, _PAID + "\n      - finish: failed"),
        _is("tools.yaml", _PAID, _PAID + "\n      - {when: false, finish: failed}"),
    ),
    "toolset Canned.args": Key(
        _is("tools.yaml", "[{args: {what: a}", "[{args: {what: b}"),
        _is("tools.yaml", "[{args: {what: a}", "[{args: {}"),
    ),
    "toolset Canned.result": Key(
        _is("tools.yaml", "result: {price: 7", "result: {price: 6"),
        _is("tools.yaml", "result: {price: 7", "result: {price: 6"),
        (),
        LOOKS_FAIL,
    ),
    "toolset CannedRun.canned": Key(
        _is("tools.yaml", _LOOK_RUN, "{canned: []}"), _is("tools.yaml", "blue]}}]", "blue]}}, {result: 1}]")
    ),
    "toolset PythonRun.python": Key(
        _is("tools.yaml", "tools.py:pay", "tools.py:pay_twice"),
        _is("tools.yaml", "tools.py:pay", "./tools.py:pay"),
    ),
    "toolset CommandRun.command": Key(
        _is("tools.yaml", "[python3, program.py]", "[python3, missing.py]"),
        _is("tools.yaml", "[python3, program.py]", "[python3, -B, program.py]"),
        (_look_runs("{command: [python3, program.py]}"),),
    ),
    "toolset UserRun.user": Key(
        _is("tools.yaml", "run: {user: {}}", "run: {canned: []}"),
        _is("tools.yaml", "{user: {}}", "{user: {  }}  # asks"),
    ),
    "toolset ConfirmRun.confirm": Key(
        _is("tools.yaml", "run: {confirm: {}}", "run: {canned: []}"),
        _is("tools.yaml", "{confirm: {}}", "{confirm: {  }}  # asks"),
        (_is("tools.yaml", "run: {user: {}}", "run: {confirm: {}}"),),
    ),
    "toolset PlanRun.plan": Key(
        _is("tools.yaml", "run: {plan: {}}", "run: {canned: [{result: {}}]}"),
        _is("tools.yaml", "{plan: {}}", "{plan: {  }}  # adds a goal"),
        (
            _is("tools.yaml", "    args: {}\n    run: {user: {}}", "    run: {plan: {}}"),
            _is("scenario.yaml", "{tool: ask}", "{tool: ask, args: {push: later}}"),
        ),
    ),
    "toolset HttpRun.http": Key(
        _is("tools.yaml", ", method: GET", ""), _is("tools.yaml", "env: KEYS_TEST", "env: KEYS_SAME"), GET
    ),
    "toolset Http.url": Key(
        _is("tools.yaml", "PORT/{action.args.what}", "PORT/other"), _is("tools.yaml", "PORT/{", 'PORT/{""}{'), GET
    ),
    "toolset Http.method": Key(
        _is("tools.yaml", "method: GET", "method: PUT"),
        _is("tools.yaml", ", method: POST", ""),
        GET,
        (_is("tools.yaml", "method: GET", "method: POST"),),
    ),
    "toolset Http.headers": Key(
        _is("tools.yaml", "X-Key: {env: KEYS_TEST}", "X-Key: plain"),
        _is("tools.yaml", "X-Key: {env: KEYS_TEST}", "X-Key: {env: KEYS_TEST}, X-Other: plain"),
        GET,
    ),
    "toolset HeaderFromEnvironment.env": Key(
        _is("tools.yaml", "env: KEYS_TEST", "env: KEYS_OTHER"),
        _is("tools.yaml", "env: KEYS_TEST", "env: KEYS_SAME"),
        GET,
    ),
    "toolset HeaderFromEnvironment.prefix": Key(
        _is("tools.yaml", "env: KEYS_TEST", "env: KEYS_TEST, prefix: 'Bearer '"),
        _is("tools.yaml", "env: KEYS_TEST", "env: KEYS_TEST, prefix: ''"),
        GET,
    ),
    # ---- scenarios
    "scenario ScenarioFile.scenario": Key(None, _is("scenario.yaml", "scenario: s", "scenario: t")),
    "scenario ScenarioFile.description": Key(None, _scenario("description: A desk.")),
    "scenario ScenarioFile.task": Key(
        _is("scenario.yaml", "task: a", "task: b"),
        _is("scenario.yaml", "task: a", "task: b"),
        (),
        (_is("scenario.yaml", "{state.task}", "a"),),
    ),
    "scenario ScenarioFile.toolset": Key(
        _is("scenario.yaml", "tools.yaml", "missing.yaml"), _is("scenario.yaml", "tools.yaml", "./tools.yaml")
    ),
    "scenario ScenarioFile.packs": Key(
        _is("scenario.yaml", "[pack.yaml]", "[]"), _is("scenario.yaml", "[pack.yaml]", "[pack.yaml, other.yaml]")
    ),
    "scenario ScenarioFile.facts": Key(
        _is("scenario.yaml", "{vip: false}", "{vip: true}"),
        _is("scenario.yaml", "{vip: false}", "{vip: false, other: 1}"),
        (
            _scenario("facts: {vip: false}"),
            _cases("state: {facts: {vip: false}}"),
            _rule("condition: '!state.facts.vip'"),
        ),
    ),
    "scenario ScenarioFile.constraints": Key(
        _scenario("constraints: {max_steps: 2}"), _scenario("constraints: {max_steps: 20}")
    ),
    "scenario ScenarioFile.flags": Key(
        _scenario("flags: {lost: true}"), _scenario("flags: {lost: false}"), (_rule("condition: '!state.flags.lost'"),)
    ),
    "scenario ScenarioFile.goals": Key(GOALS[0], _scenario("goals: [{name: never, done_when: false}]")),
    "scenario ScenarioFile.replies": Key(
        _is("scenario.yaml", "[well]", "[badly]"), _is("scenario.yaml", "[well]", "[well, unheard]")
    ),
    "scenario ScenarioFile.now": Key(
        _scenario('now: "2031-08-01T12:00:00Z"'),
        _scenario('now: "2026-08-01T12:00:00Z"'),
        (_rule("condition: now < timestamp('2030-01-01T00:00:00Z')"),),
    ),
    "scenario ScenarioFile.decide": Key(
        RECORDING[0], _is("scenario.yaml", "    - propose", "    - {when: false, propose: {tool: ask}}\n    - propose")
    ),
    "scenario ScenarioFile.answer": Key(
        _scenario("answer: Paid {state.facts.paid}."), _scenario('answer: "{state.final_answer}"')
    ),
    "scenario ScenarioFile.summarise": Key(  # with a script it is refused
        _scenario(SUMMARISED), _is("scenario.yaml", SUMMARISED, WARMER), quiet=(_scenario(SUMMARISED), *DECIDED)
    ),
    "scenario WrittenFolds.model": Key(
        _is("scenario.yaml", SUMMARISED, "summarise: {model: {model: ''}}"),
        _is("scenario.yaml", SUMMARISED, WARMER),
        (_scenario(SUMMARISED), *DECIDED),
    ),
    "scenario ScenarioFile.expect": Key(_scenario("expect: {facts.paid: 7}"), _scenario("expect: {facts.paid: 5}")),
    "scenario WrittenAnswer.model": Key(
        _is("scenario.yaml", "{model: {model: openai/x}}", "{model: {model: ''}}"),
        _is("scenario.yaml", "{model: {model: openai/x}}", "{model: {model: openai/x, temperature: 1}}"),
        (_scenario("answer: {model: {model: openai/x}}"),),
    ),
    "scenario Expect.rules": Key(
        _is("scenario.yaml", "{failed: [small]}", "{failed: [look_once]}"),
        _is("scenario.yaml", "{failed: [small]}", "{failed: [p/small]}"),
        (_scenario("expect: {rules: {failed: [small]}}"),),
    ),
    "scenario Expect.calls": Key(
        _is("scenario.yaml", "args: {amount: 5}}]", "args: {amount: 7}}]"),
        _is("scenario.yaml", "args: {amount: 5}}]", "args: {note: ''}}]"),
        (_scenario("expect: {calls: [{tool: pay, args: {amount: 5}}]}"),),
    ),
    "scenario Expect.no_calls": Key(
        _is("scenario.yaml", "args: {amount: 7}", "args: {amount: 5}"),
        _is("scenario.yaml", "args: {amount: 7}", "args: {amount: 8}"),
        (_scenario("expect: {no_calls: [{tool: pay, args: {amount: 7}}]}"),),
    ),
    "scenario ExpectedRules.failed": Key(
        _is("scenario.yaml", "failed: [small]", "failed: [look_once]"),
        _is("scenario.yaml", "failed: [small]", "failed: [p/small]"),
        (_scenario("expect: {rules: {failed: [small]}}"),),
    ),
    "scenario ExpectedRules.not_failed": Key(
        _is("scenario.yaml", "not_failed: [look_once]", "not_failed: [small]"),
        _is("scenario.yaml", "not_failed: [look_once]", "not_failed: [other/look_once]"),
        (_scenario("expect: {rules: {not_failed: [look_once]}}"),),
    ),
    "scenario ExpectedCall.tool": Key(
        _is("scenario.yaml", "{tool: look}", "{tool: pay}"),
        _is("scenario.yaml", "{tool: look}", "{tool: ask}"),
        (_scenario("expect: {no_calls: [{tool: look}]}"), _first("{propose: {tool: pay, args: {amount: 5}}}")),
    ),
    "scenario ExpectedCall.args": Key(
        _is("scenario.yaml", "args: {amount: 7}", "args: {amount: 5}"),
        _is("scenario.yaml", "args: {amount: 7}", "args: {amount: 8}"),
        (_scenario("expect: {no_calls: [{tool: pay, args: {amount: 7}}]}"),),
    ),
    "scenario Decide.script": Key(
        _first("{when: state.step == 4, propose: {tool: ask}}"),
        _first("{when: state.step == 40, propose: {tool: ask}}"),
    ),
    "scenario Decide.recording": Key(
        _is("scenario.yaml", "chat.json", "more.json"), _is("scenario.yaml", "chat.json", "./chat.json"), RECORDING
    ),
    "scenario RecordingModel.file": Key(
        _is("scenario.yaml", "chat.json", "more.json"), _is("scenario.yaml", "chat.json", "./chat.json"), RECORDING
    ),
    "scenario RecordingModel.format": Key(
        _is("scenario.yaml", "openai-chat", "tau-bench"),
        _is("scenario.yaml", "format: openai-chat", "format: 'openai-chat'"),
        RECORDING,
    ),
    "scenario GoalModel.name": Key(
        _is("scenario.yaml", "name: h", "name: k"), _is("scenario.yaml", "{name: h,", "{name: 'h',"), GOALS
    ),
    "scenario GoalModel.done_when": Key(
        _is("scenario.yaml", "has(state.facts.said)", "has(state.facts.paid)"),
        _is("scenario.yaml", "has(state.facts.said)", "has(state.facts.said) || false"),
        GOALS,
    ),
    "scenario GoalModel.goals": Key(
        _is("scenario.yaml", "has(state.facts.paid)}]", "has(state.facts.said)}]"),
        _is("scenario.yaml", "has(state.facts.paid)}]", "has(state.facts.paid), goals: []}]"),
        NESTED,
    ),
    "scenario ScriptEntry.when": Key(
        _is("scenario.yaml", "state.step == 1", "state.step == 7"),
        _is("scenario.yaml", "state.step == 1", "state.step < 2"),
    ),
    "scenario ScriptEntry.propose": Key(
        _is("scenario.yaml", "{tool: ask}", "{tool: finish}"),
        _is("scenario.yaml", "{tool: ask}", "{tool: ask, args: {}}"),
    ),
    "scenario Propose.tool": Key(
        _is("scenario.yaml", "tool: ask", "tool: finish"), _is("scenario.yaml", "tool: ask", "tool: \"{'ask'}\"")
    ),
    "scenario Propose.args": Key(
        _is("scenario.yaml", "amount: 5}", "amount: 4}"), _is("scenario.yaml", "amount: 5}", "amount: '{2 + 3}'}")
    ),
    # ---- cases: what `validate` says of them
    "cases CasesFile.cases": Key(None, _is("some.cases.yaml", "cases: c", "cases: d")),
    "cases CasesFile.description": Key(None, _cases("description: What it proves.")),
    "cases CasesFile.packs": Key(
        _is("some.cases.yaml", "[pack.yaml]", "[other.yaml]"),
        _is("some.cases.yaml", "[pack.yaml]", "[pack.yaml, other.yaml]"),
    ),
    "cases CasesFile.toolset": Key(
        _is("some.cases.yaml", "tools.yaml", "missing.yaml"), _is("some.cases.yaml", "tools.yaml", "./tools.yaml")
    ),
    "cases CasesFile.now": Key(_cases("now: noon"), _cases('now: "2026-08-01T12:00:00Z"')),
    "cases CasesFile.state": Key(
        _cases("state: {facts: {vip: true}}"),
        _cases("state: {facts: {other: true}}"),
        (_case("unset: [facts.vip]"), _is("scenario.yaml", "[pack.yaml]", "[pack.yaml]")),
    ),
    "cases CasesFile.tests": Key(
        _is("some.cases.yaml", "tests:\n", "tests:\n  - {name: little, propose: {tool: ask}, expect: allow}\n"),
        _is(
            "some.cases.yaml",
            "tests:\n",
            "tests:\n  - {name: a person is asked, propose: {tool: ask}, expect: allow}\n",
        ),
    ),
    "cases CaseModel.name": Key(
        _is("some.cases.yaml", "name: little", "name: too much"),
        _is("some.cases.yaml", "name: little", "name: not much"),
    ),
    "cases CaseModel.state": Key(_case("state: {facts: {prise: 1}}"), _case("state: {facts: {price: 1}}")),
    "cases CaseModel.unset": Key(_case("unset: [facts.prise]"), _case("unset: [facts.price]")),
    "cases CaseModel.history": Key(
        _is("some.cases.yaml", "history: [{tool: look,", "history: [{tool: looc,"),
        _is("some.cases.yaml", "history: [", "history: [{tool: pay, args: {amount: 1}}, "),
    ),
    "cases CaseModel.propose": Key(
        _is("some.cases.yaml", "    propose: {tool: pay, args: {amount: 50}}\n", ""),
        _is("some.cases.yaml", "amount: 50", "amount: 51"),
    ),
    "cases CaseModel.at": Key(
        _is("some.cases.yaml", "program.py@2", "program.py"),
        _is("some.cases.yaml", "program.py@2", "program.py@3"),
        (_case("at: program.py@2"),),
    ),
    "cases CaseModel.expect": Key(
        _is("some.cases.yaml", "expect: allow", "expect: alow"), _is("some.cases.yaml", "expect: allow", "expect: deny")
    ),
    "cases CaseModel.for": Key(
        _is("some.cases.yaml", "for: [{n: 50}]", "for: [{m: 50}]"),
        _is("some.cases.yaml", "for: [{n: 50}]", "for: [{n: 50}, {n: 60}]"),
        ROWS,
    ),
    "cases CaseModel.skip": Key(_case("skip: true"), _case("skip: later")),
    "cases StateModel.task": Key(_case("state: {task: 5}"), _case("state: {task: b}")),
    "cases StateModel.facts": Key(_case("state: {facts: {prise: 1}}"), _case("state: {facts: {price: 1}}")),
    "cases StateModel.constraints": Key(
        _case("state: {constraints: {cap: 1}}"), _case("state: {constraints: {limit: 1}}")
    ),
    "cases StateModel.flags": Key(_case("state: {flags: {found: true}}"), _case("state: {flags: {lost: true}}")),
    "cases StateModel.goals": Key(_case("state: {goals: {g: done}}"), _case("state: {goals: {g: true}}")),
    "cases HistoryModel.tool": Key(
        _is("some.cases.yaml", "tool: look", "tool: looc"),
        _is("some.cases.yaml", "tool: look, args: {what: a}", "tool: ask, args: {}"),
    ),
    "cases HistoryModel.args": Key(
        _is("some.cases.yaml", "{what: a}", "{whta: a}"), _is("some.cases.yaml", "{what: a}", "{what: b}")
    ),
    "cases HistoryModel.success": Key(_past("success: 1"), _past("success: false")),
    "cases HistoryModel.data": Key(_past("data: 0123"), _past("data: 123")),
    "cases HistoryModel.denied": Key(_past("denied: 1"), _past("denied: true")),
    "cases ProposeModel.tool": Key(
        _is("some.cases.yaml", "{tool: pay, args: {amount: 50", "{tool: pai, args: {amount: 50"),
        _is("some.cases.yaml", "{tool: pay, args: {amount: 50", "{tool: \"{'pay'}\", args: {amount: 50"),
    ),
    "cases ProposeModel.args": Key(
        _is("some.cases.yaml", "amount: 50", "amuont: 50"), _is("some.cases.yaml", "amount: 50", "amount: 40")
    ),
    "cases ExpectModel.effect": Key(
        _is("some.cases.yaml", "effect: deny", "effect: denied"), _is("some.cases.yaml", "effect: deny", "effect: warn")
    ),
    "cases ExpectModel.rules": Key(
        _is("some.cases.yaml", "rules: [small]", "rules: [smal]"),
        _is("some.cases.yaml", "rules: [small]", "rules: [p/small]"),
    ),
    "cases ExpectModel.rules_include": Key(
        _is("some.cases.yaml", "rules: [small]", "rules_include: [smal]"),
        _is("some.cases.yaml", "rules: [small]", "rules_include: [small]"),
    ),
    "cases ExpectModel.error": Key(
        _is("some.cases.yaml", "error: 50 is too much", "error: '{row.n'"),
        _is("some.cases.yaml", "error: 50 is too much", "error: 50 is a lot"),
        LONG,
    ),
    "cases ExpectModel.hint": Key(
        _is("some.cases.yaml", "hint: Pay less.", "hint: '{row.n}'"),
        _is("some.cases.yaml", "hint: Pay less.", "hint: Pay more."),
        LONG,
    ),
    "cases ExpectModel.halts": Key(
        _is("some.cases.yaml", "rules: [small]", "rules: [small], halts: maybe"),
        _is("some.cases.yaml", "rules: [small]", "rules: [small], halts: true"),
    ),
}
