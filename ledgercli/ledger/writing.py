r"""Append to one ledger: a JSON Lines file in which every line names the digest of the line before.

Invariants:
* A line that `append` returned for is whole in the file (and on the disk, with `sync="step"`); one that it raised for
  is not there: a short write or a full disk rolls the file back.
* One `write` a line, under one `flock` around reading the tail and writing, so that writers in any number of processes
  and threads neither interleave nor fork the chain.
* The file is only appended to. A torn end (bytes after the last `\n`) is moved beside it by the next writer, which says
  so in a `recovery` line; nothing else is ever cut off.
* A file that exists is never overwritten, and symbolic links and devices are never written to.

Python ignores SIGXFSZ, so that a file-size limit is an error of `write` like a full disk.

Deliberately not here: reading (`reading`), whether lines fit together (`verify`), and what they mean.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import threading
from collections.abc import Iterator
from fcntl import LOCK_EX, LOCK_UN, flock
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, Literal, Self, TypeAlias

from ledgercli import paths, records
from ledgercli.errors import (
    LedgerCliError,
    LedgerFormatError,
    LedgerWriteError,
    OutputExistsError,
    UnreadableInputError,
)
from ledgercli.ledger import linebytes
from ledgercli.ledger.reading import (
    CHUNK,
    NOTHING,
    Head,
    head_at,
    last_newline,
    read_at,
)

Sync: TypeAlias = Literal["step", "close", "none"]

_BEGINS: Final = b'{"kind":"open"'
_WRITING: Final = os.O_RDWR | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK


class Ledger:
    """One ledger, open for appending; made by `create` or `open`.

    Several of one file, in several processes, work together. Use it as a context manager, or call `close`.
    """

    def __init__(self, path: Path, fd: int, sync: Sync) -> None:
        self.path = path
        self._fd = fd
        self._sync = sync
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._size = 0  # of the file when `_head` was its last line
        self._head = NOTHING

    @classmethod
    def create(cls, path: Path | str, record: records.Line, *, sync: Sync = "step", make_folder: bool = False) -> Self:
        """Begin a ledger with its `open` line.

        Arguments:
            path: where; it must not exist.
            record: the `open` line, as `records.open_line` makes it.
            sync: when lines must be on the disk: with each append, at `close`, or when the system likes.
            make_folder: whether a missing folder is made.

        """
        path = Path(path)
        with _explained(path):
            if make_folder:
                path.parent.mkdir(parents=True, exist_ok=True)
            fd = os.open(path, _WRITING | os.O_CREAT | os.O_EXCL, 0o644)
        ledger = cls(path, fd, sync)
        try:
            ledger.append(record)
            if sync != "none":
                _sync_folder(path.parent)
        except BaseException:  # an empty file would be in the way of the next attempt
            ledger.close()
            path.unlink(missing_ok=True)
            raise
        return ledger

    @classmethod
    def open(cls, path: Path | str, *, sync: Sync = "step", behind: str | None = None) -> Self:
        """Go on with a ledger; a torn end is moved away first.

        Arguments:
            path: the ledger.
            sync: as of `create`.
            behind: the digest that its last whole line must have; None: any.

        Raises:
            LedgerCliError: its last line is another; nothing was written.
            LedgerFormatError: it has no whole line, or its last one cannot be read.

        """
        path = Path(path)
        ledger = cls(path, _open_to_append(path), sync)
        try:
            flock(ledger._fd, LOCK_EX)
            ledger._follow(os.lseek(ledger._fd, 0, os.SEEK_END), behind)
            flock(ledger._fd, LOCK_UN)
        except BaseException:
            ledger.close()  # and the lock with it
            raise
        return ledger

    @property
    def head(self) -> str | None:
        """The digest of the last line that this object knows of: what the next line will name, and an anchor."""
        return self._head.digest

    @staticmethod
    def check(value: Any, path: paths.Path = ()) -> None:
        """Raise `LedgerLimitError` if no line can hold a value; `path` is where it would stand, for the message."""
        linebytes.check(value, path, depth=3)  # at most `result`, `data` and the value's own levels

    def append(self, record: records.Line) -> Head:
        """Write one line; `seq` and `prev` are added, and `lines` to a `close`.

        Raises:
            LedgerLimitError: the record holds what a line cannot; nothing was written.
            LedgerWriteError: the line could not be written; the file is as it was.
            LedgerFormatError: the file was damaged by somebody else since.

        """
        if self._pid != os.getpid():
            self._reopen()
        with self._lock:
            fd = self._fd
            if fd < 0:
                raise LedgerWriteError(f"{self.path} is closed")
            try:
                flock(fd, LOCK_EX)
                size = os.lseek(fd, 0, os.SEEK_END)
                if size != self._size:
                    size = self._follow(size)
                return self._append(record, size)
            finally:
                flock(fd, LOCK_UN)

    def close(self) -> None:
        """Let go of the file. The `close` line is the caller's to append."""
        with self._lock:
            if self._fd >= 0:
                try:
                    if self._sync == "close":
                        os.fdatasync(self._fd)
                finally:
                    os.close(self._fd)
                    self._fd = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _reopen(self) -> None:
        """After a fork: the parent's descriptor shares its lock with ours, and would let both of us in."""
        self._pid, self._lock = os.getpid(), threading.Lock()
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = _open_to_append(self.path)

    def _append(self, record: records.Line, size: int) -> Head:
        """Write one line at the end of the file, which is at `size`."""
        seq = self._head.seq + 1
        line = linebytes.dumps(_numbered(record, seq, self._head.digest))
        try:
            written = os.write(self._fd, line)
            if written != len(line):
                raise OSError(errno.ENOSPC, f"{written:,} of {len(line):,} bytes were written")  # noqa: TRY301
            if self._sync == "step":
                os.fdatasync(self._fd)
        except BaseException as error:
            self._roll_back(size, error)
            raise
        self._size = size + len(line)
        self._head = Head(seq, "sha256:" + sha256(line).hexdigest())
        return self._head

    def _roll_back(self, size: int, error: BaseException) -> None:
        try:
            os.ftruncate(self._fd, size)
        except OSError as second:
            raise LedgerWriteError(
                f"{self.path}: a line was written in part and could not be taken back ({second.strerror})",
                fix="the next writer will move the torn end away",
            ) from error
        if isinstance(error, OSError):
            raise LedgerWriteError(
                f"{self.path}: the line could not be written: {error.strerror}; the ledger is as it was before",
                fix="make room, then go on with the ledger",
            ) from error

    # ---- what others have written

    def _follow(self, size: int, behind: str | None = None) -> int:
        """Take the last line of the file for the head, after moving a torn end away; the new size."""
        if size < self._size:
            raise LedgerFormatError(
                f"{self.path} was cut from {self._size:,} to {size:,} bytes by somebody else while it was open",
                fix="nothing was written; keep this file and begin a new ledger",
            )
        end = last_newline(self._fd, size)
        if end == 0:
            raise LedgerFormatError(
                f"{self.path} has no whole line: nothing was ever recorded", fix="remove it and begin a new ledger"
            )
        self._head = head_at(self._fd, end, self.path)
        if behind is not None and behind != self._head.digest:
            raise LedgerCliError(f"{self.path} is being written by another run", fix="wait for it to end, or stop it")
        self._size = end
        if end < size:
            self._recover(end, size)
        return self._size

    def _recover(self, end: int, size: int) -> None:
        with _explained(self.path):
            moved, digest = _move_torn(self._fd, self.path, end, size)
        self._append(
            records.recovery_line(
                at=records.timestamp(), offset=end, size=size - end, moved_to=moved.name, torn=digest
            ),
            end,
        )


