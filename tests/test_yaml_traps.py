"""Every way in which YAML destroys an expression is refused, at its line and column, in block and in flow style."""

import pytest
from pydantic import Field

from ledgercli.documents import ExpressionText, ExpressionTree, Model, TemplateText, TemplateTree, parse, validate
from ledgercli.sources import Source


class OnFail(Model):
    error: TemplateText = ""


class Entry(Model):
    check: ExpressionText | None = None
    on_fail: TemplateText | OnFail = ""
    set: dict[str, ExpressionTree] = Field({})
    args: TemplateTree = None
    name: str = ""
    count: int = 0
    access: str = ""


class File(Model):
    pack: str
    rules: list[Entry] = Field([])
    facts: dict[str, object] = Field({})


BLOCK = "pack: p\nrules:\n  - name: r\n    {}\n    count: 1\n"
FLOW = "pack: p\nrules: [{{name: r, {}, count: 1}}]\n"
BLOCK_AT, FLOW_AT = (4, 5), (2, 19)  # where the braces stand


def checked(text):
    return validate(parse(Source.of("f.yaml", text)), File)


def found(text):
    return [(p.code, p.line, p.column) for p in checked(text).problems]


# entry, code, columns from the entry's start: in block style and in flow style
TRAPS = [
    ("check: !has(x)", "yaml-tag", 7),
    ("check: !x == 1", "yaml-tag", 7),
    ("check: !!str x", "yaml-tag", 7),
    ("on_fail: !Ref x", "yaml-tag", 9),
    ("set: {facts.x: !has(x)}", "yaml-tag", 15),
    ("check: &x == 1", "yaml-anchor", 7),
    ("on_fail: &name text", "yaml-anchor", 9),
    ("check: *x", "yaml-alias", 7),
    ("check: *x * 2", "yaml-alias", 7),
    ("<<: x", "yaml-merge-key", 0),
    ("on_fail: {action.tool}", "yaml-braces", 9),
    ("check: {state.task}", "yaml-braces", 7),
    ("args: {location: {state.task}}", "yaml-braces", 17),
    ("args: {location: {{state.task}}}", "yaml-braces", 17),
    ("args: [{state.task}]", "yaml-braces", 7),
    ("on_fail: {action.tool} is bad", "yaml-braces", 9),
    ("check: [1, 2].size() > 0", "yaml-braces", 7),
    ("args: {a: 1, b}", "yaml-braces", 13),
    ("args: [a: b]", "yaml-braces", 7),
    ("check: [x]", "wrong-type", 7),
    ("check: {a: 1}", "wrong-type", 7),
    ("on_fail: [x]", "wrong-type", 9),
    ("check: 5", "wrong-type", 7),
    ("check: 1.5", "wrong-type", 7),
    ("check: null", "missing-value", 0),
    ("on_fail: 5", "wrong-type", 9),
    ("count: '1'", "duplicate-key", None),
    ("access: true", "wrong-type", 8),
    ("check: 'x' == y", "yaml-quote", 7),
    ('check: "x" == y', "yaml-quote", 7),
    ("check: 'purchase' in action.tags", "yaml-quote", 7),
    ("check: x ? a : b", "yaml-colon", 13),
    ('check: f("v": x)', "yaml-colon", 12),
    ("check: @x", "yaml-indicator", 7),
    ("check: `x`", "yaml-indicator", 7),
    ("check: %x", "yaml-indicator", 7),
    ("check: - x", "yaml-indicator", 7),
    ("args: 0123", "yaml-number", 6),
    ("args: -012", "yaml-number", 6),
    ("args: 00", "yaml-number", 6),
    ("args: 01.5", "yaml-number", 6),
    ("args: 0x1F", "yaml-number", 6),
    ("args: 0o17", "yaml-number", 6),
    ("args: 0b11", "yaml-number", 6),
    ("args: 1_000", "yaml-number", 6),
    ("args: +1", "yaml-number", 6),
    ("args: .5", "yaml-number", 6),
    ("args: 5.", "yaml-number", 6),
    ("args: .inf", "yaml-number", 6),
    ("args: -.INF", "yaml-number", 6),
    ("args: .nan", "yaml-number", 6),
    ("args: 9223372036854775808", "yaml-number", 6),
    ("args: 1e999", "yaml-number", 6),
    ("args: ~", "yaml-word", 6),
    ("args: NULL", "yaml-word", 6),
    ("args: TRUE", "yaml-word", 6),
    ("args: True", "yaml-word", 6),
    ("on_fail: False", "yaml-word", 9),
    ("check: \"r'cake\\b'\"", "yaml-escape", 14),
    ('check: "a\\tb"', "yaml-escape", 9),
    ('check: "a\\x41"', "yaml-escape", 9),
    ('check: "a\\dc"', "yaml-escape", 9),
    ('on_fail: "x\\qy"', "yaml-escape", 11),
    ("on_fail: \"{x.matches('\\b')}\"", "yaml-escape", 22),
    ('set: {facts.x: "a\\nb"}', "yaml-escape", 17),
    ('args: "\\ud800"', "yaml-escape", 7),
    ('args: "\\U00110000"', "yaml-escape", 7),
    ("check: x\t== 1", "yaml-tab", 8),
    ("check:\tx", "yaml-tab", 6),
    ("check:\u00a0x", "yaml-space", 6),
    ("check: \u00a0x", "yaml-space", 7),
    ("check: \u3000x", "yaml-space", 7),
    ("check: x\u00a0", "yaml-space", 8),
    ("check\u00a0: x", "yaml-space", 5),
    ("check: 'x'\u00a0", "yaml-space", 10),
    ("check: x\u2028y", "yaml-character", 8),
    ("check: x\ufeffy", "yaml-character", 8),
    ("check: x\x1by", "yaml-character", 8),
    ("check: x\x85y", "yaml-character", 8),
    ("check: 'x\u202ey'", "yaml-character", 9),
    ("1: x", "yaml-key", 0),
    ("1.5: x", "yaml-key", 0),
    ("true: x", "yaml-key", 0),
    ("null: x", "yaml-key", 0),
    ("~: x", "yaml-key", 0),
    ("? check", "yaml-key", 0),
    ("{a: 1}: x", "yaml-key", 0),
    ("[a]: x", "yaml-key", 0),
    ("chek: x", "unknown-key", 0),
]
ENDING = {"check: x\u00a0", "check: 'x'\u00a0"}  # in flow style a comma follows


