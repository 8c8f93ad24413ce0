"""How runs end: each way has its status, its exit code, and a closed ledger that verifies."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from ledgercli.errors import ExitCode, LedgerWriteError
from ledgercli.loop import EXIT_OF, CtrlC, Ended
from ledgercli.records import Proposal, Verdict
from ledgercli.runs import Options, prepare
from tests.books import carry_out, kept, lines_of, scenario

TOOLS = """
    toolset: t
    tools:
      act:
        args: {x: {default: null}}
        run: {python: "acts.py:act"}
        on_success:
          - set: {facts.n: result.data}
          - {when: result.data == 'end', set: {final_answer: result.data}, finish: completed}
          - {when: result.data == 'stop', finish: halted}
          - {when: result.data == 'limit', set: {constraints.max_steps: "'few'"}}
        on_failure:
          - {when: action.args.x == 'fatal', finish: failed}
      look: {access: read, args: {x: {default: null}}, run: {python: "acts.py:act"}}
"""
ACTS = """
def act(x):
    if x in ("fails", "fatal"):
        raise ValueError(x)
    return x
"""
PACK = """
    pack: p
    rules:
      - {name: no_bad, check: action.args.x != 'bad', tools: [act, look], on_fail: Not bad.}
      - {name: no_worst, check: action.args.x != 'worst', tools: [act], on_fail: {error: Worst., halt: true}}
      - name: asks
        tools: [act]
        check: action.args.x != 'large'
        on_fail: {error: Large., effect: require_approval}
