"""What came of judging ledgers again by what they carry: the same, or where they begin to differ.

Invariants:
* An address, a path and a rule stay whole; values are cut (not with -v).
* Ledgers that could not be judged are counted and named in every form.
* Text of a ledger is inert in every form: it cannot become a line, a mark, a tag or a command.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import orjson

from ledgercli import paths
from ledgercli.paths import ABSENT
from ledgercli.replay.surveys import Unread, Verified
from ledgercli.replay.verifying import Divergence, Replayed
from ledgercli.reports import changed, markdown, values
from ledgercli.reports.cells import WIDTH, cells, pad
from ledgercli.reports.junit import Case, Suite
from ledgercli.reports.screen import Screen
from ledgercli.reports.summary import counted
from ledgercli.sources import Problem

SCHEMA: Final = "replay/1"
LINE_SCHEMA: Final = "divergence/1"
UNREAD_SCHEMA: Final = "unread/1"
MOST: Final = 5  # ledgers that are shown or named, unless all are asked for
_WORD: Final = 10  # cells of `recorded`
_PARTS: Final = 5  # parts of a line that differ, and values read
_LEAST: Final = 12  # cells that a value has at least

Side = tuple[str, str, Any]  # `recorded` or `replayed`, a path ("" for all), the value


# ---- text


def write_text(screen: Screen, found: Verified, *, everything: bool = False, verbose: bool = False) -> None:
    """Write what differs, then what it comes to."""
    shown = found.diverged if everything else found.diverged[:MOST]
    for number, one in enumerate(shown):
        if number:
            screen.line()
        for line in _divergence(screen, one, verbose=verbose):
            screen.line(line)
    if more := len(found.diverged) - len(shown):
        screen.line(f"... {counted(more, 'more ledger')}: --list, or --format jsonl")
    if len(found.diverged) > 1:
        screen.line()
    for line in summary(found):
        screen.line(line)
    for line in unread_lines(screen, found.unread, everything=everything):
        screen.line(line)


def summary(found: Verified) -> Iterator[str]:
    """Yield what it comes to."""
    same = found.ledgers - len(found.diverged)
    if found.ledgers and same == found.ledgers:
        yield f"same: {counted(found.ledgers, 'ledger')}, {counted(found.steps, 'step')}"
    elif found.ledgers > 1:
        rest = f"; {same:,} {'is' if same == 1 else 'are'} the same" if same else ""
        yield f"differ: {len(found.diverged):,} of {counted(found.ledgers, 'ledger')}{rest}"
    if found.untold:
        yield f"cannot tell: {counted(found.untold, 'line')} that need what redaction hides"


def unread_lines(screen: Screen, unread: Sequence[Unread], *, everything: bool = False) -> Iterator[str]:
    """Yield how many ledgers could not be judged, and which."""
    if not unread:
        return
    yield f"not judged: {counted(len(unread), 'ledger')}"
    for one in unread if everything else unread[:MOST]:
        yield f"  {screen.safe(why(one))}"
    if not everything and len(unread) > MOST:
        yield f"  ... {len(unread) - MOST:,} more: --list, or --format jsonl"


def why(unread: Unread) -> str:
    """Say of a ledger why it could not be judged; its name comes first."""
    said = unread.message
    if unread.problems:
        said = next((str(one) for one in unread.problems if getattr(one, "severity", "error") == "error"), said)
    return said if said.startswith(unread.path) else f"{unread.path}: {said}"


def address(one: Replayed) -> str:
    """Return where a ledger begins to differ: FILE@STEP, or FILE:LINE of a line that is no step's."""
    found = one.divergence
    assert found is not None
    return f"{one.path}:{found.line}" if found.step is None else f"{one.path}@{found.step}"


def what(found: Divergence) -> str:
    """Say what differs: `in its verdict`, `in its close line: status`."""
    if found.step is not None and found.layer in ("proposal", "verdict", "result", "state"):
        return f"in its {found.layer}"
    kind, _, part = found.layer.partition(".")
    return f"in its {kind} line{f': {part}' if part else ''}"


def _divergence(screen: Screen, one: Replayed, *, verbose: bool) -> Iterator[str]:
    found = one.divergence
    assert found is not None
    yield f"{screen.safe(address(one))} {screen.paint('differs', 'red')} {what(found)}"
    for word, path, value in _sides(found):
        yield from _side(screen, word, path, value, verbose=verbose)
    for path, value in _reads(found):
        yield from _side(screen, "read", path, value, verbose=verbose)
    yield reach(one)


