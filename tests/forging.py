"""What somebody who knows the format could forge in a ledger.

A forgery changes one value of one line, or one whole line, and is written twice: `plainly`, as an editor would, and
`cleverly`, with chain, numbers and counts put right behind it. Which values there are, `ledger.entries` says: nothing
is listed here by hand. What nobody can find without an anchor stands in `unfindable`.
"""

from __future__ import annotations

import copy
import itertools
import types
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin

import orjson
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from ledgercli import records
from ledgercli.errors import LedgerCliError
from ledgercli.ledger import entries
from ledgercli.ledger.verify import verify
from ledgercli.replay.verifying import replay
from ledgercli.shelf import Shelf

Said = dict[str, Any]
INHERITED = "checkpoint 0"  # the checkpoint that says what another run left
MODELS: Mapping[str, type[BaseModel]] = dict(
    zip(entries.KINDS, get_args(get_args(entries.Entry)[0]), strict=True)
)  # kind -> what a line of it holds

# ---- the contract, walked


def fields(model: type[BaseModel]) -> dict[str, FieldInfo]:
    """The keys of a model as lines have them."""
    return {field.alias or name: field for name, field in model.model_fields.items()}


def parts(kind: Any) -> list[Any]:
    """The kinds of values that an annotation allows; a list of one is `list`, with what it holds behind it."""
    if get_origin(kind) is Annotated:
        return parts(get_args(kind)[0])
    if get_origin(kind) in (Union, types.UnionType):
        return [part for one in get_args(kind) for part in parts(one)]
    return [kind]


def model_of(kind: Any) -> type[BaseModel] | None:
    """The model that an annotation allows, if there is one."""
    return next((one for one in parts(kind) if isinstance(one, type) and issubclass(one, BaseModel)), None)


def item_of(kind: Any) -> Any:
    """What the lists hold that an annotation allows; None: anything."""
    return next((get_args(one)[0] for one in parts(kind) if get_origin(one) is list), None)


def choices(kind: Any) -> list[Any]:
    """The values that an annotation, or a key, chooses from."""
    kind = kind.annotation if isinstance(kind, FieldInfo) else kind
    return [value for one in parts(kind) if get_origin(one) is Literal for value in get_args(one)]


_SAMPLES: Mapping[Any, list[Any]] = {int: [1, 2], str: ["x"], bool: [True]}


def samples(field: FieldInfo) -> Iterator[Any]:
    """Values of a key that is left out."""
    yield field.get_default(call_default_factory=True)
    for one in parts(field.annotation):
        model, item = model_of(one), item_of(one)
        if model is not None:
            yield _sample(model)
        elif item is not None:
            yield [_sample(item) if isinstance(item, type) and issubclass(item, BaseModel) else "x"]
        else:
            yield from choices(one) or _SAMPLES.get(one, [{"x": 1}])


def _sample(model: type[BaseModel]) -> Said:
    return {key: list(samples(field))[-1] for key, field in fields(model).items() if field.is_required()}


def orders(ledgers: Iterable[Sequence[Said]]) -> dict[type[BaseModel], list[str]]:
    """The order in which the keys of each model are written."""
    before: dict[type[BaseModel], dict[str, set[str]]] = {}
    for lines in ledgers:
        for line in lines:
            for model, value in models(MODELS[line["kind"]], line):
                keys = list(value)
                for at, key in enumerate(keys):
                    before.setdefault(model, {}).setdefault(key, set()).update(keys[:at])
    return {model: list(TopologicalSorter(graph).static_order()) for model, graph in before.items()}


def models(kind: Any, value: Any) -> Iterator[tuple[type[BaseModel], Said]]:
    """Yield every record in a value, with its model."""
    model = model_of(kind)
    if model is not None and isinstance(value, dict):
        yield model, value
        for key, field in fields(model).items():
            yield from models(field.annotation, value.get(key))
    elif isinstance(value, list):
        for item in value:
            yield from models(item_of(kind), item)


# ---- changes

_GONE = object()


class Change(NamedTuple):
    """One other value: where it stands, where that is as the table says it, what was done, and the value."""

    path: tuple[Any, ...]
    shown: str
    how: str
    value: Any


