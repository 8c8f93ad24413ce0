"""Text to tokens, one at a time.

Invariants:
* Nothing is read beyond the token that was asked for, so an expression may stand inside any other text.
* Every literal is decoded here; a token of kind `literal` carries its value.
* Anything that is no token of CEL ends in a `CelSyntaxError` with the way CEL writes it, where that can be guessed.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any, NoReturn

from ledgercli.cel.syntax import CelSyntaxError, Problem, Source
from ledgercli.cel.values import INT_MAX, UINT_MAX, UInt


@dataclass(frozen=True, slots=True)
class Token:
    """`kind` is `name`, `quoted`, `literal`, `end`, or the operator itself."""

    kind: str
    start: int
    end: int
    value: Any = None


_SKIP = re.compile(r"(?:[ \t\r\n\f]+|//[^\n]*)*")
_NUMBER = re.compile(
    r"(?P<double>\d+\.\d+(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+|\.\d+(?:[eE][+-]?\d+)?)"
    r"|0[xX](?P<hex>[0-9a-fA-F]+)(?P<hexu>[uU]?)|(?P<int>\d+)(?P<intu>[uU]?)",
    re.ASCII,
)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_WORD = re.compile(r"\w+")
_QUOTED = re.compile(r"`([A-Za-z0-9_.\-/ ]+)`")
_STRING = re.compile(r"(?P<bytes>[bB]?)(?P<raw>[rR]?)(?P<quote>\"\"\"|'''|\"|')")
_OPERATOR = re.compile(r"&&|\|\||==|!=|<=|>=|[-+*/%!<>?:.,()\[\]{}]")
_ESCAPE = re.compile(
    r"\\(?:([abfnrtv\\?\"'`])|[xX]([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-3][0-7]{2}))"
)
_SIMPLE = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_KEYWORDS = {"true": True, "false": False, "null": None}

_FOREIGN = (  # what other languages write, and what CEL does
    ("===", "CEL compares with =="),
    ("!==", "CEL compares with !="),
    ("==~", "CEL writes x.matches('regex')"),
    ("=~", "CEL writes x.matches('regex')"),
    ("=>", "CEL writes xs.map(x, …) or xs.filter(x, …)"),
    (":=", "CEL has no assignments; cel.bind(x, value, …) names a value"),
    ("<>", "CEL writes !="),
    ("**", "CEL has no power operator"),
    ("??", "CEL writes has(x.y) ? x.y : z"),
    ("?.", "CEL writes has(x.y) ? x.y : z; optional types are not supported"),
    ("[?", "CEL writes has(x.y) ? x.y : z; optional types are not supported"),
    ("=", "CEL compares with =="),
    ("&", "CEL writes && for and"),
    ("|", "CEL writes || for or"),
    ("~", "CEL writes ! for not"),
    ("^", "CEL has no bit operators"),
    ("#", "CEL's comments begin with //"),
    (";", "an expression is one value; join conditions with &&"),
    ("$", "CEL writes names without $"),
    ("@", "CEL writes names without @"),
    ("\\", "a backslash belongs inside a text: '\\\\n'"),
    ("“", "write plain quotes: 'text'"),
    ("”", "write plain quotes: 'text'"),
    ("‘", "write plain quotes: 'text'"),
    ("’", "write plain quotes: 'text'"),
    ("\u00a0", "this is a no-break space; write a plain one"),
    ("`", "backquotes stand only around a field behind a dot, and hold letters, digits, spaces and _ . - /"),
)
_LEADING = ("===", "!==", "==~", "=~", "=>", ":=", "<>", "**", "??", "?.", "[?")


class Lexer:
    """Tokens of `source.text` from an offset on."""

    __slots__ = ("source", "text")

    def __init__(self, source: Source) -> None:
        self.source = source
        self.text = source.text

    def fail(self, message: str, start: int, end: int, hint: str | None = None, code: str = "syntax") -> NoReturn:
        """Raise the syntax error that stands at `start`."""
        raise CelSyntaxError(Problem(code, message, start, end, self.source, hint))

    def token(self, offset: int) -> Token:
        """The first token at or after `offset`."""
        match = _SKIP.match(self.text, offset)
        start = match.end() if match else offset
        if start == len(self.text):
            return Token("end", start, start)
        for read in (self._string, self._number, self._name, self._operator):
            token = read(start)
            if token is not None:
                return token
        return self._foreign(start)

    def _name(self, start: int) -> Token | None:
        match = _NAME.match(self.text, start)
        if match is None:
            quoted = _QUOTED.match(self.text, start)
            return Token("quoted", start, quoted.end(), quoted[1]) if quoted else None
        word = _WORD.match(self.text, start)
        if word is not None and word.end() > match.end():
            self._not_ascii(start, word.end())
        name = match[0]
        if name in _KEYWORDS:
            return Token("literal", start, match.end(), _KEYWORDS[name])
        return Token("in" if name == "in" else "name", start, match.end(), name)

    def _operator(self, start: int) -> Token | None:
        if self.text.startswith(_LEADING, start):
            return None
        match = _OPERATOR.match(self.text, start)
        return Token(match[0], start, match.end()) if match else None

    def _foreign(self, start: int) -> NoReturn:
        for text, hint in _FOREIGN:
            if self.text.startswith(text, start):
                self.fail(f"{text!r} is not CEL", start, start + len(text), hint, "foreign-syntax")
        word = _WORD.match(self.text, start)
        if word is not None:
            self._not_ascii(start, word.end())
        character = self.text[start]
        shown = repr(character) if character.isprintable() else f"the character U+{ord(character):04X}"
        self.fail(f"{shown} cannot stand in an expression", start, start + 1)

    def _not_ascii(self, start: int, end: int) -> NoReturn:
        word = self.text[start:end]
        hint = f'a text is written "{word}", a field of that name ["{word}"]'
        self.fail("a name has only the letters A-Z and a-z, digits and _", start, end, hint)

    # Numbers

    def _number(self, start: int) -> Token | None:
        match = _NUMBER.match(self.text, start)
        if match is None:
            return None
        end = match.end()
        word = _WORD.match(self.text, end)
        if word is not None:
            self.fail(f"{self.text[start : word.end()][:40]!r} is neither a number nor a name", start, word.end())
        if match["double"]:
            return Token("literal", start, end, self._double(match["double"], start, end))
        digits, base = (match["hex"], 16) if match["hex"] else (match["int"], 10)
        unsigned = bool(match["hexu"] or match["intu"])
        number = int(digits, base) if len(digits.lstrip("0")) <= 20 else UINT_MAX + 1
        if number > (UINT_MAX if unsigned else INT_MAX + 1):
            self._too_large(start, end, unsigned=unsigned)
        return Token("literal", start, end, UInt(number) if unsigned else number)

    def _too_large(self, start: int, end: int, *, unsigned: bool) -> NoReturn:
        kind, most = ("a uint", "18446744073709551615u") if unsigned else ("an int", "9223372036854775807")
        self.fail(f"the number is too large: {kind} is at most {most}", start, end, code="too-large")

    def _double(self, text: str, start: int, end: int) -> float:
        number = float(text)
        if math.isinf(number):
            self.fail("the number is too large for a double", start, end, code="too-large")
        return number

    # Texts

    def _string(self, start: int) -> Token | None:
        match = _STRING.match(self.text, start)
        if match is None:
            return None
        raw, quote = bool(match["raw"]), match["quote"]
        close = self._closing(start, match.end(), quote, raw=raw)
        body = self.text[match.end() : close]
        value = self._decode(body, match.end(), raw=raw, binary=bool(match["bytes"]))
        return Token("literal", start, close + len(quote), value)

    def _closing(self, start: int, offset: int, quote: str, *, raw: bool) -> int:
        """The offset of the quote that ends the text."""
        while True:
            if offset >= len(self.text):
                self.fail(f"the text that begins here has no closing {quote}", start, start + 1)
            if self.text.startswith(quote, offset):
                return offset
            if self.text[offset] in "\r\n" and len(quote) == 1:
                hint = "write \\n for a line break, or three quotes around the text"
                self.fail(f"the text has no closing {quote} on its line", start, offset, hint)
            offset += 1 if raw or self.text[offset] != "\\" else 2

    def _decode(self, body: str, offset: int, *, raw: bool, binary: bool) -> str | bytes:
        """The value of what stands between the quotes."""
        parts: list[str | bytes] = []
        position = 0
        while position < len(body):
            cut = body.find("\\", position) if not raw else -1
            cut = len(body) if cut < 0 else cut
            parts.append(self._encoded(body[position:cut], offset + position, binary=binary))
            if cut < len(body):
                value, cut = self._escape(body, cut, offset, binary=binary)
                parts.append(value)
            position = cut
        return b"".join(parts) if binary else "".join(parts)  # type: ignore[arg-type] # all are of the one kind

    def _encoded(self, text: str, offset: int, *, binary: bool) -> str | bytes:
        try:
            encoded = text.encode()
        except UnicodeEncodeError as problem:
            at = offset + problem.start
            self.fail("a lone surrogate is not a character", at, at + 1)
        return encoded if binary else text

    def _escape(self, body: str, position: int, offset: int, *, binary: bool) -> tuple[str | bytes, int]:
        match = _ESCAPE.match(body, position)
        start = offset + position
        if match is None:
            hint = "a backslash is written \\\\, or as it is in a raw text: r'\\d'"
            self.fail(f"there is no escape {body[position : position + 2]}", start, start + 2, hint)
        simple, byte, short, long, octal = match.groups()
        if simple:
            text = _SIMPLE.get(simple, simple)
            return (text.encode() if binary else text), match.end()
        if binary and (short or long):
            self.fail("\\u and \\U do not stand in bytes", start, offset + match.end(), "write the bytes: \\xHH")
        code = int(octal, 8) if octal else int(byte or short or long, 16)
        if 0xD800 <= code <= 0xDFFF or code > 0x10FFFF:
            self.fail(f"{match[0]} is not a Unicode character", start, offset + match.end())
        return (bytes([code]) if binary else chr(code)), match.end()
