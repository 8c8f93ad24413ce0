"""A run, or what many came to, as Markdown, for comments and tickets.

Invariants:
* The same as on a terminal; text that somebody else wrote cannot become structure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ledgercli import paths
from ledgercli.records import Line
from ledgercli.reports import values
from ledgercli.reports.cells import cut
from ledgercli.reports.markdown import code, table, text
from ledgercli.reports.recount import money, seconds_text
from ledgercli.reports.summary import counted, tally_text
from ledgercli.summariser.folds import told
from ledgercli.summariser.recount import Asked, Recount, asked_of, calls_of
from ledgercli.tracing import path_text

_LONG = 160  # cells of a value


def head(run: Recount) -> Iterator[str]:
    """Yield what stands before the steps."""
    scenario = (run.names("scenario") or ["run"])[0]
    packs = ", ".join(run.names("pack")) or "none"
    yield f"### {text(scenario)}: {text(run.opening['state']['task'])}"
    yield from ("", f"{code(run.ledger)}, packs {text(packs)}", "")
    yield from table(("step", "", "call", "why"), ())


def step_row(line: Line) -> str:
    """Return a step as a row of the table."""
    verdict, result = line["verdict"] or {}, line["result"] or {}
    why = [f"{code(found['rule'].rpartition('/')[2])} {text(found['error'])}" for found in verdict.get("failed", ())]
    if line["outcome"] == "error":
        why.append(code(values.shown(result.get("error", result.get("data")), _LONG)))
    call = values.call(line["action"]["tool"], line["action"]["args"])
    shown = values.shown(result.get("data"), _LONG) if line["verdict"] is None else cut(call, _LONG)
    return f"| {line['step']} | {line['outcome']} | {code(shown)} | {' '.join(why)} |"


def end(run: Recount, tree: paths.Map, stopped: int | None = None) -> Iterator[str]:
    """Yield what stands behind the steps."""
    facts = list(run.facts(tree))
    if facts:
        yield ""
        rows = [
            (code(path_text(one.path)), code(values.shown(one.value, _LONG)), f"{text(one.by)} @{one.step}")
            for one in facts
        ]
        yield from table(("fact", "value", "set by"), rows)
    status = run.status if stopped is None else f"after @{stopped}"
    yield from ("", f"**{text(status)}** {text(tally_text(run.tally))}")
    yield from _asked(run.asked())


def many(runs: Sequence[Recount]) -> Iterator[str]:
    """Yield what many runs came to."""
    ends: dict[str, list[Recount]] = {}
    for run in runs:
        ends.setdefault(run.status, []).append(run)
    yield f"### {counted(len(runs), 'run')}"
    yield ""
    rows = [
        (text(status), str(len(of)), str(sum(one.tally.steps for one in of)), str(_denied(of)))
        for status, of in sorted(ends.items(), key=lambda entry: -len(entry[1]))
    ]
    yield from table(("status", "runs", "proposals", "denied"), rows)
    yield ""
    calls = sorted(calls_of(runs).items(), key=lambda entry: (-sum(entry[1].values()), entry[0]))
    yield from table(("tool", "calls"), [(code(tool), told(of)) for tool, of in calls])
    yield from _asked(asked_of(runs))


def _denied(runs: Sequence[Recount]) -> int:
    return sum(one.tally.outcomes["denied"] for one in runs)


def _asked(asked: Mapping[str, Asked]) -> Iterator[str]:
    if asked:
        yield ""
        rows = [
            (
                code(model),
                "not known" if one.tokens is None else f"{one.tokens:,}",
                "no price known" if one.cost is None else text(money(one.cost)),
                seconds_text(one.seconds),
            )
            for model, one in asked.items()
        ]
        yield from table(("model", "tokens", "cost", "time"), rows)
