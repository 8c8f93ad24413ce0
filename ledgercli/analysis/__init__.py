"""What is wrong with packs that load: rules that cannot do what they were written for, names that stand in vain.

Decided by sets of values on the syntax tree, where that proves it; elsewhere nothing is said.

Invariants:
* A finding holds of every call in every state that the files which are checked allow, as the enforcer judges it.
* That nothing uses a name is not told of a file which is also used where something is an error.
* A finding about a file is told only if it holds in each of the contexts in which the file was checked without error;
  a deadlock, if it holds in one scenario.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Iterator
from dataclasses import dataclass, field

from ledgercli.analysis import applying, pairs, reaching, trust, unread, values, words
from ledgercli.analysis.codes import IN_VAIN
from ledgercli.analysis.context import Context, Subject
from ledgercli.analysis.findings import Finding
from ledgercli.analysis.looking import looks
from ledgercli.documents import Document
from ledgercli.policy import Pack
from ledgercli.sources import Problem

__all__ = ["Analysis", "Context"]


@dataclass(slots=True)
class Analysis:
    """Findings over several contexts."""

    _kept: dict[str, dict[tuple[Hashable, ...], Finding]] = field(default_factory=dict)  # by file
    _deadlocks: dict[tuple[Hashable, ...], Problem] = field(default_factory=dict)
    _run: set[tuple[str, ...]] = field(default_factory=set)  # what scenarios let run together
    _covered: set[str] = field(default_factory=set)  # packs that a scenario has
    _spoilt: frozenset[str] = frozenset()  # files that are also used where something is an error

    @classmethod
    def of(cls, contexts: Iterable[Context], wrong: Collection[str] = ()) -> Analysis:
        """Analyse contexts: scenarios first, those that give the fewest facts before others.

        Arguments:
            contexts: what is checked together.
            wrong: files with errors; a context that has one is left out.

        """
        found = list(contexts)
        broken = [context for context in found if not set(wrong).isdisjoint(context.files)]
        analysis = cls(_spoilt=frozenset(file for context in broken for file in context.files))
        for context in sorted((one for one in found if one not in broken), key=_given):
            analysis.add(context)
        return analysis

    def add(self, context: Context) -> None:
        """Analyse what is checked together; a file's earlier findings stay only if they are found again."""
        files = context.files
        by_itself = context.toolset is None  # a pack that fits every toolset: nothing is said of the tools' side
        self._find_deadlocks(context)
        if all(self._kept.get(file) == {} for file in files):
            return  # nothing that could be found would be told
        found: dict[str, dict[tuple[Hashable, ...], Finding]] = {file: {} for file in files}
        for finding in self._findings(context):
            found.setdefault(finding.problem.file, {}).setdefault(finding.identity, finding)
        for file, mine in found.items():
            kept = self._kept.get(file)
            if kept is not None:
                stays = {key: one for key, one in kept.items() if key in mine or (by_itself and not one.alone)}
            self._kept[file] = mine if kept is None else stays

    def problems(self) -> list[Problem]:
        """Return what holds in all contexts, in the order of files and lines."""
        kept = [one.problem for found in self._kept.values() for one in found.values()]
        kept = [one for one in kept if one.file not in self._spoilt or one.code not in IN_VAIN]
        told = {(problem.file, problem.line) for problem in kept}
        stuck = [problem for problem in self._deadlocks.values() if (problem.file, problem.line) not in told]
        return sorted([*kept, *stuck])

    def _find_deadlocks(self, context: Context) -> None:
        """Look for deadlocks once for the same packs and tools: where one scenario is stuck, another may have the fact.

        Case files say how things stand at some step, not how a run begins: they count for packs without a scenario.
        """
        packs = [pack.document.source.name for pack in context.packs]
        key = tuple(name for name in context.files if context.scenario is None or name != context.files[-1])
        if key in self._run or (context.scenario is None and self._covered.issuperset(packs)):
            return
        self._run.add(key)
        if context.scenario is not None:
            self._covered.update(packs)
        for finding in reaching.check(context):
            self._deadlocks.setdefault(finding.identity, finding.problem)

    def _findings(self, context: Context) -> Iterator[Finding]:
        """Yield the findings of one context, without looking for those that would not be told."""
        seen = list(looks(context))
        wrong: dict[tuple[Pack, int], list[Finding]] = {}
        for look, finding in values.check(context, seen):
            if look.pack is not None and look.rule is not None:
                wrong.setdefault((look.pack, look.rule), []).append(finding)
            yield finding
        packs = [pack for pack in context.packs if self._is_open(pack.document)]
        for pack in packs:
            yield from _of_rules(context, pack, {number for one, number in wrong if one is pack})
        if packs:
            yield from trust.trusting(context, seen)
            yield from words.check(context, packs)
        yield from unread.check(context, seen)
        if context.toolset is not None and self._is_open(context.toolset.document, "unguarded-write"):
            yield from trust.unguarded(context)

    def _is_open(self, document: Document, code: str | None = None) -> bool:
        """Whether a finding about a file would be told: of a code, or of any."""
        kept = self._kept.get(document.source.name)
        return kept is None or any(code in (None, one.problem.code) for one in kept.values())


def _given(context: Context) -> tuple[bool, int]:
    """How much is given from the start."""
    file = None if context.scenario is None else context.scenario.file
    return file is None, 0 if file is None else len(file.facts) + len(file.flags)


def _of_rules(context: Context, pack: Pack, wrong: Collection[int]) -> Iterator[Finding]:
    """Yield what is wrong with a pack's rules; what follows from an impossible value is not told again."""
    sound: list[Subject] = []
    for subject in context.of_pack(pack):
        found = [] if subject.number in wrong else list(applying.check(subject))
        yield from found
        if not found and subject.number not in wrong:
            sound.append(subject)
    yield from pairs.check(context, pack, sound)