def _numbered(record: records.Line, seq: int, prev: str | None) -> records.Line:
    """The record with its place in the ledger: `seq` behind `kind`, `prev` last."""
    numbered = {"kind": None, "seq": seq, **record}
    if record["kind"] == "close":
        numbered["lines"] = seq + 1
    numbered["prev"] = prev
    return numbered


def _open_to_append(path: Path) -> int:
    with _explained(path):
        fd = os.open(path, _WRITING)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise UnreadableInputError(f"{path} is no regular file; a ledger is one")
    return fd


def _sync_folder(folder: Path) -> None:
    """Have the file's name on the disk too."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _move_torn(fd: int, path: Path, end: int, size: int) -> tuple[Path, str]:
    """Copy the bytes after `end` beside the ledger, then cut them off; where they are, and their digest.

    A crash in between leaves them in both places, and the next writer starts again under another name.
    """
    name = f"{path.name}.torn-{end}"
    number = 1
    while True:
        moved = path.with_name(name if number == 1 else f"{name}-{number}")
        try:
            out = os.open(moved, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
        except FileExistsError:
            number += 1
            continue
        break
    torn = sha256()
    with open(out, "wb") as copy:  # noqa: PTH123 - a descriptor
        for start in range(end, size, CHUNK):
            part = read_at(fd, start, min(start + CHUNK, size))
            torn.update(part)
            copy.write(part)
        copy.flush()
        os.fsync(copy.fileno())
    _sync_folder(path.parent)
    os.ftruncate(fd, end)
    return moved, "sha256:" + torn.hexdigest()


def exists(path: Path) -> OutputExistsError:
    """Return the error that a file is there already."""
    fix = "another --out"
    with contextlib.suppress(OSError), path.open("rb") as file:
        if file.read(len(_BEGINS)) == _BEGINS:
            fix += f", or --resume {path} to go on with it"
    return OutputExistsError(f"{path} exists; a ledger is never overwritten", fix=fix)


@contextlib.contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Turn what the system says about a file into what a user can do about it."""
    try:
        yield
    except FileExistsError as error:
        raise exists(path) from error
    except FileNotFoundError as error:
        if path.parent.is_dir():
            raise UnreadableInputError(f"there is no file {path}") from error
        raise LedgerCliError(f"there is no folder {path.parent}", fix=f"mkdir -p {path.parent}") from error
    except PermissionError as error:
        raise LedgerCliError(f"{path}: permission denied", fix="another folder, or other permissions") from error
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise LedgerCliError(f"{path} is a symbolic link; a ledger is never written through one") from error
        if error.errno in (errno.EROFS, errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG):
            raise LedgerCliError(f"{path}: {error.strerror}", fix="another path for the ledger") from error
        raise LedgerWriteError(f"{path}: {error.strerror}") from error
