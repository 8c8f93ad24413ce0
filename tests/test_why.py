"""Why a verdict is what it is: each statement of an account, on small ledgers."""

from __future__ import annotations

import re
from contextlib import suppress
from itertools import combinations
from pathlib import Path

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledgercli.cli import main
from ledgercli.errors import InvalidDocumentError, LedgerCliError, LedgerFormatError, UnreadableInputError
from ledgercli.guard import Guard
from ledgercli.history import History
from ledgercli.paths import ABSENT, PathError
from ledgercli.records import Proposal, digest
from ledgercli.shelf import Shelf
from ledgercli.why.accounts import phrase, to_json
from ledgercli.why.explaining import at
from ledgercli.why.situations import Change, Situation
from ledgercli.why.smallest import Search
from tests import books
from tests.books import NOW
from tests.forging import sealed

TOOLS = """
    toolset: shop
    redact: [vault.data.secret]
    tools:
      login:
        access: read
        args: {user: {type: string}}
        returns: {type: object, properties: {id: {type: string}}}
        on_success: {set: {facts.user: result.data, flags.logged_in: true}}
      vault:
        access: read
        returns: {type: object, properties: {secret: {type: string}}}
        on_success: {set: {facts.vault: result.data}}
      look:
        access: read
        args: {id: {type: string}}
        returns: {type: object, properties: {owner: {type: string}, total: {type: number}, status: {type: string}}}
        on_success: {set: {'facts.orders[action.args.id]': result.data}}
      ask:
        access: read
        args: {question: {type: string}}
        run: {user: {}}
      pay:
        args: {id: {type: string}, amount: {type: number}, note: {type: string, default: ""}, fast: {type: boolean, default: false}}
"""
PACK = """
    pack: p
    constraints: {limit: 100}
    define: {order: "state.facts.orders[action.args.id]"}
    rules:
      - {name: logged_in, tools: [pay], check: state.flags.logged_in == true}
      - name: below_limit
        tools: [pay]
        check: action.args.amount * 2.0 <= double(state.constraints.limit)
        on_fail: {error: "{action.args.amount} is too much.", hint: Pay less.}
      - {name: own_order, tools: [pay], check: order.owner == state.facts.user.id}
      - {name: fast_is_small, tools: [pay], condition: "action.args.amount > 0.0 && action.args.fast", check: action.args.amount < 5.0}
      - {name: looked, tools: [pay], check: 'succeeded(state.ledger, "look", {"id": action.args.id})'}
      - {name: noted, tools: [pay], check: action.args.note != "?", on_fail: {effect: warn}}
      - {name: big, tools: [pay], check: action.args.amount != 13.0, on_fail: {effect: require_approval}}
      - {name: login_once, tools: [login], check: state.flags.logged_in != true}
"""
RESULTS = {
    "login": {"id": "lei"},
    "vault": {"secret": "sesame"},
    "look": {"owner": "lei", "total": 60, "status": "sent"},
}
LOGIN, LOOK = ("login", {"user": "lei"}), ("look", {"id": "#W1"})
PAY = {"id": "#W1", "amount": 60}


@pytest.fixture
def run(tmp_path):
    """Judge calls one after another, write their ledger and return its path; `user` is what a user says unasked."""

    def make(*calls, pack=PACK, tools=TOOLS, task="pay #W1", end=True, shadow=False, **more):
        path = tmp_path / f"w{len(list(tmp_path.glob('*.jsonl')))}.ledger.jsonl"
        rules = books.book(tmp_path, pack, tools=tools, task=task, shadow=shadow)
        proceed(books.guard(rules, path, **more), calls, end=end)
        return str(path)

    return make


def proceed(guard, calls, *, end=True):
    for tool, args in calls:
        if tool == "user":
            guard.said(args)
            continue
        verdict = guard.check(tool, args)
        if verdict.runs:
            guard.record(verdict, RESULTS.get(tool, "fine"))
    if end:
        guard.close()


def ruling(account, name):
    [found] = [one for one in account.rulings if one.name == f"p/{name}"]
    return found


