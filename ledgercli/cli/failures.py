"""What a failure becomes: lines on stderr and an exit code.

Invariants:
* What a user can act on is `error: …`, and `  fix: …` where something can be done; never a traceback.
* A closed pipe ends a command quietly, with the status that a shell gives to it.
* What the system refuses (a disk, a descriptor) is something outside; anything else is a bug of this program, and says
  so in one line. LEDGER_DEBUG=1 shows all of it.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Final

import click

from ledgercli.errors import ExitCode, InvalidDocumentError, LedgerCliError, LedgerWriteError

BROKEN_PIPE: Final = 141  # 128 and SIGPIPE
DEBUG: Final = "LEDGER_DEBUG"


@dataclass(slots=True)
class Code:
    """The exit code of a command, once it is known."""

    value: int = 0


@contextmanager
def as_exit_code() -> Iterator[Code]:
    """Turn whatever ends the block into lines on stderr and an exit code."""
    code = Code()
    try:
        yield code
    except BrokenPipeError:
        code.value = BROKEN_PIPE
        _forget_stdout()
    except (KeyboardInterrupt, click.Abort):
        code.value = ExitCode.INTERRUPTED
        _tell("interrupted")
    except click.ClickException as error:
        code.value = ExitCode.UNASKED
        _usage(error)
    except LedgerCliError as error:
        code.value = error.exit_code
        _failure(error)
    except OSError as error:
        code.value = ExitCode.OUTSIDE
        _trace(error)
        place = f"{error.filename}: " if error.filename else "the output cannot be written: "
        _tell(place + (error.strerror or str(error)).lower())
    except Exception as error:  # noqa: BLE001 - a bug, whatever it is
        code.value = ExitCode.OUTSIDE
        _bug(error)


def flush() -> None:
    """Write what is still held back, where a failure can still be told.

    Raises:
        BrokenPipeError: nobody reads any more.
        LedgerWriteError: it cannot be written.

    """
    if sys.stdout is None:
        return
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        _forget_stdout()
        raise LedgerWriteError(f"the output cannot be written: {(error.strerror or str(error)).lower()}") from error


def let_go() -> None:
    """Keep what could not be written from failing a second time at the end of the process."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except (OSError, ValueError):
        _forget_stdout()


def _forget_stdout() -> None:
    """Keep Python from flushing again at its end what cannot be written."""
    with suppress(OSError, ValueError, AttributeError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def _failure(error: LedgerCliError) -> None:
    if isinstance(error, InvalidDocumentError):
        _problems(error)
    _tell(error.message, fix=error.fix)


def _problems(error: InvalidDocumentError) -> None:
    from ledgercli.reports.problems import has_excerpt, problem_lines
    from ledgercli.reports.screen import Screen
    from ledgercli.sources import Problem

    screen = Screen.stderr()
    for problem in error.problems:
        if isinstance(problem, Problem):
            for line in problem_lines(problem, screen):
                screen.line(line)
            if has_excerpt(problem):
                screen.line()


def _usage(error: click.ClickException) -> None:
    message = " ".join(error.format_message().split())
    if not message.endswith("..."):
        message = message.removesuffix(".")
    fix = None
    if isinstance(error, click.UsageError) and error.ctx is not None:
        fix = f"{error.ctx.command_path} --help"
    _tell(message[:1].lower() + message[1:], fix=fix)


def _bug(error: Exception) -> None:
    _trace(error)
    said = f"{type(error).__name__}: {error}".split("\n", 1)[0]
    fix = "please report it, with the command and what it prints under LEDGER_DEBUG=1"
    _tell(f"this is a bug in ledgercli: {said}", fix=fix)


def _trace(error: Exception) -> None:
    if os.environ.get(DEBUG) == "1":
        _tell("".join(traceback.format_exception(error)).rstrip("\n"), word=None)


def _tell(message: str, *, fix: str | None = None, word: str | None = "error") -> None:
    """Write to stderr; where that is closed too there is nobody to tell."""
    from ledgercli.reports.screen import Screen

    with suppress(OSError, LedgerCliError):
        screen = Screen.stderr()
        before = f"{screen.paint(word, 'red')}: " if word and message != "interrupted" else ""
        lines = message.split("\n")
        screen.line(before + screen.safe(lines[0]))
        for line in lines[1:]:
            screen.line(screen.safe(line))
        if fix:
            screen.line(f"  fix: {screen.safe(fix)}")
        screen.flush()
