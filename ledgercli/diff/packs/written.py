"""What is written otherwise in two versions of a pack, key by key.

Invariants:
* Rules, defines, constraints and names are compared by name; a rule that has only another name is told as renamed.
* A key that is left out is not there on that side, whatever its default.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from ledgercli import paths
from ledgercli.paths import ABSENT
from ledgercli.policy import OnFail, Pack, RuleModel

Sign = Literal["~", "-", "+"]
_KEYS: Final = ("pack", "description", "version", "active", "resolve", "default")
_RULE: Final = ("description", "category", "priority", "mode", "tools", "condition", "check", "grant")
_FAILING: Final = ("error", "hint", "effect", "halt")


@dataclass(frozen=True)
class Change:
    """One thing that is written otherwise.

    Arguments:
        sign: `~` changed, `-` only in A, `+` only in B.
        part: `pack`, `include`, `define`, `constraint`, `vocabulary` or `rule`.
        name: of a rule, define, constraint or include; empty for the pack itself.
        key: which key of it; empty for all of it.
        a: how it is in A; ABSENT if it is not there.
        b: how it is in B; ABSENT if it is not there.
        pack: the included pack that it stands in; empty for the pack itself.
        lines: where it begins in each file, if it does.

    """

    sign: Sign
    part: str
    name: str = ""
    key: str = ""
    a: Any = ABSENT
    b: Any = ABSENT
    pack: str = ""
    lines: tuple[str | None, str | None] = (None, None)


def changes(a: Sequence[Pack], b: Sequence[Pack]) -> Iterator[Change]:
    """Yield what is written otherwise in two packs, each the last behind those that it includes."""
    yield from _of_pack(a[-1], b[-1], "")
    theirs = {pack.name: pack for pack in b[:-1]}
    mine = {pack.name: pack for pack in a[:-1]}
    for name in dict.fromkeys([*mine, *theirs]):
        if name not in theirs or name not in mine:
            yield Change("-" if name in mine else "+", "include", name)
        elif mine[name].digest != theirs[name].digest:
            yield from _of_pack(mine[name], theirs[name], name)


def _of_pack(a: Pack, b: Pack, inside: str) -> Iterator[Change]:
    for key in _KEYS:
        left, right = (_given(pack.file, key) for pack in (a, b))
        if not _same(left, right):
            yield Change(_sign(left, right), "pack", "", key, left, right, inside)
    yield from _of_map("define", a.file.define, b.file.define, inside)
    yield from _of_map("constraint", a.file.constraints, b.file.constraints, inside)
    yield from _of_map("vocabulary", _vocabulary(a), _vocabulary(b), inside)
    yield from _of_rules(a, b, inside)


def _vocabulary(pack: Pack) -> Mapping[str, Any]:
    return pack.file.vocabulary.model_dump(exclude_unset=True) if pack.file.vocabulary else {}


def _of_map(part: str, a: Mapping[str, Any], b: Mapping[str, Any], inside: str) -> Iterator[Change]:
    for name in dict.fromkeys([*a, *b]):
        left, right = a.get(name, ABSENT), b.get(name, ABSENT)
        if not _same(left, right):
            yield Change(_sign(left, right), part, name, "", left, right, inside)


def _of_rules(a: Pack, b: Pack, inside: str) -> Iterator[Change]:
    mine, theirs = ({rule.name: number for number, rule in enumerate(pack.file.rules)} for pack in (a, b))
    renamed = dict(_renamed(a, b))
    for name, number in mine.items():
        rule, line = a.file.rules[number], _line(a, number)
        if name in theirs:
            other = theirs[name]
            yield from _of_rule(rule, b.file.rules[other], inside, (line, _line(b, other)))
        elif name in renamed:
            lines = line, _line(b, theirs[renamed[name]])
            yield Change("~", "rule", name, "name", name, renamed[name], inside, lines)
        else:
            yield Change("-", "rule", name, pack=inside, lines=(line, None))
    for name, number in theirs.items():
        if name not in mine and name not in renamed.values():
            yield Change("+", "rule", name, pack=inside, lines=(None, _line(b, number)))
    left, right = [name for name in mine if name in theirs], [name for name in theirs if name in mine]
    if left != right:
        yield Change("~", "pack", "", "order", left, right, inside)


def _renamed(a: Pack, b: Pack) -> Iterator[tuple[str, str]]:
    """Yield the rules that only have another name."""
    names = {rule.name for rule in a.file.rules}
    free = {rule.name: rule for rule in b.file.rules if rule.name not in names}
    kept = {rule.name for rule in b.file.rules}
    for rule in a.file.rules:
        if rule.name not in kept:
            like = next(
                (name for name, other in free.items() if not list(_of_rule(rule, other, "", (None, None)))), None
            )
            if like is not None:
                del free[like]
                yield rule.name, like


def _of_rule(a: RuleModel, b: RuleModel, inside: str, lines: tuple[str | None, str | None]) -> Iterator[Change]:
    for key in _RULE:
        left, right = _given(a, key), _given(b, key)
        if not _same(left, right):
            yield Change(_sign(left, right), "rule", a.name, key, left, right, inside, lines)
    for key in _FAILING:
        left, right = _given(_long(a), key), _given(_long(b), key)
        if not _same(left, right):
            yield Change(_sign(left, right), "rule", a.name, key, left, right, inside, lines)
    examples = [[one.model_dump(exclude_unset=True) for one in rule.examples] for rule in (a, b)]
    if examples[0] != examples[1]:
        yield Change("~", "rule", a.name, "examples", len(examples[0]), len(examples[1]), inside, lines)


def _long(rule: RuleModel) -> OnFail:
    return rule.failing


def _given(model: Any, key: str) -> Any:
    return getattr(model, key) if key in model.model_fields_set and getattr(model, key) is not None else ABSENT


def _same(a: Any, b: Any) -> bool:
    if a is ABSENT or b is ABSENT:
        return a is b
    return a == b if isinstance(a, str) else paths.same(a, b)


def _sign(a: Any, b: Any) -> Sign:
    return "+" if a is ABSENT else "-" if b is ABSENT else "~"


def _line(pack: Pack, number: int) -> str:
    return pack.document.position(("rules", number))