def said(account):
    return {one.name.removeprefix("p/"): one.said.says for one in account.rulings}


def notes(one):
    return {seen.name: (seen.value, seen.note) for seen in one.reads}


# ---- what each rule said


def test_rules_fail_pass_and_do_not_apply_and_those_of_other_tools_are_told_apart(run):
    account = at(run(LOGIN, LOOK, ("pay", PAY)), 3).account
    assert said(account) == {
        "logged_in": "pass",
        "below_limit": "fail",
        "own_order": "pass",
        "fast_is_small": "n/a",
        "looked": "pass",
        "noted": "pass",
        "big": "pass",
    }
    assert [one.name for one in account.others] == ["p/login_once"]
    assert account.others[0].because[0].text == 'action.tool in ["login"]'
    assert (account.step, account.verdict.effect, account.recorded.effect) == (3, "deny", "deny")
    assert ruling(account, "below_limit").finding.error == "60 is too much."
    assert account.differing == []


def test_a_rule_that_does_not_apply_names_the_conjunct_that_is_false_and_not_those_that_hold(run):
    one = ruling(at(run(LOGIN, LOOK, ("pay", PAY)), 3).account, "fast_is_small")
    [because] = one.said.because
    assert (because.text, because.answer.value, because.reads) == (
        "action.args.fast",
        False,
        {"action.args.fast": False},
    )


def test_what_was_computed_on_the_way_is_told_with_its_value(run):
    check = ruling(at(run(LOGIN, LOOK, ("pay", PAY)), 3).account, "below_limit").said.check
    assert {part.text: part.value for part in check.parts} == {
        "action.args.amount * 2.0": 120.0,
        "double(state.constraints.limit)": 100.0,
    }
    assert check.reads == {"action.args.amount": 60, "state.constraints.limit": 100}


def test_what_was_read_is_told_with_the_step_that_established_it(run):
    account = at(run(LOGIN, LOOK, ("pay", PAY)), 3).account
    assert notes(ruling(account, "own_order")) == {
        'state.facts.orders["#W1"].owner': ("lei", "by look @2"),
        "state.facts.user.id": ("lei", "by login @1"),
        "action.args.id": ("#W1", ""),
    }
    question = 'succeeded(state.ledger, "look", {"id": "#W1"})'
    assert notes(ruling(account, "looked"))[question] == (True, "look succeeded @2")


def test_what_is_not_known_is_named_with_the_tools_that_can_set_it(run):
    account = at(run(("pay", PAY)), 1).account
    assert said(account)["own_order"] == "fail"
    one = ruling(account, "own_order")
    assert (one.said.check.answer.known, one.said.check.answer.missing) == (False, ('state.facts.orders["#W1"]',))


def test_effects_that_let_a_call_run_or_wait_are_explained_too(run):
    warned = at(run(LOGIN, LOOK, ("pay", {"id": "#W1", "amount": 1, "note": "?"})), 3).account
    assert (warned.verdict.effect, said(warned)["noted"], warned.way) == ("warn", "fail", None)
    path = run(LOGIN, LOOK, ("pay", {"id": "#W1", "amount": 13}))
    waits = at(path, 3).account
    assert (waits.verdict.effect, said(waits)["big"]) == ("require_approval", "fail")
    assert [one.name for [one] in waits.way.shown] == ["action.args.amount"]


# ---- where arguments come from, what nobody read


def test_every_argument_has_its_origin(run):
    calls = (
        LOGIN,
        LOOK,
        ("user", "at most 7, please"),
        ("pay", {"id": "#W1", "amount": 7, "note": "sent", "fast": True}),
    )
    places = {one.name: one.place for one in at(run(*calls), 4).account.arguments}
    assert {name: place.text for name, place in places.items()} == {
        "id": "in the task",
        "amount": "first said by the user @3",
        "note": "first in a result of look @2",
        "fast": "empty, yes or no: not traced",
    }
    account = at(run(("pay", {"id": "#W9", "amount": 7})), 1).account
    assert {one.place.kind for one in account.arguments} == {"nowhere"}


