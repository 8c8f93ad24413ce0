"""Tokens to a syntax tree: every expression of CEL but protobuf messages, within bounds.

Invariants:
* Both the nesting of brackets and the depth of the tree are at most `Limits.depth`; a chain of `&&` or `||` is one
  node however long it is. What is made here can therefore be walked recursively.
* Macros are recognised here, by name and number of arguments, as CEL does.
* The first mistake ends the parsing, with the CEL way of writing what seems to be meant.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NoReturn, TypeVar

from ledgercli.cel.lexer import Lexer, Token
from ledgercli.cel.syntax import (
    PRECEDENCE,
    Binary,
    Call,
    Conditional,
    Expr,
    Has,
    Index,
    ListOf,
    Literal,
    Logic,
    Macro,
    MapOf,
    Name,
    Node,
    Select,
    Source,
    Unary,
    children,
)
from ledgercli.cel.types import Limits
from ledgercli.cel.values import INT_MAX

_LIMITS = Limits()
N = TypeVar("N", bound=Node)
_LOOSEST = PRECEDENCE["||"]
_RESERVED = frozenset(
    "as break const continue else for function if import let loop package namespace return var void while".split()
)
_WORDS = {  # operators that other languages spell with letters
    "and": "CEL writes && for and",
    "or": "CEL writes || for or",
    "AND": "CEL writes && for and",
    "OR": "CEL writes || for or",
    "is": "CEL writes == for is",
    "not": "CEL writes !(x in y) for not in",
    "if": "CEL writes c ? a : b",
    "contains": "CEL writes x.contains(y)",
    "matches": "CEL writes x.matches('regex')",
    "startswith": "CEL writes x.startsWith(y)",
    "for": "CEL writes xs.map(x, …), xs.all(x, …) or xs.exists(x, …)",
}
_PREFIXES = {
    "not": "CEL writes ! for not",
    "NOT": "CEL writes ! for not",
    "lambda": "CEL writes xs.map(x, …)",
    "if": "CEL writes c ? a : b",
    "for": "CEL writes xs.map(x, …), xs.all(x, …) or xs.exists(x, …)",
}
_SHAPES = {  # a macro by name and number of arguments: how many variables, has it a condition, has it a result
    ("all", 2): (1, True, False),
    ("exists", 2): (1, True, False),
    ("exists_one", 2): (1, True, False),
    ("existsOne", 2): (1, True, False),
    ("filter", 2): (1, True, False),
    ("map", 2): (1, False, True),
    ("map", 3): (1, True, True),
    ("all", 3): (2, True, False),
    ("exists", 3): (2, True, False),
    ("exists_one", 3): (2, True, False),
    ("existsOne", 3): (2, True, False),
    ("transformList", 3): (2, False, True),
    ("transformList", 4): (2, True, True),
    ("transformMap", 3): (2, False, True),
    ("transformMap", 4): (2, True, True),
}
MACROS = frozenset(name for name, _ in _SHAPES) | {"has", "bind"}


def parse(source: str | Source, limits: Limits = _LIMITS) -> Expr:
    """The expression that `source` holds, or a `CelSyntaxError`."""
    if isinstance(source, str):
        source = Source(source)
    whole = {"True": True, "False": False}.get(source.text.strip())
    if whole is not None:  # what YAML's users write for a condition that always or never holds
        start = source.text.index(str(whole))
        return Expr(source, Literal(source, start, start + len(str(whole)), whole))
    parser = Parser(source, 0, limits)
    try:
        node = parser.expression()
    except RecursionError:  # whoever called this had used up Python's stack
        parser.too_deep()
    parser.finish("end")
    return Expr(source, node)


class Parser:
    """One pass over the tokens from an offset on."""

    __slots__ = ("_begin", "_depths", "_lexer", "_limits", "_nesting", "_source", "_token")

    def __init__(self, source: Source, offset: int, limits: Limits) -> None:
        self._source = source
        self._begin = offset
        self._limits = limits
        self._lexer = Lexer(source)
        self._depths: dict[Node, int] = {}
        self._nesting = 0
        if offset == 0 and len(source.text) > limits.length:
            self._too_long(len(source.text))
        self._token = self._lexer.token(offset)

    # Tokens

    def _next(self) -> Token:
        """Take the current token."""
        token = self._token
        if token.end - self._begin > self._limits.length:
            self._too_long(token.end - self._begin)
        self._token = self._lexer.token(token.end)
        return token

    def _expect(self, kind: str, opening: Token | None = None) -> Token:
        if self._token.kind != kind:
            self._unexpected(kind, opening)
        return self._next()

    def finish(self, kind: str) -> int:
        """Make sure that the expression ends here, before a token of `kind`; the offset after it."""
        if self._token.kind != kind:
            self._unexpected(None if kind == "end" else kind, None)
        return self._token.end

    # Errors

    def _fail(self, message: str, token: Token | Node, hint: str | None = None, code: str = "syntax") -> NoReturn:
        self._lexer.fail(message, token.start, token.end, hint, code)

    def _too_long(self, length: int) -> NoReturn:
        message = f"the expression has {length:,} characters; the limit is {self._limits.length:,}"
        self._lexer.fail(message, self._begin, self._begin + 1, "split it with define:", "too-long")

    def _unexpected(self, wanted: str | None, opening: Token | None) -> NoReturn:
        token = self._token
        if token.kind in {"name", "in"} and token.value in _WORDS:
            self._fail(f"{token.value!r} is not an operator of CEL", token, _WORDS[token.value], "foreign-syntax")
        if token.kind == "end":
            if opening is not None:
                self._fail(f"the {opening.kind} that opens here has no closing {wanted}", opening)
            what = f"; {wanted} is missing" if wanted else ""
            self._fail(f"the expression ends too early{what}", token)
        shown = self._source.text[token.start : token.end][:40]
        hint = "join conditions with && or ||" if token.kind in {"name", "literal"} else None
        if token.kind == "literal" and isinstance(token.value, str):
            hint = "join texts with +; a quote inside a text of the same quotes is written \\'"
        expected = f"; {wanted} was expected" if wanted else ""
        self._fail(f"{shown} cannot stand here{expected}", token, hint)

    # Nodes

    def _made(self, node: N) -> N:
        """Note the depth of a new node and refuse one that is too deep."""
        depth = 1 + max((self._depths[child] for child in children(node)), default=0)
        if depth > self._limits.depth:
            self.too_deep(node)
        self._depths[node] = depth
        return node

    def too_deep(self, place: Node | Token | None = None) -> NoReturn:
        """Refuse the expression for its depth."""
        hint = "split it with define:"
        self._fail(
            f"the expression nests deeper than {self._limits.depth} levels", place or self._token, hint, "too-deep"
        )

    def _enter(self) -> None:
        self._nesting += 1
        if self._nesting > self._limits.depth:
            self.too_deep(self._token)

    def expression(self) -> Node:
        """A whole expression: `a ? b : c` or anything that binds tighter."""
        condition = self._binary(_LOOSEST)
        if self._token.kind == "?":
            self._next()
            then = self._binary(_LOOSEST)
            self._expect(":")
            self._enter()
            otherwise = self.expression()
            self._nesting -= 1
            node = Conditional(self._source, condition.start, otherwise.end, condition, then, otherwise)
            return self._made(node)
        return condition

    def _binary(self, least: int) -> Node:
        """Operands joined by operators that bind at least as tightly as `least`."""
        self._enter()
        left = self._unary()
        while (own := PRECEDENCE.get(self._token.kind, -1)) >= least:
            operator = self._next().kind
            if operator in {"&&", "||"}:
                left = self._logic(left, operator, own)
            else:
                right = self._binary(own + 1)
                left = self._made(Binary(self._source, left.start, right.end, operator, left, right))
        self._nesting -= 1
        return left

    def _logic(self, left: Node, operator: str, own: int) -> Node:
        operands = [left, self._binary(own + 1)]
        while self._token.kind == operator:
            self._next()
            operands.append(self._binary(own + 1))
        return self._made(Logic(self._source, left.start, operands[-1].end, operator, tuple(operands)))

    def _unary(self) -> Node:
        operators: list[Token] = []
        while self._token.kind in {"!", "-"}:
            operators.append(self._next())
            if len(operators) > self._limits.depth:
                self.too_deep(operators[0])
        if operators and operators[-1].kind == "-" and self._is_number():
            node = self._negative(operators.pop())
        else:
            node = self._postfix(self._primary())
        for operator in reversed(operators):
            node = self._made(Unary(self._source, operator.start, node.end, operator.kind, node))
        return node

    def _is_number(self) -> bool:
        value = self._token.value
        return self._token.kind == "literal" and type(value) in {int, float}

    def _negative(self, minus: Token) -> Node:
        number = self._next()
        node = self._made(Literal(self._source, minus.start, number.end, -number.value))
        return self._postfix(node)

    def _primary(self) -> Node:
        token = self._token
        match token.kind:
            case "literal":
                return self._literal()
            case "name":
                return self._named(self._next(), token.start, absolute=False)
            case ".":
                self._next()
                return self._named(self._expect("name"), token.start, absolute=True)
            case "(":
                self._next()
                node = self.expression()
                return self._bracketed(node, token.start, self._expect(")", token).end)
            case "[":
                return self._list()
            case "{":
                return self._map()
        return self._unexpected("a value", None)

    def _bracketed(self, node: Node, start: int, end: int) -> Node:
        """The node, with its brackets as part of its place where it consists of several parts."""
        if not isinstance(node, (Unary, Binary, Logic, Conditional)):
            return node
        widened = replace(node, start=start, end=end)
        self._depths[widened] = self._depths[node]
        return widened

    def _literal(self) -> Node:
        token = self._next()
        if type(token.value) is int and token.value > INT_MAX:
            self._fail("the number is too large: an int is at most 9223372036854775807", token, code="too-large")
        return self._made(Literal(self._source, token.start, token.end, token.value))

    def _named(self, token: Token, start: int, *, absolute: bool) -> Node:
        """A name, or the call of a function of that name."""
        after = self._token.kind
        if token.value in _PREFIXES and after in {"name", "literal", "(", "!", "{", "["}:
            self._fail(f"{token.value!r} is not CEL", token, _PREFIXES[token.value], "foreign-syntax")
        if token.value in _RESERVED:
            self._fail(f"{token.value!r} is a reserved word, not a name", token)
        if after == "(":
            args, end = self._arguments()
            if token.value == "has" and not absolute:
                return self._has(token, args, end)
            name = "." + token.value if absolute else token.value
            return self._made(Call(self._source, start, end, name, args))
        return self._made(Name(self._source, start, token.end, token.value, absolute))

    def _arguments(self) -> tuple[tuple[Node, ...], int]:
        opening = self._next()
        args: list[Node] = []
        while self._token.kind != ")" or args:
            args.append(self.expression())
            if self._token.kind != ",":
                break
            self._next()
        return tuple(args), self._expect(")", opening).end

    def _list(self) -> Node:
        opening = self._next()
        elements: list[Node] = []
        while self._token.kind != "]":
            elements.append(self.expression())
            if self._token.kind != ",":
                break
            self._next()
        end = self._expect("]", opening).end
        return self._made(ListOf(self._source, opening.start, end, tuple(elements)))

    def _map(self) -> Node:
        opening = self._next()
        entries: list[tuple[Node, Node]] = []
        while self._token.kind != "}":
            key = self.expression()
            self._expect(":")
            entries.append((key, self.expression()))
            if self._token.kind != ",":
                break
            self._next()
        end = self._expect("}", opening).end
        return self._made(MapOf(self._source, opening.start, end, tuple(entries)))

    # What stands behind an operand

    def _postfix(self, node: Node) -> Node:
        while True:
            match self._token.kind:
                case ".":
                    self._next()
                    node = self._selected(node)
                case "[":
                    opening = self._next()
                    key = self.expression()
                    end = self._expect("]", opening).end
                    node = self._made(Index(self._source, node.start, end, node, key))
                case "{" if isinstance(node, (Name, Select)):
                    self._fail("protobuf messages are not supported", node, "a map is written {'key': value}")
                case _:
                    return node

    def _selected(self, node: Node) -> Node:
        """The field or method after a dot."""
        token = self._next()
        if token.kind not in {"name", "quoted"}:
            word = self._source.text[token.start : token.end]
            hint = f'write ["{word}"]' if word.isalpha() else None
            self._fail(f"the name of a field or method belongs here, not {word or 'the end'}", token, hint)
        if self._token.kind != "(" or token.kind == "quoted":
            return self._made(Select(self._source, node.start, token.end, node, token.value))
        args, end = self._arguments()
        macro = self._macro(node, token, args, end)
        if macro is not None:
            return self._made(macro)
        return self._made(Call(self._source, node.start, end, token.value, args, node))

    # Macros

    def _has(self, token: Token, args: tuple[Node, ...], end: int) -> Node:
        if len(args) != 1 or not isinstance(args[0], Select):
            hint = "a key is asked for by 'key' in m" if len(args) == 1 and isinstance(args[0], Index) else None
            place = args[0] if args else token
            self._fail("has() takes one field: has(a.b)", place, hint)
        field = args[0]
        return self._made(Has(self._source, token.start, end, field.operand, field.field))

    def _macro(self, node: Node, token: Token, args: tuple[Node, ...], end: int) -> Macro | None:
        """The macro that such a call is, if it is one."""
        name = token.value
        if name == "bind" and isinstance(node, Name) and node.name == "cel" and len(args) == 3:
            variables = self._variables(name, args[:1])
            return Macro(self._source, node.start, end, name, args[1], variables, None, args[2])
        shape = _SHAPES.get((name, len(args)))
        if shape is None:
            return None
        count, has_condition, has_result = shape
        variables = self._variables(name, args[:count])
        condition = args[count] if has_condition else None
        result = args[-1] if has_result else None
        name = "exists_one" if name == "existsOne" else name
        return Macro(self._source, node.start, end, name, node, variables, condition, result)

    def _variables(self, macro: str, nodes: tuple[Node, ...]) -> tuple[str, ...]:
        names: list[str] = []
        for node in nodes:
            if not isinstance(node, Name) or node.absolute:
                hint = f"write xs.{macro}(x, …)" if macro != "bind" else "write cel.bind(x, value, …)"
                self._fail(f"{macro}() begins with the name of its variable", node, hint)
            if node.name in names:
                self._fail(f"the two variables of {macro}() need two names", node)
            names.append(node.name)
        return tuple(names)
