"""Against a vocabulary: every mistake is found, with its place, the nearest names and the CEL way."""

from __future__ import annotations

import string

import pytest

from ledgercli import cel
from ledgercli.cel.relations import distance, fits, may_equal, may_order, nearest


def check(text, env, want=None):
    return cel.check(cel.parse(text), env, want)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("1 + 2", "int"),
        ("1.5 * 2.0", "double"),
        ("1u - 1u", "uint"),
        ("'a' + state.facts.role", "string"),
        ("b'a' + b'b'", "bytes"),
        ("[1] + [2]", "list(int)"),
        ("[1] + ['a']", "list(dyn)"),
        ("now + duration('1h')", "timestamp"),
        ("duration('1h') + now", "timestamp"),
        ("now - now", "duration"),
        ("now - duration('1h')", "timestamp"),
        ("dyn(now) - now", "dyn"),
        ("state.facts.anything + 'a'", "string"),
        ("[1] + state.facts.anything", "list(int)"),
        ("-state.facts.visits", "int"),
        ("-state.facts.anything", "dyn"),
        ("5 % 2", "int"),
        ("!state.facts.user_authenticated", "bool"),
        ("state.facts.rate > 1", "bool"),
        ("now < timestamp('2026-01-01T00:00:00Z')", "bool"),
        ("state.facts.anything < 'a'", "bool"),
        ("'x' in action.tags", "bool"),
        ("'x' in state.facts.orders", "bool"),
        ("1 in state.facts.anything", "bool"),
        ("state.facts.user_authenticated ? 1 : 2", "int"),
        ("state.facts.user_authenticated ? 1 : 2.0", "dyn"),
        ("state.facts.orders['x'].total", "double"),
        ("state.facts.numbers[0]", "double"),
        ("state.facts['role']", "string"),
        ("state[state.facts.role]", "dyn"),
        ("state.facts.anything.x[0].y", "dyn"),
        ("{}", "map(dyn, dyn)"),
        ("{1: 'a'}", "map(int, string)"),
        ("{'a': 1}.a", "int"),
        ("{'a': 1, 'b': 'x'}", "map"),
        ("size(action.tags)", "int"),
        ("action.tags.size()", "int"),
        ("state.facts.orders.map(k, k)", "list(string)"),
        ("state.facts.orders.exists(k, v, v.user_id == k)", "bool"),
        ("action.tags.filter(t, t == 'x')", "list(string)"),
        ("action.tags.transformList(i, t, i)", "list(int)"),
        ("action.tags.transformMap(i, t, t)", "map(int, string)"),
        ("state.facts.anything.transformMap(i, t, 1)", "map(dyn, int)"),
        ("{'a': 1}.exists(k, v, v == 1)", "bool"),
        ("cel.bind(x, 1, x + 1)", "int"),
        ("type(1) == int", "bool"),
        ("type(now) == google.protobuf.Timestamp", "bool"),
        ("order.user_id", "string"),
        ("count_calls(state.ledger, action.tool)", "int"),
        ("source(state.facts.orders['x'].total)", "string"),
        ("[{'a': 1}, {'a': 2, 'b': 3}].map(r, r.b)", "list(int)"),
    ],
)
def test_types(env, text, kind):
    checked = check(text, env)
    assert checked.problems == ()
    assert checked.ok
    assert str(checked.type) == kind


