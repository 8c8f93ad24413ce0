"""Two ledgers compared: their steps laid side by side, and what differs in those that are two versions of one.

Invariants:
* Steps that are the same are never reported, and a step more or less does not shift the rest.
* The counts are the same whichever ledger comes first, with their sides exchanged.
* Nothing is read again but steps that differ, and deepdiff is asked about those alone, when somebody wants to see them.
* What a run began with that another has done before it (`from`) is a shared past, and never a difference.

Deliberately not here: how a ledger is read (`outline`), folders of them (`folders`), packs (`packdiff`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from ledgercli import paths
from ledgercli.diff import outline
from ledgercli.diff.alignment import Gap, Pair
from ledgercli.diff.differing import Change, changes, set_of
from ledgercli.diff.layers import LAYERS, Counting, FailOn, Layer, comparable, states_apart
from ledgercli.diff.outline import Outline
from ledgercli.diff.pairing import paired
from ledgercli.paths import ABSENT
from ledgercli.story import status_of

Sign: TypeAlias = Literal["=", "~", "-", "+"]

_KNOWN: Final = ("task", "facts", "constraints", "flags", "goals")  # parts of a state that a run starts from
_ENDED: Final = frozenset({"status", "final_answer"})  # parts of a state that the end tells by itself


class Stretch(NamedTuple):
    """Some steps and marks in a row that have the same sign: `=` the same, `~` changed, `-` only in A, `+` only in B.

    Arguments:
        sign: what they are.
        a: their places in A.
        b: their places in B.
        layers: which differ, of a changed one; each has a stretch of its own.

    """

    sign: Sign
    a: range
    b: range
    layers: tuple[Layer, ...] = ()


class Shared(NamedTuple):
    """A past that both have.

    Arguments:
        newer: which of them went on from the other: `a` or `b`.
        steps: how many steps of the older it has before it.
        places: how many places of the older these are.
        state: the state there.

    """

    newer: Literal["a", "b"]
    steps: int
    places: int
    state: paths.Map


class First(NamedTuple):
    """Where two ledgers differ first.

    Arguments:
        what: a layer; `start`, `answer`, `status` or `end`; the kind of a mark, or `said`.
        a: the place in A, if there is one.
        b: the place in B, if there is one.

    """

    what: str
    a: int | None = None
    b: int | None = None


class Detail(NamedTuple):
    """One difference within a changed step: `label` is a path as a rule says it."""

    layer: Layer
    label: str
    a: Any
    b: Any


@dataclass(slots=True)
class Counts:
    """How much differs.

    Arguments:
        changed: of each layer, the steps in which it differs.
        judged: the steps in which another effect or other rules answered.
        caused: the steps whose result differs behind another proposal, or another answer.
        alone: sign → the steps that are on one side only.
        marks: kind of mark, or `said`, and sign → how many.

    """

    changed: Counter[Layer] = field(default_factory=Counter)
    judged: int = 0
    caused: Counter[Layer] = field(default_factory=Counter)
    alone: Counter[Sign] = field(default_factory=Counter)
    marks: Counter[tuple[str, Sign]] = field(default_factory=Counter)

    @property
    def only_a(self) -> int:
        """How many steps are only in A."""
        return self.alone["-"]

    @property
    def only_b(self) -> int:
        """How many steps are only in B."""
        return self.alone["+"]


@dataclass(frozen=True, slots=True)
class Part:
    """Something that took part in one of the runs, or in two versions: a file, the engine, the mode."""

    kind: str
    name: str
    a: Any
    b: Any


@dataclass(frozen=True)
class Difference:
    """All that two ledgers differ in.

    Arguments:
        a: the first.
        b: the second.
        shared: the past that they share, if one went on from the other.
        stretches: both from there on, in order.
        parts: what took part and is not the same; told, but no difference by itself.
        start: how the states differ that their own steps start from.
        state: how the last states differ, but for answer and status.

    """

    a: Outline
    b: Outline
    shared: Shared | None
    stretches: tuple[Stretch, ...]
    parts: tuple[Part, ...]
    start: tuple[Change, ...]
    state: tuple[Change, ...]

    @property
    def counting(self) -> Counting:
        """What counts."""
        return self.a.counting

    @property
    def statuses(self) -> tuple[str, str]:
        """How each ended."""
        return status_of(self.a.told), status_of(self.b.told)

    @property
    def answers(self) -> tuple[Any, Any]:
        """What each answered; ABSENT without an end."""
        one, other = ((side.told.close or {}).get("answer", ABSENT) for side in (self.a, self.b))
        return one, other

    @property
    def ends_differ(self) -> dict[str, bool]:
        """Whether answer and status differ; nothing where only one layer counts."""
        if self.counting.only is not None:
            return {}
        return {
            "answer": not paths.same(*(one if one is ABSENT else comparable(one) for one in self.answers)),
            "status": self.statuses[0] != self.statuses[1],
        }

    def counted(self, stretch: Stretch) -> bool:
        """Whether a stretch is a difference: a step without counterpart is another proposal, perhaps another state."""
        if stretch.sign in "=~" or self.counting.only in (None, "proposal"):
            return stretch.sign != "="
        side, places = (self.a, stretch.a) if stretch.sign == "-" else (self.b, stretch.b)
        return self.counting.only == "state" and any(map(side.changes_state, places))

    def first(self) -> First | None:
        """Return where they differ first; None if they do not."""
        of_state = self.counting.only in (None, "state")
        if self.start and of_state:
            return First("start")
        for stretch in self.stretches:
            if self.counted(stretch):
                return self._named(stretch)
        if self.state and of_state:
            return First("end")
        return next((First(what) for what, differs in self.ends_differ.items() if differs), None)

    def _named(self, stretch: Stretch) -> First:
        a, b = (next(iter(places), None) for places in (stretch.a, stretch.b))
        kind = self.a.labels[a][0] if a is not None else self.b.labels[b or 0][0]
        what = kind if kind != "step" else stretch.layers[0] if stretch.layers else "proposal"
        return First(what, a, b)

    def counts(self) -> Counts:
        """Count what differs."""
        counts = Counts()
        for stretch in self.stretches:
            if stretch.sign == "=":
                continue
            side, places = (self.b, stretch.b) if stretch.sign == "+" else (self.a, stretch.a)
            for kind, number in Counter(side.labels[place][0] for place in places).items():
                if kind != "step":
                    counts.marks[kind, stretch.sign] += number
                elif stretch.sign == "~":
                    self._count(counts, stretch)
                else:
                    counts.alone[stretch.sign] += number
        return counts

    def _count(self, counts: Counts, stretch: Stretch) -> None:
        """Count a changed step."""
        judged = self.judged(stretch)
        counts.changed.update(stretch.layers)
        counts.judged += judged
        if "result" in stretch.layers and ("proposal" in stretch.layers or judged):
            counts.caused["proposal" if "proposal" in stretch.layers else "verdict"] += 1

    def fails(self, on: FailOn) -> bool:
        """Whether they differ in the way that is asked for."""
        if on == "any":
            return self.first() is not None
        if on == "worse":
            return self.statuses[0] == "completed" != self.statuses[1]
        if on == "verdicts":
            return bool(self.counts().judged)
        return any(change.path[0] in _KNOWN for change in self.state)

    def layers(self, stretch: Stretch) -> tuple[dict[Layer, Any], dict[Layer, Any]]:
        """Read both versions of a changed step again."""
        return self.a.layers(stretch.a[0]), self.b.layers(stretch.b[0])

    def judged(self, stretch: Stretch) -> bool:
        """Whether a changed step was answered by another effect or other rules."""
        return "verdict" in stretch.layers and self.a.judged(stretch.a[0]) != self.b.judged(stretch.b[0])


def differences(a: Path | str, b: Path | str, counting: Counting) -> Difference:
    """Compare two ledgers.

    Raises:
        UnreadableInputError: one of them is not there.
        LedgerFormatError: one of them is damaged.

    """
    began = {"a": outline.opening(a).get("from") or {}, "b": outline.opening(b).get("from") or {}}
    return compare(
        outline.read(a, counting, began["b"].get("digest")), outline.read(b, counting, began["a"].get("digest"))
    )


def compare(a: Outline, b: Outline) -> Difference:
    """Compare two outlines that were read with an eye to each other's pasts."""
    shared = _shared(a, b)
    whole = (0, len(a), 0, len(b))
    if shared:
        whole = (shared.places, len(a), 0, len(b)) if shared.newer == "b" else (0, len(a), shared.places, len(b))
    opened = _start(a, shared, "b"), _start(b, shared, "a")
    return Difference(
        a=a,
        b=b,
        shared=shared,
        stretches=tuple(_stretches(a, b, whole, paired(a, b, whole))),
        parts=tuple(_parts(a.told.opening, b.told.opening)),
        start=tuple(_apart(*opened, a.counting)),
        state=tuple(_ended_apart(a, b)),
    )


