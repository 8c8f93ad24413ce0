"""Two sequences laid side by side: what is the same in both, in order.

Invariants:
* The answer is a common subsequence: pairs of equal keys, rising on both sides.
* Where every key stands at most once on each side, it is a longest one; else a good one.
* Work is bounded by n log n, whatever the sequences are: nothing alike, one key ten thousand times, keys that only
  become unique once others have been taken away.

Deliberately not here: what keys stand for, and whether two that differ are alike (`in_order` asks the caller).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Final, TypeAlias

Pair: TypeAlias = tuple[int, int]
Gap: TypeAlias = tuple[int, int, int, int]  # from and to in the first, from and to in the second

SMALL: Final = 40_000  # places of a table that is filled as a whole
_ROUNDS: Final = 30  # how often each element may be looked at before gaps are no longer split


def matches(a: Sequence[Hashable], b: Sequence[Hashable]) -> list[Pair]:
    """Return which elements are the same, as pairs of places, in order."""
    found: list[Pair] = []
    effort = _ROUNDS * (len(a) + len(b))
    open_gaps = [(0, len(a), 0, len(b))]
    while open_gaps:
        gap = _trimmed(a, b, open_gaps.pop(), found)
        n, m = gap[1] - gap[0], gap[3] - gap[2]
        if not n or not m:
            continue
        if n * m <= SMALL:
            found += in_order(gap, lambda i, j: float(a[i] == b[j]))
            continue
        effort -= n + m
        anchors = _rising((_unique(a, b, gap) if effort > 0 else []) or _by_occurrence(a, b, gap))
        found += anchors
        if effort > 0 and anchors:
            open_gaps += gaps(anchors, gap)
    return sorted(found)


def gaps(pairs: Iterable[Pair], whole: Gap) -> Iterator[Gap]:
    """Yield what lies before, between and behind pairs that are in order; some are empty."""
    a0, a1, b0, b1 = whole
    for i, j in pairs:
        yield a0, i, b0, j
        a0, b0 = i + 1, j + 1
    yield a0, a1, b0, b1


def in_order(gap: Gap, likeness: Callable[[int, int], float]) -> list[Pair]:
    """Return the pairs, in order, whose likeness is the greatest in all; those without any are no pairs.

    It asks for every two elements: for small gaps.
    """
    a0, a1, b0, b1 = gap
    best = [[0.0] * (b1 - b0 + 1)]
    for i in range(a0, a1):
        above, row = best[-1], [0.0]
        for j in range(b0, b1):
            like = likeness(i, j)
            beside = max(above[j - b0 + 1], row[-1])
            row.append(max(beside, above[j - b0] + like) if like else beside)
        best.append(row)
    return _traced(best, gap)


def _traced(best: list[list[float]], gap: Gap) -> list[Pair]:
    """Walk back through a table to the pairs that made its last sum."""
    found, (a0, i, b0, j) = [], gap
    while i > a0 and j > b0:
        here = best[i - a0][j - b0]
        if here == best[i - a0 - 1][j - b0]:
            i -= 1
        elif here == best[i - a0][j - b0 - 1]:
            j -= 1
        else:
            i, j = i - 1, j - 1
            found.append((i, j))
    return found[::-1]


def _trimmed(a: Sequence[Hashable], b: Sequence[Hashable], gap: Gap, found: list[Pair]) -> Gap:
    """Take what is the same at both ends of a gap into `found`; return what is left."""
    a0, a1, b0, b1 = gap
    while a0 < a1 and b0 < b1 and a[a0] == b[b0]:
        found.append((a0, b0))
        a0, b0 = a0 + 1, b0 + 1
    while a0 < a1 and b0 < b1 and a[a1 - 1] == b[b1 - 1]:
        a1, b1 = a1 - 1, b1 - 1
        found.append((a1, b1))
    return a0, a1, b0, b1


def _unique(a: Sequence[Hashable], b: Sequence[Hashable], gap: Gap) -> list[Pair]:
    """Pair the keys that stand in each side of a gap exactly once, in the order of the first."""
    there = _once(b, gap[2], gap[3])
    return [(i, there[key]) for key, i in _once(a, gap[0], gap[1]).items() if i >= 0 and there.get(key, -1) >= 0]


def _once(keys: Sequence[Hashable], start: int, end: int) -> dict[Hashable, int]:
    """Where each key stands; -1 for those that stand in more than one place."""
    places: dict[Hashable, int] = {}
    for place in range(start, end):
        places[keys[place]] = -1 if keys[place] in places else place
    return places


def _by_occurrence(a: Sequence[Hashable], b: Sequence[Hashable], gap: Gap) -> list[Pair]:
    """Pair the first of each key with the first, the second with the second, and so on."""
    there: dict[Hashable, list[int]] = {}
    for j in range(gap[3] - 1, gap[2] - 1, -1):
        there.setdefault(b[j], []).append(j)
    return [(i, there[a[i]].pop()) for i in range(gap[0], gap[1]) if there.get(a[i])]


def _rising(pairs: list[Pair]) -> list[Pair]:
    """Return a longest row of pairs that rises on the second side too; the first side does already."""
    ends: list[int] = []  # the least second place with which a row of each length can end
    last: list[int] = []  # the pair that it ends with
    before: list[int] = []  # of each pair, the one before it in its row
    for number, (_, j) in enumerate(pairs):
        length = bisect_left(ends, j)
        before.append(last[length - 1] if length else -1)
        if length == len(ends):
            ends.append(j)
            last.append(number)
        else:
            ends[length], last[length] = j, number
    found, number = [], last[-1] if last else -1
    while number >= 0:
        found.append(pairs[number])
        number = before[number]
    return found[::-1]
