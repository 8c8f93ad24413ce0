"""A run that is killed at every point at which it writes, and goes on: nothing is lost, nothing is done twice.

A child process runs `ledger run`; its `os.write` kills it before, in the middle of or after the n-th line of the ledger,
its tools before or after their effect. The tools append to a file of their own and sync it: the witness, from which the
test answers `--unknown`.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from ledgercli import story
from ledgercli.cli import main
from ledgercli.replay.verifying import replay
from ledgercli.shelf import Shelf
from tests.books import kept, plain, scenario

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

TOOLS = """
    toolset: t
    tools:
      look:
        access: read
        args: {id: {type: string}}
        run: {python: "acts.py:look"}
        on_success: {set: {'facts.orders[action.args.id]': result.data}}
      pay:
        args: {id: {type: string}, amount: {type: integer}}
        run: {python: "acts.py:pay"}
        on_success:
          set: {'facts.paid[action.args.id]': result.data.receipt, facts.last: action.args.id}
        on_failure:
          set: {flags.payment_failed: true}
"""
ACTS = """
import json, os
from tests.slow.test_resume_crash import die

WITNESS = "witness.jsonl"

def look(id):
    die("before", "look")
    return {"price": len(id)}

def pay(id, amount):
    die("before", "pay")
    told = {"success": False, "error": "no money"} if amount == 13 else {"receipt": f"R-{id}-{amount}"}
    with open(WITNESS, "a") as file:
        file.write(json.dumps({"id": id, "told": told}) + "\\n")
        file.flush()
        os.fsync(file.fileno())
    die("after", "pay")
    return told
"""
PACK = """
    pack: p
    rules:
      - {name: seen, tools: [pay], check: action.args.id in state.facts.orders, on_fail: Look at it first.}
      - {name: few, tools: [pay], check: 'count_calls(state.ledger, "pay") < 4', on_fail: Enough.}
      - name: large
        tools: [pay]
        check: action.args.amount < 100
        on_fail: {error: Large., effect: require_approval}
"""
SCRIPT = """
    scenario: s
    task: t
    toolset: t.tools.yaml
    packs: [p0.yaml]
    constraints: {max_denials: 2}
    decide:
      script:
        - {when: "!('a' in state.facts.orders)", propose: {tool: look, args: {id: a}}}
        - {when: "!('a' in state.facts.paid)", propose: {tool: pay, args: {id: a, amount: 5}}}
        - {when: "!('bb' in state.facts.orders) && state.error == null", propose: {tool: pay, args: {id: bb, amount: 7}}}
        - {when: "!('bb' in state.facts.orders)", propose: {tool: look, args: {id: bb}}}
        - {when: "!('bb' in state.facts.paid)", propose: {tool: pay, args: {id: bb, amount: 500}}}
        - {when: "!state.flags.payment_failed", propose: {tool: pay, args: {id: a, amount: 13}}}
        - {propose: {tool: finish, args: {answer: "{state.facts.last}"}}}
