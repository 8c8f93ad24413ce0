"""Which of several ways to let a call pass are worth showing, and in which order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ledgercli.paths import ABSENT
from ledgercli.why.situations import Change, Question, Situation, leaves

Changes = tuple[Change, ...]
_FAR: Final = 1e18
_ORDER: Final = ("facts", "flags", "goal", "error", "status", "task", "final_answer", "constraints")


def chosen(ways: Sequence[Changes], situation: Situation, most: int = 5) -> list[Changes]:
    """Return the ways worth showing: of those that change the same places the nearest, the most natural first."""
    nearest: dict[tuple[str, ...], tuple[float, Changes]] = {}
    for way in ways:
        places = tuple(sorted(change.name for change in way))
        far = sum(_distance(change, situation) for change in way)
        if places not in nearest or far < nearest[places][0]:
            nearest[places] = far, tuple(sorted(way, key=lambda change: (_rank(change), change.name)))
    return sorted((way for _, way in nearest.values()), key=lambda way: max(map(_rank, way)))[:most]


def _distance(change: Change, situation: Situation) -> float:
    """How far a number moves, odd fractions farthest; of others what is empty is far, to lose what is known farther."""
    if change.value is ABSENT:
        return 2 * _FAR
    empty = sum(leaf in ("", None) for _, leaf in leaves(change.value))
    known = None if isinstance(change.at, Question) else situation.value(change.at)
    if type(known) not in (int, float) or type(change.value) not in (int, float):
        return _FAR if change.value in ("", [], {}) else float(empty)
    return float(abs(change.value - known)) + (0.0 if change.value == round(change.value, 2) else _FAR)


def _rank(change: Change) -> int:
    """What a person can bring about goes before what is as it is, and before what would have to be unknown."""
    if isinstance(change.at, Question):
        return 0
    unknown = len(_ORDER) + 2 if change.value is ABSENT else 0
    return unknown + (1 if change.at[0] == "action" else 2 + _ORDER.index(str(change.at[1])))
