"""What a line must be beside the lines before it: order, steps, approvals, files, close; the state is for `states`.

Invariants:
* A checker sees valid records in the order of the file, and keeps only what is still open (steps ahead of others,
  intents without outcome, steps that wait), never the lines.
* One cause is one problem: once lines are known to be missing or changed, nothing is said any more that would only
  follow from that (`uncertain`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final, Literal

from ledgercli import paths, records

Severity = Literal["error", "warning"]
Record = dict[str, Any]

REOPENING: Final = frozenset({"approval", "recovery", "resume", "rollback"})  # with these a closed ledger may go on
MANY: Final = 1000  # problems are enough


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


def order(kind: str, before: str | None, line: int) -> list[Problem]:
    """Whether a line of this kind may follow one of kind `before` (None: it is the first)."""
    if before is None and kind != "open":
        message = f"the first line is {a(kind)}, not an open"
    elif before is not None and kind == "open":
        message = "a second open; a ledger has one, in its first line"
    elif before == "close" and kind not in REOPENING:
        *most, last = sorted(REOPENING)
        message = f"{a(kind)} follows a close; only {', '.join(most)} or {last} may"
    else:
        return []
    return [Problem("order", message, line)]


def opening(record: Record, line: int) -> Iterator[Problem]:
    """Whether a run that goes on from no other begins running."""
    status = record["state"]["status"]
    if status != "running" and record.get("from") is None:
        yield Problem("schema", f"state.status is {status}; a run begins running", line)


def place(record: Record, line: int, offset: int) -> Iterator[Problem]:
    """Whether a `recovery` line stands where the torn end stood."""
    if record["offset"] != offset:
        yield Problem("order", f"a recovery at byte {record['offset']:,} stands at byte {offset:,}", line)


def files(record: Record, line: int) -> Iterator[Problem]:
    """Whether each file's text in an `open` or a `resume` line has the digest beside it."""
    for file in record["files"]:
        if file.get("text") is not None and records.digest(file["text"].encode()) != file["digest"]:
            yield Problem("file", f"the text of {file['kind']} {file['path']} does not have the digest beside it", line)


def outcome(record: Record, line: int) -> list[Problem]:
    """Whether outcome, verdict and result of a step fit together."""
    said, result, verdict = record["outcome"], record["result"], record["verdict"]
    if said == "ok" and result and result["success"] and verdict and verdict["effect"] == "allow":
        return []  # nearly every line
    wrong = []
    if said in ("ok", "error"):
        if result is None:
            wrong.append("there is no result")
        elif result["success"] != (said == "ok"):
            wrong.append("the result says the opposite")
    elif said in ("denied", "waiting") and result is not None:
        wrong.append("there is a result")
    if verdict is None:
        if said != "ok":
            wrong.append("there is no verdict")
    elif not _agree(said, verdict):
        wrong.append(f"the verdict {verdict['effect']}")
    return [Problem("outcome", f"the outcome is {said}, and {why}", line) for why in wrong]


def _agree(said: str, verdict: Record) -> bool:
    """Whether what became of a call is what its verdict lets become of it."""
    effect = verdict["effect"]
    runs = records.lets_run(effect, verdict.get("approval"))
    if said == "denied":
        return not runs
    return effect == "require_approval" and not runs if said == "waiting" else runs