def _shared(a: Outline, b: Outline) -> Shared | None:
    for newer, older in (("b", a), ("a", b)):
        if older.met:
            places, steps, state = older.met
            return Shared("b" if newer == "b" else "a", steps, places, state)
    return None


def _start(side: Outline, shared: Shared | None, newer: str) -> paths.Map:
    """What is known before the steps that are compared."""
    tree = shared.state if shared and shared.newer == newer else side.told.opening["state"]
    return {part: tree[part] for part in _KNOWN if part in tree}


def _ended_apart(a: Outline, b: Outline) -> Iterator[Change]:
    for change in _apart(a.told.tree, b.told.tree, a.counting):
        if change.path[:1] and change.path[0] not in _ENDED:
            yield change


def _apart(one: paths.Map, other: paths.Map, counting: Counting) -> list[Change]:
    return set_of(*states_apart(one, other, counting))


def _parts(a: Mapping[str, Any], b: Mapping[str, Any]) -> Iterator[Part]:
    files = [{(file["kind"], file["name"]): file["digest"] for file in side["files"]} for side in (a, b)]
    for kind, name in sorted({**files[0], **files[1]}):
        one, other = (side.get((kind, name)) for side in files)
        if one != other:
            yield Part(kind, name, one, other)
    for key in ("engine", "mode"):
        if not paths.same(a.get(key), b.get(key)):
            yield Part(key, "", a.get(key), b.get(key))


