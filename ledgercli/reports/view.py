"""A decision view and a prompt, as they are: text, JSON, Markdown, with about how many tokens each part has.

Invariants:
* What a model gets is written as it is: not one character is other, but on a terminal, where what cannot be seen or
  encoded is shown as an escape.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from ledgercli.reports.markdown import text
from ledgercli.reports.screen import Screen
from ledgercli.summariser import View, tokens

VIEW: Final = "view/1"


def write_text(screen: Screen, view: View) -> None:
    """Write a view."""
    for line in view.text().split("\n"):
        screen.line(screen.safe(line))


def write_markdown(screen: Screen, where: str, view: View) -> None:
    """Write a view for a comment."""
    screen.line(f"### {text(where)}")
    screen.line()
    screen.line("<pre>")
    for line in view.text().split("\n"):
        screen.line(text(line) if line else "")
    screen.line("</pre>")


def to_json(ledger: str, step: int, view: View) -> dict[str, Any]:
    """Return a view with the tokens of its parts."""
    parts = {name: part for name, part in view.parts().items() if part}
    return {
        "schema": VIEW,
        "ledger": ledger,
        "step": step,
        "tokens": view.tokens,
        "exact": False,
        "parts": {name: {"tokens": tokens(part), "text": part} for name, part in parts.items()},
        "text": view.text(),
    }


def counts(parts: Mapping[str, str], count: Callable[[str], int]) -> dict[str, int]:
    """Return the tokens of each part that is there."""
    return {name: count(part) for name, part in parts.items() if part}
