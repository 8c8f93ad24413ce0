"""The state at a step, and how a part of it changed, as lines that are written as in a rule.

Invariants:
* A path is whole and stands as it must be typed; only values are cut (none with -v).
* Masked values stay masked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from ledgercli import paths
from ledgercli.paths import ABSENT
from ledgercli.redaction import is_mask
from ledgercli.reports import values
from ledgercli.reports.cells import WIDTH, cells, pad
from ledgercli.reports.screen import Screen
from ledgercli.tracing import At, Change, Trace, path_text
from ledgercli.wide import MAPS

_LEAST: Final = 12  # cells that a value has at least; else it goes on a line of its own
_STEP: Final = 5  # cells of `@12`
_WORD: Final = 7  # cells of `start`
_DEEP: Final = 2  # keys of a path at which a map is shown on one line: facts.orders


# The state


def write_state(screen: Screen, at: At, verbosity: int = 0) -> None:
    """Write each part on a line: `state.facts.location = "Beijing"`; of one map its entries."""
    if at.value is ABSENT:
        screen.line(f"{screen.safe(path_text(at.path))} is not there")
        return
    for path, value in _parts(at):
        for line in _assigned(screen, path, value, whole=verbosity > 0 or path == at.path):
            screen.line(line)


def _parts(at: At) -> Iterator[tuple[paths.Path, Any]]:
    """Yield what has a line of its own: of the state the entries of its maps, of a map that was asked for its own."""
    depth = max(_DEEP, len(at.path) + 1)
    pending = [(at.path, at.value)]
    while pending:
        path, value = pending.pop()
        if isinstance(value, MAPS) and value and len(path) < depth and not is_mask(value):
            pending.extend(((*path, key), item) for key, item in reversed(list(value.items())))
        else:
            yield path, value


def _assigned(screen: Screen, path: paths.Path, value: Any, *, whole: bool, before: str = "") -> Iterator[str]:
    """Yield `path = value`, the value on a line of its own where the path leaves no room."""
    head = f"{before}{screen.safe(path_text(path))} = "
    room = None if whole else WIDTH - cells(head)
    if room is not None and room < _LEAST:
        yield head.rstrip()
        head = " " * (cells(before) + 2)
        room = WIDTH - cells(head)
    yield head + screen.cut(values.parts(value), room)


def state_json(at: At) -> dict[str, Any]:
    """Return it as an object: `state` is all of it, or `path` and `value` are the part that was asked for."""
    said: dict[str, Any] = {"schema": "state/1", "ledger": at.ledger, "step": at.step}
    if not at.path:
        return {**said, "state": at.value}
    return {**said, "path": path_text(at.path), **_there("value", at.value)}


# A trace


def write_trace(screen: Screen, trace: Trace, verbosity: int = 0) -> None:
    """Write what it was, each change with who made it, and what it is."""
    whole = verbosity > 0
    _write_end(screen, trace.path, trace.start, pad("@0", _STEP) + pad("start", _WORD), whole=whole)
    for change in trace.changes:
        for line in _change(screen, change, whole=whole):
            screen.line(line)
    _write_end(screen, trace.path, trace.value, pad("", _STEP) + pad("end", _WORD), whole=whole)


def _write_end(screen: Screen, path: paths.Path, value: Any, before: str, *, whole: bool) -> None:
    if value is ABSENT:
        screen.line(f"{before}{screen.safe(path_text(path))} is not there")
        return
    for line in _assigned(screen, path, value, whole=whole, before=before):
        screen.line(line)


def _change(screen: Screen, change: Change, *, whole: bool) -> Iterator[str]:
    step = f"@{change.step}" if change.kind == "step" else ""
    if change.new is ABSENT:
        yield f"{pad(step, _STEP)}{pad('unset', _WORD)}{screen.safe(path_text(change.path))}"
    else:
        before = pad(step, _STEP) + pad("set", _WORD)
        yield from _assigned(screen, change.path, change.new, whole=whole, before=before)
    room = None if whole else WIDTH - _STEP - _WORD
    if change.old is not ABSENT:
        yield _under("was", screen.cut(values.parts(change.old), room))
    yield _under("by", _by(screen, change, room))


def _under(word: str, text: str) -> str:
    return " " * _STEP + pad(word, _WORD) + text


def _by(screen: Screen, change: Change, room: int | None) -> str:
    """Say who made a change: the call and what came of it, or which line."""
    line = change.line
    if change.kind == "step":
        outcome = "" if line["outcome"] == "ok" else f"{line['outcome']}: "
        return outcome + screen.cut(_call(line["action"]), None if room is None else room - cells(outcome))
    if change.kind == "resume":
        return f"the resumption after @{change.step}"
    said = f"a rollback to @{line['to']} after @{change.step}"
    who = f", by {line['by']}" if line.get("by") else ""
    why = f": {line['reason']}" if line.get("reason") else ""
    return screen.cut([said, screen.safe(who), screen.safe(why)], room)


def _call(action: Mapping[str, Any]) -> Iterator[str]:
    return values.call(str(action["tool"]), action["args"])


def trace_json(trace: Trace) -> dict[str, Any]:
    """Return it as an object; a value that is not there has no key."""
    return {
        "schema": "trace/1",
        "ledger": trace.ledger,
        "path": path_text(trace.path),
        **_there("start", trace.start),
        "changes": [_change_json(change) for change in trace.changes],
        **_there("value", trace.value),
    }


def _change_json(change: Change) -> dict[str, Any]:
    line = change.line
    about = ("action", "outcome") if change.kind == "step" else ("to", "by", "reason")
    return {
        "kind": change.kind,
        "step": change.step,
        "path": path_text(change.path),
        **_there("old", change.old),
        **_there("new", change.new),
        **{name: line[name] for name in about if name in line},
    }


def _there(name: str, value: Any) -> dict[str, Any]:
    return {} if value is ABSENT else {name: value}
