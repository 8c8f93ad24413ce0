"""Two ledgers side by side, for people.

Invariants:
* Steps that are the same are one line for all of them in a row; a changed one shows what differs in it, and no more.
* What follows from something else that is shown is not shown again: a state from a result, reads from arguments.
* `MANY` differing steps are shown, and how many there are beyond; with -v all, with whole values.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from ledgercli import paths
from ledgercli.diff.differing import Change
from ledgercli.diff.layers import Layer
from ledgercli.diff.ledgers import Difference, First, Sign, Stretch
from ledgercli.diff.outline import Outline
from ledgercli.paths import ABSENT
from ledgercli.reports import changed
from ledgercli.reports.cells import WIDTH, cells, pad
from ledgercli.reports.changed import Pair
from ledgercli.reports.screen import Screen
from ledgercli.reports.summary import counted
from ledgercli.story import status_of

MANY: Final = 200  # differing steps that are shown without -v
_CHANGES: Final = 8  # places of the last state that are shown without -v
_LABEL: Final = 11  # cells of `proposals  `
_LONG: Final = 36  # cells of a label that still has values beside it
_LEAST: Final = 12  # cells that a value has at least
_PLURAL: Final[Mapping[str, str]] = {"pack": "packs", "toolset": "toolsets", "scenario": "scenarios"}
_SIGNS: Final[tuple[tuple[Sign, str], ...]] = (("~", "changed"), ("-", "only in A"), ("+", "only in B"))
_WHERE: Final[Mapping[str, str]] = {"start": "state that they start from", "end": "last state"}
_KINDS: Final[Mapping[str, str]] = {
    "rollback": "rollbacks", "approval": "approvals", "resume": "resumes", "said": "user said",
}  # fmt: skip


class Row(NamedTuple):
    """One line of the table, and those below it."""

    a: str
    b: str
    sign: str
    text: str
    below: tuple[str, ...] = ()


class DiffReport:
    """What `ledger diff` prints of two ledgers.

    Arguments:
        screen: where it goes.
        difference: what they differ in.
        verbose: all steps, with whole values.

    """

    def __init__(self, screen: Screen, difference: Difference, *, verbose: bool = False) -> None:
        self._screen = screen
        self._diff = difference
        self._verbose = verbose
        self._width = max([1, *(cells(text) for stretch in self._known() for text in stretch)])
        self._indent = " " * (2 * self._width + 5)

    def write(self) -> None:
        """Write it."""
        for line in self.lines():
            self._screen.line(line)
        self._screen.flush()

    def lines(self) -> Iterator[str]:
        """Yield its lines."""
        first = self._diff.first()
        if first is None and not self._diff.shared:
            yield from self._parts()
            yield self._same()
            return
        yield from (self._header("A", self._diff.a), self._header("B", self._diff.b))
        yield from self._parts()
        yield from self._begins(first)
        yield from self._start()
        yield ""
        yield f"{'A':>{self._width}} {'B':>{self._width}}"
        for row in self._rows():
            yield f"{row.a:>{self._width}} {row.b:>{self._width}} {row.sign}  {row.text}".rstrip()
            yield from row.below
        yield ""
        yield from self._summary()

    # ---- what comes first

    def _header(self, name: str, side: Outline) -> str:
        status = status_of(side.told)
        return f"{name} {self._screen.safe(str(side.path))}  {status}, {counted(side.told.steps, 'step')}"

    def _same(self) -> str:
        only = self._diff.counting.only
        return f"same: {counted(self._diff.a.told.steps, 'step')}" + (
            f", of which only the {only} counts" if only else ""
        )

    def _parts(self) -> Iterator[str]:
        """Name what took part and is not the same."""
        for kind, word in _PLURAL.items():
            found = [part for part in self._diff.parts if part.kind == kind]
            told = [(part, "" if part.a and part.b else " only in " + ("A" if part.a else "B")) for part in found]
            names = ", ".join(self._screen.safe(part.name) + where for part, where in told)
            if names:
                yield f"{word if len(found) > 1 else kind} {'differ' if len(found) > 1 else 'differs'}: {names}"
        for part in self._diff.parts:
            if part.kind not in _PLURAL:
                one, other = self._named(part.a), self._named(part.b)
                if one == other:  # the same model, asked in another way
                    one, other = (self._ways(side, than) for side, than in ((part.a, part.b), (part.b, part.a)))
                yield f"{part.kind} differs: A {one}, B {other}"

    def _ways(self, part: Any, than: Any) -> str:
        """Return how a model is asked, as far as that is not so on the other side."""
        ways = [f"{key} {self._screen.safe(str(value))}" for key, value in part.items() if than.get(key) != value]
        return f"{self._named(part)} ({', '.join(ways) or 'otherwise'})"

    def _named(self, part: Any) -> str:
        """Return an engine by its model or its kind, a mode by its name."""
        if isinstance(part, Mapping):
            part = part.get("model") or part.get("file") or part.get("kind")
        return self._screen.safe(str(part))

    def _begins(self, first: First | None) -> Iterator[str]:
        if first is None:
            shared = self._diff.shared.steps if self._diff.shared else 0
            behind = sum(_steps(self._diff.a, stretch.a) for stretch in self._diff.stretches)
            yield f"same: {counted(shared, 'shared step')}, {behind:,} after that"
        elif first.what in ("answer", "status"):
            yield "differ only in " + " and ".join(what for what, differs in self._diff.ends_differ.items() if differs)
        else:
            what = "what the user said" if first.what == "said" else f"the {_WHERE.get(first.what, first.what)}"
            yield f"differ first in {what}" + (f", {self._place(first)}" if first.what not in _WHERE else "")

    def _place(self, first: First) -> str:
        """Say where: `A@4 B@4`, `only B@6`; a mark stands behind a step."""
        sides = (("A", self._diff.a, first.a), ("B", self._diff.b, first.b))
        told = [f"{name}{_at(side, place)}" for name, side, place in sides if place is not None]
        return " ".join(told) if len(told) > 1 else f"only {told[0]}"

    def _start(self) -> Iterator[str]:
        if self._diff.start and self._diff.counting.only in (None, "state"):
            yield from self._changes("start", self._diff.start)

    # ---- the table

    def _known(self) -> Iterator[tuple[str, str]]:
        """Yield the numbers that stand in the table."""
        if self._diff.shared:
            yield self._shared_numbers()
        for stretch in self._diff.stretches:
            places = stretch if stretch.sign == "=" else stretch._replace(a=stretch.a[-1:], b=stretch.b[-1:])
            yield _of_both(self._diff, places)

    def _shared_numbers(self) -> tuple[str, str]:
        shared = self._diff.shared
        if not shared:
            return "", ""
        older = self._diff.a if shared.newer == "b" else self._diff.b
        told = _numbers(older, range(shared.places))
        return (told, "") if shared.newer == "b" else ("", told)

    def _rows(self) -> Iterator[Row]:
        left = len(self._diff.a) + len(self._diff.b) if self._verbose else MANY
        if self._diff.shared:
            yield self._shared_row()
        for number, stretch in enumerate(self._diff.stretches):
            size = 0 if stretch.sign == "=" else max(len(stretch.a), len(stretch.b))
            yield from self._rows_of(stretch, left)
            left -= size
            if left < 0 or (not left and any(other.sign != "=" for other in self._diff.stretches[number + 1 :])):
                yield self._rest(number, left)
                return

    def _shared_row(self) -> Row:
        shared = self._diff.shared
        assert shared is not None
        newer, older = ("B", "A") if shared.newer == "b" else ("A", "B")
        text = f"{counted(shared.steps, 'shared step')} ({newer} goes on from {older}@{shared.steps})"
        return Row(*self._shared_numbers(), "=", text)

    def _rows_of(self, stretch: Stretch, left: int) -> Iterator[Row]:
        a, b = self._diff.a, self._diff.b
        if stretch.sign == "=":
            yield Row(*_of_both(self._diff, stretch), "=", _same_text(a, stretch.a))
        elif stretch.sign == "~":
            yield self._changed(stretch)
        else:
            side, places = (a, stretch.a) if stretch.sign == "-" else (b, stretch.b)
            for place in places[:left]:
                number = _numbers(side, range(place, place + 1))
                told = self._told(side.line(place))
                yield Row(number, "", "-", told) if stretch.sign == "-" else Row("", number, "+", told)

    def _rest(self, number: int, left: int) -> Row:
        """Say how many more there are: of this stretch the last, and all behind it."""
        signs: Counter[Sign] = Counter({self._diff.stretches[number].sign: -left})
        for stretch in self._diff.stretches[number + 1 :]:
            signs[stretch.sign] += max(len(stretch.a), len(stretch.b))
        return Row("", "", "", f"... and {', '.join(f'{signs[sign]:,} {word}' for sign, word in _SIGNS)}: -v shows all")

    def _told(self, line: Mapping[str, Any]) -> str:
        """Return a step or a mark in one line."""
        room = None if self._verbose else max(WIDTH - len(self._indent), _LEAST)
        match line["kind"]:
            case "rollback":
                return f"rollback to {line['to']}"
            case "approval":
                return f"approval of {line['step']}: {line['answer']} by {self._screen.safe(line['by'])}"
            case "resume":
                files = line.get("files", ())
                return f"resume with {counted(len(files), 'changed file')}" if files else "resume"
        return self._screen.cut(changed.call(line), room)

    # ---- a changed step

    def _changed(self, stretch: Stretch) -> Row:
        a = self._diff.a
        kind, tool = a.labels[stretch.a[0]]
        named = kind in ("step", "said")
        name = self._screen.paint(self._screen.safe(tool), "bold") if named else self._told(a.line(stretch.a[0]))
        found = changed.pairs(self._diff, stretch, self._screen.safe, everything=self._verbose)
        return Row(*_of_both(self._diff, stretch), "~", name, tuple(self._beside(list(found))))

    def _beside(self, found: list[Pair]) -> Iterator[str]:
        """Yield the lines of differences, A above B, labels padded to one width."""
        labels = [self._screen.safe(pair.label) for pair in found]
        width = max([0, *(cells(label) for label in labels if cells(label) <= _LONG)])
        for label, pair in zip(labels, found, strict=True):
            before = self._indent + pad(label, width) + "  "
            if cells(label) > width:
                yield self._indent + label
                before = self._indent + " " * width + "  "
            yield self._value(before, "A", pair.a, whole=pair.whole)
            yield self._value(" " * cells(before), "B", pair.b, whole=pair.whole)

    def _value(self, before: str, name: str, parts: Iterable[str], *, whole: bool = False) -> str:
        room = None if self._verbose or whole else max(WIDTH - cells(before) - 2, _LEAST)
        return f"{before}{name} {self._screen.cut(parts, room)}"

    # ---- what it comes to

    def _summary(self) -> Iterator[str]:
        counts, only = self._diff.counts(), self._diff.counting.only
        alone = [
            f"{number:,} only in {side}" for side, number in (("A", counts.only_a), ("B", counts.only_b)) if number
        ]
        layers = counts.changed
        if only in (None, "proposal"):
            yield _row("proposals", [*_some(layers["proposal"], "changed"), *alone])
        if only in (None, "verdict"):
            other = layers["verdict"] - counts.judged
            more = [f"{other:,} only in what was read or said"] if other else []
            yield _row("verdicts", [*_some(counts.judged, "changed"), *more])
        if only in (None, "result"):
            yield _row("results", _results(layers["result"], counts.caused))
        for kind in sorted({kind for kind, _ in counts.marks}):
            told = [f"{counts.marks[kind, sign]:,} {word}" for sign, word in _SIGNS if counts.marks[kind, sign]]
            yield _row(_KINDS.get(kind, kind), told)
        if only in (None, "state"):
            yield from self._changes("state", self._diff.state)
        for what, differs in self._diff.ends_differ.items():
            told = self._statuses() if what == "status" else ["differs"]
            yield _row(what, told if differs else [])

    def _statuses(self) -> list[str]:
        a, b = self._diff.statuses
        return [f"A {a}, B {b}"]

    def _changes(self, label: str, changes: tuple[Change, ...]) -> Iterator[str]:
        """Yield how a state differs, one place a line, or two."""
        if not changes:
            yield _row(label, [])
        shown = changes if self._verbose else changes[:_CHANGES]
        for number, change in enumerate(shown):
            before = pad("" if number else label, _LABEL)
            path = self._screen.safe(paths.text(("state", *change.path)))
            if ABSENT in (change.a, change.b):
                yield f"{before}{path} only in {'A' if change.b is ABSENT else 'B'}"
            else:
                yield before + path
                yield self._value(" " * (_LABEL + 2), "A", changed.shown(change.a))
                yield self._value(" " * (_LABEL + 2), "B", changed.shown(change.b))
        if len(changes) > len(shown):
            yield f"{' ' * _LABEL}... and {len(changes) - len(shown):,} more: -v shows all"


def _row(label: str, told: list[str]) -> str:
    return pad(label, _LABEL) + (", ".join(told) or "same")


def _some(number: int, word: str) -> list[str]:
    return [f"{number:,} {word}"] if number else []


def _results(number: int, caused: Counter[Layer]) -> list[str]:
    """Say how many results differ, and how many of them because something before them did."""
    told = _some(number, "changed")
    causes: tuple[Layer, ...] = ("proposal", "verdict")
    for cause in causes:
        if caused[cause]:
            share = "" if caused[cause] == number else f"{caused[cause]:,} "
            told.append(
                f"{share}by {'the' if caused[cause] == 1 else ''} changed {cause}{'' if caused[cause] == 1 else 's'}"
            )
    return [" ".join(part.split()) for part in told]


def _at(side: Outline, place: int) -> str:
    """Return where a place is: `@4`, `behind @4`."""
    if side.numbers[place]:
        return f"@{side.numbers[place]}"
    before = max(side.numbers[:place], default=0)
    return f" behind @{before}"


def _steps(side: Outline, places: range) -> int:
    """Return how many steps are among places."""
    return sum(bool(number) for number in side.numbers[places.start : places.stop])


def _of_both(difference: Difference, stretch: Stretch) -> tuple[str, str]:
    """Return the numbers of the steps of a stretch in A and in B."""
    return _numbers(difference.a, stretch.a), _numbers(difference.b, stretch.b)


def _numbers(side: Outline, places: range) -> str:
    """Return the numbers of steps: `4`, `1-3`; nothing for marks."""
    numbers = [number for number in side.numbers[places.start : places.stop] if number] if places else []
    if not numbers:
        return ""
    first, last = min(numbers), max(numbers)
    return str(first) if first == last else f"{first}-{last}"


def _same_text(side: Outline, places: range) -> str:
    """Return `3 same steps, 1 same rollback`."""
    kinds = Counter("step" if side.numbers[place] else side.labels[place][0] for place in places)
    return ", ".join(counted(number, f"same {kind}") for kind, number in kinds.items())
