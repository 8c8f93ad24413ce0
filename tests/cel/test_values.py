"""Equality, order, arithmetic, lookup, times, and values as text."""

from __future__ import annotations

import math
from collections import UserDict
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledgercli.cel import values
from ledgercli.cel.literals import literal, to_json
from ledgercli.cel.moments import Duration, Timestamp
from ledgercli.cel.types import BOOL, INT, BoundError, CannotTell, EvalError, Limits, ListType, MapType, Meter
from ledgercli.cel.values import INT_MAX, INT_MIN, MISSING, UINT_MAX, KeyedMap, UInt

NAN = math.nan


def meter(iterations: int = 1000) -> Meter:
    return Meter(Limits(iterations=iterations))


def equal(a: Any, b: Any) -> bool:
    return values.equals(meter(), a, b)


def fails(call: Callable[..., Any], *args: Any) -> str:
    with pytest.raises(EvalError) as caught:
        call(*args)
    return str(caught.value)


# Equality and order


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (1, 1.0),
        (1, UInt(1)),
        (UInt(1), 1.0),
        (UInt(2**63), 2.0**63),
        (INT_MAX, 2.0**63),  # the standard's suite has the double that INT_MAX becomes equal to it
        (None, None),
        ("a", "a"),
        (b"a", b"a"),
        ([1, [2]], [1.0, (UInt(2),)]),
        ({1: "a"}, {1.0: "a"}),
        ({1: "a"}, {UInt(1): "a"}),
        ({"a": [1]}, UserDict({"a": [1]})),
        (KeyedMap([(True, 1), (1, 2)]), KeyedMap([(1, 2), (True, 1)])),
        (KeyedMap([(True, 1)]), {True: 1}),
        (INT, INT),
        (ListType(), ListType()),
        (Timestamp(5), Timestamp(5)),
        (Duration(5), Duration(5)),
    ],
)
def test_equal(a: Any, b: Any) -> None:
    assert equal(a, b)
    assert equal(b, a)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (1, True),
        (0, False),
        (True, UInt(1)),
        (1.0, True),
        (NAN, NAN),
        ([NAN], [NAN]),
        (None, False),
        (None, 0),
        ("1", 1),
        ("a", b"a"),
        ([1], [True]),
        ([1], [1, 2]),
        ([1], 1),
        ({"a": 1}, {"a": True}),
        ({"a": 1}, {"b": 1}),
        ({"a": 1}, {"a": 1, "b": 2}),
        ({"a": 1}, [1]),
        ({True: 1}, {1: 1}),
        (2**53 + 1, 2.0**53),
        (INT_MAX, 2.0**53),
        (UInt(INT_MAX), 2.0**63),
        (INT, BOOL),
        (INT, ListType()),
        (Timestamp(5), Duration(5)),
        (Duration(5), 5),
    ],
)
def test_not_equal(a: Any, b: Any) -> None:
    assert not equal(a, b)
    assert not equal(b, a)


def test_equality_of_lists_that_double_ends_at_the_bound() -> None:
    a: list[Any] = [1]
    b: list[Any] = [1]
    for _ in range(100):
        a, b = [a, a], [b, b]
    assert "steps" in fails(values.equals, meter(), a, b)


def test_equality_of_very_deep_lists_does_not_recurse() -> None:
    a: list[Any] = []
    b: list[Any] = []
    for _ in range(20_000):
        a, b = [a], [b]
    assert values.equals(meter(100_000), a, b)


@given(st.integers(INT_MIN, INT_MAX), st.floats(allow_nan=False))
def test_ints_and_doubles_compare_by_value(a: int, b: float) -> None:
    if b != 2.0**63:
        assert values.less(a, b) == (a < b)
        assert values.greater_equal(b, a) == (b >= a)
        assert equal(a, b) == (a == b)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (1, 2),
        (1, 1.5),
        (UInt(1), 2),
        (-1, UInt(0)),
        ("a", "b"),
        ("Z", "a"),
        ("\uffff", "\U00010000"),
        (b"a", b"b"),
        (False, True),
        (Timestamp(1), Timestamp(2)),
        (Duration(-1), Duration(0)),
        (INT_MAX, 9223372036854777857.0),
    ],
)
def test_order(a: Any, b: Any) -> None:
    assert values.less(a, b)
    assert values.less_equal(a, b)
    assert values.greater(b, a)
    assert values.greater_equal(b, a)
    assert not values.less(b, a)
    assert not values.less(a, a)
    assert values.less_equal(a, a)


