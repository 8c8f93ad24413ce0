"""Recorded runs as training data: what a model would have been shown before a step, and the call that was right there.

Invariants:
* The prompts are those that a model engine would send (`prompting`), made from the state and never from a chat history.
* A call is an example only if every rule let it pass and it succeeded; one that was refused is never shown as right.
* A preference is a refused call beside the one that came next and passed, both for the prompt before the refusal.
* Nothing is unmasked. A call with a masked argument is no example: nobody should learn to write a mask.
* A ledger counts whole or not at all: of one that is damaged nothing is exported.

Deliberately not here: which runs are worth learning from (`ledger list` finds them).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

import orjson

from ledgercli import cel, ledger, paths
from ledgercli.books import Books
from ledgercli.errors import LedgerCliError
from ledgercli.ledger import Entry
from ledgercli.model.request import request
from ledgercli.past import Follower
from ledgercli.prompting import Calls, Prompter
from ledgercli.redaction import holds_mask
from ledgercli.shelf import Shelf

Kind: TypeAlias = Literal["sft", "dpo"]
Sample: TypeAlias = dict[str, Any]

_JUDGED: Final = ("intent", "step")
_CHANGED: Final = ("approval", "rollback", "resume")  # behind these the next call corrects nothing
_BROKEN: Final = ("shadowed", "warned")  # rules that failed, though the call ran
_IDS: Final = 100_000  # of calls: five digits, as some trainers want nine characters


@dataclass(slots=True)
class Exported:
    """What came of an export, besides its lines.

    Arguments:
        ledgers: how many were read.
        samples: how many lines there are.
        masked: how many calls were left out since redaction hides a part of them.
        damaged: ledgers that could not be read to their end, and why.

    """

    ledgers: int = 0
    samples: int = 0
    masked: int = 0
    damaged: list[tuple[str, str]] = field(default_factory=list)

    def lines(self, files: Iterable[str], to: Kind, calls: Calls = "tools") -> Iterator[bytes]:
        """Yield the lines of a JSON Lines file.

        Arguments:
            files: the ledgers.
            to: `sft`: a line a right call; `dpo`: a line a refused call with the one that corrected it.
            calls: whether a call stands as a tool call or as one JSON object.

        """
        shelf = Shelf()
        for file in files:
            run = _Run(file, shelf, to, calls)
            try:
                samples = list(run.samples())
            except LedgerCliError as error:
                self.damaged.append((file, error.message))
                continue
            self.ledgers += 1
            self.samples += len(samples)
            self.masked += run.masked
            yield from (orjson.dumps(sample, paths.plain, orjson.OPT_APPEND_NEWLINE) for sample in samples)


@dataclass(frozen=True, slots=True)
class _Decision:
    """A call, and what a model would have been sent for it."""

    step: int
    call: Mapping[str, Any]
    prompt: Mapping[str, Any]

    @property
    def is_masked(self) -> bool:
        return bool(holds_mask(self.call["args"]))


class _Run:
    """One ledger, read line by line."""

    def __init__(self, file: str, shelf: Shelf, to: Kind, calls: Calls) -> None:
        self.masked = 0
        self._file, self._to, self._calls = file, to, calls
        self._follower = Follower(file, shelf)
        self._prompter: Prompter | None = None
        self._begun: dict[int, _Decision] = {}  # whose outcome is not told yet
        self._refused: list[_Decision] = []  # since a call last ran
        self._recorded = self._astray = False

    def samples(self) -> Iterator[Sample]:
        """Yield what the run teaches."""
        for entry in ledger.read(self._file):
            books = self._follower.books
            if books is not None and _is_judged(entry, books):
                self._begun[entry.record["step"]] = self._decision(books, entry.record)
            if entry.kind == "step":
                yield from self._told(entry.record)
            elif entry.kind in _CHANGED:
                self._refused.clear()
            self._take(entry)

    def _take(self, entry: Entry) -> None:
        self._follower.see(entry)
        assert self._follower.books is not None, "the first line opens the books"
        rules = self._follower.books.rules
        if self._prompter is None:
            self._recorded = entry.record["engine"]["kind"] == "recording"
        if self._prompter is None or (entry.kind == "resume" and entry.record["files"]):
            offer: Literal["all", "permitted"] = "all" if self._to == "dpo" else "permitted"  # what was refused, too
            self._prompter = Prompter(rules, offer=offer, calls=self._calls)
            for earlier in ledger.read(self._file):
                if earlier.seq == entry.seq:
                    break
                self._prompter.take(earlier.record)
        self._prompter.take(entry.record)

    def _decision(self, books: Books, record: Mapping[str, Any]) -> _Decision:
        assert self._prompter is not None, "whoever has books has a prompter"
        prompt = self._prompter.prompt(books.state, books.history, cel.Timestamp.parse(record["now"]))
        asked = request(prompt.messages, prompt.offered, books.rules.toolset.tools, self._calls)
        return _Decision(record["step"], record["action"], asked.body)

    def _told(self, record: Mapping[str, Any]) -> Iterator[Sample]:
        """Yield what a step teaches, now that its outcome is known."""
        decision = self._begun.pop(record["step"], None)
        if decision is None or record["outcome"] == "waiting":
            return
        if record["outcome"] == "denied":
            self._refused.append(decision)
            self._astray |= self._recorded  # what a recording does next corrects nothing, and may stand on this call
            return
        refused, self._refused = self._refused, []
        if self._astray or record["outcome"] != "ok" or any(record["verdict"].get(part) for part in _BROKEN):
            return
        if self._to == "sft":
            yield from self._unmasked([decision], lambda: self._right(decision))
            return
        for wrong in refused:
            if not paths.same(wrong.call, decision.call):
                yield from self._unmasked([wrong, decision], lambda wrong=wrong: self._preferred(wrong, decision))

    def _unmasked(self, decisions: list[_Decision], sample: Any) -> Iterator[Sample]:
        if any(decision.is_masked for decision in decisions):
            self.masked += 1
        else:
            yield sample()

    def _right(self, decision: _Decision) -> Sample:
        messages = [*decision.prompt["messages"], self._said(decision)]
        return {"messages": messages, **self._tools(decision)}

    def _preferred(self, wrong: _Decision, right: _Decision) -> Sample:
        answers = {"chosen": [self._said(right)], "rejected": [self._said(wrong)]}
        return {"prompt": list(wrong.prompt["messages"]), **answers, **self._tools(wrong)}

    def _tools(self, decision: _Decision) -> Sample:
        return {"tools": decision.prompt["tools"]} if self._calls == "tools" else {}

    def _said(self, decision: _Decision) -> Sample:
        """Return a call as the model would make it."""
        tool, args = decision.call["tool"], decision.call["args"]
        if self._calls == "json_schema":
            return {"role": "assistant", "content": _json({"tool": tool, "args": args})}
        function = {"name": tool, "arguments": _json(args)}
        call = {"id": f"call{decision.step % _IDS:05}", "type": "function", "function": function}
        return {"role": "assistant", "content": None, "tool_calls": [call]}


def _is_judged(entry: Entry, books: Books) -> bool:
    """Whether a line's call was judged just before it, in the state as it is here."""
    record = entry.record
    if entry.kind not in _JUDGED or record.get("verdict") is None or "judged" in record:
        return False
    return record["step"] not in books.pending


def _json(value: Any) -> str:
    return orjson.dumps(value, paths.plain).decode()
