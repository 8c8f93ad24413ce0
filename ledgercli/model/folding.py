"""What older steps came to, written by a model for the one that decides.

Invariants:
* It ends no run: where the model cannot be asked, or what it says may not be used, counts tell of the steps as before.
* Each fold is asked for once, and the ledger says what came of it, so that a run that goes on has the same prompts.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

from ledgercli.errors import EngineError
from ledgercli.model import calling
from ledgercli.model.accounting import Untold
from ledgercli.model.calling import Usage
from ledgercli.model.failing import ModelError
from ledgercli.model.reading import Reply
from ledgercli.model.request import Request
from ledgercli.prompting import Prompter
from ledgercli.records import Line
from ledgercli.scenario import ModelSettings


class FoldWriter:
    """Asks a model for folds.

    Arguments:
        settings: the model and how it is asked.
        capped: whether the run may cost no more than so much, so that a reply without a price is the last.
        asker: what is asked in place of the model.

    """

    def __init__(
        self,
        settings: ModelSettings,
        *,
        capped: bool = False,
        asker: Callable[[Request], tuple[Reply, Usage]] | None = None,
    ) -> None:
        self._settings = settings
        self._capped = capped or settings.max_cost is not None
        self._asker = asker or (lambda asked: calling.ask(settings, asked))
        self._untold = Untold(settings.model)
        self._spent, self._unpriced = 0.0, False

    def take(self, line: Line) -> None:
        """Take in a line of the run's ledger, for what the folds up to there cost."""
        if line["kind"] == "summary" and line.get("engine") is not None:
            cost = line["engine"]["cost"]
            self._spent += cost or 0
            self._unpriced = self._unpriced or cost is None

    def write(self, prompter: Prompter, keep: Callable[[Request], None] = lambda _asked: None) -> Line | None:
        """Have the newest fold written.

        Arguments:
            prompter: has taken in all lines.
            keep: takes the request before it is sent.

        Returns:
            The `summary` line without its time; its `text` is None where there is none that can be used. None where
            no fold is due, or no more may be asked.

        """
        if self._is_spent():
            return None
        said: list[str] = []

        def ask(messages: Sequence[Mapping[str, str]]) -> str:
            asked = Request(messages, {})
            keep(asked)
            said.append(self._said(asked))
            return said[-1]

        line = prompter.fold(ask)
        if line is None:
            return None
        if line["text"] is None and said[-1]:
            self._untold.fault("fold", said[-1])
        return {**line, "engine": self._untold.told()}

    def _said(self, asked: Request) -> str:
        """Return what the model says; nothing where that cannot be used at all."""
        began = time.monotonic()
        try:
            reply, usage = self._asker(asked)
        except EngineError as error:
            self._untold.add(asked.digest, Usage(None, None, None, time.monotonic() - began))
            self._untold.fault(error.kind if isinstance(error, ModelError) else "error", error.message)
            return ""
        self._untold.add(asked.digest, usage)
        text = calling.clean(self._settings, reply.content or "").encode("utf-8", "replace").decode()
        wrong = self._wrong(reply)
        if wrong is not None:
            self._untold.fault(wrong, text)
            return ""
        return text

    def _wrong(self, reply: Reply) -> str | None:
        if calling.repeats_key(self._settings, reply.content or ""):
            return "key"
        if reply.finish == "length":
            return "cut"
        return None if (reply.content or "").strip() else "empty"

    def _is_spent(self) -> bool:
        most = self._settings.max_cost
        return (self._capped and self._unpriced) or (most is not None and self._spent >= most)
