"""Finds runs and steps in ledgers: what `ledger list` prints.

Invariants:
* Each ledger is read once, line by line; no pack is compiled and nothing is judged.
* What is said of a run holds at its end: its facts are those at the end, also where a step is looked for.
* A ledger counts whole or not at all: of one that is damaged nothing is listed, and `damaged` names it.
* Until a ledger ends, no more of it is kept than the steps that may still match.
* An `intent` without an outcome is a step whose outcome is `unknown`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from ledgercli import cel
from ledgercli.errors import LedgerCliError, LedgerFormatError
from ledgercli.story import Story, follow, status_of
from ledgercli.where import Where

Values: TypeAlias = dict[str, Any]  # a run or a step under the names of the policy language

_FOUND: Final = ("failed", "warned", "overridden", "shadowed")


@dataclass(frozen=True, slots=True)
class Run:
    """A run that matches.

    Arguments:
        ledger: the file, as it was typed or found.
        id: the run's own.
        at: when it was opened.
        status: how it ended; `unsealed` if its last line is no close.
        task: what was to be done.
        scenario: its name; None for a run that had none.
        packs: the names of the packs that judged.
        steps: how many there are.
        denied: how many of them were denied.
        rules: `pack/rule` of those that failed or warned, those that are only watched included.

    """

    ledger: str
    id: str
    at: str
    status: str
    task: str
    scenario: str | None
    packs: Sequence[str]
    steps: int
    denied: int
    rules: Sequence[str]

    def to_json(self) -> dict[str, Any]:
        """As it stands in the JSON report."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True)
