"""What cases have shown: each rule failed, passed, never applied, could not be told; each condition true, false.

Invariants:
* A rule is *proved* once a case has seen it fail (of a grant: hold) because of what is known, not of what is missing.
* Plain values: what several files or processes show is added up.
"""

from __future__ import annotations

from dataclasses import dataclass, field

Key = tuple[str, int, int]  # the file, and where in its text


@dataclass(slots=True)
class RuleSeen:
    """How often cases have seen a rule do what.

    Arguments:
        name: `pack/rule`.
        file: the pack's file.
        line: where it stands.
        grants: whether it is a grant: then `failed` counts where it held, since that is what it is for.
        failed: it failed because of what is known.
        passed: it was asked and held (of a grant: did not).
        untold: it could not be told.
        other: it did not apply.

    """

    name: str
    file: str
    line: int
    grants: bool = False
    failed: int = 0
    passed: int = 0
    untold: int = 0
    other: int = 0

    @property
    def proved(self) -> bool:
        """Whether a case has seen it do what it is for."""
        return self.failed > 0


@dataclass(slots=True)
class ConditionSeen:
    """How often cases have seen a condition true and false.

    Arguments:
        text: as it is typed.
        file: the pack's file.
        line: where it stands.
        column: and where in the line.
        held: it was true.
        failed: it was false.
        untold: it could not be told.

    """

    text: str
    file: str
    line: int
    column: int
    held: int = 0
    failed: int = 0
    untold: int = 0

    @property
    def ways(self) -> int:
        """How many of the two ways were seen."""
        return (self.held > 0) + (self.failed > 0)


@dataclass(slots=True)
class Coverage:
    """What cases have shown.

    Arguments:
        rules: `file` and name of each rule → what was seen of it.
        conditions: where each condition stands → what was seen of it.

    """

    rules: dict[tuple[str, str], RuleSeen] = field(default_factory=dict)
    conditions: dict[Key, ConditionSeen] = field(default_factory=dict)

    def add(self, other: Coverage) -> None:
        """Take in what other cases have shown."""
        for name, seen in other.rules.items():
            mine = self.rules.setdefault(name, RuleSeen(seen.name, seen.file, seen.line, seen.grants))
            for key in ("failed", "passed", "untold", "other"):
                setattr(mine, key, getattr(mine, key) + getattr(seen, key))
        for place, one in other.conditions.items():
            also = self.conditions.setdefault(place, ConditionSeen(one.text, one.file, one.line, one.column))
            for key in ("held", "failed", "untold"):
                setattr(also, key, getattr(also, key) + getattr(one, key))

    @property
    def proved(self) -> float:
        """How much of the rules is proved, in percent."""
        return _percent(sum(rule.proved for rule in self.rules.values()), len(self.rules))

    @property
    def both_ways(self) -> float:
        """How much of the conditions was seen, each in both ways, in percent."""
        return _percent(sum(one.ways for one in self.conditions.values()), 2 * len(self.conditions))

    @property
    def unproved(self) -> list[RuleSeen]:
        """The rules that no case proves, in the order of files and lines."""
        return sorted((one for one in self.rules.values() if not one.proved), key=lambda one: (one.file, one.line))

    @property
    def one_sided(self) -> list[ConditionSeen]:
        """The conditions that were not seen both ways."""
        ways = (one for one in self.conditions.values() if one.ways < 2)
        return sorted(ways, key=lambda one: (one.file, one.line, one.column))


def _percent(part: int, whole: int) -> float:
    return 100.0 * part / whole if whole else 100.0
