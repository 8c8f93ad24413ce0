"""Conditions as the solver sees them: three-valued formulas over atoms, each atom a question about one term's value.

Invariants:
* A formula is true, false or cannot be told exactly when the expression is (Kleene's three values: CEL absorbs errors
  in `&&`, `||` and `?:`, and negation keeps them).
* An atom says for which values of its term it is true, false or cannot be told; a value may stand in several of them,
  never in none.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from ledgercli import cel
from ledgercli.analysis.domains import NOTHING, Domain
from ledgercli.analysis.terms import Term

TRUE, FALSE, UNKNOWN = 1, 2, 4  # truth values; sets of them are sums
ANY: Final = TRUE | FALSE | UNKNOWN


@dataclass(frozen=True, slots=True, eq=False)
class Formula:
    """A condition."""


@dataclass(frozen=True, slots=True, eq=False)
class Fixed(Formula):
    """A condition whose answer is known."""

    value: int


@dataclass(frozen=True, slots=True, eq=False)
class Atom(Formula):
    """A question about the value of one term."""

    term: Term
    yes: Domain
    no: Domain
    untold: Domain

    def among(self, truths: int) -> Domain:
        """Return the values for which the answer is one of some truth values."""
        found = self.yes if truths & TRUE else NOTHING
        if truths & FALSE:
            found |= self.no
        return found | self.untold if truths & UNKNOWN else found


@dataclass(frozen=True, slots=True, eq=False)
class Not(Formula):
    """The opposite."""

    inner: Formula


@dataclass(frozen=True, slots=True, eq=False)
class All(Formula):
    """True if all are."""

    parts: tuple[Formula, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Some(Formula):
    """True if one is."""

    parts: tuple[Formula, ...]


@dataclass(frozen=True, slots=True, eq=False)
class If(Formula):
    """One of two, by a condition."""

    condition: Formula
    then: Formula
    otherwise: Formula


YES: Final = Fixed(TRUE)


def terms_of(formula: Formula) -> Iterator[Term]:
    """Yield the terms that a formula asks about."""
    match formula:
        case Atom():
            yield formula.term
        case Not():
            yield from terms_of(formula.inner)
        case All() | Some():
            for part in formula.parts:
                yield from terms_of(part)
        case If():
            for part in (formula.condition, formula.then, formula.otherwise):
                yield from terms_of(part)


@dataclass(slots=True)
class About:
    """What is known of a term.

    Arguments:
        domain: its values.
        whole: whether its numbers are whole.
        needs: paths (by their terms) without which it has no value.
        asks: the path whose presence it tells.
        sides: of a comparison, what is compared.
        node: a part of an expression that it stands for.
        fills: of `all`, the size of its range: where it is false there is something.
        sized: of a text's size, the text.

    """

    domain: Domain
    whole: bool = False
    needs: frozenset[Term] = frozenset()
    asks: Term | None = None
    sides: tuple[Term, Term] | None = None
    node: cel.Node | None = None
    fills: Term | None = None
    sized: Term | None = None
