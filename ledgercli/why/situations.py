"""What a proposal is judged in, and the same with some values otherwise.

Invariants:
* Pure: a changed situation is a new one; the first stays as it was.
* A verdict is the enforcer's own. A question to the history that is answered otherwise is answered so by a stand-in
  for the history; every other question goes to the history itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Final

from ledgercli import cel, paths
from ledgercli.enforcer import Enforcer
from ledgercli.functions import Moment
from ledgercli.history import History, freeze
from ledgercli.paths import ABSENT, Path
from ledgercli.records import Proposal, Verdict, lets_run
from ledgercli.redaction import is_mask
from ledgercli.rules import ToolPlan
from ledgercli.state import Origin, State
from ledgercli.why.reads import SOURCE, Place, Question, Read, read
from ledgercli.wide import with_entry, without_entry

__all__ = ["SOURCE", "Change", "Place", "Question", "Read", "Situation", "at", "begins", "leaves", "put", "read"]

_METHODS: Final[Mapping[str, str]] = {"last_result": "last", "last_args": "last"}  # of the history, by function
_OF_CALLS: Final = frozenset({"repeats_of_call", "confirmed"})


@dataclass(frozen=True)
class Change:
    """One value that is otherwise.

    Arguments:
        at: where: `("action", "args", …)`, `("state", …)`, or a question to the history.
        value: what is there, or answered; `ABSENT`: nothing.

    """

    at: Path | Question
    value: Any

    @property
    def name(self) -> str:
        """The path or the question as it is typed in a rule."""
        return self.at.text if isinstance(self.at, Question) else cel.path_text(self.at)

    @cached_property
    def place(self) -> Place:
        """What tells the path or the question from others."""
        return self.at.key if isinstance(self.at, Question) else self.at

    @cached_property
    def key(self) -> Any:
        """What tells it from other changes."""
        return self.place, repr(self.value)

    def overlaps(self, other: Change) -> bool:
        """Whether both change the same value, or one a part of what the other changes."""
        if isinstance(self.at, Question) or isinstance(other.at, Question):
            return isinstance(self.at, Question) and isinstance(other.at, Question) and self.at.key == other.at.key
        return begins(self.at, other.at) or begins(other.at, self.at)

    def touches(self, read: Read) -> bool:
        """Whether what was read may be another with it."""
        if isinstance(self.at, Question):
            return isinstance(read.at, Question) and read.at.key == self.at.key
        path = read.path
        return bool(path) and (begins(self.at, path) or begins(path, self.at))


@dataclass(frozen=True)
class Situation:
    """A call with all that judging it depends on.

    Arguments:
        proposal: the call.
        state: what is known.
        history: the steps up to then.
        now: the time.
        answers: questions to the history that are answered otherwise, by function and arguments.

    """

    proposal: Proposal
    state: State
    history: History
    now: cel.Timestamp
    answers: Mapping[Any, Any] = field(default_factory=dict)

    def judged(self, enforcer: Enforcer, *, step: int = 0) -> Verdict:
        """Return the enforcer's verdict."""
        return enforcer.judge(self.proposal, self.state, self._answering(), self.now, step=step, masked=True)

    def passes(self, enforcer: Enforcer) -> bool:
        """Whether the enforcer lets the call run."""
        return lets_run(self.judged(enforcer).effect, None)

    def roots(self, plan: ToolPlan) -> dict[str, Any]:
        """Return what the rules of a tool see."""
        args = {**plan.defaults, **self.proposal.args}
        action = {"tool": plan.tool, "args": args, "access": plan.access, "tags": plan.tags}
        return {"state": self.state.tree, "action": action, "now": self.now}

    def moment(self) -> Moment:
        """Return what the functions over past steps ask."""
        return Moment(self._answering(), self.state)

    def changed(self, *changes: Change) -> Situation:
        """Return the situation in which values are otherwise.

        Raises:
            PathError: there is no such place.

        """
        made = self
        for change in changes:
            made = made._with(change)
        return made

    def value(self, path: Path) -> Any:
        """Return what is at a path; `ABSENT` if nothing is."""
        if path[:2] == ("action", "args"):
            return at(self.proposal.args, path[2:])
        return at(self.state.tree, path[1:]) if path[:1] == ("state",) else ABSENT

    def _with(self, change: Change) -> Situation:
        if isinstance(change.at, Question):
            return self._answered(change.at, change.value)
        root, *rest = change.at
        if root == "action" and len(rest) > 1:
            proposal = self.proposal
            args = put(proposal.args, tuple(rest[1:]), change.value)
            return replace(self, proposal=Proposal(proposal.tool, args, proposal.call_id))
        if root != "state" or not rest:
            raise paths.PathError(f"{change.name} cannot be changed")
        tree = put(self.state.tree, tuple(rest), change.value)
        return replace(self, state=State(tree, self.state.origins))

    def _answered(self, question: Question, value: Any) -> Situation:
        if question.function == SOURCE:
            where = paths.text(tuple(question.args[0][1:]))
            step = max((one.step for one in self.state.origins.values()), default=0)
            origins = paths.put(self.state.origins, (where,), Origin(value["tool"], value["args"], step))
            return replace(self, state=State(self.state.tree, origins))
        return replace(self, answers={**self.answers, question.key: (question, value)})

    def _answering(self) -> Any:
        return _Answering(self.history, self.answers) if self.answers else self.history


