"""Expressions that mean harm: each ends in a value or in a clear error, within the bounds, and nothing escapes."""

from __future__ import annotations

import random
import time

import pytest

from ledgercli import cel

DIGITS = "[" + ",".join(map(str, range(10))) + "]"


def nested(depth, body="true"):
    """`depth` loops over ten elements, one in another."""
    return "".join(f"{DIGITS}.all(x{i}, " for i in range(depth)) + body + ")" * depth


def doubled(times, start, joined):
    """A value that doubles with each binding."""
    return f"cel.bind(a, {start}, " + f"cel.bind(a, {joined}, " * times + "a" + ")" * (times + 1)


HOSTILE = {
    # Deep
    "parentheses": "(" * 5000 + "1" + ")" * 5000,
    "open parentheses": "(" * 5000,
    "lists": "[" * 5000 + "]" * 5000,
    "maps": "{1:" * 4000 + "1" + "}" * 4000,
    "negations": "!" * 5000 + "true",
    "minus signs": "-" * 5000 + "1",
    "spaced minus signs": "- " * 5000 + "1",
    "conditionals to the right": "true ? 1 : " * 1500 + "1",
    "conditionals in the middle": "true ? (" * 1500 + "1" + ") : 1" * 1500,
    "indexes": "[0]" * 5000,
    "index in index": "big[" * 3000 + "0" + "]" * 3000,
    "fields": "deep" + ".x" * 5000,
    "calls in calls": "size(" * 3000 + "'a'" + ")" * 3000,
    "macros in macros": "[1].all(x, " * 1500 + "true" + ")" * 1500,
    "binds in binds": "cel.bind(x, 1, " * 1200 + "x" + ")" * 1200,
    "nesting just below the bound": "!(" * 49 + "true" + ")" * 49,
    # Long chains
    "5,000 sums": "+".join(["1"] * 5000),
    "5,000 ors": "||".join(["t"] * 5000),
    "5,000 ands": "&&".join(["t"] * 5000),
    "5,000 comparisons": "==".join(["1"] * 5000),
    "4,000 methods": "'a'" + ".trim()" * 2800,
    "5,000 list elements": "[" + ",".join(["1"] * 5000) + "].size()",
    "2,000 map entries": "{" + ",".join(f"'{i}':{i}" for i in range(2000)) + "}.size()",
    "2,000 equal keys": "{" + ",".join(["'a':1"] * 2000) + "}",
    "2,000 arguments": "size(" + ",".join(["1"] * 2000) + ")",
    "very long": "a" * 1_000_000,
    "very long text": "'" + "a" * 1_000_000 + "'",
    # Much work
    "loops over ten, six deep": nested(6),
    "loops over ten, eight deep": nested(8, "x0 + x1 + x2 + x3 + x4 + x5 + x6 + x7 < 100"),
    "loop in a loop over a large list": "big.all(x, big.all(y, x != y || x == y))",
    "loop in a loop in a loop": "big.all(x, big.all(y, big.exists(z, z == x)))",
    "a large body in a loop": "big.all(x, " + " || ".join(f"x == {i}" for i in range(1500)) + " || true)",
    "a large body in a loop of loops": "big.all(y, big.all(x, "
    + " || ".join(f"x == {i}" for i in range(1000))
    + " || true))",
    "map of a map": "big.map(x, big.map(y, x))",
    "search in a loop": "big.all(x, x in big)",
    "search for a list in a loop": "big.all(x, !([x] in lists))",
    "comparison of large lists in a loop": "big.all(x, big == big)",
    "comparison of large maps in a loop": "big.all(x, wide == wide)",
    "comparison of long texts in a loop": "big.all(x, text + 'a' == text + 'a')",
    "comparison of the same long text": "big.all(x, text == text)",
    "search in a long text in a loop": "big.all(x, !text.contains('b'))",
    "splitting in a loop": "big.all(x, text.split('').size() > 0)",
    "replacing in a loop": "big.all(x, text.replace('a', 'bb') != '')",
    "sizes in a loop": "big.all(x, size(text) > 0)",
    "bytes in a loop": "big.all(x, size(bytes(text)) > 0)",
    "a map made in a loop": "big.transformMap(k, v, big)",
    "a list made in a loop": "big.map(x, big + big)",
    # Much memory
    "doubling texts": doubled(60, "'aaaaaaaa'", "a + a"),
    "doubling lists": doubled(60, "[1, 2]", "a + a"),
    "doubling bytes": doubled(60, "b'ab'", "a + a"),
    "doubling by nesting": doubled(60, "[1]", "[a, a]"),
    "doubling by nesting, compared": f"{doubled(40, '[1]', '[a, a]')} == {doubled(40, '[1]', '[a, a]')}",
    "doubling maps": doubled(60, "{'x': 1}", "{'x': a, 'y': a}"),
    "doubling by map": doubled(30, "[1, 2]", "a.map(x, a)"),
    "replace that grows": doubled(20, "'aa'", "a.replace('a', a)"),
    "join that grows": doubled(20, "'aa'", "[a, a, a].join(a)"),
    "format that grows": "'%s%s%s%s'.format([text, text, text, text]).size() > 0",
    "format with a width": "'%.999999999f'.format([1.5])",
    # Numbers
    "huge int": "9" * 10_000,
    "huge hex": "0x" + "f" * 10_000,
    "huge exponent": "1e999999999",
    "tiny exponent": "1e-999999999",
    "overflow": "9223372036854775807 + 1",
    "smallest by minus one": "-9223372036854775808 / -1",
    "negated smallest": "-(-9223372036854775808)",
    "int of infinity": "int(1.0 / 0.0)",
    "int of nan": "int(0.0 / 0.0)",
    "int of a long text": "int('" + "9" * 10_000 + "')",
    "double of a long text": "double('" + "9" * 10_000 + "')",
    "nan in a list": "(0.0 / 0.0) in [0.0 / 0.0]",
    "far timestamp": "timestamp('9999-12-31T23:59:59Z') + duration('999999h')",
    "long duration": "duration('" + "9" * 300 + "h')",
    "odd zone": "timestamp(0).getHours('../../../etc/passwd')",
    # Patterns
    "(a+)+$": "text.matches('(a+)+$')",
    "(a|a)*b": "text.matches('(a|a)*b')",
    "(.*)*x": "text.matches('(.*)*x')",
    "([a-z]+)+!": "text.matches('([a-z]+)+!')",
    "a{1000}{1000}": "text.matches('a{1000}{1000}')",
    "backreference": r"text.matches(r'(a)\1')",
    "lookahead": "text.matches('(?=a)a')",
    "unclosed pattern": "text.matches('(')",
    "pattern from data": "text.matches(text)",
    "pattern in a loop": "big.all(x, text.matches('(x+x+)+y') == false)",
    # Ways out to Python
    "class of a text": "''.__class__",
    "class of a root": "state.__class__",
    "class by index": "state['__class__']",
    "subclasses": "''.__class__.__mro__[1].__subclasses__()",
    "import": "__import__('os').system('id')",
    "builtins": "__builtins__",
    "builtins by index": "__builtins__['eval']('1')",
    "eval": "eval('1')",
    "exec": "exec('1')",
    "open": "open('/etc/passwd')",
    "globals": "globals()",
    "getattr": "getattr(state, 'x')",
    "lambda": "lambda: 1",
    "generated names": "R == C || M == X || U == FAIL() || judge",
    "generated tools": "K1 || LITERALS['x'] == SEQUENCE(1, 2)",
    "generated locals": "[1].all(x1, [2].all(v1, x1 + v1 == 3))",
    "variables named like tools": "[1].all(M, [2].all(R, [3].all(FAIL, M + R == FAIL)))",
    "variables named like keywords": "[1].all(None, None == 1) && [1].all(lambda_, lambda_ == 1) && [1].all(def, def == 1)",
    "method of a text": "'a'.encode()",
    "dunder method": "state.__getattribute__('x')",
    "has of a dunder": "has(state.__class__)",
    "format of a field": "'{0.__class__}'.format([1])",
    "format with percent": "'%(x)s'.format([1])",
    "format with n": "'%n'.format([1])",
    "format string in a text": "'%s {0} {x.__class__}' + '{}'",
    "walrus": "(x := 1)",
    "star": "*state",
    "semicolon": "1; import os",
    "decorator": "@state",
    "ellipsis": "...",
    "f-string": "f'{state}'",
    "comprehension": "[x for x in big]",
    "slice": "big[0:1]",
    "backslash continuation": "1 \\\n + 1",
    "comment only": "// nothing",
    "comment to the end": "1 // + \n",
    # Characters
    "NUL": "'a\x00b' == 'a\x00b'",
    "NUL outside": "a\x00",
    "surrogate": "'\ud800'",
    "surrogate outside": "\ud800",
    "surrogate escape": r"'\ud800\udc00'",
    "escape beyond Unicode": r"'\U00110000'",
    "bidi": "'\u202e' == '\u202e'",
    "full-width digits": "１ + １",
    "arabic digits": "٣ == 3",
    "superscript": "x²",
    "identifier with accents": "é == 1",
    "kelvin sign": "K == 1",
    "zero-width": "tr\u200bue",
    "no-break space": "1\u00a0+\u00a01",
    "unicode line ends": "1\u2028+ 1",
    "vertical tab": "1 \v + 1",
    "byte-order mark": "\ufeff1",
    "crlf": "1\r\n+ 1\r\n",
    "emoji": "'🤦🏽‍♂️'.size()",
    "bytes that are no text": r"string(b'\xff\xfe')",
}


