"""Compiled expressions: one to be asked for its answer, or all rules of a verdict in one function.

Invariants:
* A `Program` tries the fast form and asks the precise one when that gives up, whatever the reason.
* The function for rules answers only if everything could be told and everything that must hold does.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ledgercli.cel import evaluate as precise
from ledgercli.cel import pynodes as py
from ledgercli.cel.checker import Checked
from ledgercli.cel.codegen import NEW_METER, Writer, exact
from ledgercli.cel.runtime import GiveUpError
from ledgercli.cel.syntax import Expand, Literal, Logic, Node
from ledgercli.cel.types import BOOL, DYN, Limits

_LIMITS: Final = Limits()
Roots = Mapping[str, Any]


_YES: Final = precise.Answer(known=True, value=True)
_NO: Final = precise.Answer(known=True, value=False)


def _gives_up(_roots: Roots, _context: Any) -> Any:
    """Stands for the fast form where there is none."""
    raise GiveUpError


class Program:
    """A compiled expression: call it for its answer."""

    __slots__ = ("_fast", "checked", "limits")

    def __init__(self, checked: Checked, limits: Limits, fast: Callable[[Roots, Any], Any] | None) -> None:
        self.checked = checked
        self.limits = limits
        self._fast = fast or _gives_up

    def __call__(self, roots: Roots, context: Any = None) -> precise.Answer:
        """The answer over the values of the roots: by the fast form, by the precise one if that gives up."""
        try:
            value = self._fast(roots, context)
        except Exception:  # noqa: BLE001 - whatever went wrong, the precise form says what it is
            return precise.answer(self.checked, roots, context, self.limits)
        if value is True:
            return _YES
        return _NO if value is False else precise.Answer(known=True, value=value)

    def holds(self, roots: Roots, context: Any = None) -> bool:
        """Whether the answer is true; what cannot be told does not hold."""
        try:
            return self._fast(roots, context) is True
        except Exception:  # noqa: BLE001 - as above
            answer = precise.answer(self.checked, roots, context, self.limits)
            return answer.known and answer.value is True

    def explain(self, roots: Roots, context: Any = None, *, values: bool = True) -> precise.Explanation:
        """The answer with what was read and, unless told otherwise, the values of all sub-expressions."""
        return precise.explain(self.checked, roots, context, self.limits, values=values)


def compile(checked: Checked, limits: Limits = _LIMITS) -> Program:  # noqa: A001 - `cel.compile`, as `re.compile`
    """The program of an expression that has no errors."""
    if not checked.ok:
        raise ValueError(f"an expression with errors cannot be compiled: {checked.problems[0]}")
    return Program(checked, limits, _fast_form(checked, limits))


def _fast_form(checked: Checked, limits: Limits) -> Callable[[Roots, Any], Any] | None:
    writer = Writer(collects=False)
    try:
        if checked.want is BOOL:
            value = writer.truth(checked.node)
        elif checked.want is None or checked.want is DYN:
            value = writer.write(checked.node)
        else:
            first, again = writer.again(writer.write(checked.node))
            fits = py.call("HAS_TYPE", first, writer.tool(checked.want))
            value = ast.IfExp(fits, again, py.call("FAIL"))
        return _built(writer, [*_needed(writer, limits), ast.Return(value)])
    except (GiveUpError, RecursionError):
        return None


def _built(writer: Writer, body: list[ast.stmt]) -> Callable[[Roots, Any], Any]:
    """The function with that body."""
    module = ast.parse("def judge(R, C): pass")  # the only text, always the same
    function = module.body[0]
    assert isinstance(function, ast.FunctionDef)
    function.body = body
    scope: dict[str, Any] = {**writer.tools, "__builtins__": {}}
    exec(builtins.compile(ast.fix_missing_locations(module), "<policy>", "exec"), scope)  # noqa: S102 - no builtins
    judge: Callable[[Roots, Any], Any] = scope["judge"]
    return judge


def _needed(writer: Writer, limits: Limits) -> list[ast.stmt]:
    """What the expressions need before them."""
    before = [py.set_local(local, value) for local, value in writer.hoisted.values()]
    if writer.uses_meter:
        writer.tools["LIMITS"] = limits
        before.append(py.set_local("M", NEW_METER if writer.loops_use_meter else py.constant(None)))
    if writer.uses_notes:
        before.append(py.set_local("X", ast.Dict([], [])))
    return before


# All rules of a verdict


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule as it is judged: where it applies (always, without `when`), what must hold, or what it grants."""

    when: Checked | None = None
    must: Checked | None = None
    grant: Checked | None = None


Judged = tuple[int, dict[str, Any], tuple[bool, ...]]
Judge = Callable[[Roots, Any], Judged | None]


