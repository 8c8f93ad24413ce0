"""JSON and JSON Lines that other programs wrote, read with the place of each value for the errors.

Invariants:
* JSON Lines are read one bounded line at a time, so a file of any length needs the memory of its longest line.
* A file that is not what it should be ends in an `UnreadableInputError` that names file, line and reason; nothing
  foreign ever ends in a traceback.

Not for ledgers: theirs is a format of our own, held to the byte (`ledgercli.ledger`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

import orjson

from ledgercli.errors import UnreadableInputError

MAX_LINE = 64 * 1024 * 1024
MAX_DOCUMENT = 512 * 1024 * 1024
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Place:
    """Where in a file something stands; `item` counts the file's values from 1."""

    path: Path
    text: str = ""
    item: int = 0

    def within(self, kind: str, number: int) -> Place:
        """A place inside this one."""
        return Place(self.path, f"{self.text}{',' if self.text else ':'} {kind} {number}", self.item)

    def fail(self, message: str, *, fix: str | None = None) -> NoReturn:
        """Raise the error that says what is wrong here."""
        raise UnreadableInputError(f"{self.path}{self.text}: {message}", fix=fix)


def document(path: Path) -> Any:
    """Parse a whole JSON file."""
    with path.open("rb") as file:
        data = file.read(MAX_DOCUMENT + 1)
    if len(data) > MAX_DOCUMENT:
        Place(path).fail(f"longer than {MAX_DOCUMENT:,} bytes", fix="write it as JSON Lines, one run a line")
    try:
        return orjson.loads(data.removeprefix(_BOM))
    except orjson.JSONDecodeError as error:
        Place(path, f":{error.lineno}:{error.colno}").fail(f"not JSON: {error.msg}")


def lines(path: Path) -> Iterator[tuple[Place, Any]]:
    """Each value of a JSON Lines file with its place; blank lines are none."""
    import jsonlines

    number = 0

    def bounded(file: BinaryIO) -> Iterator[bytes]:
        nonlocal number
        while line := file.readline(MAX_LINE + 1):
            number += 1
            if len(line) > MAX_LINE:
                Place(path, f":{number}").fail(f"a line longer than {MAX_LINE:,} bytes")
            yield line

    with path.open("rb") as file:
        reader, item = jsonlines.Reader(bounded(file), loads=orjson.loads), 0
        while True:
            try:
                value = reader.read(skip_empty=True)
            except EOFError:
                return
            except jsonlines.InvalidLineError as error:
                # The library repeats its own count of lines at the end of the message.
                Place(path, f":{number}").fail(f"not JSON: {str(error).rsplit(' (line ', 1)[0]}")
            item += 1
            yield Place(path, f":{number}", item), value


def is_json_lines(path: Path) -> bool:
    """Whether the first line that is not blank is JSON by itself."""
    with path.open("rb") as file:
        first = next((line for line in iter(lambda: file.readline(MAX_LINE + 1), b"") if line.strip()), b"")
    try:
        orjson.loads(first.removeprefix(_BOM))
    except orjson.JSONDecodeError:
        return False
    return True
