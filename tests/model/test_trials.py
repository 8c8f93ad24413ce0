"""Trials, and answers, of a model behind a server: what it cost, and what the server's failures count as."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.books import kept, scenario
from tests.commands import ROOT, Run, command_line
from tests.model_desk import FINISH, LOGIN, PAY, desk
from tests.model_server import ModelServer, Reply

pytestmark = [
    pytest.mark.model,
    pytest.mark.skipif(importlib.util.find_spec("litellm") is None, reason="litellm is not installed"),
]
PASSES = (Reply(calls=[LOGIN]), Reply(calls=[PAY]), Reply(calls=[FINISH]))
KEY = "sk-trials-0123456789"


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Run]:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with command_line(tmp_path, monkeypatch, capsys) as one:
        yield one


def test_what_the_server_fails_at_counts_apart_from_what_the_model_does(run):
    desk(run.folder)
    refused = Reply(status=401, error=f"the key {KEY} is wrong")
    with ModelServer(*PASSES, refused, *PASSES) as server:
        assert run("run", "s.yaml", "--api-base", server.base, "--trials", "3", "--out", "t") == 4
    assert "  2 error  0 steps, 0 denied\n           error  openai/gpt-4o: " in run.out
    assert "passed   2 of 2   pass^1 1  pass^2 1\nerrors   1 trial, in no rate: the engine failed" in run.out
    assert "cost     720 tokens, $" in run.out
    written = "".join(file.read_text() for file in Path("t").iterdir())
    assert KEY not in run.out + run.err + written


def test_trials_at_once_ask_one_server(tmp_path):
    desk(tmp_path)
    arguments = [sys.executable, "-m", "ledgercli", "run", "s.yaml", "--trials", "4", "--jobs", "4", "--format", "json"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OPENAI_API_KEY": KEY}
    with ModelServer(Reply(calls=[FINISH], hang=1)) as server:  # a process of its own: litellm leaves clients open
        command = [*arguments, "--api-base", server.base]
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    [said] = json.loads(done.stdout)["scenarios"]
    assert said["passed"] == 4
    assert said["usage"]["tokens"] == {"prompt": 400, "completion": 80}
    assert max(server.times) - min(server.times) < 1  # the last was asked before the first was answered
    assert [one["trial"] for one in said["runs"]] == [1, 2, 3, 4]
    assert all(kept(tmp_path / one["ledger"]) for one in said["runs"])


def test_an_answer_is_written_by_a_model_behind_a_server(run):
    text = """
        scenario: s
        task: What is known?
        toolset: t.tools.yaml
        facts: {colour: blue}
        decide: {script: [{propose: {tool: finish}}]}
        answer: {model: {model: openai/gpt-4o, api_base: BASE, max_tokens: 20}}
        """
    with ModelServer(Reply(content="It is blue.")) as server:
        scenario(run.folder, text.replace("BASE", server.base), "toolset: t\ntools: {}\n")
        assert run("run", "s.yaml", "--out", "w.ledger.jsonl") == 0, run.err
    assert "\nIt is blue.\n" in run.out
    [request] = server.requests
    assert 'facts.colour = \\"blue\\"' in json.dumps(request["messages"])
    assert "tools" not in request
    assert run("replay", "w.ledger.jsonl") == 0
