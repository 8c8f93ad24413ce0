"""What is analysed together: packs with their toolset and scenario, rule by rule, tool by tool.

Invariants:
* A rule is looked at once for each tool that it may be asked about, with that tool's name, access and tags put in, as
  the enforcer compiles it.
* Where there is no toolset (a pack alone), no tool is put in: any toolset may come.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from ledgercli import cel
from ledgercli.analysis.domains import Domain
from ledgercli.analysis.formulas import TRUE, UNKNOWN, YES, About, All, Formula, If
from ledgercli.analysis.knowledge import Knowledge
from ledgercli.analysis.reading import Reader
from ledgercli.analysis.settings import Settings
from ledgercli.analysis.solver import Budget, Solver, Wanted
from ledgercli.analysis.terms import Term, Terms
from ledgercli.documents import Place, Problem
from ledgercli.policy import Pack, RuleModel
from ledgercli.scenario import Scenario
from ledgercli.toolset import Tool, Toolset
from ledgercli.vocabulary import Vocabulary

APPLIES = TRUE | UNKNOWN  # a condition that cannot be told counts as failed, and so does an `active`


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """One conjunct of a condition, check or grant.

    Arguments:
        node: as it is written.
        formula: what it says of the tool.

    """

    node: cel.Node
    formula: Formula


@dataclass(frozen=True, eq=False)
class Judged:
    """A rule for one tool.

    Arguments:
        reader: tells what is known of the terms.
        active: when its pack judges.
        when: the conjuncts of its condition.
        what: those of its check or grant.

    """

    reader: Reader
    active: Formula
    when: tuple[Part, ...]
    what: tuple[Part, ...]

    @cached_property
    def condition(self) -> Formula:
        """When it applies."""
        return _whole(self.when)

    @cached_property
    def decides(self) -> Formula:
        """Its check or grant."""
        return _whole(self.what)

    @cached_property
    def rule(self) -> Formula:
        """True where it does not fail."""
        return If(self.condition, self.decides, YES)

    @property
    def applies(self) -> list[Wanted]:
        """What is so where the rule is asked."""
        return [(self.active, APPLIES), (self.condition, APPLIES)]


@dataclass(frozen=True, eq=False)
class Subject:
    """A rule with all tools that it may be asked about.

    Arguments:
        context: what it is analysed with.
        pack: its pack.
        number: its place among the pack's rules.
        judged: tool → the rule for it; the key is None where the tools are not known.

    """

    context: Context
    pack: Pack
    number: int
    judged: Mapping[str | None, Judged]

    @property
    def model(self) -> RuleModel:
        """The rule as it is written."""
        return self.pack.file.rules[self.number]

    @property
    def key(self) -> str:
        """The key under which its decision stands."""
        return "check" if self.model.grant is None else "grant"

    @property
    def enforced(self) -> bool:
        """Whether it is a check that decides."""
        return self.model.grant is None and self.model.mode == "enforce"

    @cached_property
    def reached(self) -> dict[str | None, Judged]:
        """The tools for which it may apply."""
        return {tool: one for tool, one in self.judged.items() if self.context.possible(tool, one.applies)}

    @staticmethod
    def active(one: Judged) -> list[Wanted]:
        """Return what is so while the rule's pack judges."""
        return [(one.active, APPLIES)]

    def place(self, *keys: str | int) -> Place:
        """Return the place of one of its keys."""
        return ("rules", self.number, *keys)

    def line(self) -> str:
        """Return FILE:LINE of its name."""
        return self.pack.document.position(self.place("name"))

    def problem(self, code: str, message: str, *keys: str | int, **more: Any) -> Problem:
        """Return a finding about one of its keys, or about its name."""
        return self.pack.document.problem(self.place(*(keys or ("name",))), code, message, **more)


