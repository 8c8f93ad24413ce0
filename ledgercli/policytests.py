"""Case files: one expectation on one proposal in one state each, as they stand in YAML, and what is wrong with them.

Invariants:
* An unknown rule, tool, fact or argument in a case is a problem, never a case that passes.
* Nothing is run here, and no tool's code is imported.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import Field

from ledgercli import cel
from ledgercli.decision import check_call, template
from ledgercli.documents import Document, Model, Place, TemplateText, TemplateTree
from ledgercli.names import value_type
from ledgercli.policy import EFFECTS, Pack
from ledgercli.rulebook import Rulebook
from ledgercli.runnable import check_time
from ledgercli.toolset import Toolset
from ledgercli.vocabulary import Vocabulary


class StateModel(Model):
    """The parts of a state."""

    task: str | None = Field(None, description="What is to be done.")
    facts: dict[str, Any] = Field({}, description="What is known.")
    constraints: dict[str, Any] = Field({}, description="Limits, and what rules read.")
    flags: dict[str, bool] = Field({}, description="Flags that are set.")
    goals: dict[str, bool] = Field({}, description="Goals that are closed.")


class HistoryModel(Model):
    """One past step; it feeds the functions over past steps only."""

    tool: str = Field(description="The tool's name.")
    args: dict[str, Any] = Field({}, description="Its arguments.")
    success: bool = Field(True, description="Whether it went well.")
    data: Any = Field(None, description="What it returned.")
    denied: bool = Field(False, description="Whether it was refused.")


class ProposeModel(Model):
    """The proposal to judge."""

    tool: TemplateText = Field(description="The tool's name.")
    args: dict[str, TemplateTree] = Field({}, description="Its arguments.")


class ExpectModel(Model):
    """What the verdict must be."""

    effect: TemplateText | None = Field(None, description="allow, warn, require_approval or deny.")
    rules: list[str] | None = Field(None, description="Exactly these rules failed or warned.")
    rules_include: list[str] | None = Field(None, description="These are among them.")
    error: TemplateText | None = Field(None, description="The message.")
    hint: TemplateText | None = Field(None, description="The hint.")


class CaseModel(Model):
    """One case."""

    name: TemplateText = Field(description="What it shows, in a sentence.")
    state: StateModel = Field(default_factory=StateModel, description="Merged over the file's state.")
    unset: list[str] = Field([], description="Paths that are not known.")
    history: list[HistoryModel] = Field([], description="Past steps.")
    propose: ProposeModel | None = Field(None, description="The proposal; as recorded if left out with `at`.")
    at: str | None = Field(None, description="LEDGER@STEP: the proposal as recorded, in the state before that step.")
    expect: TemplateText | ExpectModel = Field(description="The effect alone, or effect, rules, error and hint.")
    rows: list[dict[str, Any]] | None = Field(None, alias="for", description="One case per row; `row` is its values.")
    skip: str | None = Field(None, description="Why it is not judged at present.")

    @property
    def expected(self) -> ExpectModel:
        """What is expected, in the long form."""
        return self.expect if isinstance(self.expect, ExpectModel) else ExpectModel(effect=self.expect)


class CasesFile(Model):
    """Cases for one or more packs."""

    cases: str = Field(description="Its name.")
    description: str = Field("", description="What it proves.")
    packs: list[str] = Field(description="Paths, or `ledgercli:NAME`.")
    toolset: str = Field(description="Path of the toolset.")
    now: str | None = Field(None, description="The time of every proposal (RFC 3339).")
    state: StateModel = Field(default_factory=StateModel, description="The state of every case.")
    tests: list[CaseModel] = Field(description="The cases.")


@dataclass(frozen=True, slots=True, eq=False)
class Cases:
    """A case file as it was read, with the files it names."""

    file: CasesFile
    document: Document
    folder: Path
    toolset: Toolset
    packs: Sequence[Pack]


def rulebook_of(cases: Cases) -> Rulebook:
    """Compile what a case file names; its own state declares names, the states of its cases use them."""
    state = cases.file.state
    initial = {"facts": state.facts, "constraints": state.constraints, "flags": state.flags}
    return Rulebook(cases.toolset, cases.packs, initial=initial)


def merge(under: dict[str, Any], over: Mapping[str, Any]) -> None:
    """Lay `over` over `under`, map by map."""
    for key, value in over.items():
        below = under.get(key)
        if isinstance(below, dict) and isinstance(value, Mapping):
            under[key] = dict(below)
            merge(under[key], value)
        else:
            under[key] = value


def check(cases: Cases, book: Rulebook) -> None:
    """Report every name in the cases that does not exist; problems are added to the rulebook's vocabulary."""
    names: set[str] = set()
    check_time(book.vocabulary, cases.document, cases.file.now)
    for number, case in enumerate(cases.file.tests):
        place: Place = ("tests", number)
        if case.name in names:
            book.vocabulary.problem(
                cases.document, (*place, "name"), "duplicate-case", f"a second case is named {case.name!r}"
            )
        names.add(case.name)
        _Check(cases, book.vocabulary, case, place).run()


