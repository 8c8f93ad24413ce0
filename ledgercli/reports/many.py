"""What many runs came to, in a few lines: counts, and the rule that refused most."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from ledgercli.reports.cells import pad
from ledgercli.reports.screen import Screen
from ledgercli.reports.summary import counted

_LABEL: Final = 11  # cells of `completed  `


def many_lines(screen: Screen, name: str, runs: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield what the runs of a scenario came to, each as `RunReport.end` returned it."""
    ends = Counter(run["status"] for run in runs)
    width = max([_LABEL, *(len(status) + 2 for status in ends)])
    steps = sum(run["steps"] for run in runs)
    yield f"{screen.safe(name)}  {counted(len(runs), 'run')}"
    yield ""
    for status, number in ends.most_common():
        yield f"{pad(status, width)}{number:,} of {len(runs):,}"
    for word in ("denied", "shadowed", "failed"):
        number = sum(run[word] for run in runs)
        if number or word == "denied":
            yield f"{pad(word, width)}{number:,} of {counted(steps, 'proposal')}{_most(screen, word, runs)}"
    for folder in sorted({run["ledger"].rpartition("/")[0] for run in runs}):
        yield pad("ledgers", width) + screen.paint(screen.safe(folder + "/" if folder else "."), "dim")


def _most(screen: Screen, word: str, runs: Sequence[Mapping[str, Any]]) -> str:
    """Return `, most by RULE (6)`."""
    rules: Counter[str] = Counter()
    for run in runs:
        rules.update(run.get(f"{word}_by", {}))
    most = rules.most_common(1)
    return "".join(f", most by {screen.safe(rule.rpartition('/')[2])} ({number:,})" for rule, number in most)