@pytest.mark.parametrize(
    ("text", "code", "place", "hint"),
    [
        (
            "state.facts.user_authentificated",
            "unknown-fact",
            "user_authentificated",
            "did you mean user_authenticated? It is set by authenticate_user (shop.yaml:31)",
        ),
        ("has(state.facts.rol)", "unknown-fact", "rol", "did you mean role?"),
        ("'rolle' in state.facts", "unknown-fact", "'rolle'", "did you mean role?"),
        ("state.facts['rolle'] == 'x'", "unknown-fact", "'rolle'", "did you mean role?"),
        ("action.args.zzz", "unknown-argument", "zzz", "there is amount, count, items, order_id"),
        ("stat.facts.role", "unknown-name", "stat", "did you mean state? A text is written 'stat'"),
        ("sensitiv", "unknown-name", "sensitiv", "did you mean sensitive? A text is written \"'sensitiv'\""),
        ("delivered", "unknown-name", "delivered", "write \"'delivered'\""),
        ("state.facts.role == delivered", "unknown-name", "delivered", "write 'delivered'"),
        (
            "user_authenticated == true",
            "unknown-name",
            "user_authenticated",
            "did you mean state.facts.user_authenticated?",
        ),
        ("state.facts.role == None", "unknown-name", "None", "CEL writes null"),
        ("(state.facts.user_authenticated == True)", "unknown-name", "True", "CEL writes true"),
        ("{account: 'x'}", "unknown-name", "account", "a key is written 'account': …"),
        ("action.tool == 'payy'", "unknown-tool", "'payy'", "did you mean 'pay'?"),
        ("'lok' != action.tool", "unknown-tool", "'lok'", "did you mean 'look'?"),
        ("action.tool in ['pay', 'refnd']", "unknown-tool", "'refnd'", "did you mean 'refund'?"),
        ("action.tool == 'zzzzzz'", "unknown-tool", "'zzzzzz'", None),
        ("len(action.tags)", "unknown-function", "len", "CEL writes size(x)"),
        ("action.tool.lower()", "unknown-function", "lower", "CEL writes .lowerAscii()"),
        ("action.tool.startswith('p')", "unknown-function", "startswith", "CEL writes .startsWith(x)"),
        ("action.tool.startsWth('p')", "unknown-function", "startsWth", "did you mean startsWith?"),
        (
            "startsWith(action.tool, 'p')",
            "unknown-function",
            "startsWith",
            'write action.tool.startsWith("p")',
        ),
        ("action.tool.double()", "unknown-function", "double", "write double(action.tool)"),
        ("mth.greatest(1, 2)", "unknown-function", "mth.greatest(1, 2)", "did you mean math.greatest?"),
        ("cel.bnd(x, 1, x)", "unknown-function", "cel.bnd(x, 1, x)", "did you mean cel.bind?"),
        (
            "count_cals(state.ledger, 'pay')",
            "unknown-function",
            "count_cals",
            "did you mean count_calls?",
        ),
        ("zzzzzzzz()", "unknown-function", "zzzzzzzz", None),
        ("action.tags.exists(t)", "wrong-arguments", "action.tags.exists(t)", "write xs.exists(x, …)"),
        (
            "action.tags.transformMap(t, 1)",
            "wrong-arguments",
            "action.tags.transformMap(t, 1)",
            "write xs.transformMap(k, v, …)",
        ),
        (
            "count_calls(state.ledger)",
            "wrong-arguments",
            "count_calls(state.ledger)",
            "it is count_calls(state.ledger, string)",
        ),
        ("count_calls(state.ledger, 1)", "wrong-arguments", "1", "write string(1)"),
        ("count_calls('pay', 'pay')", "wrong-arguments", "'pay'", "it is count_calls("),
        ("action.tool.startsWith(state.ledger)", "wrong-arguments", "state.ledger", "it is string.startsWith(string)"),
        ("math.ceil(1)", "wrong-arguments", "1", "write 1.0"),
        ("math.ceil(state.facts.visits)", "wrong-arguments", "state.facts.visits", "write double(state.facts.visits)"),
        ("source('x')", "not-a-path", "'x'", None),
        ("1 + 1.5", "mixed-arithmetic", "1 + 1.5", "write 1.0 + 1.5"),
        (
            "state.facts.visits * 1.5",
            "mixed-arithmetic",
            "state.facts.visits * 1.5",
            "write double(state.facts.visits) * 1.5",
        ),
        (
            "state.facts.anything - 1",
            "mixed-arithmetic",
            "state.facts.anything - 1",
            "write double(state.facts.anything) - 1.0",
        ),
        (
            "(1.0 + 2.0) * state.facts.anything",
            "mixed-arithmetic",
            "(1.0 + 2.0) * state.facts.anything",
            "write (1.0 + 2.0) * double(state.facts.anything)",
        ),
        (
            "state.facts.anything + state.facts.anything",
            "mixed-arithmetic",
            "state.facts.anything + state.facts.anything",
            "for texts",
        ),
        (
            "state.facts.anything % 2",
            "mixed-arithmetic",
            "state.facts.anything % 2",
            "write int(state.facts.anything) % 2",
        ),
        ("'a' + 1", "type-mismatch", "'a' + 1", "write string(1)"),
        ("1 + 'a'", "type-mismatch", "1 + 'a'", "write string(1)"),
        ("true + true", "type-mismatch", "true + true", None),
        ("null + state.facts.anything", "type-mismatch", "null + state.facts.anything", None),
        ("state.facts.role == 1", "never-equal", "state.facts.role == 1", "a text is written '1'"),
        ("state.facts.visits == '1'", "never-equal", "state.facts.visits == '1'", "write 1 without quotes"),
        (
            "state.facts.user_authenticated != 'true'",
            "never-equal",
            "state.facts.user_authenticated != 'true'",
            "write true without quotes",
        ),
        ("state.facts.role == null", "never-equal", "state.facts.role == null", "has(state.facts.role)"),
        ("null == 1", "never-equal", "null == 1", None),
        ("1 in action.tags", "never-equal", "1 in action.tags", "a text is written '1'"),
        ("1 in [true]", "never-equal", "1 in [true]", None),
        ("1 in state.facts.orders", "never-equal", "1", None),
        ("'a' in state.facts.role", "type-mismatch", "'a' in state.facts.role", 'write state.facts.role.contains("a")'),
        ("1 in 2", "type-mismatch", "1 in 2", None),
        ("state.facts.role < 1", "type-mismatch", "state.facts.role < 1", "a text is written '1'"),
        ("state.facts.visits > '1'", "type-mismatch", "state.facts.visits > '1'", "write 1 without quotes"),
        (
            "state.facts.role > state.facts.visits",
            "type-mismatch",
            "state.facts.role > state.facts.visits",
            "write double(state.facts.role)",
        ),
        ("now > state.facts.role", "type-mismatch", "now > state.facts.role", "write timestamp(state.facts.role)"),
        (
            "1 < state.facts.visits < 3",
            "type-mismatch",
            "1 < state.facts.visits < 3",
            "write 1 < state.facts.visits && state.facts.visits < 3",
        ),
        ("null < 1", "type-mismatch", "null < 1", None),
        ("[1] < [2]", "type-mismatch", "[1] < [2]", None),
        ("!state.facts.role", "type-mismatch", "!state.facts.role", "write state.facts.role != ''"),
        ("-'a'", "type-mismatch", "-'a'", None),
        ("true && state.facts.role", "type-mismatch", "state.facts.role", "write state.facts.role != ''"),
        ("true && state.facts.visits", "type-mismatch", "state.facts.visits", "write state.facts.visits != 0"),
        ("true && action.tags", "type-mismatch", "action.tags", "write size(action.tags) > 0"),
        ("action.tool == 'pay' || 'look'", "type-mismatch", "'look'", 'write x == "look", or x in ["look", …]'),
        ("1 ? 2 : 3", "type-mismatch", "1", None),
        ("action.tags.all(t, t)", "type-mismatch", "t", "write t != ''"),
        ("state.facts.role.all(c, true)", "type-mismatch", "state.facts.role", None),
        ("action.tags[-1]", "negative-index", "-1", "action.tags[size(action.tags) - 1]"),
        ("state.facts.anything[-2]", "negative-index", "-2", "state.facts.anything[size(state.facts.anything) - 2]"),
        ("action.tags['a']", "type-mismatch", "'a'", None),
        ("state.facts.orders[1]", "type-mismatch", "1", None),
        ("state.facts[1]", "type-mismatch", "1", None),
        ("state.facts.role[0]", "type-mismatch", "state.facts.role[0]", "write state.facts.role.charAt(0)"),
        ("now[0]", "type-mismatch", "now[0]", None),
        ("action.tags.length", "no-fields", "length", "write size(action.tags)"),
        ("now.year", "no-fields", "year", "CEL writes t.getFullYear()"),
        ("has(now.zzz)", "no-fields", "zzz", None),
        (
            "state.facts.orders.exists(k, k.user_id == 'x')",
            "no-fields",
            "user_id",
            "k is a key of the map: write state.facts.orders[k].user_id",
        ),
        ("{'a': 1, 'a': 2}", "duplicate-key", "'a'", None),
        ("state.ledger", "opaque", "state.ledger", None),
        ("[state.ledger]", "opaque", "state.ledger", None),
        ("timestamp('2024-05-20T09:00:00')", "bad-literal", "'2024-05-20T09:00:00'", None),
        ("duration('1d')", "bad-literal", "'1d'", None),
        ("action.tool.matches('(')", "bad-literal", "'('", None),
        ("int('abc')", "bad-literal", "'abc'", None),
    ],
)
def test_mistakes(env, text, code, place, hint):
    checked = check(text, env)
    assert [found.code for found in checked.problems] == [code]
    (found,) = checked.problems
    assert text[found.start : found.end] == place
    assert (found.hint is None) if hint is None else hint in (found.hint or found.message)
    assert not checked.ok


