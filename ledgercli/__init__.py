"""Keep books on an agent's tool calls, under policy.

The public names are imported when they are first asked for: `import ledgercli` alone costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ledgercli.errors import BlockedError, LedgerCliError
    from ledgercli.guard import Guard
    from ledgercli.loading import load_pack, load_toolset
    from ledgercli.records import Proposal, Result, Verdict
    from ledgercli.state import State

__version__ = "0.1.0"
__all__ = [
    "BlockedError",
    "Guard",
    "LedgerCliError",
    "Proposal",
    "Result",
    "State",
    "Verdict",
    "load_pack",
    "load_toolset",
]

_HOMES = {
    "BlockedError": "errors",
    "Guard": "guard",
    "LedgerCliError": "errors",
    "Proposal": "records",
    "Result": "records",
    "State": "state",
    "Verdict": "records",
    "load_pack": "loading",
    "load_toolset": "loading",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
