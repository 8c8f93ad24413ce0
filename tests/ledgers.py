"""A small ledger to write, and to damage."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ledgercli import records
from ledgercli.ledger import Ledger
from ledgercli.records import Finding, Proposal, Result, Verdict

AT = "2026-08-01T12:00:00.000Z"
STATE: dict[str, Any] = {
    "task": "Beijing",
    "facts": {"orders": {}},
    "constraints": {"max_steps": 5},
    "status": "running",
    "error": None,
}
ALLOW = Verdict("allow", 2, {"action.args.location": "Beijing"})
PACK = "pack: p\nrules: []\n"


def opening(**changed: Any) -> records.Line:
    files = [
        records.file_entry("pack", "p", "p.yaml", PACK),
        records.file_entry("toolset", "t", "t.yaml", "", reference=True),
    ]
    return records.open_line(at=AT, run="01K", files=files, engine={"kind": "script"}, state=STATE) | changed


def intent(step: int, tool: str = "pay", **args: Any) -> records.Line:
    return records.intent_line(step=step, at=AT, now=AT, action=Proposal(tool, args), verdict=ALLOW)


def step(
    number: int, tool: str = "pay", sets: dict[str, Any] | None = None, unsets: tuple[str, ...] = (), **args: Any
) -> records.Line:
    return records.step_line(
        step=number, at=AT, now=AT, action=Proposal(tool, args), verdict=ALLOW, outcome="ok",
        result=Result(success=True, data={"n": number}), sets=sets, unsets=unsets,
    )  # fmt: skip


def denied(number: int, outcome: records.Outcome = "denied") -> records.Line:
    effect: records.Effect = "deny" if outcome == "denied" else "require_approval"
    finding = Finding("p/no", effect, "No.", hint="Ask.", halt=True, missing=("state.facts.x",))
    verdict = Verdict(
        effect,
        1,
        {},
        failed=(finding,),
        reason="No.",
        hint="Ask.",
        missing=("state.facts.x",),
        establish=("look",),
        halts=outcome == "denied",
    )
    return records.step_line(
        step=number,
        at=AT,
        now=AT,
        action=Proposal("pay", {}, "c1"),
        verdict=verdict,
        outcome=outcome,
        result=None,
        sets={"error": "No."},
    )


def closing(steps: int, **more: Any) -> records.Line:
    return records.close_line(at=AT, status="completed", answer="好", steps=steps, **more)


STORY: tuple[records.Line, ...] = (
    step(1, "look", {'facts.orders["#W1.2"]': {"status": "new"}}),
    intent(2, to="北京"),
    step(2, "pay", {'facts.orders["#W1.2"].status': "paid", "error": None}, to="北京"),
    denied(3),
    step(4, "look", {"facts.x": [1, 2]}),
    step(5, "look", {"error": None}, ('facts.orders["#W1.2"]',)),
    step(6, "look", {"status": "completed"}),
    closing(6),
)


def write(path: Path, *lines: records.Line, first: records.Line | None = None) -> Path:
    """A ledger of these lines behind an `open`."""
    with Ledger.create(path, first or opening(), sync="none") as ledger:
        for line in lines:
            ledger.append(line)
    return path
