"""What `why` says of every refusal and every allowed write of the 200 airline runs.

Trying everything is independent of the search: it takes the arguments and the facts that the failed rules read, and
for each of them every value of its kind that the pack, the state or the call know, bounds with their neighbours, yes
and no, nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from ledgercli import cel, ledger
from ledgercli.cel import syntax
from ledgercli.history import EVERYTHING
from ledgercli.past import Follower
from ledgercli.paths import ABSENT, PathError
from ledgercli.records import Proposal, lets_run
from ledgercli.rulebook import Rulebook
from ledgercli.shelf import Shelf
from ledgercli.why.accounts import Account
from ledgercli.why.explaining import explain
from ledgercli.why.situations import Change, Situation, leaves, read
from tests.test_airline import DATA, WRITES, Replay, enforced, shadow  # noqa: F401 - fixtures

pytestmark = [
    pytest.mark.skipif(not DATA.exists(), reason="the recorded runs are not here"),
    pytest.mark.slow,
    pytest.mark.timeout(3600),
]
_PAIRED = 12  # values of one place where two are changed together


@dataclass(frozen=True)
class Explained:
    """A step with its account and what it was judged in."""

    where: str
    rules: Rulebook
    situation: Situation
    account: Account


def explained(run: Replay, wanted: Any, *, anew: bool = False) -> Iterator[Explained]:
    """Explain each step that is wanted, in one reading of its ledger; `anew`: as if nothing were only watched."""
    shelf = Shelf()
    packs = Shelf(["ledgercli:airline"])
    for path in sorted(Path(run.folder).glob("*.ledger.jsonl")):
        lines = [entry.record for entry in ledger.read(path)]
        place = {line["step"]: number for number, line in enumerate(lines) if line["kind"] == "step"}
        follower = Follower(path, shelf, keeps=lambda _opening: EVERYTHING)
        for books, record in follower.judged():
            if wanted(record):
                rules = packs.changed(follower.opening).rules if anew else books.rules
                proposal = Proposal.from_json(record["action"])
                situation = Situation(proposal, books.state, books.history, cel.Timestamp.parse(record["now"]))
                account = explain(books, record, rules if anew else None, lines=lines[: place[record["step"]]])
                yield Explained(f"{path.name}@{record['step']}", rules, situation, account)


def is_denied(record: dict[str, Any]) -> bool:
    return record.get("outcome") == "denied"


def is_watched(record: dict[str, Any]) -> bool:
    return any(one.get("effect", "deny") == "deny" for one in record["verdict"].get("shadowed", ()))


def is_allowed_write(record: dict[str, Any]) -> bool:
    return record["action"]["tool"] in WRITES and lets_run(record["verdict"]["effect"], None)


# ---- trying everything


def is_like(value: Any, known: Any) -> bool:
    """Whether a value may stand where another does."""
    if value is ABSENT or known is ABSENT:
        return True
    if isinstance(value, bool) or isinstance(known, bool):
        return isinstance(value, bool) and isinstance(known, bool)
    if isinstance(value, (int, float)) and isinstance(known, (int, float)):
        return True
    return isinstance(value, type(known)) or isinstance(known, type(value))


def spots(one: Explained) -> list[tuple[Any, ...]]:
    """The arguments, their parts, and the facts that the failed rules read."""
    found: dict[tuple[Any, ...], None] = {}
    for name, value in one.situation.proposal.args.items():
        found |= {("action", "args", name): None}
        found |= dict.fromkeys(path for path, _ in leaves(value, ("action", "args", name)))
    names = {finding.rule for finding in one.account.verdict.failed}
    for ruling in one.account.rulings:
        if ruling.name in names and ruling.said.check is not None:
            labels = [*ruling.said.check.reads, *ruling.said.check.answer.missing]
            for label in labels:
                path = read(label).path
                if path[:2] == ("state", "facts") and len(path) > 2:
                    found[path] = None
                    if isinstance(value := one.situation.value(path), (dict, list, tuple)):
                        found |= dict.fromkeys(below for below, _ in leaves(value, path))
    return list(found)


def constants(one: Explained) -> list[Any]:
    """The literals of the failed rules, with the neighbours of numbers."""
    names = {finding.rule for finding in one.account.verdict.failed}
    plan = one.rules.enforcer.plan(one.situation.proposal.tool)
    assert plan is not None
    rules = [rule for pack in plan.packs for rule in pack.rules if rule.name in names]
    nodes = [node for rule in rules for node in cel.walk(rule.decides.checked.node)]
    values = [node.value for node in nodes if isinstance(node, (cel.Literal, syntax.Literal))]
    numbers = [value for value in values if type(value) in (int, float)]
    return [*values, *(value + by for value in numbers for by in (-1, 1, -0.01, 0.01)), 0, 1, "", True, False, []]


def of_kind(one: Explained, path: tuple[Any, ...]) -> Iterator[Any]:
    """What stands under the same name, or under the same name but its prefix, anywhere in state and call."""
    name = next((key for key in reversed(path) if isinstance(key, str)), "")
    for root in (one.situation.proposal.args, one.situation.state.tree):
        for other, value in everything(root):
            if other and isinstance(other[-1], str) and (other[-1] == name or name.endswith(f"_{other[-1]}")):
                yield value


def everything(tree: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Every value of a tree, the inner ones too."""
    yield path, tree
    inner = tree.items() if hasattr(tree, "items") else enumerate(tree) if isinstance(tree, (list, tuple)) else ()
    for key, item in inner:
        yield from everything(item, (*path, key))


