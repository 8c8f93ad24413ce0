"""Whatever goes wrong ends as a message and an exit code, never as a traceback."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import click
import pytest

from ledgercli import cli
from ledgercli.errors import ExitCode, LedgerCliError
from tests.cli.conftest import environment


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["vaildate"], "error: no command vaildate; there is validate\n  fix: ledger --help\n"),
        (["zzz"], "error: no command zzz\n  fix: ledger --help\n"),
        (["--nope"], "error: no such option '--nope'\n  fix: ledger --help\n"),
        (["run"], "error: which scenario? ledger run FILE\n"),
        (["run", "nosuch.yaml"], "error: no file nosuch.yaml\n"),
        (["run", "desk.yml"], "error: no file desk.yml; there is desk.yaml\n"),
        (["run", "desk.pack.yaml"], "error: desk.pack.yaml is a pack; a scenario was asked for\n"),
        (["run", "desk.yaml", "--out", "desk.yaml"], "error: desk.yaml exists; a ledger is never overwritten\n"),
        (["run", "desk.yaml", "--set", "facts.nope=1"], "error: --set facts.nope=1: no fact nope"),
        (
            ["run", "desk.yaml", "--max-steps", "x"],
            "error: invalid value for '--max-steps': 'x' is not a valid integer",
        ),
        (["validate"], "error: which files? ledger validate PATH...\n  fix: ledger validate --help\n"),
        (["validate", "nosuch"], "error: no file nosuch\n"),
        (["validate", "broken", "--anchor", "sha256:" + "0" * 64], "error: an anchor belongs to one ledger\n"),
        (["validate", "--format", "xml", "."], "error: invalid value for '--format': 'xml' is not one of"),
        (["check"], "error: missing option '--pack'\n  fix: ledger check --help\n"),
        (
            ["check", "--pack", "nosuch", "--toolset", "desk.tools.yaml", "--propose", '{"tool": "x"}'],
            "error: no file nosuch\n",
        ),
        (["schema"], "error: missing argument 'KIND'"),
        (["schema", "packs"], "error: invalid value for 'KIND': 'packs' is not one of"),
        (["init"], "error: missing argument 'DIR'\n  fix: ledger init --help\n"),
        (["init", "desk.yaml"], "error: "),
        (["completion", "tcsh"], "error: invalid value for '{bash|zsh|fish}': 'tcsh' is not one of"),
    ],
)
def test_a_wrong_argument_is_told_in_one_look_and_exits_2(ledger, arguments, message):
    ran = ledger(*arguments)
    assert (ran.code, ran.out) == (2, b"")
    assert ran.err.decode().startswith(message)
    assert b"Traceback" not in ran.err


def test_the_environment_gives_options_that_no_flag_gives(ledger):
    env = {"LEDGER_RUN_OUT": "env.ledger.jsonl", "LEDGER_RUN_QUIET": "1"}
    assert ledger("run", "fixtures/scenarios/weather.yaml", env=env) == (0, b"env.ledger.jsonl\n", b"")
    ran = ledger("run", "fixtures/scenarios/weather.yaml", "--out", "flag.ledger.jsonl", env=env)
    assert ran == (0, b"flag.ledger.jsonl\n", b"")


def test_the_version_is_asked_for_by_the_flag_alone(ledger):
    assert ledger("--version").out.startswith(b"ledger 0.")
    assert ledger("--help", env={"LEDGER_VERSION": "1.2"}).out.startswith(b"Usage: ledger COMMAND")


def test_no_command_at_all_shows_the_help_and_exits_2(ledger):
    ran = ledger()
    assert (ran.code, ran.out) == (2, b"")
    assert ran.err == ledger("--help").out


def _raising(monkeypatch, error: BaseException) -> None:
    @click.command
    def command() -> None:
        raise error

    monkeypatch.setattr(cli.Commands, "get_command", lambda *_: command)


def test_an_unexpected_exception_is_one_line_that_says_it_is_a_bug(monkeypatch, capsys):
    _raising(monkeypatch, ZeroDivisionError("by\nzero"))
    assert cli.main(["run"]) == 4
    assert capsys.readouterr().err.splitlines() == [
        "error: this is a bug in ledgercli: ZeroDivisionError: by",
        "  fix: please report it, with the command and what it prints under LEDGER_DEBUG=1",
    ]
    monkeypatch.setenv("LEDGER_DEBUG", "1")
    assert cli.main(["run"]) == 4
    assert "Traceback" in capsys.readouterr().err


@pytest.mark.parametrize("code", [ExitCode.NO, ExitCode.UNASKED, ExitCode.STOPPED, ExitCode.OUTSIDE])
def test_an_error_has_its_own_exit_code_and_says_what_to_do(monkeypatch, capsys, code):
    error = LedgerCliError("what is \x1b[31mwrong", fix="what to do")
    error.exit_code = code
    _raising(monkeypatch, error)
    assert cli.main(["run"]) == code
    assert capsys.readouterr().err == "error: what is \\x1b[31mwrong\n  fix: what to do\n"


def test_what_the_system_refuses_is_outside(monkeypatch, capsys):
    _raising(monkeypatch, OSError(24, "Too many open files", "x.yaml"))
    assert cli.main(["run"]) == 4
    assert capsys.readouterr().err == "error: x.yaml: too many open files\n"


@pytest.mark.parametrize("error", [KeyboardInterrupt(), click.Abort()])
def test_an_interruption_is_one_line_and_130(monkeypatch, capsys, error):
    _raising(monkeypatch, error)
    assert cli.main(["run"]) == 130
    assert capsys.readouterr().err == "interrupted\n"


SLOW = """\
toolset: slow
tools:
  wait: {access: read, run: {command: [sleep, "30"]}}
