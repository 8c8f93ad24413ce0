"""The rules of two versions for one tool, laid side by side, with what each of them comes to in a situation.

Invariants:
* A rule comes to what the enforcer makes of it: what cannot be told counts as failed, a grant that cannot be told
  does not grant, a pack that is not active says nothing.
* `same` is said of two rules only if they come to the same in every situation, and say the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import Any

from ledgercli import cel
from ledgercli.diff.packs.normal import digest, digest_of_text
from ledgercli.diff.packs.versions import Setting, Version
from ledgercli.paths import same
from ledgercli.rules import CompiledPack, CompiledRule, ToolPlan
from ledgercli.why.situations import Situation


class Outcome(Enum):
    """What a rule comes to."""

    OFF = "off"  # it does not apply, or is a grant that does not hold
    PASS = "pass"  # noqa: S105 - no password
    FAIL = "fail"
    UNTOLD = "untold"  # it cannot be told, which counts as failed, and says something else
    GRANT = "grant"


@dataclass(frozen=True, eq=False)
class Half:
    """One version's rule."""

    pack: CompiledPack
    rule: CompiledRule

    @cached_property
    def programs(self) -> tuple[cel.Program, ...]:
        """All that its outcome depends on."""
        every = (self.pack.active, self.rule.condition, self.rule.decides)
        return tuple(program for program in every if program is not None)

    def outcome(self, roots: Mapping[str, Any], moment: Any) -> Outcome:
        """Return what it comes to."""
        rule = self.rule
        if not _speaks(self.pack, roots, moment):
            return Outcome.OFF
        applies = rule.condition(roots, moment) if rule.condition is not None else None
        if applies is not None and applies.known and applies.value is not True:
            return Outcome.OFF
        decided = rule.decides(roots, moment) if applies is None or applies.known else None
        told = decided is not None and decided.known
        holds = decided is not None and told and decided.value is True
        if rule.is_grant:
            return Outcome.GRANT if holds else Outcome.OFF
        return Outcome.PASS if holds else Outcome.FAIL if told else Outcome.UNTOLD

    def distance(self, roots: Mapping[str, Any], moment: Any, *, fails: bool) -> int:
        """How much of it had no value: the further an evaluation comes, the less is missing for another outcome."""
        programs = self.programs if fails else self.programs[:-1]
        left = 0
        for program in programs:
            valued = {node for node, value in program.explain(roots, moment).values if not _broken(value)}
            left += sum(1 for node in cel.walk(program.checked.node) if node not in valued)
        return left

    @cached_property
    def meaning(self) -> tuple[Any, ...]:
        """What tells its outcome from that of another."""
        rule = self.rule
        return rule.is_grant, digest(self.pack.when), digest(rule.when), digest(rule.what)

    @cached_property
    def weight(self) -> tuple[Any, ...]:
        """What its failing does, and says."""
        rule = self.rule
        unsaid = (rule.model.name, rule.model.check) if rule.error is None else None
        said = digest_of_text(rule.error), unsaid, digest_of_text(rule.hint)
        return rule.effect, rule.halt, rule.shadow, rule.priority, said

    def looks_at(self) -> Iterator[tuple[Any, ...]]:
        """Yield the paths that it and its texts look at."""
        rule = self.rule
        for checked in (self.pack.when, rule.when, rule.what):
            yield from checked.paths if checked is not None else ()
        for text in (rule.error, rule.hint):
            for part in text.parts if text is not None else ():
                yield from part.paths if isinstance(part, cel.Checked) else ()


@dataclass(eq=False)
class Unit:
    """A rule with its counterpart.

    Arguments:
        name: without the name of the pack itself.
        a: A's, if it has it.
        b: B's, if it has it.
        same: whether both are sure to come to the same, and to say the same.

    """

    name: str
    a: Half | None
    b: Half | None
    same: bool

    @property
    def halves(self) -> tuple[Half | None, Half | None]:
        """A's and B's."""
        return self.a, self.b

    @cached_property
    def weighs_the_same(self) -> bool:
        """Whether failing does and says the same."""
        return self.a is not None and self.b is not None and self.a.weight == self.b.weight


