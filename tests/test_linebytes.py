"""A line is exactly what orjson writes, within the limits, in both directions."""

from __future__ import annotations

import re
import resource
from datetime import UTC, datetime
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledgercli.ledger.linebytes import DEPTH_MAX, LINE_MAX, LedgerLimitError, LineError, beyond, dumps, loads
from ledgercli.wide import Wide

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), max_size=5), inner, max_size=4)
    ),
    max_leaves=20,
)


def nested(levels: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(levels - 1):
        value = [value]
    return value


@given(st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), max_size=5), JSON, max_size=5))
def test_what_is_written_is_read_back_the_same(record: dict[str, Any]) -> None:
    line = dumps(record)
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    read = loads(line)
    assert read == record
    assert dumps(read) == line


@pytest.mark.parametrize(
    ("record", "path", "why"),
    [
        ({"a": float("nan")}, "a", "is nan"),
        ({"result": {"data": [1, float("inf")]}}, "result.data[1]", "is inf"),
        ({"result": None, "a": float("-inf")}, "a", "is -inf"),
        ({"a": {"b": 2**63}}, "a.b", "is an integer of more than 64 bits"),
        ({"a": -(2**63) - 1}, "a", "is an integer of more than 64 bits"),
        ({"a": 2**64}, "a", "is an integer of more than 64 bits"),
        ({"a": "\ud800"}, "a", "is text with a lone surrogate"),
        ({"a": {"\udfff": 1}}, "a", "has the key '\\udfff', which is not UTF-8 text"),
        ({"a": {1: 1}}, "a", "has the key 1, which is not UTF-8 text"),
        ({"a": b"x"}, "a", "is of type bytes, which is not JSON"),
        ({"a": datetime.now(UTC)}, "a", "is of type datetime, which is not JSON"),
        ({"a": Wide({"b": float("nan")})}, "a.b", "is nan"),
        ({"a": nested(DEPTH_MAX)}, "a" + "[0]" * (DEPTH_MAX - 1), f"is nested deeper than {DEPTH_MAX} levels"),
        ({"result": {"data": {"x": "y" * LINE_MAX, "z": 1}}}, "result.data.x", "makes the line 16,777,2"),
        ({"a": ["x" * (LINE_MAX // 2), "x" * (LINE_MAX // 2)]}, "a", "makes the line 16,777,2"),
    ],
)
def test_a_record_beyond_the_limits_is_refused_with_the_path_of_the_value(
    record: dict[str, Any], path: str, why: str
) -> None:
    with pytest.raises(LedgerLimitError, match=re.escape(why)) as caught:
        dumps(record)
    assert caught.value.path == path


def test_values_at_the_limits_are_written() -> None:
    record = {
        "a": nested(DEPTH_MAX - 1),
        "b": 2**63 - 1,
        "c": -(2**63),
        "d": None,
        "e": "1" * 40,
        "f": [{}] * 100,
        "t": (1, 2),
    }
    assert loads(dumps(record)) == record | {"t": [1, 2]}
    assert len(dumps({"a": "x" * (LINE_MAX - len('{"a":""}\n'))})) == LINE_MAX


@pytest.mark.parametrize("number", [2**53 - 1, 2**53, 2**62, 2**63 - 1, -(2**53), -(2**63)])
@pytest.mark.parametrize("deep", [1, DEPTH_MAX - 2])
def test_large_integers_are_read_as_small_ones_are(number: int, deep: int) -> None:
    record = {"a": number, "b": nested(deep), "c": ["[" * 99, "{" * 99]}
    assert loads(dumps(record)) == record
    for spoiled in (dumps(record).replace(b'"a":', b'"a": '), dumps(record).replace(b'"c":', b'"a":')):
        with pytest.raises(LineError):
            loads(spoiled)


def test_beyond_looks_at_a_value_that_is_to_stand_deeper() -> None:
    assert beyond(nested(DEPTH_MAX - 2), ("args",), 3) is None
    assert beyond(nested(DEPTH_MAX - 1), ("args",), 3) is not None
    assert beyond({"a": [1, "x", None, True, 1.5]}) is None


@pytest.mark.parametrize(
    ("line", "column", "message"),
    [
        (b'{"a":NaN}\n', 6, "NaN is no JSON number"),
        (b'{"a":-Infinity}\n', 6, "-Infinity is no JSON number"),
        (b'{"a":18446744073709551615}\n', 6, "the integer 18446744073709551615 has more than 64 bits"),
        (b'{"a":18446744073709551616}\n', 6, "the integer 18446744073709551616 has more than 64 bits"),
        (b'{"a":-9223372036854775809}\n', 6, "the integer -9223372036854775809 has more than 64 bits"),
        (
            b'{"a":' + b"1" * 5000 + b"}\n",
            6,
            "the integer 1111111111111111111111111111111111111... has more than 64 bits",
        ),
        (b'{"a":1e400}\n', 6, "the number 1e400: "),
        (b'{"a":1.0E5}\n', 6, "the number 1.0E5 is written 100000.0 in a ledger"),
        (b'{"a":1.50}\n', 6, "the number 1.50 is written 1.5 in a ledger"),
        (b'{"a":-0}\n', 6, "the number -0 is written 0 in a ledger"),
        (b'{"a":01}\n', 6, "the number 01: "),
        (b'{"a":"\\ud800"}\n', 6, "a lone surrogate, which is not UTF-8"),
        (b'{"a":"\xed\xa0\x80"}\n', 7, "byte 0xed is not UTF-8"),
        ('{"北京":"'.encode() + b'\xff"}\n', 8, "byte 0xff is not UTF-8"),
        (b'\xef\xbb\xbf{"a":1}\n', 1, "a byte-order mark stands before the line"),
        (b'{"a":1}\r\n', 8, "the line ends in CR LF"),
        (b'{"a":1,"b":{"a":2},"a":3}\n', 20, 'the key "a" stands here a second time'),
        ('{"北":[{"b":1,"b":1}]}\n'.encode(), 14, 'the key "b" stands here a second time'),
        ('{"北":1, "b":1}\n'.encode(), 8, "space between values"),
        (b'{"a":1} \n', 8, "space between values"),
        (b'{"a":"\\/"}\n', 6, "this text is not escaped as orjson escapes it"),
        (b'{"a":"\\u0041"}\n', 6, "this text is not escaped as orjson escapes it"),
        (b'{"a":"x\x01"}\n', 6, "this text: unexpected control character"),
        (b'{"a":"abc\n', 10, "unexpected control character in string"),
        (b'{"a":1\n', 7, ""),
        (b'{"a":1}}\n', 8, ""),
        (b'{"a":1,}\n', 7, "trailing comma"),
        (b'{"a":nul}\n', 6, "invalid literal"),
        ('{"北京":nul}\n'.encode(), 7, "invalid literal"),
        (b"[1]\n", 1, "a line is one JSON object"),
        (b"\n", 1, ""),
        (b"\x00\x00\n", 1, ""),
        (b'{"a":1}{"b":2}\n', 8, ""),
        (b'{"a":' + b"[" * 100_000 + b"\n", 5 + DEPTH_MAX, f"nested deeper than {DEPTH_MAX} levels"),
        (b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}\n", 5 + DEPTH_MAX, f"nested deeper than {DEPTH_MAX} levels"),
        (
            b'{"a":' + b"[" * DEPTH_MAX + b"]" * DEPTH_MAX + b"}\n",
            5 + DEPTH_MAX,
            f"nested deeper than {DEPTH_MAX} levels",
        ),
        (b'{"a":' * 300 + b"1" + b"}" * 300 + b"\n", 1 + 5 * DEPTH_MAX, f"nested deeper than {DEPTH_MAX} levels"),
    ],
)
def test_bytes_that_no_writer_wrote_are_named_at_their_column(line: bytes, column: int, message: str) -> None:
    with pytest.raises(LineError) as caught:
        loads(line)
    assert caught.value.message.startswith(message)
    assert caught.value.column == column


@given(JSON, st.data())
def test_a_line_with_one_byte_changed_is_read_as_its_bytes_say_or_not_at_all(value: Any, data: st.DataObject) -> None:
    line = bytearray(dumps({"a": value, "北": "京"}))
    at = data.draw(st.integers(0, len(line) - 2))
    line[at] = data.draw(st.integers(0, 255))
    try:
        record = loads(bytes(line))
    except LineError as error:
        column, message = error.column, error.message
    else:
        column, message = 1, "as it stands"
        assert orjson.dumps(record) + b"\n" == bytes(line)
    assert 1 <= column <= len(line)
    assert message


def test_a_line_that_would_take_more_memory_than_the_process_has_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    line = dumps({"a": [{}] * 200_000})
    assert loads(line)["a"]
    monkeypatch.setattr(resource, "getrlimit", lambda _: (512 * 2**20, resource.RLIM_INFINITY))
    assert loads(line)["a"]
    monkeypatch.setattr(resource, "getrlimit", lambda _: (256 * 2**20, resource.RLIM_INFINITY))
    with pytest.raises(LineError, match="more values than this process may take memory for"):
        loads(line)
