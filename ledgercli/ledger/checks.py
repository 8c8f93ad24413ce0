"""What a line must be beside the lines before it: order, steps, approvals, diffs, files, close.

Invariants:
* A checker sees valid records in the order of the file, and keeps only what is still open (steps ahead of others,
  intents without outcome, steps that wait), never the lines.
* One cause is one problem: once lines are known to be missing or changed, nothing is said any more that would only
  follow from that (`uncertain`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final, Literal

from ledgercli import paths, records

Severity = Literal["error", "warning"]
Record = dict[str, Any]

REOPENING: Final = frozenset({"approval", "recovery"})  # the kinds with which a closed ledger may go on


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that is wrong with a ledger.

    Arguments:
        code: what kind of thing, as `validate --explain` takes it.
        message: what is wrong, in one line.
        line: where, from 1.
        column: where in the line, in characters from 1; None where it concerns the whole line.
        notes: more about it.
        severity: whether the ledger fails for it.
        cause: of a broken chain: `changed`, `removed`, `swapped`, `moved`, `duplicated` or `inserted`.

    """

    code: str
    message: str
    line: int
    column: int | None = None
    notes: tuple[str, ...] = ()
    severity: Severity = "error"
    cause: str | None = None


def order(kind: str, before: str | None, line: int) -> Iterator[Problem]:
    """Whether a line of this kind may follow one of kind `before` (None: it is the first)."""
    if before is None and kind != "open":
        yield Problem("order", f"the first line is {a(kind)}, not an open", line)
    elif before is not None and kind == "open":
        yield Problem("order", "a second open; a ledger has one, in its first line", line)
    elif before == "close" and kind not in REOPENING:
        yield Problem("order", f"{a(kind)} follows a close; only {' or '.join(sorted(REOPENING))} may", line)


def files(record: Record, line: int) -> Iterator[Problem]:
    """Whether each file's text in an `open` line has the digest beside it."""
    for file in record["files"]:
        if file.get("text") is not None and records.digest(file["text"].encode()) != file["digest"]:
            yield Problem("file", f"the text of {file['kind']} {file['path']} does not have the digest beside it", line)


def outcome(record: Record, line: int) -> Iterator[Problem]:
    """Whether outcome, verdict and result of a step fit together."""
    said, result, verdict = record["outcome"], record["result"], record["verdict"]
    if said in ("ok", "error"):
        if result is None:
            yield Problem("outcome", f"the outcome is {said}, and there is no result", line)
        elif result["success"] != (said == "ok"):
            yield Problem("outcome", f"the outcome is {said}, and the result says the opposite", line)
    elif said in ("denied", "waiting") and result is not None:
        yield Problem("outcome", f"the outcome is {said}, and there is a result", line)
    if verdict is None:
        if said != "ok":
            yield Problem("outcome", f"the outcome is {said}, and there is no verdict", line)
        return
    effect, runs = verdict["effect"], records.lets_run(verdict["effect"], verdict.get("approval"))
    fits = {"denied": not runs, "waiting": effect == "require_approval" and not runs}.get(said, runs)
    if not fits:
        yield Problem("outcome", f"the outcome is {said}, and the verdict {effect}", line)


