"""Two ledgers: exactly what differs is found, and nothing else."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledgercli import records
from ledgercli.diff import layers
from ledgercli.diff import ledgers as diff
from ledgercli.diff.differing import Change, changes, set_of
from ledgercli.diff.layers import Counting
from ledgercli.diff.ledgers import Difference
from ledgercli.errors import LedgerCliError, LedgerFormatError, UnreadableInputError
from ledgercli.ledger import head
from ledgercli.paths import ABSENT
from ledgercli.records import Line, Verdict
from tests import stories
from tests.stories import LATER, call, opening, rollback, unique, write

READ = {"state.facts.x": 1}


def compared(folder: Path, a: list[Line], b: list[Line], counting: Counting | None = None, **more: Any) -> Difference:
    """Two ledgers of rows; the second was written later, by another run, and has `more` of its own."""
    one = write(folder / "a.ledger.jsonl", a)
    other = write(folder / "b.ledger.jsonl", b, at=LATER, **{"first": opening(run="01L"), **more})
    return diff.differences(one, other, counting or Counting())


def told(found: Difference) -> list[tuple[str, list[int], list[int]]]:
    """The stretches, by the numbers of their steps."""
    return [
        (one.sign, [found.a.numbers[i] for i in one.a], [found.b.numbers[j] for j in one.b]) for one in found.stretches
    ]


def details(found: Difference, number: int = 0) -> list[tuple[Any, ...]]:
    """What differs in a changed step."""
    changed = [one for one in found.stretches if one.sign == "~"]
    return [tuple(one) for one in diff.details(changed[number], *found.layers(changed[number]))]


# The steps


def test_times_ids_and_what_counts_steps_do_not_count(tmp_path: Path) -> None:
    a = [call("look", reads={"now": "t1", 'count_calls("look")': 0, "state.step": 0, **READ})]
    b = [call("look", reads={"now": "t2", 'count_calls("look")': 7, "state.step": 3, **READ})]
    b[0]["action"]["call_id"] = "c1"
    b[0]["verdict"]["applied"] = 9
    found = compared(tmp_path, a, b)
    assert found.first() is None
    assert not any(found.fails(on) for on in ("any", "worse", "verdicts", "state"))
    asked = diff.differences(found.a.path, found.b.path, Counting(times=True))
    assert {one.layer for one in diff.details(asked.stretches[0], *asked.layers(asked.stretches[0]))} == {
        "verdict",
        "result",
    }


def test_one_more_step_does_not_shift_the_rest(tmp_path: Path) -> None:
    rows = [unique(number) for number in range(6)]
    found = compared(tmp_path, rows, [*rows[:2], call("look"), *rows[2:]])
    assert told(found) == [("=", [1, 2], [1, 2]), ("+", [], [3]), ("=", [3, 4, 5, 6], [4, 5, 6, 7])]
    assert found.first() == diff.First("proposal", None, 2)


def test_that_a_denial_was_cleared_is_no_change_of_its_own(tmp_path: Path) -> None:
    rows = [unique(1), unique(2)]
    refused = call("pay", rule="no", sets={"error": "no says no."})
    cleared = call("look", sets={"error": None})
    found = compared(tmp_path, [*rows, call("look")], [*rows, refused, cleared])
    assert [sign for sign, _, _ in told(found)] == ["=", "+", "="]


@pytest.mark.parametrize(
    ("a", "b", "expected", "where"),
    [
        (call("pay", amount=1), call("pay", amount=2), ("proposal",), ["action.args.amount"]),
        (call("pay", amount=1), call("pay", amount=1.0), ("proposal",), ["action.args.amount"]),
        (call("pay", amount=0.0), call("pay", amount=-0.0), ("proposal",), ["action"]),
        (call("pay", {"n": 1}), call("pay", {"n": None}), ("result",), ["result.data.n"]),
        (call("pay", [1, 2]), call("pay", [1]), ("result",), ["result.data[1]"]),
        (call("pay", reads={"state.facts.x": 1}), call("pay", reads={}), ("verdict",), ["read state.facts.x"]),
        (
            call("pay", sets={"facts.x": {"y": 1}}),
            call("pay", sets={"facts.x": {"y": 2}}),
            ("state",),
            ["state.facts.x.y"],
        ),
        (call("pay", sets={"facts.x": 1}), call("pay"), ("state",), ["state.facts.x"]),
        (
            call("pay", rule="no", effect="warn"),
            call("pay"),
            ("verdict",),
            ["verdict.effect", "verdict.reason", "verdict.warned"],
        ),
        (
            call("pay", outcome="unknown"),
            call("pay", outcome="cancelled"),
            ("result",),
            ["result.outcome"],
        ),
    ],
)
def test_each_layer_is_told_apart(
    tmp_path: Path, a: Line, b: Line, expected: tuple[str, ...], where: list[str]
) -> None:
    found = compared(tmp_path, [unique(1), a, unique(2)], [unique(1), b, unique(2)])
    assert [sign for sign, _, _ in told(found)] == ["=", "~", "="]
    assert found.stretches[1].layers == expected
    assert [one[1].replace("outcome", "result.outcome") for one in details(found)] == where
    assert found.first() == diff.First(expected[0], 1, 1)


def test_sides_are_never_exchanged(tmp_path: Path) -> None:
    found = compared(tmp_path, [call("pay", amount=1, x=5)], [call("pay", amount=2, y=6)])
    assert details(found) == [
        ("proposal", "action.args.amount", 1, 2),
        ("proposal", "action.args.x", 5, ABSENT),
        ("proposal", "action.args.y", ABSENT, 6),
    ]


def test_the_most_alike_are_two_versions_of_one(tmp_path: Path) -> None:
    kept = call("pay", {"receipt": 1}, to="A", amount=5)
    edited = call("pay", {"receipt": 1}, to="A", amount=6)
    other = call("pay", {"receipt": 9}, to="B", amount=9)
    for number, b in enumerate([[other, edited], [edited, other]]):
        found = compared(tmp_path / str(number), [unique(1), kept, unique(2)], [unique(1), *b, unique(2)])
        [changed] = [one for one in told(found) if one[0] == "~"]
        assert changed == ("~", [2], [2 + b.index(edited)])


def test_another_tool_is_another_step(tmp_path: Path) -> None:
    found = compared(tmp_path, [call("pay")], [call("look")])
    assert told(found) == [("-", [1], []), ("+", [], [1])]


def test_a_write_without_outcome_is_a_step(tmp_path: Path) -> None:
    step = unique(1)
    made = {key: step[key] for key in ("step", "at", "now", "action", "verdict")}
    intent = {**made, "kind": "intent", "step": 2, "verdict": Verdict("allow").to_json()}
    one = write(tmp_path / "a", [unique(0), intent], status=None)
    found = diff.differences(one, write(tmp_path / "b", [unique(0)], status=None), Counting())
    assert told(found) == [("=", [1], [1]), ("-", [2], [])]


# Marks


def test_a_rollback_is_a_line_of_its_own(tmp_path: Path) -> None:
    rows = [call("look", sets={"facts.x": 1}), call("pay", sets={"facts.y": 1})]
    back = rollback(1, unsets=["facts.y"])
    found = compared(tmp_path, rows, [*rows, back])
    assert told(found) == [("=", [1, 2], [1, 2]), ("+", [], [0])]
    assert found.first() == diff.First("rollback", None, 2)
    assert found.counts().marks == {("rollback", "+"): 1}
    assert found.state == (Change(("facts", "y"), 1, ABSENT),)


def test_where_a_rollback_leads_counts_not_the_number_of_the_step(tmp_path: Path) -> None:
    rows = [call("look", sets={"facts.x": 1}), call("pay", sets={"facts.y": 1})]
    more = call("look", id=1)
    found = compared(tmp_path, [*rows, rollback(1, unsets=["facts.y"])], [more, *rows, rollback(2, unsets=["facts.y"])])
    assert [sign for sign, _, _ in told(found)] == ["+", "="]


def test_an_approval_counts_and_a_plain_resume_does_not(tmp_path: Path) -> None:
    waiting = call("pay", rule="ask", effect="require_approval")
    yes = records.approval_line(at=stories.AT, step=1, yes=True, by="lei", reason=None, bound=stories.BOUND)
    resume = records.resume_line(at=stories.AT)
    found = compared(tmp_path, [waiting, yes, unique(1)], [waiting, resume, {**yes, "answer": "no"}, unique(1)])
    assert [(one.sign, one.layers) for one in found.stretches] == [("=", ()), ("~", ("verdict",)), ("=", ())]
    assert found.first() == diff.First("approval", 1, 1)
    assert found.counts().marks == {("approval", "~"): 1}
    assert found.counts().judged == 0


def test_a_resume_with_something_new_counts(tmp_path: Path) -> None:
    resume = records.resume_line(at=stories.AT, sets={"constraints.max_steps": 9})
    found = compared(tmp_path, [unique(1)], [unique(1), resume])
    assert found.first() == diff.First("resume", None, 1)


def test_what_a_user_said_is_no_proposal(tmp_path: Path) -> None:
    def said(text: str) -> Line:
        return {**call("user", text), "verdict": None}

    found = compared(tmp_path, [said("yes"), call("pay")], [said("no"), call("pay"), said("thanks")])
    assert found.first() == diff.First("said", 0, 0)
    assert [one[1:] for one in details(found)] == [("result.data", "yes", "no")]
    assert found.counts() == diff.Counts(marks=Counter({("said", "~"): 1, ("said", "+"): 1}))


# The end, and what took part


def test_answer_status_and_last_state_are_compared(tmp_path: Path) -> None:
    rows = [unique(1)]
    found = compared(tmp_path, rows, rows, answer="No.", status="halted")
    assert found.first() == diff.First("answer")
    assert found.ends_differ == {"answer": True, "status": True}
    assert found.fails("worse")
    assert not found.fails("verdicts")
    other = diff.differences(found.b.path, found.a.path, Counting())
    assert other.fails("any")
    assert not other.fails("worse")
    unsealed = write(tmp_path / "c", rows, status=None)
    assert diff.differences(unsealed, unsealed, Counting()).first() is None
    assert diff.differences(found.a.path, unsealed, Counting()).statuses == ("completed", "unsealed")


def test_what_took_part_is_told_and_does_not_count(tmp_path: Path) -> None:
    pack = records.file_entry("pack", "support", "support.yaml", "pack: support # 2\n")
    loops = records.file_entry("pack", "loops", "l.yaml", "pack: loops\n")
    first = opening(files=[pack, loops], engine={"kind": "model", "model": "m"}, mode="shadow")
    found = compared(tmp_path, [unique(1)], [unique(1)], first=first)
    assert [(part.kind, part.name) for part in found.parts] == [
        ("pack", "loops"), ("pack", "support"), ("scenario", "refund"), ("toolset", "shop"), ("engine", ""),
        ("mode", ""),
    ]  # fmt: skip
    assert found.first() is None


def test_another_beginning_counts(tmp_path: Path) -> None:
    first = opening(state={**stories.STATE, "task": "Send it again."})
    found = compared(tmp_path, [unique(1)], [unique(1)], first=first)
    assert found.start == (Change(("task",), "Refund my order.", "Send it again."),)
    assert found.first() == diff.First("start")
    assert found.fails("state")


# A shared past


@pytest.mark.parametrize("exchanged", [False, True])
@pytest.mark.parametrize("steps", range(5))
def test_a_past_that_is_shared_is_the_same(tmp_path: Path, steps: int, exchanged: bool) -> None:
    rows = [call("look", {"n": number}, sets={f"facts.x{number}": number}, n=number) for number in range(4)]
    older = write(tmp_path / "a", rows)
    lines = older.read_bytes().splitlines(keepends=True)
    state = {**stories.STATE, "facts": {**stories.STATE["facts"], **{f"x{n}": n for n in range(steps)}}}
    origin = {"ledger": "a", "run": "01K", "step": steps, "digest": records.digest(lines[steps])}
    newer = write(tmp_path / "b", rows[steps:], first=opening(state=state, run="01L") | {"from": origin})
    found = diff.differences(*((newer, older) if exchanged else (older, newer)), Counting())
    assert found.shared
    assert (found.shared.newer, found.shared.steps, found.shared.places) == ("a" if exchanged else "b", steps, steps)
    assert found.first() is None
    assert found.counts() == diff.Counts()


def test_behind_a_shared_past_only_own_steps_are_compared(tmp_path: Path) -> None:
    rows = [unique(number) for number in range(1, 5)]
    older = write(tmp_path / "a", rows)
    digest = records.digest(older.read_bytes().splitlines(keepends=True)[2])
    state = {**stories.STATE, "facts": {**stories.STATE["facts"], "last": "#W2"}}
    origin = {"ledger": "a", "run": "01K", "step": 2, "digest": digest}
    newer = write(tmp_path / "b", [unique(3), unique(9)], first=opening(state=state) | {"from": origin})
    found = diff.differences(older, newer, Counting())
    assert told(found) == [("=", [3], [1]), ("-", [4], []), ("+", [], [2])]
    assert not found.start


def test_a_digest_that_is_nowhere_is_no_past(tmp_path: Path) -> None:
    older = write(tmp_path / "a", [unique(1)])
    origin = {"ledger": "x", "run": "0", "step": 1, "digest": "sha256:" + "0" * 64}
    newer = write(tmp_path / "b", [unique(1)], first=opening() | {"from": origin})
    assert diff.differences(older, newer, Counting()).shared is None


# What counts


IGNORED = [
    ("action.args.note", call("pay", note=1, to="A"), call("pay", note=2, to="A")),
    ("action.args", call("pay", note=1), call("pay", to="A")),
    ("result.data.at", call("pay", {"at": 1, "n": 1}), call("pay", {"at": 2, "n": 1})),
    ("result.data.at", call("pay", {"at": 1, "n": 1}), call("pay", {"n": 1})),
    ("result.data[1].at", call("pay", [0, {"at": 1}, 2]), call("pay", [0, {"at": 2}, 2])),
    ("result", call("pay", {"n": 1}), call("pay", error="no")),
    ("state.facts.x", call("pay", sets={"facts.x": 1}), call("pay", sets={"facts.x": 2})),
    ("state.facts.x", call("pay", sets={"facts.x.y": 1}), call("pay")),
    ("state.facts.x.y", call("pay", sets={"facts.x": {"y": 1, "z": 1}}), call("pay", sets={"facts.x": {"z": 1}})),
    ("state.facts.x", call("pay", reads={"state.facts.x.y": 1}), call("pay", reads={"state.facts.x.y": 2})),
    ("state.facts.x.y", call("pay", reads={"state.facts.x": {"y": 1}}), call("pay", reads={"state.facts.x": {"y": 2}})),
    ("state", call("pay", sets={"facts.x": 1}), call("pay")),
    ("verdict.reads", call("pay", reads={"state.facts.x": 1}), call("pay")),
    ('verdict.reads["state.facts.x"]', call("pay", reads={"state.facts.x": 1}), call("pay")),
    ("verdict", call("pay", rule="no", effect="warn"), call("pay")),
]


@pytest.mark.parametrize(("path", "a", "b"), IGNORED)
def test_what_is_ignored_does_not_count(tmp_path: Path, path: str, a: Line, b: Line) -> None:
    if a.get("state_diff", {}).keys() == {"facts.x.y"}:
        first = opening(state={**stories.STATE, "facts": {"x": {}}})
        one, other = write(tmp_path / "a", [a], first=first), write(tmp_path / "b", [b], first=first)
    else:
        one, other = write(tmp_path / "a", [a]), write(tmp_path / "b", [b])
    assert diff.differences(one, other, Counting()).first()
    assert diff.differences(one, other, Counting.of((path,))).first() is None


@pytest.mark.parametrize(("path", "a", "b"), IGNORED)
def test_what_is_beside_the_ignored_counts(path: str, a: Line, b: Line) -> None:
    root = path.partition(".")[0].partition("[")[0]
    counting = Counting.of((f"{root}.nothing",))
    assert layers.layers(a, counting) != layers.layers(b, counting)


@pytest.mark.parametrize("path", ["", "facts.x", "args", "action.", "result.data[*]", "at"])
def test_a_path_of_nothing_is_refused(path: str) -> None:
    with pytest.raises(LedgerCliError):
        Counting.of((path,))


def test_only_one_layer_may_count(tmp_path: Path) -> None:
    a = [unique(1), call("pay", {"n": 1}, amount=1), call("look", sets={"facts.x": 1})]
    b = [unique(1), call("pay", {"n": 2}, amount=1, reads=READ), call("look", sets={"facts.x": 1}), call("look", id=3)]
    one, other = write(tmp_path / "a", a), write(tmp_path / "b", b, status="failed")
    firsts = {
        only: diff.differences(one, other, Counting(only=only)).first()
        for only in ("proposal", "verdict", "result", "state")
    }
    assert firsts == {
        "proposal": diff.First("proposal", None, 3),
        "verdict": diff.First("verdict", 1, 1),
        "result": diff.First("result", 1, 1),
        "state": None,
    }


def test_fail_on_verdicts_means_effect_and_rules(tmp_path: Path) -> None:
    a, b, c = call("pay", reads=READ), call("pay", reads={"state.facts.x": 2}), call("pay", rule="no", effect="warn")
    assert not compared(tmp_path / "1", [a], [b]).fails("verdicts")
    found = compared(tmp_path / "2", [a], [c])
    assert found.fails("verdicts")
    assert found.counts().judged == 1


def test_masks_of_two_runs_are_the_same(tmp_path: Path) -> None:
    def masked(digit: str) -> Line:
        mask = {"redacted": f"hmac-sha256:{digit * 64}"}
        quoted = f"not [redacted {digit * 12}]"
        return call("login", {"said": quoted}, code=mask, sets={"facts.code": mask}, reads={"state.facts.code": mask})

    found = compared(tmp_path, [masked("1")], [masked("2")])
    assert found.first() is None
    assert not found.state
    more = compared(tmp_path / "x", [masked("1")], [{**masked("2"), "outcome": "unknown", "result": None}])
    assert [one[1] for one in details(more)] == ["outcome", "result"]


# Properties


ROWS = st.lists(st.tuples(st.sampled_from(["pay", "look"]), st.integers(0, 3), st.integers(0, 2)), max_size=12)


def of(rows: list[tuple[str, int, int]]) -> list[Line]:
    return [call(tool, {"n": n}, x=x, sets={"facts.x": n}) for tool, x, n in rows]


@settings(max_examples=60, deadline=None)
@given(ROWS, ROWS)
def test_a_ledger_is_itself_and_sides_can_be_exchanged(a: list[Any], b: list[Any]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        found = compared(Path(folder), of(a), of(b))
        one, other = found.a.path, found.b.path
        assert diff.differences(one, one, Counting()).first() is None
        exchanged = diff.differences(other, one, Counting())
        counts, back = found.counts(), exchanged.counts()
        assert (counts.changed, counts.judged, counts.only_a) == (back.changed, back.judged, back.only_b)
        assert counts.only_b == back.only_a
        assert {(left, right) for sign, left, right in map(_hashable, told(found)) if sign == "~"} == {
            (left, right) for sign, right, left in map(_hashable, told(exchanged)) if sign == "~"
        }
        assert (found.first() is None) == (of(a) == of(b))


def _hashable(one: tuple[str, list[int], list[int]]) -> tuple[str, tuple[int, ...], tuple[int, ...]]:
    return one[0], tuple(one[1]), tuple(one[2])


@settings(max_examples=60, deadline=None)
@given(ROWS, ROWS)
def test_stretches_are_all_steps_in_order(a: list[Any], b: list[Any]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        found = compared(Path(folder), of(a), of(b))
        assert [i for one in found.stretches for i in one.a] == list(range(len(a)))
        assert [j for one in found.stretches for j in one.b] == list(range(len(b)))
        for one in found.stretches:
            for i, j in zip(one.a, one.b, strict=False):
                same = of(a)[i] == of(b)[j]
                assert one.sign == ("=" if same else "~")
                assert same or a[i][0] == b[j][0]


@st.composite
def edits(draw: st.DrawFn) -> Iterator[Any]:
    """Unique steps, and some of them edited, removed or followed by a new one, never two side by side."""
    size = draw(st.integers(1, 60))
    places = draw(st.lists(st.integers(0, size // 2), unique=True, max_size=10))
    return size, {
        2 * place: draw(st.sampled_from(["edit", "insert", "remove"])) for place in places if 2 * place < size
    }


@settings(max_examples=60, deadline=None)
@given(edits())
def test_edits_of_unique_steps_are_found_exactly(drawn: Any) -> None:
    size, done = drawn
    a = [unique(number) for number in range(size)]
    b, expected = edited(a, done)
    with tempfile.TemporaryDirectory() as folder:
        found = compared(Path(folder), a, b)
        assert [one for one in told(found) if one[0] != "="] == expected


def edited(a: list[Line], done: dict[int, str]) -> tuple[list[Line], list[tuple[str, list[int], list[int]]]]:
    """The other ledger, and what must be found."""
    b, expected = [], []
    for place, row in enumerate(a):
        match done.get(place):
            case "edit":
                b.append(unique(place, amount=-1))
                expected.append(("~", [place + 1], [len(b)]))
            case "remove":
                expected.append(("-", [place + 1], []))
            case "insert":
                b += [call("new", n=place), row]
                expected.append(("+", [], [len(b) - 1]))
            case None:
                b.append(row)
    return b, expected


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.floats(-2, 2) | st.text("ab\n_'\"[]", max_size=4),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("ab_.'\"[]0", max_size=4), inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=300, deadline=None)
@given(JSON, JSON)
def test_what_differs_in_two_values_is_all_that_differs(a: Any, b: Any) -> None:
    same = orjson.dumps(a, option=orjson.OPT_SORT_KEYS) == orjson.dumps(b, option=orjson.OPT_SORT_KEYS)
    assert (changes(a, b) == []) == same
    assert changes(a, a) == []
    assert [(path, two, one) for path, one, two in changes(a, b) if not any(isinstance(key, int) for key in path)] == [
        tuple(one) for one in changes(b, a) if not any(isinstance(key, int) for key in one.path)
    ]


def test_long_lists_and_texts_are_compared_as_a_whole() -> None:
    a, b = {"n": 1, "l": [1, 2] * 50_000}, {"n": 2, "l": [2, 1] * 50_000}
    assert [one.path for one in changes(a, b)] == [("l",), ("n",)]
    a, b = {"t": "a\nb\n" * 50_000, "n": {"m": 1}}, {"t": "b\na\n" * 50_000, "n": {}}
    assert [one.path for one in changes(a, b)] == [("n", "m"), ("t",)]
    assert set_of([1], [2]) == [Change((), [1], [2])]


# What cannot be compared


def test_a_damaged_ledger_is_an_error(tmp_path: Path) -> None:
    one = write(tmp_path / "a", [unique(1), unique(2)])
    damaged = tmp_path / "b"
    damaged.write_bytes(one.read_bytes().replace(b"#W1", b"#W9"))
    with pytest.raises(LedgerFormatError):
        diff.differences(one, damaged, Counting())
    with pytest.raises(UnreadableInputError):
        diff.differences(one, tmp_path / "nowhere", Counting())


def test_a_ledger_that_changes_meanwhile_is_an_error(tmp_path: Path) -> None:
    found = compared(tmp_path, [call("pay", n=1)], [call("pay", n=2)])
    found.b.path.write_bytes(b"x" * 100)
    with pytest.raises(LedgerCliError, match="was changed while it was compared"):
        found.layers(found.stretches[0])


def test_a_ledger_that_is_being_written_is_read_up_to_its_last_whole_line(tmp_path: Path) -> None:
    one = write(tmp_path / "a", [unique(1)], status=None)
    whole = head(one)
    torn = tmp_path / "b"
    torn.write_bytes(one.read_bytes() + b'{"kind":"st')
    assert diff.differences(one, torn, Counting()).first() is None
    assert head(one) == whole
