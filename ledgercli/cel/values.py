"""Values as CEL sees them: what equals what, what comes before what, arithmetic, and looking into lists and maps.

Invariants:
* A Python int is CEL's int, `UInt` its uint, float its double; a bool is never a number. `type(x) is int` therefore
  tells an int for certain, and `isinstance` is used for maps and lists only.
* Numbers compare by mathematical value across int, uint and double; arithmetic never mixes them.
* A map may be any `Mapping`. A `dict` that an expression builds has no bool keys: Python would take `true` for 1, so
  `make_map` answers such pairs with a `KeyedMap`.
* What can grow is counted on the evaluation's `Meter` before it is built or walked; nothing here recurses.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from ledgercli.cel.moments import Duration, Timestamp
from ledgercli.cel.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    INT,
    NULL,
    STRING,
    TIMESTAMP,
    TYPE,
    UINT,
    EvalError,
    ListType,
    MapType,
    Meter,
    Type,
)

INT_MIN: Final = -(2**63)
INT_MAX: Final = 2**63 - 1
UINT_MAX: Final = 2**64 - 1
_EDGE: Final = 2.0**63
MISSING: Final = object()
LIST: Final = ListType()
MAP: Final = MapType()


class UInt(int):
    """An unsigned 64-bit integer; equal to the int of the same value, but of another type."""

    __slots__ = ()


class KeyedMap(Mapping[Any, Any]):
    """A map that keeps `true` and 1 apart."""

    __slots__ = ("_items",)

    def __init__(self, items: Iterable[tuple[Any, Any]]) -> None:
        self._items = {_canonical(key): (key, value) for key, value in items}

    def __getitem__(self, key: Any) -> Any:
        return self._items[_canonical(key)][1]

    def __iter__(self) -> Iterator[Any]:
        return (key for key, _ in self._items.values())

    def __len__(self) -> int:
        return len(self._items)


_NUMBERS: Final = frozenset({int, UInt, float})
_ORDERED: Final = frozenset({bool, str, bytes, Timestamp, Duration})
_KEYS: Final = frozenset({int, UInt, str, bool})
_TYPES: Final[Mapping[type, Type]] = {
    bool: BOOL,
    int: INT,
    UInt: UINT,
    float: DOUBLE,
    str: STRING,
    bytes: BYTES,
    type(None): NULL,
    Timestamp: TIMESTAMP,
    Duration: DURATION,
    list: LIST,
    tuple: LIST,
    dict: MAP,
}


def is_map(value: Any) -> bool:
    """Whether `value` is a map."""
    return type(value) is dict or isinstance(value, Mapping)


def is_list(value: Any) -> bool:
    """Whether `value` is a list."""
    return isinstance(value, (list, tuple))


def type_of(value: Any) -> Type:
    """The type that CEL's `type(value)` answers; lists and maps without their parameters."""
    known = _TYPES.get(type(value))
    if known is not None:
        return known
    if isinstance(value, Type):
        return TYPE
    if isinstance(value, Mapping):
        return MAP
    if isinstance(value, (list, tuple)):
        return LIST
    raise EvalError(f"a Python {type(value).__name__} is not a value of the policy language")


def type_name(value: Any) -> str:
    """The name of the value's type, as errors show it."""
    return type_of(value).name


def spelled(kind: Type) -> str:
    """The name that CEL gives to a type at run time."""
    return {"timestamp": "google.protobuf.Timestamp", "duration": "google.protobuf.Duration"}.get(kind.name, kind.name)


def no_overload(what: str, *values: Any) -> EvalError:
    """The error of an operator or function that does not take such values."""
    kinds = [type_name(value) for value in values]
    hint = ""
    if len(set(kinds)) > 1 and set(kinds) <= {"int", "uint", "double"} and what in _SIGNS:
        hint = ": arithmetic does not mix them, write double(…)"
    infix = len(kinds) == 2 and (what == "in" or not what[0].isalpha())
    shown = f" {what} ".join(kinds) if infix else f"{what}({', '.join(kinds)})"
    return EvalError(f"no such overload: {shown}{hint}")


_SIGNS: Final = frozenset("+-*/%")


# Equality and order


