"""A small desk for runs that a model decides, and a model that says what is written down: no litellm, no server."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ledgercli.ledger import read
from ledgercli.loading import load_scenario
from ledgercli.loop import Approver, Ended
from ledgercli.model.calling import Usage
from ledgercli.model.engine import ModelEngine
from ledgercli.model.folding import FoldWriter
from ledgercli.model.reading import Called, Reply
from ledgercli.model.request import Request
from ledgercli.model.settings import Settled
from ledgercli.reopening import reopen
from ledgercli.rulebook import Rulebook
from ledgercli.runs import Job, Options, clock_of
from ledgercli.scenario import ModelSettings
from tests.books import kept, scenario

DESK = """
    toolset: desk
    tools:
      login:
        access: read
        args: {user: {type: string}, code: {type: string, default: ""}}
        run: {canned: [{result: {ok: true}}]}
        on_success: {set: {facts.user: action.args.user}}
      pay:
        args: {amount: {type: number}}
        run: {canned: [{result: {paid: true}}]}
        on_success: {set: {facts.paid: action.args.amount}}
"""
RULES = """
    pack: p
    rules:
      - name: users_pay
        tools: [pay]
        check: has(state.facts.user)
        on_fail: {error: "Nobody is logged in.", hint: Log in.}
      - name: much
        tools: [pay]
        check: action.args.amount <= 100
        on_fail: {error: "{action.args.amount} is much.", effect: require_approval}
"""
SCENARIO = """
    scenario: desk
    task: Pay 5 for lei.
    toolset: t.tools.yaml
    packs: [p0.yaml]
    now: "2026-08-01T12:00:00Z"
    decide: {model: {model: MODEL}}
"""
#: Asks once: the reply, and what it took.
FoldAsker = Callable[[Request], tuple[Reply, Usage]]
LOGIN, PAY, FINISH = ("login", '{"user": "lei"}'), ("pay", '{"amount": 5}'), ("finish", '{"answer": "Paid."}')
PRICE = 0.01


#: A goal that is reached ends a fold.
FOLDED = """
    goals:
      - {name: known, done_when: has(state.facts.user)}
      - {name: paid, done_when: has(state.facts.paid)}
      - {name: late, done_when: state.step > 99}
    summarise: {model: {model: openai/gpt-4o-mini}}
"""


def desk(folder: Path, *, tools: str = DESK, model: str = "openai/gpt-4o", more: str = "") -> Path:
    """Write the scenario, its tools and its rules."""
    return scenario(folder, SCENARIO.replace("MODEL", model) + more, tools, RULES)


def calls(*said: tuple[str, str], finish: str = "tool_calls") -> Reply:
    """A reply with native calls: tool and arguments, as text."""
    return Reply(None, [Called(tool, args, f"c{number}") for number, (tool, args) in enumerate(said)], finish)


def text(said: str, finish: str = "stop") -> Reply:
    """A reply of text."""
    return Reply(said, (), finish)


class Model:
    """Says one reply a request, in order; `asked` are the requests."""

    def __init__(self, *replies: Reply, cost: float | None = PRICE, interrupts: int | None = None) -> None:
        self.replies, self.asked, self.cost, self.interrupts = list(replies), list[Request](), cost, interrupts

    def __call__(self, request: Request) -> tuple[Reply, Usage]:
        self.asked.append(request)
        if self.interrupts == len(self.asked):
            raise KeyboardInterrupt
        return self.replies[len(self.asked) - 1], Usage(100, 20, self.cost, 0.25)

    @property
    def prompts(self) -> list[str]:
        """What stood in each prompt, as one text."""
        return ["\n".join(message["content"] for message in one.messages) for one in self.asked]


def job(
    file: Path,
    model: Model,
    *,
    out: str = "run",
    keep_prompts: bool = False,
    folds: FoldAsker | None = None,
    **settings: Any,
) -> Job:
    """A run that the model decides; `folds` is what says what older steps came to."""
    loaded = load_scenario(str(file))
    book = Rulebook(loaded.toolset, loaded.packs, scenario=loaded)
    assert book.problems() == []
    how = ModelSettings.model_validate({"model": "openai/gpt-4o", "calls": "tools", **settings})
    writer = None
    if folds is not None:
        assert loaded.file.summariser is not None
        writer = FoldWriter(loaded.file.summariser, capped=how.max_cost is not None, asker=folds)
    engine = ModelEngine(Settled(how, how.calls if how.calls != "auto" else "tools"), book, model, writer)
    options = Options(sync="none", keep_prompts=keep_prompts)
    ledger = file.parent / f"{out}.ledger.jsonl"
    return Job(loaded, book, engine, book.initial_state(), ledger, clock_of(loaded.file.now), options)


def taken_up(
    file: Path, model: Model, *, out: str = "run", sets: Mapping[str, Any] | None = None, **settings: Any
) -> Ended:
    """Go on with a run, the model asked in another way than before."""
    again = reopen(file.parent / f"{out}.ledger.jsonl")
    again.put(sets or {})
    one = job(file, model, out=out, **settings)
    again.engine = one.engine_line()
    for entry in read(again.path):
        one.engine.take(entry.record)  # type: ignore[attr-defined]  # it is a model's
    return replace(one, again=again, state=again.state).run(None, lambda _p, _v: None, lambda _line: None)


def decided(
    file: Path, model: Model, *, approver: Approver = lambda _p, _v: None, **more: Any
) -> tuple[Ended, list[dict[str, Any]]]:
    """Carry a run out; how it ended, and its lines once they were verified."""
    one = job(file, model, **more)
    ended = one.run(None, approver, lambda _line: None)
    return ended, kept(one.ledger)


def steps(lines: Sequence[dict[str, Any]]) -> list[str]:
    """Every step: `outcome tool`."""
    return [f"{line['outcome']} {line['action']['tool']}" for line in lines if line["kind"] == "step"]


def told(lines: Sequence[dict[str, Any]]) -> list[tuple[str, int | None]]:
    """Every line that tells what asking took: its kind, and the tokens of the prompts."""
    asked = [(line["kind"], line["engine"]["tokens"]["prompt"]) for line in lines[1:] if "engine" in line]
    json.dumps(asked)
    return asked
