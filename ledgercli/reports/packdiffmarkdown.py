"""What two versions of a pack differ in, as Markdown.

Invariants:
* A reader of a pull request takes it in at a glance; text and JSON have all.
* Values are cut, so that a comment stays short.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from ledgercli.diff.packs import Change, Found, PackDifference
from ledgercli.paths import ABSENT
from ledgercli.reports import values
from ledgercli.reports.cells import cut
from ledgercli.reports.markdown import code, table, text
from ledgercli.reports.packdiff import differing, grouped, known, place, said, without, written

_MANY: Final = 30  # rows
_ROOM: Final = 100  # cells of a value
_SIGNS: Final = {"~": "changed", "-": "only in A", "+": "only in B"}


def of_packs(found: PackDifference) -> Iterator[str]:
    """Yield what two versions of a pack differ in."""
    yield f"### ledger diff: {'same' if found.same else 'differs'}"
    yield ""
    yield from table(("", "pack", "rules"), [_side("A", found.a), _side("B", found.b)])
    yield ""
    if found.written:
        rows = [_change(change) for change in found.written]
        yield from table(("written otherwise", "", "A", "B"), rows[:_MANY])
        yield from _more(len(rows))
        yield ""
    groups = grouped(found)
    if groups:
        rows = [_found(one, tools) for one, tools in groups]
        yield from table(("verdicts that can differ", "by", "for", "such as", "A", "B"), rows[:_MANY])
        yield from _more(len(rows))
        yield ""
    for label, tools in without(found):
        yield f"- {label}: {', '.join(map(code, tools))}"


def _more(rows: int) -> Iterator[str]:
    if rows > _MANY:
        yield ""
        yield f"... and {rows - _MANY:,} more rows."


def _side(name: str, side: Any) -> tuple[str, ...]:
    return name, code(side.path), f"{len(side.pack.file.rules):,}"


def _change(change: Change) -> tuple[str, ...]:
    a, b = ("" if value is ABSENT else _cut(written(value)) for value in (change.a, change.b))
    return code(place(change)), _SIGNS[change.sign], a, b


def _found(one: Found, tools: list[str]) -> tuple[str, ...]:
    example = [_cut(values.call(one.example.tool, one.example.args))]
    example += [f"{text(label)} {_cut(parts)}" for label, parts in known(one)]
    sides = [
        "<br>".join(text(f"{head}: {message}" if message else head) for head, message in said(verdict))
        for verdict in (one.a, one.b)
    ]
    return text(differing(one)), ", ".join(map(code, one.by)), ", ".join(map(code, tools)), "<br>".join(example), *sides


def _cut(parts: Iterable[str]) -> str:
    return code(cut(parts, _ROOM))
