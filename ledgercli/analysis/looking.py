"""Every expression of what is analysed together, checked: what each reads, and where it stands.

Invariants:
* An expression is given once, with the types of the tool that it is about, or of none in particular.
* Nothing is reported here: what cannot be checked is left out, and was reported when it was compiled.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ledgercli import cel
from ledgercli.analysis.context import Context
from ledgercli.documents import Document, Place
from ledgercli.policy import OnFail, Pack
from ledgercli.scenario import GoalModel
from ledgercli.toolset import Tool
from ledgercli.vocabulary import blocks_of


@dataclass(frozen=True, slots=True, eq=False)
class Look:
    """One expression, or one in a text.

    Arguments:
        node: it.
        judges: whether it decides something: a condition, check, grant, `when`, `done_when`.
        pack: whose rule it is in; None elsewhere.
        rule: the number of the rule.

    """

    node: cel.Node
    judges: bool
    pack: Pack | None = None
    rule: int | None = None


@dataclass(frozen=True, slots=True)
class _Reader:
    """Checks the expressions of one place after another."""

    context: Context

    def expression(self, document: Document, place: Place, text: str | None, env: cel.Env) -> Iterator[cel.Node]:
        expr = None if text is None else self.context.vocabulary.parsed(document, place, text)
        if expr is not None:
            yield cel.check(expr, env).node

    def texts(self, document: Document, place: Place, value: Any, env: cel.Env) -> Iterator[cel.Node]:
        """The expressions of texts with braces, in maps and lists too."""
        if isinstance(value, (Mapping, list)):
            items = value.items() if isinstance(value, Mapping) else enumerate(value)
            for key, item in items:
                yield from self.texts(document, (*place, key), item, env)
        if not isinstance(value, str) or "{" not in value:
            return
        try:
            parsed = cel.parse_text(cel.Source(value, label=(document, place, False)))
        except cel.CelSyntaxError:
            return
        for part in cel.check_text(parsed, env).parts:
            if not isinstance(part, str):
                yield part.node


def looks(context: Context) -> Iterator[Look]:
    """Yield every expression of packs, toolset and scenario."""
    reader = _Reader(context)
    for pack in context.packs:
        yield from _of_pack(reader, pack)
    yield from _of_toolset(reader)
    yield from _of_scenario(reader)


def _of_pack(reader: _Reader, pack: Pack) -> Iterator[Look]:
    context, document = reader.context, pack.document
    for node in reader.expression(document, ("active",), pack.file.active, context.vocabulary.state_env(pack)):
        yield Look(node, judges=True, pack=pack)
    env = context.vocabulary.rule_env(pack, None, strict=False)
    for name, text in pack.file.define.items():
        for node in reader.expression(document, ("define", name), text, env):
            yield Look(node, judges=False, pack=pack)
    for number, rule in enumerate(pack.file.rules):
        place: Place = ("rules", number)
        tool = rule.tools[0] if rule.tools and rule.tools[0] in context.vocabulary.tools_for(pack) else None
        own = context.vocabulary.rule_env(pack, tool, strict=False)
        for key in ("condition", "check", "grant"):
            for node in reader.expression(document, (*place, key), getattr(rule, key), own):
                yield Look(node, judges=True, pack=pack, rule=number)
        long = isinstance(rule.on_fail, OnFail)
        where = (*place, "on_fail", "error") if long else (*place, "on_fail")
        texts: list[tuple[Place, str | None]] = [
            (where, rule.failing.error),
            ((*place, "on_fail", "hint"), rule.failing.hint),
        ]
        for spot, said in texts:
            for node in reader.texts(document, spot, said, own):
                yield Look(node, judges=False, pack=pack, rule=number)


def _of_toolset(reader: _Reader) -> Iterator[Look]:
    context = reader.context
    if context.toolset is None:
        return
    document, vocabulary = context.toolset.document, context.vocabulary
    env = vocabulary.fails_env(None)
    for node in reader.expression(document, ("fails_when",), context.toolset.file.fails_when, env):
        yield Look(node, judges=True)
    for name, tool in context.tools.items():
        yield from _of_tool(reader, document, name, tool)
    for setting in context.settings.all:
        for checked in setting.checked.values():
            yield Look(checked.node, judges=False)


def _of_tool(reader: _Reader, document: Document, name: str, tool: Tool) -> Iterator[Look]:
    vocabulary = reader.context.vocabulary
    own = vocabulary.fails_env(name)
    for node in reader.expression(document, ("tools", name, "fails_when"), tool.fails_when, own):
        yield Look(node, judges=True)
    for success, place, block in blocks_of(name, tool):
        outer = vocabulary.transition_env(name, success)
        inner = vocabulary.transition_env(name, success, (*place, "each")) if block.each is not None else outer
        for node in reader.expression(document, (*place, "each"), block.each, outer):
            yield Look(node, judges=False)
        for node in reader.expression(document, (*place, "when"), block.when, inner):
            yield Look(node, judges=True)
        for path in (*block.set, *block.unset):
            for node in _keys(path, inner):
                yield Look(node, judges=False)


def _keys(path: str, env: cel.Env) -> Iterator[cel.Node]:
    """The expressions in the brackets of a path that is set."""
    try:
        node = cel.parse(path).node
    except cel.CelSyntaxError:
        return
    while isinstance(node, (cel.Select, cel.Index)):
        if isinstance(node, cel.Index):
            yield cel.check(cel.Expr(node.source, node.key), env).node
        node = node.operand


def _of_scenario(reader: _Reader) -> Iterator[Look]:
    scenario, env = reader.context.scenario, reader.context.vocabulary.state_env()
    if scenario is None:
        return
    document, file = scenario.document, scenario.file
    for number, entry in enumerate(file.decide.script or ()):
        place: Place = ("decide", "script", number)
        for node in reader.expression(document, (*place, "when"), entry.when, env):
            yield Look(node, judges=True)
        for node in reader.texts(document, (*place, "propose", "tool"), entry.propose.tool, env):
            yield Look(node, judges=False)
        for node in reader.texts(document, (*place, "propose", "args"), entry.propose.args, env):
            yield Look(node, judges=False)
    for node in reader.texts(document, ("answer",), file.answer_text, env):
        yield Look(node, judges=False)
    for node in _of_goals(reader, file.goals, document, ("goals",), env):
        yield Look(node, judges=True)


def _of_goals(
    reader: _Reader, goals: list[GoalModel], document: Document, place: Place, env: cel.Env
) -> Iterator[cel.Node]:
    for number, goal in enumerate(goals):
        yield from reader.expression(document, (*place, number, "done_when"), goal.done_when, env)
        yield from _of_goals(reader, goal.goals, document, (*place, number, "goals"), env)
