"""Sentences: conditions laid out so that no line is longer than can be read at once.

Invariants:
* No line has more than `MOST` words; what is longer becomes a list, whose items are parts of the sentence.
* The parts of a condition that must all hold are sentences of their own, each true by itself.
* What plain words cannot say exactly is said to be so, with the fields that it depends on; nothing is said nearly.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from ledgercli import cel
from ledgercli.cel import syntax
from ledgercli.cel.syntax import Macro
from ledgercli.sentences.conditions import All, Conditions, Fact, Over, Some, Unsaid, Words
from ledgercli.sentences.naming import Explained, Scope
from ledgercli.sentences.terms import Terms, each
from ledgercli.sentences.words import MOST, Unsayable, chunks, count, step

_HALF = 8  # words of a part beside others
_WIDE = 240  # characters of a condition on one line
UNSAID = "a calculation holds that plain words cannot say; it depends on"


@dataclass(frozen=True, slots=True)
class Sentence:
    """A line of words.

    Arguments:
        text: the line; it ends with a colon where items follow.
        items: parts of the sentence.

    """

    text: str
    items: tuple[Sentence, ...] = ()

    def lines(self) -> Iterator[str]:
        """Yield the line and those of its parts."""
        yield self.text
        for item in self.items:
            yield from item.lines()


@dataclass(slots=True)
class Speech:
    """Says conditions, and then what the names and letters in them stand for.

    Arguments:
        taken: the names of defines.
        bare: paths are written without `state.` before them.

    """

    taken: frozenset[str] = frozenset()
    bare: bool = False
    _terms: Terms = field(init=False)

    def __post_init__(self) -> None:
        self._terms = Terms(self.taken, bare=self.bare)

    def words(self, node: cel.Node, scope: Scope | None = None, *, exact: bool = True) -> Words:
        """Return a condition in words; where plain words cannot say it, the fields that it depends on.

        Arguments:
            node: the condition.
            scope: what its variables are called.
            exact: what is false and what cannot be told must be told apart.

        """
        mark = self._terms.names.mark()
        try:
            return Conditions(self._terms, exact=exact).words(node, scope)
        except (Unsayable, RecursionError):
            self._terms.names.undo(mark)
            return Unsaid(tuple(fields(node, bare=self.bare)))

    def parts(self, node: cel.Node) -> list[Words]:
        """Return what must all hold, each for itself."""
        while isinstance(node, syntax.Expand) and isinstance(node.body, (syntax.Logic, syntax.Expand)):
            node = node.body
        if isinstance(node, syntax.Logic) and node.operator == "&&":
            return [part for one in node.operands for part in self.parts(one)]
        words = self.words(node, exact=False)
        return list(words.parts) if isinstance(words, All) else [words]

    def explained(self) -> Iterator[Sentence]:
        """Yield what each name and letter stands for, in the order in which they were met."""
        while self._terms.names.pending:
            yield self._explain(self._terms.names.pending.pop(0))

    def _explain(self, part: Explained) -> Sentence:
        if part.node is None:
            return Sentence(f"{part.name} is {part.text}.")
        mark = self._terms.names.mark()
        try:
            return self._meaning(part.name, part.node, part.scope or {})
        except (Unsayable, RecursionError):
            self._terms.names.undo(mark)
            return _unsaid(
                f"{part.name} is a value that plain words cannot say; it depends on", fields(part.node, bare=self.bare)
            )

    def _meaning(self, name: str, node: cel.Node, scope: Scope) -> Sentence:
        if node.type == cel.BOOL:
            return said(f"{name} means that", self.words(node, scope))
        match node:
            case syntax.Conditional():
                then, otherwise = (
                    self._terms.short(self._terms.term(one, scope), _HALF) for one in (node.then, node.otherwise)
                )
                return self._with(f"{name} is {then} where", node.condition, scope, f", otherwise {otherwise}")
            case Macro(name="filter", condition=cel.Node() as condition):
                walked, inner = self._walked(node, scope)
                return self._with(f"{name} lists {walked} where", condition, inner)
            case Macro(name="map", result=cel.Node() as result):
                walked, inner = self._walked(node, scope)
                told = f"{name} lists {self._terms.short(self._terms.term(result, inner), _HALF)} for {walked}"
                return (
                    Sentence(f"{told}.")
                    if node.condition is None
                    else self._with(f"{told} where", node.condition, inner)
                )
        return Sentence(f"{name} is {self._terms.term(node, scope).text}.")

    def _walked(self, node: Macro, scope: Scope) -> tuple[str, Scope]:
        shown = self._terms.names.variables(node.variables, scope)
        walked = self._terms.range(node.range, scope).text
        return f"{each(list(shown.values()), node.range)} {walked}", {**scope, **shown}

    def _with(self, before: str, node: cel.Node, scope: Scope, after: str = "") -> Sentence:
        """Return a sentence with a condition inside, by a letter where it is long."""
        mark = self._terms.names.mark()
        words = self.words(node, scope)
        text = inline(words)
        if text is not None and count(f"{before} {text}{after}") <= MOST:
            return Sentence(f"{before}{',' if isinstance(words, Over) else ''} {text}{after}.")
        self._terms.names.undo(mark)
        return Sentence(f"{before} {self._terms.names.letter(node, scope)} holds{after}.")


def said(prefix: str, words: Words, *, comma: bool = False) -> Sentence:
    """Return a sentence that begins with some words, and then says what must hold."""
    if isinstance(words, Unsaid):
        return _unsaid(f"{prefix} {UNSAID}", words.fields)
    text = inline(words)
    start = f"{prefix}{',' if comma or isinstance(words, Over) else ''} " if prefix else ""
    if text is not None and count(start + text) <= MOST and (len(text) <= _WIDE or isinstance(words, Fact)):
        return Sentence(f"{start}{text}.")
    match words:
        case Over():
            return _walking(start, words)
        case Fact():
            return Sentence(f"{start}this holds:", (said("", words),))
    head = "all of these hold:" if isinstance(words, All) else "at least one of these holds:"
    return Sentence(start + head, tuple(said("", part) for part in words.parts))


def _walking(start: str, words: Over) -> Sentence:
    if count(f"{start}{words.lead}, at least one of these holds:") <= MOST:
        return said(f"{start}{words.lead}", words.body, comma=True)
    return Sentence(f"{start.replace(', ', ' ')}this holds:", (said(words.lead, words.body, comma=True),))


def _unsaid(before: str, named: Sequence[str] | Iterator[str]) -> Sentence:
    names = tuple(named)
    if not names:
        return Sentence(f"{before} nothing.")
    if count(f"{before} {', '.join(names)}") <= MOST:
        return Sentence(f"{before} {', '.join(names)}.")
    return Sentence(f"{before}:", tuple(Sentence(line + ".") for line in chunks(names, MOST)))


def inline(words: Words) -> str | None:
    """Return a condition as one phrase; None where it would take brackets in brackets."""
    match words:
        case Fact():
            return words.text
        case Over():
            body = _simple(words.body)
            return None if body is None else f"{words.lead}, {body}"
        case Unsaid() | All(parts=()) | Some(parts=()):
            return None
    joined = [_simple(part) if isinstance(part, (Fact, All)) else _bracketed(part) for part in words.parts]
    if isinstance(words, All):
        joined = [_bracketed(part) for part in words.parts]
    texts = [one for one in joined if one is not None]
    if len(texts) < len(joined):
        return None
    return " and ".join(texts) if isinstance(words, All) else ", or ".join(texts)


def _simple(words: Words) -> str | None:
    """Return facts, joined; None for what has more parts than that."""
    if isinstance(words, Fact):
        return words.text
    if isinstance(words, (All, Some)) and words.parts and all(isinstance(part, Fact) for part in words.parts):
        return inline(words)
    if isinstance(words, Some) and words.parts:
        texts = [_simple(part) if isinstance(part, (Fact, All)) else None for part in words.parts]
        return None if None in texts else ", or ".join(filter(None, texts))
    return None


def _bracketed(words: Words) -> str | None:
    if isinstance(words, Fact):
        return words.text
    text = None if isinstance(words, Over) else _simple(words)
    return None if text is None else f"({text})"


def fields(node: cel.Node, *, bare: bool = False) -> Iterator[str]:
    """Yield the paths that an expression looks at, as they are typed; `[any]` for a key that is known only later."""
    found: dict[str, None] = {}
    for path in sorted({path for path, _ in cel.looked_at(node)}, key=lambda path: [str(one) for one in path]):
        if path[:2] != ("state", "ledger"):
            text = f"{path[0]}{_steps(path[1:])}"
            found[text.removeprefix("state.") if bare else text] = None
    for one in cel.walk(node):
        if isinstance(one, syntax.Call) and any(function.observed for function in one.functions):
            found[f"{one.function}()"] = None
        elif isinstance(one, (syntax.Select, syntax.Has)) and (of := _of_variable(one)) is not None:
            found[of] = None
    return iter(found)


def _steps(keys: Sequence[object]) -> str:
    return "".join("[any]" if key is None else step(key) for key in keys)


def _of_variable(node: cel.Node) -> str | None:
    """Return a path that begins with a variable of a macro; None for any other."""
    keys: list[object] = []
    while not isinstance(node, syntax.Variable):
        match node:
            case syntax.Select() | syntax.Has():
                keys.append(node.field)
            case syntax.Index(key=syntax.Literal() as key):
                keys.append(key.value)
            case syntax.Index():
                keys.append(None)
            case _:
                return None
        node = node.operand
    return node.name + _steps(keys[::-1])
