"""The steps of two outlines in pairs: those that are the same, and those that are two versions of one.

Invariants:
* Pairs are in order on both sides, and the same whichever outline comes first.
* Two versions of a step have the same tool and stand between the same pairs; of several the most alike are paired.
* Lines are read again only where few steps stand beside few; the work is bounded by n log n.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from functools import lru_cache
from typing import Any, Final, TypeAlias

from ledgercli import paths
from ledgercli.diff import alignment
from ledgercli.diff.alignment import Gap, Pair
from ledgercli.diff.layers import LAYERS, Layer
from ledgercli.diff.outline import Outline
from ledgercli.paths import ABSENT

Key: TypeAlias = Callable[[int], Hashable]

_NEAR: Final = 400  # places of a table in which every step is held against every other


def paired(a: Outline, b: Outline, whole: Gap) -> list[Pair]:
    """Pair the steps that are the same, then those between them that are two versions of one."""
    if (len(b), b.digests) < (len(a), a.digests):  # so that the answer does not depend on which comes first
        a0, a1, b0, b1 = whole
        return [(i, j) for j, i in _paired_in(b, a, (b0, b1, a0, a1))]
    return _paired_in(a, b, whole)


def _paired_in(a: Outline, b: Outline, whole: Gap) -> list[Pair]:
    same = _matches(whole, a.key, b.key)
    found = list(same)
    for gap in alignment.gaps(same, whole):
        found += _alike(a, b, gap)
    return sorted(found)


def _alike(a: Outline, b: Outline, gap: Gap) -> Iterator[Pair]:
    """Pair the steps of a gap, of which none are the same: those most alike, where there are few."""
    if gap[0] == gap[1] or gap[2] == gap[3]:
        return
    if _is_small(gap):
        yield from alignment.in_order(gap, _likeness(a, b, gap))
        return
    called = _matches(gap, _call(a), _call(b))
    yield from called
    for inner in alignment.gaps(called, gap):
        if _is_small(inner):
            yield from alignment.in_order(inner, _likeness(a, b, inner))
        else:
            yield from _matches(inner, a.labels.__getitem__, b.labels.__getitem__)


def _call(side: Outline) -> Key:
    return lambda place: (side.labels[place], side.layer(place, "proposal"))


def _is_small(gap: Gap) -> bool:
    return (gap[1] - gap[0]) * (gap[3] - gap[2]) <= _NEAR


def _matches(gap: Gap, key_a: Key, key_b: Key) -> list[Pair]:
    found = alignment.matches([key_a(i) for i in range(*gap[:2])], [key_b(j) for j in range(*gap[2:])])
    return [(gap[0] + i, gap[2] + j) for i, j in found]


def _likeness(a: Outline, b: Outline, gap: Gap) -> Callable[[int, int], float]:
    """How much two steps of a gap have in common; 0: not the tool, so that they are no versions of one another."""
    alone = gap[1] - gap[0] == 1 and gap[3] - gap[2] == 1
    read_a, read_b = lru_cache(maxsize=64)(a.layers), lru_cache(maxsize=64)(b.layers)

    def likeness(i: int, j: int) -> float:
        if a.labels[i] != b.labels[j]:
            return 0.0
        if alone:
            return 1.0
        same = [a.layer(i, layer) == b.layer(j, layer) for layer in LAYERS]
        like = 1 + 8 * same[0] + sum(same[1:])
        return like if same[0] else like + _in_common(read_a(i), read_b(j))

    return likeness


def _in_common(a: Mapping[Layer, Any], b: Mapping[Layer, Any]) -> float:
    """The shares of arguments, and of what the result says, that are the same."""
    args = [(side["proposal"] or {}).get("args") for side in (a, b)]
    data = [((side["result"] or {}).get("result") or {}).get("data") for side in (a, b)]
    return 4 * _share(*args) + 2 * _share(*data)


def _share(one: Any, other: Any) -> float:
    if not (isinstance(one, Mapping) and isinstance(other, Mapping) and (one or other)):
        return 0.0
    return sum(paths.same(value, other.get(key, ABSENT)) for key, value in one.items()) / len({**one, **other})
