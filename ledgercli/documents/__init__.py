"""YAML → model: file, line and column in every error.

Invariants:
* `parse` never raises on account of what a file holds; `validate` turns whatever pydantic says into `Problem`s.
* All problems are reported, not only the first: what is wrong is left out and the rest is validated all the same.
* Models are strict and hold plain texts; where a value stands is asked of the document, by its place.
* Which texts are expressions, and which are texts with `{…}`, the models say with the types below.

Deliberately not here: whether an expression means anything (`vocabulary`), and what a report looks like (`reports`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Generic, NamedTuple, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from ledgercli.documents.faults import Fault, faults_of, is_text, needs_value
from ledgercli.documents.marks import Document, Mark, Place
from ledgercli.documents.scalars import QUOTE_OR_BLOCK, quoting
from ledgercli.documents.texts import ExpressionText, ExpressionTree, Findings, Origin, TemplateText, TemplateTree
from ledgercli.sources import Kind, Problem, Severity, Source, find, first_key, kind_of, read, shown


def parse(source: Source) -> Document:
    """Parse a file; what is wrong with it stands in the document's `problems`."""
    from ledgercli.documents.yaml_reader import parse as parse_yaml  # imports ruamel

    return parse_yaml(source)


class Model(BaseModel):
    """What every part of a file is: unknown keys are errors, and nothing is converted."""

    model_config = ConfigDict(extra="forbid", strict=True)


M = TypeVar("M", bound=BaseModel)


class Validated(NamedTuple, Generic[M]):
    """What came of a document.

    Arguments:
        model: what could be read; None if that is too little for one.
        problems: all of them, in order, those of the document included.
        document: the document without what the model could not take: its places are the model's.

    """

    model: M | None
    problems: list[Problem]
    document: Document


def validate(document: Document, model: type[M]) -> Validated[M]:
    """Make a model of a document.

    Where something is wrong it is reported and left out, and the rest is a model all the same, so that further checks
    can report what is wrong with that. Whether a model may be used is decided by the problems alone.
    """
    if not document.whole:
        return Validated(None, sorted(document.problems), document)
    if document.data is None and not document.problems:
        return Validated(None, [_empty(document, model)], document)
    findings = Findings(document)
    found: dict[Problem, None] = {}
    data, pruned = _with_origins(document.data, document.root), document
    result = None
    while result is None:
        try:
            result = model.model_validate(data, context=findings)
        except ValidationError as error:
            faults = faults_of(error, data, model)
            found |= dict.fromkeys(_told(faults, pruned, found))
            data, pruned = _without(data, pruned, {fault.place for fault in faults})
            if data is None:
                break
    if result is not None:
        _make_plain(result)
    words = {document.words[start]: None for start in document.words.keys() - findings.accepted}
    kept = dict.fromkeys(document.problems) | words
    lines = {problem.line for problem in kept if problem.severity == "error"}
    new = [problem for problem in [*found, *findings.problems] if problem.line not in lines]
    scalars = [*_cut_off(document, model), *_without_value(document, model)]
    return Validated(result, sorted({*kept, *new, *scalars}), pruned)


def _empty(document: Document, model: type[BaseModel]) -> Problem:
    first = next(iter(model.model_fields))
    return document.problem((), "empty-file", f"nothing stands in this file; it begins with `{first}: NAME`")


def _told(faults: list[Fault], document: Document, before: Mapping[Problem, None]) -> Iterator[Problem]:
    """Yield problems of faults, but of none that only an earlier one has caused."""
    for fault in faults:
        mark = document.mark(fault.place)
        first, last = document.line_column(mark.start), document.line_column(mark.end)
        if any(first <= (problem.line, problem.column) <= last for problem in before):
            continue
        notes, inline = fault.notes, None
        if fault.unquoted:
            inline = quoting(document.text[mark.start : mark.end])
        problem = document.problem(fault.place, fault.code, fault.message, key=fault.key, notes=notes, inline=inline)
        first_key = next((child.key for child in mark.children.values()), None)
        if fault.missing and first_key:  # a map as a whole is shown by its first key
            problem = replace(problem, length=first_key.end - first_key.start)
        yield problem


# ---- data on its way into a model


def _with_origins(data: Any, mark: Mark) -> Any:
    """Return the data, each text of it with how it is written."""
    if isinstance(data, dict):
        return {key: _with_origins(value, mark.children[key]) for key, value in data.items()}
    if isinstance(data, list):
        return [_with_origins(value, mark.children[index]) for index, value in enumerate(data)]
    if isinstance(data, str) and mark.scalar:
        origin = Origin(data)
        origin.scalar = mark.scalar
        return origin
    return data


def _without(data: Any, document: Document, places: set[tuple[str | int, ...]]) -> tuple[Any, Document]:
    """Return the data and the document without what stands at some places."""
    if () in places:
        return None, document
    data, root = _prune(data, document.root, places)
    return data, replace(document, root=root)


def _prune(data: Any, mark: Mark, places: set[tuple[str | int, ...]]) -> tuple[Any, Mark]:
    if not places:
        return data, mark
    kept: list[tuple[Any, Any, Mark]] = []
    for key, value in list(data.items() if isinstance(data, dict) else enumerate(data)):
        below = {place[1:] for place in places if place[0] == key}
        if () not in below:
            kept.append((key, *_prune(value, mark.children[key], below)))
    if isinstance(data, dict):
        return {key: value for key, value, _ in kept}, replace(mark, children={key: child for key, _, child in kept})
    children: dict[str | int, Mark] = {index: child for index, (_, _, child) in enumerate(kept)}
    return [value for _, value, _ in kept], replace(mark, children=children)


