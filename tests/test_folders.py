"""Two folders: scenarios paired, trials compared by rates, damage named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ledgercli.diff import folders
from ledgercli.diff.folders import Comparison, compare
from ledgercli.errors import UnreadableInputError
from ledgercli.records import Status
from tests import stories
from tests.stories import call, opening, unique, write

RECORDED = {"kind": "recording", "file": "x.json", "format": "openai-chat"}


def trials(folder: Path, name: str, passed: int, of: int, **more: Any) -> None:
    """Ledgers of one scenario, of which some are completed and the others were denied something."""
    for number in range(of):
        good = number < passed
        status: Status = "completed" if good else "halted"
        rows = [unique(1)] if good else [unique(1), call("pay", rule="no")]
        write(folder / name / f"trial-{number}.ledger.jsonl", rows, status=status, first=opening(name, **more))


def both(folder: Path, a: dict[str, tuple[int, int]], b: dict[str, tuple[int, int]]) -> Comparison:
    for side, scenarios in (("a", a), ("b", b)):
        for name, (passed, of) in scenarios.items():
            trials(folder / side, name, passed, of)
    return compare(str(folder / "a"), str(folder / "b"))


def test_trials_are_compared_by_their_rates(tmp_path: Path) -> None:
    found = both(
        tmp_path, {"up": (1, 5), "down": (5, 5), "same": (1, 2)}, {"up": (5, 5), "down": (2, 4), "same": (2, 4)}
    )
    assert [match.name for match in found.better] == ["up"]
    assert [match.name for match in found.worse] == ["down"]
    assert [match.name for match in found.same] == ["same"]
    assert [(match.passed, len(match.a), len(match.b)) for match in found.matches] == [
        ((5, 2), 5, 4), ((1, 2), 2, 4), ((1, 5), 5, 5),
    ]  # fmt: skip
    assert (found.a.passed, found.b.passed) == (7, 9)
    assert (found.a.denied, found.a.proposals) == (5, 17)
    assert found.a.rules == {"support/no": 5}
    assert found.b.rules == {"support/no": 4}
    assert found.next() == (str(tmp_path / "a/down"), str(tmp_path / "b/down"))


def test_a_scenario_may_be_on_one_side_only(tmp_path: Path) -> None:
    found = both(tmp_path, {"x": (1, 1), "gone": (1, 1)}, {"x": (1, 1), "new": (0, 1)})
    assert [match.name for match in found.only("a")] == ["gone"]
    assert [match.name for match in found.only("b")] == ["new"]
    assert [match.name for match in found.same] == ["x"]
    assert found.fails("any")
    assert not found.fails("worse")


def test_what_makes_it_fail(tmp_path: Path) -> None:
    same = both(tmp_path / "1", {"x": (1, 2)}, {"x": (1, 2)})
    assert not any(same.fails(on) for on in ("any", "worse", "verdicts", "state"))
    worse = both(tmp_path / "2", {"x": (2, 2)}, {"x": (1, 2)})
    assert {on: worse.fails(on) for on in ("any", "worse", "verdicts", "state")} == {
        "any": True, "worse": True, "verdicts": True, "state": False,
    }  # fmt: skip
    better = compare(worse.b.path, worse.a.path)
    assert not better.fails("worse")
    write(tmp_path / "3/a/x.ledger.jsonl", [call("look", sets={"facts.x": 1})])
    write(tmp_path / "3/b/x.ledger.jsonl", [call("look", sets={"facts.x": 2})])
    facts = compare(str(tmp_path / "3/a"), str(tmp_path / "3/b"))
    assert {on: facts.fails(on) for on in ("any", "worse", "verdicts", "state")} == {
        "any": True, "worse": False, "verdicts": False, "state": True,
    }  # fmt: skip


def test_a_folder_is_the_same_as_itself(tmp_path: Path) -> None:
    both(tmp_path, {"x": (1, 2), "y": (0, 1)}, {"x": (1, 1)})
    found = compare(str(tmp_path / "a"), str(tmp_path / "a"))
    assert not found.fails("any")
    assert found.next() is None
    assert len(found.a.runs) == len(found.b.runs) == 3


def test_without_a_scenario_files_of_one_name_belong_together(tmp_path: Path) -> None:
    for side in ("a", "b"):
        for name in ("one", "two"):
            write(tmp_path / side / "x" / f"{name}.ledger.jsonl", [unique(1)], first=opening(None))
    found = compare(str(tmp_path / "a"), str(tmp_path / "b"))
    assert [match.name for match in found.matches] == ["x/one.ledger.jsonl", "x/two.ledger.jsonl"]
    assert not found.fails("any")


def test_transcripts_of_a_recording_are_no_trials(tmp_path: Path) -> None:
    for side, other in (("a", 1), ("b", 2)):
        for name in ("t1", "t2"):
            rows = [unique(1 if name == "t1" else other)]
            write(tmp_path / side / f"{name}.ledger.jsonl", rows, first=opening("airline", engine=RECORDED))
    found = compare(str(tmp_path / "a"), str(tmp_path / "b"))
    assert [match.name for match in found.matches] == ["t1.ledger.jsonl", "t2.ledger.jsonl"]
    assert [match.name for match in found.other_facts] == ["t2.ledger.jsonl"]
    (tmp_path / "b/t2.ledger.jsonl").rename(tmp_path / "b/t3.ledger.jsonl")
    found = compare(str(tmp_path / "a"), str(tmp_path / "b"))
    assert [match.name for match in found.matches] == ["airline"]


def test_of_single_runs_those_that_differ_are_next(tmp_path: Path) -> None:
    found = both(tmp_path, {"x": (1, 1), "y": (1, 1)}, {"x": (0, 1), "y": (1, 1)})
    assert found.next() == (str(tmp_path / "a/x/trial-0.ledger.jsonl"), str(tmp_path / "b/x/trial-0.ledger.jsonl"))


def test_where_all_pass_those_that_differ_otherwise_are_next(tmp_path: Path) -> None:
    for side, rows in (("a", [unique(1)]), ("b", [unique(1), call("pay", rule="no")])):
        write(tmp_path / side / "x.ledger.jsonl", [unique(1)], first=opening("x"))
        write(tmp_path / side / "y.ledger.jsonl", rows, first=opening("y"))
    found = compare(str(tmp_path / "a"), str(tmp_path / "b"))
    assert found.next() == (str(tmp_path / "a/y.ledger.jsonl"), str(tmp_path / "b/y.ledger.jsonl"))


def test_trials_that_lie_among_others_are_named_by_file(tmp_path: Path) -> None:
    for side, passed in (("a", 2), ("b", 1)):
        for number in range(2):
            status: Status = "completed" if number < passed else "failed"
            write(tmp_path / side / f"x-{number}.ledger.jsonl", [unique(1)], status=status, first=opening("x"))
        write(tmp_path / side / "y.ledger.jsonl", [unique(1)], first=opening("y"))
    found = compare(str(tmp_path / "a"), str(tmp_path / "b"))
    assert found.next() == (str(tmp_path / "a/x-0.ledger.jsonl"), str(tmp_path / "b/x-1.ledger.jsonl"))


def test_damaged_ledgers_are_named_and_the_rest_compared(tmp_path: Path) -> None:
    found = both(tmp_path, {"x": (1, 2)}, {"x": (2, 2)})
    broken = tmp_path / "b/x/trial-1.ledger.jsonl"
    broken.write_bytes(broken.read_bytes()[:-5] + b"}\n\n\n")
    (tmp_path / "b/x/empty.ledger.jsonl").touch()
    found = compare(str(tmp_path / "a"), str(tmp_path / "b"))
    assert [file for file, _ in folders.damage((found.a, found.b))] == [
        str(tmp_path / "b/x/empty.ledger.jsonl"), str(broken),
    ]  # fmt: skip
    assert [len(match.b) for match in found.matches] == [1]
    for file in (tmp_path / "b/x").iterdir():
        file.write_bytes(b'{"kind":"open"\n')
    found = compare(str(tmp_path / "a"), str(tmp_path / "b"))
    assert not found.b.runs
    assert len(found.b.damaged) == 3
    assert (found.b.steps, found.b.passed) == (0, 0)


def test_a_folder_without_ledgers_is_an_error(tmp_path: Path) -> None:
    trials(tmp_path / "a", "x", 1, 1)
    (tmp_path / "b").mkdir()
    with pytest.raises(UnreadableInputError, match="no ledgers found"):
        compare(str(tmp_path / "a"), str(tmp_path / "b"))


def test_what_a_user_said_is_no_proposal(tmp_path: Path) -> None:
    said = {**call("user", "hello"), "verdict": None}
    run = folders.run_of(str(write(tmp_path / "a.ledger.jsonl", [said, unique(1)])), "a")
    assert (run.steps, run.proposals) == (2, 1)
    assert stories.STATE["facts"]["orders"] == {}
