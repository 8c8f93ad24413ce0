"""What a model writes of older steps: told in the ledger, read by the next prompts, and never the end of a run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ledgercli.errors import EngineError, InvalidDocumentError, LedgerCliError
from ledgercli.ledger import read
from ledgercli.ledger.verify import verify
from ledgercli.loading import load_scenario
from ledgercli.model.calling import Usage
from ledgercli.model.failing import ModelError
from ledgercli.model.reading import Reply
from ledgercli.model.request import Request
from ledgercli.prompting.recorded import recorded
from ledgercli.replay.verifying import replay
from ledgercli.shelf import Shelf
from tests import books
from tests.books import kept, lines_of
from tests.commands import command_line
from tests.forging import sealed
from tests.model_desk import (
    FINISH,
    FOLDED,
    LOGIN,
    PAY,
    PRICE,
    FoldAsker,
    Model,
    calls,
    decided,
    desk,
    job,
    steps,
    taken_up,
    text,
)

GOOD, INVENTED = text("The agent logged lei in."), text("It paid 7 for Ann.")
ALL = (calls(LOGIN), calls(PAY), calls(FINISH))


def run(folder: Path, folds: FoldAsker, *said: Reply, **settings: Any) -> tuple[Model, list[dict[str, Any]], Path]:
    """A run that is folded at each goal; its ledger is valid and comes out the same again."""
    model = Model(*(said or ALL))
    _, lines = decided(desk(folder, more=FOLDED), model, folds=folds, **settings)
    ledger = folder / "run.ledger.jsonl"
    assert replay(ledger, Shelf()).divergence is None
    return model, lines, ledger


def summaries(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [line for line in lines if line["kind"] == "summary"]


def faults(line: dict[str, Any]) -> list[tuple[str, str]]:
    return [(one["kind"], one["said"]) for one in line["engine"].get("faults", ())]


class Fails:
    """A server that is not there."""

    def __init__(self, error: EngineError) -> None:
        self.error, self.asked = error, 0

    def __call__(self, _request: Request) -> tuple[Reply, Usage]:
        self.asked += 1
        raise self.error


def test_a_fold_stands_in_the_ledger_and_in_the_next_prompts(tmp_path: Path) -> None:
    folds = Model(GOOD, INVENTED)
    model, lines, _ = run(tmp_path, folds)
    good, refused = summaries(lines)
    assert [line["kind"] for line in lines] == ["open", "step", "summary", "intent", "step", "summary", "step", "close"]
    assert (good["first"], good["last"], good["text"]) == (1, 1, "The agent logged lei in.")
    assert good["engine"]["model"] == "openai/gpt-4o-mini"
    assert good["engine"]["prompt"] == folds.asked[0].digest
    assert (good["engine"]["tokens"], good["engine"]["cost"]) == ({"prompt": 100, "completion": 20}, PRICE)
    assert faults(good) == []
    assert "login" in folds.prompts[0]
    assert "The agent logged lei in." not in model.prompts[0]
    assert (refused["first"], refused["last"], refused["text"]) == (2, 2, None)


def test_a_fold_that_invents_a_value_is_refused_and_the_run_goes_on(tmp_path: Path) -> None:
    model, lines, _ = run(tmp_path, Model(GOOD, INVENTED))
    assert steps(lines) == ["ok login", "ok pay", "ok finish"]
    assert faults(summaries(lines)[1]) == [("fold", "It paid 7 for Ann.")]
    assert summaries(lines)[1]["engine"]["cost"] == PRICE
    assert all("Ann" not in prompt for prompt in model.prompts)


LONG = (*[calls(("login", f'{{"user": "u{number}"}}')) for number in range(1, 13)], calls(FINISH))


def long_run(folder: Path, folds: FoldAsker, *said: Reply, **more: Any) -> tuple[Model, list[dict[str, Any]]]:
    """A run without goals that is long enough for a fold."""
    model = Model(*(said or LONG))
    only = FOLDED.partition("summarise")
    _, lines = decided(desk(folder, more=f"    {only[1]}{only[2]}"), model, folds=folds, **more)
    return model, lines


def test_what_it_wrote_takes_the_place_of_counts(tmp_path: Path) -> None:
    model, lines = long_run(tmp_path, Model(text("The agent logged u1 to u8 in.")))
    [one] = summaries(lines)
    assert (one["first"], one["last"]) == (1, 8)
    assert "@1-8 The agent logged u1 to u8 in." not in model.prompts[10]
    assert "@1-8 The agent logged u1 to u8 in." in model.prompts[11]
    assert "@1-8 The agent logged u1 to u8 in." in model.prompts[12]


def test_counts_stay_where_it_invents(tmp_path: Path) -> None:
    model, _ = long_run(tmp_path, Model(text("The agent logged u99 in.")))
    assert "@1-8 login 8x" in model.prompts[11]
    assert all("u99" not in prompt for prompt in model.prompts)


@pytest.mark.parametrize(
    ("wrong", "fault"),
    [
        (Fails(ModelError("unreachable", "no route")), ("unreachable", "the server cannot be reached: no route")),
        (Fails(EngineError("It is broken.")), ("error", "It is broken.")),
        (lambda _: (text("The agent", finish="length"), Usage(1, 1, None, 0)), ("cut", "The agent")),
        (lambda _: (text("  "), Usage(1, 1, None, 0)), ("empty", "  ")),
        (lambda _: (text("\ud800 u77"), Usage(1, 1, None, 0)), ("fold", "? u77")),
    ],
    ids=["unreachable", "broken", "cut", "empty", "invented"],
)
def test_no_failure_of_it_ends_the_run(tmp_path: Path, wrong: FoldAsker, fault: tuple[str, str]) -> None:
    model, lines = long_run(tmp_path, wrong)
    assert lines[-1]["status"] == "completed"
    [one] = summaries(lines)
    assert (one["text"], one["engine"]["cost"]) == (None, None)
    assert faults(one) == [fault]
    assert "@1-8 login 8x" in model.prompts[11]


def test_a_key_in_what_it_says_is_nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "zq-4c7e-desk-key-91ab")
    _, lines = long_run(tmp_path, Model(text("The agent logged zq-4c7e-desk-key-91ab in.")))
    [one] = summaries(lines)
    assert [kind for kind, _ in faults(one)] == ["key"]
    assert "zq-4c7e" not in (tmp_path / "run.ledger.jsonl").read_text()


@pytest.mark.parametrize("said", ["The agent logged u1 to u8 in.", "The agent logged u99 in."])
def test_a_run_that_goes_on_has_the_same_next_prompts_and_asks_for_no_fold_again(tmp_path: Path, said: str) -> None:
    for name in ("whole", "halves"):
        (tmp_path / name).mkdir()
    whole, _ = long_run(tmp_path / "whole", Model(text(said)))
    first, _ = long_run(tmp_path / "halves", Model(text(said)), max_cost=12 * PRICE)  # eleven steps and the fold
    then = Model(*LONG[len(first.asked) :])
    ended = taken_up(tmp_path / "halves" / "s.yaml", then, folds=Model())
    assert ended.status == "completed"
    assert [one.body for one in whole.asked] == [one.body for one in first.asked + then.asked]
    path = tmp_path / "halves" / "run.ledger.jsonl"
    assert len(summaries(kept(path))) == 1
    assert replay(path, Shelf()).divergence is None


def test_the_prompt_at_a_step_is_the_one_that_was_sent(tmp_path: Path) -> None:
    model, _ = long_run(tmp_path, Model(text("The agent logged u1 to u8 in.")))
    at = recorded(str(tmp_path / "run.ledger.jsonl"), 11)
    made = at.prompter.prompt(at.state, at.history, at.now)
    assert list(made.messages) == list(model.asked[11].messages)


def test_what_folds_cost_counts_for_the_limit_of_the_run(tmp_path: Path) -> None:
    _, lines, _ = run(tmp_path, Model(GOOD, GOOD), max_cost=2 * PRICE)
    assert (steps(lines), lines[-1]["limit"]) == (["ok login"], "max_cost")


def test_its_own_limit_ends_folding_and_no_run(tmp_path: Path) -> None:
    folds = FOLDED.replace("gpt-4o-mini}", f"gpt-4o-mini, max_cost: {PRICE}}}")
    asked = Model(GOOD)
    _, lines = decided(desk(tmp_path, more=folds), Model(*ALL), folds=asked)
    assert (len(asked.asked), len(summaries(lines)), lines[-1]["status"]) == (1, 1, "completed")


def test_a_reply_without_a_price_is_the_last_where_cost_is_held(tmp_path: Path) -> None:
    asked = Model(GOOD, GOOD, cost=None)
    _, lines, _ = run(tmp_path, asked, max_cost=1)
    assert (len(asked.asked), lines[-1]["status"]) == (1, "completed")


def test_an_engine_that_nobody_sums_up_for_writes_no_such_line(tmp_path: Path) -> None:
    one = job(desk(tmp_path), Model(calls(LOGIN), calls(FINISH)))
    assert one.engine.summarised() is None  # type: ignore[union-attr]


def test_a_run_can_be_summed_up_by_a_program_too(tmp_path: Path) -> None:
    rules = books.book(tmp_path, "pack: p\nrules: []\n", tools="toolset: t\ntools: {look: {access: read}}\n")
    with books.guard(rules, tmp_path / "run.ledger.jsonl") as guard:
        with pytest.raises(LedgerCliError, match="there are no steps 1 to 1"):
            guard.summarised(1, 1, "Looked.")
        guard.record(guard.check("look", {}), {})
        guard.summarised(1, 1, "Looked.")
    with pytest.raises(LedgerCliError, match="the run has ended"):
        guard.summarised(1, 1, "Looked.")
    assert [line["kind"] for line in kept(tmp_path / "run.ledger.jsonl")] == ["open", "step", "summary", "close"]
    assert replay(tmp_path / "run.ledger.jsonl", Shelf()).divergence is None


def test_what_is_masked_stays_so_in_it(tmp_path: Path) -> None:
    tools = "toolset: t\nredact: [look.data.code]\ntools: {look: {access: read}}\n"
    rules = books.book(tmp_path, "pack: p\nrules: []\n", tools=tools)
    with books.guard(rules, tmp_path / "run.ledger.jsonl") as guard:
        guard.record(guard.check("look", {}), {"code": "4711-9"})
        guard.summarised(1, 1, "The code is 4711-9.")
    [one] = summaries(kept(tmp_path / "run.ledger.jsonl"))
    assert one["text"].startswith("The code is [redacted ")


def test_replay_finds_a_fold_of_another_model_and_one_that_nobody_could_have_written(tmp_path: Path) -> None:
    _, lines, path = run(tmp_path, Model(GOOD, INVENTED))
    summaries(lines)[0]["engine"]["model"] = "openai/other"
    path.write_bytes(b"".join(sealed(lines)))
    found = replay(path, Shelf()).divergence
    assert found is not None
    assert (found.layer, found.recorded) == ("summary.engine.model", "openai/other")
    lines = lines_of(path)
    del summaries(lines)[0]["engine"]
    path.write_bytes(b"".join(sealed(lines)))
    found = replay(path, Shelf()).divergence
    assert found is not None
    assert found.layer == "summary.engine"
    lines = lines_of(path)
    summaries(lines)[0]["last"] = 9
    path.write_bytes(b"".join(sealed(lines)))
    assert [one.code for one in verify(path).problems] == ["summary"]


def test_only_a_scenario_that_a_model_decides_says_who_sums_up(tmp_path: Path) -> None:
    file = desk(tmp_path, more=FOLDED)
    assert load_scenario(str(file)).file.summariser is not None
    whole = file.read_text()
    for instead in ("{script: [{propose: {tool: finish}}]}", "{recording: {file: x.json, format: openai-chat}}"):
        file.write_text(whole.replace("{model: {model: openai/gpt-4o}}", instead))
        with pytest.raises(InvalidDocumentError) as refused:
            load_scenario(str(file))
        [problem] = refused.value.problems
        assert problem.message.startswith("summarise goes with decide: {model: ...}")


def test_readers_of_ledgers_pass_over_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, folds in (("a", Model(GOOD, GOOD)), ("b", Model(INVENTED, INVENTED))):
        (tmp_path / name).mkdir()
        run(tmp_path / name, folds)
    assert any(entry.kind == "summary" for entry in read(tmp_path / "a" / "run.ledger.jsonl"))
    with command_line(tmp_path, monkeypatch, capsys) as one:
        assert one("diff", "a/run.ledger.jsonl", "b/run.ledger.jsonl") == 0
        assert "same: 3 steps" in one.out
        for command in ("list .", "why a/run.ledger.jsonl@2", "summarize a/run.ledger.jsonl", "prompt a/run.ledger.jsonl@2",
                        "replay a/run.ledger.jsonl --trace facts.paid", "export --to sft a/run.ledger.jsonl"):  # fmt: skip
            assert one(*command.split()) == 0, command + one.err
        assert one("summarize", "a/run.ledger.jsonl", "--format", "json") == 0
        assert json.loads(one.out)["asked"]["openai/gpt-4o-mini"]["tokens"] == 240
