"""Two versions of a pack: every example really differs, and nothing is called the same that is not."""

from __future__ import annotations

import itertools
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledgercli.diff.packs import PackDifference, differences
from ledgercli.diff.packs.examples import Example
from tests.packdiffs import ROOT, all_really_differ, judged, plainly, versions_of

SHOP = ROOT / "fixtures/toolsets/shop.tools.yaml"
NAMES: dict[str, Path | None] = {
    "support": SHOP,
    "goodwill": SHOP,
    "limits_verified": SHOP,
    "limits_unverified": SHOP,
    "weather": ROOT / "fixtures/scenarios/weather.yaml",
    "airline": ROOT / "policies/airline.tools.yaml",
    "confirm": None,
    "loops": None,
}
AUTH = "state.facts.user_authenticated == true"
REFUND = "action.args.amount <= state.facts.orders[action.args.order_id].total"

#: pack, what is replaced, by what, one tool that it changes, and how: A's effect and B's, or the kind of difference.
EDITS: list[tuple[str, str, str, str, tuple[str, str] | str]] = [
    ("support", AUTH, "state.facts.user_authenticated != true", "view_balance", ("deny", "allow")),
    ("support", AUTH, "'true'", "view_balance", ("deny", "allow")),
    ("support", "action.args.amount <= 500", "action.args.amount <= 400", "create_return",
     ("allow", "require_approval")),
    ("support", "action.args.amount <= 500", "action.args.amount < 500", "create_return",
     ("allow", "require_approval")),
    ("support", "      effect: require_approval\n", "", "create_return", ("require_approval", "deny")),
    ("support", "effect: require_approval", "effect: warn", "create_return", ("require_approval", "warn")),
    ("support", 'failed too many times. Aborting."\n      halt: true', 'failed too many times. Aborting."',
     "finish", "halt"),
    ("support", "action.tool) < 3", "action.tool) < 2", "notify", ("allow", "deny")),
    ("support", "'update_profile']", "'update_profile', 'notify']", "notify", ("allow", "deny")),
    ("support", "'view_balance', ", "", "view_balance", ("deny", "allow")),
    ("support", "tools: [charge, transfer]", "tools: [transfer]", "charge", ("deny", "allow")),
    ("support", "name: guests_do_not_write", "name: guests_never_write", "notify", "rules"),
    ("support", "state.facts.user_role != 'guest'", "state.facts.user_role == 'admin'", "notify", ("allow", "deny")),
    ("support", "'!state.flags.payment_failed'", "'true'", "purchase", ("deny", "allow")),
    ("support", "Guests may look, not change.", "Guests look.", "notify", "message"),
    ("support", REFUND, "action.args.amount < state.facts.orders[action.args.order_id].total", "create_return",
     ("allow", "deny")),
    ("support", "{require_auth: false}", "{require_auth: true}", "get_order", ("allow", "deny")),
    ("support", '["ledgercli:loops"]', "[]", "notify", ("deny", "allow")),
    ("support", "'\"charge\" in action.tags'", "action.tool == 'charge'", "purchase", ("deny", "allow")),
    ("support", "source(state.facts.accounts[action.args.account]).tool == 'verify_account'", "'true'", "transfer",
     ("deny", "allow")),
    ("goodwill", "max_goodwill: 20", "max_goodwill: 25", "give_credit", ("deny", "allow")),
    ("goodwill", "resolve: priority\n", "resolve: priority\ndefault: deny\n", "notify", ("allow", "deny")),
    ("goodwill", "priority: 100", "priority: 1", "give_credit", ("allow", "deny")),
    ("goodwill", "== 'admin'", "!= 'guest'", "give_credit", ("deny", "allow")),
    ("goodwill", "'!succeeded(state.ledger, \"give_credit\")'", "count_calls(state.ledger, 'give_credit') < 2",
     "give_credit", ("deny", "allow")),
    ("limits_verified", "active: state.flags.customer_verified\n", "", "charge", ("allow", "deny")),
    ("limits_verified", "<= double(state", "< double(state", "transfer", ("allow", "deny")),
    ("limits_unverified", "[create_return, charge, transfer]", "[charge, transfer]", "create_return",
     ("deny", "allow")),
    ("weather", "repeats(state.ledger, 'get_weather') == 0", "repeats(state.ledger, 'get_weather') <= 1",
     "get_weather", ("deny", "allow")),
    ("weather", "'!(action.args.location in state.constraints.sensitive_locations)'", "'true'", "get_weather",
     ("deny", "allow")),
    ("loops", "max_same_calls: 3", "max_same_calls: 2", "any_tool", ("allow", "deny")),
    ("loops", "effect: warn", "effect: deny", "any_tool", ("warn", "deny")),
    ("confirm", "confirmed(state.ledger, action)", "'true'", "any_tool", ("deny", "allow")),
    ("airline", "max_passengers: 5", "max_passengers: 4", "book_reservation", "rules"),
]  # fmt: skip

