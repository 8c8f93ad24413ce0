"""Every function of the standard library, by expressions and what they give."""

from __future__ import annotations

import pytest

from ledgercli.cel.checker import Env, check
from ledgercli.cel.evaluate import Answer, answer
from ledgercli.cel.library import STANDARD
from ledgercli.cel.literals import literal
from ledgercli.cel.parser import parse
from ledgercli.cel.types import DYN, Limits

NOON = "timestamp('2026-03-29T12:34:56.789Z')"


def run(text: str, limits: Limits | None = None, **roots: object) -> Answer:
    checked = check(parse(text), Env(dict.fromkeys(roots, DYN), strict=False))
    return answer(checked, roots, limits=limits or Limits())


GIVES = {
    # size and search
    "size('€uro')": "4",
    "'€uro'.size()": "4",
    "size(b'ab') + b'ab'.size() + size([1]) + [1].size() + size({1: 2}) + {1: 2}.size()": "8",
    "'hello'.contains('ell') && !'hello'.contains('x')": "true",
    "'hello'.startsWith('he') && 'hello'.endsWith('lo')": "true",
    "'hello'.matches('^h.*o$') && matches('hello', 'l+')": "true",
    # conversions
    "int('-7') + int(7u) + int(2.9) + int(1) + int(timestamp(5))": "8",
    "int(double('-9.5e0'))": "-9",
    "[uint('7'), uint(7), uint(7.9), uint(7u)]": "[7u,7u,7u,7u]",
    "[double('1.5'), double('.5'), double('5.'), double(2), double(2u), double(2.5), double('-inf')]": (
        '[1.5,0.5,5.0,2.0,2.0,2.5,double("-inf")]'
    ),
    "[bool('1'), bool('False'), bool(true)]": "[true,false,true]",
    "bytes('é') == b'\\xc3\\xa9' && bytes(b'x') == b'x'": "true",
    "[string(true), string(false), string(-3), string(3u), string('x'), string(b'\\xc3\\xa9')]": (
        '["true","false","-3","3","x","é"]'
    ),
    "string(timestamp('2026-01-02T03:04:05.120Z'))": '"2026-01-02T03:04:05.120Z"',
    "string(duration('90m'))": '"5400s"',
    "[1.0, 98.7, 0.1 + 0.2, -0.0, 999999.0, 1234567.5, 1e20, 0.0001, 0.00001, 5e-324].map(x, string(x))": (
        '["1","98.7","0.30000000000000004","-0","999999","1.2345675e+06","1e+20","0.0001","1e-05","5e-324"]'
    ),
    "[1.0 / 0.0, -1.0 / 0.0, 0.0 / 0.0].map(x, string(x))": '["inf","-inf","nan"]',
    "timestamp('2026-01-01T00:00:00Z') == timestamp(1767225600)": "true",
    "timestamp(timestamp(0)) == timestamp(0) && duration(duration('1s')) == duration('1000ms')": "true",
    "dyn(1)": "1",
    "[type(1), type(1u), type(1.0), type('a'), type(b'a'), type(true), type(null), type([1]), type({1: 1})]": (
        "[int,uint,double,string,bytes,bool,null_type,list,map]"
    ),
    "[type(timestamp(0)), type(duration('1s')), type(int)]": "[google.protobuf.Timestamp,google.protobuf.Duration,type]",
    # times
    f"{NOON}.getFullYear()": "2026",
    f"[{NOON}.getMonth(), {NOON}.getDate(), {NOON}.getDayOfMonth(), {NOON}.getDayOfWeek(), {NOON}.getDayOfYear()]": (
        "[2,29,28,0,87]"
    ),
    f"[{NOON}.getHours(), {NOON}.getMinutes(), {NOON}.getSeconds(), {NOON}.getMilliseconds()]": "[12,34,56,789]",
    f"[{NOON}.getHours('Europe/Berlin'), {NOON}.getHours('-02:30'), {NOON}.getMinutes('2:15'), {NOON}.getHours('')]": (
        "[14,10,49,12]"
    ),
    f"[{NOON}.getFullYear('UTC'), {NOON}.getMonth('UTC'), {NOON}.getDate('UTC'), {NOON}.getDayOfMonth('UTC')]": (
        "[2026,2,29,28]"
    ),
    f"[{NOON}.getDayOfWeek('+13:00'), {NOON}.getDayOfYear('+13:00'), {NOON}.getSeconds('UTC')]": "[1,88,56]",
    f"{NOON}.getMilliseconds('Asia/Kathmandu')": "789",
    "timestamp('1969-12-31T23:59:59.5Z').getMilliseconds()": "500",
    "[duration('-90.5s').getHours(), duration('-90.5s').getMinutes(), duration('-90.5s').getSeconds()]": "[0,-1,-90]",
    "[duration('-90.5s').getMilliseconds(), duration('3h').getHours()]": "[-500,3]",
    # strings
    "['tacocat'.charAt(3), 'tacocat'.charAt(7)]": '["o",""]',
    "['tacocat'.indexOf('ac'), 'tacocat'.indexOf('a', 3), 'tacocat'.indexOf('', 7), 'x'.indexOf('y')]": "[1,5,7,-1]",
    "['banana'.lastIndexOf('an'), 'banana'.lastIndexOf('an', 2), 'abc'.lastIndexOf('', 3)]": "[3,1,3]",
    "['tacocat'.substring(4), 'tacocat'.substring(0, 4), 'x'.substring(1)]": '["cat","taco",""]',
    "['TacoCÆt'.lowerAscii(), 'tacoCαt'.upperAscii(), '  \\u00a0x\\u200b '.trim(), 'a€b'.reverse()]": (
        '["tacocÆt","TACOCαT","x\u200b","b€a"]'
    ),
    "['aaa'.replace('a', 'b'), 'aaa'.replace('a', 'b', 2), 'ab'.replace('', '-'), 'ab'.replace('', '-', 1)]": (
        '["bbb","bba","-a-b-","-ab"]'
    ),
    "['aaa'.replace('a', 'b', 0), 'aaa'.replace('a', '')]": '["aaa",""]',
    "['a,b,c'.split(','), 'a,b,c'.split(',', 2), 'a,b'.split(',', 0), 'a,b'.split(',', 1), 'a,b'.split(',', -1)]": (
        '[["a","b","c"],["a","b,c"],[],["a,b"],["a","b"]]'
    ),
    "['abc'.split(''), 'abc'.split('', 2), ''.split(''), 'abc'.split('', 9), 'a'.split('', 0)]": (
        '[["a","b","c"],["a","bc"],[""],["a","b","c"],[]]'
    ),
    "[['a', 'b'].join(), ['a', 'b'].join('-'), [].join('-')]": '["ab","a-b",""]',
    "strings.quote('a\\n\"\\\\\\a')": '"\\"a\\\\n\\\\\\"\\\\\\\\\\\\a\\""',
    # encoders
    "base64.encode(b'hello')": '"aGVsbG8="',
    "[base64.decode('aGVsbG8='), base64.decode('aGVs\\n bG8'), base64.decode('')]": '[b"hello",b"hello",b""]',
    # format
    "'%s %s %s %s %s %%'.format(['a', 1, 2u, 1.5, true])": '"a 1 2 1.5 true %"',
    "'%s|%s|%s|%s'.format([null, b'x', timestamp(0), duration('1.5s')])": '"null|x|1970-01-01T00:00:00Z|1.500s"',
    "'%s %s'.format([[1, 'a', [2.5]], {'b': 1, 'a': {true: null}}])": '"[1, a, [2.5]] {a: {true: null}, b: 1}"',
    "'%s %s'.format([type(1), type(timestamp(0))])": '"int google.protobuf.Timestamp"',
    "'%d %d %d %d'.format([-1, 2u, 1.5, 0.0 / 0.0])": '"-1 2 1.500000 NaN"',
    "'%f %.2f %.0f %f %f'.format([1.5, 1, 2.5, 1.0 / 0.0, '-Infinity'])": '"1.500000 1.00 2 Infinity -Infinity"',
    "'%e %.3e %s'.format([1052.032911275, 1e100, -1.0 / 0.0])": '"1.052033e+03 1.000e+100 -Infinity"',
    "'%b %b %b %o %o'.format([5, -5, true, 8, 8u])": '"101 -101 1 10 10"',
    "'%x %X %x %X %x'.format([255, 255u, 'hi', b'\\xab', -255])": '"ff FF 6869 AB -ff"',
    "'%s'.format(['a', 'spare'])": '"a"',
    # math
    "[math.greatest(1, 2.5, 2u), math.greatest([1, 3]), math.greatest(7), math.greatest(1, 1.0)]": "[2.5,3,7,1]",
    "[math.least(1u, 2.5, -2), math.least([1.5, 3]), math.least([dyn(2), 1u])]": "[-2,1.5,1u]",
    "[math.ceil(1.2), math.ceil(-1.2), math.floor(1.2), math.floor(-1.2), math.trunc(-1.9), math.trunc(1.9)]": (
        "[2.0,-1.0,1.0,-2.0,-1.0,1.0]"
    ),
    "[2.5, -2.5, 1.4, 0.49999999999999994, 4503599627370497.5].map(x, math.round(x))": "[3.0,-3.0,1.0,0.0,4503599627370498.0]",
    "[math.round(1.0 / 0.0), math.floor(-1.0 / 0.0)]": '[double("inf"),double("-inf")]',
    "[math.abs(-1), math.abs(1u), math.abs(-1.5)]": "[1,1u,1.5]",
    "[math.sign(-9), math.sign(0), math.sign(9u), math.sign(-1.5), math.sign(0.0)]": "[-1,0,1u,-1.0,0.0]",
    "[math.sqrt(4), math.sqrt(9u), math.sqrt(2.25)]": "[2.0,3.0,1.5]",
    "[math.isNaN(math.sqrt(-1.0)), math.isNaN(math.sign(0.0 / 0.0)), math.isInf(1.0 / 0.0), math.isFinite(1.0)]": (
        "[true,true,true,true]"
    ),
    "[math.bitAnd(6, 3), math.bitOr(6, 3), math.bitXor(6, 3), math.bitNot(5), math.bitAnd(-1, 1)]": "[2,7,5,-6,1]",
    "[math.bitAnd(6u, 3u), math.bitOr(6u, 3u), math.bitXor(6u, 3u), math.bitNot(0u)]": "[2u,7u,5u,18446744073709551615u]",
    "[math.bitShiftLeft(1, 2), math.bitShiftLeft(1, 63), math.bitShiftLeft(1, 64), math.bitShiftLeft(3u, 63)]": (
        "[4,-9223372036854775808,0,9223372036854775808u]"
    ),
    "[math.bitShiftRight(-1024, 3), math.bitShiftRight(-1, 0), math.bitShiftRight(9, 99), math.bitShiftRight(9u, 1)]": (
        "[2305843009213693824,-1,0,4u]"
    ),
    "math.bitShiftLeft(1u, 99)": "0u",
}

