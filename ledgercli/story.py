"""The story of one ledger, followed line by line: its state, its steps, how it ended.

Invariants:
* Light: no pack is compiled and nothing is judged; the state is what `open` holds and the diffs make of it.
* The lines themselves are not kept, so that a long ledger takes the memory of its state.
* Every line keeps the contract of its kind (`entries`), so that its parts can be asked for without looking.
* What does not fit is a `LedgerFormatError` that names the line, never another exception.

Deliberately not here: the history that rules ask (`past`), and whether the lines are right (`ledger.verify`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from ledgercli import ledger, paths
from ledgercli.errors import LedgerFormatError
from ledgercli.ledger import Entry, shapes

#: The kinds of lines that change the state by a diff.
CHANGING: Final = frozenset({"step", "rollback", "resume"})
UNSEALED: Final = "unsealed"


class Story:
    """What is known after some lines of a ledger.

    Attributes:
        opening: the `open` line; empty before it.
        tree: the state, with `step`, the number of the latest step.
        steps: how many steps there are, those without outcome included.
        denied: how many of them were denied.
        close: the `close` line; None unless it is the last one (recoveries aside).

    """

    __slots__ = ("close", "denied", "opening", "steps", "tree")

    def __init__(self) -> None:
        self.opening: Mapping[str, Any] = {}
        self.tree: paths.Map = {}
        self.steps = 0
        self.denied = 0
        self.close: Mapping[str, Any] | None = None

    def see(self, record: dict[str, Any]) -> None:
        """Take in the next line.

        Raises:
            LedgerFormatError: it is not what a line may say, or its diff does not fit the state.

        """
        if not shapes.fits(record):
            _complain(record)
        try:
            self._see(record, record["kind"])
        except paths.PathError as error:
            raise LedgerFormatError(f"its diff does not fit the state: {error.message}") from error

    def _see(self, record: Mapping[str, Any], kind: str) -> None:
        if (kind == "open") == bool(self.opening):
            raise LedgerFormatError("a second open" if self.opening else f"the first line is of kind {kind}, not open")
        if kind == "open":
            self.opening, self.tree = record, {**record["state"], "step": 0}
        elif kind in CHANGING:
            self._change(record)
        if kind in ("step", "intent"):
            self.steps = max(self.steps, record["step"])
        if kind == "step":
            self.tree = {**self.tree, "step": record["step"]}
            self.denied += record["outcome"] == "denied"
        if kind != "recovery":
            self.close = record if kind == "close" else None

    def _change(self, record: Mapping[str, Any]) -> None:
        sets, unsets = record.get("state_diff"), record.get("state_unset")
        if sets or unsets:
            self.tree = paths.patch(self.tree, sets or {}, unsets or ())


def follow(path: Path | str) -> Iterator[tuple[Entry, Story]]:
    """Yield each line of a ledger with the story after it: always the same `Story`, which goes on.

    Raises:
        UnreadableInputError: there is no such file.
        LedgerFormatError: a line is damaged, does not follow the one before or does not fit.

    """
    story = Story()
    for entry in ledger.read(path):
        try:
            story.see(entry.record)
        except LedgerFormatError as error:
            raise LedgerFormatError(f"{path}:{entry.line}: {error.message}", fix=f"ledger validate {path}") from error
        yield entry, story
    if not story.opening:
        raise LedgerFormatError(f"{path} is no ledger: there is not one whole line")


def ended(path: Path | str) -> Story:
    """Return the story of a whole ledger; raises as `follow` does."""
    story = Story()
    for _, story in follow(path):  # noqa: B007 - the last one is wanted
        pass
    return story


def _complain(record: dict[str, Any]) -> None:
    """Raise what is wrong with a line, if it is wrong."""
    from ledgercli.ledger import entries

    if wrong := entries.problems(record):
        raise LedgerFormatError(wrong[0])


def status_of(story: Story) -> str:
    """Return how the run ended; `unsealed` without a close."""
    return UNSEALED if story.close is None else str(story.close["status"])


def is_there(line: Mapping[str, Any], step: int, opening: Mapping[str, Any]) -> bool:
    """Whether the state behind a line is that of a step; of step 0: once it is told what the run goes on from."""
    if step:
        return bool(line["kind"] == "step" and line["step"] == step)
    return bool(line["kind"] == ("checkpoint" if "from" in opening else "open"))
