"""The lines of a ledger once more, as msgspec structs: tells quickly that a line keeps the contract of `entries`.

Invariants:
* What `fits` accepts, `entries` accepts; a test holds the two to each other, in both directions.
* It says yes or no only. What is wrong with a line, `entries` says, and only a line that may be wrong is asked about
  there: pydantic takes ten times as long, and 0.2 s to import.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from msgspec import Meta, Struct, ValidationError, convert, field

from ledgercli.records import Effect, FileKind, Mode, Outcome, Status

Digest = Annotated[str, Meta(pattern=r"\Asha256:[0-9a-f]{64}\Z")]
Time = Annotated[
    str,
    Meta(
        pattern=r"\A[0-9]{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])T(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]"
        r"(?:\.[0-9]{1,9})?(?:Z|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])\Z"
    ),
]
Count = Annotated[int, Meta(ge=0)]
StepNumber = Annotated[int, Meta(ge=1)]
Amount = Annotated[float, Meta(ge=0)]
JsonMap = dict[Any, Any]  # a JSON key is a text: asking each one takes as long as all else here


class _Record(Struct, forbid_unknown_fields=True, gc=False):
    pass


class _Line(_Record, kw_only=True):
    seq: Count
    at: Time
    prev: Digest


class _File(_Record):
    kind: FileKind
    name: str
    path: str
    digest: Digest
    text: str | None = None


class _Engine(Struct, gc=False):
    kind: str


class _Tokens(_Record):
    prompt: Count | None
    completion: Count | None


class _Fault(_Record):
    kind: str
    said: str


class _Asked(_Record):
    model: str
    tokens: _Tokens
    cost: Amount | None
    seconds: Amount
    prompt: Digest
    faults: list[_Fault] = []


class _State(_Record):
    task: str
    facts: JsonMap
    constraints: JsonMap
    flags: dict[str, bool]
    goals: dict[str, bool]
    goal: str
    status: str
    error: Any
    final_answer: Any


class _From(_Record):
    ledger: str
    run: str
    step: Count
    digest: Digest


class _Open(_Line, kw_only=True):
    kind: Literal["open"]
    schema: Literal["ledger/1"]
    run: str
    mode: Mode = "enforce"
    files: list[_File]
    engine: _Engine
    state: _State
    from_: _From | None = field(default=None, name="from")
    prev: None  # type: ignore[assignment]  # the one line without


class _Action(_Record):
    tool: str
    args: JsonMap
    call_id: str | None = None


class _Finding(_Record):
    rule: str
    effect: Effect
    error: str
    hint: str | None = None
    halt: bool = False
    missing: list[str] = []


class _Verdict(_Record):
    effect: Effect
    applied: Count
    reads: JsonMap
    failed: list[_Finding] = []
    warned: list[_Finding] = []
    overridden: list[_Finding] = []
    shadowed: list[_Finding] = []
    reason: str | None = None
    hint: str | None = None
    missing: list[str] = []
    establish: list[str] = []
    halts: bool = False
    approval: StepNumber | None = None


class _Result(_Record):
    success: bool
    data: Any = None
    error: Any = None


class _Intent(_Line, kw_only=True):
    kind: Literal["intent"]
    step: StepNumber
    now: Time
    action: _Action
    verdict: _Verdict
    engine: _Asked | None = None


class _Step(_Line, kw_only=True):
    kind: Literal["step"]
    step: StepNumber
    now: Time
    action: _Action
    verdict: _Verdict | None
    outcome: Outcome
    result: _Result | None
    state_diff: JsonMap = {}
    state_unset: list[str] = []
    problems: list[str] = []
    judged: Count | None = None
    engine: _Asked | None = None


class _Bound(_Record):
    args: Digest
    packs: Digest
    reads: Digest


class _Approval(_Line, kw_only=True):
    kind: Literal["approval"]
    step: StepNumber
    answer: Literal["yes", "no"]
    by: str
    reason: str | None = None
    bound: _Bound


class _Rollback(_Line, kw_only=True):
    kind: Literal["rollback"]
    to: Count
    by: str | None = None
    reason: str | None = None
    state_diff: JsonMap = {}
    state_unset: list[str] = []


class _Resume(_Line, kw_only=True):
    kind: Literal["resume"]
    files: list[_File]
    state_diff: JsonMap = {}
    engine: _Engine | None = None


class _Origin(_Record):
    path: str
    tool: str
    args: JsonMap
    step: Count


class _Checkpoint(_Line, kw_only=True):
    kind: Literal["checkpoint"]
    step: Count
    state: _State
    origins: list[_Origin]
    history: JsonMap | None


class _Summary(_Line, kw_only=True):
    kind: Literal["summary"]
    first: StepNumber
    last: StepNumber
    text: str | None
    engine: _Asked | None = None


class _Recovery(_Line, kw_only=True):
    kind: Literal["recovery"]
    offset: Count
    bytes: StepNumber
    moved_to: str
    digest: Digest


class _Close(_Line, kw_only=True):
    kind: Literal["close"]
    status: Status
    answer: Any
    steps: Count
    lines: Count
    limit: str | None = None
    error: Any = None
    counterfactual_from: StepNumber | None = None
    engine: _Asked | None = None


SHAPES: Final[dict[str, type[_Line]]] = {
    "open": _Open,
    "intent": _Intent,
    "step": _Step,
    "approval": _Approval,
    "rollback": _Rollback,
    "resume": _Resume,
    "recovery": _Recovery,
    "checkpoint": _Checkpoint,
    "summary": _Summary,
    "close": _Close,
}


def fits(record: dict[str, Any]) -> bool:
    """Whether a record is surely a line; what is not surely one may be one all the same."""
    kind = record.get("kind")
    shape = SHAPES.get(kind) if type(kind) is str else None
    if shape is None:
        return False
    try:
        convert(record, shape)
    except ValidationError:
        return False
    return True
