"""How rules combine into a verdict."""

from __future__ import annotations

from pathlib import Path

import pytest

from ledgercli.errors import InvalidDocumentError
from ledgercli.history import History
from tests.books import book, judge, rules_of

VIP = """
    pack: vip
    rules:
      - name: vips_only
        tools: [pay]
        check: state.facts.vip == true
        on_fail: {error: "Not for {state.facts.user}.", hint: Log in first.}
"""


def test_a_rule_that_holds_allows_and_says_what_it_read(tmp_path: Path) -> None:
    verdict = judge(book(tmp_path, VIP), "pay", {"amount": 5}, facts={"vip": True})
    assert verdict.effect == "allow"
    assert verdict.applied == 1
    assert verdict.reads == {"state.facts.vip": True}
    assert verdict.runs


def test_a_rule_that_fails_denies_with_its_message_and_hint(tmp_path: Path) -> None:
    verdict = judge(book(tmp_path, VIP), "pay", {"amount": 5}, facts={"vip": False, "user": "mia"})
    assert (verdict.effect, verdict.reason, verdict.hint) == ("deny", "Not for mia.", "Log in first.")
    assert rules_of(verdict) == {"failed": ["vip/vips_only"]}
    assert not verdict.runs
    assert verdict.reads == {"state.facts.vip": False}


def test_what_is_not_known_counts_as_failed_and_names_who_can_establish_it(tmp_path: Path) -> None:
    verdict = judge(book(tmp_path, VIP), "pay", {"amount": 5})
    assert verdict.reason == "state.facts.vip is not known"
    assert verdict.missing == ("state.facts.vip",)
    assert verdict.establish == ("login",)


def test_a_rule_for_another_tool_does_not_apply(tmp_path: Path) -> None:
    verdict = judge(book(tmp_path, VIP), "look", {"id": "W1"})
    assert (verdict.effect, verdict.applied, verdict.reads) == ("allow", 0, {})


@pytest.mark.parametrize(
    ("condition", "applies"),
    [
        ("action.tool == 'pay'", True),
        ("action.tool in ['pay', 'look']", True),
        ("action.access == 'write'", True),
        ("action.access == 'read'", False),
        ("'charge' in action.tags", True),
        ("!('charge' in action.tags)", False),
        ("action.tool == 'pay' && state.flags.logged_in", False),
        ("[1].exists(action, action == 1)", True),
    ],
)
def test_conditions_decide_what_a_rule_applies_to(tmp_path: Path, condition: str, applies: bool) -> None:
    pack = f"""
    pack: p
    rules:
      - name: never
        condition: {condition!r}
        check: "false"
    """.replace("\\'", "'")
    pack = pack.replace(repr(condition), '"' + condition + '"')
    assert judge(book(tmp_path, pack), "pay", {"amount": 1}).effect == ("deny" if applies else "allow")


def test_an_unknown_tool_is_denied_with_the_nearest_names(tmp_path: Path) -> None:
    verdict = judge(book(tmp_path), "payy", {})
    assert rules_of(verdict) == {"failed": ["unknown_tool"]}
    assert verdict.hint == "Did you mean pay?"


@pytest.mark.parametrize(
    ("args", "reason"),
    [
        ({}, "pay needs the argument amount."),
        ({"amount": 1, "amont": 2}, "pay has no argument amont."),
        ({"amount": "much"}, 'action.args.amount does not fit: "much" is not of type "number".'),
    ],
)
def test_arguments_that_do_not_fit_are_denied(tmp_path: Path, args: dict[str, object], reason: str) -> None:
    verdict = judge(book(tmp_path), "pay", args)
    assert rules_of(verdict) == {"failed": ["bad_arguments"]}
    assert verdict.reason == reason


def combining(effect: str = "deny", resolve: str = "strictest", priority: int = 0, grant_priority: int = 5) -> str:
    grants = f"""
      - name: open_it
        priority: {grant_priority}
        grant: state.flags.logged_in
    """
    return f"""
    pack: p
    resolve: {resolve}
    rules:
      - name: asks
        check: "false"
        on_fail: {{error: Ask., effect: require_approval}}
      - name: warns
        check: "false"
        on_fail: {{error: Careful., effect: warn}}
      - name: strict
        priority: {priority}
        condition: action.args.amount > 100.0
        tools: [pay]
        check: "false"
        on_fail: {{error: Never., effect: {effect}}}
    """ + (grants if resolve == "priority" else "")


