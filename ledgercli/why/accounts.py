"""The account of a verdict: all that can be said about why it is what it is.

Invariants:
* Plain values: whoever prints an account, or makes a file of it, asks nothing else.
* `to_json` has the same words as a ledger's line where they mean the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ledgercli import cel
from ledgercli.paths import ABSENT
from ledgercli.policy import Pack
from ledgercli.records import Finding, Proposal, Verdict
from ledgercli.why.provenance import Place
from ledgercli.why.ranking import Changes
from ledgercli.why.rulewise import Evaluated, RuleSays
from ledgercli.why.situations import Change, Question
from ledgercli.why.smallest import Found


@dataclass(frozen=True)
class Seen:
    """A value that was read, or might have been.

    Arguments:
        name: the path, or the question to the history.
        value: what was there, or answered.
        note: who established it, or which steps the answer comes from; empty where that says nothing.
        asked: whether it is an answer of the history.

    """

    name: str
    value: Any
    note: str = ""
    asked: bool = False


@dataclass(frozen=True)
class Ruling:
    """One rule's part in a verdict.

    Arguments:
        said: what the rule says.
        finding: the failure as the verdict has it.
        reads: what it read, with who established it.
        overridden: whether a rule of higher priority has beaten it.
        shadow: whether it is only watched.

    """

    said: RuleSays
    finding: Finding | None = None
    reads: Sequence[Seen] = ()
    overridden: bool = False
    shadow: bool = False

    @property
    def name(self) -> str:
        """The rule, as `pack/rule`."""
        return self.said.name


@dataclass(frozen=True)
class Argument:
    """Where an argument, or a part of it, comes from."""

    name: str
    value: Any
    place: Place


@dataclass(frozen=True)
class Way:
    """What would have let a refused call pass.

    Arguments:
        found: what the search came to.
        shown: the ways worth showing, the most natural first.
        tools: for each path that a way changes the tools that can set it.

    """

    found: Found
    shown: Sequence[Changes] = ()
    tools: Mapping[str, Sequence[str]] = field(default_factory=dict)


@dataclass(frozen=True)
class Account:
    """All that can be said about one verdict.

    Arguments:
        step: its number.
        proposal: the call.
        verdict: the verdict that is explained.
        recorded: the verdict of the line.
        rulings: every rule that can concern the tool.
        others: the rules that are about other tools.
        arguments: where the arguments come from.
        unread: what is known about the same records and no rule has read.
        way: for a call that was refused or waits, or would have if it had not only been watched.
        packs: those that judged.
        differing: rules of which the line says otherwise than the values of then.
        masked: whether it may hang on a value that is masked.

    """

    step: int
    proposal: Proposal
    verdict: Verdict
    recorded: Verdict
    rulings: Sequence[Ruling]
    others: Sequence[RuleSays]
    arguments: Sequence[Argument]
    unread: Sequence[Seen]
    way: Way | None
    packs: Sequence[Pack]
    differing: Sequence[str] = ()
    masked: bool = False


def to_json(account: Account) -> dict[str, Any]:
    """Return an account as data."""
    said: dict[str, Any] = {
        "step": account.step,
        "action": account.proposal.to_json(),
        "verdict": account.verdict.to_json(),
        "recorded": account.recorded.effect,
        "rules": [_ruling(one) for one in account.rulings],
        "other_rules": [_says(one) for one in account.others],
        "arguments": [{"name": one.name, "value": one.value, "from": one.place.to_json()} for one in account.arguments],
        "unread": {one.name: one.value for one in account.unread},
    }
    if account.way is not None:
        said["would_pass"] = _way(account.way)
    if account.differing:
        said["differing"] = list(account.differing)
    return said


def _ruling(ruling: Ruling) -> dict[str, Any]:
    said = _says(ruling.said)
    if ruling.finding is not None:
        said["finding"] = ruling.finding.to_json()
    for word in ("overridden", "shadow"):
        if getattr(ruling, word):
            said[word] = True
    said["reads"] = [_seen(one) for one in ruling.reads]
    return said


def _says(says: RuleSays) -> dict[str, Any]:
    said: dict[str, Any] = {"rule": says.name, "says": says.says, "effect": says.effect, "text": says.text}
    if says.because:
        said["because"] = [_evaluated(one) for one in says.because]
    if says.check is not None:
        said["check"] = _evaluated(says.check)
    if says.masked:
        said["masked"] = True
    return said


def _evaluated(one: Evaluated) -> dict[str, Any]:
    said: dict[str, Any] = {"text": one.text, "value": one.answer.value if one.answer.known else None}
    if not one.answer.known:
        said["cannot_tell"] = list(one.answer.missing) or one.answer.error
    if one.parts:
        said["parts"] = {part.text: plain(part.value) for part in one.parts}
    return said


def _seen(seen: Seen) -> dict[str, Any]:
    said = {"name": seen.name, "value": plain(seen.value)}
    return {**said, "note": seen.note} if seen.note else said


def _way(way: Way) -> dict[str, Any]:
    said: dict[str, Any] = {"found": way.found.why, "tried": way.found.tried}
    if way.found.bounded:
        said["bounded"] = True
    if way.found.names:
        said["names"] = list(way.found.names)
    said["ways"] = [[_change(change, way.tools) for change in changes] for changes in way.shown]
    return said


def _change(change: Change, tools: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    said: dict[str, Any] = {"name": change.name, "says": phrase(change)}
    if change.value is not ABSENT:
        said["value"] = plain(change.value)
    return {**said, "tools": list(tools[change.name])} if tools.get(change.name) else said


def plain(value: Any) -> Any:
    """Return a value of the policy language as JSON data; what JSON has not, as text."""
    try:
        return cel.to_json(value)
    except cel.EvalError:
        return str(value)


def phrase(change: Change) -> str:
    """Say a change: `if verify_account(account="A-77") had succeeded before`, `with action.args.account`.

    The value of one that begins with `with` stands behind it, ` = ` between them.
    """
    if not isinstance(change.at, Question):
        return f"if {change.name} were not known" if change.value is ABSENT else f"with {change.name}"
    question, had = change.at, "had" if change.value is True else "had not"
    args = question.args
    match question.function:
        case "succeeded":
            given = args[1] if len(args) > 1 else {}
            told = ", ".join(f"{name}={cel.literal(value)}" for name, value in given.items())
            return f"if {args[0]}{f'({told})' if given else ''} {had} succeeded before"
        case "from_task":
            return f"if the task {had} named {cel.literal(args[0])}"
        case "from_user":
            return f"if the user {had} said {cel.literal(args[0])}"
        case "from_tool":
            return f"if a result of {args[1]} {had} held {cel.literal(args[0])}"
        case "confirmed":
            return f"if the person {had} said yes to exactly this call"
        case "source":
            return f"if {change.value['tool']} had established {cel.path_text(args[0])}"
    return f"with {change.name}"
