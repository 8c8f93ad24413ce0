"""Documents: every character of a text is found again in the file, and every fault of the data has a place."""

import io

import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st
from pydantic import Field, model_validator
from ruamel.yaml import YAML
from ruamel.yaml.scanner import ScannerError

from ledgercli import sources
from ledgercli.documents import (
    CODES,
    ExpressionText,
    ExpressionTree,
    Model,
    TemplateText,
    TemplateTree,
    parse,
    validate,
)
from ledgercli.errors import InvalidDocumentError
from ledgercli.sources import Source


def document_of(text):
    return parse(Source.of("f.yaml", text))


# ---- positions inside texts

LINE = st.text(
    st.characters(
        codec="utf-8", exclude_categories=("Cc", "Cs", "Zl", "Zp"), exclude_characters="\ufeff\ufffe\uffff\u00ad"
    ),
    max_size=12,
)
TAME = st.text(st.sampled_from("abz019 _=&|<>!'\"(){}[]/\\.,:#-?*~北😀é"), min_size=1, max_size=20)
INDENT = st.integers(1, 5)


def assert_found_again(document, place, value, *, folds=False):
    scalar = document.mark(place).scalar
    assert scalar.value == value
    for position, character in enumerate(value):
        there = document.text[scalar.offset(position)]
        if there == "\\" and scalar.style == "double":
            continue  # an escape, which begins with a backslash
        assert there == character or (folds and character in " \n" and there == "\n")
    offsets = [scalar.offset(position) for position in range(len(value) + 1)]
    assert offsets == sorted(offsets)
    assert offsets[-1] <= scalar.end


@given(value=TAME, indent=INDENT, flow=st.booleans())
def test_characters_of_a_single_quoted_text_are_found_again(value, indent, flow):
    quoted = "'" + value.replace("'", "''") + "'"
    text = f"a: {{b: {quoted}}}\n" if flow else f"a:\n{' ' * indent}b: {quoted}\n"
    assert_found_again(document_of(text), ("a", "b"), value)


@given(value=st.text(max_size=15), flow=st.booleans(), escape=st.lists(st.booleans(), min_size=15, max_size=15))
def test_characters_of_a_double_quoted_text_are_found_again(value, flow, escape):
    short = {"\n": "\\n", "\t": "\\t", '"': '\\"', "\\": "\\\\", "\0": "\\0"}
    parts = [
        short.get(character) or (f"\\U{ord(character):08x}" if odd or not character.isprintable() else character)
        for character, odd in zip(value, escape, strict=False)
    ]
    document = document_of(f'a: {{b: "{"".join(parts)}"}}\n' if flow else f'a:\n  b: "{"".join(parts)}"\n')
    assert document.problems == ()
    assert_found_again(document, ("a", "b"), value)
    scalar, at = document.mark(("a", "b")).scalar, document.mark(("a", "b")).start + 1
    for position, part in enumerate(parts):
        assert scalar.offset(position) == at
        at += len(part)


@given(value=TAME, indent=INDENT)
def test_characters_of_a_plain_text_are_found_again(value, indent):
    document = document_of(f"a:\n{' ' * indent}b: {value}\n")
    scalar = document.mark(("a", "b")).scalar
    if not document.problems and scalar and scalar.style == "plain":
        assert_found_again(document, ("a", "b"), scalar.value)
        assert value.lstrip().startswith(scalar.value)


@given(
    words=st.lists(st.text(st.sampled_from("ab(=)&é"), min_size=1, max_size=5), min_size=2, max_size=5),
    indent=INDENT,
    data=st.data(),
)
def test_characters_of_a_plain_text_over_several_lines_are_found_again(words, indent, data):
    breaks = [data.draw(st.integers(1, 3)) for _ in words[1:]]
    text = f"a:\n{' ' * indent}b: {words[0]}"
    value = words[0]
    for word, count in zip(words[1:], breaks, strict=True):
        text += data.draw(st.sampled_from(["", "  "])) + "\n" * count + " " * (indent + data.draw(INDENT)) + word
        value += (" " if count == 1 else "\n" * (count - 1)) + word
    document = document_of(text + "\n")
    assert document.problems == () or "&" in text
    if not document.problems:
        assert_found_again(document, ("a", "b"), value, folds=True)


