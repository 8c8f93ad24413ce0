"""The precise form of an evaluation: it walks the checked tree and absorbs errors exactly as CEL says.

Invariants:
* It is the meaning of the language; the fast form (`codegen`) must give the same value or hand over to this one.
* It ends in a value, or in "cannot tell" with the missing paths or the error and its place; within `Limits` always.
* A *read* is the longest select/index chain from a root that was looked at, with its value. `has(p)`, `k in p` of a
  map, `size(p)` and observed calls are reads of their own that stand for their answer.
* A place whose checked type is double gives a double, also where the JSON value is written without a fraction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from ledgercli.cel import values
from ledgercli.cel.checker import Checked
from ledgercli.cel.literals import literal
from ledgercli.cel.relations import is_map_type
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
    Source,
    Unary,
    Unknown,
    Variable,
    chain,
    path_text,
)
from ledgercli.cel.types import (
    DOUBLE,
    DYN,
    PATH,
    BoundError,
    CannotTell,
    EvalError,
    Function,
    Limits,
    Meter,
    Opaque,
    Type,
)

_LIMITS: Final = Limits()
_MOST_VALUES: Final = 2_000  # of the sub-expressions whose values are kept
_LONG: Final = 64  # characters or elements of an argument that a step pays for
_MANY: Final = 8  # arguments whose types an error lists
_ABSENT: Final = object()


@dataclass(frozen=True, slots=True)
class Answer:
    """The end of an evaluation: a value, or why there is none.

    Arguments:
        known: whether there is a value.
        value: it.
        missing: the paths that are absent, as they are typed in a rule.
        error: what went wrong, in one line.
        start: offset of the place where it did.
        end: offset after it.
        source: the text that the offsets count in (a define has its own).

    """

    known: bool
    value: Any = None
    missing: tuple[str, ...] = ()
    error: str | None = None
    start: int = 0
    end: int = 0
    source: Source | None = None


@dataclass(frozen=True, slots=True)
class Explanation:
    """An answer with what led to it.

    Arguments:
        answer: the answer.
        reads: what was looked at, by path or call as it is typed, with the value found.
        values: each sub-expression that was evaluated, in order, with its value or `EvalError`.
        steps: what the evaluation spent of `Limits.iterations`.

    """

    answer: Answer
    reads: dict[str, Any]
    values: list[tuple[Node, Any]]
    steps: int = 0


@dataclass(slots=True)
class Run:
    """One evaluation under way."""

    roots: Mapping[str, Any]
    context: Any
    meter: Meter
    reads: dict[str, Any] | None = None
    values: list[tuple[Node, Any]] | None = None
    scope: dict[str, Any] = field(default_factory=dict)
    bodies: dict[Node, tuple[Any, EvalError | None]] = field(default_factory=dict)

    def read(self, label: str, value: Any) -> None:
        """Note a read."""
        if self.reads is not None:
            self.reads[label] = value


def answer(checked: Checked, roots: Mapping[str, Any], context: Any = None, limits: Limits = _LIMITS) -> Answer:
    """The answer, by the precise form alone."""
    return _ended(checked, Run(roots, context, Meter(limits)))


def explain(
    checked: Checked, roots: Mapping[str, Any], context: Any = None, limits: Limits = _LIMITS, *, values: bool = True
) -> Explanation:
    """The answer with everything that was read and, with `values`, evaluated on the way."""
    run = Run(roots, context, Meter(limits), {}, [] if values else None)
    ended = _ended(checked, run)
    return Explanation(ended, run.reads or {}, run.values or [], run.meter.spent)


def _ended(checked: Checked, run: Run) -> Answer:
    node = checked.node
    try:
        value = evaluate(node, run)
        if checked.want is not None and not has_type(value, checked.want):
            raise EvalError(f"the value must be {checked.want}; it is {values.type_name(value)}")  # noqa: TRY301
    except EvalError as problem:
        place = problem.place or node
        missing = problem.missing if isinstance(problem, CannotTell) else ()
        return Answer(
            known=False, missing=missing, error=str(problem), start=place.start, end=place.end, source=place.source
        )
    except RecursionError:
        message = "the evaluation nests too deeply for what called it"
        return Answer(known=False, error=message, start=node.start, end=node.end, source=node.source)
    return Answer(known=True, value=value)


def evaluate(node: Node, run: Run) -> Any:
    """The value of `node`, or an `EvalError` with its place."""
    try:
        value = _KINDS[type(node)](node, run)
    except EvalError as problem:
        if problem.place is None:
            problem.place = node
        _trace(node, problem, run)
        raise
    _trace(node, value, run)
    return value


def _trace(node: Node, outcome: Any, run: Run) -> None:
    kept = run.values
    if kept is not None and len(kept) < _MOST_VALUES and not _is_plain(node):
        kept.append((node, outcome))


def _is_plain(node: Node) -> bool:
    """Whether the node is a literal or a list of them, whose value everybody sees."""
    return isinstance(node, Literal) or (
        isinstance(node, ListOf) and all(isinstance(one, Literal) for one in node.elements)
    )


# Names and paths


def _literal(node: Literal, _run: Run) -> Any:
    return node.value


def _unknown(node: Unknown, _run: Run) -> Any:
    raise EvalError(node.message)


def _variable(node: Variable, run: Run) -> Any:
    value = run.scope[node.name]
    if isinstance(value, EvalError):
        raise value
    return typed(node, value)


def _expand(node: Expand, run: Run) -> Any:
    """The value of a define, which is the same wherever it is used."""
    if node.body not in run.bodies:
        scope, run.scope = run.scope, {}
        try:
            run.bodies[node.body] = evaluate(node.body, run), None
        except EvalError as problem:
            run.bodies[node.body] = None, problem
        run.scope = scope
    value, trouble = run.bodies[node.body]
    if trouble is not None:
        raise trouble
    return value


def typed(node: Node, value: Any) -> Any:
    """The value as the place's type wants it: a double where JSON has a whole number."""
    if node.type is DOUBLE and type(value) is int:
        return to_double(value)
    return value


