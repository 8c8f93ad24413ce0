"""What `ledger summarize` shows, byte for byte, and its other forms."""

from __future__ import annotations

import json
import re
import shutil
from typing import Any

import pytest

from ledgercli.records import Proposal, Verdict, intent_line
from tests import books, stories
from tests.cli.conftest import GOLDEN, PROJECT
from tests.ledgers import AT
from tests.stories import call

PROMPT = "sha256:" + "0" * 64


def asked(prompt: int | None, completion: int | None, cost: float | None, **more: Any) -> dict[str, Any]:
    tokens = {"prompt": prompt, "completion": completion}
    return {"model": "openai/gpt-4o", "tokens": tokens, "cost": cost, "seconds": 1.5, "prompt": PROMPT, **more}


def rows() -> list[dict[str, Any]]:
    begun = intent_line(step=3, at=AT, now=AT, action=Proposal("refund", {"order_id": "#W1"}), verdict=Verdict("allow"))
    return [
        {**call("login", error="wrong code", user="mia"), "engine": asked(900, 20, 0.0012)},
        call("login", {"id": "mia"}, sets={"facts.user.name": "Mia"}, user="mia", code={"redacted": "hmac-sha256:00"}),
        call("refund", rule="refund_over_500", effect="require_approval", order_id="#W1", amount=700),
        call("refund", rule="refund_of_own_order", order_id="#W2"),
        {**begun, "engine": asked(1_000, None, None, faults=[{"kind": "prose", "said": "Sure"}])},
        call("look", {"total": 74.5}, sets={'facts.orders["#W1"]': {"total": 74.5, "of": "mia"}}, id="#W1"),
        call(
            "note",
            rule="mind",
            effect="warn",
            text="客户已退货，请在十四天内检查并且确认退款金额是否正确，然后通知客户。",
        ),
        call("list", [1], sets={f'facts.orders["#X{number}"]': {"n": number} for number in range(9)}),
        call("charge", outcome="unknown"),
    ]


@pytest.fixture
def ledger(inside):
    """Within this process."""
    return inside


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    made = tmp_path_factory.mktemp("ledgers")
    told = rows()
    told[4]["step"] = 5
    stories.write(made / "mixed.ledger.jsonl", told, answer="Two orders were looked at.\nNothing was paid.")
    for name in ("shop-transfer", "weather-area51", "shop-zh"):
        books.carry_out(PROJECT / f"fixtures/scenarios/{name}.yaml", made / f"{name}.ledger.jsonl")
    books.carry_out(GOLDEN / "desk" / "hostile.yaml", made / "hostile.ledger.jsonl")
    return made


@pytest.fixture
def desk(folder, written):
    """A folder with these ledgers."""
    return shutil.copytree(written, folder / "ledgers")


def test_one_run_for_people(desk, golden):
    golden(
        "summarize-one",
        "ledger summarize ledgers/mixed.ledger.jsonl",
        "ledger summarize ledgers/shop-transfer.ledger.jsonl@3",
        "ledger summarize ledgers/weather-area51.ledger.jsonl",
    )


def test_many_runs(desk, golden):
    golden("summarize-many", "ledger summarize ledgers", "ledger summarize ledgers/*.jsonl --format markdown")


def test_for_a_model(desk, golden):
    golden(
        "summarize-model",
        "ledger summarize ledgers/shop-transfer.ledger.jsonl@3 --for model",
        "ledger summarize ledgers/shop-zh.ledger.jsonl --for model --budget 200 --select all",
    )


def test_markdown_and_hostile_text(desk, golden):
    golden(
        "summarize-markdown",
        "ledger summarize ledgers/mixed.ledger.jsonl --format markdown",
        "ledger summarize ledgers/hostile.ledger.jsonl@1 --format markdown",
        "ledger summarize ledgers/hostile.ledger.jsonl@1 --for model --format markdown",
    )


def test_nothing_in_a_ledger_can_do_more_than_be_read(desk, ledger):
    for more in ((), ("--for", "model")):
        shown = ledger("summarize", "ledgers/hostile.ledger.jsonl", *more).out.decode()
        assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2060-\u206f]", shown)


def test_mistakes(desk, golden):
    whole = (desk / "mixed.ledger.jsonl").read_bytes()
    (desk / "damaged.ledger.jsonl").write_bytes(whole.replace(b"wrong code", b"wrong cod3"))
    (desk / "open.ledger.jsonl").write_bytes(b"".join(whole.splitlines(keepends=True)[:3]))
    golden(
        "summarize-errors",
        "ledger summarize",
        "ledger summarize nothing",
        "ledger summarize ledgers/damaged.ledger.jsonl",
        "ledger summarize ledgers/damaged.ledger.jsonl ledgers/open.ledger.jsonl",
        "ledger summarize ledgers/open.ledger.jsonl",
        "ledger summarize ledgers/mixed.ledger.jsonl@99",
        "ledger summarize ledgers/mixed.ledger.jsonl@1 ledgers/open.ledger.jsonl",
        "ledger summarize ledgers --for model",
        "ledger summarize ledgers --budget 500",
        "ledger summarize ledgers/mixed.ledger.jsonl --for model --budget 5",
    )


def test_the_json_forms(desk, ledger):
    one = json.loads(ledger("summarize", "ledgers/mixed.ledger.jsonl", "--format", "json").out)
    assert (one["schema"], one["status"], one["steps"]) == ("summary/1", "completed", 8)
    assert one["calls"]["login"] == {"error": 1, "ok": 1}
    assert one["asked"]["openai/gpt-4o"] == {"tokens": None, "cost": None, "seconds": 3.0, "faults": 1}
    assert {"path": "state.facts.user.name", "value": "Mia", "by": "login", "step": 2} in one["facts"]
    assert [step["outcome"] for step in one["timeline"]][:4] == ["error", "ok", "waiting", "denied"]
    many = json.loads(ledger("summarize", "ledgers", "--format", "json").out)
    assert (many["schema"], len(many["runs"]), many["damaged"]) == ("summary/1", 5, [])
    view = json.loads(
        ledger("summarize", "ledgers/shop-transfer.ledger.jsonl@3", "--for", "model", "--format", "json").out
    )
    assert view["schema"] == "view/1"
    assert view["parts"]["state"]["text"] in view["text"]
    assert view["tokens"] <= 3_000
