"""Packs with one thing changed: what a mistake, or a slip of the pen, would make of them.

Invariants:
* A mutant differs from its pack in one place and in what it says; no two mutants of a pack are alike.
* Every rule has at least `LEAST` of them.
* Nothing is judged here, and a pack is never changed in place.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from ledgercli import cel
from ledgercli.documents import Place
from ledgercli.mutation.slips import Edit, Words, edits_of, names_in, shifted
from ledgercli.policy import Effect, Pack, RuleModel
from ledgercli.toolset import FINISH

LEAST: Final = 5  # mutants of a rule
_EXPRESSIONS: Final = ("condition", "check", "grant")
_EFFECTS: Final[tuple[Effect, ...]] = ("deny", "require_approval", "warn")
_PARTS: Final[Mapping[str, str]] = {"define": "define {}", "constraints": "constraint {}"}
_ARGUMENT: Final = re.compile(r"action\.args\.([A-Za-z_]\w*)")


@dataclass(frozen=True, eq=False)
class Mutant:
    """A pack with one thing changed.

    Arguments:
        change: what was done: `drop the rule`, `shift a bound`.
        rule: the rule that it is about; empty for what belongs to the pack.
        part: the part that it is about: the rule's name, `define large`, `constraint limit`, `active`.
        file: the pack's file.
        line: where it was changed.
        column: and where in the line.
        before: what stood there; empty: nothing.
        after: what stands there now; empty: nothing.
        pack: the changed pack.
        again: rules that read what was changed elsewhere in the pack.
        constraint: the constraint whose default is another; empty for none.

    """

    change: str
    rule: str
    part: str
    file: str
    line: int
    column: int
    before: str
    after: str
    pack: Pack
    again: frozenset[str] = frozenset()
    constraint: str = ""


def mutants(pack: Pack, words: Words) -> list[Mutant]:
    """Return the mutants of a pack in the order of its lines.

    Arguments:
        pack: the pack.
        words: which words may take the place of which.

    """
    maker = _Maker(pack, words)
    made: dict[tuple[Any, ...], Mutant] = {}
    for one in (*maker.of_pack(), *maker.of_rules()):
        made.setdefault((one.rule, one.line, one.column, one.before, one.after), one)
    return sorted(made.values(), key=lambda one: (one.line, one.column))


class _Maker:
    """Makes the mutants of one pack."""

    def __init__(self, pack: Pack, words: Words) -> None:
        self._pack, self._words = pack, words
        self._inside = {name: names_in(text) for name, text in pack.file.define.items()}
        self._used = [self._uses(rule) for rule in pack.file.rules]

    # ---- what belongs to the pack

    def of_pack(self) -> Iterator[Mutant]:
        """Yield mutants of defaults, defines and settings."""
        file = self._pack.file
        for name, value in file.constraints.items():
            for path, before, after in _shifted(value):
                changed = {**file.constraints, name: _put(value, path, after)}
                place = ("constraints", name, *path)
                shown = f"{'.'.join(map(str, (name, *path)))}: "
                texts = f"{shown}{cel.literal(before)}", f"{shown}{cel.literal(after)}"
                yield self._mutant("shift a bound", place, texts, {"constraints": changed}, constraint=name)
        for name, text in file.define.items():
            again = frozenset(rule.name for rule, used in zip(file.rules, self._used, strict=True) if name in used)
            for edit in edits_of(text, self._words, truth=False):
                changed = {**file.define, name: edit.text}
                yield self._edited(edit, ("define", name), {"define": changed}, again=again)
        if file.active is not None:
            for edit in edits_of(file.active, self._words):
                yield self._edited(edit, ("active",), {"active": edit.text})
        yield from self._settings()

    def _settings(self) -> Iterator[Mutant]:
        file = self._pack.file
        grants = any(rule.grant is not None for rule in file.rules)
        if file.default == "deny" and (file.resolve == "priority" or not grants):
            yield self._mutant("swap the default", ("default",), ("deny", "allow"), {"default": "allow"})
        if file.resolve == "priority" and (file.default == "deny" or not grants):
            texts = ("priority", "strictest")
            yield self._mutant("change how rules combine", ("resolve",), texts, {"resolve": "strictest"})

    def _uses(self, rule: RuleModel) -> frozenset[str]:
        """Return the defines that a rule uses, also through others."""
        texts = [getattr(rule, key) for key in _EXPRESSIONS]
        pending = set().union(*(names_in(text) for text in texts if text is not None))
        failing = rule.failing
        for text in (failing.error, failing.hint):
            pending |= {name for name in self._pack.file.define if text is not None and name in text}
        used: set[str] = set()
        while pending:
            name = pending.pop()
            if name in self._inside and name not in used:
                used.add(name)
                pending |= self._inside[name]
        return frozenset(used)

    # ---- rules

    def of_rules(self) -> Iterator[Mutant]:
        """Yield mutants of rules."""
        for number, rule in enumerate(self._pack.file.rules):
            made = list(self._of_rule(number, rule))
            for more in self._fillers(number, rule):
                if len(made) >= LEAST:
                    break
                made.append(more)
            yield from made

    def _of_rule(self, number: int, rule: RuleModel) -> Iterator[Mutant]:
        place: Place = ("rules", number)
        others = [one for one in self._pack.file.rules if one is not rule]
        yield self._mutant("drop the rule", (*place, "name"), (rule.name, ""), {"rules": others}, rule=rule.name)
        yield from self._tools(number, rule)
        for key in _EXPRESSIONS:
            text = getattr(rule, key)
            for edit in () if text is None else edits_of(text, self._words):
                yield self._edited(edit, (*place, key), self._with(number, **{key: edit.text}), rule=rule.name)
        if rule.condition is not None:
            changed = self._with(number, condition=None)
            texts = (" ".join(rule.condition.split()), "")
            yield self._mutant("drop the condition", (*place, "condition"), texts, changed, rule=rule.name)
        if rule.grant is None:
            yield from self._failing(number, rule)
        other = self._other_priority(rule)
        if other is not None:
            texts = (f"priority {rule.priority}", f"priority {other}")
            changed = self._with(number, priority=other)
            yield self._mutant("change the priority", (*place, "priority"), texts, changed, rule=rule.name)

    def _other_priority(self, rule: RuleModel) -> int | None:
        """Return a priority that lets others decide, or this rule, which it does not now; None where none counts."""
        against = [one.priority for one in self._pack.file.rules if _voice(one) != _voice(rule)]
        if self._pack.file.resolve != "priority" or not against:
            return None
        return min(against) - 1 if rule.priority >= min(against) else max(against) + 1

    def _failing(self, number: int, rule: RuleModel) -> Iterator[Mutant]:
        failing = rule.failing
        place: Place = ("rules", number, "on_fail", "effect")
        for effect in _EFFECTS:
            if effect != failing.effect:
                changed = self._with(number, on_fail=failing.model_copy(update={"effect": effect}))
                yield self._mutant("swap the effect", place, (failing.effect, effect), changed, rule=rule.name)
        if failing.halt:
            place = ("rules", number, "on_fail", "halt")
            changed = self._with(number, on_fail=failing.model_copy(update={"halt": False}))
            yield self._mutant("drop halt", place, ("true", "false"), changed, rule=rule.name)

    def _tools(self, number: int, rule: RuleModel) -> Iterator[Mutant]:
        tools = rule.tools or []
        for index, tool in enumerate(tools):
            left = [one for one in tools if one != tool]
            if left:
                place = ("rules", number, "tools", index)
                changed = self._with(number, tools=left)
                yield self._mutant("drop a tool", place, (tool, ""), changed, rule=rule.name)
        more = self._another_tool(rule, self._used[number]) if tools else None
        if more is not None:
            changed = self._with(number, tools=[*tools, more])
            yield self._mutant("add a tool", ("rules", number, "tools"), ("", more), changed, rule=rule.name)

    def _another_tool(self, rule: RuleModel, uses: frozenset[str]) -> str | None:
        """Return a tool that has the arguments which a rule reads; a write before a read."""
        used = [self._pack.file.define[name] for name in uses]
        texts = [*(getattr(rule, key) for key in _EXPRESSIONS), rule.failing.error, rule.failing.hint, *used]
        wanted = {name for text in texts if text is not None for name in _ARGUMENT.findall(text)}
        mine = set(rule.tools or [])
        known = self._words.tools.items()
        fits = [name for name, args in known if name not in (*mine, FINISH) and wanted <= args]
        return min(fits, key=lambda name: name not in self._words.writes, default=None)

    def _fillers(self, number: int, rule: RuleModel) -> Iterator[Mutant]:
        """Yield what can be changed in any rule, for one in which little else can."""
        key = "check" if rule.grant is None else "grant"
        before = " ".join(str(getattr(rule, key)).split())
        for after in ("true", "false") if rule.grant is not None else ("false", "true"):
            changed = self._with(number, **{key: after})
            place = ("rules", number, key)
            if before != after:
                yield self._mutant("change a value", place, (before, after), changed, rule=rule.name)
        modes = ("enforce", "shadow") if rule.mode == "enforce" else ("shadow", "enforce")
        texts = (f"mode {modes[0]}", f"mode {modes[1]}")
        changed = self._with(number, mode=modes[1])
        yield self._mutant("change the mode", ("rules", number, "mode"), texts, changed, rule=rule.name)

    # ---- making

    def _with(self, number: int, **changed: Any) -> dict[str, Any]:
        rules = list(self._pack.file.rules)
        rules[number] = rules[number].model_copy(update=changed)
        return {"rules": rules}

    def _edited(self, edit: Edit, place: Place, changed: Mapping[str, Any], **more: Any) -> Mutant:
        document = self._pack.document
        scalar = document.mark(place).scalar
        at = scalar.offset(edit.at) if scalar is not None else document.mark(place).start
        texts = edit.before, edit.after
        return self._mutant(edit.change, place, texts, changed, at=at, **more)

    def _mutant(
        self, change: str, place: Place, texts: tuple[str, str], changed: Mapping[str, Any], **more: Any
    ) -> Mutant:
        document = self._pack.document
        at = more.pop("at", None)
        line, column = document.line_column(document.mark(place).start if at is None else at)
        file = self._pack.file.model_copy(update=dict(changed))
        pack = Pack(file, replace(document))  # of its own: what was read of the other is not what stands here
        rule = more.pop("rule", "")
        part = rule or _PARTS.get(str(place[0]), "{}").format(*place[1:2] or place[:1])
        return Mutant(change, rule, part, document.source.name, line, column, *texts, pack, **more)


def _voice(rule: RuleModel) -> Effect:
    """What a rule says where rules compete."""
    return "allow" if rule.grant is not None else rule.failing.effect


def _shifted(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any, Any]]:
    """Yield each number and truth value of a default with what may stand in its place."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _shifted(item, (*path, key))
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from _shifted(item, (*path, number))
    else:
        yield from ((path, value, other) for other in shifted(value))


def _put(value: Any, path: Sequence[Any], new: Any) -> Any:
    if not path:
        return new
    if isinstance(value, list):
        return [_put(item, path[1:], new) if number == path[0] else item for number, item in enumerate(value)]
    return {**value, path[0]: _put(value[path[0]], path[1:], new)}
