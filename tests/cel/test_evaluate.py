"""The precise form: three answers, what was read, where it went wrong, and CEL's absorption of errors."""

from __future__ import annotations

from types import MappingProxyType

import pytest

from ledgercli import cel


def program(text, env, want=None):
    checked = cel.check(cel.parse(text), env, want)
    assert checked.ok, checked.problems
    return cel.compile(checked)


@pytest.fixture
def ask(env, roots, context):
    """Both forms of an expression over the usual roots; they must agree."""

    def asked(text, want=None, given=None):
        compiled = program(text, env, want)
        answer = compiled(given or roots, context)
        assert answer == compiled.explain(given or roots, context).answer
        return answer

    return asked


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("state.facts.role == 'admin'", True),
        ("state.facts.orders[action.args.order_id].total", 12.0),
        ("action.args.amount", 120.0),
        ("state.facts.numbers[0]", 1.0),
        ("state.facts.numbers.map(n, n)", [1.0, 2.5, 3.0]),
        ("state.facts.numbers.filter(n, n > 1.0)", [2.5, 3]),
        ("1 == 1.0", True),
        ("true == (1 == 1)", True),
        ("action.tags + ['x']", ["charge", "x"]),
        ("{'a': 1, 'b': [2]}", {"a": 1, "b": [2]}),
        ("{true: 1}[true]", 1),
        ("-state.facts.visits", -3),
        ("!state.facts.user_authenticated", False),
        ("state.facts.visits > 2 ? 'many' : 'few'", "many"),
        ("action.tags.exists(t, t == 'charge')", True),
        ("action.tags.exists_one(t, t == 'charge')", True),
        ("[1, 2, 2].exists_one(x, x == 2)", False),
        ("state.facts.orders.all(k, size(k) > 0)", True),
        ("state.facts.orders.all(k, v, v.user_id.startsWith('u'))", True),
        ("[1, 2].transformList(i, v, i > 0, v * 10)", [20]),
        ("{'a': 1}.transformMap(k, v, v + 1)", {"a": 2}),
        ("[3, 4].transformMap(i, v, v > 3, v)", {1: 4}),
        ("[1, 2].map(x, x > 1, x + 1)", [3]),
        ("cel.bind(x, action.args.count, x * x)", 4),
        ("[1].all(x, [2].all(x, x == 2))", True),
        ("[[1], [2, 3]].map(x, x.map(y, y * size(x)))", [[1], [4, 6]]),
        ("type(now)", cel.TIMESTAMP),
        ("now - now == duration('0s')", True),
        ("count_calls(state.ledger, action.tool)", 2),
        ("count_calls(state.ledger, 'pay', {'to': 'x'})", 3),
        ("repeats(state.ledger, action)", 4),
        ("source(state.facts.orders[action.args.order_id])", "('state', 'facts', 'orders', '#W1')"),
        ("nested", True),
        ("order.user_id", "u1"),
        ("has({'a': 1}.a)", True),
        ("'a' in {'a': 1}", True),
        ("dyn('b') in {'a': 1}", False),
        ("size('北京')", 2),
    ],
)
def test_values(ask, text, value):
    answer = ask(text)
    assert answer.known
    assert answer.value == value
    assert type(answer.value) is type(value)


@pytest.mark.parametrize(
    ("text", "missing", "error"),
    [
        ("state.facts.rate > 1.0", ("state.facts.rate",), "state.facts.rate is not known"),
        ("state.facts.orders['zz'].user_id == 'x'", ("state.facts.orders.zz",), None),
        ("state.facts.anything.x.y == 1", ("state.facts.anything",), None),
        ("state.facts.rate > 1.0 && has(state.facts.anything.x)", ("state.facts.rate", "state.facts.anything"), None),
        (
            "state.facts.rate > 1.0 || state.facts.anything == 1 || false",
            ("state.facts.rate", "state.facts.anything"),
            None,
        ),
        ("[1, 2].all(x, state.facts.rate > double(x))", ("state.facts.rate",), None),
        ("count_calls(state.ledger, 'never') > 1", ("never",), "nothing is known of never"),
        ("state.facts.rate > 1.0 ? 1 : 2", ("state.facts.rate",), None),
    ],
)
def test_what_is_missing_is_named(ask, text, missing, error):
    answer = ask(text)
    assert not answer.known
    assert answer.value is None
    assert answer.missing == missing
    assert error is None or answer.error == error


