"""Recorded transcripts of four formats, and of none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ledgercli import foreign
from ledgercli.errors import UnreadableInputError
from ledgercli.recordings import FORMATS, Call, UserMessage, read

DATA = Path(__file__).parents[2] / "shared" / "data"
needs_data = pytest.mark.skipif(not DATA.exists(), reason="the recorded runs are not here")


def call(name: str, arguments: Any, call_id: str | None = "c1") -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def asks(*calls: dict[str, Any]) -> dict[str, Any]:
    return {"role": "assistant", "content": None, "tool_calls": list(calls)}


def answers(content: Any, call_id: str | None = "c1", **more: Any) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": content, **more}


def chat(tmp_path: Path, *messages: Any) -> Any:
    file = tmp_path / "chat.json"
    file.write_text(json.dumps(list(messages)))
    (recording,) = read(file, "openai-chat")
    return recording


def problem(file: Path, form: str) -> str:
    with pytest.raises(UnreadableInputError) as caught:
        list(read(file, form))
    return str(caught.value).replace(str(file), "FILE")


class TestSharedData:
    pytestmark = needs_data

    def test_the_native_airline_runs_give_the_calls_and_results_of_the_prepared_ones(self):
        native = {
            run.meta["task_id"]: run for run in read(DATA / "native/tau1_gpt-4o-airline_first8.json", "tau-bench")
        }
        prepared = [
            run
            for run in read(DATA / "trajectories/airline1_gpt-4o.jsonl", "trajectories")
            if run.meta["trial"] == 0 and int(run.meta["task_id"]) in native
        ]
        assert len(prepared) == len(native) == 8
        for run in prepared:
            twin = native[int(run.meta["task_id"])]
            assert [(c.tool, c.args, c.result) for c in run.calls] == [(c.tool, c.args, c.result) for c in twin.calls]
            assert run.task in {twin.task, ""}

    def test_the_native_retail_runs_give_the_calls_and_results_of_the_prepared_ones(self):
        native = {
            (run.meta["task_id"], run.meta["trial"]): run
            for run in read(DATA / "native/tau2_gpt-4o_retail_first5.json", "tau2-bench")
        }
        prepared = {
            (run.meta["task_id"], run.meta["trial"]): run
            for run in read(DATA / "trajectories/retail2_gpt-4o_debug.jsonl", "trajectories")
        }
        assert len(native) == 5
        for key, run in native.items():
            assert [(c.tool, c.args, c.result, c.succeeded) for c in run.calls] == [
                (c.tool, c.args, c.result, c.succeeded) for c in prepared[key].calls
            ]

    @pytest.mark.parametrize(
        ("name", "runs", "calls", "by_user"),
        [
            ("airline1_gpt-4o", 200, 1164, 0),
            ("airline1_llama3.1-8b-il", 146, 1828, 0),
            ("retail2_gpt41mini", 114, 896, 132),
            ("telehealth_trait_gpt-5_eventasks", 50, 454, 0),
        ],
    )
    def test_every_run_and_call_of_the_shared_trajectories_comes_through(self, name, runs, calls, by_user):
        found = list(read(DATA / "trajectories" / f"{name}.jsonl", "trajectories"))
        assert len(found) == runs
        assert len({run.id for run in found}) == runs
        assert sum(len(run.calls) for run in found) == calls
        assert sum(len(run.user_calls) for run in found) == by_user
        assert all(c.answered for run in found for c in run.calls)


class TestConversations:
    def test_the_first_user_message_is_the_task_and_later_ones_are_events(self, tmp_path):
        run = chat(
            tmp_path,
            {"role": "system", "content": "Be kind."},
            {"role": "user", "content": "Hello"},
            asks(call("look", '{"at": 1}')),
            answers("seen"),
            {"role": "user", "content": "Thanks"},
        )
        assert run.task == "Hello"
        assert run.events == (Call("look", {"at": 1}, "seen", answered=True, call_id="c1"), UserMessage("Thanks"))

    def test_a_run_in_which_the_user_says_nothing_has_an_empty_task(self, tmp_path):
        assert chat(tmp_path, asks(call("look", "{}"))).task == ""

    def test_several_calls_of_one_message_stay_in_order_when_results_come_in_another(self, tmp_path):
        run = chat(
            tmp_path,
            asks(call("a", "{}", "1"), call("b", "{}", "2")),
            answers("of b", "2"),
            answers("of a", "1"),
        )
        assert [(c.tool, c.result) for c in run.calls] == [("a", "of a"), ("b", "of b")]

    def test_an_id_that_repeats_is_told_apart_by_name_and_order(self, tmp_path):
        run = chat(
            tmp_path,
            asks(call("a", '{"n": 1}', "x"), call("b", "{}", "x"), call("a", '{"n": 2}', "x")),
            answers("first a", "x", name="a"),
            answers("second a", "x", name="a"),
            answers("b", "x", name="b"),
            asks(call("a", '{"n": 3}', "x")),
            answers("third a", "x", name="a"),
        )
        assert [c.result for c in run.calls] == ["first a", "b", "second a", "third a"]

    def test_a_result_goes_to_the_newest_message_that_can_take_it(self, tmp_path):
        run = chat(tmp_path, asks(call("a", "{}", "x")), asks(call("a", "{}", "x")), answers("late", "x"))
        assert [(c.answered, c.result) for c in run.calls] == [(False, None), (True, "late")]

    def test_the_form_before_tool_calls_is_read_by_name(self, tmp_path):
        run = chat(
            tmp_path,
            {"role": "assistant", "content": "", "function_call": {"name": "a", "arguments": "{}"}},
            {"role": "function", "name": "a", "content": "done"},
        )
        assert run.calls == (Call("a", {}, "done", answered=True),)

    @pytest.mark.parametrize("arguments", ["", "  ", None, "{}", {}])
    def test_no_arguments_are_an_empty_object(self, tmp_path, arguments):
        assert chat(tmp_path, asks(call("a", arguments))).calls[0].args == {}

    def test_content_in_parts_is_joined(self, tmp_path):
        parts = [{"type": "text", "text": "a"}, {"type": "image_url", "image_url": {}}, {"type": "text", "text": "b"}]
        run = chat(tmp_path, {"role": "user", "content": parts}, asks(call("a", "{}")), answers(None))
        assert run.task == "ab"
        assert run.calls[0].result == ""

    def test_calls_of_the_user_stand_apart(self, tmp_path):
        file = tmp_path / "tau2.json"
        flat = {"id": "u", "name": "toggle", "arguments": {"on": True}, "requestor": "user"}
        messages = [
            {"role": "user", "content": "Hi"},
            {"role": "user", "content": None, "tool_calls": [flat]},
            {"role": "tool", "id": "u", "content": "on", "requestor": "user", "error": False},
            {"role": "assistant", "content": None, "tool_calls": [{**flat, "requestor": "assistant", "name": "read"}]},
            {"role": "tool", "id": "u", "content": "no such", "requestor": "assistant", "error": True},
        ]
        file.write_text(json.dumps({"simulations": [{"task_id": 4, "trial": 2, "messages": messages}]}))
        (run,) = read(file, "tau2-bench")
        assert run.id == "4/2"
        assert run.events == (Call("read", {"on": True}, "no such", answered=True, call_id="u", succeeded=False),)
        assert run.user_calls == (Call("toggle", {"on": True}, "on", answered=True, call_id="u", succeeded=True),)


class TestFiles:
    MESSAGES = ({"role": "user", "content": "Hi"}, asks(call("a", "{}")), answers("x"))

    @pytest.mark.parametrize(
        ("text", "ids"),
        [
            (json.dumps(MESSAGES), ["1"]),
            (json.dumps(MESSAGES, indent=2), ["1"]),
            (json.dumps({"id": "run-7", "messages": MESSAGES}, indent=1), ["run-7"]),
            ("\ufeff" + json.dumps({"id": "run-7", "messages": MESSAGES}), ["run-7"]),
            (json.dumps([{"messages": MESSAGES}, {"messages": MESSAGES}], indent=1), ["1", "2"]),
            (json.dumps([{"messages": MESSAGES}, {"messages": MESSAGES}]), ["1", "2"]),
            (f"\n{json.dumps(MESSAGES)}\r\n\n{json.dumps({'id': 'b', 'messages': MESSAGES})}\n", ["1", "b"]),
        ],
    )
    def test_chat_messages_are_read_from_a_list_an_object_or_lines(self, tmp_path, text, ids):
        file = tmp_path / "chat"
        file.write_text(text, encoding="utf-8")
        runs = list(read(file, "openai-chat"))
        assert [run.id for run in runs] == ids
        assert all(len(run.calls) == 1 and run.task == "Hi" for run in runs)

    def test_ids_that_would_name_the_same_ledger_are_told_apart(self, tmp_path):
        file = tmp_path / "runs.jsonl"
        file.write_text(
            "".join(json.dumps({"trajectory_id": name, "steps": []}) + "\n" for name in ("a/1", "a-1", "a/1"))
        )
        assert [run.id for run in read(file, "trajectories")] == ["a/1", "a-1.2", "a/1.3"]

    def test_lines_are_read_as_they_are_asked_for(self, tmp_path):
        file = tmp_path / "runs.jsonl"
        file.write_text(json.dumps({"trajectory_id": "good", "steps": []}) + "\n{broken\n")
        runs = read(file, "trajectories")
        assert next(runs).id == "good"
        with pytest.raises(UnreadableInputError, match=r"runs\.jsonl:2: not JSON"):
            next(runs)

    def test_a_line_beyond_the_bound_is_refused(self, tmp_path, monkeypatch):
        monkeypatch.setattr(foreign, "MAX_LINE", 100)
        file = tmp_path / "runs.jsonl"
        file.write_text('{"steps": []}\n' + "x" * 200)
        assert problem(file, "trajectories") == "FILE:2: a line longer than 100 bytes"

    def test_a_document_beyond_the_bound_is_refused(self, tmp_path, monkeypatch):
        monkeypatch.setattr(foreign, "MAX_DOCUMENT", 100)
        file = tmp_path / "runs.json"
        file.write_text("[" + " " * 200 + "]")
        assert problem(file, "tau-bench") == "FILE: longer than 100 bytes"


def tau1(*messages: Any) -> str:
    return json.dumps([{"task_id": 1, "traj": []}, {"task_id": 2, "traj": list(messages)}])


def steps(*items: Any) -> str:
    return json.dumps({"trajectory_id": "t", "steps": list(items)})


@pytest.mark.parametrize(
    ("form", "text", "message"),
    [
        ("tau-bench", "{", "FILE:1:2: not JSON: unexpected end of data"),
        ("tau-bench", '{"simulations": []}', "FILE: not a list of runs with `traj`"),
        ("tau-bench", "[3]", "FILE: run 1: not an object with a list `traj`"),
        ("tau2-bench", "[]", "FILE: not `simulations`, a list of runs with `messages`"),
        ("tau2-bench", '{"simulations": [{}]}', "FILE: run 1: not an object with a list `messages`"),
        ("trajectories", "[1]", "FILE:1: not an object with `steps`"),
        ("trajectories", "null", "FILE:1: not JSON: line contains null value"),
        ("trajectories", steps("x"), "FILE:1, step 1: not an object"),
        ("trajectories", steps({"args": {}}), "FILE:1, step 1: a call without the name of its tool"),
        ("trajectories", steps({"tool": "a", "args": [1]}), "FILE:1, step 1: arguments are not an object but list"),
        ("trajectories", '{"trajectory_id": "..", "steps": []}', "FILE:1: the run's id cannot name a file: '..'"),
        ("trajectories", '{"trajectory_id": "a\\nb", "steps": []}', "FILE:1: the run's id cannot name a file: 'a\\nb'"),
        ("trajectories", '{"trajectory_id": ["a"], "steps": []}', "FILE:1: the run's id cannot name a file: ''"),
        ("openai-chat", '{"traj": []}', "FILE:1: neither a list of messages nor an object with `messages`"),
        ("openai-chat", "[1,\n2", "FILE:2:2: not JSON: unexpected end of data"),
        ("tau-bench", tau1("x"), "FILE: run 2, message 1: not an object"),
        ("tau-bench", tau1({"role": "critic"}), "FILE: run 2, message 1: unknown role 'critic'"),
        ("tau-bench", tau1({"content": "?"}), "FILE: run 2, message 1: unknown role None"),
        ("tau-bench", tau1(answers("x", "c9", name="a")), "FILE: run 2, message 1: a result without a call: a c9"),
        ("tau-bench", tau1(answers("x", None)), "FILE: run 2, message 1: a result without a call: no id, no name"),
        (
            "tau-bench",
            tau1(asks(call("a", "{}")), answers("x", name="b")),
            "FILE: run 2, message 2: a result without a call: b c1",
        ),
        (
            "tau-bench",
            tau1(asks(call("a", "{}")), answers("x"), answers("again")),
            "FILE: run 2, message 3: a result without a call: c1",
        ),
        ("tau-bench", tau1(asks(call("a", '{"x": '))), "FILE: run 2, message 1, call 1: arguments are not JSON: "),
        (
            "tau-bench",
            tau1(asks(call("a", "[]"))),
            "FILE: run 2, message 1, call 1: arguments are not an object but list",
        ),
        ("tau-bench", tau1(asks(call("a", 5))), "FILE: run 2, message 1, call 1: arguments are not an object but int"),
        (
            "tau-bench",
            tau1(asks({"id": "x", "function": None})),
            "FILE: run 2, message 1, call 1: not an object with a ",
        ),
        (
            "tau-bench",
            tau1(asks(call("", "{}"))),
            "FILE: run 2, message 1, call 1: a call without the name of its tool",
        ),
        (
            "tau-bench",
            tau1({"role": "assistant", "tool_calls": {}}),
            "FILE: run 2, message 1: `tool_calls` is not a list",
        ),
        (
            "tau-bench",
            tau1({"role": "user", "content": 5}),
            "FILE: run 2, message 1: content is neither text nor a list",
        ),
        (
            "tau-bench",
            tau1({"role": "user", "content": ["x"]}),
            "FILE: run 2, message 1: a part of the content is not an",
        ),
    ],
)
def test_what_cannot_be_read_is_an_error_that_names_file_and_place(tmp_path, form, text, message):
    file = tmp_path / "file"
    file.write_text(text)
    assert problem(file, form).startswith(message)


def test_bytes_that_are_no_text_are_an_error(tmp_path):
    file = tmp_path / "file"
    file.write_bytes(b'{"steps": []}\n"\xff"\n')
    assert problem(file, "trajectories").startswith("FILE:2: not JSON: line is not valid utf-8")


@pytest.mark.parametrize("form", sorted(FORMATS))
def test_a_missing_file_a_folder_and_deep_nesting_are_errors_in_every_format(tmp_path, form):
    assert problem(tmp_path / "absent", form) == "FILE: No such file or directory"
    assert problem(tmp_path, form) == "FILE: Is a directory"
    deep = tmp_path / "deep"
    deep.write_text("[" * 100_000)
    assert "not JSON" in problem(deep, form)


def test_a_format_that_nobody_knows_is_an_error_that_names_those_there_are(tmp_path):
    with pytest.raises(UnreadableInputError) as caught:
        next(read(tmp_path, "tau"))
    assert caught.value.fix == "the formats are tau-bench, tau2-bench, trajectories, openai-chat"
