"""Other names for the people and things in captured cases: `--pseudonyms`.

Invariants:
* One word has one other name, in every case of a command, as a value, a key, or inside of a text, and whatever its
  case; so what was equal stays equal, and a part of another stays that.
* The names of facts, arguments and fields stay; a key is another only where it tells one record from others.
* The shape stays: length, kind of characters, `#W` before a number, an address as one of `example.com`.
* Words of the packs' and tools' own constants stay, and so do numbers, dates and times.
* A name does not depend on what it stands for, only on its shape and on how many came before it.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from ledgercli import cel
from ledgercli.documents import Document
from ledgercli.paths import Path
from ledgercli.why.situations import leaves

_WORD: Final = re.compile(r"[^\W_]+")
_EMAIL: Final = re.compile(r"[^\W_][\w.+-]*@[\w-]+(?:\.[\w-]+)+")
_TIME: Final = re.compile(
    r"\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}:\d{2})?)?|\d{2}:\d{2}(?::\d{2})?"
)
_PREFIX: Final = re.compile(r"[A-Za-z]{1,3}(?=\d+$)")
_QUOTED: Final = re.compile(r"\"([^\"\\]*)\"|'([^'\\]*)'")
_SPACE: Final = re.compile(r"\s")
_FIELD: Final = re.compile(r"\.([A-Za-z_]\w*)")
_KEY: Final = re.compile(r"[A-Za-z][A-Za-z_]*")
_VOWELS: Final = "aeiou"
_CONSONANTS: Final = "bdfgklmnprstvz"
_HAN: Final = "甲乙丙丁戊己庚辛壬癸子丑寅卯辰巳午未申酉戌亥"
_PARTS: Final = ("state", "history", "propose")
_NAMED: Final = 2  # `state` and a part of it: below stand names of facts
_TOOL: Final = 3  # `history`, a number, `tool`
_SHORT: Final = 2  # digits: a number that is that short tells nobody apart, but for a part of an id
_TRIES: Final = 1000


class Pseudonyms:
    """The other names.

    Arguments:
        documents: the packs and the toolset, whose constants stay.
        records: names of facts that are records by id.

    """

    def __init__(self, documents: Iterable[Document], records: Iterable[str] = ()) -> None:
        self._records = frozenset(records)
        self._constants: set[str] = set()
        self._texts: set[str] = set()
        for document in documents:
            for text in _constants(document.data):
                self._texts.add(text)
                self._constants.update(word.casefold() for word in _WORD.findall(text))
        self._names: dict[str, str] = {}
        self._taken: set[str] = set()
        self._of_ids: set[str] = set()  # words of texts without a space

    def words(self, case: Mapping[str, Any]) -> list[str]:
        """Return the words of a case that have another name, each once, in order."""
        return list(dict.fromkeys(word for _, text in self._told(case) for word in self._in(text)))

    def renamed(self, case: Mapping[str, Any], kept: frozenset[str] = frozenset()) -> dict[str, Any]:
        """Return a case under other names; words in `kept` stay."""
        return self._mapped(case, lambda _place, text: self._text(text, kept))

    def untouched(self, case: Mapping[str, Any], kept: frozenset[str]) -> list[str]:
        """Return where the words stand that have stayed."""
        found = (cel.path_text(place) for place, text in self._told(case) if kept & set(self._in(text)))
        return list(dict.fromkeys(found))

    # ---- where names stand

    def _told(self, case: Mapping[str, Any]) -> list[tuple[Path, str]]:
        told: list[tuple[Path, str]] = []

        def tell(place: Path, text: str) -> str:
            told.append((place, text))
            return text

        self._mapped(case, tell)
        return told

    def _mapped(self, case: Mapping[str, Any], text: Callable[[Path, str], str]) -> dict[str, Any]:
        """Return a case in which every text that may be a name is another."""
        values = frozenset(_values({key: case[key] for key in _PARTS if key in case}))
        ids = (text for text in values if not text.isdecimal() and not _SPACE.search(text))
        self._of_ids.update(word.casefold() for text in ids for word in _WORD.findall(text))
        made = dict(case)
        for key in _PARTS:
            if key in case:
                made[key] = self._below(case[key], (key,), values, text)
        return made

    def _below(self, value: Any, place: Path, values: frozenset[str], text: Callable[[Path, str], str]) -> Any:
        if isinstance(value, Mapping):
            made = {}
            for key, item in value.items():
                inside = (*place, key)
                if inside[-1] == "tool" and place[0] != "state" and len(inside) <= _TOOL:
                    made[key] = item
                    continue
                other = text(inside, key) if self._tells_apart(place, key, values) else key
                made[other] = self._below(item, inside, values, text)
            return made
        if isinstance(value, list):
            return [self._below(item, (*place, number), values, text) for number, item in enumerate(value)]
        return text(place, value) if isinstance(value, str) else value

    def _tells_apart(self, place: Path, key: str, values: frozenset[str]) -> bool:
        """Whether a key tells a record from others, and is not the name of a fact, an argument or a field."""
        if place[0] == "state":
            if len(place) <= _NAMED:
                return False
            if len(place) == _NAMED + 1 and place[-1] in self._records:
                return True
        elif "args" not in place[:-1] and "data" not in place:
            return False
        return key in values or not (_KEY.fullmatch(key) and key == key.casefold())

    # ---- one text

    def _text(self, text: str, kept: frozenset[str]) -> str:
        if text in self._texts:
            return text
        made, behind = [], 0
        for start, end, other in self._parts(text, kept):
            made += [text[behind:start], other]
            behind = end
        return "".join([*made, text[behind:]])

    def _in(self, text: str) -> Iterator[str]:
        if text not in self._texts:
            for match in _words_of(text):
                if self._is_personal(match[0]):
                    yield match[0].casefold()

    def _parts(self, text: str, kept: frozenset[str]) -> Iterator[tuple[int, int, str]]:
        domains = [(text.index("@", one.start()) + 1, one.end()) for one in _EMAIL.finditer(text)]
        replaced = set()
        for match in _words_of(text):
            domain = next((one for one in domains if one[0] <= match.start() < one[1]), None)
            word = match[0]
            if domain is not None:
                whole = {part.casefold() for part in _WORD.findall(text[domain[0] : domain[1]])}
                if domain not in replaced and not whole & kept:
                    replaced.add(domain)
                    yield *domain, "example.com"
            elif self._is_personal(word) and word.casefold() not in kept:
                yield match.start(), match.end(), self._name(word)

    def _is_personal(self, word: str) -> bool:
        if word.casefold() in self._constants:
            return False
        return word in self._of_ids or not word.isdecimal() or len(word) > _SHORT

    def _name(self, word: str) -> str:
        key = word.casefold()
        if key not in self._names:
            self._names[key] = self._invented(key)
        made = self._names[key]
        if word.isupper() and len(word) > 1:
            return made.upper()
        return (
            "".join(new.upper() if old.isupper() else new for old, new in zip(word, made, strict=False))
            if len(made) == len(word)
            else made
        )

    def _invented(self, word: str) -> str:
        for attempt in range(_TRIES):
            made = _alike(word, random.Random(f"{len(self._names)} {attempt}"))  # noqa: S311 - no secret
            if made not in self._taken and made not in self._constants and made != word:
                break
        self._taken.add(made)
        return made


def _alike(word: str, chance: random.Random) -> str:
    """Return a word of the same shape, which can be said aloud."""
    prefix = _PREFIX.match(word)
    kept = prefix[0] if prefix else ""
    made, vowel = [], chance.random() < 0.5
    for one in word[len(kept) :]:
        if one.isdecimal():
            made.append(chance.choice("0123456789"))
        elif "\u3400" <= one <= "\u9fff":
            made.append(chance.choice(_HAN))
        else:
            made.append(chance.choice(_VOWELS if vowel else _CONSONANTS))
            vowel = not vowel
    return kept + "".join(made)


def _words_of(text: str) -> Iterator[re.Match[str]]:
    """Yield the words of a text that are not those of a date or time."""
    times = [match.span() for match in _TIME.finditer(text)]
    for match in _WORD.finditer(text):
        if not any(start <= match.start() < end for start, end in times):
            yield match


def _values(value: Any) -> Iterator[str]:
    """Yield the texts of a value that are no keys."""
    for _, leaf in leaves(value):
        if isinstance(leaf, str):
            yield leaf


def _constants(value: Any) -> Iterator[str]:
    """Yield what a file names: single words, and what stands quoted in its expressions."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield str(key)
            yield from _constants(item)
    elif isinstance(value, list):
        for item in value:
            yield from _constants(item)
    elif isinstance(value, str):
        if not _SPACE.search(value):
            yield str(value)
        yield from _FIELD.findall(value)
        for double, single in _QUOTED.findall(value):
            if double or single:
                yield double or single
