"""Types of the policy language, functions with their signatures, bounds, and the errors of an evaluation.

Invariants:
* Types are immutable and compared by value; two records are equal when name, fields and openness are.
* A `Function` is one overload; several of one name are told apart by the types of their arguments.
* Nothing here evaluates anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any


@dataclass(frozen=True, slots=True)
class Type:
    """A type without parameters, such as `int`; the singletons below are all there are."""

    name: str

    def __str__(self) -> str:
        return self.name


DYN = Type("dyn")
BOOL = Type("bool")
INT = Type("int")
UINT = Type("uint")
DOUBLE = Type("double")
STRING = Type("string")
BYTES = Type("bytes")
NULL = Type("null_type")
TIMESTAMP = Type("timestamp")
DURATION = Type("duration")
TYPE = Type("type")
PATH = Type("path")  # a parameter that takes a path as it is written, not its value


@dataclass(frozen=True, slots=True)
class ListType(Type):
    """A list of `elem`."""

    name: str = field(default="list", init=False)
    elem: Type = DYN

    def __str__(self) -> str:
        return f"list({self.elem})"


@dataclass(frozen=True, slots=True)
class MapType(Type):
    """A map from `key` to `value` whose keys are not known beforehand."""

    name: str = field(default="map", init=False)
    key: Type = DYN
    value: Type = DYN

    def __str__(self) -> str:
        return f"map({self.key}, {self.value})"


@dataclass(frozen=True, slots=True)
class Field:
    """A known key of a record.

    Arguments:
        type: of its value.
        optional: whether it may be absent.
        note: free text that errors show, such as where the key is set.

    """

    type: Type
    optional: bool = False
    note: str | None = None


@dataclass(frozen=True, slots=True)
class RecordType(Type):
    """A map whose keys are known; an unknown key is an error unless the record is `open`."""

    name: str = "record"
    fields: Mapping[str, Field] = field(default_factory=lambda: MappingProxyType({}), hash=False)
    open: bool = False
    noun: str = "field"  # what one of its keys is called in errors: "fact", "argument", "flag"

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class EnumType(Type):
    """A string of which all `values` are known: comparing it with another literal is an error at load."""

    name: str = "string"
    values: frozenset[str] = frozenset()
    what: str = "value"  # what one of them is called in errors: "tool", "status"


@dataclass(frozen=True, slots=True)
class Opaque(Type):
    """A value that only the functions which ask for it may take (`state.ledger`)."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds on what an expression may be and do; each has an error of its own.

    Arguments:
        length: characters of source text.
        depth: nesting of the syntax tree, chained operators and calls included.
        iterations: steps of one evaluation: the loops of all macros together (a large body costs several a time),
            visited elements, and characters that functions walk or build (64 a step).
        size: characters, bytes or elements of one value that an evaluation builds.

    """

    length: int = 20_000
    depth: int = 100
    iterations: int = 200_000
    size: int = 1_000_000


class EvalError(Exception):
    """An evaluation that has no value, as CEL's errors do; `&&`, `||`, `?:`, `all` and `exists` may absorb it."""

    place: Any = None  # the syntax node where it arose, once known


class CannotTell(EvalError):  # noqa: N818 - the design's own word for the third answer
    """The answer depends on something that is not known.

    Arguments:
        message: what is not known.
        missing: the paths that are absent, as they are typed in a rule.

    """

    def __init__(self, message: str, missing: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.missing = missing


class BoundError(EvalError):
    """A bound of `Limits` was reached; it is never absorbed."""


@dataclass(slots=True)
class Meter:
    """Counts what one evaluation spends; `spend` raises `BoundError` when the bound is passed."""

    limits: Limits
    spent: int = 0

    def spend(self, amount: int) -> None:
        """Count `amount` loop steps or visited elements."""
        self.spent += amount
        if self.spent > self.limits.iterations:
            raise BoundError(f"the evaluation needs more than {self.limits.iterations:,} steps")

    def size(self, amount: int) -> None:
        """Refuse a value of `amount` characters, bytes or elements before it is built."""
        if amount > self.limits.size:
            raise BoundError(f"a value of {amount:,} characters or elements is too large")


@dataclass(frozen=True, slots=True)
class Function:
    """One overload of a function.

    Arguments:
        name: as it is written, `math.greatest` included.
        params: types of the arguments; for a method the receiver is the first.
        result: type of the answer.
        call: computes it: `call(*args)`, with the context before them where `context`, the meter first of all
            where `meter`.
        method: written `a.name(b)` rather than `name(a, b)`.
        context: whether it asks the context that the evaluation was given.
        meter: whether it takes the evaluation's `Meter` (long loops, large values).
        observed: whether its answer depends on more than its arguments, and so belongs to the read-set.
        optional: how many of the last parameters may be left out.
        variadic: whether the last parameter may repeat.
        check: more static checks, given the call's syntax node and the argument types.
        passes: the attributes that lead from the context to the method which `call` only passes its arguments on to.

    """

    name: str
    params: tuple[Type, ...]
    result: Type
    call: Callable[..., Any]
    method: bool = False
    context: bool = False
    meter: bool = False
    observed: bool = False
    optional: int = 0
    variadic: bool = False
    check: Callable[[Any, tuple[Type, ...]], Iterable[Any]] | None = None
    passes: tuple[str, ...] = ()
    needs: tuple[Type, ...] = field(init=False, repr=False, compare=False)  # what `call` is given: all but opaque ones

    def __post_init__(self) -> None:
        object.__setattr__(self, "needs", tuple(one for one in self.params if not isinstance(one, Opaque)))
