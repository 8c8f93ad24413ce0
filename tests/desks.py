"""A small desk with a pack, tools and cases, for tests of cases."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

TOOLS = """
toolset: desk
tools:
  login: {access: read, args: {user: {type: string}}, run: {user: {}}, on_success: {set: {facts.user: action.args.user}}}
  pay: {access: write, tags: [charge], args: {amount: {type: number}, note: {type: string, default: ""}}}
  look: {access: read, args: {id: {type: string}}, on_success: {set: {"facts.items[action.args.id]": result.data}}}
"""
PACK = """
pack: desk
constraints: {limit: 100}
define:
  large: action.args.amount > double(state.constraints.limit)
rules:
  - name: known
    tools: [pay]
    check: has(state.facts.user) && state.facts.user != 'guest'
    on_fail: {error: "Who pays {action.args.amount}?", hint: Call login first., halt: true}
  - name: asks
    tools: [pay]
    check: '!large'
    on_fail: {error: "{action.args.amount} is much.", effect: require_approval}
  - name: looked
    tools: [pay]
    check: count_failures(state.ledger, 'look') == 0
    on_fail: {effect: warn}
"""
HEAD = """
cases: desk
packs: [desk.yaml]
toolset: desk.tools.yaml
now: "2026-08-01T12:00:00Z"
state: {facts: {user: lei}}
tests:
"""


def write(folder: Path, tests: str, *, pack: str = PACK, tools: str = TOOLS, head: str = HEAD) -> Path:
    """Write the desk with these cases; returns the case file."""
    (folder / "desk.yaml").write_text(dedent(pack).lstrip())
    (folder / "desk.tools.yaml").write_text(dedent(tools).lstrip())
    file = folder / "desk.cases.yaml"
    file.write_text(
        head.lstrip() + "".join(f"  {line}\n" if line else "\n" for line in dedent(tests).strip().split("\n"))
    )
    return file
