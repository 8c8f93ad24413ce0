"""Prepares and carries out runs: scenario files and options → one ledger each.

Invariants:
* All that can be refused is refused before the first ledger is made.
* Every run has a ledger of its own; one that exists is never overwritten, only gone on with.
* Nothing is printed here: lines go to whoever asked for them.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Literal

import orjson

from ledgercli import cel, paths
from ledgercli.decision import Engine, Recorded
from ledgercli.engines import described, engines
from ledgercli.errors import ExitCode, LedgerCliError, OutputExistsError
from ledgercli.executor import Executor, Person, Replies
from ledgercli.expectations import Happened, Unmet, mismatches, tells_steps
from ledgercli.guard import Guard
from ledgercli.history import History
from ledgercli.intake import present
from ledgercli.ledger import read as read_ledger
from ledgercli.ledger.writing import exists
from ledgercli.loading import load_scenario, refuse
from ledgercli.loop import Approver, CtrlC, Ended, Loop, Runner
from ledgercli.model import calling
from ledgercli.model.answering import AnswerWriter
from ledgercli.model.engine import ModelEngine
from ledgercli.model.keeping import Prompts
from ledgercli.model.settings import chosen
from ledgercli.recordings import read
from ledgercli.records import Line
from ledgercli.reopening import Reopened, first_denial, replies_used
from ledgercli.responder import Responder
from ledgercli.rulebook import Rulebook
from ledgercli.runnable import LIMITS
from ledgercli.scenario import Expect, Scenario
from ledgercli.state import State
from ledgercli.toolset import Toolset

FOLDER = "ledgers"
ENDING = ".ledger.jsonl"


@dataclass(frozen=True, slots=True)
class Options:
    """What the command line says about runs.

    Arguments:
        out: where to write: a file for one run, else a folder.
        packs: packs that take the place of those of the same name, or are added.
        sets: `facts.x=VALUE`, `constraints.x=VALUE`, `flags.x=VALUE`; values are JSON, else text.
        task: instead of the scenario's.
        replies: what the user says, instead of the scenario's replies.
        max_steps: instead of the scenario's limit.
        now: the time of every proposal.
        shadow: let every proposal through.
        sync: when lines are forced to disk.
        reference: keep digests of files in the ledger, not their text.
        checkpoint: after how many steps the whole state is written again.
        trials: how often each scenario is run; None: once, and it is no trial.
        allow_writes: whether tools that have an effect outside may run in trials.
        model: settings of a model that take the place of the scenario's, by name.
        keep_prompts: whether whole prompts are kept beside the ledger.

    """

    out: str | None = None
    packs: Sequence[str] = ()
    sets: Sequence[str] = ()
    task: str | None = None
    replies: Sequence[str] = ()
    max_steps: int | None = None
    now: str | None = None
    shadow: bool = False
    sync: Literal["step", "close", "none"] = "step"
    reference: bool = False
    checkpoint: int | None = None
    trials: int | None = None
    allow_writes: bool = False
    model: Mapping[str, Any] = field(default_factory=dict)
    keep_prompts: bool = False


@dataclass(slots=True)
class Job:
    """One run that is ready to go.

    Arguments:
        scenario: what is run.
        book: its rules.
        engine: what proposes.
        state: the state it begins with.
        ledger: where its ledger will be.
        replaced: names of the packs whose place another took.
        added: names of the packs that were added.
        again: a run to go on with, in place of a new one.
        settle: settles what was open in it, once its ledger says that it goes on.
        origin: the ledger and step that the state comes from, and the steps that led to it there.
        expects: whether the scenario's `expect` is meant for this run.
        writer: writes the answer, where a model does; by default as the scenario says.

    """

    scenario: Scenario
    book: Rulebook
    engine: Engine
    state: State
    ledger: Path
    clock: Callable[[], cel.Timestamp]
    options: Options
    replaced: Sequence[str] = ()
    added: Sequence[str] = ()
    again: Reopened | None = None
    settle: Callable[[Guard], None] = lambda _guard: None
    origin: tuple[Mapping[str, Any], History] | None = None
    expects: bool = True
    writer: AnswerWriter | None = None
    guard: Guard | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        if self.options.keep_prompts and not isinstance(self.engine, ModelEngine):
            raise LedgerCliError(f"--keep-prompts goes with a model, and none decides in {self.scenario.name}")

    def engine_line(self) -> dict[str, Any]:
        """Who proposes, as the ledger's first line says it."""
        recording = self.scenario.file.decide.recording
        if recording is None:
            return described(self.engine)
        return {"kind": "recording", "file": recording.file, "format": recording.format}

    def run(
        self,
        person: Person | None,
        approver: Approver,
        on_line: Callable[[Line], None],
        interrupt: CtrlC | None = None,
    ) -> Ended:
        """Carry it out.

        Arguments:
            person: who answers `user` and `confirm` when no reply is left; None if nobody is there.
            approver: who approves.
            on_line: takes each line of the ledger as it is written.
            interrupt: holds Ctrl-C back; given where this does not run in the main thread.

        Raises:
            OutputExistsError: the ledger is there already.
            LedgerWriteError: it cannot be written.

        """
        replies = self._replies()
        runner: Runner = (
            self.engine if isinstance(self.engine, Recorded) else Executor(self.book.toolset, Replies(replies, person))
        )
        writer = self.writer
        if writer is None and self.scenario.file.writer is not None:
            writer = AnswerWriter(self.scenario.file.writer, self.book)
        responder = Responder(self.scenario, self.book.vocabulary, None if writer is None else writer.write)
        asked: list[Callable[[], Mapping[str, Any] | None]] = [] if writer is None else [writer.unrecorded]
        if isinstance(self.engine, ModelEngine):
            on_line, asked = self._telling(self.engine, on_line), [*asked, self.engine.unrecorded]
        with interrupt or CtrlC() as ctrl_c:
            ctrl_c.hold()  # until the loop can close what is opened here
            self.guard = self._guard(on_line)
            self.settle(self.guard)
            first = None if self.again is None else first_denial(self.again)
            unrecorded = partial(_first, asked)
            loop = Loop(self.guard, self.engine, runner, responder, self.clock, approver, ctrl_c, first, unrecorded)
            if isinstance(self.engine, ModelEngine):
                loop.summarise = self.engine.summarised
            if person is not None and any(tool.asks_person for tool in self.book.toolset.tools.values()):
                loop.listener = person.listen
            return loop.run()

    def _telling(self, engine: ModelEngine, on_line: Callable[[Line], None]) -> Callable[[Line], None]:
        """Let a model's engine take every line too, and keep its prompts where they are wanted."""
        if self.options.keep_prompts:
            kept = Prompts(self.ledger, ENDING, again=self.again is not None)
            engine.keep = lambda asked: kept.add(asked, self._shown)

        def told(line: Line) -> None:
            engine.take(line)
            on_line(line)

        return told

    def _shown(self, value: Any) -> Any:
        return value if self.guard is None else self.guard.shown(value)

    def _guard(self, on_line: Callable[[Line], None]) -> Guard:
        options = self.options
        if self.again is not None:
            return Guard(
                again=self.again,
                clock=self.clock,
                sync=options.sync,
                checkpoint=options.checkpoint,
                on_line=on_line,
            )
        origin, history = self.origin or (None, None)
        return Guard(
            rulebook=self.book,
            state=self.state,
            ledger=self.ledger,
            shadow=options.shadow,
            recorded=isinstance(self.engine, Recorded),
            clock=self.clock,
            engine=self.engine_line(),
            sync=options.sync,
            reference=options.reference,
            checkpoint=options.checkpoint,
            origin=origin,
            history=history,
            on_line=on_line,
        )

    def _replies(self) -> list[str | bool]:
        """What the user says, without what he has said before in a run that goes on."""
        if self.options.replies or self.again is None:
            return list(self.options.replies or self.scenario.file.replies)
        return list(self.scenario.file.replies[replies_used(self.again) :])

    def interrupt(self) -> None:
        """Close the ledger of a run that waits in another thread, as Ctrl-C would; what it then does is refused."""
        guard, responder = self.guard, self.book.responder
        if guard is not None and responder is not None:
            guard.close("interrupted", responder.answer(guard.state, guard.history, self.clock()))

    @property
    def expect(self) -> Expect | None:
        """What the scenario wants of this run; None where it says nothing."""
        return self.scenario.file.expect if self.expects else None

    def unmet(self, ended: Ended) -> list[Unmet]:
        """Return what the scenario's `expect` wants and the run has not: path, wanted, got."""
        assert self.guard is not None
        tree = {**self.guard.state.tree, "status": ended.status, "answer": ended.answer}
        expect = self.expect or Expect()
        found = [(path, wanted, self.guard.shown(got)) for path, wanted, got in mismatches(tree, expect)]
        if tells_steps(expect):
            lines = (entry.record for entry in read_ledger(self.ledger))
            found += Happened.of(lines, self.book.toolset).unmet(expect)
        return found

    def exit_code(self, ended: Ended) -> ExitCode:
        """Return the exit code: by `expect` where there is one, else by how the run ended."""
        if self.expect is None or ended.status in ("error", "interrupted"):
            return ended.exit_code
        return ExitCode.NO if self.unmet(ended) else ExitCode.YES


