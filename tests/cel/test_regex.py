"""`matches()`: RE2's dialect, and a bound on the work of every pattern that Python's `re` runs."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from ledgercli.cel import regex, regex_sets
from ledgercli.cel.regex import compile_pattern, matches
from ledgercli.cel.regex_syntax import NeedsRe2Error, PatternError
from ledgercli.cel.types import EvalError, Limits, Meter


@pytest.fixture(autouse=True)
def _without_re2(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The answers must not depend on whether `google-re2` happens to be installed."""
    monkeypatch.setitem(sys.modules, "re2", None)
    compile_pattern.cache_clear()
    yield
    compile_pattern.cache_clear()


def found(pattern: str, text: str) -> bool:
    return matches(Meter(Limits()), text, pattern)


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("ubb", "hubba", True),
        ("", "", True),
        ("^a$", "a\n", False),  # Python's $ would match before a last newline
        ("(?m)^a$", "b\na\nb", True),
        ("(?m)a$", "a\nb", True),
        (r"a\z", "ba", True),
        (r"\Aa", "ba", False),
        ("a.b", "a\nb", False),
        ("(?s)a.b", "a\nb", True),
        ("(?s:.)b", "\nb", True),
        ("[^a]b", "\nb", True),
        (r"^\d$", "٣", False),  # ASCII only
        (r"^\w$", "é", False),
        (r"^\W$", "é", True),
        (r"^\s$", "\x0b", False),  # RE2's \s has no vertical tab
        (r"^[[:space:]]$", "\x0b", True),
        (r"^\D\S$", "ab", True),
        (r"é\b", "é", False),
        (r"\bab\b", "x ab!", True),
        (r"\Bb", "ab", True),
        (r"\Bb", " b", False),
        ("(?i)STRASSE|ß", "ẞ", True),
        ("(?i)k", "\u212a", True),
        ("(?i)[a-c]x", "BX", True),
        ("(?i)é", "É", True),
        ("(?i)ı", "i", False),
        (r"(?i)^\W$", "ſ", False),
        ("(?i:a)b", "Ab", True),
        ("(?i:a)b", "AB", False),
        ("(?i)a(?-i:b)", "Ab", True),
        ("(?i)a(?-i:b)", "AB", False),
        ("a(?i)b|c", "C", True),
        ("(?U)a+?b", "aab", True),
        ("^(?P<x>a)(?<y>b)(?:c)$", "abc", True),
        ("[[:alpha:]][[:^digit:]]", "ab", True),
        ("^[]a]+$", "a]", True),
        ("^[^]a]$", "b", True),
        ("^[a-]+$", "-a", True),
        (r"^[\d\-x]+$", "1-x", True),
        (r"^[\x41-\x{43}\n]$", "B", True),
        (r"\x{1F600}", "😀", True),
        (r"\101\0", "A\x00", True),
        (r"\Qa.b\E+c", "a.bbc", True),
        (r"\Qa.b", "axb", False),
        (r"\Q\Ea", "a", True),
        (r"\a\f\n\r\t\v\.\/", "\a\f\n\r\t\v./", True),
        ("a{2}", "aa", True),
        ("^a{2,3}$", "aaaa", False),
        ("^(ab){1,}c{0}$", "abab", True),
        ("a{,2}", "a{,2}", True),  # no count: characters
        ("^x{", "x{", True),
        ("(a|b|)c", "c", True),
        ("^(a|)*b", "aab", True),
        ("()*b", "b", True),
        ("^*a", "a", True),
        ("refund.*order.*cancel", "refund\norder cancel", False),
        ("refund.*order.*cancel", "x refund an order, or cancel", True),
        ("(?s)refund.+order$", "refund\norder", True),
        ("^a.*b$", "a\nb", False),
        ("^.*$", "", True),
        ("(foo|bar).*baz", "a bar, a baz", True),
        ("(foo|ba).*baz", "a bar, a baz", True),
        ("(ab){2}.*c", "ababc", True),
        ("a.*[\n]", "a\n", True),
        (r"[\s\S]{1}x", "\nx", True),
    ],
)
def test_matches(pattern: str, text: str, *, expected: bool) -> None:
    assert found(pattern, text) is expected


