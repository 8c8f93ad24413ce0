"""What-if on recorded runs of a real model, against plain Python: every flip and every frontier, no more and no less.

What is expected is worked out by `tests.airline_by_hand` from the trajectories, without anything of this package.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from ledgercli.replay.surveys import replays, what_ifs
from ledgercli.replay.verifying import Replayed
from ledgercli.replay.whatif import WhatIf
from tests.airline_by_hand import DATA, EDITS, PACK_FILE, Edit, Expected, expected_whatif, recorded_runs
from tests.test_airline_by_hand import MODES, ledger, scenario

pytestmark = [
    pytest.mark.skipif(not DATA.exists(), reason="the recorded runs are not here"),
    pytest.mark.slow,
    pytest.mark.timeout(600),
]
NAMES = {run.ledger_name: run.id for run in recorded_runs()} if DATA.exists() else {}
Flips = list[tuple[int, str, str, str]]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The ledgers of all runs under the shipped pack, by mode."""
    folder = tmp_path_factory.mktemp("airline")
    asked = scenario(folder / "recorded.yaml", "ledgercli:airline")
    for mode in MODES:
        ledger("run", asked, "--mode", mode, "--out", folder / mode, "--sync", "none", "-q")
    return {mode: folder / mode for mode in MODES}


def judged(folder: Path, pack: Path) -> Iterator[tuple[str, WhatIf]]:
    """What the product says to each run, by the run's id."""
    for one in what_ifs([str(path) for path in sorted(folder.iterdir())], [str(pack)], jobs=2):
        assert isinstance(one, WhatIf)
        yield NAMES[Path(one.path).name], one


def by_hand(expected: Expected) -> Flips:
    """What has to be told of a run: a warning runs as an allowance does."""
    return [
        (flip.step, flip.tool, flip.from_effect, flip.to_effect)
        for flip in expected.flips
        if {flip.from_effect, flip.to_effect} != {"allow", "warn"}
    ]


def told(one: WhatIf) -> Flips:
    return [(flip.step, flip.tool, flip.recorded, flip.replayed) for flip in one.flips]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("edit", EDITS, ids=operator.attrgetter("id"))
def test_flips_and_frontiers_are_those_of_plain_python(
    recorded: dict[str, Path], tmp_path: Path, edit: Edit, mode: str
) -> None:
    pack = tmp_path / "edited.yaml"
    pack.write_text(edit.text(PACK_FILE.read_text()))
    expected = expected_whatif(edit, mode, warnings_tell=True)
    found = dict(judged(recorded[mode], pack))
    assert found.keys() == expected.keys()
    assert len(found) == 200
    for run, one in found.items():
        hand = expected[run]
        assert (told(one), one.frontier) == (by_hand(hand), hand.frontier), run
        rules = {flip.step: flip.rules for flip in hand.flips}
        for flip in one.flips:
            assert flip.exact == (one.frontier is None or flip.step <= one.frontier)
            assert (flip.rule or "").rpartition("/")[2] in rules[flip.step], (run, flip)


def test_the_edits_say_something_and_some_say_nothing() -> None:
    """So that the test above cannot pass by finding nothing."""
    flips = {
        edit.id: sum(len(by_hand(run)) for mode in MODES for run in expected_whatif(edit, mode).values())
        for edit in EDITS
    }
    silent = {name for name, count in flips.items() if not count}
    print(
        f"\n{sum(flips.values())} flips by {len(EDITS) - len(silent)} of {len(EDITS)} edits; none by {sorted(silent)}"
    )
    assert len(EDITS) - len(silent) >= 25
    assert {"another description", "halts", "owner_identified stands last"} <= silent


def test_where_redaction_hides_what_a_changed_rule_needs_it_cannot_be_told(tmp_path: Path) -> None:
    """The membership is masked; where it decides it cannot be told, everywhere else all is as without redaction."""
    edit = next(edit for edit in EDITS if edit.id == "compensation_only_for_entitled: gold members")
    (tmp_path / "edited.yaml").write_text(edit.text(PACK_FILE.read_text()))
    (tmp_path / "shipped.yaml").write_text(PACK_FILE.read_text() + "# as it was\n")
    tools = tmp_path / "masked.tools.yaml"
    tools.write_text(
        (PACK_FILE.parent / "airline.tools.yaml").read_text() + "\nredact: [get_user_details.data.membership]\n"
    )
    asked = scenario(tmp_path / "recorded.yaml", "ledgercli:airline")
    asked.write_text(asked.read_text().replace(str(PACK_FILE.parent / "airline.tools.yaml"), str(tools)))
    ledger("run", asked, "--mode", "enforce", "--out", tmp_path / "masked", "--sync", "none", "-q")
    expected = expected_whatif(edit, "enforce", warnings_tell=True)
    found = dict(judged(tmp_path / "masked", tmp_path / "edited.yaml"))
    hidden = {(run, flip.step) for run, one in found.items() for flip in one.flips if flip.change == "cannot-tell"}
    assert hidden
    for run, one in found.items():
        certain = [flip for flip in by_hand(expected[run]) if (run, flip[0]) not in hidden]
        assert [flip for flip in told(one) if (run, flip[0]) not in hidden] == certain, run
        first = min((step for name, step in hidden if name == run), default=None)
        ends = [step for step in (first, expected[run].frontier) if step is not None]
        assert one.frontier == min(ends, default=None), run
    for flips in (one.flips for one in found.values()):
        assert all("gold" not in str(flip.facts) and "silver" not in str(flip.facts) for flip in flips)
    said = {flip.change for _, one in judged(tmp_path / "masked", tmp_path / "shipped.yaml") for flip in one.flips}
    assert said <= {"cannot-tell"}  # the same rules again never say anything else


@pytest.mark.parametrize("mode", MODES)
def test_every_run_comes_out_the_same_by_its_own_rules(recorded: dict[str, Path], mode: str) -> None:
    found = list(replays([str(path) for path in sorted(recorded[mode].iterdir())], jobs=2))
    assert Counter(type(one) for one in found) == {Replayed: 200}
    assert all(isinstance(one, Replayed) and one.divergence is None and not one.untold for one in found)
