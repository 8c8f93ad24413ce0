"""The functions over past steps as expressions ask them: answers, reads, and mistakes found at load."""

from __future__ import annotations

from typing import Any

import pytest

from ledgercli import cel
from ledgercli.functions import LEDGER, Moment, functions
from ledgercli.history import NEVER, History
from ledgercli.state import Origin, State, initial
from tests.books import NOW

TOOLS = {"pay": ("amount", "to"), "look": ("id",)}
STATE = cel.RecordType(
    "state",
    {
        "facts": cel.Field(
            cel.RecordType("map", {"order": cel.Field(cel.DYN), "user": cel.Field(cel.DYN)}, noun="fact")
        ),
        "ledger": cel.Field(LEDGER),
    },
)
ACTION = cel.RecordType(
    "action",
    {"tool": cel.Field(cel.STRING), "args": cel.Field(cel.RecordType("arguments", {"to": cel.Field(cel.STRING)}))},
)
ENV = cel.Env({"state": STATE, "action": ACTION, "now": cel.TIMESTAMP}, functions=functions(TOOLS))
ACTED = {"tool": "pay", "args": {"to": "A-77", "amount": 5}}


def past() -> tuple[History, State]:
    history = History("Pay 5 to A-77 please")
    history.executed("look", {"id": "W1"}, "ok", {"id": "W1", "total": 98.7}, step=1)
    history.executed("pay", {"to": "B-1", "amount": 5}, "error", "no funds", step=2)
    history.executed("pay", {"to": "A-77", "amount": 5}, "ok", {"paid": True}, step=3)
    history.denied("pay")
    history.said("yes, 4711")
    state = initial(facts={"user": {"id": "mia"}})
    state = state.after({"facts.order": {"id": "W1", "lines": [1]}}, step=4, origin=Origin("look", {"id": "W1"}, 1))
    return history, state


def ask(text: str) -> tuple[Any, dict[str, Any]]:
    history, state = past()
    checked = cel.check(cel.parse(text), ENV)
    assert not checked.problems, checked.problems
    explained = cel.compile(checked).explain({"state": state.tree, "action": ACTED, "now": NOW}, Moment(history, state))
    answer = explained.answer
    return (cel.to_json(answer.value) if answer.known else answer), explained.reads


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("count_calls(state.ledger, 'pay')", 2),
        ("count_calls(state.ledger, action.tool)", 2),
        ("count_calls(state.ledger, 'pay', {'to': 'A-77'})", 1),
        ("count_calls(state.ledger, 'pay', {'amount': 5.0})", 2),
        ("count_calls(state.ledger, 'pay', {})", 2),
        ("count_calls(state.ledger, 'pay', action.args)", 1),
        ("count_failures(state.ledger, 'pay')", 1),
        ("count_recent_failures(state.ledger, 'pay')", 0),
        ("count_denied(state.ledger, 'pay')", 1),
        ("succeeded(state.ledger, 'look')", True),
        ("succeeded(state.ledger, 'pay', {'to': 'B-1'})", False),
        ("succeeded(state.ledger, 'pay', action.args)", True),
        ("repeats(state.ledger, 'pay')", 2),
        ("repeats(state.ledger, action)", 1),
        ("last_result(state.ledger, 'look').total", 98.7),
        ("last_args(state.ledger, 'pay').to", "A-77"),
        ("steps_since(state.ledger, 'look')", 4),
        ("sum_args(state.ledger, 'pay', 'amount')", 5.0),
        ("distinct_args(state.ledger, 'pay', 'to')", 1),
        ("confirmed(state.ledger, action)", False),
        ("sum([1, 2.5, 3u])", 6.5),
        ("sum([])", 0.0),
        ("from_task(action.args.to)", True),
        ("from_task([5, 'A-77'])", True),
        ("from_task('B-1')", False),
        ("from_user('4711')", True),
        ("from_user('A-77')", False),
        ("from_tool('W1', 'look')", True),
        ("from_tool(98.7, 'look')", True),
        ("from_tool('no funds', 'pay')", False),
        ("source(state.facts.order).tool", "look"),
        ("source(state.facts.order.lines).step", 1),
        ("source(state.facts.order).args", {"id": "W1"}),
        ("source(state.facts.user).tool", "task"),
        ("source(state.facts.user.id).tool == 'task'", True),
    ],
)  # fmt: skip
def test_each_function_answers(text: str, answer: Any) -> None:
    assert ask(text)[0] == answer


def test_a_tool_that_never_ran_was_never_that_long_ago() -> None:
    checked = cel.check(cel.parse("steps_since(state.ledger, 'pay')"), ENV)
    answer = cel.compile(checked)({"state": initial().tree, "action": ACTED, "now": NOW}, Moment(History(), initial()))
    assert answer.value == NEVER


