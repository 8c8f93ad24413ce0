"""One verdict for people, and as data: what `ledger check` prints."""

from __future__ import annotations

from typing import Any

from ledgercli.errors import ExitCode
from ledgercli.judging import Judged
from ledgercli.records import Effect
from ledgercli.reports.places import rule_places
from ledgercli.reports.screen import Screen
from ledgercli.reports.steps import Steps

EXIT_OF: dict[Effect, ExitCode] = {
    "allow": ExitCode.YES,
    "warn": ExitCode.YES,
    "deny": ExitCode.NO,
    "require_approval": ExitCode.STOPPED,
}


def write_text(screen: Screen, judged: Judged, verbosity: int) -> None:
    """Write the proposal with its verdict, and the rules behind it."""
    verdict = judged.verdict.to_json()
    steps = Steps(screen, rule_places(judged.packs), verbosity, indent=" " * 6)
    effect = f"{judged.verdict.effect:<5}"
    screen.line(f"{steps.painted(judged.verdict.effect, effect)} {steps.call(judged.proposal.to_json(), effect + ' ')}")
    for line in steps.verdict(verdict):
        screen.line(line)


def to_json(judged: Judged) -> dict[str, Any]:
    """Return the verdict as data, as a ledger's line has it."""
    return {
        "schema": "check/1",
        "exit_code": int(EXIT_OF[judged.verdict.effect]),
        "action": judged.proposal.to_json(),
        "verdict": judged.verdict.to_json(),
        "packs": dict(judged.verdict.packs),
    }
