"""The file that captured cases are added to: a new one, or one that is there, of which every byte stays.

Invariants:
* A file is written only after its new text has been loaded and its new cases judged; what does not come out as the
  step was judged is written as a case that names the step in its ledger, or not at all.
* Names are unique in the file; a case that it has already is not added again.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from ledgercli import sources
from ledgercli.capture.capturing import Captured
from ledgercli.capture.recalling import Step
from ledgercli.cases import CaseModel, CasesFile
from ledgercli.casework import edits
from ledgercli.casework.casetext import case_in_line, case_lines
from ledgercli.casework.edits import Edit
from ledgercli.casework.groups import Group, of_cases
from ledgercli.casework.judging import Judge, where_of
from ledgercli.casework.outcomes import Outcome, Where
from ledgercli.casework.preparing import Preparer, Ready
from ledgercli.documents import Document, Mark, Place, parse, validate
from ledgercli.errors import LedgerCliError, UnreadableInputError
from ledgercli.loading import Loader, refuse
from ledgercli.policytests import Cases, check, rulebook_of
from ledgercli.records import Verdict
from ledgercli.sources import Source

_DASH: Final = re.compile(r"^( *)-(?=\s)", re.MULTILINE)


@dataclass(frozen=True, eq=False)
class Added:
    """A case in the file.

    Arguments:
        made: the case.
        name: what it is called.
        where: where it stands.
        new: whether it has been added; else the file had it.
        outcome: what comes of it now; None where it names a rule that does not exist yet.
        verdict: what the packs of the file say.

    """

    made: Captured
    name: str
    where: Where
    new: bool
    outcome: Outcome | None
    verdict: Verdict


class CaseFile:
    """A case file.

    Arguments:
        name: its path.
        text: what it holds, or is to begin with.
        new: whether it is to be made.

    """

    def __init__(self, name: str, text: str, *, new: bool) -> None:
        self.name, self.text, self.new = name, text, new
        self.group = self._loaded()

    @classmethod
    def there(cls, name: str) -> CaseFile:
        """Return a file that is there.

        Raises:
            LedgerCliError: it does not load.

        """
        if sources.kind_of(sources.read(name)) != "cases":
            raise UnreadableInputError(f"{name} is no case file", fix="another --to")
        return cls(name, sources.read(name).text, new=False)

    def add(self, captured: Sequence[Captured]) -> list[Added]:
        """Add cases to the text; nothing is written.

        Raises:
            LedgerCliError: a case cannot be made, or its name is taken.

        """
        named = list(self._named(captured))
        fresh = [(name, made) for name, made, number in named if number is None]
        first, whole = len(self.group.cases), [_whole(name, made) for name, made in fresh]
        loadable = [_whole(name, made, known=self.group.names) for name, made in fresh]
        text = self._with(loadable)
        group = self._with_text(text) if fresh else self.group
        places = iter(range(first, first + len(fresh)))
        added = [
            self._added(group, name, made, next(places) if number is None else number, new=number is None)
            for name, made, number in named
        ]
        self.text = text if loadable == whole else self._with(whole)
        return added

    def write(self) -> None:
        """Write the file.

        Raises:
            LedgerWriteError: it cannot be written; what was there is as it was.

        """
        (edits.create if self.new else edits.replace)(Path(self.name), self.text)

    # ---- what is in it

    def _loaded(self) -> Group:
        loader = Loader(sources={self.name: Source.of(self.name, self.text)})
        group = of_cases(loader, self.name)
        assert group is not None, "what cannot be used has been refused"
        refuse([*loader.problems, *group.rules.problems()])
        return group

    def _with_text(self, text: str) -> Group:
        """Return the group with other cases; packs and tools are those that have been checked."""
        validated = validate(parse(Source.of(self.name, text)), CasesFile)
        refuse(validated.problems)
        assert validated.model is not None, "what cannot be used has been refused"
        document, rules = validated.document, self.group.rules
        cases = Cases(validated.model, document, self.group.folder, rules.toolset, rules.packs)
        book = rulebook_of(cases)
        check(cases, book)
        refuse(book.vocabulary.problems)
        tests: list[tuple[Place, CaseModel]] = [(("tests", n), case) for n, case in enumerate(cases.file.tests)]
        return replace(self.group, document=document, cases=tests)

    def _named(self, captured: Sequence[Captured]) -> Iterator[tuple[str, Captured, int | None]]:
        """Yield each case with its name, and its number in the file where that has it already."""
        names = {case.name: number for number, (_, case) in enumerate(self.group.cases)}
        told: dict[str, int | None] = {}
        for number in names.values():
            told.setdefault(_key(self.group.cases[number][1]), number)
        for made in captured:
            key = _key(CaseModel.model_validate(_whole("", made)))
            if key in told:
                if (there := told[key]) is not None:
                    yield self.group.cases[there][1].name, made, there
                continue
            name = made.name
            if made.wish.name is not None and name in names:
                place = where_of(self.group.document, ("tests", names[name], "name"))
                raise LedgerCliError(f"{place} is named {name} already", fix="another --name")
            count = 2
            while name in names:
                name, count = f"{made.name} ({count})", count + 1
            names[name], told[key] = -1, None
            yield name, made, None

    def holds(self, made: Captured) -> bool:
        """Whether a case can stand in the file, and is judged there as its step was."""
        text = self.text
        try:
            self.add([made])
        except LedgerCliError:
            return False
        finally:
            self.text = text
        return True

    def _added(self, group: Group, name: str, made: Captured, number: int, *, new: bool) -> Added:
        place, case = group.cases[number]
        where = where_of(group.document, (*place, "name"))
        [ready] = Preparer(group, made.step.situation.now).each(place, case)
        judge = Judge(group)
        if not isinstance(ready, Ready):
            raise LedgerCliError(f"{made.step.address} cannot be captured: {ready.why}")
        verdict = judge.verdict(ready)
        if new and not made.stands(verdict):
            raise LedgerCliError(f"{made.step.address} cannot be captured: {made.at or 'it is judged otherwise'}")
        unknown = made.wish.rule is not None and made.wish.rule not in group.names
        outcome = None if unknown else judge.outcome(ready, verdict)
        return Added(made, name, where, new, outcome, verdict)

    # ---- the text

    def _with(self, cases: Sequence[Mapping[str, Any]]) -> str:
        """Return the text with cases at the end of `tests:`."""
        if not cases:
            return self.text
        document = parse(Source.of(self.name, self.text))
        return edits.edited(document, [_appended(document, document.mark(("tests",)), cases)])


def _whole(name: str, made: Captured, known: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Return a case with its name; with `known`, without a rule that does not exist yet."""
    case = {"name": name, **made.case}
    expect = case["expect"]
    if known is not None and isinstance(expect, Mapping) and not known.keys() >= set(expect.get("rules_include", ())):
        case["expect"] = {key: value for key, value in expect.items() if key != "rules_include"}
    return case