@pytest.mark.parametrize(("entry", "code", "column"), TRAPS, ids=[f"{code}: {entry!r}" for entry, code, _ in TRAPS])
def test_a_trap_is_reported_where_it_stands_in_block_style(entry, code, column):
    line, start = BLOCK_AT
    at = (line, start + column) if column is not None else (5, 5)
    assert (code, *at) in found(BLOCK.format(entry))


@pytest.mark.parametrize(
    ("entry", "code", "column"),
    [trap for trap in TRAPS if trap[0] not in ENDING and not trap[0].startswith("check: [1, 2].")],
    ids=lambda value: repr(value) if isinstance(value, str) else "",
)
def test_a_trap_is_reported_where_it_stands_in_flow_style(entry, code, column):
    line, start = FLOW_AT
    at = (line, start + column) if column is not None else (2, start + len(entry) + 2)
    assert (code, *at) in found(FLOW.format(entry))


@pytest.mark.parametrize("entry", [entry for entry, _, _ in TRAPS if "\x85" not in entry])
def test_what_is_wrong_elsewhere_is_reported_too(entry):
    text = f"{BLOCK.format(entry)}    naem: r\n"
    if "<<" in entry or "? " in entry:
        return
    assert ("unknown-key", 6, 5) in found(text)


@pytest.mark.parametrize(
    ("text", "problems"),
    [
        ("pack: p\n---\npack: q\n", [("yaml-documents", 2, 1)]),
        ("---\npack: p\n---\n", [("yaml-documents", 3, 1)]),
        ("pack: p\n...\npack: q\n", [("yaml-documents", 2, 1)]),
        ("%YAML 1.1\n---\npack: p\n", [("yaml-directive", 1, 1)]),
        ("%TAG ! x\n---\npack: p\n", [("yaml-directive", 1, 1)]),
        ("pack: p\npack: q\n", [("duplicate-key", 2, 1)]),
        ("pack: p\nfacts: {a: 1, b: 2, a: 3}\n", [("duplicate-key", 2, 21)]),
        ("pack: p\nfacts:\n  a: 1\n  'a': 2\n", [("duplicate-key", 4, 3)]),
        ("pack: p\nfacts: &f\n  a: 1\n", [("yaml-anchor", 2, 8)]),
        ("pack: p\nfacts: !!map\n  a: 1\n", [("yaml-tag", 2, 8)]),
        ("pack: p\nrules: &r\n- name: x\n", [("yaml-anchor", 2, 8)]),
        ("pack: p\nfacts:\n  <<: *x\n", [("yaml-merge-key", 3, 3), ("yaml-alias", 3, 7)]),
        ("pack: p\nfacts: [*a, &b c, !d e]\n", [("yaml-alias", 2, 9), ("yaml-anchor", 2, 13), ("yaml-tag", 2, 19)]),
        ("pack: &p |\n  x\n", [("yaml-anchor", 1, 7)]),
        ("pack: p\nfacts:\n\ta: 1\n", [("yaml-tab", 3, 1)]),
        ("pack: p\n\t\nfacts: {}\n", [("yaml-tab", 2, 1)]),
        ("pack: p\t# c\n", [("yaml-tab", 1, 8)]),
        ("pack: p\nfacts: [\t]\n", [("yaml-tab", 2, 9), ("wrong-type", 2, 8)][:1]),
        ("pack: p\n\u00a0\nfacts: {}\n", [("yaml-space", 2, 1)]),
        ("pack: p\nrules:\n-\u00a0name: x\n", [("yaml-space", 3, 2)]),
        ("pack: a\n  b\u00a0\n  \u00a0c\n", [("yaml-space", 2, 4), ("yaml-space", 3, 3)]),
        ("pack: p\u00a0# c\n", [("yaml-space", 1, 8)]),
        ("pack: 'p\nfacts: {}\n", [("yaml-quote", 1, 7)]),
        ('pack: "p\nfacts: {a: "b"}\n', [("yaml-quote", 1, 7)]),
        ("pack: 'p\nfacts: {a: 'b'}\n", [("yaml-quote", 1, 7)]),
        ("pack: p\nfacts: {a: 'b}\nrules: []\n", [("yaml-quote", 2, 12)]),
        ("pack: p\nfacts: [1, 2\nrules: []\n", [("yaml-braces", 2, 8)]),
        ("pack: p\nfacts: {a: [1, {b: 2\nrules: []\n", [("yaml-braces", 2, 16)]),
        ("pack: p\nfacts: {a: 1\n", [("yaml-braces", 2, 8)]),
        ("pack: p\nfacts: [1, 2}\n", [("yaml-braces", 2, 13)]),
        ("pack: p\nfacts: {a: 1 b: 2}\n", [("yaml-colon", 2, 15)]),
        ("pack: p\nfacts:\n   a: 1\n  b: 2\n", [("yaml-indentation", 4, 3)]),
        ("pack: p\nfacts:\n  a: b\n    c: d\n", [("yaml-colon", 4, 5)]),
        ("pack: p\nrules\nfacts: {}\n", [("yaml-colon", 2, 1)]),
        ("pack: | p\n", [("yaml-block", 1, 7)]),
        ("pack: |\n    \n  p\n", [("yaml-block", 3, 1)]),
        ("pack: p\nfacts: {x: | a}\n", [("yaml-indicator", 2, 12)]),
        ("pack: , p\n", [("yaml-indicator", 1, 7)]),
        ("pack: ] p\n", [("yaml-indicator", 1, 7)]),
        ("pack: p\nfacts: {a:: }\n: x\n", [("yaml-key", 3, 1)]),
        ("pack: p\rfacts: {}\r", [("yaml-line-end", 1, 8), ("yaml-line-end", 2, 10)]),
        ("pack: p\n# \x07\n", [("yaml-character", 2, 3)]),
        ("pack: p\n# \u202e\n", [("yaml-character", 2, 3)]),
    ],
)  # fmt: skip
def test_a_file_is_reported_exactly_so(text, problems):
    assert found(text) == problems


