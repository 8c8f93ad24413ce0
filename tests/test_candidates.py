"""What is worth trying where a call is refused, and the smallest change that lets it pass."""

from __future__ import annotations

from itertools import combinations
from textwrap import dedent

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from ledgercli import cel
from ledgercli.history import History
from ledgercli.paths import ABSENT, PathError
from ledgercli.records import Proposal
from ledgercli.why.candidates import Candidates
from ledgercli.why.comparisons import SIZE, comparisons
from ledgercli.why.looking import looked
from ledgercli.why.situations import Change, Question, Situation, at, leaves, put, read
from ledgercli.why.smallest import Search
from tests import books
from tests.books import NOW

TOOLS = """
    toolset: shop
    tools:
      login:
        access: read
        args: {user: {type: string}}
        returns: {type: object, properties: {id: {type: string}, role: {enum: [guest, clerk, admin]}}}
        on_success: {set: {facts.user: result.data, flags.logged_in: true}}
      look:
        access: read
        args: {id: {type: string}}
        returns:
          type: object
          properties: {owner: {type: string}, total: {type: number}, status: {enum: [new, sent]}, items: {type: array}}
        on_success: {set: {'facts.orders[action.args.id]': result.data}}
      verify:
        access: read
        args: {account: {type: string}}
        on_success: {set: {'facts.accounts[action.args.account]': {known: 'true'}}}
      pay:
        args:
          id: {type: string, default: ""}
          amount: {type: number, default: 10}
          account: {type: string, default: A-77}
          how: {enum: [card, cash], default: card}
          parts: {type: array, default: []}
          count: {type: integer, default: 1}
"""
ORDERS = {
    "#W1": {"owner": "lei", "total": 50, "status": "new", "items": ["kettle"]},
    "#W2": {"owner": "mia", "total": 70, "status": "sent", "items": ["lamp", "pot"]},
}
FACTS = {"orders": ORDERS, "user": {"id": "lei", "role": "clerk"}}


def pack(*checks: str, head: str = "", **more: str) -> str:
    """A pack of rules for `pay`, one a check; `more` are checks by rule."""
    named = {**{f"r{number}": check for number, check in enumerate(checks)}, **more}
    rules = "".join(f"  - {{name: {name}, tools: [pay], check: {check!r}}}\n" for name, check in named.items())
    return f"pack: p\n{dedent(head)}rules:\n{rules}"


@pytest.fixture
def asked(tmp_path):
    """A situation in which `pay` is judged, and the search for what lets it pass."""

    def make(*packs, facts=FACTS, task="pay for #W1", history=None, tool="pay", given=None, **args):
        rules = books.book(tmp_path, *packs, tools=TOOLS, facts=facts, constraints={"limit": 100, "roles": ["admin"]})
        state = rules.initial_state(task=task)
        situation = Situation(Proposal(tool, given or args), state, history or History(task), NOW)
        plan = rules.enforcer.plan(tool)
        return rules, situation, plan and Search(rules.enforcer, plan, rules.vocabulary.tools[tool])

    return make


def ways(search, situation):
    """What a search comes to, as text."""
    shown = search.shown(search.run(situation), situation)
    return [" and ".join(f"{one.name} = {one.value!r}" for one in way) for way in shown]


# ---- situations


TREES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=12,
)


@given(st.dictionaries(st.text(max_size=3), TREES, min_size=1, max_size=4), st.data(), TREES)
def test_a_value_put_into_a_tree_is_there_and_the_rest_stays(tree, data, value):
    path, _ = data.draw(st.sampled_from([one for one in leaves(tree) if one[0]]))
    before = repr(tree)
    made = put(tree, path, value)
    assert at(made, path) == value
    assert repr(tree) == before
    others = {other: leaf for other, leaf in leaves(tree) if other != path}
    assert all(at(made, other) == leaf for other, leaf in others.items())


@given(st.dictionaries(st.text(max_size=3), TREES, min_size=1, max_size=4), st.data())
def test_a_value_taken_out_of_maps_is_gone(tree, data):
    path, _ = data.draw(st.sampled_from([one for one in leaves(tree) if one[0]]))
    assume(all(isinstance(key, str) for key in path))
    assert at(put(tree, path, ABSENT), path) is ABSENT
    assert put(tree, ("not", "there"), ABSENT).get("not", {}) == tree.get("not", {})


