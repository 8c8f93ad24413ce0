"""The lines of an account: values that are cut, messages that are wrapped, labels before them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ledgercli import cel
from ledgercli.reports import values
from ledgercli.reports.cells import WIDTH, cells, pad, wrap
from ledgercli.reports.screen import Screen, Style
from ledgercli.why.accounts import Seen

INDENT: Final = " " * 7
DEEP: Final = " " * 14  # below `error  `
LEAST: Final = 12  # cells that a value has at least
_STYLES: Final[Mapping[str, Style]] = {"deny": "red", "fail": "red", "require_approval": "yellow", "warn": "yellow"}


@dataclass(frozen=True)
class Page:
    """How lines are made.

    Arguments:
        screen: knows about colour and encoding.
        verbose: all is told, and values are whole.

    """

    screen: Screen
    verbose: bool = False

    def limited(self, seen: Sequence[Seen], most: int, what: str, indent: str = INDENT) -> Iterator[str]:
        """Yield values with what is noted of them; of many the first."""
        shown = seen if self.verbose else seen[:most]
        for one in shown:
            yield from self.value(indent, one.name, one.value)
            if one.note:
                yield from self.wrapped(f"{indent}  ", one.note)
        if len(shown) < len(seen):
            yield f"{indent}... {len(seen) - len(shown):,} {what} (-v)"

    def value(self, indent: str, name: str, value: Any, after: str = "") -> Iterator[str]:
        """Yield `name = value`, the value on a line of its own where its name leaves no room."""
        head = f"{indent}{self.safe(name)} = "
        if cells(head) + LEAST > WIDTH and not self.verbose:
            yield head.rstrip()
            head = f"{indent}  "
        yield head + self.shown(value, head) + after

    def labelled(self, label: str, text: str) -> Iterator[str]:
        """Yield a message, wrapped, with a label before it."""
        pieces = [piece for part in text.rstrip("\n").split("\n") for piece in wrap(self.safe(part), WIDTH - len(DEEP))]
        for number, piece in enumerate(pieces):
            yield f"{INDENT}{pad('' if number else label, len(INDENT))}{piece}".rstrip()

    def wrapped(self, indent: str, text: str, hang: int | None = None) -> Iterator[str]:
        """Yield a message, wrapped; further lines are moved in by `hang`."""
        for number, piece in enumerate(wrap(self.safe(text), WIDTH - (hang or cells(indent)))):
            yield (indent if not number else " " * (hang or cells(indent))) + piece

    def shown(self, value: Any, before: str) -> str:
        """Return a value as text, cut where the line behind `before` is full."""
        return self.screen.cut(values.parts(_plain(value)), self.room(before))

    def room(self, before: str) -> int | None:
        """Return how many cells are left behind a text; None: all is shown."""
        return None if self.verbose else max(WIDTH - cells(before), LEAST)

    def safe(self, text: str) -> str:
        """Return a text that can be shown as it is."""
        return self.screen.safe(text)

    def painted(self, word: str, text: str) -> str:
        """Return a text in the colour of a word."""
        return self.screen.paint(text, _STYLES.get(word))


def _plain(value: Any) -> Any:
    return str(value) if isinstance(value, (cel.Timestamp, cel.Duration)) else value
