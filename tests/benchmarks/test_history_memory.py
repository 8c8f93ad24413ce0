"""What a history weighs: flat where nobody can ask for more than the tallies; absolute figures are printed only."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable
from typing import Any

import orjson
import pytest

from ledgercli.history import EVERYTHING, History, Keeps, keeps_for

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(600)]
FEW, MANY = 10_000, 1_000_000
TOOLS = ("pay", "look", "send")

#: A pack that asks for tallies only.
PACK = """\
pack: tallies
rules:
  - name: not_too_often
    check: count_calls(state.ledger, "pay") < 2000000 && count_recent_failures(state.ledger, action.tool) < 3
  - name: seen
    check: succeeded(state.ledger, 'look') && repeats(state.ledger, action) < 5 && from_task(action.args.to)
"""


def fill(history: History, steps: int) -> None:
    """Calls with ever-new arguments and results, some of them confirmed, refused, failed, and talk between them."""
    for step in range(steps):
        tool = TOOLS[step % 3]
        args = {"to": f"A-{step}", "amount": step + 0.5}
        if step % 10 == 0:
            history.answered(tool, args, yes=True)
            history.said(f"it is A-{step}")
        if step % 7 == 0:
            history.denied(tool)
        history.executed(tool, args, "error" if step % 5 == 0 else "ok", {"receipt": f"R-{step}"}, step=step)


def peak(keeps: Keeps, steps: int, then: Callable[[History], Any] = lambda _: None) -> int:
    """The most bytes at once while a history takes in so many steps."""
    gc.collect()
    tracemalloc.start()
    try:
        history = History("Pay A-1", keeps=keeps)
        fill(history, steps)
        then(history)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_a_million_calls_weigh_what_ten_thousand_do() -> None:
    lean = keeps_for([PACK])
    peak(lean, FEW)  # what Python sets up once
    few, many = peak(lean, FEW), peak(lean, MANY)
    print(f"\nhistory of 1,000,000 calls : of 10,000: {many / few:.2f}  ({many:,} and {few:,} bytes)")
    assert many <= 1.2 * few


def test_a_checkpoint_of_it_stays_as_short() -> None:
    sizes = []
    for steps in (FEW, MANY // 10):
        history = History("Pay A-1", keeps=keeps_for([PACK]))
        fill(history, steps)
        sizes.append(len(orjson.dumps(history.to_json())))
    print(f"\na checkpoint's history: {sizes[0]:,} and {sizes[1]:,} bytes")
    assert sizes[1] <= 1.2 * sizes[0]


def test_where_all_may_be_asked_it_grows() -> None:
    """So the measure above sees what is kept."""
    few, more = peak(EVERYTHING, FEW), peak(EVERYTHING, 4 * FEW)
    print(f"\nkept in full: {few / FEW:,.0f} bytes a call")
    assert more > 3 * few
