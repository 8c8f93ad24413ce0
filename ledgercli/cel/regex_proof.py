"""How much work a backtracking matcher may need for a pattern: a bound that is proven, or a refusal.

Invariants:
* A bound is `factor` times the text's length to the power `degree`; it counts every path that backtracking can try.
* A loop is accepted only if its body is deterministic: after each character at most one of its sets can match the
  next, counted with repetition (so `(a+)+`, `(a|a)*` and `(a*)*` are refused). Paths can then fork at a loop's exits
  only, and there as often as the text is long.
* Refusing is always allowed; a pattern that would be safe may be refused, never the reverse.
"""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Sequence as Items
from dataclasses import dataclass
from typing import Final

from ledgercli.cel.regex_sets import NEWLINE, Ranges, overlap, union
from ledgercli.cel.regex_syntax import At, Chars, Choice, NeedsRe2Error, Node, Repeat, Sequence

_POSITIONS = 400
_FORKS = 10_000
_NONE: Final[Ranges] = ()


@dataclass(frozen=True, slots=True)
class Cost:
    """`factor` times the text's length to the power of `degree`."""

    degree: int
    factor: int

    def __add__(self, other: Cost) -> Cost:
        return Cost(max(self.degree, other.degree), self.factor + other.factor)

    def __mul__(self, other: Cost) -> Cost:
        return Cost(self.degree + other.degree, self.factor * other.factor)

    def at(self, length: int) -> int:
        """The bound for a text of that length."""
        return self.factor * int(length**self.degree)


ONE: Final = Cost(0, 1)
LINEAR: Final = Cost(1, 1)


@dataclass(frozen=True, slots=True)
class First:
    """What the next character must be for a node to go on; `empty`: it may also take no character at all."""

    ranges: Ranges
    empty: bool

    def then(self, following: First) -> First:
        """The same, for this node with others behind it."""
        return First(union(self.ranges, following.ranges), following.empty) if self.empty else self


END: Final = First(_NONE, empty=False)  # nothing follows: no path goes on from there


def bound(node: Node) -> Cost:
    """The work of a search for `node` anywhere in a text."""
    _, work = _analyse(node, END)
    return LINEAR * work if not anchored(node) or work.degree == 0 else work


def anchored(node: Node) -> bool:
    """Whether `node` can match at the start of the text only."""
    if isinstance(node, Sequence):
        return bool(node.items) and anchored(node.items[0])
    if isinstance(node, Choice):
        return all(map(anchored, node.options))
    return node == At("text_start")


def first(node: Node) -> First:
    """The characters that `node` can begin with."""
    if isinstance(node, Chars):
        return First(node.ranges, empty=False)
    if isinstance(node, At):
        known = {"text_end": END, "line_end": First(NEWLINE, empty=False)}
        return known.get(node.place, First(_NONE, empty=True))
    if isinstance(node, Choice):
        firsts = [first(option) for option in node.options]
        return First(union(*(one.ranges for one in firsts)), any(one.empty for one in firsts))
    if isinstance(node, Repeat):
        inner = first(node.item)
        return First(inner.ranges, inner.empty or node.least == 0)
    result = First(_NONE, empty=True)
    for item in node.items:
        result = result.then(first(item))
    return result


def _analyse(node: Node, follow: First) -> tuple[Cost, Cost]:
    """In how many ways `node` can match from one place, and the work of trying all of them."""
    if isinstance(node, (Chars, At)):
        return ONE, ONE
    if isinstance(node, Sequence):
        return _analyse_sequence(node.items, follow)
    if isinstance(node, Choice):
        return _analyse_choice(node.options, follow)
    return _analyse_repeat(node, follow)


def _analyse_sequence(items: Items[Node], follow: First) -> tuple[Cost, Cost]:
    follows = [follow]
    for item in reversed(items[1:]):
        follows.append(first(item).then(follows[-1]))
    ways, work = ONE, ONE
    for item, after in zip(items, reversed(follows), strict=False):
        item_ways, item_work = _analyse(item, after)
        work += ways * item_work
        ways = _bounded(ways * item_ways)
    return ways, work


def _analyse_choice(options: Items[Node], follow: First) -> tuple[Cost, Cost]:
    results = [_analyse(option, follow) for option in options]
    ways, work = results[0]
    for other_ways, other_work in results[1:]:
        ways, work = ways + other_ways, work + other_work
    if _disjoint([first(option).then(follow) for option in options]):  # at most one option goes on
        ways = Cost(ways.degree, max(one.factor for one, _ in results))
    return _bounded(ways), work


