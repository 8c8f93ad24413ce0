"""The nouns of a run, and what a ledger's line says of them.

A proposal is judged: a verdict with findings. What runs returns a result. Each has its JSON, as it stands in a line,
and comes back from it; empty parts are left out. The functions below make whole lines, but for `seq` and `prev`, which
the ledger adds as it writes.

Invariants:
* Values are frozen and hold JSON data only; times and digests come in as text.
* This module is on the hot path: it imports nothing heavy. The contract of every line, with its messages and JSON
  Schema, is `entries`.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from hashlib import sha256
from typing import Any, Final, Literal, TypeAlias

import msgspec
import orjson
from msgspec.structs import replace

from ledgercli import paths

SCHEMA: Final = "ledger/1"

Effect: TypeAlias = Literal["allow", "warn", "require_approval", "deny"]
Outcome: TypeAlias = Literal["ok", "error", "denied", "waiting", "cancelled", "unknown"]
Mode: TypeAlias = Literal["enforce", "shadow"]
FileKind: TypeAlias = Literal["scenario", "pack", "toolset"]
Status: TypeAlias = Literal["completed", "failed", "halted", "limit", "awaiting_approval", "error", "interrupted"]
Line: TypeAlias = dict[str, Any]

EFFECTS: Final[tuple[Effect, ...]] = ("allow", "warn", "require_approval", "deny")  # from mildest to strictest


class Proposal(msgspec.Struct, frozen=True):
    """The tool call that a decision engine asks for, not yet judged; `action` in rules and lines.

    Arguments:
        tool: its name, known or not.
        args: as they were proposed.
        call_id: the engine's own name of the call; ids repeat in real logs, so nothing is correlated by it.
        engine: what asking a model for it took, as its first line says beside the action; None where none was asked.

    """

    tool: str
    args: Mapping[str, Any]
    call_id: str | None = None
    engine: Mapping[str, Any] | None = None

    def to_json(self) -> dict[str, Any]:
        """As it stands in a line."""
        action: dict[str, Any] = {"tool": self.tool, "args": self.args}
        if self.call_id is not None:
            action["call_id"] = self.call_id
        return action

    @classmethod
    def from_json(cls, action: Mapping[str, Any], engine: Mapping[str, Any] | None = None) -> Proposal:
        """The proposal that a line says; `engine` stands beside the action."""
        return cls(action["tool"], action["args"], action.get("call_id"), engine)


class Finding(msgspec.Struct, frozen=True):
    """One rule that failed, whether or not that decided.

    Arguments:
        rule: `pack/rule`; the bare name for a built-in one.
        effect: what the rule asks for.
        error: its message, filled in.
        hint: what to do instead.
        halt: whether its denial ends the run.
        missing: paths that it would have had to know.

    """

    rule: str
    effect: Effect
    error: str
    hint: str | None = None
    halt: bool = False
    missing: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """As it stands in a line."""
        found: dict[str, Any] = {"rule": self.rule, "effect": self.effect, "error": self.error}
        if self.hint is not None:
            found["hint"] = self.hint
        if self.halt:
            found["halt"] = True
        if self.missing:
            found["missing"] = self.missing
        return found

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> Finding:
        """The finding that a line says."""
        return cls(
            rule=found["rule"],
            effect=found["effect"],
            error=found["error"],
            hint=found.get("hint"),
            halt=found.get("halt", False),
            missing=tuple(found.get("missing", ())),
        )


class Verdict(msgspec.Struct, frozen=True):
    """The enforcer's answer on a proposal.

    Arguments:
        effect: what may happen.
        applied: how many rules had a condition that held.
        reads: every path that was looked at with its value, every question to the history with its answer.
        step: the proposal's number, by which everything is correlated.
        failed: rules that failed and count.
        warned: rules that failed and only warn.
        overridden: rules that failed and were beaten by one of higher priority.
        shadowed: rules that failed and are only being tried out.
        reason: the message of the rule that decided; None when nothing did.
        hint: what to do instead.
        missing: paths that would have had to be known.
        establish: tools that can make them known.
        halts: whether the run ends here.
        approval: the waiting step whose approval answers this one; with a yes the effect stays and the call runs.
        packs: name and digest of every pack that judged; not in the line, since `open` says it for the whole run.

    """

    effect: Effect
    applied: int = 0
    reads: Mapping[str, Any] = msgspec.field(default_factory=dict)
    step: int = 0
    failed: tuple[Finding, ...] = ()
    warned: tuple[Finding, ...] = ()
    overridden: tuple[Finding, ...] = ()
    shadowed: tuple[Finding, ...] = ()
    reason: str | None = None
    hint: str | None = None
    missing: tuple[str, ...] = ()
    establish: tuple[str, ...] = ()
    halts: bool = False
    approval: int | None = None
    packs: Mapping[str, str] = msgspec.field(default_factory=dict)

    @property
    def runs(self) -> bool:
        """Whether the call may run."""
        return lets_run(self.effect, self.approval)

    def answered(self, step: int, *, yes: bool) -> Verdict:
        """The verdict once a person has answered the waiting `step`: a yes lets the call run, a no refuses it."""
        if yes:
            return replace(self, approval=step)
        return replace(self, approval=step, effect="deny", reason=f"Approval was refused. {self.reason or ''}".rstrip())

    def to_json(self) -> dict[str, Any]:
        """As it stands in a line."""
        said: dict[str, Any] = {"effect": self.effect, "applied": self.applied, "reads": self.reads}
        if self.effect == "allow" and not self.shadowed and not self.overridden:
            return said
        for key in ("failed", "warned", "overridden", "shadowed"):
            if findings := getattr(self, key):
                said[key] = [found.to_json() for found in findings]
        for key in ("reason", "hint", "approval"):
            if (value := getattr(self, key)) is not None:
                said[key] = value
        for key in ("missing", "establish"):
            if value := getattr(self, key):
                said[key] = value
        if self.halts:
            said["halts"] = True
        return said

    @classmethod
    def from_json(cls, said: Mapping[str, Any], step: int = 0, packs: Mapping[str, str] | None = None) -> Verdict:
        """The verdict that a line says; `step` and `packs` stand elsewhere in the ledger."""

        def findings(key: str) -> tuple[Finding, ...]:
            return tuple(map(Finding.from_json, said.get(key, ())))

        return cls(
            effect=said["effect"],
            applied=said["applied"],
            reads=said["reads"],
            step=step,
            failed=findings("failed"),
            warned=findings("warned"),
            overridden=findings("overridden"),
            shadowed=findings("shadowed"),
            reason=said.get("reason"),
            hint=said.get("hint"),
            missing=tuple(said.get("missing", ())),
            establish=tuple(said.get("establish", ())),
            halts=said.get("halts", False),
            approval=said.get("approval"),
            packs=packs or {},
        )


class Result(msgspec.Struct, frozen=True):
    """What a tool returned, read as success or failure.

    Arguments:
        success: whether it did what it should.
        data: what it said, as JSON data.
        error: why not.

    """

    success: bool
    data: Any = None
    error: Any = None

    def to_json(self) -> dict[str, Any]:
        """As it stands in a line."""
        said: dict[str, Any] = {"success": self.success}
        if self.data is not None:
            said["data"] = self.data
        if self.error is not None:
            said["error"] = self.error
        return said

    @classmethod
    def from_json(cls, said: Mapping[str, Any]) -> Result:
        """The result that a line says."""
        return cls(said["success"], said.get("data"), said.get("error"))


def lets_run(effect: str, approval: int | None) -> bool:
    """Whether a call may run, given its verdict's effect and the step whose approval answered it."""
    return effect in ("allow", "warn") or (effect == "require_approval" and approval is not None)


