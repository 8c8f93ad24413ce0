"""`ledger capture` on a terminal: where each case stands, what it holds, and whether it passes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from ledgercli import cel
from ledgercli.capture.adding import Done
from ledgercli.capture.beginning import called
from ledgercli.capture.casefile import Added
from ledgercli.casework.judging import rules_of
from ledgercli.reports.cells import WIDTH, wrap
from ledgercli.reports.screen import Screen
from ledgercli.reports.summary import counted

_INDENT: Final = " " * 7
_SHOWN: Final = 4  # places of values that have kept their names


def write(screen: Screen, done: Done, *, to: bool, flips: bool) -> None:
    """Write what has been done; `to`: it stands in a file, so that each case has its line."""
    for one in done.added if to else ():
        word = "added" if one.new else "has"
        screen.line(f"{word:<7}{screen.safe(str(one.where))}  {screen.safe(one.name)}")
    indent = _INDENT if to else ""
    for told in _holds(done.added):
        for line in wrap(screen.safe(told), WIDTH - len(indent)):
            screen.line(f"{indent}{line}")
    for left in done.left:
        screen.line(f"{'no':<7}{screen.safe(left.address)}: {screen.safe(left.why)}")
    for told in _together(done) if flips else _alone(done, done.added[0]):
        for line in wrap(screen.safe(told), WIDTH):
            screen.line(line)


def _holds(added: Sequence[Added]) -> Iterator[str]:
    """Yield what the cases hold."""
    fresh = [one.made for one in added if one.new]
    written = [one for one in fresh if one.at is None]
    if written:
        kept, known = sum(one.kept for one in written), sum(one.known for one in written)
        count = f"kept {kept:,} of {counted(known, 'fact')}"
        if written[0].renamed:
            yield f"{count}, under other names"
        elif kept:
            yield f"{count}; they hold personal data? --pseudonyms renames values"
        else:
            yield count
    for place in [place for one in fresh for place in one.untouched][:_SHOWN]:
        yield f"{place} is as it was: the verdict hangs on it"
    for one in fresh:
        if one.at is not None:
            yield f"it names the step itself, for {one.at}"


def _alone(done: Done, one: Added) -> Iterator[str]:
    step = one.made.step
    recorded = f"the recorded verdict was {step.recorded.effect}{' (in shadow mode)' if step.shadow else ''}"
    yield f"{_came(done, one)}; {recorded}"
    rule = one.made.wish.rule
    if one.outcome is None and rule is not None:
        near = cel.nearest(rule, done.file.group.names)
        yield f"until then {done.file.name} does not load, since no case may name a rule that does not exist"
        if near:
            yield f"did you mean {' or '.join(near)}?"


def _came(done: Done, one: Added) -> str:
    packs, wish = _packs(done), one.made.wish
    if one.outcome is None:
        return f"fails with {packs} until the rule {wish.rule} exists"
    if one.outcome.came == "passed":
        return f"passes with {packs}"
    failure = one.outcome.failure
    if failure is None:
        return f"cannot be judged with {packs}: {one.outcome.why}"
    if wish.rule is not None:
        return f"fails with {packs} until the rule {wish.rule} fails there"
    if wish.effect is not None:
        return f"fails with {packs} until a rule says {wish.effect}"
    return f"fails with {packs}, which now say {_says(one)}"


def _says(one: Added) -> str:
    rules = rules_of(one.verdict)
    return one.verdict.effect + (f" by {' and '.join(rules)}" if rules else "")


def _together(done: Done) -> Iterator[str]:
    fresh = sum(one.new for one in done.added)
    passed = sum(one.outcome is not None and one.outcome.came == "passed" for one in done.added)
    has = f", {len(done.added) - fresh:,} there already" if fresh < len(done.added) else ""
    yield f"{counted(fresh, 'case')} added{has}; {passed:,} of {len(done.added):,} pass with {_packs(done)}"


def _packs(done: Done) -> str:
    *more, last = [called(pack) for pack in done.file.group.packs] or ["no pack"]
    return f"{', '.join(more)} and {last}" if more else last
