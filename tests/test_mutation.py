"""Mutants: what is changed in a pack, which case catches it, and a case for each that none does."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from ledgercli.casework.groups import Group, Groups
from ledgercli.casework.preparing import Preparer
from ledgercli.loading import load_packs, load_toolset
from ledgercli.mutation.catching import Bench, words_of
from ledgercli.mutation.mutating import LEAST, mutants
from ledgercli.mutation.recompiling import Changed
from ledgercli.mutation.slips import Words, edits_of
from ledgercli.policy import shipped_names
from ledgercli.vocabulary import Vocabulary
from tests import brute
from tests.commands import ROOT, Run, command_line
from tests.desks import write
from tests.mutants import afresh, difference, failing, group_of, hold_to_the_truth

WORDS = Words(
    {"pay": frozenset({"id", "amount"}), "look": frozenset({"id"}), "finish": frozenset({"answer"})},
    frozenset({"pay"}),
    (("read", "write"), ("gold", "silver", "regular")),
)
CASES = """
- {name: a customer pays, propose: {tool: pay, args: {amount: 100}}, expect: allow}
- {name: a guest does not, state: {facts: {user: guest}}, propose: {tool: pay, args: {amount: 5}}, expect: {rules: [known]}}
- {name: nobody does not, unset: [facts.user], propose: {tool: pay, args: {amount: 5}}, expect: {rules: [known], halts: true}}
"""


@pytest.fixture
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Run]:
    with command_line(tmp_path, monkeypatch, capsys) as run:
        yield run


# ---- what is changed


@pytest.mark.parametrize(
    ("text", "edited"),
    [
        ("a < 3", ["!(a < 3)", "a <= 3", "a < 4", "a < 2"]),
        ("a >= -1", ["!(a >= -1)", "a > -1", "a >= 0", "a >= -2"]),
        ("x < 0.5", ["!(x < 0.5)", "x <= 0.5", "x < 1.0", "x < 0.25"]),
        ("!a", ["a"]),
        ("a && (b || c)", ["!(a && (b || c))", "(b || c)", "a", "a && c", "a && b"]),
        ("a && b && c", ["!(a && b && c)", "b && c", "a && c", "a && b"]),
        ("(a || b < 1) && c", ["!((a || b < 1) && c)", "c", "(a || b < 1)", "(b < 1) && c", "a && c"]),
        ("a || !has(b.c)", ["!(a || !has(b.c))", "!has(b.c)", "a", "a || has(b.c)"]),
        ("a == 'write'", ["!(a == 'write')", "a != 'write'", "a == 'read'"]),
        ('a != "gold"', ['!(a != "gold")', 'a == "gold"', 'a != "silver"']),
        ("a == 'nobody'", ["!(a == 'nobody')", "a != 'nobody'", "a == 'nobodyx'"]),
        ("a == true", ["!(a == true)", "a != true", "a == false"]),
        ("a in ['gold', 'silver']", ["a in ['silver']", "a in ['gold']", "a in ['gold', 'silver', 'regular']"]),
        ("b || a in c", ["a in c", "b", "b || !(a in c)"]),
        ("a ? b : c", ["a ? c : b"]),
        ("f(a, 0)", ["f(a, 1)"]),
        ("t - u <= duration('24h')", ["t - u < duration('24h')", "t - u <= duration('25h')"]),
        ("succeeded(l, 'pay', {'id': a})", ["succeeded(l, 'look', {'id': a})"]),
        ("succeeded(l, 'pay', {'amount': a})", ["!(succeeded(l, 'pay', {'amount': a}))"]),
        ("sum_args(l, 'pay', 'amount') > 9", ["sum_args(l, 'pay', 'id') > 9"]),
        ("a.all(x, x.y == 1)", ["a.all(x, x.y != 1)", "a.all(x, x.y == 2)"]),
    ],
)
def test_one_part_of_an_expression_is_changed_and_the_rest_stays_as_it_is(text: str, edited: list[str]) -> None:
    found = [edit.text for edit in edits_of(text, WORDS)]
    assert set(edited) <= set(found)
    assert len(set(found)) == len(found)
    assert text not in found


def test_a_value_that_is_no_truth_is_not_negated():
    assert [edit.text for edit in edits_of("a + 1", WORDS, truth=False)] == ["a + 2", "a + 0"]
    assert "!(a < 1)" in [edit.text for edit in edits_of("a < 1", WORDS, truth=False)]


def test_every_rule_of_a_shipped_pack_has_five_mutants_each_at_its_place_and_none_like_another():
    packs = [load_packs([f"ledgercli:{name}"])[-1] for name in shipped_names()]
    for pack in packs:
        made = mutants(pack, WORDS)
        assert len({"", *(difference(pack, one.pack) for one in made)}) == len(made) + 1, pack.name
        counts = Counter(one.rule for one in made)
        assert all(counts[rule.name] >= LEAST for rule in pack.file.rules), pack.name
        lines = pack.document.text.split("\n")
        for one in made:
            shown = one.before.split()[0] if one.before else ""
            if one.change in ("drop a conjunct", "drop a disjunct", "drop a tool", "drop the rule"):
                assert lines[one.line - 1][one.column - 1 :].startswith(shown), one
    assert sum(len(pack.file.rules) for pack in packs) > 50


def test_a_rule_that_says_little_still_has_five():
    pack = brute.load(
        "pack: p\ndefault: deny\nrules:\n  - {name: a, grant: state.flags.f}\n  - {name: b, check: 'true'}\n"
    )
    assert pack is not None
    counts = Counter(one.rule for one in mutants(pack, Words()))
    assert counts["a"] >= LEAST
    assert counts["b"] >= LEAST


# ---- what catches it


def desk(ledger: Run, tests: str = CASES, **more: str) -> Group:
    file = write(ledger.folder, tests, **more)
    group, problems = Groups().of(str(file))
    assert group is not None
    assert problems == []
    return group


SETTINGS = """
pack: desk
constraints: {limit: 100, limits: {few: [1, true]}}
active: '!("x" in state.facts.items) && free'
resolve: priority
define:
  free: '!("y" in state.facts.items)'
  large: action.args.amount > double(state.constraints.limit)
