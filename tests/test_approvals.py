"""Approvals from the command line: what an answer holds for, when it no longer does, and how each run then ends."""

from __future__ import annotations

import json
import os
import pty
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.books import scenario, write
from tests.commands import LEDGER, ROOT, Run, command_line, typed

TOOLS = """
    toolset: t
    tools:
      look:
        access: read
        args: {}
        run: {canned: [{args: {}, result: {limit: 100}}]}
        on_success: {set: {facts.limit: result.data.limit}}
      pay:
        args: {amount: {type: integer}, pin: {type: string, default: ""}}
        run: {python: "acts.py:pay"}
        on_success: {set: {facts.paid: action.args.amount}}
"""
ACTS = """
def pay(amount, pin):
    with open("paid.txt", "a") as file:
        file.write(f"{amount}\\n")
    return "paid"
"""
PACK = """
    pack: p
    rules:
      - name: large
        tools: [pay]
        check: action.args.amount <= state.facts.limit
        on_fail: {error: Large., effect: require_approval}
"""
SCRIPT = """
    scenario: s
    task: t
    toolset: t.tools.yaml
    packs: [p0.yaml]
    decide:
      script:
        - {when: "!has(state.facts.limit)", propose: {tool: look}}
        - {when: "!has(state.facts.paid) && state.error == null", propose: {tool: pay, args: {amount: 500}}}
        - {propose: {tool: finish, args: {answer: "{has(state.facts.paid)}"}}}
"""


@pytest.fixture
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Run]:
    scenario(tmp_path, SCRIPT, TOOLS, PACK)
    (tmp_path / "acts.py").write_text(ACTS)
    with command_line(tmp_path, monkeypatch, capsys) as run:
        yield run


@pytest.fixture
def waiting(ledger: Run) -> Run:
    assert ledger("run", "s.yaml", "--out", LEDGER) == 3
    assert ledger.err == f"next: ledger approve {LEDGER}@2 --yes --by NAME\n"
    return ledger


WAITS = ["ok 1", "waiting 2", "awaiting_approval"]
APPROVED = [*WAITS, "approval", "awaiting_approval"]


def test_granted_it_runs_once_and_the_run_is_completed(waiting: Run) -> None:
    assert waiting("approve", LEDGER, "--yes", "--by", "mia", "--reason", "known") == 0
    assert waiting.err == f"next: ledger run --resume {LEDGER}\n"
    assert waiting.told == APPROVED
    assert waiting.lines[-2] | {"seq": 0, "at": "", "prev": "", "bound": {}} == {
        "kind": "approval", "seq": 0, "at": "", "step": 2, "answer": "yes", "by": "mia", "reason": "known",
        "bound": {}, "prev": "",
    }  # fmt: skip
    assert waiting.paid == []
    assert waiting("run", "--resume", LEDGER) == 0
    assert waiting.told == [*APPROVED, "resume", "ok 3", "ok 4", "completed"]
    assert (waiting.paid, waiting.lines[-1]["answer"]) == ([500], True)
    [paid] = [line for line in waiting.lines if line.get("step") == 3 and line["kind"] == "step"]
    assert (paid["verdict"]["effect"], paid["verdict"]["approval"]) == ("require_approval", 2)


def test_refused_the_call_is_denied_and_the_run_may_do_something_else(waiting: Run) -> None:
    assert waiting("approve", LEDGER, "--no", "--by", "mia") == 0
    assert waiting("run", "--resume", LEDGER) == 0
    assert waiting.told == [*APPROVED, "resume", "denied 3", "ok 4", "completed"]
    assert waiting.lines[-3]["verdict"]["reason"] == "Approval was refused. Large."
    assert waiting.paid == []


def changed(waiting: Run, *resume: str, told: list[str] | None = None) -> None:
    """With a yes to something else the call waits again, and nothing was paid."""
    assert waiting("approve", LEDGER, "--yes", "--by", "mia") == 0
    assert waiting("run", "--resume", LEDGER, *resume) == 3
    assert waiting.told == [*APPROVED, "resume", "waiting 3", "awaiting_approval"]
    assert waiting.paid == []
    assert waiting("approve", LEDGER, "--yes", "--by", "mia") == 0
    assert waiting("run", "--resume", LEDGER) == 0
    assert len(waiting.paid) == 1


def test_with_other_arguments_the_answer_no_longer_counts(waiting: Run) -> None:
    (waiting.folder / "s.yaml").write_text((waiting.folder / "s.yaml").read_text().replace("500", "501"))
    changed(waiting, "--scenario", "s.yaml")
    assert waiting.paid == [501]


def test_with_another_fact_the_answer_no_longer_counts(waiting: Run) -> None:
    changed(waiting, "--set", "facts.limit=200")


def test_with_another_fact_that_was_not_read_the_answer_counts(waiting: Run) -> None:
    assert waiting("approve", LEDGER, "--yes", "--by", "mia") == 0
    assert waiting("run", "--resume", LEDGER, "--set", "constraints.max_steps=50") == 0
    assert waiting.paid == [500]


