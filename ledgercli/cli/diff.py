"""`ledger diff`: compare two ledgers, folders or packs."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import get_args

import click

from ledgercli.cli.common import Command, format_option, output, report_option, write_json
from ledgercli.diff.layers import LAYERS, Counting, FailOn, Layer
from ledgercli.errors import ExitCode, LedgerCliError
from ledgercli.reports.screen import Screen

__all__ = ["command"]

_EXAMPLES = (
    "ledger diff gpt-4o/refund-17.ledger.jsonl sonnet/refund-17.ledger.jsonl",
    "ledger diff a.ledger.jsonl b.ledger.jsonl --ignore result.data.timestamp",
    "ledger diff runs/gpt-4o runs/sonnet --fail-on worse --format markdown",
    "ledger diff policies/support.yaml stricter.yaml --toolset shop.tools.yaml",
)


@click.command(cls=Command, examples=_EXAMPLES)
@click.argument("a", metavar="A")
@click.argument("b", metavar="B")
@click.option(
    "--ignore",
    multiple=True,
    metavar="PATH",
    help="This does not count, nor what is below it: action.args.note, result.data.time, state.facts.x, verdict.reads.",
)
@click.option("--only", type=click.Choice(LAYERS), help="Nothing but this layer counts.")
@click.option("--times", is_flag=True, help="Times count too.")
@click.option(
    "--fail-on",
    type=click.Choice(get_args(FailOn)),
    default="any",
    show_default=True,
    help="What makes it exit 1: any difference, B worse than A, other verdicts, other facts at the end.",
)
@click.option(
    "--toolset",
    metavar="FILE",
    help="For packs: a toolset, scenario or case file that says which tools and facts there are.",
)
@format_option("text", "json", "markdown")
@report_option
@click.option("-v", "--verbose", is_flag=True, help="Every step that differs, with whole values.")
def command(  # noqa: PLR0913 - one parameter an option
    *,
    a: str,
    b: str,
    ignore: tuple[str, ...],
    only: Layer | None,
    times: bool,
    fail_on: FailOn,
    toolset: str | None,
    form: str,
    report: str | None,
    verbose: bool,
) -> ExitCode:
    """Compare two ledgers, two folders of ledgers, or two versions of a pack.

    Steps are aligned, so that one more does not shift the rest. Times, ids and the numbers of steps do not count.

    Of two packs it says what is written otherwise, and which verdicts can differ, with an example of each.

    Exit code: 0 the same, 1 different, 2 a file cannot be read or is damaged.
    """
    kinds = _kind(a), _kind(b)
    if kinds[0] != kinds[1]:
        message = f"only two of a kind can be compared: {a} is a {kinds[0]}, {b} is a {kinds[1]}"
        raise click.UsageError(message, ctx=click.get_current_context())
    if kinds[0] != "ledger" and (ignore or only or times):
        message = "--ignore, --only and --times are about the steps of two ledgers"
        raise click.UsageError(message, ctx=click.get_current_context())
    if kinds[0] != "pack" and toolset is not None:
        raise click.UsageError("--toolset is about two packs", ctx=click.get_current_context())
    match kinds[0]:
        case "folder":
            return _folders(a, b, fail_on, form, report, verbose=verbose)
        case "pack":
            return _packs(a, b, toolset, fail_on, form, report, verbose=verbose)
    from ledgercli.diff import ledgers as diff
    from ledgercli.reports import diffdata, diffmarkdown
    from ledgercli.reports.diff import DiffReport

    found = diff.differences(a, b, Counting.of(ignore, only, times=times))
    code = ExitCode.NO if found.fails(fail_on) else ExitCode.YES
    with output(report) as screen:
        if form == "json":
            write_json(screen, diffdata.of_ledgers(found, code, everything=verbose))
        elif form == "markdown":
            _write(screen, diffmarkdown.of_ledgers(found))
        else:
            DiffReport(screen, found, verbose=verbose).write()
    return code


def _folders(  # noqa: PLR0913 - the options that folders take
    a: str, b: str, fail_on: FailOn, form: str, report: str | None, *, verbose: bool
) -> ExitCode:
    from ledgercli.cli.progress import watched
    from ledgercli.diff import folders
    from ledgercli.reports import diffdata, diffmarkdown
    from ledgercli.reports import folders as reports

    found = folders.compare(a, b, lambda files: watched(files, len(files), "ledgers"))
    code = ExitCode.NO if found.fails(fail_on) else ExitCode.YES
    code = ExitCode.UNASKED if folders.damage((found.a, found.b)) else code
    with output(report) as screen:
        if form == "json":
            write_json(screen, diffdata.of_folders(found, code))
        elif form == "markdown":
            _write(screen, diffmarkdown.of_folders(found))
        else:
            reports.write_text(screen, found, verbose=verbose)
    reports.write_next(Screen.stderr(), found)
    return code


def _packs(  # noqa: PLR0913 - the options that packs take
    a: str, b: str, toolset: str | None, fail_on: FailOn, form: str, report: str | None, *, verbose: bool
) -> ExitCode:
    from ledgercli.diff import packs
    from ledgercli.reports import packdiff, packdiffdata, packdiffmarkdown

    if fail_on == "state":
        message = "--fail-on state is about ledgers and folders of them; packs have verdicts"
        raise click.UsageError(message, ctx=click.get_current_context())
    found = packs.differences(a, b, toolset=toolset)
    code = ExitCode.NO if found.fails(fail_on) else ExitCode.YES
    with output(report) as screen:
        if form == "json":
            write_json(screen, packdiffdata.of_packs(found, code))
        elif form == "markdown":
            _write(screen, packdiffmarkdown.of_packs(found))
        else:
            packdiff.write_text(screen, found, verbose=verbose)
    return code


def _write(screen: Screen, lines: Iterable[str]) -> None:
    for line in lines:
        screen.line(line)


def _kind(path: str) -> str:
    """Return what is compared: a ledger, a folder or a pack.

    Raises:
        LedgerCliError: it is none of these, or cannot be read.

    """
    from ledgercli import sources

    if Path(path).is_dir():
        return "folder"
    kind = sources.kind_of(path)
    if kind in ("ledger", "pack"):
        return kind
    if path.endswith(".jsonl") and Path(path).is_file():  # its first line may be what is damaged
        return "ledger"
    if kind is None:
        sources.read(path)  # says what is wrong, and what there is instead
    what = f"a {kind} file" if kind else "none of our files"
    raise LedgerCliError(f"{path} is {what}; ledgers, folders of them and packs can be compared")
