"""The smallest change of what a refused call was judged on that lets it pass.

A change that helps must touch something that each refusal looked at. So the search takes the refusal with the fewest
values to try, tries each, and goes on with what refuses then.

Invariants:
* A way is found by trying and proved by the enforcer's own verdict on the changed situation.
* One value is tried before two, two before three; all ways of the smallest number are found, within a bound.
* What was not known and is given a value may be given any: refining it counts as no second value.
* Nothing is claimed beyond what was tried.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any, Final, Literal

from ledgercli.enforcer import Enforcer
from ledgercli.paths import ABSENT, Path, PathError
from ledgercli.records import Proposal
from ledgercli.redaction import holds_mask
from ledgercli.rules import ToolPlan
from ledgercli.toolset import Tool
from ledgercli.why.ranking import Changes, chosen
from ledgercli.why.refusals import Refusal, Refusals
from ledgercli.why.situations import Change, Place, Question, Situation, at, begins, put

LARGEST: Final = 3  # values changed together
MOST: Final = 6_000  # changes that are judged of one number
_REFINED: Final = 6  # values inside one that was not known
_ENOUGH: Final = 200  # ways of one number
_LONGER: Final = 1_000  # changes that are judged after a first way was found
_EMPTY: Final[Mapping[Any, Any]] = MappingProxyType({})

_Pool = Mapping[Place, Mapping[Any, Change]]


@dataclass(frozen=True)
class Found:
    """What a search came to.

    Arguments:
        ways: each way to let the call pass, all of the same number of changes; none if none was found.
        tried: how many changes were judged.
        why: why there is none: `nothing` that it reads lets it pass, `masked` is what it reads (`names`), or the
            `bound` was reached, or all up to `LARGEST` were `tried`; `otherwise`: it passes, whatever was recorded.
        names: the rules or paths that this is about.
        bounded: whether the bound was reached among smaller changes, so that there may be a smaller way.

    """

    ways: tuple[Changes, ...] = ()
    tried: int = 0
    why: Literal["found", "nothing", "masked", "bound", "tried", "otherwise"] = "found"
    names: tuple[str, ...] = ()
    bounded: bool = False


@dataclass
class Search:
    """Searches what lets calls of one tool pass.

    Arguments:
        enforcer: judges.
        plan: the rules for the tool.
        tool: the tool.
        most: changes that are judged of one number.

    """

    enforcer: Enforcer
    plan: ToolPlan
    tool: Tool
    most: int = MOST
    _refusals: Refusals = field(init=False)
    _judged: int = field(default=0, init=False)  # of one number
    _until: int = field(default=0, init=False)
    _known: dict[Any, list[Refusal]] = field(default_factory=dict, init=False)  # what refuses, by what was changed
    _seen: set[Any] = field(default_factory=set, init=False)  # what was changed, of one number

    def __post_init__(self) -> None:
        self._refusals = Refusals(self.enforcer, self.plan, self.tool)

    def run(self, situation: Situation) -> Found:
        """Return the smallest changes that let a refused call pass."""
        situation = self._filled(situation)
        for refusal in self._refusals.of(situation):
            if masked := [label for label, value in refusal.looked.reads.items() if holds_mask(value)]:
                return Found(why="masked", names=tuple(masked))
            if not refusal.changes:
                return Found(why="nothing", names=(refusal.name,))
        tried, bounded = 0, False
        self._known = {}
        for size in range(1, LARGEST + 1):
            ways = self._of(_Branch(situation, size))
            tried += self._judged
            if ways:
                return Found(ways, tried, bounded=bounded)
            bounded = bounded or self._judged >= self.most
        return Found(tried=tried, why="bound" if bounded else "tried")

    def shown(self, found: Found, situation: Situation) -> list[Changes]:
        """Return the ways worth showing, the most natural first."""
        situation = self._filled(situation)
        return [self._bare(way, situation) for way in chosen(found.ways, situation)]

    def _bare(self, way: Changes, situation: Situation) -> Changes:
        """Return a way without what need not be known of a record that was not."""
        for place, change in enumerate(way):
            fresh = not isinstance(change.at, Question) and situation.value(change.at) is ABSENT
            for path in _entries(change.value) if fresh else ():
                if at(way[place].value, path) is not ABSENT:
                    less = Change(change.at, put(way[place].value, path, ABSENT))
                    barer = (*way[:place], less, *way[place + 1 :])
                    way = barer if situation.changed(*barer).passes(self.enforcer) else way
        return way

    def pool(self, situation: Situation) -> list[Change]:
        """Return each single change that the search tries in a situation."""
        refusals = self._refusals.of(self._filled(situation))
        return [change for one in _pooled(refusals, _EMPTY).values() for change in one.values()]

    def _filled(self, situation: Situation) -> Situation:
        """The situation with the defaults of arguments that were left out, which rules see too."""
        args = {**self.plan.defaults, **situation.proposal.args}
        return replace(situation, proposal=Proposal(situation.proposal.tool, args))

    # ---- the search

    def _of(self, branch: _Branch) -> tuple[Changes, ...]:
        """Return the ways of one number of values; where there is one, others are looked for a little longer."""
        self._judged, self._until, self._seen = 0, self.most, set()
        ways: dict[Any, Changes] = {}
        for way in self._ways(branch):
            if not ways:
                self._until = min(self.most, self._judged + _LONGER)
            ways.setdefault(frozenset(change.key for change in way), way)
            if len(ways) == _ENOUGH:
                break
        return tuple(ways.values())

    def _ways(self, branch: _Branch) -> Iterator[Changes]:
        """Yield each way to go on from a situation in which the call is refused."""
        refusals = self._refusing(branch)
        bound = [one for one in refusals if not any(map(one.reads_below, branch.fresh))]
        if not branch.may_lift(bound):
            return
        pool = _pooled(refusals, branch.pool)
        refusal, changes = min(((one, _touching(one, pool)) for one in refusals), key=lambda found: len(found[1]))
        for change in changes:
            then = branch.grown(change, pool)
            if then is None or then.key in self._seen or self._judged >= self._until:
                continue
            if not then.more and not all(one.touched(change) for one in bound):
                continue
            self._seen.add(then.key)
            self._judged += 1
            yield from self._tried(branch, then, change, refusal, refusals)

    def _tried(
        self, branch: _Branch, then: _Branch, change: Change, refusal: Refusal, refusals: Sequence[Refusal]
    ) -> Iterator[Changes]:
        """Yield the ways that begin with a change."""
        touched = [refusal, *(one for one in refusals if one is not refusal and one.touched(change))]
        if then.last or then.idle(branch, change):
            lifted = touched if then.last else touched[:1]
            if any(self._refusals.stands(one, then.situation) for one in lifted):
                return
        kept = [one for one in refusals if one not in touched]
        if then.last:
            if not kept and not then.more and then.situation.passes(self.enforcer):
                yield then.changes()
            return
        if then.key not in self._known:
            self._known[then.key] = self._refusals.of(then.situation, kept)
        if self._known[then.key]:
            yield from self._ways(then)
        elif not then.more and then.situation.passes(self.enforcer):
            yield then.changes()

    def _refusing(self, branch: _Branch) -> list[Refusal]:
        if branch.key not in self._known:
            self._known[branch.key] = self._refusals.of(branch.situation)
        return self._known[branch.key]


@dataclass(frozen=True, eq=False)
class _Branch:
    """A situation that a search has come to.

    Arguments:
        situation: with all changes made.
        more: how many further values may change.
        made: the changes.
        fresh: paths among them that were not known before; what is below them is free to change.
        refined: what was changed there.
        pool: changes that were tried on the way.

    """

    situation: Situation
    more: int
    made: Changes = ()
    fresh: frozenset[Path] = frozenset()
    refined: Changes = ()
    pool: _Pool = field(default_factory=dict)

    @cached_property
    def key(self) -> Any:
        """What tells its situation from others."""
        return frozenset(change.key for change in (*self.made, *self.refined))

    @property
    def last(self) -> bool:
        """Whether nothing more may change."""
        return not self.more and (not self.fresh or len(self.refined) >= _REFINED)

    def idle(self, before: _Branch, change: Change) -> bool:
        """Whether the change refined what was there already, so that it must be of use by itself."""
        if len(self.refined) == len(before.refined) or isinstance(change.at, Question):
            return False
        return before.situation.value(change.at) is not ABSENT

    def may_lift(self, bound: Sequence[Refusal]) -> bool:
        """Whether the values that may still change can touch all refusals that no refining touches."""
        if self.more > 1 or not bound:
            return True
        first, *others = bound
        return self.more == 1 and any(all(one.reads_at(read) for one in others) for read in first.reads)

    def grown(self, change: Change, pool: _Pool) -> _Branch | None:
        """Return the branch with one more change; None where it is none."""
        free = not isinstance(change.at, Question) and any(begins(path, change.at) for path in self.fresh)
        if not free and (not self.more or any(change.overlaps(one) for one in self.made)):
            return None
        if free and (len(self.refined) >= _REFINED or change.at in self.fresh):
            return None
        try:
            then = self.situation.changed(change)
        except PathError:
            return None
        if free:
            return replace(self, situation=then, refined=(*self.refined, change), pool=pool)
        fresh = self.fresh
        if not isinstance(change.at, Question) and self.situation.value(change.at) is ABSENT:
            fresh |= {change.at}
        return _Branch(then, self.more - 1, (*self.made, change), fresh, self.refined, pool)

    def changes(self) -> Changes:
        """Return the changes, what was refined as it has become."""
        return tuple(
            one if isinstance(one.at, Question) else Change(one.at, self.situation.value(one.at)) for one in self.made
        )


def _pooled(refusals: Iterable[Refusal], pool: _Pool) -> dict[Place, dict[Any, Change]]:
    """Return by place what is tried for the sake of any refusal, and what was tried before."""
    pooled: dict[Place, dict[Any, Change]] = {}
    for refusal in refusals:
        for change in refusal.changes:
            pooled.setdefault(change.place, {}).setdefault(change.key, change)
    for place, changes in pool.items():
        if place in pooled:
            pooled[place] = {**changes, **pooled[place]}
        else:
            pooled[place] = dict(changes)
    return pooled


def _touching(refusal: Refusal, pool: _Pool) -> list[Change]:
    """Return what to try against a refusal: what is tried for its own sake, then all else that touches it."""
    own = {change.key: change for change in refusal.changes}
    for changes in pool.values():
        first = next(iter(changes.values()))
        if refusal.touched(first):
            own.update((key, change) for key, change in changes.items() if key not in own)
    return list(own.values())


def _entries(value: Any, path: Path = ()) -> Iterator[Path]:
    """Yield the paths in a map and the maps in it, from above."""
    for key, item in value.items() if isinstance(value, Mapping) else ():
        yield (*path, key)
        yield from _entries(item, (*path, key))