@dataclass(eq=False)
class Sides:
    """All that judging one tool under both versions needs.

    Arguments:
        setting: the versions.
        tool: the tool's name.
        plans: A's and B's rules for it.
        units: the rules side by side.
        moved: constraints whose defaults differ.
        otherwise: settings of packs that differ: `resolve`, `default`, `active`, `order`.

    """

    setting: Setting
    tool: str
    plans: tuple[ToolPlan, ToolPlan]
    units: list[Unit]
    moved: frozenset[str]
    otherwise: tuple[str, ...]

    @property
    def versions(self) -> tuple[Version, Version]:
        """A and B."""
        return self.setting.a, self.setting.b

    def agree(self) -> bool:
        """Whether all verdicts are sure to be the same."""
        return not self.otherwise and all(unit.same for unit in self.units)

    def outcomes(self, a: Situation, b: Situation) -> tuple[tuple[Outcome, Outcome], ...]:
        """Return what each rule comes to on each side; one that is not there is off."""
        roots = a.roots(self.plans[0]), b.roots(self.plans[1])
        moments = a.moment(), b.moment()
        told = []
        for unit in self.units:
            if unit.same and unit.a is not None:
                told.append((unit.a.outcome(roots[0], moments[0]),) * 2)
                continue
            one = unit.a.outcome(roots[0], moments[0]) if unit.a is not None else Outcome.OFF
            other = unit.b.outcome(roots[1], moments[1]) if unit.b is not None else Outcome.OFF
            told.append((one, other))
        return tuple(told)

    @property
    def switches(self) -> list[cel.Program]:
        """What decides whether packs refuse that for which they have no rule."""
        return [
            pack.active for plan in self.plans for pack in plan.packs if pack.allow_list and pack.active is not None
        ]

    def refusing(self, a: Situation, b: Situation) -> tuple[bool, ...]:
        """Return for each such pack whether it is active."""
        return tuple(
            _speaks(pack, situation.roots(plan), situation.moment())
            for plan, situation in zip(self.plans, (a, b), strict=True)
            for pack in plan.packs
            if pack.allow_list
        )


def _speaks(pack: CompiledPack, roots: Mapping[str, Any], moment: Any) -> bool:
    """Whether a pack is active; that this cannot be told counts as yes."""
    if pack.active is None:
        return True
    active = pack.active(roots, moment)
    return not active.known or active.value is True


def _broken(value: Any) -> bool:
    return isinstance(value, (cel.CannotTell, cel.EvalError))


def sides(setting: Setting, tool: str) -> Sides:
    """Lay the rules for a tool side by side."""
    a, b = setting.a.enforcer.plan(tool), setting.b.enforcer.plan(tool)
    assert a is not None, "both know the same tools"
    assert b is not None, "both know the same tools"
    moved = _moved(setting)
    mine, theirs = _halves(a, setting.a), _halves(b, setting.b)
    units = [
        Unit(name, mine.get(name), theirs.get(name), _same(mine.get(name), theirs.get(name), moved))
        for name in dict.fromkeys([*mine, *theirs])
    ]
    both = [[name for name in one if name in other] for one, other in ((mine, theirs), (theirs, mine))]
    otherwise = dict.fromkeys(_otherwise(setting, a, b))
    if both[0] != both[1]:
        otherwise["order"] = None
    return Sides(setting, tool, (a, b), units, moved, tuple(otherwise))


def _moved(setting: Setting) -> frozenset[str]:
    a, b = setting.a.defaults, setting.b.defaults
    return frozenset(
        name
        for name in {**a, **b}
        if name not in setting.given and not (name in a and name in b and same(a[name], b[name]))
    )


def _halves(plan: ToolPlan, version: Version) -> dict[str, Half]:
    return {version.short(rule.name): Half(pack, rule) for pack in plan.packs for rule in pack.rules}


def _same(a: Half | None, b: Half | None, moved: frozenset[str]) -> bool:
    if a is None or b is None or a.meaning != b.meaning or a.weight != b.weight:
        return False
    return not any(_reads(path, moved) for path in a.looks_at())


def _reads(path: tuple[Any, ...], moved: frozenset[str]) -> bool:
    if path[:2] != ("state", "constraints"):
        return False
    return len(path) < 3 or path[2] is None or path[2] in moved


def _otherwise(setting: Setting, a: ToolPlan, b: ToolPlan) -> Iterator[str]:
    """Yield what packs say for all their rules, and say otherwise."""
    mine, theirs = (
        {("" if pack.name == version.pack.name else pack.name): pack for pack in plan.packs}
        for plan, version in ((a, setting.a), (b, setting.b))
    )
    for name in dict.fromkeys([*mine, *theirs]):
        one, other = mine.get(name), theirs.get(name)
        if (one.by_priority if one else False) != (other.by_priority if other else False):
            yield "resolve"
        if (one.allow_list if one else False) != (other.allow_list if other else False):
            yield "default"
        if digest(one.when if one else None) != digest(other.when if other else None) or any(
            _reads(path, _moved(setting)) for half in (one, other) if half and half.when for path in half.when.paths
        ):
            yield "active"
