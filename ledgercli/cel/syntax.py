"""The syntax tree of the policy language, and what every stage says about a place in it.

Invariants:
* Nodes are immutable and compared by identity; each knows its source text and where in it it stands.
* The parser makes `Name` and unresolved `Call`; the checker answers with a tree of the same kinds in which every name
  is a `Root`, a `Variable`, an `Expand` (a define) or a `Literal`, and every node has its type.
* A checked tree may share nodes (the body of a define), so walks remember what they have seen.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ledgercli.cel.literals import literal
from ledgercli.cel.types import DYN, Function, Type

Path = tuple[Any, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Source:
    """A text that expressions are read from.

    Arguments:
        text: the whole text; every offset counts its characters.
        label: whatever the caller wants back with a problem, such as a mark in a file.

    """

    text: str
    label: object = None


@dataclass(frozen=True, slots=True)
class Problem:
    """Something wrong with an expression, before it is ever evaluated.

    Arguments:
        code: the kind of problem, a key of `CODES`.
        message: one line that says what is wrong.
        start: offset of the first character concerned.
        end: offset after the last.
        source: the text that the offsets count in.
        hint: what to write instead.
        suggestions: the nearest known names, best first.
        severity: `error`, or `warning` where an evaluation may still succeed.

    """

    code: str
    message: str
    start: int
    end: int
    source: Source
    hint: str | None = None
    suggestions: tuple[str, ...] = ()
    severity: str = "error"

    def __str__(self) -> str:
        return f"{self.message} ({self.hint})" if self.hint else self.message


class CelSyntaxError(Exception):
    """A text that is no expression; `problem` says where and why."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(str(problem))
        self.problem = problem


# Nodes


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """Any part of an expression: `source.text[start:end]`."""

    source: Source = field(repr=False)
    start: int = field(repr=False)
    end: int = field(repr=False)
    type: Type = field(default=DYN, kw_only=True)


@dataclass(frozen=True, slots=True, eq=False)
class Literal(Node):
    """A value as it stands; after folding of any type, lists and maps included."""

    value: Any


@dataclass(frozen=True, slots=True, eq=False)
class Name(Node):
    """An identifier that is not resolved yet; `absolute` if a dot stands before it."""

    name: str
    absolute: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Root(Node):
    """A name that the evaluation is given a value for."""

    name: str


@dataclass(frozen=True, slots=True, eq=False)
class Variable(Node):
    """A variable of a macro."""

    name: str


@dataclass(frozen=True, slots=True, eq=False)
class Expand(Node):
    """The use of a define; `body` is its checked expression, which has a source of its own."""

    name: str
    body: Node


@dataclass(frozen=True, slots=True, eq=False)
class Unknown(Node):
    """A name or call that nothing is known of; evaluating it is an error (only without `strict`)."""

    message: str


@dataclass(frozen=True, slots=True, eq=False)
class Select(Node):
    """`operand.field`."""

    operand: Node
    field: str


@dataclass(frozen=True, slots=True, eq=False)
class Has(Node):
    """`has(operand.field)`."""

    operand: Node
    field: str


@dataclass(frozen=True, slots=True, eq=False)
class Index(Node):
    """`operand[key]`."""

    operand: Node
    key: Node


@dataclass(frozen=True, slots=True, eq=False)
class Unary(Node):
    """`!operand` or `-operand`."""

    operator: str
    operand: Node


@dataclass(frozen=True, slots=True, eq=False)
class Binary(Node):
    """`left operator right`: arithmetic, comparison or `in`."""

    operator: str
    left: Node
    right: Node


