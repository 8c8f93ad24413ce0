r"""Where a report is written: a stream with its encoding, and colour if it is a terminal.

Invariants:
* No line raises for a character: what the encoding cannot write stands as `\u6674`.
* Colour only repeats a word that is there; it is used on a terminal only, and not under NO_COLOR or TERM=dumb.
* Under GITHUB_ACTIONS no line of a report can be read as a workflow command, except those that are meant as one.
* A line is composed of parts that went through `safe` or `cut`, and so are measured as they will be shown.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final, Literal, Self, TextIO

from ledgercli.errors import LedgerCliError, LedgerWriteError, OutputExistsError
from ledgercli.reports.cells import cut, encodable, inert

Style = Literal["red", "yellow", "bold", "dim"]
_CODES: Final[Mapping[Style, str]] = {"red": "31", "yellow": "33", "bold": "1", "dim": "2"}
_COMMAND: Final = re.compile(r"^(\s*):(?=:)|(?<=#)#(?=\[)")  # how a workflow command begins


class Screen:
    """A stream for people.

    Arguments:
        stream: where lines go; None where the process was started without one.
        encoding: what it can write; asked of the stream and the locale if left out.
        colour: whether it shows colour; asked of the stream if left out.

    """

    def __init__(self, stream: TextIO | None, *, encoding: str | None = None, colour: bool | None = None) -> None:
        self._stream = stream
        self.encoding = encoding or _encoding_of(stream)
        self._colour = _shows_colour(stream) if colour is None else colour
        self._guarded = on_github()
        self._own = False

    @classmethod
    def stdout(cls) -> Self:
        """Return the screen for what was asked for."""
        return cls(sys.stdout)

    @classmethod
    def stderr(cls) -> Self:
        """Return the screen for progress, warnings and what to do next."""
        return cls(sys.stderr)

    @classmethod
    def file(cls, path: str) -> Self:
        """Return a screen that writes a new file, in UTF-8 and without colour; `with` closes it.

        Raises:
            OutputExistsError: the file is there already.
            LedgerCliError: it cannot be made.

        """
        try:
            stream = Path(path).open("x", encoding="utf-8", newline="\n")  # noqa: SIM115 - see `__exit__`
        except FileExistsError:
            message = f"{path} exists; a report never overwrites a file"
            raise OutputExistsError(message, fix="another --report") from None
        except OSError as error:
            raise LedgerCliError(f"{path} cannot be written: {(error.strerror or str(error)).lower()}") from error
        screen = cls(stream, encoding="utf-8", colour=False)
        screen._own = True
        return screen

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.flush()
        if self._own and self._stream is not None:
            self._stream.close()

    def safe(self, text: str) -> str:
        """Return a text that can be shown here as it is: inert, and of characters that the encoding has."""
        return encodable(inert(text), self.encoding)

    def cut(self, parts: Iterable[str], room: int | None) -> str:
        """Return the parts of a value as one text of at most `room` cells."""
        return cut((encodable(part, self.encoding) for part in parts), room)

    def paint(self, text: str, style: Style | None) -> str:
        """Return text in a style, where colour is shown."""
        return f"\x1b[{_CODES[style]}m{text}\x1b[0m" if style and self._colour and text else text

    def line(self, text: str = "", *, command: bool = False) -> None:
        """Write a line; `command`: it is meant as a workflow command."""
        if self._guarded and not command:
            text = _COMMAND.sub(lambda match: f"{match[1] or ''}\\x{ord(match[0][-1]):02x}", text)
        self._write(encodable(text, self.encoding) + "\n")

    def data(self, content: bytes) -> None:
        """Write bytes as they are, such as JSON, which is UTF-8 whatever the terminal is."""
        if self._stream is None:
            return
        self._stream.flush()
        buffer = getattr(self._stream, "buffer", None)
        if buffer is None:  # a stream of text only, such as a test's
            self._stream.write(content.decode())
        else:
            buffer.write(content)

    def flush(self) -> None:
        """Have all that was written reach whoever reads."""
        if self._stream is not None:
            self._stream.flush()

    def _write(self, text: str) -> None:
        if self._stream is None:
            return
        try:
            self._stream.write(text)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise LedgerWriteError(f"the output cannot be written: {(error.strerror or str(error)).lower()}") from error


def on_github() -> bool:
    """Whether this runs as a step of GitHub Actions, which reads commands in what is printed."""
    return os.environ.get("GITHUB_ACTIONS") == "true"


def _encoding_of(stream: TextIO | None) -> str:
    """Return what a stream can show: Python writes UTF-8 under LANG=C, and a terminal there shows it as garbage."""
    encoding = getattr(stream, "encoding", None) or "utf-8"
    asked = os.environ.get("PYTHONUTF8") or os.environ.get("PYTHONIOENCODING")
    return "ascii" if sys.flags.utf8_mode and not asked and _locale() in ("C", "POSIX") else encoding


def _locale() -> str:
    """Return the locale as the user set it; Python itself sets LC_CTYPE where LANG is C."""
    return os.environ.get("LC_ALL") or os.environ.get("LANG") or ""


def _shows_colour(stream: TextIO | None) -> bool:
    if stream is None or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return stream.isatty()
