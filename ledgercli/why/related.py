"""What is known about the records that a call names.

A record is named by an argument that is its key: `order_id: "#W1"` names `facts.orders["#W1"]`. From there one hop
leads on: a record names others by their keys too, and `user_id` in it is of the kind of `facts.user.id`.

Invariants:
* Only leaves are told; a list is one leaf, and so is what is masked.
* The order is that of the arguments, then of the records; nothing is told twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from ledgercli import cel
from ledgercli.paths import Path
from ledgercli.redaction import is_mask
from ledgercli.why.situations import begins, leaves, read

_ID: Final = "_id"
_FACTS: Final = ("state", "facts")


def related(args: Mapping[str, Any], facts: Mapping[str, Any]) -> Iterator[tuple[Path, Any]]:
    """Yield what is known about the records that a call names, with its path."""
    told: dict[Path, None] = {}
    for path in [*(named := list(dict.fromkeys(_named(_texts(args), facts)))), *_hops(named, facts)]:
        value = _at(facts, path)
        if not any(begins(other, path) for other in told):
            told[path] = None
            for inside, leaf in values_in(value, path):
                if leaf != path[-1]:  # that the record has its id is no news
                    yield (*_FACTS, *inside), leaf


def unread(args: Mapping[str, Any], facts: Mapping[str, Any], reads: Iterable[str]) -> list[tuple[str, Any]]:
    """Return what is known about the records that a call names and was not read, by path as it is typed."""
    seen = [one.path for one in map(read, reads) if one.kind in ("value", "size") and one.path[:2] == _FACTS]
    return [
        (cel.path_text(path), value)
        for path, value in related(args, facts)
        if not any(begins(path, other) or begins(other, path) for other in seen)
    ]


def _texts(value: Any) -> Iterator[str]:
    for _, leaf in leaves(value):
        if isinstance(leaf, str):
            yield leaf


def _named(texts: Iterable[str], facts: Mapping[str, Any]) -> Iterator[Path]:
    """Yield the records of which a text is the key."""
    records = [name for name, value in facts.items() if isinstance(value, Mapping) and not is_mask(value)]
    for text in texts:
        yield from ((name, text) for name in records if isinstance(facts[name].get(text), Mapping))


def _hops(named: Iterable[Path], facts: Mapping[str, Any]) -> Iterator[Path]:
    """Yield where one hop leads: other records by key, and facts of the kind of an id."""
    for path in named:
        record = _at(facts, path)
        yield from _named(_texts(record), facts)
        for key in record:
            if key.endswith(_ID):
                kind = key.removesuffix(_ID)
                if isinstance(facts.get(kind), Mapping) and "id" in facts[kind]:
                    yield (kind, "id")
                if key in facts:
                    yield (key,)


def _at(facts: Mapping[str, Any], path: Path) -> Any:
    value: Any = facts
    for key in path:
        value = value[key]
    return value


def values_in(value: Any, path: Path) -> Iterator[tuple[Path, Any]]:
    """Yield each value that is no map, with its place; a mask is a value."""
    if isinstance(value, Mapping) and value and not is_mask(value):
        for key, item in value.items():
            yield from values_in(item, (*path, key))
    else:
        yield path, value
