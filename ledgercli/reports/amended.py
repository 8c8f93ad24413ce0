"""`ledger approve` and `ledger rollback` on a terminal: what was written down, and what it means.

Invariants:
* What is shown is what the ledger has: masked values stay masked.
* stdout has what was written, stderr what to do next.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Any, Final

from ledgercli.amending import Answer, Return
from ledgercli.reports.cells import pad
from ledgercli.reports.places import nowhere
from ledgercli.reports.screen import Screen
from ledgercli.reports.steps import Steps

_INDENT: Final = " " * 7


def show_answer(out: Screen, err: Screen, answer: Answer) -> None:
    """Show an answer: the call, why it waits, and what the answer holds for."""
    for line in _answer_lines(out, answer):
        out.line(line)
    out.flush()
    _next(err, answer.path, answer.engine)


def _answer_lines(out: Screen, answer: Answer) -> Iterator[str]:
    steps = Steps(out, nowhere, indent=_INDENT)
    line = answer.line
    head = pad(line["answer"], len(_INDENT))
    yield f"{head}{out.safe(f'{answer.path}@{answer.step}')}"
    yield _INDENT + steps.call(answer.proposal.to_json(), _INDENT)
    yield from steps.message("why", answer.verdict.reason or "")
    yield from steps.message("by", f"{line['by']}: {line['reason']}" if line.get("reason") else line["by"])
    yield from steps.message(
        "for", f"this call once, judged by {' and '.join(answer.packs) or 'no pack'}, while it reads"
    )
    for path, value in answer.verdict.reads.items():
        yield from steps.value("read", value, out.safe(path))


def answer_json(answer: Answer) -> dict[str, Any]:
    """Return the same as data."""
    line = answer.line
    return {
        "schema": "approve/1",
        "ledger": answer.path,
        "step": answer.step,
        "action": answer.proposal.to_json(),
        "answer": line["answer"],
        "by": line["by"],
        "reason": line.get("reason"),
        "bound": line["bound"],
        "head": answer.head,
    }


def show_return(out: Screen, err: Screen, done: Return) -> None:
    """Show a rollback: what the state is again, and what is not undone."""
    for line in _return_lines(out, done):
        out.line(line)
    out.flush()
    if done.status == "running":
        _next(err, done.path, done.engine)


def _return_lines(out: Screen, done: Return) -> Iterator[str]:
    steps = Steps(out, nowhere, indent=_INDENT)
    yield f"back   {out.safe(f'{done.path}@{done.to}')}"
    yield from steps.message("by", f"{done.line['by']}: {done.line['reason']}")
    yield from steps.changes(done.line, everything=True)
    if done.status != "running":
        yield from steps.message("end", f"the run had ended there: {done.status}")
    for step in done.unknown:
        yield from steps.message("lost", f"nobody recorded what came of @{step}; it stays unknown", "yellow")
    for line in done.standing:
        before = steps.labelled("stays", f"@{line['step']} ")
        yield before + " " + steps.call(line["action"], f"{before} ")
    if done.standing:
        yield from steps.message("", "a rollback changes the state; what has run is not undone")


def return_json(done: Return) -> dict[str, Any]:
    """Return the same as data."""
    line = done.line
    return {
        "schema": "rollback/1",
        "ledger": done.path,
        "to": done.to,
        "by": line["by"],
        "reason": line["reason"],
        "state_diff": line.get("state_diff", {}),
        "state_unset": line.get("state_unset", []),
        "unknown": done.unknown,
        "standing": [
            {"step": one["step"], "action": one["action"], "outcome": one["outcome"]} for one in done.standing
        ],
        "status": done.status,
        "head": done.head,
    }


def _next(err: Screen, path: str, engine: str) -> None:
    """Say how the run goes on."""
    how = (
        f"go on in the program: Guard.resume({path!r})"
        if engine == "guard"
        else f"ledger run --resume {shlex.quote(path)}"
    )
    err.line(err.safe(f"next: {how}"))
