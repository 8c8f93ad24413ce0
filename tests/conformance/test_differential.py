"""Random expressions, judged by us and by Google's C++ implementation (`cel-expr-python`).

The two must agree on the value, or on there being none. Where they do not, the difference must be one of `QUIRKS`: a
quirk of the oracle or of a limit, undone on either side to see that it alone is the cause.

`CEL_DIFFERENTIAL` is the number of expressions (50,000), `CEL_DIFFERENTIAL_SEED` their seed: fixed, `fresh` for a new
one, which is printed.
"""

from __future__ import annotations

import math
import multiprocessing
import os
import random
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from multiprocessing.connection import Connection
from typing import Any
from unittest import mock

import pytest

from ledgercli import cel
from ledgercli.cel import evaluate, values
from ledgercli.cel.formatting import format_text
from ledgercli.cel.library import STANDARD

pytestmark = [pytest.mark.conformance, pytest.mark.timeout(1800)]

# What the expressions may look at, in both worlds.

MOMENT = datetime(2026, 3, 29, 12, 34, 56, 789_000, tzinfo=UTC)
VARIABLES: dict[str, tuple[cel.Type, Any]] = {
    "i": (cel.INT, 7),
    "j": (cel.INT, -3),
    "d": (cel.DOUBLE, 2.5),
    "s": (cel.STRING, "tacocat©"),
    "b": (cel.BYTES, b"ab\xff"),
    "p": (cel.BOOL, True),
    "l": (cel.ListType(cel.INT), [3, 1, 2]),
    "ls": (cel.ListType(cel.STRING), ["a", "ab", "b"]),
    "m": (cel.MapType(cel.STRING, cel.INT), {"a": 1, "b": 2}),
    "one": (cel.MapType(cel.STRING, cel.INT), {"a": 1}),
    "t": (cel.TIMESTAMP, MOMENT),
    "k": (cel.DURATION, timedelta(hours=1, seconds=-1, microseconds=500)),
    "y": (cel.DYN, {"id": 5, "tags": ["x", "y"], "ok": False, "deep": {"z": 1.5, "n": None}}),
}

LITERALS: dict[cel.Type, list[str]] = {
    cel.BOOL: ["true", "false"],
    cel.INT: ["0", "1", "2", "-1", "7", "64", "0x1f", "9223372036854775807", "-9223372036854775808", "1000000"],
    cel.UINT: ["0u", "1u", "3u", "18446744073709551615u", "0xFFu"],
    cel.DOUBLE: ["0.0", "1.0", "-2.5", "0.1", "1e3", "1234567.5", "-0.0", "1e308", "1e-7", "9007199254740993.0"],
    cel.STRING: ["''", "'a'", "'tac'", "'é😀'", "'A b'", "'1'", "r'\\d'", "'%s'", "'x,y,z'", '"q\'\\n"', "'''m'''"],
    cel.BYTES: ["b''", "b'ab'", "b'\\xff'", "b'a\\303\\251'"],
    cel.NULL: ["null"],
    cel.TYPE: ["int", "string", "type", "list", "map", "null_type", "google.protobuf.Duration"],
    cel.TIMESTAMP: ["timestamp('2009-02-13T23:31:30.123456Z')", "timestamp(0)", "timestamp('9999-12-30T23:59:59Z')"],
    cel.DURATION: ["duration('90m')", "duration('-1.5s')", "duration('0')"],
}

