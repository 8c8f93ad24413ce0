"""The fast form: checked trees become Python `ast` nodes, and those a code object with a closed set of builtins.

Invariants:
* No source text is ever written: an expression can only become nodes that are made here.
* The fast form has the same value and the same reads as the precise form, or it raises (or answers `None`) and the
  precise form is asked. It may give up for any reason; it may never differ.
* Data from roots is not trusted to have its declared type. Where Python and CEL differ on a value (`True == 1`,
  `True < 2`, negative indexes) the code looks at the value's class first.
* A path is loaded once: it stays in a local wherever it is certain to have been loaded before. Of reads made for
  certain the record is one dict display; the others are added if their local is set; those made in a loop are noted.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from ledgercli.cel import evaluate as precise
from ledgercli.cel import pynodes as py
from ledgercli.cel import values
from ledgercli.cel.literals import literal
from ledgercli.cel.relations import is_map_type, plain
from ledgercli.cel.runtime import TOOLS, GiveUpError
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
    Root,
    Select,
    Unary,
    Unknown,
    Variable,
    chain,
    children,
    step_text,
)
from ledgercli.cel.types import (
    BOOL,
    DOUBLE,
    DYN,
    INT,
    PATH,
    STRING,
    Function,
    Limits,
    ListType,
    MapType,
    Opaque,
    RecordType,
    Type,
)

_LIMITS: Final = Limits()
_MOST_NODES: Final = 20_000  # of one function; what is larger runs in the precise form only
_EXACT: Final = 2**53  # below it every int is a double
_CLASSES: Final[Mapping[Type, str]] = {STRING: "S", INT: "I", BOOL: "B", DOUBLE: "F"}
_ORDER: Final = {"<": ast.Lt, "<=": ast.LtE, ">": ast.Gt, ">=": ast.GtE}

Key = tuple[Any, ...]
NEW_METER: Final = py.call("Meter", py.name("LIMITS"))


# From checked nodes to Python's


class _Shapes:
    """A number for each structure of nodes: two nodes of one number compute the same."""

    def __init__(self) -> None:
        self._known: dict[Node, int] = {}
        self._numbers: dict[Key, int] = {}

    def of(self, node: Node) -> int:
        """The number of the node's structure."""
        if node not in self._known:
            below = tuple(self.of(child) for child in children(node))
            key = (type(node), node.type is DOUBLE, *_own(node), *below)
            self._known[node] = self._numbers.setdefault(key, len(self._numbers))
        return self._known[node]


def _own(node: Node) -> Key:
    """What a node has besides its children."""
    match node:
        case Literal():
            return (type(node.value), literal(node.value))
        case Root() | Variable():
            return (node.name,)
        case Select() | Has():
            return (node.field,)
        case Unary() | Binary() | Logic():
            return (node.operator,)
        case Call():
            return (node.function, *map(id, node.functions))
        case Macro():
            return (node.name, node.variables, node.condition is None)
    return ()


@dataclass(slots=True)
class _Read:
    """A read: the local that holds its value, and its label."""

    local: str
    label: py.Parts


Links = tuple[Root, tuple[Node | str, ...]]