def test_with_another_pack_the_answer_no_longer_counts(waiting: Run) -> None:
    write(waiting.folder, new=PACK.replace("Large.", "Very large."))
    changed(waiting, "--pack", "new.yaml")
    files = [file["name"] for line in waiting.lines if line["kind"] == "resume" for file in line["files"]]
    assert files == ["p"]  # and from then on it is the pack of the run


def test_an_answer_is_used_once(waiting: Run) -> None:
    twice = SCRIPT.replace("!has(state.facts.paid)", "count_calls(state.ledger, 'pay') < 2")
    scenario(waiting.folder, twice, TOOLS, PACK)
    (waiting.folder / LEDGER).unlink()
    assert waiting("run", "s.yaml", "--out", LEDGER) == 3
    assert waiting("approve", LEDGER, "--yes", "--by", "mia") == 0
    assert waiting("run", "--resume", LEDGER) == 3
    assert waiting.told == [*APPROVED, "resume", "ok 3", "waiting 4", "awaiting_approval"]
    assert waiting.paid == [500]


def test_after_a_rollback_an_answer_no_longer_counts(waiting: Run) -> None:
    assert waiting("approve", LEDGER, "--yes", "--by", "mia") == 0
    assert waiting("rollback", f"{LEDGER}@1", "--reason", "no", "--by", "mia") == 0
    assert waiting("run", "--resume", LEDGER) == 3
    assert waiting.told == [*APPROVED, "rollback", "interrupted", "resume", "waiting 3", "awaiting_approval"]


def test_with_a_higher_limit_nobody_needs_to_answer(waiting: Run) -> None:
    assert waiting("run", "--resume", LEDGER, "--set", "facts.limit=1000") == 0
    assert waiting.told == [*WAITS, "resume", "ok 3", "ok 4", "completed"]
    assert waiting.paid == [500]


def test_a_run_that_nobody_has_answered_stays_as_it_is(waiting: Run) -> None:
    before = (waiting.folder / LEDGER).read_bytes()
    assert waiting("run", "--resume", LEDGER) == 3
    assert waiting.err == (
        f"error: {LEDGER}@2 waits for an approval: Large.\n  fix: ledger approve {LEDGER} --yes --by NAME (or --no)\n"
    )
    assert (waiting.folder / LEDGER).read_bytes() == before


@pytest.mark.parametrize(("answer", "code", "outcome"), [("yes", 0, "ok 3"), ("no", 0, "denied 3")])
def test_it_can_be_answered_as_the_run_goes_on(waiting: Run, answer: str, code: int, outcome: str) -> None:
    assert waiting("run", "--resume", LEDGER, "--approve", answer) == code
    assert waiting.told == [*WAITS, "resume", "approval", outcome, "ok 4", "completed"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((LEDGER, "--by", "mia"), "say --yes or --no"),
        ((LEDGER, "--yes", "--by", " "), "somebody has to answer for it"),
        ((f"{LEDGER}@1", "--yes", "--by", "mia"), f"{LEDGER}@1 does not wait for an approval; @2 does"),
        ((f"{LEDGER}@9", "--yes", "--by", "mia"), f"{LEDGER} has 2 steps, 1 to 2"),
        (("no.jsonl", "--yes", "--by", "mia"), "there is no file no.jsonl"),
    ],
)
def test_what_cannot_be_answered_is_said_and_nothing_is_written(
    waiting: Run, arguments: tuple[str, ...], said: str
) -> None:
    before = (waiting.folder / LEDGER).read_bytes()
    assert waiting("approve", *arguments) == 2
    assert said in waiting.err
    assert (waiting.folder / LEDGER).read_bytes() == before


def test_it_is_answered_once(waiting: Run) -> None:
    assert waiting("approve", LEDGER, "--yes", "--by", "mia") == 0
    assert waiting("approve", LEDGER, "--no", "--by", "lei") == 2
    assert f"{LEDGER}@2 was answered already: yes, by mia" in waiting.err
    assert waiting.told == APPROVED