@pytest.mark.parametrize(
    ("pattern", "part"),
    [
        ("(?=a)", "lookahead"),
        ("(?!a)", "negative lookahead"),
        ("(?<=a)", "lookbehind"),
        ("(?<!a)", "negative lookbehind"),
        ("(?>a)", "atomic"),
        (r"(a)\1", "backreferences"),
        ("(?P<n>a)(?P=n)", "backreferences"),
        ("(?(1)a)", "conditional"),
        ("(?#x)", "comments"),
        ("(?x)a", "unknown kind of group"),
        ("(?)a", "empty flags"),
        ("a**", "repetition of a repetition"),
        ("a*+", "repetition of a repetition"),
        ("a{2}{3}", "repetition of a repetition"),
        ("*a", "nothing to repeat"),
        ("a|+", "nothing to repeat"),
        ("({2}a)", "nothing to repeat"),
        ("a{1001}", "counts go up to 1000"),
        ("a{3,2}", "the lower first"),
        ("(a{100}){100}", "multiply to more than 1000"),
        ("(", "missing )"),
        (")", "unexpected )"),
        ("[a", "missing ]"),
        ("[a-", "missing ]"),
        ("[b-a]", "runs backwards"),
        ("[[:foo:]]", "unknown class"),
        ("\\", "at the end"),
        (r"\Z", r"the end of the text is \z"),
        (r"\q", "unknown escape"),
        (r"\_", "unknown escape"),
        (r"\é", "unknown escape"),
        (r"\x{110000}", "no such character"),
        ("(" * 60 + ")" * 60, "nest deeper"),
        ("a" * 2001, "2000 characters"),
    ],
)
def test_what_re2_refuses_is_refused_and_explained(pattern: str, part: str) -> None:
    with pytest.raises(PatternError) as caught:
        compile_pattern(pattern)
    assert part in str(caught.value)


@pytest.mark.parametrize(
    "pattern",
    [
        "^(a+)+$",
        "^(a|a)*$",
        "^(a*)*b",
        "^(a|ab|b)*c",
        "^a*a*a*a*b",
        "^(a*a*)+b",
        "^(([a-z])+.)+[A-Z]([a-z])+$",
        "(a?){30}a{30}",
        "^((a{1,10}){1,10}){1,10}b",
        "(a|a|a|a){9}b",
        r"^(\w+\s?)*$",
        "x(a?b?)*c",
        "[ab]+[ab]+[ab]+c",
        f"^({'|'.join(chr(0x4E00 + i) + 'a' for i in range(600))})*b",
        r"\pL",
        r"\P{Greek}",
        r"[\pL]",
    ],
)
def test_what_is_not_proven_safe_asks_for_re2(pattern: str) -> None:
    with pytest.raises(NeedsRe2Error, match=r"pip install 'ledgercli\[re2\]'"):
        compile_pattern(pattern)


HARD = [
    "(a+)+$",
    "(a|a)*$",
    "(a*)*b",
    "a*a*a*a*b",
    "(.*)(.*)(.*)x",
    "^(.*)(.*)(.*)x$",
    "(x+x+)+y+z",
    "a.*a.*a.*b",
    "^(a|b)*c",
    "(a|b)*c$",
    "a+b",
    "ba+c",
    "a[ab]*c",
    "(?i)a[^c]+c",
    "^a+a+b",
    r"^[^@\s]+@[^@\s]+\.[^@\s]+$",
    r"[\w.+-]+@[\w-]+\.[\w.-]+",
    r"^([a-z0-9-]+\.)+[a-z]{2,}$",
    r"^(\d+,)*\d+$",
    r"^\w+(\s+\w+)*$",
    r"^\d{1,3}(\.\d{1,3}){3}$",
    "a{0,100}a{0,100}b",
    "(?:(?:[a-c]{2}){5}d)*e",
    "^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$",
    "^(https?|ftp)://[^ /$.?#].[^ ]*$",
    "((a|b)+ )*x",
]


