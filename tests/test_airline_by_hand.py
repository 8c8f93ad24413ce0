"""The judge by hand against the product: the same facts and the same verdicts, so that it may test what-if.

That an edit's two halves, text and rules by hand, mean the same is shown where what-if is held against them
(`tests/slow/test_whatif_airline.py`).
"""

from __future__ import annotations

import ast
import itertools
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from ledgercli import paths
from tests.airline_by_hand import (
    CHANGES,
    DATA,
    EDITS,
    PACK_FILE,
    ROOT,
    RUNS_FILE,
    SHIPPED,
    UnknownError,
    Verdict,
    World,
    all_of,
    any_of,
    expected_whatif,
    recorded_runs,
    stands_in,
    verdicts,
)

pytestmark = [
    pytest.mark.skipif(not DATA.exists(), reason="the recorded runs are not here"),
    pytest.mark.slow,
]

Lines = dict[str, list[dict[str, Any]]]
JUDGE = ROOT / "tests" / "airline_by_hand.py"
MODES = ("shadow", "enforce")


def ledger(*arguments: str | Path) -> None:
    command = [sys.executable, "-m", "ledgercli", *map(str, arguments)]
    ran = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert ran.returncode == 0, (ran.stdout + ran.stderr)[-2000:]


def scenario(file: Path, pack: str) -> Path:
    recording = {"file": str(RUNS_FILE), "format": "trajectories"}
    toolset = str(ROOT / "policies" / "airline.tools.yaml")
    now = "2024-05-15T15:00:00-05:00"
    document = {"scenario": "recorded", "toolset": toolset, "packs": [pack], "now": now}
    file.write_text(json.dumps({**document, "decide": {"recording": recording}}))
    return file


def written(folder: Path, pack: str, mode: str) -> Lines:
    """The ledgers that the product writes for all recorded runs, by the run's id."""
    out = folder / mode
    ledger("run", scenario(folder / "recorded.yaml", pack), "--mode", mode, "--out", out, "--sync", "none", "-q")
    assert len(list(out.iterdir())) == len(recorded_runs())
    return {
        run.id: [json.loads(line) for line in (out / run.ledger_name).read_text().splitlines()]
        for run in recorded_runs()
    }


@pytest.fixture(scope="module")
def shipped(tmp_path_factory) -> dict[str, Lines]:
    return {mode: written(tmp_path_factory.mktemp(mode), "ledgercli:airline", mode) for mode in MODES}


def steps(lines: list[dict[str, Any]]) -> dict[int, dict[str, Any]]:
    return {line["step"]: line for line in lines if line["kind"] == "step"}


def by_hand(verdict: Verdict) -> list[tuple[str, str, str]]:
    return [(failed.rule, failed.effect, failed.kind) for failed in verdict.failed]


def recorded(verdict: dict[str, Any]) -> list[tuple[str, str, str]]:
    """The same from a line; in shadow mode failed rules that refuse stand apart."""
    found = [finding for kind in ("failed", "shadowed", "warned") for finding in verdict.get(kind, ())]
    return [(f["rule"].split("/")[1], f["effect"], "untold" if f.get("missing") else "broken") for f in found]


def facts(world: World) -> dict[str, Any]:
    return {name: getattr(world, name) for name in ("users", "reservations", "flights", "routes")}


@pytest.mark.parametrize("mode", MODES)
def test_every_verdict_of_the_shipped_pack_is_that_of_the_ledger(shipped, mode):
    judged = refused = 0
    for run in recorded_runs():
        lines = steps(shipped[mode][run.id])
        assert sorted(lines) == [step.number for step in run.steps]
        for step, (verdict,) in verdicts(run, mode):
            line = lines[step.number]
            assert line["action"] == {"tool": step.tool, "args": step.args}
            assert recorded(line["verdict"]) == by_hand(verdict), (run.id, step.number)
            assert line["verdict"]["effect"] == ("allow" if mode == "shadow" else verdict.effect)
            judged += 1
            refused += verdict.refuses
    print(f"{mode}: {judged} verdicts, {refused} of them refuse")
    assert judged == 1164
    assert refused > 100


