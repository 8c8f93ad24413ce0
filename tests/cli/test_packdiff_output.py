"""What `ledger diff` prints of two versions of a pack, byte for byte, and its exit codes."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Run

Golden = Callable[..., None]
TOOLS = ("--toolset", "fixtures/toolsets/shop.tools.yaml")
EVIL = "\x1b[31m|<b>`x`\n::error::y"


def edited(folder: Path, name: str, *edits: tuple[str, str], pack: str = "support") -> Path:
    """A pack with some of its text replaced."""
    text = (folder / f"policies/{pack}.yaml").read_text(encoding="utf-8")
    for old, new in edits:
        assert old in text
        text = text.replace(old, new)
    (folder / name).write_text(text, encoding="utf-8")
    return folder / name


def stricter(folder: Path) -> None:
    edited(
        folder,
        "stricter.yaml",
        ("action.args.amount <= 500", "action.args.amount <= 200"),
        ("[charge, transfer]", "[transfer]"),
        ("state.facts.user_authenticated == true", "state.facts.user_authenticated"),
    )
    edited(folder, "turned.yaml", ("action.args.amount <= 500", "500 >= action.args.amount"))
    edited(folder, "loops2.yaml", ("max_same_calls: 3", "max_same_calls: 2"), pack="loops")


def test_text(folder: Path, golden: Golden) -> None:
    stricter(folder)
    tools = " ".join(TOOLS)
    golden(
        "packdiff",
        f"ledger diff policies/support.yaml stricter.yaml {tools}",
        f"ledger diff policies/support.yaml stricter.yaml {tools} --fail-on worse",
        f"ledger diff policies/support.yaml turned.yaml {tools} --fail-on verdicts",
        "ledger diff policies/loops.yaml loops2.yaml",
        "ledger diff policies/support.yaml policies/support.yaml",
    )


@pytest.mark.slow
def test_markdown_and_json(folder: Path, golden: Golden) -> None:
    stricter(folder)
    tools = " ".join(TOOLS)
    golden("packdiff-markdown", f"ledger diff policies/support.yaml stricter.yaml {tools} --format markdown")
    golden("packdiff-json", "ledger diff policies/loops.yaml loops2.yaml --format json")


@pytest.mark.slow
def test_errors(folder: Path, golden: Golden) -> None:
    stricter(folder)
    edited(folder, "typo.yaml", ("state.flags.payment_failed", "state.flags.payment_faild"))
    golden(
        "packdiff-errors",
        "ledger diff policies/support.yaml stricter.yaml",
        "ledger diff policies/support.yaml typo.yaml --toolset fixtures/toolsets/shop.tools.yaml",
        "ledger diff policies/support.yaml stricter.yaml --toolset policies/weather.yaml",
        "ledger diff policies/support.yaml none.yaml",
        "ledger diff policies/support.yaml stricter.yaml --fail-on state",
        "ledger diff policies/support.yaml stricter.yaml --only state",
        "ledger diff policies policies --toolset fixtures/toolsets/shop.tools.yaml",
    )


@pytest.mark.parametrize("form", ["text", "markdown"])
def test_hostile_text_stays_text(folder: Path, ledger: Run, form: str) -> None:
    said = json.dumps(EVIL)
    edited(folder, "evil.yaml", ('"A refund of {action.args.amount} needs approval."', said), ("<= 500", "<= 400"))
    ran = ledger("diff", "policies/support.yaml", "evil.yaml", *TOOLS, "--format", form, env={"GITHUB_ACTIONS": "true"})
    shown = ran.out.decode()
    assert ran.code == 1
    assert "\x1b" not in shown
    assert not any(line.lstrip().startswith("::") for line in shown.splitlines())
    if form == "markdown":
        assert set(re.findall(r"<[^>]*>?", shown)) == {"<code>", "</code>", "<br>"}


@pytest.mark.slow
def test_json_says_all(folder: Path, ledger: Run) -> None:
    stricter(folder)
    ran = ledger("diff", "policies/support.yaml", "stricter.yaml", *TOOLS, "--format", "json")
    said = json.loads(ran.out)
    assert (ran.code, said["schema"], said["kind"], said["exit_code"], said["same"]) == (1, "diff/1", "packs", 1, False)
    tools = {tool["tool"]: tool for tool in said["tools"]}
    assert {name for name, tool in tools.items() if tool["verdicts"] == "differs"} == {"charge", "create_return"}
    assert {tool["verdicts"] for name, tool in tools.items() if name not in ("charge", "create_return")} == {"same"}
    (one,) = tools["create_return"]["differences"]
    assert (one["kind"], one["by"], one["worse"]) == ("effect", ["refund_over_500"], False)
    assert 200 < one["example"]["args"]["amount"] <= 500
    assert (one["a"]["effect"], one["b"]["effect"]) == ("allow", "require_approval")
