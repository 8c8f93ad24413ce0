"""Trials: the arithmetic, what passing means, errors of the engine apart, Ctrl-C, and tools that write."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from fractions import Fraction
from itertools import combinations
from math import comb
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledgercli.errors import OutputExistsError
from ledgercli.expectations import Happened
from ledgercli.ledger.verify import verify
from ledgercli.reports.screen import Screen
from ledgercli.reports.trials import header, summary, to_json, trial_lines
from ledgercli.runs import Job, Options, prepare
from ledgercli.tally import Usage
from ledgercli.trials import Trials, pass_hat
from tests.commands import ROOT, Run, command_line
from tests.model_desk import FINISH, LOGIN, PAY, Model, calls, desk, job

TOOLS = """
toolset: post
tools:
  ship:
    access: read
    args: {order: {type: string}}
    run: {python: "post.py:ship"}
    on_success:
      - set: {facts.shipped: result.data.shipped}
      - {when: result.data.broken, set: {constraints.max_steps: "'many'"}}
  refund:
    access: write
    args: {order: {type: string}, amount: {type: number, default: 5}}
    run: {canned: [{result: {refunded: true}}]}
  login:
    access: read
    args: {code: {type: string}}
    run: {canned: [{result: {}}]}
"""
#: The n-th call comes out as the n-th letter of a file says: p passes, f fails, e breaks the engine, w waits.
TOOL = """
import itertools
import threading
import time
from pathlib import Path

CALLS = itertools.count()
TOGETHER = threading.Barrier(3)


def ship(order):
    what = Path(__file__).with_name("letters.txt").read_text()[next(CALLS)]
    if what == "w":
        time.sleep(60)
    if what == "b":
        TOGETHER.wait(timeout=20)
    if what == "f":
        raise ValueError("no carrier")
    return {"shipped": True, "broken": what == "e"}
"""
PACK = """
pack: post
rules:
  - name: shipped_first
    tools: [refund]
    check: has(state.facts.shipped)
    on_fail: {error: Nothing was shipped., halt: true}
  - name: small
    tools: [refund]
    check: action.args.amount < 10
"""
SCENARIO = """
scenario: post
task: Ship W1.
toolset: post.tools.yaml
packs: [post.yaml]
decide:
  script:
    - when: state.step == 0
      propose: {tool: ship, args: {order: W1}}
    - when: state.step == 1
      propose: {tool: refund, args: {order: W1}}
    - propose: {tool: finish, args: {answer: done}}