def test_a_tag_is_shown_as_the_terminal_shows_it():
    [problem] = checked(BLOCK.format("check: !has(state.flags.payment_failed)")).problems
    assert problem.message == '"!" begins a YAML tag here'
    assert problem.inline == "put it in single quotes: '!has(state.flags.payment_failed)'"
    assert problem.notes == ("as it stands, the check would be empty",)
    assert (problem.line, problem.column, problem.length) == (4, 12, 1)
    assert problem.source_line == "    check: !has(state.flags.payment_failed)"


@pytest.mark.parametrize(
    ("entry", "note"),
    [
        ("check: &x == 1", "as it stands, the check would be `== 1`"),
        ("check: !x == 1", "as it stands, the check would be `== 1`"),
        ("check: *x", "as it stands, the check would be a copy of something else"),
    ],
)
def test_what_yaml_would_have_made_of_it_is_said(entry, note):
    [problem] = checked(BLOCK.format(entry)).problems
    assert problem.notes == (note,)


@pytest.mark.parametrize(
    ("entry", "quoted"),
    [
        ("check: 'a' in x", "'''a'' in x'"),
        ("on_fail: {action.tool} is bad", "'{action.tool} is bad'"),
        ("on_fail: {action.tool}", "'{action.tool}'"),
        ("check: x ? a : b", "'x ? a : b'"),
        ("check: !x || y # why", "'!x || y'"),
        ("check: {a: 1}", "'{a: 1}'"),
    ],
)
def test_the_advice_is_what_loads(entry, quoted):
    problem = checked(BLOCK.format(entry)).problems[0]
    assert problem.inline == f"put it in single quotes: {quoted}"
    key = entry.partition(":")[0]
    assert checked(BLOCK.format(f"{key}: {quoted}")).problems == []


