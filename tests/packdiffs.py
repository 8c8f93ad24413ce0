"""Judges an example of a pack diff anew: by the enforcer, in a state and a history that are made here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ledgercli import paths
from ledgercli.diff.packs import Found, PackDifference
from ledgercli.diff.packs.examples import Example
from ledgercli.diff.packs.versions import Setting, Version, names_in, read, settings
from ledgercli.history import History
from ledgercli.records import Proposal, Verdict
from ledgercli.state import Origin, State, initial

ROOT = Path(__file__).resolve().parents[1]


def versions_of(a: Path, b: Path, toolset: Path | None) -> list[Setting]:
    """Both packs, compiled."""
    names = names_in(str(toolset)) if toolset else None
    return settings((str(a), str(b)), read(str(a)), read(str(b)), names)


def judged(example: Example, version: Version) -> Verdict:
    """What a version's enforcer says of an example."""
    vocabulary = version.vocabulary
    state = initial(
        task=example.rest.get("task", ""),
        facts={**{name: {} for name in vocabulary.records}, **example.facts},
        constraints={**version.defaults, **example.constraints},
        flags={**dict.fromkeys(vocabulary.names("flags"), False), **example.flags},
        goals=vocabulary.goals,
    )
    origins: paths.Map = state.origins
    for path, tool in example.sources.items():
        origins = paths.put(origins, (path,), Origin(tool, {}, 1))
    history = ran(example, {**vocabulary.tools[example.tool].defaults, **example.args})
    state = State({**state.tree, **example.rest, "step": 99}, origins)
    return version.enforcer.judge(Proposal(example.tool, example.args), state, history, example.now, step=100)


def ran(example: Example, args: dict[str, Any]) -> History:
    """What an example says has happened."""
    history, step = History(str(example.rest.get("task", ""))), 0
    for past in example.past:
        whole = past.args is None and not past.tool
        tool, given = (example.tool, args) if whole else (past.tool, past.args or {})
        for _ in range(past.times):
            step += 1
            if past.what == "said":
                history.said(past.data)
            elif past.what == "confirmed":
                history.answered(tool, given, yes=True)
            elif past.what == "denied":
                history.denied(tool)
            else:
                history.executed(tool, given, past.what, past.data, step=step)
        step += past.idle
    return history


def plainly(verdict: Verdict, version: Version) -> tuple[Any, ...]:
    """What a verdict comes to."""
    failed = [*verdict.failed, *verdict.warned]
    return verdict.effect, verdict.halts, sorted((version.short(one.rule), one.effect) for one in failed)


def really_differs(one: Found, setting: Setting) -> None:
    """Check that a plain call of the enforcer says the same of the example, and that it differs as is said."""
    a, b = judged(one.example, setting.a), judged(one.example, setting.b)
    assert (plainly(a, setting.a), a.reason, a.hint) == (plainly(one.a, setting.a), one.a.reason, one.a.hint)
    assert (plainly(b, setting.b), b.reason, b.hint) == (plainly(one.b, setting.b), one.b.reason, one.b.hint)
    match one.kind:
        case "effect":
            assert a.effect != b.effect
        case "halt":
            assert (a.effect, a.halts) == (b.effect, not b.halts)
        case "rules":
            assert plainly(a, setting.a) != plainly(b, setting.b)
        case "message":
            assert (a.reason, a.hint) != (b.reason, b.hint)
        case "watched":
            assert (a.overridden, a.shadowed) != (b.overridden, b.shadowed)


def all_really_differ(found: PackDifference, every: list[Setting]) -> None:
    """Check every example."""
    for tool in found.tools:
        setting = next(one for one in every if one.kind == tool.kind)
        for one in tool.found:
            really_differs(one, setting)