@given(
    lines=st.lists(LINE, min_size=1, max_size=6),
    indent=INDENT,
    inner=INDENT,
    style=st.sampled_from(["|", "|-", "|+", ">", ">-", ">+"]),
    final=st.booleans(),
)
@example(lines=["", " x", "y"], indent=1, inner=1, style=">", final=True)
@example(lines=["x", "", " y", "", "z"], indent=1, inner=2, style=">+", final=False)
def test_characters_of_a_block_are_found_again(lines, indent, inner, style, final):
    margin = " " * (indent + inner)
    header = f"{style[0]}{inner}{style[1:]}"  # said, since the first line may begin with spaces
    body = "\n".join(margin + line if line else "" for line in lines)
    document = document_of(f"a:\n{' ' * indent}b: {header}\n{body}" + ("\n" if final else ""))
    if any(problem.severity == "error" for problem in document.problems):
        return
    scalar = document.mark(("a", "b")).scalar
    assert_found_again(document, ("a", "b"), scalar.value, folds=True)
    assert scalar.value == as_ruamel_reads(document.text)["a"]["b"]
    if style == "|-":
        assert scalar.value == "\n".join(lines).rstrip("\n")


PARTS = [
    "a", "b", "k%d: ", "k%d: ", "- ", "\n", "\n  ", "\n    ", "  ", " ", " #c", "{", "}", "[", "]", ", ", ": ", '"', "'",
    "|\n", ">\n", "|-\n", ">+\n", "|2\n", "\\n", "\\x41", "\\\n", "true", "1e3", "''", '""', "北", "-", "\n- ", "\n\n",
    "\nk%d: ", "'q'", '"d"', "\n  - z", "---\n",
]  # fmt: skip


def as_ruamel_reads(text):
    """Read all scalars as texts; what ruamel wrongly refuses is no example."""
    try:
        return YAML(typ="base", pure=True).load(text)
    except ScannerError as error:
        assume("more indented follow up line" not in str(error))  # YAML allows spaces in the empty lines before it
        raise


def raw(mark, data):
    """Return the data with every scalar as it is written."""
    if isinstance(data, dict):
        return {key: raw(mark.children[key], value) for key, value in data.items()}
    if isinstance(data, list):
        return [raw(mark.children[index], value) for index, value in enumerate(data)]
    return mark.scalar.value if mark.scalar else ""


@settings(max_examples=300)
@given(
    parts=st.lists(st.sampled_from(PARTS), max_size=25), numbers=st.lists(st.integers(0, 99), min_size=25, max_size=25)
)
def test_what_is_accepted_says_what_ruamel_reads(parts, numbers):
    text = "".join(part.replace("%d", str(number)) for part, number in zip(parts, numbers, strict=False))
    document = document_of(text)
    if not document.problems and document.data is not None:
        assert raw(document.root, document.data) == as_ruamel_reads(document.text)


TRAPS = [
    "!t ",
    "&x ",
    "*x",
    "\t",
    "\u00a0",
    "\ufeff",
    "\r",
    "\r\n",
    "?",
    "? ",
    "@",
    "`",
    "%Y\n",
    "012",
    "~",
    "<<: ",
    "\u2028",
    "\x85",
    "\x07",
    "\u202e",
    "...",
    "\\u12",
    "\ud800",
]


class Part(Model):
    name: str = ""
    check: ExpressionText | None = None
    text: TemplateText | list[TemplateText] = ""
    below: list["Part"] = Field([])


class File(Model):
    a: Part | None = None
    k1: ExpressionTree = None
    k2: TemplateTree = None
    b: dict[str, Part] = Field({})


