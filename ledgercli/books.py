"""The books of one run: what its lines have come to, and the next line.

Each method that something happens through returns a `Turn`: the line that says so, and what then changes here. Whoever
keeps the file writes the line first and then lets it happen, so that the books never say more than the file. `see`
takes in a line that stands in a ledger already.

Invariants:
* Pure: no file, no clock, no lock. Times come in, lines go out.
* A run that is going on, one that is replayed and one that is taken up again are judged and recorded by this code.
* Steps are numbered in the order of their proposals, over rollbacks and resumptions; nothing is ever numbered twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, Self

import msgspec
from msgspec.structs import replace

from ledgercli import cel, paths
from ledgercli.approvals import Approvals
from ledgercli.errors import LedgerCliError
from ledgercli.history import History, Keeps
from ledgercli.records import (
    Line,
    Outcome,
    Proposal,
    Result,
    Status,
    Verdict,
    approval_line,
    checkpoint_line,
    close_line,
    intent_line,
    resume_line,
    rollback_line,
    step_line,
    summary_line,
)
from ledgercli.rulebook import Rulebook
from ledgercli.state import FROM_TASK, Origin, State, reopened
from ledgercli.toolset import USER
from ledgercli.updater import Change


class Turn(NamedTuple):
    """What happens next: its line, and what it changes in the books once the line is written."""

    line: Line
    then: Callable[[], None]


class Pending(msgspec.Struct, frozen=True):
    """A call that may run and whose outcome is not recorded yet.

    Arguments:
        proposal: the call.
        verdict: what lets it run.
        now: the time that the rules saw.
        write: whether it may have taken effect once it was begun.
        judged: the seq of the line behind which it was judged.

    """

    proposal: Proposal
    verdict: Verdict
    now: cel.Timestamp
    write: bool
    judged: int

    @property
    def interrupted(self) -> Outcome:
        """What an interruption leaves of it: a write may have taken effect, a read has none."""
        return "unknown" if self.write else "cancelled"

    @property
    def untold(self) -> Mapping[str, Any] | None:
        """What asking for it took, unless the intent of a write has said that."""
        return None if self.write else self.proposal.engine


class Books:
    """The books of one run.

    Arguments:
        rules: what judges it.
        state: the state that it begins with.
        recorded: a recording is judged: what happened, happened, so halts and approvals count as denials.
        keeps: what the history keeps; by default what the rules can ask it.
        hidden: masks what must not be written.

    """

    def __init__(
        self,
        rules: Rulebook,
        state: State,
        *,
        recorded: bool = False,
        keeps: Keeps | None = None,
        hidden: Callable[[Any], Any] = lambda value: value,
    ) -> None:
        self.rules = rules
        self.state = state
        self.history = History(str(state.tree["task"]), keeps=keeps or rules.keeps)
        self.recorded = recorded
        self.steps = 0
        self.masked = False  # whether values may be masks: those of a ledger may
        self.seq = 0  # of the latest line; whoever writes or reads the lines keeps it
        self.pending: dict[int, Pending] = {}
        self.approvals = Approvals(hidden)
        self.closed: Mapping[str, Any] | None = None
        self._packs = {pack.name: pack.digest for pack in rules.packs}

    @classmethod
    def opened(cls, rules: Rulebook, record: Mapping[str, Any]) -> Self:
        """Return the books that an `open` line begins."""
        recorded = record["engine"]["kind"] == "recording"
        return cls(rules, reopened(record["state"]), recorded=recorded)

    # ---- what is known

    def filled(self, proposal: Proposal) -> Mapping[str, Any]:
        """Return the arguments of a call with the defaults of its tool."""
        tool = self.rules.toolset.tools.get(proposal.tool)
        return tool.filled(proposal.args) if tool else proposal.args

    def writes(self, tool: str) -> bool:
        """Whether a call may take effect; what is not known may."""
        known = self.rules.toolset.tools.get(tool)
        return known is None or known.access == "write"

    # ---- a step

    def check(
        self, proposal: Proposal, now: cel.Timestamp, at: str, refusal: Verdict | None = None
    ) -> tuple[Verdict, Line | None, Callable[[], None]]:
        """Judge the next call.

        Arguments:
            proposal: the call.
            now: the time that rules see.
            at: the time that its line is written at.
            refusal: the verdict on arguments that cannot be kept, which no rule sees.

        Returns:
            The verdict; the line that it needs (a refusal, or the intent of a write; a read has none until it has
            run); what then changes.

        """
        step = self.steps + 1
        judge = self.rules.enforcer.judge
        verdict = refusal or judge(proposal, self.state, self.history, now, step=step, masked=self.masked)
        if verdict.effect == "require_approval":
            verdict = self.approvals.answered(proposal, verdict)
        pending = Pending(proposal, verdict, now, self.writes(proposal.tool), self.seq)
        if not verdict.runs:
            refused, after, waits = self._refusal(pending, step, at)
            return verdict, refused, lambda: self._refused(pending, step, after, waits=waits)
        line: Line | None = None
        if pending.write:
            line = intent_line(step=step, at=at, now=str(now), action=proposal, verdict=verdict)
        return verdict, line, lambda: self._begun(pending, step)

    def executed(self, step: int, result: Result, at: str, *, settled: bool = False) -> Turn:
        """Record the result of a call that has run.

        Arguments:
            step: the call's number.
            result: what came of it.
            at: the time that its line is written at.
            settled: whether `result` is what `fails_when` has made of it already, as it stands in a line.

        """
        pending = self.pending[step]
        proposal, now, updater = pending.proposal, pending.now, self.rules.updater
        if not settled:
            result = updater.settled(proposal, result, self.state, self.history, now)
        latest = max(step, self.state.step)
        change = updater.executed(proposal, result, self.state, self.history, now, step=step, latest=latest)
        line = step_line(
            step=step,
            at=at,
            now=str(now),
            action=proposal,
            verdict=pending.verdict,
            outcome="ok" if result.success else "error",
            result=result,
            sets=change.sets,
            unsets=change.unsets,
            problems=change.problems,
            judged=self._overtaken(pending),
            engine=pending.untold,
        )
        return Turn(line, lambda: self._ran(step, proposal, result, change.state))

    def left(self, step: int, outcome: Outcome, at: str) -> Turn:
        """Record that a call has no result: it was `cancelled`, or what came of it is `unknown`."""
        pending = self.pending[step]
        line = step_line(
            step=step,
            at=at,
            now=str(pending.now),
            action=pending.proposal,
            verdict=pending.verdict,
            outcome=outcome,
            result=None,
            judged=self._overtaken(pending),
            engine=pending.untold,
        )
        return Turn(line, lambda: self._left(step, pending.proposal, outcome))

    def said(self, text: Any, now: cel.Timestamp, at: str) -> Turn:
        """Record what a user said unasked, as a step of the tool `user`, which is never judged."""
        step, result = self.steps + 1, Result(success=True, data=text)
        action = Proposal(USER, {})
        line = step_line(step=step, at=at, now=str(now), action=action, verdict=None, outcome="ok", result=result)
        return Turn(line, lambda: self._heard(step, text))

    # ---- people

    def answered(self, step: int, *, yes: bool, by: str, reason: str | None, at: str) -> Turn:
        """Record a person's answer on a step that waits.

        Raises:
            LedgerCliError: that step does not wait.

        """
        tied = self.approvals.bound(step)
        line = approval_line(at=at, step=step, yes=yes, by=by, reason=reason, bound=tied)

        def then() -> None:
            self.approvals.answer(step, yes=yes, tied=tied)
            self.closed = None

        return Turn(line, then)

    def rolled_back(self, to: int, then: State, *, by: str | None, reason: str | None, at: str) -> Turn:
        """Record that the state is that of an earlier step, `then`; what ran has run, and the history still counts it.

        Raises:
            LedgerCliError: a call is pending.

        """
        if self.pending:
            raise LedgerCliError(f"step {min(self.pending)} is pending; a rollback must not hide what came of it")
        state = State({**then.tree, "step": self.state.step}, then.origins)
        sets, unsets = paths.diff(self.state.tree, state.tree)
        line = rollback_line(at=at, to=to, by=by, reason=reason, sets=sets, unsets=unsets)
        return Turn(line, lambda: self._back(state))

    def resumed(
        self,
        sets: Mapping[str, Any],
        at: str,
        rules: Rulebook | None = None,
        files: Iterable[Mapping[str, str]] = (),
        engine: Mapping[str, Any] | None = None,
    ) -> Turn:
        """Record that the run goes on.

        Arguments:
            sets: values that somebody gives, by path.
            at: the time that its line is written at.
            rules: what judges from here on, if that changes.
            files: those of them that have changed, as `open` holds files.
            engine: who proposes from here on, if that changes.

        """
        state = self._given(sets)
        line = resume_line(at=at, files=files, sets=sets, engine=engine)
        return Turn(line, lambda: self._on(rules or self.rules, state))

    # ---- lines about the ledger itself

    def checkpoint(self, at: str) -> Line:
        """Return the line that holds all of this, from which a run can start again."""
        origins = [
            {"path": path, "tool": origin.tool, "args": origin.args, "step": origin.step}
            for path, origin in self.state.origins.items()
        ]
        history = self.history.to_json()
        return checkpoint_line(at=at, step=self.steps, state=self.state.opening(), origins=origins, history=history)

    def summarised(
        self, first: int, last: int, text: str | None, at: str, engine: Mapping[str, Any] | None = None
    ) -> Line:
        """Return the line that says what a model made of some steps.

        Raises:
            LedgerCliError: there are no such steps.

        """
        if not 1 <= first <= last <= self.steps:
            raise LedgerCliError(f"there are no steps {first} to {last} to sum up")
        return summary_line(at=at, first=first, last=last, text=text, engine=engine)

    def close(self, status: Status, answer: Any, at: str, **more: Any) -> Turn:
        """Record how the run ended; `more` are `limit`, `error`, `counterfactual_from` where they apply."""
        line = close_line(at=at, status=status, answer=answer, steps=self.steps, **more)

        def then() -> None:
            self.closed = line

        return Turn(line, then)

    # ---- lines that stand already

    def see(self, record: Mapping[str, Any], *, target: State | None = None, rules: Rulebook | None = None) -> None:
        """Take in a line of a ledger as it stands, behind its `open`; nothing is judged again.

        Arguments:
            record: the line.
            target: of a rollback, the state that it leads back to, for the origins of its values.
            rules: of a resumption, what judges from there on; left out where that has not changed.

        """
        match record["kind"]:
            case "intent":
                self._begun(self._pending_of(record), record["step"])
            case "step":
                self._see_step(record)
            case "approval":
                self.approvals.answer(record["step"], yes=record["answer"] == "yes", tied=record["bound"])
                self.closed = None
            case "rollback":
                assert target is not None, "whoever reads a rollback keeps the state that it leads to"
                self._back(State({**target.tree, "step": self.state.step}, target.origins))
            case "resume":
                self._on(rules or self.rules, self._given(record.get("state_diff", {})))
            case "checkpoint":
                self._restore(record)
            case "close":
                self.closed = record
        self.seq = record["seq"]

    def _see_step(self, record: Mapping[str, Any]) -> None:
        step, outcome, proposal = record["step"], record["outcome"], Proposal.from_json(record["action"])
        if record["verdict"] is None:
            self._heard(step, record["result"]["data"])
            return
        pending = self.pending.get(step) or self._pending_of(record)
        if step not in self.pending:
            self._begun(pending, step)
        if outcome in ("cancelled", "unknown"):
            self._left(step, proposal, outcome)
            return
        executed = outcome in ("ok", "error")
        state = self.state.after(
            record.get("state_diff", {}),
            record.get("state_unset", ()),
            step=max(step, self.state.step),
            origin=self.rules.updater.origin(proposal, step) if executed else None,
        )
        if executed:
            self._ran(step, proposal, Result.from_json(record["result"]), state)
        else:
            del self.pending[step]
            self._refused(pending, step, state, waits=outcome == "waiting")

    def _pending_of(self, record: Mapping[str, Any]) -> Pending:
        proposal = Proposal.from_json(record["action"])
        verdict = Verdict.from_json(record["verdict"], record["step"], self._packs)
        now, judged = cel.Timestamp.parse(record["now"]), record.get("judged", self.seq)
        return Pending(proposal, verdict, now, self.writes(proposal.tool), judged)

    def _restore(self, record: Mapping[str, Any]) -> None:
        """Begin where a checkpoint stands, if nothing was seen yet."""
        if self.steps == record["step"] == 0 or self.steps < record["step"]:
            state = reopened(record["state"])
            origins: paths.Map = {}
            for said in record["origins"]:
                origins = paths.put(origins, (said["path"],), Origin(said["tool"], said["args"], said["step"]))
            self.state = State({**state.tree, "step": record["step"]}, origins)
            self.steps = record["step"]
            if record["history"] is not None:
                self.history = History.from_json(record["history"], keeps=self.history.keeps)

    # ---- what changes

    def _begun(self, pending: Pending, step: int) -> None:
        self.pending[step], self.steps = pending, max(step, self.steps)
        if pending.verdict.approval is not None:
            self.approvals.use(pending.verdict)

    def _refusal(self, pending: Pending, step: int, at: str) -> tuple[Line, State, bool]:
        verdict, proposal = pending.verdict, pending.proposal
        waits = verdict.effect == "require_approval" and not self.recorded
        change = Change(self.state.become(self.state.tree, (), step=step), {})
        if not waits:
            halts = verdict.halts and not self.recorded
            change = self.rules.updater.denied(proposal, verdict, self.state, step=step, halts=halts)
        line = step_line(
            step=step,
            at=at,
            now=str(pending.now),
            action=proposal,
            verdict=verdict,
            outcome="waiting" if waits else "denied",
            result=None,
            sets=change.sets,
            unsets=change.unsets,
            engine=proposal.engine,
        )
        return line, change.state, waits

    def _refused(self, pending: Pending, step: int, state: State, *, waits: bool) -> None:
        self.steps = step
        if pending.verdict.approval is not None:
            self.approvals.use(pending.verdict)
        if waits:
            self.approvals.wait(pending.proposal, replace(pending.verdict, step=step))
        else:
            self.history.denied(pending.proposal.tool)
        self.state = state

    def _overtaken(self, pending: Pending) -> int | None:
        """Where a call was judged, if other lines came in between: the intent of a write says it by where it stands."""
        return None if pending.write or pending.judged == self.seq else pending.judged

    def _ran(self, step: int, proposal: Proposal, result: Result, state: State) -> None:
        del self.pending[step]
        self.rules.remember(self.history, proposal, result, step)
        self.state = state

    def _left(self, step: int, proposal: Proposal, outcome: Outcome) -> None:
        del self.pending[step]
        if outcome == "unknown":
            self.history.executed(proposal.tool, self.filled(proposal), "unknown", None, step=step)
        self.state = self.state.become(self.state.tree, (), step=max(step, self.state.step))

    def _heard(self, step: int, text: Any) -> None:
        self.steps = step
        self.history.said(text)
        self.state = self.state.become(self.state.tree, (), step=step)

    def _back(self, state: State) -> None:
        self.closed, self.state = None, state
        self.approvals.forget()

    def _given(self, sets: Mapping[str, Any]) -> State:
        """The state with values that whoever resumes the run gives; they count as known from the start."""
        return self.state.after(sets, origin=FROM_TASK) if sets else self.state

    def _on(self, rules: Rulebook, state: State) -> None:
        self.closed, self.state, self.rules = None, state, rules
        self._packs = {pack.name: pack.digest for pack in rules.packs}
