"""The index behind the functions over past steps, against a reference that reads the whole past each time."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

from ledgercli import cel
from ledgercli.errors import LedgerFormatError
from ledgercli.functions import LEDGER, Moment, functions
from ledgercli.history import EVERYTHING, NEVER, History, Keeps, NotKeptError, keeps_for
from ledgercli.state import initial

# ---- the reference: plain, slow, and written from policy-language.md alone


def same(one: Any, other: Any) -> bool:
    """Equality of the policy language: 1 and 1.0 are one number, true is none."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return (type(one) in (int, float) and type(other) in (int, float) and one == other) or (
        type(one) is type(other) and bool(one == other)
    )  # fmt: skip


@dataclass
class Reference:
    """The past as a list; every question reads all of it."""

    past: list[tuple[str, dict[str, Any], str, Any, int]] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)

    def calls(
        self, tool: str, args: Mapping[str, Any] | None = None
    ) -> list[tuple[str, dict[str, Any], str, Any, int]]:
        return [
            one
            for one in self.past
            if one[0] == tool and all(name in one[1] and same(one[1][name], args[name]) for name in args or {})
        ]

    def recent_failures(self, tool: str) -> int:
        count = 0
        for one in reversed(self.calls(tool)):
            if one[2] == "ok":
                break
            count += one[2] == "error"
        return count

    def repeats(self, tool: str, args: Mapping[str, Any] | None = None) -> int:
        count = 0
        for one in reversed(self.past):
            if one[0] != tool or (args is not None and not same(one[1], dict(args))):
                break
            count += 1
        return count

    def sum(self, tool: str, arg: str) -> float:
        values = [one[1][arg] for one in self.calls(tool) if one[2] == "ok" and arg in one[1]]
        return float(sum(value for value in values if type(value) in (int, float)))

    def distinct(self, tool: str, arg: str) -> int:
        found: list[Any] = []
        for one in self.calls(tool):
            if one[2] == "ok" and arg in one[1] and not any(same(one[1][arg], other) for other in found):
                found.append(one[1][arg])
        return len(found)


VALUES = st.recursive(
    st.sampled_from([0, 1, 2, 0.0, 1.0, 1.5, True, False, None, "", "1", "a", "北京"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["k", "l"]), inner, max_size=2),
    max_leaves=3,
)
TOOLS = st.sampled_from(["pay", "look"])
ARGS = st.dictionaries(st.sampled_from(["x", "y"]), VALUES, max_size=2)
ENTRIES = st.lists(
    st.one_of(
        st.tuples(TOOLS, ARGS, st.sampled_from(["ok", "ok", "error", "unknown"])),
        st.tuples(TOOLS, st.just(None), st.just("denied")),
    ),
    max_size=14,
)


@settings(max_examples=250, deadline=None)
@given(entries=ENTRIES, questions=st.lists(st.tuples(TOOLS, ARGS), min_size=1, max_size=3), early=st.integers(0, 14))
def test_every_answer_is_that_of_reading_the_whole_past(
    entries: list[tuple[str, Any, str]], questions: list[tuple[str, dict[str, Any]]], early: int
) -> None:
    """Questions come in the middle too: what is kept for them then must stay current."""
    history, reference = History(), Reference()
    for step, (tool, args, outcome) in enumerate(entries, 1):
        if outcome == "denied":
            history.denied(tool)
            reference.refused.append(tool)
        else:
            history.executed(tool, args, outcome, {"n": step}, step=step)
            reference.past.append((tool, args, outcome, {"n": step}, step))
        if step == early:
            compare(history, reference, questions, step)
    compare(history, reference, questions, len(entries))


def compare(history: History, reference: Reference, questions: list[tuple[str, dict[str, Any]]], step: int) -> None:
    for tool, args in questions:
        calls = reference.calls(tool)
        narrow = reference.calls(tool, args)
        assert history.count_calls(tool) == len(calls)
        assert history.count_calls(tool, args) == len(narrow)
        assert history.succeeded(tool) == any(one[2] == "ok" for one in calls)
        assert history.succeeded(tool, args) == any(one[2] == "ok" for one in narrow)
        assert history.count_failures(tool) == sum(one[2] == "error" for one in calls)
        assert history.count_recent_failures(tool) == reference.recent_failures(tool)
        assert history.count_denied(tool) == reference.refused.count(tool)
        assert history.repeats(tool) == reference.repeats(tool)
        assert history.repeats_of_call(tool, args) == reference.repeats(tool, args)
        assert history.last(tool) == ((calls[-1][1], calls[-1][3]) if calls else None)
        assert history.steps_since(tool, step + 1) == (step + 1 - calls[-1][4] if calls else NEVER)
        for arg in ("x", "y"):
            assert history.sum_args(tool, arg) == pytest.approx(reference.sum(tool, arg))
            assert history.distinct_args(tool, arg) == reference.distinct(tool, arg)


