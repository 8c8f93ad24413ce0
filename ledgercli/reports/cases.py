"""What came of cases, for people.

Invariants:
* A case that failed shows its line, the proposal, what was expected and what came, and which rules say why.
* Where all is well one line says so. What could not be judged is told before all else, and never counted as passed.
* Names of rules, files and lines stay whole; values are cut, messages are wrapped.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from ledgercli.casework.outcomes import Difference, Failure, Judged, Outcome, Reason, Shown
from ledgercli.reports import values
from ledgercli.reports.cells import WIDTH, cells, pad, wrap
from ledgercli.reports.expressions import expression
from ledgercli.reports.problems import has_excerpt, problem_lines
from ledgercli.reports.screen import Screen
from ledgercli.reports.summary import counted
from ledgercli.sources import Problem

_INDENT: Final = " " * 5
_HANG: Final = " " * 15  # behind `     expected  `
_VALUES: Final = 8  # of a part of a rule
_CAME: Final = ("passed", "failed", "skipped", "error")


# ---- text


def write_text(
    screen: Screen, results: Sequence[Judged], *, verbose: bool = False, quiet: bool = False, stopped: bool = False
) -> None:
    """Write what failed (with `verbose` all), and the counts; `stopped`: not all of it was judged."""
    if not quiet:
        for problem in problems_of(results):
            for line in problem_lines(problem, screen):
                screen.line(line)
            if has_excerpt(problem):
                screen.line()
        for result in results:
            for outcome in result.outcomes:
                for line in _outcome(screen, outcome, verbose=verbose):
                    screen.line(line)
    screen.line(count_line(results) + ("; stopped there (--fail-fast)" if stopped else ""))


def count_line(results: Sequence[Judged]) -> str:
    """Return `1 failed, 45 passed, 0 skipped in 3 files`; of nothing but passed cases `46 passed in 3 files`."""
    counts = counts_of(results)
    told = []
    if counts["error"]:
        told.append(f"{counted(counts['error'], 'case')} not judged")
    if counts["failed"] or counts["error"]:
        told.append(f"{counts['failed']:,} failed")
    told.append(f"{counts['passed']:,} passed")
    if counts["skipped"] or counts["failed"] or counts["error"]:
        told.append(f"{counts['skipped']:,} skipped")
    files = sum(bool(result.outcomes) for result in results)
    line = f"{', '.join(told)} in {counted(files, 'file')}"
    ill = sum(not result.loaded for result in results)
    return f"{counted(ill, 'file')} not judged; {line}" if ill else line


def next_line(screen: Screen, results: Sequence[Judged]) -> str | None:
    """Return what to type to judge the first case that failed by itself."""
    for result in results:
        for outcome in result.outcomes:
            if outcome.came == "failed":
                name = "".join(f"\\{one}" if one in "\\.+*?()|[]{}^$" else one for one in outcome.name)
                line = f"next: ledger test-policies {shlex.quote(outcome.where.file)} --run {shlex.quote(name)}"
                return screen.safe(line)
    return None


def _outcome(screen: Screen, outcome: Outcome, *, verbose: bool) -> Iterator[str]:
    head = f"{screen.safe(str(outcome.where))}  {screen.safe(outcome.name)}"
    if outcome.came == "failed":
        yield f"{screen.paint('FAIL', 'red')} {head}"
        assert outcome.failure is not None, "a case that failed says why"
        yield from _failure(screen, outcome.failure, verbose=verbose)
        yield ""
    elif outcome.came == "error":
        yield f"{screen.paint('error', 'red')} {head}"
        yield from _wrapped(screen, _INDENT, outcome.why)
        yield ""
    elif verbose:
        yield f"{'pass' if outcome.came == 'passed' else 'skip'} {head}"
        if outcome.why:
            yield from _wrapped(screen, _INDENT, outcome.why)


def _failure(screen: Screen, failure: Failure, *, verbose: bool) -> Iterator[str]:
    call = values.call(failure.tool, failure.args)
    yield _labelled("propose", screen.cut(call, None if verbose else WIDTH - len(_HANG)))
    told = {one.key for one in failure.differences}
    for label, lines in (("expected", wanted_lines(failure, told)), ("actual", got_lines(failure, told))):
        for number, line in enumerate(lines):
            yield from _wrapped(screen, _HANG, line, first=_labelled("" if number else label, ""))
    for number, reason in enumerate(failure.reasons):
        yield from _reason(screen, reason, "" if number else "because", verbose=verbose)
    if failure.more:
        yield _labelled("", f"{failure.more:,} more rules")


def wanted_lines(failure: Failure, told: Iterable[str]) -> list[str]:
    """Return what was expected; of error, hint and halting only what is told to differ."""
    wanted, names = failure.wanted, _names_of(failure.differences, "wanted")
    rules = names.get("rules", names.get("rules_include"))
    by = (
        ""
        if rules is None
        else f" by {_listed(rules)}"
        if "rules" in names
        else f" by {_listed(rules)} and maybe others"
    )
    lines = [f"{wanted.effect or 'any effect'}{by}"]
    lines += [f"{key}: {getattr(wanted, key)}" for key in ("error", "hint") if key in told]
    return [*lines, _halting(wanted.halts)] if "halts" in told else lines


def got_lines(failure: Failure, told: Iterable[str]) -> list[str]:
    """Return what came, in the same way."""
    verdict, names = failure.verdict, _names_of(failure.differences, "got")
    rules = names.get("rules", names.get("rules_include", short_rules(failure)))
    lines = [verdict.effect + (f" by {_listed(rules)}" if rules else "")]
    for key, value in (("error", verdict.reason), ("hint", verdict.hint)):
        if key in told:
            lines.append(f"{key}: {'none' if value is None else value}")
    return [*lines, _halting(verdict.halts)] if "halts" in told else lines


def _halting(halts: object) -> str:
    return "the run ends" if halts else "the run goes on"


def _names_of(differences: Iterable[Difference], side: str) -> dict[str, list[str]]:
    return {one.key: getattr(one, side) for one in differences if one.key.startswith("rules")}


def short_rules(failure: Failure) -> list[str]:
    """Return the rules that failed or warned, as short as reasons name them."""
    return [one.rule.rpartition("/")[2] for one in (*failure.verdict.failed, *failure.verdict.warned)]


def _listed(names: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1]))) if names else "no rule"


def _reason(screen: Screen, reason: Reason, label: str, *, verbose: bool) -> Iterator[str]:
    yield _labelled(label, screen.safe(f"{reason.rule} {reason.says}"))
    if reason.where is not None:
        yield _HANG + screen.paint(screen.safe(str(reason.where)), "dim")
    if reason.error is not None and reason.says == "failed":
        yield from _wrapped(screen, _HANG, reason.error)
    for part in reason.parts:
        yield from _shown(screen, part, verbose=verbose)


def _shown(screen: Screen, part: Shown, *, verbose: bool) -> Iterator[str]:
    lines = list(expression(screen.safe(part.text), WIDTH - len(_HANG)))
    came = screen.safe(f" is {part.came}" if part.came in ("true", "false") else f" cannot be told: {part.came}")
    if len(lines) == 1 and cells(lines[0] + came) <= WIDTH - len(_HANG):
        yield _HANG + lines[0] + came
    else:
        yield from (_HANG + line for line in lines)
        yield from _wrapped(screen, f"{_HANG}  ", came.strip())
    for name, value in part.values if verbose else part.values[:_VALUES]:
        head = f"{_HANG}  {screen.safe(name)} = "
        yield head + screen.cut(values.parts(value), None if verbose else max(WIDTH - cells(head), 12))
    if not verbose and len(part.values) > _VALUES:
        yield f"{_HANG}  ... {len(part.values) - _VALUES:,} more values (-v)"


def _labelled(label: str, said: str) -> str:
    return f"{_INDENT}{pad(label, 10)}{said}"


def _wrapped(screen: Screen, indent: str, said: str, *, first: str | None = None) -> Iterator[str]:
    pieces = [piece for line in said.split("\n") for piece in wrap(screen.safe(line), WIDTH - cells(indent))]
    for number, piece in enumerate(pieces):
        yield ((indent if number or first is None else first) + piece).rstrip()


# ---- what every form says


def counts_of(results: Iterable[Judged]) -> dict[str, int]:
    """Return how many cases came out how."""
    counts = dict.fromkeys(_CAME, 0)
    for result in results:
        for outcome in result.outcomes:
            counts[outcome.came] += 1
    return counts


def problems_of(results: Iterable[Judged]) -> list[Problem]:
    """Return what is wrong with files, each problem once."""
    return sorted({problem for result in results for problem in result.problems})


def plain_lines(outcome: Outcome) -> list[str]:
    """Return why a case failed, as lines without colour."""
    screen = Screen(None, encoding="utf-8", colour=False)
    return (
        []
        if outcome.failure is None
        else [line.removeprefix(_INDENT) for line in _failure(screen, outcome.failure, verbose=False)]
    )
