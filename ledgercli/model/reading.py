"""A model's reply, read: the calls that it proposes, or what is wrong with it.

Invariants:
* Pure: a reply comes in, proposals or a fault come out; whatever stands in the reply, nothing is raised.
* Nothing is opened or repaired: arguments that are not one JSON object are refused, and so is a text that holds a call.
* Of a reply that was cut, or of which one call is wrong, no call is used.

Whether a tool exists and its arguments fit, the enforcer says.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from ledgercli.records import Proposal

Calls = Literal["tools", "json_schema"]
LONGEST: Final = 1_000_000  # characters of arguments, or of a reply that is one object
_KEYS: Final = ("tool", "args")  # of a reply by `json_schema`
_ENDS: Final = frozenset({"stop", "tool_calls", "function_call"})  # why a whole reply ends
_NAMED: Final[Mapping[type, str]] = {
    str: "text", list: "a list", type(None): "null", bool: "true or false", int: "a number", float: "a number",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Called:
    """A native tool call of a reply, as it came: anything may stand there."""

    name: Any
    arguments: Any
    call_id: Any = None


@dataclass(frozen=True, slots=True)
class Reply:
    """What a model said.

    Arguments:
        content: its text.
        calls: its native tool calls.
        finish: why it ends there.

    """

    content: str | None = None
    calls: Sequence[Called] = ()
    finish: str | None = None

    @property
    def said(self) -> str:
        """How it reads, for a person."""
        return self.content or ", ".join(f"{one.name}({one.arguments})" for one in self.calls)


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a reply cannot be used.

    Arguments:
        kind: `cut`, `filtered`, `empty`, `prose`, `malformed`, `arguments`, `nameless` or `key`.
        what: what is wrong, and what is wanted, as the model is told.

    """

    kind: str
    what: str


class _WrongError(Exception):
    """Carries a fault to where a whole reply is read."""

    def __init__(self, kind: str, what: str) -> None:
        super().__init__(what)
        self.fault = Fault(kind, what)


def read(reply: Reply, calls: Calls) -> list[Proposal] | Fault:
    """Read a reply.

    Arguments:
        reply: what came.
        calls: how calls were asked for.

    Returns:
        The proposals in their order, one at least; or why there are none.

    """
    try:
        _refuse_unfinished(reply)
        return _native(reply) if calls == "tools" else [_object(reply)]
    except _WrongError as error:
        return error.fault


def _refuse_unfinished(reply: Reply) -> None:
    if reply.finish == "length":
        raise _WrongError("cut", "Your reply was cut at the token limit, so no part of it was used. Answer shorter.")
    if reply.finish not in _ENDS:
        raise _WrongError("filtered", f"Your reply ended early ({reply.finish}), so no part of it was used.")


def _native(reply: Reply) -> list[Proposal]:
    if reply.calls:
        return [_proposal(one) for one in reply.calls]
    if (reply.content or "").strip():
        raise _WrongError(
            "prose", "You wrote text, and nobody reads that. Call a tool; to end with an answer, call finish."
        )
    raise _WrongError("empty", "Your reply was empty. Call a tool; to end with an answer, call finish.")


def _proposal(call: Called) -> Proposal:
    if not isinstance(call.name, str) or not call.name:
        raise _WrongError("nameless", "A call named no tool. Call one of the tools by its name.")
    what = f"The arguments of {call.name}"
    args = call.arguments if isinstance(call.arguments, dict) else _parsed(call.arguments, what)
    call_id = call.call_id if isinstance(call.call_id, str) and call.call_id else None
    return Proposal(call.name, _map(args, what), call_id)


def _object(reply: Reply) -> Proposal:
    text = reply.content or ""
    if not text.strip():
        raise _WrongError("empty", 'Your reply was empty. Answer with one JSON object: {"tool": ..., "args": {...}}.')
    if not text.lstrip().startswith("{"):
        raise _WrongError(
            "prose", 'Your reply was no JSON object. Answer with one and nothing else: {"tool": ..., "args": {...}}.'
        )
    said = _map(_parsed(text, "Your reply"), "Your reply")
    if set(said) != set(_KEYS):
        raise _WrongError("malformed", f"Your reply had the keys {_listed(said)}; it has exactly the keys tool, args.")
    if not isinstance(said["tool"], str) or not said["tool"]:
        raise _WrongError("nameless", "tool is the name of a tool, as text.")
    return Proposal(said["tool"], _map(said["args"], "args"))


def _parsed(text: Any, what: str) -> Any:
    """Parse JSON as it stands; no key twice, no number that is none."""
    if not isinstance(text, str):
        raise _WrongError("arguments", f"{what} must be one JSON object, not {_name(text)}.")
    if len(text) > LONGEST:
        raise _WrongError("malformed", f"{what} were longer than {LONGEST:,} characters, and were not read.")
    try:
        return json.loads(text, object_pairs_hook=_once, parse_constant=_no_number)
    except RecursionError:
        raise _WrongError("malformed", f"{what} are nested too deeply.") from None
    except ValueError as error:
        raise _WrongError("malformed", f"{what} must be one JSON object, and are no JSON: {error}.") from None


def _map(value: Any, what: str) -> dict[str, Any]:
    if isinstance(value, dict):
        return value
    raise _WrongError("arguments", f"{what} must be one JSON object, not {_name(value)}.")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(f"the key {next(key for key in keys if keys.count(key) > 1)} stands there twice")
    return made


def _no_number(word: str) -> Any:
    raise ValueError(f"{word} is no number")


def _name(value: Any) -> str:
    return _NAMED.get(type(value), type(value).__name__)


def _listed(said: Mapping[str, Any]) -> str:
    return ", ".join(said) or "none"
