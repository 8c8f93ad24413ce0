"""`text.format(list)`: the printf of CEL's `strings` extension.

Invariants:
* A clause is `%`, an optional `.precision` up to 1000, and one of `s d f e b o x X`; `%%` is a percent sign.
* Each clause takes one argument and says which types it accepts.
* The text is measured as it grows, so nested values cannot make it explode.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from ledgercli.cel.conversions import double_text
from ledgercli.cel.moments import Duration, Timestamp
from ledgercli.cel.types import BoundError, EvalError, Meter, Type
from ledgercli.cel.values import UInt, built, is_list, is_map, spelled, type_of

_CLAUSE = re.compile(r"%(?:\.(\d*))?(.?)", re.ASCII | re.DOTALL)
_PRECISION = 1000
_DEPTH = 100
_SPECIAL = frozenset({"NaN", "Infinity", "-Infinity"})


def format_text(meter: Meter, template: str, arguments: Sequence[Any]) -> str:
    """`template` with its clauses replaced by the arguments in turn."""
    built(meter, len(template))
    parts: list[str] = []
    size = end = 0
    left = iter(enumerate(arguments))
    for clause in _CLAUSE.finditer(template):
        parts += template[end : clause.start()], _clause(meter, clause, left, len(arguments))
        end = clause.end()
        size += len(parts[-1])
        built(meter, len(parts[-1]))
        meter.size(size)
    return "".join(parts) + template[end:]


def _clause(meter: Meter, clause: re.Match[str], left: Iterator[tuple[int, Any]], count: int) -> str:
    precision, verb = clause[1], clause[2]
    if verb == "%" and precision is None:
        return "%"
    if not verb:
        raise EvalError("format: unexpected end of the text after %")
    if verb not in _VERBS:
        raise EvalError(f"format: unrecognized formatting clause {verb!r} (known are s d f e b o x X)")
    _, value = next(left, (0, _NOTHING))
    if value is _NOTHING:
        raise EvalError(f"format: index {count} out of range: more clauses than arguments")
    return _VERBS[verb](meter, value, 6 if precision is None else _digits(precision))


_NOTHING: Final = object()


def _digits(precision: str) -> int:
    if not precision or len(precision) > 4 or int(precision) > _PRECISION:
        raise EvalError(f"format: the precision {precision[:9]!r} is not a number from 0 to {_PRECISION}")
    return int(precision)


def _wrong(clause: str, value: Any) -> EvalError:
    return EvalError(f"format: {clause}, was given {spelled(type_of(value))}")


def _fixed(mark: str, clause: str) -> Callable[[Meter, Any, int], str]:
    """`%f` and `%e`."""

    def call(_meter: Meter, value: Any, precision: int) -> str:
        if type(value) is str and value in _SPECIAL:
            return str(value)
        if type(value) not in (float, int, UInt):
            raise _wrong(f"{clause} clause can only be used on doubles", value)
        return _special(value) or f"{float(value):.{precision}{mark}}"

    return call


def _special(value: float) -> str:
    """The text of NaN and the infinities; nothing for a finite number."""
    if math.isfinite(value):
        return ""
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _decimal(_meter: Meter, value: Any, _precision: int) -> str:
    if type(value) is float:
        return _special(value) or f"{value:f}"
    if type(value) not in (int, UInt):
        raise _wrong("decimal clause can only be used on integers", value)
    return str(value)


def _binary(_meter: Meter, value: Any, _precision: int) -> str:
    if type(value) not in (int, UInt, bool):
        raise _wrong("only integers and bools can be formatted as binary", value)
    return format(int(value), "b")


def _octal(_meter: Meter, value: Any, _precision: int) -> str:
    if type(value) not in (int, UInt):
        raise _wrong("octal clause can only be used on integers", value)
    return format(int(value), "o")


def _hexadecimal(meter: Meter, value: Any, _precision: int) -> str:
    if type(value) in (int, UInt):
        return format(int(value), "x")
    if type(value) not in (str, bytes):
        raise _wrong("only integers, byte buffers, and strings can be formatted as hex", value)
    built(meter, 2 * len(value))
    return (value.encode("utf-8", "replace") if type(value) is str else value).hex()


def _upper_hexadecimal(meter: Meter, value: Any, precision: int) -> str:
    return _hexadecimal(meter, value, precision).upper()


def _string(meter: Meter, value: Any, _precision: int) -> str:
    return _shown(meter, value, 0)


def _shown(meter: Meter, value: Any, depth: int) -> str:
    """The text of `%s`: of lists and maps too, a map's pairs in the order of its keys' text."""
    if depth > _DEPTH:
        raise BoundError(f"format: the value nests deeper than {_DEPTH} levels")
    meter.spend(1)
    if is_list(value):
        return "[" + ", ".join(_shown(meter, item, depth + 1) for item in value) + "]"
    if is_map(value):
        pairs = sorted(((_scalar(key), item) for key, item in value.items()), key=lambda pair: pair[0])
        return "{" + ", ".join(f"{key}: {_shown(meter, item, depth + 1)}" for key, item in pairs) + "}"
    meter.spend(len(value) >> 6 if isinstance(value, (str, bytes)) else 0)
    return _scalar(value)


def _scalar(value: Any) -> str:
    kind = type(value)
    if kind is str:
        return str(value)
    if kind is bytes:
        try:
            return str(value, "utf-8")
        except UnicodeDecodeError:
            raise EvalError("format: bytes that are not UTF-8 have no text") from None
    if kind is float:
        return _special(value) or double_text(value)
    if value is None or kind is bool:
        return _WORDS[value]
    if kind in (int, UInt, Timestamp, Duration):
        return str(value)
    if isinstance(value, Type):
        return spelled(value)
    raise _wrong("string clause can only be used on CEL's own values", value)


_WORDS: Final = {None: "null", True: "true", False: "false"}
_VERBS: Final[Mapping[str, Callable[[Meter, Any, int], str]]] = {
    "s": _string,
    "d": _decimal,
    "f": _fixed("f", "fixed-point"),
    "e": _fixed("e", "scientific"),
    "b": _binary,
    "o": _octal,
    "x": _hexadecimal,
    "X": _upper_hexadecimal,
}
