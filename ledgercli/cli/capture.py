"""`ledger capture`: a recorded step becomes a case."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ledgercli.cli.common import Command
from ledgercli.errors import ExitCode

if TYPE_CHECKING:
    from ledgercli.capture.adding import Done

__all__ = ["command"]

_DENY = """\
ledger capture 0412.ledger.jsonl@9 --expect deny \\
    --rule refund_of_own_order --to fixtures/support.cases.yaml"""
_FLIPS = """\
ledger replay ledgers --pack new.yaml --format jsonl > whatif.jsonl
ledger capture --flips whatif.jsonl --to fixtures/flips.cases.yaml"""
_EXAMPLES = (
    "ledger capture ledgers/2026-07/0412.ledger.jsonl@9",
    "ledger capture 0412.ledger.jsonl@9 --pseudonyms > 0412.cases.yaml",
    _DENY,
    _FLIPS,
)


@click.command(cls=Command, examples=_EXAMPLES)
@click.argument("address", metavar="[FILE@STEP]", required=False)
@click.option(
    "--expect",
    type=click.Choice(["allow", "warn", "require_approval", "deny"]),
    help="What the verdict should be; left out: what the rules said.",
)
@click.option("--rule", metavar="RULE", help="With --expect: the rule that must fail; it need not exist yet.")
@click.option("--to", metavar="FILE", help="Add the case to this case file, which is made if it is not there.")
@click.option("--pseudonyms", is_flag=True, help="Give people and things other names.")
@click.option("--name", metavar="NAME", help="What the case is called.")
@click.option("--flips", metavar="FILE", help="Make a case of each flip that replay --format jsonl wrote.")
def command(  # noqa: PLR0913 - one parameter an option
    *,
    address: str | None,
    expect: str | None,
    rule: str | None,
    to: str | None,
    pseudonyms: bool,
    name: str | None,
    flips: str | None,
) -> ExitCode:
    """Make a recorded step a case, with only the facts and past steps that its verdict needs.

    With another expectation than the recorded verdict it also has what is known about the records that the call names,
    so that a rule written later fails for the right reason. Without --to the whole case file is printed.

    Exit code: 0 made, whether the case passes yet or not; 2 there is no such step, or the file cannot take it.
    """
    from ledgercli.capture.adding import add_flips
    from ledgercli.reports import captured
    from ledgercli.reports.screen import Screen

    _refuse_odd(address, flips, to, expect, rule, name)
    if flips is not None and to is not None:
        done = add_flips(flips, to, pseudonyms=pseudonyms)
    else:
        assert address is not None, "refused above"
        done = _one(address, expect, rule, to, name, pseudonyms=pseudonyms)
    if to is None:
        out = Screen.stdout()
        out.data(done.file.text.encode())
        out.flush()
    captured.write(Screen.stderr() if to is None else Screen.stdout(), done, to=to is not None, flips=flips is not None)
    return ExitCode.YES


def _one(  # noqa: PLR0913 - the options
    address: str, expect: str | None, rule: str | None, to: str | None, name: str | None, *, pseudonyms: bool
) -> Done:
    from ledgercli.addresses import step_address
    from ledgercli.capture.adding import add_step
    from ledgercli.capture.capturing import Wish

    path, step = step_address(address)
    if step is None:
        raise click.UsageError(f"which step? ledger capture {path}@STEP", ctx=click.get_current_context())
    return add_step(path, step, Wish(expect, rule, name), to, pseudonyms=pseudonyms)


def _refuse_odd(  # noqa: PLR0913 - the options
    address: str | None, flips: str | None, to: str | None, expect: str | None, rule: str | None, name: str | None
) -> None:
    context = click.get_current_context()
    wrong = None
    if address is None and flips is None:
        wrong = "which step? ledger capture FILE@STEP"
    elif flips is not None and (address, expect, rule, name) != (None, None, None, None):
        wrong = "--flips makes cases of its own: without FILE@STEP, --expect, --rule and --name"
    elif flips is not None and to is None:
        wrong = "--flips needs --to FILE"
    elif rule is not None and expect in (None, "allow"):
        wrong = "--rule needs --expect warn, require_approval or deny: what is to come of it where it fails"
    elif to == "-":
        wrong = "without --to the case is printed"
    elif "" in (rule, to, name):
        wrong = "an option is empty"
    if wrong is not None:
        raise click.UsageError(wrong, ctx=context)
