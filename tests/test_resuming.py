"""Runs that go on: after a crash, a limit or a failure, from a step of another run, and from an earlier step."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ledgercli import Guard, LedgerCliError, story
from ledgercli.ledger import Ledger, head, read
from ledgercli.ledger.holding import Hold
from ledgercli.replay.verifying import replay
from ledgercli.shelf import Shelf
from tests.books import book, kept, lines_of, plain, scenario, write
from tests.commands import LEDGER, ROOT, Run, command_line, typed

TOOLS = """
    toolset: t
    tools:
      look:
        access: read
        args: {n: {type: integer}}
        run: {canned: [{args: {}, result: seen}]}
        on_success: {set: {facts.n: action.args.n}}
      pay:
        args: {amount: {type: integer}}
        run: {python: "acts.py:pay"}
        on_success: {set: {facts.receipt: result.data.id}}
        on_failure: {set: {flags.unpaid: true}}
      ask: {args: {}, run: {user: {}}, on_success: {set: {facts.said: result.data}}}
"""
ACTS = """
import os, time

def pay(amount):
    with open("paid.txt", "a") as file:
        file.write(f"{amount}\\n")
    if os.path.exists("wait"):
        time.sleep(30)
    return {"id": f"R-{amount}"}
"""
PACK = """
    pack: p
    constraints: {most: 10}
    rules:
      - {name: few, tools: [look], check: action.args.n <= state.constraints.most, on_fail: Too many.}
"""
SCRIPT = """
    scenario: s
    task: t
    toolset: t.tools.yaml
    packs: [p0.yaml]
    decide:
      script:
        - {when: "!has(state.facts.n)", propose: {tool: look, args: {n: 1}}}
        - {when: "!has(state.facts.receipt) && !state.flags.unpaid && state.step < 4", propose: {tool: pay, args: {amount: 5}}}
        - {when: state.facts.n < 3, propose: {tool: look, args: {n: "{state.facts.n + 1}"}}}
        - {propose: {tool: finish, args: {answer: "{state.facts.n}"}}}
