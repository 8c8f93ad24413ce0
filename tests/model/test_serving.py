"""A model behind a server: whatever the server does, the run ends as said, its ledger holds, and no key is anywhere."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.books import kept
from tests.commands import ROOT, Run, command_line
from tests.model_desk import desk, steps
from tests.model_server import ModelServer, Reply

pytestmark = [
    pytest.mark.model,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # litellm keeps connections for the next request
    pytest.mark.skipif(importlib.util.find_spec("litellm") is None, reason="litellm is not installed"),
]
KEY = "zq-4c7e-desk-key-91ab"  # looks like no provider's, so that only its value can give it away
LOGIN, PAY = ("login", '{"user": "lei"}'), ("pay", '{"amount": 5}')
DONE = Reply(calls=[("finish", '{"answer": "Paid."}')])


def objects(*calls: tuple[str, str]) -> list[Reply]:
    return [Reply(content=f'{{"tool": "{tool}", "args": {args}}}') for tool, args in calls]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Run]:
    """The command line where the desk is; afterwards every ledger verifies and replays, and no key is in any file."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    desk(tmp_path)
    with command_line(tmp_path, monkeypatch, capsys) as one:
        yield one
        for ledger in tmp_path.glob("*.ledger.jsonl"):
            assert one("validate", ledger.name) == 0, one.out + one.err
            assert one("replay", ledger.name) == 0, one.out + one.err
        for path in tmp_path.rglob("*"):
            assert not path.is_file() or KEY not in path.read_text(), path


def decided(run: Run, *replies: Reply, options: tuple[str, ...] = (), out: str = "w") -> tuple[int, ModelServer]:
    """Run the desk's scenario with a model that says this, and look for its key in what was printed."""
    with ModelServer(*replies) as server:
        code = run("run", "s.yaml", "--api-base", server.base, "--out", f"{out}.ledger.jsonl", "-vv", *options)
    assert KEY not in run.out + run.err
    assert run.err == "" or run.err.startswith("next: ")  # litellm says nothing
    assert all(key == f"Bearer {KEY}" for key in server.keys)
    return code, server


def close(run: Run) -> dict[str, Any]:
    return run.lines[-1]


STREAMED = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])


@pytest.fixture
def streamed(tmp_path: Path, run: Run, stream: bool) -> bool:
    file = tmp_path / "s.yaml"
    file.write_text(
        file.read_text().replace("model: openai/gpt-4o", f"model: openai/gpt-4o, stream: {str(stream).lower()}")
    )
    return stream


# ---- replies


@STREAMED
def test_native_tools(run, streamed):
    code, server = decided(run, Reply(calls=[LOGIN]), Reply(calls=[PAY]), DONE)
    assert (code, steps(run.lines)) == (0, ["ok login", "ok pay", "ok finish"])
    assert [bool(request.get("stream")) for request in server.requests] == [streamed] * 3
    assert {one["function"]["name"] for one in server.requests[0]["tools"]} >= {"login", "finish"}
    first = run.lines[1]["engine"]
    assert first["tokens"] == {"prompt": 100, "completion": 20}
    assert first["cost"] > 0
    assert run.lines[1]["action"]["call_id"] == "call_0"


@STREAMED
def test_one_object_by_json_schema(run, streamed):
    code, server = decided(run, *objects(LOGIN, PAY, DONE.calls[0]), options=("--calls", "json_schema"))
    assert (code, steps(run.lines)) == (0, ["ok login", "ok pay", "ok finish"])
    assert "tools" not in server.requests[0]
    schema = server.requests[0]["response_format"]["json_schema"]["schema"]
    assert {one["properties"]["tool"]["const"] for one in schema["oneOf"]} >= {"login", "finish"}


def test_auto_asks_for_what_litellm_says_that_the_model_can_do(run):
    code, server = decided(run, *objects(DONE.calls[0]), options=("--model", "openai/nobodys"))
    assert (code, "response_format" in server.requests[0]) == (0, True)
    assert run.lines[0]["engine"]["calls"] == "json_schema"
    assert run.lines[1]["engine"]["cost"] is None  # no price is known