def test_who_answers_is_who_is_logged_in_unless_somebody_is_named(
    waiting: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("getpass.getuser", lambda: "lei")
    assert waiting("approve", LEDGER, "--yes", "--format", "json") == 0
    said = json.loads(waiting.out)
    assert (said["schema"], said["by"], said["step"], said["answer"]) == ("approve/1", "lei", 2, "yes")
    assert said["head"] == waiting.lines[-1]["prev"] or said["head"].startswith("sha256:")


def test_a_run_that_is_at_work_cannot_be_answered(waiting: Run) -> None:
    from ledgercli.ledger.holding import Hold

    with Hold(LEDGER):
        assert waiting("approve", LEDGER, "--yes", "--by", "mia") == 2
    assert waiting.err.startswith(f"error: {LEDGER} is being written by another run\n")


# ---- secrets

SECRET = TOOLS.replace("toolset: t\n", "toolset: t\n    redact: [pay.args.pin]\n")


@pytest.mark.parametrize(("key", "told", "code"), [("k", ["ok 3", "ok 4", "completed"], 0), ("", ["waiting 3", "awaiting_approval"], 3)])  # fmt: skip
def test_an_answer_to_a_call_with_a_secret_holds_under_the_same_key(
    ledger: Run, monkeypatch: pytest.MonkeyPatch, key: str, told: list[str], code: int
) -> None:
    script = SCRIPT.replace("amount: 500", "amount: 500, pin: s3cret")
    scenario(ledger.folder, script, SECRET, PACK)
    monkeypatch.setenv("LEDGER_REDACT_KEY", key)
    assert ledger("run", "s.yaml", "--out", LEDGER) == 3
    assert ledger("approve", LEDGER, "--yes", "--by", "mia") == 0
    assert "s3cret" not in ledger.out
    assert ledger("run", "--resume", LEDGER) == code
    assert ledger.told == [*APPROVED, "resume", *told]
    steps = b"".join(line for line in (ledger.folder / LEDGER).read_bytes().splitlines()[1:])
    assert b"s3cret" not in steps


# ---- elsewhere


def test_a_run_that_was_moved_to_another_machine_goes_on_there(
    waiting: Run, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    there = tmp_path_factory.mktemp("there") / "moved"
    shutil.copytree(waiting.folder, there)
    monkeypatch.chdir(there)
    assert waiting("approve", LEDGER, "--yes", "--by", "mia") == 0
    assert waiting("run", "--resume", LEDGER) == 0
    moved = Run(there, waiting.capsys)
    assert (moved.told[-1], moved.paid, waiting.told) == ("completed", [500], WAITS)


def test_a_run_that_goes_on_from_another_folder_says_what_it_misses(
    waiting: Run, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    monkeypatch.chdir(elsewhere)
    ledger, file = str(waiting.folder / LEDGER), str(waiting.folder / "s.yaml")
    before = (waiting.folder / LEDGER).read_bytes()
    assert waiting("approve", ledger, "--yes", "--by", "mia") == 0
    approved = (waiting.folder / LEDGER).read_bytes()
    assert approved.startswith(before)
    assert waiting("run", "--resume", ledger) == 2
    assert "error: there is no file acts.py here, which pay runs\n" in waiting.err
    assert "--scenario FILE" in waiting.err
    assert (waiting.folder / LEDGER).read_bytes() == approved
    assert waiting("run", "--resume", ledger, "--scenario", file) == 0
    assert waiting.told[-1] == "completed"  # an answer holds for rules, not for where their file is
    assert (elsewhere / "paid.txt").read_text() == "500\n"


# ---- at the terminal


@pytest.mark.parametrize(("says", "outcome"), [("y\n", "ok 3"), ("n\n", "denied 3")])
def test_answered_at_the_terminal_while_it_runs(ledger: Run, says: str, outcome: str) -> None:
    code, seen = typed(ledger.folder, "run", "s.yaml", "--out", LEDGER, says=says, wants=lambda seen: b"[y/N]" in seen)
    assert code == 0, seen
    assert b"Large. Let pay(amount=500) run?" in seen
    assert ledger.told == ["ok 1", "waiting 2", "approval", outcome, "ok 4", "completed"]


def test_answered_at_the_terminal_as_it_goes_on(waiting: Run) -> None:
    code, seen = typed(waiting.folder, "run", "--resume", LEDGER, says="y\n", wants=lambda seen: b"[y/N]" in seen)
    assert code == 0, seen
    assert waiting.told == [*WAITS, "resume", "approval", "ok 3", "ok 4", "completed"]
    assert waiting.paid == [500]


def test_a_question_that_is_not_answered_leaves_the_run_waiting(waiting: Run) -> None:
    before = (waiting.folder / LEDGER).read_bytes()
    code, _ = typed(waiting.folder, "run", "--resume", LEDGER, says="\x03", wants=lambda seen: b"[y/N]" in seen)
    assert code == 130
    assert (waiting.folder / LEDGER).read_bytes() == before


def test_a_run_killed_at_the_question_can_be_answered_afterwards(ledger: Run) -> None:
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(ledger.folder)
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        os.execve(sys.executable, [sys.executable, "-m", "ledgercli", "run", "s.yaml", "--out", LEDGER], environment)
    seen = b""
    while b"[y/N]" not in seen:
        seen += os.read(terminal, 4096)
    assert subprocess.run(["kill", "-9", str(child)], check=True).returncode == 0
    os.waitpid(child, 0)
    os.close(terminal)
    assert ledger("approve", LEDGER, "--yes", "--by", "mia") == 0
    assert ledger("run", "--resume", LEDGER) == 0
    assert ledger.told == ["ok 1", "waiting 2", "approval", "awaiting_approval", "resume", "ok 3", "ok 4", "completed"]
