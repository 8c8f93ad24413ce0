"""What the oracle does otherwise than we.

Each quirk is undone on one side; only if both sides then agree is it taken as the cause of a difference.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any
from unittest import mock

from ledgercli import cel
from ledgercli.cel import evaluate, values
from ledgercli.cel.formatting import format_text

from .expressions import Made
from .judges import CRASH, ENV, ERROR, NAMES, ROOTS, Oracle, normal, ours


def slots(made: Made, oracle: Oracle) -> bool:
    """After a loop that ended early, a later `cel.bind` may find the loop's variable in its place."""
    return oracle(made.flat) == ours(made.ours)


def double_negation(made: Made, oracle: Oracle) -> bool:
    """`!!x` is taken for `x`, whatever that is."""
    return oracle(made.chosen) == ours(made.ours)


def like_the_oracle(*functions: cel.Function) -> Callable[[Made, Oracle], bool]:
    """Whether we agree once we have these functions of the oracle."""
    env = cel.Env(NAMES, functions, strict=False)
    return lambda made, oracle: ours(made.ours, env) == oracle(made.theirs)


def short_substring(text: str, start: int, end: int) -> str:
    """Of two arguments, the second must lie before the end of the text, unless both are equal."""
    if not 0 <= start <= end <= len(text) or (end == len(text) and start < end):
        raise cel.EvalError("out of range")
    return text[start:end]


def rough_format(meter: cel.Meter, template: str, arguments: list[Any]) -> str:
    """`%s` writes doubles with six digits, times without zeros at the end, and bytes that are not UTF-8 as they are."""

    def rough(value: Any) -> Any:
        if isinstance(value, float) and math.isfinite(value):
            return f"{value:g}"
        if isinstance(value, bytes):
            return value.decode("utf-8", "surrogateescape")
        if isinstance(value, cel.Timestamp):
            return re.sub(r"(\.\d*?)0+Z", r"\1Z", str(value))
        if isinstance(value, dict):
            return {key: rough(item) for key, item in value.items()}
        return [rough(item) for item in value] if isinstance(value, list) else value

    if "%s" not in template:
        raise cel.EvalError("no difference here")
    return format_text(meter, template, rough(arguments))


def rough_text(made: Made, oracle: Oracle) -> bool:
    """`%s` is rough (see above), NaN may be written with a sign, and a key that is not UTF-8 crashes it."""
    theirs = oracle(made.theirs)
    if theirs == CRASH:
        return "%s" in made.theirs
    return repr(theirs).replace("-nan", "nan") == repr(ours(made.ours)) or rough_texts(made, oracle)


rough_texts = like_the_oracle(
    cel.Function("format", (cel.STRING, cel.ListType()), cel.STRING, rough_format, method=True, meter=True),
    cel.Function("bytes", (cel.STRING,), cel.BYTES, lambda text: text.encode("utf-8", "surrogateescape")),
)


def odd_key(made: Made, oracle: Oracle) -> bool:
    """`in` a map is an error for null, bytes, lists, … where we say that there is no such key."""

    def contains(meter: cel.Meter, item: Any, container: Any) -> bool:
        if values.is_map(container) and type(item) not in (int, cel.UInt, float, str, bool):
            raise cel.EvalError("no such overload")
        return values_contains(meter, item, container)

    values_contains = values.contains
    with mock.patch.object(values, "contains", contains):
        checked = cel.check(cel.parse(made.ours), ENV)
        answer = evaluate.answer(checked, ROOTS)
    return (("value", normal(answer.value)) if answer.known else ERROR) == oracle(made.theirs)


QUIRKS: dict[str, Callable[[Made, Oracle], bool]] = {
    "a bound variable has another's value": slots,
    "!!x is x": double_negation,
    "substring up to the end is an error": like_the_oracle(
        cel.Function("substring", (cel.STRING, cel.INT, cel.INT), cel.STRING, short_substring, method=True)
    ),
    "the text of %s, and of NaN": rough_text,
    "in a map, an odd key is an error": odd_key,
    "int(bool) works if the type is not known before": like_the_oracle(cel.Function("int", (cel.BOOL,), cel.INT, int)),
}
