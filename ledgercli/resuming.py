"""Runs that go on: one that was left, by its own ledger (`--resume`), or a new one from a step of another (`--from`).

Invariants:
* All that can be refused is refused before anything is written.
* A write whose outcome nobody recorded is never repeated silently: somebody says what came of it.
* What the ledger carries is what judges, proposes and runs; files of the disk take part only where they are named.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Literal

import orjson

from ledgercli import paths
from ledgercli.addresses import step_address
from ledgercli.books import Pending
from ledgercli.decision import ENGINES, Engine, Recorded
from ledgercli.engines import described, engines
from ledgercli.errors import ExitCode, LedgerCliError
from ledgercli.guard import Guard
from ledgercli.history import EVERYTHING
from ledgercli.intake import own
from ledgercli.ledger import read as lines_of
from ledgercli.loading import load_scenario, refuse
from ledgercli.loop import Approver
from ledgercli.model.engine import ModelEngine
from ledgercli.past import Follower, reached
from ledgercli.recordings import Recording, read
from ledgercli.records import Proposal, Verdict
from ledgercli.reopening import (
    Reopened,
    adapted,
    inherited,
    packs_of,
    refuse_ended,
    refuse_masks,
    reopen,
)
from ledgercli.results import failed
from ledgercli.rulebook import Rulebook
from ledgercli.runs import ENDING, Job, Options, Places, clock_of, safe, settings
from ledgercli.scenario import Scenario
from ledgercli.shelf import Shelf
from ledgercli.state import FROM_TASK, State
from ledgercli.toolset import CommandRun, PythonRun, Toolset

Choice = Literal["ask", "retry", "skip", "done", "fail"]
CHOICES: Final[Mapping[Choice, str]] = {
    "retry": "it had no effect; it is proposed and judged again",
    "done": "it was done; --result JSON says what it returned",
    "fail": "it failed",
    "skip": "leave it unknown, and go on",
}
_FAILED: Final = "it failed, as was said when the run was resumed"


@dataclass(frozen=True, slots=True)
class Told:
    """What came of a write whose outcome nobody recorded.

    Arguments:
        choice: one of `CHOICES`; `ask` asks.
        result: what the tool returned, as JSON.

    """

    choice: Choice = "ask"
    result: str | None = None


#: Asks what came of a call; None if nobody is there.
Asker = Callable[[int, Proposal], Told | None]


class StillWaitingError(LedgerCliError):
    """The run waits for an approval that nobody has given."""

    exit_code = ExitCode.STOPPED


def resume(  # noqa: PLR0913 - the parts of a resumption
    path: str,
    options: Options,
    *,
    scenario: str | None = None,
    told: Told | None = None,
    asker: Asker = lambda _step, _proposal: None,
    approver: Approver = lambda _proposal, _verdict: None,
) -> Job:
    """Get a run ready that goes on where it was left.

    Arguments:
        path: its ledger.
        options: what the command line says.
        scenario: a file of the disk to go on with, in place of what the ledger carries.
        told: what came of a write whose outcome nobody recorded.
        asker: asks that where it is not told.
        approver: asks for the approval that the run waits for.

    Raises:
        StillWaitingError: nobody has approved what it waits for; nothing was written.
        LedgerCliError: it cannot go on; nothing was written.

    """
    again = reopen(path, widely=bool(scenario or options.packs))
    try:
        return _resumed(again, options, scenario, told or Told(), asker, approver)
    except BaseException:
        again.hold.release()
        raise


def _resumed(  # noqa: PLR0913 - the parts of a resumption
    again: Reopened, options: Options, scenario: str | None, told: Told, asker: Asker, approver: Approver
) -> Job:
    _refuse_program(again.opening, again.path)
    refuse_ended(again)
    _take_files(again, options, scenario)
    again.put(own(settings(again.rules, options)))
    again.refuse_masks()
    rules = again.rules
    refuse_missing(rules.toolset, again.path)
    loaded = rules.scenario
    assert loaded is not None, "whoever proposes stands in a scenario"
    engine = _engine(again, loaded, options, named=scenario is not None)
    settled = [
        _settled(again, step, pending, engine, told, asker) for step, pending in sorted(again.books.pending.items())
    ]
    if len(settled) == 0 and (answer := _answered(again, approver)) is not None:
        settled.append(answer)

    def settle(guard: Guard) -> None:
        for one in settled:
            one(guard)

    return Job(
        loaded,
        rules,
        engine,
        again.state,
        again.path,
        clock_of(options.now or loaded.file.now),
        options,
        again.replaced,
        again.added,
        again=again,
        settle=settle,
        expects=scenario is not None,
    )


def _refuse_program(opening: Mapping[str, Any], path: Path | str) -> None:
    kind = opening["engine"]["kind"]
    if kind == "guard":
        raise LedgerCliError(
            f"the calls of {path} come from a program, and only that can make more", fix=f"Guard.resume({str(path)!r})"
        )
    if kind not in ENGINES:
        raise LedgerCliError(f"the calls of {path} come from an engine that is not known here: {kind}")


def _take_files(again: Reopened, options: Options, scenario: str | None) -> None:
    if scenario is None:
        files, again.replaced, again.added = packs_of(again.rules, options.packs, reference=options.reference)
        again.take(files)
        return
    loaded = load_scenario(scenario, packs=options.packs)
    book = Rulebook(loaded.toolset, loaded.packs, scenario=loaded)
    again.take(list(book.files(reference=options.reference)), all_packs=True)
    again.replaced, again.added = loaded.replaced, loaded.added


def refuse_missing(toolset: Toolset, path: Path | str) -> None:
    """Raise if code that tools run is not where the toolset says: seen from here, it may be elsewhere."""
    for name, tool in toolset.tools.items():
        match tool.run:
            case PythonRun(python=target) if target.rpartition(":")[0].endswith(".py"):
                file = toolset.folder / target.rpartition(":")[0]
            case CommandRun(command=[program, *_]) if "/" in program:
                file = toolset.folder / program
            case _:
                continue
        if not file.exists():
            raise LedgerCliError(
                f"there is no file {os.path.normpath(file)} here, which {name} runs",
                fix=f"go to the folder that the run was started in, or name its scenario: --scenario FILE, for {path}",
            )


# ---- who proposes


def _engine(again: Reopened, scenario: Scenario, options: Options, *, named: bool) -> Engine:
    recorded, wanted = again.books.recorded, scenario.file.decide.recording is not None
    if recorded != wanted:
        raise LedgerCliError(f"{again.path} began with a {'recording' if recorded else 'script'}, and goes on with one")
    if not recorded:
        return _proposing(again, scenario, options, named=named)
    transcript = _transcript(again, scenario)
    asking = {name for name, tool in again.rules.toolset.tools.items() if tool.asks_person}
    unsettled = len(again.books.pending)  # the calls that were under way are taken first
    return Recorded(replace(transcript, events=transcript.events[again.books.steps - unsettled :]), asking)


def _proposing(again: Reopened, scenario: Scenario, options: Options, *, named: bool) -> Engine:
    """Return the script or the model that goes on: the ledger's, unless a scenario is named or options say another."""
    said = _in_force(again.path, again.last.line)
    engine = engines(scenario, again.rules, options.model, None if named else said, again=True)()
    if described(engine) != said:
        again.engine = described(engine)
    if isinstance(engine, ModelEngine):
        for entry in lines_of(again.path):
            engine.take(entry.record)
    return engine


