"""The decision view of one run: what the next proposal has to know of all that happened, in bounded room.

Invariants:
* Pure and deterministic: lines in, text out. The same lines and state give the same view.
* Bounded: neither what is kept nor the view grows with the run, whatever its lines hold.
* Of the newest steps all is told, as far as a line has room; of older ones what they came to. Counts are whole.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ledgercli import paths
from ledgercli.records import Line
from ledgercli.summariser import facts, written
from ledgercli.summariser.folds import MOST, OTHERS, Counts, Fold, fold, merged, told
from ledgercli.summariser.seen import OUTCOMES, SAID, Refusal, Seen, named, seen
from ledgercli.summariser.texts import CHARACTERS, cut, inert, json_text, name, path_text, tokens

BUDGET: Final = 3_000  # tokens of a view
EVERY, LAST = 8, 3  # steps of a fold, and steps that are told in full
_FOLDS: Final = 6  # folds that stay apart
_WORDS: Final = 12  # messages of the user that are kept
_RECENT: Final = 2_048  # paths, and names, whose last step is known
_LOOSE: Final = 4  # long results that are kept though no fact holds them
_LEAST: Final = 80  # characters of a step that is told
_DEEPEST: Final = 5  # keys of such a path

#: Asks a model once: messages → what it says.
Asker = Callable[[Sequence[Mapping[str, str]]], str]

#: How many characters of a hundred each part of a view may take; the facts take what is left.
_SHARES: Final[Mapping[str, int]] = {"counts": 10, "denials": 7, "said": 14, "earlier": 16, "last": 23}


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which parts of a state a view holds.

    Arguments:
        facts: names of facts; None: all.
        constraints: names of constraints; None: all.
        flags: names of flags that are told even if they are false.
        levels: name of a fact → how many ids stand above each record in it.

    """

    facts: Collection[str] | None = None
    constraints: Collection[str] | None = None
    flags: Collection[str] = ()
    levels: Mapping[str, int] | None = None


ALL: Final = Wanted()


@dataclass(frozen=True, slots=True)
class View:
    """A decision view: lines by part.

    Arguments:
        state: facts and what else the state says.
        counts: calls by tool and outcome.
        denials: refused calls by rule.
        said: what the user said.
        earlier: what older steps came to.
        last: the newest steps.
        results: long results of older steps that no fact holds.

    """

    state: tuple[str, ...]
    counts: tuple[str, ...]
    denials: tuple[str, ...]
    said: tuple[str, ...]
    earlier: tuple[str, ...]
    last: tuple[str, ...]
    results: tuple[str, ...] = ()

    def parts(self) -> dict[str, str]:
        """Return name → text of each part."""
        return {part: "\n".join(getattr(self, part)) for part in self.__slots__}

    def text(self) -> str:
        """Return the whole view."""
        written = {**self.parts(), "state": "\n".join(("<state>", *self.state, "</state>"))}
        return "\n".join(f"{HEADS[part]}{text}" for part, text in written.items() if text)

    @property
    def tokens(self) -> int:
        """About how many tokens it has."""
        return tokens(self.text())


HEADS: Final[Mapping[str, str]] = {
    "state": "",
    "counts": "Calls so far:\n",
    "denials": "Refused so far, by rule:\n",
    "said": "What the user said:\n",
    "earlier": "Earlier steps:\n",
    "last": "Last steps:\n",
    "results": "Earlier results that no fact holds:\n",
}
_AROUND: Final = sum(map(len, HEADS.values())) + 40


