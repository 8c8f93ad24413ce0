"""What `ledger test-policies --mutate` shows, byte for byte."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.commands import command_line
from tests.desks import write

CASES = """
- {name: a customer pays, propose: {tool: pay, args: {amount: 100}}, expect: allow}
- name: a guest does not
  state: {facts: {user: guest}}
  propose: {tool: pay, args: {amount: 5}}
  expect: {effect: deny, rules: [known]}
- {name: nobody does not, unset: [facts.user], propose: {tool: pay, args: {amount: 5}}, expect: {rules: [known]}}
- {name: much is asked about, propose: {tool: pay, args: {amount: 100.5}}, expect: require_approval}
- name: what was looked for in vain is told
  history: [{tool: look, args: {id: a}, success: false}]
  propose: {tool: pay, args: {amount: 5}}
  expect: warn
"""


@pytest.fixture
def desk(folder: Path) -> Path:
    """Cases that leave something out, in a folder that has nothing else."""
    inner = folder / "cases"
    inner.mkdir()
    write(inner, CASES)
    return inner


def test_what_no_case_catches_and_a_case_that_would(golden, desk):
    golden("mutants", "ledger test-policies cases --mutate --threshold 95", "ledger test-policies cases --mutate -q")


def test_the_same_for_a_pull_request_and_each_mutant_by_name(golden, desk):
    golden(
        "mutants-forms",
        "ledger test-policies cases --mutate --format markdown",
        "ledger test-policies cases --mutate -v --threshold 95",
        "ledger test-policies cases --mutate --run pays",
    )


def test_the_notes_in_sarif_are_the_mutants_that_no_case_catches(folder, desk, monkeypatch, capsys):
    with command_line(folder, monkeypatch, capsys) as here:
        assert here("test-policies", "cases", "--mutate", "--sarif", "s.sarif", "--format", "json") == 0
        [pack] = json.loads(here.out)["mutation"]["packs"]
    results = json.loads((folder / "s.sarif").read_text())["runs"][0]["results"]
    places = {
        (one["locations"][0]["physicalLocation"]["region"]["startLine"], one["level"])
        for one in results
        if one["ruleId"] == "mutant-survives"
    }
    assert places == {(one["line"], "note") for one in pack["tried"] if one["came"] == "survived"}
    assert places
