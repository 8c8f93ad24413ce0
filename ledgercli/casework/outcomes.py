"""What came of cases: plain values, which go from process to process and into every report.

Invariants:
* An outcome of a case that passed holds no more than its name and place, so that thousands cost little.
* `error`: the case could not be judged. That is neither passed nor failed, and is never counted as either.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from ledgercli.casework.coverage import Coverage
from ledgercli.casework.preparing import Wanted
from ledgercli.records import Verdict
from ledgercli.sources import Problem

Came = Literal["passed", "failed", "skipped", "error"]
Says = Literal["failed", "passed", "did not apply", "could not be told", "granted", "granted nothing"]


@dataclass(frozen=True, slots=True)
class Where:
    """Where something stands in a file; lines and columns from 1."""

    file: str
    line: int
    column: int
    length: int = 1

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(frozen=True, slots=True)
class Difference:
    """One part of the expectation that is not met: `effect`, `rules`, `rules_include`, `error`, `hint`, `halts`."""

    key: str
    wanted: Any
    got: Any


@dataclass(frozen=True, slots=True)
class Shown:
    """A part of a rule with what it came to.

    Arguments:
        text: the part as it is typed; of a define its name and what that stands for.
        came: `true`, `false`, or why it cannot be told.
        values: what it read and computed, by path or as it is typed.

    """

    text: str
    came: str
    values: Sequence[tuple[str, Any]] = ()


@dataclass(frozen=True, slots=True)
class Reason:
    """What one rule said.

    Arguments:
        rule: the rule, as short as it is unique.
        where: where it stands; None for a built-in one.
        says: what it said.
        error: its message, if it failed.
        parts: the parts that made it say so.

    """

    rule: str
    where: Where | None
    says: Says
    error: str | None = None
    parts: Sequence[Shown] = ()


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a case failed.

    Arguments:
        tool: what was proposed.
        args: its arguments.
        wanted: what was expected.
        verdict: the verdict, its rules as short as they are unique.
        differences: what is not as expected.
        reasons: what the rules that matter said.
        more: how many more rules passed.

    """

    tool: str
    args: Mapping[str, Any]
    wanted: Wanted
    verdict: Verdict
    differences: Sequence[Difference]
    reasons: Sequence[Reason] = ()
    more: int = 0


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one case.

    Arguments:
        name: what it is called.
        where: where it stands.
        came: what came of it.
        why: why it was skipped or could not be judged.
        failure: why it failed.
        place: its place in the file, and its row, for whoever changes it.

    """

    name: str
    where: Where
    came: Came
    why: str = ""
    failure: Failure | None = None
    place: tuple[str | int, ...] = ()
    row: int | None = None


@dataclass(slots=True)
class Judged:
    """What came of the cases of one file.

    Arguments:
        file: the file.
        outcomes: of each case, in order.
        problems: what is wrong with it or with what it names; where one is an error nothing was judged.
        coverage: what the cases that passed have shown of the rules.

    """

    file: str
    outcomes: list[Outcome] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    coverage: Coverage | None = None

    @property
    def loaded(self) -> bool:
        """Whether it could be judged."""
        return not any(problem.severity == "error" for problem in self.problems)

    def count(self, came: Came) -> int:
        """How many came out so."""
        return sum(outcome.came == came for outcome in self.outcomes)
