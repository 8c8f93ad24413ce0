"""Counts in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ledgercli.tally import Tally

_RAN: Final[Mapping[str, str]] = {"ok": "ran", "denied": "denied", "error": "failed"}


def tally_text(tally: Tally) -> str:
    """Return `2 steps: 2 ran, 0 denied, 0 failed`, other outcomes where there are any."""
    told = [f"{tally.outcomes[outcome]:,} {word}" for outcome, word in _RAN.items()]
    told += [f"{count:,} {word}" for word, count in sorted(tally.outcomes.items()) if word not in _RAN]
    if tally.shadowed:
        told.append(f"{tally.shadowed:,} shadowed")
    return f"{counted(tally.steps, 'step')}: {', '.join(told)}"


def counted(number: int, one: str, many: str | None = None) -> str:
    """Return a number with its noun: `1 step`, `2 steps`, `2 policies`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"
