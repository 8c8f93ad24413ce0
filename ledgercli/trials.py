"""Trials: one scenario run several times, and what that says of it.

Invariants:
* Pure arithmetic, but for `Trials.run`, which carries the runs out and yields each as it ends, in order.
* A run that an error of the provider ended says nothing of the scenario: it is counted apart, in no rate.
* What an interruption cut off is no trial; its ledger is closed as `interrupted` all the same.
* Nobody is asked anything: who would answer the same question ten times?
"""

from __future__ import annotations

import contextlib
import queue
import sys
import threading
import time
from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from math import comb
from pathlib import Path
from statistics import median
from typing import Any, Final, Literal, TypeAlias

from ledgercli.errors import ExitCode, LedgerCliError
from ledgercli.expectations import Unmet
from ledgercli.loop import Approver, CtrlC, Ended
from ledgercli.runs import Job
from ledgercli.tally import Tally, Usage

Came: TypeAlias = Literal["pass", "fail", "error", "interrupted"]
_PASSED: Final = "completed"
_PATIENCE: Final = 1.0  # seconds that Ctrl-C waits for runs to end by themselves


def pass_hat(trials: int, passed: int, k: int) -> float:
    """Return pass^k: how likely k trials of these, chosen at random, all passed.

    It is C(passed, k) / C(trials, k), the unbiased estimate of tau-bench (Yao, Shinn, Razavi and Narasimhan, "τ-bench",
    arXiv:2406.12045, section 4; `display_metrics` of `tau_bench/run.py`).

    Arguments:
        trials: how many there are.
        passed: how many of them passed.
        k: from 1 to `trials`.

    """
    return comb(passed, k) / comb(trials, k)


@dataclass(frozen=True, slots=True)
class Trial:
    """One run of the scenario.

    Arguments:
        number: which, from 1.
        ledger: its ledger.
        ended: how it ended.
        came: whether that is a pass.
        unmet: what was not as expected; without an `expect` that it should have completed.
        tally: its counts.

    """

    number: int
    ledger: Path
    ended: Ended
    came: Came
    unmet: tuple[Unmet, ...]
    tally: Tally

    @property
    def why(self) -> str | None:
        """What ended it, where the status alone does not say that: a limit, or the rule that halts."""
        return self.ended.limit or (self.tally.halting if self.ended.status == "halted" else None)


@dataclass(slots=True)
class Trials:
    """The trials of one scenario.

    Arguments:
        scenario: its name.
        engine: who proposes, as the ledgers say it.
        of: how many there should be.

    Its `done` are those that ended by themselves, `begun` is the number of the last ledger and `first` the first one,
    `interrupted` whether Ctrl-C ended it.

    """

    scenario: str
    engine: Mapping[str, Any]
    of: int
    done: list[Trial] = field(default_factory=list)
    begun: int = 0
    interrupted: bool = False
    first: str | None = None

    # ---- what they say

    @property
    def counted(self) -> list[Trial]:
        """Those that say something of the scenario."""
        return [trial for trial in self.done if trial.came != "error"]

    @property
    def errors(self) -> list[Trial]:
        """Those that an error of the provider ended."""
        return [trial for trial in self.done if trial.came == "error"]

    @property
    def passed(self) -> int:
        """How many passed."""
        return sum(trial.came == "pass" for trial in self.done)

    @property
    def rates(self) -> list[float]:
        """pass^1 to pass^n, of those that are counted."""
        trials = len(self.counted)
        return [pass_hat(trials, self.passed, k) for k in range(1, trials + 1)]

    @property
    def proposals(self) -> int:
        """How many calls were judged."""
        return sum(trial.tally.steps for trial in self.counted)

    @property
    def denials(self) -> Counter[str]:
        """How many denials there were by each rule."""
        return sum((trial.tally.denials for trial in self.counted), Counter())

    @property
    def denied(self) -> int:
        """How many calls were denied."""
        return sum(trial.tally.outcomes["denied"] for trial in self.counted)

    @property
    def steps(self) -> tuple[int, float, int] | None:
        """The least, the median and the most steps of a trial; None if there is none."""
        steps = [trial.tally.steps for trial in self.counted]
        return (min(steps), median(steps), max(steps)) if steps else None

    @property
    def usage(self) -> Usage | None:
        """What all of them took of a model, those that failed included."""
        return Usage.of(asked for trial in self.done for asked in trial.tally.asked)

    def meets(self, least: float | None) -> bool:
        """Whether enough passed: all, or a rate of `least`."""
        rates = self.rates
        return bool(rates) and rates[0] >= (1 if least is None else least)

    def exit_code(self, least: float | None = None) -> ExitCode:
        """Return the exit code; where too few passed, that counts more than an error of the provider."""
        if self.interrupted:
            return ExitCode.INTERRUPTED
        if self.counted and not self.meets(least):
            return ExitCode.NO
        return ExitCode.OUTSIDE if self.errors else ExitCode.YES

    # ---- carrying them out

    def run(self, jobs: Iterable[Job], approver: Approver, workers: int = 1) -> Generator[Trial, None, None]:
        """Carry the runs out and yield each that ends by itself, in order; Ctrl-C ends all that are under way.

        Arguments:
            jobs: the runs, ready to go.
            approver: who approves.
            workers: how many may be under way at once.

        """
        every = list(jobs)
        self.first = str(every[0].ledger) if every else None
        numbered = enumerate(every, 1)
        trials = _at_once(numbered, approver, workers) if workers > 1 else _in_turn(numbered, approver)
        try:
            for trial in trials:
                self.begun = max(self.begun, trial.number)
                if trial.came == "interrupted":
                    self.interrupted = True
                else:
                    self.done.append(trial)
                    yield trial
        except KeyboardInterrupt:
            self.interrupted = True