# ---- values are told apart as the policy language does


@pytest.mark.parametrize(
    ("earlier", "asked", "alike"),
    [
        (1, 1.0, True),
        (1, True, False),
        (1.0, True, False),
        (0.0, False, False),
        (True, True, True),
        ("1", 1, False),
        ([1, 2], [1.0, 2], True),
        ([1, 2], [2, 1], False),
        ([1], [True], False),
        ([], {}, False),
        ({"a": 1, "b": {"c": 1}}, {"b": {"c": 1.0}, "a": 1}, True),
        ({"a": {"b": True}}, {"a": {"b": 1}}, False),
        (None, None, True),
        (None, 0, False),
    ],
)
def test_arguments_are_the_same_by_the_equality_of_the_policy_language(earlier: Any, asked: Any, alike: bool) -> None:
    history = History()
    history.executed("pay", {"x": earlier}, "ok", None, step=1)
    history.answered("pay", {"x": earlier}, yes=True)
    assert history.count_calls("pay", {"x": asked}) == alike
    assert history.succeeded("pay", {"x": asked}) == alike
    assert history.repeats_of_call("pay", {"x": asked}) == alike
    assert history.confirmed("pay", {"x": asked}) == alike
    history.executed("pay", {"x": asked}, "ok", None, step=2)
    assert history.distinct_args("pay", "x") == (1 if alike else 2)


def test_a_sum_takes_numbers_of_successful_calls_only() -> None:
    history = History()
    for step, (amount, outcome) in enumerate(
        [(5, "ok"), (2.5, "ok"), (100, "error"), (7, "unknown"), ("9", "ok"), (True, "ok")]
    ):
        history.executed("pay", {"amount": amount}, outcome, None, step=step)
    assert history.sum_args("pay", "amount") == 7.5
    assert isinstance(history.sum_args("pay", "amount"), float)
    assert history.sum_args("pay", "other") == 0.0
    assert history.sum_args("look", "amount") == 0.0


def test_an_unknown_outcome_is_an_execution_but_neither_success_nor_failure() -> None:
    history = History()
    history.executed("pay", {}, "error", "no", step=1)
    history.executed("pay", {}, "unknown", None, step=2)
    assert (history.count_calls("pay"), history.count_failures("pay"), history.count_recent_failures("pay")) == (
        2,
        1,
        1,
    )
    assert not history.succeeded("pay")
    assert history.last("pay") == ({}, None)
    assert history.steps_since("pay", 5) == 3


# ---- confirmations


def test_a_yes_holds_for_exactly_that_call_until_it_has_run() -> None:
    history = History()
    assert not history.confirmed("pay", {"x": 1})
    history.answered("pay", {"x": 1}, yes=True)
    assert history.confirmed("pay", {"x": 1})
    assert not history.confirmed("pay", {"x": 2})
    assert not history.confirmed("look", {"x": 1})
    assert not history.confirmed("pay", {"x": 1, "y": 2})
    history.executed("pay", {"x": 2}, "ok", None, step=1)
    assert history.confirmed("pay", {"x": 1})
    history.executed("pay", {"x": 1}, "error", None, step=2)
    assert not history.confirmed("pay", {"x": 1})


def test_the_last_answer_counts() -> None:
    history = History()
    history.answered("pay", {"x": 1}, yes=True)
    history.answered("pay", {"x": 1}, yes=False)
    assert not history.confirmed("pay", {"x": 1})
    history.answered("pay", {"x": 1.0}, yes=True)
    assert history.confirmed("pay", {"x": 1})


# ---- grounding


