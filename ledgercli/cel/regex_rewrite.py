r"""Patterns written anew: cut to what a yes or no needs, turned into one pass where that is possible, given to Python.

Invariants:
* A rewriting finds a match in exactly the texts in which the pattern has one.
* What Python gets means there what the tree means in RE2: `$` is the end of the text alone, `\d \w \s \b` are ASCII.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from ledgercli.cel.regex_sets import ANY, LAST, NEWLINE, Ranges, complement, overlap
from ledgercli.cel.regex_syntax import At, Chars, Choice, Node, Place, Repeat, Sequence

_GAPS = (ANY, complement(NEWLINE))
_WORD = "[0-9A-Za-z_]"
_PLACES: Final[dict[Place, str]] = {
    "text_start": r"\A",
    "text_end": r"\Z",
    "line_start": "(?m:^)",
    "line_end": "(?m:$)",
    "boundary": f"(?:(?<={_WORD})(?!{_WORD})|(?<!{_WORD})(?={_WORD}))",
    "no_boundary": f"(?:(?<={_WORD})(?={_WORD})|(?<!{_WORD})(?!{_WORD}))",
}


def trimmed(node: Node) -> Node:
    """`node` with the repetitions at its ends cut to their least number: a search finds one if it finds the other."""
    items: list[Node] = list(node.items) if isinstance(node, Sequence) else [node]
    while items and isinstance(item := items[0], Repeat) and (item.least != item.most or item.least < 2):
        items[:1] = _flat(Repeat(item.item, item.least, item.least))
    while items and isinstance(item := items[-1], Repeat) and (item.least != item.most or item.least < 2):
        items[-1:] = _flat(Repeat(item.item, item.least, item.least))
    return items[0] if len(items) == 1 else Sequence(tuple(items))


def _flat(node: Repeat) -> list[Node]:
    """The items of a repetition of an exact number."""
    if node.least == 0:
        return []
    if node.least == 1:
        return list(node.item.items) if isinstance(node.item, Sequence) else [node.item]
    return [node]


@dataclass(frozen=True, slots=True)
class Chain:
    """Python's pattern for pieces of fixed length with `.*` between them, and how long they are together."""

    pattern: str
    width: int


def chained(node: Node) -> Chain | None:
    """The chain that `node` is, if it is one.

    Each piece is taken where it first occurs behind the one before, which loses nothing and needs one pass.
    """
    items = node.items if isinstance(node, Sequence) else ()
    start, end = items[:1] == (At("text_start"),), items[-1:] == (At("text_end"),)
    pieces, gap = _pieces(items[start : len(items) - end])
    if gap is None or not all(_piece_is_fixed(piece, gap) for piece in pieces):
        return None
    any_character = _emit_set(gap)
    parts = [emit(Sequence(tuple(piece))) for piece in pieces]
    head = rf"\A{parts.pop(0)}" if start else r"\A" if gap == ANY else "(?m:^)"
    tail = rf"{any_character}*{parts.pop()}\Z" if end else ""
    middle = "".join(f"(?>{any_character}*?{part})" for part in parts)
    return Chain(head + middle + tail, sum(_width(item) or 0 for piece in pieces for item in piece))


def _pieces(items: tuple[Node, ...]) -> tuple[list[list[Node]], Ranges | None]:
    """The items between gaps, and the one set that all gaps have (None: there are no gaps, or two sets)."""
    pieces: list[list[Node]] = [[]]
    gaps = set()
    for item in items:
        character = item.item if isinstance(item, Repeat) and item.most is None else None
        if isinstance(item, Repeat) and isinstance(character, Chars) and character.ranges in _GAPS:
            pieces[-1] += [character] * item.least
            pieces.append([])
            gaps.add(character.ranges)
        else:
            pieces[-1].append(item)
    return pieces, gaps.pop() if len(gaps) == 1 else None


def _piece_is_fixed(piece: list[Node], gap: Ranges) -> bool:
    """Whether the first place where a piece occurs is also where it ends first, in reach of the gap before it."""
    return all(_width(item) is not None and _stays(item, gap) for item in piece)


def _width(node: Node) -> int | None:
    """The one length of all texts that `node` matches; None if they differ, or if places matter."""
    if isinstance(node, Chars):
        return 1
    if isinstance(node, Sequence):
        widths = [_width(item) for item in node.items]
        return None if None in widths else sum(width or 0 for width in widths)
    if isinstance(node, Choice):
        options = {_width(option) for option in node.options}
        return options.pop() if len(options) == 1 else None
    if isinstance(node, Repeat) and node.least == node.most:
        inner = _width(node.item)
        return None if inner is None else inner * node.least
    return None


def _stays(node: Node, gap: Ranges) -> bool:
    """Whether every character of the piece is one that the gap could take."""
    if isinstance(node, Chars):
        return not overlap(node.ranges, complement(gap))
    if isinstance(node, Repeat):
        return _stays(node.item, gap)
    return all(
        _stays(child, gap) for child in (node.items if isinstance(node, Sequence) else getattr(node, "options", ()))
    )


def emit(node: Node) -> str:
    """The tree as a pattern of Python's `re`."""
    if isinstance(node, Chars):
        return _emit_set(node.ranges)
    if isinstance(node, At):
        return _PLACES[node.place]
    if isinstance(node, Sequence):
        return "".join(map(emit, node.items))
    if isinstance(node, Choice):
        return f"(?:{'|'.join(map(emit, node.options))})"
    return f"(?:{emit(node.item)}){{{node.least},{'' if node.most is None else node.most}}}"


def _emit_set(ranges: Ranges) -> str:
    if not ranges:
        return "(?!)"
    if ranges[-1][1] == LAST:  # Python would build a table of all characters for such a range
        beside = "".join(f"\\U{low:08x}-\\U{high:08x}" for low, high in complement(ranges))
        return f"[^{beside}]" if beside else "(?s:.)"
    if len(ranges) == 1 and ranges[0][0] == ranges[0][1]:
        return re.escape(chr(ranges[0][0]))
    return "[" + "".join(f"\\U{low:08x}-\\U{high:08x}" for low, high in ranges) + "]"
