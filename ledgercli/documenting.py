"""A pack in plain sentences: per tool what is required, and per rule what proves it.

Invariants:
* The sentences are made from the rules as they are judged: for each tool with its name, access and tags put in.
* A rule that asks the same of whatever tool stands once, for each call; a rule that asks a tool nothing is not there.
* Nothing is judged here: cases and coverage are what the caller has.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from ledgercli import cel
from ledgercli.cases import CaseModel
from ledgercli.loading import Loader, refuse
from ledgercli.policy import SHIPPED, Pack, RuleModel, rule_names, shipped_folder
from ledgercli.policytests import Cases
from ledgercli.rules import CompiledRule, Compiler
from ledgercli.scenario import Scenario
from ledgercli.sentences import ANY_CALL, Sentence, Statement, active, state
from ledgercli.toolset import FINISH, Toolset
from ledgercli.vocabulary import Vocabulary

#: What holds for every sentence, said once.
LEGEND: Final = (
    "Every sentence must hold; of the rules that fail the strictest decides: deny, then approval, then a warning.",
    "Where a field is not known, a rule counts as failed and a grant allows nothing, unless the sentence says more.",
    "Fields are written as rules type them: action is the call that is asked for, state what is known, now the time.",
)


@dataclass(frozen=True, slots=True)
class Requirement:
    """What one rule asks of a tool.

    Arguments:
        rule: its name.
        description: what it is for.
        statement: the sentences.

    """

    rule: str
    description: str
    statement: Statement


@dataclass(frozen=True, slots=True)
class ToolPart:
    """All that a pack asks of one tool.

    Arguments:
        name: of the tool; empty for each call, of whatever tool.
        description: what the tool does.
        requirements: rule by rule, in the order of the pack.
        note: what the pack says of the tool besides.

    """

    name: str
    description: str
    requirements: tuple[Requirement, ...]
    note: Sentence | None = None


@dataclass(frozen=True, slots=True)
class RuleEntry:
    """A rule, and what proves it.

    Arguments:
        name: without its pack's.
        model: as it stands in the pack.
        place: FILE:LINE.
        tools: those it asks something of; empty: each call.
        cases: names of the cases and examples that name it; None where there are none at all.
        coverage: answer → how often it was given; None where nobody counted.

    """

    name: str
    model: RuleModel
    place: str
    tools: tuple[str, ...]
    cases: tuple[str, ...] | None
    coverage: Mapping[str, int] | None


@dataclass(frozen=True, slots=True)
class PackPart:
    """One pack.

    Arguments:
        pack: as it was read.
        active: when it judges; None: always.
        notes: how its rules work together, where that is not the usual way.
        tools: each call first, then tool by tool.
        free: tools that it asks nothing of but what holds for each call.
        rules: every rule, in the order of the pack.

    """

    pack: Pack
    active: Statement | None
    notes: tuple[Sentence, ...]
    tools: tuple[ToolPart, ...]
    free: tuple[str, ...]
    rules: tuple[RuleEntry, ...]


def document(
    packs: Sequence[Pack],
    vocabulary: Vocabulary,
    cases: Mapping[str, Sequence[str]] | None = None,
    coverage: Mapping[str, Mapping[str, int]] | None = None,
) -> list[PackPart]:
    """Return packs in sentences.

    Arguments:
        packs: those that are asked for come last, behind what they include.
        vocabulary: what their names are checked against.
        cases: `pack/rule` → names of the cases that name it.
        coverage: `pack/rule` → how often each answer was given.

    """
    return [_Writing(pack, vocabulary, cases, coverage or {}).part() for pack in reversed(packs)]


def compiled(
    packs: Sequence[Pack],
    toolset: Toolset | None,
    initial: Mapping[str, Any] | None = None,
    scenario: Scenario | None = None,
) -> Vocabulary:
    """Return the names that packs are checked against; without a toolset a pack brings its own.

    Arguments:
        packs: the packs.
        toolset: the tools that they are for.
        initial: values that declare names, by the keys of a scenario.
        scenario: values that declare names.

    Raises:
        InvalidDocumentError: something does not load; all problems together.

    """
    alone = [] if toolset is not None else [pack for pack in packs if pack.file.vocabulary is None]
    refuse(
        pack.document.problem(
            ("pack",),
            "no-vocabulary",
            f"nothing says which tools and facts the pack {pack.name} may name",
            notes=("name its tools with --toolset FILE, or what uses it with --scenario FILE or --cases FILE",),
        )
        for pack in alone
    )
    vocabulary = Vocabulary(toolset, packs, scenario, initial or {})
    Compiler(vocabulary, packs).check()
    refuse(vocabulary.problems)
    return vocabulary


def given(files: Sequence[Cases]) -> dict[str, Any]:
    """Return the values that case files give in all their cases, which declare names."""
    values: dict[str, Any] = {"facts": {}, "constraints": {}, "flags": {}}
    for file in files:
        for part, known in values.items():
            known.update(getattr(file.file.state, part))
    return values


def loaded(name: str) -> list[Pack]:
    """Read a pack with those that it includes.

    Raises:
        LedgerCliError: it cannot be read, or something does not load.

    """
    loader = Loader()
    packs = loader.given([name])
    refuse(loader.problems)
    return packs


def cases_of(packs: Sequence[Pack], files: Sequence[Cases]) -> dict[str, list[str]] | None:
    """Return which cases and examples name which rule; None where there are none at all."""
    if not files and not any(rule.examples for pack in packs for rule in pack.file.rules):
        return None
    found: dict[str, list[str]] = {}
    for pack in packs:
        for rule in pack.file.rules:
            found.setdefault(f"{pack.name}/{rule.name}", []).extend(one.name for one in rule.examples)
    for file in files:
        names = rule_names(file.packs)
        for case in file.file.tests:
            expected = [*(case.expected.rules or ()), *(case.expected.rules_include or ())]
            for full in dict.fromkeys(full for name in expected for full in names.get(name, ())):
                found.setdefault(full, []).extend(_names(case))
    return found


def _names(case: CaseModel) -> Iterator[str]:
    """Yield the name of a case, for each of its rows."""
    for row in case.rows or [{}]:
        name = case.name
        for key, value in row.items():
            name = name.replace(f"{{row.{key}}}", str(value))
        yield name


def _place(pack: Pack, number: int) -> str:
    """Return where a rule stands; a pack that comes with the package is not shown where it is installed."""
    place = pack.document.position(("rules", number))
    file = Path(pack.document.source.name)
    if file.is_absolute() and file.parent.samefile(shipped_folder()):
        return f"{SHIPPED}{file.stem}{place.removeprefix(str(file))}"
    return place


@dataclass(slots=True)
class _Writing:
    """Puts one pack into sentences."""

    pack: Pack
    vocabulary: Vocabulary
    cases: Mapping[str, Sequence[str]] | None
    coverage: Mapping[str, Mapping[str, int]]
    _asked: dict[str, list[str]] = field(default_factory=dict, init=False)

    def part(self) -> PackPart:
        file, vocabulary = self.pack.file, self.vocabulary
        tools = list(self._tools())
        named = {part.name for part in tools}
        free = [tool for tool in vocabulary.tools if tool not in named] if vocabulary.toolset else []
        checked = None
        if file.active is not None:
            env = vocabulary.state_env(self.pack)
            checked = vocabulary.expression(self.pack.document, ("active",), file.active, env, cel.BOOL)
        judges = active(checked) if checked else None
        return PackPart(self.pack, judges, tuple(self._notes()), tuple(tools), tuple(free), tuple(self._rules()))

    def _notes(self) -> Iterator[Sentence]:
        if self.pack.file.active is not None:
            yield Sentence("Where that cannot be told, it judges.")
        if self.pack.file.resolve == "priority":
            yield Sentence(
                "Where rules of this pack disagree, the highest priority decides; of one priority the strictest."
            )
        if self.pack.file.default == "deny":
            yield Sentence("What no grant of this pack allows is denied, except finish.")

    def _tools(self) -> Iterator[ToolPart]:
        made = (self._in_general(number, rule) for number, rule in enumerate(self.pack.file.rules))
        general = [rule for rule in made if rule is not None]
        everywhere = tuple(self._requirements(general, ANY_CALL))
        if everywhere:
            yield ToolPart("", "", everywhere)
        known = {rule.model.name for rule in general}
        compiler = Compiler(self.vocabulary, [self.pack])
        for tool, spec in self.vocabulary.tools_for(self.pack).items():
            rules = compiler.rules(self.pack, tool)
            own = tuple(self._requirements([rule for rule in rules if rule.model.name not in known], tool))
            note = self._never(rules, tool)
            if own or note:
                yield ToolPart(tool, spec.description, own, note)

    def _never(self, rules: Sequence[CompiledRule], tool: str) -> Sentence | None:
        allows = any(rule.is_grant and not rule.shadow and rule.what.constant != (True, False) for rule in rules)
        if self.pack.file.default != "deny" or tool == FINISH or allows:
            return None
        return Sentence(f"{tool} is always denied: no grant of this pack allows it.")

    def _requirements(self, rules: Sequence[CompiledRule], subject: str) -> Iterator[Requirement]:
        for rule in rules:
            statement = state(rule, subject, by_priority=self.pack.file.resolve == "priority")
            if statement:
                self._asked.setdefault(rule.model.name, []).append(subject)
                yield Requirement(rule.model.name, rule.model.description, statement)

    def _in_general(self, number: int, rule: RuleModel) -> CompiledRule | None:
        """Return a rule for no tool in particular; None where it says different things of different tools."""
        env = self.vocabulary.rule_env(self.pack, None, strict=False)
        made: dict[str, cel.Checked] = {}
        for key in ("condition", "check", "grant"):
            text = getattr(rule, key)
            if text is not None:
                expr = self.vocabulary.parsed(self.pack.document, ("rules", number, key), text)
                assert expr is not None, "what does not load is refused before"
                made[key] = cel.check(expr, env, cel.BOOL)
        if rule.tools is not None or (self.vocabulary.toolset is not None and _by_tool(made)):
            return None
        what = made.get("check") or made["grant"]
        return CompiledRule(f"{self.pack.name}/{rule.name}", rule, made.get("condition"), what, None, None)

    def _rules(self) -> Iterator[RuleEntry]:
        for number, rule in enumerate(self.pack.file.rules):
            full = f"{self.pack.name}/{rule.name}"
            tools = tuple(tool for tool in self._asked.get(rule.name, ()) if tool != ANY_CALL)
            place = _place(self.pack, number)
            cases = None if self.cases is None else tuple(dict.fromkeys(self.cases.get(full, ())))
            yield RuleEntry(rule.name, rule, place, tools, cases, self.coverage.get(full))


def _by_tool(made: Mapping[str, cel.Checked]) -> bool:
    """Whether a rule looks at what differs from tool to tool, other than by the tool's name in its check."""
    for key, checked in made.items():
        for path in checked.paths:
            if path[0] == "action" and len(path) > 1 and (path[1] != "tool" or key == "condition"):
                return True
    return False
