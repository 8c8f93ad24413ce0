"""Judges a recorded run again: recorded proposals and results through the enforcer and the updater, line by line.

Every line is made once more by the code that a run goes through (`Books`) and held against the bytes that stand there.

Invariants:
* Nothing is run and nothing is written: proposals, results and times are the recorded ones, rules and tools those that
  the ledger carries.
* The first line that comes out otherwise is the divergence; what is behind it was not compared.
* Where a value is masked, what depends on it cannot be told; the recorded line is taken then, and the step is counted.

Deliberately not here: bytes and chain (`ledger.verify`), and other rules (`whatif`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import orjson

from ledgercli import cel, ledger, paths
from ledgercli.books import Books
from ledgercli.decision import ENGINES
from ledgercli.errors import (
    InvalidDocumentError,
    LedgerCliError,
    LedgerFormatError,
    ProposalError,
    UnreadableInputError,
)
from ledgercli.history import EVERYTHING, Keeps
from ledgercli.intake import is_unkept
from ledgercli.ledger import Entry
from ledgercli.past import UNFIT, Follower, overtaken
from ledgercli.records import Line, Proposal, Result, Verdict
from ledgercli.redaction import holds_mask
from ledgercli.replay.asking import asking_faults
from ledgercli.replay.endings import (
    Fault,
    Last,
    as_written,
    closing_faults,
    file_faults,
    files_written,
    opening_faults,
    recovery_faults,
    resuming_faults,
)
from ledgercli.shelf import Shelf

_JUDGED: Final = ("step", "intent")
_ENDS: Final = ("close", "recovery")
_NUMBERS: Final = ("seq", "prev")  # what the ledger itself adds to a line
_MASKS: Final = (b'"redacted":"hmac-sha256:', b"[redacted ")

#: The parts of a step, in the order in which they come about; what differs first is named.
LAYERS: Final[Mapping[str, tuple[str, ...]]] = {
    "proposal": ("step", "now", "action"),
    "verdict": ("verdict",),
    "result": ("kind", "outcome", "result"),
    "state": ("state_diff", "state_unset", "problems"),
}


@dataclass(frozen=True, slots=True)
class Divergence:
    """The first line that comes out otherwise.

    Arguments:
        line: its number, from 1.
        step: its step, if it is one of a step.
        layer: `proposal`, `verdict`, `result` or `state` of a step; else the kind of line, and what part of it.
        recorded: what the line says.
        replayed: what it should say.
        reads: of a verdict, what the replayed one read.
        same: how many steps before it came out the same.

    """

    line: int
    step: int | None
    layer: str
    recorded: Any
    replayed: Any
    reads: Mapping[str, Any] = field(default_factory=dict)
    same: int = 0


@dataclass(frozen=True, slots=True)
class Replayed:
    """What came of a replay.

    Arguments:
        path: the ledger.
        steps: how many steps it has.
        divergence: the first difference; None: there is none.
        untold: steps of which redaction hides too much to tell.

    """

    path: str
    steps: int
    divergence: Divergence | None = None
    untold: tuple[int, ...] = ()


def replay(path: Path | str, shelf: Shelf) -> Replayed:
    """Judge a run again, by what its ledger carries.

    Raises:
        UnreadableInputError: there is no such file.
        LedgerFormatError: a line is damaged, does not follow the one before or does not fit.
        InvalidDocumentError: what the ledger carries does not load.

    """
    return _Replay(path, shelf).done()


class _Replay:
    """One ledger, judged again."""

    def __init__(self, path: Path | str, shelf: Shelf) -> None:
        self._path, self._shelf = str(path), shelf
        self._follower = Follower(path, shelf, lambda _opening: EVERYTHING if _is_wide(path) else None)
        self._overtaken = overtaken(path)
        self._last = Last()
        self._masked = False
        self._verdict = Verdict("allow")  # of the call that was judged last
        self._untold: list[int] = []

    def done(self) -> Replayed:
        steps = 0
        divergence = None
        for entry in ledger.read(self._path):
            if divergence is None and (found := self._line(entry)) is not None:
                divergence = replace(found, same=steps if found.step is None else min(steps, found.step - 1))
            if entry.record["kind"] in _JUDGED:
                steps = max(steps, entry.record["step"])
        if self._follower.books is None:
            raise LedgerFormatError(f"{self._path} is no ledger: there is not one whole line")
        return Replayed(self._path, steps, divergence, tuple(self._untold))

    def _line(self, entry: Entry) -> Divergence | None:
        try:
            found = self._held(entry)
            if found is not None and self._masked and _hangs_on_mask(found, entry):
                self._untold.append(entry.record.get("step", 0))
                self._follower.see(entry)
                found = None
            self._last.see(entry.record)
            if found is None:
                self._done_with(entry)
        except (LedgerFormatError, InvalidDocumentError, UnreadableInputError):
            raise
        except (*UNFIT, LedgerCliError) as error:
            raise self._follower.unfit(entry, error) from error
        return found

    def _done_with(self, entry: Entry) -> None:
        """Note where the books are now, and judge what was judged here."""
        books = self._follower.books
        if books is not None:
            books.seq = entry.seq
            if entry.record["kind"] == "step":
                self._follower.remember(entry.record["step"])
            if self._overtaken:
                self._judge_overtaken(books, entry.seq)

    def _held(self, entry: Entry) -> Divergence | None:
        """Make a line again, and let happen what it says if it is the same."""
        masked = self._hides and any(mask in entry.data for mask in _MASKS)
        self._masked = self._masked or masked
        books, record = self._follower.books, entry.record
        kind = record["kind"]
        if books is None:
            self._follower.see(entry)
            books = self._follower.books
            assert books is not None
            return self._faults(entry, opening_faults(books, record)) or _rewritten(entry)
        if (found := self._asked(entry, books)) is not None:
            return found
        if kind in _ENDS:
            return self._ended(books, entry)
        if kind == "resume":
            return self._resumed(books, entry)
        if books.pending and (found := self._in_turn(books, entry)) is not None:
            return found
        if kind == "checkpoint" and self._inherits(entry):
            self._follower.see(entry)
        if kind in _JUDGED and record["verdict"] is not None and not masked:
            found = self._proposed(books, entry)
            if found is not None:
                return found
        line, then = self._made(books, record)
        if line is None or not _same(line, entry):
            return _difference(entry, line or {"verdict": self._verdict.to_json()})
        then()
        return None

    def _asked(self, entry: Entry, books: Books) -> Divergence | None:
        """Hold what a line says of a model; most say nothing."""
        if "engine" not in entry.record and entry.kind != "summary":
            return None
        return self._faults(entry, asking_faults(entry.record, self._last.engine, *_writers(books)))

    def _ended(self, books: Books, entry: Entry) -> Divergence | None:
        """Hold a `close` against how the run ended; where a torn end was moved to, nothing in the ledger says."""
        if entry.kind == "recovery":
            return self._faults(entry, recovery_faults(entry.record)) or _rewritten(entry)
        found = self._faults(entry, closing_faults(books, entry.record, self._last))
        books.see(entry.record)
        return found or _rewritten(entry)

    def _resumed(self, books: Books, entry: Entry) -> Divergence | None:
        """Hold a resumption against what the files that it carries change; what people set may be anything."""
        record = entry.record
        if (found := self._faults(entry, file_faults(record["files"]))) is not None:
            return found
        rules = self._follower.resumed(record)
        if (found := self._faults(entry, resuming_faults(books, rules, record))) is not None:
            return found
        sets, files = record.get("state_diff", {}), files_written(record["files"])
        line, then = books.resumed(sets, record["at"], rules, files, record.get("engine"))
        if not _same(line, entry):
            return _difference(entry, line)
        then()
        return None

    def _in_turn(self, books: Books, entry: Entry) -> Divergence | None:
        """Of what the loop proposes, nothing is judged before it is recorded what came of the call before."""
        record = entry.record
        if entry.kind not in _JUDGED or record["step"] in books.pending:
            return None
        if self._last.engine["kind"] not in ENGINES:
            return None
        return _differs(entry, "proposal", record["action"], f"none: step {min(books.pending)} is pending")

    @property
    def _hides(self) -> bool:
        """Whether what looks like a mask is one: a tool's, or one of the run that this one goes on from."""
        books = self._follower.books
        return books is not None and ("from" in self._follower.opening or bool(books.rules.toolset.file.redact))

    def _inherits(self, entry: Entry) -> bool:
        """Whether a checkpoint holds the past of another run, which is not told here."""
        return "from" in self._follower.opening and entry.record["step"] == 0

    # ---- lines made again

    def _made(self, books: Books, record: Mapping[str, Any]) -> tuple[Line | None, Callable[[], None]]:
        """Return the line that should stand there; None where the call would run and the line says that it did not."""
        kind, at = record["kind"], record["at"]
        if kind == "step":
            return self._step(books, record)
        if kind == "intent":
            _, line, then = self._checked(books, record)
            return line, then
        if kind == "checkpoint":
            return self._checkpoint(books, record), lambda: None
        if kind == "summary":
            engine = record.get("engine")
            return books.summarised(record["first"], record["last"], record["text"], at, engine), lambda: None
        if kind == "approval":
            yes, reason = record["answer"] == "yes", record.get("reason")
            return books.answered(record["step"], yes=yes, by=record["by"], reason=reason, at=at)
        target = self._follower.target(record)
        return books.rolled_back(record["to"], target, by=record.get("by"), reason=record.get("reason"), at=at)

    def _step(self, books: Books, record: Mapping[str, Any]) -> tuple[Line | None, Callable[[], None]]:
        step, outcome, at = record["step"], record["outcome"], record["at"]
        if record["verdict"] is None:
            return books.said(record["result"].get("data"), cel.Timestamp.parse(record["now"]), at)
        if step not in books.pending:
            _, line, then = self._checked(books, record)
            if line is not None:
                return line, then
            if outcome in ("denied", "waiting"):
                return None, then
            then()
        if outcome in ("cancelled", "unknown"):
            return books.left(step, outcome, at)
        result = Result.from_json(record["result"])
        return books.executed(step, result, at, settled=_settles(books, step, result))

    def _checked(self, books: Books, record: Mapping[str, Any]) -> tuple[Verdict, Line | None, Callable[[], None]]:
        proposal = Proposal.from_json(record["action"], record.get("engine"))
        now = cel.Timestamp.parse(record["now"])
        checked = books.check(proposal, now, record["at"], _unkept(record))
        self._verdict = checked[0]
        return checked

    def _checkpoint(self, books: Books, record: Mapping[str, Any]) -> Line:
        """Whoever wrote it kept of the history what the first rules ask for, or everything."""
        line, said = books.checkpoint(record["at"]), record["history"]
        if said is not None and not _whole(said):
            kept = self._shelf.recorded(self._follower.opening).keeps
            line["history"] = {key: one for key, one in line["history"].items() if getattr(kept, key, True)}
        return line

    def _judge_overtaken(self, books: Books, seq: int) -> None:
        """Judge the reads that were judged behind a line, and whose own lines come later: other calls ran meanwhile."""
        for record in self._overtaken.get(seq, ()):
            _, line, then = self._checked(books, record)
            if line is None:
                then()

    # ---- what is not in the line's own making

    def _proposed(self, books: Books, entry: Entry) -> Divergence | None:
        """Ask the scenario's script for its proposal again; a call that was just approved is not proposed anew."""
        record, script = entry.record, books.rules.script
        if script is None or self._last.engine["kind"] != "script" or self._last.outcome == "waiting":
            return None
        if record["step"] in books.pending:
            return None
        try:
            proposal = script.propose(books.state, books.history, cel.Timestamp.parse(record["now"]))
        except ProposalError as error:
            return _differs(entry, "proposal", record["action"], error.message)
        made = None if proposal is None else proposal.to_json()
        return None if _dumps(made) == _dumps(record["action"]) else _differs(entry, "proposal", record["action"], made)

    def _faults(self, entry: Entry, faults: Iterable[Fault]) -> Divergence | None:
        for part, said, should in faults:
            return Divergence(entry.line, None, f"{entry.kind}.{part}", said, should)
        return None


