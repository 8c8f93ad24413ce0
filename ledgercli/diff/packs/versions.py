"""Two versions of a pack, compiled against the same names.

Tools and facts come from a toolset (or a scenario or case file, which bring one), or from what the packs themselves
declare under `vocabulary:`. What one version declares there the other may use.

Invariants:
* Both versions know the same tools.
* Where only the packs say which tools there are, nothing says whether one is a read or how it is tagged: each tool
  then stands for every kind of it that the rules can tell apart.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final, Literal

from ledgercli import sources
from ledgercli.enforcer import Enforcer
from ledgercli.errors import InvalidDocumentError, LedgerCliError, UnreadableInputError
from ledgercli.loading import Loader, refuse
from ledgercli.names import type_named
from ledgercli.policy import Declared, Pack
from ledgercli.policytests import rulebook_of
from ledgercli.scenario import Scenario
from ledgercli.toolset import BUILT_IN, Tool, Toolset
from ledgercli.validation import load_cases
from ledgercli.vocabulary import Vocabulary

ANY_TOOL: Final = "any_tool"  # stands for a tool where the packs name none
_PARTS: Final = ("facts", "constraints", "flags")


@dataclass(frozen=True)
class Names:
    """Where names come from beside the packs.

    Arguments:
        path: the file, as typed.
        toolset: the tools.
        scenario: its facts, constraints, flags and goals, if it is one.
        initial: those of a case file.

    """

    path: str
    toolset: Toolset
    scenario: Scenario | None
    initial: Mapping[str, Any]

    def given(self, part: str) -> Mapping[str, Any]:
        """The values that the file gives for `facts`, `constraints` or `flags`."""
        mine = getattr(self.scenario.file, part) if self.scenario else {}
        return {**mine, **(self.initial.get(part) or {})}


@dataclass(frozen=True, eq=False)
class Version:
    """One version of the pack.

    Arguments:
        path: its file, as typed.
        packs: those that it includes, then itself.
        vocabulary: the names.
        enforcer: the rules, compiled.

    """

    path: str
    packs: Sequence[Pack]
    vocabulary: Vocabulary
    enforcer: Enforcer

    @property
    def pack(self) -> Pack:
        """The pack itself."""
        return self.packs[-1]

    @cached_property
    def defaults(self) -> dict[str, Any]:
        """The constraints that the packs give."""
        return {name: value for pack in self.packs for name, value in pack.file.constraints.items()}

    def short(self, rule: str) -> str:
        """Return a rule's name without that of the pack itself."""
        return rule.removeprefix(f"{self.pack.name}/")


@dataclass(frozen=True, eq=False)
class Setting:
    """Both versions beside the same tools.

    Arguments:
        a: the first.
        b: the second.
        tools: the tools.
        kind: which kind of tool they stand for, where nothing but the packs says so; empty otherwise.
        given: constraints that a scenario or case file gives.

    """

    a: Version
    b: Version
    tools: Mapping[str, Tool]
    kind: str
    given: Mapping[str, Any]


def read(path: str) -> list[Pack]:
    """Return a pack behind those that it includes.

    Raises:
        LedgerCliError: it cannot be read, or is no pack.

    """
    loader = Loader()
    packs = loader.given([path])
    refuse(loader.problems)
    return packs


def names_in(path: str) -> Names:
    """Read the file that says which tools and facts there are: a toolset, scenario or case file.

    Raises:
        LedgerCliError: it cannot be read, or is of another kind.

    """
    loader = Loader()
    kind = sources.kind_of(sources.read(path))
    toolset, scenario, initial = None, None, {}
    if kind == "toolset":
        toolset = loader.toolset(path)
    elif kind == "scenario":
        scenario = loader.scenario(path)
        toolset = scenario.toolset if scenario else None
    elif kind == "cases":
        cases = load_cases(loader, path)
        toolset = cases.toolset if cases else None
        state = cases.file.state if cases else None
        initial = {part: getattr(state, part) for part in _PARTS}
        if cases is not None:
            refuse(rulebook_of(cases).problems())
    else:
        raise UnreadableInputError(f"{path} says nothing of tools", fix="name a toolset, scenario or case file")
    refuse(loader.problems)
    assert toolset is not None, "a file without problems has a model"
    return Names(path, toolset, scenario, initial)


