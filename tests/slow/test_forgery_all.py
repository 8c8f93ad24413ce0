"""Every forgery of every line, and every recorded run: what is found by whom, and what no one can find."""

from __future__ import annotations

import json
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from ledgercli.ledger.verify import verify
from ledgercli.replay.verifying import replay
from ledgercli.runs import Options, prepare
from ledgercli.shelf import Shelf
from tests.books import lines_of
from tests.forging import Search, orders
from tests.library import library
from tests.test_airline import AIRLINE, DATA, NOW, RETAIL
from tests.unfindable import reviewed

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
ROOT = Path(__file__).parents[2]
SCENARIOS = [
    path
    for path in sorted((ROOT / "fixtures" / "scenarios").glob("*.yaml"))
    if path.read_text().startswith("scenario:")
]
recordings = pytest.mark.skipif(not DATA.exists(), reason="the recorded runs are not here")


def searched(ledger: Path, order: Any) -> tuple[Counter[Any], Counter[Any]]:
    """Forge one ledger in every way; who finds how many in which kind of line, and what nobody finds."""
    search, tally, missed = Search(ledger, Shelf(), order), Counter[Any](), Counter[Any]()
    for forged in search.all():
        codes, last = search.plainly(forged), forged.at + forged.over == len(search.lines)
        assert codes, forged
        assert last or codes - {"anchor"}, forged
        tally["plainly", "in a last line, only by the anchor" if codes == {"anchor"} else "validate"] += 1
        found = search.cleverly(forged)
        tally[forged.place.partition(".")[0], found or "nobody"] += 1
        if found is None:
            missed[forged.key] += 1
    return tally, missed


def test_each_forgery_is_found_or_reviewed_and_nothing_is_reviewed_that_is_always_found(tmp_path: Path) -> None:
    ledgers = library(tmp_path).values()
    order = orders(map(lines_of, ledgers))
    tally, missed = Counter[Any](), Counter[Any]()
    with ProcessPoolExecutor(2) as pool:
        for done in pool.map(searched, ledgers, [order] * len(ledgers)):
            tally, missed = tally + done[0], missed + done[1]
    for (kind, found), number in sorted(tally.items()):
        print(f"{kind:<14}{found:<36}{number:>7,}")
    allowed = reviewed()
    assert sorted(key for key in missed if key not in allowed) == []
    assert sorted(key for key in allowed if key not in missed) == []


# ---- all ledgers there are


def replayed(names: list[str], out: Path, **options: Any) -> int:
    """Carry out what is named, and judge each ledger again; how many there are."""
    shelf, ledgers = Shelf(), 0
    for _, jobs in prepare(names, Options(out=f"{out}/", sync="none", **options)):
        for job in jobs:
            job.run(None, lambda _proposal, _verdict: None, lambda _line: None)
            assert verify(job.ledger).problems == (), job.ledger
            said = replay(job.ledger, shelf)
            assert (said.divergence, said.untold) == (None, ()), said
            ledgers += 1
    return ledgers


@pytest.mark.parametrize("shadow", [False, True])
@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_every_scenario_that_is_shipped_replays_in_both_modes(tmp_path: Path, path: Path, shadow: bool) -> None:
    assert replayed([str(path)], tmp_path / "out", shadow=shadow) == 1


@recordings
@pytest.mark.parametrize("shadow", [False, True], ids=["enforce", "shadow"])
@pytest.mark.parametrize(
    ("file", "form", "toolset", "packs", "runs"),
    [
        ("trajectories/airline1_gpt-4o.jsonl", "trajectories", AIRLINE, ["ledgercli:airline"], 200),
        ("trajectories/airline1_llama3.1-8b-il.jsonl", "trajectories", AIRLINE, ["ledgercli:airline"], None),
        ("native/tau1_gpt-4o-airline_first8.json", "tau-bench", AIRLINE, ["ledgercli:airline"], 8),
        ("native/tau2_gpt-4o_retail_first5.json", "tau2-bench", RETAIL, [], 5),
    ],
    ids=["200", "llama", "tau", "tau2"],
)
def test_every_recorded_run_replays_in_both_modes(
    tmp_path: Path, file: str, form: str, toolset: Path, packs: list[str], runs: int | None, shadow: bool
) -> None:
    recording = {"file": str(DATA / file), "format": form}
    said = {"scenario": "r", "toolset": str(toolset), "packs": packs, "now": NOW, "decide": {"recording": recording}}
    (tmp_path / "r.yaml").write_text(json.dumps(said))
    made = replayed([str(tmp_path / "r.yaml")], tmp_path / "out", shadow=shadow)
    assert made == runs if runs else made > 50