"""
MODES = ("before", "torn", "whole", "synced")


class Kill(NamedTuple):
    """Where a child dies: at its n-th `what`, in this mode."""

    what: str  # `line`, or the name of a tool
    number: int
    mode: str


_KILL: list[Kill | None] = [None]
_COUNTS: dict[tuple[str, str], int] = {}


def die(mode: str, what: str) -> None:
    """Die here if it is the place; each mode is counted by itself."""
    _COUNTS[mode, what] = _COUNTS.get((mode, what), 0) + 1
    if _KILL[0] == Kill(what, _COUNTS[mode, what], mode):
        os.kill(os.getpid(), signal.SIGKILL)


def patched() -> None:
    """Let the next lines of a ledger kill this process."""
    write, sync = os.write, os.fdatasync

    def deadly(fd: int, data: bytes) -> int:
        if not bytes(data).startswith(b'{"kind":'):
            return write(fd, data)
        die("before", "line")
        if _KILL[0] == Kill("line", _COUNTS.get(("torn", "line"), 0) + 1, "torn"):
            write(fd, data[: len(data) // 2])
        die("torn", "line")
        written = write(fd, data)
        die("whole", "line")
        return written

    def synced(fd: int) -> None:
        sync(fd)
        die("synced", "line")

    os.write, os.fdatasync = deadly, synced  # type: ignore[assignment]


def run(folder: Path, kill: Kill | None, *arguments: str) -> int | None:
    """Run `ledger run` in a child; its exit code, None if it was killed."""
    child = os.fork()
    if child == 0:
        code = 99
        try:
            os.chdir(folder)
            quiet = os.open("talk.txt", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            os.dup2(quiet, 1)
            os.dup2(quiet, 2)
            sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w")  # noqa: SIM115
            _KILL[0] = kill
            _COUNTS.clear()
            patched()
            code = main(["run", *arguments])
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    return None if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


LEDGER = "run.ledger.jsonl"
BEGIN = ("s.yaml", "--out", LEDGER, "--approve", "yes", "--now", "2026-08-01T12:00:00Z")
GO_ON = ("--resume", LEDGER, "--approve", "yes", "--now", "2026-08-01T12:00:00Z")


def witness(folder: Path) -> list[dict[str, Any]]:
    file = folder / "witness.jsonl"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def went_on(folder: Path, kill: Kill | None) -> int | None:
    """Go on with the run as somebody would who looks at the witness."""
    path = folder / LEDGER
    if not path.exists() or b"\n" not in path.read_bytes():
        path.unlink(missing_ok=True)  # nothing was ever recorded
        return run(folder, kill, *BEGIN)
    return run(folder, kill, *GO_ON, *told(folder, path))


def told(folder: Path, path: Path) -> Sequence[str]:
    """What came of the call that has no outcome: what the witness saw of it behind those that have one."""
    open_call: dict[str, Any] | None = None
    settled = 0
    for entry, _ in story.follow(path):
        record = entry.record
        if record["kind"] == "intent":
            open_call = record["action"]
        elif record["kind"] == "step" and record["action"]["tool"] == "pay":
            settled += record["outcome"] in ("ok", "error")
            open_call = None if open_call == record["action"] else open_call
    if open_call is None:
        return ()
    seen = witness(folder)[settled:]
    if not seen:
        return ("--unknown", "retry")
    assert [one["id"] for one in seen] == [open_call["args"]["id"]]
    return ("--unknown", "done", "--result", json.dumps(seen[0]["told"]))


def steps(lines: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """What was done and refused, in order; a call that is cut off or waits comes again."""
    return [
        (line["action"]["tool"], tuple(sorted(line["action"]["args"].items())), line["outcome"])
        for line in lines
        if line["kind"] == "step" and line["outcome"] not in ("cancelled", "waiting")
    ]


class Unbroken(NamedTuple):
    steps: list[tuple[Any, ...]]
    state: dict[str, Any]
    effects: list[dict[str, Any]]
    lines: int


def made(folder: Path) -> Path:
    folder.mkdir()
    scenario(folder, SCRIPT, TOOLS, PACK)
    (folder / "acts.py").write_text(ACTS)
    return folder


def final(folder: Path) -> dict[str, Any]:
    tree = plain(story.ended(folder / LEDGER).tree)
    del tree["step"]
    return tree


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory: pytest.TempPathFactory) -> Unbroken:
    folder = made(tmp_path_factory.mktemp("unbroken") / "x")
    assert run(folder, None, *BEGIN) == 0, (folder / "talk.txt").read_text()
    lines = kept(folder / LEDGER)
    found = Unbroken(steps(lines), final(folder), witness(folder), len(lines))
    assert [outcome for *_, outcome in found.steps] == ["ok", "ok", "denied", "ok", "ok", "error", "ok"]
    assert [one["id"] for one in found.effects] == ["a", "bb", "a"]
    assert "waiting" in {line.get("outcome") for line in lines}
    assert found.state["final_answer"] == "bb"
    return found


def points(lines: int) -> Iterator[Kill]:
    """Every point at which a run may die."""
    for number in range(1, lines + 1):
        for mode in MODES:
            yield Kill("line", number, mode)
    yield from (Kill("look", number, "before") for number in (1, 2))
    yield from (Kill("pay", number, mode) for number in (1, 2, 3) for mode in ("before", "after"))


def held(folder: Path, unbroken: Unbroken, where: object) -> None:
    lines = kept(folder / LEDGER)
    assert (lines[-1]["kind"], lines[-1]["status"]) == ("close", "completed"), where
    assert steps(lines) == unbroken.steps, where
    assert witness(folder) == unbroken.effects, where
    assert final(folder) == unbroken.state, where
    with contextlib.chdir(folder):  # its tools are found from there
        assert replay(LEDGER, Shelf()).divergence is None, where


def ended(folder: Path) -> bool:
    """Whether there is nothing to go on with: the last line was written, whatever became of its writer."""
    path = folder / LEDGER
    data = path.read_bytes() if path.exists() else b""
    return data.endswith(b"\n") and data.splitlines()[-1].startswith(b'{"kind":"close"')


def before(folder: Path) -> bytes:
    """The lines that stand."""
    path = folder / LEDGER
    data = path.read_bytes() if path.exists() else b""
    return data[: data.rfind(b"\n") + 1]


def test_a_run_that_is_killed_once_anywhere_goes_on_to_the_same_end(tmp_path: Path, unbroken: Unbroken) -> None:
    for number, kill in enumerate(points(unbroken.lines)):
        folder = made(tmp_path / str(number))
        assert run(folder, kill, *BEGIN) is None, kill
        stood = before(folder)
        if not ended(folder):
            assert went_on(folder, None) == 0, (kill, (folder / "talk.txt").read_text())
        assert (folder / LEDGER).read_bytes().startswith(stood)
        held(folder, unbroken, kill)


def test_a_run_that_is_killed_again_while_it_goes_on_comes_to_the_same_end(tmp_path: Path, unbroken: Unbroken) -> None:
    """The second kill is at every line that going on writes, the third wherever the second left it."""
    tried = 0
    for first in points(unbroken.lines):
        if first.mode in ("before", "synced") and first.what == "line":
            continue  # as the line before whole, and as the line whole
        number = 0
        killed = True
        while killed:
            number += 1
            for mode in ("torn", "whole"):
                tried += 1
                folder = made(tmp_path / f"{tried}")
                assert run(folder, first, *BEGIN) is None
                if ended(folder):
                    killed = False
                    break
                second = Kill("line", number, mode)
                killed = went_on(folder, second) is None
                for _ in range(2):
                    if not ended(folder):
                        went_on(folder, Kill("line", 2, "whole") if killed else None)
                while not ended(folder):
                    assert went_on(folder, None) == 0, (first, second, (folder / "talk.txt").read_text())
                held(folder, unbroken, (first, second))
    assert tried > 200
