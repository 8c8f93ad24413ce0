"""Which verdicts can differ for a tool: what was found, how sure it is, and the search's own notes.

Invariants:
* A `Found` holds the enforcer's verdicts on its example, from both versions.
* What differs only as a part of something else that was found for the tool is not found again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from ledgercli.diff.packs.examples import Example
from ledgercli.diff.packs.versions import Version
from ledgercli.enforcer import STRICTNESS
from ledgercli.policy import Effect
from ledgercli.records import Verdict, lets_run

Kind = Literal["effect", "halt", "rules", "watched", "message"]
KINDS: tuple[Kind, ...] = ("effect", "halt", "rules", "watched", "message")
Proof = Literal["same", "counted", "searched"]


@dataclass(frozen=True)
class Told:
    """What a verdict says, with short names of rules."""

    effect: Effect
    halts: bool
    rules: frozenset[tuple[str, str]]
    watched: frozenset[tuple[str, str]]
    texts: tuple[object, ...]

    @classmethod
    def of(cls, verdict: Verdict, version: Version) -> Told:
        """Return what a verdict says."""
        failed = (*verdict.failed, *verdict.warned)
        watched = (*verdict.overridden, *verdict.shadowed)
        return cls(
            verdict.effect,
            verdict.halts,
            frozenset((version.short(one.rule), one.effect) for one in failed),
            frozenset((version.short(one.rule), one.effect) for one in watched),
            (verdict.reason, verdict.hint),
        )


def kind_of(a: Told, b: Told) -> Kind | None:
    """Return the weightiest thing that two verdicts differ in; None if they do not."""
    if a.effect != b.effect:
        return "effect"
    if a.halts != b.halts:
        return "halt"
    if a.rules != b.rules:
        return "rules"
    if a.watched != b.watched:
        return "watched"
    return None if a.texts == b.texts else "message"


@dataclass(frozen=True)
class Found:
    """A verdict that can differ.

    Arguments:
        kind: what differs: the `effect`; with the same effect whether it `halt`s, or which `rules` failed; with the
            same rules those that are only `watched` (shadowed or overridden), or only the `message`.
        tool: the tool.
        example: a call and a state in which it does.
        a: A's verdict on it.
        b: B's.
        by: the rules, and settings of packs, that make the difference.

    """

    kind: Kind
    tool: str
    example: Example
    a: Verdict
    b: Verdict
    by: tuple[str, ...]

    @property
    def effects(self) -> tuple[Effect, Effect]:
        """A's effect and B's."""
        return self.a.effect, self.b.effect

    @property
    def worse(self) -> bool:
        """Whether B lets through what A does not, or asks where A refuses."""
        a, b = (STRICTNESS[effect] for effect in self.effects)
        return b < a and not lets_run(self.a.effect, None)

    @property
    def order(self) -> tuple[object, ...]:
        """What is told first: the weightiest, what is newly let through, then the smallest."""
        a, b = (STRICTNESS[effect] for effect in self.effects)
        return KINDS.index(self.kind), not self.worse, -a, b, self.by, self.example.size


@dataclass(frozen=True)
class ToolDifference:
    """What was found for one tool.

    Arguments:
        tool: its name.
        kind: which kind of tool it stands for, where nothing but the packs says so.
        proof: `same`: the rules are the same; `counted`: every combination that the rules tell apart was judged;
            `searched`: the likeliest were.
        tried: how many combinations.
        found: the verdicts that can differ.
        unfit: whether no arguments were found that fit the tool's schema, so that nothing could be tried.

    """

    tool: str
    kind: str
    proof: Proof
    tried: int
    found: tuple[Found, ...] = ()
    unfit: bool = False

    @property
    def proved_same(self) -> bool:
        """Whether it is proved that no verdict differs."""
        return not self.found and self.proof != "searched"


def kept(found: Iterable[Found]) -> tuple[Found, ...]:
    """Return what is worth telling: each pair of effects with what makes it, and less only where nothing more is."""
    told: list[Found] = []
    for one in sorted(found, key=lambda one: (KINDS.index(one.kind), len(one.by), one.order)):
        if not any(_covers(other, one) for other in told):
            told.append(one)
    return tuple(sorted(told, key=lambda one: one.order))


def _covers(told: Found, one: Found) -> bool:
    """Whether what was told makes telling this one superfluous."""
    if not set(told.by) <= set(one.by):
        return False
    return told.kind != one.kind or told.kind != "effect" or told.effects == one.effects
