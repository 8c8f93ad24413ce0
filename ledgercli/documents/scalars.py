r"""YAML scalars in their five styles: where each ends, what it says, and where each of its characters stands.

Invariants:
* Every function takes the whole text and an offset into it, and yields the value with its *pieces*: pairs of an offset
  in the value and the offset in the text of the characters that follow up to the next piece. A position in a value is
  found from them exactly, whatever quoting, escapes, indentation or folding lie between.
* The text has `\n` line ends only.
* Nothing here raises: what is wrong is told to the caller's `Report`, and read as well as it can be.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Literal

Style = Literal["plain", "single", "double", "literal", "folded"]
Report = Callable[[str, int, int, str], None]  # code, start, end, message

ODD_SPACE = "[\u00a0\u1680\u180e\u2000-\u200b\u202f\u205f\u2060\u3000]"  # looks like a space, and is none to YAML
QUOTE = "put it in single quotes"
QUOTE_OR_BLOCK = "put it in single quotes, or in a `|` block"
_LONGEST_ADVICE = 200
MARKERS = ("---", "...")
_ESCAPES = {
    "0": "\0", "a": "\a", "b": "\b", "t": "\t", "\t": "\t", "n": "\n", "v": "\v", "f": "\f", "r": "\r", "e": "\x1b",
    " ": " ", '"': '"', "/": "/", "\\": "\\", "N": "\x85", "_": "\xa0", "L": "\u2028", "P": "\u2029",
}  # fmt: skip
_SINGLE = re.compile(r"'((?:[^']++|'')*+)'")
_DOUBLE = re.compile(r'"((?:[^"\\]++|\\.)*+)"', re.DOTALL)
_FOLD = r"(?P<fold>[ \t]*+\n[ \t\n]*+)"
_SINGLE_PART = re.compile(_FOLD + r"|(?P<escape>'')|[^ \t\n']++|[ \t]++")
_HEX = r"x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}"
_PAIR = r"u[Dd][89ABab][0-9A-Fa-f]{2}\\u[Dd][C-Fc-f][0-9A-Fa-f]{2}"  # as JSON writes a character beyond 16 bits
_DOUBLE_PART = re.compile(_FOLD + rf"|(?P<escape>\\(?:\n[ \t\n]*+|{_PAIR}|{_HEX}|.))|[^ \t\n\\]++|[ \t]++")
_COLON = rf":(?!{ODD_SPACE})"
_BLOCK_WORD = rf"(?:[^ \t\n:]++|{_COLON}(?=[^ \t\n]))++"
_FLOW_WORD = rf"(?:[^ \t\n:,\[\]{{}}]++|{_COLON}(?=[^ \t\n,\[\]{{}}]))++"
_PLAIN_BLOCK = re.compile(rf"{_BLOCK_WORD}(?: ++(?!#){_BLOCK_WORD})*+")
_PLAIN_FLOW = re.compile(rf"{_FLOW_WORD}(?: ++(?!#){_FLOW_WORD})*+")
_LINE_BREAKS = re.compile(r" *+(\n[ \n]*+)")
_BLOCK_HEADER = re.compile(
    r"([|>])(?:(?P<chomp>[+-])(?P<indent>[1-9])?|(?P<indent_>[1-9])(?P<chomp_>[+-])?)?"
    r"(?P<rest> *+(?:(?<= )#[^\n]*+)?)(?P<end>\n|\Z)?"
)
_LINE = re.compile(r"( *+)([^\n]*+)(?:\n|\Z)")


def quoting(text: str) -> str:
    """Return the advice to quote a text, if possible with the quoted text."""
    if "\n" in text or len(text) > _LONGEST_ADVICE:
        return QUOTE_OR_BLOCK
    return f"{QUOTE}: '" + text.replace("'", "''") + "'"


@dataclass(frozen=True, slots=True)
class Scanned:
    """A scalar of the text.

    Arguments:
        start: offset of its first character, a quote or `|` included.
        end: offset after its last.
        value: what it says.
        style: how it is written.
        pieces: where the characters of `value` stand; see above.

    """

    start: int
    end: int
    value: str
    style: Style
    pieces: tuple[tuple[int, int], ...]

    def offset(self, position: int) -> int:
        """Return where in the text the character of the value at `position` stands; its length gives the end."""
        index = bisect_right(self.pieces, position, key=lambda piece: piece[0]) - 1
        at, offset = self.pieces[max(index, 0)]
        return min(offset + max(position - at, 0), self.end)


@dataclass(slots=True)
class _Builder:
    """A value while it is put together."""

    chunks: list[str] = field(default_factory=list)
    pieces: list[tuple[int, int]] = field(default_factory=list)
    length: int = 0

    def add(self, chunk: str, offset: int) -> None:
        self.pieces.append((self.length, offset))
        self.chunks.append(chunk)
        self.length += len(chunk)

    def scanned(self, style: Style, start: int, inner_end: int, end: int) -> Scanned:
        self.pieces.append((self.length, inner_end))
        return Scanned(start, end, "".join(self.chunks), style, tuple(self.pieces))


def _folded(breaks: int) -> str:
    """Return what a number of line breaks in a row become in a folded text."""
    return " " if breaks == 1 else "\n" * (breaks - 1)


def plain(text: str, start: int, indent: int, *, flow: bool) -> Scanned:
    """Read a plain scalar, with the lines that continue it: those indented by at least `indent`.

    Its first character is taken whatever it is, so that a caller gets on.
    """
    pattern = _PLAIN_FLOW if flow else _PLAIN_BLOCK
    match = pattern.match(text, start)
    end = match.end() if match else start + 1
    builder = _Builder()
    builder.add(text[start:end], start)
    while breaks := _LINE_BREAKS.match(text, end):
        at = breaks.end()
        column = at - text.rfind("\n", 0, at) - 1
        if column < indent or (column == 0 and text.startswith(MARKERS, at)) or text.startswith("#", at):
            break
        more = pattern.match(text, at)
        if more is None:
            break
        builder.add(_folded(breaks[1].count("\n")), breaks.start(1))
        builder.add(more[0], at)
        end = more.end()
    return builder.scanned("plain", start, end, end)


def quoted(text: str, start: int, report: Report) -> Scanned | None:
    """Read a quoted scalar; None where its quote is never closed."""
    single = text[start] == "'"
    match = (_SINGLE if single else _DOUBLE).match(text, start)
    if match is None:
        return None
    builder = _Builder()
    for part in (_SINGLE_PART if single else _DOUBLE_PART).finditer(text, *match.span(1)):
        at = part.start()
        if fold := part["fold"]:
            builder.add(_folded(fold.count("\n")), at + fold.index("\n"))
        elif escape := part["escape"]:
            builder.add("'" if single else _unescaped(escape, at, report), at)
        else:
            builder.add(part[0], at)
    return builder.scanned("single" if single else "double", start, match.end(1), match.end())


def _unescaped(escape: str, at: int, report: Report) -> str:
    """Return the character that an escape of a double-quoted text stands for."""
    letter = escape[1]
    if letter == "\n":  # an escaped line break is none; further empty lines are
        return "\n" * (escape.count("\n") - 1)
    if len(escape) == 2:
        if letter not in _ESCAPES:
            report("yaml-escape", at, at + 2, f"{escape} is no escape in double quotes")
        return _ESCAPES.get(letter, escape)
    if len(escape) == 12:
        return escape.encode().decode("unicode-escape").encode("utf-16", "surrogatepass").decode("utf-16")
    code = int(escape[1:].lstrip("xuU"), base=16)
    if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
        report("yaml-escape", at, at + len(escape), f"{escape} is no character")
        return "\ufffd"
    return chr(code)


def block(text: str, start: int, indent: int, report: Report) -> Scanned | None:
    """Read a literal (`|`) or folded (`>`) block inside a parent indented by `indent`; None: there is no block here."""
    header = _BLOCK_HEADER.match(text, start)
    if header is None or header["end"] is None:
        return None
    body = header.end()
    wanted = header["indent"] or header["indent_"]
    depth = max(indent, 0) + int(wanted) if wanted else _block_depth(text, body, indent + 1, report)
    lines = list(_block_lines(text, body, depth))
    folded = header[1] == ">"
    builder = _Builder()
    last = -1  # the last line that is not empty
    for index, (first, end) in enumerate(lines):
        if first == end:
            continue
        breaks = index - last - (last < 0)
        if breaks:
            loose = folded and last >= 0 and text[first] not in " \t" and text[lines[last][0]] not in " \t"
            builder.add(_folded(breaks) if loose else "\n" * breaks, lines[last][1] if last >= 0 else body)
        builder.add(text[first:end], first)
        last = index
    inner_end = lines[last][1] if last >= 0 else body
    after = sum(text.startswith("\n", end) for _, end in lines[max(last, 0) :])
    keep = {"+": after, "-": 0, None: min(after, 1) if last >= 0 else 0}[header["chomp"] or header["chomp_"]]
    builder.add("\n" * keep, inner_end)
    inner_end = min(inner_end + keep, len(text))
    end = max([inner_end, *(last for _, last in lines[-1:])])
    return builder.scanned("folded" if folded else "literal", start, inner_end, end)


def _block_depth(text: str, at: int, least: int, report: Report) -> int:
    """Return by how much the lines of a block are indented: as its first line is that is not empty."""
    spaces = 0
    for match in _LINE.finditer(text, at):
        width = len(match[1])
        if match[2]:
            if spaces > width >= least:
                report(
                    "yaml-block", match.start(), match.start(2), "an empty line above is indented deeper than this one"
                )
            return max(width, least)
        spaces = max(spaces, width)
    return max(spaces, least)


def _block_lines(text: str, at: int, depth: int) -> Iterator[tuple[int, int]]:
    """Yield where the lines of a block start, less their indentation, and where they end."""
    for match in _LINE.finditer(text, at):
        first, end = match.start(), match.end(2)
        if match[2] and (len(match[1]) < depth or (depth == 0 and text.startswith(MARKERS, first))):
            return
        if first == len(text):
            return
        yield min(first + depth, end), end
