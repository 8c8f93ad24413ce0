"""Reports on lines made by hand: cells, values, steps and problems."""

from __future__ import annotations

import io
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from ledgercli.errors import LedgerCliError, LedgerWriteError, OutputExistsError
from ledgercli.loop import Ended
from ledgercli.reports import cells, many, values
from ledgercli.reports.problems import annotation, count_line, problem_lines, write_text
from ledgercli.reports.screen import Screen
from ledgercli.reports.steps import Steps
from ledgercli.reports.summary import counted, tally_text
from ledgercli.reports.terminal import RunReport, call_text
from ledgercli.runs import Job, Options
from ledgercli.sources import Problem
from ledgercli.tally import Tally

PLAIN = Screen(None, encoding="utf-8", colour=False)
MASK = {"redacted": "hmac-sha256:" + "0" * 64}
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda below: st.lists(below, max_size=4) | st.dictionaries(st.text(), below, max_size=4),
    max_leaves=20,
)


def step(**more):
    line = {
        "kind": "step", "step": 1, "now": "2026-08-01T12:00:00Z", "action": {"tool": "pay", "args": {"amount": 5}},
        "verdict": {"effect": "allow", "applied": 0, "reads": {}}, "outcome": "ok",
        "result": {"success": True, "data": {"paid": 5}},
    }  # fmt: skip
    return line | more


def shown(line, verbosity=0, place=lambda _: None):
    return list(Steps(PLAIN, place, verbosity).step(line))


# Cells


@given(json_values, st.integers(3, 90))
def test_a_cut_value_never_takes_more_than_its_room(value, room):
    assert cell_len(values.shown(value, room)) <= room


@given(json_values)
def test_a_whole_value_is_one_line_of_visible_characters(value):
    text = values.shown(value)
    assert cells.inert(text) == text
    assert "\n" not in text


@given(json_values, st.integers(3, 90))
def test_a_cut_value_begins_as_the_whole_one_and_breaks_no_escape(value, room):
    whole, cut = values.shown(value), values.shown(value, room)
    assert cut == whole or whole.startswith(cut.removesuffix("..."))
    last = cut.removesuffix("...")
    assert not last.endswith("\\") or last.endswith("\\\\")


@given(st.text())
def test_widths_add_up_once_a_text_is_inert(text):
    inert = cells.inert(text)
    assert cells.cells(inert) == sum(cells.cells(character) for character in inert)


@pytest.mark.parametrize(
    ("text", "inert"),
    [
        ("\x1b[31m", "\\x1b[31m"),
        ("\u202eevil", "\\u202eevil"),
        ("a\u200bb", "a\\u200bb"),
        ("\U000e0041", "\\U000e0041"),
        ("\ud800", "\\ud800"),
        ("\u00a0\u00ad\ufeff", "\\xa0\\xad\\ufeff"),
        ("\r\n\t\x00\x7f\x9b", "\\x0d\\x0a\\x09\\x00\\x7f\\x9b"),
        ("\u3164\u2800\ufe0f\u2028", "\\u3164\\u2800\\ufe0f\\u2028"),
        ("晴，22度　e\u0301 שלום ☂", "晴，22度　e\u0301 שלום ☂"),
    ],
)
def test_what_cannot_be_seen_is_written_out(text, inert):
    assert cells.inert(text) == inert


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "gbk", "utf-8", "utf-16"])
@given(text=st.text())
def test_any_text_can_be_shown_in_any_encoding(encoding, text):
    Screen(None, encoding=encoding, colour=False).safe(text).encode(encoding)


def test_characters_that_an_encoding_has_stay():
    assert Screen(None, encoding="gbk", colour=False).safe("晴😀") == "晴\\U0001f600"


def test_a_large_value_costs_only_what_is_shown():
    def endless():
        yield "{"
        while True:
            yield "x: 1, "

    assert cells.cut(endless(), 20) == "{x: 1, x: 1, x: 1..."


