"""The ledger: one append-only JSON Lines file a run, chained by digests.

`writing` appends, `reading` reads, `verify` says what is wrong; `linebytes` knows the exact bytes of a line, `entries`
what each kind of line may say (`shapes` the same, quickly).
"""

from ledgercli.ledger.linebytes import LedgerLimitError, LineError
from ledgercli.ledger.reading import NOTHING, Entry, Head, Reading, Torn, checkpoints, head, read
from ledgercli.ledger.writing import Ledger, Sync

__all__ = [
    "NOTHING",
    "Entry",
    "Head",
    "Ledger",
    "LedgerLimitError",
    "LineError",
    "Reading",
    "Sync",
    "Torn",
    "checkpoints",
    "head",
    "read",
]
