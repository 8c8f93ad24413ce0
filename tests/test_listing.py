"""Runs and steps are found: by a strictly checked question, in one pass, damaged ledgers apart."""

from __future__ import annotations

import io
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from ledgercli import cel, records
from ledgercli.errors import InvalidDocumentError
from ledgercli.listing import Run, Search, Step
from ledgercli.records import Finding, Proposal, Result, Verdict
from ledgercli.reports import listing as reports
from ledgercli.reports.cells import inert
from ledgercli.reports.screen import Screen
from ledgercli.where import Where, parse
from tests import books, ledgers

#: What the other lines of `ledgers` do not have: a failure, a warning, a user's message, a rule only watched.
FAILED = records.step_line(
    step=1, at=ledgers.AT, now=ledgers.AT, action=Proposal("charge", {"amount": 5}), verdict=ledgers.ALLOW,
    outcome="error", result=Result(success=False, error="card refused"),
)  # fmt: skip
WARNED = records.step_line(
    step=2, at="2026-08-02T12:00:00.000Z", now=ledgers.AT, action=Proposal("charge", {"amount": 7.5}),
    verdict=Verdict("warn", 2, {}, warned=(Finding("p/much", "warn", "Much."),), reason="Much."),
    outcome="ok", result=Result(success=True),
)  # fmt: skip
SAID = records.step_line(
    step=3, at=ledgers.AT, now=ledgers.AT, action=Proposal("user", {}), verdict=None, outcome="ok",
    result=Result(success=True, data="北京\x1b"),
)  # fmt: skip
WATCHED = records.step_line(
    step=4, at=ledgers.AT, now=ledgers.AT, action=Proposal("pay", {}),
    verdict=Verdict("allow", 1, {}, shadowed=(Finding("q/no", "deny", "No."),)), outcome="ok",
    result=Result(success=True, data={"n": 4}), sets={"facts.n": 4},
)  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    scenario = records.file_entry("scenario", "desk", "desk.yaml", "")
    files = [*ledgers.opening()["files"], scenario]
    ledgers.write(Path("story"), *ledgers.STORY)
    ledgers.write(
        Path("open"), FAILED, WARNED, SAID, WATCHED, ledgers.intent(5, to="x"), first=ledgers.opening(files=files)
    )
    ledgers.write(Path("empty"))
    return tmp_path


class Found(Search):
    """A search that has looked."""

    def __init__(self, where: str | None, *files: str, steps: bool = False) -> None:
        super().__init__(Where() if where is None else parse(where), steps=steps)
        self.rows: list[Any] = list(self.look(files or ("story", "open", "empty")))


def search(where: str | None = None, *files: str, steps: bool = False) -> Found:
    return Found(where, *files, steps=steps)


def runs(where: str | None = None) -> list[str]:
    return [run.ledger for run in search(where).rows]


def steps(where: str | None = None) -> list[str]:
    return [f"{step.ledger}@{step.step}" for step in search(where, steps=True).rows]


def test_a_run_is_what_its_ledger_came_to(folder: Path) -> None:
    story, opened, empty = search().rows
    assert story == Run("story", "01K", ledgers.AT, "completed", "Beijing", None, ["p"], 6, 1, ["p/no"])
    assert opened.to_json() == {
        "ledger": "open", "id": "01K", "at": ledgers.AT, "status": "unsealed", "task": "Beijing", "scenario": "desk",
        "packs": ["p"], "steps": 5, "denied": 0, "rules": ["p/much", "q/no"],
    }  # fmt: skip
    assert (empty.status, empty.steps) == ("unsealed", 0)


