"""Values as the policy language writes them: `{temp: 22, condition: "Sunny"}`.

Invariants:
* All text of a value is in quotes and inert; nothing in it can pass for a part of the report.
* A masked value shows as `[redacted]`.
* Parts are made one at a time, so that whoever cuts a value pays only for what is shown.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from ledgercli import cel
from ledgercli.redaction import SHOWN, is_mask
from ledgercli.reports.cells import cut, inert

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_QUOTED = str.maketrans({'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"})
_CHUNK = 256  # characters of a text that are escaped at once


def parts(value: Any) -> Iterator[str]:
    """Yield a value as text, in parts."""
    if isinstance(value, str):
        yield from _text(value)
    elif isinstance(value, Mapping):
        yield from _map(value)
    elif isinstance(value, (list, tuple)):
        yield "["
        for number, item in enumerate(value):
            if number:
                yield ", "
            yield from parts(item)
        yield "]"
    else:
        yield inert(cel.literal(value))


def shown(value: Any, room: int | None = None) -> str:
    """Return a value as text of at most `room` cells."""
    return cut(parts(value), room)


def call(tool: str, args: Mapping[str, Any]) -> Iterator[str]:
    """Yield a call as text, in parts: `get_weather(location="Beijing")`."""
    yield inert(tool)
    yield "("
    for number, (name, value) in enumerate(args.items()):
        if number:
            yield ", "
        yield from _key(name)
        yield "="
        yield from parts(value)
    yield ")"


def _map(value: Mapping[str, Any]) -> Iterator[str]:
    if is_mask(value):
        yield SHOWN
        return
    yield "{"
    for number, (key, item) in enumerate(value.items()):
        if number:
            yield ", "
        yield from _key(key)
        yield ": "
        yield from parts(item)
    yield "}"


def _key(key: Any) -> Iterator[str]:
    if isinstance(key, str) and _NAME.fullmatch(key):
        yield key
    else:
        yield from parts(key)


def _text(text: str) -> Iterator[str]:
    yield '"'
    for start in range(0, len(text), _CHUNK):
        yield inert(text[start : start + _CHUNK].translate(_QUOTED))
    yield '"'