def test_a_duplicate_key_names_both_lines():
    [problem] = checked("pack: p\nfacts: {}\n\npack: q\n").problems
    assert problem.message == "the key pack stands twice, on line 1 and on line 4"


@pytest.mark.parametrize(
    ("value", "data"),
    [
        ("true", True), ("false", False), ("null", None), ("", None), ("0", 0), ("-0", 0), ("12", 12), ("-3", -3),
        ("1.5", 1.5), ("-0.25", -0.25), ("1e3", 1000.0), ("2E-2", 0.02), ("9223372036854775807", 2**63 - 1),
        ("-9223372036854775808", -(2**63)), ("yes", "yes"), ("No", "No"), ("on", "on"), ("OFF", "OFF"), ("y", "y"),
        ("2024-05-20", "2024-05-20"), ("2024-05-20T09:00:00Z", "2024-05-20T09:00:00Z"), ("1:30", "1:30"),
        ("09:00", "09:00"), ("1.2.3", "1.2.3"), ("1e", "1e"), ("0x", "0x"), ("'0123'", "0123"),
        ('"~"', "~"), ("'true'", "true"), ("北京", "北京"), ("a#b", "a#b"), ("a:b", "a:b"), ("http://x/y", "http://x/y"),
        ("x\u00a0y", "x\u00a0y"), ("退货\u3000运费", "退货\u3000运费"), ('"\\ud83d\\ude00"', "😀"), ('"\\u00e9\\t"', "é\t"),
        ("=", "="), ("-x", "-x"), ("?x", "?x"), (":x", ":x"), ("x, y", "x, y"), ("a [b] {c}", "a [b] {c}"),
    ],
)  # fmt: skip
def test_a_value_is_what_it_looks_like(value, data):
    document = parse(Source.of("f", f"facts:\n  a: {value}\n"))
    assert document.problems == ()
    assert document.data == {"facts": {"a": data}}
    assert type(document.data["facts"]["a"]) is type(data)


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("start", ["", "---\n", "# c\n---\n", "--- # c\n"])
@pytest.mark.parametrize("end", ["", "...\n", "...\n# c\n", "# c"])
def test_marks_and_line_ends_that_mean_nothing_are_read_over(ending, mark, start, end):
    text = mark + f"{start}pack: p\nfacts: {{a: 1}}\n{end}".replace("\n", ending)
    result = checked(text)
    assert result.problems == []
    assert (result.model.pack, result.model.facts) == ("p", {"a": 1})


