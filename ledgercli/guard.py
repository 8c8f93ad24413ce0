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
import contextlib
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from ledgercli import cel
from ledgercli.books import Books, Pending, Turn
from ledgercli.errors import BlockedError, LedgerCliError
from ledgercli.history import EVERYTHING, History
from ledgercli.intake import LONGEST, kept, new_run_id, own, parts_of, present
from ledgercli.ledger import Ledger, LedgerLimitError, Sync
from ledgercli.ledger.holding import Hold
from ledgercli.policy import Pack
from ledgercli.records import (
    Line,
    Outcome,
    Proposal,
    Result,
    Status,
    Verdict,
    open_line,
    timestamp,
)
from ledgercli.redaction import Redactor
from ledgercli.reopening import Reopened, packs_of, refuse_ended, reopen
from ledgercli.results import failed, parse_output
from ledgercli.rulebook import Rulebook
from ledgercli.state import State
from ledgercli.toolset import Toolset

Clock = Callable[[], cel.Timestamp]


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
        checkpoint: after how many steps the whole state is written again, so that a long ledger opens quickly.
        origin: the ledger and step that `state` comes from, for the ledger's first line.
        history: the steps that led to `state` there.
        again: a run to go on with, in place of a new one; `Guard.resume` gives this.
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
        checkpoint: int | None = None,
        origin: Mapping[str, Any] | None = None,
        history: History | None = None,
        again: Reopened | None = None,
        on_line: Callable[[Line], None] | None = None,
    ) -> None:
        self._ledger: Ledger | None = None
        self._hold: Hold | None = None
        if again is not None:
            self.run: str = again.opening["run"]
            self._keep(again.books, clock, on_line, checkpoint, again.rules.toolset)
            self._go_on(again, sync)
            return
        if rulebook is None:
            if toolset is None:
                raise LedgerCliError("a guard needs a toolset")
            rulebook = Rulebook.of(packs, toolset, {} if isinstance(state, State) else parts_of(state), shadow=shadow)
        begins = state if isinstance(state, State) else rulebook.initial_state(**parts_of(state))
        self.run = new_run_id()
        keeps = EVERYTHING if engine is None else None  # a program may ask its history for anything
        self._keep(Books(rulebook, begins, recorded=recorded, keeps=keeps), clock, on_line, checkpoint)
        opening = open_line(
            at=timestamp(),
            run=self.run,
            files=rulebook.files(reference=reference),
            engine=engine or {"kind": "guard"},
            state=begins.opening(),
            mode="shadow" if shadow else "enforce",
            origin=origin,
        )
        if ledger is not None:
            self._ledger = Ledger.create(ledger, opening, sync=sync, make_folder=True)
            self._hold = Hold(ledger)
        self._untold.append(opening)
        if origin is not None:
            self._inherit(history or self.history)
        self._tell()

    @classmethod
    def resume(  # noqa: PLR0913 - the public door: each argument documented below
        cls,
        ledger: str | Path,
        packs: Sequence[str | Path] = (),
        *,
        sets: Mapping[str, Any] | None = None,
        clock: Clock | None = None,
        sync: Sync = "step",
        reference: bool = False,
        checkpoint: int | None = None,
        on_line: Callable[[Line], None] | None = None,
    ) -> Self:
        """Go on with a run after a crash, a limit or an approval, by the files that its ledger carries.

        What was checked and has no outcome is in `pending`: only the program can tell what came of it.

        Arguments:
            ledger: the run's ledger.
            packs: files of packs that take the place of those of the same name, or are added.
            sets: what else changes in the state: path (`facts.x`, `flags.x`, `constraints.x`) → value.
            clock: as for a new guard, and so are those that follow.
            sync: when lines are forced to disk.
            reference: keep digests of changed files, not their text.
            checkpoint: after how many steps the whole state is written again.
            on_line: takes each line once it is written.

        Raises:
            LedgerCliError: the run has ended, its ledger is damaged, or somebody else writes to it.

        """
        again = reopen(ledger, widely=bool(packs))
        try:
            refuse_ended(again)
            again.take(packs_of(again.rules, packs, reference=reference)[0])
            again.put(own(sets or {}))
            again.refuse_masks()
            return cls(again=again, clock=clock, sync=sync, checkpoint=checkpoint, on_line=on_line)
        except BaseException:
            again.hold.release()
            raise

    def _go_on(self, again: Reopened, sync: Sync) -> None:
        """Write down that a run goes on, and with what."""
        turn = again.turn(timestamp())
        self._ledger, self._hold = again.ledger(sync), again.hold
        again.books.masked = False  # what is proposed from here on is no mask
        self._take(turn)
        self._tell()

    def _inherit(self, history: History) -> None:
        """Write down what the run goes on from; a ledger that cannot hold that is taken back."""
        keeps = self._books.history.keeps
        self._books.history = history
        try:
            self._append(self._books.checkpoint(timestamp()))  # of all that is known: later rules may ask for more
            self._books.history = History.from_json(history.to_json(), keeps=keeps)
        except BaseException:
            if self._ledger is not None:
                self._let_go()
                self._ledger.path.unlink(missing_ok=True)
            raise

    def _keep(
        self,
        books: Books,
        clock: Clock | None,
        on_line: Callable[[Line], None] | None,
        checkpoint: int | None,
        toolset: Toolset | None = None,
    ) -> None:
        toolset = toolset or books.rules.toolset
        self._books = books
        self._clock = clock or present
        self._on_line = on_line
        self._untold: list[Line] = []
        self._lock = threading.RLock()
        self._redactor = Redactor(toolset.file.redact, toolset.document.source.text)
        books.approvals.hidden = self._redactor.hidden
        self._checkpoint, self._checkpointed = checkpoint, books.steps

    # ---- what is known

    @property
    def state(self) -> State:
        """The state as it is now."""
        return self._books.state

    @property
    def history(self) -> History:
        """The steps up to now."""
        return self._books.history

    @property
    def steps(self) -> int:
        """How many steps there have been."""
        return self._books.steps

    @property
    def pending(self) -> Mapping[int, Pending]:
        """The calls that may run and whose outcome is not recorded yet, by step; `record` takes their `verdict`."""
        return dict(self._books.pending)

    @property
    def head(self) -> str | None:
        """The digest of the ledger's last line, for keeping elsewhere; None without a ledger."""
        return self._ledger.head if self._ledger else None

    def repeats(self, proposal: Proposal) -> int:
        """How often exactly this call has just been run in a row."""
        return self._books.history.repeats_of_call(proposal.tool, self._books.filled(proposal))

    def shown(self, value: Any) -> Any:
        """Return a value of the state as it may be shown: what `redact:` names is masked, as in the ledger."""
        return self._redactor.hidden(value)

    # ---- the two calls

    def check(
        self,
        tool: str,
        args: Mapping[str, Any],
        *,
        call_id: str | None = None,
        engine: Mapping[str, Any] | None = None,
    ) -> Verdict:
        """Judge a call before it runs.

        Arguments:
            tool: the tool's name.
            args: its arguments, as they were proposed.
            call_id: the engine's own id of the call; only noted.
            engine: what asking a model for it took; only noted.

        Returns:
            The verdict; the call may run if `verdict.runs`, and must be recorded then.

        Raises:
            LedgerCliError: the run has ended, or the ledger cannot be written. The tool must not run.

        """
        with self._lock:
            self._open_for_steps()
            proposal, refusal = kept(tool, args, call_id, self._books.steps + 1, engine)
            if self._redactor.active:  # an answer given elsewhere is bound to the masks
                self._redactor.masked({"kind": "intent", "action": proposal.to_json()})
            verdict, line, then = self._books.check(proposal, self._clock(), timestamp(), refusal)
            if line is not None:
                self._append(line)
            then()
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
            pending = self._books.pending.get(verdict.step)
            if pending is None:
                raise LedgerCliError(f"step {verdict.step} is not waiting for a result")
            if outcome not in (None, "ok", "error", "cancelled", "unknown"):
                raise LedgerCliError(f"{outcome} is no outcome; there is ok, error, cancelled and unknown")
            if outcome in ("cancelled", "unknown"):
                self._take(self._books.left(verdict.step, outcome, timestamp()))
            else:
                try:
                    self._executed(verdict.step, self._read(pending.proposal.tool, result, outcome))
                except LedgerLimitError as error:
                    self._executed(verdict.step, failed(f"the result cannot be kept: {error.message[:LONGEST]}"))
            self._mark()
            self._tell()
            return self.state

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
            self.record(verdict, outcome=self._books.pending[verdict.step].interrupted)

    # ---- people

    def said(self, text: Any) -> State:
        """Write down what a user said unasked, as a step of the tool `user`, which is never judged."""
        with self._lock:
            self._open_for_steps()
            self._take(self._books.said(own(text), self._clock(), timestamp()))
            self._tell()
            return self.state

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
            self._take(self._books.answered(step, yes=yes, by=by, reason=reason, at=timestamp()))
            self._tell()

    # ---- what was made of steps

    def summarised(self, first: int, last: int, text: str | None, *, engine: Mapping[str, Any] | None = None) -> None:
        """Write down what a model made of older steps for the next prompts; no rule reads it.

        Arguments:
            first: the first of the steps.
            last: the last of them.
            text: what it wrote; None where it wrote nothing that can be used.
            engine: what asking for it took.

        Raises:
            LedgerCliError: there are no such steps, or the run has ended.

        """
        with self._lock:
            self._open_for_steps()
            self._append(self._books.summarised(first, last, own(text), timestamp(), engine))
            self._tell()

    # ---- the end

    def close(self, status: Status = "completed", answer: Any = None, **more: Any) -> str | None:
        """Seal the ledger.

        Arguments:
            status: how the run ended.
            answer: the answer, if there is one.
            more: `limit`, `error`, `counterfactual_from`, `engine` where they apply.

        Returns:
            The digest of the last line.

        """
        with self._lock:
            if self._books.closed is None:
                for step, pending in list(self._books.pending.items()):
                    self._take(self._books.left(step, pending.interrupted, timestamp()))
                try:
                    self._take(self._books.close(status, answer, timestamp(), **more))
                except LedgerLimitError as error:
                    why = f"the answer cannot be kept: {error.message}"
                    self._take(self._books.close(status, None, timestamp(), **{**more, "error": why}))
                self._let_go()
                self._tell()
            return self.head

    def _let_go(self) -> None:
        if self._ledger is not None:
            self._ledger.close()
        if self._hold is not None:
            self._hold.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if kind is None:
            status: Any = self.state.status
            self.close("completed" if status == "running" else status, self.state.tree["final_answer"])
        else:
            self.close("interrupted" if not issubclass(kind, Exception) else "error", error=f"{kind.__name__}: {error}")

    # ---- lines

    def _take(self, turn: Turn) -> None:
        """Write what happens, then let it happen."""
        self._append(turn.line)
        turn.then()

    def _executed(self, step: int, result: Result) -> None:
        self._take(self._books.executed(step, result, timestamp()))

    def _mark(self) -> None:
        """Write a checkpoint where one is due and nothing is under way that it would not hold."""
        books = self._books
        due = self._checkpoint is not None and books.steps - self._checkpointed >= self._checkpoint
        due = due and not self._redactor.active  # it would say what was masked only in the lines after it was known
        if due and not books.pending and books.approvals.settled:
            with contextlib.suppress(LedgerLimitError):  # a state that no line holds is read from the diffs
                self._append(books.checkpoint(timestamp()))
            self._checkpointed = books.steps

    def _append(self, line: Line) -> None:
        if self._redactor.active:
            line = self._redactor.masked(line)
        seq = self._books.seq + 1
        if self._ledger is not None:
            seq = self._ledger.append(line).seq
        self._books.seq = seq
        self._untold.append(line)

    def _tell(self) -> None:
        """Hand on the lines of a call once all that belongs to it is noted: who takes them may raise."""
        told, self._untold = self._untold, []
        if self._on_line is not None:
            for line in told:
                self._on_line(line)

    def _open_for_steps(self) -> None:
        if self._books.closed is not None:
            raise LedgerCliError("the run has ended; its ledger is closed")
        if self.state.status != "running" and not self._books.recorded:
            raise LedgerCliError(f"the run has ended: {self.state.status}")

    def _read(self, tool: str, result: Any, outcome: Outcome | None = None) -> Result:
        """Read what a tool returned, as success or failure if the caller says which; what a user said stays so."""
        if not isinstance(result, Result):
            known = self._books.rules.toolset.tools.get(tool)
            said = known is not None and known.asks_person and isinstance(result, str)
            result = Result(success=True, data=result) if said else parse_output(result)
        if outcome == "ok":
            result = Result(success=True, data=result.data)
        elif outcome == "error" and result.success:
            result = failed(f"{tool} failed", result.data)
        return Result(result.success, own(result.data, ("result", "data")), own(result.error, ("result", "error")))


def blocked(tool: str, verdict: Verdict) -> BlockedError:
    """Return the error that says why a call may not run."""
    return BlockedError(f"{tool} was refused: {verdict.reason}", verdict=verdict, fix=verdict.hint)
