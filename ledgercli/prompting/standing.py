"""The rules about a tool as they stand in one state: their sentences, whether they are met, what is forbidden outright.

Invariants:
* The sentences are those of `ledger doc`; a rule that surely does not apply in this state is not told.
* Nothing is said of a call's arguments: what depends on them is neither met nor unmet. A tool is forbidden outright
  only where every call of it would be denied, whatever its arguments.
* Where in doubt a tool is not forbidden: the enforcer judges every proposal anyway.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from ledgercli import cel
from ledgercli.cel.syntax import Has
from ledgercli.functions import Moment
from ledgercli.history import History
from ledgercli.rulebook import Rulebook
from ledgercli.rules import CompiledPack, CompiledRule, ToolPlan
from ledgercli.sentences import ANY_CALL, Sentence, Statement
from ledgercli.sentences import state as said
from ledgercli.state import State
from ledgercli.summariser.texts import cut, inert, json_text
from ledgercli.toolset import FINISH

Answer = Literal["yes", "no", "unknown", "depends"]
_READS: Final = 3  # values that an unmet rule names
_THIS: Final = "\0"  # in place of a tool's name, where what is said of several tools is compared
_SUBJECT: Final = "\1"  # in place of what its sentences are about
_HAS: Final = re.compile(r"has\((state\..*)\)")
_ARGS: Final = ("action", "args")


@dataclass(frozen=True, slots=True)
class Standing:
    """A rule as it stands.

    Arguments:
        rule: `pack/rule`.
        about: the tools that its sentences are about; `ANY_CALL` for every tool alike.
        lines: its sentences.
        now: `Now: met.`, or what is missing; empty where that depends on the arguments.

    """

    rule: str
    about: str
    lines: tuple[str, ...]
    now: str

    def text(self) -> Iterator[str]:
        """Yield it, `Now:` behind its only line or on a line of its own."""
        if len(self.lines) == 1:
            yield f"- {self.lines[0]} {self.now}".rstrip()
            return
        yield f"- {self.lines[0]}"
        yield from (f"  {line}" for line in self.lines[1:])
        if self.now:
            yield f"  {self.now}"


@dataclass(slots=True)
class Situation:
    """What rules are asked in.

    Arguments:
        rulebook: the tools and rules.
        state: what is known.
        history: the steps up to now.
        now: the time.

    """

    rulebook: Rulebook
    state: State
    history: History
    now: cel.Timestamp

    def asked(self, plan: ToolPlan, program: cel.Program) -> tuple[Answer, Mapping[str, Any]]:
        """Return an answer for every call of a tool, and what was read for it."""
        action = {"tool": plan.tool, "args": {}, "access": plan.access, "tags": plan.tags}
        roots = {"state": self.state.tree, "action": action, "now": self.now}
        by_args = any(path[:2] == _ARGS[: len(path)] for path in program.checked.paths)
        if by_args and _asks_what_is_there(program.checked):
            return "depends", {}
        found = program.explain(roots, Moment(self.history, self.state), values=False)
        if found.answer.known:
            return ("yes" if found.answer.value is True else "no"), found.reads
        return ("depends" if by_args else "unknown"), found.reads


def _asks_what_is_there(checked: cel.Checked) -> bool:
    """Whether an answer over no arguments may differ from one over some, even where it is known."""
    if any(path in (_ARGS[:1], _ARGS) for path in checked.paths):
        return True
    return any(isinstance(node, Has) and cel.path_of(node.operand) == _ARGS for node in cel.walk(checked.node))


@dataclass(slots=True)
class Rules:
    """The rules of a rulebook; their sentences are made once.

    Arguments:
        rulebook: the tools and rules.

    """

    rulebook: Rulebook
    _said: dict[tuple[str, str, str], Statement] = field(default_factory=dict, init=False)
    _parts: dict[int, tuple[CompiledRule, list[cel.Program]]] = field(default_factory=dict, init=False)

    # ---- what is forbidden

    def forbidden(self, tool: str, situation: Situation) -> bool:
        """Whether every call of a tool would be denied."""
        enforcer = self.rulebook.enforcer
        plan = None if enforcer.shadow else enforcer.plan(tool)
        return plan is not None and any(self._denies(pack, plan, situation) for pack in plan.packs)

    def _denies(self, pack: CompiledPack, plan: ToolPlan, situation: Situation) -> bool:
        if not _is_active(pack, plan, situation):
            return False
        grants = [
            rule for rule in pack.rules if rule.is_grant and not rule.shadow and self._may_hold(rule, plan, situation)
        ]
        if pack.allow_list and not grants and plan.tool != FINISH:
            return True
        failing = (
            rule
            for rule in pack.rules
            if not rule.is_grant and not rule.shadow and rule.effect == "deny" and self._fails(rule, plan, situation)
        )
        return any(not pack.by_priority or all(one.priority <= rule.priority for one in grants) for rule in failing)

    def _may_hold(self, rule: CompiledRule, plan: ToolPlan, situation: Situation) -> bool:
        programs = [rule.decides] if rule.condition is None else [rule.condition, rule.decides]
        return all(situation.asked(plan, one)[0] in ("yes", "depends") for one in programs)

    def _fails(self, rule: CompiledRule, plan: ToolPlan, situation: Situation) -> bool:
        """Whether a check fails for every call; what cannot be told counts as failed."""
        if rule.condition is not None:
            applies = situation.asked(plan, rule.condition)[0]
            if applies != "yes":
                return applies == "unknown"
        return any(situation.asked(plan, part)[0] in ("no", "unknown") for part in self._all_of(rule))

    def _all_of(self, rule: CompiledRule) -> list[cel.Program]:
        """Return what must all hold for a check to hold."""
        if id(rule) not in self._parts:
            self._parts[id(rule)] = (rule, [cel.compile(part) for part in cel.split_and(rule.what)])
        return self._parts[id(rule)][1]

    # ---- what is told

    def standing(self, tools: Sequence[str], situation: Situation) -> list[Standing]:
        """Return the rules about some tools; what is said alike of several of them stands once."""
        groups: dict[tuple[Any, ...], list[tuple[str, CompiledRule | None, CompiledPack]]] = {}
        for tool in tools:
            for key, rule, pack in self._about(tool, situation):
                groups.setdefault(key, []).append((tool, rule, pack))
        return [self._standing(key, same, len(tools)) for key, same in groups.items()]

    def _standing(
        self, key: tuple[Any, ...], same: Sequence[tuple[str, CompiledRule | None, CompiledPack]], of: int
    ) -> Standing:
        name, _, now = key
        tool, rule, pack = same[0]
        subject = ANY_CALL if 1 < len(same) == of else " / ".join(one for one, _, _ in same)
        if rule is None:
            return Standing(name, subject, (f"{subject} is denied by {pack.name} unless a rule of it allows it.",), now)
        statement = self._statement(rule, pack, tool, ANY_CALL if subject == ANY_CALL else _SUBJECT)
        this = tool if len(same) == 1 else "that tool"
        lines = (line.replace(_THIS, this).replace(_SUBJECT, subject) for line in _lines(statement, tool))
        return Standing(name, subject, tuple(lines), now.replace(_THIS, this))

    def _about(
        self, tool: str, situation: Situation
    ) -> Iterator[tuple[tuple[Any, ...], CompiledRule | None, CompiledPack]]:
        """Yield each rule about a tool behind what must be the same for two tools to share its sentences."""
        plan = self.rulebook.enforcer.plan(tool)
        assert plan is not None, "only tools that there are have rules"
        for pack in plan.packs:
            if not _is_active(pack, plan, situation):
                continue
            for rule in pack.rules:
                statement = self._statement(rule, pack, tool, ANY_CALL)
                if statement and (now := self._now(rule, plan, situation)) is not None:
                    yield (rule.name, _lines(statement, tool), _without(tool, now)), rule, pack
            if pack.allow_list and tool != FINISH:
                yield (f"{pack.name}/default_deny", (), ""), None, pack

    def _statement(self, rule: CompiledRule, pack: CompiledPack, tool: str, subject: str) -> Statement:
        known = (rule.name, tool, subject)
        if known not in self._said:
            self._said[known] = said(rule, subject, by_priority=pack.by_priority, bare=True)
        return self._said[known]

    def _now(self, rule: CompiledRule, plan: ToolPlan, situation: Situation) -> str | None:
        """Return how a rule stands; None where it does not apply whatever the arguments."""
        applies = "yes" if rule.condition is None else situation.asked(plan, rule.condition)[0]
        if applies == "no":
            return None
        if applies == "unknown":
            return "Now: not met: whether it applies cannot be told."
        answers = [situation.asked(plan, part) for part in self._all_of(rule)]
        unmet = [reads for answer, reads in answers if answer in ("no", "unknown")]
        if unmet and applies == "yes":
            return f"Now: not met{self._missing(unmet, plan.tool)}."
        sure = applies == "yes" and all(answer == "yes" for answer, _ in answers)
        return "Now: met." if sure else ""

    def _missing(self, unmet: Iterable[Mapping[str, Any]], tool: str) -> str:
        """Return what was read where a rule is not met, if it does not stand in the state, and who can change it."""
        reads = {_HAS.sub(r"\1", path): value for one in unmet for path, value in one.items()}
        known = [_read(path, value) for path, value in reads.items() if not path.startswith("state.")]
        text = f" ({', '.join(known[:_READS])})" if known else ""
        ways = [one for path in reads for one in self.rulebook.vocabulary.establishing(path) if one != tool]
        if ways:
            text += f"; {' or '.join(dict.fromkeys(ways))} can establish it"
        return text


def _lines(statement: Statement, tool: str | None = None) -> tuple[str, ...]:
    """Return the lines of a statement, the parts of a sentence further in; a tool's name stands as `_THIS`."""

    def within(sentence: Sentence, depth: int) -> Iterator[str]:
        yield "  " * depth + sentence.text
        for part in sentence.items:
            yield from within(part, depth + 1)

    whole = (*statement.sentences, *statement.where, *statement.notes)
    lines = (line for sentence in whole for line in within(sentence, 0))
    return tuple(lines if tool is None else (_without(tool, line) for line in lines))


def _without(tool: str, text: str) -> str:
    return re.sub(rf"(?<![\w.]){re.escape(tool)}(?![\w.(])", _THIS, text)


def _is_active(pack: CompiledPack, plan: ToolPlan, situation: Situation) -> bool:
    return pack.active is None or situation.asked(plan, pack.active)[0] != "no"


def _read(path: str, value: Any) -> str:
    return f"{cut(inert(path), 120)} is {cut(json_text(value), 80)}"
