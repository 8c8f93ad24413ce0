"""What differs in two versions of a step, in words: shared by the reports of a diff.

Invariants:
* What follows from something else that is told is not told again, unless all is asked for: what a result changed in the
  state, what was read where another rule answered, the outcome where one side has no result.
* Rules keep their whole names; values may be cut by whoever shows them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from ledgercli.diff import ledgers as diff
from ledgercli.diff.layers import Layer
from ledgercli.diff.ledgers import Difference, Stretch
from ledgercli.paths import ABSENT
from ledgercli.reports import values
from ledgercli.reports.cells import inert

_FINDINGS: Final = ("failed", "warned", "overridden", "shadowed")
_NO_RESULT: Final[Mapping[str, str]] = {"denied": "none", "waiting": "none yet: it waits for an approval"}


class Pair(NamedTuple):
    """One thing that differs.

    Arguments:
        label: what it is.
        a: how it is in A, in parts.
        b: how it is in B, in parts.
        whole: whether it is never cut.

    """

    label: str
    a: Iterable[str]
    b: Iterable[str]
    whole: bool = False


def pairs(difference: Difference, stretch: Stretch, safe: Callable[[str], str], *, everything: bool) -> Iterator[Pair]:
    """Yield what differs in a changed step.

    Arguments:
        difference: what it is part of.
        stretch: the step.
        safe: makes a text fit to be shown.
        everything: also what follows from something else.

    """
    a, b = difference.layers(stretch)
    judged = difference.judged(stretch)
    lost = "result" in stretch.layers and (_result(a) is None) != (_result(b) is None)
    follows = judged or "proposal" in stretch.layers or "result" in stretch.layers
    hidden = {"verdict": judged, "result": lost, "state": follows}
    found = [one for one in diff.details(stretch, a, b) if everything or not hidden.get(one.layer, False)]
    ranked = {layer: [one for one in found if one.layer == layer] for layer in stretch.layers}
    for layer in stretch.layers:
        if layer == "verdict" and judged:
            yield Pair("verdict", [verdict(a["verdict"], safe)], [verdict(b["verdict"], safe)], whole=True)
        if layer == "result" and lost:
            yield Pair("result", _came_to(a), _came_to(b))
        for one in ranked[layer]:
            label = one.label.removeprefix("action.").removeprefix("verdict.")
            yield Pair(label, shown(one.a), shown(one.b))


def verdict(said: Any, safe: Callable[[str], str]) -> str:
    """Return a verdict in a few words: `deny by refund_of_own_order`; of an approval, the answer."""
    if said is None:
        return "none"
    if "answer" in said:
        return safe(said["answer"])
    told = safe(said["effect"])
    for key in _FINDINGS:
        names = [safe(found["rule"].rpartition("/")[2]) for found in said.get(key, ())]
        if names:
            told += f"{' by' if key in ('failed', 'warned') else f', {key}:'} {', '.join(names)}"
    return told + (", answered by a person" if "approval" in said else "")


def call(line: Mapping[str, Any]) -> Iterator[str]:
    """Yield a step as text, in parts: its call, or what a user said."""
    action = line["action"]
    if line["verdict"] is not None:
        yield from values.call(action["tool"], action["args"])
        return
    yield inert(f"{action['tool']} ")
    yield from values.parts((line.get("result") or {}).get("data"))


def shown(value: Any) -> Iterable[str]:
    """Return a value in parts; what is not there is `none`, which no value looks like."""
    return ["none"] if value is ABSENT else values.parts(value)


def _result(layers: Mapping[Layer, Any]) -> Any:
    return (layers["result"] or {}).get("result")


def _came_to(layers: Mapping[Layer, Any]) -> Iterable[str]:
    """Return what came of a step where the other had no result."""
    outcome, result = str((layers["result"] or {}).get("outcome") or "it did not end"), _result(layers)
    if result is None:
        return [_NO_RESULT.get(outcome, f"none: {outcome}")]
    return values.parts(result.get("data") if result.get("success") else result.get("error"))
