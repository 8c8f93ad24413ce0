"""Rules that can never apply, and checks and grants that always or never hold.

Invariants:
* What is claimed holds for every tool that the rule is asked about, in every state, under the pack's `active:`.
* A condition that cannot be told counts as failed; where that is all that is left, the finding says so.
* A check of a fact that transitions set to one value only refuses until it is set, which is meant.
* `check: false` is how a refusal without exception is written, and no finding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ledgercli import cel
from ledgercli.analysis.context import APPLIES, Judged, Part, Subject, conjuncts
from ledgercli.analysis.domains import ERR
from ledgercli.analysis.findings import Finding, at_node, at_place, milder, of_rule, shown
from ledgercli.analysis.formulas import FALSE, TRUE, UNKNOWN, terms_of
from ledgercli.analysis.solver import Wanted
from ledgercli.analysis.terms import Term
from ledgercli.cel.syntax import Expand, walk

_FAILS = FALSE | UNKNOWN


def check(subject: Subject) -> Iterator[Finding]:
    """Yield what is wrong with a single rule."""
    if not subject.reached:
        yield _never_applies(subject)
        return
    yield from _tools(subject)
    never = list(_never_true(subject))
    if not never:
        yield from _decision(subject)
        yield from _sides(subject)
    yield from never
    yield from _repeated(subject)


def _repeated(subject: Subject) -> Iterator[Finding]:
    """The same condition twice in one chain."""
    terms = subject.context.terms
    one = next(iter(subject.judged.values()))
    for part in (*one.when, *one.what):
        for node in walk(part.node):
            if isinstance(node, cel.Logic):
                yield from _twice(subject, [(terms.term(operand), operand) for operand in node.operands])
    for parts in (one.when, one.what):
        yield from _twice(subject, [(terms.term(part.node), part.node) for part in parts])


def _twice(subject: Subject, parts: Sequence[tuple[Term, cel.Node]]) -> Iterator[Finding]:
    seen: set[Term] = set()
    for term, node in parts:
        if term in seen:
            problem = at_node(node, "repeated-part", f"{shown(node)} stands twice here")
            yield of_rule(subject, problem, problem.line, problem.column)
        seen.add(term)


# ---- the condition


def _never_applies(subject: Subject) -> Finding:
    name, model = subject.model.name, subject.model
    if model.tools == []:
        problem = at_place(
            subject.pack.document, subject.place("tools"), "never-applies", f"{name} names no tool, so it never applies"
        )
        return of_rule(subject, problem, alone=True)
    core = core_of(subject, "when", lambda tool, one, parts: _can(subject, tool, one, parts, APPLIES))
    return _condition_finding(subject, core, f"{name} can never apply", ())


def _never_true(subject: Subject) -> Iterator[Finding]:
    """A condition that is never true, but may be untold: then the rule fails, and does nothing else."""
    if not any(one.when for one in subject.judged.values()):
        return

    def can(tool: str | None, one: Judged, parts: Sequence[Part]) -> bool:
        return _can(subject, tool, one, parts, TRUE)

    if any(can(tool, one, one.when) for tool, one in subject.reached.items()):
        return
    core = core_of(subject, "when", can)
    note = "where it cannot be told the rule counts as failed, and that is all it does"
    yield _condition_finding(subject, core, f"the condition of {subject.model.name} is never true", (note,))


def _can(subject: Subject, tool: str | None, one: Judged, parts: Sequence[Part], truths: int) -> bool:
    return subject.context.possible(tool, [(one.active, APPLIES), *((part.formula, truths) for part in parts)])


def _condition_finding(subject: Subject, core: list[cel.Node], message: str, notes: tuple[str, ...]) -> Finding:
    """Show the conjunct that does it, and name those that it contradicts."""
    if not core:
        where = "active" if subject.pack.file.active is not None else "tools"
        place = ("active",) if where == "active" else subject.place("tools" if subject.model.tools else "name")
        problem = at_place(subject.pack.document, place, "never-applies", message, notes=notes)
        return of_rule(subject, problem, alone=True)
    fault = _at_fault(subject, core, TRUE)
    return of_rule(
        subject, at_node(fault, "never-applies", message, notes=(*_beside(subject, core), *notes)), alone=True
    )


def _at_fault(subject: Subject, core: Sequence[cel.Node], truth: int) -> cel.Node:
    """Return the part to be corrected: in a define, if that is never so (or always) whatever the tool."""
    node = core[-1]
    if len(core) > 1:
        return node
    while isinstance(node, Expand):
        body = node.body
        if any(_can_be(subject, tool, [body], truth) for tool in subject.judged):
            return node
        node = body
        if truth == TRUE and len(parts := conjuncts(body)) > 1:
            node = _fewest(subject, parts)[-1]
    return node


def _can_be(subject: Subject, tool: str | None, parts: Sequence[cel.Node], truth: int) -> bool:
    """Whether parts may all have a truth value where nothing is said of the tool but the types of its arguments."""
    reader = subject.context.reader(subject.pack, tool)
    return subject.context.possible(tool, [(reader.formula(part), truth) for part in parts])


def _fewest(subject: Subject, parts: Sequence[cel.Node]) -> list[cel.Node]:
    kept = list(parts)
    for part in parts:
        fewer = [one for one in kept if one is not part]
        if not any(_can_be(subject, tool, fewer, TRUE) for tool in subject.judged):
            kept = fewer
    return kept


def _beside(subject: Subject, core: Sequence[cel.Node]) -> tuple[str, ...]:
    """Say what makes a conjunct impossible, and what to do."""
    others = [shown(node) for node in core[:-1]]
    tools = subject.model.tools
    if others:
        why = f"{shown(core[-1])} is never true beside {' and '.join(others)}"
    elif tools and any(cel.path_of(part) in _OF_TOOL for part in walk(core[-1])):
        why = f"{shown(core[-1])} is false for {', '.join(tools)}, the tools that it names"
    elif subject.pack.file.active is not None:
        why = f"{shown(core[-1])} is never true while the pack is active ({subject.pack.file.active})"
    else:
        why = f"{shown(core[-1])} is never true"
    return why, *_stands(core[-1]), "correct it, or remove the rule"


_OF_TOOL = {("action", "tool"), ("action", "access"), ("action", "tags")}


def _stands(node: cel.Node) -> tuple[str, ...]:
    """Say where a define stands that a conjunct is."""
    if not isinstance(node, Expand):
        return ()
    label: Any = node.body.source.label
    document, place, _ = label
    return (f"{node.name} stands at {document.position(place)}",)


def core_of(subject: Subject, side: str, can: Callable[[str | None, Judged, Sequence[Part]], bool]) -> list[cel.Node]:
    """Return as few conjuncts as make it impossible for every tool, in their order."""
    lists: list[tuple[str | None, Judged, tuple[Part, ...]]] = [
        (tool, one, getattr(one, side)) for tool, one in subject.judged.items()
    ]
    nodes = [part.node for part in lists[0][2]] if lists else []
    kept = list(range(len(nodes)))
    for number in range(len(nodes)):
        fewer = [one for one in kept if one != number]
        if not any(can(tool, one, [parts[k] for k in fewer if k < len(parts)]) for tool, one, parts in lists):
            kept = fewer
    return [nodes[number] for number in kept]


def _tools(subject: Subject) -> Iterator[Finding]:
    """Tools that the rule names in vain, and tools that it names twice."""
    seen: set[str] = set()
    for number, tool in enumerate(subject.model.tools or ()):
        place = subject.place("tools", number)
        if tool in seen:
            problem = at_place(subject.pack.document, place, "repeated-tool", f"{tool} is named twice")
            yield of_rule(subject, problem, number)
        elif tool in subject.judged and tool not in subject.reached:
            message = f"the condition of {subject.model.name} is false for every call of {tool}"
            problem = at_place(subject.pack.document, place, "tool-never-concerned", message)
            yield of_rule(subject, problem, tool, alone=True)
        seen.add(tool)


# ---- the check or grant


def _decision(subject: Subject) -> Iterator[Finding]:
    if not _may(subject, _FAILS if subject.key == "grant" else FALSE):
        if (subject.key == "check" or not _is_written(subject, True)) and not _waits(subject):
            yield _always(subject)
    elif not _may(subject, TRUE) and not (subject.key == "check" and _is_written(subject, False)):
        yield _never(subject)


def _may(subject: Subject, truths: int) -> bool:
    """Whether the decision may be one of some truth values where the condition is true."""
    return any(
        subject.context.possible(tool, [(one.active, APPLIES), (one.condition, TRUE), (one.decides, truths)])
        for tool, one in subject.reached.items()
    )


def _waits(subject: Subject) -> bool:
    """Whether the decision waits for a fact that gets one value only: it refuses until that is set."""
    for tool, one in subject.reached.items():
        abouts = subject.context.abouts(tool)
        for about in (abouts[term] for term in terms_of(one.decides)):
            path = None if about.node is None else cel.path_of(about.node)
            if path is not None and path[:2] == ("state", "facts") and about.domain.is_single:
                return ERR in about.domain.marks
    return False


def _is_written(subject: Subject, answer: bool) -> bool:  # noqa: FBT001 - the word that is written
    """Whether the decision is the word true or false itself."""
    parts = next(iter(subject.judged.values())).what
    node = parts[0].node if len(parts) == 1 else None
    while isinstance(node, Expand):
        node = node.body
    return isinstance(node, cel.Literal) and node.value is answer


def _node(subject: Subject) -> cel.Node | None:
    """The decision as a whole."""
    model = subject.model
    text = model.check if model.grant is None else model.grant
    tool = next(iter(subject.judged))
    checked = subject.context.checked(subject.pack, subject.place(subject.key), text or "", tool)
    return None if checked is None else checked.node


def _always(subject: Subject) -> Finding:
    node, name = _node(subject), subject.model.name
    assert node is not None, "what was analysed can be read"
    notes: tuple[str, ...] = ()
    if subject.key == "grant":
        message = f"the grant of {name} holds for every call that it applies to"
        notes = ("write `grant: true` if that is meant",)
    elif any(
        subject.context.possible(tool, [*one.applies, (one.rule, _FAILS)]) for tool, one in subject.reached.items()
    ):
        message = f"the check of {name} holds whenever it can be told"
        notes = ("it refuses only where something is not known; has() asks for that",)
    else:
        message = f"the check of {name} always holds, so the rule refuses nothing"
    if subject.model.condition is not None and not _by_itself(subject):
        notes = ("where the rule's condition holds, the check does too", *notes)
    where = _at_fault(subject, [node], FALSE)
    return of_rule(subject, at_node(where, "check-always-holds", message, notes=notes), alone=True)


def _by_itself(subject: Subject) -> bool:
    """Whether the check is never false, whatever the condition says."""
    return not any(
        subject.context.possible(tool, [(one.active, APPLIES), (one.decides, FALSE)])
        for tool, one in subject.reached.items()
    )


def _never(subject: Subject) -> Finding:
    name = subject.model.name

    def can(tool: str | None, one: Judged, parts: Sequence[Part]) -> bool:
        wanted: list[Wanted] = [(one.active, APPLIES), (one.condition, TRUE)]
        return subject.context.possible(tool, [*wanted, *((part.formula, TRUE) for part in parts)])

    core = core_of(subject, "what", can)
    node = core[-1] if core else _node(subject)
    assert node is not None, "what was analysed can be read"
    where = _at_fault(subject, core or [node], TRUE)
    others = [shown(one) for one in core[:-1]]
    beside = (f"{shown(node)} is never true beside {' and '.join(others)}",) if others else ()
    if subject.key == "grant":
        message = f"the grant of {name} never holds, so it opens nothing"
        problem = at_node(where, "grant-never-holds", message, notes=(*beside, *_stands(node)))
        return of_rule(subject, problem, alone=True)
    notes = (*beside, *_stands(node), "if everything is to be refused, write `check: false`")
    message = f"the check of {name} never holds: every call that it applies to is refused"
    return of_rule(subject, at_node(where, "check-never-holds", message, notes=notes), alone=True)


def _sides(subject: Subject) -> Iterator[Finding]:
    """Sides of an `||` that are true for no call, where the whole is not decided by them."""
    for side in ("when", "what"):
        lists = [(tool, one, getattr(one, side)) for tool, one in subject.reached.items()]
        for number, part in enumerate(lists[0][2]):
            if not isinstance(part.node, cel.Logic) or part.node.operator != "||":
                continue
            for index, operand in enumerate(part.node.operands):
                dead = not any(_side_can(subject, tool, one, parts[number], index) for tool, one, parts in lists)
                if dead and not isinstance(operand, cel.Literal):
                    message = f"this side of the || is never true, in {subject.model.name}"
                    problem = milder(at_node(operand, "part-never-holds", message, notes=_stands(operand)))
                    yield of_rule(subject, problem, side, number, index, alone=True)


def _side_can(subject: Subject, tool: str | None, one: Judged, part: Part, index: int) -> bool:
    assert isinstance(part.node, cel.Logic)
    wanted: list[Wanted] = [(one.active, APPLIES)]
    if part in one.what:
        wanted.append((one.condition, TRUE))
    formula = subject.context.folded(subject.pack, part.node.operands[index], tool)
    return subject.context.possible(tool, [*wanted, (formula, TRUE)])
