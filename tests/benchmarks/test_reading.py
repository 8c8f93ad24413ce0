"""What reading a ledger costs: ratios of CPU time to parsing its lines with orjson alone; memory over its length."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable
from pathlib import Path

import orjson
import pytest

from ledgercli import ledger
from ledgercli.ledger.verify import verify
from ledgercli.rulebook import Rulebook
from tests import ledgers
from tests.benchmarks.parts import ARGS, CONSTRAINTS, FACTS, book, peak, ratio, say
from tests.benchmarks.test_books import growing, keep_books

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(900)]
STEPS = 10_000
MANY = 1_000_000


def written(folder: Path, make: Callable[[Path], Rulebook]) -> Path:
    """A ledger of `STEPS` steps, each unique, under ten rules."""
    path = folder / "a.ledger.jsonl"
    sum(keep_books(make(folder), path, STEPS))
    return path


def parse(path: Path) -> None:
    """Parse the lines, and nothing more."""
    with path.open("rb") as file:
        for line in file:
            orjson.loads(line)


@pytest.mark.parametrize("make", [book, growing], ids=["one fact changes", "every step adds a fact"])
def test_validating_costs_at_most_six_times_the_parsing(tmp_path: Path, make: Callable[[Path], Rulebook]) -> None:
    path = written(tmp_path, make)
    report = verify(path)
    assert report.problems == ()
    assert report.steps == STEPS
    found = ratio(lambda: verify(path), lambda: parse(path), loops=1)
    assert say("validate : orjson, 10,000 steps", found) <= 6


def test_reading_costs_at_most_three_times_the_parsing(tmp_path: Path) -> None:
    path = written(tmp_path, book)
    found = ratio(lambda: deque(ledger.read(path), 0), lambda: parse(path), loops=1)
    assert say("read : orjson, 10,000 steps", found) <= 3


def long_ledger(path: Path, steps: int) -> Path:
    """A ledger as a guard writes it, written without one: each step is its own call, and changes two facts."""
    opening = ledgers.opening(state=ledgers.STATE | {"facts": FACTS, "constraints": CONSTRAINTS})
    prev = None
    with path.open("wb", buffering=1 << 20) as file:
        for seq in range(steps + 2):
            line = opening if seq == 0 else step(seq) if seq <= steps else ledgers.closing(steps) | {"lines": steps + 2}
            data = orjson.dumps({"kind": None, "seq": seq} | line | {"prev": prev}) + b"\n"
            prev = "sha256:" + hashlib.sha256(data).hexdigest()
            file.write(data)
    return path


def step(number: int) -> dict[str, object]:
    reads = {f"state.facts.{name}": value for name, value in list(FACTS.items())[:7]} | {
        f"action.args.{name}": value for name, value in ARGS.items()
    }
    return {
        "kind": "step", "step": number, "at": ledgers.AT, "now": ledgers.AT,
        "action": {"tool": "pay", "args": {**ARGS, "amount": number + 0.5}},
        "verdict": {"effect": "allow", "applied": 10, "reads": reads},
        "outcome": "ok", "result": {"success": True, "data": {"receipt": f"R-{number}", "ok": True}},
        "state_diff": {"facts.last_receipt": f"R-{number}", f"facts.other_{number % 13}": number},
    }  # fmt: skip


VERIFIED = """
import sys
from ledgercli.ledger.verify import verify
report = verify(sys.argv[1])
assert report.problems == () and report.steps == int(sys.argv[2]), report
"""


def test_a_million_steps_take_the_memory_of_ten_thousand(tmp_path: Path) -> None:
    peaks = []
    for steps in (STEPS, MANY):
        path = long_ledger(tmp_path / f"{steps}.ledger.jsonl", steps)
        peaks.append(peak(VERIFIED, path, steps))
        path.unlink()
    print(f"\npeak memory of validate: {peaks[0] / 1024:.1f} MB at 10,000 steps, {peaks[1] / 1024:.1f} MB at 1,000,000")
    assert peaks[1] <= 1.2 * peaks[0]
