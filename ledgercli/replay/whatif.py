"""What other rules would have said to a recorded run.

Every proposal is judged by the changed packs in the state in which it was made, and held against the recorded verdict.

Invariants:
* Nothing is run and nothing is written; states, times and results are the recorded ones.
* Honest about what it can know: up to the first step at which the agent would have seen something else (the frontier)
  the answers are certain; behind it they only say what the rules answer to a call that might never have been made.
* Where redaction hid a value that a changed rule needs, the answer is "cannot tell", never a guess.
* A run in shadow mode is held against what its own packs would have said, had they been enforced.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

import orjson

from ledgercli import cel, paths
from ledgercli.books import Books
from ledgercli.history import Keeps
from ledgercli.intake import is_unkept
from ledgercli.past import Follower
from ledgercli.policy import Effect, Pack
from ledgercli.records import Finding, Proposal, Verdict
from ledgercli.redaction import holds_mask
from ledgercli.rulebook import Rulebook
from ledgercli.shelf import Shelf
from ledgercli.state import State
from ledgercli.story import UNSEALED

Change = Literal["newly-denied", "newly-to-approve", "newly-allowed", "cannot-tell"]
CHANGES: Final[tuple[Change, ...]] = ("newly-denied", "newly-to-approve", "newly-allowed", "cannot-tell")
_NOTHING: Final = Verdict("allow")
_TO: Final[Mapping[str, Change]] = {"deny": "newly-denied", "require_approval": "newly-to-approve"}


@dataclass(frozen=True, slots=True)
class Flip:
    """A proposal that the changed packs judge otherwise.

    Arguments:
        step: its number.
        tool: the tool.
        args: the arguments.
        change: what is new.
        rule: the rule that decides now; of what is newly allowed, the one that decided then.
        recorded: the effect of then.
        replayed: the effect of now.
        reason: why, in the words of the verdict that refuses.
        facts: what that rule read.
        exact: whether it is certain; else it is behind the frontier.
        place: where the rule stands, as FILE:LINE; None: it is built in, or none.

    """

    step: int
    tool: str
    args: Mapping[str, Any]
    change: Change
    rule: str | None
    recorded: Effect
    replayed: Effect
    reason: str | None
    facts: Mapping[str, Any]
    exact: bool
    place: str | None = None


@dataclass(frozen=True, slots=True)
class Versions:
    """One pack, then and now.

    Arguments:
        then: its version as recorded, "" if it has none; None: it took no part.
        now: its version now, "" if it has none; None: it takes no part.
        file: where the one of now stands; None: it is the recorded one, or takes no part.

    """

    then: str | None
    now: str | None
    file: str | None

    @property
    def same(self) -> bool:
        """Whether it is the pack that was recorded."""
        return self.file is None and self.now is not None


@dataclass(frozen=True, slots=True)
class WhatIf:
    """What the changed packs say to one run.

    Arguments:
        path: its ledger.
        status: how it ended; `unsealed` without a close.
        proposals: how many were judged.
        flips: those judged otherwise, in order.
        frontier: the step from which on the agent would have seen something else; None: never, all is exact.
        packs: name of a pack → its versions, then and now.

    """

    path: str
    status: str
    proposals: int
    flips: tuple[Flip, ...]
    frontier: int | None
    packs: Mapping[str, Versions]

    def count(self, change: Change) -> int:
        """How many proposals have changed in this way."""
        return sum(flip.change == change for flip in self.flips)


class WhatIfs:
    """Judges runs by changed packs.

    Arguments:
        packs: files of packs that take the place of those of the same name, or are added.
        only_packs: whether nothing else judges.

    """

    def __init__(self, packs: Sequence[str], *, only_packs: bool = False) -> None:
        self.recorded, self.enforced = Shelf(), Shelf()
        self.changed = Shelf(packs, only_packs=only_packs)

    def judge(self, path: Path | str) -> WhatIf:
        """Judge one run.

        Raises:
            UnreadableInputError: there is no such file.
            LedgerFormatError: a line is damaged, does not follow the one before or does not fit.
            InvalidDocumentError: what the ledger carries does not load, or the packs do not fit its tools.

        """
        return _Judging(str(path), self).done()

    def keeps(self, opening: Mapping[str, Any]) -> Keeps:
        """What a history must keep for the rules of then and of now."""
        one, other = self.recorded.recorded(opening).keeps, self.changed.changed(opening).rules.keeps
        return Keeps(one.calls or other.calls, one.user or other.user, one.results or other.results)


class _Judging:
    """One run."""

    def __init__(self, path: str, judges: WhatIfs) -> None:
        self._path, self._judges = path, judges
        self._follower = Follower(path, judges.recorded, judges.keeps)
        self._rules: tuple[Rulebook | None, _Rules | None] = (None, None)
        self._flips: list[Flip] = []
        self._frontier: int | None = None

    def done(self) -> WhatIf:
        proposals = 0
        denied: int | None = None
        for books, record in self._follower.judged():
            proposals += 1
            rules = self._in_force(books)
            self._proposal(rules, books, record)
            if denied is None and rules.recording and not Verdict.from_json(record["verdict"]).runs:
                denied = record["step"]  # behind it the recording itself is no longer what would have happened
                self._frontier = min(self._frontier or denied, denied)
        closed = self._follower.books.closed if self._follower.books else None
        status = UNSEALED if closed is None else str(closed["status"])
        opening = self._follower.opening
        return WhatIf(self._path, status, proposals, tuple(self._flips), self._frontier, self._packs(opening))

    def _in_force(self, books: Books) -> _Rules:
        """The rules of then and now; a resumption may change them."""
        before, rules = self._rules
        if rules is None or before is not books.rules:
            opening, later = self._follower.opening, self._follower.later
            enforced = None
            if opening.get("mode") == "shadow":
                enforced = self._judges.enforced.changed(opening, later).rules
            rules = _Rules(opening, books.rules, enforced, self._judges.changed.changed(opening, later).rules)
            self._rules = (books.rules, rules)
        return rules

    def _proposal(self, rules: _Rules, books: Books, record: Mapping[str, Any]) -> None:
        step, proposal = record["step"], Proposal.from_json(record["action"])
        now = cel.Timestamp.parse(record["now"])
        if is_unkept(record["verdict"], record["action"]["args"]):
            return
        then = rules.then(books, proposal, now, record)
        state = rules.state(books.state)
        verdict = rules.now.enforcer.judge(proposal, state, books.history, now, step=step, masked=True)
        hidden = rules.hidden(then, verdict, proposal, state, books, now)
        change: Change | None = "cannot-tell" if hidden else _change(_asked(then), verdict.effect)
        exact = self._frontier is None
        if exact and (hidden or rules.departs(then, verdict)):
            self._frontier = step
        if change is None:
            return
        finding = None if hidden else _decides(then, verdict, change)
        rule = hidden if finding is None else finding.rule
        judge, where = (rules.of_then, books.state) if change == "newly-allowed" else (rules.now, state)
        consulted = judge.enforcer.consulted(proposal, where, books.history, now)
        self._flips.append(
            Flip(
                step=step,
                tool=proposal.tool,
                args=proposal.args,
                change=change,
                rule=rule,
                recorded=_asked(then),
                replayed=verdict.effect,
                reason=None if finding is None else finding.error,
                facts=orjson.loads(orjson.dumps(consulted.get(rule or "", {}), paths.plain)),
                exact=exact,
                place=_place(rule, judge.packs),
            )
        )

    def _packs(self, opening: Mapping[str, Any]) -> dict[str, Versions]:
        """The packs of then and of now."""
        old = {pack.name: pack for pack in self._judges.recorded.recorded(opening, self._follower.later).packs}
        new = {pack.name: pack for pack in self._judges.changed.changed(opening, self._follower.later).rules.packs}
        return {name: _versions(old.get(name), new.get(name)) for name in {**old, **new}}


class _Rules:
    """The rules of then and of now, for one ledger."""

    def __init__(
        self, opening: Mapping[str, Any], recorded: Rulebook, enforced: Rulebook | None, now: Rulebook
    ) -> None:
        self.recorded, self.now = recorded, now
        self.of_then = enforced or recorded
        self.recording = opening["engine"]["kind"] == "recording" and enforced is None
        self._enforced = enforced
        self._defaults = _other_defaults(opening, recorded, now)
        self._latest: tuple[Any, State] | None = None
        self._unchanged = _unchanged(recorded.packs, now.packs)

    def then(self, books: Books, proposal: Proposal, now: cel.Timestamp, record: Mapping[str, Any]) -> Verdict:
        """The verdict of then; of a run in shadow mode that of its packs, had they been enforced."""
        if self._enforced is None:
            return Verdict.from_json(record["verdict"], record["step"])
        return self._enforced.enforcer.judge(
            proposal, books.state, books.history, now, step=record["step"], masked=True
        )

    def departs(self, then: Verdict, verdict: Verdict) -> bool:
        """Whether the agent would have seen something else; in shadow mode it saw that everything ran."""
        if self._enforced is not None:
            return _told(verdict) != _told(_NOTHING)
        if then.approval is not None and verdict.effect == "require_approval":  # it would be answered so again
            return False
        return _told(verdict) != _told(then)

    def state(self, state: State) -> State:
        """The state with the defaults of the packs of now, where those of then were in force."""
        if not self._defaults:
            return state
        if self._latest is None or self._latest[0] is not state:
            tree = state.tree
            for name, value in self._defaults.items():
                if paths.text(("constraints", name)) not in state.origins:  # no transition has set it
                    tree = paths.put(tree, ("constraints", name), value)
            self._latest = state, State(tree, state.origins)
        return self._latest[1]

    def hidden(  # noqa: PLR0913 - a judgement's parts, each by its name
        self, then: Verdict, verdict: Verdict, proposal: Proposal, state: State, books: Books, now: cel.Timestamp
    ) -> str | None:
        """The rule that needs a value which redaction hid, if the answer hangs on that.

        A rule that has not changed has judged the value itself, then; where the mask comes to the same, that stands.
        """
        if not holds_mask(verdict.reads):
            return None
        consulted = self.now.enforcer.consulted(proposal, state, books.history, now)
        needing = [rule for rule, reads in consulted.items() if holds_mask(reads)]
        if any(finding.effect == "deny" and finding.rule not in needing for finding in verdict.failed):
            return None
        if changed := [rule for rule in needing if rule not in self._unchanged]:
            return changed[0]
        again = self.recorded.enforcer.judge(proposal, books.state, books.history, now, masked=True)
        return needing[0] if needing and again.effect != _asked(then) else None


def _decides(then: Verdict, verdict: Verdict, change: Change) -> Finding | None:
    """The finding that makes the difference: what fails now and did not then, or the other way round."""
    before, after = (verdict, then) if change == "newly-allowed" else (then, verdict)
    earlier = {finding.rule for finding in (*before.failed, *before.warned)}
    same = [finding for finding in after.failed if finding.effect == _asked(after)]
    return next((finding for finding in same if finding.rule not in earlier), same[0] if same else None)


def _change(then: Effect, now: Effect) -> Change | None:
    """What is new, if anything is: a warning runs as an allowance does."""
    if then == now or {then, now} <= {"allow", "warn"}:
        return None
    return _TO.get(now, "newly-allowed")


def _asked(verdict: Verdict) -> Effect:
    """The effect before a person answered."""
    return verdict.effect if verdict.approval is None else "require_approval"


def _told(verdict: Verdict) -> tuple[Any, ...]:
    """What a verdict tells the agent; a warning tells it something too."""
    return verdict.runs or verdict.effect, verdict.reason, verdict.hint, verdict.halts


def _other_defaults(opening: Mapping[str, Any], recorded: Rulebook, now: Rulebook) -> dict[str, Any]:
    """The constraints that packs have another default for now, where the run had the default of then."""
    then, new = _defaults(recorded.packs), _defaults(now.packs)
    own = recorded.scenario.file.constraints if recorded.scenario else {}
    began = opening["state"]["constraints"]
    return {
        name: value
        for name, value in new.items()
        if name not in own
        and not paths.same(value, then.get(name, paths.ABSENT))
        and paths.same(began.get(name, paths.ABSENT), then.get(name, paths.ABSENT))
    }


def _defaults(packs: Sequence[Pack]) -> dict[str, Any]:
    return {name: value for pack in packs for name, value in pack.file.constraints.items()}


def _unchanged(then: Sequence[Pack], now: Sequence[Pack]) -> set[str]:
    """The rules, as `pack/rule`, that judge now as they did then."""
    old = {pack.name: pack for pack in then}
    same: set[str] = set()
    for pack in now:
        before = old.get(pack.name)
        if before is None or before.file.define != pack.file.define or before.file.active != pack.file.active:
            continue
        rules = {rule.name: rule for rule in before.file.rules}
        same.update(f"{pack.name}/{rule.name}" for rule in pack.file.rules if rules.get(rule.name) == rule)
    return same


def _versions(then: Pack | None, now: Pack | None) -> Versions:
    same = then is None or now is None or then.digest == now.digest
    file = None if now is None or (same and then is not None) else now.document.source.name
    return Versions(_version(then), _version(now), file)


def _version(pack: Pack | None) -> str | None:
    if pack is None:
        return None
    return "" if pack.file.version is None else str(pack.file.version)


def _place(rule: str | None, packs: Sequence[Pack]) -> str | None:
    """Where a rule stands that is called `pack/rule`; a built-in one stands nowhere."""
    of, _, name = (rule or "").rpartition("/")
    for pack in packs:
        if pack.name == of:
            numbers = [number for number, one in enumerate(pack.file.rules) if one.name == name]
            return pack.document.position(("rules", *numbers)) if numbers else pack.document.position(("default",))
    return None
