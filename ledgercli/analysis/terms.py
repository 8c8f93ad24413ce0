"""Which parts of expressions say the same: every checked node gets a number, equal for equal meaning.

Invariants:
* Two nodes with one number have one value in every state (or no value in both); the converse need not hold.
* Defines are written out, variables of macros count by their place, operands that commute are sorted, `a > b` is
  `b < a`, `exists` is `!all(!…)`, and negations are pushed inwards where numbers or texts are compared.
* A number is made once for each node, so that a define that is used in many places costs once.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Final

from ledgercli import cel
from ledgercli.cel.relations import plain
from ledgercli.cel.syntax import (
    Binary,
    Conditional,
    Expand,
    Has,
    ListOf,
    Macro,
    Root,
    Unary,
    Unknown,
    Variable,
    children,
    walk,
)

Term = int
_MIRRORED: Final = {">": "<", ">=": "<="}
_OPPOSITE: Final = {"<": ">=", "<=": ">", ">": "<=", ">=": "<"}
_NUMBERS: Final = (cel.INT, cel.UINT, cel.DOUBLE)


class Terms:
    """The numbers of nodes, for one analysis."""

    def __init__(self) -> None:
        self._known: dict[Hashable, Term] = {}
        self._closed: dict[tuple[cel.Node, bool], Term] = {}
        self._free: dict[cel.Node, bool] = {}

    def term(self, node: cel.Node) -> Term:
        """Return the number of a node that stands in no macro."""
        return self._of(node, {}, negated=False)

    def opposite(self, node: cel.Node) -> Term:
        """Return the number of a condition's negation."""
        return self._of(node, {}, negated=True)

    def every(self, node: Macro, parts: Sequence[cel.Node], *, negated: bool) -> list[Term]:
        """Return the numbers of `all(…)` over the range of a macro, one for each part of its condition."""
        inner, around = self._inside(node, {}), self.term(node.range)
        bodies = [self._of(part, inner, negated=negated) for part in parts]
        return [self.made("all", around, len(node.variables), body) for body in bodies]

    def made(self, *parts: Hashable) -> Term:
        """Return the number of something that is no node, made of other numbers."""
        return self._known.setdefault(parts, len(self._known))

    def _of(self, node: cel.Node, scope: Mapping[str, int], *, negated: bool) -> Term:
        key = (node, negated)
        if scope and self._has_variables(node):
            return self._number(node, scope, negated=negated)
        if key not in self._closed:
            self._closed[key] = self._number(node, {}, negated=negated)
        return self._closed[key]

    def _has_variables(self, node: cel.Node) -> bool:
        if node not in self._free:
            self._free[node] = any(isinstance(part, Variable) for part in walk(node))
        return self._free[node]

    def _number(self, node: cel.Node, scope: Mapping[str, int], *, negated: bool) -> Term:
        shape = self._truth(node, scope, negated=negated)
        if shape is not None:
            return shape
        if negated:
            return self.made("!", self._of(node, scope, negated=False))
        return self._value(node, scope)

    def _truth(self, node: cel.Node, scope: Mapping[str, int], *, negated: bool) -> Term | None:
        """What is true or false, a negation pushed inwards; None for whatever else."""
        match node:
            case Expand():
                return self._of(node.body, {}, negated=negated)
            case Unary(operator="!"):
                return self._of(node.operand, scope, negated=not negated)
            case cel.Logic():
                sign = {"&&": "||", "||": "&&"}[node.operator] if negated else node.operator
                parts = {self._of(part, scope, negated=negated) for part in self.flat(node, node.operator)}
                return parts.pop() if len(parts) == 1 else self.made(sign, *sorted(parts))
            case Binary(operator="==" | "!=") if (asked := _of_truth(node)) is not None:
                part, positive = asked
                return self._of(part, scope, negated=positive == negated)
            case Binary(operator="==" | "!="):
                equal = (node.operator == "==") != negated
                sides = sorted((self._of(node.left, scope, negated=False), self._of(node.right, scope, negated=False)))
                return self.made("==" if equal else "!=", *sides)
            case Binary(operator="<" | "<=" | ">" | ">="):
                return self._order(node, scope, negated=negated)
            case Macro(name="all" | "exists"):
                every = (node.name == "all") != negated
                assert node.condition is not None, "all and exists have a condition"
                inner = self._inside(node, scope)
                body = self._of(node.condition, inner, negated=node.name == "exists")
                whole = self.made("all", self._of(node.range, scope, negated=False), len(node.variables), body)
                return whole if every else self.made("!", whole)
        return None

    def _order(self, node: Binary, scope: Mapping[str, int], *, negated: bool) -> Term:
        sign, left, right = node.operator, node.left, node.right
        outside = False
        if negated:
            if _total(node):
                sign = _OPPOSITE[sign]
            else:
                outside = True
        if sign in _MIRRORED:
            sign, left, right = _MIRRORED[sign], right, left
        whole = self.made(sign, self._of(left, scope, negated=False), self._of(right, scope, negated=False))
        return self.made("!", whole) if outside else whole

    def flat(self, node: cel.Node, operator: str) -> list[cel.Node]:
        """Return the operands of nested chains of one operator."""
        while isinstance(node, Expand):
            node = node.body
        if isinstance(node, cel.Logic) and node.operator == operator:
            return [part for operand in node.operands for part in self.flat(operand, operator)]
        return [node]

    @staticmethod
    def _inside(node: Macro, scope: Mapping[str, int]) -> dict[str, int]:
        depth = max(scope.values(), default=-1) + 1  # a name that hides an outer one has its own place
        return {**scope, **{name: depth + number for number, name in enumerate(node.variables)}}

    def _value(self, node: cel.Node, scope: Mapping[str, int]) -> Term:  # noqa: C901, PLR0912 - a table of the kinds of nodes
        match node:
            case cel.Literal():
                return self._literal(node.value)
            case Root():
                return self.made("root", node.name)
            case Variable():
                return self.made("variable", scope.get(node.name, node.name))
            case cel.Select():
                return self.made(".", self._of(node.operand, scope, negated=False), self._literal(node.field))
            case cel.Index():
                key = self._of(node.key, scope, negated=False)
                return self.made(".", self._of(node.operand, scope, negated=False), key)
            case Has():
                return self.made("has", self._of(node.operand, scope, negated=False), self._literal(node.field))
            case Binary():
                sides = [self._of(node.left, scope, negated=False), self._of(node.right, scope, negated=False)]
                return self.made(node.operator, *(sorted(sides) if _commutes(node) else sides))
            case Macro():
                return self._macro(node, scope)
            case cel.Call():
                return self.made("call", node.function, *self._all(node.args, scope))
            case cel.MapOf():
                pairs = [tuple(self._all(entry, scope)) for entry in node.entries]
                return self.made("map", *sorted(pairs))
            case ListOf():
                return self.made("list", *self._all(node.elements, scope))
            case Unary() | Conditional():
                name = node.operator if isinstance(node, Unary) else "?"
                return self.made("op", name, *self._all(children(node), scope))
            case Unknown():
                return self.made("unknown", id(node))
        return self.made("node", id(node))

    def _all(self, nodes: tuple[cel.Node, ...], scope: Mapping[str, int]) -> list[Term]:
        return [self._of(node, scope, negated=False) for node in nodes]

    def _macro(self, node: Macro, scope: Mapping[str, int]) -> Term:
        inner = self._inside(node, scope)
        parts = [-1 if part is None else self._of(part, inner, negated=False) for part in (node.condition, node.result)]
        around = self._of(node.range, scope, negated=False)
        return self.made("macro", node.name, len(node.variables), around, *parts)

    def _literal(self, value: Any) -> Term:
        if isinstance(value, (list, tuple)):
            return self.made("list", *(self._literal(one) for one in value))
        if isinstance(value, Mapping):
            pairs = [(self._literal(key), self._literal(one)) for key, one in value.items()]
            return self.made("map", *sorted(pairs))
        return self.made("literal", type(value).__name__, repr(value))