@pytest.fixture(scope="module")
def world():
    names = ("big", "lists", "wide", "text", "deep", "t", "state", "M", "R", "X", "U", "C")
    roots = {
        "big": list(range(20_000)),
        "lists": [[i] for i in range(20_000)],
        "wide": {str(i): i for i in range(20_000)},
        "text": "a" * 200_000,
        "deep": {},
        "t": True,
        "state": {"x": 1},
        **dict.fromkeys("MRXUC", 1),
    }
    deep = roots["deep"]
    for _ in range(200):
        deep["x"] = {}
        deep = deep["x"]
    return dict.fromkeys(names, cel.DYN), roots


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("strict", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_hostile_expressions_end_within_the_bounds(world, name, strict):
    names, roots = world
    started = time.process_time()
    end = ending(HOSTILE[name], cel.Env(names, strict=strict), roots)
    assert time.process_time() - started < 20
    assert end
    assert len(end) < 400
    assert "Traceback" not in end
    assert " object at 0x" not in end


def ending(text, env, roots):
    """How the expression ends, in words."""
    limits = cel.Limits()
    try:
        expr = cel.parse(text, limits)
    except cel.CelSyntaxError as caught:
        assert 0 <= caught.problem.start <= caught.problem.end <= len(text) + 1
        return caught.problem.message
    checked = cel.check(expr, env)
    if not checked.ok:
        return checked.problems[0].message
    program = cel.compile(cel.fold(checked, {("state", "x"): 1}), limits)
    answer = program(roots)
    explained = program.explain(roots)
    assert explained.answer.known <= answer.known
    assert explained.steps <= limits.iterations + limits.size
    if answer.known:
        return f"a {written(answer.value)}"
    assert answer.error
    return answer.error


def written(value):
    """The value, written out if it is not too large."""
    try:
        return cel.literal(cel.to_json(value))[:300]
    except cel.EvalError as problem:
        return str(problem)


@pytest.mark.parametrize(
    ("name", "end"),
    [
        ("5,000 sums", "the expression nests deeper than 100 levels"),
        ("5,000 ors", "a true"),
        ("nesting just below the bound", "a false"),
        ("loops over ten, eight deep", "the evaluation needs more than 200,000 steps"),
        ("loop in a loop over a large list", "the evaluation needs more than 200,000 steps"),
        ("doubling texts", "a value of "),
        ("doubling by nesting, compared", "the evaluation needs more than 200,000 steps"),
        ("doubling by nesting", "a the value cannot be written as JSON"),
        ("class of a root", "state.__class__ is not known"),
        ("generated locals", "a true"),
        ("variables named like tools", "a true"),
        ("variables named like keywords", "a true"),
        ("overflow", "integer overflow"),
        ("comment only", "the expression ends too early"),
        ("NUL", "a true"),
    ],
)
def test_some_ends_in_full(world, name, end):
    names, roots = world
    found = ending(HOSTILE[name], cel.Env(names, strict=False), roots)
    assert found.startswith(end) or end in found, found


def test_there_are_enough_of_them():
    assert len(HOSTILE) >= 120


def test_an_attribute_of_a_python_object_is_out_of_reach():
    class Secret:
        value = 42

    env = cel.Env({"x": cel.DYN})
    for text in [
        "x.value == 42",
        "x['value'] == 42",
        "has(x.value)",
        "x == 1",
        "x < 1",
        "size(x) == 1",
        "x in [1]",
        "[x].all(y, y == 1)",
    ]:
        program = cel.compile(cel.check(cel.parse(text), env))
        answer = program({"x": Secret()})
        assert answer == program.explain({"x": Secret()}).answer
        assert not answer.known or answer.value is False


def test_defines_that_double_are_computed_once():
    env = cel.Env(
        {"x": cel.INT},
        defines={f"d{i}": cel.parse(f"d{i + 1} + d{i + 1}") for i in range(45)} | {"d45": cel.parse("x")},
    )
    checked = cel.check(cel.parse("d0"), env)
    assert checked.ok
    assert cel.compile(checked)({"x": 1}).value == 2**45
    assert cel.compile(cel.fold(checked, {("x",): 1}))({}).value == 2**45
    looped = cel.check(cel.parse("[1].all(y, d0 > y)"), env)
    assert cel.compile(looped)({"x": 1}).value is True
    assert cel.compile_rules([cel.Rule(must=looped)])({"x": 1}, None) in (None, (1, {"x": 1}, ()))


def test_mutations_of_expressions_end_well(env, roots, context, expressions):
    rng = random.Random(7)
    made = expressions(7)
    letters = "()[]{}.,:?!&|=<>+-*/%'\"\\ \n0123456789abcxyz_#$@`北é\u202e\x00"
    alphabet = [*letters, "&&", "||", "in", "has(", ".all(x,", "//"]
    for _ in range(1_500):
        text = made.boolean(3)
        for _ in range(rng.randint(1, 3)):
            at = rng.randrange(len(text) + 1)
            cut = rng.choice([0, 0, 1, 3])
            text = text[:at] + rng.choice([*alphabet, ""]) + text[at + cut :]
        try:
            expr = cel.parse(text)
        except cel.CelSyntaxError as caught:
            assert 0 <= caught.problem.start <= len(text) + 1
            continue
        checked = cel.check(expr, env, cel.BOOL)
        for problem in checked.problems:
            assert 0 <= problem.start <= problem.end <= len(problem.source.text)
        if checked.ok:
            program = cel.compile(checked)
            answer = program(roots, context)
            assert answer.known or answer.error
            precise = program.explain(roots, context).answer
            assert (answer.known, repr(answer.value), answer.error) == (
                precise.known,
                repr(precise.value),
                precise.error,
            )
