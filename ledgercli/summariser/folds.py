"""Older steps, folded: what many of them came to, in a line.

Invariants:
* A fold is as short for a thousand steps as for ten: counts are whole, the rest are the latest few.
* Two folds that follow one another make one that says of both what each said, as far as there is room.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from ledgercli.summariser.seen import Seen, changed
from ledgercli.summariser.texts import cut, name

_SETS, _VALUES, _GOALS = 6, 10, 6  # the latest that a fold still names
_TEXT: Final = 800  # characters of a text that a model wrote, several folds together
MOST: Final = 64  # tools and rules that are counted apart
OTHERS: Final = "others"
_TOOLS: Final = 12  # tools that a fold tells apart

#: How the outcomes of several calls of a tool are said, in this order.
_WORDS: Final[Mapping[str, str]] = {
    "ok": "succeeded",
    "error": "failed",
    "denied": "denied",
    "waiting": "waiting",
    "cancelled": "cancelled",
    "unknown": "unknown",
    "begun": "begun",
}

Counts = dict[str, dict[str, int]]  # tool → outcome → number


class Fold(msgspec.Struct):
    """Some steps in a row.

    Arguments:
        first: the number of the first.
        last: the number of the last.
        counts: tool → outcome → number.
        sets: the paths that were changed last.
        more: how many other changes there were.
        values: small results with their calls, the latest.
        goals: goals that were closed.
        said: how often the user said something.
        text: what a model made of these steps; in place of what is made of their counts.

    """

    first: int
    last: int
    counts: Counts = msgspec.field(default_factory=dict)
    sets: tuple[str, ...] = ()
    more: int = 0
    values: tuple[str, ...] = ()
    goals: tuple[str, ...] = ()
    said: int = 0
    text: str | None = None

    def line(self) -> str:
        """Return it as a line."""
        steps = f"@{self.first}" if self.first == self.last else f"@{self.first}-{self.last}"
        return f"{steps} {self.text or self.told()}"

    def told(self) -> str:
        """Return what is made of its counts."""
        parts = [f"{name(tool)} {total(of)}" for tool, of in sorted(self.counts.items(), key=_most)[:_TOOLS]]
        if len(self.counts) > _TOOLS:
            parts.append(f"{len(self.counts) - _TOOLS:,} more tools")
        if self.said:
            parts.append(f"the user spoke {self.said}x")
        text = f"{', '.join(parts)}{changed(self.sets, self.more)}"
        if self.values:
            text += f"; {'; '.join(self.values)}"
        if self.goals:
            text += f"; goals done: {', '.join(map(name, self.goals))}"
        return text


def fold(steps: Iterable[Seen]) -> Fold:
    """Return steps, of which there is at least one, as a fold."""
    whole: Fold | None = None
    for one in steps:
        single = Fold(
            one.step,
            one.step,
            {} if one.said else {one.tool: {one.outcome: 1}},
            one.sets[-_SETS:],
            one.more + max(len(one.sets) - _SETS, 0),
            () if one.small is None or one.said else (one.small,),
            one.goals,
            int(one.said),
        )
        whole = single if whole is None else merged(whole, single)
    assert whole is not None, "nothing is folded only where something is"
    return whole


def merged(one: Fold, other: Fold) -> Fold:
    """Return two folds that follow one another as one."""
    counts = {tool: dict(of) for tool, of in one.counts.items()}
    for tool, of in other.counts.items():
        mine = counts.setdefault(tool if tool in counts or len(counts) < MOST else OTHERS, {})
        for outcome, number in of.items():
            mine[outcome] = mine.get(outcome, 0) + number
    sets = _latest((*one.sets, *other.sets))
    return Fold(
        one.first,
        max(one.last, other.last),
        counts,
        sets[-_SETS:],
        one.more + other.more + len(one.sets) + len(other.sets) - len(sets[-_SETS:]),
        _latest((*one.values, *other.values))[-_VALUES:],
        _latest((*one.goals, *other.goals))[-_GOALS:],
        one.said + other.said,
        None if one.text is None and other.text is None else _together(one, other),
    )


def _together(one: Fold, other: Fold) -> str:
    """Return the texts of two folds as one: what there is of the newer, then as much of the older as there is room."""
    texts = [part.text or part.told() for part in (one, other)]
    return cut(" ".join(texts), _TEXT) if len(texts[1]) < _TEXT else texts[1][:_TEXT]


def _latest(texts: tuple[str, ...]) -> tuple[str, ...]:
    """Return each text once, where it stands last."""
    return tuple(reversed(dict.fromkeys(reversed(texts))))


def _most(entry: tuple[str, Mapping[str, int]]) -> tuple[int, str]:
    return -sum(entry[1].values()), entry[0]


def total(of: Mapping[str, int]) -> str:
    """Return `3x (2 failed, 1 denied)`; of successes alone the number."""
    whole = sum(of.values())
    other = [f"{of[outcome]:,} {word}" for outcome, word in _WORDS.items() if of.get(outcome) and outcome != "ok"]
    return f"{whole:,}x" + (f" ({', '.join(other)})" if other else "")


def told(of: Mapping[str, int]) -> str:
    """Return `3 times, 2 failed, 1 succeeded`."""
    whole = sum(of.values())
    parts = [(of[outcome], word) for outcome, word in _WORDS.items() if of.get(outcome)]
    parts.sort(key=lambda part: part[1] == "succeeded")  # what went wrong first
    if len(parts) == 1:
        return f"{_times(whole)}, {'' if whole == 1 else 'all '}{parts[0][1]}"
    return f"{_times(whole)}, {', '.join(f'{number:,} {word}' for number, word in parts)}"


def _times(number: int) -> str:
    return "once" if number == 1 else f"{number:,} times"
