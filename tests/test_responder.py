"""The answer of a run, from its final state."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ledgercli.history import History
from ledgercli.loading import load_scenario
from ledgercli.responder import Responder
from ledgercli.rulebook import Rulebook
from tests.books import NOW, scenario

TOOLS = """
    toolset: t
    tools:
      act: {args: {}, run: {canned: []}, on_success: {set: {facts.n: result.data, final_answer: result.data}}}
"""


@pytest.mark.parametrize(
    ("answer", "facts", "made"),
    [
        (None, {"n": 1}, "the final answer"),
        ("answer: '{state.final_answer}'", {}, "the final answer"),
        ("answer: '{state.facts.n}'", {"n": {"a": [1, 2.5]}}, {"a": [1, 2.5]}),
        ("answer: '{state.facts.n}'", {"n": 120}, 120),
        ("answer: '{state.facts.n}'", {}, None),
        ("answer: 'It is {state.facts.n} in {state.task}.'", {"n": 22}, "It is 22 in Rome."),
        ("answer: 'It is {state.facts.n} in {state.task}.'", {}, "It is ? in Rome."),
        ("answer: '{now}'", {}, "2026-08-01T12:00:00Z"),
        ("answer: plain", {}, "plain"),
        ("answer: '{1 / 0}'", {}, None),
        ("answer: '{1.0 / 0.0}'", {}, None),
        ("answer: \"{b'x'}\"", {}, None),
        ("answer: '{count_calls(state.ledger, \"act\")} calls'", {}, "1 calls"),
    ],
)
def test_an_answer_is_a_value_or_a_text_and_never_an_error(
    tmp_path: Path, answer: str | None, facts: dict[str, Any], made: Any
) -> None:
    text = f"scenario: s\ntask: Rome\ntoolset: t.tools.yaml\n{answer or ''}\ndecide: {{script: []}}\n"
    loaded = load_scenario(str(scenario(tmp_path, text, TOOLS)))
    book = Rulebook(loaded.toolset, loaded.packs, scenario=loaded)
    responder = Responder(loaded, book.vocabulary)
    assert book.problems() == []
    state = book.initial_state(facts=facts).after({"final_answer": "the final answer"})
    history = History()
    history.executed("act", {}, "ok", 1, step=1)
    assert responder.answer(state, history, NOW) == made


def test_mistakes_in_an_answer_are_found(tmp_path: Path) -> None:
    text = "scenario: s\ntoolset: t.tools.yaml\nanswer: '{state.facts.m}'\ndecide: {script: []}\n"
    loaded = load_scenario(str(scenario(tmp_path, text, TOOLS)))
    book = Rulebook(loaded.toolset, loaded.packs, scenario=loaded)
    Responder(loaded, book.vocabulary)
    assert [problem.code for problem in book.problems()] == ["unknown-fact"]
