"""Small packs over finite domains, and the truth about them: the real enforcer, asked in every state there is."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import product
from typing import Any, NamedTuple

from hypothesis import strategies as st

from ledgercli import cel
from ledgercli.analysis import Analysis, Context
from ledgercli.documents import Problem
from ledgercli.history import History
from ledgercli.loading import Loader
from ledgercli.policy import Pack
from ledgercli.records import Proposal, Verdict
from ledgercli.rulebook import Rulebook
from ledgercli.sources import Source
from ledgercli.state import State, initial
from ledgercli.toolset import Toolset

NOW = cel.Timestamp.parse("2026-07-01T12:00:00Z")
TOOLS = """
toolset: t
tools:
  a:
    access: write
    tags: [hot]
    args:
      n: {type: integer, minimum: 0, maximum: 2}
      r: {enum: [x, y]}
      q: {type: boolean, default: false}
  b:
    access: read
    args:
      n: {type: integer, minimum: 1, maximum: 2}
      r: {type: string, minLength: 1}
      q: {enum: [true]}
  learn:
    access: read
    returns:
      type: object
      properties:
        p: {type: boolean}
        s: {enum: [u, v]}
        k: {type: integer, minimum: 0, maximum: 1}
    on_success:
      set: {facts.p: result.data.p, facts.s: result.data.s, facts.k: result.data.k, flags.f: result.data.p}
  keep:
    access: read
    args: {id: {type: string}}
    returns: {type: object, properties: {ok: {type: boolean}}}
    on_success:
      set: {'facts.m[action.args.id]': result.data, flags.g: false}