def equals(meter: Meter, left: Any, right: Any) -> bool:
    """Whether two values are equal: deep, numbers by value, values of different types never."""
    pending = [(left, right)]
    while pending:
        a, b = pending.pop()
        if isinstance(a, (list, tuple)):
            if not isinstance(b, (list, tuple)) or len(a) != len(b):
                return False
            meter.spend(len(a) + 1)
            pending.extend(zip(a, b, strict=True))
        elif is_map(a):
            if not is_map(b) or len(a) != len(b):
                return False
            meter.spend(len(a) + 1)
            for key, value in a.items():
                other = find(b, key)
                if other is MISSING:
                    return False
                pending.append((value, other))
        elif not _same(a, b):
            return False
    return True


def _same(a: Any, b: Any) -> bool:
    """Whether two values, of which the first is neither list nor map, are equal."""
    kind, other = type(a), type(b)
    if kind is other:
        return bool(a == b)
    if kind in _NUMBERS and other in _NUMBERS:
        return bool(_level(a, other) == _level(b, kind))
    return isinstance(a, Type) and a == b


def _level(number: Any, other: type) -> Any:
    """A number as it is compared with one of type `other`: as it is, but beside an int 2^63 counts as the largest int.

    The standard's suite wants that one double, which is what the largest int becomes as a double, to be equal to it.
    """
    return INT_MAX if other is int and type(number) is float and number == _EDGE else number


def _ordered(sign: str, a: Any, b: Any) -> tuple[Any, Any]:
    """The two values ready for Python's comparison, if they have an order."""
    kind, other = type(a), type(b)
    if kind is other and (kind in _ORDERED or kind in _NUMBERS):
        return a, b
    if kind in _NUMBERS and other in _NUMBERS:
        return _level(a, other), _level(b, kind)
    raise no_overload(sign, a, b)


def less(a: Any, b: Any) -> bool:
    """`a < b`."""
    left, right = _ordered("<", a, b)
    return bool(left < right)


def less_equal(a: Any, b: Any) -> bool:
    """`a <= b`."""
    left, right = _ordered("<=", a, b)
    return bool(left <= right)


def greater(a: Any, b: Any) -> bool:
    """`a > b`."""
    left, right = _ordered(">", a, b)
    return bool(left > right)


def greater_equal(a: Any, b: Any) -> bool:
    """`a >= b`."""
    left, right = _ordered(">=", a, b)
    return bool(left >= right)


# Arithmetic


def _int(value: int) -> int:
    if INT_MIN <= value <= INT_MAX:
        return value
    raise EvalError("integer overflow: an int has 64 bits")


def make_uint(value: int) -> UInt:
    """The uint of that value, if there is one."""
    if 0 <= value <= UINT_MAX:
        return UInt(value)
    raise EvalError("integer overflow: a uint lies between 0 and 2^64 - 1")


def add(meter: Meter, a: Any, b: Any) -> Any:
    """`a + b`: numbers of one type, texts, bytes, lists, times."""
    kind = type(a)
    if kind is type(b):
        if kind is int:
            return _int(a + b)
        if kind is float:
            return a + b
        if kind is str or kind is bytes:
            built(meter, len(a) + len(b))
            return a + b
        if kind is UInt:
            return make_uint(a + b)
        if kind is Duration:
            return Duration(a.nanos + b.nanos)
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        built(meter, len(a) + len(b))
        return [*a, *b]
    if kind is Timestamp and type(b) is Duration:
        return a.plus(b)
    if kind is Duration and type(b) is Timestamp:
        return b.plus(a)
    raise no_overload("+", a, b)


def subtract(a: Any, b: Any) -> Any:
    """`a - b`."""
    kind = type(a)
    if kind is type(b):
        if kind is int:
            return _int(a - b)
        if kind is float:
            return a - b
        if kind is UInt:
            return make_uint(int(a) - int(b))
        if kind is Duration:
            return Duration(a.nanos - b.nanos)
        if kind is Timestamp:
            return a.minus(b)
    if kind is Timestamp and type(b) is Duration:
        return Timestamp(a.nanos - b.nanos)
    raise no_overload("-", a, b)


def multiply(a: Any, b: Any) -> Any:
    """`a * b`."""
    kind = type(a)
    if kind is type(b):
        if kind is int:
            return _int(a * b)
        if kind is float:
            return a * b
        if kind is UInt:
            return make_uint(a * b)
    raise no_overload("*", a, b)


def divide(a: Any, b: Any) -> Any:
    """`a / b`; integers cut toward zero, a double divided by zero is infinite or NaN."""
    kind = type(a)
    if kind is type(b):
        if kind is float:
            if b:
                return a / b
            return math.nan if math.isnan(a) or not a else math.copysign(math.inf, a) * math.copysign(1.0, b)
        if kind is int or kind is UInt:
            if not b:
                raise EvalError("divide by zero")
            whole = abs(a) // abs(b)
            return UInt(whole) if kind is UInt else _int(whole if (a < 0) == (b < 0) else -whole)
    raise no_overload("/", a, b)


