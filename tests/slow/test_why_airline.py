"""What `why` says of every refusal and every allowed write of the 200 airline runs.

Trying everything is independent of the search: it takes the arguments and the facts that the failed rules read, all
parts of them, and for each every value of its kind that the pack, the state or the call know, bounds with their
neighbours, yes and no, nothing. Plain Python (`airline_by_hand`) says what may pass; the enforcer has to agree.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
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
from ledgercli.why.situations import Change, Situation, read
from tests import airline_by_hand as by_hand
from tests.test_airline import DATA, WRITES, Replay, enforced, shadow  # noqa: F401 - fixtures

pytestmark = [
    pytest.mark.skipif(not DATA.exists(), reason="the recorded runs are not here"),
    pytest.mark.slow,
    pytest.mark.timeout(3600),
]
_PAIRED = 40  # values of one place where two are changed together
FACTS = ("users", "reservations", "flights", "routes")


@dataclass(frozen=True)
class Explained:
    """A step with its account, what it was judged in, and by which rules it is enforced."""

    where: str
    rules: Rulebook
    situation: Situation
    account: Account
    lines: list[dict[str, Any]]


def explained(run: Replay, wanted: Any) -> Iterator[Explained]:
    """Explain each step that is wanted, in one reading of its ledger."""
    shelf = Shelf()
    for path in sorted(Path(run.folder).glob("*.ledger.jsonl")):
        lines = [entry.record for entry in ledger.read(path)]
        place = {line["step"]: number for number, line in enumerate(lines) if line["kind"] == "step"}
        follower = Follower(path, shelf, keeps=lambda _opening: EVERYTHING)
        for books, record in follower.judged():
            if wanted(record):
                before = lines[: place[record["step"]]]
                proposal = Proposal.from_json(record["action"])
                situation = Situation(proposal, books.state, books.history, cel.Timestamp.parse(record["now"]))
                account = explain(books, record, lines=before)
                rules = shelf.changed(follower.opening).rules  # the same packs, enforced
                yield Explained(f"{path.name}@{record['step']}", rules, situation, account, before)


def is_denied(record: dict[str, Any]) -> bool:
    return record.get("outcome") == "denied"


def is_watched(record: dict[str, Any]) -> bool:
    return any(one.get("effect", "deny") == "deny" for one in record["verdict"].get("shadowed", ()))


def is_allowed_write(record: dict[str, Any]) -> bool:
    return record["action"]["tool"] in WRITES and lets_run(record["verdict"]["effect"], None)


# ---- trying everything


@dataclass(frozen=True)
class Tried:
    """One value that is otherwise: where, below `args` or the name of a kind of fact, and what is there then."""

    place: tuple[Any, ...]
    value: Any

    @property
    def change(self) -> Change:
        return Change(
            ("action", *self.place) if self.place[0] == "args" else ("state", "facts", *self.place), self.value
        )

    def overlaps(self, other: Tried) -> bool:
        shorter = min(len(self.place), len(other.place))
        return self.place[:shorter] == other.place[:shorter]


class ByHand:
    """Judges a step, and the same with some values otherwise, in plain Python."""

    def __init__(self, one: Explained) -> None:
        self.tool = one.situation.proposal.tool
        facts = {kind: dict(one.situation.state.tree["facts"].get(kind, {})) for kind in FACTS}
        self.tree: dict[str, Any] = {"args": one.situation.proposal.args, **facts}
        self._task, self._said, self._done = one.situation.state.tree["task"], list[str](), list[Any]()
        for line in one.lines:
            if line["kind"] == "step" and line["action"]["tool"] == "user":
                self._said.append(line["result"]["data"])
            elif line["kind"] == "step" and line["outcome"] == "ok":
                self._done.append((line["action"]["tool"], line["action"]["args"]))
        self._rules = [rule for rule in by_hand.RULES if self.tool in rule.tools]

    def case(self, tree: Mapping[str, Any]) -> by_hand.Case:
        facts = {kind: tree.get(kind, {}) for kind in FACTS}
        world = by_hand.World(self._task, self._said, done=self._done, **facts)
        return by_hand.Case(world, tree["args"], by_hand.SHIPPED.bounds)

    def refuses(self, tree: Mapping[str, Any]) -> bool:
        """Whether a rule is sure to fail; what plain Python cannot read is left to the enforcer."""
        if set(tree["args"]) != set(self.tree["args"]):
            return True  # none of them may be left out
        case = self.case(tree)
        for number, rule in enumerate(self._rules):
            with suppress(KeyError, IndexError, TypeError, ValueError, AttributeError):
                if rule.fails(case) is not None:
                    self._rules.insert(0, self._rules.pop(number))  # it is likely to fail the next time too
                    return True
        return False


def put(tree: Any, place: tuple[Any, ...], value: Any) -> Any:
    """The tree with another value at a place; KeyError, IndexError or TypeError where there is no such place."""
    key, rest = place[0], place[1:]
    if isinstance(tree, (list, tuple)):
        inner = put(tree[key], rest, value) if rest else value
        return [*tree[:key], *([] if inner is ABSENT else [inner]), *tree[key + 1 :]]
    inner = put(tree.get(key, {}) if rest[1:] or not rest else tree[key], rest, value) if rest else value
    if inner is ABSENT:
        return {name: item for name, item in tree.items() if name != key}
    return {**tree, key: inner}


def at(tree: Any, place: tuple[Any, ...]) -> Any:
    for key in place:
        try:
            tree = tree[key]
        except (KeyError, IndexError, TypeError):
            return ABSENT
    return tree


def everything(tree: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Every value of a tree, the inner ones too."""
    yield place, tree
    inner = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, (list, tuple)) else ()
    for key, item in inner:
        yield from everything(item, (*place, key))