"""


@pytest.fixture
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Run]:
    scenario(tmp_path, SCRIPT, TOOLS, PACK)
    (tmp_path / "acts.py").write_text(ACTS)
    with command_line(tmp_path, monkeypatch, capsys) as run:
        yield run


def cut(folder: Path, lines: int, torn: bytes = b"") -> bytes:
    """Leave a ledger as a crash behind that many lines does; what stands then."""
    path = folder / LEDGER
    whole = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(whole[:lines]) + torn)
    return path.read_bytes()


@pytest.fixture
def cut_off(ledger: Run) -> Run:
    """A run that was killed while step 2, `pay`, was under way."""
    assert ledger("run", "s.yaml", "--out", LEDGER) == 0
    assert ledger.told == ["ok 1", "ok 2", "ok 3", "ok 4", "ok 5", "completed"]
    cut(ledger.folder, 3)
    (ledger.folder / "paid.txt").unlink()
    return ledger


def resumed(run: Run, *arguments: str, code: int = 0) -> list[str]:
    """What going on adds; all of it verifies, and judged again comes to the same."""
    before = (run.folder / LEDGER).read_bytes().count(b"\n")
    assert run("run", "--resume", LEDGER, *arguments) == code, run.err
    assert replay(LEDGER, Shelf()).divergence is None
    told = [
        f"{line['outcome']} {line['step']}" if line["kind"] == "step" else line.get("status") or line["kind"]
        for line in run.lines[before:]
    ]
    return [line for line in told if line != "intent"]


def refused(run: Run, *arguments: str, said: str, code: int = 2) -> None:
    """A command that says why not, and writes nothing."""
    before = (run.folder / LEDGER).read_bytes()
    assert run(*arguments) == code, run.out
    assert said in run.err
    assert (run.folder / LEDGER).read_bytes() == before


# ---- a call that was cut off


def test_a_write_that_was_cut_off_is_never_repeated_unless_somebody_says_so(cut_off: Run) -> None:
    refused(cut_off, "run", "--resume", LEDGER, said=f"{LEDGER}@2: pay was begun, and nobody recorded what came of it")
    assert "--unknown with one of: retry (" in cut_off.err
    refused(cut_off, "run", "--resume", LEDGER, "--unknown", "ask", said="pay was begun")
    assert cut_off.paid == []


@pytest.mark.parametrize(
    ("arguments", "told", "paid", "facts"),
    [
        (["retry"], ["cancelled 2", "ok 3", "ok 4", "ok 5", "ok 6"], [5], {"n": 3, "receipt": "R-5"}),
        (["skip"], ["unknown 2", "ok 3", "ok 4", "ok 5", "ok 6"], [5], {"n": 3, "receipt": "R-5"}),
        (["fail"], ["error 2", "ok 3", "ok 4", "ok 5"], [], {"n": 3}),
        (["fail", "--result", '"no money"'], ["error 2", "ok 3", "ok 4", "ok 5"], [], {"n": 3}),
        (["done", "--result", '{"id": 7}'], ["ok 2", "ok 3", "ok 4", "ok 5"], [], {"n": 3, "receipt": 7}),
        (
            ["done", "--result", '{"success": false, "error": "no money"}'],
            ["error 2", "ok 3", "ok 4", "ok 5"],
            [],
            {"n": 3},
        ),
    ],
)  # fmt: skip
def test_somebody_says_what_came_of_it(
    cut_off: Run, arguments: list[str], told: list[str], paid: list[int], facts: dict[str, Any]
) -> None:
    assert resumed(cut_off, "--unknown", *arguments) == ["resume", *told, "completed"]
    tree = story.ended(LEDGER).tree
    assert (cut_off.paid, plain(tree["facts"])) == (paid, facts)
    assert tree["flags"]["unpaid"] == (told[0] == "error 2")
    assert cut_off.out.startswith('s  task "t"  resumed after step 2\n\n  2 allow pay(amount=5)\n')


def test_what_was_skipped_may_be_settled_by_nobody_later(cut_off: Run) -> None:
    """It counts as a call that ran, for rules about earlier calls."""
    assert "unknown 2" in resumed(cut_off, "--unknown", "skip", "--max-steps", "2", code=3)
    [unknown] = [line for line in cut_off.lines if line.get("outcome") == "unknown"]
    assert (unknown["result"], unknown.get("state_diff")) == (None, None)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("--unknown done", "--unknown done needs what the tool returned"),
        ("--unknown done --result {id", "--result {id:"),
        ("--result 5", "--result goes with --unknown done"),
        ("--unknown retry --result 5", "--result goes with --unknown done"),
        ("--unknown maybe", "'maybe' is not one of"),
        ("--out x.ledger.jsonl", "--out does not go with --resume"),
        ("--task x", "--task does not go with --resume"),
        ("--mode shadow", "a run goes on in the mode that it began in"),
        (f"--from {LEDGER}@1", "only one of them"),
        ("s.yaml s.yaml", "--resume takes one scenario at most"),
        ("--set facts.x=1", "no fact x"),
        ("--set facts.n=1 --pack no.yaml", "no.yaml"),
    ],
)
def test_what_does_not_go_together_is_said(cut_off: Run, arguments: str, said: str) -> None:
    refused(cut_off, "run", "--resume", LEDGER, *shlex.split(arguments), said=said)


@pytest.mark.parametrize(("says", "told"), [
    ("retry\n", ["cancelled 2", "ok 3"]), ("skip\n", ["unknown 2", "ok 3"]), ('done\n{"id": 1}\n', ["ok 2", "ok 3"]),
])  # fmt: skip
def test_at_the_terminal_it_is_asked(cut_off: Run, says: str, told: list[str]) -> None:
    code, seen = typed(
        cut_off.folder, "run", "--resume", LEDGER, says=says, wants=lambda seen: b"leave it unknown" in seen
    )
    assert code == 0, seen
    assert b"pay(amount=5) was begun at step 2, and nobody recorded what came of it." in seen
    assert cut_off.told[: len(told) + 2] == ["ok 1", "resume", *told]


# ---- what ends for good, and what does not


def test_a_completed_run_is_refused_and_the_way_back_is_named(ledger: Run) -> None:
    assert ledger("run", "s.yaml", "--out", LEDGER) == 0
    refused(ledger, "run", "--resume", LEDGER, said=f"{LEDGER} has ended: completed; there is nothing to go on with")
    assert f"fix: ledger rollback {LEDGER}@4 --reason TEXT" in ledger.err


def test_a_run_that_ended_and_was_not_sealed_is_sealed(ledger: Run) -> None:
    assert ledger("run", "s.yaml", "--out", LEDGER) == 0
    whole = ledger.lines
    cut(ledger.folder, len(whole) - 1)
    assert resumed(ledger) == ["resume", "completed"]
    assert {**ledger.lines[-1], "at": "", "prev": "", "seq": 0, "lines": 0} == {
        **whole[-1], "at": "", "prev": "", "seq": 0, "lines": 0,
    }  # fmt: skip


def test_a_limit_goes_on_counting(ledger: Run) -> None:
    assert ledger("run", "s.yaml", "--out", LEDGER, "--max-steps", "3") == 3
    assert resumed(ledger, code=3) == ["resume", "limit"]
    assert ledger.lines[-1]["limit"] == "max_steps"
    assert resumed(ledger, "--max-steps", "4", code=3) == ["resume", "ok 4", "limit"]
    assert ledger.lines[-3]["state_diff"] == {"constraints.max_steps": 4}
    assert resumed(ledger, "--set", "constraints.max_steps=9") == ["resume", "ok 5", "completed"]


def test_denials_in_a_row_go_on_counting(ledger: Run) -> None:
    script = SCRIPT.replace("n: 1}", "n: 99}")
    scenario(ledger.folder, script, TOOLS, PACK)
    assert ledger("run", "s.yaml", "--out", LEDGER, "--set", "constraints.max_denials=2") == 3
    assert resumed(ledger, code=3) == ["resume", "limit"]
    assert resumed(ledger, "--set", "constraints.max_denials=3", code=3) == ["resume", "denied 3", "limit"]
    more = resumed(ledger, "--set", "constraints.most=99", "--set", "constraints.max_denials=4")
    assert more[:2] == ["resume", "ok 4"]


def test_a_run_without_a_next_step_goes_on_with_another_script(ledger: Run) -> None:
    short = SCRIPT.replace('        - {propose: {tool: finish, args: {answer: "{state.facts.n}"}}}\n', "")
    scenario(ledger.folder, short, TOOLS, PACK)
    assert ledger("run", "s.yaml", "--out", LEDGER) == 1
    assert resumed(ledger, code=1) == ["resume", "failed"]
    scenario(ledger.folder, SCRIPT, TOOLS, PACK)
    assert resumed(ledger, "--scenario", "s.yaml") == ["resume", "ok 5", "completed"]
    [told] = [line for line in ledger.lines if line["kind"] == "resume" and line["files"]]
    assert [file["kind"] for file in told["files"]] == ["scenario"]
    assert told["files"][0]["text"] == (ledger.folder / "s.yaml").read_text()


# ---- what may change


def test_other_files_judge_from_there_on_and_stand_in_the_ledger(ledger: Run) -> None:
    assert ledger("run", "s.yaml", "--out", LEDGER, "--max-steps", "2") == 3
    write(ledger.folder, new=PACK.replace("most: 10", "most: 2"))
    assert resumed(ledger, "--pack", "new.yaml", "--max-steps", "5", code=3)[:3] == ["resume", "ok 3", "denied 4"]
    [told] = [line for line in ledger.lines if line["kind"] == "resume"]
    assert told["state_diff"] == {"constraints.most": 2, "constraints.max_steps": 5}
    assert "  --pack: p takes the place of the ledger's\n" in ledger.out
    (ledger.folder / "new.yaml").unlink()
    assert resumed(ledger, "--max-steps", "6", code=3) == ["resume", "denied 6", "limit"]


def test_a_constraint_that_somebody_has_set_is_not_changed_by_a_pack(ledger: Run) -> None:
    assert ledger("run", "s.yaml", "--out", LEDGER, "--max-steps", "2", "--set", "constraints.most=7") == 3
    write(ledger.folder, new=PACK.replace("most: 10", "most: 2"))
    assert resumed(ledger, "--pack", "new.yaml", "--max-steps", "9") == ["resume", "ok 3", "ok 4", "ok 5", "completed"]


def test_what_other_files_declare_is_there(ledger: Run) -> None:
    assert ledger("run", "s.yaml", "--out", LEDGER, "--max-steps", "2") == 3
    more = TOOLS.replace(
        "flags.unpaid: true", "flags.unpaid: true, flags.late: true, 'facts.bills[string(action.args.amount)]': '1'"
    )
    scenario(ledger.folder, SCRIPT + "    goals: [{name: g, done_when: state.facts.n == 3}]\n", more, PACK)
    assert resumed(ledger, "--scenario", "s.yaml", "--max-steps", "9") == ["resume", "ok 3", "ok 4", "completed"]
    [told] = [line for line in ledger.lines if line["kind"] == "resume"]
    assert told["state_diff"] == {
        "flags.late": False, "goals.g": False, "facts.bills": {}, "goal": "g", "constraints.max_steps": 9,
    }  # fmt: skip


def test_a_pack_is_not_dropped(ledger: Run) -> None:
    assert ledger("run", "s.yaml", "--out", LEDGER, "--max-steps", "2") == 3
    scenario(ledger.folder, SCRIPT.replace("packs: [p0.yaml]", "packs: []\n    constraints: {most: 1}"), TOOLS, PACK)
    refused(
        ledger,
        "run",
        "--resume",
        LEDGER,
        "--scenario",
        "s.yaml",
        said="the pack p judged this run, and would be missing",
    )


@pytest.mark.parametrize(("sets", "diff"), [
    (["facts.said=5", "facts.n=2"], {"facts.said": 5, "facts.n": 2}),
    (["facts.said.b=1", "facts.said.c=2"], {"facts.said": {"b": 1, "c": 2}}),
    (['facts.said={"a": 1}', "facts.said.a=2"], {"facts.said": {"a": 2}}),
])  # fmt: skip
def test_values_that_are_set_stand_in_the_line_as_a_diff(ledger: Run, sets: list[str], diff: dict[str, Any]) -> None:
    assert ledger("run", "s.yaml", "--out", LEDGER, "--max-steps", "2") == 3
    told = resumed(ledger, *(word for one in sets for word in ("--set", one)), code=3)
    assert told == ["resume", "limit"]
    assert ledger.lines[-2]["state_diff"] == diff


def test_a_ledger_with_digests_only_goes_on_with_the_files_that_are_there(ledger: Run) -> None:
    assert ledger("run", "s.yaml", "--out", LEDGER, "--max-steps", "2", "--reference") == 3
    assert resumed(ledger, "--max-steps", "3", code=3) == ["resume", "ok 3", "limit"]
    (ledger.folder / "p0.yaml").write_text("pack: p\nrules: []\n")
    refused(ledger, "run", "--resume", LEDGER, said="p0.yaml is not the file that the ledger was made with")


def test_code_that_is_not_here_is_named(ledger: Run) -> None:
    assert ledger("run", "s.yaml", "--out", LEDGER, "--max-steps", "2") == 3
    (ledger.folder / "acts.py").unlink()
    refused(ledger, "run", "--resume", LEDGER, said="there is no file acts.py here, which pay runs")


def test_masks_are_named_and_may_be_given_again(ledger: Run) -> None:
    tools = TOOLS.replace("toolset: t\n", "toolset: t\n    redact: [look.args.n]\n")
    scenario(ledger.folder, SCRIPT, tools, PACK)
    assert ledger("run", "s.yaml", "--out", LEDGER, "--max-steps", "2") == 3
    refused(
        ledger, "run", "--resume", LEDGER, said=f"{LEDGER} holds a mask in place of state.facts.n, and nothing can be"
    )
    assert "fix: --set facts.n=VALUE" in ledger.err
    assert ledger("run", "--resume", LEDGER, "--set", "facts.n=3", "--max-steps", "9") == 0
    assert ledger.told[-3:] == ["resume", "ok 3", "completed"]


def test_replies_that_were_given_are_not_given_again(ledger: Run) -> None:
    asks = SCRIPT.replace(
        "        - {propose: {tool: finish",
        "        - {when: state.step < 6, propose: {tool: ask}}\n        - {propose: {tool: finish",
    )
    scenario(ledger.folder, asks + "    replies: [one, two]\n", TOOLS, PACK)
    assert ledger("run", "s.yaml", "--out", LEDGER, "--max-steps", "5") == 3
    assert story.ended(LEDGER).tree["facts"]["said"] == "one"
    assert resumed(ledger, "--max-steps", "9") == ["resume", "ok 6", "ok 7", "completed"]
    assert story.ended(LEDGER).tree["facts"]["said"] == "two"


# ---- ledgers that are damaged, torn or held


def test_a_damaged_chain_is_refused(cut_off: Run) -> None:
    path = cut_off.folder / LEDGER
    path.write_bytes(path.read_bytes().replace(b'"seen"', b'"sien"'))
    for command in ("run --resume {}", "approve {} --yes --by mia", "rollback {}@1 --reason r --by mia"):
        refused(cut_off, *shlex.split(command.format(LEDGER)), said=f"{LEDGER}:3:1: line 3 does not follow line 2")


def test_a_torn_end_is_moved_away(cut_off: Run) -> None:
    whole = cut(cut_off.folder, 3, torn=b'{"kind":"st')
    assert resumed(cut_off, "--unknown", "retry")[:3] == ["recovery", "resume", "cancelled 2"]
    assert (cut_off.folder / LEDGER).read_bytes().startswith(whole[:-11])


def test_a_file_that_is_no_ledger_is_refused(ledger: Run) -> None:
    (ledger.folder / LEDGER).write_bytes(b"")
    refused(ledger, "run", "--resume", LEDGER, said="there is not one whole line")
    assert ledger("run", "--resume", "no.jsonl") == 2
    assert "there is no file no.jsonl" in ledger.err


def test_a_run_that_is_at_work_is_not_taken_up_by_another(cut_off: Run) -> None:
    (cut_off.folder / "wait").touch()
    command = [sys.executable, "-m", "ledgercli", "run", "--resume", LEDGER, "--unknown", "retry"]
    first = subprocess.Popen(command, cwd=cut_off.folder, env={"PYTHONPATH": str(ROOT)}, stdout=subprocess.DEVNULL)
    try:
        until = time.monotonic() + 30
        while not cut_off.paid:
            assert time.monotonic() < until
            time.sleep(0.02)
        for line in (
            "run --resume {} --unknown retry",
            "approve {} --yes --by mia",
            "rollback {}@1 --reason r --by mia",
        ):
            refused(cut_off, *shlex.split(line.format(LEDGER)), said=f"{LEDGER} is being written by another run")
    finally:
        first.kill()
        first.wait()
    (cut_off.folder / "wait").unlink()
    told = resumed(cut_off, "--unknown", "done", "--result", '{"id": 1}')
    assert told == ["resume", "ok 3", "ok 4", "ok 5", "ok 6", "completed"]
    assert cut_off.paid == [5]


def test_what_another_wrote_meanwhile_is_noticed(cut_off: Run) -> None:
    from ledgercli.reopening import reopen

    with reopen(LEDGER) as again, Ledger.open(LEDGER) as other:
        other.append(again.books.left(2, "unknown", "2026-08-01T12:00:00.000Z").line)
        with pytest.raises(LedgerCliError, match="is being written by another run"):
            again.ledger()


# ---- programs


def test_a_run_of_a_program_goes_on_in_the_program(tmp_path: Path, ledger: Run) -> None:
    with Guard(toolset="t.tools.yaml", packs=["p0.yaml"], ledger=LEDGER, state={"task": "t"}) as guard:
        guard.check("pay", {"amount": 5})
        guard._let_go()
        guard._books.closed = {}  # as one that was killed
    refused(ledger, "run", "--resume", LEDGER, said=f"the calls of {LEDGER} come from a program")
    assert f"fix: Guard.resume('{LEDGER}')" in ledger.err
    told: list[str] = []
    guard = Guard.resume(LEDGER, sets={"facts.n": 1}, on_line=lambda line: told.append(line["kind"]))
    assert (told, list(guard.pending), guard.steps) == (["resume"], [1], 1)
    pending = guard.pending[1]
    assert (pending.proposal.tool, pending.proposal.args) == ("pay", {"amount": 5})
    with pytest.raises(LedgerCliError, match="is being written by another run"):
        Guard.resume(LEDGER)
    guard.record(pending.verdict, {"id": "R"})
    assert (guard.state.facts["receipt"], guard.state.facts["n"], guard.pending) == ("R", 1, {})
    guard.record(guard.check("look", {"n": 2}), "seen")
    assert guard.history.count_calls("look", {"n": 2}) == 1
    guard.close("completed", "done")
    assert [line.get("step") for line in kept(tmp_path / LEDGER) if line["kind"] == "step"] == [1, 2]
    with pytest.raises(LedgerCliError, match="has ended: completed"):
        Guard.resume(LEDGER)
    with Hold(LEDGER):  # it was let go of where that failed
        pass


def test_a_program_approves_and_changes_packs(tmp_path: Path) -> None:
    asks = (
        "pack: p\nrules: [{name: r, tools: [pay], check: 'false', on_fail: {error: Ask., effect: require_approval}}]\n"
    )
    rules = book(tmp_path, asks)
    path = tmp_path / LEDGER
    with Guard(rulebook=rules, ledger=path) as guard:
        assert not guard.check("pay", {"amount": 5}).runs
    kept(path)
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))
    guard = Guard.resume(path)
    guard.approve(1, yes=True, by="mia")
    assert guard.check("pay", {"amount": 5}).runs
    guard.close("interrupted")
    (tmp_path / "new.yaml").write_text(asks.replace("'false'", "'true'"))
    with Guard.resume(path, packs=[tmp_path / "new.yaml"]) as guard:
        assert guard.check("pay", {"amount": 5}).effect == "allow"
    [first, second] = [line for line in kept(path) if line["kind"] == "resume"]
    assert (first["files"], [file["name"] for file in second["files"]]) == ([], ["p"])


def test_every_rule_of_changed_packs_may_ask_about_the_whole_past(tmp_path: Path) -> None:
    """The history of a run whose own rules never asked is read again with more kept."""
    path = tmp_path / LEDGER
    with Guard(rulebook=book(tmp_path), ledger=path, engine={"kind": "guard"}) as guard:
        guard.said("about W1")
        guard.record(guard.check("pay", {"amount": 5}), "paid")
        guard.close("interrupted")
    asks = "pack: q\nrules: [{name: r, tools: [look], check: \"from_user(action.args.id) && sum_args(state.ledger, 'pay', 'amount') == 5.0\", on_fail: No.}]\n"
    (tmp_path / "q.yaml").write_text(asks)
    for _ in range(2):  # also where an earlier resumption brought the pack
        guard = Guard.resume(path, packs=[tmp_path / "q.yaml"])
        assert guard.check("look", {"id": "W1"}).effect == "allow"
        guard.close("interrupted")


# ---- recordings

CALLS = [
    {"role": "user", "content": "Pay 5."},
    *(
        message
        for number, tool in enumerate(["look", "pay", "look"])
        for message in (
            {"role": "assistant", "tool_calls": [{"id": f"c{number}", "function": {"name": tool, "arguments": json.dumps({"amount": 5} if tool == "pay" else {"n": number})}}]},
            {"role": "tool", "tool_call_id": f"c{number}", "content": '{"id": "R"}'},
        )
    ),
    {"role": "user", "content": "Thanks."},
]  # fmt: skip


def test_a_recording_goes_on_where_it_stopped_and_knows_what_came_of_every_call(ledger: Run) -> None:
    (ledger.folder / "chat.json").write_text(json.dumps({"id": "w", "messages": CALLS}))
    text = SCRIPT.partition("    decide:")[0] + "    decide: {recording: {file: chat.json, format: openai-chat}}\n"
    scenario(ledger.folder, text, TOOLS, PACK)
    assert ledger("run", "s.yaml", "--out", "runs/") == 0
    [made] = (ledger.folder / "runs").iterdir()
    whole = [line for line in kept(made) if line["kind"] == "step"]
    assert len(whole) == 4
    count = len(lines_of(made))
    for keep in range(1, count):
        (ledger.folder / LEDGER).write_bytes(b"".join(made.read_bytes().splitlines(keepends=True)[:keep]))
        assert ledger("run", "--resume", LEDGER) == 0, ledger.err
        lines = kept(ledger.folder / LEDGER)
        told = [line for line in lines if line["kind"] == "step"]
        assert [(one["action"], one["outcome"], one["result"], one.get("state_diff")) for one in told] == [
            (one["action"], one["outcome"], one["result"], one.get("state_diff")) for one in whole
        ]
        assert lines[-1]["status"] == "completed"
    refused(ledger, "run", "--resume", LEDGER, said="has ended: completed")


# ---- from a step of another run


def test_a_new_run_begins_where_another_was(ledger: Run) -> None:
    assert ledger("run", "s.yaml", "--out", LEDGER) == 0
    assert ledger("run", "--from", f"{LEDGER}@2", "--out", "n.ledger.jsonl") == 0, ledger.err
    lines = kept(ledger.folder / "n.ledger.jsonl")
    old = kept(ledger.folder / LEDGER)
    second = next(entry for entry in read(LEDGER) if entry.kind == "step" and entry.record["step"] == 2)
    assert lines[0]["from"] == {"ledger": LEDGER, "run": old[0]["run"], "step": 2, "digest": second.digest}
    assert lines[0]["state"]["facts"] == {"n": 1, "receipt": "R-5"}
    assert (lines[1]["kind"], lines[1]["step"]) == ("checkpoint", 0)
    assert [line["action"] for line in lines if line["kind"] == "step"] == [
        line["action"] for line in old if line["kind"] == "step"
    ][2:]
    assert plain(story.ended("n.ledger.jsonl").tree["facts"]) == plain(story.ended(LEDGER).tree["facts"])
    assert replay("n.ledger.jsonl", Shelf()).divergence is None
    assert f"  from {LEDGER}@2\n" in ledger.out


def test_a_new_run_may_begin_with_other_rules_values_and_scripts(ledger: Run) -> None:
    assert ledger("run", "s.yaml", "--out", LEDGER) == 0
    write(ledger.folder, new=PACK.replace("most: 10", "most: 1"))
    arguments = ("--from", f"{LEDGER}@2", "--pack", "new.yaml", "--max-steps", "3", "--out", "n.ledger.jsonl")
    assert ledger("run", *arguments) == 3
    lines = kept(ledger.folder / "n.ledger.jsonl")
    assert [line["outcome"] for line in lines if line["kind"] == "step"] == ["denied"] * 3
    assert lines[0]["state"]["constraints"] == {"most": 1, "max_steps": 3}
    scenario(ledger.folder, SCRIPT.replace("state.facts.n < 3", "state.facts.n < 2"), TOOLS, PACK)
    assert ledger("run", "s.yaml", "--from", f"{LEDGER}@0", "--out", "o.ledger.jsonl", "--set", "facts.n=1") == 0
    told = [line["action"]["tool"] for line in kept(ledger.folder / "o.ledger.jsonl") if line["kind"] == "step"]
    assert told == ["pay", "look", "finish"]
    opening = next(iter(read(LEDGER)))
    assert lines_of(ledger.folder / "o.ledger.jsonl")[0]["from"]["digest"] == opening.digest


def test_runs_begin_from_runs_that_began_so(ledger: Run) -> None:
    assert ledger("run", "s.yaml", "--out", LEDGER) == 0
    assert ledger("run", "--from", f"{LEDGER}@2", "--out", "n.ledger.jsonl", "--max-steps", "1") == 3
    assert ledger("run", "--resume", "n.ledger.jsonl", "--max-steps", "2") == 3
    for step, tools in ((0, ["look", "look", "finish"]), (1, ["look", "finish"])):
        out = f"o{step}.ledger.jsonl"
        assert ledger("run", "--from", f"n.ledger.jsonl@{step}", "--out", out, "--max-steps", "9") == 0, ledger.err
        assert [line["action"]["tool"] for line in kept(ledger.folder / out) if line["kind"] == "step"] == tools
        assert replay(out, Shelf()).divergence is None
    assert ledger("rollback", "n.ledger.jsonl@0", "--reason", "r", "--by", "mia") == 0
    assert story.ended("n.ledger.jsonl").tree["facts"] == {"n": 1, "receipt": "R-5"}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (f"--from {LEDGER}", "which step?"),
        (f"--from {LEDGER}@9", f"{LEDGER} has 5 steps, 1 to 5"),
        (f"--from {LEDGER}@5", f"{LEDGER}@5: the run had ended there: completed"),
        (f"--from {LEDGER}@2 --task x", "--task does not go with --from"),
        (f"s.yaml s.yaml --from {LEDGER}@2", "--from takes one scenario at most"),
        ("--from no.jsonl@2", "no.jsonl"),
    ],
)
def test_what_no_run_can_begin_from_is_said(ledger: Run, arguments: str, said: str) -> None:
    assert ledger("run", "s.yaml", "--out", LEDGER) == 0
    refused(ledger, "run", *shlex.split(arguments), said=said)
    assert [path.name for path in ledger.folder.glob("*.jsonl")] == [LEDGER]


# ---- going back


def test_a_run_goes_on_from_an_earlier_step(ledger: Run) -> None:
    assert ledger("run", "s.yaml", "--out", LEDGER) == 0
    assert ledger("rollback", f"{LEDGER}@1", "--reason", "wrong amount", "--by", "mia") == 0
    assert ledger.err == f"next: ledger run --resume {LEDGER}\n"
    line = ledger.lines[-2]
    assert (line["kind"], line["to"], line["by"], line["reason"]) == ("rollback", 1, "mia", "wrong amount")
    assert (line["state_diff"], line["state_unset"]) == (
        {"facts.n": 1, "status": "running", "final_answer": None}, ["facts.receipt"],
    )  # fmt: skip
    assert "stays @2 pay(amount=5)" in ledger.out
    assert resumed(ledger)[:3] == ["resume", "ok 6", "ok 7"]
    assert ledger.paid == [5]  # the script pays before step 4 only; what was paid was paid


def test_a_call_without_outcome_is_left_unknown_first(cut_off: Run) -> None:
    assert cut_off("rollback", f"{LEDGER}@0", "--reason", "r", "--by", "mia", "--format", "json") == 0
    said = json.loads(cut_off.out)
    assert (said["schema"], said["unknown"], [one["step"] for one in said["standing"]]) == ("rollback/1", [2], [2])
    assert cut_off.told == ["ok 1", "unknown 2", "rollback", "interrupted"]
    assert said["head"] == head(LEDGER).digest
    assert resumed(cut_off)[:3] == ["resume", "ok 3", "ok 4"]


def test_going_back_to_a_call_without_outcome_leaves_the_state(cut_off: Run) -> None:
    assert cut_off("rollback", f"{LEDGER}@2", "--reason", "r", "--by", "mia") == 0
    assert cut_off.told == ["ok 1", "unknown 2", "rollback", "interrupted"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (f"{LEDGER} --reason r", "back to which step?"),
        (f"{LEDGER}@5 --reason r", f"the state of {LEDGER} is that of step 5 already"),
        (f"{LEDGER}@9 --reason r", f"{LEDGER} has 5 steps, 1 to 5"),
        (f"{LEDGER}@1", "missing option '--reason'"),
        (f"{LEDGER}@1 --reason r --by ''", "nobody is named"),
        ("no.jsonl@1 --reason r", "there is no file no.jsonl"),
    ],
)
def test_what_cannot_be_gone_back_to_is_said(ledger: Run, arguments: str, said: str) -> None:
    assert ledger("run", "s.yaml", "--out", LEDGER) == 0
    refused(ledger, "rollback", *shlex.split(arguments), said=said)


def test_going_back_to_where_a_run_had_ended_says_so(ledger: Run) -> None:
    assert ledger("run", "s.yaml", "--out", LEDGER) == 0
    assert ledger("rollback", f"{LEDGER}@1", "--reason", "r", "--by", "mia") == 0
    assert ledger("rollback", f"{LEDGER}@5", "--reason", "r", "--by", "mia") == 0
    assert "the run had ended there: completed" in ledger.out
    assert ledger.err == ""
    assert resumed(ledger) == ["resume", "completed"]


# ---- checkpoints


def test_checkpoints_are_written_and_a_run_goes_on_from_them(ledger: Run) -> None:
    assert ledger("run", "s.yaml", "--out", LEDGER, "--checkpoint", "2", "--max-steps", "4") == 3
    assert [line["kind"] for line in ledger.lines if line["kind"] in ("step", "checkpoint")] == [
        "step", "step", "checkpoint", "step", "step", "checkpoint",
    ]  # fmt: skip
    assert resumed(ledger, "--max-steps", "9", "--checkpoint", "1") == ["resume", "ok 5", "checkpoint", "completed"]
    assert "checkpoint" not in ledger.out
    assert ledger("run", "s.yaml", "--out", "x.ledger.jsonl", "--checkpoint", "0") == 2


def test_no_checkpoint_tells_what_is_masked(ledger: Run) -> None:
    tools = TOOLS.replace("toolset: t\n", "toolset: t\n    redact: [look.args.n]\n")
    scenario(ledger.folder, SCRIPT, tools, PACK)
    assert ledger("run", "s.yaml", "--out", LEDGER, "--checkpoint", "1") == 0
    assert "checkpoint" not in {line["kind"] for line in ledger.lines}


# ---- what is printed


def test_only_what_is_new_is_printed(ledger: Run) -> None:
    assert ledger("run", "s.yaml", "--out", LEDGER, "--max-steps", "3") == 3
    before = (ledger.folder / LEDGER).read_bytes()
    assert ledger("run", "--resume", LEDGER, "--max-steps", "4", "--format", "jsonl") == 3
    assert ledger.out.encode() == (ledger.folder / LEDGER).read_bytes()[len(before) :]
    assert ledger("run", "--resume", LEDGER, "--max-steps", "9", "--format", "json") == 0
    [said] = json.loads(ledger.out)["runs"]
    assert (said["status"], said["steps"], said["ledger"]) == ("completed", 1, LEDGER)
    assert ledger("run", "s.yaml", "--out", LEDGER) == 2
    assert ledger.err.endswith(f"  fix: another --out, or --resume {LEDGER} to go on with it\n")
