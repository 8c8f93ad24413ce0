"""Case files and the examples of rules: what is wrong with the names in them.

Invariants:
* An unknown rule, tool, fact or argument in a case is a problem, never a case that passes.
* Nothing is run here, and no tool's code is imported.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ledgercli import cel
from ledgercli.cases import CaseModel, CasesFile, ExpectModel
from ledgercli.decision import check_call, template
from ledgercli.documents import Document, Place
from ledgercli.names import value_type
from ledgercli.policy import EFFECTS, Pack
from ledgercli.rulebook import Rulebook
from ledgercli.runnable import check_time
from ledgercli.toolset import Toolset
from ledgercli.vocabulary import Vocabulary


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
    check_time(book.vocabulary, cases.document, cases.file.now)
    _check_all(book.vocabulary, cases.packs, cases.document, cases.folder, ("tests",), cases.file.tests)


def check_examples(packs: Sequence[Pack], vocabulary: Vocabulary) -> None:
    """Report every name in the examples of rules that does not exist."""
    for pack in packs:
        folder = Path(pack.document.source.name).parent
        for number, rule in enumerate(pack.file.rules):
            place: Place = ("rules", number, "examples")
            _check_all(vocabulary, packs, pack.document, folder, place, rule.examples)


def _check_all(  # noqa: PLR0913 - where the cases stand, and what they may name
    vocabulary: Vocabulary,
    packs: Sequence[Pack],
    document: Document,
    folder: Path,
    place: Place,
    cases: Sequence[CaseModel],
) -> None:
    names: set[str] = set()
    for number, case in enumerate(cases):
        here: Place = (*place, number)
        if case.name in names:
            message = f"a second case is named {case.name!r}"
            vocabulary.problem(document, (*here, "name"), "duplicate-case", message)
        names.add(case.name)
        _Check(vocabulary, packs, document, folder, here, case).run()


@dataclass(slots=True)
class _Check:
    """The checks of one case."""

    vocabulary: Vocabulary
    packs: Sequence[Pack]
    document: Document
    folder: Path
    place: Place
    case: CaseModel

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
        document, place = self.document, (*self.place, "at")
        file, at, step = self.case.at.rpartition("@")
        if not at or not step.isdecimal():
            note = "write LEDGER@STEP, such as runs/0412.ledger.jsonl@9"
            self.vocabulary.problem(document, place, "not-a-step", f"{self.case.at} names no step", notes=(note,))
        elif not (self.folder / file).is_file():
            self.vocabulary.problem(document, place, "no-file", f"no file {self.folder / file}")

    def _proposal(self) -> None:
        case, place, document = self.case, self.place, self.document
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
        vocabulary, document = self.vocabulary, self.document
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
            check_call(self.vocabulary, self.document, place, step.tool, step.args, whole=False)

    def _expectation(self) -> None:
        case, document, vocabulary = self.case, self.document, self.vocabulary
        short = not isinstance(case.expect, ExpectModel)
        where: Place = (*self.place, "expect") if short else (*self.place, "expect", "effect")
        effect = case.expected.effect
        if effect is not None and "{" not in effect and effect not in EFFECTS:
            vocabulary.unknown(document, where, "effect", effect, EFFECTS)
        known = set(rule_names(self.packs))
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
    return cel.RecordType("row", fields)
