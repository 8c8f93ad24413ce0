r"""Reports as Markdown, for comments on a pull request.

Invariants:
* Text that somebody else wrote cannot become structure: no table cell, code, link, image, mention or tag begins in it.
* Characters that cannot be seen stand as `\x1b`, `\u202e`, as on a terminal.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

from ledgercli.reports.cells import inert

_PLAIN: Final = re.compile(r"""[^\w ,.()="'/-]|_""")  # a `/`, `.` or `-` begins nothing here
_LINKED: Final = re.compile(r"(?i)(www)\.")


def text(said: str) -> str:
    """Return a text as Markdown that shows exactly it: what could be structure stands as a character reference."""
    quoted = _PLAIN.sub(lambda match: f"&#{ord(match[0])};" if ord(match[0]) < 0x80 else match[0], inert(said))
    return _LINKED.sub(r"\1&#46;", quoted)


def code(said: str) -> str:
    """Return a text in type of one width."""
    return f"<code>{text(said)}</code>" if said else ""


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterable[str]:
    """Yield a table; the cells are Markdown."""
    yield f"| {' | '.join(head)} |"
    yield f"|{'|'.join(' --- ' for _ in head)}|"
    for row in rows:
        yield f"| {' | '.join(row)} |"
