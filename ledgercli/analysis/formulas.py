"""Conditions as the solver sees them: three-valued formulas over atoms, each atom a question about one term's value.

Invariants:
* A formula is true, false or cannot be told exactly when the expression is (Kleene's three values: CEL absorbs errors
  in `&&`, `||` and `?:`, and negation keeps them).
* An atom says for which values of its term it is true, false or cannot be told; a value may stand in several of them,
  never in none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from ledgercli import cel
from ledgercli.analysis import domains
from ledgercli.analysis.domains import ERR, NOTHING, ONLY_ERROR, Domain
from ledgercli.analysis.knowledge import Knowledge
from ledgercli.analysis.terms import Term, Terms
from ledgercli.cel.relations import is_map_type, plain
from ledgercli.cel.syntax import Binary, Conditional, Expand, Has, ListOf, Macro, Root, Unary, children
from ledgercli.cel.values import UInt

TRUE, FALSE, UNKNOWN = 1, 2, 4  # truth values; sets of them are sums
ANY: Final = TRUE | FALSE | UNKNOWN
_NUMBERS: Final = (cel.INT, cel.UINT, cel.DOUBLE)
_WAYS: Final = frozenset([domains.LESS, domains.EQUAL, domains.SAME, domains.GREATER, domains.UNORDERED, domains.APART])
#: How two values compare, for which a comparison is true; an order between values that have none cannot be told.
_HOLD: Final = {
    "==": domains.marks(domains.EQUAL, domains.SAME),
    "!=": domains.marks(domains.LESS, domains.GREATER, domains.UNORDERED, domains.APART),
    "<": domains.marks(domains.LESS),
    "<=": domains.marks(domains.LESS, domains.EQUAL),
    ">": domains.marks(domains.GREATER),
    ">=": domains.marks(domains.GREATER, domains.EQUAL),
}
_NO_ORDER: Final = frozenset({domains.SAME, domains.APART})


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

    """

    domain: Domain
    whole: bool = False
    needs: frozenset[Term] = frozenset()
    asks: Term | None = None
    sides: tuple[Term, Term] | None = None
    node: cel.Node | None = None


