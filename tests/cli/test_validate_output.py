"""What `ledger validate` shows, byte for byte, for people, for GitHub and for programs."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest
from rich.cells import cell_len

from tests.cli.conftest import GOLDEN


def damaged(folder: Path, ledger) -> Path:
    """A ledger in which a result was changed after it was written."""
    ledger("run", "-q", "fixtures/scenarios/weather.yaml", "--now", "2026-08-01T12:00:00Z", "--out", "w.ledger.jsonl")
    file = folder / "damaged.ledger.jsonl"
    file.write_bytes((folder / "w.ledger.jsonl").read_bytes().replace(b'"temp":22,', b'"temp":23,', 1))
    return file


def test_each_problem_with_its_line_and_what_to_do(golden):
    golden("validate-broken", "ledger validate broken")


def test_the_same_without_unicode(golden):
    golden("validate-ascii", "ledger validate broken", env={"LANG": "C"})
    (GOLDEN / "validate-ascii.txt").read_bytes().decode("ascii")


def test_annotations_for_github(golden):
    golden("validate-github", "ledger validate broken --format github")


def test_what_is_well(golden):
    golden("validate-ok", "ledger validate policies/weather.yaml fixtures/scenarios/weather.yaml desk.yaml")


def test_a_pack_that_does_not_load_is_shown_by_every_command(golden):
    golden("validate-by-run", "ledger run broken/broken.yaml --out b.ledger.jsonl")


def _in_cells(line: str, start: int, end: int) -> str:
    """The part of a line that a terminal shows between two cells."""
    shown, at = "", 0
    for character in line:
        if start <= at < end:
            shown += character
        at += cell_len(character)
    return shown


def test_marks_stand_under_what_they_mean(ledger):
    lines = ledger("validate", "broken").out.decode().splitlines()
    marked = [
        _in_cells(above, line.index("^"), line.rindex("^") + 1)
        for above, line in pairwise(lines)
        if line.startswith("   | ") and "^" in line
    ]
    assert marked == [
        "acess", "user_authentificated", "!", "user_authentcated", "'view_balanc'", "'a'", "#12 is closed."
    ]  # fmt: skip


def test_a_ledger_says_what_is_not_proved(ledger, folder):
    ledger("run", "-q", "fixtures/scenarios/weather.yaml", "--out", "w.ledger.jsonl")
    ran = ledger("validate", "w.ledger.jsonl")
    assert ran.code == 0
    assert ran.out.decode() == (
        "ok: 1 ledger, 4 lines, closed; unanchored: a complete rewrite would not show\n"
        "    (keep its head elsewhere and pass it with --anchor)\n"
    )
    head = json.loads(ledger("validate", "w.ledger.jsonl", "--format", "json").out)["ledgers"][0]["head"]
    anchored = ledger("validate", "w.ledger.jsonl", "--anchor", head)
    assert (anchored.code, anchored.out) == (0, b"ok: 1 ledger, 4 lines, closed, as anchored\n")


def test_an_unsealed_ledger_is_never_plainly_ok(ledger, folder):
    ledger("run", "-q", "fixtures/scenarios/weather.yaml", "--out", "w.ledger.jsonl")
    lines = (folder / "w.ledger.jsonl").read_bytes().splitlines(keepends=True)
    (folder / "open.ledger.jsonl").write_bytes(b"".join(lines[:-1]))
    refused = ledger("validate", "open.ledger.jsonl")
    assert refused.code == 1
    assert b"error[unsealed]" in refused.out
    allowed = ledger("validate", "open.ledger.jsonl", "--allow-unsealed")
    assert allowed.code == 0
    assert b"ok: 1 ledger, 3 lines, unsealed: lines may be missing at the end\n" in allowed.out
    assert b"0 errors, 1 warning in 1 ledger\n" in allowed.out


def test_a_damaged_ledger_is_named_with_its_line(ledger, folder):
    ran = ledger("validate", damaged(folder, ledger).name)
    assert ran.code == 1
    first, *_, last = ran.out.decode().splitlines()
    assert first == "damaged.ledger.jsonl:3: error[chain]: line 3 does not follow line 2"
    assert last == "1 error in 1 ledger"


def test_json_has_every_problem_with_its_place(ledger):
    ran = ledger("validate", "broken", "--format", "json")
    said = json.loads(ran.out)
    assert (ran.code, said["exit_code"], said["schema"]) == (1, 1, "validation/1")
    assert said["files"] == {"pack": 1, "toolset": 1, "scenario": 1}
    assert said["errors"] == sum(problem["severity"] == "error" for problem in said["problems"])
    first = next(problem for problem in said["problems"] if problem["code"] == "unknown-fact")
    assert (first["file"], first["line"], first["column"], first["length"]) == ("broken/support.yaml", 5, 24, 20)


def test_under_github_actions_annotations_go_to_stderr_besides(ledger):
    plain = ledger("validate", "broken")
    ran = ledger("validate", "broken", env={"GITHUB_ACTIONS": "true"})
    assert ran.out == plain.out
    assert ran.err == ledger("validate", "broken", "--format", "github").out
    assert ledger("validate", "broken", "--format", "github", env={"GITHUB_ACTIONS": "true"}).err == b""


def test_a_report_goes_to_a_new_file_only(ledger, folder):
    ran = ledger("validate", "broken", "--report", "report.txt")
    assert (ran.code, ran.out) == (1, b"")
    assert (folder / "report.txt").read_bytes() == ledger("validate", "broken").out
    again = ledger("validate", "broken", "--report", "report.txt")
    assert again == (2, b"", b"error: report.txt exists; a report never overwrites a file\n  fix: another --report\n")


@pytest.mark.parametrize("name", ["validate-broken", "validate-ascii"])
def test_only_first_lines_and_what_can_be_copied_are_wider_than_eighty_cells(name):
    for line in (GOLDEN / f"{name}.txt").read_text(encoding="utf-8").splitlines():
        if "error[" not in line and "warning[" not in line and " = put it in" not in line:
            assert cell_len(line) <= 80, line


def test_explain_says_what_a_code_means(ledger):
    ran = ledger("validate", "--explain", "unknown-fact")
    assert ran.code == 0
    assert ran.out.startswith(b"unknown-fact\n    Nothing sets this fact")
    unknown = ledger("validate", "--explain", "unknwon-fact")
    assert unknown.code == 2
    assert unknown.err.startswith(b"error: no code unknwon-fact; there is unknown-fact")
