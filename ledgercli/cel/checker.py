"""A syntax tree against the names and functions that are known: every node gets its type, every mistake is reported.

Invariants:
* All problems are collected, those in the bodies of used defines too; nothing is raised.
* The answer's tree has no `Name` left. A macro's variable hides outer names in the expression, never in a define.
* With `strict` (the product's rules) whatever can never work is an error. Without it (plain CEL) the same findings are
  warnings, and evaluating the place is an error, as the standard says.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Final

from ledgercli.cel import advice, operators
from ledgercli.cel.library import STANDARD
from ledgercli.cel.operators import Finding
from ledgercli.cel.parser import MACROS
from ledgercli.cel.relations import (
    fits,
    is_known,
    is_map_type,
    join_all,
    key_type,
    may_equal,
    nearest,
    plain,
    value_type,
)
from ledgercli.cel.syntax import (
    Binary,
    Call,
    Conditional,
    Expand,
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
    Path,
    Problem,
    Root,
    Select,
    Unary,
    Unknown,
    Variable,
    chain,
    children,
    is_identifier,
    path_of,
    render,
    walk,
    weight,
)
from ledgercli.cel.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    NULL,
    PATH,
    STRING,
    TIMESTAMP,
    TYPE,
    UINT,
    BoundError,
    EvalError,
    Field,
    Function,
    Limits,
    ListType,
    MapType,
    Meter,
    Opaque,
    RecordType,
    Type,
)
from ledgercli.cel.values import type_of

_TYPE_NAMES: Final[Mapping[str, Type]] = {
    **{kind.name: kind for kind in (BOOL, INT, UINT, DOUBLE, STRING, BYTES, NULL, TYPE)},
    "list": ListType(),
    "map": MapType(),
    "google.protobuf.Timestamp": TIMESTAMP,
    "google.protobuf.Duration": DURATION,
}


def _by_name(functions: Iterable[Function]) -> dict[tuple[str, bool], tuple[Function, ...]]:
    table: dict[tuple[str, bool], tuple[Function, ...]] = {}
    for function in functions:
        key = function.name, function.method
        table[key] = (*table.get(key, ()), function)
    return table


_STANDARD: Final = _by_name(STANDARD)
_SMALL: Final = Limits(iterations=10_000, size=10_000)  # of the calls with literals that are tried out


@dataclass(frozen=True, eq=False)
class Env:
    """What an expression may use.

    Arguments:
        names: the roots and their types.
        functions: besides the standard library.
        defines: expressions that a name stands for.
        strict: whether what can never work is an error, not a warning.
        container: the namespace in which names are looked up, `a.b`.
        limits: bound the depth of an expression with its defines written out.

    """

    names: Mapping[str, Type]
    functions: Sequence[Function] = ()
    defines: Mapping[str, Expr] = field(default_factory=dict)
    strict: bool = True
    container: str = ""
    limits: Limits = field(default_factory=Limits)

    @cached_property
    def _table(self) -> dict[tuple[str, bool], tuple[Function, ...]]:
        return _by_name(self.functions)

    @cached_property
    def _dotted(self) -> bool:
        return bool(self.container) or any("." in name for name in self.names)

    def overloads(self, name: str, *, method: bool) -> tuple[Function, ...]:
        """The functions of that name."""
        return (*self._table.get((name, method), ()), *_STANDARD.get((name, method), ()))

    def function_names(self) -> set[str]:
        """The names of all functions, those of macros included."""
        return {name for name, _ in (*self._table, *_STANDARD)} | MACROS | {"cel.bind"}

    def candidates(self, name: str, *, absolute: bool) -> list[str]:
        """The full names that `name` may mean, nearest first."""
        if absolute or not self.container:
            return [name]
        parts = self.container.split(".")
        return [".".join([*parts[:count], name]) for count in range(len(parts), -1, -1)]


@dataclass(frozen=True, eq=False)
class Checked:
    """An expression with its types.

    Arguments:
        expr: as it was parsed.
        node: the checked tree.
        env: what it was checked against.
        problems: everything that is wrong with it.
        want: the type that its value must have.

    """

    expr: Expr
    node: Node
    env: Env
    problems: tuple[Problem, ...] = ()
    want: Type | None = None

    @property
    def type(self) -> Type:
        """The type of its value."""
        return self.node.type

    @property
    def ok(self) -> bool:
        """Whether it may be compiled."""
        return not any(problem.severity == "error" for problem in self.problems)

    @property
    def constant(self) -> tuple[bool, Any]:
        """Whether it is a literal, and its value."""
        return (True, self.node.value) if isinstance(self.node, Literal) else (False, None)

    @cached_property
    def paths(self) -> frozenset[Path]:
        """The paths from a root that it can look at; `None` in one stands for a key known at run time only."""
        return frozenset(path for path, _ in looked_at(self.node))

    @cached_property
    def calls(self) -> tuple[Call, ...]:
        """The calls whose answer depends on more than their arguments."""
        return tuple(
            node for node in walk(self.node) if isinstance(node, Call) and any(one.observed for one in node.functions)
        )


def looked_at(node: Node) -> list[tuple[Path, Node]]:
    """The longest paths from a root below `node`, each with the node that names it."""
    found: list[tuple[Path, Node]] = []
    seen: set[Node] = set()
    pending = [node]
    while pending:
        here = pending.pop()
        if here in seen:
            continue
        seen.add(here)
        path = path_of(here.operand) if isinstance(here, Has) else path_of(here)
        if path is None:
            pending.extend(reversed(children(here)))
        elif not isinstance(here.type, Opaque):
            found.append(((*path, here.field) if isinstance(here, Has) else path, here))
            links = chain(here.operand if isinstance(here, Has) else here)
            pending.extend(step for step in (links[1] if links else ()) if isinstance(step, Node))
    return found


def check(expr: Expr, env: Env, want: Type | None = None) -> Checked:
    """`expr` with its types, and everything that is wrong with it."""
    checker = _Checker(env)
    try:
        node = checker.value(expr.node)
    except RecursionError:  # whoever called this had used up Python's stack
        node = checker.too_deep(expr.node)
    if want is not None and not fits(node.type, want):
        checker.wanted(node, want)
    return Checked(expr, node, env, tuple(checker.problems), want)


def split_and(checked: Checked) -> tuple[Checked, ...]:
    """The conditions that an expression joins with `&&`; itself if there is only one."""
    node = checked.node
    while isinstance(node, Expand):
        node = node.body
    if not isinstance(node, Logic) or node.operator != "&&":
        return (checked,)
    parts = (replace(checked, node=operand, want=BOOL) for operand in node.operands)
    return tuple(conjunct for part in parts for conjunct in split_and(part))


@dataclass(frozen=True, slots=True)
class _Binding:
    """A macro's variable; `walked` is the map whose keys it takes."""

    type: Type
    walked: Node | None = None