@STREAMED
def test_several_calls_at_once_are_judged_in_order(run, streamed):
    code, server = decided(run, Reply(calls=[PAY, LOGIN, PAY, DONE.calls[0]]))
    assert (code, len(server.requests)) == (0, 1)
    assert steps(run.lines) == ["denied pay", "ok login", "ok pay", "ok finish"]


WRONG = {
    "malformed": (Reply(calls=[("login", '{"user": "lei"')]), "malformed", "are no JSON"),
    "text": (Reply(calls=[("login", '"{\\"user\\": \\"lei\\"}"')]), "arguments", "not text"),
    "list": (Reply(calls=[("login", '["lei"]')]), "arguments", "not a list"),
    "null": (Reply(calls=[("login", "null")]), "arguments", "not null"),
    "prose": (Reply(content="I will log in now."), "prose", "You wrote text"),
    "cut": (Reply(calls=[LOGIN], finish="length"), "cut", "cut at the token limit"),
    "twice": (Reply(calls=[("login", '{"user": "lei", "user": "mia"}')]), "malformed", "twice"),
    "empty": (Reply(), "empty", "Your reply was empty"),
    "second": (Reply(calls=[LOGIN, ("pay", "[]")]), "arguments", "arguments of pay"),
}


@STREAMED
@pytest.mark.parametrize("what", WRONG)
def test_a_reply_that_cannot_be_used_comes_back_and_is_never_run(run, streamed, what):
    reply, kind, feedback = WRONG[what]
    code, server = decided(run, reply, DONE)
    assert (code, steps(run.lines)) == (0, ["ok finish"])
    assert [fault["kind"] for fault in run.lines[1]["engine"]["faults"]] == [kind]
    first, second = (json.dumps(request["messages"]) for request in server.requests)
    assert feedback in second
    assert feedback not in first


@pytest.mark.parametrize(
    "content", ['{"tool": "login", "args": "{}"}', '{"tool": "login", "args": ["lei"]}', "login lei", "null"]
)
def test_by_json_schema_too(run, content):
    code, _ = decided(run, Reply(content=content), *objects(DONE.calls[0]), options=("--calls", "json_schema"))
    assert (code, steps(run.lines), len(run.lines[1]["engine"]["faults"])) == (0, ["ok finish"], 1)


def test_three_such_replies_in_a_row_end_the_run(run):
    code, server = decided(run, Reply(content="No."))
    assert (code, len(server.requests), steps(run.lines)) == (4, 3, [])
    assert close(run)["status"] == "error"
    assert "3 replies in a row could not be used" in close(run)["error"]
    assert "3 replies in a row could not be used" in run.out


def test_an_unknown_tool_is_denied_on_the_ledger_and_told(run):
    code, server = decided(run, Reply(calls=[("fly", '{"to": "Rome"}')]), DONE)
    assert (code, steps(run.lines)) == (0, ["denied fly", "ok finish"])
    assert "fly" in json.dumps(server.requests[1]["messages"])


# ---- servers


def test_where_it_is_busy_it_is_asked_again_after_what_it_says(run):
    code, server = decided(run, Reply(status=429, headers={"Retry-After": "1"}), DONE)
    assert (code, len(server.requests)) == (0, 2)
    assert 1.0 <= server.times[1] - server.times[0] < 2.5


def test_what_wants_to_be_left_alone_for_long_is(run):
    began = time.monotonic()
    code, server = decided(run, Reply(status=429, error="Slow down.", headers={"Retry-After": "3600"}))
    assert (code, len(server.requests)) == (4, 1)
    assert close(run)["error"].startswith("openai/gpt-4o: the server wants fewer requests (rate limit): Slow down.")
    assert "asked again after 3600 s" in close(run)["error"]
    assert time.monotonic() - began < 20


