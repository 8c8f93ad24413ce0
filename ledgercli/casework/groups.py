"""Cases that are judged alike: those of one case file, or the examples in one pack, with what judges them.

Invariants:
* A group has no problem: what does not load, or names what does not exist, is told instead of judged.
* The examples of a pack are judged by that pack and those that it includes, in a state of which only they say
  anything; the tools and the names are those of a case file or scenario that names the pack, else its own.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from ledgercli import cel, sources
from ledgercli.cases import CaseModel, StateModel
from ledgercli.documents import Document, Place
from ledgercli.errors import InvalidDocumentError, LedgerCliError
from ledgercli.loading import Loader, located, refuse
from ledgercli.names import type_named
from ledgercli.policy import Pack, rule_names
from ledgercli.policytests import check, check_examples, rulebook_of
from ledgercli.rulebook import Rulebook
from ledgercli.sources import Problem
from ledgercli.toolset import Tool, Toolset, ToolsetFile
from ledgercli.validation import load_cases

_EXAMPLES = "examples"


@dataclass(frozen=True, eq=False)
class Group:
    """Cases with what judges them.

    Arguments:
        document: the file that they stand in.
        rules: what judges them.
        packs: the packs that they are about: those that the file names itself.
        cases: each with its place.
        state: what is known in all of them.
        now: the time of every proposal; None: nobody says.

    """

    document: Document
    rules: Rulebook
    packs: Sequence[Pack]
    cases: Sequence[tuple[Place, CaseModel]]
    state: StateModel
    now: str | None = None

    @property
    def file(self) -> str:
        """The file."""
        return self.document.source.name

    @property
    def folder(self) -> Path:
        """What its paths are relative to."""
        return Path(self.file).parent

    @cached_property
    def names(self) -> Mapping[str, str]:
        """All that rules can be called in these cases → the rule as a verdict names it."""
        return {name: meant[0] for name, meant in rule_names(self.rules.packs).items() if len(meant) == 1}


class Groups:
    """Makes groups of files, each file read once.

    Arguments:
        cases: the case files that there are, which may name a pack with examples.
        scenarios: the scenarios that there are, for the same.

    """

    def __init__(self, cases: Sequence[str] = (), scenarios: Sequence[str] = ()) -> None:
        self._cases, self._scenarios = cases, scenarios
        self._loader = Loader()

    def of(self, name: str) -> tuple[Group | None, list[Problem]]:
        """Return the group of a file, None where there is none or it has errors; and what is wrong."""
        self._loader = self._loader.again()
        try:
            group = self._of_pack(name) if sources.kind_of(name) == "pack" else of_cases(self._loader, name)
            problems = [*self._loader.problems, *(group.rules.problems() if group else ())]
            refuse(problems)
        except InvalidDocumentError as error:
            return None, [one for one in error.problems if isinstance(one, Problem)]
        except LedgerCliError as error:
            return None, [Problem("unreadable-file", error.message, name, notes=(error.fix,) if error.fix else ())]
        return group, sorted(set(problems))

    def _of_pack(self, name: str) -> Group | None:
        packs = self._loader.given([name])
        refuse(self._loader.problems)
        pack = packs[-1]
        examples: list[tuple[Place, CaseModel]] = [
            (("rules", number, _EXAMPLES, which), case)
            for number, rule in enumerate(pack.file.rules)
            for which, case in enumerate(rule.examples)
        ]
        if not examples:
            return None
        toolset, initial = self._beside(pack) or (_own_tools(pack), {})
        rules = Rulebook(toolset, packs, initial=initial)
        check_examples([pack], rules.vocabulary)
        return Group(pack.document, rules, [pack], examples, StateModel())

    def _beside(self, pack: Pack) -> tuple[Toolset, dict[str, Any]] | None:
        """Return the tools, and the values that declare names, of the first case file or scenario with a pack."""
        for name in self._cases:
            cases = load_cases(self._loader, name)
            if cases is not None and _has(cases.packs, pack):
                state = cases.file.state
                return cases.toolset, {part: getattr(state, part) for part in ("facts", "constraints", "flags")}
        for name in self._scenarios:
            scenario = self._loader.scenario(name)
            if scenario is not None and _has(scenario.packs, pack):
                file = scenario.file
                return scenario.toolset, {part: getattr(file, part) for part in ("facts", "constraints", "flags")}
        return None


def of_cases(loader: Loader, name: str) -> Group | None:
    """Return the group of a case file; None where nothing of it can be used.

    Raises:
        LedgerCliError: it does not load; what is wrong with names in it is a problem of the group's rules.

    """
    cases = load_cases(loader, name)
    refuse(loader.problems)
    if cases is None:
        return None
    rules = rulebook_of(cases)
    check(cases, rules)
    named = {os.path.realpath(located(one, cases.folder)) for one in cases.file.packs}
    packs = [pack for pack in cases.packs if os.path.realpath(pack.document.source.name) in named]
    tests: list[tuple[Place, CaseModel]] = [(("tests", n), case) for n, case in enumerate(cases.file.tests)]
    return Group(cases.document, rules, packs, tests, cases.file.state, cases.file.now)


def _has(packs: Iterable[Pack], pack: Pack) -> bool:
    file = os.path.realpath(pack.document.source.name)
    return any(os.path.realpath(one.document.source.name) == file for one in packs)


def _own_tools(pack: Pack) -> Toolset:
    """Return the tools that a pack's own vocabulary names.

    Raises:
        InvalidDocumentError: it has none, so that nothing says which tools there are.

    """
    own = pack.file.vocabulary
    if own is None:
        message = f"nothing says which tools and facts the examples of the pack {pack.name} may name"
        notes = ("a case file or scenario beside it that names the pack says so,", "or a `vocabulary:` of its own")
        refuse([pack.document.problem(("pack",), "no-vocabulary", message, notes=notes)])
    assert own is not None, "refused above"
    tools = {
        name: Tool(args={arg: type_named(text).schema for arg, text in args.items()})
        for name, args in own.tools.items()
    }
    return Toolset(ToolsetFile(toolset=pack.name, tools=tools), pack.document, Path(pack.document.source.name).parent)


def moment(now: str | None) -> cel.Timestamp | None:
    """Return a time as it stands in a file that was checked."""
    return None if now is None else cel.Timestamp.parse(now)