def test_facts_about_the_same_records_that_no_rule_read_are_told(run):
    account = at(run(LOGIN, LOOK, ("pay", {"id": "#W1", "amount": 7})), 3).account
    assert {one.name: one.value for one in account.unread} == {
        'state.facts.orders["#W1"].total': 60,
        'state.facts.orders["#W1"].status': "sent",
    }


# ---- the smallest change


def ways(path, step, packs=None):
    account = at(path, step, packs).account
    return {" and ".join(phrase(one) for one in way): [one.value for one in way] for way in account.way.shown}


def test_the_smallest_change_is_named_and_the_tools_that_could_bring_it_about(run):
    path = run(LOGIN, LOOK, ("pay", PAY))
    assert ways(path, 3) == {"with action.args.amount": [50.0], "with state.constraints.limit": [120]}
    account = at(run(LOOK, ("pay", {"id": "#W1", "amount": 7})), 2).account
    assert account.way.found.why == "found"
    assert {len(way) for way in account.way.shown} == {2}
    assert account.way.tools["state.flags.logged_in"] == ["login"]


def test_what_was_only_watched_has_its_way_out_as_if_enforced(run, capsys):
    path = run(LOGIN, LOOK, ("pay", PAY), shadow=True)
    assert ways(path, 3) == {"with action.args.amount": [50.0], "with state.constraints.limit": [120]}
    account = at(path, 3).account
    assert (account.verdict.effect, ruling(account, "below_limit").shadow) == ("allow", True)
    assert at(path, 1).account.way is None
    assert (main(["why", f"{path}@3"]), "enforced, it would have passed" in capsys.readouterr().out) == (0, True)


def test_a_rule_that_is_only_watched_needs_no_way_out(run):
    pack = "pack: p\nrules: [{name: never, mode: shadow, tools: [pay], check: 'false'}]"
    for shadow in (False, True):
        account = at(run(("pay", PAY), pack=pack, shadow=shadow), 1).account
        assert (account.verdict.effect, said(account), account.way) == ("allow", {"never": "fail"}, None)


def test_no_more_of_a_record_is_made_up_than_is_needed(run):
    pack = "pack: p\nrules: [{name: r, tools: [pay], check: 'state.facts.orders[action.args.id].total > 5.0'}]"
    account = at(run(("pay", PAY), pack=pack), 1).account
    assert {one.name: one.value for [one] in account.way.shown} == {'state.facts.orders["#W1"]': {"total": 5.01}}


def test_an_error_in_what_a_ledger_carries_names_the_ledger(run, tmp_path):
    path = Path(run(LOGIN))
    for old, new, error in (("pack: p", "pack: [", InvalidDocumentError), ("pack: p", "pack: q", LedgerFormatError)):
        first, *lines = [orjson.loads(line) for line in path.read_bytes().splitlines()]
        [pack] = [file for file in first["files"] if file["kind"] == "pack"]
        pack["text"] = pack["text"].replace(old, new)
        pack["digest"] = digest(pack["text"].encode())
        forged = tmp_path / "forged.ledger.jsonl"
        forged.write_bytes(b"".join(sealed([first, *lines])))
        with pytest.raises(error, match=re.escape(str(forged))):
            at(str(forged), 1)


def test_a_call_that_was_not_made_before_is_named(run):
    pack = 'pack: p\nrules: [{name: looked, tools: [pay], check: \'succeeded(state.ledger, "look", {"id": action.args.id})\'}]'
    path = run(("look", {"id": "#W2"}), ("pay", PAY), pack=pack)
    assert ways(path, 2) == {
        'if look(id="#W1") had succeeded before': [True],
        "with action.args.id": ["#W2"],
    }
    [seen] = [one for one in ruling(at(path, 2).account, "looked").reads if one.asked]
    assert seen.note == 'look ran once, @1, with id "#W2"'


