"""Files that name one another: scenario → toolset and packs → included packs.

Invariants:
* A file is read once; a pack that is reached twice is judged once.
* All problems of all files are collected; a file that cannot be read is a problem where it is named.
* Nothing is compiled and no tool's code is imported.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from ledgercli import cel, sources
from ledgercli.documents import Document, Kind, Model, Place, parse, validate
from ledgercli.errors import InvalidDocumentError, LedgerCliError, UnreadableInputError
from ledgercli.policy import SHIPPED, Pack, PackFile, shipped_folder, shipped_names
from ledgercli.scenario import Scenario, ScenarioFile
from ledgercli.sources import STDIN, Problem, Source
from ledgercli.toolset import Toolset, ToolsetFile

YAML_KINDS = ("scenario", "pack", "toolset", "cases")
M = TypeVar("M", bound=Model)
T = TypeVar("T")


def refuse(problems: Iterable[Problem]) -> None:
    """Raise if there is an error among the problems.

    Raises:
        InvalidDocumentError: with all problems, in order.

    """
    ordered = tuple(sorted(set(problems)))
    errors = [problem for problem in ordered if problem.severity == "error"]
    if errors:
        files = list(dict.fromkeys(problem.file for problem in errors))
        count = f"{len(errors)} error{'s' if len(errors) > 1 else ''}"
        raise InvalidDocumentError(f"{count} in {', '.join(files)}", problems=ordered)


@dataclass(slots=True)
class Loader:
    """Reads files and those that they name.

    Arguments:
        problems: takes every problem.
        sources: contents that stand for files, by their shown name (a ledger carries them).

    """

    problems: list[Problem] = field(default_factory=list)
    sources: dict[str, Source] = field(default_factory=dict)
    _documents: dict[tuple[str, Kind], tuple[Model, Document] | None] = field(default_factory=dict)

    def again(self) -> Loader:
        """Return a loader that knows what has loaded without an error, and tells anew what is wrong with the rest."""
        ill = {problem.file for problem in self.problems if problem.severity == "error"}
        kept: dict[tuple[str, Kind], tuple[Model, Document] | None] = {
            key: usable
            for key, usable in self._documents.items()
            if usable is not None and usable[1].source.name not in ill
        }
        return Loader(sources=self.sources, _documents=kept)

    # ---- one file

    def read(self, name: str, kind: Kind, model: type[M]) -> tuple[M, Document] | None:
        """Read a file of one kind; None where nothing of it can be used.

        Raises:
            UnreadableInputError: it cannot be read, or is of another kind.
            InvalidDocumentError: its first key is misspelt.

        """
        if (name, kind) not in self._documents:
            source = self.sources.get(name) or sources.read(name)
            found = sources.kind_of(source)
            if found is None:
                refuse(misspelt_kind(source))
            if found != kind:
                what = f"is a {found}" if found else f"does not begin with `{kind}:`"
                raise UnreadableInputError(f"{source.name} {what}; a {kind} was asked for")
            validated = validate(parse(source), model)
            self.problems.extend(validated.problems)
            usable = None if validated.model is None else (validated.model, validated.document)
            self._documents[name, kind] = usable
        return self._documents[name, kind]  # type: ignore[return-value]  # a kind is read as one model only

    def toolset(self, name: str) -> Toolset | None:
        """Read a toolset."""
        read = self.read(name, "toolset", ToolsetFile)
        return None if read is None else Toolset(*read, folder_of(name))

    def pack(self, name: str) -> Pack | None:
        """Read a pack without those that it includes; `ledgercli:NAME` is one that comes with the package."""
        read = self.read(name, "pack", PackFile)
        return None if read is None else Pack(*read)

    # ---- files that are named

    def named(self, document: Document, place: Place, name: str, read: Callable[[str], T], folder: Path) -> T | None:
        """Read a file that a place of another names; what goes wrong is a problem there."""
        try:
            return read(located(name, folder))
        except InvalidDocumentError as error:
            self.problems.extend(problem for problem in error.problems if isinstance(problem, Problem))
        except LedgerCliError as error:
            self.problems.append(document.problem(place, "unreadable-file", error.message))
        return None

    def packs(self, document: Document, place: Place, names: Sequence[str], folder: Path) -> list[Pack]:
        """Read packs and those that they include, each once, an included one before the one that includes it."""
        packs: dict[str, Pack] = {}
        for number, name in enumerate(names):
            pack = self.named(document, (*place, number), name, self.pack, folder)
            if pack is not None:
                self._take(document, (*place, number), pack, packs)
        return list(packs.values())

    def given(self, packs: Iterable[str | Path | Pack]) -> list[Pack]:
        """Read packs that no file names, and those that they include.

        Raises:
            LedgerCliError: one of them cannot be read.

        """
        taken: dict[str, Pack] = {}
        for one in packs:
            pack = one if isinstance(one, Pack) else self.pack(located(str(one), Path()))
            if pack is not None:
                self._take(pack.document, ("pack",), pack, taken)
        return list(taken.values())

    def _take(
        self, document: Document, place: Place, pack: Pack, packs: dict[str, Pack], above: tuple[str, ...] = ()
    ) -> None:
        """Take in a pack that a place of a file names, behind those that it includes."""
        file = pack.document.source.name
        if file in above:
            cycle = " -> ".join([*above[above.index(file) :], file])
            self.problems.append(document.problem(place, "cyclic-include", f"these packs include each other: {cycle}"))
            return
        known = packs.get(pack.name)
        if known is not None:
            if known.digest != pack.digest:
                message = f"two packs are named {pack.name}: {known.document.source.name} and {file}"
                self.problems.append(document.problem(place, "duplicate-pack", message))
            return
        for number, name in enumerate(pack.file.include):
            inside: Place = ("include", number)
            included = self.named(pack.document, inside, name, self.pack, folder_of(file))
            if included is not None:
                self._take(pack.document, inside, included, packs, (*above, file))
        packs[pack.name] = pack
        self._defaults(pack, packs)

    def _defaults(self, pack: Pack, packs: dict[str, Pack]) -> None:
        """Two packs may not give one constraint two defaults."""
        for other in packs.values():
            for name in pack.file.constraints if other is not pack else ():
                if name in other.file.constraints:
                    message = f"the pack {other.name} has a default for the constraint {name} too"
                    place = ("constraints", name)
                    self.problems.append(pack.document.problem(place, "duplicate-default", message, key=True))

    # ---- a scenario

    def scenario(self, name: str, packs: Sequence[str] = ()) -> Scenario | None:
        """Read a scenario with all that it names.

        Arguments:
            name: its file; `-` is standard input, whose paths are relative to the current folder.
            packs: files that take the place of packs of the same name, or are added.

        Raises:
            LedgerCliError: the scenario itself or one of `packs` cannot be read.

        """
        read = self.read(name, "scenario", ScenarioFile)
        if read is None:
            return None
        file, document = read
        folder = folder_of(name)
        toolset = self.named(document, ("toolset",), file.toolset, self.toolset, folder)
        loaded = self.packs(document, ("packs",), file.packs, folder)
        changed = self.replaced(loaded, packs)
        if toolset is None:
            return None
        return Scenario(file, document, folder, toolset, *changed)

    def replaced(self, packs: Sequence[Pack], names: Sequence[str]) -> tuple[list[Pack], list[str], list[str]]:
        """Put the packs of the command line in the place of those of the same name, or add them.

        Returns:
            The packs, the names of those that were replaced, the names of those that were added.

        Raises:
            LedgerCliError: one cannot be read, or two of them have one name.

        """
        result = {pack.name: pack for pack in packs}
        replaced: list[str] = []
        added: list[str] = []
        for name in names:
            for one in self.given([name]):
                if one.name in result and result[one.name].digest == one.digest:
                    continue
                if one.name in (*replaced, *added):
                    files = f"{result[one.name].document.source.name} and {one.document.source.name}"
                    raise LedgerCliError(f"two packs are named {one.name}: {files}")
                (replaced if one.name in result else added).append(one.name)
                result[one.name] = one
        for name in (*replaced, *added):
            self._defaults(result[name], result)
        return list(result.values()), replaced, added


def misspelt_kind(source: Source) -> Iterator[Problem]:
    """Yield a problem where a file's first key is nearly one of those that say what a file is."""
    first = sources.first_key(source.text)
    near = cel.nearest(first[0], YAML_KINDS) if first and first[0] not in YAML_KINDS else ()
    if first and near:
        word, line, column = first
        notes = (f"did you mean {' or '.join(near)}?",)
        shown_line = source.text.removeprefix("\ufeff").split("\n")[line - 1].rstrip("\r")
        yield Problem(
            "unknown-key",
            f"no file begins with the key {word}",
            source.name,
            line,
            column,
            length=len(word),
            notes=notes,
            source_line=shown_line if len(shown_line) <= sources.MAX_LINE else None,
        )


