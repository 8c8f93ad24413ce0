"""The types that operators take and give, and what is said when they do not fit.

Invariants:
* Arithmetic that may mix int and double at run time is a problem, because JSON data does mix them; the hint says
  where to write `double(…)`.
* A comparison that can never be true is a problem; one that only may not be is none.
"""

from __future__ import annotations

from typing import NamedTuple

from ledgercli.cel.relations import NUMBERS, is_map_type, join, key_type, may_equal, may_order, nearest, plain
from ledgercli.cel.syntax import Binary, ListOf, Literal, Node, Root, Select, Variable, render
from ledgercli.cel.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    NULL,
    STRING,
    TIMESTAMP,
    UINT,
    EnumType,
    ListType,
    RecordType,
    Type,
)


class Finding(NamedTuple):
    """What is wrong with an operator: the parts of a `Problem` without its place."""

    code: str
    message: str
    hint: str | None = None
    suggestions: tuple[str, ...] = ()
    place: Node | None = None  # where it is not the whole operator


_ARITHMETIC = {
    "+": (INT, UINT, DOUBLE, STRING, BYTES, DURATION),
    "-": (INT, UINT, DOUBLE, DURATION),
    "*": (INT, UINT, DOUBLE),
    "/": (INT, UINT, DOUBLE),
    "%": (INT, UINT),
}
_TIMES = {
    ("+", TIMESTAMP, DURATION): TIMESTAMP,
    ("+", DURATION, TIMESTAMP): TIMESTAMP,
    ("-", TIMESTAMP, DURATION): TIMESTAMP,
    ("-", TIMESTAMP, TIMESTAMP): DURATION,
}
_TEXTS = frozenset({STRING, BYTES, TIMESTAMP, DURATION})


def arithmetic(node: Binary) -> tuple[Type, Finding | None]:
    """The type of `+ - * / %` over the checked operands."""
    sign, a, b = node.operator, plain(node.left.type), plain(node.right.type)
    if a == b and a in _ARITHMETIC[sign]:
        return a, None
    if (sign, a, b) in _TIMES:
        return _TIMES[sign, a, b], None
    if sign == "+" and isinstance(a, ListType) and isinstance(b, ListType):
        return join(a, b), None
    if DYN in (a, b):
        return _dynamic(node, b if a == DYN else a)
    if {a, b} <= NUMBERS:
        return DYN, Finding("mixed-arithmetic", f"{sign} does not mix {a} and {b}", _doubled(node))
    hint = None
    if sign == "+" and STRING in (a, b):
        other = node.right if a == STRING else node.left
        hint = f"write string({render(other)}) to join it to a text"
    return DYN, Finding("type-mismatch", f"{sign} does not take {a} and {b}", hint)


def _dynamic(node: Binary, known: Type) -> tuple[Type, Finding | None]:
    """Arithmetic of which at most one side has a known type."""
    sign = node.operator
    if sign == "+" and (known in (STRING, BYTES) or isinstance(known, ListType)):
        return known, None
    if sign in "+-" and known in _TEXTS:
        return DYN, None
    if known != DYN and known not in NUMBERS:
        return DYN, Finding("type-mismatch", f"{sign} does not take {known}")
    if sign == "%":
        hint = f"write {_as(node.left, 'int')} % {_as(node.right, 'int')}"
        kind = known if known in (INT, UINT) else DYN
        return kind, Finding("mixed-arithmetic", "% takes whole numbers, and a value from JSON may be a double", hint)
    hint = _doubled(node)
    if sign == "+" and known == DYN:
        hint += f", or {_as(node.left, 'string')} + {_as(node.right, 'string')} for texts"
    message = f"{sign} may mix int and double here, which fails: a number from JSON may be either"
    return DYN, Finding("mixed-arithmetic", message, hint)


def _doubled(node: Binary) -> str:
    return f"write {_as(node.left, 'double')} {node.operator} {_as(node.right, 'double')}"


def _as(node: Node, wanted: str) -> str:
    """The node's text, converted unless it has the wanted type."""
    if plain(node.type).name == wanted:
        return render(node) if not isinstance(node, Binary) else f"({render(node)})"
    if isinstance(node, Literal) and wanted == "double" and node.type in NUMBERS:
        return f"{int(node.value)}.0"
    return f"{wanted}({render(node)})"


def comparison(node: Binary) -> Finding | None:
    """What is wrong with `== != < <= > >= in` over the checked operands; the type is always bool."""
    if node.operator in {"==", "!="}:
        return _equality(node.operator, node.left, node.right)
    return membership(node) if node.operator == "in" else _order(node)


def _equality(sign: str, left: Node, right: Node) -> Finding | None:
    a, b = left.type, right.type
    if may_equal(a, b):
        return enumeration(a, right) or enumeration(b, left)
    answer = "false" if sign == "==" else "true"
    hint = None
    if NULL in (a, b):
        other = left if b == NULL else right
        hint = f"has({render(other)}) asks whether it is there" if isinstance(other, Select) else None
    elif STRING in (plain(a), plain(b)):
        hint = _unquoted(left) or _unquoted(right)
    return Finding("never-equal", f"{sign} between {plain(a)} and {plain(b)} is always {answer}", hint)


