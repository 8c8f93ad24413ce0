"""Which mistakes in a pack its cases would catch: every mutant judged by the cases that can see it.

Invariants:
* A mutant is caught where a case that passes with the pack as it is fails with the mutant. One that does not load is
  told apart: nobody would have run it.
* It counts as the same only where it is proved that no verdict differs.
* Cases that do not pass, or cannot be judged, catch nothing.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, Final, Literal

from ledgercli import cel, processes
from ledgercli.casework.finding import Found
from ledgercli.casework.groups import Group, Groups
from ledgercli.casework.judging import differing, rules_of, where_of
from ledgercli.casework.outcomes import Where
from ledgercli.casework.preparing import Preparer, Ready
from ledgercli.intake import present
from ledgercli.mutation.mutating import Mutant, mutants
from ledgercli.mutation.recompiling import Changed, same_file
from ledgercli.mutation.slips import Words
from ledgercli.mutation.suggesting import Suggestion, suggest
from ledgercli.records import Verdict
from ledgercli.vocabulary import Vocabulary

Came = Literal["caught", "same", "survived", "unloadable"]
_WHOLE: Final = ""  # stands for what belongs to no rule
_TOLD: Final = 3  # tools that are named


@dataclass(frozen=True, slots=True)
class Tried:
    """What came of one mutant.

    Arguments:
        pack: the pack's name.
        rule: the rule that was changed; empty for what belongs to the pack.
        part: the same by name: a rule's name, `define large`, `constraint limit`, `active`.
        change: what was done.
        where: where.
        before: what stood there.
        after: what stands there now; empty: nothing.
        came: what came of it.
        by: the first case that caught it, and its name.
        why: why none did, or why it does not load.
        into: the file that a case for it belongs into.
        lines: such a case, as YAML; empty if none was found.
        tried: how many situations were judged to find one.

    """

    pack: str
    rule: str
    part: str
    change: str
    where: Where
    before: str
    after: str
    came: Came
    by: tuple[Where, str] | None = None
    why: str = ""
    into: str = ""
    lines: tuple[str, ...] = ()
    tried: int = 0


@dataclass(slots=True)
class Mutation:
    """What came of the mutants of one pack.

    Arguments:
        pack: its name.
        file: its file.
        tried: each mutant, in the order of lines.

    """

    pack: str
    file: str
    tried: list[Tried] = field(default_factory=list)

    def count(self, came: Came) -> int:
        """How many came out so."""
        return sum(one.came == came for one in self.tried)

    @property
    def score(self) -> float:
        """How many of those that can be caught are caught, in percent."""
        able = self.count("caught") + self.count("survived")
        return 100.0 * self.count("caught") / able if able else 100.0

    @property
    def survivors(self) -> list[Tried]:
        """The mutants that no case catches, and that are not proved to be the same."""
        return [one for one in self.tried if one.came == "survived"]


@dataclass(frozen=True, slots=True)
class Task:
    """The mutants of one rule of one pack, or of what belongs to no rule."""

    pack: str
    file: str
    rule: str
    groups: tuple[str, ...]

    @property
    def key(self) -> str:
        """The same as a text."""
        return "\0".join((self.pack, self.file, self.rule, *self.groups))

    @classmethod
    def of(cls, key: str) -> Task:
        """Read it back."""
        pack, file, rule, *groups = key.split("\0")
        return cls(pack, file, rule, tuple(groups))


def tasks(found: Found) -> list[Task]:
    """Return what there is to do: for each pack that cases are about, its rules."""
    groups = Groups(tuple(found.cases), tuple(found.scenarios))
    about: dict[str, tuple[Any, list[str]]] = {}
    for name in found.files:
        group, _ = groups.of(name)
        for pack in group.packs if group is not None else ():
            file = os.path.realpath(pack.document.source.name)
            about.setdefault(file, (pack, []))[1].append(name)
    return [
        Task(pack.name, pack.document.source.name, rule, tuple(names))
        for pack, names in about.values()
        for rule in (_WHOLE, *(rule.name for rule in pack.file.rules))
    ]


def run(found: Found, work: Sequence[Task], jobs: int = 1) -> Iterator[list[Tried]]:
    """Yield what came of the mutants of each task, in order."""
    make = partial(_maker, tuple(found.cases), tuple(found.scenarios))
    yield from processes.spread([task.key for task in work], make, jobs)


def together(work: Sequence[Task], results: Iterator[list[Tried]]) -> list[Mutation]:
    """Return what came of each pack."""
    packs: dict[str, Mutation] = {}
    for task, tried in zip(work, results, strict=False):
        packs.setdefault(task.file, Mutation(task.pack, task.file)).tried += tried
    for one in packs.values():
        one.tried.sort(key=lambda tried: (tried.where.line, tried.where.column))
    return list(packs.values())


def words_of(vocabulary: Vocabulary) -> Words:
    """Return which words may take the place of which: tools, tags, members of enumerations."""
    tools = {name: frozenset(tool.args) for name, tool in vocabulary.tools.items()}
    writes = frozenset(name for name, tool in vocabulary.tools.items() if tool.access == "write")
    sets: dict[tuple[str, ...], None] = {("read", "write"): None}
    sets[tuple(dict.fromkeys(tag for tool in vocabulary.tools.values() for tag in tool.tags))] = None
    for tool in vocabulary.tools.values():
        for schema in (*tool.args.values(), tool.returns):
            sets |= dict.fromkeys(_enumerations(schema))
    return Words(tools, writes, tuple(sets))


def _enumerations(schema: Any) -> Iterator[tuple[str, ...]]:
    """Yield the words of each enumeration in a schema."""
    if isinstance(schema, list):
        for item in schema:
            yield from _enumerations(item)
    elif isinstance(schema, dict):
        listed = schema.get("enum")
        if isinstance(listed, list) and all(isinstance(word, str) for word in listed):
            yield tuple(listed)
        for item in schema.values():
            yield from _enumerations(item)


def _maker(cases: tuple[str, ...], scenarios: tuple[str, ...]) -> Callable[[str], list[Tried]]:
    groups, now = Groups(cases, scenarios), present()
    benches: dict[str, Bench | None] = {}
    made: dict[str, list[Mutant]] = {}

    def bench(name: str) -> Bench | None:
        if name not in benches:
            group, _ = groups.of(name)
            benches[name] = None if group is None else Bench(group, now)
        return benches[name]

    def tried(key: str) -> list[Tried]:
        task = Task.of(key)
        where = [one for name in task.groups if (one := bench(name)) is not None]
        if task.file not in made:
            made[task.file] = where[0].mutants(task.file) if where else []
        return [judged(one, where, task.pack) for one in made[task.file] if one.rule == task.rule]

    return tried


class Bench:
    """The cases of one group that pass.

    Arguments:
        group: the group.
        now: the time where nobody says one.

    """

    def __init__(self, group: Group, now: cel.Timestamp) -> None:
        self.group, self._now = group, now

    @cached_property
    def passing(self) -> list[tuple[Ready, Verdict]]:
        """The cases that pass, with their verdicts."""
        ready = (case for case in Preparer(self.group, self._now).all() if isinstance(case, Ready))
        judged = ((case, _judge(self.group, case)) for case in ready)
        return [(case, verdict) for case, verdict in judged if not differing(case.wanted, verdict)]

    def mutants(self, file: str) -> list[Mutant]:
        """Return the mutants of one of its packs."""
        pack = next(one for one in self.group.packs if same_file(one, file))
        return mutants(pack, words_of(self.group.rules.vocabulary))

    def catching(self, changed: Changed) -> Ready | None:
        """Return the first case that fails with a mutant; those that are about its rule are asked first."""
        group = changed.as_group()
        if changed.mutant.constraint:
            again = {(tuple(one.place), one.row): one for one in Preparer(group, self._now).all()}
        else:
            again = {}
        for case, _ in self.seeing(changed):
            then = again.get((tuple(case.place), case.row), case)
            if not isinstance(then, Ready) or differing(then.wanted, _judge(group, then)):
                return case
        return None

    def seeing(self, changed: Changed) -> list[tuple[Ready, Verdict]]:
        """Return the cases whose verdict may be another, the likeliest first."""
        mutant, tools = changed.mutant, set(changed.tools)
        rule = f"{changed.before.name}/{mutant.rule}"
        read = f"state.constraints.{mutant.constraint}" if mutant.constraint else "\0"
        cases = [one for one in self.passing if one[0].situation.proposal.tool in tools]

        def far(one: tuple[Ready, Verdict]) -> bool:
            found = (*one[1].failed, *one[1].warned, *one[1].overridden, *one[1].shadowed)
            names = {finding.rule for finding in found}
            return rule not in names and not any(label.startswith(read) for label in one[1].reads)

        return sorted(cases, key=far)

    def moved(self, changed: Changed) -> list[Ready]:
        """Return the cases whose verdict is another with a mutant, in what they do not ask for."""
        if changed.mutant.constraint:  # they would have to be made ready again
            return []
        group = changed.as_group()
        return [case for case, verdict in self.seeing(changed) if _otherwise(verdict, _judge(group, case))]


def _judge(group: Group, case: Ready) -> Verdict:
    one = case.situation
    return group.rules.enforcer.judge(one.proposal, one.state, one.history, one.now, masked=case.masked)


def judged(mutant: Mutant, benches: Sequence[Bench], pack: str) -> Tried:
    """Return what comes of a mutant in the cases of some groups that are about its pack."""
    told = partial(
        Tried,
        pack,
        mutant.rule,
        mutant.part,
        mutant.change,
        Where(mutant.file, mutant.line, mutant.column),
        mutant.before,
        mutant.after,
    )
    everywhere = [(bench, Changed(bench.group, mutant)) for bench in benches]
    for _, changed in everywhere:
        problems = changed.problems()
        if problems:
            return told("unloadable", why=problems[0].message)
    for bench, changed in everywhere:
        case = bench.catching(changed)
        if case is not None:
            return told("caught", by=(where_of(bench.group.document, (*case.place, "name")), case.name))
    suggestions: list[Suggestion] = []
    for bench, changed in everywhere:
        one = suggest(changed, [case for case, _ in bench.seeing(changed)], bench.moved(changed))
        if one.lines:
            why = _why(everywhere)
            return told("survived", why=why, into=bench.group.file, lines=one.lines, tried=one.tried)
        suggestions.append(one)
    tried = sum(one.tried for one in suggestions)
    if all(one.same for one in suggestions) and any(changed.tools for _, changed in everywhere):
        return told("same", tried=tried)
    unwritable = any(one.unwritable for one in suggestions)
    what = "what differs is nothing that a case can say or set up" if unwritable else ""
    return told("survived", why="; ".join(part for part in (_why(everywhere), what) if part), tried=tried)


def _why(everywhere: Sequence[tuple[Bench, Changed]]) -> str:
    """Say why no case catches a mutant."""
    tools = list(dict.fromkeys(tool for _, changed in everywhere for tool in changed.tools))
    seen = [one for bench, changed in everywhere for one in bench.seeing(changed)]
    names = ", ".join(tools[:_TOLD]) + (f" and {len(tools) - _TOLD} more" if len(tools) > _TOLD else "")
    if not tools:
        return "no rule for a tool that there is reads it"
    if not seen:
        return f"no case proposes {names}"
    for bench, changed in everywhere:
        for case in bench.moved(changed):
            where = where_of(bench.group.document, (*case.place, "name"))
            what = _otherwise(_judge(bench.group, case), _judge(changed.as_group(), case))
            return f"{where} comes out with {what}, which that case does not ask for"
    timely = any(changed.at_one_time for _, changed in everywhere)
    time = "; the cases of a file are all of one time, its `now`" if timely else ""
    many = "the one case" if len(seen) == 1 else f"all {len(seen)} cases"
    return f"the verdict of {many} of {names} stays as it is{time}"


def _otherwise(one: Verdict, other: Verdict) -> str:
    """Say what of two verdicts a case could ask for that is not the same; empty if nothing is."""
    if one.effect != other.effect:
        return "another effect"
    if rules_of(one) != rules_of(other):
        return "other rules"
    if one.halts != other.halts:
        return "the run going on" if one.halts else "an end of the run"
    if one.reason != other.reason:
        return "another message"
    return "another hint" if one.hint != other.hint else ""
