"""Which names exist, and of which type: made from a toolset, packs and a scenario together.

Invariants:
* The vocabulary is closed: a name that nothing declares is a problem where it is used, with the nearest known one.
* Facts, flags and constraints are those of initial values, transitions and a pack's own `vocabulary:`.
* Types are said only where they are decidable; what a tool without `returns:` gives is dynamic.
* All problems are collected; nothing is raised.

Deliberately not here: what the expressions mean for a verdict (`enforcer`) or for the next state (`updater`).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import Any

from ledgercli import cel, paths
from ledgercli.cel import Env, Expr
from ledgercli.documents import Document, Place
from ledgercli.expressions import Expressions, Target, below_state, target_parts
from ledgercli.functions import LEDGER, functions
from ledgercli.names import FactTree, path_pattern, schema_type, type_named, value_type
from ledgercli.policy import Pack
from ledgercli.scenario import Scenario
from ledgercli.state import STATUSES, SUBGOAL, Goal
from ledgercli.toolset import BUILT_IN, Block, Tool, Toolset

_ROUNDS = 6  # of finding types; facts that are made of one another more deeply than this are dynamic
SETTABLE = ("facts", "flags", "constraints", "goals", "error", "final_answer")


#: A setting of a transition: its target, its value and where it stands with what names it may use, the tool, a note.
_Setting = tuple[Target, tuple[tuple[Any, Place], tuple[str, bool, Place | None]], str, str]


@dataclass(slots=True)
class Vocabulary(Expressions):
    """All names that expressions may use.

    Arguments:
        toolset: the tools, None where a pack stands alone.
        packs: the packs, each checked with these names and its own.
        scenario: initial values and goals, if there is one.
        initial: other initial values (a case file's or `check`'s state), by the scenario's keys.

    """

    toolset: Toolset | None
    packs: Sequence[Pack] = ()
    scenario: Scenario | None = None
    initial: Mapping[str, Any] = field(default_factory=dict)
    tools: dict[str, Tool] = field(default_factory=dict, init=False)
    goals: tuple[Goal, ...] = field(default=(), init=False)
    setters: dict[tuple[str | None, ...], list[str]] = field(default_factory=dict, init=False)
    _facts: FactTree = field(default_factory=FactTree, init=False)
    _constraints: FactTree = field(default_factory=FactTree, init=False)
    _flags: dict[str, str] = field(default_factory=dict, init=False)
    _envs: dict[tuple[Any, ...], Env] = field(default_factory=dict, init=False)
    _defines: dict[int, dict[str, Expr]] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self.tools = dict(self.toolset.tools if self.toolset else BUILT_IN)
        self.goals = tuple(_told(self.scenario.goals, _goals_set(self.tools))) if self.scenario else ()
        self._declare_initial()
        self._declare_transitions()

    def with_pack(self, old: Pack, new: Pack, *, same_defines: bool) -> Vocabulary:
        """Return the same names for another version of a pack, in which no name and no type is another.

        Arguments:
            old: the version that is known.
            new: the other.
            same_defines: whether its defines are the same, so that they need not be read again.

        """
        other = copy(self)
        other.packs = [new if pack is old else pack for pack in self.packs]
        other.forget()
        if same_defines:
            other.take(self, old, new)
        return other

    def forget(self) -> None:
        """Begin anew with what depends on a pack."""
        self.problems, self._seen = [], set()
        self._parsed, self._envs, self._defines = dict(self._parsed), dict(self._envs), dict(self._defines)

    def take(self, known: Vocabulary, old: Pack, new: Pack) -> None:
        """Take what is known of one version of a pack for another."""
        self._defines[id(new)] = known.defines(old)
        for key, env in list(self._envs.items()):
            if key[0] in ("rule", "state") and key[1] == id(old):
                self._envs[(key[0], id(new), *key[2:])] = env

    # ---- what is declared

    @property
    def plans(self) -> bool:
        """Whether a tool may add goals that nothing declares."""
        return any(tool.plans for tool in self.tools.values())

    @property
    def flags(self) -> dict[str, bool]:
        """Every declared flag, false."""
        return dict.fromkeys(self._flags, False)

    @property
    def records(self) -> list[str]:
        """Names of the facts that are records by id, which are `{}` from the start."""
        return self._facts.records()

    def establishing(self, path: str) -> list[str]:
        """Return the tools that can make `path` (as typed in a rule) known.

        Those that set it whole go before those that set a part of it, then reads before writes; only the first kind
        that there is is named, since nobody should cancel an order to get to know it.
        """
        try:
            wanted = tuple(str(part) for part in paths.parse(path)[1:])
        except paths.PathError:  # a key that only the policy language can write
            return []
        kinds: dict[tuple[bool, bool], list[str]] = {}
        for pattern, tools in self.setters.items():
            if all(mine is None or mine == key for mine, key in zip(pattern, wanted, strict=False)):
                for tool in tools:
                    kind = (len(pattern) > len(wanted), self.tools[tool].access == "write")
                    kinds.setdefault(kind, []).append(tool)
        return list(dict.fromkeys(kinds[min(kinds)])) if kinds else []

    def constraints(self) -> dict[str, Any]:
        """Return the constraints from the start: defaults of packs under those of the scenario."""
        merged: dict[str, Any] = {}
        for pack in self.packs:
            merged.update(pack.file.constraints)
        if self.scenario:
            merged.update(self.scenario.file.constraints)
        return merged | dict(self.initial.get("constraints", {}))

    def _declare_initial(self) -> None:
        for pack in self.packs:
            self._declare_values(self._constraints, pack.file.constraints, f"a default of pack {pack.name}")
        for values, whose in ((self._scenario_part, "the scenario"), (self.initial.get, "the state")):
            self._declare_values(self._facts, values("facts") or {}, f"known from {whose}")
            self._declare_values(self._constraints, values("constraints") or {}, f"given by {whose}")
            self._flags.update(dict.fromkeys(values("flags") or {}, f"set by {whose}"))

    def _scenario_part(self, name: str) -> Any:
        return getattr(self.scenario.file, name) if self.scenario else None

    @staticmethod
    def _declare_values(tree: FactTree, values: Mapping[str, Any], note: str) -> None:
        for name, value in values.items():
            tree.declare((name,), value_type(value), note)

    def _declare_transitions(self) -> None:
        """Declare what transitions set; facts are made of facts, so types are found in rounds, until they stand."""
        if self.toolset is None:
            return
        settings = list(self._settings())
        for target, _, tool, _ in settings:
            self.setters.setdefault(target.pattern, []).append(tool)
        types: list[cel.Type | None] = [None] * len(settings)
        for number in range(_ROUNDS):
            self._redeclare(settings, types)
            found = [self._quiet_type(value, env, first=number == 0) for _, (value, env), _, _ in settings]
            if found == types:
                return
            types = found
        self._redeclare(settings, [cel.DYN] * len(settings))

    def _redeclare(self, settings: Sequence[_Setting], types: Sequence[cel.Type | None]) -> None:
        self._facts, self._constraints = FactTree(), FactTree()
        self._envs.clear()
        self._declare_initial()
        for (target, _, _, note), type_ in zip(settings, types, strict=True):
            self._declare(target, type_, note)

    def _settings(self) -> Iterator[_Setting]:
        """Yield each setting of each transition: its target, its value with its place, the tool, and a note."""
        assert self.toolset is not None
        document = self.toolset.document
        for name, tool in self.toolset.file.tools.items():
            for success, place, block in blocks_of(name, tool):
                each = (*place, "each") if block.each is not None else None
                for path, value in block.set.items():
                    where = (*place, "set", path)
                    target = self.target(document, where, path, key=True)
                    if target is not None:
                        note = f"set by {name} ({document.position(where, key=True)})"
                        yield target, ((value, where), (name, success, each)), name, note

    def _declare(self, target: Target, type_: cel.Type | None, note: str) -> None:
        root, *rest = target.pattern
        if root == "facts" and rest:
            self._facts.declare(tuple(rest), type_, note)
        elif root == "constraints" and rest:
            self._constraints.declare(tuple(rest), type_, note)
        elif root == "flags" and len(rest) == 1 and isinstance(rest[0], str):
            self._flags.setdefault(rest[0], note)

    def _quiet_type(
        self, value: tuple[Any, Place], about: tuple[str, bool, Place | None], *, first: bool
    ) -> cel.Type | None:
        """Return the type of what a transition sets, problems aside: they are reported when it is compiled.

        In the first round what is made of other facts has none yet.
        """
        kept, seen = list(self.problems), set(self._seen)
        type_ = self._tree_type(value[0], value[1], self.transition_env(*about), first=first)
        self.problems[:], self._seen = kept, seen
        return type_

    def _tree_type(self, value: Any, place: Place, env: Env, *, first: bool) -> cel.Type | None:
        assert self.toolset is not None
        if isinstance(value, Mapping):
            types = {str(key): self._tree_type(item, (*place, key), env, first=first) for key, item in value.items()}
            return cel.RecordType("map", {k: cel.Field(t or cel.DYN) for k, t in types.items()}, noun="fact")
        if isinstance(value, list):
            return value_type(value) if not value else cel.ListType(elem=cel.DYN)
        if isinstance(value, str):
            expr = self.parsed(self.toolset.document, place, value)
            checked = None if expr is None else cel.check(expr, env)
            if checked is not None and first and any(path[:1] == ("state",) for path in checked.paths):
                return None
            return cel.DYN if checked is None else checked.type
        return value_type(value)

    # ---- environments: which names an expression may use where

    def state_env(self, pack: Pack | None = None) -> Env:
        """Names of a condition over the state alone."""
        return self._env(("state", id(pack)), pack, {})

    def rule_env(self, pack: Pack, tool: str | None, *, strict: bool = True) -> Env:
        """Names of a rule; with `tool` its arguments have that tool's types, without any tool's name is known."""
        names = {"action": self.action_type(pack, tool)}
        return self._env(("rule", id(pack), tool, strict), pack, names, strict=strict)

    def transition_env(self, tool: str, success: bool, each: Place | None = None) -> Env:  # noqa: FBT001
        """Names of a transition of `tool`; `each` is the place of its list where it has one."""
        names: dict[str, cel.Type] = {
            "action": self.action_type(None, tool),
            "result": self.result_type(tool, success=success),
        }
        if each is not None:
            names["item"] = self._item_type(tool, success, each)
        return self._env(("transition", tool, success, each), None, names)

    def fails_env(self, tool: str | None) -> Env:
        """Names of `fails_when`, which judges data that need not be what `returns:` promises."""
        names = {"action": self.action_type(None, tool), "result": self.result_type(tool, success=False)}
        return self._env(("fails", tool), None, names)

    def row_env(self, row: cel.Type | None) -> Env:
        """Names of the texts of a case: the state, and `row` where it has `for:`."""
        return self._env(("row", id(row)), None, {} if row is None else {"row": row})

    def _env(
        self, key: tuple[Any, ...], pack: Pack | None, names: Mapping[str, cel.Type], *, strict: bool = True
    ) -> Env:
        if key not in self._envs:
            tools = self.tools_for(pack)
            self._envs[key] = Env(
                {"state": self._state_type(pack), "now": cel.TIMESTAMP, **names},
                functions=functions({name: tool.args for name, tool in tools.items()}),
                defines=self.defines(pack) if pack else {},
                strict=strict,
            )
        return self._envs[key]

    def _item_type(self, tool: str, success: bool, each: Place) -> cel.Type:  # noqa: FBT001
        assert self.toolset is not None
        block: Any = self.toolset.file.tools[tool]
        for step in each[2:-1]:
            block = block[step] if isinstance(step, int) else getattr(block, step)
        checked = self.expression(self.toolset.document, each, block.each, self.transition_env(tool, success))
        type_ = checked.type if checked else cel.DYN
        return type_.elem if isinstance(type_, cel.ListType) else cel.DYN

    def tools_for(self, pack: Pack | None) -> dict[str, Tool]:
        """Return the tools that exist, and those that the pack's own vocabulary names."""
        own = pack.file.vocabulary if pack else None
        if own is None:
            return self.tools
        declared = {
            name: Tool(args={arg: type_named(text).schema for arg, text in args.items()})
            for name, args in own.tools.items()
            if name not in self.tools
        }
        return self.tools | declared

    def tags(self, pack: Pack | None) -> frozenset[str]:
        """Return every tag of a tool, and those that the pack names."""
        own = pack.file.vocabulary.tags if pack and pack.file.vocabulary else []
        return frozenset(own) | {tag for tool in self.tools.values() for tag in tool.tags}

    def action_type(self, pack: Pack | None, tool: str | None) -> cel.RecordType:
        """Return the type of `action`, for one tool or for any."""
        tools = self.tools_for(pack)
        args: dict[str, cel.Field] = {}
        for name in [tool] if tool is not None else tools:
            for arg, schema in tools[name].args.items():
                type_ = schema_type(schema, "argument")
                known = args.get(arg)
                args[arg] = cel.Field(type_ if known is None else cel.join(known.type, type_))
        return cel.RecordType(
            "action",
            {
                "tool": cel.Field(cel.EnumType(values=frozenset(tools), what="tool")),
                "args": cel.Field(cel.RecordType("arguments", args, noun="argument")),
                "access": cel.Field(cel.EnumType(values=frozenset({"read", "write"}), what="access")),
                "tags": cel.Field(cel.ListType(elem=cel.EnumType(values=self.tags(pack), what="tag"))),
            },
        )

    def result_type(self, tool: str | None, *, success: bool) -> cel.RecordType:
        """Return the type of `result` of a tool; `returns:` speaks of successes."""
        returns = self.tools[tool].returns if tool is not None and success else None
        data = cel.DYN if returns is None else schema_type(returns, "field")
        return cel.RecordType(
            "result", {"success": cel.Field(cel.BOOL), "data": cel.Field(data), "error": cel.Field(cel.DYN)}
        )

    def _state_type(self, pack: Pack | None) -> cel.RecordType:
        own = pack.file.vocabulary if pack else None
        facts = self._facts.type("fact", own.facts if own else {})
        constraints = self._constraints.type("constraint", own.constraints if own else {})
        flags = dict.fromkeys([*self._flags, *(own.flags if own else [])], "")
        goals = list(_names_of(self.goals))
        goal = cel.EnumType(values=frozenset(["", *goals]), what="goal")
        return cel.RecordType(
            "state",
            {
                "task": cel.Field(cel.STRING),
                "facts": cel.Field(facts),
                "constraints": cel.Field(constraints),
                "flags": cel.Field(
                    cel.RecordType(
                        "flags",
                        {n: cel.Field(cel.BOOL, note=self._flags.get(n) or None) for n in flags},
                        noun="flag",
                    )
                ),
                "goal": cel.Field(cel.STRING if self.plans else goal),
                "step": cel.Field(cel.INT),
                "error": cel.Field(cel.DYN),
                "status": cel.Field(cel.EnumType(values=frozenset(STATUSES), what="status")),
                "final_answer": cel.Field(cel.DYN),
                "ledger": cel.Field(LEDGER),
            },
        )

    def target(self, document: Document, place: Place, text: str, *, key: bool = False) -> Target | None:
        """Return the path that a transition sets; None where it is none, which is reported."""
        expr = self.parsed(document, place, text, key=key)
        if expr is None:
            return None
        parts = target_parts(expr)
        if parts is None:
            note = "write a path such as facts.order_id, or facts.orders[result.data.order_id]"
            self.problem(document, place, "not-a-path", f"{text} is no path to set", notes=(note,), key=key)
            return None
        root = parts[0]
        if root not in SETTABLE:
            self.unknown(document, place, "settable-path", str(root), SETTABLE, key=key)
            return None
        goals = list(_names_of(self.goals))
        if root == "goals" and self.scenario and parts[1:] and parts[1] not in goals:
            self.unknown(document, place, "goal", str(parts[1]), goals, start=len("goals."), key=key)
            return None
        return Target(parts, text)

    def declared_path(
        self, document: Document, place: Place, target: Target, env: Env | None = None, *, key: bool = False
    ) -> None:
        """Report what nothing declares in a path below the state; `env` has the names for what stands in brackets."""
        expr = self.parsed(document, place, target.text, key=key)
        if expr is None or target.parts[0] == "goals":  # goals are no part of what expressions see
            return
        path = Expr(expr.source, below_state(expr.node))
        envs = [env or self.state_env(), *(self.state_env(pack) for pack in self.packs if pack.file.vocabulary)]
        found = [cel.check(path, one) for one in envs]
        if not any(one.ok for one in found):
            self.report_names(found[0])

    def declared_values(
        self, document: Document, place: Place, value: Any, kind: cel.Type, *, below: bool = False
    ) -> None:
        """Report keys of given facts or constraints that nothing declares, at any depth; names at the top are known."""
        if isinstance(kind, cel.ListType) and isinstance(value, list):
            for number, item in enumerate(value):
                self.declared_values(document, (*place, number), item, kind.elem, below=True)
        if not isinstance(value, Mapping):
            return
        for name, item in value.items():
            where = (*place, name)
            if isinstance(kind, cel.MapType):
                self.declared_values(document, where, item, kind.value, below=True)
            elif isinstance(kind, cel.RecordType) and name in kind.fields:
                self.declared_values(document, where, item, kind.fields[name].type, below=True)
            elif isinstance(kind, cel.RecordType) and below and not kind.open:
                self.unknown(document, where, kind.noun, name, kind.fields, key=True)

    def given_type(self, part: str) -> cel.Type:
        """Return the type of `state.facts` or `state.constraints`."""
        state = self.state_env().names["state"]
        assert isinstance(state, cel.RecordType)
        return state.fields[part].type

    def declared_name(  # noqa: PLR0913 - what, where
        self, document: Document, place: Place, part: str, name: str, *, start: int = 0, key: bool = True
    ) -> None:
        """Report a fact, constraint or flag that nothing declares."""
        known = self.names(part)
        if name not in known:
            self.unknown(document, place, part.removesuffix("s"), name, known, start=start, key=key)

    def sets(self, part: str, path: str) -> bool:
        """Whether an initial value or a transition sets a path of `facts` or `constraints`."""
        return (self._facts if part == "facts" else self._constraints).declares(path_pattern(path))

    def names(self, part: str) -> frozenset[str]:
        """Return every declared name of `facts`, `constraints` or `flags`, those of packs themselves too."""
        own = [pack.file.vocabulary for pack in self.packs if pack.file.vocabulary is not None]
        if part == "flags":
            return frozenset(self._flags).union(*(one.flags for one in own))
        tree = self._facts if part == "facts" else self._constraints
        paths = (getattr(one, part) for one in own)
        return frozenset(tree.names()).union(*({str(path_pattern(path)[0]) for path in one} for one in paths))

    def defines(self, pack: Pack) -> dict[str, Expr]:
        """Return the pack's own names with their expressions; those that cannot be read are left out."""
        if id(pack) not in self._defines:
            read = {name: self.parsed(pack.document, ("define", name), text) for name, text in pack.file.define.items()}
            self._defines[id(pack)] = {name: expr for name, expr in read.items() if expr is not None}
        return self._defines[id(pack)]


