"""What cases show of rules, for people: text, Markdown, JSON, and one page of HTML that needs nothing else.

Invariants:
* The rules that no case proves are named, each with its line, and so are the conditions seen one way only.
* Figures are rounded down: 100 % is said of everything alone.
"""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence
from typing import Any, Final

from ledgercli.casework.coverage import ConditionSeen, Coverage, RuleSeen
from ledgercli.reports.cells import WIDTH, cells, inert, pad
from ledgercli.reports.markdown import code, table, text
from ledgercli.reports.screen import Screen
from ledgercli.reports.summary import counted
from ledgercli.sources import Problem

_HEAD: Final = ("failed", "passed", "n/a", "untold")
_MANY: Final = 20  # conditions that are told of


def percent(value: float) -> str:
    """Return a percentage with one digit, never rounded up."""
    tenths = int(value * 10 + 1e-9)
    return f"{tenths // 10}%" if tenths % 10 == 0 else f"{tenths // 10}.{tenths % 10}%"


def summary(coverage: Coverage) -> str:
    """Return the figures in one line."""
    rules, conditions = coverage.rules.values(), coverage.conditions.values()
    proved, ways = sum(one.proved for one in rules), sum(one.ways for one in conditions)
    return (
        f"rules {percent(coverage.proved)} ({proved:,} of {len(rules):,} proved)  "
        f"conditions {percent(coverage.both_ways)} ({ways:,} of {2 * len(conditions):,} ways)"
    )


def missed(coverage: Coverage, threshold: float) -> bool:
    """Whether rules or conditions are covered less than asked."""
    return min(coverage.proved, coverage.both_ways) + 1e-9 < threshold


def write_text(screen: Screen, coverage: Coverage) -> None:
    """Write what was seen of each rule, and what was not."""
    screen.line()
    rules = _ordered(coverage)
    width = max([cells(screen.safe(rule.name)) for rule in rules], default=0)
    screen.line(pad("rule", width) + "".join(f"{word:>8}" for word in _HEAD))
    for rule in rules:
        numbers = "".join(f"{count:>8,}" for count in _counts(rule))
        screen.line(pad(screen.safe(rule.name), width) + numbers + ("" if rule.proved else "  not proved"))
    screen.line()
    if coverage.unproved:
        screen.line("no case proves")
        for rule in coverage.unproved:
            screen.line(f"  {screen.safe(rule.name)}  {screen.safe(f'{rule.file}:{rule.line}')}{_why(rule)}")
    if coverage.one_sided:
        screen.line("seen one way only")
        for one in coverage.one_sided[:_MANY]:
            place = f"  {screen.safe(f'{one.file}:{one.line}:{one.column}')}  {_way(one)}  "
            screen.line(place + screen.cut([screen.safe(one.text)], max(WIDTH - cells(place), 24)))
        if len(coverage.one_sided) > _MANY:
            screen.line(f"  ... {len(coverage.one_sided) - _MANY:,} more: --format json, --lcov, --html")
    screen.line(summary(coverage))


def _counts(rule: RuleSeen) -> tuple[int, int, int, int]:
    return rule.failed, rule.passed, rule.other, rule.untold


def _why(rule: RuleSeen) -> str:
    verb = "held" if rule.grants else "failed"
    if rule.untold:
        return f"  (never {verb} but for what is not known)"
    return f"  (never {verb})" if rule.passed else "  (never applied)"


def _way(one: ConditionSeen) -> str:
    if one.ways:
        return "never false" if one.held else "never true"
    return "cannot be told" if one.untold else "never asked"


def _ordered(coverage: Coverage) -> list[RuleSeen]:
    return sorted(coverage.rules.values(), key=lambda one: (one.file, one.line))


# ---- other forms


def to_json(coverage: Coverage) -> dict[str, Any]:
    """Return it as data."""
    return {
        "rules": [_rule_json(rule) for rule in _ordered(coverage)],
        "conditions": [_condition_json(one) for one in _conditions(coverage)],
        "rules_percent": int(coverage.proved * 10) / 10,
        "conditions_percent": int(coverage.both_ways * 10) / 10,
        "not_proved": [rule.name for rule in coverage.unproved],
    }


