"""Worlds to try sentences in: states, calls and pasts made at random from what a rule's names can be."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

from ledgercli import cel
from ledgercli.cel import syntax
from ledgercli.cel.types import EnumType, ListType, MapType, RecordType
from tests.sentence_reader import Told

NOW = "2024-05-15T15:00:00Z"
DATES = ("2024-05-14", "2024-05-15", "2024-05-16")
OFTEN = {
    "created_at": ("2024-05-10T10:00:00", "2024-05-15T09:00:00"),
    "membership": ("regular", "silver", "gold"),
    "cabin": ("basic_economy", "economy", "business"),
}


class World:
    """One situation, as the compiled rule and the reader each see it."""

    def __init__(self, state: dict[str, Any], action: dict[str, Any], seed: int) -> None:
        self.told = Told(random.Random(seed))
        self.roots = {"state": state, "action": action, "now": cel.Timestamp.parse(NOW)}
        self.read = {**self.roots, "now": datetime.fromisoformat(NOW).astimezone(UTC)}
        self.moment = SimpleNamespace(history=_History(self.told), state=_State(self.roots, self.told))


class _History:
    """Answers as the reader is answered."""

    def __init__(self, told: Told) -> None:
        self._told = told

    def __getattr__(self, name: str) -> Any:
        return lambda *about: self._answer(name, list(about))

    def _answer(self, name: str, about: list[Any]) -> Any:
        if name in ("repeats_of_call", "confirmed"):
            about = []
        if name in ("sum_args", "distinct_args"):
            about.reverse()
        if name == "steps_since":
            about = about[:1]
        truth = name in ("succeeded", "confirmed") or name.startswith("from_")
        return self._told(name, *about, among=(True, False) if truth else range(6))


class _State:
    """A state of which only the origin of facts is asked."""

    step = 1

    def __init__(self, roots: Mapping[str, Any], told: Told) -> None:
        self.tree, self._told = roots["state"], told

    def origin(self, path: Sequence[Any]) -> Any:
        tool = self._told("source", ["state", *path], among=("task", "user", "verify_account"))
        return SimpleNamespace(tool=tool, args={}, step=1)


class Maker:
    """Makes worlds for a rule.

    Arguments:
        state: the type of `state`.
        action: the type of `action`.
        nodes: the expressions, whose literals make likely values.

    """

    def __init__(self, state: RecordType, action: RecordType, nodes: Sequence[cel.Node]) -> None:
        self._types = state, action
        literals = [one.value for node in nodes for one in cel.walk(node) if isinstance(one, syntax.Literal)]
        flat = [item for one in literals for item in (one if isinstance(one, list) else [one])]
        numbers = [one for one in flat if isinstance(one, int) and not isinstance(one, bool) and abs(one) < 10**6]
        self._numbers = sorted({0, 1, 2, *numbers, *(one + 1 for one in numbers)})
        self._texts = ["a", "b", *(one for one in dict.fromkeys(map(str, flat)) if one)]

    def worlds(self, tool: str, access: str, tags: Sequence[str], seed: int) -> Iterator[World]:
        """Yield worlds without end."""
        state, action = self._types
        self._random = random.Random(seed)
        for number in range(seed, seed + 10**6):
            there = self._random.choice((1.0, 1.0, 0.9))
            facts = self._made(state, "state", there)
            args = self._made(action.fields["args"].type, "args", there)
            yield World(facts, {"tool": tool, "access": access, "tags": list(tags), "args": args}, number)

    def _made(self, kind: Any, name: str, there: float) -> Any:
        pick = self._random
        if isinstance(kind, RecordType):
            return {
                field: self._made(one.type, field, there)
                for field, one in kind.fields.items()
                if field != "ledger" and (name in ("state", "args") or pick.random() < there)
            }
        if isinstance(kind, MapType):
            keys = [key for key in self._keys(name) if pick.random() < there]
            return {key: self._made(kind.value, name, there) for key in keys}
        if isinstance(kind, ListType):
            return [self._made(kind.elem, name, there) for _ in range(pick.choice((0, 1, 1, 2)))]
        if isinstance(kind, EnumType):
            return pick.choice(sorted(kind.values) or ["a"])
        if kind == cel.BOOL:
            return pick.random() < 0.5
        if kind == cel.INT:
            return pick.choice(self._numbers)
        if kind == cel.DOUBLE:
            return float(pick.choice(self._numbers))
        return self._text(name)

    def _keys(self, name: str) -> list[str]:
        return [
            "a",
            "b",
            *(DATES if name == "flights" else ()),
            *(f"{one}1" for one in self._texts if one.endswith("_")),
        ]

    def _text(self, name: str) -> str:
        pick = self._random
        if "date" in name:
            return pick.choice(DATES)
        if name in OFTEN:
            return pick.choice(OFTEN[name])
        if name == "payment_id":
            return pick.choice(self._keys(name))
        if name.endswith(("id", "number", "origin", "destination")):
            return pick.choice("ab")
        return pick.choice(self._texts)
