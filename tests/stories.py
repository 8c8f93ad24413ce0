"""Ledgers made of short rows, for comparing: one row a step."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ledgercli import records
from ledgercli.ledger import Ledger
from ledgercli.records import Finding, Line, Proposal, Result, Verdict
from tests.ledgers import AT

LATER = "2026-09-09T09:09:09.000Z"
STATE: dict[str, Any] = {
    "task": "Refund my order.", "facts": {"user": {"id": "mia"}, "orders": {}, "returns": {}}, "constraints": {},
    "flags": {}, "goals": {}, "goal": "", "status": "running", "error": None, "final_answer": None,
}  # fmt: skip
BOUND = dict.fromkeys(("args", "packs", "reads"), "sha256:" + "0" * 64)


def call(
    tool: str,
    data: Any = None,
    *,
    rule: str | None = None,
    effect: records.Effect = "deny",
    reads: Mapping[str, Any] | None = None,
    sets: Mapping[str, Any] | None = None,
    unsets: Iterable[str] = (),
    error: Any = None,
    outcome: records.Outcome | None = None,
    **args: Any,
) -> Line:
    """A step without its number; with a `rule` it is denied, or whatever the effect says."""
    if rule is None:
        verdict = Verdict("allow", 3, reads or {})
    else:
        key = "failed" if effect in ("deny", "require_approval") else "warned"
        finding = Finding(f"support/{rule}", effect, f"{rule} says no.")
        verdict = Verdict(effect, 3, reads or {}, reason=f"{rule} says no.", **{key: (finding,)})
    ran = rule is None or effect in ("allow", "warn")
    result = Result(success=error is None, data=data, error=error) if ran else None
    usual: records.Outcome = ("error" if error else "ok") if ran else "denied" if effect == "deny" else "waiting"
    return records.step_line(
        step=0, at=AT, now=AT, action=Proposal(tool, args), verdict=verdict, outcome=outcome or usual,
        result=result if outcome not in ("cancelled", "unknown") else None, sets=sets, unsets=unsets,
    )  # fmt: skip


def opening(name: str | None = "refund", **changed: Any) -> Line:
    """An open line with a pack, a toolset and, by its name, a scenario."""
    files = [records.file_entry("pack", "support", "support.yaml", "pack: support\n")]
    files.append(records.file_entry("toolset", "shop", "shop.tools.yaml", "toolset: shop\n"))
    if name is not None:
        files.append(records.file_entry("scenario", name, f"{name}.yaml", f"scenario: {name}\n"))
    return records.open_line(at=AT, run="01K", files=files, engine={"kind": "script"}, state=STATE) | changed


def write(
    path: Path,
    rows: Iterable[Line],
    *,
    status: records.Status | None = "completed",
    answer: Any = "Done.",
    at: str = AT,
    first: Line | None = None,
) -> Path:
    """Write a ledger of rows; steps get their numbers, and other lines stay as they are."""
    path.parent.mkdir(parents=True, exist_ok=True)
    steps = 0
    with Ledger.create(path, {**(first or opening()), "at": at}, sync="none") as ledger:
        for row in rows:
            steps += row["kind"] == "step"
            numbered = {"step": steps, "now": at} if row["kind"] == "step" else {}
            ledger.append({**row, **numbered, "at": at})
        if status is not None:
            ledger.append(records.close_line(at=at, status=status, answer=answer, steps=steps))
    return path


def unique(number: int, **changed: Any) -> Line:
    """A step like no other, with as much in it as real ones have."""
    order, tool = f"#W{number}", ("get_order", "charge", "look", "ship")[number % 4]
    said = {"receipt": f"R-{number}", "status": "done", "items": [1, 2, {"sku": order}], "total": number}
    given = {"order_id": order, "amount": number, "note": f"about {order}"}
    return call(
        tool,
        said,
        reads={"action.args.order_id": order, "state.facts.user.id": "mia", f'count_calls("{tool}")': number},
        sets={"facts.last": order},
        **{**given, **changed},
    )


def rollback(to: int, sets: Mapping[str, Any] | None = None, unsets: Iterable[str] = (), **more: Any) -> Line:
    """A rollback to a step."""
    return records.rollback_line(at=AT, to=to, by=None, reason=None, sets=sets or {}, unsets=unsets) | more


def refunds(folder: Path) -> tuple[Path, Path]:
    """The two ledgers that the documentation compares."""
    user = call("authenticate_user", {"authenticated": True}, email="mia@example.com")
    order = call("get_order", {"status": "delivered"}, order_id="#W2378156")
    policy = call("check_return_policy", {"returnable": True}, order_id="#W2378156")
    refused = call("create_return", rule="refund_of_own_order", order_id="#W2378156")
    returned = call(
        "create_return", {"return_id": "R-81"}, order_id="#W5866402", sets={'facts.returns["R-81"]': "#W5866402"}
    )
    other = call("get_order", {"status": "shipped"}, order_id="#W5866402")
    label = call("print_label", {"label": "L-7"}, carrier="DHL")
    told = call("notify", None, channel="email", text="退货已登记，请在14天内寄回。")
    asked = call("ask_user", "No, thank you.", question="Anything else?")
    bye = call("finish", "Done.", answer="Done.")
    a = write(folder / "gpt-4o/refund-17.ledger.jsonl", [user, order, policy, refused, other, label, asked, bye])
    b = write(
        folder / "sonnet/refund-17.ledger.jsonl",
        [user, order, policy, returned, label, told, asked, bye],
        answer="Your return is R-81.",
        at=LATER,
        first=opening(run="01L"),
    )
    return a, b