@settings(max_examples=300, suppress_health_check=[HealthCheck.too_slow])
@given(parts=st.lists(st.sampled_from(["a: ", "b: ", "name: ", "check: ", *PARTS, *TRAPS]), max_size=25))
def test_no_text_does_anything_but_load_or_be_refused(parts):
    result = validate(document_of("".join(parts).replace("%d", "1")), File)
    assert result.model is not None or result.problems
    for problem in result.problems:
        assert problem.code in CODES
        assert problem.line >= 1
        assert problem.column >= 1
        assert problem.length >= 1
        assert problem.column + problem.length - 1 <= max(len(problem.source_line), problem.column)


@given(data=st.binary(max_size=60))
@example(data=b"a: \xff")
@example(data=b"\xff\xfea\0")
def test_no_bytes_do_anything_but_load_or_be_refused(data):
    try:
        source = Source.of("f", data)
    except InvalidDocumentError as error:
        [problem] = error.problems
        source = Source.of("f", data.decode("latin-1"))
        data = source.data
        note = problem.code
    else:
        note = "not-utf-8"
    assert note == "not-utf-8"
    assert source.data == data
    validate(parse(source), File)
    assert sources.kind_of(source) in {None, "scenario", "pack", "toolset", "cases", "ledger"}


# ---- places


TEXT = """pack: p
rules:
  - name: a
    check: >-
      one
      && two
  - {name: "b\\tc", check: 'it''s'}
"""


def test_a_place_is_found():
    document = document_of(TEXT)
    assert document.position(("rules", 1, "name")) == "f.yaml:7"
    assert document.position(("rules", 1, "name"), key=True) == "f.yaml:7"
    assert document.position(("rules", 0, "check")) == "f.yaml:4"
    assert document.line_column(document.mark(("rules", 0)).start) == (3, 5)
    problem = document.problem(("rules", 1, "check"), "x", "message", key=True)
    assert (problem.line, problem.column, problem.length) == (7, 20, 5)
    assert str(problem) == "f.yaml:7:20: error[x]: message"


@pytest.mark.parametrize(
    ("place", "start", "end", "at"),
    [
        (("pack",), 0, 1, (1, 7, 1)),
        (("rules", 0, "check"), 4, 10, (6, 7, 6)),
        (("rules", 0, "check"), 0, 10, (5, 7, 3)),  # as far as it stands on its first line
        (("rules", 1, "name"), 1, 2, (7, 14, 2)),
        (("rules", 1, "name"), 2, 3, (7, 16, 1)),
        (("rules", 1, "name"), 3, 3, (7, 17, 1)),
        (("rules", 1, "check"), 3, 4, (7, 32, 1)),
    ],
)
def test_a_problem_inside_a_text_is_placed_exactly(place, start, end, at):
    problem = document_of(TEXT).problem_at(place, start, end, "x", "m", notes=("n",), severity="warning")
    assert (problem.line, problem.column, problem.length) == at
    assert (problem.notes, problem.severity) == (("n",), "warning")


def test_a_problem_inside_a_key_is_placed_exactly():
    document = document_of("set:\n  facts.x[y]: 1\n")
    problem = document.problem_at(("set", "facts.x[y]"), 8, 9, "x", "m", key=True)
    assert (problem.line, problem.column) == (2, 11)


def test_a_problem_at_what_is_no_text_or_is_not_there_is_placed_at_what_is():
    document = document_of("a:\n  b: {c: 1}\n")
    assert document.problem_at(("a", "b"), 3, 4, "x", "m").column == 6
    assert document.problem(("a", "b", "none", 3), "x", "m").column == 6
    assert document.problem(("none",), "x", "m").line == 1


def test_problems_are_ordered_by_place():
    document = document_of("b: !x\na: !y\n0: z\n")
    assert [problem.line for problem in document.problems] == [1, 2, 3]


# ---- models


class OnFail(Model):
    error: TemplateText | None = None
    halt: bool = False


