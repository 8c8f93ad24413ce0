"""Which mistakes the cases would catch: text, Markdown, JSON, and notes for SARIF.

Invariants:
* Each mutant that no case catches has its line, what was changed, why none does, and a case that would, ready to be
  pasted; where none was found it says so, and never that there is none.
* Figures are rounded down: 100 % is said of everything alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from ledgercli.mutation.catching import Mutation, Tried
from ledgercli.reports.cells import WIDTH, inert, wrap
from ledgercli.reports.coverage import percent
from ledgercli.reports.markdown import code, table, text
from ledgercli.reports.screen import Screen
from ledgercli.reports.summary import counted
from ledgercli.sources import Problem

_MANY: Final = 20  # survivors that are told of
_HANG: Final = " " * 15  # behind `     changed   `
_NONE: Final = "no example found"


def count_line(found: Iterable[Mutation]) -> str:
    """Return `89 mutants, 88 caught, 0 the same (proved), 1 survives, score 98.8%`."""
    tried = [one for pack in found for one in pack.tried]
    whole = Mutation("", "", tried)
    survive = whole.count("survived")
    told = [
        counted(len(tried), "mutant"),
        f"{whole.count('caught'):,} caught",
        f"{whole.count('same'):,} the same (proved)",
        f"{survive:,} survive{'s' if survive == 1 else ''}",
    ]
    if ill := whole.count("unloadable"):
        told.append(f"{ill:,} {'does' if ill == 1 else 'do'} not load")
    return f"{', '.join(told)}, score {percent(whole.score)}"


def missed(found: Iterable[Mutation], threshold: float) -> list[Mutation]:
    """Return the packs of which less is caught than asked."""
    return [pack for pack in found if pack.score + 1e-9 < threshold]


def missed_line(found: Iterable[Mutation], threshold: float) -> str:
    """Return which packs are below a threshold."""
    return ", ".join(f"{pack.pack} {percent(pack.score)}" for pack in missed(found, threshold))


# ---- text


def write_text(screen: Screen, found: Sequence[Mutation], *, verbose: bool = False, quiet: bool = False) -> None:
    """Write what was caught of each pack, and what was not (with `verbose` all of it)."""
    screen.line()
    if not quiet:
        survivors = [one for pack in found for one in pack.survivors]
        for one in survivors if verbose else survivors[:_MANY]:
            for line in _survivor(screen, one):
                screen.line(line)
        if len(survivors) > _MANY and not verbose:
            screen.line(f"... {len(survivors) - _MANY:,} more survive: -v, or --format json")
            screen.line()
    if verbose:
        for line in _others(screen, found):
            screen.line(line)
    for pack in found:
        screen.line(f"{screen.safe(pack.file)}  {count_line([pack])}")


def _survivor(screen: Screen, one: Tried) -> Iterator[str]:
    place = screen.safe(f"{one.where}:{one.where.column}")
    yield f"{screen.paint('SURVIVES', 'yellow')} {place}  {screen.safe(one.part)}"
    yield from _labelled(screen, "changed", described(one))
    yield from _labelled(screen, "uncaught", one.why)
    if one.lines:
        yield from _labelled(screen, "a case", f"that would catch it, for {one.into}:")
        yield from (screen.safe(line) for line in one.lines)
    else:
        yield from _labelled(screen, "a case", found_none(one))
    yield ""


def described(one: Tried) -> str:
    """Return in one line what was changed: `shift a bound: a < 3 -> a < 4`."""
    if one.before and one.after:
        return f"{one.change}: {one.before} -> {one.after}"
    return f"{one.change}: {one.before or one.after}"


def found_none(one: Tried) -> str:
    """Say that no case was found, and how long for."""
    return f"{_NONE} in {counted(one.tried, 'situation')}"


def _labelled(screen: Screen, label: str, said: str) -> Iterator[str]:
    for number, line in enumerate(wrap(screen.safe(said), WIDTH - len(_HANG))):
        yield f"     {label:<10}{line}" if not number else f"{_HANG}{line}"


def _others(screen: Screen, found: Iterable[Mutation]) -> Iterator[str]:
    """Yield the mutants that do not survive, each in a line or two."""
    for one in (tried for pack in found for tried in pack.tried if tried.came != "survived"):
        word = {"caught": "caught", "same": "same", "unloadable": "no load"}[one.came]
        yield f"{word:<8} {screen.safe(f'{one.where}:{one.where.column}')}  {screen.safe(described(one))}"
        if one.by is not None:
            yield f"{_HANG}by {screen.safe(f'{one.by[0]}  {one.by[1]}')}"
        elif one.why:
            yield f"{_HANG}{screen.safe(one.why)}"


# ---- other forms


def to_json(found: Sequence[Mutation]) -> dict[str, Any]:
    """Return it as data."""
    return {"packs": [_pack_json(pack) for pack in found]}


def _pack_json(pack: Mutation) -> dict[str, Any]:
    counts = {
        "mutants": len(pack.tried),
        "caught": pack.count("caught"),
        "proved_the_same": pack.count("same"),
        "survive": pack.count("survived"),
        "do_not_load": pack.count("unloadable"),
        "score_percent": int(pack.score * 10) / 10,
    }
    return {"pack": pack.pack, "file": pack.file, **counts, "tried": [_tried_json(one) for one in pack.tried]}


def _tried_json(one: Tried) -> dict[str, Any]:
    where = one.where
    said: dict[str, Any] = {"rule": one.rule or None, "part": one.part, "line": where.line, "column": where.column}
    said |= {"change": one.change, "before": one.before, "after": one.after, "came": one.came}
    if one.by is not None:
        said["by"] = {"name": one.by[1], "file": one.by[0].file, "line": one.by[0].line}
    if one.why:
        said["why"] = one.why
    if one.came == "survived":
        said["situations_tried"] = one.tried
        said["case"] = {"file": one.into, "yaml": "\n".join([*one.lines, ""])} if one.lines else None
    return said


def markdown_lines(found: Sequence[Mutation]) -> Iterator[str]:
    """Yield it as Markdown."""
    yield text(f"Mutants: {count_line(found)}")
    yield ""
    head = ("pack", "mutants", "caught", "the same (proved)", "survive", "do not load", "score")
    came = ("caught", "same", "survived", "unloadable")
    yield from table(
        head,
        [
            (code(pack.pack), str(len(pack.tried)), *(str(pack.count(one)) for one in came), percent(pack.score))  # type: ignore[arg-type]
            for pack in found
        ],
    )
    for pack in found:
        for one in pack.survivors:
            yield ""
            yield f"- {code(f'{one.where}:{one.where.column}')} {text(one.part)}: {code(described(one))}"
            yield f"  {text(one.why)}; {text(f'a case for {one.into}:' if one.lines else found_none(one))}"
            if one.lines:
                longest = max((len(run) for line in one.lines for run in re.findall("`+", line)), default=0)
                fence = "`" * max(3, longest + 1)
                yield from ("", f"  {fence}yaml", *(f"  {inert(line)}" for line in one.lines), f"  {fence}")


def to_problems(found: Iterable[Mutation]) -> Iterator[Problem]:
    """Yield a note for each mutant that no case catches."""
    for one in (survivor for pack in found for survivor in pack.survivors):
        message = f"no case catches: {described(one)}"
        notes = (one.why, *one.lines) if one.lines else (one.why, found_none(one))
        yield Problem(
            "mutant-survives", message, one.where.file, one.where.line, one.where.column, severity="note", notes=notes
        )
