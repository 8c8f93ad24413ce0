"""A typo is an error where it stands, with the name that was meant; it never loads as a rule that does nothing.

Every name in every file that ships is misspelt, by deletion, insertion, swap and substitution of a letter, and every
declaration that something uses is renamed. What is left out is counted, so that nothing drops out unnoticed.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from ledgercli import cel, sources
from ledgercli.cel import syntax
from ledgercli.cel import text as cel_text
from ledgercli.documents import Document
from ledgercli.errors import InvalidDocumentError
from ledgercli.loading import Loader
from ledgercli.policy import Pack
from ledgercli.policytests import check as check_cases
from ledgercli.policytests import rulebook_of
from ledgercli.rulebook import Rulebook
from ledgercli.sources import Problem, Source, kind_of
from ledgercli.validation import load_cases, scenario_problems

from .names_in_files import DECLARATIONS, InExpression, at_place, leaves, names_of, uses_in

ROOT = Path(__file__).parent.parent
LETTERS = "abcdefghijklmnopqrstuvwxyz"
KINDS_OF_EDIT = ("deletion", "insertion", "swap", "substitution")
#: A macro's variable declares itself; an id of a record, a value of an enum and a type are no names of ours.
LEFT_OUT = ("variable", "id", "untyped field", "value", "type")
RESERVED = {"true", "false", "null", "in", "as", "for", "if", "var", "let", "is", "not", "or", "and", "len", "def"}
pytestmark = pytest.mark.slow
EDITS = 4_000


@dataclass(frozen=True)
class Root:
    """A file that is checked with all that it names."""

    name: str
    kind: Any


@dataclass(frozen=True)
class Use:
    """A use of a name: where it stands in a file, and where an error about it stands."""

    file: str
    place: tuple[str | int, ...]
    start: int
    word: str
    what: str
    at: tuple[int, int]
    path: tuple[Any, ...] | None = None


@dataclass
class Shipped:
    """What ships, read once.

    Arguments:
        documents: every file.
        kinds: what each is.
        loaded: the models, by file, for loaders to share.
        files: the files that take part in checking a root.
        uses: the uses that checking a root looks at.

    """

    documents: dict[str, Document] = field(default_factory=dict)
    kinds: dict[str, Any] = field(default_factory=dict)
    loaded: dict[str, Any] = field(default_factory=dict)
    files: dict[Root, set[str]] = field(default_factory=dict)
    uses: dict[Root, list[Use]] = field(default_factory=dict)


# ---- checking one root with one file edited


def problems_of(root: Root, loaded: dict[str, Any], edited: Source | None, ruled: set[str] | None) -> list[Problem]:
    """Check a root; only the packs in `ruled` (None: all) are checked with their rules."""
    loader = Loader(sources={edited.name: edited} if edited else {})
    known = {name: read for name, read in loaded.items() if edited is None or name != edited.name}
    loader._documents = {(name, kind_of(read[1].source)): read for name, read in known.items()}
    found: list[Problem] = []
    try:
        found = _checked(loader, root, ruled)
    except InvalidDocumentError as error:
        found = [problem for problem in error.problems if isinstance(problem, Problem)]
    loaded.update({name: read for (name, _), read in loader._documents.items() if not edited or name != edited.name})
    return [*loader.problems, *found]


def _checked(loader: Loader, root: Root, ruled: set[str] | None) -> list[Problem]:
    def packs(all_packs: Sequence[Pack]) -> list[Pack]:
        return [one if ruled is None or one.document.source.name in ruled else _bare(one) for one in all_packs]

    match root.kind:
        case "scenario":
            scenario = loader.scenario(root.name)
            if scenario is None or loader.problems:  # nothing is compiled from what does not load
                return []
            return scenario_problems(replace(scenario, packs=packs(scenario.packs)))
        case "cases":
            cases = load_cases(loader, root.name)
            if cases is None or loader.problems:
                return []
            book = rulebook_of(replace(cases, packs=packs(cases.packs)))
            check_cases(cases, book)
            return book.problems()
    toolset = loader.toolset(root.name)
    return [] if toolset is None else Rulebook(toolset, []).problems()


def _bare(pack: Pack) -> Pack:
    return replace(pack, file=pack.file.model_copy(update={"rules": []}))


# ---- finding the uses


@pytest.fixture(scope="module")
def shipped() -> Iterator[Shipped]:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        yield _shipped()


@cache
def _shipped() -> Shipped:
    all_of_it = Shipped()
    for name in sources.find(["policies", "fixtures"]):
        kind = sources.kind_of(name)
        if kind is not None:
            all_of_it.kinds[name] = kind
    by_kind = sorted(
        ((name, kind) for name, kind in all_of_it.kinds.items() if kind != "ledger"),
        key=lambda item: ("scenario", "cases", "toolset", "pack").index(item[1]),
    )
    for name, kind in by_kind:
        if kind == "pack" or (kind == "toolset" and any(name in files for files in all_of_it.files.values())):
            continue
        root = Root(name, kind)
        before, seen = set(all_of_it.loaded), _recorded(all_of_it, root)
        all_of_it.files[root] = {name, *seen[1], *(set(all_of_it.loaded) - before)}
        for file in all_of_it.files[root]:
            all_of_it.documents.setdefault(file, all_of_it.loaded[file][1])
        all_of_it.uses[root] = [*_in_expressions(all_of_it, seen[0]), *_outside(all_of_it, root)]
    return all_of_it


def _recorded(all_of_it: Shipped, root: Root) -> tuple[list[cel.Checked], set[str]]:
    """Check a root and note every expression that is checked, and the files they stand in."""
    noted: list[cel.Checked] = []
    check = cel.check

    def noting(*args: Any, **more: Any) -> cel.Checked:
        noted.append(check(*args, **more))
        return noted[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cel, "check", noting)
        patch.setattr(cel_text, "check", noting)
        assert problems_of(root, all_of_it.loaded, None, None) == []
    labels: list[Any] = [one.expr.source.label for one in noted if one.expr.source.label]
    return noted, {document.source.name for document, _, _ in labels}


def _in_expressions(all_of_it: Shipped, noted: list[cel.Checked]) -> list[Use]:
    """A name is typed if it is so wherever its expression is checked, once for each tool for instance."""
    found: dict[tuple[Any, ...], tuple[Document, InExpression]] = {}
    for checked in noted:
        for source, name in names_of(checked):
            label: Any = source.label
            if label is None:
                continue
            document, place, key = label
            spot = (document.source.name, tuple(place), key, name.start, name.end)
            if spot not in found or found[spot][1].what in LEFT_OUT:
                found[spot] = document, name
    uses = []
    for (file, place, key, start, end), (document, name) in found.items():
        mark = document.mark(place)
        scalar = mark.key if key else mark.scalar
        assert scalar is not None
        word = scalar.value[start:end]
        at = document.line_column(scalar.offset(name.report))
        what = "root of a path" if key and start == 0 and name.what == "field" else name.what
        uses.append(Use(file, place, scalar.offset(start), word, what, at, name.path))
    return uses


def _outside(all_of_it: Shipped, root: Root) -> Iterator[Use]:
    for file in all_of_it.files[root]:
        document = all_of_it.documents[file]
        for name in uses_in(document, all_of_it.kinds[file]):
            mark = document.mark(name.place)
            scalar = mark.key if name.key else mark.scalar
            assert scalar is not None
            start = scalar.offset(name.start)
            yield Use(file, name.place, start, name.word, name.what, document.line_column(start))


# ---- edits of a use


@dataclass(frozen=True)
class Edit:
    """A use that is misspelt, and the smallest root that looks at it."""

    use: Use
    root: Root
    kind: str
    word: str


def _edits(all_of_it: Shipped, left_out: Counter[str]) -> list[Edit]:
    """Each use once, however many roots look at it."""
    roots = sorted(all_of_it.files, key=lambda root: (root.kind != "cases", len(all_of_it.files[root])))
    chosen: dict[tuple[str, int], tuple[Root, Use]] = {}
    for root in roots:
        for use in all_of_it.uses[root]:
            known = chosen.get((use.file, use.start))
            if known is None or (known[1].what in LEFT_OUT and use.what not in LEFT_OUT):
                chosen[use.file, use.start] = root, use
    known_words = {use.word.casefold() for _, use in chosen.values()} | RESERVED | _declared_words(all_of_it)
    edits = []
    for (file, start), (root, use) in sorted(chosen.items()):
        text = all_of_it.documents[file].text
        assert text.startswith(use.word, start), use
        if use.what in LEFT_OUT:
            left_out[use.what] += 1
            continue
        for kind in KINDS_OF_EDIT:
            word = _misspelt(use.word, kind, random.Random(f"{file} {start} {kind}"))
            if word is None or word.casefold() in known_words:
                left_out["another known name, or none"] += 1
            else:
                edits.append(Edit(use, root, kind, word))
    return edits


def _declared_words(all_of_it: Shipped) -> set[str]:
    return {
        str(step).casefold()
        for document in all_of_it.documents.values()
        for leaf in leaves(document, all_of_it.kinds[document.source.name])
        for step in re.findall(
            r"\w+", str(leaf.place[-1] if leaf.is_key else leaf.mark.scalar and leaf.mark.scalar.value)
        )
    }


def _misspelt(word: str, kind: str, choose: random.Random) -> str | None:
    """Return a word with one slip; None where it has no such one."""
    at = choose.randrange(len(word))
    letter = choose.choice(LETTERS)
    match kind:
        case "deletion":
            made = word[:at] + word[at + 1 :]
        case "insertion":
            made = word[:at] + letter + word[at:]
        case "substitution":
            made = word[:at] + letter + word[at + 1 :]
        case _:
            pairs = [i for i in range(len(word) - 1) if word[i] != word[i + 1] and "." not in word[i : i + 2]]
            if not pairs:
                return None
            at = choose.choice(pairs)
            made = word[:at] + word[at + 1] + word[at] + word[at + 2 :]
    fine = made.casefold() != word.casefold() and made.count(".") == word.count(".") and not made[:1].isdigit()
    return made if fine and made.strip("._") else None


def _caught(all_of_it: Shipped, edit: Edit) -> str | None:
    """Return what is wrong with how a misspelt use is reported; None if nothing is."""
    use, document = edit.use, all_of_it.documents[edit.use.file]
    text = document.text[: use.start] + edit.word + document.text[use.start + len(use.word) :]
    ruled = {use.file}
    if all_of_it.kinds[use.file] in ("pack", "cases") and len(use.place) > 1 and isinstance(use.place[1], int):
        text = _alone(document, text, use.place[:2])
    found = problems_of(edit.root, all_of_it.loaded, Source.of(use.file, text), ruled)
    errors = [one for one in found if one.severity == "error"]
    here = [one for one in errors if one.file == use.file and (one.line, one.column) == use.at]
    said = " ".join(" ".join([one.message, *one.notes, one.inline or ""]) for one in here)
    name = f"{use.file}:{use.at[0]}:{use.at[1]} {use.what} {use.word} -> {edit.word} ({edit.root.name})"
    if not here:
        return f"{name}: no error there, but {[str(one) for one in errors] or 'none at all'}"
    if not re.search(rf"(?<![\w]){re.escape(use.word)}(?![\w])", said):
        return f"{name}: {use.word} is not suggested: {said}"
    return None


def _alone(document: Document, text: str, place: tuple[str | int, ...]) -> str:
    """Return the text with the other rules (or cases) made comments: their lines stay, their checks take no time."""
    lines = text.split("\n")
    for number, mark in document.mark(place[:1]).children.items():
        if number != place[1]:
            first, last = document.line_column(mark.start)[0], document.line_column(mark.end - 1)[0]
            lines[first - 1 : last] = ["#" + line for line in lines[first - 1 : last]]
    return "\n".join(lines)


def _sample(edits: list[Edit], count: int) -> list[Edit]:
    """Every kind of name in every file first, then evenly."""
    choose = random.Random(2)
    shuffled = choose.sample(edits, len(edits))
    first: dict[Any, Edit] = {}
    for edit in shuffled:
        first.setdefault((edit.use.file, edit.use.what, edit.kind), edit)
    rest = [edit for edit in shuffled if first.get((edit.use.file, edit.use.what, edit.kind)) is not edit]
    return [*first.values(), *rest][:count]


def test_uses_are_found_and_what_is_left_out_is_counted(shipped: Shipped) -> None:
    left_out: Counter[str] = Counter()
    edits = _edits(shipped, left_out)
    kinds = Counter(edit.use.what for edit in edits)
    print(len(edits), dict(kinds), dict(left_out))
    assert len(edits) > 15_000
    assert set(kinds) == {
        *("key", "keyword", "tool", "argument", "fact", "flag", "constraint", "function", "define", "rule"),
        *("root", "root of a path", "field", "goal", "tag", "access"),
    }
    assert set(left_out) <= {*LEFT_OUT, "another known name, or none"}
    assert sum(left_out.values()) < len(edits) / 20


@pytest.mark.timeout(1800)
def test_misspelt_uses(shipped: Shipped) -> None:
    edits = _sample(_edits(shipped, Counter()), EDITS)
    wrong = [text for edit in edits if (text := _caught(shipped, edit)) is not None]
    assert not wrong, "\n".join(wrong)


# ---- declarations that are renamed


@dataclass(frozen=True)
class Declared:
    """A declaration: where its name stands, and what it declares.

    Arguments:
        owner: for an argument its tool.
        path: for a fact, constraint or flag the whole path, with None for a key known at run time only.

    """

    file: str
    place: tuple[str | int, ...]
    start: int
    word: str
    what: str
    owner: str = ""
    path: tuple[Any, ...] | None = None


def _declarations(all_of_it: Shipped, file: str) -> Iterator[Declared]:
    document, kind = all_of_it.documents[file], all_of_it.kinds[file]
    for leaf in leaves(document, kind):
        what = at_place(DECLARATIONS, kind, leaf)
        scalar = leaf.mark.key if leaf.is_key else leaf.mark.scalar
        if what is not None and scalar is not None:
            part = {"fact": "facts", "constraint": "constraints", "flag": "flags"}.get(what)
            path = ("state", part, scalar.value) if part else None
            owner = str(leaf.place[1]) if what == "argument" else ""
            yield Declared(file, leaf.place, scalar.offset(0), scalar.value, what, owner, path)
        elif kind == "toolset" and leaf.is_key and leaf.role == "name" and "set" in leaf.place[2:-1]:
            yield from _set_by(document, leaf.place)


def _set_by(document: Document, place: tuple[str | int, ...]) -> Iterator[Declared]:
    """What a key under `set` declares: each step of its path, and each key of a map that it is set to."""
    key = document.mark(place).key
    assert key is not None
    at = place.index("set") + 1
    node: Any = cel.parse(str(place[at])).node
    inner = [str(step) for step in place[at + 1 :]]
    steps: list[tuple[str | None, int]] = []
    while not isinstance(node, syntax.Name):
        steps.append((node.field, node.end - len(node.field)) if isinstance(node, syntax.Select) else (None, 0))
        node = node.operand
    steps.reverse()
    whole = ("state", node.name, *(name for name, _ in steps))
    what = {"facts": "fact", "flags": "flag", "constraints": "constraint"}.get(node.name)
    if what is None:
        return
    if inner:
        yield Declared(document.source.name, place, key.offset(0), inner[-1], what, "", (*whole, *inner))
        return
    for number, (name, start) in enumerate(steps):
        if name is not None:
            yield Declared(document.source.name, place, key.offset(start), name, what, "", whole[: number + 3])


def _like(pattern: tuple[Any, ...], path: tuple[Any, ...] | None) -> bool:
    if path is None or len(path) != len(pattern):
        return False
    return all(mine is None or its is None or mine == its for mine, its in zip(pattern, path, strict=True))


def _uses_of(all_of_it: Shipped, declared: Declared, root: Root) -> list[Use]:
    """The uses that only this declaration makes right."""
    uses = [use for use in all_of_it.uses[root] if use.word == declared.word or use.what == "rule"]
    match declared.what:
        case "tool":
            return [use for use in uses if use.what == "tool"]
        case "argument":
            return [use for use in uses if use.what == "argument" and _tools_at(all_of_it, use) == {declared.owner}]
        case "define":
            return [use for use in uses if use.what == "define" and use.file == declared.file]
        case "rule":
            pack = all_of_it.loaded[declared.file][0].pack
            return [
                use for use in uses if use.what == "rule" and use.word in (declared.word, f"{pack}/{declared.word}")
            ]
    assert declared.path is not None
    below_state = [use for use in uses if _like(declared.path, use.path)]
    given = [use for use in uses if use.what == declared.what and use.path is None and len(declared.path) == 3]
    return below_state + given


def _tools_at(all_of_it: Shipped, use: Use) -> set[str]:
    """The tools that a place speaks of, as far as the place alone says so."""
    model: Any = all_of_it.loaded[use.file][0]
    match all_of_it.kinds[use.file], use.place:
        case "toolset", ("tools", tool, *_):
            return {str(tool)}
        case "pack", ("rules", int(number), *_):
            return set(model.rules[number].tools or ())
        case "scenario", ("decide", "script", int(number), "propose", *_):
            return {model.decide.script[number].propose.tool} if use.path is None else set()
        case "cases", ("tests", int(number), "propose", *_):
            return {model.tests[number].propose.tool} if use.path is None else set()
        case "cases", ("tests", int(number), "history", int(step), *_):
            return {model.tests[number].history[step].tool}
    return set()


def _renames(all_of_it: Shipped, left_out: Counter[str]) -> list[tuple[Declared, Root, list[Use]]]:
    """Each declaration with each root that uses it."""
    found = []
    everything = {file: list(_declarations(all_of_it, file)) for file in all_of_it.documents}
    used: dict[Declared, bool] = {}
    for root, files in all_of_it.files.items():
        together = [declared for file in sorted(files) for declared in everything[file]]
        for declared in together:
            used.setdefault(declared, False)
            if _again(declared, together):
                left_out["declared twice"] += 1
                used[declared] = True
            elif uses := _uses_of(all_of_it, declared, root):
                used[declared] = True
                found.append((declared, root, uses))
    left_out["used by nobody"] = list(used.values()).count(False)
    return found


def _again(declared: Declared, others: list[Declared]) -> bool:
    """Whether something else declares the same, or a part of it, or what holds it: its name may stay known then."""
    return any(_overlap(declared, other) for other in others if other is not declared and other.what == declared.what)


def _overlap(one: Declared, other: Declared) -> bool:
    if one.path is None or other.path is None:
        return (one.word, one.owner) == (other.word, other.owner)
    same_entry = one.file == other.file and (
        one.place[: len(other.place)] == other.place or other.place[: len(one.place)] == one.place
    )
    length = min(len(one.path), len(other.path))
    return not same_entry and _like(one.path[:length], other.path[:length])


def _noticed(all_of_it: Shipped, declared: Declared, root: Root, uses: list[Use]) -> list[str]:
    """Return the uses at which a renamed declaration makes no error."""
    document = all_of_it.documents[declared.file]
    end = declared.start + len(declared.word)
    assert document.text.startswith(declared.word, declared.start), declared
    text = document.text[:end] + "_renamed" + document.text[end:]
    ruled = {use.file for use in uses} | {declared.file}
    found = problems_of(root, all_of_it.loaded, Source.of(declared.file, text), ruled)
    places = {(one.file, one.line, one.column) for one in found if one.severity == "error"}
    return [
        f"{declared.file} {declared.what} {declared.word}: no error at {use.file}:{use.at[0]}:{use.at[1]} ({root.name})"
        for use in uses
        if (use.file, *use.at) not in places and use.start != declared.start
    ]


@pytest.mark.timeout(900)
def test_renamed_declarations(shipped: Shipped) -> None:
    left_out: Counter[str] = Counter()
    renames = _renames(shipped, left_out)
    by_declaration: dict[Declared, tuple[Declared, Root, list[Use]]] = {}
    for rename in sorted(renames, key=lambda one: -len(one[2])):
        by_declaration.setdefault(rename[0], rename)
    print(len(by_declaration), Counter(one.what for one in by_declaration), dict(left_out))
    assert {one.what for one in by_declaration} == {"tool", "argument", "define", "rule", "constraint", "fact", "flag"}
    assert len(by_declaration) > 200
    assert set(left_out) == {"declared twice", "used by nobody"}
    wrong = [text for rename in renames for text in _noticed(shipped, *rename)]
    assert not wrong, "\n".join(wrong)
