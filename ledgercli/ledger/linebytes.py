r"""The exact bytes of a ledger's line, and the limits of what it may hold, in both directions.

Invariants:
* A line is what orjson writes of one JSON object, and `\n`. `loads` takes no other spelling of the same object, so the
  bytes that are hashed and the values that are read are one thing: no duplicate keys, no second way to write a number.
* Both directions hold to the same limits: `LINE_MAX` bytes, `DEPTH_MAX` levels, integers of 64 bits with sign, finite
  numbers, UTF-8 without lone surrogates.
* The good case costs a few scans of the bytes in C; only a line that may be wrong is looked at closely, and then the
  first thing that is wrong is named with its place.
"""

from __future__ import annotations

import json
import re
import resource
from collections.abc import Iterator, Mapping
from math import isfinite
from typing import Any, Final

import orjson

from ledgercli import paths
from ledgercli.errors import LedgerFormatError, LedgerWriteError

LINE_MAX: Final = 16 * 1024 * 1024
DEPTH_MAX: Final = 64
INT_MIN: Final = -(2**63)
INT_MAX: Final = 2**63 - 1

_WRITE: Final = orjson.OPT_APPEND_NEWLINE | orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_DATETIME
_SMALL_INTEGERS: Final = orjson.OPT_APPEND_NEWLINE | orjson.OPT_STRICT_INTEGER
_FLAT: Final = bytes.maketrans(b"123456789[", b"000000000{")  # all digits and all opening brackets look alike
_SMALL: Final = 1 << 18  # bytes of a line that cannot hold enough values to matter
_MEMORY_OF_A_VALUE: Final = 600  # bytes at most: a key and its place in a map, and what orjson reserves to write both
_NESTING: Final = (dict, list, tuple, Mapping)  # all that is written as a map or a list
_LONG_NUMBER: Final = b"0" * 19  # the shortest integer beyond 64 bits has 19 digits


class LedgerLimitError(LedgerWriteError):
    """A record holds what a line cannot; `path` says where, and nothing was written."""

    def __init__(self, path: paths.Path, why: str) -> None:
        self.path = paths.text(path)
        super().__init__(f"{self.path} {why}" if path else why)


class LineError(LedgerFormatError):
    """A line is not what this program writes; `column` counts characters from 1."""

    def __init__(self, message: str, column: int) -> None:
        super().__init__(message)
        self.column = column


# Writing


def dumps(record: dict[str, Any]) -> bytes:
    """The line of a record, its newline included.

    Raises:
        LedgerLimitError: the record holds what a line cannot.

    """
    try:
        line = orjson.dumps(record, paths.plain, _WRITE)
    except TypeError:
        raise _refusal(record) from None
    if _suspicious(record, line) or _has_nan(record, line):
        _refuse_beyond(record)
    if len(line) > LINE_MAX:
        path, size = _largest(record)
        raise LedgerLimitError(
            path, f"makes the line {len(line):,} bytes long, itself {size:,}; a line has at most {LINE_MAX:,}"
        )
    return line


def check(value: Any, path: paths.Path, *, depth: int) -> None:
    """Raise `LedgerLimitError` if no line can hold a value that stands at `path`, `depth` levels below the line."""
    try:
        data = orjson.dumps(value, paths.plain, _WRITE)
    except TypeError:
        raise LedgerLimitError(*(beyond(value, path, depth) or (path, "is no JSON value"))) from None
    if _suspicious(value, data, depth) or _has_nan(value, data):
        found = beyond(value, path, depth)
        if found:
            raise LedgerLimitError(*found)


def beyond(value: Any, path: paths.Path = (), depth: int = 1) -> tuple[paths.Path, str] | None:
    """Where in a value, and what, is more than a line can hold; None if all is well.

    Arguments:
        value: any value, JSON or not.
        path: where it stands, for the answer.
        depth: the level that it would have in the line.

    """
    if isinstance(value, str):
        return None if _is_text(value) else (path, "is text with a lone surrogate, which is not UTF-8")
    if value is None or isinstance(value, bool):
        return None
    if isinstance(value, int):
        return None if INT_MIN <= value <= INT_MAX else (path, "is an integer of more than 64 bits")
    if isinstance(value, float):
        return None if isfinite(value) else (path, f"is {value}; a ledger holds finite numbers only")
    if not isinstance(value, (Mapping, list, tuple)):
        return path, f"is of type {type(value).__name__}, which is not JSON"
    if depth > DEPTH_MAX:
        return path, f"is nested deeper than {DEPTH_MAX} levels"
    for key, item in _items(value):
        if isinstance(value, Mapping) and not (isinstance(key, str) and _is_text(key)):
            return path, f"has the key {key!r}, which is not UTF-8 text"
        if found := beyond(item, (*path, key), depth + 1):
            return found
    return None