def _stretches(a: Outline, b: Outline, whole: Gap, pairs: list[Pair]) -> Iterator[Stretch]:
    """Yield what pairs make of two ledgers, and what is between them."""
    same: Stretch | None = None
    i0, i1, j0, j1 = whole
    for i, j in [*pairs, (i1, j1)]:
        layers = () if (i, j) == (i1, j1) else _differing(a, b, i, j)
        apart = i > i0 or j > j0
        if same and (apart or layers or (i, j) == (i1, j1)):
            yield same
            same = None
        if i > i0:
            yield Stretch("-", range(i0, i), range(0))
        if j > j0:
            yield Stretch("+", range(0), range(j0, j))
        if layers:
            yield Stretch("~", range(i, i + 1), range(j, j + 1), layers)
        elif (i, j) != (i1, j1):
            first = same or Stretch("=", range(i, i), range(j, j))
            same = Stretch("=", range(first.a.start, i + 1), range(first.b.start, j + 1))
        i0, j0 = i + 1, j + 1


def _differing(a: Outline, b: Outline, i: int, j: int) -> tuple[Layer, ...]:
    if a.key(i) == b.key(j):
        return ()
    only = a.counting.only
    return tuple(layer for layer in LAYERS if only in (None, layer) and a.layer(i, layer) != b.layer(j, layer))


# Details


def details(stretch: Stretch, a: Mapping[Layer, Any], b: Mapping[Layer, Any]) -> Iterator[Detail]:
    """Yield all in which two versions of a step differ, by layers."""
    for layer in stretch.layers:
        yield from _details(layer, a[layer], b[layer])


def _details(layer: Layer, a: Any, b: Any) -> Iterator[Detail]:
    if layer == "state":
        yield from _state_details(a or {}, b or {})
        return
    for change in changes(a, b):
        yield Detail(layer, _label(layer, change.path), change.a, change.b)


def _label(layer: Layer, path: paths.Path) -> str:
    """Where a difference is, as a rule says it."""
    if layer == "proposal":
        return paths.text(("action", *path))
    if layer == "verdict" and path[:1] == ("reads",) and len(path) > 1:
        return f"read {path[1]}" + (f" at {paths.text(path[2:])}" if len(path) > 2 else "")
    if layer == "result":
        return paths.text(path) if path else "result"
    return paths.text((layer, *path))


def _state_details(a: Mapping[str, Any], b: Mapping[str, Any]) -> Iterator[Detail]:
    for change in changes(a.get("state_diff", {}), b.get("state_diff", {})):
        text, *below = change.path or ("state_diff",)
        label = f"state.{text}" + paths.text(("x", *below))[1:]
        yield Detail("state", label, change.a, change.b)
    unsets = [set(side.get("state_unset", ())) for side in (a, b)]
    for text in sorted(unsets[0] ^ unsets[1]):
        here = [True if text in side else ABSENT for side in unsets]
        yield Detail("state", f"unset state.{text}", *here)
    for change in changes(a.get("problems", []), b.get("problems", [])):
        yield Detail("state", paths.text(("problems", *change.path)), change.a, change.b)
