"""What pydantic says about data → what is wrong with a file, in the words of people who write files.

Invariants:
* Every error of pydantic becomes a fault or is explained by another one: of a union only the likeliest branch speaks.
* Known keys and values come from the model's own JSON Schema, so that they cannot drift from it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from pydantic import BaseModel, ValidationError

from ledgercli.cel import nearest
from ledgercli.documents.marks import Place
from ledgercli.sources import shown

_SHORT = 20
EXPRESSION, TEXT = "an expression", "a text"
_BELONGS = {
    "bool_type": "true or false",
    "dict_type": "a map",
    "expression": EXPRESSION,
    "float_type": "a number",
    "int_from_float": "a whole number",
    "int_type": "a whole number",
    "list_type": "a list",
    "model_attributes_type": "a map",
    "model_type": "a map",
    "none_required": "null",
    "string_type": TEXT,
    "text": TEXT,
    "tuple_type": "a list",
}


@dataclass(frozen=True, slots=True)
class Fault:
    """Something in the data that the model does not take.

    Arguments:
        code: see `Problem`.
        message: see `Problem`.
        place: of the value or, where `key`, of the key that is wrong.
        key: whether the key is meant.
        missing: whether something is not there that belongs into the map at `place`.
        unquoted: whether quotes may be what is missing: a map or list where a text belongs.
        notes: see `Problem`.

    """

    code: str
    message: str
    place: tuple[str | int, ...]
    key: bool = False
    missing: bool = False
    unquoted: bool = False
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Error:
    """An error of pydantic: its place in the data, apart from the branches of unions that it was found in."""

    kind: str
    place: tuple[str | int, ...]
    branches: tuple[tuple[int, str], ...]  # (length of the union's place, branch)
    absent: str | None
    details: Mapping[str, Any]
    belongs: tuple[str, ...] = ()


def faults_of(error: ValidationError, data: Any, model: type[BaseModel]) -> list[Fault]:
    """Return what is wrong with `data`, given what pydantic says."""
    errors = _likeliest([_error(details, data) for details in error.errors(include_url=False)])
    unknown = {error.place[:-1] for error in errors if error.kind == "extra_forbidden"}
    faults = [
        _fault(error, _value_at(data, error.place), model)
        for error in errors
        if error.absent is None or error.place not in unknown  # it may be the key that is misspelt
    ]
    return list(dict.fromkeys(faults))


def named(value: Any) -> str:
    """Return what messages call a value."""
    match value:
        case bool():
            return str(value).lower()
        case str():
            return "a text"
        case int() | float():
            return "a number"
        case Mapping():
            return "a map"
        case Sequence():
            return "a list"
    return "nothing"


# ---- pydantic's errors


def _error(details: Mapping[str, Any], data: Any) -> _Error:
    """Tell apart, in an error's location, the steps into the data and the names of branches."""
    place: list[str | int] = []
    branches: list[tuple[int, str]] = []
    absent = None
    steps = details["loc"]
    for index, step in enumerate(steps):
        if _has(data, step):
            place.append(step)
            data = data[step]
        elif details["type"] == "missing" and index == len(steps) - 1:
            absent = str(step)
        else:
            branches.append((len(place), str(step)))
    belongs = _BELONGS.get(details["type"])
    return _Error(details["type"], tuple(place), tuple(branches), absent, details, (belongs,) if belongs else ())


def _has(data: Any, step: Any) -> bool:
    if isinstance(data, dict):
        return step in data
    return isinstance(data, list) and isinstance(step, int) and 0 <= step < len(data)


def _value_at(data: Any, place: Place) -> Any:
    for step in place:
        data = data[step]
    return data


def _likeliest(errors: Sequence[_Error]) -> list[_Error]:
    """Leave only one branch of each union: one that takes this kind of value, and finds least to say against it."""
    chosen = [error for error in errors if not error.branches]
    unions: dict[tuple[str | int, ...], dict[str, list[_Error]]] = {}
    for error in errors:
        if error.branches:
            (depth, branch), *inner = error.branches
            union = unions.setdefault(error.place[:depth], {})
            union.setdefault(branch, []).append(replace(error, branches=tuple(inner)))
    for place, branches in unions.items():
        candidates = [_likeliest(branch) for branch in branches.values()]
        fitting = [branch for branch in candidates if not any(_misfits(error, place) for error in branch)]
        if fitting:
            best: list[_Error] = min(fitting, key=lambda branch: (_strange_keys(branch, place), len(branch)))
            chosen += best
        else:
            first = next(error for error in candidates[0] if _misfits(error, place))
            belongs = [text for branch in candidates for error in branch for text in error.belongs]
            chosen.append(replace(first, belongs=tuple(dict.fromkeys(belongs))))
    return chosen