# Texts that a function of that name understands (and some that it does not).
ZONES = ["'Europe/Berlin'", "'-02:30'", "'UTC'", "'America/St_Johns'", "'Mars/Base'"]
TEXTS = {
    "int": ["'12'", "'-9'", "'x'", "'9223372036854775808'"],
    "uint": ["'12'", "'-9'", "''"],
    "double": ["'1.5'", "'-2e3'", "'x'", "'NaN'", "'Infinity'"],
    "bool": ["'true'", "'F'", "'0'", "'yes'"],
    "timestamp": ["'2026-03-29T01:30:00+02:00'", "'1600-02-29T23:59:59.5Z'", "'2026-02-30T00:00:00Z'", "'now'"],
    "duration": ["'1h30m'", "'-250ms'", "'1.5us'", "'1d'", "''"],
    "base64.decode": ["'aGVsbG8='", "'aGVsbG8'", "'*'"],
    "matches": ["'a+'", "'^t.c'", "'(a|c)$'", "r'\\d+|\\W'", "'(?i)TACO'", "'['", "'[^a-c]{2,}'"],
    "format": ["'%s'", "'%d'", "'%s-%s'", "'%.2f'", "'%x'", "'%b%%'", "'%e'", "'%o'", "'%X'", "'%q'", "'plain'"],
    **dict.fromkeys(("getFullYear", "getMonth", "getDate", "getDayOfMonth", "getDayOfWeek", "getDayOfYear"), ZONES),
    **dict.fromkeys(("getHours", "getMinutes", "getSeconds", "getMilliseconds"), ZONES),
}
ARITHMETIC = {
    cel.INT: "+-*/%",
    cel.UINT: "+-*/%",
    cel.DOUBLE: "+-*/",
    cel.STRING: "+",
    cel.BYTES: "+",
    cel.DURATION: "+-",
}
ORDERED = [cel.INT, cel.UINT, cel.DOUBLE, cel.STRING, cel.BYTES, cel.BOOL, cel.TIMESTAMP, cel.DURATION]
SIMPLE = [*ORDERED, cel.NULL, cel.TYPE]
KINDS = [*SIMPLE, cel.ListType(cel.INT), cel.ListType(cel.STRING), cel.MapType(cel.STRING, cel.INT), cel.DYN]
MACROS = {
    *("has", "all", "exists", "exists_one", "existsOne", "filter", "map", "map with filter", "cel.bind"),
    *("all/2", "exists/2", "existsOne/2", "transformList", "transformMap"),
}
OPERATORS = {*"+-*/%!", "&&", "||", "?:", "==", "!=", "<", "<=", ">", ">=", "in", "[]", ".", "neg", "list", "map"}


@dataclass(frozen=True)
class Made:
    """An expression.

    `theirs` says the same to the oracle, which has no macros of two variables; `flat` says it without `cel.bind`,
    `chosen` with `?:` in place of `!`.
    """

    ours: str
    theirs: str
    flat: str
    chosen: str
    depth: int = 1


def leaf(text: str) -> Made:
    return Made(text, text, text, text)


def build(template: str, *parts: Made) -> Made:
    """The expression that a template makes of its parts."""
    return Made(
        template.format(*(part.ours for part in parts)),
        template.format(*(part.theirs for part in parts)),
        template.format(*(part.flat for part in parts)),
        template.format(*(part.chosen for part in parts)),
        1 + max((part.depth for part in parts), default=0),
    )


def bind(name: str, value: Made, body: Made) -> Made:
    made = build(f"cel.bind({name}, {{0}}, {{1}})", value, body)
    written_out = re.sub(rf"\b{name}\b", lambda _: f"({value.flat})", body.flat)
    return replace(made, flat=f"({written_out})")


