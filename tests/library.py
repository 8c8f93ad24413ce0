"""Ledgers that together hold every kind of line, every key of it, and every value that a key chooses from."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ledgercli.amending import approve, roll_back
from ledgercli.guard import Guard
from ledgercli.resuming import Told, go_on_from, resume
from ledgercli.runs import Options, prepare
from tests.books import NOW, book, carry_out, guard, scenario
from tests.model_desk import FINISH, FOLDED, LOGIN, PAY, Model, calls, taken_up, text
from tests.model_desk import decided as carry_out_by
from tests.model_desk import desk as desk_of_model

DESK = """
    toolset: desk
    tools:
      look:
        access: read
        args: {id: {type: string}}
        on_success:
          set: {'facts.orders[action.args.id]': result.data.order, facts.odd: result.data.nowhere}
      login:
        access: read
        args: {user: {type: string}}
        on_success: {set: {facts.user: action.args.user, flags.logged_in: true}}
      pay:
        tags: [charge]
        args: {amount: {type: number}, note: {type: string, default: ""}}
        on_success: {set: {facts.paid: action.args.amount}}
        on_failure: {set: {flags.payment_failed: true}, unset: [facts.paid]}
      ask: {args: {question: {type: string}}, run: {user: {}}, on_success: {set: {facts.said: result.data}}}
      stop: {access: read, run: {canned: [{result: 1}]}, on_success: {finish: halted}}
"""
RULES = """
    pack: p
    version: 2
    constraints: {most: 100}
    rules:
      - name: users_pay
        tools: [pay]
        check: state.facts.user == 'lei'
        on_fail: {error: "Not for you.", hint: "Log in.", halt: HALT}
      - name: much
        tools: [pay]
        check: action.args.amount <= state.constraints.most
        on_fail: {error: "{action.args.amount} is much.", effect: require_approval}
      - name: some
        tools: [pay]
        check: action.args.amount <= 50
        on_fail: {error: Some., effect: warn, hint: Less.}
      - name: tried
        tools: [pay]
        mode: shadow
        check: action.args.amount <= 10
        on_fail: {error: Tried.}
      - name: looked_often
        tools: [look]
        check: count_calls(state.ledger, 'look') < 9
"""
BEATEN = """
    pack: q
    resolve: priority
    rules:
      - {name: vip, priority: 5, grant: state.flags.logged_in}
      - {name: never, tools: [pay], check: 'action.args.amount < 40', on_fail: Beaten.}
"""
HALTS, GOES_ON = RULES.replace("HALT", "true"), RULES.replace("HALT", "false")


def _desk(folder: Path, name: str, halt: bool = False, **more: Any) -> Guard:
    rules = book(folder, HALTS if halt else GOES_ON, BEATEN, tools=DESK, shadow=more.get("shadow", False),
                 task="Order W1 for lei", facts={"orders": {"W0": {"n": 1}}, "known": [1, "a", None]})  # fmt: skip
    return guard(rules, folder / f"{name}.ledger.jsonl", **more)


def _looked(one: Guard, number: str, result: Any = None) -> None:
    one.record(one.check("look", {"id": number}, call_id="c1"), result or {"order": {"n": 2}, "nowhere": 1})


def desk(folder: Path) -> None:
    """A program's calls with every outcome; a call is approved, another refused."""
    with _desk(folder, "desk", checkpoint=4) as one:
        one.check("pay", {"amount": 5})  # denied: the user is not known
        one.record(one.check("login", {"user": "lei"}), {"vip": True})
        _looked(one, "W1", {"order": {"n": 2, "rest": "unread"}})  # a transition cannot tell `nowhere`
        one.record(one.check("login", {"user": "lei"}), {"success": False, "error": "no"})
        one.record(one.check("pay", {"amount": 60, "note": "a"}), {"paid": True})  # warned, overridden, shadowed
        one.record(one.check("pay", {"amount": 6}), {"success": False, "error": "declined", "code": 7})
        one.record(one.check("pay", {"amount": 7}), outcome="unknown")
        one.record(one.check("look", {"id": "W2"}), outcome="cancelled")
        for amount, yes in ((500, True), (600, False)):
            verdict = one.check("pay", {"amount": amount})
            one.approve(verdict.step, yes=yes, by="lei", reason="fine")
            verdict = one.check("pay", {"amount": amount})
            if verdict.runs:
                one.record(verdict, {"paid": True})
        one.said("Thanks for W1")
        one.record(one.check("ask", {"question": "More?"}), "no")
        one.close("completed", {"well": [1]})


