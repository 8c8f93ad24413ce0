"""Who proposes: a script, a recording of what a model once did, or a model (`ledgercli.model`).

Invariants:
* An engine sees the state and proposes; it never runs a tool and never writes.
* A script decides from the state alone: read from the top before every step, the first entry whose `when` holds.
* A recording proposes what was proposed, in that order, whatever the verdicts were.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from ledgercli import cel
from ledgercli.documents import Document, Place
from ledgercli.errors import ProposalError
from ledgercli.functions import Moment
from ledgercli.history import History
from ledgercli.recordings import Call, Recording, UserMessage
from ledgercli.records import Proposal, Result
from ledgercli.results import failed, parse_output
from ledgercli.scenario import ScriptEntry
from ledgercli.state import State
from ledgercli.vocabulary import Vocabulary


@dataclass(frozen=True, slots=True)
class Said:
    """In place of a proposal: the user says something."""

    text: str


@dataclass(frozen=True, slots=True)
class Limit:
    """In place of a proposal: a limit of the engine's own is reached, and it asks for nothing more."""

    name: str


class Engine(Protocol):
    """Whoever proposes the next call."""

    def propose(self, state: State, history: History, now: cel.Timestamp) -> Proposal | Said | Limit | None:
        """Return the next proposal; None if there is none.

        Raises:
            ProposalError: a proposal cannot be made from what is known.
            EngineError: the engine itself failed.

        """


ENGINES: Final = frozenset({"script", "recording", "model"})  # that the loop asks; a program proposes by itself
Argument = Callable[[Mapping[str, Any], Moment], cel.Answer]


@dataclass(frozen=True, slots=True)
class _Entry:
    when: cel.Program | None
    tool: Argument
    args: Mapping[str, Argument]


class Script:
    """A decision engine that reads a list of conditions and proposals.

    Arguments:
        entries: as they stand in the scenario.
        document: the scenario, for errors.
        vocabulary: the names; problems are added to its `problems`.

    """

    def __init__(self, entries: Sequence[ScriptEntry], document: Document, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._document = document
        self._entries = [self._compile(entry, ("decide", "script", number)) for number, entry in enumerate(entries)]

    def propose(self, state: State, history: History, now: cel.Timestamp) -> Proposal | None:
        """Return the proposal of the first entry whose `when` holds."""
        roots = {"state": state.tree, "now": now}
        moment = Moment(history, state)
        for entry in self._entries:
            if entry.when is not None and not entry.when.holds(roots, moment):
                continue
            args = {name: self._value(make, f"the argument {name}", roots, moment) for name, make in entry.args.items()}
            return Proposal(str(self._value(entry.tool, "the tool", roots, moment)), args)
        return None

    @staticmethod
    def _value(make: Argument, what: str, roots: Mapping[str, Any], moment: Moment) -> Any:
        answer = make(roots, moment)
        if not answer.known:
            why = " and ".join(answer.missing) + " not known" if answer.missing else answer.error
            raise ProposalError(f"the script cannot make {what}: {why}")
        try:
            return cel.to_json(answer.value)
        except cel.EvalError as error:
            raise ProposalError(f"the script cannot make {what}: {error}") from error

    def _compile(self, entry: ScriptEntry, place: Place) -> _Entry:
        vocabulary, document = self._vocabulary, self._document
        env = vocabulary.state_env()
        when = None
        if entry.when is not None:
            when = vocabulary.expression(document, (*place, "when"), entry.when, env, cel.BOOL)
        inside: Place = (*place, "propose")
        check_call(vocabulary, document, inside, entry.propose.tool, entry.propose.args)
        return _Entry(
            cel.compile(when) if when else None,
            template(vocabulary, document, (*inside, "tool"), entry.propose.tool, env),
            {
                name: template(vocabulary, document, (*inside, "args", name), value, env)
                for name, value in entry.propose.args.items()
            },
        )


def check_call(  # noqa: PLR0913 - what, where, and how strictly
    vocabulary: Vocabulary, document: Document, place: Place, tool: str, args: Mapping[str, Any], *, whole: bool = True
) -> None:
    """Report a tool or arguments that do not exist, where a file proposes a call.

    Arguments:
        vocabulary: the names.
        document: the file.
        place: where `tool` and `args` stand.
        tool: the tool's name, or a text with braces, of which nothing is known.
        args: the arguments.
        whole: whether all that the tool needs must be there.

    """
    if "{" in tool:
        return
    spec = vocabulary.tools.get(tool)
    if spec is None:
        vocabulary.unknown(document, (*place, "tool"), "tool", tool, vocabulary.tools)
        return
    for name in args:
        if name not in spec.args:
            vocabulary.unknown(document, (*place, "args", name), "argument", name, spec.args, key=True)
    missing = [name for name in spec.schema_of_args["required"] if name not in args]
    if whole and missing:
        vocabulary.problem(document, (*place, "tool"), "missing-argument", f"{tool} needs {' and '.join(missing)}")


def template(vocabulary: Vocabulary, document: Document, place: Place, value: Any, env: cel.Env) -> Argument:
    """Compile a text, or a map or list of texts and values."""
    if isinstance(value, str):
        text = vocabulary.text(document, place, value, env)
        return _unusable if text is None else text.value
    if isinstance(value, Mapping):
        inner = {key: template(vocabulary, document, (*place, key), item, env) for key, item in value.items()}
        return lambda roots, moment: _all(inner.keys(), [make(roots, moment) for make in inner.values()])
    if isinstance(value, list):
        items = [template(vocabulary, document, (*place, number), item, env) for number, item in enumerate(value)]
        return lambda roots, moment: _all(None, [make(roots, moment) for make in items])
    constant = cel.Answer(known=True, value=value)
    return lambda _roots, _moment: constant


def _unusable(_roots: Mapping[str, Any], _moment: Moment) -> cel.Answer:
    """Stands for a text with problems, which are reported; it is never evaluated."""
    return cel.Answer(known=False, error="the text has problems")


def _all(keys: Any, answers: Sequence[cel.Answer]) -> cel.Answer:
    for answer in answers:
        if not answer.known:
            return answer
    values = [answer.value for answer in answers]
    return cel.Answer(known=True, value=values if keys is None else dict(zip(keys, values, strict=True)))


class Recorded:
    """A decision engine that proposes what a recording holds; it also gives the results that were recorded.

    Arguments:
        recording: the recorded run.
        asking: the tools whose results are what a user said, which is never parsed.

    """

    def __init__(self, recording: Recording, asking: Collection[str] = ()) -> None:
        self._asking = asking
        self._events: Iterator[Call | UserMessage] = iter(recording.events)
        self._latest: Call | None = None

    def propose(self, state: State, history: History, now: cel.Timestamp) -> Proposal | Said | None:
        """Return the next recorded call, or what the user said next."""
        del state, history, now  # a recording depends on nothing
        event = next(self._events, None)
        if event is None:
            return None
        if isinstance(event, UserMessage):
            return Said(event.text)
        self._latest = event
        return Proposal(event.tool, event.args, event.call_id)

    def run(self, proposal: Proposal) -> Result | None:
        """Return the recorded result of the call that was proposed last; None if none was recorded."""
        call = self._latest
        assert call is not None
        assert call.tool == proposal.tool
        if not call.answered:
            return None
        result = Result(success=True, data=call.result) if call.tool in self._asking else parse_output(call.result)
        if call.succeeded is False and result.success:
            return failed(call.result if isinstance(call.result, str) else "the recording says it failed", result.data)
        return result
