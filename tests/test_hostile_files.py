"""Whatever stands in a file: a value or a clear error, within the bounds, and never a hang or a traceback.

Hostile expressions are put wherever an expression may stand; expressions that ship are mutated at random; random packs
are judged against the rules of combination, written down once more; and no tool's code is imported to check a file.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledgercli import cel, sources
from ledgercli.documents import parse, validate
from ledgercli.errors import InvalidDocumentError
from ledgercli.functions import Moment
from ledgercli.history import History
from ledgercli.loading import Loader
from ledgercli.policy import EFFECTS, Pack, PackFile
from ledgercli.policytests import check as check_cases
from ledgercli.policytests import rulebook_of
from ledgercli.records import Proposal, Result
from ledgercli.rulebook import Rulebook
from ledgercli.sources import Problem, Source
from ledgercli.toolset import Toolset, ToolsetFile
from ledgercli.validation import load_cases

from .names_in_files import leaves

ROOT = Path(__file__).parent.parent
LIMITS = cel.Limits()
NOW = cel.Timestamp.parse("2026-08-01T12:00:00Z")
XS = "state.facts.xs"  # 500 numbers


def _walks(macro: str, depth: int) -> str:
    """The same walk of a large list, inside itself."""
    opened = "".join(f"{XS}.{macro}(v{n}, " for n in range(depth))
    return opened + "v0 >= 0" + ")" * depth


ESCAPES = (
    "().__class__.__bases__[0].__subclasses__()",
    "''.__class__.__mro__[1]",
    "{}.__class__.__init__.__globals__",
    "state.__class__",
    "state.facts.__dict__",
    "state.facts['__class__']",
    "action.args.__getattribute__('tool')",
    "__import__('os').system('id')",
    "__builtins__",
    "globals()['R']",
    "eval('1')",
    "exec('x = 1')",
    "open('/etc/passwd')",
    "getattr(state, 'tree')",
    "lambda: 0",
    "[x for x in state.facts.xs]",
    "f'{state}'",
    "'%s' % state",
    "'{0.__class__}'.format(state)",
    "R['state']",
    "C.history",
    "(x := 1)",
    "yield 1",
    "await state",
    "import os",
    "print(1); 1",
    "state.facts.xs.append(1)",
    "state.facts.update({})",
    "b'\\x00'.decode()",
    "type(state)(1)",
    "...",
    "NotImplemented",
    "breakpoint()",
    "@state",
    "`id`",
    "${jndi:ldap://127.0.0.1/a}",
    "{{7*7}}",
)

HOSTILE: dict[str, str] = {
    # ---- deep nesting, of each kind
    "brackets 20": "(" * 20 + "1" + ")" * 20,
    "brackets 5000": "(" * 5000 + "1" + ")" * 5000,
    "unclosed": "(" * 3000,
    "lists": "[" * 3000 + "]" * 3000,
    "maps": "{'a': " * 3000 + "1" + "}" * 3000,
    "indexes": "state.facts.deep" + "['a']" * 3000,
    "fields": "state.facts.deep" + ".a" * 3000,
    "nots": "!" * 9000 + "true",
    "minuses": "-" * 9000 + "1",
    "ternaries": "true ? 1 : " * 3000 + "1",
    "ternaries inside": "(true ? " * 3000 + "1" + " : 2)" * 3000,
    "calls inside": "size(" * 3000 + "'a'" + ")" * 3000,
    "casts inside": "string(" * 90 + "1" + ")" * 90,
    "macros inside": _walks("exists", 90),
    "has inside": "has(state.facts" + ".a" * 4000 + ")",
    "mixed brackets": "([{'a': (" * 900 + "1" + ")}])" * 900,
    # ---- long chains
    "5,000 +": " + ".join(["1"] * 5000),
    "5,000 + of texts": " + ".join(["'ab'"] * 3000),
    "5,000 ||": " || ".join(["false"] * 2400),
    "5,000 &&": "&&".join(["true"] * 3300),
    "5,000 comparisons": " == ".join(["1"] * 4000),
    "5,000 calls": "'a'" + ".trim()" * 2800,
    "5,000 elements": "[" + ", ".join(["1"] * 5000) + "]",
    "5,000 entries": "{" + ", ".join(f"'k{n}': {n}" for n in range(1400)) + "}",
    "too long": "1 + " * 6000 + "1",
    # ---- regular expressions
    "(a+)+$": "'" + "a" * 5000 + "b'.matches('(a+)+$')",
    "(a|a)*b": "'" + "a" * 5000 + "'.matches('(a|a)*b')",
    "(.*a){12}": "'" + "a" * 5000 + "'.matches('(.*a){12}b')",
    "a{1000}{1000}": "'a'.matches('(a{1000}){1000}')",
    "nested quantifiers": "'" + "x" * 3000 + "'.matches('((x*)*)*y')",
    "back reference": r"'aa'.matches('(a)\\1')",
    "look behind": "'aa'.matches('(?<=a)a')",
    "no regex": "'a'.matches('(')",
    "large class": "'a'.matches('[" + "a-z" * 2000 + "]')",
    "regex from data": f"'a'.matches(string({XS}))",
    # ---- large lists and values
    "all in all": _walks("all", 2),
    "all in all in all": _walks("all", 3),
    "map in map in map": f"{XS}.map(a, {XS}.map(b, {XS}.map(c, a + b + c)))",
    "exists_one in filter": f"{XS}.filter(a, {XS}.exists_one(b, {XS}.exists_one(c, a == c)))",
    "doubling": "cel.bind(a, 'xxxxxxxxxx', " * 30 + "a" + ")" * 30,
    "doubling for real": "".join(f"cel.bind(a{n + 1}, a{n} + a{n}, " for n in range(40)).replace("a0", "'xxxxxxxx'")
    + "a40"
    + ")" * 40,
    "lists of lists": "".join(f"cel.bind(b{n + 1}, [b{n}, b{n}], " for n in range(40)).replace("b0", "[1]")
    + "b40"
    + ")" * 40,
    "join": f"{XS}.map(a, {XS}.map(b, 'xxxxxxxxxxxxxxxx').join('')).join('')",
    "replace": "'" + "a" * 5000 + "'.replace('a', '" + "b" * 5000 + "')",
    "replace nothing": "'" + "a" * 9000 + "'.replace('', '" + "b" * 9000 + "')",
    "split": "'" + "a" * 9000 + "'.split('')",
    "equal": f"{XS} == {XS} && {XS} != {XS}",
    "format": "'%s%s'.format(['a'])",
    "format wide": "'%.999999999f'.format([1.0])",
    "quadratic in": f"{XS}.all(a, {XS}.all(b, a in {XS}))",
    # ---- huge literals
    "huge int": "9" * 9000,
    "huge hex": "0x" + "f" * 9000,
    "huge uint": "9" * 5000 + "u",
    "huge double": "1e999999999",
    "long double": "0." + "1" * 9000,
    "huge text": "'" + "x" * 15000 + "'",
    "huge bytes": "b'" + "x" * 15000 + "'",
    "overflow": "9223372036854775807 + 1",
    "overflow by minus": "-(-9223372036854775807 - 1)",
    "overflow by times": "9223372036854775807 * 9223372036854775807",
    "division": "1 / 0",
    "remainder": "1 % 0",
    "min by -1": "(-9223372036854775807 - 1) / -1",
    "nan": "double('NaN') == double('NaN')",
    "int of infinity": "int(double('Infinity'))",
    "far time": "timestamp('9999-12-31T23:59:59Z') + duration('999999h')",
    "long duration": "duration('999999999999999999h')",
    "no zone": "now.getHours('Nowhere/At/All')",
    "zone that is a path": "now.getHours('../../../etc/passwd')",
    # ---- odd texts
    "nothing": "",
    "blanks": "   \t ",
    "comment only": "// nothing",
    "half a text": "'abc",
    "half a raw text": "r'abc\\",
    "triple": "'''",
    "surrogate": "'\\ud800'",
    "beyond unicode": "'\\U00110000'",
    "control": "'a\x07b'",
    "bidi": "'\u202eabc'",
    "no-break": "1\u00a0+ 1",
    "full width": "ａction.tool",
    "combining": "state.facts.e\u0301",
    "null byte": "'a\\000b'",
    "reserved": "for + while",
    "absolute": ".state.facts",
    "message": "a.b.C{d: 1}",
    "proto": "google.protobuf.Value{}",
    "opaque": "state.ledger",
    "opaque in a list": "[state.ledger]",
    "ledger of all": "count_calls(state.ledger, state.ledger)",
    "source of a call": "source(size(state.facts.xs))",
    "sum of texts": "sum(['a'])",
    "sum of all": f"sum({XS}.map(a, double(a)))",
    "unknown": "has(state.facts.gone) && state.facts.gone",
    "cannot tell": "state.facts.deep.nothing.at.all",
    **{f"escape {text}": text for text in ESCAPES},
}

TOOLS = """\
toolset: t
tools:
  send:
    args: {to: {type: string}}
    returns: {type: object, properties: {id: {type: string}}}
    run: {canned: [{result: {id: a}}]}
    on_success:
      - when: WHEN
        set:
          facts.value: SET
      - each: EACH
        set:
          facts.each: item
      - set:
          KEY: 1