class Steps:
    """Follows the numbers of steps, intents, approvals, rollbacks and checkpoints.

    `uncertain` may be set once lines are known to be missing or unreadable, so that gaps say nothing new.
    """

    def __init__(self) -> None:
        self.uncertain = False
        self._done = 0  # every step up to here has its line
        self._ahead: set[int] = set()  # steps behind a gap that have theirs
        self._intents: dict[int, tuple[int, Record]] = {}  # step -> line and action
        self._blamed: set[int] = set()  # those without outcome that a close was blamed for
        self._waiting: set[int] = set()
        self._answers: dict[int, str] = {}  # approvals that no step has used
        self._inherits = False  # the past of another run, which no checkpoint has told yet
        self._told: int | None = None  # the step of the latest checkpoint
        self._summed = 0  # the first step of the latest summary
        self._stopped = False  # the line before was written for a run that does not go on yet
        self._take: dict[str, Callable[[Record, int], list[Problem]]] = {
            "open": self._open,
            "intent": self._intent,
            "step": self._step,
            "approval": self._approval,
            "rollback": self._rollback,
            "checkpoint": self._checkpoint,
            "summary": self._summary,
            "close": self._close,
        }

    @property
    def count(self) -> int:
        """How many steps there are, those without outcome included."""
        return self._done + len(self._ahead) + len(self._intents)

    def see(self, record: Record, line: int) -> list[Problem]:
        """Take in one line."""
        kind = record["kind"]
        take = self._take.get(kind)
        found = take(record, line) if take else []
        self._stopped = kind in ("approval", "rollback")
        return [] if self.uncertain else found

    def unfinished(self) -> Iterator[tuple[int, int]]:
        """Yield each step with an intent and no outcome, and the intent's line, unless a close was blamed for it."""
        for step, (line, _) in self._intents.items():
            if step not in self._blamed:
                yield step, line

    def _has(self, step: int) -> bool:
        return step <= self._done or step in self._ahead

    def _open(self, record: Record, _line: int) -> list[Problem]:
        self._inherits = record.get("from") is not None
        return []

    def _begun(self, line: int) -> list[Problem]:
        """A step or an intent of a run that goes on from another: what it inherits must have been told before."""
        self._inherits = False
        message = "the run goes on from another one, and no checkpoint before its first step tells what that one left"
        return [Problem("checkpoint", message, line)]

    def _intent(self, record: Record, line: int) -> list[Problem]:
        found = self._begun(line) if self._inherits else []
        step = record["step"]
        if self._has(step) or step in self._intents:
            found.append(Problem("step", f"an intent of step {step}, which has a line already", line))
        else:
            self._intents[step] = line, record["action"]
        return found

    def _step(self, record: Record, line: int) -> list[Problem]:
        found = self._begun(line) if self._inherits else []
        step = record["step"]
        if self._has(step):
            return [*found, Problem("step", f"step {step} has a line already", line)]
        if step > self._done + 1:
            self._ahead.add(step)
        else:
            self._done = step
            while self._ahead and self._done + 1 in self._ahead:
                self._done += 1
                self._ahead.remove(self._done)
        meant = self._intents.pop(step, None)
        if meant and not paths.same(meant[1], record["action"]):
            found.append(Problem("step", f"step {step} is another call than its intent in line {meant[0]}", line))
        if record["outcome"] == "waiting":
            self._waiting.add(step)
        verdict = record["verdict"]
        if verdict and verdict.get("approval") is not None:
            found += self._used(verdict, line)
        return found

    def _used(self, verdict: Record, line: int) -> Iterator[Problem]:
        answered = verdict["approval"]
        answer = self._answers.pop(answered, None)
        if answer is None:
            yield Problem("approval", f"no unused approval answers step {answered}", line)
        elif (answer == "yes") != (verdict["effect"] == "require_approval"):
            yield Problem("approval", f"the answer on step {answered} was {answer}, the verdict says otherwise", line)

    def _approval(self, record: Record, line: int) -> list[Problem]:
        step = record["step"]
        if step not in self._waiting:
            return [Problem("approval", f"step {step} does not wait for an approval", line)]
        self._waiting.remove(step)
        self._answers[step] = record["answer"]
        return []

    def _rollback(self, record: Record, line: int) -> list[Problem]:
        """The state that waiting steps and answers were about is gone; what was about to run may have run."""
        self._waiting.clear()
        self._answers.clear()
        if self._has(record["to"]):
            return []
        return [Problem("rollback", f"a rollback to step {record['to']}, which has no line before it", line)]

    def _checkpoint(self, record: Record, line: int) -> list[Problem]:
        self._inherits = False
        before, self._told = self._told, record["step"]
        if record["step"] == before:
            return [Problem("checkpoint", f"step {before:,} has a checkpoint already", line)]
        if record["step"] == self.count:
            return []
        message = f"the checkpoint counts {record['step']:,} steps, there are {self.count:,}"
        return [Problem("checkpoint", message, line)]

    def _summary(self, record: Record, line: int) -> list[Problem]:
        """Each step is summed up once, after its line."""
        first, last = record["first"], record["last"]
        before, self._summed = self._summed, first
        if first == before:
            return [Problem("summary", f"the steps from {first:,} on are summed up already", line)]
        if first <= last and self._has(first) and self._has(last):
            return []
        return [
            Problem("summary", f"a summary of the steps {first:,} to {last:,}, which have no lines before it", line)
        ]

    def _close(self, record: Record, line: int) -> list[Problem]:
        found = []
        if record["lines"] != line:
            found.append(Problem("close", f"close counts {record['lines']:,} lines, this is line {line:,}", line))
        if record["steps"] != self.count:
            found.append(Problem("close", f"close counts {record['steps']:,} steps, there are {self.count:,}", line))
        if self._ahead:
            message = f"step {self._done + 1} has no line, step {min(self._ahead)} has one"
            found.append(Problem("step", message, line))
        if not self._stopped:  # else whoever takes the run up again says what came of it
            for step, started in islice(self.unfinished(), MANY):
                message = f"step {step} has an intent in line {started} and no outcome"
                found.append(Problem("intent", message, line))
                self._blamed.add(step)
        return found


def a(kind: str) -> str:
    """A kind of line with its article."""
    return f"an {kind}" if kind[:1] in "aio" else f"a {kind}"
