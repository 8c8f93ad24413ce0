"""The contract of a ledger's lines: one model a kind, their messages and their JSON Schema.

Invariants:
* A line is exactly one of these, told apart by `kind`; an unknown key is an error.
* A new kind is a class and its name in `Entry`; what it takes unseen (`Any`) stands in `FREE`.
* What ties lines to one another (chain, numbers, diffs) is `verify`'s work, not done here.

pydantic is imported here, so that nothing on the hot path imports this module.
"""

from __future__ import annotations

import difflib
from functools import cache
from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, TypeAdapter, ValidationError

from ledgercli import paths, records

Digest = Annotated[str, StringConstraints(pattern=r"^sha256:[0-9a-f]{64}$")]
Time = Annotated[
    str,
    StringConstraints(
        pattern=r"^\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])T([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d{1,9})?"
        r"(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$"
    ),
]
Count = Annotated[int, Field(ge=0)]
StepNumber = Annotated[int, Field(ge=1)]
JsonMap = dict[str, Any]


class _Record(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class _Line(_Record):
    seq: Count = Field(description="Counts the lines, from 0.")
    at: Time = Field(description="When the line was written.")
    prev: Digest = Field(description="SHA-256 of the line before, its newline included.")


class File(_Record):
    """A file that took part."""

    kind: records.FileKind
    name: str
    path: str
    digest: Digest = Field(description="SHA-256 of the file's text.")
    text: str | None = Field(None, description="The file as it was read; absent in a ledger made with --reference.")


class Engine(BaseModel):
    """Who proposes; more keys say how."""

    model_config = ConfigDict(extra="allow", strict=True, frozen=True)

    kind: str


class OpeningState(_Record):
    """The state before the first step."""

    task: str
    facts: JsonMap
    constraints: JsonMap
    flags: dict[str, bool] = {}
    goals: dict[str, bool] = {}
    goal: str = ""
    status: str = "running"
    error: Any = None
    final_answer: Any = None


class Open(_Line):
    """The first line: all that took part, and the state that every diff starts from."""

    kind: Literal["open"]
    schema_: Literal["ledger/1"] = Field(alias="schema")
    run: str
    mode: records.Mode = "enforce"
    files: list[File]
    engine: Engine
    state: OpeningState
    prev: None = Field(description="Nothing comes before.")  # type: ignore[assignment]  # the one line without


class Action(_Record):
    """A proposal, as it was made."""

    tool: str
    args: JsonMap
    call_id: str | None = None


class Finding(_Record):
    """A rule that failed."""

    rule: str
    effect: records.Effect
    error: str
    hint: str | None = None
    halt: bool = False
    missing: list[str] = []


class Verdict(_Record):
    """The enforcer's answer."""

    effect: records.Effect
    applied: Count = Field(description="How many rules had a condition that held.")
    reads: JsonMap = Field(description="Each path and question that was looked at, with its value or answer.")
    failed: list[Finding] = []
    warned: list[Finding] = []
    overridden: list[Finding] = []
    shadowed: list[Finding] = []
    reason: str | None = None
    hint: str | None = None
    missing: list[str] = Field([], description="Paths that would have had to be known.")
    establish: list[str] = Field([], description="Tools that can make them known.")
    halts: bool = False
    approval: StepNumber | None = Field(None, description="The waiting step whose approval answers this one.")


class Result(_Record):
    """What the tool returned."""

    success: bool
    data: Any = None
    error: Any = None


class Intent(_Line):
    """A write that is about to run; a step of the same number follows."""

    kind: Literal["intent"]
    step: StepNumber
    now: Time
    action: Action
    verdict: Verdict


class Step(_Line):
    """The whole story of a step."""

    kind: Literal["step"]
    step: StepNumber
    now: Time = Field(description="The time that the rules saw.")
    action: Action
    verdict: Verdict | None = Field(description="null for what is never judged.")
    outcome: records.Outcome
    result: Result | None
    state_diff: JsonMap = Field({}, description="Path -> new value.")
    state_unset: list[str] = Field([], description="Paths that were removed.")
    problems: list[str] = Field([], description="What a transition could not tell.")


class Bound(_Record):
    """What an approval holds for."""

    args: Digest
    packs: Digest
    reads: Digest


class Approval(_Line):
    """A person's answer on a step that waits."""

    kind: Literal["approval"]
    step: StepNumber
    answer: Literal["yes", "no"]
    by: str
    reason: str | None = None
    bound: Bound


class Recovery(_Line):
    """A torn end was moved out of the file."""

    kind: Literal["recovery"]
    offset: Count
    bytes: StepNumber
    moved_to: str
    digest: Digest


class Close(_Line):
    """The end."""

    kind: Literal["close"]
    status: records.Status
    answer: Any
    steps: Count
    lines: Count = Field(description="How many lines the ledger has, with this one.")
    limit: str | None = Field(None, description="Which limit ended the run.")
    error: Any = None
    counterfactual_from: StepNumber | None = Field(
        None, description="The step from which on the recording is no longer what would have happened."
    )


Entry = Annotated[Open | Intent | Step | Approval | Recovery | Close, Field(discriminator="kind")]
KINDS: tuple[str, ...] = tuple(
    get_args(model.model_fields["kind"].annotation)[0] for model in get_args(get_args(Entry)[0])
)


FREE = frozenset(
    {"answer", "args", "constraints", "data", "engine", "error", "facts", "final_answer", "reads", "state_diff"}
)
PARTS_MAX = 20_000


@cache
def _adapter() -> TypeAdapter[Any]:
    return TypeAdapter(Entry)


def schema() -> dict[str, Any]:
    """The JSON Schema of a line."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A line of a ledger (ledger/1)",
        **_adapter().json_schema(by_alias=True),
    }


def problems(record: dict[str, Any]) -> list[str]:
    """All that is wrong with the record of a line, each with its path; of a hostile one the first `PARTS_MAX`."""
    if _parts(record, PARTS_MAX) <= 0:
        return [f"the line has more than {PARTS_MAX:,} parts outside of {', '.join(sorted(FREE))}"]
    try:
        _adapter().validate_python(record)
    except ValidationError as error:
        return [_said(one["loc"], one["type"], one["msg"], record) for one in error.errors(include_url=False)]
    return []


def _parts(value: Any, left: int) -> int:
    """What is left of a number of parts (each may have a problem of its own) once those of `value` are taken off."""
    left -= len(value)
    for key, part in value.items() if isinstance(value, dict) else enumerate(value):
        if left <= 0:
            break
        if isinstance(part, (dict, list)) and key not in FREE:
            left = _parts(part, left)
    return left


def _said(loc: tuple[int | str, ...], kind: str, message: str, record: dict[str, Any]) -> str:
    if kind in ("union_tag_invalid", "union_tag_not_found"):
        return f"kind is {record.get('kind')!r}; a line's kind is one of {', '.join(KINDS)}"
    path = loc[1:]  # the first is the kind, by which pydantic chose the model
    shown = paths.text(path)
    if kind == "extra_forbidden":
        return f"unknown key {shown}{_like(path, record)}"
    if kind == "missing":
        return f"{shown} is missing"
    return f"{shown}: {message[0].lower()}{message[1:]}"


def _like(path: tuple[int | str, ...], record: dict[str, Any]) -> str:
    """Names the known keys that an unknown one may have been meant for."""
    where = _adapter().json_schema(by_alias=True)["$defs"]
    known = {key for model in where.values() for key in model.get("properties", {})}
    near = difflib.get_close_matches(str(path[-1]), known - set(paths.get(record, path[:-1], {})), n=1)
    return f"; did you mean {near[0]}?" if near else ""
