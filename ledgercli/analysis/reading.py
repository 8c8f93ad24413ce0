"""Reads checked expressions as formulas over atoms.

Invariants:
* What is read is true, false or cannot be told exactly when the expression is; what is not understood is an atom of its
  own, of which nothing is known.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from ledgercli import cel
from ledgercli.analysis import domains
from ledgercli.analysis.domains import ERR, ONLY_ERROR, Domain
from ledgercli.analysis.formulas import (
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
from ledgercli.analysis.knowledge import Knowledge, moment
from ledgercli.analysis.terms import Term, Terms
from ledgercli.cel.relations import is_map_type, plain
from ledgercli.cel.syntax import Binary, Conditional, Expand, Has, ListOf, Macro, Root, Unary, children
from ledgercli.cel.values import UInt

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
_SMALL = {ord(letter): letter.lower() for letter in "ABCDEFGHIJKLMNOPQRSTUVWXYZ"}
_CAPITAL = {ord(letter): letter.upper() for letter in "abcdefghijklmnopqrstuvwxyz"}
_CASES: Final = {"lowerAscii": lambda text: text.translate(_SMALL), "upperAscii": lambda text: text.translate(_CAPITAL)}
#: Each counts some of what the next one counts.
_WIDER: Final = {"count_recent_failures": 0, "count_failures": 1, "count_calls": 2}
_NO_ORDER: Final = frozenset({domains.SAME, domains.APART})


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
            case Macro(name="all" | "exists"):
                return self._quantified(node)
            case cel.Call(function="startsWith") if _is_text(node.args[-1]):
                yes = domains.beginning(node.args[1].value)  # type: ignore[attr-defined]
                return self._atom(node.args[0], yes, domains.TEXTS)
        return self._truth(node, self.terms.term(node))

    # ---- atoms

    def _quantified(self, node: Macro) -> Formula:
        """`exists` is `!all(!…)`, and all are both where all are the one and all are the other."""
        every = node.name == "all"
        assert node.condition is not None, "all and exists have a condition"
        parts = self.terms.flat(node.condition, "&&" if every else "||")
        whole = All(tuple(self._truth(node, term) for term in self.terms.every(node, parts, negated=not every)))
        for part in whole.parts:
            assert isinstance(part, Atom), "a truth is an atom"
            self.about[part.term].fills = self._size(node.range)
        return whole if every else Not(whole)

    def _size(self, node: cel.Node) -> Term:
        return self.terms.made("call", "size", self.terms.term(node))

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
            return self._atom(one, _within(one, found), domains.ANYTHING)
        moments = self._moments("==", left, right)
        return self._compared("==", left, right) if moments is None else moments

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
        moments = self._moments(sign, left, right)
        return self._compared(sign, left, right) if moments is None else moments

    def _moments(self, sign: str, left: cel.Node, right: cel.Node) -> Formula | None:
        """A comparison of times, or of spans of time, one of which is written out: they count as nanoseconds."""
        mirrored = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
        for one, other, at in ((left, right, sign), (right, left, mirrored.get(sign, sign))):
            nanos = moment(other)
            if nanos is None or plain(one.type) != plain(other.type):
                continue
            if at == "==":
                point = domains.between(nanos, nanos)
                return self._atom(one, point, domains.ANYTHING)
            term = self.terms.term(one)
            self._register(term, one)
            yes, no = domains.ordered(at, nanos)
            return Atom(term, yes, no.without(domains.NAN), domains.marks(domains.OTHER) | ONLY_ERROR)
        return None

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
        listed_values = domains.union(one for one in found if one is not None)
        return self._atom(node.left, _within(node.left, listed_values), domains.ANYTHING)

    def _presence(self, node: cel.Node, holder: cel.Node, key: Term) -> Formula:
        held = self.terms.term(holder)
        term, path = self.terms.made("has", held, key), self.terms.made(".", held, key)
        if term not in self.about:
            domain = domains.marks(domains.TRUE) if self.knowledge.is_there(node) else domains.BOOLS
            domain = domain.with_error() if self.knowledge.may_fail(node) else domain
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
            ways = _ways(self.about[one], self.about[other], same=one == other) - self._beyond(left, right)
            needs = self.about[one].needs | self.about[other].needs
            failing = ERR in self.about[one].domain.marks or ERR in self.about[other].domain.marks
            domain = Domain(marks=ways | {ERR} if failing or ways & _NO_ORDER else ways)
            self.about[term] = About(domain, needs=needs, sides=(one, other))
        yes = _HOLD[sign]
        untold = ONLY_ERROR if sign == "==" else Domain(marks=_NO_ORDER | {ERR})
        return Atom(term, yes, Domain(marks=_WAYS - yes.marks - (untold.marks - {ERR})), untold)

    def _beyond(self, left: cel.Node, right: cel.Node) -> set[str]:
        """How two counts of one tool never compare: what is counted by one is counted by the other."""
        one, other = _bare(left), _bare(right)
        if not (isinstance(one, cel.Call) and isinstance(other, cel.Call) and len(one.args) == len(other.args) == 2):
            return set()
        mine, its = _WIDER.get(one.function), _WIDER.get(other.function)
        if mine is None or its is None or mine == its or self.terms.term(one.args[1]) != self.terms.term(other.args[1]):
            return set()
        return {domains.GREATER} if mine < its else {domains.LESS}

    def _register(self, term: Term, node: cel.Node) -> None:
        if term not in self.about or self.about[term].node is None:
            domain, whole = self.knowledge.values(node)
            self.about[term] = About(domain, whole, self.needs(node), node=node)
            bare = _bare(node)
            if isinstance(bare, cel.Call) and bare.function == "size" and plain(bare.args[0].type) == cel.STRING:
                self._register(self.terms.term(bare.args[0]), bare.args[0])
                self.about[term].sized = self.terms.term(bare.args[0])

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


def _within(node: cel.Node, found: Domain) -> Domain:
    """Return those of some values that a node can have, where it is a text in small or capital letters."""
    bare = _bare(node)
    change = _CASES.get(bare.function) if isinstance(bare, cel.Call) else None
    texts = None if change is None else domains.listed(found)
    if change is None or texts is None:
        return found
    return domains.union(one for text in texts if text == change(text) and (one := domains.value(text)) is not None)


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
