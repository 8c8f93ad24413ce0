"""What a run came to, as data: counted from the lines of its ledger, line by line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Self

from ledgercli.records import Line

_ASKED: Final = frozenset({"intent", "step", "summary", "close"})  # the lines that may say what asking a model took


@dataclass(frozen=True, slots=True)
class Usage:
    """What asking models took.

    Arguments:
        prompt: tokens of the prompts, as far as the server said.
        completion: tokens of the replies, likewise.
        cost: in US dollars; None if no price is known at all.
        unpriced: the models of which no price is known.

    """

    prompt: int
    completion: int
    cost: float | None
    unpriced: tuple[str, ...] = ()

    @property
    def tokens(self) -> int:
        """All of them."""
        return self.prompt + self.completion

    @classmethod
    def of(cls, asked: Iterable[Mapping[str, Any]]) -> Self | None:
        """Add up what lines say; None if no model was asked."""
        every = list(asked)
        costs = [one["cost"] for one in every if one["cost"] is not None]
        prompt, completion = (sum(one["tokens"][part] or 0 for one in every) for part in ("prompt", "completion"))
        unpriced = dict.fromkeys(str(one["model"]) for one in every if one["cost"] is None)
        return cls(prompt, completion, sum(costs) if costs else None, tuple(unpriced)) if every else None

    def to_json(self) -> dict[str, Any]:
        """As it stands in a JSON report."""
        tokens = {"prompt": self.prompt, "completion": self.completion}
        return {"tokens": tokens, "cost": self.cost, "unpriced": list(self.unpriced)}


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
        asked: what asking a model took, as lines say it.

    """

    steps: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    denials: Counter[str] = field(default_factory=Counter)
    shadowed: int = 0
    watched: Counter[str] = field(default_factory=Counter)
    last: Line | None = None
    asked: list[Mapping[str, Any]] = field(default_factory=list)

    def see(self, line: Line) -> None:
        """Count a line of any kind."""
        if line["kind"] in _ASKED and line.get("engine") is not None:
            self.asked.append(line["engine"])
        if line["kind"] == "step":
            self.add(line)

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