def _items(value: Any) -> Iterator[tuple[Any, Any]]:
    return iter(value.items() if isinstance(value, Mapping) else enumerate(value))


def _is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _suspicious(value: Any, line: bytes, depth: int = 0) -> bool:
    """Whether a value, written as `line`, may be too deep or hold too large an integer; never wrong when it says no."""
    flat = line.translate(_FLAT)
    return _LONG_NUMBER in flat or (
        flat.count(b"{") + depth > DEPTH_MAX and _levels(value, _NESTING) + depth > DEPTH_MAX
    )


def _levels(value: Any, nesting: tuple[type, ...] = (dict, list)) -> int:
    """How deeply a value nests, by values of the types that nest; of more than `DEPTH_MAX` levels one is counted."""
    level: list[Any] = [value] if isinstance(value, nesting) else []
    levels = 0
    while level and levels <= DEPTH_MAX:
        levels += 1
        level = [
            part
            for whole in level
            for part in (whole.values() if isinstance(whole, Mapping) else whole)
            if isinstance(part, nesting)
        ]
    return levels


def _has_nan(value: Any, written: bytes) -> bool:
    """Whether a value may hold NaN or infinity, which orjson writes as null."""
    if b"null" not in written:
        return False
    try:
        json.dumps(value, allow_nan=False, default=paths.plain)
    except (ValueError, TypeError, RecursionError):
        return True
    return False


def _refuse_beyond(record: dict[str, Any]) -> None:
    if found := beyond(record):
        raise LedgerLimitError(*found)


def _refusal(record: dict[str, Any]) -> LedgerLimitError:
    return LedgerLimitError(*(beyond(record) or ((), "the record is no JSON value")))


def _largest(record: Any) -> tuple[paths.Path, int]:
    """The innermost part that makes up more than half of a record, and its size."""
    path: paths.Path = ()
    size = len(orjson.dumps(record, paths.plain))
    while isinstance(record, Mapping) and record:
        sizes = {key: len(orjson.dumps(value, paths.plain)) for key, value in record.items()}
        key = max(sizes, key=lambda one: sizes[one])
        if path and 2 * sizes[key] < size:
            break
        path, size, record = (*path, key), sizes[key], record[key]
    return path, size


# Reading


def loads(line: bytes) -> dict[str, Any]:
    """The record of a line, its newline included.

    Raises:
        LineError: the bytes are not what `dumps` writes of any record.

    """
    if len(line) > _SMALL and _too_large(line):
        raise LineError("the line has more values than this process may take memory for (ulimit -v)", 1)
    try:
        record = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        if fault := _fault(line):
            raise LineError(fault[1], _column(line, fault[0])) from None
        last = _column(line, len(line))  # orjson counts characters too, the newline with them
        raise LineError(error.msg, min(error.pos + 1, last)) from None
    if type(record) is not dict:
        raise LineError("a line is one JSON object", 1)
    if not _surely_whole(record, line) and not _whole(record, line):
        del record  # a large one, and the search takes memory too
        offset, message = _fault(line) or (0, "these bytes are not what a ledger has for these values")
        raise LineError(message, _column(line, offset))
    return record


def _surely_whole(record: dict[str, Any], line: bytes) -> bool:
    """Whether a line is what is written of its record and within the limits, in the common case of small integers."""
    try:
        same = orjson.dumps(record, None, _SMALL_INTEGERS) == line
    except TypeError:  # an integer of more than 53 bits, or it is nested very deeply
        return False
    return same and (line.count(b"{") + line.count(b"[") <= DEPTH_MAX or _levels(record) <= DEPTH_MAX)


def _whole(record: dict[str, Any], line: bytes) -> bool:
    """Whether a line is what is written of its record and within the limits."""
    return (
        not (_suspicious(record, line) and beyond(record))
        and orjson.dumps(record, None, orjson.OPT_APPEND_NEWLINE) == line
    )