#: The same verdicts, written otherwise.
SAME: list[tuple[str, str, str]] = [
    ("support", AUTH, "true == state.facts.user_authenticated"),
    ("support", AUTH, "state.facts.user_authenticated"),
    ("support", AUTH, "state.facts.user_authenticated != false"),
    ("support", "action.args.amount <= 500", "500 >= action.args.amount"),
    ("support", "action.args.amount <= 500", "'!(action.args.amount > 500)'"),
    ("support", "state.constraints.require_auth && action.tool != 'finish'",
     "action.tool != 'finish' && state.constraints.require_auth"),
    ("support", "state.constraints.require_auth && action.tool != 'finish'",
     "\"!(!state.constraints.require_auth || action.tool == 'finish')\""),
    ("support", "['purchase', 'view_balance', 'update_profile']", "['update_profile', 'purchase', 'view_balance']"),
    ("support", "description: A guest may see what the shop sells and change nothing.", "description: Guests."),
    ("goodwill", "category: goodwill", "category: presents"),
    ("airline", "f.date >= today", "today <= f.date"),
]  # fmt: skip


def compared(folder: Path, pack: str, old: str, new: str) -> tuple[PackDifference, Path, Path]:
    text = (ROOT / "policies" / f"{pack}.yaml").read_text(encoding="utf-8")
    assert old in text, "the pack has changed: change the edit"
    a, b = folder / "a.yaml", folder / "b.yaml"
    a.write_text(text, encoding="utf-8")
    b.write_text(text.replace(old, new), encoding="utf-8")
    toolset = NAMES[pack]
    return differences(str(a), str(b), toolset=None if toolset is None else str(toolset)), a, b


def _marked(edit: tuple[Any, ...]) -> Any:
    """Those that concern many tools, or a long past, take seconds."""
    quick = edit[0] in ("weather", "limits_unverified", "confirm") or edit[3] == "view_balance"
    return pytest.param(*edit, marks=() if quick else pytest.mark.slow)


@pytest.mark.parametrize(("pack", "old", "new", "tool", "how"), [_marked(edit) for edit in EDITS])
def test_an_edit_is_found_with_an_example(
    tmp_path: Path, pack: str, old: str, new: str, tool: str, how: tuple[str, str] | str
) -> None:
    found, a, b = compared(tmp_path, pack, old, new)
    all_really_differ(found, versions_of(a, b, NAMES[pack]))
    assert found.written
    assert found.fails("any")
    told = [one for each in found.tools if each.tool == tool for one in each.found]
    assert how in ([one.effects for one in told if one.kind == "effect"] if isinstance(how, tuple) else
                   [one.kind for one in told])  # fmt: skip
    if how == ("deny", "allow"):
        assert found.fails("worse")


@pytest.mark.parametrize(("pack", "old", "new"), SAME)
def test_what_means_the_same_is_proved_the_same(tmp_path: Path, pack: str, old: str, new: str) -> None:
    found, _, _ = compared(tmp_path, pack, old, new)
    assert found.written
    assert [tool.tool for tool in found.tools if not tool.proved_same] == []
    assert (found.fails("any"), found.fails("verdicts"), found.fails("worse")) == (True, False, False)


@pytest.mark.slow
def test_a_dropped_rule(tmp_path: Path) -> None:
    text = (ROOT / "policies/support.yaml").read_text(encoding="utf-8")
    start = text.index("  - name: refund_over_500")
    rule = text[start : text.index("  # ---- accounts")]
    found, a, b = compared(tmp_path, "support", rule, "")
    assert [(one.sign, one.part, one.name) for one in found.written] == [("-", "rule", "refund_over_500")]
    all_really_differ(found, versions_of(a, b, SHOP))
    assert {tool.tool: [(one.effects, one.by) for one in tool.found] for tool in found.tools if tool.found} == {
        "create_return": [(("require_approval", "allow"), ("refund_over_500",))]
    }
    (other,) = (one for tool in differences(str(b), str(a), toolset=str(SHOP)).tools for one in tool.found)
    assert (other.effects, other.worse) == (("allow", "require_approval"), False)


def test_the_same_bytes_are_the_same_without_names(tmp_path: Path) -> None:
    _, a, _ = compared(tmp_path, "support", "on_fail", "on_fail")
    found = differences(str(a), str(a))
    assert (found.same, found.tools, found.fails("any")) == (True, (), False)