class Maker:
    """Makes expressions of a wanted type; a few arguments are of another one."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.used: set[str] = set()
        self.scope: list[tuple[str, cel.Type]] = []
        self.names = 0

    def expression(self) -> Made:
        self.scope, self.names = [], 0
        return self.of(self.random.choice(KINDS), self.random.choice((4, 5, 5, 6, 6)))

    def of(self, kind: cel.Type, depth: int) -> Made:
        """An expression of that type; sometimes, hidden behind `dyn`, of another."""
        if self.random.random() < 0.015:
            return build("dyn({0})", self.right(self.random.choice(KINDS), depth - 1))
        return self.right(kind, depth)

    def right(self, kind: cel.Type, depth: int) -> Made:
        if kind == cel.DYN:
            return self.dynamic(depth)
        if depth <= 1 or self.random.random() < 0.05:
            return self.simplest(kind)
        return self.random.choice(self.ways(kind))(kind, depth - 1)

    def ways(self, kind: cel.Type) -> list[Callable[[cel.Type, int], Made]]:
        """How an expression of that type can come about; what is listed twice comes up twice as often."""
        ways: list[Callable[[cel.Type, int], Made]] = [self.function, self.function, self.conditional, self.bind]
        if kind in ARITHMETIC:
            ways += [self.arithmetic] * 2
        if kind == cel.BOOL:
            ways += [self.logic, self.logic, self.negation, self.comparison, self.equality, self.membership]
            ways += [self.has, self.quantifier, self.quantifier, self.quantifier_of_two]
        if kind in (cel.INT, cel.DOUBLE):
            ways.append(self.minus)
        if kind in (cel.INT, cel.STRING):
            ways += [self.element, self.field]
        if kind == cel.TIMESTAMP:
            ways += [self.moved] * 2
        if isinstance(kind, cel.ListType):
            ways += [self.list_literal, self.list_sum, self.mapped, self.filtered, self.transform_list]
        if isinstance(kind, cel.MapType):
            ways = [self.map_literal, self.map_literal, self.transform_map, self.conditional, self.bind]
        return ways

    def simplest(self, kind: cel.Type) -> Made:
        names = [name for name, (type_, _) in VARIABLES.items() if type_ == kind]
        names += [name for name, type_ in self.scope if type_ == kind] * 2
        if isinstance(kind, cel.ListType):
            return leaf(self.random.choice([*names * 5, "[]"]))
        if isinstance(kind, cel.MapType):
            return leaf(self.random.choice([*names * 5, "{}"]))
        return leaf(self.random.choice([*names * 4, *LITERALS[kind]]))

    def dynamic(self, depth: int) -> Made:
        if self.random.random() < 0.3:
            return leaf(self.random.choice(["y.id", "y.tags", "y.ok", "y.deep", "y.deep.z", "y.none", "y['id']"]))
        return self.right(self.random.choice(KINDS[:-1]), depth)

    # Operators

    def arithmetic(self, kind: cel.Type, depth: int) -> Made:
        sign = self.note(self.random.choice(ARITHMETIC[kind]))
        return build(f"({{0}} {sign} {{1}})", self.of(kind, depth), self.of(kind, depth))

    def moved(self, kind: cel.Type, depth: int) -> Made:
        sign = self.note(self.random.choice("+-"))
        return build(f"({{0}} {sign} {{1}})", self.of(kind, depth), self.of(cel.DURATION, depth))

    def minus(self, kind: cel.Type, depth: int) -> Made:
        self.note("neg")
        return build("-({0})", self.of(kind, depth))

    def logic(self, kind: cel.Type, depth: int) -> Made:
        sign = self.note(self.random.choice(("&&", "||")))
        return build(f"({{0}} {sign} {{1}})", self.of(kind, depth), self.of(kind, depth))

    def negation(self, kind: cel.Type, depth: int) -> Made:
        self.note("!")
        operand = self.of(kind, depth)
        return replace(build("!({0})", operand), chosen=f"(({operand.chosen}) ? false : true)")

    def comparison(self, _kind: cel.Type, depth: int) -> Made:
        sign = self.note(self.random.choice(("<", "<=", ">", ">=")))
        kind = self.random.choice(ORDERED)
        return build(f"({{0}} {sign} {{1}})", self.of(kind, depth), self.of(kind, depth))

    def equality(self, _kind: cel.Type, depth: int) -> Made:
        sign = self.note(self.random.choice(("==", "!=")))
        kind = self.random.choice(KINDS)
        return build(f"({{0}} {sign} {{1}})", self.of(kind, depth), self.of(kind, depth))

    def membership(self, _kind: cel.Type, depth: int) -> Made:
        self.note("in")
        item = self.random.choice((cel.INT, cel.STRING))
        container = cel.MapType(cel.STRING, cel.INT) if self.random.random() < 0.3 else cel.ListType(item)
        key = cel.STRING if isinstance(container, cel.MapType) else item
        return build("({0} in {1})", self.of(key, depth), self.of(container, depth))

    def conditional(self, kind: cel.Type, depth: int) -> Made:
        self.note("?:")
        return build("({0} ? {1} : {2})", self.of(cel.BOOL, depth), self.of(kind, depth), self.of(kind, depth))

    def element(self, kind: cel.Type, depth: int) -> Made:
        self.note("[]")
        if kind == cel.INT and self.random.random() < 0.4:
            key = leaf("'a'") if self.random.random() < 0.8 else self.of(cel.STRING, depth)
            return build("{0}[{1}]", self.of(cel.MapType(cel.STRING, cel.INT), depth), key)
        position = leaf(self.random.choice("0001")) if self.random.random() < 0.8 else self.of(cel.INT, depth)
        return build("{0}[{1}]", self.of(cel.ListType(kind), depth), position)

    def field(self, kind: cel.Type, depth: int) -> Made:
        self.note(".")
        if kind == cel.STRING:
            return leaf(self.random.choice(["y.tags[0]", "y.tags[1]", "y.tags[1]", "y.tags[2]", "y.missing.x"]))
        return build("{0}." + self.random.choice("aaab"), self.of(cel.MapType(cel.STRING, cel.INT), depth))

    def list_literal(self, kind: cel.ListType, depth: int) -> Made:
        self.note("list")
        items = [self.of(kind.elem, depth) for _ in range(self.random.randint(0, 3))]
        return build("[" + ", ".join(f"{{{n}}}" for n in range(len(items))) + "]", *items)

    def list_sum(self, kind: cel.Type, depth: int) -> Made:
        self.note("+")
        return build("({0} + {1})", self.of(kind, depth), self.of(kind, depth))

    def map_literal(self, kind: cel.MapType, depth: int) -> Made:
        self.note("map")
        count = self.random.randint(0, 2)  # two keys differ: an error of equal ones is absorbed by us alone
        keys = [leaf(key) for key in self.random.sample(LITERALS[cel.STRING], count)]
        keys = keys if count > 1 else [self.of(kind.key, depth) for _ in keys]
        pairs = [(key, self.of(kind.value, depth)) for key in keys]
        text = ", ".join(f"{{{2 * n}}}: {{{2 * n + 1}}}" for n in range(len(pairs)))
        return build("{{" + text + "}}", *(part for pair in pairs for part in pair))

    # Functions

    def function(self, kind: cel.Type, depth: int) -> Made:
        fitting = [one for one in STANDARD if one.result == kind]
        if kind in ORDERED[:3] and self.random.random() < 0.2:
            fitting = [one for one in STANDARD if one.result == cel.DYN]
        if not fitting:
            return self.right(kind, depth)
        chosen = self.random.choice(fitting)
        self.note(chosen.name)
        count = len(chosen.params) - self.random.randint(0, chosen.optional)
        kinds = list(chosen.params[:count])
        if chosen.variadic:
            kinds += [chosen.params[-1]] * self.random.randint(0, 2)
        args = [self.argument(chosen, position, kind, depth) for position, kind in enumerate(kinds)]
        places = [f"{{{n}}}" for n in range(len(args))]
        if chosen.method:
            return build(f"{places[0]}.{chosen.name}({', '.join(places[1:])})", *args)
        return build(f"{chosen.name}({', '.join(places)})", *args)

    def argument(self, function: cel.Function, position: int, kind: cel.Type, depth: int) -> Made:
        texts = TEXTS.get(function.name)
        place = 0 if function.name == "format" else len(function.params) - 1
        if texts and kind == cel.STRING and position == place and self.random.random() < 0.9:
            return leaf(self.random.choice(texts))
        if kind == cel.INT and function.method and self.random.random() < 0.8:
            return leaf(self.random.choice(("0", "0", "1", "1", "2", "-1")))
        if function.name in {"math.greatest", "math.least"} and kind in (cel.DYN, cel.ListType()):
            numbers = [self.of(self.random.choice(ORDERED[:3]), depth) for _ in range(self.random.randint(1, 3))]
            text = ", ".join(f"dyn({{{n}}})" for n in range(len(numbers)))
            return build("[" + text + "]", *numbers) if kind != cel.DYN else build("dyn({0})", numbers[0])
        if isinstance(kind, cel.ListType) and function.name in {"math.greatest", "math.least"}:
            numbers = [self.of(kind.elem, depth) for _ in range(self.random.randint(1, 3))]
            return build("[" + ", ".join(f"{{{n}}}" for n in range(len(numbers))) + "]", *numbers)
        if isinstance(kind, cel.ListType) and kind.elem not in (cel.INT, cel.STRING):
            items = [self.of(self.random.choice(SIMPLE), depth) for _ in range(self.random.randint(1, 3))]
            return build("[" + ", ".join(f"dyn({{{n}}})" for n in range(len(items))) + "]", *items)
        if isinstance(kind, cel.MapType):
            kind = cel.MapType(cel.STRING, cel.INT)
        return build("({0})", self.of(kind, depth)) if position == 0 and function.method else self.of(kind, depth)

    # Macros

    def variable(self, kind: cel.Type, of: cel.Type, depth: int, *more: tuple[str, cel.Type]) -> tuple[str, Made]:
        """A new variable of type `kind`, and an expression of type `of` that may use it."""
        self.names += 1
        name = f"v{self.names}"
        before = self.scope
        self.scope = [*before, (name, kind), *more]
        body = self.of(of, depth)
        self.scope = before
        return name, body

    def has(self, _kind: cel.Type, depth: int) -> Made:
        self.note("has")
        if self.random.random() < 0.5:
            return leaf(self.random.choice(["has(y.id)", "has(y.none)", "has(y.deep.z)", "has(y.id.x)", "has(m.c)"]))
        return build("has({0}.a)", self.of(cel.MapType(cel.STRING, cel.INT), depth))

    def bind(self, kind: cel.Type, depth: int) -> Made:
        self.note("cel.bind")
        bound = self.random.choice((cel.INT, cel.STRING, cel.DOUBLE, cel.ListType(cel.INT)))
        name, body = self.variable(bound, kind, depth)
        return bind(name, self.of(bound, depth), body)

    def walked(self, depth: int) -> tuple[Made, cel.Type]:
        """A list, or a map whose keys are walked."""
        if self.random.random() < 0.2:
            return leaf("one"), cel.STRING
        kind = self.random.choice((cel.INT, cel.STRING))
        return self.of(cel.ListType(kind), depth), kind

    def quantifier(self, _kind: cel.Type, depth: int) -> Made:
        macro = self.note(self.random.choice(("all", "exists", "exists_one", "existsOne")))
        operand, kind = (leaf("m"), cel.STRING) if self.random.random() < 0.2 else self.walked(depth)
        name, body = self.variable(kind, cel.BOOL, depth)
        theirs = build(f"{{0}}.{macro.replace('existsOne', 'exists_one')}({name}, {{1}})", operand, body)
        return replace(theirs, ours=f"{operand.ours}.{macro}({name}, {body.ours})")

    def filtered(self, kind: cel.ListType, depth: int) -> Made:
        self.note("filter")
        name, body = self.variable(kind.elem, cel.BOOL, depth)
        return build(f"{{0}}.filter({name}, {{1}})", self.of(kind, depth), body)

    def mapped(self, kind: cel.ListType, depth: int) -> Made:
        operand, of = self.walked(depth)
        name, body = self.variable(of, kind.elem, depth)
        if self.random.random() < 0.5:
            self.note("map with filter")
            before, self.scope = self.scope, [*self.scope, (name, of)]
            condition = self.of(cel.BOOL, depth)
            self.scope = before
            return build(f"{{0}}.map({name}, {{1}}, {{2}})", operand, condition, body)
        self.note("map")
        return build(f"{{0}}.map({name}, {{1}})", operand, body)

    # Macros of two variables: the oracle gets the same thing said with positions and `cel.bind`.

    def two(self, of: cel.Type, depth: int) -> tuple[str, str, Made]:
        """A position and an element of `l`, and a body over them."""
        self.names += 1
        place = f"p{self.names}"
        name, body = self.variable(cel.INT, of, depth, (place, cel.INT))
        return place, name, body

    def quantifier_of_two(self, _kind: cel.Type, depth: int) -> Made:
        macro = self.random.choice(("all", "exists", "existsOne"))
        self.note(f"{macro}/2")
        theirs = macro.replace("existsOne", "exists_one")
        place, name, body = self.two(cel.BOOL, depth)
        made = build(f"[0, 1, 2].{theirs}({place}, {{0}})", bind(name, leaf(f"l[{place}]"), body))
        return replace(made, ours=f"l.{macro}({place}, {name}, {body.ours})", depth=body.depth + 1)

    def transform_list(self, kind: cel.ListType, depth: int) -> Made:
        self.note("transformList")
        place, name, body = self.two(kind.elem, depth)
        made = build(f"[0, 1, 2].map({place}, {place} != 1, {{0}})", bind(name, leaf(f"l[{place}]"), body))
        text = f"l.transformList({place}, {name}, {place} != 1, {body.ours})"
        return replace(made, ours=text, depth=body.depth + 1)

    def transform_map(self, kind: cel.MapType, depth: int) -> Made:
        self.note("transformMap")
        self.names += 1
        key = f"p{self.names}"
        name, body = self.variable(cel.INT, kind.value, depth, (key, cel.STRING))
        made = build("{{'a': {0}}}", bind(key, leaf("'a'"), bind(name, leaf("1"), body)))
        return replace(made, ours=f"one.transformMap({key}, {name}, {body.ours})", depth=body.depth + 1)

    def note(self, name: str) -> str:
        self.used.add(name)
        return name


# The two judges. An answer is ("error",) or a value in a form that both can give.

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


# What the oracle does otherwise. Each is undone on one side; only if both then agree is it taken as the cause.


def slots(made: Made, oracle: Oracle) -> bool:
    """After a loop that ended early, a later `cel.bind` may find the loop's variable in its place."""
    return oracle(made.flat) == ours(made.ours)


