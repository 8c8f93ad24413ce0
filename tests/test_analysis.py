"""What the analysis says of packs: each kind of finding once found, and once nearly."""

from __future__ import annotations

import time

import pytest
from hypothesis import HealthCheck, given, settings

from tests.brute import found, load, packs, rulebook
from tests.soundness import false_claims

R0 = "pack: p\nresolve: priority\nrules:\n"
#: A code, rules that have it, rules that nearly have it; `;` ends a line of a rule, `|` a rule.
KINDS = [
    ("never-applies", "condition: action.args.n > 2; check: state.flags.f", "condition: action.args.n > 1; check: state.flags.f"),
    ("never-applies", "condition: action.args.r == 'x' && action.args.r == 'y'; check: state.flags.f", "condition: action.args.r == 'x' || action.args.r == 'y'; check: state.flags.f"),
    ("never-applies", "condition: action.access == 'read'; check: state.flags.f", "condition: action.access == 'write'; check: state.flags.f"),
    ("check-always-holds", "check: action.args.n >= 0", "check: action.args.n >= 1"),
    ("check-always-holds", "check: 'state.facts.s in [\"u\", \"v\"]'", "check: 'state.facts.s in [\"u\"]'"),
    ("check-always-holds", "check: has(state.facts.p) || !has(state.facts.p)", "check: has(state.facts.p) || state.flags.f"),
    ("check-always-holds", "condition: action.args.n < 1; check: action.args.n < 2", "condition: action.args.n < 2; check: action.args.n < 1"),
    ("check-never-holds", "check: action.args.n < 0", "check: action.args.n < 1"),
    ("check-never-holds", "check: state.facts.k < 0.4 && state.facts.k > 0.6", "check: state.facts.k < 0.6 && state.facts.k > 0.4"),
    ("grant-never-holds", "check: state.flags.f | priority: 3; grant: action.args.n > 5", "check: state.flags.f | priority: 3; grant: action.args.n > 1"),
    ("hidden-rule", "check: action.args.n < 1 | check: action.args.n < 2", "check: action.args.n < 1 | check: state.facts.k < 1"),
    ("hidden-rule", "check: action.args.n < 1 | check: action.args.n < 2; on_fail: {effect: warn}", "check: action.args.n < 1; on_fail: {effect: warn} | check: action.args.n < 2"),
    ("hidden-by-grant", "check: action.args.n < 1 | priority: 3; grant: action.args.n > 0", "check: action.args.n < 1 | priority: 3; grant: action.args.n > 1"),
    ("repeated-rule", "check: action.args.n < 2 | check: '!(2 <= action.args.n)'", "check: action.args.n < 2 | check: state.facts.k < 1"),
    ("repeated-part", "check: state.facts.p && state.facts.p", "check: state.facts.p && state.flags.f"),
    ("part-never-holds", "check: state.facts.p || action.args.n > 2", "check: state.facts.p || action.args.n > 1"),
    ("grant-overrides-nothing", "check: state.flags.f | priority: 0; grant: state.facts.p", "check: state.flags.f | priority: 1; grant: state.facts.p"),
    ("impossible-value", "check: source(state.facts.p).tool != 'keep'", "check: source(state.facts.p).tool != 'task'"),
    ("message-names-unknown", "check: state.flags.f; on_fail: Call lern_more first.", "check: state.flags.f; on_fail: Call learn first."),
    ("repeated-tool", "tools: [a, a]; check: state.flags.f", "tools: [a, b]; check: state.flags.f"),
]  # fmt: skip


def codes(rules: str) -> set[str]:
    text = R0
    for number, rule in enumerate(rules.split(" | ")):
        lines = [f"name: r{number}", *rule.split("; ")]
        if "tools" not in rule:
            lines.insert(1, "tools: [a]")
        text += "  - " + "\n    ".join(lines) + "\n"
    pack = load(text)
    assert pack is not None, text
    book = rulebook(pack)
    assert book is not None, text
    return {problem.code for problem in found(pack, book)}


@pytest.mark.parametrize(("code", "wrong", "near"), KINDS, ids=[f"{n}-{kind[0]}" for n, kind in enumerate(KINDS)])
def test_each_kind_is_found_and_what_is_near_it_is_not(code: str, wrong: str, near: str):
    assert code in codes(wrong)
    assert code not in codes(near)


def test_what_is_only_not_known_is_never_said_to_hold_always():
    pack = load(R0 + '  - name: r\n    tools: [a]\n    check: \'state.facts.s in ["u", "v"]\'\n')
    assert pack is not None
    book = rulebook(pack)
    assert book is not None
    (problem,) = found(pack, book)
    assert problem.message == "the check of r holds whenever it can be told"


@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(packs())
def test_no_claim_about_a_random_pack_is_false(text: str):
    assert false_claims(text) == []


def test_a_hostile_expression_takes_bounded_time():
    deep = " && ".join(f"(action.args.n > {n} || state.facts.k < {n} || action.args.q)" for n in range(60))
    pack = load(R0 + "".join(f"  - name: r{n}\n    tools: [a]\n    check: {deep}\n" for n in range(3)))
    assert pack is not None
    book = rulebook(pack)
    assert book is not None
    started = time.process_time()
    found(pack, book)
    assert time.process_time() - started < 5