def test_the_largest_int_is_not_below_the_double_it_becomes() -> None:
    assert not values.less(INT_MAX, 2.0**63)
    assert values.greater_equal(INT_MAX, 2.0**63)


def test_nan_has_no_order() -> None:
    assert not any(compare(NAN, 1) or compare(1, NAN) for name, compare in values.BINARY.items() if name[0] in "<>")


@pytest.mark.parametrize(("a", "b"), [(1, "a"), (True, 1), (None, None), ([1], [2]), ({}, {}), (Timestamp(1), 1)])
def test_no_order_between_other_values(a: Any, b: Any) -> None:
    for sign in ("<", "<=", ">", ">="):
        assert f"no such overload: {values.type_name(a)} {sign} " in fails(values.BINARY[sign], a, b)


# Arithmetic


@pytest.mark.parametrize(
    ("sign", "a", "b", "result"),
    [
        ("+", 1, 2, 3),
        ("+", 1.5, 2.0, 3.5),
        ("+", UInt(1), UInt(2), UInt(3)),
        ("+", "a", "b", "ab"),
        ("+", b"a", b"b", b"ab"),
        ("+", [1], (2,), [1, 2]),
        ("+", Duration(1), Duration(2), Duration(3)),
        ("+", Timestamp(1), Duration(2), Timestamp(3)),
        ("+", Duration(2), Timestamp(1), Timestamp(3)),
        ("-", 1, 2, -1),
        ("-", 1.5, 1.0, 0.5),
        ("-", UInt(3), UInt(1), UInt(2)),
        ("-", Timestamp(3), Timestamp(1), Duration(2)),
        ("-", Timestamp(3), Duration(1), Timestamp(2)),
        ("-", Duration(3), Duration(1), Duration(2)),
        ("*", 3, -2, -6),
        ("*", 1.5, 2.0, 3.0),
        ("*", UInt(3), UInt(2), UInt(6)),
        ("/", 7, 2, 3),
        ("/", -7, 2, -3),
        ("/", 7, -2, -3),
        ("/", -7, -2, 3),
        ("/", UInt(7), UInt(2), UInt(3)),
        ("/", 7.0, 2.0, 3.5),
        ("/", 1.0, 0.0, math.inf),
        ("/", 1.0, -0.0, -math.inf),
        ("/", -1.0, 0.0, -math.inf),
        ("%", 7, -2, 1),
        ("%", -7, 2, -1),
        ("%", UInt(7), UInt(2), UInt(1)),
    ],
)
def test_arithmetic(sign: str, a: Any, b: Any, result: Any) -> None:
    actual = values.add(meter(), a, b) if sign == "+" else values.BINARY[sign](a, b)
    assert actual == result
    assert type(actual) is type(result)


def test_zero_over_zero_is_not_a_number() -> None:
    assert math.isnan(values.divide(0.0, 0.0))
    assert math.isnan(values.divide(NAN, 0.0))


def test_negation() -> None:
    assert values.negate(3) == -3
    assert math.copysign(1, values.negate(0.0)) == -1
    assert "overflow" in fails(values.negate, INT_MIN)
    assert "no such overload: -(uint)" in fails(values.negate, UInt(1))
    assert "no such overload" in fails(values.negate, True)


@pytest.mark.parametrize(
    ("sign", "a", "b"),
    [
        ("+", INT_MAX, 1),
        ("-", INT_MIN, 1),
        ("*", 2**32, 2**31),
        ("/", INT_MIN, -1),
        ("%", INT_MIN, -1),
        ("+", UInt(UINT_MAX), UInt(1)),
        ("-", UInt(0), UInt(1)),
        ("*", UInt(2**32), UInt(2**32)),
    ],
)
def test_overflow_is_an_error(sign: str, a: Any, b: Any) -> None:
    call = (lambda x, y: values.add(meter(), x, y)) if sign == "+" else values.BINARY[sign]
    assert "overflow" in fails(call, a, b)


@pytest.mark.parametrize("sign", ["/", "%"])
@pytest.mark.parametrize("kind", [int, UInt])
def test_division_by_zero_is_an_error(sign: str, kind: type[int]) -> None:
    assert "by zero" in fails(values.BINARY[sign], kind(1), kind(0))


@pytest.mark.parametrize("sign", ["-", "*", "/", "%"])
@pytest.mark.parametrize(("a", "b"), [(1, 1.0), (1, UInt(1)), (True, True), ("a", "b"), (None, 1), (True, 1)])
def test_arithmetic_does_not_mix_or_take_others(sign: str, a: Any, b: Any) -> None:
    assert "no such overload" in fails(values.BINARY[sign], a, b)
    assert "no such overload" in fails(values.add, meter(), a, None)


