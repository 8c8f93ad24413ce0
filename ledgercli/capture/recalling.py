"""Recorded steps as they were judged, to be made into cases: what was proposed, known and done before.

Invariants:
* Each ledger is read once, however many of its steps are wanted.
* The rules are those of then, enforced also where the run was in shadow mode, or with other packs in their place.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from ledgercli import cel, ledger, paths
from ledgercli.addresses import no_such_step
from ledgercli.books import Books
from ledgercli.casework.recorded import state_under
from ledgercli.errors import LedgerCliError
from ledgercli.history import EVERYTHING
from ledgercli.past import Follower
from ledgercli.records import Proposal, Verdict
from ledgercli.rulebook import Rulebook
from ledgercli.shelf import Shelf
from ledgercli.state import State
from ledgercli.toolset import USER
from ledgercli.why.situations import Situation

Past = Sequence[Mapping[str, Any]]


@dataclass(frozen=True, eq=False)
class Step:
    """A recorded step as it was judged.

    Arguments:
        path: its ledger.
        number: which step it is.
        rules: what it is judged by, enforced.
        situation: what it was judged in.
        past: the steps before it, as a case writes them.
        recorded: the verdict that the ledger tells.
        shadow: whether that is of a run in which nothing was enforced.
        books: the state of then, and the first line of its ledger, for other rules.

    """

    path: str
    number: int
    rules: Rulebook
    situation: Situation
    past: Past
    recorded: Verdict
    shadow: bool
    books: tuple[State, Mapping[str, Any], Rulebook]

    @property
    def address(self) -> str:
        """FILE@STEP."""
        return f"{self.path}@{self.number}"

    def under(self, rules: Rulebook) -> Situation:
        """Return what it was judged in, as other rules see it."""
        state, opening, then = self.books
        seen = state_under(rules, state, opening, then)
        one = self.situation
        return Situation(one.proposal, seen, one.history, one.now)


def steps(path: str, wanted: set[int], then: Shelf | None = None, now: Shelf | None = None) -> Iterator[Step]:
    """Yield the wanted steps of a ledger.

    Arguments:
        path: the ledger.
        wanted: their numbers.
        then: the rulebooks of what ledgers carry, where several are read.
        now: what judges the steps; left out: the packs that the ledger carries, enforced.

    Raises:
        LedgerCliError: there is no such step, or the ledger cannot be read.

    """
    follower = Follower(path, then or Shelf(), keeps=lambda _opening: EVERYTHING)
    past, found, last = _Pasts(path), set[int](), 0
    for books, record in follower.judged():
        number = record["step"]
        last = max(last, number)
        if number in wanted and number not in found:
            found.add(number)
            before = past.until(record.get("judged", record["seq"] - 1))
            yield _step(path, _rules(follower, books, now), follower, books, record, before)
            if found == wanted:
                return
    total = follower.books.steps if follower.books else last
    for number in sorted(wanted - found):
        if 1 <= number <= total:
            raise LedgerCliError(f"{path}@{number} is no call that was judged")
        raise no_such_step(path, total)


def _rules(follower: Follower, books: Books, now: Shelf | None) -> Rulebook:
    if now is None and follower.opening.get("mode") != "shadow":
        return books.rules
    return (now or Shelf()).changed(follower.opening, follower.later).rules


def _step(  # noqa: PLR0913 - a step's parts, each by its name
    path: str, rules: Rulebook, follower: Follower, books: Books, record: Mapping[str, Any], past: Past
) -> Step:
    state = state_under(rules, books.state, follower.opening, books.rules)
    now = cel.Timestamp.parse(record["now"])
    situation = Situation(Proposal.from_json(record["action"]), state, books.history.copy(), now)
    return Step(
        path=path,
        number=record["step"],
        rules=rules,
        situation=situation,
        past=past,
        recorded=Verdict.from_json(record["verdict"]),
        shadow=follower.opening.get("mode") == "shadow",
        books=(books.state, follower.opening, books.rules),
    )


class _Pasts:
    """The steps of a ledger as a case writes past ones; of its lines no more are read than are asked for."""

    def __init__(self, path: str) -> None:
        self._entries = iter(ledger.read(path))
        self._seen: list[tuple[int, Mapping[str, Any]]] = []
        self._read = -1

    def until(self, seq: int) -> Past:
        """Return the steps up to a line."""
        while self._read < seq:
            entry = next(self._entries)
            self._read = entry.seq
            past = _remembered(entry.record) if entry.kind == "step" else None
            if past is not None:
                self._seen.append((entry.seq, past))
        return [past for at, past in self._seen if at <= seq]


def _remembered(record: Mapping[str, Any]) -> dict[str, Any] | None:
    outcome, result = record["outcome"], record.get("result") or {}
    tool, data = record["action"]["tool"], result.get("data")
    if record["verdict"] is None:
        return {"tool": USER, "data": data}
    if outcome == "denied":
        return {"tool": tool, "denied": True}
    if outcome not in ("ok", "error"):
        return None
    said = {"tool": tool, "args": record["action"]["args"], "success": outcome == "ok", "data": data}
    return {key: value for key, value in said.items() if not (key == "success" and value) and value is not None}


def plain(value: Any) -> Any:
    """Return a value of a state as plain JSON data."""
    return orjson.loads(orjson.dumps(value, paths.plain))
