"""Text → data, with the place of every key and value: YAML, read strictly.

Invariants:
* Only maps with text keys, lists, texts, `true`, `false`, `null` and plain decimal numbers are data. Whatever else YAML
  offers, and whatever looks like a number or a truth value of another dialect, is a problem with a place, not a guess.
* All problems that one pass can find are found; a document with problems holds what could be read all the same.
* Bounded: depth, number of nodes, number of problems, and by `sources.read` size.
* Columns count characters, a byte-order mark is none, and CR LF ends a line like LF.

Importing this module imports ruamel; `documents.parse` does so when it is called.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from ruamel.yaml import YAML, events
from ruamel.yaml.error import MarkedYAMLError

from ledgercli.documents.marks import Document, Mark
from ledgercli.documents.scalars import QUOTE, QUOTE_OR_BLOCK, Scanned, quoting
from ledgercli.documents.yaml_scanner import StrictScanner
from ledgercli.documents.yaml_text import (
    MAX_DEPTH,
    MAX_FINDINGS,
    DepthError,
    Finding,
    TextReader,
    TooManyFindingsError,
    name_of,
)
from ledgercli.sources import Problem, Source, shown

MAX_NODES = 100_000
_INT64 = range(-(2**63), 2**63)
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?P<fraction>(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?)")
_LIKE_NUMBER = re.compile(
    r"[-+]?(?:0x[0-9A-Fa-f_]+|0o[0-7_]+|0b[01_]+|\.(?:inf|Inf|INF|nan|NaN|NAN)"
    r"|(?P<decimal>[0-9][0-9_]*\.?[0-9_]*|\.[0-9][0-9_]*)(?:[eE][-+]?[0-9]+)?)"
)
_WORDS: dict[str, Any] = {"true": True, "false": False, "null": None}
_LIKE_WORDS = {"~": "null", "Null": "null", "NULL": "null", "True": "true", "TRUE": "true", "False": "false",
               "FALSE": "false"}  # fmt: skip
_ODD_CHARACTER = re.compile(
    "(?P<seen>(?P<bidi>[\u202a-\u202e\u2066-\u2069])|(?P<unseen>[\u00ad\u061c\u200b\u200e\u200f\u2060]))|(?P<cr>\r)"
    "|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff\ud800-\udfff]"
)
_SYNTAX: tuple[tuple[str, bool, str, str], ...] = (  # ruamel's words, at its context?, code, ours
    (r"could not find expected ':'", True, "yaml-colon",
     "a `:` is missing after this key; a text over several lines must be indented deeper than its key"),
    (r"mapping values are not allowed here", False, "yaml-colon",
     '": " may not stand here; if it is part of a text, put that in single quotes, or in a `|` block'),
    (r"expected ',' or '(.)', but got '<stream end>'", True, "yaml-braces", "a `{1}` is missing: this is never closed"),
    (r"expected ',' or '(.)', but got", False, "yaml-braces", "a `,` or `{1}` is missing before this"),
    (r"expected the node content, but found", False, "yaml-syntax", "a value is missing before this"),
    (r"expected <block end>, but found", False, "yaml-indentation",
     "the indentation of this line fits no line above it"),
)  # fmt: skip


def parse(source: Source) -> Document:
    """Parse a file; what is wrong with it stands in the document's `problems`."""
    return _Parser(source).document()


