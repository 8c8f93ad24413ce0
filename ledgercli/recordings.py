"""Transcripts that other programs recorded, read as runs: what was asked, what was called, what came back.

Invariants:
* Every format ends in the same `Recording`; calls stand in the order in which they were proposed, several calls of
  one message in the order in which that message lists them.
* A result belongs to a call of the same id *and* name, in order, newest message first: ids repeat in real logs.
* Nothing is guessed. A call without a result is kept as one; a result without a call, arguments that are no JSON
  object, an unknown role: an error that names the file and the place.
* JSON Lines are read a line at a time: the next run is read when it is asked for.

Deliberately not here: judging, running, telling whether a text means failure (the toolset's `fails_when` does).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import orjson

from ledgercli import foreign
from ledgercli.errors import UnreadableInputError
from ledgercli.foreign import Place

_META = ("task_id", "trial", "reward", "model", "domain")
_SILENT_ROLES = frozenset({"system", "developer"})


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call as it was recorded.

    Arguments:
        tool: its name.
        args: its arguments, always an object.
        result: what the agent saw, nearly always text; None where nothing was recorded (see `answered`).
        answered: whether a result was recorded at all.
        call_id: the id that the log gave it; not unique.
        succeeded: what the log itself says about success, None where it says nothing.

    """

    tool: str
    args: Mapping[str, Any]
    result: Any = None
    answered: bool = False
    call_id: str | None = None
    succeeded: bool | None = None


@dataclass(frozen=True, slots=True)
class UserMessage:
    """Something that the user said after the task."""

    text: str


Event = Call | UserMessage


@dataclass(frozen=True, slots=True)
class Recording:
    """One recorded run.

    Arguments:
        id: names the run, and its ledger; unique within its file.
        task: the first thing that the user said, '' if nothing.
        events: the agent's calls and the user's later messages, in order.
        user_calls: calls that the user made with tools of their own (τ²-bench); nobody judges them.
        meta: what the log says of the run (task, trial, reward, model), where it does.

    """

    id: str
    task: str
    events: tuple[Event, ...]
    user_calls: tuple[Call, ...] = ()
    meta: Mapping[str, Any] = field(default_factory=dict)

    @property
    def calls(self) -> tuple[Call, ...]:
        """The agent's calls alone."""
        return tuple(event for event in self.events if isinstance(event, Call))


def read(path: Path, format: str) -> Iterator[Recording]:  # noqa: A002 - the scenario's own key
    """Read the runs of a file, one by one; an unreadable place ends it with an error that names it."""
    if format not in FORMATS:
        raise UnreadableInputError(f"no recording format {format!r}", fix=_FORMATS_ARE)
    seen: dict[str, int] = {}
    try:
        for recording in FORMATS[format](path):
            # A ledger is named after its run, with `-` for `/`, so ids must differ as file names too.
            name = recording.id.replace("/", "-")
            seen[name] = seen.get(name, 0) + 1
            yield recording if seen[name] == 1 else replace(recording, id=f"{recording.id}.{seen[name]}")
    except OSError as error:
        raise UnreadableInputError(f"{path}: {error.strerror or error}") from None


def _tau_bench(path: Path) -> Iterator[Recording]:
    """τ-bench's result file: a list of runs, each with `traj`, a list of chat messages."""
    for place, run in _runs(foreign.document(path), Place(path), "traj"):
        yield _conversation(place, run, "traj", id=f"{run.get('task_id', place.item)}/{run.get('trial', 0)}")


def _tau2_bench(path: Path) -> Iterator[Recording]:
    """τ²-bench's result file: `simulations`, each with `messages` of its own shape."""
    document = foreign.document(path)
    simulations = document.get("simulations") if isinstance(document, dict) else None
    for place, run in _runs(simulations, Place(path), "messages", inside="`simulations`, "):
        fallback = f"{run.get('task_id', place.item)}/{run.get('trial', 0)}"
        yield _conversation(place, run, "messages", id=run.get("id") or fallback)


