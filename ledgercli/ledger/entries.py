"""The contract of a ledger's lines: one model a kind, their messages and their JSON Schema.

Invariants:
* A line is exactly one of these, told apart by `kind`; an unknown key is an error.
* A new kind is a class, its name in `Entry` and a struct in `shapes`; what it takes unseen (`Any`) stands in `FREE`.
* What ties lines to one another (chain, numbers, diffs) is `verify`'s work, not done here.

pydantic is imported here, so that nothing on the hot path imports this module.
"""

from __future__ import annotations

import difflib
from functools import cache
from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, TypeAdapter, ValidationError

from ledgercli import paths, records
from ledgercli.ledger import shapes

Digest = Annotated[str, StringConstraints(pattern=r"^sha256:[0-9a-f]{64}$")]
Time = Annotated[
    str,
    StringConstraints(
        pattern=r"^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]"
        r"(\.[0-9]{1,9})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$"
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


class Tokens(_Record):
    """How long a prompt and a reply were; null where the server did not say."""

    prompt: Count | None
    completion: Count | None


class Fault(_Record):
    """A reply that could not be used."""

    kind: str
    said: str = Field(description="How it began.")


class Asked(_Record):
    """What asking a model took, all replies together that could not be used and the one that could."""

    model: str
    tokens: Tokens
    cost: Annotated[float, Field(ge=0)] | None = Field(description="In US dollars; null where no price is known.")
    seconds: Annotated[float, Field(ge=0)]
    prompt: Digest = Field(description="SHA-256 of the prompt that the last reply answered.")
    faults: list[Fault] = []


class WholeState(_Record):
    """A state with all its parts; its step number stands in no line."""

    task: str
    facts: JsonMap
    constraints: JsonMap
    flags: dict[str, bool]
    goals: dict[str, bool]
    goal: str
    status: str
    error: Any
    final_answer: Any


class From(_Record):
    """Where a run that goes on from a step of another one begins."""

    ledger: str = Field(description="The path of that ledger, as it was typed.")
    run: str
    step: Count = Field(description="The step after which it begins; 0: before the first.")
    digest: Digest = Field(description="SHA-256 of that step's line; with step 0, of the open line.")


class Open(_Line):
    """The first line: all that took part, and the state that every diff starts from."""

    kind: Literal["open"]
    schema_: Literal["ledger/1"] = Field(alias="schema")
    run: str
    mode: records.Mode = "enforce"
    files: list[File]
    engine: Engine
    state: WholeState
    from_: From | None = Field(None, alias="from", description="The step of another run that this one goes on from.")
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
    engine: Asked | None = Field(None, description="What asking for it took.")


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
    judged: Count | None = Field(
        None, description="The seq of the line behind which it was judged, where others came in between."
    )
    engine: Asked | None = Field(None, description="What asking for it took, if no intent has said that.")


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


class Rollback(_Line):
    """From here on the state is that of an earlier step; what happened since stays written."""

    kind: Literal["rollback"]
    to: Count = Field(description="The step whose state it is; 0: before the first.")
    by: str | None = None
    reason: str | None = None
    state_diff: JsonMap = {}
    state_unset: list[str] = []


class Resume(_Line):
    """A run that had stopped goes on."""

    kind: Literal["resume"]
    files: list[File] = Field(description="Those that are others than before.")
    state_diff: JsonMap = Field({}, description="What these files change in the state.")
    engine: Engine | None = Field(None, description="Who proposes from here on, if that is another.")


class Origin(_Record):
    """Who established a value."""

    path: str
    tool: str
    args: JsonMap
    step: Count


class Checkpoint(_Line):
    """All that the lines before come to, so that a reader can begin here."""

    kind: Literal["checkpoint"]
    step: Count = Field(description="How many steps there are.")
    state: WholeState
    origins: list[Origin]
    history: JsonMap | None


class Recovery(_Line):
    """A torn end was moved out of the file."""

    kind: Literal["recovery"]
    offset: Count = Field(description="Where they began in the file, and where this line begins.")
    bytes: StepNumber
    moved_to: str
    digest: Digest


class Summary(_Line):
    """What a model made of older steps for the model that decides; no rule reads it."""

    kind: Literal["summary"]
    first: StepNumber = Field(description="The first of the steps.")
    last: StepNumber = Field(description="The last of them.")
    text: str | None = Field(description="What it wrote; null: nothing that can be used, so counts tell of the steps.")
    engine: Asked | None = Field(None, description="What asking for it took.")


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
    engine: Asked | None = Field(None, description="What asking took that led to no step.")


Entry = Annotated[
    Open | Intent | Step | Approval | Rollback | Resume | Recovery | Checkpoint | Summary | Close,
    Field(discriminator="kind"),
]
KINDS: tuple[str, ...] = tuple(
    get_args(model.model_fields["kind"].annotation)[0] for model in get_args(get_args(Entry)[0])
)


FREE = frozenset(
    {
        "answer", "args", "constraints", "data", "engine", "error", "facts", "final_answer", "history", "reads",
        "state_diff",
    }
)  # fmt: skip
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
    """All that is wrong with the record of a line, each with its path; a hostile one is not told all of it."""
    if _parts(record, PARTS_MAX) <= 0 and not shapes.fits(record):
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
