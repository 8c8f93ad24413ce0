"""Texts with expressions in braces."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledgercli import cel


def shown(text):
    return [part if isinstance(part, str) else f"<{cel.render(part)}>" for part in cel.parse_text(text).parts]


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("", []),
        ("plain, isn't it?", ["plain, isn't it?"]),
        ("{a}", ["<a>"]),
        ("Order {a.b} is {c}.", ["Order ", "<a.b>", " is ", "<c>", "."]),
        ("{{a}}", ["{a}"]),
        ("{{{a}}}", ["{", "<a>", "}"]),
        ("a }} b {{ c", ["a } b { c"]),
        ("{'}'}", ['<"}">']),
        ("{ {'a': '}'}.a } it's", ['<{"a": "}"}.a>', " it's"]),
        ("{a}{b}", ["<a>", "<b>"]),
        ("{ a\n}", ["<a>"]),
        ("北京 {a}", ["北京 ", "<a>"]),
    ],
)
def test_parts(text, parts):
    assert shown(text) == parts


@pytest.mark.parametrize(
    ("text", "start", "message"),
    [
        ("a {", 2, "no expression"),
        ("a {}", 2, "no expression"),
        ("a { }", 2, "no expression"),
        ("a } b", 2, "without its {"),
        ("a {b", 4, "too early; }"),
        ("a {b c}", 5, "cannot stand here"),
        ("a {'b}", 3, "no closing '"),
        ("ok {a} {b = c}", 10, "'=' is not CEL"),
        ("{a: 1}", 2, "cannot stand here"),
        ("x {" + "(" * 200 + "}", 103, "deeper"),
    ],
)
def test_mistakes_stand_in_the_whole_text(text, start, message):
    with pytest.raises(cel.CelSyntaxError) as caught:
        cel.parse_text(text)
    assert caught.value.problem.start == start
    assert message in caught.value.problem.message
    assert caught.value.problem.source.text == text


def test_each_expression_has_the_bound_not_the_text():
    assert cel.parse_text("x" * 100_000 + "{a}" * 1000).parts
    with pytest.raises(cel.CelSyntaxError, match="limit is 20,000"):
        cel.parse_text("x" * 30_000 + "{" + "a || " * 5_000 + "a}")


def checked(text, env):
    found = cel.check_text(cel.parse_text(text), env)
    assert found.ok, found.problems
    return found


def test_a_single_expression_keeps_its_type(env, roots, context):
    single = checked("{action.args.count}", env)
    assert single.single
    assert single.type == cel.INT
    assert single.value(roots, context).value == 2
    assert single.render(roots, context) == "2"
    several = checked("{action.args.count}.", env)
    assert not several.single
    assert several.type == cel.STRING
    assert several.value(roots, context).value == "2."
    assert checked("plain", env).value(roots, context).value == "plain"
    assert checked("", env).value(roots, context).value == ""


def test_values_are_written_as_people_read_them(env, roots, context):
    text = checked("{action.tool} {action.args.amount} {action.tags} {now} {null} {true} {b'a'} {duration('90s')}", env)
    assert text.render(roots, context) == 'pay 120 ["charge"] 2026-08-01T12:00:00Z null true b"a" 90s'


def test_what_cannot_be_told_is_a_question_mark(env, roots, context):
    text = checked("rate {state.facts.rate}, role {state.facts.role}", env)
    assert text.render(roots, context) == "rate ?, role admin"
    answer = text.value(roots, context)
    assert answer.missing == ("state.facts.rate",)
    assert not answer.known


def test_problems_of_all_expressions_are_collected(env):
    found = cel.check_text(cel.parse_text("{nothing} and {len(action.tags)}"), env)
    assert [problem.code for problem in found.problems] == ["unknown-name", "unknown-function"]
    assert [problem.start for problem in found.problems] == [1, 15]
    assert not found.ok


def test_what_is_too_large_is_not_written_out(env, roots, context):
    doubling = "cel.bind(a, ['xxxxxxxx'], " + "cel.bind(a, [a, a], " * 22 + "a" + ")" * 23
    text = checked("{" + doubling + "}!", env)
    assert text.render(roots, context) == "?!"
    assert "too large" in text.value(roots, context).error
    roots["state"]["facts"]["role"] = "x" * 700_000
    long = checked("{state.facts.role}{state.facts.role}", env)
    assert "too large" in long.value(roots, context).error


@given(st.text(alphabet="a{}'\" .1", max_size=30))
def test_any_text_has_parts_or_a_problem_with_a_place(text):
    try:
        parts = cel.parse_text(text).parts
    except cel.CelSyntaxError as caught:
        assert 0 <= caught.problem.start <= len(text)
    else:
        assert all(isinstance(part, (str, cel.Expr)) for part in parts)