def test_the_advice_stands_in_the_message_where_the_library_gives_it(env):
    (found,) = check("duration('1d')", env).problems
    assert "CEL has no days: '24h'" in found.message
    (found,) = check("timestamp('2024-05-20T09:00:00')", env).problems
    assert "timestamp(x + '-05:00')" in found.message


def test_all_problems_are_reported_at_once(env):
    found = check("stat.x == 1 && len(action.tags) > 'a' || action.tool == 'payy'", env).problems
    assert [one.code for one in found] == ["unknown-name", "unknown-function", "unknown-tool"]


@pytest.mark.parametrize(
    ("text", "want", "message"),
    [
        ("action.args.count", cel.BOOL, "a condition must be true or false; this is int"),
        ("'a'", cel.BOOL, "a condition must be true or false; this is string"),
        ("1", cel.STRING, "string is wanted here; this is int"),
    ],
)
def test_the_whole_must_have_the_wanted_type(env, text, want, message):
    assert [found.message for found in check(text, env, want).problems] == [message]
    assert check("state.facts.anything", env, want).ok


def test_a_macro_variable_hides_outer_names_but_never_in_a_define(env):
    hidden = check("[1].all(state, state > 0)", env)
    assert hidden.ok
    assert hidden.paths == frozenset()
    inside = check("['x'].all(action, sensitive && action == 'x')", env)
    assert inside.ok
    assert inside.paths == {("action", "tool")}


