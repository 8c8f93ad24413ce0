"""`ledger doc`: a pack in plain sentences."""

from __future__ import annotations

import click

from ledgercli.cli.common import Command, format_option, output, report_option
from ledgercli.errors import ExitCode

__all__ = ["command"]

_EXAMPLES = (
    "ledger doc policies/support.yaml --cases fixtures/cases/support.cases.yaml",
    "ledger doc policies/airline.yaml --toolset policies/airline.tools.yaml",
    "ledger doc ledgercli:loops --format html --report loops.html",
)


@click.command(cls=Command, examples=_EXAMPLES)
@click.argument("pack", metavar="PACK")
@click.option("--toolset", metavar="FILE", help="The tools that the pack is for, where it brings no vocabulary.")
@click.option("--scenario", metavar="FILE", help="A scenario that uses the pack: its tools, facts and constraints.")
@click.option("--cases", multiple=True, metavar="FILE", help="Cases that prove its rules; several may be given.")
@format_option("markdown", "html")
@report_option
def command(  # noqa: PLR0913 - one parameter an option
    *, pack: str, toolset: str | None, scenario: str | None, cases: tuple[str, ...], form: str, report: str | None
) -> ExitCode:
    """Say what each tool requires, in short sentences that name the fields, for people who keep policies.

    They are made from the rules themselves. The tools are those of --toolset or --scenario, else of the first case
    file.

    Exit code: 0, or 2 where something does not load.
    """
    from ledgercli import documenting
    from ledgercli.loading import Loader, load_scenario, load_toolset, refuse
    from ledgercli.reports import docpage
    from ledgercli.reports import documenting as reports
    from ledgercli.validation import load_cases

    if toolset is not None and scenario is not None:
        raise click.UsageError("either --toolset or --scenario", ctx=click.get_current_context())
    packs = documenting.loaded(pack)
    loader = Loader()
    files = [file for file in (load_cases(loader, name) for name in cases) if file is not None]
    refuse(loader.problems)
    used = None if scenario is None else load_scenario(scenario)
    tools = used.toolset if used else files[0].toolset if files else None
    if toolset is not None:
        tools = load_toolset(toolset)
    vocabulary = documenting.compiled(packs, tools, documenting.given(files), used)
    parts = documenting.document(packs, vocabulary, documenting.cases_of(packs, files), _coverage(cases))
    with output(report) as screen:
        for line in docpage.page(parts) if form == "html" else reports.markdown(parts):
            screen.line(line)
    return ExitCode.YES


def _coverage(cases: tuple[str, ...]) -> dict[str, dict[str, int]]:
    """Return how often each rule gave which answer in the cases that pass."""
    if not cases:
        return {}
    from ledgercli.casework.coverage import Coverage
    from ledgercli.casework.finding import find
    from ledgercli.casework.running import Asked, run

    counted = Coverage()
    for judged in run(find(cases), Asked(coverage=True)):
        if judged.coverage is not None:
            counted.add(judged.coverage)
    return {
        seen.name: {
            "held" if seen.grants else "failed": seen.failed,
            "did not hold" if seen.grants else "passed": seen.passed,
            "could not be told": seen.untold,
            "did not apply": seen.other,
        }
        for seen in counted.rules.values()
    }