@pytest.mark.parametrize(
    ("said", "value", "stands"),
    [
        ("Please cancel order #W2378156 today", "#W2378156", True),
        ("Please cancel order #W2378156 today", "W2378156", True),
        ("Please cancel order #W2378156 today", "#w2378156", True),
        ("Please cancel order #W2378156 today", "#W237815", False),
        ("Please cancel order #W2378156 today", "2378156", False),
        ("Please cancel order #W2378156 today", "cancel order", True),
        ("Please cancel order #W2378156 today", "cancel  order", False),
        ("mia_li_3668 is my id", "mia_li_3668", True),
        ("mia_li_3668 is my id", "mia_li", False),
        ("mia_li_3668 is my id", "MIA_LI_3668", True),
        ("my mail is a.b-c+d@example.com.", "a.b-c+d@example.com", True),
        ("my mail is a.b-c+d@example.com.", "example.com", True),
        ("my mail is a.b-c+d@example.com.", "xample.com", False),
        ("pay 120 to A-77", 120, True),
        ("pay 120 to A-77", 120.0, True),
        ("pay 120 to A-77", 12, False),
        ("pay 120 to A-77", "120", True),
        ("pay 120 to A-77", "A-77", True),
        ("pay 120 to A-77", "A-7", False),
        ("it costs 1,299.50 in all", 1299.5, True),
        ("it costs 1,299.50 in all", 1299, False),
        ("it costs 1,299.50 in all", 299.5, False),
        ("minus -5 degrees", -5, True),
        ("version 1.2.3", 1.2, False),
        ("我要去北京", "北京", True),
        ("我要去北京", "南京", False),
        ("请退款120元到 A-77", 120, True),
        ("请退款120元到 A-77", 20, False),
        ("订单W1号", "W1", True),
        ("订单W12号", "W1", False),
        ("rooms 1,2,3", 2, True),
        ("rooms 1,2,3", 123, False),
        ("account 9007199254740993", 9007199254740993, True),
        ("account 9007199254740993", 9007199254740992, False),
        ("我要去 北京 。", "北京", True),
        ("北京", "北京", True),
        ("Straße 5", "STRASSE 5", True),
        ("true story", True, False),
        ("nothing null here", None, False),
        ("anything", "", False),
        ("anything", "   ", False),
        ("anything", [], False),
        ("anything", {}, False),
        ("a ... b", "...", True),
        ("a .. b", "...", False),
        ("from JFK to LAX", ["JFK", "LAX"], True),
        ("from JFK to LAX", ["JFK", "SFO"], False),
        ("from JFK to LAX", {"from": "JFK", "to": {"code": "lax"}}, True),
        ("from JFK to LAX", {"from": "JFK", "to": None}, False),
        ("from JFK to LAX", ["JFK", []], False),
        ("the code is ab-12 or ab-123", "ab-123", True),
        ("say ho ho ho now", "ho ho now", True),
    ],
)
def test_a_value_is_grounded_where_it_stands_as_whole_tokens(said: str, value: Any, stands: bool) -> None:
    history = History(said)
    assert history.from_task(value) is stands
    assert not history.from_user(value)
    history.said(said)
    assert history.from_user(value) is stands
    assert not history.from_tool(value, "look")
    history.executed("look", {}, "ok", {"text": [said]}, step=1)
    assert history.from_tool(value, "look") is stands


def test_results_ground_numbers_ids_and_leaves_of_lists_but_not_their_keys() -> None:
    history = History()
    history.executed("look", {}, "ok", {"orders": [{"id": "#W1", "total": 98.7, "paid": True, "note": None}]}, step=1)
    assert history.from_tool("#W1", "look")
    assert history.from_tool(98.7, "look")
    assert history.from_tool("98.7", "look")
    assert not history.from_tool("orders", "look")
    assert not history.from_tool("true", "look")
    assert not history.from_tool("#W1", "pay")


def test_what_comes_after_a_question_is_found_too() -> None:
    history = History()
    assert not history.from_user("#W1")
    history.said("it is #W1")
    assert history.from_user("#W1")
    history.executed("look", {}, "error", "#W2", step=1)
    assert not history.from_tool("#W2", "look")
    history.executed("look", {}, "ok", "#W2", step=2)
    assert history.from_tool("#W2", "look")


def test_what_was_said_is_taken_apart_once() -> None:
    history = History()
    history.said({"id": "#W1", "total": 5})
    assert [history.from_user(one) for one in ("#W1", 5, "#W2")] == [True, True, False]
    assert sorted(history._user.texts) == ["#w1", "5"]


