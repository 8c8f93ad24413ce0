"""Where a value was said before: whole words and whole numbers, found in what a task, a user or a tool said.

Invariants:
* Texts are taken apart only when the first question comes.
* A token counts whole: `12` does not stand in `#W123`, and `W1` not in `W12`; case does not count.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

_ALONE = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"  # Chinese and kana: no spaces, each sign is a token
_LETTER = rf"[^\W{_ALONE}]"
_WORD = re.compile(rf"{_LETTER}+|[{_ALONE}]")
_NUMBER = re.compile(rf"(?<!{_LETTER})(?<!\.)[-+]?(?:\d{{1,3}}(?:,\d{{3}})+|\d+)(?:\.\d+)?(?!{_LETTER}|\.\d)")
_JOINS = re.compile(_LETTER)


@dataclass(slots=True)
class Texts:
    """Whole tokens and numbers that were said in one place: the task, the user's answers, one tool's results."""

    said: list[Any] = field(default_factory=list)
    known: int = 0  # how many of them have been taken apart
    texts: list[str] = field(default_factory=list)
    places: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    numbers: set[float] = field(default_factory=set)

    def holds(self, value: Any) -> bool:
        """Whether every leaf of `value` stands here."""
        for said in self.said[self.known :]:
            for leaf in _leaves(said):
                self._read(leaf)
        self.known = len(self.said)
        leaves = list(_leaves(value))
        return bool(leaves) and all(self._leaf(leaf) for leaf in leaves)

    def _read(self, leaf: Any) -> None:
        if isinstance(leaf, bool) or leaf is None:
            return
        if isinstance(leaf, (int, float)):
            self.numbers.add(leaf)
            leaf = repr(leaf)
        text = str(leaf).casefold()
        self.texts.append(text)
        for word in _WORD.finditer(text):
            self.places.setdefault(word.group(), []).append((len(self.texts) - 1, word.start()))
        self.numbers.update(_number(number.group().replace(",", "")) for number in _NUMBER.finditer(text))

    def _leaf(self, leaf: Any) -> bool:
        if isinstance(leaf, bool) or leaf is None:
            return False
        if isinstance(leaf, (int, float)):
            return leaf in self.numbers
        text = str(leaf).strip().casefold()
        words = list(_WORD.finditer(text))
        if not words:
            return bool(text) and any(text in said for said in self.texts)
        rarest = min(words, key=lambda word: len(self.places.get(word.group(), ())))
        return any(
            self._at(text, self.texts[number], place - rarest.start())
            for number, place in self.places.get(rarest.group(), ())
        )

    @staticmethod
    def _at(text: str, said: str, start: int) -> bool:
        end = start + len(text)
        if start < 0 or said[start:end] != text:
            return False
        opens = start == 0 or not (_JOINS.match(text[0]) and _JOINS.match(said[start - 1]))
        closes = end == len(said) or not (_JOINS.match(text[-1]) and _JOINS.match(said[end]))
        return opens and closes


def _number(text: str) -> int | float:
    """The value of digits; whole numbers that a ledger can hold stay exact."""
    return float(text) if "." in text or len(text) > len(str(-(2**63))) else int(text)


def _leaves(value: Any) -> Iterator[Any]:
    """Yield the leaves of a JSON value; an empty map, list or text is a leaf that nothing grounds."""
    stack = [value]
    while stack:
        top = stack.pop()
        if isinstance(top, Mapping):
            inner: Iterable[Any] = top.values()
        elif isinstance(top, (list, tuple)):
            inner = top
        else:
            yield top
            continue
        before = len(stack)
        stack.extend(inner)
        if len(stack) == before:
            yield ""