def test_a_step_is_what_its_line_says_and_an_intent_alone_is_unknown(folder: Path) -> None:
    found = search(None, "open", "story", steps=True).rows
    assert [(step.step, step.effect, step.outcome, step.rules, step.error) for step in found] == [
        (1, "allow", "error", [], "card refused"),
        (2, "warn", "ok", ["p/much"], None),
        (3, None, "ok", [], None),
        (4, "allow", "ok", ["q/no"], None),
        (5, "allow", "unknown", [], None),
        (1, "allow", "ok", [], None),
        (2, "allow", "ok", [], None),
        (3, "deny", "denied", ["p/no"], "No."),
        (4, "allow", "ok", [], None),
        (5, "allow", "ok", [], None),
        (6, "allow", "ok", [], None),
    ]
    assert found[0] == Step(
        "open", 1, ledgers.AT, {"tool": "charge", "args": {"amount": 5}}, "allow", "error", [],
        {"success": False, "error": "card refused"}, "card refused",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("where", "wanted"),
    [
        ("run.status == 'completed'", ["story"]),
        ("run.status in ['unsealed', 'failed']", ["open", "empty"]),
        ("run.denied > 0 || run.steps == 0", ["story", "empty"]),
        ("run.facts.n == 4", ["open"]),
        ("run.facts.n != 5", ["open"]),  # what is not there does not match
        ("!(run.facts.n == 5)", ["open"]),
        ("!has(run.facts.n)", ["story", "empty"]),
        ("'p/no' in run.rules", ["story"]),
        ("'no' in run.rules", ["story", "open"]),
        ("'p' in run.packs && run.scenario == 'desk'", ["open"]),
        ("run.file.startsWith('st') && run.task == 'Beijing' && run.id == '01K'", ["story"]),
        ("run.answer == '好'", ["story"]),
        ("run.at < timestamp('2026-08-02T00:00:00Z')", ["story", "open", "empty"]),
        ("step.tool == 'pay' && step.args.to == '北京'", ["story"]),
        ("step.args.amount > 5 && step.args.amount < 8.0", ["open"]),
        ("step.error == 'card refused' && step.result.success == false", ["open"]),
        ("step.outcome == 'unknown' && run.status == 'unsealed'", ["open"]),
        ("step.effect == 'warn' && step.at > timestamp('2026-08-02T00:00:00Z')", ["open"]),
        ("step.step == run.steps", ["story", "open"]),
        ("step.step == run.steps && step.tool == 'look'", ["story"]),
        ("step.tool == 'look' || run.steps == 5", ["story", "open"]),
        ("true", ["story", "open", "empty"]),
        ("false", []),
    ],
)
def test_runs_are_found(folder: Path, where: str, wanted: list[str]) -> None:
    assert runs(where) == wanted


@pytest.mark.parametrize(
    ("where", "wanted"),
    [
        ("step.effect == 'deny'", ["story@3"]),
        ("step.outcome in ['error', 'unknown']", ["open@1", "open@5"]),
        ("run.status == 'unsealed'", ["open@1", "open@2", "open@3", "open@4", "open@5"]),
        ("'much' in step.rules || 'q/no' in step.rules", ["open@2", "open@4"]),
        ("step.tool == 'look' && run.denied == 1", ["story@1", "story@4", "story@5", "story@6"]),
        ("step.step > run.denied + 4", ["open@5", "story@6"]),
        ("has(step.result.data.n)", ["story@1", "story@2", "story@4", "story@5", "story@6", "open@4"]),
        ("!has(step.effect)", ["open@3"]),
        ("has(step.error)", ["story@3", "open@1"]),
    ],
)
def test_steps_are_found(folder: Path, where: str, wanted: list[str]) -> None:
    assert sorted(steps(where)) == sorted(wanted)


# A question and its mistakes


