"""A pack in plain sentences, as Markdown; `docpage` has the same as a page of HTML.

Invariants:
* A field or a name that is typed stands in type of one width.
* Text of a file cannot become structure: it is escaped, or stands in a code span that it cannot end.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Mapping, Sequence
from typing import Final

from ledgercli.documenting import LEGEND, PackPart, RuleEntry, ToolPart
from ledgercli.reports.cells import inert
from ledgercli.reports.markdown import table, text
from ledgercli.sentences import Sentence

_TYPED: Final = re.compile(r"\w[\w-]*[._\[].*[\w\])]|\w+_")
_PLAIN: Final = re.compile(r"[\w,.:;()'-]*")
_NUMBER: Final = re.compile(r"-?\d[\d.,]*")
_TOOLS: Final = 4  # of a rule that are named; of more the number
_CASES: Final = 4
HEAD: Final = ("rule", "it", "about", "cases that name it", "coverage", "where")
EVERY: Final = "Each call, of whatever tool"
_EFFECTS: Final[Mapping[str, str]] = {"deny": "denies", "require_approval": "asks for approval", "warn": "warns"}


def words(sentence: str, typed: Container[str] = ()) -> Iterator[tuple[str, bool]]:
    """Yield a sentence in pieces, each with whether it is typed so in a rule; `typed` are names without a mark."""
    for number, word in enumerate(_split(sentence)):
        if number:
            yield " ", False
        before, core, after = _cored(word)
        if before:
            yield before, False
        if core:
            marked = _TYPED.fullmatch(core) is not None or not _PLAIN.fullmatch(core)
            yield core, core in typed or (marked and not _NUMBER.fullmatch(core))
        if after:
            yield after, False


def _split(sentence: str) -> Iterator[str]:
    """Yield the words; a path with spaces inside its brackets is one, and a text in quotes."""
    word, depth, quoted, escaped = "", 0, False, False
    for character in sentence:
        if character == " " and not depth and not quoted:
            yield word
            word = ""
            continue
        word += character
        quoted ^= character == '"' and not escaped
        escaped = character == "\\" and not escaped
        if not quoted:
            depth = max(depth + (character == "[") - (character == "]"), 0)
    yield word


def _cored(word: str) -> tuple[str, str, str]:
    """Return what stands before a word, the word, and what stands after it."""
    core = word.lstrip("(")
    before = word[: len(word) - len(core)]
    end = len(core)
    while end and (core[end - 1] in ".,:;" or (core[end - 1] == ")" and core[:end].count(")") > core[:end].count("("))):
        end -= 1
    return before, core[:end], core[end:]


def effect(rule: RuleEntry) -> str:
    """Return what a rule does, in words."""
    model = rule.model
    if model.grant is not None:
        said = "allows"
    else:
        said = _EFFECTS[model.failing.effect] + (" and ends the run" if model.failing.halt else "")
    return f"{said}, only watched" if model.mode == "shadow" else said


def about(rule: RuleEntry) -> str:
    """Return which tools a rule asks something of."""
    if len(rule.tools) > _TOOLS:
        return f"{len(rule.tools):,} tools"
    return ", ".join(rule.tools) or "each call"


def named(rule: RuleEntry) -> Sequence[str]:
    """Return the cases that name a rule, of many the first."""
    if rule.cases is None:
        return ("not given",)
    more = len(rule.cases) - _CASES
    return (rule.cases or ("none",)) if more <= 0 else [*rule.cases[:_CASES], f"and {more:,} more"]


def covered(rule: RuleEntry) -> str:
    """Return how often a rule gave which answer."""
    if rule.coverage is None:
        return "not counted"
    return ", ".join(f"{answer} {count:,}" for answer, count in rule.coverage.items() if count) or "never asked"


def names(part: PackPart, tool: ToolPart | None = None) -> frozenset[str]:
    """Return the names in the sentences about a tool that nothing marks as names: its own, and those of defines."""
    return frozenset(part.pack.file.define) | ({tool.name} if tool and tool.name else frozenset())


# Markdown


def markdown(parts: Sequence[PackPart]) -> Iterator[str]:
    """Yield the lines of a document."""
    for number, part in enumerate(parts):
        if number:
            yield ""
        yield from _markdown_pack(part)


def _markdown_pack(part: PackPart) -> Iterator[str]:
    file = part.pack.file
    version = "" if file.version is None else f", version {text(str(file.version))}"
    yield f"# The pack {_code(file.pack)}{version}"
    if file.description:
        yield from ("", text(file.description))
    yield ""
    judges = part.active
    yield from _listed([*judges.sentences], judges.where, (), names(part)) if judges else ()
    for line in (*(note.text for note in part.notes), *LEGEND):
        yield f"- {_sentence(line)}"
    for tool in part.tools:
        yield from _markdown_tool(tool, names(part, tool))
    if part.free:
        yield from ("", "## Tools without a rule of their own", "", ", ".join(map(_code, part.free)))
    yield from ("", "## Rules and what proves them", "")
    yield from table(HEAD, map(_markdown_row, part.rules))


def _markdown_tool(tool: ToolPart, typed: Container[str]) -> Iterator[str]:
    yield from ("", f"## {_code(tool.name) if tool.name else EVERY}")
    if tool.description:
        yield from ("", text(tool.description))
    if tool.note:
        yield from ("", _sentence(tool.note.text, typed))
    for one in tool.requirements:
        described = f": {text(one.description)}" if one.description else ""
        yield from ("", f"**{_code(one.rule)}**{described}", "")
        yield from _listed(one.statement.sentences, one.statement.where, one.statement.notes, typed)


def _listed(
    first: Sequence[Sentence], where: Sequence[Sentence], last: Sequence[Sentence], typed: Container[str]
) -> Iterator[str]:
    for sentence in (*first, *([Sentence("Where:", tuple(where))] if where else ()), *last):
        yield from _items(sentence, 0, typed)


def _items(sentence: Sentence, depth: int, typed: Container[str]) -> Iterator[str]:
    yield f"{'  ' * depth}- {_sentence(sentence.text, typed)}"
    for item in sentence.items:
        yield from _items(item, depth + 1, typed)


def _markdown_row(rule: RuleEntry) -> Sequence[str]:
    cases = "<br>".join(map(text, named(rule)))
    tools = ", ".join(map(_code, rule.tools)) if rule.tools and len(rule.tools) <= _TOOLS else about(rule)
    return _code(rule.name), effect(rule), tools, cases, text(covered(rule)), text(rule.place)


def _sentence(sentence: str, typed: Container[str] = ()) -> str:
    return "".join(_code(piece) if marked else piece for piece, marked in words(inert(sentence), typed))


def _code(said: str) -> str:
    """Return a code span; its fence is longer than any row of backquotes in it, and a `|` cannot end a cell."""
    shown = inert(said).replace("|", "\\|")
    fence = "`" * (max((len(run) for run in re.findall("`+", shown)), default=0) + 1)
    space = " " if "`" in shown else ""
    return f"{fence}{space}{shown}{space}{fence}"
