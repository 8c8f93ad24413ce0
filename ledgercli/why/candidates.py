"""Other values that are worth trying: for each value that some rules read, what might make them answer otherwise.

A value is tried because the rules compare with it (bounds with their neighbours, members of lists), because it is of
the same kind (ids of known records, what stands at the same place of another record), because its type has no others
(true and false, an `enum`), or because a numeric comparison would just hold with it. What is not known is tried with
each of these, what is known also without it.

Invariants:
* Pure, and the same each time: values come in the order in which they are most likely to be of use.
* Nothing here says that a value helps; whoever tries it judges again.
* `now` is no value of the proposal or the state, and is never changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from typing import Any, Final

from ledgercli import cel
from ledgercli.cel import syntax
from ledgercli.paths import ABSENT, Path, PathError
from ledgercli.redaction import is_mask
from ledgercli.rules import ToolPlan
from ledgercli.why.comparisons import SIZE, Compared, Pattern, comparisons, fits, of_elements
from ledgercli.why.known import earlier, of_type, places, said
from ledgercli.why.looking import STATE, Looked, asks, gap, looked
from ledgercli.why.plausible import (
    ALIKE,
    beside,
    declared,
    distinct,
    fitting,
    key_of,
    of_length,
    of_schema,
    schema_at,
    skeleton,
)
from ledgercli.why.situations import Change, Question, Situation, begins, leaves, put, read
from ledgercli.why.spots import spots

_EACH: Final = 24  # values that are tried for one path
_SPOTS: Final = 60  # paths that are tried for one set of rules
_DEEP: Final = 3  # maps in maps that a value for what is not known is given
_SOLVED: Final = 16  # numbers for which the comparisons are solved
_ACTION: Final = ("action", "args")


@dataclass
class Candidates:
    """Finds the values to try for rules about one tool.

    Arguments:
        plan: the tool's rules.
        schema: of each argument of the tool.

    """

    plan: ToolPlan
    schema: Mapping[str, Mapping[str, Any]]
    _compared: dict[cel.Checked, tuple[Compared, ...]] = field(default_factory=dict, init=False)

    def of(self, parts: Sequence[cel.Program], situation: Situation) -> tuple[Looked, list[Change]]:
        """Return what expressions look at in a situation, and each change of it that is worth trying."""
        seen = looked(parts, self.plan, situation)
        return seen, list(self.changes(parts, situation, seen))

    def changes(self, parts: Sequence[cel.Program], situation: Situation, seen: Looked) -> Iterator[Change]:
        """Yield each change that is worth trying, of expressions that are known to look at `seen`."""
        return _Round(self, parts, situation, seen, [c for part in parts for c in self._of(part.checked)]).changes()

    @cached_property
    def looked_up(self) -> Sequence[Compared]:
        """All in the tool's rules that is looked up in a list or map."""
        rules = (rule for pack in self.plan.packs for rule in pack.rules)
        parts = [part for rule in rules for part in (rule.condition, rule.decides) if part is not None]
        return [one for part in parts for one in self._of(part.checked) if one.sign in ("in", "key")]

    def _of(self, checked: cel.Checked) -> tuple[Compared, ...]:
        if checked not in self._compared:
            self._compared[checked] = comparisons(checked)
        return self._compared[checked]


