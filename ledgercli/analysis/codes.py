"""The codes of the analysis: what each means, and how much it weighs.

Invariants:
* A warning is a rule or a name that cannot do what it was written for; a note is a fact that may be meant.
* No finding of the analysis is an error: the pack loads, and judges as it says.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ledgercli.sources import Severity

CODES: Final[Mapping[str, str]] = {
    # rules by themselves
    "never-applies": "No call in any state meets the rule's condition, together with its `tools:` and the pack's "
    "`active:`. The rule does nothing. (A condition that cannot be told counts as failed: where only that is left, the "
    "message says so.)",
    "tool-never-concerned": "The rule names this tool under `tools:`, and its condition, or the pack's `active:`, is "
    "false for every call of it.",
    "check-always-holds": "The check is true for every call that the rule applies to, by the types of the values, the "
    "schemas of the arguments and the rule's own condition. The rule can refuse nothing, or nothing but what is not "
    "known.",
    "check-never-holds": "The check is true for no call that the rule applies to, so the rule refuses all of them. If "
    "that is meant, `check: false` says it.",
    "grant-never-holds": "The grant is true for no call that the rule applies to. It opens nothing.",
    "part-never-holds": "This side of an `||` is true for no call. What is written there does nothing.",
    "repeated-part": "The same condition stands twice in one chain of `&&` or `||`.",
    # rules beside each other
    "repeated-rule": "Another rule says the same: whenever one fails the other fails too, with the same effect.",
    "hidden-rule": "Whenever this rule fails, another rule decides that is as strict or stricter, or outranks it: the "
    "verdict is the same without this rule.",
    "hidden-by-grant": "Whenever this rule fails, a grant of higher priority holds and overrides it.",
    "grant-overrides-nothing": "Under `resolve: priority` a grant overrides failed rules of lower priority, and the "
    "pack has none for the same tools.",
    "never-granted": "Under `default: deny` a call is refused unless a grant opens it. No grant opens a tool of this "
    "rule, so that the rule's own effect never counts.",
    # facts
    "nothing-establishes": "The `vocabulary:` of the pack declares this name, and nothing here gives it a value: no "
    "transition of a tool, no initial value and no default. A rule that reads it cannot be told; `has()` of it is "
    "false.",
    "deadlock": "The rule refuses its tool until something is known, and only tools that are themselves refused until "
    "then, or always, could make it known. No run gets past it unless the fact is given from the start.",
    "impossible-value": "No transition and no initial value gives this path the value that it is compared with.",
    "unread-fact": "Transitions set this fact, and no rule, transition, script, goal or text that was checked reads "
    "it.",
    "unread-flag": "Transitions or the pack declare this flag, and no rule, transition, script or text reads it.",
    "unread-constraint": "A constraint is given here that no rule, transition, script or text reads.",
    "unread-name": "The pack declares this name in its `vocabulary:` and does not use it.",
    "unused-define": "Nothing in the pack uses this definition.",
    # tools
    "unguarded-write": "The tool changes something outside, and no rule of the packs can apply to it.",
    "repeated-tool": "The rule names a tool twice.",
    # trust
    "trusts-user": "What the user says can set this fact, and neither this rule nor another asks where it comes "
    "from. "
    "`source(state.facts.x).tool` tells which tool established a fact, and is 'user' for what a user said.",
    # words
    "message-names-unknown": "A message speaks of a tool, fact or constraint that does not exist.",
}

_NOTES: Final = frozenset(
    [
        "tool-never-concerned",
        "part-never-holds",
        "unread-fact",
        "unread-flag",
        "unread-name",
        "unguarded-write",
    ]
)
#: What is so only as long as no other file uses the name, gives the value or looks at the tool.
IN_VAIN: Final = frozenset(
    [
        "nothing-establishes",
        "impossible-value",
        "unread-fact",
        "unread-flag",
        "unread-constraint",
        "unread-name",
        "unguarded-write",
        "message-names-unknown",
    ]
)
SEVERITIES: Final[Mapping[str, Severity]] = {code: "note" if code in _NOTES else "warning" for code in CODES}
