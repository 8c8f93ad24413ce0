"""Why a verdict is what it is, and what would have made it another.

Invariants:
* The verdict of a step is that of its line; it is judged again only by packs that somebody puts in, and to find what
  would have let the call pass.
* What a rule is said to have read is read anew from the values of then. Where that comes to something else than the
  line says, the account says so.
* Nothing is written. What would have let a call pass is proved by the enforcer (`smallest`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ledgercli import cel, ledger
from ledgercli.addresses import no_such_step
from ledgercli.books import Books
from ledgercli.enforcer import UNKNOWN_TOOL, Enforcer
from ledgercli.errors import InvalidDocumentError, LedgerCliError, LedgerFormatError
from ledgercli.history import EVERYTHING
from ledgercli.past import Follower
from ledgercli.records import Finding, Proposal, Verdict
from ledgercli.redaction import holds_mask
from ledgercli.rulebook import Rulebook
from ledgercli.shelf import Changed, Shelf
from ledgercli.state import State
from ledgercli.why.accounts import Account, Argument, Ruling, Seen, Way
from ledgercli.why.answers import Because
from ledgercli.why.provenance import Earlier, parts
from ledgercli.why.related import unread
from ledgercli.why.rulewise import RuleSays, Rulewise
from ledgercli.why.situations import Question, Situation, read
from ledgercli.why.smallest import Found, Search

_BUILT_IN: Final = frozenset({"unknown_tool", "bad_arguments"})


@dataclass(frozen=True)
class Explained:
    """The account of a step of a ledger.

    Arguments:
        path: the ledger.
        account: the account.
        changed: the packs that were put in, if any were.

    """

    path: str
    account: Account
    changed: Changed | None = None


def at(path: str, step: int, packs: Shelf | None = None) -> Explained:
    """Explain the verdict at a step of a ledger.

    Arguments:
        path: the ledger.
        step: the step.
        packs: with packs that are put in, by which the step is judged anew.

    Raises:
        LedgerCliError: there is no such step, or it was never judged.
        LedgerFormatError: a line up to it is damaged, does not follow the one before or does not fit.
        InvalidDocumentError: what the ledger carries does not load, or the packs do not fit its tools.

    """
    follower = Follower(path, Shelf(), keeps=lambda _opening: EVERYTHING)
    for books, judged in _judged(path, follower):
        if judged["step"] == step:
            record, lines = _lines(path, judged, books.seq)
            changed = None if packs is None else packs.changed(follower.opening, follower.later)
            rules = None if changed is None else changed.rules
            return Explained(path, explain(books, record, rules, lines=lines), changed)
    raise _never_judged(path, step, follower)


def _judged(path: str, follower: Follower) -> Iterator[tuple[Books, Mapping[str, Any]]]:
    """Yield what was judged; where it is what a ledger carries that does not load, the error names the ledger."""
    try:
        yield from follower.judged()
    except InvalidDocumentError as error:
        raise InvalidDocumentError(f"{path}: {error.message}", problems=error.problems, fix=error.fix) from error
    except LedgerFormatError as error:
        if error.message.startswith(path):
            raise
        raise LedgerFormatError(f"{path}: {error.message}", fix=error.fix) from error


def _lines(path: str, judged: Mapping[str, Any], before: int) -> tuple[Mapping[str, Any], list[Mapping[str, Any]]]:
    """Return a step's line (its intent, if that is all there is), and the lines that stood before it was judged."""
    record, lines = judged, list[Mapping[str, Any]]()
    for entry in ledger.read(Path(path)):
        if entry.seq <= before:
            lines.append(entry.record)
        elif entry.kind == "step" and entry.record["step"] == judged["step"]:
            record = entry.record
            break
    return record, lines


def _never_judged(path: str, step: int, follower: Follower) -> LedgerCliError:
    steps = follower.books.steps if follower.books else 0
    if 1 <= step <= steps:
        message = f"{path}@{step} is what a user said; it was not judged"
        return LedgerCliError(message, fix="name a step that is a tool call")
    return no_such_step(path, steps)


def explain(
    books: Books,
    record: Mapping[str, Any],
    rules: Rulebook | None = None,
    *,
    lines: Sequence[Mapping[str, Any]] = (),
) -> Account:
    """Explain the verdict on one proposal.

    Arguments:
        books: as it was judged in.
        record: the step's line, or its intent.
        rules: judges anew, in place of what judged then.
        lines: those of the ledger up to then, the first one included; without them nothing is traced to a step.

    Raises:
        LedgerFormatError: the line is no call that was judged.

    """
    if not record.get("verdict"):
        raise LedgerFormatError(f"step {record.get('step')} was not judged")
    return _Explaining(books, record, rules, lines).account()