@dataclass(slots=True)
class Reader:
    """Makes formulas of checked expressions about one tool.

    Arguments:
        terms: tells which parts are the same.
        knowledge: what values can be.
        about: what is known of each term that was met.

    """

    terms: Terms
    knowledge: Knowledge
    about: dict[Term, About] = field(default_factory=dict)
    _formulas: dict[cel.Node, Formula] = field(default_factory=dict)
    _needs: dict[cel.Node, frozenset[Term]] = field(default_factory=dict)

    def formula(self, node: cel.Node) -> Formula:
        """Return the condition that a checked node is."""
        if node not in self._formulas:
            self._formulas[node] = self._formula(node)
        return self._formulas[node]

    def _formula(self, node: cel.Node) -> Formula:  # noqa: C901 - a table of the kinds of nodes
        match node:
            case cel.Literal():
                return Fixed(TRUE if node.value is True else FALSE if node.value is False else UNKNOWN)
            case Expand():
                return self.formula(node.body)
            case Unary(operator="!"):
                return Not(self.formula(node.operand))
            case cel.Logic():
                parts = tuple(map(self.formula, node.operands))
                return All(parts) if node.operator == "&&" else Some(parts)
            case Conditional():
                return If(self.formula(node.condition), self.formula(node.then), self.formula(node.otherwise))
            case Binary(operator="==" | "!="):
                return self._equality(node)
            case Binary(operator="<" | "<=" | ">" | ">="):
                return self._order(node)
            case Binary(operator="in"):
                return self._membership(node)
            case Has():
                key = self.terms.made("literal", "str", repr(node.field))
                return self._presence(node, node.operand, key)
            case Macro(name="exists", condition=body) if body is not None:
                return Not(self._truth(node, self.terms.opposite(node)))
            case cel.Call(function="startsWith") if _is_text(node.args[-1]):
                yes = domains.beginning(node.args[1].value)  # type: ignore[attr-defined]
                return self._atom(node.args[0], yes, domains.TEXTS)
        return self._truth(node, self.terms.term(node))

    # ---- atoms

    def _truth(self, node: cel.Node, term: Term) -> Formula:
        """A value that is true or false itself."""
        self._register(term, node)
        yes, no = domains.marks(domains.TRUE), domains.marks(domains.FALSE)
        return Atom(term, yes, no, domains.all_but(domains.BOOLS) | ONLY_ERROR)

    def _atom(self, node: cel.Node, yes: Domain, told: Domain) -> Formula:
        """A question about a value: true in `yes`, false elsewhere in `told`, and beyond that it cannot be told."""
        term = self.terms.term(node)
        self._register(term, node)
        return Atom(term, yes, told & domains.all_but(yes), domains.all_but(told) | ONLY_ERROR)

    def _equality(self, node: Binary) -> Formula:
        formula = self._equal(node.left, node.right)
        return formula if node.operator == "==" else Not(formula)

    def _equal(self, left: cel.Node, right: cel.Node) -> Formula:
        for one, other in ((left, right), (right, left)):
            found = _value(other)
            if found is None:
                continue
            if plain(one.type) == cel.BOOL and found.marks in ({domains.TRUE}, {domains.FALSE}):
                formula = self.formula(one)
                return formula if domains.TRUE in found.marks else Not(formula)
            return self._atom(one, found, domains.ANYTHING)
        return self._compared("==", left, right)

    def _order(self, node: Binary) -> Formula:
        sign, left, right = node.operator, node.left, node.right
        mirrored = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
        for one, other, at in ((left, right, sign), (right, left, mirrored[sign])):
            found = _value(other)
            if found is not None and not found.marks and isinstance(_bare(other), cel.Literal):
                term = self.terms.term(one)
                self._register(term, one)
                yes, no = domains.ordered(at, _bare(other).value)  # type: ignore[attr-defined]
                return Atom(term, yes, no, domains.all_but(yes | no) | ONLY_ERROR)
        return self._compared(sign, left, right)

    def _membership(self, node: Binary) -> Formula:
        right = _bare(node.right)
        if is_map_type(right.type):
            return self._presence(node, node.right, self.terms.term(node.left))
        listed = right.value if isinstance(right, cel.Literal) and isinstance(right.value, (list, tuple)) else None
        if listed is None and isinstance(right, ListOf) and all(isinstance(one, cel.Literal) for one in right.elements):
            listed = [one.value for one in right.elements]  # type: ignore[attr-defined]
        found = None if listed is None else [domains.value(one) for one in listed]
        if found is None or None in found:
            return self._truth(node, self.terms.term(node))
        return self._atom(node.left, domains.union(one for one in found if one is not None), domains.ANYTHING)

    def _presence(self, node: cel.Node, holder: cel.Node, key: Term) -> Formula:
        held = self.terms.term(holder)
        term, path = self.terms.made("has", held, key), self.terms.made(".", held, key)
        if term not in self.about:
            domain = domains.BOOLS.with_error() if self.knowledge.may_fail(node) else domains.BOOLS
            needs = self.needs(holder) | (self.needs(node.left) if isinstance(node, Binary) else frozenset())
            self.about[term] = About(domain, needs=needs, asks=path, node=node)
            self._path(path, needs)
        return Atom(term, domains.marks(domains.TRUE), domains.marks(domains.FALSE), ONLY_ERROR)

    def _path(self, path: Term, needs: frozenset[Term]) -> None:
        """Note a path that is only asked for, so that its presence has consequences."""
        if path not in self.about:
            self.about[path] = About(domains.ANYTHING.with_error(), needs=needs | {path})

    def _compared(self, sign: str, left: cel.Node, right: cel.Node) -> Formula:
        one, other = self.terms.term(left), self.terms.term(right)
        if one > other:
            one, other, left, right = other, one, right, left
            sign = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}.get(sign, sign)
        term = self.terms.made("compared", one, other)
        if term not in self.about:
            self._register(one, left)
            self._register(other, right)
            ways = _ways(self.about[one], self.about[other], same=one == other)
            needs = self.about[one].needs | self.about[other].needs
            failing = ERR in self.about[one].domain.marks or ERR in self.about[other].domain.marks
            domain = Domain(marks=ways | {ERR} if failing or ways & _NO_ORDER else ways)
            self.about[term] = About(domain, needs=needs, sides=(one, other))
        yes = _HOLD[sign]
        untold = ONLY_ERROR if sign == "==" else Domain(marks=_NO_ORDER | {ERR})
        return Atom(term, yes, Domain(marks=_WAYS - yes.marks - (untold.marks - {ERR})), untold)

    def _register(self, term: Term, node: cel.Node) -> None:
        if term not in self.about or self.about[term].node is None:
            domain, whole = self.knowledge.values(node)
            self.about[term] = About(domain, whole, self.needs(node), node=node)

    # ---- what a value needs

    def needs(self, node: cel.Node) -> frozenset[Term]:
        """Return the paths (by their terms) without which a node has no value."""
        if node not in self._needs:
            self._needs[node] = self._needed(node)
        return self._needs[node]

    def _needed(self, node: cel.Node) -> frozenset[Term]:
        match node:
            case Expand():
                return self.needs(node.body)
            case cel.Select() | cel.Index():
                inner = _together(map(self.needs, children(node)))
                return inner | {self.terms.term(node)} if cel.path_of(node) is not None else inner
            case cel.Logic() | Conditional() | cel.Literal() | Root():
                return frozenset()
            case Macro():  # `bind` asks for its value only where it is used
                return frozenset() if node.name == "bind" else self.needs(node.range)
            case Has():
                return self.needs(node.operand)
        return _together(map(self.needs, children(node)))


def _together(parts: Iterable[frozenset[Term]]) -> frozenset[Term]:
    return frozenset().union(*parts)


def _bare(node: cel.Node) -> cel.Node:
    while isinstance(node, Expand):
        node = node.body
    return node


def _value(node: cel.Node) -> Domain | None:
    """The value of a literal, None where it is no literal or none that sets are made of."""
    node = _bare(node)
    return domains.value(node.value) if isinstance(node, cel.Literal) and not isinstance(node.value, UInt) else None


def _is_text(node: cel.Node) -> bool:
    return isinstance(node, cel.Literal) and isinstance(node.value, str)


def _ways(left: About, right: About, *, same: bool) -> frozenset[str]:
    """How two values may compare, by what they can be."""
    found = left.domain.marks
    is_path = left.node is not None and cel.path_of(left.node) is not None
    if same and domains.NAN not in found and (is_path or domains.OTHER not in found):  # in JSON there is no NaN
        return frozenset({domains.EQUAL, domains.SAME} if found - {ERR} else {domains.EQUAL})
    kinds = [
        (bool(one.domain.numbers), bool(one.domain.texts), bool(one.domain.marks - {ERR})) for one in (left, right)
    ]
    if kinds[0] == kinds[1] and kinds[0] in ((True, False, False), (False, True, False)):
        return frozenset({domains.LESS, domains.EQUAL, domains.GREATER})
    if same:
        return _WAYS - {domains.LESS, domains.GREATER}
    return _WAYS


def argument(node: cel.Call, number: int) -> Any:
    """Return an argument's value where it is written out, else None."""
    one = _bare(node.args[number]) if number < len(node.args) else None
    return one.value if isinstance(one, cel.Literal) else None