def test_problems_in_a_define_stand_in_its_own_text():
    source = cel.Source("stat.x > 1", label="pack.yaml:3")
    env = cel.Env({"state": cel.DYN}, defines={"wrong": cel.parse(source)})
    found = check("wrong && wrong", env).problems
    assert [(one.code, one.source.label) for one in found] == [("unknown-name", "pack.yaml:3")]


def test_defines_that_use_themselves_are_named():
    env = cel.Env({}, defines={"a": cel.parse("b"), "b": cel.parse("c"), "c": cel.parse("a")})
    (found,) = check("a", env).problems
    assert found.code == "define-cycle"
    assert "a -> b -> c -> a" in found.message


def test_defines_are_bounded_when_written_out():
    chain = {f"d{i}": cel.parse(f"!(!(d{i + 1}))") for i in range(60)} | {"d60": cel.parse("true")}
    env = cel.Env({}, defines=chain)
    assert [found.code for found in check("d0", env).problems] == ["too-deep"]
    assert check("d30", env).ok
    wide = {f"d{i}": cel.parse(f"d{i + 1} && d{i + 1}") for i in range(40)} | {"d40": cel.parse("true")}
    checked = check("d0", cel.Env({}, defines=wide))
    assert checked.ok
    assert cel.compile(checked)({}).value is True
    heights = {f"d{i}": cel.parse("!" * 40 + f"d{i + 1}") for i in range(3)} | {"d3": cel.parse("true")}
    env = cel.Env({}, defines=heights)
    assert check("d1 && d2", env).ok
    assert not check("d2 && d1 && d0", env).ok