"""


def write(folder: Path, script: str, more: str = "") -> Path:
    (folder / "acts.py").write_text(ACTS)
    text = f"scenario: s\ntask: t\ntoolset: t.tools.yaml\npacks: [p0.yaml]\n{more}\ndecide:\n  script: {script}\n"
    return scenario(folder, text, TOOLS, PACK)


def always(x: str, tool: str = "act") -> str:
    return f"[{{propose: {{tool: {tool}, args: {{x: {x}}}}}}}]"


def run(folder: Path, script: str, more: str = "", **options: Any) -> tuple[Ended, list[dict[str, Any]]]:
    ended, job, lines = carry_out(write(folder, script, more), folder / "run.ledger.jsonl", **options)
    assert lines[-1]["kind"] == "close"
    assert (lines[-1]["status"], lines[-1].get("limit"), lines[-1].get("error")) == (
        ended.status,
        ended.limit,
        ended.error,
    )
    assert lines[-1]["answer"] == ended.answer
    assert job.exit_code(ended) == ended.exit_code
    return ended, lines


@pytest.mark.parametrize(
    ("script", "more", "ended", "code"),
    [
        (always("end"), "", Ended("completed", "end"), 0),
        ("[]", "", Ended("failed", error="no next step"), 1),
        (always("fatal"), "", Ended("failed", error="ValueError: fatal"), 1),
        ("[{when: '!has(state.facts.n) && state.error == null', propose: {tool: act, args: {x: fails}}}]", "",
         Ended("failed", error="ValueError: fails"), 1),
        (always("stop"), "", Ended("halted"), 3),
        (always("worst"), "", Ended("halted", error="act was refused: Worst."), 3),
        (always("bad"), "", Ended("limit", limit="max_denials", error="act was refused: Not bad."), 3),
        (always("bad"), "constraints: {max_denials: 2}", Ended("limit", limit="max_denials", error="act was refused: Not bad."), 3),
        (always("go"), "constraints: {max_steps: 3}", Ended("limit", limit="max_steps"), 3),
        (always("go"), "constraints: {max_steps: 0}", Ended("limit", limit="max_steps"), 3),
        (always("go"), "constraints: {max_seconds: 0}", Ended("limit", limit="max_seconds"), 3),
        (always("go"), "constraints: {max_repeats: 2}", Ended("limit", limit="max_repeats"), 3),
        (always("large"), "", Ended("awaiting_approval"), 3),
        (always("'{state.facts.n}'"), "", Ended("failed", error="the script cannot make the argument x: state.facts.n not known"), 1),
        (always("limit"), "", Ended("error", error="the limit max_steps is no number: 'few'"), 4),
        (always("go"), "goals: [{name: g, done_when: state.facts.n == 'go'}]", Ended("completed"), 0),
    ],
)  # fmt: skip
def test_every_end_has_its_status_and_exit_code(
    tmp_path: Path, script: str, more: str, ended: Ended, code: int
) -> None:
    found, _ = run(tmp_path, script, more)
    assert found == ended
    assert found.exit_code == code


def test_if_nothing_is_said_a_run_has_a_hundred_steps_and_five_denials(tmp_path: Path) -> None:
    ended, lines = run(tmp_path, always("go"))
    assert (ended.limit, lines[-1]["steps"]) == ("max_steps", 100)
    (tmp_path / "run.ledger.jsonl").unlink()
    ended, lines = run(tmp_path, always("bad"))
    assert (ended.limit, lines[-1]["steps"]) == ("max_denials", 5)


def test_every_status_has_an_exit_code() -> None:
    assert {status: int(code) for status, code in EXIT_OF.items()} == {
        "completed": 0, "failed": 1, "halted": 3, "limit": 3, "awaiting_approval": 3, "error": 4, "interrupted": 130,
    }  # fmt: skip


def test_denials_are_counted_in_a_row(tmp_path: Path) -> None:
    """A step that runs between them starts the count again; denied proposals are steps."""
    script = (
        "[{when: state.error == null, propose: {tool: act, args: {x: bad}}}, {propose: {tool: act, args: {x: go}}}]"
    )
    ended, lines = run(tmp_path, script, "constraints: {max_denials: 2, max_steps: 8}")
    assert (ended.limit, lines[-1]["steps"]) == ("max_steps", 8)


def test_repeats_are_of_the_very_same_call(tmp_path: Path) -> None:
    script = "[{when: '!has(state.facts.n)', propose: {tool: act, args: {x: a}}}, {when: state.facts.n == 'a', propose: {tool: act, args: {x: b}}}, {propose: {tool: act}}]"
    ended, lines = run(tmp_path, script, "constraints: {max_repeats: 1}")
    assert (ended.limit, [line["action"]["args"] for line in lines if line["kind"] == "step"]) == (
        "max_repeats", [{"x": "a"}, {"x": "b"}, {}],
    )  # fmt: skip


def test_max_seconds_ends_a_run_between_steps(tmp_path: Path) -> None:
    ended, _ = run(tmp_path, always("go"), "constraints: {max_seconds: 0.05, max_steps: 1000000}")
    assert ended.limit == "max_seconds"


@pytest.mark.parametrize(("yes", "story"), [
    (True, ["waiting", "approval yes", "ok"]),
    (False, ["waiting", "approval no", "denied"]),
])  # fmt: skip
def test_whoever_approves_is_asked_and_written_down(tmp_path: Path, yes: bool, story: list[str]) -> None:
    asked: list[tuple[Proposal, str]] = []

    def approver(proposal: Proposal, verdict: Verdict) -> tuple[bool, str]:
        asked.append((proposal, str(verdict.reason)))
        return yes, "mia"

    script = "[{when: 'state.error == null && !has(state.facts.n)', propose: {tool: act, args: {x: large}}}, {propose: {tool: finish}}]"
    ended, lines = run(tmp_path, script, approver=approver)
    assert ended.status == "completed"
    assert asked == [(Proposal("act", {"x": "large"}), "Large.")]
    told = [line.get("outcome") or f"approval {line['answer']}" for line in lines[1:-1] if line["kind"] != "intent"]
    assert told == [*story, "ok"]
    assert next(line for line in lines if line["kind"] == "approval")["by"] == "mia"


def test_an_answer_is_made_of_the_final_state(tmp_path: Path) -> None:
    ended, _ = run(tmp_path, always("end"), "answer: 'It ended with {state.facts.n}.'")
    assert ended.answer == "It ended with end."


def test_a_failed_engine_still_gives_what_answer_there_is(tmp_path: Path) -> None:
    ended, lines = run(tmp_path, always("'{state.facts.n}'"), "answer: 'At step {state.step}.'")
    assert (ended.status, ended.answer, lines[-1]["steps"]) == ("failed", "At step 0.", 0)


def test_a_recorder_that_breaks_leaves_a_closed_ledger_and_the_error_goes_on(tmp_path: Path) -> None:
    file, out = write(tmp_path, always("go")), tmp_path / "run.ledger.jsonl"
    [(_, jobs)] = prepare([str(file)], Options(out=str(out)))
    [job] = jobs

    def breaks(line: Mapping[str, Any]) -> None:
        if line["kind"] == "step" and line["step"] == 2:
            raise ValueError("cannot show this")

    with pytest.raises(ValueError, match="cannot show this"):
        job.run(None, lambda _p, _v: None, breaks)
    lines = kept(out)
    assert (lines[-1]["status"], lines[-1]["error"], lines[-1]["steps"]) == ("error", "ValueError: cannot show this", 2)


def test_a_ledger_that_cannot_be_written_ends_the_run_with_that_error(tmp_path: Path) -> None:
    file, out = write(tmp_path, always("go")), tmp_path / "run.ledger.jsonl"
    [(_, jobs)] = prepare([str(file)], Options(out=str(out)))
    [job] = jobs

    def breaks(line: Mapping[str, Any]) -> None:
        if line["kind"] == "step":
            assert job.guard is not None
            assert job.guard._ledger is not None
            job.guard._ledger.close()

    with pytest.raises(LedgerWriteError):
        job.run(None, lambda _p, _v: None, breaks)
    assert lines_of(out)[-1]["kind"] == "step"


def test_an_interruption_while_a_tool_runs_is_recorded(tmp_path: Path) -> None:
    class Interrupts:
        def ask(self, tool: str, args: Mapping[str, Any]) -> str | None:
            raise KeyboardInterrupt

        def confirm(self, tool: str, args: Mapping[str, Any]) -> bool | None:
            raise KeyboardInterrupt

        def listen(self) -> str | None:
            raise KeyboardInterrupt

    tools = "toolset: t\ntools:\n  ask: {args: {}, run: {user: {}}}\n"
    text = "scenario: s\ntoolset: t.tools.yaml\ndecide: {script: [{propose: {tool: ask}}]}\n"
    ended, _, lines = carry_out(scenario(tmp_path, text, tools), tmp_path / "run.ledger.jsonl", person=Interrupts())
    assert (ended.status, ended.exit_code) == ("interrupted", ExitCode.INTERRUPTED)
    assert [(line["kind"], line.get("outcome")) for line in lines[1:]] == [("step", "cancelled"), ("close", None)]


# ---- Ctrl-C, within this process


def interrupted(folder: Path, when: Any, script: str = always("go"), **more: Any) -> list[dict[str, Any]]:
    """A run in which `when` takes each line, and may interrupt."""
    [(_, jobs)] = prepare([str(write(folder, script))], Options(out=str(folder / "run.ledger.jsonl"), sync="none"))
    [job] = jobs
    before = signal.getsignal(signal.SIGINT)
    ended = job.run(None, lambda _p, _v: None, when)
    assert signal.getsignal(signal.SIGINT) is before
    assert ended.status == more.get("status", "interrupted")
    return kept(job.ledger)


def ctrl_c(*, times: int = 1) -> None:
    for _ in range(times):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.001)


@pytest.mark.parametrize(("kind", "steps"), [("open", 0), ("intent", 1), ("step", 1)])
def test_ctrl_c_while_a_line_is_written_waits_until_it_is_noted(tmp_path: Path, kind: str, steps: int) -> None:
    lines = interrupted(tmp_path, lambda line: ctrl_c() if line["kind"] == kind else None)
    assert lines[-1]["steps"] == steps
    assert [line["outcome"] for line in lines if line["kind"] == "step"] == {
        "open": [], "intent": ["unknown"], "step": ["ok"],
    }[kind]  # fmt: skip


def test_a_second_ctrl_c_waits_for_nothing(tmp_path: Path) -> None:
    lines = interrupted(tmp_path, lambda line: ctrl_c(times=2) if line["kind"] == "step" else None)
    assert lines[-1]["status"] == "interrupted"


def test_ctrl_c_while_the_ledger_is_closed_closes_it_and_interrupts_then(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        interrupted(tmp_path, lambda line: ctrl_c() if line["kind"] == "close" else None, always("end"))
    assert kept(tmp_path / "run.ledger.jsonl")[-1]["status"] == "completed"


def test_ctrl_c_is_left_to_whoever_handles_it_already(tmp_path: Path) -> None:
    came: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _frame: came.append(number))
    try:
        interrupted(
            tmp_path, lambda line: ctrl_c() if line["kind"] == "step" else None, always("end"), status="completed"
        )
    finally:
        signal.signal(signal.SIGINT, before)
    assert came == [signal.SIGINT]


def test_a_run_outside_the_main_thread_is_as_any_other(tmp_path: Path) -> None:
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(run(tmp_path, always("end"))[0].status))
    thread.start()
    thread.join()
    assert found == ["completed"]


# ---- real signals and pipes


def ledger(*arguments: str | Path, cwd: Path, **more: Any) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "ledgercli", *map(str, arguments)]
    root = str(Path(__file__).parents[1])
    environment = {**os.environ, "PYTHONPATH": root}
    return subprocess.Popen(
        command, cwd=cwd, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more
    )


SLOW = """
import time

