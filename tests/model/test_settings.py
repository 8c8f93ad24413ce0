"""Each setting of a model does something, and what cannot be asked is refused before anything is written."""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ledgercli.scenario import ModelSettings
from tests.commands import Run, command_line
from tests.model_desk import desk
from tests.model_server import ModelServer, Reply

pytestmark = [
    pytest.mark.model,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # litellm keeps connections for the next request
    pytest.mark.skipif(importlib.util.find_spec("litellm") is None, reason="litellm is not installed"),
]
DONE = Reply(calls=[("finish", '{"answer": "Paid."}')])
LOGIN = Reply(calls=[("login", '{"user": "lei"}')])
MODEL = "openai/gpt-4o"


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Run]:
    monkeypatch.setenv("OPENAI_API_KEY", "openais")
    monkeypatch.setenv("DESK_KEY", "the-desks")
    desk(tmp_path)
    (tmp_path / "mine.j2").write_text("{{ task }} Mine.\n")
    with command_line(tmp_path, monkeypatch, capsys) as one:
        yield one


def decided(run: Run, settings: str, *replies: Reply) -> tuple[int, ModelServer]:
    file = run.folder / "s.yaml"
    with ModelServer(*(replies or (DONE,))) as server:
        said = settings.replace("BASE", server.base)
        base = "" if "api_base" in said else f", api_base: '{server.base}'"
        text = file.read_text()
        file.write_text(text[: text.index("decide:")] + f"decide: {{model: {{model: {MODEL}{base}{said}}}}}\n")
        (run.folder / "w.ledger.jsonl").unlink(missing_ok=True)
        code = run("run", "s.yaml", "--out", "w.ledger.jsonl")
    return code, server


def sent(key: str, *, of: str = "requests") -> Callable[..., Any]:
    """What a request said."""
    return lambda _run, _code, server: [
        (one.get(key) if isinstance(one, dict) else one) for one in getattr(server, of)[:1]
    ]


def code(_run: Run, code: int, _server: ModelServer) -> int:
    return code


def asked(_run: Run, _code: int, server: ModelServer) -> int:
    return len(server.requests)


#: Setting → two values, what the model says, and what differs.
EFFECTS: dict[str, tuple[str, str, tuple[Reply, ...], Callable[..., Any]]] = {
    "temperature": ("", ", temperature: 0.5", (DONE,), sent("temperature")),
    "max_tokens": ("", ", max_tokens: 99", (DONE,), sent("max_tokens")),
    "stream": ("", ", stream: true", (DONE,), sent("stream")),
    "calls": ("", ", calls: json_schema", (DONE,), sent("tools")),
    "api_key_env": ("", ", api_key_env: DESK_KEY", (DONE,), sent("", of="keys")),
    "api_base": (", api_base: BASE", ", api_base: 'http://127.0.0.1:9/v1', retries: 0", (DONE,), asked),
    "timeout": (", retries: 0", ", retries: 0, timeout: 0.2", (Reply(calls=DONE.calls, hang=0.5),), code),
    "retries": (", retries: 0", ", retries: 1", (Reply(status=500), DONE), code),
    "max_cost": (", max_cost: 1", ", max_cost: 0.0001", (LOGIN, DONE), code),
    "offer": ("", ", offer: all", (DONE,), sent("tools")),
    "select": (", calls: tools", ", select: all, calls: tools", (DONE,), sent("messages")),
    "template": ("", ", template: mine.j2", (DONE,), sent("messages")),
}


def test_each_setting_has_its_effect() -> None:
    assert {*EFFECTS, "model"} == set(ModelSettings.model_fields)


@pytest.mark.parametrize("setting", EFFECTS)
def test_a_setting_changes_what_is_sent_or_how_it_ends(run: Run, setting: str) -> None:
    one, other, replies, told = EFFECTS[setting]
    file = run.folder / "s.yaml"
    file.write_text(file.read_text().replace("packs:", "facts: {unread: 12345}\npacks:"))
    tools = run.folder / "t.tools.yaml"
    tools.write_text(tools.read_text().replace("  pay:", "  never:\n    args: {}\n  pay:", 1))
    pack = run.folder / "p0.yaml"
    pack.write_text(pack.read_text() + "  - {name: no, tools: [never], check: 'false', on_fail: Never.}\n")
    results = [told(run, *decided(run, way, *replies)) for way in (one, other)]
    assert results[0] != results[1], results


def test_the_model_is_the_one_that_is_named(run: Run) -> None:
    _, server = decided(run, "")
    assert server.requests[0]["model"] == "gpt-4o"


WRONG = {
    ", api_key: sk-live-1234567890abcdef": "api_key",
    ", api_key_env: sk-live-1234567890abcdef": "api_key_env names an environment variable",
    ", api_key_env: AIzaSyA1234567890abcdefghijklmnopqrs": "api_key_env names an environment variable",
    ", api_base: 'https://user:sk-live-1234567890abcdef@host/v1'": "a key never stands there",
    ", api_base: 'https://host/v1?key=sk-live-1234567890abcdef'": "a key never stands there",
    ", api_base: 'file:///etc'": "api_base is http:// or https://",
    ", temperature: 3": "temperature",
    ", timeout: 0": "timeout",
    ", max_cost: 0": "max_cost",
    ", retries: 11": "retries",
    ", calls: both": "calls",
}


@pytest.mark.parametrize("settings", WRONG)
def test_what_means_nothing_is_refused_and_a_key_is_not_shown(run: Run, settings: str) -> None:
    code, server = decided(run, settings)
    assert (code, server.requests) == (2, [])
    assert WRONG[settings] in run.err
    for secret in ("1234567890abcdef",):
        assert secret not in run.err + run.out
        assert run("validate", "s.yaml") == 1
        assert secret not in run.err + run.out
    assert not (run.folder / "w.ledger.jsonl").exists()


@pytest.mark.parametrize(
    ("template", "error"),
    [("{{ task ", "mine.j2:1: unexpected end"), ("x\n{{ tusk }}", "mine.j2:2: 'tusk' is undefined"), (None, "no file")],
)
def test_a_template_that_cannot_be_filled_in_is_refused(run: Run, template: str | None, error: str) -> None:
    file = run.folder / "mine.j2"
    file.unlink() if template is None else file.write_text(template)
    code, server = decided(run, ", template: mine.j2")
    assert (code, server.requests) == (2, [])
    assert error in run.err
    assert not (run.folder / "w.ledger.jsonl").exists()


def test_a_flag_that_means_nothing_is_refused(run: Run) -> None:
    for option in ("--api-base=ftp://host", "--api-base=http://user:sk-live-1234567890abcdef@host"):
        began = time.monotonic()
        assert run("run", "s.yaml", option) == 2
        assert "error: api_base: api_base is http:// or https://" in run.err
        assert "sk-live" not in run.err
        assert time.monotonic() - began < 5