def to_double(value: Any) -> Any:
    """A whole JSON number as a double; anything else as it is."""
    if type(value) is int:
        try:
            return float(value)
        except OverflowError:
            raise EvalError("range error: the number is too large for a double") from None
    return value


def _link(node: Node, run: Run) -> Any:
    """A root, a field or an element."""
    links = chain(node)
    if links is not None:
        path, value = _look(links, run)
        if run.reads is not None:
            run.reads[path_text(path)] = value
        return typed(node, value)
    if isinstance(node, Select):
        return typed(node, _member(evaluate(node.operand, run), node.field))
    assert isinstance(node, Index)
    container = evaluate(node.operand, run)
    return typed(node, values.index(container, evaluate(node.key, run)))


def _look(links: tuple[Root, tuple[Node | str, ...]], run: Run) -> tuple[tuple[Any, ...], Any]:
    """The path of a chain with its keys evaluated, and the value that is there."""
    root, steps = links
    value = run.roots.get(root.name, _ABSENT)
    path: tuple[Any, ...] = (root.name,)
    if value is _ABSENT:
        raise CannotTell(f"{root.name} is not known", (root.name,))
    for step in steps:
        key = step if isinstance(step, str) else evaluate(step, run)
        value = _below(path, value, key, named=isinstance(step, str))
        path = (*path, key)
    return path, value


def _below(path: tuple[Any, ...], value: Any, key: Any, *, named: bool) -> Any:
    """The value one step below `path`."""
    if values.is_map(value):
        found = values.find(value, key)
        if found is values.MISSING:
            text = path_text((*path, key))
            raise CannotTell(f"{text} is not known", (text,))
        return found
    if named:
        raise EvalError(f"{path_text(path)} is {_shown(value)}, which has no field {key}")
    return values.index(value, key)


