"""Tools that change something and that no rule looks at; rules that trust what a user said.

Invariants:
* A rule looks at a tool unless its `tools:` or its condition, with the tool's name, access and tags put in, leaves the
  tool out; whether it can ever apply is another finding.
* What a user said is what a tool that runs `user` sets. Asking where it comes from (`source`), or whether it stands
  elsewhere (`from_tool` and the like), is enough, in this rule or in another one about the same tools.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ledgercli import cel
from ledgercli.analysis.context import Context, Judged, Subject
from ledgercli.analysis.findings import Finding, at_node, at_place, of_rule, shown
from ledgercli.analysis.formulas import FALSE, Fixed
from ledgercli.analysis.looking import Look
from ledgercli.analysis.settings import Pattern, overlap
from ledgercli.cel.checker import looked_at
from ledgercli.cel.syntax import Call, Has, walk

_ASKING = frozenset({"source", "from_task", "from_user", "from_tool"})


def unguarded(context: Context) -> Iterator[Finding]:
    """Yield the tools that change something and that no rule looks at."""
    if not context.packs or context.toolset is None or any(pack.file.default == "deny" for pack in context.packs):
        return
    for name, tool in context.tools.items():
        if tool.access == "write" and not any(_looks_at(subject, name) for subject in context.subjects):
            packs = " and ".join(pack.name for pack in context.packs)
            message = f"{name} is a write, and no rule of {packs} looks at it"
            problem = at_place(context.toolset.document, ("tools", name), "unguarded-write", message, key=True)
            yield Finding(problem, (name,))


def _looks_at(subject: Subject, tool: str) -> bool:
    one = subject.judged.get(tool)
    return one is not None and not any(_is_false(one, number) for number in range(len(one.when)))


def _is_false(one: Judged, number: int) -> bool:
    formula = one.when[number].formula
    return isinstance(formula, Fixed) and formula.value == FALSE


def trusting(context: Context, looks: Sequence[Look]) -> Iterator[Finding]:
    """Yield the rules that trust what a user said."""
    said = [one for one in context.settings.all if one.spec.asks_person and not one.removes]
    if not said:
        return
    subjects = {(subject.pack.document.source.name, subject.number): subject for subject in context.subjects}
    asked = [
        (subjects[look.pack.document.source.name, look.rule], path)
        for look in looks
        if look.judges and look.pack is not None and look.rule is not None
        for path in _asked(look.node)
    ]
    told: set[tuple[int, Pattern]] = set()
    for look in looks:
        if not look.judges or look.pack is None or look.rule is None:
            continue
        subject = subjects[look.pack.document.source.name, look.rule]
        for path, node in _trusted(look.node):
            by = [one for one in said if overlap(one.pattern, path) and len(path) > 1]
            if not by or (id(subject), path) in told:
                continue
            told.add((id(subject), path))
            if not any(overlap(path, other) and _together(subject, rule) for rule, other in asked):
                yield _finding(subject, path, node, by[0].tool, context)


def _together(subject: Subject, other: Subject) -> bool:
    return other is subject or subject.judged.keys() <= other.judged.keys()


def _asked(node: cel.Node) -> Iterator[Pattern]:
    for part in walk(node):
        if isinstance(part, Call) and part.function in _ASKING:
            for arg in part.args:
                yield from (path[1:] for path, _ in looked_at(arg) if path[0] == "state")


def _trusted(node: cel.Node) -> Iterator[tuple[Pattern, cel.Node]]:
    """The paths whose values decide: not those that are only looked for."""
    for path, part in looked_at(node):
        if path[:2] == ("state", "facts") and not isinstance(part, Has):
            yield path[1:], part


def _finding(subject: Subject, path: Pattern, node: cel.Node, tool: str, context: Context) -> Finding:
    message = f"{subject.model.name} trusts {shown(node)}, which {tool} sets to what the user said"
    others = {one.tool for one in context.settings.at(path)} - {tool}
    better = f"source({shown(node)}).tool == '{min(others)}'" if others else f"source({shown(node)}).tool != 'user'"
    notes = (f"ask where it comes from: {better}",)
    return of_rule(subject, at_node(node, "trusts-user", message, notes=notes), path)