def test_a_mix_of_numbers_is_told_to_be_converted() -> None:
    assert "write double(…)" in fails(values.add, meter(), 1, 1.5)
    assert "write double(…)" not in fails(values.add, meter(), 1, "a")


def test_times_stay_in_their_range() -> None:
    last = Timestamp.parse("9999-12-31T23:59:59.999999999Z")
    first = Timestamp.parse("0001-01-01T00:00:00Z")
    assert "range error" in fails(values.add, meter(), last, Duration(1))
    assert "range error" in fails(values.subtract, first, Duration(1))
    assert "292 years" in fails(values.subtract, last, first)
    longest = Duration.parse("315576000000s")
    assert "range error" in fails(values.add, meter(), longest, Duration(1))


# Lookup


def test_index_of_a_list() -> None:
    assert values.index([7, 8], 1) == 8
    assert values.index((7, 8), 1.0) == 8
    assert values.index([7, 8], UInt(0)) == 7
    assert "the list has 2 elements" in fails(values.index, [7, 8], 2)
    assert "x[size(x) - 1]" in fails(values.index, [7, 8], -1)
    assert "whole number, not 0.5" in fails(values.index, [7], 0.5)
    assert "whole number, not true" in fails(values.index, [7], True)
    assert 'whole number, not "a"' in fails(values.index, [7], "a")
    assert "whole number, not inf" in fails(values.index, [7], math.inf)


def test_index_of_a_map() -> None:
    assert values.index({"a": 1}, "a") == 1
    assert values.index({1: "x"}, 1.0) == "x"
    assert values.index(UserDict({"a": 1}), "a") == 1
    assert fails(values.index, {"a": 1}, "b") == 'no such key: "b"'
    assert fails(values.index, {1: "x"}, True) == "no such key: true"
    assert fails(values.index, {1: "x"}, b"x") == "no such key: bytes"
    assert "no such overload" in fails(values.index, "text", 0)


def test_find_keeps_true_and_one_apart() -> None:
    assert values.find({1: "int"}, True) is MISSING
    assert values.find({True: "bool"}, 1) is MISSING
    assert values.find({True: "bool"}, True) == "bool"
    assert values.find({0: "int"}, 0.0) == "int"
    assert values.find({1: "int"}, UInt(1)) == "int"
    assert values.find({1: "int"}, 1.5) is MISSING
    assert values.find({1: "int"}, NAN) is MISSING
    both = values.make_map([(True, "bool"), (1, "int")])
    assert (values.find(both, True), values.find(both, 1), values.find(both, 1.0)) == ("bool", "int", "int")
    assert values.find(both, False) is MISSING
    assert (len(both), list(both)) == (2, [True, 1])


def test_make_map_refuses_odd_and_double_keys() -> None:
    assert values.make_map([("a", 1), ("b", 2)]) == {"a": 1, "b": 2}
    assert 'the key "a" stands twice' in fails(values.make_map, [("b", 1), ("a", 1), ("a", 2)])
    assert "stands twice" in fails(values.make_map, [(0, 1), (UInt(0), 2)])
    assert "stands twice" in fails(values.make_map, [(True, 1), (1, 2), (True, 3)])
    assert "not double" in fails(values.make_map, [(1.0, 1)])
    assert "not null_type" in fails(values.make_map, [(None, 1)])


def test_in() -> None:
    def has(item: Any, container: Any) -> bool:
        return values.contains(meter(), item, container)

    assert has("a", ["b", "a"])
    assert has(1, [1.0])
    assert not has(1, [True])
    assert not has(NAN, [NAN])
    assert has([1], [[UInt(1)]])
    assert has("a", {"a": 1})
    assert not has(1.5, {1: 1})
    assert not has("a", [])
    assert "no such overload: string in string" in fails(has, "a", "abc")


def test_in_pays_for_what_it_walks() -> None:
    assert "steps" in fails(values.contains, meter(), 0, [1] * 2000)
    assert "steps" in fails(values.contains, meter(), "a", ["b"] * 20_000)


def test_types_of_values() -> None:
    kinds = [values.type_name(one) for one in (1, UInt(1), 1.0, True, "a", b"a", None, [], (), {}, KeyedMap([]), INT)]
    assert kinds == [
        *("int", "uint", "double", "bool", "string", "bytes", "null_type", "list", "list", "map", "map", "type")
    ]
    assert values.type_of(UserDict()) == MapType()
    assert "Python set" in fails(values.type_of, set())

    class Many(list[int]):
        pass

    assert values.type_of(Many()) == ListType()


