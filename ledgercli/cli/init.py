"""`ledger init`: something to begin with."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from ledgercli.cli.common import Command
from ledgercli.errors import ExitCode

__all__ = ["command"]

EXAMPLES = ("ledger init weather", "ledger init .")


@click.command(cls=Command, examples=EXAMPLES)
@click.argument("folder", metavar="DIR")
def command(*, folder: str) -> ExitCode:
    """Write a scenario, a toolset, a pack and cases into DIR, to begin with. No file is ever overwritten."""
    from ledgercli.reports.cells import cells, pad
    from ledgercli.reports.screen import Screen
    from ledgercli.starting import FILES, begin

    screen = Screen.stdout()
    names = [screen.safe(str(path)) for path in begin(Path(folder))]
    width = max(map(cells, names)) + 2
    for name, what in zip(names, FILES.values(), strict=True):
        screen.line(pad(name, width) + what)
    screen.flush()
    there = "" if Path(folder) == Path() else f"cd {shlex.quote(folder)} && "
    screen = Screen.stderr()
    screen.line(screen.safe(f"next: {there}ledger validate . && ledger run --scenario weather.yaml"))
    return ExitCode.YES
