"""What `ledger export` writes and says; what stands in a prompt, the tests of prompts hold."""

from __future__ import annotations

import json

from tests.cli.conftest import GOLDEN, UPDATE
from tests.commands import command_line


def test_right_calls_and_preferences(folder, monkeypatch, capsys):
    told = ""
    with command_line(folder, monkeypatch, capsys) as ledger:
        assert ledger("run", "-q", "fixtures/scenarios/weather-twice.yaml", "--out", "w.ledger.jsonl") == 0
        for to in ("sft", "dpo"):
            code = ledger("export", "--to", to, "w.ledger.jsonl")
            told += f"$ ledger export --to {to} w.ledger.jsonl\n{ledger.err}[{code}]\n"
            for line in ledger.out.splitlines():
                told += f"{json.dumps(shortened(json.loads(line)), indent=2)}\n"
    file = GOLDEN / "export.txt"
    if UPDATE:
        file.write_text(told, encoding="utf-8")
    assert told == file.read_text(encoding="utf-8")


def shortened(sample):
    """A line without the texts of its prompt, and with the names of its tools alone."""
    messages = sample["prompt"] if "prompt" in sample else sample["messages"]
    for message in messages:
        if message["role"] in ("system", "user"):
            assert len(message["content"]) > 100
            message["content"] = "..."
    assert all(set(tool) == {"type", "function"} and tool["type"] == "function" for tool in sample["tools"])
    return sample | {"tools": [tool["function"]["name"] for tool in sample["tools"]]}
