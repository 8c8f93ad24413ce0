"""The CEL standard's own conformance suite, in the fast and in the precise form.

The data is the JSON form of npm's `@bufbuild/cel-spec`; the nox session `conformance` fetches it and names the file in
`CEL_SPEC_JSON`. Two lists say what does not pass, and why:

* `excluded.tsv`: tests that are about protobuf, each with the type that it needs.
* `missed.tsv`: tests that ought to pass and do not, each with the reason.

A test that fails and stands on neither list fails the run; so does a listed test that passes.
"""

from __future__ import annotations

import base64
import contextlib
import functools
import json
import math
import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ledgercli import cel

pytestmark = [pytest.mark.conformance, pytest.mark.timeout(600)]

HERE = Path(__file__).parent
CORE = [
    *("basic", "comparisons", "conversions", "dynamic", "fields", "fp_math", "integer_math", "lists", "logic"),
    *("macros", "macros2", "namespace", "parse", "plumbing", "string", "timestamps"),
]
EXTENSIONS = ["string_ext", "math_ext", "bindings_ext", "encoders_ext"]
MESSAGE_TYPES = {"google.protobuf.Timestamp": cel.TIMESTAMP, "google.protobuf.Duration": cel.DURATION}
PRIMITIVES = {
    "BOOL": cel.BOOL,
    "INT64": cel.INT,
    "UINT64": cel.UINT,
    "DOUBLE": cel.DOUBLE,
    "STRING": cel.STRING,
    "BYTES": cel.BYTES,
}


@dataclass(frozen=True)
class Case:
    """A test of the suite; `name` is its place, with a number where a place has several."""

    name: str
    data: dict[str, Any]
    type: str | None


class NeedsProtobufError(Exception):
    """The test gives or expects a protobuf message."""


@functools.cache
def suite() -> dict[str, list[Case]]:
    path = os.environ.get("CEL_SPEC_JSON")
    if not path:
        pytest.skip("CEL_SPEC_JSON names no file: run `nox -s conformance`")
    files = json.loads(Path(path).read_text(encoding="utf-8"))["suites"]
    return {file["name"]: list(cases(file)) for file in files if file["name"] in CORE + EXTENSIONS}


def cases(file: dict[str, Any]) -> Iterator[Case]:
    seen: Counter[str] = Counter()

    def walk(folder: dict[str, Any], path: str) -> Iterator[Case]:
        for test in folder.get("tests", []):
            name = f"{path}/{test['original']['name']}"
            seen[name] += 1
            number = f"#{seen[name]}" if seen[name] > 1 else ""
            yield Case(name + number, test["original"], test.get("type"))
        for inner in folder.get("suites", []):
            yield from walk(inner, f"{path}/{inner['name']}")

    yield from walk(file, file["name"])


def listed(file: str) -> dict[str, str]:
    lines = (HERE / file).read_text(encoding="utf-8").splitlines()
    return dict(line.split("\t") for line in lines if line and not line.startswith("#"))


def value_of(data: dict[str, Any]) -> Any:
    """The Python value of a `cel.expr.Value`."""
    [(kind, value)] = data.items()
    match kind:
        case "int64Value":
            return int(value)
        case "uint64Value":
            return cel.UInt(int(value))
        case "doubleValue":
            return float(value)
        case "bytesValue":
            return base64.b64decode(value)
        case "nullValue" | "boolValue" | "stringValue":
            return value
        case "listValue":
            return [value_of(item) for item in value.get("values", [])]
        case "mapValue":
            return [(value_of(e["key"]), value_of(e["value"])) for e in value.get("entries", [])]
        case "typeValue":
            return f"type {value}"
        case "objectValue" if value["@type"].endswith("/google.protobuf.Duration"):
            return cel.Duration.parse(value["value"])
        case "objectValue" if value["@type"].endswith("/google.protobuf.Timestamp"):
            return cel.Timestamp.parse(value["value"])
        case _:
            raise NeedsProtobufError(kind)


def bound(data: dict[str, Any]) -> Any:
    value = value_of(data["value"])
    return dict(value) if "mapValue" in data["value"] else value


def same(actual: Any, expected: Any) -> bool:
    """Whether a value is exactly the expected one, its type too."""
    if isinstance(actual, cel.Type):
        return expected == f"type {spelled(actual)}"
    if isinstance(actual, (list, tuple)):
        return isinstance(expected, list) and len(actual) == len(expected) and all(map(same, actual, expected))
    if hasattr(actual, "items"):
        left = list(actual.items())
        return (
            isinstance(expected, list)
            and len(left) == len(expected)
            and all(any(same(k, key) and same(v, value) for k, v in left) for key, value in expected)
        )
    if isinstance(actual, float) and isinstance(expected, float) and math.isnan(expected):
        return math.isnan(actual)
    return type(actual) is type(expected) and actual == expected


def spelled(kind: cel.Type) -> str:
    return {"timestamp": "google.protobuf.Timestamp", "duration": "google.protobuf.Duration"}.get(kind.name, kind.name)


