"""A path into a value and its text; new versions of a tree; the difference of two trees.

A *tree* is JSON data: maps with text keys, lists, text, numbers, bools, null. A *path* is a tuple of keys and list
indexes; its text is what a rule says: `facts.orders["#W1.2"].status`, `facts.list[0]`.

Invariants:
* A path has exactly one text, and `parse` accepts no other: two entries of a diff never mean the same place.
* No function changes a tree that it is given; a new tree shares with the old one all that lies off the changed paths.
* `patch(old, *diff(old, new))` equals `new`, types included: `1`, `1.0` and `true` are three values.
* A diff is net: lists are replaced whole, and none of its paths begins another.
* A map of many entries becomes a `Wide` when it changes, so that a change costs the same however many there are.

Deliberately not done here: reading paths that are computed (`facts.orders[action.args.id]`), which the policy language
does.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from json.encoder import encode_basestring as _quote
from typing import Any, Final, TypeAlias

from ledgercli.errors import LedgerCliError
from ledgercli.wide import ABSENT, MAPS, Wide, plain, with_entry, without_entry

__all__ = [
    "ABSENT",
    "Map",
    "Path",
    "PathError",
    "Wide",
    "diff",
    "diff_at",
    "drop",
    "get",
    "parse",
    "patch",
    "plain",
    "put",
    "same",
    "text",
]

Path: TypeAlias = tuple[str | int, ...]
Map: TypeAlias = Mapping[str, Any]  # a dict or a `Wide`, and so are the maps in it

_CACHED: Final = 200  # characters: longer texts are not kept, so that hostile keys cannot fill the cache

_KEYWORDS: Final = frozenset({"true", "false", "null", "in"})  # CEL has no selector of these names
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PART: Final = re.compile(
    r"""(?P<name>(?:^|\.)[A-Za-z_][A-Za-z0-9_]*)
    |\[(?P<index>0|[1-9][0-9]*)\]
    |\[(?P<quoted>"(?:[^"\\]|\\.)*")\]""",
    re.VERBOSE | re.DOTALL,
)


class PathError(LedgerCliError):
    """A text that is no path, or a path that does not fit the tree."""


# Text


def text(path: Path) -> str:
    """The path as a rule says it."""
    return "".join([_part(key, first=not at) for at, key in enumerate(path)])


@lru_cache(maxsize=8192)
def _parse_cached(source: str) -> Path:
    return _parse(source)


def parse(source: str) -> Path:
    """The path that `source` says; raises `PathError` for any text but the one that `text` writes."""
    return _parse_cached(source) if len(source) <= _CACHED else _parse(source)


def _part(key: str | int, *, first: bool) -> str:
    if isinstance(key, int):
        return f"[{key}]"
    if key.isidentifier() and key.isascii() and key not in _KEYWORDS:
        return key if first else "." + key
    return f"[{_quote(key)}]"


def _parse(source: str) -> Path:
    if not source:
        raise PathError("an empty text is no path")
    keys: list[str | int] = []
    at = 0
    while at < len(source):
        match = _PART.match(source, at)
        if match is None:
            raise PathError(_complaint(source, at))
        keys.append(_key(match, source))
        at = match.end()
    return tuple(keys)


def _key(match: re.Match[str], source: str) -> str | int:
    """The key of one matched part, which must be spelled as `_part` spells it."""
    if match["index"] is not None:
        return int(match["index"])
    if match["quoted"] is None:
        key = match["name"].removeprefix(".")
    else:
        try:
            key = json.loads(match["quoted"])
        except ValueError as error:
            raise PathError(f"{_at(source, match.start())}: this is no JSON text") from error
    spelled = _part(key, first=not match.start())
    if spelled != match.group():
        raise PathError(f"{_at(source, match.start())}: write {spelled}, not {match.group()}")
    return key


def _complaint(source: str, at: int) -> str:
    rest = source[at:]
    if rest.startswith("."):
        why = "a name must follow the dot"
    elif rest.startswith("["):
        why = 'brackets hold an index or a key in double quotes: [0], ["#W1"]'
    else:
        why = 'a key that is no plain name stands in brackets: ["#W1"]'
    return f"{_at(source, at)}: {why}"


def _at(source: str, at: int) -> str:
    return f"path {source[:_CACHED]} at character {at + 1}"


# Reading and changing


def get(tree: Any, path: Path, default: Any = ABSENT) -> Any:
    """The value at `path`, or `default`: `ABSENT` unless another is given."""
    for key in path:
        if isinstance(tree, MAPS):
            tree = tree.get(key, ABSENT)
        elif isinstance(tree, list) and type(key) is int and key < len(tree):
            tree = tree[key]
        else:
            return default
        if tree is ABSENT:
            return default
    return tree


