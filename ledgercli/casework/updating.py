"""Expectations brought up to date in the files where they stand: `--update`.

Invariants:
* Only the characters of what changes are written; every comment, blank line and line end stays as it was.
* An expectation that a row fills in is changed in its row; one text that is to be several cannot be changed, and is
  told instead.
* A file is replaced as a whole or not at all.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ledgercli import sources
from ledgercli.casework import edits
from ledgercli.casework.edits import Edit
from ledgercli.casework.outcomes import Judged, Outcome
from ledgercli.documents import Document, Mark, Place, parse

_ROW: Final = re.compile(r"\{\s*row\.([A-Za-z_]\w*)\s*\}")
_PLAIN: Final = re.compile(r"[A-Za-z_][\w/ .()'-]*")
_WORDS: Final = frozenset("true false null yes no on off y n".split())


@dataclass(frozen=True, slots=True)
class Change:
    """What was done about one case: its line and name, and why nothing was, if so."""

    where: str
    name: str
    why_not: str | None = None

    @property
    def text(self) -> str:
        """Say it."""
        told = f"{self.where}  {self.name}"
        return f"updated {told}" if self.why_not is None else f"not updated {told}: {self.why_not}"


class _CannotError(Exception):
    """An expectation that cannot be changed."""


def update(results: Sequence[Judged]) -> Iterator[Change]:
    """Change the expectations of the cases that failed, file by file.

    Raises:
        LedgerWriteError: a file cannot be written.

    """
    for result in results:
        failed = [outcome for outcome in result.outcomes if outcome.failure is not None]
        if failed:
            yield from _update_file(result, failed)


def _update_file(result: Judged, failed: Sequence[Outcome]) -> Iterator[Change]:
    document = parse(sources.read(result.file))
    rows = Counter(outcome.place for outcome in result.outcomes)
    changed: set[Edit] = set()
    changes = []
    by_case: dict[tuple[str | int, ...], list[Outcome]] = {}
    for outcome in failed:
        by_case.setdefault(outcome.place, []).append(outcome)
    for place, outcomes in by_case.items():
        why_not = None
        try:
            changed |= _of_case(document, place, outcomes, rows[place])
        except _CannotError as error:
            why_not = str(error)
        changes += [Change(str(outcome.where), outcome.name, why_not) for outcome in outcomes]
    if changed:
        edits.replace(Path(result.file), edits.edited(document, sorted(changed)))
    yield from changes


def _of_case(document: Document, place: Place, outcomes: Sequence[Outcome], rows: int) -> set[Edit]:
    """Return the edits of a case; a text that all its rows share may only become what each of them needs."""
    sets = [
        {edit for key, value in _new(one) for edit in _set(document, place, one.row, key, value)} for one in outcomes
    ]
    whole: set[Edit] = set().union(*sets)
    table = document.mark((*place, "for"))
    for edit in whole:
        shared = not table.start <= edit.start < table.end or outcomes[0].row is None
        if shared and sum(edit in one for one in sets) < rows:
            raise _CannotError("its rows come out differently; give them a column of their own")
    return whole


def _new(outcome: Outcome) -> Iterator[tuple[str, Any]]:
    """Yield what each part that differs is to be; None: it is to go."""
    failure = outcome.failure
    assert failure is not None, "only cases that failed are changed"
    values: Mapping[str, Any] = {
        "effect": failure.verdict.effect,
        "error": failure.verdict.reason,
        "hint": failure.verdict.hint,
        "halts": failure.verdict.halts,
    }
    for difference in failure.differences:
        if difference.key in values:
            yield difference.key, values[difference.key]
        else:
            empty = difference.key == "rules_include" and not difference.got
            yield difference.key, None if empty else list(difference.got)


def _set(document: Document, place: Place, row: int | None, key: str, value: Any) -> Iterator[Edit]:
    expect = document.mark((*place, "expect"))
    mark = expect if expect.scalar is not None else expect.children[key]
    column = None if mark.scalar is None else _ROW.fullmatch(mark.scalar.value)
    if row is not None and column is not None:
        cell = document.mark((*place, "for", row)).children.get(column[1])
        if cell is None or value is None:
            raise _CannotError(f"its row has no {column[1]} to change")
        yield Edit(cell.start, cell.end, _scalar(document, cell, str(value), braces=False))
    elif mark.scalar is not None and "{" in mark.scalar.value.replace("{{", ""):
        raise _CannotError(f"{key} is made of other values")
    elif isinstance(value, bool):
        yield Edit(mark.start, mark.end, "true" if value else "false")
    elif value is None:
        yield _removal(document, expect, mark)
    elif isinstance(value, list):
        yield from _items(document, mark, value)
    else:
        yield Edit(mark.start, mark.end, _scalar(document, mark, str(value)))


def _scalar(document: Document, mark: Mark, value: str, *, braces: bool = True) -> str:
    """Return a text as it may stand in the place of another."""
    style = mark.scalar.style if mark.scalar else "plain"
    text = value.replace("{", "{{").replace("}", "}}") if braces else value
    flow = _in_flow(document.text, mark.start)
    if style == "plain" and _is_plain(text, flow=flow):
        return text
    if any(ord(one) < 0x20 or 0x7F <= ord(one) < 0xA0 for one in text):
        import json

        return json.dumps(text, ensure_ascii=False)
    if style == "double" and "\\" not in text and '"' not in text:
        return f'"{text}"'
    return "'" + text.replace("'", "''") + "'"


def _is_plain(text: str, *, flow: bool) -> bool:
    return (
        bool(_PLAIN.fullmatch(text))
        and text.casefold() not in _WORDS
        and text == text.strip()
        and not (flow and "," in text)
    )


def _in_flow(text: str, at: int) -> bool:
    """Whether a place is inside `{}` or `[]`, as far as its line tells."""
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return line.count("{") + line.count("[") > line.count("}") + line.count("]")


def _items(document: Document, mark: Mark, names: Sequence[str]) -> Iterator[Edit]:
    """Make a list of names another: item by item, so that what stands between them stays."""
    here = [mark.children[number] for number in range(len(mark.children))]
    text = document.text
    if text[mark.start] == "[":
        if not names or not here:
            yield Edit(mark.start, mark.end, f"[{', '.join(names)}]")
            return
    elif not names:
        yield Edit(mark.start, here[-1].end, "[]")
        return
    for item, name in zip(here, names, strict=False):
        if item.scalar is not None and item.scalar.value != name:
            yield Edit(item.start, item.end, name)
    for item in here[len(names) :]:
        yield _dropped(text, item, flow=text[mark.start] == "[")
    if more := names[len(here) :]:
        last = here[-1]
        if text[mark.start] == "[":
            yield Edit(last.end, last.end, "".join(f", {name}" for name in more))
        else:
            start = text.rfind("\n", 0, last.start) + 1
            end = text.find("\n", last.end)
            at = len(text) if end < 0 else end
            lead = text[start : last.start]
            yield Edit(at, at, "".join(f"\n{lead}{name}" for name in more))


def _dropped(text: str, item: Mark, *, flow: bool) -> Edit:
    if flow:
        start = text.rfind(",", 0, item.start)
        return Edit(start, item.end, "")
    return _line_without(text, text.rfind("-", 0, item.start), item.end)


def _removal(document: Document, whole: Mark, mark: Mark) -> Edit:
    """Take out a key with its value."""
    text = document.text
    assert mark.key is not None, "what stands in a map has a key"
    if len(whole.children) == 1:
        raise _CannotError("nothing would be left of its expectation")
    if text[whole.start] != "{":
        return _line_without(text, mark.key.start, mark.end)
    before = text.rfind(",", whole.start, mark.key.start)
    if before >= 0:
        return Edit(before, mark.end, "")
    after = text.find(",", mark.end) + 1
    return Edit(mark.key.start, after + len(text[after:]) - len(text[after:].lstrip(" ")), "")


def _line_without(text: str, start: int, end: int) -> Edit:
    """Take out what stands in lines of its own; a comment behind it stays, in a line of its own."""
    line = text.rfind("\n", 0, start) + 1
    stop = text.find("\n", end)
    stop = len(text) if stop < 0 else stop
    rest = text[end:stop].strip()
    if rest.startswith("#"):
        return Edit(start, end + len(text[end:stop]) - len(text[end:stop].lstrip()), "")
    return Edit(line, min(stop + 1, len(text)), "")