def _shown(value: Any) -> str:
    return "null" if value is None else f"a {values.type_name(value)}"


def _member(value: Any, name: str) -> Any:
    if not values.is_map(value):
        raise EvalError(f"{_shown(value)} has no field {name}")
    return values.index(value, name)


def _has(node: Has, run: Run) -> bool:
    links = chain(node.operand)
    path: tuple[Any, ...] = ()
    if links is None:
        value = evaluate(node.operand, run)
    else:
        path, value = _look(links, run)
    if not values.is_map(value):
        raise EvalError(f"{_shown(value)} has no field {node.field}")
    found = values.find(value, node.field) is not values.MISSING
    if links is not None and run.reads is not None:
        run.reads[f"has({path_text((*path, node.field))})"] = found
    return found


# Operators


def _unary(node: Unary, run: Run) -> Any:
    value = evaluate(node.operand, run)
    if node.operator == "-":
        return values.negate(value)
    if type(value) is not bool:
        raise values.no_overload("!", value)
    return not value


def _binary(node: Binary, run: Run) -> Any:
    left = evaluate(node.left, run)
    sign = node.operator
    if sign == "in":
        return _membership(left, node.right, run)
    return operate(sign, run.meter, left, evaluate(node.right, run))


def operate(sign: str, meter: Meter, left: Any, right: Any) -> Any:
    """`left sign right` of two values, for every sign but `in`, `&&` and `||`."""
    if sign == "==":
        return equals(meter, left, right)
    if sign == "!=":
        return not equals(meter, left, right)
    if sign == "+":
        return values.add(meter, left, right)
    return values.BINARY[sign](left, right)


def equals(meter: Meter, left: Any, right: Any) -> bool:
    """CEL's `==`, with long texts paid for."""
    charge(meter, (left, right))
    return values.equals(meter, left, right)


def _membership(item: Any, container: Node, run: Run) -> bool:
    links = chain(container)
    if links is None:
        return values.contains(run.meter, item, evaluate(container, run))
    path, value = _look(links, run)
    found = values.contains(run.meter, item, value)
    if run.reads is not None:
        is_map = values.is_map(value)
        label = f"{literal(item)} in {path_text(path)}" if is_map else path_text(path)
        run.reads[label] = found if is_map else value
    return found


def truth(what: str, value: Any) -> bool:
    """`value` if it is a bool, else the error that `what` does not take it."""
    if type(value) is not bool:
        raise values.no_overload(what, value)
    return value


def _logic(node: Logic, run: Run) -> bool:
    """`&&` and `||`: one side that decides makes the errors of the others irrelevant."""
    decisive = node.operator == "||"
    trouble: EvalError | None = None
    for operand in node.operands:
        try:
            if truth(node.operator, evaluate(operand, run)) is decisive:
                return decisive
        except BoundError:
            raise
        except EvalError as problem:
            trouble = _both(trouble, _placed(problem, operand))
    if trouble is not None:
        raise trouble
    return not decisive


def _placed(problem: EvalError, node: Node) -> EvalError:
    if problem.place is None:
        problem.place = node
    return problem


def _both(first: EvalError | None, second: EvalError) -> EvalError:
    """Two errors as one: the first, with the missing paths of both."""
    if first is None or not (isinstance(first, CannotTell) and isinstance(second, CannotTell)):
        return first or second
    missing = tuple(dict.fromkeys(first.missing + second.missing))
    both = CannotTell(str(first), missing[:100])
    both.place = first.place
    return both


def _conditional(node: Conditional, run: Run) -> Any:
    condition = truth("?:", evaluate(node.condition, run))
    return evaluate(node.then if condition else node.otherwise, run)


def _list(node: ListOf, run: Run) -> list[Any]:
    return [evaluate(element, run) for element in node.elements]


