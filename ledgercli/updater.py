"""Turns a result into the next state: result + declared transitions → state and its diff.

Invariants:
* Pure: what a tool returned comes in as a value; nothing is run, read or written.
* All blocks that match apply, each reading the state before; of two that set one path the later wins.
* The diff alone, applied to the state before, gives the state after, exactly.
* What cannot be told changes nothing silently: a `set` value unsets its path, a `when` is false, an `each` is empty,
  and each of them is named among the problems.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from ledgercli import cel, paths
from ledgercli.cel import Program
from ledgercli.documents import Document, Place
from ledgercli.functions import Moment
from ledgercli.history import History
from ledgercli.planning import PlanError, planned
from ledgercli.records import Proposal, Result, Verdict
from ledgercli.scenario import GoalModel
from ledgercli.state import Origin, State, close_goals, current_goal
from ledgercli.transitions import TRUTHS, CompiledBlock, Setting, Transitions
from ledgercli.vocabulary import Vocabulary

ALL_GOALS_CLOSED = "completed"


class Change(msgspec.Struct, frozen=True):
    """A step's effect on the state.

    Arguments:
        state: the state after it.
        sets: path → new value, net: no path is part of another.
        unsets: paths that are gone.
        problems: what could not be told, in words.

    """

    state: State
    sets: Mapping[str, Any]
    unsets: Sequence[str] = ()
    problems: Sequence[str] = ()


@dataclass(slots=True)
class _Draft:
    """The next state in the making."""

    tree: paths.Map
    touched: dict[paths.Path, None] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    removed: bool = False

    def set(self, path: paths.Path, value: Any) -> None:
        """Set a path; what is touched is the first part of it that was not there."""
        top = path
        while len(top) > 2 and paths.get(self.tree, top[:-1]) is paths.ABSENT:  # parts of a state are always there
            top = top[:-1]
        try:
            self.tree = paths.put(self.tree, path, value)
        except paths.PathError as error:
            self.problems.append(error.message)
        else:
            self.touched[top] = None

    def unset(self, path: paths.Path) -> None:
        """Remove a path; one that is not there stays so."""
        if paths.get(self.tree, path) is not paths.ABSENT:
            self.tree = paths.drop(self.tree, path)
            self.touched[path] = None
            self.removed = True

    def net(self, before: paths.Map) -> tuple[dict[str, Any], list[str]]:
        """What was set and removed in the end; a value that was set again stands here too, for it has a new origin."""
        sets: dict[str, Any] = {}
        unsets: list[str] = []
        for path in self.touched:
            if len(self.touched) > 1 and any(path[:length] in self.touched for length in range(1, len(path))):
                continue
            value = paths.get(self.tree, path)
            if value is not paths.ABSENT:
                sets[paths.text(path)] = value
            elif paths.get(before, path) is not paths.ABSENT:
                unsets.append(paths.text(path))
        return sets, unsets


class Updater:
    """The transitions and goals of a run, compiled.

    Arguments:
        vocabulary: the names; problems of transitions are added to its `problems`.
        goals: the scenario's goals with their conditions.
        document: where the goals stand.

    """

    def __init__(
        self, vocabulary: Vocabulary, goals: Sequence[GoalModel] = (), document: Document | None = None
    ) -> None:
        self._vocabulary = vocabulary
        self._goals = vocabulary.goals
        self._transitions = Transitions(vocabulary)
        self._planners = frozenset(name for name, tool in vocabulary.tools.items() if tool.plans)
        self._done: list[tuple[str, Program]] = []
        if document is not None:
            self._compile_goals(goals, document, ("goals",))

    # ---- what happens at a step

    def settles(self, tool: str) -> bool:
        """Whether `fails_when`, or the goals, have a say on what a tool returned."""
        return tool in self._transitions.fails or tool in self._planners

    def settled(self, proposal: Proposal, result: Result, state: State, history: History, now: cel.Timestamp) -> Result:
        """Return the result as `fails_when` sees it, where the tool or toolset has one; a plan must fit the goals."""
        program = self._transitions.fails.get(proposal.tool)
        if program is not None:
            result = self._unless_failed(program, proposal, result, state, history, now)
        if proposal.tool in self._planners:
            try:
                self._planned(proposal, result, state)
            except PlanError as error:
                return Result(success=False, data=None, error=str(error))
        return result

    def _unless_failed(  # noqa: PLR0913 - a step's parts, each by its name
        self,
        program: Program,
        proposal: Proposal,
        result: Result,
        state: State,
        history: History,
        now: cel.Timestamp,
    ) -> Result:
        roots = self._roots(proposal, result, state, now)
        fails = program.holds(roots, Moment(history, state))
        if fails == (not result.success):
            return result
        if not fails:
            return Result(success=True, data=result.data, error=None)
        error = result.data if isinstance(result.data, str) else f"{proposal.tool} failed"
        return Result(success=False, data=result.data, error=error)

    def executed(  # noqa: PLR0913 - a step's parts, each by its name
        self,
        proposal: Proposal,
        result: Result,
        state: State,
        history: History,
        now: cel.Timestamp,
        *,
        step: int,
        latest: int,
    ) -> Change:
        """Return what a call that ran changes.

        Arguments:
            proposal: the call.
            result: what came of it, already settled.
            state: the state that it was recorded in.
            history: the steps before it.
            now: the time of its proposal.
            step: its number.
            latest: the number of the latest step, which the state is at then: parallel calls end out of order.

        """
        draft = _Draft(state.tree)
        error = None if result.success else (result.error or "failed")
        if error != state.tree["error"]:
            draft.set(("error",), error)
        before = State(draft.tree, state.origins)
        if proposal.tool in self._planners:
            for name, closed in self._planned(proposal, result, state).items():
                draft.set(("goals", name), closed)
        roots = self._roots(proposal, result, before, now)
        moment = Moment(history, before)
        for block in self._transitions.blocks.get((proposal.tool, result.success), ()):
            self._apply(block, roots, moment, draft)
        origin = self.origin(proposal, step)
        self._settle_goals(draft, before, history, now)
        return self._change(state, draft, latest, origin)

    def denied(self, proposal: Proposal, verdict: Verdict, state: State, *, step: int, halts: bool) -> Change:
        """Return what a refusal changes: `error` says what was refused and why, a halt ends the run."""
        draft = _Draft(state.tree)
        draft.set(("error",), refusal(proposal.tool, verdict))
        if halts:
            draft.set(("status",), "halted")
        return self._change(state, draft, step, None)

    def _planned(self, proposal: Proposal, result: Result, state: State) -> Mapping[str, bool]:
        """Return what a call of a `plan` tool that succeeded changes in the goals."""
        if not result.success:
            return {}
        args = self._vocabulary.tools[proposal.tool].filled(proposal.args)
        return planned(self._goals, state.tree["goals"], args)

    def _roots(self, proposal: Proposal, result: Result, state: State, now: cel.Timestamp) -> dict[str, Any]:
        tool = self._vocabulary.tools.get(proposal.tool)
        args = tool.filled(proposal.args) if tool else proposal.args
        access, tags = (tool.access, list(tool.tags)) if tool else ("write", [])
        return {
            "state": state.tree,
            "now": now,
            "action": {"tool": proposal.tool, "args": args, "access": access, "tags": tags},
            "result": {"success": result.success, "data": result.data, "error": result.error},
        }

    def origin(self, proposal: Proposal, step: int) -> Origin:
        """Who establishes what a call sets."""
        tool = self._vocabulary.tools.get(proposal.tool)
        return Origin("user" if tool is not None and tool.asks_person else proposal.tool, proposal.args, step)

    def _apply(self, block: CompiledBlock, roots: Mapping[str, Any], moment: Moment, draft: _Draft) -> None:
        for scope in self._scopes(block, roots, moment, draft):
            if block.when is not None and not _true(block.when, scope, moment, draft.problems):
                continue
            for setting in block.settings:
                self._put(setting, scope, moment, draft)
            if block.finish is not None:
                draft.set(("status",), block.finish)

    def _scopes(
        self, block: CompiledBlock, roots: Mapping[str, Any], moment: Moment, draft: _Draft
    ) -> Iterator[Mapping[str, Any]]:
        if block.each is None:
            yield roots
            return
        answer = block.each(roots, moment)
        if not answer.known:
            draft.problems.append(f"each: {_why(answer)}")
        elif isinstance(answer.value, (list, tuple)):
            for item in answer.value:
                yield {**roots, "item": item}
        else:
            draft.problems.append(f"each: {cel.type_name(answer.value)} is no list")

    def _put(self, setting: Setting, roots: Mapping[str, Any], moment: Moment, draft: _Draft) -> None:
        path = setting.fixed or self._path(setting, roots, moment, draft)
        if path is None:
            return
        if setting.value is None:
            draft.unset(path)
            return
        answer = setting.value(roots, moment)
        if answer.known and path[0] in TRUTHS and not isinstance(answer.value, bool):
            answer = cel.Answer(known=False, error=f"{cel.type_name(answer.value)} is neither true nor false")
        if answer.known:
            draft.set(path, answer.value)
        else:
            draft.problems.append(f"{setting.text}: {_why(answer)}")
            draft.unset(path)

    @staticmethod
    def _path(setting: Setting, roots: Mapping[str, Any], moment: Moment, draft: _Draft) -> paths.Path | None:
        """Compute the keys in brackets."""
        path: list[str] = []
        for part in setting.parts:
            if isinstance(part, str):
                path.append(part)
                continue
            answer = part(roots, moment)
            if not answer.known or not isinstance(answer.value, str):
                why = f"a key is text, not {cel.type_name(answer.value)}" if answer.known else _why(answer)
                draft.problems.append(f"{setting.text}: {why}")
                return None
            path.append(answer.value)
        return tuple(path)

    def _settle_goals(self, draft: _Draft, before: State, history: History, now: cel.Timestamp) -> None:
        """Close goals whose condition holds now, parents with their children; all closed means completed."""
        if not self._goals and not draft.tree["goals"]:
            return
        state = State(draft.tree, before.origins)
        roots = {"state": state.tree, "now": now}
        names = (goal.name for top in self._goals for goal in top.walk())
        closed = dict.fromkeys(names, False) | dict(draft.tree["goals"])  # a goal that was unset is open
        for name, done in self._done:
            if not closed[name] and _true(done, roots, Moment(history, state), draft.problems):
                closed[name] = True
        closed = close_goals(self._goals, closed)
        for name, is_closed in closed.items():
            if is_closed and not draft.tree["goals"].get(name):
                draft.set(("goals", name), True)
        current = current_goal(self._goals, closed)
        if current != draft.tree["goal"]:
            draft.set(("goal",), current)
        if self._goals and all(closed[top.name] for top in self._goals) and draft.tree["status"] == "running":
            draft.set(("status",), ALL_GOALS_CLOSED)

    @staticmethod
    def _change(state: State, draft: _Draft, step: int, origin: Origin | None) -> Change:
        sets, unsets = draft.net(state.tree)
        if draft.removed:  # a key that was removed and set again stands where the diff alone would put it
            after = state.after(sets, unsets, step=step, origin=origin)
        else:
            after = state.become(draft.tree, sets, step=step, origin=origin)
        return Change(after, sets, unsets, tuple(draft.problems))

    def _compile_goals(self, goals: Sequence[GoalModel], document: Document, place: Place) -> None:
        vocabulary = self._vocabulary
        for number, goal in enumerate(goals):
            where = (*place, number)
            self._compile_goals(goal.goals, document, (*where, "goals"))
            if goal.done_when is not None:
                env = vocabulary.state_env()
                checked = vocabulary.expression(document, (*where, "done_when"), goal.done_when, env, cel.BOOL)
                if checked is not None:
                    self._done.append((goal.name, cel.compile(checked)))


def refusal(tool: str, verdict: Verdict) -> str:
    """What `state.error` says after a refusal."""
    return f"{tool} was refused: {verdict.reason}"


def _true(program: Program, roots: Mapping[str, Any], moment: Moment, problems: list[str]) -> bool:
    answer = program(roots, moment)
    if not answer.known:
        problems.append(f"{cel.render(program.checked.expr)}: {_why(answer)}")
        return False
    return answer.value is True


def _why(answer: cel.Answer) -> str:
    return f"{', '.join(answer.missing)} not known" if answer.missing else str(answer.error)
