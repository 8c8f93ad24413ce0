"""Why a verdict is what it is, as Markdown, for comments on a pull request.

Invariants:
* The same as on a terminal, less what only -v shows there.
* Text that somebody else wrote cannot become structure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ledgercli.paths import ABSENT
from ledgercli.reports import values
from ledgercli.reports.markdown import code, table, text
from ledgercli.reports.rulings import ordered
from ledgercli.reports.screen import Screen
from ledgercli.reports.why import SMALLER, nothing, places
from ledgercli.why.accounts import Account, Ruling, Seen, phrase
from ledgercli.why.explaining import Explained
from ledgercli.why.rulewise import RuleSays
from ledgercli.why.situations import Change

_LONG = 120  # cells of a value
_MANY = 12


def write(screen: Screen, explained: Explained) -> None:
    """Write an account."""
    for line in lines(explained):
        screen.line(line)


def lines(explained: Explained) -> Iterator[str]:
    """Yield the lines of an account."""
    account, place = explained.account, places(explained.account)
    call = values.call(account.proposal.tool, account.proposal.args)
    yield f"### {account.verdict.effect} {code(''.join(call))}"
    yield ""
    yield f"{code(f'{explained.path}@{account.step}')}, recorded: {account.recorded.effect}"
    yield ""
    yield from table(
        ("", "rule", "why"),
        [(one.said.says, _rule(one.said, place(one.name)), _because(one)) for one in ordered(account.rulings)],
    )
    if account.others:
        yield from ("", f"{len(account.others):,} more about other tools")
    if account.arguments:
        yield ""
        rows = [(code(one.name), _value(one.value), text(one.place.text)) for one in account.arguments]
        yield from table(("argument", "value", "where it comes from"), rows)
    yield from _unread(account.unread)
    if account.way is not None:
        yield from ("", f"**{_passing(account)}**", "")
        if not account.way.shown:
            yield text(nothing(account.way.found))
        for way in account.way.shown:
            yield f"- {' and '.join(map(_change, way))}"
        if account.way.found.bounded:
            yield from ("", SMALLER)


def _passing(account: Account) -> str:
    return "enforced, what would have let it pass" if account.verdict.runs else "what would let it pass"


def _rule(said: RuleSays, place: str | None) -> str:
    name = said.name.rpartition("/")[2] or f"pack {said.name.rstrip('/')}"
    return f"{code(name)} {text(place or 'built in')}"


def _because(ruling: Ruling) -> str:
    said, finding = ruling.said, ruling.finding
    parts = [text(finding.error)] if finding is not None else []
    parts += [f"{code(one.text)} {'is false' if one.answer.known else 'cannot be told'}" for one in said.because]
    if said.says != "n/a":
        parts += [_seen(one) for one in ruling.reads[:_MANY] if not one.name.startswith("action.")]
    return "<br>".join(parts)


def _seen(one: Seen) -> str:
    return f"{code(one.name)} = {_value(one.value)}{f', {text(one.note)}' if one.note else ''}"


def _unread(unread: Sequence[Seen]) -> Iterable[str]:
    if unread:
        yield from ("", "Known about these arguments, read by no rule:", "")
        yield from (f"- {_seen(one)}" for one in unread[:_MANY])
        if len(unread) > _MANY:
            yield f"- {len(unread) - _MANY:,} more"


def _change(change: Change) -> str:
    said = text(phrase(change))
    return f"{said} = {_value(change.value)}" if said.startswith("with ") and change.value is not ABSENT else said


def _value(value: object) -> str:
    return code(values.shown(value, _LONG))