# Digests and times


def digest(data: bytes) -> str:
    """The SHA-256 of bytes, as every digest is written."""
    return "sha256:" + sha256(data).hexdigest()


def digest_of(value: Any) -> str:
    """The digest of a JSON value, whatever the order of its keys; only for comparing with another made here."""
    return digest(orjson.dumps(value, paths.plain, orjson.OPT_SORT_KEYS))


def timestamp() -> str:
    """The present moment as lines write it: UTC, milliseconds."""
    seconds, millis = divmod(time.time_ns() // 1_000_000, 1000)
    return f"{_second(seconds)}.{millis:03}Z"


@lru_cache(maxsize=1)
def _second(seconds: int) -> str:
    """A second as text; many lines are written in one."""
    return datetime.fromtimestamp(seconds, UTC).isoformat()[:19]


def bound(args: Mapping[str, Any], packs: Mapping[str, str], reads: Mapping[str, Any]) -> dict[str, str]:
    """What an approval holds for: these arguments, these packs, these values that the verdict read."""
    return {"args": digest_of(args), "packs": digest_of(packs), "reads": digest_of(reads)}


# Lines


def file_entry(kind: FileKind, name: str, path: str, content: str, *, reference: bool = False) -> dict[str, str]:
    """A file that took part, for `open`; with `reference` its digest only, without its text."""
    entry = {"kind": kind, "name": name, "path": path, "digest": digest(content.encode())}
    return entry if reference else {**entry, "text": content}


def open_line(  # noqa: PLR0913 - the keys of the line
    *,
    at: str,
    run: str,
    files: Iterable[Mapping[str, str]],
    engine: Mapping[str, Any],
    state: Mapping[str, Any],
    mode: Mode = "enforce",
    origin: Mapping[str, Any] | None = None,
) -> Line:
    """The first line: all that took part, and the state that every diff starts from; `origin` is its `from`."""
    line = {
        "kind": "open",
        "at": at,
        "schema": SCHEMA,
        "run": run,
        "mode": mode,
        "files": list(files),
        "engine": engine,
        "state": state,
    }
    return line if origin is None else {**line, "from": origin}


def intent_line(*, step: int, at: str, now: str, action: Proposal, verdict: Verdict) -> Line:
    """A write that is about to run."""
    line: Line = {
        "kind": "intent",
        "step": step,
        "at": at,
        "now": now,
        "action": action.to_json(),
        "verdict": verdict.to_json(),
    }
    return _with_engine(line, action.engine)


def step_line(  # noqa: PLR0913 - the keys of the line
    *,
    step: int,
    at: str,
    now: str,
    action: Proposal,
    verdict: Verdict | None,
    outcome: Outcome,
    result: Result | None,
    sets: Mapping[str, Any] | None = None,
    unsets: Iterable[str] = (),
    problems: Iterable[str] = (),
    judged: int | None = None,
    engine: Mapping[str, Any] | None = None,
) -> Line:
    """The whole story of a step; `verdict` is None for what is never judged (a user's message in a recording).

    `judged` is the seq of the line behind which the call was judged, where others came in between (parallel calls);
    `engine` what asking for the call took, where no intent has said it.
    """
    line: Line = {
        "kind": "step",
        "step": step,
        "at": at,
        "now": now,
        "action": action.to_json(),
        "verdict": None if verdict is None else verdict.to_json(),
        "outcome": outcome,
        "result": None if result is None else result.to_json(),
    }
    line = _with_diff(line, sets, unsets)
    if noted := list(problems):
        line["problems"] = noted
    if judged is not None:
        line["judged"] = judged
    return _with_engine(line, engine)


def _with_engine(line: Line, engine: Mapping[str, Any] | None) -> Line:
    return line if engine is None else {**line, "engine": engine}


def _with_diff(line: Line, sets: Mapping[str, Any] | None, unsets: Iterable[str]) -> Line:
    if sets:
        line["state_diff"] = sets
    if unset := list(unsets):
        line["state_unset"] = unset
    return line


def approval_line(  # noqa: PLR0913 - the keys of the line
    *, at: str, step: int, yes: bool, by: str, reason: str | None, bound: Mapping[str, str]
) -> Line:
    """A person's answer on a step that waits."""
    line: Line = {"kind": "approval", "at": at, "step": step, "answer": "yes" if yes else "no", "by": by}
    if reason is not None:
        line["reason"] = reason
    return {**line, "bound": bound}


def rollback_line(  # noqa: PLR0913 - the keys of the line
    *,
    at: str,
    to: int,
    by: str | None,
    reason: str | None,
    sets: Mapping[str, Any],
    unsets: Iterable[str],
) -> Line:
    """From here on the state is that of an earlier step; the diff leads there."""
    line: Line = {"kind": "rollback", "at": at, "to": to}
    if by is not None:
        line["by"] = by
    if reason is not None:
        line["reason"] = reason
    return _with_diff(line, sets, unsets)


def resume_line(
    *,
    at: str,
    files: Iterable[Mapping[str, str]] = (),
    sets: Mapping[str, Any] | None = None,
    engine: Mapping[str, Any] | None = None,
) -> Line:
    """The run goes on; `files` and `engine` are those that have changed since, `sets` what the caller changed."""
    return _with_engine(_with_diff({"kind": "resume", "at": at, "files": list(files)}, sets, ()), engine)


def checkpoint_line(
    *,
    at: str,
    step: int,
    state: Mapping[str, Any],
    origins: Iterable[Mapping[str, Any]],
    history: Mapping[str, Any] | None,
) -> Line:
    """The whole state after so many steps, from which a run can start again."""
    said = {"kind": "checkpoint", "at": at, "step": step, "state": state}
    return {**said, "origins": list(origins), "history": history}


def summary_line(*, at: str, first: int, last: int, text: str | None, engine: Mapping[str, Any] | None = None) -> Line:
    """What a model made of the steps from `first` to `last`; with no `text` it made nothing that can be used."""
    return _with_engine({"kind": "summary", "at": at, "first": first, "last": last, "text": text}, engine)


def recovery_line(*, at: str, offset: int, size: int, moved_to: str, torn: str) -> Line:
    """What the writer found at the end of the file and where it put it; `torn` is the digest of those bytes."""
    return {"kind": "recovery", "at": at, "offset": offset, "bytes": size, "moved_to": moved_to, "digest": torn}


def close_line(  # noqa: PLR0913 - the keys of the line
    *,
    at: str,
    status: Status,
    answer: Any,
    steps: int,
    limit: str | None = None,
    error: Any = None,
    counterfactual_from: int | None = None,
    engine: Mapping[str, Any] | None = None,
) -> Line:
    """The line that ends a ledger; the ledger adds `lines`, the number of lines with this one.

    `engine` is what asking a model took that led to no step.
    """
    line: Line = {"kind": "close", "at": at, "status": status, "answer": answer, "steps": steps}
    if limit is not None:
        line["limit"] = limit
    if error is not None:
        line["error"] = error
    if counterfactual_from is not None:
        line["counterfactual_from"] = counterfactual_from
    return _with_engine(line, engine)
