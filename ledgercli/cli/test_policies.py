"""`ledger test-policies`: judge the cases of packs."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from ledgercli.cli.common import Command, format_option, output, report_option, write_json
from ledgercli.errors import ExitCode, LedgerCliError
from ledgercli.reports.screen import Screen, on_github

if TYPE_CHECKING:
    from ledgercli.casework.coverage import Coverage
    from ledgercli.casework.finding import Found
    from ledgercli.casework.outcomes import Judged
    from ledgercli.casework.running import Asked
    from ledgercli.mutation.catching import Mutation
    from ledgercli.sources import Problem

__all__ = ["command"]

_EXAMPLES = (
    "ledger test-policies",
    "ledger test-policies fixtures/support.cases.yaml --run 'a guest may not'",
    "ledger test-policies . --junit cases.xml --sarif cases.sarif",
    "ledger test-policies . --coverage --threshold 95",
    "ledger test-policies . --mutate --threshold 95 --jobs 4",
    "ledger test-policies fixtures/support.cases.yaml --update",
)


@dataclass(frozen=True, slots=True)
class _Files:
    """The files beside the report."""

    junit: str | None
    sarif: str | None
    lcov: str | None
    html: str | None

    def refuse_taken(self, report: str | None) -> None:
        """Raise where one of them is there already, before anything is judged."""
        for path in (self.junit, self.sarif, self.lcov, self.html, report):
            if path is not None and os.path.lexists(path):
                Screen.file(path)


@dataclass(frozen=True, slots=True)
class _Shown:
    """What was found out, and what is asked of it.

    Arguments:
        results: what came of the cases.
        coverage: what they show of the rules; None if nobody asked.
        mutation: what they catch of changes to the packs; None if nobody asked.
        threshold: how much of both it must be, in percent.

    """

    results: Sequence[Judged]
    coverage: Coverage | None
    mutation: Sequence[Mutation] | None
    threshold: float | None

    def missed(self) -> Iterator[str]:
        """Yield what is less than asked."""
        from ledgercli.reports import coverage, mutation

        if self.threshold is None:
            return
        if self.coverage is not None and coverage.missed(self.coverage, self.threshold):
            yield coverage.summary(self.coverage)
        if self.mutation is not None and mutation.missed(self.mutation, self.threshold):
            yield f"mutants caught: {mutation.missed_line(self.mutation, self.threshold)}"


@click.command(cls=Command, examples=_EXAMPLES)
@click.argument("paths", metavar="[PATH]...", nargs=-1)
@click.option("--run", "chosen", metavar="REGEX", help="Only cases whose name holds this.")
@click.option("--fail-fast", is_flag=True, help="Stop after the first case that fails.")
@click.option("--update", is_flag=True, help="Write what the rules say now into the cases that fail.")
@click.option("--coverage", is_flag=True, help="Show which rules and conditions the cases prove.")
@click.option("--mutate", is_flag=True, help="Change the packs, and show which changes no case catches.")
@click.option(
    "--threshold",
    type=click.FloatRange(0, 100),
    metavar="N",
    help="Exit 1 if less than N percent is proved of rules or conditions (--coverage), or caught of the changes to a "
    "pack (--mutate).",
)
@click.option("--junit", metavar="FILE", help="Write JUnit XML to this new file.")
@click.option("--sarif", metavar="FILE", help="Write SARIF to this new file.")
@click.option("--lcov", metavar="FILE", help="Write the coverage for lcov to this new file.")
@click.option("--html", metavar="FILE", help="Write the coverage as a page to this new file.")
@click.option("--jobs", type=click.IntRange(min=1), default=1, metavar="N", help="Use N processes.")
@format_option("text", "json", "markdown")
@report_option
@click.option("-v", "--verbose", is_flag=True, help="Name each case; show whole values.")
@click.option("-q", "--quiet", is_flag=True, help="Print the counts alone.")
def command(  # noqa: PLR0913 - one parameter an option
    *,
    paths: tuple[str, ...],
    chosen: str | None,
    fail_fast: bool,
    update: bool,
    coverage: bool,
    mutate: bool,
    threshold: float | None,
    junit: str | None,
    sarif: str | None,
    lcov: str | None,
    html: str | None,
    jobs: int,
    form: str,
    report: str | None,
    verbose: bool,
    quiet: bool,
) -> ExitCode:
    """Judge the cases of packs: case files, and examples in packs, under the paths (default: here).

    Nothing is run and no tool's code is imported. A case that fails shows what was expected, what came, and why.

    Exit code: 0 all cases pass; 1 one fails, or less is covered or caught than --threshold; 2 no cases, all of them
    skipped, or something does not load.
    """
    from ledgercli.casework.finding import find, none
    from ledgercli.casework.running import Asked

    if threshold is not None and not (coverage or mutate or lcov or html):
        raise click.UsageError("--threshold is about --coverage or --mutate", ctx=click.get_current_context())
    if mutate and (chosen is not None or fail_fast):
        option = "--run" if chosen is not None else "--fail-fast"
        raise click.UsageError(f"--mutate asks all cases; leave out {option}", ctx=click.get_current_context())
    if update and "-" in paths:
        raise click.UsageError("--update changes files, not standard input", ctx=click.get_current_context())
    files = _Files(junit, sarif, lcov, html)
    files.refuse_taken(report)
    names = paths or (".",)
    found = find(names)
    asked = Asked(chosen, fail_fast, bool(coverage or lcov or html))
    results = _results(found, asked, jobs)
    if update:
        results = _updated(found, asked, results)
    if not any(one.outcomes or one.problems for one in results):
        raise LedgerCliError(f"no case is named like {chosen}") if chosen is not None and _any(found) else none(names)
    shown = _Shown(
        results,
        _together(results) if asked.coverage else None,
        _mutants(found, results, jobs) if mutate else None,
        threshold,
    )
    code = _code(shown)
    _write_beside(files, shown)
    with output(report) as screen:
        _write(screen, form, shown, code, coverage=coverage, verbose=verbose, quiet=quiet, fail_fast=fail_fast)
    _tell(shown, code, form=form, report=report)
    return code


def _results(found: Found, asked: Asked, jobs: int) -> list[Judged]:
    from ledgercli.casework.outcomes import Judged
    from ledgercli.casework.running import run

    ill = [Judged(problem.file, problems=[problem]) for problem in found.problems]
    return [*ill, *run(found, asked, jobs)]


def _any(found: Found) -> bool:
    """Whether there are cases at all, whatever they are called."""
    from ledgercli.casework.running import Asked, run

    return any(one.outcomes for one in run(found, Asked()))


def _updated(found: Found, asked: Asked, results: Sequence[Judged]) -> list[Judged]:
    """Write down what rules say now, and judge again."""
    from ledgercli.casework.updating import update

    err = Screen.stderr()
    for change in update(results):
        err.line(err.safe(change.text))
    return _results(found, asked, 1)


def _together(results: Iterable[Judged]) -> Coverage:
    from ledgercli.casework.running import together

    return together(results)


def _mutants(found: Found, results: Sequence[Judged], jobs: int) -> list[Mutation] | None:
    """Judge changed packs; where no case passes, there is nothing that could catch one."""
    if not any(one.count("passed") for one in results):
        return None
    from ledgercli.cli.progress import watched
    from ledgercli.mutation.catching import run, tasks, together

    work = tasks(found)
    return together(work, watched(run(found, work, jobs), len(work), "rules"))


def _code(shown: _Shown) -> ExitCode:
    """Return what it comes to: what could not be judged weighs more than an answer of no."""
    from ledgercli.reports.cases import counts_of

    counts = counts_of(shown.results)
    if counts["error"] or not all(one.loaded for one in shown.results):
        return ExitCode.UNASKED
    if counts["failed"]:
        return ExitCode.NO
    if not counts["passed"]:
        return ExitCode.UNASKED
    return ExitCode.NO if any(shown.missed()) else ExitCode.YES


def _write_beside(files: _Files, shown: _Shown) -> None:
    from ledgercli.reports import casedata, junit, sarif

    results, coverage = shown.results, shown.coverage
    if files.junit is not None:
        with Screen.file(files.junit) as screen:
            junit.write(screen, "ledger test-policies", casedata.suites(results))
    if files.sarif is not None:
        with Screen.file(files.sarif) as screen:
            write_json(screen, sarif.to_json(_problems(shown)))
    if coverage is not None:
        from ledgercli.reports import coverage as coverages
        from ledgercli.reports import lcov

        for path, lines in ((files.lcov, lcov.lines), (files.html, coverages.html_lines)):
            if path is not None:
                with Screen.file(path) as screen:
                    screen.data("".join(f"{line}\n" for line in lines(coverage)).encode())


def _problems(shown: _Shown) -> list[Problem]:
    from ledgercli.reports import casedata, mutation
    from ledgercli.reports import coverage as coverages

    return [
        *casedata.to_problems(shown.results),
        *(coverages.to_problems(shown.coverage) if shown.coverage is not None else ()),
        *(mutation.to_problems(shown.mutation) if shown.mutation is not None else ()),
    ]


def _write(  # noqa: PLR0913 - what is written, and how
    screen: Screen,
    form: str,
    shown: _Shown,
    code: ExitCode,
    *,
    coverage: bool,
    verbose: bool,
    quiet: bool,
    fail_fast: bool,
) -> None:
    from ledgercli.reports import casedata, cases, mutation
    from ledgercli.reports import coverage as coverages

    results, covered = shown.results, shown.coverage if coverage else None
    if form == "json":
        write_json(screen, casedata.to_json(results, covered, code, shown.mutation))
    elif form == "markdown":
        casedata.write_markdown(screen, results, covered, shown.mutation)
    else:
        stopped = fail_fast and any(cases.counts_of(results)[came] for came in ("failed", "error"))
        cases.write_text(screen, results, verbose=verbose, quiet=quiet, stopped=stopped)
        if covered is not None:
            coverages.write_text(screen, covered)
        if shown.mutation is not None:
            mutation.write_text(screen, shown.mutation, verbose=verbose, quiet=quiet)


def _tell(shown: _Shown, code: ExitCode, *, form: str, report: str | None) -> None:
    """Say on stderr what to do next, and what else decides the exit code; for GitHub also what did not pass."""
    from ledgercli.reports import casedata, cases
    from ledgercli.reports.problems import write_annotations

    err, results = Screen.stderr(), shown.results
    if on_github():
        write_annotations(err, casedata.to_problems(results))
    counts = cases.counts_of(results)
    if form == "text" and report is None and (line := cases.next_line(err, results)):
        err.line(line)
    if code == ExitCode.UNASKED and counts["skipped"] and not counts["error"] and not counts["passed"]:
        err.line("error: every case is skipped")
    for missed in shown.missed():
        err.line(f"FAIL --threshold {shown.threshold:g}: {err.safe(missed)}")
