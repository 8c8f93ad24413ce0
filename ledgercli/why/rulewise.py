"""What each rule of each pack says of one proposal, with the values that made it say so.

Invariants:
* Rules are evaluated by the programs that the enforcer judges with, on the values that it judged on.
* A rule that does not apply names the conjunct of its condition (or of its pack's `active`) that is false.
* Nothing is judged here: which rules count, and which decided, stands in the verdict.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from ledgercli import cel
from ledgercli.cel import syntax
from ledgercli.policy import Pack, RuleModel
from ledgercli.redaction import holds_mask
from ledgercli.rulebook import Rulebook
from ledgercli.rules import CompiledPack, CompiledRule, ToolPlan
from ledgercli.why.situations import Situation

Says = Literal["fail", "pass", "n/a", "grant"]
_COMPARES: Final = frozenset({"==", "!=", "<", "<=", ">", ">=", "in"})


@dataclass(frozen=True)
class Part:
    """A part of an expression with its value.

    Arguments:
        text: the part as it is typed.
        value: its value; of one that cannot be told the reason.
        known: whether it has a value.

    """

    text: str
    value: Any
    known: bool = True


@dataclass(frozen=True)
class Evaluated:
    """An expression with its answer and what led to it.

    Arguments:
        text: the expression as it is typed.
        answer: what it came to.
        reads: what it read.
        parts: the parts that were computed on the way, with their values.

    """

    text: str
    answer: cel.Answer
    reads: Mapping[str, Any]
    parts: Sequence[Part] = ()

    @property
    def holds(self) -> bool:
        """Whether it is true."""
        return self.answer.known and self.answer.value is True


@dataclass(frozen=True)
class RuleSays:
    """What one rule says.

    Arguments:
        name: `pack/rule`; `pack/` of a whole pack that is not active.
        says: `fail`, `pass` or `n/a`; of a grant that holds `grant`.
        effect: what failing means; of a grant `allow`.
        text: its check or grant as it is typed.
        because: for `n/a` the conjunct that is false, else the conjuncts of the check that do not hold; empty where
            the whole of it says enough.
        check: the check or grant, evaluated; None for `n/a`.
        condition: the condition, evaluated; None if there is none.
        shadow: whether it is only watched.
        masked: whether it read a value that is masked here, so that it may have said otherwise.

    """

    name: str
    says: Says
    effect: str
    text: str
    because: Sequence[Evaluated] = ()
    check: Evaluated | None = None
    condition: Evaluated | None = None
    shadow: bool = False
    masked: bool = False

    @property
    def reads(self) -> dict[str, Any]:
        """All that it read."""
        parts = (self.condition, self.check, *self.because)
        return {label: value for part in parts if part is not None for label, value in part.reads.items()}


@dataclass(frozen=True)
class Rulewise:
    """Asks every rule about one proposal.

    Arguments:
        rules: the packs.
        plan: compiled for the proposal's tool.
        situation: what it is judged in.

    """

    rules: Rulebook
    plan: ToolPlan
    situation: Situation
    _programs: dict[cel.Checked, cel.Program] = field(default_factory=dict, init=False)

    def each(self) -> Iterator[RuleSays]:
        """Yield what each rule says that can concern the tool, pack by pack."""
        for pack in self.plan.packs:
            if pack.active is not None:
                active = self._evaluated(pack.active.checked)
                if active.answer.known and not active.holds:
                    yield RuleSays(f"{pack.name}/", "n/a", "allow", active.text, self._false(pack.active.checked))
                    continue
            for rule in pack.rules:
                yield self._rule(rule)

    def others(self) -> Iterator[RuleSays]:
        """Yield the rules that are about other tools, each with what says so."""
        compiled = {rule.name for pack in self.plan.packs for rule in pack.rules}
        active = {pack.name for pack in self.plan.packs if self._is_active(pack)}
        for pack in self.rules.packs:
            for rule in pack.file.rules if pack.name in active else ():
                if f"{pack.name}/{rule.name}" not in compiled:
                    yield self._other(pack, rule)

    def _is_active(self, pack: CompiledPack) -> bool:
        return pack.active is None or not self._false(pack.active.checked)

    def _rule(self, rule: CompiledRule) -> RuleSays:
        effect = "allow" if rule.is_grant else rule.effect
        text = cel.render(rule.what.expr)
        condition = None if rule.when is None else self._evaluated(rule.when)
        if condition is not None and condition.answer.known and not condition.holds:
            assert rule.when is not None
            false = self._false(rule.when)
            hidden = holds_mask(condition.reads)
            return RuleSays(
                rule.name, "n/a", effect, text, false, condition=condition, shadow=rule.shadow, masked=hidden
            )
        if condition is not None and not condition.answer.known:
            check, because = condition, [condition]
        else:
            check = self._evaluated(rule.what)
            parts = cel.split_and(rule.what)
            because = [] if check.holds or len(parts) < 2 else self._failing(parts)
        says: Says = ("grant" if check.holds else "n/a") if rule.is_grant else "pass" if check.holds else "fail"
        if rule.is_grant and not check.holds:
            because = because or [check]
        hidden = holds_mask({**(condition.reads if condition else {}), **check.reads})
        return RuleSays(rule.name, says, effect, text, because, check, condition, shadow=rule.shadow, masked=hidden)

    def _failing(self, parts: Sequence[cel.Checked]) -> list[Evaluated]:
        return [one for one in map(self._evaluated, parts) if not one.holds]

    def _false(self, checked: cel.Checked) -> list[Evaluated]:
        """The first conjunct that is false, and by itself makes the whole so."""
        for part in cel.split_and(checked):
            one = self._evaluated(part)
            if one.answer.known and not one.holds:
                return [one]
        return []

    def _other(self, pack: Pack, rule: RuleModel) -> RuleSays:
        """A rule that folds away for the tool: by its `tools`, or by a conjunct of its condition."""
        name, effect = f"{pack.name}/{rule.name}", "allow" if rule.grant is not None else rule.failing.effect
        text = rule.check or rule.grant or ""
        if rule.tools is not None and self.plan.tool not in rule.tools:
            answer = cel.Answer(known=True, value=False)
            about = Evaluated(
                f"action.tool in {syntax.spaced(list(rule.tools))}", answer, {"action.tool": self.plan.tool}
            )
            return RuleSays(name, "n/a", effect, text, [about])
        vocabulary = self.rules.vocabulary
        expr = vocabulary.parsed(
            pack.document, ("rules", pack.file.rules.index(rule), "condition"), rule.condition or ""
        )
        if expr is None:  # a pack that does not load is refused long before
            return RuleSays(name, "n/a", effect, text)
        checked = cel.check(expr, vocabulary.rule_env(pack, self.plan.tool, strict=False), cel.BOOL)
        return RuleSays(name, "n/a", effect, text, self._false(checked))

    def _evaluated(self, checked: cel.Checked) -> Evaluated:
        if checked not in self._programs:
            self._programs[checked] = cel.compile(checked)
        explained = self._programs[checked].explain(self.situation.roots(self.plan), self.situation.moment())
        text = cel.render(checked.node)
        reads = {label: str(value) if label == "now" else value for label, value in explained.reads.items()}
        return Evaluated(text, explained.answer, reads, list(_parts(checked.node, explained)))


def _parts(whole: cel.Node, explained: cel.Explanation) -> Iterator[Part]:
    """Yield the parts that were computed: defines that are no paths, and what is compared; the last value of each."""
    last = dict(explained.values)
    wanted = _compared(whole)
    told = set()
    for node, value in last.items():
        if node is whole or node not in wanted or _plain(node):
            continue
        text = cel.render(node)
        if text not in told:
            told.add(text)
            known = not isinstance(value, cel.EvalError)
            yield Part(text, value if known else str(value), known)


def _compared(whole: cel.Node) -> set[cel.Node]:
    """The defines, and what stands on both sides of comparisons."""
    wanted: set[cel.Node] = set()
    for node in cel.walk(whole):
        if isinstance(node, syntax.Expand):
            wanted.add(node)
        elif isinstance(node, syntax.Binary) and node.operator in _COMPARES:
            wanted |= {node.left, node.right}
    return wanted


def _plain(node: cel.Node) -> bool:
    """Whether the value of a part is told elsewhere: a literal, a path from a root, a question to the history."""
    inner = node
    while isinstance(inner, (syntax.Expand, cel.Select)):
        inner = inner.body if isinstance(inner, syntax.Expand) else inner.operand
    if isinstance(inner, cel.Call):
        return any(one.observed for one in inner.functions) or (
            inner.function == "size" and syntax.chain(inner.args[0]) is not None
        )
    return isinstance(inner, cel.Literal) or syntax.chain(node) is not None
