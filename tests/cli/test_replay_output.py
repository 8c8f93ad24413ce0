"""What `ledger replay` shows, byte for byte: the same, divergences, what-ifs, gates and mistakes."""

from __future__ import annotations

import json
import os
import re
import shutil

import junitparser
import pytest

from tests import books, shops
from tests.cli.conftest import GOLDEN, PROJECT

pytestmark = pytest.mark.slow  # some eighty processes, each of which compiles a shop
FORMS = ("json", "jsonl", "markdown", "junit", "github")
NOW = "--pack now/support.yaml"


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """Ten runs at a returns desk, judged by version 2 of its pack; a few are odd. And version 3, with what is new."""
    made = tmp_path_factory.mktemp("replayed")
    before = os.getcwd()
    os.chdir(made)  # the ledgers name their files as they were given
    try:
        for name in ("then", "now", "ledgers"):
            os.mkdir(name)
        (made / "then/support.yaml").write_text(shops.before_the_rule().replace('include: ["ledgercli:loops"]\n', ""))
        rules = shops.book("then/support.yaml")
        odd = {
            2: {"owner": "mia_li_3668"},
            3: {"owner": "王芳_3668"},
            5: {"amount": 700.5},
            7: {"returnable": False},
            8: {"owner": "noah_brown_6181"},
        }
        for number in range(10):
            shops.refund(rules, made / f"ledgers/{410 + number:04}.ledger.jsonl", number, **odd.get(number, {}))
    finally:
        os.chdir(before)
    now = shops.with_the_rule().replace('include: ["ledgercli:loops"]\n', "")
    now = now.replace("amount <= 500", "amount <= 300").replace(
        "orders[action.args.order_id].returnable\n", "orders[action.args.order_id].returnable || true\n"
    )
    (made / "now/support.yaml").write_text(now)
    return made


@pytest.fixture
def desk(folder, written):
    shutil.copytree(written, folder, dirs_exist_ok=True)
    return folder


def forge(desk):
    """Three ledgers that say what did not happen, hashed anew."""

    def verdict(lines):
        order = shops.at_step(lines, 2)
        order["state_diff"][next(iter(order["state_diff"]))]["total"] = 0.5
        order["result"]["data"]["total"] = 0.5

    def state(lines):
        shops.at_step(lines, 1)["state_diff"]["facts.location"] = "\x1b[31mTianjin\u202e\n::error::x"

    def end(lines):
        lines[-1]["status"] = "halted"

    shops.linked(desk / "ledgers/0411.ledger.jsonl", verdict)
    for name, change in (("w1", state), ("w2", end)):
        books.carry_out(PROJECT / "fixtures/scenarios/weather.yaml", desk / f"ledgers/{name}.ledger.jsonl")
        shops.linked(desk / f"ledgers/{name}.ledger.jsonl", change)


def damage(desk):
    """Three ledgers that are damaged in different ways."""
    for name, old, new in (
        ("0412", b'"delivered"', b'"Delivered"'),
        ("0415", b'"prev"', b'"prve"'),
        ("0417", b"{", b"["),
    ):
        shops.torn(desk / f"ledgers/{name}.ledger.jsonl", old, new)


def test_the_same(desk, golden):
    golden(
        "replay-same",
        "ledger replay ledgers",
        "ledger replay ledgers/0410.ledger.jsonl",
        "ledger replay 'ledgers/041[0-4]*' --format json",
        "ledger replay ledgers --format jsonl",
        "ledger replay ledgers --format markdown",
    )


def test_divergences(desk, golden):
    forge(desk)
    golden(
        "replay-diverged",
        "ledger replay ledgers",
        "ledger replay ledgers/0411.ledger.jsonl",
        "ledger replay ledgers/w1.ledger.jsonl -v",
        *(f"ledger replay 'ledgers/w*' --format {form}" for form in FORMS),
    )


def test_what_other_rules_would_have_said(desk, golden):
    golden(
        "replay-whatif",
        f"ledger replay ledgers {NOW}",
        f"ledger replay ledgers {NOW} --list",
        f"ledger replay ledgers/0412.ledger.jsonl {NOW}",
        f"ledger replay ledgers/0410.ledger.jsonl {NOW}",
        "ledger replay ledgers --pack policies/limits_verified.yaml",
        "ledger replay ledgers --pack policies/weather.yaml --only-packs",
    )


def test_other_forms(desk, golden):
    golden(
        "replay-forms",
        *(f"ledger replay 'ledgers/041[1-5]*' {NOW} --fail-on newly-denied --format {form}" for form in FORMS),
    )


def test_gates(desk, golden):
    golden(
        "replay-gates",
        *(
            f"ledger replay 'ledgers/041[2-3]*' {NOW} --fail-on {change}"
            for change in ("newly-denied", "newly-allowed")
        ),
        f"ledger replay ledgers/0415.ledger.jsonl {NOW} --fail-on newly-to-approve",
        f"ledger replay ledgers/0417.ledger.jsonl {NOW} --fail-on newly-allowed,newly-to-approve",
        f"ledger replay ledgers/0410.ledger.jsonl {NOW} --fail-on any",
        f"ledger replay ledgers {NOW} --fail-on cannot-tell --format markdown",
    )


def test_damaged_ones_among_them(desk, golden):
    damage(desk)
    golden(
        "replay-damaged",
        "ledger replay ledgers",
        f"ledger replay ledgers {NOW} --fail-on newly-denied",
        "ledger replay ledgers --format github",
        "ledger replay ledgers/0412.ledger.jsonl",
    )


