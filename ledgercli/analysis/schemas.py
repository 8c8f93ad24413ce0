"""The values that types and JSON Schemas let through, as sets.

Invariants:
* A set may be too large, never too small: a word of a schema that is not understood narrows nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ledgercli import cel
from ledgercli.analysis import domains
from ledgercli.analysis.domains import Domain

_EXACT: Final = 2**53  # up to here a double holds every whole number
_LISTS: Final = {"array", "object"}
_JSON: Final = domains.ANYTHING.without(domains.NAN)


def of_type(kind: cel.Type) -> Domain:
    """Return the values of a type."""
    if isinstance(kind, cel.EnumType):
        found = [domains.value(one) for one in kind.values]
        return domains.union(one for one in found if one is not None)
    if kind == cel.BOOL:
        return domains.BOOLS
    if kind == cel.STRING:
        return domains.TEXTS
    if kind in (cel.INT, cel.UINT):
        return domains.NUMBERS
    if kind == cel.DOUBLE:
        return domains.NUMBERS | domains.marks(domains.NAN)
    if kind == cel.NULL:
        return domains.marks(domains.NULL)
    if kind == cel.DYN:
        return domains.ANYTHING
    if kind in (cel.TIMESTAMP, cel.DURATION):  # as nanoseconds where they are compared with one that is written out
        return domains.NUMBERS | domains.marks(domains.OTHER)
    return domains.marks(domains.OTHER)


def of_schema(schema: Any) -> tuple[Domain, bool]:
    """Return the values that a JSON Schema lets through (or a few more), and whether its numbers are whole."""
    if not isinstance(schema, Mapping):
        return _JSON, False
    listed = schema.get("enum", [schema["const"]] if "const" in schema else None)
    if isinstance(listed, list) and listed:
        found = [domains.value(one) or domains.marks(domains.OTHER) for one in listed]
        return domains.union(found), False
    kinds = schema.get("type")
    if isinstance(kinds, str):
        kinds = [kinds]
    if not isinstance(kinds, list):
        return _JSON, False
    whole = "integer" in kinds and "number" not in kinds
    return domains.union(_of_kind(str(kind), schema) for kind in kinds), whole


def _of_kind(kind: str, schema: Mapping[str, Any]) -> Domain:
    if kind in ("integer", "number"):
        return _bounded(schema)
    if kind == "string":
        shortest = schema.get("minLength", 0)
        empty = domains.value("")
        if isinstance(shortest, int) and shortest > 0 and empty is not None:
            return domains.TEXTS & domains.all_but(empty)
        return domains.TEXTS
    if kind == "boolean":
        return domains.BOOLS
    if kind == "null":
        return domains.marks(domains.NULL)
    return domains.marks(domains.OTHER) if kind in _LISTS else _JSON


def _bounded(schema: Mapping[str, Any]) -> Domain:
    found = domains.NUMBERS
    for word, upper, outside in (
        ("minimum", False, False),
        ("exclusiveMinimum", False, True),
        ("maximum", True, False),
        ("exclusiveMaximum", True, True),
    ):
        bound = schema.get(word)
        if isinstance(bound, bool) or not isinstance(bound, (int, float)) or abs(bound) >= _EXACT:
            continue
        if upper:
            found &= domains.between(None, bound, open_high=outside)
        else:
            found &= domains.between(bound, None, open_low=outside)
    return found


def below(schema: Any, keys: tuple[Any, ...]) -> Any | None:
    """Return the schema of a part of a value, None where it is not said; a key None is any key."""
    for key in keys:
        if not isinstance(schema, Mapping):
            return None
        schema = _within(schema, key)
    return schema


def _within(schema: Mapping[str, Any], key: Any) -> Any | None:
    properties, more = schema.get("properties"), schema.get("additionalProperties")
    if schema.get("type") == "array" and not isinstance(key, str):
        return None if "prefixItems" in schema else schema.get("items")
    if isinstance(properties, Mapping):
        return properties.get(key) if isinstance(key, str) else None
    return None if "patternProperties" in schema else more
