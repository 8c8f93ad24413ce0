"""What expressions look at when they are evaluated, and what of that could be otherwise.

Invariants:
* Reads are those of the evaluation itself; what was not there counts as looked at too.
* Of many places that fit a pattern some are told, always the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from ledgercli import cel
from ledgercli.paths import ABSENT, Path
from ledgercli.rules import ToolPlan
from ledgercli.why.comparisons import SIZE, Compared, Pattern
from ledgercli.why.plausible import ALIKE
from ledgercli.why.situations import Question, Read, Situation, read

_ORDERED: Final = frozenset({"<", "<=", ">", ">="})
STATE: Final = "state"
_CHANGING: Final = frozenset({"facts", "constraints", "flags", "goal", "error", "status", "final_answer", "task"})


@dataclass(frozen=True)
class Looked:
    """What some expressions looked at when they were evaluated.

    Arguments:
        reads: what was read, with the values.
        missing: paths that were not there.
        values: each part that was evaluated, with all the values that it had.

    """

    reads: Mapping[str, Any]
    missing: Sequence[str]
    values: Mapping[cel.Node, Sequence[Any]]

    def touched(self) -> Iterator[Read]:
        """Yield each path that was not there and each read, taken apart."""
        for label in (*self.missing, *self.reads):
            yield read(label)


def looked(parts: Iterable[cel.Program], plan: ToolPlan, situation: Situation) -> Looked:
    """Evaluate expressions and return what they looked at."""
    roots, moment = situation.roots(plan), situation.moment()
    reads: dict[str, Any] = {}
    missing: dict[str, None] = {}
    values: dict[cel.Node, list[Any]] = {}
    for part in parts:
        explained = part.explain(roots, moment)
        reads |= explained.reads
        missing |= dict.fromkeys(explained.answer.missing)
        for node, value in explained.values:
            if isinstance(value, cel.CannotTell):
                missing |= dict.fromkeys(value.missing)
            elif not isinstance(value, cel.EvalError):
                values.setdefault(node, []).append(value)
    return Looked(reads, tuple(missing), values)


def asks(label: str, question: Question) -> bool:
    """Whether a read is the answer to a question."""
    at = read(label).at
    return isinstance(at, Question) and at.key == question.key


def changeable(path: Pattern) -> bool:
    """Whether what is at a path can be otherwise."""
    if path[:1] == ("action",):
        return len(path) > 2 and path[1] == "args"
    return len(path) > 1 and path[0] == STATE and path[1] in _CHANGING


def matching(value: Any, path: Path, pattern: Pattern) -> Iterator[Path]:
    """Yield the paths at and below `path` that fit a pattern, some of them where there are many."""
    if value is ABSENT:
        return
    if not pattern:
        yield path
        return
    key, rest = pattern[0], pattern[1:]
    if key == SIZE:
        yield path
    elif key is not None:
        inside = value.get(key, ABSENT) if isinstance(value, Mapping) else ABSENT
        yield from matching(inside, (*path, key), rest)
    elif isinstance(value, Mapping):
        for name in islice(value, 4 * ALIKE):
            yield from matching(value[name], (*path, name), rest)
    elif isinstance(value, (list, tuple)):
        for number, item in enumerate(value[: 2 * ALIKE]):
            yield from matching(item, (*path, number), rest)


def gap(one: Compared, seen: Looked) -> float | None:
    """How far the two sides of a comparison were apart, the last time."""
    if one.sign not in _ORDERED and one.sign not in ("==", "!="):
        return None
    sides = [
        node.value if isinstance(node, cel.Literal) else next(reversed(seen.values.get(node, ())), None)
        for node in one.nodes
    ]
    numbers = [float(side) for side in sides if isinstance(side, (int, float)) and not isinstance(side, bool)]
    return numbers[0] - numbers[1] if len(numbers) == len(sides) else None