@dataclass(slots=True)
class _Check:
    """The checks of one case."""

    cases: Cases
    vocabulary: Vocabulary
    case: CaseModel
    place: Place

    def run(self) -> None:
        self._recorded()
        self._proposal()
        self._state()
        self._history()
        self._expectation()

    def _env(self) -> cel.Env:
        rows = self.case.rows
        return self.vocabulary.row_env(None if rows is None else _row_type(rows))

    def _recorded(self) -> None:
        if self.case.at is None:
            return
        document, place = self.cases.document, (*self.place, "at")
        file, at, step = self.case.at.rpartition("@")
        if not at or not step.isdecimal():
            note = "write LEDGER@STEP, such as runs/0412.ledger.jsonl@9"
            self.vocabulary.problem(document, place, "not-a-step", f"{self.case.at} names no step", notes=(note,))
        elif not (self.cases.folder / file).is_file():
            self.vocabulary.problem(document, place, "no-file", f"no file {self.cases.folder / file}")

    def _proposal(self) -> None:
        case, place, document = self.case, self.place, self.cases.document
        if case.propose is None:
            if case.at is None:
                self.vocabulary.problem(
                    document, place, "missing-key", "a case needs `propose`, or `at` with a recorded step"
                )
            return
        inside: Place = (*place, "propose")
        check_call(self.vocabulary, document, inside, case.propose.tool, case.propose.args, whole=False)
        env = self._env()
        template(self.vocabulary, document, (*inside, "tool"), case.propose.tool, env)
        for name, value in case.propose.args.items():
            template(self.vocabulary, document, (*inside, "args", name), value, env)
        template(self.vocabulary, document, (*place, "name"), case.name, env)

    def _state(self) -> None:
        vocabulary, document = self.vocabulary, self.cases.document
        for part in ("facts", "constraints", "flags"):
            for name in getattr(self.case.state, part):
                vocabulary.declared_name(document, (*self.place, "state", part, name), part, name)
        for part in ("facts", "constraints"):
            values, kind = getattr(self.case.state, part), vocabulary.given_type(part)
            vocabulary.declared_values(document, (*self.place, "state", part), values, kind)
        for number, path in enumerate(self.case.unset):
            target = vocabulary.target(document, (*self.place, "unset", number), path)
            if target is not None:
                vocabulary.declared_path(document, (*self.place, "unset", number), target)

    def _history(self) -> None:
        for number, step in enumerate(self.case.history):
            place = (*self.place, "history", number)
            check_call(self.vocabulary, self.cases.document, place, step.tool, step.args, whole=False)

    def _expectation(self) -> None:
        case, document, vocabulary = self.case, self.cases.document, self.vocabulary
        short = not isinstance(case.expect, ExpectModel)
        where: Place = (*self.place, "expect") if short else (*self.place, "expect", "effect")
        effect = case.expected.effect
        if effect is not None and "{" not in effect and effect not in EFFECTS:
            vocabulary.unknown(document, where, "effect", effect, EFFECTS)
        known = set(rule_names(self.cases.packs))
        for key in ("rules", "rules_include"):
            for number, rule in enumerate(getattr(case.expected, key) or []):
                if rule not in known:
                    vocabulary.unknown(document, (*self.place, "expect", key, number), "rule", rule, known)
        env = self._env()
        for key in ("effect", "error", "hint"):
            text = getattr(case.expected, key)
            if text is not None:
                template(vocabulary, document, where if short else (*self.place, "expect", key), text, env)


def rule_names(packs: Sequence[Pack]) -> list[str]:
    """Return every rule's full name, bare names where they are unique, and the built-in ones."""
    names = ["unknown_tool", "bad_arguments"]
    for pack in packs:
        own = [rule.name for rule in pack.file.rules] + (["default_deny"] if pack.file.default == "deny" else [])
        names += own + [f"{pack.name}/{name}" for name in own]
    return names


def _row_type(rows: Sequence[Mapping[str, Any]]) -> cel.Type:
    fields: dict[str, cel.Field] = {}
    for row in rows:
        for name, value in row.items():
            type_, known = value_type(value), fields.get(name)
            fields[name] = cel.Field(type_ if known is None else cel.join(known.type, type_))
    return cel.RecordType("field of the row", fields)
