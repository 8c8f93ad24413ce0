"""Runs and steps, one line each.

Invariants:
* Fixed words and numbers stand left, then the file, which is whole; what somebody else wrote stands last.
* A line is 80 cells; only a long path makes it longer, since something of the task or call is always shown.
* Rows are aligned in blocks, so that any number of them takes the memory of one block.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, Final

import orjson

from ledgercli.listing import Damaged, Run, Search, Step
from ledgercli.reports import values
from ledgercli.reports.cells import WIDTH, cells, pad
from ledgercli.reports.screen import Screen, Style
from ledgercli.reports.summary import counted

SCHEMA: Final = "list/1"
_BLOCK: Final = 10_000  # rows that are aligned with one another
_EFFECT: Final = 5  # cells of `allow`; `require_approval` is rare, as in `ledger run`
_OUTCOME: Final = 7  # cells of `waiting`
_STATUS: Final = 11  # cells of `interrupted`, at most; `awaiting_approval` is rarer
_LEAST: Final = 16  # cells of a task or call that are shown, whatever stands before it
_MOST: Final = 5  # damaged ledgers that are named
_STYLES: Final[Mapping[str, Style]] = {
    "failed": "red",
    "error": "red",
    "deny": "red",
    "denied": "red",
    "awaiting_approval": "yellow",
    "require_approval": "yellow",
    "waiting": "yellow",
    "warn": "yellow",
    "unknown": "yellow",
}


def write_text(screen: Screen, found: Iterable[Run | Step]) -> None:
    """Write a line for each."""
    rows = iter(found)
    while block := list(islice(rows, _BLOCK)):
        table = [_words(one) for one in block]
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        for one, words in zip(block, table, strict=True):
            screen.line(_line(screen, one, list(zip(words, widths, strict=True))))


def _words(one: Run | Step) -> tuple[str, ...]:
    """Return what is aligned: words and numbers of this program."""
    if isinstance(one, Step):
        return f"{one.effect or '-':{_EFFECT}}", f"{one.outcome:{_OUTCOME}}"
    return one.status, f"{one.steps:,} step{'s,' if one.steps != 1 else ', '} {one.denied:,} denied"


def _line(screen: Screen, one: Run | Step, words: list[tuple[str, int]]) -> str:
    if isinstance(one, Step):
        path, padded = f"{one.ledger}@{one.step}", [word for word, _ in words]
    else:
        (status, width), (counts, wide) = words
        path, padded = one.ledger, [pad(status, min(width, _STATUS)), f"{counts:>{wide}}"]
    before = f"{'  '.join(padded)}  {screen.safe(path)}  "
    room = max(WIDTH - cells(before), _LEAST)
    shown = [screen.paint(word, _STYLES.get(word.strip())) for word in padded]
    text = _call(screen, one, room) if isinstance(one, Step) else screen.cut(values.parts(one.task), room)
    return "  ".join([*shown, screen.paint(screen.safe(path), "dim"), text]).rstrip()


def _call(screen: Screen, step: Step, room: int) -> str:
    """Return the call; of what nobody asked for, such as a user's message, what was said."""
    tool, args = str(step.action["tool"]), step.action["args"]
    if step.effect is None and step.result is not None:
        return screen.cut((f"{screen.safe(tool)} ", *values.parts(step.result.get("data"))), room)
    text = screen.cut(values.call(tool, args), room)
    name = screen.safe(tool)
    return screen.paint(name, "bold") + text.removeprefix(name) if text.startswith(f"{name}(") else text


# JSON


def write_lines(screen: Screen, found: Iterable[Run | Step]) -> None:
    """Write each as an object on a line of its own, as it is found."""
    for one in found:
        screen.data(orjson.dumps({"schema": SCHEMA, **one.to_json()}, option=orjson.OPT_APPEND_NEWLINE))


def to_json(search: Search, found: Iterable[Run | Step], *, steps: bool) -> dict[str, Any]:
    """Return all as one object."""
    rows = [one.to_json() for one in found]
    return {
        "schema": SCHEMA,
        "steps" if steps else "runs": rows,
        "ledgers": search.read,
        "damaged": [{"ledger": one.ledger, "error": one.error} for one in search.damaged],
        "interrupted": search.interrupted,
    }


# What is told besides


def told(search: Search, of: int, *, steps: bool) -> Iterator[str]:
    """Yield what stands on stderr: what could not be read, how far it came, and that nothing matches."""
    yield from _damage(search.damaged)
    if search.interrupted:
        yield f"interrupted: {search.read:,} of {counted(of, 'ledger')} were looked at"
    elif not search.matched and search.read > len(search.damaged):
        yield f"no {'step' if steps else 'run'} matches, of {counted(search.read - len(search.damaged), 'ledger')}"
        yield from (f"  note: {stranger}" for stranger in search.strangers())


def _damage(damaged: list[Damaged]) -> Iterator[str]:
    for one in damaged[:_MOST]:
        yield f"damaged: {one.error}"
    if len(damaged) > _MOST:
        yield f"damaged: and {len(damaged) - _MOST:,} more (--format json lists them)"
    if damaged:
        yield f"{counted(len(damaged), 'ledger')} left out; ledger validate says more"