def _analyse_repeat(node: Repeat, follow: First) -> tuple[Cost, Cost]:
    automaton = _Automaton()
    shape = automaton.add(node)
    longest = _longest(node)
    if shape is not None and automaton.deterministic(shape):
        fork = 1 + max(len(shape.starts), *map(len, automaton.follow), 0)
        work = Cost(1, fork) if longest is None else Cost(0, fork * longest + 1)
        goes_on = automaton.goes_on(shape)
        if not goes_on or not (follow.empty or overlap(goes_on, follow.ranges)):
            return ONE, work
        return (LINEAR if longest is None else Cost(0, longest + 1)), work
    if node.most is None:
        raise NeedsRe2Error("a loop whose body can match the same text in several ways")
    ways, work = _analyse(node.item, First(union(first(node.item).ranges, follow.ranges), empty=True))
    total = Cost(0, node.most - node.least + 1)
    for _ in range(node.most):
        total = _bounded(total * ways)
    return total, total * work


def _bounded(ways: Cost) -> Cost:
    if ways.factor > _FORKS:
        raise NeedsRe2Error("too many ways to match the same text")
    return ways


def _longest(node: Node) -> int | None:
    """The length of the longest text that `node` can match, or None if there is no bound."""
    if isinstance(node, (Chars, At)):
        return int(isinstance(node, Chars))
    if isinstance(node, Repeat):
        inner = _longest(node.item)
        return None if inner is None or node.most is None else inner * node.most
    children = [_longest(child) for child in (node.items if isinstance(node, Sequence) else node.options)]
    known = [length for length in children if length is not None]
    if len(known) < len(children):
        return None
    return sum(known) if isinstance(node, Sequence) else max(known)


def _disjoint(firsts: Items[First]) -> bool:
    return not any(one.empty for one in firsts) and _pairwise([one.ranges for one in firsts])


def _pairwise(sets: Items[Ranges]) -> bool:
    """Whether no two of the sets have a character in common."""
    return sum(map(_size, sets)) == _size(union(*sets))


def _size(ranges: Iterable[tuple[int, int]]) -> int:
    return sum(high - low + 1 for low, high in ranges)


@dataclass(frozen=True, slots=True)
class _Shape:
    """A part of the automaton: the positions it starts and ends with, and whether it may take nothing."""

    starts: tuple[int, ...]
    ends: tuple[int, ...]
    empty: bool


class _Automaton:
    """Glushkov's automaton: a position for each set in the pattern, and the positions that may follow each.

    What follows is kept with repetition: the same successor reached in two ways is two paths of a backtracker.
    """

    def __init__(self) -> None:
        self.sets: list[Ranges] = []
        self.follow: list[list[int]] = []

    def add(self, node: Node) -> _Shape | None:
        """The shape of `node`; None if it has too many positions."""
        if len(self.sets) > _POSITIONS:
            return None
        if isinstance(node, Chars):
            self.sets.append(node.ranges)
            self.follow.append([])
            return _Shape((len(self.sets) - 1,), (len(self.sets) - 1,), empty=False)
        if isinstance(node, At):
            return _Shape((), (), empty=True)
        if isinstance(node, Repeat):
            return self.add_repeat(node)
        if isinstance(node, Sequence):
            shape: _Shape | None = _Shape((), (), empty=True)
            for item in node.items:
                shape = self.join(shape, self.add(item))
            return shape
        options = [self.add(option) for option in node.options]
        known = [option for option in options if option is not None]
        if len(known) < len(options):
            return None
        starts = tuple(place for option in known for place in option.starts)
        ends = tuple(place for option in known for place in option.ends)
        return _Shape(starts, ends, any(option.empty for option in known))

    def add_repeat(self, node: Repeat) -> _Shape | None:
        """`least` copies, and then either a loop on the last or as many optional copies as there may be."""
        count = max(1, node.least) if node.most is None else node.most
        copies = [self.add(node.item) for _ in range(min(count, _POSITIONS))]
        shape: _Shape | None = _Shape((), (), empty=True)
        for place in range(len(copies) - 1, -1, -1):
            copy = copies[place]
            if copy is None:
                return None
            if node.most is None and place == len(copies) - 1:
                self.link(copy.ends, copy.starts)
            shape = self.join(copy, shape)
            if shape is not None and place >= node.least:
                shape = _Shape(shape.starts, shape.ends, empty=True)
        return shape

    def join(self, left: _Shape | None, right: _Shape | None) -> _Shape | None:
        """The shape of one part behind another."""
        if left is None or right is None:
            return None
        self.link(left.ends, right.starts)
        starts = left.starts + (right.starts if left.empty else ())
        ends = right.ends + (left.ends if right.empty else ())
        return _Shape(starts, ends, left.empty and right.empty)

    def link(self, ends: Iterable[int], starts: Iterable[int]) -> None:
        """Let each of `starts` follow each of `ends`."""
        for end in ends:
            self.follow[end].extend(starts)

    def deterministic(self, shape: _Shape) -> bool:
        """Whether no character ever leaves two paths open."""
        return all(
            _pairwise([self.sets[place] for place in places]) for places in (shape.starts, *self.follow) if places
        )

    def goes_on(self, shape: _Shape) -> Ranges:
        """The characters with which the repetition can go on where it might also end."""
        places = {place for end in shape.ends for place in self.follow[end]}
        return union(*(self.sets[place] for place in places | set(shape.starts if shape.empty else ())))