def test_the_strictest_effect_wins(tmp_path: Path) -> None:
    rules = book(tmp_path, combining())
    small, large = judge(rules, "pay", {"amount": 5}), judge(rules, "pay", {"amount": 500})
    assert (small.effect, small.reason) == ("require_approval", "Ask.")
    assert (large.effect, large.reason) == ("deny", "Never.")
    assert rules_of(large) == {"failed": ["p/strict", "p/asks"], "warned": ["p/warns"]}


def test_by_priority_the_highest_decides_and_the_rest_is_overridden(tmp_path: Path) -> None:
    rules = book(tmp_path, combining(resolve="priority", priority=3))
    verdict = judge(rules, "pay", {"amount": 500})
    assert verdict.effect == "deny"
    assert rules_of(verdict) == {"failed": ["p/strict"], "overridden": ["p/asks", "p/warns"]}


def test_a_grant_of_higher_priority_opens(tmp_path: Path) -> None:
    rules = book(tmp_path, combining(resolve="priority", priority=3))
    verdict = judge(rules, "pay", {"amount": 500}, flags={"logged_in": True})
    assert verdict.effect == "allow"
    assert rules_of(verdict) == {"overridden": ["p/asks", "p/warns", "p/strict"]}


def test_ties_go_to_the_strictest(tmp_path: Path) -> None:
    rules = book(tmp_path, combining(resolve="priority", priority=5, grant_priority=5))
    assert judge(rules, "pay", {"amount": 500}, flags={"logged_in": True}).effect == "deny"


def test_a_grant_that_cannot_be_told_does_not_grant(tmp_path: Path) -> None:
    pack = """
    pack: p
    default: deny
    rules:
      - {name: vips, tools: [pay], grant: state.facts.vip == true}
    """
    rules = book(tmp_path, pack)
    assert rules_of(judge(rules, "pay", {"amount": 1})) == {"failed": ["p/default_deny"]}
    assert judge(rules, "pay", {"amount": 1}, facts={"vip": True}).effect == "allow"
    assert judge(rules, "look", {"id": "1"}, facts={"vip": True}).effect == "deny"


def test_a_rule_that_passes_never_opens_an_allow_list(tmp_path: Path) -> None:
    pack = """
    pack: p
    default: deny
    rules:
      - {name: fine, check: "true"}
      - {name: vips, tools: [look], grant: "true"}
    """
    assert judge(book(tmp_path, pack), "pay", {"amount": 1}).effect == "deny"


def test_finish_is_not_judged_by_an_allow_list(tmp_path: Path) -> None:
    pack = """
    pack: p
    default: deny
    rules:
      - {name: vips, tools: [look], grant: "true"}
    """
    assert judge(book(tmp_path, pack), "finish", {"answer": 1}).effect == "allow"


def test_a_grant_never_lifts_the_denial_of_another_pack(tmp_path: Path) -> None:
    opens = """
    pack: opens
    resolve: priority
    rules:
      - {name: anything, priority: 1000, grant: "true"}
    """
    verdict = judge(book(tmp_path, opens, VIP), "pay", {"amount": 1}, facts={"vip": False})
    assert verdict.effect == "deny"


def test_a_grant_that_means_nothing_does_not_load(tmp_path: Path) -> None:
    with pytest.raises(InvalidDocumentError) as caught:
        book(tmp_path, 'pack: p\nrules:\n  - {name: g, grant: "true"}\n')
    assert [problem.code for problem in caught.value.problems] == ["grant-means-nothing"]


def test_shadow_rules_decide_nothing_and_stand_apart(tmp_path: Path) -> None:
    pack = """
    pack: p
    rules:
      - {name: trial, mode: shadow, check: "false", on_fail: Tried.}
    """
    verdict = judge(book(tmp_path, pack), "pay", {"amount": 1})
    assert verdict.effect == "allow"
    assert rules_of(verdict) == {"shadowed": ["p/trial"]}


