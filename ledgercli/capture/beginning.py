"""A new case file for a recorded step: the tools and packs that judged it, and the names that these need.

Invariants:
* The packs are files that are there now; that their text may have changed since is what a case is for.
* Of facts that only the run itself declared, the file declares those that the rules name, with an empty value.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ledgercli.capture.casefile import CaseFile
from ledgercli.capture.recalling import Step, plain
from ledgercli.casework.casetext import entry_lines
from ledgercli.errors import InvalidDocumentError, UnreadableInputError
from ledgercli.loading import folder_of, located
from ledgercli.policy import SHIPPED, Pack, shipped_folder, shipped_names
from ledgercli.vocabulary import Vocabulary
from ledgercli.why.related import related


def begin(name: str | None, step: Step) -> CaseFile:
    """Return a new case file without a case.

    Arguments:
        name: its path; None: it is only to be shown, and its paths are relative to the current folder.
        step: the step.

    Raises:
        LedgerCliError: a file that judged the step is not there, or does not load.

    """
    folder = Path(name).parent if name else Path()
    toolset = _there(step.rules.toolset.document.source.name, "toolset", step)
    packs = [_named(pack, step, folder) for pack in _outermost(step.rules.packs)]
    title = Path(name).name.removesuffix(".yaml").removesuffix(".yml").removesuffix(".cases") if name else "captured"
    head = {
        "cases": title or "captured",
        "packs": packs,
        "toolset": _relative(toolset, folder),
        "now": str(step.situation.now),
    }
    try:
        return _file(name, {**head, **_declaring(step, keys=False)})
    except InvalidDocumentError:  # rules may name what is inside of a value
        return _file(name, {**head, **_declaring(step, keys=True)})


def _file(name: str | None, head: Mapping[str, Any]) -> CaseFile:
    lines = [line for key, value in head.items() for line in entry_lines(key, value)]
    return CaseFile(name or "captured.cases.yaml", "".join(f"{line}\n" for line in [*lines, "tests: []"]), new=True)


# ---- names


def _declaring(step: Step, *, keys: bool) -> dict[str, Any]:
    """Return the state that declares what neither tools nor packs do, and rules name or a case may hold."""
    vocabulary = Vocabulary(step.rules.toolset, step.rules.packs)
    files = (step.rules.toolset.document, *(pack.document for pack in step.rules.packs))
    words = {word for document in files for word in re.findall(r"\w+", document.source.text)}
    tree = plain(step.situation.state.tree)
    words |= {path[2] for path, _ in related(step.situation.proposal.args, tree["facts"])}
    began = step.books[1]["state"]
    state: dict[str, Any] = {}
    for part in ("facts", "constraints", "flags"):
        own = {**(began.get(part) or {}), **tree[part]}
        missing = own.keys() & words - vocabulary.names(part)
        if missing:
            state[part] = {name: _empty(value, keys=keys) for name, value in own.items() if name in missing}
    return {"state": state} if state else {}


def _empty(value: Any, *, keys: bool) -> Any:
    """Return a value of the same type that tells nothing."""
    if isinstance(value, Mapping):
        return {key: _empty(item, keys=keys) for key, item in value.items()} if keys else {}
    if value is None:
        return None
    return [] if isinstance(value, list) else type(value)()


# ---- files


def _outermost(packs: Sequence[Pack]) -> list[Pack]:
    """Return the packs that no other of them includes."""
    named = [(name, folder_of(pack.document.source.name)) for pack in packs for name in pack.file.include]
    files = {os.path.realpath(located(name, folder)) for name, folder in named}
    names = {name for name, _ in named}
    return [
        pack
        for pack in packs
        if f"{SHIPPED}{pack.name}" not in names and os.path.realpath(pack.document.source.name) not in files
    ]


def called(pack: Pack) -> str:
    """Return a pack as a command names it: one that comes with the package by that name, if it stands elsewhere."""
    file = pack.document.source.name
    shipped = shipped_folder() / f"{pack.name}.yaml"
    is_shipped = pack.name in shipped_names() and os.path.realpath(file) == os.path.realpath(shipped)
    return f"{SHIPPED}{pack.name}" if is_shipped and not _is_near(file) else file


def _named(pack: Pack, step: Step, folder: Path) -> str:
    """Return a pack as a case file names it; one of another installation is that of this one."""
    file = called(pack)
    if file.startswith(SHIPPED):
        return file
    is_here = any(path.is_file() for path in _places(file, step))
    if not is_here and pack.name in shipped_names() and Path(file).name == f"{pack.name}.yaml":
        return f"{SHIPPED}{pack.name}"
    return _relative(_there(file, f"pack {pack.name}", step), folder)


def _is_near(file: str) -> bool:
    """Whether a file is below the current folder as it is typed."""
    return not Path(file).is_absolute() and not file.startswith("..")


def _there(file: str, what: str, step: Step) -> str:
    """Return where a recorded file is: from here, or from a folder above the ledger."""
    for path in _places(file, step):
        if path.is_file():
            return str(path)
    raise UnreadableInputError(
        f"{step.address} was judged with the {what} in {file}, which is no file here",
        fix="run it where the run was made, or name a case file that has it: --to FILE",
    )


def _places(file: str, step: Step) -> Iterator[Path]:
    yield Path(file)
    if not Path(file).is_absolute():
        above = Path(os.path.abspath(step.path)).parents  # noqa: PTH100 - links stay as they are
        yield from (folder / file for folder in above)


def _relative(file: str, folder: Path) -> str:
    return os.path.relpath(file, folder)