def declared(data: dict[str, Any]) -> cel.Type:
    [(kind, value)] = data.items()
    match kind:
        case "primitive":
            return PRIMITIVES[value]
        case "messageType" if value in MESSAGE_TYPES:
            return MESSAGE_TYPES[value]
        case "listType":
            return cel.ListType(declared(value["elemType"]))
        case "mapType":
            return cel.MapType(declared(value["keyType"]), declared(value["valueType"]))
        case "dyn":
            return cel.DYN
        case "null":
            return cel.NULL
        case "wellKnown" if value in {"TIMESTAMP", "DURATION"}:
            return MESSAGE_TYPES[f"google.protobuf.{value.capitalize()}"]
        case _:
            raise NeedsProtobufError(str(value))


FORMS: Counter[str] = Counter()


def answered_fast(program: cel.Program, roots: dict[str, Any]) -> bool:
    """Whether the fast form has an answer of its own."""
    with contextlib.suppress(Exception):
        return program._fast is not None and program._fast(roots, None) is not ...
    return False


def failure(case: Case) -> str | None:
    """What is wrong with our answers; None if both forms give the expected one."""
    data = case.data
    try:
        names = {one["name"]: declared(one["ident"]["type"]) for one in data.get("typeEnv", []) if "ident" in one}
        roots = {name: bound(value) for name, value in data.get("bindings", {}).items()}
        wanted = value_of(data["value"]) if "value" in data else True
    except NeedsProtobufError as problem:
        return f"needs {problem}"
    try:
        expr = cel.parse(data["expr"])
    except cel.CelSyntaxError as problem:
        return f"does not parse: {problem}"
    checked = cel.check(expr, cel.Env(names, strict=False, container=data.get("container", "")))
    if not checked.ok and not data.get("disableCheck"):
        return f"does not check: {checked.problems[0].message}"
    program = cel.compile(checked)
    FORMS["fast" if answered_fast(program, roots) else "precise"] += 1
    for form, answer in (("fast", program(roots)), ("precise", program.explain(roots).answer)):
        if "evalError" in data:
            if answer.known:
                return f"{form}: no error but {answer.value!r}"
        elif not answer.known:
            return f"{form}: {answer.error or answer.missing}"
        elif not same(answer.value, wanted):
            return f"{form}: {answer.value!r}"
    return None


@pytest.mark.parametrize("file", CORE + EXTENSIONS)
def test_every_test_of_a_file_passes_or_is_listed(file: str) -> None:
    failed = {case.name: problem for case in suite()[file] if (problem := failure(case)) is not None}
    allowed = {name for name in listed("excluded.tsv") | listed("missed.tsv") if name.split("/")[0] == file}
    total = len(suite()[file])
    excluded = sum(name.split("/")[0] == file for name in listed("excluded.tsv"))
    print(f"{file}: {total - len(failed)}/{total - excluded} passed, {excluded} excluded (protobuf)")
    assert {name: failed[name] for name in failed if name not in allowed} == {}
    assert allowed - set(failed) == set(), "these pass or no longer exist; take them off the list"


def spelled_type(text: str) -> str:
    """A type as the suite writes it, in our words: we do not say of what a `type` is one."""
    return "type" if text.startswith("type") else "null_type" if text == "null" else text


def test_the_type_check_agrees_or_is_looser() -> None:
    """A record stands for a map, and an empty list is one of anything; nothing else may differ."""
    same = looser = 0
    excluded = listed("excluded.tsv")
    for case in (case for file in suite().values() for case in file if case.type and case.name not in excluded):
        names = {one["name"]: declared(one["ident"]["type"]) for one in case.data.get("typeEnv", [])}
        env = cel.Env(names, strict=False, container=case.data.get("container", ""))
        actual, expected = cel.check(cel.parse(case.data["expr"]), env).type, spelled_type(str(case.type))
        if str(actual) == expected:
            same += 1
        else:
            looser += 1
            assert isinstance(actual, cel.RecordType) or (str(actual) == "list(dyn)" and "[]" in case.data["expr"]), (
                case.name
            )
    print(f"types: {same} the same, {looser} looser")
    assert same > 50 * looser


def test_every_excluded_test_names_a_protobuf_type() -> None:
    data = {case.name: "".join(json.dumps(case.data).split()) for file in suite().values() for case in file}
    for name, needed in listed("excluded.tsv").items():
        assert needed.startswith(("google.protobuf.", "cel.expr.conformance.")), name
        assert needed.rsplit(".")[-1] in data[name], name


def test_the_whole_suite_is_counted() -> None:
    total = sum(map(len, suite().values()))
    failed = len(listed("excluded.tsv")) + len(listed("missed.tsv"))
    print(f"answered by the fast form alone: {FORMS['fast']}, by the precise form after it: {FORMS['precise']}")
    assert FORMS["fast"] > 4 * FORMS["precise"]
    print(f"all {len(suite())} files: {total - failed}/{total - len(listed('excluded.tsv'))} passed")
    assert len(suite()) == len(CORE) + len(EXTENSIONS)
    assert len(listed("missed.tsv")) <= 2
