"""`ledger approve`: answer a call that waits for an approval."""

from __future__ import annotations

import click

from ledgercli.cli.common import Command, format_option, write_json

__all__ = ["command"]

_EXAMPLES = (
    "ledger approve w.ledger.jsonl --yes --by mia",
    "ledger approve w.ledger.jsonl@5 --no --by mia --reason 'no receipt'",
    "ledger run --resume w.ledger.jsonl",
)


@click.command(cls=Command, examples=_EXAMPLES)
@click.argument("address", metavar="LEDGER[@STEP]")
@click.option("--yes/--no", "yes", default=None, help="The answer.")
@click.option("--by", metavar="NAME", help="Who answers. [your login name]")
@click.option("--reason", metavar="TEXT", help="Why.")
@format_option("text", "json")
def command(*, address: str, yes: bool | None, by: str | None, reason: str | None, form: str) -> None:
    """Answer a call that waits: the step that is named, or the latest that waits.

    The answer holds for exactly this call, under the same packs and with the same values read, and once. The run goes
    on with `ledger run --resume`; the call is then judged again.
    """
    from ledgercli.amending import approve
    from ledgercli.reports.amended import answer_json, show_answer
    from ledgercli.reports.screen import Screen

    if yes is None:
        raise click.UsageError("say --yes or --no")
    answer = approve(address, yes=yes, by=login_name() if by is None else by, reason=reason)
    if form == "json":
        write_json(Screen.stdout(), answer_json(answer))
        return
    show_answer(Screen.stdout(), Screen.stderr(), answer)


def login_name() -> str:
    """Return who is at the terminal; '' where the system does not know."""
    import getpass

    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):
        return ""
