"""What people add to a run that does not go on yet: an answer to a call that waits, or a way back to an earlier step.

Invariants:
* History is never rewritten: what is said here is one more line, and a `close` seals the ledger again.
* All that can be refused is refused before anything is written.
* A rollback changes the state, not the world: what ran has run, and is named.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ledgercli import paths
from ledgercli.addresses import no_such_step, step_address
from ledgercli.books import Books, Turn
from ledgercli.errors import LedgerCliError
from ledgercli.ledger import Ledger, read
from ledgercli.past import reached
from ledgercli.records import Line, Proposal, Verdict, timestamp
from ledgercli.reopening import Reopened, reopen
from ledgercli.shelf import Shelf
from ledgercli.state import State


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer that was written down.

    Arguments:
        path: the ledger.
        step: the step that waited.
        proposal: its call, as the ledger has it.
        verdict: why it waits.
        packs: name and digest of every pack that judged it.
        line: the line that says the answer.
        engine: the kind of what proposes.
        head: the digest of the ledger's last line.

    """

    path: str
    step: int
    proposal: Proposal
    verdict: Verdict
    packs: Sequence[str]
    line: Line
    engine: str
    head: str


@dataclass(frozen=True, slots=True)
class Return:
    """A rollback that was written down.

    Arguments:
        path: the ledger.
        to: the step whose state it is now.
        line: the line that says so.
        unknown: the steps whose outcome nobody had recorded.
        standing: what has run since and may have had an effect: the lines of those steps.
        status: the state's status: `running` if the run can go on.
        engine: the kind of what proposes.
        head: the digest of the ledger's last line.

    """

    path: str
    to: int
    line: Line
    unknown: Sequence[int]
    standing: Sequence[Mapping[str, Any]]
    status: str
    engine: str
    head: str


def approve(address: str, *, yes: bool, by: str, reason: str | None = None) -> Answer:
    """Answer a call that waits: FILE, or FILE@STEP where several do.

    The answer holds for exactly this call, under the same packs and with the same values read, and once.

    Raises:
        LedgerCliError: nothing waits there, or nobody is named.

    """
    path, step = step_address(address)
    _named(by)
    with reopen(path) as again:
        books = again.books
        step = _waiting(again, step)
        proposal, verdict = books.approvals.waiting[step]
        answer = books.closed["answer"] if books.closed else None
        with again.ledger() as ledger:
            line = _write(ledger, books, books.answered(step, yes=yes, by=by, reason=reason, at=timestamp()))
            _write(ledger, books, books.close("awaiting_approval", answer, timestamp()))
            head = ledger.head
    engine = str(again.opening["engine"]["kind"])
    return Answer(path, step, proposal, verdict, [*verdict.packs], line, engine, head or "")


def roll_back(address: str, *, reason: str, by: str) -> Return:
    """Go back to the state after a step: FILE@N; a call without outcome is left unknown first.

    Raises:
        LedgerCliError: there is no such step, or nothing would change.

    """
    path, to = step_address(address)
    if to is None:
        raise LedgerCliError(f"{address}: back to which step?", fix=f"{address}@3 is the state after step 3")
    _named(by)
    with reopen(path) as again:
        books = again.books
        then = _target(again, to)
        _refuse_idle(again, to, then)
        unknown = sorted(books.pending)
        with again.ledger() as ledger:
            for step in unknown:
                _write(ledger, books, books.left(step, "unknown", timestamp()))
            standing = _standing(again, to)
            then = then or books.state  # of a call whose outcome was just left unknown
            line = _write(ledger, books, books.rolled_back(to, then, by=by, reason=reason, at=timestamp()))
            _write(ledger, books, books.close("interrupted", None, timestamp()))
            head = ledger.head
    engine = str(again.opening["engine"]["kind"])
    return Return(path, to, line, unknown, standing, books.state.status, engine, head or "")


def _write(ledger: Ledger, books: Books, turn: Turn) -> Line:
    """Write a line, then let it happen."""
    books.seq = ledger.append(turn.line).seq
    turn.then()
    return turn.line


def _target(again: Reopened, to: int) -> State | None:
    """Return the state after a step; None: that of a call without outcome, once that is written."""
    if to in again.books.pending:
        return None
    books = reached(again.path, Shelf(), to).books
    assert books is not None, "a ledger that was read has books"
    return books.state


def _refuse_idle(again: Reopened, to: int, then: State | None) -> None:
    """Raise if a rollback would change nothing: not the state, nor who set it, nor what waits for an answer."""
    books = again.books
    waits = to < books.steps and not books.approvals.settled
    if then is None or books.pending or waits:
        return
    there = State({**then.tree, "step": books.state.step}, then.origins)
    if paths.same(there.tree, books.state.tree) and dict(there.origins) == dict(books.state.origins):
        raise LedgerCliError(f"the state of {again.path} is that of step {to} already")


def _standing(again: Reopened, to: int) -> list[Mapping[str, Any]]:
    """The writes behind a step that may have had an effect."""
    return [
        one.record
        for one in read(again.path)
        if one.kind == "step"
        and one.record["step"] > to
        and one.record["outcome"] in ("ok", "error", "unknown")
        and again.books.writes(one.record["action"]["tool"])
    ]


def _named(by: str) -> None:
    if not by.strip():
        raise LedgerCliError("somebody has to answer for it, and nobody is named", fix="--by NAME")


def _waiting(again: Reopened, step: int | None) -> int:
    """Return the step that waits: the one that was named, or the latest."""
    waiting = again.books.approvals.waiting
    if step is None and waiting:
        return max(waiting)
    if step is not None and step in waiting:
        return step
    if step is not None and step > again.books.steps:
        raise no_such_step(str(again.path), again.books.steps)
    answers = [one.record for one in read(again.path) if one.kind == "approval" and step in (None, one.record["step"])]
    if answers:
        last = answers[-1]
        raise LedgerCliError(
            f"{again.path}@{last['step']} was answered already: {last['answer']}, by {last['by']}",
            fix=f"ledger run --resume {again.path}",
        )
    where = again.path if step is None else f"{again.path}@{step}"
    also = f"; {', '.join(f'@{one}' for one in sorted(waiting))} does" if waiting else ""
    raise LedgerCliError(f"{where} does not wait for an approval{also}")