def test_the_worst_text_of_20000_characters_takes_bounded_work() -> None:
    program = (
        "import sys, json\n"
        "sys.modules['re2'] = None\n"
        "from ledgercli.cel.regex import matches\n"
        "from ledgercli.cel.types import EvalError, Limits, Meter\n"
        "worst = 0\n"
        "for pattern in json.loads(sys.argv[1]):\n"
        "    for unit in ('a', 'ab', 'a1', 'a ', 'a.', 'a@', '1,', 'aaaaaaaab'):\n"
        "        meter = Meter(Limits())\n"
        "        for length in (20_000, 3_000):\n"
        "            text = (unit * length)[:length] + '!'\n"
        "            try:\n"
        "                matches(meter, text, pattern)\n"
        "            except EvalError as problem:\n"
        "                assert 'may be slow' in str(problem) or 'steps' in str(problem), problem\n"
        "            worst = max(worst, meter.spent)\n"
        "print(worst)\n"
    )
    command = [sys.executable, "-c", program, json.dumps(HARD)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=90, check=False)
    assert result.returncode == 0, result.stderr
    assert int(result.stdout) > 0


def test_the_work_of_a_search_is_paid_for() -> None:
    meter = Meter(Limits())
    matches(meter, "ab" * 4_000, "a[ab]*c")
    assert meter.spent > 10_000
    cheap = Meter(Limits())
    matches(cheap, "ab" * 4_000, "abc")
    assert cheap.spent < 50


def test_a_text_too_long_for_the_bound_is_refused() -> None:
    with pytest.raises(EvalError, match=r"may be slow on a text of 100,001 characters .*ledgercli\[re2\]"):
        found("a[ab]*c", "a" * 100_001)


def test_a_compiled_pattern_is_kept() -> None:
    assert compile_pattern("a+b") is compile_pattern("a+b")


def test_folding_follows_unicode_one_for_one() -> None:
    assert regex_sets.fold(regex_sets.of("k")) == regex_sets.of("Kk\u212a")
    assert regex_sets.fold(regex_sets.of("σ")) == regex_sets.of("Σσς")
    assert regex_sets.fold(regex_sets.of("1")) == regex_sets.of("1")
    assert regex_sets.complement(()) == regex_sets.ANY
    assert regex_sets.complement(regex_sets.ANY) == ()


def test_a_set_of_nothing_never_matches() -> None:
    assert not found(r"[^\x{0}-\x{10FFFF}]", "a")


class FakeRe2:
    """What `regex` uses of google-re2: `Options`, `error`, `compile`."""

    class Options:
        log_errors = True

    class error(Exception):  # noqa: N801, N818 - re2's own name
        pass

    def compile(self, pattern: str, options: Any) -> Any:
        assert options.log_errors is False
        if "Nope" in pattern:
            raise self.error("no such class")

        def search(text: str) -> bool:
            text.encode("utf-8")
            return "é" in text

        return SimpleNamespace(search=search)


def test_re2_runs_what_python_may_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "re2", FakeRe2())
    assert found(r"^\pL$", "é")
    assert found("^(a+)+$", "é" * 100_000)
    assert found("a[ab]*c", "é")  # of a square bound: on re2 there is no limit to the text
    assert not found("abc", "é")  # linear: Python's own
    with pytest.raises(PatternError, match="no such class"):
        found(r"\p{Nope}", "a")
    with pytest.raises(EvalError, match="surrogate"):
        found(r"\pL", "\ud800")


def test_matching_does_not_import_re2_for_simple_patterns() -> None:
    assert regex.compile_pattern("abc").longest > 1_000_000
