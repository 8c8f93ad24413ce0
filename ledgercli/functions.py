"""The functions over past steps, as the policy language knows them: names, types, static checks.

Each asks a `Moment`: the history up to a proposal, and the state that it is judged in. Their answers depend on more
than their arguments, so they stand in a verdict's reads under the text of the call.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from ledgercli import cel, paths
from ledgercli.cel.types import Function
from ledgercli.history import History
from ledgercli.state import State

LEDGER = cel.Opaque("ledger")  # what `state.ledger` is: nothing but an argument of these functions
MAP = cel.MapType(key=cel.STRING, value=cel.DYN)
NO_TOOL = ("task", "user")  # what `source(…).tool` says of initial facts, and of what a user said


class Moment(msgspec.Struct, frozen=True):
    """What the functions over past steps may ask.

    Arguments:
        history: the steps up to now.
        state: the state that the proposal is judged in.

    """

    history: History
    state: State


def _last(moment: Moment, tool: str) -> tuple[Mapping[str, Any], Any]:
    last = moment.history.last(tool)
    if last is None:
        raise cel.CannotTell(f"{tool} has not run yet")
    return last


def _source(moment: Moment, path: tuple[str | int, ...]) -> dict[str, Any]:
    if not isinstance(path, tuple):  # what is not checked strictly may pass anything
        raise cel.EvalError("source() takes a path such as state.facts.x")
    there = path[0] == "state" and paths.get(moment.state.tree, path[1:]) is not paths.ABSENT
    origin = moment.state.origin(path[1:]) if there else None
    if origin is None:
        text = cel.path_text(path)
        raise cel.CannotTell(f"{text} is not known", missing=(text,))
    return {"tool": origin.tool, "args": origin.args, "step": origin.step}


def _call(action: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    tool, args = action.get("tool"), action.get("args")
    if not isinstance(tool, str) or not isinstance(args, Mapping):
        raise cel.CannotTell("a call is `action`, or a map with its tool and args")
    return tool, args


def _sum(meter: cel.Meter, values: Any) -> float:
    meter.spend(len(values))
    if any(isinstance(value, bool) or not isinstance(value, (int, float)) for value in values):
        raise cel.EvalError("sum takes a list of numbers")
    return float(sum(values))


def functions(tools: Mapping[str, Collection[str]]) -> tuple[Function, ...]:
    """Return every function over past steps.

    Arguments:
        tools: the tools that there are, each with the names of its arguments; a tool or argument that is written out
            in a call and is none of these is a problem there.

    """
    checks = _Checks(tools)

    def declare(name: str, params: tuple[cel.Type, ...], result: cel.Type, call: Any, *, ledger: bool) -> Function:
        return Function(
            name,
            (LEDGER, *params) if ledger else params,
            result,
            call or (lambda m, *args: getattr(m.history, name)(*args)),
            context=True,
            observed=True,
            check=checks.of(name, params),
            passes=() if call else ("history", name),
        )

    def ask(name: str, params: tuple[cel.Type, ...], result: cel.Type, call: Any = None) -> Function:
        """Declare a function whose first argument is `state.ledger`, and whose second, if a text, is a tool.

        Without `call` it is the method of the history that has its name.
        """
        return declare(name, params, result, call, ledger=True)

    def ground(name: str, params: tuple[cel.Type, ...]) -> Function:
        return declare(name, params, cel.BOOL, None, ledger=False)

    text = cel.STRING
    by = cel.EnumType(values=frozenset([*tools, *NO_TOOL]), what="tool")
    source = cel.RecordType("source", {"tool": cel.Field(by), "args": cel.Field(cel.DYN), "step": cel.Field(cel.INT)})
    return (
        ask("count_calls", (text,), cel.INT),
        ask("count_calls", (text, MAP), cel.INT),
        ask("count_failures", (text,), cel.INT),
        ask("count_recent_failures", (text,), cel.INT),
        ask("count_denied", (text,), cel.INT),
        ask("succeeded", (text,), cel.BOOL),
        ask("succeeded", (text, MAP), cel.BOOL),
        ask("repeats", (text,), cel.INT),
        ask("repeats", (MAP,), cel.INT, lambda m, a: m.history.repeats_of_call(*_call(a))),
        ask("last_result", (text,), cel.DYN, lambda m, t: _last(m, t)[1]),
        ask("last_args", (text,), cel.DYN, lambda m, t: _last(m, t)[0]),
        ask("steps_since", (text,), cel.INT, lambda m, t: m.history.steps_since(t, m.state.step + 1)),
        ask("sum_args", (text, text), cel.DOUBLE),
        ask("distinct_args", (text, text), cel.INT),
        ask("confirmed", (MAP,), cel.BOOL, lambda m, a: m.history.confirmed(*_call(a))),
        ground("from_task", (cel.DYN,)),
        ground("from_user", (cel.DYN,)),
        ground("from_tool", (cel.DYN, text)),
        Function("source", (cel.PATH,), source, _source, context=True, observed=True),
        Function("sum", (cel.ListType(elem=cel.DYN),), cel.DOUBLE, _sum, meter=True),
    )


@dataclass(frozen=True, slots=True)
class _Checks:
    """Static checks of what is written out in a call."""

    tools: Mapping[str, Collection[str]]

    def of(self, name: str, params: tuple[cel.Type, ...]) -> Callable[[Any, tuple[cel.Type, ...]], Iterable[Any]]:
        """Return the check of one overload."""

        def check(call: Any, _types: tuple[cel.Type, ...]) -> Iterator[cel.Problem]:
            args = call.args
            if name == "from_tool":
                yield from self._tool(args[1])
            elif name.startswith("from_") or params[0] is MAP:
                return
            else:
                yield from self._tool(args[1])
                if len(args) > 2:
                    yield from self._arguments(args[1], args[2])

        return check

    def _tool(self, node: cel.Node) -> Iterator[cel.Problem]:
        if isinstance(node, cel.Literal) and node.value not in self.tools:
            yield unknown(node, "tool", str(node.value), self.tools)

    def _arguments(self, tool: cel.Node, node: cel.Node) -> Iterator[cel.Problem]:
        """A map of arguments needs constant keys, so that an index can answer; the keys are arguments of the tool."""
        known = self.tools.get(tool.value) if isinstance(tool, cel.Literal) else None
        if isinstance(node, cel.MapOf):
            for key, _ in node.entries:
                if not isinstance(key, cel.Literal):
                    yield problem(key, "constant-keys", "the names of arguments must be written out here")
                elif known is not None and key.value not in known:
                    yield unknown(key, "argument", str(key.value), known)
        elif isinstance(node, cel.Literal):
            if known is not None and isinstance(node.value, str) and node.value not in known:
                yield unknown(node, "argument", node.value, known)
        elif isinstance(node.type, (cel.MapType, cel.RecordType)) and cel.path_of(node) != ("action", "args"):
            yield problem(node, "constant-keys", "write the arguments as a map, or action.args")


def problem(node: cel.Node, code: str, message: str, suggestions: tuple[str, ...] = ()) -> cel.Problem:
    """Return a problem of a part of an expression."""
    return cel.Problem(code, message, node.start, node.end, node.source, suggestions=suggestions)


def unknown(node: cel.Node, what: str, word: str, known: Iterable[str]) -> cel.Problem:
    """Return the problem of a name that does not exist, with the nearest that do."""
    return problem(node, f"unknown-{what}", f"no {what} {word}", tuple(cel.nearest(word, known)))