@pytest.mark.parametrize(
    ("where", "column", "said", "note"),
    [
        ("run.statsu == 'completed'", 5, "no field statsu", "did you mean status?"),
        ("step.tol == 'pay'", 6, "no field tol", "did you mean tool?"),
        ("has(step.argz.x)", 10, "no field argz", "did you mean args?"),
        ("step.result.succes", 13, "no field succes", "did you mean success?"),
        ("run.status == 'complete'", 15, "no status 'complete'", "did you mean completed?"),
        ("run.status in ['halted', 'runing']", 26, "no status 'runing'", None),
        ("step.effect != 'denied'", 16, "no effect 'denied'", None),
        ("step.outcome == 'eror'", 17, "no value 'eror'", "did you mean error?"),
        ("run.steps == '3'", 1, "== between int and string is always false", "write 3 without quotes"),
        ("tool == 'pay'", 1, "no name tool", "write step.tool"),
        ("rules == []", 1, "no name rules", "write run.rules or step.rules"),
        ("action.tool == 'pay'", 1, "no name action", "write step.tool, step.args"),
        ("state.facts.x == 1", 1, "no name state", "write run.facts, run.status"),
        ("rum.steps > 1", 1, "no name rum", "did you mean run?"),
        ("foo > 1", 1, "no name foo", "there is run and step"),
        ("run.facts", 1, "a condition must be true or false; this is map(string, dyn)", "write size(run.facts) > 0"),
        ("run.steps > 1 and true", 15, "'and' is not an operator of CEL", "CEL writes && for and"),
        ("step.tool = 'pay'", 11, "'=' is not CEL", "CEL compares with =="),
        ("count_calls(step, 'pay') > 1", 1, "no function count_calls", None),
        ("", 1, "", None),
    ],
)  # fmt: skip
def test_a_mistake_is_said_with_its_column(where: str, column: int, said: str, note: str | None) -> None:
    with pytest.raises(InvalidDocumentError) as refused:
        parse(where)
    problem: Any = refused.value.problems[0]
    assert (problem.file, problem.line, problem.column) == ("--where", 1, column)
    assert said in problem.message
    assert note is None or note in problem.notes


def test_a_mistake_on_a_later_line_has_its_line(folder: Path) -> None:
    with pytest.raises(InvalidDocumentError) as refused:
        parse("run.steps > 1 &&\n  run.stepz > 2 &&\n  rum.steps > 3")
    said = [(one.line, one.column, one.source_line) for one in refused.value.problems]
    assert said == [(2, 7, "  run.stepz > 2 &&"), (3, 3, "  rum.steps > 3")]
    assert refused.value.message == "2 errors in --where"


def test_conditions_are_told_apart_by_what_they_are_about() -> None:
    where = parse("step.tool == 'a' && run.steps > 1 && step.step == run.steps && (step.step > 1 && true)")
    assert [len(part) for part in (where.step, where.run, where.both)] == [2, 2, 1]
    assert not parse("run.steps > 1").asks_steps
    assert [parse(text).times for text in ("step.at > run.at", "size(step) > 1", "step.tool == 'a'")] == [
        True,
        True,
        False,
    ]


# The same answers as from the whole question, asked of all steps at the end


def by_hand(file: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    lines = books.lines_of(file)
    steps = []
    for line in lines[1:]:
        if line["kind"] != "step":
            continue
        step = {"step": line["step"], "outcome": line["outcome"], "rules": [], **line["action"]}
        for part in ("failed", "warned", "shadowed"):
            for found in line["verdict"].get(part, []):
                step["rules"] += [found["rule"], found["rule"].split("/")[1]]
        step["effect"] = line["verdict"]["effect"]
        if line["result"]:
            step["result"] = line["result"]
        steps.append(step)
    run = {
        "steps": len(steps),
        "denied": sum(step["outcome"] == "denied" for step in steps),
        "facts": books.replayed(lines)["facts"],
        "status": lines[-1].get("status", "unsealed"),
    }
    return run, steps


ATOMS = st.sampled_from(
    [
        "step.tool == 'pay'", "step.step > 2", "step.args.to == 'a'", "has(step.args.to)", "'no' in step.rules",
        "step.outcome == 'denied'", "step.result.data.n > 1", "run.steps > 2", "run.denied == 0", "run.facts.x == 1",
        "has(run.facts.x)", "run.status == 'unsealed'", "step.step == run.steps", "step.args.to == run.facts.y", "true",
    ]
)  # fmt: skip
QUESTIONS = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from([" && ", " || "]), inner).map(lambda part: f"({''.join(part)})"),
        inner.map(lambda text: f"!({text})"),
    ),
    max_leaves=5,
)
ONE = st.one_of(
    st.just(("denied",)),
    st.tuples(
        st.sampled_from(["pay", "look"]), st.fixed_dictionaries({}, optional={"to": st.sampled_from(["a", "b"])})
    ),
)
RUNS = st.tuples(
    st.lists(ONE, max_size=4),
    st.fixed_dictionaries({}, optional={"facts.x": st.integers(1, 2), "facts.y": st.sampled_from(["a", "b"])}),
    st.booleans(),
)


