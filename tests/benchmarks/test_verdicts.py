"""What a verdict costs: ratios of CPU time, medians of alternating pairs; absolute figures are printed only."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ledgercli import cel
from ledgercli.history import History
from ledgercli.intake import present
from ledgercli.records import Proposal, Verdict
from ledgercli.rulebook import Rulebook
from tests.benchmarks.parts import ARGS, CONSTRAINTS, FACTS, RULES, book, ratio, say, twin

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(600)]
LOOPS = 4000


def judging(rules: Rulebook, history: History | None = None) -> Callable[[], Verdict]:
    state, proposal, now = rules.initial_state(), Proposal("pay", ARGS), present()
    past = history or History()
    assert rules.enforcer.judge(proposal, state, past, now, step=1).effect == "allow"
    return lambda: rules.enforcer.judge(proposal, state, past, now, step=1)


def test_a_verdict_costs_at_most_twice_a_hand_written_one(tmp_path: Path) -> None:
    rules = book(tmp_path)
    ours = judging(rules)
    state, past = rules.initial_state(), History()
    assert ours().reads == twin(state, past, "pay", ARGS)["reads"]
    found = ratio(ours, lambda: twin(state, past, "pay", ARGS), loops=LOOPS)
    assert say("verdict, 10 rules : by hand", found) <= 2


def test_a_long_history_costs_nothing(tmp_path: Path) -> None:
    rules, long = book(tmp_path), History()
    for step in range(10_000):
        long.executed("pay", {**ARGS, "amount": step + 0.5}, "ok", {"receipt": step}, step=step)
    assert say("10,000 entries of history : none", ratio(judging(rules, long), judging(rules), loops=LOOPS)) <= 1.2


def test_rules_about_other_tools_cost_nothing(tmp_path: Path) -> None:
    many, few = book(tmp_path, 10, others=90), book(tmp_path)
    assert say("100 rules, 10 for this tool : 10 rules", ratio(judging(many), judging(few), loops=LOOPS)) <= 1.5


def yes_or_no(tree: dict[str, Any], tool: str, history: History) -> bool:
    """The ten rules by hand, without a record."""
    facts, constraints, args = tree["facts"], tree["constraints"], ARGS
    return (
        facts["user_authenticated"] is True
        and not facts["blocked"]
        and facts["role"] in ("customer", "agent")
        and args["amount"] <= constraints["limit"]
        and args["amount"] > 0.0
        and args["account"] == facts["account"]
        and args["currency"] in constraints["currencies"]
        and history.count_recent_failures(tool) < 3
        and facts["balance"] >= args["amount"]
        and facts["country"] != "XX"
        and facts["tier"] >= 2
    )


def core(rules: Rulebook) -> cel.Program:
    """All ten checks as one expression, compiled to yes or no."""
    whole = " && ".join(f"({check})" for _, check in RULES)
    (pack,) = rules.packs
    env = rules.vocabulary.rule_env(pack, "pay")
    return cel.compile(cel.fold(cel.check(cel.parse(whole), env, cel.BOOL), {("action", "tool"): "pay"}))


def test_the_core_alone_is_as_fast_as_by_hand(tmp_path: Path) -> None:
    from ledgercli.functions import Moment

    rules, past = book(tmp_path), History()
    state, program = rules.initial_state(), core(rules)
    roots = {"state": state.tree, "action": {"tool": "pay", "args": ARGS}, "now": present()}
    moment = Moment(past, state)
    assert program.holds(roots, moment)
    found = ratio(lambda: program.holds(roots, moment), lambda: yes_or_no(state.tree, "pay", past), loops=LOOPS)
    assert say("yes or no : by hand", found) <= 1.5


def test_the_core_alone_is_eight_times_faster_than_googles(tmp_path: Path) -> None:
    """Both get the same values; Google's has no history, so that rule stands as a number for both."""
    google = pytest.importorskip("cel_expr_python.cel", reason="cel-expr-python: `nox -s benchmarks`")
    whole = " && ".join(f"({check})" for name, check in RULES if name != "few_failures") + " && failures < 3"
    names = {"state": cel.DYN, "action": cel.DYN, "failures": cel.INT}
    program = cel.compile(cel.check(cel.parse(whole), cel.Env(names), cel.BOOL))
    data = {
        "state": {"facts": FACTS, "constraints": CONSTRAINTS},
        "action": {"tool": "pay", "args": ARGS},
        "failures": 0,
    }
    env = google.NewEnv(variables={"state": google.Type.DYN, "action": google.Type.DYN, "failures": google.Type.INT})
    theirs = env.compile(whole)
    assert theirs.eval(data=data).plain_value() is True
    assert program.holds(data)
    found = ratio(lambda: theirs.eval(data=data).plain_value(), lambda: program.holds(data), loops=1000)
    assert say("Google's C++ : ours, yes or no", found) >= 8
