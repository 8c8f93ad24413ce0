"""What went wrong when a model was asked, told apart: what litellm raises says it only in part.

Invariants:
* litellm is not imported here: its errors are known by their names, their status and what caused them.
"""

from __future__ import annotations

import email.utils
import time
from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal

from ledgercli.errors import EngineError

Kind = Literal[
    "unreachable", "key", "rate limit", "timeout", "context", "server error", "cut off", "no such model", "refused"
]
#: What may come right by itself.
PASSING: Final = frozenset({"unreachable", "rate limit", "timeout", "server error", "cut off"})
_SAID: Final[Mapping[str, str]] = {
    "unreachable": "the server cannot be reached",
    "key": "the key was refused",
    "rate limit": "the server wants fewer requests (rate limit)",
    "timeout": "no whole reply came in time",
    "context": "the prompt is longer than the model's context",
    "server error": "the server failed",
    "cut off": "the connection was cut off",
    "no such model": "the server knows no such model",
    "refused": "the server refused the request",
}
_FIXES: Final[Mapping[str, str]] = {
    "unreachable": "is the server there? --api-base says where",
    "timeout": "--timeout SECONDS waits longer",
    "context": "a model with a longer context, or fewer tools and facts",
}
_BY_STATUS: Final[Mapping[int, Kind]] = {
    401: "key", 403: "key", 404: "no such model", 408: "timeout", 413: "context", 429: "rate limit", 529: "rate limit",
}  # fmt: skip
_NOT_CONNECTED: Final = frozenset({"ConnectError", "ConnectTimeout", "ConnectionRefusedError", "gaierror"})
_CUT: Final = frozenset(
    ["RemoteProtocolError", "ReadError", "WriteError", "ConnectionResetError", "BrokenPipeError", "IncompleteRead"]
)
_TIMEOUTS: Final = frozenset({"Timeout", "APITimeoutError", "ReadTimeout", "TimeoutException", "TimeoutError"})
_LONGEST: Final = 300  # characters of what a server says


class ModelError(EngineError):
    """A model could not be asked; `kind` says why.

    Arguments:
        kind: what went wrong.
        said: what the server or the library said of it, without keys.
        again_after: seconds after which the server wants to be asked again.

    """

    def __init__(self, kind: Kind, said: str = "", again_after: float | None = None) -> None:
        one_line = " ".join(said.split())
        short = one_line if len(one_line) <= _LONGEST else one_line[:_LONGEST] + "..."
        super().__init__(_SAID[kind] + (f": {short}" if short else ""), fix=_FIXES.get(kind))
        self.kind, self.again_after = kind, again_after


def kind_of(error: BaseException) -> Kind:
    """What an error of litellm, or of what is below it, means."""
    chain = list(_causes(error))
    names = {type(one).__name__ for one in chain}
    status = next((code for one in chain if isinstance(code := getattr(one, "status_code", None), int)), 500)
    if "ContextWindowExceededError" in names:
        return "context"
    if names & _NOT_CONNECTED:
        return "unreachable"
    if names & _TIMEOUTS:
        return "timeout"
    if names & (_CUT | {"MidStreamFallbackError"}):
        return "cut off"
    if status in _BY_STATUS:
        return _BY_STATUS[status]
    if "APIConnectionError" in names or (status == 500 and "Connection error" in str(error)):
        return "unreachable"
    return "server error" if status >= 500 else "refused"


def again_after(error: BaseException) -> float | None:
    """How many seconds a server wants to be left alone: its `Retry-After`, in seconds or as a date."""
    for one in _causes(error):
        headers: Any = getattr(getattr(one, "response", None), "headers", None) or {}
        said = headers.get("retry-after")
        if said is None:
            continue
        try:
            return max(float(said), 0.0)
        except ValueError:
            pass
        try:
            return max(email.utils.parsedate_to_datetime(said).timestamp() - time.time(), 0.0)
        except ValueError:
            return None
    return None


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and all that led to it, each once."""
    seen: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        one = waiting.pop(0)
        if one is not None and id(one) not in seen:
            seen.add(id(one))
            yield one
            waiting += [one.__cause__, one.__context__]
