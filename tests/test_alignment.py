"""Sequences side by side: right, in order, and quick whatever they are."""

from __future__ import annotations

import time
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledgercli.diff import alignment
from ledgercli.diff.alignment import matches

FEW = st.lists(st.integers(0, 4), max_size=40)


def longest(a: list[int], b: list[int]) -> int:
    """How long a longest common subsequence is."""
    row = [0] * (len(b) + 1)
    for one in a:
        before, row = row, [0]
        for j, other in enumerate(b):
            row.append(before[j] + 1 if one == other else max(before[j + 1], row[-1]))
    return row[-1]


@given(FEW, FEW)
def test_pairs_are_equal_and_rise(a: list[int], b: list[int]) -> None:
    found = matches(a, b)
    assert all(a[i] == b[j] for i, j in found)
    assert all(i < k and j < m for (i, j), (k, m) in pairwise(found))


@given(FEW, FEW)
def test_in_a_small_gap_nothing_longer_is_missed(a: list[int], b: list[int]) -> None:
    assert len(matches(a, b)) == longest(a, b)


@settings(max_examples=10, deadline=None)
@given(st.permutations(range(220)), st.permutations(range(220)))
def test_of_unique_keys_nothing_longer_is_missed(a: list[int], b: list[int]) -> None:
    assert alignment.SMALL < 220 * 220
    assert len(matches(a, b)) == longest(a, b)


@settings(max_examples=20, deadline=None)
@given(st.lists(st.integers(0, 9), max_size=30), st.integers(2, 9), st.integers(2, 9))
def test_of_repeated_keys_pairs_are_equal_and_rise(a: list[int], times: int, others: int) -> None:
    long, other = a * times * 5, a[::-1] * others * 5
    found = matches(long, other)
    assert all(long[i] == other[j] for i, j in found)
    assert all(i < k and j < m for (i, j), (k, m) in pairwise(found))
    assert bool(found) == bool(a)


@given(FEW)
def test_the_same_is_the_same(a: list[int]) -> None:
    assert matches(a, a) == [(i, i) for i in range(len(a))]


def peeled(levels: int) -> list[int]:
    """Keys of which one is unique, and one more once what is behind that is taken off, and so on."""
    keys: list[int] = [0]
    for level in range(1, levels):
        keys += [level, level - 1]
    return keys


N = 10_000
HARD = {
    "nothing alike": (list(range(N)), list(range(N, 2 * N))),
    "one key": ([1] * N, [1] * (N // 2)),
    "one key between others": ([0] + [1] * N + [2], [3] + [1] * (N // 2) + [4]),
    "two keys in turn": ([1, 2] * (N // 2), [2, 1] * (N // 2)),
    "two keys, in blocks": ([1] * (N // 2) + [2] * (N // 2), [2] * (N // 2) + [1] * (N // 2)),
    "backwards": (list(range(N)), list(range(N))[::-1]),
    "peeled": (peeled(N // 2), [-1, *peeled(N // 2)[:-1], -2]),
    "each twice": ([*range(N // 2), *range(N // 2)], [*range(N // 2)[::-1], *range(N // 2)]),
    "a few keys at random": ([i * i % 7 for i in range(N)], [i * 3 % 7 for i in range(N)]),
}


@pytest.mark.parametrize("name", HARD)
def test_no_sequences_take_long(name: str) -> None:
    a, b = HARD[name]
    started = time.process_time()
    found = matches(a, b)
    assert time.process_time() - started < 5
    assert all(a[i] == b[j] for i, j in found)
    assert all(i < k and j < m for (i, j), (k, m) in pairwise(found))


def test_what_can_be_paired_by_hand_is() -> None:
    assert len(matches(*HARD["one key between others"])) == N // 2
    assert len(matches(*HARD["two keys, in blocks"])) == N // 2
    assert len(matches(*HARD["backwards"])) == 1
    assert len(matches(*HARD["two keys in turn"])) >= N // 2


def test_the_greatest_likeness_wins() -> None:
    like = {(0, 0): 1.0, (0, 1): 5.0, (1, 1): 3.0}
    assert alignment.in_order((0, 2, 0, 2), lambda i, j: like.get((i, j), 0.0)) == [(0, 1)]
    like[1, 1] = 4.5
    assert alignment.in_order((0, 2, 0, 2), lambda i, j: like.get((i, j), 0.0)) == [(0, 0), (1, 1)]
    assert alignment.in_order((0, 2, 0, 2), lambda _i, _j: 0.0) == []
