"""Names and values as words: a path as it is typed in a rule, a literal without its quotes where nothing else is meant.

Invariants:
* A path is one word, as long as its keys are paths, names or literals without spaces.
* A text stands bare only where it can be taken for nothing else: not for a number, a path, a name or a word of ours.
* All characters can be seen; what is too long for a sentence is not said.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Sequence
from typing import Any, Final

from ledgercli import cel

MOST: Final = 25  # words of a sentence
_BARE: Final = re.compile(r"[^\W_][\w-]*")
_NUMBER: Final = re.compile(r"[0-9_eE-]*")
_UNSEEN: Final = re.compile("[\x00-\x1f\x7f-\xa0\xad\u061c\u2000-\u200f\u2028-\u202f\u205f-\u206f\ufeff\ud800-\uf8ff]")
_OURS: Final = frozenset(
    "a action after all among an and any approval as asks at before begins below by call contains denied differs each "
    "either element empty ends entry equals every exactly false fewer for from granted has holds if in is it key known "
    "lacks last least less list lists many matches means minus missing more most neither never no none nor not now "
    "null of one only or other otherwise over plus result row say some state succeeded than that the these this times "
    "to true under unless warns when where which while with".split()
)
_LETTER: Final = re.compile(r"[A-Z]\d*")  # a letter that stands for a part
_LONGEST, _WORDS = 60, 6  # characters and words of a text that is shown whole
_UNITS: Final = (("hour", 3_600), ("minute", 60), ("second", 1))


class Unsayable(Exception):  # noqa: N818 - no error: the sentence falls back to the names of the fields
    """Plain words cannot say it exactly, or not briefly."""


def count(text: str) -> int:
    """Return how many words a text has."""
    return len(text.split())


def literal_words(value: Any, taken: Container[str] = ()) -> str:
    """Return a value in words.

    Arguments:
        value: what stands in the rule.
        taken: names that a bare text could be taken for.

    """
    if isinstance(value, str):
        return _text(value, taken)
    if isinstance(value, cel.Duration):
        return _span(value)
    if isinstance(value, cel.Timestamp):
        return str(value)
    if isinstance(value, (list, tuple)):
        return f"({', '.join(literal_words(item, taken) for item in value)})"
    if isinstance(value, dict):
        return f"({', '.join(f'{literal_words(item, taken)} as {key}' for key, item in value.items())})"
    return cel.literal(value)


def _text(value: str, taken: Container[str]) -> str:
    if len(value) > _LONGEST or count(value) > _WORDS:
        raise Unsayable
    bare = _BARE.fullmatch(value) and not _NUMBER.fullmatch(value) and value.lower() not in _OURS
    return value if bare and value not in taken and not _LETTER.fullmatch(value) and len(value) > 1 else quoted(value)


def quoted(value: str) -> str:
    """Return a text in quotes, with every character of it to be seen."""
    return _UNSEEN.sub(lambda match: f"\\u{ord(match[0]):04x}", cel.literal(value))


def _span(value: cel.Duration) -> str:
    seconds, rest = divmod(value.nanos, 10**9)
    if rest:
        return str(value)
    unit, size = next((unit, size) for unit, size in _UNITS if seconds % size == 0)
    number = seconds // size
    return f"{number:,} {unit}{'' if number == 1 else 's'}"


def step(key: Any) -> str:
    """Return one step of a path that is written out."""
    text = cel.path_text(("x", key))[1:]
    return _UNSEEN.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def listed(parts: Sequence[str], word: str) -> str:
    """Return `a`, `a and b`, `a, b and c`."""
    if len(parts) < 2:
        return "".join(parts)
    return f"{', '.join(parts[:-1])} {word} {parts[-1]}"


def chunks(values: Sequence[str], size: int) -> Iterator[str]:
    """Yield the values in lines of at most so many words."""
    line: list[str] = []
    for value in values:
        if line and count(" ".join([*line, value])) > size:
            yield ", ".join(line)
            line = []
        line.append(value)
    if line:
        yield ", ".join(line)