def modulo(a: Any, b: Any) -> Any:
    """`a % b`, with the sign of `a`; integers only."""
    kind = type(a)
    if kind is type(b) and (kind is int or kind is UInt):
        if not b:
            raise EvalError("modulus by zero")
        if a == INT_MIN and b == -1:  # the quotient does not fit, and CEL has an error there too
            raise EvalError("integer overflow: an int has 64 bits")
        rest = abs(a) % abs(b)
        return UInt(rest) if kind is UInt else -rest if a < 0 else rest
    raise no_overload("%", a, b)


def negate(a: Any) -> Any:
    """`-a`."""
    if type(a) is int:
        return _int(-a)
    if type(a) is float:
        return -a
    raise no_overload("-", a)


def built(meter: Meter, size: int) -> None:
    """Count a value of `size` characters, bytes or elements that is about to be built.

    The steps make all that an evaluation builds finite, not only each value: a loop over large texts is dear.
    """
    meter.size(size)
    meter.spend(size >> 6)


# Looking into lists and maps


def make_map(pairs: Iterable[tuple[Any, Any]]) -> Mapping[Any, Any]:
    """The map of a map literal or of `transformMap`."""
    items = list(pairs)
    for key, _ in items:
        if type(key) not in _KEYS:
            raise EvalError(f"a map's key is a string, int, uint or bool, not {type_name(key)}")
    plain = not any(type(key) is bool for key, _ in items)
    result: Mapping[Any, Any] = dict(items) if plain else KeyedMap(items)
    if len(result) != len(items):
        raise EvalError(f"the key {_shown(_twice(items))} stands twice in a map")
    return result


def _twice(items: Iterable[tuple[Any, Any]]) -> Any:
    seen: set[Any] = set()
    for key, _ in items:
        if _canonical(key) in seen:
            return key
        seen.add(_canonical(key))
    raise AssertionError("no key stands twice")


def find(mapping: Mapping[Any, Any], key: Any) -> Any:
    """The value under `key`, or `MISSING`; a key that no map can have is missing."""
    kind = type(key)
    if kind is str:
        return mapping.get(key, MISSING)
    if kind is float and key.is_integer():
        key = int(key)
    elif kind not in _KEYS:
        return MISSING
    value = mapping.get(key, MISSING)
    if value is not MISSING and key in (0, 1) and not isinstance(mapping, KeyedMap):
        boolean = kind is bool
        if not any(other == key and (type(other) is bool) == boolean for other in mapping):
            return MISSING
    return value


def contains(meter: Meter, item: Any, container: Any) -> bool:
    """`item in container`, of a list or among the keys of a map."""
    if is_map(container):
        return find(container, item) is not MISSING
    if not isinstance(container, (list, tuple)):
        raise no_overload("in", item, container)
    if type(item) is str:
        meter.spend(len(container) >> 4)
        return item in container
    meter.spend(len(container))
    return any(equals(meter, item, element) for element in container)


def index(container: Any, key: Any) -> Any:
    """`container[key]`."""
    if isinstance(container, (list, tuple)):
        return container[_position(container, key)]
    if is_map(container):
        value = find(container, key)
        if value is MISSING:
            raise EvalError(f"no such key: {_shown(key)}")
        return value
    raise EvalError(f"no such overload: {type_name(container)}[{type_name(key)}]")


def _position(container: Sequence[Any], key: Any) -> int:
    kind = type(key)
    if kind not in _NUMBERS or (kind is float and not key.is_integer()):
        raise EvalError(f"a list's index is a whole number, not {_shown(key)}")
    if not 0 <= key < len(container):
        hint = f"; CEL counts from the front only: x[size(x) - {-int(key)}]" if key < 0 else ""
        raise EvalError(f"index {int(key)} is out of range: the list has {len(container)} elements{hint}")
    return int(key)


def _canonical(key: Any) -> Any:
    return ("bool", key) if type(key) is bool else key


def _shown(key: Any) -> str:
    kind = type(key)
    if kind is str:
        return f'"{key[:60]}"'
    return str(key).lower() if kind in _KEYS or kind is float else type_name(key)


BINARY: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "-": subtract,
    "*": multiply,
    "/": divide,
    "%": modulo,
    "<": less,
    "<=": less_equal,
    ">": greater,
    ">=": greater_equal,
}