@settings(max_examples=200, deadline=None)
@given(
    words=st.lists(st.text("aB1#-_. ü京", min_size=1, max_size=5), min_size=1, max_size=4),
    start=st.integers(0, 20),
    length=st.integers(1, 8),
)
def test_whole_tokens_are_found_as_by_looking_at_every_place(words: list[str], start: int, length: int) -> None:
    said = " ".join(words)
    value = said[start : start + length].strip()
    if not value or re.fullmatch(r"\W+", value):
        return

    def word(character: str) -> bool:
        return character != "京" and (character == "_" or character.isalnum())

    low, wanted = said.casefold(), value.casefold()
    stands = any(
        low.startswith(wanted, place)
        and not (place and word(low[place - 1]) and word(wanted[0]))
        and not (place + len(wanted) < len(low) and word(low[place + len(wanted)]) and word(wanted[-1]))
        for place in range(len(low))
    )
    assert History(said).from_task(value) == stands


# ---- a checkpoint: what is written and read again answers as what went on

Entry = tuple[str, Any, Any, Any]  # kind, tool, args, and what else the kind has
SAID = st.sampled_from(["it is #W1", "5 of 7.50", 7, 1e22, True, "京", {"k": ["a", 1.0]}, "1,299"])
ENTRY: st.SearchStrategy[Entry] = st.one_of(
    st.tuples(st.just("executed"), TOOLS, ARGS, st.tuples(st.sampled_from(["ok", "ok", "error", "unknown"]), SAID)),
    st.tuples(st.just("denied"), TOOLS, st.none(), st.none()),
    st.tuples(st.just("answered"), TOOLS, ARGS, st.booleans()),
    st.tuples(st.just("said"), st.none(), st.none(), SAID),
)

#: Each question by its name, as a function of the history, a tool and arguments.
QUESTIONS: dict[str, Callable[[History, str, dict[str, Any]], Any]] = {
    "count_calls": lambda h, tool, args: [h.count_calls(tool), h.count_calls(tool, args)],
    "succeeded": lambda h, tool, args: [h.succeeded(tool), h.succeeded(tool, args)],
    "count_failures": lambda h, tool, args: h.count_failures(tool),
    "count_recent_failures": lambda h, tool, args: h.count_recent_failures(tool),
    "count_denied": lambda h, tool, args: h.count_denied(tool),
    "denials_in_a_row": lambda h, tool, args: h.denials_in_a_row,
    "repeats": lambda h, tool, args: h.repeats(tool),
    "repeats_of_call": lambda h, tool, args: h.repeats_of_call(tool, args),
    "last": lambda h, tool, args: h.last(tool),
    "steps_since": lambda h, tool, args: h.steps_since(tool, 1000),
    "sum_args": lambda h, tool, args: [h.sum_args(tool, "x"), h.sum_args(tool, "y")],
    "distinct_args": lambda h, tool, args: [h.distinct_args(tool, "x"), h.distinct_args(tool, "y")],
    "confirmed": lambda h, tool, args: h.confirmed(tool, args),
    "from_task": lambda h, tool, args: [h.from_task("#W1"), h.from_task(args)],
    "from_user": lambda h, tool, args: [h.from_user(one) for one in ("#W1", 7.5, 1e22, 1299, "京", args)],
    "from_tool": lambda h, tool, args: [h.from_tool(one, tool) for one in ("#W1", 7.5, 1e22, 1299, "京", args)],
}
NEEDS = {"count_calls": "calls", "succeeded": "calls", "sum_args": "calls", "distinct_args": "calls",
         "from_user": "user", "from_tool": "results"}  # fmt: skip
NO_QUESTIONS = {"executed", "denied", "said", "answered", "to_json", "from_json", "copy"}
ASKED = st.lists(st.tuples(TOOLS, ARGS), min_size=1, max_size=3)
KEEPS = st.builds(Keeps, calls=st.booleans(), user=st.booleans(), results=st.booleans())


def enter(history: History, entry: Entry, step: int) -> None:
    kind, tool, args, more = entry
    if kind == "executed":
        history.executed(tool, args, more[0], more[1], step=step)
    elif kind == "denied":
        history.denied(tool)
    elif kind == "answered":
        history.answered(tool, args, yes=more)
    else:
        history.said(more)


