"""Why a verdict is what it is, for people.

Invariants:
* Rules, paths and places stay whole; values are cut at 80 cells (not with -v), messages and expressions are wrapped.
* What failed comes first, in full; what passed is told in full only where the call ran. With -v all is.
* Text that somebody else wrote is inert, and stands last in its line or is wrapped.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from ledgercli.enforcer import UNKNOWN_TOOL
from ledgercli.paths import ABSENT
from ledgercli.reports import values
from ledgercli.reports.cells import WIDTH, cells, pad
from ledgercli.reports.pages import INDENT, Page
from ledgercli.reports.places import RulePlace, rule_places
from ledgercli.reports.rulings import Rulings
from ledgercli.reports.screen import Screen
from ledgercli.why.accounts import Account, Argument, Way, phrase
from ledgercli.why.accounts import to_json as account_json
from ledgercli.why.explaining import Explained
from ledgercli.why.situations import Change
from ledgercli.why.smallest import LARGEST, Found

SCHEMA: Final = "why/1"
_VALUE: Final = 24  # cells of an argument's value
_ARGUMENTS: Final = 12
_UNREAD: Final = 12
SMALLER: Final = "Not every smaller change was tried; there may be one."


def write_text(screen: Screen, explained: Explained, *, verbose: bool = False) -> None:
    """Write an account."""
    for line in Told(screen, explained, verbose=verbose).lines():
        screen.line(line)


def to_json(explained: Explained) -> dict[str, Any]:
    """Return an account as data, with where its rules stand."""
    place = places(explained.account)
    said: dict[str, Any] = {"schema": SCHEMA, "ledger": explained.path, **account_json(explained.account)}
    for rule in (*said["rules"], *said["other_rules"]):
        rule["place"] = place(rule["rule"])
    if explained.changed is not None:
        said["packs"] = {"replaced": list(explained.changed.replaced), "added": list(explained.changed.added)}
    return said


def places(account: Account) -> RulePlace:
    """Return what tells where a rule stands; of `pack/` its `active`."""
    rules = rule_places(account.packs)
    active = {f"{pack.name}/": pack.document.position(("active",), key=True) for pack in account.packs}
    return lambda name: active.get(name) or rules(name)


class Told:
    """An account as lines.

    Arguments:
        screen: knows about colour and encoding.
        explained: the account.
        verbose: all of it, values whole.

    """

    def __init__(self, screen: Screen, explained: Explained, *, verbose: bool = False) -> None:
        self._page, self._explained = Page(screen, verbose), explained
        self._account = explained.account
        self._place = places(self._account)

    def lines(self) -> Iterator[str]:
        """Yield all of it."""
        yield from self._head()
        yield ""
        yield from Rulings(self._page, self._account, self._place).lines()
        if self._account.arguments:
            yield from ("", "where the arguments come from")
            yield from self._arguments()
        if self._account.unread:
            yield from ("", "known here about these arguments, read by no rule")
            yield from self._page.limited(self._account.unread, _UNREAD, "more")
        if self._account.way is not None:
            yield ""
            yield from self._way(self._account.way)

    # ---- the verdict

    def _head(self) -> Iterator[str]:
        account = self._account
        effect = pad(account.verdict.effect, len(INDENT) - 1) + " "
        yield self._page.painted(account.verdict.effect, effect) + self._call(effect)
        changed = self._explained.changed
        if changed is not None:
            for names, how in ((changed.replaced, "in place of the recorded one"), (changed.added, "added")):
                for name in names:
                    source = next(pack.document.source.name for pack in account.packs if pack.name == name)
                    yield f"{INDENT}judged by {self._page.safe(name)} in {self._page.safe(source)}, {how}"
            yield f"{INDENT}recorded: {account.recorded.effect}"
        if account.verdict.approval is not None:
            answer = "no" if account.verdict.effect == "deny" else "yes"
            yield f"{INDENT}a person said {answer} @{account.verdict.approval}"
        if account.masked:
            yield from self._page.wrapped(
                INDENT, "What is [redacted] is not known here; a rule that read it may have said otherwise."
            )
        if account.differing:
            names = ", ".join(name.rpartition("/")[2] for name in account.differing)
            yield from self._page.wrapped(INDENT, f"The line says otherwise of {names}: ledger replay compares.")

    def _call(self, before: str) -> str:
        proposal = self._account.proposal
        tool = self._page.safe(proposal.tool)
        text = self._page.screen.cut(values.call(proposal.tool, proposal.args), self._page.room(before))
        return self._page.screen.paint(tool, "bold") + text.removeprefix(tool) if text.startswith(f"{tool}(") else text

    # ---- arguments, facts

    def _arguments(self) -> Iterator[str]:
        told = self._account.arguments
        rows = [self._row(one) for one in (told if self._page.verbose else told[:_ARGUMENTS])]
        widths = [max(cells(row[column]) for row in rows) for column in range(3)]
        beside = cells(INDENT) + sum(widths) + 4 <= WIDTH
        for name, value, place in rows:
            head = f"{INDENT}{pad(name, widths[0])}  {pad(value, widths[1])}" if beside else f"{INDENT}{name}  {value}"
            if cells(head) + 2 + cells(place) <= WIDTH:
                yield f"{head}  {place}"
            else:
                yield from (head, f"{INDENT}  {place}")
        if more := len(told) - len(rows):
            yield f"{INDENT}... {more:,} more (-v)"

    def _row(self, one: Argument) -> tuple[str, str, str]:
        value = self._page.screen.cut(values.parts(one.value), None if self._page.verbose else _VALUE)
        return self._page.safe(one.name), value, self._page.safe(one.place.text)

    # ---- another verdict

    def _way(self, way: Way) -> Iterator[str]:
        if not way.shown:
            yield from self._page.wrapped("", nothing(way.found))
            return
        yield self._passing()
        for number, changes in enumerate(way.shown):
            for place, change in enumerate(changes):
                lead = "and " if place else "or " if number else ""
                yield from self._change(f"{INDENT}{'   ' if place else ''}{lead}", change, way)

        if way.found.bounded:
            yield from self._page.wrapped(INDENT, SMALLER)

    def _passing(self) -> str:
        verdict = self._account.verdict
        if verdict.runs:
            return "enforced, it would have passed"
        waits = verdict.effect == "require_approval"
        anew = self._explained.changed is not None
        return f"it would {'pass' if anew or waits else 'have passed'}{' without an approval' if waits else ''}"

    def _change(self, before: str, change: Change, way: Way) -> Iterator[str]:
        text = phrase(change)
        if text.startswith("with ") and change.value is not ABSENT:
            yield from self._page.value(before, text, change.value)
        else:
            yield from self._page.wrapped(before, text, hang=len(before) + 2)
        tools = way.tools.get(change.name)
        if tools:
            yield from self._page.wrapped(f"{INDENT}     ", f"{' or '.join(tools)} can set it")


def nothing(found: Found) -> str:
    """Say why there is no way."""
    names = " and ".join(found.names)
    match found.why:
        case "nothing" if names == UNKNOWN_TOOL:
            return "nothing lets a call pass of a tool that the toolset does not have"
        case "nothing":
            return f"no value of what {names.rpartition('/')[2]} reads lets it pass"
        case "masked":
            return f"what would have let it pass cannot be told: {names} is redacted"
        case "otherwise":
            return "judged again it passes, which is not what its line says: ledger replay compares"
        case "bound":
            return f"no change that lets it pass was found among the first {found.tried:,}, up to {LARGEST} values each"
    return f"no change that lets it pass was found among {found.tried:,}, up to {LARGEST} values each"
