"""Every name in a YAML file that ships: where it stands, what it names, and whether it uses or declares it.

Names outside of expressions are found by walking a file's marks along the JSON Schema of its kind; names inside, from
the checked trees of whatever `validate` checks, which a recorder notes. Nothing is found by searching in text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from ledgercli import cel, schemas
from ledgercli.cel import checker, syntax
from ledgercli.documents import Document, Mark

#: The parts of JSON Schema that types are made of; what is below `properties` is named by the author.
SCHEMA_MAPS = frozenset({"properties", "$defs", "patternProperties", "dependentSchemas"})


@dataclass(frozen=True, slots=True)
class Leaf:
    """A place of a file that the schema says something about.

    Arguments:
        place: where.
        mark: its mark.
        role: "key" (a fixed key), "name" (a key that the author chose), or what a value is: "expression", "text",
            "plain", "data" (anything).

    """

    place: tuple[str | int, ...]
    mark: Mark
    role: str
    is_key: bool = False


@cache
def _schema(kind: Any) -> Mapping[str, Any]:
    return schemas.schema(kind)


def leaves(document: Document, kind: Any) -> Iterator[Leaf]:
    """Yield every key and every single value of a file with what the schema says of it."""
    yield from _below(_schema(kind), _schema(kind).get("$defs", {}), document.root, ())


def _below(
    schema: Any, definitions: Mapping[str, Any], mark: Mark, place: tuple[str | int, ...], whole: str | None = None
) -> Iterator[Leaf]:
    """`whole` is the format of a tree of expressions or texts that the mark is part of."""
    branches = list(_branches(schema, definitions))
    whole = whole or next((one["format"] for one in branches if one.get("format") in ("expressions", "texts")), None)
    if mark.children and all(isinstance(key, int) for key in mark.children):
        items = [one["items"] for one in branches if "items" in one]
        for key, child in mark.children.items():
            yield from _below(items[0] if items else {}, definitions, child, (*place, key), whole)
    elif mark.children:
        for key, child in mark.children.items():
            fixed = [one["properties"][key] for one in branches if key in one.get("properties", {})]
            more = [one["additionalProperties"] for one in branches if one.get("additionalProperties")]
            role = "key" if fixed else "name" if more or whole == "expressions" else "data"
            yield Leaf((*place, key), child, role, is_key=True)
            below = fixed[0] if fixed else more[0] if more and isinstance(more[0], dict) else {}
            yield from _below(below, definitions, child, (*place, key), whole)
    if mark.scalar is not None:
        formats = [one["format"] for one in branches if "format" in one]
        role = (formats or [whole or ("plain" if any("type" in one for one in branches) else "data")])[0]
        yield Leaf(place, mark, {"expressions": "expression", "texts": "text"}.get(role, role))


def _branches(schema: Any, definitions: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    if not isinstance(schema, Mapping):
        return
    if "$ref" in schema:
        schema = definitions[schema["$ref"].rpartition("/")[2]]
    below = [branch for word in ("anyOf", "oneOf", "allOf") for branch in schema.get(word, ())]
    if not below:
        yield schema
    for branch in below:
        yield from _branches(branch, definitions)


# ---- names outside of expressions


@dataclass(frozen=True, slots=True)
class Plain:
    """A name that stands in YAML by itself.

    Arguments:
        place: where.
        key: whether it is a key.
        start: its offset in the key or value.
        word: the name.
        what: what it names.

    """

    place: tuple[str | int, ...]
    key: bool
    start: int
    word: str
    what: str


#: Kind of file and place (`*`: any step) → what stands there, as a value or (with `:`) as a key.
USES: Mapping[str, str] = {
    "pack rules * tools *": "tool",
    "toolset tools * run canned * args *:": "argument",
    "scenario decide script * propose tool": "tool",
    "scenario decide script * propose args *:": "argument",
    "cases tests * propose tool": "tool",
    "cases tests * propose args *:": "argument",
    "cases tests * history * tool": "tool",
    "cases tests * history * args *:": "argument",
    "cases tests * expect rules *": "rule",
    "cases tests * expect rules_include *": "rule",
    "cases tests * state facts *:": "fact",
    "cases tests * state constraints *:": "constraint",
    "cases tests * state flags *:": "flag",
}
DECLARATIONS: Mapping[str, str] = {
    "toolset tools *:": "tool",
    "toolset tools * args *:": "argument",
    "pack define *:": "define",
    "pack constraints *:": "constraint",
    "pack rules * name": "rule",
    "scenario facts *:": "fact",
    "scenario constraints *:": "constraint",
    "scenario flags *:": "flag",
    "cases state facts *:": "fact",
    "cases state constraints *:": "constraint",
    "cases state flags *:": "flag",
}


def at_place(table: Mapping[str, str], kind: str, leaf: Leaf) -> str | None:
    """Return what a table says of a place."""
    steps = [kind, *map(str, leaf.place)]
    for pattern, what in table.items():
        wanted = pattern.removesuffix(":").split(" ")
        if pattern.endswith(":") != leaf.is_key or len(wanted) != len(steps):
            continue
        if all(mine in ("*", its) for mine, its in zip(wanted, steps, strict=True)):
            return what
    return None


def uses_in(document: Document, kind: str) -> Iterator[Plain]:
    """Yield every use of a name outside of expressions, fixed keys and keywords of JSON Schema included."""
    for leaf in leaves(document, kind):
        place, last = leaf.place, leaf.place[-1] if leaf.place else ""
        if kind == "toolset" and _is_keyword(place):
            if leaf.is_key:
                yield Plain(place, True, 0, str(last), "keyword")
        elif leaf.is_key and leaf.role == "key":
            yield Plain(place, True, 0, str(last), "key")
        elif what := at_place(USES, kind, leaf):
            word = str(last) if leaf.is_key else str(leaf.mark.scalar and leaf.mark.scalar.value)
            if "{" not in word:
                yield Plain(place, leaf.is_key, 0, word, what)
        elif kind == "toolset" and leaf.is_key and leaf.role == "name" and place[-2] == "set":
            yield Plain(place, True, 0, str(last).partition(".")[0], "root of a path")
        elif kind == "toolset" and place[:1] == ("redact",) and leaf.mark.scalar and not leaf.is_key:
            tool, part, arg = leaf.mark.scalar.value.split(".")
            yield Plain(place, False, 0, tool, "tool")
            yield Plain(place, False, len(f"{tool}.{part}."), arg, "argument")


def _is_keyword(place: tuple[str | int, ...]) -> bool:
    """Whether a key of a toolset stands where JSON Schema has its keywords."""
    if len(place) < 3 or place[0] != "tools" or place[2] not in ("args", "returns"):
        return False
    steps = list(place[4:] if place[2] == "args" else place[3:])
    named = False
    for step in steps[:-1]:
        if not named and step in ("enum", "const", "default", "examples", "required"):
            return False
        named = not named and step in SCHEMA_MAPS
    return bool(steps) and not named


# ---- names in expressions


@dataclass(frozen=True, slots=True)
class InExpression:
    """A name in an expression, by its offset there.

    Arguments:
        start: where the name stands.
        end: where it ends.
        report: where an error about it stands.
        what: what it names; "untyped field" where nothing is known of what could stand there, "id" where it is a key
            of a map that has any.
        path: the whole path that it ends, as far as it is one; None in it for a key that is known at run time only.

    """

    start: int
    end: int
    report: int
    what: str
    path: tuple[Any, ...] | None = None


def names_of(checked: cel.Checked) -> Iterator[tuple[cel.Source, InExpression]]:
    """Yield every name in an expression and its defines, with the source that the offsets count in."""
    for node in syntax.walk(checked.node):
        if node.start == node.end:  # put there, not written
            continue
        for name in _names_at(node):
            yield node.source, name


def _names_at(node: cel.Node) -> Iterator[InExpression]:
    match node:
        case syntax.Root():
            yield _plain(node, node.name, "root")
        case syntax.Variable():
            yield _plain(node, node.name, "variable")
        case syntax.Expand():
            yield _plain(node, node.name, "define")
        case syntax.Literal(value=checker.Type()):
            yield _plain(node, node.source.text[node.start : node.end], "type")
        case syntax.Select():
            yield _field(node, node.end - len(node.field))
        case syntax.Has():
            yield _field(node, node.source.text.rindex(node.field, node.start, node.end))
        case syntax.Index(key=syntax.Literal(value=str())):
            yield _literal(node.key, _noun(node.operand, str(node.key.value)), syntax.path_of(node))
        case syntax.Call():
            yield _function(node)
            yield from _in_call(node)
        case syntax.Macro():
            inner = node.name
            start = node.source.text.index(inner, node.range.end if inner != "bind" else node.start)
            yield InExpression(start, start + len(inner), start, "function")
        case syntax.Binary(operator="==" | "!=" | "in"):
            yield from _compared(node.left, node.right)
            yield from _compared(node.right, node.left)


def _plain(node: cel.Node, word: str, what: str) -> InExpression:
    start = node.source.text.index(word, node.start, node.end)
    return InExpression(start, start + len(word), start, what)


def _field(node: Any, start: int) -> InExpression:
    whole = syntax.path_of(node.operand)
    path = None if whole is None else (*whole, node.field)
    return InExpression(start, start + len(node.field), start, _noun(node.operand, node.field), path)


def _noun(operand: cel.Node, name: str) -> str:
    kind = operand.type
    if isinstance(kind, cel.RecordType) and not kind.open and name in kind.fields:
        return kind.noun
    return "id" if isinstance(kind, cel.MapType) else "untyped field"


def _literal(node: cel.Node, what: str, path: tuple[Any, ...] | None = None) -> InExpression:
    text = str(getattr(node, "value", ""))
    start = node.source.text.index(text, node.start, node.end)
    return InExpression(start, start + len(text), node.start, what, path)


def _function(node: syntax.Call) -> InExpression:
    """The name of a function; with a dot in it (`math.greatest`) the whole of it counts."""
    receiver = node.args[0].end if node.method else node.start
    start = node.source.text.index(node.function, receiver)
    return InExpression(start, start + len(node.function), start, "function")


def _in_call(node: syntax.Call) -> Iterator[InExpression]:
    """Tools and arguments that stand as texts in the functions over the history."""
    about_ledger = bool(node.functions) and any(isinstance(one, cel.Opaque) for one in node.functions[0].params)
    tool = node.args[1:2] if about_ledger or node.function == "from_tool" else ()
    for arg in tool:
        if isinstance(arg, cel.Literal):
            yield _literal(arg, "tool")
    for arg in node.args[2:] if about_ledger else ():
        if isinstance(arg, cel.Literal):
            yield _literal(arg, "argument")
        elif isinstance(arg, cel.MapOf):
            yield from (_literal(key, "argument") for key, _ in arg.entries)


def _compared(known: cel.Node, other: cel.Node) -> Iterator[InExpression]:
    kind = known.type.elem if isinstance(known.type, cel.ListType) else known.type
    if not isinstance(kind, cel.EnumType):
        return
    for one in other.elements if isinstance(other, syntax.ListOf) else (other,):
        if isinstance(one, cel.Literal) and isinstance(one.value, str):
            yield _literal(one, kind.what)
