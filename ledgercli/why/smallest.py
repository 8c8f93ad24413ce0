"""The smallest change of what a refused call was judged on that lets it pass.

A change that helps must touch something that each failed rule read: a rule that reads the same values answers the
same. So the search takes the failed rule with the fewest values to try, tries each, and goes on with what fails then.

Invariants:
* A way is found by trying and proved by the enforcer's own verdict on the changed situation.
* One value is tried before two, two before three; all ways of the smallest number are found, within a bound.
* What was not known and is given a value may be given any: refining it counts as no second value.
* Nothing is claimed beyond what was tried.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from types import MappingProxyType
from typing import Any, Final, Literal

from ledgercli import cel
from ledgercli.enforcer import BAD_ARGUMENTS, Enforcer
from ledgercli.paths import ABSENT, Path, PathError
from ledgercli.records import Proposal, lets_run
from ledgercli.redaction import holds_mask
from ledgercli.rules import CompiledPack, CompiledRule, ToolPlan
from ledgercli.toolset import Tool
from ledgercli.why.candidates import Candidates
from ledgercli.why.looking import Looked
from ledgercli.why.plausible import fitting_arguments
from ledgercli.why.situations import Change, Question, Situation, begins

LARGEST: Final = 3  # values changed together
MOST: Final = 3_000  # changes that are tried of one number
_REFINED: Final = 6  # values inside one that was not known
_ENOUGH: Final = 200  # ways of one number
_FAR: Final = 1e18
_ORDER: Final = ("facts", "flags", "goal", "error", "status", "task", "final_answer", "constraints")
_EMPTY: Final[Mapping[Any, Any]] = MappingProxyType({})

Changes = tuple[Change, ...]


@dataclass(frozen=True)
class Found:
    """What a search came to.

    Arguments:
        ways: each way to let the call pass, all of the same number of changes; none if none was found.
        tried: how many changes were judged.
        why: why there is none: `nothing` that it reads lets it pass, `masked` is what it reads (`names`), or the
            `bound` was reached, or all up to `LARGEST` were `tried`; `otherwise`: it passes, whatever was recorded.
        names: the rules or paths that this is about.

    """

    ways: tuple[Changes, ...] = ()
    tried: int = 0
    why: Literal["found", "nothing", "masked", "bound", "tried", "otherwise"] = "found"
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class Refusal:
    """A rule that stands in the way.

    Arguments:
        name: the rule.
        looked: what its answer and its weight depend on.
        changes: what to try.
        alone: the rule and its pack, where the verdict is a refusal for as long as this rule fails.

    """

    name: str
    looked: Looked
    changes: Sequence[Change]
    alone: tuple[CompiledPack, CompiledRule] | None = None

    def stands(self, plan: ToolPlan, situation: Situation) -> bool:
        """Whether it is sure to stand in the way in another situation too."""
        if self.alone is None:
            return False
        pack, rule = self.alone
        roots, moment = situation.roots(plan), situation.moment()
        for part in (pack.active, rule.condition):
            if part is not None:
                answer = part(roots, moment)
                if answer.known and answer.value is not True:
                    return False
        return not rule.decides.holds(roots, moment)


@dataclass
class Search:
    """Searches what lets calls of one tool pass.

    Arguments:
        enforcer: judges.
        plan: the rules for the tool.
        tool: the tool.
        most: changes that are tried of one number.

    """

    enforcer: Enforcer
    plan: ToolPlan
    tool: Tool
    most: int = MOST
    _candidates: Candidates = field(init=False)
    _left: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self._candidates = Candidates(self.plan, self.tool.args)

    def run(self, situation: Situation) -> Found:
        """Return the smallest changes that let a refused call pass."""
        situation = self._filled(situation)
        for refusal in self._refusals(situation):
            if masked := [label for label, value in refusal.looked.reads.items() if holds_mask(value)]:
                return Found(why="masked", names=tuple(masked))
            if not refusal.changes:
                return Found(why="nothing", names=(refusal.name,))
        tried = 0
        for size in range(1, LARGEST + 1):
            self._left = self.most
            ways = tuple(islice(_once(self._ways(_Branch(situation, size))), _ENOUGH))
            tried += self.most - self._left
            if ways:
                return Found(ways, tried)
        return Found(tried=tried, why="tried" if self._left else "bound")

    def shown(self, found: Found, situation: Situation) -> list[Changes]:
        """Return the ways worth showing, the most natural first."""
        return chosen(found.ways, self._filled(situation))

    def pool(self, situation: Situation) -> list[Change]:
        """Return each single change that the search tries in a situation."""
        refusals = self._refusals(self._filled(situation))
        return list(_merged(change for refusal in refusals for change in refusal.changes).values())

    def _filled(self, situation: Situation) -> Situation:
        """The situation with the defaults of arguments that were left out, which rules see too."""
        args = {**self.plan.defaults, **situation.proposal.args}
        return replace(situation, proposal=Proposal(situation.proposal.tool, args))

    # ---- the search

    def _ways(self, branch: _Branch) -> Iterator[Changes]:
        """Yield each way to go on from a situation in which the call is refused."""
        refusals = self._refusals(branch.situation, branch.pool)
        if not refusals:
            return
        pool = _merged(change for refusal in refusals for change in refusal.changes)
        refusal = min(refusals, key=lambda one: len(one.changes))
        for change in refusal.changes:
            then = branch.grown(change, pool)
            if then is None or not self._left:
                continue
            self._left -= 1
            if (then.last or then.idle(branch, change)) and refusal.stands(self.plan, then.situation):
                continue
            if then.situation.passes(self.enforcer):
                if not then.more:
                    yield then.changes()
            elif not then.last:
                yield from self._ways(then)

    def _refusals(self, situation: Situation, pool: Mapping[Any, Change] = _EMPTY) -> list[Refusal]:
        """Return what stands in the way, and what to try; of `pool` and of each other's all that touches its reads."""
        findings = situation.judged(self.enforcer).failed
        found = [self._refusal(one.rule, situation) for one in findings if not lets_run(one.effect, None)]
        known = {**_merged(change for one in found if one is not None for change in one.changes), **pool}
        return [_widened(one, known.values()) for one in found if one is not None]

    def _refusal(self, name: str, situation: Situation) -> Refusal | None:
        """Return one rule that stands in the way; None for one that no change of values takes away."""
        if name == BAD_ARGUMENTS:
            return Refusal(name, Looked({}, (), {}), list(fitting_arguments(self.tool, situation.proposal.args)))
        pack = next((one for one in self.plan.packs if name.startswith(f"{one.name}/")), None)
        if pack is None:
            return None
        rule = next((one for one in pack.rules if one.name == name), None)
        alone = None if pack.by_priority or pack.allow_list or rule is None else (pack, rule)
        seen, changes = self._candidates.of(_parts(pack, [alone[1]] if alone else pack.rules), situation)
        return Refusal(name, seen, changes, alone)


