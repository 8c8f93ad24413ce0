"""Two folders of ledgers side by side, for people.

Invariants:
* Rates are written as `5/5`, never as percentages: a reader sees how many runs they are of.
* Lists of scenarios are cut at a whole one; names of rules, scenarios and files never are. With -v nothing is cut.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from typing import Final

from ledgercli.diff.folders import Comparison, Folder, Match, damage
from ledgercli.reports.cells import WIDTH, cells, pad
from ledgercli.reports.screen import Screen
from ledgercli.reports.summary import counted

_LABEL: Final = 14  # cells of `steps, median `
_RULES: Final = 10  # rules that are shown without -v


def write_text(screen: Screen, found: Comparison, *, verbose: bool = False) -> None:
    """Write what two folders differ in."""
    for line in lines(screen, found, verbose=verbose):
        screen.line(line)
    screen.flush()


def write_next(screen: Screen, found: Comparison) -> None:
    """Say what to compare next."""
    if pair := found.next():
        screen.line(screen.safe(f"next: ledger diff {' '.join(map(shlex.quote, pair))}"))


def lines(screen: Screen, found: Comparison, *, verbose: bool) -> Iterator[str]:
    """Yield what two folders differ in."""
    a, b = found.a, found.b
    yield f"{counted(len(found.matches), 'scenario')}, {counted(len(a.runs), 'ledger')} in A, {len(b.runs):,} in B"
    yield from _damaged(screen, found)
    yield ""
    yield from _table(found)
    yield ""
    yield from _scenarios(screen, found, verbose=verbose)
    yield from _rules(screen, found, verbose=verbose)


def _damaged(screen: Screen, found: Comparison) -> Iterator[str]:
    """Name the ledgers that could not be read."""
    broken = damage((found.a, found.b))
    if broken:
        yield f"{counted(len(broken), 'damaged ledger')}, not compared:"
    for _, message in broken:
        yield f"  {screen.safe(message)}"


def _table(found: Comparison) -> Iterator[str]:
    sides = found.a, found.b
    rows = [
        ("", ["A", "B"], ""),
        ("passed", [f"{side.passed:,}/{len(side.runs):,}" for side in sides], ""),
        ("denied", [f"{side.denied:,}/{side.proposals:,}" for side in sides], "   proposals"),
        ("steps, median", [steps(side) for side in sides], ""),
    ]
    widths = [max(least, *(len(values[side]) + 3 for _, values, _ in rows)) for side, least in enumerate((12, 9))]
    for label, values, unit in rows:
        cols = "".join(f"{value:>{width}}" for value, width in zip(values, widths, strict=True))
        yield pad(label, _LABEL) + cols + unit


def steps(folder: Folder) -> str:
    """Return the median of steps."""
    return f"{folder.steps:,.1f}".removesuffix(".0")


def _scenarios(screen: Screen, found: Comparison, *, verbose: bool) -> Iterator[str]:
    """Yield the scenarios by how their rates compare."""
    groups = (
        ("better in B", found.better, True),
        ("worse in B", found.worse, True),
        ("same", found.same, False),
        ("only in A", found.only("a"), False),
        ("only in B", found.only("b"), False),
        ("other facts", found.other_facts, False),
    )
    told = [group for group in groups if group[1] or group[0] == "same"]
    width = max(3, *(len(f"{len(matches):,}") for _, matches, _ in told))
    for label, matches, rates in told:
        head = f"{pad(label, 12)}{len(matches):>{width},} {'scenario' if len(matches) == 1 else 'scenarios'}"
        named = [_named(screen, match, rates=rates) for match in matches if label != "same"]
        yield _listed(f"{pad(head, 12 + width + 11)}  ", named, verbose=verbose).rstrip()


def _named(screen: Screen, match: Match, *, rates: bool) -> str:
    a, b = match.passed
    return screen.safe(match.name) + (f" {a}/{len(match.a)} -> {b}/{len(match.b)}" if rates else "")


def _listed(head: str, named: Sequence[str], *, verbose: bool) -> str:
    """Return a list behind its head, as many as fit in a line; the first always does."""
    line = head
    for number, name in enumerate(named):
        more = (", " if number else "") + name
        last = number + 1 == len(named)
        if number and not verbose and cells(line + more) + (0 if last else len(", ...")) > WIDTH:
            return line + ", ..."
        line += more
    return line


def _rules(screen: Screen, found: Comparison, *, verbose: bool) -> Iterator[str]:
    """Yield how often each rule denied; the most frequent first."""
    a, b = found.a.rules, found.b.rules
    names = sorted({*a, *b}, key=lambda name: (-a[name] - b[name], name))
    shown = names if verbose else names[:_RULES]
    if not names:
        return
    yield ""
    yield "denials by rule"
    told = [screen.safe(name.rpartition("/")[2]) for name in shown]
    width = max(cells(name) for name in told)
    most = max(len(f"{a[name]:,}") for name in shown)
    for name, text in zip(shown, told, strict=True):
        yield f"  {pad(text, width)}  {a[name]:>{most},} -> {b[name]:,}"
    if len(names) > len(shown):
        yield f"  ... and {counted(len(names) - len(shown), 'more rule')}: -v shows all"