def test_what_is_missing_on_the_way_is_made_and_what_is_in_the_way_is_an_error():
    assert put({}, ("a", "b", "c"), 1) == {"a": {"b": {"c": 1}}}
    assert put({"a": [1, 2, 3]}, ("a", 1), ABSENT) == {"a": [1, 3]}
    for tree, path in (({"a": 5}, ("a", "b")), ({"a": [1]}, ("a", 1)), ({"a": {}}, ("a", 0))):
        with pytest.raises(PathError):
            put(tree, path, 1)


@pytest.mark.parametrize(
    ("label", "kind", "place"),
    [
        ('state.facts.orders["#W1.2"].status', "value", ("state", "facts", "orders", "#W1.2", "status")),
        ("has(state.facts.user.id)", "has", ("state", "facts", "user", "id")),
        ('"#W1" in state.facts.orders', "has", ("state", "facts", "orders", "#W1")),
        ("size(action.args.parts)", "size", ("action", "args", "parts")),
        ("state.facts.list[0]", "value", ("state", "facts", "list", 0)),
        ("repeats(action)", "question", ("action", "args")),
        ("source(state.facts.user)", "question", ("state", "facts", "user")),
        ('succeeded("pay",{"id":"x"})', "question", ()),
        ("this is no expression", "other", ()),
        ("1 + 2", "other", ()),
        ("x" * 30_000, "other", ()),
    ],
)
def test_a_read_is_taken_apart(label, kind, place):
    assert (read(label).kind, read(label).path) == (kind, place)


QUESTIONS = {
    'count_calls(state.ledger, "look")': 7,
    'count_calls(state.ledger, "look", {"id": "#W1"})': 7,
    'count_failures(state.ledger, "look")': 7,
    'count_recent_failures(state.ledger, "look")': 7,
    'count_denied(state.ledger, "look")': 7,
    'repeats(state.ledger, "look")': 7,
    "repeats(state.ledger, action)": 7,
    'repeats(state.ledger, {"tool": "look", "args": {"id": "#W9"}})': 7,
    'steps_since(state.ledger, "look")': 7,
    'sum_args(state.ledger, "pay", "amount")': 7.0,
    'distinct_args(state.ledger, "look", "id")': 7,
    'last_result(state.ledger, "look")': 7,
    'last_args(state.ledger, "look").n': None,
}
BOOLEANS = (
    'succeeded(state.ledger, "verify")',
    'succeeded(state.ledger, "verify", {"account": action.args.account})',
    "confirmed(state.ledger, action)",
    'confirmed(state.ledger, {"tool": "pay", "args": {"id": "#W9"}})',
    'from_task("nobody")',
    'from_user("nobody")',
    'from_tool("nobody", "look")',
)


@pytest.mark.parametrize("question", [*(f"{text} == 7" for text in QUESTIONS if text[-1] == ")"), *BOOLEANS])
def test_a_question_that_is_answered_otherwise_makes_the_call_pass_and_is_typed_as_in_a_rule(asked, question):
    history = History("t")
    history.executed("look", {"id": "#W1"}, "ok", {"owner": "lei"}, step=1)
    rules, situation, search = asked(pack(question), history=history)
    assert not situation.passes(rules.enforcer)
    found = search.run(situation)
    [[change]] = [way for way in found.ways if isinstance(way[0].at, Question)][:1]
    then = situation.changed(change)
    assert then.passes(rules.enforcer)
    assert not situation.passes(rules.enforcer)
    assert question.startswith(change.name) or "action.args.account" in question


def test_only_the_question_that_is_changed_is_answered_otherwise(asked):
    once = 'count_calls(state.ledger, "look") == 0', 'count_calls(state.ledger, "verify") == 1'
    rules, situation, _ = asked(pack(*once))
    then = situation.changed(Change(Question("count_calls", ("verify",)), 1))
    assert not situation.passes(rules.enforcer)
    assert then.passes(rules.enforcer)
    assert not then.changed(Change(Question("count_calls", ("look",)), 1)).passes(rules.enforcer)


