"""`ledger check`: judge one proposal by hand."""

from __future__ import annotations

import sys

import click

from ledgercli.cli.common import Command, format_option, output, report_option, write_json
from ledgercli.errors import ExitCode

__all__ = ["command"]

_SENSITIVE = """\
ledger check --pack policies/weather.yaml --toolset weather.tools.yaml \\
    --state '{constraints: {sensitive_locations: [Area51]}}' \\
    --propose '{"tool": "get_weather", "args": {"location": "Area51"}}'"""
_FROM_FILES = """\
ledger check --pack ledgercli:weather --toolset weather.tools.yaml \\
    --state state.yaml --propose - -v < proposal.json"""


@click.command(cls=Command, examples=(_SENSITIVE, _FROM_FILES))
@click.option("--pack", "packs", multiple=True, required=True, metavar="FILE", help="A pack; several may be given.")
@click.option("--toolset", required=True, metavar="FILE", help="The tools.")
@click.option("--propose", required=True, metavar="JSON", help='The call: {"tool": ..., "args": {...}}; - reads stdin.')
@click.option(
    "--state", metavar="FILE", help="What is known: task, facts, constraints, flags, goals; or the map itself."
)
@click.option("--now", metavar="TIME", help="The time, as 2026-08-01T12:00:00Z; the clock's if left out.")
@format_option("text", "json")
@report_option
@click.option("-v", "--verbose", count=True, help="Also what the rules read; -vv: whole values.")
def command(  # noqa: PLR0913 - one parameter an option
    *,
    packs: tuple[str, ...],
    toolset: str,
    propose: str,
    state: str | None,
    now: str | None,
    form: str,
    report: str | None,
    verbose: int,
) -> ExitCode:
    """Judge one proposal by hand, in a state that you give. Nothing is run.

    Exit code: 0 allow or warn, 1 deny, 3 an approval is required, 2 a file does not load.
    """
    from ledgercli.judging import judge, proposal_of, state_of
    from ledgercli.reports import judgement

    proposal = proposal_of(sys.stdin.read() if propose == "-" else propose)
    judged = judge(packs, toolset, proposal, {} if state is None else state_of(state), now)
    with output(report) as screen:
        if form == "json":
            write_json(screen, judgement.to_json(judged))
        else:
            judgement.write_text(screen, judged, verbose)
    return judgement.EXIT_OF[judged.verdict.effect]
