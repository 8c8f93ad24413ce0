"""The state: what every part of a run decides from.

Invariants:
* A `State` never changes. `State.after` makes the next one and copies only along the paths that change.
* Facts live here, the history does not: no entry of the ledger is ever copied into a state.
* Every change is a set of paths (`sets`, `unsets`), so that the ledger's diffs rebuild each state exactly.

Deliberately not here: which changes a result causes (`updater`) and whether a call may run (`enforcer`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import msgspec

from ledgercli import paths
from ledgercli.paths import Path

Status = str
RUNNING = "running"
STATUSES = ("running", "completed", "failed", "halted", "limit", "awaiting_approval", "error", "interrupted")

SUBGOAL = "/"  # between a goal and one that is added below it

#: The parts of a state that stand in `open` and change by diffs; `step` counts by itself.
PARTS = ("task", "facts", "constraints", "flags", "goals", "goal", "status", "error", "final_answer")


class Origin(msgspec.Struct, frozen=True):
    """Who established a value.

    Arguments:
        tool: the tool's name; `task` for initial values, `user` for what a user said.
        args: the arguments of that call.
        step: the step of that call; 0 for initial values.

    """

    tool: str
    args: Mapping[str, Any]
    step: int


FROM_TASK = Origin("task", MappingProxyType({}), 0)


class View(Mapping[str, Any]):
    """A map that can be read but not changed, and so can all that it holds."""

    __slots__ = ("_map",)

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._map = values

    def __getitem__(self, key: str) -> Any:
        return _read_only(self._map[key])

    def __iter__(self) -> Iterator[str]:
        return iter(self._map)

    def __len__(self) -> int:
        return len(self._map)

    def __repr__(self) -> str:
        return repr(dict(self._map))


def _read_only(value: Any) -> Any:
    if isinstance(value, Mapping):
        return View(value)
    return tuple(map(_read_only, value)) if isinstance(value, list) else value


@dataclass(frozen=True, slots=True)
class Goal:
    """One goal of a run.

    Arguments:
        name: how `goals.NAME` and `state.goal` call it.
        goals: the goals that it consists of; it closes with them.
        told: of one that consists of none: whether its `done_when` or a transition says when it is reached.
        later: the goals that transitions may add below it.

    """

    name: str
    goals: tuple[Goal, ...] = ()
    told: bool = False
    later: tuple[Goal, ...] = ()

    def walk(self) -> Iterable[Goal]:
        """Yield this goal and all below it, parents first."""
        yield self
        for goal in self.goals:
            yield from goal.walk()


class State(msgspec.Struct, frozen=True):
    """One version of the state.

    Arguments:
        tree: the values under the names that rules use (`task`, `facts`, …); never changed in place.
        origins: text of the path of a set value → who set it.

    """

    tree: paths.Map
    origins: paths.Map

    def after(
        self,
        sets: Mapping[str, Any],
        unsets: Sequence[str] = (),
        *,
        step: int | None = None,
        origin: Origin | None = None,
    ) -> State:
        """Return the state in which a diff has happened.

        Arguments:
            sets: path → new value.
            unsets: paths that are removed.
            step: the number of steps taken, if it changes.
            origin: who caused the change; kept for the paths that were set.

        Raises:
            PathError: the diff does not fit this state.

        """
        return self.become(paths.patch(dict(self.tree), sets, unsets), sets, step=step, origin=origin)

    def become(
        self, tree: Mapping[str, Any], changed: Iterable[str], *, step: int | None = None, origin: Origin | None = None
    ) -> State:
        """Return the state with the values of `tree`, of which `changed` were set by `origin`."""
        if step is not None:
            tree = {**tree, "step": step}
        origins = self.origins
        if origin is not None:
            for path in changed:
                origins = paths.put(origins, (path,), origin)
        return State(tree, origins)

    def origin(self, path: Path) -> Origin | None:
        """Who established the value at `path`: the latest of those who set it or a part that holds it."""
        known = (self.origins.get(paths.text(path[:length])) for length in range(len(path), 0, -1))
        return max((one for one in known if one is not None), key=lambda one: one.step, default=None)

    @property
    def facts(self) -> Mapping[str, Any]:
        """The facts, read-only down to the last leaf."""
        return View(self.tree["facts"])

    @property
    def status(self) -> Status:
        """`running`, or how the run ended."""
        return str(self.tree["status"])

    @property
    def step(self) -> int:
        """How many steps have been taken."""
        return int(self.tree["step"])

    def opening(self) -> dict[str, Any]:
        """The state as the `open` line of a ledger holds it."""
        return {part: self.tree[part] for part in PARTS}


def initial(  # noqa: PLR0913 - the parts of a state, each by its name
    *,
    task: str = "",
    facts: Mapping[str, Any] | None = None,
    constraints: Mapping[str, Any] | None = None,
    flags: Mapping[str, bool] | None = None,
    goals: Sequence[Goal] = (),
    closed: Mapping[str, bool] | None = None,
) -> State:
    """Make the first state of a run.

    Arguments:
        task: what is to be done, in the user's words.
        facts: what is known from the start; every declared record is there as `{}`.
        constraints: limits and lists that rules read.
        flags: every declared flag; those that are not set are false.
        goals: the goals, in order.
        closed: goals that are done already.

    """
    done = {goal.name: False for top in goals for goal in top.walk()} | dict(closed or {})
    tree: dict[str, Any] = {
        "task": task,
        "facts": dict(facts or {}),
        "constraints": dict(constraints or {}),
        "flags": dict(flags or {}),
        "goals": done,
        "goal": current_goal(goals, done),
        "status": RUNNING,
        "error": None,
        "final_answer": None,
        "step": 0,
    }
    return State(tree, _from_task(tree["facts"]))


def reopened(opening: Mapping[str, Any]) -> State:
    """Return the state that an `open` line holds."""
    tree = {**opening, "step": 0}
    return State(tree, _from_task(tree["facts"]))


def _from_task(facts: Mapping[str, Any]) -> paths.Map:
    return {paths.text(("facts", name)): FROM_TASK for name in facts}


def with_planned(goals: Sequence[Goal], closed: Mapping[str, bool]) -> tuple[Goal, ...]:
    """Return the goals with those that were added, which stand in `closed` alone: `PARENT/NAME` below PARENT."""
    declared = {goal.name for top in goals for goal in top.walk()}
    below: dict[str, list[str]] = {}
    for name in closed:
        if name not in declared:
            parent = name.rpartition(SUBGOAL)[0]
            below.setdefault(parent if parent in closed or parent in declared else "", []).append(name)
    if not below:
        return tuple(goals)

    def grown(goal: Goal) -> Goal:
        known = {one.name: one for one in goal.later}
        added = (grown(known.get(name, Goal(name))) for name in below.get(goal.name, ()))
        return Goal(goal.name, (*map(grown, goal.goals), *added), told=goal.told)

    return (*map(grown, goals), *(grown(Goal(name)) for name in below.get("", ())))


def current_goal(goals: Sequence[Goal], closed: Mapping[str, bool]) -> str:
    """Return the name of the first open leaf, '' if there is none."""
    return _first_open(with_planned(goals, closed), closed)


def _first_open(goals: Sequence[Goal], closed: Mapping[str, bool]) -> str:
    for goal in goals:
        if closed.get(goal.name):
            continue
        if not goal.goals:
            return goal.name
        below = _first_open(goal.goals, closed)
        if below or goal.told:
            return below or goal.name
    return ""


def close_goals(goals: Sequence[Goal], closed: Mapping[str, bool]) -> dict[str, bool]:
    """Return the goals that are closed once parents have closed with their children, and children with their parent.

    What was added below a goal that is `told` never closes it.
    """
    result = dict(closed)
    grown = with_planned(goals, closed)

    def settle(goal: Goal) -> bool:
        if result.get(goal.name):
            result.update(dict.fromkeys((below.name for below in goal.walk()), True))
        elif goal.goals:
            below = [settle(child) for child in goal.goals]  # every child settles, also after an open one
            result[goal.name] = all(below) and not goal.told
        return bool(result.get(goal.name))

    for goal in grown:
        settle(goal)
    return result
