"""Problems of files as `ledger validate` shows them: text for people, annotations for GitHub, JSON for programs.

Invariants:
* The first line of a problem is one line, `FILE:LINE:COLUMN: error[code]: message`, whatever its length: editors and
  grep read it.
* What is marked under a line is measured in cells, so that it fits under Chinese and tabs.
* What somebody can copy (a file, a path, a corrected expression) is never broken or cut.
* A ledger that verifies is never called plainly ok: what is not proved stands beside it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from ledgercli.ledger.verify import Report
from ledgercli.reports.cells import CUT, WIDTH, cells, cut, inert, wrap
from ledgercli.reports.screen import Screen, Style
from ledgercli.reports.summary import counted
from ledgercli.scrubbing import scrubbed
from ledgercli.sources import Problem, Severity

_STYLES: Final[Mapping[Severity, Style]] = {"error": "red", "warning": "yellow"}
_TAB: Final = 4
_LEVELS: Final[Mapping[Severity, str]] = {"error": "error", "warning": "warning", "note": "notice"}
_ONE: Final[Mapping[str, str]] = {
    "pack": "pack",
    "toolset": "toolset",
    "scenario": "scenario",
    "cases": "case file",
    "ledger": "ledger",
}
_MANY: Final[Mapping[str, str]] = {**{kind: word + "s" for kind, word in _ONE.items()}, "cases": "cases"}


# Text


def problem_lines(problem: Problem, screen: Screen) -> Iterator[str]:
    """Yield the lines of one problem."""
    place = ":".join(str(part) for part in (problem.file, problem.line, problem.column) if part)
    word = screen.paint(problem.severity, _STYLES.get(problem.severity))
    yield f"{screen.safe(place)}: {word}[{problem.code}]: {screen.safe(problem.message)}"
    gutter = max(len(str(problem.line)), 2)
    notes = list(problem.notes)
    inline = problem.inline
    if has_excerpt(problem):
        assert problem.source_line is not None
        start = problem.column - 1
        parts = [problem.source_line[:start], problem.source_line[start : start + problem.length]]
        parts.append(problem.source_line[start + problem.length :])
        drawn = [screen.safe(scrubbed(part).replace("\t", " " * _TAB)) for part in parts]
        shown, marked = _excerpt(*drawn, room=WIDTH - gutter - 3)
        yield f"{' ' * gutter} |"
        yield f"{problem.line:>{gutter}} | {shown}".rstrip()
        beside = f"{' ' * gutter} | {marked} {screen.safe(inline)}" if inline else ""
        if inline and cells(beside) <= WIDTH:
            yield beside
            inline = None
        else:
            yield f"{' ' * gutter} | {marked}"
    if inline:  # whole, since it is there to be copied
        yield f"{' ' * gutter} = {screen.safe(inline)}"
    for note in notes:
        for number, line in enumerate(wrap(screen.safe(note), WIDTH - gutter - 3)):
            yield f"{' ' * gutter} {' ' if number else '='} {line}"


def has_excerpt(problem: Problem) -> bool:
    """Whether a problem shows a line of its file."""
    return problem.source_line is not None and problem.line > 0 and problem.column > 0


def _excerpt(before: str, marked: str, after: str, *, room: int) -> tuple[str, str]:
    """Return a line of a file, or the part of it that is about the problem, and the marks under that."""
    if cells(before) + cells(marked) > room:
        kept = max(room // 3, room - cells(marked) - len(CUT))
        before = CUT + _last(before, kept - len(CUT)) if cells(before) > kept else before
        marked = cut([marked], room - cells(before))
    marks = " " * cells(before) + "^" * max(cells(marked), 1)
    return cut([before + marked + after], room), marks


def _last(text: str, room: int) -> str:
    """Return the end of a text that takes at most `room` cells."""
    start = len(text)
    while start and cells(text[start - 1 :]) <= room:
        start -= 1
    return text[start:]


def write_text(
    screen: Screen,
    problems: Sequence[Problem],
    counts: Mapping[str, int],
    ledgers: Sequence[tuple[str, Report]],
    hidden: int = 0,
) -> None:
    """Write all problems, what is well, and how many there are of what; `hidden`: of the notes that are not shown."""
    excerpts = False
    for problem in problems:
        for line in problem_lines(problem, screen):
            screen.line(line)
        if has_excerpt(problem):
            excerpts = True
            screen.line()
    files = {kind: number for kind, number in counts.items() if kind != "ledger"}
    if not problems and any(files.values()):
        screen.line(f"ok: {kinds(files)}")
    for line in _ledger_lines(ledgers):
        screen.line(line)
    if problems:
        if not excerpts and len(problems) > 1 and any(files.values()):
            screen.line()
        screen.line(count_line(problems, counts))
    if hidden:
        screen.line(f"{counted(hidden, 'note')} not shown; -v shows {'it' if hidden == 1 else 'them'}")


def count_line(problems: Iterable[Problem], counts: Mapping[str, int]) -> str:
    """Return `2 errors, 0 warnings in 9 files (3 packs, 2 toolsets, 2 scenarios, 2 cases)`."""
    severities = [problem.severity for problem in problems]
    told = [counted(severities.count("error"), "error")]
    warnings = severities.count("warning")
    there = [kind for kind, number in counts.items() if number]
    if warnings or there != ["ledger"]:
        told.append(counted(warnings, "warning"))
    if not there:
        return ", ".join(told)
    where = kinds(counts)
    if len(there) > 1:
        where = f"{counted(sum(counts.values()), 'file')} ({where})"
    return f"{', '.join(told)} in {where}"


def kinds(counts: Mapping[str, int]) -> str:
    """Return `3 packs, 2 toolsets`."""
    return ", ".join(counted(counts[kind], one, _MANY[kind]) for kind, one in _ONE.items() if counts.get(kind))


def _ledger_lines(ledgers: Sequence[tuple[str, Report]]) -> Iterator[str]:
    """Say what holds of the ledgers without an error, and what is not proved of them."""
    groups: dict[tuple[bool, bool], list[Report]] = {}
    for _, report in ledgers:
        if report.ok:
            groups.setdefault((report.closed, report.anchored), []).append(report)
    for (closed, anchored), reports in sorted(groups.items(), reverse=True):
        one = len(reports) == 1
        what = f"ok: {counted(len(reports), 'ledger')}, {counted(sum(report.lines for report in reports), 'line')}, "
        if not closed:
            yield f"{what}unsealed: lines may be missing at the end"
        elif anchored:
            yield f"{what}closed, as anchored"
        else:
            yield f"{what}closed; unanchored: a complete rewrite would not show"
            heads = "its head elsewhere and pass it" if one else "their heads elsewhere and pass each"
            yield f"    (keep {heads} with --anchor)"


# GitHub


def write_annotations(screen: Screen, problems: Iterable[Problem]) -> None:
    """Write workflow commands by which GitHub shows problems beside the lines of a pull request."""
    for problem in problems:
        screen.line(annotation(problem), command=True)


def annotation(problem: Problem) -> str:
    """Return the workflow command of one problem."""
    where: dict[str, Any] = {"file": problem.file}
    if problem.line:
        where["line"] = problem.line
    if problem.line and problem.column:
        where |= {"col": problem.column, "endColumn": problem.column + problem.length}
    where["title"] = problem.code
    told = "\n".join(filter(None, (problem.message, problem.inline, *problem.notes)))
    properties = ",".join(f"{key}={_property(str(value))}" for key, value in where.items())
    return f"::{_LEVELS[problem.severity]} {properties}::{_data(told)}"


def _data(text: str) -> str:
    """Escape a command's message; the order matters."""
    lines = [inert(line).replace("%", "%25") for line in text.split("\n")]
    return "%0A".join(lines)


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


# JSON


def to_json(
    problems: Sequence[Problem], counts: Mapping[str, int], ledgers: Sequence[tuple[str, Report]], exit_code: int
) -> dict[str, Any]:
    """Return the report as data."""
    return {
        "schema": "validation/1",
        "exit_code": exit_code,
        "files": dict(counts),
        "errors": sum(problem.severity == "error" for problem in problems),
        "warnings": sum(problem.severity == "warning" for problem in problems),
        "notes": sum(problem.severity == "note" for problem in problems),
        "problems": [problem_json(problem) for problem in problems],
        "ledgers": [_ledger_json(path, report) for path, report in ledgers],
    }


def problem_json(problem: Problem) -> dict[str, Any]:
    """Return a problem as data."""
    return {
        "code": problem.code,
        "severity": problem.severity,
        "file": problem.file,
        "line": problem.line or None,
        "column": problem.column or None,
        "length": problem.length if problem.column else None,
        "message": problem.message,
        "fix": problem.inline,
        "notes": list(problem.notes),
    }


def _ledger_json(path: str, report: Report) -> dict[str, Any]:
    told = {
        key: getattr(report, key) for key in ("ok", "lines", "steps", "closed", "anchored", "head", "run", "status")
    }
    return {"path": path, **told}