def test_in_shadow_mode_everything_runs_and_stands_in_shadowed(tmp_path: Path) -> None:
    rules = book(tmp_path, VIP, shadow=True)
    assert rules_of(judge(rules, "pay", {"amount": 1}, facts={"vip": False})) == {"shadowed": ["vip/vips_only"]}
    unknown = judge(rules, "payy", {})
    assert (unknown.effect, rules_of(unknown)) == ("allow", {"shadowed": ["unknown_tool"]})


def test_a_pack_that_is_not_active_is_passed_over_and_one_that_cannot_be_told_is_not(tmp_path: Path) -> None:
    pack = """
    pack: p
    active: state.facts.vip == true
    rules:
      - {name: never, check: "false", on_fail: No.}
    """
    rules = book(tmp_path, pack)
    assert judge(rules, "pay", {"amount": 1}, facts={"vip": False}).effect == "allow"
    assert judge(rules, "pay", {"amount": 1}, facts={"vip": True}).effect == "deny"
    assert judge(rules, "pay", {"amount": 1}).effect == "deny"


def test_a_denial_halts_only_by_a_rule_that_counts(tmp_path: Path) -> None:
    pack = """
    pack: p
    resolve: priority
    rules:
      - {name: low, check: "false", on_fail: {error: Low., effect: require_approval, halt: true}}
      - {name: high, priority: 9, condition: "state.flags.logged_in", check: "false", on_fail: {error: High.}}
    """
    rules = book(tmp_path, pack)
    assert not judge(rules, "pay", {"amount": 1}, flags={"logged_in": True}).halts
    halting = VIP.replace("hint: Log in first.", "halt: true")
    assert judge(book(tmp_path, halting), "pay", {"amount": 1}, facts={"vip": False, "user": "x"}).halts


def test_a_rule_without_message_is_explained_by_its_check(tmp_path: Path) -> None:
    pack = """
    pack: p
    rules:
      - {name: cheap, tools: [pay], check: action.args.amount < 10.0}
    """
    assert judge(book(tmp_path, pack), "pay", {"amount": 50}).reason == "cheap does not hold: action.args.amount < 10.0"


def test_an_error_counts_as_failed_and_says_what_went_wrong(tmp_path: Path) -> None:
    pack = """
    pack: p
    rules:
      - {name: odd, tools: [pay], check: 10 / size(action.args.note) > 1, on_fail: {error: Odd., effect: warn}}
    """
    verdict = judge(book(tmp_path, pack), "pay", {"amount": 1})
    assert verdict.effect == "warn"
    assert verdict.warned[0].error.startswith("It cannot be told: ")


def test_defaults_of_arguments_are_filled_in_before_rules_see_them(tmp_path: Path) -> None:
    pack = """
    pack: p
    rules:
      - {name: noted, tools: [pay], check: action.args.note != ''}
    """
    rules = book(tmp_path, pack)
    assert judge(rules, "pay", {"amount": 1}).effect == "deny"
    assert judge(rules, "pay", {"amount": 1, "note": "rent"}).effect == "allow"


def test_rules_see_the_history_and_the_time(tmp_path: Path) -> None:
    pack = """
    pack: p
    rules:
      - {name: once, tools: [pay], check: 'count_calls(state.ledger, action.tool) == 0'}
      - {name: by_day, check: now.getHours() == 12}
    """
    rules, history = book(tmp_path, pack), History()
    first = judge(rules, "pay", {"amount": 1}, history=history)
    assert first.reads == {'count_calls("pay")': 0, "now": "2026-08-01T12:00:00Z"}
    history.executed("pay", {"amount": 1}, "ok", None, step=1)
    assert rules_of(judge(rules, "pay", {"amount": 1}, history=history)) == {"failed": ["p/once"]}


def test_quick_and_thorough_judgement_agree_on_what_was_read(tmp_path: Path) -> None:
    """A failing rule beside passing ones: the reads of the passing ones are those of an allowed call."""
    rules = book(tmp_path, VIP + "      - {name: small, tools: [pay], check: action.args.amount < 10.0}\n")
    allowed = judge(rules, "pay", {"amount": 5}, facts={"vip": True})
    denied = judge(rules, "pay", {"amount": 50}, facts={"vip": True})
    assert dict(allowed.reads, **{"action.args.amount": 50}) == denied.reads
    assert allowed.applied == denied.applied == 2
