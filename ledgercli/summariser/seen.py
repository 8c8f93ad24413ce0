"""What is kept of a step once it is past: short texts, whatever the line's length."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, Final

import msgspec

from ledgercli import paths
from ledgercli.records import Line
from ledgercli.summariser.texts import call, cut, inert, json_text

CALL, RESULT, REASON, SAID = 700, 4_000, 400, 1_500  # characters that are kept of each
_SMALL: Final = 80  # characters of a result that is kept with its call when the step is folded
_MANY: Final = 60  # records of a result that are looked for among the facts
_PATHS: Final = 8  # changed paths that are named
_TOLD: Final = ("error", "status", "final_answer", "goal")  # parts of a diff that are told otherwise
_NAMES: Final = 64  # values of arguments that are remembered as named

OUTCOMES: Final[Mapping[str, str]] = {
    "ok": "succeeded",
    "error": "failed",
    "denied": "denied",
    "waiting": "waits for an approval",
    "cancelled": "cancelled",
    "unknown": "not known what came of it",
}


class Refusal(msgspec.Struct, frozen=True):
    """One rule that refused a call.

    Arguments:
        rule: `pack/rule`.
        error: its message.
        hint: what to do instead.

    """

    rule: str
    error: str
    hint: str | None


class Seen(msgspec.Struct, frozen=True):
    """A step.

    Arguments:
        step: its number.
        tool: which tool was called.
        call: the call as text.
        outcome: what came of it.
        result: what it returned, or why it failed, as text; empty where there is none.
        small: call and result in a few words; None where they are longer than that.
        sets: the paths that it changed, as text.
        more: how many others it changed.
        refused: the rules that refused it.
        missing: paths that would have had to be known.
        establish: tools that can make them known.
        goals: the goals that it closed.
        said: whether it is what the user said, not a call.
        loose: whether its result is a long one that has become no fact.

    """

    step: int
    tool: str
    call: str
    outcome: str
    result: str = ""
    small: str | None = None
    sets: tuple[str, ...] = ()
    more: int = 0
    refused: tuple[Refusal, ...] = ()
    missing: tuple[str, ...] = ()
    establish: tuple[str, ...] = ()
    goals: tuple[str, ...] = ()
    said: bool = False
    loose: bool = False

    @property
    def changed(self) -> str:
        """`; set facts.a, facts.b and 3 more`; empty where nothing changed."""
        return changed(self.sets, self.more)


def changed(sets: tuple[str, ...], more: int) -> str:
    """Return what was set, as it goes on behind a call."""
    if not sets:
        return ""
    return f"; set {', '.join(sets)}" + (f" and {more:,} more" if more else "")


def seen(line: Line, where: str) -> Seen:
    """Return what is kept of a `step` or `intent` line.

    Arguments:
        line: the line.
        where: where it stands, as `@7`.

    """
    action, verdict, result = line["action"], line["verdict"] or {}, line.get("result")
    diff, unset = line.get("state_diff", {}), line.get("state_unset", ())
    sets = [path for path in diff if not path.startswith(_TOLD)]
    sets = [*_together(sets), *(f"{path} (removed)" for path in unset)]
    asked = call(action["tool"], action["args"])
    whole, kept = _result(result, diff)
    return Seen(
        step=line["step"],
        tool=action["tool"][:CALL],
        call=cut(asked, CALL, where),
        outcome=line.get("outcome", "begun"),
        result=cut(whole, RESULT, where),
        small=f"{asked} = {whole}" if whole and not kept and len(asked) + len(whole) <= _SMALL else None,
        sets=tuple(cut(inert(path), 120) for path in sets[:_PATHS]),
        more=max(len(sets) - _PATHS, 0),
        refused=tuple(
            Refusal(found["rule"], _short(found["error"]), _short(found["hint"]) if "hint" in found else None)
            for found in verdict.get("failed", ())[:_PATHS]
        ),
        missing=tuple(verdict.get("missing", ())[:_PATHS]),
        establish=tuple(verdict.get("establish", ())[:_PATHS]),
        goals=tuple(
            str(_parsed(path)[-1]) for path, value in diff.items() if path.startswith("goals") and value is True
        ),
        said=line["verdict"] is None,
        loose=len(whole) > _SMALL and not kept and line.get("outcome") == "ok",
    )


def _short(text: Any) -> str:
    return cut(json_text(text), REASON)


def _result(result: Mapping[str, Any] | None, diff: Mapping[str, Any]) -> tuple[str, bool]:
    """Return a result as text, and whether that only names the fact that it has become."""
    if result is None:
        return "", False
    if not result["success"]:
        return json_text(result.get("error", result.get("data"))), False
    data = result.get("data")
    if data is None:
        return "", False
    text = json_text(data)
    if len(text) > _SMALL and (kept := _kept(data, diff)):
        return f"kept as {kept}", True
    return text, False


def _kept(data: Any, diff: Mapping[str, Any]) -> str:
    """Return the facts that a result, or each record of it, has become; empty where something of it has not."""
    whole = [path for path, value in diff.items() if value == data]
    if whole:
        return inert(whole[0])
    records = list(islice(_records(data), _MANY))
    values = list(islice(diff.values(), _MANY * 4))
    if not records or len(records) == _MANY or not all(one in values for one in records):
        return ""
    return ", ".join(cut(inert(path), 120) for path in _together([path for path in diff if diff[path] in records]))


def _records(data: Any) -> Iterator[Any]:
    """Yield the records of a list, and of lists in it; something else stands for itself."""
    if not isinstance(data, list):
        yield data
        return
    for one in data:
        yield from _records(one)


def _together(sets: list[str]) -> Iterator[str]:
    """Yield changed paths; records of one fact that were changed together are counted."""
    groups: dict[tuple[Any, ...], list[str]] = {}
    for path in sets:
        groups.setdefault(_parsed(path)[:2], []).append(path)
    for keys, group in groups.items():
        yield group[0] if len(group) == 1 else f"{paths.text(keys)} ({len(group)} parts)"


def _parsed(path: str) -> paths.Path:
    try:
        return paths.parse(path)
    except paths.PathError:
        return (path,)


def named(value: Any, left: list[int] | None = None) -> Iterator[str]:
    """Yield texts in the arguments of a call, which may be ids of records; not more than a few."""
    left = left or [_NAMES]
    if isinstance(value, str):
        if len(value) <= 200 and left[0] > 0:
            left[0] -= 1
            yield value
    elif isinstance(value, (Mapping, list, tuple)) and left[0] > 0:
        for inner in value.values() if isinstance(value, Mapping) else value:
            yield from named(inner, left)
