"""Training data: which steps teach something, what they are shown with, and what is never written."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ledgercli.export import Exported
from ledgercli.prompting.recorded import recorded
from tests.books import carry_out, scenario
from tests.commands import Run, command_line

NOW = "2026-08-01T12:00:00Z"
TOOLS = """
toolset: bank
redact: [login.args.code]
tools:
  login:
    access: read
    args: {code: {type: string}}
    run: {canned: [{result: {inside: true}}]}
    on_success: {set: {facts.inside: true}}
  look:
    access: read
    args: {id: {type: string}}
    run: {canned: [{args: {id: a}, result: {owner: lei}}]}
    on_success: {set: {"facts.accounts[action.args.id]": result.data}}
  pay:
    args: {amount: {type: integer}}
    run: {canned: [{result: {paid: true}}]}
  note:
    args: {text: {type: string}}
    run: {canned: [{result: {}}]}
"""
PACK = """
pack: bank
rules:
  - {name: small, tools: [pay], check: action.args.amount < 100}
  - {name: known, tools: [pay], check: "'a' in state.facts.accounts"}
  - {name: brief, tools: [note], check: size(action.args.text) < 5, on_fail: {effect: warn}}
  - {name: rare, tools: [note], mode: shadow, check: action.args.text != 'odd'}
  - {name: asks, tools: [look], check: action.args.id != 'b', on_fail: {effect: require_approval}}
