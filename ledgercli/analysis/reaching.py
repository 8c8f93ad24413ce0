"""Deadlocks: what a rule waits for can only be made known by tools that are themselves refused until then.

Invariants:
* What a run can reach is never taken for less than it is: a tool counts as reachable unless some rule that refuses is
  proved to fail, whatever the arguments and whatever the reachable tools have set.
* Only rules that refuse for certain count: enforced, `deny`, in a pack that no grant overrides.
* Facts are taken as the scenario gives them from the start, none where there is no scenario; a program that embeds the
  rules may give more.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ledgercli import cel
from ledgercli.analysis import domains
from ledgercli.analysis.applying import core_of
from ledgercli.analysis.context import Context, Judged, Part, Subject
from ledgercli.analysis.domains import Domain
from ledgercli.analysis.findings import Finding, at_node, of_rule
from ledgercli.analysis.formulas import TRUE, Formula, Not, Some
from ledgercli.analysis.knowledge import asked_source
from ledgercli.analysis.reading import argument
from ledgercli.analysis.settings import fact_of
from ledgercli.analysis.terms import Term
from ledgercli.cel.syntax import Binary, Call, Expand, Has
from ledgercli.history import NEVER

_ZERO = domains.between(0, 0)
_NEVER_RAN = {
    "count_calls": _ZERO,
    "count_failures": _ZERO,
    "count_recent_failures": _ZERO,
    "distinct_args": _ZERO,
    "sum_args": _ZERO,
    "succeeded": domains.marks(domains.FALSE),
    "last_result": domains.NOTHING,
    "last_args": domains.NOTHING,
    "steps_since": domains.between(NEVER, None),
    "from_tool": domains.marks(domains.FALSE),
}


def check(context: Context) -> Iterator[Finding]:
    """Yield the rules that no run gets past."""
    if context.toolset is None:
        return
    reach = _Reach(context)
    if reach.settle():
        return
    found = {}
    for number, subject in enumerate(reach.subjects):
        stuck = [tool for tool in sorted(reach.blocked) if reach.is_stuck(tool, subject)]
        if stuck:
            found[number] = stuck
    for number in _first(context, reach, found):
        yield _finding(context, reach, reach.subjects[number], found[number], number)


def _first(context: Context, reach: _Reach, found: Mapping[int, list[str]]) -> Iterator[int]:
    """Yield the rules that keep tools from running, but none that another one would free alone, and not the reverse."""
    freed: dict[int, set[str]] = {}
    for number in found if len(found) > 1 else ():
        other = _Reach(context, spared=number)
        other.settle()
        freed[number] = other.runs - reach.runs
    for number, stuck in found.items():
        if not any(freed[one] >= set(stuck) and not freed[number] >= set(found[one]) for one in freed if one != number):
            yield number


@dataclass(slots=True)
class _Reach:
    """Which tools a run can reach, and what it can know then.

    Arguments:
        context: what is analysed.
        spared: the number of a rule that is taken for removed.

    """

    context: Context
    spared: int | None = None
    subjects: list[Subject] = field(default_factory=list)
    runs: set[str] = field(default_factory=set)
    _held: dict[str, Mapping[Term, Domain]] = field(default_factory=dict)
    _awaited: dict[tuple[str, int], frozenset[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.subjects = [one for one in self.context.subjects if _refuses(one)]
        if self.spared is not None:
            del self.subjects[self.spared]
        self.runs = {tool for tool in self.context.vocabulary.tools if not self._rules(tool)}

    @property
    def blocked(self) -> set[str]:
        """The tools that no run reaches."""
        return set(self.context.vocabulary.tools) - self.runs

    def settle(self) -> bool:
        """Let what can run do so until nothing is added; whether all tools can run in the end."""
        grown = True
        while grown and self.blocked:
            self._held.clear()
            found = {tool for tool in self.blocked if self.may_run(tool, self._rules(tool))}
            self.runs |= found
            grown = bool(found)
        self._held.clear()
        return not self.blocked

    def _rules(self, tool: str) -> list[Subject]:
        return [one for one in self.subjects if tool in one.judged]

    def may_run(self, tool: str, rules: list[Subject]) -> bool:
        """Whether some call of a tool may pass some rules, with what is reachable."""
        wanted = [(_passing(one.judged[tool]), TRUE) for one in rules]
        return self.context.possible(tool, wanted, self.held(tool))

    def held(self, tool: str) -> Mapping[Term, Domain]:
        """Return what the terms of a tool's rules can be, with what is reachable."""
        if tool not in self._held:
            self._held[tool] = {
                term: known
                for term, about in self.context.abouts(tool).items()
                if about.node is not None and (known := self._reachable(about.node, tool)) is not None
            }
        return self._held[tool]

    def _reachable(self, node: cel.Node, tool: str) -> Domain | None:
        path = fact_of(node)
        if path is not None:
            given = self.context.settings.values(path, self.runs)
            if given is None:
                return None
            if isinstance(node, (Has, Binary)):  # whether it is there
                return domains.marks(domains.FALSE, domains.ERR) if given.is_empty() else None
            return given.with_error()
        if (asked := asked_source(node)) is not None:
            setters = {one.tool for one in self.context.settings.at(asked)}
            if setters and not setters & self.runs and self.context.settings.started(asked, in_run=True).is_empty():
                return domains.ONLY_ERROR
        whole, node = node, _asked(node)
        if isinstance(node, Call) and node.function in _NEVER_RAN and _ran(node, tool) in self.blocked:
            found = _NEVER_RAN[node.function].with_error()
            return found if node is whole or found.only_error else None
        return None

    # ---- who is to blame

    def is_stuck(self, tool: str, subject: Subject) -> bool:
        """Whether a rule alone keeps a tool from running for want of what only waits for that tool itself."""
        awaited = self.awaited(tool, subject)
        seen: set[str] = set()
        pending = list(awaited)
        while pending:
            one = pending.pop()
            if one == tool:
                return True
            if one not in seen:
                seen.add(one)
                pending += [more for rule in self._rules(one) for more in self.awaited(one, rule)]
        return False

    def awaited(self, tool: str, subject: Subject) -> frozenset[str]:
        """Return the refused tools that could make a rule pass which keeps a tool from running."""
        key = (tool, id(subject))
        if key not in self._awaited:
            self._awaited[key] = frozenset(self._awaits(tool, subject))
        return self._awaited[key]

    def _awaits(self, tool: str, subject: Subject) -> Iterator[str]:
        if tool not in subject.judged or self.may_run(tool, [subject]):
            return
        if not self.context.possible(tool, [(_passing(subject.judged[tool]), TRUE)]):
            return  # it is refused whatever is known: another finding
        one = subject.judged[tool]
        for part in (*one.when, *one.what):
            for node in cel.walk(part.node):
                yield from self._could(node, tool)

    def _could(self, node: cel.Node, about: str) -> Iterator[str]:
        """The refused tools that could change what a part of a rule is."""
        path = fact_of(node)
        if path is not None:
            settings = self.context.settings
            if settings.values(path, self.runs) != settings.values(path, self.context.vocabulary.tools):
                yield from ({one.tool for one in settings.at(path)} - self.runs)
        elif isinstance(node, Call) and node.function in _NEVER_RAN:
            tool = _ran(node, about)
            if tool in self.blocked:
                yield tool