@pytest.mark.parametrize(
    ("text", "data"),
    [
        ('"a\\\n    b"', "ab"),
        ('"a \\\n\n    b"', "a \nb"),
        ('"a\n\n    b\n    c "', "a\nb c "),
        ("'a\n\n\n    b'", "a\n\nb"),
        ("a\n\n    b\n    c", "a\nb c"),
        ("|\n    a\n     b\n\n    c\n\n", "a\n b\n\nc\n"),
        ("|-\n    a\n\n", "a"),
        ("|+\n    a\n\n", "a\n\n"),
        ("|\n    \ta", "\ta"),
        ("|2-\n     a", " a"),
        ("|-2 # c\n     a", " a"),
        ("|\n\n", ""),
        ("|+\n\n", "\n"),
        ("|", ""),
        (">\n    a\n    b\n\n    c\n     d\n    e\n", "a b\nc\n d\ne\n"),
    ],
)
def test_a_text_over_several_lines_is_what_yaml_says(text, data):
    document = parse(Source.of("f", f"facts:\n  a: {text}"))
    assert document.problems == ()
    assert document.data == {"facts": {"a": data}}


@pytest.mark.parametrize("character", ["\u200b", "\u200e", "\u200f", "\u061c", "\u00ad", "\u2060"])
def test_a_character_that_cannot_be_seen_is_noted(character):
    result = checked(f"pack: 'p{character}q'\n")
    [problem] = result.problems
    assert (problem.code, problem.severity, problem.line, problem.column) == ("yaml-character", "note", 1, 9)
    assert result.model.pack == f"p{character}q"


def test_a_character_that_may_not_be_there_is_named():
    [problem] = checked("pack: '\x07'\n").problems
    assert problem.message == "U+0007 (a control character) may not stand in a file"
    assert problem.inline == "write it as an escape, in double quotes"
    [problem] = checked("pack: '\u202e'\n").problems
    assert problem.message == "U+202E (right-to-left override) stands here; it makes the line look like what it is not"


def test_a_byte_order_mark_and_carriage_returns_shift_no_column():
    assert found("\ufeffpack: !x\r\nfacts: !y\r\n")[:2] == [("yaml-tag", 1, 7), ("yaml-tag", 2, 8)]


@pytest.mark.parametrize("value", ["Order #12 is late", "x == 1 # so", "x #", "x # #", "Order   #12"])
@pytest.mark.parametrize("key", ["check", "on_fail", "name"])
def test_a_comment_right_after_a_text_is_a_warning(key, value):
    text = f"pack: p\nrules:\n  - {key}: {value}\n"
    result = checked(text)
    [problem] = result.problems
    assert (problem.code, problem.severity) == ("yaml-comment", "warning")
    assert (problem.line, problem.column) == (3, text.splitlines()[2].index("#") + 1)
    assert getattr(result.model.rules[0], key) == value.partition("#")[0].rstrip()


