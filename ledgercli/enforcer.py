"""Judges a proposal against the state: proposal + state + history + time → verdict.

Invariants:
* Pure: no file, no clock, no network; the time comes in as a value.
* Every rule that applies is judged; none is skipped because another has decided.
* What cannot be told counts as failed, with the rule's own effect; a grant that cannot be told does not grant; a pack
  whose `active` cannot be told is active.
* `deny` > `require_approval` > `warn` > `allow`, within a pack and between packs; a grant never reaches into another
  pack, and only a grant opens an allow-list.
* Two ways lead to one verdict: a generated function answers when all is well, rule by rule judgement otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ledgercli import cel
from ledgercli.functions import Moment
from ledgercli.history import History
from ledgercli.policy import EFFECTS, Effect, Pack
from ledgercli.records import Finding, Proposal, Verdict
from ledgercli.redaction import holds_mask
from ledgercli.rules import CompiledPack, CompiledRule, Compiler, ToolPlan
from ledgercli.state import State
from ledgercli.toolset import FINISH, Tool
from ledgercli.vocabulary import Vocabulary

STRICTNESS: Mapping[str, int] = {effect: rank for rank, effect in enumerate(EFFECTS)}
UNKNOWN_TOOL, BAD_ARGUMENTS, DEFAULT_DENY = "unknown_tool", "bad_arguments", "default_deny"


@dataclass(slots=True)
class _Judgement:
    """What one pack says."""

    effect: Effect = "allow"
    failed: list[tuple[int, Finding]] = field(default_factory=list)  # with the rule's priority
    overridden: list[Finding] = field(default_factory=list)
    shadowed: list[Finding] = field(default_factory=list)


class Enforcer:
    """The packs in force, compiled for the tools that there are.

    Arguments:
        vocabulary: the names; problems of rules are added to its `problems`.
        packs: the packs, in order.
        shadow: every proposal is let through; what would have refused it stands in `shadowed`.
        compiler: what compiles them; a plain one if left out.

    Its `shadow` is as it was given.

    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        packs: Sequence[Pack],
        *,
        shadow: bool = False,
        compiler: Compiler | None = None,
    ) -> None:
        self._vocabulary = vocabulary
        self._compiler = compiler or Compiler(vocabulary, packs)
        self._plans: dict[str, ToolPlan] = {}
        self.shadow = shadow
        self._digests = {pack.name: pack.digest for pack in packs}

    def check(self) -> None:
        """Find every problem of every pack; they are added to the vocabulary's."""
        self._compiler.check()

    def plan(self, tool: str) -> ToolPlan | None:
        """Return the rules that can concern a tool, compiled for it; None where there is no such tool."""
        if tool not in self._plans and tool in self._vocabulary.tools:
            self._plans[tool] = self._compiler.plan(tool)
        return self._plans.get(tool)

    def judge(  # noqa: PLR0913 - what is judged, each by its name
        self,
        proposal: Proposal,
        state: State,
        history: History,
        now: cel.Timestamp,
        *,
        step: int = 0,
        masked: bool = False,
    ) -> Verdict:
        """Judge one proposal.

        Arguments:
            proposal: the tool call that is asked for.
            state: what is known.
            history: the steps up to now.
            now: the time of the proposal.
            step: its number, which the verdict carries.
            masked: it comes from a ledger, so that a masked argument fits whatever its schema says.

        """
        name, args = proposal.tool, proposal.args
        plan = self._plans.get(name) or self.plan(name)
        if plan is None:
            return self._refused(step, UNKNOWN_TOOL, f"There is no tool {name}.", self._like(name))
        if plan.defaults:
            args = {**plan.defaults, **args}
        if not plan.fits(args) and not (masked and holds_mask(args)):
            return self._refused(step, BAD_ARGUMENTS, *_bad_arguments(name, self._vocabulary.tools[name], args))
        action = {"tool": name, "args": args, "access": plan.access, "tags": plan.tags}
        roots = {"state": state.tree, "action": action, "now": now}
        moment = Moment(history, state)
        quick = plan.quick(roots, moment)
        if quick is None or (plan.grants and not plan.opened(quick[2])):
            return self._thorough(plan, roots, moment, step)
        applied, reads, _ = quick
        if "now" in reads:
            reads["now"] = str(now)
        return Verdict("allow", applied, reads, step, packs=self._digests)

    def consulted(
        self, proposal: Proposal, state: State, history: History, now: cel.Timestamp
    ) -> dict[str, dict[str, Any]]:
        """Return what each rule that concerns a call reads for itself; one that does not apply, of its condition."""
        plan = self.plan(proposal.tool)
        consulted: dict[str, dict[str, Any]] = {}
        if plan is None:
            return consulted
        action = {
            "tool": plan.tool,
            "args": {**plan.defaults, **proposal.args},
            "access": plan.access,
            "tags": plan.tags,
        }
        roots, moment = {"state": state.tree, "action": action, "now": now}, Moment(history, state)
        for pack in plan.packs:
            for rule in pack.rules:
                reads = consulted[rule.name] = {}
                if rule.condition is None or _holds(rule.condition, roots, moment, reads, unknown=True):
                    _answer(rule.decides, roots, moment, reads)
                if "now" in reads:
                    reads["now"] = str(now)
        return consulted

    def _like(self, name: str) -> str | None:
        near = cel.nearest(name, self._vocabulary.tools)
        return f"Did you mean {' or '.join(near)}?" if near else None

    def _refused(self, step: int, rule: str, error: str, hint: str | None) -> Verdict:
        finding = Finding(rule=rule, effect="deny", error=error, hint=hint)
        if self.shadow:
            return Verdict("allow", step=step, shadowed=(finding,), packs=self._digests)
        return Verdict("deny", step=step, failed=(finding,), reason=error, hint=hint, packs=self._digests)

    def _thorough(self, plan: ToolPlan, roots: Mapping[str, Any], moment: Moment, step: int) -> Verdict:
        """Judge rule by rule, with everything that was read."""
        reads: dict[str, Any] = {}
        applied = 0
        judgements = []
        for pack in plan.packs:
            if pack.active is not None and not _holds(pack.active, roots, moment, reads, unknown=True):
                continue
            count, judgement = self._judge_pack(pack, plan.tool, roots, moment, reads)
            applied += count
            judgements.append(judgement)
        if "now" in reads:
            reads["now"] = str(roots["now"])
        return self._combined(judgements, applied, reads, step)

    def _judge_pack(
        self, pack: CompiledPack, tool: str, roots: Mapping[str, Any], moment: Moment, reads: dict[str, Any]
    ) -> tuple[int, _Judgement]:
        applied = 0
        failed: list[tuple[CompiledRule, Finding]] = []
        grants: list[CompiledRule] = []
        shadowed: list[Finding] = []
        for rule in pack.rules:
            when = _answer(rule.condition, roots, moment, reads) if rule.condition else None
            if when is not None and when.known and when.value is not True:
                continue
            applied += 1
            answer = when if when is not None and not when.known else _answer(rule.decides, roots, moment, reads)
            holds = answer.known and answer.value is True
            if rule.is_grant:
                if holds and not rule.shadow:
                    grants.append(rule)
            elif not holds:
                finding = self._finding(rule, answer, roots, moment)
                if rule.shadow:
                    shadowed.append(finding)
                else:
                    failed.append((rule, finding))
        judgement = _by_priority(failed, grants) if pack.by_priority else _strictest(failed)
        judgement.shadowed.extend(shadowed)
        if pack.allow_list and not grants and tool != FINISH:
            error = f"Pack {pack.name} allows {tool} only where a rule of it grants it."
            judgement.failed.append((-(2**31), Finding(f"{pack.name}/{DEFAULT_DENY}", "deny", error)))
            judgement.effect = "deny"
        return applied, judgement

    def _finding(self, rule: CompiledRule, answer: cel.Answer, roots: Mapping[str, Any], moment: Moment) -> Finding:
        error, missing = rule.message(roots, moment), tuple(answer.missing)
        if not answer.known:
            error = not_known(missing) if missing else f"It cannot be told: {answer.error}."
        hint = rule.hint.render(roots, moment) if rule.hint else None
        return Finding(rule=rule.name, effect=rule.effect, error=error, hint=hint, halt=rule.halt, missing=missing)

    def _combined(self, judgements: Sequence[_Judgement], applied: int, reads: dict[str, Any], step: int) -> Verdict:
        ranked = sorted(
            (entry for judgement in judgements for entry in judgement.failed),
            key=lambda entry: (-STRICTNESS[entry[1].effect], -entry[0]),
        )  # stable: of equals the first rule stays first
        failed = tuple(finding for _, finding in ranked)
        shadowed = tuple(finding for judgement in judgements for finding in judgement.shadowed)
        overridden = tuple(finding for judgement in judgements for finding in judgement.overridden)
        if self.shadow:
            return Verdict(
                "allow",
                applied,
                reads,
                step,
                shadowed=(*failed, *shadowed),
                overridden=overridden,
                packs=self._digests,
            )
        effects = [judgement.effect for judgement in judgements]
        effect: Effect = max(effects, key=STRICTNESS.__getitem__, default="allow")
        missing = tuple(dict.fromkeys(path for finding in failed for path in finding.missing))
        return Verdict(
            effect,
            applied,
            reads,
            step,
            failed=tuple(finding for finding in failed if finding.effect != "warn"),
            warned=tuple(finding for finding in failed if finding.effect == "warn"),
            overridden=overridden,
            shadowed=shadowed,
            reason=failed[0].error if failed else None,
            hint=failed[0].hint if failed else None,
            missing=missing,
            establish=tuple(dict.fromkeys(tool for path in missing for tool in self._vocabulary.establishing(path))),
            halts=effect == "deny" and any(finding.halt for finding in failed),
            packs=self._digests,
        )


