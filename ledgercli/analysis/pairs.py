"""Rules beside each other: duplicates, and rules that a wider one or a grant hides.

Invariants:
* Only rules of one pack are compared: packs combine strictest, and which of them meet is a scenario's choice.
* "Hidden" means that the effect of every verdict is the same without the rule; its words may still be missed.
* A rule that has a finding of its own is not compared.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ledgercli.analysis.context import Context, Judged, Subject
from ledgercli.analysis.findings import Finding, at_place, of_rule
from ledgercli.analysis.formulas import FALSE, TRUE, UNKNOWN, All, Formula, terms_of
from ledgercli.analysis.solver import Wanted
from ledgercli.analysis.terms import Term
from ledgercli.enforcer import STRICTNESS
from ledgercli.policy import Pack

_FAILS = FALSE | UNKNOWN


def check(context: Context, pack: Pack, sound: Sequence[Subject]) -> Iterator[Finding]:
    """Yield what is wrong with rules of a pack beside one another.

    Arguments:
        context: what is analysed together.
        pack: the pack.
        sound: its rules without findings of their own.

    """
    compared = _Compared(context, pack)
    checks = [one for one in sound if one.enforced]
    grants = [one for one in context.of_pack(pack) if one.model.grant is not None and one.model.mode == "enforce"]
    told: set[int] = set()
    for subject in checks:
        others = [one for one in checks if one is not subject and one.number not in told]
        found = compared.hidden_by_grant(subject, grants) or compared.hidden(subject, others)
        if found is not None:
            told.add(subject.number)
            yield found
    shadowed = [one for one in sound if one.model.grant is None and one.model.mode == "shadow"]
    for number, subject in enumerate(shadowed):
        found = compared.repeated(subject, shadowed[:number])
        if found is not None:
            yield found
    yield from _grants(pack, sound, grants, [one for one in context.of_pack(pack) if one.enforced])


class _Compared:
    """Questions about pairs of rules of one pack."""

    def __init__(self, context: Context, pack: Pack) -> None:
        self._context = context
        self._by_priority = pack.file.resolve == "priority"
        self._terms: dict[Formula, frozenset[Term]] = {}

    def hidden_by_grant(self, subject: Subject, grants: Sequence[Subject]) -> Finding | None:
        """Return the finding about a rule that a grant always overrides."""
        if not self._by_priority:
            return None
        for grant in grants:
            higher = grant.model.priority > subject.model.priority and not subject.model.failing.halt
            if higher and self._covers(subject, grant, _holds):
                message = f"whenever {subject.model.name} fails, the grant {grant.model.name} overrides it"
                notes = (f"{grant.model.name} stands at {grant.line()} and has the higher priority",)
                return _finding(subject, "hidden-by-grant", message, notes, grant)
        return None

    def hidden(self, subject: Subject, others: Sequence[Subject]) -> Finding | None:
        """Return the finding about a rule that never decides."""
        for other in others:
            if not self._decides_as_much(subject, other) or not self._covers(subject, other, _passes):
                continue
            if self._same(subject, other):
                if other.number > subject.number:
                    continue  # the later one is called the duplicate
                return _repeated(subject, other)
            message = f"whenever {subject.model.name} fails, {other.model.name} fails too and decides"
            return _finding(subject, "hidden-rule", message, self._why(subject, other), other)
        return None

    def repeated(self, subject: Subject, others: Sequence[Subject]) -> Finding | None:
        """Return the finding about a rule that says what an earlier one says."""
        for other in others:
            same_effect = subject.model.failing.effect == other.model.failing.effect
            if same_effect and self._covers(subject, other, _passes) and self._covers(other, subject, _passes):
                return _repeated(subject, other)
        return None

    def _same(self, subject: Subject, other: Subject) -> bool:
        return self._decides_as_much(other, subject) and self._covers(other, subject, _passes)

    def _decides_as_much(self, subject: Subject, other: Subject) -> bool:
        """Whether the other rule's failing leaves nothing to decide for this one's."""
        mine, its = subject.model, other.model
        if mine.failing.halt and not its.failing.halt:
            return False
        stricter = STRICTNESS[its.failing.effect] - STRICTNESS[mine.failing.effect]
        if not self._by_priority or mine.priority == its.priority:
            return stricter >= 0
        return its.priority > mine.priority and (stricter == 0 or not mine.failing.halt)

    def _covers(self, subject: Subject, other: Subject, spared: object) -> bool:
        """Whether the other rule speaks (fails, or grants) whenever this one fails."""
        if not subject.reached.keys() & other.reached.keys():
            return False
        for tool, mine in subject.reached.items():
            its = other.reached.get(tool)
            if its is None:
                if self._context.possible(tool, [*subject.active(mine), (mine.rule, _FAILS)]):
                    return False
                continue
            if not self._may_meet(mine.rule, its):
                return False
            wanted: list[Wanted] = [*subject.active(mine), (mine.rule, _FAILS), *spared(its)]  # type: ignore[operator]
            if self._context.possible(tool, wanted):
                return False
        return True

    def _may_meet(self, rule: Formula, its: Judged) -> bool:
        """Whether two rules have anything to do with each other: without it one says nothing of the other."""
        whole = self._of(its.rule)
        return not whole or bool(whole & self._of(rule))

    def _of(self, formula: Formula) -> frozenset[Term]:
        if formula not in self._terms:
            self._terms[formula] = frozenset(terms_of(formula))
        return self._terms[formula]

    def _why(self, subject: Subject, other: Subject) -> tuple[str, ...]:
        mine, its = subject.model, other.model
        where = f"{its.name} stands at {other.line()}"
        if self._by_priority and its.priority > mine.priority:
            return (f"{where} and has the higher priority",)
        if STRICTNESS[its.failing.effect] > STRICTNESS[mine.failing.effect]:
            return (f"{where} and is stricter: {its.failing.effect}",)
        first = (-mine.priority, subject.number) < (-its.priority, other.number)
        return (where, "only the words of the refusal differ") if first else (where,)


def _passes(its: Judged) -> list[Wanted]:
    return [(its.rule, TRUE)]


def _holds(its: Judged) -> list[Wanted]:
    """A grant that does not hold."""
    return [(All((its.condition, its.decides)), _FAILS)]


def _repeated(subject: Subject, other: Subject) -> Finding:
    message = f"{subject.model.name} says the same as {other.model.name}"
    notes = (f"{other.model.name} stands at {other.line()}",)
    return _finding(subject, "repeated-rule", message, notes, other)


def _finding(subject: Subject, code: str, message: str, notes: tuple[str, ...], other: Subject) -> Finding:
    problem = at_place(subject.pack.document, subject.place("name"), code, message, notes=notes)
    return of_rule(subject, problem, other.number, alone=True)


def _grants(
    pack: Pack, sound: Sequence[Subject], grants: Sequence[Subject], checks: Sequence[Subject]
) -> Iterator[Finding]:
    """Grants that override nothing, and rules under an allow-list that nothing opens."""
    if pack.file.default == "deny":
        for subject in (one for one in checks if one in sound):
            opened = {tool for grant in grants for tool in grant.reached}
            decides = subject.model.failing.halt or None in subject.reached
            if not decides and not opened & subject.reached.keys():
                message = f"no grant opens a tool of {subject.model.name}, so that it is refused before"
                problem = at_place(pack.document, subject.place("name"), "never-granted", message)
                yield of_rule(subject, problem, alone=True)
        return
    for grant in (one for one in grants if one in sound):
        lower = [one for one in checks if one.model.priority < grant.model.priority]
        if not any(one.reached.keys() & grant.reached.keys() for one in lower):
            message = f"{grant.model.name} overrides no rule: none of a lower priority is about the same tools"
            notes = ("the highest priority decides, and of equals the strictest",)
            problem = at_place(pack.document, grant.place("name"), "grant-overrides-nothing", message, notes=notes)
            yield of_rule(grant, problem, alone=True)
