"""Every scenario that ships ends as it says, step by step; every case file names each rule both ways.

A step is written `effect tool outcome: rules`, the rules being those that failed, warned (`~`) or were overridden (`<`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from ledgercli.casework.groups import Group, Groups
from ledgercli.casework.judging import Judge
from ledgercli.casework.outcomes import Outcome
from ledgercli.casework.preparing import Preparer, Ready
from ledgercli.loop import Approver, Ended
from ledgercli.records import Verdict
from ledgercli.rules import Compiler
from ledgercli.runs import Job, Options, prepare
from ledgercli.validation import validate

ROOT = Path(__file__).parent.parent
SCENARIOS = ROOT / "fixtures" / "scenarios"

RUNS: dict[str, tuple[str, Any, list[str]]] = {
    "weather": (
        "completed",
        "Sunny and 22 degrees: a T-shirt will do.",
        ["allow get_weather ok", "allow give_suggestion ok"],
    ),
    "weather-shanghai": (
        "completed",
        "Cloudy and 26 degrees: take a light jacket.",
        ["allow get_weather ok", "allow give_suggestion ok"],
    ),
    "weather-london": (
        "completed",
        "Rainy and 12 degrees: take a coat and an umbrella.",
        ["allow get_weather ok", "allow give_suggestion ok"],
    ),
    "weather-beijing-zh": (
        "completed",
        "晴，22度：穿短袖就够了。",
        ["allow get_weather ok", "allow give_suggestion ok"],
    ),
    "weather-area51": ("halted", None, ["deny get_weather denied: weather/no_sensitive_locations"]),
    "weather-atlantis": ("failed", None, ["allow get_weather error"]),
    "weather-twice": (
        "completed",
        "Sunny and 22 degrees: a T-shirt will do.",
        [
            "allow get_weather ok",
            "deny get_weather denied: weather/no_weather_twice_in_a_row",
            "allow give_suggestion ok",
        ],
    ),
    "shop-return": (
        "completed",
        "Return R-8156 is registered for order #W2378156.",
        [
            "allow authenticate_user ok",
            "allow get_order ok",
            "allow check_return_policy ok",
            "allow create_return ok",
            "allow notify ok",
        ],
    ),
    "onboarding": (
        "completed",
        None,
        [
            "deny start_approval denied: onboarding/approval_needs_id",
            "allow upload_id ok",
            "allow start_approval ok",
        ],
    ),
    "trip": (
        "completed",
        "AF1234, Spree, Snow at 4 degrees.",
        [
            "allow get_weather ok",
            "allow find_flights ok",
            "allow book_flight ok",
            "allow plan ok",
            "allow find_hotels ok",
            "deny book_hotel denied: trip/hotel_within_budget",
            "deny plan denied: trip/no_room_no_goal",
            "allow book_hotel ok",
            "allow plan ok",
            "allow plan ok",
            "allow send_itinerary ok",
        ],
    ),
    "shop-subgoals": (
        "completed",
        None,
        [
            "allow get_order ok",
            "allow verify_identity ok",
            "allow authenticate_user ok",
            "allow notify ok",
        ],
    ),
    "shop-balance": (
        "completed",
        "The shop owes you 74.5.",
        [
            "deny view_balance denied: support/auth_required_for_sensitive_tools",
            "allow authenticate_user ok",
            "allow view_balance ok",
            "allow finish ok",
        ],
    ),
    "shop-guest": (
        "completed",
        "A kettle costs 39.5. Please log in to buy it.",
        [
            "allow search_products ok",
            "deny purchase denied: support/auth_required_for_sensitive_tools support/guests_do_not_write",
            "allow finish ok",
        ],
    ),
    "shop-failed-payment": (
        "completed",
        "The travel kettle is on its way.",
        [
            "allow verify_account ok",
            "allow charge error",
            "deny purchase denied: support/no_charge_after_failed_payment",
            "allow update_payment_method ok",
            "allow purchase ok",
            "allow finish ok",
        ],
    ),
    "shop-three-failures": (
        "halted",
        None,
        [
            "allow track_parcel error",
            "allow track_parcel error",
            "allow track_parcel error",
            "deny track_parcel denied: support/prevent_duplicate_failed_calls",
        ],
    ),
    "shop-transfer": (
        "completed",
        "60 went to 李蕾.",
        [
            "deny transfer denied: support/account_verified_by_tool support/payee_known_from_tool",
            "allow verify_account ok",
            "deny transfer denied: support/account_verified_by_tool support/payee_known_from_tool",
            "allow verify_account ok",
            "allow transfer ok",
            "allow finish ok",
        ],
    ),
    "shop-limits": (
        "completed",
        "320 come back to you, Mia Li.",
        [
            "allow authenticate_user ok",
            "allow get_order ok",
            "allow check_return_policy ok",
            "deny create_return denied: limits_unverified/limit_before_verification",
            "allow verify_identity ok",
            "allow create_return ok",
            "allow finish ok",
        ],
    ),
    "shop-admin": (
        "completed",
        "A credit of 50 was given.",
        [
            "allow authenticate_user ok",
            "allow give_credit ok: <goodwill/goodwill_is_small",
            "allow finish ok",
        ],
    ),
    "shop-login-required": (
        "completed",
        "Travel kettle",
        [
            "deny get_order denied: support/log_in_first",
            "allow authenticate_user ok",
            "allow get_order ok",
            "allow finish ok",
        ],
    ),
    "shop-approval": (
        "awaiting_approval",
        None,
        [
            "allow authenticate_user ok",
            "allow verify_identity ok",
            "allow get_order ok",
            "allow check_return_policy ok",
            "require_approval create_return waiting: support/refund_over_500",
        ],
    ),
    "shop-confirm": (
        "completed",
        "Your address is changed.",
        [
            "deny update_profile denied: confirm/confirmed_by_person",
            "allow confirm_call ok",
            "deny update_profile denied: confirm/confirmed_by_person",
            "allow confirm_call ok",
            "allow update_profile ok",
            "deny update_profile denied: confirm/confirmed_by_person",
            "allow finish ok",
        ],
    ),
    "shop-zh": (
        "completed",
        "李蕾，退货单号是R-8156。",
        [
            "allow authenticate_user ok",
            "allow get_order ok",
            "allow ask_customer ok",
            "allow check_return_policy ok",
            "allow create_return ok",
            "allow verify_account ok",
            "warn charge ok: ~提醒/费用上限提醒",
            "allow notify ok",
            "allow finish ok",
        ],
    ),
}


def lines_of(
    scenario: str, folder: Path, approver: Approver = lambda _proposal, _verdict: None
) -> tuple[Job, Ended, list[dict[str, Any]]]:
    """Run a scenario and return its job, how it ended, and its ledger's lines."""
    ledger = folder / "run.ledger.jsonl"
    [(_, jobs)] = prepare([str(SCENARIOS / f"{scenario}.yaml")], Options(out=str(ledger), sync="none"))
    [job] = jobs
    ended = job.run(None, approver, lambda _line: None)
    return job, ended, [json.loads(line) for line in ledger.read_text(encoding="utf-8").splitlines()]


