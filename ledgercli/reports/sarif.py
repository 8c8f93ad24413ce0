"""Findings as SARIF 2.1.0, which code hosts show beside the lines of a change.

Invariants:
* What is written follows the published schema; lines and columns are real, and columns count characters.
* A file is named relative to where the command ran, as a URI.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from ledgercli import __version__
from ledgercli.explanations import explanations
from ledgercli.reports.cells import inert
from ledgercli.sources import Problem, Severity

_SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVELS: Final[Mapping[Severity, str]] = {"error": "error", "warning": "warning", "note": "note"}
_OWN: Final[Mapping[str, str]] = {
    "case-failed": "The rules say otherwise than a case expects.",
    "case-error": "A case could not be judged.",
    "rule-not-proved": "No case has seen this rule fail.",
    "mutant-survives": "The pack could be changed here, and no case would fail.",
}


def to_json(problems: Iterable[Problem]) -> dict[str, Any]:
    """Return findings as one SARIF log."""
    found = list(problems)
    codes = list(dict.fromkeys(problem.code for problem in found))
    driver = {
        "name": "ledgercli",
        "version": __version__,
        "rules": [{"id": code, "shortDescription": {"text": _meaning(code)}} for code in codes],
    }
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "results": [_result(problem, codes) for problem in found],
    }
    return {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}


def _meaning(code: str) -> str:
    return _OWN.get(code) or explanations().get(code) or code


def _result(problem: Problem, codes: Sequence[str]) -> dict[str, Any]:
    place: dict[str, Any] = {"artifactLocation": {"uri": _uri(problem.file)}}
    if problem.line:
        place["region"] = _region(problem)
    told = "\n".join(map(inert, (problem.message, *filter(None, (problem.inline, *problem.notes)))))
    return {
        "ruleId": problem.code,
        "ruleIndex": codes.index(problem.code),
        "level": _LEVELS[problem.severity],
        "message": {"text": told},
        "locations": [{"physicalLocation": place}],
    }


def _region(problem: Problem) -> dict[str, int]:
    region = {"startLine": problem.line}
    if problem.column:
        region |= {"startColumn": problem.column, "endColumn": problem.column + max(problem.length, 1)}
    return region


def _uri(file: str) -> str:
    path = Path(file)
    return path.as_uri() if path.is_absolute() else quote(path.as_posix())
