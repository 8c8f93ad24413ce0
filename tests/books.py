"""Small rulebooks for tests, from YAML text."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from textwrap import dedent
from typing import Any

from ledgercli import cel, paths
from ledgercli.executor import Person
from ledgercli.guard import Guard
from ledgercli.history import History
from ledgercli.ledger.verify import verify
from ledgercli.loop import Approver, Ended
from ledgercli.records import Proposal, Verdict
from ledgercli.rulebook import Rulebook
from ledgercli.runs import Job, Options, prepare
from ledgercli.state import State

NOW = cel.Timestamp.parse("2026-08-01T12:00:00Z")

TOOLS = """
    toolset: shop
    tools:
      login:
        access: read
        args: {user: {type: string}}
        on_success:
          set: {facts.user: action.args.user, facts.vip: result.data.vip, flags.logged_in: true}
      look:
        access: read
        args: {id: {type: string}}
        on_success:
          set: {'facts.orders[action.args.id]': result.data}
      pay:
        tags: [charge]
        args: {amount: {type: number}, note: {type: string, default: ""}}
        on_success:
          set: {facts.paid: action.args.amount}
        on_failure:
          set: {flags.payment_failed: true}
      ask:
        args: {question: {type: string}}
        run: {user: {}}
      really:
        args: {tool: {type: string}, args: {type: object}}
        run: {confirm: {}}
"""


def book(folder: Path, *packs: str, tools: str = TOOLS, shadow: bool = False, **initial: Any) -> Rulebook:
    """Compile a toolset and packs that are given as text."""
    files = []
    for number, text in enumerate(packs):
        file = folder / f"pack{number}.yaml"
        file.write_text(dedent(text).lstrip())
        files.append(file)
    toolset = folder / "shop.tools.yaml"
    toolset.write_text(dedent(tools).lstrip())
    return Rulebook.of(files, toolset, initial, shadow=shadow)


def judge(
    rules: Rulebook, tool: str, args: Mapping[str, Any] | None = None, *, history: History | None = None, **state: Any
) -> Verdict:
    """Judge one call in a state that is given by its parts."""
    first = rules.initial_state(**state)
    return rules.enforcer.judge(Proposal(tool, args or {}), first, history or History(str(first.tree["task"])), NOW)


def guard(rules: Rulebook, ledger: Path | None = None, **more: Any) -> Guard:
    """A guard at a fixed time, without waiting for the disk."""
    return Guard(rulebook=rules, ledger=ledger, clock=lambda: NOW, sync="none", **more)


def rules_of(verdict: Verdict) -> dict[str, list[str]]:
    """The names of the rules that a verdict names, by what became of them."""
    parts = ("failed", "warned", "overridden", "shadowed")
    named = {part: [finding.rule for finding in getattr(verdict, part)] for part in parts}
    return {part: names for part, names in named.items() if names}


def lines_of(ledger: Path) -> list[dict[str, Any]]:
    """The lines of a ledger, as any JSON reader reads them."""
    return [json.loads(line) for line in ledger.read_bytes().splitlines()]


def replayed(lines: list[dict[str, Any]]) -> dict[str, Any]:
    """The state that the diffs of a ledger make of its first line."""
    tree: paths.Map = lines[0]["state"]
    for line in lines:
        if line["kind"] == "step":
            tree = paths.patch(tree, line.get("state_diff", {}), line.get("state_unset", []))
    return plain(tree)


def plain(value: Any) -> Any:
    """A value after a round trip through JSON."""
    return json.loads(json.dumps(value, default=paths.plain))


def books_of(state: State) -> dict[str, Any]:
    """A state as its ledger has it: all but the number of steps."""
    tree = plain(state.tree)
    del tree["step"]
    return tree


def kept(ledger: Path, *, codes: tuple[str, ...] = ()) -> list[dict[str, Any]]:
    """The lines of a ledger, once nothing but these problems was found in it."""
    report = verify(ledger)
    assert tuple(problem.code for problem in report.problems) == codes, report.problems
    return lines_of(ledger)


def write(folder: Path, **files: str) -> dict[str, Path]:
    """Write YAML files that are given as text: `name=` makes `name.yaml`."""
    made = {}
    for name, text in files.items():
        made[name] = folder / f"{name}.yaml"
        made[name].write_text(dedent(text).lstrip())
    return made


def scenario(folder: Path, text: str, tools: str, *packs: str) -> Path:
    """Write a scenario with its toolset `t.tools.yaml` and packs `p0.yaml`, `p1.yaml`, …"""
    write(folder, s=text, **{f"p{number}": pack for number, pack in enumerate(packs)})
    (folder / "t.tools.yaml").write_text(dedent(tools).lstrip())
    return folder / "s.yaml"


def carry_out(
    file: Path, out: Path, *, approver: Approver = lambda _p, _v: None, person: Person | None = None, **options: Any
) -> tuple[Ended, Job, list[dict[str, Any]]]:
    """Run a scenario; how it ended, its job, and the lines of its ledger, once that has been verified."""
    [(_, jobs)] = prepare([str(file)], Options(out=str(out), sync="none", **options))
    [job] = jobs
    ended = job.run(person, approver, lambda _line: None)
    return ended, job, kept(job.ledger)
