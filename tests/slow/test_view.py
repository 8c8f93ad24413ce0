"""The decision view on recorded runs and on a long one: how long it is, and whether the next call finds what it needs.

A value counts that is a text of four characters or a number of a hundred at least, stands in an earlier result, and in
neither the task nor what the user said.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from ledgercli import ledger
from ledgercli.past import Follower
from ledgercli.prompting import Prompter
from ledgercli.records import Line
from ledgercli.shelf import Shelf
from tests.books import book, guard
from tests.test_airline import DATA, Replay, shadow  # noqa: F401 - a fixture

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]
MOST = 3_000  # tokens of a view


def leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, Mapping):
        for inner in value.values():
            yield from leaves(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from leaves(inner)
    else:
        yield value


def stands_in(value: Any, text: str) -> bool:
    if isinstance(value, str):
        return value in text
    short = re.escape(f"{value:g}")
    return re.search(rf"(?<![\w.]){short}(?:\.0+)?(?![\w.])", text) is not None


def counts(value: Any) -> bool:
    if isinstance(value, str):
        return len(value) >= 4
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) >= 100


def as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


@dataclass
class Seen:
    """What one run has shown so far, and what its views were."""

    where: str
    said: str = ""
    known: str = ""
    results: int = 0
    raw: int = 0
    views: list[int] = field(default_factory=list)
    raws: list[int] = field(default_factory=list)
    needed: int = 0
    lost: list[tuple[int, list[Any]]] = field(default_factory=list)

    def before(self, action: Mapping[str, Any], step: int, view: str) -> None:
        """A call is about to be proposed, from this view."""
        wanted = [value for value in leaves(action["args"]) if counts(value) and not stands_in(value, self.said)]
        wanted = [value for value in wanted if stands_in(value, self.known)]
        missing = [value for value in wanted if not stands_in(value, view.replace('\\"', '"'))]
        self.needed += len(wanted)
        self.views.append(-(-len(view) // 4))
        self.raws.append(-(-self.raw // 4))
        if missing:
            self.lost.append((step, missing))

    def after(self, line: Line) -> None:
        """Its line, or what the user said, is written."""
        result = line["result"] or {}
        text = as_text(result.get("data")) if result.get("data") is not None else as_text(result.get("error") or "")
        if line["verdict"] is None:
            self.said += "\n" + text
        else:
            self.known += "\n" + text[:5_000]
            self.results += 1
            self.raw += len(json.dumps(line["action"]["args"])) + len(line["action"]["tool"])
        self.raw += len(text)


def run_of(path: Path, shelf: Shelf) -> Seen:
    """Look at a recorded run as its agent would have: a view before each call."""
    seen, follower = Seen(path.name), Follower(path, shelf)
    prompter: Prompter | None = None
    for entry in ledger.read(path):
        line = entry.record
        if prompter is not None and entry.kind == "step" and line["verdict"] is not None:
            books = follower.books
            assert books is not None
            view = prompter.decision_view(books.state, books.history, now_of(line))
            seen.before(line["action"], line["step"], view.text())
        follower.see(entry)
        if prompter is None:
            assert follower.books is not None
            prompter = Prompter(follower.books.rules)
            seen.said = line["state"]["task"]
        prompter.take(line)
        if entry.kind == "step":
            seen.after(line)
    return seen


def now_of(line: Line) -> Any:
    from ledgercli import cel

    return cel.Timestamp.parse(line["now"])


def table(rows: dict[str, list[Seen]]) -> None:
    print(f"\n{'':24}{'runs':>6}{'calls':>7}{'values':>8}{'found':>8}{'view':>7}{'most':>7}{'raw':>9}{'most':>9}")
    for name, seen in rows.items():
        views = [size for one in seen for size in one.views]
        raws = [size for one in seen for size in one.raws]
        lost = sum(len(one.lost) for one in seen)
        share = 100 * (1 - lost / len(views))
        needed = sum(one.needed for one in seen)
        print(
            f"{name:24}{len(seen):6}{len(views):7}{needed:8}{share:7.2f}%{median(views):7.0f}{max(views):7}"
            f"{median(raws):9.0f}{max(raws):9}"
        )
    for one in (one for seen in rows.values() for one in seen if one.lost):
        for step, missing in one.lost:
            print(f"  {one.where}@{step} does not find {missing}")


@pytest.mark.skipif(not DATA.exists(), reason="the recorded runs are not here")
def test_on_recorded_airline_runs_the_view_is_short_and_has_what_the_next_call_needs(shadow: Replay) -> None:  # noqa: F811
    shelf = Shelf()
    seen = [run_of(path, shelf) for path in sorted(shadow.folder.glob("*.ledger.jsonl"))]
    bands = {"all": seen}
    for low, high in ((0, 10), (10, 20), (20, 99)):
        bands[f"{low + 1} to {high} results"] = [one for one in seen if low < one.results <= high]
    table(bands)
    calls = sum(len(one.views) for one in seen)
    assert (len(seen), calls) == (200, 1_164)
    assert max(size for one in seen for size in one.views) <= MOST
    assert sum(len(one.lost) for one in seen) <= calls // 100


TOOLS = """
    toolset: long
    tools:
      search:
        access: read
        args: {query: {type: string}}
        on_success:
          each: result.data.hits
          set: {'facts.products[item.id]': item}
      get_order:
        access: read
        args: {order_id: {type: string}}
        on_success: {set: {'facts.orders[action.args.order_id]': result.data}}
      read_log:
        access: read
        args: {order_id: {type: string}}
        on_success: {set: {facts.log: result.data}}
      refund:
        args: {order_id: {type: string}, amount: {type: number}}
        on_success: {set: {'facts.refunds[result.data.id]': result.data, facts.latest: result.data.id}}
