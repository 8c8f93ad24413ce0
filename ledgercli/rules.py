"""Rules compiled for one tool at a time.

Invariants:
* A rule is compiled with the proposal's tool, access and tags put in as constants: what folds to false does not concern
  the tool, so a verdict costs what the rules of this tool cost.
* Every problem of a rule is found by compiling it for every tool that it can reach, and for none in particular.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from ledgercli import cel
from ledgercli.cel import Checked, CheckedText, Env, Program
from ledgercli.documents import Place
from ledgercli.functions import Moment
from ledgercli.policy import Effect, OnFail, Pack, RuleModel
from ledgercli.vocabulary import Vocabulary


@dataclass(frozen=True, eq=False)
class CompiledRule:
    """One rule for one tool; its programs are made when they are first asked for.

    Arguments:
        name: `pack/rule`.
        model: the rule as it stands in the pack.
        when: what must hold for it to apply; None: always.
        what: its check or grant.
        error: the message, None: made from the check.
        hint: what to do instead.

    """

    name: str
    model: RuleModel
    when: Checked | None
    what: Checked
    error: CheckedText | None
    hint: CheckedText | None

    @cached_property
    def condition(self) -> Program | None:
        """What must hold for it to apply."""
        return cel.compile(self.when) if self.when else None

    @cached_property
    def decides(self) -> Program:
        """Its check or grant."""
        return cel.compile(self.what)

    def quick(self, active: Checked | None) -> cel.Rule:
        """Return the rule for the generated function, in a pack that is `active` on a condition."""
        when = _both(active, self.when)
        return cel.Rule(when, grant=self.what) if self.is_grant else cel.Rule(when, must=self.what)

    @property
    def is_grant(self) -> bool:
        """Whether it opens rather than refuses."""
        return self.model.grant is not None

    @property
    def shadow(self) -> bool:
        """Whether it is only watched."""
        return self.model.mode == "shadow"

    @property
    def priority(self) -> int:
        """Its rank under `resolve: priority`."""
        return self.model.priority

    @property
    def effect(self) -> Effect:
        """What failing means."""
        return self.model.failing.effect

    @property
    def halt(self) -> bool:
        """Whether a denial ends the run."""
        return self.model.failing.halt

    def message(self, roots: Mapping[str, Any], moment: Moment) -> str:
        """What a failure says."""
        if self.error is not None:
            return self.error.render(roots, moment)
        return f"{self.model.name} does not hold: {self.model.check}"


@dataclass(frozen=True, eq=False)
class CompiledPack:
    """The rules of one pack that can concern one tool."""

    name: str
    when: Checked | None
    rules: Sequence[CompiledRule]
    by_priority: bool
    allow_list: bool

    @cached_property
    def active(self) -> Program | None:
        """The condition on which it judges at all."""
        return cel.compile(self.when) if self.when else None


@dataclass(frozen=True, slots=True)
class ToolPlan:
    """All that judging one tool needs.

    Arguments:
        tool: its name.
        access: of every proposal of it.
        tags: of every proposal of it.
        defaults: arguments that need not be given.
        fits: whether arguments, defaults filled in, fit the tool's schema.
        packs: the packs with their rules.
        quick: the generated function: (applied, reads, grants that hold), None where judging must go rule by rule.
        grants: for each allow-list, which of the grants in `quick`'s answer are its own.

    """

    tool: str
    access: str
    tags: Sequence[str]
    defaults: Mapping[str, Any]
    fits: Callable[[Mapping[str, Any]], bool]
    packs: Sequence[CompiledPack]
    quick: Any
    grants: Sequence[Sequence[int]]

    def opened(self, held: Sequence[bool]) -> bool:
        """Whether every allow-list has a grant that holds."""
        return all(any(held[number] for number in own) for own in self.grants)


class Compiler:
    """Compiles packs against a vocabulary, tool by tool."""

    def __init__(self, vocabulary: Vocabulary, packs: Sequence[Pack]) -> None:
        self._vocabulary = vocabulary
        self._packs = packs

    def check(self) -> None:
        """Find every problem of every pack; they are added to the vocabulary's."""
        for pack in self._packs:
            self._check_pack(pack)
            self._check_vocabulary(pack)
            for tool in self._vocabulary.tools_for(pack):
                self._pack(pack, tool)

    def rules(self, pack: Pack, tool: str) -> Sequence[CompiledRule]:
        """Compile the rules of one pack that can concern a tool."""
        return self._pack(pack, tool).rules

    def plan(self, tool: str) -> ToolPlan:
        """Compile all packs for one tool."""
        packs = [self._pack(pack, tool) for pack in self._packs]
        quick: list[cel.Rule] = []
        grants: list[list[int]] = []
        number = 0
        for pack in packs:
            own = []
            for rule in pack.rules:
                quick.append(rule.quick(pack.when))
                if rule.is_grant:
                    if not rule.shadow:
                        own.append(number)
                    number += 1
            if pack.allow_list and tool != "finish":
                grants.append(own)
        spec = self._vocabulary.tools[tool]
        fits = spec.validator.is_valid
        judge = cel.compile_rules(quick)
        return ToolPlan(tool, spec.access, list(spec.tags), spec.defaults, fits, packs, judge, grants)

    def _check_pack(self, pack: Pack) -> None:
        """Find the problems that depend on no tool: names, tools, messages, duplicates, defines that nobody uses."""
        vocabulary, document, file = self._vocabulary, pack.document, pack.file
        names: set[str] = set()
        env = vocabulary.rule_env(pack, None)
        for expr in vocabulary.defines(pack).values():
            vocabulary.checked(expr, env, names_only=True)
        for number, rule in enumerate(file.rules):
            place: Place = ("rules", number)
            if rule.name in names:
                vocabulary.problem(document, (*place, "name"), "duplicate-rule", f"a second rule {rule.name}")
            names.add(rule.name)
            if rule.grant is not None and file.resolve != "priority" and file.default != "deny":
                vocabulary.problem(
                    document,
                    (*place, "grant"),
                    "grant-means-nothing",
                    "a grant opens nothing here",
                    key=True,
                    notes=("it needs `resolve: priority` or `default: deny` in the pack",),
                )
            for index, tool in enumerate(rule.tools or []):
                if tool not in vocabulary.tools_for(pack):
                    vocabulary.unknown(document, (*place, "tools", index), "tool", tool, vocabulary.tools_for(pack))
            for key in ("condition", "check", "grant"):
                text = getattr(rule, key)
                parsed = None if text is None else vocabulary.parsed(document, (*place, key), text)
                if parsed is not None:
                    vocabulary.checked(parsed, env, names_only=True)
            self._texts(pack, place, rule, env)

    def _check_vocabulary(self, pack: Pack) -> None:
        """Beside a toolset, what a pack says is always there must be set by something, and its tools be as it says."""
        own, vocabulary = pack.file.vocabulary, self._vocabulary
        if own is None or vocabulary.toolset is None:
            return
        for part in ("facts", "constraints"):
            for path, type_ in getattr(own, part).items():
                if not type_.strip().endswith("?") and not vocabulary.sets(part, path):
                    message = f"the pack counts on {part}.{path}, and nothing here sets it"
                    note = f"a {part.removesuffix('s')} that may be absent has a type that ends in `?`"
                    place: Place = ("vocabulary", part, path)
                    vocabulary.problem(pack.document, place, "nothing-sets", message, notes=(note,), key=True)
        for tool, args in own.tools.items():
            for arg in args if tool in vocabulary.tools else ():
                if arg not in vocabulary.tools[tool].args:
                    place = ("vocabulary", "tools", tool, arg)
                    vocabulary.unknown(pack.document, place, "argument", arg, vocabulary.tools[tool].args, key=True)

    def _active(self, pack: Pack) -> Checked | None:
        """Compile the condition on which a pack judges at all."""
        if pack.file.active is None:
            return None
        env = self._vocabulary.state_env(pack)
        return self._vocabulary.expression(pack.document, ("active",), pack.file.active, env, cel.BOOL)

    def _pack(self, pack: Pack, tool: str) -> CompiledPack:
        rules = [
            compiled
            for number, rule in enumerate(pack.file.rules)
            if (compiled := self._rule(pack, number, rule, tool)) is not None
        ]
        return CompiledPack(
            pack.name,
            self._active(pack),
            rules,
            by_priority=pack.file.resolve == "priority",
            allow_list=pack.file.default == "deny",
        )

    def _rule(self, pack: Pack, number: int, rule: RuleModel, tool: str) -> CompiledRule | None:
        """Compile one rule for one tool; None where it does not concern the tool or has problems."""
        if rule.tools is not None and tool not in rule.tools:
            return None
        env = self._vocabulary.rule_env(pack, tool)
        place: Place = ("rules", number)
        condition, sound = None, True
        if rule.condition is not None:
            condition = self._folded(pack, (*place, "condition"), rule.condition, tool)
            sound = condition is not None  # if it is not, the rest is checked all the same
            if condition is not None and condition.constant == (True, False):
                return None
            if condition is not None and condition.constant == (True, True):
                condition = None
        key = "check" if rule.grant is None else "grant"
        decides = self._folded(pack, (*place, key), getattr(rule, key), tool)
        error, hint = self._texts(pack, place, rule, env)
        if decides is None or not sound:
            return None
        return CompiledRule(f"{pack.name}/{rule.name}", rule, condition, decides, error, hint)

    def _folded(self, pack: Pack, place: Place, text: str, tool: str) -> Checked | None:
        """Return an expression with what is known of the tool put in; None where it has problems, which are reported.

        What folds away cannot happen with this tool, so problems there do not count.
        """
        vocabulary = self._vocabulary
        expr = vocabulary.parsed(pack.document, place, text)
        if expr is None:
            return None
        spec = vocabulary.tools_for(pack)[tool]
        constants = {
            ("action", "tool"): tool,
            ("action", "access"): spec.access,
            ("action", "tags"): list(spec.tags),
        }
        checked = cel.check(expr, vocabulary.rule_env(pack, tool, strict=False), cel.BOOL)
        folded = cel.fold(checked, constants)
        alive = {(node.source, node.start, node.end) for node in cel.walk(folded.node)}
        problems = [problem for problem in checked.problems if _holder(checked.node, problem) in alive]
        for problem in problems:
            vocabulary.report(replace(problem, severity="error"))
        return None if problems else folded

    def _texts(
        self, pack: Pack, place: Place, rule: RuleModel, env: Env
    ) -> tuple[CheckedText | None, CheckedText | None]:
        """Compile the message and the hint."""
        long = isinstance(rule.on_fail, OnFail)
        error = self._text(pack, (*place, "on_fail", "error") if long else (*place, "on_fail"), rule.failing.error, env)
        return error, self._text(pack, (*place, "on_fail", "hint"), rule.failing.hint, env)

    def _text(self, pack: Pack, place: Place, text: str | None, env: Env) -> CheckedText | None:
        return None if text is None else self._vocabulary.text(pack.document, place, text, env)


def _holder(node: cel.Node, problem: cel.Problem) -> tuple[cel.Source, int, int]:
    """Return where the smallest part stands that holds a problem."""
    holders = [
        part
        for part in cel.walk(node)
        if part.source is problem.source and part.start <= problem.start and problem.end <= part.end
    ]
    smallest = min(holders, key=lambda part: part.end - part.start, default=node)
    return smallest.source, smallest.start, smallest.end


def _both(active: Checked | None, condition: Checked | None) -> Checked | None:
    """Return one condition that holds where both do."""
    if active is None or condition is None:
        return active or condition
    node = cel.Logic(
        condition.node.source,
        condition.node.start,
        condition.node.end,
        "&&",
        (active.node, condition.node),
        type=cel.BOOL,
    )
    return replace(condition, node=node)