def _make_plain(model: BaseModel) -> None:
    """Put plain texts in the place of those with an origin, wherever the model took any value."""
    for name, value in model.__dict__.items():
        model.__dict__[name] = _plain(value)


def _plain(value: Any) -> Any:
    if isinstance(value, BaseModel):
        _make_plain(value)
        return value
    if isinstance(value, dict):
        return {str(key): _plain(below) for key, below in value.items()}
    if isinstance(value, list):
        return [_plain(below) for below in value]
    return str(value) if isinstance(value, Origin) else value


# ---- single values


def _leaves(
    data: Any, mark: Mark, place: tuple[str | int, ...] = ()
) -> Iterator[tuple[tuple[str | int, ...], Any, Mark]]:
    """Yield the values of a document that are no maps or lists, with their places."""
    if isinstance(data, dict | list):
        for key, value in data.items() if isinstance(data, dict) else enumerate(data):
            yield from _leaves(value, mark.children[key], (*place, key))
    else:
        yield place, data, mark


def _cut_off(document: Document, model: type[BaseModel]) -> Iterator[Problem]:
    """Warn of texts that a ` #` may have cut short."""
    if not document.cut_off:
        return
    for place, value, mark in _leaves(document.data, document.root):
        start = document.cut_off.get(mark.start)
        if isinstance(value, str) and start is not None and is_text(model, place):
            line_end = document.text.find("\n", start)
            end = line_end if line_end >= 0 else len(document.text)
            message = "a comment begins here, and is no part of the text before it"
            notes = (f"if it belongs to the text, {QUOTE_OR_BLOCK}",)
            yield document.problem_in(start, end, "yaml-comment", message, notes=notes, severity="warning")


def _without_value(document: Document, model: type[BaseModel]) -> Iterator[Problem]:
    """Report keys after which nothing stands, where leaving out the key would mean something else to a reader."""
    for place, value, _ in _leaves(document.data, document.root):
        if value is None and needs_value(model, place):
            message = f"nothing stands after {shown(str(place[-1]))}"
            notes = ("give it a value, or leave out the key",)
            yield document.problem(place, "missing-value", message, key=True, notes=notes)


CODES: Mapping[str, str] = {
    "duplicate-key": "A key stands twice in one map; YAML would silently keep one of the two.",
    "empty-file": "There is nothing in the file.",
    "missing-key": "A key that must be there is not.",
    "missing-value": "A key has no value; whoever reads the file cannot know what was meant.",
    "not-utf-8": "Files are UTF-8 text.",
    "unknown-key": "A key that nothing reads; most often it is misspelt.",
    "wrong-type": "A value is of another type than belongs there.",
    "wrong-value": "A value is of the right type, and still none that may stand there.",
    "yaml-alias": "`*` begins an alias, which stands for another part of the file. Quote an expression that begins so.",
    "yaml-anchor": "`&` begins an anchor, which names a part of the file. Quote an expression that begins so.",
    "yaml-block": "The text of a `|` or `>` block stands below it, all lines indented alike.",
    "yaml-braces": "`{` and `[` begin maps and lists. Quote a text or expression that begins so, or close them.",
    "yaml-character": "Characters that cannot be seen, or that change how a line looks, hide what a file says.",
    "yaml-colon": "`: ` ends a key, so that a text with one in it must be quoted.",
    "yaml-comment": "` #` begins a comment, also in the middle of what was meant as one text.",
    "yaml-depth": "Maps and lists are nested deeper than any file needs.",
    "yaml-directive": "`%` begins a directive for the YAML parser; our files need none.",
    "yaml-documents": "A file holds one document; `---` may only stand before it.",
    "yaml-escape": "Double quotes have escapes of their own. Single quotes and `|` blocks leave a backslash alone.",
    "yaml-indentation": "Lines of one map or list are indented alike.",
    "yaml-indicator": "Some characters may not begin a text in YAML unless it is quoted.",
    "yaml-joined": "Folded and plain texts join their lines, so that a `//` comment would swallow the next ones.",
    "yaml-key": "Keys are texts; numbers, truth values and collections are none.",
    "yaml-line-end": "Lines end with LF, or with CR and LF.",
    "yaml-merge-key": "`<<` merges another map into this one; here every key is written out.",
    "yaml-number": "Numbers that YAML dialects read differently, or that do not fit into 64 bits, are refused.",
    "yaml-quote": "A quote is not closed, or text goes on after the closing one.",
    "yaml-size": "There are more values in the file than any file needs.",
    "yaml-space": "A space that is none to YAML, such as the no-break space, stands where a space has a meaning.",
    "yaml-syntax": "This is no YAML.",
    "yaml-tab": "Tabs do not indent or separate in YAML.",
    "yaml-tag": "`!` begins a tag, and what follows it is lost. Quote an expression that begins so.",
    "yaml-word": "Words that some YAML dialects read as true, false or null, and others as text, are refused.",
}
"""What each kind of problem means, for `ledger validate --explain`."""

__all__ = [
    "CODES",
    "Document",
    "ExpressionText",
    "ExpressionTree",
    "Kind",
    "Mark",
    "Model",
    "Place",
    "Problem",
    "Severity",
    "Source",
    "TemplateText",
    "TemplateTree",
    "Validated",
    "find",
    "first_key",
    "kind_of",
    "parse",
    "read",
    "validate",
]
