r"""Text on a terminal: what it may hold, how wide it is, where it is cut and wrapped.

Invariants:
* Widths are cells, never characters: a Chinese character takes two, a combining mark none.
* After `inert` a text holds nothing that moves the cursor, turns the direction of reading or cannot be seen: such a
  character stands as `\x1b`, `\u202e`, `\U000e0041`. Then the cells of a text are the sum of those of its characters.
* Only values are cut, at the last whole cell; messages are wrapped; neither happens inside an escape.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from rich.cells import cell_len

WIDTH: Final = 80  # of every report, so that logs and terminals show the same
CUT: Final = "..."

#: Controls, formats, surrogates and line separators, odd spaces, private characters, letters that have no shape.
_UNSEEN: Final = re.compile(
    "[\x00-\x1f\x7f-\xa0\xad\u034f\u061c\u115f\u1160\u1680\u17b4\u17b5\u180b-\u180f\u2000-\u200f\u2028-\u202f"
    "\u205f-\u206f\u2800\u3164\ud800-\uf8ff\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffc\ufffe\uffff\U00013430-\U0001345f"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U0010ffff]"
)
_TOKEN: Final = re.compile(r'\\(?:x[0-9a-f]{2}|u[0-9a-f]{4}|U[0-9a-f]{8}|[\\"nrt])|.', re.DOTALL)
_NOT_FIRST: Final = frozenset("，。、；：？！）》」』】〉〕…,.;:?!)]}")  # what no line begins with


def cells(text: str) -> int:
    """Return how many cells a text takes."""
    return cell_len(text)


def escaped(character: str) -> str:
    r"""Return how a character is written that may not be printed as it is."""
    code = ord(character)
    if code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def inert(text: str) -> str:
    """Return a text in which every character can be seen, on one line."""
    return _UNSEEN.sub(lambda match: escaped(match[0]), text)


def encodable(text: str, encoding: str) -> str:
    r"""Return a text that an encoding can write; what it has no bytes for stands as `\u6674`."""
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return "".join(character if _has(character, encoding) else escaped(character) for character in text)
    return text


def _has(character: str, encoding: str) -> bool:
    try:
        character.encode(encoding)
    except UnicodeEncodeError:
        return False
    return True


def pad(text: str, width: int) -> str:
    """Return a text with spaces up to a width in cells."""
    return text + " " * (width - cells(text))


def cut(parts: Iterable[str], room: int | None) -> str:
    """Return the parts as one text of at most `room` cells (None: all of it); `...` stands for what does not fit.

    No more parts are taken than fit, so that a large value costs no more than a small one.
    """
    if room is None:
        return "".join(parts)
    kept: list[tuple[str, int]] = []
    used = 0
    for token in _tokens(parts):
        width = cells(token)
        if used + width > room:
            break
        kept.append((token, width))
        used += width
    else:
        return "".join(token for token, _ in kept)
    while kept and used + len(CUT) > room:
        used -= kept.pop()[1]
    return "".join(token for token, _ in kept) + CUT


def _tokens(parts: Iterable[str]) -> Iterator[str]:
    for part in parts:
        yield from (match[0] for match in _TOKEN.finditer(part))


def wrap(text: str, room: int) -> Iterator[str]:
    """Yield the lines of a message: broken at spaces and between wide characters; a longer word stays whole."""
    line = ""
    for word, space in _words(text):
        if line and cells(line) + len(space) + cells(word) > room:
            yield line
            line = word
        else:
            line += space + word if line else word
    yield line


def _words(text: str) -> Iterator[tuple[str, str]]:
    """Yield what a line may be broken before, each with the space between it and what is before it."""
    for number, part in enumerate(text.split(" ")):
        space = " " if number else ""
        word, beside_wide = "", False
        for token in _tokens([part]):
            wide = cells(token) > 1  # an escape is wide too
            if word and (wide or beside_wide) and token not in _NOT_FIRST:
                yield word, space
                word, space = "", ""
            word += token
            beside_wide = wide
        yield word, space
