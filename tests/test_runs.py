"""Scenario files and options → runs: what options change, where ledgers go, and recordings."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ledgercli.errors import InvalidDocumentError, LedgerCliError, OutputExistsError, UnreadableInputError
from ledgercli.ledger.verify import verify
from ledgercli.loop import Ended
from ledgercli.runs import Job, Options, prepare, safe
from tests.books import carry_out, kept, lines_of, scenario, write

TOOLS = """
    toolset: t
    tools:
      say:
        access: read
        args: {text: {}}
        run: {canned: [{args: {}, result: said}]}
        on_success: {set: {facts.said: action.args.text, flags.done: 'true'}}
      ask: {args: {question: {type: string}}, run: {user: {}}, on_success: {set: {facts.reply: result.data}}}
      really: {args: {tool: {type: string}, args: {type: object}}, run: {confirm: {}}, on_success: {set: {facts.sure: result.data}}}
      pay: {args: {amount: {type: number}}, run: {canned: [{args: {}, result: paid}]}, on_success: {set: {facts.paid: action.args.amount}}}
"""
PACK = """
    pack: p
    version: 1
    constraints: {most: 10}
    rules:
      - {name: small, tools: [pay], check: action.args.amount <= double(state.constraints.most), on_fail: Too much.}
"""
SCRIPT = """
    scenario: s
    task: Rome
    toolset: t.tools.yaml
    packs: [p0.yaml]
    facts: {user: {name: mia}}
    constraints: {max_steps: 9}
    flags: {vip: false}
    decide:
      script:
        - {when: "!state.flags.done", propose: {tool: say, args: {text: "{state.task}"}}}
        - {when: "!has(state.facts.paid) && state.error == null", propose: {tool: pay, args: {amount: 5}}}
        - {propose: {tool: finish, args: {answer: "{now}"}}}
    expect: {status: completed, facts.paid: 5, answer: "2026-08-01T12:00:00Z"}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return scenario(tmp_path, SCRIPT, TOOLS, PACK)


def run(file: Path, name: str = "run", **options: Any) -> tuple[Any, Job, list[dict[str, Any]]]:
    options.setdefault("now", "2026-08-01T12:00:00Z")
    return carry_out(file, file.parent / f"{name}.ledger.jsonl", **options)


def problems(caught: pytest.ExceptionInfo[InvalidDocumentError]) -> list[str]:
    return [getattr(problem, "code", "") for problem in caught.value.problems]


# ---- options


def test_a_run_takes_the_scenario_as_it_is(file: Path) -> None:
    ended, job, lines = run(file)
    assert (ended.status, int(job.exit_code(ended)), job.unmet(ended)) == ("completed", 0, [])
    assert lines[0]["state"]["task"] == "Rome"
    assert lines[0]["state"]["constraints"] == {"most": 10, "max_steps": 9}
    assert lines[0]["state"]["flags"] == {"done": False, "vip": False}
    assert [(one["kind"], one["name"]) for one in lines[0]["files"]] == [
        ("scenario", "s"),
        ("pack", "p"),
        ("toolset", "t"),
    ]
    assert {line["now"] for line in lines if "now" in line} == {"2026-08-01T12:00:00Z"}


def test_the_time_of_the_scenario_holds_unless_the_option_says_otherwise(tmp_path: Path) -> None:
    file = scenario(tmp_path, SCRIPT + "    now: '2026-01-01T00:00:00Z'\n", TOOLS, PACK)
    assert run(file, now=None)[2][1]["now"] == "2026-01-01T00:00:00Z"
    assert run(file, "other", now="2027-02-03T04:05:06+01:00")[2][1]["now"].startswith("2027-02-03T03:05:06")


def test_set_task_and_max_steps_take_the_place_of_what_the_scenario_says(file: Path) -> None:
    sets = (
        "facts.user.name=lei",
        'facts.said=[1, {"a": 2}]',
        "constraints.most=3",
        "flags.vip=true",
        "facts.reply=plain text",
    )
    ended, job, lines = run(file, sets=sets, task="Paris", max_steps=7)
    state = lines[0]["state"]
    assert state["facts"] == {"user": {"name": "lei"}, "said": [1, {"a": 2}], "reply": "plain text"}
    assert (state["constraints"], state["flags"]["vip"], state["task"]) == ({"most": 3, "max_steps": 7}, True, "Paris")
    assert job.book.initial_state().tree["facts"] == {"user": {"name": "mia"}}
    assert job.unmet(ended) == [("facts.paid", 5, None)]
    assert int(job.exit_code(ended)) == 1
    origin = job.state.origin(("facts", "reply"))
    assert origin is not None
    assert origin.tool == "task"