def test_who_established_a_fact_may_be_another(asked):
    rules, situation, search = asked(pack('source(state.facts.user.id).tool == "login"'))
    found = search.run(situation)
    assert ways(search, situation) == ["source(state.facts.user.id) = {'tool': 'login', 'args': {}, 'step': 0}"]
    assert situation.changed(*found.ways[0]).passes(rules.enforcer)


# ---- what is compared with what


def patterns(rules, check):
    [program] = [cel.compile(cel.check(cel.parse(check), rules.vocabulary.rule_env(rules.packs[0], "pay")))]
    return {(one.sign, *sorted(map(str, one.left | one.right))) for one in comparisons(program.checked)}


@pytest.mark.parametrize(
    ("check", "expected"),
    [
        ("action.args.amount < state.constraints.limit", ("<", ("action", "args", "amount"), ("state", "constraints", "limit"))),
        ("action.args.parts.all(p, p.n == 1)", ("==", ("action", "args", "parts", None, "n"))),
        ("action.args.parts.filter(p, true).all(p, p.n == 1)", ("==", ("action", "args", "parts", None, "n"))),
        ("action.args.parts.map(p, state.facts.orders[p.id]).all(o, o.total > 1)", (">", ("state", "facts", "orders", None, "total"))),
        ("action.args.parts.map(p, state.facts.orders[p.id])[0].total > 1", (">", ("state", "facts", "orders", None, "total"))),
        ("state.facts.orders.exists(id, o, o.owner == 'x')", ("==", ("state", "facts", "orders", None, "owner"))),
        ("(true ? action.args.id : action.args.how) == 'x'", ("==", ("action", "args", "how"), ("action", "args", "id"))),
        ("cel.bind(o, state.facts.orders, o[action.args.id].total > 1)", (">", ("state", "facts", "orders", None, "total"))),
        ("size(action.args.parts) == 2", ("==", ("action", "args", "parts", SIZE))),
        ("double(action.args.count) > 1.0", (">", ("action", "args", "count"))),
        ("count_calls(state.ledger, 'look') < 3", ("<", ("?", "count_calls"))),
        ("action.args.id.startsWith('#')", ("startsWith", ("action", "args", "id"))),
        ("succeeded(state.ledger, 'look', {'id': action.args.id})", ("asked", ("action", "args", "id"))),
        ("from_user(action.args.id)", ("grounded", ("action", "args", "id"))),
        ("state.facts.orders[action.args.id].total == 1.0", ("key", ("action", "args", "id"), ("state", "facts", "orders"))),
        ("mine == 'x'", ("==", ("action", "args", "id"))),
    ],
)  # fmt: skip
def test_the_parts_that_meet_are_told_by_the_paths_of_their_values(asked, check, expected):
    rules, _, _ = asked(pack("true", head="define: {mine: action.args.id}\n"))
    assert (expected[0], *map(str, expected[1:])) in patterns(rules, check)


def test_keys_of_a_map_are_no_values_that_could_be_others(asked):
    rules, _, _ = asked(pack("true"))
    assert patterns(rules, "state.facts.orders.all(id, id != 'x')") == {("!=",)}


# ---- what is tried


def tried(asked, check, **more):
    """What is tried where this check fails: path or question → values."""
    _, situation, search = asked(pack(check), **more)
    values = {}
    for change in search.pool(situation):
        values.setdefault(change.name, []).append(change.value)
    return values


def test_bounds_are_tried_with_their_neighbours(asked):
    values = tried(asked, "action.args.amount <= 5.0")["action.args.amount"]
    assert {5.0, 4.99, 5.01} <= set(values)
    values = tried(asked, "action.args.count > 3")["action.args.count"]
    assert {3, 4, 2} <= set(values)


def test_members_of_a_list_an_enum_and_what_is_outside_are_tried(asked):
    values = tried(asked, "state.facts.user.role in state.constraints.roles")
    assert {"admin", ""} <= set(values["state.facts.user.role"])
    assert ["admin", "clerk"] in values["state.constraints.roles"]
    assert "cash" in tried(asked, "action.args.how != 'card'")["action.args.how"]
    assert "" in tried(asked, "action.args.id != action.args.id", id="x")["action.args.id"]