@dataclass(slots=True)
class Steps:
    """Follows the numbers of steps, intents and approvals.

    Arguments:
        uncertain: whether lines are known to be missing or unreadable, so that gaps say nothing new.

    """

    uncertain: bool = False
    _done: int = 0  # every step up to here has its line
    _ahead: set[int] = field(default_factory=set)  # steps behind a gap that have theirs
    _intents: dict[int, tuple[int, Record]] = field(default_factory=dict)  # step -> line and action
    _waiting: set[int] = field(default_factory=set)
    _answers: dict[int, str] = field(default_factory=dict)  # approvals that no step has used

    @property
    def count(self) -> int:
        """How many steps there are, those without outcome included."""
        return self._done + len(self._ahead) + sum(not self._has(step) for step in self._intents)

    def see(self, record: Record, line: int) -> list[Problem]:
        """Take in one line."""
        take = {"intent": self._intent, "step": self._step, "approval": self._approval, "close": self._close}
        checker = take.get(record["kind"])
        found = list(checker(record, line)) if checker else []
        return [] if self.uncertain else found

    def unfinished(self) -> Iterator[tuple[int, int]]:
        """Yield each step with an intent and no outcome, and the intent's line."""
        for step, (line, _) in self._intents.items():
            yield step, line

    def _has(self, step: int) -> bool:
        return step <= self._done or step in self._ahead

    def _intent(self, record: Record, line: int) -> Iterator[Problem]:
        step = record["step"]
        if self._has(step) or step in self._intents:
            yield Problem("step", f"an intent of step {step}, which has a line already", line)
        else:
            self._intents[step] = line, record["action"]

    def _step(self, record: Record, line: int) -> Iterator[Problem]:
        step = record["step"]
        if self._has(step):
            yield Problem("step", f"step {step} has a line already", line)
            return
        self._ahead.add(step)
        while self._done + 1 in self._ahead:
            self._done += 1
            self._ahead.remove(self._done)
        meant = self._intents.pop(step, None)
        if meant and not paths.same(meant[1], record["action"]):
            yield Problem("step", f"step {step} is another call than its intent in line {meant[0]}", line)
        if record["outcome"] == "waiting":
            self._waiting.add(step)
        answered = (record["verdict"] or {}).get("approval")
        if answered is not None:
            yield from self._used(answered, record, line)

    def _used(self, answered: int, record: Record, line: int) -> Iterator[Problem]:
        answer = self._answers.pop(answered, None)
        if answer is None:
            yield Problem("approval", f"no unused approval answers step {answered}", line)
        elif (answer == "yes") != (record["verdict"]["effect"] == "require_approval"):
            yield Problem("approval", f"the answer on step {answered} was {answer}, the verdict says otherwise", line)

    def _approval(self, record: Record, line: int) -> Iterator[Problem]:
        step = record["step"]
        if step in self._waiting:
            self._waiting.remove(step)
            self._answers[step] = record["answer"]
        else:
            yield Problem("approval", f"step {step} does not wait for an approval", line)

    def _close(self, record: Record, line: int) -> Iterator[Problem]:
        if record["lines"] != line:
            yield Problem("close", f"close counts {record['lines']:,} lines, this is line {line:,}", line)
        if record["steps"] != self.count:
            yield Problem("close", f"close counts {record['steps']:,} steps, there are {self.count:,}", line)
        if self._ahead:
            yield Problem("step", f"step {self._done + 1} has no line, step {min(self._ahead)} has one", line)
        for step, started in self.unfinished():
            yield Problem("intent", f"step {step} has an intent in line {started} and no outcome", line)


class States:
    """Follows the state through the diffs."""

    def __init__(self) -> None:
        self._state: paths.Map | None = None  # None while it is not known

    def forget(self) -> None:
        """What comes may change a state that is not known."""
        self._state = None

    def see(self, record: Record, line: int) -> Iterator[Problem]:
        """Take in one line."""
        if record["kind"] == "open":
            self._state = record["state"]
        elif record["kind"] == "step" and self._state is not None:
            yield from self._apply(self._state, record, line)

    def _apply(self, state: paths.Map, record: Record, line: int) -> Iterator[Problem]:
        sets, unsets = record.get("state_diff", {}), record.get("state_unset", [])
        for source in unsets:
            try:
                state = paths.patch(state, {}, [source])
            except paths.PathError as error:
                yield Problem("diff", f"state_unset: {error.message}", line)
        for source, value in sets.items():
            try:
                state = paths.patch(state, {source: value})
            except paths.PathError as error:
                yield Problem("diff", f"state_diff: {error.message}", line)
        yield from _overlaps([*sets, *unsets], line)
        self._state = state


def _overlaps(sources: list[str], line: int) -> Iterator[Problem]:
    """A path that begins another in one diff would make the result depend on their order."""
    if len(sources) < 2:
        return
    try:
        written = sorted(tuple(map(str, paths.parse(source))) for source in sources)
    except paths.PathError:  # already reported
        return
    for one, other in pairwise(written):
        if other[: len(one)] == one:
            yield Problem("diff", f"{paths.text(one)} and {paths.text(other)} in one diff: one begins the other", line)


def a(kind: str) -> str:
    """A kind of line with its article."""
    return f"an {kind}" if kind[:1] in "aio" else f"a {kind}"
