"""What scanning YAML needs besides a scanner: a quick reader, findings, and words that many of them share.

Invariants:
* The text is whole in memory, and its only line ends are LF; columns count all characters.
* A finding has offsets; `yaml_reader` makes problems of findings.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass

from ruamel.yaml.error import FileMark
from ruamel.yaml.reader import Reader

from ledgercli.sources import Severity

MAX_DEPTH = 50
MAX_FINDINGS = 200


class TooManyFindingsError(Exception):
    """The file is so bad that nothing more of it is read."""


class DepthError(Exception):
    """Collections are nested too deeply, at `offset`."""

    def __init__(self, offset: int) -> None:
        super().__init__(offset)
        self.offset = offset


@dataclass(frozen=True, slots=True)
class Finding:
    """Something wrong with `text[start:end]`; see `Problem` for the rest."""

    code: str
    start: int
    end: int
    message: str
    notes: tuple[str, ...] = ()
    inline: str | None = None
    severity: Severity = "error"


def name_of(character: str) -> str:
    """Return how messages call a character that cannot be seen."""
    name = unicodedata.name(character, "a control character")
    return f"U+{ord(character):04X} ({name.lower()})"


class TextReader(Reader):
    r"""Walks over a text whose only line ends are `\n`, all of it at hand."""

    def forward(self, length: int = 1) -> None:
        """Go on by some characters."""
        self.seek(self.pointer + length)

    def get_mark(self) -> FileMark:
        """Return a mark of where the reader is."""
        return FileMark("", self.index, self.line, self.column)

    def seek(self, offset: int) -> None:
        """Go on to an offset."""
        self.line += self.buffer.count("\n", self.pointer, offset)
        self.pointer = self.index = offset
        self.column = offset - self.buffer.rfind("\n", 0, offset) - 1
