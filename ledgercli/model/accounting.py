"""What asking a model took, added up until a line of the ledger tells it."""

from __future__ import annotations

from typing import Any, Final

from ledgercli.model.calling import Usage

_SAID: Final = 200  # characters of a reply that could not be used
_DIGITS: Final = 3  # of seconds


class Untold:
    """What no line has told yet.

    Arguments:
        model: who was asked.

    """

    def __init__(self, model: str) -> None:
        self._model = model
        self._clear()

    def _clear(self) -> None:
        self._prompt: str | None = None
        self._usages: list[Usage] = []
        self._faults: list[dict[str, str]] = []

    def add(self, prompt: str, usage: Usage) -> None:
        """Add what one reply took, to the prompt of that digest."""
        self._prompt = prompt
        self._usages.append(usage)

    def fault(self, kind: str, said: str) -> None:
        """Note that the reply could not be used."""
        self._faults.append({"kind": kind, "said": said[:_SAID].encode("utf-8", "replace").decode()})

    @property
    def cost(self) -> float | None:
        """What all of it cost; None where that is not known of one."""
        costs = [usage.cost for usage in self._usages if usage.cost is not None]
        return sum(costs) if len(costs) == len(self._usages) else None

    def told(self) -> dict[str, Any] | None:
        """Return all of it as a line says it, and begin anew; None if there is nothing."""
        if self._prompt is None:
            return None
        said: dict[str, Any] = {
            "model": self._model,
            "tokens": {
                "prompt": _total([usage.prompt for usage in self._usages]),
                "completion": _total([usage.completion for usage in self._usages]),
            },
            "cost": self.cost,
            "seconds": round(sum(usage.seconds for usage in self._usages), _DIGITS),
            "prompt": self._prompt,
        }
        said |= {"faults": self._faults} if self._faults else {}
        self._clear()
        return said


def _total(counts: list[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None