class Changes:
    """Makes every change of a value; `order` says where a key stands that was left out."""

    def __init__(self, order: Mapping[type[BaseModel], Sequence[str]]) -> None:
        self._order = order

    def of(self, value: Any, kind: Any, path: tuple[Any, ...] = (), shown: str = "") -> Iterator[Change]:
        """Yield every change of a value of a kind (None: anything)."""
        if path and value is not None:
            yield Change(path, shown, "retyped", None)
        if isinstance(value, dict):
            yield Change(path, shown, "reordered", dict(reversed(value.items())))
            yield from self._keys(value, model_of(kind), path, shown)
        elif isinstance(value, list):
            yield from self._items(value, item_of(kind), path, shown)
        else:
            yield from (Change(path, shown, how, other) for how, other in _others(value, choices(kind)))

    def _keys(self, value: Said, model: type[BaseModel] | None, path: tuple[Any, ...], shown: str) -> Iterator[Change]:
        known = fields(model) if model else {}
        yield Change((*path, "surprise"), _in(shown, "surprise", known), "added", 1)
        for key, item in value.items():
            at, where = (*path, key), _in(shown, key, known)
            yield Change(at, where, "removed", _GONE)
            yield from self.of(item, known[key].annotation if key in known else None, at, where)
        for key in known.keys() - value.keys() if model else ():
            for item in samples(known[key]):
                whole = _placed({**value, key: item}, self._order.get(model, ()))  # type: ignore[arg-type]
                yield Change(path, _in(shown, key, known), "added", whole)

    def _items(self, value: list[Any], item: Any, path: tuple[Any, ...], shown: str) -> Iterator[Change]:
        yield Change(path, shown, "removed", [])
        for at, one in enumerate(value):
            yield Change(path, shown, "removed", [*value[:at], *value[at + 1 :]])
            yield Change(path, shown, "added", [*value[: at + 1], *value[at:]])
            if at:
                yield Change(path, shown, "reordered", [*value[: at - 1], one, value[at - 1], *value[at + 1 :]])
            yield from self.of(one, item, (*path, at), shown if shown.endswith("*") else f"{shown}[]")


def _in(shown: str, key: str, known: Mapping[str, Any]) -> str:
    """How a key in a part is shown; what the contract leaves free is `*`."""
    if known and key in known:
        return f"{shown}.{key}" if shown else key
    return shown if shown.endswith("*") else f"{shown}.*" if shown else "*"


def _placed(record: Said, order: Sequence[str]) -> Said:
    return dict(sorted(record.items(), key=lambda item: order.index(item[0]) if item[0] in order else len(order)))


def _others(value: Any, chosen: Sequence[Any]) -> Iterator[tuple[str, Any]]:
    """Yield other values for a leaf."""
    if isinstance(value, bool):
        yield from (("changed", not value), ("retyped", int(value)), ("retyped", str(value)))
    elif isinstance(value, (int, float)):
        yield from (("changed", value + 1), ("changed", value - 1), ("retyped", str(value)), ("retyped", value + 0.0))
    elif value is None:
        nothing: list[Any] = [1, "x", {}, [], False]
        yield from (("retyped", other) for other in nothing)
    else:
        yield from (("retyped", 1), ("changed", ""), ("retyped", {"x": value}), ("retyped", [value]))
        yield from (("changed", other) for other in (*chosen, *_texts(value)))


def _texts(value: str) -> Iterator[str]:
    if value.startswith("sha256:"):
        yield value[:-1] + ("0" if value[-1] != "0" else "1")
    elif value.endswith("Z") and value[:2] == "20":
        yield from ("2026-08-01T12:00:00.001Z", "2031-01-01T00:00:00Z")
    elif "\n" in value:  # a file
        yield from (value + "# more\n", value.replace("50", "51").replace("lei", "mia"), value.replace("W1", "W2"))
    else:
        yield from (value + "x", value.swapcase(), value.replace("1", "2"))


# ---- forgeries


@dataclass(frozen=True)
class Forgery:
    """One change.

    Arguments:
        by: whether a `program` or the `loop` wrote the ledger.
        place: the kind of line and where in it; what the contract leaves free is `*`.
        how: what was done.
        at: the line, from 0.
        over: how many lines it takes the place of.
        lines: what stands there now.
        whole: whether whole lines were moved: the forger then numbers all anew.

    """

    by: str
    place: str
    how: str
    at: int
    over: int
    lines: Sequence[Said]
    whole: bool = False

    @property
    def key(self) -> tuple[str, str, str]:
        """What is reviewed as one."""
        return self.by, self.place, self.how


def forgeries(
    lines: Sequence[Said], order: Mapping[type[BaseModel], Sequence[str]], every: int = 1
) -> Iterator[Forgery]:
    """Yield every change of every line of a ledger, or one of so many; of every eighth line then its moves."""
    number = itertools.count()
    by = "program" if lines[0]["engine"]["kind"] == "guard" else "loop"
    for at, line in enumerate(lines):
        kind = INHERITED if line["kind"] == "checkpoint" and not line["step"] else line["kind"]
        for change in Changes(order).of(line, MODELS[line["kind"]]):
            if next(number) % every:
                continue
            forged = _digested(_put(line, change.path, change.value), change.path)
            if orjson.dumps(forged) != orjson.dumps(line):
                place = f"{kind}.{change.shown}" if change.shown else kind
                yield Forgery(by, place, change.how, at, 1, [forged])
        for how, over, instead in _moves(lines, at) if every == 1 or not at % 8 else ():
            yield Forgery(by, kind, how, at, over, instead, whole=True)