@pytest.mark.parametrize(
    ("text", "place", "error"),
    [
        ("1 + 9223372036854775807", "1 + 9223372036854775807", "overflow"),
        ("true && 1 / 0 == 1", "1 / 0", "divide by zero"),
        ("[1][1] == 1", "[1][1]", "out of range"),
        ("action.tags[3] == 'x'", "action.tags[3]", "out of range"),
        (
            "state.facts.role == 'x' || state.facts.orders.all(k, state.facts.numbers[9] > 1.0)",
            "state.facts.numbers[9]",
            "out of range",
        ),
        ("dyn(1) == 1 && dyn('a') && true", "dyn('a')", "no such overload: &&(string)"),
        ("!dyn(1)", "!dyn(1)", "no such overload: !(int)"),
        ("dyn('a') ? 1 : 2", "dyn('a') ? 1 : 2", "no such overload: ?:(string)"),
        ("[1].all(x, dyn(x))", "dyn(x)", "no such overload: all()(int)"),
        ("[1].filter(x, dyn(x))", "[1].filter(x, dyn(x))", "filter()"),
        ("dyn(1).all(x, true)", "dyn(1).all(x, true)", "no such overload: macro(int)"),
        ("dyn(1).all(k, v, true)", "dyn(1).all(k, v, true)", "no such overload: macro(int)"),
        ("dyn(1) < dyn('a')", "dyn(1) < dyn('a')", "no such overload: int < string"),
        ("dyn(1).x", "dyn(1).x", "a int has no field x"),
        ("{'a': 1}[dyn('b')]", "{'a': 1}[dyn('b')]", 'no such key: "b"'),
        ("has(dyn(null).x)", "has(dyn(null).x)", "null has no field x"),
        (
            "has(state.facts.role.x.y) || false",
            "has(state.facts.role.x.y)",
            "state.facts.role is a string, which has no field x",
        ),
        ("{1: 1, dyn(1): 2}", "{1: 1, dyn(1): 2}", "twice"),
        ("{1.5: 1}", "{1.5: 1}", "key"),
        ("size(dyn(1)) == 1", "size(dyn(1))", "no such overload: size(int)"),
        ("dyn('a').startsWith(dyn(1))", "dyn('a').startsWith(dyn(1))", "no such overload: startsWith(string, int)"),
    ],
)
def test_errors_have_a_place(env, roots, context, text, place, error):
    checked = cel.check(cel.parse(text), env)
    env_loose = cel.Env(env.names, env.functions, env.defines, strict=False)
    checked = checked if checked.ok else cel.check(cel.parse(text), env_loose)
    answer = cel.compile(checked)(roots, context)
    assert not answer.known
    assert answer.source.text[answer.start : answer.end] == place
    assert error is None or error in answer.error


def test_null_is_not_absent(env, roots, context):
    roots["state"]["facts"]["anything"] = None
    assert program("state.facts.anything == null", env)(roots, context).value is True
    answer = program("state.facts.anything.x == 1", env)(roots, context)
    assert answer.error == "state.facts.anything is null, which has no field x"
    assert answer.missing == ()


def test_an_error_in_a_define_stands_in_its_own_text(env, roots, context):
    answer = program("big && known_user", env)({**roots, "state": {"facts": {"orders": {}}}}, context)
    assert answer.missing == ("state.facts.user_authenticated", "state.facts.role")
    assert answer.source.text == "state.facts.user_authenticated && state.facts.role != 'guest'"


def test_a_define_that_names_a_path_is_part_of_the_paths_that_use_it(env, roots, context):
    compiled = program("order.total > 1.0 && has(order.total) && source(order) != ''", env, cel.BOOL)
    assert compiled.checked.paths == {
        ("state", "facts", "orders", None, "total"),
        ("state", "facts", "orders", None),
        ("action", "args", "order_id"),
    }
    reads = {
        "action.args.order_id": "#W1",
        'state.facts.orders["#W1"].total': 12,
        'has(state.facts.orders["#W1"].total)': True,
        'source(state.facts.orders["#W1"])': "('state', 'facts', 'orders', '#W1')",
    }
    assert compiled.explain(roots, context).reads == reads
    assert cel.compile_rules([cel.Rule(must=compiled.checked)])(roots, context) == (1, reads, ())
    roots["state"]["facts"]["orders"] = {}
    assert compiled(roots, context).missing == ('state.facts.orders["#W1"]',)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("state.facts.rate > 1.0 || true", True),
        ("state.facts.rate > 1.0 && false", False),
        ("false && state.facts.rate > 1.0", False),
        ("true ? 1 : 1 / 0", 1),
        ("[0, 1].exists(x, 1 / x == 1)", True),
        ("[0, 2].all(x, 1 / x == 1)", False),
        ("[1 / 1 == 1, false].all(x, x)", False),
        ("{'a': 0, 'b': 1}.exists(k, v, 1 / v == 1)", True),
    ],
)
def test_errors_are_absorbed_where_the_answer_does_not_depend_on_them(ask, text, value):
    assert ask(text).value == value