@pytest.mark.parametrize(
    "entry", ["check: x  # so", "check: 'x' # so", "count: 1 # so", "check: |\n      x # y", "set: {} # so"]
)
def test_a_comment_that_cuts_nothing_off_is_none(entry):
    assert [problem.code for problem in checked(BLOCK.replace("    count: 1\n", "").format(entry)).problems] == []


@pytest.mark.parametrize(
    "entry",
    [
        "check: >\n      x == 1 // one\n      && y",
        "check: >-\n      x // one",
        "check: x == 1 // one\n      && y",
        "check: 'x == 1 // one\n      && y'",
        'check: "x == 1 // one\n      && y"',
        'on_fail: "a {x // one\n      } b"',
        "set:\n      facts.x: >\n        y // one\n",
    ],
)
def test_a_comment_in_lines_that_yaml_joins_is_an_error(entry):
    [problem] = checked(BLOCK.format(entry)).problems
    assert problem.code == "yaml-joined"
    assert problem.source_line[problem.column - 1 :].startswith("// one")


@pytest.mark.parametrize(
    "entry",
    [
        "check: |\n      x == 1 // one\n      && y",
        "check: x == 1 // one",
        "check: x == 'http://a'\n      && y",
        "check: >\n      x == r'a//b' &&\n      y == \"//\"",
        "on_fail: see http://a/b\n      for more",
        "on_fail: see {{http://a/b}}\n      for {x + 'http://'} more",
    ],
)
def test_a_comment_that_swallows_nothing_is_fine(entry):
    assert checked(BLOCK.format(entry)).problems == []


@pytest.mark.parametrize("entry", ['check: "x == \\"a\\" && y == \'\\\\\\\\d\'"', 'on_fail: "a\\nb {x} \\t{{y}}"'])
def test_escapes_that_do_no_harm_are_fine(entry):
    assert checked(BLOCK.format(entry)).problems == []


@pytest.mark.parametrize(("word", "text"), [("true", "true"), ("True", "true"), ("False", "false"), ("false", "false")])
def test_a_whole_expression_may_be_a_truth_value(word, text):
    result = checked(BLOCK.format(f"check: {word}\n    set: {{facts.x: [{word}, 1, null, x]}}"))
    assert result.problems == []
    assert result.model.rules[0].check == text
    assert result.model.rules[0].set["facts.x"][1:] == [1, None, "x"]


def test_depth_is_bounded():
    deep = "pack: p\nfacts:\n" + "".join(f"{' ' * (depth + 1)}a:\n" for depth in range(60))
    assert found(deep) == [("yaml-depth", 52, 51)]
    assert found("pack: p\nfacts: " + "[" * 60 + "]" * 60) == [("yaml-depth", 2, 57)]
    assert found("- " * 60) == [("yaml-depth", 1, 101)]
    assert checked("pack: p\nfacts: {a: " + "[" * 45 + "]" * 45 + "}").problems == []


def test_the_number_of_values_is_bounded(monkeypatch):
    monkeypatch.setattr("ledgercli.documents.yaml_reader.MAX_NODES", 100)
    assert found("pack: p\nfacts: {a: [" + "1," * 200 + "]}")[0][0] == "yaml-size"


@pytest.mark.parametrize("line", ["- !x\n", "a: 1\n", "\t\n- 1\n", "# \x07\n"])
def test_the_number_of_problems_is_bounded(line):
    document = parse(Source.of("f", line * 1000))
    assert len(document.problems) == 200


def test_a_long_line_is_not_shown_and_long_words_are_cut():
    [problem] = checked(f"pack: p\n{'k' * 2000}: 1\n").problems[:1]
    assert problem.source_line is None
    assert len(problem.message) < 200