def settings(paths: tuple[str, str], a: Sequence[Pack], b: Sequence[Pack], names: Names | None) -> list[Setting]:
    """Return both versions, compiled, for each kind of tools.

    Raises:
        InvalidDocumentError: something in them is wrong.
        LedgerCliError: nothing says which tools and facts there are.

    """
    packs = _sharing(a, b), _sharing(b, a)
    if names is not None:
        one, other = _beside(paths[0], packs[0], names), _beside(paths[1], packs[1], names)
        given = {
            name: value
            for name, value in names.given("constraints").items()
            if name not in one.defaults or name not in other.defaults
        }
        return [Setting(one, other, names.toolset.tools, "", given)]
    for pack in (packs[0][-1], packs[1][-1]):
        if pack.file.vocabulary is None:
            message = f"nothing says which tools and facts the pack {pack.name} may name"
            raise LedgerCliError(message, fix="--toolset FILE: a toolset, or a scenario or case file that has one")
    return [
        Setting(_alone(paths[0], packs[0], tools), _alone(paths[1], packs[1], tools), tools, kind, {})
        for kind, tools in _kinds([*packs[0], *packs[1]])
    ]


def _beside(path: str, packs: Sequence[Pack], names: Names) -> Version:
    vocabulary = Vocabulary(names.toolset, packs, names.scenario, names.initial)
    version = Version(path, packs, vocabulary, Enforcer(vocabulary, packs))
    version.enforcer.check()
    _refuse(vocabulary, names.path)
    return version


def _refuse(vocabulary: Vocabulary, path: str) -> None:
    """Raise if a pack has problems; a name that only a scenario gives needs that scenario."""
    try:
        refuse(vocabulary.problems)
    except InvalidDocumentError as error:
        fix = f"if a scenario or case file gives these names, --toolset FILE with it in place of {path}"
        raise InvalidDocumentError(error.message, problems=error.problems, fix=fix) from None


def _alone(path: str, packs: Sequence[Pack], tools: Mapping[str, Tool]) -> Version:
    vocabulary = Vocabulary(None, packs)
    vocabulary.tools.update(tools)
    version = Version(path, packs, vocabulary, Enforcer(vocabulary, packs))
    version.enforcer.check()
    refuse(vocabulary.problems)
    return version


def _sharing(mine: Sequence[Pack], theirs: Sequence[Pack]) -> list[Pack]:
    """Return the packs, of which the last may use what the other version declares."""
    own, other = mine[-1].file.vocabulary, theirs[-1].file.vocabulary
    if other is None:
        return list(mine)
    own = own or Declared()
    united = Declared(
        tools={tool: {**other.tools.get(tool, {}), **own.tools.get(tool, {})} for tool in {**other.tools, **own.tools}},
        tags=list(dict.fromkeys([*other.tags, *own.tags])),
        facts={**other.facts, **own.facts},
        flags=list(dict.fromkeys([*other.flags, *own.flags])),
        constraints={**other.constraints, **own.constraints},
    )
    return [*mine[:-1], replace(mine[-1], file=mine[-1].file.model_copy(update={"vocabulary": united}))]


def _kinds(packs: Sequence[Pack]) -> Iterator[tuple[str, Mapping[str, Tool]]]:
    """Yield each kind of tool that the rules can tell apart, with the declared tools as such."""
    declared: dict[str, Tool] = {}
    tags: dict[str, None] = {}
    for pack in packs:
        if pack.file.vocabulary is not None:
            tags |= dict.fromkeys(pack.file.vocabulary.tags)
            for name, args in pack.file.vocabulary.tools.items():
                known = declared[name].args if name in declared else {}
                declared[name] = Tool(args={**known, **{arg: type_named(text).schema for arg, text in args.items()}})
    text = "\n".join(pack.document.source.text for pack in packs)
    told: list[tuple[str, Literal["read", "write"], tuple[str, ...]]] = [("a write", "write", ())]
    if "action.access" in text:
        told.append(("a read", "read", ()))
    if "action.tags" in text:
        told += [(f"{kind} with the tag {tag}", access, (tag,)) for kind, access, _ in tuple(told) for tag in tags]
    for kind, access, tagged in told:
        update = {"access": access, "tags": list(tagged)}
        tools = {name: tool.model_copy(update=update) for name, tool in (declared or {ANY_TOOL: Tool()}).items()}
        yield ("" if len(told) == 1 else kind), {**BUILT_IN, **tools}
