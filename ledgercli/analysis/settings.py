"""What the transitions of a toolset set and remove: which tool, which path, and which values.

Invariants:
* A pattern is a path with None for a key that is known only when it happens.
* The values of a path are those that schemas, `returns:` and what is written out promise; a set of them may be too
  large, never too small.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ledgercli import cel
from ledgercli.analysis import domains
from ledgercli.analysis.domains import Domain
from ledgercli.analysis.schemas import below, of_schema, of_type
from ledgercli.cel.relations import is_map_type
from ledgercli.cel.syntax import Binary, Conditional, Expand, Has
from ledgercli.documents import Document, Place
from ledgercli.toolset import Tool
from ledgercli.vocabulary import Vocabulary, blocks_of

Pattern = tuple[Any, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Setting:
    """One path that a tool's transition sets or removes.

    Arguments:
        tool: the tool's name.
        spec: the tool.
        success: whether it happens after a success.
        pattern: the path.
        place: where it stands, by its key (or as an element of `unset`).
        removes: whether the path is removed.
        value: what it sets, as it is written.
        checked: the expressions of the value, by their place.
        waits: paths that its `when` wants to be there.

    """

    tool: str
    spec: Tool
    success: bool
    pattern: Pattern
    place: Place
    removes: bool
    value: Any = None
    checked: Mapping[Place, cel.Checked] = field(default_factory=dict)
    waits: Sequence[Pattern] = ()

    @property
    def is_plain(self) -> bool:
        """Whether its value is written out, so that it can always be told."""
        return not self.removes and all(isinstance(one.node, cel.Literal) for one in self.checked.values())

    def given(self, rest: Pattern) -> Domain:
        """Return the values that it gives to the part of its path at `rest`."""
        return self._part(self.value, self.place, rest)

    def _part(self, value: Any, place: Place, rest: Pattern) -> Domain:
        if isinstance(value, str):
            checked = self.checked.get(place)
            return domains.ANYTHING if checked is None else self._of_node(checked.node, rest)
        if not isinstance(value, Mapping):
            return domains.ANYTHING if rest else domains.value(value) or domains.marks(domains.OTHER)
        if not rest:
            return domains.marks(domains.OTHER)
        keys = [key for key in value if rest[0] is None or key == rest[0]]
        return domains.union(self._part(value[key], (*place, key), rest[1:]) for key in keys)

    def _of_node(self, node: cel.Node, rest: Pattern) -> Domain:
        """The values of an expression, or of a part of them."""
        while isinstance(node, Expand):
            node = node.body
        if isinstance(node, Conditional):
            return self._of_node(node.then, rest) | self._of_node(node.otherwise, rest)
        if isinstance(node, cel.Literal):
            return domains.ANYTHING if rest else domains.value(node.value) or domains.marks(domains.OTHER)
        path = cel.path_of(node)
        schema = None if path is None else self._schema((*path, *rest))
        if schema is not None:
            return of_schema(schema)[0]
        kind = _field(node.type, rest)
        return domains.ANYTHING if kind is None else of_type(kind)

    def _schema(self, path: Pattern) -> Any:
        if path[:2] == ("result", "data") and self.success:
            return below(self.spec.returns, path[2:])
        if path[:2] == ("action", "args") and len(path) > 2:
            return below(self.spec.args.get(path[2]), path[3:])
        return None


@dataclass(slots=True, eq=False)
class Settings:
    """The transitions of a vocabulary's toolset, and what is given from the start.

    Arguments:
        vocabulary: the names.
        given: further initial values, by the keys of a scenario.

    """

    vocabulary: Vocabulary
    given: Sequence[Mapping[str, Any]] = ()
    all: list[Setting] = field(default_factory=list, init=False)
    _values: dict[Pattern, Domain | None] = field(default_factory=dict, init=False)
    _happens: dict[frozenset[str], list[Setting]] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        toolset, scenario = self.vocabulary.toolset, self.vocabulary.scenario
        if toolset is not None:
            for name, tool in toolset.file.tools.items():
                self.all += self._of(toolset.document, name, tool)
        started: list[Mapping[str, Any]] = [self.vocabulary.initial, *self.given]
        if scenario is not None:
            started.append({"facts": scenario.file.facts, "flags": scenario.file.flags})
        self.given = started

    def _of(self, document: Document, name: str, tool: Tool) -> Iterator[Setting]:
        vocabulary = self.vocabulary
        for success, place, block in blocks_of(name, tool):
            each = (*place, "each") if block.each is not None else None
            env = vocabulary.transition_env(name, success, each)
            when = dict(self._expressions(document, (*place, "when"), block.when, env))
            waits = [path for one in when.values() for path in _waits(one.node)]
            for path, value in block.set.items():
                where = (*place, "set", path)
                target = vocabulary.target(document, where, path, key=True)
                if target is not None:
                    checked = dict(self._expressions(document, where, value, env))
                    yield Setting(name, tool, success, target.pattern, where, False, value, checked, waits)
            for number, path in enumerate(block.unset):
                where = (*place, "unset", number)
                target = vocabulary.target(document, where, path)
                if target is not None:
                    yield Setting(name, tool, success, target.pattern, where, True)

    def _expressions(
        self, document: Document, place: Place, value: Any, env: cel.Env
    ) -> Iterator[tuple[Place, cel.Checked]]:
        if isinstance(value, str):
            expr = self.vocabulary.parsed(document, place, value)
            if expr is not None:
                yield place, cel.check(expr, env)
        elif isinstance(value, (Mapping, list)):
            items = value.items() if isinstance(value, Mapping) else enumerate(value)
            for key, item in items:
                yield from self._expressions(document, (*place, key), item, env)

    # ---- questions

    def at(self, path: Pattern) -> list[Setting]:
        """Return the settings of a path, of a part that holds it, or of a part of it; removals are none."""
        return [one for one in self.all if not one.removes and overlap(one.pattern, path)]

    def never_lost(self, path: Pattern) -> bool:
        """Whether no transition can remove a path that is there: a value that cannot be told removes it too."""
        return not any(
            len(one.pattern) <= len(path) and overlap(one.pattern, path) and not one.is_plain for one in self.all
        )

    def started(self, path: Pattern, *, in_run: bool = False) -> Domain:
        """Return what a path is from the start, in whatever is checked here; nothing where it is not known.

        Arguments:
            path: below the state.
            in_run: in a run of the scenario, whatever cases are about.

        """
        given = self.given[-1:] if in_run and self.vocabulary.scenario else () if in_run else self.given
        found = domains.union(_found(one, path) for one in given)
        if path[0] == "flags" and path[1:] and path[1] in self.vocabulary.flags:
            found |= domains.marks(domains.FALSE)
        if path[0] == "facts" and len(path) == 2 and path[1] in self.vocabulary.records:
            found |= domains.marks(domains.OTHER)
        return found

    def values(self, path: Pattern, tools: Collection[str] | None = None) -> Domain | None:
        """Return every value that a fact or flag can have; None where no transition gives it one.

        Arguments:
            path: below the state.
            tools: those that have run, in a run of the scenario; None: all, in any state.

        """
        if tools is not None:
            return self._united(path, tools)
        if path not in self._values:
            self._values[path] = self._united(path, None)
        return self._values[path]

    def _happening(self, tools: Collection[str]) -> list[Setting]:
        """Return what may happen once these tools may run: where `when` wants a path, something must set that first."""
        key = frozenset(tools)
        if key not in self._happens:
            can = [one for one in self.all if one.tool in tools and not one.removes]
            found: list[Setting] = []
            grown = True
            while grown:
                more = [one for one in can if one not in found and all(self._is_set(path, found) for path in one.waits)]
                found += more
                grown = bool(more)
            self._happens[key] = found
        return self._happens[key]

    def _is_set(self, path: Pattern, settings: Collection[Setting]) -> bool:
        return any(overlap(one.pattern, path) for one in settings) or not self.started(path, in_run=True).is_empty()

    def _united(self, path: Pattern, tools: Collection[str] | None) -> Domain | None:
        found, known = self.started(path, in_run=tools is not None), False
        happening = None if tools is None else self._happening(tools)
        for one in self.at(path):
            known = True
            if happening is None or one in happening:
                rest = path[len(one.pattern) :]
                found |= domains.marks(domains.OTHER) if len(one.pattern) > len(path) else one.given(rest)
        tuned = tools is None and path[0] == "facts" and not known  # a scenario's own: the next gives another
        return None if tuned or (found.is_empty() and not known) else found


def _waits(node: cel.Node) -> Iterator[Pattern]:
    """The facts that a condition wants to be there."""
    while isinstance(node, Expand):
        node = node.body
    if isinstance(node, cel.Logic) and node.operator == "&&":
        for operand in node.operands:
            yield from _waits(operand)
    elif (path := fact_of(node)) is not None and path[0] == "facts" and isinstance(node, (Has, Binary)):
        yield path


def fact_of(node: cel.Node) -> Pattern | None:
    """Return the path, below the state, of the fact or flag that a node is, or whose presence it asks for."""
    path, key = cel.path_of(node), ()  # type: tuple[Any, ...] | None, tuple[Any, ...]
    if isinstance(node, Has):
        path, key = cel.path_of(node.operand), (node.field,)
    elif isinstance(node, Binary) and node.operator == "in":
        path = cel.path_of(node.right) if is_map_type(node.right.type) else None
        key = (node.left.value,) if isinstance(node.left, cel.Literal) else (None,)
    if path is None or path[:2] not in (("state", "facts"), ("state", "flags")) or len(path) + len(key) < 3:
        return None
    return (*path[1:], *key)


def overlap(one: Pattern, other: Pattern) -> bool:
    """Whether two paths may be the same as far as both go."""
    return all(mine is None or its is None or mine == its for mine, its in zip(one, other, strict=False))


def _found(given: Any, path: Pattern) -> Domain:
    """The values at a path of what is given."""
    if not path:
        return domains.value(given) or domains.marks(domains.OTHER)
    if isinstance(given, Mapping):
        return domains.union(_found(given[key], path[1:]) for key in given if path[0] is None or key == path[0])
    if isinstance(given, list):
        return domains.union(_found(one, path[1:]) for one in given)
    return domains.NOTHING


def _field(kind: cel.Type, rest: Pattern) -> cel.Type | None:
    """The type of a part of a value."""
    for key in rest:
        if isinstance(kind, cel.RecordType) and key in kind.fields:
            kind = kind.fields[key].type
        elif isinstance(kind, cel.MapType):
            kind = kind.value
        else:
            return None
    return kind