def _unquoted(node: Node) -> str | None:
    """What a quoted number or bool should be."""
    if isinstance(node, Literal) and isinstance(node.value, str):
        text = node.value.strip()
        if text in {"true", "false"} or text.removeprefix("-").replace(".", "", 1).isdecimal():
            return f"write {text} without quotes"
    if isinstance(node, Literal) and type(node.value) in {int, float, bool}:
        return f"a text is written '{render(node)}'"
    return None


def enumeration(kind: Type, node: Node) -> Finding | None:
    """A literal that is none of the values that the other side can have."""
    if not isinstance(kind, EnumType) or not isinstance(node, Literal) or not isinstance(node.value, str):
        return None
    if node.value in kind.values:
        return None
    near = nearest(node.value, kind.values)
    hint = f"did you mean '{near[0]}'?" if near else None
    return Finding(f"unknown-{kind.what}", f"no {kind.what} {node.value!r}", hint, near, node)


def membership(node: Binary) -> Finding | None:
    """What is wrong with `left in right`."""
    left, right = node.left, node.right
    kind = plain(right.type)
    if isinstance(kind, ListType):
        return _in_list(left, right, kind)
    if isinstance(kind, RecordType) and isinstance(left, Literal) and isinstance(left.value, str):
        return unknown_field(kind, left.value, left)
    if is_map_type(kind):
        if may_equal(left.type, key_type(kind)):
            return None
        return Finding("never-equal", f"the keys are {key_type(kind)}, and this is {plain(left.type)}", None, (), left)
    if kind == DYN:
        return None
    hint = f"write {render(right)}.contains({render(left)})" if kind == STRING else None
    return Finding("type-mismatch", f"in looks into a list or the keys of a map, not into {kind}", hint)


def _in_list(left: Node, right: Node, kind: ListType) -> Finding | None:
    if not may_equal(left.type, kind.elem):
        message = f"{plain(left.type)} in {kind} is always false"
        return Finding("never-equal", message, _unquoted(left) if STRING in (left.type, kind.elem) else None)
    elements = right.elements if isinstance(right, ListOf) else ()
    found = (enumeration(left.type, element) for element in elements)
    return next(filter(None, found), None) or enumeration(kind.elem, left)


def unknown_field(kind: RecordType, name: str, place: Node | None = None) -> Finding | None:
    """The finding about a field that a record does not have."""
    if name in kind.fields or kind.open:
        return None
    near = nearest(name, kind.fields)
    hint = None
    if near:
        note = kind.fields[near[0]].note
        hint = f"did you mean {near[0]}?" + (f" It is {note}" if note else "")
    elif kind.fields and len(kind.fields) <= 8:
        hint = f"there is {', '.join(sorted(kind.fields))}"
    return Finding(f"unknown-{kind.noun}", f"no {kind.noun} {name}", hint, near, place)


def _order(node: Binary) -> Finding | None:
    left, right = node.left, node.right
    a, b = plain(left.type), plain(right.type)
    if may_order(a, b):
        return None
    hint = None
    if isinstance(left, Binary) and left.operator in {"<", "<=", ">", ">="}:
        hint = f"write {render(left)} && {render(left.right)} {node.operator} {render(right)}"
    elif STRING in (a, b) and {a, b} & NUMBERS:
        other = left if a == STRING else right
        hint = _unquoted(left) or _unquoted(right) or f"write double({render(other)})"
    elif TIMESTAMP in (a, b) and STRING in (a, b):
        hint = f"write timestamp({render(left if a == STRING else right)})"
    return Finding("type-mismatch", f"{node.operator} does not compare {a} with {b}", hint)


def negation(node: Node, sign: str) -> tuple[Type, Finding | None]:
    """The type of `!x` or `-x`."""
    kind = plain(node.type)
    if sign == "!":
        if kind in (BOOL, DYN):
            return BOOL, None
        return BOOL, Finding("type-mismatch", f"! takes a bool, and this is {kind}", _emptiness(node))
    if kind in (INT, DOUBLE, DYN):
        return kind, None
    return DYN, Finding("type-mismatch", f"- does not take {kind}")


def condition(node: Node, what: str, code: str = "type-mismatch") -> Finding | None:
    """What is wrong with a node where `true` or `false` is wanted."""
    if plain(node.type) in (BOOL, DYN):
        return None
    return Finding(code, f"{what} must be true or false; this is {plain(node.type)}", _emptiness(node), (), node)


def _emptiness(node: Node) -> str | None:
    """How to ask whether a value counts as something, as other languages do without asking."""
    kind = plain(node.type)
    if isinstance(node, (Root, Variable, Select)):
        if kind == STRING:
            return f"write {render(node)} != ''"
        if kind in NUMBERS:
            return f"write {render(node)} != 0"
        if isinstance(kind, ListType) or is_map_type(kind):
            return f"write size({render(node)}) > 0"
    if isinstance(node, Literal) and kind == STRING:
        return f"write x == {render(node)}, or x in [{render(node)}, …]"
    return None
