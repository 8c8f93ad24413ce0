"""Random expressions that reach every operator, macro and library function, with the variables they look at.

Most are well typed; a few arguments are of another type behind `dyn`, and many end in an error by their values.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from ledgercli import cel
from ledgercli.cel.library import STANDARD

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
