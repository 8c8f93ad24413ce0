"""What other rules would have said to recorded runs: in figures, rule by rule, with examples.

Invariants:
* What is certain and what is not is told apart: behind the first change a call might never have been made.
* An address, a path, a rule and a place stay whole; values are cut (not with -v), masked ones stay masked.
* Ledgers that could not be judged are counted and named in every form.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from ledgercli.replay.surveys import EXAMPLES, Example, Group, Survey, Unread
from ledgercli.replay.whatif import CHANGES, Change, Flip, Versions, WhatIf
from ledgercli.reports import values
from ledgercli.reports.cells import WIDTH, cells, cut, pad, wrap
from ledgercli.reports.junit import Case, Suite
from ledgercli.reports.markdown import code, table, text
from ledgercli.reports.replay import (
    unread_case,
    unread_json,
    unread_lines,
    unread_problems,
    write_unread_markdown,
)
from ledgercli.reports.screen import Screen, Style
from ledgercli.reports.summary import counted
from ledgercli.sources import Problem

SCHEMA: Final = "what-ifs/1"
LINE_SCHEMA: Final = "whatif/1"
WORDS: Final[Mapping[Change, str]] = {change: change.replace("-", " ") for change in CHANGES} | {
    "newly-to-approve": "newly to be approved"
}
_STYLES: Final[Mapping[Change, Style]] = {
    "newly-denied": "red",
    "newly-to-approve": "yellow",
    "newly-allowed": "yellow",
    "cannot-tell": "yellow",
}
_ROWS: Final = 20  # cells of `newly to be approved`
_HEAD: Final = 15  # cells of what is new, before a rule
_NUMBER: Final = 12
_LEAST: Final = 12  # cells that a value has at least
_KNOWN: Final = ("action.args", "action.tool")  # the call shows them
_SHOWN: Final = 50  # flips of a ledger that a test report lists


# ---- text


def write_text(screen: Screen, survey: Survey, fail_on: Iterable[Change] = (), *, verbose: bool = False) -> None:
    """Write the packs, the figures, the changes of each rule, what of it is certain, and what `--fail-on` says."""
    for line in pack_lines(survey):
        screen.line(screen.safe(line))
    if survey.ledgers:
        screen.line()
        screen.line(f"{counted(survey.ledgers, 'ledger')}, {counted(survey.proposals, 'proposal')}")
        screen.line()
        screen.line(" " * _ROWS + "   proposals   ledgers")
        for word, proposals, ledgers in _counts(survey):
            screen.line(f"{pad(word, _ROWS)}{proposals:>{_NUMBER},}{ledgers:>10,}")
    for group in survey.ordered():
        screen.line()
        for line in _group(screen, survey, group, verbose=verbose):
            screen.line(line)
    if told := certainty(survey):
        screen.line()
        for line in wrap(told, WIDTH):
            screen.line(line)
    if survey.unread:
        screen.line()
        for line in unread_lines(screen, survey.unread, everything=survey.everything):
            screen.line(line)
    write_failures(screen, survey, fail_on, apart=True)


def write_failures(screen: Screen, survey: Survey, fail_on: Iterable[Change], *, apart: bool = False) -> None:
    """Write what `--fail-on` says; `apart`: with an empty line before."""
    lines = list(failure_lines(screen, survey, fail_on))
    for line in ["", *lines] if apart and lines else lines:
        screen.line(line)


def failure_lines(screen: Screen, survey: Survey, fail_on: Iterable[Change]) -> Iterator[str]:
    """Yield what `--fail-on` names and is there."""
    for change in fail_on:
        if proposals := survey.changed[change][0]:
            yield f"{screen.paint('FAIL', 'red')} --fail-on {change}: {counted(proposals, 'proposal')}"


def pack_lines(survey: Survey) -> Iterator[str]:
    """Yield of each pack what it was and what it is now."""
    width = max(map(cells, survey.packs), default=0) + 2
    for name, versions in sorted(survey.packs.items(), key=lambda one: all(each.same for each in one[1])):
        yield f"{pad(name, width)}{_versions(versions)}"


def _versions(versions: Iterable[Versions]) -> str:
    others = [one for one in versions if not one.same]
    if not others:
        return "as recorded"
    then = list(dict.fromkeys(one.then for one in others if one.then is not None))
    numbers = [version for version in then if version]
    word = f"version{'s' * (len(numbers) > 1)} {', '.join(numbers)} " if numbers else ""
    recorded = f"{word}as recorded"
    now, file = others[0].now, others[0].file
    if now is None:
        return f"{recorded} -> left out"
    new = f"version {now} in {file}" if now else str(file)
    return f"{recorded} -> {new}" if then else f"added: {new}"


def _counts(survey: Survey) -> Iterator[tuple[str, int, int]]:
    """Yield the rows of the table."""
    changed = sum(proposals for proposals, _ in survey.changed.values())
    yield "unchanged", survey.proposals - changed, survey.unchanged
    for change in CHANGES:
        yield WORDS[change], *survey.changed[change]


def _group(screen: Screen, survey: Survey, group: Group, *, verbose: bool) -> Iterator[str]:
    head = screen.paint(WORDS[group.change], _STYLES[group.change]) + " " * max(_HEAD - cells(WORDS[group.change]), 0)
    place = group.examples[0].flip.place or ("(built in)" if group.rule else "")
    yield f"{head}  {screen.safe(_bare(group.rule))}  {screen.paint(screen.safe(place), 'dim')}".rstrip()
    yield f"  {ended(group)}"
    for example in group.examples:
        yield from _example(screen, example, verbose=verbose)
    more = group.ledgers - len(group.examples)
    if not survey.everything and more > 0:
        yield f"  ... {counted(more, 'more ledger')}: --list, or --format jsonl"
    elif not survey.everything and (rest := group.proposals - len(group.examples)):
        yield f"  ... {counted(rest, 'more proposal')}: --list, or --format jsonl"


def ended(group: Group) -> str:
    """Say how many proposals a group has, and how these runs had ended."""
    where = f"{counted(group.proposals, 'proposal')} in {counted(group.ledgers, 'ledger')}"
    if group.ledgers == 1:
        return f"{where}; the run had {'' if group.completed else 'not '}ended `completed`"
    return f"{where}; {group.completed:,} of these runs had ended `completed`"


def _bare(rule: str | None) -> str:
    return "no rule" if rule is None else rule.rpartition("/")[2]


def _example(screen: Screen, example: Example, *, verbose: bool) -> Iterator[str]:
    flip = example.flip
    doubt = "" if flip.exact else f"  ({frontier(example.frontier)})"
    yield f"  {screen.safe(f'{example.path}@{flip.step}')}{doubt}"
    yield "    " + screen.cut(values.call(flip.tool, flip.args), None if verbose else WIDTH - 4)
    for path, value in facts(flip):
        head = f"    {screen.safe(path)} = "
        room = None if verbose else WIDTH - cells(head)
        if room is not None and room < _LEAST:
            yield head.rstrip()
            head, room = " " * 6, WIDTH - 6
        yield head + screen.cut(values.parts(value), room)


def facts(flip: Flip) -> Iterator[tuple[str, Any]]:
    """Yield what decided besides the call itself."""
    for path, value in flip.facts.items():
        if not path.startswith(_KNOWN):
            yield path, value


def frontier(step: int | None) -> str:
    """Say how far a run is certain."""
    return "exact" if step is None else f"bounded from step {step}"


def certainty(survey: Survey) -> str:
    """Say what is certain and what is not; nothing where all is as it was."""
    told = []
    if survey.departed:
        one = survey.departed == 1
        ways = "its first change" if one else "their first change"
        told.append(f"{counted(survey.departed, 'ledger')} would have gone another way from {ways} on.")
    if survey.astray:
        who = (
            f"{survey.astray:,} other ledger{'s' * (survey.astray != 1)}" if told else counted(survey.astray, "ledger")
        )
        told.append(
            f"{who} cannot be followed to the end either: a reason, a hint or a warning would have been another one, "
            "or it is of a recording of which a call was refused."
        )
    if survey.certain:
        certain = f"The {survey.certain:,} first changes are" if survey.certain > 1 else "The first change is"
        told.append(f"{certain} certain")
    if survey.later:
        later = f"{survey.later:,} later {'ones' if survey.later > 1 else 'one'}" if survey.certain else "The changes"
        say = "says" if survey.certain and survey.later == 1 else "say"
        what = f"{later} only {say} what these rules answer to a call that might never have been made."
        told[-1:] = [f"{told[-1]}; {what}"] if survey.certain else [*told[-1:], what]
    elif survey.certain:
        told[-1] += "."
    return " ".join(told)


# ---- Markdown


def write_markdown(screen: Screen, survey: Survey, fail_on: Sequence[Change]) -> None:
    """Write a summary for a pull request."""
    for line in _markdown(survey, fail_on):
        screen.line(line)
    write_unread_markdown(screen, survey.unread, everything=survey.everything)


def _markdown(survey: Survey, fail_on: Sequence[Change]) -> Iterator[str]:
    failed = list(failure_lines(Screen(None, encoding="utf-8", colour=False), survey, fail_on))
    said = "fails" if failed else f"{counted(survey.ledgers, 'ledger')} judged"
    yield f"### ledger replay --pack: {said}"
    yield ""
    for line in failed:
        yield f"- **{text(line)}**"
    for line in pack_lines(survey):
        yield f"- {text(' '.join(line.split()))}"
    yield ""
    yield from table(("", "proposals", "ledgers"), [(w, f"{p:,}", f"{n:,}") for w, p, n in _counts(survey)])
    yield ""
    for group in survey.ordered():
        place = group.examples[0].flip.place
        where = f" {code(place)}" if place else ""
        yield f"**{WORDS[group.change]}** by {code(_bare(group.rule))}{where}: {ended(group)}"
        yield ""
        for example in group.examples:
            yield f"- {code(f'{example.path}@{example.flip.step}')} {code(_call(example.flip))}{_doubt(example)}"
            for path, value in facts(example.flip):
                yield f"  - {code(f'{path} = {values.shown(value, WIDTH)}')}"
        yield ""
    if told := certainty(survey):
        yield told
        yield ""


def _call(flip: Flip) -> str:
    return cut(values.call(flip.tool, flip.args), WIDTH)


def _doubt(example: Example) -> str:
    return "" if example.flip.exact else f" ({frontier(example.frontier)})"


# ---- for programs


def lines_of(one: WhatIf) -> Iterator[dict[str, Any]]:
    """Yield a line of JSON for each change; `LEDGER@STEP` is its address."""
    packs = {name: versions.file for name, versions in one.packs.items() if not versions.same}
    for flip in one.flips:
        yield {"schema": LINE_SCHEMA, "ledger": one.path, **flip_json(flip), "frontier": one.frontier, "packs": packs}


def is_told(one: WhatIf | Unread) -> bool:
    """Whether a run has something to tell: a change, or a step from which on nothing is certain."""
    return isinstance(one, WhatIf) and bool(one.flips or one.frontier is not None)


def flip_json(flip: Flip) -> dict[str, Any]:
    """Return a change as data."""
    return {name: getattr(flip, name) for name in flip.__slots__}


def to_json(
    survey: Survey, results: Iterable[WhatIf | Unread], fail_on: Sequence[Change], **told: int
) -> dict[str, Any]:
    """Return all as one object; of ledgers without a change only the numbers. `told` is what the command knows."""
    return {
        "schema": SCHEMA,
        "packs": {name: [_versions_json(one, n) for one, n in versions.items()] for name, versions in _packs(survey)},
        "ledgers": survey.ledgers,
        "proposals": survey.proposals,
        "counts": {word: {"proposals": p, "ledgers": n} for word, p, n in _counts_json(survey)},
        "certain": survey.certain,
        "later": survey.later,
        "rules": [_group_json(group) for group in survey.ordered()],
        "runs": [_run_json(one) for one in results if isinstance(one, WhatIf)],
        "failed": [change for change in fail_on if survey.changed[change][0]],
        "unread": [unread_json(one) for one in survey.unread],
        **told,
    }


def _packs(survey: Survey) -> Iterable[tuple[str, Mapping[Versions, int]]]:
    return survey.packs.items()


def _versions_json(one: Versions, ledgers: int) -> dict[str, Any]:
    return {"then": one.then, "now": one.now, "file": one.file, "same": one.same, "ledgers": ledgers}


def _counts_json(survey: Survey) -> Iterator[tuple[str, int, int]]:
    for name, (_, proposals, ledgers) in zip(("unchanged", *CHANGES), _counts(survey), strict=True):
        yield name, proposals, ledgers


def _group_json(group: Group) -> dict[str, Any]:
    named = ("change", "rule", "proposals", "ledgers", "completed")
    return {**{name: getattr(group, name) for name in named}, "place": group.examples[0].flip.place}


def _run_json(one: WhatIf) -> dict[str, Any]:
    told = {"ledger": one.path, "status": one.status, "proposals": one.proposals, "frontier": one.frontier}
    return {**told, "changes": [flip_json(flip) for flip in one.flips]}


def suite(results: Iterable[WhatIf | Unread], fail_on: Sequence[Change]) -> Suite:
    """Return each ledger as a test that fails by what `--fail-on` names."""
    return Suite("ledger replay --pack", [_case(one, fail_on) for one in results])


def _case(one: WhatIf | Unread, fail_on: Sequence[Change]) -> Case:
    if isinstance(one, Unread):
        return unread_case(one)
    lines = [_flip_line(one, flip) for flip in one.flips[:_SHOWN]]
    if len(one.flips) > _SHOWN:
        lines.append(f"... {len(one.flips) - _SHOWN:,} more")
    if lines:
        lines.append(frontier(one.frontier))
    failed = [f"{count} {WORDS[change]}" for change in fail_on if (count := one.count(change))]
    if failed:
        return Case(one.path, "failure", ", ".join(failed), lines, file=one.path)
    return Case(one.path, output=lines, file=one.path)


def _flip_line(one: WhatIf, flip: Flip) -> str:
    by = f" by {flip.rule}" if flip.rule else ""
    return f"{one.path}@{flip.step} {WORDS[flip.change]}{by}: {_call(flip)}"


def to_problems(survey: Survey, fail_on: Sequence[Change]) -> Iterator[Problem]:
    """Yield what GitHub shows beside the rules: an error for what `--fail-on` names, else a notice."""
    for group in survey.ordered():
        example = group.examples[0]
        file, _, line = (example.flip.place or "").rpartition(":")
        notes = [f"{one.path}@{one.flip.step}: {_call(one.flip)}" for one in group.examples[:EXAMPLES]]
        yield Problem(
            group.change,
            f"{WORDS[group.change]} by {_bare(group.rule)}: {ended(group)}",
            file or example.path,
            int(line) if file else 0,
            severity="error" if group.change in fail_on else "note",
            notes=tuple(notes),
        )
    yield from unread_problems(survey.unread)
