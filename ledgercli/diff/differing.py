"""Where two values differ: the one door to deepdiff, which is imported when something differs and not before.

Invariants:
* Whatever differs is told: where deepdiff sees no difference (`0.0` and `-0.0`), the whole value is.
* Types count: `1`, `1.0` and `true` are three values.
* Values that deepdiff would take long for (long lists, long texts) are compared part by part, lists as a whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from ledgercli import paths
from ledgercli.paths import ABSENT, Path

_LONG_LIST: Final = 200  # items
_LONG_TEXT: Final = 10_000  # characters
_PARTS: Final = 5_000


class Change(NamedTuple):
    """One place at which two values differ.

    Arguments:
        path: where.
        a: what the one has there; `ABSENT`: nothing.
        b: what the other has there.

    """

    path: Path
    a: Any
    b: Any


def changes(a: Any, b: Any) -> list[Change]:
    """Return where two JSON values differ, in the order of their paths; a whole value has the path `()`."""
    if paths.same(a, b):
        return []
    if not (isinstance(a, Mapping) and isinstance(b, Mapping)) and not (isinstance(a, list) and isinstance(b, list)):
        return [Change((), a, b)]
    quick = _left(a, _PARTS) > 0 and _left(b, _PARTS) > 0
    found = sorted(_deep(a, b), key=_order) if quick else set_of(a, b)
    return found or [Change((), a, b)]


def set_of(a: Any, b: Any) -> list[Change]:
    """Return where two maps differ, lists as a whole; of other values the whole."""
    if not (isinstance(a, Mapping) and isinstance(b, Mapping)):
        return [Change((), a, b)]
    sets, unsets = paths.diff(a, b)
    where = [*map(paths.parse, sets), *map(paths.parse, unsets)]
    return sorted((Change(path, paths.get(a, path), paths.get(b, path)) for path in where), key=_order)


def _order(change: Change) -> list[tuple[int, str]]:
    return [(key, "") if isinstance(key, int) else (-1, key) for key in change.path]


def _deep(a: Any, b: Any) -> Iterator[Change]:
    from deepdiff import DeepDiff

    found = DeepDiff(a, b, view="tree", ignore_private_variables=False, threshold_to_diff_deeper=0)
    for levels in found.values():
        for level in levels:
            path = tuple(level.path(output_format="list"))
            yield Change(path, _side(level.t1), _side(level.t2))


def _side(value: Any) -> Any:
    """What deepdiff says of one side: it has a value of its own for what is not there."""
    from deepdiff.helper import NotPresent

    return ABSENT if isinstance(value, NotPresent) else value


def _left(value: Any, parts: int) -> int:
    """What is left of a number of parts once those of a value are taken off; nothing if one of them is long."""
    if isinstance(value, str):
        return 0 if len(value) > _LONG_TEXT else parts
    if not isinstance(value, (Mapping, list)):
        return parts
    if isinstance(value, list) and len(value) > _LONG_LIST:
        return 0
    parts -= len(value)
    for part in value.values() if isinstance(value, Mapping) else value:
        if parts <= 0:
            return 0
        parts = _left(part, parts)
    return parts
