"""What the values of paths and calls can be, and whether they are there: by schemas, types and what is given.

Invariants:
* What is told of arguments is what the tool's schema enforces: a call that does not fit is refused before any rule.
* What is told of facts is what `returns:` and values promise; that a fact is known is promised by nothing.
* In doubt a value may be anything, and may be missing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from ledgercli import cel
from ledgercli.analysis import domains
from ledgercli.analysis.domains import Domain
from ledgercli.analysis.schemas import below, of_schema, of_type
from ledgercli.analysis.settings import Settings
from ledgercli.cel.relations import is_map_type, plain
from ledgercli.cel.syntax import Binary, Conditional, Expand, Has, Root
from ledgercli.toolset import Tool
from ledgercli.vocabulary import Vocabulary

_COUNTS: Final = frozenset(
    {
        "count_calls",
        "count_failures",
        "count_recent_failures",
        "count_denied",
        "repeats",
        "steps_since",
        "distinct_args",
        "size",
    }
)
_ANSWERS: Final = _COUNTS - {"size"} | {"succeeded", "confirmed", "from_task", "from_user", "from_tool", "sum_args"}
_ALWAYS: Final = frozenset({"task", "facts", "constraints", "flags", "goal", "step", "status", "error", "final_answer"})


@dataclass(frozen=True, slots=True)
class Knowledge:
    """What is known of values in an expression about one tool.

    Arguments:
        vocabulary: the names.
        settings: what transitions set.
        tool: the tool; None where it is not known which there are.

    """

    vocabulary: Vocabulary
    settings: Settings
    tool: Tool | None

    def values(self, node: cel.Node) -> tuple[Domain, bool]:
        """Return what a node can be, `err` included, and whether its numbers are whole."""
        domain, whole = self._values(node)
        return (domain.with_error() if self.may_fail(node) else domain), whole

    def _values(self, node: cel.Node) -> tuple[Domain, bool]:
        path = cel.path_of(node)
        if path is not None and path[0] == "action":
            return self._of_action(path, node.type)
        if path is not None:
            return self._of_state(path, node.type), path == ("state", "step")
        if (asked := asked_source(node)) is not None:
            return of_type(node.type) & self.sources(asked), False
        if (nanos := moment(node)) is not None:
            return domains.between(nanos, nanos), True
        if isinstance(node, Expand):
            return self._values(node.body)
        if isinstance(node, Conditional):
            then, otherwise = self._values(node.then), self._values(node.otherwise)
            return then[0] | otherwise[0], then[1] and otherwise[1]
        if isinstance(node, cel.Literal) and (known := domains.value(node.value)) is not None:
            return known, type(node.value) is int
        if isinstance(node, cel.Call) and node.function in _COUNTS and plain(node.type) == cel.INT:
            return domains.between(0, None), True
        return of_type(node.type), plain(node.type) in (cel.INT, cel.UINT)

    def _of_state(self, path: tuple[Any, ...], kind: cel.Type) -> Domain:
        """What a path can be: by its type, and by what transitions and initial values give it."""
        domain = of_type(kind).without(domains.NAN)
        if path[:2] in (("state", "facts"), ("state", "flags")) and len(path) > 2:
            given = self.settings.values(path[1:])
            return domain if given is None else domain & given
        if path == ("state", "step"):
            return domain & domains.between(0, None)
        return domain

    def _of_action(self, path: tuple[Any, ...], kind: cel.Type) -> tuple[Domain, bool]:
        if path[1:2] == ("args",) and len(path) > 2 and self.tool is not None:
            schema = below(self.tool.args.get(path[2], {}), path[3:])
            if schema is not None:
                return of_schema(schema)
        if path == ("action", "tool"):  # only where the tool is not known: any toolset may come
            return domains.TEXTS, False
        if path == ("action", "access"):
            return of_type(kind), False
        return of_type(kind).without(domains.NAN), False

    def sources(self, path: tuple[Any, ...]) -> Domain:
        """Return who can have established a fact, as `source` says it: initial values are always possible."""
        by = {"user" if one.spec.asks_person else one.tool for one in self.settings.at(path)}
        names = map(domains.value, {*by, "task"})
        return domains.union(one for one in names if one is not None)

    # ---- whether there is a value

    def is_there(self, node: cel.Node) -> bool:
        """Whether what a `has()` asks for is there in every state."""
        path = cel.path_of(node.operand) if isinstance(node, Has) else None
        return isinstance(node, Has) and path is not None and self._is_there((*path, node.field))

    def may_fail(self, node: cel.Node) -> bool:
        """Whether a node may have no value."""
        match node:
            case cel.Literal():
                return False
            case Expand():
                return self.may_fail(node.body)
            case Root() | cel.Select() | cel.Index():
                path = cel.path_of(node)
                return path is None or not self._is_there(path)
            case Has():
                return self.may_fail(node.operand) or not is_map_type(node.operand.type)
            case Binary(operator="in"):
                walkable = is_map_type(node.right.type) or isinstance(node.right.type, cel.ListType)
                return not walkable or self.may_fail(node.left) or self.may_fail(node.right)
            case cel.Call():
                return self._call_may_fail(node)
        return True

    def _call_may_fail(self, node: cel.Call) -> bool:
        if node.function == "size":
            kind = node.args[0].type
            known = is_map_type(kind) or isinstance(kind, cel.ListType) or plain(kind) == cel.STRING
            return not known or self.may_fail(node.args[0])
        if node.function not in _ANSWERS:
            return True
        return any(self._argument_may_fail(arg) for arg in node.args)

    def _argument_may_fail(self, node: cel.Node) -> bool:
        if isinstance(node.type, cel.Opaque):
            return False
        if isinstance(node, cel.MapOf):
            return any(self.may_fail(part) for entry in node.entries for part in entry)
        return self.may_fail(node)

    def _is_there(self, path: tuple[Any, ...]) -> bool:
        if None in path:
            return False
        if path[0] == "now" or len(path) == 1:
            return True
        if path[0] == "action":
            return self._is_given(path[1:])
        if path[0] != "state":
            return False
        part, rest = path[1], path[2:]
        if not rest:
            return part in _ALWAYS
        if len(rest) != 1 or not self.settings.never_lost(path[1:]):
            return False
        if part == "flags":
            return rest[0] in self.vocabulary.flags
        if part == "constraints":
            return rest[0] in self.vocabulary.constraints()
        return part == "facts" and rest[0] in self.vocabulary.records

    def _is_given(self, rest: tuple[Any, ...]) -> bool:
        if rest[0] in ("tool", "access", "tags"):
            return len(rest) == 1
        if rest[0] != "args" or len(rest) == 1:
            return rest == ("args",)
        return self.tool is not None and rest[1] in self.tool.args and _required(self.tool.args[rest[1]], rest[2:])


def _required(schema: Any, keys: tuple[Any, ...]) -> bool:
    """Whether a part of a value is always there."""
    for key in keys:
        if not isinstance(schema, Mapping) or schema.get("type") != "object":
            return False
        required = schema.get("required")
        if not isinstance(required, list) or key not in required:
            return False
        properties = schema.get("properties")
        schema = properties.get(key) if isinstance(properties, Mapping) else None
    return True


def moment(node: cel.Node) -> int | None:
    """Return the nanoseconds of a time or a span of time that is written out."""
    while isinstance(node, Expand):
        node = node.body
    if isinstance(node, cel.Literal) and isinstance(node.value, (cel.Timestamp, cel.Duration)):
        return node.value.nanos
    if not isinstance(node, cel.Call) or len(node.args) != 1 or not isinstance(node.args[0], cel.Literal):
        return None
    text = node.args[0].value
    if node.function not in ("timestamp", "duration") or not isinstance(text, str):
        return None
    try:
        return cel.Timestamp.parse(text).nanos if node.function == "timestamp" else cel.Duration.parse(text).nanos
    except cel.EvalError:
        return None


def asked_source(node: cel.Node) -> tuple[Any, ...] | None:
    """Return the path, below the state, of which a node asks the source's tool; None for any other node."""
    if not isinstance(node, cel.Select) or node.field != "tool":
        return None
    call = node.operand
    if not isinstance(call, cel.Call) or call.function != "source":
        return None
    path = cel.path_of(call.args[0])
    return path[1:] if path is not None and path[0] == "state" else None
