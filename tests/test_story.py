"""The story of a ledger: its state after every line, its steps, its end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledgercli import paths, story
from ledgercli.errors import LedgerCliError, LedgerFormatError, UnreadableInputError
from ledgercli.ledger import verify
from tests import ledgers


def rollback(to: int, sets: dict[str, Any] | None = None, unsets: tuple[str, ...] = ()) -> dict[str, Any]:
    line: dict[str, Any] = {"kind": "rollback", "at": ledgers.AT, "to": to}
    return line | ({"state_diff": sets} if sets else {}) | ({"state_unset": list(unsets)} if unsets else {})


def test_the_state_follows_every_line(tmp_path: Path) -> None:
    told = [
        (entry.kind, told.tree["step"], told.steps, told.denied, paths.get(told.tree, ("facts", "orders")))
        for entry, told in story.follow(ledgers.write(tmp_path / "w", *ledgers.STORY))
    ]
    assert told == [
        ("open", 0, 0, 0, {}),
        ("step", 1, 1, 0, {"#W1.2": {"status": "new"}}),
        ("intent", 1, 2, 0, {"#W1.2": {"status": "new"}}),
        ("step", 2, 2, 0, {"#W1.2": {"status": "paid"}}),
        ("step", 3, 3, 1, {"#W1.2": {"status": "paid"}}),
        ("step", 4, 4, 1, {"#W1.2": {"status": "paid"}}),
        ("step", 5, 5, 1, {}),
        ("step", 6, 6, 1, {}),
        ("close", 6, 6, 1, {}),
    ]


def test_it_agrees_with_verify(tmp_path: Path) -> None:
    file = ledgers.write(tmp_path / "w", *ledgers.STORY)
    told, report = story.ended(file), verify.verify(file)
    assert report.ok
    assert (told.steps, told.opening["run"], story.status_of(told)) == (report.steps, report.run, report.status)


def test_rollback_and_resume_change_the_state(tmp_path: Path) -> None:
    lines = (
        ledgers.step(1, sets={"facts.x": 1}),
        ledgers.step(2, sets={"facts.y": 2}),
        rollback(0, {"error": "e"}, ("facts.x", "facts.y")),
        {"kind": "resume", "at": ledgers.AT, "files": [], "state_diff": {"constraints.max_steps": 9}},
        ledgers.step(3, sets={"facts.z": 3}),
    )
    told = story.ended(ledgers.write(tmp_path / "w", *lines))
    assert told.tree["facts"] == {"orders": {}, "z": 3}
    assert told.tree["constraints"]["max_steps"] == 9
    assert (told.tree["error"], told.tree["step"], told.steps) == ("e", 3, 3)


def test_a_run_has_ended_only_if_its_last_line_says_so(tmp_path: Path) -> None:
    closed = (ledgers.step(1), ledgers.closing(1))
    recovery = {
        "kind": "recovery",
        "at": ledgers.AT,
        "offset": 1,
        "bytes": 1,
        "moved_to": "x",
        "digest": "sha256:" + "0" * 64,
    }
    assert story.status_of(story.ended(ledgers.write(tmp_path / "a", *closed))) == "completed"
    assert story.status_of(story.ended(ledgers.write(tmp_path / "b", *closed, recovery))) == "completed"
    assert story.status_of(story.ended(ledgers.write(tmp_path / "c", *closed, rollback(1)))) == "unsealed"
    assert story.status_of(story.ended(ledgers.write(tmp_path / "d"))) == "unsealed"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (ledgers.step(1, sets={"facts.a.b": 1}), "its diff does not fit the state"),
        (ledgers.step(1, unsets=("facts.nothing",)), "its diff does not fit the state"),
        (rollback(0, {"facts[": 1}), "its diff does not fit the state"),
        ({"kind": "step"}, "at is missing"),
        (ledgers.step(1) | {"step": "1"}, "step: input should be a valid integer"),
        ({"kind": "x"}, "kind is 'x'; a line's kind is one of"),
    ],
)
def test_a_line_that_does_not_fit_is_named(tmp_path: Path, line: dict[str, Any], said: str) -> None:
    file = ledgers.write(tmp_path / "w", line)
    with pytest.raises(LedgerFormatError, match=rf"w:2: {said}"):
        story.ended(file)


def test_what_is_no_ledger_is_said(tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.touch()
    with pytest.raises(LedgerFormatError, match="not one whole line"):
        story.ended(empty)
    with pytest.raises(UnreadableInputError):
        story.ended(tmp_path / "nowhere")
    with pytest.raises(LedgerFormatError, match="prev"):
        story.ended(ledgers.write(tmp_path / "w", first=ledgers.step(1)))
    with pytest.raises(LedgerFormatError, match="v:1: state: input should be a valid"):
        story.ended(ledgers.write(tmp_path / "v", first=ledgers.opening(state=[])))


def test_a_ledger_has_one_open_and_it_comes_first() -> None:
    told = story.Story()
    with pytest.raises(LedgerFormatError, match="the first line is of kind step, not open"):
        told.see(FIRST | ledgers.step(1) | {"prev": "sha256:" + "0" * 64})
    told.see(FIRST | ledgers.opening())
    with pytest.raises(LedgerFormatError, match="a second open"):
        told.see(FIRST | ledgers.opening())


FIRST = {"seq": 0, "prev": None}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text("ab.\n", max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab", max_size=2), inner, max_size=3),
    max_leaves=6,
)
KEYS = st.sampled_from(["step", "outcome", "state_diff", "state_unset", "state", "status"])


@given(st.sampled_from(["open", "step", "intent", "rollback", "resume", "close", "x"]), st.dictionaries(KEYS, JSON))
def test_no_line_makes_another_exception(kind: str, more: dict[str, Any]) -> None:
    told = story.Story()
    told.see(FIRST | ledgers.opening())
    fitting = {"step": ledgers.step(1), "open": ledgers.opening(), "close": ledgers.closing(1)}.get(kind, {})
    try:
        told.see({"seq": 1, "prev": "sha256:" + "0" * 64, **fitting, **more, "kind": kind})
    except LedgerCliError:
        return
    assert told.opening["run"] == "01K"