def blocks_of(name: str, tool: Tool) -> Iterator[tuple[bool, Place, Block]]:
    """Yield the blocks of a tool's transitions: after success or not, where they stand, and what they say."""
    for success in (True, False):
        for place, block in tool.blocks(success=success):
            yield success, ("tools", name, *place), block


def _goals_set(tools: Mapping[str, Tool]) -> dict[str, bool]:
    """Return the goals that transitions set, each with whether one may close it."""
    found: dict[str, bool] = {}
    blocks = [block for name, tool in tools.items() for _, _, block in blocks_of(name, tool)]
    for path, value in (setting for block in blocks for setting in block.set.items()):
        with contextlib.suppress(paths.PathError):  # a key that is computed
            root, *rest = paths.parse(path)
            if root == "goals" and rest:
                name = str(rest[0])
                found[name] = found.get(name, False) or value not in ("false", False)
    return found


def _told(goals: Iterable[Goal], by_transition: Mapping[str, bool]) -> Iterator[Goal]:
    """Yield goals that know what transitions do to them and add below them, and all that they consist of."""
    for goal in goals:
        told = goal.told or (not goal.goals and by_transition.get(goal.name, False))
        declared = {one.name for one in goal.goals}
        added = [name for name in by_transition if name.rpartition(SUBGOAL)[0] == goal.name and name not in declared]
        later = _told(map(Goal, added), by_transition)
        yield Goal(goal.name, tuple(_told(goal.goals, by_transition)), told=told, later=tuple(later))


def _names_of(goals: Iterable[Goal]) -> Iterator[str]:
    """Yield the names of goals, of all that they consist of, and of what transitions may add."""
    for goal in goals:
        yield goal.name
        yield from _names_of((*goal.goals, *goal.later))
