"""Which facts the next decision may need: those that tools on offer, the rules about them or the current goal name.

Invariants:
* A fact counts as named where an expression or text of these looks at it, or where it or what is in it is called like
  an argument of a tool on offer: what a call needs is not left out because no rule reads it.
* What is in a fact that is named is never left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final

from ledgercli.rulebook import Rulebook
from ledgercli.scenario import GoalModel
from ledgercli.state import SUBGOAL
from ledgercli.summariser import Wanted

_PARTS: Final = ("facts", "constraints", "flags")
_MENTION: Final = re.compile(r"""\b(facts|constraints|flags)(?:\.([A-Za-z_]\w*)|\[["']([^"'\]]+)["']\])""")
_WORD: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|[^\W\d_A-Za-z]+")
_KEYS, _DEEP = 20, 4  # keys of a map that are looked at, and how deep
_STEM: Final = 4  # letters that two words must begin with alike
_COMMON: Final = frozenset(("type", "name", "value", "data", "info", "item", "list", "text", "number"))

Mentions = Mapping[str, frozenset[str]]  # facts, constraints or flags → names


@dataclass(slots=True)
class Relevance:
    """What each tool, its rules and each goal name; found once.

    Arguments:
        rulebook: the tools and rules.

    """

    rulebook: Rulebook
    _tools: dict[str, Mentions] = field(default_factory=dict, init=False)

    def wanted(self, offered: Sequence[str], tree: Mapping[str, Any], withheld: Sequence[str] = ()) -> Wanted:
        """Return what a view for a decision among some tools holds.

        Arguments:
            offered: the tools.
            tree: the state.
            withheld: tools that are not on offer, but whose rules are told.

        """
        found = [self._of_tool(tool) for tool in (*offered, *withheld)] + [
            _mentions(self._texts_of_goal(str(tree["goal"])))
        ]
        named = {part: frozenset().union(*(one[part] for one in found)) for part in _PARTS}
        args = {word for tool in offered for arg in self._args(tool) for word in _words(arg)} - _COMMON
        levels = self.levels()
        facts = {
            name
            for name, value in tree["facts"].items()
            if name in named["facts"] or _called_like(args, (name, *_keys(value)))
        }
        return Wanted(facts, named["constraints"], named["flags"], levels)

    def everything(self) -> Wanted:
        """Return that a view holds all of the state."""
        return Wanted(flags=self.rulebook.vocabulary.names("flags"), levels=self.levels())

    def levels(self) -> dict[str, int]:
        """Return name of a fact → how many ids stand above each record in it."""
        found: dict[str, int] = {}
        for pattern in self.rulebook.vocabulary.setters:
            if pattern[0] == "facts" and len(pattern) > 2:
                depth = next((at for at, key in enumerate(pattern[2:]) if key is not None), len(pattern) - 2)
                if depth:
                    found[str(pattern[1])] = min(depth, found.get(str(pattern[1]), depth))
        return found

    def _args(self, tool: str) -> Iterable[str]:
        return self.rulebook.toolset.tools[tool].args

    def _of_tool(self, tool: str) -> Mentions:
        if tool not in self._tools:
            looked = {part: set(names) for part, names in _mentions(self._texts_of_tool(tool)).items()}
            for path in self._paths(tool):
                if len(path) > 2 and path[0] == "state" and path[1] in _PARTS and path[2] is not None:
                    looked[str(path[1])].add(str(path[2]))
            self._tools[tool] = {part: frozenset(names) for part, names in looked.items()}
        return self._tools[tool]

    def _paths(self, tool: str) -> Iterator[tuple[Any, ...]]:
        plan = self.rulebook.enforcer.plan(tool)
        for pack in plan.packs if plan else ():
            yield from pack.when.paths if pack.when else ()
            for rule in pack.rules:
                yield from rule.when.paths if rule.when else ()
                yield from rule.what.paths

    def _texts_of_tool(self, tool: str) -> Iterator[str]:
        model = self.rulebook.toolset.tools[tool]
        yield from _texts(model.model_dump(include={"run", "fails_when"}))
        for block in (block for success in (True, False) for _, block in model.blocks(success=success)):
            yield from _texts([block.when, block.each, list(block.set.values())])
        plan = self.rulebook.enforcer.plan(tool)
        for rule in (rule for pack in plan.packs for rule in pack.rules) if plan else ():
            yield from _texts([rule.model.failing.error, rule.model.failing.hint])

    def _texts_of_goal(self, goal: str) -> Iterator[str]:
        """Yield what says when the current goal and those that it is a part of are done, and what the answer needs."""
        scenario = self.rulebook.scenario
        if scenario is None:
            return
        yield scenario.file.answer_text or ""
        yield from (one.done_when or "" for one in _line_to(scenario.file.goals, goal))


def _line_to(goals: Sequence[GoalModel], name: str) -> Iterator[GoalModel]:
    for one in goals:
        if name == one.name or name.startswith(one.name + SUBGOAL) or any(_line_to(one.goals, name)):
            yield one
            yield from _line_to(one.goals, name)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, (Mapping, list, tuple)):
        for inner in value.values() if isinstance(value, Mapping) else value:
            yield from _texts(inner)


def _mentions(texts: Iterable[str]) -> Mentions:
    found: dict[str, set[str]] = {part: set() for part in _PARTS}
    for text in texts:
        for part, name, quoted in _MENTION.findall(text):
            found[part].add(name or quoted)
    return {part: frozenset(names) for part, names in found.items()}


def _keys(value: Any, depth: int = 0) -> Iterator[str]:
    """Yield names in a value."""
    if depth > _DEEP or not isinstance(value, (Mapping, list, tuple)):
        return
    if isinstance(value, Mapping):
        yield from islice(value, _KEYS)
    for one in islice(value.values() if isinstance(value, Mapping) else value, _KEYS):
        yield from _keys(one, depth + 1)


def _words(text: str) -> set[str]:
    return {word.lower() for word in _WORD.findall(text)}


def _called_like(args: set[str], names: Iterable[str]) -> bool:
    """Whether a word of a name is one of an argument's, or begins as one does."""
    words = {word for name in names for word in _words(name)} - _COMMON
    if words & args:
        return True
    stems = {word[:_STEM] for word in args if len(word) >= _STEM}
    return any(word[:_STEM] in stems for word in words if len(word) >= _STEM)
