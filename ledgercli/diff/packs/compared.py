"""Two versions of a pack, compared: what is written otherwise, and for each tool which verdicts can differ.

Invariants:
* Files with the same bytes, which include the same, are the same: no names are needed to say so.
* Nothing is printed here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from ledgercli.diff.layers import FailOn
from ledgercli.diff.packs.found import Found, ToolDifference
from ledgercli.diff.packs.search import MOST, Search
from ledgercli.diff.packs.units import sides
from ledgercli.diff.packs.versions import Setting, names_in, read, settings
from ledgercli.diff.packs.written import Change, changes
from ledgercli.policy import Pack

_WORK: Final = 12_000  # rules that are evaluated in all, about
_LEAST: Final = 60  # situations that are tried for a tool at least
_VERDICTS: Final = frozenset({"effect", "halt", "rules"})


@dataclass(frozen=True)
class Side:
    """One version, for reports."""

    path: str
    pack: Pack


@dataclass(frozen=True)
class PackDifference:
    """All that two versions of a pack differ in.

    Arguments:
        a: the first.
        b: the second.
        written: what is written otherwise.
        tools: for each tool, what can differ.
        names: the file that the tools were read from; None if the packs themselves name them.

    """

    a: Side
    b: Side
    written: tuple[Change, ...]
    tools: tuple[ToolDifference, ...]
    names: str | None

    @property
    def found(self) -> Iterator[Found]:
        """Every verdict that can differ."""
        return (one for tool in self.tools for one in tool.found)

    @property
    def same(self) -> bool:
        """Whether nothing differs at all."""
        return not self.written and not any(self.found)

    def fails(self, on: FailOn) -> bool:
        """Whether there is a difference of a kind: `any`; `worse`, what B lets through or asks and A does not;
        `verdicts`, another effect, other rules, or another end of the run."""  # noqa: D205, D209 - one sentence
        if on == "any":
            return not self.same
        if on == "worse":
            return any(one.worse for one in self.found)
        if on == "verdicts":
            return any(one.kind in _VERDICTS for one in self.found)
        return False  # packs have no state


def differences(a: str, b: str, *, toolset: str | None = None) -> PackDifference:
    """Compare two versions of a pack.

    Arguments:
        a: the file of the first.
        b: the file of the second.
        toolset: a toolset, or a scenario or case file with one, that says which tools and facts there are; None where
            the packs say so themselves.

    Raises:
        LedgerCliError: a file cannot be read or is wrong, or nothing says which tools there are.

    """
    packs = read(a), read(b)
    written = tuple(changes(*packs))
    names = names_in(toolset) if toolset is not None else None
    tools: tuple[ToolDifference, ...] = ()
    if written or names is not None or _declares(packs[0]):
        tools = tuple(_tools(settings((a, b), *packs, names)))
    return PackDifference(Side(a, packs[0][-1]), Side(b, packs[1][-1]), written, tools, toolset)


def _declares(packs: Sequence[Pack]) -> bool:
    return packs[-1].file.vocabulary is not None


def _tools(settings_: Iterable[Setting]) -> Iterator[ToolDifference]:
    """Yield what differs for each tool; the more tools and rules there are, the less is tried for each."""
    every = [(sides(setting, name), tool) for setting in settings_ for name, tool in setting.tools.items()]
    work = sum(len(one.units) for one, _ in every if not one.agree())
    most = min(MOST, max(_LEAST, _WORK // max(work, 1)))
    for one, tool in every:
        yield Search(one, tool, most).run()