def _map(node: MapOf, run: Run) -> Mapping[Any, Any]:
    return values.make_map([(evaluate(key, run), evaluate(item, run)) for key, item in node.entries])


# Calls


def _call(node: Call, run: Run) -> Any:
    if node.function == "size" and len(node.args) == 1:
        return _size(node, run)
    observed = any(one.observed for one in node.functions)
    args: list[Any] = []
    shown: list[str] = []
    for position, arg in enumerate(node.args):
        if isinstance(arg.type, Opaque):
            continue
        value, text = _argument(node, position, arg, run, observed=observed)
        args.append(value)
        if observed and run.reads is not None:
            shown.append(literal(value) if text is None else text)
    value = dispatch(node.function, node.functions, run.meter, run.context, args)
    if observed and run.reads is not None:
        run.reads[f"{node.function}({','.join(shown)})"] = value
    return typed(node, value)


def _argument(node: Call, position: int, arg: Node, run: Run, *, observed: bool) -> tuple[Any, str | None]:
    """An argument, and its text where a read shows it otherwise than as a literal."""
    links = chain(arg)
    if takes_path(node, position) and links is not None:
        root, steps = links
        path = (root.name, *(step if isinstance(step, str) else evaluate(step, run) for step in steps))
        return path, path_text(path)
    if observed and isinstance(arg, Root):
        return _look((arg, ()), run)[1], arg.name
    return evaluate(arg, run), None


def takes_path(node: Call, position: int) -> bool:
    """Whether the argument is meant as a path rather than as its value."""
    return any(position < len(one.params) and one.params[position] is PATH for one in node.functions)


def _size(node: Call, run: Run) -> Any:
    links = chain(node.args[0])
    if links is None:
        return dispatch("size", node.functions, run.meter, run.context, [evaluate(node.args[0], run)])
    path, value = _look(links, run)
    size = dispatch("size", node.functions, run.meter, run.context, [value])
    run.read(f"size({path_text(path)})", size)
    return size


def dispatch(name: str, functions: Sequence[Function], meter: Meter, context: Any, args: Sequence[Any]) -> Any:
    """Call the overload that takes these values."""
    charge(meter, args)
    for function in functions:
        if accepts(function, args):
            return invoke(function, meter, context, args)
    if len(args) > _MANY:
        raise EvalError(f"no such overload: {name} with {len(args):,} arguments")
    raise values.no_overload(name, *args)


def invoke(function: Function, meter: Meter, context: Any, args: Sequence[Any]) -> Any:
    """Call one overload."""
    if function.context:
        args = (context, *args)
    return function.call(meter, *args) if function.meter else function.call(*args)


