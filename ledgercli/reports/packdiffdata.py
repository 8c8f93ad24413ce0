"""What two versions of a pack differ in, as data: `diff/1`.

Invariants:
* A verdict is the enforcer's own, as it stands in a ledger.
* What is not there on a side has no key there: `null` is a value.
"""

from __future__ import annotations

from typing import Any

from ledgercli.diff.packs import Change, Found, PackDifference, ToolDifference
from ledgercli.diff.packs.compared import Side
from ledgercli.diff.packs.examples import Example
from ledgercli.diff.packs.pasts import Past
from ledgercli.paths import ABSENT
from ledgercli.reports.diffdata import SCHEMA


def of_packs(found: PackDifference, exit_code: int) -> dict[str, Any]:
    """Return what two versions of a pack differ in."""
    return {
        "schema": SCHEMA,
        "kind": "packs",
        "exit_code": exit_code,
        "same": found.same,
        "a": _side(found.a),
        "b": _side(found.b),
        "toolset": found.names,
        "written": list(map(_change, found.written)),
        "tools": list(map(_tool, found.tools)),
    }


def _side(side: Side) -> dict[str, Any]:
    pack = side.pack
    return {"path": side.path, "pack": pack.name, "digest": pack.digest, "rules": len(pack.file.rules)}


def _change(change: Change) -> dict[str, Any]:
    made: dict[str, Any] = {"sign": change.sign, "part": change.part, "name": change.name, "key": change.key}
    if change.pack:
        made["pack"] = change.pack
    made |= {name: value for name, value in (("a", change.a), ("b", change.b)) if value is not ABSENT}
    if lines := {name: line for name, line in zip("ab", change.lines, strict=True) if line is not None}:
        made["lines"] = lines
    return made


def _tool(tool: ToolDifference) -> dict[str, Any]:
    made: dict[str, Any] = {"tool": tool.tool}
    if tool.kind:
        made["stands_for"] = tool.kind
    told = "differs" if tool.found else "same" if tool.proved_same else "none found"
    return {
        **made,
        "verdicts": told,
        "tried": tool.tried,
        "all_tried": tool.proof != "searched",
        "differences": list(map(_found, tool.found)),
    }


def _found(found: Found) -> dict[str, Any]:
    return {
        "kind": found.kind,
        "by": list(found.by),
        "worse": found.worse,
        "example": _example(found.example),
        "a": found.a.to_json(),
        "b": found.b.to_json(),
    }


def _example(example: Example) -> dict[str, Any]:
    """Return an example: the call, what is known where it is not as at the start, and what ran before."""
    known = {
        "facts": example.facts,
        "flags": example.flags,
        "constraints": example.constraints,
        **example.rest,
        "sources": example.sources,
        "before": list(map(_past, example.past)),
    }
    return {
        "tool": example.tool,
        "args": example.args,
        "now": str(example.now),
        **{key: value for key, value in known.items() if value},
    }


def _past(past: Past) -> dict[str, Any]:
    made: dict[str, Any] = {"what": past.what, "times": past.times}
    if past.tool:
        made["tool"] = past.tool
    if past.args:
        made["args"] = past.args
    if past.data is not None:
        made["data"] = past.data
    if past.idle:
        made["other_steps_after"] = past.idle
    return made