def test_what_nothing_lets_pass_is_said(run):
    path = run(("pay", PAY), pack="pack: p\nrules: [{name: never, tools: [pay], check: 'false'}]")
    found = at(path, 1).account.way.found
    assert (found.why, found.names) == ("nothing", ("p/never",))
    unknown = at(run(("nosuch", {})), 1).account
    assert (unknown.rulings[0].name, unknown.way.found.why) == ("unknown_tool", "nothing")


def test_a_masked_value_is_not_shown_and_not_guessed_at(run):
    pack = "pack: p\nrules: [{name: r, tools: [pay], check: state.facts.vault.secret == 'x'}]"
    path = run(("vault", {}), ("pay", PAY), pack=pack)
    account = at(path, 2).account
    assert account.masked
    assert (account.way.found.why, account.way.found.names) == ("masked", ("state.facts.vault.secret",))
    assert "sesame" not in repr(to_json(account))


# ---- other packs, other steps


def test_other_packs_judge_anew(run, tmp_path):
    path = run(LOGIN, LOOK, ("pay", PAY))
    milder = tmp_path / "milder.yaml"
    milder.write_text(
        "pack: p\nconstraints: {limit: 500}\nrules: [{name: below_limit, tools: [pay], check: action.args.amount <= double(state.constraints.limit)}]"
    )
    explained = at(path, 3, Shelf([str(milder)]))
    assert (explained.account.verdict.effect, explained.account.recorded.effect) == ("allow", "deny")
    assert list(explained.changed.replaced) == ["p"]
    assert notes(ruling(explained.account, "below_limit"))["state.constraints.limit"][0] == 500


def test_a_step_after_a_rollback_is_explained_by_the_state_that_it_led_to(run, tmp_path):
    path = run(LOGIN, LOOK, ("pay", {"id": "#W1", "amount": 7}), end=False)
    proceed_from(path, rollback=1, calls=[("pay", {"id": "#W1", "amount": 7})])
    assert at(path, 3).account.verdict.effect == "allow"
    after = at(path, 4).account
    assert (after.verdict.effect, said(after)["own_order"], said(after)["logged_in"]) == ("deny", "fail", "pass")
    assert notes(ruling(after, "logged_in"))["state.flags.logged_in"] == (True, "by login @1")
    assert after.differing == []


def proceed_from(path, *, rollback, calls):
    """Roll a run back, go on with it, and make sure that its ledger is one."""
    assert main(["rollback", f"{path}@{rollback}", "--reason", "wrong"]) == 0
    proceed(Guard.resume(path, clock=lambda: NOW, sync="none"), calls)
    books.kept(Path(path))


def test_a_step_after_a_resumption_with_other_packs_is_explained_by_those(run, tmp_path):
    path = run(LOGIN, LOOK, ("pay", PAY), end=False)
    milder = tmp_path / "milder.yaml"
    milder.write_text("pack: p\nrules: [{name: not_ten, tools: [pay], check: action.args.amount != 10.0}]\n")
    proceed(
        Guard.resume(path, [str(milder)], clock=lambda: NOW, sync="none"),
        [("pay", PAY), ("pay", {**PAY, "amount": 10})],
    )
    assert [at(path, step).account.verdict.effect for step in (3, 4, 5)] == ["deny", "allow", "deny"]
    assert set(said(at(path, 5).account)) == {"not_ten"}
    assert "below_limit" in said(at(path, 3).account)


def test_checkpoints_change_nothing(run):
    tools = TOOLS.replace("redact: [vault.data.secret]", "")  # what is masked no checkpoint holds
    plain, marked = (run(LOGIN, LOOK, ("pay", PAY), tools=tools, checkpoint=every) for every in (None, 1))
    assert any(line["kind"] == "checkpoint" for line in books.kept(Path(marked)))
    assert to_json(at(plain, 3).account) == to_json(at(marked, 3).account)