@pytest.mark.parametrize(
    "text",
    [
        "[0, 1].exists_one(x, 1 / x == 1)",
        "[0].map(x, 1 / x)",
        "[0, 1].filter(x, 1 / x == 1)",
        "[0, 2].exists(x, 1 / x == 1)",
    ],
)
def test_other_macros_absorb_nothing(ask, text):
    assert "divide by zero" in ask(text).error


@pytest.mark.parametrize(
    ("text", "reads"),
    [
        ("state.facts.role == 'x' && state.facts.visits > 1", {"state.facts.role": "admin"}),
        (
            "state.facts.role == 'admin' && state.facts.visits > 1",
            {"state.facts.role": "admin", "state.facts.visits": 3},
        ),
        (
            "state.facts.orders[action.args.order_id].total > 1.0",
            {"action.args.order_id": "#W1", 'state.facts.orders["#W1"].total': 12},
        ),
        ("has(state.facts.rate)", {"has(state.facts.rate)": False}),
        ("has(state.facts.orders['b'].total)", {"has(state.facts.orders.b.total)": False}),
        ("'#W1' in state.facts.orders", {'"#W1" in state.facts.orders': True}),
        (
            "action.args.order_id in state.facts.orders",
            {"action.args.order_id": "#W1", '"#W1" in state.facts.orders': True},
        ),
        ("action.tool in action.tags", {"action.tool": "pay", "action.tags": ["charge"]}),
        ("size(state.facts.orders) > 1", {"size(state.facts.orders)": 2}),
        ("state.facts.numbers.all(n, n > 0.5)", {"state.facts.numbers": [1, 2.5, 3]}),
        (
            "state.facts.orders.all(k, state.facts.orders[k].user_id != '')",
            {
                "state.facts.orders": {"#W1": {"user_id": "u1", "total": 12}, "b": {"user_id": "u2"}},
                'state.facts.orders["#W1"].user_id': "u1",
                "state.facts.orders.b.user_id": "u2",
            },
        ),
        ("count_calls(state.ledger, action.tool) > 1", {"action.tool": "pay", 'count_calls("pay")': 2}),
        (
            "count_calls(state.ledger, 'pay', {'to': action.args.order_id}) > 1",
            {"action.args.order_id": "#W1", 'count_calls("pay",{"to":"#W1"})': 3},
        ),
        ("repeats(state.ledger, action) > 1", {"repeats(action)": 4}),
        (
            "source(state.facts.orders[action.args.order_id].total) != ''",
            {
                "action.args.order_id": "#W1",
                'source(state.facts.orders["#W1"].total)': "('state', 'facts', 'orders', '#W1', 'total')",
            },
        ),
        (
            "cel.bind(o, state.facts.orders, o.b.user_id == 'u2')",
            {
                "state.facts.orders": {"#W1": {"user_id": "u1", "total": 12}, "b": {"user_id": "u2"}},
            },
        ),
        ("now > timestamp(0)", {"now": cel.Timestamp.parse("2026-08-01T12:00:00Z")}),
    ],
)
def test_reads(env, roots, context, text, reads):
    compiled = program(text, env, cel.BOOL)
    assert compiled.explain(roots, context).reads == reads
    judged = cel.compile_rules([cel.Rule(grant=compiled.checked)])(roots, context)
    assert judged == (1, reads, (compiled(roots, context).value,))


def test_an_explanation_has_the_value_of_every_part_in_order(env, roots, context):
    found = program("state.facts.visits > 5 || sensitive", env).explain(roots, context)
    shown = [(cel.render(node), value) for node, value in found.values]
    assert shown == [
        ("state.facts.visits", 3),
        ("state.facts.visits > 5", False),
        ("action.tool", "pay"),
        ('action.tool in ["pay", "refund"]', True),
        ("sensitive", True),
        ("state.facts.visits > 5 || sensitive", True),
    ]
    failed = program("state.facts.rate > 1.0", env).explain(roots, context)
    assert [str(value) for _, value in failed.values] == ["state.facts.rate is not known"] * 2


def test_an_explanation_is_bounded(env, roots, context):
    roots["action"]["args"]["items"] = [str(i) for i in range(50_000)]
    found = program("action.args.items.all(i, i != '')", env).explain(roots, context)
    assert found.answer.value is True
    assert len(found.values) == 2_000
    assert found.steps == 50_000  # one a time, for so small a body


