"""Where cases are: the case files and packs among paths, and which of them names which.

Invariants:
* A file that is named must be a case file or a pack; in a folder others are passed over.
* A file whose first key is nearly one of ours is told: its cases would silently never be judged.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ledgercli import sources
from ledgercli.errors import LedgerCliError, UnreadableInputError
from ledgercli.loading import misspelt_kind
from ledgercli.sources import Problem

LOOKED_FOR = "files that start with `cases:`, and packs with `examples`"
_YAML = (".yaml", ".yml")


@dataclass(slots=True)
class Found:
    """What there is under some paths.

    Arguments:
        cases: case files.
        packs: packs.
        scenarios: scenarios, which may say with which tools a pack is meant to go.
        problems: files that are nearly one of ours.

    """

    cases: list[str] = field(default_factory=list)
    packs: list[str] = field(default_factory=list)
    scenarios: list[str] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)

    @property
    def files(self) -> list[str]:
        """The files that may hold cases."""
        return [*self.cases, *self.packs]


def find(paths: Sequence[str]) -> Found:
    """Find case files and packs.

    Arguments:
        paths: files, and folders with all that is below.

    Raises:
        UnreadableInputError: a path does not exist, or a file that is named is neither.

    """
    found = Found()
    named = {path for path in paths if not Path(path).is_dir()}
    once: set[str] = set()
    for name in sources.find(paths):
        if os.path.realpath(name) in once:
            continue
        once.add(os.path.realpath(name))
        if name in named:
            _take_named(found, name)
        elif name.endswith(_YAML):
            _take(found, name)
    return found


def none(paths: Sequence[str]) -> UnreadableInputError:
    """Return the error that there are no cases."""
    return UnreadableInputError(f"no cases found under {' '.join(paths)} (looked for {LOOKED_FOR})")


def _take_named(found: Found, name: str) -> None:
    source = sources.read(name)
    kind = sources.kind_of(source)
    if kind in ("cases", "pack"):
        (found.cases if kind == "cases" else found.packs).append(name)
        return
    problems = list(misspelt_kind(source)) if kind is None else []
    found.problems += problems
    if not problems:
        what = f"is a {kind}" if kind else "is none of our files"
        raise UnreadableInputError(f"{name} {what}; cases stand in {LOOKED_FOR}")


def _take(found: Found, name: str) -> None:
    match sources.kind_of(name):
        case "cases":
            found.cases.append(name)
        case "pack":
            found.packs.append(name)
        case "scenario":
            found.scenarios.append(name)
        case None:
            try:
                found.problems += misspelt_kind(sources.read(name))
            except LedgerCliError:  # no text: none of ours
                return
