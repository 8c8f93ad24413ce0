"""A run, or what many came to, for people: on a terminal, and as JSON.

Invariants:
* A line a step, as its line is read; what was refused or failed says why below it.
* Paths stand as they are typed in a rule; only values are cut.
* Nothing is shown that does not stand in the ledger; masked values stay masked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from ledgercli import paths
from ledgercli.records import Line
from ledgercli.reports import values
from ledgercli.reports.cells import WIDTH, cells, pad
from ledgercli.reports.many import many_lines
from ledgercli.reports.places import nowhere
from ledgercli.reports.screen import Screen, Style
from ledgercli.reports.steps import Steps
from ledgercli.reports.summary import counted, tally_text
from ledgercli.summariser.folds import told
from ledgercli.summariser.recount import Asked, Fact, Recount, asked_of, calls_of
from ledgercli.tracing import path_text

SCHEMA: Final = "summary/1"
_LABEL: Final = 11  # cells of `completed  `
_FACTS: Final = 20  # facts that are shown without -v
_DEEP: Final = 2  # keys of a path that many facts of one step have in common
_FEW: Final = 3  # facts of one step in one map that are shown each by itself
_TOOLS: Final = 12  # tools that are shown without -v
_WORDS: Final[Mapping[str, tuple[str, Style | None]]] = {
    "ok": ("ok", None),
    "error": ("err", "red"),
    "denied": ("deny", "red"),
    "waiting": ("wait", "yellow"),
    "cancelled": ("stop", "yellow"),
    "unknown": ("lost", "yellow"),
}
_BAD: Final = frozenset({"failed", "error"})


# One run


def step_lines(screen: Screen, line: Line, *, whole: bool = False) -> Iterator[str]:
    """Yield a step in a line, and below it why it was refused or failed; other lines where they say something."""
    steps = Steps(screen, nowhere, 2 if whole else 0)
    if line["kind"] == "step":
        yield from _step(screen, steps, line)
    elif line["kind"] == "approval":
        yield from steps.approval(line)
    elif line["kind"] == "rollback":
        by = f" by {line['by']}" if line.get("by") else ""
        reason = f": {line['reason']}" if line.get("reason") else ""
        yield from steps.message("back", f"to the state after step {line['to']:,}{by}{reason}", "yellow")
    elif line["kind"] == "resume":
        yield from steps.message("again", "the run goes on from here", "yellow")


def _step(screen: Screen, steps: Steps, line: Line) -> Iterator[str]:
    verdict, result = line["verdict"], line["result"] or {}
    before = f"{line['step']:>3} "
    if verdict is None:
        yield f"{before}user  {steps.shown(result.get('data'), steps.room(before + ' ' * 6))}"
        return
    word, style = _WORDS[line["outcome"]]
    if line["outcome"] == "ok" and verdict["effect"] == "warn":
        word, style = "warn", "yellow"
    yield f"{before}{screen.paint(pad(word, 5), style)} {steps.call(line['action'], before + ' ' * 6)}"
    for part in ("failed", "warned", "shadowed"):
        for found in verdict.get(part, ()) if part != "failed" or line["outcome"] != "ok" else ():
            name = found["rule"].rpartition("/")[2]
            yield from steps.message("watch" if part == "shadowed" else "why", f"{name}: {found['error']}")
    if line["outcome"] == "error":
        yield from steps.value("err", result["error"] if "error" in result else result.get("data"), style="red")


def end_lines(
    screen: Screen, run: Recount, tree: paths.Map, stopped: int | None = None, *, whole: bool = False
) -> Iterator[str]:
    """Yield facts and who set them, calls by tool, what it cost, and how the run ended.

    Arguments:
        screen: where they go.
        run: what is known of it.
        tree: the state.
        stopped: the step up to which it was read; None: to its end.
        whole: whether nothing is cut or left out.

    """
    facts = list(run.facts(tree))
    if facts:
        yield from ("", "facts")
        yield from _fact_lines(screen, facts, whole=whole)
    if run.calls:
        yield from ("", "calls")
        yield from _call_lines(screen, run.calls, whole=whole)
    close = run.close or {}
    if close.get("answer") is not None:
        yield from ("", *_answer(screen, close["answer"]))
    yield ""
    status = run.status if stopped is None else f"after @{stopped}"
    width = max(_LABEL, len(status) + 2)
    halting = run.tally.halting
    why = [f"{screen.safe(halting.rpartition('/')[2])} halts"] if status == "halted" and halting else []
    why += [str(close["limit"])] if close.get("limit") else []
    style: Style | None = "red" if status in _BAD else None
    word = screen.paint(status, style) + " " * (width - len(status))
    yield word + tally_text(run.tally) + (f"  ({'; '.join(why)})" if why else "")
    if close.get("error") is not None:
        error = screen.cut(values.parts(close["error"]), WIDTH - width)
        yield f"{screen.paint('error', 'red')}{' ' * (width - 5)}{error}"
    if run.seconds >= 1:
        yield pad("took", width) + seconds_text(run.seconds)
    yield from (pad("cost", width) + one for one in cost_lines(screen, run.asked()))


def _fact_lines(screen: Screen, facts: Sequence[Fact], *, whole: bool) -> Iterator[str]:
    rows = [[fact] for fact in facts] if whole else _together(facts)
    shown = rows if whole else rows[-_FACTS:]
    left = sum(len(row) for row in rows) - sum(len(row) for row in shown)
    if left:
        yield f"  {counted(left, 'earlier fact')} (-v)"
    width = max(cells(screen.safe(row[0].by)) for row in shown)
    digits = len(str(shown[-1][0].step))
    for row in shown:
        fact = row[0]
        path = path_text(fact.path[: _DEEP if len(row) > 1 else None])
        head = f"  @{fact.step:<{digits}} {pad(screen.safe(fact.by), width)}  {screen.safe(path)}"
        if len(row) > 1:
            yield f"{head}  {len(row):,} parts (-v)"
            continue
        head += " = "
        room = None if whole else WIDTH - cells(head)
        if room is not None and room < _LABEL:
            yield head.rstrip()
            head = " " * (digits + width + 8)
            room = WIDTH - cells(head)
        yield head + screen.cut(values.parts(fact.value), room)


def _together(facts: Sequence[Fact]) -> list[list[Fact]]:
    """Return facts, those that one step set in one map together where they are many."""
    groups: dict[tuple[Any, ...], list[Fact]] = {}
    for fact in facts:
        groups.setdefault((fact.step, fact.by, fact.path[:_DEEP]), []).append(fact)
    rows: list[list[Fact]] = []
    for group in groups.values():
        rows += [group] if len(group) > _FEW else [[fact] for fact in group]
    return rows


def _call_lines(screen: Screen, calls: Mapping[str, Mapping[str, int]], *, whole: bool) -> Iterator[str]:
    most = sorted(calls.items(), key=lambda entry: (-sum(entry[1].values()), entry[0]))
    shown = most if whole else most[:_TOOLS]
    width = max(cells(screen.safe(tool)) for tool, _ in shown)
    for tool, of in shown:
        yield f"  {pad(screen.safe(tool), width)}  {told(of)}"
    if len(most) > len(shown):
        yield f"  {counted(len(most) - len(shown), 'more tool')} (-v)"


def cost_lines(screen: Screen, asked: Mapping[str, Asked]) -> Iterator[str]:
    """Yield what asking each model took: `3,912 tokens, $0.01, 4.2 s, openai/gpt-4o`."""
    for model, one in asked.items():
        tokens = "tokens not known" if one.tokens is None else counted(one.tokens, "token")
        cost = "no price known" if one.cost is None else money(one.cost)
        faults = f", {counted(one.faults, 'unusable reply', 'unusable replies')}" if one.faults else ""
        yield f"{tokens}, {cost}, {seconds_text(one.seconds)}{faults}, {screen.safe(model)}"


def money(dollars: float) -> str:
    """Return an amount, with as many digits as tell something."""
    return f"${dollars:,.2f}" if dollars >= 1 or dollars == 0 else f"${dollars:.4g}"


def seconds_text(seconds: float) -> str:
    """Return a span: `0.4 s`, `3 min 20 s`."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes:,} min {rest} s"


