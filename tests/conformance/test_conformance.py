"""The CEL standard's own conformance suite, in the fast and in the precise form.

Two lists say what does not pass, and why: `excluded.tsv` names each test that is about protobuf with the type that it
needs, `missed.tsv` each that ought to pass with the reason why it does not. A test that fails and stands on neither list
fails the run; so does a listed test that passes.
"""

from __future__ import annotations

import contextlib
import json
from collections import Counter
from typing import Any

import pytest

from ledgercli import cel

from .suite import CORE, EXTENSIONS, Case, NeedsProtobufError, bound, declared, listed, same, suite, value_of

pytestmark = [pytest.mark.conformance, pytest.mark.timeout(600)]

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
