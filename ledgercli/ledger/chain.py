"""How a broken chain was broken: what was changed, removed, swapped, moved, duplicated or inserted.

Every line names the digest of the line before. Where one does not, the digests of all lines, and the lines that they
name, mostly tell what was done; where they leave two readings, both are said.

Invariants:
* It is only asked about files that are broken, and takes 24 bytes a line (digests are told apart by 64 bits).
* One act of damage is one problem, however many links it broke.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Final

from ledgercli import records
from ledgercli.ledger.checks import Problem
from ledgercli.ledger.linebytes import LineError
from ledgercli.ledger.reading import RawLine, parse, scan

_NONE: Final = 0  # stands for "no digest"
_NO_SEQ: Final = -1
_SHOWN: Final = len("sha256:") + 12


class Links:
    """The digest of every line, the digest that it names, and its seq."""

    def __init__(self, lines: Iterable[RawLine]) -> None:
        self.digests, self.prevs, self.seqs = array("Q"), array("Q"), array("q")
        for raw in lines:
            try:
                record: dict[str, Any] = parse(raw).record
            except LineError:
                record = {}
            seq = record.get("seq")
            self.digests.append(_short(records.digest(raw.data)) if raw.data else _NONE)
            self.prevs.append(_short(record.get("prev")))
            self.seqs.append(seq if type(seq) is int else _NO_SEQ)

    def __len__(self) -> int:
        return len(self.digests)

    def digest(self, line: int) -> int:
        """The digest of a line; `_NONE` where there is none."""
        return self.digests[line - 1] if 1 <= line <= len(self) else _NONE

    def prev(self, line: int) -> int:
        """The digest that a line names."""
        return self.prevs[line - 1] if 1 <= line <= len(self) else _NONE

    def line_of(self, digest: int) -> int:
        """The first line with a digest, 0 if there is none."""
        return _find(self.digests, digest)

    def twin_of(self, line: int) -> int:
        """The first other line of the same bytes, 0 if there is none."""
        digest = self.digest(line)
        first = _find(self.digests, digest)
        return first if first != line else _find(self.digests, digest, line)

    def follower_of(self, digest: int, after: int) -> int:
        """The first line behind `after` that names a digest, 0 if there is none."""
        return _find(self.prevs, digest, after)

    def missing_before(self, line: int) -> int:
        """How many numbers are left out between a line and the one before."""
        before = self.seqs[line - 2] if line > 1 else -1
        return self.seqs[line - 1] - before - 1


@dataclass(frozen=True, slots=True)
class Damage:
    """One act.

    Arguments:
        problem: what was done.
        lines: the lines that it was done to; what is odd about them needs no further explanation.

    """

    problem: Problem
    lines: range


def diagnose(path: Path, breaks: list[int], misnumbered: set[int], lines: int) -> list[Damage]:
    """What was done to a ledger.

    Arguments:
        path: the ledger.
        breaks: the lines that do not name the digest of the line before, in order.
        misnumbered: the lines whose seq does not fit.
        lines: how many lines to look at.

    """
    links = Links(raw for raw in islice(scan(path), lines) if isinstance(raw, RawLine))
    broken = set(breaks)
    found: list[Damage] = []
    for line in breaks:
        if line in broken:
            since = found[-1].problem.line if found else 1
            found.append(_one(links, line, broken, misnumbered, since))
            broken.discard(line)
    return found


def _one(links: Links, line: int, broken: set[int], misnumbered: set[int], since: int) -> Damage:
    """What was done at a line that does not follow the one before; links that the same act broke leave `broken`."""
    before = links.digest(line - 1)
    if twin := links.twin_of(line):
        broken.discard(links.follower_of(before, line))
        return _damage("duplicated", f"line {line} is a copy of line {twin}", line)
    named = links.line_of(links.prev(line)) if links.prev(line) else 0
    if named > line and (named == len(links) or named + 1 in broken):
        return _displaced(links, line, named, broken)
    if follower := links.follower_of(before, line):
        broken.difference_update(range(line, follower + 1))
        return _inserted(links, line, follower - 1)
    if 0 < named < line:  # it follows an earlier line, and those between are not from here; or all behind are not
        few = len(links) - line + 1 < line - 1 - named
        return _inserted(links, line, len(links)) if few else _inserted(links, named + 1, line - 1)
    return _lost(links, line, broken, misnumbered, since)


def _displaced(links: Links, line: int, named: int, broken: set[int]) -> Damage:
    """Line `line` follows a later one, `named`."""
    before = links.digest(line - 1)
    if links.prev(named) == before:
        broken.difference_update((named, named + 1))
        if named == line + 1:
            return _swapped(line, named)
        return _damage("moved", f"line {named} was moved: it belongs before line {line}", line)
    if named < len(links) and links.prev(named + 1) == before:
        broken.difference_update((line + 1, named + 1, named + 2))
        return _swapped(line, named + 1)
    broken.discard(named + 1)
    broken.discard(links.follower_of(before, line))
    return _damage("moved", f"line {line} was moved: it belongs behind line {named}", line)


def _lost(links: Links, line: int, broken: set[int], misnumbered: set[int], since: int) -> Damage:
    """The line that `line` names is nowhere: it was changed, or it was removed."""
    if line == 1:
        return _damage("removed", "the first line follows one that is not here: the beginning was removed", line)
    before = line - 1
    message = f"line {line} does not follow line {before}"
    gap = links.missing_before(line)
    if gap > 0 and not {line, before} & misnumbered:
        first, last = links.seqs[before - 1] + 1, links.seqs[line - 1] - 1
        which = f"the line with seq {first} was" if first == last else f"the lines with seq {first} to {last} were"
        return _damage("removed", message, line, _digests(links, line), f"{which} removed{_holding(since, before)}")
    blamed = range(before, line)
    if line + 1 in broken and not links.line_of(links.prev(line + 1)):
        broken.discard(line + 1)
        why, blamed = (
            f"line {line} was changed in its prev, or lines {before} and {line} both were",
            range(before, line + 1),
        )
    elif line == len(links):
        why = f"line {before} was changed, or the prev of line {line}, or lines between were removed"
    else:
        why = f"line {before} was changed, or lines between were removed"
    notes = (_digests(links, line), why + _holding(since, before - 1))
    return Damage(Problem("chain", message, line, notes=notes, cause="changed"), blamed)


def _swapped(one: int, other: int) -> Damage:
    return _damage("swapped", f"lines {one} and {other} are swapped", one)


def _inserted(links: Links, first: int, last: int) -> Damage:
    which = f"line {first} was" if first == last else f"lines {first} to {last} were"
    notes = (f"line {last + 1} follows line {first - 1}",) if last < len(links) else ()
    return Damage(Problem("chain", f"{which} inserted", first, notes=notes, cause="inserted"), range(first, last + 1))


def _damage(cause: str, message: str, line: int, *notes: str) -> Damage:
    return Damage(Problem("chain", message, line, notes=notes, cause=cause), range(line, line + 1))


def _holding(since: int, last: int) -> str:
    """Which lines are in order, from the break before on."""
    return f"; {since} to {last} hold together" if last > since else ""


def _digests(links: Links, line: int) -> str:
    return f"line {line - 1} has {_text(links.digest(line - 1))}, line {line} says {_text(links.prev(line))}"


def _short(digest: object) -> int:
    """The first 64 bits of a digest, as a number."""
    if not isinstance(digest, str):
        return _NONE
    try:
        return int(digest.removeprefix("sha256:")[:16], 16) & (2**64 - 1)
    except ValueError:
        return _NONE


def _text(digest: int) -> str:
    return f"sha256:{digest:016x}"[:_SHOWN] if digest else "no digest"


def _find(digests: array[int], digest: int, start: int = 0) -> int:
    try:
        return digests.index(digest, start) + 1
    except ValueError:
        return 0
