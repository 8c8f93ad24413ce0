"""A run whose ledger is there already: taken up again as it was left, and what may change when it goes on.

Invariants:
* Nothing is judged again and nothing is written here: whoever goes on writes one `resume` line, which says all that
  changed.
* The ledger is held from before it is read until the run is let go of, so that no two go on with it.
* What judges from then on is made of what the ledger carries and the changed files, as whoever reads it later makes it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from ledgercli import paths
from ledgercli.books import Books, Turn
from ledgercli.errors import LedgerCliError
from ledgercli.history import EVERYTHING, History, Keeps
from ledgercli.ledger import Entry, Ledger, Sync, read
from ledgercli.ledger.holding import Hold
from ledgercli.loading import Loader, refuse
from ledgercli.past import Follower, reached
from ledgercli.records import file_entry
from ledgercli.redaction import holds_mask, is_mask
from ledgercli.rulebook import Rulebook
from ledgercli.shelf import Shelf, merged
from ledgercli.state import Origin, State, current_goal
from ledgercli.toolset import ConfirmRun, UserRun

_GIVEN = ("facts", "constraints", "flags")  # the parts of a state in which a mask would be judged by
_MOST = 3  # paths that a message names
File = Mapping[str, str]


@dataclass(slots=True)
class Reopened:
    """A run that can go on.

    Arguments:
        path: its ledger.
        hold: keeps others from it.
        opening: the ledger's first line.
        later: the files that changed in earlier resumptions.
        books: what the run has come to.
        last: the ledger's last line.
        rules: what judges from here on.
        files: the files of it that are others than before, as lines hold them.
        sets: what else changes in the state: path → value.
        replaced: names of packs whose place another takes.
        added: names of packs that are added.
        engine: who proposes from here on, if that is another than before.

    """

    path: Path
    hold: Hold
    opening: Mapping[str, Any]
    later: Sequence[Mapping[str, Any]]
    books: Books
    last: Entry
    rules: Rulebook
    files: list[File] = field(default_factory=list)
    sets: dict[str, Any] = field(default_factory=dict)
    replaced: Sequence[str] = ()
    added: Sequence[str] = ()
    engine: Mapping[str, Any] | None = None

    @property
    def end(self) -> int:
        """Where its last whole line ends, in bytes."""
        return self.last.offset + self.last.length

    @property
    def changed(self) -> bool:
        """Whether anything is other than it was."""
        return bool(self.files or self.sets)

    @property
    def state(self) -> State:
        """The state that it goes on from."""
        state = self.books.state
        return state.after(self.sets) if self.sets else state

    def take(self, files: Sequence[File], *, all_packs: bool = False) -> None:
        """Judge by other files from here on.

        Arguments:
            files: as lines hold them; those that are the same as before change nothing.
            all_packs: whether these are all packs that there are now.

        Raises:
            LedgerCliError: a pack would be missing.
            InvalidDocumentError: they do not go together.

        """
        known = {_name(file): file for file in merged(self.opening, self.later)}
        if all_packs:
            gone = [name for kind, name in known if kind == "pack" and ("pack", name) not in set(map(_name, files))]
            if gone:
                raise LedgerCliError(
                    f"the pack {gone[0]} judged this run, and would be missing; a run that goes on keeps its packs",
                    fix=f"name it in the scenario, or begin a new run: ledger run SCENARIO --from {self.path}@N",
                )
        self.files = [file for file in files if _is_other(file, known.get(_name(file)))]
        if self.files:
            old = self.rules
            self.rules = Shelf().recorded(self.opening, [*self.later, *self.files])
            self.sets = {**self.sets, **adapted(self.books.state.tree, old, self.rules)}

    def put(self, values: Mapping[str, Any]) -> None:
        """Change values of the state from here on: path → value.

        Raises:
            PathError: a path does not fit.
            LedgerCliError: it is no fact, constraint or flag, or a flag gets no truth value.

        """
        tree = self.state.tree
        for path, value in values.items():
            part, *rest = paths.parse(path)
            if part not in _GIVEN or not rest:
                raise LedgerCliError(f"{path} cannot be set; facts.x, constraints.x and flags.x can")
            if part == "flags" and not isinstance(value, bool):
                raise LedgerCliError(f"{path} is a flag: true or false, not {value!r}")
            tree = paths.put(tree, paths.parse(path), value)
        self.sets = dict(_fitting(self.books.state.tree, tree, [*self.sets, *values]))

    def refuse_masks(self) -> None:
        """Raise where a value that rules may read is a mask."""
        refuse_masks(self.path, self.state.tree)

    def turn(self, at: str) -> Turn:
        """The line that says that the run goes on, and what then changes."""
        return self.books.resumed(self.sets, at, self.rules, self.files, self.engine)

    def ledger(self, sync: Sync = "step") -> Ledger:
        """Open the ledger for appending; a torn end is moved away.

        Raises:
            LedgerCliError: somebody has written to it meanwhile.

        """
        return Ledger.open(self.path, sync=sync, behind=self.last.digest)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.hold.release()


def reopen(path: Path | str, *, widely: bool = False) -> Reopened:
    """Take up a run as it was left.

    Arguments:
        path: its ledger.
        widely: whether other rules may ask the history for more than those that the ledger carries.

    Raises:
        LedgerCliError: there is no such ledger, it is damaged, somebody else writes to it, or it does not load.

    """
    hold = Hold(path)
    try:
        follower = reached(path, Shelf(), keeps=lambda opening: _keeps(opening, widely=widely))
        return _reopened(Path(path), hold, follower)
    except BaseException:
        hold.release()
        raise


def _keeps(opening: Mapping[str, Any], *, widely: bool) -> Keeps | None:
    """A program may ask the history for anything; else the rules say what they will."""
    return EVERYTHING if widely or opening["engine"]["kind"] == "guard" else None


def _reopened(path: Path, hold: Hold, follower: Follower) -> Reopened:
    books = follower.books
    assert books is not None, "a ledger that was read has books"
    assert follower.last is not None, "and a last line"
    if "from" in follower.opening and follower.last.line == 1:
        came = follower.opening["from"]
        raise LedgerCliError(
            f"{path} ends before it tells what went before this run: nothing was ever recorded",
            fix=f"remove it and begin again: --from {came['ledger']}@{came['step']}",
        )
    return Reopened(path, hold, follower.opening, follower.later, books, follower.last, books.rules)


def refuse_ended(again: Reopened) -> None:
    """Raise if a run has ended for good."""
    closed, status = again.books.closed, again.books.state.status
    if closed is None:
        return
    said = closed["status"]
    if said in ("completed", "halted") or (said == "failed" and status == "failed"):
        before = max(again.books.steps - 1, 0)
        raise LedgerCliError(
            f"{again.path} has ended: {said}; there is nothing to go on with",
            fix=f"ledger rollback {again.path}@{before} --reason TEXT, to go on from an earlier step",
        )


def refuse_masks(path: Path | str, tree: paths.Map) -> None:
    """Raise where a value that rules may read is a mask: nothing can be judged by it."""
    masked = [at for part in _GIVEN for at in _masks(tree[part], (part,))]
    if masked:
        named = ", ".join(f"state.{at}" for at in masked[:_MOST])
        more = f" and {len(masked) - _MOST} more" if len(masked) > _MOST else ""
        raise LedgerCliError(
            f"{path} holds a mask in place of {named}{more}, and nothing can be judged by that",
            fix=f"--set {masked[0]}=VALUE gives it again; it then stands in the ledger",
        )


def first_denial(again: Reopened) -> int | None:
    """The first step of a recording that was denied: what came after it might have gone another way."""
    if not again.books.recorded:
        return None
    denied = (entry.record["step"] for entry in read(again.path) if entry.record.get("outcome") == "denied")
    return next(denied, None)


def replies_used(again: Reopened) -> int:
    """How many replies a run has taken."""
    history = again.books.history
    asking = [name for name, tool in again.rules.toolset.tools.items() if isinstance(tool.run, (UserRun, ConfirmRun))]
    return sum(history.count_calls(name) - history.count_failures(name) for name in asking)


# ---- what changes with files


def packs_of(
    rules: Rulebook, names: Sequence[str | Path], *, reference: bool = False
) -> tuple[Sequence[File], Sequence[str], Sequence[str]]:
    """Return packs of the command line as lines hold files, with the names of those replaced and of those added."""
    loader = Loader()
    packs, replaced, added = loader.replaced(rules.packs, [str(name) for name in names])
    refuse(loader.problems)
    sources = {pack.name: pack.document.source for pack in packs}
    files = [
        file_entry("pack", name, sources[name].name, sources[name].text, reference=reference)
        for name in (*replaced, *added)
    ]
    return files, replaced, added


def adapted(tree: paths.Map, old: Rulebook, new: Rulebook) -> dict[str, Any]:
    """Return what other files change in a state: what they declare anew, and constraints that the old ones had set.

    Arguments:
        tree: the state.
        old: what judged up to here.
        new: what judges from here on.

    """
    before, after = old.initial_state().tree, new.initial_state().tree
    declared = [(part, name) for part in ("flags", "goals") for name in after[part] if name not in tree[part]]
    sets = {paths.text(path): after[path[0]][path[1]] for path in declared}
    sets |= {paths.text(("facts", name)): {} for name in new.vocabulary.records if name not in tree["facts"]}
    had = before["constraints"]
    for name, value in after["constraints"].items():
        untouched = name in had and paths.same(tree["constraints"].get(name, paths.ABSENT), had[name])
        if name not in tree["constraints"] or (untouched and not paths.same(had[name], value)):
            sets[paths.text(("constraints", name))] = value
    closed = {**after["goals"], **tree["goals"]}
    goal = current_goal(new.vocabulary.goals, closed)
    return sets if goal == tree["goal"] else {**sets, "goal": goal}


def _name(file: Mapping[str, Any]) -> tuple[str, str]:
    return str(file["kind"]), str(file["name"]) if file["kind"] == "pack" else ""


def _is_other(file: File, known: Mapping[str, Any] | None) -> bool:
    """Whether a file is another than before; for what it names, a file elsewhere is another."""
    if known is None or file["digest"] != known["digest"] or file["name"] != known["name"]:
        return True
    return file["kind"] != "pack" and file["path"] != known["path"]


def _fitting(old: paths.Map, new: paths.Map, changed: Sequence[str]) -> Iterator[tuple[str, Any]]:
    """Yield the changes as a diff has them: no path lies in another, and what lies in a new map is set with it."""
    wanted: dict[paths.Path, None] = {}
    for text in changed:
        path = paths.parse(text)
        length = 1
        while length < len(path) and paths.get(old, path[:length]) is not paths.ABSENT:
            length += 1
        wanted[path[:length]] = None
    for path in wanted:
        if not any(path[:length] in wanted for length in range(1, len(path))):
            yield paths.text(path), paths.get(new, path)


def _masks(value: Any, at: paths.Path) -> Iterator[str]:
    """Yield the path of each value that is a mask, or a text or a key that quotes one."""
    if isinstance(value, Mapping) and not is_mask(value):
        for key, item in value.items():
            if holds_mask(str(key)):
                yield paths.text((*at, key))
            else:
                yield from _masks(item, (*at, key))
    elif holds_mask(value):
        yield paths.text(at)


# ---- a new run that goes on from a step of another


def inherited(books: Books) -> tuple[State, History]:
    """Return the state and the history that a new run begins with: steps count anew, what was before counts as 0."""
    said = books.history.to_json()
    for tally in said["tools"].values():
        if tally["last_step"] is not None:
            tally["last_step"] -= books.steps
    said["denials_in_a_row"] = 0
    state = books.state
    origins: paths.Map = {}
    for path, origin in state.origins.items():
        if state.origin(paths.parse(path)) == origin:  # who was overtaken would otherwise seem as late as who did it
            origins = paths.put(origins, (path,), Origin(origin.tool, origin.args, 0))
    return State({**state.tree, "step": 0}, origins), History.from_json(said, keeps=books.history.keeps)
