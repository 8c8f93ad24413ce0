"""What `ledger why` shows, byte for byte, and its other forms."""

from __future__ import annotations

import json
import re
import shutil

import pytest

from tests import books
from tests.cli.conftest import GOLDEN, PROJECT

RUNS = ("shop-limits", "shop-transfer", "shop-balance", "shop-approval", "shop-zh", "weather-area51")


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """Ledgers as `ledger run` writes them."""
    made = tmp_path_factory.mktemp("ledgers")
    for name in RUNS:
        books.carry_out(PROJECT / f"fixtures/scenarios/{name}.yaml", made / f"{name}.ledger.jsonl")
    books.carry_out(PROJECT / "fixtures/scenarios/airline-recording.yaml", made / "airline")
    books.carry_out(GOLDEN / "desk" / "hostile.yaml", made / "hostile.ledger.jsonl")
    return made


@pytest.fixture
def desk(folder, written):
    """A folder with them."""
    return shutil.copytree(written, folder / "ledgers")


def test_refusals_and_what_would_have_passed(desk, golden):
    golden(
        "why-denied",
        "ledger why ledgers/shop-transfer.ledger.jsonl@3",
        "ledger why ledgers/shop-balance.ledger.jsonl@1",
        "ledger why ledgers/shop-approval.ledger.jsonl@5",
        "ledger why ledgers/airline/ana.ledger.jsonl@4",
        "ledger why ledgers/weather-area51.ledger.jsonl@1 -v",
    )


def test_why_a_call_ran(desk, golden):
    golden("why-allowed", "ledger why ledgers/shop-limits.ledger.jsonl@6", "ledger why ledgers/shop-zh.ledger.jsonl@7")


@pytest.mark.slow
def test_other_packs_judge_anew(desk, golden):
    (desk.parent / "strict.yaml").write_text(
        "pack: strict\nrules: [{name: no_returns, tools: [create_return], check: 'false'}]\n"
    )
    golden(
        "why-packs",
        "ledger why ledgers/shop-limits.ledger.jsonl@6 --pack strict.yaml --only-packs",
        "ledger why ledgers/shop-limits.ledger.jsonl@6 --only-packs",
        "ledger why ledgers/shop-limits.ledger.jsonl@6 --pack nosuch.yaml",
    )


def test_markdown(desk, golden):
    golden(
        "why-markdown",
        "ledger why ledgers/shop-transfer.ledger.jsonl@3 --format markdown",
        "ledger why ledgers/hostile.ledger.jsonl@2 --format markdown",
    )


@pytest.mark.slow
def test_mistakes_and_what_is_not_there(desk, golden):
    whole = (desk / "shop-limits.ledger.jsonl").read_bytes()
    (desk / "damaged.ledger.jsonl").write_bytes(whole.replace(b"Coffee machine", b"Toffee machine"))
    golden(
        "why-errors",
        "ledger why ledgers/shop-limits.ledger.jsonl",
        "ledger why ledgers/shop-limits.ledger.jsonl@0",
        "ledger why ledgers/shop-limits.ledger.jsonl@8",
        "ledger why ledgers/airline/ana.ledger.jsonl@3",
        "ledger why ledgers/nosuch.ledger.jsonl@1",
        "ledger why ledgers/damaged.ledger.jsonl@4",
        "ledger why desk.yaml@1",
    )


@pytest.mark.slow
def test_hostile_text_can_only_be_read(desk, golden, ledger):
    golden("why-hostile", "ledger why ledgers/hostile.ledger.jsonl@2", "ledger why ledgers/hostile.ledger.jsonl@1 -v")
    for more in ((), ("-v",), ("--format", "markdown")):
        shown = ledger("why", "ledgers/hostile.ledger.jsonl@2", *more).out.decode()
        assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2060-\u206f]", shown)


def test_a_locale_without_unicode_gets_escapes(desk, ledger):
    ran = ledger("why", "ledgers/shop-zh.ledger.jsonl@7", env={"LANG": "C"})
    assert (ran.code, ran.err) == (0, b"")
    assert b"\\u91d1" in ran.out
    ran.out.decode("ascii")


def test_json_says_the_same(desk, ledger):
    said = json.loads(ledger("why", "ledgers/shop-transfer.ledger.jsonl@3", "--format", "json").out)
    assert (said["schema"], said["step"], said["recorded"]) == ("why/1", 3, "deny")
    failed = {rule["rule"]: rule["place"] for rule in said["rules"] if rule["says"] == "fail"}
    assert failed == {
        "support/account_verified_by_tool": "policies/support.yaml:93",
        "support/payee_known_from_tool": "policies/support.yaml:102",
    }
    [[change]] = said["would_pass"]["ways"]
    assert (change["name"], change["value"]) == ("action.args.account", "A-71")
    assert [one["from"]["kind"] for one in said["arguments"]] == ["task", "task"]


def test_a_run_is_explained_where_the_code_of_its_tools_is_not(desk, ledger):
    (desk.parent / "fixtures").unlink()
    assert ledger("why", "ledgers/shop-limits.ledger.jsonl@4").code == 0