"""


def write(folder: Path, letters: str, expect: str = "", tools: str = TOOLS) -> None:
    (folder / "s.yaml").write_text(SCENARIO.lstrip() + expect)
    (folder / "post.tools.yaml").write_text(tools.lstrip())
    (folder / "post.yaml").write_text(PACK.lstrip())
    (folder / "post.py").write_text(TOOL)
    (folder / "letters.txt").write_text(letters)


@pytest.fixture
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Run]:
    with command_line(tmp_path, monkeypatch, capsys) as run:
        yield run


def told(ledger: Run) -> list[str]:
    return [line.strip() for line in ledger.out.splitlines()]


# ---- the arithmetic


@given(st.lists(st.booleans(), min_size=1, max_size=9), st.data())
def test_pass_hat_is_the_share_of_all_choices_in_which_every_trial_passed(passed, data):
    k = data.draw(st.integers(1, len(passed)))
    chosen = list(combinations(passed, k))
    assert pass_hat(len(passed), sum(passed), k) == sum(map(all, chosen)) / len(chosen)


@given(st.integers(1, 200), st.data())
def test_pass_hat_never_grows_with_k_and_begins_with_the_rate(trials, data):
    passed = data.draw(st.integers(0, trials))
    rates = [pass_hat(trials, passed, k) for k in range(1, trials + 1)]
    assert rates[0] == passed / trials
    assert rates == sorted(rates, reverse=True)
    assert [rate == 0 for rate in rates] == [k > passed for k in range(1, trials + 1)]
    assert rates[-1] == float(Fraction(comb(passed, trials)))


def test_what_models_took_is_added_up_and_what_has_no_price_is_named():
    one = {"model": "a", "tokens": {"prompt": 10, "completion": None}, "cost": 0.5}
    two = {"model": "b", "tokens": {"prompt": 5, "completion": 2}, "cost": None}
    assert Usage.of([]) is None
    assert Usage.of([one, two, two]) == Usage(20, 4, 0.5, ("b",))
    assert Usage.of([two]) == Usage(5, 2, None, ("b",))


# ---- what is reported


def test_the_rate_of_passes_decides_and_all_must_pass_unless_less_is_asked_for(ledger):
    write(ledger.folder, "pfpp" * 5)
    assert ledger("run", "s.yaml", "--trials", "4") == 1
    assert "passed   3 of 4   pass^1 0.75  pass^2 0.50  pass^3 0.25  pass^4 0" in told(ledger)
    assert "status  wanted completed, got halted (shipped_first)" in told(ledger)
    assert "denied   1 of 11 proposals, most by shipped_first (1)" in told(ledger)
    assert ledger.err.startswith("next: ledger diff ledgers/post-")
    assert ledger("run", "s.yaml", "--trials", "4", "--min-pass", "0.75") == 0
    assert ledger("run", "s.yaml", "--trials", "4", "--min-pass", "0.76") == 1
    assert told(ledger)[-1] == "FAIL --min-pass 0.76: pass^1 is 0.75"


def test_ledgers_stand_in_one_folder_and_are_whole(ledger):
    write(ledger.folder, "pp")
    assert ledger("run", "s.yaml", "--trials", "2", "--out", "t") == 0
    assert [file.name for file in sorted(Path("t").iterdir())] == ["trial-1.ledger.jsonl", "trial-2.ledger.jsonl"]
    assert [verify(file).problems for file in Path("t").iterdir()] == [(), ()]
    assert ledger("run", "s.yaml", "--trials", "2", "--out", "t") == 2
    assert "t/trial-1.ledger.jsonl exists" in ledger.err


def test_every_form_says_the_same(ledger):
    write(ledger.folder, "pf" * 4)
    assert ledger("run", "s.yaml", "--trials", "2", "--out", "j", "--format", "json") == 1
    [said] = json.loads(ledger.out)["scenarios"]
    assert (said["passed"], said["counted"], said["pass"]) == (1, 2, {"1": 0.5, "2": 0.0})
    assert said["denied_by"] == {"post/shipped_first": 1}
    assert said["usage"] is None
    assert [(run["came"], run["unmet"]) for run in said["runs"]] == [
        ("pass", []),
        ("fail", [{"path": "status", "wanted": "completed", "got": "halted"}]),
    ]
    assert ledger("run", "s.yaml", "--trials", "2", "--out", "l", "--format", "jsonl") == 1
    lines = [json.loads(line) for line in ledger.out.splitlines()]
    assert [line["kind"] for line in lines] == ["trial", "trial", "trials"]
    assert lines[2]["pass"] == said["pass"]
    assert ledger("run", "s.yaml", "--trials", "2", "--out", "m", "--format", "markdown") == 1
    assert "| 2 | fail | 2 | 1 |  | <code>status</code> wanted" in ledger.out
    assert ledger("run", "s.yaml", "--trials", "2", "--out", "q", "-q") == 1
    assert ledger.out == "q/trial-{1..2}.ledger.jsonl\n"


def test_errors_of_the_engine_are_in_no_rate(ledger):
    write(ledger.folder, "pepe")
    assert ledger("run", "s.yaml", "--trials", "4") == 4
    assert "passed   2 of 2   pass^1 1  pass^2 1" in told(ledger)
    assert "errors   2 trials, in no rate: the engine failed" in told(ledger)
    assert "error  the limit max_steps is no number: 'many'" in told(ledger)


def test_a_failure_counts_more_than_an_error(ledger):
    write(ledger.folder, "efpee")
    assert ledger("run", "s.yaml", "--trials", "3") == 1
    assert ledger("run", "s.yaml", "--trials", "2", "--min-pass", "0") == 4  # no trial is left that says anything


def test_trials_may_run_at_once_and_are_told_in_order(ledger):
    write(ledger.folder, "bbbpp")  # each of the first three waits for the two others
    assert ledger("run", "s.yaml", "--trials", "5", "--jobs", "3") == 0
    assert [line.split()[:2] for line in told(ledger)[2:7]] == [[str(number), "pass"] for number in range(1, 6)]
    assert sys.stdout is not sys.stderr


def test_tokens_and_cost_are_told_where_a_model_proposes(tmp_path):
    file, replies = desk(tmp_path), (calls(LOGIN), calls(PAY), calls(FINISH))
    jobs = [job(file, Model(*replies, cost=cost), out=f"trial-{n}") for n, cost in ((1, 0.01), (2, None))]
    trials = Trials("desk", jobs[0].engine_line(), 2)
    screen = Screen(None, encoding="utf-8")
    done = list(trials.run(jobs, lambda _proposal, _verdict: None))
    assert next(header(screen, trials)) == "desk  2 trials  openai/gpt-4o"
    assert [line for trial in done for line in trial_lines(screen, trial)] == [
        "  1 pass   3 steps, 0 denied     360 tokens",
        "  2 pass   3 steps, 0 denied     360 tokens",
    ]
    assert "cost     720 tokens, $0.03 (no price known for openai/gpt-4o)" in summary(screen, trials)
    usage = {"tokens": {"prompt": 600, "completion": 120}, "cost": 0.03, "unpriced": ["openai/gpt-4o"]}
    assert to_json(trials)["usage"] == usage


# ---- what passing means


EXPECT = """
expect:
  facts.shipped: true
  rules: {failed: [small], not_failed: [post/shipped_first]}
  calls: [{tool: refund, args: {amount: 5}}, {tool: login}]
  no_calls: [{tool: ship, args: {order: W1}}]
