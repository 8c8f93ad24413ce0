"""The functions over text: CEL's own, and those of the standard's `strings` and `encoders` extensions.

Invariants:
* Positions and sizes count code points.
* What is built is measured before it is built; what is scanned is counted in steps of 256 characters.
"""

from __future__ import annotations

import base64
import binascii
import string
from collections.abc import Callable, Sequence
from typing import Any, Final

from ledgercli.cel.formatting import format_text
from ledgercli.cel.types import (
    BOOL,
    BYTES,
    DYN,
    INT,
    STRING,
    EvalError,
    Function,
    ListType,
    MapType,
    Meter,
    Type,
)
from ledgercli.cel.values import built, no_overload

# The characters with Unicode's White_Space property; Python's strip() takes four control characters more.
_SPACE = "\t\n\v\f\r \x85\xa0\u1680" + "".join(map(chr, range(0x2000, 0x200B))) + "\u2028\u2029\u202f\u205f\u3000"
_LOWER = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)
_UPPER = str.maketrans(string.ascii_lowercase, string.ascii_uppercase)
_NO_BLANKS = str.maketrans(dict.fromkeys(" \t\r\n"))
_QUOTED = str.maketrans(
    {
        "\a": "\\a",
        "\b": "\\b",
        "\f": "\\f",
        "\n": "\\n",
        "\r": "\\r",
        "\t": "\\t",
        "\v": "\\v",
        "\\": "\\\\",
        '"': '\\"',
    }
)


def _scan(meter: Meter, text: str) -> None:
    meter.spend(len(text) >> 8)


def _contains(meter: Meter, text: str, part: str) -> bool:
    _scan(meter, text)
    return part in text


def _starts_with(text: str, part: str) -> bool:
    return text.startswith(part)


def _ends_with(text: str, part: str) -> bool:
    return text.endswith(part)


def _check_index(position: int, text: str) -> int:
    if not 0 <= position <= len(text):
        raise EvalError(f"index out of range: {position} (the text has {len(text)} characters, counted from 0)")
    return position


def _char_at(text: str, position: int) -> str:
    return text[_check_index(position, text) : position + 1]


def _index_of(meter: Meter, text: str, part: str, start: int = 0) -> int:
    _scan(meter, text)
    return text.find(part, _check_index(start, text))


def _last_index_of(meter: Meter, text: str, part: str, last: int | None = None) -> int:
    _scan(meter, text)
    return text.rfind(part) if last is None else text.rfind(part, 0, _check_index(last, text) + len(part))


def _substring(meter: Meter, text: str, start: int, end: int | None = None) -> str:
    stop = len(text) if end is None else end
    _check_index(start, text)
    _check_index(stop, text)
    if start > stop:
        raise EvalError(f"invalid substring range. start: {start}, end: {stop}")
    built(meter, stop - start)
    return text[start:stop]


def _rewritten(change: Callable[[str], str]) -> Callable[[Meter, str], str]:
    """`change`, whose answer is about as long as the text, with that length counted."""

    def call(meter: Meter, text: str) -> str:
        built(meter, len(text))
        return change(text)

    return call


def _replace(meter: Meter, text: str, old: str, new: str, limit: int = -1) -> str:
    found = text.count(old)  # an empty text stands before each character and at the end
    times = found if limit < 0 else min(found, limit)
    built(meter, len(text) + times * max(0, len(new) - len(old)))
    return text.replace(old, new, times)


def _split(meter: Meter, text: str, separator: str, limit: int = -1) -> list[str]:
    _scan(meter, text)
    if limit == 0:
        return []
    if separator:
        found = text.count(separator) + 1
        meter.spend(found if limit < 0 else min(found, limit))
        return text.split(separator, limit - 1 if limit > 0 else -1)
    pieces = max(1, len(text) if limit < 0 else min(limit, len(text)))
    meter.spend(pieces)
    return [*text[: pieces - 1], text[pieces - 1 :]]


def _join(meter: Meter, parts: Sequence[Any], separator: str = "") -> str:
    meter.spend(len(parts))
    for part in parts:
        if type(part) is not str:
            raise no_overload("join", parts, part)
    built(meter, sum(map(len, parts)) + len(separator) * len(parts))
    return separator.join(parts)


def _quote(meter: Meter, text: str) -> str:
    built(meter, 2 * len(text) + 2)
    return f'"{text.translate(_QUOTED)}"'


def _encode(meter: Meter, value: bytes) -> str:
    built(meter, len(value) * 4 // 3 + 4)
    return base64.b64encode(value).decode("ascii")


def _decode(meter: Meter, text: str) -> bytes:
    built(meter, len(text))
    data = text.translate(_NO_BLANKS)
    try:
        return base64.b64decode(data + "=" * (-len(data) % 4), validate=True)
    except (binascii.Error, ValueError):
        raise EvalError(f"base64.decode({text[:60]!r}): not base64") from None


def _size(name: str, given: Type) -> tuple[Function, Function]:
    """`size(x)` and `x.size()`."""
    return Function(name, (given,), INT, len), Function(name, (given,), INT, len, method=True)


def _method(name: str, params: tuple[Type, ...], result: Type, call: Callable[..., Any], optional: int = 0) -> Function:
    """A method of a text that takes the meter."""
    return Function(name, (STRING, *params), result, call, method=True, meter=True, optional=optional)


STRINGS: Final[tuple[Function, ...]] = (
    *_size("size", STRING),
    *_size("size", BYTES),
    *_size("size", ListType()),
    *_size("size", MapType()),
    _method("contains", (STRING,), BOOL, _contains),
    Function("startsWith", (STRING, STRING), BOOL, _starts_with, method=True),
    Function("endsWith", (STRING, STRING), BOOL, _ends_with, method=True),
    Function("charAt", (STRING, INT), STRING, _char_at, method=True),
    _method("indexOf", (STRING, INT), INT, _index_of, optional=1),
    _method("lastIndexOf", (STRING, INT), INT, _last_index_of, optional=1),
    _method("substring", (INT, INT), STRING, _substring, optional=1),
    _method("lowerAscii", (), STRING, _rewritten(lambda text: text.translate(_LOWER))),
    _method("upperAscii", (), STRING, _rewritten(lambda text: text.translate(_UPPER))),
    _method("trim", (), STRING, _rewritten(lambda text: text.strip(_SPACE))),
    _method("reverse", (), STRING, _rewritten(lambda text: text[::-1])),
    _method("replace", (STRING, STRING, INT), STRING, _replace, optional=1),
    _method("split", (STRING, INT), ListType(STRING), _split, optional=1),
    Function("join", (ListType(STRING), STRING), STRING, _join, method=True, meter=True, optional=1),
    _method("format", (ListType(DYN),), STRING, format_text),
    Function("strings.quote", (STRING,), STRING, _quote, meter=True),
    Function("base64.encode", (BYTES,), STRING, _encode, meter=True),
    Function("base64.decode", (STRING,), BYTES, _decode, meter=True),
)