def test_a_server_that_fails_is_asked_again_with_longer_waits_and_no_more_than_it_may(run, tmp_path):
    code, server = decided(run, Reply(status=500), Reply(status=503), DONE)
    assert (code, len(server.requests), steps(run.lines)) == (0, 3, ["ok finish"])
    file = tmp_path / "s.yaml"
    file.write_text(file.read_text().replace("model: openai/gpt-4o", "model: openai/gpt-4o, retries: 1"))
    code, server = decided(run, Reply(status=500, error="Oops."), out="x")
    assert (code, len(server.requests)) == (4, 2)
    assert "openai/gpt-4o: the server failed: Oops. (asked 2 times)" in run.out


def retries(tmp_path: Path, number: int) -> None:
    file = tmp_path / "s.yaml"
    file.write_text(file.read_text().replace("model: openai/gpt-4o", f"model: openai/gpt-4o, retries: {number}"))


@STREAMED
def test_a_hang_is_ended_by_the_timeout(run, streamed, tmp_path):
    retries(tmp_path, 0)
    began = time.monotonic()
    code, server = decided(run, Reply(hang=30), options=("--timeout", "0.5"))
    assert (code, len(server.requests)) == (4, 1)
    assert "no whole reply came in time" in close(run)["error"]
    assert time.monotonic() - began < 10


def test_a_server_that_says_a_little_now_and_then_is_left_too(run, tmp_path):
    file = tmp_path / "s.yaml"
    file.write_text(file.read_text().replace("model: openai/gpt-4o", "model: openai/gpt-4o, stream: true, retries: 0"))
    began = time.monotonic()
    code, _ = decided(run, Reply(content="x" * 700, trickle=0.3), options=("--timeout", "1"))
    assert (code, time.monotonic() - began < 10) == (4, True)
    assert "no whole reply came in time: 1 s" in close(run)["error"]


@STREAMED
@pytest.mark.parametrize("cut", [0, 3])
def test_a_connection_that_is_cut_off_is_told_and_nothing_of_the_reply_is_run(run, streamed, tmp_path, cut):
    retries(tmp_path, 1)
    code, server = decided(run, Reply(calls=[LOGIN], cut=cut))
    assert (code, len(server.requests), steps(run.lines)) == (4, 2, [])
    assert "the connection was cut off" in close(run)["error"]
    code, server = decided(run, Reply(calls=[LOGIN], cut=cut), DONE, out="x")
    assert (code, len(server.requests)) == (0, 2)


def test_a_server_that_is_not_there(run, tmp_path):
    retries(tmp_path, 0)
    code = run("run", "s.yaml", "--api-base", "http://127.0.0.1:9/v1", "--out", "w.ledger.jsonl")
    assert (code, close(run)["error"][:47]) == (4, "openai/gpt-4o: the server cannot be reached: Co")


FATAL = {
    "context": (
        Reply(status=400, error="This model's maximum context length is 128 tokens.", code="context_length_exceeded"),
        "the prompt is longer than the model's context",
    ),
    "key": (Reply(status=401, error=f"Incorrect API key provided: {KEY}"), "the key was refused"),
    "forbidden": (Reply(status=403, error=f"Not with Bearer {KEY}"), "the key was refused"),
    "model": (Reply(status=404, error="The model gpt-4o does not exist"), "the server knows no such model"),
    "refused": (Reply(status=400, error="tools: too many"), "the server refused the request"),
}


@STREAMED
@pytest.mark.parametrize("what", FATAL)
def test_what_cannot_come_right_ends_the_run_at_once(run, streamed, what):
    reply, error = FATAL[what]
    code, server = decided(run, reply)
    assert (code, len(server.requests), steps(run.lines)) == (4, 1, [])
    assert close(run)["error"].startswith(f"openai/gpt-4o: {error}: ")
    if what in ("key", "forbidden"):
        assert "[key]" in close(run)["error"]


# ---- before anything runs


