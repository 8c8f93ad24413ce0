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

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from typing import Any, Final

from ledgercli import cel
from ledgercli.cel import syntax
from ledgercli.paths import ABSENT, Path, PathError
from ledgercli.redaction import is_mask
from ledgercli.rules import ToolPlan
from ledgercli.why.comparisons import SIZE, Compared, Pattern, comparisons, fits
from ledgercli.why.looking import STATE, Looked, asks, changeable, gap, looked, matching
from ledgercli.why.plausible import (
    ALIKE,
    beside,
    distinct,
    fitting,
    key_of,
    of_length,
    of_schema,
    schema_at,
    skeleton,
    type_below,
)
from ledgercli.why.situations import Change, Question, Read, Situation, begins, leaves, put, read

_EACH: Final = 24  # values that are tried for one path
_SPOTS: Final = 60  # paths that are tried for one set of rules
_DEEP: Final = 3  # maps in maps that a value for what is not known is given
_SOLVED: Final = 16  # numbers for which the comparisons are solved
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d)?)?\Z")
_DAYS: Final = (0, 1, -1)
_DAY: Final = 86_400_000_000_000  # nanoseconds
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
        round_ = _Round(self, parts, situation, seen, [c for part in parts for c in self._of(part.checked)])
        return seen, list(round_.changes())

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
        for spot in islice(self._spots(), _SPOTS):
            known = ABSENT if isinstance(spot, Question) else self.situation.value(spot)
            made = self._answers(spot) if isinstance(spot, Question) else self._values(spot, known)
            tried: set[Any] = {key_of(self.looked.reads.get(spot.text) if isinstance(spot, Question) else known)}
            for value in made:
                if key_of(value) not in tried and len(tried) <= _EACH:
                    tried.add(key_of(value))
                    yield Change(spot, value)

    # ---- what may be changed

    def _spots(self) -> Iterator[Path | Question]:
        """Yield each path and question once: what was read, and what it is made of."""
        told: set[Any] = set()
        for one in self.looked.touched():
            for spot in self._spots_of(one):
                key = spot.key if isinstance(spot, Question) else spot
                if key not in told:
                    told.add(key)
                    yield spot

    def _spots_of(self, one: Read) -> Iterator[Path | Question]:
        if isinstance(one.at, Question):
            yield one.at
            if one.at.whole:
                yield from (path for path, _ in leaves(self.situation.proposal.args, _ACTION))
            return
        if not changeable(one.at):
            return
        value = self.situation.value(one.at)
        if one.kind != "value" or not isinstance(value, (Mapping, list, tuple)) or not value:
            yield one.at
            return
        if isinstance(value, (list, tuple)):
            yield one.at
        yield from self._inside(one.at)

    def _inside(self, path: Path) -> Iterator[Path]:
        """Yield the places in a map or list that the expressions compare."""
        patterns = {
            pattern: None
            for one in self.compared
            for pattern in (*one.left, *one.right)
            if len(pattern) > len(path) and fits(pattern[: len(path)], path)
        }
        for pattern in patterns:
            yield from matching(self.situation.value(path), path, pattern[len(path) :])

    # ---- what may be there

    def _values(self, path: Path, known: Any) -> Iterator[Any]:
        if isinstance(known, Mapping):  # a whole record that is known is not made up anew
            if path[0] == STATE and not is_mask(known):
                yield ABSENT
            return
        kind = self._type(path)
        if known is ABSENT and isinstance(kind, (cel.RecordType, cel.MapType)):
            yield self._grown(path, kind)
            yield skeleton(kind)
        named = self._named_elsewhere(path)
        for value in (*self._compared_with(path), *named, *self._alike(path), *self._of_type(path, kind)):
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
        for one in self.compared:
            sides = ((one.left, one.nodes[1], 0), (one.right, one.nodes[0], 1))
            for patterns, other, side in sides:
                if any(fits(pattern, path) for pattern in patterns):
                    yield from self._from_other(one, other, side)

    def _from_other(self, one: Compared, other: cel.Node, side: int) -> Iterator[Any]:
        if one.sign == "asked":
            yield from self._earlier(one.tool, one.arg)
        elif one.sign == "grounded":
            yield from self._said()
        elif one.sign in ("in", "key") and side == 0:
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
        holders = [*self._shown(other), *(value for pattern in one.right for _, value in self._places(pattern))]
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

    def _places(self, pattern: Pattern, most: int = ALIKE) -> Iterator[tuple[Path, Any]]:
        """Yield some of the places of a pattern with their values."""
        if len(pattern) < 2 or not changeable(pattern):
            return
        root = pattern[:2]
        if None in root:
            return
        for path in islice(matching(self.situation.value(root), root, pattern[2:]), most):
            yield path, self.situation.value(path)

    def _earlier(self, tool: str, arg: str) -> Iterator[Any]:
        """Yield the values that an argument had in earlier calls."""
        history = self.situation.history
        if not history.keeps.calls:
            return
        calls = history.to_json()["calls"]
        yield from (args[arg] for name, args, ok in reversed(calls) if name == tool and ok and arg in args)

    def _said(self) -> Iterator[Any]:
        """Yield the ids of known records that the task or the user named."""
        history = self.situation.history
        for records in self.situation.state.tree["facts"].values():
            for key in islice(records if isinstance(records, Mapping) else (), 4 * ALIKE):
                if history.from_task(key) or (history.keeps.user and history.from_user(key)):
                    yield key

    def _alike(self, path: Path) -> Iterator[Any]:
        """Yield what stands at the same place of other records."""
        by_id = [
            place
            for place in range(3, len(path))
            if isinstance(path[place], str) and isinstance(self._type(path[:place]), cel.MapType)
        ]
        if path[0] == STATE and by_id:
            pattern: Pattern = tuple(None if place in by_id else key for place, key in enumerate(path))
            places = self._places(pattern, 4 * ALIKE)
            yield from distinct(value for place, value in places if place != path and not is_mask(value))[:ALIKE]

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
                inner = next(self._alike(below), self._plainest(below, self._type(below)))
                value = put(value, below[len(path) :], inner)
        for inside, leaf in leaves(value, path):
            if leaf in ("", 0) and len(inside) > len(path):
                value = put(value, inside[len(path) :], self._plainest(inside, self._type(inside)))
        return value

    def _plainest(self, path: Path, kind: cel.Type) -> Any:
        """Return a plain value of a type; what the expressions compare with goes before what is empty."""
        if isinstance(kind, cel.RecordType):
            return {name: self._plainest((*path, name), one.type) for name, one in kind.fields.items()}
        made = (fitting(value, ABSENT, kind) for value in self._compared_with(path))
        return next((value for value in made if value is not ABSENT), skeleton(kind))

    def _of_type(self, path: Path, kind: cel.Type) -> Iterator[Any]:
        if path[:2] == _ACTION:
            yield from of_schema(schema_at(self.whose.schema, path[2:]))
        if kind in (cel.BOOL, cel.DYN):
            yield from (True, False)
        if isinstance(kind, cel.EnumType):
            yield from sorted(kind.values)
        elif kind in (cel.STRING, cel.DYN):
            known = self.situation.value(path)
            if isinstance(known, str) and _TIME.match(known):
                yield from self._times(len(known), known)
            yield ""
        if kind in (cel.INT, cel.DOUBLE, cel.DYN):
            yield 0
        if isinstance(kind, cel.ListType):
            yield []

    def _times(self, length: int, like: str) -> Iterator[str]:
        """Yield the present time, and a day before and after it, as a text is written."""
        for days in _DAYS:
            text = str(cel.Timestamp(self.situation.now.nanos + days * _DAY))[:length]
            yield text if "T" in like or length == len("2026-08-01") else text.replace("T", " ")

    def _lists(self, path: Path, known: list[Any]) -> Iterator[Any]:
        """Yield other lists: those it is held beside, it without an element, with one looked for, of another length."""
        yield from self._beside(path, known)
        for number in range(min(len(known), ALIKE)):
            yield [*known[:number], *known[number + 1 :]]
        for one in self.compared:
            if one.sign == "in" and any(fits(pattern, path) for pattern in one.right):
                yield from ([*known, value] for value in self._shown(one.nodes[0]))
            for patterns, other in ((one.left, one.nodes[1]), (one.right, one.nodes[0])):
                if any(pattern[-1] == SIZE and fits(pattern[:-1], path) for pattern in patterns):
                    yield from (
                        of_length(known, length)
                        for value in self._shown(other)
                        if type(value) is int
                        for length in (value, value - 1, value + 1)
                        if 0 <= length <= len(known) + ALIKE
                    )
        yield []

    def _beside(self, path: Path, known: Sequence[Any]) -> Iterator[Any]:
        """Yield the lists that were read and whose elements are compared with those of this one, in its own words."""
        words = known[0].keys() if known and isinstance(known[0], Mapping) else None
        for one in self.compared:
            for mine, others in ((one.left, one.right), (one.right, one.left)):
                if any(_is_of_elements(pattern, path) for pattern in mine):
                    for place, value in self._lists_read():
                        if place != path and any(_is_of_elements(pattern, place) for pattern in others):
                            yield [_in_words(item, words) for item in value]

    def _lists_read(self) -> Iterator[tuple[Path, Sequence[Any]]]:
        for label, value in self.looked.reads.items():
            place = read(label).at
            if isinstance(value, (list, tuple)) and not isinstance(place, Question):
                yield place, value

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
            tools = self._literals(("?", "source", "tool"))
            yield from ({"tool": tool, "args": {}, "step": 0} for tool in tools)
            return
        pattern = ("?", question.function)
        for one in self.compared:
            for patterns, other in ((one.left, one.nodes[1]), (one.right, one.nodes[0])):
                if pattern in patterns:
                    for value in self._shown(other):
                        numeric = type(value) in (int, float)
                        yield from beside(value, whole=type(answer) is int) if numeric else (value,)
        if type(answer) in (int, float):
            yield 0

    def _literals(self, pattern: Pattern) -> Iterator[Any]:
        for one in self.compared:
            for patterns, other in ((one.left, one.nodes[1]), (one.right, one.nodes[0])):
                if pattern in patterns:
                    yield from (value for value in self._shown(other) if isinstance(value, str))

    def _type(self, path: Path) -> cel.Type:
        """The type that is declared for a path."""
        if not self.parts:
            return cel.DYN
        kind: cel.Type = cel.DYN
        for number, key in enumerate(path):
            kind = self.parts[-1].checked.env.names.get(str(key), cel.DYN) if number == 0 else type_below(kind, key)
        return kind


def _is_of_elements(pattern: Pattern, path: Path) -> bool:
    """Whether a pattern is that of a part of the elements of a list."""
    return len(pattern) > 2 and pattern[-2] is None and fits(pattern[:-2], path)


def _in_words(item: Any, words: Iterable[str] | None) -> Any:
    """Return an element with no other keys than those of the elements beside which it comes to stand."""
    return {key: item[key] for key in words if key in item} if words and isinstance(item, Mapping) else item
