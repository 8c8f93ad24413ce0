"""Many ledgers judged again, in one process or several, and what it comes to.

Invariants:
* Results come in the order of the paths, whatever the number of processes, so that reports are the same bytes.
* A ledger that cannot be read or judged is a result too (`Unread`); the others are judged all the same.
* Only sums, two examples a rule and what cannot be read are kept, unless all is asked for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, NamedTuple, TypeVar

from ledgercli import processes
from ledgercli.errors import InvalidDocumentError, LedgerCliError
from ledgercli.replay.verifying import Replayed, replay
from ledgercli.replay.whatif import CHANGES, Change, Flip, Versions, WhatIf, WhatIfs
from ledgercli.shelf import Shelf

EXAMPLES: Final = 2  # of each rule

T = TypeVar("T")
Judge = Callable[[str], T]


@dataclass(frozen=True, slots=True)
class Unread:
    """A ledger that cannot be judged.

    Arguments:
        path: the ledger.
        message: why not, in one line.
        fix: what to do about it.
        problems: what is wrong with files that do not load.

    """

    path: str
    message: str
    fix: str | None = None
    problems: tuple[Any, ...] = ()


def replays(paths: Sequence[str], jobs: int = 1) -> Iterator[Replayed | Unread]:
    """Judge ledgers again by what they carry."""
    return _each(paths, _replayer, jobs)


def what_ifs(
    paths: Sequence[str], packs: Sequence[str], *, only_packs: bool = False, jobs: int = 1
) -> Iterator[WhatIf | Unread]:
    """Judge ledgers by changed packs.

    Raises:
        InvalidDocumentError: a pack does not load.
        UnreadableInputError: there is no such file.

    """
    WhatIfs(packs, only_packs=only_packs)  # what cannot be read is refused before anything begins
    return _each(paths, partial(_what_ifs, tuple(packs), only_packs), jobs)


def _replayer() -> Judge[Replayed]:
    return partial(replay, shelf=Shelf())


def _what_ifs(packs: tuple[str, ...], only_packs: bool) -> Judge[WhatIf]:  # noqa: FBT001 - through `partial`
    return WhatIfs(packs, only_packs=only_packs).judge


# ---- processes


def _each(paths: Sequence[str], make: Callable[[], Judge[T]], jobs: int) -> Iterator[T | Unread]:
    return processes.spread(paths, partial(_judging, make), jobs)


def _judging(make: Callable[[], Judge[T]]) -> Judge[T | Unread]:
    return partial(_judged, make())


def _judged(judge: Judge[T], path: str) -> T | Unread:
    try:
        return judge(path)
    except InvalidDocumentError as error:
        return Unread(path, error.message, error.fix, error.problems)
    except LedgerCliError as error:
        return Unread(path, error.message, error.fix)


# ---- what it comes to


@dataclass(slots=True)
class Verified:
    """What came of judging ledgers again.

    Arguments:
        ledgers: how many were judged.
        steps: how many steps they have.
        untold: how many steps redaction hides too much of.
        diverged: those that do not come out the same.
        unread: those that cannot be judged.

    """

    ledgers: int = 0
    steps: int = 0
    untold: int = 0
    diverged: list[Replayed] = field(default_factory=list)
    unread: list[Unread] = field(default_factory=list)

    def add(self, one: Replayed | Unread) -> None:
        """Take in the next ledger."""
        if isinstance(one, Unread):
            self.unread.append(one)
            return
        self.ledgers += 1
        self.steps += one.steps
        self.untold += len(one.untold)
        if one.divergence is not None:
            self.diverged.append(one)


class Example(NamedTuple):
    """A proposal that is judged otherwise: its ledger, from which step on nothing is certain there, what it is."""

    path: str
    frontier: int | None
    flip: Flip


@dataclass(slots=True)
class Group:
    """The proposals that one rule makes the difference for.

    Arguments:
        change: what is new.
        rule: the rule.
        proposals: how many.
        ledgers: in how many ledgers.
        completed: how many of these runs had ended `completed`.
        examples: the first one of each of the first ledgers; or all.

    """

    change: Change
    rule: str | None
    proposals: int = 0
    ledgers: int = 0
    completed: int = 0
    examples: list[Example] = field(default_factory=list)


@dataclass(slots=True)
class Survey:
    """What changed packs come to over many runs.

    Arguments:
        ledgers: how many were judged.
        proposals: how many proposals.
        changed: change → proposals and ledgers.
        unchanged: ledgers without any change.
        groups: the changes by rule.
        departed: ledgers that a change would have led another way.
        astray: other ledgers of which not all is certain: their agent would have been told something else, or they
            are of recordings of which a call was refused then.
        later: changes that are not certain, since something else would have gone before.
        packs: name of a pack → its versions then and now, and in how many ledgers.
        unread: ledgers that cannot be judged.
        everything: whether all changes are kept.

    """

    ledgers: int = 0
    proposals: int = 0
    changed: dict[Change, tuple[int, int]] = field(default_factory=lambda: dict.fromkeys(CHANGES, (0, 0)))
    unchanged: int = 0
    groups: dict[tuple[Change, str | None], Group] = field(default_factory=dict)
    departed: int = 0
    astray: int = 0
    later: int = 0
    packs: dict[str, Counter[Versions]] = field(default_factory=dict)
    unread: list[Unread] = field(default_factory=list)
    everything: bool = False

    def add(self, one: WhatIf | Unread) -> None:
        """Take in the next ledger."""
        if isinstance(one, Unread):
            self.unread.append(one)
            return
        self.ledgers += 1
        self.proposals += one.proposals
        self.unchanged += not one.flips
        self._frontier(one)
        for change in CHANGES:
            if count := one.count(change):
                proposals, ledgers = self.changed[change]
                self.changed[change] = proposals + count, ledgers + 1
        self._group(one)
        for name, versions in one.packs.items():
            self.packs.setdefault(name, Counter())[versions] += 1

    @property
    def certain(self) -> int:
        """How many changes are certain."""
        return sum(proposals for proposals, _ in self.changed.values()) - self.later

    def ordered(self) -> list[Group]:
        """Return the groups: by what is new, the largest first."""
        return sorted(self.groups.values(), key=lambda one: (CHANGES.index(one.change), -one.proposals, one.rule or ""))

    def _frontier(self, one: WhatIf) -> None:
        self.later += sum(not flip.exact for flip in one.flips)
        if any(flip.step == one.frontier and flip.exact for flip in one.flips):
            self.departed += 1
        else:
            self.astray += one.frontier is not None

    def _group(self, one: WhatIf) -> None:
        here: set[tuple[Change, str | None]] = set()
        for flip in one.flips:
            key = flip.change, flip.rule
            group = self.groups.setdefault(key, Group(*key))
            group.proposals += 1
            first = key not in here
            if first:
                here.add(key)
                group.ledgers += 1
                group.completed += one.status == "completed"
            if self.everything or (first and len(group.examples) < EXAMPLES):
                group.examples.append(Example(one.path, one.frontier, flip))
