"""Recorded steps made cases: `ledger capture`.

Invariants:
* A case holds no fact and no past step that its verdict does not need.
* With another expectation than what the rules say, what is known about the records that the call names stays too.
* What was masked is never written. Where a case cannot say what the verdict hangs on it names the step in its ledger.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path as File
from typing import Any

from ledgercli.capture.pseudonyms import Pseudonyms
from ledgercli.capture.recalling import Step, plain
from ledgercli.capture.shrinking import Bench, Held, known, meets, only_of_file, said, shrunk
from ledgercli.casework.groups import Group
from ledgercli.casework.judging import rules_of, shortest
from ledgercli.errors import LedgerCliError
from ledgercli.paths import Path
from ledgercli.records import Proposal, Verdict
from ledgercli.redaction import holds_mask
from ledgercli.why.related import related
from ledgercli.why.situations import read


@dataclass(frozen=True)
class Wish:
    """What a case is to expect.

    Arguments:
        effect: the effect; None: what the rules of the step say.
        rule: the rule that is to fail; it need not exist yet.
        name: what the case is to be called; None: after its step.

    """

    effect: str | None = None
    rule: str | None = None
    name: str | None = None


@dataclass(frozen=True, eq=False)
class Captured:
    """A case made of a step.

    Arguments:
        step: the step.
        wish: what it was to expect.
        benches: what judges it: its file, and where that does not say what is expected also the rules of then.
        case: its keys and values, as they are written, without a name.
        at: why it names the step in its ledger; None: it does not.
        kept: how many facts it has.
        known: how many were known.
        untouched: where a value was to be renamed and was not, since the verdict hangs on it.
        renamed: whether people and things in it have other names.

    """

    step: Step
    wish: Wish
    benches: Sequence[Bench]
    case: Mapping[str, Any]
    at: str | None
    kept: int
    known: int
    untouched: Sequence[str] = ()
    renamed: bool = False

    def stands(self, verdict: Verdict) -> bool:
        """Whether a verdict of its file is that of the step; under other names its messages may be others."""
        first = self.benches[0]
        return told(verdict) == told(first.said) if self.renamed else said(verdict) == said(first.said)

    @property
    def name(self) -> str:
        """What it is called if nothing else is called so."""
        file = File(self.step.path).name.removesuffix(".jsonl").removesuffix(".ledger")
        return self.wish.name or f"{self.step.situation.proposal.tool} from {file}@{self.step.number}"


class Capturing:
    """Makes a step a case of a file.

    Arguments:
        step: the step.
        group: the file in which the case is to stand.
        wish: what it is to expect.

    What the packs of the file say of it is `here`.

    """

    def __init__(self, step: Step, group: Group, wish: Wish) -> None:
        self._step, self._group, self._wish = step, group, wish
        self._seen = step.under(group.rules)
        self.here = self._seen.judged(group.rules.enforcer)

    @cached_property
    def verdict(self) -> Verdict:
        """What the rules of the step say."""
        return self._step.situation.judged(self._step.rules.enforcer)

    @property
    def agrees(self) -> bool:
        """Whether the packs of the file say the same."""
        return self.here.effect == self.verdict.effect and rules_of(self.here) == rules_of(self.verdict)

    def done(self) -> Captured:
        """Make it.

        Raises:
            LedgerCliError: nobody can tell any more how it was judged, since the ledger has masks for what was read.

        """
        if self._is_untold():
            raise LedgerCliError(
                f"{self._step.address} cannot be captured: its verdict read what the ledger has redacted",
                fix="write the case by hand, with values of your own",
            )
        step, everything = self._step, known(self._seen)
        facts = sum(path[0] == "facts" for path in everything)
        benches = self._benches()
        why = self._masked_call()
        held = None if why else self._held(benches, everything)
        if held is None:
            return self.as_recorded(why)
        proposal = step.situation.proposal
        args = {"args": proposal.args} if proposal.args else {}
        case = {**held.case(), "propose": {"tool": proposal.tool, **args}, "expect": self._expected()}
        kept = sum(path[0] == "facts" for path in held.known)
        return Captured(step, self._wish, benches, case, None, kept, facts)

    def as_recorded(self, why: str | None = None) -> Captured:
        """Make it a case that names the step in its ledger; `why`: what a case cannot hold."""
        ledger = os.path.relpath(self._step.path, self._group.folder)
        case = {"at": f"{ledger}@{self._step.number}", "expect": self._expected()}
        facts = sum(path[0] == "facts" for path in known(self._seen))
        return Captured(self._step, self._wish, self._benches(), case, why or self._why(), 0, facts)

    # ---- what is expected

    def _expected(self) -> Any:
        verdict, effect = self.verdict, self._wish.effect or self.verdict.effect
        if self._wish.rule is not None:
            return {"effect": effect, "rules_include": [self._wish.rule]}
        short = shortest(self._group.names)
        rules = rules_of(verdict)
        if effect != verdict.effect or not rules or any(rule not in short for rule in rules):
            return effect
        told: dict[str, Any] = {"effect": effect, "rules": [short[rule] for rule in rules]}
        told |= {"error": verdict.reason} if verdict.reason else {}
        return told | ({"halts": True} if verdict.halts else {})

    def _differs(self) -> bool:
        """Whether something else is expected than what the rules of the step say."""
        rule = self._wish.rule
        named = rule is None or self._group.names.get(rule, rule) in rules_of(self.verdict)
        return not named or self._wish.effect not in (None, self.verdict.effect)

    def _benches(self) -> list[Bench]:
        """Return what must go on judging as it does."""
        benches = [Bench(self._group, self._step, self.here)]
        if said(self.here) != said(self.verdict):
            group = replace(self._group, rules=self._step.rules, packs=self._step.rules.packs)
            benches.append(Bench(group, self._step, self.verdict))
        return benches

    # ---- what it holds

    def _held(self, benches: Sequence[Bench], everything: Mapping[Path, Any]) -> Held | None:
        """Return what a case must hold; None where it cannot say what the verdict hangs on."""

        def holds(held: Held) -> bool:
            return all(bench.holds(held) for bench in benches)

        unset = list(only_of_file(self._group.state.model_dump(), self._seen))
        labels = [*self.here.reads, *self.verdict.reads]
        reads = [one.path[1:] for one in map(read, labels) if one.path[:1] == ("state",) and len(one.path) > 1]
        some = {path: value for path, value in everything.items() if any(meets(one, path) for one in reads)}
        held = Held(some, unset, self._step.past)
        if not holds(held):
            held = Held(everything, unset, self._step.past)
            if not holds(held):
                return None
        held = shrunk(held, holds)
        if self._differs():
            more = replace(held, known={**held.known, **self._related(held)})
            held = more if holds(more) else held  # what is known may be more than a case can say
        return None if holds_mask(list(held.known.values())) or holds_mask(held.past) else held

    def _related(self, held: Held) -> dict[Path, Any]:
        declared = self._group.rules.vocabulary.names("facts")
        found = related(self._step.situation.proposal.args, plain(self._seen.state.tree["facts"]))
        return {
            path[1:]: value
            for path, value in found
            if path[2] in declared and not holds_mask(value) and path[1:] not in held.known
        }

    def _masked_call(self) -> str | None:
        args = self._step.situation.proposal.args
        return "its ledger has redacted what it calls with" if holds_mask(args) else None

    def _is_untold(self) -> bool:
        """Whether masks were read, and what they come to is not what the values came to."""
        masked = holds_mask(self.verdict.reads) or holds_mask(self.here.reads)
        return masked and any(said(one) != said(self._step.recorded) for one in (self.verdict, self.here))

    def _why(self) -> str:
        """Say why a case cannot say what the verdict hangs on."""
        reads = {**self.here.reads, **self.verdict.reads}
        if holds_mask(reads):
            return "its ledger has redacted what the verdict read"
        if sources := [label for label in reads if label.startswith("source(")]:
            return f"the verdict hangs on {sources[0]}, and what a case states counts as known from the task"
        if "now" in reads and self._group.now is not None:
            return f"the verdict hangs on the time, and {self._group.file} has a `now` of its own"
        return "the verdict hangs on what a case cannot state"


def renamed(made: Captured, names: Pseudonyms) -> Captured:
    """Return a case under other names; a word stays with which alone the verdict is what it was.

    Raises:
        LedgerCliError: the case names its step in the ledger, which has the names.

    """
    if made.at is not None:
        raise LedgerCliError(
            f"{made.step.address} cannot have other names: {made.at}, so that its case names the step in the ledger",
            fix="leave out --pseudonyms, or write the case by hand",
        )
    wanted = _came(made.benches, made.case)
    kept: frozenset[str] = frozenset()
    if _came(made.benches, names.renamed(made.case)) != wanted:
        kept = frozenset(names.words(made.case))
        for word in sorted(kept):
            fewer = kept - {word}
            kept = fewer if _came(made.benches, names.renamed(made.case, fewer)) == wanted else kept
    case = names.renamed(made.case, kept)
    if isinstance(case["expect"], Mapping) and "error" in case["expect"]:
        verdict = _verdicts(made.benches, case)[-1]
        assert verdict is not None, "a case under other names is judged as before"
        case["expect"] = {**case["expect"], "error": verdict.reason}
    return replace(made, case=case, untouched=names.untouched(made.case, kept) if kept else (), renamed=True)


def _verdicts(benches: Sequence[Bench], case: Mapping[str, Any]) -> list[Verdict | None]:
    held = {key: case[key] for key in ("state", "unset", "history") if key in case}
    proposal = Proposal(case["propose"]["tool"], case["propose"].get("args", {}))
    return [bench.verdict(held, proposal) for bench in benches]


def _came(benches: Sequence[Bench], case: Mapping[str, Any]) -> list[object]:
    return [verdict and told(verdict) for verdict in _verdicts(benches, case)]


def told(verdict: Verdict) -> object:
    """Return what must stay of a verdict under other names, which messages may tell."""
    return verdict.effect, rules_of(verdict), verdict.halts, bool(verdict.missing)
