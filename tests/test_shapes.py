"""The quick check of a line accepts exactly what the contract accepts."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from ledgercli.ledger import entries, read, shapes
from ledgercli.records import Finding, Verdict
from tests import ledgers

FINDING = Finding("p/r", "deny", "No.", hint="Ask.", halt=True, missing=("state.facts.x",))
VERDICT = Verdict(
    "deny", 4, {"state.facts.x": [1, {"y": None}]}, failed=(FINDING,), warned=(FINDING,), overridden=(FINDING,),
    shadowed=(FINDING,), reason="No.", hint="Ask.", missing=("a",), establish=("t",), halts=True, approval=3,
)  # fmt: skip
WHOLE = [
    {"seq": 1, "prev": ledgers.DIGEST, **({"lines": 1} if line["kind"] == "close" else {}), **line}
    for line in (
        *ledgers.LIFE[1:],
        *ledgers.STORY,
        ledgers.denied(9) | {"verdict": VERDICT.to_json(), "problems": ["each: unknown"]},
        ledgers.step(1) | {"verdict": None, "result": {"success": False, "data": [1.5], "error": {"x": 1}}},
        ledgers.opening(**ledgers.FORKED, prev=None),
        ledgers.opening(prev=None, engine={"kind": "model", "model": "m"}),
        ledgers.resume(),
        ledgers.resume() | {"engine": {"kind": "model", "model": "m"}},
        ledgers.step(1) | {"engine": ledgers.ASKED},
        ledgers.intent(1) | {"engine": ledgers.ASKED | {"cost": None, "seconds": 1}},
        ledgers.summary(1, 1, text=None),
        ledgers.closing(1, limit="max_cost", engine=ledgers.ASKED),
        ledgers.checkpoint(0) | {"history": {"calls": 3}},
    )
]
LINES: list[dict[str, Any]] = [orjson.loads(orjson.dumps(line)) for line in WHOLE]

#: What may be written where something else belongs.
ODD: list[Any] = [
    None, True, False, 0, 1, -1, 2**63 - 1, 0.0, 1.0, 1.5, "", "x", "1", "yes", "open", "step", "deny", "halted", "running",
    "ledger/1", [], ["x"], [1], [{}], {}, {"x": True}, {"x": 1}, {"kind": "script"}, ledgers.DIGEST, ledgers.DIGEST.upper(),
    ledgers.DIGEST + "\n", ledgers.DIGEST[:-1], "2026-08-01T12:00:00Z", "2026-08-01T24:00:00Z", "2026-08-01T12:00:00z",
    "2026-08-01T12:00:00.1234567890Z", "2026-08-01T12:00:00.123456789+23:59", "2026-08-01T12:00:00Z\n", "２０２６-08-01T12:00:00Z",
    "2026-08-01 12:00:00Z", "2026-08-32T12:00:00Z", {"success": True}, {"tool": "t", "args": {}}, {"effect": "allow", "applied": 0, "reads": {}},
]  # fmt: skip


def keeps_the_contract(record: dict[str, Any]) -> bool:
    try:
        entries._adapter().validate_python(record)
    except ValidationError:
        return False
    return True


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Each map or list of a record with each of its keys."""
    for key, item in list(value.items() if isinstance(value, dict) else enumerate(value)):
        yield value, key
        if isinstance(item, (dict, list)):
            yield from places(item)


@pytest.mark.parametrize("line", LINES, ids=lambda line: line["kind"])
def test_every_line_that_is_made_is_accepted_by_both(line: dict[str, Any]) -> None:
    assert keeps_the_contract(line)
    assert shapes.fits(line)


def test_both_know_the_same_kinds() -> None:
    assert tuple(shapes.SHAPES) == entries.KINDS
    assert {line["kind"] for line in LINES} == set(entries.KINDS)


@pytest.mark.parametrize("line", LINES, ids=lambda line: line["kind"])
def test_every_single_change_is_accepted_by_both_or_by_neither(line: dict[str, Any]) -> None:
    """Each value replaced by each odd one, each key removed, a key added beside each."""
    record = copy.deepcopy(line)
    refused = 0
    for within, key in places(record):
        before = copy.copy(within)
        changes: list[dict[str, Any]] = [{key: odd} for odd in ODD]
        if isinstance(within, dict):
            changes += [{"surprise": 1}, {"from_": None}, {"schema_": "ledger/1"}]
        for change in changes:
            for at, value in change.items():
                within[at] = value
            assert shapes.fits(record) == keeps_the_contract(record), (key, change)
            refused += not shapes.fits(record)
            within.clear()
            within.update(before) if isinstance(within, dict) else within.extend(before)
        del within[key]
        assert shapes.fits(record) == keeps_the_contract(record), key
        within.clear()
        within.update(before) if isinstance(within, dict) else within.extend(before)
    assert record == line
    assert refused > len(record) * len(ODD) // 2


@given(st.data())
def test_several_changes_are_accepted_by_both_or_by_neither(data: st.DataObject) -> None:
    record = copy.deepcopy(data.draw(st.sampled_from(LINES)))
    for _ in range(data.draw(st.integers(1, 3))):
        within, key = data.draw(st.sampled_from(list(places(record)) or [(record, "kind")]))
        if data.draw(st.booleans()):
            within[key] = copy.deepcopy(data.draw(st.sampled_from(ODD)))
        elif isinstance(within, dict):
            del within[key]
    assert shapes.fits(record) == keeps_the_contract(record)


@pytest.mark.parametrize("record", [{}, {"kind": None}, {"kind": []}, {"kind": "stop"}, {"kind": "steps", "seq": 1}])
def test_what_is_of_no_kind_is_accepted_by_neither(record: dict[str, Any]) -> None:
    assert not shapes.fits(record)
    assert not keeps_the_contract(record)


def test_a_line_of_very_many_parts_is_a_line(tmp_path: Path) -> None:
    """Only of a line that is wrong, the number of parts is looked at."""
    origins = [{"path": f"facts.x{number}", "tool": "task", "args": {}, "step": 0} for number in range(10_000)]
    line = next(line for line in LINES if line["kind"] == "checkpoint") | {"origins": origins}
    assert entries.problems(line) == []
    (said,) = entries.problems(line | {"surprise": 1})
    assert said.startswith("the line has more than 20,000 parts outside of")


def test_what_is_written_is_accepted_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No line of a good ledger is asked about a second time."""
    from ledgercli.ledger.verify import verify

    path = ledgers.live(tmp_path / "a")
    assert all(shapes.fits(entry.record) for entry in read(path))
    monkeypatch.setattr(entries, "problems", lambda _: ["asked"])
    assert verify(path).problems == ()
