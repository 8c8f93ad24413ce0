"""The index behind the functions over past steps.

Invariants:
* Every question is answered from tallies kept while entries are recorded: a run of 10,000 steps answers as fast
  as an empty one.
* Values are told apart as the policy language does: 1 and 1.0 are the same, 1 and true are not.
* Texts are taken apart into tokens only when the first question about grounding comes.

Executed are calls that ended `ok`, `error` or `unknown` (the last may have taken effect). A denied or cancelled one
is not. Only `error` is a failure, only `ok` a success.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

NEVER = 1_000_000_000  # what `steps_since` says of a tool that has not run: larger than any ledger

_ALONE = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"  # Chinese and kana: no spaces, each sign is a token
_LETTER = rf"[^\W{_ALONE}]"
_WORD = re.compile(rf"{_LETTER}+|[{_ALONE}]")
_NUMBER = re.compile(rf"(?<!{_LETTER})(?<!\.)[-+]?(?:\d{{1,3}}(?:,\d{{3}})+|\d+)(?:\.\d+)?(?!{_LETTER}|\.\d)")
_JOINS = re.compile(_LETTER)


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


@dataclass(slots=True)
class _Tally:
    """What is known of one tool's calls, or of those with certain arguments."""

    calls: int = 0
    failures: int = 0
    failures_in_a_row: int = 0
    successes: int = 0
    denied: int = 0
    last_step: int | None = None
    last_args: Mapping[str, Any] | None = None
    last_result: Any = None
    asked: set[str] = field(default_factory=set)  # arguments whose sums and values are kept
    sums: dict[str, float] = field(default_factory=dict)
    values: dict[str, set[Any]] = field(default_factory=dict)


@dataclass(slots=True)
class _Texts:
    """Whole tokens and numbers that were said in one place: the task, the user's answers, one tool's results."""

    waiting: list[Any] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    places: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    numbers: set[float] = field(default_factory=set)

    def add(self, value: Any) -> None:
        self.waiting.append(value)

    def holds(self, value: Any) -> bool:
        """Whether every leaf of `value` stands here."""
        for said in self.waiting:
            for leaf in _leaves(said):
                self._read(leaf)
        self.waiting.clear()
        leaves = list(_leaves(value))
        return bool(leaves) and all(self._leaf(leaf) for leaf in leaves)

    def _read(self, leaf: Any) -> None:
        if isinstance(leaf, bool) or leaf is None:
            return
        if isinstance(leaf, (int, float)):
            self.numbers.add(leaf)
            leaf = repr(leaf)
        text = str(leaf).casefold()
        self.texts.append(text)
        for word in _WORD.finditer(text):
            self.places.setdefault(word.group(), []).append((len(self.texts) - 1, word.start()))
        self.numbers.update(_number(number.group().replace(",", "")) for number in _NUMBER.finditer(text))

    def _leaf(self, leaf: Any) -> bool:
        if isinstance(leaf, bool) or leaf is None:
            return False
        if isinstance(leaf, (int, float)):
            return leaf in self.numbers
        text = str(leaf).strip().casefold()
        words = list(_WORD.finditer(text))
        if not words:
            return bool(text) and any(text in said for said in self.texts)
        rarest = min(words, key=lambda word: len(self.places.get(word.group(), ())))
        return any(
            self._at(text, self.texts[number], place - rarest.start())
            for number, place in self.places.get(rarest.group(), ())
        )

    @staticmethod
    def _at(text: str, said: str, start: int) -> bool:
        end = start + len(text)
        if start < 0 or said[start:end] != text:
            return False
        opens = start == 0 or not (_JOINS.match(text[0]) and _JOINS.match(said[start - 1]))
        closes = end == len(said) or not (_JOINS.match(text[-1]) and _JOINS.match(said[end]))
        return opens and closes


def _number(text: str) -> int | float:
    """The value of digits; whole numbers that a ledger can hold stay exact."""
    return float(text) if "." in text or len(text) > len(str(-(2**63))) else int(text)


def _leaves(value: Any) -> Iterator[Any]:
    """Yield the leaves of a JSON value; an empty map, list or text is a leaf that nothing grounds."""
    stack = [value]
    while stack:
        top = stack.pop()
        if isinstance(top, Mapping):
            inner: Iterable[Any] = top.values()
        elif isinstance(top, (list, tuple)):
            inner = top
        else:
            yield top
            continue
        before = len(stack)
        stack.extend(inner)
        if len(stack) == before:
            yield ""


