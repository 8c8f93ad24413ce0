"""What the rules compare with what: which values of the proposal and the state each part of an expression may show.

A *pattern* is a path from a root with `None` for a key or index known only at run time; that of an answer of the
history is `("?", function)`, and that of a length ends in `SIZE`.

Invariants:
* Only the checked tree is looked at; nothing is evaluated.
* A variable of a macro stands for the elements of what it walks, through `filter`, `map`, conditionals and defines.
* What an arithmetic expression or a function makes of values has no pattern.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from ledgercli import cel
from ledgercli.cel import syntax

Pattern = tuple[Any, ...]
Patterns = frozenset[Pattern]
SIZE: Final = "size()"  # ends the pattern of a length
_MADE: Final = "map()"  # ends that of a list which a macro made of such elements
_NONE: Final[Patterns] = frozenset()
_CONVERSIONS: Final = frozenset({"double", "int", "uint", "dyn"})
_ORDER: Final = frozenset({"==", "!=", "<", "<=", ">", ">=", "in"})


@dataclass(frozen=True, eq=False)
class Compared:
    """Two parts of an expression that meet.

    Arguments:
        sign: a comparison's sign; `key` where the left one is a key into the right one; the name of a method such as
            `startsWith`; `asked` where the left one is an argument in a question about `tool`'s calls; `grounded`
            where it is asked whether the left one stands in what was said.
        left: the patterns of the left part.
        right: the patterns of the right part.
        nodes: both parts.
        tool: of `asked`.
        arg: of `asked`.

    """

    sign: str
    left: Patterns
    right: Patterns
    nodes: tuple[cel.Node, cel.Node]
    tool: str = ""
    arg: str = ""


def comparisons(checked: cel.Checked) -> tuple[Compared, ...]:
    """Return all that an expression compares, defines included."""
    return tuple(_Walk().visit(checked.node, {}))


def fits(pattern: Pattern, path: tuple[Any, ...]) -> bool:
    """Whether a path is one of a pattern's."""
    return len(pattern) == len(path) and all(
        mine is None or mine == key for mine, key in zip(pattern, path, strict=True)
    )


def of_elements(pattern: Pattern, path: tuple[Any, ...]) -> bool:
    """Whether a pattern is that of a part of the elements of a list."""
    return len(pattern) > 2 and pattern[-2] is None and fits(pattern[:-2], path)


_Scope = Mapping[str, Patterns]


@dataclass(slots=True)
class _Walk:
    bodies: dict[cel.Node, Patterns] = field(default_factory=dict)
    seen: set[cel.Node] = field(default_factory=set)

    def visit(self, node: cel.Node, scope: _Scope) -> Iterator[Compared]:  # noqa: C901 - a table of the kinds of nodes
        """Yield what is compared in a part of an expression."""
        match node:
            case syntax.Binary() if node.operator in _ORDER:
                left, right = self.sources(node.left, scope), self.sources(node.right, scope)
                yield Compared(node.operator, left, right, (node.left, node.right))
            case cel.Index():
                if key := self.sources(node.key, scope):
                    yield Compared("key", key, self.sources(node.operand, scope), (node.key, node.operand))
            case cel.Call():
                yield from self._call(node, scope)
            case syntax.Macro():
                yield from self.visit(node.range, scope)
                inner = {**scope, **self._bound(node, scope)}
                for part in (node.condition, node.result):
                    if part is not None:
                        yield from self.visit(part, inner)
                return
            case syntax.Expand():
                if node.body not in self.seen:
                    self.seen.add(node.body)
                    yield from self.visit(node.body, {})
                return
        for part in syntax.children(node):
            yield from self.visit(part, scope)

    def _call(self, node: cel.Call, scope: _Scope) -> Iterator[Compared]:
        if node.method and len(node.args) == 2:
            first, second = node.args
            yield Compared(node.function, self.sources(first, scope), self.sources(second, scope), (first, second))
        if node.function.startswith("from_") and node.args:
            yield Compared("grounded", self.sources(node.args[0], scope), _NONE, (node.args[0], node))
        for tool, asked in zip(node.args, node.args[1:], strict=False):
            if isinstance(tool, cel.Literal) and isinstance(asked, cel.MapOf):
                for key, item in asked.entries:
                    if isinstance(key, cel.Literal):
                        left = self.sources(item, scope)
                        yield Compared("asked", left, _NONE, (item, asked), str(tool.value), str(key.value))

    def _bound(self, node: syntax.Macro, scope: _Scope) -> dict[str, Patterns]:
        """What the variables of a macro may show; keys of maps and indexes are no values of their own."""
        walked = self.sources(node.range, scope)
        if node.name == "bind":
            return {node.variables[0]: walked}
        elements = _below(walked, None)
        if len(node.variables) == 1:
            return {node.variables[0]: _NONE if isinstance(node.range.type, cel.MapType) else elements}
        return {node.variables[0]: _NONE, node.variables[1]: elements}

    def sources(self, node: cel.Node, scope: _Scope) -> Patterns:
        """The patterns of the values that a part of an expression may show."""
        match node:
            case syntax.Root():
                return frozenset({(node.name,)})
            case syntax.Variable():
                return scope.get(node.name, _NONE)
            case cel.Select():
                return _below(self.sources(node.operand, scope), node.field)
            case cel.Index():
                key = node.key.value if isinstance(node.key, cel.Literal) else None
                return _below(self.sources(node.operand, scope), key)
            case syntax.Expand():
                if node.body not in self.bodies:
                    self.bodies[node.body] = self.sources(node.body, {})
                return self.bodies[node.body]
            case syntax.Conditional():
                return self.sources(node.then, scope) | self.sources(node.otherwise, scope)
            case cel.Call():
                return self._called(node, scope)
            case syntax.Macro():
                return self._made(node, scope)
        return _NONE

    def _called(self, node: cel.Call, scope: _Scope) -> Patterns:
        if any(one.observed for one in node.functions):
            return frozenset({("?", node.function)})
        if len(node.args) == 1 and node.function in _CONVERSIONS:
            return self.sources(node.args[0], scope)
        if node.function == "size":
            return _below(self.sources(node.args[0], scope), SIZE)
        return _NONE

    def _made(self, node: syntax.Macro, scope: _Scope) -> Patterns:
        if node.name == "filter":
            return self.sources(node.range, scope)
        if node.result is None:
            return _NONE
        inner = self.sources(node.result, {**scope, **self._bound(node, scope)})
        return inner if node.name == "bind" else frozenset((*pattern, _MADE) for pattern in inner)


def _below(patterns: Patterns, key: Any) -> Patterns:
    """What stands one key below; the elements of a list that was made are what they were made of."""
    return frozenset(
        (pattern[:-1] if key != SIZE else pattern) if pattern[-1] == _MADE else (*pattern, key) for pattern in patterns
    )
