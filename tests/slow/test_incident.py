"""The page on an incident cannot drift: its commands are run, in order, on 5,000 ledgers, and print what it shows.

With `LEDGER_UPDATE_GOLDEN=1` what they print is written into the page.
"""

from __future__ import annotations

import os
import re
import stat
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests import shops
from tests.cli.conftest import UPDATE
from tests.test_readme import BLOCK, ROOT, fixed

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
FILE = ROOT / "docs" / "incident.md"
LEDGERS = 5000
ODD = {412: {"order": "#W2378156", "amount": 74.5}, 733: {}, 1808: {}, 2950: {}, 4441: {"amount": 700.5}}


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the page: the pack without the rule, 5,000 ledgers, three of them damaged in different ways."""
    return written(tmp_path_factory.mktemp("incident"), range(LEDGERS))


def written(folder: Path, numbers: Iterable[int]) -> Path:
    for name in ("policies", "ledgers", ".venv/bin"):
        (folder / name).mkdir(parents=True)
    program = folder / ".venv" / "bin" / "ledger"
    program.write_text(f'#!/bin/sh\nPYTHONPATH="{ROOT}" exec "{sys.executable}" -m ledgercli "$@"\n', encoding="utf-8")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    pack = folder / "policies" / "support.yaml"
    pack.write_text(shops.before_the_rule().replace('include: ["ledgercli:loops"]\n', ""))
    before = Path.cwd()
    os.chdir(folder)  # the ledgers name their pack as it was given
    try:
        rules = shops.book(Path("policies/support.yaml"))
        for number in numbers:
            odd = {"owner": "mia_li_3668", **ODD[number]} if number in ODD else {}
            shops.refund(rules, Path(f"ledgers/{number:04}.ledger.jsonl"), number, **odd)
    finally:
        os.chdir(before)
    shops.torn(folder / "ledgers/0077.ledger.jsonl")
    lost = folder / "ledgers/1200.ledger.jsonl"
    lines = lost.read_bytes().splitlines(keepends=True)
    lost.write_bytes(b"".join(lines[:3] + lines[4:]))
    shops.torn(folder / "ledgers/3333.ledger.jsonl", b'{"kind":"step"', b'["kind":"step"')
    return folder


def with_the_rule(pack: str, rule: str) -> str:
    before = "  - name: return_within_policy\n"
    assert pack.count(before) == 1
    return pack.replace(before, rule + before).replace("version: 2\n", "version: 3\n")


def run(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PATH": f"{folder / '.venv' / 'bin'}{os.pathsep}{os.environ['PATH']}", "LC_ALL": "C.UTF-8"}
    return subprocess.run(
        ["/bin/sh", "-c", command], cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, encoding="utf-8", timeout=600, check=False,
    )  # fmt: skip


def walked(page: str, desk: Path) -> str:
    """The page as it is once its blocks are done in their order: commands run, the rule written where it says."""
    pack = desk / "policies" / "support.yaml"

    def done(block: re.Match[str]) -> str:
        kind, text = block.groups()
        if kind == "yaml":
            pack.write_text(with_the_rule(pack.read_text(), text))
            assert pack.read_text() == shops.with_the_rule().replace('include: ["ledgercli:loops"]\n', "")
            return block[0]
        assert kind == "console"
        told = ""
        for command in re.findall(r"^\$ (.*)$", text, re.MULTILINE):
            ran = run(command, desk)
            told += f"$ {command}\n{ran.stdout}" + (f"[{ran.returncode}]\n" if ran.returncode else "")
        return f"```console\n{told}```\n".removesuffix("\n")

    return BLOCK.sub(done, page)


def test_the_walk(desk: Path) -> None:
    page = walked(FILE.read_text(encoding="utf-8"), desk)
    if UPDATE:
        FILE.write_text(page, encoding="utf-8")
    assert fixed(page) == fixed(FILE.read_text(encoding="utf-8"))
    assert "newly denied     refund_of_own_order" in page
    assert "4,997 ledgers" in page
    assert "not judged: 3 ledgers" in page