FAILS = {
    "int('1.0')": "not a whole number",
    "int(' 1')": "not a whole number",
    "int('9223372036854775808')": "does not fit in an int",
    "int(18446744073709551615u)": "does not fit in an int",
    "int(9223372036854775808.0)": "does not fit in an int",
    "int(0.0 / 0.0)": "does not fit in an int",
    "uint(-1)": "does not fit in a uint",
    "uint(-0.5)": "does not fit in a uint",
    "uint('x')": "not a whole number",
    "double('1_0')": "not a number",
    "double('0x10')": "not a number",
    "bool('yes')": "write 'true' or 'false'",
    "string(b'\\xff')": "invalid UTF-8",
    "timestamp('2024-05-20T09:00:00')": "write timestamp(x + 'Z') or timestamp(x + '-05:00')",
    "timestamp('2024-05-20')": "date without a time",
    "timestamp('yesterday')": "not RFC 3339",
    "timestamp('2024-02-30T00:00:00Z')": "range error",
    "timestamp('0000-01-01T00:00:00Z')": "years run from 0001",
    "timestamp('10000-01-01T00:00:00Z')": "years run from 0001",
    "timestamp('2024-01-01T00:00:00+24:00')": "below 24:00",
    "timestamp('0001-01-01T00:00:00+01:00')": "years 0001 to 9999",
    "timestamp(253402300800)": "years 0001 to 9999",
    "timestamp('9999-12-31T23:59:59Z').getHours('+01:00')": "falls outside",
    "duration('1d')": "CEL has no days: '24h'",
    "duration('-2d')": "CEL has no days: '-48h'",
    "duration('')": "is not a duration",
    "duration('5')": "is not a duration",
    "duration('1h 30m')": "is not a duration",
    "duration('320000000000s')": "range error",
    "timestamp(0).getHours('Mars/Base')": "unknown time zone",
    "timestamp(0).getHours('+25:00')": "unknown time zone",
    "timestamp(0).getHours('+01:75')": "unknown time zone",
    "timestamp(0).getHours('../etc/passwd')": "unknown time zone",
    "timestamp(0).getHours('Ü')": "unknown time zone",
    "'abc'.charAt(-1)": "index out of range: -1",
    "'abc'.charAt(4)": "index out of range: 4",
    "'abc'.indexOf('a', 4)": "index out of range: 4",
    "'abc'.lastIndexOf('a', -1)": "index out of range: -1",
    "'abc'.substring(2, 1)": "invalid substring range. start: 2, end: 1",
    "'abc'.substring(1, 9)": "index out of range: 9",
    "[dyn(1)].join()": "no such overload",
    "base64.decode('a')": "not base64",
    "base64.decode('_-8=')": "not base64",
    "'%s'.format([])": "more clauses than arguments",
    "'%q'.format([1])": "unrecognized formatting clause 'q'",
    "'%'.format([1])": "unexpected end",
    "'%.2%'.format([1])": "unrecognized formatting clause",
    "'%.f'.format([1.5])": "precision",
    "'%.1001f'.format([1.5])": "precision",
    "'%.99999999f'.format([1.5])": "precision",
    "'%d'.format(['x'])": "decimal clause can only be used on integers, was given string",
    "'%b'.format(['x'])": "only integers and bools",
    "'%o'.format([1.5])": "octal clause",
    "'%x'.format([1.5])": "only integers, byte buffers, and strings",
    "'%f'.format([true])": "fixed-point clause",
    "'%e'.format(['1'])": "scientific clause",
    "'%f'.format([[]])": "fixed-point clause can only be used on doubles, was given list",
    "'%s'.format([b'\\xff'])": "not UTF-8",
    "math.greatest([])": "empty list",
    "math.least(1, dyn('x'))": "no such overload",
    "math.abs(-9223372036854775808)": "integer overflow",
    "math.bitShiftLeft(1, -1)": "negative offset",
    "math.bitShiftRight(1u, -1)": "negative offset",
    "math.ceil(dyn(1))": "no such overload",
    "'a'.matches('[')": "missing ]",
}


