"""What the benchmarks share: packs of any size, and how two things are timed against each other."""

from __future__ import annotations

import gc
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ledgercli.history import History
from ledgercli.rulebook import Rulebook
from ledgercli.state import State

PAIRS = 15

#: Ten rules of the kinds that packs are made of, over twenty facts, for a tool `pay`.
RULES = (
    ("known_customer", "state.facts.user_authenticated == true"),
    ("not_blocked", "!state.facts.blocked"),
    ("role", "state.facts.role in ['customer', 'agent']"),
    ("amount", "action.args.amount <= state.constraints.limit"),
    ("positive", "action.args.amount > 0.0"),
    ("own_account", "action.args.account == state.facts.account"),
    ("currency", "action.args.currency in state.constraints.currencies"),
    ("few_failures", "count_recent_failures(state.ledger, action.tool) < 3"),
    ("balance", "state.facts.balance >= action.args.amount"),
    ("country", "state.facts.country != 'XX' && state.facts.tier >= 2"),
)
ARGS = {"account": "A-77", "amount": 120.5, "currency": "EUR"}
FACTS: dict[str, Any] = {
    "user_authenticated": True, "blocked": False, "role": "customer", "account": "A-77", "balance": 900.5,
    "country": "DE", "tier": 3, **{f"other_{number}": number for number in range(13)},
}  # fmt: skip
CONSTRAINTS = {"limit": 500.0, "currencies": ["EUR", "USD"]}


def pack_text(rules: int = 10, *, others: int = 0) -> str:
    """A pack of `rules` rules for `pay`, and of `others` for tools that are not asked about."""
    lines = ["pack: bench", "rules:"]
    for number in range(rules):
        name, check = RULES[number % len(RULES)]
        quoted = check.replace("'", "''")
        lines += [f"  - name: {name}_{number}", "    tools: [pay]", f"    check: '{quoted}'"]
    for number in range(others):
        name, check = RULES[number % 3]
        quoted = check.replace("'", "''")
        lines += [f"  - name: other_{name}_{number}", f"    tools: [other_{number % 9}]", f"    check: '{quoted}'"]
    return "\n".join(lines) + "\n"


def toolset_text() -> str:
    """The toolset: `pay`, and nine tools that the other rules are about."""
    lines = [
        "toolset: bench", "tools:", "  pay:", "    access: read", "    args:", "      account: {type: string}",
        "      amount: {type: number}", "      currency: {type: string}",
        "    on_success:", "      set: {facts.last_receipt: result.data.receipt}",
    ]  # fmt: skip
    for number in range(9):
        lines += [f"  other_{number}:", "    access: read"]
    return "\n".join(lines) + "\n"


def book(folder: Path, rules: int = 10, *, others: int = 0) -> Rulebook:
    """The rules, compiled."""
    pack, tools = folder / f"bench{rules}-{others}.yaml", folder / "bench.tools.yaml"
    pack.write_text(pack_text(rules, others=others))
    tools.write_text(toolset_text())
    return Rulebook.of([pack], tools, initial())


def initial() -> dict[str, Any]:
    """The values that a run begins with."""
    return {"facts": FACTS, "constraints": CONSTRAINTS}


def twin(state: State, history: History, tool: str, args: dict[str, Any]) -> dict[str, Any]:
    """The ten rules by hand, filling the same record."""
    facts, constraints = state.tree["facts"], state.tree["constraints"]
    reads: dict[str, Any] = {}
    failed: list[str] = []
    authenticated = reads["state.facts.user_authenticated"] = facts["user_authenticated"]
    if authenticated is not True:
        failed.append("known_customer")
    blocked = reads["state.facts.blocked"] = facts["blocked"]
    if blocked:
        failed.append("not_blocked")
    role = reads["state.facts.role"] = facts["role"]
    if role not in ("customer", "agent"):
        failed.append("role")
    amount = reads["action.args.amount"] = args["amount"]
    limit = reads["state.constraints.limit"] = constraints["limit"]
    if not amount <= limit:
        failed.append("amount")
    if not amount > 0.0:
        failed.append("positive")
    account = reads["action.args.account"] = args["account"]
    own = reads["state.facts.account"] = facts["account"]
    if account != own:
        failed.append("own_account")
    currency = reads["action.args.currency"] = args["currency"]
    currencies = reads["state.constraints.currencies"] = constraints["currencies"]
    if currency not in currencies:
        failed.append("currency")
    failures = reads[f'count_recent_failures("{tool}")'] = history.count_recent_failures(tool)
    if not failures < 3:
        failed.append("few_failures")
    balance = reads["state.facts.balance"] = facts["balance"]
    if not balance >= amount:
        failed.append("balance")
    country = reads["state.facts.country"] = facts["country"]
    tier = reads["state.facts.tier"] = facts["tier"]
    if not (country != "XX" and tier >= 2):
        failed.append("country")
    return {
        "effect": "deny" if failed else "allow", "applied": 10, "reads": reads, "failed": failed, "warned": [],
        "shadowed": [],
    }  # fmt: skip


def ratio(ours: Callable[[], Any], other: Callable[[], Any], *, loops: int, pairs: int = PAIRS) -> tuple[float, ...]:
    """CPU time of `ours` to `other`: the median ratio of alternating pairs, and the median seconds a call of each."""
    ratios, first, second = [], [], []
    for _ in range(pairs):
        mine, others = _spent(ours, loops), _spent(other, loops)
        ratios.append(mine / others)
        first.append(mine / loops)
        second.append(others / loops)
    return statistics.median(ratios), statistics.median(first), statistics.median(second)


def say(what: str, found: tuple[float, ...]) -> float:
    """Print a ratio with its absolute figures, and return it."""
    ratio_, first, second = found
    print(f"\n{what}: {ratio_:.2f}  ({first * 1e6:,.1f} and {second * 1e6:,.1f} microseconds)")
    return ratio_


def _spent(call: Callable[[], Any], loops: int) -> float:
    gc.collect()
    gc.disable()
    try:
        started = time.process_time()
        for _ in range(loops):
            call()
        return time.process_time() - started
    finally:
        gc.enable()


#: Not `ru_maxrss`: a child begins with that of its parent.
_PEAK = """
import sys
print(open("/proc/self/status").read().split("VmHWM:")[1].split()[0], file=sys.stderr)
"""


def peak(program: str, *args: object) -> int:
    """The most memory, in kilobytes, that a program took which runs in a process of its own."""
    asked = [sys.executable, "-c", program + _PEAK, *map(str, args)]
    done = subprocess.run(asked, capture_output=True, text=True, check=True)
    return int(done.stderr.splitlines()[-1])