def located(name: str, folder: Path) -> str:
    """Return the path of a named file, as it is shown: relative to the current folder where it is below it."""
    if name == "-":
        return name
    if name.startswith(SHIPPED):
        short = name.removeprefix(SHIPPED)
        if short not in shipped_names():
            near = cel.nearest(short, shipped_names()) or shipped_names()
            raise UnreadableInputError(f"no pack {name} comes with the package; there is {', '.join(near)}")
        return shown(shipped_folder() / f"{short}.yaml")
    return shown(folder / name)


def shown(path: Path) -> str:
    """Return a path as reports show it."""
    text = os.path.normpath(path)
    return os.path.relpath(text) if Path(text).is_absolute() and Path(text).is_relative_to(Path.cwd()) else text


def folder_of(name: str) -> Path:
    """Return the folder that the paths in a file are relative to."""
    return Path() if name in ("-", STDIN) else Path(name).parent


# ---- for callers who want one thing, or an error


def load_scenario(name: str, packs: Sequence[str] = ()) -> Scenario:
    """Read a scenario with all that it names.

    Raises:
        InvalidDocumentError: something does not load; all problems together.

    """
    loader = Loader()
    scenario = loader.scenario(name, packs)
    refuse(loader.problems)
    assert scenario is not None, "a file without problems has a model"
    return scenario


def load_toolset(name: str | Path) -> Toolset:
    """Read a toolset.

    Raises:
        InvalidDocumentError: it does not load.

    """
    loader = Loader()
    toolset = loader.toolset(str(name))
    refuse(loader.problems)
    assert toolset is not None, "a file without problems has a model"
    return toolset


def load_packs(names: Sequence[str | Path | Pack]) -> list[Pack]:
    """Read packs and those that they include, each once.

    Raises:
        InvalidDocumentError: something does not load; all problems together.

    """
    loader = Loader()
    packs = loader.given(names)
    refuse(loader.problems)
    return packs


def load_pack(name: str | Path) -> Pack:
    """Read one pack; those that it includes are read by whoever judges with it.

    Raises:
        InvalidDocumentError: it does not load.

    """
    loader = Loader()
    pack = loader.pack(located(str(name), Path()))
    refuse(loader.problems)
    assert pack is not None, "a file without problems has a model"
    return pack