def test_ids_of_known_records_and_what_other_records_have_are_tried(asked):
    values = tried(asked, "state.facts.orders[action.args.id].owner == state.facts.user.id", id="#W2")
    assert "#W1" in values["action.args.id"]
    assert "lei" in values['state.facts.orders["#W2"].owner']


def test_what_an_earlier_call_was_about_is_tried(asked):
    history = History("t")
    history.executed("verify", {"account": "A-71"}, "ok", None, step=1)
    history.executed("verify", {"account": "A-00"}, "error", None, step=2)
    check = "succeeded(state.ledger, 'verify', {'account': action.args.account})"
    assert "A-71" in tried(asked, check, history=history)["action.args.account"]
    assert "A-00" not in tried(asked, check, history=history)["action.args.account"]


def test_a_number_is_solved_for_what_is_computed_of_it(asked):
    values = tried(asked, "action.args.amount * 3.0 + 7.0 == 100.0")["action.args.amount"]
    assert 31.0 in values
    values = tried(asked, "action.args.count * 3 >= 100")["action.args.count"]
    assert 34 in values


def test_what_is_missing_is_tried_with_all_of_its_type_and_what_is_known_without_it(asked):
    values = tried(asked, "has(state.facts.orders['#W9'].total) && state.flags.logged_in", id="#W9")
    assert any(value["total"] == 50 for value in values['state.facts.orders["#W9"]'] if value)
    values = tried(asked, "!(action.args.id in state.facts.orders)", id="#W1")
    assert values['state.facts.orders["#W1"]'] == [ABSENT]


def test_a_record_that_is_not_known_is_tried_with_what_is_looked_for_in_it(asked):
    facts = {"user": FACTS["user"]}
    check = "state.facts.orders[action.args.id].status == 'sent'"
    values = tried(asked, check, facts=facts, id="#W9")['state.facts.orders["#W9"]']
    assert values[0]["status"] == "sent"


def test_times_are_tried_as_they_are_written(asked):
    _, situation, search = asked(pack("timestamp(action.args.id + 'Z') == now"), id="2020-01-01T00:00:00")
    assert ways(search, situation) == ["action.args.id = '2026-08-01T12:00:00'"]


def test_nothing_is_tried_for_the_time_and_the_same_is_tried_each_time(asked):
    check = "action.args.amount < 5.0 && now < timestamp('2020-01-01T00:00:00Z')"
    assert set(tried(asked, check)) == {"action.args.amount"}
    assert tried(asked, check) == tried(asked, check)


# ---- the smallest change


@pytest.mark.parametrize(
    ("checks", "args", "expected"),
    [
        (["action.args.amount <= 5.0"], {}, ["action.args.amount = 5.0"]),
        (["state.flags.logged_in"], {}, ["state.flags.logged_in = True"]),
        (
            ["action.args.amount <= 5.0", "action.args.how == 'cash'"],
            {},
            ["action.args.amount = 5.0 and action.args.how = 'cash'"],
        ),
        (
            ["action.args.amount <= 5.0 && state.flags.logged_in && state.facts.user.role == 'admin'"],
            {},
            ["action.args.amount = 5.0 and state.facts.user.role = 'admin' and state.flags.logged_in = True"],
        ),
        (["state.facts.orders[action.args.id].owner == 'mia'"], {"id": "#W1"}, ["action.args.id = '#W2'"]),
    ],
)
def test_the_smallest_change_is_found(asked, checks, args, expected):
    rules, situation, search = asked(pack(*checks), **args)
    found = search.run(situation)
    assert found.why == "found"
    assert set(expected) <= set(ways(search, situation))
    assert all(situation.changed(*way).passes(rules.enforcer) for way in found.ways)


def test_of_several_values_of_one_place_the_nearest_is_shown(asked):
    _, situation, search = asked(pack("action.args.amount <= 5.0 || action.args.amount >= 11.0"), amount=10.5)
    assert ways(search, situation) == ["action.args.amount = 11.0"]