def fresh(entries: Iterable[Entry], keeps: Keeps = EVERYTHING) -> History:
    history = History("Pay 5 for #W1", keeps=keeps)
    for step, entry in enumerate(entries, 1):
        enter(history, entry, step)
    return history


def dumped(history: History) -> bytes:
    return orjson.dumps(history.to_json())


def loaded(history: History, keeps: Keeps = EVERYTHING) -> History:
    return History.from_json(orjson.loads(dumped(history)), keeps=keeps)


def answers(history: History, asked: Iterable[tuple[str, dict[str, Any]]]) -> bytes:
    """Every answer, as bytes: 1, 1.0 and true are three."""
    return orjson.dumps([[question(history, *one) for question in QUESTIONS.values()] for one in asked])


def test_every_question_is_compared_here() -> None:
    public = {name for name in vars(History) if not name.startswith("_")}
    assert public - NO_QUESTIONS == set(QUESTIONS)


@settings(max_examples=250, deadline=None)
@given(
    entries=st.lists(ENTRY, max_size=14),
    between=st.lists(st.sampled_from(["", "ask", "load", "ask load", "load ask", "copy", "ask copy"]), max_size=14),
    asked=ASKED,
)
def test_a_history_that_was_written_and_read_again_goes_on_as_if_it_had_not_been(
    entries: list[Entry], between: list[str], asked: list[tuple[str, dict[str, Any]]]
) -> None:
    history = History("Pay 5 for #W1")
    for step, (entry, doing) in enumerate(
        zip(entries, itertools.chain(between, itertools.repeat("")), strict=False), 1
    ):
        enter(history, entry, step)
        for what in doing.split():
            if what == "ask":
                assert answers(history, asked) == answers(fresh(entries[:step]), asked)
            else:
                history = loaded(history) if what == "load" else history.copy()
    unbroken = fresh(entries)
    assert dumped(history) == dumped(unbroken)
    assert answers(history, asked) == answers(unbroken, asked)
    assert dumped(history) == dumped(fresh(entries)), "a question left something behind"


@settings(max_examples=150, deadline=None)
@given(entries=st.lists(ENTRY, max_size=10), more=st.lists(ENTRY, min_size=1, max_size=4), asked=ASKED)
def test_a_copy_and_what_it_was_made_from_go_separate_ways(
    entries: list[Entry], more: list[Entry], asked: list[tuple[str, dict[str, Any]]]
) -> None:
    history = fresh(entries)
    answers(history, asked)
    other = history.copy()
    for step, entry in enumerate(more, len(entries) + 1):
        enter(other, entry, step)
    assert dumped(history) == dumped(fresh(entries))
    assert answers(history, asked) == answers(fresh(entries), asked)
    enter(history, ("executed", "pay", {"x": 1}, ("ok", 1)), 90)
    assert answers(other, asked) == answers(fresh([*entries, *more]), asked)


@pytest.mark.parametrize("said", [None, [], {}, {"task": 1}, "x"])
def test_what_is_no_history_is_refused(said: Any) -> None:
    with pytest.raises(LedgerFormatError, match="this is no history"):
        History.from_json(said)


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"tools": {"pay": {"calls": "1"}}}, "calls"),
        ({"tools": {"pay": {"cals": 1}}}, "cals"),
        ({"row": ["pay", 1]}, "row"),
        ({"confirmed": [["pay", 1]]}, "confirmed"),
        ({"calls": [["pay", {}, 1]]}, "calls"),
        ({"more": 1}, "more"),
    ],
)
def test_a_wrong_part_of_a_written_history_is_named(change: dict[str, Any], where: str) -> None:
    with pytest.raises(LedgerFormatError, match=where):
        History.from_json({**fresh([]).to_json(), **change})


def test_denials_in_a_row_end_with_a_call_that_runs_and_not_with_what_a_user_says() -> None:
    history = History()
    entries: list[Entry] = [
        ("denied", "pay", None, None),
        ("denied", "look", None, None),
        ("said", None, None, "please"),
        ("answered", "pay", {}, True),
        ("denied", "pay", None, None),
        ("executed", "look", {}, ("unknown", None)),
        ("denied", "pay", None, None),
    ]
    counts = []
    for step, entry in enumerate(entries):
        enter(history, entry, step)
        counts.append(history.denials_in_a_row)
    assert counts == [1, 2, 2, 2, 3, 0, 1]


