"""What a run came to, as data: counted from the lines of its ledger, line by line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from ledgercli.records import Line

_RAN: Final[Mapping[str, str]] = {"ok": "ran", "denied": "denied", "error": "failed"}


@dataclass(slots=True)
class Tally:
    """The counts of one run.

    Arguments:
        steps: how many steps were judged.
        outcomes: how many of each outcome.
        denials: how many by each rule that failed in a denied step.
        shadowed: steps in which a rule that is only watched failed (all rules are, in shadow mode).
        watched: how many by each such rule.
        last: the last step's line.

    """

    steps: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    denials: Counter[str] = field(default_factory=Counter)
    shadowed: int = 0
    watched: Counter[str] = field(default_factory=Counter)
    last: Line | None = None

    def add(self, line: Line) -> None:
        """Count a `step`; what is never judged does not count."""
        self.last = line
        verdict = line["verdict"]
        if verdict is None:
            return
        self.steps += 1
        self.outcomes[line["outcome"]] += 1
        watched = [found["rule"] for found in verdict.get("shadowed", ()) if found["effect"] != "warn"]
        self.shadowed += bool(watched)
        self.watched.update(watched)
        if line["outcome"] == "denied":
            self.denials.update(finding["rule"] for finding in verdict.get("failed", ()))

    def text(self) -> str:
        """Return `2 steps: 2 ran, 0 denied, 0 failed`, other outcomes where there are any."""
        told = [f"{self.outcomes[outcome]:,} {word}" for outcome, word in _RAN.items()]
        told += [f"{count:,} {word}" for word, count in sorted(self.outcomes.items()) if word not in _RAN]
        if self.shadowed:
            told.append(f"{self.shadowed:,} shadowed")
        return f"{counted(self.steps, 'step')}: {', '.join(told)}"

    @property
    def halting(self) -> str | None:
        """The rule whose denial ended the run, if one did."""
        verdict: Mapping[str, Any] = (self.last or {}).get("verdict") or {}
        halting = [found["rule"] for found in verdict.get("failed", ()) if found.get("halt")]
        return halting[0] if verdict.get("halts") and halting else None

    def to_json(self) -> dict[str, Any]:
        """As it stands in the JSON report."""
        return {
            "steps": self.steps,
            "ran": self.outcomes["ok"],
            "denied": self.outcomes["denied"],
            "failed": self.outcomes["error"],
            "waiting": self.outcomes["waiting"],
            "cancelled": self.outcomes["cancelled"],
            "unknown": self.outcomes["unknown"],
            "shadowed": self.shadowed,
            "denied_by": dict(sorted(self.denials.items())),
            "shadowed_by": dict(sorted(self.watched.items())),
        }


def counted(number: int, one: str, many: str | None = None) -> str:
    """Return a number with its noun: `1 step`, `2 steps`, `2 policies`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"
