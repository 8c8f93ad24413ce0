"""`ledger run` on a terminal: each step as its line is written, then how the run ended.

Invariants:
* What is shown comes from the ledger's lines, masked as they are; the report adds only where rules stand.
* stdout has what was asked for, stderr what to do next; `-q` prints one line, the ledger's path.
* An output that cannot be written never disturbs the run: nothing more is shown, and `end` raises once the ledger is
  closed.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal

from ledgercli.errors import LedgerCliError
from ledgercli.loop import Ended
from ledgercli.records import Line
from ledgercli.reopening import Reopened
from ledgercli.reports import values
from ledgercli.reports.cells import WIDTH, cells, cut, pad
from ledgercli.reports.many import many_lines
from ledgercli.reports.places import RulePlace, nowhere, rule_places
from ledgercli.reports.screen import Screen
from ledgercli.reports.steps import Steps
from ledgercli.reports.summary import counted, tally_text
from ledgercli.reports.titles import heading, title
from ledgercli.runs import Job
from ledgercli.tally import Tally

Form = Literal["text", "json", "jsonl"]

_LABEL: Final = 11  # cells of `completed  `
_HEX: Final = 12  # digits of a digest that are shown without -v
_ENDING: Final = ("status", "answer", "limit", "error", "counterfactual_from")
_BAD: Final = frozenset({"failed", "error"})


class RunReport:
    """What `ledger run` prints; one object for all runs of a command.

    Arguments:
        out: for what was asked for; stdout if left out.
        err: for what to do next; stderr if left out.
        form: `text`, `json` (nothing is printed here, `end` returns it) or `jsonl` (the ledger's own lines).
        verbosity: 1: also what was read, whole digests; 2: whole values.
        quiet: only each ledger's path.
        commands: the subcommands that there are, so that `next:` never names another.

    Its `trouble` is what kept the output from being written, if anything did.

    """

    def __init__(  # noqa: PLR0913 - the options of the command
        self,
        out: Screen | None = None,
        err: Screen | None = None,
        *,
        form: Form = "text",
        verbosity: int = 0,
        quiet: bool = False,
        commands: Collection[str] = (),
    ) -> None:
        self._out = out or Screen.stdout()
        self._err = err or Screen.stderr()
        self._form = form
        self._verbosity = verbosity
        self._quiet = quiet
        self._brief = False  # nothing for the single runs of a recording; `many` says what they came to
        self._commands = commands
        self._again: Reopened | None = None
        self._runs = 0
        self.trouble: OSError | LedgerCliError | None = None
        self._begin(nowhere, ())

    # ---- one run

    def begin(self, job: Job) -> None:
        """Get ready for a run."""
        whose = "the ledger's" if job.again is not None or not job.expects else "the scenario's"
        changes = [f"{name} takes the place of {whose}" for name in job.replaced]
        changes += [f"{name} is added" for name in job.added]
        self._begin(rule_places(job.book.packs), changes)
        self._again = job.again
        if job.again is not None:
            self._printed = job.again.end
        recorded = job.scenario.file.decide.recording is not None and job.again is None
        self._brief = recorded and self._form == "text" and not self._verbosity and not self._quiet
        self._ledger = job.ledger

    def _begin(self, place: RulePlace, changes: Sequence[str]) -> None:
        self._ledger = Path()
        self._printed = 0  # bytes of the ledger, as `jsonl`
        self._steps = Steps(self._out, place, self._verbosity)
        self._changes = changes
        self._tally = Tally()
        self._close: Line = {}

    def line(self, line: Line) -> None:
        """Show a line of the ledger, which was just written."""
        self._tally.see(line)
        if line["kind"] == "close":
            self._close = line
        if self.trouble is not None or self._quiet or self._brief or self._form == "json":
            return
        try:
            self._show(line)
            self._out.flush()
        except (OSError, LedgerCliError) as error:
            self.trouble = error

    def _show(self, line: Line) -> None:
        if self._form == "jsonl":
            self._own_lines()
            return
        match line["kind"]:
            case "open":
                self._lines([""] if self._runs else [])
                self._lines(self._header(line))
            case "resume":
                self._lines([""] if self._runs else [])
                self._lines(self._resumed(line))
            case "step":
                self._lines(self._steps.step(line))
            case "approval":
                self._lines(self._steps.approval(line))

    def _own_lines(self) -> None:
        """Write what was added to the ledger, byte for byte."""
        with self._ledger.open("rb") as file:
            file.seek(self._printed)
            added = file.read()
        self._out.data(added)
        self._printed += len(added)

    def end(self, job: Job, ended: Ended, unmet: Sequence[tuple[str, Any, Any]] = ()) -> dict[str, Any]:
        """Show how a run ended.

        Arguments:
            job: the run.
            ended: how it ended.
            unmet: what the scenario expected and did not get: path, wanted, got.

        Returns:
            The same as data.

        Raises:
            OSError: the output could not be written.
            LedgerCliError: the same, with the reason.

        """
        if self.trouble is not None:
            raise self.trouble
        self._runs += 1
        head = job.guard.head if job.guard else None
        close = self._close or {"status": ended.status, "answer": ended.answer}
        if self._quiet:
            self._out.line(self._out.safe(str(job.ledger)))
        elif self._form == "text" and not self._brief:
            self._lines(self._ending(close, str(job.ledger), head))
            if job.expect is not None:
                self._lines(self._expected(unmet, _width(close["status"])))
            self._out.flush()
            self._next(close["status"], str(job.ledger))
        self._out.flush()
        return {
            "scenario": job.scenario.name,
            **{key: close[key] for key in _ENDING if key in close},
            "ledger": str(job.ledger),
            "head": head,
            **self._tally.to_json(),
            "unmet": [{"path": path, "wanted": wanted, "got": got} for path, wanted, got in unmet],
        }

    # ---- many runs

    def many(self, name: str, runs: Sequence[Mapping[str, Any]]) -> None:
        """Show what the runs of a recording came to, of which `end` returned each, unless each was shown."""
        if not self._brief:
            return
        self._lines(many_lines(self._out, name, runs))
        self._out.flush()

    # ---- parts

    def _lines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self._out.line(line)

    def _header(self, line: Line) -> list[str]:
        """Return who and what takes part; on two lines where the task would have no room."""
        return [*heading(self._out, line), *self._changed(), ""]

    def _resumed(self, line: Line) -> list[str]:
        """Return what goes on, and what is other than before."""
        again = self._again
        assert again is not None, "whoever goes on with a run has taken it up"
        scenario = again.rules.scenario
        steps = again.books.steps
        rest = f"resumed after step {steps}" if steps else "resumed before its first step"
        name = scenario.name if scenario else "run"
        lines = [*title(self._out, name, str(again.books.state.tree["task"]), rest), *self._changed()]
        given = list(self._steps.changes(line))
        return [*lines, *given, ""]

    def _changed(self) -> list[str]:
        return [f"  --pack: {self._out.safe(change)}" for change in self._changes]

    def _ending(self, close: Mapping[str, Any], ledger: str, head: str | None) -> list[str]:
        status = close["status"]
        lines = [""] if self._tally.last else []
        if close["answer"] is not None:
            lines += [*self._answer(close["answer"]), ""]
        width = _width(status)
        word = self._out.paint(status, "red" if status in _BAD else None) + " " * (width - len(status))
        told, why = tally_text(self._tally), self._why(close)
        fits = width + cells(told + why) <= WIDTH
        lines += [word + told + why] if fits else [word + told, " " * width + why.strip()]
        if status in _BAD and close.get("error") not in (None, self._last_error()):
            error = close["error"]
            text = self._out.safe(error) if isinstance(error, str) else self._value(error)
            lines.append(f"{self._out.paint('error', 'red')}{' ' * (width - 5)}{text}")
        lines.append(self._aside(pad("ledger", width), ledger))
        if head is not None:
            whole = self._verbosity > 0
            lines.append(
                self._aside(pad("head", width), head if whole else head[: len("sha256:") + _HEX])
                + ("  (full with -v)" if status == "completed" and not whole else "")
            )
        return lines

    def _aside(self, label: str, text: str) -> str:
        """Return a file or digest behind its label."""
        return label + self._out.paint(self._out.safe(text), "dim")

    def _why(self, close: Mapping[str, Any]) -> str:
        """Say in brackets what ended the run, where the status alone does not."""
        halting = self._tally.halting
        said = []
        if close["status"] == "halted" and halting:
            said.append(f"{self._out.safe(halting.rpartition('/')[2])} halts")
        if close.get("limit"):
            said.append(close["limit"])
        if close.get("counterfactual_from"):
            said.append(f"counterfactual from @{close['counterfactual_from']} on")
        if self._again is not None:
            said.append(f"{counted(close['steps'], 'step')} in all")
        return f"  ({'; '.join(said)})" if said else ""

    def _last_error(self) -> Any:
        result = (self._tally.last or {}).get("result") or {}
        return result.get("error")

    def _expected(self, unmet: Sequence[tuple[str, Any, Any]], width: int) -> list[str]:
        if not unmet:
            return [pad("pass", width) + "as expected"]
        fail = self._out.paint("FAIL", "red") + " " * (width - len("FAIL"))
        told = [(self._out.safe(path), self._value(wanted), self._value(got)) for path, wanted, got in unmet]
        return [f"{fail}{path}  wanted {wanted}, got {got}" for path, wanted, got in told]

    def _next(self, status: str, ledger: str) -> None:
        """Say on stderr what to type next."""
        last = self._tally.last
        if last is None:
            return
        step = shlex.quote(f"{ledger}@{last['step']}")
        if status == "awaiting_approval":
            self._err.line(self._err.safe(f"next: ledger approve {step} --yes --by NAME"))
        elif status in ("halted", "limit") and last["outcome"] == "denied" and "why" in self._commands:
            self._err.line(self._err.safe(f"next: ledger why {step}"))

    def _value(self, value: Any) -> str:
        return self._out.cut(values.parts(value), None)

    def _answer(self, answer: Any) -> list[str]:
        """Return the lines of an answer; what is no text stands as a value."""
        if not isinstance(answer, str):
            return [self._value(answer)]
        return [self._out.safe(line.expandtabs(4)) for line in answer.rstrip("\n").split("\n")]


def _width(status: str) -> int:
    """Return how far the labels of the last lines are padded."""
    return max(_LABEL, len(status) + 2)


def call_text(tool: str, args: Mapping[str, Any]) -> str:
    """Return a call for a question: whole, since a yes is a yes to exactly this."""
    return cut(values.call(tool, args), None)