# ---- what nobody can ask is not kept


@settings(max_examples=200, deadline=None)
@given(entries=st.lists(ENTRY, max_size=12), keeps=KEEPS, asked=ASKED)
def test_less_kept_answers_the_same_or_raises(
    entries: list[Entry], keeps: Keeps, asked: list[tuple[str, dict[str, Any]]]
) -> None:
    lean, full = fresh(entries, keeps), fresh(entries)
    for name, question in QUESTIONS.items():
        for tool, args in asked:
            if getattr(keeps, NEEDS.get(name, ""), True) or (
                NEEDS[name] == "calls" and not args and "args" not in name
            ):
                assert orjson.dumps(question(lean, tool, args)) == orjson.dumps(question(full, tool, args))
            else:
                with pytest.raises(NotKeptError, match=NEEDS[name]):
                    question(lean, tool, args)
    assert dumped(lean) == dumped(loaded(full, keeps)) == dumped(loaded(lean, keeps)) == dumped(lean.copy())


@pytest.mark.parametrize("what", ["calls", "user", "results"])
def test_what_was_not_kept_cannot_be_kept_from_a_checkpoint_on(what: str) -> None:
    lean = fresh([("executed", "pay", {"x": 1}, ("ok", "#W1"))], Keeps(**{what: False}))
    assert what not in lean.to_json()
    with pytest.raises(NotKeptError, match=f"does not keep {what}"):
        loaded(lean)


NOTHING = Keeps(calls=False, user=False, results=False)
ENV = cel.Env(
    {
        "state": cel.RecordType("state", {"ledger": cel.Field(LEDGER)}),
        "action": cel.RecordType(
            "action",
            {"tool": cel.Field(cel.STRING), "args": cel.Field(cel.RecordType("args", {"x": cel.Field(cel.STRING)}))},
        ),
    },
    functions=functions({"pay": ("x", "y"), "look": ("id",), "odd (one), too": ("x",)}),
)


def ask(text: str, history: History) -> Any:
    checked = cel.check(cel.parse(text), ENV)
    assert not checked.problems, checked.problems
    roots = {"state": initial().tree, "action": {"tool": "pay", "args": {"x": "a"}}}
    return cel.compile(checked)(roots, Moment(history, initial())).value


#: Questions, with what must be kept for them.
ASKING = [
    ("count_calls(state.ledger, 'pay') < 3", ""),
    ('count_calls(state.ledger, "pay") < 3', ""),
    ("count_calls( state.ledger,'pay' ) < 3 && succeeded(state.ledger, \"look\")", ""),
    ("count_calls(state.ledger, action.tool) < 3", ""),
    ("count_calls(state.ledger, 'odd (one), too') < 3", ""),
    ("count_failures(state.ledger, 'pay') < 3 && repeats(state.ledger, action) < 3", ""),
    ("count_recent_failures(state.ledger, action.tool) < 3 && count_denied(state.ledger, 'pay') < 3", ""),
    ("steps_since(state.ledger, 'pay') < 3 || confirmed(state.ledger, action)", ""),
    ("last_args(state.ledger, 'pay') == last_result(state.ledger, 'pay')", ""),
    ("from_task(action.args.x)", ""),
    ("count_calls(state.ledger, 'pay', {'x': 'a'}) < 3", "calls"),
    ("count_calls(state.ledger, 'odd (one), too', {'x': 'a'}) < 3", "calls"),
    ("count_calls(state.ledger, 'pay', action.args) < 3", "calls"),
    ("!succeeded(state.ledger, 'look') && succeeded(state.ledger, 'pay', action.args)", "calls"),
    ("succeeded (state.ledger, action.tool, action.args)", "calls"),
    ("succeeded // has it?\n(state.ledger, 'pay', action.args)", "calls"),
    ("count_calls(state.ledger, true ? 'pay' : 'look', action.args) < 3", "calls"),
    ("sum_args(state.ledger, 'pay', 'x') < 3.0", "calls"),
    ("distinct_args(state.ledger, 'pay', 'x') < 3", "calls"),
    ("from_user(action.args.x)", "user"),
    ("from_tool(action.args.x, 'look')", "results"),
    (
        "size([from_user('a'), from_tool('a', 'pay'), succeeded(state.ledger, 'pay', {'x': 'a'})]) == 3",
        "calls user results",
    ),
]


