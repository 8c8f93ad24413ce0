"""Who proposes: scripts and recordings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ledgercli.decision import Recorded, Said, Script
from ledgercli.errors import ProposalError
from ledgercli.history import History
from ledgercli.loading import load_scenario
from ledgercli.recordings import Call, Recording, UserMessage
from ledgercli.records import Proposal, Result
from ledgercli.rulebook import Rulebook
from tests.books import NOW, scenario

TOOLS = """
    toolset: t
    tools:
      act: {args: {x: {default: null}}, run: {canned: []}, on_success: {set: {facts.n: result.data, facts.at: now}}}
      other: {args: {x: {}}, run: {canned: []}}
"""


def script(folder: Path, entries: str) -> tuple[Script, Rulebook]:
    file = scenario(folder, f"scenario: s\ntask: Rome\ntoolset: t.tools.yaml\ndecide: {{script: {entries}}}\n", TOOLS)
    loaded = load_scenario(str(file))
    book = Rulebook(loaded.toolset, loaded.packs, scenario=loaded)
    return Script(loaded.file.decide.script or [], loaded.document, book.vocabulary), book


def propose(folder: Path, entries: str, **facts: Any) -> Proposal | None:
    engine, book = script(folder, entries)
    assert book.problems() == []
    state = book.initial_state(facts=facts)
    return engine.propose(state, History(), NOW)


def test_the_first_entry_whose_condition_holds_proposes(tmp_path: Path) -> None:
    entries = """[
      {when: "has(state.facts.n) && state.facts.n > 1", propose: {tool: act, args: {x: large}}},
      {when: "has(state.facts.n)", propose: {tool: act, args: {x: small}}},
      {propose: {tool: other, args: {x: none}}}]"""
    assert propose(tmp_path, entries, n=5) == Proposal("act", {"x": "large"})
    assert propose(tmp_path, entries, n=1) == Proposal("act", {"x": "small"})
    assert propose(tmp_path, entries) == Proposal("other", {"x": "none"})


def test_a_condition_that_cannot_be_told_does_not_hold(tmp_path: Path) -> None:
    entries = "[{when: 'state.facts.n == 1', propose: {tool: act}}]"
    assert propose(tmp_path, entries) is None


@pytest.mark.parametrize(
    ("written", "made"),
    [
        ("'{state.task}'", "Rome"),
        ("'to {state.task}!'", "to Rome!"),
        ("'{state.facts.n}'", 120),
        ("'{{state}}'", "{state}"),
        ("'{now}'", "2026-08-01T12:00:00Z"),
        ("'{uint(2)}'", 2),
        ("'{[1, 2.5]}'", [1, 2.5]),
        ("{a: '{state.facts.n}', b: [1, '{state.task}', {c: true}]}", {"a": 120, "b": [1, "Rome", {"c": True}]}),
        ("12.0", 12.0),
        ("null", None),
    ],
)
def test_arguments_keep_their_types_and_are_json(tmp_path: Path, written: str, made: Any) -> None:
    proposal = propose(tmp_path, f"[{{propose: {{tool: act, args: {{x: {written}}}}}}}]", n=120)
    assert proposal is not None
    assert proposal.args == {"x": made}
    assert type(proposal.args["x"]) is type(made)


@pytest.mark.parametrize(
    ("written", "why"),
    [
        ("'{state.facts.n}'", "the script cannot make the argument x: state.facts.n not known"),
        ("'a {state.facts.n} b'", "state.facts.n not known"),
        ("['{state.facts.n}']", "state.facts.n not known"),
        ("{a: '{state.facts.n}'}", "state.facts.n not known"),
        ("'{1 / 0}'", "divide by zero"),
        ("\"{b'x'}\"", "the script cannot make the argument x: "),
        ("'{1.0 / 0.0}'", "the script cannot make the argument x: "),
    ],
)
def test_an_argument_that_cannot_be_told_fails(tmp_path: Path, written: str, why: str) -> None:
    with pytest.raises(ProposalError) as caught:
        propose(tmp_path, f"[{{propose: {{tool: act, args: {{x: {written}}}}}}}]")
    assert why in caught.value.message


def test_the_tool_may_be_computed(tmp_path: Path) -> None:
    entries = "[{propose: {tool: '{state.facts.n}', args: {y: 1}}}]"
    assert propose(tmp_path, entries, n="other") == Proposal("other", {"y": 1})
    with pytest.raises(ProposalError, match="cannot make the tool"):
        propose(tmp_path, entries)


@pytest.mark.parametrize(
    ("entry", "code"),
    [
        ("{when: state.facts.m, propose: {tool: act}}", "unknown-fact"),
        ("{propose: {tool: at}}", "unknown-tool"),
        ("{propose: {tool: act, args: {y: 1}}}", "unknown-argument"),
        ("{propose: {tool: other}}", "missing-argument"),
        ("{propose: {tool: act, args: {x: '{state.fact}'}}}", "unknown-field"),
        ("{propose: {tool: act, args: {x: '{'}}}", "syntax"),
        ("{propose: {tool: act, args: {x: state.task}}}", "missing-braces"),
    ],
)
def test_mistakes_in_a_script_are_found_at_load(tmp_path: Path, entry: str, code: str) -> None:
    _, book = script(tmp_path, f"[{entry}]")
    assert code in [problem.code for problem in book.problems()]


# ---- recordings


def recorded(*events: Any, asking: tuple[str, ...] = ()) -> Recorded:
    return Recorded(Recording("id", "task", events), asking)


def test_a_recording_proposes_what_was_proposed_and_says_what_was_said(tmp_path: Path) -> None:
    _, book = script(tmp_path, "[]")
    engine = recorded(
        Call("act", {"x": 1}, "one", True, "c1"), UserMessage("hello"), Call("act", {"x": 1}, "two", True, "c1")
    )
    state, history = book.initial_state(), History()
    first = engine.propose(state, history, NOW)
    assert first == Proposal("act", {"x": 1}, "c1")
    assert isinstance(first, Proposal)
    assert engine.run(first) == Result(success=True, data="one")
    assert engine.propose(state, history, NOW) == Said("hello")
    second = engine.propose(state, history, NOW)
    assert isinstance(second, Proposal)
    assert engine.run(second) == Result(success=True, data="two")
    assert engine.propose(state, history, NOW) is None


@pytest.mark.parametrize(
    ("call", "result"),
    [
        (Call("act", {}), None),
        (Call("act", {}, '{"a": 1}', True), Result(success=True, data={"a": 1})),
        (Call("act", {}, "Error", True, succeeded=False), Result(success=False, data="Error", error="Error")),
        (Call("act", {}, '{"a": 1}', True, succeeded=False), Result(success=False, data={"a": 1}, error='{"a": 1}')),
        (Call("act", {}, {"a": 1}, True, succeeded=False), Result(success=False, data={"a": 1}, error="the recording says it failed")),
        (Call("act", {}, '{"success": false, "error": "no"}', True, succeeded=False), Result(success=False, error="no")),
        (Call("act", {}, "fine", True, succeeded=True), Result(success=True, data="fine")),
        (Call("ask", {}, '{"a": 1}', True), Result(success=True, data='{"a": 1}')),
    ],
)  # fmt: skip
def test_a_recorded_result_is_read_as_a_tool_s_and_by_what_the_log_says(
    tmp_path: Path, call: Call, result: Result | None
) -> None:
    _, book = script(tmp_path, "[]")
    engine = recorded(call, asking=("ask",))
    proposal = engine.propose(book.initial_state(), History(), NOW)
    assert isinstance(proposal, Proposal)
    assert engine.run(proposal) == result