def _too_large(line: bytes) -> bool:
    """Whether reading a line could take more than half of the memory that the process is held to.

    orjson crashes when it runs out of memory, so this is asked before.
    """
    held, _ = resource.getrlimit(resource.RLIMIT_AS)
    if held == resource.RLIM_INFINITY:
        return False
    values = line.count(b",") + line.count(b"{") + line.count(b"[")
    return values * _MEMORY_OF_A_VALUE > held // 2


_TOKEN: Final = re.compile(
    rb"""(?P<text>"[^"\\]*+(?:\\.[^"\\]*+)*+")
    |(?P<mark>[{}\[\],:])
    |(?P<number>-?[0-9][0-9.eE+-]*+)
    |(?P<word>-?[A-Za-z]++)
    |(?P<space>[ \t\r\n]++)
    |(?P<other>.)""",
    re.VERBOSE | re.DOTALL,
)
_NOT_NUMBERS: Final = (b"NaN", b"Infinity", b"-Infinity", b"-NaN")


def _fault(line: bytes) -> tuple[int, str] | None:
    """The first thing in a line that has a name, with its offset."""
    try:
        line.decode()
    except UnicodeDecodeError as error:
        return error.start, f"byte 0x{line[error.start]:02x} is not UTF-8"
    if line.startswith(b"\xef\xbb\xbf"):
        return 0, "a byte-order mark stands before the line"
    if line.endswith(b"\r\n"):
        return len(line) - 2, "the line ends in CR LF; a ledger's lines end in LF (git: `*.jsonl -text`)"
    return _fault_of_tokens(line.removesuffix(b"\n"))


def _fault_of_tokens(line: bytes) -> tuple[int, str] | None:
    open_maps: list[set[bytes] | None] = []  # the keys of each open map, None for a list
    key_next = False
    for token in _TOKEN.finditer(line):
        written, fault = token.group(), None
        match token.lastgroup:
            case "text":
                fault = _fault_of_text(written, open_maps[-1] if key_next else None)
                key_next = False
            case "mark":
                _nest(written, open_maps)
                key_next = written in b"{," and bool(open_maps) and open_maps[-1] is not None
                if len(open_maps) > DEPTH_MAX:
                    fault = f"nested deeper than {DEPTH_MAX} levels"
            case "number":
                fault = _fault_of_number(written)
            case "word":
                fault = f"{written.decode()} is no JSON number" if written in _NOT_NUMBERS else None
            case "space":
                fault = "space between values; a ledger's lines have none"
        if fault:
            return token.start(), fault
    return None


def _nest(mark: bytes, open_maps: list[set[bytes] | None]) -> None:
    if mark in b"{[":
        open_maps.append(set() if mark == b"{" else None)
    elif mark in b"}]" and open_maps:
        open_maps.pop()


def _fault_of_text(token: bytes, keys: set[bytes] | None) -> str | None:
    """What is wrong with a text; as a key it is also added to `keys`."""
    try:
        written = orjson.dumps(orjson.loads(token))
    except orjson.JSONDecodeError as error:
        return "a lone surrogate, which is not UTF-8" if "surrogate" in error.msg else f"this text: {error.msg}"
    if written != token:
        return "this text is not escaped as orjson escapes it: edited by hand?"
    if keys is not None:
        if token in keys:
            return f"the key {_short(token)} stands here a second time"
        keys.add(token)
    return None


def _fault_of_number(token: bytes) -> str | None:
    if token.lstrip(b"-").isdigit():
        digits = len(token.lstrip(b"-"))
        if digits > len(str(INT_MAX)) or not INT_MIN <= int(token) <= INT_MAX:
            return f"the integer {_short(token)} has more than 64 bits"
    try:
        written = orjson.dumps(orjson.loads(token))
    except orjson.JSONDecodeError as error:
        return f"the number {_short(token)}: {error.msg}"
    return None if written == token else f"the number {_short(token)} is written {_short(written)} in a ledger"


def _short(token: bytes) -> str:
    shown = token.decode()
    return shown if len(shown) <= 40 else shown[:37] + "..."


def _column(line: bytes, offset: int) -> int:
    return len(line.removesuffix(b"\n")[:offset].decode(errors="replace")) + 1
