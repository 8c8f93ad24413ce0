"""The two that judge a random expression: we, and Google's C++ implementation (`cel-expr-python`).

An answer is `("value", …)` in a form that both can give, or that there is an error.
"""

from __future__ import annotations

import math
import multiprocessing
import os
from datetime import datetime, timedelta
from multiprocessing.connection import Connection
from typing import Any

import pytest

from ledgercli import cel

from .expressions import VARIABLES

Answer = tuple[Any, ...]
ERROR: Answer = ("error",)
CRASH: Answer = ("crash",)


def normal(value: Any) -> Any:
    """A value as both can give it: no uint beside int, times to the microsecond, NaN equal to itself."""
    if isinstance(value, float):
        return ("double", "nan" if math.isnan(value) else value)
    if isinstance(value, cel.Timestamp):
        return ("timestamp", value.nanos // 1000)
    if isinstance(value, cel.Duration):
        return ("duration", abs(value.nanos) // 1000 * (-1 if value.nanos < 0 else 1))
    if isinstance(value, datetime):
        return ("timestamp", cel.Timestamp.from_datetime(value).nanos // 1000)
    if isinstance(value, timedelta):
        return ("duration", value // timedelta(microseconds=1))
    if isinstance(value, (bytes, bytearray)):
        return ("bytes", bytes(value))
    if isinstance(value, (list, tuple)):
        return ("list", tuple(map(normal, value)))
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return (type(value).__name__, value)
    if isinstance(value, int):
        return ("int", int(value))
    if isinstance(value, cel.Type):
        return ("type", value.name)
    if hasattr(value, "items"):
        return ("map", tuple(sorted((repr(normal(k)), normal(v)) for k, v in value.items())))
    return ("type", spelled(value))


def spelled(kind: Any) -> str:
    """The name that we give to a type of the oracle."""
    name = str(kind.name()).partition("<")[0].rpartition(".")[-1].lower()
    return "null_type" if name == "null" else name


ROOTS = {
    name: cel.Timestamp.from_datetime(value)
    if isinstance(value, datetime)
    else cel.Duration(value // timedelta(microseconds=1) * 1000)
    if isinstance(value, timedelta)
    else value
    for name, (_, value) in VARIABLES.items()
}
NAMES = {name: kind for name, (kind, _) in VARIABLES.items()}
ENV = cel.Env(NAMES, strict=False)


def ours(text: str, env: cel.Env = ENV) -> Answer:
    program = cel.compile(cel.check(cel.parse(text), env))
    fast, precise = program(ROOTS), program.explain(ROOTS).answer
    assert (fast.known, normal(fast.value)) == (precise.known, normal(precise.value)), text
    return ("value", normal(fast.value)) if fast.known else ERROR


class Oracle:
    """Google's implementation, in a process of its own since it can crash."""

    def __init__(self) -> None:
        pytest.importorskip("cel_expr_python.cel", reason="cel-expr-python is the oracle: `nox -s conformance`")
        self.rejected = 0
        self.start()

    def start(self) -> None:
        context = multiprocessing.get_context("fork")
        self.pipe, there = context.Pipe()
        self.process = context.Process(target=serve, args=(there,), daemon=True)
        self.process.start()
        there.close()

    def __call__(self, text: str) -> Answer:
        try:
            self.pipe.send(text)
            answer, checked = self.pipe.recv()
        except (EOFError, ConnectionError):
            self.process.join()
            self.start()
            return CRASH
        self.rejected += not checked
        return answer  # type: ignore[no-any-return]

    def stop(self) -> None:
        self.pipe.send(None)
        self.process.join()


def serve(pipe: Connection) -> None:
    """Answer each expression that comes through the pipe."""
    env, data = google(), {name: value for name, (_, value) in VARIABLES.items()}
    spare = [None] * 1_000_000  # the binding drops a reference to None for each null that it hands over
    while (text := pipe.recv()) is not None:
        try:
            expression, checked = env.compile(text), True
        except Exception:
            expression, checked = None, False
        pipe.send((judged(env, expression, text, data), checked))
    os._exit(len(spare) == 0)  # without the clean-up, in which the binding would crash


def judged(env: Any, expression: Any, text: str, data: dict[str, Any]) -> Answer:
    """The oracle's answer; without its type check if that refuses the expression."""
    try:
        value = (expression or env.compile(text, disable_check=True)).eval(data=data)
        return ERROR if str(value.type()) == "ERROR" else ("value", normal(value.plain_value()))
    except Exception:
        return ERROR


def google() -> Any:
    from cel_expr_python import cel as google_cel
    from cel_expr_python.ext import ext_bindings, ext_encoders, ext_math, ext_strings

    def kind(ours: cel.Type) -> Any:
        if isinstance(ours, cel.ListType):
            return google_cel.Type.List(kind(ours.elem))
        if isinstance(ours, cel.MapType):
            return google_cel.Type.Map(kind(ours.key), kind(ours.value))
        return getattr(google_cel.Type, ours.name.upper())

    extensions = [
        *(ext_bindings.ExtBindings(), ext_encoders.ExtEncoders()),
        *(ext_math.ExtMath(), ext_strings.ExtStrings()),
    ]
    return google_cel.NewEnv(extensions=extensions, variables={name: kind(one) for name, one in NAMES.items()})
