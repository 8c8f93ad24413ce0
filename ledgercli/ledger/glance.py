"""A glance over all lines of a ledger: whether the chain holds, and where the few lines stand that a reader looks for.

Invariants:
* Every byte goes into the chain of digests, and only lines of the kinds that are sought are read for what they say.
* A line that says of itself what it cannot is left to whoever reads it; the chain does not hold then.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, NamedTuple

from ledgercli.ledger.linebytes import LineError
from ledgercli.ledger.reading import Entry, RawLine, Torn, parse, scan

_CHECKPOINT: Final = re.compile(rb'\{"kind":"checkpoint","seq":[0-9]+,"at":"[^"]*","step":([0-9]+),')
_SOUGHT: Final = (b'{"kind":"rollback"', b'{"kind":"resume"')
_FIRST: Final = b',"prev":null}\n'


class Mark(NamedTuple):
    """Where a checkpoint stands.

    Arguments:
        line: its number, from 1.
        offset: where it begins in the file, in bytes.
        step: how many steps there are before it.

    """

    line: int
    offset: int
    step: int


@dataclass(slots=True)
class Glance:
    """What was seen.

    Arguments:
        chained: whether each line names the digest of the one before.
        opening: the first line.
        rollbacks: the lines with rollbacks, and the steps that they lead to.
        resumptions: the lines with resumptions, and the files that changed then.
        checkpoints: where checkpoints stand, in order.

    """

    chained: bool = True
    opening: Entry | None = None
    rollbacks: list[tuple[int, int]] = field(default_factory=list)
    resumptions: list[tuple[int, list[dict[str, Any]]]] = field(default_factory=list)
    checkpoints: list[Mark] = field(default_factory=list)

    def _take(self, raw: RawLine, data: bytes) -> None:
        if raw.line == 1:
            self.opening = parse(raw)
        elif found := _CHECKPOINT.match(data):
            self.checkpoints.append(Mark(raw.line, raw.offset, int(found[1])))
        elif data.startswith(_SOUGHT):
            record = parse(raw).record
            if record["kind"] == "rollback":
                self.rollbacks.append((raw.line, record["to"]))
            else:
                self.resumptions.append((raw.line, record["files"]))


def glance(path: Path | str) -> Glance:
    """Look over a ledger; at the first line that does not follow, looking ends."""
    seen = Glance()
    ending = _FIRST
    for raw in scan(path):
        if isinstance(raw, Torn):
            break
        if raw.data is None or not raw.data.endswith(ending):
            seen.chained = False
            break
        ending = b',"prev":"sha256:%s"}\n' % sha256(raw.data).hexdigest().encode()
        try:
            seen._take(raw, raw.data)  # noqa: SLF001 - its own maker
        except (LineError, KeyError, TypeError):
            seen.chained = False
            break
    return seen


def entry_at(path: Path | str, mark: Mark) -> Entry:
    """Read the line that stands somewhere.

    Raises:
        LineError: there is none that this program writes.

    """
    raw = next(scan(path, mark.offset, mark.line - 1))
    if isinstance(raw, Torn):
        raise LineError("the line has no end", 1)
    return parse(raw)
