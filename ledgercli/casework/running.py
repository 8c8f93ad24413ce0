"""The cases of many files, judged file by file, in one process or several.

Invariants:
* Results come in the order of the files, whatever the number of processes.
* A file that does not load is a result too; the others are judged all the same.
* What coverage costs is paid only where it is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial

from ledgercli import cel, processes
from ledgercli.casework.coverage import Coverage
from ledgercli.casework.finding import Found
from ledgercli.casework.groups import Group, Groups
from ledgercli.casework.judging import Judge
from ledgercli.casework.observing import Observer
from ledgercli.casework.outcomes import Judged, Outcome
from ledgercli.casework.preparing import Preparer, Ready, Unready
from ledgercli.errors import LedgerCliError
from ledgercli.intake import present

_LONGEST = 10_000  # characters of a name that a pattern is asked about


@dataclass(frozen=True, slots=True)
class Asked:
    """What is asked of the cases.

    Arguments:
        chosen: a regular expression that the name of a case must hold; None: all are judged.
        fail_fast: stop after the first case that does not pass.
        coverage: count what they show of the rules.

    """

    chosen: str | None = None
    fail_fast: bool = False
    coverage: bool = False


def run(found: Found, asked: Asked, jobs: int = 1) -> Iterator[Judged]:
    """Judge the cases of all files.

    Raises:
        LedgerCliError: the regular expression cannot be used.

    """
    chooser(asked.chosen)  # what cannot be used is refused before anything is judged
    make = partial(_runner, tuple(found.cases), tuple(found.scenarios), asked)
    for judged in processes.spread(found.files, make, jobs):
        yield judged
        if asked.fail_fast and any(one.came in ("failed", "error") for one in judged.outcomes):
            return


def chooser(pattern: str | None) -> Callable[[str], bool]:
    """Return what tells whether a case is meant.

    Raises:
        LedgerCliError: the pattern is none, or not one that is safe on any name.

    """
    if pattern is None:
        return lambda _name: True
    from ledgercli.cel.regex import compile_pattern

    try:
        compiled = compile_pattern(pattern)
    except (cel.EvalError, ValueError) as error:
        raise LedgerCliError(f"--run: {error}") from None
    longest = min(compiled.longest, _LONGEST)
    return lambda name: bool(compiled.search(name[: int(longest)]))


def _runner(cases: tuple[str, ...], scenarios: tuple[str, ...], asked: Asked) -> Callable[[str], Judged]:
    groups, now, chosen = Groups(cases, scenarios), present(), chooser(asked.chosen)

    def judged(name: str) -> Judged:
        group, problems = groups.of(name)
        result = Judged(name, problems=problems)
        if group is not None and result.loaded:
            _judge(group, now, asked, chosen, result)
        return result

    return judged


def _judge(group: Group, now: cel.Timestamp, asked: Asked, chosen: Callable[[str], bool], result: Judged) -> None:
    judge = Judge(group)
    observer = Observer(group.rules, group.packs) if asked.coverage else None
    for case in Preparer(group, now).all():
        if chosen(case.name):
            outcome = judged_case(judge, case, observer)
            result.outcomes.append(outcome)
            if asked.fail_fast and outcome.came in ("failed", "error"):
                break
    result.coverage = observer.coverage if observer else None


def judged_case(judge: Judge, case: Ready | Unready, observer: Observer | None = None) -> Outcome:
    """Judge one case."""
    if isinstance(case, Unready):
        return judge.outcome(case)
    verdict = judge.verdict(case)
    outcome = judge.outcome(case, verdict)
    if observer is not None and outcome.came == "passed":
        observer.see(case.situation, verdict)
    return outcome


def together(results: Iterable[Judged]) -> Coverage:
    """Return what the cases of all files show."""
    whole = Coverage()
    for one in results:
        if one.coverage is not None:
            whole.add(one.coverage)
    return whole
