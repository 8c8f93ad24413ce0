"""A prompt for `ledger prompt`: how it is written, how many tokens it has, what asking comes to.

Invariants:
* What is shown is the request itself: the messages, and what is sent beside them.
* litellm is imported only where a model is named: to count its tokens, or to ask it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import orjson

from ledgercli import cel, paths
from ledgercli.errors import ExitCode
from ledgercli.history import History
from ledgercli.model.reading import Fault, read
from ledgercli.model.request import Request, request
from ledgercli.prompting import Calls, Prompt, Prompter
from ledgercli.records import Proposal, Verdict
from ledgercli.reports.cells import pad
from ledgercli.reports.places import rule_places
from ledgercli.reports.screen import Screen
from ledgercli.reports.steps import Steps
from ledgercli.rulebook import Rulebook
from ledgercli.state import State
from ledgercli.summariser import tokens

if TYPE_CHECKING:
    from ledgercli.model.settings import Settled

__all__ = ["Answer", "Asking", "Moment", "asking_at"]

SCHEMA: Final = "prompt/1"
_PART: Final = 13  # cells of the longest name of a part


@dataclass(frozen=True)
class Moment:
    """Where a prompt is made.

    Arguments:
        prompter: has taken in what went before.
        rulebook: the tools and rules.
        state: what is known.
        history: the steps up to now.
        now: the time of the proposal.

    """

    prompter: Prompter
    rulebook: Rulebook
    state: State
    history: History
    now: cel.Timestamp


@dataclass(frozen=True)
class Answer:
    """What asking once came to.

    Arguments:
        moment: where it was asked.
        proposals: what is proposed; empty where the reply cannot be used.
        fault: why it cannot; None where it can.
        took: what it took; None where no model was asked.

    """

    moment: Moment
    proposals: tuple[Proposal, ...]
    fault: Fault | None = None
    took: Mapping[str, Any] | None = None

    @property
    def exit_code(self) -> ExitCode:
        """Whether there is something to use."""
        return ExitCode.YES if self.proposals else ExitCode.NO

    def verdicts(self) -> Iterator[tuple[Proposal, Verdict]]:
        """Yield each proposal with the verdict on it as things stand."""
        at = self.moment
        for one in self.proposals:
            yield one, at.rulebook.enforcer.judge(one, at.state, at.history, at.now)

    def write(self, screen: Screen) -> ExitCode:
        """Write it behind the prompt."""
        screen.line("--- proposal")
        steps = Steps(screen, rule_places(self.moment.rulebook.packs), indent=" " * 6)
        for one, verdict in self.verdicts():
            effect = f"{verdict.effect:<5}"
            screen.line(f"{steps.painted(verdict.effect, effect)} {steps.call(one.to_json(), effect + ' ')}")
            for line in steps.verdict(verdict.to_json()):
                screen.line(line)
        if self.fault is not None:
            for line in steps.message("fault", f"{self.fault.kind}: {self.fault.what}", "red"):
                screen.line(line)
        elif not self.proposals:
            screen.line("none: the script has no next step")
        return self.exit_code

    def to_json(self) -> dict[str, Any]:
        """As it stands in the JSON report."""
        said = [{"action": one.to_json(), "verdict": verdict.to_json()} for one, verdict in self.verdicts()]
        fault = None if self.fault is None else {"kind": self.fault.kind, "what": self.fault.what}
        return {"proposals": said, "fault": fault, "took": self.took}


@dataclass(frozen=True)
class Asking:
    """A prompt, ready to be shown and sent.

    Arguments:
        moment: where it is made.
        prompt: its messages and parts.
        request: what is sent.
        calls: how the model says its call.
        model: whose tokens are counted; None: about.
        settled: who is asked; None where that is a script, or nobody.

    """

    moment: Moment
    prompt: Prompt
    request: Request
    calls: Calls
    model: str | None
    settled: Settled | None

    # ---- shown

    def write(self, screen: Screen) -> None:
        """Write what the model gets: each message, then what is sent beside them."""
        for message in self.request.messages:
            screen.line(f"--- {message['role']}")
            for line in message["content"].split("\n"):
                screen.line(screen.safe(line))
        for name, value in self.request.more.items():
            screen.line(f"--- {name}")
            for one in value if isinstance(value, list) else [value]:
                screen.line(screen.safe(_json(one)))

    def write_tokens(self, screen: Screen) -> None:
        """Write how many tokens each part has; the parts are what the messages are made of."""
        about = "" if self._counter else "~"
        found = self._tokens()
        for name, number in {**found.pop("parts"), **found}.items():
            screen.line(f"{pad(name, _PART)}{about + f'{number:,}':>8}")

    def to_json(self) -> dict[str, Any]:
        """As it stands in the JSON report."""
        return {
            "schema": SCHEMA,
            "calls": self.calls,
            "offered": self.prompt.offered,
            **self.request.body,
            "digest": self.request.digest,
            "parts": dict(self.prompt.parts),
            "tokens": {"exact": self._counter is not None, **self._tokens()},
        }

    @cached_property
    def _counter(self) -> Callable[[Request], int] | None:
        """What counts the tokens of a request exactly; None where nothing does."""
        from importlib.util import find_spec

        if self.model is None or find_spec("litellm") is None:
            return None
        from ledgercli.model import calling

        model = self.model
        return lambda asked: calling.count(model, asked) or 0

    def _tokens(self) -> dict[str, Any]:
        """Return the tokens of each part, of the messages, of what is sent beside them, and of all."""
        parts = {name: part for name, part in self.prompt.parts.items() if part}
        counter = self._counter
        if counter is None:
            messages = sum(tokens(one["content"]) for one in self.request.messages)
            beside = sum(tokens(_json(value)) for value in self.request.more.values())
            counted = {name: tokens(part) for name, part in parts.items()}
        else:
            empty = counter(_of(""))
            messages, whole = counter(Request(self.request.messages, {})), counter(self.request)
            beside = whole - messages
            if "response_format" in self.request.more:  # which litellm does not count
                beside = counter(_of(_json(self.request.more["response_format"]))) - empty
            counted = {name: counter(_of(part)) - empty for name, part in parts.items()}
        return {"parts": counted, "messages": messages, "beside": beside, "all": messages + beside}

    # ---- asked

    def ask(self) -> Answer:
        """Ask once.

        Raises:
            LedgerCliError: nobody can be asked.

        """
        at = self.moment
        if self.settled is None:
            assert at.rulebook.script is not None, "where nobody can be asked, nothing is"
            made = at.rulebook.script.propose(at.state, at.history, at.now)
            return Answer(at, () if made is None else (made,))
        from ledgercli.model import calling

        reply, usage = calling.ask(self.settled.settings, self.request)
        found = read(reply, self.settled.calls)
        took = {"prompt": usage.prompt, "completion": usage.completion, "cost": usage.cost, "seconds": usage.seconds}
        if isinstance(found, Fault):
            return Answer(at, (), Fault(found.kind, calling.clean(self.settled.settings, found.what)), took)
        return Answer(at, tuple(found), None, took)


def asking_at(at: Moment, calls: Calls, model: str | None, settled: Settled | None) -> Asking:
    """Return the prompt at a moment; arguments are those of `Asking`."""
    prompt = at.prompter.prompt(at.state, at.history, at.now)
    asked = request(prompt.messages, prompt.offered, at.rulebook.toolset.tools, calls)
    return Asking(at, prompt, asked, calls, model, settled)


def _of(text: str) -> Request:
    return Request([{"role": "user", "content": text}], {})


def _json(value: Any) -> str:
    return orjson.dumps(value, paths.plain).decode()
