"""Without the extra `llm` everything works but a run that a model decides, and that says which line brings it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.commands import ROOT, Run, command_line
from tests.model_desk import FINISH, LOGIN, PAY, Model, calls, decided, desk

FIXTURES = ROOT / "fixtures"


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Run]:
    """A desk with two runs that a model decided, where nothing of the extra can be imported."""
    file = desk(tmp_path)
    decided(file, Model(calls(PAY), calls(LOGIN), calls(PAY), calls(FINISH)), out="a")
    decided(file, Model(calls(LOGIN), calls(FINISH)), out="b")
    for package in ("litellm", "openai", "httpx"):
        monkeypatch.setitem(sys.modules, package, None)
    with command_line(tmp_path, monkeypatch, capsys) as one:
        yield one


@pytest.mark.parametrize(
    ("code", "command"),
    [
        (0, "validate . --allow-unsealed"),
        (0, 'check --pack p0.yaml --toolset t.tools.yaml --propose {"tool":"login","args":{"user":"lei"}}'),
        (0, "prompt s.yaml"),
        (0, "prompt a.ledger.jsonl@1"),
        (0, "summarize a.ledger.jsonl"),
        (0, "summarize a.ledger.jsonl --for model"),
        (0, "replay ."),
        (0, "replay . --pack p0.yaml"),
        (0, "why a.ledger.jsonl@1"),
        (1, "diff a.ledger.jsonl b.ledger.jsonl"),
        (0, "list ."),
        (0, "list . --steps"),
        (0, f"test-policies {FIXTURES / 'cases' / 'confirm.cases.yaml'}"),
    ],
    ids=lambda value: value.split()[0] if isinstance(value, str) else "",
)
def test_what_asks_no_model_needs_nothing_of_it(run: Run, code: int, command: str) -> None:
    assert run(*command.split()) == code, run.err
    assert "error" not in run.err


def test_a_run_that_a_model_decides_says_what_is_missing_and_begins_nothing(run: Run) -> None:
    for arguments in (("s.yaml",), (str(FIXTURES / "scenarios" / "weather.yaml"), "--model", "openai/gpt-4o")):
        assert run("run", *arguments, "--out", "w.ledger.jsonl") == 2
        assert run.err.splitlines() == [
            "error: the engine openai/gpt-4o needs litellm, which is not installed",
            "  fix: python -m pip install 'ledgercli[llm]'",
        ]
    assert not (run.folder / "w.ledger.jsonl").exists()


def test_prompts_are_kept_only_where_there_are_any(run: Run) -> None:
    assert run("run", str(FIXTURES / "scenarios" / "weather.yaml"), "--keep-prompts", "--out", "w.ledger.jsonl") == 2
    assert run.err == "error: --keep-prompts goes with a model, and none decides in weather\n"
    assert not (run.folder / "w.ledger.jsonl").exists()


def test_a_script_needs_nothing_of_it(run: Run) -> None:
    assert run("run", str(FIXTURES / "scenarios" / "weather.yaml"), "--out", "w.ledger.jsonl") == 0