def test_messages_break_at_spaces_and_between_wide_characters():
    assert list(cells.wrap("one two three", 8)) == ["one two", "three"]
    assert list(cells.wrap("a/very/long/path/that/stays.yaml:5 x", 10)) == ["a/very/long/path/that/stays.yaml:5", "x"]
    assert list(cells.wrap("请在十四天之内，寄回仓库。", 10)) == ["请在十四天", "之内，寄回", "仓库。"]
    assert list(cells.wrap("请在十四天，之内", 10)) == ["请在十四", "天，之内"]
    assert list(cells.wrap("", 10)) == [""]


# Values


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"temp": 22, "condition": "Sunny"}, '{temp: 22, condition: "Sunny"}'),
        ({"#W1.2": [1, 2.0, None, True]}, '{"#W1.2": [1, 2.0, null, true]}'),
        (MASK, "[redacted]"),
        ({"code": MASK, "other": {"redacted": "no"}}, '{code: [redacted], other: {redacted: "no"}}'),
        ('say "hi"\\\n', '"say \\"hi\\"\\\\\\n"'),
        ({}, "{}"),
        ([], "[]"),
    ],
)
def test_values_are_written_as_rules_write_them(value, text):
    assert values.shown(value) == text


# Steps


def test_a_path_too_long_for_the_line_stays_whole_and_its_value_follows_below():
    path = 'facts.orders["' + "W" * 60 + '"].status'
    lines = shown(step(state_diff={path: "delivered"}))
    assert lines[-2:] == [f"          set   state.{path} =", '                  "delivered"']


def test_messages_of_rules_are_wrapped_and_rules_stand_whole():
    finding = {"rule": "desk/" + "r" * 90, "effect": "deny", "error": "word " * 30, "hint": "first line\nsecond line\n"}
    verdict = {"effect": "deny", "applied": 1, "reads": {}, "failed": [finding]}
    lines = shown(step(verdict=verdict, outcome="denied", result=None), place=lambda rule: f"{rule}.yaml:7")
    assert lines[1] == f"          rule  {'r' * 90}  desk/{'r' * 90}.yaml:7"
    assert lines[2].startswith("          why   word word")
    assert lines[3].startswith("                word")
    assert lines[-2:] == ["          hint  first line", "                second line"]


def test_several_ways_out_are_named():
    verdict = {
        "effect": "deny", "applied": 1, "reads": {}, "missing": ["state.facts.a", "state.facts.b"],
        "establish": ["login", "sso"], "failed": [{"rule": "p/r", "effect": "deny", "error": "?"}],
    }  # fmt: skip
    assert shown(step(verdict=verdict, outcome="denied", result=None))[-1] == (
        "          next  login or sso can set them"
    )


def test_a_rule_of_another_effect_says_which():
    failed = [{"rule": "p/one", "effect": "deny", "error": "1"}]
    warned = [{"rule": "p/two", "effect": "warn", "error": "2"}]
    verdict = {"effect": "deny", "applied": 2, "reads": {}, "failed": failed, "warned": warned}
    lines = shown(step(verdict=verdict, outcome="denied", result=None))
    assert "          rule  one  (built in)" in lines
    assert "          rule  two  (built in)  (warn)" in lines


@pytest.mark.parametrize(
    ("outcome", "last"),
    [
        ("cancelled", "          lost  it was stopped before it had an effect"),
        ("unknown", "          lost  it was stopped, and may have had its effect"),
        ("waiting", "          wait  for an approval"),
    ],
)
def test_a_step_without_a_result_says_why(outcome, last):
    assert shown(step(outcome=outcome, result=None))[-1] == last


def test_what_a_user_said_is_a_step_without_a_verdict():
    said = step(action={"tool": "user", "args": {}}, verdict=None, result={"success": True, "data": "取消订单"})
    assert shown(said) == ['  1 user  "取消订单"']