class Step:
    """A step that matches.

    Arguments:
        ledger: the file, as it was typed or found.
        step: its number.
        at: the time on its line.
        action: the call, as it was proposed.
        effect: the verdict's; None for what is never judged.
        outcome: what came of it.
        rules: as those of a `Run`.
        result: what the tool returned; None if it has not run.
        error: why it was refused, or failed.

    """

    ledger: str
    step: int
    at: str
    action: Mapping[str, Any]
    effect: str | None
    outcome: str
    rules: Sequence[str]
    result: Mapping[str, Any] | None
    error: Any

    @classmethod
    def of(cls, ledger: str, line: Mapping[str, Any]) -> Step:
        """Return the step that a line tells."""
        verdict, result = line["verdict"], line.get("result")
        return cls(
            ledger,
            line["step"],
            line["at"],
            line["action"],
            verdict["effect"] if verdict else None,
            _outcome(line),
            rules_of(verdict),
            result,
            _error(verdict, result, line.get("outcome")),
        )

    def to_json(self) -> dict[str, Any]:
        """As it stands in the JSON report."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True)
class Damaged:
    """A ledger that cannot be read to its end, and why."""

    ledger: str
    error: str


class Search:
    """Looks through ledgers.

    Arguments:
        where: what matches.
        steps: whether steps are looked for, not runs.

    Its `read` is how many ledgers were looked at, `damaged` those of them that could not be read, `matched` how many
    runs or steps were found, `interrupted` whether Ctrl-C ended it.

    """

    def __init__(self, where: Where, *, steps: bool) -> None:
        self.read = self.matched = 0
        self.damaged: list[Damaged] = []
        self.interrupted = False
        self._where = where
        self._steps = steps
        self._seen: dict[str, set[str]] = {"tool": set(), "rule": set()}

    def look(self, files: Iterable[str]) -> Iterator[Run | Step]:
        """Yield what matches in each of the files, in order; Ctrl-C ends it."""
        try:
            for file in files:
                found = self._one(file)
                self.read += 1
                self.matched += len(found)
                yield from found
        except KeyboardInterrupt:
            self.interrupted = True

    def strangers(self) -> Iterator[str]:
        """Yield what the question names and no ledger has: why nothing may have matched."""
        for kind, names in self._where.names.items():
            seen = self._seen[kind]
            for name in dict.fromkeys(names):
                if name not in seen:
                    near = cel.nearest(name, seen)
                    there = f"; there is {' or '.join(near)}" if near else ""
                    yield f"no step calls {name}{there}" if kind == "tool" else f"no rule {name} failed{there}"

    def _one(self, file: str) -> Sequence[Run | Step]:
        try:
            return self._matches(file)
        except OSError as error:
            self.damaged.append(Damaged(file, f"{file} cannot be read: {(error.strerror or str(error)).lower()}"))
        except LedgerCliError as error:
            self.damaged.append(Damaged(file, error.message))
        return ()

    def _matches(self, file: str) -> Sequence[Run | Step]:
        reading, number = _Reading(file, self._where, steps=self._steps), 0
        try:
            for entry, story in follow(file):
                number = entry.line
                reading.see(entry.kind, entry.record, story)
            found = reading.found()
        except (KeyError, TypeError, AttributeError, ValueError, cel.EvalError) as error:
            raise LedgerFormatError(f"{file}:{number}: it is not what such a line says") from error
        self._seen["tool"] |= reading.tools
        self._seen["rule"].update(spelled(reading.rules))
        return found


class _Reading:
    """One ledger as it is read: what is known of its run, and the steps that may match."""

    def __init__(self, file: str, where: Where, *, steps: bool) -> None:
        self.tools: set[str] = set()
        self.rules: dict[str, None] = {}
        self._file, self._where, self._steps = file, where, steps
        self._story = Story()
        self._packs: dict[str, None] = {}
        self._scenario: str | None = None
        self._begun: dict[int, Mapping[str, Any]] = {}  # intents without an outcome
        self._kept: list[Mapping[str, Any]] = []
        self._matched = not where.asks_steps

    def see(self, kind: str, line: Mapping[str, Any], story: Story) -> None:
        """Take in a line, once the story has."""
        self._story = story
        if kind == "step":
            self._begun.pop(line["step"], None)
            self._step(line)
        elif kind == "intent":
            self._begun[line["step"]] = line
        elif kind in ("open", "resume"):
            self._files(line["files"])

    def _files(self, files: Iterable[Mapping[str, Any]]) -> None:
        for file in files:
            if file["kind"] == "pack":
                self._packs[file["name"]] = None
            elif file["kind"] == "scenario":
                self._scenario = file["name"]

    def _step(self, line: Mapping[str, Any]) -> None:
        where = self._where
        self.tools.add(line["action"]["tool"])
        self.rules |= dict.fromkeys(rules_of(line["verdict"]))
        if where.step and not where.may_hold(_step_values(line, times=where.times)):
            return
        self._matched |= not where.both
        if self._steps or where.both:
            self._kept.append(line)

    def found(self) -> Sequence[Run | Step]:
        """Return what matches, now that no line follows."""
        for line in self._begun.values():
            self._step(line)
        run = self._run_values()
        if not self._where.holds_for_run(run):
            return ()
        matching = (line for line in self._kept if self._holds(run, line))
        if self._steps:
            return [Step.of(self._file, line) for line in matching]
        return [self._run(run)] if self._matched or any(True for _ in matching) else ()

    def _holds(self, run: Values, line: Mapping[str, Any]) -> bool:
        where = self._where
        return not where.both or where.holds_for_both(run, _step_values(line, times=where.times))

    def _run_values(self) -> Values:
        """Return the run under the names of the policy language; what it has not is not there."""
        story, close = self._story, self._story.close or {}
        tree, opening = story.tree, story.opening
        maybe = {
            "answer": close.get("answer"),
            "error": close.get("error") or tree["error"],
            "scenario": self._scenario,
        }
        return {
            "at": cel.Timestamp.parse(opening["at"]),
            "constraints": tree["constraints"],
            "denied": story.denied,
            "facts": tree["facts"],
            "file": self._file,
            "flags": tree["flags"],
            "id": opening["run"],
            "packs": list(self._packs),
            "rules": list(dict.fromkeys(spelled(self.rules))),
            "status": status_of(story),
            "steps": story.steps,
            "task": tree["task"],
            **{name: value for name, value in maybe.items() if value is not None},
        }

    def _run(self, run: Values) -> Run:
        same = {name: run[name] for name in ("id", "status", "task", "packs", "steps", "denied")}
        return Run(self._file, at=self._story.opening["at"], scenario=self._scenario, rules=list(self.rules), **same)


def _step_values(line: Mapping[str, Any], *, times: bool) -> Values:
    """Return a step under the names of the policy language; what it has not is not there."""
    action, verdict, result = line["action"], line["verdict"], line.get("result")
    values: Values = {
        "args": action["args"],
        "outcome": _outcome(line),
        "rules": list(spelled(rules_of(verdict))),
        "step": line["step"],
        "tool": action["tool"],
    }
    if verdict:
        values["effect"] = verdict["effect"]
    if result is not None:
        values["result"] = result
    if (error := _error(verdict, result, line.get("outcome"))) is not None:
        values["error"] = error
    if times:
        values["at"] = cel.Timestamp.parse(line["at"])
    return values


def _outcome(line: Mapping[str, Any]) -> str:
    return str(line.get("outcome", "unknown"))


def _error(verdict: Any, result: Any, outcome: str | None) -> Any:
    """Why a step was refused, or failed."""
    if outcome in ("denied", "waiting"):
        return verdict.get("reason")
    return result.get("error") if result else None


def rules_of(verdict: Any) -> list[str]:
    """The rules that failed or warned, overridden and shadowed ones included."""
    if not verdict:
        return []
    return list(dict.fromkeys(found["rule"] for part in _FOUND for found in verdict.get(part, ())))


def spelled(rules: Iterable[str]) -> Iterator[str]:
    """Yield each rule as `pack/rule` and by its bare name, so that either is in the list."""
    for rule in rules:
        yield rule
        if "/" in rule:
            yield rule.rpartition("/")[2]
