"""What `ledger run --resume`, `--from`, `ledger approve` and `ledger rollback` show, byte for byte."""

from __future__ import annotations

import shutil

import pytest

from tests.books import scenario
from tests.test_resuming import ACTS, PACK, SCRIPT, TOOLS

W, RUN = "w.ledger.jsonl", "ledger run --resume w.ledger.jsonl"


@pytest.fixture
def shop(folder, ledger):
    """A run that was killed while it paid, one that has ended, and one that waits for an approval."""
    scenario(folder, SCRIPT, TOOLS, PACK)
    (folder / "acts.py").write_text(ACTS)
    assert ledger("run", "s.yaml", "--out", "ended.ledger.jsonl").code == 0
    assert ledger("run", "s.yaml", "--max-steps", "3", "--out", "limit.ledger.jsonl").code == 3
    whole = (folder / "ended.ledger.jsonl").read_bytes().splitlines(keepends=True)
    (folder / W).write_bytes(b"".join(whole[:3]))
    for answer in ("retry", "skip", "done", "fail"):
        shutil.copy(folder / W, folder / f"{answer}.ledger.jsonl")
    assert ledger("run", "desk.yaml", "--out", "desk.ledger.jsonl").code == 1
    shutil.copy(folder / "desk.ledger.jsonl", folder / "no.ledger.jsonl")


@pytest.mark.slow
@pytest.mark.usefixtures("shop")
def test_what_came_of_a_call_that_was_cut_off(golden):
    golden(
        "resume-unknown",
        RUN,
        f"{RUN} --unknown done",
        "ledger run --resume retry.ledger.jsonl --unknown retry",
        "ledger run --resume skip.ledger.jsonl --unknown skip",
        "ledger run --resume done.ledger.jsonl --unknown done --result '{\"id\": 7}'",
        "ledger run --resume fail.ledger.jsonl --unknown fail",
    )


@pytest.mark.usefixtures("shop")
def test_answers_to_a_call_that_waits(golden):
    golden(
        "resume-approve",
        "ledger run --resume desk.ledger.jsonl",
        "ledger approve desk.ledger.jsonl --by mia",
        "ledger approve desk.ledger.jsonl --yes --by mia --reason 'known customer'",
        "ledger approve desk.ledger.jsonl --no --by lei",
        "ledger run --resume desk.ledger.jsonl",
        "ledger approve no.ledger.jsonl --no --by lei",
        "ledger run --resume no.ledger.jsonl --set constraints.max_denials=2",
        "ledger approve ended.ledger.jsonl --yes --by mia",
    )


@pytest.mark.slow
@pytest.mark.usefixtures("shop")
def test_limits_ways_back_and_new_runs(golden):
    golden(
        "resume-rollback",
        "ledger run --resume ended.ledger.jsonl",
        "ledger rollback ended.ledger.jsonl@1",
        "ledger rollback ended.ledger.jsonl@9 --reason r --by mia",
        "ledger rollback ended.ledger.jsonl@1 --reason 'wrong amount' --by mia",
        "ledger run --resume ended.ledger.jsonl",
        "ledger rollback w.ledger.jsonl@0 --reason 'begin again' --by mia",
        "ledger run --resume limit.ledger.jsonl",
        "ledger run --resume limit.ledger.jsonl --max-steps 9 --checkpoint 1",
        "ledger run --from limit.ledger.jsonl@2 --out from.ledger.jsonl",
        "ledger run --from limit.ledger.jsonl --out x.ledger.jsonl",
        "ledger validate from.ledger.jsonl ended.ledger.jsonl",
    )