@pytest.mark.slow
def test_the_same_files_give_the_same_answer(tmp_path: Path) -> None:
    one, a, b = compared(tmp_path, "support", "< 3", "< 4")
    again = differences(str(a), str(b), toolset=str(SHOP))
    assert (one.written, one.tools) == (again.written, again.tools)


# Against brute force

ATOMS = (
    "state.facts.a", "!state.facts.a", "has(state.facts.a)", "state.facts.s == 'x'", "state.facts.s in ['x', 'y']",
    "state.facts.s != 'y'", "state.flags.f", "action.args.n < 2", "action.args.n >= 1", "action.args.n == 3",
    "!has(state.facts.s)", "action.tool == 't'", "true", "false",
)  # fmt: skip
expressions = st.recursive(
    st.sampled_from(ATOMS),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["&&", "||"]), inner).map(lambda t: f"({t[0]} {t[1]} {t[2]})"),
        inner.map(lambda text: f"!({text})"),
    ),
    max_leaves=3,
)
rules = st.fixed_dictionaries(
    {
        "check": expressions,
        "on_fail": st.builds(
            lambda effect, halt: {"error": "No.", "effect": effect, "halt": halt},
            st.sampled_from(["deny", "warn", "require_approval"]),
            st.booleans(),
        ),
        "priority": st.integers(0, 1),
        "tools": st.sampled_from([["t"], ["u"], ["t", "u"]]),  # `finish` has no argument `n`
    },
    optional={"condition": expressions},
)
packs = st.tuples(
    st.lists(rules, min_size=1, max_size=3),
    st.lists(st.tuples(expressions, st.integers(0, 1)), max_size=1),
    st.sampled_from([{"resolve": "priority"}, {"default": "deny"}, {}]),
    st.sampled_from([None, None, "state.flags.f"]),
)


def pack_of(parts: Any) -> dict[str, Any]:
    checks, grants, settings_, active = parts
    made = {
        "pack": "p",
        "vocabulary": {
            "tools": {"t": {"n": "integer"}, "u": {"n": "integer"}},
            "facts": {"a": "bool?", "s": "string?"},
            "flags": ["f"],
        },
        **settings_,
        **({"active": active} if active else {}),
        "rules": [{"name": f"r{number}", **rule} for number, rule in enumerate(checks)],
    }
    if settings_:
        made["rules"] += [
            {"name": f"g{n}", "tools": ["t"], "grant": text, "priority": p} for n, (text, p) in enumerate(grants)
        ]
    return made


def every_example() -> Iterator[Example]:
    for tool, n, a, s, f in itertools.product(
        ("t", "u", "finish"), range(4), (None, True, False), (None, "x", "y", "z"), (False, True)
    ):
        if tool != "finish" or n == 0:
            facts = {name: value for name, value in (("a", a), ("s", s)) if value is not None}
            yield Example(tool, {} if tool == "finish" else {"n": n}, facts=facts, flags={"f": True} if f else {})


EVERY = list(every_example())


def agrees_with_brute_force(one: Any, other: Any) -> None:
    with tempfile.TemporaryDirectory() as name:
        a, b = Path(name) / "a.yaml", Path(name) / "b.yaml"
        a.write_text(json.dumps(one), encoding="utf-8")
        b.write_text(json.dumps(other), encoding="utf-8")
        found = differences(str(a), str(b))
        if not found.written and not found.tools:
            return
        every = versions_of(a, b, None)
        all_really_differ(found, every)
        (setting,) = every
        brute = {
            example.tool
            for example in EVERY
            if plainly(judged(example, setting.a), setting.a) != plainly(judged(example, setting.b), setting.b)
        }
        told = {tool.tool for tool in found.tools for one in tool.found if one.kind in ("effect", "halt", "rules")}
        assert told == brute
        assert all(tool.proof != "searched" for tool in found.tools)


@st.composite
def edited(draw: st.DrawFn) -> tuple[Any, Any]:
    """A pack, and the same with one part of it drawn anew."""
    checks, grants, settings_, active = draw(packs)
    other = draw(packs)
    which = draw(st.integers(0, 4))
    if which == 4:
        return pack_of((checks, grants, settings_, active)), pack_of(other)
    made = [checks, grants, settings_, active]
    made[which] = other[which] if which else [*checks[1:], *other[0][:1]]
    return pack_of((checks, grants, settings_, active)), pack_of(made)


@given(edited())
@settings(max_examples=8, deadline=None)
def test_a_difference_is_told_if_and_only_if_there_is_one(pair: tuple[Any, Any]) -> None:
    agrees_with_brute_force(*pair)
