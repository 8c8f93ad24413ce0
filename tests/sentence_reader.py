"""Reads the sentences of `ledger doc` back: whether what they say is so in a world.

It knows nothing of the policy language and shares no code with what writes the sentences: it is a person who takes
them at their word. None stands for "cannot be told", because something that is not known is spoken of.
"""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any

UNITS = {"hour": 3600, "minute": 60, "second": 1}
BUILT_IN = re.compile(r'"(?:[^"\\]|\\.)*"')


class NotKnown(Exception):  # noqa: N818 - it is no error
    """Something that is spoken of is not there."""


class Told:
    """What the history answers: the same to the same question, and at random."""

    def __init__(self, random: Any) -> None:
        self._random = random
        self._answers: dict[str, Any] = {}

    def __call__(self, question: str, *about: Any, among: Sequence[Any]) -> Any:
        key = json.dumps([question, *about], default=str, sort_keys=True)
        if key not in self._answers:
            self._answers[key] = self._random.choice(among)
        return self._answers[key]


@lru_cache(maxsize=100_000)
def split(text: str, mark: str) -> tuple[str, ...]:
    """Split outside brackets and quotes."""
    if mark not in text:
        return (text,)
    parts: list[str] = []
    depth, start, at = 0, 0, 0
    while at < len(text):
        if quoted := BUILT_IN.match(text, at):
            at = quoted.end()
            continue
        if not depth and text.startswith(mark, at):
            parts.append(text[start:at])
            at = start = at + len(mark)
            continue
        depth += (text[at] in "([") - (text[at] in ")]")
        at += 1
    return (*parts, text[start:])


@lru_cache(maxsize=100_000)
def bracketed(text: str) -> bool:
    """Whether a pair of brackets goes round the whole."""
    if not (text.startswith("(") and text.endswith(")")):
        return False
    depth = 0
    for number, character in enumerate(BUILT_IN.sub(lambda match: "_" * len(match[0]), text)):
        depth += (character == "(") - (character == ")")
        if not depth:
            return number == len(text) - 1
    return False


def negated(said: bool | None) -> bool | None:
    return None if said is None else not said


def all_of(parts: Iterator[bool | None]) -> bool | None:
    known = list(parts)
    return False if False in known else None if None in known else True


def some_of(parts: Iterator[bool | None]) -> bool | None:
    known = list(parts)
    return True if True in known else None if None in known else False


