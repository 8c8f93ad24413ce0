"""Goals that a model adds and closes: what a plan may do, what it never does, and that a ledger proves it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledgercli.guard import Guard
from ledgercli.planning import DEEPEST, MOST, PlanError, planned
from ledgercli.replay.verifying import replay
from ledgercli.shelf import Shelf
from ledgercli.state import Goal, close_goals, current_goal, with_planned
from tests.books import carry_out, kept, scenario
from tests.commands import Run, command_line, typed
from tests.forging import sealed

TRIP = (
    Goal("trip", (Goal("flight", told=True), Goal("weather", told=True), Goal("hotel"))),
    Goal("report"),
)
NAMES = ("flight", "weather", "hotel", "trip", "report", "a", "b", "hotel/a", "flight/a", "flight/a/b")
TOOLS = """
toolset: t
tools:
  plan: {run: {plan: {}}}
  look: {access: read, run: {canned: [{result: {}}]}, on_success: {set: {facts.seen: true, goals.seen: true}}}
"""


def start(goals: tuple[Goal, ...] = TRIP) -> dict[str, bool]:
    return {goal.name: False for top in goals for goal in top.walk()}


def after(closed: Mapping[str, bool], goals: tuple[Goal, ...] = TRIP, **args: object) -> dict[str, bool]:
    """The goals after a call, as the updater settles them."""
    return close_goals(goals, {**closed, **planned(goals, closed, args)})


# ---- what a plan does


def test_subgoals_are_added_below_the_current_goal_and_closed_in_any_order():
    closed = {**start(), "flight": True, "weather": True}
    closed = after(closed, push=["budget", "room"])
    assert current_goal(TRIP, closed) == "hotel/budget"
    closed = after(closed, done="room")
    assert (closed["hotel/room"], current_goal(TRIP, closed)) == (True, "hotel/budget")
    closed = after(closed, done="hotel/budget")
    assert (closed["hotel"], closed["trip"], current_goal(TRIP, closed)) == (True, True, "report")


def test_a_goal_that_is_told_stays_open_and_is_current_again_once_its_plan_is_done():
    closed = after(start(), push="pick")
    assert current_goal(TRIP, closed) == "flight/pick"
    closed = after(closed, done="pick")
    assert (closed["flight"], current_goal(TRIP, closed)) == (False, "flight")


def test_what_is_closed_from_outside_takes_its_plan_with_it():
    closed = after(start(), push=["pick", "pay"])
    closed = close_goals(TRIP, {**closed, "flight": True})
    assert closed["flight/pick"]
    assert closed["flight/pay"]


def test_done_and_push_in_one_call_add_below_the_goal_that_comes_next():
    closed = {**start(), "flight": True, "weather": True}
    assert "report/draft" in after(closed, done="hotel", push="draft")


@pytest.mark.parametrize(
    ("args", "why"),
    [
        ({}, "neither what is done nor what to add"),
        ({"done": "flight"}, "flight is done once it is reached, not by saying so"),
        ({"done": "trip"}, "trip is done once flight and weather and hotel are"),
        ({"done": "hotle"}, "no open goal hotle; there is hotel"),
        ({"done": "weather", "push": "x"}, "not by saying so"),
        ({"push": ""}, "neither what is done"),
        ({"push": [" "]}, "1 to 80 printable characters"),
        ({"push": "a/b"}, "without /"),
        ({"push": "a\u202e"}, "printable"),
        ({"push": "x" * 81}, "1 to 80"),
        ({"push": ["a", "a"]}, "there is a goal flight/a already"),
        ({"push": 5}, "a name or a list of names"),
        ({"push": [str(number) for number in range(MOST)]}, "200 in all"),
    ],
)
def test_what_cannot_be_is_refused_and_says_why(args, why):
    with pytest.raises(PlanError, match=why):
        planned(TRIP, start(), args)


def test_a_plan_ends_somewhere():
    closed = start()
    for _ in range(DEEPEST - 1):
        closed = after(closed, push="on")
    with pytest.raises(PlanError, match="below one another"):
        planned(TRIP, after(closed, push="on"), {"push": "on"})


def test_two_goals_of_one_name_are_told_apart_by_their_whole_names():
    closed = {**start(), "hotel/a": False, "report/a": False}
    with pytest.raises(PlanError, match="there is hotel/a or report/a"):
        planned(TRIP, closed, {"done": "a"})
    assert planned(TRIP, closed, {"done": "report/a"}) == {"report/a": True}


calls = st.fixed_dictionaries(
    {}, optional={"done": st.sampled_from(NAMES), "push": st.lists(st.sampled_from(NAMES), max_size=3)}
)


@given(st.lists(calls, max_size=12))
def test_whatever_is_planned_the_goals_hold_together(plan):
    closed = start()
    for args in plan:
        before = dict(closed)
        try:
            closed = after(closed, **args)
        except PlanError:
            assert closed == before
            continue
        every = {goal.name: goal for top in with_planned(TRIP, closed) for goal in top.walk()}
        assert set(every) == set(closed)
        assert set(before) <= set(closed)
        assert not any(closed[name] for name in ("flight", "weather", "trip"))  # nothing but a plan has happened
        for name, goal in every.items():
            below = [closed[child.name] for child in goal.goals]
            if below and not goal.told:
                assert closed[name] == all(below)
        current = current_goal(TRIP, closed)
        assert not closed[current]
        assert all(closed[child.name] for child in every[current].goals)


# ---- in a run


def test_a_refused_plan_is_a_failed_step_and_changes_nothing_else(tmp_path):
    (tmp_path / "t.tools.yaml").write_text(TOOLS.lstrip())
    with Guard([], tmp_path / "t.tools.yaml", {}, tmp_path / "w.ledger.jsonl") as guard:
        for args in ({"push": ["a", "b"]}, {"done": "c"}, {"done": "b"}):
            guard.record(guard.check("plan", args), {"success": True})
        assert guard.state.tree["goals"] == {"a": False, "b": True}
        assert guard.state.status == "running"  # what nobody declared ends no run
    lines = [line for line in kept(tmp_path / "w.ledger.jsonl") if line["kind"] == "step"]
    assert [line["outcome"] for line in lines] == ["ok", "error", "ok"]
    assert lines[0]["state_diff"] == {"goals.a": False, "goals.b": False, "goal": "a"}
    assert lines[1]["state_diff"] == {"error": "no open goal c; there is a or b"}
    assert replay(tmp_path / "w.ledger.jsonl", Shelf()).divergence is None


def test_a_plan_that_says_that_it_worked_where_it_could_not_is_found_out(tmp_path):
    (tmp_path / "t.tools.yaml").write_text(TOOLS.lstrip())
    file = tmp_path / "w.ledger.jsonl"
    with Guard([], tmp_path / "t.tools.yaml", {}, file) as guard:
        guard.record(guard.check("plan", {"push": "a"}), {"success": True})
        guard.record(guard.check("plan", {"done": "a"}), {"success": True})
    lines = [json.loads(line) for line in file.read_bytes().splitlines()]
    lines[2]["action"]["args"]["done"] = "b"
    file.write_bytes(b"".join(sealed(lines)))
    divergence = replay(file, Shelf()).divergence
    assert divergence is not None
    assert (divergence.step, divergence.layer) == (2, "result")


def test_a_transition_closes_its_goal_and_a_plan_cannot(tmp_path):
    file = scenario(
        tmp_path,
        """
        scenario: s
        toolset: t.tools.yaml
        goals: [{name: seen}, {name: told}]
        decide:
          script:
            - {when: state.step == 0, propose: {tool: plan, args: {done: seen}}}
            - {when: state.step == 1, propose: {tool: look}}
            - {propose: {tool: plan, args: {done: told}}}
        expect: {status: completed, goals.seen: true, goals.told: true}
        """,
        TOOLS,
    )
    ended, job, lines = carry_out(file, tmp_path / "w.ledger.jsonl")
    assert job.unmet(ended) == []
    assert [line["outcome"] for line in lines if line["kind"] == "step"] == ["error", "ok", "ok"]
    assert replay(tmp_path / "w.ledger.jsonl", Shelf()).divergence is None


VISA = """
toolset: t
tools:
  plan: {run: {plan: {}}}
  ask_visa:
    access: read
    run: {canned: [{result: {}}]}
    on_success: {set: {'goals["leave/visa"]': "false"}}
  get_visa:
    access: read
    run: {canned: [{result: {}}]}
    on_success: {set: {'goals["leave/visa"]': "true"}}
