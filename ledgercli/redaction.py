"""Masks values before they are written.

Invariants:
* A masked value never reaches the disk: not in the line it came with, and not in any later line of the run that
  repeats it (a fact made of it, what a rule read, a message or a key that quotes it).
* A mask is a keyed digest, so equal values can be told to be equal and nothing can be guessed by trying. The key is
  `LEDGER_REDACT_KEY`, or made anew for each run.
* What holds a ledger together (steps, outcomes, effects, rules, tools, the status) stays as it is, even where a secret
  is spelled the same.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import re
import secrets
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ledgercli import paths
from ledgercli.records import Line

KEY_VARIABLE = "LEDGER_REDACT_KEY"
SHOWN = "[redacted]"  # what a report shows of a mask
MASK = "redacted"  # the key of the map that stands in place of a value
_KEYED = "hmac-sha256:"
_SHORTEST = 4  # characters: shorter values are masked where they stand alone, not inside other text
_DIGITS = 12  # of the digest, where a secret is quoted inside a text
_MESSAGES = ("reason", "hint", "error", "missing")  # what in a verdict quotes values; its findings have these too
_FINDINGS = ("failed", "warned", "overridden", "shadowed")


class Redactor:
    """Masks what a toolset's `redact:` names.

    Arguments:
        rules: `TOOL.args.x` or `TOOL.data.y`, deeper keys after further dots.
        public: the toolset's text, which stands in the ledger: a word of it is no secret as a key.

    """

    def __init__(self, rules: Iterable[str], public: str = "") -> None:
        self._rules: dict[tuple[str, str], list[list[str]]] = {}
        for rule in rules:
            tool, part, *keys = rule.split(".")
            self._rules.setdefault((tool, part), []).append(keys)
        self.active = bool(self._rules)
        self._public = frozenset(re.findall(r"\w+", public)) if self.active else frozenset()
        self._key = os.environ.get(KEY_VARIABLE, "").encode() or secrets.token_bytes(32)
        self._masks: dict[str, dict[str, str]] = {}  # secret, as text → what stands in its place
        self._quotes: dict[str, str] = {}  # secret, as a text may quote it → what stands there, longest first

    def masked(self, line: Line) -> Line:
        """Return the line with every secret value masked; values that it brings are secret from now on."""
        known = len(self._masks)
        for value in self._named(line):
            self._learn(value)
        if len(self._masks) > known:  # of two secrets one may be part of the other
            self._quotes = dict(sorted(self._quotes.items(), key=lambda quote: -len(quote[0])))
        if not self._masks:
            return line
        if line["kind"] == "approval":  # its `answer` is a person's yes or no
            return {**line, "reason": self.hidden(line["reason"])} if "reason" in line else line
        return {key: self._part(key, value) for key, value in line.items()}

    def hidden(self, value: Any) -> Any:
        """Return a value with every secret that is known masked."""
        if isinstance(value, Mapping):
            return {self._name(key): self.hidden(item) for key, item in value.items()}
        if isinstance(value, (list, tuple)):
            return [self.hidden(item) for item in value]
        if value is None or isinstance(value, bool):
            return value
        mask = self._masks.get(_text(value))
        if mask is not None:
            return mask
        return self._inside(value) if isinstance(value, str) else value

    def _part(self, key: str, value: Any) -> Any:
        """Mask one part of a line."""
        if key == "action":
            return {**value, "args": self.hidden(value["args"])}
        if key == "verdict" and value is not None:
            return self._verdict(value)
        if key == "state_diff":
            return {self._path(path): item if path == "status" else self.hidden(item) for path, item in value.items()}
        if key == "state_unset":
            return [self._path(path) for path in value]
        if key == "result" and value is not None:
            return {name: self.hidden(item) for name, item in value.items()}
        if key == "engine" and "faults" in value:  # a reply that could not be used may quote one
            return {**value, "faults": [{**one, "said": self._inside(one["said"])} for one in value["faults"]]}
        if key == "text" and value is not None:  # of a summary
            return self._inside(value)
        return self.hidden(value) if key in ("answer", "error", "problems") else value

    def _verdict(self, said: Mapping[str, Any]) -> dict[str, Any]:
        made = {**said, "reads": self.hidden(said["reads"])}
        made |= self._quoting(said)
        for name in _FINDINGS:
            if name in said:
                made[name] = [{**finding, **self._quoting(finding)} for finding in said[name]]
        return made

    def _quoting(self, said: Mapping[str, Any]) -> dict[str, Any]:
        """The messages of a verdict or finding."""
        quoting = {name: said[name] for name in _MESSAGES if name in said}
        return {
            name: self._inside(text) if isinstance(text, str) else [self._inside(one) for one in text]
            for name, text in quoting.items()
        }

    def _named(self, line: Line) -> Iterator[Any]:
        action, result = line.get("action"), line.get("result")
        if not action:
            return
        for keys in self._rules.get((action["tool"], "args"), ()):
            yield from _at(action["args"], keys)
        if result:
            for keys in self._rules.get((action["tool"], "data"), ()):
                yield from _at(result.get("data"), keys)

    def _learn(self, value: Any) -> None:
        if isinstance(value, Mapping):
            for item in value.values():
                self._learn(item)
        elif isinstance(value, (list, tuple)):
            for item in value:
                self._learn(item)
        elif value is not None and value != "" and not isinstance(value, bool):
            text = _text(value)
            digest = hmac.new(self._key, text.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()
            self._masks[text] = {MASK: f"{_KEYED}{digest}"}
            if len(text) >= _SHORTEST:
                for spelled in {text, json.dumps(text, ensure_ascii=False)[1:-1]}:  # so a path or a call quotes it
                    self._quotes[spelled] = f"[{MASK} {digest[:_DIGITS]}]"

    def _path(self, text: str) -> str:
        """Mask the keys of a path, which stays one."""
        root, *keys = paths.parse(text)
        return paths.text((root, *(self._name(str(key)) for key in keys)))

    def _name(self, key: str) -> str:
        return key if key in self._public else self._inside(key)

    def _inside(self, text: str) -> str:
        for secret, shown in self._quotes.items():
            if secret in text:
                text = text.replace(secret, shown)
        return text


def is_mask(value: Any) -> bool:
    """Whether a value is a digest that stands in place of a secret."""
    return isinstance(value, Mapping) and len(value) == 1 and str(value.get(MASK, "")).startswith(_KEYED)


def holds_mask(value: Any) -> bool:
    """Whether a value is a mask, or has one in it; a text may quote one too."""
    if isinstance(value, Mapping):
        return is_mask(value) or any(map(holds_mask, value.values())) or any(map(holds_mask, value))
    if isinstance(value, (list, tuple)):
        return any(map(holds_mask, value))
    return isinstance(value, str) and (f"[{MASK} " in value or _KEYED in value)


def _text(value: Any) -> str:
    """A leaf as text; 5 and 5.0 are one number."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _at(value: Any, keys: list[str]) -> Iterator[Any]:
    for number, key in enumerate(keys):
        if isinstance(value, (list, tuple)):
            for item in value:
                yield from _at(item, keys[number:])
            return
        if not isinstance(value, Mapping) or key not in value:
            return
        value = value[key]
    yield value