def test_reads_and_overridden_rules_are_shown_when_asked_for():
    overridden = [{"rule": "p/low", "effect": "deny", "error": "no"}]
    verdict = {"effect": "allow", "applied": 1, "reads": {"state.facts.x": [1]}, "overridden": overridden}
    line = step(verdict=verdict, state_diff={"status": "completed", "facts.y": 1}, problems=["a part is not known"])
    assert shown(line) == [
        "  1 allow pay(amount=5)",
        "          ok    {paid: 5}",
        "          set   state.facts.y = 1",
        "          warn  a part is not known",
    ]
    assert shown(line, 1) == [
        "  1 allow pay(amount=5)",
        "          overridden: deny by low  (built in)",
        "          why   no",
        "          rules 1 applies",
        "          read  state.facts.x = [1]",
        "          ok    {paid: 5}",
        '          set   state.status = "completed"',
        "          set   state.facts.y = 1",
        "          warn  a part is not known",
    ]


def test_a_question_shows_the_whole_call():
    assert call_text("pay", {"note": "x" * 200}) == f'pay(note="{"x" * 200}")'


def test_counts_say_every_outcome_once():
    tally = Tally()
    for outcome in ("ok", "ok", "denied", "error", "waiting"):
        tally.add(step(outcome=outcome))
    tally.add(step(verdict=None))
    assert tally_text(tally) == "5 steps: 2 ran, 1 denied, 1 failed, 1 waiting"
    assert counted(1, "policy", "policies") == "1 policy"
    assert counted(12_000, "policy", "policies") == "12,000 policies"


def test_many_runs_are_told_in_a_few_lines():
    run = {
        "status": "completed", "steps": 6, "denied": 1, "shadowed": 0, "failed": 0,
        "ledger": "runs/1.ledger.jsonl", "denied_by": {"p/refund_of_own_order": 1},
    }  # fmt: skip
    assert list(many.many_lines(PLAIN, "airline", [run] * 3 + [run | {"status": "failed", "failed": 2}])) == [
        "airline  4 runs",
        "",
        "completed  3 of 4",
        "failed     1 of 4",
        "denied     4 of 24 proposals, most by refund_of_own_order (4)",
        "failed     2 of 24 proposals",
        "ledgers    runs/",
    ]


# Runs


class Gone(io.StringIO):
    """A stream that nobody reads any more."""

    def write(self, _: str) -> int:
        raise BrokenPipeError


def job(ledger="w.ledger.jsonl"):
    scenario = SimpleNamespace(name="w", file=SimpleNamespace(expect=None, decide=SimpleNamespace(recording=None)))
    book, guard = SimpleNamespace(packs=()), SimpleNamespace(head="sha256:" + "a" * 64)
    made = Job(scenario, book, None, None, ledger, lambda: None, Options(), ["base"], ["extra"])
    made.guard = guard
    return made


def opening(task="Beijing", packs=("weather",)):
    files = [{"kind": "scenario", "name": "w"}, *({"kind": "pack", "name": name} for name in packs)]
    return {"kind": "open", "files": files, "engine": {"kind": "script"}, "mode": "enforce", "state": {"task": task}}


def report(*lines, close, commands=(), **options):
    out, err = io.StringIO(), io.StringIO()
    shown = RunReport(Screen(out), Screen(err), commands=commands, **options)
    shown.begin(job())
    for line in (*lines, {"kind": "close", "answer": None, **close}):
        shown.line(line)
    said = shown.end(job(), Ended(close["status"]))
    return out.getvalue().splitlines(), err.getvalue().splitlines(), said


def test_packs_of_the_command_line_are_named():
    lines, _, _ = report(opening(), close={"status": "completed"})
    assert lines[:3] == [
        'w  task "Beijing"  packs weather  engine script',
        "  --pack: base takes the place of the scenario's",
        "  --pack: extra is added",
    ]