"""
PACK = """
    pack: long
    rules:
      - name: order_known
        tools: [refund]
        check: action.args.order_id in state.facts.orders
        on_fail: "Nobody has looked at {action.args.order_id}."
      - name: no_more_than_paid
        tools: [refund]
        check: action.args.amount <= state.facts.orders[action.args.order_id].total
        on_fail: {error: "{action.args.amount} is more than was paid.", hint: Look at the order.}
"""


def step_of(rng: random.Random, orders: list[str], totals: dict[str, float]) -> tuple[str, dict[str, Any], Any]:
    """A call and what it returns; most are about what came up lately. Nothing is learnt from one that fails."""
    lately = orders[-1]
    fails = {"success": False, "error": f"no connection, try {rng.randrange(10**6)}"} if rng.random() < 0.05 else None
    kind = rng.choices(["search", "get_order", "read_log", "refund"], [2, 4, 1, 3])[0]
    if kind == "search":
        hits = [{"id": f"P{rng.randrange(10**6):06}", "name": f"Kettle {n}", "price": n * 10.5} for n in range(8)]
        return "search", {"query": "kettle"}, fails or {"hits": hits}
    if kind == "get_order":
        total, following = float(rng.randrange(100, 900)), f"#W{rng.randrange(10**7):07}"
        if fails is None:
            orders.append(following)
            totals[lately] = total
        return "get_order", {"order_id": lately}, fails or {"total": total, "next": following, "items": ["Kettle"] * 3}
    if kind == "read_log":
        return "read_log", {"order_id": lately}, fails or "line of a log that nobody reads; " * rng.randrange(10, 500)
    known = [one for one in orders[-4:] if one in totals] or [lately]
    order = rng.choice(known)
    amount = totals.get(order, 100.0) * rng.choice([1, 1, 1, 2.001])
    return "refund", {"order_id": order, "amount": amount}, fails or {"id": f"R{rng.randrange(10**6):06}"}


def test_on_a_run_of_2000_steps_the_view_stays_as_short(tmp_path: Path) -> None:
    rules, rng = book(tmp_path, PACK, tools=TOOLS), random.Random(2_000)
    prompter, seen = Prompter(rules), Seen("long")
    lines: list[Line] = []
    keeping = guard(rules, tmp_path / "long.ledger.jsonl", on_line=lines.append)
    orders, totals = ["#W0000001"], {}
    for step in range(1, 2_001):
        for line in lines:
            prompter.take(line)
        lines.clear()
        tool, args, data = step_of(rng, orders, totals)
        view = prompter.decision_view(keeping.state, keeping.history, now_of({"now": "2026-08-01T12:00:00Z"}))
        seen.before({"args": args}, step, view.text())
        verdict = keeping.check(tool, args)
        if verdict.runs:
            keeping.record(verdict, data)
        seen.after(lines[-1])
    keeping.close("completed")
    table({"2,000 steps": [seen]})
    assert max(seen.views) <= MOST
    assert max(seen.views[1_000:]) <= max(seen.views[:1_000]) * 1.05  # it does not grow
    assert len(seen.lost) <= len(seen.views) // 100
