"""A desk with rules of every kind, and the ledger of a run there, for tests of `ledger capture`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from ledgercli import cel
from ledgercli.guard import Guard
from ledgercli.rulebook import Rulebook

TOOLS = """\
toolset: desk
redact: [card.args.number, vault.args.code]
tools:
  login: {access: read, args: {user: {type: string}}, on_success: {set: {facts.user: action.args.user}}}
  look:
    access: read
    args: {id: {type: string}}
    on_success: {set: {"facts.orders[action.args.id]": result.data}}
  pay: {access: write, args: {amount: {type: number}, to: {type: string, default: ""}}}
  card: {access: write, args: {number: {type: string}}}
  vault: {access: write, args: {code: {type: string}}}
  ask: {access: read, args: {text: {type: string}}}
"""
PACK = """\
pack: desk
constraints: {limit: 100}
rules:
  - name: known
    tools: [pay]
    check: state.facts.user != 'guest'
    on_fail: {error: "Who pays {action.args.amount}?"}
  - name: limited
    tools: [pay]
    check: action.args.amount <= double(state.constraints.limit)
    on_fail: {error: "{action.args.amount} is much.", effect: require_approval}
  - name: own_order
    tools: [pay]
    condition: action.args.to in state.facts.orders
    check: state.facts.orders[action.args.to].owner == state.facts.user
    on_fail: {error: "{action.args.to} is not of {state.facts.user}."}
  - name: not_after_failures
    tools: [pay]
    check: count_failures(state.ledger, 'look') == 0
    on_fail: {effect: warn, error: "Something failed."}
  - name: looked_at_by_m
    tools: [look]
    check: state.facts.user.startsWith('m')
    on_fail: {error: "Not you, {state.facts.user}."}
  - name: asked_by_tool
    tools: [ask]
    check: source(state.facts.user).tool == 'login'
    on_fail: {error: Nobody logged in.}
  - name: real_card
    tools: [card]
    check: action.args.number.startsWith('4')
    on_fail: {error: No card.}
"""
FREE = """\
  - name: no_paid_orders
    tools: [pay]
    condition: action.args.to in state.facts.orders
    check: '!state.facts.orders[action.args.to].paid'
    on_fail: {error: "{action.args.to} is paid."}
"""
CASES = """\
cases: desk
packs: [desk.yaml]
toolset: desk.tools.yaml
state: {facts: {user: guest, orders: {"#W1002": {owner: lei}}}}
tests:
  # who pays
  - name: a guest pays   # nobody
    propose: {tool: pay, args: {amount: 5}}
    expect: deny

  - {name: a guest asks, propose: {tool: ask, args: {text: hi}}, expect: deny}  # why

# the end
"""
MIA, LEI = {"owner": "mia", "total": 7, "paid": True}, {"owner": "lei", "total": 5.5, "lines": [{"sku": "K-1"}]}
CALLS: list[tuple[str, dict[str, Any], Any]] = [
    ("login", {"user": "mia"}, {}),
    ("look", {"id": "#W1001"}, LEI),
    ("pay", {"amount": 20, "to": "#W1001"}, None),
    ("look", {"id": "#W1002"}, MIA),
    ("pay", {"amount": 7, "to": "#W1002"}, {}),
    ("ask", {"text": "{who} # é\n李蕾?"}, {}),
    ("card", {"number": "5123-9"}, None),
    ("pay", {"amount": 3, "to": "#W9"}, {}),
    ("look", {"id": "#W1003"}, {"success": False, "error": "no such order"}),
    ("pay", {"amount": 7, "to": "#W1002"}, {}),
    ("vault", {"code": "1029-3847"}, {}),
]
LOOKED, DENIED, ALLOWED, SOURCED, MASKED, UNSEEN, WARNED, SECRET = 2, 3, 5, 6, 7, 8, 10, 11
NOW = cel.Timestamp.parse("2026-07-01T12:00:00Z")


def write(folder: Path) -> None:
    """Write the desk, a case file and the ledger of a run."""
    (folder / "desk.yaml").write_text(PACK)
    (folder / "desk.tools.yaml").write_text(TOOLS)
    (folder / "desk.cases.yaml").write_text(CASES)
    before = Path.cwd()
    os.chdir(folder)  # the ledger names its files as they were given
    try:
        rules = Rulebook.of(["desk.yaml"], "desk.tools.yaml", {})
        with Guard(rulebook=rules, ledger="run.ledger.jsonl", sync="none", clock=lambda: NOW) as guard:
            for tool, args, data in CALLS:
                verdict = guard.check(tool, args)
                if verdict.runs:
                    guard.record(verdict, data)
    finally:
        os.chdir(before)