class _Parser:
    """One pass over one file."""

    def __init__(self, source: Source) -> None:
        text = source.text.removeprefix("\ufeff").replace("\r\n", "\n")
        self.source = source
        self.shown = text.replace("\r", "\n")
        # Characters that ruamel would take for line ends or the end are reported by `_characters`.
        self.text = _ODD_CHARACTER.sub(lambda match: "\n" if match["cr"] else match["seen"] or "\ufffd", text)
        self.original = text
        self.nodes = 0
        self.whole = True
        self.words: dict[int, Finding] = {}
        yaml = YAML(typ="safe", pure=True)
        yaml.Reader = TextReader
        yaml.Scanner = lambda loader: StrictScanner(self.text, loader)
        yaml.reader.stream = self.text
        self.events = self._events(yaml)
        self.scanner: StrictScanner = yaml.scanner

    def document(self) -> Document:
        data, root = None, Mark(0, 0)
        try:
            while event := next(self.events, None):  # not `for`: the depth may end them
                if isinstance(event, events.NodeEvent):
                    data, root = self._node(event, 0)
        except TooManyFindingsError:
            self.whole = False
        document = Document(self.source, self.shown, data, root, (), self.whole, {}, self.scanner.cut_off)
        problems = {_problem(document, finding): None for finding in self.scanner.findings}
        problems |= dict.fromkeys(self._characters(document))
        words = {start: _problem(document, finding) for start, finding in self.words.items()}
        return replace(document, problems=tuple(sorted(problems)), words=words)

    def _characters(self, document: Document) -> Iterator[Problem]:
        """Yield a problem for each character that may not stand in a file, or is not to be seen there."""
        for match, _ in zip(_ODD_CHARACTER.finditer(self.original), range(MAX_FINDINGS), strict=False):
            name = name_of(match[0])
            code, severity, inline = "yaml-character", "error", None
            if match["cr"]:
                code, message = "yaml-line-end", "a carriage return alone ends no line; save the file with LF or CR LF"
            elif match["bidi"]:
                message = f"{name} stands here; it makes the line look like what it is not"
            elif match["unseen"]:
                message, severity = f"{name} stands here, and cannot be seen", "note"
            else:
                message = f"{name} may not stand in a file"
                inline = "write it as an escape, in double quotes"
            yield document.problem_in(match.start(), match.end(), code, message, severity=severity, inline=inline)

    # ---- events

    def _events(self, yaml: YAML) -> Iterator[Any]:
        """Yield ruamel's events, until something is wrong that nothing can follow."""
        try:
            for event in yaml.parse(self.text):
                self.nodes += 1
                if self.nodes > MAX_NODES:
                    self._stop("yaml-size", event.start_mark.index, f"more than {MAX_NODES:,} values in one file")
                    return
                yield event
        except MarkedYAMLError as error:
            self._syntax_error(error)
        except DepthError as error:
            self._too_deep(error.offset)

    def _stop(self, code: str, start: int, message: str, *, follows: bool = False) -> None:
        self.whole = False
        self.scanner.report(code, start, start + 1, message, follows=follows)

    def _too_deep(self, offset: int) -> None:
        self._stop("yaml-depth", offset, f"values are nested more than {MAX_DEPTH} deep")

    def _syntax_error(self, error: MarkedYAMLError) -> None:
        mark, code, message = error.problem_mark, "yaml-syntax", str(error.problem)
        for pattern, at_context, ours, text in _SYNTAX:
            if match := re.match(pattern, message):
                mark = (at_context and error.context_mark) or mark
                code, message = ours, text.replace("{1}", match[1] if match.lastindex else "")
                break
        self._stop(code, mark.index, message, follows=True)

    # ---- nodes

    def _node(self, event: Any, depth: int) -> tuple[Any, Mark]:
        """Return the value that begins with an event, and where it stands."""
        start = event.start_mark.index
        if depth >= MAX_DEPTH and isinstance(event, events.CollectionStartEvent):
            self._too_deep(start)
            self.events = iter(())
            return None, Mark(start, start)
        if isinstance(event, events.MappingStartEvent):
            return self._map(event, depth)
        if isinstance(event, events.SequenceStartEvent):
            return self._list(event, depth)
        scalar = self._scalar(event)
        if scalar is None:
            return None, Mark(start, start)
        return self._resolved(scalar), Mark(scalar.start, scalar.end, scalar)

    def _scalar(self, event: Any) -> Scanned | None:
        """Return the scalar of an event; None where a value is left out."""
        left_out = event.start_mark.index == event.end_mark.index
        return None if left_out else self.scanner.scanned[event.start_mark.index]

    def _list(self, event: Any, depth: int) -> tuple[list[Any], Mark]:
        data: list[Any] = []
        mark = Mark(event.start_mark.index, event.end_mark.index)
        while (event := next(self.events, None)) and not isinstance(event, events.SequenceEndEvent):
            value, below = self._node(event, depth + 1)
            mark.children[len(data)] = below
            data.append(value)
        return data, replace(mark, end=self._end(event, mark))

    def _end(self, event: Any, mark: Mark) -> int:
        """Return where a collection ends: after its `]` or `}`, or after its last value."""
        if event and event.end_mark.index > event.start_mark.index:
            return int(event.end_mark.index)
        return max((below.end for below in mark.children.values()), default=mark.end)

    def _map(self, event: Any, depth: int) -> tuple[dict[str, Any], Mark]:
        data: dict[str, Any] = {}
        mark = Mark(event.start_mark.index, event.end_mark.index)
        flow, bare = event.flow_style, []
        if flow and self.text[mark.start] != "{":
            self._report_pair(mark.start)
        while (event := next(self.events, None)) and not isinstance(event, events.MappingEndEvent):
            key = self._key(event, depth)
            value_event = next(self.events, None)
            if value_event is None:
                break
            if key and flow and self._is_bare(key, value_event):
                bare.append(key)
            value, below = self._node(value_event, depth + 1)
            if key is None:
                continue
            if key.value in data:
                self._report_duplicate(key, mark.children[key.value].key)
            if below.scalar is None and not below.children and below.start == below.end:  # left out
                colon = self.text.find(":", key.end, below.start) + 1 or key.end
                below = Mark(colon, colon)
            mark.children[key.value] = replace(below, key=key)
            data[key.value] = value
        mark = replace(mark, end=self._end(event, mark))
        if bare:
            self._report_bare(mark, bare, all_of=len(bare) == len(data))
        return data, mark

    # ---- keys

    def _key(self, event: Any, depth: int) -> Scanned | None:
        """Return a key; None for one that is none, which is reported and passed over."""
        start = event.start_mark.index
        report = self.scanner.report
        if not isinstance(event, events.ScalarEvent):
            self._node(event, depth + 1)
            what = "map" if self.text[start] == "{" else "list"
            report("yaml-key", start, start + 1, f"a {what} stands where a key belongs", inline=QUOTE, follows=True)
            return None
        key = self._scalar(event)
        if key is None:
            report("yaml-key", start, start + 1, "a key is missing before this `:`", follows=True)
            return None
        if key.style == "plain":
            if key.value == "<<":
                message = "`<<` is a YAML merge key; there are none in our files"
                report("yaml-merge-key", key.start, key.end, message, notes=("write out what it would merge",))
            elif key.value in _WORDS or key.value in _LIKE_WORDS or _LIKE_NUMBER.fullmatch(key.value):
                inline = quoting(key.value)
                report("yaml-key", key.start, key.end, f"the key {shown(key.value)} is no text", inline=inline)
        return key

    def _is_bare(self, key: Scanned, value: Any) -> bool:
        """Tell whether a key in `{ }` has not even a `:`."""
        start = value.start_mark.index
        return start == value.end_mark.index and ":" not in self.text[key.end : start]

    def _report_bare(self, mark: Mark, bare: list[Scanned], *, all_of: bool) -> None:
        if all_of:
            start, end = mark.start, mark.end
            while self.text.startswith("{", start - 1) and self.text.startswith("}", end):
                start, end = start - 1, end + 1
            text = self.text[start:end]
            inline = quoting(text)
            message = '"{" begins a YAML map here'
            notes = ("as it stands, this would be a map and no text",)
            self.scanner.report("yaml-braces", start, start + 1, message, inline=inline, notes=notes, follows=True)
            return
        for key in bare:
            message = f"{shown(key.value)} has no value in this map; if it is part of a text, {QUOTE_OR_BLOCK}"
            self.scanner.report("yaml-braces", key.start, key.end, message, follows=True)

    def _report_pair(self, start: int) -> None:
        message = f'": " makes a map of this entry; write {{ }} around it or, if it is a text, {QUOTE_OR_BLOCK}'
        self.scanner.report("yaml-braces", start, start + 1, message, follows=True)

    def _report_duplicate(self, key: Scanned, first: Scanned | None) -> None:
        line = self.text.count("\n", 0, first.start if first else 0) + 1
        again = self.text.count("\n", 0, key.start) + 1
        message = f"the key {shown(key.value)} stands twice, on line {line} and on line {again}"
        self.scanner.report("duplicate-key", key.start, key.end, message)

    # ---- values

    def _resolved(self, scalar: Scanned) -> Any:
        """Return what a scalar is: a text, or, if it is plain, perhaps something else."""
        value = scalar.value
        if scalar.style != "plain":
            return value
        if value in _WORDS:
            return _WORDS[value]
        if value in _LIKE_WORDS:
            return self._like_word(scalar)
        if _LIKE_NUMBER.fullmatch(value):
            return self._number(scalar)
        return value

    def _like_word(self, scalar: Scanned) -> str:
        meant = _LIKE_WORDS[scalar.value]
        message = f"{scalar.value} is neither {meant} nor clearly a text"
        inline = f"write {meant} or, if it is a text, {quoting(scalar.value)}"
        if scalar.value in {"True", "False"}:
            self.words[scalar.start] = Finding("yaml-word", scalar.start, scalar.end, message, inline=inline)
        else:
            self.scanner.report("yaml-word", scalar.start, scalar.end, message, inline=inline)
        return scalar.value

    def _number(self, scalar: Scanned) -> Any:
        value = scalar.value
        match = _NUMBER.fullmatch(value)
        if match and match["fraction"]:
            number = float(value)
            if number not in {float("inf"), float("-inf")}:
                return number
        elif match and len(value) <= 20 and int(value) in _INT64:
            return int(value)
        self._report_number(scalar, known=bool(match))
        return value

    def _report_number(self, scalar: Scanned, *, known: bool) -> None:
        value = scalar.value
        decimal = (_LIKE_NUMBER.fullmatch(value) or {"decimal": None})["decimal"]
        if known:
            message = "this number does not fit into 64 bits"
        elif decimal and re.match(r"0[0-9_]", decimal):
            message = "a number with a leading zero: some read it as octal, some as decimal"
        else:
            message = f"{shown(value)} is a number in some YAML dialects only"
        inline = f"write it as a decimal number or, if it is a text, {quoting(value)}"
        self.scanner.report("yaml-number", scalar.start, scalar.end, message, inline=inline)


def _problem(document: Document, finding: Finding) -> Problem:
    return document.problem_in(
        finding.start,
        finding.end,
        finding.code,
        finding.message,
        notes=finding.notes,
        inline=finding.inline,
        severity=finding.severity,
    )
