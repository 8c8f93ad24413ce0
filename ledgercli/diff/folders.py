"""Two folders of ledgers compared: how often each scenario passed, what was denied, by which rule.

Invariants:
* Each ledger is read once and becomes one `Run`: some numbers, never its lines.
* Runs are gathered by their scenario; several of one are trials, and are compared by their rates. Runs of a recording
  are not trials of one another: where both folders have the same files of it, each is compared with its own.
* A damaged ledger is named and left out, the rest is compared.

Deliberately not here: what a single run did otherwise (`diff`).
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from statistics import median
from typing import Any, Final, Literal, TypeAlias

from ledgercli import story
from ledgercli.diff.layers import FailOn, comparable
from ledgercli.errors import LedgerCliError
from ledgercli.gathering import ledgers
from ledgercli.records import digest_of

Side: TypeAlias = Literal["a", "b"]
PASSED: Final = "completed"


@dataclass(frozen=True, slots=True)
class Run:
    """One ledger, in numbers.

    Arguments:
        file: its path.
        name: its path below the folder.
        scenario: the scenario's name; the file's where there is none.
        recorded: whether a recording proposed.
        status: how it ended.
        proposals: how many calls were judged.
        steps: how many steps there are.
        denied: how many were denied.
        rules: how many by each rule.
        facts: the digest of the last facts.

    """

    file: str
    name: str
    scenario: str
    recorded: bool
    status: str
    proposals: int
    steps: int
    denied: int
    rules: Counter[str]
    facts: str

    @property
    def passed(self) -> bool:
        """Whether it did what it should, as far as the ledger tells."""
        return self.status == PASSED

    @property
    def came_to(self) -> tuple[Any, ...]:
        """All that is compared of it."""
        return self.status, self.proposals, self.steps, self.denied, tuple(sorted(self.rules.items())), self.facts


@dataclass(frozen=True, slots=True)
class Folder:
    """The ledgers of one folder.

    Arguments:
        path: the folder.
        runs: those that can be read.
        damaged: the others, and what is wrong with each.

    """

    path: str
    runs: tuple[Run, ...]
    damaged: tuple[tuple[str, str], ...]

    @property
    def passed(self) -> int:
        """How many runs passed."""
        return sum(run.passed for run in self.runs)

    @property
    def proposals(self) -> int:
        """How many calls were judged."""
        return sum(run.proposals for run in self.runs)

    @property
    def denied(self) -> int:
        """How many of them were denied."""
        return sum(run.denied for run in self.runs)

    @property
    def steps(self) -> float:
        """The median of steps."""
        return median(run.steps for run in self.runs) if self.runs else 0

    @property
    def rules(self) -> Counter[str]:
        """How many denials there are by each rule."""
        return sum((run.rules for run in self.runs), Counter())


@dataclass(frozen=True, slots=True)
class Match:
    """The runs of one scenario on both sides.

    Arguments:
        name: the scenario; of a recording, the file.
        a: its runs in A.
        b: its runs in B.

    """

    name: str
    a: tuple[Run, ...]
    b: tuple[Run, ...]

    @property
    def passed(self) -> tuple[int, int]:
        """How many of them passed, on each side."""
        return sum(run.passed for run in self.a), sum(run.passed for run in self.b)

    @property
    def gain(self) -> float:
        """By how much B passes more often; below 0 where it does less often."""
        return self.passed[1] / len(self.b) - self.passed[0] / len(self.a) if self.a and self.b else 0.0


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two folders side by side.

    Arguments:
        a: the first.
        b: the second.
        matches: the scenarios, in order of their names; some are on one side only.

    """

    a: Folder
    b: Folder
    matches: tuple[Match, ...]

    @property
    def better(self) -> list[Match]:
        """Scenarios that pass more often in B, those that gain most first."""
        return sorted((one for one in self.matches if one.gain > 0), key=lambda one: -one.gain)

    @property
    def worse(self) -> list[Match]:
        """Scenarios that pass less often in B, those that lose most first."""
        return sorted((one for one in self.matches if one.gain < 0), key=lambda one: one.gain)

    @property
    def same(self) -> list[Match]:
        """Scenarios that pass as often in both."""
        return [one for one in self.matches if one.a and one.b and not one.gain]

    def only(self, side: Side) -> list[Match]:
        """Return the scenarios that only one side has."""
        return [one for one in self.matches if not (one.b if side == "a" else one.a)]

    @property
    def other_facts(self) -> list[Match]:
        """Scenarios in which other facts are known at the end."""
        return [one for one in self.matches if one.a and one.b and _all(one.a, "facts") != _all(one.b, "facts")]

    def fails(self, on: FailOn) -> bool:
        """Whether they differ in the way that is asked for."""
        match on:
            case "any":
                return any(map(_came_apart, self.matches))
            case "worse":
                return bool(self.worse)
            case "verdicts":
                return any(_all(one.a, "rules") != _all(one.b, "rules") for one in self.matches)
            case "state":
                return bool(self.other_facts)

    def next(self) -> tuple[str, str] | None:
        """Return what to compare next: of the scenario that loses or gains most, its folders or one pair of runs."""
        changed = [*self.worse, *self.better]
        if (len(self.a.runs), len(self.b.runs)) == (1, 1):
            return None
        if not changed:  # the first that differs in something else
            single = [one for one in self.matches if len(one.a) == len(one.b) == 1]
            return next(((one.a[0].file, one.b[0].file) for one in single if _came_apart(one)), None)
        match = changed[0]
        folders = _own_folder(match.a, self.a), _own_folder(match.b, self.b)
        if (len(match.a) > 1 or len(match.b) > 1) and folders[0] and folders[1]:
            return folders[0], folders[1]
        pairs = ((a, b) for a in match.a for b in match.b)  # one that passed and one that did not
        return next(((a.file, b.file) for a, b in pairs if a.passed != b.passed == (match.gain > 0)), None)


