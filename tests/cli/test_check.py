"""`ledger check`: one proposal, judged by hand."""

from __future__ import annotations

import json

import pytest

WEATHER = ("--pack", "policies/weather.yaml", "--toolset", "fixtures/scenarios/weather.tools.yaml")
DESK = ("--pack", "desk.pack.yaml", "--toolset", "desk.tools.yaml")
STATE = "{constraints: {sensitive_locations: [Area51]}}"


def proposal(tool: str, **args: object) -> tuple[str, str]:
    return "--propose", json.dumps({"tool": tool, "args": args})


def test_the_verdict_and_what_it_means_for_the_exit_code(golden):
    weather, desk = " ".join(WEATHER), " ".join(DESK)
    golden(
        "check",
        f'ledger check {weather} --state \'{STATE}\' --propose \'{{"tool": "get_weather", "args": {{"location": "北京"}}}}\'',
        f'ledger check {weather} --state \'{STATE}\' --propose \'{{"tool": "get_weather", "args": {{"location": "Area51"}}}}\' -v',
        f'ledger check {weather} --propose \'{{"tool": "get_weather", "args": {{"location": "Area51"}}}}\'',
        f'ledger check {desk} --propose \'{{"tool": "view_balance"}}\'',
        f'ledger check {desk} --propose \'{{"tool": "charge", "args": {{"amount": 320, "note": "x"}}}}\'',
        f'ledger check {desk} --propose \'{{"tool": "refund", "args": {{"amount": 320}}}}\'',
        f'ledger check {desk} --propose \'{{"tool": "refnd"}}\'',
    )


def test_a_state_may_be_a_file_and_a_proposal_standard_input(ledger, folder):
    (folder / "state.yaml").write_text("facts: {user_authenticated: true}\n")
    ran = ledger("check", *DESK, "--state", "state.yaml", "--propose", "-", text='{"tool": "view_balance"}')
    assert ran == (0, b"allow view_balance()\n", b"")


def test_json_has_the_verdict_as_a_ledger_has_it(ledger):
    ran = ledger("check", *WEATHER, "--state", STATE, *proposal("get_weather", location="Area51"), "--format", "json")
    said = json.loads(ran.out)
    assert (ran.code, said["exit_code"], said["schema"]) == (1, 1, "check/1")
    assert said["verdict"]["effect"] == "deny"
    assert said["verdict"]["failed"][0]["rule"] == "weather/no_sensitive_locations"
    assert said["verdict"]["reads"]["action.args.location"] == "Area51"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", b"error: the proposal is no JSON"),
        ("[]", b"error: the proposal has no tool"),
        ('{"tool": 5}', b"error: the proposal has no tool"),
        ('{"tool": "x", "args": []}', b"error: the proposal's args are no map"),
        ('{"tool": "x", "arguments": {}}', b"error: the proposal has the unknown key arguments"),
    ],
)
def test_a_proposal_that_is_none_is_refused(ledger, text, message):
    ran = ledger("check", *DESK, "--propose", text)
    assert ran.code == 2
    assert ran.err.startswith(message)
    assert b"fix: --propose" in ran.err


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--state", "{facts: [}"), b"error["),
        (("--state", "{fact: {}}"), b"no key fact here"),
        (("--state", "nosuch.yaml"), b"error: no file nosuch.yaml"),
        (("--now", "today"), b"error: today is no time"),
    ],
)
def test_a_state_or_a_time_that_is_none_is_refused(ledger, more, message):
    ran = ledger("check", *DESK, *more, *proposal("view_balance"))
    assert ran.code == 2
    assert message in ran.err


def test_no_tool_code_is_imported(ledger, folder):
    (folder / "evil.py").write_text("open('ran', 'w')\n\n\ndef tool():\n    pass\n")
    (folder / "evil.tools.yaml").write_text("toolset: evil\ntools:\n  tool: {run: {python: 'evil.py:tool'}}\n")
    (folder / "empty.yaml").write_text("pack: empty\nvocabulary: {}\n")
    (folder / "evil.yaml").write_text(
        "scenario: evil\ntoolset: evil.tools.yaml\npacks: [empty.yaml]\ndecide: {script: [{propose: {tool: tool}}]}\n"
    )
    assert ledger("check", "--pack", "empty.yaml", "--toolset", "evil.tools.yaml", *proposal("tool")).code == 0
    assert ledger("validate", "evil.yaml", "evil.tools.yaml", "empty.yaml").code == 0
    assert not (folder / "ran").exists()
    ledger("run", "evil.yaml", "--max-steps", "1")
    assert (folder / "ran").exists()  # so the marker works
