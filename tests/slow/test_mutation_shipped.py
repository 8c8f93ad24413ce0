"""What the cases of the shipped packs catch of mistakes in them; generated packs, many."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from ledgercli.casework.finding import find
from ledgercli.mutation.catching import Mutation, run, tasks, together
from tests import brute
from tests.commands import ROOT
from tests.mutants import group_of, hold_to_the_truth

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

PACKS = ("airline", "confirm", "goodwill", "limits_unverified", "limits_verified", "loops", "support", "weather")
#: What no case catches, and why not.
SURVIVORS = {
    (
        "define today",
        "duration('5h') -> duration('6h')",
    ): "all cases are of one time, and it is not just after midnight",
    (
        "define today",
        "duration('5h') -> duration('4h')",
    ): "all cases are of one time, and it is not just before midnight",
    ("price_adds_up", "math.abs(paid - booked_price) < 0.005 -> math.abs(paid - booked_price) <= 0.005"): (
        "no two sums of dollars and cents are exactly 0.005 apart"
    ),
}


@pytest.fixture(scope="module")
def found() -> Iterator[dict[str, Mutation]]:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        cases = find(["fixtures"])
        work = tasks(cases)
        yield {pack.pack: pack for pack in together(work, run(cases, work, jobs=2))}


@pytest.mark.parametrize("name", PACKS)
def test_at_least_95_percent_of_the_mutants_of_a_shipped_pack_are_caught(found, name):
    pack = found[name]
    assert pack.score >= 95
    assert len(pack.tried) >= 8


def test_each_mutant_that_is_not_caught_is_known(found):
    told = {
        (one.part, f"{one.before} -> {one.after}")
        for pack in PACKS
        for one in found[pack].tried
        if one.came == "survived"
    }
    assert told == set(SURVIVORS)


def test_hardly_a_mutant_does_not_load(found):
    every = [one for pack in PACKS for one in found[pack].tried]
    assert sum(one.came == "unloadable" for one in every) <= len(every) // 50
    assert len(every) > 600


def test_the_cases_that_are_proposed_for_a_file_with_half_of_its_cases_catch_what_it_does_not(tmp_path):
    head, *cases = (ROOT / "fixtures/cases/support.cases.yaml").read_text(encoding="utf-8").split("\n  - name: ")
    head = head.replace("../../policies", str(ROOT / "policies")).replace(
        "../toolsets", str(ROOT / "fixtures/toolsets")
    )
    half = [case for case in cases[::2] if "at: " not in case]
    file = tmp_path / "support.cases.yaml"
    text = "\n  - name: ".join([head, *half]).rstrip() + "\n"
    file.write_text(text, encoding="utf-8")
    [before] = _tried(file)
    proposed = dict.fromkeys("\n".join(one.lines) for one in before.survivors if one.lines)
    assert len(before.survivors) > 10
    assert len(proposed) > len(before.survivors) / 2
    file.write_text(text + "".join(f"{case}\n" for case in proposed), encoding="utf-8")
    [after] = _tried(file)
    left = {(one.part, one.before, one.after) for one in after.survivors}
    assert left <= {(one.part, one.before, one.after) for one in before.survivors if not one.lines}


def _tried(file: Path) -> list[Mutation]:
    cases = find([str(file)])
    work = tasks(cases)
    return together(work, run(cases, work))


def test_what_is_told_of_many_mutants_is_so():
    told: Counter[str] = Counter()

    @settings(max_examples=25, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(text=brute.packs(), numbers=st.lists(st.integers(0, 10_000), min_size=1, max_size=6))
    def hold(text: str, numbers: list[int]) -> None:
        group = group_of(text, numbers)
        assume(group is not None)
        for one in hold_to_the_truth(group, text, most=8):
            told[one.came] += 1
            told["case"] += bool(one.lines)

    hold()
    assert all(told[came] > 10 for came in ("caught", "same", "survived", "case")), told