class Reader:
    """Reads the sentences about one tool.

    Arguments:
        subject: what they are about.
        where: what names and letters stand for, as the sentences say.
        world: `state`, `action` and `now`.
        told: the history.

    """

    def __init__(self, subject: str, where: Sequence[Any], world: Mapping[str, Any], told: Told) -> None:
        self.subject, self.world, self.told = subject, world, told
        self.where = {sentence.text.split(" ")[0]: sentence for sentence in where}

    # ---- a rule

    def passes(self, sentences: Sequence[Any]) -> bool:
        """Whether a rule lets the call pass."""
        applies: bool | None = True
        held: list[bool | None] = []
        for sentence in sentences:
            text = sentence.text
            if text.startswith(f"This rule is about {self.subject} when"):
                applies = self.condition(text.split(" when", 1)[1], sentence.items, {})
            elif text.lower() == f"{self.subject} is always denied.":
                held.append(False)
            else:
                when, rest = self.requirement(text)
                if when is not None:
                    applies = self.condition(when, (), {})
                held.append(self.condition(rest, sentence.items, {}))
        return applies is False or (applies is True and all_of(iter(held)) is True)

    def requirement(self, text: str) -> tuple[str | None, str]:
        found = re.fullmatch(
            rf"(?:When,? (?P<when>.*), |Then )?{re.escape(self.subject)} "
            r"(?:only if|asks for approval unless|warns unless|is noted unless),? (?P<rest>.*)",
            text[0].lower() + text[1:] if text.startswith("Each") else text,
            re.DOTALL,
        )
        assert found, text
        return found["when"], found["rest"]

    def grants(self, sentences: Sequence[Any]) -> bool:
        """Whether a grant allows the call."""
        found = [
            re.fullmatch(rf"{self.subject} is allowed(?:, whatever rules below priority \d+ say,)? if,? (.*)", one.text)
            for one in sentences
        ]
        return any(self.condition(one[1], said.items, {}) is True for one, said in zip(found, sentences, strict=True))

    # ---- conditions

    def condition(self, text: str, items: Sequence[Any], names: Mapping[str, Any]) -> bool | None:
        text = text.removeprefix(",").strip().removesuffix(".")
        if text.startswith("for "):
            lead, rest = text.split(", ", 1) if len(split(text, ", ")) == 1 else (split(text, ", ")[0], None)
            rest = text[len(lead) + 2 :] if rest is None else rest
            return self.counted(lead, lambda inner: self.condition(rest, items, inner), names)
        match text:
            case "all of these hold:":
                return all_of(self.condition(one.text, one.items, names) for one in items)
            case "at least one of these holds:":
                return some_of(self.condition(one.text, one.items, names) for one in items)
            case "this holds:":
                return self.condition(items[0].text, items[0].items, names)
        assert not text.endswith(":"), text
        options = split(text, ", or ")
        if len(options) > 1:
            return some_of(self.condition(one, (), names) for one in options)
        parts = split(text, " and ")
        if len(parts) > 1:
            return all_of(self.condition(one, (), names) for one in parts)
        if bracketed(text):
            return self.condition(text[1:-1], (), names)
        try:
            return self.fact(text, names)
        except NotKnown:
            return None

    def counted(self, lead: str, body: Callable[[Any], bool | None], names: Mapping[str, Any]) -> bool | None:
        found = re.fullmatch(
            r"for (every|some|exactly one|(?:at most|less than|more than|at least) \S+)"
            r"( key)? (\w+)(?: at (\w+))? of (.+)",
            lead,
        )
        assert found, lead
        how_many, _, name, index, walked = found.groups()
        try:
            inner = list(self.walked(walked, name, index, names))
        except NotKnown:
            return None
        answers = [body(one) for one in inner]
        if how_many == "every":
            return all_of(iter(answers))
        if how_many == "some":
            return some_of(iter(answers))
        if None in answers:
            return None
        if how_many == "exactly one":
            return answers.count(True) == 1
        words, bound = how_many.rsplit(" ", 1)
        try:
            return COMPARED[words](answers.count(True), self.value(bound, names))
        except NotKnown:
            return None

    def walked(
        self, walked: str, name: str, index: str | None, names: Mapping[str, Any]
    ) -> Iterator[Mapping[str, Any]]:
        over = self.value(walked, names)
        if isinstance(over, Mapping):
            pairs = over.items() if index else ((None, key) for key in over)
        elif isinstance(over, list):
            pairs = enumerate(over)
        else:
            raise NotKnown
        for key, item in pairs:
            yield {**names, name: item, **({index: key} if index else {})}

    # ---- one fact

    def fact(self, text: str, names: Mapping[str, Any]) -> bool | None:
        def both(mark: str) -> tuple[str, str] | None:
            parts = split(text, mark)
            return (mark.join(parts[:-1]), parts[-1]) if len(parts) > 1 else None

        history = self.history(text, names)
        if history is not None:
            return history
        if text.endswith(" holds") and (name := text.removesuffix(" holds")) in self.where:
            return self.meaning(name, names)
        if text.endswith((" is known", " is not known")):
            path = re.sub(" is (not )?known$", "", text)
            return self.there(path, names) is text.endswith(" is known")
        if pair := both(" lacks "):
            return pair[1] not in self.mapping(pair[0], names)
        for words, positive in ((" has an entry for ", True), (" has no entry for ", False)):
            if pair := both(words):
                return (self.value(pair[1], names) in self.mapping(pair[0], names)) is positive
        for words, positive in ((" is among ", True), (" is missing from ", False)):
            if pair := both(words):
                among, item = self.value(pair[1], names), self.value(pair[0], names)
                if not isinstance(among, list):
                    raise NotKnown
                return any(same(item, one) for one in among) is positive
        for words, positive in ((" equals ", True), (" differs from ", False)):
            if pair := both(words):
                return same(self.value(pair[0], names), self.value(pair[1], names)) is positive
        for words, holds in TEXTS.items():
            for said, positive in ((words, True), (NEGATED[words], False)):
                if pair := both(f" {said} "):
                    left, right = self.value(pair[0], names), self.value(pair[1], names)
                    if not isinstance(left, str) or not isinstance(right, str):
                        raise NotKnown
                    return holds(left, right) is positive
        for words, compares in COMPARED.items():
            for said, positive in ((words, True), (f"not {words}", False)):
                if pair := both(f" is {said} "):
                    return compared(compares, *(self.value(one, names) for one in pair)) is positive
        pair = both(" is ")
        assert pair, text
        return self.listed(pair[0], pair[1], names)

    def listed(self, item: str, options: str, names: Mapping[str, Any]) -> bool | None:
        positive = not options.startswith(("none of ", "other than "))
        options = re.sub("^(none of|other than) ", "", options)
        *first, last = split(options, ", ")
        value = self.value(item, names)
        known = [self.value(one, names) for one in (*first, *split(last, " or "))]
        return any(same(value, one) for one in known) is positive

    def history(self, text: str, names: Mapping[str, Any]) -> bool | None:
        """Answer what is asked of the past; None where nothing is."""
        for pattern, positive, question in HISTORY:
            if found := re.fullmatch(pattern, text):
                about = [self.value(one, names) for one in found.groups() if one is not None and one == found[1]]
                if question == "succeeded" and found[2]:
                    about.append(self.arguments(found[2], names))
                elif question == "from_tool":
                    about = [self.value(found[2], names), self.value(found[1], names)]
                return self.told(question, *about, among=(True, False)) is positive
        return None

    def arguments(self, text: str, names: Mapping[str, Any]) -> dict[str, Any]:
        pairs = [split(one, " as ") for one in split(text, ", ")]
        return {self.value(key, names): self.value(value, names) for value, key in pairs}

    # ---- values

    def mapping(self, text: str, names: Mapping[str, Any]) -> Mapping[str, Any]:
        value = self.value(text, names)
        if not isinstance(value, Mapping):
            raise NotKnown
        return value

    def there(self, path: str, names: Mapping[str, Any]) -> bool:
        parent, _, field = path.rpartition(".")
        return field in self.mapping(parent, names)

    def value(self, text: str, names: Mapping[str, Any]) -> Any:
        if bracketed(text):
            inner = split(text[1:-1], ", ")
            return self.value(inner[0], names) if len(inner) == 1 else [self.value(one, names) for one in inner]
        if BUILT_IN.fullmatch(text):
            return json.loads(text)
        if re.fullmatch(r"-?[0-9][0-9.e-]*", text):
            return float(text) if "." in text or "e" in text else int(text)
        if span := re.fullmatch(r"([0-9,]+) (hour|minute|second)s?", text):
            return timedelta(seconds=int(span[1].replace(",", "")) * UNITS[span[2]])
        if text in ("true", "false", "null"):
            return {"true": True, "false": False, "null": None}[text]
        if text.startswith(("the ", "minus ")):
            return self.noun(text, names)
        if text.endswith(" as text"):
            value = self.value(text.removesuffix(" as text"), names)
            return value.strftime("%Y-%m-%dT%H:%M:%SZ") if isinstance(value, datetime) else str(value)
        for marks in (("plus", "minus"), ("times",), ("divided by",), ("followed by",)):
            for mark in marks:
                parts = split(text, f" {mark} ")
                others = [split(parts[-1], f" {one} ") for one in marks]
                if len(parts) > 1 and all(len(one) == 1 for one in others):
                    left, right = self.value(f" {mark} ".join(parts[:-1]), names), self.value(parts[-1], names)
                    return calculated(mark, left, right)
        return self.path(text, names)

    def noun(self, text: str, names: Mapping[str, Any]) -> Any:
        for pattern, question in COUNTS:
            if found := re.fullmatch(pattern, text):
                about = [self.value(one, names) for one in found.groups()]
                return self.told(question, *about, among=range(6))
        if found := re.fullmatch(r"the (?:number|length|size) of (.+)", text):
            value = self.value(found[1], names)
            if not isinstance(value, (str, list, Mapping)):
                raise NotKnown
            return len(value)
        if found := re.fullmatch(r"the sum of (.+) over each (?:key )?(\w+) of (.+)", text):
            parts = [self.value(found[1], inner) for inner in self.walked(found[3], found[2], None, names)]
            if any(isinstance(one, bool) or not isinstance(one, (int, float)) for one in parts):
                raise NotKnown
            return float(sum(parts))
        if found := re.fullmatch(r"the absolute value of (.+)", text):
            return abs(self.value(found[1], names))
        if found := re.fullmatch(r"the greatest of (.+)", text):
            return max(self.value(found[1], names))
        if found := re.fullmatch(r"the first (\d+) characters of (.+)", text):
            value = self.value(found[2], names)
            if len(value) < int(found[1]):
                raise NotKnown
            return value[: int(found[1])]
        if found := re.fullmatch(r"the time (.+)", text):
            try:
                return datetime.fromisoformat(self.value(found[1], names)).astimezone(UTC)
            except ValueError:
                raise NotKnown from None
        if found := re.fullmatch(r"the tool that set (.+)", text):
            self.value(found[1], names)
            return self.told("source", self.written(found[1], names), among=("task", "user", "verify_account"))
        if found := re.fullmatch(r"minus (.+)", text):
            return -self.value(found[1], names)
        raise AssertionError(text)

    def path(self, text: str, names: Mapping[str, Any]) -> Any:
        base, steps = self.steps(text, names)
        if base in names:
            value = names[base]
        elif base in self.where:
            value = self.meaning(base, names)
            if value is None:
                raise NotKnown
        elif base in self.world:
            value = self.world[base]
        else:
            assert not steps, text
            return base
        for step in steps:
            if step == "last" and isinstance(value, list):
                step = len(value) - 1  # noqa: PLW2901 - what it means here
            inside = isinstance(value, list) and isinstance(step, int) and 0 <= step < len(value)
            if not inside and not (isinstance(value, Mapping) and step in value):
                raise NotKnown
            value = value[step]
        return value

    def steps(self, text: str, names: Mapping[str, Any]) -> tuple[str, list[Any]]:
        base = re.match(r"[^.\[]*", text)[0]
        rest, steps = text[len(base) :], []
        while rest:
            if field := re.match(r"\.(\w+)", rest):
                steps.append(field[1])
                rest = rest[field.end() :]
                continue
            end = len(split(rest[1:], "]")[0]) + 1
            steps.append("last" if rest[1:end] == "last" else self.value(rest[1:end], names))
            rest = rest[end + 1 :]
        return base, steps

    def written(self, text: str, names: Mapping[str, Any]) -> list[Any]:
        base, steps = self.steps(text, names)
        return [base, *steps]

    def meaning(self, name: str, names: Mapping[str, Any]) -> Any:
        """What a name or letter stands for."""
        sentence = self.where[name]
        text = sentence.text.removeprefix(f"{name} ").removesuffix(".")
        if text.startswith("means that"):
            return self.condition(text.removeprefix("means that"), sentence.items, names)
        verb, rest = text.split(" ", 1)
        if verb == "lists":
            return self.listing(rest, names)
        if len(split(rest, ", otherwise ")) == 2:
            first, otherwise = split(rest, ", otherwise ")
            then, when = re.split(r" where,? ", first, maxsplit=1)
            said = self.condition(when, (), names)
            if said is None:
                raise NotKnown
            return self.value(then if said else otherwise, names)
        return self.value(rest, names)

    def listing(self, text: str, names: Mapping[str, Any]) -> list[Any]:
        what, *when = re.split(r" where,? ", text, maxsplit=1)
        found = re.fullmatch(r"(?:(.+) for )?each (?:key )?(\w+)(?: at (\w+))? of (.+)", what)
        assert found, text
        items = []
        for inner in self.walked(found[4], found[2], found[3], names):
            said = self.condition(when[0], (), inner) if when else True
            if said is None:
                raise NotKnown
            if said:
                items.append(inner[found[2]] if found[1] is None else self.value(found[1], inner))
        return items