def _conditions(coverage: Coverage) -> list[ConditionSeen]:
    return sorted(coverage.conditions.values(), key=lambda one: (one.file, one.line, one.column))


def _rule_json(rule: RuleSeen) -> dict[str, Any]:
    failed, passed, other, untold = _counts(rule)
    said = {"rule": rule.name, "file": rule.file, "line": rule.line, "proved": rule.proved}
    return said | {"failed": failed, "passed": passed, "did_not_apply": other, "could_not_be_told": untold}


def _condition_json(one: ConditionSeen) -> dict[str, Any]:
    said = {"text": one.text, "file": one.file, "line": one.line, "column": one.column}
    return said | {"true": one.held, "false": one.failed, "could_not_be_told": one.untold}


def markdown_lines(coverage: Coverage) -> Iterator[str]:
    """Yield it as Markdown."""
    yield text(summary(coverage))
    yield ""
    rows = [
        (code(rule.name), *map(str, _counts(rule)), _why(rule).strip(" ()") if not rule.proved else "")
        for rule in _ordered(coverage)
    ]
    yield from table(("rule", "failed", "passed", "did not apply", "could not be told", ""), rows)


def to_problems(coverage: Coverage) -> Iterator[Problem]:
    """Yield a note for each rule that no case proves."""
    for rule in coverage.unproved:
        message = f"no case proves {rule.name}{_why(rule)}"
        yield Problem("rule-not-proved", message, rule.file, rule.line, severity="note")


_STYLE: Final = (
    "body{font:15px/1.5 system-ui,sans-serif;margin:2em;max-width:70em}table{border-collapse:collapse}"
    "td,th{padding:.2em .8em;text-align:left;border-bottom:1px solid #ddd}td.n{text-align:right}"
    "tr.no td{background:#fde8e8}code{font-family:ui-monospace,monospace}"
)


def html_lines(coverage: Coverage) -> Iterator[str]:
    """Yield it as one page."""
    yield "<!DOCTYPE html>"
    yield '<html lang="en"><head><meta charset="utf-8"><title>Policy coverage</title>'
    yield f"<style>{_STYLE}</style></head><body>"
    yield f"<h1>Policy coverage</h1><p>{_safe(summary(coverage))}</p>"
    for file in dict.fromkeys(rule.file for rule in _ordered(coverage)):
        rules = [rule for rule in _ordered(coverage) if rule.file == file]
        yield f"<h2><code>{_safe(file)}</code></h2><p>{counted(len(rules), 'rule')}</p>"
        yield from _html_table(
            ("line", "rule", "failed", "passed", "did not apply", "could not be told"), map(_html_rule, rules)
        )
        conditions = [one for one in _conditions(coverage) if one.file == file]
        yield from _html_table(
            ("line", "condition", "true", "false", "could not be told"), map(_html_condition, conditions)
        )
    yield "</body></html>"


def _html_table(head: Sequence[str], rows: Any) -> Iterator[str]:
    yield f"<table><tr>{''.join(f'<th>{word}</th>' for word in head)}</tr>"
    yield from rows
    yield "</table>"


def _html_rule(rule: RuleSeen) -> str:
    return _html_row(rule.line, rule.name, _counts(rule), good=rule.proved)


def _html_condition(one: ConditionSeen) -> str:
    return _html_row(one.line, one.text, (one.held, one.failed, one.untold), good=one.ways == 2)


def _html_row(line: int, name: str, counts: Sequence[int], *, good: bool) -> str:
    cells_ = "".join(f'<td class="n">{count:,}</td>' for count in counts)
    return f'<tr{"" if good else " class=no"}><td class="n">{line}</td><td><code>{_safe(name)}</code></td>{cells_}</tr>'


def _safe(said: str) -> str:
    return html.escape(inert(said))
