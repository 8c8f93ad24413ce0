"""Checks any mix of packs, toolsets, scenarios, case files and ledgers, and reports all that is wrong.

Invariants:
* All problems are found, not only the first; nothing is run and no tool's code is imported.
* A pack or toolset is checked with the scenarios and case files that name it, and alone where none does.
* What loads without error is analysed too, for rules and names that cannot do what they were written for.
* Of a ledger the bytes, the chain and the diffs are checked; verdicts and transitions are `replay`'s work.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from ledgercli import sources
from ledgercli.analysis import Analysis, Context
from ledgercli.analysis.codes import SEVERITIES
from ledgercli.cases import CaseModel, CasesFile
from ledgercli.decision import Script
from ledgercli.errors import ExitCode, InvalidDocumentError, LedgerCliError, UnreadableInputError
from ledgercli.ledger import verify
from ledgercli.loading import YAML_KINDS, Loader, folder_of, misspelt_kind
from ledgercli.policy import Pack
from ledgercli.policytests import Cases, check_examples, rulebook_of
from ledgercli.policytests import check as check_cases
from ledgercli.responder import Responder
from ledgercli.rulebook import Rulebook
from ledgercli.rules import Compiler
from ledgercli.scenario import Scenario
from ledgercli.sources import Problem
from ledgercli.vocabulary import Vocabulary

T = TypeVar("T")


@dataclass(slots=True)
class Validation:
    """What was found.

    Arguments:
        problems: all findings, in the order of files and lines.
        counts: kind of file → how many were checked.
        ledgers: each ledger with what can be said of it.
        contexts: what was checked together, to be analysed.

    """

    problems: list[Problem] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    ledgers: list[tuple[str, verify.Report]] = field(default_factory=list)
    contexts: list[Context] = field(default_factory=list, repr=False)

    @property
    def pressing(self) -> list[Problem]:
        """All but the notes of the analysis, which may be meant as they are."""
        return [one for one in self.problems if one.severity != "note" or one.code not in SEVERITIES]

    @property
    def exit_code(self) -> ExitCode:
        """0 if nothing is wrong, else 1."""
        return ExitCode.NO if any(problem.severity == "error" for problem in self.problems) else ExitCode.YES


def validate(paths: Sequence[str], *, anchor: str | None = None, allow_unsealed: bool = False) -> Validation:
    """Check files and folders.

    Arguments:
        paths: files of any kind, and folders; `-` is standard input.
        anchor: the digest of a ledger's last line that was kept elsewhere.
        allow_unsealed: whether a ledger without a `close` passes.

    Raises:
        UnreadableInputError: a path does not exist, is none of our files, or nothing was found.

    """
    files, misspelt = _sorted_out(paths)
    if anchor is not None and len(files["ledger"]) != 1:
        raise LedgerCliError("an anchor belongs to one ledger", fix="name that ledger alone")
    found = Validation(misspelt, {kind: len(names) for kind, names in files.items() if names})
    loader = Loader()
    reached: set[str] = set()
    for name in files["scenario"]:
        _scenario(loader, name, found, reached)
    for name in files["cases"]:
        _cases(loader, name, found, reached)
    for name in files["toolset"]:
        if os.path.realpath(name) not in reached:
            _toolset(loader, name, found)
    for name in files["pack"]:
        if os.path.realpath(name) not in reached:
            _pack(loader, name, found)
    found.problems.extend(loader.problems)
    found.problems.extend(_analysed(found))
    for name in files["ledger"]:
        report = verify.verify(Path(name), anchor=anchor, allow_unsealed=allow_unsealed)
        found.ledgers.append((name, report))
        found.problems.extend(_of_ledger(name, problem) for problem in report.problems)
    found.problems = _each_once(found.problems)
    return found


def _analysed(found: Validation) -> list[Problem]:
    """Return what is wrong with files in which nothing is an error; warnings and notes, all of them."""
    wrong = {problem.file for problem in found.problems if problem.severity == "error"}
    return Analysis.of(found.contexts, wrong).problems()


def _each_once(problems: Iterable[Problem]) -> list[Problem]:
    """Return the problems in order; one that several scenarios meet in a file they share is told once."""
    once: dict[tuple[object, ...], Problem] = {}
    for problem in sorted(problems):
        once.setdefault((problem.file, problem.line, problem.column, problem.code, problem.message), problem)
    return list(once.values())


def _of_ledger(name: str, problem: verify.Problem) -> Problem:
    """Return a ledger's problem as one of a file."""
    return Problem(
        problem.code,
        problem.message,
        name,
        problem.line,
        problem.column or 0,
        severity=problem.severity,
        notes=problem.notes,
    )


def _sorted_out(paths: Sequence[str]) -> tuple[dict[str, list[str]], list[Problem]]:
    """Tell each file's kind; a file that is named must be one of ours, in a folder others are passed over."""
    files: dict[str, list[str]] = {kind: [] for kind in (*YAML_KINDS, "ledger")}
    misspelt: list[Problem] = []
    for name in sources.find(paths):
        by_content = name in paths and (Path(name).suffix != ".jsonl" or not os.path.lexists(name))
        kind = sources.kind_of(sources.read(name) if by_content else name)
        if kind == "ledger" and name == "-":
            raise UnreadableInputError("a ledger is checked as a file, not on standard input", fix="name its file")
        if kind is not None:
            files[kind].append(name)
        elif problems := _misspelt(name):
            misspelt += problems
        elif name in paths:
            raise UnreadableInputError(
                f"{name} is none of our files",
                fix="its first key says what it is: scenario, pack, toolset or cases; a ledger is JSON Lines",
            )
    if not misspelt and not any(files.values()):
        raise UnreadableInputError(f"nothing to check under {' '.join(paths)}")
    return files, misspelt


