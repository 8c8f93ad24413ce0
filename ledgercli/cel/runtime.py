"""What generated code may call: CEL's meaning of the operations that Python has not, or has otherwise.

Invariants:
* These names and the constants of an expression are all that generated code can reach; it has no builtins.
* What one of them will not do raises `GiveUpError`, and the precise form is asked.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import starmap
from typing import Any, Final

from ledgercli.cel import evaluate as precise
from ledgercli.cel import values
from ledgercli.cel.literals import literal
from ledgercli.cel.syntax import step_text
from ledgercli.cel.types import Meter


class GiveUpError(Exception):
    """The fast form does not do this; the precise one does."""


def _fail() -> Any:
    raise GiveUpError


def _sequence(meter: Meter, value: Any, weight: int) -> Any:
    """What a macro of one variable walks, paid for at once."""
    elements = precise.elements(value)
    meter.spend(len(value) * weight)
    return elements


def _pairs(meter: Meter, value: Any, weight: int) -> Any:
    pairs = precise.pairs(value)
    meter.spend(len(value) * weight)
    return pairs


def _transform(pairs: Any, keep: Any, result: Any) -> list[Any]:
    return [result(key, value) for key, value in pairs if keep(key, value)]


def _transform_map(pairs: Any, keep: Any, result: Any) -> Any:
    return values.make_map([(key, result(key, value)) for key, value in pairs if keep(key, value)])


def _has_field(value: Any, name: str) -> bool:
    if not values.is_map(value):
        raise GiveUpError
    return values.find(value, name) is not values.MISSING


def _has_key(value: Any, key: Any) -> bool:
    """`key in value` of what must be a map."""
    return _has_field(value, key)


def _in_list(meter: Meter, item: Any, value: Any) -> bool:
    """`item in value` of what is a list; of a map the read would be another."""
    if values.is_map(value):
        raise GiveUpError
    return values.contains(meter, item, value)


def _note(notes: dict[str, Any], value: Any, label: str) -> Any:
    notes[label] = value
    return value


def _member(notes: dict[str, Any], meter: Meter, item: Any, value: Any, path: str) -> bool:
    """`item in value` of what may be a list or a map; notes the read."""
    found = values.contains(meter, item, value)
    if values.is_map(value):
        notes[f"{literal(item)} in {path}"] = found
    else:
        notes[path] = value
    return found


class _Texts(dict[str, str]):
    """The text of each string that was asked for, made once."""

    def __init__(self, make: Callable[[str], str]) -> None:
        super().__init__()
        self._make = make

    def __missing__(self, key: str) -> str:
        if len(self) >= 4096:
            self.clear()
        text = self[key] = self._make(key)
        return text


TOOLS: Final[dict[str, Any]] = {
    "S": str,
    "I": int,
    "B": bool,
    "F": float,
    "L": list,
    "D": dict,
    "SIZED": frozenset({str, list, dict}),
    "NUMBERS": frozenset({int, float}),
    "U": object(),
    "FAIL": _fail,
    "Meter": Meter,
    "Exception": Exception,
    "len": len,
    "all": all,
    "any": any,
    "sum": sum,
    "list": list,
    "map": map,
    "filter": filter,
    "starmap": starmap,
    "SEQUENCE": _sequence,
    "PAIRS": _pairs,
    "TRANSFORM": _transform,
    "TRANSFORM_MAP": _transform_map,
    "HAS": _has_field,
    "HAS_KEY": _has_key,
    "IN_LIST": _in_list,
    "NOTE": _note,
    "MEMBER": _member,
    "EQUALS": precise.equals,
    "CONTAINS": values.contains,
    "INDEX": values.index,
    "DOUBLE": precise.to_double,
    "NEGATE": values.negate,
    "ADD": values.add,
    "MAKE_MAP": values.make_map,
    "DISPATCH": precise.dispatch,
    "HAS_TYPE": precise.has_type,
    "LITERAL": literal,
    "STEP": step_text,
    "LITERALS": _Texts(literal),
    "STEPS": _Texts(step_text),
}
