"""How far a command is, on a terminal: one line on stderr that is gone when it ends.

Invariants:
* Nothing is shown, and rich is not imported, unless stderr is a terminal.
* The line is gone before whoever consumed the items goes on; what is printed meanwhile must not go to the terminal.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import Final, TypeVar

__all__ = ["bar", "watched"]

T = TypeVar("T")

_CELLS: Final = 30


def watched(items: Iterable[T], total: int | None, what: str) -> Iterator[T]:
    """Yield the items and show how many are done.

    Arguments:
        items: whatever is worked through; an item is done when the next one is asked for.
        total: how many there are; None if that is not known.
        what: what they are called: `ledgers`.

    """
    if sys.stderr is None or not sys.stderr.isatty():
        yield from items
        return
    from rich.console import Console
    from rich.progress import Progress, ProgressColumn, SpinnerColumn, Task, TextColumn, TimeElapsedColumn
    from rich.text import Text

    class Bar(ProgressColumn):
        """In ASCII: rich's own characters are two cells wide in many Chinese terminals."""

        def render(self, task: Task) -> Text:
            return Text(bar(task.completed, task.total or 0))

    of = "" if total is None else " of {task.total:,}"
    columns: list[ProgressColumn] = [SpinnerColumn("line"), TextColumn("{task.completed:,}" + f"{of} {what}")]
    columns += [TimeElapsedColumn()] if total is None else [Bar(), TimeElapsedColumn()]
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        shown = progress.add_task(what, total=total)
        for item in items:
            yield item
            progress.advance(shown)


def bar(done: float, total: float) -> str:
    """Return how far it is as a bar: `[#####-----]`."""
    full = int(_CELLS * done / total) if total else _CELLS
    return f"[{'#' * full}{'-' * (_CELLS - full)}]"
