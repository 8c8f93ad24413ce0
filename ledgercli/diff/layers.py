"""The layers of a step: what was proposed, answered, returned and changed, without what does not count.

Invariants:
* What only counts or dates does not count: times, ids, the numbers of steps, how many rules applied, and what the
  functions over past steps answered. Otherwise one more step would make all that follow another.
* Reads of the proposal are not among the verdict: they are the proposal. That an executed step clears the error before
  it is no change of its own.
* Two masks are the same: each run has a key of its own, so that their digests tell nothing.

A *mark* is a line beside the steps that has layers too: a rollback, an approval, a resume.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias, get_args

import orjson

from ledgercli import paths
from ledgercli.errors import LedgerCliError

Layer: TypeAlias = Literal["proposal", "verdict", "result", "state"]
FailOn: TypeAlias = Literal["any", "worse", "verdicts", "state"]
LAYERS: Final[tuple[Layer, ...]] = get_args(Layer)  # in the order in which they come about
MARKS: Final = frozenset({"rollback", "approval", "resume"})

_ROOTS: Final = ("action", "result", "verdict", "state")
_FINDINGS: Final = ("failed", "warned", "overridden", "shadowed")
_SAID: Final = ("effect", *_FINDINGS, "reason", "hint", "missing", "establish", "halts")
_UNCOUNTED: Final = ("state.step", "state.ledger")  # reads that are numbers of steps
_MASK: Final = re.compile(rb"(?<=hmac-sha256:)[0-9a-f]{64}|(?<=\[redacted )[0-9a-f]{12}(?=\])")


@dataclass(frozen=True, slots=True)
class Counting:
    """What counts as a difference.

    Arguments:
        ignore: paths that do not, with all below them: `action.args.note`, `result.data`, `verdict`.
        only: the one layer that counts, if it is only one.
        times: whether times count.

    """

    ignore: tuple[paths.Path, ...] = ()
    only: Layer | None = None
    times: bool = False

    @classmethod
    def of(cls, ignore: tuple[str, ...] = (), only: Layer | None = None, *, times: bool = False) -> Counting:
        """Return it for paths that are given as text.

        Raises:
            LedgerCliError: a text is no path, or one of nothing that a step has.

        """
        parsed = tuple(map(paths.parse, ignore))
        for text, path in zip(ignore, parsed, strict=True):
            if path[0] not in _ROOTS:
                fix = "action.args.note, result.data.time, state.facts.x and verdict.reads are such paths"
                raise LedgerCliError(f"{text} is no part of a step", fix=fix)
        return cls(parsed, only, times)


def layers(record: Mapping[str, Any], counting: Counting) -> dict[Layer, Any]:
    """Return the layers of a line, without what does not count."""
    found = _of_mark(record) if record["kind"] in MARKS else _of_step(record, times=counting.times)
    for path in counting.ignore:
        found = _without(found, path)
    return found


def _of_step(record: Mapping[str, Any], *, times: bool) -> dict[Layer, Any]:
    action, verdict = record["action"], record["verdict"]
    said = None
    if verdict is not None:
        said = {key: verdict[key] for key in _SAID if key in verdict}
        said["reads"] = {key: value for key, value in verdict["reads"].items() if _counts(key)}
        if "approval" in verdict:
            said["approval"] = True  # the number of the step that waited is no content
    result = {"outcome": record.get("outcome"), "result": record.get("result")}
    if times:
        said, result = {**(said or {}), "now": record["now"]}, {**result, "at": record["at"]}
    return {
        "proposal": {"tool": action["tool"], "args": action["args"]},
        "verdict": said,
        "result": result,
        "state": _state(record),
    }


def _of_mark(record: Mapping[str, Any]) -> dict[Layer, Any]:
    kind = record["kind"]
    said = {key: record[key] for key in ("answer", "by", "reason") if key in record}
    files = [[file["kind"], file["name"], file["digest"]] for file in record.get("files", ())]
    return {
        "proposal": {"kind": kind, **({} if kind == "approval" else said), **({"files": files} if files else {})},
        "verdict": said if kind == "approval" else None,
        "result": None,
        "state": _state(record),
    }


def _state(record: Mapping[str, Any]) -> dict[str, Any]:
    """The change of the state, by paths."""
    sets = {path: value for path, value in record.get("state_diff", {}).items() if path != "error" or value is not None}
    found = {
        "state_diff": sets,
        "state_unset": sorted(record.get("state_unset", ())),
        "problems": record.get("problems"),
    }
    return {key: value for key, value in found.items() if value}


def _counts(read: str) -> bool:
    """Whether a read is of the state: not of the proposal, which is a layer itself, nor a count of past steps."""
    return read.startswith("state.") and not read.startswith(_UNCOUNTED)


def judgement(verdict: Any) -> tuple[Any, ...]:
    """What was answered, without words and values: the effect, the rules by name, whether a person was asked."""
    if not isinstance(verdict, Mapping):
        return ()
    rules = [(key, *sorted(found["rule"] for found in verdict[key])) for key in _FINDINGS if key in verdict]
    return (*(verdict.get(key) for key in ("effect", "halts", "approval", "answer")), *rules)


# What is ignored


def _without(found: dict[Layer, Any], path: paths.Path) -> dict[Layer, Any]:
    root, rest = path[0], path[1:]
    if root == "result":
        return {**found, "result": _less(found["result"], ("result", *rest) if rest else ())}
    if root == "verdict":
        return {**found, "verdict": _less_keys(found["verdict"], rest)}
    verdict = found["verdict"]
    if isinstance(verdict, Mapping) and "reads" in verdict:
        verdict = {**verdict, "reads": _less_paths(verdict["reads"], path)}
    if root == "action":
        return {**found, "verdict": verdict, "proposal": _less(found["proposal"], rest)}
    state = found["state"]
    if state:
        sets = _less_paths(state.get("state_diff", {}), rest)
        unsets = [text for text in state.get("state_unset", ()) if not _begins(rest, _path(text))]
        kept = {"state_diff": sets, "state_unset": unsets, "problems": state.get("problems") if rest else None}
        state = {key: value for key, value in kept.items() if value}
    return {**found, "verdict": verdict, "state": state}


def _less_keys(verdict: Any, rest: paths.Path) -> Any:
    """A verdict without a path; `reads` are known by their own paths: `verdict.reads["state.facts.x"]`."""
    return None if not rest else _less(verdict, rest)


def _less_paths(values: Mapping[str, Any], path: paths.Path) -> dict[str, Any]:
    """A map by paths without what stands at one, or below it."""
    kept = {}
    for text, value in values.items():
        at = _path(text)
        if not _begins(path, at):
            kept[text] = _less(value, path[len(at) :]) if _begins(at, path) else value
    return kept


def _path(text: str) -> paths.Path:
    """The path that a text says; what says none stands beside all paths."""
    try:
        return paths.parse(text)
    except paths.PathError:
        return ("", text)


def _begins(one: paths.Path, other: paths.Path) -> bool:
    return other[: len(one)] == one


def _less(value: Any, path: paths.Path) -> Any:
    """A value without what stands at a path; in a list a null is left, so that nothing else moves."""
    if not path:
        return None
    key = path[0]
    if isinstance(value, Mapping) and key in value:
        less = _less(value[key], path[1:])
        return {name: less if name == key else kept for name, kept in value.items() if len(path) > 1 or name != key}
    if isinstance(value, list) and isinstance(key, int) and key < len(value):
        return [*value[:key], _less(value[key], path[1:]), *value[key + 1 :]]
    return value


# Whole states


def states_apart(one: paths.Map, other: paths.Map, counting: Counting) -> tuple[paths.Map, paths.Map]:
    """Return two states without what is ignored, the numbers of steps and the digests of masks."""
    for path in (("step",), *(path[1:] for path in counting.ignore if path[0] == "state")):
        one, other = (_less(tree, path) or {} for tree in (one, other))
    return comparable(one), comparable(other)


def comparable(value: Any) -> Any:
    """Return a value in which all masks are the same."""
    data = orjson.dumps(value, paths.plain)
    return orjson.loads(masks_alike(data)) if _MASK.search(data) else value


def masks_alike(data: bytes) -> bytes:
    """Return the bytes of a value, or of a line, without the digests of masks."""
    return _MASK.sub(b"", data) if b"redacted" in data else data
