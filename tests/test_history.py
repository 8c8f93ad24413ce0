"""The index behind the functions over past steps, against a reference that reads the whole past each time."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledgercli.history import NEVER, History

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