_Scope = Mapping[str, _Binding]
_EMPTY: _Scope = {}


class _Checker:
    def __init__(self, env: Env) -> None:
        self.env = env
        self.problems: list[Problem] = []
        self._severity = "error" if env.strict else "warning"
        self._defines: dict[str, Node] = {}
        self._heights: dict[Node, int] = {}
        self._open: list[str] = []
        self._depth = 0

    # Problems

    def _report(self, node: Node, finding: Finding | None) -> None:
        if finding is not None:
            code, message, hint, suggestions, place = finding
            at = place or node
            self.problems.append(Problem(code, message, at.start, at.end, at.source, hint, suggestions, self._severity))

    def _unknown(self, node: Node, finding: Finding) -> Unknown:
        self._report(node, finding)
        return Unknown(node.source, node.start, node.end, finding.message)

    def wanted(self, node: Node, want: Type) -> None:
        """Report that the whole expression has another type than it must have."""
        if want == BOOL:
            self._report(node, operators.condition(node, "a condition", "not-a-condition"))
        else:
            self._report(node, Finding("type-mismatch", f"{plain(want)} is wanted here; this is {plain(node.type)}"))

    # Nodes

    def value(self, node: Node, scope: _Scope = _EMPTY) -> Node:
        """The checked node, which must be a value."""
        checked = self.any(node, scope)
        if isinstance(checked.type, Opaque):
            message = f"{render(checked)} only stands as the argument of a function that asks for it"
            return self._unknown(node, Finding("opaque", message))
        return checked

    def any(self, node: Node, scope: _Scope) -> Node:
        """The checked node, opaque values included."""
        self._depth += 1
        try:
            if self._depth > self.env.limits.depth + 1:
                return self.too_deep(node)
            return self._dispatch(node, scope)
        finally:
            self._depth -= 1

    def too_deep(self, node: Node) -> Unknown:
        """Report that the expression, with its defines, is too deep."""
        message = f"with its defines written out the expression nests deeper than {self.env.limits.depth} levels"
        problem = Problem("too-deep", message, node.start, node.end, node.source)
        self.problems.append(problem)
        return Unknown(node.source, node.start, node.end, message)

    def _dispatch(self, node: Node, scope: _Scope) -> Node:  # noqa: C901, PLR0912 - a table of the kinds of nodes
        match node:
            case Literal():
                return replace(node, type=type_of(node.value))
            case Name():
                return self._name(node, scope)
            case Select():
                return self._select(node, scope)
            case Has():
                return self._has(node, scope)
            case Index():
                return self._index(node, scope)
            case Unary():
                operand = self.value(node.operand, scope)
                kind, finding = operators.negation(operand, node.operator)
                self._report(node, finding)
                return replace(node, operand=operand, type=kind)
            case Binary():
                return self._binary(node, scope)
            case Logic():
                operands = tuple(self.value(operand, scope) for operand in node.operands)
                for operand in operands:
                    self._report(operand, operators.condition(operand, f"each side of {node.operator}"))
                return replace(node, operands=operands, type=BOOL)
            case Conditional():
                return self._conditional(node, scope)
            case ListOf():
                elements = tuple(self.value(element, scope) for element in node.elements)
                return replace(node, elements=elements, type=ListType(elem=join_all(one.type for one in elements)))
            case MapOf():
                return self._map(node, scope)
            case Call():
                return self._call(node, scope)
            case Macro():
                return self._macro(node, scope)
        raise AssertionError(node)

    def _binary(self, node: Binary, scope: _Scope) -> Node:
        node = replace(node, left=self.value(node.left, scope), right=self.value(node.right, scope))
        if node.operator in "+-*/%":
            kind, finding = operators.arithmetic(node)
        else:
            kind, finding = BOOL, operators.comparison(node)
        self._report(node, finding)
        return replace(node, type=kind)

    def _conditional(self, node: Conditional, scope: _Scope) -> Node:
        condition = self.value(node.condition, scope)
        self._report(condition, operators.condition(condition, "what stands before ?"))
        then, otherwise = self.value(node.then, scope), self.value(node.otherwise, scope)
        kind = join_all((then.type, otherwise.type))
        return replace(node, condition=condition, then=then, otherwise=otherwise, type=kind)

    def _map(self, node: MapOf, scope: _Scope) -> Node:
        entries: list[tuple[Node, Node]] = []
        fields: dict[Any, Field] = {}
        for key, item in node.entries:
            checked = self._map_key(key, scope)
            value = self.value(item, scope)
            if isinstance(checked, Literal) and isinstance(checked.value, str):
                if checked.value in fields:
                    self._report(key, Finding("duplicate-key", f"the key {render(checked)} stands twice in this map"))
                fields[checked.value] = Field(value.type)
            entries.append((checked, value))
        if len(fields) == len(entries) and fields:
            kind: Type = RecordType(name="map", fields=fields)
        else:
            kind = MapType(
                key=join_all(key.type for key, _ in entries), value=join_all(item.type for _, item in entries)
            )
        return replace(node, entries=tuple(entries), type=kind)

    def _map_key(self, key: Node, scope: _Scope) -> Node:
        if isinstance(key, Name) and not self._is_known(key.name, scope):
            finding = Finding("unknown-name", f"no name {key.name}", f"a key is written '{key.name}': …")
            return self._unknown(key, finding)
        return self.value(key, scope)

    # Names

    def _is_known(self, name: str, scope: _Scope) -> bool:
        return name in scope or name in self.env.names or name in self.env.defines or name in _TYPE_NAMES

    def _name(self, node: Name, scope: _Scope) -> Node:
        if not node.absolute and node.name in scope:
            return Variable(node.source, node.start, node.end, node.name, type=scope[node.name].type)
        found = self._global(node, node.name, absolute=node.absolute)
        return found or self._unknown(node, self._unknown_name(node, scope))

    def _global(self, node: Node, name: str, *, absolute: bool) -> Node | None:
        """The root, define or type that a (dotted) name means outside all macros."""
        place = node.source, node.start, node.end
        for full in self.env.candidates(name, absolute=absolute):
            if full in self.env.names:
                return Root(*place, full, type=self.env.names[full])
            if full in self.env.defines:
                return self._expand(node, full)
            if full in _TYPE_NAMES:
                return Literal(*place, _TYPE_NAMES[full], type=TYPE)
        return None

    def _unknown_name(self, node: Name, scope: _Scope) -> Finding:
        name = node.name
        known = {*scope, *self.env.names, *self.env.defines, *_TYPE_NAMES}
        near = nearest(name, known)
        quoted = f"\"'{name}'\"" if node.start == 0 and node.end == len(node.source.text) else f"'{name}'"
        text = f"write {quoted}" if not near else f"a text is written {quoted}"
        if name in advice.NAMES:
            hint = advice.NAMES[name]
        elif near:
            hint = f"did you mean {near[0]}? {text[0].upper()}{text[1:]}"
        else:
            fields = self._as_field(name)
            near = fields
            hint = f"did you mean {fields[0]}? A text is written {quoted}" if fields else text
        return Finding("unknown-name", f"no name {name}", hint, near)

    def _as_field(self, name: str) -> tuple[str, ...]:
        """The paths, at most three steps long, that end in `name`."""
        found: list[str] = []
        pending: list[tuple[str, Type, int]] = [(root, kind, 0) for root, kind in self.env.names.items()]
        while pending:
            path, kind, depth = pending.pop(0)
            if isinstance(kind, RecordType) and depth < 3:
                if name in kind.fields:
                    found.append(f"{path}.{name}")
                inner = ((f"{path}.{key}", one.type, depth + 1) for key, one in kind.fields.items())
                pending.extend(inner)
        return tuple(found[:3])

    def _expand(self, node: Node, name: str) -> Node:
        """The define that `name` stands for, checked once and outside all macros."""
        if name in self._open:
            cycle = " -> ".join([*self._open[self._open.index(name) :], name])
            problem = Finding("define-cycle", f"the define {name} uses itself: {cycle}")
            return self._unknown(node, problem)
        if name not in self._defines:
            self._open.append(name)
            depth, self._depth = self._depth, 0
            self._defines[name] = self.any(self.env.defines[name].node, _EMPTY)
            self._depth = depth
            self._open.pop()
        body = self._defines[name]
        if self._depth + self._height(body) > self.env.limits.depth + 1:
            return self.too_deep(node)
        return Expand(node.source, node.start, node.end, name, body, type=body.type)

    def _height(self, node: Node) -> int:
        if node not in self._heights:
            self._heights[node] = 1 + max(map(self._height, children(node)), default=0)
        return self._heights[node]

    # Fields and keys

    def _select(self, node: Select, scope: _Scope) -> Node:
        qualified = self._qualified(node, scope)
        if qualified is not None:
            return qualified
        operand = self.value(node.operand, scope)
        kind, finding = self._field(operand, node.field, scope)
        self._report(node, _at_field(node, finding))
        return replace(node, operand=operand, type=kind)

    def _qualified(self, node: Select, scope: _Scope) -> Node | None:
        """The one name that a whole chain `a.b.c` is, where there are such names."""
        dotted = _dotted(node)
        if dotted is None or (dotted[0] in scope and not dotted[1]):
            return None
        name, absolute = ".".join(dotted[2]), dotted[1]
        if not self.env._dotted and name not in _TYPE_NAMES:  # noqa: SLF001 - the same module
            return None
        return self._global(node, name, absolute=absolute)

    def _field(self, operand: Node, name: str, scope: _Scope) -> tuple[Type, Finding | None]:
        """The type of `operand.name`."""
        kind = operand.type
        if isinstance(kind, RecordType):
            known = kind.fields.get(name)
            return (known.type, None) if known else (DYN, operators.unknown_field(kind, name))
        if isinstance(kind, MapType) or kind == DYN:
            return value_type(kind), None
        hint = None
        binding = scope.get(operand.name) if isinstance(operand, Variable) else None
        if binding is not None and binding.walked is not None:
            hint = f"{render(operand)} is a key of the map: write {render(binding.walked)}[{render(operand)}].{name}"
        elif name in {"length", "size", "count", "len"}:
            hint = f"write size({render(operand)})"
        elif name in advice.METHODS:
            hint = advice.METHODS[name]
        return DYN, Finding("no-fields", f"{plain(kind)} has no field {name}", hint)

    def _has(self, node: Has, scope: _Scope) -> Node:
        operand = self.value(node.operand, scope)
        _, finding = self._field(operand, node.field, scope)
        if finding is not None and finding.place is None:
            width = len(node.field)
            at = node.source.text.rfind(node.field, operand.end, node.end)
            finding = finding._replace(place=Name(node.source, at, at + width, node.field))
        self._report(node, finding)
        return replace(node, operand=operand, type=BOOL)

    def _index(self, node: Index, scope: _Scope) -> Node:
        operand, key = self.value(node.operand, scope), self.value(node.key, scope)
        kind, finding = self._element(operand, key)
        self._report(node, finding)
        return replace(node, operand=operand, key=key, type=kind)

    def _element(self, operand: Node, key: Node) -> tuple[Type, Finding | None]:
        """The type of `operand[key]`."""
        kind = operand.type
        if isinstance(kind, ListType) or (kind == DYN and key.type == INT):
            return (kind.elem if isinstance(kind, ListType) else DYN), _position(operand, key)
        if isinstance(kind, RecordType):
            if isinstance(key, Literal) and isinstance(key.value, str):
                known = kind.fields.get(key.value)
                return (known.type, None) if known else (DYN, operators.unknown_field(kind, key.value, key))
            wrong = not may_equal(key.type, STRING)
            message = f"the keys are string, and this is {plain(key.type)}"
            return value_type(kind), Finding("type-mismatch", message, None, (), key) if wrong else None
        if isinstance(kind, MapType):
            wrong = not may_equal(key.type, kind.key)
            message = f"the keys are {kind.key}, and this is {plain(key.type)}"
            return kind.value, Finding("type-mismatch", message, None, (), key) if wrong else None
        if kind == DYN:
            return DYN, None
        hint = f"write {render(operand)}.charAt({render(key)})" if plain(kind) == STRING else None
        return DYN, Finding("type-mismatch", f"{plain(kind)} has no elements", hint)

    # Calls

    def _call(self, node: Call, scope: _Scope) -> Node:
        name, receiver, overloads = self._overloads(node, scope)
        if not overloads:
            slip = self._slip(node, receiver, scope)
            if slip is not None:
                return self._unknown(node, slip)
        parts = node.args if receiver is None else (receiver, *node.args)
        args = tuple(self.any(part, scope) for part in parts)
        if not overloads:
            finding = self._unknown_function(name, args, method=receiver is not None)
            return self._unknown(node, _at_name(node, receiver, finding))
        fitting = [one for one in overloads if _takes(one, args)]
        if not fitting:
            self._report(node, _wrong_arguments(name, overloads, args))
            kind = join_all(one.result for one in overloads)
            fitting = [] if self.env.strict else [one for one in overloads if _arity(one, len(args))]
        elif all(is_known(arg.type) for arg in args):
            kind = fitting[0].result  # the one that is called
        else:
            kind = join_all(one.result for one in fitting)
        checked = replace(node, function=name, args=args, receiver=None, functions=tuple(fitting), type=kind)
        for one in fitting:
            self._report_all(one, checked)
        return checked

    def _report_all(self, function: Function, call: Call) -> None:
        """Let the function itself look at the call."""
        if function.check is not None:
            kinds = tuple(arg.type for arg in call.args)
            new = (problem for problem in function.check(call, kinds) if problem not in self.problems)
            self.problems.extend(new)
        if _takes(function, call.args):
            self._report(call, _bad_literal(function, call))

    def _overloads(self, node: Call, scope: _Scope) -> tuple[str, Node | None, tuple[Function, ...]]:
        """The name, the receiver and the functions that a call may mean."""
        dotted = None if node.receiver is None else _dotted(node.receiver)
        if dotted is not None and (dotted[1] or dotted[0] not in scope):
            name = ".".join([*dotted[2], node.function])
            for full in self.env.candidates(name, absolute=dotted[1]):
                if found := self.env.overloads(full, method=False):
                    return full, None, found
        if node.receiver is not None:
            return node.function, node.receiver, self.env.overloads(node.function, method=True)
        absolute = node.function.startswith(".")
        for full in self.env.candidates(node.function.removeprefix("."), absolute=absolute):
            if found := self.env.overloads(full, method=False):
                return full, None, found
        return node.function, None, ()

    def _slip(self, node: Call, receiver: Node | None, scope: _Scope) -> Finding | None:
        """The finding about a macro, or a function with a dot in its name, that is written almost right."""
        if node.function in MACROS:
            shown = f"{node.function}()"
            return Finding("wrong-arguments", f"{shown} takes other arguments", _macro_usage(node.function))
        dotted = None if receiver is None else _dotted(receiver)
        if dotted is None or self._is_known(dotted[0], scope):
            return None
        name = ".".join([*dotted[2], node.function])
        near = nearest(name, (one for one in self.env.function_names() if "." in one))
        return Finding("unknown-function", f"no function {name}()", f"did you mean {near[0]}?", near) if near else None

    def _unknown_function(self, name: str, args: tuple[Node, ...], *, method: bool) -> Finding:
        habits = advice.METHODS if method else advice.FUNCTIONS
        shown = f".{name}()" if method else f"{name}()"
        known = self.env.function_names()
        near = nearest(name, known)
        if name in habits:
            return Finding("unknown-function", f"no function {shown}", habits[name], near)
        other = self.env.overloads(name, method=not method)
        if other:
            texts = [render(arg) for arg in args]
            hint = f"write {name}({', '.join(texts)})" if method else None
            if not method and texts:
                hint = f"write {texts[0]}.{name}({', '.join(texts[1:])})"
            return Finding("unknown-function", f"no function {shown}", hint, (name,))
        return Finding("unknown-function", f"no function {shown}", f"did you mean {near[0]}?" if near else None, near)

    # Macros

    def _macro(self, node: Macro, scope: _Scope) -> Node:
        walked = self.value(node.range, scope)
        kinds = self._variables(node, walked)
        keys = walked if is_map_type(walked.type) and len(kinds) == 1 and node.name != "bind" else None
        names = zip(node.variables, kinds, strict=True)
        inner = {**scope, **{name: _Binding(kind, keys) for name, kind in names}}
        condition = None if node.condition is None else self.value(node.condition, inner)
        if condition is not None:
            self._report(condition, operators.condition(condition, f"the condition of {node.name}()"))
        result = None if node.result is None else self.value(node.result, inner)
        kind = _macro_type(node.name, kinds, result, walked)
        cost = weight(condition, result)
        return replace(node, range=walked, condition=condition, result=result, weight=cost, type=kind)

    def _variables(self, node: Macro, walked: Node) -> tuple[Type, ...]:
        """The types of the macro's variables."""
        kind = walked.type
        if node.name == "bind":
            return (kind,)
        one = len(node.variables) == 1
        if isinstance(kind, ListType):
            return (kind.elem,) if one else (INT, kind.elem)
        if is_map_type(kind):
            return (key_type(kind),) if one else (key_type(kind), value_type(kind))
        if kind != DYN:
            message = f"{node.name}() walks a list or a map, not {plain(kind)}"
            self._report(walked, Finding("type-mismatch", message))
        return (DYN,) * len(node.variables)