def _misspelt(name: str) -> list[Problem]:
    """Return the problem of a file whose first key is nearly one of ours."""
    try:
        return list(misspelt_kind(sources.read(name)))
    except LedgerCliError:
        return []


def _scenario(loader: Loader, name: str, found: Validation, reached: set[str]) -> None:
    scenario = _loaded(found, lambda: loader.scenario(name))
    if scenario is None:
        return
    reached |= _files_of(scenario.toolset.document.source.name, scenario.packs)
    book, problems = _compiled(scenario)
    found.problems.extend(problems)
    found.contexts.append(
        Context(book.vocabulary, scenario.packs, scenario.toolset, scenario, _examples(scenario.packs))
    )
    found.contexts.extend(_alone(loader, scenario.packs))


def scenario_problems(scenario: Scenario) -> list[Problem]:
    """Return every problem of a scenario with all that it names."""
    return _compiled(scenario)[1]


def _compiled(scenario: Scenario) -> tuple[Rulebook, list[Problem]]:
    """Return a scenario's rulebook with every problem of the scenario and all that it names."""
    book = Rulebook(scenario.toolset, scenario.packs, scenario=scenario)
    if scenario.file.decide.script is not None:
        Script(scenario.file.decide.script, scenario.document, book.vocabulary)
    Responder(scenario, book.vocabulary)
    check_examples(scenario.packs, book.vocabulary)
    return book, book.problems()


def _examples(packs: Sequence[Pack], cases: Iterable[CaseModel] = ()) -> list[Mapping[str, Any]]:
    """Return the states that cases and the examples of rules are about, which therefore are possible."""
    examples = [case for pack in packs for rule in pack.file.rules for case in rule.examples]
    return [case.state.model_dump(exclude_defaults=True) for case in (*examples, *cases)]


def _cases(loader: Loader, name: str, found: Validation, reached: set[str]) -> None:
    cases = _loaded(found, lambda: load_cases(loader, name))
    if cases is None:
        return
    reached |= _files_of(cases.toolset.document.source.name, cases.packs)
    book = rulebook_of(cases)
    check_cases(cases, book)
    check_examples(cases.packs, book.vocabulary)
    found.problems.extend(book.problems())
    given = [cases.file.state.model_dump(exclude_defaults=True), *_examples(cases.packs, cases.file.tests)]
    found.contexts.append(Context(book.vocabulary, cases.packs, cases.toolset, None, given))
    found.contexts.extend(_alone(loader, cases.packs))


def load_cases(loader: Loader, name: str) -> Cases | None:
    """Read a case file with all that it names."""
    read = loader.read(name, "cases", CasesFile)
    if read is None:
        return None
    file, document = read
    folder = folder_of(name)
    toolset = loader.named(document, ("toolset",), file.toolset, loader.toolset, folder)
    packs = loader.packs(document, ("packs",), file.packs, folder)
    return None if toolset is None else Cases(file, document, folder, toolset, packs)


def _files_of(toolset: str, packs: Sequence[Pack]) -> set[str]:
    return {os.path.realpath(file) for file in (toolset, *(pack.document.source.name for pack in packs))}


def _toolset(loader: Loader, name: str, found: Validation) -> None:
    toolset = _loaded(found, lambda: loader.toolset(name))
    if toolset is not None:
        found.problems.extend(Rulebook(toolset, []).problems())


def _pack(loader: Loader, name: str, found: Validation) -> None:
    """Check a pack that nothing else names: it must bring its own vocabulary."""
    pack = _loaded(found, lambda: loader.pack(name))
    if pack is None:
        return
    if pack.file.vocabulary is None:
        found.problems.append(
            pack.document.problem(
                ("pack",),
                "no-vocabulary",
                f"nothing says which tools and facts the pack {pack.name} may name",
                notes=(
                    "check it together with a scenario or case file that uses it,",
                    "or let it stand alone with a `vocabulary:` of its own",
                ),
            )
        )
        return
    packs = loader.replaced([], [name])[0]
    vocabulary = Vocabulary(None, packs)
    found.contexts.append(Context(vocabulary, packs, None, None, _examples(packs)))
    Compiler(vocabulary, packs).check()
    check_examples(packs, vocabulary)
    found.problems.extend(vocabulary.problems)


def _alone(loader: Loader, packs: Sequence[Pack]) -> Iterator[Context]:
    """Yield packs that fit every toolset by themselves: what is said of them must hold there too."""
    for pack in packs:
        if pack.file.vocabulary is not None:
            together = loader.replaced([], [pack.document.source.name])[0]
            yield Context(Vocabulary(None, together), together, None, None, _examples(together))


def _loaded(found: Validation, load: Callable[[], T | None]) -> T | None:
    """Return what loads; a file that cannot be read is a problem like any other."""
    try:
        return load()
    except InvalidDocumentError as error:
        found.problems.extend(problem for problem in error.problems if isinstance(problem, Problem))
    return None
