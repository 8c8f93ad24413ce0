"""A case that would catch a mutant: found by the search for verdicts that differ, written as a case file has it.

Invariants:
* A suggestion was read back from its own text and judged by both packs: it passes before, and fails after.
* It stands in the state of the file that it is meant for, and says only what is otherwise there.
* That verdicts are the same is said only where it is proved for every tool.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from pydantic import ValidationError

from ledgercli import cel, paths
from ledgercli.cases import CaseModel, CasesFile
from ledgercli.casework.casetext import case_lines
from ledgercli.casework.groups import Group
from ledgercli.casework.judging import differing, rules_of, shortest
from ledgercli.casework.preparing import Preparer, Ready
from ledgercli.diff.packs.examples import Example
from ledgercli.diff.packs.found import Found
from ledgercli.diff.packs.pasts import Past
from ledgercli.diff.packs.search import Search
from ledgercli.diff.packs.units import sides
from ledgercli.diff.packs.versions import Setting, Version
from ledgercli.documents import parse, validate
from ledgercli.errors import LedgerCliError
from ledgercli.mutation.recompiling import Changed
from ledgercli.paths import ABSENT
from ledgercli.records import Verdict
from ledgercli.sources import Source
from ledgercli.toolset import USER, ConfirmRun
from ledgercli.why.situations import put

MOST: Final = 150  # situations that are tried for a tool
_SEEDS: Final = 3  # cases that a search begins with
_NEARER: Final = 40  # parts of the state that are tried as they are in every case
_LONG: Final = 40  # characters of what differs that a name tells
_WORD: Final = re.compile(r"\w+|\W")
_PAST: Final = 60  # steps that a case may have before it
_PARTS: Final = ("facts", "constraints", "flags")


@dataclass(frozen=True, slots=True)
class Suggestion:
    """What was found out about a mutant that no case catches.

    Arguments:
        same: whether it is proved that no verdict differs.
        tried: how many situations were judged.
        lines: a case that would catch it, as YAML; empty if none was found.
        unwritable: whether verdicts differ, but in nothing that a case can say or set up.

    """

    same: bool
    tried: int
    lines: tuple[str, ...] = ()
    unwritable: bool = False


def suggest(changed: Changed, known: Sequence[Ready], moved: Sequence[Ready] = ()) -> Suggestion:
    """Look for a case that catches a mutant.

    Arguments:
        changed: the group with the mutant in it.
        known: cases of the group, which show what a proposal looks like.
        moved: those whose verdict is another, in what they do not ask for.

    """
    setting = _setting(changed)
    writer = _Writer(changed, [*moved, *(case for case in known if case not in moved)])
    for case in moved:
        lines = writer.asking_more(case)
        if lines:
            return Suggestion(same=False, tried=1, lines=tuple(lines))
    proved, tried, unwritable = True, 0, False
    for tool in _ordered(changed, known):
        search = Search(
            sides(setting, tool), setting.tools[tool], MOST, writer.seeds(tool), writer.now, writer.can_be_set_up
        )
        told = search.run()
        tried += told.tried
        proved = proved and told.proved_same
        for one in told.found:
            lines = writer.lines(one)
            if lines:
                return Suggestion(same=False, tried=tried, lines=tuple(lines))
            unwritable = True
    return Suggestion(same=proved, tried=tried, unwritable=unwritable)


def _ordered(changed: Changed, known: Sequence[Ready]) -> list[str]:
    """Return the tools that are concerned, those that cases propose before others."""
    proposed = {case.situation.proposal.tool for case in known}
    return sorted(changed.tools, key=lambda tool: tool not in proposed)


def _setting(changed: Changed) -> Setting:
    """Return both versions of the pack beside the names of the group."""
    group = changed.group
    one = _version(group.rules.packs, changed.number, group.rules.vocabulary, group.rules.enforcer)
    other = _version(changed.vocabulary.packs, changed.number, changed.vocabulary, changed.enforcer)
    given = {
        name: value
        for name, value in group.state.constraints.items()
        if name not in one.defaults or name not in other.defaults
    }
    return Setting(one, other, changed.vocabulary.tools, "", given)


def _version(packs: Sequence[Any], number: int, vocabulary: Any, enforcer: Any) -> Version:
    """Return a version, whose own pack is the last."""
    ordered = [*packs[:number], *packs[number + 1 :], packs[number]]
    return Version(packs[number].document.source.name, ordered, vocabulary, enforcer)


class _Writer:
    """Writes examples as cases of one group.

    Arguments:
        changed: the group with a mutant in it.
        known: its cases.

    """

    def __init__(self, changed: Changed, known: Sequence[Ready]) -> None:
        self._changed, self._group, self._known = changed, changed.group, known
        self._short = shortest(self._group.names)
        in_a_pack = any(pack.document.source.name == self._group.file for pack in self._group.packs)
        self._lead = "      " if in_a_pack else "  "  # of `examples:` in a rule, of `tests:` in a case file
        self._before = Preparer(self._group)
        self._after = Preparer(changed.as_group(), self._before.now)
        self._base = self._before.base.tree
        self._confirm = next(
            (name for name, tool in changed.vocabulary.tools.items() if isinstance(tool.run, ConfirmRun)), None
        )

    @property
    def now(self) -> cel.Timestamp:
        """The time of every case."""
        return self._before.now

    def can_be_set_up(self, example: Example) -> bool:
        """Whether a case can bring it about."""
        return example.now == self.now and not example.sources and set(example.rest) <= {"task"}

    # ---- cases as examples

    def seeds(self, tool: str) -> list[Example]:
        """Return some cases of a tool, which a search may begin with."""
        of_tool = [case for case in self._known if case.situation.proposal.tool == tool and not case.masked]
        return [self._example(case) for case in of_tool[:_SEEDS]]

    def _example(self, case: Ready) -> Example:
        tree = case.situation.state.tree
        rest = {"task": tree["task"]} if tree["task"] else {}
        flags = {name: True for name, value in tree["flags"].items() if value}
        facts = {name: value for name, value in _plain(tree["facts"]).items() if value != {}}
        given = self._defaults()
        limits = {n: v for n, v in _plain(tree["constraints"]).items() if not paths.same(v, given.get(n, ABSENT))}
        past = tuple(self._past(case))
        return Example(
            case.situation.proposal.tool, _plain(case.situation.proposal.args), facts, flags, limits, rest, past,
            now=self.now,
        )  # fmt: skip

    def _defaults(self) -> dict[str, Any]:
        return {name: value for pack in self._group.rules.packs for name, value in pack.file.constraints.items()}

    def _past(self, case: Ready) -> Iterator[Past]:
        model: CaseModel = dict(self._group.cases)[case.place]
        for one in model.history:
            if one.denied:
                yield Past("denied", one.tool)
            elif one.tool == self._confirm and one.success:
                if one.data is True:
                    yield Past("confirmed", str(one.args.get("tool")), one.args.get("args") or {})
            elif one.tool == USER and USER not in self._changed.vocabulary.tools:
                yield Past("said", data=one.data)
            else:
                yield Past("ok" if one.success else "error", one.tool, one.args, one.data)

    # ---- examples as cases

    def asking_more(self, case: Ready) -> list[str]:
        """Return a case that expects more of the same; empty where that cannot be written."""
        return [] if case.masked else self._told(self._example(case))

    def lines(self, found: Found) -> list[str]:
        """Return a case that passes before and fails after; empty where there is none."""
        example = found.example
        for one in (self._nearer(example), example):
            told = self._told(one)
            if told:
                return told
        return []

    def _nearer(self, example: Example) -> Example:
        """Return an example with as much as possible of what is known in every case."""
        task = self._base["task"]
        then = replace(example, rest={"task": task} if task else {})
        if then.rest != example.rest and self._differs(then):
            example = then
        left = _NEARER
        for part in _PARTS:
            pending: list[tuple[Any, ...]] = [(name,) for name in self._base[part]]
            while pending and left:
                path = pending.pop(0)
                mine, theirs = paths.get(getattr(example, part), path), paths.get(_plain(self._base[part]), path)
                if paths.same(mine, theirs):
                    continue
                left -= 1
                then = replace(example, **{part: put(getattr(example, part), path, theirs)})
                if self._differs(then):
                    example = then
                elif isinstance(mine, dict) and isinstance(theirs, dict):
                    pending += [(*path, key) for key in theirs]
        return example

    def _differs(self, example: Example) -> bool:
        case = self._case(example, {"effect": "allow"})
        return case is not None and bool(self._expected(*self._judged(case)))

    def _told(self, example: Example) -> list[str]:
        case = self._case(example, {"effect": "allow"})
        if case is None:
            return []
        verdicts = self._judged(case)
        expected = self._expected(*verdicts)
        case = self._case(example, expected) if expected else None
        if case is None:
            return []
        lines = list(case_lines(case, self._lead))
        read = _read(lines)
        return lines if read is not None and self._catches(read) else []

    def _case(self, example: Example, expected: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return an example as a case writes it; None where a case cannot."""
        history = list(self._history(example))
        if not self.can_be_set_up(example) or None in history or len(history) > _PAST:
            return None
        over, gone = self._state(example)
        case: dict[str, Any] = {"name": self._name()}
        if over:
            case["state"] = over
        if gone:
            case["unset"] = gone
        if history:
            case["history"] = history
        case["propose"] = {"tool": example.tool, "args": example.args} if example.args else {"tool": example.tool}
        case["expect"] = expected["effect"] if set(expected) == {"effect"} else expected
        return case

    def _name(self) -> str:
        """Return a name that no case of the file has: where the mutant is and what was done."""
        mutant = self._changed.mutant
        name = f"{mutant.part} at {mutant.line}:{mutant.column}: {mutant.change}"
        before, after = _otherwise(mutant.before, mutant.after)
        if before and after and len(before) + len(after) < _LONG:
            name += f", {before} -> {after}"
        taken = {case.name for _, case in self._group.cases}
        return next(one for one in (name, *(f"{name} ({n})" for n in range(2, len(taken) + 3))) if one not in taken)

    def _state(self, example: Example) -> tuple[dict[str, Any], list[str]]:
        """Return what a case says over the state of its file, and what it takes away."""
        over: dict[str, Any] = {}
        gone: list[str] = []
        records: dict[str, Any] = {name: {} for name in self._changed.vocabulary.records}
        wanted = {
            "facts": {**records, **example.facts},
            "constraints": {**self._defaults(), **example.constraints},
            "flags": {**dict.fromkeys(self._base["flags"], False), **example.flags},
        }
        for part, tree in wanted.items():
            mine = _over(_plain(tree), _plain(self._base[part]), (part,), gone)
            if mine is not ABSENT:
                over[part] = mine
        task = example.rest.get("task", "")
        return ({"task": task, **over} if task != self._base["task"] else over), gone

    def _history(self, example: Example) -> Iterator[dict[str, Any] | None]:
        """Yield what ran before; None for what a case cannot tell."""
        for one in example.past:
            tool, args = one.tool, one.args
            if args is None and not tool:
                tool, args = example.tool, example.args
            step = self._step(one, tool, dict(args or {}))
            for _ in range(one.times):
                yield step
            idle = next((name for name in self._changed.vocabulary.tools if name not in (tool, example.tool)), None)
            for _ in range(one.idle):
                yield None if idle is None else {"tool": idle}

    def _step(self, one: Past, tool: str, args: dict[str, Any]) -> dict[str, Any] | None:
        match one.what:
            case "said":
                return {"tool": USER, "data": one.data}
            case "confirmed":
                asked = {"tool": tool, "args": args}
                return None if self._confirm is None else {"tool": self._confirm, "args": asked, "data": True}
            case "denied":
                return {"tool": tool, "denied": True}
        if tool not in self._changed.vocabulary.tools or not set(args) <= set(
            self._changed.vocabulary.tools[tool].args
        ):
            return None
        step: dict[str, Any] = {"tool": tool, **({"args": args} if args else {})}
        if one.what == "error":
            step["success"] = False
        return step if one.data is None else {**step, "data": one.data}

    # ---- judging

    def _judged(self, case: Mapping[str, Any]) -> tuple[Verdict | None, Verdict | None]:
        try:
            read = CaseModel.model_validate(case)
        except ValidationError:
            return None, None
        ready = self._ready(self._before, read), self._ready(self._after, read)
        return _verdict(self._group, ready[0]), _verdict(self._changed.as_group(), ready[1])

    @staticmethod
    def _ready(preparer: Preparer, case: CaseModel) -> Ready | None:
        [made] = preparer.each(("tests", -1), case)
        return made if isinstance(made, Ready) else None

    def _catches(self, case: CaseModel) -> bool:
        one, other = self._ready(self._before, case), self._ready(self._after, case)
        if one is None or other is None:
            return False
        mine, theirs = _verdict(self._group, one), _verdict(self._changed.as_group(), other)
        return (
            mine is not None
            and theirs is not None
            and not differing(one.wanted, mine)
            and bool(differing(other.wanted, theirs))
        )

    def _expected(self, before: Verdict | None, after: Verdict | None) -> dict[str, Any]:
        """Return what tells the verdict that is right from the other; empty where nothing that a case says does."""
        if before is None or after is None:
            return {}
        said: dict[str, Any] = {"effect": before.effect}
        mine, theirs = rules_of(before), rules_of(after)
        if mine:
            said["rules"] = sorted(self._short.get(name, name) for name in mine)
        if before.effect != after.effect:
            return said
        if set(mine) != set(theirs):
            return {**said, "rules": sorted(self._short.get(name, name) for name in mine)}
        for key, one, other in (
            ("halts", before.halts, after.halts),
            ("error", before.reason, after.reason),
            ("hint", before.hint, after.hint),
        ):
            if one != other and one is not None:
                return {**said, key: one}
        return {}