# Times


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("2026-08-01T12:00:00Z", "2026-08-01T12:00:00Z"),
        ("2026-08-01t12:00:00z", "2026-08-01T12:00:00Z"),
        ("2026-08-01T12:00:00+02:30", "2026-08-01T09:30:00Z"),
        ("2026-08-01T12:00:00-02:30", "2026-08-01T14:30:00Z"),
        ("2026-08-01T12:00:00.5Z", "2026-08-01T12:00:00.500Z"),
        ("2026-08-01T12:00:00.000001Z", "2026-08-01T12:00:00.000001Z"),
        ("2026-08-01T12:00:00.0000000019Z", "2026-08-01T12:00:00.000000001Z"),
        ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00Z"),
        ("1969-12-31T23:59:59.9Z", "1969-12-31T23:59:59.900Z"),
    ],
)
def test_timestamps_from_text(text: str, shown: str) -> None:
    assert str(Timestamp.parse(text)) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("1h30m", "5400s"),
        ("-1.5s", "-1.500s"),
        ("+2m", "120s"),
        ("0", "0s"),
        ("-0", "0s"),
        ("1ms", "0.001s"),
        ("1us2ns", "0.000001002s"),
        ("1µs", "0.000001s"),
        (".5s", "0.500s"),
        ("5.s", "5s"),
        ("0.1ns", "0s"),
        ("1.9ns", "0.000000001s"),
    ],
)
def test_durations_from_text(text: str, shown: str) -> None:
    assert str(Duration.parse(text)) == shown


def test_a_very_long_duration_text_is_refused_at_once() -> None:
    assert "is not a duration" in fails(Duration.parse, "1h" * 100_000)


def test_timestamps_from_datetimes() -> None:
    there = datetime(2026, 8, 1, 14, 0, 0, 5, tzinfo=timezone(timedelta(hours=2)))
    assert str(Timestamp.from_datetime(there)) == "2026-08-01T12:00:00.000005Z"
    assert Timestamp.from_datetime(datetime(1960, 1, 1, tzinfo=UTC)).seconds == -315619200
    assert "zone" in fails(Timestamp.from_datetime, datetime(2026, 8, 1))  # noqa: DTZ001


@given(st.integers(-62_135_596_800 * 10**9, 253_402_300_800 * 10**9 - 1))
def test_a_timestamp_reads_back(nanos: int) -> None:
    assert Timestamp.parse(str(Timestamp(nanos))) == Timestamp(nanos)


@given(st.integers(-(10**20), 10**20))
def test_a_duration_reads_back(nanos: int) -> None:
    assert Duration.parse(str(Duration(nanos))) == Duration(nanos)


# Values as text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "null"),
        (True, "true"),
        (-3, "-3"),
        (UInt(3), "3u"),
        (1.0, "1.0"),
        (1e300, "1e+300"),
        (math.inf, 'double("inf")'),
        ('a"\n世', '"a\\"\\n世"'),
        (b'a"\\\n\x00\xff', 'b"a\\"\\\\\\n\\x00\\xff"'),
        ([1, "a"], '[1,"a"]'),
        ({"a": 1, "b": {}}, '{"a":1,"b":{}}'),
        (KeyedMap([(True, 1)]), "{true:1}"),
        (Timestamp(0), 'timestamp("1970-01-01T00:00:00Z")'),
        (Duration(10**9), 'duration("1s")'),
        (INT, "int"),
        (values.type_of(Timestamp(0)), "google.protobuf.Timestamp"),
    ],
)
def test_literal(value: Any, text: str) -> None:
    assert literal(value) == text


def test_to_json() -> None:
    value = {"a": (UInt(1), 2.5, None, True, "x"), 5: Timestamp(0), UInt(6): Duration(1), True: UserDict()}
    assert to_json(value) == {
        "a": [1, 2.5, None, True, "x"],
        "5": "1970-01-01T00:00:00Z",
        "6": "0.000000001s",
        "true": {},
    }


@pytest.mark.parametrize("value", [NAN, math.inf, b"x", INT, [b"x"], {1: "a", "1": "b"}])
def test_what_json_cannot_carry_cannot_be_told(value: Any) -> None:
    with pytest.raises(CannotTell):
        to_json(value)


def test_text_of_values_that_double_or_nest_is_bounded() -> None:
    wide: list[Any] = [1]
    for _ in range(40):
        wide = [wide, wide]
    deep: list[Any] = []
    for _ in range(200):
        deep = [deep]
    for value in (wide, deep, "x" * 2_000_000):
        with pytest.raises(BoundError):
            literal(value)
        with pytest.raises(CannotTell):
            to_json(value)
