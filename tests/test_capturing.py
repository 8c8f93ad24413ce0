"""`ledger capture`: recorded steps made cases, added to files of which every byte stays."""

from __future__ import annotations

import json
import resource
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ledgercli.capture.capturing import Capturing, Wish
from ledgercli.capture.casefile import CaseFile
from ledgercli.capture.pseudonyms import Pseudonyms
from ledgercli.capture.recalling import steps
from ledgercli.capture.shrinking import Held, shrunk
from ledgercli.casework.casetext import case_in_line, case_lines
from ledgercli.documents import parse
from ledgercli.sources import Source
from tests import captures
from tests.captures import ALLOWED, CASES, DENIED, FREE, LOOKED, MASKED, SECRET, SOURCED, UNSEEN, WARNED
from tests.commands import Run, command_line

QUICK = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("desk")
    captures.write(folder)
    return folder


@pytest.fixture
def ledger(
    recorded: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Run]:
    shutil.copytree(recorded, tmp_path, dirs_exist_ok=True)
    with command_line(tmp_path, monkeypatch, capsys) as run:
        yield run


def data(text: str) -> Any:
    return parse(Source.of("x.cases.yaml", text)).data


def step(number: int) -> str:
    return f"run.ledger.jsonl@{number}"


# ---- what a case holds


def test_a_denied_step_is_printed_as_a_whole_file_with_what_its_verdict_needs(ledger):
    assert ledger("capture", step(DENIED)) == 0
    file = data(ledger.out)
    assert file["packs"] == ["desk.yaml"]
    assert file["tests"] == [
        {
            "name": "pay from run@3",
            "state": {"facts": {"user": "mia", "orders": {"#W1001": {"owner": "lei"}}}},
            "propose": {"tool": "pay", "args": {"amount": 20, "to": "#W1001"}},
            "expect": {"effect": "deny", "rules": ["own_order"], "error": "#W1001 is not of mia."},
        }
    ]
    assert ledger.err.splitlines() == [
        "kept 2 of 4 facts; they hold personal data? --pseudonyms renames values",
        "passes with desk.yaml; the recorded verdict was deny",
    ]
    Path("new.cases.yaml").write_text(ledger.out)
    assert ledger("test-policies", "new.cases.yaml") == 0


def test_a_past_step_stays_where_the_verdict_counts_it_and_no_other(ledger):
    assert ledger("capture", step(WARNED)) == 0
    [case] = data(ledger.out)["tests"]
    assert case["history"] == [{"tool": "look", "success": False}]
    assert case["expect"] == {"effect": "warn", "rules": ["not_after_failures"], "error": "Something failed."}


def test_an_allowed_step_is_captured_with_what_is_known_of_its_records_until_a_rule_denies_it(ledger):
    options = ("--expect", "deny", "--rule", "no_paid_orders", "--to", "later.cases.yaml")
    assert ledger("capture", step(ALLOWED), *options) == 0
    said = "fails with desk.yaml until the rule no_paid_orders exists; the recorded verdict was allow"
    assert said in " ".join(ledger.out.split())
    assert data(Path("later.cases.yaml").read_text())["tests"][0]["state"]["facts"]["orders"] == {
        "#W1002": {"owner": "mia", "total": 7, "paid": True}
    }
    assert ledger("test-policies", "later.cases.yaml") == 2
    Path("desk.yaml").write_text(captures.PACK + FREE)
    assert ledger("test-policies", "later.cases.yaml") == 0
    assert ledger("capture", step(ALLOWED), "--expect", "deny", "--rule", "no_paid_orders") == 0
    assert "passes with desk.yaml; the recorded verdict was allow" in ledger.err


def test_a_rule_that_is_nearly_there_is_named(ledger):
    assert ledger("capture", step(ALLOWED), "--expect", "deny", "--rule", "own_orders") == 0
    assert "did you mean own_order?" in ledger.err
    assert ledger("capture", step(ALLOWED), "--expect", "deny", "--rule", "own_order") == 0
    assert "fails with desk.yaml until the rule own_order fails there" in ledger.err
    assert ledger("capture", step(ALLOWED), "--expect", "deny") == 0
    assert "fails with desk.yaml until a rule says deny" in ledger.err


def test_a_pack_that_has_changed_is_told(ledger):
    Path("desk.yaml").write_text(captures.PACK.replace("'guest'", "'mia'"))
    assert ledger("capture", step(DENIED)) == 0
    assert "fails with desk.yaml, which now say deny by desk/known and desk/own_order" in ledger.err


