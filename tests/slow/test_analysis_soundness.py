"""What the analysis claims of random packs is so in every state, as the enforcer judges it."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings

from tests.brute import packs
from tests.soundness import false_claims, false_deadlocks, waiting


@pytest.mark.slow
@pytest.mark.timeout(1200)
@settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck))
@given(packs())
def test_no_claim_is_false(text: str):
    assert false_claims(text) == []


@pytest.mark.slow
@pytest.mark.timeout(1200)
@settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck))
@given(waiting())
def test_no_run_finds_its_way_out_of_a_deadlock(text: str):
    assert false_deadlocks(text) == []
