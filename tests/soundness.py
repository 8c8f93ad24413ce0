"""What each finding claims, held against the enforcer's answers in every state."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable

from ledgercli.documents import Problem
from ledgercli.policy import Pack
from ledgercli.records import Verdict
from tests.brute import World, found, judge, load, only, rulebook, without, worlds

#: Codes whose claim is checked, and how often that was done.
checked: Counter[str] = Counter()


def false_claims(text: str) -> list[str]:
    """The findings of a pack that are not true, each with a state that shows it."""
    pack = load(text)
    book = None if pack is None else rulebook(pack)
    if pack is None or book is None:
        return []
    wrong = []
    for problem in found(pack, book):
        shown = _refuted(pack, text, problem)
        if shown is not None:
            wrong.append(f"{problem}\n{text}\n{shown}")
    return wrong


def _refuted(pack: Pack, text: str, problem: Problem) -> World | None:
    number = _rule_at(text, problem.line)
    if number is None:
        return None
    name = pack.file.rules[number].name
    own = _own_text(pack, number)
    checked[problem.code] += 1
    match problem.code:
        case "never-applies":
            if "never true" in problem.message:
                alone = judge(only(pack, number, check="false", grant=None, mode="enforce"))
                return _first(own, lambda w: _says(alone(w), "No."))
            alone = judge(only(pack, number))
            return _first(own, lambda w: alone(w).applied > 0)
        case "check-always-holds":
            alone = judge(only(pack, number, mode="enforce"))
            if pack.file.rules[number].grant is not None:
                return None
            if "told" in problem.message:
                return _first(own, lambda w: _says(alone(w), "No."))
            return _first(own, lambda w: _says(alone(w), f"p/{name}"))
        case "check-never-holds":
            applies = judge(only(pack, number, check="false", grant=None, mode="enforce"))
            alone = judge(only(pack, number, mode="enforce"))
            return _first(own, lambda w: _says(applies(w), "No.") and not _says(alone(w), f"p/{name}"))
        case "grant-never-holds":
            with_rule, rest = judge(pack), judge(without(pack, number))
        case "hidden-rule" | "hidden-by-grant" | "repeated-rule" | "never-granted" | "grant-overrides-nothing":
            with_rule, rest = judge(pack), judge(without(pack, number))
        case _:
            checked[problem.code] -= 1
            return None
    return _first(text, lambda w: _decided(with_rule(w)) != _decided(rest(w)))


def _says(verdict: Verdict, word: str) -> bool:
    """Whether a rule of this name, or with this message, failed."""
    return any(word in (finding.rule, finding.error) for finding in (*verdict.failed, *verdict.warned))


def _decided(verdict: Verdict) -> tuple[str, bool]:
    return verdict.effect, verdict.halts


def _first(text: str, is_so: Callable[[World], bool]) -> World | None:
    return next((world for world in worlds(text) if is_so(world)), None)


def _own_text(pack: Pack, number: int) -> str:
    rule = pack.file.rules[number]
    parts = [rule.condition, rule.check, rule.grant, pack.file.active, *pack.file.define.values()]
    return "\n".join(filter(None, parts))


def _rule_at(text: str, line: int) -> int | None:
    """The number of the rule that a line belongs to."""
    above = "\n".join(text.splitlines()[:line])
    return len(re.findall(r"^  - name:", above, re.MULTILINE)) - 1 if "rules:" in above else None
