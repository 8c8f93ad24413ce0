"""Characters of a file that others take the place of; all else stays as it is.

Invariants:
* Only the characters of what changes are written; every comment, blank line and line end stays as it was.
* A file is replaced as a whole or not at all, and nothing is left beside it. One that is read-only stays.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ledgercli.documents import Document
from ledgercli.errors import LedgerWriteError


@dataclass(frozen=True, slots=True, order=True)
class Edit:
    """Characters of a document's text that others take the place of."""

    start: int
    end: int
    text: str


def edited(document: Document, edits: Sequence[Edit]) -> str:
    """Return a file's text with the edits, in order; they count in its text without byte-order mark and CR."""
    source = document.source
    offsets = _Offsets(source.text, document)
    ending = "\r\n" if "\r\n" in source.text else "\n"
    text, behind = [], 0
    for edit in edits:
        start, end = offsets.of(edit.start), offsets.of(edit.end)
        text += [source.text[behind:start], edit.text.replace("\n", ending)]
        behind = max(end, behind)
    return "".join([*text, source.text[behind:]])


class _Offsets:
    """Where the characters of a document's text stand in its file."""

    def __init__(self, text: str, document: Document) -> None:
        self._document = document
        first = 1 if text.startswith("\ufeff") else 0
        self._starts = [first, *(match.end() for match in re.finditer("\n", text))]

    def of(self, offset: int) -> int:
        """Return the offset in the file."""
        line, column = self._document.line_column(offset)
        return self._starts[line - 1] + column - 1


def replace(path: Path, text: str) -> None:
    """Replace a file as a whole; through a link its target.

    Raises:
        LedgerWriteError: it cannot be written; what was there is as it was.

    """
    target, beside = Path(os.path.realpath(path)), None
    try:
        mode = target.stat().st_mode & 0o7777
        if not mode & 0o222:  # its folder would let it be replaced all the same
            raise LedgerWriteError(f"{path} cannot be written: it is read-only", fix=f"chmod u+w {path}")
        with tempfile.NamedTemporaryFile("wb", dir=target.parent, prefix=f".{target.name}.", delete=False) as file:
            beside = Path(file.name)
            file.write(_bytes(text))
        beside.chmod(mode)
        beside.replace(target)
    except OSError as error:
        _forget(beside)
        raise _unwritable(path, error) from error


def create(path: Path, text: str) -> None:
    """Write a new file.

    Raises:
        LedgerWriteError: it cannot be written, or is there already; nothing is left of it.

    """
    made = None
    try:
        with path.open("xb") as file:
            made = path
            file.write(_bytes(text))
    except OSError as error:
        _forget(made)
        raise _unwritable(path, error) from error


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _forget(path: Path | None) -> None:
    """Remove what was only half written."""
    if path is not None:
        with suppress(OSError):
            path.unlink()


def _unwritable(path: Path, error: OSError) -> LedgerWriteError:
    return LedgerWriteError(f"{path} cannot be written: {(error.strerror or str(error)).lower()}")