def _openai_chat(path: Path) -> Iterator[Recording]:
    """Chat messages: a list, an object with `messages`, or JSON Lines of either."""
    for place, value in _lines_or_document(path):
        run = {"messages": value} if isinstance(value, list) else value
        if not isinstance(run, dict) or not isinstance(run.get("messages"), list):
            place.fail("neither a list of messages nor an object with `messages`")
        yield _conversation(place, run, "messages", id=run.get("id") or str(place.item))


def _trajectories(path: Path) -> Iterator[Recording]:
    """JSON Lines with `steps`, each with the user's messages since the step before."""
    for place, run in foreign.lines(path):
        if not isinstance(run, dict) or not isinstance(run.get("steps"), list):
            place.fail("not an object with `steps`")
        talk = _Talk(task=_text(run.get("prompt"), place) if run.get("prompt") is not None else None)
        for number, step in enumerate(run["steps"], 1):
            _add_step(talk, place.within("step", number), step)
        yield talk.recording(_run_id(run.get("trajectory_id") or place.item, place), run)


FORMATS: Mapping[str, Callable[[Path], Iterator[Recording]]] = {
    "tau-bench": _tau_bench,
    "tau2-bench": _tau2_bench,
    "trajectories": _trajectories,
    "openai-chat": _openai_chat,
}
_FORMATS_ARE = f"the formats are {', '.join(FORMATS)}"


# -- runs of a file ----------------------------------------------------------------------------------------------------


def _lines_or_document(path: Path) -> Iterator[tuple[Place, Any]]:
    """Lines where the first line is JSON by itself, else one document: one run, or a list of runs."""
    values = foreign.lines(path) if foreign.is_json_lines(path) else [(Place(path), foreign.document(path))]
    count = 0
    for place, value in values:
        runs = value if _is_list_of_runs(value) else [value]
        for number, run in enumerate(runs, 1):
            count += 1
            yield replace(place.within("run", number) if runs is value else place, item=count), run


def _is_list_of_runs(value: Any) -> bool:
    return isinstance(value, list) and any(isinstance(item, dict) and "messages" in item for item in value)


def _runs(document: Any, at: Place, key: str, inside: str = "") -> Iterator[tuple[Place, dict[str, Any]]]:
    """Each run of a list, provided that it holds a list under `key`."""
    if not isinstance(document, list):
        at.fail(f"not {inside}a list of runs with `{key}`", fix=_FORMATS_ARE)
    for number, run in enumerate(document, 1):
        place = replace(at.within("run", number), item=number)
        if not isinstance(run, dict) or not isinstance(run.get(key), list):
            place.fail(f"not an object with a list `{key}`", fix=_FORMATS_ARE)
        yield place, run


# -- conversations ---------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Talk:
    """A run while it is read; `open` holds the places of calls that have no result yet, a list a message."""

    task: str | None = None
    events: list[Event] = field(default_factory=list)
    user_calls: list[Call] = field(default_factory=list)
    open: list[list[tuple[list[Any], int]]] = field(default_factory=list)

    def say(self, text: str) -> None:
        if self.task is None:
            self.task = text
        else:
            self.events.append(UserMessage(text))

    def recording(self, id: str, run: Mapping[str, Any]) -> Recording:  # noqa: A002
        meta = {key: run[key] for key in _META if run.get(key) is not None}
        return Recording(id, self.task or "", tuple(self.events), tuple(self.user_calls), meta)


def _add_step(talk: _Talk, at: Place, step: Any) -> None:
    """Take over one step of a trajectory: what the user said before it, then its call."""
    if not isinstance(step, dict):
        at.fail("not an object")
    for message in step.get("user_msgs") or ():
        talk.say(_text(message, at))
    error = step.get("error")
    call = Call(
        tool=_name(step.get("tool"), at),
        args=_arguments(step.get("args"), at),
        result=step.get("result"),
        answered="result" in step,
        succeeded=not error if isinstance(error, bool) else None,
    )
    (talk.user_calls if step.get("requestor") == "user" else talk.events).append(call)


