"""A decision engine that asks a model before every step.

Invariants:
* What the model gets is made of the state and the ledger's lines, so a run that goes on needs nothing else.
* A reply that cannot be used becomes feedback in the next prompt; after `FAULTS` in a row the run ends with an error.
* The calls of one reply are proposed one by one, each once what came of those before it is known.
* What asking took is told once: with the first call that a reply led to, or with what ends the run.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Final

from ledgercli import cel
from ledgercli.decision import Limit
from ledgercli.errors import EngineError
from ledgercli.history import History
from ledgercli.model import calling
from ledgercli.model.accounting import Untold
from ledgercli.model.calling import Usage
from ledgercli.model.folding import FoldWriter
from ledgercli.model.reading import Fault, Reply, read
from ledgercli.model.request import Request, request
from ledgercli.model.settings import Settled
from ledgercli.prompting import Prompter
from ledgercli.records import Line, Proposal
from ledgercli.redaction import holds_mask
from ledgercli.rulebook import Rulebook
from ledgercli.state import State

FAULTS: Final = 3  # replies in a row that cannot be used
_KEY: Final = Fault("key", "Your reply held a key, so no part of it was used.")

#: Asks once: the reply, and what it took.
Asker = Callable[[Request], tuple[Reply, Usage]]


class ModelEngine:
    """Asks a model.

    Arguments:
        settled: the model and how it is asked.
        rulebook: the tools and rules.
        asker: what is asked in place of the model.
        folds: writes what older steps came to, where a model does.

    Its `keep` takes each request before it is sent.

    """

    def __init__(
        self, settled: Settled, rulebook: Rulebook, asker: Asker | None = None, folds: FoldWriter | None = None
    ) -> None:
        settings = settled.settings
        self.settled = settled
        self.keep: Callable[[Request], None] = lambda _request: None
        self._tools = rulebook.toolset.tools
        self._prompter = Prompter(
            rulebook, template=settled.template, offer=settings.offer, select=settings.select, calls=settled.calls,
            template_name=settings.template or "template",
        )  # fmt: skip
        self._asker = asker or (lambda asked: calling.ask(settings, asked))
        self._folds = folds
        self._untold = Untold(settings.model)
        self._spent = 0.0
        self._next: deque[Proposal] = deque()
        self._waiting: dict[int, Proposal] = {}
        self._answered: dict[int, Proposal] = {}

    def take(self, line: Line) -> None:
        """Take in a line of the run's ledger, as it was written; every line, in order."""
        self._prompter.take(line)
        kind = line["kind"]
        if self._folds is not None:
            self._folds.take(line)
        if kind in ("intent", "step", "summary", "close") and line.get("engine") is not None:
            self._spent += line["engine"]["cost"] or 0
        if kind in ("intent", "step") and line["verdict"] is not None:
            self._answered.pop(line["verdict"].get("approval"), None)
        if kind == "step" and line["outcome"] == "waiting" and not holds_mask(line["action"]["args"]):
            self._waiting[line["step"]] = Proposal.from_json(line["action"])
        elif kind == "approval" and line["step"] in self._waiting:
            self._answered[line["step"]] = self._waiting.pop(line["step"])
        elif kind == "rollback":
            self._next.clear()
            self._waiting.clear()
            self._answered.clear()

    def summarised(self) -> Line | None:
        """Have older steps summed up, where that is due and a model does it.

        Returns:
            The `summary` line without its time; its `text` is None where that model wrote nothing that can be used.

        """
        if self._folds is None or self._is_spent():
            return None
        return self._folds.write(self._prompter, self.keep)

    def rehearse(self, state: State, now: cel.Timestamp) -> None:
        """Make a prompt that nobody gets.

        Raises:
            TemplateError: the template cannot be filled in.

        """
        for fault in (None, _KEY.what):
            self._prompter.prompt(state, History(str(state.tree["task"])), now, fault)

    def propose(self, state: State, history: History, now: cel.Timestamp) -> Proposal | Limit:
        """Return the next call: one that somebody has answered, one more of the last reply, or what the model says.

        Raises:
            EngineError: the model cannot be asked, or says nothing that can be used.

        """
        if self._answered:
            return self._answered.pop(min(self._answered))
        if self._next:
            return self._next.popleft()
        found: Fault | None = None
        for _ in range(FAULTS):
            if self._is_spent():
                return Limit("max_cost")
            prompt = self._prompter.prompt(state, history, now, found.what if found else None)
            made = self._ask(request(prompt.messages, prompt.offered, self._tools, self.settled.calls))
            if not isinstance(made, Fault):
                first, *rest = made
                self._next.extend(rest)
                return Proposal(first.tool, first.args, first.call_id, self._untold.told())
            found = made
        assert found is not None, "there was a reply"
        name = self.settled.settings.model
        raise EngineError(f"{name}: {FAULTS} replies in a row could not be used; of the last it was told: {found.what}")

    def unrecorded(self) -> Mapping[str, Any] | None:
        """Return what asking took that led to no step, once; None if nothing is left to tell."""
        return self._untold.told()

    def _ask(self, asked: Request) -> list[Proposal] | Fault:
        """Ask once and read the reply."""
        settings = self.settled.settings
        self.keep(asked)
        reply, usage = self._asker(asked)
        self._untold.add(asked.digest, usage)
        whole = "\n".join([reply.said, *(f"{one.name} {one.arguments} {one.call_id}" for one in reply.calls)])
        found = _KEY if calling.repeats_key(settings, whole) else read(reply, self.settled.calls)
        if isinstance(found, Fault):
            found = Fault(found.kind, calling.clean(settings, found.what))
            self._untold.fault(found.kind, calling.clean(settings, reply.said))
        if settings.max_cost is not None and usage.cost is None:
            raise EngineError(f"{settings.model}: the server does not say how many tokens it took; max_cost needs that")
        return found

    def _is_spent(self) -> bool:
        most = self.settled.settings.max_cost
        return most is not None and self._spent + (self._untold.cost or 0) >= most
