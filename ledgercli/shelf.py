"""Rulebooks made from what ledgers carry, so that a run can be judged again years later with nothing else.

Invariants:
* The files in a ledger's first line, and in the lines that resumed it, are all that is read; where a ledger holds only
  digests (`--reference`), the files must be where they were, byte for byte.
* Every set of files is compiled once, however many ledgers carry it. The values that such a rulebook was given, where
  there is no scenario, are those of the first of these ledgers: whoever wants a first state gives all its parts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from ledgercli import sources
from ledgercli.errors import LedgerCliError, LedgerFormatError, UnreadableInputError
from ledgercli.loading import Loader, folder_of, refuse
from ledgercli.names import value_type
from ledgercli.policy import Pack
from ledgercli.rulebook import Rulebook
from ledgercli.scenario import Scenario, ScenarioFile
from ledgercli.sources import Source
from ledgercli.toolset import Toolset
from ledgercli.vocabulary import Vocabulary

_GIVEN = ("task", "facts", "constraints", "flags", "goals")  # the parts of a first state that a caller gives
ELSEWHERE = "no-file"  # the code that tools run need not be here to judge
_MOST = 64  # rulebooks that are kept; one takes about a megabyte

Record = Mapping[str, Any]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Changed:
    """A rulebook with other packs than a ledger carries.

    Arguments:
        rules: the rulebook.
        replaced: names of the packs whose place another took.
        added: names of the packs that were added.

    """

    rules: Rulebook
    replaced: Sequence[str]
    added: Sequence[str]


class Shelf:
    """The rulebooks of many ledgers.

    Arguments:
        packs: files of packs that take the place of those of the same name, or are added.
        only_packs: whether nothing else judges.

    """

    def __init__(self, packs: Sequence[str] = (), *, only_packs: bool = False) -> None:
        self._names = packs
        self._only = only_packs
        self._given = {name: sources.read(name) for name in packs if not name.startswith("ledgercli:")}
        self._recorded: dict[object, Rulebook | LedgerCliError] = {}
        self._changed: dict[object, Changed | LedgerCliError] = {}

    def recorded(self, opening: Record, later: Sequence[Record] = ()) -> Rulebook:
        """Return what judged a run.

        Arguments:
            opening: the `open` line of its ledger.
            later: files that took the place of those of the same name when the run was resumed.

        Raises:
            InvalidDocumentError: a file does not load (any more).
            LedgerCliError: a file is not there, or is not the one that took part.

        """
        return _kept(self._recorded, _key(opening, later), lambda: self._of_then(opening, later))

    def changed(self, opening: Record, later: Sequence[Record] = ()) -> Changed:
        """Return what would have judged it with the packs of this shelf; raises as `recorded` does."""
        return _kept(self._changed, _key(opening, later), lambda: self._of_now(opening, later))

    @staticmethod
    def _of_then(opening: Record, later: Sequence[Record]) -> Rulebook:
        loader, scenario, toolset, packs = _files(opening, later)
        book = _book(opening, scenario, toolset, packs, shadow=opening.get("mode") == "shadow")
        refuse(one for one in (*loader.problems, *book.problems()) if one.code != ELSEWHERE)
        return book

    def _of_now(self, opening: Record, later: Sequence[Record]) -> Changed:
        loader, scenario, toolset, packs = _files(opening, later)
        now = Loader(sources=loader.sources | self._given)  # anew: a pack may stand where the recorded one stood
        taken, replaced, added = now.replaced([] if self._only else packs, self._names)
        book = _book(opening, scenario, toolset, taken, shadow=False)
        refuse(one for one in (*now.problems, *book.problems()) if one.code != ELSEWHERE)
        return Changed(book, replaced, added)


def _kept(books: dict[object, T | LedgerCliError], key: object, make: Callable[[], T]) -> T:
    """Return what is kept under a key, made if it is not; what does not load is kept too, as the error."""
    if key not in books:
        if len(books) >= _MOST:
            del books[next(iter(books))]
        try:
            books[key] = make()
        except LedgerCliError as error:
            books[key] = error
    found = books[key]
    if isinstance(found, LedgerCliError):
        raise found
    return found


def _key(opening: Record, later: Sequence[Record]) -> object:
    """What a rulebook depends on: the files; where there is no scenario, also what is known from the start."""
    files = tuple((file["kind"], file["name"], file["path"], file["digest"]) for file in merged(opening, later))
    alone = all(file["kind"] != "scenario" for file in opening["files"])
    return files, opening.get("mode"), _known(opening["state"]) if alone else None


def _known(state: Record) -> object:
    """What a vocabulary takes from values: names, types, which are empty. Thousands of runs have these in common."""
    parts = (state.get(part) or {} for part in ("facts", "constraints", "flags"))
    return tuple(tuple((name, bool(value), repr(value_type(value))) for name, value in part.items()) for part in parts)


def merged(opening: Record, later: Iterable[Record]) -> list[Record]:
    """Return the files that are in force, in order, once those of later lines have taken their places."""
    files: dict[tuple[str, str], Record] = {}
    for file in [*opening["files"], *later]:
        name = file["name"] if file["kind"] == "pack" else ""  # there is one scenario and one toolset
        files[file["kind"], name] = file
    return list(files.values())


def _files(opening: Record, later: Sequence[Record]) -> tuple[Loader, Scenario | None, Toolset, list[Pack]]:
    """Load what took part, without following what the files themselves name."""
    files = merged(opening, later)
    loader = Loader(sources={file["path"]: _source(file) for file in files})
    toolset: Toolset | None = None
    packs: list[Pack] = []
    read = None
    for file in files:
        path = file["path"]
        if file["kind"] == "toolset":
            toolset = loader.toolset(path)
        elif file["kind"] == "scenario":
            read = loader.read(path, "scenario", ScenarioFile)
        elif (pack := loader.pack(path)) is not None:
            packs.append(pack)
    refuse(loader.problems)
    if toolset is None:
        raise LedgerFormatError("the ledger carries no toolset")
    folder = Path() if read is None else folder_of(read[1].source.name)
    scenario = None if read is None else Scenario(*read, folder, toolset, packs)
    named = {
        "toolset": [toolset.name],
        "scenario": [scenario.name] if scenario else [],
        "pack": [p.name for p in packs],
    }
    for kind, names in named.items():
        said = [file["name"] for file in files if file["kind"] == kind]
        if said != names:
            raise LedgerFormatError(f"the ledger names the {kind} {' and '.join(said)}, its text {' and '.join(names)}")
    return loader, scenario, toolset, packs


def _source(file: Record) -> Source:
    path = file["path"]
    if file.get("text") is not None:
        source = Source.of(path, file["text"])
        if source.digest != file["digest"]:
            raise LedgerFormatError(f"the text of {file['kind']} {path} does not have the digest beside it")
        return source
    try:
        source = sources.read(path)
    except LedgerCliError as error:
        message = f"the ledger keeps only the digest of {path} (--reference), and {error.message}"
        raise UnreadableInputError(message) from None
    if source.digest != file["digest"]:
        message = f"{path} is not the file that the ledger was made with, of which it keeps only the digest"
        raise UnreadableInputError(message, fix=f"put the file with {file['digest']} there")
    return source


def _book(
    opening: Record, scenario: Scenario | None, toolset: Toolset, packs: Sequence[Pack], *, shadow: bool
) -> Rulebook:
    if scenario is not None:
        return Rulebook(toolset, packs, scenario=scenario, shadow=shadow)
    given = {part: opening["state"].get(part) for part in _GIVEN if opening["state"].get(part)}
    records = Vocabulary(toolset, packs).records  # they are `{}` from the start, which says nothing of their type
    given["facts"] = {name: value for name, value in given.get("facts", {}).items() if value or name not in records}
    return Rulebook(toolset, packs, initial=given, shadow=shadow)
