"""What two ledgers, or two folders of them, differ in, as Markdown.

Invariants:
* A summary and a table that a reader of a pull request takes in at a glance; text and JSON have all.
* Values are cut, so that a comment stays short.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from ledgercli import paths
from ledgercli.diff.folders import Comparison, Match, damage
from ledgercli.diff.ledgers import Difference, Stretch
from ledgercli.diff.outline import Outline
from ledgercli.reports import changed
from ledgercli.reports.cells import cut, inert
from ledgercli.reports.folders import steps
from ledgercli.reports.markdown import code, table, text
from ledgercli.reports.summary import counted
from ledgercli.story import status_of

MANY: Final = 50  # rows
_ROOM: Final = 60  # cells of a value


def of_ledgers(found: Difference) -> Iterator[str]:
    """Yield what two ledgers differ in."""
    first = found.first()
    yield f"### ledger diff: {'same' if first is None else 'differs'}"
    yield ""
    yield from table(("", "ledger", "status", "steps"), [_side("A", found.a), _side("B", found.b)])
    yield ""
    if found.parts:
        yield "Took part in other versions: " + ", ".join(
            f"{part.kind} {code(part.name)}".strip() for part in found.parts
        )
        yield ""
    if found.shared:
        newer, older = ("B", "A") if found.shared.newer == "b" else ("A", "B")
        yield f"{newer} goes on from {older}@{found.shared.steps}."
        yield ""
    rows = list(_rows(found))
    if rows:
        yield from table(("A", "B", "", "what", "in A", "in B"), rows[:MANY])
        yield ""
    if len(rows) > MANY:
        yield f"... and {len(rows) - MANY:,} more rows."
        yield ""
    yield from _summary(found)


def _side(name: str, side: Outline) -> tuple[str, ...]:
    return name, code(str(side.path)), status_of(side.told), f"{side.told.steps:,}"


def _rows(found: Difference) -> Iterator[tuple[str, ...]]:
    shown = 0
    for stretch in found.stretches:
        places = max(len(stretch.a), len(stretch.b)) if stretch.sign in "-+" else 1
        if stretch.sign == "=":
            continue
        if shown > MANY:  # not read again
            yield from (("",) * 6 for _ in range(places))
        elif stretch.sign == "~":
            yield from _changed(found, stretch)
        else:
            yield from _alone(found, stretch, MANY + 1)
            yield from (("",) * 6 for _ in range(places - MANY - 1))
        shown += places


def _changed(found: Difference, stretch: Stretch) -> Iterator[tuple[str, ...]]:
    a, b = stretch.a[0], stretch.b[0]
    numbers = _number(found.a, a), _number(found.b, b)
    kind, tool = found.a.labels[a]
    for pair in changed.pairs(found, stretch, inert, everything=False):
        what = f"{code(tool) if tool else kind} {code(pair.label)}"
        yield *numbers, "changed", what, _cut(pair.a), _cut(pair.b)


def _alone(found: Difference, stretch: Stretch, most: int) -> Iterator[tuple[str, ...]]:
    side, places = (found.a, stretch.a) if stretch.sign == "-" else (found.b, stretch.b)
    for place in places[:most]:
        line, number = side.line(place), _number(side, place)
        what = _cut(changed.call(line)) if "action" in line else line["kind"]
        yield (
            (number, "", "only in A", what, "", "") if stretch.sign == "-" else ("", number, "only in B", what, "", "")
        )


def _number(side: Outline, place: int) -> str:
    return str(side.numbers[place] or "")


def _cut(parts: Iterable[str]) -> str:
    return code(cut(parts, _ROOM))


def _summary(found: Difference) -> Iterator[str]:
    counts, only = found.counts(), found.counting.only
    if only in (None, "proposal"):
        told = f"{counts.changed['proposal']:,} changed, {counts.only_a:,} only in A, {counts.only_b:,} only in B"
        yield f"- proposals: {told}"
    if only in (None, "verdict"):
        yield f"- verdicts: {counts.judged:,} changed"
    if only in (None, "result"):
        yield f"- results: {counts.changed['result']:,} changed"
    if only in (None, "state"):
        yield f"- state: {_places(found)}"
    for what, differs in found.ends_differ.items():
        yield f"- {what}: {'differs' if differs else 'same'}"


def _places(found: Difference) -> str:
    named = [code(paths.text(("state", *change.path))) for change in found.state]
    return ", ".join(named[:MANY]) + (f" and {len(named) - MANY:,} more" if len(named) > MANY else "") or "same"


# Folders


def of_folders(found: Comparison) -> Iterator[str]:
    """Yield what two folders differ in."""
    a, b = found.a, found.b
    yield f"### ledger diff: {'differs' if found.fails('any') else 'same'}"
    yield ""
    rows: list[tuple[str, Any, Any]] = [
        ("folder", code(a.path), code(b.path)),
        ("passed", f"{a.passed:,}/{len(a.runs):,}", f"{b.passed:,}/{len(b.runs):,}"),
        ("denied proposals", f"{a.denied:,}/{a.proposals:,}", f"{b.denied:,}/{b.proposals:,}"),
        ("steps, median", steps(a), steps(b)),
    ]
    yield from table(("", "A", "B"), rows)
    yield ""
    told = [("better in B", found.better), ("worse in B", found.worse), ("only in A", found.only("a"))]
    told.append(("only in B", found.only("b")))
    yield from table(
        ("scenario", "", "A", "B"), [_scenario(match, word) for word, some in told for match in some[:MANY]]
    )
    yield ""
    yield f"{counted(len(found.same), 'scenario')} the same."
    rules = sorted({*a.rules, *b.rules}, key=lambda rule: (-a.rules[rule] - b.rules[rule], rule))
    if rules:
        yield ""
        yield from table(
            ("denials by rule", "A", "B"), [(text(r), f"{a.rules[r]:,}", f"{b.rules[r]:,}") for r in rules[:MANY]]
        )
    if broken := damage((a, b)):
        yield ""
        named = ", ".join(code(file) for file, _ in broken[:MANY])
        yield f"{counted(len(broken), 'damaged ledger')}, not compared: {named}"


def _scenario(match: Match, word: str) -> tuple[str, ...]:
    sides = [
        f"{passed}/{len(runs)}" if runs else "" for passed, runs in zip(match.passed, (match.a, match.b), strict=True)
    ]
    return code(match.name), word, *sides
