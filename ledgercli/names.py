"""Types of names: from JSON Schemas, from values, from a pack's own words, and from all that sets a fact.

Invariants:
* A schema or value that does not decide a type gives `dyn`, never a guess.
* A name that is set in several ways has the type that all agree on.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ledgercli import cel

_SIMPLE: Mapping[str, cel.Type] = {
    "string": cel.STRING,
    "integer": cel.INT,
    "number": cel.DOUBLE,
    "boolean": cel.BOOL,
    "null": cel.NULL,
}
_WORDS: Mapping[str, dict[str, Any]] = {
    "string": {"type": "string"},
    "int": {"type": "integer"},
    "integer": {"type": "integer"},
    "number": {"type": "number"},
    "bool": {"type": "boolean"},
    "boolean": {"type": "boolean"},
    "list": {"type": "array"},
    "map": {"type": "object"},
    "any": {},
}
TYPE_WORDS = tuple(_WORDS)
_UNDECIDED = cel.Type("dyn")  # of a name whose type is not found yet; by itself as good as `dyn`


def schema_type(schema: Any, what: str) -> cel.Type:
    """Return the type of values that fit a JSON Schema.

    Arguments:
        schema: the schema.
        what: what a key of it is called in errors.

    """
    if not isinstance(schema, Mapping):  # no schema at all; that is told where schemas are checked
        return cel.DYN
    enum = schema.get("enum", [schema["const"]] if "const" in schema else None)
    if isinstance(enum, list) and enum and all(isinstance(one, str) for one in enum):
        return cel.EnumType(values=frozenset(enum), what="value")
    kind = schema.get("type")
    if kind == "array":
        items = schema.get("items")
        return cel.ListType(elem=schema_type(items, what) if isinstance(items, Mapping) else cel.DYN)
    if kind == "object":
        return _object_type(schema, what)
    return _SIMPLE.get(kind, cel.DYN) if isinstance(kind, str) else cel.DYN


def _object_type(schema: Mapping[str, Any], what: str) -> cel.Type:
    """A schema with `properties` is a record: another key is an error unless `additionalProperties` says otherwise."""
    more = schema.get("additionalProperties")
    properties = schema.get("properties")
    if isinstance(properties, Mapping) and properties:
        needed = schema.get("required")
        required = needed if isinstance(needed, list) else []
        fields = {k: cel.Field(schema_type(v, what), optional=k not in required) for k, v in properties.items()}
        return cel.RecordType("map", fields, open=bool(more), noun=what)
    return cel.MapType(key=cel.STRING, value=schema_type(more, what) if isinstance(more, Mapping) else cel.DYN)


def value_type(value: Any, what: str = "fact") -> cel.Type:
    """Return the type of a JSON value."""
    if isinstance(value, bool):
        return cel.BOOL
    if isinstance(value, int):
        return cel.INT
    if isinstance(value, float):
        return cel.DOUBLE
    if isinstance(value, str):
        return cel.STRING
    if isinstance(value, list):
        elem = cel.DYN
        for number, item in enumerate(value):
            elem = value_type(item, what) if number == 0 else cel.join(elem, value_type(item, what))
        return cel.ListType(elem=elem)
    if isinstance(value, Mapping):
        return cel.RecordType("map", {str(k): cel.Field(value_type(v, what)) for k, v in value.items()}, noun=what)
    return cel.DYN  # null says nothing about what may stand there later


@dataclass(frozen=True, slots=True)
class Named:
    """A type that a pack names in words: `number`, `list(string)`, `bool?`."""

    type: cel.Type
    schema: dict[str, Any]
    optional: bool


def type_named(text: str) -> Named:
    """Return the type that a pack names.

    Raises:
        ValueError: there is no such type.

    """
    word = text.strip()
    optional = word.endswith("?")
    schema = _schema_named(word.removesuffix("?").strip(), text)
    return Named(schema_type(schema, "field"), schema, optional)


def _schema_named(word: str, whole: str) -> dict[str, Any]:
    inner = re.fullmatch(r"(list|map)\((.+)\)", word)
    if inner is None:
        if word not in _WORDS:
            raise ValueError(f"no type {whole!r}; there are {', '.join(TYPE_WORDS)}, list(TYPE) and map(TYPE)")
        return dict(_WORDS[word])
    schema = _schema_named(inner[2].strip(), whole)
    if inner[1] == "list":
        return {"type": "array", "items": schema}
    return {"type": "object", "additionalProperties": schema}


@dataclass(slots=True)
class _Node:
    types: list[cel.Type] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    children: dict[str | None, _Node] = field(default_factory=dict)  # None: any key, a record by id

    def type(self, what: str) -> cel.Type:
        inner = self._inner(what)
        known = self.types if inner is None else [*self.types, inner]
        if not known:
            return _UNDECIDED
        whole = known[0]
        for other in known[1:]:
            whole = _merged(whole, other)
        return whole

    def _inner(self, what: str) -> cel.Type | None:
        if not self.children:
            return None
        if None in self.children:
            whole = self.children[None].type(what)
            for key, child in self.children.items():
                if key is not None:
                    whole = _merged(whole, child.type(what))
            return cel.MapType(key=cel.STRING, value=whole)
        return cel.RecordType("map", self.fields(what), noun=what)

    def fields(self, what: str) -> dict[str, cel.Field]:
        return {
            key: cel.Field(child.type(what), optional=True, note=_both(child.notes))
            for key, child in self.children.items()
            if key is not None
        }


class FactTree:
    """All that is declared below `state.facts` or `state.constraints`."""

    def __init__(self) -> None:
        self._root = _Node()

    def declare(self, path: tuple[str | None, ...], type_: cel.Type | None, note: str) -> None:
        """Declare a path; None in it stands for any key, None as type for a type that is not known yet."""
        node = self._root
        for key in path:
            node = node.children.setdefault(key, _Node())
        if type_ is not None:
            node.types.append(type_)
        if note and note not in node.notes:
            node.notes.append(note)

    def records(self) -> list[str]:
        """Names whose children are records by id."""
        return [str(key) for key, node in self._root.children.items() if None in node.children]

    def names(self) -> list[str]:
        """Names at the top."""
        return [str(key) for key in self._root.children]

    def type(self, what: str, own: Mapping[str, str]) -> cel.RecordType:
        """Return the record of all names, and of those that a pack declares itself where nothing else does."""
        fields = self._root.fields(what)
        extra = FactTree()
        for path, text in own.items():
            keys = path_pattern(path)
            if not self.declares(keys):
                extra.declare(keys, type_named(text).type, "declared by the pack itself")
        for name, declared in extra._root.fields(what).items():
            known = fields.get(name)
            fields[name] = (
                declared if known is None else cel.Field(_merged(known.type, declared.type), True, known.note)
            )
        return cel.RecordType("map", fields, noun=what)

    def declares(self, path: tuple[str | None, ...]) -> bool:
        """Whether something sets this path, a part that holds it, or a part of it."""
        node = self._root
        for key in path:
            if node.types and node is not self._root:
                return True
            child = node.children.get(key) or node.children.get(None)
            if child is None:
                return False
            node = child
        return True


def path_pattern(text: str) -> tuple[str | None, ...]:
    """Return the keys of a path in a pack's `vocabulary.facts`, None for `[*]`: `orders[*].user_id`."""
    return tuple(None if key == "[*]" else key.lstrip(".") for key in re.findall(r"\[\*\]|\.?[^.\[\]]+", text))