def shadowed(folder: Path) -> None:
    """Everything runs; what would have refused it stands beside it."""
    with _desk(folder, "shadowed", shadow=True) as one:
        one.record(one.check("pay", {"amount": 500}), {"paid": True})
        one.record(one.check("nothing", {}), {"done": 1})


def parallel(folder: Path) -> None:
    """Calls that end out of order: reads say behind which line they were judged."""
    with _desk(folder, "parallel") as one:
        first, second = one.check("look", {"id": "A"}), one.check("look", {"id": "B"})
        one.record(one.check("login", {"user": "lei"}), {})
        write = one.check("pay", {"amount": 5})
        one.record(second, {"order": {"n": 1}, "nowhere": 2})
        one.record(write, {"paid": True})
        one.record(first, {"order": {"n": 2}, "nowhere": 3})


def halted(folder: Path) -> None:
    """A denial ends the run; its program says that it was an error."""
    with _desk(folder, "halted", halt=True) as one:
        one.check("pay", {"amount": 5})


def torn(folder: Path) -> None:
    """A writer died in the middle of a line, and the program goes on; another one dies and does not."""
    path = folder / "torn.ledger.jsonl"
    one = _desk(folder, "torn")
    _looked(one, "W1")
    one.check("login", {"user": "lei"})
    one._let_go()
    with path.open("ab") as file:
        file.write(b'{"kind":"st')
    one = Guard.resume(path, clock=lambda: NOW, sync="none", sets={"facts.user": "lei"})
    one.record(one.check("pay", {"amount": 5}), {"paid": True})
    one.check("pay", {"amount": 6})
    one._let_go()
    Guard.resume(path, clock=lambda: NOW, sync="none").close("error", error="ValueError: no")


SCRIPTED = """
    scenario: s
    task: Pay for W1
    toolset: t.tools.yaml
    packs: [p0.yaml]
    facts: {user: lei, note: hi, orders: {W0: {n: 1}}}
    constraints: {max_steps: 9}
    goals: [{name: all, goals: [{name: known, done_when: "'W1' in state.facts.orders"}, {name: paid, done_when: has(state.facts.paid)}]}]
    decide:
      script:
        - when: "!('W1' in state.facts.orders)"
          propose: {tool: look, args: {id: W1}}
        - when: state.error == null
          propose: {tool: pay, args: {amount: AMOUNT, note: '{state.facts.note}'}}
    answer: '{state.facts.orders.W1.n} of {state.task}'
"""
CANNED = DESK.replace(
    "args: {id: {type: string}}",
    "args: {id: {type: string}}\n        run: {canned: [{result: {order: {n: 2}, nowhere: 1, rest: x}}]}",
).replace(
    'default: ""}}', 'default: ""}}\n        run: {canned: [{args: {amount: 66}, result: {success: false, error: E}}, {result: {id: 1}}]}'
)  # fmt: skip


def _scripted(folder: Path, name: str, amount: int, **options: Any) -> Path:
    within = folder / name
    within.mkdir()
    text = options.pop("text", SCRIPTED).replace("AMOUNT", str(amount))
    file = scenario(within, text, options.pop("tools", CANNED), GOES_ON)
    out = folder / f"{name}.ledger.jsonl"
    carry_out(file, out, **{"now": "2026-08-01T12:00:00Z", **options})
    return out


def scripted(folder: Path) -> None:
    """Scripts that end in every way that a script can."""
    _scripted(folder, "completed", 5)
    _scripted(folder, "failed", 66)
    _scripted(folder, "limit", 5, max_steps=1)
    wrong = CANNED.replace("facts.odd: result.data.nowhere", "constraints.max_steps: result.data.rest")
    _scripted(folder, "wrong", 5, tools=wrong)
    stops = SCRIPTED.replace("- when: state.error == null", "- propose: {tool: stop, args: {}}\n        - when: 'true'")
    _scripted(folder, "stopped", 5, text=stops)


def reopened(folder: Path) -> None:
    """A script that waits, is approved, goes on, is rolled back, and goes on with another pack; and a run from it."""
    path = _scripted(folder, "reopened", 500, checkpoint=1)
    approve(str(path), yes=True, by="lei", reason="fine")
    go_on(path)
    roll_back(f"{path}@1", by="mia", reason="no")
    pack = folder / "reopened" / "p0.yaml"
    pack.write_text(pack.read_text().replace("most: 100", "most: 501"))
    go_on(path, packs=[str(pack)], sets=['facts.note="ho"'])
    forked = Options(out=str(folder / "forked.ledger.jsonl"), sync="none", now="2026-08-01T12:00:00Z", max_steps=3)
    go_on_from(f"{path}@1", (), forked).run(None, lambda _p, _v: (True, "lei"), lambda _line: None)