def test_a_long_task_is_cut_and_many_packs_get_a_line_of_their_own():
    lines, _, _ = report(opening("x" * 200), close={"status": "completed"})
    assert cell_len(lines[0]) == 80
    assert lines[0].endswith("...  packs weather  engine script")
    lines, _, _ = report(opening("x" * 200, ["a_long_name"] * 6), close={"status": "completed"})
    assert cell_len(lines[0]) == 80
    assert lines[1].startswith("  packs a_long_name, a_long_name")


def test_the_next_command_is_named_only_if_there_is_one():
    halting = {"rule": "p/r", "effect": "deny", "error": "no", "halt": True}
    verdict = {"effect": "deny", "applied": 1, "reads": {}, "failed": [halting], "halts": True}
    denied = step(verdict=verdict, outcome="denied", result=None)
    lines, err, _ = report(denied, close={"status": "halted"}, commands=["why"])
    assert "halted     1 step: 0 ran, 1 denied, 0 failed  (r halts)" in lines
    assert err == ["next: ledger why w.ledger.jsonl@1"]
    assert report(denied, close={"status": "halted"})[1] == []
    waiting = step(outcome="waiting", result=None)
    assert report(waiting, close={"status": "awaiting_approval"}, commands=["approve"])[1] == [
        "next: ledger approve w.ledger.jsonl@1 --yes --by NAME"
    ]


def test_an_error_that_no_step_showed_is_shown_at_the_end():
    failed = step(outcome="error", result={"success": False, "error": "no such place"})
    close = {"status": "failed", "error": "no such place"}
    assert not any(line.startswith("error") for line in report(failed, close=close)[0])
    lines, _, said = report(close={"status": "failed", "error": "no next step"})
    assert lines[1:3] == ["failed     0 steps: 0 ran, 0 denied, 0 failed", "error      no next step"] or lines[:2] == [
        "failed     0 steps: 0 ran, 0 denied, 0 failed", "error      no next step"
    ]  # fmt: skip
    assert said["error"] == "no next step"


def test_where_a_recording_may_have_gone_another_way_is_said():
    lines, _, said = report(step(), close={"status": "completed", "counterfactual_from": 1})
    assert "completed  1 step: 1 ran, 0 denied, 0 failed  (counterfactual from @1 on)" in lines
    assert said["counterfactual_from"] == 1


def test_an_answer_is_shown_line_by_line_and_inert():
    lines, _, _ = report(step(), close={"status": "completed", "answer": "one\n\ttwo\x1b[2J\n"})
    assert lines[lines.index("one") + 1] == "    two\\x1b[2J"


def test_a_closed_pipe_does_not_disturb_the_run_and_is_told_at_its_end():
    shown = RunReport(Screen(Gone()), Screen(io.StringIO()))
    shown.begin(job())
    shown.line(opening())
    shown.line(step())
    with pytest.raises(BrokenPipeError):
        shown.end(job(), Ended("completed"))


def test_a_full_disk_is_told_as_what_it_is():
    class Full(io.StringIO):
        def write(self, _: str) -> int:
            raise OSError(28, "No space left on device")

    shown = RunReport(Screen(Full()), Screen(io.StringIO()))
    shown.begin(job())
    shown.line(opening())
    with pytest.raises(LedgerWriteError, match="no space left"):
        shown.end(job(), Ended("completed"))


# Screens


def test_a_report_file_is_new_utf8_and_never_coloured(tmp_path):
    with Screen.file(str(tmp_path / "r.txt")) as screen:
        screen.line(screen.paint(screen.safe("晴"), "red"))
    assert (tmp_path / "r.txt").read_bytes() == "晴\n".encode()
    with pytest.raises(OutputExistsError):
        Screen.file(str(tmp_path / "r.txt"))
    with pytest.raises(LedgerCliError, match="no such file"):
        Screen.file(str(tmp_path / "no" / "r.txt"))