def _conversation(at: Place, run: Mapping[str, Any], key: str, *, id: Any) -> Recording:  # noqa: A002
    """Read chat messages, of OpenAI's shape or τ²-bench's."""
    talk = _Talk()
    for number, message in enumerate(run[key], 1):
        place = at.within("message", number)
        if not isinstance(message, dict):
            place.fail("not an object")
        role = message.get("role")
        if role in {"tool", "function"}:
            _answer(talk, place, message)
        elif role in {"user", "assistant"}:
            if role == "user" and message.get("content"):
                talk.say(_text(message["content"], place))
            _ask(talk, place, message, by_user=role == "user")
        elif role not in _SILENT_ROLES:
            place.fail(f"unknown role {role!r}", fix="roles are system, developer, user, assistant and tool")
    return talk.recording(_run_id(id, at), run)


def _ask(talk: _Talk, at: Place, message: Mapping[str, Any], *, by_user: bool) -> None:
    """Take over the calls of a message."""
    asked = list(_listed(message.get("tool_calls"), at))
    if message.get("function_call"):  # the form before `tool_calls`: one call, no id
        asked.append({"function": message["function_call"]})
    opened: list[tuple[list[Any], int]] = []
    for number, item in enumerate(asked, 1):
        place = at.within("call", number)
        function = item.get("function", item) if isinstance(item, dict) else None
        if not isinstance(function, dict):
            place.fail("not an object with a function's `name` and `arguments`")
        calls: list[Any] = talk.user_calls if by_user or item.get("requestor") == "user" else talk.events
        opened.append((calls, len(calls)))
        name, args = _name(function.get("name"), place), _arguments(function.get("arguments"), place)
        calls.append(Call(name, args, call_id=item.get("id")))
    if opened:
        talk.open.append(opened)


def _answer(talk: _Talk, at: Place, message: Mapping[str, Any]) -> None:
    """Give a result to its call: same id, same name where it says one, newest message first, in order."""
    wanted, name = message.get("tool_call_id", message.get("id")), message.get("name")
    error = message.get("error")
    for opened in reversed(talk.open):
        for position, (calls, index) in enumerate(opened):
            call: Call = calls[index]
            if call.call_id == wanted and name in {None, call.tool}:
                succeeded = not error if isinstance(error, bool) else None
                content = _text(message.get("content"), at)
                calls[index] = replace(call, result=content, answered=True, succeeded=succeeded)
                del opened[position]
                return
    which = " ".join(str(part) for part in (name, wanted) if part is not None)
    at.fail(f"a result without a call: {which or 'no id, no name'}")


# -- values ----------------------------------------------------------------------------------------------------------


def _listed(value: Any, at: Place) -> Sequence[Any]:
    if value is not None and not isinstance(value, list):
        at.fail("`tool_calls` is not a list")
    return value or ()


def _name(value: Any, at: Place) -> str:
    if not isinstance(value, str) or not value:
        at.fail("a call without the name of its tool")
    return value


def _arguments(value: Any, at: Place) -> Mapping[str, Any]:
    """Arguments as an object; JSON text is parsed, none at all are `{}`."""
    if isinstance(value, str) and value.strip():
        try:
            value = orjson.loads(value)
        except orjson.JSONDecodeError as error:
            at.fail(f"arguments are not JSON: {error.msg}, column {error.colno}")
    if value is None or value == "" or (isinstance(value, str) and not value.strip()):
        return {}
    if not isinstance(value, dict):
        at.fail(f"arguments are not an object but {type(value).__name__}")
    return value


def _text(content: Any, at: Place) -> str:
    """The text of a message: as it stands, or the text parts of a list of parts."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        at.fail(f"content is neither text nor a list of parts but {type(content).__name__}")
    return "".join(_parts(content, at))


def _parts(parts: Iterable[Any], at: Place) -> Iterator[str]:
    for part in parts:
        if not isinstance(part, dict):
            at.fail("a part of the content is not an object")
        if isinstance(part.get("text"), str):
            yield part["text"]


def _run_id(value: Any, at: Place) -> str:
    """An id that can name a file."""
    text = str(value) if isinstance(value, str | int) else ""
    if not text.strip(". /") or not text.isprintable() or len(text.encode()) > 200:
        at.fail(f"the run's id cannot name a file: {text[:40]!r}")
    return text
