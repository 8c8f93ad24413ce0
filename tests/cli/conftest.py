"""The command line as a user runs it: in a process of its own, in a folder of its own."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from ledgercli.cli import main

PROJECT = Path(__file__).resolve().parents[2]
GOLDEN = PROJECT / "tests" / "golden"
UPDATE = os.environ.get("LEDGER_UPDATE_GOLDEN") == "1"
_KEPT = ("PATH", "HOME", "PYTHONPATH", "COVERAGE_PROCESS_START", "VIRTUAL_ENV", "TMPDIR")
_HEAD = re.compile(rb"sha256:[0-9a-f]{12,64}")


class Ran(NamedTuple):
    code: int
    out: bytes
    err: bytes


def environment(more: Mapping[str, str] | None = None) -> dict[str, str]:
    """Nothing of the machine that shows in an output."""
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    path = os.pathsep.join(filter(None, (str(PROJECT), kept.get("PYTHONPATH"))))
    return {**kept, "PYTHONPATH": path, "LANG": "C.UTF-8", "COLUMNS": "80", **(more or {})}


Run = Callable[..., Ran]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the fixtures and packs where the examples have them."""
    for name in ("fixtures", "policies"):
        (tmp_path / name).symlink_to(PROJECT / name)
    for file in (GOLDEN / "desk").iterdir():
        (tmp_path / file.name).symlink_to(file)
    (tmp_path / "broken").symlink_to(GOLDEN / "broken")
    return tmp_path


@pytest.fixture
def ledger(folder: Path) -> Run:
    """Run `ledger` with arguments."""

    def run(*arguments: str, env: Mapping[str, str] | None = None, text: str | None = None, **options: object) -> Ran:
        done = subprocess.run(
            [sys.executable, "-m", "ledgercli", *arguments],
            cwd=folder,
            env=environment(env),
            input=None if text is None else text.encode(),
            stdin=subprocess.DEVNULL if text is None else None,
            stdout=options.pop("stdout", subprocess.PIPE),
            stderr=subprocess.PIPE,
            timeout=60,
            check=False,
            **options,
        )
        return Ran(done.returncode, done.stdout, done.stderr)

    return run


@pytest.fixture
def inside(folder: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]) -> Run:
    """Run `ledger` within this process, which is quicker; nobody is at the terminal."""
    monkeypatch.chdir(folder)
    for name, value in environment().items():
        monkeypatch.setenv(name, value)

    def run(*arguments: str, env: Mapping[str, str] | None = None) -> Ran:
        assert not env, "the environment of this process is what it is"
        capfdbinary.readouterr()
        code = main(arguments)
        sys.stdout.flush()
        return Ran(code, *capfdbinary.readouterr())

    return run


@pytest.fixture
def golden(ledger: Run) -> Callable[..., None]:
    """Hold what command lines print to a file: `$ command`, stdout, stderr, `[exit code]`; digests are masked."""

    def compare(name: str, *lines: str, env: Mapping[str, str] | None = None) -> None:
        told = b""
        for line in lines:
            program, *arguments = shlex.split(line)
            assert program == "ledger"
            ran = ledger(*arguments, env=env)
            told += b"$ %s\n%s%s[%d]\n" % (line.encode(), ran.out, ran.err, ran.code)
        told = _HEAD.sub(lambda match: b"sha256:" + b"0" * (len(match[0]) - 7), told)
        file = GOLDEN / f"{name}.txt"
        if UPDATE:
            file.write_bytes(told)
        assert told == file.read_bytes()

    return compare
