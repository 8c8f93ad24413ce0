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
    "jinja2",
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


def test_a_prompt_needs_no_engine_and_a_summary_no_template(tmp_path):
    ledger = str(tmp_path / "w.ledger.jsonl")
    made = imported("-m", "ledgercli", "run", "-q", "fixtures/scenarios/onboarding.yaml", "--out", ledger)
    assert not made & {"litellm", "jinja2", "deepdiff"}
    assert not imported("-m", "ledgercli", "summarize", ledger) & {"litellm", "jinja2", "deepdiff"}
    assert not imported("-m", "ledgercli", "summarize", ledger, "--for", "model") & {"litellm", "deepdiff"}
    found = imported("-m", "ledgercli", "prompt", f"{ledger}@1")
    assert "jinja2" in found  # so it was filled in
    assert not found & {"litellm", "deepdiff"}


@pytest.mark.parametrize("arguments", [("fixtures/cases/support.cases.yaml",), ("fixtures/scenarios", "--mutate")])
def test_judging_cases_imports_no_engine_no_comparison_and_no_tool(arguments):
    found = imported("-m", "ledgercli", "test-policies", *arguments)
    assert not found & {"litellm", "deepdiff", "jsonlines", "shop_tools", "return_policy", "weather_tools"}
    assert "ruamel" in found  # so the cases were read


def test_no_command_but_a_run_that_a_model_decides_imports_litellm(tmp_path):
    ledger = "fixtures/recordings/transfer.ledger.jsonl"
    commands = [
        ("run", "-q", "fixtures/scenarios/weather.yaml", "--out", str(tmp_path / "w.ledger.jsonl")),
        ("check", "--pack", "policies/weather.yaml", "--toolset", "fixtures/scenarios/weather.tools.yaml",
         "--propose", '{"tool": "give_suggestion", "args": {}}'),
        *((command, ledger) for command in ("validate", "list", "replay", "summarize")),
        ("why", f"{ledger}@1"),
        ("diff", ledger, ledger),
    ]  # fmt: skip
    code = f"from ledgercli.cli import main\nassert [main(one) for one in {commands!r}][2:] == [0] * 6"
    found = imported("-c", code + "\nimport wave")
    assert "wave" in found  # so all of them ended well
    assert not found & {"litellm", "openai", "httpx"}


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