def act(x):
    open("started", "w").close()
    time.sleep(30)
"""


@pytest.mark.parametrize(("tool", "outcome"), [("act", "unknown"), ("look", "cancelled")])
def test_ctrl_c_while_a_tool_runs_closes_the_ledger(tmp_path: Path, tool: str, outcome: str) -> None:
    write(tmp_path, always("go", tool))
    (tmp_path / "acts.py").write_text(SLOW)
    process = ledger("run", "s.yaml", "--out", "run.ledger.jsonl", cwd=tmp_path)
    wait_for(tmp_path / "started")
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=20)
    assert process.returncode == 130
    lines = kept(tmp_path / "run.ledger.jsonl")
    assert (lines[-1]["status"], lines[-2]["outcome"]) == ("interrupted", outcome)


def wait_for(file: Path) -> None:
    until = time.monotonic() + 20
    while not (file.exists() and file.stat().st_size >= 0):
        assert time.monotonic() < until
        time.sleep(0.01)


def test_a_ctrl_c_that_got_lost_is_heeded_at_the_next_line() -> None:
    with CtrlC() as ctrl_c:
        with suppress(KeyboardInterrupt):  # as where Python drops every exception
            signal.raise_signal(signal.SIGINT)
        ctrl_c.hold()
        with pytest.raises(KeyboardInterrupt):
            ctrl_c.heed()
        ctrl_c.heed()
        with suppress(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        ctrl_c.heard()
        ctrl_c.heed()
        ctrl_c.hold()
        signal.raise_signal(signal.SIGINT)  # waits
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        ctrl_c.heard()


def test_ctrl_c_at_any_moment_leaves_a_closed_ledger_that_verifies(tmp_path: Path) -> None:
    write(tmp_path, always("go"), "constraints: {max_steps: 1000000}")
    chance = random.Random(7)
    for number in range(4):
        out = tmp_path / f"{number}.ledger.jsonl"
        process = ledger("run", "s.yaml", "--out", out, "--sync", "none", cwd=tmp_path)
        wait_for(out)
        time.sleep(chance.uniform(0.0, 0.15))
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=20)
        assert process.returncode == 130, err
        assert kept(out)[-1]["status"] == "interrupted"


def test_a_closed_pipe_leaves_a_closed_ledger(tmp_path: Path) -> None:
    write(tmp_path, always("go"), "constraints: {max_steps: 300}")
    process = ledger("run", "s.yaml", "--out", "run.ledger.jsonl", "--format", "jsonl", "--sync", "none", cwd=tmp_path)
    assert process.stdout is not None
    process.stdout.readline()
    process.stdout.close()
    assert process.wait(20) == 141
    assert process.stderr is not None
    assert "Traceback" not in process.stderr.read()
    process.stderr.close()
    assert kept(tmp_path / "run.ledger.jsonl")[-1]["kind"] == "close"
