"""Expressions and texts as they stand in files: read, checked, and every problem reported at its place.

Invariants:
* A place is read once, however often it is checked; a problem is told once, however often it is met.
* Nothing is raised: what cannot be read or has problems is None.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from ledgercli import cel
from ledgercli.cel import Checked, Env, Expr
from ledgercli.documents import Document, Place, Problem


@dataclass(frozen=True, slots=True)
class Target:
    """A path that a transition sets or removes, as it is written.

    Arguments:
        parts: keys, and expressions in brackets for keys that are known only when it happens.
        text: as written.

    """

    parts: tuple[str | Expr, ...]
    text: str

    @property
    def pattern(self) -> tuple[str | None, ...]:
        """The keys, None where one is known only when it happens."""
        return tuple(part if isinstance(part, str) else None for part in self.parts)


@dataclass(slots=True)
class Expressions:
    """Reads expressions and texts, and collects what is wrong with them in `problems`."""

    problems: list[Problem] = field(default_factory=list, init=False)
    _seen: set[tuple[Any, ...]] = field(default_factory=set, init=False)
    _parsed: dict[tuple[int, Place, bool], Expr | None] = field(default_factory=dict, init=False)

    def parsed(self, document: Document, place: Place, text: str, *, key: bool = False) -> Expr | None:
        """Return the expression at a place of a file (or its key); None where it cannot be read, reported once."""
        known = (id(document), tuple(place), key)
        if known not in self._parsed:
            try:
                self._parsed[known] = cel.parse(cel.Source(text, label=(document, place, key)))
            except cel.CelSyntaxError as error:
                self._parsed[known] = None
                self.report(error.problem)
        return self._parsed[known]

    def expression(
        self, document: Document, place: Place, text: str, env: Env, want: cel.Type | None = None
    ) -> Checked | None:
        """Return the checked expression at a place of a file; None where it has problems, which are reported."""
        expr = self.parsed(document, place, text)
        return None if expr is None else self.checked(expr, env, want)

    def checked(
        self, expr: Expr, env: Env, want: cel.Type | None = None, *, names_only: bool = False
    ) -> Checked | None:
        """Check an expression that was read; None where it has problems, which are reported.

        Arguments:
            expr: the expression.
            env: the names.
            want: the type that its value must have.
            names_only: report names that do not exist; leave types and arguments to a check that knows the tool.

        """
        checked = cel.check(expr, env, want)
        if names_only:
            self.report_names(checked)
        else:
            for problem in checked.problems:
                self.report(problem)
        return checked if checked.ok else None

    def report_names(self, checked: Checked) -> None:
        """Report the names in an expression that do not exist."""
        for problem in checked.problems:
            if problem.code.startswith("unknown-"):
                self.report(problem)

    def text(self, document: Document, place: Place, text: str, env: Env) -> cel.CheckedText | None:
        """Return the checked text at a place of a file; None where it has problems, which are reported."""
        try:
            parsed = cel.parse_text(cel.Source(text, label=(document, place, False)))
        except cel.CelSyntaxError as error:
            self.report(error.problem)
            return None
        checked = cel.check_text(parsed, env)
        for problem in checked.problems:
            self.report(problem)
        if checked.ok and "{" not in text and "}" not in text and self._is_path(text, env):
            note = f"write '{{{text}}}' for its value"
            message = f"{text} is a path, but stands as it is in this text"
            self.problem(document, place, "missing-braces", message, notes=(note,))
        return replace(checked, parts=tuple(map(as_found, checked.parts))) if checked.ok else None

    @staticmethod
    def _is_path(text: str, env: Env) -> bool:
        root, dot, _ = text.partition(".")
        if not dot or root not in env.names:
            return False
        try:
            return cel.check(cel.parse(text), env).ok
        except cel.CelSyntaxError:
            return False

    # ---- problems

    def report(self, problem: cel.Problem) -> None:
        """Report a problem of an expression at its place in the file."""
        label: Any = problem.source.label  # every Source made here carries a document, a place and whether it is a key
        document, place, key = label
        hint = problem.hint or ""
        notes = [hint] if hint else []
        if problem.suggestions:
            near = f"did you mean {' or '.join(problem.suggestions)}?"
            asked, _, rest = hint.partition("?")
            notes = [near + rest] if asked.startswith("did you mean ") else [near, *notes]
        self._add(
            document.problem_at(
                place,
                problem.start,
                problem.end,
                problem.code,
                problem.message,
                notes=tuple(notes),
                severity=problem.severity,
                key=key,
            )
        )

    def problem(self, document: Document, place: Place, code: str, message: str, **more: Any) -> None:
        """Report a problem at a place of a file."""
        self._add(document.problem(place, code, message, **more))

    def unknown(  # noqa: PLR0913 - what, where, and what there is instead
        self,
        document: Document,
        place: Place,
        what: str,
        word: str,
        known: Iterable[str],
        *,
        start: int = 0,
        length: int | None = None,
        key: bool = False,
    ) -> None:
        """Report a name that does not exist, with the nearest that do."""
        near = cel.nearest(word, known)
        notes = ("did you mean " + " or ".join(near) + "?",) if near else ()
        end = start + (len(word) if length is None else length)
        self._add(
            document.problem_at(
                place, start, end, f"unknown-{what}", f"no {what.replace('-', ' ')} {word}", notes=notes, key=key
            )
        )

    def _add(self, problem: Problem) -> None:
        key = (problem.file, problem.line, problem.column, problem.code, problem.message)
        if key not in self._seen:
            self._seen.add(key)
            self.problems.append(problem)


def as_found(part: Any) -> Any:
    """Return an expression that hands on what stands at a path without making a double of it: 120 stays 120."""
    if isinstance(part, Checked) and part.type == cel.DOUBLE and isinstance(part.node, (cel.Select, cel.Index)):
        return replace(part, node=replace(part.node, type=cel.DYN))
    return part


def target_parts(expr: Expr) -> tuple[str | Expr, ...] | None:
    """Return the keys of a path that is written as an expression; None where it is none."""
    parts: list[str | Expr] = []
    node = expr.node
    while not isinstance(node, cel.Name):
        if isinstance(node, cel.Select):
            parts.append(node.field)
        elif isinstance(node, cel.Index):
            key = node.key
            written = isinstance(key, cel.Literal) and isinstance(key.value, str)
            parts.append(str(key.value) if written and isinstance(key, cel.Literal) else Expr(expr.source, key))
        else:
            return None
        node = node.operand
    parts.append(node.name)
    return tuple(reversed(parts))


def below_state(node: cel.Node) -> cel.Node:
    """Return a path as it is written in a transition, as a rule writes it: with `state.` before it."""
    if isinstance(node, cel.Name):
        state = cel.Name(node.source, node.start, node.start, "state")
        return cel.Select(node.source, node.start, node.end, state, node.name)
    assert isinstance(node, (cel.Select, cel.Index)), "a target is a path"
    return replace(node, operand=below_state(node.operand))
