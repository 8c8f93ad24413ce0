"""Where values come from: what was said and returned earlier in a run, step by step.

Invariants:
* A value stands somewhere exactly where `from_task`, `from_user` and `from_tool` say so: as a whole token, numbers by
  value. Empty values, null, true and false stand nowhere by themselves.
* The first place counts: the task, then what was known from the start, then step by step.
* Only the ledger's earlier lines are read. What a run took over from another has no step here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from ledgercli import cel
from ledgercli.history import History
from ledgercli.redaction import is_mask
from ledgercli.state import Origin
from ledgercli.toolset import USER, Toolset

Kind = Literal["task", "start", "user", "result", "given", "nowhere", "plain", "hidden"]
_EXECUTED: Final = frozenset({"ok", "error", "unknown"})


@dataclass(frozen=True)
class Place:
    """Where a value stands first.

    Arguments:
        kind: `task`; `start`, the facts known from the start; `user`, what a user said; `result` of a tool; `given`
            when the run was resumed; `nowhere`; `plain`, a value that nothing can be traced of (empty, yes or no);
            `hidden`, a masked one.
        tool: whose result.
        step: which step.

    """

    kind: Kind
    tool: str | None = None
    step: int | None = None

    @property
    def text(self) -> str:
        """Say it."""
        match self.kind:
            case "task":
                return "in the task"
            case "start":
                return "among the facts known from the start"
            case "user":
                return f"first said by the user @{self.step}"
            case "result":
                return f"first in a result of {self.tool} @{self.step}"
            case "given":
                return "given when the run was resumed"
            case "plain":
                return "empty, yes or no: not traced"
            case "hidden":
                return "masked: cannot tell"
        return "nowhere in task, user's words or results"

    def to_json(self) -> dict[str, Any]:
        """As data."""
        said: dict[str, Any] = {"kind": self.kind}
        if self.tool is not None:
            said["tool"] = self.tool
        if self.step is not None:
            said["step"] = self.step
        return said


@dataclass(frozen=True)
class Said:
    """Something that was said, as it is asked whether a value stands in it."""

    place: Place
    texts: History

    @classmethod
    def of(cls, place: Place, value: Any) -> Said:
        """Return a value as something that was said."""
        texts = History()
        texts.said(value)
        return cls(place, texts)


@dataclass(frozen=True)
class Call:
    """A call that ran, its defaults filled in."""

    step: int
    tool: str
    args: Mapping[str, Any]
    outcome: str
    data: Any


class Earlier:
    """What came before a step.

    Arguments:
        opening: the `open` line.
        lines: the lines behind it, up to the step.
        toolset: the tools.

    """

    def __init__(self, opening: Mapping[str, Any], lines: Iterable[Mapping[str, Any]], toolset: Toolset) -> None:
        self.toolset = toolset
        self.said = [
            Said.of(Place("task"), opening["state"]["task"]),
            Said.of(Place("start"), opening["state"]["facts"]),
        ]
        self.calls: list[Call] = []
        self.denied: list[tuple[int, str]] = []
        self._steps: dict[int, str] = {}
        for line in lines:
            if line["kind"] == "step":
                self._take(line)
            elif line["kind"] == "resume" and line.get("state_diff"):
                self.said.append(Said.of(Place("given"), list(line["state_diff"].values())))

    def _take(self, line: Mapping[str, Any]) -> None:
        step, action, result = line["step"], line["action"], line["result"]
        name = action["tool"]
        self._steps[step] = name
        tool = self.toolset.tools.get(name)
        if line["verdict"] is None:
            self.said.append(Said.of(Place("user", name, step), result["data"]))
            return
        if line["outcome"] == "denied":
            self.denied.append((step, name))
        if line["outcome"] not in _EXECUTED:
            return
        data = None if result is None else result.get("data")
        args = tool.filled(action["args"]) if tool else action["args"]
        self.calls.append(Call(step, name, args, line["outcome"], data))
        if line["outcome"] == "ok":
            kind: Kind = "user" if tool is not None and tool.asks_person else "result"
            self.said.append(Said.of(Place(kind, name, step), data))

    # ---- values

    def first(self, value: Any) -> Place:
        """Return where a value without parts stands first."""
        if is_mask(value):
            return Place("hidden")
        if value is None or isinstance(value, (bool, Mapping, list, tuple)) or value == "":
            return Place("plain")
        return next((said.place for said in self.said if said.texts.from_user(value)), Place("nowhere"))

    def by(self, origin: Origin | None) -> str | None:
        """Say who established a value."""
        if origin is None:
            return None
        if origin.tool == "task":
            return "from the start"
        who = "said by the user" if origin.tool == USER else f"by {origin.tool}"
        return f"{who} @{origin.step}" if origin.step in self._steps else f"{who}, before this ledger"


def parts(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the leaves of an argument, each with its name as it is typed behind `action.args.`."""
    if isinstance(value, Mapping) and value and not is_mask(value):
        for key, item in value.items():
            yield from parts(name + cel.path_text(("", key)), item)
    elif isinstance(value, (list, tuple)) and value:
        for number, item in enumerate(value):
            yield from parts(f"{name}[{number}]", item)
    else:
        yield name, value
