"""The state: frozen versions, goals, origins, and diffs that rebuild every one of them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledgercli import paths
from ledgercli.ledger.verify import verify
from ledgercli.paths import PathError
from ledgercli.records import Result
from ledgercli.state import FROM_TASK, Goal, Origin, State, View, close_goals, current_goal, initial, reopened
from tests.books import book, books_of, guard, lines_of, plain, replayed

BY_LOGIN = Origin("login", {"user": "mia"}, 1)


# ---- one version after another


def test_the_first_state_runs_and_knows_what_it_was_given() -> None:
    state = initial(task="Beijing", facts={"user": "mia"}, constraints={"max_steps": 5}, flags={"ready": True})
    assert state.opening() == {
        "task": "Beijing",
        "facts": {"user": "mia"},
        "constraints": {"max_steps": 5},
        "flags": {"ready": True},
        "goals": {},
        "goal": "",
        "status": "running",
        "error": None,
        "final_answer": None,
    }
    assert (state.status, state.step, state.facts["user"]) == ("running", 0, "mia")


def test_a_change_makes_a_new_state_and_leaves_the_old_one() -> None:
    first = initial(facts={"orders": {"#W1": {"status": "new"}}, "user": {"name": "mia"}})
    second = first.after({'facts.orders["#W1"].status': "paid"}, ["facts.user"], step=1, origin=BY_LOGIN)
    assert first.tree["facts"] == {"orders": {"#W1": {"status": "new"}}, "user": {"name": "mia"}}
    assert second.tree["facts"] == {"orders": {"#W1": {"status": "paid"}}}
    assert (first.step, second.step) == (0, 1)


def test_a_change_copies_only_along_its_path() -> None:
    first = initial(facts={"one": {"a": 1}, "two": {"b": 2}})
    second = first.after({"facts.one.a": 9})
    assert second.tree["facts"]["two"] is first.tree["facts"]["two"]
    assert second.tree["constraints"] is first.tree["constraints"]


def test_a_diff_that_does_not_fit_is_refused() -> None:
    with pytest.raises(PathError, match=r"facts\.b cannot be removed"):
        initial(facts={"a": 1}).after({}, ["facts.b"])


def test_facts_are_handed_out_read_only_down_to_the_last_leaf() -> None:
    facts: Any = initial(facts={"orders": {"W1": {"items": [{"n": 1}]}}}).facts
    assert facts["orders"]["W1"]["items"] == (View({"n": 1}),)
    for part in (facts, facts["orders"], facts["orders"]["W1"], facts["orders"]["W1"]["items"][0]):
        with pytest.raises(TypeError):
            part["n"] = 2
    with pytest.raises(TypeError):
        facts["orders"]["W1"]["items"][0] = 2
    assert (len(facts), repr(facts["orders"]["W1"]["items"][0])) == (1, "{'n': 1}")


def test_a_state_has_no_attribute_that_can_be_set() -> None:
    with pytest.raises(AttributeError):
        initial().tree = {}  # type: ignore[misc]


# ---- who established what


def test_initial_facts_come_from_the_task_and_so_do_their_parts() -> None:
    state = initial(facts={"user": {"name": "mia"}})
    assert state.origin(("facts", "user")) == FROM_TASK
    assert state.origin(("facts", "user", "name")) == FROM_TASK
    assert state.origin(("facts", "other")) is None


def test_a_value_comes_from_the_latest_who_set_it_or_what_holds_it() -> None:
    state = initial(facts={"user": {"name": "mia"}})
    state = state.after({"facts.user.name": "lei"}, step=1, origin=BY_LOGIN)
    assert state.origin(("facts", "user", "name")) == BY_LOGIN
    assert state.origin(("facts", "user")) == FROM_TASK
    again = state.after({"facts.user": {"name": "bo"}}, step=2, origin=Origin("look", {}, 2))
    found = again.origin(("facts", "user", "name"))
    assert found is not None
    assert found.tool == "look"


def test_a_state_that_a_ledger_opened_with_comes_back() -> None:
    first = initial(task="t", facts={"a": 1}, goals=(Goal("g"),))
    assert reopened(plain(first.opening())) == first


# ---- goals

TREE = (Goal("buy", (Goal("find"), Goal("pay", (Goal("card"), Goal("code"))))), Goal("tell"))


@pytest.mark.parametrize(
    ("closed", "current"),
    [
        ((), "find"),
        (("find",), "card"),
        (("find", "card"), "code"),
        (("card", "code"), "find"),
        (("buy",), "tell"),
        (("find", "card", "code", "pay"), "tell"),
        (("buy", "tell"), ""),
    ],
)
def test_the_goal_is_the_first_open_leaf(closed: tuple[str, ...], current: str) -> None:
    done = close_goals(TREE, dict.fromkeys(closed, True))
    assert current_goal(TREE, done) == current


def test_a_parent_closes_with_its_children_and_they_with_it() -> None:
    names = [goal.name for top in TREE for goal in top.walk()]
    assert names == ["buy", "find", "pay", "card", "code", "tell"]
    opened = dict.fromkeys(names, False)
    up = close_goals(TREE, opened | {"find": True, "card": True, "code": True})
    assert up == dict.fromkeys(names, True) | {"tell": False}
    down = close_goals(TREE, opened | {"pay": True})
    assert {name for name, done in down.items() if done} == {"pay", "card", "code"}


def test_a_child_settles_also_after_an_open_one() -> None:
    goals = (Goal("all", (Goal("first"), Goal("second", (Goal("deep"),)))),)
    assert close_goals(goals, {"deep": True}) == {"deep": True, "second": True, "all": False}


# ---- property: the diffs of a real ledger rebuild the state, by plain ==

KEYS = st.sampled_from(
    ["", ".", '"', "'", "[0]", "a.b", "#W1.2", "in", "true", "x", "y", "北京", "\\", "\n", "{}", "é"]
)
LEAVES = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from(["", "a", "北京", '"', "1"]),
)  # fmt: skip
TREES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3), max_leaves=12
)
MAPS = st.dictionaries(KEYS, st.dictionaries(KEYS, st.dictionaries(KEYS, TREES, max_size=2), max_size=2), max_size=2)

CHANGES = """
    toolset: changes
    tools:
      put:
        args: {k: {type: string}, l: {type: string}, m: {type: string}}
        on_success:
          - set:
              facts.rec[action.args.k]: result.data
          - set:
              facts.deep[action.args.k][action.args.l][action.args.m]: result.data
      within:
        args: {k: {type: string}, l: {type: string}, m: {type: string}}
        on_success:
          - set:
              facts.rec[action.args.k]: "{}"
              facts.rec[action.args.k][action.args.l]: result.data
              facts.rec[action.args.k][action.args.l][action.args.m]: result.data
              facts.one.two.three.four: result.data
          - set: {facts.one.two: result.data}
            when: action.args.k == action.args.l
      remove:
        args: {k: {type: string}, l: {type: string}, m: {type: string}}
        on_success:
          - unset: ['facts.rec[action.args.k]', 'facts.deep[action.args.k][action.args.l][action.args.m]']
          - unset: ['facts.one.two']
            when: action.args.k != action.args.m
          - set: {facts.one.two.three.four: action.args.k}
            when: action.args.l == 'x'
      many:
        args: {k: {type: string}, l: {type: string}, m: {type: string}}
        on_success:
          each: result.data
          set: {'facts.rec[item]': {key: item, said: action.args.k}, facts.list: result.data}