def test_github_reads_no_command_in_a_line(monkeypatch):
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    out = io.StringIO()
    screen = Screen(out)
    for line in ("::add-mask::x", "  ::error::y", "a::b", "##[group]z"):
        screen.line(line)
    screen.line("::notice::meant", command=True)
    assert out.getvalue() == "\\x3a:add-mask::x\n  \\x3a:error::y\na::b\n#\\x23[group]z\n::notice::meant\n"


# Problems


def problem(**more):
    return Problem(**{"code": "unknown-fact", "message": "no fact x", "file": "p.yaml", "line": 3, "column": 5} | more)


def test_marks_count_cells_under_tabs_wide_and_hidden_characters():
    line = "\t晴\u202e: bad"
    lines = list(problem_lines(problem(column=6, length=3, source_line=line), PLAIN))
    assert lines[2:] == [" 3 |     晴\\u202e: bad", f"   | {' ' * 14}^^^"]


def test_a_long_line_is_shown_around_what_is_meant():
    line = "check: " + "a && " * 40 + "wrong" + " && b" * 40
    lines = list(problem_lines(problem(column=208, length=5, source_line=line), PLAIN))
    excerpt, marks = lines[2], lines[3]
    assert cell_len(excerpt) <= 80
    assert excerpt[marks.index("^") : marks.rindex("^") + 1] == "wrong"


def test_what_to_do_moves_below_where_the_line_has_no_room_and_stays_whole():
    fix = "put it in single quotes: '" + "x" * 70 + "'"
    lines = list(problem_lines(problem(source_line="    !x", inline=fix, notes=("because",)), PLAIN))
    assert lines[3:] == ["   |     ^", f"   = {fix}", "   = because"]


def test_a_problem_of_a_whole_file_has_no_line():
    assert list(problem_lines(problem(line=0, column=0), PLAIN)) == ["p.yaml: error[unknown-fact]: no fact x"]


def test_problems_at_line_1000_widen_the_gutter():
    lines = list(problem_lines(problem(line=1000, column=1, source_line="x"), PLAIN))
    assert lines[1:] == ["     |", "1000 | x", "     | ^"]


def test_counts_name_each_kind_of_file():
    counts = {"pack": 3, "toolset": 2, "scenario": 2, "cases": 2}
    assert count_line([problem()] * 2, counts) == (
        "2 errors, 0 warnings in 9 files (3 packs, 2 toolsets, 2 scenarios, 2 cases)"
    )
    assert count_line([problem()], {"ledger": 1}) == "1 error in 1 ledger"
    assert count_line([problem(severity="warning")], {"cases": 1}) == "0 errors, 1 warning in 1 case file"


def test_annotations_escape_what_github_would_read():
    text = annotation(problem(file="a,b:c%.yaml", message="50%\r::error::x", notes=("two",)))
    assert text == (
        "::error file=a%2Cb%3Ac%25.yaml,line=3,col=5,endColumn=6,title=unknown-fact::50%25\\x0d::error::x%0Atwo"
    )
    assert annotation(problem(severity="note", line=0)).startswith("::notice file=p.yaml,title=")


def test_what_is_well_is_said_and_what_is_not_proved():
    def verified(**more):
        return SimpleNamespace(**{"ok": True, "closed": True, "anchored": False, "lines": 4} | more)

    out = io.StringIO()
    ledgers = [("a", verified()), ("b", verified()), ("c", verified(anchored=True)), ("d", verified(ok=False))]
    write_text(Screen(out), [], {"pack": 1, "ledger": 4}, ledgers)
    assert out.getvalue().splitlines() == [
        "ok: 1 pack",
        "ok: 1 ledger, 4 lines, closed, as anchored",
        "ok: 2 ledgers, 8 lines, closed; unanchored: a complete rewrite would not show",
        "    (keep their heads elsewhere and pass each with --anchor)",
    ]
