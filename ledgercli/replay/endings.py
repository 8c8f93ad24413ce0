"""How a run begins and ends, held against its rules: what those lines must say that nothing makes again.

Invariants:
* Pure: lines and books come in, what they should say comes out.
* Only what follows from the books is held against them: an interruption may come at any time, a program that uses
  `Guard` closes its ledger as it likes, and what the clock decides cannot be told.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from ledgercli import cel, paths
from ledgercli.books import Books
from ledgercli.decision import ENGINES
from ledgercli.errors import ProposalError
from ledgercli.loop import MAX_DENIALS, MAX_STEPS, WRITTEN
from ledgercli.records import Line, close_line, open_line, recovery_line
from ledgercli.reopening import adapted
from ledgercli.replay.asking import engine_faults
from ledgercli.rulebook import Rulebook
from ledgercli.runnable import LIMITS

_FILES: Final = ("scenario", "pack", "toolset")  # the kinds of files, in the order of a line
_FILE: Final = ("kind", "name", "path", "digest", "text")
_FROM: Final = ("ledger", "run", "step", "digest")
_GIVEN: Final = ("facts", "constraints", "flags")  # the parts of a state in which options may set values
_NOT_KEPT: Final = "the answer cannot be kept: "  # how the error begins of a run whose answer no line can hold
_GOES_ON: Final = "running: there is a next step"
_CENTURY: Final = 100 * 365 * 86_400 * 10**9
_ANY_TIME = frozenset({"interrupted", "error"})
_WHILE_RUNNING = frozenset({"failed", "limit", "awaiting_approval"})

#: What should be otherwise: the part of the line, what it says, what it should say (text in words where several may).
Fault = tuple[str, Any, Any]


def as_written(record: Mapping[str, Any]) -> Line:
    """Return an `open`, `recovery` or `close` line as it is written when it says this: nothing more, and in order."""
    said = {key: value for key, value in record.items() if key not in ("kind", "seq", "prev")}
    if record["kind"] == "open":
        del said["schema"]
        files, origin = files_written(said.pop("files")), said.pop("from", None)
        return open_line(**said, files=files, origin=None if origin is None else _ordered(origin, _FROM))
    if record["kind"] == "recovery":
        return recovery_line(size=said.pop("bytes"), torn=said.pop("digest"), **said)
    lines = said.pop("lines")
    return {**close_line(**said), "lines": lines}


def files_written(files: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the files of a line as they are written."""
    return [_ordered(file, _FILE) for file in files]


def _ordered(part: Mapping[str, Any], keys: Sequence[str]) -> dict[str, Any]:
    return {key: part[key] for key in keys if part.get(key) is not None}


def file_faults(files: Sequence[Mapping[str, Any]]) -> Iterator[Fault]:
    """Yield what the files of a line should be otherwise: each once, in order, and all or none with their texts."""
    names = [(_FILES.index(file["kind"]), file["name"] if file["kind"] == "pack" else "") for file in files]
    kinds = [file["kind"] for file in files]
    if len(set(names)) < len(names):
        yield "files", kinds, "each file once"
    elif [kind for kind, _ in names] != sorted(kind for kind, _ in names):
        yield "files", kinds, sorted(kinds, key=_FILES.index)
    if len({file.get("text") is None for file in files}) > 1:
        yield "files", [file["name"] for file in files if file.get("text") is None], "each with its text, or none"


def recovery_faults(record: Mapping[str, Any]) -> Iterator[Fault]:
    """Yield what a `recovery` line should say otherwise: what was torn off is named after where it stood."""
    if not re.search(rf"\.torn-{record['offset']}(-[0-9]+)?\Z", record["moved_to"]):
        yield "moved_to", record["moved_to"], f"NAME.torn-{record['offset']}"


def resuming_faults(books: Books, rules: Rulebook | None, record: Mapping[str, Any]) -> Iterator[Fault]:
    """Yield what a `resume` line should say otherwise.

    Arguments:
        books: the books before it.
        rules: what judges from there on, if that changes.
        record: the line.

    """
    said = record.get("state_diff", {})
    brought = {} if rules is None else adapted(books.state.tree, books.rules, rules)
    for path in said:
        part, *rest = paths.parse(path)
        if path not in brought and not (part in _GIVEN and rest):
            yield "state_diff", path, "a fact, a constraint or a flag"
        elif part == "flags" and not isinstance(said[path], bool):
            yield "state_diff", {path: said[path]}, "true or false"
    for path, value in brought.items():
        if path not in said or (paths.parse(path)[0] not in _GIVEN and not paths.same(said[path], value)):
            yield "state_diff", said, {path: value}