def _answer(screen: Screen, answer: Any) -> list[str]:
    if not isinstance(answer, str):
        return [screen.cut(values.parts(answer), None)]
    return [screen.safe(line.expandtabs(4)) for line in answer.rstrip("\n").split("\n")]


# Many


def totals_lines(screen: Screen, runs: Sequence[Recount], *, whole: bool = False) -> Iterator[str]:
    """Yield what many runs came to."""
    scenarios = {name for run in runs for name in run.names("scenario")[:1] or ["run"]}
    name = next(iter(scenarios)) if len(scenarios) == 1 else counted(len(scenarios), "scenario")
    yield from many_lines(screen, name, [{**run.to_json(), "ledger": run.ledger} for run in runs])
    if (seconds := sum(run.seconds for run in runs)) >= 1:
        yield pad("took", _LABEL) + seconds_text(seconds) + " in sum"
    yield from (pad("cost", _LABEL) + one for one in cost_lines(screen, asked_of(runs)))
    calls = calls_of(runs)
    if calls:
        yield from ("", "calls")
        yield from _call_lines(screen, calls, whole=whole)
    denied = _denied(runs)
    if denied:
        yield from ("", "denials by rule")
        width = max(cells(screen.safe(rule)) for rule, _, _ in denied)
        for rule, count, ledgers in denied:
            yield f"  {pad(screen.safe(rule), width)}  {count:,} in {counted(ledgers, 'ledger')}"


