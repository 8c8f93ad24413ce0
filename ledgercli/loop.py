"""The stations in order, and when to stop.

    propose → check → run → record, until the run has ended or a limit is reached

Invariants:
* Whatever ends a run, its ledger is closed with a status: a crash of the engine, Ctrl-C, a limit, an approval that is
  waited for.
* Ctrl-C never falls between a line and what is noted of it.
* Only a call that the guard lets through is run; what ran is always recorded.
"""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import FrameType
from typing import Any, ParamSpec, Protocol, Self, TypeVar

from msgspec.structs import replace

from ledgercli import cel
from ledgercli.decision import Engine, Limit, Recorded, Said
from ledgercli.errors import EngineError, ExitCode, LedgerCliError, ProposalError
from ledgercli.guard import Guard
from ledgercli.records import Line, Proposal, Result, Status, Verdict
from ledgercli.responder import Responder

P = ParamSpec("P")
T = TypeVar("T")
MAX_STEPS, MAX_DENIALS = 100, 5  # where nothing is said

#: The endings that a model writes an answer to: not those that leave something open, nor one that has cost enough.
WRITTEN = frozenset({"completed", "failed", "halted"})

#: How a run may end, and what its exit code then is.
EXIT_OF: Mapping[str, ExitCode] = {
    "completed": ExitCode.YES,
    "failed": ExitCode.NO,
    "halted": ExitCode.STOPPED,
    "limit": ExitCode.STOPPED,
    "awaiting_approval": ExitCode.STOPPED,
    "error": ExitCode.OUTSIDE,
    "interrupted": ExitCode.INTERRUPTED,
}


class Runner(Protocol):
    """Whatever runs a validated action."""

    def run(self, proposal: Proposal) -> Result | None:
        """Run it; None if what came of it is not known."""


#: Answers a verdict that asks for approval: yes or no and who says so; None if nobody is there.
Approver = Callable[[Proposal, Verdict], tuple[bool, str] | None]


@dataclass(frozen=True, slots=True)
class Ended:
    """How a run ended.

    Arguments:
        status: `completed`, `failed`, `halted`, `limit`, `awaiting_approval`, `error` or `interrupted`.
        answer: the answer, if there is one.
        limit: which limit was reached.
        error: what went wrong.
        counterfactual_from: in a recording, the step from which on it might have gone another way.

    """

    status: Status
    answer: Any = None
    limit: str | None = None
    error: str | None = None
    counterfactual_from: int | None = None

    @property
    def exit_code(self) -> ExitCode:
        """The exit code that this ending means."""
        return EXIT_OF[self.status]


class CtrlC:
    """Holds Ctrl-C back while a line is written and noted, so that the books never say less or more than the file.

    A second one is not held back. One that comes where Python drops every exception (in a `__del__`, in a callback of a
    weak reference), or that a tool has caught, is heeded once the next line is written. Outside the main thread, or
    where somebody else handles it, this does nothing.
    """

    def __init__(self) -> None:
        self._held = self._came = False
        self._before: Any = None

    def __enter__(self) -> Self:
        mine = threading.current_thread() is threading.main_thread()
        if mine and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            self._before = signal.signal(signal.SIGINT, self._on)
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)
        if self._came and kind is None:
            raise KeyboardInterrupt

    def _on(self, _number: int, _frame: FrameType | None) -> None:
        again, self._came = self._came, True
        if again or not self._held:
            raise KeyboardInterrupt

    def come(self) -> None:
        """Say that it has come, from another thread; the run ends once it would have been heeded."""
        self._came = True

    def hold(self) -> None:
        """Let it wait from now on."""
        self._held = True

    def heed(self) -> None:
        """Let it wait no longer.

        Raises:
            KeyboardInterrupt: it came meanwhile.

        """
        self._held = False
        if self._came:
            self._came = False
            raise KeyboardInterrupt

    def heard(self) -> None:
        """Forget one that was heeded where it came."""
        self._came = False


