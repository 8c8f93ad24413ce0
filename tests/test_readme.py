"""The README cannot drift: its commands are run and print what it shows, its YAML is that of the shipped files.

In a `console` block `$ ` begins a command, a trailing backslash continues it, `[n]` is its exit code (0 if it is left
out), and a last line `...` says that more is printed. An `sh` or `python` block is followed by its output as `text`.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import click
import pytest

from ledgercli.cli import COMMANDS
from ledgercli.cli import command as ledger

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
INSTALL = "python3 -m venv .venv && .venv/bin/pip install . && "
CHANGING = (  # names, digests and times that differ from run to run
    (re.compile(r"-\d{8}-\d{6}-[0-9a-z]{4}\b"), "-TIME-ID"),
    (re.compile(r"sha256:[0-9a-f]{12,64}"), "sha256:DIGEST"),
)


@dataclass(frozen=True)
class Example:
    command: str
    output: str
    exit_code: int
    more: bool = False


def blocks(*kinds: str) -> list[tuple[str, str]]:
    return [(kind, text) for kind, text in BLOCK.findall(README) if kind in kinds]


def fixed(text: str) -> str:
    for pattern, name in CHANGING:
        text = pattern.sub(name, text)
    return text


def examples(block: str) -> Iterator[Example]:
    """Take a console block apart."""
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        command, _, output = re.sub(r"\\\n", "\\\0", part).partition("\n")
        lines = output.splitlines()
        code = re.fullmatch(r"\[(\d+)\]", lines[-1]) if lines else None
        if code:
            lines.pop()
        more = bool(lines) and lines[-1] == "..."
        if more:
            lines.pop()
        text = "".join(f"{line}\n" for line in lines)
        yield Example(command.replace("\\\0", "\\\n"), text, int(code[1]) if code else 0, more)


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that looks like a clone in which the package is installed."""
    folder = tmp_path_factory.mktemp("clone")
    shutil.copytree(ROOT / "fixtures", folder / "fixtures")
    (folder / "policies").symlink_to(ROOT / "policies")
    programs = folder / ".venv" / "bin"
    programs.mkdir(parents=True)
    program = programs / "ledger"
    program.write_text(f'#!/bin/sh\nPYTHONPATH="{ROOT}" exec "{sys.executable}" -m ledgercli "$@"\n', encoding="utf-8")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return folder


def run(command: str, folder: Path, **more: str) -> subprocess.CompletedProcess[str]:
    path = f"{folder / '.venv' / 'bin'}{os.pathsep}{os.environ['PATH']}"
    env = {**os.environ, "PATH": path, "PYTHONUTF8": "1", "LC_ALL": "C.UTF-8", **more}
    return subprocess.run(
        ["/bin/sh", "-c", command], cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, encoding="utf-8", timeout=60, check=False,
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.timeout(600)  # a process for each command
def test_console_examples_print_what_is_shown(clone: Path) -> None:
    known = [example for _, block in blocks("console") for example in examples(block)]
    assert len(known) > 5
    for example in known:
        done = run(example.command, clone)
        shown, printed = fixed(example.output), fixed(done.stdout)
        assert (printed[: len(shown)] if example.more else printed) == shown, example.command
        assert done.returncode == example.exit_code, example.command


def test_the_first_command_is_the_weather_run(clone: Path) -> None:
    everything = BLOCK.findall(README)
    at = next(number for number, (kind, _) in enumerate(everything) if kind == "sh")
    command, (kind, output) = everything[at][1].strip(), everything[at + 1]
    assert command == INSTALL + ".venv/bin/ledger run --scenario fixtures/scenarios/weather.yaml"
    assert kind == "text"
    done = run(command.removeprefix(INSTALL), clone)
    assert fixed(done.stdout) == fixed(output)
    assert done.returncode == 0


def test_python_examples_print_what_is_shown(clone: Path) -> None:
    everything = BLOCK.findall(README)
    ran = 0
    for (kind, code), (after, output) in pairwise(everything):
        if kind == "python":
            (clone / "example.py").write_text(code, encoding="utf-8")
            done = run(f'"{sys.executable}" example.py', clone, PYTHONPATH=str(ROOT))
            assert (done.stdout, done.returncode, after) == (output, 0, "text")
            ran += 1
    assert ran


def test_yaml_is_that_of_the_shipped_files() -> None:
    shipped = "\n".join(
        path.read_text(encoding="utf-8")
        for folder in ("policies", "fixtures")
        for path in (ROOT / folder).rglob("*.yaml")
    )
    known = blocks("yaml")
    assert known
    for _, text in known:
        assert text in shipped, text


def test_every_command_is_shown() -> None:
    missing = [entry.name for entry in COMMANDS if f"ledger {entry.name}" not in README]
    assert missing == []


def test_every_option_of_run_and_validate_is_named() -> None:
    for name in ("run", "validate"):
        command = ledger.get_command(click.Context(ledger), name)
        assert command is not None
        for option in command.params:
            if isinstance(option, click.Option):
                assert any(f"{text}" in README for text in option.opts), (name, option.opts)


def test_links_lead_somewhere() -> None:
    for target in re.findall(r"\]\(([^)]+)\)", README):
        assert target.startswith("https://") or (ROOT / target).exists(), target
