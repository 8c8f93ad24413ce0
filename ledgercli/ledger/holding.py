"""Holds a ledger for one run, so that no second one goes on with it meanwhile.

Invariants:
* Whoever runs, resumes, answers or rolls back a run holds its ledger until he lets go; the system lets go for him if he
  dies, so nothing is ever left to be cleaned up.
* It hinders no reader, and no `append`: those have the `flock` of `writing`, which is another lock.

The lock is one on an open file description (Linux); where there is none, nothing is held.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat
import struct
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from ledgercli.errors import LedgerCliError, UnreadableInputError

_FLAGS: Final = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
_FAR: Final = 1 << 62  # the byte that is locked: none that a ledger ever has
_TAKEN: Final = (errno.EAGAIN, errno.EACCES)


class Hold:
    """A ledger that is held; let go of it with `release`, or as a context manager."""

    def __init__(self, path: Path | str) -> None:
        """Take hold.

        Raises:
            LedgerCliError: somebody else holds it, or it cannot be opened for writing.

        """
        self._fd = _opened(Path(path))
        try:
            _lock(self._fd)
        except OSError as error:
            self.release()
            if error.errno in _TAKEN:
                raise LedgerCliError(
                    f"{path} is being written by another run", fix="wait for it to end, or stop it"
                ) from error

    def release(self) -> None:
        """Let go."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self.release()

    def __del__(self) -> None:
        with contextlib.suppress(AttributeError, OSError):
            self.release()


def _opened(path: Path) -> int:
    try:
        fd = os.open(path, _FLAGS)
    except FileNotFoundError as error:
        raise UnreadableInputError(f"there is no file {path}") from error
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise LedgerCliError(f"{path} is a symbolic link; a ledger is never written through one") from error
        raise LedgerCliError(f"{path} cannot be written: {(error.strerror or str(error)).lower()}") from error
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise UnreadableInputError(f"{path} is no regular file; a ledger is one")
    return fd


def _lock(fd: int) -> None:
    command = getattr(fcntl, "F_OFD_SETLK", None)
    if command is not None:
        fcntl.fcntl(fd, command, struct.pack("@hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, _FAR, 1, 0))
