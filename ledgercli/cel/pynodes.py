"""Short names for the `ast` nodes that generated code is made of.

Invariants:
* Nothing here knows CEL, but for what Python warns of in code that nobody writes (`1 is None`).
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any, Final

_FLIPPED: Final = {ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.In: ast.NotIn}
Parts = list[str | ast.expr]  # of a label: constant text, and expressions that give text


def name(text: str) -> ast.Name:
    """The value of a name."""
    return ast.Name(text, ast.Load())


def constant(value: Any) -> ast.Constant:
    """A constant."""
    return ast.Constant(value)


def call(callee: str | ast.expr, *args: ast.expr) -> ast.Call:
    """A call with positional arguments."""
    return ast.Call(name(callee) if isinstance(callee, str) else callee, list(args), [])


def item(container: ast.expr, key: ast.expr) -> ast.Subscript:
    """`container[key]`."""
    return ast.Subscript(container, key, ast.Load())


def assigned(local: str, value: ast.expr) -> ast.NamedExpr:
    """`(local := value)`."""
    return ast.NamedExpr(ast.Name(local, ast.Store()), value)


def compared(left: ast.expr, operator: ast.cmpop, right: ast.expr) -> ast.expr:
    """`left operator right`."""
    if isinstance(left, ast.Constant) and isinstance(operator, (ast.Is, ast.IsNot)):
        assert isinstance(right, ast.Constant)  # true, false or null; Python warns of a literal beside `is`
        return constant((left.value is right.value) is isinstance(operator, ast.Is))
    return ast.Compare(left, [operator], [right])


def is_class(value: ast.expr, python_class: str) -> ast.expr:
    """Whether the class of a value is the one that `python_class` names."""
    return compared(ast.Attribute(value, "__class__", ast.Load()), ast.Is(), name(python_class))


def negated(value: ast.expr) -> ast.expr:
    """`not value`."""
    if isinstance(value, ast.Compare) and type(value.ops[0]) in _FLIPPED:
        return compared(value.left, _FLIPPED[type(value.ops[0])](), value.comparators[0])
    if isinstance(value, ast.UnaryOp):
        return value.operand
    return ast.UnaryOp(ast.Not(), value)


def all_of(tests: list[ast.expr]) -> ast.expr:
    """`a and b and …`."""
    return tests[0] if len(tests) == 1 else ast.BoolOp(ast.And(), tests)


def function(names: Sequence[str], body: ast.expr) -> ast.Lambda:
    """`lambda names: body`."""
    return ast.Lambda(parameters(names), body)


def parameters(names: Sequence[str]) -> ast.arguments:
    """Positional parameters."""
    return ast.arguments([], [ast.arg(name) for name in names], None, [], [], None, [])


def set_local(local: str, value: ast.expr) -> ast.stmt:
    """`local = value`."""
    return ast.Assign([ast.Name(local, ast.Store())], value)


def text(parts: Parts) -> ast.expr:
    """The node that puts a label together."""
    if all(isinstance(part, str) for part in parts):
        return constant("".join(part for part in parts if isinstance(part, str)))
    return ast.JoinedStr(
        [constant(part) if isinstance(part, str) else ast.FormattedValue(part, -1, None) for part in parts]
    )
