"""The JSON Schemas in a toolset: a misspelt keyword would quietly let everything through, so it is a problem.

Invariants:
* A schema that passes here can be compiled, and nothing is fetched for it: `$ref` points into the schema itself.
* Keywords are those of draft 2020-12; keys that begin with `x-` are the author's own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import jsonschema_rs

from ledgercli.documents import Place
from ledgercli.toolset import Toolset
from ledgercli.vocabulary import Vocabulary

_MAPS: Final = frozenset({"properties", "patternProperties", "dependentSchemas", "$defs", "definitions"})
_LISTS: Final = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
_SINGLE: Final = frozenset(
    [
        "items",
        "additionalProperties",
        "contains",
        "propertyNames",
        "not",
        "if",
        "then",
        "else",
        "unevaluatedItems",
        "unevaluatedProperties",
    ]
)
_OTHERS: Final = frozenset(
    [
        "$id",
        "$schema",
        "$ref",
        "$anchor",
        "$dynamicRef",
        "$dynamicAnchor",
        "$vocabulary",
        "$comment",
        "type",
        "enum",
        "const",
        "multipleOf",
        "maximum",
        "exclusiveMaximum",
        "minimum",
        "exclusiveMinimum",
        "maxLength",
        "minLength",
        "pattern",
        "maxItems",
        "minItems",
        "uniqueItems",
        "maxContains",
        "minContains",
        "maxProperties",
        "minProperties",
        "required",
        "dependentRequired",
        "format",
        "contentEncoding",
        "contentMediaType",
        "contentSchema",
        "title",
        "description",
        "default",
        "deprecated",
        "readOnly",
        "writeOnly",
        "examples",
    ]
)
_KEYWORDS: Final = _MAPS | _LISTS | _SINGLE | _OTHERS
_TYPES: Final = ("string", "integer", "number", "boolean", "null", "array", "object")


@dataclass(frozen=True, slots=True)
class _Word:
    """A word of a schema that is none of those that may stand there."""

    place: Place
    word: str
    what: str
    known: tuple[str, ...]
    key: bool = False


def check_schemas(vocabulary: Vocabulary, toolset: Toolset) -> None:
    """Report what is wrong with the schemas of arguments and results."""
    for name, tool in toolset.file.tools.items():
        place: Place = ("tools", name)
        for arg, schema in tool.args.items():
            _check(vocabulary, toolset, (*place, "args", arg), schema)
        if tool.returns is not None:
            _check(vocabulary, toolset, (*place, "returns"), tool.returns)


def _check(vocabulary: Vocabulary, toolset: Toolset, place: Place, schema: Mapping[str, Any]) -> None:
    document = toolset.document
    words = list(_unknown_words(schema, place))
    for one in words:
        vocabulary.unknown(document, one.place, one.what, one.word, one.known, key=one.key)
    far = [found for found in _references(schema, place) if not found[1].startswith("#")]
    for where, reference in far:
        message = f"{reference} lies outside of this schema; nothing is fetched for it"
        vocabulary.problem(document, where, "bad-schema", message)
    if words or far:
        return
    try:
        validator = jsonschema_rs.validator_for(dict(schema))
        if "default" in schema and not validator.is_valid(schema["default"]):
            message = "the default does not fit the argument's own schema"
            vocabulary.problem(document, (*place, "default"), "bad-schema", message)
    except jsonschema_rs.ValidationError as error:
        vocabulary.problem(document, (*place, *error.instance_path), "bad-schema", error.message)


def _unknown_words(schema: Any, place: Place) -> Iterator[_Word]:
    """Yield keywords and types that JSON Schema does not have."""
    if not isinstance(schema, Mapping):
        return
    for key, value in schema.items():
        where: Place = (*place, key)
        if key not in _KEYWORDS and not key.startswith("x-"):
            yield _Word(where, key, "key", tuple(sorted(_KEYWORDS)), key=True)
        for index, word in enumerate(value if isinstance(value, list) else [value]) if key == "type" else ():
            if isinstance(word, str) and word not in _TYPES:
                yield _Word((*where, index) if isinstance(value, list) else where, word, "type", _TYPES)
    for where, below in _inner(schema, place):
        yield from _unknown_words(below, where)


def _inner(schema: Mapping[str, Any], place: Place) -> Iterator[tuple[Place, Any]]:
    """Yield the schemas that a schema is made of."""
    for key, value in schema.items():
        if key in _SINGLE:
            yield (*place, key), value
        elif key in _MAPS and isinstance(value, Mapping):
            yield from (((*place, key, name), below) for name, below in value.items())
        elif key in _LISTS and isinstance(value, list):
            yield from (((*place, key, index), below) for index, below in enumerate(value))


def _references(schema: Any, place: Place) -> Iterator[tuple[Place, str]]:
    if not isinstance(schema, Mapping):
        return
    for key in ("$ref", "$dynamicRef", "$schema"):
        value = schema.get(key)
        if isinstance(value, str) and not (key == "$schema" and "json-schema.org" in value):
            yield (*place, key), value
    for where, below in _inner(schema, place):
        yield from _references(below, where)
