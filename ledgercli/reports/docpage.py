"""A pack in plain sentences, as a page of HTML.

Invariants:
* It says the same as the Markdown, part by part.
* The page needs nothing else: no script, no font, no picture; it has headings, captions and links, and prints well.
* Text of a file is escaped.
"""

from __future__ import annotations

import html
from collections.abc import Container, Iterator, Sequence
from typing import Final

from ledgercli.documenting import LEGEND, PackPart, Requirement, ToolPart
from ledgercli.reports.cells import inert
from ledgercli.reports.documenting import EVERY, HEAD, about, covered, effect, named, names, words
from ledgercli.sentences import Sentence

_STYLE: Final = """\
:root { color-scheme: light dark; }
body { font: 1rem/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
code { font-size: 0.9em; overflow-wrap: anywhere; }
table { border-collapse: collapse; width: 100%; }
caption { text-align: left; font-weight: bold; padding: 0.5rem 0; }
th, td { border: 1px solid; padding: 0.3rem 0.5rem; text-align: left; vertical-align: top; overflow-wrap: anywhere; }
.rule { margin: 1rem 0; padding-left: 1rem; border-left: 3px solid; break-inside: avoid; }
@media print { body { max-width: none; margin: 0; font-size: 10pt; } nav { display: none; } h2 { break-after: avoid; } }
"""


def page(parts: Sequence[PackPart]) -> Iterator[str]:
    """Yield the lines of a page."""
    title = f"The pack {_safe(parts[0].pack.file.pack)}" if parts else "No pack"
    yield from ("<!DOCTYPE html>", '<html lang="en">', "<head>", '<meta charset="utf-8">')
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield from (f"<title>{title} in plain sentences</title>", "<style>", *_STYLE.splitlines(), "</style>", "</head>")
    yield from ("<body>", '<nav aria-label="Contents">', "<ul>")
    for number, part in enumerate(parts):
        yield f'<li><a href="#{_anchor(number)}">{_safe(part.pack.file.pack)}</a>'
        yield "<ul>"
        for place, tool in enumerate(part.tools):
            yield f'<li><a href="#{_anchor(number, "tool", place)}">{_safe(tool.name or EVERY)}</a></li>'
        yield from (f'<li><a href="#{_anchor(number, "rules")}">Rules and what proves them</a></li>', "</ul>", "</li>")
    yield from ("</ul>", "</nav>", "<main>")
    for number, part in enumerate(parts):
        yield from _html_pack(part, number)
    yield from ("</main>", "</body>", "</html>")


def _html_pack(part: PackPart, number: int) -> Iterator[str]:
    file = part.pack.file
    version = "" if file.version is None else f", version {_safe(str(file.version))}"
    yield f'<section aria-labelledby="{_anchor(number)}">'
    yield f'<h1 id="{_anchor(number)}">The pack {_mono(file.pack)}{version}</h1>'
    if file.description:
        yield f"<p>{_safe(file.description)}</p>"
    plain = [Sentence(line) for line in LEGEND]
    judges = part.active
    first = [*(judges.sentences if judges else ()), *part.notes, *plain]
    yield from _list(first, judges.where if judges else (), (), names(part))
    for place, tool in enumerate(part.tools):
        yield from _html_tool(tool, _anchor(number, "tool", place), names(part, tool))
    if part.free:
        yield from ("<h2>Tools without a rule of their own</h2>", f"<p>{', '.join(map(_mono, part.free))}</p>")
    yield from _html_rules(part, number)
    yield "</section>"


def _html_tool(tool: ToolPart, anchor: str, typed: Container[str]) -> Iterator[str]:
    yield f'<section aria-labelledby="{anchor}">'
    yield f'<h2 id="{anchor}">{_mono(tool.name) if tool.name else EVERY}</h2>'
    if tool.description:
        yield f"<p>{_safe(tool.description)}</p>"
    if tool.note:
        yield f"<p>{_marked(tool.note.text, typed)}</p>"
    for one in tool.requirements:
        yield from _html_requirement(one, typed)
    yield "</section>"


def _html_requirement(one: Requirement, typed: Container[str]) -> Iterator[str]:
    described = f": {_safe(one.description)}" if one.description else ""
    yield from ('<div class="rule">', f"<h3>{_mono(one.rule)}{described}</h3>")
    yield from _list(one.statement.sentences, one.statement.where, one.statement.notes, typed)
    yield "</div>"


def _html_rules(part: PackPart, number: int) -> Iterator[str]:
    yield f'<h2 id="{_anchor(number, "rules")}">Rules and what proves them</h2>'
    yield from ("<table>", f"<caption>The rules of {_mono(part.pack.file.pack)}, in order</caption>", "<thead>", "<tr>")
    for head in HEAD:
        yield f'<th scope="col">{head}</th>'
    yield from ("</tr>", "</thead>", "<tbody>")
    for rule in part.rules:
        cases = "<br>".join(map(_safe, named(rule)))
        cells = (effect(rule), _safe(about(rule)), cases, _safe(covered(rule)), _safe(rule.place))
        yield f'<tr><th scope="row">{_mono(rule.name)}</th>{"".join(f"<td>{cell}</td>" for cell in cells)}</tr>'
    yield from ("</tbody>", "</table>")


def _list(
    first: Sequence[Sentence], where: Sequence[Sentence], last: Sequence[Sentence], typed: Container[str]
) -> Iterator[str]:
    yield "<ul>"
    for sentence in (*first, *([Sentence("Where:", tuple(where))] if where else ()), *last):
        yield from _html_item(sentence, typed)
    yield "</ul>"


def _html_item(sentence: Sentence, typed: Container[str]) -> Iterator[str]:
    if not sentence.items:
        yield f"<li>{_marked(sentence.text, typed)}</li>"
        return
    yield f"<li>{_marked(sentence.text, typed)}"
    yield from (*_list(sentence.items, (), (), typed), "</li>")


def _marked(sentence: str, typed: Container[str]) -> str:
    return "".join(_mono(piece) if marked else _safe(piece) for piece, marked in words(sentence, typed))


def _mono(said: str) -> str:
    return f"<code>{_safe(said)}</code>"


def _safe(said: str) -> str:
    return html.escape(inert(said))


def _anchor(number: int, *more: object) -> str:
    return "-".join(["pack", str(number + 1), *(str(one + 1) if isinstance(one, int) else str(one) for one in more)])
