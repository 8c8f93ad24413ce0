"""`capture` on the 200 airline runs: each case passes, needs its rules, and holds nothing idle."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from ledgercli import cel, ledger
from ledgercli.capture.beginning import begin
from ledgercli.capture.capturing import Captured, Capturing, Wish
from ledgercli.capture.casefile import Added, CaseFile
from ledgercli.capture.recalling import Step, steps
from ledgercli.capture.shrinking import Bench, said
from ledgercli.cases import StateModel
from ledgercli.casework.groups import Group
from ledgercli.casework.judging import rules_of
from ledgercli.policy import RuleModel
from ledgercli.rulebook import Rulebook
from ledgercli.shelf import Shelf
from tests.test_airline import DATA, ROOT, WRITES, Replay, enforced  # noqa: F401 - a fixture

pytestmark = [
    pytest.mark.skipif(not DATA.exists(), reason="the recorded runs are not here"),
    pytest.mark.slow,
    pytest.mark.timeout(1800),
]
HEAD = """\
cases: captured
packs: [policies/airline.yaml]
toolset: policies/airline.tools.yaml
now: "2024-05-15T20:00:00Z"
tests: []
"""
SAMPLE = 2  # of allowed writes every second


def recorded(run: Replay, wanted: Any) -> Iterator[Step]:
    then = Shelf()
    for path in sorted(Path(run.folder).glob("*.ledger.jsonl")):
        numbers = {entry.record["step"] for entry in ledger.read(path) if entry.kind == "step" and wanted(entry.record)}
        if numbers:
            yield from steps(str(path), numbers, then)


def is_denied(record: dict[str, Any]) -> bool:
    return record["outcome"] == "denied"


def is_allowed_write(record: dict[str, Any]) -> bool:
    return record["action"]["tool"] in WRITES and record["verdict"] is not None and record["outcome"] == "ok"


def with_rules(group: Group, change: Any) -> Group:
    """The same file, had its pack other rules."""
    packs = [
        replace(one, file=one.file.model_copy(update={"rules": change(one.file.rules)})) for one in group.rules.packs
    ]
    return replace(group, rules=Rulebook(group.rules.toolset, packs), packs=packs)


def smaller(case: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The case without each single thing that it says of the state and the past."""
    for place in places(case.get("state", {})):
        yield f"state {place}", {**case, "state": without(case["state"], place)}
    past = case.get("history", [])
    for number, one in enumerate(past):
        yield f"past step {number}", {**case, "history": [*past[:number], *past[number + 1 :]]}
        for key in one.keys() & {"args", "data"}:
            less = {name: value for name, value in one.items() if name != key}
            yield f"{key} of past step {number}", {**case, "history": [*past[:number], less, *past[number + 1 :]]}


def places(value: Any) -> Iterator[tuple[str | int, ...]]:
    """The leaves of maps, also of those in lists; a list is left out whole."""
    for key, item in value.items() if isinstance(value, dict) else enumerate(value):
        if isinstance(item, dict) and item:
            yield from ((key, *place) for place in places(item))
        elif isinstance(value, dict):
            yield (key,)
        if isinstance(item, list):
            yield from ((key, number, name) for number, one in enumerate(item) if isinstance(one, dict) for name in one)


def without(tree: Any, place: tuple[str | int, ...]) -> Any:
    """The tree without one leaf, and without the maps that it alone had filled."""
    key, *rest = place
    if isinstance(tree, list):
        return [without(one, tuple(rest)) if number == key else one for number, one in enumerate(tree)]
    below = without(tree[key], tuple(rest)) if rest else {}
    others = {name: value for name, value in tree.items() if name != key}
    return {**others, key: below} if below else others


@cache
def beginning(head: str) -> CaseFile:
    """The file that a step begins, loaded once."""
    return CaseFile("captured.cases.yaml", head, new=True)


def captured(step: Step, wish: Wish = Wish()) -> tuple[CaseFile, Captured]:  # noqa: B008 - it cannot change
    file = beginning(HEAD)
    return file, Capturing(step, file.group, wish).done()


def add(file: CaseFile, one: Captured) -> Added:
    """Add a case to a file that has no other."""
    file.text = HEAD
    [added] = file.add([one])
    return added


def test_every_denied_step_becomes_a_case_that_needs_its_rules_and_all_that_it_holds(
    enforced: Replay,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(ROOT)
    made = facts = known = past = at = 0
    others: dict[str, Group] = {}
    kept: list[Captured] = []
    for step in recorded(enforced, is_denied):
        file, one = captured(step)
        if one.at is not None:
            at += 1
            continue
        added = add(file, one)
        assert added.outcome is not None and added.outcome.came == "passed", (step.address, added.outcome)
        proposal, rules = step.situation.proposal, rules_of(added.verdict)
        assert one.case["expect"]["rules"], step.address
        for rule in rules:
            name = rule.rpartition("/")[2]
            if name not in others:
                others[name] = with_rules(file.group, lambda all_, name=name: [r for r in all_ if r.name != name])
            verdict = Bench(others[name], step, added.verdict).verdict(one.case, proposal)
            assert verdict is not None and rules_of(verdict) == [r for r in rules if r != rule], (step.address, rule)
            assert len(rules) > 1 or verdict.effect != "deny", (step.address, rule)
        bench = one.benches[0]
        for place, case in smaller(dict(one.case)):
            verdict = bench.verdict({k: v for k, v in case.items() if v}, proposal)
            assert verdict is None or said(verdict) != said(bench.said), (step.address, place)
        kept.append(one)
        made, facts, known = made + 1, facts + one.kept, known + one.known
        past += len(one.case.get("history", []))
    assert begin(None, kept[0].step).text == HEAD
    file.text = HEAD
    together = file.add(kept)
    assert all(one.outcome is not None and one.outcome.came == "passed" for one in together)
    print(f"\n{made} denied steps, {sum(one.new for one in together)} cases, {at} only as `at:`")
    print(f"{facts:,} of {known:,} facts and {past} past steps kept")
    assert made > 100 and at == 0


def test_an_allowed_write_fails_as_a_case_until_a_rule_denies_it_for_what_the_case_holds(
    enforced: Replay,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(ROOT)
    made = about = 0
    for number, step in enumerate(recorded(enforced, is_allowed_write)):
        if number % SAMPLE:
            continue
        file, one = captured(step, Wish("deny"))
        added = add(file, one)
        assert added.outcome is not None and added.outcome.came == "failed", step.address
        tool, facts = step.situation.proposal.tool, one.case["state"]["facts"]
        leaf = next((place for place in places(facts) if isinstance(at_(facts, place), str)), None)
        check = "false" if leaf is None else f"{path(leaf)} != {cel.literal(at_(facts, leaf))}"
        rule = RuleModel.model_validate({"name": "written_later", "tools": [tool], "check": check})
        later = with_rules(file.group, lambda all_, rule=rule: [*all_, rule])
        verdict = Bench(replace(later, state=StateModel()), step, added.verdict).verdict(
            one.case, step.situation.proposal
        )
        assert verdict is not None and verdict.effect == "deny", (step.address, check)
        assert ("airline/written_later" in rules_of(verdict), verdict.missing) == (True, ()), (step.address, check)
        made, about = made + 1, about + (leaf is not None)
    print(f"\n{made} allowed writes, {about} with a rule about a record")
    assert about > 20


def at_(tree: Any, place: tuple[str | int, ...]) -> Any:
    for key in place:
        tree = tree[key]
    return tree


def path(place: tuple[str | int, ...]) -> str:
    return cel.path_text(("state", "facts", *place))
