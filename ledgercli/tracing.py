"""The state at a step of a ledger (`FILE@N`), and how one part of it changed over the run.

Invariants:
* Light: only the lines' diffs are followed; no pack is compiled and nothing is judged.
* `@N` is the state after step N's line, `@0` the one that the run began with. Rollbacks and resumptions that come
  later are no part of it.
* A trace is whole: its changes, made one after the other on `start`, give `value`.
* A path is the text that a rule has for it, with or without `state.`, its keys in either kind of quotes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from ledgercli import cel, paths
from ledgercli.addresses import no_such_step
from ledgercli.errors import LedgerCliError
from ledgercli.gathering import one
from ledgercli.paths import ABSENT
from ledgercli.state import PARTS
from ledgercli.story import CHANGING, Story, follow
from ledgercli.wide import MAPS

_ROOT: Final = "state"
_FEW: Final = 3  # names that are all told, where none is near
_COUNTED: Final = "step"  # a part of the state that no diff changes


@dataclass(frozen=True, slots=True)
class At:
    """The state after a step, or a part of it.

    Arguments:
        ledger: the file.
        step: after which step; 0: as the run began.
        path: which part; empty: all of it.
        value: that part; `ABSENT` if it is not there at this step, though it is at another.

    """

    ledger: str
    step: int
    path: paths.Path
    value: Any


@dataclass(frozen=True, slots=True)
class Change:
    """One change of a value.

    Arguments:
        kind: of the line that changed it: `step`, `rollback` or `resume`.
        step: the number of the step; of another line, of the latest step before it.
        path: what changed: the traced path or a part of it.
        old: the value before; `ABSENT` if it was not there.
        new: the value after; `ABSENT` if it was removed.
        line: what the line says: `action` and `outcome`, or `to`, `by` and `reason`.

    """

    kind: str
    step: int
    path: paths.Path
    old: Any
    new: Any
    line: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Trace:
    """How a value changed over a run.

    Arguments:
        ledger: the file.
        path: what was traced.
        start: its value at the beginning; `ABSENT` if it was not there.
        changes: in order.
        value: its value at the end; `ABSENT` if it is not there.

    """

    ledger: str
    path: paths.Path
    start: Any
    changes: tuple[Change, ...]
    value: Any


def state_at(ledger: str, step: int, of: str | None = None) -> At:
    """Return the state after a step, or the part of it at the path `of`.

    Raises:
        UnreadableInputError: there is no such ledger.
        LedgerCliError: there is no such step, or nothing is ever at that path.
        LedgerFormatError: the ledger is damaged before that step.

    """
    path = state_path(of) if of is not None else ()
    tree = _tree_at(one(ledger), step)
    value = paths.get(tree, path)
    if value is ABSENT:
        _follow(ledger, path)  # raises if it never was there
    return At(ledger, step, path, value)


def _tree_at(ledger: str, step: int) -> paths.Map:
    steps = 0
    for entry, story in follow(ledger):
        if step == 0 or (entry.kind == "step" and entry.record["step"] == step):
            return {**story.tree, _COUNTED: step}
        steps = story.steps
    if step <= steps:
        raise LedgerCliError(f"{ledger}@{step} has no outcome yet", fix=f"{ledger}@{step - 1} is the state before it")
    raise no_such_step(ledger, steps)


def trace(ledger: str, of: str) -> Trace:
    """Return every change of a path, or of parts of it.

    Raises:
        UnreadableInputError: there is no such ledger.
        LedgerCliError: nothing is ever at that path.
        LedgerFormatError: the ledger is damaged.

    """
    path = state_path(of)
    if path[:1] == (_COUNTED,) or not path:
        fix = "trace a part of it, such as state.facts"
        raise LedgerCliError(f"{of} is not traced: it changes with every step", fix=fix)
    return _follow(one(ledger), path)


def _follow(ledger: str, path: paths.Path) -> Trace:
    start: Any = ABSENT
    before: paths.Map = {}
    changes: list[Change] = []
    for entry, story in follow(ledger):
        if entry.kind == "open":
            start = paths.get(story.tree, path)
        elif entry.kind in CHANGING:
            changes += _changes(entry.record, path, before, story)
        before = story.tree
    if start is ABSENT and not changes:
        raise _never(ledger, path)
    return Trace(ledger, path, start, tuple(changes), paths.get(before, path))


def _changes(line: Mapping[str, Any], path: paths.Path, before: paths.Map, story: Story) -> Iterator[Change]:
    step = line["step"] if line["kind"] == "step" else story.steps
    for text in (*line.get("state_unset", ()), *line.get("state_diff", {})):
        touched = paths.parse(text)
        if touched[: len(path)] != path[: len(touched)]:
            continue
        at = max(touched, path, key=len)
        old, new = paths.get(before, at), paths.get(story.tree, at)
        if not paths.same(old, new):
            yield Change(line["kind"], step, at, old, new, line)


# Paths


def state_path(text: str) -> paths.Path:
    """Return the path that a text names, below the state; empty for the state itself.

    Raises:
        LedgerCliError: it is no path, or names no part of the state.

    """
    try:
        keys = tuple(_keys(cel.parse(text).node))
    except (cel.CelSyntaxError, ValueError):
        fix = """write it as in a rule: state.facts.orders["#W1"].status"""
        raise LedgerCliError(f"{text} is no path", fix=fix) from None
    path = keys[1:] if keys[0] == _ROOT else keys
    if path and path[0] not in (*PARTS, _COUNTED):
        near = cel.nearest(str(path[0]), (*PARTS, _COUNTED))
        there = " or ".join(f"{_ROOT}.{name}" for name in near) if near else ", ".join(PARTS)
        raise LedgerCliError(f"no part {path[0]} of the state; there is {there}")
    return path


def path_text(path: paths.Path) -> str:
    """Return a path as it is typed in a rule."""
    return paths.text((_ROOT, *path))


def _keys(node: cel.Node) -> Iterator[str | int]:
    """Yield the keys of a path that is written as an expression; raises `ValueError` where it is another."""
    if isinstance(node, cel.Name) and not node.absolute:
        yield node.name
    elif isinstance(node, cel.Select):
        yield from _keys(node.operand)
        yield node.field
    elif isinstance(node, cel.Index) and isinstance(node.key, cel.Literal) and type(node.key.value) in (str, int):
        yield from _keys(node.operand)
        yield node.key.value
    else:
        raise ValueError(node)


def _never(ledger: str, path: paths.Path) -> LedgerCliError:
    """Return the error that nothing ever is at a path, with the nearest that was there at some time."""
    known, siblings = 0, set[str]()
    for _, story in follow(ledger):
        depth = next(n for n in range(len(path), -1, -1) if n == 0 or paths.get(story.tree, path[:n]) is not ABSENT)
        if depth > known:
            known, siblings = depth, set[str]()
        if depth == known and isinstance(below := paths.get(story.tree, path[:known]), MAPS):
            siblings.update(map(str, below))
    names = cel.nearest(str(path[known]), siblings) or sorted(siblings if len(siblings) <= _FEW else ())
    near = [path_text((*path[:known], name)) for name in names]
    there = f"; there is {' or '.join(near)}" if near else ""
    return LedgerCliError(f"{ledger} has no {path_text(path[: known + 1])}, at any step{there}")
