"""A case and its verdict: passed, or what differs and which rules say why.

Invariants:
* The verdict is the enforcer's, asked once; rules are asked one by one only where a case has failed.
* A proposal that no rule has seen, because its arguments do not fit, passes only where that is expected by name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from ledgercli import cel
from ledgercli.casework.groups import Group
from ledgercli.casework.outcomes import Difference, Failure, Outcome, Reason, Says, Shown, Where
from ledgercli.casework.preparing import Ready, Unready, Wanted
from ledgercli.documents import Document, Place
from ledgercli.enforcer import STRICTNESS, not_known
from ledgercli.policy import BUILT_IN
from ledgercli.records import Finding, Verdict
from ledgercli.why.accounts import plain
from ledgercli.why.rulewise import Evaluated, RuleSays, Rulewise
from ledgercli.why.situations import read

_REASONS: Final = 4  # rules that a failed case tells of
_SAYS: Final[Mapping[str, Says]] = {"fail": "failed", "pass": "passed", "n/a": "did not apply", "grant": "granted"}


class Judge:
    """Judges the cases of one group."""

    def __init__(self, group: Group) -> None:
        self._group = group
        self._short = shortest(group.names)
        self._wheres: dict[Place, Where] = {}

    def verdict(self, case: Ready) -> Verdict:
        """Return the enforcer's verdict."""
        one = case.situation
        return self._group.rules.enforcer.judge(one.proposal, one.state, one.history, one.now, masked=case.masked)

    def outcome(self, case: Ready | Unready, verdict: Verdict | None = None) -> Outcome:
        """Return what comes of a case; `verdict` is that of one that is ready."""
        where = self._where(case.place)
        place, row = tuple(case.place), case.row
        if isinstance(case, Unready):
            if case.skipped:
                return Outcome(case.name, where, "skipped", case.why, None, place, row)
            inside = where_of(self._group.document, case.inside or case.place)
            return Outcome(case.name, inside, "error", case.why, None, place, row)
        assert verdict is not None, "a case that is ready has a verdict"
        if unseen := _unseen(verdict, case.wanted):
            inside = where_of(self._group.document, (*case.place, "propose"))
            return Outcome(case.name, inside, "error", unseen, None, place, row)
        differences = differing(case.wanted, verdict)
        if not differences:
            return Outcome(case.name, where, "passed", "", None, place, row)
        return Outcome(case.name, where, "failed", "", self._failure(case, verdict, differences), place, row)

    def where(self, case: Ready | Unready) -> Where:
        """Return where a case stands."""
        return self._where(case.place)

    def _where(self, place: Place) -> Where:
        known = self._wheres.get(place)
        if known is None:
            known = self._wheres[place] = where_of(self._group.document, (*place, "name"))
        return known

    # ---- why

    def _failure(self, case: Ready, verdict: Verdict, differences: list[Difference]) -> Failure:
        proposal = case.situation.proposal
        reasons = list(self._reasons(case, verdict, differences))
        told = [self._named(difference) for difference in differences]
        shown = reasons[:_REASONS]
        return Failure(proposal.tool, proposal.args, case.wanted, verdict, told, shown, more=len(reasons) - len(shown))

    def _named(self, difference: Difference) -> Difference:
        """Return a difference with its rules as they are typed."""
        if not difference.key.startswith("rules"):
            return difference
        wanted, got = (
            sorted(self._short.get(name, name) for name in names) for names in (difference.wanted, difference.got)
        )
        return Difference(difference.key, wanted, got)

    def _reasons(self, case: Ready, verdict: Verdict, differences: list[Difference]) -> Iterator[Reason]:
        """Yield what the rules say that were expected and are not there, or are there and were not expected."""
        plan = self._group.rules.enforcer.plan(case.situation.proposal.tool)
        found = {one.rule: one for one in (*verdict.failed, *verdict.warned, *verdict.overridden, *verdict.shadowed)}
        if plan is None:
            return
        asked = Rulewise(self._group.rules, plan, case.situation)
        says = {one.name: one for one in asked.each()}
        wanted = (case.wanted.rules or frozenset()) | case.wanted.include
        missing = [name for name in sorted(wanted) if name not in rules_of(verdict)]
        if missing:
            says |= {one.name: one for one in asked.others() if one.name in missing}
            inactive = {one.name: one for one in says.values() if one.name.endswith("/")}
            for name in missing:
                one = says.get(name) or inactive.get(f"{name.rpartition('/')[0]}/")
                yield (
                    self._reason(one, found.get(name))
                    if one
                    else Reason(self._short.get(name, name), self._rule(name), "did not apply")
                )
        for name in rules_of(verdict):
            if name not in wanted and any(one.key != "rules_include" for one in differences):
                yield self._reason(says[name], found[name]) if name in says else self._built_in(found[name])
        if not missing and _is_milder(verdict, case.wanted):
            rest = [one for one in says.values() if one.name not in rules_of(verdict)]
            about = {pack.name for pack in self._group.packs}
            for one in sorted(rest, key=lambda one: (one.says != "pass", one.name.partition("/")[0] not in about)):
                yield self._reason(one, found.get(one.name))

    def _built_in(self, finding: Finding) -> Reason:
        return Reason(self._short.get(finding.rule, finding.rule), self._rule(finding.rule), "failed", finding.error)

    def _reason(self, one: RuleSays, finding: Finding | None) -> Reason:
        says = _SAYS[one.says]
        if one.says == "n/a" and one.check is not None and one.effect == "allow":
            says = "granted nothing"
        if one.says == "fail" and one.check is not None and not one.check.answer.known:
            says = "could not be told"
        parts = one.because or ([one.check] if one.check is not None else [])
        return Reason(
            self._short.get(one.name, one.name.rstrip("/")),
            self._rule(one.name),
            says,
            finding.error if finding is not None else None,
            [self._shown(part, one.name) for part in parts],
        )

    def _shown(self, one: Evaluated, rule: str) -> Shown:
        text = one.text
        for pack in self._group.rules.packs:
            define = self._group.rules.vocabulary.defines(pack).get(text) if rule.startswith(f"{pack.name}/") else None
            if define is not None:
                text = f"{text}: {cel.render(define)}"
        answer = one.answer
        came = (
            cel.literal(answer.value)
            if answer.known
            else not_known(answer.missing)
            if answer.missing
            else str(answer.error)
        )
        values = [(_label(name), plain(value)) for name, value in one.reads.items()]
        values += [(part.text, plain(part.value)) for part in one.parts if part.known]
        return Shown(text, came, [one for one in values if one[0] != text])

    def _rule(self, name: str) -> Where | None:
        pack_name, _, rule_name = name.rpartition("/")
        for pack in self._group.rules.packs:
            if pack.name == pack_name:
                if not rule_name:
                    return where_of(pack.document, ("active",))
                for number, rule in enumerate(pack.file.rules):
                    if rule.name == rule_name:
                        return where_of(pack.document, ("rules", number, "name"))
                return where_of(pack.document, ("default",))
        return None