def put(tree: Map, path: Path, value: Any, *, make: bool = True) -> Map:
    """A tree in which `path` has `value`; maps missing on the way are made, unless `make` is false.

    Raises:
        PathError: something on the way is no map, or is missing and not to be made.

    """
    return _put(tree, path, 0, value, make)


def drop(tree: Map, path: Path) -> Map:
    """A tree without `path`.

    Raises:
        PathError: there is nothing at `path`.

    """
    return _drop(tree, path, 0)


def patch(tree: Map, sets: Mapping[str, Any], unsets: Iterable[str] = ()) -> Map:
    """The tree after a diff, as it stands in a ledger.

    Raises:
        PathError: a text is no path, a map on the way is missing, or a path to be removed is not there.

    """
    for source in unsets:
        tree = _drop(tree, parse(source), 0)
    for source, value in sets.items():
        tree = _put(tree, parse(source), 0, value, False)
    return tree


def _put(tree: Map, path: Path, at: int, value: Any, make: bool) -> Map:  # noqa: FBT001 - one call a level, on the hot path
    key = path[at]
    if type(key) is not str:
        raise PathError(f"{text(path)}: a list is replaced whole, never one of its elements")
    if at + 1 < len(path):
        below = tree.get(key, ABSENT)
        if below is ABSENT and make:
            below = {}
        if not isinstance(below, MAPS):
            raise PathError(f"{text(path)} cannot be set: {text(path[: at + 1])} is {_kind(below)}")
        value = _put(below, path, at + 1, value, make)
    return with_entry(tree, key, value)


def _drop(tree: Map, path: Path, at: int) -> Map:
    key = path[at]
    below = tree.get(key, ABSENT) if type(key) is str else ABSENT
    if below is ABSENT:
        raise PathError(f"{text(path)} cannot be removed: {text(path[: at + 1])} is not there")
    if at + 1 < len(path):
        if not isinstance(below, MAPS):
            raise PathError(f"{text(path)} cannot be removed: {text(path[: at + 1])} is {_kind(below)}")
        return _put(tree, path[: at + 1], at, _drop(below, path, at + 1), False)
    return without_entry(tree, key)


def _kind(value: Any) -> str:
    return "not there" if value is ABSENT else "no map"


# Differences


def diff(old: Map, new: Map) -> tuple[dict[str, Any], list[str]]:
    """What must be set and what removed to make `new` of `old`; parts that are the same object are skipped."""
    sets: dict[str, Any] = {}
    unsets: list[str] = []
    _diff(old, new, "", sets, unsets)
    return sets, unsets


def diff_at(old: Map, new: Map, touched: Iterable[Path]) -> tuple[dict[str, Any], list[str]]:
    """As `diff`, for trees that differ at most at or below the `touched` paths: costs what these cost."""
    sets: dict[str, Any] = {}
    unsets: dict[str, None] = {}
    for path in touched:
        removed: list[str] = []
        _diff_along(old, new, path, sets, removed)
        unsets.update(dict.fromkeys(removed))
    return sets, list(unsets)


def _diff_along(old: Map, new: Map, path: Path, sets: dict[str, Any], unsets: list[str]) -> None:
    """Walk down `path` to where the two trees first differ in shape, or to its end."""
    at = ""
    for key in path:
        if type(key) is not str:
            break
        before, after = old.get(key, ABSENT), new.get(key, ABSENT)
        if before is after:
            return
        inside = at + _part(key, first=not at)
        if not (isinstance(before, MAPS) and isinstance(after, MAPS)):
            _diff_value(before, after, inside, sets, unsets)
            return
        old, new, at = before, after, inside
    _diff(old, new, at, sets, unsets)


def _diff(old: Map, new: Map, at: str, sets: dict[str, Any], unsets: list[str]) -> None:
    kept = 0
    for key, after in new.items():
        before = old.get(key, ABSENT)
        kept += before is not ABSENT
        if before is after:
            continue
        inside = at + _part(key, first=not at)
        if isinstance(before, MAPS) and isinstance(after, MAPS):
            _diff(before, after, inside, sets, unsets)
        else:
            _diff_value(before, after, inside, sets, unsets)
    if kept < len(old):
        unsets.extend(at + _part(key, first=not at) for key in old if key not in new)


def _diff_value(before: Any, after: Any, at: str, sets: dict[str, Any], unsets: list[str]) -> None:
    if after is ABSENT:
        unsets.append(at)
    elif not same(before, after):
        sets[at] = after


def same(one: Any, other: Any) -> bool:
    """Whether two values are equal, types included: `1`, `1.0` and `true` differ, and so do `0.0` and `-0.0`."""
    if one is other:
        return True
    if isinstance(one, MAPS):
        return (
            isinstance(other, MAPS)
            and len(one) == len(other)
            and all(same(value, other.get(key, ABSENT)) for key, value in one.items())
        )
    if type(one) is not type(other):
        return False
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    if type(one) is float and not one:
        return str(one) == str(other)
    return bool(one == other)