def told(line: Mapping[str, Any]) -> str:
    """Write a step as in the table."""
    verdict = line["verdict"]
    rules = [
        mark + found["rule"]
        for key, mark in (("failed", ""), ("warned", "~"), ("overridden", "<"))
        for found in verdict.get(key, ())
    ]
    step = f"{verdict['effect']} {line['action']['tool']} {line['outcome']}"
    return f"{step}: {' '.join(rules)}" if rules else step


def steps(lines: list[dict[str, Any]]) -> list[str]:
    return [told(line) for line in lines if line["kind"] == "step"]


@pytest.mark.parametrize("scenario", RUNS)
def test_a_scenario_ends_as_it_says(scenario: str, tmp_path: Path) -> None:
    status, answer, expected = RUNS[scenario]
    job, ended, lines = lines_of(scenario, tmp_path)
    assert (ended.status, ended.answer) == (status, answer)
    assert steps(lines) == expected
    assert job.unmet(ended) == []
    assert lines[-1]["kind"] == "close"
    assert lines[-1]["status"] == status
    assert not [line["problems"] for line in lines if "problems" in line]


def test_every_scenario_is_in_the_table() -> None:
    found = {path.stem for path in SCENARIOS.glob("*.yaml") if path.read_text(encoding="utf-8").startswith("scenario:")}
    assert found - {"airline-recording"} == set(RUNS)


def test_every_scenario_but_the_first_example_is_a_test_of_itself() -> None:
    without = [name for name in RUNS if "\nexpect:" not in (SCENARIOS / f"{name}.yaml").read_text(encoding="utf-8")]
    assert without == ["weather"]  # its task is there to be changed


# ---- cases: `validate` checks their names, here each is judged by the enforcer


CASE_FILES = sorted((ROOT / "fixtures").rglob("*.cases.yaml"))


@cache
def group_of(file: Path) -> Group:
    group, problems = Groups().of(str(file))
    assert group is not None
    assert problems == []
    return group


