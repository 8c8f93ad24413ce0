"""The first lines of a run: who and what takes part."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ledgercli.records import Line
from ledgercli.reports import values
from ledgercli.reports.cells import WIDTH, cells
from ledgercli.reports.screen import Screen


def heading(screen: Screen, opening: Line) -> list[str]:
    """Return who and what takes part in a run, as its first line says it."""
    packs = ", ".join(file["name"] for file in opening["files"] if file["kind"] == "pack")
    names = [file["name"] for file in opening["files"] if file["kind"] == "scenario"] or ["run"]
    rest = screen.safe(f"packs {packs or 'none'}  engine {engine_name(opening['engine'])}")
    rest += "  mode shadow" if opening.get("mode") == "shadow" else ""
    came = opening.get("from")
    more = [] if came is None else [screen.safe(f"  from {came['ledger']}@{came['step']}")]
    return [*title(screen, names[0], opening["state"]["task"], rest), *more]


def title(screen: Screen, name: str, task: str, rest: str) -> list[str]:
    """Return a name, a task and what else there is; on two lines where the task would have no room."""
    first = f"{screen.safe(name)}  task "
    parts = list(values.parts(task))
    room = WIDTH - cells(first) - cells(rest) - 2
    if cells(screen.cut(parts, None)) <= room or room >= WIDTH // 3:
        return [f"{first}{screen.cut(parts, room)}  {rest}"]
    return [first + screen.cut(parts, WIDTH - cells(first)), f"  {rest}"]


def engine_name(engine: Mapping[str, Any]) -> str:
    """Return who proposes."""
    return str(engine.get("model") or engine["kind"])