def test_each_place_is_shown_once_and_what_a_person_does_goes_first(asked):
    check = "action.args.amount <= double(state.constraints.limit) || state.flags.logged_in"
    _, situation, search = asked(pack(check), amount=120)
    assert ways(search, situation) == [
        "action.args.amount = 100.0",
        "state.flags.logged_in = True",
        "state.constraints.limit = 120",
    ]


def test_what_can_never_pass_is_said_to(asked):
    for check in ("false", "action.access == 'read'", "now < timestamp('2020-01-01T00:00:00Z')"):
        _, situation, search = asked(pack("action.args.amount < 5.0", never=check))
        assert (search.run(situation).why, search.run(situation).names) == ("nothing", ("p/never",))


def test_more_than_three_values_are_not_found_and_that_is_said(asked):
    checks = [
        "state.facts.user.id == 'x'",
        "action.args.amount < 5.0",
        "action.args.how == 'cash'",
        "action.args.id == 'y'",
    ]
    _, situation, search = asked(pack(*checks))
    found = search.run(situation)
    assert (found.ways, found.why) == ((), "tried")
    search.most = 1
    assert search.run(situation).why == "bound"


def test_where_not_all_smaller_changes_were_tried_that_is_said(asked):
    _, situation, search = asked(pack("action.args.amount < 5.0", "state.flags.logged_in || action.args.amount > 99.0"))
    assert (len(search.run(situation).ways[0]), search.run(situation).bounded) == (2, False)
    said = set()
    for search.most in range(1, 40):
        found = search.run(situation)
        said.add((found.why, found.bounded))
    assert said == {("bound", False), ("found", True), ("found", False)}


def test_what_is_empty_is_shown_only_where_nothing_else_is_known(asked):
    _, situation, search = asked(pack("!(action.args.id in ['#W1'])"), id="#W1")
    assert ways(search, situation) == ["action.args.id = '#W2'"]
    _, situation, search = asked(pack("!(action.args.id in ['x'])"), id="x")
    assert ways(search, situation) == ["action.args.id = ''"]


def test_a_masked_value_is_not_guessed_at(asked):
    mask = {"redacted": "hmac-sha256:00"}
    _, situation, search = asked(pack("state.facts.user.id == 'x'"), facts={**FACTS, "user": {"id": mask}})
    found = search.run(situation)
    assert (found.why, found.names) == ("masked", ("state.facts.user.id",))


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        ({"how": "cheque"}, ["action.args.how = 'card'"]),
        ({"amount": "12"}, ["action.args.amount = 12"]),
        ({"nosuch": 1}, ["action.args.nosuch = ABSENT"]),
        ({"parts": "x"}, ["action.args.parts = ['x']"]),
        ({"id": 5}, ["action.args.id = '5'"]),
    ],
)
def test_arguments_that_do_not_fit_are_mended(asked, args, expected):
    _, situation, search = asked(pack("true"), **args)
    assert ways(search, situation) == expected


def test_an_argument_that_is_missing_is_given(asked):
    _, situation, search = asked(pack("true"), tool="verify")
    assert ways(search, situation) == ["action.args.account = ''"]


def test_a_grant_of_an_allow_list_may_be_what_is_missing(asked):
    allow = """
        pack: p
        default: deny
        rules:
          - {name: clerks, tools: [pay], condition: state.flags.logged_in, grant: action.args.amount < 5.0}
    """
    rules, situation, search = asked(allow)
    found = search.run(situation)
    assert ways(search, situation) == ["action.args.amount = 4.99 and state.flags.logged_in = True"]
    assert situation.changed(*found.ways[0]).passes(rules.enforcer)


def test_a_grant_of_higher_priority_may_override_what_failed(asked):
    ranked = """
        pack: p
        resolve: priority
        rules:
          - {name: never, tools: [pay], priority: 1, check: "action.args.amount < 5.0 && state.flags.logged_in"}
          - {name: admins, tools: [pay], priority: 9, grant: state.facts.user.role == 'admin'}
    """
    _, situation, search = asked(ranked)
    assert ways(search, situation) == ["state.facts.user.role = 'admin'"]