def kept_names(keeps: Keeps) -> str:
    return " ".join(name for name in ("calls", "user", "results") if getattr(keeps, name))


@pytest.mark.parametrize(("text", "needed"), ASKING)
def test_what_is_kept_is_what_a_text_asks_for(text: str, needed: str) -> None:
    """And without it the question raises through the policy language too: it is no answer, and no `cannot tell`."""
    assert kept_names(keeps_for(["pack: p", text])) == needed
    entries: list[Entry] = [("executed", "pay", {"x": "a", "y": 1}, ("ok", "a")), ("said", None, None, "b")]
    assert ask(text, fresh(entries, keeps_for([text]))) == ask(text, fresh(entries))
    for name in needed.split():
        with pytest.raises(NotKeptError):
            ask(text, fresh(entries, Keeps(**{name: False})))


def escaped(text: str) -> str:
    """In double quotes, every character as a code that YAML reads back."""
    return '"' + "".join(f"\\u{ord(character):04x}" for character in text) + '"'


def broken(text: str) -> str:
    """In double quotes, broken in the middle of a name; YAML joins it again."""
    quoted = text.replace('"', '\\"').replace("\n", "\\n")
    place = next((found.end() - 2 for found in re.finditer(r"[a-z]{5}", quoted)), 0)
    return f'"{quoted[:place]}\\\n    {quoted[place:]}"'


STYLES: dict[str, Callable[[str], str]] = {
    "block": lambda text: "|\n" + "".join(f"    {line}\n" for line in text.splitlines()),
    "single": lambda text: "'" + text.replace("'", "''").replace("\n", "\n\n    ") + "'",
    "double": lambda text: '"\\n' + text.replace('"', '\\"').replace("\n", "\\n") + '"',
    "tabs": lambda text: '"\\t' + text.replace('"', '\\"').replace("\n", "\\n").replace(" ", "\\t") + '"',
    "escaped": escaped,
    "broken": broken,
}


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize(("text", "needed"), ASKING)
def test_however_yaml_writes_a_question_what_it_needs_is_kept(text: str, needed: str, style: str) -> None:
    """More may be kept, never less."""
    document = f"rules:\n- check: {STYLES[style](text)}\n"
    read = YAML(typ="safe").load(document)["rules"][0]["check"]
    if style != "tabs":  # which stand in its texts too
        assert read.strip() == text
    keeps = keeps_for([document])
    assert set(needed.split()) <= set(kept_names(keeps).split())
    if style in ("block", "single", "double"):
        assert kept_names(keeps) == needed


@pytest.mark.parametrize(
    ("text", "needed"),
    [
        ("description: It succeeded. What succeeded? Nothing has succeeded", ""),
        ("count_calls of pay, and so on", ""),
        ("check: succeeded(l, 'pay')", "calls"),
        ("check: count_calls(state.ledger, 'a' + 'b')", "calls"),
        ('check: count_calls(state.ledger, """pay""")', "calls"),
        ("check: count_calls(state.ledger, 'pay'", "calls"),
        ("args: {from_user_id: {type: string}}", "user"),
        (r"check: action.args.x.matches('\x41')", "calls user results"),
        (r"check: action.args.x.matches('\\d')", ""),
        ("", ""),
    ],
)
def test_in_doubt_it_is_kept(text: str, needed: str) -> None:
    assert kept_names(keeps_for([text])) == needed


def test_the_texts_of_all_files_count() -> None:
    assert keeps_for([]) == NOTHING
    assert keeps_for(["a: from_tool(x, 'y')", "b: from_user(x)", "c: 1"]) == Keeps(calls=False)
    assert keeps_for(iter(["from_tool", "from_user", "sum_args"])) == EVERYTHING


@pytest.mark.parametrize(("pack", "needed"), [("goodwill", ""), ("airline", "calls user")])
def test_packs_that_ship_keep_what_they_ask_for(pack: str, needed: str) -> None:
    folder = Path(__file__).resolve().parent.parent / "policies"
    assert kept_names(keeps_for([(folder / f"{pack}.yaml").read_text(encoding="utf-8")])) == needed
