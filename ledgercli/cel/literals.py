"""Values as text: the CEL literal that means a value, and the JSON that carries it.

Invariants:
* `literal` is compact, one line, and reads back as an equal value.
* `to_json` answers only with what JSON has; what it cannot carry is "cannot tell", with the reason.
* Both count what they visit, so a value that is small in memory but huge when written out ends in a clear error.
"""

from __future__ import annotations

import json
import math
from typing import Any

from ledgercli.cel.moments import Duration, Timestamp
from ledgercli.cel.types import BoundError, CannotTell, Limits, Meter, Type
from ledgercli.cel.values import UInt, is_list, is_map, spelled, type_name

_DEPTH = 100
_LIMITS = Limits()
_MARKS = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def literal(value: Any, limits: Limits = _LIMITS) -> str:
    """The CEL expression that means `value`."""
    return _literal(value, Meter(limits), 0)


def _literal(value: Any, meter: Meter, depth: int) -> str:
    _visit(value, meter, depth)
    if is_map(value):
        pairs = (f"{_literal(k, meter, depth + 1)}:{_literal(v, meter, depth + 1)}" for k, v in value.items())
        return "{" + ",".join(pairs) + "}"
    if is_list(value):
        return "[" + ",".join(_literal(item, meter, depth + 1) for item in value) + "]"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    return _scalar(value)


def _scalar(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, UInt):
        return f"{int(value)}u"
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else f'double("{value}")'
    if isinstance(value, bytes):
        return 'b"' + "".join(_byte(byte) for byte in value) + '"'
    if isinstance(value, Timestamp):
        return f'timestamp("{value}")'
    if isinstance(value, Duration):
        return f'duration("{value}")'
    return spelled(value) if isinstance(value, Type) else str(value)


def _byte(byte: int) -> str:
    character = chr(byte)
    return _MARKS.get(character) or (character if 32 <= byte < 127 else f"\\x{byte:02x}")


def to_json(value: Any, limits: Limits = _LIMITS) -> Any:
    """`value` as plain JSON data: times as text, a uint as a number, every list a list and every map a dict."""
    try:
        return _plain(value, Meter(limits), 0)
    except BoundError as problem:
        raise CannotTell(f"the value cannot be written as JSON: {problem}") from None


def _plain(value: Any, meter: Meter, depth: int) -> Any:
    _visit(value, meter, depth)
    kind = type(value)
    if value is None or kind is str or kind is bool or kind is int:
        return value
    if kind is UInt:
        return int(value)
    if kind is float and math.isfinite(value):
        return value
    if kind is Timestamp or kind is Duration:
        return str(value)
    if is_list(value):
        return [_plain(item, meter, depth + 1) for item in value]
    if is_map(value):
        return _plain_map(value, meter, depth)
    raise CannotTell(f"JSON has no {value if kind is float else type_name(value)}")


def _plain_map(value: Any, meter: Meter, depth: int) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key, item in value.items():
        name = key if isinstance(key, str) else _scalar(key).removesuffix("u")
        if name in result:
            raise CannotTell(f"JSON's keys are text, and the map has two that read {name!r}")
        result[name] = _plain(item, meter, depth + 1)
    return result


def _visit(value: Any, meter: Meter, depth: int) -> None:
    """Count one element and the length of its text."""
    if depth > _DEPTH:
        raise BoundError(f"it nests deeper than {_DEPTH} levels")
    meter.spend(1)
    if isinstance(value, (str, bytes)):
        meter.size(len(value))
        meter.spend(len(value) >> 6)