def _first(asked: Sequence[Callable[[], Mapping[str, Any] | None]]) -> Mapping[str, Any] | None:
    """Return what asking took that led to no step: of the answer's model, else of the one that proposes."""
    return next((told for one in asked if (told := one()) is not None), None)


def prepare(names: Sequence[str], options: Options) -> list[tuple[Scenario, Iterator[Job]]]:
    """Load scenarios and get their runs ready.

    Arguments:
        names: scenario files; `-` is standard input.
        options: what the command line says.

    Returns:
        Each scenario with its runs: one, or one for each transcript of a recording.

    Raises:
        InvalidDocumentError: a scenario, or a file that it names, does not load; all problems together.
        LedgerCliError: an option does not fit, or an output exists.

    """
    loaded = [load_scenario(name, packs=options.packs) for name in names]
    places = Places(options.out, several=len(loaded) > 1)
    return [(scenario, _jobs(scenario, book, options, places)) for scenario, book in map(_compiled(options), loaded)]


def _compiled(options: Options) -> Callable[[Scenario], tuple[Scenario, Rulebook]]:
    def compiled(scenario: Scenario) -> tuple[Scenario, Rulebook]:
        book = Rulebook(scenario.toolset, scenario.packs, scenario=scenario, shadow=options.shadow)
        refuse(book.problems())
        return scenario, book

    return compiled


