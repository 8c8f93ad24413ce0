"""A step of a ledger as it is written everywhere: `FILE@STEP`.

Invariants:
* A path that exists as it stands is a path, whatever it holds; else the part behind the last `@` is the step.
* A part with a `/` in it is no step: the `@` belongs to a folder's name.

Deliberately not here: whether the ledger has that step, which only those who read it know (`no_such_step` says it).
"""

from __future__ import annotations

import os.path
import re
from typing import Final

from ledgercli.errors import LedgerCliError

_STEP: Final = re.compile(r"0|[1-9][0-9]{0,17}")


def step_address(text: str) -> tuple[str, int | None]:
    """Return the file and the step that an address names; no step: `None`.

    Raises:
        LedgerCliError: there is an `@`, and no number of a step behind it.

    """
    path, at, step = text.rpartition("@")
    if not at or "/" in step or os.path.lexists(text):
        return text, None
    if not path:
        raise LedgerCliError(f"{text} names no file", fix=f"FILE{text}")
    if not _STEP.fullmatch(step):
        what = f"{step} is no step" if step else "no step stands behind the @"
        raise LedgerCliError(f"{text}: {what}, and there is no such file", fix=f"{path}@3 is step 3 of {path}")
    return path, int(step)


def no_such_step(path: str, steps: int) -> LedgerCliError:
    """Return the error that a ledger of so many steps does not have the step that was asked for."""
    if not steps:
        return LedgerCliError(f"{path} has no steps")
    return LedgerCliError(f"{path} has {steps:,} steps, 1 to {steps:,}" if steps > 1 else f"{path} has 1 step")