def _strange_keys(branch: Sequence[_Error], place: Place) -> int:
    """Return how many keys of the map at `place` a branch does not know: whoever wrote them meant another branch."""
    return sum(error.kind == "extra_forbidden" and error.place[:-1] == tuple(place) for error in branch)


def _misfits(error: _Error, place: Place) -> bool:
    """Tell whether an error refuses the value at `place` altogether."""
    return error.place == tuple(place) and error.absent is None and bool(error.belongs or error.kind == "literal_error")


# ---- our words


def _fault(error: _Error, value: Any, model: type[BaseModel]) -> Fault:
    place = error.place
    if error.absent is not None:
        return Fault("missing-key", f"the key {error.absent} is missing here", place, missing=True)
    if error.kind == "extra_forbidden":
        return _unknown_key(place, model)
    if error.kind == "literal_error":
        return _wrong_word(error, value)
    if error.belongs:
        belongs = " or ".join(error.belongs)
        unquoted = isinstance(value, dict | list) and bool({EXPRESSION, TEXT} & set(error.belongs))
        what = f"the text {value}" if isinstance(value, str) and len(value) < _SHORT else named(value)
        return Fault("wrong-type", f"{belongs} belongs here, not {what}", place, unquoted=unquoted)
    if error.kind == "value_error":
        return Fault("wrong-value", str(error.details["ctx"]["error"]), place)
    message = str(error.details["msg"])
    return Fault("wrong-value", re.sub(r"^Input should", "it should", message), place)


def _unknown_key(place: tuple[str | int, ...], model: type[BaseModel]) -> Fault:
    word = str(place[-1])
    known = known_keys(model, place[:-1])
    near = nearest(word, known)
    notes = (f"did you mean {' or '.join(near)}?" if near else f"known here: {', '.join(known)}",)
    return Fault("unknown-key", f"no key {shown(word)} here", place, key=True, notes=notes if known else ())


def _wrong_word(error: _Error, value: Any) -> Fault:
    words = re.findall(r"'((?:[^'\\]|\\.)*)'", str(error.details["ctx"]["expected"]))
    near = nearest(value, words) if isinstance(value, str) else ()
    what = shown(value) if isinstance(value, str) else named(value)
    notes = (f"did you mean {' or '.join(near)}?",) if near else ()
    return Fault("wrong-value", f"one of {', '.join(words)} belongs here, not {what}", error.place, notes=notes)


# ---- what a model takes


@lru_cache(maxsize=32)
def _schema(model: type[BaseModel]) -> dict[str, Any]:
    return model.model_json_schema()


def _branches(schema: Any, definitions: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield a schema, or those that it refers to or chooses from."""
    if "$ref" in schema:
        schema = definitions[schema["$ref"].rpartition("/")[2]]
    below = [branch for word in ("anyOf", "oneOf", "allOf") for branch in schema.get(word, ())]
    if not below:
        yield schema
    for branch in below:
        yield from _branches(branch, definitions)


def schemas_at(model: type[BaseModel], place: Place) -> list[Mapping[str, Any]]:
    """Return the JSON Schemas that a value at `place` may follow."""
    root = _schema(model)
    definitions = root.get("$defs", {})
    schemas = list(_branches(root, definitions))
    for step in place:
        below = []
        for schema in schemas:
            more = schema.get("additionalProperties")
            if isinstance(step, int):
                below.append(schema.get("items"))
            else:
                below.append(schema.get("properties", {}).get(step, more))
        schemas = [branch for schema in below if isinstance(schema, dict) for branch in _branches(schema, definitions)]
    return schemas


def known_keys(model: type[BaseModel], place: Place) -> list[str]:
    """Return the keys that the map at `place` may have, as far as they are fixed."""
    return list(dict.fromkeys(key for schema in schemas_at(model, place) for key in schema.get("properties", ())))


def is_text(model: type[BaseModel], place: Place) -> bool:
    """Tell whether any text may stand at `place`, and not only a word of a few."""
    schemas = schemas_at(model, place)
    return not schemas or any("enum" not in schema and "const" not in schema for schema in schemas)


def needs_value(model: type[BaseModel], place: Place) -> bool:
    """Tell whether null at `place` would only mean that the key may be left out."""
    types = [schema.get("type") for schema in schemas_at(model, place)]
    return "null" in types and None not in types