@cache
def judged(file: Path) -> list[tuple[str, Outcome, str, Verdict]]:
    """Judge every case of a file: its name, what came of it, the tool, the verdict."""
    group = group_of(file)
    judge = Judge(group)
    out = []
    for case in Preparer(group).all():
        assert isinstance(case, Ready), case
        verdict = judge.verdict(case)
        out.append((case.name, judge.outcome(case, verdict), case.situation.proposal.tool, verdict))
    return out


@pytest.mark.parametrize("file", CASE_FILES, ids=lambda file: file.name)
def test_every_case_holds(file: Path) -> None:
    assert [name for name, outcome, _, _ in judged(file) if outcome.came != "passed"] == []


@pytest.mark.slow
@pytest.mark.parametrize("file", CASE_FILES, ids=lambda file: file.name)
def test_every_rule_fails_in_one_case_and_holds_in_another(file: Path) -> None:
    group = group_of(file)
    rules = {f"{pack.name}/{rule.name}" for pack in group.packs for rule in pack.file.rules if rule.check}
    failed: set[str] = set()
    held: set[str] = set()
    compiler = Compiler(group.rules.vocabulary, group.rules.packs)
    for _, _, tool, verdict in judged(file):
        now = {found.rule for found in (*verdict.failed, *verdict.warned)}
        about = {rule.name for pack in compiler.plan(tool).packs for rule in pack.rules}
        failed |= now
        held |= about - now
    assert rules - failed == set()
    assert rules - held == set()


def test_the_grant_of_an_administrator_is_what_lets_a_case_pass() -> None:
    overridden = [
        (name, [found.rule for found in verdict.overridden])
        for name, _, _, verdict in judged(ROOT / "fixtures" / "cases" / "goodwill.cases.yaml")
        if verdict.overridden
    ]
    assert overridden == [
        ("an administrator gives more, and again", ["goodwill/goodwill_is_small", "goodwill/goodwill_once"])
    ]


# ---- what single scenarios are there to show


@pytest.mark.parametrize(
    ("yes", "last"),
    [
        (True, ["require_approval create_return ok: support/refund_over_500", "allow finish ok"]),
        (False, ["deny create_return denied: support/refund_over_500", "allow finish ok"]),
    ],
)
def test_a_large_refund_goes_the_way_that_the_person_says(tmp_path: Path, yes: bool, last: list[str]) -> None:
    _, ended, lines = lines_of("shop-approval", tmp_path, lambda _proposal, _verdict: (yes, "a person"))
    assert ended.status == "completed"
    assert steps(lines)[-2:] == last
    [approval] = [line for line in lines if line["kind"] == "approval"]
    assert (approval["answer"], approval["by"]) == ("yes" if yes else "no", "a person")


def test_a_missing_fact_names_the_tool_that_can_establish_it(tmp_path: Path) -> None:
    _, _, lines = lines_of("shop-balance", tmp_path)
    verdict = next(line["verdict"] for line in lines if line["kind"] == "step")
    assert verdict["missing"] == ["state.facts.user_authenticated"]
    assert verdict["establish"] == ["authenticate_user"]


def test_subgoals_close_in_the_order_in_which_they_are_reached(tmp_path: Path) -> None:
    _, _, lines = lines_of("shop-subgoals", tmp_path)
    closed = [{path for path in line.get("state_diff", ()) if path.startswith("goals.")} for line in lines]
    assert [paths for paths in closed if paths] == [
        {"goals.find_order"},
        {"goals.verify_customer"},
        {"goals.log_in", "goals.prepare"},
        {"goals.thank"},
    ]
    current = [line["state_diff"]["goal"] for line in lines if "goal" in line.get("state_diff", ())]
    assert current == ["thank", ""]  # the first open leaf stayed `log_in` while others closed


def test_an_unverified_limit_gives_way_to_the_verified_one(tmp_path: Path) -> None:
    _, _, lines = lines_of("shop-limits", tmp_path)
    refused, allowed = (
        line["verdict"]["reads"]
        for line in lines
        if line["kind"] == "step" and line["action"]["tool"] == "create_return"
    )
    assert "state.constraints.limit_unverified" in refused
    assert "state.constraints.limit_verified" not in refused
    assert "state.constraints.limit_verified" in allowed
    assert "state.constraints.limit_unverified" not in allowed


def test_a_login_code_stands_in_no_step(tmp_path: Path) -> None:
    _, _, lines = lines_of("shop-return", tmp_path)
    assert "4711-9" in json.dumps(lines[0]["files"])  # the scenario's own text holds it, as the README says
    assert "4711-9" not in json.dumps(lines[1:])


def test_all_shipped_files_are_valid(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    found = validate(["policies", "fixtures"])
    assert found.pressing == []
    assert found.counts["scenario"] > len(RUNS)
    assert found.counts["pack"] >= 9
