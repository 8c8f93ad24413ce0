"""What a case must hold so that a step is judged as it was, and nothing beside it.

Invariants:
* A fact, a past step or an `unset` that is left out changes nothing of the verdict or its explanation; one that stays
  would.
* A list is left out whole or not at all; of the maps in it those keys go that nothing needs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeVar

from ledgercli import paths
from ledgercli.capture.recalling import Past, Step, plain
from ledgercli.cases import CaseModel
from ledgercli.casework.groups import Group
from ledgercli.casework.judging import rules_of
from ledgercli.casework.preparing import Preparer, Ready
from ledgercli.paths import ABSENT, Path
from ledgercli.records import Proposal, Verdict
from ledgercli.why.related import values_in
from ledgercli.why.situations import Situation, at, begins, put

T = TypeVar("T")
PARTS: Final = ("facts", "constraints", "flags", "goals")


@dataclass(frozen=True)
class Held:
    """What a case says of the state and of the past.

    Arguments:
        known: path in the state → value.
        unset: what of the file's own state is not known.
        past: past steps.

    """

    known: Mapping[Path, Any]
    unset: Sequence[Path] = ()
    past: Past = ()

    def case(self) -> dict[str, Any]:
        """Return it as keys of a case."""
        tree: dict[str, Any] = {}
        for path, value in self.known.items():
            if at(tree, path) is ABSENT:
                tree = put(tree, path, value)
        unset = [paths.text(path) for path in self.unset]
        parts = {"state": tree, "unset": unset, "history": list(self.past)}
        return {key: value for key, value in parts.items() if value}


@dataclass
class Bench:
    """Judges what a case would hold.

    Arguments:
        group: the file in which it is to stand.
        step: the step that it is made of.
        said: its verdict on all that was known.

    """

    group: Group
    step: Step
    said: Verdict
    _preparer: Preparer = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._preparer = Preparer(self.group, self.step.situation.now)

    def verdict(self, case: Mapping[str, Any], proposal: Proposal) -> Verdict | None:
        """Return the verdict in a state of which only this is known; None if a case cannot say that."""
        about = {"name": "captured", "propose": {"tool": proposal.tool, "args": {}}, "expect": "deny"}
        model = CaseModel.model_validate({**case, **about})
        [ready] = self._preparer.each(("tests", 0), model)
        if not isinstance(ready, Ready):
            return None
        return replace(ready.situation, proposal=proposal).judged(self.group.rules.enforcer)

    def holds(self, held: Held) -> bool:
        """Whether all that matters of the verdict stays."""
        verdict = self.verdict(held.case(), self.step.situation.proposal)
        return verdict is not None and said(verdict) == said(self.said)


def said(verdict: Verdict) -> object:
    """Return what must stay of a verdict: its effect and how it is explained."""
    return verdict.effect, rules_of(verdict), verdict.reason, verdict.hint, verdict.missing, verdict.halts


def known(situation: Situation) -> dict[Path, Any]:
    """Return all that is known, leaf by leaf; a list is one leaf."""
    tree = situation.state.tree
    leaves = ((path, value) for part in PARTS for path, value in values_in(plain(tree.get(part) or {}), (part,)))
    some = {path: value for path, value in leaves if len(path) > 1}  # a part that is empty says nothing
    return {("task",): tree["task"], **some}


def only_of_file(given: Mapping[str, Any], situation: Situation) -> Iterator[Path]:
    """Yield what a file's own state says that is not known at a step, each with all that is below it."""
    for part in PARTS:
        yield from _absent(given.get(part) or {}, situation.state.tree.get(part) or {}, (part,))


def _absent(given: Mapping[str, Any], here: Any, path: Path) -> Iterator[Path]:
    for key, value in given.items():
        below = here.get(key, ABSENT) if isinstance(here, Mapping) else ABSENT
        if below is ABSENT:
            yield (*path, key)
        elif isinstance(value, Mapping):
            yield from _absent(value, below, (*path, key))


def meets(one: Path, other: Path) -> bool:
    """Whether one path leads to the other, or is it."""
    return begins(one, other) or begins(other, one)


def shrunk(held: Held, holds: Callable[[Held], bool]) -> Held:
    """Leave out all that is not needed, until nothing more can be."""
    while True:
        before, held = held, _thinner(_smaller(held, holds), holds)
        if held == before:
            return held


def _smaller(held: Held, holds: Callable[[Held], bool]) -> Held:
    def with_past(past: Past) -> Held:
        return replace(held, past=past)

    def with_unset(unset: Sequence[Path]) -> Held:
        return replace(held, unset=unset)

    held = with_past(_fewer(held.past, lambda past: holds(with_past(past))))
    held = with_unset(_fewer(held.unset, lambda unset: holds(with_unset(unset))))
    for path in list(held.known):
        without = replace(held, known={one: value for one, value in held.known.items() if one != path})
        held = without if holds(without) else held
    return held


def _fewer(items: Sequence[T], holds: Callable[[Sequence[T]], bool]) -> Sequence[T]:
    """Leave out what is not needed of a list: all of it, long runs, then one by one."""
    size = len(items)
    while size:
        end = len(items)
        while end > 0:
            less = [*items[: max(end - size, 0)], *items[end:]]
            items = less if holds(less) else items
            end -= size
        size //= 2
    return items


def _thinner(held: Held, holds: Callable[[Held], bool]) -> Held:
    """Leave out parts of past steps, and keys of the maps in lists."""
    for number, one in enumerate(held.past):
        for key in ("data", "args"):
            if key in one:
                past = list(held.past)
                past[number] = {name: value for name, value in past[number].items() if name != key}
                less = replace(held, past=past)
                held = less if holds(less) else held
    for path, value in held.known.items():
        if isinstance(value, list):
            held = _thinned(held, path, holds)
    return held


def _thinned(held: Held, path: Path, holds: Callable[[Held], bool]) -> Held:
    for number, item in enumerate(held.known[path]):
        for key in item if isinstance(item, Mapping) else ():
            value = list(held.known[path])
            value[number] = {name: inside for name, inside in value[number].items() if name != key}
            less = replace(held, known={**held.known, path: value})
            held = less if holds(less) else held
    return held
