"""Partial evaluation: an expression with some of its paths already known.

Invariants:
* The folded expression has the value that the whole one would have, wherever the known paths have the given values;
  where CEL absorbs an error (`false && x`), folding drops what need not be computed.
* Only paths from a root are replaced: a macro's variable of the same name is another node.
* What would be an error stays as it is, so that it is reported where it stands.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from ledgercli.cel.checker import Checked
from ledgercli.cel.evaluate import Run, evaluate, typed
from ledgercli.cel.syntax import (
    Binary,
    Call,
    Conditional,
    Expand,
    Has,
    Index,
    ListOf,
    Literal,
    Logic,
    Macro,
    MapOf,
    Node,
    Path,
    Root,
    Select,
    Unary,
    Unknown,
    Variable,
    children,
    path_of,
)
from ledgercli.cel.types import BOOL, BoundError, EvalError, Limits, Meter
from ledgercli.cel.values import is_list, is_map, type_of

_SMALL: Final = Limits(iterations=10_000, size=10_000)  # of what is computed while folding
_WORLD: Final = frozenset({"."})  # no variable has that name


def fold(checked: Checked, constants: Mapping[Path, Any]) -> Checked:
    """`checked` with each path of `constants` replaced by its value, and simplified."""
    if not checked.ok:
        return checked
    return replace(checked, node=_Folder(constants).fold(checked.node))


class _Folder:
    def __init__(self, constants: Mapping[Path, Any]) -> None:
        self._constants = constants
        self._done: dict[Node, Node] = {}  # a define's body is shared, and folded once
        self._depends: dict[Node, frozenset[str]] = {}
        self._costly: set[Node] = set()  # not tried again as a part of something larger

    def fold(self, node: Node) -> Node:
        """The simplest node of the same value."""
        if node not in self._done:
            self._done[node] = self._folded(node)
        return self._done[node]

    def _folded(self, node: Node) -> Node:  # noqa: C901 - a table of the kinds of nodes
        match node:
            case Root() | Select() | Index():
                return self._link(node)
            case Has():
                return self._computed(replace(node, operand=self.fold(node.operand)))
            case Unary():
                return self._computed(replace(node, operand=self.fold(node.operand)))
            case Binary():
                return self._computed(replace(node, left=self.fold(node.left), right=self.fold(node.right)))
            case Logic():
                return self._logic(node)
            case Conditional():
                return self._conditional(node)
            case ListOf():
                return self._computed(replace(node, elements=tuple(map(self.fold, node.elements))))
            case MapOf():
                entries = tuple((self.fold(key), self.fold(item)) for key, item in node.entries)
                return self._computed(replace(node, entries=entries))
            case Call():
                return self._call(node)
            case Macro():
                condition = None if node.condition is None else self.fold(node.condition)
                result = None if node.result is None else self.fold(node.result)
                return self._computed(replace(node, range=self.fold(node.range), condition=condition, result=result))
            case Expand():
                body = self.fold(node.body)
                return _literal(node, body.value) if isinstance(body, Literal) else replace(node, body=body)
        return node

    def _link(self, node: Root | Select | Index) -> Node:
        path = path_of(node)
        if path is not None and None not in path:
            found, value = self._known(path)
            if found:
                return _literal(node, value)
        if isinstance(node, Root):
            return node
        if isinstance(node, Select):
            return self._computed(replace(node, operand=self.fold(node.operand)))
        return self._computed(replace(node, operand=self.fold(node.operand), key=self.fold(node.key)))

    def _known(self, path: Path) -> tuple[bool, Any]:
        """Whether `path` is a constant, and its value."""
        try:
            return path in self._constants, self._constants.get(path)
        except TypeError:  # a key that cannot be hashed
            return False, None

    def _call(self, node: Call) -> Node:
        """Arguments are folded; a root as a whole stands for itself, and paths that are wanted as paths stay."""
        takes_path = any(one.name == "path" for function in node.functions for one in function.params)
        args = node.args if takes_path else tuple(map(self.fold, node.args))
        return self._computed(replace(node, args=args))

    def _logic(self, node: Logic) -> Node:
        decisive = node.operator == "||"
        operands: list[Node] = []
        for operand in map(self.fold, node.operands):
            if isinstance(operand, Literal) and operand.value is decisive:
                return _literal(node, decisive)
            if not (isinstance(operand, Literal) and operand.value is (not decisive)):
                operands.append(operand)
        if not operands:
            return _literal(node, not decisive)
        if len(operands) == 1 and operands[0].type is BOOL:
            return operands[0]
        return replace(node, operands=tuple(operands))

    def _conditional(self, node: Conditional) -> Node:
        condition = self.fold(node.condition)
        if isinstance(condition, Literal) and type(condition.value) is bool:
            return self.fold(node.then if condition.value else node.otherwise)
        return replace(node, condition=condition, then=self.fold(node.then), otherwise=self.fold(node.otherwise))

    def _computed(self, node: Node) -> Node:
        """The literal that a node amounts to, if it depends on nothing and has a value."""
        if any(child in self._costly for child in children(node)):
            self._costly.add(node)
        if self._outside(node) or node in self._costly:
            return node
        try:
            value = evaluate(node, Run({}, None, Meter(_SMALL)))
        except BoundError:
            self._costly.add(node)
            return node
        except EvalError:
            return node
        return _literal(node, value)

    def _outside(self, node: Node) -> frozenset[str]:
        """What the value depends on: variables of macros around the node, and `_WORLD`."""
        if node not in self._depends:
            below = [self._outside(child) for child in children(node)]
            self._depends[node] = frozenset().union(*below) | _own(node)
            if isinstance(node, Macro):
                self._depends[node] = below[0] | (frozenset().union(*below[1:]) - set(node.variables))
        return self._depends[node]


def _own(node: Node) -> frozenset[str]:
    """What a node depends on besides its children."""
    match node:
        case Root() | Unknown():
            return _WORLD
        case Variable():
            return frozenset({node.name})
        case Call():
            return _WORLD if any(one.observed or one.context for one in node.functions) else frozenset()
    return frozenset()


def _literal(node: Node, value: Any) -> Literal:
    value = typed(node, value)
    kind = node.type if is_list(value) or is_map(value) else type_of(value)  # of lists the node's type says more
    return Literal(node.source, node.start, node.end, value, type=kind)
