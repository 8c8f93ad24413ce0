"""The nouns come back from their lines, empty parts left out, and every line that is made keeps the contract."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import jsonschema
import orjson
import pytest

from ledgercli import records
from ledgercli.ledger import entries
from ledgercli.records import Finding, Proposal, Result, Verdict
from tests import ledgers

FINDING = Finding("p/r", "deny", "No.", "Ask.", halt=True, missing=("state.facts.x",))
FULL = Verdict(
    "deny", 3, {"state.task": "x"}, step=7, failed=(FINDING,), warned=(Finding("p/w", "warn", "W"),), overridden=(FINDING,),
    shadowed=(FINDING,), reason="No.", hint="Ask.", missing=("state.facts.x",), establish=("look",), halts=True, approval=4, packs={"p": "sha256:0"},
)  # fmt: skip
DIGEST = "sha256:" + "0a" * 32


def through_json(value: Any) -> Any:
    return orjson.loads(orjson.dumps(value))


@pytest.mark.parametrize(
    "value",
    [
        Proposal("t", {"a": 1}),
        Proposal("t", {}, "c1"),
        FINDING,
        Finding("r", "warn", "W"),
        Result(success=True),
        Result(success=False, data=[1], error="e"),
    ],
)
def test_a_noun_comes_back_from_its_json(value: Any) -> None:
    assert type(value).from_json(through_json(value.to_json())) == value


def test_a_verdict_comes_back_with_the_step_and_packs_that_stand_elsewhere() -> None:
    assert Verdict.from_json(through_json(FULL.to_json()), step=7, packs={"p": "sha256:0"}) == FULL
    assert Verdict.from_json(Verdict("allow").to_json()) == Verdict("allow")


def test_empty_parts_are_left_out() -> None:
    assert Verdict("allow", 2, {"a": 1}).to_json() == {"effect": "allow", "applied": 2, "reads": {"a": 1}}
    assert Result(success=True).to_json() == {"success": True}
    assert Finding("r", "deny", "e").to_json() == {"rule": "r", "effect": "deny", "error": "e"}
    line = ledgers.step(1)
    assert not {"state_diff", "state_unset", "problems"} & set(line)
    assert set(ledgers.closing(1)) == {"kind", "at", "status", "answer", "steps"}


def test_values_are_frozen() -> None:
    with pytest.raises(AttributeError):
        FULL.effect = "allow"  # type: ignore[misc]


@pytest.mark.parametrize(
    ("effect", "approval", "runs"),
    [
        ("allow", None, True),
        ("warn", None, True),
        ("require_approval", None, False),
        ("require_approval", 3, True),
        ("deny", None, False),
        ("deny", 3, False),
    ],
)
def test_what_runs_is_what_is_allowed_or_approved(effect: records.Effect, approval: int | None, runs: bool) -> None:
    assert Verdict(effect, approval=approval).runs is runs


def test_an_answer_lets_the_call_run_or_refuses_it() -> None:
    asked = Verdict("require_approval", reason="Over 500.")
    assert asked.answered(4, yes=True).runs
    refused = asked.answered(4, yes=False)
    assert (refused.effect, refused.reason, refused.approval) == ("deny", "Approval was refused. Over 500.", 4)
    assert Verdict("require_approval").answered(4, yes=False).reason == "Approval was refused."


def test_times_are_utc_with_milliseconds(monkeypatch: pytest.MonkeyPatch) -> None:
    moment = datetime(2026, 8, 1, 12, tzinfo=timezone(timedelta(hours=8)))
    monkeypatch.setattr(records.time, "time_ns", lambda: int(moment.timestamp()) * 10**9 + 5_600_000)
    assert records.timestamp() == "2026-08-01T04:00:00.005Z"
    monkeypatch.undo()
    assert abs(datetime.fromisoformat(records.timestamp()) - datetime.now(UTC)) < timedelta(seconds=5)


def test_what_an_approval_is_bound_to_changes_with_arguments_packs_and_reads() -> None:
    args, packs, reads = {"a": 1, "b": 2}, {"p": DIGEST}, {"state.facts.x": 1}
    bound = records.bound(args, packs, reads)
    assert bound == records.bound({"b": 2, "a": 1}, packs, reads)
    assert bound["args"] != records.bound({"a": 1.0, "b": 2}, packs, reads)["args"]
    assert bound["packs"] != records.bound(args, {"p": "sha256:1"}, reads)["packs"]
    assert bound["reads"] != records.bound(args, packs, {"state.facts.x": True})["reads"]


def test_a_file_stands_with_its_text_or_by_reference() -> None:
    entry = records.file_entry("pack", "p", "p.yaml", "北京\n")
    assert entry["digest"] == records.digest("北京\n".encode())
    assert entry["text"] == "北京\n"
    assert "text" not in records.file_entry("pack", "p", "p.yaml", "北京\n", reference=True)


# The contract

WHOLE = ledgers.opening(prev=None)["state"]
LINES: list[records.Line] = [
    ledgers.opening(prev=None),
    *ledgers.STORY,
    ledgers.denied(9, "waiting"),
    records.intent_line(step=1, at=ledgers.AT, now=ledgers.AT, action=Proposal("t", {}), verdict=FULL),
    records.step_line(
        step=1,
        at=ledgers.AT,
        now="2026-08-01T12:00:00.123456789+08:00",
        action=Proposal("user", {}),
        verdict=None,
        outcome="ok",
        result=Result(success=True),
        problems=["each: unknown"],
    ),
    records.approval_line(at=ledgers.AT, step=1, yes=True, by="lei", reason="fine", bound=records.bound({}, {}, {})),
    records.approval_line(at=ledgers.AT, step=1, yes=False, by="lei", reason=None, bound=records.bound({}, {}, {})),
    records.rollback_line(at=ledgers.AT, to=0, by="lei", reason="r", sets={"facts.x": 1}, unsets=["facts.y"]),
    records.rollback_line(at=ledgers.AT, to=0, by=None, reason=None, sets={}, unsets=[]),
    records.resume_line(
        at=ledgers.AT, files=[records.file_entry("pack", "p", "p.yaml", "")], sets={"constraints.max_steps": 9}
    ),
    records.checkpoint_line(at=ledgers.AT, step=1, state=WHOLE, origins=[], history=None),
    records.recovery_line(at=ledgers.AT, offset=10, size=3, moved_to="x.torn-10", torn=DIGEST),
    ledgers.closing(3, limit="max_steps", error="e", counterfactual_from=2) | {"lines": 9},
]


def whole(line: records.Line) -> dict[str, Any]:
    """The line as the ledger would number it."""
    lines = {"lines": 1} if line["kind"] == "close" else {}
    return through_json({"seq": 1, "prev": DIGEST} | lines | line)


@pytest.mark.parametrize("line", LINES, ids=lambda line: line["kind"])
def test_every_line_that_is_made_keeps_the_contract(line: records.Line) -> None:
    assert entries.problems(whole(line)) == []
    jsonschema.Draft202012Validator(entries.schema()).validate(whole(line))


@pytest.mark.parametrize("line", LINES, ids=lambda line: line["kind"])
def test_an_unknown_key_anywhere_is_an_error_with_its_path(line: records.Line) -> None:
    record = whole(line) | {"surprise": 1}
    assert entries.problems(record) == ["unknown key surprise"]
    assert not jsonschema.Draft202012Validator(entries.schema()).is_valid(record)


@pytest.mark.parametrize("line", LINES, ids=lambda line: line["kind"])
def test_a_missing_key_is_named(line: records.Line) -> None:
    optional = {
        "limit",
        "error",
        "counterfactual_from",
        "state_diff",
        "state_unset",
        "problems",
        "reason",
        "mode",
        "by",
    }
    record = whole(line)
    for key in record.keys() - optional - {"kind"}:
        shorter = {one: value for one, value in record.items() if one != key}
        assert entries.problems(shorter) == [f"{key} is missing"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            {"kind": "stop"},
            "kind is 'stop'; a line's kind is one of open, intent, step, approval, rollback, resume, recovery, checkpoint, summary, close",
        ),
        (
            {"kind": None},
            "kind is None; a line's kind is one of open, intent, step, approval, rollback, resume, recovery, checkpoint, summary, close",
        ),
        ({"seq": "1"}, "seq: input should be a valid integer"),
        ({"seq": True}, "seq: input should be a valid integer"),
        ({"seq": -1}, "seq: input should be greater than or equal to 0"),
        ({"step": 0}, "step: input should be greater than or equal to 1"),
        ({"at": "2026-13-01T00:00:00Z"}, "at: string should match pattern"),
        ({"prev": "sha256:77"}, "prev: string should match pattern"),
        ({"prev": None}, "prev: input should be a valid string"),
        ({"outcome": "fine"}, "outcome: input should be 'ok', 'error', 'denied', 'waiting', 'cancelled' or 'unknown'"),
        ({"action": {"tool": "t"}}, "action.args is missing"),
        (
            {"verdict": {"effect": "allow", "applied": 1, "reads": {}, "raeson": "x"}},
            "unknown key verdict.raeson; did you mean reason?",
        ),
        (
            {
                "verdict": {
                    "effect": "allow",
                    "applied": 1,
                    "reads": {},
                    "failed": [{"rule": "r", "effect": "deny", "eror": ""}],
                }
            },
            "verdict.failed[0].error is missing",
        ),
        ({"state_unset": {}}, "state_unset: input should be a valid list"),
    ],
)
def test_what_is_wrong_is_said_with_its_path(change: dict[str, Any], said: str) -> None:
    found = entries.problems(whole(ledgers.step(1)) | change)
    assert any(one.startswith(said) for one in found), found


def test_all_problems_of_a_line_are_reported() -> None:
    assert len(entries.problems(whole(ledgers.step(1)) | {"seq": -1, "step": 0, "x": 1})) == 3


def test_a_hostile_line_is_not_told_all_that_is_wrong_with_it() -> None:
    (said,) = entries.problems(whole(ledgers.step(1)) | {str(number): 0 for number in range(30_000)})
    assert said.startswith("the line has more than 20,000 parts outside of answer, args, ")
    many = {"failed": [{"a": 1}] * 20_000}
    assert len(entries.problems(whole(ledgers.step(1)) | {"verdict": many})) == 1
    assert entries.problems(whole(ledgers.step(1, **{str(number): {} for number in range(30_000)}))) == []
