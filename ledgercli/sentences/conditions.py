"""Conditions in words: what must hold, with every negation pushed in to where it can be said plainly.

Invariants:
* A condition and its words hold in the same situations; where an answer depends on what is not known, neither holds.
* `not` stands only inside the words of one fact (`is not known`), never before something that has parts.
* The words of a fact hold no ` and ` and no `, or ` outside brackets and quotes, so those tell the parts apart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ledgercli import cel
from ledgercli.cel import syntax
from ledgercli.cel.syntax import Expand, Literal, Logic, Macro, Unary, Variable
from ledgercli.sentences.naming import Bound, Scope
from ledgercli.sentences.phrases import MOMENTS, NUMBERS, OPPOSITE, TELLS
from ledgercli.sentences.terms import ROOM, Term, Terms, each
from ledgercli.sentences.words import Unsayable, count, listed

_LARGE: Final = 400  # parts of a condition with its defines written out
_PARENTS: Final = frozenset({"facts", "flags", "constraints"})  # they are always there
_FAR: Final = frozenset({"double", "dyn"})


@dataclass(frozen=True, slots=True)
class Fact:
    """One fact, in words."""

    text: str


@dataclass(frozen=True, slots=True)
class All:
    """All of the parts hold."""

    parts: tuple[Words, ...]


@dataclass(frozen=True, slots=True)
class Some:
    """At least one of the parts holds."""

    parts: tuple[Words, ...]


@dataclass(frozen=True, slots=True)
class Over:
    """It holds for so many elements of a list: `for every f of action.args.flights`."""

    lead: str
    body: Words


@dataclass(frozen=True, slots=True)
class Unsaid:
    """What plain words cannot say, by the fields that it depends on."""

    fields: tuple[str, ...]


Words = Fact | All | Some | Over | Unsaid
ALWAYS: Final = All(())
NEVER: Final = Some(())


def many(kind: type[All | Some], parts: Sequence[Words]) -> Words:
    """Return parts as one, each once, without what decides nothing and without nesting of one kind in itself."""
    flat: list[Words] = []
    for part in parts:
        flat += [one for one in (part.parts if isinstance(part, kind) else (part,)) if one not in flat]
    decisive = NEVER if kind is All else ALWAYS
    if decisive in flat:
        return decisive
    return flat[0] if len(flat) == 1 else kind(tuple(flat))


class Conditions:
    """Puts conditions into words.

    Arguments:
        terms: puts values into words.
        exact: what is false and what cannot be told must be told apart, as where a rule applies; of what must hold it
            is enough to know whether it does.

    """

    def __init__(self, terms: Terms, *, exact: bool = False) -> None:
        self._terms = terms
        self._exact = exact

    def words(self, node: cel.Node, scope: Scope | None = None) -> Words:
        """Return what must hold.

        Raises:
            Unsayable: plain words cannot say it.

        """
        if _size(node, {}) > _LARGE:
            raise Unsayable
        return self._words(node, scope or {}, positive=True)

    def _words(self, node: cel.Node, scope: Scope, *, positive: bool) -> Words:  # noqa: C901 - a table
        match node:
            case Expand():
                return self._words(node.body, {}, positive=positive)
            case Variable() if isinstance(bound := scope.get(node.name), Bound):
                return self._words(bound.node, bound.scope, positive=positive)
            case Unary(operator="!"):
                return self._words(node.operand, scope, positive=not positive)
            case Literal(value=bool()):
                return ALWAYS if node.value is positive else NEVER
            case Logic():
                parts = [self._words(one, scope, positive=positive) for one in node.operands]
                return many(All if (node.operator == "&&") is positive else Some, parts)
            case syntax.Conditional():
                return self._either(node, scope, positive=positive)
            case Macro():
                return self._over(node, scope, positive=positive)
            case syntax.Has():
                return Fact(self._has(node, scope, positive=positive))
            case syntax.Binary(operator="==" | "!="):
                return self._equal(node, scope, positive=positive is (node.operator == "=="))
            case syntax.Binary(operator="in"):
                return self._member(node, scope, positive=positive)
            case syntax.Binary() if node.operator in OPPOSITE:
                counted = self._counted(node, scope) if positive else None
                return counted or Fact(self._compared(node, scope, positive=positive))
            case syntax.Call():
                return Fact(self._told(node, scope, positive=positive))
        return Fact(self._fill(f"{{}} is {'true' if positive else 'false'}", self._terms.term(node, scope)))

    # ---- made of parts

    def _either(self, node: syntax.Conditional, scope: Scope, *, positive: bool) -> Words:
        if self._exact:  # where its condition cannot be told, neither can it, whatever both sides are
            raise Unsayable
        when = self._words(node.condition, scope, positive=True)
        unless = self._words(node.condition, scope, positive=False)
        then = self._words(node.then, scope, positive=positive)
        otherwise = self._words(node.otherwise, scope, positive=positive)
        return many(Some, [many(All, [when, then]), many(All, [unless, otherwise])])

    def _over(self, node: Macro, scope: Scope, *, positive: bool) -> Words:
        if node.name == "bind" and node.result is not None:
            inner: dict[str, str | Bound] = {**scope, node.variables[0]: Bound(node.range, scope)}
            return self._words(node.result, inner, positive=positive)
        names = {("all", True): "every", ("all", False): "some", ("exists", True): "some", ("exists", False): "every"}
        if node.name == "exists_one" and positive:
            return self._quantified(node, scope, "exactly one")
        if (node.name, positive) not in names:
            raise Unsayable
        return self._quantified(node, scope, names[node.name, positive], positive=positive)

    def _quantified(self, node: Macro, scope: Scope, how_many: str, *, positive: bool = True) -> Words:
        if node.condition is None:
            raise Unsayable
        shown = self._terms.names.variables(node.variables, scope)
        walked = self._terms.range(node.range, scope).text
        body = self._words(node.condition, {**scope, **shown}, positive=positive)
        if body in (ALWAYS, NEVER):
            raise Unsayable
        lead = each(list(shown.values()), node.range).removeprefix("each")
        return Over(f"for {how_many}{lead} {walked}", body)

    def _counted(self, node: syntax.Binary, scope: Scope) -> Words | None:
        """How many elements: `size(xs.filter(x, …)) <= 3`, where the filter is written out there."""
        match node.left:
            case syntax.Call(function="size", args=(Macro(name="filter", variables=(_,)) as walked,)):
                bound = self._terms.term(node.right, scope)
                if count(bound.text) == 1:
                    return self._quantified(walked, scope, f"{NUMBERS[node.operator]} {bound.text}")
        return None

    # ---- one fact

    def _fill(self, template: str, *terms: Term) -> str:
        return self._terms.phrase(template, *terms, inside=False)

    def _has(self, node: syntax.Has, scope: Scope, *, positive: bool) -> str:
        whole = syntax.Select(node.source, node.start, node.end, node.operand, node.field)
        if positive:
            return self._fill("{} is known", self._terms.term(whole, scope))
        parent = syntax.path_of(node.operand)
        if parent is not None and parent[0] == "state" and len(parent) == 2 and parent[1] in _PARENTS:
            return self._fill("{} is not known", self._terms.term(whole, scope))
        return self._fill("{} lacks {}", self._terms.term(node.operand, scope), Term(node.field))

    def _equal(self, node: syntax.Binary, scope: Scope, *, positive: bool) -> Words:
        left, right = node.left, node.right
        if isinstance(left, Literal) and not isinstance(right, Literal):
            left, right = right, left
        if left.type == cel.BOOL and right.type == cel.BOOL:
            return self._same(left, right, scope, positive=positive)
        terms = self._terms.term(left, scope), self._terms.term(right, scope)
        if isinstance(right, Literal):
            return Fact(self._fill("{} is {}" if positive else "{} is other than {}", *terms))
        return Fact(self._fill("{} equals {}" if positive else "{} differs from {}", *terms))

    def _same(self, left: cel.Node, right: cel.Node, scope: Scope, *, positive: bool) -> Words:
        """Two conditions of which both hold or neither."""
        if isinstance(right, Literal) and isinstance(right.value, bool):
            return self._words(left, scope, positive=right.value is positive)
        sides = [
            (self._words(one, scope, positive=True), self._words(one, scope, positive=False)) for one in (left, right)
        ]
        (yes, no), (also, neither) = sides
        pairs = [(yes, also), (no, neither)] if positive else [(yes, neither), (no, also)]
        return many(Some, [many(All, pair) for pair in pairs])

    def _member(self, node: syntax.Binary, scope: Scope, *, positive: bool) -> Words:
        options = _options(node.right)
        item = self._terms.term(node.left, scope)
        if options == ():
            raise Unsayable
        if options is not None:
            written = all(isinstance(one, Literal) for one in options)
            terms = [self._terms.term(one, scope) for one in options]
            return self._one_of(item, terms, positive=positive, written=written)
        held = self._terms.term(node.right, scope)
        if isinstance(node.right.type, (cel.MapType, cel.RecordType)):
            return Fact(self._fill(f"{{}} has {'an' if positive else 'no'} entry for {{}}", held, item))
        return Fact(self._fill("{} is among {}" if positive else "{} is missing from {}", item, held))

    def _one_of(self, item: Term, options: list[Term], *, positive: bool, written: bool) -> Words:
        """One of some values; of many, several groups of them."""
        joined = listed(["{}"] * len(options), "or")
        words = joined if positive else ("other than {}" if len(options) == 1 else f"none of {joined}")
        if count(item.inner) + 2 + sum(count(one.inner) + 1 for one in options) <= ROOM:
            return Fact(self._fill(f"{{}} is {words}", item, *(Term(one.inner) for one in options)))
        if len(options) == 1:
            return Fact(self._fill(f"{{}} is {words}", item, *options))
        if not written:  # if one of them is not known, the whole cannot be told
            raise Unsayable
        half = len(options) // 2
        parts = [
            self._one_of(item, some, positive=positive, written=written) for some in (options[:half], options[half:])
        ]
        return many(Some if positive else All, parts)

    def _compared(self, node: syntax.Binary, scope: Scope, *, positive: bool) -> str:
        left, right, operator = node.left, node.right, node.operator
        words: Mapping[str, str] = NUMBERS
        if any(one.type == cel.TIMESTAMP or _is_text(one.type) for one in (left, right)):
            words = MOMENTS
        said = words[operator if positive else OPPOSITE[operator]]
        if not positive and any(_may_be_no_number(one) for one in (left, right)):
            said = f"not {words[operator]}"
        if isinstance(left, Literal):
            if said.startswith("not"):
                raise Unsayable
            left, right = right, left
            said = words[_TURNED[operator if positive else OPPOSITE[operator]]]
        return self._fill(f"{{}} is {said} {{}}", self._terms.term(left, scope), self._terms.term(right, scope))

    def _told(self, node: syntax.Call, scope: Scope, *, positive: bool) -> str:
        about = isinstance(node.args[0].type, cel.Opaque) if node.args else False
        words = TELLS.get((node.function, 2 if about else len(node.args)))
        if words is None:
            return self._fill(f"{{}} is {'true' if positive else 'false'}", self._terms.term(node, scope))
        template = words[0 if positive else 1]
        if about:
            template, terms = self._terms.asked(template, node, scope)
            return self._fill(template, *terms)
        return self._fill(template, *(self._terms.term(one, scope) for one in node.args))


_TURNED: Final = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


def _is_text(kind: cel.Type) -> bool:
    return kind == cel.STRING or isinstance(kind, cel.EnumType)


def _may_be_no_number(node: cel.Node) -> bool:
    """Whether a value can be NaN, of which `less` and `at least` are both false: no number that JSON holds is."""
    return str(node.type) in _FAR and any(map(_makes_no_number, cel.walk(node)))


def _makes_no_number(node: cel.Node) -> bool:
    match node:
        case syntax.Binary(operator="/"):
            return str(node.type) in _FAR
        case syntax.Call(function="double", args=(given,)):
            return str(given.type) not in ("int", "uint", "double")
    return isinstance(node, syntax.Call) and node.function == "math.sqrt"


def _options(node: cel.Node) -> Sequence[cel.Node] | None:
    """Return the elements of a list that is written out, also behind a define; None where it is none."""
    while isinstance(node, Expand):
        node = node.body
    if isinstance(node, syntax.ListOf):
        return node.elements
    if isinstance(node, Literal) and isinstance(node.value, (list, tuple)):
        return tuple(Literal(node.source, node.start, node.end, one) for one in node.value)
    return None


def _size(node: cel.Node, seen: dict[cel.Node, int]) -> int:
    """Return how many parts a node has where defines are written out; shared ones count each time."""
    if node not in seen:
        seen[node] = 1 + sum(_size(one, seen) for one in syntax.children(node))
    return seen[node]