def opening_faults(books: Books, opening: Mapping[str, Any]) -> Iterator[Fault]:
    """Yield what an `open` line should say otherwise, given the rules that it carries."""
    said = opening["state"]
    parts = {part: said[part] for part in ("task", "facts", "constraints", "flags", "goals")}
    begins = books.rules.initial_state(**parts).opening()
    inherited = ("error", "final_answer") if "from" in opening else ()
    if list(said) != list(begins):
        yield "state", list(said), list(begins)
    for part, value in begins.items():
        if part not in inherited and not paths.same(said[part], value):
            yield f"state.{part}", said[part], value
    yield from file_faults(opening["files"])
    scenario, engine = books.rules.scenario, opening["engine"]
    if scenario is not None and "from" not in opening:
        yield from _declared(books.rules, said)
    if scenario is None:
        if engine["kind"] in ENGINES:
            yield "engine.kind", engine["kind"], "guard: there is no scenario"
        return
    decide = scenario.file.decide
    proposes: dict[str, Any] = {"kind": "script" if decide.model is None else "model"}
    if decide.recording is not None:
        proposes = {"kind": "recording", "file": decide.recording.file, "format": decide.recording.format}
    elif engine["kind"] == "model":  # an option may put one in a script's place
        yield from engine_faults(engine)
        return
    if list(engine.items()) != list(proposes.items()):
        yield "engine", engine, proposes


def _declared(rules: Rulebook, said: Mapping[str, Any]) -> Iterator[Fault]:
    """Hold the names in a first state against a scenario: options set other values, under names that are declared."""
    begins = rules.initial_state().tree
    for part in _GIVEN:
        known = {*begins[part], *rules.vocabulary.names(part), *(LIMITS if part == "constraints" else ())}
        for name in sorted(begins[part].keys() - said[part].keys()):
            yield f"state.{part}", list(said[part]), f"{name} too"
        for name in sorted(said[part].keys() - known):
            yield f"state.{part}", list(said[part]), f"no {name}"
    for name in sorted(said["constraints"].keys() & set(LIMITS)):
        value = said["constraints"][name]
        if isinstance(value, bool) or not isinstance(value, (int, float)) or value < 0:
            yield f"state.constraints.{name}", value, "a number from 0"


def closing_faults(books: Books, close: Mapping[str, Any], last: Last) -> Iterator[Fault]:
    """Yield what a `close` line should say otherwise.

    Arguments:
        books: the books before it.
        close: the line.
        last: what the lines before it were.

    """
    engine, status = last.engine["kind"], close["status"]
    possible = _possible(engine, books.state.status)
    if status not in possible:
        yield "status", status, " or ".join(sorted(possible))
    if status == "awaiting_approval" and last.outcome != "waiting":
        yield "status", status, "no step waits for an approval"
    if status == "limit":
        yield from _limit(books, close, last)
    elif close.get("limit") is not None:
        yield "limit", close["limit"], None
    if last.reopened == "rollback":  # no run closed it, but whoever rolled it back
        yield from _sealed(close, "interrupted", None)
    elif engine in ENGINES:
        yield from _by_loop(books, close, last)


def _possible(engine: str, status: str) -> set[str]:
    """How a run may end whose state has this status."""
    if engine == "recording":
        return {"completed", *_ANY_TIME}
    if status != "running":
        return {status, *_ANY_TIME}
    if engine in ENGINES:
        return {*_WHILE_RUNNING, *_ANY_TIME}
    return {*_WHILE_RUNNING, *_ANY_TIME, "completed", "halted"}


def _by_loop(books: Books, close: Mapping[str, Any], last: Last) -> Iterator[Fault]:
    """Hold a close that no program wrote but the loop, or whoever answered a call that waits, against the books."""
    denial = last.first_denial if books.recorded and close["status"] == "completed" else None
    if close.get("counterfactual_from") != denial:
        yield "counterfactual_from", close.get("counterfactual_from"), denial
    if last.reopened == "approval" and close["status"] == "awaiting_approval":
        yield from _sealed(close, "awaiting_approval", last.answer)
    else:
        yield from _words(books, close, last)


def _sealed(close: Mapping[str, Any], status: str, answer: Any) -> Iterator[Fault]:
    """Hold the close behind what people add to a run that does not go on yet against what they leave it as."""
    for part, should in {"status": status, "answer": answer, "error": None, "counterfactual_from": None}.items():
        if not paths.same(close.get(part), should):
            yield part, close.get(part), should


