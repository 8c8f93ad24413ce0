"""The fast form is the precise form, only faster: same values, same reads, same unknowns."""

from __future__ import annotations

import math

import pytest

from ledgercli import cel


def same(a, b) -> bool:
    """Equality that tells 1 from 1.0 and true, and takes NaN for itself."""
    if isinstance(a, float) and isinstance(b, float) and math.isnan(a):
        return math.isnan(b)
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    return type(a) is type(b) and a == b


@pytest.mark.parametrize("seed", range(5))
def test_random_expressions_have_one_meaning_in_both_forms(env, expressions, context, seed):
    made = expressions(seed)
    fast = told = 0
    for _ in range(250):
        text = made.random.choice([made.boolean, made.boolean, made.text, made.number, made.whole, made.texts])(4)
        checked = cel.check(cel.parse(text), env)
        if not checked.ok:
            continue
        program = cel.compile(checked)
        roots = made.roots()
        precise = program.explain(roots, context).answer
        try:
            value = program._fast(roots, context)
        except Exception:
            continue
        fast += 1
        told += precise.known
        assert precise.known, text
        assert same(value, precise.value), text
    assert fast > 60
    assert told == fast


@pytest.mark.parametrize("seed", range(100, 106))
def test_random_rules_read_and_count_as_rule_by_rule(env, expressions, context, seed):
    made = expressions(seed)
    judged = 0
    for _ in range(30):
        usual = made.roots()
        rules = [_rule(made, env, usual, context) for _ in range(5)]
        judge = cel.compile_rules(rules)
        for roots in [usual, *(made.roots() for _ in range(4))]:
            answer = judge(roots, context)
            if answer is not None:
                judged += 1
                applied, reads, grants = _one_by_one(rules, roots, context)
                assert answer[0] == applied
                assert same(answer[1], reads), [str(rule.must and rule.must.expr.source.text) for rule in rules]
                assert answer[2] == grants
    assert judged > 25


def _rule(made, env, roots, context):
    """A random rule that lets the usual roots pass."""

    def known():
        while True:
            checked = cel.check(cel.parse(made.boolean(3)), env, cel.BOOL)
            if checked.ok:
                folded = cel.fold(checked, {("action", "tool"): roots["action"]["tool"]})
                answer = cel.compile(folded)(roots, context)
                if answer.known:
                    return folded, answer.value

    def true():
        checked, value = known()
        return checked if value else cel.check(cel.parse(f"!({checked.expr.source.text})"), env, cel.BOOL)

    when = known()[0] if made.random.random() < 0.6 else None
    return cel.Rule(when, grant=known()[0]) if made.random.random() < 0.3 else cel.Rule(when, true())


def _one_by_one(rules, roots, context):
    """What `compile_rules` must answer, by the precise form; `None` where it may not answer."""
    applied, reads, grants = 0, {}, []
    for rule in rules:
        applies = True
        if rule.when is not None:
            found = cel.compile(rule.when).explain(roots, context)
            if not found.answer.known:
                return None
            reads |= found.reads
            applies = found.answer.value
        applied += applies
        for part in (rule.must, rule.grant):
            held = False
            if part is not None and applies:
                found = cel.compile(part).explain(roots, context)
                if not found.answer.known:
                    return None
                reads |= found.reads
                held = found.answer.value
                if part is rule.must and not held:
                    return None
            if part is rule.grant and part is not None:
                grants.append(held)
    return applied, reads, tuple(grants)


def test_what_cannot_be_told_does_not_hold():
    program = cel.compile(cel.check(cel.parse("x.a || x.b"), cel.Env({"x": cel.MapType()}), cel.BOOL))
    assert program.holds({"x": {"a": True}})
    assert program.holds({"x": {"b": True}})  # by the precise form, which absorbs the error of the other side
    assert not program.holds({"x": {"a": False}})
    assert not program.holds({"x": {"a": False, "b": False}})