@pytest.mark.parametrize("mode", MODES)
def test_what_is_known_after_each_step_is_what_the_ledgers_state_holds(shipped, mode):
    compared = 0
    for run in recorded_runs():
        lines = steps(shipped[mode][run.id])
        state = shipped[mode][run.id][0]["state"]
        world = World(run.task)
        assert state["task"] == world.task
        for step in run.steps:
            line = lines[step.number]
            if line["outcome"] != "denied":
                world.learn(step)
            state = paths.patch(state, line.get("state_diff", {}), line.get("state_unset", ()))
            assert state["facts"] == facts(world), (run.id, step.number)
            compared += 1
    assert compared == sum(len(run.steps) for run in recorded_runs())


def test_in_enforced_runs_the_frontier_of_a_pack_that_refuses_no_more_is_where_the_ledger_says(shipped):
    same = next(edit for edit in EDITS if edit.id == "another description")
    closes = {name: lines[-1].get("counterfactual_from") for name, lines in shipped["enforce"].items()}
    assert {name: run.frontier for name, run in expected_whatif(same, "enforce").items()} == closes


# ---- edits


def test_every_edited_pack_loads(tmp_path):
    shipped = PACK_FILE.read_text()
    scenarios = []
    for number, edit in enumerate(EDITS):
        pack = tmp_path / f"{number}.pack.yaml"
        pack.write_text(edit.text(shipped))
        scenarios.append(scenario(tmp_path / f"{number}.yaml", pack.name))
    ledger("validate", *scenarios)


def test_edits_differ_from_the_shipped_pack_and_from_each_other():
    assert len({edit.id for edit in EDITS}) == len(EDITS)
    assert len({PACK_FILE.read_text(), *(edit.text(PACK_FILE.read_text()) for edit in EDITS)}) == len(EDITS) + 1
    assert {f"without {rule.name}" for rule in SHIPPED.rules} <= {edit.id for edit in EDITS}


def test_at_least_25_edits_flip_verdicts_in_every_direction_and_some_flip_none():
    flips: dict[str, Counter[tuple[str, str]]] = {}
    for edit in EDITS:
        runs = [run for mode in MODES for run in expected_whatif(edit, mode).values()]
        flips[edit.id] = Counter((flip.from_effect, flip.to_effect) for run in runs for flip in run.flips)
    flipping = [name for name, found in flips.items() if found]
    directions = Counter(direction for found in flips.values() for direction in found)
    print(f"{len(flipping)} of {len(EDITS)} edits flip verdicts: {dict(directions)}")
    assert len(flipping) >= 25
    assert {("deny", "allow"), ("allow", "deny"), ("deny", "warn"), ("allow", "warn")} <= set(directions)
    assert {("deny", "require_approval"), ("allow", "require_approval")} <= set(directions)
    assert not flips["another description"]
    assert not flips["owner_identified stands last"]


# ---- the judge's own ground


def test_the_judge_imports_nothing_but_the_standard_library():
    tree = ast.parse(JUDGE.read_text())
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    imported |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert "json" in imported
    assert {name.split(".")[0] for name in imported} <= sys.stdlib_module_names


def test_and_and_or_are_three_valued():
    def unknown() -> bool:
        raise UnknownError

    answers = {True: lambda: True, False: lambda: False, None: unknown}

    def told(combine, *parts):
        try:
            return combine(*(answers[part] for part in parts))
        except UnknownError:
            return None

    for parts in itertools.product(answers, repeat=3):
        assert told(any_of, *parts) is (True if True in parts else None if None in parts else False)
        assert told(all_of, *parts) is (False if False in parts else None if None in parts else True)


def test_a_name_stands_in_a_text_as_a_whole_word():
    assert stands_in("mia_li_3668", "I am Mia_Li_3668.")
    assert not stands_in("mia_li_36", "I am mia_li_3668.")
    assert not stands_in("li_3668", "I am mia_li_3668.")


def test_a_reservation_that_was_never_looked_at_leaves_its_rules_untold():
    run = next(run for run in recorded_runs() if run.id == "air1-gpt4o/41/2")
    _, (verdict,) = next(judged for judged in verdicts(run, "shadow") if judged[0].tool in CHANGES)
    assert verdict.effect == "deny"
    assert {failed.kind for failed in verdict.failed} == {"untold"}
