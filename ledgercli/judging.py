"""One proposal, judged by hand: what `ledger check` asks.

Invariants:
* The verdict is the one that a run would get in this state, from the same enforcer.
* Nothing is written and no tool's code is imported.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ledgercli import cel
from ledgercli.cases import StateModel
from ledgercli.documents import parse, validate
from ledgercli.errors import LedgerCliError
from ledgercli.history import History
from ledgercli.intake import present
from ledgercli.loading import load_packs, load_toolset, refuse
from ledgercli.policy import Pack
from ledgercli.records import Proposal, Verdict
from ledgercli.rulebook import Rulebook
from ledgercli.sources import Source, read

EXAMPLE = """'{"tool": "get_weather", "args": {"location": "Beijing"}}'"""


@dataclass(frozen=True, slots=True)
class Judged:
    """A proposal with its verdict, and the packs that judged."""

    proposal: Proposal
    verdict: Verdict
    packs: Sequence[Pack]


def judge(packs: Sequence[str], toolset: str, proposal: Proposal, state: Mapping[str, Any], now: str | None) -> Judged:
    """Judge a proposal.

    Arguments:
        packs: files, or `ledgercli:NAME`.
        toolset: a file.
        proposal: the call.
        state: what is known, by the keys of a scenario.
        now: the time; the clock's if left out.

    Raises:
        InvalidDocumentError: a file does not load.
        LedgerCliError: a file cannot be read, or `now` is no time.

    """
    tools, loaded = load_toolset(toolset), load_packs(packs)
    book = Rulebook(tools, loaded, initial=state)
    refuse(book.problems())
    initial = book.initial_state()
    history = History(str(initial.tree["task"]))
    verdict = book.enforcer.judge(proposal, initial, history, _moment(now))
    return Judged(proposal, verdict, loaded)


def proposal_of(text: str) -> Proposal:
    """Read a proposal as a ledger has it: `{"tool": …, "args": {…}}`.

    Raises:
        LedgerCliError: it is none.

    """
    try:
        action = json.loads(text)
    except ValueError as error:
        raise LedgerCliError(f"the proposal is no JSON: {error}", fix=f"--propose {EXAMPLE}") from None
    if not isinstance(action, dict) or not isinstance(action.get("tool"), str):
        raise LedgerCliError("the proposal has no tool", fix=f"--propose {EXAMPLE}")
    args = action.get("args", {})
    if not isinstance(args, dict):
        raise LedgerCliError("the proposal's args are no map", fix=f"--propose {EXAMPLE}")
    if unknown := action.keys() - {"tool", "args", "call_id"}:
        raise LedgerCliError(f"the proposal has the unknown key {min(unknown)}", fix=f"--propose {EXAMPLE}")
    return Proposal(action["tool"], args)


def state_of(text: str) -> dict[str, Any]:
    """Read a state by the keys of a scenario: from a file, or from the text itself where that is a map.

    Raises:
        InvalidDocumentError: it does not load.
        UnreadableInputError: there is no such file.

    """
    source = Source.of("--state", text) if text.lstrip().startswith("{") else read(text)
    validated = validate(parse(source), StateModel)
    refuse(validated.problems)
    assert validated.model is not None, "a state without problems has a model"
    return validated.model.model_dump(exclude_unset=True, exclude_none=True)


def _moment(now: str | None) -> cel.Timestamp:
    if now is None:
        return present()
    try:
        return cel.Timestamp.parse(now)
    except cel.EvalError as error:
        raise LedgerCliError(f"{now} is no time: {error}", fix="write it as 2026-08-01T12:00:00Z") from None
