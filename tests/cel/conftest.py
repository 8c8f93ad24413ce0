"""A small world for the policy language's own tests: what is known, its values, and random expressions about it."""

from __future__ import annotations

import random
from typing import Any

import pytest

from ledgercli import cel

LEDGER = cel.Opaque("state.ledger")
ACTION_ARGS = cel.RecordType(
    name="args",
    noun="argument",
    fields={
        "order_id": cel.Field(cel.STRING),
        "amount": cel.Field(cel.DOUBLE),
        "count": cel.Field(cel.INT),
        "items": cel.Field(cel.ListType(elem=cel.STRING)),
    },
)
ORDER = cel.RecordType(
    name="order", fields={"user_id": cel.Field(cel.STRING), "total": cel.Field(cel.DOUBLE, optional=True)}
)
FACTS = cel.RecordType(
    name="facts",
    noun="fact",
    fields={
        "user_authenticated": cel.Field(cel.BOOL, optional=True, note="set by authenticate_user (shop.yaml:31)"),
        "role": cel.Field(cel.STRING, optional=True),
        "visits": cel.Field(cel.INT, optional=True),
        "rate": cel.Field(cel.DOUBLE, optional=True),
        "orders": cel.Field(cel.MapType(key=cel.STRING, value=ORDER)),
        "numbers": cel.Field(cel.ListType(elem=cel.DOUBLE), optional=True),
        "anything": cel.Field(cel.DYN, optional=True),
    },
)
STATE = cel.RecordType(name="state", fields={"facts": cel.Field(FACTS), "ledger": cel.Field(LEDGER)})
ACTION = cel.RecordType(
    name="action",
    fields={
        "tool": cel.Field(cel.EnumType(values=frozenset({"pay", "look", "refund"}), what="tool")),
        "args": cel.Field(ACTION_ARGS),
        "tags": cel.Field(cel.ListType(elem=cel.STRING)),
    },
)


class Ledger:
    """The context of the functions below."""

    def __init__(self, calls: dict[str, int]) -> None:
        self.calls = calls


def count_calls(ledger: Ledger, tool: str, args: Any = None) -> int:
    if tool == "never":
        raise cel.CannotTell("nothing is known of never", ("never",))
    return ledger.calls.get(tool, 0) + (0 if args is None else len(args))


FUNCTIONS = (
    cel.Function("count_calls", (LEDGER, cel.STRING), cel.INT, count_calls, context=True, observed=True),
    cel.Function("count_calls", (LEDGER, cel.STRING, cel.MapType()), cel.INT, count_calls, context=True, observed=True),
    cel.Function(
        "repeats", (LEDGER, ACTION), cel.INT, lambda ledger, action: len(action["args"]), context=True, observed=True
    ),
    cel.Function("source", (cel.PATH,), cel.STRING, lambda _ledger, path: repr(path), context=True, observed=True),
)
DEFINES = {
    "sensitive": "action.tool in ['pay', 'refund']",
    "known_user": "state.facts.user_authenticated && state.facts.role != 'guest'",
    "big": "action.args.amount > 100.0",
    "order": "state.facts.orders[action.args.order_id]",
    "nested": "sensitive || known_user && big",
}


@pytest.fixture(scope="session")
def env() -> cel.Env:
    defines = {name: cel.parse(text) for name, text in DEFINES.items()}
    return cel.Env({"state": STATE, "action": ACTION, "now": cel.TIMESTAMP}, FUNCTIONS, defines)


@pytest.fixture
def roots() -> dict[str, Any]:
    return {
        "state": {
            "facts": {
                "user_authenticated": True,
                "role": "admin",
                "visits": 3,
                "orders": {"#W1": {"user_id": "u1", "total": 12}, "b": {"user_id": "u2"}},
                "numbers": [1, 2.5, 3],
            }
        },
        "action": {
            "tool": "pay",
            "args": {"order_id": "#W1", "amount": 120, "count": 2, "items": ["a", "b"]},
            "tags": ["charge"],
        },
        "now": cel.Timestamp.parse("2026-08-01T12:00:00Z"),
    }


@pytest.fixture
def context() -> Ledger:
    return Ledger({"pay": 2, "look": 5})