def test_mistakes(desk, golden):
    (desk / "now/broken.yaml").write_text(shops.with_the_rule().replace("amount <= 500", "amount <<= 500"))
    (desk / "now/tab.yaml").write_text("pack: x\n\trules: []\n")
    (desk / "nothing").mkdir()
    shutil.copy(desk / "then/support.yaml", desk / "gone.yaml")
    here = os.getcwd()
    os.chdir(desk)
    try:
        with shops.desk(shops.book("gone.yaml"), desk / "gone.ledger.jsonl", "Look.", reference=True) as call:
            call("check_return_policy", {"returnable": True, "reason": "30 days"}, order_id="#W1")
    finally:
        os.chdir(here)
    (desk / "gone.yaml").unlink()
    golden(
        "replay-errors",
        "ledger replay",
        "ledger replay ledgers --pack now/suport.yaml",
        "ledger replay ledgers --pack ledgercli:suport",
        "ledger replay nothing",
        "ledger replay 'ledgers/05*'",
        "ledger replay ledgers/0420.ledger.jsonl",
        "ledger replay now/support.yaml",
        "ledger replay ledgers --pack now/broken.yaml",
        "ledger replay ledgers --pack now/tab.yaml",
        f"ledger replay ledgers {NOW} --pack then/support.yaml",
        "ledger replay ledgers --fail-on any",
        f"ledger replay ledgers {NOW} --fail-on newly-alowed",
        "ledger replay ledgers --only-packs",
        "ledger replay gone.ledger.jsonl",
        f"ledger replay ledgers/0410.ledger.jsonl@3 {NOW}",
        "ledger replay ledgers/0410.ledger.jsonl@9",
        "ledger replay ledgers/0410.ledger.jsonl --path state.facts",
        "ledger replay ledgers/0410.ledger.jsonl@3 --format junit",
        "ledger replay ledgers --jobs 0",
        "ledger replay ledgers --report now/support.yaml",
    )


# ---- forms that others read


@pytest.mark.parametrize("more", [(), ("--pack", "now/support.yaml", "--fail-on", "newly-denied,newly-allowed")])
def test_junit_is_what_a_parser_of_others_reads(desk, ledger, more):
    forge(desk)
    damage(desk)
    ran = ledger("replay", "ledgers", *more, "--format", "junit", "--report", "found.xml")
    assert ran.code == 2
    xml = junitparser.JUnitXml.fromfile(str(desk / "found.xml"))
    [suite] = list(xml)
    cases = {case.name: case for case in suite}
    assert (xml.tests, suite.tests, len(cases)) == (12, 12, 12)
    came = {name: {type(result).__name__ for result in case.result} for name, case in cases.items()}
    wrong = {"0411", "w1", "w2"} if not more else {"0411", "0413", "0418"}
    ill = {"0412", "0415", "0417"} | ({"w1", "w2"} if more else set())  # the pack fits no weather
    assert {name for name, results in came.items() if results == {"Failure"}} == {
        f"ledgers/{name}.ledger.jsonl" for name in wrong
    }
    assert {name for name, results in came.items() if results == {"Error"}} == {
        f"ledgers/{name}.ledger.jsonl" for name in ill
    }
    assert (suite.failures, suite.errors) == (len(wrong), len(ill))
    failed = next(case for case in cases.values() if case.result)
    assert failed.result[0].message


def test_text_of_a_ledger_cannot_become_a_command_or_a_tag(desk, ledger):
    forge(desk)
    for form in ("text", "github", "junit", "markdown"):
        shown = ledger("replay", "ledgers/w1.ledger.jsonl", "--format", form).out.decode()
        assert "Tianjin" in shown
        assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e]", shown)
        assert not any(line.startswith("::error::x") for line in shown.splitlines())


def test_json_and_json_lines_say_the_same(desk, ledger):
    asked = ("replay", "ledgers", "--pack", "now/support.yaml", "--format")
    whole = json.loads(ledger(*asked, "json").out)
    lines = [json.loads(line) for line in ledger(*asked, "jsonl").out.splitlines()]
    packs = {"support": "now/support.yaml"}  # each line stands alone
    flat = [
        {"schema": "whatif/1", "ledger": run["ledger"], **change, "frontier": run["frontier"], "packs": packs}
        for run in whole["runs"]
        for change in run["changes"]
    ]
    assert lines == flat
    assert len(lines) == sum(count["proposals"] for name, count in whole["counts"].items() if name != "unchanged")


def test_under_github_actions_annotations_go_to_stderr_besides(desk, ledger):
    plain = ledger("replay", "ledgers", "--pack", "now/support.yaml", "--fail-on", "newly-denied")
    ran = ledger(
        "replay", "ledgers", "--pack", "now/support.yaml", "--fail-on", "newly-denied", env={"GITHUB_ACTIONS": "true"}
    )
    assert (ran.code, ran.out) == (1, plain.out)
    assert ran.err.startswith(b"::error ")
    assert b"file=now/support.yaml" in ran.err


def test_a_locale_without_unicode_gets_escapes(desk, ledger):
    for form in ("text", "markdown", "junit"):
        ran = ledger(
            "replay", "ledgers/0413.ledger.jsonl", "--pack", "now/support.yaml", "--format", form, env={"LANG": "C"}
        )
        assert ran.code == 0, ran.err
        if form == "text":
            assert "\\u738b\\u82b3" in ran.out.decode("ascii")


def test_only_addresses_and_places_make_a_line_longer_than_eighty_cells():
    from rich.cells import cell_len

    for name in ("replay-same", "replay-diverged", "replay-whatif", "replay-gates", "replay-damaged"):
        for part in re.split(r"^(?=\$ )", (GOLDEN / f"{name}.txt").read_text(), flags=re.MULTILINE):
            if "--format" not in part and " -v" not in part:
                assert [
                    line
                    for line in part.splitlines()[1:]
                    if cell_len(line) > 80 and "ledgers/" not in line and ".yaml:" not in line
                ] == []
