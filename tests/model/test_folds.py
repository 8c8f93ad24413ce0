"""Older steps that a model behind a server sums up: told, read by the next prompts, refused where it invents."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.books import lines_of
from tests.commands import Run, command_line
from tests.model_desk import FOLDED, desk, steps
from tests.model_server import ModelServer, Reply

pytestmark = [
    pytest.mark.model,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # litellm keeps connections for the next request
    pytest.mark.skipif(importlib.util.find_spec("litellm") is None, reason="litellm is not installed"),
]
KEY = "zq-4c7e-desk-key-91ab"
LOGINS = [Reply(calls=[("login", f'{{"user": "u{number}"}}')]) for number in range(1, 14)]
DONE = Reply(calls=[("finish", '{"answer": "Done."}')])
GOOD, INVENTED = "The agent logged u1 to u8 in.", "The agent logged u1 to u99 in."


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Run]:
    """The command line where the desk is; afterwards every ledger verifies and replays, and no key is in any file."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with command_line(tmp_path, monkeypatch, capsys) as one:
        yield one
        for ledger in tmp_path.glob("*.ledger.jsonl"):
            assert one("validate", ledger.name) == 0, one.out + one.err
            assert one("replay", ledger.name) == 0, one.out + one.err
        for path in tmp_path.rglob("*"):
            assert not path.is_file() or KEY not in path.read_text(), path


def script(fold: Reply) -> list[Reply]:
    """All replies in order: eleven calls, what eight of them came to, two calls more, the end."""
    return [*LOGINS[:11], fold, *LOGINS[11:], DONE]


def written(run: Run, base: str, more: str = "") -> None:
    """The desk whose older steps a model sums up, both models at one server."""
    folds = FOLDED[FOLDED.index("summarise") :].replace("gpt-4o-mini", f"gpt-4o-mini, api_base: '{base}'{more}")
    desk(run.folder, more=f"    {folds}")


def decided(run: Run, replies: Sequence[Reply], *options: str, out: str = "w", more: str = "") -> tuple[int, Any]:
    with ModelServer(*replies) as server:
        written(run, server.base, more)
        code = run("run", "s.yaml", "--api-base", server.base, "--out", f"{out}.ledger.jsonl", *options)
    return code, server


def summaries(run: Run, out: str = "w") -> list[dict[str, Any]]:
    return [line for line in lines_of(run.folder / f"{out}.ledger.jsonl") if line["kind"] == "summary"]


def prompt(request: dict[str, Any]) -> str:
    return "\n".join(message["content"] for message in request["messages"])


def test_a_good_fold_is_recorded_and_read(run: Run) -> None:
    code, server = decided(run, script(Reply(content=GOOD)), "--keep-prompts")
    assert (code, len(steps(run.lines))) == (0, 14)
    assert [one["model"] for one in server.requests] == ["gpt-4o"] * 11 + ["gpt-4o-mini"] + ["gpt-4o"] * 3
    assert "tools" not in server.requests[11]
    [fold] = summaries(run)
    assert (fold["first"], fold["last"], fold["text"]) == (1, 8, GOOD)
    assert fold["engine"]["model"] == "openai/gpt-4o-mini"
    assert fold["engine"]["tokens"] == {"prompt": 100, "completion": 20}
    assert fold["engine"]["cost"] > 0
    assert f"@1-8 {GOOD}" in prompt(server.requests[12])
    assert fold["engine"]["prompt"] in (run.folder / "w.prompts.jsonl").read_text()


def test_a_fold_that_invents_an_id_is_refused_and_the_run_goes_on(run: Run) -> None:
    code, server = decided(run, script(Reply(content=INVENTED)))
    assert (code, len(steps(run.lines))) == (0, 14)
    [fold] = summaries(run)
    assert fold["text"] is None
    assert fold["engine"]["faults"] == [{"kind": "fold", "said": INVENTED}]
    assert fold["engine"]["tokens"] == {"prompt": 100, "completion": 20}
    assert "@1-8 login 8x" in prompt(server.requests[12])
    assert all("u99" not in prompt(one) for one in server.requests)


@pytest.mark.parametrize("wrong", [Reply(status=401, error=f"wrong key {KEY}"), Reply(status=400), Reply(hang=3)])
def test_a_server_that_does_not_say_it_ends_no_run(run: Run, wrong: Reply) -> None:
    code, server = decided(run, script(wrong), more=", retries: 0, timeout: 0.5")
    assert (code, len(steps(run.lines))) == (0, 14)
    [fold] = summaries(run)
    assert fold["text"] is None
    assert fold["engine"]["tokens"] == {"prompt": None, "completion": None}
    assert [one["kind"] for one in fold["engine"]["faults"]] in (["key"], ["refused"], ["timeout"])
    assert "@1-8 login 8x" in prompt(server.requests[12])


@pytest.mark.parametrize("fold", [GOOD, INVENTED], ids=["good", "invented"])
@pytest.mark.parametrize("stopped", [11, 12], ids=["before it", "behind it"])
def test_a_run_that_goes_on_has_the_very_same_prompts(run: Run, fold: str, stopped: int) -> None:
    replies = script(Reply(content=fold))
    _, whole = decided(run, replies, out="x")
    with ModelServer(*replies) as server:
        written(run, server.base)
        assert (
            run("run", "s.yaml", "--api-base", server.base, "--out", "w.ledger.jsonl", "--max-steps", f"{stopped}") == 3
        )
        more = ("--set", "constraints.max_steps=100")
        assert run("run", "--resume", "w.ledger.jsonl", *more) == 0, run.err
    assert [one["messages"] for one in server.requests] == [one["messages"] for one in whole.requests]
    assert len(summaries(run)) == 1
    assert "engine" not in next(line for line in run.lines if line["kind"] == "resume")


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (", max_cost: 1", "no price is known for openai/nobodys"),
        (", api_key_env: NOBODYS_KEY", "NOBODYS_KEY is not set"),
    ],
)
def test_what_cannot_be_asked_is_refused_before_anything_runs(run: Run, more: str, said: str) -> None:
    written(run, "http://127.0.0.1:9/v1", more)
    file = run.folder / "s.yaml"
    file.write_text(file.read_text().replace("gpt-4o-mini", "nobodys"))
    assert run("run", "s.yaml", "--out", "w.ledger.jsonl") in (2, 4)
    assert said in run.err
    assert not (run.folder / "w.ledger.jsonl").exists()


def test_the_runs_own_limit_needs_a_price_of_folds_too(run: Run) -> None:
    written(run, "http://127.0.0.1:9/v1")
    file = run.folder / "s.yaml"
    file.write_text(file.read_text().replace("gpt-4o-mini", "nobodys"))
    assert run("run", "s.yaml", "--out", "w.ledger.jsonl", "--max-cost", "1") == 2
    assert "no price is known for openai/nobodys" in run.err
