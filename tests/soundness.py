"""What each finding claims, held against the enforcer's answers in every state."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any, NamedTuple

from hypothesis import strategies as st

from ledgercli.documents import Problem
from ledgercli.history import History
from ledgercli.policy import Pack
from ledgercli.records import Verdict
from ledgercli.state import initial
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
    name, judged = pack.file.rules[number].name, judge(pack)
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
        case "tool-never-concerned":
            alone = judge(only(pack, number, check="false", grant=None, mode="enforce"))
            tool = problem.message.rsplit(" ", 1)[1]
            return _first(own, lambda w: w.tool == tool and alone(w).applied > 0)
        case "part-never-holds":
            return _side_holds(pack, number, _marked(problem), own)
        case "impossible-value":
            alone = judge(only(pack, number, condition=None, check=_comparison(problem), grant=None, mode="enforce"))
            return _first(own, lambda w: alone(w).applied > 0 and not _says(alone(w), f"p/{name}"))
        case "repeated-part":
            either = [_without_part(text, problem, word) for word in ("true", "false")]
            worse = [_first(text, lambda w, rest=rest: _decided(judged(w)) != _decided(rest(w))) for rest in either]
            return worse[0] if all(worse) else None
        case _:
            checked[problem.code] -= 1
            return None
    return _first(text, lambda w: _decided(with_rule(w)) != _decided(rest(w)))


def _marked(problem: Problem) -> str:
    """The part of a line that a finding is about."""
    assert problem.source_line is not None, "a finding of these packs has its line"
    return problem.source_line[problem.column - 1 :][: problem.length].replace("''", "'")


def _side_holds(pack: Pack, number: int, side: str, own: str) -> World | None:
    """A call for which a side of an `||` is true, be it in the condition or in the decision."""
    rule = pack.file.rules[number]
    if side in (rule.condition or "") and side not in (rule.check or rule.grant or ""):
        alone = judge(only(pack, number, condition=side, check="false", grant=None, mode="enforce"))
        return _first(own, lambda w: _says(alone(w), "No."))
    applies = judge(only(pack, number, check="false", grant=None, mode="enforce"))
    holds = judge(only(pack, number, check=side, grant=None, mode="enforce"))
    name = f"p/{rule.name}"
    return _first(own, lambda w: _says(applies(w), "No.") and not _says(holds(w), name))


def _comparison(problem: Problem) -> str:
    """What a finding says never to be so, as a check."""
    path, what = problem.message.split(" is never ")
    return f"{path} {what}" if what[0] in "<>" else f"{path} == {what}"


def _without_part(text: str, problem: Problem, word: str) -> Callable[[World], Verdict]:
    """The pack with a word in place of the part that a finding is about."""
    lines = text.splitlines()
    line, start = lines[problem.line - 1], problem.column - 1
    lines[problem.line - 1] = line[:start] + word + line[start + problem.length :]
    pack = load("\n".join(lines) + "\n")
    assert pack is not None, lines[problem.line - 1]
    return judge(pack)


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


# ---- deadlocks


class _Known(NamedTuple):
    """What a run knows."""

    p: bool | None = None
    s: str | None = None
    f: bool | None = False
    m: bool = False
    ran: frozenset[str] = frozenset()


#: Calls of each tool, enough to tell what the conditions of such packs ask.
_CALLS = {
    "a": [{"n": 1, "r": "x", "q": False}],
    "b": [{"n": 1, "r": "x", "q": True}],
    "learn": [{}],
    "keep": [{"id": "x"}],
}


def false_deadlocks(text: str) -> list[str]:
    """The deadlocks of a pack out of which a run finds its way."""
    pack = load(text)
    book = None if pack is None else rulebook(pack)
    if pack is None or book is None:
        return []
    wrong = []
    for problem in found(pack, book):
        if problem.code == "deadlock":
            checked["deadlock"] += 1
            stuck = re.search(r" keeps (.+) from running", problem.message)
            assert stuck is not None, problem.message
            wrong += [f"{problem}\n{text}" for tool in stuck[1].split(" and ") if tool in _run(pack)]
    return wrong


def _run(pack: Pack) -> set[str]:
    """Every tool that some run reaches, from a start without facts, whatever the tools return."""
    says, seen, pending = judge(pack), set(), [_Known()]
    while pending:
        known = pending.pop()
        if known in seen:
            continue
        seen.add(known)
        for tool, calls in _CALLS.items():
            if any(says(_world(tool, args, known)).effect != "deny" for args in calls):
                pending += _after(tool, known)
    return set().union(*(known.ran for known in seen))


def _after(tool: str, known: _Known) -> Iterator[_Known]:
    ran = known.ran | {tool}
    if tool == "keep":
        yield known._replace(m=True, ran=ran)
    elif tool == "learn":
        for p, s in product((None, True, False), (None, "u", "v")):
            yield known._replace(p=p, s=s, f=p, ran=ran)
    yield known._replace(ran=ran)


def _world(tool: str, args: dict[str, Any], known: _Known) -> World:
    facts = {"p": known.p, "s": known.s}
    told = {name: value for name, value in facts.items() if value is not None}
    flags = {"g": False} if known.f is None else {"f": known.f, "g": False}
    history = History("")
    for step, one in enumerate(sorted(known.ran)):
        history.executed(one, _CALLS[one][0], "ok", {"p": known.p}, step=step)
    state = initial(facts={**told, "m": {"x": {"ok": True}} if known.m else {}}, flags=flags)
    return World(tool, args, state, history)


_WAITS = st.sampled_from(
    [
        "has(state.facts.p)",
        "state.facts.p",
        "!state.facts.p",
        "!has(state.facts.p)",
        "state.facts.s == 'u'",
        "state.flags.f",
        "!state.flags.f",
        "has(state.facts.s) || state.flags.f",
        "has(state.facts.p) && 'x' in state.facts.m",
        "'x' in state.facts.m",
        "!('x' in state.facts.m)",
        "state.facts.m['x'].ok",
        "size(state.facts.m) > 0",
        "succeeded(state.ledger, 'learn')",
        "succeeded(state.ledger, 'b')",
        "count_calls(state.ledger, 'keep') > 0",
        "count_calls(state.ledger, 'a') == 0",
        "count_calls(state.ledger, action.tool) >= 1",
        "steps_since(state.ledger, 'learn') < 9",
        "last_result(state.ledger, 'learn').p == true",
        "source(state.facts.p).tool == 'learn'",
    ]
)


@st.composite
def waiting(draw: Any) -> str:
    """A pack whose rules wait for what tools make known, as text."""
    lines = ["pack: p", "rules:"]
    for number in range(draw(st.integers(1, 4))):
        tools = draw(st.sampled_from(["[a]", "[b]", "[learn]", "[keep]", "[learn, keep]", "[a, b]"]))
        lines += [f"  - name: r{number}", f"    tools: {tools}", f'    check: "{draw(_WAITS)}"']
        if draw(st.integers(0, 3)) == 0:
            lines.append(f'    condition: "{draw(_WAITS)}"')
        if draw(st.integers(0, 5)) == 0:
            lines.append("    on_fail: {effect: require_approval}")
    return "\n".join(lines) + "\n"
