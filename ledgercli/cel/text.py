"""Texts with expressions in braces: `Order {action.args.order_id} is closed`.

Invariants:
* `{{` and `}}` are braces; a brace inside a string of an expression belongs to that string.
* All offsets, of problems too, count in the whole text.
* A text that is exactly one `{…}` keeps its value's type; every other text is a string.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from ledgercli.cel.checker import Checked, Env, check
from ledgercli.cel.evaluate import Answer
from ledgercli.cel.literals import literal
from ledgercli.cel.parser import Parser
from ledgercli.cel.program import Program, compile  # noqa: A004 - `cel.compile`
from ledgercli.cel.syntax import CelSyntaxError, Expr, Problem, Source
from ledgercli.cel.types import STRING, EvalError, Limits, Type

_LIMITS: Final = Limits()


@dataclass(frozen=True, slots=True)
class Text:
    """A text in parts: plain ones as strings, and expressions."""

    source: Source
    parts: tuple[str | Expr, ...]

    @property
    def single(self) -> bool:
        """Whether it is exactly one expression."""
        return len(self.parts) == 1 and isinstance(self.parts[0], Expr)


def parse_text(source: str | Source, limits: Limits = _LIMITS) -> Text:
    """The parts of a text, or a `CelSyntaxError`."""
    if isinstance(source, str):
        source = Source(source)
    text = source.text
    parts: list[str | Expr] = []
    plain: list[str] = []
    offset = 0
    while offset < len(text):
        brace = min((at for at in (text.find("{", offset), text.find("}", offset)) if at >= 0), default=len(text))
        plain.append(text[offset:brace])
        if text[brace : brace + 2] in {"{{", "}}"}:
            plain.append(text[brace])
            offset = brace + 2
        elif text[brace : brace + 1] == "{":
            _flush(plain, parts)
            expr, offset = _expression(source, brace, limits)
            parts.append(expr)
        elif brace < len(text):
            _fail(source, brace, "a } without its {", "a brace that is meant as it stands is written }}")
        else:
            offset = brace
    _flush(plain, parts)
    return Text(source, tuple(parts))


def _flush(plain: list[str], parts: list[str | Expr]) -> None:
    if joined := "".join(plain):
        parts.append(joined)
    plain.clear()


def _expression(source: Source, brace: int, limits: Limits) -> tuple[Expr, int]:
    """The expression behind the brace at that offset, and the offset behind its closing brace."""
    if source.text[brace + 1 :].lstrip()[:1] in {"", "}"}:
        hint = "a brace that is meant as it stands is written {{"
        _fail(source, brace, "there is no expression in these braces", hint)
    parser = Parser(source, brace + 1, limits)
    node = parser.expression()
    return Expr(source, node), parser.finish("}")


def _fail(source: Source, offset: int, message: str, hint: str) -> None:
    raise CelSyntaxError(Problem("syntax", message, offset, offset + 1, source, hint))


@dataclass(frozen=True, eq=False)
class CheckedText:
    """A text whose expressions are checked."""

    text: Text
    parts: tuple[str | Checked, ...]
    limits: Limits = _LIMITS

    @property
    def single(self) -> bool:
        """Whether it is exactly one expression, and so keeps its value's type."""
        return self.text.single

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Everything that is wrong with its expressions."""
        return tuple(problem for part in self.parts if isinstance(part, Checked) for problem in part.problems)

    @property
    def ok(self) -> bool:
        """Whether it may be filled in."""
        return all(part.ok for part in self.parts if isinstance(part, Checked))

    @property
    def type(self) -> Type:
        """The type of its value."""
        first = self.parts[0] if self.single else None
        return first.type if isinstance(first, Checked) else STRING

    @cached_property
    def _programs(self) -> tuple[str | Program, ...]:
        return tuple(part if isinstance(part, str) else compile(part, self.limits) for part in self.parts)

    def render(self, roots: Mapping[str, Any], context: Any = None) -> str:
        """The text, with `?` for what cannot be told."""
        answers = self._answers(roots, context)
        shown = (one if isinstance(one, str) else _shown(one) for one in answers)
        return "".join("?" if text is None else text for text in shown)

    def value(self, roots: Mapping[str, Any], context: Any = None) -> Answer:
        """The value of a single expression, else the text; not known if any part is not."""
        answers = self._answers(roots, context)
        for one in answers:
            if isinstance(one, Answer) and not one.known:
                return one
        if self.single and isinstance(answers[0], Answer):
            return answers[0]
        texts = [one if isinstance(one, str) else _shown(one) for one in answers]
        if None in texts:
            return Answer(known=False, error="a part of the text is too large to be written out")
        joined = "".join(text for text in texts if text is not None)
        if len(joined) > self.limits.size:
            return Answer(known=False, error=f"a text of {len(joined):,} characters is too large")
        return Answer(known=True, value=joined)

    def _answers(self, roots: Mapping[str, Any], context: Any) -> list[str | Answer]:
        return [one if isinstance(one, str) else one(roots, context) for one in self._programs]


def check_text(text: Text, env: Env, limits: Limits = _LIMITS) -> CheckedText:
    """`text` with its expressions checked against `env`."""
    parts = tuple(part if isinstance(part, str) else check(part, env) for part in text.parts)
    return CheckedText(text, parts, limits)


def _shown(answer: Answer) -> str | None:
    """A value inside a text: a string as it is, anything else as its literal; `None` if there is none."""
    if not answer.known:
        return None
    if isinstance(answer.value, str):
        return answer.value
    if type(answer.value) is float:
        return repr(answer.value).removesuffix(".0")  # people read 600, whatever its type is
    try:
        return str(answer.value) if type(answer.value).__name__ in {"Timestamp", "Duration"} else literal(answer.value)
    except EvalError:
        return None
