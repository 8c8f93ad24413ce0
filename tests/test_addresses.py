"""FILE@STEP: what is a file, what a step, and what is neither."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledgercli.addresses import no_such_step, step_address
from ledgercli.errors import LedgerCliError


@pytest.mark.parametrize(
    ("text", "file", "step"),
    [
        ("w.ledger.jsonl", "w.ledger.jsonl", None),
        ("w.ledger.jsonl@3", "w.ledger.jsonl", 3),
        ("w.ledger.jsonl@0", "w.ledger.jsonl", 0),
        ("runs/a@b/w.ledger.jsonl", "runs/a@b/w.ledger.jsonl", None),
        ("runs/a@b/w.ledger.jsonl@12", "runs/a@b/w.ledger.jsonl", 12),
        ("a@1@2", "a@1", 2),
        ("", "", None),
    ],
)
def test_an_address_is_a_file_and_perhaps_a_step(text: str, file: str, step: int | None) -> None:
    assert step_address(text) == (file, step)


def test_a_path_that_exists_is_a_path(tmp_path: Path) -> None:
    file = tmp_path / "w@3"
    assert step_address(str(file)) == (str(tmp_path / "w"), 3)
    file.touch()
    assert step_address(str(file)) == (str(file), None)
    (tmp_path / "gone@4").symlink_to(tmp_path / "nowhere")
    assert step_address(str(tmp_path / "gone@4")) == (str(tmp_path / "gone@4"), None)


@pytest.mark.parametrize(
    "text", ["w@x", "w@", "@3", "@", "w@-1", "w@03", "w@3.0", "w@+3", "w@ 3", "w@٣", "w@" + "9" * 5000, "w@3\n"]
)
def test_what_is_no_step_is_said(text: str) -> None:
    with pytest.raises(LedgerCliError):
        step_address(text)


def test_a_name_with_a_nul_is_no_crash() -> None:
    assert step_address("w\0@3") == ("w\0", 3)


@given(st.integers(0, 10**17), st.text(st.characters(codec="ascii", exclude_characters="\0/"), min_size=1))
def test_every_step_of_every_file_comes_back(step: int, name: str) -> None:
    assert step_address(f"nowhere/{name}@{step}") == (f"nowhere/{name}", step)


def test_a_missing_step_names_those_that_there_are() -> None:
    assert no_such_step("w", 2).message == "w has 2 steps, 1 to 2"
    assert no_such_step("w", 1).message == "w has 1 step"
    assert no_such_step("w", 0).message == "w has no steps"
    assert no_such_step("w", 10_000).message == "w has 10,000 steps, 1 to 10,000"