def _in_turn(jobs: Iterable[tuple[int, Job]], approver: Approver) -> Iterator[Trial]:
    for number, job in jobs:
        trial = _tried(number, job, approver)
        yield trial
        if trial.came == "interrupted":
            return


def _tried(number: int, job: Job, approver: Approver, interrupt: CtrlC | None = None) -> Trial:
    tally = Tally()
    ended = job.run(None, approver, tally.see, interrupt)
    if ended.status in ("error", "interrupted"):
        came: Came = "error" if ended.status == "error" else "interrupted"
        return Trial(number, job.ledger, ended, came, (), tally)
    unmet = job.unmet(ended)
    if job.expect is None and ended.status != _PASSED:
        unmet = [("status", _PASSED, ended.status)]
    return Trial(number, job.ledger, ended, "fail" if unmet else "pass", tuple(unmet), tally)


# ---- several at once

_Answer: TypeAlias = "tuple[int, Trial | BaseException]"


class _Workers:
    """Threads that carry out runs: what a run waits for is a model or a tool, not this processor."""

    def __init__(self, jobs: Iterable[tuple[int, Job]], approver: Approver, workers: int) -> None:
        self.left = workers
        self._answers: queue.SimpleQueue[_Answer | None] = queue.SimpleQueue()
        self._jobs, self._approver = iter(jobs), approver
        self._lock = threading.Lock()
        self._under_way: dict[int, tuple[Job, CtrlC]] = {}
        self._stopped = False
        for _ in range(workers):
            threading.Thread(target=self._work, daemon=True).start()  # nobody can end one that waits

    def take(self, timeout: float | None = None) -> Iterator[Trial]:
        """Wait for the next answer, and yield it if it is a trial.

        Raises:
            queue.Empty: there was none in time.

        """
        answer = self._answers.get(timeout=timeout)
        if answer is None:
            self.left -= 1
        elif isinstance(answer[1], BaseException):
            raise answer[1]
        else:
            yield answer[1]

    def stop(self) -> Iterator[Trial]:
        """Begin no more, end what is under way, and yield what came of it.

        A run ends at its next step; one that waits for longer is closed from here, and forgotten.
        """
        with self._lock:
            self._stopped = True
            for _, interrupt in self._under_way.values():
                interrupt.come()
        until = time.monotonic() + _PATIENCE
        with contextlib.suppress(queue.Empty):
            while self.left:
                yield from self.take(max(0, until - time.monotonic()))
        with self._lock:
            for number, (job, _) in self._under_way.items():
                job.interrupt()
                yield _cut_off(number, job)

    def _work(self) -> None:
        for number, job in iter(self._next, None):
            answer = self._one(number, job)
            with self._lock:
                del self._under_way[number]
            self._answers.put((number, answer))
        self._answers.put(None)

    def _next(self) -> tuple[int, Job] | None:
        with self._lock:
            following = None if self._stopped else next(self._jobs, None)
            if following is not None:
                self._under_way[following[0]] = following[1], CtrlC()
            return following

    def _one(self, number: int, job: Job) -> Trial | BaseException:
        try:
            return _tried(number, job, self._approver, self._under_way[number][1])
        except KeyboardInterrupt:  # it came when the run had ended, and nobody knows how
            return _cut_off(number, job)
        except BaseException as error:  # noqa: BLE001 - whoever asked for the trials gets it
            return error


def _cut_off(number: int, job: Job) -> Trial:
    return Trial(number, job.ledger, Ended("interrupted"), "interrupted", (), Tally())


def _at_once(jobs: Iterable[tuple[int, Job]], approver: Approver, workers: int) -> Iterator[Trial]:
    with contextlib.redirect_stdout(sys.stderr):  # each tool does so for itself, which threads cannot
        running = _Workers(jobs, approver, workers)
        known: dict[int, Trial] = {}
        wanted = 1
        try:
            while running.left:
                known.update((trial.number, trial) for trial in running.take())
                while wanted in known:
                    yield known.pop(wanted)
                    wanted += 1
        except KeyboardInterrupt:
            known.update((trial.number, trial) for trial in running.stop())
            yield from (known[number] for number in sorted(known))
            raise
        except BaseException:
            with contextlib.suppress(LedgerCliError):  # the first failure is told
                list(running.stop())
            raise