@dataclass
class _Round:
    """One search for values: some expressions in one situation."""

    whose: Candidates
    parts: Sequence[cel.Program]
    situation: Situation
    looked: Looked
    compared: Sequence[Compared]
    _solved: int = 0

    def changes(self) -> Iterator[Change]:
        """Yield each change, once."""
        for spot in islice(spots(self.looked, self.compared, self.situation), _SPOTS):
            known = ABSENT if isinstance(spot, Question) else self.situation.value(spot)
            made = self._answers(spot) if isinstance(spot, Question) else self._values(spot, known)
            tried: set[Any] = {key_of(self.looked.reads.get(spot.text) if isinstance(spot, Question) else known)}
            for value in made:
                if key_of(value) not in tried and len(tried) <= _EACH:
                    tried.add(key_of(value))
                    yield Change(spot, value)

    # ---- what may be there

    def _values(self, path: Path, known: Any) -> Iterator[Any]:
        if isinstance(known, Mapping):  # a whole record that is known is not made up anew
            if path[0] == STATE and not is_mask(known):
                yield ABSENT
            return
        kind = self._kind(path)
        if known is ABSENT and isinstance(kind, (cel.RecordType, cel.MapType)):
            yield self._grown(path, kind)
            yield skeleton(kind)
        schema = schema_at(self.whose.schema, path[2:]) if path[:2] == _ACTION else {}
        met = (*self._compared_with(path), *self._named_elsewhere(path), *self._alike(path), *of_schema(schema))
        for value in (*met, *of_type(kind, self.situation, known)):
            made = fitting(value, known, kind)
            if made is not ABSENT:
                yield made
        if type(known) in (int, float):
            yield from self._solving(path, known, kind)
        if isinstance(known, (list, tuple)):
            yield from self._lists(path, list(known))
        if known is not ABSENT and path[0] == STATE:
            yield ABSENT

    def _compared_with(self, path: Path) -> Iterator[Any]:
        """Yield what the expressions compare a path with."""
        for one, other, left in self._meeting(lambda pattern: fits(pattern, path)):
            yield from self._from_other(one, other, left=left)

    def _meeting(self, fit: Callable[[Pattern], bool]) -> Iterator[tuple[Compared, cel.Node, bool]]:
        """Yield what is compared and fits on one side, with the other side, and whether it is the left that fits."""
        for one in self.compared:
            if any(map(fit, one.left)):
                yield one, one.nodes[1], True
            if any(map(fit, one.right)):
                yield one, one.nodes[0], False

    def _from_other(self, one: Compared, other: cel.Node, *, left: bool) -> Iterator[Any]:
        if one.sign == "asked":
            yield from earlier(self.situation, one.tool, one.arg)
        elif one.sign == "grounded":
            yield from said(self.situation)
        elif one.sign in ("in", "key") and left:
            yield from self._members(one, other)
        else:
            for value in self._shown(other):
                near = type(value) in (int, float) and one.sign != "=="
                yield from beside(value) if near else (value,)

    def _named_elsewhere(self, path: Path) -> Iterator[Any]:
        """Yield what other rules about the tool look an argument up in: what helps one must not fail another."""
        for one in self.whose.looked_up if path[:2] == _ACTION else ():
            if any(fits(pattern, path) for pattern in one.left):
                yield from self._members(one, one.nodes[1])

    def _members(self, one: Compared, other: cel.Node) -> Iterator[Any]:
        """Yield what a list or map holds that a value is looked for in."""
        there = (value for pattern in one.right for _, value in places(self.situation, pattern))
        holders = [*self._shown(other), *there]
        for holder in holders:
            if isinstance(holder, (Mapping, list, tuple)):
                yield from islice(holder, ALIKE)

    def _shown(self, node: cel.Node) -> Sequence[Any]:
        """The values that a part of an expression had, some of them."""
        if isinstance(node, cel.Literal):
            return [node.value]
        if isinstance(node, syntax.ListOf):
            return [[one.value for one in node.elements if isinstance(one, cel.Literal)]]
        return distinct(self.looked.values.get(node, ()))[:ALIKE]

    def _alike(self, path: Path) -> Iterator[Any]:
        """Yield what stands at the same place of other records."""
        by_id = [
            place
            for place in range(3, len(path))
            if isinstance(path[place], str) and isinstance(self._kind(path[:place]), cel.MapType)
        ]
        if path[0] == STATE and by_id:
            pattern: Pattern = tuple(None if place in by_id else key for place, key in enumerate(path))
            others = places(self.situation, pattern, 4 * ALIKE)
            yield from distinct(value for place, value in others if place != path and not is_mask(value))[:ALIKE]

    def _kind(self, path: Path) -> cel.Type:
        return declared(path, self.parts[-1].checked.env.names) if self.parts else cel.DYN

    def _grown(self, path: Path, kind: cel.Type) -> Any:
        """Return a value for what is not known, with all that the expressions then look for in it."""
        value = next(self._alike(path), self._plainest(path, kind))
        for _ in range(_DEEP):
            try:
                then = self.situation.changed(Change(path, value))
                seen = looked(self.parts, self.whose.plan, then)
                value = replace(self, situation=then, looked=seen).filled(path, value)
            except PathError:
                break
        return value

    def filled(self, path: Path, value: Any) -> Any:
        """Return the value at a path with what was looked for in it, and what its empty parts are compared with."""
        for label in self.looked.missing:
            below = read(label).at
            if not isinstance(below, Question) and begins(path, below) and len(below) > len(path):
                inner = next(self._alike(below), self._plainest(below, self._kind(below)))
                value = put(value, below[len(path) :], inner)
        for inside, leaf in leaves(value, path):
            if leaf in ("", 0) and len(inside) > len(path):
                value = put(value, inside[len(path) :], self._plainest(inside, self._kind(inside)))
        return value

    def _plainest(self, path: Path, kind: cel.Type) -> Any:
        """Return a plain value of a type; what the expressions compare with goes before what is empty."""
        if isinstance(kind, cel.RecordType):
            return {name: self._plainest((*path, name), one.type) for name, one in kind.fields.items()}
        made = (fitting(value, ABSENT, kind) for value in self._compared_with(path))
        return next((value for value in made if value is not ABSENT), skeleton(kind))

    def _lists(self, path: Path, known: list[Any]) -> Iterator[Any]:
        """Yield other lists: those it is held beside, it without an element, with one looked for, of another length."""
        yield from self._beside(path, known)
        for number in range(min(len(known), ALIKE)):
            yield [*known[:number], *known[number + 1 :]]
        for one, other, left in self._meeting(lambda pattern: fits(pattern, path)):
            if one.sign == "in" and not left:
                yield from ([*known, value] for value in self._shown(other))
        for _, other, _ in self._meeting(lambda pattern: fits(pattern, (*path, SIZE))):
            for value in self._shown(other):
                lengths = (value, value - 1, value + 1) if type(value) is int else ()
                yield from (of_length(known, length) for length in lengths if 0 <= length <= len(known) + ALIKE)
        yield []

    def _beside(self, path: Path, known: Sequence[Any]) -> Iterator[Any]:
        """Yield the lists that were read and whose elements are compared with those of this one, in its own words."""
        words = known[0].keys() if known and isinstance(known[0], Mapping) else None
        reads = ((read(label).at, value) for label, value in self.looked.reads.items())
        lists = [(at, value) for at, value in reads if isinstance(value, (list, tuple)) and isinstance(at, tuple)]
        for one, _, left in self._meeting(lambda pattern: of_elements(pattern, path)):
            for place, value in lists:
                others = one.right if left else one.left
                if place != path and any(of_elements(pattern, place) for pattern in others):
                    yield [_in_words(item, words) for item in value]

    # ---- numbers for which a comparison just holds

    def _solving(self, path: Path, known: float, kind: cel.Type) -> Iterator[Any]:
        """Yield the numbers with which the two sides of a comparison would be equal, if they depend on it evenly."""
        if self._solved >= _SOLVED:
            return
        self._solved += 1
        step = 1 if type(known) is int else 1.0
        try:
            moved = looked(self.parts, self.whose.plan, self.situation.changed(Change(path, known + step)))
        except PathError:
            return
        for one in self.compared:
            before, after = gap(one, self.looked), gap(one, moved)
            if before is None or after is None or before == after:
                continue
            found = known - before * step / (after - before)
            whole = kind == cel.INT or (type(known) is int and kind != cel.DOUBLE)
            yield from beside(found, whole=whole)

    # ---- answers of the history

    def _answers(self, question: Question) -> Iterator[Any]:
        answer = next((self.looked.reads[label] for label in self.looked.reads if asks(label, question)), None)
        if question.function.startswith("from_") and question.args[0] in ("", None, [], {}):
            return  # nothing grounds these
        if isinstance(answer, bool):
            yield not answer
        if question.function == "source":
            tools = (value for value in self._met(("?", "source", "tool")) if isinstance(value, str))
            yield from ({"tool": tool, "args": {}, "step": 0} for tool in tools)
            return
        for value in self._met(("?", question.function)):
            yield from beside(value, whole=type(answer) is int) if type(value) in (int, float) else (value,)
        if type(answer) in (int, float):
            yield 0

    def _met(self, pattern: Pattern) -> Iterator[Any]:
        """Yield what stood on the other side of an answer of the history."""
        for _, other, _ in self._meeting(lambda mine: mine == pattern):
            yield from self._shown(other)


def _in_words(item: Any, words: Iterable[str] | None) -> Any:
    """Return an element with no other keys than those of the elements beside which it comes to stand."""
    return {key: item[key] for key in words if key in item} if words and isinstance(item, Mapping) else item
