"""Text to tree: every literal, operator and macro; bounds; and what is said of the habits of other languages."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledgercli import cel
from ledgercli.cel.syntax import Logic, Macro, children


def shape(node):
    """The structure of a tree, without places."""
    return (type(node).__name__, cel.render(node), tuple(map(shape, children(node))))


def problem(text, limits=None):
    with pytest.raises(cel.CelSyntaxError) as caught:
        cel.parse(text, limits or cel.Limits())
    return caught.value.problem


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0),
        ("-9223372036854775808", -(2**63)),
        ("0x1F", 31),
        ("-0xff", -255),
        ("7u", cel.UInt(7)),
        ("0xFFu", cel.UInt(255)),
        ("18446744073709551615u", cel.UInt(2**64 - 1)),
        ("1.5", 1.5),
        (".5", 0.5),
        ("1e3", 1000.0),
        ("-2.5E-1", -0.25),
        ("true", True),
        ("null", None),
        (" True ", True),
        ("False", False),
        ("'a\"b'", 'a"b'),
        ('"it\'s"', "it's"),
        ("'''a\n'b''c'''", "a\n'b''c"),
        ('"""x"y"""', 'x"y'),
        (r"r'\d\\'", "\\d\\\\"),
        (r"R'\d'", r"\d"),
        (r"'\a\b\f\n\r\t\v\\\?\"\'\`'", "\a\b\f\n\r\t\v\\?\"'`"),
        (r"'\x41\X42\u0043\U0001F600\101'", "ABC\U0001f600A"),
        (r"b'\xff\101abc'", b"\xffAabc"),
        ("b'é'", "é".encode()),
        (r"br'\d'", rb"\d"),
        ("'北京'", "北京"),
    ],
)
def test_literals(text, value):
    node = cel.parse(text).node
    assert node.value == value
    assert type(node.value) is type(value)
    assert (node.start, node.end) == (len(text) - len(text.lstrip()), len(text.rstrip()))


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("1+2*3", "1 + 2 * 3"),
        ("(1+2)*3", "(1 + 2) * 3"),
        ("1-(2-3)", "1 - (2 - 3)"),
        ("a&&b||c&&!d", "a && b || c && !d"),
        ("a&&(b||c)", "a && (b || c)"),
        ("x?y:z?1:2", "x ? y : z ? 1 : 2"),
        ("(x?y:z)?1:2", "(x ? y : z) ? 1 : 2"),
        ("x?(y?1:2):3", "x ? (y ? 1 : 2) : 3"),
        ("a==b!=c", "a == b != c"),
        ("--5", "-(-5)"),
        ("- - x", "-(-x)"),
        ("-(1)", "-(1)"),
        ("!!x", "!!x"),
        ("a.b['#W1'].c[0]", 'a.b["#W1"].c[0]'),
        ("a.`b-c`.`d`", "a.`b-c`.d"),
        (".a.b", ".a.b"),
        (".f(x)", ".f(x)"),
        ("f()", "f()"),
        ("f(1,2).g(3)", "f(1, 2).g(3)"),
        ("[1,2,]", "[1, 2]"),
        ("[]", "[]"),
        ("{}", "{}"),
        ("{'a':1,true:[2],}", '{"a": 1, true: [2]}'),
        ("has(a.b.c)", "has(a.b.c)"),
        ("xs.all(x,x>0)", "xs.all(x, x > 0)"),
        ("xs.existsOne(x,x)", "xs.exists_one(x, x)"),
        ("xs.map(x,x>0,x*2)", "xs.map(x, x > 0, x * 2)"),
        ("m.transformMap(k,v,k!='a',v)", 'm.transformMap(k, v, k != "a", v)'),
        ("cel.bind(x,1,x+x)", "cel.bind(x, 1, x + x)"),
        ("a in b // a comment\n", "a in b"),
        ("a.if.for", "a.if.for"),
        ("a\r\n\t== b", "a == b"),
    ],
)
def test_the_canonical_text_parses_to_the_same_tree(text, canonical):
    expr = cel.parse(text)
    assert str(expr) == cel.render(expr) == canonical
    assert shape(cel.parse(canonical).node) == shape(expr.node)


def test_every_node_knows_its_place():
    text = "has(a.b) && xs.all(x, -x <= f(1)[0])"
    seen = {}
    for node in cel.walk(cel.parse(text).node):
        seen[text[node.start : node.end]] = type(node).__name__
    assert seen == {
        text: "Logic",
        "has(a.b)": "Has",
        "a": "Name",
        "xs.all(x, -x <= f(1)[0])": "Macro",
        "xs": "Name",
        "-x <= f(1)[0]": "Binary",
        "-x": "Unary",
        "x": "Name",
        "f(1)[0]": "Index",
        "f(1)": "Call",
        "1": "Literal",
        "0": "Literal",
    }


