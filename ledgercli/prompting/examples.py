"""One right and one wrong decision, made from the schemas of the tools.

Invariants:
* Deterministic; the right one fits its tool's schema, the wrong one would be refused whatever the state.
* The values are made up, and look so: a text is the name of its argument in capitals.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from ledgercli.toolset import FINISH, Tool

_FORMATS: Final[Mapping[str, str]] = {
    "date": "2026-01-31",
    "date-time": "2026-01-31T12:00:00Z",
    "time": "12:00:00Z",
    "email": "name@example.com",
    "uri": "https://example.com/",
    "uuid": "00000000-0000-4000-8000-000000000000",
}
_ABSENT: Final = "note", "comment", "remark", "extra_note"  # one of them is no argument of a tool
_DEEP: Final = 6


def right(tools: Mapping[str, Tool], offered: Sequence[str]) -> tuple[str, dict[str, Any]]:
    """Return a call that fits: of the first tool on offer for which one can be made up."""
    for name in sorted(offered, key=lambda one: one == FINISH):
        args = arguments(tools[name])
        if args is not None:
            return name, args
    return FINISH, {"answer": "ANSWER"}


def unknown_argument(tool: Tool, args: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return an argument that the tool does not have, and a call with it."""
    name = next((one for one in _ABSENT if one not in tool.args), "x_" + "_".join(tool.args))
    return name, {**args, name: "..."}


def arguments(tool: Tool) -> dict[str, Any] | None:
    """Return arguments that fit a tool's schema; None where none can be made up."""
    args = {name: value(schema, name) for name, schema in tool.args.items() if "default" not in schema}
    return args if tool.validator.is_valid(args) else None


def value(schema: Any, name: str, depth: int = 0) -> Any:
    """Return a value that is likely to fit a schema."""
    if not isinstance(schema, Mapping) or depth > _DEEP:
        return name.upper()
    for key in ("const", "default"):
        if key in schema:
            return schema[key]
    for key in ("enum", "examples"):
        if isinstance(schema.get(key), list) and schema[key]:
            return schema[key][0]
    for key in ("oneOf", "anyOf", "allOf"):
        if isinstance(schema.get(key), list) and schema[key]:
            return value(schema[key][0], name, depth + 1)
    kind = schema.get("type")
    return _of_kind(kind[0] if isinstance(kind, list) and kind else kind, schema, name, depth)


def _of_kind(kind: Any, schema: Mapping[str, Any], name: str, depth: int) -> Any:
    if kind in ("integer", "number"):
        return _number(schema)
    if kind == "boolean":
        return True
    if kind == "null":
        return None
    if kind == "array":
        size = max(int(schema.get("minItems", 1)), 1)
        return [value(schema.get("items", {}), name.removesuffix("s"), depth + 1) for _ in range(min(size, 10))]
    if kind == "object":
        known = schema.get("properties") or {}
        needed = schema.get("required") or list(known)
        return {key: value(known.get(key, {}), key, depth + 1) for key in needed}
    return _text(schema, name)


def _number(schema: Mapping[str, Any]) -> int | float:
    low = schema.get("minimum", schema.get("exclusiveMinimum", 0) + 1 if "exclusiveMinimum" in schema else 1)
    high = schema.get("maximum", schema.get("exclusiveMaximum"))
    step = schema.get("multipleOf")
    chosen = low if high is None or low <= high else high
    return step * max(1, -(-chosen // step)) if step else chosen  # type: ignore[no-any-return]  # JSON numbers


def _text(schema: Mapping[str, Any], name: str) -> str:
    text = _FORMATS.get(str(schema.get("format")), name.upper() or "TEXT")
    text = text.ljust(int(schema.get("minLength", 0)), "X")
    return text[: int(schema["maxLength"])] if "maxLength" in schema else text
