"""A toolset, packs and initial values, checked together and compiled: what every judge of a run works from.

Invariants:
* What `validate` checks and what a run uses is one and the same: both compile a rulebook.
* Loading collects all problems; `Rulebook.of` raises them together.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from ledgercli import paths
from ledgercli.decision import Script
from ledgercli.documents import Problem
from ledgercli.enforcer import Enforcer
from ledgercli.expectations import check_expect
from ledgercli.history import History, Keeps, keeps_for
from ledgercli.loading import load_packs, load_toolset, refuse
from ledgercli.policy import Pack
from ledgercli.records import FileKind, Proposal, Result, file_entry
from ledgercli.responder import Responder
from ledgercli.runnable import check_scenario, check_toolset
from ledgercli.scenario import Scenario
from ledgercli.state import State, initial
from ledgercli.toolset import ConfirmRun, Toolset
from ledgercli.updater import Updater
from ledgercli.vocabulary import Vocabulary


class Rulebook:
    """Everything that judges, compiled.

    Arguments:
        toolset: the tools.
        packs: the packs in force, each once.
        scenario: initial values and goals, if there is one.
        initial: other initial values, by the scenario's keys.
        shadow: let every proposal through.

    """

    def __init__(
        self,
        toolset: Toolset,
        packs: Sequence[Pack],
        *,
        scenario: Scenario | None = None,
        initial: Mapping[str, Any] | None = None,
        shadow: bool = False,
    ) -> None:
        self.toolset = toolset
        self.packs = packs
        self.scenario = scenario
        self._initial = initial or {}
        self.vocabulary = Vocabulary(toolset, packs, scenario, self._initial)
        self.enforcer = Enforcer(self.vocabulary, packs, shadow=shadow)
        file = scenario.file if scenario else None
        self.updater = Updater(self.vocabulary, file.goals if file else (), scenario.document if scenario else None)

    @classmethod
    def of(
        cls,
        packs: Sequence[Pack | str | Path],
        toolset: Toolset | str | Path,
        initial: Mapping[str, Any],
        *,
        shadow: bool = False,
    ) -> Self:
        """Load and compile packs and a toolset.

        Raises:
            InvalidDocumentError: something does not load; all problems together.

        """
        tools = toolset if isinstance(toolset, Toolset) else load_toolset(toolset)
        book = cls(tools, load_packs(packs), initial=initial, shadow=shadow)
        refuse(book.problems())
        return book

    def problems(self) -> list[Problem]:
        """Return every problem of what was loaded together, in the order of files and lines."""
        self.enforcer.check()
        check_toolset(self.vocabulary, self.toolset)
        if self.scenario is not None:
            check_scenario(self.vocabulary, self.scenario)
            check_expect(self.vocabulary, self.scenario)
        return sorted(self.vocabulary.problems)

    @cached_property
    def keeps(self) -> Keeps:
        """What a history must keep for all that these files may ask of it."""
        documents = [self.toolset.document, *(pack.document for pack in self.packs)]
        if self.scenario is not None:
            documents.append(self.scenario.document)
        return keeps_for(document.source.text for document in documents)

    @cached_property
    def script(self) -> Script | None:
        """The scenario's script, compiled."""
        if self.scenario is None or self.scenario.file.decide.script is None:
            return None
        return Script(self.scenario.file.decide.script, self.scenario.document, self.vocabulary)

    @cached_property
    def responder(self) -> Responder | None:
        """What makes the scenario's answer."""
        return None if self.scenario is None else Responder(self.scenario, self.vocabulary)

    def initial_state(self, **changed: Any) -> State:
        """Return the first state of a run: every flag false, every declared record `{}`, then what is given."""
        file = self.scenario.file if self.scenario else None
        given: dict[str, Any] = {}
        for part in ("task", "facts", "flags"):
            given[part] = changed.get(part, self._initial.get(part, getattr(file, part) if file else None))
        facts: paths.Map = {name: {} for name in self.vocabulary.records}
        return initial(
            task=given["task"] or "",
            facts={**facts, **(given["facts"] or {})},
            constraints=self.vocabulary.constraints() | changed.get("constraints", {}),
            flags=self.vocabulary.flags | (given["flags"] or {}),
            goals=self.vocabulary.goals,
            closed=changed.get("goals", self._initial.get("goals", {})),
        )

    def remember(self, history: History, proposal: Proposal, result: Result, step: int) -> None:
        """Take a recorded result into the history, which tells calls, what users said, and answers to `confirm`."""
        tool = self.toolset.tools.get(proposal.tool)
        args = tool.filled(proposal.args) if tool else proposal.args
        history.executed(proposal.tool, args, "ok" if result.success else "error", result.data, step=step)
        if tool is None or not result.success:
            return
        if tool.asks_person:
            history.said(result.data)
        elif isinstance(tool.run, ConfirmRun):
            inner = args.get("args") or {}
            asked = self.toolset.tools.get(str(args.get("tool")))
            if isinstance(inner, Mapping):
                filled = asked.filled(inner) if asked else inner
                history.answered(str(args.get("tool")), filled, yes=result.data is True)

    def files(self, *, reference: bool = False) -> Iterator[dict[str, str]]:
        """Yield the files that take part, as a ledger's first line holds them."""
        taking: list[tuple[FileKind, str, Any]] = []
        if self.scenario:
            taking.append(("scenario", self.scenario.name, self.scenario.document))
        taking.extend(("pack", pack.name, pack.document) for pack in self.packs)
        taking.append(("toolset", self.toolset.name, self.toolset.document))
        for kind, name, document in taking:
            source = document.source
            yield file_entry(kind, name, source.name, source.text, reference=reference)
