"""How types relate: what fits where, what may ever be equal, and which names are near another.

Invariants:
* Whatever is `dyn` may be anything: only what can never succeed is refused.
* All answers are symmetric but `fits`.
"""

from __future__ import annotations

from collections.abc import Iterable

from ledgercli.cel.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    STRING,
    TIMESTAMP,
    UINT,
    EnumType,
    Field,
    ListType,
    MapType,
    Opaque,
    RecordType,
    Type,
)

NUMBERS = frozenset({INT, UINT, DOUBLE})
_ORDERED = frozenset({BOOL, STRING, BYTES, TIMESTAMP, DURATION})


def plain(kind: Type) -> Type:
    """The type without what only errors at load know: an enumeration is a string."""
    return STRING if isinstance(kind, EnumType) else kind


def is_map_type(kind: Type) -> bool:
    """Whether values of this type are maps."""
    return isinstance(kind, (MapType, RecordType))


def value_type(kind: Type) -> Type:
    """The type of the values of a map."""
    if isinstance(kind, RecordType):
        return DYN if kind.open else join_all(one.type for one in kind.fields.values())
    return kind.value if isinstance(kind, MapType) else DYN


def key_type(kind: Type) -> Type:
    """The type of the keys of a map."""
    return kind.key if isinstance(kind, MapType) else STRING


def fits(kind: Type, wanted: Type) -> bool:
    """Whether a value of type `kind` may be given where `wanted` is asked for."""
    kind, wanted = plain(kind), plain(wanted)
    if isinstance(kind, Opaque) or isinstance(wanted, Opaque):
        return kind == wanted
    if DYN in (kind, wanted) or kind == wanted:
        return True
    if isinstance(wanted, ListType):
        return isinstance(kind, ListType) and fits(kind.elem, wanted.elem)
    if is_map_type(wanted) and is_map_type(kind):
        return fits(key_type(kind), key_type(wanted)) and fits(value_type(kind), value_type(wanted))
    return False


def is_known(kind: Type) -> bool:
    """Whether nothing in a type is left to run time."""
    kind = plain(kind)
    if isinstance(kind, ListType):
        return is_known(kind.elem)
    if isinstance(kind, MapType):
        return is_known(kind.key) and is_known(kind.value)
    return kind != DYN


def may_equal(a: Type, b: Type) -> bool:
    """Whether a value of one type can ever equal a value of the other."""
    a, b = plain(a), plain(b)
    if DYN in (a, b) or a == b or (a in NUMBERS and b in NUMBERS):
        return True
    return (isinstance(a, ListType) and isinstance(b, ListType)) or (is_map_type(a) and is_map_type(b))


def may_order(a: Type, b: Type) -> bool:
    """Whether `<` may be asked of the two."""
    a, b = plain(a), plain(b)
    if a == b == DYN or (a in NUMBERS and b in NUMBERS):
        return True
    return (DYN in (a, b) or a == b) and {a, b} <= NUMBERS | _ORDERED | {DYN}


def join(a: Type, b: Type) -> Type:
    """The least type that has the values of both."""
    if a == b:
        return a
    if plain(a) == plain(b) == STRING:
        return STRING
    if isinstance(a, ListType) and isinstance(b, ListType):
        return ListType(elem=join(a.elem, b.elem))
    if isinstance(a, RecordType) and isinstance(b, RecordType):
        return _merged(a, b)
    if is_map_type(a) and is_map_type(b):
        return MapType(key=join(key_type(a), key_type(b)), value=join(value_type(a), value_type(b)))
    return DYN


def join_all(kinds: Iterable[Type]) -> Type:
    """The least type that has the values of all; `dyn` of none."""
    joined: Type | None = None
    for kind in kinds:
        joined = kind if joined is None else join(joined, kind)
    return DYN if joined is None else joined


def _merged(a: RecordType, b: RecordType) -> RecordType:
    """A record with the fields of both; those of only one may be absent."""
    fields: dict[str, Field] = {}
    for name in [*a.fields, *(name for name in b.fields if name not in a.fields)]:
        mine, other = a.fields.get(name), b.fields.get(name)
        if mine is not None and other is not None:
            note = mine.note if mine.note is not None else other.note
            fields[name] = Field(join(mine.type, other.type), mine.optional or other.optional, note)
        else:
            one = mine or other
            assert one is not None
            fields[name] = Field(one.type, optional=True, note=one.note)
    name = a.name if a.name == b.name else "record"
    noun = a.noun if a.noun == b.noun else "field"
    return RecordType(name=name, fields=fields, open=a.open or b.open, noun=noun)


# Near names


def nearest(name: str, known: Iterable[str], most: int = 3) -> tuple[str, ...]:
    """The known names that `name` may be a slip of, best first; all that are one edit away."""
    scored = sorted((distance(name, one), one) for one in set(known) if one != name and one)
    bound = max(1, len(name) // 3)
    one_away = sum(score <= 1 for score, _ in scored)
    return tuple(one for score, one in scored[: max(most, one_away)] if score <= bound)


def distance(a: str, b: str) -> int:
    """Deletions, insertions, substitutions and swaps that turn `a` into `b`; letter case costs nothing."""
    a, b = a.casefold(), b.casefold()
    if abs(len(a) - len(b)) > max(1, len(a) // 3) or max(len(a), len(b)) > 200:
        return max(len(a), len(b))
    before: list[int] = []
    last = list(range(len(b) + 1))
    for i, mine in enumerate(a, 1):
        row = [i]
        for j, other in enumerate(b, 1):
            cost = min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (mine != other))
            if i > 1 and j > 1 and mine == b[j - 2] and a[i - 2] == other:
                cost = min(cost, before[j - 2] + 1)
            row.append(cost)
        before, last = last, row
    return last[-1]