class Summary:
    """What is kept of a run, from its lines.

    Arguments:
        name: what stands before `@STEP` where a value is pointed to: the ledger's path, or nothing.
        every: how many steps make a fold.
        last: how many of the newest steps are told in full.
        asking: tools whose results are what a user said.

    """

    def __init__(self, name: str = "", *, every: int = EVERY, last: int = LAST, asking: Collection[str] = ()) -> None:
        self._name, self._every, self._asking = name, every, asking
        self._task, self._inherits = "", False
        self._step = 0
        self._counts: Counts = {}
        self._denials: dict[str, tuple[int, int, str]] = {}
        self._folds: list[Fold] = []
        self._unfolded: list[Seen] = []
        self._last: deque[Seen] = deque(maxlen=last)
        self._said: deque[tuple[int, str]] = deque(maxlen=_WORDS)
        self._begun: OrderedDict[int, Seen] = OrderedDict()
        self._loose: deque[Seen] = deque(maxlen=_LOOSE)
        self._notes: deque[str] = deque(maxlen=2)
        self._set: OrderedDict[paths.Path, int] = OrderedDict()
        self._named: OrderedDict[str, int] = OrderedDict()
        self._due: tuple[Seen, ...] = ()  # the steps of the newest fold, until somebody has been asked about it

    # ---- lines

    def take(self, line: Line) -> None:
        """Take in the next line of the ledger."""
        kind = line["kind"]
        if kind == "open":
            self._task, self._inherits = line["state"]["task"], "from" in line
        elif kind == "intent":
            self._begin(line)
        elif kind == "step":
            self._take_step(line)
        elif kind == "rollback":
            self._note(f"the run went back to the state after step {line['to']:,}", line)
        elif kind == "approval":
            self._note(f"a person answered step {line['step']:,} with {line['answer']}", line)
        elif kind == "summary":
            self._replace(line)
        elif kind == "checkpoint" and self._inherits and line["history"] is not None:
            self._inherit(line["history"]["tools"])

    def _inherit(self, tools: Mapping[str, Mapping[str, Any]]) -> None:
        """Count the calls of the run that this one goes on from."""
        self._inherits = False
        for tool, tally in list(tools.items())[:MOST]:
            counts = {"ok": tally["successes"], "error": tally["failures"], "denied": tally["denied"]}
            counts["unknown"] = tally["calls"] - tally["successes"] - tally["failures"]
            self._counts[tool] = {outcome: number for outcome, number in counts.items() if number}
        self._notes.append("this run goes on from another one, whose calls are counted here")

    def _begin(self, line: Line) -> None:
        self._begun[line["step"]] = seen(line, self._at(line["step"]))
        while len(self._begun) > _FOLDS:
            self._begun.popitem(last=False)

    def _note(self, text: str, line: Line) -> None:
        reason = f": {cut(json_text(line['reason']), 200)}" if line.get("reason") else ""
        self._notes.append(f"after @{self._step}: {text}{reason}")

    def _take_step(self, line: Line) -> None:
        one = seen(line, self._at(line["step"]))
        self._step = max(self._step, one.step)
        self._begun.pop(one.step, None)
        self._remember(line)
        spoken = one.said or (one.tool in self._asking and one.outcome == "ok")
        if spoken and line["result"] is not None:
            text = cut(json_text(line["result"].get("data")), SAID, self._at(one.step))
            self._said.append((one.step, text))
        if not one.said:
            self._count(one)
            self._last.append(one)
            if one.loose and not spoken:
                self._loose.append(one)
        self._unfolded.append(one)
        if one.goals or len(self._unfolded) >= self._every + (self._last.maxlen or 0):
            self._fold(len(self._unfolded) if one.goals else self._every)

    def _remember(self, line: Line) -> None:
        """Note which paths and names this step was the last to touch."""
        for text in line.get("state_diff", {}):
            try:
                path = paths.parse(text)
            except paths.PathError:
                continue
            for depth in range(2, min(len(path), _DEEPEST) + 1):
                _touch(self._set, path[:depth], line["step"])
        for text in named(line["action"]["args"]):
            _touch(self._named, text, line["step"])

    def _count(self, one: Seen) -> None:
        tool = one.tool if one.tool in self._counts or len(self._counts) < MOST else OTHERS
        of = self._counts.setdefault(tool, {})
        of[one.outcome] = of.get(one.outcome, 0) + 1
        for refusal in one.refused if one.outcome in ("denied", "waiting") else ():
            rule = refusal.rule if refusal.rule in self._denials or len(self._denials) < MOST else OTHERS
            self._denials[rule] = (self._denials.get(rule, (0,))[0] + 1, one.step, refusal.error)

    def _fold(self, number: int) -> None:
        self._due = tuple(self._unfolded[:number])
        self._folds.append(fold(self._due))
        del self._unfolded[:number]
        while len(self._folds) > _FOLDS:
            self._folds[:2] = [merged(*self._folds[:2])]

    def _replace(self, line: Line) -> None:
        """Put what a model wrote, if it can be used, in the place of what was made of counts."""
        if self._due and self._due[0].step == line["first"]:
            self._due = ()
        for one in self._folds:
            if line["text"] is not None and (one.first, one.last) == (line["first"], line["last"]):
                one.text = cut(inert(line["text"]), written.LONGEST)

    # ---- folds that a model writes

    def written(self, ask: Asker) -> Line | None:
        """Have a model write the newest fold, once.

        Arguments:
            ask: sends the messages to a model and returns what it says.

        Returns:
            The `summary` line that says so, without its time, for whoever writes the ledger; `take` takes it like any
            other. Its `text` is None where what the model says may not be used. None where no fold is new.

        """
        due, self._due = self._due, ()
        if not due:
            return None
        newest = next(one for one in reversed(self._folds) if one.first == due[0].step)
        text = written.usable(ask(written.asked(due)), [written.entry(one) for one in due], newest)
        return {"kind": "summary", "first": newest.first, "last": newest.last, "text": text}

    # ---- the view

    @property
    def last(self) -> Seen | None:
        """The newest step; None before the first."""
        return self._last[-1] if self._last else None

    def view(self, tree: Mapping[str, Any], wanted: Wanted = ALL, budget: int = BUDGET) -> View:
        """Return the view.

        Arguments:
            tree: the state as it is now, with all its parts.
            wanted: which parts of it the view holds.
            budget: about how many tokens it may have.

        """
        room = budget * CHARACTERS - _AROUND
        share = {part: room * percent // 100 for part, percent in _SHARES.items()}
        made = {
            "counts": _first(self._count_lines(), share["counts"]),
            "denials": _newest(self._denial_lines(), share["denials"]),
            "said": _newest(self._said_lines(share["said"]), share["said"]),
            "earlier": _newest(self._earlier_lines(), share["earlier"]),
            "last": _newest(self._last_lines(share["last"]), share["last"]),
        }
        state = tuple(self._state_lines(tree, wanted, room - sum(map(_size, made.values()))))
        last = share["last"] = room - _size(state) - sum(_size(made[part]) for part in made if part != "last")
        made["last"] = _newest(self._last_lines(last), last)  # what nobody else needs
        left = last - _size(made["last"])
        results = _newest(self._loose_lines(left), left)
        return View(state=state, results=results, **made)

    def _count_lines(self) -> list[str]:
        most = sorted(self._counts.items(), key=lambda entry: (-sum(entry[1].values()), entry[0]))
        return [f"{name(tool)}: {told(of)}" for tool, of in most]

    def _denial_lines(self) -> list[str]:
        latest = sorted(self._denials.items(), key=lambda entry: (entry[1][1], entry[0]))
        return [
            f"{name(rule.rpartition('/')[2])}: {'once' if count == 1 else f'{count:,} times'}, "
            f"{'' if count == 1 else 'last '}@{step}: {cut(error, 200)}"
            for rule, (count, step, error) in latest
        ]

    def _said_lines(self, room: int) -> list[str]:
        each = max(room // 3, 80)
        return [f"@{step} {cut(text, each, self._at(step))}" for step, text in self._said]

    def _earlier_lines(self) -> list[str]:
        told = {one.step for one in self._last}
        single = [one for one in self._unfolded if one.step not in told and not one.said]
        folds = [one for one in self._folds if one.first not in told]
        return [one.line() for one in folds] + [_short(one) for one in single]

    def _last_lines(self, room: int) -> list[str]:
        begun = [f"@{one.step} {one.call}: begun, not known yet what came of it" for one in self._begun.values()]
        notes = [*begun, *self._notes]
        texts = [_full(one) for one in self._last]
        left = room - _size(notes)
        return [*_fitted(texts, left, [self._at(one.step) for one in self._last]), *notes]

    def _loose_lines(self, room: int) -> list[str]:
        """Return long results that have become no fact, as far as the last steps do not tell them."""
        told = {one.step for one in self._last}
        loose = [one for one in self._loose if one.step not in told]
        texts = [f"@{one.step} {cut(one.call, 160)}: {one.result}" for one in loose]
        return _fitted(texts, room, [self._at(one.step) for one in loose])

    def _state_lines(self, tree: Mapping[str, Any], wanted: Wanted, room: int) -> list[str]:
        others = list(self._other_lines(tree, wanted))
        others = list(_newest(others, room // 4))
        names = [one for one in tree["facts"] if wanted.facts is None or one in wanted.facts]
        left_out = [one for one, value in tree["facts"].items() if one not in names and value != {}]
        if left_out:
            listed = ", ".join(path_text(("facts", one)) for one in left_out)
            others.append(cut(f"left out, for no tool on offer, rule or goal names them: {listed}", room // 6))
        left = room - sum(len(line) + 1 for line in others)
        found = list(facts.items({one: tree["facts"][one] for one in names}, wanted.levels or {}))
        where = self._at(tree.get("step", self._step))
        return [*facts.lines(found, self._rank(tree), left, f"state {where}"), *others]

    def _other_lines(self, tree: Mapping[str, Any], wanted: Wanted) -> Iterable[str]:
        for flag, value in tree["flags"].items():
            if value or flag in wanted.flags:
                yield f"{path_text(('flags', flag))} = {json_text(value)}"
        for key, value in tree["constraints"].items():
            if wanted.constraints is None or key in wanted.constraints:
                yield f"{path_text(('constraints', key))} = {cut(json_text(value), 600)}"
        if tree["error"] is not None:
            yield f"error = {cut(json_text(tree['error']), 400)}"
        yield f"step = {tree.get('step', self._step)}"

    def _rank(self, tree: Mapping[str, Any]) -> facts.Rank:
        """Return what tells how late a value was set or named; what the task names counts as named just now."""
        newest = int(tree.get("step", self._step)) + 1

        def rank(path: paths.Path) -> int:
            set_at = self._set.get(path, 0)
            if len(path) <= 2:
                return set_at
            own = str(path[-1])
            return newest if len(own) > 2 and own in self._task else max(set_at, self._named.get(own, 0))

        return rank

    def _at(self, step: int) -> str:
        return f"{self._name}@{step}"


def _touch(steps: OrderedDict[Any, int], key: Any, step: int) -> None:
    """Note the step that touched something last, and forget what was touched longest ago."""
    steps[key] = step
    steps.move_to_end(key)
    if len(steps) > _RECENT:
        steps.popitem(last=False)


def _size(lines: Iterable[str]) -> int:
    """Return how many characters some lines take."""
    return sum(len(line) + 1 for line in lines)


def _fitted(texts: list[str], room: int, where: list[str]) -> list[str]:
    """Return texts cut so that all have room: what the short ones leave, the long ones get."""
    fitted = list(texts)
    order = sorted(range(len(texts)), key=lambda number: len(texts[number]))
    for done, number in enumerate(order):
        each = max(room // (len(order) - done) - 1, _LEAST)
        fitted[number] = cut(texts[number], each, where[number])
        room -= len(fitted[number]) + 1
    return fitted


def _newest(lines: list[str], room: int) -> tuple[str, ...]:
    """Return as many of the last lines as there is room for."""
    used = 0
    for number in range(len(lines) - 1, -1, -1):
        used += len(lines[number]) + 1
        if used > room:
            kept = lines[number + 1 :]
            spare = room - (used - len(lines[number]) - 1) - 1
            return (cut(lines[number], spare), *kept) if spare > 40 else tuple(kept)
    return tuple(lines)


def _first(lines: list[str], room: int) -> tuple[str, ...]:
    """Return as many of the first lines as there is room for, and how many are left."""
    used, kept = 40, 0
    while kept < len(lines) and (used := used + len(lines[kept]) + 1) <= room:
        kept += 1
    left = len(lines) - kept
    return (*lines[:kept], f"and {left:,} more tools") if left and room >= 40 else tuple(lines[:kept])


def _short(one: Seen) -> str:
    """Return a step as one line."""
    reason = f": {one.refused[0].error}" if one.refused and one.outcome == "denied" else ""
    if one.outcome == "error":
        reason = f": {cut(one.result, 120)}"
    if one.outcome == "ok" and one.small is not None:
        return f"@{one.step} {one.small}{one.changed}"
    return f"@{one.step} {cut(one.call, 160)} {OUTCOMES[one.outcome]}{reason}{one.changed}"


def _full(one: Seen) -> str:
    """Return all that is kept of a step."""
    text = f"@{one.step} {one.call} {OUTCOMES.get(one.outcome, one.outcome)}"
    if one.refused and one.outcome in ("denied", "waiting"):
        text += f" by {'; '.join(map(_refusal, one.refused))}"
    elif one.result:
        text += f": {one.result}"
    return text + one.changed


def _refusal(refusal: Refusal) -> str:
    hint = f" Hint: {refusal.hint}" if refusal.hint else ""
    return f"{name(refusal.rule.rpartition('/')[2])}: {refusal.error}{hint}"