def refused(run: Run, folder: Path, *options: str) -> tuple[int, str]:
    code = run("run", "s.yaml", "--out", "w.ledger.jsonl", *options)
    assert not list(folder.glob("*.jsonl"))
    return code, run.err


def test_without_a_key_nothing_begins(run, tmp_path, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY")
    assert refused(run, tmp_path) == (4, "error: no key for openai: OPENAI_API_KEY is not set\n")
    for model, key in (
        ("gemini/gemini-x", "GOOGLE_API_KEY or GEMINI_API_KEY"),
        ("anthropic/claude-x", "ANTHROPIC_API_KEY"),
    ):
        provider = model.partition("/")[0]
        assert refused(run, tmp_path, "--model", model) == (4, f"error: no key for {provider}: {key} is not set\n")
    file = tmp_path / "s.yaml"
    file.write_text(file.read_text().replace("model: openai/gpt-4o", "model: openai/gpt-4o, api_key_env: DESK_KEY"))
    assert refused(run, tmp_path) == (4, "error: no key for openai: DESK_KEY is not set\n")


def test_a_server_of_ones_own_needs_no_key(run, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY")
    with ModelServer(DONE) as server:
        assert run("run", "s.yaml", "--api-base", server.base, "--out", "w.ledger.jsonl") == 0
    assert server.keys == ["Bearer none"]


def test_the_key_of_the_variable_that_is_named_is_sent(run, tmp_path, monkeypatch):
    monkeypatch.setenv("DESK_KEY", "another-key-of-the-desk")
    file = tmp_path / "s.yaml"
    file.write_text(file.read_text().replace("model: openai/gpt-4o", "model: openai/gpt-4o, api_key_env: DESK_KEY"))
    with ModelServer(Reply(status=401, error="No: another-key-of-the-desk"), DONE) as server:
        assert run("run", "s.yaml", "--api-base", server.base, "--out", "w.ledger.jsonl", "-vv") == 4
    assert server.keys == ["Bearer another-key-of-the-desk"]
    assert "another-key" not in run.out + run.err + (tmp_path / "w.ledger.jsonl").read_text()


def test_a_model_without_a_provider_and_a_limit_without_a_price_are_refused(run, tmp_path):
    code, said = refused(run, tmp_path, "--model", "nobody")
    assert (code, said.splitlines()[0]) == (2, "error: litellm knows no provider of the model nobody")
    code, said = refused(run, tmp_path, "--model", "openai/nobodys", "--max-cost", "1")
    assert (code, said.splitlines()[0]) == (
        2,
        "error: no price is known for openai/nobodys, so nothing can hold max_cost",
    )


# ---- runs


def test_the_cost_limit_stops_the_run(run):
    code, server = decided(run, Reply(calls=[LOGIN]), Reply(calls=[PAY]), DONE, options=("--max-cost", "0.0006"))
    assert (code, len(server.requests), close(run)["limit"]) == (3, 2, "max_cost")
    code, _ = decided(run, DONE, options=("--max-cost", "1"), out="x")
    assert code == 0


def test_a_model_takes_the_place_of_a_script(run, tmp_path):
    file = tmp_path / "s.yaml"
    file.write_text(
        file.read_text().replace(
            "{model: {model: openai/gpt-4o}}", "{script: [{propose: {tool: pay, args: {amount: 1}}}]}"
        )
    )
    code, _ = decided(run, Reply(calls=[LOGIN]), DONE, options=("--model", "openai/gpt-4o"))
    assert (code, steps(run.lines)) == (0, ["ok login", "ok finish"])
    assert run("run", "s.yaml", "--temperature", "0") == 2
    assert "--temperature goes with a model, and desk has a script" in run.err


def test_a_run_goes_on_where_it_was_with_the_very_prompt_that_it_would_have_sent(run):
    said = [Reply(calls=[LOGIN]), Reply(content="Hm."), Reply(calls=[PAY]), DONE]
    code, whole = decided(run, *said, out="x")
    code, first = decided(run, *said, options=("--max-steps", "1"))
    assert (code, close(run)["limit"]) == (3, "max_steps")
    with ModelServer(*said[1:]) as then:
        code = run("run", "--resume", "w.ledger.jsonl", "--set", "constraints.max_steps=100", "--api-base", then.base)
    assert (code, steps(run.lines)) == (0, ["ok login", "ok pay", "ok finish"])
    assert [one["messages"] for one in whole.requests] == [one["messages"] for one in first.requests + then.requests]
    (again,) = [line for line in run.lines if line["kind"] == "resume"]
    assert again["engine"]["api_base"] == then.base  # who proposes is another server from here on


def test_a_call_that_was_approved_elsewhere_is_run_without_asking_for_it_again(run):
    with ModelServer(Reply(calls=[LOGIN]), Reply(calls=[("pay", '{"amount": 500}')]), DONE) as server:
        assert run("run", "s.yaml", "--api-base", server.base, "--out", "w.ledger.jsonl") == 3
        assert run("approve", "w.ledger.jsonl", "--yes", "--by", "mia") == 0
        assert run("run", "--resume", "w.ledger.jsonl") == 0
    assert steps(run.lines) == ["ok login", "waiting pay", "ok pay", "ok finish"]
    assert len(server.requests) == 3
    assert all("engine" not in line for line in run.lines if line["kind"] == "resume")  # the same is asked as before


def test_the_engine_changes_where_a_run_goes_on_with_another(run, tmp_path):
    file = tmp_path / "s.yaml"
    script = "{script: [{when: '!has(state.facts.user)', propose: {tool: login, args: {user: lei}}}]}"
    file.write_text(file.read_text().replace("{model: {model: openai/gpt-4o}}", script))
    assert run("run", "s.yaml", "--out", "w.ledger.jsonl") == 1  # no next step
    with ModelServer(Reply(calls=[PAY]), DONE) as server:
        options = ("--model", "openai/gpt-4o", "--api-base", server.base)
        assert run("run", "--resume", "w.ledger.jsonl", *options) == 0
        assert run("run", "--from", "w.ledger.jsonl@1", "--out", "x.ledger.jsonl", *options) == 0
    assert steps(run.lines) == ["ok login", "ok pay", "ok finish"]
    assert steps(kept(tmp_path / "x.ledger.jsonl")) == ["ok finish"]


def test_a_difference_in_what_asking_took_is_none(run):
    decided(run, Reply(calls=[LOGIN]), DONE)
    decided(
        run,
        Reply(content="Hm."),
        Reply(calls=[LOGIN], usage={"prompt_tokens": 9, "completion_tokens": 9, "total_tokens": 18}),
        DONE,
        out="x",
    )
    one, two = (json.loads((run.folder / f"{name}.ledger.jsonl").read_text().splitlines()[1]) for name in "wx")
    assert one["engine"] != two["engine"]
    assert run("diff", "w.ledger.jsonl", "x.ledger.jsonl") == 0
    assert run.out.splitlines()[0].startswith("engine differs: A openai/gpt-4o (api_base http://127.0.0.1:")
    assert run.out.endswith("same: 2 steps\n")
    assert run("why", "w.ledger.jsonl@1") == 0
    assert run("list", ".") == 0


def test_ctrl_c_ends_the_run_while_the_model_is_asked(run, tmp_path):
    with ModelServer(Reply(hang=60)) as server:
        command = [
            sys.executable,
            "-m",
            "ledgercli",
            "run",
            "s.yaml",
            "--api-base",
            server.base,
            "--out",
            "w.ledger.jsonl",
        ]
        child = subprocess.Popen(
            command,
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        until = time.monotonic() + 60
        while not server.requests and time.monotonic() < until:
            time.sleep(0.05)
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=10)
    assert child.returncode == 130, err
    assert close(run)["status"] == "interrupted"
    assert b"Traceback" not in out + err
