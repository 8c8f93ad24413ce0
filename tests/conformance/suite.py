"""The CEL standard's conformance suite as data.

It comes in npm's `@bufbuild/cel-spec`, which carries the suite's text protos as JavaScript objects in protobuf's JSON
form. The nox session `conformance` fetches the package into the folder that `CEL_SPEC` names; `node` reads it.
"""

from __future__ import annotations

import base64
import functools
import json
import math
import os
import subprocess
import tarfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ledgercli import cel

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
    folder = os.environ.get("CEL_SPEC")
    if not folder:
        pytest.skip("CEL_SPEC names no folder with the suite: run `nox -s conformance`")
    [package] = Path(folder).glob("*.tgz")
    files = exported(package)["suites"]
    return {file["name"]: list(cases(file)) for file in files if file["name"] in CORE + EXTENSIONS}


def exported(package: Path) -> Any:
    """The object that the suite's module exports."""
    with tarfile.open(package) as archive:
        member = archive.extractfile("package/dist/esm/testdata/conformance.js")
        assert member is not None
        module = member.read()
    program = module + b"\nprocess.stdout.write(JSON.stringify(tests));"
    command = ["node", "--input-type=module", "-"]
    return json.loads(subprocess.run(command, input=program, stdout=subprocess.PIPE, check=True).stdout)


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
