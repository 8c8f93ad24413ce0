"""What `ledger capture` prints, byte for byte."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from tests import captures
from tests.captures import ALLOWED, DENIED, FREE, LOOKED, MASKED, SECRET, SOURCED
from tests.cli.conftest import GOLDEN, UPDATE
from tests.commands import command_line


@pytest.fixture
def golden(tmp_path, monkeypatch, capsys):
    """Hold what command lines print and write to a file; within this process, which is quicker."""
    captures.write(tmp_path)
    with command_line(tmp_path, monkeypatch, capsys) as run:

        def compare(name: str, *lines: str) -> None:
            told = ""
            for line in lines:
                program, *arguments = shlex.split(line)
                if program == "cat":
                    told += f"$ {line}\n{Path(arguments[0]).read_text()}"
                    continue
                code = run(*arguments)
                told += f"$ {line}\n{run.out}{run.err}[{code}]\n"
            file = GOLDEN / f"{name}.txt"
            if UPDATE:
                file.write_text(told)
            assert told == file.read_text()

        yield compare


def test_cases_that_are_printed(golden):
    golden(
        "capture-printed",
        f"ledger capture run.ledger.jsonl@{DENIED}",
        f"ledger capture run.ledger.jsonl@{DENIED} --pseudonyms --name 'of another'",
        f"ledger capture run.ledger.jsonl@{LOOKED} --pseudonyms",
        f"ledger capture run.ledger.jsonl@{SOURCED}",
    )


def test_cases_that_are_added(golden):
    golden(
        "capture-added",
        f"ledger capture run.ledger.jsonl@{ALLOWED} --expect deny --rule no_paid_orders --to desk.cases.yaml",
        "cat desk.cases.yaml",
        f"ledger capture run.ledger.jsonl@{SECRET} --to new.cases.yaml",
        f"ledger capture run.ledger.jsonl@{SECRET} --to new.cases.yaml",
        "cat new.cases.yaml",
    )


def test_flips(golden):
    Path("now.yaml").write_text(captures.PACK.replace("limit: 100", "limit: 5") + FREE)
    golden(
        "capture-flips",
        "ledger replay run.ledger.jsonl --pack now.yaml --format jsonl --report whatif.jsonl",
        "ledger capture --flips whatif.jsonl --to flips.cases.yaml",
        "cat flips.cases.yaml",
    )


def test_what_cannot_be_captured(golden):
    golden(
        "capture-errors",
        "ledger capture",
        "ledger capture run.ledger.jsonl",
        "ledger capture run.ledger.jsonl@99",
        "ledger capture nothing.ledger.jsonl@1",
        f"ledger capture run.ledger.jsonl@{DENIED} --rule own_order",
        f"ledger capture run.ledger.jsonl@{DENIED} --expect allow --rule own_order",
        f"ledger capture run.ledger.jsonl@{DENIED} --to desk.yaml",
        f"ledger capture run.ledger.jsonl@{DENIED} --to none/new.cases.yaml",
        f"ledger capture run.ledger.jsonl@{DENIED} --to desk.cases.yaml --name 'a guest pays'",
        f"ledger capture run.ledger.jsonl@{MASKED}",
        f"ledger capture run.ledger.jsonl@{SOURCED} --pseudonyms",
        "ledger capture --flips desk.yaml",
        "ledger capture --flips desk.yaml --to flips.cases.yaml",
        f"ledger capture run.ledger.jsonl@{DENIED} --flips desk.yaml --to flips.cases.yaml",
    )