def written(file: Path, run: Any) -> Path:
    calls, sets, closed = run
    lines = [
        ledgers.denied(number)
        if call == ("denied",)
        else ledgers.step(number, call[0], sets if number == 1 else None, **call[1])
        for number, call in enumerate(calls, start=1)
    ]
    return ledgers.write(file, *lines, *([ledgers.closing(len(lines))] if closed else []))


@settings(max_examples=150, deadline=None)
@given(st.lists(RUNS, min_size=1, max_size=3), QUESTIONS)
def test_asking_in_parts_while_reading_changes_no_answer(given_runs: list[Any], question: str) -> None:
    try:
        whole = parse(question)
    except InvalidDocumentError:  # such as a comparison that can never be true
        return
    env = cel.Env({"run": cel.DYN, "step": cel.DYN})
    program = cel.compile(cel.check(cel.parse(question), env, cel.BOOL))
    with tempfile.TemporaryDirectory() as folder:
        files = [str(written(Path(folder) / str(number), run)) for number, run in enumerate(given_runs)]
        wanted_runs, wanted_steps = [], []
        for file in files:
            run, all_steps = by_hand(Path(file))
            asked: list[dict[str, Any]] = all_steps if whole.asks_steps else [{}]
            matching = [step for step in asked if program.holds({"run": run, "step": step})]
            if matching:
                wanted_runs.append(file)
            if not whole.asks_steps and matching:
                matching = all_steps
            wanted_steps += [(file, step["step"]) for step in matching if step]
        assert [run.ledger for run in search(question, *files).rows] == wanted_runs
        found = search(question, *files, steps=True).rows
        assert [(step.ledger, step.step) for step in found] == wanted_steps


# Damage, Ctrl-C, nothing


def test_a_damaged_ledger_is_named_and_the_rest_is_listed(folder: Path) -> None:
    data = Path("story").read_bytes()
    Path("cut").write_bytes(data.replace(b'"paid"', b'"PAID"'))
    Path("none").write_bytes(b"")
    Path("noise").write_bytes(b"\0\xff\n")
    ledgers.write(Path("misfit"), ledgers.step(1, sets={"facts.a.b": 1}))
    found = search("step.step >= 1", "cut", "none", "story", "noise", "misfit", "nowhere")
    assert [run.ledger for run in found.rows] == ["story"]
    assert [one.ledger for one in found.damaged] == ["cut", "none", "noise", "misfit", "nowhere"]
    assert (found.read, found.matched) == (6, 1)
    told = list(reports.told(found, 6, steps=False))
    assert told[0].startswith("damaged: cut:5:")
    assert told[-1] == "5 ledgers left out; ledger validate says more"


def test_of_many_damaged_ledgers_a_few_are_named(folder: Path) -> None:
    found = search(None, *(f"nowhere{number}" for number in range(1200)))
    told = list(reports.told(found, 1200, steps=False))
    assert len(told) == 7
    assert told[-2:] == [
        "damaged: and 1,195 more (--format json lists them)",
        "1,200 ledgers left out; ledger validate says more",
    ]


def test_a_torn_end_is_no_damage(folder: Path) -> None:
    with Path("story").open("ab") as file:
        file.write(b'{"kind":"st')
    assert runs("run.status == 'completed'") == ["story"]