class PythonRun(Model):
    python: str


class CommandRun(Model):
    command: list[str]
    shell: bool = False


class Rule(Model):
    name: str
    check: ExpressionText | None = None
    grant: ExpressionText | None = None
    on_fail: TemplateText | OnFail = ""
    mode: str = Field("enforce", pattern="^[a-z]+$")
    priority: int = Field(0, ge=0)
    effect: "Effect" = "deny"
    run: PythonRun | CommandRun | None = None

    @model_validator(mode="after")
    def one_of(self):
        if (self.check is None) == (self.grant is None):
            raise ValueError("a rule has either a check or a grant")
        return self


from typing import Any, Literal  # noqa: E402 - beside what uses it

Effect = Literal["deny", "warn"]


class Pack(Model):
    pack: str
    version: int | str | None = None
    define: dict[str, ExpressionText] = Field({})
    rules: list[Rule] = Field([])
    facts: dict[str, Any] = Field({})
    set: dict[str, ExpressionTree] = Field({})
    args: dict[str, TemplateTree] = Field({})
    weight: float = 1.0


def checked(text):
    return validate(document_of(text), Pack)


def only(text):
    [problem] = checked(text).problems
    return problem


@pytest.mark.parametrize(
    ("text", "code", "at", "message", "notes"),
    [
        ("pack: p\nversoin: 1\n", "unknown-key", (2, 1, 7), "no key versoin here", ("did you mean version?",)),
        ("pack: p\nzzz: 1\n", "unknown-key", (2, 1, 3), "no key zzz here",
         ("known here: pack, version, define, rules, facts, set, args, weight",)),
        ("version: 1\n", "missing-key", (1, 1, 7), "the key pack is missing here", ()),
        ("{}", "missing-key", (1, 1, 2), "the key pack is missing here", ()),
        ("- p\n", "wrong-type", (1, 1, 3), "a map belongs here, not a list", ()),
        ("p\n", "wrong-type", (1, 1, 1), "a map belongs here, not the text p", ()),
        ("pack: 1\n", "wrong-type", (1, 7, 1), "a text belongs here, not a number", ()),
        ("pack: p\nversion: [1]\n", "wrong-type", (2, 10, 3), "a whole number or a text belongs here, not a list", ()),
        ("pack: p\nversion: 1.5\n", "wrong-type", (2, 10, 3), "a whole number or a text belongs here, not a number", ()),
        ("pack: p\nrules: {}\n", "wrong-type", (2, 8, 2), "a list belongs here, not a map", ()),
        ("pack: p\nweight: x\n", "wrong-type", (2, 9, 1), "a number belongs here, not the text x", ()),
        ("pack: p\nfacts: true\n", "wrong-type", (2, 8, 4), "a map belongs here, not true", ()),
        ("pack: p\nversion:\n", "missing-value", (2, 1, 7), "nothing stands after version",
         ("give it a value, or leave out the key",)),
        ("pack:\n", "wrong-type", (1, 6, 1), "a text belongs here, not nothing", ()),
        ("pack: p\nrules: [{name: a, check: x, on_fail: 1}]\n", "wrong-type", (2, 38, 1),
         "a text or a map belongs here, not a number", ()),
        ("pack: p\nrules: [{name: a, check: x, on_fail: {eror: x}}]\n", "unknown-key", (2, 39, 4), "no key eror here",
         ("did you mean error?",)),
        ("pack: p\nrules: [{name: a, check: x, on_fail: {halt: yes}}]\n", "wrong-type", (2, 45, 3),
         "true or false belongs here, not the text yes", ()),
        ("pack: p\nrules: [{name: a, check: x, effect: wran}]\n", "wrong-value", (2, 37, 4),
         "one of deny, warn belongs here, not wran", ("did you mean warn?",)),
        ("pack: p\nrules: [{name: a, check: x, effect: 3}]\n", "wrong-value", (2, 37, 1),
         "one of deny, warn belongs here, not a number", ()),
        ("pack: p\nrules: [{name: a, check: x, priority: -1}]\n", "wrong-value", (2, 39, 2),
         "it should be greater than or equal to 0", ()),
        ("pack: p\nrules: [{name: a, check: x, priority: 'high as the sky above us'}]\n", "wrong-type", (2, 39, 26),
         "a whole number belongs here, not a text", ()),
        ("pack: p\nrules:\n  - name: a\n", "wrong-value", (3, 5, 7), "a rule has either a check or a grant", ()),
        ("pack: p\nrules: [{check: a}]\n", "missing-key", (2, 9, 5), "the key name is missing here", ()),
        ("pack: p\nrules: [{name: a, chek: x}]\n", "unknown-key", (2, 19, 4), "no key chek here",
         ("did you mean check?",)),
        ("pack: p\nrules: [{name: a, check: x, run: {pyton: x}}]\n", "unknown-key", (2, 35, 5), "no key pyton here",
         ("did you mean python?",)),
        ("pack: p\nrules: [{name: a, check: x, run: {python: 5}}]\n", "wrong-type", (2, 43, 1),
         "a text belongs here, not a number", ()),
        ("pack: p\nrules: [{name: a, check: x, run: {command: [a], shel: true}}]\n", "unknown-key", (2, 49, 4),
         "no key shel here", ("did you mean shell?",)),
        ("pack: p\nrules: [{name: a, check: x, run: x}]\n", "wrong-type", (2, 34, 1),
         "a map belongs here, not the text x", ()),
        ("pack: p\nrules: [{name: a, check: x, run: {command: [a, 1]}}]\n", "wrong-type", (2, 48, 1),
         "a text belongs here, not a number", ()),
        ("pack: p\ndefine: {a: 1}\n", "wrong-type", (2, 13, 1), "an expression belongs here, not a number", ()),
        ("pack: p\ndefine: {a: }\n", "wrong-type", (2, 12, 1), "an expression belongs here, not nothing", ()),
        ("", "empty-file", (1, 1, 1), "nothing stands in this file; it begins with `pack: NAME`", ()),
        ("# only this\n", "empty-file", (1, 1, 1), "nothing stands in this file; it begins with `pack: NAME`", ()),
    ],
)  # fmt: skip
def test_what_a_model_does_not_take_is_said_in_our_words(text, code, at, message, notes):
    problem = only(text)
    assert (problem.code, problem.message, problem.notes) == (code, message, notes)
    assert (problem.line, problem.column, problem.length) == at


