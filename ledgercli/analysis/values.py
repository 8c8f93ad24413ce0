"""Comparisons with a value that nothing gives: no transition, no initial value, no case.

Invariants:
* Only facts and flags are looked at, whose every value is told by literals, schemas and `returns:`; constraints are
  there to be tuned, and where nothing gives a value, anything may come.
* A value is only called impossible if the very kind of value that it is compared with can be told.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ledgercli import cel
from ledgercli.analysis import domains
from ledgercli.analysis.context import Context
from ledgercli.analysis.domains import Domain
from ledgercli.analysis.findings import Finding, at_node, shown
from ledgercli.analysis.knowledge import asked_source
from ledgercli.analysis.looking import Look
from ledgercli.analysis.schemas import of_type
from ledgercli.cel.relations import plain
from ledgercli.cel.syntax import Binary, Expand, ListOf, walk

_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


def check(context: Context, looks: Sequence[Look]) -> Iterator[tuple[Look, Finding]]:
    """Yield comparisons with impossible values, each with the expression in which it is met first."""
    seen: set[tuple[Any, int]] = set()
    for look in looks:
        for node in walk(look.node):
            if isinstance(node, Binary) and (node.operator in ("==", "!=", "in") or node.operator in _MIRRORED):
                for wrong, finding in _of(context, node):
                    place = (wrong.source.label, wrong.start)
                    if look.rule is not None or place not in seen:  # every rule that uses a define is told of
                        seen.add(place)
                        yield look, finding


def _of(context: Context, node: Binary) -> Iterator[tuple[cel.Node, Finding]]:
    sides = [(node.left, node.right, node.operator)]
    if node.operator != "in":
        sides.append((node.right, node.left, _MIRRORED.get(node.operator, node.operator)))
    for one, other, sign in sides:
        known = _given(context, one)
        if known is None:
            continue
        text, given = known
        for wrong in _impossible(sign, other, given):
            what = f"{sign} {shown(wrong)}" if sign in _MIRRORED else shown(wrong)
            message = f"{text} is never {what}"
            yield wrong, _finding(context, wrong, message, given, one)


def _given(context: Context, node: cel.Node) -> tuple[str, Domain] | None:
    """Return the name of a fact or flag, or of its source, with all values that it is given."""
    bare = _bare(node)
    if (asked := asked_source(bare)) is not None and context.toolset is not None:
        reader = context.reader(context.packs[0], None) if context.packs else None
        return None if reader is None else (shown(node), reader.knowledge.sources(asked))
    path = cel.path_of(bare)
    if path is None or path[:2] not in (("state", "facts"), ("state", "flags")) or len(path) < 3:
        return None
    given = context.settings.values(path[1:])
    return None if given is None else (shown(node), given & of_type(node.type))


def _impossible(sign: str, other: cel.Node, given: Domain) -> Iterator[cel.Node]:
    """The parts of the other side that are no value of these."""
    other = _bare(other)
    if sign == "in":
        elements = other.elements if isinstance(other, ListOf) else ()
        for element in elements:
            yield from _impossible("==", element, given)
        return
    if not isinstance(other, cel.Literal) or isinstance(other.value, (list, tuple, dict)):
        return
    point = domains.value(other.value) if type(other.value) in (bool, int, float, str, type(None)) else None
    if point is None:
        return
    if sign in _MIRRORED:
        if not point.marks:
            yes, no = domains.ordered(sign, other.value)
            if (given & yes).is_empty() and not (given & no).is_empty():
                yield other
    elif (given & point).is_empty() and not _is_null(other):
        yield other


def _is_null(node: cel.Literal) -> bool:
    return node.value is None and plain(node.type) == cel.NULL  # `!= null` is asked out of caution


def _finding(context: Context, wrong: cel.Node, message: str, given: Domain, path: cel.Node) -> Finding:
    listed = domains.listed(given)
    known = _bare(path)
    asked = asked_source(known)
    found = asked if asked is not None else (cel.path_of(known) or ())[1:]
    setters = dict.fromkeys(one.tool for one in context.settings.at(found))
    what = f"it is one of {', '.join(map(str, listed))}" if listed else "by its type and what gives it a value"
    by = f"; {', '.join(setters)} sets it" if len(setters) == 1 else f"; {', '.join(setters)} set it" if setters else ""
    problem = at_node(wrong, "impossible-value", message, notes=(what + by,))
    return Finding(problem, (problem.line, problem.column))


def _bare(node: cel.Node) -> cel.Node:
    while isinstance(node, Expand):
        node = node.body
    return node
