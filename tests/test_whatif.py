"""What other packs would have said to recorded runs: what is new, by which rule, and how far that is certain."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from ledgercli.errors import InvalidDocumentError, UnreadableInputError
from ledgercli.guard import Guard
from ledgercli.replay.whatif import WhatIf, WhatIfs
from tests import books

TOOLS = """
    toolset: t
    redact: [login.args.code]
    tools:
      login:
        access: read
        args: {user: {type: string}, code: {type: string, default: ""}}
        on_success: {set: {facts.user: action.args.user, facts.code: action.args.code}}
      pay:
        args: {amount: {type: number}}
        on_success: {set: {facts.paid: action.args.amount}}
"""
THEN = """
    pack: p
    version: 1
    constraints: {most: 100}
    rules:
      - name: not_too_much
        tools: [pay]
        check: action.args.amount <= state.constraints.most
        on_fail: {error: "That is too much."}
      - name: users_pay
        tools: [pay]
        check: state.facts.user != ''
        on_fail: {error: "Nobody is logged in."}
"""
Judge = Callable[..., WhatIf]
PAYS = (("login", {"user": "lei"}), ("pay", {"amount": 50}), ("pay", {"amount": 200}), ("pay", {"amount": 70}))


@pytest.fixture
def judge(tmp_path: Path) -> Judge:
    """Record a run under `THEN` (or `then`), and judge it by packs that are given as text."""

    def judged(*now: str, then: str = THEN, calls: Any = PAYS, shadow: bool = False, **more: Any) -> WhatIf:
        rules = books.book(tmp_path, then, tools=TOOLS, shadow=shadow)
        ledger = tmp_path / "a.ledger.jsonl"
        ledger.unlink(missing_ok=True)
        with Guard(rulebook=rules, ledger=ledger, shadow=shadow, clock=lambda: books.NOW, sync="none") as guard:
            for tool, args in calls:
                verdict = guard.check(tool, args)
                if verdict.runs:
                    guard.record(verdict, None)
        files = []
        for number, text in enumerate(now):
            files.append(tmp_path / f"now{number}.yaml")
            files[-1].write_text(dedent(text).lstrip())
        return WhatIfs([str(file) for file in files], **more).judge(ledger)

    return judged


def told(found: WhatIf) -> list[tuple[int, str, str | None, bool]]:
    return [(flip.step, flip.change, flip.rule, flip.exact) for flip in found.flips]


def test_the_same_rules_say_the_same(judge: Judge) -> None:
    found = judge(THEN)
    assert (told(found), found.frontier, found.proposals, found.status) == ([], None, 4, "completed")
    assert found.packs["p"].same


def test_what_is_newly_denied(judge: Judge) -> None:
    found = judge(THEN.replace("most: 100", "most: 60").replace("version: 1", "version: 2"))
    assert told(found) == [(4, "newly-denied", "p/not_too_much", True)]
    [flip] = found.flips
    assert (flip.recorded, flip.replayed, flip.reason) == ("allow", "deny", "That is too much.")
    assert flip.facts == {"action.args.amount": 70, "state.constraints.most": 60}
    assert (flip.tool, flip.args) == ("pay", {"amount": 70})
    assert flip.place is not None
    assert flip.place.endswith("now0.yaml:5")
    assert (found.packs["p"].then, found.packs["p"].now) == ("1", "2")


def test_what_is_newly_allowed_names_the_rule_of_then(judge: Judge) -> None:
    found = judge(THEN.replace("most: 100", "most: 300"))
    assert told(found) == [(3, "newly-allowed", "p/not_too_much", True)]
    assert (found.flips[0].recorded, found.flips[0].replayed, found.frontier) == ("deny", "allow", 3)
    assert found.flips[0].facts == {"action.args.amount": 200, "state.constraints.most": 100}


def test_what_is_newly_to_be_approved(judge: Judge) -> None:
    asks = THEN.replace('"That is too much."', '"That is too much.", effect: require_approval')
    assert told(judge(asks)) == [(3, "newly-to-approve", "p/not_too_much", True)]
    assert told(judge(asks.replace("most: 100", "most: 10")))[0] == (2, "newly-to-approve", "p/not_too_much", True)


def test_behind_the_first_change_nothing_is_certain(judge: Judge) -> None:
    found = judge(THEN.replace("most: 100", "most: 10"))
    assert told(found) == [(2, "newly-denied", "p/not_too_much", True), (4, "newly-denied", "p/not_too_much", False)]
    assert found.frontier == 2


def test_another_reason_or_hint_is_something_else_to_an_agent_and_no_change(judge: Judge) -> None:
    found = judge(THEN.replace("That is too much.", "Less, please."))
    assert (found.flips, found.frontier) == ((), 3)
    found = judge(THEN.replace('"That is too much."', '"That is too much.", hint: Ask for less.'))
    assert (found.flips, found.frontier) == ((), 3)


def test_a_warning_runs_as_an_allowance_does_and_still_tells_the_agent_something(judge: Judge) -> None:
    found = judge(THEN.replace("most: 100", "most: 60").replace('"That is too much."', '"Much.", effect: warn'))
    assert told(found) == [(3, "newly-allowed", "p/not_too_much", True)]
    found = judge(THEN.replace("most: 100", "most: 40").replace('"That is too much."', '"Much.", effect: warn'))
    assert told(found) == [(3, "newly-allowed", "p/not_too_much", False)]
    assert found.frontier == 2


def test_a_pack_may_stand_where_the_recorded_one_stood(judge: Judge, tmp_path: Path) -> None:
    """Who edits a pack in place asks about the file as it is now."""
    judge(THEN)
    ledger, pack = tmp_path / "a.ledger.jsonl", tmp_path / "pack0.yaml"
    assert books.lines_of(ledger)[0]["files"][0]["path"] == str(pack)
    pack.write_text(pack.read_text().replace("most: 100", "most: 60"))
    assert told(WhatIfs([str(pack)]).judge(ledger)) == [(4, "newly-denied", "p/not_too_much", True)]


ADDED = """
    pack: q
    constraints: {least: 60}
    rules:
      - name: not_too_little
        tools: [pay]
        check: action.args.amount >= state.constraints.least
        on_fail: {error: "Too little."}
