"""A digest of what an expression means: two that are only written otherwise have the same.

Invariants:
* The same digest means the same answer in every situation: defines are put in, variables have no names, the order of
  what `&&` and `||` join, of what `==` compares and of the members of a written list does not count.
* Different digests say nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Final

from ledgercli import cel
from ledgercli.cel import syntax

_TURNED: Final = {">": "<", ">=": "<="}
_EVEN: Final = frozenset({"==", "!="})
_NEGATED: Final = {"==": "!=", "!=": "=="}
_Scope = Mapping[str, int]


def digest(checked: cel.Checked | None) -> str:
    """Return the digest of an expression; of none, the empty text."""
    return "" if checked is None else _Digester().of(checked.node, {})


def digest_of_text(text: cel.CheckedText | None) -> str:
    """Return the digest of a text with expressions in braces."""
    if text is None:
        return ""
    return _hashed("text", *(f"={part}" if isinstance(part, str) else digest(part) for part in text.parts))


def _hashed(*parts: str) -> str:
    return hashlib.sha256(
        "\0".join(f"{len(part)}:{part}" for part in parts).encode("utf-8", "surrogatepass")
    ).hexdigest()


class _Digester:
    def __init__(self) -> None:
        self._bodies: dict[cel.Node, str] = {}

    def of(self, node: cel.Node, scope: _Scope) -> str:
        """The digest of a part; `scope` says how deep each variable is bound."""
        match node:
            case syntax.Expand():
                if node.body not in self._bodies:
                    self._bodies[node.body] = self.of(node.body, {})
                return self._bodies[node.body]
            case syntax.Variable():
                return _hashed("variable", str(scope.get(node.name, node.name)))
            case syntax.Macro():
                return self._macro(node, scope)
            case syntax.Logic():
                return _hashed("logic", node.operator, *sorted(set(self._joined(node, node.operator, scope))))
            case syntax.Unary(operator="!"):
                return self._negated(node, scope)
            case syntax.Binary():
                return self._binary(node.operator, node, scope)
        return _hashed(*_head(node), *(self.of(part, scope) for part in syntax.children(node)))

    def _joined(self, node: cel.Node, operator: str, scope: _Scope) -> list[str]:
        """The digests of all that a chain of one operator joins, through defines."""
        if isinstance(node, syntax.Expand) and isinstance(node.body, syntax.Logic):
            return self._joined(node.body, operator, {})
        if isinstance(node, syntax.Logic) and node.operator == operator:
            return [one for part in node.operands for one in self._joined(part, operator, scope)]
        return [self.of(node, scope)]

    def _negated(self, node: syntax.Unary, scope: _Scope) -> str:
        inner = node.operand
        if isinstance(inner, syntax.Binary) and inner.operator in _NEGATED:
            return self._binary(_NEGATED[inner.operator], inner, scope)
        return _hashed("unary", "!", self.of(inner, scope))

    def _binary(self, operator: str, node: syntax.Binary, scope: _Scope) -> str:
        left, right = self.of(node.left, scope), self.of(node.right, scope)
        if operator in _TURNED:
            return _hashed("binary", _TURNED[operator], right, left)
        if operator in _EVEN:
            left, right = sorted((left, right))
        if operator == "in" and isinstance(node.right, syntax.ListOf):
            right = _hashed("members", *sorted({self.of(one, scope) for one in node.right.elements}))
        elif operator == "in" and isinstance(node.right, cel.Literal) and isinstance(node.right.value, (list, tuple)):
            right = _hashed("members", *sorted({_hashed(*_literal(one)) for one in node.right.value}))
        return _hashed("binary", operator, left, right)

    def _macro(self, node: syntax.Macro, scope: _Scope) -> str:
        depth = max(scope.values(), default=-1) + 1  # a variable that hides another counts as one more
        inner = {**scope, **{name: depth + number for number, name in enumerate(node.variables)}}
        parts = [self.of(part, inner) if part is not None else "" for part in (node.condition, node.result)]
        return _hashed("macro", node.name, str(len(node.variables)), self.of(node.range, scope), *parts)


def _head(node: cel.Node) -> tuple[str, ...]:
    """What a node says by itself; a place whose type is double turns whole numbers into doubles."""
    double = "double" if node.type == cel.DOUBLE else ""
    match node:
        case cel.Literal():
            return _literal(node.value)
        case syntax.Root() | cel.Name():
            return "root", node.name, double
        case cel.Select():
            return "select", node.field, double
        case syntax.Has():
            return "has", node.field
        case cel.Index():
            return "index", double
        case syntax.Unary():
            return "unary", node.operator
        case syntax.Call():
            return "call", node.function, str(node.method)
        case syntax.Unknown():
            return "unknown", node.source.text[node.start : node.end]
    return (type(node).__name__,)


def _literal(value: object) -> tuple[str, ...]:
    return "literal", type(value).__name__, cel.literal(value)
