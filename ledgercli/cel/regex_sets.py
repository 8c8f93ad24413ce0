r"""Sets of characters, as sorted ranges of code points that neither touch nor overlap.

Invariants:
* `\d`, `\s`, `\w` and the POSIX classes are ASCII, as RE2 has them; `\s` is without the vertical tab.
* Folding adds the characters that differ by case alone, one for one.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Final

Ranges = tuple[tuple[int, int], ...]
LAST: Final = 0x10FFFF
_CASED = 0x1E944  # no character above has a case variant
_DOTLESS = 0x131  # upper-cases to I, but is not a case variant of i


def union(*sets: Iterable[tuple[int, int]]) -> Ranges:
    """All characters of the sets."""
    merged: list[tuple[int, int]] = []
    for low, high in sorted(pair for pairs in sets for pair in pairs):
        if merged and low <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(high, merged[-1][1]))
        else:
            merged.append((low, high))
    return tuple(merged)


def complement(ranges: Ranges) -> Ranges:
    """All characters that are not in the set."""
    result, start = [], 0
    for low, high in ranges:
        if start < low:
            result.append((start, low - 1))
        start = high + 1
    return (*result, (start, LAST)) if start <= LAST else tuple(result)


def overlap(left: Ranges, right: Ranges) -> bool:
    """Whether the sets have a character in common."""
    a = b = 0
    while a < len(left) and b < len(right):
        if left[a][1] < right[b][0]:
            a += 1
        elif right[b][1] < left[a][0]:
            b += 1
        else:
            return True
    return False


def of(characters: str) -> Ranges:
    """The set of the characters of a text."""
    return union((ord(character), ord(character)) for character in characters)


def fold(ranges: Ranges) -> Ranges:
    """The set with every case variant of its characters."""
    extra = [(code, code) for low, high in ranges for code in range(low, min(high, 127) + 1) for code in _ascii(code)]
    beyond = [(max(low, 128), min(high, _CASED)) for low, high in ranges if high > 127]
    if beyond:
        variants = _variants()
        for group in variants:
            if any(low <= code <= high for code in group for low, high in beyond):
                extra += ((code, code) for code in group)
    return union(ranges, extra)


def _ascii(code: int) -> tuple[int, ...]:
    """The case variants of an ASCII character: the letter's other case, the Kelvin sign, the long s."""
    letter = chr(code)
    if not letter.isalpha():
        return ()
    return (ord(letter.swapcase()), *{"k": (0x212A,), "s": (0x17F,)}.get(letter.lower(), ()))


@cache
def _variants() -> tuple[tuple[int, ...], ...]:
    """All groups of characters that differ by case alone and hold one that is not ASCII."""
    groups: dict[str, list[int]] = {}
    for code in range(_CASED):
        letter = chr(code)
        upper = letter.upper()
        folded = (upper if len(upper) == 1 else letter).lower()
        if code != _DOTLESS and len(folded) == 1:
            groups.setdefault(folded, []).append(code)
    return tuple(tuple(group) for group in groups.values() if len(group) > 1 and group[-1] > 127)


_DIGIT = ((48, 57),)
_UPPER = ((65, 90),)
_LOWER = ((97, 122),)
WORD: Final = union(_DIGIT, _UPPER, _LOWER, of("_"))
NEWLINE: Final = of("\n")
ANY: Final[Ranges] = ((0, LAST),)

PERL: Final = {"d": _DIGIT, "s": of("\t\n\f\r "), "w": WORD}
POSIX: Final = {
    "alnum": union(_DIGIT, _UPPER, _LOWER),
    "alpha": union(_UPPER, _LOWER),
    "ascii": ((0, 127),),
    "blank": of("\t "),
    "cntrl": ((0, 31), (127, 127)),
    "digit": _DIGIT,
    "graph": ((33, 126),),
    "lower": _LOWER,
    "print": ((32, 126),),
    "punct": ((33, 47), (58, 64), (91, 96), (123, 126)),
    "space": of("\t\n\v\f\r "),
    "upper": _UPPER,
    "word": WORD,
    "xdigit": union(_DIGIT, ((65, 70), (97, 102))),
}