def _of_truth(node: Binary) -> tuple[cel.Node, bool] | None:
    """Return what a comparison with true or false asks about, and whether it is true where that is."""
    for part, other in ((node.left, node.right), (node.right, node.left)):
        if isinstance(other, cel.Literal) and isinstance(other.value, bool) and plain(part.type) == cel.BOOL:
            return part, other.value == (node.operator == "==")
    return None


def _commutes(node: Binary) -> bool:
    kinds = plain(node.left.type), plain(node.right.type)
    return node.operator in ("+", "*") and all(kind in _NUMBERS for kind in kinds)


def _total(node: Binary) -> bool:
    """Whether of two such values one is always before, equal to or behind the other: no NaN, one type."""
    return all(_has_order(side) for side in (node.left, node.right)) and _same_kind(node.left, node.right)


def _has_order(node: cel.Node) -> bool:
    kind = plain(node.type)
    if kind in (cel.INT, cel.UINT, cel.STRING):
        return True
    if kind == cel.DOUBLE:  # a number from JSON, not one that was computed
        return cel.path_of(node) is not None or (isinstance(node, cel.Literal) and node.value == node.value)
    return False


def _same_kind(left: cel.Node, right: cel.Node) -> bool:
    kinds = plain(left.type), plain(right.type)
    return kinds[0] == kinds[1] or all(kind in _NUMBERS for kind in kinds)