@dataclass(frozen=True, slots=True, eq=False)
class Logic(Node):
    """A chain of `&&` or of `||`."""

    operator: str
    operands: tuple[Node, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Conditional(Node):
    """`condition ? then : otherwise`."""

    condition: Node
    then: Node
    otherwise: Node


@dataclass(frozen=True, slots=True, eq=False)
class ListOf(Node):
    """`[a, b]`."""

    elements: tuple[Node, ...]


@dataclass(frozen=True, slots=True, eq=False)
class MapOf(Node):
    """`{k: v}`."""

    entries: tuple[tuple[Node, Node], ...]


@dataclass(frozen=True, slots=True, eq=False)
class Call(Node):
    """`function(args)` or `receiver.function(args)`; `functions` are the overloads that may be meant.

    Once checked, a receiver is the first of `args`, and `method` says so.
    """

    function: str
    args: tuple[Node, ...]
    receiver: Node | None = None
    functions: tuple[Function, ...] = ()

    @property
    def method(self) -> bool:
        """Whether it is written with the first argument in front."""
        return self.receiver is not None or any(one.method for one in self.functions)


@dataclass(frozen=True, slots=True, eq=False)
class Macro(Node):
    """`range.name(variables, condition, result)`: a loop over a list or map, or `cel.bind(variable, range, result)`.

    Arguments:
        name: `all`, `exists`, `exists_one`, `map`, `filter`, `transformList`, `transformMap` or `bind`.
        range: what is walked; the value of a `bind`.
        variables: one (element or key) or two (index or key, and value).
        condition: of `all`, `exists`, `exists_one`, `filter`, and of the transforming ones where they have it.
        result: of `map`, `transformList`, `transformMap` and `bind`.
        weight: what one step of the loop costs, by the size of what is repeated.

    """

    name: str
    range: Node
    variables: tuple[str, ...]
    condition: Node | None = None
    result: Node | None = None
    weight: int = 1


@dataclass(frozen=True, slots=True, eq=False)
class Expr:
    """A parsed expression."""

    source: Source
    node: Node

    def __str__(self) -> str:
        return render(self)


# Walking


def children(node: Node) -> tuple[Node, ...]:  # noqa: C901 - a table of the kinds of nodes
    """The parts of a node, in the order in which they stand."""
    match node:
        case Select() | Has() | Unary():
            return (node.operand,)
        case Index():
            return (node.operand, node.key)
        case Binary():
            return (node.left, node.right)
        case Logic():
            return node.operands
        case Conditional():
            return (node.condition, node.then, node.otherwise)
        case ListOf():
            return node.elements
        case MapOf():
            return tuple(part for entry in node.entries for part in entry)
        case Call():
            return node.args if node.receiver is None else (node.receiver, *node.args)
        case Macro():
            return tuple(part for part in (node.range, node.condition, node.result) if part is not None)
        case Expand():
            return (node.body,)
    return ()


def walk(node: Node) -> Iterator[Node]:
    """The node and everything below it, each once, parents first."""
    seen: set[Node] = set()
    pending = [node]
    while pending:
        here = pending.pop()
        if here not in seen:
            seen.add(here)
            yield here
            pending.extend(reversed(children(here)))


def weight(*nodes: Node | None) -> int:
    """What computing the nodes costs, in steps of `Limits.iterations`."""
    return 1 + sum(1 for node in nodes if node is not None for _ in walk(node)) // 4


def chain(node: Node) -> tuple[Root, tuple[Node | str, ...]] | None:
    """The root and the steps (field names, and nodes of keys) of a select/index chain from a root."""
    steps: list[Node | str] = []
    while not isinstance(node, Root):
        match node:
            case Select():
                steps.append(node.field)
                node = node.operand
            case Index():
                steps.append(node.key)
                node = node.operand
            case Expand():  # a define that is a path goes on being one
                node = node.body
            case _:
                return None
    return node, tuple(reversed(steps))


def path_of(node: Node) -> Path | None:
    """The path that a chain from a root names; `None` in it for a key known only at run time."""
    found = chain(node)
    if found is None:
        return None
    root, steps = found
    keys = (step.value if isinstance(step, Literal) else step if isinstance(step, str) else None for step in steps)
    return (root.name, *keys)


# Text

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_KEYWORDS = frozenset({"true", "false", "null", "in"})


def is_identifier(text: str) -> bool:
    """Whether `text` may stand behind a dot."""
    return _IDENTIFIER.match(text) is not None and text not in _KEYWORDS


def step_text(key: Any) -> str:
    """One step of a path as it is typed: `.name`, `["#W1"]` or `[0]`."""
    if isinstance(key, str) and is_identifier(key):
        return f".{key}"
    return f"[{literal(key)}]"


def path_text(path: Path) -> str:
    """A path as it is typed in a rule: `state.facts.orders["#W1.2"].status`."""
    return str(path[0]) + "".join(map(step_text, path[1:]))


_TERNARY, _OR, _AND, _RELATION, _SUM, _PRODUCT, _UNARY, _POSTFIX = range(8)
PRECEDENCE = {
    "||": _OR,
    "&&": _AND,
    **dict.fromkeys(("==", "!=", "<", "<=", ">", ">=", "in"), _RELATION),
    **dict.fromkeys("+-", _SUM),
    **dict.fromkeys("*/%", _PRODUCT),
}


def render(item: Expr | Node) -> str:
    """The canonical text of an expression: one line, double quotes, only the brackets that are needed."""
    return _text(item.node if isinstance(item, Expr) else item, _TERNARY)


def _text(node: Node, outer: int) -> str:
    text, precedence = _spelled(node)
    return f"({text})" if precedence < outer else text


def _list(nodes: tuple[Node, ...]) -> str:
    return ", ".join(_text(node, _TERNARY) for node in nodes)


def _spelled(node: Node) -> tuple[str, int]:  # noqa: C901, PLR0912 - a table of the kinds of nodes
    match node:
        case Literal():
            text = spaced(node.value)
            return text, _UNARY if text.startswith("-") else _POSTFIX
        case Name():
            return ("." if node.absolute else "") + node.name, _POSTFIX
        case Root() | Variable() | Expand():
            return node.name, _POSTFIX
        case Select():
            return _text(node.operand, _POSTFIX) + field_text(node.field), _POSTFIX
        case Has():
            return f"has({_text(node.operand, _POSTFIX)}{field_text(node.field)})", _POSTFIX
        case Index():
            return f"{_text(node.operand, _POSTFIX)}[{_text(node.key, _TERNARY)}]", _POSTFIX
        case Unary():
            inner = _text(node.operand, _UNARY)
            bracketed = node.operator == "-" and (inner[0] == "-" or isinstance(node.operand, Literal))
            return (f"-({inner})" if bracketed else node.operator + inner), _UNARY
        case Binary():
            own = PRECEDENCE[node.operator]
            return f"{_text(node.left, own)} {node.operator} {_text(node.right, own + 1)}", own
        case Logic():
            own = PRECEDENCE[node.operator]
            return f" {node.operator} ".join(_text(part, own + 1) for part in node.operands), own
        case Conditional():
            parts = _text(node.condition, _OR), _text(node.then, _OR), _text(node.otherwise, _TERNARY)
            return "{} ? {} : {}".format(*parts), _TERNARY
        case ListOf():
            return f"[{_list(node.elements)}]", _POSTFIX
        case MapOf():
            pairs = (f"{_text(key, _TERNARY)}: {_text(item, _TERNARY)}" for key, item in node.entries)
            return "{" + ", ".join(pairs) + "}", _POSTFIX
        case Call():
            return _call(node), _POSTFIX
        case Macro():
            return _macro(node), _POSTFIX
        case Unknown():
            return node.source.text[node.start : node.end], _POSTFIX
    raise AssertionError(node)


def field_text(name: str) -> str:
    """A field behind its dot, in backquotes where it is no identifier."""
    return f".{name}" if is_identifier(name) else f".`{name}`"


def _call(node: Call) -> str:
    if node.receiver is not None:
        return f"{_text(node.receiver, _POSTFIX)}.{node.function}({_list(node.args)})"
    if node.method:
        return f"{_text(node.args[0], _POSTFIX)}.{node.function}({_list(node.args[1:])})"
    return f"{node.function}({_list(node.args)})"


def _macro(node: Macro) -> str:
    rest = [_text(part, _TERNARY) for part in (node.condition, node.result) if part is not None]
    if node.name == "bind":
        return f"cel.bind({node.variables[0]}, {_text(node.range, _TERNARY)}, {rest[0]})"
    return f"{_text(node.range, _POSTFIX)}.{node.name}({', '.join([*node.variables, *rest])})"


def spaced(value: Any) -> str:
    """A literal for reading: as `literal`, with a space after commas and colons of lists and maps."""
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(spaced, value)) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{spaced(key)}: {spaced(item)}" for key, item in value.items()) + "}"
    return literal(value)
