"""What each rule says, as lines: those that failed in full, those that passed as far as it is of use.

Invariants:
* What a rule read is told with who established it, once; what another value tells is left out without -v.
* A rule that does not apply is told with the conjunct that was false, and with the values that made it so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from ledgercli import cel
from ledgercli.enforcer import not_known
from ledgercli.paths import Path
from ledgercli.reports.cells import WIDTH, cells, pad
from ledgercli.reports.expressions import expression
from ledgercli.reports.pages import DEEP, INDENT, LEAST, Page
from ledgercli.reports.places import RulePlace
from ledgercli.why.accounts import Account, Ruling, Seen
from ledgercli.why.rulewise import Evaluated, RuleSays
from ledgercli.why.situations import begins, read

_LONG: Final = 56  # cells of a part of an expression that is told beside the whole
_READS: Final = 8  # values that a rule read
_ORDER: Final = ("fail", "grant", "pass", "n/a")


class Rulings:
    """The rules of an account.

    Arguments:
        page: makes lines.
        account: the account.
        place: tells where a rule stands.

    """

    def __init__(self, page: Page, account: Account, place: RulePlace) -> None:
        self._page, self._account, self._place = page, account, place

    def lines(self) -> Iterator[str]:
        """Yield all of them."""
        for ruling in ordered(self._account.rulings):
            yield from self._rule(ruling)
        others = self._account.others
        if self._page.verbose:
            for one in others:
                yield self._rule_head(one, "")
                yield from self._why_not(one)
        elif others:
            verb = "rule is" if len(others) == 1 else "rules are"
            yield f"{INDENT}{len(others):,} more {verb} about other tools (-v)"
        if not self._account.rulings and not others:
            yield f"{INDENT}there are no rules"

    def _rule(self, ruling: Ruling) -> Iterator[str]:
        said, verdict = ruling.said, self._account.verdict
        words = [word for word in ("overridden", "shadow") if getattr(ruling, word)]
        if said.says == "fail" and not words and said.effect != verdict.effect:
            words = [said.effect]
        yield self._rule_head(said, f"  ({', '.join(words)})" if words else "")
        if said.says == "fail":
            yield from self._failed(ruling)
        elif said.says == "n/a":
            yield from self._why_not(said)
        elif self._page.verbose or verdict.runs:
            reads = [one for one in ruling.reads if self._page.verbose or not one.name.startswith(("action.", "now"))]
            yield from self._page.limited(self._telling(reads), _READS, "more values")
            if self._page.verbose and said.check is not None:
                yield from self._parts(INDENT, said.check)

    def _rule_head(self, said: RuleSays, more: str) -> str:
        pack, _, name = said.name.rpartition("/")
        shown = name or f"pack {pack}"
        place = self._place(said.name)
        where = f"  {self._page.screen.paint(self._page.safe(place), 'dim')}" if place else "  (built in)"
        return f"{self._page.painted(said.says, pad(said.says, len(INDENT)))}{self._page.safe(shown)}{where}{more}"

    def _failed(self, ruling: Ruling) -> Iterator[str]:
        said, finding = ruling.said, ruling.finding
        if finding is not None:
            yield from self._page.labelled("error", finding.error)
            if finding.hint is not None:
                yield from self._page.labelled("hint", finding.hint)
        if not said.text:
            return
        label = f"{INDENT}{pad('check', len(INDENT))}"
        for number, line in enumerate(expression(self._page.safe(said.text), WIDTH - len(DEEP))):
            yield (label if not number else DEEP) + line
        yield from self._answer(ruling)

    def _answer(self, ruling: Ruling) -> Iterator[str]:
        """Yield what the check came to: the question that decided it, or its parts and what it read."""
        said = ruling.said
        if said.check is None:
            return
        if (asked := _only_question(ruling)) is not None:
            yield from self._page.wrapped(DEEP, f"{cel.literal(asked.value)}: {asked.note}")
            return
        for one in said.because:
            told = "is false" if one.answer.known else f"cannot be told: {_untold(one)}"
            yield from self._page.wrapped(DEEP, f"{one.text} {told}" if one is not said.condition else told)
        if not said.because and not said.check.answer.known:
            yield from self._page.wrapped(DEEP, f"cannot be told: {_untold(said.check)}")
        yield from self._parts(DEEP, said.check)
        yield from self._page.limited(self._telling(ruling.reads), _READS, "more values", DEEP)

    def _why_not(self, said: RuleSays) -> Iterator[str]:
        """Yield the conjunct that was false, with the values that made it so."""
        for one in said.because:
            if not one.answer.known:
                yield from self._page.wrapped(INDENT, f"{one.text} cannot be told: {_untold(one)}")
                continue
            grants = "grants nothing: " if said.effect == "allow" and said.check is not None else ""
            text = f"{grants}{one.text} is false"
            told = self._telling([Seen(name, value) for name, value in one.reads.items() if name != one.text])
            before = f"{INDENT}{self._page.safe(text)}: "
            alone = len(told) == 1 and not one.parts and told[0].name in one.text
            if alone and cells(before) + LEAST <= WIDTH:
                yield before + self._page.shown(told[0].value, before)
                continue
            yield from self._page.wrapped(INDENT, text)
            yield from self._parts(INDENT + "  ", one)
            yield from self._page.limited(told, _READS, "more values", INDENT + "  ")

    def _telling(self, seen: Sequence[Seen]) -> Sequence[Seen]:
        """Leave out what others tell: that something is there which was read, an argument that is a key of another."""
        if self._page.verbose:
            return seen
        paths = {one.name: read(one.name).path for one in seen}
        return [one for one in seen if not _is_told(one, [path for name, path in paths.items() if name != one.name])]

    def _parts(self, indent: str, one: Evaluated) -> Iterator[str]:
        for part in one.parts if self._page.verbose else one.parts[:_READS]:
            if part.known and (self._page.verbose or cells(part.text) <= _LONG):
                yield from self._page.value(indent, part.text, part.value)


def ordered(rulings: Iterable[Ruling]) -> list[Ruling]:
    """Return rules in the order in which they are told: what failed first."""
    return sorted(rulings, key=lambda one: _ORDER.index(one.said.says))


def _is_told(one: Seen, others: Iterable[Path]) -> bool:
    """Whether other reads tell a value: something below it was read, or its value is a key on their way."""
    if read(one.name).kind == "has" and one.value is True:
        return any(begins(read(one.name).path, path) for path in others)
    is_argument = isinstance(one.value, str) and one.name.startswith("action.args.")
    return is_argument and any(one.value in path for path in others)


def _only_question(ruling: Ruling) -> Seen | None:
    """Return the question to the history that a check is, if it is nothing else."""
    check = ruling.said.check
    if check is None or not check.answer.known or not isinstance(cel.parse(check.text).node, cel.Call):
        return None
    asked = [one for one in ruling.reads if one.asked]
    others = [one for one in ruling.reads if not one.asked and not one.name.startswith("action.")]
    return asked[0] if len(asked) == 1 and not others and asked[0].note else None


def _untold(one: Evaluated) -> str:
    return not_known(one.answer.missing) if one.answer.missing else str(one.answer.error)
