"""Cases observed: what each rule, and each condition in it, says of them.

Invariants:
* Only cases that passed count: what a failing case shows is not yet as it should be.
* A *condition* is the smallest part of an expression that is true or false by itself: what `&&`, `||`, `!` and `? :`
  join, also inside defines and loops. It is counted once, in the text where it stands, whatever tool it is asked for.
* Rules are asked as they stand, nothing folded away, so that what can never be asked for a tool is not counted for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from ledgercli import cel
from ledgercli.casework.coverage import ConditionSeen, Coverage, RuleSeen
from ledgercli.cel import evaluate as precise
from ledgercli.cel import syntax
from ledgercli.documents import Document, Place
from ledgercli.enforcer import DEFAULT_DENY
from ledgercli.functions import Moment
from ledgercli.policy import Pack, RuleModel
from ledgercli.records import Verdict
from ledgercli.rulebook import Rulebook
from ledgercli.why.situations import Situation

_KEYS: Final = ("condition", "check", "grant")


class Observer:
    """Sees what each rule says of cases.

    Arguments:
        rules: what judges them.
        packs: the packs that they are about; of others nothing is counted.

    """

    def __init__(self, rules: Rulebook, packs: Iterable[Pack]) -> None:
        self.coverage = Coverage()
        self._rules, self._packs = rules, list(packs)
        self._checked: dict[tuple[int, tuple[str | int, ...], str], cel.Checked | None] = {}
        self._atoms: dict[cel.Node, frozenset[cel.Node]] = {}
        for pack in self._packs:
            for number, rule in enumerate(pack.file.rules):
                self._rule(pack, rule.name, ("rules", number), grants=rule.grant is not None)
                for key in _KEYS:
                    self._declare(pack, ("rules", number, key), getattr(rule, key))
            if pack.file.default == "deny":
                self._rule(pack, DEFAULT_DENY, ("default",))
            self._declare(pack, ("active",), pack.file.active)

    def see(self, situation: Situation, verdict: Verdict) -> None:
        """Take in a case that passed."""
        plan = self._rules.enforcer.plan(situation.proposal.tool)
        if plan is None:
            return
        roots, moment = situation.roots(plan), situation.moment()
        failed = {finding.rule for finding in verdict.failed}
        for pack in self._packs:
            active = self._asked(pack, ("active",), pack.file.active, roots, moment)
            off = active is not None and active.known and active.value is not True
            for number, rule in enumerate(pack.file.rules):
                seen = self._rule(pack, rule.name, ("rules", number))
                if off or (rule.tools is not None and plan.tool not in rule.tools):
                    seen.other += 1
                else:
                    self._see(pack, number, rule, seen, roots, moment)
            if pack.file.default == "deny":
                seen = self._rule(pack, DEFAULT_DENY, ("default",))
                if f"{pack.name}/{DEFAULT_DENY}" in failed:
                    seen.failed += 1
                else:
                    seen.other += off
                    seen.passed += not off

    def _see(  # noqa: PLR0913 - a rule, and what it is asked in
        self, pack: Pack, number: int, rule: RuleModel, seen: RuleSeen, roots: dict[str, Any], moment: Moment
    ) -> None:
        when = self._asked(pack, ("rules", number, "condition"), rule.condition, roots, moment)
        if when is not None and when.known and when.value is not True:
            seen.other += 1
            return
        key = "grant" if rule.grant is not None else "check"
        text = rule.grant if rule.grant is not None else rule.check
        answer = when
        if when is None or when.known:
            answer = self._asked(pack, ("rules", number, key), text, roots, moment)
        if answer is None or not answer.known:
            seen.untold += 1
        elif (answer.value is True) == seen.grants:
            seen.failed += 1
        else:
            seen.passed += 1

    def _asked(
        self, pack: Pack, place: Place, text: str | None, roots: dict[str, Any], moment: Moment
    ) -> cel.Answer | None:
        """Evaluate an expression as it stands, and count its conditions; None where there is none."""
        checked = None if text is None else self._whole(pack, place, text, roots["action"]["tool"])
        if checked is None:
            return None
        explained = precise.explain(checked, roots, moment)
        atoms = self._atoms.get(checked.node)
        if atoms is None:
            atoms = self._atoms[checked.node] = frozenset(atoms_of(checked.node))
        for node, value in explained.values:
            if node in atoms:
                self._count(node, value)
        return explained.answer

    def _whole(self, pack: Pack, place: Place, text: str, tool: str) -> cel.Checked | None:
        """Return an expression for a tool, nothing folded away."""
        known = (id(pack), tuple(place), tool)
        if known not in self._checked:
            vocabulary = self._rules.vocabulary
            expr = vocabulary.parsed(pack.document, place, text)
            env = vocabulary.rule_env(pack, tool, strict=False)
            self._checked[known] = None if expr is None else cel.check(expr, env, cel.BOOL)
        return self._checked[known]

    def _count(self, node: cel.Node, value: Any) -> None:
        seen = self._condition(node)
        if value is True:
            seen.held += 1
        elif value is False:
            seen.failed += 1
        else:
            seen.untold += 1

    # ---- what there is

    def _declare(self, pack: Pack, place: Place, text: str | None) -> None:
        """Enter every condition of an expression, so that those that are never asked stand there too."""
        if text is None:
            return
        vocabulary = self._rules.vocabulary
        expr = vocabulary.parsed(pack.document, place, text)
        if expr is None:
            return
        env = vocabulary.rule_env(pack, None, strict=False)
        for node in atoms_of(cel.check(expr, env, cel.BOOL).node):
            self._condition(node)

    def _condition(self, node: cel.Node) -> ConditionSeen:
        document, place, _ = _label(node)
        offset = _offset(document, place, node.start)
        key = (document.source.name, offset, _offset(document, place, node.end))
        seen = self.coverage.conditions.get(key)
        if seen is None:
            line, column = document.line_column(offset)
            seen = ConditionSeen(cel.render(node), document.source.name, line, column)
            self.coverage.conditions[key] = seen
        return seen

    def _rule(self, pack: Pack, name: str, place: Place, *, grants: bool = False) -> RuleSeen:
        key = (pack.document.source.name, name)
        seen = self.coverage.rules.get(key)
        if seen is None:
            line, _ = pack.document.line_column(pack.document.mark((*place, "name")).start)
            seen = self.coverage.rules[key] = RuleSeen(f"{pack.name}/{name}", key[0], line, grants)
        return seen


def atoms_of(node: cel.Node) -> Iterator[cel.Node]:
    """Yield the conditions of a part that is true or false."""
    match node:
        case syntax.Expand():
            yield from atoms_of(node.body)
        case syntax.Logic():
            for operand in node.operands:
                yield from atoms_of(operand)
        case syntax.Unary(operator="!"):
            yield from atoms_of(node.operand)
        case syntax.Conditional():
            for part in (node.condition, node.then, node.otherwise):
                yield from atoms_of(part)
        case syntax.Literal():
            return
        case _:
            yield node
            yield from _inside(node)


def _inside(node: cel.Node) -> Iterator[cel.Node]:
    """Yield the conditions inside a part that is a value: of loops, of choices, of defines."""
    looped = node.condition if isinstance(node, syntax.Macro) else None
    for below in syntax.children(node):
        yield from atoms_of(below) if below is looped else _value(below)


def _value(node: cel.Node) -> Iterator[cel.Node]:
    """Yield the conditions of a part that is a value."""
    if isinstance(node, syntax.Conditional):
        yield from atoms_of(node.condition)
        for part in (node.then, node.otherwise):
            yield from _value(part)
    else:
        yield from _inside(node)


def _label(node: cel.Node) -> tuple[Document, Place, bool]:
    label: Any = node.source.label  # every source that the vocabulary makes carries these
    document, place, key = label
    return document, place, key


def _offset(document: Document, place: Place, position: int) -> int:
    mark = document.mark(place)
    return mark.start + position if mark.scalar is None else mark.scalar.offset(position)