def _denied(runs: Sequence[Recount]) -> list[tuple[str, int, int]]:
    """Return each rule with its denials and the number of ledgers that have one, the most first."""
    found: dict[str, list[int]] = {}
    for run in runs:
        for rule, count in run.tally.denials.items():
            found.setdefault(rule, []).append(count)
    ranked = sorted(found.items(), key=lambda entry: (-sum(entry[1]), entry[0]))
    return [(rule.rpartition("/")[2], sum(counts), len(counts)) for rule, counts in ranked]


# JSON


def fact_json(facts: Iterable[Fact]) -> list[dict[str, Any]]:
    """Return facts as they stand in the JSON report."""
    return [{"path": path_text(one.path), "value": one.value, "by": one.by, "step": one.step} for one in facts]


def step_json(line: Line) -> dict[str, Any]:
    """Return a step as it stands in the JSON report."""
    verdict, result = line["verdict"] or {}, line["result"] or {}
    said: dict[str, Any] = {
        "step": line["step"],
        "at": line["at"],
        "action": line["action"],
        "effect": verdict.get("effect"),
        "outcome": line["outcome"],
    }
    refused = [found for part in ("failed", "warned") for found in verdict.get(part, ())]
    said |= {"refused": refused} if refused else {}
    if line["outcome"] == "error":
        said["error"] = result.get("error", result.get("data"))
    return said | ({"engine": line["engine"]} if line.get("engine") else {})


def totals_json(runs: Sequence[Recount], damaged: Sequence[tuple[str, str]], *, interrupted: bool) -> dict[str, Any]:
    """Return what many runs came to."""
    return {
        "schema": SCHEMA,
        "runs": [run.to_json() for run in runs],
        "calls": calls_of(runs),
        "denied_by": {rule: {"denials": count, "ledgers": ledgers} for rule, count, ledgers in _denied(runs)},
        "asked": {model: asked.to_json() for model, asked in asked_of(runs).items()},
        "damaged": [{"ledger": ledger, "error": error} for ledger, error in damaged],
        "interrupted": interrupted,
    }
