"""What `ledger run --trials` shows, and the goals of a trip, byte for byte."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import GOLDEN, PROJECT, UPDATE
from tests.commands import Run, command_line

TRIP = "ledger run fixtures/scenarios/trip.yaml"


@pytest.fixture
def ledger(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Run]:
    with command_line(folder, monkeypatch, capsys) as run:
        yield run


def shown(ledger: Run, name: str, *lines: str) -> str:
    """What command lines print, in this process; it is held to a file."""
    told = ""
    for line in lines:
        code = ledger(*shlex.split(line)[1:])
        told += f"$ {line}\n{ledger.out}{ledger.err}[{code}]\n"
    told = re.sub("sha256:[0-9a-f]{12}", f"sha256:{'0' * 12}", told).replace(str(PROJECT), "")
    file = GOLDEN / f"{name}.txt"
    if UPDATE:
        file.write_text(told, encoding="utf-8")
    assert told == file.read_text(encoding="utf-8")
    return told


def test_goals_of_a_trip_are_reached_out_of_order(ledger):
    told = shown(ledger, "run-trip", f"{TRIP} --out trip.ledger.jsonl")
    closed = re.findall(r'state\.goals(?:\.|\[")([\w/]+)(?:"\])? = true', told)
    assert closed == ["weather", "flight", "hotel/room", "hotel/budget", "trip", "hotel", "traveller_knows"]


def test_trials_and_what_was_not_as_expected(ledger):
    write(ledger.folder)
    shown(
        ledger,
        "trials",
        "ledger run lottery.yaml --trials 5 --out t1",
        "ledger run lottery.yaml --trials 4 --min-pass 0.9 --out t3 --format markdown",
        f"{TRIP} fixtures/scenarios/weather.yaml --trials 2 --out both",
        "ledger run lottery.yaml --trials 2 --out t1",
        "ledger run fixtures/scenarios/shop-return.yaml --trials 2 --out t4",
    )


def write(folder):
    (folder / "lottery.py").write_text(
        "import itertools\nCALLS = itertools.count(1)\n\n\ndef draw():\n"
        "    return {'prize': 500 if next(CALLS) % 3 == 0 else 5}\n"
    )
    (folder / "lottery.tools.yaml").write_text(
        "toolset: lottery\ntools:\n"
        "  draw: {access: read, run: {python: 'lottery.py:draw'}, on_success: {set: {facts.prize: result.data.prize}}}\n"
        "  pay: {args: {amount: {type: number}}, run: {canned: [{result: {paid: true}}]},\n"
        "    on_success: {set: {facts.paid: true}, finish: completed}}\n"
    )
    (folder / "lottery.pack.yaml").write_text(
        "pack: lottery\nrules:\n  - name: small_prizes\n    tools: [pay]\n    check: action.args.amount < 100\n"
    )
    (folder / "lottery.yaml").write_text(
        "scenario: lottery\ntask: Pay the winner.\ntoolset: lottery.tools.yaml\npacks: [lottery.pack.yaml]\n"
        "decide:\n  script:\n    - {when: '!has(state.facts.prize)', propose: {tool: draw}}\n"
        '    - {propose: {tool: pay, args: {amount: "{state.facts.prize}"}}}\n'
        "expect: {facts.paid: true, rules: {not_failed: [small_prizes]}, calls: [{tool: pay}]}\n"
    )
