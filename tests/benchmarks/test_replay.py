"""What judging recorded runs again costs: ratios of CPU time and of memory; absolute figures are printed only."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import time
from pathlib import Path

import orjson
import pytest

from ledgercli.replay.verifying import replay
from ledgercli.shelf import Shelf
from tests.benchmarks.parts import book, peak, ratio, say
from tests.benchmarks.test_books import keep_books
from tests.benchmarks.test_reading import parse

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(900)]
STEPS = 10_000
FILES, EACH = 10_000, 100

REPLAYED = """
import sys
from ledgercli.replay.verifying import replay
from ledgercli.shelf import Shelf
found = replay(sys.argv[1], Shelf())
assert found.divergence is None and found.steps == int(sys.argv[2]), found
"""
SPIN = """
import sys, time
from concurrent.futures import ProcessPoolExecutor
def spin(loops):
    total = 0
    for number in range(loops):
        total += number * number
    return total
if __name__ == "__main__":
    jobs, loops = int(sys.argv[1]), 20_000_000
    began = time.perf_counter()
    if jobs == 1:
        spin(loops)
    else:
        with ProcessPoolExecutor(jobs) as pool:
            list(pool.map(spin, [loops // jobs] * jobs))
    print(time.perf_counter() - began)
"""


def written(folder: Path, steps: int) -> Path:
    """A ledger of so many steps, each its own call, under ten rules."""
    path = folder / f"{steps}.ledger.jsonl"
    sum(keep_books(book(folder), path, steps))
    return path


def longer(path: Path, short: Path, steps: int) -> Path:
    """A ledger of more steps made of a shorter one, whose steps come again with numbers that go on; chained anew."""
    lines = [orjson.loads(line) for line in short.read_bytes().splitlines()]
    prev, seq = None, 0
    repeated = (line for _ in range(steps // STEPS) for line in lines[1:-1])
    with path.open("wb", buffering=1 << 20) as file:
        for line in (lines[0], *repeated, lines[-1]):
            said = {**line, "seq": seq}
            if line["kind"] == "step":
                said["step"] = seq
            elif line["kind"] == "close":
                said |= {"steps": steps, "lines": seq + 1}
            data = orjson.dumps({**said, "prev": prev}) + b"\n"
            prev = "sha256:" + hashlib.sha256(data).hexdigest()
            file.write(data)
            seq += 1
    return path


def test_replaying_costs_at_most_twenty_times_the_parsing(tmp_path: Path) -> None:
    path, shelf = written(tmp_path, STEPS), Shelf()
    assert replay(path, shelf).divergence is None
    found = ratio(lambda: replay(path, shelf), lambda: parse(path), loops=1, pairs=7)
    assert say("replay : orjson, 10,000 steps", found) <= 20


def test_a_million_steps_take_the_memory_of_ten_thousand(tmp_path: Path) -> None:
    short = written(tmp_path, STEPS)
    long = longer(tmp_path / "long.ledger.jsonl", short, 1_000_000)
    peaks = []
    for path, steps in ((short, STEPS), (long, 1_000_000)):
        began = time.perf_counter()
        peaks.append(peak(REPLAYED, path, steps))
        print(f"\n{steps:,} steps: {time.perf_counter() - began:.1f} s, peak {peaks[-1] / 1024:.1f} MB")
    assert peaks[1] <= 1.2 * peaks[0]


def command(folder: Path, *arguments: str) -> tuple[float, bytes]:
    began = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "ledgercli", "replay", "ledgers", *arguments],
        cwd=folder,
        capture_output=True,
        check=True,
    )
    return time.perf_counter() - began, done.stdout


def spun(folder: Path, jobs: int) -> float:
    (folder / "spin.py").write_text(SPIN)
    return float(
        subprocess.run([sys.executable, "spin.py", str(jobs)], cwd=folder, capture_output=True, check=True).stdout
    )


def test_a_million_steps_in_ten_thousand_files_and_two_processes(tmp_path: Path) -> None:
    one = written(tmp_path, EACH)
    (tmp_path / "ledgers").mkdir()
    for number in range(FILES):
        shutil.copyfile(one, tmp_path / "ledgers" / f"{number:05}.ledger.jsonl")
    alone, said = command(tmp_path, "--jobs", "1")
    both, same = command(tmp_path, "--jobs", "2")
    assert said == same == b"same: 10,000 ledgers, 1,000,000 steps\n"
    spin = spun(tmp_path, 1) / spun(tmp_path, 2)
    print(f"\n1,000,000 steps in 10,000 files: {1e6 / alone:,.0f} steps a second, {1e6 / both:,.0f} with --jobs 2")
    print(f"speed-up of --jobs 2: {alone / both:.2f}, of a two-process spin: {spin:.2f}")
