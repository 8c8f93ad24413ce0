"""What stands in the way of a call: which rules refuse it, and what their refusal depends on.

Invariants:
* A rule that reads the same values answers the same; so what no change touches is not judged again.
* Rules of a pack that are weighed against each other stand in the way together, as the enforcer says.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from ledgercli import cel
from ledgercli.enforcer import BAD_ARGUMENTS, Enforcer
from ledgercli.paths import Path
from ledgercli.records import lets_run
from ledgercli.redaction import holds_mask
from ledgercli.rules import CompiledPack, CompiledRule, ToolPlan
from ledgercli.toolset import Tool
from ledgercli.why.candidates import Candidates
from ledgercli.why.looking import Looked, looked
from ledgercli.why.plausible import fitting_arguments
from ledgercli.why.situations import Change, Place, Question, Read, Situation, begins, read

_ARGS = read("action.args")


@dataclass(frozen=True, eq=False)
class Unit:
    """What refuses by itself.

    Arguments:
        pack: the pack.
        rule: of it; None: all of its rules, as they are weighed against each other.

    """

    pack: CompiledPack
    rule: CompiledRule | None

    @cached_property
    def parts(self) -> Sequence[cel.Program]:
        """All that its answer depends on."""
        rules = self.pack.rules if self.rule is None else [self.rule]
        programs = [self.pack.active, *(part for rule in rules for part in (rule.condition, rule.decides))]
        return [program for program in programs if program is not None]

    def refuses(self, roots: Mapping[str, Any], moment: Any) -> bool:
        """Whether a rule that stands alone refuses."""
        assert self.rule is not None
        for part in (self.pack.active, self.rule.condition):
            if part is not None:
                answer = part(roots, moment)
                if answer.known and answer.value is not True:
                    return False
        return not self.rule.decides.holds(roots, moment)


@dataclass(frozen=True, eq=False)
class Refusal:
    """Something that refuses in a situation.

    Arguments:
        name: the rule.
        unit: what refuses; None: the arguments do not fit.
        situation: in which it does.
        looked: what that depends on.
        whose: finds values to try.
        tool: the tool.

    """

    name: str
    unit: Unit | None
    situation: Situation
    looked: Looked
    whose: Candidates
    tool: Tool

    @cached_property
    def reads(self) -> Sequence[Read]:
        """What it looked at, taken apart."""
        return [_ARGS] if self.unit is None else list(self.looked.touched())

    @cached_property
    def changes(self) -> Sequence[Change]:
        """What to try for its own sake."""
        if self.unit is None:
            return list(fitting_arguments(self.tool, self.situation.proposal.args))
        return list(self.whose.changes(self.unit.parts, self.situation, self.looked))

    def touched(self, change: Change) -> bool:
        """Whether a change may make it answer otherwise."""
        known = self._touched.get(change.place)
        if known is None:
            known = self._touched[change.place] = any(change.touches(one) for one in self.reads)
        return known

    def reads_at(self, other: Read) -> bool:
        """Whether something that it looked at may change together with another read."""
        return any(_meet(one, other) for one in self.reads)

    def reads_below(self, path: Path) -> bool:
        """Whether it looked at something at or below a path."""
        return any(begins(path, one.path) or begins(one.path, path) for one in self.reads if one.path)

    _touched: dict[Place, bool] = field(default_factory=dict, init=False, repr=False)


@dataclass(frozen=True)
class Refusals:
    """Finds what refuses the calls of one tool.

    Arguments:
        enforcer: judges.
        plan: the rules for the tool.
        tool: the tool.

    """

    enforcer: Enforcer
    plan: ToolPlan
    tool: Tool

    @cached_property
    def _units(self) -> Sequence[Unit]:
        return list(_units(self.plan.packs))

    @cached_property
    def _candidates(self) -> Candidates:
        return Candidates(self.plan, self.tool.args)

    def of(self, situation: Situation, kept: Iterable[Refusal] = ()) -> list[Refusal]:
        """Return what refuses in a situation.

        Arguments:
            situation: the situation.
            kept: what is known to refuse in it, as nothing that it looked at is otherwise.

        """
        args = situation.proposal.args
        if not self.plan.fits(args) and not holds_mask(args):
            return [self._refusal(BAD_ARGUMENTS, None, situation)]
        known = {refusal.unit: refusal for refusal in kept}
        roots, moment = situation.roots(self.plan), situation.moment()
        found = []
        for unit in self._units:
            if unit in known:
                found.append(known[unit])
            elif unit.rule is None:
                found += self._together(unit, situation)
            elif unit.refuses(roots, moment):
                found.append(self._refusal(unit.rule.name, unit, situation))
        return found

    def stands(self, refusal: Refusal, situation: Situation) -> bool:
        """Whether a refusal is sure to stand in another situation too; it was touched."""
        if refusal.unit is None or refusal.unit.rule is None:
            return False
        return refusal.unit.refuses(situation.roots(self.plan), situation.moment())

    def _together(self, unit: Unit, situation: Situation) -> Iterator[Refusal]:
        for one in situation.judged(self.enforcer).failed:
            if one.rule.startswith(f"{unit.pack.name}/") and not lets_run(one.effect, None):
                yield self._refusal(one.rule, unit, situation)
                return

    def _refusal(self, name: str, unit: Unit | None, situation: Situation) -> Refusal:
        seen = Looked({}, (), {}) if unit is None else looked(unit.parts, self.plan, situation)
        return Refusal(name, unit, situation, seen, self._candidates, self.tool)


def _meet(one: Read, other: Read) -> bool:
    """Whether one change can touch both."""
    if isinstance(one.at, Question) and isinstance(other.at, Question) and one.at.key == other.at.key:
        return True
    return bool(one.path and other.path) and (begins(one.path, other.path) or begins(other.path, one.path))


def _units(packs: Iterable[CompiledPack]) -> Iterator[Unit]:
    for pack in packs:
        if pack.by_priority or pack.allow_list:
            yield Unit(pack, None)
            continue
        for rule in pack.rules:
            if not rule.shadow and not rule.is_grant and not lets_run(rule.effect, None):
                yield Unit(pack, rule)
