"""Messages and hints that speak of something that does not exist.

Invariants:
* A word is looked at only if it is written as names are: with underscores, or as a path below the state.
* Such a word is told of only if it is nearly a name, or is spoken of as one ("call …", "the rule …"): words have
  underscores for many reasons.
* Whatever stands anywhere in the packs, the toolset or the scenario, outside of messages, is known.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ledgercli import cel
from ledgercli.analysis.context import Context
from ledgercli.analysis.findings import Finding
from ledgercli.documents import Place
from ledgercli.policy import OnFail, Pack

_WORD = re.compile(r"(?<![\w./@#-])[A-Za-z][A-Za-z0-9]*(?:_[A-Za-z0-9]+)+(?![\w/@-]|\.\w)")
_PATH = re.compile(r"(?<![\w./@-])(?:state\.)?(facts|flags|constraints)\.([A-Za-z_]\w*)")
_CALLED = re.compile(r"(?<![\w.])[Cc]all (?!the\b|a\b)([a-z][a-z0-9]{3,})(?= first| before| again|[.,;]|$)")
_ASKED = re.compile(r"\b(?:[Cc]all|[Rr]un|[Ii]nvoke|tools?|rules?|facts?|flags?|constraints?)\s+[`'\"]?$")
_THEN = re.compile(r"^[`'\"]?(?: with\b| first\b| before\b| again\b|,? then\b)")
_NAMES = re.compile(r"[A-Za-z_]\w*")


def check(context: Context, packs: Sequence[Pack]) -> Iterator[Finding]:
    """Yield messages that name unknown things."""
    known: set[str] | None = None
    for pack in packs:
        for place, text in _texts(pack):
            for start, word, what in _suspects(text):
                known = _known(context) if known is None else known
                if what is None and word in known:
                    continue
                if what is not None and word in context.vocabulary.names(what):
                    continue
                if what is None and not _is_meant(context, text, start, word):
                    continue
                yield _finding(context, pack, place, text, start, word, what)


def _is_meant(context: Context, text: str, start: int, word: str) -> bool:
    """Whether a word is meant as a name."""
    if "_" not in word:
        return bool(cel.nearest(word, context.vocabulary.tools))
    if not word.islower():
        return bool(cel.nearest(word, _names(context)))
    spoken_of = _ASKED.search(text[:start]) or _THEN.search(text[start + len(word) :])
    return bool(spoken_of) or bool(cel.nearest(word, _names(context)))


def _names(context: Context) -> set[str]:
    """What a message may speak of."""
    names = {*context.vocabulary.tools, *(rule.name for pack in context.packs for rule in pack.file.rules)}
    for part in ("facts", "flags", "constraints"):
        names.update(context.vocabulary.names(part))
    for tool in context.tools.values():
        names.update(tool.args)
    return names


def _texts(pack: Pack) -> Iterator[tuple[Place, str]]:
    for number, rule in enumerate(pack.file.rules):
        place: Place = ("rules", number, "on_fail")
        long = isinstance(rule.on_fail, OnFail)
        if rule.failing.error is not None:
            yield (*place, "error") if long else place, rule.failing.error
        if rule.failing.hint is not None:
            yield (*place, "hint"), rule.failing.hint


def _suspects(text: str) -> Iterator[tuple[int, str, str | None]]:
    """Words that are written as names, outside of braces: where, which, and of which part of the state."""
    plain = re.sub(r"\{[^{}]*\}", lambda braces: " " * len(braces[0]), text)
    taken: set[int] = set()
    for match in _PATH.finditer(plain):
        taken |= set(range(*match.span()))
        yield match.start(2), match[2], match[1]
    for match in _WORD.finditer(plain):
        if match.start() not in taken:
            yield match.start(), match[0], None
    for match in _CALLED.finditer(plain):
        yield match.start(1), match[1], None


def _known(context: Context) -> set[str]:
    """Every name that stands anywhere but in messages."""
    found: set[str] = set(context.vocabulary.tools)
    for pack in context.packs:
        data = pack.file.model_dump(exclude={"rules": {"__all__": {"on_fail", "description", "examples"}}})
        _collect(data, found)
        _collect(list(context.vocabulary.tools_for(pack)), found)
    if context.toolset is not None:
        _collect(context.toolset.file.model_dump(), found)
    if context.scenario is not None:
        _collect(context.scenario.file.model_dump(), found)
    return found


def _collect(value: Any, found: set[str]) -> None:
    if isinstance(value, str):
        found.update(_NAMES.findall(value))
    elif isinstance(value, Mapping):
        for key, item in value.items():
            _collect(key, found)
            _collect(item, found)
    elif isinstance(value, (list, tuple)):
        for item in value:
            _collect(item, found)


def _finding(  # noqa: PLR0913 - what, and where
    context: Context, pack: Pack, place: Place, text: str, start: int, word: str, what: str | None
) -> Finding:
    if what is not None:
        near = cel.nearest(word, context.vocabulary.names(what))
        message = f"the message names {what}.{word}, and nothing declares it"
    else:
        near = cel.nearest(word, _names(context))
        message = f"the message names {word}, and nothing here is called so"
    notes = (f"did you mean {' or '.join(near)}?",) if near else ()
    code = "message-names-unknown"
    del text
    problem = pack.document.problem_at(place, start, start + len(word), code, message, notes=notes, severity="warning")
    return Finding(problem, (place, word))
