"""Random expressions, judged by us and by Google's C++ implementation: the same value, or no value for both.

Where they do not agree, the difference must be one of at most six quirks of the oracle (`quirks.py`), undone to see that
it alone is the cause; each is counted. `CEL_DIFFERENTIAL` is the number of expressions (50,000),
`CEL_DIFFERENTIAL_SEED` their seed: `fresh` for a new one, which is printed.
"""

from __future__ import annotations

import os
import random
from collections import Counter

import pytest

from ledgercli.cel.library import STANDARD
from ledgercli.cel.parser import MACROS as KNOWN_MACROS

from .expressions import MACROS, OPERATORS, Maker
from .judges import ERROR, Oracle, ours
from .quirks import QUIRKS

pytestmark = [pytest.mark.conformance, pytest.mark.timeout(1800)]


def test_random_expressions_agree_with_the_oracle() -> None:
    wanted = os.environ.get("CEL_DIFFERENTIAL_SEED", "20260801")
    seed = random.SystemRandom().getrandbits(32) if wanted == "fresh" else int(wanted)
    count = int(os.environ.get("CEL_DIFFERENTIAL", "50000"))
    maker, oracle = Maker(seed), Oracle()
    depths = errors = 0
    differences: Counter[str] = Counter()
    unexplained = []
    for _ in range(count):
        made = maker.expression()
        depths += made.depth
        mine, theirs = ours(made.ours), oracle(made.theirs)
        errors += mine == ERROR
        if mine != theirs:
            kind = next((name for name, holds in QUIRKS.items() if holds(made, oracle)), None)
            if kind is None:
                unexplained.append((made.ours, mine, theirs))
            else:
                differences[kind] += 1
    oracle.stop()
    print(f"seed {seed}: {count} expressions, mean depth {depths / count:.1f}, {errors / count:.0%} end in an error")
    print(f"the oracle's type check refused {oracle.rejected} that were then run without it")
    print(f"differences: {dict(differences)}")
    assert not unexplained, unexplained[:20]
    assert len(QUIRKS) <= 6
    assert sum(differences.values()) < count / 1000
    assert errors >= count / 4
    assert depths >= 4 * count
    if count >= 2_000:
        assert {f"cel.{name}" if name == "bind" else name for name in KNOWN_MACROS} <= maker.used
        assert {one.name for one in STANDARD} | OPERATORS | MACROS == maker.used