rules:
  - {name: known, tools: [pay], check: "has(state.facts.user) && state.facts.user != 'guest'"}
  - {name: any, tools: [pay], grant: "!large", priority: -1}
  - {name: asks, condition: action.tool == 'pay', check: '!large', on_fail: {effect: require_approval}}
"""


def test_a_mutant_is_judged_as_if_its_pack_had_been_loaded(ledger):
    much = "- {name: much, propose: {tool: pay, args: {amount: 101}}, expect: require_approval}"
    group = desk(ledger, CASES + much, pack=SETTINGS)
    bench = Bench(group, Preparer(group).now)
    every = bench.mutants(group.packs[0].document.source.name)
    caught = 0
    for mutant in every:
        changed, other = Changed(group, mutant), afresh(group, mutant.pack)
        assert bool(changed.problems()) == (other is None), mutant
        if other is not None:
            case = bench.catching(changed)
            passing = {ready.name for ready, _ in bench.passing}
            assert (case is not None) == bool(passing & set(failing(other))), mutant
            caught += case is not None
    assert caught > 15


def mutated(ledger: Run, *more: str) -> tuple[int, dict]:
    code = ledger("test-policies", ".", "--mutate", "--format", "json", *more)
    [pack] = json.loads(ledger.out)["mutation"]["packs"]
    return code, pack


def test_the_cases_that_are_proposed_catch_what_none_did(ledger):
    file = write(ledger.folder, CASES)
    code, pack = mutated(ledger)
    survivors = [one for one in pack["tried"] if one["came"] == "survived"]
    assert (code, pack["survive"]) == (0, len(survivors))
    assert pack["mutants"] == pack["caught"] + pack["survive"] + pack["proved_the_same"] + pack["do_not_load"]
    lines: dict[str, None] = {}
    for one in survivors:
        assert one["case"], one
        assert one["case"]["file"] == "desk.cases.yaml"
        lines[one["case"]["yaml"]] = None
    file.write_text(file.read_text() + "".join(lines))
    code, after = mutated(ledger, "--threshold", "100")
    assert (code, after["survive"], after["score_percent"]) == (0, 0, 100)
    assert after["proved_the_same"] == pack["proved_the_same"]


def test_what_differs_in_no_verdict_counts_as_the_same_only_where_that_is_proved(ledger):
    tools = (
        "toolset: desk\ntools:\n  pay: {args: {amount: {type: integer, minimum: 1, maximum: 9}, to: {type: string}}}\n"
    )
    head = "cases: desk\npacks: [desk.yaml]\ntoolset: desk.tools.yaml\ntests:\n"
    pay = "propose: {tool: pay, args: {amount: 5, to: a}}, expect: allow"
    pack = (
        "pack: desk\nrules:\n  - {name: CHECK, tools: [pay], check: action.args.amount >= 1, on_fail: Not so little.}\n"
    )
    write(ledger.folder, f"- {{name: c, {pay}}}", tools=tools, head=head, pack=pack)
    _, told = mutated(ledger)
    same = [one for one in told["tried"] if one["came"] == "same"]
    assert {(one["change"], one["after"]) for one in same} >= {
        ("shift a bound", "action.args.amount >= 0"),
        ("drop the rule", ""),
    }
    longer = pack.replace("amount >= 1", "amount + size(action.args.to) > 0")  # always so, and nothing counts it
    write(ledger.folder, f"- {{name: c, {pay}}}", tools=tools, head=head, pack=longer)
    _, told = mutated(ledger)
    [dropped] = [one for one in told["tried"] if one["change"] == "drop the rule"]
    assert (dropped["came"], dropped["case"]) == ("survived", None)
    assert dropped["situations_tried"] > 5


def test_a_mutant_that_does_not_load_is_not_caught(ledger):
    pack = "pack: desk\nrules:\n  - {name: running, tools: [pay], check: state.status == 'running'}\n"
    write(ledger.folder, "- {name: c, propose: {tool: pay, args: {amount: 5}}, expect: allow}", pack=pack)
    _, told = mutated(ledger)
    ill = [one for one in told["tried"] if one["came"] == "unloadable"]
    assert [one["after"] for one in ill] == ["state.status == 'runningx'"]
    assert (told["do_not_load"], told["score_percent"]) == (
        1,
        int(1000 * told["caught"] / (told["mutants"] - 1 - told["proved_the_same"])) / 10,
    )


def test_what_differs_only_in_what_is_watched_is_told_apart(ledger):
    pack = "pack: desk\nrules:\n  - {name: watched, mode: shadow, tools: [pay], check: action.args.amount < 9.0, on_fail: Much.}\n"
    write(ledger.folder, "- {name: c, propose: {tool: pay, args: {amount: 50}}, expect: allow}", pack=pack)
    _, told = mutated(ledger)
    [dropped] = [one for one in told["tried"] if one["change"] == "drop the rule"]
    assert (dropped["came"], dropped["case"]) == ("survived", None)
    assert "nothing that a case can say" in dropped["why"]


# ---- the command


def test_the_threshold_decides_the_exit_code_and_nothing_else_does(ledger):
    write(ledger.folder, CASES)
    assert ledger("test-policies", "--mutate", "--coverage", "--threshold", "99", "-q") == 1
    assert [line.split()[3] for line in ledger.err.splitlines()] == ["rules", "mutants"]


@pytest.mark.parametrize(("option", "named"), [(("--run", "x"), "--run"), (("--fail-fast",), "--fail-fast")])
def test_options_that_leave_cases_out_do_not_go_with_it(ledger, option, named):
    write(ledger.folder, CASES)
    assert ledger("test-policies", "--mutate", *option) == 2
    assert f"--mutate asks all cases; leave out {named}" in ledger.err


@pytest.mark.slow
def test_processes_find_the_same(ledger):
    write(ledger.folder, CASES)
    one = mutated(ledger)
    assert mutated(ledger, "--jobs", "2") == one


def test_a_pack_with_cases_in_two_files_is_caught_by_either(ledger):
    write(ledger.folder, CASES)
    _, before = mutated(ledger)
    head = "cases: more\npacks: [desk.yaml]\ntoolset: desk.tools.yaml\nstate: {facts: {user: lei}}\ntests:\n"
    more = "  - {name: much, propose: {tool: pay, args: {amount: 101}}, expect: require_approval}\n"
    (ledger.folder / "more.cases.yaml").write_text(head + more)
    _, after = mutated(ledger)
    assert after["mutants"] == before["mutants"]
    assert after["caught"] > before["caught"]
    assert {one["by"]["file"] for one in after["tried"] if one["came"] == "caught"} == {
        "desk.cases.yaml",
        "more.cases.yaml",
    }


def test_the_words_of_a_toolset_take_the_place_of_one_another():
    words = words_of(Vocabulary(load_toolset(ROOT / "policies/airline.tools.yaml")))
    assert words.other("silver") == "gold"
    assert words.other_tool("cancel_reservation", frozenset({"reservation_id"})) == "get_reservation_details"
    assert words.other_argument("send_certificate", "amount") == "user_id"


# ---- whatever the pack


@settings(max_examples=2, deadline=None, suppress_health_check=list(HealthCheck))
@given(text=brute.packs(), numbers=st.lists(st.integers(0, 10_000), min_size=2, max_size=6))
def test_what_is_told_of_a_mutant_is_so(text, numbers):
    group = group_of(text, numbers)
    assume(group is not None)
    assert failing(group) == []
    hold_to_the_truth(group, text, most=3)
