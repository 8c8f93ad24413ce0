r"""Test results as JUnit XML, which every CI system shows.

Invariants:
* What is written is XML 1.0, whatever the texts hold: a character that XML does not allow, or nobody can see, stands as
  `\x1b`, `\u202e`.
* The counts of a suite are those of its cases.
* No times: the same results are the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from ledgercli.reports.cells import inert
from ledgercli.reports.screen import Screen

Came = Literal["passed", "failure", "error", "skipped"]
_QUOTED: Final = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;"})


@dataclass(frozen=True, slots=True)
class Case:
    """One test.

    Arguments:
        name: what it is called.
        came: what came of it; `error` if it could not be made.
        message: why, in one line.
        detail: why, in lines.
        output: what it has to tell besides.
        file: the file that it is about.
        line: and where in it.

    """

    name: str
    came: Came = "passed"
    message: str = ""
    detail: Sequence[str] = ()
    output: Sequence[str] = ()
    file: str | None = None
    line: int | None = None


@dataclass(frozen=True, slots=True)
class Suite:
    """Tests that belong together: a file of cases, one question about many ledgers."""

    name: str
    cases: Sequence[Case]

    def count(self, came: Came) -> int:
        """How many have come out so."""
        return sum(case.came == came for case in self.cases)


def write(screen: Screen, name: str, suites: Sequence[Suite]) -> None:
    """Write the results of all suites; `name` is the command that they are of."""
    screen.data(('<?xml version="1.0" encoding="UTF-8"?>\n' + "\n".join(_all(name, suites)) + "\n").encode())


def _all(name: str, suites: Sequence[Suite]) -> Iterator[str]:
    yield f"<testsuites {_attributes(name=name, **_counts(suites))}>"
    for suite in suites:
        yield f"  <testsuite {_attributes(name=suite.name, **_counts([suite]))}>"
        for case in suite.cases:
            yield from _case(suite, case)
        yield "  </testsuite>"
    yield "</testsuites>"


def _counts(suites: Sequence[Suite]) -> dict[str, int]:
    counts = {"tests": sum(len(suite.cases) for suite in suites)}
    words: tuple[tuple[str, Came], ...] = (("failures", "failure"), ("errors", "error"), ("skipped", "skipped"))
    return counts | {word: sum(suite.count(came) for suite in suites) for word, came in words}


def _case(suite: Suite, case: Case) -> Iterator[str]:
    head = f"    <testcase {_attributes(classname=suite.name, name=case.name, file=case.file, line=case.line)}"
    if case.came == "passed" and not case.output:
        yield f"{head}/>"
        return
    yield f"{head}>"
    if case.came != "passed":
        yield f"      <{case.came} {_attributes(message=case.message)}>{_text(case.detail)}</{case.came}>"
    if case.output:
        yield f"      <system-out>{_text(case.output)}</system-out>"
    yield "    </testcase>"


def _attributes(**values: str | int | None) -> str:
    return " ".join(f'{name}="{_escaped(str(value))}"' for name, value in values.items() if value is not None)


def _text(lines: Sequence[str]) -> str:
    return "\n".join(map(_escaped, lines))


def _escaped(text: str) -> str:
    return inert(text).translate(_QUOTED)
