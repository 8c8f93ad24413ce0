"""What `ledger capture` does: steps become cases of a file, which is written if it is to be.

Invariants:
* All is made and judged before anything is written.
* A case that its file does not take as it was made names its step in the ledger.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

from ledgercli.capture import flips
from ledgercli.capture.beginning import begin
from ledgercli.capture.capturing import Captured, Capturing, Wish, renamed
from ledgercli.capture.casefile import Added, CaseFile, refuse_misfit
from ledgercli.capture.flips import Left
from ledgercli.capture.pseudonyms import Pseudonyms
from ledgercli.capture.recalling import Step, steps
from ledgercli.errors import LedgerCliError


@dataclass(frozen=True, eq=False)
class Done:
    """What has been done.

    Arguments:
        file: the case file.
        added: its cases.
        left: what is no case, and why.

    """

    file: CaseFile
    added: Sequence[Added]
    left: Sequence[Left] = ()


def add_step(path: str, step: int, wish: Wish, to: str | None, *, pseudonyms: bool) -> Done:
    """Make a recorded step a case.

    Arguments:
        path: its ledger.
        step: its number.
        wish: what the case is to expect.
        to: the file that it is added to; None: it is only made.
        pseudonyms: whether people and things have other names in it.

    Raises:
        LedgerCliError: there is no such step, it cannot be a case, or the file cannot take it.

    """
    [found] = steps(path, {step})
    file = _file(to, found)
    capturing = Capturing(found, file.group, wish)
    refuse_misfit(file, found, capturing.verdict, wish.rule)
    names = _names(file) if pseudonyms else None
    return _written(file, [(capturing, _made(capturing.done(), names))], to)


def add_flips(name: str, to: str, *, pseudonyms: bool) -> Done:
    """Make each flip of a what-if replay a case that expects what the packs say now.

    What the file cannot take is left out, and told.

    Arguments:
        name: what `ledger replay` has written.
        to: the file that the cases are added to.
        pseudonyms: whether people and things have other names in it.

    Raises:
        LedgerCliError: a file cannot be read, or none of the flips can be a case.

    """
    found, left = flips.read(name)
    steps_ = flips.judged(name, found)
    first = next(steps_)
    file = _file(to, first)
    names = _names(file) if pseudonyms else None
    made: list[tuple[Capturing, Captured]] = []
    for step in chain([first], steps_):
        capturing = Capturing(step, file.group, Wish())
        try:
            _refuse_others(capturing, file, step)
            made.append((capturing, _made(capturing.done(), names)))
        except LedgerCliError as error:
            left.append(Left(step.address, error.message))
    return replace(_written(file, made, to), left=left)


def _refuse_others(capturing: Capturing, file: CaseFile, step: Step) -> None:
    refuse_misfit(file, step, capturing.verdict, None)
    if not capturing.agrees:
        raise LedgerCliError(f"the packs of {file.name} together say {capturing.here.effect}")


def _written(file: CaseFile, made: Sequence[tuple[Capturing, Captured]], to: str | None) -> Done:
    added = _added(file, made)
    if to is not None and any(one.new for one in added):
        file.write()
    return Done(file, added)


def _added(file: CaseFile, made: Sequence[tuple[Capturing, Captured]]) -> list[Added]:
    """Add the cases; one that the file does not take as it was made names its step, unless it has other names."""
    try:
        return file.add([one for _, one in made])
    except LedgerCliError:
        if all(one.at is not None or one.renamed or file.holds(one) for _, one in made):
            raise
    taken = [
        one if one.at is not None or one.renamed or file.holds(one) else capturing.as_recorded()
        for capturing, one in made
    ]
    return file.add(taken)


def _made(made: Captured, names: Pseudonyms | None) -> Captured:
    return made if names is None else renamed(made, names)


def _file(to: str | None, step: Step) -> CaseFile:
    if to is None:
        return begin(None, step)
    if os.path.lexists(to):
        return CaseFile.there(to)
    if not Path(to).parent.is_dir():
        raise LedgerCliError(f"no folder {Path(to).parent}", fix="make it, or another --to")
    return begin(to, step)


def _names(file: CaseFile) -> Pseudonyms:
    rules = file.group.rules
    documents = (rules.toolset.document, *(pack.document for pack in rules.packs))
    return Pseudonyms(documents, rules.vocabulary.records)
