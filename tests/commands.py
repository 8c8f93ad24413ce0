"""Command lines in a folder of their own, within this process: what they print, write and return."""

from __future__ import annotations

import os
import pty
import select
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from ledgercli.cli import main
from tests.books import kept

LEDGER = "w.ledger.jsonl"
ROOT = Path(__file__).resolve().parents[1]


class Run:
    """A command line, with what it wrote and printed."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder, self.capsys = folder, capsys
        self.out = self.err = ""

    def __call__(self, *arguments: str) -> int:
        self.capsys.readouterr()
        code = main(arguments)
        self.out, self.err = self.capsys.readouterr()
        return code

    @property
    def lines(self) -> list[dict[str, Any]]:
        return kept(self.folder / LEDGER)

    @property
    def told(self) -> list[str]:
        """Every line but intents, as `kind`, or `outcome step`."""
        told = [
            f"{line['outcome']} {line['step']}" if line["kind"] == "step" else line.get("status") or line["kind"]
            for line in self.lines
            if line["kind"] != "intent"
        ]
        assert told.pop(0) == "open"
        return told

    @property
    def paid(self) -> list[int]:
        file = self.folder / "paid.txt"
        return [int(line) for line in file.read_text().split()] if file.exists() else []


@contextmanager
def command_line(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Run]:
    """In a folder, with nobody at the terminal."""
    monkeypatch.chdir(folder)
    with open(os.devnull) as nobody:
        monkeypatch.setattr("sys.stdin", nobody)
        yield Run(folder, capsys)


def typed(folder: Path, *arguments: str, says: str, wants: Callable[[bytes], bool]) -> tuple[int, bytes]:
    """Run a command line at a terminal of its own, and type once it has asked."""
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(folder)
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "TERM": "dumb", "NO_COLOR": "1"}
        os.execve(sys.executable, [sys.executable, "-m", "ledgercli", *arguments], environment)
    seen, until, next_time = b"", time.monotonic() + 60, 0.0
    while time.monotonic() < until:
        if wants(seen) and time.monotonic() > next_time:  # a Ctrl-C may come before the prompt hears it
            os.write(terminal, says.encode())
            next_time = time.monotonic() + 1
        if not select.select([terminal], [], [], 0.2)[0]:
            continue
        try:
            part = os.read(terminal, 4096)
        except OSError:
            break
        if not part:
            break
        seen += part
    os.close(terminal)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status), seen
