"""What a verdict read, taken apart.

Invariants:
* What a verdict read (`Verdict.reads`) is taken apart here and nowhere else.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Final

from ledgercli import cel
from ledgercli.cel import syntax
from ledgercli.history import freeze
from ledgercli.paths import Path

_LONGEST: Final = 20_000  # characters of a read that are taken apart
SOURCE: Final = "source"
Place = tuple[Any, ...]


@dataclass(frozen=True)
class Question:
    """A question to the history, as a rule asked it.

    Arguments:
        function: its name in the policy language.
        args: what it was asked, `state.ledger` left out; of `source` the path.
        whole: whether it was asked about the call that is proposed, `action`.

    """

    function: str
    args: tuple[Any, ...]
    whole: bool = False

    @property
    def text(self) -> str:
        """The call as it is typed in a rule."""
        if self.function == SOURCE:
            return f"{SOURCE}({cel.path_text(self.args[0])})"
        shown = ["action"] if self.whole else [syntax.spaced(arg) for arg in self.args]
        if not self.function.startswith("from_"):
            shown.insert(0, "state.ledger")
        return f"{self.function}({', '.join(shown)})"

    @cached_property
    def key(self) -> Place:
        """What tells it from others."""
        return self.function, freeze(list(self.args)), self.whole


@dataclass(frozen=True)
class Read:
    """One thing that was read, taken apart.

    Arguments:
        label: as it stands in a verdict.
        at: the path, or the question.
        kind: `value`; `has` and `size` of what is at the path; `question`; `other` for what cannot be taken apart.

    """

    label: str
    kind: str
    at: Path | Question

    @property
    def path(self) -> Path:
        """The path; of a question about a path or the call that is proposed, what it depends on."""
        if not isinstance(self.at, Question):
            return self.at
        if self.at.function == SOURCE:
            return tuple(self.at.args[0])
        return ("action", "args") if self.at.whole else ()


@lru_cache(maxsize=4096)
def read(label: str) -> Read:
    """Take apart what a verdict says was read."""
    try:
        node = cel.parse(label).node if len(label) <= _LONGEST else None
        return _taken_apart(label, node) if node is not None else Read(label, "other", ())
    except (cel.CelSyntaxError, ValueError):
        return Read(label, "other", ())


def _taken_apart(label: str, node: cel.Node) -> Read:
    match node:
        case syntax.Has():
            return Read(label, "has", (*_path(node.operand), node.field))
        case syntax.Binary(operator="in"):
            return Read(label, "has", (*_path(node.right), _constant(node.left)))
        case syntax.Call(function="size", args=[one]):
            return Read(label, "size", _path(one))
        case syntax.Call():
            return Read(label, "question", _question(node))
    return Read(label, "value", _path(node))


def _question(node: cel.Call) -> Question:
    if node.function == SOURCE:
        return Question(SOURCE, (_path(node.args[0]),))
    if any(isinstance(arg, cel.Name) for arg in node.args):
        return Question(node.function, (), whole=True)
    return Question(node.function, tuple(map(_constant, node.args)))


def _path(node: cel.Node) -> Path:
    match node:
        case cel.Name():
            return (node.name,)
        case cel.Select():
            return (*_path(node.operand), node.field)
        case cel.Index():
            return (*_path(node.operand), _constant(node.key))
    raise ValueError(node)


def _constant(node: cel.Node) -> Any:
    match node:
        case cel.Literal():
            return node.value
        case syntax.ListOf():
            return [_constant(one) for one in node.elements]
        case cel.MapOf():
            return {_constant(key): _constant(item) for key, item in node.entries}
    raise ValueError(node)
