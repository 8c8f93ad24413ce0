"""Every way a command can fail, by name, with its exit code and what to do next.

The exit codes are part of the public contract (see the README):

====  =======================================================================
code  meaning
====  =======================================================================
0     yes, same, done (also when a proposal was denied and the run went on)
1     the answer is no: a case fails, ledgers differ, a file is invalid
2     could not ask: usage, unreadable input, an output that exists
3     stopped early: halted, a limit, waiting for an approval
4     something outside failed: an engine, a server, a disk
130   interrupted
====  =======================================================================

Only `LedgerCliError` and its children reach a user as a message; anything else is a bug and shows as one.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any


class ExitCode(IntEnum):
    """What a command's exit status says."""

    YES = 0  # yes, same, done
    NO = 1  # the answer is no
    UNASKED = 2  # the question could not be asked
    STOPPED = 3  # stopped early: halted, limit, awaiting approval
    OUTSIDE = 4  # an engine, a server or the disk failed
    INTERRUPTED = 130  # Ctrl-C, as shells report it


class LedgerCliError(Exception):
    """A failure that the user can act on.

    Arguments:
        message: one line that says what is wrong.
        fix: what to do about it, where something can be done.

    """

    exit_code: ExitCode = ExitCode.UNASKED

    def __init__(self, message: str, *, fix: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.fix = fix


class UnreadableInputError(LedgerCliError):
    """A file is missing, not text, too large, or not of the kind that was asked for."""


class InvalidDocumentError(LedgerCliError):
    """A scenario, pack, toolset or case file does not load; `problems` says where and why."""

    def __init__(self, message: str, *, problems: tuple[object, ...] = (), fix: str | None = None) -> None:
        super().__init__(message, fix=fix)
        self.problems = problems


class OutputExistsError(LedgerCliError):
    """A file that would be written is there already; nothing is ever overwritten."""


class LedgerFormatError(LedgerCliError):
    """A ledger's bytes are not what this program writes."""


class LedgerWriteError(LedgerCliError):
    """A line could not be written; the file was rolled back to what it was."""

    exit_code = ExitCode.OUTSIDE


class BlockedError(LedgerCliError):
    """A proposal was not let through; `verdict` says why. The tool has not run."""

    exit_code = ExitCode.NO

    def __init__(self, message: str, *, verdict: Any, fix: str | None = None) -> None:
        super().__init__(message, fix=fix)
        self.verdict = verdict


class ProposalError(LedgerCliError):
    """A proposal cannot be made from what is known; the run fails."""

    exit_code = ExitCode.NO


class EngineError(LedgerCliError):
    """The decision engine failed."""

    exit_code = ExitCode.OUTSIDE
