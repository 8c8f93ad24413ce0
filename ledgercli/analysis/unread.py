"""Names that stand in vain: facts, flags and constraints that nobody reads, names that nothing gives a value, defines.

Invariants:
* What reads a part of a fact reads the fact, and so does what reads the map that holds it, or its source.
* An `expect` of a scenario reads what it names; a constraint that a case gives is not in vain.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ledgercli import paths
from ledgercli.analysis.context import Context
from ledgercli.analysis.findings import Finding, at_place
from ledgercli.analysis.looking import Look
from ledgercli.analysis.settings import Pattern, overlap
from ledgercli.cel.checker import looked_at
from ledgercli.cel.syntax import Expand, walk
from ledgercli.documents import Document, Place
from ledgercli.names import path_pattern
from ledgercli.policy import Pack
from ledgercli.runnable import LIMITS


def check(context: Context, looks: Sequence[Look]) -> Iterator[Finding]:
    """Yield the names that stand in vain.

    Arguments:
        context: what is analysed together.
        looks: its expressions.

    """
    reads = _reads(context, looks)
    if context.packs or context.scenario is not None:
        yield from _settings(context, reads)
        yield from _constraints(context, reads)
    for pack in context.packs:
        yield from _vocabulary(context, pack, reads)
        yield from _defines(pack, looks)


def _reads(context: Context, looks: Sequence[Look]) -> list[Pattern]:
    """Return every path below the state that something reads."""
    found: dict[Pattern, None] = {}
    for look in looks:
        for path, _ in looked_at(look.node):
            if path[0] == "state":
                found[path[1:]] = None
    file = context.scenario.file if context.scenario is not None else None
    for text in (file.expect or {}) if file is not None else ():
        try:
            found[tuple(paths.parse(text))] = None
        except paths.PathError:
            continue
    return list(found)


def _is_read(path: Pattern, reads: Iterable[Pattern]) -> bool:
    return any(overlap(path, read) for read in reads)


def _settings(context: Context, reads: Sequence[Pattern]) -> Iterator[Finding]:
    told: set[Pattern] = set()
    for one in context.settings.all:
        root = one.pattern[0]
        if one.removes or root not in ("facts", "flags") or one.pattern in told or _is_read(one.pattern, reads):
            continue
        told.add(one.pattern)
        what = "fact" if root == "facts" else "flag"
        text = one.place[-1]
        assert context.toolset is not None, "a toolset has the transitions"
        problem = at_place(
            context.toolset.document, one.place, f"unread-{what}", f"nothing that was checked reads {text}", key=True
        )
        yield Finding(problem, (one.pattern,))


def _constraints(context: Context, reads: Sequence[Pattern]) -> Iterator[Finding]:
    given = {name for one in context.given for name in one.get("constraints", {})}
    places: list[tuple[Document, Iterable[str]]] = [(pack.document, pack.file.constraints) for pack in context.packs]
    if context.scenario is not None:
        places.append((context.scenario.document, context.scenario.file.constraints))
    for document, names in places:
        for name in names:
            if name not in LIMITS and name not in given and not _is_read(("constraints", name), reads):
                message = f"nothing that was checked reads the constraint {name}"
                problem = at_place(document, ("constraints", name), "unread-constraint", message, key=True)
                yield Finding(problem, (name,))


def _vocabulary(context: Context, pack: Pack, reads: Sequence[Pattern]) -> Iterator[Finding]:
    """Names that a pack declares and does not use, or uses where nothing gives them a value."""
    own = pack.file.vocabulary
    if own is None:
        return
    for part, names in (("facts", own.facts), ("flags", own.flags), ("constraints", own.constraints)):
        for number, name in enumerate(names):
            place: Place = ("vocabulary", part, number if part == "flags" else name)
            path = (part, *path_pattern(name))
            key = part != "flags"
            if not _is_read(path, reads):
                message = f"the pack declares {part}.{name} and does not read it"
                yield _named(pack, place, "unread-name", message, key=key)
            elif context.toolset is not None and not _is_given(context, path):
                message = f"nothing here gives {part}.{name} a value"
                yield _named(pack, place, "nothing-establishes", message, key=key)


def _is_given(context: Context, path: Pattern) -> bool:
    if path[0] == "constraints":
        return path[1] in context.vocabulary.constraints() or bool(context.settings.at(path))
    return bool(context.settings.at(path)) or not context.settings.started(path).is_empty()


def _defines(pack: Pack, looks: Sequence[Look]) -> Iterator[Finding]:
    used = {node.name for look in looks if look.pack is pack for node in walk(look.node) if isinstance(node, Expand)}
    for name in pack.file.define:
        if name not in used:
            yield _named(pack, ("define", name), "unused-define", f"nothing in the pack uses {name}", key=True)


def _named(pack: Pack, place: Place, code: str, message: str, *, key: bool) -> Finding:
    return Finding(at_place(pack.document, place, code, message, key=key), (place,))