def _moves(lines: Sequence[Said], at: int) -> Iterator[tuple[str, int, Sequence[Said]]]:
    """What can be done to whole lines; a line of each kind that the ledger has is inserted before this one."""
    yield "line removed", 1, []
    yield "line doubled", 1, [lines[at], lines[at]]
    if at + 1 < len(lines):
        yield "line swapped", 2, [lines[at + 1], lines[at]]
    if 0 < at < len(lines) - 1:
        yield "rest cut", len(lines) - at, [lines[-1]]
    near = sorted(range(len(lines)), key=lambda other: -abs(other - at))
    for other in {lines[other]["kind"]: other for other in near if other not in (at - 1, at)}.values():
        yield f"{lines[other]['kind']} inserted", 0, [lines[other]]


def _put(line: Said, path: tuple[Any, ...], value: Any) -> Said:
    """A copy of a line with another value at a path."""
    if not path:
        return dict(value)
    made: Said = copy.deepcopy(line)
    within: Any = made
    for key in path[:-1]:
        within = within[key]
    if value is _GONE:
        del within[path[-1]]
    else:
        within[path[-1]] = value
    return made


def _digested(line: Said, path: tuple[Any, ...]) -> Said:
    """Give a forged text its digest."""
    if path[:1] == ("files",) and path[-1] == "text":
        file = line["files"][path[1]]
        if isinstance(file.get("text"), str):
            file["digest"] = records.digest(file["text"].encode())
    return line


# ---- written again


def plainly(lines: Sequence[bytes], forged: Forgery) -> list[bytes]:
    """The ledger with the change, and nothing else."""
    instead = [orjson.dumps(line) + b"\n" for line in forged.lines]
    return [*lines[: forged.at], *instead, *lines[forged.at + forged.over :]]


def cleverly(lines: Sequence[Said], forged: Forgery) -> list[bytes]:
    """The ledger with the change, hashed and closed again."""
    changed = [*lines[: forged.at], *forged.lines, *lines[forged.at + forged.over :]]
    return sealed(changed, numbered=forged.whole)


def sealed(lines: Iterable[Said], *, numbered: bool = True) -> list[bytes]:
    """Lines as a forger makes them fit one another: chain, numbers, counts, and where a recovery stands."""
    made: list[bytes] = []
    size, steps = 0, set()
    for line in lines:
        record = dict(line)
        if record.get("kind") in ("step", "intent") and isinstance(record.get("step"), int):
            steps.add(record["step"])
        right: Said = {"seq": len(made)} if numbered else {}
        if record.get("kind") == "close":
            right |= {"lines": len(made) + 1, "steps": len(steps)}
        if record.get("kind") == "recovery" and isinstance(record.get("moved_to"), str):
            moved = record["moved_to"].replace(f".torn-{record.get('offset')}", f".torn-{size}")
            right |= {"offset": size, "moved_to": moved}
        right["prev"] = records.digest(made[-1]) if made else record.get("prev")
        record |= {key: value for key, value in right.items() if _is_like(record.get(key), value)}
        made.append(orjson.dumps(record) + b"\n")
        size += len(made[-1])
    return made


def _is_like(said: Any, right: Any) -> bool:
    """Whether a value was not itself made something else: that is the forgery then."""
    return type(said) is type(right)


# ---- looked for

Found = Literal["validate", "replay", "cannot tell"]


class Search:
    """Looks for forgeries of one ledger.

    Arguments:
        ledger: the ledger.
        shelf: the rulebooks.
        order: in which order keys are written.

    """

    def __init__(self, ledger: Path, shelf: Shelf, order: Mapping[type[BaseModel], Sequence[str]]) -> None:
        self.raw = ledger.read_bytes().splitlines(keepends=True)
        self.lines: list[Said] = [orjson.loads(line) for line in self.raw]
        self._anchor = records.digest(self.raw[-1])
        self._forged, self._shelf, self._order = ledger.with_suffix(".forged"), shelf, order

    def all(self, every: int = 1) -> Iterator[Forgery]:
        """Each forgery, or one of so many, that leaves other bytes than there were."""
        for forged in forgeries(self.lines, self._order, every):
            if cleverly(self.lines, forged) != self.raw:
                yield forged

    def plainly(self, forged: Forgery) -> set[str]:
        """The codes of what is found of a change that stands alone, the anchor's too."""
        return self._codes(plainly(self.raw, forged))

    def cleverly(self, forged: Forgery) -> Found | None:
        """Who finds a change without the anchor once all is hashed and closed again; None: nobody.

        With the anchor it is always found, which is asserted here.
        """
        codes = self._codes(cleverly(self.lines, forged))
        assert codes & {"anchor", "empty", "many"}, forged
        if codes - {"anchor"}:
            return "validate"
        try:
            replayed = replay(self._forged, self._shelf)
        except LedgerCliError:
            return "replay"
        if replayed.divergence is not None:
            return "replay"
        return "cannot tell" if replayed.untold else None

    def _codes(self, data: Sequence[bytes]) -> set[str]:
        self._forged.write_bytes(b"".join(data))
        problems = verify(self._forged, anchor=self._anchor).problems
        return {problem.code for problem in problems if problem.severity == "error"}
