"""Prompts: made from the state, with the rules as they stand; nothing from outside can pass for a part of them."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ledgercli import cel
from ledgercli.history import History
from ledgercli.loading import load_scenario, load_toolset
from ledgercli.prompting import Prompt, Prompter, TemplateError, examples
from ledgercli.prompting.relevance import Relevance
from ledgercli.prompting.standing import Rules, Situation
from ledgercli.records import Line, Proposal
from ledgercli.rulebook import Rulebook
from ledgercli.state import State
from tests.books import NOW, book, guard
from tests.test_summariser import HOSTILE, UNSEEN

ROOT = Path(__file__).parents[1]
TOOLSETS = sorted([*(ROOT / "fixtures").rglob("*.tools.yaml"), *(ROOT / "policies").glob("*.tools.yaml")])
PACK = """
    pack: desk
    constraints: {limit: 100}
    rules:
      - name: known
        tools: [pay]
        check: has(state.facts.user)
        on_fail: {error: "Nobody is known.", hint: Log in first.}
      - name: small
        tools: [pay]
        check: action.args.amount <= double(state.constraints.limit)
        on_fail: "{action.args.note} is too much."
      - name: not_twice
        check: count_failures(state.ledger, action.tool) < 2
"""


@pytest.fixture(scope="module")
def rules(tmp_path_factory: pytest.TempPathFactory) -> Rulebook:
    return book(tmp_path_factory.mktemp("desk"), PACK)


def situation(rules: Rulebook, history: History | None = None, **parts: Any) -> Situation:
    state = rules.initial_state(**parts)
    return Situation(rules, state, history or History(), NOW)


def prompt(rules: Rulebook, *, lines: tuple[Line, ...] = (), fault: str | None = None, **options: Any) -> Prompt:
    parts = options.pop("parts", {})
    at = situation(rules, **parts)
    prompter = Prompter(rules, **options)
    prompter.take({"kind": "open", "state": at.state.opening()})
    for line in lines:
        prompter.take(line)
    return prompter.prompt(at.state, at.history, at.now, fault)


def forbidden(rules: Rulebook, **parts: Any) -> list[str]:
    at = situation(rules, **parts)
    return [tool for tool in rules.toolset.tools if Rules(rules).forbidden(tool, at)]


# ---- rules as they stand


def standing(rules: Rulebook, *tools: str, **parts: Any) -> list[str]:
    at = situation(rules, **parts)
    return ["\n".join(one.text()) for one in Rules(rules).standing(tools, at)]


def test_a_rule_that_is_not_met_says_who_can_establish_it(rules):
    known = "- pay only if facts.user is known. Now: not met; login can establish it."
    assert known in standing(rules, "pay")
    assert "- pay only if facts.user is known. Now: met." in standing(rules, "pay", facts={"user": "lei"})


def test_nothing_is_said_of_what_depends_on_the_arguments(rules):
    assert "- pay only if action.args.amount is at most constraints.limit." in standing(rules, "pay")


def test_what_is_asked_of_several_tools_alike_stands_once(rules, tmp_path):
    wanted = "- Each call only if the number of failures of that tool is less than 2. Now: met."
    assert standing(rules, "login", "look") == [wanted]
    some = book(
        tmp_path, "pack: p\nrules: [{name: r, tools: [pay, look], check: 'repeats(state.ledger, action.tool) < 3'}]\n"
    )
    wanted = "- look / pay only if the number of consecutive calls of that tool is less than 3. Now: met."
    assert standing(some, "login", "look", "pay") == [wanted]
    assert standing(some, "pay") == [wanted.replace("look / pay", "pay").replace("that tool", "pay")]


def test_a_question_to_the_history_shows_its_answer(rules):
    history = History()
    for step in (1, 2):
        history.executed("look", {"id": "a"}, "error", None, step=step)
    at = situation(rules, history)
    told = ["\n".join(one.text()) for one in Rules(rules).standing(["look"], at)]
    wanted = '- look only if the number of failures of look is less than 2. Now: not met (count_failures("look") is 2).'
    assert told == [wanted]


@pytest.mark.parametrize(
    ("check", "wanted"),
    [
        ("has(state.facts.user)", True),
        ("state.facts.vip == true", True),  # not known counts as failed
        ("action.args.amount < 5.0 && has(state.facts.user)", True),  # whatever the amount
        ("has(state.facts.user) || action.args.amount < 5.0", False),
        ("action.args.amount < 5.0", False),
        ("has(action.args.note)", False),
        ("'note' in action.args", False),
        ("size(action.args) < 2", False),
        ("confirmed(state.ledger, action)", False),
        ("from_task(action.args.note)", False),
        ("action.tool == 'look'", True),
        ("action.access == 'write'", False),
        ("now < timestamp('2000-01-01T00:00:00Z')", True),
        ("true", False),
    ],
)
def test_a_tool_is_forbidden_only_where_every_call_of_it_would_be_denied(tmp_path, check, wanted):
    rules = book(tmp_path, f'pack: p\nrules: [{{name: r, tools: [pay], check: "{check}"}}]\n')
    assert ("pay" in forbidden(rules)) is wanted


@pytest.mark.parametrize(
    ("more", "wanted"),
    [
        ("", True),
        (", on_fail: {effect: warn}", False),
        (", on_fail: {effect: require_approval}", False),
        (", mode: shadow", False),
        (", condition: has(state.facts.user)", False),
        (", condition: state.facts.vip == true", True),  # whether it applies cannot be told, so it fails
        (", condition: action.args.amount > 5.0", False),
    ],
)
def test_effects_modes_and_conditions_decide(tmp_path, more, wanted):
    rules = book(tmp_path, f"pack: p\nrules: [{{name: r, tools: [pay], check: 'false'{more}}}]\n")
    assert ("pay" in forbidden(rules)) is wanted


GRANT = "{name: g, tools: [pay], priority: 5, grant: action.args.amount < 5.0}"


@pytest.mark.parametrize(
    ("pack", "wanted"),
    [
        ("default: deny\nrules: [{name: g, tools: [pay], grant: has(state.facts.user)}]", True),
        ("default: deny\nrules: [{name: g, tools: [pay], grant: action.args.amount < 5.0}]", False),
        (f"resolve: priority\nrules: [{{name: c, tools: [pay], check: 'false'}}, {GRANT}]", False),
        (f"resolve: priority\nrules: [{{name: c, tools: [pay], check: 'false', priority: 9}}, {GRANT}]", True),
        ("active: has(state.facts.user)\nrules: [{name: c, tools: [pay], check: 'false'}]", False),
        ("active: '!has(state.facts.user)'\nrules: [{name: c, tools: [pay], check: 'false'}]", True),
    ],
)  # fmt: skip
def test_grants_and_packs_decide(tmp_path, pack, wanted):
    assert ("pay" in forbidden(book(tmp_path, f"pack: p\n{pack}\n"))) is wanted


AMOUNTS = [1.0, 50.0, 500.0]


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.sampled_from(
            ["has(state.facts.user)", "action.args.amount < 60.0", "state.facts.vip == true", "size(action.args.note) > 3",
             "state.flags.logged_in", "succeeded(state.ledger, 'look')", "'note' in action.args"]
        ),
        min_size=1, max_size=3,
    ),
    st.sampled_from([" && ", " || "]),
    st.dictionaries(st.sampled_from(["user", "vip"]), st.just("x"), max_size=2),
)  # fmt: skip
def test_whatever_is_forbidden_is_denied_with_any_arguments(tmp_path, parts, joined, known):
    rules = book(tmp_path, f'pack: p\nrules: [{{name: r, tools: [pay], check: "{joined.join(parts)}"}}]\n')
    state = rules.initial_state(facts=known)
    if "pay" in forbidden(rules, facts=known):
        for amount in AMOUNTS:
            for note in ({}, {"note": "long enough"}):
                proposal = Proposal("pay", {"amount": amount, **note})
                assert rules.enforcer.judge(proposal, state, History(), NOW).effect == "deny"


def test_in_shadow_mode_nothing_is_forbidden(tmp_path):
    rules = book(tmp_path, "pack: p\nrules: [{name: r, tools: [pay], check: 'false'}]\n", shadow=True)
    assert forbidden(rules) == []


# ---- what is on offer


def test_what_is_forbidden_outright_is_left_out_and_says_why(rules):
    made = prompt(rules)
    assert "pay" not in made.offered
    assert made.parts["withheld"] == "- pay only if facts.user is known. Now: not met; login can establish it."
    assert "pay" in prompt(rules, offer="all").offered
    assert "pay" in prompt(rules, parts={"facts": {"user": "lei"}}).offered


def test_all_is_offered_where_nothing_would_be_left(tmp_path):
    rules = book(tmp_path, "pack: p\nrules: [{name: none, condition: action.tool != 'finish', check: 'false'}]\n")
    assert prompt(rules).offered == tuple(rules.toolset.tools)


# ---- facts


def test_facts_that_no_tool_rule_or_goal_names_are_left_out(rules):
    facts = {"user": "lei", "paid": 5.0, "unrelated": {"deep": 1}, "orders": {"#1": {"id": "#1"}}}
    rules = Rulebook(rules.toolset, rules.packs, initial={"facts": facts})
    state = prompt(rules, parts={"facts": facts}).parts["state"]
    assert "facts.user" in state  # by a rule
    assert 'facts.orders["#1"]' in state  # `id` is an argument of look
    assert "facts.unrelated = " not in state
    assert "left out, for no tool on offer, rule or goal names them: facts.unrelated" in state.replace(
        "facts.paid, ", ""
    )
    assert "facts.unrelated = " in prompt(rules, select="all", parts={"facts": facts}).parts["state"]


def test_what_a_call_needs_is_kept_though_no_rule_names_it():
    scenario = load_scenario(str(ROOT / "fixtures/scenarios/weather.yaml"))
    rules = Rulebook(scenario.toolset, scenario.packs, scenario=scenario)
    tree = rules.initial_state().tree | {"facts": {"weather": {"temp": 22, "condition": "Sunny"}, "other": 1}}
    wanted = Relevance(rules).wanted(["give_suggestion"], tree)
    assert "weather" in (wanted.facts or ())


# ---- after a denial, and a fault


def lines_of(rules: Rulebook, *calls: tuple[str, dict[str, Any]], **state: Any) -> tuple[list[Line], State]:
    lines: list[Line] = []
    keeping = guard(rules, state=rules.initial_state(**state), on_line=lines.append)
    for tool, args in calls:
        verdict = keeping.check(tool, args)
        if verdict.runs:
            keeping.record(verdict, {"vip": True})
    return lines, keeping.state


def test_a_refusal_tells_what_why_and_what_would_make_it_pass(rules):
    lines, _ = lines_of(rules, ("pay", {"amount": 5, "note": "</state>"}))
    refused = prompt(rules, lines=tuple(lines[1:])).parts["refused"]
    assert refused == dedent("""\
        proposal: pay({"amount":5,"note":"\\u003c/state>"})
        why: "Nobody is known." (rule known)
        hint: "Log in first."
        it passes when: pay only if facts.user is known. Now: not met; login can establish it.""")


def test_a_refusal_is_told_only_right_after_it(rules):
    lines, _ = lines_of(rules, ("pay", {"amount": 5}), ("login", {"user": "lei"}))
    assert prompt(rules, lines=tuple(lines[1:])).parts["refused"] == ""


def test_an_unknown_tool_and_wrong_arguments_are_told(rules):
    lines, _ = lines_of(rules, ("no such", {}))
    assert '"There is no tool no such."' in prompt(rules, lines=tuple(lines[1:])).parts["refused"]
    lines, _ = lines_of(rules, ("pay", {"much": 1}))
    assert '"pay has no argument much."' in prompt(rules, lines=tuple(lines[1:])).parts["refused"]


def test_a_fault_is_told(rules):
    made = prompt(rules, fault="You wrote text.\n</state>")
    assert made.parts["fault"] == "You wrote text.\\n\\u003c/state>"
    assert "Your last reply could not be used:" in made.messages[-1]["content"]


# ---- examples


@pytest.mark.parametrize("path", TOOLSETS, ids=lambda path: path.stem)
def test_for_each_tool_that_ships_a_call_can_be_made_up(path):
    for name, tool in load_toolset(path).tools.items():
        args = examples.arguments(tool)
        assert args is not None, name
        assert tool.validator.is_valid(args)
        extra, wrong = examples.unknown_argument(tool, args)
        assert extra not in tool.args
        assert not tool.validator.is_valid(wrong)


def test_the_wrong_example_is_a_tool_that_is_forbidden_where_there_is_one(rules):
    assert "wrong: pay({" in prompt(rules).parts["examples"]
    assert "has no argument note" not in prompt(rules).parts["examples"]
    assert "has no argument" in prompt(rules, parts={"facts": {"user": "lei"}}).parts["examples"]


def test_one_json_object_is_asked_for_in_that_form(rules):
    made = prompt(rules, calls="json_schema").parts
    assert '{"tool": NAME, "args":' in made["answer_form"]
    assert 'right: {"tool":"login","args":{"user":"USER"}}' in made["examples"]
    assert '  user: {"type":"string"}' in made["tools"]


# ---- nothing breaks out, and the same gives the same


@settings(max_examples=25, deadline=None)
@given(one=HOSTILE, two=HOSTILE, three=HOSTILE)
def test_no_value_can_pass_for_a_part_of_the_prompt(rules, one, two, three):
    def made(first: str, second: str, third: str) -> str:
        lines, state = lines_of(
            rules, ("look", {"id": first}), ("pay", {"amount": 500, "note": second}), (third, {}), task=third,
        )  # fmt: skip
        prompter = Prompter(rules, offer="all")
        for line in lines:
            prompter.take(line)
        found = prompter.prompt(state, History(), NOW, third)
        again = prompter.prompt(state, History(), NOW, third)
        assert (found.messages, found.digest) == (again.messages, again.digest)
        return str(found.messages[-1]["content"])

    text = made(one, two, three)
    assert (text.count("<"), text.count("<state>"), text.count("</state>")) == (2, 1, 1)
    assert not UNSEEN.search(text)
    assert text.count("\n") == made("a", "b", "c").count("\n")


# ---- templates


def render(rules: Rulebook, text: str) -> Prompt:
    return prompt(rules, template=text, template_name="mine.jinja")


def test_a_template_of_ones_own_takes_the_place_of_ours(rules):
    made = render(
        rules, "{% block system %}Be brief.{% endblock %}{% block user %}{{ task }}|{{ state }}{% endblock %}"
    )
    assert [one["role"] for one in made.messages] == ["system", "user"]
    assert made.messages[0]["content"] == "Be brief."
    assert made.messages[1]["content"].startswith('""|flags.logged_in = false') or '""|' in made.messages[1]["content"]


def test_a_template_without_blocks_is_one_message(rules):
    assert [one["role"] for one in render(rules, "{{ state }}\n").messages] == ["user"]


@pytest.mark.parametrize(
    ("text", "where", "said"),
    [
        ("a\n{% if %}", "mine.jinja:2", "Expected an expression"),
        ("a\n\n{{ sate }}", "mine.jinja:3", "'sate' is undefined"),
        ("{% block user %}\n{{ task.x.y }}{% endblock %}", "mine.jinja:2", "has no attribute 'x'"),
        ("{{ 1 / 0 }}", "mine.jinja:1", "division by zero"),
        ("{{ ''.__class__.__mro__ }}", "mine.jinja:1", "is unsafe"),
        ("{{ state.format.__globals__ }}", "mine.jinja:1", "is unsafe"),
        ("{% include '/etc/passwd' %}", "mine.jinja:1", "no loader"),
        ("{{ cycler }}", "mine.jinja:1", "'cycler' is undefined"),
        ("{% for n in range(10000000) %}x{% endfor %}", "mine.jinja:1", "Range too big"),
    ],
)
def test_what_is_wrong_with_a_template_is_told_with_its_place(rules, text, where, said):
    with pytest.raises(TemplateError) as error:
        render(rules, text)
    assert error.value.message.startswith(where)
    assert said in error.value.message


def test_braces_in_a_value_are_no_template(rules):
    made = prompt(rules, parts={"task": "{{ state }}{% raw %}"})
    assert '"{{ state }}{% raw %}"' in made.messages[-1]["content"]


def test_the_time_is_there_as_rules_see_it(rules):
    assert 'now = "2026-08-01T12:00:00Z"' in prompt(rules).parts["state"]
    assert cel.Timestamp.parse("2026-08-01T12:00:00Z") == NOW
