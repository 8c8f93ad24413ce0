"""`ledger replay`: judge runs again, by what they carry or by other packs; the state at a step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import click

from ledgercli.cli.common import Command, format_option, output, report_option, write_json
from ledgercli.errors import ExitCode

if TYPE_CHECKING:
    from ledgercli.replay.whatif import Change

__all__ = ["command"]

_GATE = """\
ledger replay ledgers --pack policies/support.yaml \\
    --fail-on newly-allowed,cannot-tell"""
_EXAMPLES = (
    "ledger replay ledgers",
    "ledger replay 'runs/*.jsonl' --jobs 4",
    "ledger replay ledgers --pack policies/support.yaml",
    _GATE,
    "ledger replay w.ledger.jsonl@3",
    "ledger replay w.ledger.jsonl@3 --path state.facts.orders",
    "ledger replay w.ledger.jsonl --trace state.facts.user",
)
_ANY: Final = "any"


def _fail_on(context: click.Context, parameter: click.Parameter, value: str | None) -> tuple[Change, ...]:
    """Read the list of `--fail-on`; `any` stands for all."""
    from ledgercli import cel
    from ledgercli.replay.whatif import CHANGES

    names = [name.strip() for name in (value or "").split(",") if name.strip()]
    for name in names:
        if name not in (*CHANGES, _ANY):
            near = cel.nearest(name, (*CHANGES, _ANY)) or (*CHANGES, _ANY)
            raise click.BadParameter(f"{name}; there is {', '.join(near)}", context, parameter)
    return tuple(change for change in CHANGES if change in names or _ANY in names)


@click.command(cls=Command, examples=_EXAMPLES)
@click.argument("ledgers", metavar="LEDGER...", nargs=-1)
@click.option(
    "--pack",
    "packs",
    multiple=True,
    metavar="FILE",
    help="What would this pack have done? It takes the place of the one of that name, or is added.",
)
@click.option("--only-packs", is_flag=True, help="Judge by nothing but --pack.")
@click.option(
    "--fail-on",
    metavar="LIST",
    callback=_fail_on,
    help="Exit 1 if there is one: newly-allowed,newly-denied,newly-to-approve,cannot-tell, or any.",
)
@click.option("--list", "everything", is_flag=True, help="Show all that differs, not two examples a rule.")
@click.option("--path", metavar="PATH", help="Of the state after LEDGER@N, this part: state.facts.x.")
@click.option("--trace", metavar="PATH", help="Show how this part of the state changed over the run.")
@click.option("--jobs", type=click.IntRange(min=1), default=1, metavar="N", help="Use N processes.")
@format_option("text", "json", "jsonl", "markdown", "junit", "github")
@report_option
@click.option("-v", "--verbose", count=True, help="Show whole values.")
def command(  # noqa: PLR0913 - one parameter an option
    *,
    ledgers: tuple[str, ...],
    packs: tuple[str, ...],
    only_packs: bool,
    fail_on: tuple[Change, ...],
    everything: bool,
    path: str | None,
    trace: str | None,
    jobs: int,
    form: str,
    report: str | None,
    verbose: int,
) -> ExitCode:
    """Judge recorded runs again: files, folders with all that is below, patterns. Nothing is run.

    Without --pack by what each ledger carries: the same verdicts and states, or the first difference. With --pack: what
    these rules would have said. LEDGER@N shows the state after step N.

    Exit code: 0 the same, or told; 1 something differs, or --fail-on is met; 2 it could not be asked, or a ledger is
    damaged and was left out.
    """
    _refuse_odd(ledgers, packs, only_packs=only_packs, fail_on=fail_on)
    from ledgercli.addresses import step_address

    addresses = [step_address(ledger) for ledger in ledgers]
    if trace is not None or path is not None or any(step is not None for _, step in addresses):
        _refuse_many(addresses, packs, path, trace, form)
        return _state(*addresses[0], path, trace, form, report, verbose)
    from ledgercli.cli import judged
    from ledgercli.gathering import ledgers as gathered

    if packs:
        from ledgercli.loading import load_packs

        load_packs(packs)  # what is wrong in itself is told before anything is judged
    asked = judged.Asked(gathered(ledgers), packs, only_packs, fail_on, everything, jobs, form, report, verbose > 0)
    return judged.what_if(asked) if packs else judged.verify(asked)


# ---- what does not go together


def _refuse_odd(ledgers: Sequence[str], packs: Sequence[str], *, only_packs: bool, fail_on: Sequence[str]) -> None:
    context = click.get_current_context()
    if not ledgers:
        raise click.UsageError("which ledgers? ledger replay LEDGER...", ctx=context)
    if not packs and (only_packs or fail_on):
        raise click.UsageError(f"{'--only-packs' if only_packs else '--fail-on'} is about --pack FILE", ctx=context)


def _refuse_many(
    addresses: Sequence[tuple[str, int | None]], packs: Sequence[str], path: str | None, trace: str | None, form: str
) -> None:
    context = click.get_current_context()
    step = addresses[0][1]
    if len(addresses) > 1:
        raise click.UsageError("the state at a step, and a trace, are of one ledger", ctx=context)
    if packs:
        raise click.UsageError("--pack judges whole runs: name the ledger without a step", ctx=context)
    if trace is not None and (step is not None or path is not None):
        raise click.UsageError(
            "--trace is about a whole run: name the ledger without a step, and no --path", ctx=context
        )
    if trace is None and step is None:
        raise click.UsageError(f"the state after which step? {addresses[0][0]}@N --path {path}", ctx=context)
    if form not in ("text", "json"):
        raise click.UsageError(f"a state is shown as text or json, not as {form}", ctx=context)


# ---- the state


def _state(  # noqa: PLR0913 - the options that it takes
    ledger: str, step: int | None, path: str | None, trace: str | None, form: str, report: str | None, verbose: int
) -> ExitCode:
    from ledgercli import tracing
    from ledgercli.gathering import ledgers
    from ledgercli.reports import tracing as reports

    [file] = ledgers([ledger])[:1]
    if trace is not None:
        traced = tracing.trace(file, trace)
        with output(report) as screen:
            if form == "json":
                write_json(screen, reports.trace_json(traced))
            else:
                reports.write_trace(screen, traced, verbose)
        return ExitCode.YES
    assert step is not None, "a state is that of a step"
    at = tracing.state_at(file, step, path)
    with output(report) as screen:
        if form == "json":
            write_json(screen, reports.state_json(at))
        else:
            reports.write_state(screen, at, verbose)
    return ExitCode.YES
