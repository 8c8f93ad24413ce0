"""What the analysis says of packs: each kind of finding once found, and once nearly."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from ledgercli.analysis import Analysis, Context
from ledgercli.loading import Loader
from ledgercli.rulebook import Rulebook
from ledgercli.sources import Source
from ledgercli.validation import validate
from tests.brute import TOOLS, found, load, packs, rulebook
from tests.soundness import false_claims, false_deadlocks, waiting

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
    ("check-always-holds", "check: has(action.args.q)", "check: has(state.facts.p)"),
    ("check-always-holds", "check: has(state.facts.m)", "check: has(state.facts.m['x'].ok)"),
    ("check-always-holds", "check: count_failures(state.ledger, 'b') <= count_calls(state.ledger, 'b')", "check: count_failures(state.ledger, 'b') <= count_calls(state.ledger, 'a')"),
    ("check-never-holds", "check: action.args.r == 'x' && size(action.args.r) > 1", "check: state.facts.s == 'u' && size(action.args.r) > 1"),
    ("check-never-holds", "check: state.facts.s.startsWith('uv') && size(state.facts.s) < 2", "check: state.facts.s.startsWith('u') && size(state.facts.s) < 2"),
    ("check-never-holds", "check: \"now < timestamp('2026-01-01T00:00:00Z') && now > timestamp('2026-06-01T00:00:00Z')\"", "check: \"now > timestamp('2026-01-01T00:00:00Z') && now < timestamp('2026-06-01T00:00:00Z')\""),
    ("check-never-holds", "check: \"now - timestamp('2026-01-01T00:00:00Z') < duration('1h') && now - timestamp('2026-01-01T00:00:00Z') > duration('61m')\"", "check: \"now - timestamp('2026-01-01T00:00:00Z') < duration('1h') && now - timestamp('2026-01-01T00:00:00Z') > duration('59m')\""),
    ("check-never-holds", "check: action.args.r.upperAscii() == 'x'", "check: action.args.r.upperAscii() == 'X'"),
    ("check-never-holds", "check: size(state.facts.m) == 0 && state.facts.m.exists(k, k == 'x')", "check: size(state.facts.m) == 0 && state.facts.m.all(k, k == 'x')"),
    ("check-never-holds", "check: '(action.args.q ? 1 : 2) > 2'", "check: '(action.args.q ? 1 : 2) > 1'"),
    ("hidden-rule", "check: state.facts.m.all(k, k != 'x' && state.facts.m[k].ok) | check: state.facts.m.all(k, k != 'x')", "check: state.facts.m.all(k, k != 'x' || state.facts.m[k].ok) | check: state.facts.m.all(k, k != 'x')"),
    ("repeated-part", "check: state.facts.p == true || state.flags.f || state.facts.p", "check: state.facts.p != true || state.flags.f || state.facts.p"),
    ("tool-never-concerned", "tools: [a, b]; condition: action.args.n < 1; check: state.flags.f", "tools: [a, b]; condition: action.args.n < 2; check: state.flags.f"),
    ("deadlock", "tools: [learn]; check: state.flags.f", 'tools: [learn]; check: "!state.flags.f"'),
    ("deadlock", "tools: [learn]; check: \"'x' in state.facts.m\" | tools: [keep]; check: has(state.facts.p)", "tools: [learn]; check: \"'x' in state.facts.m\" | tools: [a]; check: has(state.facts.p)"),
    ("deadlock", "tools: [b]; check: count_calls(state.ledger, action.tool) > 0", "tools: [b]; check: count_calls(state.ledger, 'a') > 0"),
    ("deadlock", "tools: [b]; check: steps_since(state.ledger, 'b') < 9", "tools: [b]; check: steps_since(state.ledger, 'b') > 9"),
    ("deadlock", "tools: [learn]; check: last_result(state.ledger, 'learn').p == true", "tools: [b]; check: last_result(state.ledger, 'learn').p == true"),
    ("deadlock", "tools: [keep]; check: \"from_tool(action.args.id, 'keep')\"", "tools: [keep]; check: \"from_tool(action.args.id, 'learn')\""),
    ("message-names-unknown", "check: state.flags.f; on_fail: The tool look_up tells.", "check: state.flags.f; on_fail: This is not_ok."),
    ("message-names-unknown", "check: state.flags.f; on_fail: Use find_out first.", "check: state.flags.f; on_fail: Write dates as yyyy_mm_dd."),
    ("repeated-tool", "tools: [a, a]; check: state.flags.f", "tools: [a, b]; check: state.flags.f"),
]  # fmt: skip


def codes_of(text: str, toolset: str | None = None) -> set[str]:
    """What is said of a pack as a whole, with the toolset of `brute` or another one."""
    loader = Loader(sources={"p.yaml": Source.of("p.yaml", text), "w.yaml": Source.of("w.yaml", toolset or TOOLS)})
    pack, tools = loader.pack("p.yaml"), loader.toolset("w.yaml")
    assert pack is not None and tools is not None, loader.problems
    book = Rulebook(tools, [pack])
    assert book.problems() == []
    analysis = Analysis()
    analysis.add(Context(book.vocabulary, [pack], tools, None))
    return {problem.code for problem in analysis.problems() if problem.file == "p.yaml"}


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


def test_a_name_that_nothing_gives_a_value_is_told_of_where_there_are_tools():
    said = "pack: p\nvocabulary: {{facts: {{{}: 'bool?'}}}}\nrules:\n  - {{name: r, tools: [a], check: has(state.facts.{})}}\n"
    assert [codes_of(said.format(name, name)) for name in ("vip", "p")] == [{"nothing-establishes"}, set()]


def test_a_check_of_a_fact_that_is_only_ever_set_to_one_value_waits_for_it():
    toolset = "toolset: w\ntools: {greet: {access: read, on_success: {set: {facts.met: true}}}, sell: {}}\n"
    rule = "pack: p\nrules:\n  - {{name: r, tools: [sell], check: {}}}\n"
    for check, expected in (("state.facts.met", set()), ("state.facts.met != false", {"impossible-value"})):
        assert codes_of(rule.format(check), toolset) == expected
    assert codes_of(rule.format('"!state.facts.met"'), toolset) == {"check-never-holds"}


@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(waiting())
def test_no_run_finds_its_way_out_of_a_deadlock(text: str):
    assert false_deadlocks(text) == []


def test_what_stands_in_vain_is_not_told_beside_a_file_with_errors(tmp_path: Path):
    toolset = "toolset: w\ntools: {greet: {access: read, on_success: {set: {facts.met: true}}}, sell: {}}\n"
    (tmp_path / "w.tools.yaml").write_text(toolset)
    rule = "pack: {0}\nrules:\n  - {{name: r, tools: [{1}], check: {2}}}\n"
    (tmp_path / "good.yaml").write_text(rule.format("good", "greet", "state.step < 9"))
    for name, check in (("bad", "state.facts.met && state.facts.mad"), ("bad", "state.facts.met")):
        (tmp_path / "bad.yaml").write_text(rule.format(name, "sell", check))
        for one in ("good", "bad"):
            text = f"cases: {one}\npacks: [{one}.yaml]\ntoolset: w.tools.yaml\ntests: [{{name: n, propose: {{tool: sell}}, expect: deny}}]\n"
            (tmp_path / f"{one}.cases.yaml").write_text(text)
        assert {one.code for one in validate([str(tmp_path)]).problems} <= {"unknown-fact"}


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
