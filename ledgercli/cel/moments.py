"""Points and spans of time: exact to the nanosecond, within CEL's ranges, read from and written as text.

Invariants:
* Both are one whole number of nanoseconds, so comparing and adding never rounds.
* A `Timestamp` lies in the years 1 to 9999; a `Duration` within ±315,576,000,000 seconds. Nothing outside exists.
* Text is RFC 3339 in UTC, and seconds with an `s`; a fraction has three, six or nine digits (as protobuf's JSON has).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from typing import Self
from zoneinfo import ZoneInfo

from ledgercli.cel.types import EvalError

SECOND = 1_000_000_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EPOCH_SECONDS = _EPOCH.toordinal() * 86_400
_FIRST = -62_135_596_800 * SECOND
_LAST = 253_402_300_800 * SECOND - 1
_LONGEST = 315_576_000_000 * SECOND
_SPAN = 2**63  # two timestamps may lie at most this many nanoseconds apart; both reference implementations say so
_ISO = re.compile(r"(\d{4})-(\d\d)-(\d\d)[Tt](\d\d):(\d\d):(\d\d)(?:\.(\d+))?(?:[Zz]|([+-])(\d\d):(\d\d))?", re.ASCII)
_DAY = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_PART = re.compile(r"(\d+\.?\d*|\.\d+)(h|ms|m|s|us|µs|μs|ns)", re.ASCII)
_DAYS = re.compile(r"[+-]?(\d+)d", re.ASCII)
_OFFSET = re.compile(r"([+-]?)(\d{1,2}):(\d\d)", re.ASCII)
_UNITS = {"h": 3600 * SECOND, "m": 60 * SECOND, "s": SECOND, "ms": 10**6, "us": 1000, "µs": 1000, "μs": 1000, "ns": 1}


@dataclass(frozen=True, slots=True, order=True)
class Duration:
    """A span of time of `nanos` nanoseconds, which may be negative."""

    nanos: int

    def __post_init__(self) -> None:
        if not -_LONGEST <= self.nanos <= _LONGEST:
            raise EvalError("range error: a duration is at most 315,576,000,000 seconds (10,000 years)")

    @classmethod
    def parse(cls, text: str) -> Self:
        """The duration that `text` (such as `1h30m` or `-0.5s`) names."""
        sign, rest = (-1, text[1:]) if text[:1] == "-" else (1, text.removeprefix("+"))
        parts = _PART.findall(rest) if len(rest) <= 200 else []
        if rest == "0":
            return cls(0)
        if not parts or "".join(number + unit for number, unit in parts) != rest:
            raise EvalError(_duration_advice(text))
        return cls(sign * sum(_exactly(number, _UNITS[unit]) for number, unit in parts))

    def unit(self, size: int) -> int:
        """Whole units of `size` nanoseconds, cut toward zero."""
        return _toward_zero(self.nanos, size)

    def __str__(self) -> str:
        sign = "-" if self.nanos < 0 else ""
        whole, rest = divmod(abs(self.nanos), SECOND)
        return f"{sign}{whole}{_fraction(rest)}s"


@dataclass(frozen=True, slots=True, order=True)
class Timestamp:
    """A point in time, `nanos` nanoseconds after 1970-01-01T00:00:00Z."""

    nanos: int

    def __post_init__(self) -> None:
        if not _FIRST <= self.nanos <= _LAST:
            raise EvalError("range error: a timestamp lies in the years 0001 to 9999")

    @classmethod
    def parse(cls, text: str) -> Self:
        """The timestamp that `text` names, in RFC 3339 and with its zone."""
        if _is_usual(text):
            try:
                plain = datetime.fromisoformat(text[:19])
            except ValueError:
                plain = None
            if plain is not None:
                seconds = plain.toordinal() * 86_400 + plain.hour * 3600 + plain.minute * 60 + plain.second
                return cls((seconds - _EPOCH_SECONDS) * SECOND + int(text[20:29]))
        match = _ISO.fullmatch(text)
        if match is None or (text[-1] not in "Zz" and match[8] is None):
            raise EvalError(_timestamp_advice(text))
        try:
            moment = datetime(*map(int, match.group(1, 2, 3, 4, 5, 6)), tzinfo=UTC)  # type: ignore[arg-type,misc]
        except ValueError as problem:
            detail = "years run from 0001 to 9999" if match[1] == "0000" else str(problem)
            raise EvalError(f"range error: timestamp({text!r}): {detail}") from None
        hours, minutes = int(match[9] or 0), int(match[10] or 0)
        if hours > 23 or minutes > 59:
            raise EvalError(f"range error: timestamp({text!r}): the zone's offset must be below 24:00")
        offset = (hours * 3600 + minutes * 60) * (-1 if match[8] == "-" else 1)
        nanos = int((match[7] or "0")[:9].ljust(9, "0"))
        return cls((_whole_seconds(moment) - offset) * SECOND + nanos)

    @classmethod
    def from_datetime(cls, moment: datetime) -> Self:
        """The same point in time; `moment` must know its zone."""
        if moment.tzinfo is None:
            raise EvalError("a time without a zone is no timestamp")
        moment = moment.astimezone(UTC)
        return cls(_whole_seconds(moment) * SECOND + moment.microsecond * 1000)

    @classmethod
    def from_seconds(cls, seconds: int) -> Self:
        """That many seconds after 1970-01-01T00:00:00Z."""
        return cls(seconds * SECOND)

    @property
    def seconds(self) -> int:
        """Whole seconds since 1970-01-01T00:00:00Z, cut down."""
        return self.nanos // SECOND

    def local(self, zone: str) -> datetime:
        """The wall clock in `zone`, to the second."""
        moment = _EPOCH + timedelta(seconds=self.seconds)
        try:
            return moment.astimezone(_zone(zone))
        except OverflowError:
            raise EvalError(f"range error: {self} falls outside the years 0001 to 9999 in zone {zone!r}") from None

    def plus(self, span: Duration) -> Timestamp:
        """This point moved by `span`."""
        return Timestamp(self.nanos + span.nanos)

    def minus(self, other: Timestamp) -> Duration:
        """The span from `other` to this point."""
        span = self.nanos - other.nanos
        if not -_SPAN <= span < _SPAN:
            raise EvalError("range error: timestamps more than 292 years apart have no difference")
        return Duration(span)

    def __str__(self) -> str:
        return f"{_second(self.seconds)}{_fraction(self.nanos % SECOND)}Z"


@lru_cache(maxsize=16)
def _second(seconds: int) -> str:
    return (_EPOCH + timedelta(seconds=seconds)).isoformat()[:19]


def day_of_year(day: date) -> int:
    """Days since the first of January, from 0."""
    return day.timetuple().tm_yday - 1


def _toward_zero(number: int, size: int) -> int:
    whole = abs(number) // size
    return -whole if number < 0 else whole


def _exactly(number: str, unit: int) -> int:
    """`number` (decimal digits) times `unit` nanoseconds, without rounding up."""
    whole, _, fraction = number.partition(".")
    return int(whole or "0") * unit + int(fraction or "0") * unit // int(10 ** len(fraction))


def _is_usual(text: str) -> bool:
    """Whether a text looks as a ledger writes times, `2026-08-01T12:00:00.123456789Z`: most of those that are read."""
    return (
        len(text) == 30
        and text.isascii()
        and text[20:29].isdigit()
        and text[11:13] < "24"  # later Pythons read 24:00 as the next day
        and (text[4] + text[7] + text[10] + text[13] + text[16] + text[19] + text[29]) == "--T::.Z"
    )


def _whole_seconds(moment: datetime) -> int:
    span = moment - _EPOCH
    return span.days * 86_400 + span.seconds


def _fraction(nanos: int) -> str:
    if not nanos:
        return ""
    digits = f"{nanos:09d}"
    while digits.endswith("000"):
        digits = digits[:-3]
    return "." + digits


@lru_cache(maxsize=256)
def _zone(name: str) -> tzinfo:
    """The zone of an IANA name or of an offset such as `+02:00`."""
    if match := _OFFSET.fullmatch(name):
        span = timedelta(hours=int(match[2]), minutes=int(match[3]))
        if span < timedelta(hours=24) and int(match[3]) < 60:
            return timezone(-span if match[1] == "-" else span)
    elif name.isascii() and not name.startswith((".", "/")):
        try:
            return ZoneInfo(name) if name not in {"", "UTC"} else UTC
        except (KeyError, ValueError, OSError):  # no such file; a folder; a name that is no path
            pass
    raise EvalError(f"unknown time zone {name!r}: write an IANA name ('Europe/Berlin') or an offset ('+02:00')")


def _duration_advice(text: str) -> str:
    if match := _DAYS.fullmatch(text):
        hours = int(match[1][:9]) * 24
        return f"duration({text!r}): CEL has no days: '{'-' if text[0] == '-' else ''}{hours}h'"
    return f"duration({text[:60]!r}) is not a duration: write numbers with units (h m s ms us ns), such as '1h30m'"


def _timestamp_advice(text: str) -> str:
    if _ISO.fullmatch(text):
        return f"timestamp({text!r}) has no time zone: write timestamp(x + 'Z') or timestamp(x + '-05:00')"
    if _DAY.fullmatch(text):
        return f"timestamp({text!r}) is a date without a time: write timestamp(x + 'T00:00:00Z')"
    if re.match(r"\d{5}-", text, re.ASCII):
        return f"range error: timestamp({text[:60]!r}): years run from 0001 to 9999"
    return f"timestamp({text[:60]!r}) is not RFC 3339: write it like '2026-05-20T09:00:00Z'"
