"""The prompt of a decision engine, made from the state and never from a chat history.

Invariants:
* Pure: no file, no clock, no network. The same lines, state and time give the same bytes.
* The facts stand under the very names that rules use; what is cut or left out is said to be.
* What tools, users and models said is untrusted: in the prompt it is JSON text on one line without `<`, so that it can
  neither close a section nor begin one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, Literal

from ledgercli import cel
from ledgercli.history import History
from ledgercli.prompting import examples
from ledgercli.prompting.relevance import Relevance
from ledgercli.prompting.standing import Rules, Situation, Standing
from ledgercli.prompting.template import STANDARD, render
from ledgercli.records import Line, digest_of
from ledgercli.rulebook import Rulebook
from ledgercli.state import Goal, State, with_planned
from ledgercli.summariser import BUDGET, Asker, Summary, View
from ledgercli.summariser.texts import call, cut, inert, json_text, name
from ledgercli.toolset import FINISH, Tool

Calls = Literal["tools", "json_schema"]
Offer = Literal["permitted", "all"]
Select = Literal["relevant", "all"]

_FORMS: Final[Mapping[str, str]] = {
    "tools": "Answer with one call of one of the tools.",
    "json_schema": 'Answer with one JSON object and nothing else: {"tool": NAME, "args": {ARGUMENT: VALUE, ...}}.',
}
_FAULT: Final = 1_000  # characters of what is wrong with a reply


@dataclass(frozen=True, slots=True)
class Prompt:
    """What the model gets.

    Arguments:
        messages: role and content of each.
        offered: the names of the tools that it may call.
        parts: name → text of each part that the messages are made of.

    """

    messages: tuple[Mapping[str, str], ...]
    offered: tuple[str, ...]
    parts: Mapping[str, str]

    @property
    def digest(self) -> str:
        """The digest of the messages and of the names of the tools on offer."""
        return digest_of({"messages": list(self.messages), "offered": list(self.offered)})


class Prompter:
    """Makes the prompts of one run.

    Arguments:
        rulebook: the tools and rules.
        template: a text in place of the template that comes with the package.
        offer: whether tools that a rule forbids outright in the state as it is are left out.
        select: whether facts that nothing on offer names are left out.
        calls: whether the model has native tool calls, or answers with one JSON object.
        budget: about how many tokens the state and the past may have; None: as usual.
        ledger: the ledger's path, for pointers to what is cut; empty: pointers are `@STEP`.
        template_name: what the template is called in errors.

    Its `calls` is as it was given; its `summary` what it has taken in.

    """

    def __init__(  # noqa: PLR0913 - each is said by its name
        self,
        rulebook: Rulebook,
        *,
        template: str | None = None,
        offer: Offer = "permitted",
        select: Select = "relevant",
        calls: Calls = "tools",
        budget: int | None = None,
        ledger: str = "",
        template_name: str = "template",
    ) -> None:
        self._rulebook = rulebook
        self._template, self._name = template, STANDARD if template is None else template_name
        self.calls = calls
        self._offer, self._select, self._budget = offer, select, budget or BUDGET
        self._rules = Rules(rulebook)
        self._relevance = Relevance(rulebook)
        asking = {name for name, tool in rulebook.toolset.tools.items() if tool.asks_person}
        self.summary = Summary(ledger, asking=asking)

    def take(self, line: Line) -> None:
        """Take in a line of the run's ledger, as it was written; every line, in order."""
        self.summary.take(line)

    def fold(self, ask: Asker) -> Line | None:
        """Have a model write the newest fold, once; arguments and result are those of `Summary.written`."""
        return self.summary.written(ask)

    def view(self, state: State, offered: Sequence[str]) -> View:
        """Return the decision view that the prompt holds, for a decision among some tools."""
        relevance = self._relevance
        withheld = [tool for tool in self._rulebook.toolset.tools if tool not in offered]
        relevant = self._select == "relevant"
        wanted = relevance.wanted(offered, state.tree, withheld) if relevant else relevance.everything()
        return self.summary.view(state.tree, wanted, self._budget)

    def decision_view(self, state: State, history: History, now: cel.Timestamp) -> View:
        """Return the view that a prompt in this state would hold."""
        situation = Situation(self._rulebook, state, history, now)
        return self.view(state, self._offered(self._forbidden(situation)))

    def prompt(self, state: State, history: History, now: cel.Timestamp, fault: str | None = None) -> Prompt:
        """Return the prompt for the next proposal.

        Arguments:
            state: what is known.
            history: the steps up to now.
            now: the time of the proposal.
            fault: what was wrong with the last reply, where it could not be used.

        Raises:
            TemplateError: the template is wrong.

        """
        situation = Situation(self._rulebook, state, history, now)
        tools = self._rulebook.toolset.tools
        forbidden = self._forbidden(situation)
        offered = self._offered(forbidden)
        withheld = [tool for tool in tools if tool not in offered]
        view = self.view(state, offered).parts()
        parts = {
            "task": json_text(state.tree["task"]),
            "state": f"{view.pop('state')}\nnow = {json_text(str(now))}",
            "goals": "\n".join(self._goals(state)),
            "tools": "\n".join(self._tools(offered)),
            "rules": "\n".join(_ruled(self._rules.standing(offered, situation))),
            "withheld": "\n".join(_ruled(self._withheld(withheld, situation))),
            **view,
            "refused": "\n".join(self._refused(situation)),
            "fault": cut(inert(fault), _FAULT) if fault else "",
            "examples": "\n".join(self._examples(offered, forbidden)),
            "answer_form": _FORMS[self.calls],
        }
        return Prompt(render(self._template, self._name, parts), offered, MappingProxyType(parts))

    # ---- what is on offer

    def _forbidden(self, situation: Situation) -> list[str]:
        return [tool for tool in self._rulebook.toolset.tools if self._rules.forbidden(tool, situation)]

    def _offered(self, forbidden: Sequence[str]) -> tuple[str, ...]:
        tools = tuple(self._rulebook.toolset.tools)
        left = tuple(tool for tool in tools if tool not in forbidden)
        nothing = not set(left) - {FINISH}
        return tools if self._offer == "all" or nothing else left

    def _withheld(self, tools: Sequence[str], situation: Situation) -> list[Standing]:
        """Return the rules that keep tools from being on offer."""
        found = [one for tool in tools for one in self._rules.standing([tool], situation)]
        return [one for one in found if one.now.startswith("Now: not met")] or found

    # ---- parts

    def _goals(self, state: State) -> Iterator[str]:
        closed, current = state.tree["goals"], state.tree["goal"]

        def lines(goal: Goal, depth: int) -> Iterator[str]:
            mark = "done" if closed.get(goal.name) else "current" if goal.name == current else "open"
            yield f"{'  ' * depth}- [{mark}] {name(goal.name)}"
            for below in goal.goals:
                yield from lines(below, depth + 1)

        for top in with_planned(self._rulebook.vocabulary.goals, closed):
            yield from lines(top, 0)

    def _tools(self, offered: Sequence[str]) -> Iterator[str]:
        """Yield what may be called; with native calls the schemas come beside the messages."""
        tools = self._rulebook.toolset.tools
        if self.calls == "tools":
            yield ", ".join(_marked(tool, tools[tool]) for tool in offered)
            return
        for tool in offered:
            yield from _described(tool, tools[tool])

    def _refused(self, situation: Situation) -> Iterator[str]:
        """Yield what the last proposal was, why it was refused and what would make it pass."""
        last = self.summary.last
        if last is None or last.outcome not in ("denied", "waiting"):
            return
        yield f"proposal: {last.call}"
        if last.outcome == "waiting":
            yield "it waits for a person's approval"
        for refusal in last.refused:
            yield f"why: {refusal.error} (rule {name(refusal.rule.rpartition('/')[2])})"
            if refusal.hint:
                yield f"hint: {refusal.hint}"
        if last.missing:
            yield f"not known: {', '.join(inert(path.removeprefix('state.')) for path in last.missing)}"
        rules = {refusal.rule for refusal in last.refused}
        known = last.tool in self._rulebook.toolset.tools
        for one in self._rules.standing([last.tool], situation) if known else ():
            if one.rule in rules:
                yield f"it passes when: {' '.join(' '.join(one.text()).split())[2:]}"
        if last.establish:
            yield f"what can set that: {', '.join(map(name, last.establish))}"

    def _examples(self, offered: Sequence[str], forbidden: Sequence[str]) -> Iterator[str]:
        tools = self._rulebook.toolset.tools
        tool, args = examples.right(tools, [one for one in offered if one not in forbidden] or offered)
        yield "Examples of the form; their values are made up:"
        yield f"right: {self._call(tool, args)}"
        out = next(
            (one for one in forbidden if one not in offered and examples.arguments(tools[one]) is not None), None
        )
        if out is not None:
            made = examples.arguments(tools[out]) or {}
            yield f"wrong: {self._call(out, made)}, for {out} is not on offer as things stand."
        else:
            extra, wrong = examples.unknown_argument(tools[tool], args)
            yield f"wrong: {self._call(tool, wrong)}, for {tool} has no argument {extra}."

    def _call(self, tool: str, args: Mapping[str, Any]) -> str:
        if self.calls == "json_schema":
            return json_text({"tool": tool, "args": args})
        return call(tool, args)


def _marked(tool: str, model: Tool) -> str:
    return f"{tool} [write]" if model.access == "write" else tool


def _described(tool: str, model: Tool) -> Iterator[str]:
    described = f": {' '.join(model.description.split())}" if model.description else ""
    yield f"- {_marked(tool, model)}{described}"
    for arg, schema in model.args.items():
        yield f"  {arg}: {json_text(schema)}"


def _ruled(found: Sequence[Standing]) -> Iterator[str]:
    for one in found:
        yield from one.text()