class Last:
    """What the latest lines were, as far as the end depends on them."""

    def __init__(self) -> None:
        self.outcome: str | None = None
        self.now: str | None = None
        self.first_denial: int | None = None
        self.reopened: str | None = None  # by which kind of line: what closes the ledger again may be no run
        self.answer: Any = None  # of the latest close, until the run goes on
        self.engine: Mapping[str, Any] = {}  # who proposes
        self.cost = 0.0  # of all that a model was asked

    def see(self, record: Mapping[str, Any]) -> None:
        """Take in the next line."""
        kind = record["kind"]
        if kind in ("open", "resume"):
            self.engine = record.get("engine", self.engine)
        else:
            self.cost += cost_of(record) if "engine" in record else 0
        if kind == "step":
            self.outcome, self.now = record["outcome"], record["now"]
            if self.outcome == "denied" and self.first_denial is None:
                self.first_denial = record["step"]
        if kind in ("approval", "rollback"):
            self.reopened = kind
        elif kind in ("step", "intent", "resume"):
            self.reopened = self.answer = None
        elif kind == "close":
            self.answer = record["answer"]


def cost_of(record: Mapping[str, Any]) -> float:
    """What asking took that a line tells of, in US dollars; 0 where no price is known."""
    return float((record.get("engine") or {}).get("cost") or 0)


def _limit(books: Books, close: Mapping[str, Any], last: Last) -> Iterator[Fault]:
    limits = books.state.tree["constraints"]
    name = close.get("limit")
    reached = {
        "max_steps": (books.steps, limits.get("max_steps", MAX_STEPS)),
        "max_denials": (books.history.denials_in_a_row, limits.get("max_denials", MAX_DENIALS)),
        "max_seconds": (0, 0 if "max_seconds" in limits else None),
        "max_repeats": (0, 0 if "max_repeats" in limits else None),
        "max_cost": (last.cost + cost_of(close), last.engine.get("max_cost")),
    }
    if name not in reached:
        yield "limit", name, f"one of {', '.join(reached)}"
    else:
        value, limit = reached[name]
        if limit is None or value < limit:
            yield "limit", name, f"{name} was not reached: {value} of {limit}"


def _words(books: Books, close: Mapping[str, Any], last: Last) -> Iterator[Fault]:
    """Hold the answer and the error against what the state says; an engine's or server's own error is any text."""
    status, error, answer = close["status"], close.get("error"), close["answer"]
    if answer is None and str(error).startswith(_NOT_KEPT):
        return
    moments = _moments(close, last)
    if status == "error":
        if not isinstance(error, str):
            yield "error", error, "a text that says what went wrong"
    elif (should := _error(books, close, moments, last)) is _GOES_ON:
        yield "status", status, _GOES_ON
    elif should is not paths.ABSENT and not paths.same(error, should):
        yield "error", error, should
    responder = books.rules.responder
    if responder is not None and responder.by_model:
        if answer is not None and (not isinstance(answer, str) or status not in WRITTEN):
            yield "answer", answer, "a text, where the run has come to an end"
    elif responder is not None and not (status == "error" and answer is None):
        made = _always(moments, lambda now: responder.answer(books.state, books.history, now))
        if made is not paths.ABSENT and not paths.same(made, answer):
            yield "answer", answer, made


def _error(books: Books, close: Mapping[str, Any], moments: Sequence[cel.Timestamp], last: Last) -> Any:
    """What a close must say went wrong; `ABSENT` if that cannot be told."""
    status, said = close["status"], books.state.tree["error"]
    if status in ("interrupted", "awaiting_approval") or close.get("limit") == "max_repeats" or books.recorded:
        return None
    if status != "failed" or books.state.status == "failed":
        return said
    script = books.rules.script if last.engine["kind"] == "script" else None
    return paths.ABSENT if script is None else _always(moments, lambda now: _nothing_left(books, now))


def _nothing_left(books: Books, now: cel.Timestamp) -> Any:
    """Why a script has no next step at this time; `_GOES_ON`: it has one."""
    script = books.rules.script
    assert script is not None, "whoever asks has looked"
    try:
        proposal = script.propose(books.state, books.history, now)
    except ProposalError as error:
        return error.message
    return (books.state.tree["error"] or "no next step") if proposal is None else _GOES_ON


def _moments(close: Mapping[str, Any], last: Last) -> list[cel.Timestamp]:
    """Times that an end may have been seen at; a run may have a time of its own, which its last step has told."""
    closed = cel.Timestamp.parse(close["at"])
    told = [] if last.now is None else [cel.Timestamp.parse(last.now)]
    return [*told, closed, cel.Timestamp(0), cel.Timestamp(closed.nanos + _CENTURY)]


def _always(moments: Sequence[cel.Timestamp], made: Callable[[cel.Timestamp], Any]) -> Any:
    """What is made at all of these times; `ABSENT` if it depends on the time."""
    first, *others = [made(now) for now in moments]
    return first if all(paths.same(first, other) for other in others) else paths.ABSENT