"""


def test_what_was_not_as_expected_is_named_with_what_there_was(ledger):
    write(ledger.folder, "f", EXPECT)
    assert ledger("run", "s.yaml", "--trials", "1") == 1
    assert told(ledger)[3:9] == [
        "expect.facts.shipped  wanted true, got null",
        'expect.rules.small  wanted "failed", got "not failed"',
        'expect.rules.post/shipped_first  wanted "not failed", got "failed @2"',
        'expect.calls.refund  wanted {amount: 5}, got "none"',
        'expect.calls.login  wanted "a call", got "none"',
        'expect.no_calls.ship  wanted "none", got [{order: "W1"}]',
    ]


def test_the_same_holds_for_a_single_run(ledger):
    write(ledger.folder, "p", EXPECT)
    assert ledger("run", "s.yaml") == 1
    assert [line.removeprefix("FAIL").strip() for line in told(ledger)[-3:]] == [
        'rules.small  wanted "failed", got "not failed"',
        'calls.login  wanted "a call", got "none"',
        'no_calls.ship  wanted "none", got [{order: "W1"}]',
    ]


def test_a_denied_call_was_not_made_and_a_failed_one_was():
    line = {"kind": "step", "step": 1, "action": {"tool": "pay", "args": {}}, "verdict": {"effect": "allow"}}
    toolset = type("Tools", (), {"tools": {}})()
    made = {one: bool(Happened.of([line | {"outcome": one}], toolset).calls) for one in ("ok", "error", "denied")}
    assert made == {"ok": True, "error": True, "denied": False}


@pytest.mark.parametrize(
    ("expect", "said"),
    [
        ("{rulse: {failed: [small]}}", "no expectation rulse"),
        ("{rules: {failed: [smal]}}", "did you mean small?"),
        ("{rules: {faild: [small]}}", "did you mean failed?"),
        ("{rules: {not_failed: [post/shiped_first]}}", "did you mean post/shipped_first?"),
        ("{calls: [{tool: refnd}]}", "did you mean refund?"),
        ("{calls: [{tool: refund, args: {amont: 5}}]}", "did you mean amount?"),
        ("{no_calls: [{tol: refund}]}", "did you mean tool?"),
        ("{facts.shiped: true}", "did you mean shipped?"),
        ("{statsu: completed}", "did you mean status?"),
        ("{no_calls: [{tool: login, args: {code: a}}]}", "login.args.code is masked"),
    ],
)
def test_a_typo_in_an_expectation_is_an_error_where_it_stands(ledger, expect, said):
    tools = TOOLS.replace("tools:\n", "redact: [login.args.code]\ntools:\n")
    write(ledger.folder, "", f"expect: {expect}\n", tools)
    assert ledger("validate", "s.yaml") == 1
    assert said in ledger.out
    assert "s.yaml:12:" in ledger.out


# ---- what is refused


def test_tools_that_write_run_in_trials_only_where_that_is_allowed(ledger):
    real = TOOLS.replace("run: {canned: [{result: {refunded: true}}]}", "run: {command: [echo, '{}']}")
    write(ledger.folder, "pp", tools=real)
    assert ledger("run", "s.yaml", "--trials", "2", "--out", "t") == 2
    assert "trials would run tools that have an effect each time: refund" in ledger.err
    assert "--allow-writes" in ledger.err
    assert not Path("t").exists()
    assert ledger("run", "s.yaml", "--trials", "2", "--out", "t", "--allow-writes") == 0


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["--resume", "x.ledger.jsonl", "--trials", "2"], "does not go with --resume or --from"),
        (["--from", "x.ledger.jsonl@1", "--trials", "2"], "does not go with --resume or --from"),
        (["s.yaml", "--jobs", "2"], "--jobs goes with --trials K"),
        (["s.yaml", "--min-pass", "0"], "--min-pass goes with --trials K"),
        (["s.yaml", "--allow-writes"], "--allow-writes goes with --trials K"),
        (["s.yaml", "--format", "markdown"], "markdown goes with --trials K"),
        (["s.yaml", "--trials", "0"], "0 is not in the range"),
        (["recorded.yaml", "--trials", "2"], "takes its calls from a recording"),
    ],
)
def test_what_does_not_go_with_trials_is_refused(ledger, arguments, why):
    write(ledger.folder, "p")
    recording = "decide: {recording: {file: post.py, format: openai-chat}}\n"
    (ledger.folder / "recorded.yaml").write_text(f"scenario: r\ntoolset: post.tools.yaml\n{recording}")
    assert ledger("run", *arguments) == 2
    assert why in " ".join(ledger.err.split())


# ---- Ctrl-C


def interrupted(folder: Path, letters: str, *more: str, after: str, begun: int) -> tuple[int, str]:
    """Run ten trials, and press Ctrl-C once a line has been printed and a trial has begun."""
    write(folder, letters)
    arguments = [sys.executable, "-u", "-m", "ledgercli", "run", "s.yaml", "--trials", "10", "--out", "t", *more]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(arguments, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        shown = ""
        while after not in shown:
            line = process.stdout.readline()
            assert line, shown
            shown += line
        under_way = folder / "t" / f"trial-{begun}.ledger.jsonl"
        until = time.monotonic() + 20
        while not under_way.exists() and time.monotonic() < until:
            time.sleep(0.01)
        time.sleep(0.2)  # the tool has begun
        process.send_signal(signal.SIGINT)
        rest, _ = process.communicate(timeout=30)
    return process.returncode, shown + rest


def test_ctrl_c_reports_what_is_done(tmp_path):
    code, shown = interrupted(tmp_path, "pfpppfw", after="  6 FAIL", begun=7)
    assert code == 130
    assert "stopped  6 of 10 trials\npassed   4 of 6   pass^1 0.67" in shown
    assert "t/trial-{1..7}.ledger.jsonl" in shown
    assert max(file.name for file in (tmp_path / "t").iterdir()) == "trial-7.ledger.jsonl"
    assert closed_as(tmp_path / "t" / "trial-7.ledger.jsonl") == "interrupted"


@pytest.mark.slow
def test_ctrl_c_ends_all_that_are_under_way_at_once(tmp_path):
    code, shown = interrupted(tmp_path, "pppppwww", "--jobs", "2", after="  4 pass", begun=7)
    assert code == 130
    assert "stopped  5 of 10 trials\npassed   5 of 5" in shown
    ends = [closed_as(tmp_path / "t" / f"trial-{number}.ledger.jsonl") for number in (5, 6, 7)]
    assert sorted(ends) == ["completed", "interrupted", "interrupted"]  # two calls may overtake one another


def closed_as(file: Path) -> str:
    last = json.loads(file.read_text().splitlines()[-1])
    assert last["kind"] == "close"
    return last["status"]


# ---- several at once


def ready(folder: Path, letters: str, trials: int) -> tuple[Trials, list[Job]]:
    write(folder, letters)
    [(_, jobs)] = prepare([str(folder / "s.yaml")], Options(out=str(folder / "t"), trials=trials, sync="none"))
    return Trials("post", {"kind": "script"}, trials), list(jobs)


def test_what_one_run_fails_with_ends_the_others(tmp_path):
    trials, jobs = ready(tmp_path, "pppp", 4)
    jobs[1].ledger.parent.mkdir()
    jobs[1].ledger.touch()  # somebody else was faster
    with pytest.raises(OutputExistsError):
        list(trials.run(jobs, lambda _proposal, _verdict: None, 2))
    for one in jobs:
        assert one is jobs[1] or not one.ledger.exists() or closed_as(one.ledger) in ("completed", "interrupted")


@pytest.mark.slow
def test_whoever_wants_no_more_trials_ends_those_under_way(tmp_path):
    trials, jobs = ready(tmp_path, "ppww", 4)
    results = trials.run(jobs, lambda _proposal, _verdict: None, 2)
    with closing(results):
        assert next(results).came == "pass"
        while not jobs[2].ledger.exists():
            time.sleep(0.01)
    begun = [one for one in jobs if one.ledger.exists()]
    assert {closed_as(one.ledger) for one in begun} == {"completed", "interrupted"}