def test_a_macro_with_other_arguments_is_a_call():
    for text in ["xs.all(x)", "xs.map(x, 1, 2, 3)", "has(a.b).all()", "x.bind(a, 1, a)", "all(x, y)"]:
        assert not any(isinstance(node, Macro) for node in cel.walk(cel.parse(text).node))


@pytest.mark.parametrize(
    ("text", "start", "message", "hint"),
    [
        ("a and b", 2, "'and'", "&&"),
        ("a or b", 2, "'or'", "||"),
        ("not a", 0, "'not'", "!"),
        ("not(a)", 0, "'not'", "!"),
        ("x not in y", 2, "'not'", "!(x in y)"),
        ("x is null", 2, "'is'", "=="),
        ("a = b", 2, "'='", "=="),
        ("a === b", 2, "'==='", "=="),
        ("a !== b", 2, "'!=='", "!="),
        ("a <> b", 2, "'<>'", "!="),
        ("a & b", 2, "'&'", "&&"),
        ("a | b", 2, "'|'", "||"),
        ("~a", 0, "'~'", "!"),
        ("a ** 2", 2, "'**'", "power"),
        ("a ?? b", 2, "'??'", "has("),
        ("a?.b", 1, "'?.'", "optional types"),
        ("a[?0]", 1, "'[?'", "optional types"),
        ("a =~ 'x'", 2, "'=~'", "matches"),
        ("x := 1", 2, "':='", "cel.bind"),
        ("1 if a else 2", 2, "'if'", "c ? a : b"),
        ("if a", 0, "'if'", "c ? a : b"),
        ("lambda x: 1", 0, "'lambda'", "map"),
        ("[x for x in y]", 3, "'for'", "xs.map"),
        ("a contains b", 2, "'contains'", "x.contains(y)"),
        ("$a", 0, "'$'", "without $"),
        ("a # comment", 2, "'#'", "//"),
        ("a; b", 1, "';'", "&&"),
        ("“a”", 0, "'“'", "plain quotes"),
        ("a\u00a0b", 1, "", "no-break space"),
        ("'a", 0, "no closing '", None),
        ('"""a"', 0, 'no closing """', None),
        ("'a\nb'", 0, "on its line", "\\n"),
        (r"'\d'", 1, "no escape \\d", "r'\\d'"),
        (r"'\uD800'", 1, "not a Unicode character", None),
        (r"'\U00110000'", 1, "not a Unicode character", None),
        (r"b'\u0041'", 2, "do not stand in bytes", "\\xHH"),
        ("'\ud800'", 1, "lone surrogate", None),
        ("9223372036854775808", 0, "too large", None),
        ("-9223372036854775809", 1, "too large", None),
        ("18446744073709551616u", 0, "too large", None),
        ("1" * 5000, 0, "too large", None),
        ("1e999", 0, "too large for a double", None),
        ("0xg", 0, "neither a number nor a name", None),
        ("1abc", 0, "neither a number nor a name", None),
        ("订单 == 1", 0, "letters A-Z", '["订单"]'),
        ("aé", 0, "letters A-Z", None),
        ("a.`b\nc`", 2, "'`'", "backquotes"),
        ("a\x00b", 1, "U+0000", None),
        ("", 0, "too early", None),
        ("  ", 2, "too early", None),
        ("a &&", 4, "too early", None),
        ("a ? b", 5, "too early; :", None),
        ("(a", 0, "( that opens here", None),
        ("[a, b", 0, "[ that opens here", None),
        ("{'a': 1", 0, "{ that opens here", None),
        ("f(a", 1, "( that opens here", None),
        ("a[0", 1, "[ that opens here", None),
        ("a b", 2, "cannot stand here", "&& or ||"),
        ("'it's'", 4, "cannot stand here", None),
        ("a 'b'", 2, "cannot stand here", "join texts with +"),
        ("a)", 1, "cannot stand here", None),
        ("{'a', 'b'}", 4, ": was expected", None),
        ("a.", 2, "not the end", None),
        ("a.in", 2, "not in", '["in"]'),
        ("a.true", 2, "not true", '["true"]'),
        ("a.1", 1, "cannot stand here", None),
        ("f(1,)", 4, "cannot stand here", None),
        ("for", 0, "reserved word", None),
        ("var == 1", 0, "reserved word", None),
        ("Foo{a: 1}", 0, "protobuf messages are not supported", "{'key': value}"),
        ("a.b.Foo{}", 0, "protobuf messages are not supported", None),
        ("has(a)", 4, "has() takes one field", None),
        ("has(a['b'])", 4, "has() takes one field", "'key' in m"),
        ("has()", 0, "has() takes one field", None),
        ("xs.all(1, true)", 7, "begins with the name of its variable", "xs.all(x, …)"),
        ("xs.all(x.y, true)", 7, "begins with the name of its variable", None),
        ("xs.all(i, i, true)", 10, "two names", None),
        ("cel.bind(1, 2, 3)", 9, "begins with the name of its variable", "cel.bind(x"),
    ],
)
def test_mistakes_are_named_where_they_stand(text, start, message, hint):
    found = problem(text)
    assert found.start == start
    assert message in found.message
    assert hint is None or hint in found.hint
    assert found.code in cel.CODES
    assert 0 <= found.start <= found.end <= max(len(text), 1)
    assert found.source.text == text