@dataclass(slots=True)
class Loop:
    """One run.

    Arguments:
        guard: judges and records.
        engine: proposes.
        runner: runs what passes.
        responder: makes the answer.
        approver: asks whoever may approve.
        clock: tells the time for the engine and the answer.
        ctrl_c: holds Ctrl-C back while the guard writes.
        first_denial: the first step that was denied, in a run that goes on.
        unrecorded: tells what asking the engine took that led to no step, for the end of the ledger.
        summarise: has what older steps came to written for the engine, where that is due: the line, but for its time.
        listener: asks the user for a word where the engine has no next step; '' or None ends the run.

    """

    guard: Guard
    engine: Engine
    runner: Runner
    responder: Responder
    clock: Callable[[], cel.Timestamp]
    approver: Approver = lambda _proposal, _verdict: None
    ctrl_c: CtrlC = field(default_factory=CtrlC)
    first_denial: int | None = None
    unrecorded: Callable[[], Mapping[str, Any] | None] = lambda: None
    summarise: Callable[[], Line | None] = lambda: None
    listener: Callable[[], str | None] = lambda: None
    _started: float = 0.0

    def run(self) -> Ended:
        """Run until the end, and close the ledger."""
        self._started = time.monotonic()
        try:
            ended = self._ended()
        except BaseException as error:
            self.ctrl_c.hold()
            with contextlib.suppress(LedgerCliError):  # the ledger may be what failed
                self.guard.close("error", error=f"{type(error).__name__}: {error}", engine=self.unrecorded())
            raise
        self.ctrl_c.hold()
        self.guard.close(
            ended.status,
            ended.answer,
            limit=ended.limit,
            error=ended.error,
            counterfactual_from=ended.counterfactual_from,
            engine=self.unrecorded(),
        )
        return ended

    def _ended(self) -> Ended:
        """Take steps until the end; what an interruption leaves unrecorded, closing the books records."""
        try:
            self.ctrl_c.heed()
            return self._answered(self._steps())
        except KeyboardInterrupt:
            self.ctrl_c.heard()
            return self._answered(Ended("interrupted"))
        except ProposalError as error:
            return self._answered(Ended("failed", error=error.message))
        except EngineError as error:
            return self._answered(Ended("error", error=error.message))

    def _steps(self) -> Ended:
        while True:
            ended = self._reached_end() or self._reached_limit()
            if ended is not None:
                return ended
            guard = self.guard
            self._summed_up()
            proposal = self.engine.propose(guard.state, guard.history, self.clock())
            if proposal is None:
                said = None if self._recording else self.listener()
                if not said:
                    return self._nothing_left()
                proposal = Said(said)
            if isinstance(proposal, Said):
                self._written(guard.said, proposal.text)
                continue
            if isinstance(proposal, Limit):
                return Ended("limit", limit=proposal.name, error=guard.state.tree["error"])
            if self._repeated(proposal):
                return Ended("limit", limit="max_repeats")
            waiting = self._step(proposal)
            if waiting is not None:
                return waiting

    def _summed_up(self) -> None:
        line = self.summarise()
        if line is not None:
            self._written(self.guard.summarised, line["first"], line["last"], line["text"], engine=line.get("engine"))

    def _step(self, proposal: Proposal) -> Ended | None:
        verdict = self._check(proposal)
        if verdict.effect == "require_approval" and not verdict.runs and not self._recording:
            answer = self.approver(*self._shown(proposal, verdict))
            if answer is None:
                return Ended("awaiting_approval")
            yes, by = answer
            self._written(self.guard.approve, verdict.step, yes=yes, by=by)
            verdict = self._check(replace(proposal, engine=None))  # nobody was asked for it again
        if not verdict.runs:
            self.first_denial = self.first_denial or verdict.step
            return None
        result = self.runner.run(proposal)
        self._written(self.guard.record, verdict, result, outcome="unknown" if result is None else None)
        return None

    def _check(self, proposal: Proposal) -> Verdict:
        return self._written(
            self.guard.check, proposal.tool, proposal.args, call_id=proposal.call_id, engine=proposal.engine
        )

    def _written(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call the guard; Ctrl-C waits until all is written."""
        self.ctrl_c.hold()
        value = call(*args, **kwargs)
        self.ctrl_c.heed()
        return value

    def _shown(self, proposal: Proposal, verdict: Verdict) -> tuple[Proposal, Verdict]:
        """What a person may see of a call that waits: secrets are masked."""
        shown = self.guard.shown
        return Proposal(proposal.tool, shown(proposal.args)), replace(verdict, reason=shown(verdict.reason))

    @property
    def _recording(self) -> bool:
        return isinstance(self.engine, Recorded)

    def _reached_end(self) -> Ended | None:
        status: Any = self.guard.state.status
        if status == "running" or self._recording:
            return None
        return Ended(status, error=self.guard.state.tree["error"])

    def _reached_limit(self) -> Ended | None:
        """A recording has no limits: what happened, happened."""
        if self._recording:
            return None
        limits: Mapping[str, Any] = self.guard.state.tree["constraints"]
        reached = {
            "max_steps": self.guard.steps,
            "max_denials": self.guard.history.denials_in_a_row,
            "max_seconds": time.monotonic() - self._started,
        }
        defaults = {"max_steps": MAX_STEPS, "max_denials": MAX_DENIALS}
        for name, value in reached.items():
            limit = _limit(limits, name, defaults.get(name))
            if limit is not None and value >= limit:
                return Ended("limit", limit=name, error=self.guard.state.tree["error"])
        return None

    def _repeated(self, proposal: Proposal) -> bool:
        if self._recording:
            return False
        limit = _limit(self.guard.state.tree["constraints"], "max_repeats")
        return limit is not None and self.guard.repeats(proposal) >= limit

    def _nothing_left(self) -> Ended:
        if self._recording:
            return Ended("completed", counterfactual_from=self.first_denial)
        return Ended("failed", error=self.guard.state.tree["error"] or "no next step")

    def _answered(self, ended: Ended) -> Ended:
        if self.responder.by_model and ended.status not in WRITTEN:
            return ended
        try:
            answer = self.responder.answer(self.guard.state, self.guard.history, self.clock())
        except EngineError as error:
            return Ended("error", error=error.message)
        return Ended(ended.status, answer, ended.limit, ended.error, ended.counterfactual_from)


def _limit(limits: Mapping[str, Any], name: str, default: float | None = None) -> float | None:
    """Return a limit; transitions may set one, and to anything."""
    limit = limits.get(name, default)
    if limit is None or (isinstance(limit, (int, float)) and not isinstance(limit, bool)):
        return limit
    raise EngineError(f"the limit {name} is no number: {limit!r}")
