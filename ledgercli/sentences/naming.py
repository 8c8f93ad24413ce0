"""Names for what is explained elsewhere: defines by their own, other parts by letters; variables of macros.

Invariants:
* One name means one thing: no letter is a define's or a variable's name, no variable hides another.
* What was given a name is explained once; `pending` has it until then.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ledgercli import cel
from ledgercli.cel.syntax import Expand
from ledgercli.sentences.words import Unsayable

_LETTERS: Final = "ABCDEFGHJKLMNPQRSTUVWXYZ"
_MOST: Final = 40  # parts of one rule that are explained


@dataclass(frozen=True, slots=True)
class Bound:
    """The value that `cel.bind` gives to a name, with the names it was written among."""

    node: cel.Node
    scope: Scope


Scope = Mapping[str, "str | Bound"]


@dataclass(frozen=True, slots=True)
class Explained:
    """A name that stands for a part: that part, or the words for it."""

    name: str
    node: cel.Node | None = None
    scope: Scope | None = None
    text: str = ""


class Names:
    """Gives names.

    Arguments:
        taken: the names of defines.

    """

    def __init__(self, taken: frozenset[str]) -> None:
        self.taken = taken
        self.pending: list[Explained] = []
        self._explained: set[str] = set()
        self._variables: set[str] = set()
        self._letters: dict[tuple[Any, ...], str] = {}

    def define(self, node: Expand) -> str:
        """Return the name of a define, which is explained once."""
        if node.name not in self._explained:
            self._explained.add(node.name)
            self._explain(Explained(node.name, node.body, {}))
        return node.name

    def letter(self, node: cel.Node, scope: Scope) -> str:
        """Return a letter for a part of an expression, which is explained once."""
        names = tuple((name, bound) for name, bound in sorted(scope.items()) if isinstance(bound, str))
        return self.lettered((node, names), node=node, scope=scope)

    def lettered(self, key: tuple[Any, ...], **what: Any) -> str:
        """Return a letter for what `what` says of it; the same for the same key."""
        if key not in self._letters:
            used = {*self.taken, *self._variables, *self._letters.values()}
            self._letters[key] = next(one for one in _spelled_letters() if one not in used)
            self._explain(Explained(self._letters[key], **what))
        return self._letters[key]

    def _explain(self, part: Explained) -> None:
        self.pending.append(part)
        if len(self._letters) + len(self._explained) > _MOST:
            raise Unsayable

    def mark(self) -> tuple[Any, ...]:
        """Return what `undo` goes back to."""
        return list(self.pending), set(self._explained), dict(self._letters)

    def undo(self, mark: tuple[Any, ...]) -> None:
        """Forget names that were given since."""
        self.pending[:], self._explained, self._letters = mark

    def variables(self, names: Sequence[str], scope: Scope) -> dict[str, str]:
        """Return how the variables of a macro are called: a name that would hide another gets a number."""
        around = {name for name in scope.values() if isinstance(name, str)}
        used = {*self.taken, *around, *self._letters.values(), "state", "action", "now"}
        shown: dict[str, str] = {}
        for name in names:
            free = (one for one in (name, *(f"{name}{n}" for n in range(2, 999))) if one not in used)
            shown[name] = next(free)
            used.add(shown[name])
        self._variables.update(shown.values())
        return shown


def _spelled_letters() -> Iterator[str]:
    yield from _LETTERS
    yield from (f"{letter}{number}" for number in range(2, 999) for letter in _LETTERS)
