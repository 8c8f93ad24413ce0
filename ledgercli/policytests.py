"""Case files and the examples of rules: what is wrong with the names in them.

Invariants:
* An unknown rule, tool, fact or argument in a case is a problem, never a case that passes.
* Nothing is run here, and no tool's code is imported.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ledgercli import cel
from ledgercli.cases import CaseModel, CasesFile, ExpectModel
from ledgercli.decision import check_call, template
from ledgercli.documents import Document, Place
from ledgercli.names import value_type
from ledgercli.policy import EFFECTS, Pack, rule_names
from ledgercli.rulebook import Rulebook
from ledgercli.runnable import check_time
from ledgercli.toolset import USER, Toolset
from ledgercli.vocabulary import Vocabulary
from ledgercli.wide import MAPS


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
        if isinstance(below, MAPS) and isinstance(value, Mapping):
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
        self._rows()
        self._recorded()
        self._proposal()
        self._state()
        self._history()
        self._expectation()

    def _env(self) -> cel.Env:
        rows = self.case.rows
        return self.vocabulary.row_env(None if rows is None else _row_type(rows))

    def _rows(self) -> None:
        """Report what would make no case of it, or one that always passes."""
        case, place = self.case, self.place
        if case.rows is not None and not case.rows:
            self._said("no-rows", "`for` has no rows, so that nothing is judged", "for")
        if case.skip is not None and not case.skip.strip():
            self._said("no-reason", "a case is skipped for a reason", "skip")
        if not case.expected.says_something:
            self._said("no-expectation", "an expectation that says nothing would always be met", "expect")
        if case.rows is not None:
            for key, tree in (
                ("state", case.state.model_dump()),
                ("history", [one.model_dump() for one in case.history]),
            ):
                for below in _row_texts(tree):
                    note = "`row` is for name, propose and expect; write a case for each"
                    where: Place = (*place, key, *below)
                    message = "the values of a row are not filled in here"
                    self.vocabulary.problem(self.document, where, "row-in-data", message, notes=(note,))

    def _said(self, code: str, message: str, key: str) -> None:
        self.vocabulary.problem(self.document, (*self.place, key), code, message, key=True)

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
            if step.tool == USER:  # what a user said unasked
                continue
            place = (*self.place, "history", number)
            if step.tool not in self.vocabulary.tools:
                known = {*self.vocabulary.tools, USER}
                self.vocabulary.unknown(self.document, (*place, "tool"), "tool", step.tool, known)
                continue
            check_call(self.vocabulary, self.document, place, step.tool, step.args, whole=False)

    def _expectation(self) -> None:
        case, document, vocabulary = self.case, self.document, self.vocabulary
        short = not isinstance(case.expect, ExpectModel)
        where: Place = (*self.place, "expect") if short else (*self.place, "expect", "effect")
        effect = case.expected.effect
        if effect is not None and "{" not in effect and effect not in EFFECTS:
            vocabulary.unknown(document, where, "effect", effect, EFFECTS)
        known = rule_names(self.packs)
        for key in ("rules", "rules_include"):
            for number, rule in enumerate(getattr(case.expected, key) or []):
                place: Place = (*self.place, "expect", key, number)
                if rule not in known:
                    vocabulary.unknown(document, place, "rule", rule, known)
                elif len(known[rule]) > 1:
                    note = f"write {' or '.join(known[rule])}"
                    message = f"several packs have a rule {rule}"
                    vocabulary.problem(document, place, "ambiguous-rule", message, notes=(note,))
        env = self._env()
        for key in ("effect", "error", "hint"):
            text = getattr(case.expected, key)
            if text is not None:
                template(vocabulary, document, where if short else (*self.place, "expect", key), text, env)


def _row_texts(tree: Any, place: Place = ()) -> Iterator[Place]:
    """Yield where texts stand that ask for the values of a row."""
    if isinstance(tree, str):
        if "{row." in tree or "{row[" in tree:
            yield place
    elif isinstance(tree, (dict, list)):
        for key, value in tree.items() if isinstance(tree, dict) else enumerate(tree):
            yield from _row_texts(value, (*place, key))


def _row_type(rows: Sequence[Mapping[str, Any]]) -> cel.Type:
    fields: dict[str, cel.Field] = {}
    for row in rows:
        for name, value in row.items():
            type_, known = value_type(value), fields.get(name)
            fields[name] = cel.Field(type_ if known is None else cel.join(known.type, type_))
    return cel.RecordType("row", fields)
