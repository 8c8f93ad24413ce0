"""The recorded steps that cases are about (`at: LEDGER@STEP`): what was proposed, and what was known just before.

Invariants:
* Each ledger is read once, however many cases it has.
* The constraints are those of then, with the defaults of the packs under test where nobody had set others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ledgercli import cel
from ledgercli.addresses import no_such_step
from ledgercli.cases import CaseModel
from ledgercli.documents import Place
from ledgercli.errors import LedgerCliError
from ledgercli.history import EVERYTHING, History
from ledgercli.past import Follower
from ledgercli.records import Proposal
from ledgercli.rulebook import Rulebook
from ledgercli.shelf import Shelf
from ledgercli.state import State


@dataclass(frozen=True, slots=True)
class Before:
    """A recorded proposal and what it was judged in."""

    proposal: Proposal
    state: State
    history: History
    now: cel.Timestamp


class Recordings:
    """The recorded steps that the cases of one file name.

    Arguments:
        folder: what their paths are relative to.
        rules: what judges them now.
        cases: the cases.

    """

    def __init__(self, folder: Path, rules: Rulebook, cases: Sequence[tuple[Place, CaseModel]]) -> None:
        self._folder, self._rules = folder, rules
        self._wanted: dict[str, set[int]] = {}
        for _, case in cases:
            if case.at is not None and case.skip is None:
                file, _, step = case.at.rpartition("@")
                self._wanted.setdefault(file, set()).add(int(step))
        self._read: dict[str, dict[int, Before] | LedgerCliError] = {}

    def before(self, address: str) -> Before:
        """Return what a step was judged in.

        Raises:
            LedgerCliError: there is no such step, or the ledger cannot be read.

        """
        file, _, step = address.rpartition("@")
        if file not in self._read:
            try:
                self._read[file] = self._steps(file)
            except LedgerCliError as error:
                self._read[file] = error
        read = self._read[file]
        if isinstance(read, LedgerCliError):
            raise read
        if int(step) not in read:
            raise LedgerCliError(f"{address} is no call that was judged")
        return read[int(step)]

    def _steps(self, file: str) -> dict[int, Before]:
        path, wanted = self._folder / file, self._wanted[file]
        follower = Follower(path, Shelf(), keeps=lambda _opening: EVERYTHING)
        found: dict[int, Before] = {}
        last = 0
        for books, record in follower.judged():
            last = max(last, record["step"])
            if record["step"] in wanted:
                now = cel.Timestamp.parse(record["now"])
                state = state_under(self._rules, books.state, follower.opening, books.rules)
                found[record["step"]] = Before(Proposal.from_json(record["action"]), state, books.history.copy(), now)
        steps = follower.books.steps if follower.books else last
        for step in sorted(wanted - found.keys()):
            if not 1 <= step <= steps:
                raise no_such_step(file, steps)
        return found


def state_under(rules: Rulebook, state: State, opening: Mapping[str, Any], before: Rulebook) -> State:
    """Return the state of then under the names and defaults of now.

    Arguments:
        rules: what judges now.
        state: the state of then.
        opening: the first line of its ledger.
        before: what judged then.

    """
    tree = dict(state.tree)
    vocabulary = rules.vocabulary
    tree["facts"] = {**{name: {} for name in vocabulary.records}, **state.tree["facts"]}
    tree["flags"] = {**vocabulary.flags, **state.tree["flags"]}
    then = {name: value for pack in before.packs for name, value in pack.file.constraints.items()}
    began, constraints = opening["state"]["constraints"], dict(state.tree["constraints"])
    now = {name: value for pack in rules.packs for name, value in pack.file.constraints.items()}
    free = {name for name in now if state.origin(("constraints", name)) is None}
    constraints |= {name: now[name] for name in free if began.get(name) == then.get(name)}
    tree["constraints"] = constraints
    return State(tree, state.origins)
