"""The ledgers that a command is about: of files, folders and patterns those that are ledgers, in order, each once.

Invariants:
* A file that is named is a ledger or an error: it is never passed over. In a folder, or under a pattern, what is no
  ledger is passed over.
* A pattern (`runs/*.jsonl`) is expanded here only where the shell has not done it and no file is called that.
* Damaged ledgers are gathered like others: whoever reads them says what is wrong. No file's content is looked at but
  the beginning of a JSON Lines file whose name does not say that it is a ledger.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from glob import glob, has_magic
from pathlib import Path
from typing import Final

from ledgercli import sources
from ledgercli.errors import UnreadableInputError

SUFFIX: Final = ".ledger.jsonl"
_LINES: Final = ".jsonl"
_LOOKED_FOR: Final = f"*{SUFFIX}, and *{_LINES} whose first line opens a ledger"


def ledgers(paths: Sequence[str]) -> list[str]:
    """Return the ledgers under the paths, named as they were typed or found.

    Arguments:
        paths: files, folders (with all that is below) and patterns.

    Raises:
        UnreadableInputError: a named file is missing, cannot be read or is none; or there are no ledgers at all.

    """
    found: dict[str, str] = {}
    for path in paths:
        for file in _under(path):
            found.setdefault(os.path.realpath(file), file)
    if not found:
        raise _none(paths)
    return list(found.values())


def one(path: str) -> str:
    """Return the path of a ledger as it is.

    Raises:
        UnreadableInputError: there is no such file (the nearest is named), it cannot be read, or it is no ledger.

    """
    if path == "-":
        raise UnreadableInputError("a ledger is read as a file, not on standard input", fix="name its file")
    if not (Path(path).is_file() and os.access(path, os.R_OK)):
        sources.read(path)  # says what is wrong, and what there is instead
    kind = sources.kind_of(path)
    if kind == "ledger" or (kind is None and path.endswith(_LINES)):  # its first line may be what is damaged
        return path
    raise UnreadableInputError(f"{path} is {f'a {kind} file' if kind else 'none of our files'}, not a ledger")


def _under(path: str) -> Iterable[str]:
    if Path(path).is_dir():
        return _in([path])
    if has_magic(path) and not os.path.lexists(path):
        matches = sorted(glob(path, recursive=True))  # noqa: PTH207 - a text as it was typed, absolute or not
        if not matches:
            raise _none([path])
        return _in(matches)
    return [one(path)]


def _in(paths: Iterable[str]) -> Iterator[str]:
    """Yield the ledgers among files and below folders; others are passed over."""
    for file in sources.find(paths):
        if file.endswith(SUFFIX) or (file.endswith(_LINES) and sources.kind_of(file) == "ledger"):
            yield file


def _none(paths: Iterable[str]) -> UnreadableInputError:
    return UnreadableInputError(f"no ledgers found under {' '.join(paths)} (looked for {_LOOKED_FOR})")
