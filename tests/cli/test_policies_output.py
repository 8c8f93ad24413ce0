"""What `ledger test-policies` shows, byte for byte."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import GOLDEN, UPDATE
from tests.commands import command_line
from tests.desks import write

CASES = """
# what goes wrong
- name: a guest pays
  state: {facts: {user: guest}}
  propose: {tool: pay, args: {amount: 5}}
  expect: {effect: deny, rules: [asks], error: Who pays?}
- {name: "nobody, not even 李蕾, pays \\e[31m", propose: {tool: pay, args: {amount: 5, note: "退货运费，请在14天内寄回，谢谢您的理解与支持，祝您购物愉快"}}, expect: deny}
- {name: looking is denied, propose: {tool: look, args: {id: a}}, expect: {rules: [known]}}
- {name: it is not known who pays, unset: [constraints.limit], propose: {tool: pay, args: {amount: 5}}, expect: allow}
- {name: the run goes on, state: {facts: {user: guest}}, propose: {tool: pay, args: {amount: 5}}, expect: {effect: deny, halts: false}}
- {name: the amount is missing, propose: {tool: pay}, expect: deny}
- {name: later, skip: waiting for the new limit, propose: {tool: pay, args: {amount: 5}}, expect: deny}
- {name: a customer pays, propose: {tool: pay, args: {amount: 5}}, expect: allow}
"""


@pytest.fixture
def desk(folder: Path) -> Path:
    """The cases, in a folder that has nothing else."""
    inner = folder / "cases"
    inner.mkdir()
    write(inner, CASES)
    return inner


def test_what_fails_and_why(golden, desk):
    golden("cases-failing", "ledger test-policies cases")


def test_the_same_for_github_and_without_unicode(golden, desk):
    golden("cases-github", "ledger test-policies cases -q", env={"GITHUB_ACTIONS": "true", "LANG": "C"})


def test_the_same_for_a_pull_request(golden, desk):
    golden("cases-markdown", "ledger test-policies cases --format markdown --coverage")


def test_each_case_by_name(golden):
    golden("cases-well", "ledger test-policies fixtures/scenarios -v")


def test_what_the_cases_prove(golden, desk):
    golden("cases-coverage", "ledger test-policies cases -q --coverage --threshold 50")


@pytest.fixture
def here(folder, monkeypatch, capsys):
    """The same within this process, which is quicker."""
    with command_line(folder, monkeypatch, capsys) as run:
        yield run


def test_coverage_as_files(here, desk, folder):
    assert here("test-policies", "cases", "-q", "--lcov", "c.lcov", "--html", "c.html") == 2
    for name in ("c.lcov", "c.html"):
        file = GOLDEN / f"cases-coverage.{name.partition('.')[2]}"
        if UPDATE:
            file.write_bytes((folder / name).read_bytes())
        assert (folder / name).read_bytes() == file.read_bytes()


def test_json_has_all_of_it(here, desk):
    assert here("test-policies", "cases", "--format", "json") == 2
    said = json.loads(here.out)
    assert (said["schema"], said["exit_code"], said["failed"], said["error"]) == ("cases/1", 2, 5, 1)
    first = said["cases"][0]
    assert (first["line"], first["came"], first["actual"]["rules"]) == (8, "failed", ["desk/known"])
    assert {one["key"] for one in first["differences"]} == {"rules", "error"}
    assert [one["rule"] for one in first["because"]] == ["asks", "known"]
