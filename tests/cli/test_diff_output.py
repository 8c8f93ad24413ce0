"""What `ledger diff` prints, byte for byte, and its exit codes."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ledgercli import records
from ledgercli.reports.cells import WIDTH, cells
from tests import stories
from tests.cli.conftest import Run
from tests.stories import LATER, call, opening, rollback, unique, write

Golden = Callable[..., None]
A, B = "gpt-4o/refund-17.ledger.jsonl", "sonnet/refund-17.ledger.jsonl"
EVIL = "</code>|`x`\n::error::y\x1b[31m\u202e<b>@you [a](https://b) www.c.d ![e](f) &amp; *g* _h_"


def trials(folder: Path, name: str, passed: int, of: int, rule: str, denied: int = 1) -> None:
    for number in range(of):
        good = number < passed
        rows = [unique(1), unique(2)] + ([] if good else [call("pay", rule=rule)] * denied)
        status: records.Status = "completed" if good else "halted"
        write(folder / name / f"trial-{number + 1}.ledger.jsonl", rows, status=status, first=opening(name))


def two_folders(folder: Path) -> None:
    """Scenarios that got better, worse, stayed, came and went."""
    for side, rates in (
        ("gpt-4o", {"refund-17": 1, "exchange-02": 1, "cancel-09": 5, "guest-01": 4, "address-03": 5}),
        ("sonnet", {"refund-17": 5, "exchange-02": 4, "cancel-09": 2, "guest-01": 3, "address-03": 5}),
    ):
        for name, passed in rates.items():
            rule = "refund_of_own_order" if name < "d" else "auth_required_for_sensitive_tools"
            trials(folder / "runs" / side, name, passed, 5, rule, denied=1 + len(side) // 6)
    trials(folder / "runs/sonnet", "new-04", 1, 1, "no")


# Two ledgers


def test_two_ledgers(folder: Path, golden: Golden) -> None:
    stories.refunds(folder)
    golden(
        "diff-ledgers",
        f"ledger diff {A} {B}",
        f"ledger diff {A} {B} --only verdict",
        f"ledger diff {A} {B} --only state --fail-on verdicts",
        f"ledger diff {A} {A}",
    )


@pytest.mark.slow
def test_runs_of_the_fixtures(folder: Path, ledger: Run, golden: Golden) -> None:
    for name in ("weather", "weather-twice", "shop-limits", "shop-approval"):
        ledger("run", "-q", f"fixtures/scenarios/{name}.yaml", "--out", f"{name}.ledger.jsonl")
    ledger("run", "-q", "fixtures/scenarios/weather.yaml", "--out", "again.ledger.jsonl")
    golden(
        "diff-fixtures",
        "ledger diff weather.ledger.jsonl again.ledger.jsonl",
        "ledger diff weather.ledger.jsonl weather-twice.ledger.jsonl",
        "ledger diff shop-limits.ledger.jsonl shop-approval.ledger.jsonl --ignore action.args.order_id",
    )


@pytest.mark.slow
def test_a_shared_past_and_a_rollback(folder: Path, golden: Golden) -> None:
    rows = [call("look", {"n": number}, sets={f"facts.x{number}": number}, n=number) for number in range(6)]
    older = write(folder / "a.ledger.jsonl", rows)
    state = {**stories.STATE, "facts": {**stories.STATE["facts"], **{f"x{n}": n for n in range(4)}}}
    digest = records.digest(older.read_bytes().splitlines(keepends=True)[4])
    origin = {"ledger": "a.ledger.jsonl", "run": "01K", "step": 4, "digest": digest}
    first = opening(state=state, run="01L") | {"from": origin}
    write(folder / "b.ledger.jsonl", rows[4:], first=first, at=LATER)
    write(folder / "c.ledger.jsonl", [rows[4], call("pay", amount=5)], first=first, at=LATER)
    write(folder / "d.ledger.jsonl", [*rows, rollback(4, unsets=["facts.x4", "facts.x5"])], status="interrupted")
    golden(
        "diff-shared",
        "ledger diff a.ledger.jsonl b.ledger.jsonl",
        "ledger diff c.ledger.jsonl a.ledger.jsonl",
        "ledger diff a.ledger.jsonl d.ledger.jsonl",
    )


@pytest.mark.slow
def test_what_is_much_is_cut_and_whole_with_v(folder: Path, ledger: Run) -> None:
    long = "很长" * 100
    write(folder / "a", [call("pay", note=long, n=number) for number in range(300)])
    write(folder / "b", [call("pay", note=long + "!", n=number) for number in range(300)] + [call("look")] * 50)
    shown = ledger("diff", "a", "b").out.decode()
    assert "... and 100 changed, 0 only in A, 50 only in B: -v shows all" in shown
    assert max(map(cells, shown.splitlines())) <= WIDTH
    assert "proposals  300 changed, 50 only in B" in shown
    everything = ledger("diff", "a", "b", "-v").out.decode()
    assert everything.count(" ~  pay") == 300
    assert everything.count(" +  look()") == 50
    assert f'B "{long}!"' in everything
    data = json.loads(ledger("diff", "a", "b", "--format", "json").out)
    assert sum(row["sign"] == "~" for row in data["rows"]) == 300
    assert len(ledger("diff", "a", "b", "--format", "markdown").out) < 65_536  # what a comment may be long


def test_many_steps_on_one_side_are_cut(folder: Path, ledger: Run) -> None:
    write(folder / "a", [unique(0)])
    write(folder / "b", [unique(number) for number in range(1001)])
    shown = ledger("diff", "a", "b").out.decode()
    assert shown.count(" +  ") == 200
    assert "... and 0 changed, 0 only in A, 800 only in B: -v shows all" in shown
    assert ledger("diff", "b", "a", "-v").out.decode().count(" -  ") == 1000


@pytest.mark.parametrize("form", ["text", "markdown"])
def test_hostile_text_stays_text(folder: Path, ledger: Run, form: str) -> None:
    first = opening(EVIL, engine={"kind": "model", "model": EVIL})
    rows = [
        call(EVIL, {EVIL: EVIL}, **{EVIL: EVIL}),
        call("pay", rule=EVIL),
        call("look", reads={"state.facts.x": EVIL}),
    ]
    other = [call(EVIL, {EVIL: 1}, **{EVIL: 1}), call("pay"), call("look"), call(EVIL, x=EVIL)]
    write(folder / "a.ledger.jsonl", rows, first=first, answer=EVIL)
    write(folder / "b.ledger.jsonl", other)
    ran = ledger("diff", "a.ledger.jsonl", "b.ledger.jsonl", "--format", form, env={"GITHUB_ACTIONS": "true"})
    said = ran.out.decode()
    assert ran.code == 1
    assert not set(said) & {"\x1b", "\u202e", "\r"}
    assert not any(line.lstrip().startswith("::") for line in said.splitlines())
    if form == "markdown":
        assert set(re.findall(r"<[^>]*>?", said)) == {"<code>", "</code>"}
        assert not re.search(r"[`*\[\]@!]|www\.|https:", said)
        widths = {line.count("|") for line in said.splitlines() if line.startswith("| ")}
        assert widths == {5, 7}


def test_json_has_all(folder: Path, ledger: Run) -> None:
    stories.refunds(folder)
    ran = ledger("diff", A, B, "--format", "json", "--ignore", "action.args.text")
    said = json.loads(ran.out)
    assert (ran.code, said["schema"], said["kind"], said["exit_code"], said["same"]) == (
        1,
        "diff/1",
        "ledgers",
        1,
        False,
    )
    assert said["a"] == {"path": A, "run": "01K", "status": "completed", "steps": 8, "denied": 1}
    assert said["first"] == {"in": "proposal", "a": 4, "b": 4}
    assert [(row["sign"], row.get("a"), row.get("b")) for row in said["rows"]] == [
        ("=", [1, 3], [1, 3]), ("~", [4, 4], [4, 4]), ("-", [5, 5], None), ("=", [6, 6], [5, 5]),
        ("+", None, [6, 6]), ("=", [7, 8], [7, 8]),
    ]  # fmt: skip
    assert said["rows"][1]["layers"] == ["proposal", "verdict", "result", "state"]
    assert said["rows"][1]["changes"][0] == {
        "layer": "proposal", "at": "action.args.order_id", "a": "#W2378156", "b": "#W5866402",
    }  # fmt: skip
    assert said["proposals"] == {"changed": 1, "only_a": 1, "only_b": 1}
    assert said["state"] == [{"at": 'state.facts.returns["R-81"]', "b": "#W5866402"}]
    assert said["answer"] == {"same": False, "a": "Done.", "b": "Your return is R-81."}
    assert said["status"] == {"same": True, "a": "completed", "b": "completed"}
    assert said["ignored"] == ["action.args.text"]
    same = json.loads(ledger("diff", A, A, "--format", "json").out)
    assert same["same"] is True
    assert same["first"] is None


def test_markdown(folder: Path, golden: Golden) -> None:
    stories.refunds(folder)
    two_folders(folder)
    golden(
        "diff-markdown",
        f"ledger diff {A} {B} --format markdown",
        "ledger diff runs/gpt-4o runs/sonnet --format markdown",
    )


# Two folders


def test_folders(folder: Path, golden: Golden) -> None:
    two_folders(folder)
    golden(
        "diff-folders",
        "ledger diff runs/gpt-4o runs/sonnet",
        "ledger diff runs/gpt-4o/cancel-09 runs/sonnet/cancel-09 --fail-on worse",
        "ledger diff runs/gpt-4o/address-03 runs/sonnet/address-03",
    )


def test_damaged_ledgers_of_folders_are_named(folder: Path, ledger: Run) -> None:
    two_folders(folder)
    broken = folder / "runs/sonnet/cancel-09/trial-2.ledger.jsonl"
    broken.write_bytes(broken.read_bytes().replace(b"#W1", b"#W9"))
    ran = ledger("diff", "runs/gpt-4o", "runs/sonnet")
    assert ran.code == 2
    assert b"1 damaged ledger, not compared:\n  runs/sonnet/cancel-09/trial-2.ledger.jsonl:3" in ran.out
    assert b"25 ledgers in A, 25 in B" in ran.out
    said: dict[str, Any] = json.loads(ledger("diff", "runs/gpt-4o", "runs/sonnet", "--format", "json").out)
    assert (said["exit_code"], said["same"]) == (2, False)
    assert [one["file"] for one in said["b"]["damaged"]] == ["runs/sonnet/cancel-09/trial-2.ledger.jsonl"]
    assert {one["name"]: one["in_b"] for one in said["scenarios"]} == {
        "address-03": "same", "cancel-09": "worse", "exchange-02": "better", "guest-01": "worse",
        "new-04": "only", "refund-17": "better",
    }  # fmt: skip


# Exit codes


@pytest.mark.parametrize(
    ("more", "code"),
    [
        ((), 1),
        (("--fail-on", "worse"), 1),
        (("--fail-on", "verdicts"), 0),
        (("--fail-on", "state"), 0),
        (("--only", "result"), 0),
        (("--only", "verdict"), 0),
    ],
)
def test_fail_on_decides_what_makes_it_fail(folder: Path, ledger: Run, more: tuple[str, ...], code: int) -> None:
    write(folder / "a.ledger.jsonl", [unique(1)])
    write(folder / "b.ledger.jsonl", [unique(1), call("look")], status="failed")
    assert ledger("diff", "a.ledger.jsonl", "b.ledger.jsonl", *more).code == code


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("a.ledger.jsonl",), b"Missing argument 'B'"),
        (
            ("a.ledger.jsonl", "policies"),
            b"only two of a kind can be compared: a.ledger.jsonl is a ledger, policies is a",
        ),
        (("a.ledger.jsonl", "a.ledger.json"), b"no file a.ledger.json; there is a.ledger.jsonl"),
        (("a.ledger.jsonl", "fixtures/scenarios/weather.yaml"), b"weather.yaml is a scenario file; ledgers, folders"),
        (("a.ledger.jsonl", "policies/weather.yaml"), b"policies/weather.yaml is a pack"),
        (("policies", "fixtures"), b"no ledgers found under policies"),
        (("a.ledger.jsonl", "damaged.ledger.jsonl"), b"damaged.ledger.jsonl:3"),
        (("a.ledger.jsonl", "empty.ledger.jsonl"), b"empty.ledger.jsonl is no ledger"),
        (("a.ledger.jsonl", "a.ledger.jsonl", "--ignore", "facts.x"), b"facts.x is no part of a step"),
        (("runs", "runs", "--only", "state"), b"are about the steps of two ledgers"),
    ],
)
def test_what_cannot_be_compared_is_said(folder: Path, ledger: Run, arguments: tuple[str, ...], said: bytes) -> None:
    file = write(folder / "a.ledger.jsonl", [unique(1)])
    write(folder / "runs/a.ledger.jsonl", [unique(1)])
    (folder / "damaged.ledger.jsonl").write_bytes(file.read_bytes().replace(b"#W1", b"#W9"))
    (folder / "empty.ledger.jsonl").touch()
    ran = ledger("diff", *arguments)
    assert ran.code == 2
    assert said.lower() in ran.err.lower()
    assert b"Traceback" not in ran.err


def test_a_report_goes_to_a_new_file(folder: Path, ledger: Run) -> None:
    stories.refunds(folder)
    shown = ledger("diff", A, B)
    ran = ledger("diff", A, B, "--report", "r.txt")
    assert (ran.code, ran.out) == (1, b"")
    assert (folder / "r.txt").read_bytes() == shown.out
    assert ledger("diff", A, B, "--report", "r.txt").code == 2


def test_a_narrow_encoding_and_an_option_from_the_environment(folder: Path, ledger: Run) -> None:
    stories.refunds(folder)
    ran = ledger("diff", A, B, env={"LANG": "C", "LC_ALL": "C", "PYTHONUTF8": "", "LEDGER_DIFF_FAIL_ON": "state"})
    assert rb"\u9000" in ran.out
    assert ran.code == 1


def test_deepdiff_is_not_imported_for_what_is_the_same(folder: Path) -> None:
    import subprocess
    import sys

    from tests.cli.conftest import environment

    one, other = stories.refunds(folder)
    program = "import sys; from ledgercli import cli; cli.main(sys.argv[1:]); print('deepdiff' in sys.modules)"
    loaded = []
    for paths in ((one, one), (one, other)):
        command = [sys.executable, "-c", program, "diff", *map(str, paths)]
        done = subprocess.run(command, env=environment(), capture_output=True, check=True)
        loaded.append(done.stdout.splitlines()[-1])
    assert loaded == [b"False", b"True"]
