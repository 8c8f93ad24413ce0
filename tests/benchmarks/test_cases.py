"""What judging cases costs, beside the bare verdict; 10,000 cases on 100 rules are reported."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from ledgercli.casework.groups import Groups
from ledgercli.casework.judging import Judge
from ledgercli.casework.preparing import Preparer, Ready
from ledgercli.casework.running import judged_case
from tests.benchmarks.parts import ARGS, CONSTRAINTS, FACTS, pack_text, ratio, say, toolset_text

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(600)]
CASES, FILES, MOST = 10_000, 10, 6.0


def write(folder: Path, number: int, cases: int) -> str:
    """A file of cases: a third each as the file has it, with a state of its own, with a past."""
    args = f"{{account: {ARGS['account']}, amount: {ARGS['amount']}, currency: {ARGS['currency']}}}"
    facts = ", ".join(
        f"{name}: {str(value).lower() if isinstance(value, bool) else value}" for name, value in FACTS.items()
    )
    lines = [
        f"cases: bench{number}",
        "packs: [bench.yaml]",
        "toolset: bench.tools.yaml",
        "state:",
        f"  facts: {{{facts}}}",
    ]
    lines += [f"  constraints: {{limit: {CONSTRAINTS['limit']}, currencies: [EUR, USD]}}", "tests:"]
    for one in range(cases):
        lines += [f"  - name: case {one}", f"    propose: {{tool: pay, args: {args}}}"]
        more = ("expect: allow", "state: {facts: {tier: 1}}", f"history: [{{tool: pay, args: {args}, success: false}}]")
        lines += [f"    {more[one % 3]}"] if one % 3 else []
        lines += ["    expect: deny" if one % 3 == 1 else "    expect: allow"]
    path = folder / f"bench{number}.cases.yaml"
    path.write_text("\n".join(lines) + "\n")
    return str(path)


def files(folder: Path, count: int, cases: int) -> list[str]:
    (folder / "bench.yaml").write_text(pack_text(100))
    (folder / "bench.tools.yaml").write_text(toolset_text())
    return [write(folder, number, cases) for number in range(count)]


@pytest.mark.parametrize(("what", "loops"), [("allow", 10), ("deny", 1)])
def test_a_case_costs_at_most_six_verdicts(tmp_path: Path, what: str, loops: int) -> None:
    """Made ready, judged and compared, against the verdict on the same proposal in the same state."""
    group, problems = Groups().of(files(tmp_path, 1, 150)[0])
    assert group is not None, problems
    judge = Judge(group)
    whole = [(case, next(iter(Preparer(group).each(*case)))) for case in group.cases]
    chosen = [(case, ready) for case, ready in whole if isinstance(ready, Ready) and ready.wanted.effect == what]
    assert {judged_case(judge, ready).came for _, ready in chosen} == {"passed"}
    preparer = Preparer(group)

    def cases() -> None:
        for case, _ in chosen:
            for ready in preparer.each(*case):
                judged_case(judge, ready)

    def verdicts() -> None:
        for _, ready in chosen:
            assert isinstance(ready, Ready)
            judge.verdict(ready)

    assert say(f"cases : bare verdicts, 100 rules, {what}", ratio(cases, verdicts, loops=loops)) <= MOST


def test_ten_thousand_cases_are_reported(tmp_path: Path) -> None:
    names = files(tmp_path, FILES, CASES // FILES)
    groups, judged, loading, judging = Groups(), 0, 0.0, 0.0
    for name in names:
        started = time.process_time()
        group, _ = groups.of(name)
        assert group is not None
        loading += time.process_time() - started
        started = time.process_time()
        judge = Judge(group)
        judged += sum(judged_case(judge, case).came == "passed" for case in Preparer(group).all())
        judging += time.process_time() - started
    assert judged == CASES
    print(f"\n10,000 cases, 100 rules: read and checked in {loading:.1f} s, judged in {judging:.2f} s")
    print(f"({CASES / judging:,.0f} cases a second, {CASES / (loading + judging):,.0f} with reading)")
