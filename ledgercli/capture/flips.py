"""The flips of a what-if replay, as `ledger replay --pack … --format jsonl` writes them, made recorded steps again.

Invariants:
* What the packs say now is what the file says; if they have changed since, that is an error.
* A flip that nobody can tell, since redaction hid a value, is no case; it is told.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import orjson

from ledgercli import sources
from ledgercli.capture.recalling import Step, steps
from ledgercli.errors import LedgerCliError, UnreadableInputError
from ledgercli.shelf import Shelf

_SCHEMA: Final = "whatif/1"
_CANNOT_TELL: Final = "cannot-tell"


@dataclass(frozen=True, slots=True)
class Flip:
    """One line.

    Arguments:
        line: its number.
        ledger: the ledger.
        step: the step.
        change: what has changed.
        effect: what the packs say now.
        packs: name of each pack that is another → its file; None: it is left out.

    """

    line: int
    ledger: str
    step: int
    change: str
    effect: str
    packs: tuple[tuple[str, str | None], ...]


@dataclass(frozen=True, slots=True)
class Left:
    """A line of which no case is made, and why."""

    address: str
    why: str


def read(name: str) -> tuple[list[Flip], list[Left]]:
    """Return the flips of a file, each step once, and what of it is none.

    Raises:
        UnreadableInputError: it cannot be read, or a line is none of a what-if replay.

    """
    flips: dict[tuple[str, int], Flip] = {}
    left: list[Left] = []
    for number, line in enumerate(sources.read(name).text.splitlines(), 1):
        if not line.strip():
            continue
        record = _record(number, line)
        if record is None:
            raise UnreadableInputError(
                f"{name}:{number} is no flip of a what-if replay",
                fix="ledger replay LEDGER... --pack FILE --format jsonl > whatif.jsonl",
            )
        if isinstance(record, Left):
            left.append(record)
        elif record.change == _CANNOT_TELL:
            left.append(Left(f"{record.ledger}@{record.step}", "the verdict hangs on what its ledger has redacted"))
        else:
            flips.setdefault((record.ledger, record.step), record)
    if not flips:
        raise UnreadableInputError(f"{name} has no flips that could be cases")
    return list(flips.values()), left


def _record(number: int, line: str) -> Flip | Left | None:
    """Take a line apart; None: it is of something else."""
    try:
        said: Any = orjson.loads(line)
        if "error" in said and "change" not in said:
            return Left(str(said["ledger"]), str(said["error"]))
        packs = tuple((str(key), None if file is None else str(file)) for key, file in said["packs"].items())
        flip = Flip(number, str(said["ledger"]), int(said["step"]), said["change"], said["replayed"], packs)
        return flip if said["schema"] == _SCHEMA else None
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def judged(name: str, flips: Sequence[Flip]) -> Iterator[Step]:
    """Yield each flip as a step that is judged by the packs of now.

    Raises:
        LedgerCliError: a ledger cannot be read, or the packs say something else than the file.

    """
    then = Shelf()
    shelves: dict[tuple[tuple[str, str | None], ...], Shelf] = {}
    for ledger in dict.fromkeys(flip.ledger for flip in flips):
        own = {flip.step: flip for flip in flips if flip.ledger == ledger}
        packs = next(iter(own.values())).packs
        if packs not in shelves:
            shelves[packs] = _shelf(dict(packs))
        for step in steps(ledger, set(own), then, shelves[packs]):
            effect = step.situation.judged(step.rules.enforcer).effect
            if effect != own[step.number].effect:
                raise LedgerCliError(
                    f"{name}:{own[step.number].line} says {own[step.number].effect} of {step.address}, the packs say"
                    f" {effect}",
                    fix="ledger replay once more, if they have changed since",
                )
            yield step


def _shelf(packs: Mapping[str, str | None]) -> Shelf:
    return Shelf([file for file in packs.values() if file is not None], only_packs=None in packs.values())
