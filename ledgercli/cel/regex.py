r"""`matches()`: regular expressions in RE2's dialect, on Python's `re` where that is proven safe.

Invariants:
* Python's `re` runs a pattern only if `regex_proof` bounds its work by a constant times the length or its square, and
  then only on texts short enough for that bound; everything else runs on `google-re2`, or is an error that says so.
* What Python gets is written anew from the tree: `$` is the end of the text alone, `\d \w \s \b` are ASCII.
* Since only a yes or no is asked, a repetition at either end of a pattern counts with its least number.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from ledgercli.cel.regex_proof import Cost, bound
from ledgercli.cel.regex_rewrite import chained, emit, trimmed
from ledgercli.cel.regex_syntax import NeedsRe2Error, PatternError, parse
from ledgercli.cel.types import BOOL, STRING, EvalError, Function, Meter

_WORK = 400_000_000  # steps of Python's matcher that one search may need in the worst case: about a second
_SHORTEST = 2_000  # a pattern whose bound allows less than this many characters is not worth running
_DEGREE = 2


@dataclass(frozen=True, slots=True)
class Compiled:
    """A pattern ready to run.

    Arguments:
        search: answers something true if the pattern occurs in a text.
        cost: the bound on its work.
        longest: the longest text it may be given.

    """

    search: Callable[[str], Any]
    cost: Cost
    longest: float


@lru_cache(maxsize=1024)
def compile_pattern(pattern: str) -> Compiled:
    """The compiled form of `pattern`; an `EvalError` says why there is none."""
    try:
        node = trimmed(parse(pattern))
        chain = chained(node)
        cost = Cost(1, chain.width + 2) if chain else bound(node)
        longest = _longest_text(cost)
    except NeedsRe2Error as reason:
        return _with_re2(pattern) or _refuse(pattern, reason)
    if cost.degree > 1 and (better := _with_re2(pattern)):
        return better
    return Compiled(re.compile(chain.pattern if chain else emit(node)).search, cost, longest)


def _longest_text(cost: Cost) -> float:
    """The longest text for which the bound is within what one search may cost."""
    longest = float((_WORK / cost.factor) ** (1 / cost.degree))
    if cost.degree > _DEGREE or longest < _SHORTEST:
        raise NeedsRe2Error("the work could grow with a high power of the text's length")
    return longest


def matches(meter: Meter, text: str, pattern: str) -> bool:
    """Whether `pattern` occurs in `text`."""
    compiled = compile_pattern(pattern)
    if len(text) > compiled.longest:
        raise EvalError(
            f"the regular expression {pattern[:60]!r} may be slow on a text of {len(text):,} characters "
            f"(it can take {int(compiled.longest):,}): pip install 'ledgercli[re2]'"
        )
    meter.spend(4 + (len(pattern) >> 2) + (compiled.cost.at(len(text)) >> 12))
    return bool(compiled.search(text))


def _refuse(pattern: str, reason: NeedsRe2Error) -> Compiled:
    raise NeedsRe2Error(
        f"the regular expression {pattern[:60]!r} is not one that Python's own matcher may run ({reason}): "
        "simplify it, or pip install 'ledgercli[re2]'"
    )


def _with_re2(pattern: str) -> Compiled | None:
    """The pattern on Google's own engine, if that is installed."""
    try:
        import re2  # type: ignore[import-not-found, import-untyped,unused-ignore]
    except ImportError:
        return None
    options = re2.Options()
    options.log_errors = False
    try:
        compiled = re2.compile(pattern, options)
    except re2.error as problem:
        raise PatternError(f"regular expression {pattern[:60]!r}: {problem}") from None

    def search(text: str) -> Any:
        try:
            return compiled.search(text)
        except UnicodeEncodeError:
            raise EvalError("matches(): the text holds half of a surrogate pair") from None

    return Compiled(search, Cost(1, 1), float("inf"))


MATCHES: Final[tuple[Function, ...]] = (
    Function("matches", (STRING, STRING), BOOL, matches, method=True, meter=True),
    Function("matches", (STRING, STRING), BOOL, matches, meter=True),
)
