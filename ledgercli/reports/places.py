"""Where rules stand, for reports: `pack/rule` → `policies/weather.yaml:5`."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ledgercli.policy import Pack

RulePlace = Callable[[str], str | None]


def rule_places(packs: Iterable[Pack]) -> RulePlace:
    """Return a function that tells where a rule stands; None for a built-in one."""
    places: dict[str, str] = {}
    for pack in packs:
        for number, rule in enumerate(pack.file.rules):
            places[f"{pack.name}/{rule.name}"] = pack.document.position(("rules", number))
        places[f"{pack.name}/default_deny"] = pack.document.position(("default",), key=True)
    return places.get


def nowhere(rule: str) -> str | None:
    """Stand for `rule_places` where no pack is at hand."""
    del rule
    return None
