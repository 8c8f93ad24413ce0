"""What had come of a run at any step of its ledger: its books, as they were then.

Invariants:
* Nothing is judged again: the lines are taken in as they stand (`replay` judges).
* A ledger is read once, line by line; no line is kept. A rollback finds the state that it leads to because a quick
  look ahead has said which ones will be wanted.
* Books that are wanted at one step only are opened at the last checkpoint before it, once the chain up to there holds.
* What does not fit is a `LedgerFormatError` that names the line.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson

from ledgercli import cel, ledger, paths
from ledgercli.addresses import no_such_step
from ledgercli.books import Books
from ledgercli.errors import LedgerCliError, LedgerFormatError
from ledgercli.history import EVERYTHING, History, Keeps, NotKeptError
from ledgercli.ledger import Entry
from ledgercli.ledger.glance import entry_at, glance
from ledgercli.ledger.reading import RawLine, scan
from ledgercli.shelf import Shelf
from ledgercli.state import State
from ledgercli.story import is_there

#: What becomes of a line that says what its kind cannot, or does not fit those before it.
UNFIT = (paths.PathError, KeyError, TypeError, AttributeError, ValueError, AssertionError, cel.EvalError)
_CHUNK = 1 << 18
_JUDGED = b'"judged":'
_ROLLBACK, _RESUME = b'{"kind":"rollback"', b'{"kind":"resume"'

#: Tells from an `open` line what a history must keep; None: what its own rules ask for.
Asked = Callable[[Mapping[str, Any]], Keeps | None]


def each(path: Path | str, shelf: Shelf) -> Iterator[tuple[Books, Entry]]:
    """Yield each line of a ledger but the first, with the books as they were before it: always the same `Books`.

    Raises:
        UnreadableInputError: there is no such file.
        LedgerFormatError: a line is damaged, does not follow the one before or does not fit.
        InvalidDocumentError: what the ledger carries does not load.

    """
    follower = Follower(path, shelf)
    for entry in ledger.read(path):
        if follower.books is not None:
            yield follower.books, entry
        follower.see(entry)
    if follower.books is None:
        raise LedgerFormatError(f"{path} is no ledger: there is not one whole line")


class Follower:
    """Takes in the lines of one ledger.

    Arguments:
        path: the ledger.
        shelf: where its rulebook comes from.
        keeps: tells from the `open` line what its history must keep, if that is more than its own rules ask for.

    Its `books` are None before the first line, which is its `opening`; `later` are the files that took the place of
    others when the run was resumed; `last` is the line that it saw last.

    """

    def __init__(self, path: Path | str, shelf: Shelf, keeps: Asked | None = None) -> None:
        self._path, self._shelf, self._keeps = path, shelf, keeps
        self._wanted = frozenset(_targets(path))
        self._widened = any(_refiled(path))
        self._inherits = False  # the past of another run, which no checkpoint has told yet
        self._states: dict[int, State] = {}
        self.last: Entry | None = None
        self.opening: Mapping[str, Any] = {}
        self.later: list[Mapping[str, Any]] = []
        self.books: Books | None = None

    def judged(self, behind: Entry | None = None) -> Iterator[tuple[Books, Mapping[str, Any]]]:
        """Take in all lines; yield every proposal that was judged, with the books as it was judged in.

        It is the step's line, or its intent. If this has begun at a checkpoint, `behind` is that.
        """
        waiting = overtaken(self._path)
        for entry in ledger.read(self._path, behind=behind):
            if self.books is not None and _is_judged(entry.record, self.books):
                yield self.books, entry.record
            self.see(entry)
            for record in waiting.get(entry.seq, ()):
                assert self.books is not None
                yield self.books, record
        if self.books is None:
            raise LedgerFormatError(f"{self._path} is no ledger: there is not one whole line")

    def see(self, entry: Entry) -> None:
        """Take in the next line.

        Raises:
            LedgerFormatError: it does not fit.
            InvalidDocumentError: what it carries does not load.

        """
        if self._inherits and entry.kind in ("intent", "step"):
            raise self.unfit(entry, LedgerFormatError("no checkpoint tells what went before this run"))
        try:
            self._see(entry.record, entry.kind)
        except NotKeptError as error:
            if not self._inherits:  # whoever begins at a checkpoint then reads the lines before it instead
                raise
            raise LedgerCliError(
                f"{self._path} keeps less of the run that it goes on from than is asked of it now: {error}",
                fix="begin a new run from that one",
            ) from error
        except UNFIT as error:
            raise self.unfit(entry, error) from error
        self.last = entry

    def begin(self, opening: Entry, later: Sequence[Mapping[str, Any]], checkpoint: Entry) -> None:
        """Take in a checkpoint in place of all lines up to it; `later` are the files that those had changed.

        Raises:
            NotKeptError: its history keeps less than is wanted; the lines before have to be read.

        """
        if checkpoint.record["history"] is None:
            raise NotKeptError("history")
        self.see(opening)
        assert self.books is not None
        self._inherits = False
        if later:
            self.later = list(later)
            self.books.see({"kind": "resume", "seq": 0}, rules=self._shelf.recorded(self.opening, later))
        self.see(checkpoint)

    def unfit(self, entry: Entry, error: Exception) -> LedgerFormatError:
        """Return the error that a line does not fit."""
        why = f"it is not what a line of kind {entry.kind} says"
        if isinstance(error, paths.PathError):
            why = f"its diff does not fit the state: {error.message}"
        elif isinstance(error, LedgerCliError):
            why = error.message
        return LedgerFormatError(f"{self._path}:{entry.line}: {why}", fix=f"ledger validate {self._path}")

    def _see(self, record: Mapping[str, Any], kind: str) -> None:
        if self.books is None:
            if kind != "open":
                raise ValueError(kind)
            self.opening = record
            self.books = Books.opened(self._shelf.recorded(record), record)
            self.books.masked = True
            keeps = EVERYTHING if self._widened else self._keeps(record) if self._keeps else None
            if keeps is not None:
                self.books.history = History(str(record["state"]["task"]), keeps=keeps)
            self._inherits = "from" in record
            self.remember(0)
            return
        if kind == "rollback":
            self.books.see(record, target=self.target(record))
        elif kind == "resume":
            self.books.see(record, rules=self.resumed(record))
        else:
            self.books.see(record)
        if kind == "step":
            self.remember(record["step"])
        elif kind == "checkpoint":
            self._inherits = False
            if record["step"] == 0:
                self.remember(0)

    def target(self, record: Mapping[str, Any]) -> State:
        """The state that a rollback leads to."""
        return self._states[record["to"]]

    def resumed(self, record: Mapping[str, Any]) -> Any:
        """The rulebook from a resumption on; None where it stays."""
        if not record["files"]:
            return None
        self.later = [*self.later, *record["files"]]
        return self._shelf.recorded(self.opening, self.later)

    def remember(self, step: int) -> None:
        """Keep the state after a step if a rollback leads to it."""
        assert self.books is not None
        if step in self._wanted:
            self._states[step] = self.books.state


def after(path: Path | str, shelf: Shelf, step: int | None = None) -> Books:
    """Return the books after a step, or at the end.

    Raises:
        LedgerCliError: there is no such step; besides all that `each` raises.

    """
    books = reached(path, shelf, step).books
    assert books is not None, "a ledger that was read has books"
    return books


def reached(path: Path | str, shelf: Shelf, step: int | None = None, keeps: Asked | None = None) -> Follower:
    """Return who has taken in a ledger up to a step, or to the end; arguments and errors are those of `after`."""
    follower, behind = _opened(path, shelf, step, keeps)
    for entry in ledger.read(path, behind=behind):
        follower.see(entry)
        if step is not None and is_there(entry.record, step, follower.opening):
            return follower
    if follower.books is None:
        raise LedgerFormatError(f"{path} is no ledger: there is not one whole line")
    if step is not None:
        raise no_such_step(str(path), follower.books.steps)
    return follower


def _opened(path: Path | str, shelf: Shelf, step: int | None, keeps: Asked | None) -> tuple[Follower, Entry | None]:
    """Return who takes in a ledger, and the last checkpoint that he may begin behind; None: at the first line."""
    for checkpoint in ledger.checkpoints(path):
        if step is None or checkpoint.record["step"] < step:
            break
    else:
        return Follower(path, shelf, keeps), None
    seen = glance(path)
    for mark in reversed(seen.checkpoints if seen.chained else ()):
        behind = [to for line, to in seen.rollbacks if line > mark.line]
        if (step is None or mark.step < step) and all(to > mark.step for to in behind):
            assert seen.opening is not None, "a chain has a first line"
            later = [file for line, files in seen.resumptions if line < mark.line for file in files]
            follower = Follower(path, shelf, keeps)
            checkpoint = entry_at(path, mark)
            with contextlib.suppress(NotKeptError):
                follower.begin(seen.opening, later, checkpoint)
                return follower, checkpoint
    return Follower(path, shelf, keeps), None


def _is_judged(record: Mapping[str, Any], books: Books) -> bool:
    """Whether a line's call was judged just before it."""
    if record["kind"] not in ("intent", "step") or "judged" in record:
        return False
    return record.get("verdict") is not None and record.get("step") not in books.pending


