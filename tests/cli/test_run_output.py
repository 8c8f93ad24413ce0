"""What `ledger run` shows, byte for byte, and that nothing in a result can do more than be read."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys

import pytest
from rich.cells import cell_len

from tests.cli.conftest import GOLDEN, environment

WEATHER = "ledger run --scenario fixtures/scenarios/weather.yaml"


def test_a_run_that_completes_one_that_halts_and_one_whose_tool_fails(golden):
    golden(
        "run-weather",
        f"{WEATHER} --out beijing.ledger.jsonl",
        f"{WEATHER} --task Area51 --out area51.ledger.jsonl",
        f"{WEATHER} --task Atlantis --out atlantis.ledger.jsonl",
        f"{WEATHER} --max-steps 1 --out limit.ledger.jsonl",
        "ledger run fixtures/scenarios/weather-twice.yaml --out twice.ledger.jsonl",
    )


def test_chinese_is_cut_at_a_whole_cell(golden):
    golden("run-chinese", "ledger run fixtures/scenarios/weather-beijing-zh.yaml --out zh.ledger.jsonl")


def test_a_locale_without_unicode_gets_escapes_and_no_wider_lines(golden):
    golden(
        "run-ascii",
        "ledger run fixtures/scenarios/weather-beijing-zh.yaml --out zh.ledger.jsonl",
        "ledger run desk.yaml --out desk.ledger.jsonl",
        env={"LANG": "C"},
    )
    (GOLDEN / "run-ascii.txt").read_bytes().decode("ascii")


def test_denied_then_corrected_warned_and_asked(golden):
    golden(
        "run-desk",
        "ledger run desk.yaml --out a.ledger.jsonl",
        "ledger run desk.yaml --approve yes --out b.ledger.jsonl",
        "ledger run desk.yaml --approve no --set constraints.max_denials=2 --out c.ledger.jsonl",
        "ledger run desk.yaml --mode shadow --out d.ledger.jsonl",
    )


def test_more_is_shown_when_asked_for_but_never_a_secret(golden):
    golden(
        "run-verbose",
        "ledger run desk.yaml -v --approve yes --out v.ledger.jsonl",
        "ledger run fixtures/scenarios/weather-beijing-zh.yaml -vv --out vv.ledger.jsonl",
        "ledger run desk.yaml -vv --approve yes --out w.ledger.jsonl",
    )
    assert b"483920" not in (GOLDEN / "run-verbose.txt").read_bytes()


def test_escape_and_bidi_characters_are_printed_inert(golden):
    golden(
        "run-hostile",
        "ledger run hostile.yaml --out hostile.ledger.jsonl",
        "ledger run hostile.yaml -vv --out hostile2.ledger.jsonl",
    )
    shown = (GOLDEN / "run-hostile.txt").read_text(encoding="utf-8")
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2060-\u206f]", shown)


def test_no_result_can_give_github_a_command(golden):
    golden("run-hostile-github", "ledger run hostile.yaml --out g.ledger.jsonl", env={"GITHUB_ACTIONS": "true"})
    for line in (GOLDEN / "run-hostile-github.txt").read_text(encoding="utf-8").splitlines():
        assert not line.lstrip().startswith("::")
        assert "##[" not in line


@pytest.mark.parametrize("name", ["run-weather", "run-chinese", "run-ascii", "run-desk", "run-hostile"])
def test_only_what_may_not_be_cut_is_wider_than_eighty_cells(name):
    for line in (
        (GOLDEN / f"{name}.txt").read_text(encoding="utf-8").split("ledger run hostile.yaml -vv")[0].splitlines()
    ):
        if not line.startswith(("$", "next:", "::", "\\x")):
            assert cell_len(line) <= 80, line


def test_quiet_prints_the_ledger_alone(ledger):
    ran = ledger("run", "-q", "fixtures/scenarios/weather.yaml", "--out", "q.ledger.jsonl")
    assert ran == (0, b"q.ledger.jsonl\n", b"")


def test_jsonl_is_the_ledger_itself(ledger, folder):
    ran = ledger(
        "run", "desk.yaml", "--approve", "yes", "--format", "jsonl", "--out", "j.ledger.jsonl", env={"LANG": "C"}
    )
    assert ran.code == 0
    assert ran.out == (folder / "j.ledger.jsonl").read_bytes()


def test_json_is_one_object_with_all_runs(ledger):
    ran = ledger("run", "fixtures/scenarios/weather.yaml", "desk.yaml", "--format", "json", "--out", "both/")
    said = json.loads(ran.out)
    assert said["schema"] == "run/1"
    weather, desk = said["runs"]
    assert (weather["status"], weather["steps"], weather["ran"]) == ("completed", 2, 2)
    assert weather["answer"] == "Sunny and 22 degrees: a T-shirt will do."
    assert (desk["status"], desk["denied"], desk["waiting"]) == ("awaiting_approval", 1, 1)
    assert desk["denied_by"] == {"desk/auth_required_for_sensitive_tools": 1}
    assert [miss["path"] for miss in desk["unmet"]] == ["status", "facts.refunded"]


def test_several_runs_follow_one_another_with_a_line_between(ledger):
    ran = ledger("run", "fixtures/scenarios/weather.yaml", "fixtures/scenarios/weather.yaml", "--out", "two/")
    assert ran.out.count(b"\n\nweather  task") == 1


def _on_a_terminal(folder, *arguments: str, **env: str) -> bytes:
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "ledgercli", *arguments]
    with subprocess.Popen(
        command,
        cwd=folder,
        env=environment({"TERM": "xterm", **env}),
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
    ) as process:
        os.close(theirs)
        shown = b""
        while True:
            try:
                part = os.read(ours, 65536)
            except OSError:  # Linux says EIO at the end
                break
            if not part:
                break
            shown += part
        process.wait()
    os.close(ours)
    return shown.replace(b"\r\n", b"\n")


def test_a_terminal_gets_colour_that_only_repeats_words(folder):
    arguments = ("run", "desk.yaml", "--out")
    coloured = _on_a_terminal(folder, *arguments, "c1.ledger.jsonl")
    plain = _on_a_terminal(folder, *arguments, "c2.ledger.jsonl", NO_COLOR="1")
    assert b"\x1b" not in plain
    assert b"\x1b" not in _on_a_terminal(folder, *arguments, "c3.ledger.jsonl", TERM="dumb")
    for word in (
        b"\x1b[31mdeny \x1b[0m",
        b"\x1b[33mwarn \x1b[0m",
        b"\x1b[1mcharge\x1b[0m(",
        b"\x1b[2mdesk.pack.yaml:3\x1b[0m",
    ):
        assert word in coloured
    assert set(re.findall(rb"\x1b\[(\d+)m", coloured)) == {b"0", b"1", b"2", b"31", b"33"}
    mask = re.compile(rb"sha256:[0-9a-f]+|c\d\.ledger")
    assert mask.sub(b"", re.sub(rb"\x1b\[\d+m", b"", coloured)) == mask.sub(b"", plain)


def test_nothing_is_coloured_in_a_pipe(ledger):
    assert b"\x1b" not in ledger("run", "desk.yaml", "--out", "p.ledger.jsonl", env={"TERM": "xterm"}).out