@pytest.mark.parametrize(
    ("number", "why"),
    [
        (SOURCED, "the verdict hangs on source(state.facts.user)"),
        (SECRET, "its ledger has redacted what it calls with"),
    ],
)
def test_what_a_case_cannot_say_stays_in_the_ledger(ledger, number, why):
    Path("cases").mkdir()
    assert ledger("capture", step(number), "--to", "cases/new.cases.yaml") == 0
    assert why in " ".join(ledger.out.split())
    [case] = data(Path("cases/new.cases.yaml").read_text())["tests"]
    assert case["at"] == f"../run.ledger.jsonl@{number}"
    assert ledger("test-policies", "cases") == 0
    assert ledger("capture", step(number), "--pseudonyms") == 2
    assert "cannot have other names" in ledger.err


def test_what_was_redacted_and_read_is_no_case(ledger):
    assert ledger("capture", step(MASKED)) == 2
    assert "cannot be captured: its verdict read what the ledger has redacted" in ledger.err


# ---- the file


def test_a_file_that_is_there_keeps_every_byte_and_its_own_state_is_unset_where_it_matters(ledger):
    assert ledger("capture", step(ALLOWED), "--to", "desk.cases.yaml") == 0
    text = Path("desk.cases.yaml").read_text()
    added = (
        "\n  - name: pay from run@5\n"
        '    state: {facts: {orders: {"#W1002": {owner: mia}}, user: mia}}\n'
        '    propose: {tool: pay, args: {amount: 7, to: "#W1002"}}\n'
        "    expect: allow\n"
    )
    at = CASES.index("\n# the end")
    assert text == CASES[:at] + added + CASES[at:]
    assert ledger.out.startswith("added  desk.cases.yaml:13  pay from run@5\n")
    assert ledger("test-policies", "desk.cases.yaml") == 0


def test_what_the_file_says_and_nobody_knew_is_unset(ledger):
    Path("desk.cases.yaml").write_text(
        CASES.replace('"#W1002": {owner: lei}', '"#W9": {owner: lei}, "#W8": {owner: x}')
    )
    assert ledger("capture", step(UNSEEN), "--to", "desk.cases.yaml") == 0
    case = data(Path("desk.cases.yaml").read_text())["tests"][-1]
    assert case["unset"] == ['facts.orders["#W9"]']
    assert case["state"] == {"facts": {"user": "mia"}}
    assert ledger("test-policies", "desk.cases.yaml") == 0


@pytest.mark.parametrize(
    ("before", "ending", "mark"),
    [
        ("tests: []", "\n", ""),
        ("tests: []  # none yet", "\r\n", "\ufeff"),
        ("tests: [{name: a, propose: {tool: look, args: {id: x}}, expect: deny}]", "", ""),
        ("tests:\n- name: a\n  propose: {tool: look, args: {id: x}}\n  expect: |-\n    deny\n\n# end", "\r\n", ""),
        ("tests:\n- # a - b\n  name: a\n  propose: {tool: look, args: {id: x}}\n  expect: deny  # why", "", "\ufeff"),
    ],
)
def test_every_way_to_write_a_list_is_added_to(ledger, before, ending, mark):
    head = CASES.partition("tests:")[0].replace("user: guest", "user: lei")
    text = mark + (head + before + "\n").replace("\n", ending or "\n")
    text = text if ending else text.rstrip("\n")
    Path("odd.cases.yaml").write_bytes(text.encode())
    file = CaseFile.there("odd.cases.yaml")
    [found] = steps("run.ledger.jsonl", {DENIED})
    [added] = file.add([Capturing(found, file.group, Wish()).done()])
    file.write()
    assert added.outcome is not None and added.outcome.came == "passed"
    now = Path("odd.cases.yaml").read_bytes().decode()
    rest = iter(now.splitlines())
    assert all(line in rest for line in text.splitlines() if not line.startswith("tests: ["))
    assert ("\r\n" in now) == (ending == "\r\n")
    assert now.replace("\r\n", "").count("\r") == 0
    assert data(now)["tests"][-1]["name"] == "pay from run@3"


def test_the_files_of_a_run_are_found_from_another_folder(ledger, monkeypatch):
    Path("cases/deep").mkdir(parents=True)
    monkeypatch.chdir("cases")
    assert ledger("capture", f"../{step(DENIED)}", "--to", "deep/new.cases.yaml") == 0, ledger.err
    file = data(Path("deep/new.cases.yaml").read_text())
    assert (file["packs"], file["toolset"]) == (["../../desk.yaml"], "../../desk.tools.yaml")
    assert ledger("test-policies", "deep") == 0