def differing(wanted: Wanted, verdict: Verdict) -> list[Difference]:
    """Return what of an expectation a verdict does not meet."""
    found = []
    if wanted.effect is not None and wanted.effect != verdict.effect:
        found.append(Difference("effect", wanted.effect, verdict.effect))
    if wanted.rules is not None and wanted.rules != (got := frozenset(rules_of(verdict))):
        found.append(Difference("rules", sorted(wanted.rules), sorted(got)))
    if wanted.include and not wanted.include <= (got := frozenset(rules_of(verdict))):
        found.append(Difference("rules_include", sorted(wanted.include), sorted(got)))
    if wanted.error is not None and wanted.error != verdict.reason:
        found.append(Difference("error", wanted.error, verdict.reason))
    if wanted.hint is not None and wanted.hint != verdict.hint:
        found.append(Difference("hint", wanted.hint, verdict.hint))
    if wanted.halts is not None and wanted.halts != verdict.halts:
        found.append(Difference("halts", wanted.halts, verdict.halts))
    return found


def rules_of(verdict: Verdict) -> list[str]:
    """Return the rules that failed or warned."""
    return [finding.rule for finding in (*verdict.failed, *verdict.warned)]


def where_of(document: Document, place: Place) -> Where:
    """Return where a value stands."""
    problem = document.problem(place, "", "")
    return Where(problem.file, problem.line, problem.column, problem.length)


def _unseen(verdict: Verdict, wanted: Wanted) -> str | None:
    """Say why no rule has seen a proposal, unless that is what is expected by name."""
    first = verdict.failed[0] if verdict.failed else None
    if (
        first is None
        or first.rule not in BUILT_IN
        or first.rule in (wanted.rules or ())
        or first.rule in wanted.include
    ):
        return None
    hint = f" {first.hint}" if first.hint else ""
    return f"{first.error}{hint} No rule has seen this proposal; if that is meant, expect `rules: [{first.rule}]`."


def _is_milder(verdict: Verdict, wanted: Wanted) -> bool:
    return wanted.effect is not None and STRICTNESS[verdict.effect] < STRICTNESS[wanted.effect]


def _label(name: str) -> str:
    one = read(name)
    return name if one.kind != "question" else one.at.text  # type: ignore[union-attr]  # a question has a text


def shortest(names: Mapping[str, str]) -> dict[str, str]:
    """Return the shortest name of each rule that means it alone."""
    meant: dict[str, str] = {}
    for name, full in names.items():
        if full not in meant or len(name) < len(meant[full]):
            meant[full] = name
    return meant
