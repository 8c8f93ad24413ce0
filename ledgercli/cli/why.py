"""`ledger why`: the verdict at a step, explained."""

from __future__ import annotations

import click

from ledgercli.cli.common import Command, format_option, output, report_option, write_json
from ledgercli.errors import ExitCode

__all__ = ["command"]

_EXAMPLES = (
    "ledger why ledgers/2026-07/0412.ledger.jsonl@9",
    "ledger why ledgers/shop.ledger.jsonl@4 -v",
    "ledger why ledgers/shop.ledger.jsonl@4 --pack policies/support.yaml",
    "ledger why ledgers/shop.ledger.jsonl@4 --format json",
)


@click.command(cls=Command, examples=_EXAMPLES)
@click.argument("address", metavar="FILE@STEP")
@click.option("--pack", "packs", multiple=True, metavar="FILE", help="Judge anew by this pack; several may be given.")
@click.option("--only-packs", is_flag=True, help="By nothing else than the packs given.")
@format_option("text", "json", "markdown")
@report_option
@click.option("-v", "--verbose", is_flag=True, help="Also rules about other tools, whole values, all that is known.")
def command(  # noqa: PLR0913 - one parameter an option
    *, address: str, packs: tuple[str, ...], only_packs: bool, form: str, report: str | None, verbose: bool
) -> ExitCode:
    """Explain the verdict at a step: rules that failed, passed, did not apply; where the arguments come from.

    For a call that was refused: the smallest change of its arguments, of what was known or of what had run that lets it
    pass, as the rules themselves judge. A pack takes the place of the one of its name, or is added.

    Exit code: 0, also for a denial; 2 there is no such step, or something does not load.
    """
    from ledgercli.addresses import step_address
    from ledgercli.reports import why as reports
    from ledgercli.reports import whymarkdown
    from ledgercli.shelf import Shelf
    from ledgercli.why.explaining import at

    path, step = step_address(address)
    context = click.get_current_context()
    if step is None:
        raise click.UsageError(f"which step? ledger why {path}@STEP", ctx=context)
    if only_packs and not packs:
        raise click.UsageError("--only-packs needs --pack", ctx=context)
    explained = at(path, step, Shelf(packs, only_packs=only_packs) if packs else None)
    with output(report) as screen:
        if form == "json":
            write_json(screen, reports.to_json(explained))
        elif form == "markdown":
            whymarkdown.write(screen, explained)
        else:
            reports.write_text(screen, explained, verbose=verbose)
    return ExitCode.YES