def test_all_problems_are_reported_and_the_rest_is_a_model():
    result = checked("""pack: p
vesion: 3
rules:
  - {name: a, chek: x}
  - {name: b, check: 5, priority: high}
  - {name: c, check: y}
  - {name: d, check: !has(x)}
  - 7
  - {name: e, check: x, on_fail: {error: [1], halt: 1}}
define: {f: {g: 1}, h: x}
""")
    found = [(problem.code, problem.line, problem.column) for problem in result.problems]
    assert found == [
        ("unknown-key", 2, 1),
        ("unknown-key", 4, 15),
        ("wrong-type", 5, 22),
        ("wrong-type", 5, 35),
        ("yaml-tag", 7, 22),
        ("wrong-type", 8, 5),
        ("wrong-type", 9, 42),
        ("wrong-type", 9, 53),
        ("wrong-type", 10, 13),
    ]
    assert [rule.name for rule in result.model.rules] == ["c", "d", "e"]
    assert result.model.rules[1].check == "!has(x)"
    assert result.model.define == {"h": "x"}


def test_places_in_a_model_are_places_in_its_document():
    result = checked("pack: p\nrules:\n  - {name: a}\n  - {name: b, check: x}\n")
    assert [rule.name for rule in result.model.rules] == ["b"]
    assert result.document.position(("rules", 0, "check")) == "f.yaml:4"


