"""Verify one ledger: every problem as data, with its line.

Invariants:
* One pass that keeps no lines finds all problems; only a broken chain is looked at a second time (`chain`).
* A chain proves that lines fit together, a `close` that the end is there, and an anchor kept elsewhere that nobody
  rewrote the whole. What is not proved stands in the report (`closed`, `anchored`), never passed over.
* A hostile file cannot make the report large: after `MANY` problems the rest is not looked at, and the report says so.

Deliberately not here: whether verdicts and transitions are right, which is replay's work.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, Final

from ledgercli import records
from ledgercli.errors import LedgerCliError
from ledgercli.ledger import checks, shapes
from ledgercli.ledger.checks import MANY, Problem, Steps
from ledgercli.ledger.linebytes import LineError
from ledgercli.ledger.reading import Entry, RawLine, Torn, parse, scan
from ledgercli.ledger.states import States

__all__ = ["CODES", "Problem", "Report", "verify"]

_OF_ONE_LINE: Final = frozenset(
    (
        "seq", "schema", "order", "step", "outcome", "approval", "diff", "rollback", "checkpoint", "summary", "close",
        "file",
    )
)  # fmt: skip
_ANCHOR: Final = re.compile(r"sha256:[0-9a-f]{64}")

#: Every code with what it means: the text of `validate --explain CODE`.
CODES: Final[dict[str, str]] = {
    "empty": "There is not one whole line.",
    "bytes": "A line is not byte for byte what this program writes: broken JSON, another spelling of the same values "
    "(spaces, escapes, numbers), duplicate keys, something beyond the limits, or bytes that are not UTF-8.",
    "chain": "Every line names the digest of the line before. Here it does not: a line was changed, removed, swapped, "
    "moved, duplicated or inserted after it was written.",
    "seq": "Lines are numbered from 0 without a gap. Here the number does not fit, although the chain does.",
    "schema": "A line lacks a key, or has one that is not known, or a value of the wrong kind: `ledger schema ledger`.",
    "order": "A line of this kind cannot stand here: the first line is `open`, there is one only, behind a `close` a "
    "ledger goes on only with an approval, a recovery, a resume or a rollback, and a recovery stands where the torn "
    "end began.",
    "step": "Steps are numbered from 1 without a gap and have one line each; an intent comes before its step and is "
    "the same call.",
    "intent": "A write was about to run, and no line says what came of it.",
    "outcome": "Outcome, verdict and result of a step do not fit together.",
    "approval": "An approval answers a step that waits, and is used once, by a verdict that agrees with it.",
    "diff": "A state_diff or state_unset does not fit the state that the lines before it make.",
    "rollback": "A rollback leads to the state after a step that has a line before it. Whether its diff makes that "
    "state, `ledger replay` checks.",
    "checkpoint": "A checkpoint tells the number of steps and the state that the lines before it make. A run that goes "
    "on from another has one before its first step.",
    "summary": "A summary tells of steps that have lines before it, and each step is summed up once.",
    "close": "The close line counts other lines or steps than there are, or says that the run ended otherwise than the "
    "state does.",
    "file": "The text of a file in an open or a resume line does not have the digest that stands beside it.",
    "unsealed": "The last line is no `close`: lines may be missing at the end (--allow-unsealed accepts that).",
    "torn": "Bytes stand behind the last whole line: a writer died there, or is still writing.",
    "anchor": "The last line does not have the digest that was kept elsewhere.",
    "many": f"There are more than {MANY:,} problems, and the rest of the file was not looked at.",
}


@dataclass(frozen=True, slots=True)
class Report:
    """What was found.

    Arguments:
        path: the ledger.
        problems: all of them, by line.
        lines: how many whole lines there are.
        steps: how many steps.
        closed: whether the last line is a `close`.
        anchored: whether the last line is the anchor that was given.
        head: the digest of the last line, to be kept elsewhere.
        run: the run's id, as `open` says it.
        status: how the run ended, as the last line says it; None unless that is a `close`.

    """

    path: Path
    problems: tuple[Problem, ...]
    lines: int
    steps: int
    closed: bool
    anchored: bool
    head: str | None
    run: str | None
    status: str | None

    @property
    def ok(self) -> bool:
        """Whether there is no error; there may be warnings."""
        return not any(problem.severity == "error" for problem in self.problems)


def verify(path: Path | str, *, anchor: str | None = None, allow_unsealed: bool = False) -> Report:
    """Check everything about one ledger that can be checked without judging again.

    Arguments:
        path: the ledger.
        anchor: the digest of its last line as it was kept elsewhere, if it was.
        allow_unsealed: whether a missing `close` is only a warning.

    Raises:
        UnreadableInputError: there is no such file, or it cannot be read.

    """
    if anchor is not None and not _ANCHOR.fullmatch(anchor):
        raise LedgerCliError(
            f"{anchor} is no anchor: sha256: and 64 digits are needed", fix="`ledger run -v` prints all of the head"
        )
    return _Pass(Path(path), anchor, allow_unsealed=allow_unsealed).report()


class _Pass:
    """One pass over a ledger; its fields are what the next line is held against."""

    def __init__(self, path: Path, anchor: str | None, *, allow_unsealed: bool) -> None:
        self._path, self._anchor, self._allow_unsealed = path, anchor, allow_unsealed
        self._problems: list[Problem] = []
        self._breaks: list[int] = []  # lines that do not follow the one before
        self._steps, self._states = Steps(), States()
        self._lines, self._seq, self._anchor_line = 0, -1, 0
        self._head: str | None = None
        self._kind: str | None = None  # of the last line, "" if that is not known
        self._run: str | None = None
        self._status: str | None = None

    def report(self) -> Report:
        for raw in scan(self._path):
            if isinstance(raw, Torn):
                self._torn(raw)
            else:
                self._line(raw)
            if len(self._problems) + len(self._breaks) > MANY:
                self._problems.append(Problem("many", "too many problems; not looked at behind this line", raw.line))
                break
        else:
            self._end()
        self._name_breaks()
        return Report(
            path=self._path,
            problems=tuple(sorted(self._problems, key=lambda one: one.line)),
            lines=self._lines,
            steps=self._steps.count,
            closed=self._kind == "close",
            anchored=self._anchor is not None and self._anchor == self._head,
            head=self._head,
            run=self._run,
            status=self._status,
        )

    def _line(self, raw: RawLine) -> None:
        self._lines = raw.line
        try:
            entry = parse(raw)
        except LineError as error:
            self._problems.append(Problem("bytes", error.message, raw.line, error.column))
            self._head = None if raw.data is None else records.digest(raw.data)
            self._seq += 1
            self._kind, self._status = "", None
            self._doubt()
        else:
            self._entry(entry)

    def _entry(self, entry: Entry) -> None:
        record, line = entry.record, entry.line
        self._chain(entry)
        if wrong := self._misplaced(record, line) or (not shapes.fits(record) and _not_a_line(record, line)):
            self._problems += wrong
            self._doubt()
            self._kind, self._status = "", None
            return
        kind = record["kind"]
        if found := self._states.see(record, line) + self._steps.see(record, line):
            self._problems += found
        if kind == "step":
            self._problems += checks.outcome(record, line)
        elif kind == "open":
            self._run = record["run"]
            self._problems += [*checks.opening(record, line), *checks.files(record, line)]
        elif kind == "resume":
            self._problems += checks.files(record, line)
        elif kind == "recovery":
            self._problems += checks.place(record, line, entry.offset)
        self._kind, self._status = kind, record.get("status")

    def _misplaced(self, record: dict[str, Any], line: int) -> list[Problem]:
        """Whether a line of this kind cannot stand here; nothing is said where lines are missing before it."""
        kind = record.get("kind")
        if not isinstance(kind, str) or self._kind == "" or self._breaks[-1:] == [line]:
            return []
        return checks.order(kind, self._kind, line)

    def _chain(self, entry: Entry) -> None:
        record, line = entry.record, entry.line
        seq, last = record.get("seq"), self._problems[-1] if self._problems else None
        after_damage = last is not None and last.code == "bytes" and last.line == line - 1
        if record.get("prev") != self._head:
            if last is not None and after_damage:
                note = f"line {line} names another digest for it: it was changed after it was written"
                self._problems[-1] = replace(last, notes=(*last.notes, note) if self._head else last.notes)
            else:
                self._breaks.append(line)
            self._doubt()
        elif type(seq) is int and seq != self._seq + 1:
            self._problems.append(Problem("seq", f"seq is {seq}, and {self._seq + 1} is next", line))
        self._seq = seq if type(seq) is int else self._seq + 1
        self._head = entry.digest
        if entry.digest == self._anchor:
            self._anchor_line = line

    def _doubt(self) -> None:
        """Lines are missing or changed: what only follows from that is not said."""
        self._steps.uncertain = True
        self._states.forget()

    def _torn(self, torn: Torn) -> None:
        self._problems.append(
            Problem(
                "torn",
                f"{torn.length:,} bytes stand behind the last whole line",
                torn.line,
                notes=("the next writer moves them away and writes a recovery line",),
                severity="warning",
            )
        )

    def _end(self) -> None:
        if not self._lines:
            self._problems.append(Problem("empty", "there is not one whole line", 1))
            return
        if self._kind != "close":
            self._unsealed()
        for step, line in islice(self._steps.unfinished(), MANY):
            message = f"step {step} was about to run, and no line says what came of it"
            self._problems.append(Problem("intent", message, line, severity="warning"))
        if self._anchor is not None and self._anchor != self._head:
            self._not_anchored(self._anchor)

    def _unsealed(self) -> None:
        last = checks.a(self._kind) if self._kind else "damaged"
        severity: checks.Severity = "warning" if self._allow_unsealed else "error"
        self._problems.append(
            Problem(
                "unsealed",
                f"the last line is {last}, not a close; lines may be missing at the end",
                self._lines,
                severity=severity,
            )
        )

    def _not_anchored(self, anchor: str) -> None:
        if self._anchor_line:
            first = self._anchor_line + 1
            which = f"line {first} was" if first == self._lines else f"lines {first} to {self._lines} were"
            note = f"line {self._anchor_line} has it: {which} written after it was kept"
        elif self._breaks:
            note = "no line has it"
        else:
            note = (
                "no line has it: the last line was changed, or lines were cut off and the end written again, or "
                "everything was rewritten"
            )
        message = f"the last line has {_short(self._head)}, the anchor is {_short(anchor)}"
        self._problems.append(Problem("anchor", message, self._lines, notes=(note,)))

    def _name_breaks(self) -> None:
        if not self._breaks:
            return
        from ledgercli.ledger import chain

        misnumbered = {problem.line for problem in self._problems if problem.code == "seq"}
        for damage in chain.diagnose(self._path, self._breaks, misnumbered, self._lines):
            same = [one for one in self._problems if one.line in damage.lines and one.code in _OF_ONE_LINE]
            self._problems = [one for one in self._problems if one not in same]
            notes = (*damage.problem.notes, *(f"line {one.line}: {one.message}" for one in same))
            self._problems.append(replace(damage.problem, notes=notes))


def _short(digest: str | None) -> str:
    return digest[: len("sha256:") + 12] if digest else "no digest"


def _not_a_line(record: dict[str, Any], line: int) -> list[Problem]:
    """What the record of a line lacks, or has that it must not have."""
    from ledgercli.ledger import entries

    return [Problem("schema", said, line) for said in entries.problems(record)]
