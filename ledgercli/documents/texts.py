"""The texts of a file: which are expressions, which hold expressions in `{…}`, and how they may be written in YAML.

Invariants:
* A model says with these types what its texts are; it holds plain `str`.
* What YAML's quoting or folding would make of an expression behind its author's back is found here, where the way in
  which a text is written is still known: while a document is validated, with `Findings` as pydantic's context.
* Nothing here parses expressions; a few regular expressions tell string literals and comments apart.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Annotated, Any

from pydantic import BeforeValidator, ValidationInfo, WithJsonSchema
from pydantic_core import PydanticCustomError

from ledgercli.documents.faults import EXPRESSION, TEXT, named
from ledgercli.documents.marks import Document
from ledgercli.documents.scalars import QUOTE_OR_BLOCK, Scanned
from ledgercli.sources import Problem

_STRING = (
    r"'''(?:\\.|[^\\])*?'''" r'|"""(?:\\.|[^\\])*?"""' r"|'(?:\\.|[^'\\\n])*+'" r'|"(?:\\.|[^"\\\n])*+"'
)  # a string literal of the policy language
_COMMENT = re.compile(rf"{_STRING}|(?P<comment>//)", re.DOTALL)
_OPENING = re.compile(r"\{\{|\}\}|(?P<opening>\{)")
_BRACES = re.compile(rf"{_STRING}|(?P<brace>[{{}}])", re.DOTALL)
_ESCAPE = re.compile(r"""\\(?P<fine>["\\])|\\(?:\n|.)""")
_WORDS = {"True": "true", "False": "false"}


class Origin(str):
    """A text on its way into a model, with how it is written."""

    __slots__ = ("scalar",)

    scalar: Scanned


@dataclass(slots=True)
class Findings:
    """What is found while a document is validated.

    Arguments:
        document: the document.
        problems: in the order of finding, each once.
        accepted: starts of the words `True` and `False` that stand for expressions.

    """

    document: Document
    problems: dict[Problem, None] = field(default_factory=dict)
    accepted: set[int] = field(default_factory=set)


def _expression(value: Any, info: ValidationInfo) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, str):
        raise _belongs(EXPRESSION, value)
    if isinstance(value, Origin) and isinstance(info.context, Findings):
        if value.scalar.start in info.context.document.words:
            info.context.accepted.add(value.scalar.start)
        _check_written(value.scalar, [(0, len(value))], info.context)
    return _WORDS.get(value) or str(value)


def _text(value: Any, info: ValidationInfo) -> str:
    if not isinstance(value, str):
        raise _belongs(TEXT, value)
    if isinstance(value, Origin) and isinstance(info.context, Findings):
        _check_written(value.scalar, list(expressions_in(value)), info.context)
    return str(value)


def _belongs(what: str, value: Any) -> PydanticCustomError:
    kind = "expression" if what == EXPRESSION else "text"
    return PydanticCustomError(kind, "{what} belongs here, not {value}", {"what": what, "value": named(value)})


def _expressions(value: Any, info: ValidationInfo) -> Any:
    if isinstance(value, dict):
        return {key: _expressions(below, info) for key, below in value.items()}
    if isinstance(value, list):
        return [_expressions(below, info) for below in value]
    return _expression(value, info) if isinstance(value, str) else value


def _texts(value: Any, info: ValidationInfo) -> Any:
    if isinstance(value, dict):
        return {key: _texts(below, info) for key, below in value.items()}
    if isinstance(value, list):
        return [_texts(below, info) for below in value]
    return _text(value, info) if isinstance(value, str) else value


ExpressionText = Annotated[
    str,
    BeforeValidator(_expression),
    WithJsonSchema({"type": ["string", "boolean"], "format": "expression"}),
]
"""An expression of the policy language; a YAML bool, and the words True and False, are `true` and `false`."""

TemplateText = Annotated[str, BeforeValidator(_text), WithJsonSchema({"type": "string", "format": "text"})]
"""A text in which `{…}` is an expression."""

ExpressionTree = Annotated[Any, BeforeValidator(_expressions), WithJsonSchema({"format": "expressions"})]
"""Maps and lists whose texts are expressions; numbers, truth values and null stand for themselves."""

TemplateTree = Annotated[Any, BeforeValidator(_texts), WithJsonSchema({"format": "texts"})]
"""Maps and lists whose texts are texts with `{…}`; all else stands for itself."""


# ---- how an expression is written


def expressions_in(text: str) -> Iterator[tuple[int, int]]:
    """Yield where the expressions of a text begin and end, without their braces; the last may lack its end."""
    position = 0
    while opening := _OPENING.search(text, position):
        position = opening.end()
        if not opening["opening"]:
            continue
        depth, start = 1, position
        for match in _BRACES.finditer(text, start):
            depth += {"{": 1, "}": -1, None: 0}[match["brace"]]
            position = match.end()
            if depth == 0:
                break
        yield start, position - 1 if depth == 0 else len(text)
        if depth:
            return


def _check_written(scalar: Scanned, spans: list[tuple[int, int]], findings: Findings) -> None:
    """Report what YAML makes of the expressions in a text that its author cannot have meant."""
    raw = findings.document.text[scalar.start : scalar.end]
    for first, last in spans:
        if scalar.style == "double" and "\\" in raw:
            _check_escapes(scalar.offset(first), scalar.offset(last), findings)
        if scalar.style == "folded" or (scalar.style != "literal" and "\n" in raw):
            _check_comment(scalar, first, last, findings)


def _check_escapes(first: int, last: int, findings: Findings) -> None:
    document = findings.document
    for match in _ESCAPE.finditer(document.text, first, last):
        if not match["fine"]:
            message = f"{match[0].strip()} is an escape of YAML's double quotes here, not of the expression"
            notes = (QUOTE_OR_BLOCK,)
            problem = document.problem_in(match.start(), match.start() + 2, "yaml-escape", message, notes=notes)
            findings.problems[problem] = None


def _check_comment(scalar: Scanned, first: int, last: int, findings: Findings) -> None:
    comment = next((match for match in _COMMENT.finditer(scalar.value, first, last) if match["comment"]), None)
    if comment:
        start = scalar.offset(comment.start())
        message = "this comment swallows what follows, since YAML joins the lines of this text"
        notes = ("put it in single quotes on one line, or in a `|` block",)
        problem = findings.document.problem_in(start, start + 2, "yaml-joined", message, notes=notes)
        findings.problems[problem] = None
