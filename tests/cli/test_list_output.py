"""What `ledger list` shows, byte for byte, and its other forms."""

from __future__ import annotations

import json
import os
import pty
import re
import shutil
import signal
import subprocess
import sys

import pytest

from tests import books, ledgers
from tests.cli.conftest import GOLDEN, PROJECT, environment

RUNS = {
    "shop-return": "0412",
    "shop-limits": "0413",
    "shop-approval": "0414",
    "shop-guest": "0415",
    "weather-area51": "weather-20260801-120107-7xq1",
    "weather-beijing-zh": "weather-20260801-120200-1abc",
}


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """Ledgers as `ledger run` writes them, and one of a run that has not ended."""
    made = tmp_path_factory.mktemp("ledgers")
    scenarios = {PROJECT / f"fixtures/scenarios/{scenario}.yaml": name for scenario, name in RUNS.items()}
    for scenario, name in (scenarios | {GOLDEN / "desk" / "hostile.yaml": "hostile"}).items():
        books.carry_out(scenario, made / f"{name}.ledger.jsonl")
    ledgers.write(made / "begun.ledger.jsonl", ledgers.step(1), ledgers.intent(2, to="北京"))
    return made


@pytest.fixture
def desk(folder, written):
    """A folder with them."""
    return shutil.copytree(written, folder / "ledgers")


def test_runs_and_which(desk, golden):
    golden(
        "list-runs",
        "ledger list ledgers",
        "ledger list ledgers/041*.jsonl --where 'run.denied > 0 || run.status == \"awaiting_approval\"'",
        'ledger list ledgers --where \'step.tool == "create_return" && step.args.order_id == "#W6390527"\'',
        "ledger list ledgers --where '\"limit_before_verification\" in run.rules && run.facts.returns != {}'",
    )


def test_steps_and_which(desk, golden):
    golden(
        "list-steps",
        "ledger list ledgers/041*.jsonl --steps",
        'ledger list ledgers --steps --where \'step.outcome in ["denied", "waiting", "unknown"]\'',
        "ledger list ledgers --steps --where 'run.task == \"北京\" && step.result.data.temp > 20'",
    )


def test_mistakes_and_what_is_not_there(desk, golden):
    (desk / "damaged.ledger.jsonl").write_bytes(
        (desk / "0412.ledger.jsonl").read_bytes().replace(b"delivered", b"DELIVERED")
    )
    (desk.parent / "nothing").mkdir()
    golden(
        "list-errors",
        'ledger list ledgers --where \'run.statsu == "completed" && step.tol == "create_return"\'',
        "ledger list ledgers --where 'run.status == \"complete\"'",
        "ledger list ledgers --where 'action.tool = \"create_return\"'",
        "ledger list ledgers/0412.ledger.jsonl --where 'step.tool == \"create_returns\"'",
        "ledger list ledgers --where 'run.scenario == \"shop-return\"'",
        "ledger list ledgers/damaged.ledger.jsonl",
        "ledger list nothing",
        "ledger list ledgers/0411.ledger.jsonl",
        "ledger list desk.yaml",
        "ledger list",
    )


def test_a_locale_without_unicode_gets_escapes(desk, golden):
    golden("list-ascii", "ledger list ledgers", "ledger list ledgers/h* --steps", env={"LANG": "C"})
    (GOLDEN / "list-ascii.txt").read_bytes().decode("ascii")


def test_nothing_in_a_ledger_can_do_more_than_be_read(desk, ledger):
    for more in ((), ("--steps",)):
        ran = ledger("list", "ledgers/hostile.ledger.jsonl", *more)
        shown = ran.out.decode()
        assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2060-\u206f]", shown)
        assert len(shown.splitlines()) == (shown.count("@") if more else 1)


def test_json_and_json_lines_say_the_same(desk, ledger):
    for more, name in (((), "runs"), (("--steps",), "steps")):
        whole = json.loads(ledger("list", "ledgers", *more, "--format", "json").out)
        lines = [json.loads(line) for line in ledger("list", "ledgers", *more, "--format", "jsonl").out.splitlines()]
        assert whole["schema"] == "list/1"
        assert [{"schema": "list/1", **row} for row in whole[name]] == lines
        assert (whole["ledgers"], whole["damaged"], whole["interrupted"]) == (8, [], False)
    assert len(whole["steps"]) > len(RUNS)


def test_a_report_goes_to_a_new_file(desk, ledger):
    ran = ledger("list", "ledgers", "--where", "run.steps > 4", "--report", "found.txt")
    assert (ran.code, ran.out, ran.err) == (0, b"", b"")
    assert (desk.parent / "found.txt").read_bytes() == ledger("list", "ledgers", "--where", "run.steps > 4").out
    assert ledger("list", "ledgers", "--report", "found.txt").code == 2


def test_how_far_it_is_shows_on_a_terminal_only_and_is_gone_at_the_end(desk, folder):
    ours, theirs = pty.openpty()
    done = subprocess.run(
        [sys.executable, "-m", "ledgercli", "list", "ledgers"],
        cwd=folder, env=environment({"TERM": "xterm"}), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=theirs, timeout=60, check=True,
    )  # fmt: skip
    os.close(theirs)
    shown = os.read(ours, 100_000)
    os.close(ours)
    assert b" of 8 ledgers" in shown
    assert shown.rstrip().endswith(b"\x1b[2K")  # the line is wiped
    assert b"ledgers/0412.ledger.jsonl" in done.stdout
    assert b"\x1b" not in done.stdout


def test_ctrl_c_keeps_what_is_done_and_says_how_far(desk, folder):
    (folder / "many").mkdir()
    for number in range(3000):
        os.link(desk / "0412.ledger.jsonl", folder / "many" / f"{number:04}.ledger.jsonl")
    with subprocess.Popen(
        [sys.executable, "-m", "ledgercli", "list", "many", "--format", "jsonl"],
        cwd=folder, env=environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as running:  # fmt: skip
        assert running.stdout is not None
        first = running.stdout.readline()
        running.send_signal(signal.SIGINT)
        rest, told = running.communicate(timeout=60)
    assert running.returncode == 130
    lines = [json.loads(line) for line in [first, *rest.splitlines()]]
    said = re.fullmatch(rb"interrupted: ([0-9,]+) of 3,000 ledgers were looked at\n", told)
    assert said, told
    assert 0 < len(lines) <= int(said[1].replace(b",", b"")) < 3000