"""
STEPS = st.lists(
    st.tuples(st.sampled_from(["put", "within", "remove", "many"]), KEYS, KEYS, KEYS, TREES), min_size=1, max_size=8
)


@settings(max_examples=120, deadline=None)
@given(facts=st.fixed_dictionaries({"rec": MAPS, "deep": MAPS}), steps=STEPS)
def test_the_diffs_of_a_ledger_make_its_final_state_and_no_state_ever_changes(
    tmp_path_factory: pytest.TempPathFactory, facts: dict[str, Any], steps: list[tuple[str, str, str, str, Any]]
) -> None:
    folder = tmp_path_factory.mktemp("states")
    ledger = folder / "run.ledger.jsonl"
    books = guard(CHANGED(folder), ledger, state=CHANGED(folder).initial_state(facts=facts))
    seen: list[tuple[State, str]] = []
    for tool, first, second, third, said in steps:
        seen.append((books.state, frozen(books.state.tree)))
        data = [first, second, 7, third] if tool == "many" else said
        verdict = books.check(tool, {"k": first, "l": second, "m": third})
        assert verdict.runs, verdict.reason
        books.record(verdict, Result(success=True, data=data))
    books.close()
    lines = lines_of(ledger)
    assert verify(ledger).problems == ()
    assert replayed(lines) == books_of(books.state)
    assert typed(replayed(lines)) == typed(books_of(books.state))
    assert [frozen(state.tree) for state, _ in seen] == [before for _, before in seen]


_books: list[Any] = []


def CHANGED(folder: Path) -> Any:
    """The rulebook of the property, compiled once."""
    if not _books:
        _books.append(book(folder, tools=CHANGES))
    return _books[0]


def frozen(tree: Any) -> str:
    return json.dumps(tree, default=paths.plain)


def typed(value: Any) -> Any:
    """A value with the type of every leaf, for which 1, 1.0 and true are three."""
    if isinstance(value, Mapping):
        return {key: typed(item) for key, item in value.items()}
    if isinstance(value, list):
        return [typed(item) for item in value]
    return type(value).__name__, repr(value)


def test_every_version_is_the_open_state_with_the_diffs_up_to_it(tmp_path: Path) -> None:
    ledger = tmp_path / "run.ledger.jsonl"
    books = guard(book(tmp_path), ledger)
    states = [books.state]
    for number in range(5):
        books.record(books.check("look", {"id": f"#W{number % 2}.x"}), {"n": number, "of": {"北京": [number]}})
        states.append(books.state)
    books.close()
    lines = lines_of(ledger)
    for step, state in enumerate(states):
        upto = [line for line in lines if line["kind"] == "open" or line.get("step", 99) <= step]
        assert replayed(upto) == books_of(state)
    origin = books.state.origin(("facts", "orders", "#W1.x", "n"))
    assert origin is not None
    assert (origin.tool, origin.args, origin.step) == ("look", {"id": "#W1.x"}, 4)