def charge(meter: Meter, args: Iterable[Any]) -> None:
    """Pay for long arguments, which any function may walk."""
    for arg in args:
        if type(arg) in _SIZED and len(arg) > _LONG:
            meter.spend(len(arg) // _LONG)


_SIZED: Final = frozenset({str, bytes, list, tuple, dict})


def accepts(function: Function, args: Sequence[Any]) -> bool:
    """Whether the values have the types of the parameters."""
    needs = function.needs
    if len(args) < len(needs) - function.optional or (len(args) > len(needs) and not function.variadic):
        return False
    last = len(needs) - 1
    return all(has_type(arg, needs[min(position, last)]) for position, arg in enumerate(args))


def has_type(value: Any, kind: Type) -> bool:
    """Whether a value has a type; lists and maps by their kind alone."""
    if kind is DYN or kind is PATH:
        return True
    name = values.type_of(value).name
    return name == kind.name or (name == "map" and is_map_type(kind))


# Macros


def elements(value: Any) -> Iterable[Any]:
    """What a macro of one variable walks."""
    if values.is_list(value) or values.is_map(value):
        return value  # type: ignore[no-any-return] # a list, or a map's keys
    raise values.no_overload("macro", value)


def pairs(value: Any) -> Iterable[tuple[Any, Any]]:
    """What a macro of two variables walks."""
    if values.is_list(value):
        return enumerate(value)
    if values.is_map(value):
        return value.items()  # type: ignore[no-any-return]
    raise values.no_overload("macro", value)


def _macro(node: Macro, run: Run) -> Any:
    walked = _bound(node.range, run) if node.name == "bind" else evaluate(node.range, run)
    outer = run.scope
    try:
        if node.name == "bind":
            assert node.result is not None
            run.scope = {**outer, node.variables[0]: walked}
            return evaluate(node.result, run)
        return _LOOPS[node.name](node, run, _scopes(node, walked, run))
    finally:
        run.scope = outer


def _bound(node: Node, run: Run) -> Any:
    """The value that `cel.bind` names, or the error that whoever uses the name will meet."""
    try:
        return evaluate(node, run)
    except BoundError:
        raise
    except EvalError as problem:
        return problem


def _scopes(node: Macro, walked: Any, run: Run) -> Iterable[Any]:
    """Set the variables for each element in turn; gives the element, or the pair."""
    outer = run.scope
    if len(node.variables) == 1:
        (name,) = node.variables
        for element in elements(walked):
            run.meter.spend(node.weight)
            run.scope = {**outer, name: element}
            yield element
    else:
        first, second = node.variables
        for key, value in pairs(walked):
            run.meter.spend(node.weight)
            run.scope = {**outer, first: key, second: value}
            yield key, value


def _quantifier(node: Macro, run: Run, scopes: Iterable[Any]) -> bool:
    """`all` and `exists`: one element that decides makes errors irrelevant."""
    assert node.condition is not None
    decisive = node.name == "exists"
    trouble: EvalError | None = None
    for _ in scopes:
        try:
            if truth(f"{node.name}()", evaluate(node.condition, run)) is decisive:
                return decisive
        except BoundError:
            raise
        except EvalError as problem:
            trouble = _both(trouble, _placed(problem, node.condition))
    if trouble is not None:
        raise trouble
    return not decisive


def _kept(node: Macro, run: Run, scopes: Iterable[Any]) -> Iterable[Any]:
    """The elements for which the condition holds, with their variables set."""
    for element in scopes:
        if node.condition is None or truth(f"{node.name}()", evaluate(node.condition, run)):
            yield element


def _exists_one(node: Macro, run: Run, scopes: Iterable[Any]) -> bool:
    return sum(1 for _ in _kept(node, run, scopes)) == 1


def _filter(node: Macro, run: Run, scopes: Iterable[Any]) -> list[Any]:
    return list(_kept(node, run, scopes))


def _transform(node: Macro, run: Run, scopes: Iterable[Any]) -> list[Any]:
    assert node.result is not None
    return [evaluate(node.result, run) for _ in _kept(node, run, scopes)]


def _transform_map(node: Macro, run: Run, scopes: Iterable[Any]) -> Mapping[Any, Any]:
    assert node.result is not None
    return values.make_map([(key, evaluate(node.result, run)) for key, _ in _kept(node, run, scopes)])


_LOOPS: Final[Mapping[str, Callable[[Macro, Run, Iterable[Any]], Any]]] = {
    "all": _quantifier,
    "exists": _quantifier,
    "exists_one": _exists_one,
    "filter": _filter,
    "map": _transform,
    "transformList": _transform,
    "transformMap": _transform_map,
}
_KINDS: Final[Mapping[type[Node], Callable[[Any, Run], Any]]] = {
    Literal: _literal,
    Unknown: _unknown,
    Variable: _variable,
    Expand: _expand,
    Root: _link,
    Select: _link,
    Index: _link,
    Has: _has,
    Unary: _unary,
    Binary: _binary,
    Logic: _logic,
    Conditional: _conditional,
    ListOf: _list,
    MapOf: _map,
    Call: _call,
    Macro: _macro,
}