@pytest.mark.parametrize(("text", "expected"), GIVES.items(), ids=list(GIVES))
def test_a_function_gives(text: str, expected: str) -> None:
    result = run(text)
    assert result.known, result.error
    assert literal(result.value) == expected


@pytest.mark.parametrize(("text", "part"), FAILS.items(), ids=list(FAILS))
def test_a_function_fails_and_says_why(text: str, part: str) -> None:
    result = run(text)
    assert not result.known, literal(result.value)
    assert part in str(result.error)


def test_every_function_of_the_library_is_used_above() -> None:
    used = "\n".join(GIVES)
    assert {one.name for one in STANDARD if f"{one.name.split('.')[-1]}(" not in used} == set()


def test_half_of_a_surrogate_pair_has_no_bytes() -> None:
    assert "surrogate" in str(run("bytes(x)", x="\ud800").error)


@pytest.mark.parametrize(
    "text",
    [
        "big + big",
        "big.replace('a', 'bb')",
        "big.replace('', '-')",
        "[big, big].join('')",
        "'%s%s'.format([big, big])",
        "'%x'.format([big])",
        "'%s'.format([nest])",
        "base64.encode(bytes(big))",
        "strings.quote(big)",
    ],
)
def test_no_value_grows_beyond_its_bound(text: str) -> None:
    nest: list[object] = ["x"]
    for _ in range(40):
        nest = [nest, nest]
    limits = Limits(size=1200)
    result = run(text, limits, big="a" * 1000, nest=nest)
    assert not result.known
    assert "too large" in str(result.error) or "steps" in str(result.error)


@pytest.mark.parametrize(
    "text",
    [
        "l.map(x, big + 'a')",
        "l.map(x, big.upperAscii())",
        "l.all(x, !big.contains('b'))",
        "l.map(x, big.split(''))",
        "l.map(x, big.substring(1))",
        "l.all(x, !big.matches('b.c'))",
        "l.map(x, bytes(big))",
    ],
)
def test_large_texts_make_a_loop_dear(text: str) -> None:
    result = run(text, l=[0] * 5_000, big="a" * 100_000)
    assert "steps" in str(result.error)


def test_format_refuses_deep_nesting() -> None:
    nest: list[object] = []
    for _ in range(200):
        nest = [nest]
    assert "nests deeper" in str(run("'%s'.format([x])", x=nest).error)
