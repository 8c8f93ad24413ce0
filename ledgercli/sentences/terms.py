"""Values in words: what a part of an expression that is no condition comes to.

Invariants:
* A value that is a path is named as a rule types it, with the defines in it written out, so that every field is named.
* What has parts that could be read in two ways stands in brackets inside something larger.
* A define whose words are more than a few stands by its name, and another part by a letter, to be explained later. So
  no phrase is longer than its room, whatever the expression is.
* What these words cannot say exactly raises `Unsayable`; nothing is said nearly.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ledgercli import cel
from ledgercli.cel import syntax
from ledgercli.cel.syntax import Expand, Macro, Variable
from ledgercli.sentences.naming import Bound, Names, Scope
from ledgercli.sentences.phrases import ASKED, CALLS, Kind
from ledgercli.sentences.words import Unsayable, count, literal_words, step

ROOM: Final = 17  # words of a phrase, so that what stands around it has its own
_SHORT, _KEY = 4, 3  # words of a define, and of a key, that are written out
_NUMBERS: Final = frozenset({"int", "uint", "double"})
_SUMS: Final = frozenset({*_NUMBERS, "timestamp", "duration"})


@dataclass(frozen=True, slots=True)
class Term:
    """A value in words.

    Arguments:
        text: the words.
        kind: empty where it can stand inside anything; else it stands in brackets there.

    """

    text: str
    kind: Kind = ""

    @property
    def inner(self) -> str:
        """The words, as they stand inside a larger phrase."""
        return f"({self.text})" if self.kind else self.text


class Terms:
    """Puts values into words.

    Arguments:
        taken: the names of defines, which a text could be taken for.
        bare: paths are written without `state.` before them.

    """

    def __init__(self, taken: frozenset[str] = frozenset(), *, bare: bool = False) -> None:
        self.names = Names(taken)
        self._bare = bare

    def phrase(self, template: str, *terms: Term, inside: bool = True) -> str:
        """Return a template filled in; the longest terms stand by a letter until it fits its room.

        Arguments:
            template: the words, with `{}` for the terms.
            terms: what they speak of.
            inside: terms of any kind stand in brackets; else only those that would not be understood without.

        """
        texts = [term.inner if inside or term.kind == "phrase" else term.text for term in terms]
        while count(template.format(*texts)) > ROOM and any(count(text) > 1 for text in texts):
            longest = max(range(len(texts)), key=lambda number: count(texts[number]))
            text = terms[longest].text
            texts[longest] = self.names.lettered((text,), text=text)
        return template.format(*texts)

    def short(self, term: Term, room: int) -> str:
        """Return a value for inside a phrase, by a letter where it has more words than there is room for."""
        return term.inner if count(term.inner) <= room else self.names.lettered((term.text,), text=term.text)

    # ---- paths

    def path(self, node: cel.Node, scope: Scope) -> str | None:
        """Return a path as it is typed, from a root, a variable or a define; None where it is none."""
        steps: list[str] = []
        while True:
            match node:
                case syntax.Select():
                    steps.append(step(node.field))
                    node = node.operand
                case syntax.Index():
                    steps.append(self._key(node, scope))
                    node = node.operand
                case Expand() if syntax.chain(node.body) is not None:
                    node, scope = node.body, {}
                case Variable():
                    bound = scope.get(node.name, node.name)
                    if isinstance(bound, str):
                        return self._joined(bound, steps)
                    node, scope = bound.node, bound.scope
                case syntax.Root():
                    return self._joined(node.name, steps)
                case Expand() if steps:
                    return self._joined(self.names.define(node), steps)
                case _:
                    return None

    def _joined(self, base: str, steps: list[str]) -> str:
        text = "".join(reversed(steps))
        if self._bare and base == "state" and text.startswith("."):
            return text[1:]
        return base + text

    def _key(self, node: syntax.Index, scope: Scope) -> str:
        key = node.key
        if isinstance(key, syntax.Literal):
            return step(key.value)
        if syntax.render(key) == f"size({syntax.render(node.operand)}) - 1":
            return "[last]"
        term = self.term(key, scope)
        return f"[{term.text if count(term.text) <= _KEY else self.names.letter(key, scope)}]"

    # ---- terms

    def term(self, node: cel.Node, scope: Scope) -> Term:  # noqa: C901, PLR0912 - a table of the kinds of nodes
        """Return a value in words."""
        path = self.path(node, scope)
        if path is not None:
            return Term("exactly this call" if path == "action" else path)
        match node:
            case syntax.Literal():
                return self._literal(node, scope)
            case Expand():
                return self._expanded(node)
            case syntax.Select() | syntax.Index():
                return self._part(node, scope)
            case syntax.Binary() if node.operator in _ARITHMETIC:
                return self._arithmetic(node, scope)
            case syntax.Unary(operator="-"):
                return Term(self.phrase("minus {}", self.term(node.operand, scope)), "noun")
            case Macro(name="bind", result=cel.Node() as result):
                return self.term(result, {**scope, node.variables[0]: Bound(node.range, scope)})
            case syntax.Call() if node.type != cel.BOOL or node.function == "bool":
                return self._call(node, scope)
            case syntax.ListOf():
                return self.several([self.term(one, scope) for one in node.elements])
            case syntax.MapOf():
                return self.several([self._entry(key, item, scope) for key, item in node.entries])
            case syntax.Conditional():
                return Term(self.names.letter(node, scope))
            case Macro(name="map" | "filter"):
                return Term(self.names.letter(node, scope))
        if node.type != cel.BOOL:
            raise Unsayable
        return Term(f"whether {self.names.letter(node, scope)} holds", "phrase")

    def _literal(self, node: syntax.Literal, scope: Scope) -> Term:
        text = literal_words(node.value, self.names.taken | {name for name in scope.values() if isinstance(name, str)})
        if count(text) > ROOM - 4:
            raise Unsayable
        return Term(text)

    def _expanded(self, node: Expand) -> Term:
        """A define stands by its words where they are few, else by its name."""
        mark = self.names.mark()
        term = self.term(node.body, {}) if node.type != cel.BOOL else None
        if term and not term.kind and count(term.text) <= _SHORT and len(self.names.pending) == len(mark[0]):
            return term
        self.names.undo(mark)
        return Term(self.names.define(node))

    def _part(self, node: syntax.Select | syntax.Index, scope: Scope) -> Term:
        """A part of a value that is no path: of what a function gives."""
        operand = node.operand
        if isinstance(operand, syntax.Call) and operand.function == "source" and isinstance(node, syntax.Select):
            what = {"tool": "the tool that set {}", "step": "the step that set {}"}.get(node.field)
            template = what or f"{node.field} of the call that set {{}}"
            return Term(self.phrase(template, self.term(operand.args[0], scope)), "noun")
        inner = self.term(operand, scope)
        if isinstance(node, syntax.Select):
            return Term(self.phrase("{} of {}", Term(step(node.field).removeprefix(".")), inner), "noun")
        return Term(self.phrase("the entry {} of {}", self.term(node.key, scope), inner), "noun")

    def _entry(self, key: cel.Node, item: cel.Node, scope: Scope) -> Term:
        return Term(self.phrase("{} as {}", self.term(key, scope), self.term(item, scope)))

    def several(self, terms: Sequence[Term]) -> Term:
        """Return values as a list: `(a, b)`."""
        return Term(self.phrase(f"({', '.join('{}' for _ in terms)})", *terms))

    def _arithmetic(self, node: syntax.Binary, scope: Scope) -> Term:
        left, right = self.term(node.left, scope), self.term(node.right, scope)
        word, kind = _ARITHMETIC[node.operator]
        if node.operator == "+" and node.type != cel.DYN and str(node.type) not in _SUMS:
            word, kind = "followed by", "noun"
        if kind == "sum" and left.kind == kind:  # one after the other, as it is written
            left = Term(left.text)
        template = "the remainder of {} divided by {}" if node.operator == "%" else f"{{}} {word} {{}}"
        return Term(self.phrase(template, left, right), kind)

    # ---- calls

    def _call(self, node: syntax.Call, scope: Scope) -> Term:
        name, args = node.function, node.args
        if name in ASKED and len(args) > 1 and isinstance(args[0].type, cel.Opaque):
            return self._history(node, scope)
        if name in ("double", "int", "uint", "string", "dyn"):
            return self._converted(node, self.term(args[0], scope))
        if name == "size":
            return Term(self.phrase(_size_words(args[0]), self.term(args[0], scope)), "noun")
        if name == "duration" and isinstance(args[0], syntax.Literal):
            return self._span(args[0])
        if name == "sum" and (over := self._sum_over(args[0], scope)) is not None:
            return over
        if name == "substring" and len(args) == 3:
            return self._substring(args, scope)
        terms = [self.term(arg, scope) for arg in args]
        if name in ("math.greatest", "math.least"):
            several = terms[0] if len(terms) == 1 else self.several(terms)
            return Term(self.phrase(f"the {name.removeprefix('math.')} of {{}}", several), "noun")
        if (name, len(terms)) not in CALLS:
            raise Unsayable
        words, kind = CALLS[name, len(terms)]
        return Term(self.phrase(words, *terms), kind)

    def _history(self, node: syntax.Call, scope: Scope) -> Term:
        name, about = node.function, node.args[1]
        if name == "repeats" and isinstance(about.type, (cel.MapType, cel.RecordType)):
            if self.path(about, scope) == "action":
                return Term("the number of consecutive calls equal to this one", "noun")
            return Term(self.phrase("the number of consecutive calls equal to {}", self.term(about, scope)), "noun")
        template, terms = self.asked(ASKED[name], node, scope)
        return Term(self.phrase(template, *terms), "noun")

    def asked(self, template: str, node: syntax.Call, scope: Scope) -> tuple[str, list[Term]]:
        """Return the template and the terms of a question to the history, with the arguments it asks for."""
        _, about, *more = node.args
        terms = [self.term(about, scope)]
        if len(more) == 1 and isinstance(more[0].type, (cel.MapType, cel.RecordType)):
            return f"{template.replace('{}', '{0}')} with {{1}}", [*terms, self._arguments(more[0], scope)]
        return template, [*terms, *(self.term(one, scope) for one in more)]

    def _arguments(self, node: cel.Node, scope: Scope) -> Term:
        """Return the arguments that an earlier call must have had: `x as account, y as amount`."""
        if isinstance(node, syntax.Literal) and isinstance(node.value, Mapping):
            pairs = [(Term(literal_words(item)), Term(literal_words(key))) for key, item in node.value.items()]
        elif isinstance(node, syntax.MapOf):
            pairs = [(self.term(item, scope), self.term(key, scope)) for key, item in node.entries]
        else:
            return self.term(node, scope)
        if not pairs:
            return Term("any arguments")
        template = ", ".join("{} as {}" for _ in pairs)
        return Term(self.phrase(template, *(term for pair in pairs for term in pair)))

    def _converted(self, node: syntax.Call, term: Term) -> Term:
        """A number stays a number in words, whatever its type is."""
        kind, name = str(node.args[0].type), node.function
        if name == "dyn" or kind == str(node.type) or (name in _NUMBERS and kind in _NUMBERS and kind != "double"):
            return term
        words = {"string": "{} as text", "double": "{} as a number"}.get(name, "{} as a whole number")
        if kind == "double" and name in _NUMBERS:
            return Term(self.phrase("the whole part of {}", term), "noun")
        return Term(self.phrase(words, term), "phrase")

    def _span(self, node: syntax.Literal) -> Term:
        try:
            return Term(literal_words(cel.Duration.parse(str(node.value))))
        except cel.EvalError:
            raise Unsayable from None

    def _sum_over(self, node: cel.Node, scope: Scope) -> Term | None:
        """The sum of what stands in each element of a list: `sum(xs.map(x, x.amount))`."""
        if not isinstance(node, Macro) or node.name != "map" or node.condition is not None or node.result is None:
            return None
        shown = self.names.variables(node.variables, scope)
        template = f"the sum of {{}} over {each(list(shown.values()), node.range)} {{}}"
        inner = self.term(node.result, {**scope, **shown})
        return Term(self.phrase(template, inner, self.range(node.range, scope)), "noun")

    def range(self, node: cel.Node, scope: Scope) -> Term:
        """Return what a macro walks over, in one word: a path, a define or a letter."""
        term = self.term(node, scope)
        return term if count(term.text) == 1 else Term(self.names.letter(node, scope))

    def _substring(self, args: Sequence[cel.Node], scope: Scope) -> Term:
        text, begin, end = (self.term(arg, scope) for arg in args)
        if isinstance(args[1], syntax.Literal) and args[1].value == 0:
            return Term(self.phrase("the first {} characters of {}", end, text), "noun")
        return Term(self.phrase("the characters of {} from {} to before {}", text, begin, end), "noun")


_ARITHMETIC: Final[Mapping[str, tuple[str, Kind]]] = {
    "+": ("plus", "sum"),
    "-": ("minus", "sum"),
    "*": ("times", "product"),
    "/": ("divided by", "noun"),
    "%": ("", "noun"),
}


def each(names: Sequence[str], walked: cel.Node) -> str:
    """Return `each x of`, `each x at i of`, `each key k of`: what a macro walks over, before the range itself."""
    if len(names) == 2:
        return f"each {names[1]} at {names[0]} of"
    keys = isinstance(walked.type, (cel.MapType, cel.RecordType))
    return f"each key {names[0]} of" if keys else f"each {names[0]} of"


def _size_words(node: cel.Node) -> str:
    kind = node.type
    if kind == cel.DYN:
        return "the size of {}"
    return "the number of {}" if isinstance(kind, (cel.ListType, cel.MapType, cel.RecordType)) else "the length of {}"
