"""What others read: JUnit by junitparser, SARIF by its published schema, lcov, training data by a trainer's validator."""

from __future__ import annotations

import json
import os
import tarfile
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from junitparser import Error, Failure, JUnitXml, Skipped
from lcov_cobertura import LcovCobertura

from tests.commands import ROOT, Run, command_line
from tests.desks import PACK, write

SARIF_SCHEMA = "SARIF_SCHEMA"  # a folder with the npm package that carries the schema; the nox session gets it
PAY = "propose: {tool: pay, args: {amount: 5}}"
CASES = f"""
- {{name: passes, {PAY}, expect: allow}}
- {{name: "fails <&\\"'> \\0", {PAY}, expect: deny}}
- {{name: is skipped, skip: later, {PAY}, expect: deny}}
- {{name: is no proposal, propose: {{tool: pay}}, expect: deny}}
"""


@pytest.fixture
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Run]:
    with command_line(tmp_path, monkeypatch, capsys) as run:
        yield run


def test_junit_is_read_with_files_and_lines(ledger):
    write(ledger.folder, CASES)
    assert ledger("test-policies", ".", "--junit", "j.xml") == 2
    read = JUnitXml.fromfile("j.xml")
    assert (read.tests, read.failures, read.errors, read.skipped) == (4, 1, 1, 1)
    [suite] = read
    cases = list(suite)
    kinds = [type(case.result[0]) if case.result else None for case in cases]
    assert kinds == [None, Failure, Skipped, Error]
    assert [case._elem.get("line") for case in cases] == ["7", "8", "9", "10"]
    assert "expected deny, got allow" in cases[1].result[0].message
    assert "known passed" in cases[1].result[0].text


def test_a_pack_that_does_not_load_stands_in_both(ledger):
    write(ledger.folder, CASES, pack=PACK.replace("has(state.facts.user)", "has(state.facts.usr)"))
    assert ledger("test-policies", ".", "--junit", "j.xml", "--sarif", "s.sarif", "--lcov", "c.lcov") == 2
    [suite] = JUnitXml.fromfile("j.xml")
    assert (suite.errors, suite.tests) == (1, 1)
    [found] = valid_sarif(Path("s.sarif"))
    assert found["ruleId"] == "unknown-fact"
    assert region(found) == ("desk.yaml", 8, 28)


def region(result: dict[str, Any]) -> tuple[str, int, int]:
    place = result["locations"][0]["physicalLocation"]
    return place["artifactLocation"]["uri"], place["region"]["startLine"], place["region"]["startColumn"]


def valid_sarif(file: Path) -> list[dict[str, Any]]:
    """The results of a log that the published schema accepts, where that is at hand."""
    log = json.loads(file.read_bytes())
    assert log["version"] == "2.1.0"
    if folder := os.environ.get(SARIF_SCHEMA):
        [package] = Path(folder).glob("microsoft-jest-sarif-*.tgz")
        with tarfile.open(package) as inside:
            name = next(one for one in inside.getnames() if one.endswith("sarif-2.1.0-rtm.5.json"))
            schema = json.load(inside.extractfile(name) or pytest.fail(name))
        jsonschema.validate(log, schema)
    [run] = log["runs"]
    assert [run["tool"]["driver"]["rules"][one["ruleIndex"]]["id"] for one in run["results"]] == [
        one["ruleId"] for one in run["results"]
    ]
    return run["results"]


def test_sarif_points_at_cases_and_rules(ledger):
    write(ledger.folder, CASES)
    assert ledger("test-policies", ".", "--sarif", "s.sarif", "--coverage") == 2
    found = {one["ruleId"]: region(one) for one in valid_sarif(Path("s.sarif")) if one["ruleId"].startswith("case")}
    assert found == {"case-failed": ("desk.cases.yaml", 8, 12), "case-error": ("desk.cases.yaml", 10, 37)}
    notes = [one for one in valid_sarif(Path("s.sarif")) if one["ruleId"] == "rule-not-proved"]
    assert [one["locations"][0]["physicalLocation"]["region"] for one in notes] == [
        {"startLine": n} for n in (6, 10, 14)
    ]


@pytest.mark.skipif(SARIF_SCHEMA not in os.environ, reason="the published schema: `nox -s readers`")
def test_the_schema_is_the_published_one(tmp_path):
    log = tmp_path / "s.sarif"
    log.write_text('{"version": "2.1.0", "runs": [{"results": []}]}')
    with pytest.raises(jsonschema.ValidationError, match="'tool' is a required property"):
        valid_sarif(log)


def test_lcov_is_read_with_rules_and_branches(ledger):
    guest = f"state: {{facts: {{user: guest}}}}, {PAY}"
    write(ledger.folder, f"- {{name: a, {PAY}, expect: allow}}\n- {{name: b, {guest}, expect: {{rules: [known]}}}}")
    assert ledger("test-policies", ".", "--lcov", "c.lcov") == 0
    read = LcovCobertura(Path("c.lcov").read_text(), ".").parse(timestamp=0)
    [package] = read["packages"].values()
    [of_pack] = package["classes"].values()
    assert {name: hits for name, (_, hits) in of_pack["methods"].items()} == {
        "desk/known": "1", "desk/asks": "0", "desk/looked": "0",
    }  # fmt: skip
    assert sorted(of_pack["lines"]) == [4, 6, 8, 10, 14, 16]
    assert (of_pack["lines"][8]["branches-total"], of_pack["lines"][8]["branches-covered"]) == (4, 3)
    text = LcovCobertura(Path("c.lcov").read_text(), ".").convert()
    assert ET.fromstring(text).tag == "coverage"


# ---- training data, as the validator of Mistral's fine-tuning reads it


@pytest.mark.parametrize("calls", ["tools", "json_schema"])
@pytest.mark.parametrize("to", ["sft", "dpo"])
def test_training_data_is_what_a_trainer_takes(ledger, to, calls):
    accepted = chat_validator()
    for name in ("fixtures", "policies"):
        (ledger.folder / name).symlink_to(ROOT / name)
    for name in ("trip", "shop-subgoals", "weather-twice", "shop-zh"):
        assert ledger("run", f"fixtures/scenarios/{name}.yaml", "-q", "--out", f"runs/{name}.ledger.jsonl") == 0
    assert ledger("export", "--to", to, "--calls", calls, "runs", "--out", "data.jsonl") == 0
    samples = [json.loads(line) for line in Path("data.jsonl").read_text(encoding="utf-8").splitlines()]
    for sample in samples:
        told = [[*sample["prompt"], *sample[part]] for part in ("chosen", "rejected")] if to == "dpo" else []
        for messages in told or [sample["messages"]]:
            accepted(messages, sample.get("tools"))
            with pytest.raises(ValueError, match=r"Expected last role Assistant|last role"):
                accepted(messages[:-1], sample.get("tools"))
    assert len(samples) > 2


def chat_validator() -> Any:
    """What refuses a conversation that no model can be tuned with."""
    pytest.importorskip("mistral_common")
    from mistral_common.exceptions import MistralCommonException
    from mistral_common.protocol.instruct.request import ChatCompletionRequest
    from mistral_common.protocol.instruct.validator import MistralRequestValidatorV13, ValidationMode

    validator = MistralRequestValidatorV13(mode=ValidationMode.finetuning)

    def accepted(messages: list[dict[str, Any]], tools: list[dict[str, Any]] | None) -> None:
        try:
            validator.validate_request(ChatCompletionRequest.from_openai(messages, tools=tools))
        except MistralCommonException as error:
            raise ValueError(error.message) from error

    return accepted