def _in_force(path: Path | str, line: int) -> Mapping[str, Any]:
    """Who proposes in a ledger, at one of its lines."""
    said: Mapping[str, Any] = {}
    for entry in lines_of(path):
        if entry.line > line:
            break
        if entry.kind in ("open", "resume"):
            said = entry.record.get("engine", said)
    return said


def _transcript(again: Reopened, scenario: Scenario) -> Recording:
    """Find the transcript that a ledger was made of: it is named after it."""
    recording = scenario.file.decide.recording
    assert recording is not None
    found = list(read(scenario.folder / recording.file, recording.format))
    named = [one for one in found if f"{safe(one.id)}{ENDING}" == again.path.name]
    chosen = named or (found if len(found) == 1 else [])
    if not chosen or len(chosen[0].events) < again.books.steps:
        raise LedgerCliError(
            f"{recording.file} has no transcript that {again.path.name} was made of",
            fix=f"name the ledger as `ledger run` did: ID{ENDING}",
        )
    return chosen[0]


# ---- what was left open

Settle = Callable[[Guard], None]


def _settled(  # noqa: PLR0913 - the call, and who tells what came of it
    again: Reopened, step: int, pending: Pending, engine: Engine, told: Told, asker: Asker
) -> Settle:
    """Return what records the outcome of a call that was begun."""
    verdict = pending.verdict
    if isinstance(engine, Recorded):  # what happened stands there
        call = engine.propose(again.state, again.books.history, pending.now)
        if not isinstance(call, Proposal) or call.tool != pending.proposal.tool:
            raise LedgerCliError(f"{again.path}@{step} is another call than its transcript has there")
        result = engine.run(pending.proposal)
        return lambda guard: _record(guard, verdict, result, "unknown" if result is None else None)
    if told.choice == "ask":
        told = asker(step, pending.proposal) or _unasked(again, step, pending.proposal)
    if told.choice == "retry":
        return lambda guard: _record(guard, verdict, None, "cancelled")
    if told.choice == "skip":
        return lambda guard: _record(guard, verdict, None, "unknown")
    if told.choice == "fail":
        error = failed(_FAILED) if told.result is None else json_of(told.result)
        return lambda guard: _record(guard, verdict, error, "error")
    if told.result is None:
        raise LedgerCliError(
            "--unknown done needs what the tool returned", fix="--result JSON, as --result '{\"id\": 5}'"
        )
    returned = json_of(told.result)
    return lambda guard: _record(guard, verdict, returned, None)


