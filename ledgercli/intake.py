"""What callers and tools hand in, copied as a line of a ledger holds it; and what a run is told apart by.

Invariants:
* What is returned shares nothing with what came in, and comes back from a line unchanged.
* What no line can hold is refused with the reason, never cut or repaired.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping
from typing import Any

import orjson

from ledgercli import cel, paths
from ledgercli.enforcer import BAD_ARGUMENTS
from ledgercli.errors import LedgerCliError
from ledgercli.ledger import Ledger, LedgerLimitError
from ledgercli.records import Finding, Proposal, Verdict

LONGEST = 1000  # characters of what is wrong with a value that cannot be kept
NOT_KEPT = "The arguments cannot be kept: "  # how a refusal begins that no rule has seen
_PARTS = ("task", "facts", "constraints", "flags", "goals")


def kept(
    tool: str, args: Any, call_id: str | None, step: int, engine: Mapping[str, Any] | None = None
) -> tuple[Proposal, Verdict | None]:
    """Return a proposal as lines hold it; arguments that no line can hold are refused, and are left out."""
    engine = None if engine is None else own(engine, ("engine",))
    tool, call_id = _clean(tool), None if call_id is None else _clean(call_id)
    try:
        if isinstance(args, Mapping):
            return Proposal(tool, own(args), call_id, engine), None
        why = f"they are no map but {type(args).__name__}"
    except LedgerLimitError as error:
        why = error.message[:LONGEST]
    reason = f"{NOT_KEPT}{why}."
    finding = Finding(BAD_ARGUMENTS, "deny", reason)
    return Proposal(tool, {}, call_id, engine), Verdict("deny", 0, {}, step=step, failed=(finding,), reason=reason)


def _clean(text: str) -> str:
    return str(text).encode("utf-8", "replace").decode()


def own(value: Any, path: paths.Path = ()) -> Any:
    """Return a copy of a value, as it comes back from a line.

    Raises:
        LedgerLimitError: no line can hold it.

    """
    if value is None:
        return None
    Ledger.check(value, path)
    return orjson.loads(orjson.dumps(value, paths.plain))


def parts_of(state: Mapping[str, Any] | None) -> dict[str, Any]:
    """The parts of a first state that a caller gives."""
    for name in state or {}:
        if name not in _PARTS:
            near = cel.nearest(name, _PARTS) or _PARTS
            raise LedgerCliError(f"a state has no part {name}; there is {', '.join(near)}")
    for name, value in ((state or {}).get("flags") or {}).items():
        if not isinstance(value, bool):
            raise LedgerCliError(f"the flag {name} is true or false, not {value!r}")
    return dict(own(state or {}))


def present() -> cel.Timestamp:
    """Return the time now."""
    return cel.Timestamp(time.time_ns())


_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


def new_run_id() -> str:
    """Return a new run's id: 48 bits of time in ms, then 80 random bits, in the alphabet of ULIDs (sortable)."""
    number = (int(time.time() * 1000) << 80) | secrets.randbits(80)
    return "".join(_ALPHABET[(number >> shift) & 31] for shift in range(125, -5, -5))


def is_unkept(verdict: Mapping[str, Any], args: Mapping[str, Any]) -> bool:
    """Whether a recorded verdict refused arguments that could not be kept: there is nothing to judge again."""
    return not args and str(verdict.get("reason", "")).startswith(NOT_KEPT)
