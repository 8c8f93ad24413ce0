"""What keeping books costs: ratios of CPU time; absolute figures are printed only."""

from __future__ import annotations

import contextlib
import hashlib
import os
import sqlite3
import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, TypedDict

import orjson
import pytest

from ledgercli.guard import Guard
from ledgercli.records import Result
from ledgercli.rulebook import Rulebook
from tests.benchmarks.parts import ARGS, PAIRS, book, say

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(900)]
STEPS = 10_000
BLOCK = 1_000


def keep_books(rules: Rulebook, file: Path, steps: int, *, sync: str = "none") -> Iterator[float]:
    """Check and record; yields the CPU seconds of each block of steps. Each step sets a record of its own."""
    guard = Guard(rulebook=rules, ledger=file, sync=sync)  # type: ignore[arg-type]
    spent = time.process_time()
    for number in range(steps):
        verdict = guard.check("pay", {**ARGS, "amount": 1.5 + number % 400})
        guard.record(verdict, Result(success=True, data={"receipt": f"R-{number}", "ok": True}))
        if (number + 1) % BLOCK == 0:
            now = time.process_time()
            yield now - spent
            spent = now
    guard.close()


def bare(lines: list[dict[str, Any]], file: Path) -> float:
    """The same lines by orjson, sha256 and write alone."""
    spent = time.process_time()
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for line in lines:
        data = orjson.dumps(line) + b"\n"
        hashlib.sha256(data).hexdigest()
        os.write(descriptor, data)
    os.close(descriptor)
    return time.process_time() - spent


def test_check_and_record_beside_the_bare_writing(tmp_path: Path) -> None:
    """Ten times is what is wanted; it is 8 where a call of the system is dear, 14 to 18 where it is cheap: not reached."""
    rules = book(tmp_path)
    ratios, ours = [], []
    for number in range(PAIRS):
        file = tmp_path / f"{number}.ledger.jsonl"
        mine = sum(keep_books(rules, file, BLOCK))
        lines = [orjson.loads(line) for line in file.read_bytes().splitlines()[1:]]
        ratios.append(mine / bare(lines, tmp_path / f"{number}.bare"))
        ours.append(mine / BLOCK)
    found = (statistics.median(ratios), statistics.median(ours), 0.0)
    assert say("check + record : orjson + sha256 + write", found) <= 20


def test_a_step_costs_the_same_at_the_end(tmp_path: Path) -> None:
    """Every step adds a fact, so that the state grows with the run."""
    rules = growing(tmp_path)
    runs = [list(keep_books(rules, tmp_path / f"{number}.ledger.jsonl", STEPS)) for number in range(PAIRS)]
    pairs = [(statistics.median(run[-3:]), run[1]) for run in runs]
    last, first = (statistics.median(pair[side] for pair in pairs) / BLOCK for side in (0, 1))
    found = (statistics.median(end / begin for end, begin in pairs), last, first)
    assert say("steps 7,000 to 10,000 : 1,000 to 2,000", found) <= 1.25


def growing(folder: Path) -> Rulebook:
    book(folder)
    tools = folder / "bench.tools.yaml"
    text = tools.read_text().replace("facts.last_receipt: ", "'facts.receipts[result.data.receipt]': ")
    tools.write_text(text)
    from tests.benchmarks.parts import initial

    return Rulebook.of([folder / "bench10-0.yaml"], tools, initial())


class Chat(TypedDict):
    """LangGraph's state: facts and a history that grows."""

    facts: Annotated[dict[str, Any], lambda old, new: {**old, **new}]
    history: Annotated[list[dict[str, Any]], lambda old, new: old + new]
    step: int


def test_beside_langgraphs_sqlite_checkpointer(tmp_path: Path) -> None:
    """The same run of 1,000 steps, each with the same record of what was asked, judged and done: bytes and CPU time."""
    pytest.importorskip("langgraph", reason="langgraph: `nox -s benchmarks`")
    from langgraph.checkpoint.sqlite import SqliteSaver
    from langgraph.graph import END, START, StateGraph

    rules = book(tmp_path)
    sum(keep_books(rules, tmp_path / "x.ledger.jsonl", 1000))
    records = [orjson.loads(line) for line in (tmp_path / "x.ledger.jsonl").read_bytes().splitlines()[1:]]

    def act(state: Chat) -> dict[str, Any]:
        number = state["step"]
        return {"facts": {"last_receipt": f"R-{number}"}, "history": [records[number]], "step": number + 1}

    graph = StateGraph(Chat)
    graph.add_node("act", act)
    graph.add_edge(START, "act")
    graph.add_conditional_edges("act", lambda state: END if state["step"] >= 1000 else "act")

    def checkpointed(file: Path) -> float:
        spent = time.process_time()
        with contextlib.closing(sqlite3.connect(file, check_same_thread=False)) as connection:
            app = graph.compile(checkpointer=SqliteSaver(connection))
            app.invoke(
                {"facts": {}, "history": [], "step": 0},
                {"configurable": {"thread_id": "1"}, "recursion_limit": 2000},
            )
        return time.process_time() - spent

    pairs, their_size = [], 0
    for number in range(PAIRS):
        file = tmp_path / "langgraph.sqlite"
        theirs = checkpointed(file)
        their_size = file.stat().st_size
        file.unlink()
        pairs.append((theirs, sum(keep_books(rules, tmp_path / f"{number}.ledger.jsonl", 1000))))
    size = (tmp_path / "x.ledger.jsonl").stat().st_size
    print(f"\nthe same 1,000 steps: LangGraph's SQLite {their_size / 1e6:,.1f} MB, ledger {size / 1e6:,.1f} MB")
    theirs, mine = (statistics.median(pair[side] for pair in pairs) for side in (0, 1))
    found = (statistics.median(one / other for one, other in pairs), theirs, mine)
    assert say("LangGraph's CPU time : ours", found) > 1
    assert their_size > 100 * size