def _macro_type(name: str, kinds: tuple[Type, ...], result: Node | None, walked: Node) -> Type:
    if name in {"all", "exists", "exists_one"}:
        return BOOL
    if result is None:
        return ListType(elem=kinds[0])
    if name == "bind":
        return result.type
    if name == "transformMap":
        return MapType(key=kinds[0] if walked.type != DYN else DYN, value=result.type)
    return ListType(elem=result.type)


def _macro_usage(name: str) -> str:
    if name == "has":
        return "write has(a.b)"
    if name == "bind":
        return "write cel.bind(x, value, …)"
    if name in {"transformList", "transformMap"}:
        return f"write xs.{name}(k, v, …)"
    return f"write xs.{name}(x, …)"


def _dotted(node: Node) -> tuple[str, bool, list[str]] | None:
    """The first name, whether a dot stands before it, and all names of a chain `a.b.c`."""
    names: list[str] = []
    while isinstance(node, Select):
        if not is_identifier(node.field):
            return None
        names.append(node.field)
        node = node.operand
    if not isinstance(node, Name):
        return None
    names.append(node.name)
    return node.name, node.absolute, names[::-1]


def _at_field(node: Select, finding: Finding | None) -> Finding | None:
    """The finding, placed on the name of the field."""
    if finding is None or finding.place is not None:
        return finding
    width = len(node.field)
    end = node.end if node.source.text[node.end - 1] != "`" else node.end - 1
    return finding._replace(place=Name(node.source, end - width, end, node.field))


