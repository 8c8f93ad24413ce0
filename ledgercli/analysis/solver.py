"""Whether some state makes formulas true, false or untold as wanted: a search that ends, and says "no" for sure only.

Invariants:
* `possible` is False only if no state and no arguments do it. Where the search is given up, it is True.
* Each term has one set of values; what several conditions want of it is met. Paths that are missing take all that needs
  them along; how two values compare must fit what they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ledgercli.analysis import domains
from ledgercli.analysis.domains import ERR, Domain
from ledgercli.analysis.formulas import (
    ANY,
    FALSE,
    TRUE,
    UNKNOWN,
    About,
    All,
    Atom,
    Fixed,
    Formula,
    If,
    Not,
    Some,
)
from ledgercli.analysis.terms import Term

Wanted = tuple[Formula, int]
_Options = tuple[tuple[Wanted, ...], ...]
_STEPS: Final = 3_000  # of one search
_DEPTH: Final = 150  # of choices within choices
_SWAPPED: Final = {truths: truths & UNKNOWN | (truths & TRUE) << 1 | (truths & FALSE) >> 1 for truths in range(ANY + 1)}


class _GiveUpError(Exception):
    """The search takes too long; nothing is claimed."""


@dataclass(slots=True)
class Budget:
    """Steps that all searches of one analysis may take together."""

    left: int = 1_000_000

    def spend(self, steps: int) -> None:
        """Count steps."""
        self.left -= steps


class Solver:
    """Searches over the terms of one reader.

    Arguments:
        about: what is known of the terms.
        budget: of the whole analysis.
        held: terms whose values are known to be among some.

    """

    def __init__(self, about: Mapping[Term, About], budget: Budget, held: Mapping[Term, Domain] | None = None) -> None:
        self._about = about
        self._budget = budget
        self._held = held or {}
        self._steps = 0

    def possible(self, wanted: Iterable[Wanted]) -> bool:
        """Whether there may be a state in which each formula has one of the truth values that are wanted of it."""
        self._steps = 0
        if self._budget.left <= 0:
            return True
        start = {term: domain & self._about[term].domain for term, domain in self._held.items() if term in self._about}
        try:
            return self._search(list(wanted), [], start, 0)
        except _GiveUpError:
            return True
        finally:
            self._budget.spend(self._steps)

    def _search(self, todo: list[Wanted], choices: list[_Options], state: dict[Term, Domain], depth: int) -> bool:
        while todo:
            self._step()
            formula, truths = todo.pop()
            if truths == ANY:
                continue
            if not self._take(formula, truths, todo, choices, state):
                return False
        if not choices:
            return self._fits(state)
        if depth > _DEPTH:
            raise _GiveUpError
        options = choices.pop()
        return any(self._search(list(option), list(choices), dict(state), depth + 1) for option in options)

    def _step(self) -> None:
        self._steps += 1
        if self._steps > _STEPS:
            raise _GiveUpError

    def _take(
        self, formula: Formula, truths: int, todo: list[Wanted], choices: list[_Options], state: dict[Term, Domain]
    ) -> bool:
        """Take one demand in: as narrower sets, further demands, or a choice; False where it cannot be met."""
        match formula:
            case Fixed():
                return bool(formula.value & truths)
            case Not():
                todo.append((formula.inner, _SWAPPED[truths]))
            case Atom():
                return self._narrow(formula, truths, state)
            case All():
                self._chain(formula.parts, truths, TRUE, todo, choices)
            case Some():
                self._chain(formula.parts, truths, FALSE, todo, choices)
            case If():
                options: list[tuple[Wanted, ...]] = [
                    ((formula.condition, TRUE), (formula.then, truths)),
                    ((formula.condition, FALSE), (formula.otherwise, truths)),
                ]
                if truths & UNKNOWN:
                    options.append(((formula.condition, UNKNOWN),))
                choices.append(tuple(options))
        return True

    def _narrow(self, atom: Atom, truths: int, state: dict[Term, Domain]) -> bool:
        about = self._about[atom.term]
        found = state.get(atom.term, about.domain) & atom.among(truths)
        state[atom.term] = found
        return not found.is_empty(whole=about.whole)

    @staticmethod
    def _chain(
        parts: Sequence[Formula], truths: int, neutral: int, todo: list[Wanted], choices: list[_Options]
    ) -> None:
        """A chain has the neutral value if all parts have it, the other as soon as one has that, else it is untold."""
        decisive = _SWAPPED[neutral]
        if not truths & decisive:
            todo.extend((part, neutral | (truths & UNKNOWN)) for part in parts)
            if truths == UNKNOWN:
                choices.append(tuple(((part, UNKNOWN),) for part in parts))
        elif not truths & neutral:
            choices.append(tuple(((part, truths),) for part in parts))
        else:  # told, whichever way
            every = tuple((part, neutral) for part in parts)
            choices.append((every, *(((part, decisive),) for part in parts)))

    # ---- what sets alone do not tell

    def _fits(self, state: Mapping[Term, Domain]) -> bool:
        return (
            self._present(state)
            and self._sizes(state)
            and all(
                self._compares(domain, self._about[term], state)
                for term, domain in state.items()
                if self._about[term].sides is not None
            )
        )

    def _present(self, state: Mapping[Term, Domain]) -> bool:
        """Whether nothing that must be there is missing."""
        missing: set[Term] = set()
        there: set[Term] = set()
        for term, domain in state.items():
            about = self._about[term]
            if about.asks is not None:
                if domains.TRUE not in domain.marks:
                    missing.add(about.asks)
                elif domain.marks == {domains.TRUE}:
                    there |= self._about[about.asks].needs
            elif domain.only_error and term in about.needs:
                missing.add(term)
            if ERR not in domain.marks:
                there |= about.needs
        return not (missing & there) and all(ERR in self._about[term].domain.marks for term in missing)

    def _sizes(self, state: Mapping[Term, Domain]) -> bool:
        """Whether ranges have as many elements, and texts as many characters, as is wanted of them."""
        for term, domain in state.items():
            about = self._about[term]
            if about.fills is not None and domain.marks == {domains.FALSE} and about.fills in state:
                size, fits = state[about.fills], domains.between(1, None)
            elif about.sized is not None and about.sized in state and not state[about.sized].marks:
                text = state[about.sized]
                size, fits = domain, domains.between(domains.shortest(text), domains.longest(text))
            else:
                continue
            if ERR not in size.marks and (size & fits).is_empty(whole=True):
                return False
        return True

    def _compares(self, ways: Domain, about: About, state: Mapping[Term, Domain]) -> bool:
        assert about.sides is not None
        left, right = (state.get(side, self._about[side].domain) for side in about.sides)
        if ERR in ways.marks:
            return True
        left, right = left.without(ERR), right.without(ERR)
        if left.is_empty(whole=self._about[about.sides[0]].whole) or right.is_empty():
            return False
        return any(_may(way, left, right) for way in ways.marks)


def _may(way: str, left: Domain, right: Domain) -> bool:
    """Whether two values of these sets may compare in a way."""
    if way in (domains.EQUAL, domains.SAME):
        return not (left & right).is_empty()
    if way == domains.LESS:
        return _before(left, right)
    return _before(right, left) if way == domains.GREATER else True


def _before(left: Domain, right: Domain) -> bool:
    if left.marks and right.marks:
        return True
    return any(
        mine and its and mine[0][0] < its[-1][1]
        for mine, its in ((left.numbers, right.numbers), (left.texts, right.texts))
    )
