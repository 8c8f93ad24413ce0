"""Sentences say what rules check: read back by somebody who takes them at their word, they agree with the rule."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledgercli import cel, documenting
from ledgercli.cel.types import Field, ListType, MapType, RecordType
from ledgercli.functions import LEDGER, functions
from ledgercli.loading import Loader
from ledgercli.policy import RuleModel
from ledgercli.policytests import rulebook_of
from ledgercli.rules import CompiledRule, Compiler
from ledgercli.sentences import ANY_CALL, Statement, state
from ledgercli.sentences.saying import UNSAID
from ledgercli.validation import load_cases
from tests.sentence_reader import Reader
from tests.sentence_worlds import Maker, World

PROJECT = Path(__file__).resolve().parent.parent
CASES = [
    *(f"fixtures/cases/{name}.cases.yaml" for name in ("support", "loops", "confirm", "goodwill", "limits", "airline")),
    "fixtures/scenarios/weather.cases.yaml",
]
OPERATORS = re.compile(r"==|!=|<|>|&&|\|\||\?|!|\+|\*| in | - ")
QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"')


def compiled() -> Iterator[tuple[str, str, CompiledRule, Maker, tuple[str, list[str]]]]:
    """Each rule of each shipped pack, for the first tool that it asks something of."""
    seen: set[str] = set()
    for name in CASES:
        cases = load_cases(Loader(), str(PROJECT / name))
        assert cases is not None
        book = rulebook_of(cases)
        compiler = Compiler(book.vocabulary, cases.packs)
        for pack in cases.packs:
            env = book.vocabulary.state_env(pack)
            for tool, spec in cases.toolset.tools.items():
                for rule in compiler.rules(pack, tool):
                    if rule.name in seen or rule.what.constant == (True, True):
                        continue
                    seen.add(rule.name)
                    nodes = [one.node for one in (rule.when, rule.what) if one]
                    maker = Maker(env.names["state"], book.vocabulary.action_type(pack, tool), nodes)
                    yield rule.name, tool, rule, maker, (spec.access, list(spec.tags))


RULES = {name: (tool, rule, maker, kind) for name, tool, rule, maker, kind in compiled()}


def passes(rule: CompiledRule, world: World) -> bool:
    """What the rule itself says: whether a check holds or does not apply, whether a grant opens."""
    when = rule.condition(world.roots, world.moment) if rule.condition else None
    if when is not None and when.known and when.value is not True:
        return not rule.is_grant
    return (when is None or when.known) and rule.decides.holds(world.roots, world.moment)


def reads(statement: Statement, subject: str, rule: CompiledRule, world: World) -> bool:
    reader = Reader(subject, statement.where, world.read, world.told)
    return (reader.grants if rule.is_grant else reader.passes)(statement.sentences)


def test_every_shipped_rule_is_here():
    packs = [path for path in (PROJECT / "policies").glob("*.yaml") if not path.stem.endswith(".tools")]
    named = {one for path in packs for one in re.findall(r"^  - name: (\S+)", path.read_text("utf-8"), re.MULTILINE)}
    assert {name.partition("/")[2] for name in RULES} == named


@pytest.mark.parametrize("name", RULES)
def test_a_shipped_rule_and_its_sentences_agree(name):
    tool, rule, maker, (access, tags) = RULES[name]
    statement = state(rule, tool, by_priority=rule.is_grant)
    answers = {True: 0, False: 0}
    for world in islice(maker.worlds(tool, access, tags, seed=1), 400):
        said = passes(rule, world)
        assert reads(statement, tool, rule, world) is said, (world.roots, list(statement.lines()))
        answers[said] += 1
        if min(answers.values()) >= 8 and sum(answers.values()) >= 40:
            break
    assert min(answers.values()) > 0, answers


@pytest.mark.parametrize("name", RULES)
def test_the_sentences_of_a_shipped_rule_are_plain_and_name_every_field(name):
    tool, rule, _, _ = RULES[name]
    lines = list(state(rule, tool, by_priority=rule.is_grant).lines())
    assert not any(UNSAID in line for line in lines)
    check_lines(lines)
    check_fields(rule, lines)


def test_what_holds_for_all_sentences_is_as_short():
    check_lines(list(documenting.LEGEND))


@pytest.mark.parametrize("pack", ["loops", "confirm"])
def test_what_is_said_of_each_call_agrees_with_the_rule_for_a_tool(pack):
    packs = documenting.loaded(str(PROJECT / f"policies/{pack}.yaml"))
    (part,) = documenting.document(packs, documenting.compiled(packs, None))
    (every,) = part.tools
    assert {f"{pack}/{one.rule}" for one in every.requirements} == {one for one in RULES if one.startswith(pack)}
    for one in every.requirements:
        tool, rule, maker, (access, tags) = RULES[f"{pack}/{one.rule}"]
        check_lines(list(one.statement.lines()))
        for world in islice(maker.worlds(tool, access, tags, seed=2), 20):
            assert reads(one.statement, ANY_CALL, rule, world) is passes(rule, world)


def check_lines(lines: list[str]) -> None:
    for line in lines:
        assert len(line.split()) <= 25, line
        assert not OPERATORS.search(QUOTED.sub('""', line)), line


def check_fields(rule: CompiledRule, lines: list[str]) -> None:
    """Every name in a path that is looked at stands in the lines as a word of its own."""
    words = set(re.findall(r"\w+", " ".join(lines)))
    for checked in filter(None, (rule.when, rule.what)):
        for path, _ in cel.looked_at(checked.node):
            if path[:2] not in (("state", "ledger"), ("action",)):
                assert {one for one in path if isinstance(one, str)} <= words, path
        for node in cel.walk(checked.node):
            if isinstance(node, cel.Select) and path_is_open(node):
                assert node.field in words, node.field


def path_is_open(node: cel.Select) -> bool:
    """Whether a field is not part of a path from a root, which is looked at above."""
    return cel.path_of(node) is None


# ---- any expression

STATE = RecordType(
    "state",
    {
        "facts": Field(
            RecordType(
                "facts",
                {
                    "known": Field(cel.BOOL), "n": Field(cel.INT), "limit": Field(cel.INT), "word": Field(cel.STRING),
                    "orders": Field(MapType(key=cel.STRING, value=RecordType("order", {
                        "total": Field(cel.INT), "status": Field(cel.STRING), "paid": Field(cel.BOOL)}))),
                    "names": Field(ListType(elem=cel.STRING)),
                },
            )
        ),
        "ledger": Field(LEDGER),
    },
)  # fmt: skip
ARGS = RecordType("args", {"id": Field(cel.STRING), "amount": Field(cel.INT), "fast": Field(cel.BOOL)})
ACTION = RecordType(
    "action",
    {
        "tool": Field(cel.STRING),
        "access": Field(cel.STRING),
        "tags": Field(ListType(elem=cel.STRING)),
        "args": Field(ARGS),
    },
)
TOOLS = {"pay": ["id", "amount", "fast"], "look": ["id"]}
DEFINES = {
    "order": "state.facts.orders[action.args.id]",
    "large": "action.args.amount > state.facts.limit && state.facts.n >= 1",
    "total": "action.args.amount + state.facts.n * 2 - order.total",
    "open_orders": "state.facts.orders.filter(k, state.facts.orders[k].status != 'done')",
    "price": "large ? order.total : action.args.amount",
}
ENV = cel.Env(
    {"state": STATE, "action": ACTION, "now": cel.TIMESTAMP},
    functions=functions(TOOLS),
    defines={name: cel.parse(text) for name, text in DEFINES.items()},
)

numbers = st.sampled_from(
    ["0", "1", "3", "action.args.amount", "state.facts.n", "state.facts.limit", "order.total", "total", "price",
     "size(state.facts.names)", "size(open_orders)", "count_calls(state.ledger, 'pay')", "(state.facts.n + 1) * 2",
     "state.facts.n - (action.args.amount - 1)", "repeats(state.ledger, action)", "sum(state.facts.names.map(x, size(x)))",
     "count_recent_failures(state.ledger, action.tool)", "state.facts.orders['a'].total"]
)  # fmt: skip
texts = st.sampled_from(["'a'", "'b'", "'not known'", "action.args.id", "state.facts.word", "order.status", "'and'"])
facts = st.one_of(
    st.sampled_from(
        ["state.facts.known", "action.args.fast", "order.paid", "large", "has(state.facts.known)", "has(order.status)",
         "succeeded(state.ledger, 'look', {'id': action.args.id})", "succeeded(state.ledger, 'pay')",
         "from_user(action.args.id)", "confirmed(state.ledger, action)", "from_tool(action.args.id, 'look')",
         "action.args.id in state.facts.orders", "state.facts.word in state.facts.names",
         "state.facts.names.exists_one(x, x == action.args.id)", "size(state.facts.names.filter(x, x == 'a')) <= 1",
         "cel.bind(o, order, o.paid || o.total < 2)"]
    ),
    st.builds("{} {} {}".format, numbers, st.sampled_from(["<", "<=", ">", ">=", "==", "!="]), numbers),
    st.builds("{} {} {}".format, texts, st.sampled_from(["<", "<=", ">", ">=", "==", "!="]), texts),
    st.builds("{} in ['a', {}, {}]".format, texts, texts, texts),
    st.builds("{}.{}({})".format, texts, st.sampled_from(["startsWith", "endsWith", "contains"]), texts),
)  # fmt: skip


def larger(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.builds("({} && {})".format, inner, inner),
        st.builds("({} || {})".format, inner, inner),
        st.builds("!({})".format, inner),
        st.builds("({} ? {} : {})".format, inner, inner, inner),
        st.builds("({}) == ({})".format, inner, inner),
        st.builds("state.facts.names.all(x, x != 'b' || {})".format, inner),
        st.builds("!state.facts.orders.exists(k, state.facts.orders[k].paid && {})".format, inner),
        st.builds("state.facts.orders.all(k, o, o.total > 0 || {})".format, inner),
        st.builds("(({}) ? 1 : state.facts.n) < 2".format, inner),
    )


expressions = st.recursive(facts, larger, max_leaves=9)


def rule_of(check: str, condition: str | None = None) -> CompiledRule:
    model = RuleModel(name="r", check=check, condition=condition)
    whole = cel.check(cel.parse(check), ENV, cel.BOOL)
    when = cel.check(cel.parse(condition), ENV, cel.BOOL) if condition else None
    return CompiledRule("p/r", model, when, whole, None, None)


@given(check=expressions, condition=st.none() | expressions, seed=st.integers(0, 10**6))
@settings(max_examples=60, deadline=None)
def test_any_rule_and_its_sentences_agree(check, condition, seed):
    agrees(check, condition, seed)


@pytest.mark.slow
@pytest.mark.timeout(900)
@given(check=expressions, condition=st.none() | expressions, seed=st.integers(0, 10**6))
@settings(max_examples=1000, deadline=None)
def test_many_rules_and_their_sentences_agree(check, condition, seed):
    agrees(check, condition, seed)


def agrees(check: str, condition: str | None, seed: int) -> None:
    rule = rule_of(check, condition)
    if not rule.what.ok or (rule.when is not None and not rule.when.ok):
        return  # such as a literal compared with another
    statement = state(rule, "pay")
    lines = list(statement.lines())
    check_lines(lines)
    check_fields(rule, lines)
    if any(UNSAID in line or "plain words cannot say" in line for line in lines):
        return
    maker = Maker(STATE, ACTION, [rule.what.node])
    for world in islice(maker.worlds("pay", "write", [], seed), 12):
        assert reads(statement, "pay", rule, world) is passes(rule, world), (world.roots, lines)


# ---- one by one

SAID = [
    ("state.facts.known", ["pay only if state.facts.known is true."]),
    ("!state.facts.known", ["pay only if state.facts.known is false."]),
    ("!(action.args.amount > 5)", ["pay only if action.args.amount is at most 5."]),
    ("5 < action.args.amount", ["pay only if action.args.amount is more than 5."]),
    ("action.args.id in ['a1', 'b1']", ["pay only if action.args.id is a1 or b1."]),
    ("!(action.args.id in ['a1', 'b1', 'no'])", ['pay only if action.args.id is none of a1, b1 or "no".']),
    ("has(state.facts.known)", ["pay only if state.facts.known is known."]),
    ("!has(state.facts.known)", ["pay only if state.facts.known is not known."]),
    ("!has(order.paid)", ["pay only if state.facts.orders[action.args.id] lacks paid."]),
    ("!succeeded(state.ledger, 'look')", ["pay only if look has never succeeded."]),
    (
        "succeeded(state.ledger, 'look', {'id': action.args.id})",
        ["pay only if look has succeeded with action.args.id as id."],
    ),
    ("!(state.facts.known || action.args.fast)", [
        "pay only if state.facts.known is false.", "pay only if action.args.fast is false.",
    ]),
    ("price > 3", [
        "pay only if price is more than 3.",
        (
            "price is state.facts.orders[action.args.id].total where action.args.amount is more than state.facts.limit "
            "and state.facts.n is at least 1, otherwise action.args.amount."
        ),
    ]),
    ("state.facts.names.exists(x, x == 'not known')", [
        'pay only if, for some x of state.facts.names, x is "not known".',
    ]),
    ("{'a': 1}.transformMap(k, v, v + state.facts.n).size() == 1", [f"pay only if {UNSAID} state.facts.n."]),
    ("state.facts.word == '" + "so long " * 9 + "'", [f"pay only if {UNSAID} state.facts.word."]),
]  # fmt: skip


@pytest.mark.parametrize(("check", "lines"), SAID)
def test_what_a_check_says(check, lines):
    assert list(state(rule_of(check), "pay").lines()) == lines


def with_model(rule: CompiledRule, **model: object) -> CompiledRule:
    return replace(rule, model=RuleModel(name="r", **model))


ROLES = [
    ({"on_fail": {"effect": "warn"}}, ["pay warns unless state.facts.known is true."]),
    ({"on_fail": {"effect": "require_approval"}}, ["pay asks for approval unless state.facts.known is true."]),
    ({"on_fail": {"halt": True}}, ["pay only if state.facts.known is true.", "Otherwise the run ends."]),
    ({"mode": "shadow"}, [
        "pay is noted unless state.facts.known is true.", "This rule only watches: it decides nothing.",
    ]),
]  # fmt: skip


@pytest.mark.parametrize(("model", "lines"), ROLES)
def test_what_failing_means_is_said(model, lines):
    rule = with_model(rule_of("state.facts.known"), check="state.facts.known", **model)
    assert list(state(rule, "pay").lines()) == lines


def test_a_grant_says_what_it_goes_before():
    rule = with_model(rule_of("state.facts.known || order.paid"), grant="state.facts.known", priority=7)
    paid = "state.facts.known is true, or state.facts.orders[action.args.id].paid is true."
    assert list(state(rule, "pay").lines()) == [f"pay is allowed if {paid}"]
    over = f"pay is allowed, whatever rules below priority 7 say, if {paid}"
    assert list(state(rule, "pay", by_priority=True).lines()) == [over]


def test_a_check_that_never_holds_says_when_the_rule_does_not_apply():
    assert list(state(rule_of("false", "state.facts.known"), "pay").lines()) == [
        "pay only if state.facts.known is false."
    ]
    assert list(state(rule_of("false"), "pay").lines()) == ["pay is always denied."]
    assert not state(rule_of("true", "state.facts.known"), "pay")


def test_without_state_before_the_fields_as_a_prompt_has_them():
    lines = list(state(rule_of("state.facts.known && order.paid"), "start_approval", bare=True).lines())
    assert lines == [
        "start_approval only if facts.known is true.",
        "start_approval only if facts.orders[action.args.id].paid is true.",
    ]


@pytest.mark.parametrize("depth", [5, 25])
def test_defines_that_double_each_time_are_not_written_out(depth):
    defines = {"d0": "state.facts.n > 1", **{f"d{n}": f"d{n - 1} || !d{n - 1}" for n in range(1, depth)}}
    env = replace(ENV, defines={name: cel.parse(text) for name, text in defines.items()})
    check = cel.check(cel.parse(f"d{depth - 1}"), env, cel.BOOL)
    lines = list(state(replace(rule_of("true"), what=check), "pay").lines())
    assert len(lines) <= 40
    check_lines(lines)
    assert (UNSAID in lines[0]) is (depth == 25)
