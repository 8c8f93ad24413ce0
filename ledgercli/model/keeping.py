"""Whole prompts, kept beside a ledger: a line each, found by the digest that its step names.

Invariants:
* A file that exists is gone on with only by a run that goes on; each prompt stands there once.
* Secrets are masked as in the ledger; such a prompt is marked, since its digest is that of what was sent.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson

from ledgercli import paths
from ledgercli.errors import OutputExistsError
from ledgercli.model.request import Request

ENDING = ".prompts.jsonl"


class Prompts:
    """The file of one run's prompts.

    Arguments:
        ledger: the run's ledger.
        ending: what ledgers' names end with.
        again: whether the run goes on.

    Raises:
        OutputExistsError: the file is there already.

    """

    def __init__(self, ledger: Path, ending: str, *, again: bool) -> None:
        self.path = ledger.with_name(ledger.name.removesuffix(ending) + ENDING)
        if not again and (self.path.exists() or self.path.is_symlink()):
            raise OutputExistsError(f"{self.path} exists; prompts are never written over")
        self._kept: set[str] = set()

    def add(self, asked: Request, shown: Callable[[Any], Any]) -> None:
        """Keep a request; `shown` masks what must not be written."""
        if asked.digest in self._kept:
            return
        self._kept.add(asked.digest)
        body = shown(asked.body)
        masked = {"masked": True} if body != asked.body else {}
        line = {"prompt": asked.digest, **masked, **body}
        with self.path.open("ab") as file:
            file.write(orjson.dumps(line, paths.plain) + b"\n")
