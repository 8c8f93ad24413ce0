"""The page on trust cannot drift: its vectors are checked with `sha256sum`, and what it says is found is found."""

from __future__ import annotations

import hashlib
import re
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import orjson
import pytest

from ledgercli import records
from ledgercli.ledger.verify import verify
from tests.test_readme import BLOCK, examples, run

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "trust.md").read_text(encoding="utf-8")
VECTOR = next(text for kind, text in BLOCK.findall(PAGE) if kind == "jsonl").encode()
LINES = VECTOR.splitlines(keepends=True)
EXAMPLES = [example for kind, text in BLOCK.findall(PAGE) if kind == "console" for example in examples(text)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the ledger of the page, in which the package is installed."""
    (tmp_path / "vector.ledger.jsonl").write_bytes(VECTOR)
    programs = tmp_path / ".venv" / "bin"
    programs.mkdir(parents=True)
    program = programs / "ledger"
    program.write_text(f'#!/bin/sh\nPYTHONPATH="{ROOT}" exec "{sys.executable}" -m ledgercli "$@"\n', encoding="utf-8")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return tmp_path


@pytest.mark.skipif(shutil.which("sha256sum") is None, reason="sha256sum is not here")
def test_every_command_of_the_page_prints_what_it_shows(folder: Path) -> None:
    assert len(EXAMPLES) > 8
    for example in EXAMPLES:
        done = run(example.command, folder)
        assert (done.stdout, done.returncode) == (example.output, example.exit_code), example.command


@pytest.mark.skipif(shutil.which("sha256sum") is None, reason="sha256sum is not here")
def test_each_line_of_the_vector_names_what_sha256sum_says_of_the_line_before() -> None:
    prev = None
    for number, line in enumerate(LINES):
        record = orjson.loads(line)
        assert list(record)[-1] == "prev"
        assert (record["seq"], record["prev"]) == (number, prev)
        said = subprocess.run(["sha256sum"], input=line, capture_output=True, check=True).stdout
        assert said == hashlib.sha256(line).hexdigest().encode() + b"  -\n"
        prev = f"sha256:{said[:64].decode()}"
        assert said.decode() in PAGE
    assert f"--anchor {prev}" in PAGE
    assert orjson.loads(LINES[-1])["lines"] == len(LINES)


def test_other_digests_of_the_page_are_those_that_are_written() -> None:
    file = orjson.loads(LINES[0])["files"][0]
    action = orjson.loads(LINES[1])["action"]
    for digest in (records.digest(file["text"].encode()), records.bound(action["args"], {}, {})["args"]):
        assert f"\n{digest.removeprefix('sha256:')}  -\n" in PAGE
    assert file["digest"] == records.digest(file["text"].encode())


# The table: each act that it names, and what shows it


def found(path: Path, lines: list[bytes]) -> tuple[bool, bool]:
    """Whether something is wrong with these lines without the anchor, and with it."""
    path.write_bytes(b"".join(lines))
    return not verify(path).ok, not verify(path, anchor=records.digest(LINES[-1])).ok


def anew(lines: list[bytes]) -> list[bytes]:
    """The lines with numbers, digests and counts as they should be: what a forger writes."""
    forged: list[bytes] = []
    for seq, line in enumerate(lines):
        record = orjson.loads(line) | {"seq": seq, "prev": records.digest(forged[-1]) if forged else None}
        if record["kind"] == "close":
            record |= {"lines": seq + 1, "steps": sum(b'"kind":"step"' in one for one in forged)}
        forged.append(orjson.dumps(record) + b"\n")
    return forged


@pytest.mark.parametrize("step", [pytest.param(1, marks=pytest.mark.slow), 29])
def test_every_changed_byte_is_found_and_one_in_the_last_line_by_the_anchor(tmp_path: Path, step: int) -> None:
    passed = 0
    for at, line in enumerate(LINES):
        for offset in range(0, len(line), step if at < len(LINES) - 1 else 1):
            changed = bytearray(line)
            changed[offset] ^= 1
            chain, anchor = found(tmp_path / "a", [*LINES[:at], bytes(changed), *LINES[at + 1 :]])
            assert anchor, (at, offset)
            assert chain or at == len(LINES) - 1, (at, offset)
            passed += not chain
    assert passed  # the page says so


def test_removed_inserted_swapped_and_copied_lines_are_found_by_the_chain(tmp_path: Path) -> None:
    last = len(LINES) - 1
    for at in range(last):
        assert found(tmp_path / "a", [*LINES[:at], *LINES[at + 1 :]]) == (True, True)
        assert found(tmp_path / "a", [*LINES[:at], LINES[at + 1], LINES[at], *LINES[at + 2 :]]) == (True, True)
        assert found(tmp_path / "a", [*LINES[:at], LINES[at], *LINES[at:]]) == (True, True)


def test_a_cut_is_found_by_the_missing_close_and_a_cut_that_is_closed_by_the_anchor_alone(tmp_path: Path) -> None:
    for at in range(1, len(LINES)):
        assert found(tmp_path / "a", LINES[:at]) == (True, True)
    assert found(tmp_path / "a", anew([LINES[0], LINES[3]])) == (False, True)


def test_a_cut_behind_an_earlier_close_is_found_by_the_anchor_alone(tmp_path: Path) -> None:
    going_on = records.rollback_line(at="2026-08-01T13:00:00Z", to=1, by=None, reason=None, sets={}, unsets=())
    longer = anew([*LINES, orjson.dumps(going_on), LINES[-1]])
    path = tmp_path / "a"
    path.write_bytes(b"".join(longer))
    assert verify(path, anchor=records.digest(longer[-1])).ok
    path.write_bytes(VECTOR)
    assert verify(path).ok
    assert not verify(path, anchor=records.digest(longer[-1])).ok


def test_a_rewrite_is_found_by_the_anchor_alone(tmp_path: Path) -> None:
    forged = anew([line.replace(b'"amount":5', b'"amount":9') for line in LINES])
    assert found(tmp_path / "a", forged) == (False, True)
    assert found(tmp_path / "a", LINES) == (False, False)


def test_the_page_is_wrapped_and_its_links_lead_somewhere() -> None:
    prose = BLOCK.sub("", PAGE)
    assert [line for line in prose.splitlines() if len(line) > 100 and not line.startswith("|")] == []
    for target in re.findall(r"\]\(([^)]+)\)", PAGE):
        assert target.startswith("https://") or (ROOT / "docs" / target).exists(), target