def go_on(path: Path, *, told: Told | None = None, **options: Any) -> None:
    """Do as `ledger run --resume`."""
    more = Options(sync="none", now="2026-08-01T12:00:00Z", **options)
    resume(str(path), more, told=told).run(None, lambda _p, _v: None, lambda _line: None)


CHAT = [
    {"role": "user", "content": "Pay 5 and 500 for W1"},
    {"role": "assistant", "tool_calls": [{"id": "a", "type": "function", "function": {"name": "look", "arguments": '{"id": "W1"}'}}]},
    {"role": "tool", "tool_call_id": "a", "content": '{"order": {"n": 3}, "nowhere": 1, "rest": "x"}'},
    {"role": "assistant", "content": "Sure?"},
    {"role": "user", "content": "Yes, I am lei"},
    {"role": "assistant", "tool_calls": [{"id": "b", "type": "function", "function": {"name": "pay", "arguments": '{"amount": 500}'}}]},
    {"role": "tool", "tool_call_id": "b", "content": '{"id": 5}'},
    {"role": "assistant", "tool_calls": [{"id": "c", "type": "function", "function": {"name": "pay", "arguments": '{"amount": 5}'}}]},
    {"role": "tool", "tool_call_id": "c", "content": "Error: declined"},
]  # fmt: skip
RECORDED = """
    scenario: r
    toolset: t.tools.yaml
    packs: [p0.yaml]
    facts: {user: lei, orders: {}}
    decide: {recording: {file: chat.json, format: openai-chat}}
"""


def recorded(folder: Path) -> None:
    """A recording in both modes, and one of the files only by their digests."""
    within = folder / "recorded"
    within.mkdir()
    tools = DESK.replace("tools:", "fails_when: 'result.data.startsWith(\"Error\")'\n    tools:", 1)
    file = scenario(within, RECORDED, tools, GOES_ON)
    (within / "chat.json").write_text(json.dumps({"id": "chat", "messages": CHAT}))
    for name, more in (("enforced", {}), ("lenient", {"shadow": True}), ("referred", {"reference": True})):
        [(_, jobs)] = prepare([str(file)], Options(out=str(within / name), sync="none", **more))
        [job] = jobs
        job.run(None, lambda _p, _v: None, lambda _line: None)
        job.ledger.rename(folder / f"{name}.ledger.jsonl")


def redacted(folder: Path) -> None:
    """What a toolset hides stands as a mask."""
    tools = DESK.replace("tools:", "redact: [look.data.order.secret]\n    tools:", 1)
    rules = book(folder, GOES_ON, tools=tools, task="t", facts={"user": "lei"})
    with guard(rules, folder / "redacted.ledger.jsonl") as one:
        one.record(one.check("pay", {"amount": 5}), {"paid": 1})
        _looked(one, "W1", {"order": {"secret": "4711-9", "n": 1}, "nowhere": 1})
        one.record(one.check("pay", {"amount": 6}), {"paid": 1})


def decided(folder: Path) -> None:
    """A model decides, is cut off at a limit, and goes on asked in another way until nothing it says can be used."""
    within = folder / "decided"
    within.mkdir()
    model = Model(text("Hm."), calls(LOGIN), calls(PAY), calls(FINISH))
    file = desk_of_model(within)
    carry_out_by(file, model, out="decided", max_cost=0.025)
    taken_up(file, Model(calls(PAY), *[text("No.")] * 3, cost=None), out="decided", temperature=0.5, max_tokens=99)
    (within / "decided.ledger.jsonl").rename(folder / "decided.ledger.jsonl")


def folded(folder: Path) -> None:
    """A model writes what older steps came to: once so that it can be used, once so that it cannot."""
    within = folder / "folded"
    within.mkdir()
    folds = Model(text("The agent logged lei in."), text("It paid 7 for Ann."))
    carry_out_by(desk_of_model(within, more=FOLDED), Model(calls(LOGIN), calls(PAY), calls(FINISH)), folds=folds)
    (within / "run.ledger.jsonl").rename(folder / "folded.ledger.jsonl")


def library(folder: Path) -> dict[str, Path]:
    """Write all of them; name → ledger."""
    for make in (desk, shadowed, parallel, halted, torn, scripted, reopened, recorded, redacted, decided, folded):
        make(folder)
    return {path.name.removesuffix(".ledger.jsonl"): path for path in sorted(folder.glob("*.ledger.jsonl"))}