def test_the_same_case_is_added_once_and_names_are_unique(ledger):
    assert ledger("capture", step(DENIED), "--to", "desk.cases.yaml") == 0
    once = Path("desk.cases.yaml").read_bytes()
    assert ledger("capture", step(DENIED), "--to", "desk.cases.yaml") == 0
    assert ledger.out.startswith("has    desk.cases.yaml:13  pay from run@3\n")
    assert Path("desk.cases.yaml").read_bytes() == once
    assert ledger("capture", step(DENIED), "--to", "desk.cases.yaml", "--expect", "allow") == 0
    assert "pay from run@3 (2)" in ledger.out
    assert ledger("capture", step(ALLOWED), "--to", "desk.cases.yaml", "--name", "a guest pays") == 2
    assert "desk.cases.yaml:7 is named a guest pays already" in ledger.err
    assert ledger("capture", step(ALLOWED), "--to", "desk.cases.yaml", "--name", "{x}: #\u202e y") == 0
    assert ledger("test-policies", "desk.cases.yaml", "--run", "x") == 0


def test_a_file_about_something_else_is_refused_with_what_differs(ledger):
    Path("other.yaml").write_text("pack: other\nrules: [{name: r, tools: [pay], check: action.args.amount < 1000}]\n")
    Path("other.cases.yaml").write_text(CASES.replace("desk.yaml", "other.yaml"))
    assert ledger("capture", step(DENIED), "--to", "other.cases.yaml") == 2
    assert ledger.err == (
        "error: other.cases.yaml judges by other; run.ledger.jsonl@3 needs desk\n"
        "  fix: add desk.yaml to its `packs:`, or another --to, or a new file\n"
    )
    Path("till.tools.yaml").write_text(captures.TOOLS.replace("toolset: desk", "toolset: till"))
    Path("other.cases.yaml").write_text(CASES.replace("desk.tools", "till.tools"))
    assert ledger("capture", step(DENIED), "--to", "other.cases.yaml") == 2
    assert "is about the toolset till; run.ledger.jsonl@3 was judged with desk" in ledger.err
    Path("desk.yaml").unlink()
    assert ledger("capture", step(DENIED)) == 2
    assert "was judged with the pack desk in desk.yaml, which is no file here" in ledger.err


def test_a_file_that_cannot_be_written_stays_as_it_was(ledger):
    file = Path("desk.cases.yaml")
    file.chmod(0o444)
    assert ledger("capture", step(DENIED), "--to", "desk.cases.yaml") == 4
    assert "is read-only" in ledger.err
    file.chmod(0o644)
    _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (64, most))  # as a disk that is full
    try:
        assert ledger("capture", step(DENIED), "--to", "desk.cases.yaml") == 4
        assert ledger("capture", step(DENIED), "--to", "new.cases.yaml") == 4
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
    assert file.read_text() == CASES
    assert sorted(one.name for one in Path().iterdir()) == [
        "desk.cases.yaml",
        "desk.tools.yaml",
        "desk.yaml",
        "run.ledger.jsonl",
    ]


def test_through_a_link_its_target_is_written(ledger):
    Path("cases").mkdir()
    Path("desk.cases.yaml").rename("cases/real.yaml")
    Path("cases/real.yaml").write_text(CASES)
    Path("desk.cases.yaml").symlink_to("cases/real.yaml")
    assert ledger("capture", step(DENIED), "--to", "desk.cases.yaml") == 0
    assert Path("desk.cases.yaml").is_symlink()
    assert "pay from run@3" in Path("cases/real.yaml").read_text()


# ---- other names


def test_other_names_are_given_everywhere_and_the_case_still_passes(ledger):
    assert ledger("capture", step(DENIED), "--pseudonyms") == 0
    assert not {"mia", "lei", "#W1001"} & set(ledger.out.replace('"', " ").replace("{", " ").split())
    [case] = data(ledger.out)["tests"]
    [(order, record)] = case["state"]["facts"]["orders"].items()
    user = case["state"]["facts"]["user"]
    assert case["propose"]["args"] == {"amount": 20, "to": order}
    assert order.startswith("#W") and len(order) == len("#W1001")
    assert record["owner"] != user
    assert case["expect"]["error"] == f"{order} is not of {user}."
    assert ledger.err.startswith("kept 2 of 4 facts, under other names\npasses with desk.yaml;")


def test_a_name_on_which_the_verdict_hangs_stays_and_is_told(ledger):
    assert ledger("capture", step(LOOKED), "--pseudonyms") == 0
    [case] = data(ledger.out)["tests"]
    assert case["state"] == {"facts": {"user": "mia"}}
    assert case["propose"]["args"]["id"] != "#W1001"
    assert "state.facts.user is as it was: the verdict hangs on it" in ledger.err


# ---- flips


