"""A reply is read as it stands: a call is one JSON object, and everything else is refused with a reason."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledgercli.model.reading import Called, Fault, Reply, read
from ledgercli.records import Proposal

LEAF = st.none() | st.booleans() | st.integers() | st.text(max_size=9)
OBJECT = st.dictionaries(st.text(max_size=9), LEAF | st.lists(LEAF, max_size=3), max_size=4)
ANYTHING = st.none() | st.text() | st.integers() | st.binary() | st.lists(st.integers()) | OBJECT
CALLS = ("tools", "json_schema")


def native(*arguments: Any, finish: str | None = "tool_calls") -> Any:
    return read(
        Reply(None, [Called("pay", one, f"c{number}") for number, one in enumerate(arguments)], finish), "tools"
    )


def said(content: str, finish: str | None = "stop") -> Any:
    return read(Reply(content, (), finish), "json_schema")


def test_native_calls_come_out_in_their_order_with_their_ids():
    assert native('{"amount": 5}', "{}") == [Proposal("pay", {"amount": 5}, "c0"), Proposal("pay", {}, "c1")]


def test_one_object_is_a_call():
    assert said(' {"tool": "pay", "args": {"amount": 5}}\n') == [Proposal("pay", {"amount": 5})]


@pytest.mark.parametrize(
    ("arguments", "kind", "why"),
    [
        ('"{\\"amount\\": 5}"', "arguments", "must be one JSON object, not text"),
        ("[5]", "arguments", "must be one JSON object, not a list"),
        ("null", "arguments", "must be one JSON object, not null"),
        ("5", "arguments", "must be one JSON object, not a number"),
        ("true", "arguments", "must be one JSON object, not true or false"),
        (None, "arguments", "must be one JSON object, not null"),
        (["amount"], "arguments", "must be one JSON object, not a list"),
        ("", "malformed", "are no JSON"),
        ('{"amount": 5', "malformed", "are no JSON"),
        ("{'amount': 5}", "malformed", "are no JSON"),
        ('{"amount": 5} {"amount": 6}', "malformed", "are no JSON"),
        ('{"amount": 5}}', "malformed", "are no JSON"),
        ('```json\n{"amount": 5}\n```', "malformed", "are no JSON"),
        ('{"amount": 5, "amount": 6}', "malformed", "the key amount stands there twice"),
        ('{"to": {"x": 1, "x": 1}}', "malformed", "the key x stands there twice"),
        ('{"amount": NaN}', "malformed", "NaN is no number"),
        ('{"amount": -Infinity}', "malformed", "-Infinity is no number"),
        ('{"a": ' * 100_000 + "1" + "}" * 100_000, "malformed", "nested too deeply"),
        ('{"a": "' + "x" * 1_000_000 + '"}', "malformed", "longer than 1,000,000 characters"),
    ],
)
def test_arguments_that_are_no_object_are_refused_and_never_repaired(arguments, kind, why):
    fault = native(arguments)
    assert isinstance(fault, Fault)
    assert fault.kind == kind
    assert fault.what.startswith("The arguments of pay ")
    assert why in fault.what


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        ("Let me look that up.", "prose"),
        ("", "empty"),
        (" \n", "empty"),
        ("[]", "prose"),
        ('"{}"', "prose"),
        ('```json\n{"tool": "pay", "args": {}}\n```', "prose"),
        ('{"tool": "pay", "args": {}', "malformed"),
        ('{"tool": "pay", "args": {}} I hope this helps!', "malformed"),
        ('{"tool": "pay"}', "malformed"),
        ('{"tool": "pay", "args": {}, "reason": "x"}', "malformed"),
        ('{"tool": "pay", "args": {}, "tool": "look"}', "malformed"),
        ('{"name": "pay", "arguments": {}}', "malformed"),
        ('{"tool": "", "args": {}}', "nameless"),
        ('{"tool": ["pay"], "args": {}}', "nameless"),
        ('{"tool": "pay", "args": "{}"}', "arguments"),
        ('{"tool": "pay", "args": []}', "arguments"),
        ('{"tool": "pay", "args": null}', "arguments"),
    ],
)
def test_a_reply_that_is_no_call_is_refused(content, kind):
    assert said(content).kind == kind


def test_a_call_written_as_text_is_no_native_call():
    assert read(Reply('{"tool": "pay", "args": {}}', (), "stop"), "tools").kind == "prose"
    assert read(Reply(None, (), "stop"), "tools").kind == "empty"


@pytest.mark.parametrize("name", [None, "", 5, ["pay"]])
def test_a_call_without_a_name_is_refused(name):
    assert read(Reply(None, [Called(name, "{}")], "stop"), "tools").kind == "nameless"


@pytest.mark.parametrize("finish", ["length", "content_filter", None, "whatever"])
def test_of_a_reply_that_was_cut_nothing_is_used_even_if_it_can_be_read(finish):
    kind = "cut" if finish == "length" else "filtered"
    assert native('{"amount": 5}', finish=finish).kind == kind
    assert said('{"tool": "pay", "args": {}}', finish).kind == kind


def test_one_wrong_call_refuses_the_whole_reply():
    assert native('{"amount": 5}', "[]").kind == "arguments"
    assert native("[]", '{"amount": 5}').kind == "arguments"


@given(
    content=st.none() | st.text(),
    calls=st.lists(st.builds(Called, st.none() | st.text(), ANYTHING, ANYTHING), max_size=3),
    finish=st.none() | st.text() | st.sampled_from(["stop", "tool_calls", "length"]),
    how=st.sampled_from(CALLS),
)
def test_whatever_a_reply_holds_it_is_read_or_refused(content, calls, finish, how):
    found = read(Reply(content, calls, finish), how)
    if isinstance(found, Fault):
        assert found.what
        assert found.what.encode("utf-8", "replace")
    else:
        assert found
        assert all(isinstance(one.tool, str) and one.tool and isinstance(one.args, dict) for one in found)
        assert finish in ("stop", "tool_calls")


@given(value=st.none() | st.booleans() | st.text() | st.integers() | st.lists(OBJECT, max_size=3) | OBJECT)
def test_only_an_object_is_ever_taken_as_arguments(value):
    text = json.dumps(value)
    for found in (native(text), said(json.dumps({"tool": "pay", "args": value}))):
        if isinstance(value, dict):
            assert found[0].args == value
        else:
            assert found.kind == "arguments"
    assert native(json.dumps(text)).kind == "arguments"  # a text that holds an object is a text


@given(st.binary(max_size=200))
def test_no_bytes_ever_raise(data):
    text = data.decode("utf-8", "surrogateescape")
    for found in (native(text), said(text), read(Reply(text, (), "stop"), "tools")):
        assert isinstance(found, Fault) or isinstance(found[0].args, dict)