def test_ctrl_c_keeps_what_was_found_and_says_how_far(folder: Path) -> None:
    def files() -> Iterator[str]:
        yield "story"
        yield "empty"
        raise KeyboardInterrupt

    found = Search(Where(), steps=False)
    assert [run.ledger for run in found.look(files()) if isinstance(run, Run)] == ["story", "empty"]
    assert (found.interrupted, found.read) == (True, 2)
    assert list(reports.told(found, 3, steps=False)) == ["interrupted: 2 of 3 ledgers were looked at"]


def test_where_nothing_matches_what_nobody_has_is_named(folder: Path) -> None:
    question = (
        "(step.tool == 'payy' || step.tool in ['look', 'pay']) && ('muchh' in step.rules || 'zzzzz' in run.rules)"
    )
    assert list(reports.told(search(question), 3, steps=False)) == [
        "no run matches, of 3 ledgers",
        "  note: no step calls payy; there is pay",
        "  note: no rule muchh failed; there is much",
        "  note: no rule zzzzz failed",
    ]
    assert list(reports.told(search("step.tool == 'pay'"), 3, steps=False)) == []


# Lines


def text_of(*found: Run | Step) -> list[str]:
    screen = Screen(stream := io.StringIO(), encoding="utf-8", colour=False)
    reports.write_text(screen, found)
    return stream.getvalue().splitlines()


ANY = st.text(max_size=60)
RUN = st.builds(
    Run, st.just("a.jsonl"), st.just("01K"), st.just(ledgers.AT), st.sampled_from(["completed", "awaiting_approval"]),
    ANY, st.none(), st.just([]), st.integers(0, 12_000), st.integers(0, 50), st.just([]),
)  # fmt: skip
STEP = st.builds(
    Step, st.just("a.jsonl"), st.integers(1, 99), st.just(ledgers.AT),
    st.fixed_dictionaries({"tool": ANY, "args": st.dictionaries(ANY, ANY, max_size=2)}),
    st.sampled_from([None, "allow", "require_approval"]), st.sampled_from(["ok", "cancelled"]), st.just([]),
    st.one_of(st.none(), st.fixed_dictionaries({"data": ANY})), st.none(),
)  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(st.one_of(st.lists(RUN, min_size=1, max_size=4), st.lists(STEP, min_size=1, max_size=4)))
def test_each_is_one_line_of_80_cells_whatever_the_texts_hold(found: list[Run | Step]) -> None:
    shown = text_of(*found)
    assert len(shown) == len(found)
    for one, line in zip(found, shown, strict=True):
        assert cell_len(line) <= 80
        assert inert(line) == line
        assert one.ledger in line


def test_a_long_path_is_whole_and_something_of_the_text_is_shown(folder: Path) -> None:
    [run] = search(None, "story").rows
    long = Run(**run.to_json() | {"ledger": "x" * 90, "task": "y" * 90})
    assert text_of(long) == [f'completed  6 steps, 1 denied  {"x" * 90}  "{"y" * 12}...']


def test_columns_stand_below_one_another(folder: Path) -> None:
    assert text_of(*search().rows) == [
        'completed  6 steps, 1 denied  story  "Beijing"',
        'unsealed   5 steps, 0 denied  open  "Beijing"',
        'unsealed   0 steps, 0 denied  empty  "Beijing"',
    ]
    assert text_of(*search(None, "open", steps=True).rows) == [
        "allow  error    open@1  charge(amount=5)",
        "warn   ok       open@2  charge(amount=7.5)",
        '-      ok       open@3  user "北京\\x1b"',
        "allow  ok       open@4  pay()",
        'allow  unknown  open@5  pay(to="x")',
    ]


def test_json_lines_are_whole_objects(folder: Path) -> None:
    screen = Screen(stream := io.StringIO(), encoding="utf-8", colour=False)
    reports.write_lines(screen, search(None, "open", steps=True).rows)
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [(line["schema"], line["step"], line["action"]["tool"]) for line in lines][:2] == [
        ("list/1", 1, "charge"),
        ("list/1", 2, "charge"),
    ]