@dataclass(eq=False)
class Context:
    """What is analysed together.

    Arguments:
        vocabulary: the names.
        packs: the packs in force.
        toolset: the tools; None where packs stand alone.
        scenario: the scenario, if there is one.
        given: initial values besides, by the keys of a scenario: those of cases.

    """

    vocabulary: Vocabulary
    packs: Sequence[Pack]
    toolset: Toolset | None
    scenario: Scenario | None
    given: Sequence[Mapping[str, Any]] = ()
    budget: Budget = field(default_factory=Budget)

    def __post_init__(self) -> None:
        self._abouts: dict[str | None, dict[Term, About]] = {}
        self.settings = Settings(self.vocabulary, self.given)
        self.terms = Terms()
        self._readers: dict[tuple[int, str | None], Reader] = {}
        self._solvers: dict[str | None, Solver] = {}
        self._subjects: dict[Pack, list[Subject]] = {}

    @property
    def files(self) -> list[str]:
        """The names of the files."""
        documents = [pack.document for pack in self.packs]
        documents += [one.document for one in (self.toolset, self.scenario) if one is not None]
        return [document.source.name for document in documents]

    @cached_property
    def tools(self) -> Mapping[str, Tool]:
        """The toolset's own tools."""
        return {} if self.toolset is None else self.toolset.file.tools

    @cached_property
    def subjects(self) -> list[Subject]:
        """Every rule of every pack."""
        return [one for pack in self.packs for one in self.of_pack(pack)]

    def of_pack(self, pack: Pack) -> list[Subject]:
        """Return the rules of one pack."""
        if pack not in self._subjects:
            self._subjects[pack] = [self._subject(pack, number) for number in range(len(pack.file.rules))]
        return self._subjects[pack]

    def possible(self, tool: str | None, wanted: Sequence[Wanted], held: Mapping[Term, Domain] | None = None) -> bool:
        """Whether there may be a call of a tool, in some state, for which formulas have the wanted values."""
        if held is not None:
            return Solver(self.abouts(tool), self.budget, held).possible(wanted)
        if tool not in self._solvers:
            self._solvers[tool] = Solver(self.abouts(tool), self.budget)
        return self._solvers[tool].possible(wanted)

    def spec(self, pack: Pack, tool: str | None) -> Tool | None:
        """Return a tool, as the toolset or the pack declares it."""
        return None if tool is None else self.vocabulary.tools_for(pack)[tool]

    def reader(self, pack: Pack, tool: str | None) -> Reader:
        """Return what makes formulas for one tool."""
        key = (id(pack) if tool is not None and tool not in self.vocabulary.tools else 0, tool)
        if key not in self._readers:
            knowledge = Knowledge(self.vocabulary, self.settings, self.spec(pack, tool))
            self._readers[key] = Reader(self.terms, knowledge, self.abouts(tool))
        return self._readers[key]

    def abouts(self, tool: str | None) -> dict[Term, About]:
        """Return what is known of the terms of a tool's rules."""
        return self._abouts.setdefault(tool, {})

    def _subject(self, pack: Pack, number: int) -> Subject:
        rule = pack.file.rules[number]
        judged: dict[str | None, Judged] = {}
        for tool in self._asked(pack, rule):
            judged[tool] = Judged(
                self.reader(pack, tool),
                self._active(pack, tool),
                tuple(self.parts(pack, ("rules", number, "condition"), rule.condition, tool)),
                tuple(self.parts(pack, ("rules", number, self._key(rule)), getattr(rule, self._key(rule)), tool)),
            )
        return Subject(self, pack, number, judged)

    @staticmethod
    def _key(rule: RuleModel) -> str:
        return "check" if rule.grant is None else "grant"

    def _asked(self, pack: Pack, rule: RuleModel) -> Iterator[str | None]:
        """Yield the tools that a rule names, or all; where they are not known, those that it names, or None."""
        known = self.vocabulary.tools_for(pack)
        if rule.tools is not None:
            yield from dict.fromkeys(tool for tool in rule.tools if tool in known)
        elif self.toolset is None:
            yield None
        else:
            yield from known

    def _active(self, pack: Pack, tool: str | None) -> Formula:
        if pack.file.active is None:
            return YES
        return _whole(tuple(self.parts(pack, ("active",), pack.file.active, tool)))

    def parts(self, pack: Pack, place: Place, text: str | None, tool: str | None) -> Iterator[Part]:
        """Yield the conjuncts of an expression, for one tool."""
        checked = None if text is None else self.checked(pack, place, text, tool)
        if checked is None:
            return
        for node in conjuncts(checked.node):
            yield Part(node, self.folded(pack, node, tool))

    def folded(self, pack: Pack, node: cel.Node, tool: str | None) -> Formula:
        """Return what a part of a rule's expression says of a tool."""
        reader = self.reader(pack, tool)
        if tool is None:
            return reader.formula(node)
        env = self.vocabulary.rule_env(pack, tool, strict=False)
        whole = cel.Checked(cel.Expr(node.source, node), node, env, want=cel.BOOL)
        return reader.formula(cel.fold(whole, self._constants(pack, tool)).node)

    def checked(self, pack: Pack, place: Place, text: str, tool: str | None) -> cel.Checked | None:
        """Return a rule's expression with its types, for one tool."""
        expr = self.vocabulary.parsed(pack.document, place, text)
        return None if expr is None else cel.check(expr, self.vocabulary.rule_env(pack, tool, strict=False), cel.BOOL)

    def _constants(self, pack: Pack, tool: str | None) -> Mapping[tuple[Any, ...], Any]:
        spec = self.spec(pack, tool)
        if spec is None:
            return {}
        if tool not in self.vocabulary.tools:  # the pack names it, and says nothing of its access and tags
            return {("action", "tool"): tool}
        return {("action", "tool"): tool, ("action", "access"): spec.access, ("action", "tags"): list(spec.tags)}


def conjuncts(node: cel.Node) -> list[cel.Node]:
    """Return what an expression joins with `&&` where it is written, defines aside."""
    if isinstance(node, cel.Logic) and node.operator == "&&":
        return [part for operand in node.operands for part in conjuncts(operand)]
    return [node]


def _whole(parts: tuple[Part, ...]) -> Formula:
    return parts[0].formula if len(parts) == 1 else All(tuple(part.formula for part in parts))
