"""What comparing ledgers costs: CPU time beside DeepDiff's, memory, and the worst that can be compared."""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from ledgercli.diff import ledgers as diff
from ledgercli.diff.layers import Counting
from ledgercli.diff.ledgers import Difference
from ledgercli.records import Line
from tests.benchmarks.parts import peak
from tests.stories import LATER, call, unique, write

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(900)]
STEPS = 10_000
EDITS = {"edit": 100, "insert": 50, "remove": 50}
MEGABYTE = 1 << 20


def edited(steps: int, edits: dict[str, int], seed: int = 7) -> tuple[list[Line], list[Line], list[tuple[Any, ...]]]:
    """Unique steps, the same with edits here and there (never side by side), and what must be found."""
    spots = [3 * place for place in random.Random(seed).sample(range(steps // 3), sum(edits.values()))]
    done = dict(zip(spots, [what for what, number in edits.items() for _ in range(number)], strict=True))
    a, b, expected = [unique(number) for number in range(steps)], [], []
    for place, row in enumerate(a):
        match done.get(place):
            case "edit":
                b.append(unique(place, amount=-1))
                expected.append(("~", place + 1, len(b)))
            case "remove":
                expected.append(("-", place + 1, None))
            case "insert":
                b += [unique(steps + place), row]
                expected.append(("+", None, len(b) - 1))
            case None:
                b.append(row)
    return a, b, expected


def written(folder: Path, a: list[Line], b: list[Line]) -> tuple[Path, Path]:
    return write(folder / "a.ledger.jsonl", a), write(folder / "b.ledger.jsonl", b, at=LATER)


def found_in(found: Difference) -> Iterator[tuple[Any, ...]]:
    for one in found.stretches:
        if one.sign != "=":
            numbers = [side.numbers[at] for side, places in ((found.a, one.a), (found.b, one.b)) for at in places]
            yield one.sign, numbers[0] if one.a else None, numbers[-1] if one.b else None


def in_detail(a: Path, b: Path) -> Difference:
    """Compare, and tell all that differs in every changed step."""
    found = diff.differences(a, b, Counting())
    for one in found.stretches:
        if one.sign == "~":
            assert list(diff.details(one, *found.layers(one)))
    return found


def spent(a: Path, b: Path) -> float:
    started = time.process_time()
    in_detail(a, b)
    return time.process_time() - started


def test_ten_thousand_steps_exactly_and_in_half_of_deepdiffs_time_for_a_thousand(tmp_path: Path) -> None:
    from deepdiff import DeepDiff

    a, b, expected = edited(STEPS, EDITS)
    large = written(tmp_path / "large", a, b)
    assert list(found_in(in_detail(*large))) == expected
    small = written(tmp_path / "small", *edited(STEPS // 10, {what: n // 10 for what, n in EDITS.items()})[:2])
    records = [[orjson.loads(line) for line in path.read_bytes().splitlines()] for path in small]
    pairs = []
    for _ in range(5):
        mine = spent(*large)
        started = time.process_time()
        DeepDiff(*records)
        pairs.append((mine, time.process_time() - started, spent(*small)))
    whole, theirs, thousand = (statistics.median(pair[side] for pair in pairs) for side in range(3))
    ratio = statistics.median(pair[0] / pair[1] for pair in pairs)
    print(f"\n10,000 steps {whole:.2f} s, 1,000 steps {thousand:.3f} s; DeepDiff on 1,000 {theirs:.2f} s: {ratio:.2f}")
    assert ratio <= 0.5


MEASURED = """
import sys
from ledgercli import cli
assert cli.main(["diff", *sys.argv[1:], "-v"]) == 1
"""


def test_it_takes_less_than_200_megabytes(tmp_path: Path) -> None:
    a, b, _ = edited(STEPS, EDITS)
    kilobytes = peak(MEASURED, *written(tmp_path, a, b))
    print(f"\n10,000 steps: {kilobytes / 1024:.0f} MB")
    assert kilobytes * 1024 < 200 * MEGABYTE


def test_nothing_alike_and_one_step_ten_thousand_times(tmp_path: Path) -> None:
    a, b, _ = edited(STEPS, EDITS)
    again = call("get_order", {"status": "done"}, order_id="#W1")
    other = call("charge", {"status": "done"}, order_id="#W2")
    worst = {
        "nothing alike": (a, [unique(STEPS + number) for number in range(STEPS)]),
        "nothing alike, tools neither": (a, [call(f"tool_{number}", n=number) for number in range(STEPS)]),
        "one step 10,000 times": ([again] * STEPS, [again] * STEPS),
        "one step 10,000 and 9,000 times": ([again] * STEPS, [again] * (STEPS - 1000)),
        "one step, another in between": ([other, *[again] * STEPS], [*[again] * (STEPS // 2), other, other]),
        "two steps in turn": ([again, other] * (STEPS // 2), [other, again] * (STEPS // 2)),
    }
    usual = compared(tmp_path / "usual", a, b)
    print(f"\nas usual: {usual:.2f} s")
    for name, rows in worst.items():
        seconds = compared(tmp_path / name.replace(" ", "-"), *rows)
        print(f"{name}: {seconds:.2f} s, {seconds / usual:.1f} times as usual")
        assert seconds < 20 * usual


def compared(folder: Path, a: list[Line], b: list[Line]) -> float:
    """CPU seconds of the whole comparison, with counts, without details."""
    paths = written(folder, a, b)
    started = time.process_time()
    diff.differences(*paths, Counting()).counts()
    return time.process_time() - started
