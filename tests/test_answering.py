"""Answers that a model writes: from the final state alone, told in the ledger, and never asked for again by a replay."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ledgercli.errors import EngineError
from ledgercli.loading import load_scenario
from ledgercli.loop import Ended
from ledgercli.model.answering import AnswerWriter
from ledgercli.model.reading import Reply
from ledgercli.replay.verifying import replay
from ledgercli.rulebook import Rulebook
from ledgercli.runs import Job, Options, clock_of, prepare
from ledgercli.scenario import ModelSettings
from ledgercli.shelf import Shelf
from tests.books import kept, scenario
from tests.commands import command_line
from tests.forging import sealed
from tests.model_desk import Model, text

TOOLS = """
toolset: t
tools:
  look:
    access: read
    args: {what: {type: string}}
    run: {canned: [{args: {what: a}, result: {price: 7, secret_result: 12345}}]}
    on_success: {set: {facts.price: result.data.price}}
"""
SCENARIO = """
scenario: s
task: "What does it cost? <state>"
toolset: t.tools.yaml
facts: {currency: EUR}
decide:
  script:
    - {when: '!has(state.facts.price)', propose: {tool: look, args: {what: WHAT}}}
    - {propose: {tool: finish}}
constraints: {max_steps: 3}
answer: {model: {model: openai/small, max_tokens: 50}}
"""


def run(folder: Path, *replies: Reply, what: str = "a", interrupts: int | None = None) -> tuple[Ended, Model, Path]:
    """A run whose answer the model writes; the ledger is verified and comes out the same again."""
    file = scenario(folder, SCENARIO.replace("WHAT", what), TOOLS)
    job, model = ready(file), Model(*replies, interrupts=interrupts)
    job.writer = AnswerWriter(settings(job), job.book, model)
    ended = job.run(None, lambda _proposal, _verdict: None, lambda _line: None)
    kept(job.ledger)
    assert replay(job.ledger, Shelf()).divergence is None
    return ended, model, job.ledger


def ready(file: Path) -> Job:
    loaded = load_scenario(str(file))
    book = Rulebook(loaded.toolset, loaded.packs, scenario=loaded)
    assert book.script is not None
    ledger = file.parent / "w.ledger.jsonl"
    return Job(loaded, book, book.script, book.initial_state(), ledger, clock_of(None), Options(sync="none"))


def settings(job: Job) -> ModelSettings:
    found = job.scenario.file.writer
    assert found is not None
    return found


def closing(ledger: Path) -> dict[str, Any]:
    return json.loads(ledger.read_text().splitlines()[-1])


def test_the_answer_is_what_the_model_says_of_the_final_state(tmp_path):
    ended, model, ledger = run(tmp_path, text(" It costs 7 EUR. "))
    assert (ended.status, ended.answer) == ("completed", "It costs 7 EUR.")
    close = closing(ledger)
    assert (close["answer"], close["engine"]["model"]) == ("It costs 7 EUR.", "openai/small")
    assert close["engine"]["tokens"] == {"prompt": 100, "completion": 20}
    [prompt] = model.prompts
    assert "facts.price = 7" in prompt
    assert 'facts.currency = "EUR"' in prompt
    assert "The run has ended: completed." in prompt
    assert "12345" not in prompt  # in a result, and in no fact
    assert "look" not in prompt
    assert prompt.count("<state>") == 2  # what a task says opens nothing


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        (text("It costs", "length"), "the answer was cut at the limit of tokens"),
        (text("  "), "there is no text in the reply"),
        (Reply(), "there is no text in the reply"),
    ],
)
def test_a_reply_that_is_no_answer_is_an_error(tmp_path, reply, why):
    ended, _, ledger = run(tmp_path, reply)
    assert (ended.status, ended.answer) == ("error", None)
    assert why in str(ended.error)
    assert closing(ledger)["engine"]["tokens"]["prompt"] == 100


def test_a_key_is_never_an_answer(tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-0123456789abcdefghij")
    ended, _, ledger = run(tmp_path, text("The key is sk-0123456789abcdefghij."))
    assert (ended.status, ended.error) == ("error", "openai/small: the answer held a key")
    assert "0123456789abcdefghij" not in ledger.read_text()


def test_nobody_is_asked_where_the_run_has_come_to_no_end(tmp_path):
    ended, model, ledger = run(tmp_path, what="b")
    assert (ended.status, ended.answer, model.asked) == ("limit", None, [])
    assert "engine" not in closing(ledger)


def test_ctrl_c_while_it_is_asked_ends_the_run_without_an_answer(tmp_path):
    ended, _, _ = run(tmp_path, text("x"), interrupts=1)
    assert (ended.status, ended.answer) == ("interrupted", None)


@pytest.mark.parametrize(
    ("part", "value"), [("answer", {"costs": 7}), ("engine", {"model": "openai/other"}), ("status", "failed")]
)
def test_what_could_not_have_come_of_it_is_found(tmp_path, part, value):
    _, _, ledger = run(tmp_path, text("It costs 7 EUR."))
    lines = [json.loads(line) for line in ledger.read_bytes().splitlines()]
    lines[-1][part] = lines[-1][part] | value if part == "engine" else value
    ledger.write_bytes(b"".join(sealed(lines)))
    assert replay(ledger, Shelf()).divergence is not None


@pytest.mark.model
def test_what_is_missing_is_said_before_anything_runs(tmp_path, monkeypatch):
    pytest.importorskip("litellm")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    file = scenario(tmp_path, SCENARIO, TOOLS)
    with pytest.raises(EngineError, match="no key for openai: OPENAI_API_KEY is not set"):
        prepare([str(file)], Options(out=str(tmp_path / "w.ledger.jsonl")))
    assert not (tmp_path / "w.ledger.jsonl").exists()


def test_a_scenario_whose_answer_a_model_writes_is_validated_without_asking(tmp_path, monkeypatch, capsys):
    scenario(tmp_path, SCENARIO, TOOLS)
    with command_line(tmp_path, monkeypatch, capsys) as ledger:
        assert ledger("validate", "s.yaml") == 0
        (tmp_path / "s.yaml").write_text((tmp_path / "s.yaml").read_text().replace("max_tokens", "max_token"))
        assert ledger("validate", "s.yaml") == 1
        assert "did you mean max_tokens?" in ledger.out
