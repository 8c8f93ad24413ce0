"""Packs with one fault each: the analysis finds it at its line, and nothing besides."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.seeded import WORLDS, Fault, faults, findings, plant

FAULTS = list(faults())


def test_there_are_faults_of_many_kinds_in_every_shipped_pack():
    assert len(FAULTS) >= 100
    assert len({fault.code for fault in FAULTS}) >= 14
    assert {fault.world for fault in FAULTS} == set(WORLDS)


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS, ids=[f"{number}-{fault.name}" for number, fault in enumerate(FAULTS)])
def test_each_is_found_at_its_line_and_nothing_else_is_said(fault: Fault, tmp_path: Path, before: dict):
    plain = before[fault.world]
    _, line = plant(fault, tmp_path)
    found = findings(fault.world, tmp_path)
    assert (fault.code, fault.file, line) in found
    assert Counter(code for code, _, _ in found) - plain == Counter([fault.code])


@pytest.fixture(scope="session")
def before(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Counter[str]]:
    """What is said of the packs as they are shipped, by code."""
    folder = tmp_path_factory.mktemp("shipped")
    plant(Fault("weather", "", WORLDS["weather"].pack, "", "#§"), folder)
    return {world: Counter(code for code, _, _ in findings(world, folder)) for world in WORLDS}