def changes(one: Explained, *, broad: bool) -> list[Change]:
    """Every change of one value that is tried; not `broad`: the few of each place that are tried in pairs."""
    literals = constants(one)
    leaf_values = [value for _, value in leaves(one.situation.state.tree)] if broad else []
    keys = [path[-1] for path, _ in everything(one.situation.state.tree) if path] if broad else []
    found = []
    for path in spots(one):
        known = one.situation.value(path)
        beside = [known + by for by in (-1, 1, -0.01, 0.01)] if type(known) in (int, float) else []
        values: dict[str, Any] = {}
        for value in (ABSENT, *literals, *beside, *of_kind(one, path), *leaf_values, *keys):
            if is_like(value, known) and not isinstance(value, (cel.Timestamp, cel.Duration)):
                values.setdefault(repr(value), value)
        values.pop(repr(known), None)
        found += [Change(path, value) for value in list(values.values())[: None if broad else _PAIRED]]
    return found


def flips(one: Explained, *way: Change) -> bool:
    try:
        return one.situation.changed(*way).passes(one.rules.enforcer)
    except PathError:
        return False


def smaller(one: Explained, size: int) -> tuple[Change, ...] | None:
    """A way of fewer than `size` values, at most two, found by trying everything."""
    if size > 1:
        for change in changes(one, broad=True):
            if flips(one, change):
                return (change,)
    if size > 2:
        for way in combinations(changes(one, broad=False), 2):
            if not way[0].overlaps(way[1]) and flips(one, *way):
                return way
    return None


@pytest.mark.parametrize("mode", ["enforced", "shadow"])
def test_on_each_denial_the_named_change_flips_the_verdict_and_nothing_smaller_does(mode, request):
    run = request.getfixturevalue(mode)
    anew = mode == "shadow"
    counts: Counter[Any] = Counter()
    beaten: list[Any] = []
    for one in explained(run, is_watched if anew else is_denied, anew=anew):
        assert not one.situation.passes(one.rules.enforcer), one.where
        way = one.account.way
        assert way is not None, one.where
        assert way.shown, one.where
        for shown in (*way.shown, *way.found.ways):
            assert flips(one, *shown), (one.where, shown)
        size = len(way.shown[0])
        counts[size] += 1
        if (better := smaller(one, size)) is not None:
            beaten.append((one.where, size, [(change.name, change.value) for change in better]))
    print(mode, dict(counts))
    assert beaten == []
    assert sum(counts.values()) > 100


def test_on_each_allowed_write_every_rule_says_why_and_every_argument_has_its_origin(enforced):  # noqa: F811
    counts: Counter[str] = Counter()
    kinds = {"task", "start", "user", "result", "nowhere", "plain"}
    for one in explained(enforced, is_allowed_write):
        counts["writes"] += 1
        account = one.account
        assert account.way is None
        assert not account.differing
        for ruling in account.rulings:
            assert ruling.said.says in ("pass", "n/a"), (one.where, ruling.name)
            if ruling.said.says == "n/a":
                assert ruling.said.because, (one.where, ruling.name)
                assert all(part.answer.known and part.answer.value is False for part in ruling.said.because)
            else:
                assert ruling.said.check is not None
                assert ruling.said.check.holds
            counts[ruling.said.says] += 1
        for other in account.others:
            assert other.because, (one.where, other.name)
            counts["others"] += 1
        named = {name for argument in account.arguments for name in [argument.name.partition(".")[0].partition("[")[0]]}
        assert named == set(account.proposal.args), one.where
        assert {argument.place.kind for argument in account.arguments} <= kinds
        counts.update(argument.place.kind for argument in account.arguments)
    print(dict(counts))
    assert counts["writes"] > 100
    assert counts["pass"] > counts["writes"]