def test_a_rule_may_cease_to_apply(asked):
    conditional = """
        pack: p
        active: state.flags.logged_in
        rules: [{name: r, tools: [pay], condition: "action.args.how == 'card'", check: action.args.amount < 5.0}]
    """
    rules, situation, search = asked(conditional)
    then = situation.changed(Change(("state", "flags", "logged_in"), True))
    assert set(ways(search, then)) == {
        "action.args.amount = 4.99",
        "action.args.how = 'cash'",
        "state.flags.logged_in = False",
    }
    assert situation.passes(rules.enforcer)


ATOMS = (
    "action.args.amount < 5.0",
    "action.args.amount == 20.0",
    "action.args.how == 'cash'",
    "action.args.count > 3",
    "state.flags.logged_in",
    "state.facts.user.role == 'admin'",
    "state.facts.user.id != 'lei'",
    "state.facts.orders[action.args.id].owner == state.facts.user.id",
    "state.facts.orders[action.args.id].total <= action.args.amount",
    "succeeded(state.ledger, 'verify')",
    "size(action.args.parts) > 0",
    "from_task(action.args.id)",
)
CHECKS = st.lists(
    st.lists(st.sampled_from(ATOMS), min_size=1, max_size=2, unique=True).map(" || ".join),
    min_size=1,
    max_size=4,
    unique=True,
)


@settings(max_examples=40, deadline=None)
@given(CHECKS, st.sampled_from(["#W1", "#W2", "#W3"]), st.sampled_from([1, 10, 60]))
def test_nothing_smaller_is_found_by_trying_every_pair(tmp_path_factory, checks, order, amount):
    rules = books.book(tmp_path_factory.mktemp("p"), pack(*checks), tools=TOOLS, facts=FACTS, constraints={"limit": 1})
    state = rules.initial_state(task="pay #W1")
    situation = Situation(Proposal("pay", {"id": order, "amount": amount}), state, History("pay #W1"), NOW)
    assume(not situation.passes(rules.enforcer))
    search = Search(rules.enforcer, rules.enforcer.plan("pay"), rules.vocabulary.tools["pay"])
    found = search.run(situation)
    size = len(found.ways[0]) if found.ways else 4
    assert all(len(way) == size for way in found.ways)
    assert all(situation.changed(*way).passes(rules.enforcer) for way in found.ways)
    assert smallest_by_force(rules, situation, search.pool(situation), 2) >= min(size, 3)


def smallest_by_force(rules, situation, pool, most):
    """How many changes of a pool let a call pass, by trying all; one more than `most` if none do."""
    for size in range(1, most + 1):
        for way in combinations(pool, size):
            if any(one.overlaps(other) for one, other in combinations(way, 2)):
                continue
            try:
                if situation.changed(*way).passes(rules.enforcer):
                    return size
            except PathError:
                continue
    return most + 1


def test_what_expressions_look_at_is_told_with_what_was_not_there(asked):
    _, situation, search = asked(pack("state.facts.orders[action.args.id].total > 1.0"), id="#W9")
    [rule] = search.plan.packs[0].rules
    seen = looked([rule.decides], search.plan, situation)
    assert [one.label for one in seen.touched()] == ['state.facts.orders["#W9"]', "action.args.id"]
    again, changes = Candidates(search.plan, search.tool.args).of([rule.decides], situation)
    assert again.reads == seen.reads
    assert {change.name for change in changes} == {"action.args.id", 'state.facts.orders["#W9"]'}


def test_a_call_of_no_tool_has_no_rules_to_search(asked):
    rules, situation, search = asked(pack("true"), tool="nosuch")
    assert search is None
    assert not situation.passes(rules.enforcer)


def test_a_change_touches_what_is_read_above_and_below_it():
    orders = Change(("state", "facts", "orders", "#W1"), {})
    assert orders.touches(read('state.facts.orders["#W1"].total'))
    assert orders.touches(read("size(state.facts.orders)"))
    assert not orders.touches(read('state.facts.orders["#W2"]'))
    assert Change(("action", "args", "id"), 1).touches(read("repeats(action)"))
    asked = Change(Question("succeeded", ("verify",)), True)
    assert asked.touches(read('succeeded("verify")'))
    assert not asked.touches(read('succeeded("look")'))
    assert asked.overlaps(asked)
    assert not asked.overlaps(orders)
