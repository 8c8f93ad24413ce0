"""An example: a call with the smallest state and past in which two versions of a pack do not say the same.

Invariants:
* An example can come about: its past is a list of steps that a real history has taken in, never an answer made up for
  a question; arguments fit the tool's schema; what is always there (flags, records, defaults) never is absent.
* Constraints that it does not give are each version's own defaults.
* Immutable; a change gives a new one, or None where it is none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Final, TypeVar

from ledgercli import cel, paths
from ledgercli.diff.packs.pasts import Past, remember, told
from ledgercli.diff.packs.versions import Setting, Version
from ledgercli.history import History
from ledgercli.paths import ABSENT, PathError
from ledgercli.records import Proposal
from ledgercli.state import Origin, State, initial
from ledgercli.why.situations import Change, Question, Situation, leaves, put

NOW: Final = cel.Timestamp.parse("2026-01-05T12:00:00Z")  # a Monday
AT: Final = ("now",)  # the path of the time
T = TypeVar("T")
_REST: Final = frozenset({"task", "error", "final_answer", "goal"})


@dataclass(frozen=True)
class Example:
    """A call, and all that is known.

    Arguments:
        tool: the tool's name.
        args: the arguments.
        facts: what is known.
        flags: flags that are set.
        constraints: limits that are given, in place of the defaults.
        rest: other parts of the state that are not as at the start.
        past: what ran before, in order.
        sources: path of a fact → the tool that established it.
        now: the time.

    """

    tool: str
    args: Mapping[str, Any]
    facts: Mapping[str, Any] = field(default_factory=dict)
    flags: Mapping[str, bool] = field(default_factory=dict)
    constraints: Mapping[str, Any] = field(default_factory=dict)
    rest: Mapping[str, Any] = field(default_factory=dict)
    past: tuple[Past, ...] = ()
    sources: Mapping[str, str] = field(default_factory=dict)
    now: cel.Timestamp = NOW
    _made: dict[Setting, tuple[Situation, Situation]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    _ran: list[History] = field(default_factory=list, init=False, repr=False, compare=False)

    @cached_property
    def size(self) -> tuple[int, int, int]:
        """How much it holds: what is known and has happened, how much of it, the arguments."""
        known = [*leaves(self.facts), *leaves(self.constraints)] if self.facts or self.constraints else []
        parts = sum(leaf not in ({}, []) for _, leaf in known) + len(self.flags) + len(self.rest) + len(self.sources)
        ran = sum(one.times for one in self.past)
        return parts + len(self.past) + (self.now != NOW), ran, len(repr(self.args)) + len(repr(self.facts))

    @cached_property
    def key(self) -> str:
        """What tells it from others."""
        parts = self.args, self.facts, self.flags, self.constraints, self.rest, self.past, self.sources, str(self.now)
        return repr(parts)

    def situations(self, setting: Setting) -> tuple[Situation, Situation]:
        """Return what the two versions judge."""
        known = self._made.get(setting)
        if known is None:
            known = self._made[setting] = self._situation(setting.a), self._situation(setting.b)
        return known

    def _situation(self, version: Version) -> Situation:
        vocabulary = version.vocabulary
        state = initial(
            task=self.rest.get("task", ""),
            facts={**{name: {} for name in vocabulary.records}, **self.facts},
            constraints={**version.defaults, **self.constraints},
            flags={**dict.fromkeys(vocabulary.names("flags"), False), **self.flags},
            goals=vocabulary.goals,
        )
        steps = sum(one.times + one.idle for one in self.past)
        tree = {**state.tree, **self.rest, "step": steps}
        origins: paths.Map = state.origins
        for path, tool in self.sources.items():
            origins = paths.put(origins, (path,), Origin(tool, {}, max(steps, 1)))
        return Situation(Proposal(self.tool, self.args), State(tree, origins), self._history(version), self.now)

    def _history(self, version: Version) -> History:
        """Return what has happened: the same for both versions, which know the same tools."""
        if not self._ran:
            history = History(str(self.rest.get("task", "")))
            args = {**version.vocabulary.tools[self.tool].defaults, **self.args}
            remember(history, self.past, self.tool, args)
            self._ran.append(history)
        return self._ran[0]

    def changed(self, change: Change, version: Version) -> Example | None:
        """Return the example with one value otherwise, as it stands under a version."""
        if isinstance(change.at, Question):
            return self._told(change.at, change.value)
        if change.at == AT:
            return replace(self, now=change.value)
        root, part, *below = (*change.at, "")[:2] + tuple(change.at[2:])
        try:
            if root == "action" and part == "args" and below:
                return replace(self, args=put(self.args, tuple(below), change.value))
            return self._in_state(str(part), tuple(below), change.value, version) if root == "state" else None
        except PathError:
            return None

    def _in_state(self, part: str, below: tuple[Any, ...], value: Any, version: Version) -> Example | None:
        if part in _REST and not below:
            left = {name: one for name, one in self.rest.items() if name != part}
            return replace(self, rest=left if value is ABSENT else {**left, part: value})
        if not below:
            return None
        name = str(below[0])
        if part == "flags":
            left = {flag: True for flag in self.flags if flag != name}
            return replace(self, flags={**left, name: True} if value is True else left)
        if part == "constraints":
            return self._constraint(name, below, value, version)
        if part != "facts" or (value is ABSENT and len(below) == 1 and name not in self.facts):
            return None
        facts = put(self.facts, below, value)
        return replace(self, facts=facts, sources={p: t for p, t in self.sources.items() if _there(facts, p)})

    def _constraint(self, name: str, below: tuple[Any, ...], value: Any, version: Version) -> Example | None:
        if value is ABSENT:
            if len(below) > 1 or name not in self.constraints:
                return None
            return replace(self, constraints={n: v for n, v in self.constraints.items() if n != name})
        known = self.constraints.get(name, version.defaults.get(name, {}))
        return replace(self, constraints={**self.constraints, **put({name: known}, below, value)})

    def _told(self, question: Question, value: Any) -> Example | None:
        if question.function == "source":
            path = tuple(question.args[0])
            if path[:2] != ("state", "facts") or not isinstance(value, Mapping):
                return None
            where = paths.text(path[1:])
            if value["tool"] == "task":
                return replace(self, sources={p: t for p, t in self.sources.items() if p != where})
            return replace(self, sources={**self.sources, where: str(value["tool"])})
        if question.function == "from_task":
            words = " ".join(str(leaf) for _, leaf in leaves(value_of(question)) if leaf is not None)
            task = f"{self.rest.get('task', '')} {words}".strip() if value is True else ""
            left = {name: one for name, one in self.rest.items() if name != "task"}
            return replace(self, rest={**left, "task": task} if task else left)
        past = told(self.past, question, value)
        return None if past is None else replace(self, past=past)

    # ---- what can be left out

    def smaller(self, plain: Mapping[str, Any]) -> Iterator[Example]:
        """Yield the example with one thing less, the largest first; `plain` are arguments as plain as can be."""
        for name in self.facts:
            yield self._without_fact((name,))
        for number, one in enumerate(self.past):
            rest = (*self.past[:number], *self.past[number + 1 :])
            yield replace(self, past=rest)
            for less in one.smaller():
                yield replace(self, past=(*self.past[:number], less, *self.past[number + 1 :]))
        yield from (replace(self, flags=less) for less in _less(self.flags))
        yield from (replace(self, constraints=less) for less in _less(self.constraints))
        yield from (replace(self, rest=less) for less in _less(self.rest))
        yield from (replace(self, sources=less) for less in _less(self.sources))
        if self.now != NOW:
            yield replace(self, now=NOW)
        yield from self._smaller_facts()
        yield from self._smaller_args(plain)

    def _without_fact(self, path: paths.Path) -> Example:
        facts = put(self.facts, path, ABSENT)
        return replace(self, facts=facts, sources={p: t for p, t in self.sources.items() if _there(facts, p)})

    def _smaller_facts(self) -> Iterator[Example]:
        for path in _inner(self.facts):
            yield self._without_fact(path)
        for path, leaf in leaves(self.facts):
            for plainer in _plainer(leaf):
                yield replace(self, facts=put(self.facts, path, plainer))

    def _smaller_args(self, plain: Mapping[str, Any]) -> Iterator[Example]:
        for name, value in self.args.items():
            if name not in plain:
                yield replace(self, args={n: v for n, v in self.args.items() if n != name})
            elif not paths.same(value, plain[name]):
                yield replace(self, args={**self.args, name: plain[name]})
        for path in _inner(self.args):
            if len(path) > 1:
                yield replace(self, args=put(self.args, path, ABSENT))


def value_of(question: Question) -> Any:
    """What a question about grounding is about."""
    return question.args[0] if question.args else ""


def _less(known: Mapping[str, T]) -> Iterator[dict[str, T]]:
    """Yield a map without each of its entries."""
    yield from ({name: value for name, value in known.items() if name != left} for left in known)


def _plainer(leaf: Any) -> Iterator[Any]:
    """Yield plainer values: whole numbers before others."""
    if isinstance(leaf, float) and leaf == int(leaf) and abs(leaf) < 2**53:
        yield int(leaf)


def _inner(tree: Any, path: paths.Path = ()) -> Iterator[paths.Path]:
    """Yield the paths of all parts of a tree below the first, the outer first."""
    items = tree.items() if isinstance(tree, Mapping) else enumerate(tree) if isinstance(tree, (list, tuple)) else ()
    for key, item in items:
        here = (*path, key)
        if path:
            yield here
        yield from _inner(item, here)


def _there(facts: Mapping[str, Any], text: str) -> bool:
    return paths.get({"facts": facts}, paths.parse(text)) is not ABSENT
