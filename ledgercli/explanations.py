"""What every kind of finding means: the texts of `ledger validate --explain CODE`.

Invariants:
* Every code that a finding can have has a text here, or in the table of the module that finds it; a test walks the
  sources for codes.
* A code that two modules use has a text here that speaks of both.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Final

from ledgercli import cel, documents
from ledgercli.analysis import codes
from ledgercli.ledger import verify

_OWN: Final[Mapping[str, str]] = {
    # names
    "unknown-access": "An access is `read` or `write`; a comparison with anything else is always false.",
    "unknown-argument": "The tool has no argument of this name; the toolset declares them under `args:`.",
    "unknown-constraint": "No scenario gives this constraint and no pack has a default for it, so that a rule which "
    "reads it could never be told. Constraints stand under `constraints:`.",
    "unknown-effect": "The effects are allow, warn, require_approval and deny.",
    "unknown-fact": "Nothing sets this fact: no scenario knows it from the start (`facts:`), and no transition of a "
    "tool sets it (`on_success: {set: {facts.x: …}}`). A rule that reads it could never be told.",
    "unknown-flag": "Nothing sets this flag: no scenario, no transition and no `vocabulary:` of the pack.",
    "unknown-expectation": "A scenario expects a status, an answer, paths of the final state (facts.x), rules, calls "
    "and no_calls.",
    "unknown-goal": "The scenario has no goal of this name; they stand under `goals:`.",
    "unknown-python-function": "The Python file defines no function of this name at its top. The file was parsed, "
    "not imported.",
    "unknown-rule": "None of the packs has a rule of this name. Rules are named `rule` or `pack/rule`.",
    "unknown-settable-path": "A transition sets paths under facts, flags, constraints and goals, and `error` and "
    "`final_answer`; nothing else of a state can be set.",
    "unknown-status": "A run is running, completed, failed, halted, limit, awaiting_approval, error or interrupted.",
    "unknown-tag": "No tool has this tag; the toolset gives them under `tags:`.",
    "unknown-tool": "The toolset has no tool of this name.",
    "unknown-type": "JSON Schema knows the types string, integer, number, boolean, null, array and object.",
    "unknown-value": "The schema of this value names all that it can be (`enum:`), and this is none of them; the "
    "comparison would always be false.",
    # rules and packs
    "constant-keys": "The functions over past steps are asked about arguments by name, so that a misspelt name can be "
    "found: the map must be written out here, with constant keys, or be `action.args`.",
    "cyclic-include": "The packs include each other in a circle.",
    "duplicate-default": "Two packs have a default for one constraint, and which of them holds would depend on the "
    "order of the packs. Keep one, or set the constraint in the scenario.",
    "duplicate-pack": "Two different files say that they are the pack of this name, and a verdict could not tell "
    "which of them a rule is from. Rename one.",
    "duplicate-rule": "Two rules of a pack have one name, and a verdict could not tell them apart.",
    "grant-means-nothing": "A grant competes with failed rules under `resolve: priority`, and opens an allow-list "
    "under `default: deny`. In a pack with neither of them it does nothing.",
    "no-vocabulary": "A pack by itself does not say which tools, facts and flags exist, so its names cannot be "
    "checked. Validate it together with a scenario or case file that uses it, or give it a `vocabulary:`.",
    "nothing-sets": "The `vocabulary:` of a pack says that this is always there, and nothing here sets it: no "
    "scenario, no default and no transition. A type that ends in `?` may be absent.",
    # texts and paths
    "missing-braces": "A text that is exactly a known path was probably meant as its value, and would be sent as "
    "these letters. Write it in braces: `{state.task}`.",
    "not-a-path": "Paths are written as in a rule: `facts.orders[result.data.id].status`, keys that are no plain names "
    "in brackets and quotes. A transition sets paths below `facts`, `flags`, `constraints` and `goals`; `redact:` "
    "names `TOOL.args.x` or `TOOL.data.y`; in an expression a function that asks for a path takes it as it is written, "
    "not a value.",
    # toolsets and scenarios
    "bad-schema": "Arguments and results are described with JSON Schema, and this is none: a word of it has a value of "
    "the wrong kind, or refers to something outside.",
    "built-in-tool": "`finish` is built in and cannot be declared.",
    "duplicate-goal": "Two goals have one name, and `goals.NAME` could not tell them apart.",
    "missing-argument": "The tool needs an argument that is not given; one with a default need not be.",
    "no-file": "The file that is named here does not exist. Paths are relative to the file that names them.",
    "not-a-function": "`python:` names a function as `file.py:function` or `package.module:function`.",
    "masked-value": "What `redact:` masks before it is written cannot be compared afterwards.",
    "not-a-limit": "The limits of a run are numbers from 0: max_steps, max_seconds, max_repeats and max_denials.",
    "not-a-time": "A time is written as RFC 3339 has it, with its zone: 2026-08-01T12:00:00Z.",
    "not-python": "The file that should hold the tool's function is no Python. It was parsed, not imported.",
    "unreadable-file": "The file that is named here cannot be read, or is of another kind than belongs here.",
    # cases
    "ambiguous-rule": "Several packs have a rule of this name, and a case must say which it means: `pack/rule`.",
    "no-expectation": "A case says what its verdict must be: an effect, rules, an error, a hint. One that says nothing "
    "would pass whatever the rules do.",
    "no-reason": "A case that is skipped says why, so that somebody can tell when it is to be judged again.",
    "no-rows": "A case with `for:` is judged once for each row; without rows it would never be judged.",
    "row-in-data": "In a case with `for:` the values of a row can stand in `name`, `propose` and `expect`. What is in "
    "`state` and `history` is data, taken as it stands.",
    "duplicate-case": "Two cases have one name, and a report could not tell them apart.",
    "not-a-step": "A recorded step is written LEDGER@STEP, such as runs/0412.ledger.jsonl@9.",
    # codes of two modules
    "duplicate-key": "A key stands twice in one map, in the file or in an expression; one of the two would silently be "
    "lost.",
}


@cache
def explanations() -> Mapping[str, str]:
    """Return every code with what it means."""
    return dict(sorted({**documents.CODES, **cel.CODES, **verify.CODES, **codes.CODES, **_OWN}.items()))


def like(code: str) -> tuple[str, ...]:
    """Return the codes that a misspelt one may have been meant for."""
    return cel.nearest(code, explanations())
