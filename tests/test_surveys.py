"""Many ledgers judged again: what is damaged is named, processes change nothing, and Ctrl-C keeps what is done."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ledgercli.cli import main
from ledgercli.guard import Guard
from ledgercli.replay.surveys import Survey, Unread, Verified, replays, what_ifs
from tests import books
from tests.cli.conftest import environment
from tests.test_whatif import PAYS, THEN, TOOLS

RUNS = 20
STRICTER = THEN.replace("most: 100", "most: 60").replace("version: 1", "version: 2")


@pytest.fixture(scope="module")
def recorded(tmp_path_factory) -> Path:
    """Twenty runs at one desk; every fourth asks for too much in the end."""
    folder = tmp_path_factory.mktemp("recorded")
    rules = books.book(folder, THEN, tools=TOOLS)
    (folder / "now.yaml").write_text(books.dedent(STRICTER).lstrip())
    (folder / "ledgers").mkdir()
    for number in range(RUNS):
        file = folder / "ledgers" / f"{number:04}.ledger.jsonl"
        state = {"task": f"Pay {number}."}
        with Guard(rulebook=rules, ledger=file, state=state, clock=lambda: books.NOW, sync="none") as guard:
            for tool, args in PAYS[: 4 if number % 4 == 0 else 3]:
                verdict = guard.check(tool, args)
                if verdict.runs:
                    guard.record(verdict, None)
    return folder


@pytest.fixture
def desk(recorded: Path, tmp_path: Path) -> Path:
    """A copy to damage."""
    return shutil.copytree(recorded, tmp_path / "desk")


def ledgers(folder: Path) -> list[str]:
    return [str(path) for path in sorted((folder / "ledgers").iterdir())]


def damage(folder: Path) -> list[str]:
    """Damage three in different ways: a changed byte, a lost line, a line that is no JSON. Return their names."""
    one, other, third = (Path(ledgers(folder)[number]) for number in (1, 8, 13))
    one.write_bytes(one.read_bytes().replace(b'"amount":50', b'"amount":51', 1))
    lines = other.read_bytes().splitlines(keepends=True)
    other.write_bytes(b"".join(lines[:1] + lines[2:]))
    third.write_bytes(third.read_bytes().replace(b'"kind":"step"', b'"kind":"step', 1))
    return [str(path) for path in (one, other, third)]


def test_the_damaged_ones_are_named_and_the_others_judged(desk: Path) -> None:
    damaged = damage(desk)
    verified = Verified()
    for one in replays(ledgers(desk)):
        verified.add(one)
    assert [one.path for one in verified.unread] == damaged
    assert (verified.ledgers, verified.diverged) == (RUNS - 3, [])
    survey = Survey()
    for other in what_ifs(ledgers(desk), [str(desk / "now.yaml")]):
        survey.add(other)
    assert [one.path for one in survey.unread] == damaged
    assert survey.ledgers == RUNS - 3
    assert survey.changed["newly-denied"] == (4, 4)  # 0, 4, 12, 16: one of the damaged ones would have been another
    assert (survey.unchanged, survey.departed, survey.certain, survey.later) == (RUNS - 3 - 4, 4, 4, 0)


def test_the_command_says_so_and_exits_with_2(desk: Path, monkeypatch, capsys) -> None:
    damage(desk)
    monkeypatch.chdir(desk)
    assert main(["replay", "ledgers"]) == 2
    out, err = capsys.readouterr()
    assert "same: 17 ledgers" in out
    assert "not judged: 3 ledgers" in out
    assert all(f"ledgers/{number}.ledger.jsonl" in out for number in ("0001", "0008", "0013"))
    assert "3 ledgers left out" in err
    assert main(["replay", "ledgers", "--pack", "now.yaml", "--fail-on", "newly-denied", "--format", "json"]) == 2
    told = json.loads(capsys.readouterr().out)
    assert (told["ledgers"], len(told["unread"]), told["failed"]) == (17, 3, ["newly-denied"])


@pytest.mark.parametrize("form", ["text", "json", "jsonl", "markdown", "junit", "github"])
def test_two_processes_say_the_same_bytes_as_one(desk: Path, monkeypatch, capfdbinary, form: str) -> None:
    damage(desk)
    monkeypatch.chdir(desk)
    for asked in ((), ("--pack", "now.yaml", "--list")):
        told = []
        for jobs in ("1", "2", "5"):
            assert main(["replay", "ledgers", *asked, "--format", form, "--jobs", jobs]) == 2
            told.append(capfdbinary.readouterr())
        assert told[0] == told[1] == told[2]
        assert b"0013.ledger.jsonl" in told[0].out + told[0].err


@pytest.mark.parametrize("jobs", ["1", pytest.param("2", marks=pytest.mark.slow)])
def test_ctrl_c_keeps_what_is_done_and_says_how_far(desk: Path, tmp_path: Path, jobs: str) -> None:
    (tmp_path / "many").mkdir()
    for number in range(4000):
        os.link(ledgers(desk)[number % 4 * 4], tmp_path / "many" / f"{number:04}.ledger.jsonl")
    asked = ("replay", "many", "--pack", "desk/now.yaml", "--format", "jsonl", "--jobs", jobs)
    with subprocess.Popen(
        [sys.executable, "-m", "ledgercli", *asked],
        cwd=tmp_path, env=environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        start_new_session=True, bufsize=0,
    ) as running:  # fmt: skip
        assert running.stdout is not None
        first = running.stdout.readline()
        os.killpg(running.pid, signal.SIGINT)  # as a terminal does: to all of its processes
        rest, told = running.communicate(timeout=60)
    assert running.returncode == 130, told
    lines = [json.loads(line) for line in [first, *rest.splitlines()]]
    said = re.search(rb"^interrupted after ([0-9,]+) of 4,000 ledgers$", told, re.MULTILINE)
    assert said, told
    done = int(said[1].replace(b",", b""))
    assert 0 < done < 4000
    assert len({line["ledger"] for line in lines}) == done  # each of them has a change
    assert b"Traceback" not in told


@pytest.mark.slow
def test_a_report_that_was_interrupted_is_whole_and_says_so(desk: Path, tmp_path: Path) -> None:
    """A text report is written at the end: of what was done."""
    (tmp_path / "many").mkdir()
    for number in range(3000):
        os.link(ledgers(desk)[0], tmp_path / "many" / f"{number:04}.ledger.jsonl")
    with subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED, "replay", "many", "--format", "json"],
        cwd=tmp_path, env=environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as running:  # fmt: skip
        out, err = running.communicate(timeout=60)
    assert running.returncode == 130, err
    told = json.loads(out)
    assert (told["interrupted"], told["exit_code"], told["of"]) == (True, 130, 3000)
    assert 0 < told["ledgers"] < 3000
    assert f"interrupted after {told['ledgers']:,} of 3,000 ledgers".encode() in err


#: The command line, which gets a real SIGINT soon after it has judged the first ledger.
INTERRUPTED = """
import os, signal, sys, threading
from ledgercli.replay import surveys
from ledgercli.__main__ import main
begin = surveys.replays
def replays(*given):
    results = begin(*given)
    yield next(results)
    threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
    yield from results
surveys.replays = replays
sys.exit(main())
"""


def test_a_ledger_that_cannot_be_judged_is_a_result_of_its_own(desk: Path) -> None:
    [found] = replays([str(desk / "now.yaml")])
    assert isinstance(found, Unread)
    assert found.message
