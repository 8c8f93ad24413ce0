"""Many ledgers judged again for `ledger replay`: what is asked, how far it came, and the report in each form.

Invariants:
* A Ctrl-C keeps what is done: the report is written of that, and says how far it came.
* What could not be judged weighs more than an answer of no: exit code 2 before 1.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ledgercli.cli.common import output, write_json
from ledgercli.errors import ExitCode, InvalidDocumentError, LedgerCliError
from ledgercli.reports.screen import Screen, on_github

if TYPE_CHECKING:
    from ledgercli.replay.surveys import Unread
    from ledgercli.replay.verifying import Replayed
    from ledgercli.replay.whatif import Change, WhatIf
    from ledgercli.reports.junit import Suite
    from ledgercli.sources import Problem

__all__ = ["Asked", "verify", "what_if"]

T = TypeVar("T")


@dataclass(slots=True)
class Asked:
    """What is asked of many ledgers (the options, by their names), and how far it came."""

    files: Sequence[str]
    packs: Sequence[str]
    only_packs: bool
    fail_on: Sequence[Change]
    everything: bool
    jobs: int
    form: str
    report: str | None
    verbose: bool
    done: int = 0
    interrupted: bool = False
    screen: Screen | None = None

    def through(self, results: Iterator[T], see: Callable[[T], None]) -> None:
        """Take in what is found, as it is found; a Ctrl-C ends it and keeps what is done."""
        if self.form == "jsonl":
            self.screen = output(self.report)  # lines go there as they come
        elif self.report is not None and Path(self.report).exists():
            Screen.file(self.report)  # raises before anything is judged: it is not overwritten
        try:
            for one in self._shown(results):
                see(one)
                self.done += 1
        except KeyboardInterrupt:
            self.interrupted = True
        finally:
            results.close()  # type: ignore[attr-defined]  # a generator, which may have processes

    def _shown(self, results: Iterator[T]) -> Iterable[T]:
        """Show how far it is, unless lines come out on the terminal meanwhile."""
        if self.form == "jsonl" and self.report is None and sys.stdout is not None and sys.stdout.isatty():
            return results
        from ledgercli.cli.progress import watched

        return watched(results, len(self.files), "ledgers")

    def line(self, line: Mapping[str, Any]) -> None:
        """Write a line of JSON, where lines are asked for."""
        from ledgercli.reports.replay import write_line

        if self.screen is not None:
            write_line(self.screen, line)

    def code(self, unread: Sequence[Unread], *, fails: bool) -> ExitCode:
        """Return what it comes to: what could not be judged weighs more than an answer of no."""
        if self.interrupted:
            return ExitCode.INTERRUPTED
        if unread:
            return ExitCode.UNASKED
        return ExitCode.NO if fails else ExitCode.YES

    def told(self, code: ExitCode) -> dict[str, int]:
        """Return what a JSON report says of the command itself."""
        return {"of": len(self.files), "interrupted": self.interrupted, "exit_code": int(code)}

    def tell(self, unread: Sequence[Unread], annotations: Iterable[Problem]) -> None:
        """Say on stderr how far it came and what was left out, beside a report that people do not see there."""
        from ledgercli.reports.problems import write_annotations
        from ledgercli.reports.replay import unread_lines
        from ledgercli.reports.summary import counted

        err = Screen.stderr()
        if self.form != "text" or self.report is not None:
            for line in unread_lines(err, unread):
                err.line(line)
        if unread:
            err.line(f"{counted(len(unread), 'ledger')} left out; ledger validate says what is wrong with each")
        if self.interrupted:
            err.line(f"interrupted after {self.done:,} of {counted(len(self.files), 'ledger')}")
        if on_github() and self.form != "github":
            write_annotations(err, (one for one in annotations if one.severity == "error"))


def _refuse_unjudged(asked: Asked, judged: int, unread: Sequence[Unread]) -> None:
    """Raise where there is one ledger and it cannot be judged, or none can for what is wrong with files."""
    if judged or not unread or asked.interrupted:
        return
    ill = next((one for one in unread if one.problems), None)
    if ill is not None:
        raise InvalidDocumentError(ill.message, problems=ill.problems, fix=ill.fix)
    if len(unread) == 1:
        raise LedgerCliError(unread[0].message, fix=unread[0].fix)


def verify(asked: Asked) -> ExitCode:
    """Judge ledgers by what they carry."""
    from ledgercli.replay.surveys import Unread, Verified, replays
    from ledgercli.reports import replay as reports

    found = Verified()
    kept: list[Replayed | Unread] = []

    def see(one: Replayed | Unread) -> None:
        found.add(one)
        if asked.form == "junit":
            kept.append(one)
        if not isinstance(one, Unread) and (line := reports.line_of(one)):
            asked.line(line)

    asked.through(replays(asked.files, asked.jobs), see)
    _refuse_unjudged(asked, found.ledgers, found.unread)
    code = asked.code(found.unread, fails=bool(found.diverged))
    with asked.screen or output(asked.report) as screen:
        match asked.form:
            case "json":
                write_json(screen, reports.to_json(found, **asked.told(code)))
            case "jsonl":
                _write_unread(asked, found.unread)
            case "markdown":
                reports.write_markdown(screen, found, everything=asked.everything)
            case "junit":
                _write_junit(screen, reports.suite(kept))
            case "github":
                _write_annotations(screen, reports.to_problems(found))
            case _:
                reports.write_text(screen, found, everything=asked.everything, verbose=asked.verbose)
    asked.tell(found.unread, reports.to_problems(found))
    return code


def what_if(asked: Asked) -> ExitCode:
    """Judge ledgers by other packs."""
    from ledgercli.replay.surveys import Survey, Unread, what_ifs
    from ledgercli.reports import whatif as reports

    survey = Survey(everything=asked.everything)
    kept: list[WhatIf | Unread] = []

    def see(one: WhatIf | Unread) -> None:
        survey.add(one)
        if asked.form == "junit" or (asked.form == "json" and reports.is_told(one)):
            kept.append(one)
        for line in () if isinstance(one, Unread) else reports.lines_of(one):
            asked.line(line)

    asked.through(what_ifs(asked.files, asked.packs, only_packs=asked.only_packs, jobs=asked.jobs), see)
    _refuse_unjudged(asked, survey.ledgers, survey.unread)
    code = asked.code(survey.unread, fails=any(survey.changed[change][0] for change in asked.fail_on))
    with asked.screen or output(asked.report) as screen:
        match asked.form:
            case "json":
                write_json(screen, reports.to_json(survey, kept, asked.fail_on, **asked.told(code)))
            case "jsonl":
                _write_unread(asked, survey.unread)
            case "markdown":
                reports.write_markdown(screen, survey, asked.fail_on)
            case "junit":
                _write_junit(screen, reports.suite(kept, asked.fail_on))
            case "github":
                _write_annotations(screen, reports.to_problems(survey, asked.fail_on))
            case _:
                reports.write_text(screen, survey, asked.fail_on, verbose=asked.verbose)
    asked.tell(survey.unread, reports.to_problems(survey, asked.fail_on))
    if asked.form != "text" or asked.report is not None:
        reports.write_failures(Screen.stderr(), survey, asked.fail_on)
    return code


def _write_unread(asked: Asked, unread: Iterable[Unread]) -> None:
    from ledgercli.reports.replay import line_of

    for one in unread:
        asked.line(line_of(one) or {})


def _write_junit(screen: Screen, suite: Suite) -> None:
    from ledgercli.reports import junit

    junit.write(screen, "ledger replay", [suite])


def _write_annotations(screen: Screen, problems: Iterable[Problem]) -> None:
    from ledgercli.reports.problems import write_annotations

    write_annotations(screen, problems)
