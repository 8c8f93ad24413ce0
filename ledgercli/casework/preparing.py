"""Cases made ready to be judged: rows put in, states laid over one another, recorded steps looked up.

Invariants:
* What cannot be made ready is an `Unready` with its reason, never left out.
* A proposal names a tool and arguments that exist, also where a row fills them in.
* `history` feeds the functions over past steps and the number of steps taken; it sets no fact.
* A state is never changed in place, so that cases without a word of their own share one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from ledgercli import cel, paths
from ledgercli.cases import CaseModel, ExpectModel, StateModel
from ledgercli.casework.groups import Group, moment
from ledgercli.casework.recorded import Recordings
from ledgercli.decision import template
from ledgercli.documents import Place
from ledgercli.errors import LedgerCliError
from ledgercli.functions import Moment
from ledgercli.history import History
from ledgercli.intake import present
from ledgercli.policy import EFFECTS
from ledgercli.policytests import merge
from ledgercli.records import Proposal, Result
from ledgercli.state import FROM_TASK, State
from ledgercli.toolset import USER
from ledgercli.why.situations import Situation

_PARTS: Final = ("facts", "constraints", "flags", "goals")
_NO_ROW: Final[Mapping[str, Any]] = {}


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a verdict must be; None: anything.

    Arguments:
        effect: the effect.
        rules: exactly these failed or warned, as a verdict names them.
        include: these are among them.
        error: the message.
        hint: the hint.
        halts: whether the run ends here.

    """

    effect: str | None = None
    rules: frozenset[str] | None = None
    include: frozenset[str] = frozenset()
    error: str | None = None
    hint: str | None = None
    halts: bool | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Ready:
    """A case that can be judged.

    Arguments:
        name: what it is called, its row put in.
        place: where it stands in its file.
        row: which row of `for:` it is; None if it has none.
        situation: what is judged.
        wanted: what must come of it.
        masked: whether it comes from a ledger, so that values may be masks.

    """

    name: str
    place: Place
    row: int | None
    situation: Situation
    wanted: Wanted
    masked: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Unready:
    """A case that is not judged.

    Arguments:
        name: what it is called.
        place: where it stands.
        row: which row it is.
        why: why it is not.
        skipped: whether that is what its file says.
        inside: the place that is to blame.

    """

    name: str
    place: Place
    row: int | None
    why: str
    skipped: bool = False
    inside: Place = ()


_PLAIN: Final[Mapping[object, Wanted]] = {effect: Wanted(effect) for effect in EFFECTS}


class _UnreadyError(Exception):
    """A part of a case that cannot be made ready."""

    def __init__(self, why: str, place: Place) -> None:
        super().__init__(why)
        self.why, self.place = why, place


class Preparer:
    """Makes the cases of one group ready.

    Arguments:
        group: the group.
        now: the time where neither file nor ledger says one; the clock's if left out. Once made: the time of every
            case that is not recorded.

    """

    def __init__(self, group: Group, now: cel.Timestamp | None = None) -> None:
        self._group, self._rules = group, group.rules
        self.now = moment(group.now) or now or present()
        self._recordings = Recordings(group.folder, group.rules, group.cases)
        self.base = self._initial(group.state)
        self._none = History(str(self.base.tree["task"]))

    def all(self) -> Iterator[Ready | Unready]:
        """Yield the cases in their order, one for each row."""
        for place, case in self._group.cases:
            yield from self.each(place, case)

    def each(self, place: Place, case: CaseModel) -> Iterator[Ready | Unready]:
        """Yield a case, one for each row that it has."""
        making = _Making(self._group, place, case)
        if case.skip is not None:
            rows = [None] if case.rows is None else range(len(case.rows))
            yield from (Unready(making.named(row), place, row, case.skip, skipped=True) for row in rows)
            return
        try:
            state, history, now, recorded = self._past(case, place)
        except _UnreadyError as error:
            yield Unready(making.named(None), place, None, error.why, inside=error.place)
            return
        for row in [None] if case.rows is None else range(len(case.rows)):
            roots = {"state": state.tree, "now": now, "row": _NO_ROW if row is None else (case.rows or [])[row]}
            try:
                name, proposal, wanted = making.made(roots, Moment(history, state), recorded)
            except _UnreadyError as error:
                yield Unready(making.named(row), place, row, error.why, inside=error.place)
                continue
            situation = Situation(proposal, state, history, now)
            yield Ready(name, place, row, situation, wanted, masked=recorded is not None)

    # ---- what it is judged in

    def _past(self, case: CaseModel, place: Place) -> tuple[State, History, cel.Timestamp, Proposal | None]:
        if case.at is None:
            state, history, now, recorded = self.base, self._none, self.now, None
        else:
            try:
                found = self._recordings.before(case.at)
            except LedgerCliError as error:
                raise _UnreadyError(error.message, (*place, "at")) from None
            state, history, now, recorded = found.state, found.history, found.now, found.proposal
        if case.state.model_fields_set or case.unset:
            state = self._laid(state, case, place)
        if case.history:
            task = str(state.tree["task"])
            history = History(task) if case.at is None else history.copy()
            state = self._gone_through(case, history, state)
        elif state.tree["task"] != self.base.tree["task"] and case.at is None:
            history = History(str(state.tree["task"]))
        return state, history, now, recorded

    def _initial(self, given: StateModel) -> State:
        parts = given.model_dump(exclude_unset=True, exclude_none=True)
        return self._rules.initial_state(**parts)

    def _laid(self, state: State, case: CaseModel, place: Place) -> State:
        """Return a state under what a case says of its own, without what it says is not known."""
        tree, changed = dict(state.tree), []
        for part in _PARTS:
            if over := getattr(case.state, part):
                tree[part] = dict(tree[part])
                merge(tree[part], over)
                changed += [paths.text((part, name)) for name in over if part == "facts"]
        if case.state.task is not None:
            tree["task"] = case.state.task
        state = state.become(tree, changed, origin=FROM_TASK)
        for number, path in enumerate(case.unset):
            try:
                state = State(paths.patch(dict(state.tree), {}, [path]), state.origins)
            except paths.PathError:
                inside = (*place, "unset", number)
                raise _UnreadyError(f"{path} is not known anyway", inside) from None
        return state

    def _gone_through(self, case: CaseModel, history: History, state: State) -> State:
        step = state.step
        for one in case.history:
            step += 1
            if one.denied:
                history.denied(one.tool)
            elif one.tool == USER and USER not in self._rules.toolset.tools:
                history.said(one.data)
            else:
                self._rules.remember(history, Proposal(one.tool, one.args), Result(one.success, one.data), step)
        return state.become(state.tree, (), step=step)


