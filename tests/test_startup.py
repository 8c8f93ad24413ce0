"""`ledger --help` is quick: it imports nothing heavy."""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys

import pytest

HEAVY = {
    "litellm",
    "deepdiff",
    "ruamel",
    "pydantic",
    "rich",
    "jsonlines",
    "jsonschema_rs",
    "orjson",
    "msgspec",
    "asyncio",
}
HELP = ("-m", "ledgercli", "--help")
PAIRS = 15
MOST = 3.0  # times `import click`


def imported(*arguments: str) -> set[str]:
    """The packages that a Python process imports."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False
    )
    lines = [
        line.rpartition("|")[2].strip() for line in done.stderr.decode().splitlines() if line.startswith("import time")
    ]
    return {name.partition(".")[0] for name in lines}


def test_help_and_version_import_nothing_heavy():
    assert not imported(*HELP) & HEAVY
    assert not imported("-m", "ledgercli", "--version") & HEAVY
    assert "pydantic" in imported("-m", "ledgercli", "schema", "pack")  # so the test sees what is imported


@pytest.mark.parametrize("arguments", [("validate", "policies/weather.yaml"), ("validate", "--explain", "chain")])
def test_validate_imports_no_engine_and_no_comparison(arguments):
    assert not imported("-m", "ledgercli", *arguments) & {"litellm", "deepdiff", "jsonlines"}


@pytest.mark.parametrize("arguments", [("fixtures/cases/support.cases.yaml",), ("fixtures/scenarios", "--mutate")])
def test_judging_cases_imports_no_engine_no_comparison_and_no_tool(arguments):
    found = imported("-m", "ledgercli", "test-policies", *arguments)
    assert not found & {"litellm", "deepdiff", "jsonlines", "shop_tools", "return_policy", "weather_tools"}
    assert "ruamel" in found  # so the cases were read


def cpu_seconds(*arguments: str) -> float:
    """CPU seconds of one Python process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [sys.executable, *arguments], stdout=subprocess.DEVNULL, check=True, env={**os.environ, "LANG": "C.UTF-8"}
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def test_help_costs_at_most_three_times_what_importing_click_costs():
    pairs = [(cpu_seconds(*HELP), cpu_seconds("-c", "import click")) for _ in range(PAIRS)]
    ratio = statistics.median(ours / bare for ours, bare in pairs)
    assert ratio <= MOST, f"{ratio:.2f} times"
