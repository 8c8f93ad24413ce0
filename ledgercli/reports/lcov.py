"""Coverage as an lcov tracefile: rules as functions, conditions as branches, each in its pack's line.

Invariants:
* A rule counts as called as often as a case has seen it fail (of a grant: hold), which is what it is for.
* A condition is two branches of its line: true and false.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from ledgercli.casework.coverage import ConditionSeen, Coverage, RuleSeen
from ledgercli.reports.cells import inert


def lines(coverage: Coverage) -> Iterator[str]:
    """Yield the lines of the tracefile."""
    rules: dict[str, list[RuleSeen]] = defaultdict(list)
    conditions: dict[str, list[ConditionSeen]] = defaultdict(list)
    for rule in coverage.rules.values():
        rules[rule.file].append(rule)
    for condition in coverage.conditions.values():
        conditions[condition.file].append(condition)
    for file in sorted({*rules, *conditions}):
        yield "TN:"
        yield f"SF:{inert(file)}"
        yield from _of_file(rules[file], conditions[file])
        yield "end_of_record"


def _of_file(rules: list[RuleSeen], conditions: list[ConditionSeen]) -> Iterator[str]:
    rules.sort(key=lambda one: one.line)
    conditions.sort(key=lambda one: (one.line, one.column))
    for rule in rules:
        yield f"FN:{rule.line},{inert(rule.name)}"
    for rule in rules:
        yield f"FNDA:{rule.failed},{inert(rule.name)}"
    yield f"FNF:{len(rules)}"
    yield f"FNH:{sum(rule.proved for rule in rules)}"
    hits: dict[int, int] = {rule.line: rule.failed + rule.passed + rule.untold for rule in rules}
    for number, one in enumerate(conditions):
        asked = one.held + one.failed + one.untold
        hits[one.line] = max(hits.get(one.line, 0), asked)
        for branch, count in enumerate((one.held, one.failed)):
            yield f"BRDA:{one.line},{number},{branch},{count if asked else '-'}"
    yield f"BRF:{2 * len(conditions)}"
    yield f"BRH:{sum(one.ways for one in conditions)}"
    for line, count in sorted(hits.items()):
        yield f"DA:{line},{count}"
    yield f"LF:{len(hits)}"
    yield f"LH:{sum(count > 0 for count in hits.values())}"