class _Making:
    """What a case proposes and expects; texts with braces are compiled once for all rows."""

    def __init__(self, group: Group, place: Place, case: CaseModel) -> None:
        self._group, self._place, self._case = group, place, case
        self._made: dict[tuple[Any, ...], Any] = {}

    def named(self, row: int | None) -> str:
        """Return its name where it may not be possible to fill it in."""
        return self._case.name if row is None else f"{self._case.name} (row {row + 1})"

    def made(self, roots: Mapping[str, Any], at: Moment, recorded: Proposal | None) -> tuple[str, Proposal, Wanted]:
        """Return its name, its proposal and what is expected."""
        name = str(self._value(("name",), self._case.name, roots, at))
        return name, self._proposal(roots, at, recorded), self._wanted(roots, at)

    def _value(self, key: tuple[str | int, ...], value: Any, roots: Mapping[str, Any], at: Moment) -> Any:
        if not _has_braces(value):
            return value
        place: Place = (*self._place, *key)
        if key not in self._made:
            rows = self._case.rows
            env = self._group.rules.vocabulary.row_env(None if rows is None else cel.DYN)
            self._made[key] = template(self._group.rules.vocabulary, self._group.document, place, value, env)
        answer = self._made[key](roots, at)
        if not answer.known:
            why = f"{' and '.join(answer.missing)} is not known" if answer.missing else str(answer.error)
            raise _UnreadyError(f"{key[-1]} cannot be filled in: {why}", place)
        try:
            return cel.to_json(answer.value)
        except cel.EvalError as error:
            raise _UnreadyError(f"{key[-1]} cannot be filled in: {error}", place) from None

    def _proposal(self, roots: Mapping[str, Any], at: Moment, recorded: Proposal | None) -> Proposal:
        said = self._case.propose
        if said is None:
            assert recorded is not None, "a case without proposal and step is refused"
            return recorded
        tool, args = said.tool, said.args
        if _has_braces(tool) or _has_braces(args):
            tool = str(self._value(("propose", "tool"), tool, roots, at))
            args = {name: self._value(("propose", "args", name), value, roots, at) for name, value in args.items()}
        spec = self._group.rules.vocabulary.tools.get(tool)
        if spec is None:
            near = cel.nearest(tool, self._group.rules.vocabulary.tools)
            raise _UnreadyError(_unknown("tool", tool, near), (*self._place, "propose", "tool"))
        return Proposal(tool, args)

    def _wanted(self, roots: Mapping[str, Any], at: Moment) -> Wanted:
        if self._case.expect.__class__ is str and self._case.expect in _PLAIN:
            return _PLAIN[self._case.expect]
        said = self._case.expected
        short = not isinstance(self._case.expect, ExpectModel)
        values = {}
        for key in ("effect", "error", "hint"):
            value = getattr(said, key)
            where: tuple[str, ...] = ("expect",) if short else ("expect", key)
            values[key] = None if value is None else str(self._value(where, value, roots, at))
        effect = values["effect"]
        if effect is not None and effect not in EFFECTS:
            near = cel.nearest(effect, EFFECTS)
            raise _UnreadyError(_unknown("effect", effect, near), (*self._place, "expect"))
        names = self._group.names
        rules = None if said.rules is None else frozenset(names[rule] for rule in said.rules)
        include = frozenset(names[rule] for rule in said.rules_include or ())
        return Wanted(effect, rules, include, values["error"], values["hint"], said.halts)


def _has_braces(value: Any) -> bool:
    kind = value.__class__  # a file's values are of exactly these kinds; asking so is what costs least
    if kind is str:
        return "{" in value or "}" in value
    if kind is dict:
        return any(map(_has_braces, value.values()))
    return kind is list and any(map(_has_braces, value))


def _unknown(what: str, word: str, near: tuple[str, ...]) -> str:
    return f"no {what} {word}" + (f"; did you mean {' or '.join(near)}?" if near else "")