def double_negation(made: Made, oracle: Oracle) -> bool:
    """`!!x` is taken for `x`, whatever that is."""
    return oracle(made.chosen) == ours(made.ours)


def like_the_oracle(*functions: cel.Function) -> Callable[[Made, Oracle], bool]:
    """Whether we agree once we have these functions of the oracle."""
    env = cel.Env(NAMES, functions, strict=False)
    return lambda made, oracle: ours(made.ours, env) == oracle(made.theirs)


def short_substring(text: str, start: int, end: int) -> str:
    """Of two arguments, the second must lie before the end of the text, unless both are equal."""
    if not 0 <= start <= end <= len(text) or (end == len(text) and start < end):
        raise cel.EvalError("out of range")
    return text[start:end]


def rough_format(meter: cel.Meter, template: str, arguments: list[Any]) -> str:
    """`%s` writes doubles with six digits, times without zeros at the end, and bytes that are not UTF-8 as they are."""

    def rough(value: Any) -> Any:
        if isinstance(value, float) and math.isfinite(value):
            return f"{value:g}"
        if isinstance(value, bytes):
            return value.decode("utf-8", "surrogateescape")
        if isinstance(value, cel.Timestamp):
            return re.sub(r"(\.\d*?)0+Z", r"\1Z", str(value))
        if isinstance(value, dict):
            return {key: rough(item) for key, item in value.items()}
        return [rough(item) for item in value] if isinstance(value, list) else value

    if "%s" not in template:
        raise cel.EvalError("no difference here")
    return format_text(meter, template, rough(arguments))


