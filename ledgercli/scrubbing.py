"""Takes keys out of texts: what a server, a library or a model says may quote the key that it was asked with.

Invariants:
* No text from outside is written or shown before it went through here.
* A key is known by its value, wherever the environment holds one, and by how keys of the usual providers look.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from typing import Final

SHOWN: Final = "[key]"
_SHORTEST: Final = 6  # characters; a shorter value would be found in ordinary words
_NAMES: Final = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD|CREDENTIALS?)(_ID)?\Z")
_LOOKS: Final = re.compile(
    r"\b(?:sk|pk|rk|gsk|xai|hf|r8)[-_](?=[A-Za-z*_\-]*[0-9])[A-Za-z0-9*_\-]{10,}|\bAIza[A-Za-z0-9_\-]{20,}|\bAKIA[A-Z0-9]{12,}"
    r"|(?<=[Bb]earer )[A-Za-z0-9._~+/=\-]{6,}|\bey[A-Za-z0-9_\-]{10,}\.[A-Za-z0-9_\-]{10,}\.[A-Za-z0-9_\-]*"
)


def keys(*names: str | None) -> list[str]:
    """The values of the environment that are keys: of these variables, and of all that are named like one."""
    found = {os.environ.get(name, "") for name in (*names, *os.environ) if name and (name in names or _named(name))}
    return sorted((value for value in found if len(value) >= _SHORTEST), key=len, reverse=True)


def scrubbed(text: str, known: Iterable[str] = ()) -> str:
    """Return a text without keys: those that are known, and whatever looks like one."""
    for key in known:
        text = text.replace(key, SHOWN)
    return _LOOKS.sub(SHOWN, text)


def holds_key(text: str, known: Iterable[str]) -> bool:
    """Whether a text holds a key that is known."""
    return any(key in text for key in known)


def _named(name: str) -> bool:
    return _NAMES.search(name.upper()) is not None
