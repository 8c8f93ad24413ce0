"""What came of cases as JSON, as Markdown, as problems for annotations and SARIF, as suites for JUnit.

Invariants:
* Each form says the same as the text: every case that did not pass has its line and why.
* What does not load is in every form, as an error of its file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from ledgercli.casework.coverage import Coverage
from ledgercli.casework.outcomes import Failure, Judged, Outcome, Reason
from ledgercli.casework.preparing import Wanted
from ledgercli.mutation.catching import Mutation
from ledgercli.records import Verdict
from ledgercli.reports import coverage as coverages
from ledgercli.reports import mutation as mutations
from ledgercli.reports.cases import count_line, counts_of, got_lines, plain_lines, problems_of, wanted_lines
from ledgercli.reports.junit import Case, Suite
from ledgercli.reports.markdown import code, table, text
from ledgercli.reports.problems import problem_json
from ledgercli.reports.screen import Screen
from ledgercli.sources import Problem

SCHEMA: Final = "cases/1"


# ---- JSON


def to_json(
    results: Sequence[Judged], coverage: Coverage | None, exit_code: int, mutation: Sequence[Mutation] | None = None
) -> dict[str, Any]:
    """Return all of it as data."""
    said: dict[str, Any] = {"schema": SCHEMA, "exit_code": int(exit_code), **counts_of(results)}
    said["problems"] = [problem_json(problem) for problem in problems_of(results)]
    said["cases"] = [_case_json(outcome) for result in results for outcome in result.outcomes]
    if coverage is not None:
        said["coverage"] = coverages.to_json(coverage)
    if mutation is not None:
        said["mutation"] = mutations.to_json(mutation)
    return said


def _case_json(outcome: Outcome) -> dict[str, Any]:
    where = outcome.where
    said: dict[str, Any] = {"name": outcome.name, "file": where.file, "line": where.line, "column": where.column}
    said["came"] = outcome.came
    if outcome.why:
        said["why"] = outcome.why
    if outcome.failure is not None:
        said |= _failure_json(outcome.failure)
    return said


def _failure_json(failure: Failure) -> dict[str, Any]:
    return {
        "propose": {"tool": failure.tool, "args": failure.args},
        "expected": _wanted_json(failure.wanted),
        "actual": _verdict_json(failure.verdict),
        "differences": [{"key": one.key, "expected": one.wanted, "actual": one.got} for one in failure.differences],
        "because": [_reason_json(reason) for reason in failure.reasons],
    }


def _wanted_json(wanted: Wanted) -> dict[str, Any]:
    said: dict[str, Any] = {"effect": wanted.effect, "error": wanted.error, "hint": wanted.hint, "halts": wanted.halts}
    said["rules"] = None if wanted.rules is None else sorted(wanted.rules)
    said["rules_include"] = sorted(wanted.include) or None
    return {key: value for key, value in said.items() if value is not None}


def _verdict_json(verdict: Verdict) -> dict[str, Any]:
    rules = [finding.rule for finding in (*verdict.failed, *verdict.warned)]
    return {
        "effect": verdict.effect,
        "rules": rules,
        "error": verdict.reason,
        "hint": verdict.hint,
        "halts": verdict.halts,
    }


def _reason_json(reason: Reason) -> dict[str, Any]:
    said: dict[str, Any] = {"rule": reason.rule, "says": reason.says}
    if reason.where is not None:
        said |= {"file": reason.where.file, "line": reason.where.line}
    if reason.error is not None and reason.says == "failed":
        said["error"] = reason.error
    said["parts"] = [{"text": one.text, "came": one.came, "values": dict(one.values)} for one in reason.parts]
    return said


# ---- Markdown


def write_markdown(
    screen: Screen,
    results: Sequence[Judged],
    coverage: Coverage | None,
    mutation: Sequence[Mutation] | None = None,
) -> None:
    """Write it for a comment on a pull request."""
    screen.line(f"### {text(count_line(results))}")
    problems = problems_of(results)
    if problems:
        screen.line()
        for line in table(("where", "problem"), [(code(_place(one)), text(one.message)) for one in problems]):
            screen.line(line)
    told = [one for result in results for one in result.outcomes if one.came in ("failed", "error")]
    if told:
        screen.line()
        for line in table(("case", "expected", "actual", "because"), map(_row, told)):
            screen.line(line)
    if coverage is not None:
        screen.line()
        for line in coverages.markdown_lines(coverage):
            screen.line(line)
    if mutation is not None:
        screen.line()
        for line in mutations.markdown_lines(mutation):
            screen.line(line)


def _place(problem: Problem) -> str:
    return ":".join(str(part) for part in (problem.file, problem.line, problem.column) if part)


def _row(outcome: Outcome) -> Sequence[str]:
    name = f"{text(outcome.name)}<br>{code(str(outcome.where))}"
    failure = outcome.failure
    if failure is None:
        return name, "", "not judged", text(outcome.why)
    told = {one.key for one in failure.differences}
    because = [f"{code(one.rule)} {text(one.says)}" for one in failure.reasons]
    wanted, got = ("<br>".join(map(text, lines)) for lines in (wanted_lines(failure, told), got_lines(failure, told)))
    return name, wanted, got, "<br>".join(because)


# ---- annotations, suites


def to_problems(results: Iterable[Judged]) -> Iterator[Problem]:
    """Yield a problem for whatever did not pass, at its line."""
    results = list(results)
    yield from problems_of(results)
    for result in results:
        for outcome in result.outcomes:
            if outcome.came in ("failed", "error"):
                where = outcome.where
                notes = tuple(plain_lines(outcome)) if outcome.failure is not None else ()
                yield Problem(
                    f"case-{outcome.came}",
                    message_of(outcome),
                    where.file,
                    where.line,
                    where.column,
                    where.length,
                    notes=notes,
                )


def message_of(outcome: Outcome) -> str:
    """Return in one line why a case did not pass."""
    failure = outcome.failure
    if failure is None:
        return f"{outcome.name}: {outcome.why}" if outcome.came == "error" else outcome.why
    told = {one.key for one in failure.differences}
    wanted, got = ("; ".join(lines) for lines in (wanted_lines(failure, told), got_lines(failure, told)))
    return f"{outcome.name}: expected {wanted}, got {got}"


def suites(results: Iterable[Judged]) -> list[Suite]:
    """Return the results as suites, one a file."""
    return [Suite(result.file, list(_suite(result))) for result in results if result.outcomes or result.problems]


def _suite(result: Judged) -> Iterator[Case]:
    for problem in result.problems:
        if problem.severity == "error":
            name = f"{_place(problem)} {problem.code}"
            yield Case(
                name, "error", problem.message, list(problem.notes), file=problem.file, line=problem.line or None
            )
    for outcome in result.outcomes:
        where = outcome.where
        match outcome.came:
            case "passed":
                yield Case(outcome.name, file=where.file, line=where.line)
            case "skipped":
                yield Case(outcome.name, "skipped", outcome.why, file=where.file, line=where.line)
            case "error":
                yield Case(outcome.name, "error", outcome.why, file=where.file, line=where.line)
            case "failed":
                detail = plain_lines(outcome)
                yield Case(outcome.name, "failure", message_of(outcome), detail, file=where.file, line=where.line)
