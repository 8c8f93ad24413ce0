"""A run for people: who set which fact, calls by tool, what asking a model took; counted from the ledger's lines.

Invariants:
* Light: no pack is compiled and nothing is judged.
* Of the steps nothing is kept but counts, so that whoever shows them shows them as they are read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ledgercli import cel, paths
from ledgercli.paths import ABSENT
from ledgercli.records import Line
from ledgercli.story import CHANGING, UNSEALED
from ledgercli.summariser.folds import Counts
from ledgercli.tally import Tally


class Fact(NamedTuple):
    """A value, and who set it.

    Arguments:
        path: where it stands below the state.
        value: what it is.
        by: the tool; `start` for what is known from the start; `rollback`, `resume` for those lines.
        step: the step; of another line, the one before it.

    """

    path: paths.Path
    value: Any
    by: str
    step: int


@dataclass(slots=True)
class Asked:
    """What asking one model took.

    Arguments:
        tokens: of prompts and replies; None where the server did not say.
        cost: in US dollars; None where no price is known.
        seconds: waiting for it.
        faults: replies that could not be used.

    """

    tokens: int | None = 0
    cost: float | None = 0.0
    seconds: float = 0.0
    faults: int = 0

    def add(self, other: Asked) -> None:
        """Add what more of it took."""
        self.tokens = None if self.tokens is None or other.tokens is None else self.tokens + other.tokens
        self.cost = None if self.cost is None or other.cost is None else self.cost + other.cost
        self.seconds += other.seconds
        self.faults += other.faults

    def to_json(self) -> dict[str, Any]:
        """As it stands in the JSON report."""
        return {"tokens": self.tokens, "cost": self.cost, "seconds": round(self.seconds, 3), "faults": self.faults}


@dataclass(slots=True)
class Recount:
    """What is known of a run after some of its lines.

    Arguments:
        ledger: the file.
        opening: its first line; empty before it.
        close: its last line if that is a `close`.
        tally: how its steps came out.
        calls: tool → outcome → number.
        steps: the number of the latest step.

    """

    ledger: str
    opening: Mapping[str, Any] = field(default_factory=dict)
    close: Mapping[str, Any] | None = None
    tally: Tally = field(default_factory=Tally)
    calls: Counts = field(default_factory=dict)
    steps: int = 0
    _at: str = ""
    _setters: dict[paths.Path, tuple[str, int]] = field(default_factory=dict)

    def see(self, line: Line) -> None:
        """Take in the next line."""
        kind = line["kind"]
        self._at = line["at"]
        self.tally.see(line)
        if kind == "open":
            self.opening = line
            self._setters = {("facts", name): ("start", 0) for name in line["state"]["facts"]}
        elif kind == "step":
            self.steps = max(self.steps, line["step"])
            if line["verdict"] is not None:
                of = self.calls.setdefault(line["action"]["tool"], {})
                of[line["outcome"]] = of.get(line["outcome"], 0) + 1
        if kind in CHANGING:
            by = line["action"]["tool"] if kind == "step" else kind
            for path in map(paths.parse, line.get("state_diff", ())):
                self._setters.pop(path, None)  # the latest stands last
                self._setters[path] = (by, line["step"] if kind == "step" else self.steps)
        if kind != "recovery":
            self.close = line if kind == "close" else None

    # ---- what is known

    @property
    def status(self) -> str:
        """How it ended; `unsealed` without a close."""
        return UNSEALED if self.close is None else str(self.close["status"])

    @property
    def seconds(self) -> float:
        """How long it took, by the times of its lines."""
        first, last = (cel.Timestamp.parse(at) for at in (self.opening["at"], self._at))
        return max((last.nanos - first.nanos) / 1e9, 0.0)

    def names(self, kind: str) -> list[str]:
        """Return the names of the files of a kind."""
        return [file["name"] for file in self.opening["files"] if file["kind"] == kind]

    def facts(self, tree: paths.Map) -> Iterator[Fact]:
        """Yield the facts as they are, in the order in which they were set; each part with who set it last.

        Arguments:
            tree: the state now.

        """
        below: dict[paths.Path, list[paths.Path]] = {}
        for path, (_, step) in self._setters.items():
            above = [path[:depth] for depth in range(2, len(path)) if path[:depth] in self._setters]
            for one in above:
                if self._setters[one][1] <= step:
                    below.setdefault(one, []).append(path[len(one) :])
        for path, (by, step) in self._setters.items():
            value = paths.get(tree, path)
            covered = any(self._setters.get(path[:depth], ("", -1))[1] > step for depth in range(2, len(path)))
            if path[0] != "facts" or value is ABSENT or covered:
                continue
            rest = _without(value, below.get(path, ()))
            if rest != {} or (value == {} and by != "start"):  # not records that nothing has filled
                yield Fact(path, rest, by, step)

    def asked(self) -> dict[str, Asked]:
        """Return what asking took, by model."""
        found: dict[str, Asked] = {}
        for said in self.tally.asked:
            tokens = [said["tokens"]["prompt"], said["tokens"]["completion"]]
            one = Asked(
                None if None in tokens else sum(tokens), said["cost"], said["seconds"], len(said.get("faults", ()))
            )
            found.setdefault(said["model"], Asked()).add(one)
        return found

    def to_json(self) -> dict[str, Any]:
        """As it stands in the JSON report, but for facts and steps."""
        close = self.close or {}
        scenario = self.names("scenario")
        return {
            "ledger": self.ledger,
            "run": self.opening["run"],
            "scenario": scenario[0] if scenario else None,
            "task": self.opening["state"]["task"],
            "packs": self.names("pack"),
            "engine": self.opening["engine"].get("model") or self.opening["engine"]["kind"],
            "mode": self.opening.get("mode", "enforce"),
            "status": self.status,
            "answer": close.get("answer"),
            "error": close.get("error"),
            "at": self.opening["at"],
            "seconds": round(self.seconds, 3),
            **self.tally.to_json(),
            "calls": self.calls,
            "asked": {model: asked.to_json() for model, asked in self.asked().items()},
        }


def _without(value: Any, parts: Sequence[paths.Path]) -> Any:
    """Return a value without parts of it that somebody else has set."""
    for part in parts:
        if paths.get(value, part) is not ABSENT:
            value = paths.drop(value, part)
    return value


def asked_of(runs: Sequence[Recount]) -> dict[str, Asked]:
    """Return what asking took in several runs, by model."""
    found: dict[str, Asked] = {}
    for model, asked in (entry for run in runs for entry in run.asked().items()):
        found.setdefault(model, Asked()).add(asked)
    return found


def calls_of(runs: Sequence[Recount]) -> Counts:
    """Return the calls of several runs, by tool and outcome."""
    found: Counts = {}
    for run in runs:
        for tool, of in run.calls.items():
            mine = found.setdefault(tool, {})
            for outcome, number in of.items():
                mine[outcome] = mine.get(outcome, 0) + number
    return found