def _verdict(group: Group, case: Ready | None) -> Verdict | None:
    if case is None:
        return None
    one = case.situation
    return group.rules.enforcer.judge(one.proposal, one.state, one.history, one.now)


def _read(lines: Sequence[str]) -> CaseModel | None:
    """Return a case as it is read from its text."""
    text = "\n".join(["cases: c", "packs: []", "toolset: t", "tests:", *lines, ""])
    try:
        read = validate(parse(Source.of("a case", text)), CasesFile)
    except LedgerCliError:
        return None
    ill = any(problem.severity == "error" for problem in read.problems)
    return None if ill or read.model is None else read.model.tests[0]


def _otherwise(before: str, after: str) -> tuple[str, str]:
    """Return of two texts the words that differ."""
    one, other = _WORD.findall(before), _WORD.findall(after)
    same = _shared(one, other)
    one, other = one[same:], other[same:]
    behind = _shared(one[::-1], other[::-1])
    return "".join(one[: len(one) - behind]), "".join(other[: len(other) - behind])


def _shared(one: Sequence[str], other: Sequence[str]) -> int:
    """Return with how many of the same words two lists begin."""
    pairs = zip(one, other, strict=False)
    return next((n for n, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


def _over(wanted: Any, base: Any, path: tuple[Any, ...], gone: list[str]) -> Any:
    """Return what to lay over a tree to make it another, and note what is to go; ABSENT where nothing is."""
    if not isinstance(wanted, dict) or not isinstance(base, dict):
        return ABSENT if paths.same(wanted, base) else wanted
    gone += [paths.text((*path, key)) for key in base if key not in wanted]
    over = {}
    for key, value in wanted.items():
        mine = _over(value, base[key], (*path, key), gone) if key in base else value
        if mine is not ABSENT:
            over[key] = mine
    return over or (ABSENT if base or not wanted else over)


def _plain(value: Any) -> Any:
    """Return a value of a state as plain JSON data."""
    import orjson

    return orjson.loads(orjson.dumps(value, paths.plain))
