"""Steps as lines for people, made of what the ledger says of them.

Invariants:
* Nothing is shown that does not stand in the ledger's line; masked values stay masked, also with -vv.
* Short fixed words stand left; what somebody else wrote stands last, so that nothing to its right can slip.
* Values are cut at 80 cells (not with -vv), messages are wrapped, rules, paths and files stay whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from ledgercli.records import Effect, Line
from ledgercli.reports import values
from ledgercli.reports.cells import WIDTH, cells, pad, wrap
from ledgercli.reports.places import RulePlace
from ledgercli.reports.screen import Screen, Style

INDENT: Final = " " * 10
_LABEL: Final = 6  # cells of `rule  `, `unset `
_LEAST: Final = 12  # cells that a value has at least; else it goes on a line of its own
_STYLES: Final[Mapping[str, Style]] = {"deny": "red", "require_approval": "yellow", "warn": "yellow"}
_TOLD: Final = frozenset({"status", "error"})  # parts of a diff that `why`, `err` and the last lines say already
_WITHOUT_RESULT: Final[Mapping[str, str]] = {
    "waiting": "for an approval",
    "cancelled": "it was stopped before it had an effect",
    "unknown": "it was stopped, and may have had its effect",
}


@dataclass(frozen=True, slots=True)
class Steps:
    """How steps are shown.

    Arguments:
        screen: knows about colour.
        place: tells where a rule stands.
        verbosity: 1: also what was read; 2: whole values.
        indent: before each line about a step.

    """

    screen: Screen
    place: RulePlace
    verbosity: int = 0
    indent: str = INDENT

    # ---- whole lines of a ledger

    def step(self, line: Line) -> Iterator[str]:
        """Yield the lines of a `step`."""
        verdict, action = line["verdict"], line["action"]
        number = f"{line['step']:>3}"
        if verdict is None:
            said = (line["result"] or {}).get("data")
            yield f"{number} {pad(action['tool'], 5)} {self.shown(said, self.room(INDENT))}"
            return
        word = pad(verdict["effect"], 5)
        head = f"{number} {self.painted(verdict['effect'], word)} "
        yield head + self.call(action, f"{number} {word} ")
        yield from self.verdict(verdict)
        yield from self._outcome(line)
        yield from self.changes(line)

    def approval(self, line: Line) -> Iterator[str]:
        """Yield the lines of a person's answer."""
        answer = f"@{line['step']} by {line['by']}" + (f": {line['reason']}" if line.get("reason") else "")
        yield from self.message(line["answer"], answer)

    # ---- parts

    def call(self, action: Mapping[str, Any], before: str) -> str:
        """Return a call, cut where the line behind `before` is full."""
        tool = self.screen.safe(action["tool"])
        text = self.screen.cut(values.call(action["tool"], action["args"]), self.room(before))
        return self.screen.paint(tool, "bold") + text.removeprefix(tool) if text.startswith(f"{tool}(") else text

    def verdict(self, verdict: Mapping[str, Any]) -> Iterator[str]:
        """Yield what rules say: those that failed with place, why, hint and the way out, and what else there is."""
        answered = verdict.get("approval")
        if answered is not None:
            yes = verdict["effect"] != "deny"
            yield self.labelled("yes" if yes else "no", f"answered @{answered}")
        if answered is None or verdict["effect"] == "deny":
            for finding in (*verdict.get("failed", ()), *verdict.get("warned", ())):
                yield from self._finding(finding, verdict["effect"])
        yield from self._way_out(verdict)
        yield from self._watched("shadowed", verdict.get("shadowed", ()))
        if self.verbosity:
            yield from self._watched("overridden", verdict.get("overridden", ()))
            yield from self._reads(verdict)

    def message(self, label: str, text: str, style: Style | None = None) -> Iterator[str]:
        """Yield a message, wrapped."""
        room = WIDTH - cells(self.indent) - _LABEL
        first = True
        for part in str(text).rstrip("\n").split("\n"):
            for piece in wrap(self.screen.safe(part), room):
                yield self.labelled(label if first else "", piece, style)
                first = False

    def labelled(self, label: str, text: str, style: Style | None = None) -> str:
        """Return a line with a label before it."""
        return f"{self.indent}{self.screen.paint(label, style)}{' ' * (_LABEL - cells(label))}{text}".rstrip()

    def value(self, label: str, value: Any, name: str = "", style: Style | None = None) -> Iterator[str]:
        """Yield `label name = value`, the value cut, and on a line of its own where its name leaves no room."""
        before = f"{name} = " if name else ""
        room = self.room(self.indent + " " * _LABEL + before)
        if room is not None and room < _LEAST:
            yield self.labelled(label, before.rstrip(), style)
            label, before, room = "", "  ", WIDTH - cells(self.indent) - _LABEL - 2
        yield self.labelled(label, before + self.shown(value, room), style)

    def shown(self, value: Any, room: int | None) -> str:
        """Return a value as text of at most `room` cells."""
        return self.screen.cut(values.parts(value), room)

    def room(self, before: str) -> int | None:
        """Return how many cells are left behind a text; None: all is shown."""
        return None if self.verbosity > 1 else max(WIDTH - cells(before), _LEAST if before.isspace() else 0)

    def painted(self, effect: Effect, text: str) -> str:
        """Return a text in the colour of an effect."""
        return self.screen.paint(text, _STYLES.get(effect))

    # ---- what a step came to

    def _finding(self, finding: Mapping[str, Any], effect: Effect) -> Iterator[str]:
        yield self.labelled("rule", self.rule(finding["rule"]) + _differing(finding["effect"], effect))
        yield from self.message("why", finding["error"])
        if "hint" in finding:
            yield from self.message("hint", finding["hint"])

    def rule(self, name: str) -> str:
        """Return a rule's name and where it stands."""
        place = self.place(name) or "(built in)"
        return f"{self.screen.safe(name.rpartition('/')[2])}  {self.screen.paint(self.screen.safe(place), 'dim')}"

    def _way_out(self, verdict: Mapping[str, Any]) -> Iterator[str]:
        tools = verdict.get("establish")
        if tools and verdict["effect"] != "allow":
            what = "it" if len(verdict.get("missing", ())) < 2 else "them"
            yield from self.message("next", f"{' or '.join(tools)} can set {what}")

    def _watched(self, word: str, findings: Any) -> Iterator[str]:
        for finding in findings:
            effect = self.painted(finding["effect"], finding["effect"])
            yield f"{self.indent}{word}: {effect} by {self.rule(finding['rule'])}"
            yield from self.message("why", finding["error"])

    def _reads(self, verdict: Mapping[str, Any]) -> Iterator[str]:
        count = verdict["applied"]
        yield self.labelled("rules", f"{count} {'applies' if count == 1 else 'apply'}")
        for path, value in verdict["reads"].items():
            yield from self.value("read", value, self.screen.safe(path))

    def _outcome(self, line: Line) -> Iterator[str]:
        result, outcome = line["result"], line["outcome"]
        if outcome == "ok" and result.get("data") is None:
            yield self.labelled("ok", "")
        elif outcome == "ok":
            yield from self.value("ok", result.get("data"))
        elif outcome == "error":
            yield from self.value("err", result["error"] if "error" in result else result.get("data"), style="red")
        elif outcome in _WITHOUT_RESULT:
            yield from self.message("wait" if outcome == "waiting" else "lost", _WITHOUT_RESULT[outcome], "yellow")

    def changes(self, line: Line, *, everything: bool = False) -> Iterator[str]:
        """Yield what a line changes in the state."""
        for path, value in line.get("state_diff", {}).items():
            if everything or self.verbosity or path not in _TOLD:
                yield from self.value("set", value, f"state.{self.screen.safe(path)}")
        for path in line.get("state_unset", ()):
            yield self.labelled("unset", f"state.{self.screen.safe(path)}")
        for problem in line.get("problems", ()):
            yield from self.message("warn", problem, "yellow")


def _differing(effect: Effect, of_all: Effect) -> str:
    """Say a rule's own effect where another decided."""
    return "" if effect == of_all else f"  ({effect})"
