"""What of a situation some expressions look at, and could be otherwise.

Invariants:
* What was read comes in the order in which it was, each place once.
* Of a map or list that was read as a whole, the places inside that are compared are told; a list itself too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from ledgercli.paths import Path
from ledgercli.why.comparisons import Compared, fits
from ledgercli.why.looking import Looked, changeable, matching
from ledgercli.why.situations import Question, Read, Situation, leaves

_ACTION: Final = ("action", "args")


def spots(seen: Looked, compared: Sequence[Compared], situation: Situation) -> Iterator[Path | Question]:
    """Yield each path and question once: what was read, and what it is made of."""
    told: set[Any] = set()
    for one in seen.touched():
        for spot in _of(one, compared, situation):
            key = spot.key if isinstance(spot, Question) else spot
            if key not in told:
                told.add(key)
                yield spot


def _of(one: Read, compared: Sequence[Compared], situation: Situation) -> Iterator[Path | Question]:
    if isinstance(one.at, Question):
        yield one.at
        if one.at.whole:
            yield from (path for path, _ in leaves(situation.proposal.args, _ACTION))
        return
    if not changeable(one.at):
        return
    value = situation.value(one.at)
    whole = one.kind == "value" and isinstance(value, (Mapping, list, tuple)) and bool(value)
    if not whole or isinstance(value, (list, tuple)):
        yield one.at
    if whole:
        yield from _inside(one.at, value, compared)


def _inside(path: Path, value: Any, compared: Sequence[Compared]) -> Iterator[Path]:
    """Yield the places in a map or list that are compared."""
    patterns = {
        pattern: None
        for one in compared
        for pattern in (*one.left, *one.right)
        if len(pattern) > len(path) and fits(pattern[: len(path)], path)
    }
    for pattern in patterns:
        yield from matching(value, path, pattern[len(path) :])