def _widened(refusal: Refusal, pool: Iterable[Change]) -> Refusal:
    """Return what stands in the way with all of a pool that touches what it read."""
    touched = list(refusal.looked.touched())
    more = (change for change in pool if any(change.touches(one) for one in touched))
    return replace(refusal, changes=list(_merged((*refusal.changes, *more)).values()))


@dataclass(frozen=True)
class _Branch:
    """A situation that a search has come to.

    Arguments:
        situation: with all changes made.
        more: how many further values may change.
        made: the changes.
        fresh: paths among them that were not known before; what is below them is free to change.
        refined: how many such changes there were.
        pool: changes that were tried on the way.

    """

    situation: Situation
    more: int
    made: Changes = ()
    fresh: frozenset[Path] = frozenset()
    refined: int = 0
    pool: Mapping[Any, Change] = field(default_factory=dict)

    @property
    def last(self) -> bool:
        """Whether nothing more may change."""
        return not self.more and (not self.fresh or self.refined >= _REFINED)

    def idle(self, before: _Branch, change: Change) -> bool:
        """Whether the change refined what was there already, so that it must be of use by itself."""
        if self.refined == before.refined or isinstance(change.at, Question):
            return False
        return before.situation.value(change.at) is not ABSENT

    def grown(self, change: Change, pool: Mapping[Any, Change]) -> _Branch | None:
        """Return the branch with one more change; None where it is none."""
        free = not isinstance(change.at, Question) and any(begins(path, change.at) for path in self.fresh)
        if not free and (not self.more or any(change.overlaps(one) for one in self.made)):
            return None
        if free and (self.refined >= _REFINED or change.at in self.fresh):
            return None
        try:
            then = self.situation.changed(change)
        except PathError:
            return None
        if free:
            return replace(self, situation=then, refined=self.refined + 1, pool=pool)
        fresh = self.fresh
        if not isinstance(change.at, Question) and self.situation.value(change.at) is ABSENT:
            fresh |= {change.at}
        return _Branch(then, self.more - 1, (*self.made, change), fresh, self.refined, pool)

    def changes(self) -> Changes:
        """Return the changes, what was refined as it has become."""
        return tuple(
            one if isinstance(one.at, Question) else Change(one.at, self.situation.value(one.at)) for one in self.made
        )


def _parts(pack: CompiledPack, rules: Sequence[CompiledRule]) -> list[cel.Program]:
    programs = [pack.active, *(part for rule in rules for part in (rule.condition, rule.decides))]
    return [program for program in programs if program is not None]


def _merged(changes: Iterable[Change]) -> dict[Any, Change]:
    """Changes by what tells them apart."""
    merged: dict[Any, Change] = {}
    for change in changes:
        merged.setdefault((change.name, repr(change.value)), change)
    return merged


def _once(ways: Iterable[Changes]) -> Iterator[Changes]:
    seen = set()
    for way in ways:
        key = frozenset((change.name, repr(change.value)) for change in way)
        if key not in seen:
            seen.add(key)
            yield way


# What of it is shown


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
    """How far a number moves, odd fractions farthest; other values are all as far, to lose what is known is farther."""
    if change.value is ABSENT:
        return _FAR
    known = None if isinstance(change.at, Question) else situation.value(change.at)
    if type(known) not in (int, float) or type(change.value) not in (int, float):
        return 0.0
    return float(abs(change.value - known)) + (0.0 if change.value == round(change.value, 2) else _FAR)


def _rank(change: Change) -> int:
    """What a person can bring about goes before what is as it is, and before what would have to be unknown."""
    if isinstance(change.at, Question):
        return 0
    unknown = len(_ORDER) + 2 if change.value is ABSENT else 0
    return unknown + (1 if change.at[0] == "action" else 2 + _ORDER.index(str(change.at[1])))