def _record(guard: Guard, verdict: Verdict, result: Any, outcome: Any) -> None:
    guard.record(verdict, result, outcome=outcome)


def _unasked(again: Reopened, step: int, proposal: Proposal) -> Told:
    choices = ", ".join(f"{choice} ({meaning})" for choice, meaning in CHOICES.items())
    raise LedgerCliError(
        f"{again.path}@{step}: {proposal.tool} was begun, and nobody recorded what came of it",
        fix=f"look whether it took effect, then --unknown with one of: {choices}",
    )


def json_of(text: str) -> Any:
    """Return the value that a JSON text says.

    Raises:
        LedgerCliError: it is no JSON.

    """
    try:
        return own(orjson.loads(text))
    except orjson.JSONDecodeError as error:
        raise LedgerCliError(
            f"--result {text}: {error}", fix="a text is JSON in quotes: --result '\"paid\"'"
        ) from error


def _answered(again: Reopened, approver: Approver) -> Settle | None:
    """Ask for the approval that a run waits for; what has changed is judged first, and asked about then."""
    books = again.books
    waiting = books.approvals.waiting.get(books.steps)
    if waiting is None or again.changed:
        return None
    step, (proposal, verdict) = books.steps, waiting
    answer = approver(proposal, verdict)
    if answer is None:
        raise StillWaitingError(
            f"{again.path}@{step} waits for an approval: {verdict.reason}",
            fix=f"ledger approve {again.path} --yes --by NAME (or --no)",
        )
    yes, by = answer
    return lambda guard: guard.approve(step, yes=yes, by=by)


# ---- a new run from a step of another


def go_on_from(address: str, names: Sequence[str], options: Options) -> Job:
    """Get a new run ready that begins with the state of another run after one of its steps.

    Arguments:
        address: FILE@N.
        names: a scenario, or none: what the ledger carries.
        options: what the command line says.

    Raises:
        LedgerCliError: there is no such step, the run had ended there, or something does not fit.

    """
    path, step = step_address(address)
    if step is None:
        raise LedgerCliError(f"--from {address}: which step?", fix=f"--from {address}@3 is the state after step 3")
    follower = reached(path, Shelf(), step, keeps=lambda _opening: EVERYTHING)
    books = follower.books
    assert books is not None, "a ledger that was read has books"
    if books.state.status != "running":
        raise LedgerCliError(f"{address}: the run had ended there: {books.state.status}", fix="--from an earlier step")
    rules, replaced, added = _rules_from(follower, names, options, path)
    scenario = rules.scenario
    if scenario is None or scenario.file.decide.recording is not None:
        why = "is a program's" if scenario is None else "is a recording"
        raise LedgerCliError(
            f"what proposes in {path} {why}, and cannot begin at a step", fix=f"ledger run SCENARIO --from {address}"
        )
    if names == ():
        refuse_missing(rules.toolset, path)
    state, history = inherited(books)
    sets = adapted(state.tree, books.rules, rules)
    state = state.after(sets, origin=FROM_TASK) if sets else state
    for text, value in own(settings(rules, options)).items():
        state = _put(state, text, value)
    refuse_masks(path, state.tree)
    origin = {"ledger": path, "run": follower.opening["run"], "step": step, "digest": _digest(path, follower, step)}
    assert follower.last is not None, "a ledger that was read has lines"
    said = None if names else _in_force(path, follower.last.line)
    engine = engines(scenario, rules, options.model, said, again=True)()
    place = Places(options.out, several=False).one(scenario.name)
    clock = clock_of(options.now or scenario.file.now)
    return Job(
        scenario, rules, engine, state, place, clock, options, replaced, added,
        origin=(origin, history), expects=bool(names),
    )  # fmt: skip


def _rules_from(
    follower: Follower, names: Sequence[str], options: Options, path: str
) -> tuple[Rulebook, Sequence[str], Sequence[str]]:
    """Return what judges the new run: a scenario of the disk, or what the ledger carries, with the packs given."""
    if names:
        [name] = names
        loaded = load_scenario(name, packs=options.packs)
        book = Rulebook(loaded.toolset, loaded.packs, scenario=loaded, shadow=options.shadow)
        refuse(book.problems())
        return book, loaded.replaced, loaded.added
    assert follower.books is not None
    _refuse_program(follower.opening, path)
    files, replaced, added = packs_of(follower.books.rules, options.packs)
    opening = {**follower.opening, "mode": "shadow" if options.shadow else "enforce"}
    return Shelf().recorded(opening, [*follower.later, *files]), replaced, added


def _put(state: State, text: str, value: Any) -> State:
    return state.become(paths.put(state.tree, paths.parse(text), value), [text], origin=FROM_TASK)


def _digest(path: str, follower: Follower, step: int) -> str:
    """The digest of the line of a step; of step 0, of the first line."""
    last = next(iter(lines_of(path))) if step == 0 else follower.last
    assert last is not None, "a ledger that was read has lines"
    return last.digest
