"""What the README shows of a model is what comes of it."""

from __future__ import annotations

import importlib.util
import re
import shlex
from itertools import pairwise
from pathlib import Path

import pytest

from tests.commands import ROOT, Run, command_line
from tests.model_desk import desk
from tests.model_server import ModelServer, Reply

pytestmark = [
    pytest.mark.model,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # litellm keeps connections for the next request
    pytest.mark.skipif(importlib.util.find_spec("litellm") is None, reason="litellm is not installed"),
]
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", (ROOT / "README.md").read_text("utf-8"), re.MULTILINE | re.DOTALL)
CHANGING = re.compile(r"-\d{8}-\d{6}-[0-9a-z]{4}\b|sha256:[0-9a-f]{12}")
REPLIES = (
    Reply(calls=[("get_weather", '{"location": "Beijing"}')]),
    Reply(calls=[("give_suggestion", '{"weather_condition": "Sunny", "temperature": 22}')]),
)


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    for name in ("fixtures", "policies"):
        (tmp_path / name).symlink_to(ROOT / name)
    with command_line(tmp_path, monkeypatch, capsys) as one:
        yield one


def test_the_command_prints_what_is_shown(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    command, (kind, shown) = next(
        (block, after) for (sh, block), after in pairwise(BLOCKS) if sh == "sh" and "--model" in block
    )
    key, program, *arguments = shlex.split(command)
    assert (key, program, kind) == ("OPENAI_API_KEY=...", "ledger", "text")
    with ModelServer(*REPLIES) as server:
        monkeypatch.setenv("OPENAI_API_BASE", server.base)
        monkeypatch.setenv("OPENAI_API_KEY", "whatever-it-is")
        assert run(*arguments) == 0
    assert CHANGING.sub("", run.out) == CHANGING.sub("", shown)


def test_the_settings_are_such(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    (settings,) = [text for kind, text in BLOCKS if kind == "yml"]
    file = desk(run.folder)
    text = file.read_text()
    with ModelServer(Reply(content='{"tool": "finish", "args": {}}')) as server:
        file.write_text(text[: text.index("decide:")] + settings.replace("http://127.0.0.1:8080/v1", server.base))
        monkeypatch.setenv("DESK_KEY", "whatever-it-is")
        assert run("run", "s.yaml") == 0, run.out + run.err
    assert server.keys == ["Bearer whatever-it-is"]
