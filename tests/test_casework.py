"""Cases: each key does what the format says, and what cannot be judged never passes."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.commands import ROOT, Run, command_line
from tests.desks import HEAD, PACK, TOOLS, write

PAY = "propose: {tool: pay, args: {amount: 5}}"


@pytest.fixture
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Run]:
    with command_line(tmp_path, monkeypatch, capsys) as run:
        yield run


def judged(ledger: Run, tests: str, **more: str) -> tuple[int, list[dict], list[dict]]:
    """The exit code, the cases and the problems."""
    write(ledger.folder, tests, **more)
    code = ledger("test-policies", ".", "--format", "json")
    said = json.loads(ledger.out)
    assert said["exit_code"] == code
    return code, said["cases"], said["problems"]


def test_what_a_case_says_of_the_state_is_laid_over_that_of_the_file(ledger):
    code, cases, _ = judged(
        ledger,
        f"""
        - {{name: as the file has it, {PAY}, expect: allow}}
        - {{name: another user, state: {{facts: {{user: guest}}}}, {PAY}, expect: {{rules: [known], halts: true}}}}
        - {{name: another limit, state: {{constraints: {{limit: 4}}}}, {PAY}, expect: require_approval}}
        - {{name: nobody, unset: [facts.user], {PAY}, expect: {{rules: [desk/known]}}}}
        - {{name: as the file has it still, {PAY}, expect: {{effect: allow, rules: []}}}}
    """,
    )
    assert (code, {case["came"] for case in cases}) == (0, {"passed"})


def test_history_feeds_the_functions_and_no_fact(ledger):
    look = "{tool: look, args: {id: a}, success: false}"
    code, cases, _ = judged(
        ledger,
        f"""
        - {{name: failed, history: [{look}], {PAY}, expect: {{effect: warn, rules: [looked]}}}}
        - {{name: went well, history: [{{tool: look, args: {{id: a}}}}], {PAY}, expect: allow}}
        - {{name: refused, history: [{{tool: look, args: {{id: a}}, denied: true}}], {PAY}, expect: allow}}
        - {{name: no fact, unset: [facts.user], history: [{{tool: login, args: {{user: lei}}}}], {PAY}, expect: deny}}
    """,
    )
    assert (code, [case.get("why") or case["came"] for case in cases]) == (0, ["passed"] * 4)


def test_a_case_with_rows_is_one_case_a_row(ledger):
    code, cases, _ = judged(
        ledger,
        """
        - name: "{row.amount} is {row.effect}"
          for: [{amount: 100, effect: allow, why: x}, {amount: 100.5, effect: require_approval, why: 100.5 is much.}]
          propose: {tool: pay, args: {amount: "{row.amount}"}}
          expect: {effect: "{row.effect}"}
    """,
    )
    assert (code, [case["name"] for case in cases]) == (0, ["100 is allow", "100.5 is require_approval"])


def test_now_is_the_time_of_every_proposal(ledger):
    pack = "pack: desk\nrules:\n  - {name: early, check: \"now < timestamp('2026-08-01T12:00:00Z')\"}\n"
    tests = f"- {{name: late, {PAY}, expect: {{rules: [early]}}}}"
    assert judged(ledger, tests, pack=pack)[0] == 0
    head = HEAD.replace("12:00:00Z", "11:59:59Z")
    assert judged(ledger, tests.replace("{rules: [early]}", "allow"), pack=pack, head=head)[0] == 0


def test_a_recorded_step_is_judged_on_the_state_before_it(ledger):
    recorded = os.path.relpath(ROOT / "fixtures/recordings/transfer.ledger.jsonl", ledger.folder)
    shop = os.path.relpath(ROOT, ledger.folder)
    head = (
        f"cases: r\npacks: [{shop}/policies/support.yaml]\ntoolset: {shop}/fixtures/toolsets/shop.tools.yaml\ntests:\n"
    )
    code, cases, _ = judged(
        ledger,
        f"""
        - {{name: denied then, at: {recorded}@1, expect: {{rules: [account_verified_by_tool, payee_known_from_tool]}}}}
        - {{name: allowed then, at: {recorded}@5, expect: allow}}
        - {{name: as a guest, at: {recorded}@5, state: {{facts: {{user_role: guest}}}}, expect: deny}}
        - name: once more, and another
          at: {recorded}@5
          history: [{{tool: transfer, args: {{account: A-77, amount: 60}}, success: false}}]
          propose: {{tool: transfer, args: {{account: A-71, amount: 1}}}}
          expect: allow
    """,
        head=head,
    )
    assert (code, [case.get("why") or case["came"] for case in cases]) == (0, ["passed"] * 4)
    code, cases, _ = judged(ledger, f"- {{name: none, at: {recorded}@9, expect: allow}}", head=head)
    assert (code, cases[0]["came"], cases[0]["why"][-19:]) == (2, "error", "has 6 steps, 1 to 6")
    code, _, problems = judged(ledger, "- {name: none, at: none.ledger.jsonl@1, expect: allow}", head=head)
    assert (code, problems[0]["code"]) == (2, "no-file")


@pytest.mark.parametrize(
    ("case", "code", "line"),
    [
        ("{name: a, propose: {tool: pya, args: {amount: 5}}, expect: deny}", "unknown-tool", "pay"),
        ("{name: a, propose: {tool: pay, args: {amuont: 5}}, expect: deny}", "unknown-argument", "amount"),
        ("{name: a, PAY, expect: {effect: deny, rules: [knwon]}}", "unknown-rule", "known"),
        ("{name: a, PAY, expect: {rules_include: [desk/knwon]}}", "unknown-rule", "desk/known"),
        ("{name: a, state: {facts: {usr: x}}, PAY, expect: allow}", "unknown-fact", "user"),
        ("{name: a, unset: [facts.usr], PAY, expect: allow}", "unknown-fact", "user"),
        ("{name: a, history: [{tool: lok}], PAY, expect: allow}", "unknown-tool", "look"),
        ("{name: a, history: [{tool: suer, data: x}], PAY, expect: allow}", "unknown-tool", "user"),
        ("{name: a, PAY, expect: dney}", "unknown-effect", "deny"),
        ("{name: a, PAY, expect: {}}", "no-expectation", None),
        ("{name: a, PAY, expect: {rules_include: []}}", "no-expectation", None),
        ("{name: a, for: [], PAY, expect: allow}", "no-rows", None),
        ("{name: a, skip: '', PAY, expect: allow}", "no-reason", None),
        ("{name: a, for: [{u: x}], state: {facts: {user: '{row.u}'}}, PAY, expect: allow}", "row-in-data", None),
        ("{name: a, for: [{x: 1}], propose: {tool: pay, args: {amount: '{row.y}'}}, expect: allow}", None, "y"),
    ],
)
def test_what_does_not_exist_is_an_error_with_the_nearest_name(ledger, case, code, line):
    exit_code, cases, problems = judged(ledger, f"- {case.replace('PAY', PAY)}")
    assert (exit_code, cases) == (2, [])
    assert problems[0]["file"] == "desk.cases.yaml"
    assert problems[0]["line"] == 7
    assert code is None or problems[0]["code"] == code
    assert line is None or line in problems[0]["message"] + " ".join(problems[0]["notes"])


def test_what_a_row_names_must_exist_too(ledger):
    code, cases, _ = judged(
        ledger,
        """
        - {name: a, for: [{t: pya}], propose: {tool: "{row.t}", args: {}}, expect: deny}
        - {name: b, for: [{e: dney}], propose: {tool: pay, args: {amount: 5}}, expect: "{row.e}"}
        - {name: c, propose: {tool: pay, args: {amount: 5}}, expect: allow}
    """,
    )
    assert (code, [case["came"] for case in cases]) == (2, ["error", "error", "passed"])
    assert cases[0]["why"] == "no tool pya; did you mean pay?"


def test_a_proposal_that_no_rule_has_seen_passes_only_by_name(ledger):
    code, cases, _ = judged(ledger, "- {name: a, propose: {tool: pay}, expect: deny}")
    assert (code, cases[0]["came"]) == (2, "error")
    assert "No rule has seen this proposal" in cases[0]["why"]
    code, cases, _ = judged(ledger, "- {name: a, propose: {tool: pay}, expect: {rules: [bad_arguments]}}")
    assert (code, cases[0]["came"]) == (0, "passed")


def test_a_rule_that_two_packs_have_must_be_told_apart(ledger):
    (ledger.folder / "other.yaml").write_text("pack: other\nrules: [{name: known, check: 'true'}]\n")
    head = HEAD.replace("[desk.yaml]", "[desk.yaml, other.yaml]")
    code, _, problems = judged(ledger, f"- {{name: a, {PAY}, expect: {{rules: [known]}}}}", head=head)
    assert (code, problems[0]["code"], problems[0]["notes"]) == (
        2,
        "ambiguous-rule",
        ["write desk/known or other/known"],
    )


def test_no_cases_and_only_skipped_cases_are_no_answer(ledger):
    assert ledger("test-policies", ".") == 2
    assert ledger.err.startswith("error: no cases found under . (looked for files that start with `cases:`")
    code, cases, _ = judged(ledger, f"- {{name: a, skip: later, {PAY}, expect: deny}}")
    assert (code, cases[0]["came"], cases[0]["why"]) == (2, "skipped", "later")
    assert ledger.err.endswith("error: every case is skipped\n")


def test_files_that_are_no_cases_are_told(ledger):
    write(ledger.folder, f"- {{name: a, {PAY}, expect: allow}}")
    (ledger.folder / "b.cases.yaml").write_text("case: b\ntests: []\n")
    assert ledger("test-policies", ".") == 2
    assert "b.cases.yaml:1:1: error[unknown-key]" in ledger.out
    assert "1 file not judged; 1 passed in 1 file\n" in ledger.out
    assert ledger("test-policies", "desk.tools.yaml") == 2
    assert "desk.tools.yaml is a toolset" in ledger.err
    assert ledger("test-policies", "none.yaml") == 2


def test_a_pack_that_does_not_load_is_told_to_every_file_that_names_it(ledger):
    write(
        ledger.folder,
        f"- {{name: a, {PAY}, expect: allow}}",
        pack=PACK.replace("state.facts.user !=", "state.facts.usr !="),
    )
    again = (ledger.folder / "desk.cases.yaml").read_text().replace("cases: desk", "cases: again")
    (ledger.folder / "again.cases.yaml").write_text(again)
    assert ledger("test-policies", ".", "--junit", "j.xml", "--sarif", "s.sarif") == 2
    assert "2 files not judged; 0 passed in 0 files" in ledger.out
    assert "no fact usr" in (ledger.folder / "j.xml").read_text()
    result = json.loads((ledger.folder / "s.sarif").read_text())["runs"][0]["results"][0]
    assert (result["ruleId"], result["locations"][0]["physicalLocation"]["region"]["startLine"]) == ("unknown-fact", 8)


def test_examples_of_a_pack_are_cases(ledger):
    pack = """
    pack: alone
    vocabulary: {tools: {pay: {amount: number}}, facts: {vip: bool?}}
    rules:
      - name: small
        tools: [pay]
        check: action.args.amount < 10.0
        examples:
          - {name: small, propose: {tool: pay, args: {amount: 9}}, expect: allow}
          - {name: large, state: {facts: {vip: true}}, propose: {tool: pay, args: {amount: 10}}, expect: {rules: [small]}}
    """
    (ledger.folder / "alone.yaml").write_text("\n".join(line[4:] for line in pack.strip("\n").split("\n")))
    assert ledger("test-policies", "alone.yaml") == 0
    assert ledger.out == "2 passed in 1 file\n"
    plain = (
        (ledger.folder / "alone.yaml")
        .read_text()
        .replace("vocabulary: {tools: {pay: {amount: number}}, facts: {vip: bool?}}\n", "")
    )
    (ledger.folder / "alone.yaml").write_text(plain.replace("state: {facts: {vip: true}}, ", ""))
    assert ledger("test-policies", "alone.yaml") == 2
    assert "error[no-vocabulary]" in ledger.out
    (ledger.folder / "t.yaml").write_text("toolset: t\ntools: {pay: {args: {amount: {type: number}}}}\n")
    (ledger.folder / "c.yaml").write_text("cases: c\npacks: [alone.yaml]\ntoolset: t.yaml\ntests: []\n")
    assert ledger("test-policies", ".") == 0
    assert ledger.out == "2 passed in 1 file\n"


def test_cases_can_be_chosen_by_a_safe_pattern(ledger):
    write(ledger.folder, f"- {{name: a guest, {PAY}, expect: allow}}\n- {{name: a host, {PAY}, expect: deny}}")
    assert ledger("test-policies", ".", "--run", "^a g") == 0
    assert ledger("test-policies", ".", "--run", "nobody") == 2
    assert ledger.err == "error: no case is named like nobody\n"
    assert ledger("test-policies", ".", "--run", "(a+)+$") in (0, 1, 2)  # whatever it does, it ends
    assert ledger("test-policies", ".", "--run", "(") == 2
    assert ledger.err.startswith("error: --run: ")


def test_the_first_failure_may_be_the_last(ledger):
    write(ledger.folder, f"- {{name: a, {PAY}, expect: deny}}\n- {{name: b, {PAY}, expect: deny}}")
    assert ledger("test-policies", ".", "--fail-fast") == 1
    assert ledger.out.endswith("1 failed, 0 passed, 0 skipped in 1 file; stopped there (--fail-fast)\n")


def test_processes_say_the_same(ledger):
    for name in ("a", "b", "c"):
        write(ledger.folder, f"- {{name: {name}, {PAY}, expect: deny}}\n- {{name: n, {PAY}, expect: allow}}")
        (ledger.folder / "desk.cases.yaml").rename(ledger.folder / f"{name}.cases.yaml")
    assert ledger("test-policies", ".", "--coverage", "-v") == 1
    alone = ledger.out
    assert ledger("test-policies", ".", "--coverage", "-v", "--jobs", "2") == 1
    assert ledger.out == alone


def test_coverage_below_the_threshold_is_a_no(ledger):
    write(ledger.folder, f"- {{name: a, {PAY}, expect: allow}}")
    assert ledger("test-policies", ".", "--coverage") == 0
    assert ledger("test-policies", ".", "--coverage", "--threshold", "50") == 1
    assert "FAIL --threshold 50: rules 0% (0 of 3 proved)" in ledger.err
    assert ledger("test-policies", ".", "--threshold", "50") == 2


def test_what_fails_does_not_prove_and_what_is_unknown_neither(ledger):
    write(
        ledger.folder,
        f"- {{name: a, unset: [facts.user], {PAY}, expect: allow}}\n"
        f"- {{name: b, unset: [constraints.limit], {PAY}, expect: {{rules: [asks]}}}}",
    )
    assert ledger("test-policies", ".", "--coverage", "--format", "json") == 1
    covered = json.loads(ledger.out)["coverage"]
    assert covered["not_proved"] == ["desk/known", "desk/asks", "desk/looked"]
    asks = next(rule for rule in covered["rules"] if rule["rule"] == "desk/asks")
    assert (asks["failed"], asks["could_not_be_told"]) == (0, 1)


def test_grants_allow_lists_and_inactive_packs_are_counted_as_what_they_are(ledger):
    pack = """
    pack: desk
    default: deny
    active: state.constraints.on
    constraints: {on: true}
    rules:
      - {name: small, tools: [pay], grant: action.args.amount < 10.0}
    """
    tests = f"""
        - {{name: a, {PAY}, expect: allow}}
        - {{name: b, propose: {{tool: pay, args: {{amount: 10}}}}, expect: {{rules: [default_deny]}}}}
        - {{name: c, state: {{constraints: {{on: false}}}}, propose: {{tool: pay, args: {{amount: 10}}}}, expect: allow}}
        - {{name: d, unset: [constraints.on], {PAY}, expect: allow}}
    """
    write(ledger.folder, tests.replace("\n        ", "\n"), pack=pack)
    assert ledger("test-policies", ".", "--coverage", "--format", "json", "--threshold", "100") == 0
    covered = json.loads(ledger.out)["coverage"]
    counts = ("failed", "passed", "did_not_apply", "could_not_be_told")
    assert {rule["rule"]: [rule[key] for key in counts] for rule in covered["rules"]} == {
        "desk/small": [2, 1, 1, 0],
        "desk/default_deny": [1, 2, 1, 0],
    }
    assert {one["text"]: (one["true"], one["false"], one["could_not_be_told"]) for one in covered["conditions"]} == {
        "state.constraints.on": (2, 1, 1),
        "action.args.amount < 10.0": (2, 1, 0),
    }


def test_conditions_are_those_of_loops_choices_and_defines_too():
    from ledgercli import cel
    from ledgercli.casework.observing import atoms_of

    text = "!a && (b || xs.exists(x, x > 1 && c)) ? size(xs.filter(y, d ? e : true)) == 0 : false"
    checked = cel.check(cel.parse(text), cel.Env(dict.fromkeys(("a", "b", "c", "d", "e", "xs"), cel.DYN)))
    assert [cel.render(node) for node in atoms_of(checked.node)] == [
        "a",
        "b",
        "xs.exists(x, x > 1 && c)",
        "x > 1",
        "c",
        "size(xs.filter(y, d ? e : true)) == 0",
        "d",
        "e",
    ]


def test_no_file_is_overwritten(ledger):
    write(ledger.folder, f"- {{name: a, {PAY}, expect: allow}}")
    (ledger.folder / "j.xml").write_text("mine")
    assert ledger("test-policies", ".", "--junit", "j.xml", "--sarif", "s.sarif") == 2
    assert (ledger.folder / "j.xml").read_text() == "mine"
    assert not (ledger.folder / "s.sarif").exists()


def test_nothing_of_a_tool_is_imported(ledger):
    tools = TOOLS.replace("access: read, args: {id:", "run: {python: 'tools.py:look'}, access: read, args: {id:")
    (ledger.folder / "tools.py").write_text("raise SystemExit('imported')\n\ndef look(id):\n    pass\n")
    assert judged(ledger, f"- {{name: a, {PAY}, expect: allow}}", tools=tools)[0] == 0


def test_the_shipped_packs_are_proved(capsys):
    from ledgercli.casework.finding import find
    from ledgercli.casework.running import Asked, run, together

    results = list(run(find([str(ROOT / "fixtures")]), Asked(coverage=True)))
    assert [outcome for result in results for outcome in result.outcomes if outcome.came != "passed"] == []
    coverage = together(results)
    shipped = {"airline", "confirm", "goodwill", "limits_unverified", "limits_verified", "loops", "support", "weather"}
    assert {rule.name.partition("/")[0] for rule in coverage.rules.values()} == shipped | {"onboarding"}  # a scenario's
    assert coverage.unproved == []
    for pack in shipped:
        own = [one for one in coverage.conditions.values() if Path(one.file).stem == pack]
        assert own
        assert sum(one.ways for one in own) >= 0.95 * 2 * len(own), pack
