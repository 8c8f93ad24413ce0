"""Read one ledger: its lines, its last line, each in the memory of one line.

Invariants:
* A line is at most `LINE_MAX` bytes; a longer one is passed over in pieces and never held.
* A file that grows is judged up to the size that it had, between two lines of its writer.
* Bytes after the last newline are no line: they come as `Torn`, since a writer died there, or is still writing.
* `read` gives nothing that is not exactly what a writer wrote, each line following the one before.

Deliberately not here: whether lines fit together otherwise (`verify`), and what they mean.
"""

from __future__ import annotations

import contextlib
import os
import stat
import time
from collections.abc import Iterator
from fcntl import LOCK_NB, LOCK_SH, LOCK_UN, flock
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple

import msgspec

from ledgercli import records
from ledgercli.errors import LedgerFormatError, UnreadableInputError
from ledgercli.ledger import linebytes, shapes
from ledgercli.ledger.linebytes import LINE_MAX, LineError

CHUNK: Final = 1 << 16
_CHECKPOINT: Final = b'\n{"kind":"checkpoint"'  # no line of another kind holds these bytes: a text has no newline
_PATIENCE: Final = 50  # times 10 ms that a reader waits for a writer to finish its line


class Head(NamedTuple):
    """The last line of a ledger: its number, and the digest that the next line will name."""

    seq: int
    digest: str | None


NOTHING: Final = Head(-1, None)


class Entry(msgspec.Struct, frozen=True, gc=False):
    """One line, read.

    Arguments:
        record: what it says.
        line: its number, from 1.
        offset: where it begins in the file, in bytes.
        digest: of its bytes.
        data: these bytes, with the newline.

    """

    record: dict[str, Any]
    line: int
    offset: int
    digest: str
    data: bytes

    @property
    def length(self) -> int:
        """Its bytes, with the newline."""
        return len(self.data)

    @property
    def seq(self) -> int:
        """Its number as it says itself, from 0."""
        return int(self.record["seq"])

    @property
    def kind(self) -> str:
        """What kind of line it is."""
        return str(self.record["kind"])


class Torn(msgspec.Struct, frozen=True):
    """What stands after the last whole line: a writer died, or is still writing."""

    line: int
    offset: int
    length: int


class RawLine(msgspec.Struct, frozen=True, gc=False):
    """The bytes of a line, newline included; None if they are longer than a line may be."""

    data: bytes | None
    line: int
    offset: int
    length: int


def scan(path: Path | str, offset: int = 0, line: int = 0) -> Iterator[RawLine | Torn]:
    """Yield the lines of a file as they stand, one at a time; bytes after the last newline come last, as `Torn`.

    Arguments:
        path: the file.
        offset: where to begin, in bytes: behind a newline.
        line: how many lines stand before.

    """
    path = Path(path)
    with _open_to_read(path) as file:
        size = _settled_size(file.fileno())
        if offset > size:
            raise LedgerFormatError(f"{path} was cut by somebody else: byte {offset:,} is not there any more")
        file.seek(offset)
        while offset < size:
            line += 1
            left = size - offset
            data: bytes | None = file.readline(left if left <= LINE_MAX else LINE_MAX + 1)
            assert data is not None
            length, whole = len(data), data.endswith(b"\n")
            if length > LINE_MAX:
                data = None
                if not whole:
                    length, whole = _skip_line(file, length, left)
            if not whole and offset + length < size:
                raise LedgerFormatError(f"{path} was cut by somebody else while it was read")
            yield RawLine(data, line, offset, length) if whole else Torn(line, offset, length)
            offset += length


class Reading:
    """The entries of a ledger, one at a time; `torn` says afterwards whether bytes were left at the end.

    Arguments:
        path: the ledger.
        behind: an entry of it behind which to begin; what stands before is not looked at.

    Iterating raises `LedgerFormatError` at the first line that is damaged or does not follow the one before.

    """

    def __init__(self, path: Path | str, behind: Entry | None = None) -> None:
        self.path = Path(path)
        self.torn: Torn | None = None
        self._behind = behind

    def __iter__(self) -> Iterator[Entry]:
        offset, line, (seq, digest) = 0, 0, NOTHING
        if self._behind is not None:
            offset, line = self._behind.offset + self._behind.length, self._behind.line
            seq, digest = self._behind.seq, self._behind.digest
        for raw in scan(self.path, offset, line):
            if isinstance(raw, Torn):
                self.torn = raw
                return
            seq += 1
            try:
                entry = parse(raw)
                _follows(entry, seq, digest)
            except LineError as error:
                raise LedgerFormatError(
                    f"{self.path}:{raw.line}:{error.column}: {error.message}", fix=f"ledger validate {self.path}"
                ) from error
            digest = entry.digest
            yield entry


def read(path: Path | str, *, behind: Entry | None = None) -> Reading:
    """The entries of a ledger, in order, each exactly what was written and following the one before.

    Arguments:
        path: the ledger.
        behind: an entry of it, as `checkpoints` gives them, behind which to begin.

    """
    return Reading(path, behind)


