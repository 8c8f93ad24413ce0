"""What a tool returned, read as success or failure.

Invariants:
* A map with `success` says itself how it went; text that is a JSON object or list is parsed; all else is a success.
* Pure: nothing is run here.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from typing import Any

from ledgercli.records import Result

MAX_OUTPUT = 16 * 1024 * 1024  # bytes of what a program or server returns; a ledger's line holds no more


def parse_output(value: Any) -> Result:
    """Turn what a tool returned into a result.

    A map with `success` says itself how it went: its other keys are the data unless it has `data`. Text that is a
    JSON object or list is parsed.
    """
    if isinstance(value, str):
        value = parsed_text(value)
    if isinstance(value, Mapping) and isinstance(value.get("success"), bool):
        rest = {key: item for key, item in value.items() if key not in ("success", "error")}
        data = rest.get("data", rest or None)
        error = value.get("error")
        if value["success"]:
            return Result(success=True, data=data, error=None)
        return Result(success=False, data=data, error="the tool failed" if error is None else _text(error))
    return Result(success=True, data=value, error=None)


def parsed_text(text: str) -> Any:
    """Return the value of a text that is a JSON object or list, any other text as it is."""
    if text.lstrip()[:1] in ("{", "["):
        with contextlib.suppress(ValueError, RecursionError):
            return json.loads(text)
    return text


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def failed(error: str, data: Any = None) -> Result:
    """Return a failed result."""
    return Result(success=False, data=data, error=error)


def timed_out(seconds: float) -> str:
    """Say that nothing came in time."""
    return f"no answer within {seconds:g} s; whether it took effect is not known"
