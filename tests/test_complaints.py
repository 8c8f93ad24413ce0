"""What people who keep policies complain of, each in a file that shows it, with the error that it gets here.

Rules that can never fire are the work of `validate`'s analysis.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.commands import Run, command_line
from tests.desks import PACK, write

PAY = "propose: {tool: pay, args: {amount: 5}}"
WELL = f"- {{name: a customer pays, {PAY}, expect: allow}}"


@pytest.fixture
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Run]:
    with command_line(tmp_path, monkeypatch, capsys) as run:
        yield run


@pytest.mark.parametrize(
    ("right", "wrong", "told"),
    [
        (
            "state.facts.user != 'guest'",
            "state.facts.usr != 'guest'",
            "desk.yaml:8:49: error[unknown-fact]: no fact usr",
        ),
        ("tools: [pay]", "tools: [pya]", "desk.yaml:7:13: error[unknown-tool]: no tool pya"),
        ("check: '!large'", "chek: '!large'", "desk.yaml:12:5: error[unknown-key]: no key chek here"),
        ("'look') == 0", "'lok') == 0", "desk.yaml:16:41: error[unknown-tool]: no tool lok"),
        (
            "action.args.amount > ",
            "action.args.amuont > ",
            "desk.yaml:4:22: error[unknown-argument]: no argument amuont",
        ),
        ("check: '!large'", "check: !large", 'desk.yaml:12:12: error[yaml-tag]: "!" begins a YAML tag here'),
    ],
)
def test_a_typo_that_turns_a_rule_off_is_an_error_at_its_line(ledger, right, wrong, told):
    """The tool says `valid`, and the rule never fires."""
    write(ledger.folder, WELL, pack=PACK.replace(right, wrong, 1))
    for command in (("validate", "."), ("test-policies", ".")):
        code = ledger(*command)
        assert code == (1 if command[0] == "validate" else 2)
        assert told in ledger.out
    write(ledger.folder, WELL)
    assert ledger("validate", ".") == ledger("test-policies", ".") == 0


@pytest.mark.parametrize(
    "expect", ["{rules: [knwon]}", "{effect: deny, rules_include: [knwon]}", "{rules: [desk/knwon]}"]
)
def test_a_test_that_names_a_rule_that_does_not_exist_does_not_pass(ledger, expect):
    """It is about nothing, and passes."""
    write(ledger.folder, f"- {{name: a guest pays, state: {{facts: {{user: guest}}}}, {PAY}, expect: {expect}}}")
    assert ledger("test-policies", ".") == 2
    assert "error[unknown-rule]: no rule " in ledger.out
    assert ("did you mean desk/known" if "desk/" in expect else "did you mean known?") in ledger.out
    assert "0 passed" in ledger.out


def test_rules_without_proof_are_named(ledger):
    """40 of 104 rules that deny were never seen to."""
    write(
        ledger.folder,
        f"{WELL}\n- {{name: much, propose: {{tool: pay, args: {{amount: 101}}}}, expect: {{rules: [asks]}}}}",
    )
    assert ledger("test-policies", ".", "--coverage", "--threshold", "100") == 1
    told = ledger.out[ledger.out.index("no case proves") : ledger.out.index("seen one way only")]
    assert (
        told
        == "no case proves\n  desk/known  desk.yaml:6  (never failed)\n  desk/looked  desk.yaml:14  (never failed)\n"
    )
    assert "rules 33.3% (1 of 3 proved)" in ledger.out


def test_findings_have_the_lines_that_they_are_about(ledger):
    """Line 1 is reported for every finding."""
    two = PACK.replace("state.facts.user !=", "state.facts.usr !=").replace("'look') == 0", "'lok') == 0")
    write(ledger.folder, WELL, pack=two)
    assert ledger("test-policies", ".", "--format", "json") == 2
    assert [(one["file"], one["line"], one["column"]) for one in json.loads(ledger.out)["problems"]] == [
        ("desk.yaml", 8, 49),
        ("desk.yaml", 16, 41),
    ]
    write(
        ledger.folder,
        f"{WELL}\n\n# a comment\n- {{name: a guest, {PAY}, expect: deny}}\n- {{name: b, {PAY}, expect: warn}}",
    )
    assert ledger("test-policies", ".", "--format", "json") == 1
    assert [(one["line"], one["column"]) for one in json.loads(ledger.out)["cases"]] == [(7, 12), (10, 12), (11, 12)]


def test_a_failure_says_why_down_to_the_values(ledger):
    """It says that it failed, and no more."""
    write(ledger.folder, f"- {{name: a guest pays, state: {{facts: {{user: guest}}}}, {PAY}, expect: allow}}")
    assert ledger("test-policies", ".") == 1
    assert ledger.out.split("because   ")[1].split("\n\n")[0].split("\n") == [
        "known failed",
        "               desk.yaml:6",
        "               Who pays 5?",
        """               state.facts.user != "guest" is false""",
        """                 state.facts.user = "guest\"""",
    ]


def test_tests_that_judge_nothing_are_no_green_light(ledger):
    """A suite without cases, or of skipped ones alone, is green."""
    write(ledger.folder, "[]")
    (ledger.folder / "desk.cases.yaml").write_text(
        (ledger.folder / "desk.cases.yaml").read_text().replace("tests:\n  []", "tests: []")
    )
    assert ledger("test-policies", ".") == 2
    write(ledger.folder, f"- {{name: a, skip: flaky, {PAY}, expect: deny}}")
    assert ledger("test-policies", ".") == 2