def checkpoints(path: Path | str) -> Iterator[Entry]:
    """Yield the checkpoints of a ledger, the last one first, without reading the lines between.

    A damaged one is passed over; another is taken at its word: what stands before it is not looked at.
    """
    path = Path(path)
    with _open_to_read(path) as file:
        fd = file.fileno()
        end = last_newline(fd, _settled_size(fd))
        while (newline := _rfind(fd, _CHECKPOINT, end)) >= 0:
            end = newline + 1
            file.seek(end)
            data = file.readline(LINE_MAX + 1)
            with contextlib.suppress(LineError):
                record = linebytes.loads(data)
                if shapes.fits(record):
                    yield Entry(record, seq_of(record) + 1, end, records.digest(data), data)


def head(path: Path | str) -> Head:
    """The last whole line of a ledger, without reading the others; `NOTHING` if there is none."""
    with _open_to_read(Path(path)) as file:
        fd = file.fileno()
        end = last_newline(fd, _settled_size(fd))
        return head_at(fd, end, Path(path)) if end else NOTHING


def head_at(fd: int, end: int, path: Path) -> Head:
    """The line that ends at `end`; raises `LedgerFormatError` unless it is one."""
    start = last_newline(fd, end - 1)
    size = end - start
    try:
        line = read_at(fd, start, end) if size <= LINE_MAX else None
        record = parse(RawLine(line, 0, start, size)).record
        return Head(seq_of(record), records.digest(line or b""))
    except LineError as error:
        raise LedgerFormatError(
            f"{path}: its last line is damaged at column {error.column}: {error.message}", fix=f"ledger validate {path}"
        ) from error


def parse(raw: RawLine) -> Entry:
    """Read one line; raises `LineError` unless it is exactly what this program writes."""
    if raw.data is None:
        raise LineError(f"the line is {raw.length:,} bytes long; a line has at most {LINE_MAX:,}", 1)
    return Entry(linebytes.loads(raw.data), raw.line, raw.offset, records.digest(raw.data), raw.data)


def _follows(entry: Entry, seq: int, digest: str | None) -> None:
    """Raise `LineError` unless an entry has this number and names this digest of the line before."""
    record = entry.record
    if seq_of(record) != seq or record.get("prev") != digest:
        message = f"line {entry.line} does not follow line {entry.line - 1}"
        raise LineError(message if entry.line > 1 else "the first line follows another that is not here", 1)
    if not isinstance(record.get("kind"), str):
        raise LineError("the line has no kind", 1)


def _open_to_read(path: Path) -> BinaryIO:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        raise UnreadableInputError(f"{path} cannot be read: {error.strerror}") from error
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise UnreadableInputError(f"{path} is no regular file; a ledger is one")
    return open(fd, "rb", buffering=CHUNK)  # noqa: PTH123 - a descriptor


def _settled_size(fd: int) -> int:
    """The size of the file between two lines of a writer that is at work; whatever it is if he does not let go."""
    for _ in range(_PATIENCE):
        try:
            flock(fd, LOCK_SH | LOCK_NB)
        except BlockingIOError:
            time.sleep(0.01)
            continue
        except OSError:  # a file system without locks
            break
        try:
            return os.fstat(fd).st_size
        finally:
            flock(fd, LOCK_UN)
    return os.fstat(fd).st_size


def _skip_line(file: BinaryIO, length: int, most: int) -> tuple[int, bool]:
    """Read past the rest of a line that is too long; its length, and whether it ends."""
    while length < most:
        part = file.readline(min(CHUNK, most - length))
        length += len(part)
        if not part or part.endswith(b"\n"):
            return length, bool(part)
    return length, False


def seq_of(record: dict[str, Any]) -> int:
    """The number that a line gives itself."""
    seq = record.get("seq")
    if type(seq) is not int:
        raise LineError("it has no seq", 1)
    return seq


def read_at(fd: int, start: int, end: int) -> bytes:
    """The bytes from `start` to `end`, fewer if the file ends before."""
    parts = []
    while start < end and (part := os.pread(fd, end - start, start)):
        parts.append(part)
        start += len(part)
    return b"".join(parts)


def last_newline(fd: int, end: int) -> int:
    """Where the last line before `end` ends: behind its newline; 0 if there is none."""
    while end > 0:
        start = max(0, end - CHUNK)
        at = read_at(fd, start, end).rfind(b"\n")
        if at >= 0:
            return start + at + 1
        end = start
    return 0


def _rfind(fd: int, sought: bytes, end: int) -> int:
    """Where the last `sought` begins that ends before `end`; -1 if there is none."""
    while end > 0:
        start = max(0, end - CHUNK - len(sought))
        at = read_at(fd, start, end).rfind(sought)
        if at >= 0:
            return start + at
        end = start + len(sought) - 1 if start else 0
    return -1