class _Explaining:
    """The making of one account."""

    def __init__(
        self, books: Books, record: Mapping[str, Any], rules: Rulebook | None, lines: Sequence[Mapping[str, Any]]
    ) -> None:
        opening: Mapping[str, Any] = lines[0] if lines else {"state": {"task": "", "facts": {}, "constraints": {}}}
        self._rules = rules or books.rules
        self._record, self._step = record, int(record["step"])
        state = books.state if rules is None else _with_defaults(books, rules, opening)
        proposal = Proposal.from_json(record["action"])
        self._situation = Situation(proposal, state, books.history, cel.Timestamp.parse(record["now"]))
        self._recorded = Verdict.from_json(record["verdict"], self._step)
        enforcer = self._rules.enforcer
        self._verdict = self._recorded if rules is None else self._situation.judged(enforcer, step=self._step)
        self._anew = rules is not None
        self._earlier = Earlier(opening, lines[1:], books.rules.toolset)
        self._because = Because(self._earlier)

    def account(self) -> Account:
        """Return it."""
        proposal, verdict = self._situation.proposal, self._verdict
        plan = self._rules.enforcer.plan(proposal.tool)
        built_in = [one for one in (*verdict.failed, *verdict.shadowed) if one.rule in _BUILT_IN]
        rulings, others = [Ruling(_failing(one), one) for one in built_in], list[RuleSays]()
        if plan is not None and not built_in:
            rulewise = Rulewise(self._rules, plan, self._situation)
            rulings, others = self._rulings(rulewise.each()), list(rulewise.others())
        facts = self._situation.state.tree["facts"]
        differing = [] if self._anew else _differing(rulings)
        return Account(
            self._step,
            proposal,
            verdict,
            self._recorded,
            rulings,
            others,
            list(self._arguments()),
            [Seen(*one) for one in unread(proposal.args, facts, verdict.reads)],
            self._way(),
            self._rules.packs,
            differing,
            masked=any(ruling.said.masked for ruling in rulings),
        )

    # ---- rules

    def _rulings(self, says: Iterable[RuleSays]) -> list[Ruling]:
        verdict = self._verdict
        found = {one.rule: one for one in (*verdict.failed, *verdict.warned, *verdict.overridden, *verdict.shadowed)}
        beaten = {one.rule for one in verdict.overridden}
        watched = {one.rule for one in verdict.shadowed}
        rulings = [
            Ruling(
                said,
                found.pop(said.name, None),
                [self._seen(label, value) for label, value in said.reads.items()],
                overridden=said.name in beaten,
                shadow=said.shadow or said.name in watched,
            )
            for said in says
        ]
        rest = [Ruling(_failing(one), one, shadow=name in watched) for name, one in found.items()]
        return [*rest, *rulings]

    def _seen(self, label: str, value: Any) -> Seen:
        one = read(label)
        if isinstance(one.at, Question):
            tool = self._rules.toolset.tools.get(self._situation.proposal.tool)
            proposal = self._situation.proposal
            args = tool.filled(proposal.args) if tool else proposal.args
            origin = self._situation.state.origin(one.path[1:]) if one.path[:1] == ("state",) else None
            note = self._because.says(one.at, value, {"tool": proposal.tool, "args": args}, origin)
            return Seen(one.at.text, value, note, asked=True)
        if one.path[:1] != ("state",) or (one.kind == "has" and value is False):
            return Seen(label, value)
        return Seen(label, value, self._origin(one.path[1:]))

    def _origin(self, path: tuple[Any, ...]) -> str:
        return self._earlier.by(self._situation.state.origin(path)) or ""

    # ---- arguments

    def _arguments(self) -> Iterable[Argument]:
        for name, value in self._situation.proposal.args.items():
            leaves = [Argument(part, leaf, self._earlier.first(leaf)) for part, leaf in parts(name, value)]
            places = {leaf.place for leaf in leaves}
            yield from [Argument(name, value, leaves[0].place)] if len(places) == 1 else leaves

    # ---- another verdict

    def _way(self) -> Way | None:
        """Find what lets a refused call pass; one that was only watched, if it had been enforced."""
        verdict, enforcer = self._verdict, self._rules.enforcer
        if verdict.runs:
            if not verdict.shadowed:
                return None
            enforcer = Enforcer(self._rules.vocabulary, self._rules.packs)
            if self._situation.passes(enforcer):
                return None  # rules that are watched in any mode
        proposal = self._situation.proposal
        plan = enforcer.plan(proposal.tool)
        if plan is None:
            return Way(Found(why="nothing", names=(UNKNOWN_TOOL,)))
        if self._situation.passes(enforcer):
            return Way(Found(why="masked" if self._hidden() else "otherwise", names=tuple(self._hidden())))
        search = Search(enforcer, plan, self._rules.vocabulary.tools[proposal.tool])
        found = search.run(self._situation)
        shown = search.shown(found, self._situation)
        establishing = self._rules.vocabulary.establishing
        tools = {
            change.name: establishing(change.name)
            for way in shown
            for change in way
            if not isinstance(change.at, Question) and change.at[0] == "state"
        }
        return Way(found, shown, tools)

    def _hidden(self) -> list[str]:
        """What was read and is masked."""
        return [label for label, value in self._verdict.reads.items() if holds_mask(value)]


def _failing(finding: Finding) -> RuleSays:
    """Stand for a rule that no pack spells out: the built-in ones, and the default of an allow-list."""
    return RuleSays(finding.rule, "fail", finding.effect, "")


def _differing(rulings: Iterable[Ruling]) -> list[str]:
    """The rules of which the line says otherwise than the values of then."""
    return [
        one.name
        for one in rulings
        if one.said.check is not None and not one.said.masked and (one.said.says == "fail") != (one.finding is not None)
    ]


def _with_defaults(books: Books, rules: Rulebook, opening: Mapping[str, Any]) -> State:
    """The state with the constraints that other packs have as defaults, where neither scenario nor step set them."""
    own = rules.scenario.file.constraints if rules.scenario else {}
    then = {name: value for pack in books.rules.packs for name, value in pack.file.constraints.items()}
    began, state = opening["state"]["constraints"], books.state
    constraints = dict(state.tree["constraints"])
    for pack in rules.packs:
        for name, value in pack.file.constraints.items():
            free = name not in own and began.get(name) == then.get(name)
            if free and state.origin(("constraints", name)) is None:
                constraints[name] = value
    return State({**state.tree, "constraints": constraints}, state.origins)
