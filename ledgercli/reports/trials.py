"""Trials for people: a line for each as it ends, then what they say together; the same as data and as Markdown.

Invariants:
* A rate is written with what it is of; an error of the provider and what an interruption cut off stand apart.
* What was not as expected is named as the scenario writes it, `expect.facts.x`, with what was wanted and what came.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from ledgercli.reports import values
from ledgercli.reports.cells import WIDTH, cells, pad
from ledgercli.reports.markdown import code, table, text
from ledgercli.reports.screen import Screen
from ledgercli.reports.summary import counted
from ledgercli.tally import Usage
from ledgercli.trials import Trial, Trials

_LABEL: Final = 9  # cells of `passed   `
_INDENT: Final = " " * 11
_TOLD: Final = 18  # cells of `7 steps, 1 denied`, with some room
_WORDS: Final = {"pass": "pass", "fail": "FAIL", "error": "error"}


# ---- as they run


def header(screen: Screen, trials: Trials) -> Iterator[str]:
    """Yield what is tried."""
    engine = trials.engine
    who = str(engine["model"]) if "model" in engine else f"engine {engine['kind']}"
    heat = engine.get("temperature")
    told = [trials.scenario, counted(trials.of, "trial"), who, *([] if heat is None else [f"temperature {heat}"])]
    yield screen.safe("  ".join(told))
    yield ""


def trial_lines(screen: Screen, trial: Trial) -> Iterator[str]:
    """Yield a trial, and below it why it did not pass."""
    tally, word = trial.tally, _WORDS[trial.came]
    told = f"{tally.steps:>2,} {'step' if tally.steps == 1 else 'steps'}, {tally.outcomes['denied']:,} denied"
    usage = Usage.of(tally.asked)
    tokens = "" if usage is None else f"{usage.tokens:>8,} tokens"
    shown = screen.paint(word, None if trial.came == "pass" else "red") + " " * (6 - len(word))
    yield f"{trial.number:>3} {shown}{pad(told, _TOLD) if tokens else told}{tokens}"
    if trial.came == "error":
        yield f"{_INDENT}error  {screen.safe(str(trial.ended.error))}"
    yield from (f"{_INDENT}{line}" for line in _unmet(screen, trial))


def _unmet(screen: Screen, trial: Trial) -> Iterator[str]:
    why = "" if trial.why is None else f" ({screen.safe(trial.why.rpartition('/')[2])})"
    for path, wanted, got in trial.unmet:
        if path == "status":
            yield f"status  wanted {wanted}, got {got}{why}"
        else:
            shown = (screen.cut(values.parts(value), WIDTH) for value in (wanted, got))
            yield f"expect.{screen.safe(path)}  wanted {next(shown)}, got {next(shown)}"


# ---- together


def summary(screen: Screen, trials: Trials, least: float | None = None, *, verbose: bool = False) -> Iterator[str]:
    """Yield what the trials say together.

    Arguments:
        screen: where it is shown.
        trials: the trials.
        least: the rate that is asked for, if one is.
        verbose: name every rule that denied.

    """
    yield ""
    if trials.interrupted:
        yield f"{pad('stopped', _LABEL)}{len(trials.done):,} of {counted(trials.of, 'trial')}"
    yield from _wrapped("passed", [f"{trials.passed:,} of {len(trials.counted):,}", *_rates(trials)])
    if trials.errors:
        yield f"{pad('errors', _LABEL)}{counted(len(trials.errors), 'trial')}, in no rate: the engine failed"
    if trials.steps is not None:
        yield f"{pad('steps', _LABEL)}{_steps(trials.steps)}"
    yield from _denied(screen, trials, verbose=verbose)
    if (usage := trials.usage) is not None:
        yield screen.safe(f"{pad('cost', _LABEL)}{cost(usage)}")
    if trials.begun:
        yield pad("ledgers", _LABEL) + screen.paint(screen.safe(ledgers(trials)), "dim")
    if least is not None and trials.counted and not trials.meets(least):
        yield f"{screen.paint('FAIL', 'red')} --min-pass {least:g}: pass^1 is {_rate(trials.rates[0])}"


def write_next(screen: Screen, trials: Trials) -> None:
    """Say on stderr what to look at: one that failed beside one that passed."""
    firsts = [next((str(one.ledger) for one in trials.done if one.came == came), None) for came in ("fail", "pass")]
    if all(firsts):
        screen.line(screen.safe(f"next: ledger diff {' '.join(shlex.quote(str(one)) for one in firsts)}"))


def ledgers(trials: Trials) -> str:
    """Return where the ledgers are: `DIR/trial-{1..5}.ledger.jsonl`."""
    first = trials.first or ""
    return first if trials.begun == 1 else re.sub(r"trial-1(?=\.[a-z.]*\Z)", f"trial-{{1..{trials.begun}}}", first)


def cost(usage: Usage) -> str:
    """Return tokens and dollars: `18,441 tokens, $0.00 (no price known for m)`."""
    known = f" (no price known for {', '.join(usage.unpriced)})" if usage.unpriced else ""
    return f"{usage.tokens:,} tokens, ${usage.cost or 0:.2f}{known}"


def _rates(trials: Trials) -> Iterator[str]:
    return (f"pass^{k} {_rate(rate)}" for k, rate in enumerate(trials.rates, 1))


def _rate(rate: float) -> str:
    if rate in (0, 1):
        return f"{rate:.0f}"
    return "<0.01" if rate < 0.005 else ">0.99" if rate >= 0.995 else f"{rate:.2f}"


def _steps(steps: tuple[int, float, int]) -> str:
    least, middle, most = steps
    return f"{least:,} each" if least == most else f"{least:,} to {most:,}, median {middle:g}"


def _denied(screen: Screen, trials: Trials, *, verbose: bool) -> Iterator[str]:
    every = trials.denials.most_common()
    named = [f"{screen.safe(rule.rpartition('/')[2])} ({number:,})" for rule, number in every]
    most = f", most by {named[0]}" if named else ""
    yield f"{pad('denied', _LABEL)}{trials.denied:,} of {counted(trials.proposals, 'proposal')}{most}"
    yield from (" " * _LABEL + name for name in (named[1:] if verbose else ()))


def _wrapped(label: str, parts: Sequence[str]) -> Iterator[str]:
    """Yield a line of parts that are never broken; further lines stand below the first part."""
    line = pad(label, _LABEL) + parts[0]
    gap = "   "
    for part in parts[1:]:
        if cells(line) + len(gap) + cells(part) > WIDTH:
            yield line
            line, gap = " " * _LABEL, ""
        line, gap = line + gap + part, "  "
    yield line


# ---- other forms


def to_json(trials: Trials) -> dict[str, Any]:
    """Return the trials of a scenario as data."""
    steps, usage = trials.steps, trials.usage
    return {
        "scenario": trials.scenario,
        "engine": dict(trials.engine),
        "trials": trials.of,
        "done": len(trials.done),
        "interrupted": trials.interrupted,
        "counted": len(trials.counted),
        "passed": trials.passed,
        "errors": len(trials.errors),
        "pass": {str(k): rate for k, rate in enumerate(trials.rates, 1)},
        "proposals": trials.proposals,
        "denied": trials.denied,
        "denied_by": dict(sorted(trials.denials.items())),
        "steps": None if steps is None else dict(zip(("least", "median", "most"), steps, strict=True)),
        "usage": None if usage is None else usage.to_json(),
        "runs": [trial_json(trial) for trial in trials.done],
    }


def trial_json(trial: Trial) -> dict[str, Any]:
    """Return one trial as data."""
    usage = Usage.of(trial.tally.asked)
    return {
        "trial": trial.number,
        "came": trial.came,
        "status": trial.ended.status,
        "limit": trial.ended.limit,
        "error": trial.ended.error,
        "answer": trial.ended.answer,
        "ledger": str(trial.ledger),
        **trial.tally.to_json(),
        "usage": None if usage is None else usage.to_json(),
        "unmet": [{"path": path, "wanted": wanted, "got": got} for path, wanted, got in trial.unmet],
    }


def markdown(trials: Trials) -> Iterator[str]:
    """Yield a section with a table of the trials."""
    yield f"## {text(trials.scenario)}: {trials.passed:,} of {counted(len(trials.counted), 'trial')} passed"
    yield ""
    if trials.rates:
        yield text(", ".join(_rates(trials)))
        yield ""
    yield from table(("trial", "came", "steps", "denied", "tokens", "not as expected"), _rows(trials.done))


def _rows(done: Iterable[Trial]) -> Iterator[list[str]]:
    for trial in done:
        tally, usage = trial.tally, Usage.of(trial.tally.asked)
        tokens = "" if usage is None else f"{usage.tokens:,}"
        why = [f"{code(path)} wanted {_cell(wanted)}, got {_cell(got)}" for path, wanted, got in trial.unmet]
        if trial.came == "error":
            why = [text(str(trial.ended.error))]
        counts = (str(trial.number), trial.came, f"{tally.steps:,}", f"{tally.outcomes['denied']:,}", tokens)
        yield [*counts, "<br>".join(why)]


def _cell(value: Any) -> str:
    return code(values.shown(value, WIDTH))
