"""What a situation knows that may stand elsewhere: values of other records, of earlier calls, of the task, the time.

Invariants:
* Of many values some are told, always the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, Final

from ledgercli import cel
from ledgercli.paths import Path
from ledgercli.why.comparisons import Pattern
from ledgercli.why.looking import changeable, matching
from ledgercli.why.plausible import ALIKE
from ledgercli.why.situations import Situation

_TIME: Final = re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d)?)?\Z")
_DAYS: Final = (0, 1, -1)
_DAY: Final = 86_400_000_000_000  # nanoseconds


def places(situation: Situation, pattern: Pattern, most: int = ALIKE) -> Iterator[tuple[Path, Any]]:
    """Yield some of the places of a pattern with their values."""
    root = pattern[:2]
    if len(root) == 2 and None not in root and changeable(pattern):
        for path in islice(matching(situation.value(root), root, pattern[2:]), most):
            yield path, situation.value(path)


def earlier(situation: Situation, tool: str, arg: str) -> Iterator[Any]:
    """Yield the values that an argument had in earlier calls."""
    history = situation.history
    if history.keeps.calls:
        calls = history.to_json()["calls"]
        yield from (args[arg] for name, args, ok in reversed(calls) if name == tool and ok and arg in args)


def said(situation: Situation) -> Iterator[Any]:
    """Yield the ids of known records that the task or the user named."""
    history = situation.history
    for records in situation.state.tree["facts"].values():
        for key in islice(records if isinstance(records, Mapping) else (), 4 * ALIKE):
            if history.from_task(key) or (history.keeps.user and history.from_user(key)):
                yield key


def of_type(kind: cel.Type, situation: Situation, known: Any) -> Iterator[Any]:
    """Yield the values that a type has whatever is known; what is empty comes last."""
    if kind in (cel.BOOL, cel.DYN):
        yield from (True, False)
    if isinstance(kind, cel.EnumType):
        yield from sorted(kind.values)
    elif kind in (cel.STRING, cel.DYN):
        yield from times(situation, known)
        yield from keys(situation, known)
        yield ""
    if kind in (cel.INT, cel.DOUBLE, cel.DYN):
        yield 0
    if isinstance(kind, cel.ListType):
        yield []


def keys(situation: Situation, known: Any) -> Iterator[str]:
    """Yield ids of records that stand beside the one of which a text is the id."""
    for records in situation.state.tree["facts"].values() if isinstance(known, str) else ():
        if isinstance(records, Mapping) and known in records:
            yield from islice(records, ALIKE)


def times(situation: Situation, known: Any) -> Iterator[str]:
    """Yield the present time, and a day before and after it, as the text of a time is written."""
    if isinstance(known, str) and _TIME.match(known):
        for days in _DAYS:
            text = str(cel.Timestamp(situation.now.nanos + days * _DAY))[: len(known)]
            yield text.replace("T", " ") if " " in known else text
