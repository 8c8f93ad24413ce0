"""Generated packs with cases, and what is true of their mutants: each judged by a rulebook of its own."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ledgercli.cases import CasesFile
from ledgercli.casework.groups import Group
from ledgercli.casework.judging import differing
from ledgercli.casework.preparing import Preparer, Ready
from ledgercli.documents import parse, validate
from ledgercli.loading import refuse
from ledgercli.mutation.catching import Bench, Tried, judged
from ledgercli.policy import Pack, PackFile
from ledgercli.records import Verdict
from ledgercli.rulebook import Rulebook
from ledgercli.sources import Source
from tests import brute


def group_of(text: str, numbers: Sequence[int]) -> Group | None:
    """A generated pack with a case for each of some worlds, as its rules judge them; None where it does not load."""
    pack = brute.load(text)
    book = None if pack is None else brute.rulebook(pack)
    if pack is None or book is None:
        return None
    worlds = [one for one in brute.worlds(text) if "f" in one.state.tree["flags"]]
    chosen = [worlds[number % len(worlds)] for number in numbers]
    ask = brute.judge(pack)
    tests = [_case(number, one, ask(one)) for number, one in enumerate(chosen)]
    source = Source.of("c.yaml", json.dumps({"cases": "c", "packs": ["p.yaml"], "toolset": "t.yaml", "tests": tests}))
    read = validate(parse(source), CasesFile)
    refuse(read.problems)
    assert read.model is not None
    cases = [(("tests", number), case) for number, case in enumerate(read.model.tests)]
    return Group(read.document, book, [pack], cases, read.model.state, str(brute.NOW))


def _case(number: int, world: brute.World, verdict: Verdict) -> dict[str, Any]:
    tree = world.state.tree
    ran = {"tool": "b", "args": {"n": 1, "r": "x", "q": True}}
    history = [{**ran, "success": step == 0} for step in range(world.history.count_calls("b"))]
    expect = {"effect": verdict.effect, "rules": [one.rule for one in (*verdict.failed, *verdict.warned)]}
    state = {"facts": {k: v for k, v in tree["facts"].items() if v != {}}, "flags": dict(tree["flags"])}
    propose = {"tool": world.tool, "args": world.args}
    return {"name": f"c{number}", "state": state, "history": history, "propose": propose, "expect": expect}


def said(verdict: Verdict) -> tuple[Any, ...]:
    """All that two verdicts can differ in."""
    watched = [(one.rule, one.effect) for one in (*verdict.overridden, *verdict.shadowed)]
    failed = [(one.rule, one.effect) for one in (*verdict.failed, *verdict.warned)]
    return verdict.effect, verdict.halts, sorted(failed), sorted(watched), verdict.reason, verdict.hint


def afresh(group: Group, pack: Pack) -> Group | None:
    """The group with a changed pack, all of it compiled anew; None where that does not load."""
    packs = [pack if one.document.source.name == pack.document.source.name else one for one in group.rules.packs]
    state = group.state
    initial = {"facts": state.facts, "constraints": state.constraints, "flags": state.flags}
    rules = Rulebook(group.rules.toolset, packs, initial=initial)
    other = replace(group, rules=rules)
    vars(other)["names"] = group.names  # a rule that was dropped has a name in the cases still
    return None if any(problem.severity == "error" for problem in rules.problems()) else other


def difference(pack: Pack, other: Pack) -> str:
    """What of a pack is not as in another."""
    told = []
    for key in PackFile.model_fields:
        one, changed = getattr(pack.file, key), getattr(other.file, key)
        if one is not changed:
            before = set(map(id, one)) if isinstance(one, list) else set()
            parts = [item for item in changed if id(item) not in before] if before else changed
            kept = [n for n, item in enumerate(one) if any(item is other_ for other_ in changed)] if before else []
            told.append(f"{key}: {parts!r} {kept if not parts else ''}" if parts != one else "")
    return " ".join(told)


def failing(group: Group) -> list[str]:
    """The names of the cases that do not pass."""
    ready = [case for case in Preparer(group).all() if isinstance(case, Ready)]
    return [case.name for case in ready if differing(case.wanted, _verdict(group, case))]


def _verdict(group: Group, case: Ready) -> Verdict:
    one = case.situation
    return group.rules.enforcer.judge(one.proposal, one.state, one.history, one.now, masked=case.masked)


def hold_to_the_truth(group: Group, text: str, most: int) -> list[Tried]:
    """Assert of some mutants of a generated pack that what is told of each is so."""
    now = Preparer(group).now
    bench = Bench(group, now)
    every = bench.mutants("p.yaml")
    told = []
    for mutant in every[:: max(1, len(every) // most)]:
        one = judged(mutant, [bench], "p")
        other = afresh(group, mutant.pack)
        assert (one.came == "unloadable") == (other is None), mutant
        if other is None:
            continue
        fails = failing(other)
        assert (one.came == "caught") == bool(fails), mutant
        if one.by is not None:
            assert one.by[1] in fails, mutant
        if one.came == "same":
            _assert_same(group, other, text)
        told.append(one)
    return told


def _assert_same(group: Group, other: Group, text: str) -> None:
    """Assert that both packs say the same of every call in every state."""
    ask, again = brute.judge(group.rules.packs[0]), brute.judge(other.rules.packs[0])
    for world in brute.worlds(text):
        if "f" in world.state.tree["flags"]:
            assert said(ask(world)) == said(again(world)), world
