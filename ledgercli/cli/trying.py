"""`ledger run --trials`: scenarios run several times, and what that says."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING

import orjson

from ledgercli import paths
from ledgercli.cli.common import write_json
from ledgercli.cli.progress import watched
from ledgercli.errors import ExitCode
from ledgercli.reports import trials as reports
from ledgercli.reports.screen import Screen
from ledgercli.trials import Trial, Trials

if TYPE_CHECKING:
    from ledgercli.loop import Approver
    from ledgercli.runs import Job
    from ledgercli.scenario import Scenario

__all__ = ["Asked", "try_all"]


@dataclass(frozen=True, slots=True)
class Asked:
    """What the options ask of trials.

    Arguments:
        trials: how often each scenario is run.
        workers: how many runs may be under way at once.
        least: the rate of passes that is asked for; None: all.
        form: how it is written.
        quiet: only where the ledgers are.
        verbose: name every rule that denied.

    """

    trials: int
    workers: int
    least: float | None
    form: str
    quiet: bool
    verbose: bool


def try_all(prepared: Sequence[tuple[Scenario, Iterator[Job]]], asked: Asked, approver: Approver) -> ExitCode:
    """Run every scenario as often as is asked, and report.

    Returns:
        The highest exit code of all scenarios.

    """
    screen, told, codes = Screen.stdout(), [], [ExitCode.YES]
    for number, (scenario, jobs) in enumerate(prepared):
        every = list(jobs)
        trials = Trials(scenario.name, every[0].engine_line(), asked.trials)
        if number and _is_text(asked):
            screen.line()
        _run(screen, trials, every, asked, approver)
        told.append(reports.to_json(trials))
        codes.append(trials.exit_code(asked.least))
        if trials.interrupted:
            break
    if asked.form == "json":
        write_json(screen, {"schema": "trials/1", "scenarios": told})
    screen.flush()
    return max(codes)


def _run(screen: Screen, trials: Trials, jobs: Sequence[Job], asked: Asked, approver: Approver) -> None:
    _write(screen, reports.header(screen, trials) if _is_text(asked) else ())
    try:
        with closing(trials.run(jobs, approver, asked.workers)) as results:
            for trial in _shown(results, asked):
                _each(screen, trial, asked)
    except KeyboardInterrupt:  # while something was written; `run` has ended at one while it waited
        trials.interrupted = True
    if asked.quiet:
        screen.line(screen.safe(reports.ledgers(trials)))
    elif asked.form == "text":
        _write(screen, reports.summary(screen, trials, asked.least, verbose=asked.verbose))
        reports.write_next(Screen.stderr(), trials)
    elif asked.form == "markdown":
        _write(screen, reports.markdown(trials))
    elif asked.form == "jsonl":
        screen.data(_line({"kind": "trials", **reports.to_json(trials)}, without=("runs",)))


def _each(screen: Screen, trial: Trial, asked: Asked) -> None:
    if asked.form == "jsonl":
        screen.data(_line({"kind": "trial", **reports.trial_json(trial)}))
        screen.flush()
    elif _is_text(asked):
        _write(screen, reports.trial_lines(screen, trial))


def _line(value: dict[str, object], without: Sequence[str] = ()) -> bytes:
    kept = {key: one for key, one in value.items() if key not in without}
    return orjson.dumps(kept, paths.plain, orjson.OPT_APPEND_NEWLINE)


def _is_text(asked: Asked) -> bool:
    return asked.form == "text" and not asked.quiet


def _shown(results: Iterator[Trial], asked: Asked) -> Iterable[Trial]:
    """Show how far it is, unless lines come out on the terminal meanwhile."""
    streams = _is_text(asked) or asked.form == "jsonl"
    return results if streams and sys.stdout.isatty() else watched(results, asked.trials, "trials")


def _write(screen: Screen, lines: Iterable[str]) -> None:
    for line in lines:
        screen.line(line)
    screen.flush()
