"""The waist: `check` a proposal before it runs, `record` what came of it. The loop and every adapter go through here.

Invariants:
* If `check` raises, the tool must not run.
* A denial, and the intent of a write, are on disk before `check` returns; a result before `record` does.
* What comes in is copied: no caller and no tool can change an argument, a result or a fact afterwards.
* Steps are told apart by the verdict's `step`, never by a framework's call id: those repeat.
* Thread-safe: calls may be judged and recorded in parallel; diffs apply in the order of the lines.
* No framework is imported here.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec

from ledgercli import cel
from ledgercli.approvals import Approvals
from ledgercli.errors import BlockedError, LedgerCliError
from ledgercli.history import History
from ledgercli.intake import LONGEST, kept, new_run_id, own, parts_of, present
from ledgercli.ledger import Ledger, LedgerLimitError, Sync
from ledgercli.policy import Pack
from ledgercli.records import (
    Line,
    Outcome,
    Proposal,
    Result,
    Status,
    Verdict,
    approval_line,
    close_line,
    intent_line,
    open_line,
    step_line,
    timestamp,
)
from ledgercli.redaction import Redactor
from ledgercli.results import failed, parse_output
from ledgercli.rulebook import Rulebook
from ledgercli.state import State
from ledgercli.toolset import USER, Toolset
from ledgercli.updater import Change

Clock = Callable[[], cel.Timestamp]


class _Pending(msgspec.Struct, frozen=True):
    """A call that may run and has not been recorded yet."""

    proposal: Proposal
    verdict: Verdict
    now: cel.Timestamp
    write: bool


class Guard:
    """Keeps books on the tool calls of one run, under policy.

    Arguments:
        packs: packs, or paths of them; those that they include are added.
        toolset: a toolset, or the path of one.
        state: what is known from the start: a state, or its parts (`facts`, `constraints`, …) by name.
        ledger: where to write; a path that must not exist, or None to keep no books.
        rulebook: all of the above but the ledger, compiled beforehand; the loop gives this.
        shadow: let every call run; what would have refused it stands in the verdict's `shadowed`.
        clock: tells the time of each proposal.
        engine: what proposes, for the ledger's first line.
        sync: when lines are forced to disk: `step`, `close` or `none`.
        reference: keep digests of the files in the ledger, not their text.
        recorded: a recording is judged: what happened, happened, so halts and approvals count as denials.
        on_line: takes each line once it is written.

    Raises:
        InvalidDocumentError: a pack or toolset does not load.
        OutputExistsError: the ledger is there already.

    """

    def __init__(  # noqa: PLR0913 - the public door: each argument documented above
        self,
        packs: Sequence[Pack | str | Path] = (),
        toolset: Toolset | str | Path | None = None,
        state: State | Mapping[str, Any] | None = None,
        ledger: str | Path | None = None,
        *,
        rulebook: Rulebook | None = None,
        shadow: bool = False,
        clock: Clock | None = None,
        engine: Mapping[str, Any] | None = None,
        sync: Sync = "step",
        reference: bool = False,
        recorded: bool = False,
        on_line: Callable[[Line], None] | None = None,
    ) -> None:
        if rulebook is None:
            if toolset is None:
                raise LedgerCliError("a guard needs a toolset")
            rulebook = Rulebook.of(packs, toolset, {} if isinstance(state, State) else parts_of(state), shadow=shadow)
        self._rules = rulebook
        self._state = state if isinstance(state, State) else rulebook.initial_state(**parts_of(state))
        self._history = History(str(self._state.tree["task"]))
        self._clock = clock or present
        self._recorded = recorded
        self._on_line = on_line
        self._untold: list[Line] = []
        self._lock = threading.RLock()
        self._steps = 0
        self._pending: dict[int, _Pending] = {}
        self._closed = False
        self.run = new_run_id()
        self._redactor = Redactor(rulebook.toolset.file.redact, rulebook.toolset.document.source.text)
        self._approvals = Approvals(self._redactor.hidden)
        self._ledger: Ledger | None = None
        opening = self._opening(engine, shadow, reference)
        if ledger is not None:
            self._ledger = Ledger.create(ledger, opening, sync=sync, make_folder=True)
        self._untold.append(opening)
        self._tell()

    # ---- what is known

    @property
    def state(self) -> State:
        """The state as it is now."""
        return self._state

    @property
    def history(self) -> History:
        """The steps up to now."""
        return self._history

    @property
    def steps(self) -> int:
        """How many steps there have been."""
        return self._steps

    @property
    def head(self) -> str | None:
        """The digest of the ledger's last line, for keeping elsewhere; None without a ledger."""
        return self._ledger.head if self._ledger else None

    def repeats(self, proposal: Proposal) -> int:
        """How often exactly this call has just been run in a row."""
        return self._history.repeats_of_call(proposal.tool, self._filled(proposal))

    def shown(self, value: Any) -> Any:
        """Return a value of the state as it may be shown: what `redact:` names is masked, as in the ledger."""
        return self._redactor.hidden(value)

    # ---- the two calls

    def check(self, tool: str, args: Mapping[str, Any], *, call_id: str | None = None) -> Verdict:
        """Judge a call before it runs.

        Arguments:
            tool: the tool's name.
            args: its arguments, as they were proposed.
            call_id: the engine's own id of the call; only noted.

        Returns:
            The verdict; the call may run if `verdict.runs`, and must be recorded then.

        Raises:
            LedgerCliError: the run has ended, or the ledger cannot be written. The tool must not run.

        """
        with self._lock:
            self._open_for_steps()
            now, step = self._clock(), self._steps + 1
            proposal, refusal = kept(tool, args, call_id, step)
            verdict = refusal or self._rules.enforcer.judge(proposal, self._state, self._history, now, step=step)
            if verdict.effect == "require_approval":
                verdict = self._approvals.used(proposal, verdict)
            known = self._rules.toolset.tools.get(proposal.tool)
            pending = _Pending(proposal, verdict, now, write=known is None or known.access == "write")
            if verdict.runs:
                if pending.write:
                    self._append(intent_line(step=step, at=self._at(), now=str(now), action=proposal, verdict=verdict))
                self._pending[step], self._steps = pending, step
            else:
                self._refuse(pending, step)
            self._tell()
            return verdict

    def record(self, verdict: Verdict, result: Any = None, *, outcome: Outcome | None = None) -> State:
        """Write down what came of a call, and apply its transition.

        Arguments:
            verdict: what `check` returned for it.
            result: a `Result`, or what the tool returned; what is a failure is read from it.
            outcome: `ok` or `error` where the caller knows better than the result; `cancelled` or `unknown` where
                there is no result: no transition runs then.

        Returns:
            The state after it.

        Raises:
            LedgerCliError: the call was not checked, or was recorded already, or the ledger cannot be written.

        """
        with self._lock:
            pending = self._pending.get(verdict.step)
            if pending is None:
                raise LedgerCliError(f"step {verdict.step} is not waiting for a result")
            if outcome not in (None, "ok", "error", "cancelled", "unknown"):
                raise LedgerCliError(f"{outcome} is no outcome; there is ok, error, cancelled and unknown")
            if outcome in ("cancelled", "unknown"):
                self._without_result(pending, verdict.step, outcome)
            else:
                try:
                    self._with_result(pending, verdict.step, self._read(pending.proposal.tool, result, outcome))
                except LedgerLimitError as error:
                    why = f"the result cannot be kept: {error.message[:LONGEST]}"
                    self._with_result(pending, verdict.step, failed(why))
            self._tell()
            return self._state

    def invoke(self, tool: str, args: Mapping[str, Any], function: Callable[..., Any]) -> Any:
        """Check a call, run `function(**args)` and record what came of it.

        Returns:
            What the function returned.

        Raises:
            BlockedError: the verdict does not let it run; its `verdict` says why.
            Exception: whatever the function raised, once it is recorded.

        """
        verdict = self.check(tool, args)
        if not verdict.runs:
            raise blocked(tool, verdict)
        try:
            value = function(**args)
        except BaseException as error:
            self._raised(verdict, error)
            raise
        self.record(verdict, value)
        return value

    async def acheck(self, tool: str, args: Mapping[str, Any], *, call_id: str | None = None) -> Verdict:
        """Do as `check`, off the event loop, since it waits for the disk."""
        return await asyncio.to_thread(self.check, tool, args, call_id=call_id)

    async def arecord(self, verdict: Verdict, result: Any = None, *, outcome: Outcome | None = None) -> State:
        """Do as `record`, off the event loop."""
        return await asyncio.to_thread(self.record, verdict, result, outcome=outcome)

    async def ainvoke(self, tool: str, args: Mapping[str, Any], function: Callable[..., Awaitable[Any]]) -> Any:
        """Do as `invoke`, for a function that is awaited."""
        verdict = await self.acheck(tool, args)
        if not verdict.runs:
            raise blocked(tool, verdict)
        try:
            value = await function(**args)
        except BaseException as error:
            self._raised(verdict, error)  # not awaited: a cancelled task may not wait any more
            raise
        await self.arecord(verdict, value)
        return value

    def _raised(self, verdict: Verdict, error: BaseException) -> None:
        """A function that was interrupted may have taken effect if it writes; a read has not."""
        if isinstance(error, Exception):
            self.record(verdict, failed(f"{type(error).__name__}: {error}"))
        else:
            self.record(verdict, outcome=_left(self._pending[verdict.step]))

    # ---- people

    def said(self, text: Any) -> State:
        """Write down what a user said unasked, as a step of the tool `user`, which is never judged."""
        with self._lock:
            self._open_for_steps()
            step, now = self._steps + 1, self._clock()
            line = step_line(
                step=step,
                at=self._at(),
                now=str(now),
                action=Proposal(USER, {}),
                verdict=None,
                outcome="ok",
                result=Result(success=True, data=own(text)),
            )
            self._append(line)
            self._steps = step
            self._history.said(text)
            self._state = self._state.become(self._state.tree, (), step=step)
            self._tell()
            return self._state

    def approve(self, step: int, *, yes: bool, by: str, reason: str | None = None) -> None:
        """Answer a step that waits for an approval; the call must be proposed again, and is judged again.

        Arguments:
            step: the step that waits.
            yes: whether the call may run.
            by: who says so.
            reason: why.

        Raises:
            LedgerCliError: that step does not wait, or the run has ended.

        """
        with self._lock:
            self._open_for_steps()
            tied = self._approvals.bound(step)
            self._append(approval_line(at=self._at(), step=step, yes=yes, by=by, reason=reason, bound=tied))
            self._approvals.answer(step, yes=yes)
            self._tell()

    # ---- the end

    def close(self, status: Status = "completed", answer: Any = None, **more: Any) -> str | None:
        """Seal the ledger.

        Arguments:
            status: how the run ended.
            answer: the answer, if there is one.
            more: `limit`, `error`, `counterfactual_from` where they apply.

        Returns:
            The digest of the last line.

        """
        with self._lock:
            if not self._closed:
                for step, pending in list(self._pending.items()):
                    self._without_result(pending, step, _left(pending))
                line = close_line(at=self._at(), status=status, answer=answer, steps=self._steps, **more)
                try:
                    self._append(line)
                except LedgerLimitError as error:
                    self._append({**line, "answer": None, "error": f"the answer cannot be kept: {error.message}"})
                self._closed = True
                if self._ledger:
                    self._ledger.close()
                self._tell()
            return self.head

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if kind is None:
            status: Any = self._state.status
            self.close("completed" if status == "running" else status, self._state.tree["final_answer"])
        else:
            self.close("interrupted" if not issubclass(kind, Exception) else "error", error=f"{kind.__name__}: {error}")

    # ---- lines

    def _opening(self, engine: Mapping[str, Any] | None, shadow: bool, reference: bool) -> Line:  # noqa: FBT001
        return open_line(
            at=timestamp(),
            run=self.run,
            files=self._rules.files(reference=reference),
            engine=engine or {"kind": "guard"},
            state=self._state.opening(),
            mode="shadow" if shadow else "enforce",
        )

    def _at(self) -> str:
        return timestamp()

    def _append(self, line: Line) -> None:
        if self._redactor.active:
            line = self._redactor.masked(line)
        if self._ledger is not None:
            self._ledger.append(line)
        self._untold.append(line)

    def _tell(self) -> None:
        """Hand on the lines of a call once all that belongs to it is noted: who takes them may raise."""
        told, self._untold = self._untold, []
        if self._on_line is not None:
            for line in told:
                self._on_line(line)

    def _open_for_steps(self) -> None:
        if self._closed:
            raise LedgerCliError("the run has ended; its ledger is closed")
        if self._state.status != "running" and not self._recorded:
            raise LedgerCliError(f"the run has ended: {self._state.status}")

    def _read(self, tool: str, result: Any, outcome: Outcome | None = None) -> Result:
        """Read what a tool returned, as success or failure if the caller says which; what a user said stays so."""
        if not isinstance(result, Result):
            known = self._rules.toolset.tools.get(tool)
            said = known is not None and known.asks_person and isinstance(result, str)
            result = Result(success=True, data=result) if said else parse_output(result)
        if outcome == "ok":
            result = Result(success=True, data=result.data)
        elif outcome == "error" and result.success:
            result = failed(f"{tool} failed", result.data)
        return Result(result.success, own(result.data, ("result", "data")), own(result.error, ("result", "error")))

    def _refuse(self, pending: _Pending, step: int) -> None:
        verdict, proposal = pending.verdict, pending.proposal
        waits = verdict.effect == "require_approval" and not self._recorded
        change = Change(self._state.become(self._state.tree, (), step=step), {})
        if not waits:
            halts = verdict.halts and not self._recorded
            change = self._rules.updater.denied(proposal, verdict, self._state, step=step, halts=halts)
        self._append(
            step_line(
                step=step,
                at=self._at(),
                now=str(pending.now),
                action=proposal,
                verdict=verdict,
                outcome="waiting" if waits else "denied",
                result=None,
                sets=change.sets,
                unsets=change.unsets,
            )
        )
        self._steps = step
        if waits:
            self._approvals.wait(proposal, verdict)
        else:
            self._history.denied(proposal.tool)
        self._state = change.state

    def _without_result(self, pending: _Pending, step: int, outcome: Outcome) -> None:
        self._append(
            step_line(
                step=step,
                at=self._at(),
                now=str(pending.now),
                action=pending.proposal,
                verdict=pending.verdict,
                outcome=outcome,
                result=None,
            )
        )
        del self._pending[step]
        if outcome == "unknown":
            self._history.executed(pending.proposal.tool, self._filled(pending.proposal), "unknown", None, step=step)
        self._state = self._state.become(self._state.tree, (), step=max(step, self._state.step))

    def _with_result(self, pending: _Pending, step: int, result: Result) -> None:
        proposal, updater = pending.proposal, self._rules.updater
        settled = updater.settled(proposal, result, self._state, self._history, pending.now)
        latest = max(step, self._state.step)
        change = updater.executed(proposal, settled, self._state, self._history, pending.now, step=step, latest=latest)
        self._append(
            step_line(
                step=step,
                at=self._at(),
                now=str(pending.now),
                action=proposal,
                verdict=pending.verdict,
                outcome="ok" if settled.success else "error",
                result=settled,
                sets=change.sets,
                unsets=change.unsets,
                problems=change.problems,
            )
        )
        del self._pending[step]
        self._rules.remember(self._history, proposal, settled, step)
        self._state = change.state

    def _filled(self, proposal: Proposal) -> Mapping[str, Any]:
        tool = self._rules.toolset.tools.get(proposal.tool)
        return tool.filled(proposal.args) if tool else proposal.args


def _left(pending: _Pending) -> Outcome:
    """What an interruption leaves of a call: a write may have taken effect, a read has none."""
    return "unknown" if pending.write else "cancelled"


def blocked(tool: str, verdict: Verdict) -> BlockedError:
    """Return the error that says why a call may not run."""
    return BlockedError(f"{tool} was refused: {verdict.reason}", verdict=verdict, fix=verdict.hint)
