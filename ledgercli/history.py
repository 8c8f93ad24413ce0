"""The index behind the functions over past steps.

Invariants:
* Every question is answered from tallies kept while entries are recorded: a run of 10,000 steps answers as fast
  as an empty one.
* Values are told apart as the policy language does: 1 and 1.0 are the same, 1 and true are not.
* What no file of a run can ask for need not be kept (`keeps_for`): memory is then flat, whatever the number of steps.
  A question about what is not kept raises; it is never answered from what happens to be there.
* `to_json` holds what the entries said, not what was asked: the same entries give the same bytes.

Executed are calls that ended `ok`, `error` or `unknown` (the last may have taken effect). A denied or cancelled one
is not. Only `error` is a failure, only `ok` a success.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import msgspec

from ledgercli.errors import LedgerFormatError
from ledgercli.grounding import Texts

NEVER = 1_000_000_000  # what `steps_since` says of a tool that has not run: larger than any ledger


def freeze(value: Any) -> Any:
    """Return a hashable stand-in that is equal for equal values, in the sense of the policy language."""
    if value.__class__ is str:
        return value
    if isinstance(value, bool) or value is None:
        return (type(value), value)
    if isinstance(value, Mapping):
        return frozenset((key, freeze(item)) for key, item in value.items())
    if isinstance(value, (list, tuple)):
        return tuple(freeze(item) for item in value)
    return value


def _alike(one: Any, other: Any) -> bool:
    """Whether two values that Python calls equal are so to the policy language: true is not 1."""
    kind = one.__class__
    if kind is str or (kind is float and other.__class__ is float):  # most values; asking for maps costs more
        return True
    if isinstance(one, Mapping):
        return all(_alike(value, other[key]) for key, value in one.items())
    if isinstance(one, (list, tuple)):
        return all(map(_alike, one, other))
    return (one is True or one is False) == (other is True or other is False)


class Keeps(msgspec.Struct, frozen=True):
    """What a history keeps beside its tallies, and so what may be asked of it.

    Arguments:
        calls: the arguments of every executed call, for sums, different values, and calls with certain arguments.
        user: what the user said, for `from_user`.
        results: what tools returned, for `from_tool`.

    """

    calls: bool = True
    user: bool = True
    results: bool = True


EVERYTHING = Keeps()

#: `"\u0066rom_tool"` or a broken line in a quoted YAML text spells a name that does not stand in the file as such.
_HIDING = re.compile(r"\\[xuU\s]")
_CALL_COUNT = re.compile(r"(?:count_calls|succeeded)\s*[(/\\]")  # as prose has them, the words are no call
_BY_TOOL = re.compile(
    r"""(?:count_calls|succeeded)\s*\(\s*state\.ledger\s*,\s*(?:[\w.]+|(''|["']|\\")[^"'\\]+\1)\s*\)"""
)


def keeps_for(texts: Iterable[str]) -> Keeps:
    """Return what the files of a run can ask for; where in doubt, it is kept.

    Arguments:
        texts: the files as they stand: every pack, the toolset, the scenario.

    """
    whole = "\n".join(texts)
    if _HIDING.search(whole):
        return EVERYTHING
    with_args = "sum_args" in whole or "distinct_args" in whole or _CALL_COUNT.search(_BY_TOOL.sub("", whole))
    return Keeps(calls=bool(with_args), user="from_user" in whole, results="from_tool" in whole)


class NotKeptError(LookupError):
    """A history was asked for what it does not keep: `keeps_for` has not seen the text that asks, which is a bug."""

    def __init__(self, what: str) -> None:
        super().__init__(f"this history does not keep {what}")


class _Tally(msgspec.Struct, forbid_unknown_fields=True):
    """What is known of one tool's calls, or of those with certain arguments."""

    calls: int = 0
    failures: int = 0
    failures_in_a_row: int = 0
    successes: int = 0
    denied: int = 0
    last_step: int | None = None
    last_args: Mapping[str, Any] | None = None
    last_result: Any = None


@dataclass(slots=True)
class _Values:
    """The values that one argument had in a tool's successful calls."""

    total: float = 0.0
    different: set[Any] = field(default_factory=set)

    def add(self, value: Any) -> None:
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            self.total += value
        self.different.add(freeze(value))


class _Saved(msgspec.Struct, forbid_unknown_fields=True):
    """A history as a checkpoint holds it; what is not kept is absent."""

    task: str
    tools: dict[str, _Tally]
    row: tuple[str, int, int] | None  # the tool that ran last, and how often in a row: it, and its last call
    denials_in_a_row: int
    confirmed: list[tuple[str, dict[str, Any]]]
    calls: list[tuple[str, dict[str, Any], bool]] | None = None
    user: list[Any] | None = None
    results: dict[str, list[Any]] | None = None


class History:
    """Tallies over the steps of one run, in the order in which they were recorded.

    Arguments:
        task: what is to be done, in the user's words.
        keeps: what may be asked beyond the tallies.

    """

    def __init__(self, task: str = "", *, keeps: Keeps = EVERYTHING) -> None:
        self.keeps = keeps
        self._tools: dict[str, _Tally] = {}
        self._latest: str | None = None
        self._of_tool = self._of_call = 0
        self._denials = 0
        self._confirmed: dict[Any, tuple[str, Mapping[str, Any]]] = {}
        self._calls: list[tuple[str, Mapping[str, Any], bool]] = []
        self._narrow: dict[tuple[str, frozenset[str]], dict[Any, _Tally]] = {}
        self._values: dict[str, dict[str, _Values]] = {}
        self._task = Texts([task])
        self._user = Texts()
        self._results: dict[str, Texts] = {}

    # ---- as a checkpoint holds it

    def to_json(self) -> dict[str, Any]:
        """Return all that the entries said, as JSON data; arguments and results are shared, not copied."""
        said: dict[str, Any] = {
            "task": self._task.said[0],
            "tools": {tool: msgspec.structs.asdict(tally) for tool, tally in self._tools.items()},
            "row": None if self._latest is None else [self._latest, self._of_tool, self._of_call],
            "denials_in_a_row": self._denials,
            "confirmed": [list(call) for call in self._confirmed.values()],
        }
        if self.keeps.calls:
            said["calls"] = [list(call) for call in self._calls]
        if self.keeps.user:
            said["user"] = list(self._user.said)
        if self.keeps.results:
            said["results"] = {tool: list(texts.said) for tool, texts in self._results.items()}
        return said

    @classmethod
    def from_json(cls, said: Any, *, keeps: Keeps = EVERYTHING) -> Self:
        """Return the history that `to_json` wrote, of which no more than `keeps` is kept.

        Raises:
            NotKeptError: it was written by a history that kept less; only the whole past can answer.
            LedgerFormatError: `to_json` does not write such data.

        """
        try:
            saved = msgspec.convert(said, _Saved)
        except msgspec.ValidationError as error:
            raise LedgerFormatError(f"this is no history: {error}") from None
        for what in Keeps.__struct_fields__:
            if getattr(keeps, what) and getattr(saved, what) is None:
                raise NotKeptError(what)
        history = cls(saved.task, keeps=keeps)
        history._restore(saved)
        return history

    def _restore(self, saved: _Saved) -> None:
        self._tools = saved.tools
        if saved.row is not None:
            self._latest, self._of_tool, self._of_call = saved.row
        self._denials = saved.denials_in_a_row
        for tool, args in saved.confirmed:
            self.answered(tool, args, yes=True)
        if self.keeps.calls:
            self._calls.extend(saved.calls or ())
        if self.keeps.user:
            self._user.said.extend(saved.user or ())
        if self.keeps.results:
            self._results = {tool: Texts(list(texts)) for tool, texts in (saved.results or {}).items()}

    def copy(self) -> Self:
        """Return a history that goes on by itself from here."""
        return self.from_json(self.to_json(), keeps=self.keeps)

    # ---- entries

    def denied(self, tool: str) -> None:
        """Count a proposal that was refused."""
        self._tally(tool).denied += 1
        self._denials += 1

    def executed(self, tool: str, args: Mapping[str, Any], outcome: str, data: Any, *, step: int) -> None:
        """Take in a call that ran.

        Arguments:
            tool: its name.
            args: its arguments, defaults filled in.
            outcome: `ok`, `error` or `unknown`.
            data: what it returned.
            step: its step.

        """
        tally = self._tally(tool)
        self._of_call = self._of_call + 1 if self._is_latest(tool, args) else 1
        self._of_tool = self._of_tool + 1 if self._latest == tool else 1
        self._latest, self._denials = tool, 0
        self._count(tally, outcome)
        tally.last_step, tally.last_args, tally.last_result = step, args, data
        if self._confirmed:
            self._confirmed.pop((tool, freeze(args)), None)
        if self.keeps.calls:
            self._keep(tool, args, outcome)
        if self.keeps.results and outcome == "ok":
            texts = self._results.get(tool)
            if texts is None:
                texts = self._results[tool] = Texts()
            texts.said.append(data)

    def said(self, text: Any) -> None:
        """Take in what a user said."""
        if self.keeps.user:
            self._user.said.append(text)

    def answered(self, tool: str, args: Mapping[str, Any], *, yes: bool) -> None:
        """Take in the answer to a `confirm` of exactly this call."""
        call = (tool, freeze(args))
        if yes:
            self._confirmed[call] = (tool, args)
        else:
            self._confirmed.pop(call, None)

    # ---- questions

    @property
    def denials_in_a_row(self) -> int:
        """Proposals that were refused since the last call that ran."""
        return self._denials

    def count_calls(self, tool: str, args: Mapping[str, Any] | None = None) -> int:
        """Executed calls of `tool`, with these arguments among theirs if given."""
        return self._narrowed(tool, args).calls

    def succeeded(self, tool: str, args: Mapping[str, Any] | None = None) -> bool:
        """Whether `tool` has run with success, with these arguments among its own if given."""
        return self._narrowed(tool, args).successes > 0

    def count_failures(self, tool: str) -> int:
        """Failed calls of `tool`."""
        return self._known(tool).failures

    def count_recent_failures(self, tool: str) -> int:
        """Failed calls of `tool` since its last success."""
        return self._known(tool).failures_in_a_row

    def count_denied(self, tool: str) -> int:
        """Refused proposals of `tool`."""
        return self._known(tool).denied

    def repeats(self, tool: str) -> int:
        """Executed calls of `tool` in a row, up to now."""
        return self._of_tool if self._latest == tool else 0

    def repeats_of_call(self, tool: str, args: Mapping[str, Any]) -> int:
        """Executions of this very call in a row, up to now."""
        return self._of_call if self._is_latest(tool, args) else 0

    def last(self, tool: str) -> tuple[Mapping[str, Any], Any] | None:
        """Arguments and data of the last executed call of `tool`; None if it never ran."""
        tally = self._known(tool)
        return None if tally.last_args is None else (tally.last_args, tally.last_result)

    def steps_since(self, tool: str, step: int) -> int:
        """Steps between the last execution of `tool` and `step`; `NEVER` if it has not run."""
        last = self._known(tool).last_step
        return NEVER if last is None else step - last

    def sum_args(self, tool: str, arg: str) -> float:
        """Sum of a numeric argument over the successful calls of `tool`."""
        return self._values_of(tool, arg).total

    def distinct_args(self, tool: str, arg: str) -> int:
        """How many different values of an argument the successful calls of `tool` had."""
        return len(self._values_of(tool, arg).different)

    def confirmed(self, tool: str, args: Mapping[str, Any]) -> bool:
        """Whether exactly this call was confirmed and has not run since."""
        return (tool, freeze(args)) in self._confirmed

    def from_task(self, value: Any) -> bool:
        """Whether every leaf of `value` stands in the task's text as a whole token."""
        return self._task.holds(value)

    def from_user(self, value: Any) -> bool:
        """Whether every leaf of `value` stands in what the user said."""
        if not self.keeps.user:
            raise NotKeptError("user")
        return self._user.holds(value)

    def from_tool(self, value: Any, tool: str) -> bool:
        """Whether every leaf of `value` stands in earlier results of `tool`."""
        if not self.keeps.results:
            raise NotKeptError("results")
        return tool in self._results and self._results[tool].holds(value)

    # ---- the index

    def _tally(self, tool: str) -> _Tally:
        tally = self._tools.get(tool)
        if tally is None:
            tally = self._tools[tool] = _Tally()
        return tally

    def _known(self, tool: str) -> _Tally:
        return self._tools.get(tool) or _Tally()

    def _keep(self, tool: str, args: Mapping[str, Any], outcome: str) -> None:
        """Keep a call, and keep current what was asked before about calls like it."""
        self._calls.append((tool, args, outcome == "ok"))
        for (name, keys), groups in self._narrow.items():
            if name == tool and keys <= args.keys():
                self._count(groups.setdefault(_key(args, keys), _Tally()), outcome)
        if outcome == "ok" and tool in self._values:
            for arg, values in self._values[tool].items():
                if arg in args:
                    values.add(args[arg])

    def _past(self, tool: str) -> Iterator[tuple[Mapping[str, Any], bool]]:
        """Return the arguments of each call of `tool`, with whether it was a success."""
        if not self.keeps.calls:
            raise NotKeptError("calls")
        return ((args, ok) for name, args, ok in self._calls if name == tool)

    def _narrowed(self, tool: str, args: Mapping[str, Any] | None) -> _Tally:
        if not args:
            return self._known(tool)
        keys = frozenset(args)
        groups = self._narrow.get((tool, keys))
        if groups is None:  # the first question with these keys reads the past once; later entries keep it current
            past, groups = self._past(tool), {}
            self._narrow[(tool, keys)] = groups
            for earlier, ok in past:
                if keys <= earlier.keys():
                    self._count(groups.setdefault(_key(earlier, keys), _Tally()), "ok" if ok else "other")
        return groups.get(_key(args, keys)) or _Tally()

    def _values_of(self, tool: str, arg: str) -> _Values:
        """Return the values of an argument; the first question reads the past once."""
        found = self._values.get(tool, {}).get(arg)
        if found is None:
            past, found = self._past(tool), _Values()
            self._values.setdefault(tool, {})[arg] = found
            for args, ok in past:
                if ok and arg in args:
                    found.add(args[arg])
        return found

    @staticmethod
    def _count(tally: _Tally, outcome: str) -> None:
        tally.calls += 1
        if outcome == "ok":
            tally.successes += 1
            tally.failures_in_a_row = 0
        elif outcome == "error":
            tally.failures += 1
            tally.failures_in_a_row += 1

    def _is_latest(self, tool: str, args: Mapping[str, Any]) -> bool:
        """Whether exactly this call was the last to run."""
        if self._latest != tool:
            return False
        before = self._known(tool).last_args
        return before == args and _alike(before, args)


def _key(args: Mapping[str, Any], keys: frozenset[str]) -> Any:
    return freeze({name: args[name] for name in keys})
