"""`ledger validate`: check files of any kind."""

from __future__ import annotations

import click

from ledgercli.cli.common import Command, format_option, output, report_option, write_json
from ledgercli.errors import ExitCode, LedgerCliError
from ledgercli.reports.screen import Screen, on_github

__all__ = ["command"]

EXAMPLES = (
    "ledger validate .",
    "ledger validate policies fixtures --format github",
    "ledger validate w.ledger.jsonl --anchor sha256:9f2c51d80b7e...",
    "ledger validate --explain unknown-fact",
)


@click.command(cls=Command, examples=EXAMPLES)
@click.argument("paths", metavar="PATH...", nargs=-1)
@click.option("--anchor", metavar="DIGEST", help="The head of the ledger as it was kept elsewhere.")
@click.option("--allow-unsealed", is_flag=True, help="A ledger without a close line passes.")
@click.option("--explain", metavar="CODE", help="Say what a code in brackets means, and check nothing.")
@format_option("text", "json", "github")
@report_option
@click.option("-v", "--verbose", is_flag=True, help="Also the notes on rules, facts and tools.")
def command(  # noqa: PLR0913 - one parameter an option
    *,
    paths: tuple[str, ...],
    anchor: str | None,
    allow_unsealed: bool,
    explain: str | None,
    form: str,
    report: str | None,
    verbose: bool,
) -> ExitCode:
    """Check packs, toolsets, scenarios, cases and ledgers, in any mix.

    Each file says with its first key what it is. All problems are reported, and what packs that load are analysed for:
    rules that can never apply or fail, duplicates, deadlocks, names that stand in vain. No tool's code is imported or
    run.

    Exit code: 0 nothing is wrong, 1 something is, 2 a path cannot be read or nothing was found.
    """
    if explain is not None:
        return _explain(explain)
    if not paths:
        raise click.UsageError("which files? ledger validate PATH...", ctx=click.get_current_context())
    from ledgercli.reports import problems as reports
    from ledgercli.validation import validate

    found = validate(paths, anchor=anchor, allow_unsealed=allow_unsealed)
    shown = found.problems if verbose else found.pressing
    with output(report) as screen:
        if form == "json":
            write_json(screen, reports.to_json(found.problems, found.counts, found.ledgers, found.exit_code))
        elif form == "github":
            reports.write_annotations(screen, shown)
        else:
            reports.write_text(screen, shown, found.counts, found.ledgers, len(found.problems) - len(shown))
    if on_github() and form != "github":
        reports.write_annotations(Screen.stderr(), shown)
    return found.exit_code


def _explain(code: str) -> ExitCode:
    from ledgercli.explanations import explanations, like
    from ledgercli.reports.cells import WIDTH, wrap

    text = explanations().get(code)
    if text is None:
        near = like(code)
        raise LedgerCliError(f"no code {code}" + (f"; there is {' or '.join(near)}" if near else ""))
    screen = Screen.stdout()
    screen.line(code)
    for line in wrap(text, WIDTH - 4):
        screen.line(f"    {line}")
    return ExitCode.YES