def _side(screen: Screen, word: str, path: str, value: Any, *, verbose: bool) -> Iterator[str]:
    head = f"  {pad(word, _WORD)}" + (f"{screen.safe(path)} = " if path else "")
    if isinstance(value, _Words):
        yield head + screen.safe(value)
        return
    room = None if verbose else WIDTH - cells(head)
    if room is not None and room < _LEAST:
        yield head.rstrip()
        head = " " * (_WORD + 4)
        room = WIDTH - cells(head)
    yield head + screen.cut(changed.shown(value), room)


class _Words(str):
    """Words of this program, not a value."""

    __slots__ = ()


def _sides(found: Divergence) -> Iterator[Side]:
    """Yield what is recorded and what is replayed, of the parts that differ."""
    recorded, replayed = found.recorded, found.replayed
    if found.layer == "verdict" and isinstance(recorded, Mapping) and isinstance(replayed, Mapping):
        words = [changed.verdict(one, str) for one in (recorded, replayed)]
        if words[0] != words[1]:
            yield "recorded", "", _Words(words[0])
            yield "replayed", "", _Words(words[1])
            return
    if not (isinstance(recorded, Mapping) and isinstance(replayed, Mapping)):
        yield "recorded", "", recorded
        yield "replayed", "", replayed if isinstance(replayed, Mapping) else _said(replayed, found)
        return
    for path in _differing(recorded, replayed)[:_PARTS]:
        yield "recorded", _path(path), paths.get(recorded, paths.parse(path))
        yield "replayed", _path(path), paths.get(replayed, paths.parse(path))


def _said(replayed: Any, found: Divergence) -> Any:
    """A replayed value; where it cannot be made, the words that say why."""
    return _Words(replayed) if isinstance(replayed, str) and found.layer == "proposal" else replayed


def _differing(recorded: Mapping[str, Any], replayed: Mapping[str, Any]) -> list[str]:
    sets, unsets = paths.diff(dict(recorded), dict(replayed))
    return [*unsets, *sets]


def _path(path: str) -> str:
    """A path in a line as people know it: `state_diff["facts.x"]` is `state.facts.x`."""
    first, *rest = paths.parse(path)
    if first == "state_diff" and rest:
        return paths.text(("state", *paths.parse(str(rest[0])), *rest[1:]))
    return path


def _reads(found: Divergence) -> Iterator[tuple[str, Any]]:
    """Yield what the replayed verdict read: what the recorded one had read otherwise, or the first few."""
    if found.layer != "verdict" or not isinstance(found.recorded, Mapping):
        return
    before = found.recorded.get("reads", {})
    others = [path for path, value in found.reads.items() if not paths.same(before.get(path, ABSENT), value)]
    for path in (others or list(found.reads))[:_PARTS]:
        yield path, found.reads[path]


def reach(one: Replayed) -> str:
    """Say which steps are the same, and which were not compared."""
    found = one.divergence
    assert found is not None
    told = []
    if found.same:
        told.append(f"{_steps(1, found.same)} the same")
    first = found.same + (1 if found.step is None else 2)
    if first <= one.steps:
        left = f"{first} to {one.steps} were" if first < one.steps else f"{first} was"
        word = "steps " if first < one.steps else "step "
        told.append(f"{left if told else word + left} not compared")
    return "; ".join(told) or "there are no other steps"


def _steps(first: int, last: int) -> str:
    return f"step {first} is" if first == last else f"steps {first} to {last} are"


# ---- Markdown


def write_markdown(screen: Screen, found: Verified, *, everything: bool = False) -> None:
    """Write a summary for a pull request."""
    screen.line(f"### ledger replay: {'differs' if found.diverged else 'same' if found.ledgers else 'not judged'}")
    screen.line()
    for line in summary(found):
        screen.line(f"- {line}")
    if len(found.diverged) == found.ledgers == 1:
        screen.line(f"- {reach(found.diverged[0])}")
    screen.line()
    if found.diverged:
        shown = found.diverged if everything else found.diverged[:MOST]
        for line in markdown.table(("ledger", "differs", "recorded", "replayed"), map(_row, shown)):
            screen.line(line)
        screen.line()
        if len(found.diverged) > len(shown):
            screen.line(f"... {counted(len(found.diverged) - len(shown), 'more ledger')}")
            screen.line()
    write_unread_markdown(screen, found.unread, everything=everything)