def same(left: Any, right: Any) -> bool:
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    return left == right


def compared(compares: Callable[[Any, Any], bool], left: Any, right: Any) -> bool:
    kinds = [one for one in ((int, float), (str,), (datetime,), (timedelta,)) if isinstance(left, one)]
    if not kinds or not isinstance(right, kinds[0]) or isinstance(left, bool) or isinstance(right, bool):
        raise NotKnown
    return compares(left, right)


def calculated(mark: str, left: Any, right: Any) -> Any:
    calculates = {"plus": operator.add, "minus": operator.sub, "times": operator.mul, "followed by": operator.add}
    try:
        return calculates[mark](left, right)
    except TypeError:
        raise NotKnown from None


COMPARED: dict[str, Callable[[Any, Any], bool]] = {
    "less than": operator.lt, "at most": operator.le, "more than": operator.gt, "at least": operator.ge,
    "before": operator.lt, "at or before": operator.le, "after": operator.gt, "at or after": operator.ge,
}  # fmt: skip
TEXTS: dict[str, Callable[[str, str], bool]] = {
    "begins with": str.startswith,
    "ends with": str.endswith,
    "contains": str.__contains__,
}
NEGATED = {"begins with": "does not begin with", "ends with": "does not end with", "contains": "does not contain"}
HISTORY = (
    (r"(\S+) has succeeded(?: with (.+))?", True, "succeeded"),
    (r"(\S+) has never succeeded(?: with (.+))?", False, "succeeded"),
    (r"a person has confirmed exactly this call since it last ran", True, "confirmed"),
    (r"no person has confirmed exactly this call since it last ran", False, "confirmed"),
    (r"the task names (.+)", True, "from_task"),
    (r"the task does not name (.+)", False, "from_task"),
    (r"a user has named (.+)", True, "from_user"),
    (r"no user has named (.+)", False, "from_user"),
    (r"a result of (\S+) names (.+)", True, "from_tool"),
    (r"no result of (\S+) names (.+)", False, "from_tool"),
)
COUNTS = (
    (r"the number of calls of (\S+)", "count_calls"),
    (r"the number of failures of (\S+)", "count_failures"),
    (r"the number of consecutive failures of (\S+)", "count_recent_failures"),
    (r"the number of denials of (\S+)", "count_denied"),
    (r"the number of consecutive calls of (\S+)", "repeats"),
    (r"the number of consecutive calls equal to this one", "repeats_of_call"),
    (r"the number of steps since (\S+) ran", "steps_since"),
    (r"the sum of (\S+) over successful calls of (\S+)", "sum_args"),
    (r"the number of different (\S+) over successful calls of (\S+)", "distinct_args"),
)