def compile_rules(rules: Sequence[Rule], limits: Limits = _LIMITS) -> Judge:
    """One function for all rules: how many applied, what was read, and which grants hold (one for each that there is).

    It answers `None` as soon as something that must hold does not, or anything cannot be told: the precise form then
    judges rule by rule.
    """
    try:
        return _RuleWriter().function(rules, limits)
    except (GiveUpError, RecursionError):
        return lambda _roots, _context: None


class _RuleWriter:
    def __init__(self) -> None:
        self._writer = Writer(collects=True)
        self._always = 0
        self._counts = False
        self._grants: list[str] = []

    def function(self, rules: Sequence[Rule], limits: Limits) -> Judge:
        """The whole function."""
        body: list[ast.stmt] = []
        for rule in rules:
            body += self._rule(rule)
        body += self._end()
        handler = ast.ExceptHandler(py.name("Exception"), None, [_GIVE_UP])
        guarded = ast.Try([*_needed(self._writer, limits), *body], [handler], [], [])
        return _built(self._writer, [*self._start(), guarded])

    def _rule(self, rule: Rule) -> list[ast.stmt]:
        grant = f"g{len(self._grants)}" if rule.grant is not None else None
        if grant is not None:
            self._grants.append(grant)
        certain, value = (True, True) if rule.when is None else rule.when.constant
        if certain:
            if value is not True:
                return [] if value is False else [_GIVE_UP]
            self._always += 1
            return self._consequence(rule, grant)
        assert rule.when is not None
        return self._conditional(rule.when.node, rule, grant)

    def _conditional(self, when: Node, rule: Rule, grant: str | None) -> list[ast.stmt]:
        """A rule that may not apply. What its first condition loads is loaded for certain."""
        first, *others = _conjuncts(when)
        test = self._writer.truth(first)
        self._counts = True
        with self._writer.branch():
            tests = [test, *(self._writer.truth(other) for other in others)]
            count = ast.AugAssign(ast.Name("n", ast.Store()), ast.Add(), py.constant(1))
            block = [count, *self._consequence(rule, grant)]
        return [ast.If(py.all_of(tests), block, [])]

    def _consequence(self, rule: Rule, grant: str | None) -> list[ast.stmt]:
        """What happens when the rule applies. Whatever must hold was wholly computed, or the function has ended."""
        body: list[ast.stmt] = []
        for part in _conjuncts(rule.must.node) if rule.must is not None else ():
            body += self._demand(part)
        if grant is not None:
            assert rule.grant is not None
            body.append(py.set_local(grant, self._writer.truth(rule.grant.node)))
        return body

    def _demand(self, node: Node) -> list[ast.stmt]:
        if isinstance(node, Literal):
            return [] if node.value is True else [_GIVE_UP]
        if exact(node):
            return [ast.If(py.negated(self._writer.truth(node)), [_GIVE_UP], [])]
        return [ast.If(py.compared(self._writer.write(node), ast.IsNot(), py.constant(value=True)), [_GIVE_UP], [])]

    def _start(self) -> list[ast.stmt]:
        start: list[ast.stmt] = []
        if self._counts:
            start.append(py.set_local("n", py.constant(self._always)))
        unsure = [read.local for key, read in self._writer.reads.items() if key not in self._writer.available]
        if unsure:
            start.append(ast.Assign([ast.Name(local, ast.Store()) for local in unsure], py.name("U")))
        if self._grants:
            start.append(ast.Assign([ast.Name(grant, ast.Store()) for grant in self._grants], py.constant(value=False)))
        return start

    def _end(self) -> list[ast.stmt]:
        """Put the reads together and answer."""
        writer = self._writer
        sure = [read for key, read in writer.reads.items() if key in writer.available]
        reads = ast.Dict([py.text(read.label) for read in sure], [py.name(read.local) for read in sure])
        body: list[ast.stmt] = [py.set_local("reads", reads)]
        for key, read in writer.reads.items():
            if key not in writer.available:
                target = ast.Subscript(py.name("reads"), py.text(read.label), ast.Store())
                is_set = py.compared(py.name(read.local), ast.IsNot(), py.name("U"))
                body.append(ast.If(is_set, [ast.Assign([target], py.name(read.local))], []))
        if writer.uses_notes:
            body.append(ast.Expr(py.call(ast.Attribute(py.name("reads"), "update", ast.Load()), py.name("X"))))
        applied = py.name("n") if self._counts else py.constant(self._always)
        grants = ast.Tuple([py.name(grant) for grant in self._grants], ast.Load())
        return [*body, ast.Return(ast.Tuple([applied, py.name("reads"), grants], ast.Load()))]


_GIVE_UP: Final = ast.Return(py.constant(None))


def _conjuncts(node: Node) -> tuple[Node, ...]:
    """The conditions that `&&` joins, through defines."""
    inner = node
    while isinstance(inner, Expand):
        inner = inner.body
    if isinstance(inner, Logic) and inner.operator == "&&":
        return tuple(part for operand in inner.operands for part in _conjuncts(operand))
    return (node,)
