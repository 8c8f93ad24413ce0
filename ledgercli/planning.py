"""What a call of a `plan` tool asks of the goals: `done` closes one, `push` adds subgoals below the current one.

Invariants:
* Pure: goals come in, what changes in them comes out. The names alone say where an added goal stands: `PARENT/NAME`.
* A goal that something else tells about (`done_when`, a transition) is never closed by saying so, nor is one with an
  open subgoal.
* All of a call happens or nothing of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from ledgercli import cel
from ledgercli.state import SUBGOAL, Goal, close_goals, current_goal, with_planned

LONGEST: Final = 80  # characters of a name
DEEPEST: Final = 8  # goals below one another
MOST: Final = 200  # goals of a run


class PlanError(ValueError):
    """The goals cannot be changed like that; the text says why."""


def planned(goals: Sequence[Goal], closed: Mapping[str, bool], args: Mapping[str, Any]) -> dict[str, bool]:
    """Return what a call changes: name of a goal → whether it is closed.

    Arguments:
        goals: the goals that are declared.
        closed: every goal → whether it is closed.
        args: the arguments of the call, defaults filled in.

    Raises:
        PlanError: the call asks for what cannot be.

    """
    changed: dict[str, bool] = {}
    if args.get("done"):
        changed[_reached(goals, closed, args["done"])] = True
    after = close_goals(goals, {**closed, **changed})
    parent = current_goal(goals, after)
    for name in _names(args.get("push") or []):
        changed[_added(parent, name, {**after, **changed})] = False
    if not changed:
        raise PlanError("it says neither what is done nor what to add")
    return changed


def _names(push: Any) -> list[str]:
    names = [push] if isinstance(push, str) else push
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise PlanError("push is a name or a list of names")
    return names


def _added(parent: str, name: str, known: Mapping[str, bool]) -> str:
    if not name.strip() or SUBGOAL in name or not name.isprintable() or len(name) > LONGEST:
        raise PlanError(f"a goal is named in 1 to {LONGEST} printable characters without {SUBGOAL}")
    whole = f"{parent}{SUBGOAL}{name}" if parent else name
    if whole in known:
        raise PlanError(f"there is a goal {whole} already")
    if whole.count(SUBGOAL) >= DEEPEST or len(known) >= MOST:
        raise PlanError(f"no more than {DEEPEST} goals below one another, and {MOST} in all")
    return whole


def _reached(goals: Sequence[Goal], closed: Mapping[str, bool], name: Any) -> str:
    """Return the goal that a name means: its whole name, or the last part of it where only one open goal has that."""
    every = {goal.name: goal for top in with_planned(goals, closed) for goal in top.walk()}
    still = [one for one in every if not closed.get(one)]
    meant = [name] if name in every else [one for one in still if one.rpartition(SUBGOAL)[2] == name]
    if len(meant) != 1:
        near = meant or cel.nearest(str(name), still) or still
        raise PlanError(f"no open goal {name}; there is {' or '.join(near)}" if near else f"no open goal {name}")
    [whole] = meant
    if closed.get(whole):
        raise PlanError(f"{whole} is done already")
    if every[whole].told:
        raise PlanError(f"{whole} is done once it is reached, not by saying so")
    if first := [below.name for below in every[whole].goals if not closed.get(below.name)]:
        raise PlanError(f"{whole} is done once {' and '.join(first)} {'is' if len(first) == 1 else 'are'}")
    return whole