def test_what_was_never_judged_and_what_is_not_there_is_refused(run, tmp_path):
    path = run(LOGIN, ("user", "hello"))
    with pytest.raises(LedgerCliError, match="@2 is what a user said; it was not judged"):
        at(path, 2)
    for step in (0, 3):
        with pytest.raises(LedgerCliError, match="has 2 steps, 1 to 2"):
            at(path, step)
    damaged = tmp_path / "damaged.ledger.jsonl"
    damaged.write_bytes(Path(path).read_bytes().replace(b"hello", b"HELLO"))
    with pytest.raises(LedgerFormatError):
        at(str(damaged), 3)
    with pytest.raises(UnreadableInputError):
        at(str(tmp_path / "none.jsonl"), 1)


# ---- a property: what is named flips the verdict, and nothing smaller does

ATOMS = (
    "action.args.amount < 5.0",
    "action.args.amount > 50.0",
    "action.args.note == 'x'",
    "action.args.fast",
    "state.flags.logged_in",
    "state.facts.user.id == 'mia'",
    "state.facts.orders[action.args.id].owner == state.facts.user.id",
    "state.facts.orders[action.args.id].total <= action.args.amount",
)
CHECKS = st.lists(
    st.lists(st.sampled_from(ATOMS), min_size=1, max_size=2, unique=True).map(" || ".join), min_size=1, max_size=3
)
FACTS = {
    "user": {"id": "lei"},
    "orders": {
        "#W1": {"owner": "lei", "total": 60, "status": "new"},
        "#W2": {"owner": "mia", "total": 3, "status": "sent"},
    },
}
VALUES = {
    ("action", "args", "id"): ["#W1", "#W2", "#W3", ""],
    ("action", "args", "amount"): [4, 5, 50, 51, 3, 60, 61, 0],
    ("action", "args", "note"): ["x", ""],
    ("action", "args", "fast"): [True, False],
    ("state", "flags", "logged_in"): [True, False, ABSENT],
    ("state", "facts", "user", "id"): ["lei", "mia", "", ABSENT],
    ("state", "facts", "orders", "#W1", "owner"): ["lei", "mia", "", ABSENT],
    ("state", "facts", "orders", "#W1", "total"): [0, 3, 7, 60, ABSENT],
    ("state", "facts", "orders", "#W2", "owner"): ["lei", "mia", "", ABSENT],
    ("state", "facts", "orders", "#W2", "total"): [0, 3, 7, 60, ABSENT],
}


def flips_and_nothing_smaller_does(folder, checks, order, amount):
    rules = "".join(f"  - {{name: r{n}, tools: [pay], check: {check!r}}}\n" for n, check in enumerate(checks))
    book = books.book(folder, f"pack: p\nrules:\n{rules}", tools=TOOLS, facts=FACTS)
    state = book.initial_state(task="t")
    situation = Situation(
        Proposal("pay", {"id": order, "amount": amount, "note": "", "fast": False}), state, History("t"), NOW
    )
    if situation.passes(book.enforcer):
        return
    plan = book.enforcer.plan("pay")
    found = Search(book.enforcer, plan, book.vocabulary.tools["pay"]).run(situation)
    assert all(situation.changed(*way).passes(book.enforcer) for way in found.ways)
    size = len(found.ways[0]) if found.ways else 3
    changes = [Change(path, value) for path, values in VALUES.items() for value in values]
    for count in range(1, min(size, 3)):
        for way in combinations(changes, count):
            if len({one.at for one in way}) == count:
                with suppress(PathError):
                    assert not situation.changed(*way).passes(book.enforcer), way


GIVEN = given(CHECKS, st.sampled_from(["#W1", "#W2"]), st.sampled_from([7, 10, 60]))


@settings(max_examples=15, deadline=None)
@GIVEN
def test_the_named_change_flips_the_verdict_and_none_smaller_does(tmp_path_factory, checks, order, amount):
    flips_and_nothing_smaller_does(tmp_path_factory.mktemp("p"), checks, order, amount)


@pytest.mark.slow
@settings(max_examples=400, deadline=None)
@GIVEN
def test_the_named_change_flips_the_verdict_and_none_smaller_does_many_times(tmp_path_factory, checks, order, amount):
    flips_and_nothing_smaller_does(tmp_path_factory.mktemp("p"), checks, order, amount)
