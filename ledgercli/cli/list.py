"""`ledger list`: find runs and steps."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

from ledgercli.cli.common import Command, format_option, output, report_option, write_json
from ledgercli.errors import ExitCode
from ledgercli.reports.screen import Screen

if TYPE_CHECKING:
    from ledgercli.listing import Search

__all__ = ["command"]

_INCIDENT = """\
ledger list ledgers --where 'step.tool == "create_return" &&
    step.args.order_id == "#W2378156"'"""
_EXAMPLES = (
    "ledger list ledgers",
    "ledger list runs/*.jsonl --where 'run.status != \"completed\"'",
    _INCIDENT,
    "ledger list ledgers --steps --where '\"refund_over_100\" in step.rules'",
    "ledger list ledgers --where 'run.denied > 2 && run.facts.vip == true'",
)


@click.command(cls=Command, examples=_EXAMPLES)
@click.argument("paths", metavar="PATH...", nargs=-1)
@click.option("--where", metavar="EXPR", help="Which: an expression over run and step, in the language of rules.")
@click.option("--steps", is_flag=True, help="One line a step, not one a run.")
@format_option("text", "json", "jsonl")
@report_option
def command(*, paths: tuple[str, ...], where: str | None, steps: bool, form: str, report: str | None) -> ExitCode:
    """List runs, or steps, of ledgers: files, folders with all that is below, patterns.

    \b
    run.   status, task, steps, denied, rules, packs, scenario, file, id, at,
           facts, flags, constraints, error, answer: as they are at the end
    step.  tool, args, effect, outcome, rules, result, error, step, at

    Without --steps an expression about step selects the runs that have such a step. What is not there does not match.
    Rules are those that failed or warned, as pack/rule and as rule.

    Exit code: 0 something matches, 1 nothing does, 2 it could not be asked, or a ledger is damaged and was left out.
    """  # noqa: D301 - \b keeps click from joining the lines
    if not paths:
        raise click.UsageError("which ledgers? ledger list PATH...", ctx=click.get_current_context())
    from ledgercli.gathering import ledgers
    from ledgercli.listing import Search
    from ledgercli.reports import listing as reports
    from ledgercli.where import Where, parse

    search = Search(Where() if where is None else parse(where), steps=steps)
    files = ledgers(paths)
    found = search.look(_shown(files, streams=form == "jsonl" and report is None))
    with output(report) as screen:
        try:
            if form == "json":
                write_json(screen, reports.to_json(search, found, steps=steps))
            elif form == "jsonl":
                reports.write_lines(screen, found)
            else:
                reports.write_text(screen, found)
        except KeyboardInterrupt:  # while something was written; `look` has ended at one while it read
            search.interrupted = True
    err = Screen.stderr()
    for line in reports.told(search, len(files), steps=steps):
        err.line(err.safe(line))
    return _exit_code(search)


def _shown(files: list[str], *, streams: bool) -> Iterable[str]:
    """Show how far it is, unless lines come out on the terminal meanwhile."""
    if streams and sys.stdout.isatty():
        return files
    from ledgercli.cli.progress import watched

    return watched(files, len(files), "ledgers")


def _exit_code(search: Search) -> ExitCode:
    if search.interrupted:
        return ExitCode.INTERRUPTED
    if search.damaged:
        return ExitCode.UNASKED
    return ExitCode.YES if search.matched else ExitCode.NO