def _jobs(scenario: Scenario, book: Rulebook, options: Options, places: Places) -> Iterator[Job]:
    """Get the runs of a scenario ready; only transcripts are read when their turn comes."""
    clock = clock_of(options.now or scenario.file.now)
    if scenario.file.decide.recording is not None:
        chosen(scenario, options.model)  # refuses a model
        if options.trials is not None:
            raise LedgerCliError(f"{scenario.name} takes its calls from a recording: --trials would only repeat them")
        state = _state(book, options, scenario.file.task)  # what does not fit is refused now
        return _recorded(scenario, book, options, state, places.many(scenario.name), clock)
    if options.trials is not None:
        refuse_writes(book.toolset, options)
    make = engines(scenario, book, options.model)
    if scenario.file.writer is not None:
        calling.ready(scenario.file.writer)
    state = _state(book, options, scenario.file.task)
    if isinstance(rehearsing := make(), ModelEngine):
        rehearsing.rehearse(state, clock())
    where = places.all(scenario.name, options.trials)
    return iter([_job(scenario, book, make(), state, ledger, clock, options) for ledger in where])


def _recorded(  # noqa: PLR0913 - the parts of a job
    scenario: Scenario, book: Rulebook, options: Options, state: State, folder: Path, clock: Callable[[], cel.Timestamp]
) -> Iterator[Job]:
    recording = scenario.file.decide.recording
    assert recording is not None
    asking = {name for name, tool in book.toolset.tools.items() if tool.asks_person}
    for transcript in read(scenario.folder / recording.file, recording.format):
        task = transcript.task if options.task is None else options.task
        begins = State({**state.tree, "task": task}, state.origins)
        ledger = folder / f"{safe(transcript.id)}{ENDING}"
        yield _job(scenario, book, Recorded(transcript, asking), begins, ledger, clock, options)


def _job(  # noqa: PLR0913 - the parts of a job
    scenario: Scenario,
    book: Rulebook,
    engine: Engine,
    state: State,
    ledger: Path,
    clock: Callable[[], cel.Timestamp],
    options: Options,
) -> Job:
    return Job(scenario, book, engine, state, ledger, clock, options, scenario.replaced, scenario.added)


def refuse_writes(toolset: Toolset, options: Options) -> None:
    """Refuse trials of tools that have an effect outside, unless they are allowed.

    Raises:
        LedgerCliError: there are such tools.

    """
    real = [name for name, tool in toolset.tools.items() if tool.access == "write" and tool.acts]
    if real and not options.allow_writes:
        raise LedgerCliError(
            f"trials would run tools that have an effect each time: {', '.join(real)}",
            fix="--allow-writes, or `canned` results in the toolset",
        )


