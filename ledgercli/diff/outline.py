"""A ledger in outline: of each step the digests of its layers, and where its line stands.

Invariants:
* No line is kept: a step costs its digests and its place in the file, and is read again when somebody asks for it.
* Two steps have the same digest of a layer if and only if that layer is the same, apart from what does not count.
* An intent is a step only if nothing says what came of it.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final

import orjson

from ledgercli import paths, story
from ledgercli.diff.layers import LAYERS, MARKS, Counting, Layer, judgement, layers, masks_alike
from ledgercli.errors import LedgerCliError
from ledgercli.ledger import Entry

_SIZE: Final = 16  # bytes of a digest
_ROW: Final = (len(LAYERS) + 1) * _SIZE


@dataclass(slots=True)
class Outline:
    """One ledger in outline; steps and marks are told apart by their place, from 0.

    Arguments:
        path: the ledger.
        counting: what counts.
        told: the story of the whole ledger.
        labels: of each place its kind (`step`, `said`, or that of a mark) and its tool; two versions of one thing have
            the same.
        numbers: of each place the number of the step; 0 for a mark.
        met: the place behind the line that was asked for, that step's number, and the state there.

    """

    path: Path
    counting: Counting
    told: story.Story = field(default_factory=story.Story)
    labels: list[tuple[str, str]] = field(default_factory=list)
    numbers: array[int] = field(default_factory=lambda: array("q"))
    met: tuple[int, int, paths.Map] | None = None
    _offsets: array[int] = field(default_factory=lambda: array("q"))
    _lengths: array[int] = field(default_factory=lambda: array("q"))
    _digests: bytearray = field(default_factory=bytearray)
    _answers: dict[tuple[Any, ...], bytes] = field(default_factory=dict)
    _names: dict[tuple[str, str], tuple[str, str]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.numbers)

    def key(self, place: int) -> bytes:
        """Return the digest of all layers."""
        return bytes(self._digests[place * _ROW : place * _ROW + len(LAYERS) * _SIZE])

    def layer(self, place: int, layer: Layer) -> bytes:
        """Return the digest of one layer."""
        start = place * _ROW + LAYERS.index(layer) * _SIZE
        return bytes(self._digests[start : start + _SIZE])

    def judged(self, place: int) -> bytes:
        """Return the digest of what was answered, effect and rules, without what was read and said."""
        return bytes(self._digests[(place + 1) * _ROW - _SIZE : (place + 1) * _ROW])

    def changes_state(self, place: int) -> bool:
        """Whether the state changed there."""
        return self.layer(place, "state") != _NO_CHANGE

    def line(self, place: int) -> dict[str, Any]:
        """Read the line of a step or mark again, all masks in it the same.

        Raises:
            LedgerCliError: it is no longer there.

        """
        try:
            with self.path.open("rb") as file:
                file.seek(self._offsets[place])
                record: dict[str, Any] = orjson.loads(masks_alike(file.read(self._lengths[place])))
        except (OSError, ValueError) as error:
            raise LedgerCliError(f"{self.path} was changed while it was compared") from error
        return record

    def layers(self, place: int) -> dict[Layer, Any]:
        """Read the layers of a step or mark, without what does not count."""
        return layers(self.line(place), self.counting)

    @property
    def digests(self) -> bytes:
        """All digests: equal if and only if nothing that counts differs."""
        return bytes(self._digests)

    def add(self, entry: Entry) -> None:
        """Put a line into the outline."""
        record = entry.record
        parts = layers(record, self.counting)
        mark = record["kind"] in MARKS
        label = (record["kind"], "") if mark else (_kind(record), record["action"]["tool"])
        self.labels.append(self._names.setdefault(label, label))
        self.numbers.append(0 if mark else record["step"])
        self._offsets.append(entry.offset)
        self._lengths.append(entry.length)
        for layer in LAYERS:
            self._digests += _digest(parts[layer])
        answer = judgement(parts["verdict"])
        if answer not in self._answers:
            self._answers[answer] = _digest(answer)
        self._digests += self._answers[answer]


def read(path: Path | str, counting: Counting, looking_for: str | None = None) -> Outline:
    """Read a ledger once.

    Arguments:
        path: the ledger.
        counting: what counts.
        looking_for: the digest of a line behind which another run may have gone on.

    Raises:
        UnreadableInputError: there is no such file.
        LedgerFormatError: a line is damaged or does not fit.

    """
    outline = Outline(Path(path), counting)
    intents: dict[int, Entry] = {}
    for entry, told in story.follow(path):
        outline.told = told
        _take(outline, entry, intents)
        if entry.digest == looking_for:
            outline.met = len(outline), told.tree["step"], told.tree
    for entry in intents.values():
        outline.add(entry)
    return outline


def opening(path: Path | str) -> Mapping[str, Any]:
    """Return the first line of a ledger; raises as `read` does."""
    for _, told in story.follow(path):
        return told.opening
    raise AssertionError  # `follow` raises where there is no line


def _take(outline: Outline, entry: Entry, intents: dict[int, Entry]) -> None:
    """Take in a line: an intent counts only if nothing says what came of it."""
    if entry.kind == "intent":
        intents[entry.record["step"]] = entry
    elif entry.kind == "step":
        intents.pop(entry.record["step"], None)
        outline.add(entry)
    elif entry.kind in MARKS and not _plain_resume(entry.record):
        outline.add(entry)


def _plain_resume(record: Mapping[str, Any]) -> bool:
    """Whether a run just went on, as it would have without a break."""
    return record["kind"] == "resume" and not any(record.get(key) for key in ("files", "state_diff", "state_unset"))


def _kind(step: Mapping[str, Any]) -> str:
    """What a step is: a proposal, or what a user said unasked, which is never judged."""
    return "said" if step["verdict"] is None else "step"


def _digest(value: Any) -> bytes:
    return blake2b(masks_alike(orjson.dumps(value, paths.plain, orjson.OPT_SORT_KEYS)), digest_size=_SIZE).digest()


_NO_CHANGE: Final = _digest({})
