"""The functions that turn a value of one type into another, and the ones that take a time apart.

Invariants:
* A conversion either keeps the value (cutting a double's fraction, rounding an int to a double) or is an error.
* Text is read strictly: no spaces, no underscores, no hexadecimal.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from datetime import datetime
from decimal import Decimal
from typing import Any, Final

from ledgercli.cel.moments import SECOND, Duration, Timestamp, day_of_year
from ledgercli.cel.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    STRING,
    TIMESTAMP,
    TYPE,
    UINT,
    EvalError,
    Function,
    Meter,
    Type,
)
from ledgercli.cel.values import INT_MAX, INT_MIN, UINT_MAX, UInt, built, type_of

_INTEGER = re.compile(r"[+-]?\d{1,40}", re.ASCII)
_DOUBLE = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[+-]?(?i:inf|infinity|nan)", re.ASCII)
_TRUE = frozenset({"1", "t", "true", "TRUE", "True"})
_FALSE = frozenset({"0", "f", "false", "FALSE", "False"})
_SHOWN = 60


def double_text(value: float) -> str:
    """The shortest text that reads back as `value`; with an exponent from a million on, as all of CEL writes it."""
    if not math.isfinite(value):
        return str(value)
    sign, digits, exponent = Decimal(repr(value)).as_tuple()
    power = len(digits) + int(exponent) - 1
    if value and not -4 <= power < 6:
        figures = "".join(map(str, digits)).rstrip("0")
        fraction = f".{figures[1:]}" if figures[1:] else ""
        return f"{'-' if sign else ''}{figures[0]}{fraction}e{power:+03d}"
    return f"{value!r}".removesuffix(".0")


def _same(value: Any) -> Any:
    return value


def _to_int(value: int) -> int:
    if not INT_MIN <= value <= INT_MAX:
        raise EvalError(f"range error: {value} does not fit in an int (64 bits)")
    return int(value)


def _double_to_int(value: float) -> int:
    if not -(2.0**63) < value < 2.0**63:
        raise EvalError(f"range error: {value} does not fit in an int (64 bits)")
    return int(value)


def _text_to_int(text: str) -> int:
    return _to_int(_whole(text, "int"))


def _whole(text: str, wanted: str) -> int:
    if not _INTEGER.fullmatch(text):
        raise EvalError(f"{wanted}({text[:_SHOWN]!r}): not a whole number")
    return int(text)


def _to_uint(value: int) -> UInt:
    if not 0 <= value <= UINT_MAX:
        raise EvalError(f"range error: {value} does not fit in a uint")
    return UInt(value)


def _double_to_uint(value: float) -> UInt:
    if not 0.0 <= value < 2.0**64:
        raise EvalError(f"range error: {value} does not fit in a uint")
    return UInt(int(value))


def _text_to_uint(text: str) -> UInt:
    return _to_uint(_whole(text, "uint"))


def _text_to_double(text: str) -> float:
    if not _DOUBLE.fullmatch(text):
        raise EvalError(f"double({text[:_SHOWN]!r}): not a number")
    return float(text)


def _text_to_bool(text: str) -> bool:
    if text in _TRUE or text in _FALSE:
        return text in _TRUE
    raise EvalError(f"bool({text[:_SHOWN]!r}): write 'true' or 'false'")


def _bool_text(value: bool) -> str:  # noqa: FBT001 - the value to convert, not a switch
    return "true" if value else "false"


def _bytes_to_text(meter: Meter, value: bytes) -> str:
    built(meter, len(value))
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        raise EvalError("string(bytes): invalid UTF-8") from None


def _text_to_bytes(meter: Meter, value: str) -> bytes:
    built(meter, len(value))
    try:
        return value.encode("utf-8")
    except UnicodeEncodeError:
        raise EvalError("bytes(string): the text holds half of a surrogate pair") from None


def _conversion(name: str, result: Type, *ways: tuple[Type, Callable[..., Any]]) -> tuple[Function, ...]:
    """The overloads of the conversion to `result`."""
    metered = (_bytes_to_text, _text_to_bytes)
    return tuple(Function(name, (given,), result, call, meter=call in metered) for given, call in ways)


def _accessor(name: str, part: Callable[[datetime], int]) -> Function:
    """A part of a timestamp, on the clock of a zone (UTC if none is given)."""

    def call(moment: Timestamp, zone: str = "UTC") -> int:
        return part(moment.local(zone))

    return Function(name, (TIMESTAMP, STRING), INT, call, method=True, optional=1)


def _milliseconds(moment: Timestamp, zone: str = "UTC") -> int:
    moment.local(zone)
    return moment.nanos % SECOND // 10**6


def _span(name: str, part: Callable[[Duration], int]) -> Function:
    return Function(name, (DURATION,), INT, part, method=True)


CONVERSIONS: Final[tuple[Function, ...]] = (
    *_conversion("int", INT, (INT, _same), (UINT, _to_int), (DOUBLE, _double_to_int), (STRING, _text_to_int)),
    Function("int", (TIMESTAMP,), INT, lambda moment: moment.seconds),
    *_conversion("uint", UINT, (UINT, _same), (INT, _to_uint), (DOUBLE, _double_to_uint), (STRING, _text_to_uint)),
    *_conversion("double", DOUBLE, (DOUBLE, _same), (INT, float), (UINT, float), (STRING, _text_to_double)),
    *_conversion("bool", BOOL, (BOOL, _same), (STRING, _text_to_bool)),
    *_conversion("bytes", BYTES, (BYTES, _same), (STRING, _text_to_bytes)),
    *_conversion("string", STRING, (STRING, _same), (BOOL, _bool_text), (INT, str), (UINT, str)),
    *_conversion("string", STRING, (DOUBLE, double_text), (BYTES, _bytes_to_text), (TIMESTAMP, str), (DURATION, str)),
    *_conversion("timestamp", TIMESTAMP, (TIMESTAMP, _same), (STRING, Timestamp.parse), (INT, Timestamp.from_seconds)),
    *_conversion("duration", DURATION, (DURATION, _same), (STRING, Duration.parse)),
    Function("dyn", (DYN,), DYN, _same),
    Function("type", (DYN,), TYPE, type_of),
)

ACCESSORS: Final[tuple[Function, ...]] = (
    _accessor("getFullYear", lambda clock: clock.year),
    _accessor("getMonth", lambda clock: clock.month - 1),
    _accessor("getDate", lambda clock: clock.day),
    _accessor("getDayOfMonth", lambda clock: clock.day - 1),
    _accessor("getDayOfWeek", lambda clock: clock.isoweekday() % 7),
    _accessor("getDayOfYear", day_of_year),
    _accessor("getHours", lambda clock: clock.hour),
    _accessor("getMinutes", lambda clock: clock.minute),
    _accessor("getSeconds", lambda clock: clock.second),
    Function("getMilliseconds", (TIMESTAMP, STRING), INT, _milliseconds, method=True, optional=1),
    _span("getHours", lambda span: span.unit(3600 * SECOND)),
    _span("getMinutes", lambda span: span.unit(60 * SECOND)),
    _span("getSeconds", lambda span: span.unit(SECOND)),
    _span("getMilliseconds", lambda span: span.unit(10**6) - span.unit(SECOND) * 1000),
)
