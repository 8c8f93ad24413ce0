"""`ledger init`: a scenario, toolset, pack and cases that work as they are."""

from __future__ import annotations

import subprocess
import sys

from ledgercli.starting import FILES
from tests.cli.conftest import environment


def run_in(folder, *arguments):
    command = [sys.executable, "-m", "ledgercli", *arguments]
    return subprocess.run(command, cwd=folder, env=environment(), capture_output=True, check=False)


def test_what_init_writes_validates_and_runs(ledger, folder):
    ran = ledger("init", "x")
    assert ran.code == 0
    assert [line.split()[0] for line in ran.out.decode().splitlines()] == [f"x/{name}" for name in FILES]
    assert ran.err == b"next: cd x && ledger validate . && ledger run --scenario weather.yaml\n"
    validated = run_in(folder / "x", "validate", ".")
    assert (validated.returncode, validated.stdout) == (
        0,
        b"ok: 1 pack, 1 toolset, 1 scenario, 1 case file\n1 note not shown; -v shows it\n",
    )
    assert run_in(folder / "x", "run", "--scenario", "weather.yaml").returncode == 0


def test_no_file_is_overwritten_and_nothing_is_half_written(ledger, folder):
    (folder / "y" / "policies").mkdir(parents=True)
    (folder / "y" / "policies" / "weather.yaml").write_text("mine")
    ran = ledger("init", "y")
    assert ran == (2, b"", b"error: y/policies/weather.yaml exists; nothing was written\n  fix: another folder\n")
    assert (folder / "y" / "policies" / "weather.yaml").read_text() == "mine"
    assert [path.name for path in (folder / "y").iterdir()] == ["policies"]


def test_a_folder_with_a_space_is_quoted_in_what_comes_next(ledger):
    assert ledger("init", "a b").err.startswith(b"next: cd 'a b' && ")


def test_a_file_in_the_place_of_the_folder_is_refused(ledger, folder):
    (folder / "z").write_text("")
    ran = ledger("init", "z")
    assert ran.code == 2
    assert ran.err.startswith(b"error: z is no folder")
