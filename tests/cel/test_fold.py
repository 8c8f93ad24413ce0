"""Partial evaluation: the same meaning, with what is known filled in."""

from __future__ import annotations

import pytest

from ledgercli import cel

KNOWN = {
    ("action", "tool"): "pay",
    ("action", "tags"): ["charge"],
    ("action", "args", "amount"): 5,
    ("state", "facts", "anything"): {"k": [1, 2]},
}


def folded(text, env, constants=None):
    checked = cel.check(cel.parse(text), env)
    assert checked.ok, checked.problems
    return cel.fold(checked, KNOWN if constants is None else constants)


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("action.tool == 'pay'", "true"),
        ("action.tool == 'look'", "false"),
        ("action.tool in ['look', 'refund']", "false"),
        ("'charge' in action.tags", "true"),
        ("sensitive", "true"),
        ("sensitive && known_user", "known_user"),
        ("nested", "true"),
        ("action.tool == 'look' && state.facts.rate > 1.0", "false"),
        ("state.facts.rate > 1.0 && action.tool == 'look'", "false"),
        ("state.facts.rate > 1.0 || action.tool == 'pay'", "true"),
        ("action.tool == 'pay' && state.facts.rate > 1.0", "state.facts.rate > 1.0"),
        (
            "action.tool == 'look' || state.facts.rate > 1.0 || state.facts.visits > 1",
            "state.facts.rate > 1.0 || state.facts.visits > 1",
        ),
        ("true && (1 == 1)", "true"),
        ("false || (1 == 2)", "false"),
        ("action.tool == 'pay' ? state.facts.visits : 1 / 0", "state.facts.visits"),
        ("state.facts.visits > 1 ? 1 + 1 : size(action.tool)", "state.facts.visits > 1 ? 2 : 3"),
        ("state.facts.visits + (2 * 3)", "state.facts.visits + 6"),
        ("action.args.amount", "5.0"),
        ("action.args.amount / 2.0", "2.5"),
        ("!(action.tool == 'pay')", "false"),
        ("[action.tool, 'x']", '["pay", "x"]'),
        ("{'t': action.tool}", '{"t": "pay"}'),
        ("{'t': action.args.count}", '{"t": action.args.count}'),
        ("state.facts.anything.k", "[1, 2]"),
        ("state.facts.anything.k[1]", "2"),
        ("action.tags[0]", '"charge"'),
        ("state.facts.orders[action.tool].user_id", 'state.facts.orders["pay"].user_id'),
        ("has(state.facts.orders[action.tool].total)", 'has(state.facts.orders["pay"].total)'),
        ("has({'a': action.tool}.a)", "true"),
        ("count_calls(state.ledger, action.tool)", 'count_calls(state.ledger, "pay")'),
        ("repeats(state.ledger, action)", "repeats(state.ledger, action)"),
        ("source(state.facts.anything.k)", "source(state.facts.anything.k)"),
        ("action.tool.startsWith('p')", "true"),
        ("[1, 2].all(x, x > 0)", "true"),
        ("[1, 2].map(x, x * 2)", "[2, 4]"),
        ("[1, 2].all(x, x > state.facts.visits)", "[1, 2].all(x, x > state.facts.visits)"),
        ("state.facts.numbers.all(x, x > 1.0 + 1.0)", "state.facts.numbers.all(x, x > 2.0)"),
        ("['look'].all(action, action == 'look')", "true"),
        ("state.facts.numbers.exists(x, [x].all(y, y == x))", "state.facts.numbers.exists(x, [x].all(y, y == x))"),
        ("cel.bind(t, action.tool, t + '!')", '"pay!"'),
        ("1 / 0 == 1", "1 / 0 == 1"),
        ("state.facts.anything['k'] == [1, 2]", "true"),
        ("-state.facts.visits", "-state.facts.visits"),
        ("dyn(true) && true", "true"),
        ("true && dyn(state.facts.user_authenticated)", "dyn(state.facts.user_authenticated)"),
    ],
)
def test_what_is_left(env, text, rest):
    assert cel.render(folded(text, env).node) == rest


def test_a_single_side_that_may_not_be_a_bool_still_must_be_one(env, roots, context):
    checked = folded("action.tool == 'pay' && dyn(state.facts.role)", env)
    answer = cel.compile(checked)(roots, context)
    assert "no such overload: &&(string)" in answer.error


def test_a_folded_expression_knows_what_is_left_to_look_at(env):
    checked = folded("sensitive && state.facts.orders[action.tool].user_id == action.args.order_id", env)
    assert checked.paths == {("state", "facts", "orders", "pay", "user_id"), ("action", "args", "order_id")}
    assert folded("sensitive", env).constant == (True, True)


def test_what_takes_long_is_not_computed_while_folding(env):
    text = "".join(f"[1,2,3,4,5,6,7,8,9,10].all({name}, " for name in "abcd") + "a + b + c + d > 0" + ")" * 4
    assert folded(text, env).constant == (False, None)
    assert cel.compile(folded(text, env))({}).value is True


def test_an_expression_with_errors_is_left_alone(env):
    checked = cel.check(cel.parse("nothing"), env)
    assert cel.fold(checked, KNOWN) is checked


def test_keys_that_cannot_be_looked_up_are_left_alone(env):
    checked = cel.check(cel.parse("state.facts.anything[[1]]"), cel.Env(env.names, strict=False))
    assert cel.render(cel.fold(cel.fold(checked, {}), KNOWN).node) == '{"k": [1, 2]}[[1]]'


def test_warnings_may_be_folded_too():
    env = cel.Env({"x": cel.DYN}, strict=False)
    checked = cel.check(cel.parse("x == 1 || nothing"), env)
    assert cel.fold(checked, {("x",): 1}).constant == (True, True)


@pytest.mark.parametrize("seed", range(300, 304))
def test_folding_keeps_the_value(env, expressions, context, seed):
    made = expressions(seed)
    compared = 0
    for _ in range(150):
        text = made.random.choice([made.boolean, made.text, made.number, made.whole])(4)
        checked = cel.check(cel.parse(text), env)
        if not checked.ok:
            continue
        roots = made.roots()
        known = {("action", "tool"): roots["action"]["tool"], ("action", "tags"): roots["action"]["tags"]}
        before = cel.compile(checked)(roots, context)
        after = cel.compile(cel.fold(checked, known))(roots, context)
        if before.known:
            compared += 1
            assert after.known, text
            assert repr(after.value) == repr(before.value), text
    assert compared > 30