@pytest.mark.parametrize(
    ("setting", "why"),
    [
        ("facts.usr=1", "no fact usr; there is user"),
        ("flag.vip=true", "is set as facts.x=VALUE"),
        ("facts.user", "is set as facts.x=VALUE"),
        ("facts.=1", "is set as facts.x=VALUE"),
        ("task=x", "is set as facts.x=VALUE"),
        ("flags.vip=5", "a flag is true or false"),
        ("flags.vip=yes", "a flag is true or false"),
        ("constraints.max_steps=many", "max_steps is a number from 0"),
        ("constraints.max_steps=true", "max_steps is a number from 0"),
        ("constraints.max_denials=-1", "max_denials is a number from 0"),
        ("facts.user[name]=1", "brackets hold"),
        ("facts.user.name.first=1", "facts.user.name is no map"),
    ],
)
def test_a_setting_that_does_not_fit_is_refused_before_anything_is_written(file: Path, setting: str, why: str) -> None:
    with pytest.raises(LedgerCliError) as caught:
        run(file, sets=(setting,))
    assert why in caught.value.message
    assert list(file.parent.glob("*.jsonl")) == []


def test_a_time_that_is_none_is_refused(file: Path) -> None:
    with pytest.raises(LedgerCliError, match="'tomorrow' is no time"):
        run(file, now="tomorrow")


def test_shadow_mode_lets_what_would_be_refused_run(file: Path) -> None:
    ended, _, lines = run(file, sets=("constraints.most=1",), shadow=True)
    assert (ended.status, lines[0]["mode"]) == ("completed", "shadow")
    pay = next(line for line in lines if line["kind"] == "step" and line["action"]["tool"] == "pay")
    assert [one["rule"] for one in pay["verdict"]["shadowed"]] == ["p/small"]


def test_reference_keeps_digests_of_files_only(file: Path) -> None:
    assert all("text" not in one for one in run(file, reference=True)[2][0]["files"])


ASKING = """
    scenario: s
    toolset: t.tools.yaml
    replies: [Rome, true]
    decide:
      script:
        - {when: "!has(state.facts.reply)", propose: {tool: ask, args: {question: Where?}}}
        - {when: "!has(state.facts.sure)", propose: {tool: really, args: {tool: pay, args: {amount: 5}}}}
        - {propose: {tool: finish, args: {answer: ["{state.facts.reply}", "{state.facts.sure}"]}}}
"""


def test_replies_come_from_the_scenario_or_the_option_and_each_run_has_them_all(tmp_path: Path) -> None:
    file = scenario(tmp_path, ASKING, TOOLS)
    assert run(file)[0].answer == ["Rome", True]
    assert run(file, "again")[0].answer == ["Rome", True]
    assert run(file, "other", replies=("Paris", "no"))[0].answer == ["Paris", False]
    ended, _, lines = run(file, "few", replies=("Paris",), sets=("constraints.max_steps=2",))
    assert (ended.status, lines[2]["outcome"]) == ("limit", "error")


# ---- packs of the command line


def test_a_pack_takes_the_place_of_the_one_of_its_name_or_is_added(file: Path) -> None:
    packs = write(
        file.parent,
        strict=PACK.replace("version: 1", "version: 2").replace("most: 10", "most: 2"),
        more="pack: q\nrules: [{name: never, tools: [say], check: 'false', on_fail: Silence.}]\n",
    )
    ended, job, lines = run(file, packs=(str(packs["strict"]),))
    assert (job.replaced, job.added) == (["p"], [])
    assert (ended.status, lines[0]["state"]["constraints"]["most"]) == ("completed", 2)
    assert "facts.paid" not in lines[4].get("state_diff", {})
    _, added, lines = run(file, "added", packs=(str(packs["more"]),))
    assert (added.replaced, added.added) == ([], ["q"])
    assert [one["name"] for one in lines[0]["files"]] == ["s", "p", "q", "t"]
    assert lines[1]["outcome"] == "denied"
    _, same, _ = run(file, "same", packs=(str(file.parent / "p0.yaml"),))
    assert (same.replaced, same.added) == ([], [])