class _Answering:
    """A history that answers some questions otherwise."""

    def __init__(self, history: History, answers: Mapping[Any, tuple[Question, Any]]) -> None:
        self._history = history
        self._answers: dict[Any, list[tuple[str, Any]]] = {}
        for question, value in answers.values():
            name, asked = _asked(question)
            self._answers.setdefault((name, asked), []).append((question.function, value))

    def __getattr__(self, name: str) -> Any:
        ask = getattr(self._history, name)

        def answer(*args: Any) -> Any:
            asked = args[:1] if name == "steps_since" else args
            told = self._answers.get((name, freeze(list(asked))))
            if told is None and name in _OF_CALLS:
                told = self._answers.get((name, None))
            if told is None:
                return ask(*args)
            return _last(ask(*args), told) if name == "last" else told[0][1]

        return answer if callable(ask) else ask


def _asked(question: Question) -> tuple[str, Any]:
    """The method of a history that answers a question, and what it is asked; None: the call that is proposed."""
    name, args = _METHODS.get(question.function, question.function), question.args
    if question.whole or (args and isinstance(args[0], Mapping) and name in ("repeats", "confirmed")):
        name = "repeats_of_call" if name == "repeats" else name
        return name, None if question.whole else freeze([args[0].get("tool"), args[0].get("args")])
    return name, freeze(list(args))


def _last(known: Any, told: list[tuple[str, Any]]) -> tuple[Any, Any]:
    """The arguments and the result of a last call, of which one or both are otherwise."""
    args, result = known or ({}, None)
    for function, value in told:
        args, result = (value, result) if function == "last_args" else (args, value)
    return args, result


# Values


def begins(path: Path, other: Path) -> bool:
    """Whether `path` leads to `other`, or is it."""
    return path == other[: len(path)]


def at(tree: Any, path: Path) -> Any:
    """Return what is at a path of maps and lists; `ABSENT` if nothing is."""
    for key in path:
        if isinstance(tree, Mapping):
            tree = tree.get(key, ABSENT)
        elif isinstance(tree, (list, tuple)) and type(key) is int and 0 <= key < len(tree):
            tree = tree[key]
        else:
            return ABSENT
        if tree is ABSENT:
            return ABSENT
    return tree


def put(tree: Any, path: Path, value: Any) -> Any:
    """Return a tree in which a path has a value (`ABSENT`: nothing), elements of lists too; missing maps are made.

    Raises:
        PathError: something on the way is neither a map nor a list that is long enough.

    """
    key, rest = path[0], path[1:]
    if isinstance(tree, (list, tuple)) and type(key) is int and 0 <= key < len(tree):
        below = put(tree[key], rest, value) if rest else value
        return [*tree[:key], *([] if below is ABSENT else [below]), *tree[key + 1 :]]
    if not isinstance(tree, Mapping) or type(key) is not str:
        raise paths.PathError(f"{key} is no place here")
    below = put(tree.get(key, {}), rest, value) if rest else value
    if below is ABSENT:
        return without_entry(tree, key) if key in tree else tree
    return with_entry(tree, key, below) if isinstance(tree, paths.Wide) else {**tree, key: below}


def leaves(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Yield the leaves of a value with their paths; empty maps and lists are leaves."""
    if isinstance(value, Mapping) and value and not is_mask(value):
        for key, item in value.items():
            yield from leaves(item, (*path, key))
    elif isinstance(value, (list, tuple)) and value:
        for number, item in enumerate(value):
            yield from leaves(item, (*path, number))
    else:
        yield path, value