class Writer:
    """Writes the expressions of one function.

    `available` are the locals that are certainly set at the place where the next expression is written.
    """

    def __init__(self, *, collects: bool) -> None:
        self.collects = collects  # whether reads are wanted
        self.tools = dict(TOOLS)
        self.available: set[Key] = set()
        self.reads: dict[Key, _Read] = {}
        self.hoisted: dict[Key, tuple[str, ast.expr]] = {}
        self.uses_meter = False
        self.loops_use_meter = False
        self.uses_notes = False
        self._locals: dict[Key, str] = {}
        self._shapes = _Shapes()
        self._found_in_loop: dict[int, ast.expr] = {}
        self._scope: dict[str, str] = {}
        self._loops = 0
        self._written = 0
        self._count = 0

    # Names of the generated function

    def _fresh(self, letter: str) -> str:
        self._count += 1
        return f"{letter}{self._count}"

    def local(self, key: Key) -> str:
        """The local for whatever `key` stands for."""
        if key not in self._locals:
            self._locals[key] = self._fresh("v")
        return self._locals[key]

    def tool(self, value: Any) -> ast.Name:
        """A name in the function's globals for a value that is no constant of Python."""
        name = self._fresh("K")
        self.tools[name] = value
        return py.name(name)

    def _meter(self) -> ast.expr:
        """The evaluation's meter, made when it is first needed; before all else where loops need it."""
        self.uses_meter = True
        if self._loops:
            self.loops_use_meter = True
            return py.name("M")
        return ast.BoolOp(ast.Or(), [py.name("M"), py.assigned("M", NEW_METER)])

    def _notes(self) -> ast.Name:
        self.uses_notes = True
        return py.name("X")

    @contextmanager
    def branch(self) -> Iterator[None]:
        """What is loaded within may not have been loaded after."""
        before = set(self.available)
        yield
        self.available = before

    # Any node

    def write(self, node: Node) -> ast.expr:
        """The node that computes the value."""
        self._written += 1
        if self._written > _MOST_NODES:
            raise GiveUpError
        return _WRITERS[type(node)](self, node)

    def truth(self, node: Node) -> ast.expr:
        """The node that computes `True` or `False`, and fails on anything else."""
        if exact(node):
            return self.write(node) if node.type is BOOL else py.call("FAIL")
        first, again = self._twice(node)
        not_bool = ast.BoolOp(ast.And(), [py.compared(again, ast.IsNot(), py.constant(value=False)), py.call("FAIL")])
        return ast.BoolOp(ast.Or(), [py.compared(first, ast.Is(), py.constant(value=True)), not_bool])

    def _twice(self, node: Node, *, raw: bool = False) -> tuple[ast.expr, ast.expr]:
        """A node that computes the value, and one that has it afterwards.

        `raw` leaves a whole JSON number as it is where a double is declared.
        """
        return self.again(self._raw(node) if raw else self.write(node))

    def again(self, written: ast.expr) -> tuple[ast.expr, ast.expr]:
        """`written`, kept in a local unless it is one, and what has its value afterwards."""
        if isinstance(written, (ast.Constant, ast.Name)):
            return written, written
        if isinstance(written, ast.NamedExpr):
            return written, py.name(written.target.id)
        local = self._fresh("t")
        return py.assigned(local, written), py.name(local)

    def _raw(self, node: Node) -> ast.expr:
        links = chain(node)
        return self._path(links) if links is not None else self.write(node)

    def _typed(self, node: Node, value: ast.expr) -> ast.expr:
        return py.call("DOUBLE", value) if node.type is DOUBLE else value

    def literal(self, node: Literal) -> ast.expr:
        """A value as it stands."""
        value = node.value
        if value is None or type(value) in {bool, int, float, str}:
            return py.constant(value)
        return self.tool(value)

    def unknown(self, _node: Unknown) -> ast.expr:
        """What can only fail."""
        return py.call("FAIL")

    def variable(self, node: Variable) -> ast.expr:
        """A macro's variable."""
        return self._typed(node, py.name(self._scope[node.name]))

    def expand(self, node: Expand) -> ast.expr:
        """A define: computed once wherever it is certain to have been."""
        if chain(node.body) is not None:
            return self.write(node.body)
        key = ("define", self._shapes.of(node.body))
        if key in self.available:
            return py.name(self.local(key))
        scope, self._scope = self._scope, {}
        body = self.write(node.body)
        self._scope = scope
        if self._loops or isinstance(body, (ast.Constant, ast.Name)):
            return body
        self.available.add(key)
        return py.assigned(self.local(key), body)

    # Paths

    def link(self, node: Root | Select | Index) -> ast.expr:
        """A root, a field or an element."""
        links = chain(node)
        if links is not None:
            return self._typed(node, self._path(links))
        if isinstance(node, Select):
            return self._typed(node, py.call("INDEX", self.write(node.operand), py.constant(node.field)))
        assert isinstance(node, Index)
        return self._typed(node, self._element(self.write(node.operand), node.operand.type, node.key))

    def _key(self, kind: str, links: Links) -> Key:
        """What a path is remembered by."""
        root, steps = links
        return (kind, root.name, *map(self._step_key, steps))

    def _step_key(self, step: Node | str) -> Any:
        return ("at", self._shapes.of(step)) if isinstance(step, Node) else step

    def _path(self, links: Links) -> ast.expr:
        """The value at a path, which is a read."""
        key = self._key("read", links)
        if key in self.available:
            return py.name(self.local(key))
        value = self._value(links)
        if self.collects:
            return self._record(key, self._label(links), value)
        if self._loops:
            return value
        self.available.add(key)
        return py.assigned(self.local(key), value)

    def _value(self, links: Links) -> ast.expr:
        """The value at a path, without recording it."""
        root, steps = links
        if not steps:
            return py.item(py.name("R"), py.constant(root.name))
        step, above = steps[-1], (root, steps[:-1])
        container = self._container(above)
        if isinstance(step, str):
            return py.item(container, py.constant(step))
        return self._element(container, _type_at(above), step)

    def _container(self, links: Links) -> ast.expr:
        """A map or list on the way to a value, kept in a local."""
        key = self._key("container", links)
        if key in self.hoisted or key in self.available:
            return py.name(self.local(key))
        if self._loops:
            return self._value(links)
        value = self._value(links)
        if _is_certain(links):
            self.hoisted[key] = (self.local(key), value)
            return py.name(self.local(key))
        self.available.add(key)
        return py.assigned(self.local(key), value)

    def _element(self, container: ast.expr, kind: Type, key: Node) -> ast.expr:
        """`container[key]`; a key that is no text is left to lists, and to the precise form."""
        if isinstance(key, Literal):
            if isinstance(key.value, str) and isinstance(container, (ast.Name, ast.NamedExpr, ast.Subscript)):
                return py.item(container, py.constant(key.value))
            return py.call("INDEX", container, self.write(key))
        first, again = self._kept(key)
        if isinstance(kind, ListType):
            return py.call("INDEX", container, first)
        if not isinstance(container, (ast.Name, ast.NamedExpr, ast.Subscript)):
            return py.call("INDEX", container, first)
        return py.item(container, ast.IfExp(py.is_class(first, "S"), again, py.call("FAIL")))

    def _kept(self, node: Node) -> tuple[ast.expr, ast.expr]:
        """As `_twice`, in a local that the label of a read finds again."""
        written = self.write(node)
        if self._loops:
            first, self._found_in_loop[self._shapes.of(node)] = self.again(written)
            return first, self._found(node)
        if chain(node) is None or node.type is DOUBLE:
            written = py.assigned(self.local(("kept", self._shapes.of(node))), written)
        return written, self._found(node)

    def _found(self, node: Node) -> ast.expr:
        """The local in which `_kept` left a value: in this loop, or outside, with a container that is still at hand."""
        if self._loops and self._shapes.of(node) in self._found_in_loop:
            return self._found_in_loop[self._shapes.of(node)]
        links = chain(node)
        if links is None or node.type is DOUBLE:
            return py.name(self.local(("kept", self._shapes.of(node))))
        return py.name(self.local(self._key("read", links)))

    # Labels of reads

    def _label(self, links: Links) -> py.Parts:
        """The text of a path whose dynamic keys were just computed."""
        root, steps = links
        parts: py.Parts = [root.name]
        for step in steps:
            if isinstance(step, Node) and _dynamic(step):
                parts.append(_shown(self._found(step), "STEPS", "STEP"))
            else:
                parts.append(step_text(_static(step)))
        return parts

    def _argument_label(self, node: Node) -> py.Parts:
        """The literal of an argument that was just computed."""
        match node:
            case Literal():
                return [literal(node.value)]
            case Root():
                return [node.name]
            case ListOf():
                return ["[", *_joined(self._argument_label(element) for element in node.elements), "]"]
            case MapOf() if _has_plain_keys(node):
                pairs = ([*self._argument_label(key), ":", *self._argument_label(item)] for key, item in node.entries)
                return ["{", *_joined(pairs), "}"]
        return [_shown(self._found(node), "LITERALS", "LITERAL")]

    def _record(self, key: Key, label: py.Parts, value: ast.expr) -> ast.expr:
        """A read: the value at a path, or the answer of `has`, `in`, `size` or an observed call."""
        if not self.collects:
            return value
        if self._loops:
            return py.call("NOTE", self._notes(), value, py.text(label))
        self.reads[key] = _Read(self.local(key), label)
        self.available.add(key)
        return py.assigned(self.local(key), value)

    def has(self, node: Has) -> ast.expr:
        """`has(operand.field)`."""
        links = chain(node.operand)
        field = py.constant(node.field)
        if links is None:
            return py.call("HAS", self.write(node.operand), field)
        key = self._key("has", (links[0], (*links[1], node.field)))
        if key in self.available:
            return py.name(self.local(key))
        first, again = self.again(self._container(links))
        found = ast.IfExp(py.is_class(first, "D"), py.compared(field, ast.In(), again), py.call("HAS", again, field))
        return self._record(key, ["has(", *self._label(links), f"{step_text(node.field)})"], found)

    # Operators

    def unary(self, node: Unary) -> ast.expr:
        """`!x` and `-x`."""
        if node.operator == "!":
            return py.negated(self.truth(node.operand))
        return py.call("NEGATE", self.write(node.operand))

    def binary(self, node: Binary) -> ast.expr:
        """Arithmetic and comparisons."""
        sign = node.operator
        if sign in {"==", "!="}:
            equal = self._equality(node.left, node.right)
            return equal if sign == "==" else py.negated(equal)
        if sign == "in":
            return self._membership(node)
        if sign in _ORDER:
            return self._order(sign, node.left, node.right)
        if sign == "+":
            return py.call("ADD", self._meter(), self.write(node.left), self.write(node.right))
        return py.call(self.tool(values.BINARY[sign]), self.write(node.left), self.write(node.right))

    def _equality(self, left: Node, right: Node) -> ast.expr:
        if isinstance(left, Literal):
            left, right = right, left
        if isinstance(right, Literal) and not isinstance(left, Literal):
            special = self._equals_literal(left, right.value)
            if special is not None:
                return special
        if self._loops or chain(right) is None:
            return py.call("EQUALS", self._meter(), self.write(left), self.write(right))
        first, again = self._twice(left)
        other = self.write(right)
        same = py.compared(again, ast.Eq(), other)
        return ast.IfExp(py.is_class(first, "S"), same, py.call("EQUALS", self._meter(), again, other))

    def _equals_literal(self, node: Node, value: Any) -> ast.expr | None:
        """`node == value` where Python's operator is right whatever the node's value is."""
        constant = py.constant(value)
        if value is None or type(value) is bool:
            return py.compared(self.write(node), ast.Is(), constant)
        if type(value) is str:
            return py.compared(self.write(node), ast.Eq(), constant)
        if type(value) in {int, float} and abs(value) < _EXACT:
            if value not in {0, 1}:
                return py.compared(self._raw(node), ast.Eq(), constant)
            first, again = self._twice(node, raw=True)
            not_bool = py.compared(again, ast.IsNot(), py.constant(value == 1))
            return ast.BoolOp(ast.And(), [py.compared(first, ast.Eq(), constant), not_bool])
        return None

    def _order(self, sign: str, left: Node, right: Node) -> ast.expr:
        operator = _ORDER[sign]()
        if _comparable(left) and _comparable(right):
            return py.compared(self.write(left), operator, self.write(right))
        if _comparable(right) and isinstance(right, Literal):
            return self._order_literal(left, lambda value: py.compared(value, operator, self.write(right)), right.value)
        if _comparable(left) and isinstance(left, Literal):
            return self._order_literal(right, lambda value: py.compared(self.write(left), operator, value), left.value)
        if left.type in (INT, DOUBLE) and right.type in (INT, DOUBLE):
            return self._order_numbers(operator, left, right)
        return py.call(self.tool(values.BINARY[sign]), self.write(left), self.write(right))

    def _order_literal(self, node: Node, compared: Callable[[ast.expr], ast.expr], constant: Any) -> ast.expr:
        """A comparison with a literal. Python refuses the kinds that CEL refuses, but for bools beside numbers."""
        if type(constant) is str:
            return compared(self.write(node))
        first, again = self._twice(node, raw=True)
        if isinstance(again, ast.Name) and not self._loops:
            if ("no bool", again.id) in self.available:
                return compared(first)
            self.available.add(("no bool", again.id))
        tests: list[ast.expr] = [
            py.compared(first, ast.IsNot(), py.constant(value=True)),
            py.compared(again, ast.IsNot(), py.constant(value=False)),
        ]
        return ast.IfExp(py.all_of(tests), compared(again), py.call("FAIL"))

    def _order_numbers(self, operator: ast.cmpop, left: Node, right: Node) -> ast.expr:
        """A comparison of what should be int or double: Python's is exact, once it is certain that both are."""
        tests: list[ast.expr] = []
        sides: list[ast.expr] = []
        for node in (left, right):
            first, again = self._twice(node, raw=True)
            local = again.id if isinstance(again, ast.Name) and not self._loops else None
            if not (isinstance(first, ast.Name) and ("number", local) in self.available):
                among = py.compared(ast.Attribute(again, "__class__", ast.Load()), ast.In(), py.name("NUMBERS"))
                tests.append(
                    ast.BoolOp(ast.Or(), [py.is_class(first, "F"), among])
                )  # most are, and asking that is quick
            if local is not None:
                self.available |= {("number", local), ("no bool", local)}
            sides.append(again)
        ordered = py.compared(sides[0], operator, sides[1])
        return ast.IfExp(py.all_of(tests), ordered, py.call("FAIL")) if tests else ordered

    def _membership(self, node: Binary) -> ast.expr:
        texts = _texts(node.right)
        if texts is not None:
            listed = self.tool(frozenset(texts)) if len(texts) > 8 else py.constant(texts)
            return py.compared(self.write(node.left), ast.In(), listed)
        links, kind = chain(node.right), node.right.type
        is_open = not is_map_type(kind) and not isinstance(kind, ListType)
        if links is not None and self.collects and (self._loops or is_open):
            return self._member(node.left, links)
        if links is None or self._loops:
            return py.call("CONTAINS", self._meter(), self.write(node.left), self.write(node.right))
        return self._in_map(node.left, links) if is_map_type(kind) else self._in_list(node.left, node.right)

    def _member(self, item: Node, links: Links) -> ast.expr:
        """`in` of what may be a list or a map, or in a loop."""
        written, container = self.write(item), self._container(links)
        return py.call("MEMBER", self._notes(), self._meter(), written, container, py.text(self._label(links)))

    def _in_list(self, item: Node, container: Node) -> ast.expr:
        first, again = self._twice(item)
        first_list, again_list = self._twice(container)
        quick: ast.expr = py.is_class(first_list, "L")
        if not _is_text(item):
            quick = py.all_of([py.is_class(first, "S"), quick])
        slow = py.call("IN_LIST", self._meter(), again, first_list)
        return ast.IfExp(quick, py.compared(again, ast.In(), again_list), slow)

    def _in_map(self, item: Node, links: Links) -> ast.expr:
        key = ("in", self._shapes.of(item), *self._key("in", links))
        if isinstance(item, Literal):
            first = again = self.write(item)
            label: py.Parts = [literal(item.value)]
        else:
            first, again = self._kept(item)
            label = [_shown(again, "LITERALS", "LITERAL")]
        first_map, again_map = self.again(self._container(links))
        quick: ast.expr = py.is_class(first_map, "D")
        if not _is_text(item):
            quick = py.all_of([py.is_class(first, "S"), quick])
        found = ast.IfExp(quick, py.compared(again, ast.In(), again_map), py.call("HAS_KEY", first_map, again))
        return self._record(key, [*label, " in ", *self._label(links)], found)

    def logic(self, node: Logic) -> ast.expr:
        """`&&` and `||`."""
        first = self.truth(node.operands[0])
        with self.branch():
            rest = [self.truth(operand) for operand in node.operands[1:]]
        operator = ast.And() if node.operator == "&&" else ast.Or()
        return ast.BoolOp(operator, [first, *rest]) if rest else first

    def conditional(self, node: Conditional) -> ast.expr:
        """`a ? b : c`."""
        condition = self.truth(node.condition)
        with self.branch():
            then = self.write(node.then)
            after_then = self.available
        with self.branch():
            otherwise = self.write(node.otherwise)
            after_both = self.available & after_then
        self.available = after_both
        return ast.IfExp(condition, then, otherwise)

    def list_of(self, node: ListOf) -> ast.expr:
        """`[a, b]`."""
        return ast.List([self.write(element) for element in node.elements], ast.Load())

    def map_of(self, node: MapOf) -> ast.expr:
        """`{k: v}`."""
        keys = [key.value if isinstance(key, Literal) else None for key, _ in node.entries]
        written = [(self.write(key), self.write(item)) for key, item in node.entries]
        if all(type(key) is str for key in keys) and len(set(keys)) == len(keys):
            return ast.Dict([key for key, _ in written], [item for _, item in written])
        pairs: list[ast.expr] = [ast.Tuple([key, item], ast.Load()) for key, item in written]
        return py.call("MAKE_MAP", ast.List(pairs, ast.Load()))

    # Calls

    def call(self, node: Call) -> ast.expr:
        """Any function."""
        if node.function == "size" and len(node.args) == 1:
            return self._size(node)
        if any(one.observed for one in node.functions):
            return self._observed(node)
        args = [self._argument(node, position, arg) for position, arg in _given(node)]
        return self._typed(node, self._invoked(node, args))

    def _argument(self, node: Call, position: int, arg: Node) -> ast.expr:
        links = chain(arg)
        if precise.takes_path(node, position) and links is not None:
            return self._path_itself(links)
        return self.write(arg)

    def _path_itself(self, links: Links) -> ast.expr:
        """A path as a tuple of its steps."""
        root, steps = links
        if not any(map(_dynamic, steps)):
            return self.tool((root.name, *map(_static, steps)))
        keys = [self._kept(step)[0] if isinstance(step, Node) and _dynamic(step) else None for step in steps]
        shown = [py.constant(_static(step)) if key is None else key for step, key in zip(steps, keys, strict=True)]
        return ast.Tuple([py.constant(root.name), *shown], ast.Load())

    def _observed(self, node: Call) -> ast.expr:
        """A function whose answer is a read."""
        key = ("call", self._shapes.of(node))
        if key in self.available:
            return self._typed(node, py.name(self.local(key)))
        args: list[ast.expr] = []
        label: py.Parts = [f"{node.function}("]
        for position, arg in _given(node):
            links = chain(arg)
            if precise.takes_path(node, position) and links is not None:
                args.append(self._path_itself(links))
                shown = self._label(links)
            else:
                args.append(self._shown_argument(arg))
                shown = self._argument_label(arg)
            label += [",", *shown] if len(args) > 1 else shown
        value = self._record(key, [*label, ")"], self._invoked(node, args))
        return self._typed(node, value)

    def _shown_argument(self, arg: Node) -> ast.expr:
        """An argument whose parts the label finds again."""
        match arg:
            case Literal():
                return self.write(arg)
            case Root():
                return py.item(py.name("R"), py.constant(arg.name))
            case ListOf():
                return ast.List([self._shown_argument(element) for element in arg.elements], ast.Load())
            case MapOf() if _has_plain_keys(arg):
                items = [self._shown_argument(item) for _, item in arg.entries]
                return ast.Dict([self.write(key) for key, _ in arg.entries], items)
        return self._kept(arg)[0]

    def _invoked(self, node: Call, args: list[ast.expr]) -> ast.expr:
        """The call itself: straight where the arguments have their types for certain, else with a look at them."""
        given = [arg for _, arg in _given(node)]
        direct = self._direct(node.functions[0], given, args) if len(node.functions) == 1 else None
        if direct is not None:
            return direct
        context = py.name("C")
        return py.call(
            "DISPATCH",
            py.constant(node.function),
            self.tool(node.functions),
            self._meter(),
            context,
            ast.Tuple(args, ast.Load()),
        )

    def _direct(self, function: Function, given: list[Node], args: list[ast.expr]) -> ast.expr | None:
        """A call without dispatch; `None` where the arguments may have other types."""
        if self._loops or len(given) != len(function.needs) or function.variadic:
            return None
        classes: list[str | None] = []
        for node, wanted in zip(given, function.needs, strict=True):
            certain = wanted in (DYN, PATH) or (exact(node) and _class_of(node.type) == _class_of(wanted))
            if not certain and _class_of(wanted) is None:
                return None
            classes.append(None if certain else _class_of(wanted))
        tests, ready = self._tested(args, classes) if any(classes) else ([], args)
        call = _inlined(function, ready)
        if call is None:
            before: list[ast.expr] = [self._meter()] if function.meter else []
            before += [py.name("C")] if function.context else []
            call = py.call(self.tool(function.call), *before, *ready)
        return ast.IfExp(py.all_of(tests), call, py.call("FAIL")) if tests else call

    def _tested(self, args: list[ast.expr], classes: list[str | None]) -> tuple[list[ast.expr], list[ast.expr]]:
        """Tests that compute the arguments in order and look at their classes, and the arguments after them."""
        tests: list[ast.expr] = []
        ready: list[ast.expr] = []
        for written, one in zip(args, classes, strict=True):
            first, again = self.again(written)
            if one is not None:
                tests.append(py.is_class(first, one))
            elif first is not again:
                tests.append(py.compared(first, ast.IsNot(), py.name("U")))
            ready.append(again)
        return tests, ready

    def _size(self, node: Call) -> ast.expr:
        links = chain(node.args[0])
        if links is None:
            return self._invoked(node, [self.write(node.args[0])])
        key = self._key("size", links)
        if key in self.available:
            return py.name(self.local(key))
        first, again = self.again(self._container(links))
        is_sized = py.compared(ast.Attribute(first, "__class__", ast.Load()), ast.In(), py.name("SIZED"))
        size = ast.IfExp(is_sized, py.call("len", again), py.call("FAIL"))
        return self._record(key, ["size(", *self._label(links), ")"], size)

    # Macros

    def macro(self, node: Macro) -> ast.expr:
        """A loop, with the bodies as functions that see their variables alone."""
        walked = self.write(node.range)
        outer = self._scope
        names = [self._fresh("x") for _ in node.variables]
        self._scope = {**outer, **dict(zip(node.variables, names, strict=True))}
        found = self._found_in_loop
        self._loops += 1
        self._found_in_loop = {}
        before = self._written
        condition = None if node.condition is None else py.function(names, self.truth(node.condition))
        self._found_in_loop = {}
        result = None if node.result is None else py.function(names, self.write(node.result))
        self._loops -= 1
        self._scope, self._found_in_loop = outer, found
        if node.name == "bind":
            assert result is not None
            return py.call(result, walked)
        cost = py.constant(max(node.weight, 1 + (self._written - before) // 4))
        if len(names) == 1:
            return _loop("map", node.name, py.call("SEQUENCE", self._meter(), walked, cost), condition, result)
        return _loop("starmap", node.name, py.call("PAIRS", self._meter(), walked, cost), condition, result)


def _loop(apply: str, name: str, walked: ast.expr, condition: ast.expr | None, result: ast.expr | None) -> ast.expr:
    """The call that walks: `all(map(condition, walked))` and its like."""
    if condition is not None and name in {"all", "exists", "exists_one"}:
        answers = py.call(apply, condition, walked)
        if name == "exists_one":
            return py.compared(py.call("sum", answers), ast.Eq(), py.constant(1))
        return py.call("all" if name == "all" else "any", answers)
    if result is None:
        assert condition is not None
        return py.call("list", py.call("filter", condition, walked))
    if name == "map":
        kept = walked if condition is None else py.call("filter", condition, walked)
        return py.call("list", py.call("map", result, kept))
    keep = condition or py.function(["k", "v"], py.constant(value=True))
    return py.call("TRANSFORM_MAP" if name == "transformMap" else "TRANSFORM", walked, keep, result)


# Small questions about nodes


def _dynamic(step: Node | str) -> bool:
    """Whether a step of a path is known at run time only."""
    return not isinstance(step, (str, Literal))


def _static(step: Node | str) -> Any:
    return step.value if isinstance(step, Literal) else step


def _type_at(links: Links) -> Type:
    """The declared type at a path, as far as records go."""
    root, steps = links
    kind = root.type
    for step in steps:
        if isinstance(kind, RecordType):
            known = kind.fields.get(_static(step)) if not _dynamic(step) else None
            kind = known.type if known else DYN
        elif isinstance(kind, (ListType, MapType)):
            kind = kind.elem if isinstance(kind, ListType) else kind.value
        else:
            return DYN
    return kind


def _is_certain(links: Links) -> bool:
    """Whether a container is always there, so that it may be loaded before all else."""
    root, steps = links
    if not steps:
        return is_map_type(root.type)
    if len(steps) > 1 or _dynamic(steps[0]) or not isinstance(root.type, RecordType):
        return False
    known = root.type.fields.get(_static(steps[0]))
    return known is not None and not known.optional and is_map_type(known.type)


def exact(node: Node) -> bool:
    """Whether the value certainly has the type that the checker gave it."""
    match node:
        case Literal() | Logic() | Has() | ListOf() | MapOf():
            return True
        case Unary():
            return node.operator == "!"
        case Binary():
            return node.type is BOOL
        case Macro():
            return node.name in {"all", "exists", "exists_one"}
        case Call():
            return bool(node.functions) and node.type is not DYN
        case Conditional():
            return node.type is BOOL and exact(node.then) and exact(node.otherwise)
        case Expand():
            return exact(node.body)
    return False


def _inlined(function: Function, args: list[ast.expr]) -> ast.expr | None:
    """The method that a function passes on to, or that a method of strings is in Python, for arguments that fit."""
    if function.passes:
        method: ast.expr = py.name("C")
        for attribute in function.passes:
            method = ast.Attribute(method, attribute, ast.Load())
        return py.call(method, *args)
    if not function.method or function.needs != (STRING, STRING):
        return None
    name = {"startsWith": "startswith", "endsWith": "endswith", "contains": "__contains__"}.get(function.name)
    return py.call(ast.Attribute(args[0], name, ast.Load()), args[1]) if name else None


def _class_of(kind: Type) -> str | None:
    """The name, in generated code, of the Python class that has the values of a type."""
    if is_map_type(kind):
        return "D"
    return "L" if isinstance(kind, ListType) else _CLASSES.get(plain(kind))


def _comparable(node: Node) -> bool:
    """Whether Python orders the value as CEL does, beside another such value of a fitting type."""
    if isinstance(node, Literal):
        return type(node.value) is str or (type(node.value) in {int, float} and abs(node.value) < _EXACT)
    return exact(node) and node.type in (INT, DOUBLE)


def _is_text(node: Node) -> bool:
    return isinstance(node, Literal) and isinstance(node.value, str)


def _texts(node: Node) -> tuple[str, ...] | None:
    """The elements of a list of plain texts."""
    if isinstance(node, ListOf):
        found = [element.value for element in node.elements if isinstance(element, Literal)]
        if len(found) < len(node.elements):
            return None
    elif isinstance(node, Literal) and isinstance(node.value, list):
        found = node.value
    else:
        return None
    return tuple(found) if all(type(one) is str for one in found) else None


def _has_plain_keys(node: MapOf) -> bool:
    keys = [key.value for key, _ in node.entries if isinstance(key, Literal) and type(key.value) is str]
    return len(set(keys)) == len(node.entries)


def _given(node: Call) -> list[tuple[int, Node]]:
    """The arguments that the function is given: all but opaque ones, by position."""
    return [(position, arg) for position, arg in enumerate(node.args) if not isinstance(arg.type, Opaque)]


def _shown(value: ast.expr, cache: str, make: str) -> ast.expr:
    """The text of a value: looked up for texts, made for others."""
    return ast.IfExp(py.is_class(value, "S"), py.item(py.name(cache), value), py.call(make, value))


def _joined(labels: Iterable[py.Parts]) -> py.Parts:
    parts: py.Parts = []
    for label in labels:
        parts += [",", *label] if parts else label
    return parts


_WRITERS: Final[Mapping[type[Node], Callable[[Writer, Any], ast.expr]]] = {
    Literal: Writer.literal,
    Unknown: Writer.unknown,
    Variable: Writer.variable,
    Expand: Writer.expand,
    Root: Writer.link,
    Select: Writer.link,
    Index: Writer.link,
    Has: Writer.has,
    Unary: Writer.unary,
    Binary: Writer.binary,
    Logic: Writer.logic,
    Conditional: Writer.conditional,
    ListOf: Writer.list_of,
    MapOf: Writer.map_of,
    Call: Writer.call,
    Macro: Writer.macro,
}