def clock_of(now: str | None) -> Callable[[], cel.Timestamp]:
    """Return what tells the time: always the one that is said, or the present."""
    if now is None:
        return present
    try:
        fixed = cel.Timestamp.parse(now)
    except cel.EvalError as error:
        raise LedgerCliError(f"{now!r} is no time: {error}", fix="write it as 2026-08-01T12:00:00Z") from error
    return lambda: fixed


def _state(book: Rulebook, options: Options, task: str) -> State:
    """Return the state that a run begins with, options laid over the scenario."""
    state = book.initial_state(task=options.task if options.task is not None else task)
    tree = state.tree
    for path, value in settings(book, options).items():
        tree = paths.put(tree, paths.parse(path), value)
    return State(tree, book.initial_state(facts=tree["facts"]).origins)


def settings(book: Rulebook, options: Options) -> dict[str, Any]:
    """Return what options change in a state: path → value.

    Raises:
        LedgerCliError: an option does not fit.

    """
    sets = dict(_setting(text, book) for text in options.sets)
    if options.max_steps is not None:
        sets["constraints.max_steps"] = options.max_steps
    return sets


def _setting(text: str, book: Rulebook) -> tuple[str, Any]:
    path, equals, value = text.partition("=")
    part, _, rest = path.partition(".")
    if not equals or not rest or part not in ("facts", "constraints", "flags"):
        raise LedgerCliError(
            f"--set {text}: a fact, constraint or flag is set as facts.x=VALUE", fix="--set facts.user_role=guest"
        )
    name = str(paths.parse(path)[1])
    known = book.vocabulary.names(part).union(LIMITS if part == "constraints" else ())
    if name not in known:
        near = cel.nearest(name, known)
        also = f"; there is {' or '.join(near)}" if near else ""
        raise LedgerCliError(f"--set {text}: no {part.removesuffix('s')} {name}{also}")
    try:
        parsed = orjson.loads(value)
    except orjson.JSONDecodeError:
        parsed = value
    number = isinstance(parsed, (int, float)) and not isinstance(parsed, bool)
    if part == "flags" and not isinstance(parsed, bool):
        raise LedgerCliError(f"--set {text}: a flag is true or false")
    if part == "constraints" and name in LIMITS and not (number and parsed >= 0):
        raise LedgerCliError(f"--set {text}: {name} is a number from 0")
    return path, parsed


class Places:
    """Where ledgers go."""

    def __init__(self, out: str | None, *, several: bool) -> None:
        self._out = None if out is None else Path(out)
        self._several = several
        self._folder = several or (out is not None and (out.endswith("/") or Path(out).is_dir()))
        self._taken: set[Path] = set()

    def one(self, name: str) -> Path:
        """Return where the only run of a scenario is written."""
        if self._out is None:
            return Path(FOLDER) / f"{_stamped(name)}{ENDING}"
        if not self._folder:
            return _new(self._out)
        if self._out.exists() and not self._out.is_dir():
            raise OutputExistsError(f"{self._out} exists and is no folder; several runs make a ledger each")
        return _new(self._free(self._out, name, ENDING))

    def all(self, name: str, trials: int | None) -> list[Path]:
        """Return where the runs of a scenario are written: the only one, or so many trials."""
        if trials is None:
            return [self.one(name)]
        folder = self.many(name)
        return [_new(folder / f"trial-{number}{ENDING}") for number in range(1, trials + 1)]

    def many(self, name: str) -> Path:
        """Return the folder for the runs of a scenario."""
        if self._out is None:
            return Path(FOLDER) / _stamped(name)
        if self._out.exists() and not self._out.is_dir():
            raise OutputExistsError(
                f"{self._out} exists and is no folder; a ledger is made for each transcript or trial"
            )
        return self._free(self._out, name, "") if self._several else self._out

    def _free(self, folder: Path, name: str, ending: str) -> Path:
        """Return a place that no other run of this command has."""
        place, number = folder / f"{safe(name)}{ending}", 1
        while place in self._taken:
            number += 1
            place = folder / f"{safe(name)}-{number}{ending}"
        self._taken.add(place)
        return place


def _new(place: Path) -> Path:
    if place.exists() or place.is_symlink():
        raise exists(place)
    return place


def _stamped(name: str) -> str:
    time = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
    return f"{safe(name)}-{time}-{''.join(secrets.choice('0123456789abcdefghjkmnpqrstvwxyz') for _ in range(4))}"


def safe(name: str) -> str:
    """Return a name that may stand in a folder: `/` becomes `-`."""
    return name.replace("/", "-").replace("\0", "-").lstrip(".") or "run"
