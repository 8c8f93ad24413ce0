"""Which steps an answer of the history comes from, as a sentence: `verify_account ran once, @2, with account "A-71"`.

Invariants:
* The answer itself is the history's; here it is only said which of the ledger's earlier lines it rests on.
* Steps are named as they are typed, `@2`; of many the last.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ledgercli import cel
from ledgercli.history import freeze
from ledgercli.state import Origin
from ledgercli.toolset import ConfirmRun
from ledgercli.why.provenance import Call, Earlier
from ledgercli.why.situations import SOURCE, Question

_MANY: Final = 5  # steps that a sentence names


@dataclass(frozen=True)
class Because:
    """Explains answers.

    Arguments:
        earlier: what came before the step.

    """

    earlier: Earlier

    def says(self, question: Question, answer: Any, action: Mapping[str, Any], origin: Origin | None) -> str:
        """Say which steps an answer of the history comes from.

        Arguments:
            question: what was asked.
            answer: the answer.
            action: the proposed call, with its defaults.
            origin: who established what `source` was asked about.

        """
        name, args = question.function, question.args
        if name == SOURCE:
            return self.earlier.by(origin) or "nothing has established it"
        if name.startswith("from_"):
            return self._grounding(name, args, answer)
        if name == "confirmed" or question.whole:
            call = action if question.whole else args[0]
            return self._asked(call) if name == "confirmed" else self._row(call)
        return _SAYS[name](self, *args) if name in _SAYS else ""

    def _grounding(self, name: str, args: Sequence[Any], answer: Any) -> str:
        kind = {"from_task": "task", "from_user": "user", "from_tool": "result"}[name]
        value = args[0]
        if answer is True:
            fits = (
                said.place
                for said in self.earlier.said
                if said.place.kind == kind and said.texts.from_user(value) and args[1:] in ((), (said.place.tool,))
            )
            return next((place.text for place in fits), "")
        if isinstance(value, (Mapping, list, tuple)):
            return "not all of it stands there"
        place = self.earlier.first(value)
        return f"it {'was' if place.kind == 'user' else 'stands'} {place.text}"

    def _of(self, tool: str) -> list[Call]:
        return [call for call in self.earlier.calls if call.tool == tool]

    def _succeeded(self, tool: str, args: Mapping[str, Any] | None = None) -> str:
        calls = self._of(tool)
        asked = [call for call in calls if _has(call, args)]
        good = [call for call in asked if call.outcome == "ok"]
        if good:
            return f"{tool} succeeded {_steps(call.step for call in good)}"
        if not calls:
            return f"{tool} has not run"
        if asked:
            return f"{_ran(tool, asked)}, and did not succeed"
        if len(calls) == 1:
            with_what = ", ".join(f"{key} {cel.literal(calls[0].args.get(key))}" for key in args or {})
            return f"{_ran(tool, calls)}, with {with_what}"
        with_what = ", ".join(f"{key} {cel.literal(value)}" for key, value in (args or {}).items())
        return f"{_ran(tool, calls)}, never with {with_what}"

    def _count(self, tool: str, args: Mapping[str, Any] | None = None) -> str:
        return _ran(tool, [call for call in self._of(tool) if _has(call, args)])

    def _failures(self, tool: str) -> str:
        failed = [call.step for call in self._of(tool) if call.outcome == "error"]
        return f"{tool} failed {_steps(failed)}" if failed else self._unfailing(tool)

    def _recent(self, tool: str) -> str:
        row: list[int] = []
        for call in self._of(tool):
            row = [] if call.outcome == "ok" else [*row, call.step] if call.outcome == "error" else row
        if not row and any(call.outcome == "error" for call in self._of(tool)):
            return f"{tool} has not failed since it last succeeded"
        return f"{tool} failed {_steps(row)}" if row else self._unfailing(tool)

    def _unfailing(self, tool: str) -> str:
        return f"{tool} has not failed" if self._of(tool) else f"{tool} has not run"

    def _refused(self, tool: str) -> str:
        steps = [step for step, name in self.earlier.denied if name == tool]
        return f"{tool} was refused {_steps(steps)}" if steps else f"{tool} was not refused"

    def _repeats(self, tool: str) -> str:
        row = self._last(lambda call: call.tool == tool)
        return f"{tool} ran {_steps(row)}" if row else f"the last to run was not {tool}"

    def _row(self, call: Mapping[str, Any]) -> str:
        row = self._last(lambda one: one.tool == call["tool"] and freeze(one.args) == freeze(call["args"]))
        return f"this call ran {_steps(row)}" if row else "the last to run was not this call"

    def _last(self, fits: Callable[[Call], bool]) -> list[int]:
        row: list[int] = []
        for call in self.earlier.calls:
            row = [*row, call.step] if fits(call) else []
        return row

    def _latest(self, tool: str) -> str:
        calls = self._of(tool)
        return f"{tool} last ran @{calls[-1].step}" if calls else f"{tool} has not run"

    def _values(self, tool: str, arg: str) -> str:
        good = [call for call in self._of(tool) if call.outcome == "ok" and arg in call.args]
        if not good:
            return f"{tool} has not succeeded with {arg}"
        told = [f"{cel.literal(call.args[arg])} @{call.step}" for call in good[-_MANY:]]
        return f"{tool} had {arg} {'... ' if len(good) > _MANY else ''}{_listed(told)}"

    def _asked(self, call: Mapping[str, Any]) -> str:
        """Say what came of asking the person about a call."""
        answer = "nobody was asked about exactly this call"
        for one in self.earlier.calls:
            tool = self.earlier.toolset.tools.get(one.tool)
            about = one.args.get("tool"), freeze(one.args.get("args") or {})
            if tool is not None and isinstance(tool.run, ConfirmRun) and about == (call["tool"], freeze(call["args"])):
                answer = f"the person said {'yes' if one.data is True else 'no'} @{one.step}"
            elif one.tool == call["tool"] and freeze(one.args) == freeze(call["args"]) and "yes" in answer:
                answer = f"{answer}, which @{one.step} has used"
        return answer


_SAYS: Final[Mapping[str, Callable[..., str]]] = {
    "succeeded": Because._succeeded,  # noqa: SLF001 - this module's own
    "count_calls": Because._count,  # noqa: SLF001
    "count_failures": Because._failures,  # noqa: SLF001
    "count_recent_failures": Because._recent,  # noqa: SLF001
    "count_denied": Because._refused,  # noqa: SLF001
    "repeats": Because._repeats,  # noqa: SLF001
    "last_result": Because._latest,  # noqa: SLF001
    "last_args": Because._latest,  # noqa: SLF001
    "steps_since": Because._latest,  # noqa: SLF001
    "sum_args": Because._values,  # noqa: SLF001
    "distinct_args": Because._values,  # noqa: SLF001
}


def _has(call: Call, args: Mapping[str, Any] | None) -> bool:
    return all(key in call.args and freeze(call.args[key]) == freeze(value) for key, value in (args or {}).items())


def _ran(tool: str, calls: Sequence[Call]) -> str:
    if not calls:
        return f"{tool} has not run"
    times = {1: "once", 2: "twice"}.get(len(calls), f"{len(calls):,} times")
    return f"{tool} ran {times}, {_steps(call.step for call in calls)}"


def _steps(steps: Iterable[int]) -> str:
    named = [f"@{step}" for step in steps]
    return f"{'... ' if len(named) > _MANY else ''}{_listed(named[-_MANY:])}"


def _listed(words: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1])))