def _merged(left: cel.Type, right: cel.Type) -> cel.Type:
    """Join two types of one name; records and maps are laid over one another rather than given up."""
    if left is _UNDECIDED or right is _UNDECIDED:
        return right if left is _UNDECIDED else left
    if isinstance(left, cel.RecordType) and isinstance(right, cel.RecordType):
        fields = dict(left.fields)
        for name, other in right.fields.items():
            mine = fields.get(name)
            fields[name] = other if mine is None else cel.Field(_merged(mine.type, other.type), True, mine.note)
        return cel.RecordType(left.name, fields, open=left.open or right.open, noun=left.noun)
    if isinstance(left, cel.MapType) and isinstance(right, cel.MapType):
        return cel.MapType(key=cel.STRING, value=_merged(left.value, right.value))
    for wide, narrow in ((left, right), (right, left)):
        if isinstance(wide, cel.MapType) and isinstance(narrow, cel.RecordType):
            whole = wide.value
            for known in narrow.fields.values():
                whole = _merged(whole, known.type)
            return cel.MapType(key=cel.STRING, value=whole)
    if {left, right} == {cel.INT, cel.DOUBLE}:
        return cel.DOUBLE  # a place that is a double gives one, also where JSON has a whole number
    return left if left == right else cel.join(left, right)


def _both(notes: list[str]) -> str | None:
    return "; ".join(notes) or None