"""


def test_a_transition_adds_a_goal_and_only_a_transition_closes_it(tmp_path):
    calls = ("ask_visa", "plan, args: {done: visa}", "plan, args: {done: leave}", "get_visa")
    script = "\n".join(f"    - {{when: state.step == {n}, propose: {{tool: {call}}}}}" for n, call in enumerate(calls))
    text = f"""
scenario: s
toolset: t.tools.yaml
goals: [{{name: leave}}]
decide:
  script:
{script}
expect: {{status: completed, 'goals["leave/visa"]': true}}
"""
    ended, job, lines = carry_out(scenario(tmp_path, text, VISA), tmp_path / "w.ledger.jsonl")
    assert job.unmet(ended) == []
    steps = [line for line in lines if line["kind"] == "step"]
    assert [line["outcome"] for line in steps] == ["ok", "error", "error", "ok"]
    assert steps[0]["state_diff"] == {'goals["leave/visa"]': False, "goal": "leave/visa"}
    assert steps[1]["result"]["error"] == "leave/visa is done once it is reached, not by saying so"
    assert steps[2]["result"]["error"] == "leave is done once leave/visa is"
    assert replay(tmp_path / "w.ledger.jsonl", Shelf()).divergence is None


# ---- at load, and at the terminal


@pytest.fixture
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Run]:
    with command_line(tmp_path, monkeypatch, capsys) as run:
        yield run


def test_a_plan_takes_push_and_done_alone(ledger):
    (ledger.folder / "t.yaml").write_text(
        TOOLS.lstrip().replace("{run: {plan", "{args: {dome: {type: string}}, run: {plan")
    )
    assert ledger("validate", "t.yaml") == 1
    assert "t.yaml:3:17: error[unknown-argument]: no argument dome" in ledger.out
    assert "did you mean done?" in ledger.out


def test_a_goal_is_added_below_one_that_there_is(ledger):
    text = "scenario: s\ntoolset: t.tools.yaml\ngoals: [{name: leave}]\ndecide: {script: []}\n"
    scenario(ledger.folder, text, VISA.replace('leave/visa"]\': "false', 'leaf/visa"]\': "false'))
    assert ledger("validate", "s.yaml") == 1
    assert "error[unknown-goal]: no goal leaf/visa" in ledger.out
    assert "did you mean leave/visa?" in ledger.out


TALK = """
scenario: s
toolset: t.tools.yaml
decide: {script: [{when: from_user('yes'), propose: {tool: finish, args: {answer: agreed}}}]}
"""
ASK = "toolset: t\ntools:\n  ask: {run: {user: {}}}\n"


@pytest.mark.parametrize(
    ("says", "code", "ends"), [("yes\n", 0, b"agreed"), pytest.param("\n", 1, b"no next step", marks=pytest.mark.slow)]
)
def test_a_user_is_heard_where_there_is_no_next_step(tmp_path, says, code, ends):
    scenario(tmp_path, TALK, ASK)
    found, seen = typed(
        tmp_path, "run", "s.yaml", "--out", "w.ledger.jsonl", says=says, wants=lambda seen: b"> " in seen
    )
    assert (found, ends in seen) == (code, True)
    kinds = [line["action"]["tool"] for line in kept(tmp_path / "w.ledger.jsonl") if line["kind"] == "step"]
    assert kinds == (["user", "finish"] if says.strip() else [])
    assert replay(tmp_path / "w.ledger.jsonl", Shelf()).divergence is None
