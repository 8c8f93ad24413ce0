"""Ledgers of a shop's desk, for `ledger replay`: written through `Guard`, varied, always the same; and damage to them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson

from ledgercli import cel, paths
from ledgercli.guard import Guard
from ledgercli.rulebook import Rulebook

PROJECT = Path(__file__).parents[1]
TOOLS = PROJECT / "fixtures" / "toolsets" / "shop.tools.yaml"
SHIPPED = PROJECT / "policies" / "support.yaml"
NOW = cel.Timestamp.parse("2026-07-01T12:00:00Z")
RULE = "refund_of_own_order"
USERS = ("mia_li_3668", "lei_li_6575", "aarav_ahmed_6699", "sofia_kim_7287", "noah_brown_6181")


def before_the_rule() -> str:
    """The shop's pack as it was before a customer returned only what that customer had ordered: version 2."""
    text = SHIPPED.read_text()
    start = text.index(f"  - name: {RULE}\n")
    end = text.index("  - name: ", start + 1)
    return (text[:start] + text[end:]).replace("version: 3\n", "version: 2\n")


def with_the_rule() -> str:
    """The pack with it: version 3."""
    return SHIPPED.read_text()


def book(pack: Path, toolset: Path = TOOLS) -> Rulebook:
    return Rulebook.of([pack], toolset, {})


@contextmanager
def desk(rules: Rulebook, file: Path, task: str, **more: Any) -> Iterator[Callable[..., Any]]:
    """A run at the desk: call a tool with what it returns; what is refused does not run. It ends `completed`."""
    with Guard(rulebook=rules, state={"task": task}, ledger=file, sync="none", clock=lambda: NOW, **more) as guard:

        def call(tool: str, result: Any, **args: Any) -> bool:
            verdict = guard.check(tool, args)
            if verdict.runs:
                guard.record(verdict, result)
            return verdict.runs

        yield call


def refund(
    rules: Rulebook,
    file: Path,
    number: int,
    *,
    user: str = "lei_li_6575",
    owner: str | None = None,
    order: str | None = None,
    amount: float | None = None,
    returnable: bool = True,
    notify: bool = True,
) -> Path:
    """A customer logs in, asks about an order and returns it; `number` makes it like no other run."""
    order = order or f"#W{2_000_000 + number * 7}"
    total = amount or 20 + number * 37 % 460 + 0.5
    with desk(rules, file, f"Return order {order}.") as call:
        person = {"id": user, "name": user.split("_", maxsplit=1)[0].title(), "role": "customer"}
        call("authenticate_user", {"authenticated": True, "user": person}, user=user, code=f"code-{number:06}")
        placed = {"order_id": order, "user_id": owner or user, "status": "delivered", "total": total}
        call("get_order", placed, order_id=order)
        call("check_return_policy", {"returnable": returnable, "reason": "30 days"}, order_id=order)
        done = call("create_return", {"return_id": f"R-{number}"}, order_id=order, amount=total)
        if notify:
            said = f"Your return R-{number} is registered." if done else "This cannot be returned."
            call("notify", None, channel="email", text=said)
    return file


# ---- damage


def linked(file: Path, change: Callable[[list[dict[str, Any]]], None]) -> Path:
    """Change the lines of a ledger and put the chain right: a forgery that only a judgement finds."""
    lines = [orjson.loads(line) for line in file.read_bytes().splitlines()]
    change(lines)
    previous = None
    told = []
    for seq, line in enumerate(lines):
        line |= {"seq": seq, "prev": previous}
        if line["kind"] == "close":
            line["lines"] = len(lines)
        told.append(orjson.dumps(line, paths.plain, orjson.OPT_APPEND_NEWLINE))
        previous = f"sha256:{hashlib.sha256(told[-1]).hexdigest()}"
    file.write_bytes(b"".join(told))
    return file


def at_step(lines: Iterable[dict[str, Any]], step: int, kind: str = "step") -> dict[str, Any]:
    return next(line for line in lines if line["kind"] == kind and line["step"] == step)


def torn(file: Path, old: bytes = b'"delivered"', new: bytes = b'"Delivered"') -> Path:
    """Change a few bytes and leave the chain as it is."""
    content = file.read_bytes()
    assert old in content
    file.write_bytes(content.replace(old, new, 1))
    return file