"""
WAITS = """\
scenario: slow
toolset: slow.tools.yaml
decide: {script: [{propose: {tool: wait}}]}
"""


def test_ctrl_c_ends_a_run_with_130_and_a_closed_ledger(folder, ledger):
    (folder / "slow.tools.yaml").write_text(SLOW)
    (folder / "slow.yaml").write_text(WAITS)
    command = [sys.executable, "-m", "ledgercli", "run", "slow.yaml", "--out", "slow.ledger.jsonl"]
    with subprocess.Popen(
        command, cwd=folder, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()  # the header: the run has begun
        time.sleep(0.5)
        os.killpg(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert b"Traceback" not in err
    assert b"interrupted" in out
    assert ledger("validate", "slow.ledger.jsonl").code == 0


def _into_closed_pipe(folder, *arguments: str, lines: int) -> tuple[int, bytes]:
    """Run a command whose reader goes after some lines; its exit code and stderr."""
    command = [sys.executable, "-m", "ledgercli", *arguments]
    with subprocess.Popen(
        command, cwd=folder, env=environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        for _ in range(lines):
            process.stdout.readline()
        process.stdout.close()
        err = process.stderr.read()
    return process.returncode, err


@pytest.mark.parametrize(
    ("arguments", "lines"),
    [
        (("--help",), 0),
        (("schema", "scenario"), 0),
        (("validate", "broken"), 0),
        (("run", "fixtures/scenarios/weather.yaml", "--out", "pipe.ledger.jsonl"), 0),
        (("run", "fixtures/scenarios/weather.yaml", "--out", "pipe.ledger.jsonl"), 1),
        (("run", "fixtures/scenarios/weather.yaml", "--format", "jsonl", "--out", "pipe.ledger.jsonl"), 1),
    ],
)
def test_a_closed_pipe_ends_quietly_as_pipes_do(folder, ledger, arguments, lines):
    code, err = _into_closed_pipe(folder, *arguments, lines=lines)
    assert err == b""
    assert code in ((141,) if lines == 0 else (141, 0))  # behind the first line all may have been written already
    if "run" in arguments:
        assert ledger("validate", "pipe.ledger.jsonl").code == 0


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
@pytest.mark.parametrize(
    "arguments", [("--help",), ("schema", "pack"), ("validate", "broken"), ("run", "desk.yaml", "-q")]
)
def test_an_output_that_cannot_be_written_is_something_outside(ledger, arguments):
    with Path("/dev/full").open("wb") as full:
        ran = ledger(*arguments, stdout=full)
    assert (ran.code, ran.err.splitlines()[-1]) == (4, b"error: the output cannot be written: no space left on device")


def test_a_run_without_stdout_still_writes_its_ledger(ledger):
    close = {"preexec_fn": lambda: os.close(1)}
    assert ledger("run", "fixtures/scenarios/weather.yaml", "--out", "w.ledger.jsonl", **close).code == 0
    assert ledger("validate", "w.ledger.jsonl").code == 0