def is_like(value: Any, known: Any) -> bool:
    """Whether a value may stand where another does."""
    if value is ABSENT or known is ABSENT:
        return True
    kinds = (bool, (int, float), str, dict, (list, tuple))
    return next(n for n, kind in enumerate(kinds) if isinstance(value, kind)) == next(
        n for n, kind in enumerate(kinds) if isinstance(known, kind)
    )


def places(one: Explained, hand: ByHand) -> list[tuple[Any, ...]]:
    """The arguments and the facts that the failed rules read, and all parts of them."""
    names = {finding.rule for finding in (*one.account.verdict.failed, *one.account.verdict.shadowed)}
    roots: list[tuple[Any, ...]] = [("args", name) for name in hand.tree["args"]]
    for ruling in one.account.rulings:
        if ruling.name in names and ruling.said.check is not None:
            for label in (*ruling.said.check.reads, *ruling.said.check.answer.missing):
                path = read(label).path
                if path[:2] == ("state", "facts") and len(path) > 2:
                    roots.append(path[2:])
    return list(dict.fromkeys(place for root in roots for place, _ in everything(at(hand.tree, root), root)))


def literals(one: Explained) -> list[Any]:
    """The constants of the whole pack."""
    pack = one.rules.packs[0].file
    texts = [text for rule in pack.rules for text in (rule.condition, rule.check) if text]
    nodes = [node for text in (*texts, *pack.define.values()) for node in cel.walk(cel.parse(text).node)]
    values = [node.value for node in nodes if isinstance(node, (cel.Literal, syntax.Literal))]
    return [value for value in values if isinstance(value, (bool, int, float, str))]


def near(value: Any) -> list[Any]:
    return [value + by for by in (-1, 1, -0.01, 0.01)] if type(value) in (int, float) else []


def computed(hand: ByHand, known: Any) -> list[Any]:
    """What a number has to be for payments to make a price."""
    case = hand.case(hand.tree)
    if type(known) not in (int, float) or hand.tool != by_hand.BOOK:
        return []
    with suppress(by_hand.UnknownError):
        paid = by_hand.total(case.args["payment_methods"])
        return [case.booked_price, case.booked_price - paid, known + case.booked_price - paid]
    return []


