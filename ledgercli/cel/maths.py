"""The functions over numbers: the standard's `math` extension.

Invariants:
* Integers stay integers of their type; an answer that does not fit is an error.
* `greatest` and `least` compare across types and answer the argument itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

from ledgercli.cel.types import BOOL, DOUBLE, DYN, INT, UINT, EvalError, Function, ListType, Meter, Type
from ledgercli.cel.values import INT_MIN, UINT_MAX, UInt, no_overload

_NUMBERS = frozenset({int, UInt, float})
_WORD = 2**64


def _best(name: str, better: Callable[[Any, Any], bool]) -> tuple[Function, ...]:
    """`math.greatest` or `math.least`, of arguments or of one list."""

    def choose(values: Sequence[Any]) -> Any:
        if not values:
            raise EvalError(f"{name}() of an empty list has no answer")
        best = values[0]
        for value in values:
            if type(value) not in _NUMBERS:
                raise no_overload(name, value)
            if better(value, best):
                best = value
        return best

    def of_arguments(*values: Any) -> Any:
        return choose(values)

    def of_list(meter: Meter, values: Sequence[Any]) -> Any:
        meter.spend(len(values))
        return choose(values)

    kinds = (INT, UINT, DOUBLE)
    return (
        *(Function(name, (kind,), kind, of_arguments, variadic=True) for kind in kinds),
        *(Function(name, (ListType(kind),), kind, of_list, meter=True) for kind in kinds),
        Function(name, (ListType(DYN),), DYN, of_list, meter=True),
        Function(name, (DYN,), DYN, of_arguments, variadic=True),
    )


def _rounding(name: str, rounded: Callable[[float], float]) -> Function:
    """A rounding to a whole number that stays a double; NaN and the infinities stay themselves."""

    def call(value: float) -> float:
        return math.copysign(rounded(value), value) if math.isfinite(value) else value

    return Function(f"math.{name}", (DOUBLE,), DOUBLE, call)


def _half_away(value: float) -> float:
    whole = math.trunc(value)
    return whole + math.copysign(1, value) if abs(value - whole) >= 0.5 else float(whole)


def _abs_int(value: int) -> int:
    if value == INT_MIN:
        raise EvalError("integer overflow: the absolute value does not fit in an int")
    return abs(value)


def _sign(value: float) -> float:
    return value if math.isnan(value) or not value else math.copysign(1.0, value)


def _sign_int(value: int) -> int:
    return (value > 0) - (value < 0)


def _square_root(value: float) -> float:
    return math.sqrt(value) if not value < 0 else math.nan


def _signed(bits: int) -> int:
    bits %= _WORD
    return bits - _WORD if bits >= _WORD // 2 else bits


def _left(value: int, places: int) -> int:
    return _signed(value << _places(places)) if places < 64 else 0


def _right(value: int, places: int) -> int:
    """A shift of the 64 bits as they are: a negative int does not keep its sign."""
    return _signed(value % _WORD >> _places(places))


def _left_uint(value: int, places: int) -> UInt:
    return UInt((value << _places(places)) % _WORD if places < 64 else 0)


def _right_uint(value: int, places: int) -> UInt:
    return UInt(value >> _places(places))


def _places(places: int) -> int:
    if places < 0:
        raise EvalError(f"negative offset: cannot shift by {places}")
    return min(places, 64)


def _of_both(name: str, call: Callable[[int, int], int]) -> tuple[Function, Function]:
    """A bit operation on two ints, and on two uints."""

    def of_uints(a: int, b: int) -> UInt:
        return UInt(call(a, b))

    return Function(name, (INT, INT), INT, call), Function(name, (UINT, UINT), UINT, of_uints)


def _unary(name: str, result: Type | None, *ways: tuple[Type, Callable[..., Any]]) -> tuple[Function, ...]:
    """The overloads of a function of one number; the result is of the argument's type where none is given."""
    return tuple(Function(f"math.{name}", (kind,), result or kind, call) for kind, call in ways)


MATHS: Final[tuple[Function, ...]] = (
    *_best("math.greatest", lambda a, b: a > b),
    *_best("math.least", lambda a, b: a < b),
    _rounding("ceil", math.ceil),
    _rounding("floor", math.floor),
    _rounding("round", _half_away),
    _rounding("trunc", math.trunc),
    *_unary("abs", None, (INT, _abs_int), (UINT, lambda value: value), (DOUBLE, abs)),
    *_unary("sign", None, (INT, _sign_int), (UINT, lambda value: UInt(_sign_int(value))), (DOUBLE, _sign)),
    *_unary("sqrt", DOUBLE, (INT, _square_root), (UINT, _square_root), (DOUBLE, _square_root)),
    *_unary("isNaN", BOOL, (DOUBLE, math.isnan)),
    *_unary("isInf", BOOL, (DOUBLE, math.isinf)),
    *_unary("isFinite", BOOL, (DOUBLE, math.isfinite)),
    *_of_both("math.bitAnd", lambda a, b: int(a) & int(b)),
    *_of_both("math.bitOr", lambda a, b: int(a) | int(b)),
    *_of_both("math.bitXor", lambda a, b: int(a) ^ int(b)),
    *_unary("bitNot", None, (INT, lambda value: ~value), (UINT, lambda value: UInt(UINT_MAX ^ int(value)))),
    Function("math.bitShiftLeft", (INT, INT), INT, _left),
    Function("math.bitShiftLeft", (UINT, INT), UINT, _left_uint),
    Function("math.bitShiftRight", (INT, INT), INT, _right),
    Function("math.bitShiftRight", (UINT, INT), UINT, _right_uint),
)
