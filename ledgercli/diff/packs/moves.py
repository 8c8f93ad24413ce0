"""What to change in an example next, so that a rule may come to something else.

Invariants:
* The values that rules compare with are those of `candidates`; here is added what has to be there first: elements of
  lists and entries of maps that rules walk, names for texts, times, and results of a last call.
* Nothing here says that a change helps.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from ledgercli import cel
from ledgercli.cel.syntax import Literal as Written
from ledgercli.diff.packs.examples import AT, NOW
from ledgercli.diff.packs.units import Half
from ledgercli.names import schema_type
from ledgercli.paths import Path
from ledgercli.toolset import Tool
from ledgercli.why.candidates import Candidates
from ledgercli.why.plausible import fitting_arguments
from ledgercli.why.situations import Change, Question, Situation, put

_NAMES: Final = ("x", "y", "z")
_HOURS: Final = (3, 6, 9, 12, 15, 18, 21, 24, 48, 72, 96, 120, 24 * 30, 24 * 180)
_HOUR: Final = 3_600_000_000_000  # nanoseconds
_MANY: Final = 8  # places of one pattern


def changes_of(half: Half, situation: Situation, candidates: Candidates) -> Iterator[Change]:
    """Yield the changes that bear on a rule."""
    for change in candidates.of(half.programs, situation)[1]:
        yield from _named(change)
    yield from _grown(half, situation)
    yield from _times(half)
    yield from _lasts(half)


def _named(change: Change) -> Iterator[Change]:
    """Yield a change, before it the same with a name in place of each empty text, which nothing grounds."""
    filled = _filled(change.value)
    if filled is not change.value:
        yield Change(change.at, filled)
    yield change


def _filled(value: Any) -> Any:
    if value == "":
        return _NAMES[0]
    if isinstance(value, Mapping):
        filled = {key: _filled(item) for key, item in value.items()}
        return filled if any(filled[key] is not value[key] for key in filled) else value
    if isinstance(value, (list, tuple)):
        items = list(map(_filled, value))
        return items if any(one is not other for one, other in zip(items, value, strict=True)) else value
    return value


def _times(half: Half) -> Iterator[Change]:
    """Yield other times, if a rule looks at the time."""
    if any(path[:1] == AT for program in half.programs for path in program.checked.paths):
        for program in half.programs:
            for node in cel.walk(program.checked.node):
                if isinstance(node, Written) and isinstance(node.value, cel.Timestamp):
                    yield from (Change(AT, cel.Timestamp(node.value.nanos + more * _HOUR)) for more in (0, -1, 1))
        yield from (Change(AT, cel.Timestamp(NOW.nanos + hours * _HOUR)) for hours in _HOURS)


def _lasts(half: Half) -> Iterator[Change]:
    """Yield results and arguments of a last call, which cannot be read as long as there was none."""
    for program in half.programs:
        literals = [node.value for node in cel.walk(program.checked.node) if isinstance(node, Written)]
        fields = [node.field for node in cel.walk(program.checked.node) if isinstance(node, cel.Select)]
        scalars = [value for value in literals if value is None or type(value) in (bool, int, float, str)]
        for node in program.checked.calls:
            tool = node.args[1] if len(node.args) > 1 else None
            if node.function not in ("last_result", "last_args") or not isinstance(tool, Written):
                continue
            question = Question(node.function, (tool.value,))
            for value in (*scalars, True, False, "", 0):
                if node.function == "last_result":
                    yield Change(question, value)
                yield from (Change(question, {name: value}) for name in fields)


def _grown(half: Half, situation: Situation) -> Iterator[Change]:
    """Yield lists and maps that a rule walks with one thing more in them."""
    for program in half.programs:
        for pattern, node in cel.looked_at(program.checked.node):
            kind = node.type
            if isinstance(kind, cel.ListType) and pattern[:1] in (("action",), ("state",)):
                for path, known in _places(situation, pattern):
                    if isinstance(known, (list, tuple)):
                        yield Change(path, [*known, _plain_of(kind.elem)])
            elif isinstance(kind, cel.MapType) and pattern[:2] == ("state", "facts"):
                for path, known in _places(situation, pattern):
                    if isinstance(known, Mapping):
                        name = next(name for number in range(len(known) + 1) if (name := _name(number)) not in known)
                        yield Change((*path, name), _plain_of(kind.value))


def _name(number: int) -> str:
    return _NAMES[number] if number < len(_NAMES) else f"x{number}"


def _places(situation: Situation, pattern: Path | tuple[Any, ...]) -> list[tuple[Path, Any]]:
    """Return some of the places that a pattern fits, with what is there."""
    found: list[tuple[Path, Any]] = [((), {"state": situation.state.tree, "action": {"args": situation.proposal.args}})]
    for key in pattern:
        inner: list[tuple[Path, Any]] = []
        for path, value in found:
            if isinstance(value, Mapping):
                names = list(value)[:_MANY] if key is None else [key] if key in value else []
                inner += [((*path, name), value[name]) for name in names]
            elif isinstance(value, (list, tuple)) and (key is None or type(key) is int):
                numbers = range(min(len(value), _MANY)) if key is None else [key] if -1 < key < len(value) else []
                inner += [((*path, number), value[number]) for number in numbers]
        found = inner[:_MANY]
    return found


def _plain_of(kind: cel.Type) -> Any:
    """Return a plain value of a type, with a name for each text."""
    if isinstance(kind, cel.RecordType):
        return {name: _plain_of(one.type) for name, one in kind.fields.items()}
    if isinstance(kind, cel.EnumType):
        return min(kind.values, default=_NAMES[0])
    if isinstance(kind, cel.ListType):
        return []
    plain = {cel.BOOL: False, cel.INT: 0, cel.DOUBLE: 0, cel.STRING: _NAMES[0], cel.NULL: None}
    return plain.get(kind, {})


# ---- plain arguments


def plain_arguments(tool: Tool) -> dict[str, Any] | None:
    """Return arguments that fit a tool, as plain as can be; None where none were found."""
    args: dict[str, Any] = {}
    names = iter((*_NAMES, *(f"x{number}" for number in range(len(tool.args) + 1))))
    for name, schema in tool.args.items():
        if "default" not in schema:
            args[name] = _plain(schema, names)
    for _ in range(3 * len(args) + 3):
        filled = {**tool.defaults, **args}
        if tool.validator.is_valid(filled):
            return args
        change = next(
            (one for one in fitting_arguments(tool, filled) if not isinstance(one.at, Question) and one.at[2:]), None
        )
        if change is None or isinstance(change.at, Question):
            return None
        args = put(args, tuple(change.at[2:]), change.value)
    return None


def _plain(schema: Mapping[str, Any], names: Iterator[str]) -> Any:
    for key in ("const", "minimum"):
        if key in schema:
            return schema[key]
    if schema.get("enum"):
        return schema["enum"][0]
    kind = schema_type(schema, "argument")
    if isinstance(kind, cel.ListType):
        items = schema.get("items")
        return [_plain(items if isinstance(items, Mapping) else {"type": "object"}, names)]
    if isinstance(kind, cel.RecordType):
        return {name: _plain(one, names) for name, one in schema.get("properties", {}).items()}
    if isinstance(kind, cel.MapType):
        return {}
    if kind in (cel.INT, cel.DOUBLE):
        return 0
    return False if kind == cel.BOOL else None if kind == cel.NULL else next(names, "x")