@pytest.mark.parametrize(
    ("text", "missing", "error"),
    [
        ("last_result(state.ledger, 'look').total > 1.0", (), "look has not run yet"),
        ("last_args(state.ledger, 'look').id == 'x'", (), "look has not run yet"),
        ("source(state.facts.order).tool == 'look'", ("state.facts.order",), None),
        ("source(action.args.to).tool == 'look'", ("action.args.to",), None),
        ("sum([1, 'a']) > 1.0", (), "sum takes a list of numbers"),
        ("sum([true]) > 1.0", (), "sum takes a list of numbers"),
        ("repeats(state.ledger, {'a': 1}) > 1", (), "a call is `action`, or a map with its tool and args"),
        (
            "confirmed(state.ledger, {'tool': 'pay', 'args': 1})",
            (),
            "a call is `action`, or a map with its tool and args",
        ),
    ],
)
def test_what_cannot_be_told_says_why(text: str, missing: tuple[str, ...], error: str | None) -> None:
    checked = cel.check(cel.parse(text), ENV)
    assert not checked.problems, checked.problems
    answer = cel.compile(checked)({"state": initial().tree, "action": ACTED, "now": NOW}, Moment(History(), initial()))
    assert not answer.known
    assert answer.missing == missing
    assert error is None or error in str(answer.error)


@pytest.mark.parametrize("path", ["state.facts.order", 'state.facts.order["W9"]', "state.facts.order.nothing"])
def test_nobody_established_what_is_not_there(path: str) -> None:
    """Also where it was there once, or where a part that holds it is."""
    history, state = past()
    gone = state.after({}, ["facts.order"], step=5)
    checked = cel.check(cel.parse(f"source({path})"), ENV)
    program = cel.compile(checked)
    answer = program({"state": gone.tree, "action": ACTED, "now": NOW}, Moment(history, gone))
    assert not answer.known
    if path != "state.facts.order":
        held = program({"state": state.tree, "action": ACTED, "now": NOW}, Moment(history, state))
        assert not held.known


@pytest.mark.parametrize(
    ("text", "reads"),
    [
        ("count_calls(state.ledger, action.tool) < 3", {'count_calls("pay")': 2}),
        ("succeeded(state.ledger, 'pay', {'to': action.args.to})", {'succeeded("pay",{"to":"A-77"})': True}),
        ("repeats(state.ledger, action) < 3", {"repeats(action)": 1}),
        ("from_tool(action.args.to, 'look')", {'from_tool("A-77","look")': False}),
        (
            "source(state.facts.order).tool == 'look'",
            {"source(state.facts.order)": {"tool": "look", "args": {"id": "W1"}, "step": 1}},
        ),
    ],
)
def test_a_question_stands_among_the_reads_with_its_answer(text: str, reads: dict[str, Any]) -> None:
    found = ask(text)[1]
    assert {key.replace(", ", ","): value for key, value in found.items() if "(" in key} == {
        key.replace(", ", ","): value for key, value in reads.items()
    }


@pytest.mark.parametrize(
    ("text", "code", "suggestion"),
    [
        ("count_calls(state.ledger, 'pai') > 1", "unknown-tool", "pay"),
        ("from_tool('x', 'lok')", "unknown-tool", "look"),
        ("source(state.facts.order).tool == 'lok'", "unknown-tool", "look"),
        ("sum_args(state.ledger, 'pay', 'amont') > 1.0", "unknown-argument", "amount"),
        ("distinct_args(state.ledger, 'look', 'amount') > 1", "unknown-argument", None),
        ("count_calls(state.ledger, 'pay', {'amont': 1}) > 1", "unknown-argument", "amount"),
        ("count_calls(state.ledger, 'pay', {action.args.to: 1}) > 1", "constant-keys", None),
        ("count_calls(state.ledger, 'pay', source(state.facts.order)) > 1", "constant-keys", None),
        ("count_calls(state.ledger) > 1", "wrong-arguments", None),
        ("count_cals(state.ledger, 'pay') > 1", "unknown-function", "count_calls"),
        ("count_calls(state.facts, 'pay') > 1", "wrong-arguments", None),
        ("source('x').tool == 'look'", "not-a-path", None),
        ("state.ledger == state.ledger", "opaque", None),
    ],
)
def test_mistakes_in_a_question_are_found_at_load(text: str, code: str, suggestion: str | None) -> None:
    problems = cel.check(cel.parse(text), ENV).problems
    assert code in [problem.code for problem in problems], problems
    if suggestion is not None:
        found = [problem for problem in problems if problem.code == code]
        assert suggestion in found[0].suggestions
