"""Expressions with one part changed: a negation, a bound, an equality, a conjunct, a value, a list of tools.

Invariants:
* What is not changed stays character by character as it was typed.
* An edit always gives another text, which can be parsed; whether it fits the names and types is not asked here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from ledgercli import cel
from ledgercli.cel import syntax
from ledgercli.toolset import FINISH

_BOUND: Final = {"<": "<=", "<=": "<", ">": ">=", ">=": ">"}
_EVEN: Final = {"==": "!=", "!=": "=="}
_TRUTHS: Final = frozenset(
    {"startsWith", "endsWith", "contains", "matches", "succeeded", "confirmed", "from_task", "from_user", "from_tool"}
)
_LOOPS: Final = frozenset({"all", "exists", "exists_one"})
_AMOUNT: Final = re.compile(r"(\d+)(ns|us|ms|s|m|h)")  # of a duration


@dataclass(frozen=True, slots=True)
class Words:
    """Which words may take the place of which.

    Arguments:
        tools: each tool with the names of its arguments.
        writes: the tools that write.
        sets: words that can stand in one place: the members of an enumeration, tags.

    """

    tools: Mapping[str, frozenset[str]] = field(default_factory=dict)
    writes: frozenset[str] = frozenset()
    sets: tuple[tuple[str, ...], ...] = ()

    def other(self, word: str) -> str:
        """Return another word that can stand where this one does; one that stands for nothing if none is known."""
        for known in self.families:
            if word in known and len(known) > 1:
                return _next(known, word)
        return f"{word}x"

    def other_tool(self, tool: str, args: frozenset[str]) -> str | None:
        """Return another tool that has these arguments; None if there is none."""
        fits = [name for name, own in self.tools.items() if args <= own]
        return _next(fits, tool) if len(fits) > 1 and tool in fits else None

    def other_argument(self, tool: str, name: str) -> str | None:
        """Return another argument of a tool; None if there is none."""
        own = sorted(self.tools[tool])
        return _next(own, name) if len(own) > 1 else None

    def missing(self, words: list[str]) -> str | None:
        """Return a word that belongs to these and is not among them."""
        for known in self.families:
            if words and set(words) <= set(known):
                return next((word for word in known if word not in words), None)
        return None

    @property
    def families(self) -> tuple[tuple[str, ...], ...]:
        """All words, by what they are."""
        return tuple(name for name in self.tools if name != FINISH), *self.sets


def _next(known: Sequence[str], word: str) -> str:
    return known[(known.index(word) + 1) % len(known)]


@dataclass(frozen=True, slots=True)
class Edit:
    """An expression with one part changed.

    Arguments:
        change: what was done.
        at: offset of what was changed.
        before: the part as it was, in one line; empty: nothing.
        after: the part as it is; empty: nothing.
        text: the whole expression.

    """

    change: str
    at: int
    before: str
    after: str
    text: str


def edits_of(text: str, words: Words, *, truth: bool = True) -> list[Edit]:
    """Return the edits of an expression; of one that cannot be read none.

    Arguments:
        text: the expression.
        words: which words may take the place of which.
        truth: whether it is sure to be true or false.

    """
    try:
        node = cel.parse(text).node
    except cel.CelSyntaxError:
        return []
    editor = _Editor(text, words)
    if truth or _is_truth(node):
        editor.negate(node)
    editor.visit(node, node, node)
    first = {edit.text: edit for edit in reversed(editor.edits) if edit.text != text}
    return [edit for edit in editor.edits if first.get(edit.text) is edit]


def names_in(text: str) -> set[str]:
    """Return the names that an expression begins paths with; of one that cannot be read none."""
    try:
        return {node.name for node in cel.walk(cel.parse(text).node) if isinstance(node, cel.Name)}
    except cel.CelSyntaxError:
        return set()


def shifted(value: Any) -> Iterator[Any]:
    """Yield what may stand in the place of a number or truth value: a little more, a little less."""
    if isinstance(value, bool):
        yield not value
    elif isinstance(value, int):
        yield from (value + 1, value - 1)
    elif isinstance(value, float):
        yield from (value + 1, value - 1) if value == int(value) else (value * 2, value / 2)


class _Editor:
    """Walks an expression and notes what can be changed."""

    def __init__(self, text: str, words: Words) -> None:
        self._text, self._words = text, words
        self.edits: list[Edit] = []

    def visit(self, node: cel.Node, above: cel.Node, root: cel.Node) -> None:
        """Note the changes of a part; `above` is what it stands in, which shows what it means."""
        match node:
            case syntax.Logic():
                self._drop(node, node is root)
            case syntax.Binary():
                self._compared(node, node is root or _negated(above))
            case syntax.Unary(operator="!") if node is not root:
                self._note("negate a condition", node, self._bracketed(node.operand), node)
            case syntax.Unary(operator="-", operand=cel.Literal()):
                self._number(node, above)
                return
            case syntax.Has() if node is not root and not _negated(above):
                self._note("negate a condition", node, f"!{self._slice(node)}", node)
            case syntax.Conditional():
                new = f"{self._slice(node.condition)} ? {self._slice(node.otherwise)} : {self._slice(node.then)}"
                self._note("swap the branches", node, new if node is root else f"({new})", node)
            case cel.Literal():
                self._literal(node, above)
        parts = () if _is_list_of(node) else syntax.children(node)
        if isinstance(node, syntax.MapOf):  # keys are names
            parts = tuple(value for _, value in node.entries)
        for part in parts:
            self.visit(part, node, root)

    def negate(self, root: cel.Node) -> None:
        """Note the expression negated as a whole."""
        if isinstance(root, syntax.Unary) and root.operator == "!":
            self._note("negate", root, self._slice(root.operand), root)
        else:
            self._note("negate", root, f"!({self._slice(root)})", root)

    # ---- kinds of parts

    def _drop(self, node: syntax.Logic, whole: bool) -> None:  # noqa: FBT001
        what = "drop a conjunct" if node.operator == "&&" else "drop a disjunct"
        for part in node.operands:
            left = [one for one in node.operands if one is not part]
            new = self._bracketed(left[0]) if len(left) == 1 and not whole else self._joined(node.operator, left)
            text = self._text[: node.start] + (new if whole or len(left) == 1 else f"({new})") + self._text[node.end :]
            self._add(Edit(what, part.start, _line(self._slice(part)), "", text))

    def _joined(self, operator: str, parts: list[cel.Node]) -> str:
        return f" {operator} ".join(map(self._slice, parts))

    def _compared(self, node: syntax.Binary, whole: bool) -> None:  # noqa: FBT001
        operator = node.operator
        if operator in _BOUND or operator in _EVEN:
            new = _BOUND.get(operator) or _EVEN[operator]
            what = "shift a bound" if operator in _BOUND else "swap the equality"
            self._note(what, node, self._with_operator(node, new), node)
        elif operator == "in":
            if not whole:
                self._note("negate a condition", node, f"!({self._slice(node)})", node)
            if isinstance(node.right, syntax.ListOf):
                self._members(node.right)

    def _with_operator(self, node: syntax.Binary, operator: str) -> str:
        """Return a comparison with another operator; brackets around it stay."""
        between = self._text[node.left.end : node.right.start]
        head, tail = self._text[node.start : node.left.end], self._text[node.right.start : node.end]
        return head + between.replace(node.operator, operator, 1) + tail

    def _members(self, node: syntax.ListOf) -> None:
        elements = list(node.elements)
        for one in elements if len(elements) > 1 else ():
            rest = [self._slice(other) for other in elements if other is not one]
            text = f"{self._text[: node.start]}[{', '.join(rest)}]{self._text[node.end :]}"
            self._add(Edit("drop a member", one.start, self._slice(one), "", text))
        said = [one.value for one in elements if isinstance(one, cel.Literal) and isinstance(one.value, str)]
        more = self._words.missing(said) if len(said) == len(elements) else None
        if more is not None:
            last, word = elements[-1], self._quoted(elements[0], more)
            text = f"{self._text[: last.end]}, {word}{self._text[last.end :]}"
            self._add(Edit("add a member", node.start, "", word, text))

    def _literal(self, node: cel.Literal, above: cel.Node) -> None:
        value = node.value
        if isinstance(value, (bool, int, float)):
            self._number(node, above)
        elif isinstance(value, str):
            amount = _AMOUNT.fullmatch(value)
            others = [f"{other}{amount[2]}" for other in shifted(int(amount[1]))] if amount else []
            for other in others or self._others(value, above):
                self._note("shift a bound" if amount else "change a value", node, self._quoted(node, other), above)

    def _others(self, word: str, above: cel.Node) -> list[str]:
        """Return what may stand in the place of a text: of a question to the history, what fits the rest of it."""
        if not isinstance(above, cel.Call):
            return [self._words.other(word)]
        written = [part.value for part in above.args if isinstance(part, cel.Literal) and isinstance(part.value, str)]
        tool = next((one for one in written if one in self._words.tools), None)
        if tool is None:
            return [self._words.other(word)]
        maps = (part for part in above.args if isinstance(part, syntax.MapOf))
        keys = {key.value for one in maps for key, _ in one.entries if isinstance(key, cel.Literal)}
        if word == tool:
            other = self._words.other_tool(tool, frozenset(keys | {one for one in written if one != tool}))
        else:
            other = self._words.other_argument(tool, word) if word in self._words.tools[tool] else None
        return [] if other is None else [other]

    def _number(self, node: cel.Node, above: cel.Node) -> None:
        literal = node.operand if isinstance(node, syntax.Unary) else node
        assert isinstance(literal, cel.Literal), "only numbers that are written out are shifted"
        value = -literal.value if isinstance(node, syntax.Unary) else literal.value
        compared = isinstance(above, syntax.Binary) and (above.operator in _BOUND or above.operator in _EVEN)
        for other in shifted(value):
            if compared or isinstance(other, bool) or other >= 0 or value < 0:
                self._note("shift a bound" if compared else "change a value", node, cel.literal(other), above)

    # ---- texts

    def _quoted(self, like: cel.Node, word: str) -> str:
        """Return a text in the quotes that another has."""
        plain = word.isprintable() and "'" not in word and "\\" not in word
        return f"'{word}'" if plain and self._slice(like).startswith("'") else cel.literal(word)

    def _slice(self, node: cel.Node) -> str:
        return self._text[node.start : node.end]

    def _bracketed(self, node: cel.Node) -> str:
        """Return a part that may stand anywhere."""
        text = self._slice(node)
        loose = isinstance(node, (syntax.Logic, syntax.Conditional, syntax.Binary, syntax.Unary))
        return f"({text})" if loose and not text.startswith("(") else text

    def _note(self, change: str, node: cel.Node, new: str, shown: cel.Node) -> None:
        """Note a part with another text; `shown` is what tells a reader what that means."""
        if not shown.start <= node.start <= node.end <= shown.end:
            shown = node
        text = f"{self._text[: node.start]}{new}{self._text[node.end :]}"
        after = f"{self._text[shown.start : node.start]}{new}{self._text[node.end : shown.end]}"
        self._add(Edit(change, node.start, _line(self._slice(shown)), _line(after), text))

    def _add(self, edit: Edit) -> None:
        """Note an edit that can be read; one that makes an expression too deep or too long cannot."""
        try:
            cel.parse(edit.text)
        except cel.CelSyntaxError:
            return
        self.edits.append(edit)


def _is_truth(node: cel.Node) -> bool:
    """Whether a part is sure to be true or false."""
    match node:
        case syntax.Logic() | syntax.Has() | syntax.Unary(operator="!"):
            return True
        case syntax.Binary():
            return node.operator in _BOUND or node.operator in _EVEN or node.operator == "in"
        case syntax.Macro():
            return node.name in _LOOPS
        case syntax.Conditional():
            return _is_truth(node.then)
        case cel.Call():
            return node.function in _TRUTHS
    return isinstance(node, cel.Literal) and isinstance(node.value, bool)


def _is_list_of(node: cel.Node) -> bool:
    """Whether a part is a list of values that are written out: its members are changed where it is asked for them."""
    return isinstance(node, syntax.ListOf) and all(isinstance(one, cel.Literal) for one in node.elements)


def _negated(node: cel.Node) -> bool:
    return isinstance(node, syntax.Unary) and node.operator == "!"


def _line(text: str) -> str:
    return " ".join(text.split())
