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
    "flags": {},
    "goals": {},
    "goal": "",
    "status": "running",
    "error": None,
    "final_answer": None,
}
ALLOW = Verdict("allow", 2, {"action.args.location": "Beijing"})
PACK = "pack: p\nrules: []\n"
ASKED: dict[str, Any] = {
    "model": "openai/m", "tokens": {"prompt": 100, "completion": None}, "cost": 0.25, "seconds": 1.5,
    "prompt": records.digest(b"prompt"), "faults": [{"kind": "prose", "said": "Let me look."}],
}  # fmt: skip


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


DIGEST = records.digest(b"x")
FORKED: dict[str, Any] = {"from": {"ledger": "a.ledger.jsonl", "run": "01J", "step": 3, "digest": DIGEST}}


def checkpoint(number: int, **changed: Any) -> records.Line:
    origins = [{"path": "facts.orders", "tool": "task", "args": {}, "step": 0}]
    return records.checkpoint_line(at=AT, step=number, state={**STATE, **changed}, origins=origins, history=None)


def rollback(to: int, sets: dict[str, Any] | None = None, unsets: tuple[str, ...] = ()) -> records.Line:
    return records.rollback_line(at=AT, to=to, by="lei", reason="wrong order", sets=sets or {}, unsets=unsets)


def resume(**sets: Any) -> records.Line:
    return records.resume_line(at=AT, files=[records.file_entry("pack", "p", "p.yaml", PACK + "\n")], sets=sets)


def approval(number: int, *, yes: bool = True) -> records.Line:
    tied = records.bound({}, {}, {})
    return records.approval_line(at=AT, step=number, yes=yes, by="lei", reason="fine", bound=tied)


def approved(number: int, waited: int) -> records.Line:
    verdict = {"effect": "require_approval", "applied": 1, "reads": {}, "reason": "No.", "approval": waited}
    return step(number, sets={"error": None}) | {"verdict": verdict}


def summary(first: int, last: int, **more: Any) -> records.Line:
    return records.summary_line(at=AT, first=first, last=last, text="Looked at x.", engine=ASKED) | more


def recovery() -> records.Line:
    return records.recovery_line(at=AT, offset=0, size=3, moved_to="a.torn-10", torn=DIGEST)


#: A run that goes on from another one, waits, is answered, goes on, is rolled back and resumed: every kind of line.
LIFE: tuple[records.Line, ...] = (
    opening(**FORKED),
    checkpoint(0),
    step(1, "look", {"facts.x": 1}),
    denied(2, "waiting"),
    closing(2) | {"status": "awaiting_approval"},
    approval(2),
    approved(3, 2),
    checkpoint(3, facts={"orders": {}, "x": 1}),
    recovery(),
    intent(4),
    step(4, sets={"facts.y": [1]}, unsets=("facts.x",)),
    summary(1, 4),
    step(5, sets={"status": "halted"}),
    closing(5) | {"status": "halted"},
    rollback(3, {"facts.x": 1, "status": "running"}, ("facts.y",)),
    closing(5) | {"status": "interrupted"},
    resume(**{"constraints.max_steps": 9}),
    step(6, sets={"status": "completed"}),
    closing(6, limit="max_steps", error="e", counterfactual_from=2),
)


def write(path: Path, *lines: records.Line, first: records.Line | None = None) -> Path:
    """A ledger of these lines behind an `open`; a recovery is put right about where it stands."""
    with Ledger.create(path, first or opening(), sync="none") as ledger:
        for line in lines:
            placed = {"offset": path.stat().st_size} if line["kind"] == "recovery" else {}
            ledger.append(line | placed)
    return path


def live(path: Path) -> Path:
    """The ledger of `LIFE`."""
    return write(path, *LIFE[1:], first=LIFE[0])