def _writers(books: Books) -> tuple[str | None, str | None]:
    """The models that write the answer and what older steps came to, where one does."""
    if books.rules.scenario is None:
        return None, None
    file = books.rules.scenario.file
    writer, summariser = (None if one is None else one.model for one in (file.writer, file.summariser))
    return writer, summariser


def _whole(history: Mapping[str, Any]) -> bool:
    """Whether a history was written by one that kept everything."""
    return all(what in history for what in Keeps.__struct_fields__)


def _is_wide(path: Path | str) -> bool:
    """Whether a checkpoint holds a history that kept everything."""
    return any(_whole(checkpoint.record["history"] or {}) for checkpoint in ledger.checkpoints(path))


def _rewritten(entry: Entry) -> Divergence | None:
    """Hold a line that nothing makes again against how it is written when it says this."""
    line = as_written(entry.record)
    return None if _same(line, entry) else _difference(entry, line)


def _settles(books: Books, step: int, result: Result) -> bool:
    """Whether a result, as `fails_when` left it, can have come of any that a tool returned."""
    pending = books.pending[step]
    if not books.rules.updater.settles(pending.proposal.tool):
        return True
    returned = (result, Result(not result.success, result.data, result.error))
    return any(
        books.rules.updater.settled(pending.proposal, one, books.state, books.history, pending.now).success
        == result.success
        for one in returned
    )