def test_each_flip_becomes_a_case_that_expects_what_the_new_pack_says(ledger):
    Path("desk2.yaml").write_text(captures.PACK.replace("limit: 100", "limit: 5") + FREE)
    replay = ("replay", "run.ledger.jsonl", "--pack", "desk2.yaml", "--format", "jsonl")
    assert ledger(*replay, "--report", "whatif.jsonl") == 0
    Path("whatif.jsonl").write_text(Path("whatif.jsonl").read_text() * 2)
    assert ledger("capture", "--flips", "whatif.jsonl", "--to", "flips.cases.yaml") == 0, ledger.err
    file = data(Path("flips.cases.yaml").read_text())
    assert file["packs"] == ["desk2.yaml"]
    assert {case["name"]: case["expect"]["effect"] for case in file["tests"]} == {
        "pay from run@5": "deny",
        "pay from run@10": "deny",
    }
    assert "2 cases added; 2 of 2 pass with desk2.yaml" in ledger.out
    assert ledger("test-policies", "flips.cases.yaml") == 0
    Path("desk2.yaml").write_text(captures.PACK)
    assert ledger("capture", "--flips", "whatif.jsonl", "--to", "flips.cases.yaml") == 2
    assert "whatif.jsonl:1 says deny of run.ledger.jsonl@5, the packs say allow" in ledger.err


@pytest.mark.parametrize("text", ["", "{}", "[1]", "x", '{"schema": "whatif/1"}', '{"schema": "x/1", "step": 1}'])
def test_what_is_no_replay_has_no_flips(ledger, text):
    Path("whatif.jsonl").write_text(text)
    assert ledger("capture", "--flips", "whatif.jsonl", "--to", "flips.cases.yaml") == 2
    assert ledger.err.startswith("error: whatif.jsonl")


# ---- what holds of any values

TEXTS = st.text(max_size=12) | st.sampled_from(
    ["no", "null", "1e5", "#W1", "{x}", "a: b", "- a", "2026-01-01", "Lei Li"]
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(-1e6, 1e6).map(lambda one: round(one, 3)) | TEXTS,
    lambda below: st.lists(below, max_size=3) | st.dictionaries(TEXTS.filter(bool), below, max_size=3),
    max_leaves=12,
)  # fmt: skip


@QUICK
@given(st.dictionaries(st.sampled_from(["state", "history", "unset"]), VALUES, min_size=1))
def test_a_case_is_read_as_it_was_written(case):
    lines = "".join(f"{line}\n" for line in case_lines(case, "  "))
    assert json.dumps(data(f"cases: x\ntests:\n{lines}")["tests"]) == json.dumps([case])
    assert json.dumps(data(f"cases: x\ntests: [{case_in_line(case)}]\n")["tests"]) == json.dumps([case])


@QUICK
@given(st.sets(st.integers(0, 9)), st.sets(st.integers(0, 5)), st.lists(st.booleans(), min_size=8, max_size=8))
def test_what_is_left_is_needed(facts, steps, odd):
    """Whatever is needed: each thing that stays, left out alone, changes the answer."""

    def holds(held: Held) -> bool:
        has = {path[1] for path in held.known}
        past = [one["tool"] for one in held.past]
        return (facts <= has and steps <= set(past)) or odd[(len(has) * 3 + sum(past)) % 8]

    whole = Held({("facts", number): number for number in range(10)}, (), [{"tool": n} for n in range(6)])
    if holds(whole):
        held = shrunk(whole, holds)
        assert holds(held)
        for path in held.known:
            assert not holds(Held({one: 0 for one in held.known if one != path}, (), held.past))
        for number in range(len(held.past)):
            assert not holds(Held(held.known, (), [*held.past[:number], *held.past[number + 1 :]]))


PEOPLE = st.lists(
    st.from_regex(r"[a-z]{3,8}_[a-z]{3,8}_[0-9]{4}", fullmatch=True) | st.from_regex(r"#W[0-9]{4,7}", fullmatch=True),
    min_size=1,
    max_size=6,
)


@QUICK
@given(PEOPLE, st.integers(), st.dates())
def test_other_names_keep_what_is_equal_and_how_it_looks(people, number, day):
    case = {
        "state": {"facts": {"users": dict.fromkeys(people, number), "text": f"I am {people[0]}.", "day": str(day)}},
        "propose": {"tool": "pay", "args": {"who": people, "mail": f"{people[0]}@shop.test".replace("#", "")}},
    }
    names = Pseudonyms([])
    made = names.renamed(case)
    facts, args = made["state"]["facts"], made["propose"]["args"]
    assert made["propose"]["tool"] == "pay"
    assert facts["day"] == str(day)
    for old, new in zip(people, args["who"], strict=True):
        assert old != new and len(old) == len(new)
        assert [one.isdigit() for one in old] == [one.isdigit() for one in new]
        assert (old[:2] == "#W") == (new[:2] == "#W")
    assert len(set(args["who"])) == len(set(people))
    assert list(facts["users"]) == list(dict.fromkeys(args["who"]))
    assert set(facts["users"].values()) == {number}
    assert facts["text"].endswith(f"{args['who'][0]}.")
    assert args["mail"] == f"{args['who'][0]}@example.com".replace("#", "")
    assert names.renamed(case) == made