def test_a_fault_of_a_map_is_not_hidden_by_one_inside_it():
    result = checked("pack: p\nrules:\n  - {name: a, check: x, priority: -1}\n  - {check: y, on_fail: {eror: x}}\n")
    assert [(problem.code, problem.line) for problem in result.problems] == [
        ("wrong-value", 3),
        ("missing-key", 4),
        ("unknown-key", 4),
    ]


def test_a_document_that_breaks_off_has_no_model():
    result = checked("pack: p\nzzz: 1\nrules:\n   - {}\n  - {}\n")
    assert result.model is None
    assert [problem.code for problem in result.problems] == ["yaml-indentation"]


def test_a_model_holds_plain_texts():
    result = checked(
        "pack: p\nfacts: {a: [x, {b: y}]}\nrules: [{name: n, check: c, on_fail: {error: e}}]\n"
        "set: {facts.x: [x, {y: z}]}\nargs: {a: [x, 1, {y: '{z}'}]}\ndefine: {d: e}\n"
    )
    model, problems = result.model, result.problems
    assert problems == []
    values = [model.pack, model.facts["a"][0], model.facts["a"][1]["b"], model.rules[0].check, model.define["d"]]
    values += [
        model.rules[0].on_fail.error,
        model.set["facts.x"][0],
        model.args["a"][2]["y"],
        *model.facts,
        *model.define,
    ]
    assert {type(value) for value in values} == {str}
    assert model.args["a"] == ["x", 1, {"y": "{z}"}]


def test_a_model_made_without_a_document_takes_the_same():
    rule = Rule.model_validate({"name": "a", "check": True, "on_fail": "x"})
    assert rule.check == "true"


def test_a_map_over_several_lines_is_told_to_be_quoted_or_made_a_block():
    problem = only("pack: p\nrules:\n  - name: a\n    check: {x: 1,\n      y: 2}\n")
    assert problem.inline == "put it in single quotes, or in a `|` block"


def test_the_schema_of_a_model_tells_expressions_from_texts():
    schema = Pack.model_json_schema()
    assert schema["properties"]["define"]["additionalProperties"]["format"] == "expression"
    rule = schema["$defs"]["Rule"]["properties"]
    assert rule["on_fail"]["anyOf"][0] == {"format": "text", "type": "string"}


def test_a_comment_after_a_fixed_word_or_a_number_is_none_of_our_business():
    text = "pack: p\nversion: 1 # x\nrules:\n  - {name: a, check: x, effect: warn #x\n    }\nfacts: {a: b #c\n  }\n"
    [problem] = checked(text).problems
    assert (problem.code, problem.line, problem.severity) == ("yaml-comment", 6, "warning")


@pytest.mark.parametrize(("text", "spans"), [
    ("a {b} c", ["b"]), ("{a}{b}", ["a", "b"]), ("{{a}}", []), ("{{{a}}}", ["a"]), ("{x['}']}", ["x['}']"]),
    ("{ {'a': 1}.a } }}", [" {'a': 1}.a "]), ("{a", ["a"]), ("}} {", [""]), ("no", []),
])  # fmt: skip
def test_expressions_in_a_text_are_told_apart(text, spans):
    from ledgercli.documents.texts import expressions_in

    assert [text[start:end] for start, end in expressions_in(text)] == spans


def test_a_long_pack_loads_in_time_that_grows_with_its_length():
    rule = '  - name: r{}\n    check: state.facts.x == true\n    on_fail: "No {{action.tool}}"\n'
    text = "pack: p\nrules:\n" + "".join(rule.format(number) for number in range(400))
    result = checked(text)
    assert result.problems == []
    assert len(result.model.rules) == 400


def test_every_code_is_explained():
    assert all(code == code.lower() and text.endswith(".") for code, text in CODES.items())


def test_standard_input_is_read(monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"pack: p\n")))
    source = sources.read("-")
    assert (source.name, source.text) == ("<stdin>", "pack: p\n")
    assert validate(parse(source), Pack).model.pack == "p"