def rough_text(made: Made, oracle: Oracle) -> bool:
    """`%s` is rough (see above), NaN may be written with a sign, and a key that is not UTF-8 crashes it."""
    theirs = oracle(made.theirs)
    if theirs == CRASH:
        return "%s" in made.theirs
    return repr(theirs).replace("-nan", "nan") == repr(ours(made.ours)) or rough_texts(made, oracle)


rough_texts = like_the_oracle(
    cel.Function("format", (cel.STRING, cel.ListType()), cel.STRING, rough_format, method=True, meter=True),
    cel.Function("bytes", (cel.STRING,), cel.BYTES, lambda text: text.encode("utf-8", "surrogateescape")),
)


def odd_key(made: Made, oracle: Oracle) -> bool:
    """`in` a map is an error for null, bytes, lists, … where we say that there is no such key."""

    def contains(meter: cel.Meter, item: Any, container: Any) -> bool:
        if values.is_map(container) and type(item) not in (int, cel.UInt, float, str, bool):
            raise cel.EvalError("no such overload")
        return values_contains(meter, item, container)

    values_contains = values.contains
    with mock.patch.object(values, "contains", contains):
        checked = cel.check(cel.parse(made.ours), ENV)
        answer = evaluate.answer(checked, ROOTS)
    return (("value", normal(answer.value)) if answer.known else ERROR) == oracle(made.theirs)