def test_what_an_expression_can_look_at(env):
    text = (
        "state.facts.orders[action.args.order_id].user_id == 'u' && has(state.facts.role) && nested"
        " && source(state.facts.rate) != '' && count_calls(state.ledger, action.tool, {'a': state.facts.visits}) > 0"
    )
    checked = check(text, env)
    assert checked.paths == {
        ("state", "facts", "orders", None, "user_id"),
        ("action", "args", "order_id"),
        ("action", "args", "amount"),
        ("action", "tool"),
        ("state", "facts", "role"),
        ("state", "facts", "user_authenticated"),
        ("state", "facts", "rate"),
        ("state", "facts", "visits"),
    }
    assert [call.function for call in checked.calls] == ["source", "count_calls"]
    places = {path: cel.render(node) for path, node in cel.looked_at(checked.node)}
    assert places["state", "facts", "rate"] == "state.facts.rate"


def test_conjuncts(env):
    checked = check("(sensitive && (big && known_user)) && action.tool == 'pay'", env)
    texts = [cel.render(part.node) for part in cel.split_and(checked)]
    assert texts == [
        "sensitive",
        "big",
        "state.facts.user_authenticated",
        'state.facts.role != "guest"',
        'action.tool == "pay"',
    ]
    alone = check("big || big", env)
    assert cel.split_and(alone) == (alone,)


def test_constants(env):
    assert check("'a'", env).constant == (True, "a")
    assert check("action.tool", env).constant == (False, None)


def test_without_strict_the_findings_are_warnings_and_errors_of_the_evaluation():
    env = cel.Env({"a.b.c": cel.INT, "x": cel.DYN}, strict=False, container="a.b")
    assert cel.compile(check("c + .a.b.c", env))({"a.b.c": 2}).value == 4
    checked = check("true || (nothing && 1 == 'a' && f(1) && x.g() && 1)", env)
    assert checked.ok
    assert {found.severity for found in checked.problems} == {"warning"}
    assert cel.compile(checked)({}).value is True
    answer = cel.compile(check("nothing", env))({})
    assert not answer.known
    assert answer.error == "no name nothing"
    assert "no such overload" in cel.compile(check("size(1)", env))({}).error
    assert [found.code for found in check("[c].exists(a, a.b.c == 2)", env).problems] == ["no-fields"]


def test_a_function_may_look_at_the_call_itself():
    def known(call, kinds):
        arg = call.args[0]
        if isinstance(arg, cel.Literal) and arg.value != "pay":
            yield cel.Problem("unknown-tool", f"no tool {arg.value}", arg.start, arg.end, arg.source)

    env = cel.Env({}, [cel.Function("called", (cel.STRING,), cel.BOOL, lambda tool: True, check=known)])
    assert check("called('pay')", env).ok
    (found,) = check("called('pya')", env).problems
    assert (found.code, found.start, found.end) == ("unknown-tool", 7, 12)


def test_an_expression_with_errors_is_not_compiled(env):
    with pytest.raises(ValueError, match="no name nothing"):
        cel.compile(check("nothing", env))


def test_the_checker_ends_well_when_its_caller_left_no_stack(env):
    expr = cel.parse("!(" * 60 + "true" + ")" * 60)

    def deep(left):
        return cel.check(expr, env) if left == 0 else deep(left - 1)

    outcomes = set()
    for left in range(500, 960, 20):
        try:
            outcomes |= {found.code for found in deep(left).problems}
        except RecursionError:
            break
    assert outcomes <= {"too-deep"}


# Typos


