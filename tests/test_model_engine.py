"""A model decides: its calls go through the guard like any other, and what it says wrong comes back to it."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ledgercli.replay.verifying import replay
from ledgercli.shelf import Shelf
from tests.model_desk import DESK, FINISH, LOGIN, PAY, Model, calls, decided, desk, steps, taken_up, text, told


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return desk(tmp_path)


@pytest.fixture(autouse=True)
def everything_replays(tmp_path: Path):
    yield
    for ledger in tmp_path.glob("*.ledger.jsonl"):
        said = replay(ledger, Shelf())
        assert (said.divergence, said.untold) == (None, ())


def asked(lines: list[dict[str, Any]], at: int) -> Any:
    return lines[at].get("engine")


def test_each_call_is_judged_and_run_and_says_what_asking_took(file):
    model = Model(calls(LOGIN), calls(PAY), calls(FINISH))
    ended, lines = decided(file, model)
    assert (ended.status, steps(lines)) == ("completed", ["ok login", "ok pay", "ok finish"])
    assert told(lines) == [("step", 100), ("intent", 100), ("step", 100)]  # of a write its intent says it, once
    assert asked(lines, 1) == {
        "model": "openai/gpt-4o",
        "tokens": {"prompt": 100, "completion": 20},
        "cost": 0.01,
        "seconds": 0.25,
        "prompt": model.asked[0].digest,
    }


def test_several_calls_of_one_reply_are_judged_in_order_each_with_the_effects_of_those_before(file):
    ended, lines = decided(file, Model(calls(LOGIN, PAY, FINISH)))
    assert (ended.status, steps(lines)) == ("completed", ["ok login", "ok pay", "ok finish"])
    assert told(lines) == [("step", 100)]  # the first of them tells what the reply took
    ended, lines = decided(file, Model(calls(PAY, LOGIN, PAY, FINISH)), out="other")
    assert (ended.status, steps(lines)) == ("completed", ["denied pay", "ok login", "ok pay", "ok finish"])


def test_what_stands_behind_the_call_that_ends_the_run_is_never_proposed(file):
    _, lines = decided(file, Model(calls(LOGIN, FINISH, PAY)))
    assert steps(lines) == ["ok login", "ok finish"]


def test_a_denial_is_in_the_next_prompt(file):
    model = Model(calls(PAY), calls(LOGIN), calls(FINISH))
    decided(file, model)
    assert "Nobody is logged in." not in model.prompts[0]
    assert "Nobody is logged in." in model.prompts[1]
    assert "Nobody is logged in." not in model.prompts[2] or "lei" in model.prompts[2]


@pytest.mark.parametrize(
    ("reply", "kind", "feedback"),
    [
        (text("I would log in first."), "prose", "You wrote text, and nobody reads that."),
        (calls(("pay", '{"amount": 5')), "malformed", "The arguments of pay must be one JSON object, and are no JSON"),
        (calls(("pay", '"{}"')), "arguments", "The arguments of pay must be one JSON object, not text."),
        (calls(("pay", "[5]")), "arguments", "The arguments of pay must be one JSON object, not a list."),
        (calls(("pay", "null")), "arguments", "The arguments of pay must be one JSON object, not null."),
        (calls(LOGIN, finish="length"), "cut", "Your reply was cut at the token limit"),
        (calls(LOGIN, ("pay", "[]")), "arguments", "The arguments of pay must be one JSON object, not a list."),
    ],
    ids=["prose", "malformed", "text", "list", "null", "cut", "second"],
)
def test_a_reply_that_cannot_be_used_is_told_and_never_run(file, reply, kind, feedback):
    model = Model(reply, calls(FINISH))
    ended, lines = decided(file, model)
    assert (ended.status, steps(lines)) == ("completed", ["ok finish"])
    assert feedback in model.prompts[1]
    assert feedback not in model.prompts[0]
    (step,) = [line for line in lines if line["kind"] == "step"]
    assert step["engine"]["tokens"] == {"prompt": 200, "completion": 40}
    assert step["engine"]["prompt"] == model.asked[1].digest
    assert [fault["kind"] for fault in step["engine"]["faults"]] == [kind]
    assert step["engine"]["faults"][0]["said"] == reply.said


def test_after_three_in_a_row_the_run_ends_with_an_error(file):
    ended, lines = decided(file, Model(calls(LOGIN), text("One."), text("Two."), text("x" * 500)))
    assert (ended.status, ended.exit_code, steps(lines)) == ("error", 4, ["ok login"])
    assert ended.error is not None
    assert ended.error.startswith("openai/gpt-4o: 3 replies in a row could not be used; of the last it was told: You")
    assert [one["said"] for one in asked(lines, -1)["faults"]] == ["One.", "Two.", "x" * 200]
    assert told(lines) == [("step", 100), ("close", 300)]  # what led to no step stands with the end


def test_two_in_a_row_and_then_two_more_do_not(file):
    said = [text("a"), text("b"), calls(LOGIN), text("c"), text("d"), calls(FINISH)]
    ended, lines = decided(file, Model(*said))
    assert (ended.status, told(lines)) == ("completed", [("step", 300), ("step", 300)])


def test_an_unknown_tool_is_denied_like_any_call(file):
    model = Model(calls(("fly", "{}")), calls(FINISH))
    ended, lines = decided(file, model)
    assert (ended.status, steps(lines)) == ("completed", ["denied fly", "ok finish"])
    assert lines[1]["verdict"]["failed"][0]["rule"] == "unknown_tool"
    assert "fly" in model.prompts[1]


def test_arguments_that_no_line_can_hold_are_denied(file):
    odd = [("pay", '{"amount": 1e999}'), ("pay", '{"amount": "\\ud800"}')]
    _, lines = decided(file, Model(calls(*odd), calls(FINISH)))
    assert steps(lines) == ["denied pay", "denied pay", "ok finish"]


def test_once_the_money_is_spent_nothing_more_is_asked(file):
    model = Model(calls(LOGIN), calls(PAY), calls(FINISH))
    ended, lines = decided(file, model, max_cost=0.015)
    assert (ended.status, ended.limit, ended.exit_code) == ("limit", "max_cost", 3)
    assert (steps(lines), len(model.asked)) == (["ok login", "ok pay"], 2)


def test_what_was_spent_before_counts_where_the_run_goes_on(file):
    decided(file, Model(calls(LOGIN), calls(PAY)), max_cost=0.015)
    model = Model(calls(FINISH))
    assert (taken_up(file, model, max_cost=0.02).limit, model.asked) == ("max_cost", [])
    assert (taken_up(file, model, max_cost=0.025).status, len(model.asked)) == ("completed", 1)


def test_a_run_that_goes_on_sends_the_prompt_that_it_would_have_sent_without_a_break(file):
    said = [calls(PAY), text("Hm."), calls(LOGIN), calls(PAY), calls(FINISH)]
    whole = Model(*said)
    decided(file, whole, out="whole")
    file.write_text(file.read_text().replace("packs:", "constraints: {max_steps: 2}\npacks:"))
    first, then = Model(*said[:3]), Model(*said[3:])
    ended, _ = decided(file, first)
    assert ended.limit == "max_steps"
    taken_up(file, then, max_tokens=99, sets={"constraints.max_steps": 100})
    whole_again = [prompt.replace("constraints.max_steps = 100\n", "") for prompt in then.prompts]
    assert [*first.prompts, *whole_again] == whole.prompts


def test_replies_that_cannot_be_used_cost_too(file):
    ended, lines = decided(file, Model(text("a"), text("b"), text("c")), max_cost=0.02)
    assert (ended.limit, told(lines)) == ("max_cost", [("close", 200)])


def test_where_no_price_is_known_the_cost_is_null_and_no_limit_holds(file):
    _, lines = decided(file, Model(calls(FINISH), cost=None))
    assert asked(lines, 1)["cost"] is None
    ended, _ = decided(file, Model(calls(FINISH), cost=None), out="other", max_cost=1)
    assert (ended.status, steps(_)) == ("error", [])


def test_ctrl_c_while_the_model_is_asked_ends_the_run(file):
    ended, lines = decided(file, Model(text("a"), interrupts=2))
    assert (ended.status, ended.exit_code, told(lines)) == ("interrupted", 130, [("close", 100)])


def test_an_approved_call_is_run_without_asking_again(file):
    model = Model(calls(LOGIN), calls(("pay", '{"amount": 500}')), calls(FINISH))
    ended, lines = decided(file, model, approver=lambda _p, _v: (True, "mia"))
    assert (ended.status, len(model.asked)) == ("completed", 3)
    assert steps(lines) == ["ok login", "waiting pay", "ok pay", "ok finish"]
    assert told(lines) == [("step", 100), ("step", 100), ("step", 100)]


def test_a_no_is_told_to_the_model(file):
    model = Model(calls(LOGIN), calls(("pay", '{"amount": 500}')), calls(FINISH))
    _, lines = decided(file, model, approver=lambda _p, _v: (False, "mia"))
    assert steps(lines) == ["ok login", "waiting pay", "denied pay", "ok finish"]
    assert "Approval was refused." in model.prompts[2]


def test_the_first_line_says_who_proposes(file):
    _, lines = decided(file, Model(calls(FINISH)), temperature=0, max_tokens=50, api_key_env="DESK_KEY")
    assert lines[0]["engine"] == {
        "kind": "model", "model": "openai/gpt-4o", "api_key_env": "DESK_KEY", "temperature": 0, "timeout": 60.0,
        "max_tokens": 50, "calls": "tools", "stream": False, "offer": "permitted", "select": "relevant", "retries": 3,
    }  # fmt: skip


ARGUMENTS = st.sampled_from(
    ["{}", '{"user": "lei"}', '{"amount": 5}', '{"amount": 500}', "[]", "{", "null", '{"a": 1, "a": 2}']
)
CALL = st.tuples(st.sampled_from(["login", "pay", "finish", "fly", ""]), ARGUMENTS)
REPLY = st.builds(text, st.text(max_size=9)) | st.builds(
    lambda said, finish: calls(*said, finish=finish),
    st.lists(CALL, max_size=3),
    st.sampled_from(["tool_calls", "stop", "length"]),
)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(said=st.lists(REPLY, min_size=1, max_size=6), most=st.none() | st.sampled_from([0.01, 0.03]))
def test_whatever_a_model_says_the_run_ends_and_its_ledger_verifies_and_replays(file, said, most):
    for path in file.parent.glob("*.jsonl"):
        path.unlink()
    model = Model(*said, *[text("")] * 100)
    ended, lines = decided(file, model, max_cost=most)
    assert ended.status in ("completed", "limit", "error", "awaiting_approval")
    assert sum(line["engine"]["tokens"]["prompt"] for line in lines[1:] if "engine" in line) == 100 * len(model.asked)
    assert replay(file.parent / "run.ledger.jsonl", Shelf()).divergence is None


# ---- prompts


def test_the_digest_is_that_of_the_bytes_that_were_sent_and_prompts_are_kept_whole(file, tmp_path):
    model = Model(text("a"), calls(LOGIN), calls(FINISH))
    _, lines = decided(file, model, keep_prompts=True)
    kept = [json.loads(line) for line in (tmp_path / "run.prompts.jsonl").read_text().splitlines()]
    assert [one["prompt"] for one in kept] == [one.digest for one in model.asked]
    assert {line["engine"]["prompt"] for line in lines if line["kind"] == "step"} < {one["prompt"] for one in kept}
    for one, sent in zip(kept, model.asked, strict=True):
        assert {"messages": one["messages"], "tools": one["tools"]} == json.loads(json.dumps(sent.body))
    with pytest.raises(Exception, match=r"run\.prompts\.jsonl exists"):
        (tmp_path / "run.ledger.jsonl").unlink()
        decided(file, Model(calls(FINISH)), keep_prompts=True)


def test_the_tools_on_offer_are_sent_as_native_tools_or_as_one_schema(file):
    model = Model(calls(FINISH))
    decided(file, model)
    assert {one["function"]["name"] for one in model.asked[0].body["tools"]} >= {"login", "finish"}
    model = Model(text('{"tool": "finish", "args": {"answer": "Done."}}'))
    ended, _ = decided(file, model, out="other", calls="json_schema")
    assert ended.status == "completed"
    choices = model.asked[0].body["response_format"]["json_schema"]["schema"]["oneOf"]
    assert {one["properties"]["tool"]["const"] for one in choices} >= {"login", "finish"}
    assert all(one["required"] == ["tool", "args"] and not one["additionalProperties"] for one in choices)


# ---- keys and secrets


@pytest.mark.parametrize("said", [text("Your key is KEY."), calls(("login", '{"user": "KEY"}')), calls(("KEY", "{}"))])
def test_no_reply_with_the_key_in_it_is_used_or_written(file, tmp_path, monkeypatch, said):
    monkeypatch.setenv("OPENAI_API_KEY", "zq-5f1d77-not-like-one")
    key = os.environ["OPENAI_API_KEY"]
    whole = [(one.name.replace("KEY", key), one.arguments.replace("KEY", key)) for one in said.calls]
    reply = calls(*whole) if whole else text((said.content or "").replace("KEY", key))
    _, lines = decided(file, Model(reply, calls(FINISH)), keep_prompts=True)
    assert steps(lines) == ["ok finish"]
    assert lines[1]["engine"]["faults"][0]["kind"] == "key"
    assert "[key]" in lines[1]["engine"]["faults"][0]["said"]
    assert all(key not in path.read_text() for path in tmp_path.iterdir())


def test_what_a_toolset_hides_is_hidden_in_faults_and_kept_prompts(tmp_path):
    tools = DESK.replace("tools:", "redact: [login.args.user]\n    tools:", 1)
    model = Model(calls(("login", '{"user": "leilani"}')), text("As leilani I pay."), calls(FINISH))
    file = desk(tmp_path, tools=tools)
    _, lines = decided(file, model, keep_prompts=True)
    assert lines[-2]["engine"]["faults"][0]["said"].startswith("As [redacted ")
    assert "leilani" in model.prompts[1]  # the model sees what is known
    kept = (tmp_path / "run.prompts.jsonl").read_text().splitlines()
    assert not any("leilani" in path.read_text() for path in tmp_path.glob("*.jsonl"))
    assert [json.loads(line).get("masked", False) for line in kept] == [False, True, True]
