"""`--update`: what the rules say now, in the place of what was expected, and nothing else changed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ledgercli.casework.finding import find
from ledgercli.casework.running import Asked, run
from ledgercli.casework.updating import update
from tests.commands import Run, command_line
from tests.desks import write

PAY = "propose: {tool: pay, args: {amount: 5}}"
GUEST = f"state: {{facts: {{user: guest}}}}, {PAY}"


@pytest.fixture
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Run]:
    with command_line(tmp_path, monkeypatch, capsys) as run_:
        yield run_


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (f"- {{name: a, {PAY}, expect: deny}}  # why", f"- {{name: a, {PAY}, expect: allow}}  # why"),
        (f"- {{name: a, {PAY}, expect: 'deny'}}", f"- {{name: a, {PAY}, expect: 'allow'}}"),
        (
            f"- {{name: a, {GUEST}, expect: {{rules: [asks, looked], effect: deny}}}}",
            f"- {{name: a, {GUEST}, expect: {{rules: [known], effect: deny}}}}",
        ),
        (f"- {{name: a, {GUEST}, expect: {{rules: []}}}}", f"- {{name: a, {GUEST}, expect: {{rules: [known]}}}}"),
        (f"- {{name: a, {GUEST}, expect: {{halts: false}}}}", f"- {{name: a, {GUEST}, expect: {{halts: true}}}}"),
        (
            f'- {{name: a, {GUEST}, expect: {{error: "Who?", hint: Go.}}}}',
            f'- {{name: a, {GUEST}, expect: {{error: "Who pays 5?", hint: Call login first.}}}}',
        ),
        (
            f"- {{name: a, {PAY}, expect: {{effect: deny, error: Who?, rules: [known]}}}}",
            f"- {{name: a, {PAY}, expect: {{effect: allow, rules: []}}}}",
        ),
        (
            f"- name: a\n  {PAY}\n  expect:\n    effect: deny  # one\n\n    # two\n    error: Who?  # three\n    rules:\n      - known  # four\n",
            f"- name: a\n  {PAY}\n  expect:\n    effect: allow  # one\n\n    # two\n    # three\n    rules:\n      []  # four\n",
        ),
        (
            "- name: a\n  unset: [facts.user]\n  propose: {tool: pay, args: {amount: 500}}\n  expect:\n    rules:\n      - looked # x\n",
            "- name: a\n  unset: [facts.user]\n  propose: {tool: pay, args: {amount: 500}}\n  expect:\n    rules:\n      - asks # x\n      - known\n",
        ),
        (
            '- name: "{row.n}"\n  for: [{n: 5, e: deny}, {n: 500, e: deny}]  # table\n  propose: {tool: pay, args: {amount: "{row.n}"}}\n  expect: "{row.e}"',
            '- name: "{row.n}"\n  for: [{n: 5, e: allow}, {n: 500, e: require_approval}]  # table\n  propose: {tool: pay, args: {amount: "{row.n}"}}\n  expect: "{row.e}"',
        ),
    ],
)  # fmt: skip
def test_only_the_expectation_changes(ledger, before, after):
    file = write(ledger.folder, before)
    head, now = file.read_text(), write(ledger.folder, after).read_text()
    file.write_text(head)
    assert ledger("test-policies", ".", "--update") == 0, ledger.out
    assert ledger.err.startswith("updated desk.cases.yaml:")
    assert file.read_text() == now


def test_rows_that_differ_are_not_made_one(ledger):
    text = (
        '- {name: "{row.n}", for: [{n: 5}, {n: 500}], propose: {tool: pay, args: {amount: "{row.n}"}}, expect: allow}'
    )
    file = write(ledger.folder, text)
    before = file.read_bytes()
    assert ledger("test-policies", ".", "--update") == 1
    assert "not updated desk.cases.yaml:7  500: its rows come out differently" in ledger.err
    assert file.read_bytes() == before


def test_standard_input_is_not_updated(ledger):
    assert ledger("test-policies", "-", "--update") == 2
    assert ledger.err.startswith("error: --update changes files, not standard input")


def test_line_ends_and_a_byte_order_mark_stay(ledger):
    file = write(ledger.folder, f"- name: a  # Fußnote 漢\n  {PAY}\n  expect: deny")
    marked = b"\xef\xbb\xbf" + file.read_bytes().replace(b"\n", b"\r\n")
    file.write_bytes(marked)
    assert ledger("test-policies", ".", "--update") == 0
    assert file.read_bytes() == marked.replace(b"expect: deny", b"expect: allow")


def test_examples_in_packs_are_updated_where_they_stand(ledger):
    pack = (
        "pack: p\nvocabulary: {tools: {pay: {amount: number}}}\nrules:\n  - name: r\n    check: 'true'  # always\n"
        "    examples:\n      - {name: a, propose: {tool: pay, args: {amount: 1}}, expect: deny} # x\n"
    )
    file = ledger.folder / "p.yaml"
    file.write_text(pack)
    assert ledger("test-policies", ".", "--update") == 0
    assert file.read_text() == pack.replace("expect: deny", "expect: allow")


_EXPECT = st.fixed_dictionaries(
    {},
    optional={
        "effect": st.sampled_from(["allow", "warn", "require_approval", "deny"]),
        "rules": st.lists(st.sampled_from(["known", "asks", "looked"]), unique=True).map(lambda x: f"[{', '.join(x)}]"),
        "error": st.sampled_from(["Who?", "'a: b'", '"a, b"', "500 is much."]),
        "halts": st.sampled_from(["true", "false"]),
    },
).filter(bool)
_CASE = st.tuples(st.sampled_from(["lei", "guest"]), st.sampled_from([5, 500]), _EXPECT, st.booleans())


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(_CASE, min_size=1, max_size=3))
def test_whatever_was_expected_passes_afterwards_with_all_comments(tmp_path, cases):
    lines = []
    for number, (user, amount, expect, block) in enumerate(cases):
        lines += [
            f"# before {number}",
            f"- name: case {number}  # beside {number}",
            f"  state: {{facts: {{user: {user}}}}}",
            "",
        ]
        lines += [f"  propose: {{tool: pay, args: {{amount: {amount}}}}}"]
        if block:
            lines += ["  expect:"] + [f"    {key}: {value}  # {key} {number}" for key, value in expect.items()]
        else:
            lines += [f"  expect: {{{', '.join(f'{key}: {value}' for key, value in expect.items())}}}  # map {number}"]
    file = write(tmp_path, "\n".join(lines))
    before = file.read_text()
    told = list(update(list(run(find([str(file)]), Asked()))))
    results = list(run(find([str(file)]), Asked()))
    assert results[0].problems == []
    came = {outcome.name for outcome in results[0].outcomes if outcome.came != "passed"}
    assert came == {one.name for one in told if one.why_not is not None}  # nothing would be left to expect
    after = file.read_text()
    comments = [line.partition("#")[2] for line in before.split("\n") if "#" in line]
    assert [line.partition("#")[2] for line in after.split("\n") if "#" in line] == comments
    assert before.count("\n\n") == after.count("\n\n")
