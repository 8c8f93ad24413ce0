"""Mistakes that users really make, each with the answer that it must get."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from ledgercli.errors import LedgerCliError
from ledgercli.guard import Guard
from tests.books import TOOLS, book, guard, judge

SCENARIO = """
    scenario: s
    toolset: s.tools.yaml
    packs: [s.pack.yaml]
    decide:
      script:
        - propose: {tool: pay, args: {amount: 5}}
"""


def ledger(*arguments: str, folder: Path, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "ledgercli", *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, input=stdin, timeout=60)


def files(folder: Path, tools: str = TOOLS, pack: str = "pack: p\nrules: []\n", scenario: str = SCENARIO) -> Path:
    for name, text in (("s.tools.yaml", tools), ("s.pack.yaml", pack), ("s.yaml", scenario)):
        (folder / name).write_text(dedent(text).lstrip())
    return folder


@pytest.mark.parametrize(
    "check",
    [
        "action.args.note.matches('(?=x)')",
        "action.args.note.matches('[')",
        "timestamp('2024-05-20T09:00:00') < now",
        "duration('1d') > duration('1s')",
        "int('abc') == 1",
    ],
)
def test_a_literal_that_can_never_be_read_is_an_error_at_load(tmp_path: Path, check: str) -> None:
    pack = f'pack: p\nrules:\n  - {{name: r, tools: [pay], check: "{check}"}}\n'
    validated = ledger("validate", ".", folder=files(tmp_path, pack=pack))
    assert validated.returncode == 1
    assert "s.pack.yaml:3:" in validated.stdout
    assert "error[bad-literal]" in validated.stdout


@pytest.mark.parametrize("returns", ["{type: object, properties: {vip: bool}}", "{type: object, properties: x}"])
def test_a_returns_that_is_no_schema_is_told_not_met_with_a_traceback(tmp_path: Path, returns: str) -> None:
    tools = TOOLS.replace(
        "args: {user: {type: string}}", f"args: {{user: {{type: string}}}}\n        returns: {returns}"
    )
    validated = ledger("validate", ".", folder=files(tmp_path, tools=tools))
    assert (validated.returncode, validated.stderr) == (1, "")
    assert "error[bad-schema]" in validated.stdout


@pytest.mark.parametrize("arguments", [["--pack", "s.yaml"], ["--pack", "s.tools.yaml"]])
def test_a_file_of_another_kind_is_refused_as_what_it_is(tmp_path: Path, arguments: list[str]) -> None:
    ran = ledger("run", "s.yaml", *arguments, folder=files(tmp_path))
    assert ran.returncode == 2
    assert "a pack was asked for" in ran.stderr


def test_two_packs_of_one_name_on_the_command_line_are_refused(tmp_path: Path) -> None:
    files(tmp_path)
    for name in ("a", "b"):
        (tmp_path / f"{name}.yaml").write_text(f"pack: new\ndescription: {name}\nrules: []\n")
    ran = ledger("run", "s.yaml", "--pack", "a.yaml", "--pack", "b.yaml", folder=tmp_path)
    assert (ran.returncode, ran.stderr) == (2, "error: two packs are named new: a.yaml and b.yaml\n")


def test_standard_input_can_be_validated(tmp_path: Path) -> None:
    files(tmp_path)
    validated = ledger("validate", "-", folder=tmp_path, stdin=(tmp_path / "s.yaml").read_text())
    assert (validated.returncode, validated.stdout.splitlines()[0]) == (0, "ok: 1 scenario")
    assert "named" not in validated.stderr
    refused = ledger("validate", "-", folder=tmp_path, stdin='{"kind":"open"}\n')
    assert (refused.returncode, refused.stderr.split("\n")[1]) == (2, "  fix: name its file")


def test_a_missing_ledger_is_missing(tmp_path: Path) -> None:
    assert ledger("validate", "w.ledger.jsonl", folder=tmp_path).stderr == "error: no file w.ledger.jsonl\n"


def test_several_runs_need_a_folder(tmp_path: Path) -> None:
    files(tmp_path)
    (tmp_path / "out").write_text("")
    ran = ledger("run", "s.yaml", "s.yaml", "--out", "out", folder=tmp_path)
    assert (ran.returncode, "is no folder" in ran.stderr) == (2, True)


def test_what_a_tool_prints_stays_out_of_what_was_asked_for(tmp_path: Path) -> None:
    tools = TOOLS.replace("tags: [charge]", 'tags: [charge]\n        run: {python: "tools.py:pay"}')
    files(tmp_path, tools=tools)
    (tmp_path / "tools.py").write_text("print('at import')\n\n\ndef pay(amount, note):\n    print('in a call')\n")
    ran = ledger("run", "-q", "s.yaml", "--max-steps", "1", "--out", "w.ledger.jsonl", folder=tmp_path)
    assert ran.stdout == "w.ledger.jsonl\n"
    assert "at import" in ran.stderr
    assert "in a call" in ran.stderr


def test_an_empty_text_is_not_an_unknown_one(tmp_path: Path) -> None:
    pack = """
    pack: p
    rules:
      - {name: noted, tools: [pay], check: action.args.note != '', on_fail: "<{action.args.note}>"}
    """
    assert judge(book(tmp_path, pack), "pay", {"amount": 1}).reason == "<>"


def test_a_run_that_has_halted_takes_no_further_calls(tmp_path: Path) -> None:
    pack = """
    pack: p
    rules:
      - {name: never, tools: [pay], check: "false", on_fail: {error: No., halt: true}}
    """
    books = guard(book(tmp_path, pack))
    assert books.check("pay", {"amount": 1}).halts
    with pytest.raises(LedgerCliError, match="the run has ended: halted"):
        books.check("look", {"id": "W1"})


def test_the_caller_may_say_that_a_call_failed(tmp_path: Path) -> None:
    books = guard(book(tmp_path))
    state = books.record(books.check("pay", {"amount": 1}), {"paid": 1}, outcome="error")
    assert (state.tree["error"], state.tree["flags"]["payment_failed"]) == ("pay failed", True)
    verdict = books.check("pay", {"amount": 1})
    with pytest.raises(LedgerCliError, match="banana is no outcome"):
        books.record(verdict, None, outcome="banana")  # type: ignore[arg-type]
    assert books.record(verdict, outcome="ok").tree["error"] is None


def test_a_flag_is_true_or_false_also_in_a_guard(tmp_path: Path) -> None:
    files(tmp_path)
    with pytest.raises(LedgerCliError, match="the flag payment_failed is true or false"):
        Guard(toolset=tmp_path / "s.tools.yaml", state={"flags": {"payment_failed": "x"}})


def test_a_default_that_does_not_fit_its_argument_is_an_error(tmp_path: Path) -> None:
    tools = TOOLS.replace('note: {type: string, default: ""}', "note: {type: string, default: 5}")
    validated = ledger("validate", ".", folder=files(tmp_path, tools=tools))
    assert validated.returncode == 1
    assert "error[bad-schema]: the default does not fit the argument's own schema" in validated.stdout
