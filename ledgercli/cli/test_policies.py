"""`ledger test-policies`: judge the cases of packs."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
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
    from ledgercli.sources import Problem

__all__ = ["command"]

_EXAMPLES = (
    "ledger test-policies",
    "ledger test-policies fixtures/support.cases.yaml --run 'a guest may not'",
    "ledger test-policies . --junit cases.xml --sarif cases.sarif",
    "ledger test-policies . --coverage --threshold 95",
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


@click.command(cls=Command, examples=_EXAMPLES)
@click.argument("paths", metavar="[PATH]...", nargs=-1)
@click.option("--run", "chosen", metavar="REGEX", help="Only cases whose name holds this.")
@click.option("--fail-fast", is_flag=True, help="Stop after the first case that fails.")
@click.option("--update", is_flag=True, help="Write what the rules say now into the cases that fail.")
@click.option("--coverage", is_flag=True, help="Show which rules and conditions the cases prove.")
@click.option(
    "--threshold",
    type=click.FloatRange(0, 100),
    metavar="N",
    help="With --coverage: exit 1 if less than N percent of rules or conditions is proved.",
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

    Exit code: 0 all cases pass; 1 one fails, or less is covered than --threshold; 2 no cases, all of them skipped, or
    something does not load.
    """
    from ledgercli.casework.finding import find, none
    from ledgercli.casework.running import Asked

    if threshold is not None and not (coverage or lcov or html):
        raise click.UsageError("--threshold is about --coverage", ctx=click.get_current_context())
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
    whole = _together(results) if asked.coverage else None
    code = _code(results, whole, threshold)
    _write_beside(files, results, whole)
    with output(report) as screen:
        _write(
            screen, form, results, whole if coverage else None, code, verbose=verbose, quiet=quiet, fail_fast=fail_fast
        )
    _tell(results, whole, threshold, code, form=form, report=report)
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


def _code(results: Sequence[Judged], coverage: Coverage | None, threshold: float | None) -> ExitCode:
    """Return what it comes to: what could not be judged weighs more than an answer of no."""
    from ledgercli.reports.cases import counts_of
    from ledgercli.reports.coverage import missed

    counts = counts_of(results)
    if counts["error"] or not all(one.loaded for one in results):
        return ExitCode.UNASKED
    if counts["failed"]:
        return ExitCode.NO
    if not counts["passed"]:
        return ExitCode.UNASKED
    return (
        ExitCode.NO if coverage is not None and threshold is not None and missed(coverage, threshold) else ExitCode.YES
    )


def _write_beside(files: _Files, results: Sequence[Judged], coverage: Coverage | None) -> None:
    from ledgercli.reports import casedata, junit, sarif

    if files.junit is not None:
        with Screen.file(files.junit) as screen:
            junit.write(screen, "ledger test-policies", casedata.suites(results))
    if files.sarif is not None:
        with Screen.file(files.sarif) as screen:
            write_json(screen, sarif.to_json(_problems(results, coverage)))
    if coverage is not None:
        from ledgercli.reports import coverage as coverages
        from ledgercli.reports import lcov

        for path, lines in ((files.lcov, lcov.lines), (files.html, coverages.html_lines)):
            if path is not None:
                with Screen.file(path) as screen:
                    screen.data("".join(f"{line}\n" for line in lines(coverage)).encode())


def _problems(results: Sequence[Judged], coverage: Coverage | None) -> list[Problem]:
    from ledgercli.reports import casedata
    from ledgercli.reports import coverage as coverages

    return [*casedata.to_problems(results), *(coverages.to_problems(coverage) if coverage is not None else ())]


def _write(  # noqa: PLR0913 - what is written, and how
    screen: Screen,
    form: str,
    results: Sequence[Judged],
    coverage: Coverage | None,
    code: ExitCode,
    *,
    verbose: bool,
    quiet: bool,
    fail_fast: bool,
) -> None:
    from ledgercli.reports import casedata, cases
    from ledgercli.reports import coverage as coverages

    if form == "json":
        write_json(screen, casedata.to_json(results, coverage, code))
    elif form == "markdown":
        casedata.write_markdown(screen, results, coverage)
    else:
        stopped = fail_fast and any(cases.counts_of(results)[came] for came in ("failed", "error"))
        cases.write_text(screen, results, verbose=verbose, quiet=quiet, stopped=stopped)
        if coverage is not None:
            coverages.write_text(screen, coverage)


def _tell(  # noqa: PLR0913 - what it came to, and where that was written
    results: Sequence[Judged],
    coverage: Coverage | None,
    threshold: float | None,
    code: ExitCode,
    *,
    form: str,
    report: str | None,
) -> None:
    """Say on stderr what to do next, and what else decides the exit code; for GitHub also what did not pass."""
    from ledgercli.reports import casedata, cases
    from ledgercli.reports import coverage as coverages
    from ledgercli.reports.problems import write_annotations

    err = Screen.stderr()
    if on_github():
        write_annotations(err, casedata.to_problems(results))
    counts = cases.counts_of(results)
    if form == "text" and report is None and (line := cases.next_line(err, results)):
        err.line(line)
    if code == ExitCode.UNASKED and counts["skipped"] and not counts["error"] and not counts["passed"]:
        err.line("error: every case is skipped")
    if coverage is not None and threshold is not None and coverages.missed(coverage, threshold):
        err.line(f"FAIL --threshold {threshold:g}: {coverages.summary(coverage)}")
