"""The syntax of RE2's regular expressions, as far as a yes or no needs it.

Invariants:
* What RE2 refuses (lookaround, backreferences, possessive and atomic groups, stacked repetitions, counts over 1000) is
  a `PatternError` here.
* The tree has only sets of characters, positions, sequences, alternatives and repetitions: flags, classes, escapes,
  captures and laziness are resolved or dropped, since a yes or no does not depend on them.
* Parsing is bounded in length and nesting.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal

from ledgercli.cel.regex_sets import ANY, NEWLINE, PERL, POSIX, Ranges, complement, fold, union
from ledgercli.cel.types import EvalError

LENGTH: Final = 2000
_NESTING = 50
_COUNT = 1000
Place = Literal["text_start", "text_end", "line_start", "line_end", "boundary", "no_boundary"]


class PatternError(EvalError):
    """A text that is no regular expression of RE2."""


class NeedsRe2Error(EvalError):
    """A pattern that Python's `re` may not run."""


@dataclass(frozen=True, slots=True)
class Chars:
    """One character out of a set."""

    ranges: Ranges


@dataclass(frozen=True, slots=True)
class At:
    """A position, which takes no character."""

    place: Place


@dataclass(frozen=True, slots=True)
class Sequence:
    """One item after another; none at all is the empty pattern."""

    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """One of several options."""

    options: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """An item at least `least` and at most `most` times; without bound where `most` is None."""

    item: Node
    least: int
    most: int | None


Node = Chars | At | Sequence | Choice | Repeat

