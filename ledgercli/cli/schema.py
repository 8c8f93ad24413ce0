"""`ledger schema`: the JSON Schema of a kind of file."""

from __future__ import annotations

import click

from ledgercli.cli.common import Command, output, report_option, write_json
from ledgercli.errors import ExitCode
from ledgercli.schemas import KINDS, schema
from ledgercli.sources import Kind

__all__ = ["command"]

EXAMPLES = ("ledger schema pack", "ledger schema ledger --report ledger.schema.json")


@click.command(cls=Command, examples=EXAMPLES)
@click.argument("kind", metavar="KIND", type=click.Choice(KINDS))
@report_option
def command(*, kind: Kind, report: str | None) -> ExitCode:
    """Print the JSON Schema of scenario, pack, toolset, cases or ledger (there of one line)."""
    with output(report) as screen:
        write_json(screen, schema(kind))
    return ExitCode.YES