QUIRKS: dict[str, Callable[[Made, Oracle], bool]] = {
    "a bound variable has another's value": slots,
    "!!x is x": double_negation,
    "substring up to the end is an error": like_the_oracle(
        cel.Function("substring", (cel.STRING, cel.INT, cel.INT), cel.STRING, short_substring, method=True)
    ),
    "the text of %s, and of NaN": rough_text,
    "in a map, an odd key is an error": odd_key,
    "int(bool) works if the type is not known before": like_the_oracle(cel.Function("int", (cel.BOOL,), cel.INT, int)),
}


def test_random_expressions_agree_with_the_oracle() -> None:
    wanted = os.environ.get("CEL_DIFFERENTIAL_SEED", "20260801")
    seed = random.SystemRandom().getrandbits(32) if wanted == "fresh" else int(wanted)
    count = int(os.environ.get("CEL_DIFFERENTIAL", "50000"))
    maker, oracle = Maker(seed), Oracle()
    depths = errors = 0
    differences: Counter[str] = Counter()
    unexplained = []
    for _ in range(count):
        made = maker.expression()
        depths += made.depth
        mine, theirs = ours(made.ours), oracle(made.theirs)
        errors += mine == ERROR
        if mine != theirs:
            kind = next((name for name, holds in QUIRKS.items() if holds(made, oracle)), None)
            if kind is None:
                unexplained.append((made.ours, mine, theirs))
            else:
                differences[kind] += 1
    oracle.stop()
    print(f"seed {seed}: {count} expressions, mean depth {depths / count:.1f}, {errors / count:.0%} end in an error")
    print(f"the oracle's type check refused {oracle.rejected} that were then run without it")
    print(f"differences: {dict(differences)}")
    assert not unexplained, unexplained[:20]
    assert len(QUIRKS) <= 6
    assert sum(differences.values()) < count / 1000
    assert errors >= count / 4
    assert depths >= 4 * count
    if count >= 2_000:
        assert {one.name for one in STANDARD} | OPERATORS | MACROS == maker.used
