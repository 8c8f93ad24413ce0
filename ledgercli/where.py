"""The question that `ledger list --where` asks of runs and steps, in the policy language.

Invariants:
* It is checked before any ledger is read: a name, status, effect or outcome that does not exist is an error with its
  column and the nearest one that does.
* `facts`, `args` and the like are what the ledgers say, so no name in them is unknown. What is not there
  does not match.
* The conditions joined by `&&` are told apart by what they are about (the step, the run, both), so that a step which
  cannot match is let go as soon as it is read. This changes no answer: each of them must hold.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from ledgercli import cel
from ledgercli.cel.syntax import Binary, ListOf
from ledgercli.errors import InvalidDocumentError
from ledgercli.records import EFFECTS
from ledgercli.sources import MAX_LINE, Problem

STATUSES: Final = ("completed", "failed", "halted", "limit", "awaiting_approval", "error", "interrupted", "unsealed")
OUTCOMES: Final = ("ok", "error", "denied", "waiting", "cancelled", "unknown")
OPTION: Final = "--where"

_ANY: Final = cel.MapType(key=cel.STRING)
_TEXTS: Final = cel.ListType(elem=cel.STRING)
_RESULT: Final = cel.RecordType(
    "result", {"success": cel.Field(cel.BOOL), "data": cel.Field(cel.DYN), "error": cel.Field(cel.DYN)}
)
_RUN: Final[Mapping[str, cel.Type]] = {
    "answer": cel.DYN,
    "at": cel.TIMESTAMP,
    "constraints": _ANY,
    "denied": cel.INT,
    "error": cel.DYN,
    "facts": _ANY,
    "file": cel.STRING,
    "flags": _ANY,
    "id": cel.STRING,
    "packs": _TEXTS,
    "rules": _TEXTS,
    "scenario": cel.STRING,
    "status": cel.EnumType(values=frozenset(STATUSES), what="status"),
    "steps": cel.INT,
    "task": cel.STRING,
}
_STEP: Final[Mapping[str, cel.Type]] = {
    "args": _ANY,
    "at": cel.TIMESTAMP,
    "effect": cel.EnumType(values=frozenset(EFFECTS), what="effect"),
    "error": cel.DYN,
    "outcome": cel.EnumType(values=frozenset(OUTCOMES)),
    "result": _RESULT,
    "rules": _TEXTS,
    "step": cel.INT,
    "tool": cel.STRING,
}
_NAMES: Final = {"run": _RUN, "step": _STEP}
_ENV: Final = cel.Env(
    {root: cel.RecordType(root, {n: cel.Field(t) for n, t in fields.items()}) for root, fields in _NAMES.items()}
)
_INSTEAD: Final = {"action": "step.tool, step.args", "state": "run.facts, run.status", "result": "step.result"}


@dataclass(frozen=True, slots=True)
class Where:
    """A question, ready to be asked.

    Arguments:
        step: the conditions about the step alone.
        run: those about the run alone.
        both: those about both.
        names: the texts that `step.tool`, `step.rules` and `run.rules` are compared with, by `tool` and `rule`.
        times: whether the time of a step is asked for.

    """

    step: Sequence[cel.Program] = ()
    run: Sequence[cel.Program] = ()
    both: Sequence[cel.Program] = ()
    names: Mapping[str, Sequence[str]] = field(default_factory=dict)
    times: bool = False

    @property
    def asks_steps(self) -> bool:
        """Whether it is about steps at all."""
        return bool(self.step or self.both)

    def may_hold(self, step: Mapping[str, Any]) -> bool:
        """Whether a step can match, whatever its run turns out to be."""
        return all(program.holds({"step": step}) for program in self.step)

    def holds_for_run(self, run: Mapping[str, Any]) -> bool:
        """Whether what it says about the run holds."""
        return all(program.holds({"run": run}) for program in self.run)

    def holds_for_both(self, run: Mapping[str, Any], step: Mapping[str, Any]) -> bool:
        """Whether what it says about both holds."""
        return all(program.holds({"run": run, "step": step}) for program in self.both)


def parse(text: str) -> Where:
    """Read a question.

    Raises:
        InvalidDocumentError: it is none; `problems` says where and why.

    """
    try:
        checked = cel.check(cel.parse(text), _ENV, cel.BOOL)
    except cel.CelSyntaxError as error:
        raise _refused([error.problem], text) from None
    if not checked.ok:
        raise _refused([problem for problem in checked.problems if problem.severity == "error"], text)
    parts: dict[str, list[cel.Program]] = {"step": [], "run": [], "both": []}
    for part in cel.split_and(checked):
        roots = {path[0] for path in part.paths}
        parts["both" if len(roots) > 1 else "step" if "step" in roots else "run"].append(cel.compile(part))
    names = {"tool": [*_compared(checked, "tool")], "rule": [*_compared(checked, "rules")]}
    times = any(path[0] == "step" and path[1:2] in ((), (None,), ("at",)) for path in checked.paths)
    return Where(**parts, names=names, times=times)


def _compared(checked: cel.Checked, name: str) -> Iterator[str]:
    """Yield the texts that stand beside `step.NAME` or `run.NAME` in a comparison."""
    for node in cel.walk(checked.node):
        if isinstance(node, Binary) and node.operator in ("==", "in"):
            for one, other in ((node.left, node.right), (node.right, node.left)):
                path = cel.path_of(one)
                if path is not None and path[1:] == (name,):
                    yield from _texts(other)


def _texts(node: cel.Node) -> Iterator[str]:
    found = node.elements if isinstance(node, ListOf) else (node,)
    yield from (str(one.value) for one in found if isinstance(one, cel.Literal) and isinstance(one.value, str))


# Problems


def _refused(found: Iterable[cel.Problem], text: str) -> InvalidDocumentError:
    problems = tuple(_problem(one, text) for one in found)
    count = f"{len(problems)} errors" if len(problems) > 1 else "an error"
    return InvalidDocumentError(f"{count} in {OPTION}", problems=problems, fix="ledger list --help lists the names")


def _problem(problem: cel.Problem, text: str) -> Problem:
    before, line_end = text[: problem.start], text.find("\n", problem.start)
    start = before.rfind("\n") + 1
    line = text[start : line_end if line_end >= 0 else None]
    return Problem(
        problem.code,
        problem.message,
        OPTION,
        before.count("\n") + 1,
        problem.start - start + 1,
        length=max(1, min(problem.end, start + len(line)) - problem.start),
        notes=tuple(_notes(problem)),
        source_line=line if len(line) <= MAX_LINE else None,
    )


def _notes(problem: cel.Problem) -> Iterator[str]:
    """Yield what to write instead; what the language says about rules is said about runs and steps here."""
    word = problem.source.text[problem.start : problem.end]
    if problem.code == "unknown-name" and (near := _own(word)):
        yield f"write {near}"
        return
    if problem.suggestions:
        yield f"did you mean {' or '.join(problem.suggestions)}?"
    if problem.hint and not problem.hint.startswith("did you mean"):
        yield problem.hint
    if problem.code == "unknown-name" and not problem.suggestions:
        yield "there is run and step"


def _own(word: str) -> str | None:
    fields = [f"{root}.{word}" for root, names in _NAMES.items() if word in names]
    return " or ".join(fields) or _INSTEAD.get(word)