_SIMPLE = {"a": "\a", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_PLACES: Final[dict[str, Place]] = {"A": "text_start", "z": "text_end", "b": "boundary", "B": "no_boundary"}
_BOUNDS = re.compile(r"\{(\d{1,9})(,(\d{0,9}))?\}", re.ASCII)
_GROUP_NAME = re.compile(r"\?P?<(\w+)>", re.ASCII)
_FLAGS = re.compile(r"\?([imsU]*)(?:-([imsU]+))?([:)])", re.ASCII)
_POSIX_CLASS = re.compile(r"\[:(\^?)(\w+):\]", re.ASCII)
_HEX = re.compile(r"x(?:([0-9A-Fa-f]{2})|\{([0-9A-Fa-f]{1,8})\})", re.ASCII)
_OCTAL = re.compile(r"0[0-7]{0,2}|[1-7][0-7]{1,2}", re.ASCII)
_REFUSED = {
    "?=": "lookahead (?=…)",
    "?!": "negative lookahead (?!…)",
    "?<=": "lookbehind (?<=…)",
    "?<!": "negative lookbehind (?<!…)",
    "?>": "atomic groups (?>…)",
    "?P=": "backreferences (?P=…)",
    "?(": "conditional groups (?(…)…)",
    "?#": "comments (?#…)",
}


def parse(pattern: str) -> Node:
    """The tree of `pattern`."""
    if len(pattern) > LENGTH:
        raise PatternError(f"a regular expression may have {LENGTH} characters, and this has {len(pattern)}")
    parser = _Parser(pattern)
    node = parser.choice(frozenset(), 0)
    if parser.at < len(pattern):
        raise parser.error("unexpected )")
    return node


class _Parser:
    """A recursive descent over one pattern; `at` is the next character."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.at = 0

    def error(self, message: str) -> PatternError:
        """The error at the present position."""
        return PatternError(f"regular expression {_short(self.pattern)}: {message} (at character {self.at + 1})")

    def choice(self, flags: frozenset[str], depth: int) -> Node:
        """Options between `|`, up to the end or a closing parenthesis; flags may change on the way."""
        if depth > _NESTING:
            raise self.error(f"groups nest deeper than {_NESTING}")
        options: list[Node] = []
        items: list[Node] = []
        while self.at < len(self.pattern) and self.pattern[self.at] != ")":
            if self.pattern[self.at] == "|":
                self.at += 1
                options.append(_sequence(items))
                items = []
            elif new_flags := self.flag_change(flags):
                flags = new_flags[0]
            else:
                items += self.repeated(flags, depth)
        options.append(_sequence(items))
        return options[0] if len(options) == 1 else Choice(tuple(options))

    def flag_change(self, flags: frozenset[str]) -> tuple[frozenset[str]] | None:
        """The flags after `(?flags)`, if that stands here."""
        match = _FLAGS.match(self.pattern, self.at + 1) if self.pattern[self.at] == "(" else None
        if match is None or match[3] == ":" or not (match[1] or match[2]):
            return None
        self.at = match.end()
        return ((flags | set(match[1])) - set(match[2] or ""),)

    def repeated(self, flags: frozenset[str], depth: int) -> list[Node]:
        """One atom and its repetition; a quoted text gives several."""
        quoted = self.pattern.startswith("\\Q", self.at)
        atoms = self.quoted(flags) if quoted else [self.atom(flags, depth)]
        bounds = self.bounds()
        if bounds is None or not atoms:
            return atoms
        if self.pattern.startswith("?", self.at):
            self.at += 1
        before = self.at
        if self.bounds() is not None:
            self.at = before
            raise self.error("a repetition of a repetition: put the first in parentheses")
        node = Repeat(atoms[-1], *bounds)
        if _copies(node) > _COUNT:
            raise self.error(f"repetitions multiply to more than {_COUNT}")
        return [*atoms[:-1], node]

    def bounds(self) -> tuple[int, int | None] | None:
        """The counts of a repetition, if one stands here; a `{` that is none is a character."""
        simple = {"*": (0, None), "+": (1, None), "?": (0, 1)}.get(self.pattern[self.at : self.at + 1])
        if simple:
            self.at += 1
            return simple
        match = _BOUNDS.match(self.pattern, self.at)
        if match is None:
            return None
        least = int(match[1])
        most = least if match[2] is None else int(match[3]) if match[3] else None
        if least > _COUNT or (most is not None and (most > _COUNT or most < least)):
            raise self.error(f"bad repetition {match[0]}: counts go up to {_COUNT}, the lower first")
        self.at = match.end()
        return least, most

    def atom(self, flags: frozenset[str], depth: int) -> Node:
        """A group, class, escape, position or character."""
        character = self.pattern[self.at]
        if character in "*+?" or _BOUNDS.match(self.pattern, self.at):
            raise self.error(f"nothing to repeat before {character}")
        if character == "(":
            return self.group(flags, depth)
        if character == "[":
            return Chars(self.character_class(flags))
        if character == "\\":
            return self.escape(flags)
        self.at += 1
        if character == ".":
            return Chars(ANY if "s" in flags else complement(NEWLINE))
        if character == "^":
            return At("line_start" if "m" in flags else "text_start")
        if character == "$":
            return At("line_end" if "m" in flags else "text_end")
        return self.chars(((ord(character), ord(character)),), flags)

    def chars(self, ranges: Ranges, flags: frozenset[str]) -> Chars:
        """A set with its case variants, where case does not matter."""
        return Chars(fold(ranges) if "i" in flags else ranges)

    def group(self, flags: frozenset[str], depth: int) -> Node:
        """`(…)`, `(?:…)`, `(?P<name>…)`, `(?flags:…)`."""
        start = self.at
        self.at += 1
        if match := _GROUP_NAME.match(self.pattern, self.at):
            self.at = match.end()
        elif match := _FLAGS.match(self.pattern, self.at):
            if match[3] == ")":
                raise self.error("empty flags (?)")
            flags = (flags | set(match[1])) - set(match[2] or "")
            self.at = match.end()
        elif self.pattern.startswith("?", self.at):
            for sign, name in sorted(_REFUSED.items(), key=lambda item: -len(item[0])):
                if self.pattern.startswith(sign, self.at):
                    raise self.error(f"RE2 has no {name}; matches() takes RE2's syntax")
            raise self.error("unknown kind of group (?")
        node = self.choice(flags, depth + 1)
        if self.at >= len(self.pattern):
            self.at = start
            raise self.error("missing ) for this (")
        self.at += 1
        return node

    def quoted(self, flags: frozenset[str]) -> list[Node]:
        r"""The characters between `\Q` and `\E` (or the end)."""
        text, _, _ = self.pattern[self.at + 2 :].partition("\\E")
        self.at = min(len(self.pattern), self.at + 4 + len(text))
        return [self.chars(((ord(character), ord(character)),), flags) for character in text]

    def escape(self, flags: frozenset[str]) -> Node:
        """What stands behind a backslash, outside a class."""
        letter = self.pattern[self.at + 1 : self.at + 2]
        if letter in _PLACES and letter:
            self.at += 2
            return At(_PLACES[letter])
        known = self.named_set(flags)
        if known is not None:
            return Chars(known)
        code = self.escaped_character()
        return self.chars(((code, code),), flags)

    def named_set(self, flags: frozenset[str]) -> Ranges | None:
        r"""The set of `\d`, `\S`, …, if one stands here."""
        letter = self.pattern[self.at + 1 : self.at + 2]
        if letter in {"p", "P"}:
            raise NeedsRe2Error(f"regular expression {_short(self.pattern)}: Unicode classes such as \\pL")
        known = PERL.get(letter.lower())
        if known is None:
            return None
        self.at += 2
        known = self.chars(known, flags).ranges  # before it is turned round, so that \W leaves out what \w takes
        return known if letter.islower() else complement(known)

    def escaped_character(self) -> int:
        """The character that an escape means."""
        rest = self.pattern[self.at + 1 : self.at + 13]
        letter = rest[:1]
        if not letter:
            raise self.error("a \\ at the end")
        if match := _HEX.match(rest):
            code = int(match[1] or match[2], 16)
        elif match := _OCTAL.match(rest):
            code = int(match[0], 8)
        elif letter in _SIMPLE or not (letter.isalnum() or letter == "_" or ord(letter) > 127):
            code, match = ord(_SIMPLE.get(letter, letter)), None
        elif letter.isdigit():
            raise self.error("RE2 has no backreferences such as \\1")
        else:
            hint = " (the end of the text is \\z)" if letter == "Z" else ""
            raise self.error(f"unknown escape \\{letter}{hint}")
        if code > ANY[0][1]:
            raise self.error("no such character")
        self.at += 1 + (match.end() if match else 1)
        return code

    def character_class(self, flags: frozenset[str]) -> Ranges:
        """`[…]` or `[^…]`."""
        start = self.at
        self.at += 1
        negated = self.pattern.startswith("^", self.at)
        self.at += negated
        parts: list[Ranges] = []
        first = True
        while first or not self.pattern.startswith("]", self.at):
            if self.at >= len(self.pattern):
                self.at = start
                raise self.error("missing ] for this [")
            parts.append(self.class_item(flags))
            first = False
        self.at += 1
        ranges = self.chars(union(*parts), flags).ranges
        return complement(ranges) if negated else ranges

    def class_item(self, flags: frozenset[str]) -> Ranges:
        """A named class, a range or a character inside brackets."""
        if match := _POSIX_CLASS.match(self.pattern, self.at):
            if match[2] not in POSIX:
                raise self.error(f"unknown class {match[0]}")
            self.at = match.end()
            known = self.chars(POSIX[match[2]], flags).ranges
            return complement(known) if match[1] else known
        if self.pattern[self.at] == "\\":
            named = self.named_set(flags)
            if named is not None:
                return named
        low = high = self.class_character()
        if self.pattern.startswith("-", self.at) and not self.pattern.startswith("-]", self.at):
            self.at += 1
            high = self.class_character()
        if high < low:
            raise self.error("a range that runs backwards")
        return ((low, high),)

    def class_character(self) -> int:
        """One character inside brackets."""
        if self.at >= len(self.pattern):
            raise self.error("missing ]")
        if self.pattern[self.at] == "\\":
            return self.escaped_character()
        self.at += 1
        return ord(self.pattern[self.at - 1])


def _sequence(items: list[Node]) -> Node:
    """The items one after another, with sequences inside opened."""
    flat: list[Node] = []
    for item in items:
        flat += item.items if isinstance(item, Sequence) else (item,)
    return flat[0] if len(flat) == 1 else Sequence(tuple(flat))


def _copies(node: Node) -> int:
    """How many copies of an innermost item the counts of nested repetitions make."""
    if isinstance(node, Repeat):
        return max(1, node.least, node.most or 0) * _copies(node.item)
    children = node.items if isinstance(node, Sequence) else node.options if isinstance(node, Choice) else ()
    return max(map(_copies, children), default=1)


def _short(pattern: str) -> str:
    return repr(pattern if len(pattern) <= 60 else pattern[:57] + "…")
