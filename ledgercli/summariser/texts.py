r"""Values as text for a model: JSON in which nothing can begin or close a section.

Invariants:
* What tools, users and models said stands in JSON text on one line: no `<`, no line break, and no character that
  cannot be seen; each of them is written as `\u003c`.
* What is cut says how much is missing and where it stands whole.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

import orjson

from ledgercli import paths
from ledgercli.redaction import MASK, SHOWN

CHARACTERS: Final = 4  # that are counted as a token where nobody counts exactly

_UNSAFE: Final = re.compile(
    "[<\x00-\x1f\x7f-\xa0\xad\u034f\u061c\u115f\u1160\u1680\u17b4\u17b5\u180b-\u180f\u2000-\u200f\u2028-\u202f"
    "\u205f-\u206f\u2800\u3164\ud800-\uf8ff\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffc\ufffe\uffff\U00013430-\U0001345f"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U0010ffff]"
)
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
_MASKED: Final = re.compile(rf'{{"{MASK}":"hmac-sha256:[0-9a-f]*"}}')
_OPTIONS: Final = orjson.OPT_NON_STR_KEYS


def tokens(text: str) -> int:
    """Return about how many tokens a text has."""
    return -(-len(text) // CHARACTERS)


def inert(text: str) -> str:
    """Return a text whose every character may stand in a prompt."""
    return _UNSAFE.sub(_escaped, text)


def _escaped(match: re.Match[str]) -> str:
    return "\\u003c" if match[0] == "<" else json.dumps(match[0])[1:-1].replace("\x7f", "\\u007f")


def json_text(value: Any) -> str:
    """Return a value as JSON on one line; what is masked stands as `"[redacted]"`."""
    text = orjson.dumps(value, paths.plain, _OPTIONS).decode()
    return inert(_MASKED.sub(f'"{SHOWN}"', text) if MASK in text else text)


def name(text: str) -> str:
    """Return a name that a model may have made up: bare where it is one, else in quotes."""
    return text if _NAME.fullmatch(text) else json_text(text)


def path_text(path: paths.Path) -> str:
    """Return a path below the state, as rules write it but for `state.`."""
    return inert(paths.text(path))


def call(tool: str, args: Mapping[str, Any]) -> str:
    """Return a call: the tool, and its arguments as one JSON object."""
    return f"{name(tool)}({json_text(args)})"


def cut(text: str, room: int, where: str = "") -> str:
    """Return at most `room` characters of a text, with a pointer to where it stands whole."""
    if len(text) <= room:
        return text
    whole = f", whole at {where}" if where else ""
    tail = ""
    for _ in range(3):  # the number of characters changes the length of the text that tells it
        tail = f"...({len(text) - room + len(tail):,} more characters{whole})"
    if len(tail) < room:
        return text[: room - len(tail)] + tail
    return text[: max(room - 3, 0)] + "..."[: max(room, 0)]