class Expressions:
    """Random expressions over the world above, most of them well typed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.variables: list[str] = []

    def pick(self, *options: str) -> str:
        return self.random.choice(options)

    def roots(self) -> dict[str, Any]:
        """Values for the roots; some facts are absent, null, or of another type than declared."""
        odd = [True, False, 0, 1, 2, 1.0, 2.5, -0.0, 2**53 + 1, "", "a", "admin", None, [], [1, True], {"x": 1}]
        choice, chance = self.random.choice, self.random.random
        facts: dict[str, Any] = {"orders": {"#W1": {"user_id": "u1", "total": choice([12, 12.5])}, "a": {}}}
        usual = {
            "user_authenticated": [True, False],
            "role": ["admin", "guest", "a"],
            "visits": [0, 1, 2, 3],
            "rate": [1, 0.5, 0, 2],
            "numbers": [[], [1, 2.5, 3], [0, 1]],
            "anything": odd,
        }
        for name, known in usual.items():
            if chance() < 0.75:
                facts[name] = choice(known if chance() < 0.8 else odd)
        args = {
            "order_id": choice(["#W1", "a", "absent"]),
            "amount": choice([0, 1, 99, 100, 120, 100.5]),
            "count": choice([0, 1, 2, True]),
            "items": choice([[], ["a", "b"], ["a", 1]]),
        }
        now = cel.Timestamp.parse("2026-08-01T12:00:00Z")
        action = {"tool": choice(["pay", "look"]), "args": args, "tags": choice([[], ["charge"]])}
        return {"state": {"facts": facts}, "action": action, "now": now}

    def boolean(self, depth: int) -> str:
        if depth <= 0:
            return self.pick(
                "true", "false", "state.facts.user_authenticated", "sensitive", "known_user", "big", "nested"
            )
        deeper = depth - 1
        return self.random.choice(
            [
                lambda: f"{self.boolean(deeper)} && {self.boolean(deeper)}",
                lambda: f"({self.boolean(deeper)} || {self.boolean(deeper)})",
                lambda: f"!({self.boolean(deeper)})",
                lambda: f"({self.boolean(deeper)} ? {self.boolean(deeper)} : {self.boolean(deeper)})",
                lambda: f"{self.number(deeper)} {self.pick('<', '<=', '>', '>=', '==', '!=')} {self.number(deeper)}",
                lambda: f"{self.whole(deeper)} {self.pick('<', '<=', '>', '>=', '==', '!=')} {self.whole(deeper)}",
                lambda: f"{self.text(deeper)} {self.pick('<', '>=', '==', '!=')} {self.text(deeper)}",
                lambda: f"{self.anything(deeper)} {self.pick('==', '!=', '<', '>')} {self.literal()}",
                lambda: f"{self.literal()} {self.pick('==', '!=', '<=')} {self.anything(deeper)}",
                lambda: f"{self.anything(deeper)} == {self.anything(deeper)}",
                lambda: f"{self.text(deeper)} in {self.texts(deeper)}",
                lambda: f"{self.anything(deeper)} in {self.pick('state.facts.anything', '[1, 2.0, null]', '[true]')}",
                lambda: f"{self.text(deeper)} in state.facts.orders",
                lambda: f"{self.number(deeper)} in state.facts.numbers",
                lambda: f"has(state.facts.{self.pick('role', 'visits', 'rate', 'anything')})",
                lambda: f"has(state.facts.orders[{self.text(deeper)}].total)",
                lambda: f"{self.text(deeper)}.{self.pick('startsWith', 'contains', 'endsWith')}({self.text(deeper)})",
                lambda: self.quantifier(deeper),
                lambda: f"cel.bind(b, {self.boolean(deeper)}, b || {self.boolean(deeper)})",
            ]
        )()

    def quantifier(self, depth: int) -> str:
        name = f"x{len(self.variables)}"
        walked = self.pick(
            "action.args.items", "['a', 'guest']", "state.facts.orders", "state.facts.anything", "['#W1']"
        )
        macro = self.pick("all", "exists", "exists_one")
        self.variables.append(name)
        body = self.boolean(depth)
        self.variables.pop()
        if self.random.random() < 0.2:
            return f"{walked}.{macro}(k{name}, {name}, k{name} == {name} || {body})"
        return f"{walked}.{macro}({name}, {body})"

    def whole(self, depth: int) -> str:
        if depth <= 0:
            return self.pick("0", "1", "-7", "2", "9223372036854775807", "state.facts.visits", "action.args.count")
        deeper = depth - 1
        return self.random.choice(
            [
                lambda: f"({self.whole(deeper)} {self.pick(*'+-*/%')} {self.whole(deeper)})",
                lambda: f"-({self.whole(deeper)})",
                lambda: (
                    f"size({self.pick('state.facts.orders', 'action.args.items', 'state.facts.anything', 'action.tool')})"
                ),
                lambda: f"count_calls(state.ledger, {self.text(deeper)})",
                lambda: f"count_calls(state.ledger, {self.text(deeper)}, {{'to': {self.text(deeper)}}})",
                lambda: "count_calls(state.ledger, action.tool, action.args)",
                lambda: "repeats(state.ledger, action)",
                lambda: f"cel.bind(n, {self.whole(deeper)}, n + {self.whole(deeper)})",
                lambda: f"size({self.texts(deeper)})",
            ]
        )()

    def number(self, depth: int) -> str:
        if depth <= 0:
            return self.pick("0.0", "1.0", "-2.5", "1e300", "state.facts.rate", "action.args.amount")
        deeper = depth - 1
        return self.random.choice(
            [
                lambda: f"({self.number(deeper)} {self.pick(*'+-*/')} {self.number(deeper)})",
                lambda: f"double({self.whole(deeper)})",
                lambda: f"state.facts.orders[{self.text(deeper)}].total",
                lambda: "order.total",
                lambda: f"state.facts.numbers[{self.whole(deeper)}]",
                lambda: f"({self.boolean(deeper)} ? {self.number(deeper)} : {self.number(deeper)})",
            ]
        )()

    def text(self, depth: int) -> str:
        if depth <= 0:
            options = ["'a'", "''", "'guest'", "'#W1'", "state.facts.role", "action.tool", "action.args.order_id"]
            return self.pick(*options, *self.variables, *self.variables)
        deeper = depth - 1
        return self.random.choice(
            [
                lambda: f"({self.text(deeper)} + {self.text(deeper)})",
                lambda: f"string({self.whole(deeper)})",
                lambda: f"state.facts.orders[{self.text(deeper)}].user_id",
                lambda: f"{self.texts(deeper)}[{self.whole(deeper)}]",
                lambda: self.text(0),
                lambda: "source(state.facts.role)",
                lambda: f"source(state.facts.orders[{self.text(deeper)}].total)",
                lambda: f"{{'k': {self.text(deeper)}}}.k",
            ]
        )()

    def texts(self, depth: int) -> str:
        if depth <= 0:
            return self.pick("action.args.items", "action.tags", "['a', 'guest']", "[action.tool]")
        deeper = depth - 1
        return self.random.choice(
            [
                lambda: f"[{self.text(deeper)}, {self.text(deeper)}]",
                lambda: f"({self.texts(deeper)} + {self.texts(deeper)})",
                lambda: f"{self.texts(deeper)}.map(t, t + {self.text(deeper)})",
                lambda: f"{self.texts(deeper)}.map(t, t != 'a', t)",
                lambda: f"{self.texts(deeper)}.filter(t, {self.boolean(deeper)})",
                lambda: f"{self.texts(deeper)}.transformList(i, t, i > 0, t)",
                lambda: "state.facts.orders.transformMap(k, o, o.user_id).map(k, k)",
            ]
        )()

    def anything(self, depth: int) -> str:
        return self.random.choice(
            [
                lambda: "state.facts.anything",
                lambda: "state.facts.anything.x",
                lambda: "state.facts.anything[0]",
                lambda: f"({self.boolean(depth)} ? state.facts.anything : state.facts.visits)",
                lambda: "dyn(state.facts.role)",
            ]
        )()

    def literal(self) -> str:
        return self.pick(
            "0", "1", "2", "1.0", "0.0", "2.5", "'a'", "'admin'", "true", "false", "null", "9007199254740993"
        )


@pytest.fixture
def expressions() -> type[Expressions]:
    return Expressions