def _key(case: CaseModel) -> str:
    """Return all of a case but its name."""
    return repr(case.model_copy(update={"name": "", "expect": case.expected}))


def _appended(document: Document, tests: Mark, cases: Sequence[Mapping[str, Any]]) -> Edit:
    text, items = document.text, [tests.children[number] for number in range(len(tests.children))]
    if text[tests.start : tests.start + 1] == "[":
        if items:
            return Edit(items[-1].end, items[-1].end, "".join(f", {case_in_line(case)}" for case in cases))
        lines = "".join(f"\n{line}" for case in cases for line in case_lines(case, "  "))
        return Edit(len(text[: tests.start].rstrip(" ")), tests.end, lines)
    last = items[-1]
    begin = items[-2].end if len(items) > 1 else text.rfind("\n", 0, tests.start) + 1
    lead = _DASH.findall(text[begin : last.start])[-1]
    apart = "\n" if len(items) > 1 and _apart(text[begin : last.start]) else ""
    added = "".join(apart + "".join(f"{line}\n" for line in case_lines(case, lead)) for case in cases)
    if text[last.end - 1] == "\n":
        return Edit(last.end, last.end, added)
    end = text.find("\n", last.end)
    return Edit(len(text), len(text), f"\n{added}") if end < 0 else Edit(end + 1, end + 1, added)


def _apart(between: str) -> bool:
    """Whether there is an empty line between two cases."""
    return any(not line.strip() for line in between.split("\n")[1:-1])


# ---- whether a step belongs there


def refuse_misfit(file: CaseFile, step: Step, verdict: Verdict, rule: str | None) -> None:
    """Raise if a file is about other tools or packs than a step was judged by.

    Raises:
        LedgerCliError: names what differs.

    """
    here, then = file.group.rules, step.rules
    other = "another --to, or a new file"
    if here.toolset.name != then.toolset.name:
        raise LedgerCliError(
            f"{file.name} is about the toolset {here.toolset.name}; {step.address} was judged with {then.toolset.name}",
            fix=other,
        )
    has = {pack.name for pack in here.packs}
    rules = [one.rule for one in (*verdict.failed, *verdict.warned)] + ([rule] if rule else [])
    needed = {one.rpartition("/")[0] for one in rules} - {""}
    files = {pack.name: pack.document.source.name for pack in then.packs}
    missing = sorted(needed - has) or ([] if has & files.keys() or not files else sorted(files))
    if missing:
        add = [os.path.relpath(files[name], file.group.folder) for name in missing if name in files]
        raise LedgerCliError(
            f"{file.name} judges by {' and '.join(sorted(has)) or 'no pack'}; {step.address} needs"
            f" {' and '.join(missing)}",
            fix=f"add {' and '.join(add)} to its `packs:`, or {other}" if add else other,
        )
