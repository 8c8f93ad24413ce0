"""The facts of a state as lines, within a number of characters.

Invariants:
* Exact: a line or row gives a value as it is, or says that it is cut and where it stands whole.
* Records of one shape stand in one table, so that their keys are said once.
* Where there is no room for all, those that were set or named last stay, and the others are counted.
* The same state gives the same lines, however large it is; they are never longer than asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import nsmallest
from typing import Any, Final

from ledgercli import paths
from ledgercli.summariser.texts import cut, json_text, path_text

_MOST: Final = 400  # values that are looked at closely
_DEEP: Final = 3  # maps in a row of a table
_KEYS: Final = "ABCDEFGH"  # what a table calls the keys of its rows

Rank = Callable[[paths.Path], int]


@dataclass(frozen=True, slots=True)
class Item:
    """One value: a fact, or a record that stands under its id in a fact.

    Arguments:
        path: where it stands below the state.
        value: what it is.
        keys: how many keys at the end of the path are ids.

    """

    path: paths.Path
    value: Any
    keys: int


def items(facts: Mapping[str, Any], levels: Mapping[str, int]) -> Iterator[Item]:
    """Yield the values.

    Arguments:
        facts: name → value.
        levels: name → how many keys stand above each record of it.

    """
    for name, value in facts.items():
        yield from _below(("facts", name), value, levels.get(name, 0), 0)


def _below(path: paths.Path, value: Any, levels: int, keys: int) -> Iterator[Item]:
    if levels and isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _below((*path, key), inner, levels - 1, keys + 1)
    else:
        yield Item(path, value, keys)


def lines(found: Sequence[Item], rank: Rank, room: int, where: str) -> list[str]:
    """Return the lines of some values.

    Arguments:
        found: the values.
        rank: how late each was set or named.
        room: how many characters they may take, line ends included.
        where: where the whole state stands.

    """
    newest = nsmallest(_MOST, range(len(found)), key=lambda number: (-rank(found[number].path), number))
    most, longest = len(newest), max(room // 2, 1)
    while most >= 0:
        kept = {number: found[number] for number in sorted(newest[:most])}
        written = list(_written(kept.values(), longest, where))
        written += _left_out((one for number, one in enumerate(found) if number not in kept), room, where)
        size = sum(len(line) + 1 for line in written)
        if size <= room:
            return written
        if longest > 200 and most <= 3:
            longest //= 2
        most = min(most - 1, int(most * room / size)) if most else -1
    return [cut(f"facts ({len(found):,}) whole at {where}", max(room - 1, 0))] if room > 1 and found else []


def _left_out(found: Iterable[Item], room: int, where: str) -> Iterator[str]:
    """Yield one line that counts the others, of each fact."""
    counts: dict[paths.Path, int] = {}
    for one in found:
        name = one.path[: len(one.path) - one.keys]
        counts[name] = counts.get(name, 0) + 1
    if counts:
        listed = ", ".join(f"{path_text(name)} ({count:,})" for name, count in counts.items())
        end = f"; whole at {where}"
        yield f"more, not set or named lately: {cut(listed, max(room // 3 - len(end), 0))}{end}"


def _written(kept: Iterable[Item], longest: int, where: str) -> Iterator[str]:
    tables: dict[tuple[Any, ...], list[tuple[Item, list[Any]]]] = {}
    for number, one in enumerate(kept):
        columns = tuple(_flat(one.value)) if one.keys and isinstance(one.value, Mapping) else ()
        name = one.path[: len(one.path) - one.keys]
        shape = (name, tuple(column for column, _ in columns)) if columns else (name, number)
        tables.setdefault(shape, []).append((one, [cell for _, cell in columns]))
    for (name, shape), rows in tables.items():
        if len(rows) > 1:
            yield from _table(name, shape, rows, longest, where)
        else:
            yield _line(rows[0][0], longest, where)


def _line(one: Item, longest: int, where: str) -> str:
    return f"{cut(path_text(one.path), longest, where)} = {cut(json_text(one.value), longest, where)}"


def _flat(value: Mapping[str, Any], path: paths.Path = ()) -> Iterator[tuple[paths.Path, Any]]:
    """Yield the cells of a record, each with its path in it."""
    for key, inner in value.items():
        if isinstance(inner, Mapping) and inner and len(path) < _DEEP - 1:
            yield from _flat(inner, (*path, key))
        else:
            yield (*path, key), inner


def _table(
    name: paths.Path, columns: Sequence[paths.Path], rows: Sequence[tuple[Item, list[Any]]], longest: int, where: str
) -> Iterator[str]:
    """Yield a table: what every row has, the names of the columns, the rows."""
    depth = rows[0][0].keys
    keys = _KEYS[:depth]
    texts = [[json_text(cell) for cell in cells] for _, cells in rows]
    ids = [[json_text(key) for key in one.path[-depth:]] for one, _ in rows]
    said: list[str] = []
    varying: list[int] = []
    for number, column in enumerate(columns):
        cells = [row[number] for row in texts]
        of_key = next((key for at, key in enumerate(keys) if cells == [row[at] for row in ids]), None)
        if of_key is not None or len(set(cells)) == 1:
            said.append(f"{_column(column)} = {of_key or cut(cells[0], longest, where)}")
        else:
            varying.append(number)
    head = "".join(f"[{key}]" for key in keys)
    names = ", ".join([*keys, *(_column(columns[number]) for number in varying)])
    always = f"; in each {', '.join(said)}" if said else ""
    yield f"{path_text(name)}{head} has rows [{names}]{always}"
    for number, (row, own) in enumerate(zip(texts, ids, strict=True)):
        cells = [*own, *(row[one] for one in varying)]
        step = f"{where}, {path_text(rows[number][0].path)}" if sum(map(len, cells)) > longest else where
        yield cut(f"[{','.join(cells)}]", longest, step)


def _column(path: paths.Path) -> str:
    """Return what follows the path of a record: `.prices.economy`, `["a b"]`."""
    return path_text(("x", *path))[1:]