def test_a_hint_stands_behind_the_message():
    with pytest.raises(cel.CelSyntaxError, match=r"'=' is not CEL \(CEL compares with ==\)"):
        cel.parse("a = b")
    assert str(problem("'a")) == problem("'a").message


@pytest.mark.parametrize("depth", [1, 32, 90])
def test_deep_enough_nesting_is_allowed(depth):
    for before, after in [
        "()",
        "[]",
        ("{1: ", "}"),
        ("!(", ")"),
        ("f(", ")"),
        ("a[", "]"),
        ("-(", ")"),
        ("x ? 1 : ", ""),
    ]:
        cel.parse(before * depth + "a" + after * depth)


@pytest.mark.parametrize(
    "text",
    [
        "(" * 5000 + "a" + ")" * 5000,
        "(" * 5000,
        "[" * 5000,
        "{1:" * 4000,
        "!" * 5000 + "a",
        "-" * 5000 + "a",
        "- " * 5000 + "1",
        "+".join("a" * 5000),
        "<".join("a" * 5000),
        "a" + ".b" * 5000,
        "a" + "[0]" * 5000,
        "a" + ".f()" * 4000,
        "f(" * 5000,
        "a[" * 5000,
        "a ? b : " * 2000 + "c",
        "a.all(x, " * 2000,
        "(a || b && c == d + e * " * 500,
    ],
)
def test_what_nests_too_deep_is_refused(text):
    assert problem(text).code == "too-deep"


def test_a_chain_of_one_logical_operator_is_flat():
    for operator in ("&&", "||"):
        node = cel.parse(operator.join(["a"] * 5000)).node
        assert isinstance(node, Logic)
        assert len(node.operands) == 5000


def test_a_long_text_is_refused():
    assert problem("a" * 20_001).code == "too-long"
    assert problem("[" + "1," * 60 + "]", cel.Limits(length=100)).code == "too-long"
    assert "20,001" in problem("a" * 20_001).message


def test_the_parser_ends_well_when_its_caller_left_no_stack():
    def deep(left):
        return cel.parse("(" * 60 + "a" + ")" * 60) if left == 0 else deep(left - 1)

    for left in range(700, 960, 10):
        try:
            deep(left)
        except cel.CelSyntaxError as caught:
            assert caught.problem.code == "too-deep"
            break
        except RecursionError:
            continue


@given(st.text(max_size=60))
def test_any_text_is_an_expression_or_a_problem_with_a_place(text):
    try:
        expr = cel.parse(text)
    except cel.CelSyntaxError as caught:
        assert 0 <= caught.problem.start <= len(text) + 1
    else:
        assert shape(cel.parse(cel.render(expr)).node) == shape(expr.node)


@given(
    st.lists(
        st.sampled_from(
            [
                "a",
                "b.c",
                "1",
                "-1",
                "2.5",
                "'x'",
                "(",
                ")",
                "[",
                "]",
                "{",
                "}",
                ",",
                ":",
                "?",
                "&&",
                "||",
                "!",
                "-",
                "+",
                "*",
                "/",
                "%",
                "==",
                "!=",
                "<",
                ">=",
                "in",
                ".",
                "has(",
                "x.all(x,",
            ]
        )
    )
)
def test_any_sequence_of_tokens_is_an_expression_or_a_problem(tokens):
    text = " ".join(tokens)
    try:
        expr = cel.parse(text)
    except cel.CelSyntaxError as caught:
        assert 0 <= caught.problem.start <= len(text) + 1
    else:
        assert shape(cel.parse(cel.render(expr)).node) == shape(expr.node)


def test_paths_are_written_as_they_are_typed():
    assert cel.path_text(("state", "facts", "orders", "#W1.2", "status")) == 'state.facts.orders["#W1.2"].status'
    assert cel.path_text(("a", 0, "in", "b c", "")) == 'a[0]["in"]["b c"][""]'
    for path in [("a", "b", "北京", 3, 'x"y'), ("state",), ("a", "true")]:
        node = cel.check(cel.parse(cel.path_text(path)), cel.Env({path[0]: cel.DYN})).node
        assert cel.path_of(node) == path
