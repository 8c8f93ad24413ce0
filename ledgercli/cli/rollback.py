"""`ledger rollback`: go back to the state after an earlier step."""

from __future__ import annotations

import click

from ledgercli.cli.approve import login_name
from ledgercli.cli.common import Command, format_option, write_json

__all__ = ["command"]

_EXAMPLES = (
    "ledger rollback w.ledger.jsonl@3 --reason 'wrong customer'",
    "ledger rollback w.ledger.jsonl@0 --reason 'begin again' --by mia",
    "ledger run --resume w.ledger.jsonl",
)


@click.command(cls=Command, examples=_EXAMPLES)
@click.argument("address", metavar="LEDGER@N")
@click.option("--reason", required=True, metavar="TEXT", help="Why.")
@click.option("--by", metavar="NAME", help="Who says so. [your login name]")
@format_option("text", "json")
def command(*, address: str, reason: str, by: str | None, form: str) -> None:
    """Go back to the state after step N; 0 is the state that the run began with.

    Nothing is rewritten: one more line says that the state is that of step N. What has run since has run; its steps
    still stand, and count for rules about earlier calls. The run goes on with `ledger run --resume`.
    """
    from ledgercli.amending import roll_back
    from ledgercli.reports.amended import return_json, show_return
    from ledgercli.reports.screen import Screen

    done = roll_back(address, reason=reason, by=login_name() if by is None else by)
    if form == "json":
        write_json(Screen.stdout(), return_json(done))
        return
    show_return(Screen.stdout(), Screen.stderr(), done)