def _row(one: Replayed) -> Sequence[str]:
    assert one.divergence is not None
    sides = {"recorded": "", "replayed": ""}
    for word, path, value in _sides(one.divergence):
        if not sides[word]:
            said = value if isinstance(value, _Words) else values.shown(value, 60) if value is not ABSENT else "none"
            sides[word] = markdown.code(f"{path} = {said}" if path else said)
    return markdown.code(address(one)), markdown.text(what(one.divergence)), *sides.values()


def write_unread_markdown(screen: Screen, unread: Sequence[Unread], *, everything: bool = False) -> None:
    """Write which ledgers could not be judged."""
    if not unread:
        return
    screen.line(f"Not judged: {counted(len(unread), 'ledger')}")
    screen.line()
    for one in unread if everything else unread[:MOST]:
        screen.line(f"- {markdown.text(why(one))}")
    if not everything and len(unread) > MOST:
        screen.line(f"- ... {len(unread) - MOST:,} more")
    screen.line()


# ---- for programs


def line_of(one: Replayed | Unread) -> dict[str, Any] | None:
    """Return a ledger's line of JSON; None if it is the same."""
    if isinstance(one, Unread):
        return {"schema": UNREAD_SCHEMA, **unread_json(one)}
    return None if one.divergence is None else {"schema": LINE_SCHEMA, **_json(one)}


def write_line(screen: Screen, line: Mapping[str, Any]) -> None:
    """Write a line of JSON."""
    screen.data(orjson.dumps(line, paths.plain, orjson.OPT_APPEND_NEWLINE))


def to_json(found: Verified, **told: int) -> dict[str, Any]:
    """Return all as one object; `told` is what the command knows: the exit code, whether it was interrupted."""
    return {
        "schema": SCHEMA,
        "ledgers": found.ledgers,
        "steps": found.steps,
        "untold": found.untold,
        "divergences": [_json(one) for one in found.diverged],
        "unread": [unread_json(one) for one in found.unread],
        **told,
    }


def _json(one: Replayed) -> dict[str, Any]:
    found = one.divergence
    assert found is not None
    named = ("line", "step", "layer", "recorded", "replayed", "reads", "same")
    return {"ledger": one.path, **{name: getattr(found, name) for name in named}, "steps": one.steps}


def unread_json(one: Unread) -> dict[str, Any]:
    """Return why a ledger could not be judged."""
    problems = [str(problem) for problem in one.problems]
    return {"ledger": one.path, "error": one.message, "fix": one.fix, **({"problems": problems} if problems else {})}


def suite(results: Iterable[Replayed | Unread]) -> Suite:
    """Return each ledger as a test that passes if it comes out the same."""
    return Suite("ledger replay", [_case(one) for one in results])


def _case(one: Replayed | Unread) -> Case:
    if isinstance(one, Unread):
        return unread_case(one)
    found = one.divergence
    if found is None:
        return Case(one.path, file=one.path)
    lines = list(_divergence(Screen(None, encoding="utf-8", colour=False), one, verbose=False))
    return Case(one.path, "failure", f"differs {what(found)}", lines, file=one.path, line=found.line)


def unread_case(one: Unread) -> Case:
    """Return a ledger that could not be judged as a test that could not be made."""
    return Case(one.path, "error", why(one), [str(problem) for problem in one.problems], file=one.path)


def to_problems(found: Verified) -> Iterator[Problem]:
    """Yield what GitHub shows beside the ledgers."""
    for one in found.diverged:
        assert one.divergence is not None
        lines = list(_divergence(Screen(None, encoding="utf-8", colour=False), one, verbose=False))
        message, *notes = (line.strip() for line in lines)
        yield Problem("divergence", message, one.path, one.divergence.line, notes=tuple(notes))
    yield from unread_problems(found.unread)


def unread_problems(unread: Iterable[Unread]) -> Iterator[Problem]:
    """Yield that ledgers could not be judged."""
    for one in unread:
        yield Problem("not-judged", why(one), one.path)