class History:
    """Tallies over the steps of one run, in the order in which they were recorded."""

    def __init__(self, task: str = "") -> None:
        self._tools: dict[str, _Tally] = {}
        self._calls: list[tuple[str, Mapping[str, Any], bool]] = []
        self._narrow: dict[tuple[str, frozenset[str]], dict[Any, _Tally]] = {}
        self._row_tool: tuple[str | None, int] = (None, 0)
        self._row_call: tuple[str | None, Mapping[str, Any], int] = (None, {}, 0)
        self._confirmed: dict[Any, bool] = {}
        self._task = _Texts([task])
        self._user = _Texts()
        self._results: dict[str, _Texts] = {}

    def denied(self, tool: str) -> None:
        """Count a proposal that was refused."""
        self._tally(tool).denied += 1

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
        self._count(tally, outcome)
        tally.last_step, tally.last_args, tally.last_result = step, args, data
        for name in tally.asked:
            if outcome == "ok" and name in args:
                self._add_up(tally, name, args[name])
        self._calls.append((tool, args, outcome == "ok"))
        for (name, keys), groups in self._narrow.items():
            if name == tool and keys <= args.keys():
                self._count(groups.setdefault(_key(args, keys), _Tally()), outcome)
        self._row_tool = (tool, self._row_tool[1] + 1 if self._row_tool[0] == tool else 1)
        self._row_call = (tool, args, self._row_call[2] + 1 if self._is_latest(tool, args) else 1)
        if self._confirmed:
            self._confirmed.pop((tool, freeze(args)), None)
        if outcome == "ok":
            self._results.setdefault(tool, _Texts()).add(data)

    def said(self, text: Any) -> None:
        """Take in what a user said."""
        self._user.add(text)

    def answered(self, tool: str, args: Mapping[str, Any], *, yes: bool) -> None:
        """Take in the answer to a `confirm` of exactly this call."""
        self._confirmed[(tool, freeze(args))] = yes

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
        return self._row_tool[1] if self._row_tool[0] == tool else 0

    def repeats_of_call(self, tool: str, args: Mapping[str, Any]) -> int:
        """Executions of this very call in a row, up to now."""
        return self._row_call[2] if self._is_latest(tool, args) else 0

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
        return self._added_up(tool, arg).sums.get(arg, 0.0)

    def distinct_args(self, tool: str, arg: str) -> int:
        """How many different values of an argument the successful calls of `tool` had."""
        return len(self._added_up(tool, arg).values.get(arg, ()))

    def confirmed(self, tool: str, args: Mapping[str, Any]) -> bool:
        """Whether exactly this call was confirmed and has not run since."""
        return self._confirmed.get((tool, freeze(args)), False)

    def from_task(self, value: Any) -> bool:
        """Whether every leaf of `value` stands in the task's text as a whole token."""
        return self._task.holds(value)

    def from_user(self, value: Any) -> bool:
        """Whether every leaf of `value` stands in what the user said."""
        return self._user.holds(value)

    def from_tool(self, value: Any, tool: str) -> bool:
        """Whether every leaf of `value` stands in earlier results of `tool`."""
        return tool in self._results and self._results[tool].holds(value)

    def _tally(self, tool: str) -> _Tally:
        return self._tools.setdefault(tool, _Tally())

    def _known(self, tool: str) -> _Tally:
        return self._tools.get(tool) or _Tally()

    def _narrowed(self, tool: str, args: Mapping[str, Any] | None) -> _Tally:
        if not args:
            return self._known(tool)
        keys = frozenset(args)
        groups = self._narrow.get((tool, keys))
        if groups is None:  # the first question with these keys reads the past once; later entries keep it current
            groups = self._narrow[(tool, keys)] = {}
            for name, earlier, ok in self._calls:
                if name == tool and keys <= earlier.keys():
                    self._count(groups.setdefault(_key(earlier, keys), _Tally()), "ok" if ok else "other")
        return groups.get(_key(args, keys)) or _Tally()

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
        latest, before, _ = self._row_call
        return latest == tool and before == args and _alike(before, args)

    def _added_up(self, tool: str, arg: str) -> _Tally:
        """Return the tally with the sum and values of an argument; the first question reads the past once."""
        tally = self._tally(tool)
        if arg not in tally.asked:
            tally.asked.add(arg)
            for name, args, ok in self._calls:
                if ok and name == tool and arg in args:
                    self._add_up(tally, arg, args[arg])
        return tally

    @staticmethod
    def _add_up(tally: _Tally, name: str, value: Any) -> None:
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            tally.sums[name] = tally.sums.get(name, 0.0) + value
        tally.values.setdefault(name, set()).add(freeze(value))


def _key(args: Mapping[str, Any], keys: frozenset[str]) -> Any:
    return freeze({name: args[name] for name in keys})