def _answer(program: cel.Program, roots: Mapping[str, Any], moment: Moment, reads: dict[str, Any]) -> cel.Answer:
    explanation = program.explain(roots, moment, values=False)
    reads.update(explanation.reads)
    return explanation.answer


def _holds(
    program: cel.Program, roots: Mapping[str, Any], moment: Moment, reads: dict[str, Any], *, unknown: bool
) -> bool:
    answer = _answer(program, roots, moment, reads)
    return answer.value is True if answer.known else unknown


def _strictest(failed: Sequence[tuple[CompiledRule, Finding]]) -> _Judgement:
    effect: Effect = max((rule.effect for rule, _ in failed), key=STRICTNESS.__getitem__, default="allow")
    return _Judgement(effect, [(rule.priority, finding) for rule, finding in failed])


def _by_priority(failed: Sequence[tuple[CompiledRule, Finding]], grants: Sequence[CompiledRule]) -> _Judgement:
    """Failed rules and grants that hold compete: the highest priority decides, ties go to the strictest."""
    voices: list[tuple[int, Effect]] = [(rule.priority, rule.effect) for rule, _ in failed]
    voices += [(grant.priority, "allow") for grant in grants]
    if not voices:
        return _Judgement()
    top, effect = max(voices, key=lambda voice: (voice[0], STRICTNESS[voice[1]]))
    judgement = _Judgement(effect)
    for rule, finding in failed:
        if rule.priority < top and rule.effect != effect:
            judgement.overridden.append(finding)
        else:
            judgement.failed.append((rule.priority, finding))
    return judgement


def not_known(missing: Iterable[str]) -> str:
    """Say which paths are not known, in one sentence."""
    names = list(missing)
    return f"{' and '.join(names)} {'is' if len(names) == 1 else 'are'} not known"


def _bad_arguments(name: str, tool: Tool, args: Mapping[str, Any]) -> tuple[str, str | None]:
    """Say what is wrong with the first wrong argument, and what the tool takes."""
    for arg in args:
        if arg not in tool.args:
            near = cel.nearest(arg, tool.args)
            hint = f"Did you mean {' or '.join(near)}?" if near else f"It takes {', '.join(tool.args) or 'none'}."
            return f"{name} has no argument {arg}.", hint
    for arg, schema in tool.args.items():
        if arg not in args:
            return f"{name} needs the argument {arg}.", str(schema.get("description") or "") or None
    error = min(tool.validator.iter_errors(args), key=lambda problem: len(problem.instance_path))
    where = cel.path_text(("action", "args", *error.instance_path))
    return f"{where} does not fit: {error.message}.", None
