"""What a result changes: one test for each sentence of the formats' "Transitions"."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from textwrap import dedent, indent
from typing import Any

import pytest

from ledgercli.errors import InvalidDocumentError
from ledgercli.history import History
from ledgercli.loading import load_scenario
from ledgercli.records import Proposal, Result, Verdict
from ledgercli.rulebook import Rulebook
from ledgercli.state import State
from ledgercli.updater import Change
from tests.books import NOW, book, write

OK = Result(
    success=True, data={"id": "W1", "n": 2, "list": [1, 2], "items": [{"id": "a", "n": 1}, {"id": "b", "n": 2}]}
)


def shop(folder: Path, transitions: str, more: str = "", top: str = "") -> Rulebook:
    """A rulebook whose tool `act` has these transitions."""
    tools = "toolset: shop\n" + dedent(top) + "tools:\n  act:\n    args: {k: {type: string, default: k}}\n"
    tools += indent(dedent(transitions).strip(), "    ") + "\n" + indent(dedent(more), "  ")
    return book(folder, tools=tools)


def act(
    rules: Rulebook, result: Result = OK, state: State | None = None, *, tool: str = "act", step: int = 1, **args: Any
) -> Change:
    state = state or rules.initial_state()
    proposal, history = Proposal(tool, args), History()
    settled = rules.updater.settled(proposal, result, state, history, NOW)
    return rules.updater.executed(proposal, settled, state, history, NOW, step=step, latest=step)


def codes(folder: Path, transitions: str, **more: str) -> list[str]:
    with pytest.raises(InvalidDocumentError) as caught:
        shop(folder, transitions, **more)
    return [getattr(problem, "code", "") for problem in caught.value.problems]


# ---- blocks


def test_one_block_or_a_list_of_blocks(tmp_path: Path) -> None:
    assert act(shop(tmp_path, "on_success: {set: {facts.id: result.data.id}}")).sets == {"facts.id": "W1"}
    two = """
    on_success:
      - set: {facts.id: result.data.id}
      - set: {facts.n: result.data.n}
    """
    assert act(shop(tmp_path, two)).sets == {"facts.id": "W1", "facts.n": 2}


def test_only_blocks_whose_when_holds_apply(tmp_path: Path) -> None:
    blocks = """
    on_success:
      - {when: result.data.n == 2, set: {facts.two: "true"}}
      - {when: result.data.n == 3, set: {facts.three: "true"}}
      - {when: action.args.k == 'k', set: {facts.k: action.args.k}}
    """
    assert act(shop(tmp_path, blocks)).sets == {"facts.two": True, "facts.k": "k"}


def test_every_block_reads_the_state_before(tmp_path: Path) -> None:
    blocks = """
    on_success:
      - set: {facts.a: result.data.n, facts.b: state.facts.a}
      - set: {facts.c: state.facts.a}
      - {when: state.facts.a == 9, set: {facts.d: "true"}}
    """
    rules = shop(tmp_path, blocks)
    state = rules.initial_state().after({"facts.a": 9})
    assert act(rules, state=state).state.tree["facts"] == {"a": 2, "b": 9, "c": 9, "d": True}


def test_of_two_that_set_one_path_the_later_wins(tmp_path: Path) -> None:
    blocks = """
    on_success:
      - {set: {facts.a: "1"}, finish: failed}
      - {set: {facts.a: "2"}, finish: completed}
    """
    change = act(shop(tmp_path, blocks))
    assert change.sets == {"facts.a": 2, "status": "completed"}


def test_success_and_failure_have_transitions_of_their_own(tmp_path: Path) -> None:
    rules = shop(tmp_path, "on_success: {set: {facts.ok: 'true'}}\non_failure: {set: {facts.why: result.error}}")
    assert act(rules).sets == {"facts.ok": True}
    assert act(rules, Result(success=False, error="no")).sets == {"error": "no", "facts.why": "no"}


def test_a_tool_without_transitions_changes_nothing(tmp_path: Path) -> None:
    rules = shop(tmp_path, "access: read")
    change = act(rules, step=4)
    assert (change.sets, list(change.unsets), change.state.step) == ({}, [], 4)


# ---- paths


def test_missing_maps_are_made_and_stand_in_the_diff_whole(tmp_path: Path) -> None:
    rules = shop(tmp_path, "on_success: {set: {facts.a.b.c: result.data.n, facts.a.b.d: result.data.id}}")
    change = act(rules)
    assert change.sets == {"facts.a": {"b": {"c": 2, "d": "W1"}}}
    assert rules.initial_state().after(change.sets).tree["facts"] == change.state.tree["facts"]


def test_a_child_is_set_inside_what_was_set_before_it(tmp_path: Path) -> None:
    rules = shop(tmp_path, "on_success: {set: {facts.order: result.data, facts.order.n: '5'}}")
    change = act(rules)
    assert list(change.sets) == ["facts.order"]
    assert change.sets["facts.order"]["n"] == 5
    assert OK.data["n"] == 2


def test_a_parent_set_after_its_child_covers_it(tmp_path: Path) -> None:
    rules = shop(tmp_path, "on_success: {set: {facts.order.n: '5', facts.order: result.data}}")
    assert act(rules).sets == {"facts.order": OK.data}


def test_records_by_id_start_empty_and_grow_one_by_one(tmp_path: Path) -> None:
    rules = shop(tmp_path, "on_success: {set: {'facts.orders[result.data.id]': result.data.n}}")
    first = rules.initial_state()
    assert first.tree["facts"] == {"orders": {}}
    change = act(rules)
    assert change.sets == {"facts.orders.W1": 2}
    odd = act(rules, Result(success=True, data={"id": "#W.2", "n": 1}), change.state)
    assert odd.sets == {'facts.orders["#W.2"]': 1}
    assert odd.state.tree["facts"] == {"orders": {"W1": 2, "#W.2": 1}}


def test_each_makes_one_per_item_and_when_is_judged_for_each(tmp_path: Path) -> None:
    block = """
    on_success:
      each: result.data.items
      when: item.n > 1
      set: {'facts.items[item.id]': item}
    """
    assert act(shop(tmp_path, block)).sets == {"facts.items.b": {"id": "b", "n": 2}}


def test_each_of_an_empty_list_does_nothing(tmp_path: Path) -> None:
    rules = shop(tmp_path, "on_success: {each: result.data.items, set: {'facts.items[item.id]': item}, finish: failed}")
    change = act(rules, Result(success=True, data={"items": []}))
    assert (change.sets, change.problems) == ({}, ())


def test_unset_removes_and_does_nothing_where_nothing_is(tmp_path: Path) -> None:
    rules = shop(tmp_path, "on_success: {set: {facts.a: '1'}, unset: [facts.a]}\non_failure: {unset: [facts.a]}")
    state = rules.initial_state().after({"facts.a": 1})
    change = act(rules, state=state)
    assert (change.sets, list(change.unsets)) == ({}, ["facts.a"])
    assert change.state.tree["facts"] == {}
    again = act(rules, Result(success=False, error="x"), change.state)
    assert (list(again.unsets), again.problems) == ([], ())


def test_a_path_through_something_that_is_no_map_is_a_problem_and_changes_nothing(tmp_path: Path) -> None:
    rules = shop(tmp_path, "on_success: [{set: {facts.a: result.data.id}}, {set: {facts.a.b: '1', facts.c: '2'}}]")
    change = act(rules)
    assert change.sets == {"facts.a": "W1", "facts.c": 2}
    assert change.problems == ("facts.a.b cannot be set: facts.a is no map",)


@pytest.mark.parametrize("path", ["state.facts.a", "task", "status", "result.data", "facts.a()", "1", "facts"])
def test_what_is_no_settable_path_does_not_load(tmp_path: Path, path: str) -> None:
    found = codes(tmp_path, f"on_success: {{set: {{{path!r}: '1'}}}}")
    assert set(found) <= {"unknown-settable-path", "not-a-path"}
    assert found


@pytest.mark.parametrize("path", ["goals", "flags", "constraints", "flags.a.b", "goals.a.b", "error.a"])
def test_a_part_of_the_state_is_not_replaced_whole_nor_given_depth(tmp_path: Path, path: str) -> None:
    assert "not-a-path" in codes(tmp_path, f"on_success: {{set: {{{path}: 'true'}}}}")


@pytest.mark.parametrize("path", ["flags.a", "goals.a"])
def test_flags_and_goals_are_true_or_false(tmp_path: Path, path: str) -> None:
    assert "wrong-type" in codes(tmp_path, f"on_success: {{set: {{{path}: action.args.k}}}}")


def test_everything_that_may_be_set_can_be(tmp_path: Path) -> None:
    block = """
    on_success:
      set:
        facts.a: result.data.n
        flags.low: result.data.n < 5
        constraints.max_steps: "3"
        error: "'careful'"
        final_answer: {id: result.data.id, all: [result.data.n, 'true', "null"]}
    """
    change = act(shop(tmp_path, block))
    assert change.sets == {
        "facts.a": 2,
        "flags.low": True,
        "constraints.max_steps": 3,
        "error": "careful",
        "final_answer": {"id": "W1", "all": [2, True, None]},
    }


# ---- what cannot be told


def test_a_value_that_cannot_be_told_unsets_its_path_and_is_noted(tmp_path: Path) -> None:
    rules = shop(
        tmp_path, "on_success: {set: {facts.a: result.data.nothing, facts.b: {x: result.data.n, y: result.data.no}}}"
    )
    state = rules.initial_state().after({"facts.a": 1, "facts.b": 2})
    change = act(rules, state=state)
    assert (change.sets, sorted(change.unsets)) == ({}, ["facts.a", "facts.b"])
    assert change.problems == ("facts.a: result.data.nothing not known", "facts.b: result.data.no not known")


def test_a_when_that_cannot_be_told_is_false_and_noted(tmp_path: Path) -> None:
    change = act(shop(tmp_path, "on_success: {when: result.data.nothing == 1, set: {facts.a: '1'}}"))
    assert change.sets == {}
    assert change.problems == ("result.data.nothing == 1: result.data.nothing not known",)


def test_an_each_that_cannot_be_told_or_is_no_list_is_empty_and_noted(tmp_path: Path) -> None:
    block = """
    on_success:
      - {each: result.data.nothing, set: {facts.a: item}}
      - {each: result.data.id, set: {facts.a: item}}
      - {each: '[1 / 0]', set: {facts.a: item}}
    """
    change = act(shop(tmp_path, block))
    assert change.sets == {}
    assert change.problems == ("each: result.data.nothing not known", "each: string is no list", "each: divide by zero")


def test_an_each_that_is_never_a_list_does_not_load(tmp_path: Path) -> None:
    assert codes(tmp_path, "on_success: {each: action.args.k, set: {facts.a: item}}") == ["wrong-type"]


@pytest.mark.parametrize("key", ["result.data.n", "result.data.nothing", "string(1 / 0)"])
def test_a_key_that_is_no_text_is_noted_and_sets_nothing(tmp_path: Path, key: str) -> None:
    change = act(shop(tmp_path, f"on_success: {{set: {{'facts.a[{key}]': '1'}}}}"))
    assert change.sets == {}
    assert len(change.problems) == 1
    assert change.problems[0].startswith(f"facts.a[{key}]: ")


def test_done_when_that_cannot_be_told_is_false_and_noted(tmp_path: Path) -> None:
    blocks = "on_success: {when: action.args.k == 'b', set: {facts.a: '1'}}"
    change = act(with_goals(tmp_path, "goals: [{name: g, done_when: state.facts.a == 1}]", blocks))
    assert change.sets == {}
    assert change.problems == ("state.facts.a == 1: state.facts.a not known",)


def test_fails_when_that_cannot_be_told_is_false(tmp_path: Path) -> None:
    rules = shop(tmp_path, "fails_when: result.data.nothing == 1")
    assert settled(rules, OK).success


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        ("now", "2026-08-01T12:00:00Z"),
        ("now + duration('1h')", "2026-08-01T13:00:00Z"),
        ("uint(result.data.n)", 2),
        ("duration('90s')", "90s"),
        ("{'a': 1u}", {"a": 1}),
        ("action", {"tool": "act", "args": {"k": "k"}, "access": "write", "tags": []}),
        ("result", {"success": True, "data": OK.data, "error": None}),
    ],
)
def test_values_are_set_as_json(tmp_path: Path, value: str, kept: Any) -> None:
    change = act(shop(tmp_path, f'on_success: {{set: {{facts.a: "{value}"}}}}'))
    assert change.problems == ()
    assert change.sets == {"facts.a": kept}
    assert type(change.sets["facts.a"]) is type(kept)


@pytest.mark.parametrize("value", ["b'x'", "1.0 / 0.0", "type(1)"])
def test_a_value_that_no_ledger_can_hold_cannot_be_told(tmp_path: Path, value: str) -> None:
    change = act(shop(tmp_path, f'on_success: {{set: {{facts.a: "{value}"}}}}'))
    assert change.sets == {}
    assert len(change.problems) == 1


# ---- error, finish


def test_an_executed_step_clears_the_error_and_a_failed_one_sets_it(tmp_path: Path) -> None:
    rules = shop(tmp_path, "access: read")
    failed = act(rules, Result(success=False, error="no room"))
    assert failed.sets == {"error": "no room"}
    assert act(rules, Result(success=False), failed.state).sets == {"error": "failed"}
    assert act(rules, OK, failed.state).sets == {"error": None}


def test_transitions_see_the_error_of_this_very_step(tmp_path: Path) -> None:
    rules = shop(tmp_path, "on_failure: {when: state.error == 'no room', set: {error: \"'full'\"}, finish: failed}")
    change = act(rules, Result(success=False, error="no room"))
    assert change.sets == {"error": "full", "status": "failed"}


@pytest.mark.parametrize("status", ["completed", "failed", "halted"])
def test_finish_sets_the_status(tmp_path: Path, status: str) -> None:
    assert act(shop(tmp_path, f"on_success: {{finish: {status}}}")).state.status == status


def test_the_built_in_finish_takes_an_answer_and_completes(tmp_path: Path) -> None:
    rules = book(tmp_path)
    change = act(rules, Result(success=True), tool="finish", answer={"a": [1]})
    assert change.sets == {"final_answer": {"a": [1]}, "status": "completed"}
    assert act(rules, Result(success=True), tool="finish").sets == {"final_answer": None, "status": "completed"}


def test_a_refusal_says_what_and_why_and_a_halt_ends_the_run(tmp_path: Path) -> None:
    rules = book(tmp_path)
    verdict = Verdict("deny", reason="Not now.")
    change = rules.updater.denied(Proposal("pay", {}), verdict, rules.initial_state(), step=1, halts=False)
    assert change.sets == {"error": "pay was refused: Not now."}
    halted = rules.updater.denied(Proposal("pay", {}), verdict, rules.initial_state(), step=1, halts=True)
    assert halted.sets == {"error": "pay was refused: Not now.", "status": "halted"}
    assert halted.state.step == 1


# ---- goals


def with_goals(folder: Path, goals: str, transitions: str = "on_success: {set: {facts.a: result.data.n}}") -> Rulebook:
    shop(folder, "access: read")
    tools = "toolset: shop\ntools:\n  act:\n    args: {k: {type: string, default: k}}\n"
    (folder / "shop.tools.yaml").write_text(tools + indent(dedent(transitions).strip(), "    ") + "\n")
    text = "scenario: s\ntoolset: shop.tools.yaml\n" + dedent(goals) + "\ndecide: {script: []}\n"
    scenario = load_scenario(str(write(folder, s=text)["s"]))
    rules = Rulebook(scenario.toolset, scenario.packs, scenario=scenario)
    assert rules.problems() == []
    return rules


def goals_of(state: State) -> tuple[Mapping[str, bool], str, str]:
    return dict(state.tree["goals"]), state.tree["goal"], state.status


def test_a_goal_closes_once_its_condition_holds_and_the_next_is_the_goal(tmp_path: Path) -> None:
    rules = with_goals(tmp_path, "goals: [{name: one, done_when: state.facts.a == 2}, {name: two}]")
    first = rules.initial_state()
    assert goals_of(first) == ({"one": False, "two": False}, "one", "running")
    change = act(rules)
    assert goals_of(change.state) == ({"one": True, "two": False}, "two", "running")
    assert change.sets == {"facts.a": 2, "goals.one": True, "goal": "two"}


def test_a_transition_closes_a_goal_by_its_name(tmp_path: Path) -> None:
    rules = with_goals(tmp_path, "goals: [{name: one}, {name: two}]", "on_success: {set: {goals.two: 'true'}}")
    assert goals_of(act(rules).state) == ({"one": False, "two": True}, "one", "running")


def test_a_parent_closes_with_its_children_and_all_closed_means_completed(tmp_path: Path) -> None:
    goals = "goals: [{name: all, goals: [{name: a, done_when: state.facts.a == 2}, {name: b, done_when: has(state.facts.b)}]}]"
    blocks = "on_success: [{set: {facts.a: result.data.n}}, {when: action.args.k == 'b', set: {facts.b: '1'}}]"
    rules = with_goals(tmp_path, goals, blocks)
    first = act(rules)
    assert goals_of(first.state) == ({"all": False, "a": True, "b": False}, "b", "running")
    second = act(rules, state=first.state, k="b")
    assert goals_of(second.state) == ({"all": True, "a": True, "b": True}, "", "completed")


def test_a_run_that_has_failed_is_not_completed_by_its_goals(tmp_path: Path) -> None:
    rules = with_goals(tmp_path, "goals: [{name: one}]", "on_success: {set: {goals.one: 'true'}, finish: failed}")
    assert act(rules).state.status == "failed"


@pytest.mark.parametrize(
    "change", ["set: {goals.one: result.data.nothing}", "unset: [goals.one]", "set: {goals.one: result.data.n}"]
)
def test_a_goal_that_cannot_be_told_is_open(tmp_path: Path, change: str) -> None:
    rules = with_goals(
        tmp_path, "goals: [{name: one}, {name: two}]", f"on_success: [{{set: {{goals.two: 'true'}}}}, {{{change}}}]"
    )
    state = act(rules).state
    assert not state.tree["goals"].get("one")
    assert (state.tree["goal"], state.status) == ("one", "running")


# ---- what counts as a failure


def settled(rules: Rulebook, result: Result) -> Result:
    return rules.updater.settled(Proposal("act", {}), result, rules.initial_state(), History(), NOW)


def test_fails_when_of_a_tool_overrides_the_usual_signs(tmp_path: Path) -> None:
    rules = shop(tmp_path, "fails_when: \"result.data.startsWith('Error')\"")
    assert settled(rules, Result(success=True, data="Error: none left")) == Result(
        success=False, data="Error: none left", error="Error: none left"
    )
    assert settled(rules, Result(success=False, data="fine", error="exit code 1")) == Result(success=True, data="fine")
    good = Result(success=True, data="fine")
    assert settled(rules, good) is good
    bad = Result(success=False, data="Error", error="exit code 1")
    assert settled(rules, bad) is bad


def test_fails_when_of_a_toolset_holds_for_tools_without_their_own(tmp_path: Path) -> None:
    top = "fails_when: result.data.status == 'bad'\n"
    rules = shop(tmp_path, "access: read", top=top)
    assert settled(rules, Result(success=True, data={"status": "bad"})) == Result(
        success=False, data={"status": "bad"}, error="act failed"
    )
    own = shop(tmp_path, "fails_when: result.data.status == 'worse'", top=top)
    assert settled(own, Result(success=True, data={"status": "bad"})).success
    assert not settled(own, Result(success=True, data={"status": "worse"})).success


def test_transitions_follow_what_fails_when_says(tmp_path: Path) -> None:
    rules = shop(
        tmp_path, "fails_when: result.data.n == 2\non_success: {set: {facts.a: '1'}}\non_failure: {set: {facts.b: '1'}}"
    )
    assert act(rules).sets == {"error": "act failed", "facts.b": 1}


# ---- where facts come from


def test_facts_come_from_the_call_that_set_them_and_from_users_where_users_spoke(tmp_path: Path) -> None:
    more = """
    ask:
      args: {question: {type: string}}
      run: {user: {}}
      on_success: {set: {facts.city: result.data}}
    """
    rules = shop(tmp_path, "on_success: {set: {facts.order: result.data}}", more)
    state = act(rules, step=3, k="x").state
    origin = state.origin(("facts", "order", "n"))
    assert origin is not None
    assert (origin.tool, origin.args, origin.step) == ("act", {"k": "x"}, 3)
    said = act(rules, Result(success=True, data="Rome"), state, tool="ask", step=4, question="?").state
    city = said.origin(("facts", "city"))
    assert city is not None
    assert (city.tool, city.step) == ("user", 4)


def test_a_value_that_is_set_again_has_a_new_source(tmp_path: Path) -> None:
    rules = shop(tmp_path, "on_success: {set: {facts.id: result.data.id}}")
    first = act(rules, step=1)
    second = act(rules, state=first.state, step=2)
    assert second.sets == {"facts.id": "W1"}
    origin = second.state.origin(("facts", "id"))
    assert origin is not None
    assert origin.step == 2


# ---- mistakes that are found at load


@pytest.mark.parametrize(
    ("transitions", "code"),
    [
        ("on_success: {set: {facts.a: result.dat}}", "unknown-field"),
        ("on_success: {set: {facts.a: delivered}}", "unknown-name"),
        ("on_success: {set: {facts.a: '1'}, finish: done}", "wrong-value"),
        ("on_success: {when: action.args.k, set: {facts.a: '1'}}", "not-a-condition"),
        ("on_success: {unset: [facts.nothing]}", "unknown-fact"),
        ("on_success: {set: {facts.a: item}}", "unknown-name"),
        ("on_success: {set: {'facts.a[action.args.j]': '1'}}", "unknown-argument"),
        ("fails_when: result.nothing", "unknown-field"),
    ],
)
def test_mistakes_in_transitions_are_found_at_load(tmp_path: Path, transitions: str, code: str) -> None:
    assert code in codes(tmp_path, transitions)