def lists(known: Any) -> Iterator[Any]:
    """A list without one of its elements, with one of them twice, turned round."""
    if isinstance(known, (list, tuple)):
        yield from ([*known[:number], *known[number + 1 :]] for number in range(len(known)))
        yield from ([*known, item] for item in known)
        yield list(reversed(known))


def values(one: Explained, hand: ByHand, place: tuple[Any, ...]) -> list[Any]:
    """What is tried at a place, what is like what stands there first."""
    known = at(hand.tree, place)
    named = next((key for key in reversed(place) if isinstance(key, str)), "")
    constants = literals(one)
    all_of_them = [(other, value) for other, value in everything(hand.tree) if len(other) > 1]
    of_kind = [
        value
        for other, value in all_of_them
        if (other[-1] == named or (isinstance(other[-1], str) and named.endswith(f"_{other[-1]}")))
        or (len(other) == len(place) and other[0] == place[0])
    ]
    keys = [other[-1] for other, _ in all_of_them if isinstance(other[-1], str)]
    first = [ABSENT, *near(known), *computed(hand, known), *lists(known), *of_kind, *constants]
    rest = [*(by for value in constants for by in near(value)), 0, 1, "", True, False, [], {}]
    found: dict[str, Any] = {}
    for value in (*first, *rest, *(value for _, value in all_of_them), *keys):
        if is_like(value, known):
            found.setdefault(repr(value), value)
    found.pop(repr(known), None)
    return list(found.values())


def tried(one: Explained, hand: ByHand, most: int | None = None) -> list[Tried]:
    """Every change of one value; `most` values of a place."""
    return [Tried(place, value) for place in places(one, hand) for value in values(one, hand, place)[:most]]


def flips(one: Explained, *way: Change) -> bool:
    try:
        return one.situation.changed(*way).passes(one.rules.enforcer)
    except PathError:
        return False


def smaller(one: Explained, size: int, counts: Counter[Any]) -> list[Change] | None:
    """A way of fewer than `size` values, at most two, found by trying everything."""
    hand = ByHand(one)
    assert hand.refuses(hand.tree), one.where
    for number in range(1, min(size, 3)):
        for way, tree in ways(hand.tree, tried(one, hand, None if number == 1 else _PAIRED), number):
            counts["tried"] += 1
            if not hand.refuses(tree):
                counts["confirming"] += 1
                if flips(one, *(single.change for single in way)):
                    return [single.change for single in way]
    return None


def ways(tree: Any, changes: list[Tried], number: int) -> Iterator[tuple[tuple[Tried, ...], Any]]:
    """Yield each set of changes of other places, with the tree that they make."""
    for place, first in enumerate(changes):
        try:
            then = put(tree, first.place, first.value)
        except (KeyError, IndexError, TypeError, AttributeError):
            continue
        if number == 1:
            yield (first,), then
            continue
        beside = [second for second in changes[place + 1 :] if not first.overlaps(second)]
        yield from (((first, *others), made) for others, made in ways(then, beside, number - 1))


@pytest.mark.parametrize("mode", ["enforced", "shadow"])
def test_on_each_denial_the_named_change_flips_the_verdict_and_nothing_smaller_does(mode, request):
    watched = mode == "shadow"
    counts: Counter[Any] = Counter()
    beaten: list[Any] = []
    for one in explained(request.getfixturevalue(mode), is_watched if watched else is_denied):
        assert one.account.verdict.runs == watched, one.where
        assert not one.situation.passes(one.rules.enforcer), one.where
        way = one.account.way
        assert way is not None, one.where
        assert way.shown, one.where
        assert not way.found.bounded, one.where
        for shown in (*way.shown, *way.found.ways):
            assert flips(one, *shown), (one.where, shown)
        size = len(way.shown[0])
        counts[size] += 1
        if (better := smaller(one, size, counts)) is not None:
            beaten.append((one.where, size, [(change.name, change.value) for change in better]))
    print(mode, dict(counts))
    assert beaten == []
    assert sum(counts[size] for size in (1, 2, 3)) > 100
    assert counts["tried"] > 1_000_000


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