def edits(name):
    """Every name one deletion, insertion, swap or substitution away (with a few letters)."""
    letters = "aez_1"
    for i in range(len(name)):
        yield name[:i] + name[i + 1 :]
        yield from (name[:i] + letter + name[i + 1 :] for letter in letters)
        if i:
            yield name[: i - 1] + name[i] + name[i - 1] + name[i + 1 :]
    for i in range(len(name) + 1):
        yield from (name[:i] + letter + name[i:] for letter in letters)


@pytest.mark.parametrize(
    ("text", "name", "known"),
    [
        ("{}.facts.role == 'x'", "state", {"state"}),
        ("state.{}.role == 'x'", "facts", {"facts", "ledger"}),
        ("state.facts.{} == 'x'", "role", {"role"}),
        ("has(state.facts.{})", "visits", {"visits"}),
        ("state.facts.orders['a'].{} == 'x'", "user_id", {"user_id"}),
        ("action.args.{} > 1.0", "amount", {"amount"}),
        ("action.tool == '{}'", "look", {"look"}),
        ("{} && big", "sensitive", {"sensitive"}),
        ("{}(state.ledger, 'pay') > 1", "count_calls", {"count_calls"}),
        ("action.tool.{}('a')", "startsWith", {"startsWith"}),
        ("math.{}(1, 2) > 1", "greatest", {"greatest"}),
    ],
)
def test_a_slip_is_an_error_that_suggests_the_name_that_was_meant(env, text, name, known):
    tried = 0
    for wrong in set(edits(name)) - known:
        if not wrong or wrong[0] in string.digits or wrong == "_":
            continue
        tried += 1
        found = check(text.format(wrong), env).problems
        assert found, wrong
        assert any(one.endswith(name) for problem in found for one in problem.suggestions), (wrong, found)
    assert tried > 30


def test_near_names_come_best_first():
    assert nearest("userid", ["users", "user_id", "owner", "zzz"]) == ("user_id", "users")
    assert nearest("ab", ["abc", "abd", "abe", "abf"]) == ("abc", "abd", "abe", "abf")
    assert nearest("x", ["x"]) == ()
    assert distance("ab", "ba") == 1
    assert distance("Role", "role") == 0
    assert distance("a", "abcdef") == 6
    assert distance("a" * 300, "b" * 300) == 300


# Types


def test_how_types_relate():
    ab = cel.RecordType(fields={"a": cel.Field(cel.INT, note="n"), "b": cel.Field(cel.STRING)})
    a = cel.RecordType(fields={"a": cel.Field(cel.DOUBLE)}, open=True)
    joined = cel.join(ab, a)
    assert joined.fields["a"] == cel.Field(cel.DYN, note="n")
    assert joined.fields["b"] == cel.Field(cel.STRING, optional=True)
    assert joined.open
    assert cel.join(cel.INT, cel.INT) is cel.INT
    assert cel.join(cel.INT, cel.DOUBLE) is cel.DYN
    assert cel.join(cel.ListType(elem=cel.INT), cel.ListType(elem=cel.INT)) == cel.ListType(elem=cel.INT)
    assert cel.join(ab, cel.MapType(key=cel.STRING, value=cel.INT)) == cel.MapType(key=cel.STRING)
    assert cel.join(cel.EnumType(values=frozenset("a")), cel.STRING) is cel.STRING
    assert fits(ab, cel.MapType()) and fits(cel.MapType(), ab)
    assert not fits(cel.ListType(elem=cel.INT), cel.ListType(elem=cel.STRING))
    assert not fits(cel.Opaque("x"), cel.DYN)
    assert fits(cel.Opaque("x"), cel.Opaque("x"))
    assert may_equal(cel.INT, cel.DOUBLE) and not may_equal(cel.INT, cel.BOOL)
    assert may_equal(ab, cel.MapType()) and may_equal(cel.ListType(), cel.ListType(elem=cel.INT))
    assert may_order(cel.BOOL, cel.BOOL) and may_order(cel.DYN, cel.DYN) and not may_order(cel.NULL, cel.DYN)
