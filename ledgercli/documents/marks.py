"""A file that was parsed: its data, and where each key and value of it stands.

Invariants:
* All offsets count in the document's own text; a `Problem` made here has the line, column and line to show.
* A place that the file does not hold (a default, say) is reported at what would hold it.

No YAML here: `yaml_reader` makes documents.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from ledgercli.documents.scalars import Scanned
from ledgercli.sources import MAX_LINE, Problem, Source

Place = Sequence[str | int]  # keys and indexes from the root of a document


@dataclass(frozen=True, slots=True)
class Mark:
    """Where a value stands.

    Arguments:
        start: offset of its first character in the document's text.
        end: offset after its last.
        scalar: how it is written, if it is one; None for maps, lists and a value that is left out.
        key: its key, if it stands in a map.
        children: of a map or a list.

    """

    start: int
    end: int
    scalar: Scanned | None = None
    key: Scanned | None = None
    children: dict[str | int, Mark] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Document:
    """A file that was parsed.

    Arguments:
        source: the file.
        text: its text without byte-order mark and CR; all offsets count in it.
        data: maps, lists, texts, numbers, truth values and None.
        root: where all of it stands.
        problems: what is wrong with it as YAML, in order.
        whole: False if it could be read only up to some problem.
        words: start of a text → problem, for `True` and `False`, which only an expression may say.
        cut_off: start of a plain text → offset of a `#` after it that may have been meant as part of it.

    """

    source: Source
    text: str = field(repr=False)
    data: Any
    root: Mark = field(repr=False)
    problems: tuple[Problem, ...]
    whole: bool = True
    words: dict[int, Problem] = field(default_factory=dict, repr=False)
    cut_off: dict[int, int] = field(default_factory=dict, repr=False)

    @cached_property
    def _line_starts(self) -> list[int]:
        return [0, *(match.end() for match in re.finditer("\n", self.text))]

    def line_column(self, offset: int) -> tuple[int, int]:
        """Return line and column of an offset in `text`, both from 1."""
        line = bisect_right(self._line_starts, offset)
        return line, offset - self._line_starts[line - 1] + 1

    def mark(self, place: Place) -> Mark:
        """Return the mark of a value; where there is none, that of what would hold it."""
        mark = self.root
        for step in place:
            below = mark.children.get(step)
            if below is None:
                break
            mark = below
        return mark

    def position(self, place: Place, *, key: bool = False) -> str:
        """Return `FILE:LINE` of a value, or of its key."""
        mark = self.mark(place)
        return f"{self.source.name}:{self.line_column(mark.key.start if key and mark.key else mark.start)[0]}"

    def problem(self, place: Place, code: str, message: str, *, key: bool = False, **more: Any) -> Problem:
        """Return a problem of a value as a whole, or of its key; `more` are fields of `Problem`."""
        mark = self.mark(place)
        if key and mark.key:
            return self.problem_in(mark.key.start, mark.key.end, code, message, **more)
        return self.problem_in(mark.start, mark.end, code, message, **more)

    def problem_at(  # noqa: PLR0913 - a place and what is wrong there
        self, place: Place, start: int, end: int, code: str, message: str, *, key: bool = False, **more: Any
    ) -> Problem:
        """Return a problem of the characters from `start` to `end` of a text (or of a key)."""
        mark = self.mark(place)
        scalar = mark.key if key else mark.scalar
        if scalar is None:
            return self.problem(place, code, message, key=key, **more)
        return self.problem_in(scalar.offset(start), scalar.offset(end), code, message, **more)

    def problem_in(self, start: int, end: int, code: str, message: str, **more: Any) -> Problem:
        """Return a problem of `text[start:end]`, as far as it stands on its first line."""
        line, column = self.line_column(start)
        line_start = self._line_starts[line - 1]
        line_end = self._line_starts[line] - 1 if line < len(self._line_starts) else len(self.text)
        return Problem(
            code,
            message,
            self.source.name,
            line,
            column,
            length=max(1, min(end, line_end) - start),
            source_line=self.text[line_start:line_end] if line_end - line_start <= MAX_LINE else None,
            **more,
        )
