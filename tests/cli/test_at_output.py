"""What `ledger replay FILE@N` and `--trace PATH` show, byte for byte: the reports that the command prints."""

from __future__ import annotations

import io
import json

import pytest
from rich.cells import cell_len

from ledgercli import past, records
from ledgercli.addresses import step_address
from ledgercli.errors import LedgerCliError
from ledgercli.ledger import Ledger
from ledgercli.reports import tracing as reports
from ledgercli.reports.screen import Screen
from ledgercli.shelf import Shelf
from ledgercli.tracing import state_at, trace
from tests import books, ledgers
from tests.cli.conftest import GOLDEN, PROJECT, UPDATE


@pytest.fixture
def desk(tmp_path, monkeypatch):
    """A run with a denial and its correction, rolled back and given a fact by hand; one with secrets; one in Chinese."""
    monkeypatch.chdir(tmp_path)
    shop = tmp_path / "shop.ledger.jsonl"
    books.carry_out(PROJECT / "fixtures/scenarios/shop-limits.yaml", shop)
    now, then = past.after(shop, Shelf()), past.after(shop, Shelf(), 5).state
    with Ledger.open(shop, sync="none") as ledger:
        ledger.append(now.rolled_back(5, then, by="lei", reason="退错了订单", at=ledgers.AT).line)
        ledger.append(records.resume_line(at=ledgers.AT, sets={"constraints.limit_verified": 300}))
    books.carry_out(GOLDEN / "desk" / "desk.yaml", tmp_path / "desk.ledger.jsonl")
    books.carry_out(PROJECT / "fixtures/scenarios/weather-beijing-zh.yaml", tmp_path / "zh.ledger.jsonl")
    books.carry_out(GOLDEN / "desk" / "hostile.yaml", tmp_path / "hostile.ledger.jsonl")
    return tmp_path


def shown(address, of=None, *, traced=None, verbosity=0, encoding="utf-8"):
    """What the command prints."""
    screen = Screen(stream := io.StringIO(), encoding=encoding, colour=False)
    asked = " ".join(filter(None, (address, of, traced and f"--trace {traced}", verbosity and "-v")))
    file, step = step_address(address)
    try:
        if traced is None:
            reports.write_state(screen, state_at(file, step, of), verbosity)
        else:
            reports.write_trace(screen, trace(file, traced), verbosity)
    except LedgerCliError as error:
        screen.line(f"error: {error.message}")
    return f"# {asked}\n{stream.getvalue()}"


def compare(name, *told):
    file = GOLDEN / f"{name}.txt"
    text = "".join(told)
    if UPDATE:
        file.write_text(text, encoding="utf-8")
    assert text.encode() == file.read_bytes()


def test_the_state_at_a_step(desk):
    compare(
        "at-states",
        shown("shop.ledger.jsonl@0"),
        shown("shop.ledger.jsonl@4", "facts.orders"),
        shown("shop.ledger.jsonl@4", """state.facts.orders["#W5866402"]"""),
        shown("shop.ledger.jsonl@6", """facts.orders['#W5866402'].status"""),
        shown("shop.ledger.jsonl@4", "error"),
        shown("shop.ledger.jsonl@1", """facts.orders["#W5866402"]"""),
        shown("zh.ledger.jsonl@2", "facts"),
        shown("zh.ledger.jsonl@2", verbosity=1),
    )


def test_how_a_value_changed(desk):
    compare(
        "trace-values",
        shown("shop.ledger.jsonl", traced="""facts.orders["#W5866402"].status"""),
        shown("shop.ledger.jsonl", traced="facts.orders"),
        shown("shop.ledger.jsonl", traced="state.error"),
        shown("shop.ledger.jsonl", traced="constraints.limit_verified"),
        shown("shop.ledger.jsonl", traced="facts.returns", verbosity=1),
        shown("zh.ledger.jsonl", traced="facts.weather"),
    )


def test_mistakes(desk):
    compare(
        "at-errors",
        shown("shop.ledger.jsonl@8"),
        shown("shop.ledger.jsonl@3", "facts.ordrs"),
        shown("shop.ledger.jsonl@3", "fact.orders"),
        shown("shop.ledger.jsonl@3", "facts.orders + 1"),
        shown("shop.ledger.jsonl", traced="""facts.orders["#W5866403"].status"""),
        shown("shop.ledger.jsonl", traced="state"),
        shown("shop.ledger.jsnl@3"),
    )


def test_no_secret_is_shown_and_nothing_but_ascii_where_that_is_all_there_is(desk):
    told = shown("desk.ledger.jsonl", traced="facts", verbosity=1) + shown("desk.ledger.jsonl@2", verbosity=1)
    assert "[redacted]" in told
    assert "483920" not in told
    compare(
        "at-hostile",
        shown("hostile.ledger.jsonl", traced="facts"),
        shown("hostile.ledger.jsonl", traced="error"),
        shown("zh.ledger.jsonl@1", "facts.weather", encoding="ascii"),
        shown("zh.ledger.jsonl", traced="facts.location", encoding="ascii"),
    )


def test_only_paths_and_a_value_that_was_asked_for_make_a_line_longer_than_eighty_cells(desk):
    text = "".join(
        (GOLDEN / f"{name}.txt").read_text(encoding="utf-8") for name in ("at-states", "trace-values", "at-hostile")
    )
    cut = [part for part in text.split("\n# ") if " -v" not in part.partition("\n")[0] and "@4 error" not in part]
    assert len(cut) > 12
    assert all(cell_len(line) <= 80 for part in cut for line in part.splitlines())


def test_the_json_is_what_the_ledger_says(desk):
    whole = json.loads(json.dumps(reports.state_json(state_at("shop.ledger.jsonl", 7)), default=dict))
    assert whole["state"] == {**books.replayed(books.lines_of(desk / "shop.ledger.jsonl")[:-2]), "step": 7}
    told = reports.trace_json(trace("shop.ledger.jsonl", "constraints.limit_verified"))
    assert told["changes"] == [
        {"kind": "resume", "step": 7, "path": "state.constraints.limit_verified", "old": 1000, "new": 300}
    ]