"""
_LOADER = Loader(sources={"t.yaml": Source.of("t.yaml", TOOLS)})
_ABSENT = object()
#: What each name in a pack can be: the word that stands in the text, and all its values.
_FACTS: dict[str, tuple[Any, ...]] = {
    "facts.p": (_ABSENT, True, False),
    "facts.s": (_ABSENT, "u", "v"),
    "facts.k": (_ABSENT, 0, 1),
    "facts.m": ({}, {"x": {}}, {"x": {"ok": True}}, {"x": {"ok": False}, "y": {"ok": True}}),
    "flags.f": (False, True, _ABSENT),  # a result without `p` takes the flag away
    "flags.g": (False,),
}
_ARGS: dict[str, dict[str, tuple[Any, ...]]] = {
    "a": {"n": (0, 1, 2), "r": ("x", "y"), "q": (False, True)},
    "b": {"n": (1, 2, 2.0), "r": ("x", "yy"), "q": (True,)},
}


class World(NamedTuple):
    """A call in a state."""

    tool: str
    args: dict[str, Any]
    state: State
    history: History


def toolset() -> Toolset:
    found = _LOADER.toolset("t.yaml")
    assert found is not None
    return found


def load(text: str) -> Pack | None:
    """Read a pack; None where it does not load."""
    loader = Loader(sources={"p.yaml": Source.of("p.yaml", text)})
    pack = loader.pack("p.yaml")
    return None if loader.problems or pack is None else pack


def rulebook(pack: Pack) -> Rulebook | None:
    """Compile a pack; None where it has problems."""
    book = Rulebook(toolset(), [pack])
    return None if book.problems() else book


def found(pack: Pack, book: Rulebook) -> list[Problem]:
    """What the analysis says of the pack."""
    analysis = Analysis()
    analysis.add(Context(book.vocabulary, [pack], book.toolset, None))
    return [problem for problem in analysis.problems() if problem.file == "p.yaml"]


def worlds(text: str, tools: Sequence[str] = ("a", "b")) -> Iterator[World]:
    """Every call in every state that the text can tell apart."""
    names = [name for name in _FACTS if name in text]
    ran = (0, 1, 2) if "ledger" in text else (0,)
    histories = []
    for count in ran:
        history = History("")
        for step in range(count):
            history.executed("b", {"n": 1, "r": "x", "q": True}, "ok" if step == 0 else "error", None, step=step)
        histories.append(history)
    states = [_state(dict(zip(names, values, strict=True))) for values in product(*(_FACTS[name] for name in names))]
    for tool in tools:
        for values in product(*(_ARGS[tool].values())):
            args = dict(zip(_ARGS[tool], values, strict=True))
            for state, history in product(states, histories):
                yield World(tool, args, state, history)


def _state(values: dict[str, Any]) -> State:
    parts: dict[str, dict[str, Any]] = {"facts": {"m": {}}, "flags": {"f": False, "g": False}}
    for name, value in values.items():
        part, key = name.split(".")
        parts[part].pop(key, None)
        if value is not _ABSENT:
            parts[part][key] = value
    return initial(**parts)


def without(pack: Pack, *numbers: int) -> Pack:
    """The pack without some rules."""
    kept = [rule for number, rule in enumerate(pack.file.rules) if number not in numbers]
    return replace(pack, file=pack.file.model_copy(update={"rules": kept}))


def only(pack: Pack, number: int, **changed: Any) -> Pack:
    """The pack with one rule alone, which is changed."""
    rule = pack.file.rules[number].model_copy(update=changed)
    return replace(pack, file=pack.file.model_copy(update={"rules": [rule]}))


def judge(pack: Pack) -> Callable[[World], Verdict]:
    """What the enforcer says."""
    book = Rulebook(toolset(), [pack])

    def ask(world: World) -> Verdict:
        proposal = Proposal(world.tool, world.args)
        return book.enforcer.judge(proposal, world.state, world.history, NOW)

    return ask


# ---- packs


_OPERATORS = st.sampled_from(["<", "<=", ">", ">=", "==", "!="])
_ATOMS = st.one_of(
    st.sampled_from(
        [
            "action.tool == 'a'",
            "action.tool in ['a', 'b']",
            "action.tool != 'b'",
            "action.access == 'write'",
            "'hot' in action.tags",
            "action.args.q",
            "action.args.q == false",
            "action.args.r == 'x'",
            "action.args.r != 'y'",
            "'y' == action.args.r",
            "action.args.r in ['x', 'y']",
            "action.args.r in ['x']",
            "action.args.r.startsWith('y')",
            "action.args.r < 'y'",
            "size(action.args.r) > 0",
            "action.args.r.contains('y')",
            "state.facts.p",
            "state.facts.p == true",
            "state.facts.p != true",
            "has(state.facts.p)",
            "has(state.facts.k)",
            "state.facts.s == 'u'",
            "state.facts.s in ['u', 'v']",
            "state.facts.s != 'v'",
            "state.facts.s != ''",
            "state.facts.s == action.args.r",
            "state.facts.k == action.args.n",
            "state.facts.k <= action.args.n",
            "action.args.n > state.facts.k",
            "state.facts.k + 1 > action.args.n",
            "state.facts.k == null",
            "state.flags.f",
            "state.flags.f == state.facts.p",
            "state.flags.g",
            "has(state.flags.f)",
            "action.args.r in state.facts.m",
            "'x' in state.facts.m",
            "state.facts.m[action.args.r].ok",
            "has(state.facts.m[action.args.r].ok)",
            "size(state.facts.m) >= 0",
            "size(state.facts.m) > 0",
            "state.facts.m.exists(k, k == action.args.r)",
            "state.facts.m.all(k, state.facts.m[k].ok)",
            "[0, 1].exists(i, i == action.args.n)",
            "succeeded(state.ledger, 'b')",
            "repeats(state.ledger, action.tool) < 1",
            "type(state.facts.k) == int",
            "source(state.facts.p).tool == 'learn'",
            "source(state.facts.p).tool == 'keep'",
            "true",
            "false",
            "d",
            "e",
        ]
    ),
    st.builds("action.args.n {} {}".format, _OPERATORS, st.sampled_from([-1, 0, 1, 2, 3, 0.5, 1.5])),
    st.builds("{1} {0} action.args.n".format, _OPERATORS, st.sampled_from([0, 1, 2])),
    st.builds("state.facts.k {} {}".format, _OPERATORS, st.sampled_from([-1, 0, 1, 2, 0.5])),
    st.builds("count_calls(state.ledger, 'b') {} {}".format, _OPERATORS, st.sampled_from([-1, 0, 1, 2])),
)


def _combined(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.builds("({} && {})".format, inner, inner),
        st.builds("({} || {})".format, inner, inner),
        st.builds("!({})".format, inner),
        st.builds("({} ? {} : {})".format, inner, inner, inner),
        st.builds("(({}) == ({}))".format, inner, inner),
        st.builds("({0} && {1} || {0})".format, inner, inner),
        st.builds("['x', 'y'].all(v, v != action.args.r || ({}))".format, inner),
    )


_EXPRESSIONS = st.recursive(_ATOMS, _combined, max_leaves=4)
_NO_DEFINES = _EXPRESSIONS.filter(lambda text: not {"d", "e"} & set(text.replace("(", " ").replace(")", " ").split()))


@st.composite
def packs(draw: Any) -> str:
    """A pack of some rules, as text."""
    priority = draw(st.booleans())
    allow_list = draw(st.integers(0, 5)) == 0
    lines = ["pack: p", f"resolve: {'priority' if priority else 'strictest'}"]
    if allow_list:
        lines.append("default: deny")
    if draw(st.integers(0, 3)) == 0:
        state_only = _NO_DEFINES.filter(lambda text: "action" not in text)
        lines.append(f"active: {_quoted(draw(state_only))}")
    lines += ["define:", f"  d: {_quoted(draw(_NO_DEFINES))}", f"  e: {_quoted(draw(_NO_DEFINES))}", "rules:"]
    pool = [draw(_EXPRESSIONS) for _ in range(3)]  # drawn from again, so that rules have to do with one another
    for number in range(draw(st.integers(1, 4))):
        lines.append(f"  - name: r{number}")
        lines.append(f"    tools: {draw(st.sampled_from(['[a]', '[b]', '[a, b]']))}")
        if draw(st.booleans()):
            lines.append(f"    condition: {_quoted(draw(st.sampled_from(pool) | _EXPRESSIONS))}")
        grants = (priority or allow_list) and draw(st.integers(0, 2)) == 0
        lines.append(f"    {'grant' if grants else 'check'}: {_quoted(draw(st.sampled_from(pool) | _EXPRESSIONS))}")
        lines.append(f"    priority: {draw(st.integers(0, 2))}")
        if draw(st.integers(0, 7)) == 0:
            lines.append("    mode: shadow")
        if not grants:
            effect = draw(st.sampled_from(["deny", "deny", "require_approval", "warn"]))
            lines.append(
                f"    on_fail: {{error: No., effect: {effect}, halt: {draw(st.sampled_from(['false', 'true']))}}}"
            )
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
