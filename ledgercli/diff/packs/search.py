"""Searches calls and states in which two versions of a pack do not say the same.

Where the values that the rules tell apart can be counted, every combination is judged. Else the search goes for each
rule that differs: it looks for a situation in which that rule fails under one version and not under the other, while
nothing else fails; always next from the situation in which the fewest rules are not as wanted.

Invariants:
* Whatever is found was judged by both enforcers.
* A search ends after `most` situations, and is the same each time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count, islice, product
from math import prod
from typing import Any, Final

from ledgercli import cel
from ledgercli.diff.packs.domains import Domain, domains
from ledgercli.diff.packs.examples import NOW, Example
from ledgercli.diff.packs.found import Found, Told, ToolDifference, kept, kind_of
from ledgercli.diff.packs.moves import changes_of, plain_arguments
from ledgercli.diff.packs.units import Half, Outcome, Sides, Unit
from ledgercli.paths import ABSENT
from ledgercli.toolset import FINISH, Tool
from ledgercli.why.candidates import Candidates
from ledgercli.why.situations import Change, Question, Situation

MOST: Final = 1_000  # situations that are tried for one tool
COUNTED: Final = 8_000  # combinations that are all judged
_GOALS: Final = 5  # goals for which as many situations may be tried
_PAIRS: Final = 40  # pairs of rules that are tried together
_SHRUNK: Final = 100  # smaller examples that are tried
_CLOSE: Final = 2  # rules not as wanted that are worked on at once

Outcomes = tuple[tuple[Outcome, Outcome], ...]
Wanted = tuple[frozenset[Outcome], frozenset[Outcome]]
_ANY: Final = frozenset(Outcome)
_FAILS: Final = frozenset({Outcome.FAIL, Outcome.UNTOLD})
_SAYS_SO: Final = frozenset({Outcome.FAIL})
_QUIET: Final = _ANY - _FAILS
_GRANTS: Final = frozenset({Outcome.GRANT})
_OFF: Final = _ANY - {Outcome.GRANT}


@dataclass(frozen=True)
class Goal:
    """What the rules shall come to.

    Arguments:
        wanted: by the number of the rule; the others shall not fail.
        free: rules that may come to anything.
        opened: whether a pack that refuses what it does not grant shall grant.

    """

    wanted: Mapping[int, Wanted]
    free: frozenset[int] = frozenset()
    opened: bool = True


def _any(_example: Example) -> bool:
    return True


@dataclass
class Search:
    """One search for one tool.

    Arguments:
        sides: the rules.
        spec: the tool.
        most: how many situations are tried.
        seeds: situations to begin with, beside an empty one.
        now: the time of an empty one.
        admits: whether a situation may be searched on from; none that is counted is left out.
        tried: how many were tried.

    """

    sides: Sides
    spec: Tool
    most: int = MOST
    seeds: Sequence[Example] = ()
    now: cel.Timestamp = NOW
    admits: Callable[[Example], bool] = _any
    tried: int = 0
    _found: dict[Any, Found] = field(default_factory=dict)
    _outcomes: dict[str, Outcomes] = field(default_factory=dict)
    _candidates: list[Candidates] = field(default_factory=list)
    _kinds: dict[Any, tuple[int, ...]] = field(default_factory=dict)

    def run(self) -> ToolDifference:
        """Return what can differ."""
        sides, kind = self.sides, self.sides.setting.kind
        if sides.agree():
            return ToolDifference(sides.tool, kind, "same", 0)
        args = plain_arguments(self.spec)
        if args is None:
            return ToolDifference(sides.tool, kind, "searched", 0, unfit=True)
        base = Example(sides.tool, args, constraints=sides.setting.given, now=self.now)
        self._settle(base)
        if sides.agree():
            return ToolDifference(sides.tool, kind, "counted", self.tried)
        counted = self._count(base, [*self._programs(sides.units), *sides.switches], COUNTED)
        if not counted:
            self._aim(base)
        found = kept(self._shrunk(one, args) for one in self._worth_it())
        return ToolDifference(sides.tool, kind, "counted" if counted else "searched", self.tried, found)

    # ---- by counting

    def _settle(self, base: Example) -> None:
        """Take rules as the same that are the same in every combination of what they read."""
        for unit in self.sides.units:
            if not unit.same and unit.weighs_the_same and not self.sides.otherwise:
                combinations = self._combinations(base, self._programs([unit]), COUNTED)
                if combinations is not None and all(self._agree(unit, one) for one in combinations):
                    unit.same = not self._says_moved(unit)

    def _says_moved(self, unit: Unit) -> bool:
        """Whether its texts show a constraint whose default is another."""
        halves = (half for half in unit.halves if half is not None)
        return any("constraints" in path and self.sides.moved for half in halves for path in half.looks_at())

    def _agree(self, unit: Unit, example: Example) -> bool:
        self.tried += 1
        told = []
        for half, situation, plan in zip(unit.halves, self._situations(example), self.sides.plans, strict=True):
            assert half is not None, "rules that weigh the same are both there"
            told.append(half.outcome(situation.roots(plan), situation.moment()))
        return told[0] == told[1]

    @staticmethod
    def _programs(units: Sequence[Unit]) -> list[cel.Program]:
        return [program for unit in units for half in unit.halves if half is not None for program in half.programs]

    def _count(self, base: Example, programs: Sequence[cel.Program], most: int) -> bool:
        """Judge every combination; whether that could be done."""
        combinations = self._combinations(base, programs, most)
        if combinations is None:
            return False
        for example in combinations:
            self._try(example)
        return True

    def _combinations(self, base: Example, programs: Sequence[cel.Program], most: int) -> Iterator[Example] | None:
        found = domains(programs, self.spec, base.args)
        if found is None or prod(len(values) for _, values in found) > most:
            return None
        return self._combined(base, found)

    def _combined(self, base: Example, found: Sequence[Domain]) -> Iterator[Example]:
        for values in product(*(values for _, values in found)):
            example: Example | None = base
            for (spot, _), value in zip(found, values, strict=True):
                if example is not None and not _as_it_is(example, spot, value):
                    example = example.changed(Change(spot, value), self.sides.setting.a)
            if example is not None:
                yield example

    # ---- by aiming

    def _aim(self, base: Example) -> None:
        starts = [*self.seeds, base]
        seed = self._reach(Goal({}), starts)
        if seed is not None:
            starts.insert(0, seed)
        for goal in self._goals():
            if self.tried >= self.most:
                return
            self._reach(goal, starts)

    def _goals(self) -> Iterator[Goal]:
        """Yield what to look for, the likeliest first."""
        units = self.sides.units
        changed = [number for number, unit in enumerate(units) if not unit.same]
        wanted = {number: list(_wanted(units[number])) for number in changed}
        for number in changed:
            yield from (Goal({number: one}) for one in wanted[number])
        if len(changed) > 1:
            free = frozenset(changed)
            for number in changed:
                yield from (Goal({number: one}, free - {number}) for one in wanted[number])
        if self.sides.otherwise or any(half.rule.is_grant for unit in units for half in unit.halves if half):
            yield from self._pairs(changed)

    def _pairs(self, changed: Sequence[int]) -> Iterator[Goal]:
        """Yield what to look for where rules compete: two that fail or grant together, and none."""
        units = self.sides.units
        every = range(len(units))
        yield Goal(dict.fromkeys(every, (_OFF & _QUIET, _OFF & _QUIET)), opened=False)
        for number in every:
            yield Goal({number: _voice(units[number])}, opened=False)
        yield from (
            Goal({number: wanted, other: (_FAILS, _FAILS)}, opened=False)  # a grant shows where something fails
            for number in changed
            for wanted in _wanted(units[number])
            for other in every
            if other != number and any(_is_grant(half) for half in units[number].halves)
        )
        pairs = ((one, other) for one in every for other in every[one + 1 :])
        for one, other in islice(sorted(pairs, key=lambda pair: not set(pair) & set(changed)), _PAIRS):
            yield Goal({one: _voice(units[one]), other: _voice(units[other])}, opened=False)

    def _reach(self, goal: Goal, starts: Sequence[Example]) -> Example | None:
        """Return an example in which the rules come to what is wanted; None if none was found."""
        number = count()
        heap: list[tuple[tuple[int, int], Any, int, Example]] = []
        seen: set[str] = set()
        until = min(self.tried + self.most // _GOALS, self.most)
        for example in starts:
            self._try(example)
            heappush(heap, (self._far(goal, example), example.size, next(number), example))
            seen.add(example.key)
        while heap and self.tried < until:
            cost, _, _, example = heappop(heap)
            if not cost[0]:
                return example
            for then in self._moves(goal, example):
                if then.key in seen or self.tried >= until:
                    continue
                seen.add(then.key)
                now = self._cost(goal, self._try(then))
                if not now:
                    return then
                if now <= cost[0] + 1:
                    heappush(heap, (self._far(goal, then), then.size, next(number), then))
        return None

    def _cost(self, goal: Goal, outcomes: Outcomes) -> int:
        """How many rules are not as wanted."""
        wrong = len({number for number, _ in self._wrong(goal, outcomes)})
        return wrong + sum(1 for side in (0, 1) if goal.opened and not self._opened(outcomes, side))

    def _far(self, goal: Goal, example: Example) -> tuple[int, int]:
        """How many rules are not as wanted, and how many of their conditions."""
        outcomes = self._outcomes[example.key]
        parts = 0
        for number, side in self._wrong(goal, outcomes):
            half = self.sides.units[number].halves[side]
            if half is not None and not (side and self.sides.units[number].same):
                situation = self._situations(example)[side]
                fails = outcomes[number][side] is Outcome.FAIL
                parts += half.distance(situation.roots(self.sides.plans[side]), situation.moment(), fails=fails)
        return self._cost(goal, outcomes), parts

    def _wrong(self, goal: Goal, outcomes: Outcomes) -> Iterator[tuple[int, int]]:
        """Yield each rule and side that is not as wanted; those that the goal is about come first."""
        for number in sorted(range(len(outcomes)), key=lambda one: one not in goal.wanted):
            if number in goal.free:
                continue
            wanted = goal.wanted.get(number, (_QUIET, _QUIET))
            for side, half in enumerate(self.sides.units[number].halves):
                watched = half is not None and half.rule.shadow and number not in goal.wanted
                if outcomes[number][side] not in wanted[side] and not watched:
                    yield number, side

    def _opened(self, outcomes: Outcomes, side: int) -> bool:
        """Whether every pack that refuses what it does not grant has a grant that holds."""
        if self.sides.tool == FINISH:
            return True
        for pack in self.sides.plans[side].packs:
            if pack.allow_list and not any(
                unit.halves[side] is not None
                and unit.halves[side].pack is pack  # type: ignore[union-attr]
                and outcomes[number][side] is Outcome.GRANT
                for number, unit in enumerate(self.sides.units)
            ):
                return False
        return True

    # ---- what to try next

    def _moves(self, goal: Goal, example: Example) -> Iterator[Example]:
        """Yield what lies one change away and bears on a rule that is not as wanted."""
        outcomes = self._outcomes[example.key]
        told: dict[int, int] = {}
        for number, side in self._wrong(goal, outcomes):
            if len(told) >= _CLOSE and number not in told:
                break
            told.setdefault(number, side)
        halves = [(self.sides.units[number], side) for number, side in told.items()]
        if not halves:  # nothing is granted
            halves = [(unit, side) for unit in self.sides.units for side in (0, 1) if _is_grant(unit.halves[side])]
        for unit, side in halves:
            half = unit.halves[side] or unit.halves[1 - side]
            if half is not None:
                yield from self._changed(example, half, 0 if half is unit.a else 1)

    def _changed(self, example: Example, half: Half, side: int) -> Iterator[Example]:
        version, plan = self.sides.versions[side], self.sides.plans[side]
        if not self._candidates:
            self._candidates = [Candidates(plan, self.spec.args) for plan in self.sides.plans]
        for change in changes_of(half, self._situations(example)[side], self._candidates[side]):
            then = example.changed(change, version)
            if then is not None and plan.fits({**plan.defaults, **then.args}) and self.admits(then):
                yield then

    # ---- judging

    def _situations(self, example: Example) -> tuple[Situation, Situation]:
        return example.situations(self.sides.setting)

    def _try(self, example: Example) -> Outcomes:
        """Return what the rules come to; verdicts that differ are noted."""
        known = self._outcomes.get(example.key)
        if known is not None:
            return known
        self.tried += 1
        outcomes = self._outcomes[example.key] = self.sides.outcomes(*self._situations(example))
        size = (sum(not _FAILS.isdisjoint(one) for one in outcomes), *example.size)
        kind = outcomes, self._by(outcomes), self.sides.refusing(*self._situations(example))
        if kind not in self._kinds or self._kinds[kind] > size:
            self._kinds[kind] = size
            self._note(example, outcomes)
        return outcomes

    def _note(self, example: Example, outcomes: Outcomes) -> None:
        one = self._judged(example, outcomes)
        if one is None:
            return
        key = one.kind, one.effects, one.by
        known = self._found.get(key)
        if known is None or _weight(one) < _weight(known):
            self._found[key] = one

    def _judged(self, example: Example, outcomes: Outcomes) -> Found | None:
        """Return what both enforcers say, if it differs."""
        (mine, theirs), versions = self._situations(example), self.sides.versions
        a, b = mine.judged(versions[0].enforcer), theirs.judged(versions[1].enforcer)
        kind = kind_of(Told.of(a, versions[0]), Told.of(b, versions[1]))
        return None if kind is None else Found(kind, self.sides.tool, example, a, b, self._by(outcomes))

    def _by(self, outcomes: Outcomes) -> tuple[str, ...]:
        """The rules that make a difference, or else the settings of packs that do."""
        rules = tuple(
            unit.name
            for unit, (one, other) in zip(self.sides.units, outcomes, strict=True)
            if one is not other or (not unit.same and one in _FAILS and not unit.weighs_the_same)
        )
        moved = tuple(
            unit.name
            for unit, (one, _) in zip(self.sides.units, outcomes, strict=True)
            if not unit.same and one in _FAILS
        )
        return rules or self.sides.otherwise or moved

    # ---- what is told

    def _worth_it(self) -> tuple[Found, ...]:
        return kept(self._found.values())

    def _shrunk(self, one: Found, plain: Mapping[str, Any]) -> Found:
        """Return the same with an example of which nothing can be left out."""
        left = _SHRUNK
        smaller = True
        while smaller and left:
            smaller = False
            for example in one.example.smaller(plain):
                if not left:
                    break
                left -= 1
                then = self._still(one, example)
                if then is not None:
                    one, smaller = then, True
                    break
        return one

    def _still(self, one: Found, example: Example) -> Found | None:
        """Return what differs in a smaller example, if it is the same."""
        plan = self.sides.plans[0]
        if not plan.fits({**plan.defaults, **example.args}) or not self.admits(example):
            return None
        then = self._judged(example, self.sides.outcomes(*self._situations(example)))
        if then is None or (then.kind, then.effects, then.by) != (one.kind, one.effects, one.by):
            return None
        fewer = _failing(then) <= _failing(one)
        return then if fewer and example.key != one.example.key else None


def _failing(one: Found) -> int:
    return sum(len(verdict.failed) + len(verdict.warned) for verdict in (one.a, one.b))


def _weight(one: Found) -> tuple[Any, ...]:
    """What makes an example worse: rules that fail besides, then its size."""
    return _failing(one), one.example.size


def _is_grant(half: Half | None) -> bool:
    return half is not None and half.rule.is_grant


def _wanted(unit: Unit) -> Iterator[Wanted]:
    """Yield what a rule that differs may come to on both sides."""
    grants = any(_is_grant(half) for half in unit.halves)
    does, not_ = (_GRANTS, _OFF) if grants else (_FAILS, _QUIET)
    if unit.a is not None:
        yield does, not_
    if unit.b is not None:
        yield not_, does
    if unit.a is not None and unit.b is not None and not unit.weighs_the_same:
        if not grants:
            yield _SAYS_SO, _SAYS_SO
        yield does, does


def _voice(unit: Unit) -> Wanted:
    """What a rule comes to when it has a say."""
    a, b = (_ANY if half is None else _GRANTS if half.rule.is_grant else _FAILS for half in unit.halves)
    return a, b


def _as_it_is(example: Example, spot: Any, value: Any) -> bool:
    """Whether a value says that nothing is given."""
    if isinstance(spot, Question):
        return value in (0, False)
    return (
        value is ABSENT
        and spot[:2] in (("state", "facts"), ("state", "constraints"))
        and not (spot[1] == "constraints" and spot[2] in example.constraints)
    )