def _asked(node: cel.Node) -> cel.Node:
    """Return what a node is a part of: of `last_result(…).owner` the call."""
    while isinstance(node, (cel.Select, cel.Index, Expand)):
        node = node.body if isinstance(node, Expand) else node.operand
    return node


def _ran(node: Call, tool: str) -> str:
    """Return the tool whose runs a call asks about, itself where it asks about the proposed one."""
    place = 1 if node.args and node.function != "from_tool" else len(node.args) - 1
    if place < len(node.args) and cel.path_of(node.args[place]) == ("action", "tool"):
        return tool
    found = argument(node, place)
    return found if isinstance(found, str) else ""


def _refuses(subject: Subject) -> bool:
    """Whether a call is refused for certain where a rule fails."""
    file = subject.pack.file
    plain = file.resolve == "strictest" or all(
        rule.grant is None and rule.failing.effect == "deny" for rule in file.rules
    )
    return subject.enforced and subject.model.failing.effect == "deny" and plain


def _passing(one: Judged) -> Formula:
    """True where a rule does not fail, or its pack does not judge."""
    return Some((Not(one.active), one.rule))


def _finding(context: Context, reach: _Reach, subject: Subject, stuck: list[str], number: int) -> Finding:
    tool = stuck[0]

    def can(name: str | None, _one: Judged, parts: Sequence[Part]) -> bool:
        return name == tool and context.possible(name, [(part.formula, TRUE) for part in parts], reach.held(tool))

    core = core_of(subject, "what", can)
    node = core[-1] if core else subject.judged[tool].what[0].node
    by = sorted(reach.awaited(tool, subject))
    names = " and ".join(stuck)
    message = f"{subject.model.name} keeps {names} from running until something is known that only then becomes known"
    scenario = f"in {context.scenario.name} " if context.scenario is not None else ""
    notes = (
        f"{' and '.join(by)} could make it known, and {'is' if len(by) == 1 else 'are'} refused until it is",
        f"{scenario}no run gets past it; it would, were the fact given from the start",
    )
    return of_rule(subject, at_node(node, "deadlock", message, notes=notes), number, alone=True)
