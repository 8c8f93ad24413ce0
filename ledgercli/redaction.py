"""Masks values before they are written.

Invariants:
* A masked value never reaches the disk: not in the line it came with, and not in any later line of the run that
  repeats it (a fact made of it, what a rule read, a message that quotes it).
* A mask is a keyed digest, so equal values can be told to be equal and nothing can be guessed by trying. The key is
  `LEDGER_REDACT_KEY`, or made anew for each run.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ledgercli.records import Line

KEY_VARIABLE = "LEDGER_REDACT_KEY"
SHOWN = "[redacted]"
MASK = "redacted"  # the key of the map that stands in place of a value
_SHORTEST = 4  # characters: shorter values are masked where they stand alone, not inside other text


class Redactor:
    """Masks what a toolset's `redact:` names.

    Arguments:
        rules: `TOOL.args.x` or `TOOL.data.y`, deeper keys after further dots.

    """

    def __init__(self, rules: Iterable[str]) -> None:
        self._rules: dict[tuple[str, str], list[list[str]]] = {}
        for rule in rules:
            tool, part, *keys = rule.split(".")
            self._rules.setdefault((tool, part), []).append(keys)
        self.active = bool(self._rules)
        self._key = os.environ.get(KEY_VARIABLE, "").encode() or secrets.token_bytes(32)
        self._masks: dict[Any, dict[str, str]] = {}
        self._texts: dict[str, str] = {}

    def masked(self, line: Line) -> Line:
        """Return the line with every secret value masked; values that it brings are secret from now on."""
        for value in self._named(line):
            self._learn(value)
        return {key: self._part(key, value) for key, value in line.items()} if self._masks else line

    def shown(self, value: Any) -> Any:
        """Return a value in which every secret that was learned so far is masked."""
        return self._walk(value) if self._masks else value

    def _part(self, key: str, value: Any) -> Any:
        """Mask one part of a line; what correlates lines (`step`, `at`, a tool's name) stays as it is."""
        if key == "action":
            return {**value, "args": self._walk(value["args"])}
        if key in ("result", "state_diff", "answer"):
            return self._walk(value)
        if key == "verdict" and value is not None:
            return {name: self._walk(part) if name == "reads" else self._quoted(part) for name, part in value.items()}
        return self._quoted(value) if key in ("error", "problems", "state_unset") else value

    def _quoted(self, value: Any) -> Any:
        """Mask what messages quote."""
        if isinstance(value, Mapping):
            return {key: self._quoted(item) for key, item in value.items()}
        if isinstance(value, (list, tuple)):
            return [self._quoted(item) for item in value]
        return self._inside(value) if isinstance(value, str) else value

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
        elif value is not None and not isinstance(value, bool):
            text = str(value)
            digest = hmac.new(self._key, text.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()
            self._masks[(type(value), value)] = {MASK: f"hmac-sha256:{digest}"}
            if len(text) >= _SHORTEST:
                self._texts[text] = SHOWN

    def _walk(self, value: Any) -> Any:
        if isinstance(value, Mapping):
            return {self._inside(key): self._walk(item) for key, item in value.items()}
        if isinstance(value, (list, tuple)):
            return [self._walk(item) for item in value]
        if value is None or isinstance(value, bool):
            return value
        mask = self._masks.get((type(value), value))
        if mask is not None:
            return mask
        return self._inside(value) if isinstance(value, str) else value

    def _inside(self, text: str) -> str:
        for secret, shown in self._texts.items():
            if secret in text:
                text = text.replace(secret, shown)
        return text


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
