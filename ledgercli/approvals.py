"""Answers of people to calls that need an approval.

Invariants:
* An answer is good for one execution of the same tool with the same arguments, under the same packs and with the same
  values read; if any of these has changed it no longer counts.
* What moves by itself from step to step is left out of that, or no answer would ever hold.
* Secrets count as their masks: the digest of a short one could be found by trying.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ledgercli.errors import LedgerCliError
from ledgercli.records import Proposal, Verdict, bound

_MOVING = ("now", "state.step", "steps_since(")  # reads that differ at every step


@dataclass(frozen=True, slots=True)
class _Answer:
    step: int
    yes: bool
    tool: str
    bound: Mapping[str, str]


@dataclass(slots=True)
class Approvals:
    """The calls that wait, and the answers that have not been used.

    Arguments:
        hidden: masks what must not be written.

    """

    hidden: Callable[[Any], Any]
    _waiting: dict[int, tuple[Proposal, Verdict]] = field(default_factory=dict)
    _answers: list[_Answer] = field(default_factory=list)

    def wait(self, proposal: Proposal, verdict: Verdict) -> None:
        """Take in a call that waits, at the step of its verdict."""
        self._waiting[verdict.step] = (proposal, verdict)

    def bound(self, step: int) -> dict[str, str]:
        """What an answer to a waiting step holds for.

        Raises:
            LedgerCliError: that step does not wait.

        """
        if step not in self._waiting:
            raise LedgerCliError(f"step {step} does not wait for an approval")
        return self._bound(*self._waiting[step])

    def answer(self, step: int, *, yes: bool, tied: Mapping[str, str]) -> None:
        """Take in the answer to a waiting step; `tied` is what it holds for, as `bound` says it."""
        proposal, _ = self._waiting.pop(step)
        self._answers.append(_Answer(step, yes, proposal.tool, tied))

    def answered(self, proposal: Proposal, verdict: Verdict) -> Verdict:
        """Return the verdict with the answer that was given for exactly this; as it is without one."""
        tied = self._bound(proposal, verdict) if self._answers else {}
        for answer in self._answers:
            if answer.tool == proposal.tool and answer.bound == tied:
                return verdict.answered(answer.step, yes=answer.yes)
        return verdict

    def use(self, verdict: Verdict) -> None:
        """Use up the answer that stands in a verdict."""
        self._answers = [answer for answer in self._answers if answer.step != verdict.approval]

    def forget(self) -> None:
        """Drop all: the state that they were asked in is gone."""
        self._waiting.clear()
        self._answers.clear()

    @property
    def settled(self) -> bool:
        """Whether nothing waits and no answer is unused."""
        return not self._waiting and not self._answers

    @property
    def waiting(self) -> Mapping[int, tuple[Proposal, Verdict]]:
        """The calls that nobody has answered, by step."""
        return self._waiting

    def _bound(self, proposal: Proposal, verdict: Verdict) -> dict[str, str]:
        reads = {path: value for path, value in verdict.reads.items() if not path.startswith(_MOVING)}
        return bound(self.hidden(proposal.args), verdict.packs, self.hidden(reads))
