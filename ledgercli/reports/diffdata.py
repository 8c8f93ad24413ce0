"""What two ledgers, or two folders of them, differ in, as data: `diff/1`.

Invariants:
* Every step has its place in `rows`; of `MANY` changed steps it is told what differs in them, unless all is asked for.
* What is not there on a side has no key there: `null` is a value.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from ledgercli import paths
from ledgercli.diff import ledgers as diff
from ledgercli.diff.differing import Change
from ledgercli.diff.folders import Comparison, Folder, Match, Run
from ledgercli.diff.ledgers import Difference, First, Stretch
from ledgercli.diff.outline import Outline
from ledgercli.paths import ABSENT
from ledgercli.story import status_of

SCHEMA: Final = "diff/1"
MANY: Final = 1000  # changed steps that are read again without -v


def of_ledgers(found: Difference, exit_code: int, *, everything: bool = False) -> dict[str, Any]:
    """Return what two ledgers differ in."""
    counts, ends = found.counts(), found.ends_differ
    answers = {name: value for name, value in zip("ab", found.answers, strict=True) if value is not ABSENT}
    return {
        "schema": SCHEMA,
        "kind": "ledgers",
        "exit_code": exit_code,
        "same": found.first() is None,
        "a": _ledger(found.a),
        "b": _ledger(found.b),
        "only": found.counting.only,
        "ignored": [paths.text(path) for path in found.counting.ignore],
        "shared": None if found.shared is None else {"newer": found.shared.newer, "steps": found.shared.steps},
        "parts": [{"kind": part.kind, "name": part.name, **_sides(part.a, part.b)} for part in found.parts],
        "first": _first(found, found.first()),
        "rows": list(_rows(found, everything=everything)),
        "proposals": {"changed": counts.changed["proposal"], "only_a": counts.only_a, "only_b": counts.only_b},
        "verdicts": {"changed": counts.judged, "read_or_said": counts.changed["verdict"] - counts.judged},
        "results": {"changed": counts.changed["result"], "by": dict(sorted(counts.caused.items()))},
        "marks": _marks(counts.marks),
        "start": list(map(_change, found.start)),
        "state": list(map(_change, found.state)),
        "answer": {"same": not ends.get("answer", False), **answers},
        "status": {"same": not ends.get("status", False), **_sides(*found.statuses)},
    }


def _ledger(side: Outline) -> dict[str, Any]:
    return {
        "path": str(side.path),
        "run": side.told.opening["run"],
        "status": status_of(side.told),
        "steps": side.told.steps,
        "denied": side.told.denied,
    }


def _sides(a: Any, b: Any) -> dict[str, Any]:
    """Return the sides that have a value."""
    return {name: value for name, value in (("a", a), ("b", b)) if value is not ABSENT and value is not None}


def _first(found: Difference, first: First | None) -> dict[str, Any] | None:
    if first is None:
        return None
    numbers = {
        name: side.numbers[place]
        for name, side, place in (("a", found.a, first.a), ("b", found.b, first.b))
        if place is not None and side.numbers[place]
    }
    return {"in": first.what, **numbers}


def _rows(found: Difference, *, everything: bool) -> Iterator[dict[str, Any]]:
    left = MANY
    if found.shared:
        older = found.a if found.shared.newer == "b" else found.b
        numbers = _numbers(older, range(found.shared.places))
        yield {"sign": "=", "shared": True, ("a" if found.shared.newer == "b" else "b"): numbers}
    for stretch in found.stretches:
        row: dict[str, Any] = {"sign": stretch.sign}
        row |= {name: _numbers(side, places) for name, side, places in _placed(found, stretch) if places}
        kinds = {side.labels[place][0] for _, side, places in _placed(found, stretch) for place in places}
        if marks := sorted(kinds - {"step"}):
            row["marks"] = marks
        if stretch.sign == "~":
            row["layers"] = list(stretch.layers)
            if left > 0 or everything:
                row["changes"] = _changes(found, stretch)
            left -= 1
        yield row


def _placed(found: Difference, stretch: Stretch) -> tuple[tuple[str, Outline, range], ...]:
    return ("a", found.a, stretch.a), ("b", found.b, stretch.b)


def _numbers(side: Outline, places: range) -> list[int]:
    """Return the first and the last number of the steps; nothing where all are marks."""
    numbers = [number for number in side.numbers[places.start : places.stop] if number]
    return [min(numbers), max(numbers)] if numbers else []


def _changes(found: Difference, stretch: Stretch) -> list[dict[str, Any]]:
    return [
        {
            "layer": one.layer,
            "at": one.label,
            **{name: value for name, value in (("a", one.a), ("b", one.b)) if value is not ABSENT},
        }
        for one in diff.details(stretch, *found.layers(stretch))
    ]


def _change(change: Change) -> dict[str, Any]:
    sides = {name: value for name, value in (("a", change.a), ("b", change.b)) if value is not ABSENT}
    return {"at": paths.text(("state", *change.path)), **sides}


def _marks(marks: Mapping[tuple[str, diff.Sign], int]) -> list[dict[str, Any]]:
    return [{"kind": kind, "sign": sign, "number": number} for (kind, sign), number in sorted(marks.items())]


# Folders


def of_folders(found: Comparison, exit_code: int) -> dict[str, Any]:
    """Return what two folders differ in."""
    return {
        "schema": SCHEMA,
        "kind": "folders",
        "exit_code": exit_code,
        "same": not found.fails("any"),
        "a": _folder(found.a),
        "b": _folder(found.b),
        "scenarios": [_scenario(match) for match in found.matches],
    }


def _folder(folder: Folder) -> dict[str, Any]:
    return {
        "path": folder.path,
        "ledgers": len(folder.runs),
        "passed": folder.passed,
        "proposals": folder.proposals,
        "denied": folder.denied,
        "denied_by": dict(sorted(folder.rules.items())),
        "steps_median": folder.steps,
        "damaged": [{"file": file, "message": message} for file, message in folder.damaged],
    }


def _scenario(match: Match) -> dict[str, Any]:
    sides = zip("ab", (match.a, match.b), match.passed, strict=True)
    rates = {name: {"passed": passed, "runs": list(map(_run, runs))} for name, runs, passed in sides if runs}
    both = bool(match.a and match.b)
    told = "better" if match.gain > 0 else "worse" if match.gain < 0 else "same"
    return {"name": match.name, "in_b": told if both else "only" if match.b else "missing", **rates}


def _run(run: Run) -> dict[str, Any]:
    return {
        "file": run.file,
        "status": run.status,
        "steps": run.steps,
        "proposals": run.proposals,
        "denied": run.denied,
        "denied_by": dict(sorted(run.rules.items())),
        "facts": run.facts,
    }