# ---- where ledgers go


def places(*files: Path, out: str | None, cwd: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.chdir(cwd)
    prepared = prepare([str(file) for file in files], Options(out=out, sync="none"))
    jobs = [job for _, some in prepared for job in some]
    for job in jobs:
        job.run(None, lambda _p, _v: None, lambda _line: None)
        assert verify(job.ledger).problems == ()
    return [str(job.ledger) for job in jobs]


def test_one_run_writes_where_it_is_told(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "folder").mkdir()
    assert places(file, out="a.jsonl", cwd=tmp_path, monkeypatch=monkeypatch) == ["a.jsonl"]
    assert places(file, out="new/deep/a.jsonl", cwd=tmp_path, monkeypatch=monkeypatch) == ["new/deep/a.jsonl"]
    assert places(file, out="folder", cwd=tmp_path, monkeypatch=monkeypatch) == ["folder/s.ledger.jsonl"]
    assert places(file, out="other/", cwd=tmp_path, monkeypatch=monkeypatch) == ["other/s.ledger.jsonl"]


def test_without_out_each_run_has_a_name_of_its_own(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = places(file, file, out=None, cwd=tmp_path, monkeypatch=monkeypatch)
    assert len(set(found)) == 2
    for name in found:
        folder, _, rest = name.partition("/")
        assert (folder, rest[:2], rest[-len(".ledger.jsonl") :]) == ("ledgers", "s-", ".ledger.jsonl")


def test_several_runs_write_into_a_folder(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert places(file, file, out="all", cwd=tmp_path, monkeypatch=monkeypatch) == [
        "all/s.ledger.jsonl",
        "all/s-2.ledger.jsonl",
    ]


@pytest.mark.parametrize("several", [False, True])
def test_a_ledger_that_exists_is_refused_before_any_run(file: Path, tmp_path: Path, several: bool) -> None:
    out = tmp_path / "all"
    out.mkdir()
    taken = out / ("s-2.ledger.jsonl" if several else "s.ledger.jsonl")
    taken.write_text("mine")
    with pytest.raises(OutputExistsError):
        prepare([str(file)] * (2 if several else 1), Options(out=str(out)))
    assert [path.name for path in out.iterdir()] == [taken.name]
    link = tmp_path / "link.jsonl"
    link.symlink_to(tmp_path / "nowhere")
    with pytest.raises(OutputExistsError):
        prepare([str(file)], Options(out=str(link)))


def test_what_is_wrong_with_any_scenario_is_found_before_the_first_ledger(file: Path, tmp_path: Path) -> None:
    other = file.with_name("other.yaml")
    other.write_text(file.read_text().replace("scenario: s", "scenario: o").replace("tool: pay", "tool: pai"))
    out = tmp_path / "all"
    with pytest.raises(InvalidDocumentError) as caught:
        prepare([str(file), str(other)], Options(out=str(out)))
    assert "unknown-tool" in problems(caught)
    assert not out.exists()


@pytest.mark.parametrize(
    ("name", "expected"), [("a/b", "a-b"), ("..", "run"), (".hidden", "hidden"), ("x\0y", "x-y"), ("北京", "北京")]
)
def test_a_name_is_made_fit_for_a_folder(name: str, expected: str) -> None:
    assert safe(name) == expected


def test_a_scenario_comes_from_standard_input_with_paths_from_the_current_folder(file: Path, tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    command = [
        sys.executable,
        "-m",
        "ledgercli",
        "run",
        "-",
        "--out",
        "in.ledger.jsonl",
        "--now",
        "2026-08-01T12:00:00Z",
        "-q",
    ]
    text = file.read_text()
    file.unlink()
    ran = subprocess.run(
        command, input=text, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stdout) == (0, "in.ledger.jsonl\n")
    files = kept(tmp_path / "in.ledger.jsonl")[0]["files"]
    assert [one["path"] for one in files if one["kind"] != "scenario"] == ["p0.yaml", "t.tools.yaml"]
    assert files[0]["text"] == text


# ---- recordings

CHAT = [
    {"role": "system", "content": "be good"},
    {"role": "user", "content": "Pay 5 please"},
    {"role": "assistant", "tool_calls": [{"id": "a", "function": {"name": "say", "arguments": '{"text": "hi"}'}}]},
    {"role": "tool", "tool_call_id": "a", "content": '{"greeting": "hi"}'},
    {"role": "user", "content": "[1] no, 50!"},
    {"role": "assistant", "tool_calls": [
        {"id": "a", "function": {"name": "pay", "arguments": '{"amount": 50}'}},
        {"id": "b", "function": {"name": "ask", "arguments": '{"question": "?"}'}},
        {"id": "c", "function": {"name": "pay", "arguments": '{"amount": 5}'}},
    ]},
    {"role": "tool", "tool_call_id": "a", "content": "paid 50"},
    {"role": "tool", "tool_call_id": "b", "content": '{"sure": true}'},
]  # fmt: skip
RECORDED = """
    scenario: r
    toolset: t.tools.yaml
    packs: [p0.yaml]
    constraints: {max_steps: 1, max_denials: 1, max_repeats: 0, max_seconds: 0}
    decide: {recording: {file: chat.json, format: openai-chat}}
"""


def recording(folder: Path, *conversations: Any, pack: str = PACK) -> Path:
    runs = [{"id": f"id/{number}", "messages": messages} for number, messages in enumerate(conversations)]
    (folder / "chat.json").write_text(json.dumps(runs))
    return scenario(folder, RECORDED, TOOLS, pack)


def replay(file: Path, out: Path, **options: Any) -> list[tuple[str, list[dict[str, Any]]]]:
    [(_, jobs)] = prepare([str(file)], Options(out=str(out), sync="none", **options))
    found = []
    for job in jobs:
        ended = job.run(None, lambda _p, _v: None, lambda _line: None)
        assert ended.status == "completed"
        assert int(job.exit_code(ended)) == 0
        found.append((job.ledger.name, kept(job.ledger)))
    return found


def steps(lines: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(line["action"]["tool"], line["outcome"]) for line in lines if line["kind"] == "step"]


def test_in_shadow_mode_a_recording_comes_out_as_it_was(tmp_path: Path) -> None:
    [(name, lines)] = replay(recording(tmp_path, CHAT), tmp_path / "out", shadow=True)
    assert name == "id-0.ledger.jsonl"
    assert lines[0]["engine"] == {"kind": "recording", "file": "chat.json", "format": "openai-chat"}
    assert lines[0]["state"]["task"] == "Pay 5 please"
    assert steps(lines) == [("say", "ok"), ("user", "ok"), ("pay", "ok"), ("ask", "ok"), ("pay", "unknown")]
    results = [line["result"] for line in lines if line["kind"] == "step"]
    assert [None if one is None else one["data"] for one in results] == [
        {"greeting": "hi"}, "[1] no, 50!", "paid 50", '{"sure": true}', None,
    ]  # fmt: skip
    assert "counterfactual_from" not in lines[-1]
    user = next(line for line in lines if line.get("action", {}).get("tool") == "user")
    assert (user["verdict"], user["action"]["args"]) == (None, {})
    pays = [line for line in lines if line["kind"] == "step" and line["action"]["tool"] == "pay"]
    assert [one["rule"] for one in pays[0]["verdict"]["shadowed"]] == ["p/small"]


def test_in_enforce_mode_a_denied_call_s_result_is_not_used_and_the_rest_is_counterfactual(tmp_path: Path) -> None:
    [(_, lines)] = replay(recording(tmp_path, CHAT), tmp_path / "out")
    assert steps(lines) == [("say", "ok"), ("user", "ok"), ("pay", "denied"), ("ask", "ok"), ("pay", "unknown")]
    assert lines[-1]["counterfactual_from"] == 3
    assert "paid 50" not in json.dumps(lines[1:])


@pytest.mark.parametrize("effect", ["{error: Stop., halt: true}", "{error: Ask., effect: require_approval}"])
def test_halts_and_approvals_count_as_denials_in_a_recording(tmp_path: Path, effect: str) -> None:
    pack = PACK.replace("on_fail: Too much.", f"on_fail: {effect}")
    [(_, lines)] = replay(recording(tmp_path, CHAT, pack=pack), tmp_path / "out")
    assert steps(lines)[2:] == [("pay", "denied"), ("ask", "ok"), ("pay", "unknown")]
    assert (lines[-1]["status"], lines[-1]["counterfactual_from"]) == ("completed", 3)
    assert "status" not in json.dumps([line.get("state_diff") for line in lines])


def test_a_user_is_never_judged_even_where_everything_is_refused(tmp_path: Path) -> None:
    pack = "pack: p\ndefault: deny\nrules: [{name: g, tools: [say], grant: 'false'}]\n"
    [(_, lines)] = replay(recording(tmp_path, CHAT, pack=pack), tmp_path / "out")
    assert [outcome for tool, outcome in steps(lines) if tool == "user"] == ["ok"]
    assert {outcome for tool, outcome in steps(lines) if tool != "user"} == {"denied"}


def test_each_transcript_is_a_run_of_its_own(tmp_path: Path) -> None:
    found = replay(recording(tmp_path, CHAT, CHAT[:4], []), tmp_path / "out", task="Another task")
    assert [name for name, _ in found] == ["id-0.ledger.jsonl", "id-1.ledger.jsonl", "id-2.ledger.jsonl"]
    assert [len(steps(lines)) for _, lines in found] == [5, 1, 0]
    assert {lines[0]["state"]["task"] for _, lines in found} == {"Another task"}
    assert len({lines[0]["run"] for _, lines in found}) == 3


def test_recordings_of_several_scenarios_write_into_folders_of_their_own(tmp_path: Path) -> None:
    file = recording(tmp_path, CHAT)
    prepared = prepare([str(file), str(file)], Options(out=str(tmp_path / "all"), sync="none"))
    ledgers = [job.ledger.relative_to(tmp_path) for _, jobs in prepared for job in jobs]
    assert [str(path) for path in ledgers] == ["all/r/id-0.ledger.jsonl", "all/r-2/id-0.ledger.jsonl"]


def test_a_recording_needs_a_folder(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("a file")
    with pytest.raises(OutputExistsError, match="is no folder"):
        prepare([str(recording(tmp_path, CHAT))], Options(out=str(tmp_path / "out")))


def test_without_out_a_recording_has_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    [(_, jobs)] = prepare([str(recording(tmp_path, CHAT))], Options())
    ledgers = [job.ledger for job in jobs]
    assert [path.name for path in ledgers] == ["id-0.ledger.jsonl"]
    assert ledgers[0].parts[0] == "ledgers"
    assert ledgers[0].parts[1].startswith("r-")


def test_a_transcript_that_cannot_be_read_ends_the_runs_there(tmp_path: Path) -> None:
    file = recording(tmp_path, CHAT, [{"role": "wizard"}])
    [(_, jobs)] = prepare([str(file)], Options(out=str(tmp_path / "out"), sync="none"))
    next(jobs).run(None, lambda _p, _v: None, lambda _line: None)
    with pytest.raises(UnreadableInputError, match="unknown role 'wizard'"):
        next(jobs)
    assert lines_of(tmp_path / "out" / "id-0.ledger.jsonl")[-1]["status"] == "completed"


def test_an_engine_that_fails_is_not_made_good_by_expectations(tmp_path: Path) -> None:
    text = SCRIPT.replace("status: completed", "status: error")
    _, job, _ = run(scenario(tmp_path, text, TOOLS, PACK))
    assert int(job.exit_code(Ended("error"))) == 4
    assert int(job.exit_code(Ended("completed"))) == 1


def test_an_argument_that_cannot_be_told_fails_the_run(tmp_path: Path) -> None:
    text = SCRIPT.replace("{amount: 5}", "{amount: '{state.facts.reply}'}")
    ended, job, _ = run(scenario(tmp_path, text, TOOLS, PACK))
    assert (ended.status, int(job.exit_code(ended))) == ("failed", 1)
    assert ended.error == "the script cannot make the argument amount: state.facts.reply not known"
