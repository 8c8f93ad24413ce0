"""The state at a step, and how a part of it changed: held to the diffs, applied by hand."""

from __future__ import annotations

import io
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from ledgercli import past, paths, records
from ledgercli.errors import LedgerCliError, LedgerFormatError
from ledgercli.ledger import Ledger
from ledgercli.paths import ABSENT
from ledgercli.reports import tracing as reports
from ledgercli.reports.screen import Screen
from ledgercli.rulebook import Rulebook
from ledgercli.shelf import Shelf
from ledgercli.tracing import Trace, path_text, state_at, state_path, trace
from tests import books, ledgers

SMALL = {"max_examples": 60, "deadline": None}


def by_hand(file: Path) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Each line with the state after it."""
    tree: Any = {}
    for line in books.lines_of(file):
        if line["kind"] == "open":
            tree = {**line["state"], "step": 0}
        tree = paths.patch(tree, line.get("state_diff", {}), line.get("state_unset", []))
        yield line, books.plain(tree)


def plain(value: Any) -> Any:
    return value if value is ABSENT else books.plain(value)


def every_path(tree: Any, at: paths.Path = ()) -> Iterator[paths.Path]:
    items = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in items:
        yield (*at, key)
        yield from every_path(value, (*at, key))


def replayed(told: Trace) -> Any:
    """What the changes make of the start."""
    value = told.start
    for change in told.changes:
        assert paths.same(
            change.old, paths.get({"v": value} if value is not ABSENT else {}, ("v", *inside(told, change.path)))
        )
        if change.path == told.path:
            value = change.new
        elif change.new is ABSENT:
            value = paths.drop({"v": value}, ("v", *inside(told, change.path)))["v"]
        else:
            value = paths.put({"v": value}, ("v", *inside(told, change.path)), change.new)["v"]
    return value


def inside(told: Trace, path: paths.Path) -> paths.Path:
    assert path[: len(told.path)] == told.path
    return path[len(told.path) :]


def hold(file: Path) -> None:
    """Everything that can be asked about a ledger agrees with its diffs."""
    ledger, wanted = str(file), {}
    states = list(by_hand(file))
    for line, tree in states:
        if line["kind"] in ("open", "step"):
            step = line.get("step", 0)
            wanted[step] = {**tree, "step": step}
            assert books.plain(state_at(ledger, step).value) == wanted[step]
    final = states[-1][1]
    known = {path for _, tree in states for path in every_path(tree) if path[0] != "step"}
    for path in sorted(known, key=path_text)[:40]:
        told = trace(ledger, path_text(path))
        assert paths.same(plain(told.value), paths.get(final, path))
        assert paths.same(replayed(told), told.value)
        for step, tree in wanted.items():
            assert paths.same(plain(state_at(ledger, step, path_text(path)).value), paths.get(tree, path))


# Random runs


CALLS = st.one_of(
    st.tuples(st.just("login"), st.fixed_dictionaries({"user": st.sampled_from(["lei", "北京"])})),
    st.tuples(st.just("look"), st.fixed_dictionaries({"id": st.sampled_from(["#W1", "#W1.2", "b"])})),
    st.tuples(st.just("pay"), st.fixed_dictionaries({"amount": st.integers(0, 3)})),
    st.tuples(st.just("steal"), st.just({})),
)
RESULTS = st.one_of(
    st.fixed_dictionaries({"vip": st.booleans(), "items": st.lists(st.integers(0, 2), max_size=2)}),
    st.fixed_dictionaries({"vip": st.none(), "status": st.sampled_from(["new", "paid"])}),
    st.just({"success": False, "error": "no"}),
)


@pytest.fixture(scope="module")
def rules(tmp_path_factory: pytest.TempPathFactory) -> Rulebook:
    return books.book(tmp_path_factory.mktemp("rules"))


@settings(**SMALL)
@given(run=st.lists(st.tuples(CALLS, RESULTS), min_size=1, max_size=6), back=st.integers(0, 6))
def test_the_books_of_a_guard_and_a_rollback(rules: Rulebook, run: list[Any], back: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "w.ledger.jsonl"
        guard = books.guard(rules, file)
        for (tool, args), result in run:
            verdict = guard.check(tool, args)
            if verdict.runs:
                guard.record(verdict, result)
        guard.close()
        to = back % (len(run) + 1)
        now, then = past.after(file, Shelf()), past.after(file, Shelf(), to).state
        with Ledger.open(file, sync="none") as ledger:
            ledger.append(now.rolled_back(to, then, by="lei", reason="wrong", at=ledgers.AT).line)
        hold(file)
        final = list(by_hand(file))[-1][1]
        assert {**final, "step": to} == books.plain(state_at(str(file), to).value)


KEYS = st.sampled_from(["a", "b", "#W1.2", "in", "北京"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(0, 2) | st.sampled_from(["x", "\x1b[31m"]) | st.just(1.0),
    lambda below: st.lists(below, max_size=2) | st.dictionaries(KEYS, below, max_size=3),
    max_leaves=6,
)
FACTS = st.dictionaries(KEYS, VALUES, max_size=3)


def written(file: Path, first: dict[str, Any], turns: list[Any]) -> Path:
    """A ledger in which the facts become one after the other; a number is a rollback, text a resumption."""
    states = [{**ledgers.STATE, "facts": first}]
    now = states[0]
    lines: list[records.Line] = []
    for turn in turns:
        before = now
        if isinstance(turn, dict):
            now = {**now, "facts": turn}
            states.append(now)
            sets, unsets = paths.diff(before, now)
            lines.append(ledgers.step(len(states) - 1, sets=sets, unsets=tuple(unsets)))
        elif isinstance(turn, int):
            to = turn % len(states)
            now = states[to]
            sets, unsets = paths.diff(before, now)
            lines.append(records.rollback_line(at=ledgers.AT, to=to, by=None, reason=None, sets=sets, unsets=unsets))
        else:
            now = paths.put(now, ("constraints", "max_steps"), len(turn))
            lines.append(records.resume_line(at=ledgers.AT, sets={"constraints.max_steps": len(turn)}))
    return ledgers.write(file, *lines, first=ledgers.opening(state=states[0]))


@settings(**SMALL)
@given(FACTS, st.lists(st.one_of(FACTS, st.integers(0, 9), st.text("x", max_size=3)), max_size=7))
def test_any_facts_with_rollbacks_and_resumptions_between(first: dict[str, Any], turns: list[Any]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        hold(written(Path(folder) / "w.ledger.jsonl", first, turns))


@settings(**SMALL)
@given(FACTS, st.lists(st.one_of(FACTS, st.integers(0, 9)), min_size=1, max_size=5))
def test_every_line_that_is_shown_is_inert_and_80_cells_or_a_path(first: dict[str, Any], turns: list[Any]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = str(written(Path(folder) / "w.ledger.jsonl", first, turns))
        screen = Screen(stream := io.StringIO(), encoding="utf-8", colour=False)
        reports.write_state(screen, state_at(file, 0))
        reports.write_trace(screen, trace(file, "facts"))
    for line in stream.getvalue().splitlines():
        assert "\x1b" not in line
        assert cell_len(line) <= 80


# What is said


@pytest.fixture
def story(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    return str(ledgers.write(Path("w.ledger.jsonl"), *ledgers.STORY))


def test_a_trace_names_the_step_and_the_call(story: str) -> None:
    told = trace(story, """state.facts.orders['#W1.2'].status""")
    assert told.start is told.value is ABSENT
    assert [(c.kind, c.step, c.line["action"]["tool"], c.old, c.new) for c in told.changes] == [
        ("step", 1, "look", ABSENT, "new"),
        ("step", 2, "pay", "new", "paid"),
        ("step", 5, "look", "paid", ABSENT),
    ]
    parts = trace(story, "facts.orders").changes
    assert [path_text(c.path) for c in parts] == [
        'state.facts.orders["#W1.2"]',
        'state.facts.orders["#W1.2"].status',
        'state.facts.orders["#W1.2"]',
    ]


def test_what_is_set_to_what_it_was_is_no_change(tmp_path: Path) -> None:
    lines = (
        ledgers.step(1, sets={"facts.x": 1}),
        ledgers.step(2, sets={"facts.x": 1}),
        ledgers.step(3, sets={"facts.x": True}),
    )
    told = trace(str(ledgers.write(tmp_path / "w", *lines)), "facts.x")
    assert [change.new for change in told.changes] == [1, True]


def test_an_element_of_a_list_is_followed_though_lists_are_replaced_whole(tmp_path: Path) -> None:
    lines = (ledgers.step(1, sets={"facts.x": [1, 2]}), ledgers.step(2, sets={"facts.x": [1]}))
    told = trace(str(ledgers.write(tmp_path / "w", *lines)), "facts.x[1]")
    assert [(change.old, change.new) for change in told.changes] == [(ABSENT, 2), (2, ABSENT)]


def test_a_value_that_is_not_there_now_is_an_answer_and_one_that_never_is_an_error(story: str) -> None:
    assert state_at(story, 3, "facts.x").value is ABSENT
    assert state_at(story, 4, "facts.x").value == [1, 2]
    with pytest.raises(
        LedgerCliError, match=r"w.ledger.jsonl has no state.facts.ordrs, at any step; there is state.facts.orders"
    ):
        state_at(story, 3, "state.facts.ordrs.a")
    with pytest.raises(
        LedgerCliError, match=r'no state.facts.orders\["#W1"\], at any step; there is state.facts.orders\["#W1.2"\]'
    ):
        trace(story, 'facts.orders["#W1"]')


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("fcts.x", "no part fcts of the state; there is state.facts"),
        ("state.zzz", "no part zzz of the state; there is task, facts, constraints"),
        ("facts.x + 1", "facts.x + 1 is no path"),
        ("facts[state.task]", "is no path"),
        ("'facts'", "is no path"),
        ("", "is no path"),
        ("facts.", "is no path"),
        ("facts[true]", "is no path"),
    ],
)
def test_a_text_that_is_no_path_is_refused(text: str, said: str) -> None:
    with pytest.raises(LedgerCliError) as refused:
        state_path(text)
    assert said in refused.value.message


def test_paths_are_read_as_rules_write_them() -> None:
    wanted = ("facts", "orders", "#W1", "items", 0)
    assert (
        state_path("""facts.orders["#W1"].items[0]""") == state_path("""state.facts.orders['#W1'].items[0]""") == wanted
    )
    assert state_path("state") == ()
    assert path_text(()) == "state"


def test_a_step_that_is_not_there_is_said(story: str) -> None:
    with pytest.raises(LedgerCliError, match=r"w.ledger.jsonl has 6 steps, 1 to 6"):
        state_at(story, 7)
    begun = str(ledgers.write(Path("i.ledger.jsonl"), ledgers.step(1), ledgers.intent(2)))
    with pytest.raises(LedgerCliError, match=r"i.ledger.jsonl@2 has no outcome yet"):
        state_at(begun, 2)


def test_the_state_before_damage_can_be_asked_for_but_no_trace(story: str) -> None:
    with Path(story).open("r+b") as file:
        data = file.read().replace(b'"lines":', b'"lanes":')
        file.seek(0)
        file.write(data)
    assert state_at(story, 6).value["status"] == "completed"
    with pytest.raises(LedgerFormatError):
        trace(story, "status")


@pytest.mark.parametrize("of", ["state", "step", "state.step"])
def test_what_changes_with_every_step_is_not_traced(story: str, of: str) -> None:
    with pytest.raises(LedgerCliError, match="is not traced"):
        trace(story, of)


# Reports


def test_the_json_of_a_state(story: str) -> None:
    whole = reports.state_json(state_at(story, 2))
    assert (whole["schema"], whole["ledger"], whole["step"]) == ("state/1", story, 2)
    assert books.plain(whole["state"]["facts"]) == {"orders": {"#W1.2": {"status": "paid"}}}
    part = reports.state_json(state_at(story, 4, "facts.x"))
    assert part == {"schema": "state/1", "ledger": story, "step": 4, "path": "state.facts.x", "value": [1, 2]}
    assert "value" not in reports.state_json(state_at(story, 1, "facts.x"))


def test_the_json_of_a_trace(tmp_path: Path) -> None:
    back = records.rollback_line(at=ledgers.AT, to=0, by="lei", reason="wrong", sets={}, unsets=["facts.x"])
    file = str(ledgers.write(tmp_path / "w", ledgers.step(1, sets={"facts.x": 1}, to="b"), back))
    assert reports.trace_json(trace(file, "facts.x")) == {
        "schema": "trace/1",
        "ledger": file,
        "path": "state.facts.x",
        "changes": [
            {
                "kind": "step", "step": 1, "path": "state.facts.x", "new": 1,
                "action": {"tool": "pay", "args": {"to": "b"}}, "outcome": "ok",
            },
            {"kind": "rollback", "step": 1, "path": "state.facts.x", "old": 1, "to": 0, "by": "lei", "reason": "wrong"},
        ],
    }  # fmt: skip


def test_a_long_path_puts_its_value_on_a_line_of_its_own(tmp_path: Path) -> None:
    name = "x" * 80
    file = str(ledgers.write(tmp_path / "w", ledgers.step(1, sets={f"facts.{name}": "y" * 90})))
    screen = Screen(stream := io.StringIO(), encoding="utf-8", colour=False)
    reports.write_trace(screen, trace(file, f"facts.{name}"))
    assert f'@1   set    state.facts.{name} =\n{" " * 14}"{"y" * 62}...\n' in stream.getvalue()
