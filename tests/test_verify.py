"""Verifying a ledger: each kind of damage is found, named, and said once; what is not proved is said too."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from ledgercli import records
from ledgercli.errors import LedgerCliError, UnreadableInputError
from ledgercli.ledger import Ledger, entries
from ledgercli.ledger import verify as verify_module
from ledgercli.ledger.verify import CODES, Problem, verify
from ledgercli.records import Proposal, Result, Verdict
from tests import ledgers
from tests.ledgers import (
    AT,
    FORKED,
    LIFE,
    STORY,
    approval,
    checkpoint,
    closing,
    denied,
    intent,
    live,
    opening,
    resume,
    rollback,
    step,
    summary,
    write,
)

LINES = len(STORY) + 1


@pytest.fixture
def good(tmp_path: Path) -> list[bytes]:
    return write(tmp_path / "good", *STORY).read_bytes().splitlines(keepends=True)


def verified(path: Path, damaged: list[bytes], **options: Any) -> list[Problem]:
    path.write_bytes(b"".join(damaged))
    found = verify(path, **options).problems
    assert all(problem.code in CODES for problem in found)
    return list(found)


def rechained(lines: list[bytes]) -> list[bytes]:
    """The lines as somebody who knows the format would forge them: numbers and chain as they should be."""
    forged: list[bytes] = []
    for seq, line in enumerate(lines):
        record = orjson.loads(line) | {"seq": seq}
        record["prev"] = records.digest(forged[-1]) if forged else None
        forged.append(orjson.dumps(record) + b"\n")
    return forged


# Well


def test_a_whole_ledger_has_no_problem_and_what_is_not_proved_is_in_the_report(tmp_path: Path) -> None:
    path = write(tmp_path / "a", *STORY)
    report = verify(path)
    assert report.problems == ()
    assert report.ok
    assert (report.lines, report.steps, report.closed, report.anchored) == (LINES, 6, True, False)
    assert (report.run, report.status) == ("01K", "completed")
    assert report.head is not None
    assert verify(path, anchor=report.head).anchored


def test_a_ledger_goes_on_after_close_by_an_approval(tmp_path: Path) -> None:
    path = write(tmp_path / "a", denied(1, "waiting"), closing(1))
    tied = records.bound({}, {}, {})
    with Ledger.open(path) as ledger:
        ledger.append(records.approval_line(at=AT, step=1, yes=True, by="lei", reason=None, bound=tied))
        verdict = Verdict("require_approval", 1, {}, approval=1)
        ledger.append(
            records.step_line(
                step=2,
                at=AT,
                now=AT,
                action=Proposal("pay", {}, "c1"),
                verdict=verdict,
                outcome="ok",
                result=Result(success=True),
            )
        )
        ledger.append(closing(2))
    assert verify(path).problems == ()


def test_a_ledger_may_hold_every_kind_of_line(tmp_path: Path) -> None:
    report = verify(live(tmp_path / "a"))
    assert report.problems == ()
    assert (report.lines, report.steps, report.status) == (len(LIFE), 6, "completed")
    assert {line["kind"] for line in LIFE} == set(entries.KINDS)


def test_parallel_steps_may_finish_out_of_order(tmp_path: Path) -> None:
    given_up = step(3, "look") | {"outcome": "unknown", "result": None}
    path = write(tmp_path / "a", intent(1), intent(2), given_up, step(2), step(1), closing(3))
    assert verify(path).problems == ()


# A broken chain: every place, every kind


def the_one(found: list[Problem], cause: str) -> Problem:
    """The only problem there is, but for a last line that is no close any more."""
    found = [problem for problem in found if problem.code != "unsealed"]
    assert [(problem.code, problem.cause) for problem in found] == [("chain", cause)], found
    return found[0]


def test_a_changed_byte_is_found_in_every_line_but_the_last(tmp_path: Path, good: list[bytes]) -> None:
    for at in range(LINES - 1):
        damaged = [*good]
        damaged[at] = good[at].replace(b"2026-08-01", b"2026-08-02", 1)
        problem = the_one(verified(tmp_path / "a", damaged), "changed")
        assert problem.message == f"line {at + 2} does not follow line {at + 1}"
        assert f"line {at + 1} was changed" in problem.notes[1]


def test_the_words_are_those_of_the_terminal(tmp_path: Path, good: list[bytes]) -> None:
    damaged = [*good]
    damaged[5] = good[5].replace(b"2026-08-01", b"2026-08-02", 1)
    has, says = records.digest(damaged[5])[:19], records.digest(good[5])[:19]
    assert verified(tmp_path / "a", damaged) == [
        Problem(
            "chain", "line 7 does not follow line 6", 7, cause="changed",
            notes=(f"line 6 has {has}, line 7 says {says}", "line 6 was changed, or lines between were removed; 1 to 5 hold together"),
        )
    ]  # fmt: skip


def test_any_byte_of_any_line_but_the_last_may_change_and_is_found(tmp_path: Path, good: list[bytes]) -> None:
    for at in range(LINES - 1):
        for offset in range(0, len(good[at]), 7):
            damaged = [*good]
            changed = bytearray(good[at])
            changed[offset] ^= 1
            damaged[at] = bytes(changed)
            found = [problem for problem in verified(tmp_path / "a", damaged) if problem.severity == "error"]
            assert found, (at, offset)
            assert {problem.line for problem in found} <= {at, at + 1, at + 2, at + 3}, (at, offset, found)


@pytest.mark.slow
def test_any_byte_of_a_ledger_with_every_kind_of_line_may_change_and_is_found(tmp_path: Path) -> None:
    lines = live(tmp_path / "good").read_bytes().splitlines(keepends=True)
    for at in range(len(lines) - 1):
        for offset in range(at % 5, len(lines[at]), 5):
            changed = bytearray(lines[at])
            changed[offset] ^= 1
            found = verified(tmp_path / "a", [*lines[:at], bytes(changed), *lines[at + 1 :]])
            assert {problem.line for problem in found if problem.severity == "error"} & {at + 1, at + 2}, (at, offset)


def test_a_changed_prev_or_seq_is_blamed_on_its_line(tmp_path: Path, good: list[bytes]) -> None:
    for at in range(1, LINES):
        damaged = [*good]
        where = good[at].rindex(b"sha256:") + 9
        damaged[at] = good[at][:where] + (b"1" if good[at][where : where + 1] == b"0" else b"0") + good[at][where + 1 :]
        problem = the_one(verified(tmp_path / "a", damaged), "changed")
        assert problem.line == at + 1
        assert ("the prev of line" in problem.notes[1]) == (at == LINES - 1)
        assert ("was changed in its prev" in problem.notes[1]) == (at < LINES - 1)
    for at in range(LINES - 1):
        damaged = [*good]
        damaged[at] = good[at].replace(b'"seq":%d' % at, b'"seq":%d' % (at + 3), 1)
        problem = the_one(verified(tmp_path / "a", damaged), "changed")
        assert f"line {at + 1}: seq is {at + 3}, and {at} is next" in problem.notes


def test_removed_lines_are_found_everywhere_and_counted(tmp_path: Path, good: list[bytes]) -> None:
    for first in range(LINES):
        for behind in range(first + 1, LINES):
            problem = the_one(verified(tmp_path / "a", good[:first] + good[behind:]), "removed")
            assert problem.line == first + 1
            if first:
                which = (
                    f"the line with seq {first} was"
                    if behind == first + 1
                    else f"the lines with seq {first} to {behind - 1} were"
                )
                assert problem.notes[1].startswith(f"{which} removed")


def test_two_lines_that_are_swapped_are_found_everywhere(tmp_path: Path, good: list[bytes]) -> None:
    for one in range(LINES):
        for other in range(one + 1, LINES):
            damaged = [*good]
            damaged[one], damaged[other] = good[other], good[one]
            problem = the_one(verified(tmp_path / "a", damaged), "swapped")
            assert problem.message == f"lines {one + 1} and {other + 1} are swapped"


def test_a_line_that_was_moved_is_found_everywhere(tmp_path: Path, good: list[bytes]) -> None:
    for origin in range(LINES):
        for target in range(LINES):
            if abs(origin - target) < 2:
                continue
            damaged = good[:origin] + good[origin + 1 :]
            damaged.insert(target, good[origin])
            problem = the_one(verified(tmp_path / "a", damaged), "moved")
            assert f"line {target + 1} was moved" in problem.message


def test_a_duplicated_line_is_found_everywhere(tmp_path: Path, good: list[bytes]) -> None:
    for origin in range(LINES):
        for target in range(LINES + 1):
            damaged = [*good]
            damaged.insert(target, good[origin])
            problem = the_one(verified(tmp_path / "a", damaged), "duplicated")
            assert "is a copy of line" in problem.message


@pytest.mark.parametrize("forged", [False, True])
def test_an_inserted_line_is_found_everywhere_even_with_a_forged_prev(
    tmp_path: Path, good: list[bytes], forged: bool
) -> None:
    for source in range(1, LINES - 1):
        for target in range(1, LINES):
            record = orjson.loads(good[source]) | {"at": "2026-08-02T12:00:00.000Z"}
            if forged:
                record["prev"] = records.digest(good[target - 1])
            damaged = [*good]
            damaged.insert(target, orjson.dumps(record) + b"\n")
            problem = the_one(verified(tmp_path / "a", damaged), "inserted")
            assert problem.message == f"line {target + 1} was inserted"
            assert problem.notes[0] == f"line {target + 2} follows line {target}"


def test_several_inserted_lines_and_lines_at_the_end_are_found(tmp_path: Path, good: list[bytes]) -> None:
    foreign = rechained([good[0], good[5], good[6]])[1:]
    problem = the_one(verified(tmp_path / "a", [*good[:3], *foreign, *good[3:]]), "inserted")
    assert problem.message == "lines 4 to 5 were inserted"
    late = orjson.dumps(orjson.loads(good[4]) | {"at": "2026-08-02T12:00:00.000Z"}) + b"\n"
    problem = the_one(verified(tmp_path / "a", [*good, late]), "inserted")
    assert problem.message == f"line {LINES + 1} was inserted"
    assert problem.notes == ()


def test_two_breaks_are_two_problems(tmp_path: Path, good: list[bytes]) -> None:
    damaged = [good[0].replace(b"2026-08-01", b"2026-08-02", 1), *good[1:5], *good[6:]]
    first, second = verified(tmp_path / "a", damaged)
    assert (first.cause, second.cause) == ("changed", "removed")
    assert second.notes[1].endswith("removed; 2 to 5 hold together")


def test_a_break_beside_a_damaged_line_is_found_too(tmp_path: Path, good: list[bytes]) -> None:
    damaged, broken = verified(tmp_path / "a", [*good[:2], b"rubbish\n", good[3], *good[5:]])
    assert (damaged.code, damaged.line) == ("bytes", 3)
    assert (broken.cause, broken.line) == ("removed", 5)


# Bytes


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda line: line.replace(b'"kind"', b'"kind" '), "space between values"),
        (lambda line: line[:-1] + b"\r\n", "the line ends in CR LF"),
        (lambda line: b"\xef\xbb\xbf" + line, "a byte-order mark stands before the line"),
        (lambda line: line.replace(b'"at":', b'"at":1,"at":'), 'the key "at" stands here a second time'),
        (lambda line: line.replace(b'"seq":', b'"x":NaN,"seq":'), "NaN is no JSON number"),
        (lambda line: line.replace(b'"seq":', b'"x":18446744073709551616,"seq":'), "the integer 18446744073709551616 has more than 64 bits"),
        (lambda line: line.replace(b"2026", b"\xff026", 1), "byte 0xff is not UTF-8"),
        (lambda line: line.replace(b"2026", b"\\ud800", 1), "a lone surrogate"),
        (lambda line: line.replace(b'"seq":', b'"x":' + b"[" * 100_000 + b"]" * 100_000 + b',"seq":'), "nested deeper than 64 levels"),
        (lambda _: b'{"x":"' + b"y" * (17 << 20) + b'"}\n', "the line is 17,825,801 bytes long; a line has at most 16,777,216"),
        (lambda _: b"\n", "input data is empty"),
    ],
)  # fmt: skip
def test_bytes_that_no_writer_wrote_are_one_problem(
    tmp_path: Path, good: list[bytes], spoil: Callable[[bytes], bytes], message: str, last: bool
) -> None:
    at = LINES - 1 if last else 4
    spoiled = spoil(good[at])
    assert spoiled != good[at]
    found = verified(tmp_path / "a", [*good[:at], spoiled, *good[at + 1 :]])
    assert [problem.code for problem in found] == (["bytes", "unsealed"] if last else ["bytes"])
    assert found[0].message.startswith(message)
    assert found[0].line == at + 1
    assert found[0].column is not None
    if last:
        assert found[1].message == "the last line is damaged, not a close; lines may be missing at the end"
    elif len(spoiled) < 1 << 24:
        assert found[0].notes == ("line 6 names another digest for it: it was changed after it was written",)


def test_a_hostile_file_does_not_make_the_report_large(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"\n" * 100_000)
    problems = verify(path).problems
    assert len(problems) == verify_module.MANY + 2
    assert problems[-1].code == "many"
    path = write(tmp_path / "b", *map(intent, range(1, 3001)), closing(3000))
    assert len(verify(path).problems) == 2 * verify_module.MANY


@pytest.mark.parametrize("content", [b"", b'{"kind":"open"'])
def test_a_file_without_a_line_is_no_ledger(tmp_path: Path, content: bytes) -> None:
    found = verified(tmp_path / "a", [content])
    assert {problem.code for problem in found} == ({"empty", "torn"} if content else {"empty"})


def test_a_file_that_is_not_there_cannot_be_verified(tmp_path: Path) -> None:
    with pytest.raises(UnreadableInputError):
        verify(tmp_path / "none")


# The end


def test_a_missing_close_is_an_error_unless_it_is_allowed(tmp_path: Path, good: list[bytes]) -> None:
    (problem,) = verified(tmp_path / "a", good[:-1])
    assert (problem.code, problem.severity, problem.line) == ("unsealed", "error", LINES - 1)
    assert problem.message == "the last line is a step, not a close; lines may be missing at the end"
    (problem,) = verified(tmp_path / "a", good[:-1], allow_unsealed=True)
    assert problem.severity == "warning"
    assert verify(tmp_path / "a", allow_unsealed=True).ok


def test_a_torn_end_is_a_warning(tmp_path: Path, good: list[bytes]) -> None:
    (problem,) = verified(tmp_path / "a", [*good, b'{"kind"'])
    assert (problem.code, problem.severity, problem.message) == (
        "torn",
        "warning",
        "7 bytes stand behind the last whole line",
    )
    assert verify(tmp_path / "a").ok


def test_a_write_that_was_about_to_run_is_said_to_have_no_outcome(tmp_path: Path) -> None:
    found = verify(write(tmp_path / "a", intent(1))).problems
    assert [(one.code, one.severity) for one in found] == [("unsealed", "error"), ("intent", "warning")]
    assert found[1].message == "step 1 was about to run, and no line says what came of it"
    found = verify(write(tmp_path / "b", intent(1), closing(1))).problems
    assert [(one.code, one.message) for one in found] == [("intent", "step 1 has an intent in line 2 and no outcome")]


# The anchor


def anchor_of(lines: list[bytes]) -> str:
    return records.digest(lines[-1])


def test_a_byte_changed_in_the_last_line_is_found_with_the_anchor(tmp_path: Path, good: list[bytes]) -> None:
    damaged = [*good[:-1], good[-1].replace(b"2026-08-01", b"2026-08-02", 1)]
    assert verified(tmp_path / "a", damaged) == []
    (problem,) = verified(tmp_path / "a", damaged, anchor=anchor_of(good))
    assert problem.code == "anchor"
    assert problem.message == f"the last line has {anchor_of(damaged)[:19]}, the anchor is {anchor_of(good)[:19]}"


def test_a_ledger_cut_and_closed_again_or_wholly_rewritten_is_found_with_the_anchor(
    tmp_path: Path, good: list[bytes]
) -> None:
    cut = rechained([*good[:4], orjson.dumps(orjson.loads(good[-1]) | {"steps": 2, "lines": 5}) + b"\n"])
    rewritten = rechained([good[0].replace(b"Beijing", b"Shanghai"), *good[1:]])
    for forged in (cut, rewritten):
        assert verified(tmp_path / "a", forged) == []
        (problem,) = verified(tmp_path / "a", forged, anchor=anchor_of(good))
        assert problem.code == "anchor"
        assert problem.notes == (
            "no line has it: the last line was changed, or lines were cut off and the end written again, or everything was rewritten",
        )


def test_lines_written_after_the_anchor_are_told_from_a_forgery(tmp_path: Path, good: list[bytes]) -> None:
    (problem,) = verified(tmp_path / "a", good, anchor=anchor_of(good[:-1]))
    assert problem.notes == (f"line {LINES - 1} has it: line {LINES} was written after it was kept",)
    (problem,) = verified(tmp_path / "a", good, anchor=anchor_of(good[:4]))
    assert problem.notes == (f"line 4 has it: lines 5 to {LINES} were written after it was kept",)
    found = verified(tmp_path / "a", [*good[:4], *good[5:-1]], anchor=anchor_of(good))
    assert [(one.code, one.notes) for one in found if one.code == "anchor"] == [("anchor", ("no line has it",))]


@pytest.mark.parametrize("anchor", ["", "sha256:77c1e0aa93d2", "77" * 32, "sha256:" + "G" * 64])
def test_a_short_anchor_is_refused(tmp_path: Path, good: list[bytes], anchor: str) -> None:
    with pytest.raises(LedgerCliError, match="64 digits are needed"):
        verified(tmp_path / "a", good, anchor=anchor)


# What lines say of one another


def look(**changed: Any) -> records.Line:
    return step(1, "look") | changed


RAN: dict[str, Any] = {"effect": "allow", "applied": 0, "reads": {}}
ASKED = RAN | {"effect": "require_approval"}


@pytest.mark.parametrize(
    ("lines", "code", "message", "line"),
    [
        ([look(extra=1), closing(1)], "schema", "unknown key extra", 2),
        ([look(step="1"), closing(1)], "schema", "step: input should be a valid integer", 2),
        ([opening(), closing(0)], "order", "a second open; a ledger has one, in its first line", 2),
        ([closing(0), look()], "order", "a step follows a close; only approval, recovery, resume or rollback may", 3),
        ([step(2), closing(1)], "step", "step 1 has no line, step 2 has one", 3),
        ([look(), look(), closing(1)], "step", "step 1 has a line already", 3),
        ([look(), intent(1), closing(1)], "step", "an intent of step 1, which has a line already", 3),
        ([intent(1), intent(1), step(1), closing(1)], "step", "an intent of step 1, which has a line already", 3),
        ([intent(1, x=1), step(1, x=1.0), closing(1)], "step", "step 1 is another call than its intent in line 2", 3),
        ([look(), closing(2)], "close", "close counts 2 steps, there are 1", 3),
        ([look(result=None), closing(1)], "outcome", "the outcome is ok, and there is no result", 2),
        ([look(outcome="error"), closing(1)], "outcome", "the outcome is error, and the result says the opposite", 2),
        ([denied(1) | {"result": {"success": True}}, closing(1)], "outcome", "the outcome is denied, and there is a result", 2),
        ([denied(1) | {"verdict": RAN}, closing(1)], "outcome", "the outcome is denied, and the verdict allow", 2),
        ([denied(1, "waiting") | {"verdict": RAN}, closing(1)], "outcome", "the outcome is waiting, and the verdict allow", 2),
        ([look(verdict=ASKED), closing(1)], "outcome", "the outcome is ok, and the verdict require_approval", 2),
        ([look(outcome="unknown", result=None, verdict=ASKED), closing(1)], "outcome", "the outcome is unknown, and the verdict require_approval", 2),
        ([look(outcome="cancelled", result=None, verdict=None), closing(1)], "outcome", "the outcome is cancelled, and there is no verdict", 2),
        ([look(verdict=ASKED | {"approval": 9}), closing(1)], "approval", "no unused approval answers step 9", 2),
        ([closing(0), checkpoint(0), closing(0)], "order", "a checkpoint follows a close; only approval, recovery, resume or rollback may", 3),
        ([checkpoint(1), closing(0)], "checkpoint", "the checkpoint counts 1 steps, there are 0", 2),
        ([intent(1), checkpoint(0), step(1), closing(1)], "checkpoint", "the checkpoint counts 0 steps, there are 1", 3),
        ([checkpoint(0, task="x"), closing(0)], "checkpoint", "task in the checkpoint is not what the lines before make", 2),
        ([checkpoint(0, facts={}), closing(0)], "checkpoint", "facts.orders in the checkpoint is not what the lines before make", 2),
        ([checkpoint(0, constraints={"max_steps": 5.0}), closing(0)], "checkpoint", "constraints.max_steps in the checkpoint is not what the lines before make", 2),
        ([step(1, sets={"facts.a": 1}), checkpoint(1), closing(1)], "checkpoint", "facts.a in the checkpoint is not what the lines before make", 3),
        ([look(), summary(1, 2), closing(1)], "summary", "a summary of the steps 1 to 2, which have no lines before it", 3),
        ([look(), summary(2, 1), closing(1)], "summary", "a summary of the steps 2 to 1, which have no lines before it", 3),
        ([look(), summary(1, 1), summary(1, 1), closing(1)], "summary", "the steps from 1 on are summed up already", 4),
        ([look(), closing(1), summary(1, 1), closing(1)], "order", "a summary follows a close; only approval, recovery, resume or rollback may", 4),
        ([look(), rollback(2), closing(1)], "rollback", "a rollback to step 2, which has no line before it", 3),
        ([intent(1), rollback(1), step(1), closing(1)], "rollback", "a rollback to step 1, which has no line before it", 3),
        ([look(), rollback(0, {"facts.no.x": 1}), closing(1)], "diff", "state_diff: facts.no.x cannot be set: facts.no is not there", 3),
        ([look(), rollback(0, {}, ("facts.x",)), closing(1)], "diff", "state_unset: facts.x cannot be removed: facts.x is not there", 3),
        ([rollback(0, {"facts.x": 1}), checkpoint(0), closing(0)], "checkpoint", "facts.x in the checkpoint is not what the lines before make", 3),
        ([resume(**{"constraints.no.x": 1}), closing(0)], "diff", "state_diff: constraints.no.x cannot be set: constraints.no is not there", 2),
        ([resume(**{"constraints.x": 1}), checkpoint(0), closing(0)], "checkpoint", "constraints.x in the checkpoint is not what the lines before make", 3),
        ([denied(1, "waiting"), rollback(0, {"error": None}), approval(1), closing(1)], "approval", "step 1 does not wait for an approval", 4),
        ([denied(1, "waiting"), approval(1), rollback(0, {"error": None}), look(step=2, verdict=ASKED | {"approval": 1}), closing(2)], "approval", "no unused approval answers step 1", 5),
        ([step(1, sets={"status": "halted"}), closing(1)], "close", "the close says completed, the state halted", 3),
        ([step(1, sets={"status": "failed"}), closing(1) | {"status": "limit"}], "close", "the close says limit, the state failed", 3),
        ([step(1, unsets=("status",)), closing(1)], "close", "the close says completed, the state None", 3),
        ([step(1, sets={"facts.no.x": 1}), closing(1)], "diff", "state_diff: facts.no.x cannot be set: facts.no is not there", 2),
        ([step(1, sets={"task.x": 1}), closing(1)], "diff", "state_diff: task.x cannot be set: task is no map", 2),
        ([step(1, sets={'facts["x"]': 1}), closing(1)], "diff", 'state_diff: path facts["x"] at character 6: write .x, not ["x"]', 2),
        ([step(1, unsets=("facts.x",)), closing(1)], "diff", "state_unset: facts.x cannot be removed: facts.x is not there", 2),
        ([step(1, sets={"facts.a": {}, "facts.a.b": 1}), closing(1)], "diff", "facts.a and facts.a.b in one diff: one begins the other", 2),
        ([step(1, sets={"facts.a": 1}), step(2, sets={"facts.b": 1, "facts.a.c": 1}), closing(2)], "diff", "state_diff: facts.a.c cannot be set: facts.a is no map", 3),
    ],
)  # fmt: skip
def test_lines_that_do_not_fit_are_named(
    tmp_path: Path, lines: list[records.Line], code: str, message: str, line: int
) -> None:
    found = verify(write(tmp_path / "a", *lines)).problems
    assert (code, message, line) in [
        (one.code, one.message.split(";")[0] if code == "schema" else one.message, one.line) for one in found
    ]
    assert {one.code for one in found} <= {code, "unsealed"}


def test_an_approval_answers_a_step_that_waits_once_and_as_it_says(tmp_path: Path) -> None:
    yes = look(verdict=ASKED | {"approval": 1}, step=2)
    found = verify(
        write(tmp_path / "a", denied(1, "waiting"), approval(1, yes=True), yes, yes | {"step": 3}, closing(3))
    ).problems
    assert [(one.code, one.message) for one in found] == [("approval", "no unused approval answers step 1")]
    found = verify(write(tmp_path / "b", denied(1, "waiting"), approval(1, yes=False), yes, closing(2))).problems
    assert [(one.code, one.message) for one in found] == [
        ("approval", "the answer on step 1 was no, the verdict says otherwise")
    ]
    found = verify(write(tmp_path / "c", look(), approval(1, yes=True), closing(1))).problems
    assert [(one.code, one.message) for one in found] == [("approval", "step 1 does not wait for an approval")]


def test_a_file_whose_text_was_exchanged_is_found(tmp_path: Path) -> None:
    first, later = opening(), resume()
    first["files"][0]["text"] += "# more\n"
    later["files"][0]["text"] += "# more\n"
    found = verify(write(tmp_path / "a", closing(0), later, closing(0), first=first)).problems
    said = "the text of pack p.yaml does not have the digest beside it"
    assert [(one.code, one.message, one.line) for one in found] == [("file", said, 1), ("file", said, 3)]


def test_a_run_begins_running_unless_it_goes_on_from_another(tmp_path: Path) -> None:
    ended = opening()["state"] | {"status": "completed"}
    (problem,) = verify(write(tmp_path / "a", closing(0), first=opening(state=ended))).problems
    assert (problem.code, problem.message) == ("schema", "state.status is completed; a run begins running")
    lines = checkpoint(0, status="completed"), closing(0)
    assert verify(write(tmp_path / "b", *lines, first=opening(state=ended, **FORKED))).ok


def test_a_run_that_goes_on_from_another_says_first_what_that_one_left(tmp_path: Path) -> None:
    said = "the run goes on from another one, and no checkpoint before its first step tells what that one left"
    for lines in ([look(), look(step=2), closing(2)], [intent(1), step(1), checkpoint(1), closing(1)]):
        path = tmp_path / str(len(lines))
        found = verify(write(path, *lines, first=opening(**FORKED))).problems
        assert [(one.code, one.message, one.line) for one in found] == [("checkpoint", said, 2)]


def test_a_recording_is_completed_and_a_run_may_be_cut_off_whatever_the_state_says(tmp_path: Path) -> None:
    halted = step(1, sets={"status": "halted"})
    recorded = opening(engine={"kind": "recording"})
    assert verify(write(tmp_path / "a", halted, closing(1), first=recorded)).problems == ()
    for status in ("interrupted", "error", "halted"):
        assert verify(write(tmp_path / status, halted, closing(1) | {"status": status})).problems == ()


def test_a_recovery_stands_where_the_torn_end_began(tmp_path: Path) -> None:
    path = write(tmp_path / "a", look())
    size = path.stat().st_size
    with path.open("ab") as file:
        file.write(b"{")
    Ledger.open(path).close()
    lines = path.read_bytes().splitlines(keepends=True)
    (problem, _) = verified(path, rechained([*lines[:-1], lines[-1].replace(b'"offset":%d' % size, b'"offset":7')]))
    assert (problem.code, problem.message) == ("order", f"a recovery at byte 7 stands at byte {size:,}")


def test_what_was_about_to_run_before_a_rollback_may_still_be_open_when_the_ledger_is_closed(tmp_path: Path) -> None:
    path = write(tmp_path / "a", look(), intent(2), rollback(0), closing(2) | {"status": "interrupted"})
    report = verify(path)
    assert [(one.code, one.severity, one.line) for one in report.problems] == [("intent", "warning", 3)]
    with Ledger.open(path) as ledger:
        for line in (resume(), step(2) | {"outcome": "unknown", "result": None}, look(step=3), closing(3)):
            ledger.append(line)
    assert verify(path).problems == ()
    with Ledger.open(path) as ledger:
        for line in (resume(), intent(4), closing(4)):
            ledger.append(line)
    assert [(one.code, one.severity) for one in verify(path).problems] == [("intent", "error")]


def test_steps_are_numbered_on_over_a_rollback(tmp_path: Path) -> None:
    path = write(tmp_path / "a", look(), look(step=2), rollback(1), look(step=2), closing(2))
    assert [one.message for one in verify(path).problems] == ["step 2 has a line already"]


@pytest.mark.slow
def test_every_key_of_every_kind_of_line_is_held_to_its_kind(tmp_path: Path) -> None:
    """Forged with a good chain: a value of another kind, or a key too many, is found in its line."""
    lines = live(tmp_path / "good").read_bytes().splitlines(keepends=True)
    for at, line in enumerate(lines):
        for path in keys_of(orjson.loads(line)):
            if path[-1] in ("seq", "prev"):
                continue  # the forger's own
            for forged in (with_value(line, path, {"\x00": [None]}), with_value(line, (*path[:-1], "surprise"), 1)):
                found = verified(tmp_path / "a", rechained([*lines[:at], forged, *lines[at + 1 :]]))
                assert at + 1 in {one.line for one in found if one.code in ("schema", "order")}, path


def keys_of(record: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """The keys of a line, those of free maps left out."""
    for key, value in record.items() if isinstance(record, dict) else enumerate(record):
        if key in entries.FREE or path[-1:] in (("flags",), ("goals",), ("engine",)):
            continue
        if isinstance(key, str):
            yield (*path, key)
        if isinstance(value, (dict, list)):
            yield from keys_of(value, (*path, key))


def with_value(line: bytes, path: tuple[str | int, ...], value: Any) -> bytes:
    record = within = orjson.loads(line)
    for key in path[:-1]:
        within = within[key]
    within[path[-1]] = value
    return orjson.dumps(record) + b"\n"


def test_numbers_and_counts_that_do_not_fit_are_found_in_a_ledger_with_a_good_chain(
    tmp_path: Path, good: list[bytes]
) -> None:
    records_ = [orjson.loads(line) for line in good]
    records_[-1]["lines"] = 3
    records_[2]["seq"] = 7

    def chained() -> list[bytes]:
        written: list[bytes] = []
        for record in records_:
            record["prev"] = records.digest(written[-1]) if written else None
            written.append(orjson.dumps(record) + b"\n")
        return written

    found = verified(tmp_path / "a", chained())
    assert [(one.code, one.message) for one in found] == [
        ("seq", "seq is 7, and 2 is next"),
        ("seq", "seq is 3, and 8 is next"),
        ("close", f"close counts 3 lines, this is line {LINES}"),
    ]


def test_a_first_line_that_is_no_open_is_named(tmp_path: Path) -> None:
    found = verify(write(tmp_path / "a", closing(1), first=look())).problems
    assert [(one.code, one.message) for one in found] == [("order", "the first line is a step, not an open")]


def test_every_code_is_explained_and_met_in_these_tests() -> None:
    source = Path(__file__).read_text()
    assert all(text.endswith(".") for text in CODES.values())
    assert [code for code in CODES if f'"{code}"' not in source] == []
    assert ledgers.STORY