def _at_name(node: Call, receiver: Node | None, finding: Finding) -> Finding:
    """The finding, placed on the name of the function."""
    name = node.function.removeprefix(".")
    start = node.source.text.find(name, node.start if receiver is None else receiver.end, node.end)
    return finding if start < 0 else finding._replace(place=Name(node.source, start, start + len(name), name))


def _position(operand: Node, key: Node) -> Finding | None:
    """What is wrong with the index of a list."""
    if isinstance(key, Literal) and type(key.value) is int and key.value < 0:
        text = render(operand)
        hint = f"CEL counts from the front only: {text}[size({text}) - {-key.value}]"
        return Finding("negative-index", "an index is never negative", hint, (), key)
    if plain(key.type) not in (INT, UINT, DOUBLE, DYN):
        return Finding("type-mismatch", f"a list's index is an int, and this is {plain(key.type)}", None, (), key)
    return None


def _arity(function: Function, count: int) -> bool:
    least = len(function.params) - function.optional
    return least <= count and (function.variadic or count <= len(function.params))


def _parameter(function: Function, position: int) -> Type:
    return function.params[min(position, len(function.params) - 1)]


def _takes(function: Function, args: tuple[Node, ...]) -> bool:
    if not _arity(function, len(args)):
        return False
    for position, arg in enumerate(args):
        wanted = _parameter(function, position)
        if wanted == PATH:
            if chain(arg) is None:
                return False
        elif not fits(arg.type, wanted):
            return False
    return True


