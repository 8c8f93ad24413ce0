"""Two versions of a pack side by side, for people.

Invariants:
* Tools for which the same differs for the same reason are told once, with the example of the first of them.
* That verdicts are the same is said only of tools for which it is proved; of others it is said how much was tried.
* An example holds only what matters; what it does not name is as at the start of a run.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from ledgercli import cel
from ledgercli.diff.packs import Change, Found, PackDifference, ToolDifference
from ledgercli.diff.packs.compared import Side
from ledgercli.diff.packs.examples import Example
from ledgercli.diff.packs.pasts import Past
from ledgercli.paths import ABSENT
from ledgercli.records import Verdict
from ledgercli.reports import values
from ledgercli.reports.cells import WIDTH, cells, wrap
from ledgercli.reports.screen import Screen
from ledgercli.reports.summary import counted
from ledgercli.why.situations import leaves

Labelled = tuple[str, Iterable[str]]
_LEAST: Final = 12  # cells that a value has at least
_RAN: Final = {"ok": "succeeded", "error": "failed", "denied": "was denied"}
_KINDS: Final = {"rules": "other rules", "watched": "what is only recorded", "message": "the message"}


def write_text(screen: Screen, found: PackDifference, *, verbose: bool = False) -> None:
    """Write what two versions of a pack differ in."""
    for line in _lines(screen, found, verbose=verbose):
        screen.line(line)
    screen.flush()


def grouped(found: PackDifference) -> list[tuple[Found, list[str]]]:
    """Return what can differ, once for each difference and reason, with the tools for which it does."""
    groups: dict[Any, tuple[Found, list[str]]] = {}
    for tool in found.tools:
        for one in tool.found:
            groups.setdefault((one.kind, one.effects, one.by), (one, []))[1].append(named(tool))
    return sorted(groups.values(), key=lambda group: (group[0].order[:4], group[0].by))


def named(tool: ToolDifference) -> str:
    """Return a tool by its name, and what it stands for."""
    return f"{tool.tool}, {tool.kind}" if tool.kind else tool.tool


def without(found: PackDifference) -> Iterator[tuple[str, list[str]]]:
    """Yield the tools for which nothing was found, behind how sure that is."""
    told = {
        "same verdicts, proved": [named(tool) for tool in found.tools if tool.proved_same],
        "no difference found": [
            f"{named(tool)} in {counted(tool.tried, 'try', 'tries')}"
            for tool in found.tools
            if not tool.found and not tool.proved_same and not tool.unfit
        ],
        "not tried, no arguments found that fit": [named(tool) for tool in found.tools if tool.unfit],
    }
    yield from ((label, tools) for label, tools in told.items() if tools)


def differing(one: Found) -> str:
    """Return what differs: `deny -> allow`, `deny: other rules`."""
    a, b = one.effects
    if one.kind == "effect":
        return f"{a} -> {b}"
    if one.kind == "halt":
        return f"{a} that halts -> {a}" if one.a.halts else f"{a} -> {a} that halts"
    return f"{a}: {_KINDS[one.kind]}"


def place(change: Change) -> str:
    """Return what is written otherwise: `rule refund_over_500: check`."""
    parts = " ".join(part for part in (change.part, change.name) if part)
    inside = f" of {change.pack}" if change.pack else ""
    return f"{parts}{f': {change.key}' if change.key else ''}{inside}"


def written(value: Any) -> Iterable[str]:
    """Return how something is written, in parts; expressions on one line."""
    return (" ".join(value.split()),) if isinstance(value, str) else values.parts(value)


def known(one: Found) -> Iterator[Labelled]:
    """Yield what an example says beside the call, each with its label."""
    example = one.example
    for part in ("facts", "flags", "constraints"):
        for path, value in leaves(getattr(example, part)):
            if path:
                yield f"state.{part}{cel.path_text(('', *path))}", values.parts(value)
    for name, value in example.rest.items():
        yield f"state.{name}", values.parts(value)
    for fact, tool in example.sources.items():
        yield f"source of {fact}", (tool,)
    if any(label == "now" or label.startswith("now") for verdict in (one.a, one.b) for label in verdict.reads):
        yield "now", (str(example.now),)
    for past in example.past:
        yield "before", _past(example, past)


def _past(example: Example, past: Past) -> Iterator[str]:
    times = "" if past.times == 1 else f" {past.times:,} times in a row"
    match past.what:
        case "said":
            yield "the user said "
            yield from values.parts(past.data)
            return
        case "confirmed":
            yield f"the user said yes to {'this call' if past.args is None else past.tool}"
            return
    if past.args is None and not past.tool:
        yield f"this call {_RAN[past.what]}{times}"
    else:
        yield from values.call(past.tool or example.tool, past.args) if past.args else (past.tool,)
        yield f" {_RAN[past.what]}{times}"
    if past.data is not None:
        yield " with "
        yield from values.parts(past.data)
    if past.idle:
        yield f", then {counted(past.idle, 'step')} of other tools"


def said(verdict: Verdict) -> Iterator[tuple[str, str]]:
    """Yield what a verdict says: its effect, with each rule that failed and its message."""
    failed = [*verdict.failed, *verdict.warned]
    halts = ", halts" if verdict.halts else ""
    if not failed:
        yield f"{verdict.effect}{halts}", ""
    for number, finding in enumerate(failed):
        yield f"{finding.effect}{'' if number else halts}  {finding.rule.rpartition('/')[2]}", finding.error
    for word, findings in (("overridden", verdict.overridden), ("shadowed", verdict.shadowed)):
        yield from ((f"{word}  {finding.rule.rpartition('/')[2]}", finding.error) for finding in findings)


# Text


def _lines(screen: Screen, found: PackDifference, *, verbose: bool) -> Iterator[str]:
    yield from (_header(screen, "A", found.a), _header(screen, "B", found.b))
    if found.written:
        yield from ("", "written otherwise")
    for change in found.written:
        yield from _change(screen, change, verbose=verbose)
    groups = grouped(found)
    if groups:
        yield from ("", "verdicts that can differ")
    for one, tools in groups:
        yield from _found(screen, one, tools, verbose=verbose)
    told = list(without(found))
    if told or not found.tools:
        yield ""
    if not groups and not found.tools:
        yield "same"
    for label, tools in told:
        whole = not groups and len(told) == 1 and label == "same verdicts, proved"
        text = f"{label} for every tool" if whole else f"{label}: {', '.join(tools)}"
        yield from wrap(screen.safe(text), WIDTH)


def _header(screen: Screen, name: str, side: Side) -> str:
    return (
        f"{name} {screen.safe(side.path)}  {screen.safe(side.pack.name)}, {counted(len(side.pack.file.rules), 'rule')}"
    )


def _change(screen: Screen, change: Change, *, verbose: bool) -> Iterator[str]:
    yield f"{change.sign} {screen.safe(place(change))}"
    for name, value in (("A", change.a), ("B", change.b)):
        if value is not ABSENT:
            yield _value(screen, f"    {name} ", written(value), verbose=verbose)


def _found(screen: Screen, one: Found, tools: list[str], *, verbose: bool) -> Iterator[str]:
    yield f"{screen.paint(differing(one), 'bold')}  by {screen.safe(', '.join(one.by))}"
    if len(tools) > 1:
        yield from (f"  {line}" for line in wrap(screen.safe(f"for {', '.join(tools)}; such as"), WIDTH - 2))
    yield _value(screen, "  ", values.call(one.example.tool, one.example.args), verbose=verbose)
    for label, parts in known(one):
        yield _value(screen, f"    {screen.safe(label)}  ", parts, verbose=verbose)
    for name, verdict in (("A", one.a), ("B", one.b)):
        for head, message in said(verdict):
            yield f"    {name} {screen.safe(head)}"
            yield from (f"        {line}" for line in wrap(screen.safe(message), WIDTH - 8) if line)


def _value(screen: Screen, before: str, parts: Iterable[str], *, verbose: bool) -> str:
    room = None if verbose else max(WIDTH - cells(before), _LEAST)
    return before + screen.safe(screen.cut(parts, room))
