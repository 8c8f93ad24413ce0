"""What a rule requires of a tool, in sentences.

Invariants:
* Each sentence is true by itself: `only if` for what is denied, `unless` for what asks for approval or warns.
* A rule that is only watched says so; one that ends the run says so; a grant says what it goes before.
* Where a condition cannot be told, a rule counts as failed: that is said once, for the whole document.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from ledgercli import cel
from ledgercli.cel.syntax import Unary
from ledgercli.rules import CompiledRule
from ledgercli.sentences.conditions import All, Words, many
from ledgercli.sentences.saying import Sentence, Speech, said
from ledgercli.sentences.words import MOST, count

ANY_CALL: Final = "each call"
_ONLY_IF: Final[Mapping[str, str]] = {
    "deny": "only if",
    "require_approval": "asks for approval unless",
    "warn": "warns unless",
    "allow": "only if",
}
_ALWAYS: Final[Mapping[str, str]] = {
    "deny": "is always denied",
    "require_approval": "always asks for approval",
    "warn": "always warns",
    "allow": "is always denied",
}


@dataclass(frozen=True, slots=True)
class Statement:
    """What a rule says of a tool.

    Arguments:
        sentences: what it requires, each for itself.
        where: what the names and letters in them stand for.
        notes: what else a failure does.

    """

    sentences: tuple[Sentence, ...] = ()
    where: tuple[Sentence, ...] = ()
    notes: tuple[Sentence, ...] = ()

    def __bool__(self) -> bool:
        """Whether it says anything: a rule that always holds for a tool does not."""
        return bool(self.sentences)

    def lines(self) -> Iterator[str]:
        """Yield every line."""
        for sentence in (*self.sentences, *self.where, *self.notes):
            yield from sentence.lines()


def state(rule: CompiledRule, subject: str, *, by_priority: bool = False, bare: bool = False) -> Statement:
    """Return what a rule requires.

    Arguments:
        rule: compiled for the tool, or for none in particular.
        subject: what the sentences are about: the tool's name, or `ANY_CALL`.
        by_priority: whether its pack resolves by priority.
        bare: paths are written without `state.` before them.

    """
    speech = Speech(frozenset(rule.what.env.defines), bare=bare)
    if rule.is_grant:
        sentences = tuple(_grant(rule, subject, speech, by_priority=by_priority))
    else:
        sentences = tuple(_check(rule, subject, speech))
    if subject == ANY_CALL:
        sentences = tuple(
            replace(one, text=one.text.replace("each", "Each", one.text.startswith("each"))) for one in sentences
        )
    return Statement(sentences, tuple(speech.explained()), tuple(_notes(rule)) if sentences else ())


def active(checked: cel.Checked, *, bare: bool = False) -> Statement:
    """Return when a pack judges at all."""
    speech = Speech(frozenset(checked.env.defines), bare=bare)
    sentence = said("This pack judges only while", speech.words(checked.node))
    return Statement((sentence,), tuple(speech.explained()))


def _check(rule: CompiledRule, subject: str, speech: Speech) -> Iterator[Sentence]:
    when: cel.Node | None = rule.when.node if rule.when else None
    what = rule.what.node
    known, value = rule.what.constant
    if known and value:
        return
    if known:
        if when is None:
            yield Sentence(f"{subject} {'would always fail' if rule.shadow else _ALWAYS[rule.effect]}.")
            return
        # it fails where it applies, so it must not apply
        what = Unary(when.source, when.start, when.end, "!", when, type=cel.BOOL)
        when = None
    verb = f"{subject} {'is noted unless' if rule.shadow else _ONLY_IF[rule.effect]}"
    parts = speech.parts(what)
    if when is None:
        yield from (said(verb, part) for part in parts)
        return
    condition = speech.words(when)
    if len(parts) == 1:
        whole = said(f"{_lead(condition)}{verb}", parts[0])
        if not whole.items and not _lead(condition).endswith(":"):
            yield whole
            return
    yield said(f"This rule is about {subject} when", condition)
    yield from (said(f"Then {verb}", part) for part in parts)


def _lead(condition: Words) -> str:
    """Return `When …,`; a text that ends with a colon where it cannot be said as a lead."""
    whole = said("When", condition)
    return ":" if whole.items or count(whole.text) > MOST - 6 else f"{whole.text.removesuffix('.')}, "


def _grant(rule: CompiledRule, subject: str, speech: Speech, *, by_priority: bool) -> Iterator[Sentence]:
    known, value = rule.what.constant
    if known and not value:
        return
    over = f", whatever rules below priority {rule.priority} say," if by_priority else ""
    opened = f"{subject} is {'noted as allowed' if rule.shadow else 'allowed'}{over}"
    nodes = [one.node for one in (rule.when, None if known else rule.what) if one is not None]
    if not nodes:
        yield Sentence(f"{opened.removesuffix(',')}.")
        return
    yield said(f"{opened} if", many(All, [speech.words(node, exact=False) for node in nodes]))


def _notes(rule: CompiledRule) -> Iterator[Sentence]:
    if rule.is_grant or rule.shadow:
        if rule.shadow:
            yield Sentence("This rule only watches: it decides nothing.")
    elif rule.halt and rule.effect == "deny":
        yield Sentence("Otherwise the run ends.")
