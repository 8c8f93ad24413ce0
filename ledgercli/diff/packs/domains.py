"""All values that some rules can tell apart, where these can be counted.

They can where each path is only taken as a truth, looked for, or compared with what is written out: then two values
between the same bounds, or two texts that are written nowhere, are the same to every rule, and one stands for all.

Invariants:
* Every value of the declared types has one that stands for it, or the answer is None.
* Questions to the history are counted only where their answers do not depend on one another.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import ceil, floor
from typing import Any, Final

from ledgercli import cel
from ledgercli.cel import syntax
from ledgercli.diff.packs.pasts import MOST
from ledgercli.paths import ABSENT, Path, same
from ledgercli.toolset import Tool
from ledgercli.why.situations import Question, begins

Spot = Path | Question
Domain = tuple[Spot, list[Any]]
_ORDER: Final = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_COMPARED: Final = frozenset({"==", "!=", *_ORDER})
_COUNTS: Final = frozenset({"count_calls", "count_failures", "count_recent_failures", "count_denied", "repeats"})
_PLAIN: Final = frozenset(
    {"type", "enum", "const", "default", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "description"}
)
_BOUNDS: Final = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "default", "const")


class _UncountableError(Exception):
    """Values of a path cannot be counted."""


@dataclass
class _Use:
    """How a path or question is used."""

    type: cel.Type | None = None
    literals: list[Any] = field(default_factory=list)


def domains(programs: Iterable[cel.Program], tool: Tool, args: Mapping[str, Any]) -> list[Domain] | None:
    """Return each path and question that some programs look at, with the values that stand for all.

    Arguments:
        programs: the programs.
        tool: the tool that is proposed.
        args: arguments that fit it.

    """
    finder = _Finder()
    try:
        for program in programs:
            finder.visit(program.checked.node)
        finder.check()
        found: list[Domain] = [(path, _values(path, use, tool, args)) for path, use in finder.paths.items()]
        found += [(question, _answers(question, use)) for question, use in finder.questions.values()]
    except _UncountableError:
        return None
    return found


@dataclass
class _Finder:
    """Walks conditions and notes how they use what they look at."""

    paths: dict[Path, _Use] = field(default_factory=dict)
    questions: dict[Any, tuple[Question, _Use]] = field(default_factory=dict)

    def visit(self, node: cel.Node) -> None:
        """Take in a part that is a condition."""
        match node:
            case cel.Literal():
                return
            case syntax.Expand():
                self.visit(node.body)
            case syntax.Logic() | syntax.Conditional() | syntax.Unary(operator="!"):
                for part in syntax.children(node):
                    self.visit(part)
            case syntax.Has():
                self._has(node)
            case syntax.Binary():
                self._compared(node.operator, node.left, node.right)
            case _:
                self._use(node, [])

    def check(self) -> None:
        """Refuse what depends on one another: paths that hold others, questions about the same steps."""
        paths = list(self.paths)
        if any(one is not other and begins(one, other) for one in paths for other in paths):
            raise _UncountableError
        asked = [question.args[0] for question, _ in self.questions.values()]
        if len(set(asked)) < len(asked) or sum(q.function == "repeats" for q, _ in self.questions.values()) > 1:
            raise _UncountableError

    def _has(self, node: syntax.Has) -> None:
        inner = syntax.path_of(node.operand)
        if inner is None or inner != ("state", "facts"):
            raise _UncountableError
        self.paths.setdefault((*inner, node.field), _Use())

    def _compared(self, operator: str, left: cel.Node, right: cel.Node) -> None:
        left, right = _bare(left), _bare(right)
        if operator in _COMPARED and isinstance(left, cel.Literal):
            left, right = right, left
        values = _literals(right)
        if operator == "in" and isinstance(right, (syntax.ListOf, cel.Literal)):
            self._use(left, values)
        elif operator in _COMPARED and isinstance(right, cel.Literal):
            if operator in _ORDER and any(isinstance(value, str) for value in values):
                raise _UncountableError
            self._use(left, values)
        else:
            raise _UncountableError

    def _use(self, node: cel.Node, values: Sequence[Any]) -> None:
        node = _bare(node)
        if isinstance(node, cel.Literal):
            return
        if isinstance(node, cel.Call):
            self._ask(node, values)
            return
        path = syntax.path_of(node)
        if path is None or None in path or isinstance(node, syntax.Has):
            raise _UncountableError
        use = self.paths.setdefault(path, _Use())
        if use.type not in (None, node.type):
            raise _UncountableError
        use.type = node.type
        use.literals += values

    def _ask(self, node: cel.Call, values: Sequence[Any]) -> None:
        counted = node.function in _COUNTS or node.function == "succeeded"
        if not counted or len(node.args) != 2 or not isinstance(tool := _bare(node.args[1]), cel.Literal):
            raise _UncountableError
        question = Question(node.function, (tool.value,))
        self.questions.setdefault(question.key, (question, _Use()))[1].literals.extend(values)


def _bare(node: cel.Node) -> cel.Node:
    while isinstance(node, syntax.Expand):
        node = node.body
    return node


def _literals(node: cel.Node) -> list[Any]:
    """Return what is written out: scalars of JSON."""
    if isinstance(node, syntax.ListOf):
        return [value for part in node.elements for value in _literals(_bare(part))]
    if not isinstance(node, cel.Literal):
        raise _UncountableError
    values = node.value if isinstance(node.value, (list, tuple)) else [node.value]
    if not all(value is None or type(value) in (bool, int, float, str) for value in values):
        raise _UncountableError
    return list(values)


# ---- the values


def _answers(question: Question, use: _Use) -> list[Any]:
    if question.function == "succeeded":
        return [False, True]
    numbers = [0, *(bound for value in _numbers(use.literals) for bound in (floor(value), ceil(value)))]
    if max(numbers) >= MOST:
        raise _UncountableError
    return sorted({number for bound in numbers for number in (bound - 1, bound, bound + 1) if number >= 0})


def _values(path: Path, use: _Use, tool: Tool, args: Mapping[str, Any]) -> list[Any]:
    kind = use.type or cel.DYN
    match path:
        case ("action", "args", str() as name):
            return _of_argument(name, kind, use, tool, args)
        case ("state", "facts", *below) if below:
            return [ABSENT, *_of_type(kind, use.literals)]
        case ("state", "flags", str()):
            return [False, True]
        case ("state", "constraints", str()):
            return [ABSENT, *_of_type(kind, use.literals)]
        case ("state", "task"):
            return _of_type(cel.STRING, ["", *use.literals])
        case ("state", "error"):
            return _once([None, *(value for value in _of_type(cel.STRING, use.literals))])
    raise _UncountableError


def _of_argument(name: str, kind: cel.Type, use: _Use, tool: Tool, args: Mapping[str, Any]) -> list[Any]:
    schema = tool.args[name]
    if not all(key in _PLAIN or key.startswith("x-") for key in schema):
        raise _UncountableError
    bounds = [schema[key] for key in _BOUNDS if key in schema and type(schema[key]) in (int, float, str, bool)]
    values = list(schema["enum"]) if "enum" in schema else _of_type(kind, [*use.literals, *bounds])
    fits = tool.validator.is_valid
    filled = {**tool.defaults, **args}
    return [value for value in values if fits({**filled, name: value})]


def _of_type(kind: cel.Type, literals: Sequence[Any]) -> list[Any]:
    """Return a value for each that the literals tell apart."""
    texts = [value for value in literals if isinstance(value, str)]
    numbers = _numbers(literals)
    if kind == cel.BOOL:
        return [False, True]
    if kind == cel.STRING:
        return _once([*texts, _other(texts)])
    if isinstance(kind, cel.EnumType):
        return sorted(kind.values)
    if kind == cel.INT:
        near = {number for value in numbers for bound in (floor(value), ceil(value)) for number in _about(bound)}
        return sorted(near) or [0]
    if kind == cel.DOUBLE:
        return _regions(numbers)
    if kind == cel.DYN:
        return _once([None, False, True, *_regions(numbers), *texts, _other(texts), [], {}])
    raise _UncountableError


def _about(bound: int) -> tuple[int, int, int]:
    return bound - 1, bound, bound + 1


def _numbers(literals: Sequence[Any]) -> list[Any]:
    return [value for value in literals if type(value) in (int, float)]


def _regions(numbers: Sequence[Any]) -> list[Any]:
    """Return each bound, and a number in each gap."""
    bounds = sorted(set(numbers))
    if not bounds:
        return [0]
    gaps = [bounds[0] - 1, *((low + high) / 2 for low, high in pairwise(bounds)), bounds[-1] + 1]
    return [*gaps, *bounds]


def _other(texts: Sequence[str]) -> str:
    """Return a text that is none of these."""
    return next(text for length in range(len(texts) + 1) if (text := "x" * (length + 1)) not in texts)


def _once(values: Iterable[Any]) -> list[Any]:
    kept: list[Any] = []
    for value in values:
        if not any(same(value, one) for one in kept):
            kept.append(value)
    return kept