def test_a_value_of_another_type_than_wanted_is_no_answer(env, roots, context):
    roots["state"]["facts"]["anything"] = 1
    answer = program("state.facts.anything", env, cel.BOOL)(roots, context)
    assert answer.error == "the value must be bool; it is int"
    assert program("state.facts.anything", env, cel.INT)(roots, context).value == 1
    assert (
        program("state.facts.anything", env, cel.STRING)(roots, context).error == "the value must be string; it is int"
    )
    assert program("state.facts.anything", env, cel.DYN)(roots, context).value == 1
    roots["state"]["facts"]["anything"] = {"a": 1}
    assert program("state.facts.anything", env, cel.RecordType())(roots, context).value == {"a": 1}


def test_a_root_that_is_not_given_is_missing(env):
    answer = program("state.facts.role == 'x'", env)({})
    assert answer.missing == ("state",)
    assert program("now > timestamp(0)", env)({}).error == "now is not known"


def test_any_mapping_is_a_map_and_any_tuple_a_list(env, roots, context):
    facts = roots["state"]["facts"]
    facts["orders"] = MappingProxyType({"#W1": MappingProxyType(facts["orders"]["#W1"])})
    facts["numbers"] = (1, 2.5)
    given = {
        "state": MappingProxyType({"facts": MappingProxyType(facts)}),
        "action": roots["action"],
        "now": roots["now"],
    }
    for text in [
        "state.facts.orders['#W1'].total == 12.0",
        "has(state.facts.orders['#W1'].total)",
        "'#W1' in state.facts.orders",
        "2.5 in state.facts.numbers",
        "size(state.facts.orders) == 1",
        "state.facts.orders.all(k, v, k == '#W1' && v.user_id == 'u1')",
    ]:
        compiled = program(text, env, cel.BOOL)
        assert compiled(given, context).value is True
        assert compiled.explain(given, context).answer.value is True


def test_a_whole_number_too_large_for_a_double_is_an_error(env, roots, context):
    roots["action"]["args"]["amount"] = 10**400
    assert "too large for a double" in program("action.args.amount * 2.0 > 1.0", env)(roots, context).error


def test_comparisons_with_declared_doubles_are_exact(env, roots, context):
    compiled = program("action.args.amount == 9007199254740992.0", env)
    roots["action"]["args"]["amount"] = 2**53 + 1  # as a double this is 2^53
    assert compiled(roots, context) == compiled.explain(roots, context).answer
    assert compiled(roots, context).value is True


def test_python_and_cel_differ_and_cel_holds(env, roots, context):
    facts = roots["state"]["facts"]
    cases = [
        (True, "state.facts.anything == 1", False),
        (1, "state.facts.anything == true", False),
        (False, "state.facts.anything == 0", False),
        (False, "state.facts.anything != 0", True),
        (True, "state.facts.anything in [1, 2.0]", False),
        (True, "1 in [state.facts.anything]", False),
        ([1], "state.facts.anything == [true]", False),
        ({"a": 1}, "state.facts.anything == {'a': true}", False),
        (1, "state.facts.anything == 1.0", True),
        (2**53 + 1, "state.facts.anything == 9007199254740992.0", False),
    ]
    for value, text, wanted in cases:
        facts["anything"] = value
        compiled = program(text, cel.Env(env.names, env.functions, strict=False))
        assert compiled(roots, context).value is wanted, text
        assert compiled.explain(roots, context).answer.value is wanted, text
    for value, text in [
        (True, "state.facts.anything < 2"),
        (True, "0.5 < state.facts.anything"),
        ("a", "state.facts.anything < 2"),
    ]:
        facts["anything"] = value
        assert "no such overload" in program(text, env)(roots, context).error
    facts["anything"] = "abc"
    assert not program("state.facts.anything[0] == 'a'", env)(roots, context).known
    facts["anything"] = [1, 2]
    assert "out of range" in program("state.facts.anything[action.args.count - 3] == 1", env)(roots, context).error


def test_a_deep_caller_gets_an_answer(env, roots, context):
    compiled = program("!(" * 60 + "true" + ")" * 60, env)

    def deep(left):
        return compiled.explain(roots, context).answer if left == 0 else deep(left - 1)

    errors = set()
    for left in range(700, 960, 10):
        try:
            errors.add(deep(left).error)
        except RecursionError:
            break
    assert errors <= {None, "the evaluation nests too deeply for what called it"}
