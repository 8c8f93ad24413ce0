"""Expressions of the policy language on several lines.

Invariants:
* A line is broken at a space outside quotes only; the words of all lines together are the expression.
* What goes on stands behind the bracket that is open, if that is not far to the right.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from ledgercli.reports.cells import cells

_QUOTED: Final = re.compile(r'"(?:[^"\\]|\\.)*"')
_WORD: Final = re.compile(r'(?:"(?:[^"\\]|\\.)*"|[^ ])+ *| +')
_HANG: Final = 20  # cells that a line is moved in at most


def expression(text: str, room: int) -> Iterator[str]:
    """Yield the lines of an expression."""
    indent, words = 0, list(_words(text))
    while words:
        line, count = " " * indent, 0
        while count < len(words) and (not count or cells(line + words[count].rstrip()) <= room):
            line += words[count]
            count += 1
        if count < len(words):
            count = _break(words[:count])
            line = " " * indent + "".join(words[:count])
        yield line.rstrip()
        words, indent = words[count:], _opened(line)


def _break(words: Sequence[str]) -> int:
    """Return after how many words a line ends best: inside as few brackets as can be, then as late as can be."""
    depth, depths = 0, []
    for word in words:
        bare = _QUOTED.sub("", word)
        depth += sum(map(bare.count, "([{")) - sum(map(bare.count, ")]}"))
        depths.append(depth)
    return max(range(1, len(words) + 1), key=lambda count: (-depths[count - 1], count))


def _words(text: str) -> Iterator[str]:
    """Yield the words of an expression with the space behind each; a text in quotes is part of one word."""
    return (match[0] for match in _WORD.finditer(text))


def _opened(line: str) -> int:
    """Return where a line goes on: behind the last bracket that is open in it, if that is not far right."""
    start = len(line) - len(line.lstrip(" "))
    open_at = [start]
    bare = _QUOTED.sub(lambda match: '"' * len(match[0]), line)
    for number, character in enumerate(bare):
        if character in "([{":
            open_at.append(cells(line[: number + 1]))
        elif character in ")]}" and len(open_at) > 1:
            open_at.pop()
    return open_at[-1] if open_at[-1] <= _HANG else min(start + 2, _HANG)
