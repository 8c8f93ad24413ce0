"""A group judged by a changed pack: what is as it was is not compiled again.

Invariants:
* A verdict of the changed rules is that of an enforcer; only what compiles them saves work.
* A rule is compiled again if it, or a define that it uses, was changed; other packs never are.
* The names are those of the group: a change declares none.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from copy import copy
from dataclasses import replace
from functools import cached_property
from typing import Any

from ledgercli.casework.groups import Group
from ledgercli.diff.packs.units import Half
from ledgercli.documents import Problem
from ledgercli.enforcer import Enforcer
from ledgercli.mutation.mutating import Mutant
from ledgercli.policy import Pack
from ledgercli.rulebook import Rulebook
from ledgercli.rules import CompiledPack, Compiler, ToolPlan
from ledgercli.vocabulary import Vocabulary


class Changed:
    """A group whose pack is a mutant.

    Arguments:
        group: the group as it is.
        mutant: the mutant of one of its packs.

    """

    def __init__(self, group: Group, mutant: Mutant) -> None:
        self.group, self.mutant = group, mutant
        self.number = next(n for n, pack in enumerate(group.rules.packs) if same_file(pack, mutant.file))
        self.before = group.rules.packs[self.number]
        same_defines = mutant.pack.file.define == self.before.file.define
        self.vocabulary = group.rules.vocabulary.with_pack(self.before, mutant.pack, same_defines=same_defines)
        self._compiler = _Compiler(self.vocabulary, group.rules.enforcer, self.before, mutant)
        self.enforcer = Enforcer(self.vocabulary, self.vocabulary.packs, compiler=self._compiler)

    def problems(self) -> list[Problem]:
        """Return what keeps the changed pack from loading."""
        for tool in self.vocabulary.tools:
            self._compiler.changed(tool)
        return [problem for problem in self.vocabulary.problems if problem.severity == "error"]

    @cached_property
    def tools(self) -> list[str]:
        """The tools whose proposals may be judged otherwise."""
        if self.mutant.constraint:
            return [tool for tool in self.vocabulary.tools if self._reads(tool, self.mutant.constraint)]
        return [tool for tool in self.vocabulary.tools if not self._compiler.as_before(tool)]

    @cached_property
    def at_one_time(self) -> bool:
        """Whether a rule that was changed looks at the time, which is the same in all cases of a file."""
        changed = (half for tool in self.tools for half in self._compiler.again(tool))
        return any(path[:1] == ("now",) for half in changed for path in half.looks_at())

    def _reads(self, tool: str, constraint: str) -> bool:
        """Whether a rule for a tool, or what it says, looks at a constraint."""
        plan = self.enforcer.plan(tool)
        assert plan is not None, "both know the same tools"
        looked = (path for pack in plan.packs for rule in pack.rules for path in Half(pack, rule).looks_at())
        return any(path[:2] == ("state", "constraints") and path[2:3] in ((), (constraint,)) for path in looked)

    def as_group(self) -> Group:
        """Return the group with the changed pack in the place of the other."""
        rules: Rulebook = copy(self.group.rules)
        rules.packs, rules.vocabulary, rules.enforcer = self.vocabulary.packs, self.vocabulary, self.enforcer
        group = replace(self.group, rules=rules)
        vars(group)["names"] = self.group.names  # cases name rules as they are, also one that is dropped
        return group


def same_file(pack: Pack, name: str) -> bool:
    """Whether a pack stands in a file, by whatever name that was reached."""
    return os.path.realpath(pack.document.source.name) == os.path.realpath(name)


class _Compiler(Compiler):
    """Compiles what was changed, and takes the rest from an enforcer that has compiled it."""

    def __init__(self, vocabulary: Vocabulary, known: Enforcer, before: Pack, mutant: Mutant) -> None:
        super().__init__(vocabulary, vocabulary.packs)
        self._known, self._mutant, self._pack_before = known, mutant, before
        self._number = list(vocabulary.packs).index(mutant.pack)
        self._before = {id(rule) for rule in before.file.rules if rule.name not in mutant.again}
        self._same_settings = self._as_active(mutant.pack) and all(
            getattr(before.file, key) == getattr(mutant.pack.file, key) for key in ("resolve", "default")
        )
        self._made: dict[str, CompiledPack] = {}

    def plan(self, tool: str) -> ToolPlan:
        """Return what judging one tool needs; it judges rule by rule, which is cheaper than to make it quick."""
        known = self._known.plan(tool)
        assert known is not None, "both know the same tools"
        packs = [*known.packs[: self._number], self.changed(tool), *known.packs[self._number + 1 :]]
        return replace(known, packs=packs, quick=_unsure, grants=())

    def changed(self, tool: str) -> CompiledPack:
        """Return the changed pack, compiled for a tool."""
        if tool not in self._made:
            self._made[tool] = self._compiled(tool)
        return self._made[tool]

    def as_before(self, tool: str) -> bool:
        """Whether nothing was changed that concerns a tool."""
        known = self._known.plan(tool)
        assert known is not None, "both know the same tools"
        mine, theirs = self.changed(tool).rules, known.packs[self._number].rules
        return (
            self._same_settings
            and len(mine) == len(theirs)
            and all(one is other for one, other in zip(mine, theirs, strict=True))
        )

    def again(self, tool: str) -> Iterator[Half]:
        """Yield the rules that were compiled again for a tool."""
        pack = self.changed(tool)
        yield from (Half(pack, rule) for rule in pack.rules if id(rule.model) not in self._before)

    def _as_active(self, pack: Pack) -> bool:
        """Whether what switches the pack on is as it was."""
        file, known = pack.file, self._pack_before.file
        return file.active == known.active and (file.active is None or file.define == known.define)

    def _compiled(self, tool: str) -> CompiledPack:
        known = self._known.plan(tool)
        assert known is not None, "both know the same tools"
        pack, file = self._mutant.pack, self._mutant.pack.file
        by_model = {id(rule.model): rule for rule in known.packs[self._number].rules}
        rules = []
        for number, rule in enumerate(file.rules):
            as_it_was = id(rule) in self._before
            compiled = by_model.get(id(rule)) if as_it_was else self._rule(pack, number, rule, tool)
            if compiled is not None:
                rules.append(compiled)
        when = known.packs[self._number].when
        if not self._as_active(pack):
            when = self._active(pack)
        return CompiledPack(
            pack.name, when, rules, by_priority=file.resolve == "priority", allow_list=file.default == "deny"
        )


def _unsure(_roots: Mapping[str, Any], _moment: Any) -> None:
    """Say that judging must go rule by rule."""