def before(path: Path | str, shelf: Shelf, step: int) -> tuple[Books, Mapping[str, Any]]:
    """Return the books as a step's proposal was judged in, and the step's line (its intent, if that is all there is).

    Raises:
        LedgerCliError: there is no such step; besides all that `each` raises.

    """
    follower, behind = _opened(path, shelf, step, None)
    steps = follower.books.steps if follower.books else 0
    for books, record in follower.judged(behind):
        if record["step"] == step:
            return books, record if record["kind"] == "step" else _told(path, record)
        steps = max(steps, record["step"])
    raise no_such_step(str(path), steps)


def _told(path: Path | str, intent: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the line that says what came of an intent."""
    for entry in ledger.read(path):
        if entry.kind == "step" and entry.record["step"] == intent["step"]:
            return entry.record
    return intent


def overtaken(path: Path | str) -> dict[int, list[Mapping[str, Any]]]:
    """Return the steps that were judged before lines that stand above theirs, by the line behind which they were."""
    found: dict[int, list[Mapping[str, Any]]] = {}
    for raw in scan(path) if _mentions(path, _JUDGED) else ():
        if isinstance(raw, RawLine) and raw.data is not None and _JUDGED in raw.data:
            with contextlib.suppress(orjson.JSONDecodeError):  # whoever reads the line says what is wrong with it
                record = orjson.loads(raw.data)
                if isinstance(record, dict) and isinstance(record.get("judged"), int) and record.get("verdict"):
                    found.setdefault(record["judged"], []).append(record)
    return {seq: sorted(records, key=lambda one: str(one.get("step"))) for seq, records in found.items()}


def _refiled(path: Path | str) -> Iterator[bool]:
    """Yield of each resumption whether files changed in it."""
    for raw in scan(path) if _mentions(path, _RESUME) else ():
        if isinstance(raw, RawLine) and raw.data is not None and raw.data.startswith(_RESUME):
            yield b'"files":[{' in raw.data


def _targets(path: Path | str) -> Iterator[int]:
    """Yield the steps that rollbacks of a ledger lead to."""
    for raw in scan(path) if _mentions(path, _ROLLBACK) else ():
        if isinstance(raw, RawLine) and raw.data is not None and raw.data.startswith(_ROLLBACK):
            try:
                yield orjson.loads(raw.data)["to"]
            except (orjson.JSONDecodeError, KeyError):
                return  # whoever reads the line says what is wrong with it


def _mentions(path: Path | str, words: bytes) -> bool:
    """Whether a file has some bytes in it: a quick look that spares most ledgers a slower one."""
    before = b""
    try:
        with Path(path).open("rb") as file:
            while chunk := file.read(_CHUNK):
                if words in before + chunk:
                    return True
                before = chunk[-len(words) :]
    except OSError:
        return True  # whoever reads it says what is wrong with it
    return False
