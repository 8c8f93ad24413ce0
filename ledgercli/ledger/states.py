"""The state of a ledger, followed through its diffs: whether each fits, and checkpoints and closes agree with it.

Invariants:
* One state is kept, and changed in place: memory is that of the state, however long the ledger.
* A diff leads to exactly the state, or to the error, that `paths.patch` leads to; a test holds the two to each other.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, Final

from ledgercli import paths
from ledgercli.ledger.checks import Problem, Record

_SHOWN: Final = 200  # characters of a path
_CUT_OFF: Final = ("interrupted", "error")  # a close may say so whatever the state says


class States:
    """Follows the state through the diffs. The `open` line's is changed in place, and takes in parts of others."""

    def __init__(self) -> None:
        self._state: Record | None = None  # None while it is not known
        self._recording = False

    def forget(self) -> None:
        """What comes may change a state that is not known."""
        self._state = None

    def see(self, record: Record, line: int) -> list[Problem]:
        """Take in one line."""
        kind, state = record["kind"], self._state
        if kind == "open":
            self._state = record["state"]
            self._recording = record["engine"]["kind"] == "recording"
        elif state is None:
            return []
        elif "state_diff" in record or "state_unset" in record:
            return _apply(state, record.get("state_diff", {}), record.get("state_unset", []), line)
        elif kind == "checkpoint":
            return _told(state, record["state"], line)
        elif kind == "close":
            return self._ended(state.get("status"), record["status"], line)
        return []

    def _ended(self, status: Any, said: str, line: int) -> list[Problem]:
        """What happened in a recording happened: it is completed, whatever a step of it would have ended."""
        if status in ("running", said) or said in _CUT_OFF or self._recording:
            return []
        return [Problem("close", f"the close says {said}, the state {status}", line)]


def _apply(state: Record, sets: Record, unsets: list[str], line: int) -> list[Problem]:
    """Change a state by a diff, path by path; one that does not fit changes nothing."""
    found = []
    for source in unsets:
        try:
            if not _drop(state, _path(source)):
                paths.patch(state, {}, [source])  # raises, and says why
        except paths.PathError as error:
            found.append(Problem("diff", f"state_unset: {error.message}", line))
    for source, value in sets.items():
        try:
            if not _put(state, _path(source), value):
                paths.patch(state, {source: value})  # raises, and says why
        except paths.PathError as error:
            found.append(Problem("diff", f"state_diff: {error.message}", line))
    if len(sets) + len(unsets) > 1:
        found += _overlaps([*sets, *unsets], line)
    return found


def _path(source: str) -> paths.Path:
    """Do as `paths.parse`, quickly where a key that every step has another of stands behind a path that they share."""
    shared, _, key = source.partition('["')
    key, end = key[:-2], key[-2:]
    if not shared or end != '"]' or '"' in key or "\\" in key or not key.isprintable() or key.isidentifier():
        return paths.parse(source)
    try:
        return (*paths.parse(shared), key)
    except paths.PathError:
        return paths.parse(source)  # raises too, and names all of it


def _put(state: Any, path: paths.Path, value: Any) -> bool:
    """Do as `paths.put` with `make=False`, in place; whether the path fits."""
    for key in path[:-1]:
        state = state.get(key)
        if type(state) is not dict:
            return False
    if type(path[-1]) is not str:
        return False
    state[path[-1]] = value
    return True


def _drop(state: Any, path: paths.Path) -> bool:
    """Do as `paths.drop`, in place; whether the path fits."""
    for key in path[:-1]:
        state = state.get(key)
        if type(state) is not dict:
            return False
    return state.pop(path[-1], paths.ABSENT) is not paths.ABSENT


def _told(state: Record, told: Record, line: int) -> list[Problem]:
    """Whether a checkpoint's state is the one that the lines before make."""
    if paths.same(state, told):
        return []
    sets, unsets = paths.diff(state, told)
    where = min([*sets, *unsets])[:_SHOWN]
    return [Problem("checkpoint", f"{where} in the checkpoint is not what the lines before make", line)]


def _overlaps(sources: list[str], line: int) -> Iterator[Problem]:
    """A path that begins another in one diff would make the result depend on their order."""
    try:
        written = [_path(source) for source in sources]
    except paths.PathError:  # already reported
        return
    known = set(written)
    if len(known) == len(written) and not any(path[:end] in known for path in written for end in range(1, len(path))):
        return
    for one, other in pairwise(sorted(tuple(map(str, path)) for path in written)):
        if other[: len(one)] == one:
            yield Problem("diff", f"{paths.text(one)} and {paths.text(other)} in one diff: one begins the other", line)
