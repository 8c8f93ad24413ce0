"""Values of a kind: what fits a type or a schema, what is beside a number, what an argument was meant as.

Invariants:
* Pure, and bounded: of many values some are told, always the same.
* Every value is JSON data.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, Final

from ledgercli import cel
from ledgercli.history import freeze
from ledgercli.names import schema_type
from ledgercli.paths import ABSENT, Path
from ledgercli.toolset import Tool
from ledgercli.why.situations import Change, at

ALIKE: Final = 8  # values of one kind
_ACTION: Final = ("action", "args")
_CENT: Final = 0.01
_NUMBER: Final = re.compile(r"-?\d{1,15}(?:\.\d{1,9})?\Z")


def type_below(kind: cel.Type, key: Any) -> cel.Type:
    """Return the type of what stands under a key."""
    match kind:
        case cel.RecordType():
            known = kind.fields.get(str(key))
            return cel.DYN if known is None else known.type
        case cel.MapType():
            return kind.value
        case cel.ListType():
            return kind.elem
    return cel.DYN


def declared(path: Path, names: Mapping[str, cel.Type]) -> cel.Type:
    """Return the type that is declared for a path."""
    kind = names.get(str(path[0]), cel.DYN)
    for key in path[1:]:
        kind = type_below(kind, key)
    return kind


def beside(value: float, *, whole: bool | None = None) -> Iterator[Any]:
    """Yield a bound and its neighbours."""
    if value != value or value in (float("inf"), float("-inf")) or abs(value) > 2**53:  # noqa: PLR0124 - NaN is none
        return
    if whole or (whole is None and type(value) is int):
        below = int(value // 1)
        yield from dict.fromkeys((below, -int(-value // 1), below + 1, below - 1))
    else:
        near = round(value, 2)
        yield from dict.fromkeys((near, float(value), round(near - _CENT, 2), round(near + _CENT, 2)))


def fitting(value: Any, known: Any, kind: cel.Type) -> Any:
    """Return a value as the place wants it; `ABSENT` where it is of another kind."""
    if not _is_json(value):
        return ABSENT
    if type(value) in (int, float):
        if kind == cel.INT or (kind == cel.DYN and type(known) is int):
            return int(value) if value == int(value) else ABSENT
        return value if kind in (cel.DOUBLE, cel.DYN) and (known is ABSENT or _of_one_kind(value, known)) else ABSENT
    if isinstance(value, bool) and kind not in (cel.BOOL, cel.DYN):
        return ABSENT
    if isinstance(value, str) and kind not in (cel.STRING, cel.DYN) and not isinstance(kind, cel.EnumType):
        return ABSENT
    return value if known is ABSENT or known is None or _of_one_kind(value, known) else ABSENT


def _of_one_kind(one: Any, other: Any) -> bool:
    """Whether two values are of one kind of JSON."""
    kinds = (bool, str, (int, float), Mapping, (list, tuple))
    return any(isinstance(one, kind) and isinstance(other, kind) for kind in kinds)


def _is_json(value: Any) -> bool:
    return value is None or isinstance(value, (bool, int, float, str, Mapping, list, tuple))


def skeleton(kind: cel.Type) -> Any:
    """Return a plain value of a type: what a record needs, everything empty."""
    if isinstance(kind, cel.RecordType):
        return {name: skeleton(one.type) for name, one in kind.fields.items()}
    if isinstance(kind, cel.EnumType):
        return min(kind.values, default="")
    plain = {cel.BOOL: False, cel.INT: 0, cel.DOUBLE: 0.0, cel.STRING: ""}
    return {} if isinstance(kind, cel.MapType) else [] if isinstance(kind, cel.ListType) else plain.get(kind)


def schema_at(schemas: Mapping[str, Any], path: Path) -> Mapping[str, Any]:
    """Return the schema of a part of the arguments; empty where there is none."""
    schema: Any = schemas.get(str(path[0]), {}) if path else {}
    for key in path[1:]:
        if not isinstance(schema, Mapping):
            return {}
        schema = schema.get("items", {}) if isinstance(key, int) else schema.get("properties", {}).get(key, {})
    return schema if isinstance(schema, Mapping) else {}


def fitting_arguments(tool: Tool, args: Mapping[str, Any]) -> Iterator[Change]:
    """Yield changes of arguments that do not fit their schema."""
    for name in args:
        if name not in tool.args:
            yield Change((*_ACTION, name), ABSENT)
    for name, schema in tool.args.items():
        if name not in args and "default" not in schema:
            yield from (Change((*_ACTION, name), value) for value in _plainly(schema))
    for error in islice(tool.validator.iter_errors(dict(args)), ALIKE):
        path = tuple(error.instance_path)
        if path:
            for value in (*_converted(at(args, path)), *_plainly(schema_at(tool.args, path))):
                yield Change((*_ACTION, *path), value)


def _plainly(schema: Mapping[str, Any]) -> Iterator[Any]:
    yield from of_schema(schema)
    yield skeleton(schema_type(schema, "argument"))


def _converted(value: Any) -> Iterator[Any]:
    """Yield what a value of the wrong type may have been meant as."""
    if type(value) in (int, float):
        yield str(value)
        yield int(value)
    elif isinstance(value, str) and _NUMBER.match(value):
        yield float(value) if "." in value else int(value)
    yield [value]


def of_schema(schema: Mapping[str, Any]) -> Iterator[Any]:
    """Yield the values that a schema names."""
    yield from schema.get("enum", ())
    for bound in ("default", "minimum", "maximum", "const"):
        if bound in schema:
            yield schema[bound]


def of_length(known: list[Any], length: int) -> list[Any]:
    """A list made shorter, or longer by its last element."""
    return [*known[:length], *known[-1:] * (length - len(known))]


def distinct(values: Iterable[Any]) -> list[Any]:
    """Return the JSON values among some, each once."""
    found: dict[Any, Any] = {}
    for value in values:
        if _is_json(value):
            found.setdefault(key_of(value), value)
    return list(found.values())


def key_of(value: Any) -> Any:
    """What tells a value from others."""
    return ABSENT if value is ABSENT else freeze(value)
