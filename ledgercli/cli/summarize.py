"""`ledger summarize`: one run, or what many came to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from ledgercli.cli.common import Command, format_option, output, report_option, write_json
from ledgercli.errors import ExitCode, LedgerCliError
from ledgercli.reports.screen import Screen

if TYPE_CHECKING:
    from ledgercli.summariser.recount import Recount

__all__ = ["command"]

_EXAMPLES = (
    "ledger summarize ledgers/refund-17.ledger.jsonl",
    "ledger summarize ledgers/2026-07",
    "ledger summarize ledgers/refund-17.ledger.jsonl@9 --for model",
    "ledger summarize refund.ledger.jsonl --for model --budget 1000 --format json",
)
_LEAST = 200  # tokens; with fewer a view tells nothing


@click.command(cls=Command, examples=_EXAMPLES)
@click.argument("paths", metavar="LEDGER...", nargs=-1)
@click.option(
    "--for",
    "whom",
    type=click.Choice(["person", "model"]),
    default="person",
    show_default=True,
    help="A timeline, or what a model gets of the run in its prompt.",
)
@click.option(
    "--budget", type=click.IntRange(_LEAST, 1_000_000), metavar="TOKENS", help="For a model: at most so many.  [3000]"
)
@click.option("--select", type=click.Choice(["relevant", "all"]), help="For a model: which facts.  [relevant]")
@format_option("text", "json", "markdown")
@report_option
@click.option("-v", "--verbose", is_flag=True, help="For people: all facts and tools, whole values.")
def command(  # noqa: PLR0913 - one parameter an option
    *,
    paths: tuple[str, ...],
    whom: str,
    budget: int | None,
    select: str | None,
    form: str,
    report: str | None,
    verbose: bool,
) -> ExitCode:
    """Summarize a run: a line a step, what was refused and why, facts and who set them, cost. Of many: totals.

    LEDGER is a file, FILE@STEP (the run up to that step), a folder or a pattern.

    --for model prints the part of a prompt that tells of the state and the past: bounded however long the run is,
    counts whole, older steps folded, of large values the beginning and where they stand. Tokens are characters / 4.

    Exit code: 0, or 2 where a ledger cannot be read or is damaged; others are still summarized.
    """
    from ledgercli.addresses import step_address

    context = click.get_current_context()
    if not paths:
        raise click.UsageError("which ledgers? ledger summarize LEDGER...", ctx=context)
    if whom == "person" and (budget is not None or select is not None):
        raise click.UsageError("--budget and --select go with --for model", ctx=context)
    path, step = step_address(paths[0])
    files = [path] if step is not None and len(paths) == 1 else _files(paths)
    if len(files) > 1 and whom == "model":
        raise click.UsageError(f"--for model takes one ledger; here are {len(files):,}", ctx=context)
    if whom == "model":
        return _view(files[0], step, {"budget": budget, "select": select}, form, report)
    if len(files) == 1 and paths == (files[0] if step is None else paths[0],):
        return _one(files[0], step, form, report, whole=verbose)
    return _many(files, form, report, whole=verbose)


def _files(paths: Sequence[str]) -> list[str]:
    from ledgercli.addresses import step_address
    from ledgercli.gathering import ledgers

    for path in paths:
        if step_address(path)[1] is not None:
            raise click.UsageError(f"{path} is a step, which stands alone", ctx=click.get_current_context())
    return ledgers(paths)


def _view(path: str, step: int | None, settings: dict[str, Any], form: str, report: str | None) -> ExitCode:
    """Write the view for a model."""
    from ledgercli.prompting.recorded import recorded
    from ledgercli.reports import view as reports

    found = recorded(path, step, ledger=path, **settings)
    view = found.prompter.decision_view(found.state, found.history, found.now)
    with output(report) as screen:
        if form == "json":
            write_json(screen, reports.to_json(path, found.step, view))
        elif form == "markdown":
            reports.write_markdown(screen, f"{path}@{found.step}", view)
        else:
            reports.write_text(screen, view)
    err = Screen.stderr()
    err.line(f"~{view.tokens:,} tokens")
    return ExitCode.YES


def _one(path: str, step: int | None, form: str, report: str | None, *, whole: bool) -> ExitCode:
    """Write one run, as it is read."""
    from ledgercli.cli.recounting import OneRun

    with output(report) as screen:
        OneRun(screen, path, step, form, whole=whole).write()
    return ExitCode.YES


def _many(files: Sequence[str], form: str, report: str | None, *, whole: bool) -> ExitCode:
    """Write what many runs came to; a Ctrl-C keeps what is done."""
    from ledgercli.cli.progress import watched
    from ledgercli.cli.recounting import read
    from ledgercli.reports import recount as reports
    from ledgercli.reports import recountmarkdown
    from ledgercli.reports.summary import counted

    runs: list[Recount] = []
    damaged: list[tuple[str, str]] = []
    interrupted = False
    try:
        for file in watched(files, len(files), "ledgers"):
            try:
                runs.append(read(file))
            except LedgerCliError as error:
                damaged.append((file, error.message))
    except KeyboardInterrupt:
        interrupted = True
    with output(report) as screen:
        if form == "json":
            write_json(screen, reports.totals_json(runs, damaged, interrupted=interrupted))
        else:
            made = recountmarkdown.many(runs) if form == "markdown" else reports.totals_lines(screen, runs, whole=whole)
            for line in made if runs else ():
                screen.line(line)
    err = Screen.stderr()
    for _, message in damaged[:5]:
        err.line(err.safe(f"damaged: {message}"))
    if damaged:
        err.line(f"{counted(len(damaged), 'ledger')} left out; ledger validate says more")
    if interrupted:
        err.line(f"interrupted after {len(runs) + len(damaged):,} of {counted(len(files), 'ledger')}")
        return ExitCode.INTERRUPTED
    return ExitCode.UNASKED if damaged else ExitCode.YES
