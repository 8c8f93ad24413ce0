"""Makes the answer from the final state.

Invariants:
* The final state is all it sees; pure, unless a model writes the answer.
* A part that cannot be told shows as `?`; an answer is never a traceback.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ledgercli import cel
from ledgercli.functions import Moment
from ledgercli.history import History
from ledgercli.scenario import Scenario
from ledgercli.state import State
from ledgercli.vocabulary import Vocabulary

#: Writes the answer, from the final state.
Writer = Callable[[State], str]


class Responder:
    """The scenario's `answer`, compiled; without one the answer is `state.final_answer`.

    Arguments:
        scenario: says how the answer is made.
        vocabulary: the names; problems are added to its `problems`.
        writer: asks the model that writes the answer; without it nobody is asked, and such an answer is not known.

    """

    def __init__(self, scenario: Scenario, vocabulary: Vocabulary, writer: Writer | None = None) -> None:
        self.by_model = scenario.file.writer is not None
        self._writer = writer
        self._text = None
        if scenario.file.answer_text is not None:
            env = vocabulary.state_env()
            self._text = vocabulary.text(scenario.document, ("answer",), scenario.file.answer_text, env)

    def answer(self, state: State, history: History, now: cel.Timestamp) -> Any:
        """Return the answer: a value if the text is one `{…}`, else text; null if nothing is known yet.

        Raises:
            EngineError: the model that writes it cannot be asked, or says nothing that can be used.

        """
        if self.by_model:
            return None if self._writer is None else self._writer(state)
        if self._text is None:
            return state.tree["final_answer"]
        roots = {"state": state.tree, "now": now}
        moment = Moment(history, state)
        if self._text.single:
            return _json(self._text.value(roots, moment))
        return self._text.render(roots, moment)


def _json(answer: cel.Answer) -> Any:
    """The value, if it is known and a ledger can hold it."""
    try:
        return cel.to_json(answer.value) if answer.known else None
    except cel.EvalError:
        return None