def compare(a: str, b: str, watched: Callable[[list[tuple[int, str]]], Iterable[tuple[int, str]]] = iter) -> Comparison:
    """Compare two folders.

    Arguments:
        a: the first.
        b: the second.
        watched: passes the ledgers on, and shows how far it is.

    Raises:
        UnreadableInputError: there are no ledgers under one of them.

    """
    sides = a, b
    files = [(side, file) for side, folder in enumerate(sides) for file in ledgers([folder])]
    runs: tuple[list[Run], list[Run]] = [], []
    damaged: tuple[list[tuple[str, str]], list[tuple[str, str]]] = [], []
    for side, file in watched(files):
        try:
            runs[side].append(run_of(file, os.path.relpath(file, sides[side])))
        except LedgerCliError as error:
            damaged[side].append((file, error.message))
    first, second = (Folder(sides[side], tuple(runs[side]), tuple(damaged[side])) for side in (0, 1))
    return Comparison(first, second, tuple(_matched(first.runs, second.runs)))


def run_of(file: str, name: str) -> Run:
    """Read one ledger.

    Raises:
        LedgerCliError: it cannot be read.

    """
    rules: Counter[str] = Counter()
    proposals, told = 0, story.Story()
    for entry, told in story.follow(file):  # noqa: B007 - the last story is wanted
        if entry.kind == "step" and entry.record["verdict"] is not None:
            proposals += 1
            if entry.record["outcome"] == "denied":
                rules.update(found["rule"] for found in entry.record["verdict"].get("failed", ()))
    scenarios = [part["name"] for part in told.opening["files"] if part["kind"] == "scenario"]
    return Run(
        file=file,
        name=name,
        scenario=scenarios[0] if scenarios else name,
        recorded=told.opening["engine"].get("kind") == "recording",
        status=story.status_of(told),
        proposals=proposals,
        steps=told.steps,
        denied=told.denied,
        rules=rules,
        facts=digest_of(comparable(told.tree["facts"])),
    )


def _matched(a: Sequence[Run], b: Sequence[Run]) -> Iterator[Match]:
    """Bring together the runs of each scenario."""
    sides = _by_scenario(a), _by_scenario(b)
    for name in sorted({**sides[0], **sides[1]}):
        one, other = (side.get(name, []) for side in sides)
        if _are_transcripts(one, other):
            named = {run.name: run for run in other}
            yield from (Match(run.name, (run,), (named[run.name],)) for run in sorted(one, key=lambda run: run.name))
        else:
            yield Match(name, tuple(one), tuple(other))


def _by_scenario(runs: Iterable[Run]) -> dict[str, list[Run]]:
    found: dict[str, list[Run]] = {}
    for run in runs:
        found.setdefault(run.scenario, []).append(run)
    return found


def _are_transcripts(a: Sequence[Run], b: Sequence[Run]) -> bool:
    """Whether runs are those of one recording, the same in both folders."""
    recorded = len(a) > 1 and all(run.recorded for run in (*a, *b))
    return recorded and {run.name for run in a} == {run.name for run in b}


def _own_folder(runs: Sequence[Run], folder: Folder) -> str | None:
    """The folder that holds these runs and no other, below the one that was compared."""
    parents = {PurePath(run.file).parent for run in runs}
    if len(parents) != 1:
        return None
    [parent] = parents
    inside = [run for run in folder.runs if parent in PurePath(run.file).parents]
    return str(parent) if len(inside) == len(runs) and len(runs) < len(folder.runs) else None


def _came_apart(match: Match) -> bool:
    """Whether anything that is compared differs in the runs of a scenario."""
    return _all(match.a, "came_to") != _all(match.b, "came_to")


def _all(runs: Iterable[Run], what: str) -> list[Any]:
    """Return one thing of several runs, whatever their order."""
    return sorted((getattr(run, what) for run in runs), key=repr)


def damage(folders: Iterable[Folder]) -> list[tuple[str, str]]:
    """Return the ledgers that could not be read."""
    return [one for folder in folders for one in folder.damaged]
