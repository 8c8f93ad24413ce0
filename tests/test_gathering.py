"""Gathering: of files, folders and patterns those that are ledgers, in order, each once."""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledgercli.cli import progress
from ledgercli.errors import UnreadableInputError
from ledgercli.gathering import ledgers as gathered
from tests import ledgers


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("b.ledger.jsonl", "a.ledger.jsonl", "runs/deep/c.ledger.jsonl", "runs/plain.jsonl"):
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        ledgers.write(Path(name))
    Path("notes.jsonl").write_text('{"note": 1}\n')
    Path("pack.yaml").write_text("pack: p\nrules: []\n")
    Path("runs/damaged.ledger.jsonl").write_bytes(b"\0\0\n")
    return tmp_path


def refusal(*paths: str) -> str:
    with pytest.raises(UnreadableInputError) as refused:
        gathered(paths)
    return refused.value.message


def test_a_folder_is_searched_to_its_depth_and_only_ledgers_are_taken(folder: Path) -> None:
    assert gathered(["."]) == [
        "a.ledger.jsonl",
        "b.ledger.jsonl",
        "runs/damaged.ledger.jsonl",
        "runs/deep/c.ledger.jsonl",
        "runs/plain.jsonl",
    ]


def test_each_is_taken_once_in_the_order_of_the_arguments(folder: Path) -> None:
    Path("again").symlink_to("runs")
    assert gathered(
        ["b.ledger.jsonl", "./b.ledger.jsonl", str(folder / "b.ledger.jsonl"), "runs", "again", "*.jsonl"]
    ) == [
        "b.ledger.jsonl",
        "runs/damaged.ledger.jsonl",
        "runs/deep/c.ledger.jsonl",
        "runs/plain.jsonl",
        "a.ledger.jsonl",
    ]


def test_a_pattern_is_expanded_unless_a_file_is_called_that(folder: Path) -> None:
    assert gathered(["runs/*.jsonl"]) == ["runs/damaged.ledger.jsonl", "runs/plain.jsonl"]
    assert gathered(["**/c.*"]) == gathered(["runs/d*"])[1:] == ["runs/deep/c.ledger.jsonl"]
    ledgers.write(Path("run[1].ledger.jsonl"))
    assert gathered(["run[1].ledger.jsonl"]) == ["run[1].ledger.jsonl"]


def test_a_named_file_is_a_ledger_or_an_error(folder: Path) -> None:
    assert gathered(["notes.jsonl"]) == ["notes.jsonl"]  # its first line may be damaged: the reader will say
    assert refusal("pack.yaml") == "pack.yaml is a pack file, not a ledger"
    Path("README").write_text("hello")
    assert refusal("README") == "README is none of our files, not a ledger"
    assert refusal("a.leger.jsonl") == "no file a.leger.jsonl; there is a.ledger.jsonl"
    assert refusal("runs", "runs/plian.jsonl") == "no file runs/plian.jsonl; there is runs/plain.jsonl"
    assert refusal("-") == "a ledger is read as a file, not on standard input"
    os.mkfifo("pipe")
    assert refusal("pipe") == "pipe is not a regular file"


def test_what_was_looked_for_is_said_where_there_is_nothing(folder: Path) -> None:
    Path("empty").mkdir()
    looked = "(looked for *.ledger.jsonl, and *.jsonl whose first line opens a ledger)"
    assert refusal("empty") == f"no ledgers found under empty {looked}"
    assert refusal("a.ledger.jsonl", "runs/*.ledger") == f"no ledgers found under runs/*.ledger {looked}"
    assert refusal("pack.*") == f"no ledgers found under pack.* {looked}"
    assert gathered(["empty", "a.ledger.jsonl"]) == ["a.ledger.jsonl"]


def test_a_large_file_is_not_read_to_be_told_apart(folder: Path) -> None:
    with Path("runs/plain.jsonl").open("ab") as file:
        file.truncate(100 * 1024 * 1024)
    assert gathered(["runs/plain.jsonl"]) == ["runs/plain.jsonl"]


# Progress


def test_without_a_terminal_nothing_is_shown_and_all_is_handed_on(capsys: pytest.CaptureFixture[str]) -> None:
    assert list(progress.watched(range(3), 3, "ledgers")) == [0, 1, 2]
    assert capsys.readouterr() == ("", "")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("total", "said"), [(3, "2 of 3 ledgers [####################----------]"), (None, "2 ledgers")]
)
def test_on_a_terminal_it_says_how_far_it_is_in_ascii(
    monkeypatch: pytest.MonkeyPatch, total: int | None, said: str
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", stream := Terminal())
    items = progress.watched(range(3), total, "ledgers")
    for done in items:
        if done == 2:
            break
    items.close()
    assert said in stream.getvalue()
    assert stream.getvalue().isascii()


@given(st.integers(0, 1000), st.integers(0, 1000))
def test_a_bar_has_one_width(done: int, more: int) -> None:
    shown = progress.bar(done, done + more)
    assert len(shown) == 32
    assert (more == 0) == ("-" not in shown)
