"""A case as YAML: in one line what fits there, indented what does not.

Invariants:
* Nothing is written that cannot be seen; what a reader might take for something else is quoted.
* Braces stand doubled where a text may have `{...}` in it, so that they mean themselves.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

_WIDTH: Final = 110
_PLAIN: Final = re.compile(r"[A-Za-z_](?:[\w/ .@-]*[\w/])?", re.ASCII)
_WORDS: Final = frozenset("true false null yes no on off y n".split())
_TEMPLATES: Final = frozenset({"name", "propose", "expect"})


def case_lines(case: Mapping[str, Any], lead: str) -> Iterator[str]:
    """Yield the lines of a case as an item of `tests:`; `lead` stands before its dash."""
    for number, (key, value) in enumerate(case.items()):
        first, *rest = _entry(key, value, len(lead) + 2, braces=key in _TEMPLATES)
        yield f"{lead}{'  ' if number else '- '}{first.lstrip()}"
        yield from rest


def case_in_line(case: Mapping[str, Any]) -> str:
    """Return a case in one line."""
    told = (f"{flow(key)}: {flow(value, braces=key in _TEMPLATES)}" for key, value in case.items())
    return "{" + ", ".join(told) + "}"


def entry_lines(key: str, value: Any) -> list[str]:
    """Return the lines of a key of a file with its value."""
    return _entry(key, value, 0, braces=False)


def flow(value: Any, *, braces: bool = False) -> str:
    """Return a value in one line; `braces`: they stand doubled in texts."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{flow(key)}: {flow(item, braces=braces)}" for key, item in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(flow(item, braces=braces) for item in value) + "]"
    if not isinstance(value, str):
        return json.dumps(value)
    if _PLAIN.fullmatch(value) and value.casefold() not in _WORDS:
        return value
    text = value.replace("{", "{{").replace("}", "}}") if braces else value
    shown = json.dumps(text, ensure_ascii=False)
    return "".join(one if one.isprintable() else f"\\U{ord(one):08X}" for one in shown)


def _entry(key: str, value: Any, indent: int, *, braces: bool) -> list[str]:
    lead = f"{' ' * indent}{flow(key)}:"
    told = flow(value, braces=braces)
    if len(lead) + len(told) < _WIDTH or not isinstance(value, (Mapping, list, tuple)) or not value:
        return [f"{lead} {told}"]
    return [lead, *_block(value, indent + 2, braces=braces)]


def _block(value: Any, indent: int, *, braces: bool) -> Iterator[str]:
    """Yield the lines of a map or list, one entry after the other."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _entry(key, item, indent, braces=braces)
        return
    for item in value:
        told = flow(item, braces=braces)
        if indent + len(told) < _WIDTH or not isinstance(item, (Mapping, list, tuple)) or not item:
            yield f"{' ' * indent}- {told}"
        else:
            first, *rest = _block(item, indent + 2, braces=braces)
            yield f"{' ' * indent}- {first.lstrip()}"
            yield from rest
