"""The hook in a real git repository, and the commands of docs/ci.md in a project of its own."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ledgercli.documents import parse
from ledgercli.sources import Source
from tests.commands import ROOT, Run, command_line
from tests.desks import write

CI = (ROOT / "docs" / "ci.md").read_text()
PAY = "propose: {tool: pay, args: {amount: 5}}"


@pytest.fixture
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Run]:
    with command_line(tmp_path, monkeypatch, capsys) as run:
        yield run


def hook() -> dict[str, object]:
    """The hook as the repository declares it."""
    hooks = parse(Source.of("hooks", (ROOT / ".pre-commit-hooks.yaml").read_text())).data
    return next(one for one in hooks if one["id"] == "ledger-test-policies")


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_a_commit_that_breaks_a_case_is_refused(tmp_path):
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "ledger").write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m ledgercli "$@"\n')
    (programs / "ledger").chmod(0o755)
    home = tmp_path / "project"
    home.mkdir()
    path = f"{programs}{os.pathsep}{os.environ['PATH']}"
    settings = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull, "HOME": str(tmp_path)}
    environment = {**os.environ, **settings, "PATH": path, "PYTHONPATH": str(ROOT)}

    def git(*arguments: str) -> subprocess.CompletedProcess[str]:
        who = ("-c", "user.name=A", "-c", "user.email=a@example.com")
        return subprocess.run(
            ["git", *who, *arguments], cwd=home, env=environment, capture_output=True, text=True, check=False
        )

    assert git("init", "-q").returncode == 0
    script = home / ".git" / "hooks" / "pre-commit"
    script.parent.mkdir(exist_ok=True)
    script.write_text(f"#!/bin/sh\nexec {hook()['entry']}\n")
    script.chmod(0o755)
    file = write(home, f"- {{name: a, {PAY}, expect: allow}}")
    git("add", ".")
    first = git("commit", "-q", "-m", "first")
    assert first.returncode == 0, first.stderr
    file.write_text(file.read_text().replace("expect: allow", "expect: deny"))
    refused = git("commit", "-q", "-a", "-m", "second")
    assert refused.returncode == 1
    assert "FAIL desk.cases.yaml:7  a\n" in refused.stdout + refused.stderr
    assert git("log", "--oneline").stdout.count("\n") == 1


def test_the_hook_in_the_documents_is_the_declared_one():
    assert f"entry: {hook()['entry']}" in CI
    assert hook()["pass_filenames"] is False
    assert f"exec {hook()['entry']}\n" in CI


def commands() -> list[str]:
    """Every `ledger` command line of the page, of its examples and of its recipe."""
    blocks = re.findall(r"```(console|yaml)\n(.*?)```", CI, re.DOTALL)
    lines = [line.strip().removeprefix("- run: ") for _, block in blocks for line in block.split("\n")]
    return list(dict.fromkeys(line for line in lines if line.startswith("ledger ")))


def test_the_recipe_runs_as_it_is_written(ledger):
    write(
        ledger.folder,
        f"""
        - {{name: pays, {PAY}, expect: {{rules: []}}}}
        - {{name: a guest pays, state: {{facts: {{user: guest}}}}, {PAY}, expect: {{rules: [known]}}}}
        - {{name: nobody pays, unset: [facts.user], {PAY}, expect: {{rules: [known]}}}}
        - {{name: much, propose: {{tool: pay, args: {{amount: 101}}}}, expect: {{rules: [asks]}}}}
        - {{name: failed, history: [{{tool: look, success: false}}], {PAY}, expect: {{rules: [looked]}}}}
        """.replace("\n        ", "\n"),
    )
    assert len(commands()) >= 3
    for line in commands():
        for file in ledger.folder.glob("cases.*"):
            file.unlink()
        assert ledger(*shlex.split(line)[1:]) == 0, (line, ledger.out, ledger.err)
    uploaded = set(re.findall(r"(?:sarif_file|path): ([\w.]+)", CI))
    assert uploaded == {"cases.sarif", "cases.xml"}
    assert all(f" {name}" in line for name in uploaded for line in commands() if "--junit" in line)
