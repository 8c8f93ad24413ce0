"""What a scenario expects of a run: the names in it, and what of it a run has not met.

Invariants:
* A name that nothing declares is a problem at load, never an expectation that is always or never met.
* What a run did is read from its ledger, as `ledger list` reads it: a rule has failed where its check did not hold,
  whatever that led to; a call was made if it ran, whatever came of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from ledgercli import paths
from ledgercli.decision import check_call
from ledgercli.documents import Document, Place
from ledgercli.history import freeze
from ledgercli.listing import rules_of, spelled
from ledgercli.policy import rule_names
from ledgercli.scenario import Expect, ExpectedCall, Scenario
from ledgercli.state import STATUSES
from ledgercli.toolset import Toolset
from ledgercli.vocabulary import SETTABLE, Vocabulary

#: What was not as expected: its path, what was wanted, what there was.
Unmet = tuple[str, Any, Any]

_HAPPENED: Final = ("rules", "calls", "no_calls")
_ENDS: Final = ("answer", "final_answer", "error", "goal")
_RAN: Final = frozenset({"ok", "error", "unknown"})


def paths_of(expect: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is expected of the end: path → value."""
    return {path: value for path, value in expect.items() if path not in _HAPPENED}


def tells_steps(expect: Mapping[str, Any]) -> bool:
    """Whether something is expected of the steps, too."""
    return any(key in expect for key in _HAPPENED)


# ---- at load


def check_expect(vocabulary: Vocabulary, scenario: Scenario) -> None:
    """Report what a scenario expects that cannot be."""
    expect = scenario.file.expect or Expect()
    for path, value in paths_of(expect).items():
        _check_path(vocabulary, scenario.document, path, value)
    _check_rules(vocabulary, scenario)
    for kind, calls in (("calls", expect.get("calls", [])), ("no_calls", expect.get("no_calls", []))):
        for number, call in enumerate(calls):
            _check_call(vocabulary, scenario, ("expect", kind, number), call)


def _check_path(vocabulary: Vocabulary, document: Document, path: str, value: Any) -> None:
    """A path names a part of the final state, the status or the answer."""
    place: Place = ("expect", path)
    if path == "status":
        if value not in STATUSES:
            vocabulary.unknown(document, place, "status", str(value), STATUSES)
        return
    if path in _ENDS or (vocabulary.plans and path.startswith("goals")):  # a plan may add goals of any name
        return
    if path.isidentifier() and path not in SETTABLE:
        known = ("status", *_ENDS, *_HAPPENED, *SETTABLE)
        vocabulary.unknown(document, place, "expectation", path, known, key=True)
        return
    target = vocabulary.target(document, place, path, key=True)
    if target is None:
        return
    if any(part is None for part in target.pattern):
        note = 'write the key as a text: facts.orders["W1"]'
        vocabulary.problem(
            document, place, "not-a-path", f"{path} is no path of the final state", notes=(note,), key=True
        )
        return
    vocabulary.declared_path(document, place, target, key=True)


def _check_rules(vocabulary: Vocabulary, scenario: Scenario) -> None:
    rules = (scenario.file.expect or Expect()).get("rules")
    known = rule_names(scenario.packs)
    for kind in ("failed", "not_failed"):
        for number, name in enumerate(getattr(rules, kind, ())):
            if name not in known:
                vocabulary.unknown(scenario.document, ("expect", "rules", kind, number), "rule", name, known)


def _check_call(vocabulary: Vocabulary, scenario: Scenario, place: Place, call: ExpectedCall) -> None:
    document = scenario.document
    check_call(vocabulary, document, place, call.tool, call.args, whole=False)
    for rule in scenario.toolset.file.redact:
        tool, part, *keys = rule.split(".")
        if tool == call.tool and part == "args" and keys and keys[0] in call.args:
            message = f"{rule} is masked in the ledger, so that nobody can tell whether a call had this value"
            vocabulary.problem(document, (*place, "args", keys[0]), "masked-value", message, key=True)


# ---- at the end


def mismatches(tree: Mapping[str, Any], expect: Mapping[str, Any]) -> Iterator[Unmet]:
    """Yield what is expected of a final state and is not so."""
    for path, wanted in paths_of(expect).items():
        got = paths.get(tree, paths.parse(path), None)
        if not paths.same(got, wanted):
            yield path, wanted, got


@dataclass(slots=True)
class Happened:
    """What a run did.

    Arguments:
        failed: the rules that failed, each with the first step in which it did.
        calls: the calls that ran, by tool, with their arguments and defaults.

    """

    failed: dict[str, int] = field(default_factory=dict)
    calls: dict[str, list[Mapping[str, Any]]] = field(default_factory=dict)

    @classmethod
    def of(cls, lines: Iterable[Mapping[str, Any]], toolset: Toolset) -> Happened:
        """Return what the lines of a ledger tell."""
        happened = cls()
        for line in lines:
            if line["kind"] == "step":
                happened._see(line, toolset)
        return happened

    def _see(self, line: Mapping[str, Any], toolset: Toolset) -> None:
        for name in spelled(rules_of(line["verdict"])):
            self.failed.setdefault(name, line["step"])
        if line["verdict"] is not None and line["outcome"] in _RAN:
            tool, args = line["action"]["tool"], line["action"]["args"]
            known = toolset.tools.get(tool)
            self.calls.setdefault(tool, []).append(known.filled(args) if known else args)

    def unmet(self, expect: Expect) -> Iterator[Unmet]:
        """Yield what is expected of rules and calls and is not so."""
        rules = expect.get("rules")
        for name in rules.failed if rules else ():
            if name not in self.failed:
                yield f"rules.{name}", "failed", "not failed"
        for name in rules.not_failed if rules else ():
            if name in self.failed:
                yield f"rules.{name}", "not failed", f"failed @{self.failed[name]}"
        for call in expect.get("calls", ()):
            made = self.calls.get(call.tool, [])
            if not any(_fits(call, args) for args in made):
                yield f"calls.{call.tool}", call.args or "a call", made or "none"
        for call in expect.get("no_calls", ()):
            found = [args for args in self.calls.get(call.tool, ()) if _fits(call, args)]
            if found:
                yield f"no_calls.{call.tool}", "none", found


def _fits(call: ExpectedCall, args: Mapping[str, Any]) -> bool:
    return all(name in args and freeze(args[name]) == freeze(value) for name, value in call.args.items())
