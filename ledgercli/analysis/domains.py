"""Sets of values: what a part of an expression can be where a comparison with it is true, false or cannot be told.

Invariants:
* A set may be too large, never too small: what is called empty holds no value at all.
* Numbers and texts are unions of intervals; everything else is a mark: `true`, `null`, `other` (lists, maps, times),
  `err` (no value: a fact that is not known, an error), and the ways in which two values compare.
* An end of an interval is a value with -1, 0 or 1: just below it, at it, just above it. Python orders these exactly.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import takewhile
from typing import Any, Final

End = tuple[Any, int]
Interval = tuple[End, End]
Intervals = tuple[Interval, ...]

_LOWEST: Final[End] = (-math.inf, 0)
_HIGHEST: Final[End] = (math.inf, 0)
_FIRST: Final[End] = ((0, ""), 0)
_LAST: Final[End] = ((1, ""), 0)  # behind every text
_TOP: Final = chr(0x10FFFF)
ANY_NUMBER: Final[Intervals] = ((_LOWEST, _HIGHEST),)
ANY_TEXT: Final[Intervals] = ((_FIRST, _LAST),)

TRUE, FALSE, NULL, NAN, OTHER, ERR = "true", "false", "null", "nan", "other", "err"
LESS, EQUAL, SAME, GREATER, UNORDERED, APART = "lt", "eq", "same", "gt", "unordered", "apart"
ANY_MARK: Final = frozenset({TRUE, FALSE, NULL, NAN, OTHER})


@dataclass(frozen=True, slots=True)
class Domain:
    """A set of values, and whether there may be none (`err` among the marks)."""

    numbers: Intervals = ()
    texts: Intervals = ()
    marks: frozenset[str] = frozenset()

    def __and__(self, other: Domain) -> Domain:
        if self is other:
            return self
        return Domain(_meet(self.numbers, other.numbers), _meet(self.texts, other.texts), self.marks & other.marks)

    def __or__(self, other: Domain) -> Domain:
        return Domain(_join(self.numbers, other.numbers), _join(self.texts, other.texts), self.marks | other.marks)

    def without(self, *marks: str) -> Domain:
        """Return the set without some marks."""
        return Domain(self.numbers, self.texts, self.marks - set(marks))

    def with_error(self) -> Domain:
        """Return the set with the case that there is no value."""
        return Domain(self.numbers, self.texts, self.marks | {ERR})

    def is_empty(self, *, whole: bool = False) -> bool:
        """Whether there is nothing in it; `whole`: its numbers are whole."""
        if self.marks or self.texts:
            return False
        return not (any(map(_has_whole, self.numbers)) if whole else self.numbers)

    @property
    def is_single(self) -> bool:
        """Whether there is one value at most, errors aside."""
        told = self.marks - {ERR, OTHER}
        points = all(start == end for start, end in (*self.numbers, *self.texts))
        return OTHER not in self.marks and points and len(self.numbers) + len(self.texts) + len(told) == 1

    @property
    def only_error(self) -> bool:
        """Whether there is no value for certain."""
        return self.marks == {ERR} and not self.numbers and not self.texts


NOTHING: Final = Domain()
ONLY_ERROR: Final = Domain(marks=frozenset({ERR}))
NUMBERS: Final = Domain(ANY_NUMBER)
TEXTS: Final = Domain((), ANY_TEXT)
BOOLS: Final = Domain(marks=frozenset({TRUE, FALSE}))
ANYTHING: Final = Domain(ANY_NUMBER, ANY_TEXT, ANY_MARK)


def marks(*names: str) -> Domain:
    """Return the set of these marks."""
    return Domain(marks=frozenset(names))


def value(one: Any) -> Domain | None:
    """Return the set of one JSON value, None where it is no number, text, truth value or null."""
    if isinstance(one, bool):
        return marks(TRUE if one else FALSE)
    if one is None:
        return marks(NULL)
    if isinstance(one, str):
        return Domain((), _point((0, str(one))))
    if isinstance(one, (int, float)):
        return Domain(_point(int(one) if isinstance(one, int) else one)) if one == one else None  # noqa: PLR0124 - NaN
    return None


def all_but(domain: Domain) -> Domain:
    """Return every value (and no error) that is not in a set of values."""
    return Domain(_complement(domain.numbers, ANY_NUMBER), _complement(domain.texts, ANY_TEXT), ANY_MARK - domain.marks)


def ordered(sign: str, one: Any) -> tuple[Domain, Domain]:
    """Return the values for which `x sign one` is true, and those for which it is false; of others it cannot be told.

    Arguments:
        sign: `<`, `<=`, `>` or `>=`.
        one: a number or a text.

    """
    text = isinstance(one, str)
    at = (0, str(one)) if text else one
    low, high = (_FIRST, _LAST) if text else (_LOWEST, _HIGHEST)
    below, above = {
        "<": ((at, -1), (at, 0)),
        "<=": ((at, 0), (at, 1)),
        ">": ((at, 0), (at, 1)),
        ">=": ((at, -1), (at, 0)),
    }[sign]
    lower, upper = _only((low, below)), _only((above, high))
    yes, no = (lower, upper) if sign in ("<", "<=") else (upper, lower)
    if text:
        return Domain((), yes), Domain((), no)
    return Domain(yes), Domain(no, (), frozenset({NAN}))


def beginning(prefix: str) -> Domain:
    """Return the texts that begin so (a few more where the last character is the last there is)."""
    stem = prefix.rstrip(_TOP)
    if not stem:
        return TEXTS
    end = (0, stem[:-1] + chr(ord(stem[-1]) + 1))
    return Domain((), _only((((0, prefix), 0), (end, -1))))


def between(low: Any, high: Any, *, open_low: bool = False, open_high: bool = False) -> Domain:
    """Return the numbers between two bounds; None is no bound."""
    start = _LOWEST if low is None else (low, 1 if open_low else 0)
    end = _HIGHEST if high is None else (high, -1 if open_high else 0)
    return Domain(_only((start, end)))


def union(domains: Iterable[Domain]) -> Domain:
    """Return all that is in any of the sets."""
    whole = NOTHING
    for one in domains:
        whole |= one
    return whole


def listed(domain: Domain) -> list[Any] | None:
    """Return the texts of a set where there are only finitely many and nothing else, errors aside."""
    if domain.numbers or domain.marks - {ERR}:
        return None
    if any(start != end for start, end in domain.texts):
        return None
    return [start[0][1] for start, _ in domain.texts]


def shortest(domain: Domain) -> int:
    """Return a number of characters that all texts of a set have at least."""
    return min((_least(low, high) for low, high in domain.texts), default=0)


def longest(domain: Domain) -> int | None:
    """Return how many characters the longest text of a set has, None where there is no longest."""
    if any(start != end for start, end in domain.texts):
        return None
    return max((len(start[0][1]) for start, _ in domain.texts), default=None)


def _least(low: End, high: End) -> int:
    (first, above), (last, _) = low, high
    if first[0] != 0 or last[0] != 0:  # no last text
        return 1 if first == (0, "") and above > 0 else 0
    alike = takewhile(lambda pair: pair[0] == pair[1], zip(first[1], last[1], strict=False))
    common = sum(1 for _ in alike)
    return common + (len(first[1]) > common or above > 0)


def _point(at: Any) -> Intervals:
    return (((at, 0), (at, 0)),)


def _only(interval: Interval) -> Intervals:
    return (interval,) if interval[0] <= interval[1] else ()


def _meet(left: Intervals, right: Intervals) -> Intervals:
    if not left or not right:
        return ()
    if left is right:
        return left
    found = []
    for low, high in left:
        for other_low, other_high in right:
            start, end = max(low, other_low), min(high, other_high)
            if start <= end:
                found.append((start, end))
    return tuple(found)


def _join(left: Intervals, right: Intervals) -> Intervals:
    if not left or not right or left is right:
        return left or right
    found: list[Interval] = []
    for low, high in sorted((*left, *right)):
        if found and low <= _after(found[-1][1]):
            found[-1] = (found[-1][0], max(found[-1][1], high))
        else:
            found.append((low, high))
    return tuple(found)


def _after(end: End) -> End:
    """The next end: intervals that touch are one."""
    return (end[0], end[1] + 1)


def _complement(inner: Intervals, whole: Intervals) -> Intervals:
    found = []
    (start, end) = whole[0]
    for low, high in sorted(inner):
        before = (low[0], low[1] - 1)
        if start <= before and low > start:
            found.append((start, before))
        start = max(start, _after(high))
    if start <= end:
        found.append((start, end))
    return tuple(found)


def _has_whole(interval: Interval) -> bool:
    """Whether a whole number lies in an interval."""
    (low, above), (high, below) = interval
    if low == -math.inf or high == math.inf:
        return True
    first = math.floor(low) + 1 if above > 0 or low != math.floor(low) else int(low)
    last = math.ceil(high) - 1 if below < 0 or high != math.ceil(high) else int(high)
    return first <= last
