"""A prompter that has taken in a recorded run up to a step, with the state and history there.

Invariants:
* The rules are those that the ledger carries; of a run that a model proposed in, the settings too, unless they are said
  otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from ledgercli import cel, ledger
from ledgercli.addresses import no_such_step
from ledgercli.gathering import one
from ledgercli.history import History
from ledgercli.past import Follower
from ledgercli.prompting.prompter import Prompter
from ledgercli.rulebook import Rulebook
from ledgercli.shelf import Shelf
from ledgercli.state import State
from ledgercli.story import is_there

_SETTINGS: Final = ("offer", "select", "calls")
_BEHIND: Final = ("checkpoint", "summary")  # lines that stand behind a step before the next one is proposed
_TEMPLATE: Final = "template_text"  # of the settings that a ledger carries


@dataclass(frozen=True, slots=True)
class Recorded:
    """A moment of a run.

    Arguments:
        prompter: has taken in all lines up to it.
        rulebook: the tools and rules.
        state: what is known.
        history: the steps up to it.
        now: the time of the last line.
        step: the number of the latest step.
        engine: who proposed, as the ledger's first line says it.

    """

    prompter: Prompter
    rulebook: Rulebook
    state: State
    history: History
    now: cel.Timestamp
    step: int
    engine: Mapping[str, Any]


def recorded(path: str, step: int | None = None, **settings: Any) -> Recorded:
    """Read a ledger up to a step, or to its end.

    Arguments:
        path: the ledger.
        step: the step; None: the latest, 0: before the first.
        settings: those of a `Prompter`; what is None is as the ledger says.

    Raises:
        LedgerCliError: there is no such ledger or step, the ledger is damaged, or what it carries does not load.

    """
    follower = Follower(one(path), Shelf(), keeps=None)
    prompter: Prompter | None = None
    now = ""
    steps = 0
    there = False
    for entry in ledger.read(path):
        if there and entry.kind not in _BEHIND:
            break
        follower.see(entry)
        assert follower.books is not None, "the first line opens the books"
        if prompter is None:
            prompter = Prompter(follower.books.rules, **_settings(entry.record["engine"], settings))
        prompter.take(entry.record)
        now = entry.record.get("now", now or entry.record["at"])
        steps = follower.books.steps
        there = there or (step is not None and is_there(entry.record, step, follower.opening))
    if step is not None and not there:
        raise no_such_step(path, steps)
    assert prompter is not None, "an empty ledger is refused"
    books = follower.books
    assert books is not None, "so is one without a first line"
    engine = follower.opening["engine"]
    return Recorded(prompter, books.rules, books.state, books.history, cel.Timestamp.parse(now), step or steps, engine)


def _settings(engine: Mapping[str, Any], said: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that are in force: those that are said over those that the ledger carries."""
    found = {key: engine[key] for key in _SETTINGS if key in engine and engine[key] != "auto"}
    if _TEMPLATE in engine:
        found["template"] = engine[_TEMPLATE]
    return {**found, **{key: value for key, value in said.items() if value is not None}}