"""


def run(folder: Path, *calls: str, **options: Any) -> Path:
    """Propose some calls in order, whatever comes of them, and end."""
    entries = [f"    - {{when: state.step == {number}, propose: {call}}}" for number, call in enumerate(calls)]
    text = "\n".join(["scenario: s", "toolset: t.tools.yaml", "packs: [p0.yaml]", "decide:", "  script:", *entries])
    out = folder / "w.ledger.jsonl"
    carry_out(scenario(folder, text + "\n", TOOLS, PACK), out, now=NOW, **options)
    return out


def exported(file: Path, to: str, calls: str = "tools") -> tuple[list[dict[str, Any]], Exported]:
    what = Exported()
    return [json.loads(line) for line in what.lines([str(file)], to, calls)], what  # type: ignore[arg-type]


def pay(amount: int) -> str:
    return f"{{tool: pay, args: {{amount: {amount}}}}}"


def look(name: str) -> str:
    return f"{{tool: look, args: {{id: {name}}}}}"


def note(text: str) -> str:
    return f"{{tool: note, args: {{text: {text}}}}}"


def call_of(message: dict[str, Any]) -> tuple[str, Any]:
    [call] = message["tool_calls"]
    assert (message["role"], message["content"], call["type"]) == ("assistant", None, "function")
    return call["function"]["name"], json.loads(call["function"]["arguments"])


def taught(samples: list[dict[str, Any]]) -> list[tuple[str, Any]]:
    return [call_of(sample["messages"][-1]) for sample in samples]


def preferred(samples: list[dict[str, Any]]) -> list[tuple[tuple[str, Any], tuple[str, Any]]]:
    return [(call_of(sample["rejected"][0]), call_of(sample["chosen"][0])) for sample in samples]


# ---- which steps


def test_what_passed_every_rule_and_succeeded_is_an_example_and_nothing_else(tmp_path):
    file = run(tmp_path, pay(5), look("x"), look("a"), pay(500), pay(5), note("long text"), note("odd"), note("ok"))
    samples, what = exported(file, "sft")
    assert taught(samples) == [("look", {"id": "a"}), ("pay", {"amount": 5}), ("note", {"text": "ok"})]
    assert (what.ledgers, what.samples, what.masked, what.damaged) == (1, 3, 0, [])


def test_what_shadow_mode_let_through_is_none(tmp_path):
    samples, _ = exported(run(tmp_path, look("a"), pay(500), pay(5), shadow=True), "sft")
    assert taught(samples) == [("look", {"id": "a"}), ("pay", {"amount": 5})]


def test_each_refusal_stands_beside_what_came_next_and_passed(tmp_path):
    file = run(tmp_path, pay(5), look("a"), pay(500), pay(700), pay(7), pay(8), pay(900), look("x"), pay(9))
    samples, _ = exported(file, "dpo")
    assert preferred(samples) == [
        (("pay", {"amount": 5}), ("look", {"id": "a"})),
        (("pay", {"amount": 500}), ("pay", {"amount": 7})),
        (("pay", {"amount": 700}), ("pay", {"amount": 7})),
    ]  # behind the last refusal a call failed


def test_what_waits_for_an_approval_is_no_refusal(tmp_path):
    file = run(tmp_path, look("b"), look("a"), approver=lambda _proposal, _verdict: (True, "lei"))
    samples, _ = exported(file, "dpo")
    assert samples == []


def test_what_a_recording_does_after_a_refusal_teaches_nothing(tmp_path):
    calls = [("look", {"id": "a"}), ("pay", {"amount": 500}), ("pay", {"amount": 5})]
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Pay."}]
    for number, (tool, args) in enumerate(calls):
        function = {"name": tool, "arguments": json.dumps(args)}
        call = {"id": str(number), "type": "function", "function": function}
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": str(number), "name": tool, "content": "{}"})
    (tmp_path / "chat.json").write_text(json.dumps({"id": "one", "messages": messages}))
    recording = "{recording: {file: chat.json, format: openai-chat}}"
    text = f"scenario: s\ntoolset: t.tools.yaml\npacks: [p0.yaml]\ndecide: {recording}\n"
    _, job, lines = carry_out(scenario(tmp_path, text, TOOLS, PACK), tmp_path / "kept")
    assert [line["outcome"] for line in lines if line["kind"] == "step"] == ["ok", "denied", "ok"]
    assert taught(exported(job.ledger, "sft")[0]) == [("look", {"id": "a"})]
    assert exported(job.ledger, "dpo")[0] == []


# ---- what they are shown with


def test_a_step_is_shown_as_a_model_would_have_been_shown_it(tmp_path):
    file = run(tmp_path, look("a"), pay(500), pay(5))
    samples, _ = exported(file, "sft")
    for step, sample in zip((1, 3), samples, strict=True):
        then = recorded(str(file), step - 1)
        prompt = then.prompter.prompt(then.state, then.history, then.now)
        shown = [message["content"] for message in sample["messages"][:-1]]
        assert without_time(shown) == without_time([message["content"] for message in prompt.messages])
        assert [tool["function"]["name"] for tool in sample["tools"]] == list(prompt.offered)
    [preference], _ = exported(file, "dpo")
    assert "Refused" not in preference["prompt"][-1]["content"]
    assert "accounts" in preference["prompt"][-1]["content"]
    assert "pay" in [tool["function"]["name"] for tool in preference["tools"]]


def without_time(texts: list[str]) -> list[str]:
    return [line for text in texts for line in text.splitlines() if not line.startswith("now = ")]


def test_a_call_may_stand_as_one_json_object(tmp_path):
    [sample], _ = exported(run(tmp_path, look("a")), "sft", "json_schema")
    assert set(sample) == {"messages"}
    assert json.loads(sample["messages"][-1]["content"]) == {"tool": "look", "args": {"id": "a"}}
    assert "JSON object" in sample["messages"][0]["content"]


def test_a_call_with_a_masked_argument_is_left_out_and_counted(tmp_path):
    file = run(tmp_path, "{tool: login, args: {code: s3cr3t-code}}", look("a"))
    samples, what = exported(file, "sft")
    assert taught(samples) == [("look", {"id": "a"})]
    assert what.masked == 1
    assert "s3cr3t" not in json.dumps(samples)
    assert "hmac" not in json.dumps(samples)


# ---- the command


@pytest.fixture
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Run]:
    with command_line(tmp_path, monkeypatch, capsys) as run:
        yield run


def test_a_damaged_ledger_is_named_and_the_others_are_exported(ledger):
    file = run(ledger.folder, look("a"), pay(5))
    whole = file.read_bytes()
    Path("broken.ledger.jsonl").write_bytes(whole.replace(b'"owner":"lei"', b'"owner":"mia"'))
    assert ledger("export", "--to", "sft", ".", "--out", "s.jsonl") == 2
    assert "left out: broken.ledger.jsonl:" in ledger.err
    assert "2 examples from 1 ledger" in ledger.err
    assert len(Path("s.jsonl").read_text().splitlines()) == 2
    assert ledger("export", "--to", "sft", "w.ledger.jsonl", "--out", "s.jsonl") == 2
    assert "s.jsonl exists" in ledger.err


def test_nothing_to_learn_is_a_no(ledger):
    run(ledger.folder, look("a"))
    assert ledger("export", "--to", "dpo", "w.ledger.jsonl") == 1
    assert (ledger.out, ledger.err) == ("", "0 preferences from 1 ledger\n")


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["--to", "sft"], "which ledgers?"),
        (["w.ledger.jsonl"], "missing option '--to'"),
        (["--to", "rlhf", "w.ledger.jsonl"], "'rlhf' is not one of"),
        (["--to", "sft", "nothing"], "no file nothing"),
    ],
)
def test_what_cannot_be_asked_is_said(ledger, arguments, why):
    assert ledger("export", *arguments) == 2
    assert why in ledger.err