"""
PACK = """\
pack: p
vocabulary: {facts: {xs: list(int), deep: map(any), gone: bool?}}
active: ACTIVE
define:
  defined: DEFINE
rules:
  - name: condition
    condition: CONDITION
    check: true
    on_fail: No.
  - name: check
    check: CHECK
    on_fail: No.
  - name: define
    check: size([defined]) == 1
    on_fail: No.
  - name: message
    check: false
    on_fail:
      effect: warn
      error: MESSAGE
"""
GRANTS = """\
pack: g
default: deny
vocabulary: {facts: {xs: list(int), deep: map(any), gone: bool?}}
rules:
  - name: grant
    grant: GRANT
"""
CASES = """\
cases: c
packs: [pack.yaml, grants.yaml]
toolset: tools.yaml
state: {facts: {xs: [1], deep: {a: 1}}}
tests:
  - name: one
    propose: {tool: send, args: {to: CASE}}
    expect: deny
"""
FILES = {"tools.yaml": TOOLS, "pack.yaml": PACK, "grants.yaml": GRANTS, "one.cases.yaml": CASES}
#: Position → how the expression stands there: as it is, made a truth value, in a text, in a path.
POSITIONS = {
    "WHEN": "size([{}]) == 1",
    "SET": "{}",
    "EACH": "[{}]",
    "KEY": "facts.keyed[string(size([{}]))]",
    "ACTIVE": "size([{}]) == 1",
    "DEFINE": "{}",
    "CONDITION": "size([{}]) == 1",
    "CHECK": "size([{}]) == 1",
    "MESSAGE": "so: {{{}}}",
    "GRANT": "size([{}]) == 1",
    "CASE": "so: {{{}}}",
}
HARMLESS = {"KEY": "facts.keyed['a']", "EACH": "[1]", "MESSAGE": "No.", "CASE": "you"}


@dataclass(frozen=True)
class World:
    """A rulebook with an expression in one place, or what is wrong with it."""

    problems: list[Problem]
    book: Rulebook | None = None


def world(position: str, expression: str) -> World:
    """Put an expression in one position; the others hold what harms nobody."""
    loader = Loader()
    for name, text in FILES.items():
        filled = text
        for other, around in POSITIONS.items():
            inside = around.format(expression) if other == position else HARMLESS.get(other, "true")
            filled = filled.replace(other, _quoted(inside))
        loader.sources[name] = Source.of(name, filled)
    try:
        cases = load_cases(loader, "one.cases.yaml")
    except InvalidDocumentError as error:
        return World([one for one in error.problems if isinstance(one, Problem)])
    if cases is None:
        return World(loader.problems)
    book = rulebook_of(cases)
    check_cases(cases, book)
    return World([*loader.problems, *book.problems()], book)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def judge(book: Rulebook) -> None:
    """Judge a call and let it run: every expression of the rulebook is evaluated."""
    state = book.initial_state(facts={"xs": list(range(500)), "deep": {"a": 1}})
    proposal = Proposal("send", {"to": "you"})
    verdict = book.enforcer.judge(proposal, state, History(""), NOW)
    assert verdict.effect in EFFECTS
    json.dumps(verdict.to_json())
    change = book.updater.executed(
        proposal, Result(success=True, data={"id": "a"}), state, History(""), NOW, step=1, latest=1
    )
    json.dumps([change.sets, change.problems])


def test_there_are_many() -> None:
    assert len(HOSTILE) >= 60


@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_expression_in_one_position(name: str) -> None:
    """In turn, so that every position gets some of them."""
    stands_in(name, [list(POSITIONS)[list(HOSTILE).index(name) % len(POSITIONS)]])


@pytest.mark.slow
@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_expression_in_every_position(name: str) -> None:
    stands_in(name, list(POSITIONS))


def stands_in(name: str, positions: list[str]) -> None:
    """Put a hostile expression into each position: it is refused with a place and a message, or judged."""
    for position in positions:
        made = world(position, HOSTILE[name])
        errors = [one for one in made.problems if one.severity == "error"]
        for one in made.problems:
            assert one.line >= 1
            assert one.column >= 1
            assert len(one.message) < 2_000
            assert "recursion" not in str(one).lower()
            assert "Traceback" not in str(one)
        if not errors:
            assert made.book is not None
            judge(made.book)


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow if at % 3 else ()) for at, name in enumerate(HOSTILE)]
)
def test_a_hostile_expression_keeps_to_the_bounds(name: str) -> None:
    for strict in (True, False):
        end(HOSTILE[name], _env(strict=strict), ROOTS)


# ---- mutations of expressions that ship

ROOTS: dict[str, Any] = {
    "state": {
        "task": "a", "goal": "", "step": 3, "error": None, "status": "running", "final_answer": None,
        "facts": {"xs": list(range(500)), "deep": {"a": 1}, "user": {"id": "u"}, "user_role": "guest", "orders": {"#1": {"user_id": "u", "total": 5}}},
        "constraints": {"limit": 10}, "flags": {"customer_verified": True},
    },
    "action": {"tool": "send", "args": {"to": "you", "amount": 5, "order_id": "#1"}, "access": "write", "tags": ["charge"]},
    "result": {"success": True, "data": {"id": "a", "price": 7}, "error": None},
    "item": {"sku": "K"},
    "now": NOW,
}  # fmt: skip
TOKENS = (
    "(", ")", "[", "]", "{", "}", "'", '"', ".", ",", ":", "?", "!", "-", "+", "*", "/", "%", "&&", "||", "==", "!=", "<",
    ">=", " in ", "null", "true", "0", "-1", "1.5", "1u", "b''", "''", "r'\\'", "9223372036854775807", "x", "state", "now",
    "[]", "{}", ".size()", ".map(x, x)", ".all(x, x == x)", ".matches('(a+)+$')", "dyn(", "string(", "size(", "\\", "\x00",
    "\u202e", "//", "`", "has(", "state.facts.xs", "duration('1s')", "type(",
)  # fmt: skip


@cache
def _env(*, strict: bool) -> cel.Env:
    """Names of a rule whose types are partly known."""
    book = world("CHECK", "true").book
    assert book is not None
    pack = next(pack for pack in book.packs if pack.name == "p")
    env = book.vocabulary.rule_env(pack, "send")
    names = dict(env.names) if strict else dict.fromkeys(env.names, cel.DYN)
    return cel.Env({**names, "result": cel.DYN, "item": cel.DYN}, functions=env.functions, strict=strict)


def end(text: str, env: cel.Env, roots: Mapping[str, Any]) -> str:
    """Take an expression as far as it goes, and say how it ended; whatever it raises fails the test."""
    try:
        expr = cel.parse(text)
    except cel.CelSyntaxError as error:
        problem = error.problem
        assert 0 <= problem.start <= problem.end <= len(text) + 1
        assert problem.message
        return "no syntax"
    checked = cel.check(expr, env)
    for problem in checked.problems:
        assert 0 <= problem.start <= problem.end <= len(problem.source.text)
        assert problem.message
    if not checked.ok:
        return "refused"
    program = cel.compile(checked)
    moment = Moment(History(""), _state())
    explained = program.explain(roots, moment)
    assert explained.steps <= LIMITS.iterations + LIMITS.size
    answer = program(roots, moment)
    assert answer.known == explained.answer.known, text
    if not answer.known:
        assert answer.error
        return "error"
    return "value"


@cache
def _state() -> Any:
    book = world("CHECK", "true").book
    assert book is not None
    return book.initial_state(facts=ROOTS["state"]["facts"])


@cache
def shipped_expressions() -> tuple[str, ...]:
    found: dict[str, None] = {}
    for name in sources.find([str(ROOT / "policies"), str(ROOT / "fixtures")]):
        kind = sources.kind_of(name)
        if kind in ("pack", "toolset", "scenario"):
            for leaf in leaves(parse(sources.read(name)), kind):
                if leaf.role == "expression" and leaf.mark.scalar is not None:
                    found[leaf.mark.scalar.value] = None
    return tuple(found)


@cache
def parts() -> tuple[str, ...]:
    """Every part of an expression that ships, and some that are made to hurt."""
    found = {_text_of(node): None for text in shipped_expressions() for node in cel.walk(cel.parse(text).node)}
    return (*found, "state.facts.xs", "state.facts.xs.map(x, x + 1)", "'a'.matches('(a+)+$')", "0", "-1", "null", "1u")


def _text_of(node: cel.Node) -> str:
    return node.source.text[node.start : node.end]


def mutations(seed: int, count: int) -> Iterator[str]:
    """Half of them change the text anyhow, half put one part of an expression in the place of another."""
    choose = random.Random(seed)
    for _ in range(count):
        text = choose.choice(shipped_expressions())
        change = choose.choice((_mutated, _exchanged))
        for _ in range(choose.choice((1, 1, 1, 2, 3, 5))):
            text = change(text, choose)
        yield text


def _exchanged(text: str, choose: random.Random) -> str:
    nodes = list(cel.walk(cel.parse(text).node))
    node = choose.choice(nodes)
    other = choose.choice(parts()) if choose.random() < 0.5 else _text_of(choose.choice(nodes))
    return _sound(f"{text[: node.start]}({other}){text[node.end :]}") or text


def _sound(text: str) -> str | None:
    try:
        cel.parse(text)
    except cel.CelSyntaxError:
        return None
    return text


def _mutated(text: str, choose: random.Random) -> str:
    first, last = sorted((choose.randrange(len(text) + 1), choose.randrange(len(text) + 1)))
    match choose.randrange(7):
        case 0:
            return text[:first] + text[last:]
        case 1:
            return text[:first] + choose.choice(TOKENS) + text[first:]
        case 2:
            return text[:first] + choose.choice(TOKENS) + text[first + 1 :]
        case 3:
            return text[:last] + text[first:last] * choose.choice((1, 2, 30)) + text[last:]
        case 4:
            return (
                text[:first]
                + "(" * choose.choice((1, 5, 150))
                + text[first:last]
                + ")" * choose.choice((1, 5, 150))
                + text[last:]
            )
        case 5:
            return f"{text} {choose.choice(('&&', '||', '+', '==', 'in', '?'))} {choose.choice(shipped_expressions())}"
        case _:
            return text[:first] + text[first:last].swapcase() + text[last:]


def _all_end(seed: int, count: int) -> dict[str, int]:
    ends: dict[str, int] = {}
    for text in mutations(seed, count):
        for strict in (True, False):
            how = end(text, _env(strict=strict), ROOTS)
            ends[how] = ends.get(how, 0) + 1
    return ends


@pytest.mark.timeout(120)
def test_mutations_end_in_a_value_or_an_error() -> None:
    ends = _all_end(1, 400)
    assert set(ends) == {"no syntax", "refused", "error", "value"}


@pytest.mark.slow
@pytest.mark.timeout(3000)
def test_all_mutations_end_in_a_value_or_an_error() -> None:
    ends = _all_end(2, 20_000)
    print(ends)
    assert set(ends) == {"no syntax", "refused", "error", "value"}


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_mutations_in_files_end_in_a_verdict_or_an_error() -> None:
    choose = random.Random(3)
    for text in mutations(4, 150):
        made = world(choose.choice(list(POSITIONS)), text)
        assert all(one.line >= 1 and one.column >= 1 for one in made.problems)
        if not any(one.severity == "error" for one in made.problems):
            assert made.book is not None
            judge(made.book)


# ---- how rules combine, once more in few words

TRUTHS = {True: "state.facts.yes", False: "state.facts.no", None: "state.facts.gone"}


@dataclass(frozen=True)
class Rule:
    """A random rule; None as a truth: it cannot be told."""

    grants: bool
    applies: bool | None
    holds: bool | None
    effect: str
    priority: int
    halt: bool
    shadow: bool


@dataclass(frozen=True)
class RandomPack:
    """A random pack."""

    active: bool | None
    by_priority: bool
    allow_list: bool
    rules: tuple[Rule, ...]


def reference(packs: Sequence[RandomPack]) -> tuple[str, bool]:
    """The effect, and whether the run halts, as the policy language says."""
    worst, halts = "allow", False
    for pack in packs:
        if pack.active is False:
            continue
        rules = [rule for rule in pack.rules if rule.applies is not False and not rule.shadow]
        told = {rule: rule.applies is True and rule.holds is True for rule in rules}
        failed = [rule for rule in rules if not rule.grants and not told[rule]]
        grants = [rule for rule in rules if rule.grants and told[rule]]
        voices = [(rule.priority, EFFECTS.index(rule.effect)) for rule in failed]
        if pack.by_priority:
            voices += [(rule.priority, 0) for rule in grants]
            top = max(voices, default=(0, 0))
            failed = [rule for rule in failed if rule.priority == top[0] or EFFECTS.index(rule.effect) == top[1]]
            voices = [top]
        if pack.allow_list and not grants:
            voices.append((0, EFFECTS.index("deny")))
        worst = max(worst, EFFECTS[max((effect for _, effect in voices), default=0)], key=EFFECTS.index)
        halts = halts or any(rule.halt for rule in failed)
    return worst, halts and worst == "deny"


def yaml_of(name: str, pack: RandomPack) -> str:
    rules = []
    for number, rule in enumerate(pack.rules):
        entry: dict[str, Any] = {"name": f"r{number}", "priority": rule.priority, "condition": TRUTHS[rule.applies]}
        entry["grant" if rule.grants else "check"] = TRUTHS[rule.holds]
        entry["mode"] = "shadow" if rule.shadow else "enforce"
        entry["on_fail"] = {"error": "no", "effect": rule.effect, "halt": rule.halt}
        rules.append(entry)
    return json.dumps(
        {
            "pack": name,
            "vocabulary": {"facts": {"yes": "bool", "no": "bool", "gone": "bool?"}},
            "active": TRUTHS[pack.active],
            "resolve": "priority" if pack.by_priority else "strictest",
            "default": "deny" if pack.allow_list else "allow",
            "rules": rules,
        }
    )


@cache
def _toolset() -> Toolset:
    read = validate(parse(Source.of("tools.yaml", "toolset: t\ntools:\n  send: {run: {user: {}}}\n")), ToolsetFile)
    assert read.model is not None
    return Toolset(read.model, read.document, Path())


def book_of(packs: Sequence[RandomPack]) -> Rulebook:
    loaded = []
    for number, pack in enumerate(packs):
        read = validate(parse(Source.of(f"p{number}.yaml", yaml_of(f"p{number}", pack))), PackFile)
        assert read.problems == []
        assert read.model is not None
        loaded.append(Pack(read.model, read.document))
    book = Rulebook(_toolset(), loaded, initial={"facts": {"yes": True, "no": False}})
    assert [one for one in book.problems() if one.severity == "error"] == []
    return book


def verdict_of(packs: Sequence[RandomPack]) -> tuple[str, bool]:
    book = book_of(packs)
    verdict = book.enforcer.judge(Proposal("send", {}), book.initial_state(), History(""), NOW)
    return verdict.effect, verdict.halts


_truth = st.sampled_from((True, True, False, None))
_check = st.builds(
    Rule,
    grants=st.just(False),
    applies=_truth,
    holds=_truth,
    effect=st.sampled_from(EFFECTS[1:]),
    priority=st.integers(-1, 1),
    halt=st.booleans(),
    shadow=st.sampled_from((False, False, True)),
)
_grant = st.builds(
    Rule,
    grants=st.just(True),
    applies=_truth,
    holds=_truth,
    effect=st.just("deny"),
    priority=st.integers(-1, 1),
    halt=st.just(False),
    shadow=st.sampled_from((False, False, True)),
)


@st.composite
def random_packs(draw: st.DrawFn) -> RandomPack:
    by_priority, allow_list = draw(st.booleans()), draw(st.booleans())
    one = st.one_of(_check, _grant) if by_priority or allow_list else _check
    return RandomPack(draw(_truth), by_priority, allow_list, tuple(draw(st.lists(one, max_size=4))))


@settings(max_examples=150, deadline=None)
@given(st.lists(random_packs(), max_size=3))
def test_rules_combine_as_the_policy_language_says(packs: list[RandomPack]) -> None:
    assert verdict_of(packs) == reference(packs)


@settings(max_examples=60, deadline=None)
@given(st.lists(_check, max_size=4), st.booleans())
def test_rules_without_a_grant_never_open_an_allow_list(rules: list[Rule], by_priority: bool) -> None:
    passing = Rule(grants=False, applies=True, holds=True, effect="deny", priority=9, halt=False, shadow=False)
    pack = RandomPack(active=True, by_priority=by_priority, allow_list=True, rules=(*rules, passing))
    assert verdict_of([pack])[0] == "deny"


@settings(max_examples=60, deadline=None)
@given(random_packs(), random_packs())
def test_a_grant_never_lifts_the_denial_of_another_pack(one: RandomPack, other: RandomPack) -> None:
    grant = Rule(grants=True, applies=True, holds=True, effect="deny", priority=9, halt=False, shadow=False)
    generous = RandomPack(active=True, by_priority=True, allow_list=False, rules=(*one.rules, grant))
    alone = verdict_of([other])[0]
    together = verdict_of([generous, other])[0]
    assert EFFECTS.index(together) >= EFFECTS.index(alone)


# ---- checking runs nothing

MARKS = "from pathlib import Path\nPath(__file__).with_name('marker').touch()\n\ndef send():\n    return 1\n"


@pytest.mark.parametrize(
    "command",
    [
        ["validate", "."],
        ["check", "--pack", "pack.yaml", "--toolset", "tools.yaml", "--propose", '{"tool": "send", "args": {}}'],
    ],
    ids=["validate", "check"],
)
@pytest.mark.parametrize("target", ["tools.py:send", "marking_tools:send"])
def test_no_tool_is_imported_to_check_a_file(command: list[str], target: str, tmp_path: Path) -> None:
    for name in ("tools.py", "marking_tools.py"):
        (tmp_path / name).write_text(MARKS, encoding="utf-8")
    files = {
        "tools.yaml": f"toolset: t\ntools:\n  send: {{run: {{python: '{target}'}}}}\n",
        "pack.yaml": "pack: p\nvocabulary: {}\nrules:\n  - {name: r, check: true}\n",
        "one.yaml": "scenario: s\ntoolset: tools.yaml\npacks: [pack.yaml]\ndecide: {script: [{propose: {tool: send}}]}\n",
        "one.cases.yaml": "cases: c\ntoolset: tools.yaml\npacks: [pack.yaml]\ntests:\n  - {name: n, propose: {tool: send}, expect: allow}\n",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    ledger = [sys.executable, "-m", "ledgercli"]
    environment = {"PYTHONPATH": f"{ROOT}:{tmp_path}", "PATH": "/usr/bin:/bin"}
    done = subprocess.run(
        [*ledger, *command], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "marker").exists()
    ran = subprocess.run(
        [*ledger, "run", "-q", "one.yaml"], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert (tmp_path / "marker").exists(), ran.stderr  # so that the marker can tell
