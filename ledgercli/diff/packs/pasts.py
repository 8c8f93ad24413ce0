"""What ran before an example: the fewest steps after which the history answers a question in a certain way.

Invariants:
* Steps are given to a real `History`; all its answers then agree with one another.
* No more than `MOST` steps are made up.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from ledgercli.history import History
from ledgercli.paths import same
from ledgercli.why.situations import Question

MOST: Final = 200
_COUNTS: Final[Mapping[str, str]] = {
    "count_calls": "ok",
    "count_failures": "error",
    "count_recent_failures": "error",
    "count_denied": "denied",
    "repeats": "ok",
    "succeeded": "ok",
}
What = Literal["ok", "error", "denied", "said", "confirmed"]


@dataclass(frozen=True)
class Past:
    """Something that happened before, once or several times in a row.

    Arguments:
        what: a call that ended `ok`, in an `error` or was `denied`; something that a user `said`; a call that a user
            has `confirmed`.
        tool: the tool's name.
        args: the arguments that matter; None: those of the call that is proposed, all of them.
        data: what it returned, or what was said.
        times: how often.
        idle: how many steps of other tools came after it.

    """

    what: What
    tool: str = ""
    args: Mapping[str, Any] | None = None
    data: Any = None
    times: int = 1
    idle: int = 0

    def smaller(self) -> Iterator[Past]:
        """Yield the same with less in it."""
        if self.idle:
            yield replace(self, idle=0)
        if self.times > 1:
            yield replace(self, times=1)
            yield replace(self, times=self.times - 1)
        if self.args and self.what in ("ok", "error"):
            yield from (replace(self, args={n: v for n, v in self.args.items() if n != name}) for name in self.args)


def remember(history: History, past: Iterable[Past], tool: str, args: Mapping[str, Any]) -> None:
    """Have a history take in what happened; `tool` and `args` are the call that is proposed."""
    step = 0
    for one in past:
        for _ in range(one.times):
            step += 1
            name, given = (tool, args) if one.args is None and not one.tool else (one.tool, one.args or {})
            match one.what:
                case "said":
                    history.said(one.data)
                case "confirmed":
                    history.answered(name, given, yes=True)
                case "denied":
                    history.denied(name)
                case _:
                    history.executed(name, given, one.what, one.data, step=step)
        step += one.idle


def told(past: tuple[Past, ...], question: Question, value: Any) -> tuple[Past, ...] | None:
    """Return a past in which a question has that answer; None where none is found."""
    name, args = question.function, question.args
    if name in _COUNTS:
        return _counted(past, question, value)
    if name == "confirmed":
        call = args[0] if args and isinstance(args[0], Mapping) else {}
        made = Past("confirmed", str(call.get("tool", "")), call.get("args") if call else None)
        left = _without(past, made)
        return (*left, made) if value is True else left
    if name == "from_user":
        return (*past, Past("said", data=args[0])) if value is True else tuple(p for p in past if p.what != "said")
    if name == "from_tool":
        made = Past("ok", str(args[1]), {}, args[0])
        return (*past, made) if value is True else _without(past, made)
    if name in ("last_result", "last_args"):
        given = dict(value) if name == "last_args" and isinstance(value, Mapping) else {}
        return (*past, Past("ok", str(args[0]), given, value if name == "last_result" else None))
    return _summed(past, name, args, value)


def _counted(past: tuple[Past, ...], question: Question, value: Any) -> tuple[Past, ...] | None:
    """A past with so many calls of a kind, the last of all."""
    number = int(value) if isinstance(value, (bool, int)) else -1
    if not 0 <= number <= MOST:
        return None
    args = question.args
    what: Any = _COUNTS[question.function]
    if question.whole:
        made = Past(what, times=max(number, 1))
    elif args and isinstance(args[0], Mapping):
        made = Past(what, str(args[0].get("tool")), args[0].get("args") or {}, times=max(number, 1))
    else:
        given = args[1] if len(args) > 1 and isinstance(args[1], Mapping) else {}
        made = Past(what, str(args[0]), given, times=max(number, 1))
    left = _without(past, made)
    return (*left, made) if number else left


def _without(past: tuple[Past, ...], made: Past) -> tuple[Past, ...]:
    """The past without what answers the same question already."""
    return tuple(
        one
        for one in past
        if (one.what, one.tool) != (made.what, made.tool) or not same(one.args or {}, made.args or {})
    )


def _summed(past: tuple[Past, ...], name: str, args: tuple[Any, ...], value: Any) -> tuple[Past, ...] | None:
    tool = str(args[0]) if args else ""
    others = tuple(one for one in past if one.tool != tool or one.what != "ok")
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return None
    if name == "sum_args":
        return (*others, Past("ok", tool, {str(args[1]): value})) if value else others
    if name == "distinct_args" and 0 <= value <= MOST:
        return (*others, *(Past("ok", tool, {str(args[1]): number}) for number in range(int(value))))
    if name == "steps_since" and 1 <= value <= MOST:
        return (*others, Past("ok", tool, {}, idle=int(value) - 1))
    return others if name == "steps_since" else None