def _unkept(record: Mapping[str, Any]) -> Verdict | None:
    """The verdict on arguments that could not be kept: they are not in the ledger, so nothing can be judged again."""
    verdict = record["verdict"]
    return Verdict.from_json(verdict, record["step"]) if is_unkept(verdict, record["action"]["args"]) else None


# ---- lines compared


def _dumps(value: Any) -> bytes:
    return orjson.dumps(value, paths.plain)


def _same(line: Line, entry: Entry) -> bool:
    record = entry.record
    made = {"kind": None, "seq": record["seq"], **line, "prev": record["prev"]}
    return orjson.dumps(made, paths.plain, orjson.OPT_APPEND_NEWLINE) == entry.data


def _differs(entry: Entry, layer: str, recorded: Any, replayed: Any, reads: Any = None) -> Divergence:
    return Divergence(entry.line, entry.record.get("step"), layer, recorded, replayed, reads or {})


def _difference(entry: Entry, line: Line) -> Divergence:
    """Say what differs first between a line and what it should be, as far as that is known."""
    record = entry.record
    for layer, keys in LAYERS.items() if entry.kind in ("step", "intent") else ():
        said, made = ({key: one[key] for key in keys if key in one} for one in (record, line))
        if layer == "proposal" and not made:
            continue  # the call would run: there is no line yet
        if _dumps(said) != _dumps(made):
            if layer == "verdict":
                return _differs(entry, layer, said["verdict"], _plain(made["verdict"]), _plain(_reads(line)))
            return _differs(entry, layer, said, _plain(made))
    said, made = ({key: value for key, value in one.items() if key not in _NUMBERS} for one in (record, line))
    return _differs(entry, entry.kind, said, _plain(made))


def _hangs_on_mask(found: Divergence, entry: Entry) -> bool:
    """Whether a difference may come of what redaction hides: of a verdict, by what was read for it."""
    if found.layer != "verdict" or any(mask in entry.data for mask in _MASKS):
        return True
    recorded, replayed = found.recorded.get("reads", {}), found.reads
    asked = {path for path in (*recorded, *replayed) if "(" in path}  # of the history, which may hold masks
    return (
        holds_mask(recorded)
        or holds_mask(replayed)
        or any(not paths.same(recorded.get(path), replayed.get(path)) for path in asked)
    )


def _plain(made: Any) -> Any:
    """A value as it would stand in the line."""
    return orjson.loads(_dumps(made))


def _reads(line: Line) -> Any:
    return (line.get("verdict") or {}).get("reads", {})
