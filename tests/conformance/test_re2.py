"""Random regular expressions, judged by our own parser and matcher and by RE2 itself.

What RE2 refuses we refuse; what we accept for Python's `re` gives RE2's answers. (`\\B` is left out: RE2 finds it between
the bytes of one character.)
"""

from __future__ import annotations

import random
import sys

import pytest

from ledgercli.cel.regex import compile_pattern
from ledgercli.cel.regex_syntax import NeedsRe2Error, PatternError

pytestmark = pytest.mark.conformance

ATOMS = [
    *("a", "b", "c", "1", "_", "é", "k", "K", "ſ", "ß", " ", "-", ".", "^", "$"),
    *(r"\d", r"\w", r"\s", r"\W", r"\b", r"\n", r"\.", r"\A", r"\z", r"\x41", r"\101", r"\Qa.b\E"),
    *("[ab]", "[^a]", "[a-c]", r"[\w-]", r"[^\d]", "[[:digit:]]", "[[:^alpha:]]", "[]a]", "[a-]"),
    *("(?i)a", "(?s).", "(?m)^", "(?m)$"),
]
GROUPS = ["(", "(?:", "(?i:", "(?s:", "(?m:", "(?U:", "(?-s:", "(?P<n>"]
REPEATS = ["*", "+", "?", "*?", "+?", "??", "{2}", "{1,3}", "{2,}", "{0}", "{0,2}"]
NOISE = "ab()[]{}*+?|\\.^$-1,dwQE:"
LETTERS = "aabbcckKſßẞ1_é\n -.AB"


def pattern(choose: random.Random, depth: int) -> str:
    way = choose.random()
    if depth == 0 or way < 0.25:
        return choose.choice(ATOMS)
    if way < 0.5:
        return "".join(pattern(choose, depth - 1) for _ in range(choose.randint(1, 3)))
    if way < 0.7:
        return choose.choice(GROUPS) + "|".join(pattern(choose, depth - 1) for _ in range(choose.randint(1, 3))) + ")"
    if way < 0.93:
        return f"(?:{pattern(choose, depth - 1)}){choose.choice(REPEATS)}"
    if way < 0.96:
        return "".join(choose.choice(NOISE) for _ in range(choose.randint(1, 6)))
    return f"{pattern(choose, depth - 1)}.*{pattern(choose, depth - 1)}"


def test_random_patterns_have_the_meaning_of_re2(monkeypatch: pytest.MonkeyPatch) -> None:
    re2 = pytest.importorskip("re2", reason="google-re2 is what is compared with")
    monkeypatch.setitem(sys.modules, "re2", None)  # so that we do not run it ourselves
    compile_pattern.cache_clear()
    options = re2.Options()
    options.log_errors = False
    choose = random.Random(20260801)
    accepted = asked_for_re2 = refused = 0
    for _ in range(10_000):
        text = pattern(choose, 4)
        try:
            theirs = re2.compile(text, options)
        except re2.error:
            theirs = None
        try:
            ours = compile_pattern(text)
        except PatternError:
            assert theirs is None, text
            refused += 1
            continue
        except NeedsRe2Error:
            asked_for_re2 += 1
            continue
        assert theirs is not None, text
        accepted += 1
        for _ in range(10):
            sample = "".join(choose.choice(LETTERS) for _ in range(choose.choice((0, 1, 2, 3, 5, 8, 13))))
            assert bool(ours.search(sample)) is bool(theirs.search(sample)), (text, sample)
    print(f"patterns: {accepted} on Python's re, {asked_for_re2} need re2, {refused} refused by both")
    assert accepted > 5_000
    assert refused > 100
    compile_pattern.cache_clear()
