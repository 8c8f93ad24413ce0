"""Large maps of which a changed copy is cheap.

Invariants:
* A `Wide` never changes, and is equal to the dict on which the same changes were made, order included.
* A change of a map costs the same whether it has a thousand entries or a million.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

WIDE_FROM: Final = 512  # entries: below, copying a dict is cheaper than a `Wide`
_DELTA: Final = 128  # changes that a `Wide` carries before it makes a new base


class _Absent:
    """The type of `ABSENT`."""

    def __repr__(self) -> str:
        return "ABSENT"


ABSENT: Final = _Absent()
"""Stands for the value of a key or path that is not there."""


class Wide(Mapping[Any, Any]):
    """An immutable map of many entries; a changed copy costs the same however many there are.

    It is a base dict, the entries set since and the keys of the base that are hidden (removed, and perhaps set again
    later, at the end). Order is that of a dict on which the same changes were made.

    Arguments:
        base: the entries; nobody may change this dict from now on. The other arguments are for `put` and `drop` alone.

    """

    __slots__ = ("_base", "_delta", "_gone", "_size")

    def __init__(
        self,
        base: dict[Any, Any],
        delta: dict[Any, Any] | None = None,
        gone: frozenset[Any] = frozenset(),
        size: int | None = None,
    ) -> None:
        self._base = base
        self._delta = {} if delta is None else delta
        self._gone = gone
        self._size = len(base) if size is None else size
        if len(self._delta) + len(gone) > _DELTA:
            self._base, self._delta, self._gone = self.to_dict(), {}, frozenset()

    def __getitem__(self, key: Any) -> Any:
        value = self._delta.get(key, ABSENT)
        if value is not ABSENT:
            return value
        if key in self._gone:
            raise KeyError(key)
        return self._base[key]

    def __iter__(self) -> Iterator[Any]:
        gone, base = self._gone, self._base
        yield from (key for key in base if key not in gone) if gone else base
        yield from (key for key in self._delta if key not in base or key in gone)

    def __len__(self) -> int:
        return self._size

    def __repr__(self) -> str:
        return f"Wide({self.to_dict()!r})"

    def to_dict(self) -> dict[Any, Any]:
        """A dict of the same entries, in the same order."""
        entries = self._base.copy()
        for key in self._gone:
            del entries[key]
        entries.update(self._delta)
        return entries

    def put(self, key: Any, value: Any) -> Wide:
        """A copy in which `key` has `value`."""
        delta = self._delta.copy()
        delta[key] = value
        return Wide(self._base, delta, self._gone, self._size + (key not in self))

    def drop(self, key: Any) -> Wide:
        """A copy without `key`, which must be there."""
        delta = self._delta.copy()
        delta.pop(key, None)
        gone = self._gone | {key} if key in self._base else self._gone
        return Wide(self._base, delta, gone, self._size - 1)


MAPS: Final = (dict, Wide)


def with_entry(base: Mapping[Any, Any], key: Any, value: Any) -> dict[Any, Any] | Wide:
    """A copy of a map in which `key` has `value`."""
    if type(base) is not dict:
        assert isinstance(base, Wide)
        return base.put(key, value)
    if len(base) >= WIDE_FROM:
        return Wide(base).put(key, value)
    copy = base.copy()
    copy[key] = value
    return copy


def without_entry(base: Mapping[Any, Any], key: Any) -> dict[Any, Any] | Wide:
    """A copy of a map without `key`, which must be there."""
    if isinstance(base, Wide):
        return base.drop(key)
    assert isinstance(base, dict)
    if len(base) >= WIDE_FROM:
        return Wide(base).drop(key)
    copy = base.copy()
    del copy[key]
    return copy


def plain(value: Any) -> Any:
    """The dict that another kind of map stands for: the `default` of orjson."""
    if isinstance(value, Wide):
        return value.to_dict()
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} is no JSON value")