"""


def test_a_pack_of_another_name_is_added_and_brings_its_constraints(judge: Judge) -> None:
    found = judge(ADDED)
    assert told(found) == [(2, "newly-denied", "q/not_too_little", True)]
    assert (found.packs["q"].then, found.packs["q"].now) == (None, "")
    assert found.packs["p"].same


def test_only_the_named_packs_judge(judge: Judge) -> None:
    found = judge(ADDED, only_packs=True)
    assert told(found) == [
        (2, "newly-denied", "q/not_too_little", True),
        (3, "newly-allowed", "p/not_too_much", False),
    ]
    assert (found.packs["p"].then, found.packs["p"].now) == ("1", None)


def test_a_default_that_a_run_had_changed_itself_stays(judge: Judge, tmp_path: Path) -> None:
    """The bound of then was the pack's own; one that the run was given is no default and stands."""
    rules = books.book(tmp_path, THEN, tools=TOOLS, constraints={"most": 80})
    ledger = tmp_path / "given.ledger.jsonl"
    with Guard(rulebook=rules, ledger=ledger, clock=lambda: books.NOW, sync="none") as guard:
        for tool, args in PAYS:
            verdict = guard.check(tool, args)
            if verdict.runs:
                guard.record(verdict, None)
    now = tmp_path / "now.yaml"
    now.write_text(dedent(THEN.replace("most: 100", "most: 10")).lstrip())
    assert WhatIfs([str(now)]).judge(ledger).flips == ()


def test_in_shadow_mode_it_is_what_the_rules_would_have_said_had_they_been_enforced(judge: Judge) -> None:
    found = judge(THEN.replace("most: 100", "most: 60"), shadow=True)
    assert told(found) == [(4, "newly-denied", "p/not_too_much", False)]
    assert found.frontier == 3  # then, it ran; these rules would have refused it


SECRET = [("login", {"user": "lei", "code": "secret-1"}), ("pay", {"amount": 50})]
CODED = """
      - name: known_code
        tools: [pay]
        check: state.facts.code == 'secret-1'
"""


def test_where_redaction_hid_a_needed_value_it_cannot_be_told(judge: Judge) -> None:
    found = judge(THEN + CODED, calls=SECRET)
    assert told(found) == [(2, "cannot-tell", "p/known_code", True)]
    assert found.frontier == 2
    assert "secret-1" not in str(found.flips)


def test_a_rule_that_has_not_changed_has_seen_the_value_itself(judge: Judge) -> None:
    longer = THEN.replace("state.facts.user != ''", "state.facts.code != 'x'")
    assert judge(longer, then=longer, calls=SECRET).flips == ()


def test_what_is_denied_without_the_hidden_value_is_denied(judge: Judge) -> None:
    found = judge((THEN + CODED).replace("most: 100", "most: 10"), calls=SECRET)
    assert told(found) == [(2, "newly-denied", "p/not_too_much", True)]


def test_packs_that_do_not_load_or_do_not_fit(judge: Judge) -> None:
    with pytest.raises(UnreadableInputError):
        WhatIfs(["nowhere.yaml"])
    with pytest.raises(InvalidDocumentError):
        judge(THEN.replace("facts.user ", "facts.usr "))