def _bad_literal(function: Function, call: Call) -> Finding | None:
    """Whether the call can only fail: all its arguments are literals, or the pattern of `matches` is."""
    values = [arg.value for arg in call.args if isinstance(arg, Literal)]
    if function.observed or function.context or (len(values) < len(call.args) and function.name != "matches"):
        return None
    if function.name == "matches":
        if not isinstance(call.args[1], Literal):
            return None
        values = ["", call.args[1].value]
    try:
        function.call(*([Meter(_SMALL)] if function.meter else []), *values)
    except BoundError:
        return None
    except EvalError as problem:
        return Finding("bad-literal", str(problem), None, (), call.args[-1])
    return None


def _wrong_arguments(name: str, overloads: Sequence[Function], args: tuple[Node, ...]) -> Finding:
    usage = " or ".join(dict.fromkeys(map(_signature, overloads[:3])))
    matching = [one for one in overloads if _arity(one, len(args))]
    if not matching:
        return Finding("wrong-arguments", f"{name}() does not take {len(args)} arguments", f"it is {usage}")
    for position, arg in enumerate(args):
        wanted = [_parameter(one, position) for one in matching]
        if PATH in wanted and chain(arg) is None:
            return Finding("not-a-path", f"{name}() takes a path such as state.facts.x", None, (), arg)
        if not any(fits(arg.type, kind) for kind in wanted if kind != PATH) and PATH not in wanted:
            message = f"{name}() takes {' or '.join(dict.fromkeys(str(plain(k)) for k in wanted))} here"
            shown = render(arg) if isinstance(arg.type, Opaque) else str(plain(arg.type))
            return Finding("wrong-arguments", f"{message}, not {shown}", _converted(arg, wanted, usage), (), arg)
    kinds = ", ".join(str(plain(arg.type)) for arg in args)
    return Finding("wrong-arguments", f"{name}() does not take ({kinds})", f"it is {usage}")


def _converted(arg: Node, wanted: Sequence[Type], usage: str) -> str:
    """How to turn the argument into what is wanted."""
    if DOUBLE in wanted and arg.type in (INT, UINT):
        return f"write {int(arg.value)}.0" if isinstance(arg, Literal) else f"write double({render(arg)})"
    if STRING in wanted and arg.type in (INT, UINT, DOUBLE, BOOL):
        return f"write string({render(arg)})"
    return f"it is {usage}"


def _signature(function: Function) -> str:
    """`name(type, type)` as errors show it."""
    shown = [one.name if isinstance(one, Opaque) else str(one) for one in function.params]
    if function.method:
        return f"{shown[0]}.{function.name}({', '.join(shown[1:])})"
    return f"{function.name}({', '.join(shown)})"
