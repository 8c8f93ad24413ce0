"""Paths: one text each; patches undo nothing and share the rest; diffs are exact and net."""

from __future__ import annotations

import copy
import re
from types import MappingProxyType
from typing import Any

import orjson
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ledgercli import paths
from ledgercli import wide as wide_maps
from ledgercli.paths import ABSENT, PathError, Wide, diff, diff_at, drop, get, parse, patch, put, same, text

KEYS = st.one_of(
    st.sampled_from(
        [
            "",
            ".",
            "a",
            "b",
            "a.b",
            '"',
            "\\",
            "[0]",
            "0",
            '["a"]',
            "]",
            "in",
            "true",
            "null",
            "#W1.2",
            "北京",
            "é\u0301",
        ]
    ),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=6),
)
LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.sampled_from([0, 1, True, False, 1.0, 0.0, -0.0, "1", ""]),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=8),
)


def nested(depth: int, leaf: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Maps of exactly `depth` levels at most, with lists among them."""
    value = leaf
    for _ in range(depth):
        value = st.one_of(
            leaf,
            st.lists(value, max_size=3),
            st.dictionaries(KEYS, value, max_size=4),
            st.dictionaries(KEYS, value, min_size=1, max_size=4),
        )
    return value


VALUES = nested(4, LEAVES)
TREES = st.dictionaries(KEYS, VALUES, max_size=5)


def places(tree: Any, at: paths.Path = ()) -> list[paths.Path]:
    """Every path in the maps of a tree, the root excepted."""
    found = [at] if at else []
    if isinstance(tree, dict):
        for key, value in tree.items():
            found += places(value, (*at, key))
    return found


@st.composite
def changed(draw: st.DrawFn) -> tuple[dict[str, Any], dict[str, Any]]:
    """A tree at least four levels deep, and the same after some changes: depth alone would seldom meet shared maps."""
    tree: dict[str, Any] = draw(TREES)
    tree[draw(KEYS)] = {draw(KEYS): {draw(KEYS): {draw(KEYS): draw(VALUES), draw(KEYS): draw(VALUES)}}}
    new = copy.deepcopy(tree)
    for _ in range(draw(st.integers(0, 5))):
        here = places(new)
        path = draw(st.sampled_from(here)) if here else (draw(KEYS),)
        change = draw(st.sampled_from(["set", "below", "remove"]))
        if change == "remove" and here:
            new = drop(new, path)
        elif change == "below" and isinstance(get(new, path), dict):
            new = put(new, (*path, draw(KEYS)), draw(VALUES))
        else:
            new = put(new, path, draw(VALUES))
    return tree, new


# Text


@pytest.mark.parametrize(
    ("path", "written"),
    [
        (("facts", "location"), "facts.location"),
        (("facts", "orders", "#W1.2", "status"), 'facts.orders["#W1.2"].status'),
        (("facts", "list", 0, "x"), "facts.list[0].x"),
        (("", ".", '"'), '[""]["."]["\\""]'),
        (("facts", "in", "true"), 'facts["in"]["true"]'),
        (("北京", "é"), '["北京"]["é"]'),
        (("a\nb", "c\\d", "\x01"), '["a\\nb"]["c\\\\d"]["\\u0001"]'),
        (("a\n",), '["a\\n"]'),
        (("_x1", "X"), "_x1.X"),
        ((12,), "[12]"),
    ],
)
def test_a_path_is_written_as_a_rule_says_it(path: paths.Path, written: str) -> None:
    assert text(path) == written
    assert parse(written) == path


@given(st.lists(st.one_of(KEYS, st.integers(0, 10**6)), min_size=1, max_size=6).map(tuple))
def test_text_and_path_belong_to_each_other(path: paths.Path) -> None:
    assert parse(text(path)) == path
    assert list(map(type, parse(text(path)))) == list(map(type, path))


@given(st.text(alphabet='ab.[]"\\0 in', max_size=12))
def test_no_second_text_is_accepted_for_a_path(source: str) -> None:
    try:
        path = parse(source)
    except PathError:
        return
    assert text(path) == source


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("", "an empty text is no path"),
        (".a", "path .a at character 1: write a, not .a"),
        ("a.", "path a. at character 2: a name must follow the dot"),
        ("a..b", "path a..b at character 2: a name must follow the dot"),
        ("a.#W1", "path a.#W1 at character 2: a name must follow the dot"),
        ('a["b"]', 'path a["b"] at character 2: write .b, not ["b"]'),
        ('["b"]', 'path ["b"] at character 1: write b, not ["b"]'),
        ("a['#b']", "brackets hold an index or a key in double quotes"),
        ("a[01]", "brackets hold an index or a key in double quotes"),
        ("a[-1]", "brackets hold an index or a key in double quotes"),
        ("a[", "brackets hold an index or a key in double quotes"),
        ('a["\\q"]', 'path a["\\q"] at character 2: this is no JSON text'),
        ('a["\\u0023"]', 'write ["#"], not ["\\u0023"]'),
        ("a.in", 'path a.in at character 2: write ["in"], not .in'),
        ("#W1", 'a key that is no plain name stands in brackets: ["#W1"]'),
        ("a b", "path a b at character 2: a key that is no plain name stands in brackets"),
        ("北京", "at character 1: a key that is no plain name stands in brackets"),
        ("[" * 300, "at character 1: brackets hold"),
    ],
)
def test_a_text_that_is_no_path_says_where_and_why(source: str, message: str) -> None:
    with pytest.raises(PathError, match=re.escape(message)):
        parse(source)


# Reading and changing


def test_get_walks_maps_and_lists() -> None:
    tree = {"a": [{"b": None}], "w": Wide({"k": 1})}
    assert get(tree, ()) is tree
    assert get(tree, ("a", 0, "b")) is None
    assert get(tree, ("w", "k")) == 1
    for missing in [("a", 1), ("a", "b"), ("x",), ("a", 0, "b", "c"), ("w", 0), ("a", True)]:
        assert get(tree, missing) is ABSENT, missing
    assert get(tree, ("x",), default=3) == 3
    assert repr(ABSENT) == "ABSENT"


def test_a_new_tree_shares_what_did_not_change_and_the_old_one_stays() -> None:
    old: dict[str, Any] = {"facts": {"orders": {"#W1": {"status": "new"}, "#W2": {"n": 1}}}, "flags": {"f": False}}
    before = copy.deepcopy(old)
    new = patch(old, {'facts.orders["#W1"].status': "sent"}, ['facts.orders["#W2"].n'])
    assert old == before
    assert new == {"facts": {"orders": {"#W1": {"status": "sent"}, "#W2": {}}}, "flags": {"f": False}}
    assert new["flags"] is old["flags"]


def test_missing_maps_are_made_only_when_asked() -> None:
    assert put({}, ("a", "b", "c"), 1) == {"a": {"b": {"c": 1}}}
    with pytest.raises(PathError, match=r"a\.b\.c cannot be set: a is not there"):
        patch({}, {"a.b.c": 1})


@pytest.mark.parametrize(
    ("sets", "unsets", "message"),
    [
        ({"a.x": 1}, [], "a.x cannot be set: a is no map"),
        ({"l[0]": 1}, [], "l[0] cannot be set: l is no map"),
        ({"[0]": 1}, [], "[0]: a list is replaced whole, never one of its elements"),
        ({"no.x": 1}, [], "no.x cannot be set: no is not there"),
        ({}, ["no"], "no cannot be removed: no is not there"),
        ({}, ["m.no.x"], "m.no.x cannot be removed: m.no is not there"),
        ({}, ["a.x"], "a.x cannot be removed: a is no map"),
        ({}, ["[0]"], "[0] cannot be removed: [0] is not there"),
        ({'m["b"]': 1}, [], "write .b"),
    ],
)
def test_a_diff_that_does_not_fit_is_refused_with_its_path(
    sets: dict[str, Any], unsets: list[str], message: str
) -> None:
    with pytest.raises(PathError, match=re.escape(message)):
        patch({"a": 1, "l": [1], "m": {}}, sets, unsets)


# Differences


@settings(max_examples=300)
@given(changed())
@example(({"a": {"b": {}}}, {"a": {}}))
@example(({"a": [{"x": 1}]}, {"a": [{"x": True}]}))
@example(({"a": {"b": {"c": {"d": 1}}}}, {"a": {"b": {"c": {"d": 1.0}}}}))
def test_applying_the_diff_gives_the_new_tree(pair: tuple[dict[str, Any], dict[str, Any]]) -> None:
    old, new = pair
    before = orjson.dumps(old)
    sets, unsets = diff(old, new)
    recorded = orjson.loads(orjson.dumps([old, sets, unsets]))
    result = patch(*recorded)
    assert result == new
    assert same(result, new)
    assert orjson.dumps(old) == before
    assert orjson.dumps(result, option=orjson.OPT_SORT_KEYS) == orjson.dumps(new, option=orjson.OPT_SORT_KEYS)


@given(changed())
def test_a_diff_is_net(pair: tuple[dict[str, Any], dict[str, Any]]) -> None:
    sets, unsets = diff(*pair)
    written = [parse(source) for source in (*sets, *unsets)]
    assert len(set(written)) == len(written)
    assert not any(a != b and b[: len(a)] == a for a in written for b in written)
    assert all(not same(get(pair[0], parse(source)), value) for source, value in sets.items())


@given(TREES, TREES)
def test_trees_that_have_little_in_common_differ_exactly_too(old: dict[str, Any], new: dict[str, Any]) -> None:
    assert same(patch(old, *diff(old, new)), new)
    assert diff(old, copy.deepcopy(old)) == ({}, [])


@settings(max_examples=200)
@given(TREES, st.lists(st.tuples(st.lists(KEYS, min_size=1, max_size=4).map(tuple), VALUES), max_size=5), st.data())
def test_looking_at_the_touched_paths_finds_the_whole_difference(
    old: dict[str, Any], writes: list[tuple[paths.Path, Any]], data: st.DataObject
) -> None:
    new, touched = old, []
    for path, value in writes:
        try:
            new = put(new, path, value)
        except PathError:
            continue
        touched.append(path)
    if here := places(new):
        path = data.draw(st.sampled_from(here))
        new = drop(new, path)
        touched.append(path)
    sets, unsets = diff_at(old, new, touched)
    whole = diff(old, new)
    assert orjson.dumps(sets, option=orjson.OPT_SORT_KEYS) == orjson.dumps(whole[0], option=orjson.OPT_SORT_KEYS)
    assert sorted(unsets) == sorted(whole[1])


def test_a_touched_path_inside_a_new_map_gives_the_map() -> None:
    old: dict[str, Any] = {"facts": {}}
    new = put(old, ("facts", "orders", "#W1", "status"), "new")
    assert diff_at(old, new, [("facts", "orders", "#W1", "status")]) == (
        {"facts.orders": {"#W1": {"status": "new"}}},
        [],
    )
    assert diff_at(old, new, [("facts", 0)]) == diff(old, new)


def test_one_and_true_and_one_point_nought_are_three_values() -> None:
    values = [1, True, 1.0, "1", [1], None, 0, False, 0.0, -0.0, {}, []]
    for at, one in enumerate(values):
        for other_at, other in enumerate(values):
            assert same(one, copy.deepcopy(other)) is (at == other_at), (one, other)


# Wide maps

SMALL_KEYS = st.sampled_from([f"k{n}" for n in range(12)])


@settings(max_examples=200)
@given(st.lists(st.tuples(st.booleans(), SMALL_KEYS, st.integers(0, 3)), max_size=60), st.integers(1, 12))
def test_a_wide_map_is_a_dict_with_the_same_changes(changes: list[tuple[bool, str, int]], merge_after: int) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(wide_maps, "_DELTA", merge_after)
        model = {f"k{n}": n for n in range(6)}
        wide = Wide(dict(model))
        earlier: list[tuple[Wide, dict[str, int]]] = []
        for put_it, key, value in changes:
            earlier.append((wide, dict(model)))
            if put_it:
                model[key] = value
                wide = wide.put(key, value)
            elif key in model:
                del model[key]
                wide = wide.drop(key)
            assert list(wide.items()) == list(model.items())
            assert len(wide) == len(model)
            assert wide == model == wide
            assert [wide.get(k) for k in ("k0", "k11", "no")] == [model.get(k) for k in ("k0", "k11", "no")]
            assert [k in wide for k in ("k0", "k11", "no")] == [k in model for k in ("k0", "k11", "no")]
        assert all(dict(old) == then for old, then in earlier)


def test_a_large_map_turns_wide_and_behaves_as_before() -> None:
    orders = {f"#W{n}": {"status": "new"} for n in range(2_000)}
    old: dict[str, Any] = {"facts": {"orders": orders}}
    new = patch(old, {'facts.orders["#W7"].status': "sent", 'facts.orders["#X"]': 1}, ['facts.orders["#W9"]'])
    assert isinstance(new["facts"]["orders"], Wide)
    plain = {**orders, "#W7": {"status": "sent"}, "#X": 1}
    del plain["#W9"]
    assert new == {"facts": {"orders": plain}}
    assert list(new["facts"]["orders"]) == list(plain)
    assert same(new["facts"]["orders"], plain)
    assert same(plain, new["facts"]["orders"])
    assert diff(old, new) == ({'facts.orders["#W7"].status': "sent", 'facts.orders["#X"]': 1}, ['facts.orders["#W9"]'])
    assert orjson.loads(orjson.dumps(new, default=paths.plain)) == new
    assert put(put(old, ("facts", "orders", "new"), 1), ("facts", "orders", "new"), 2)["facts"]["orders"]["new"] == 2
    assert list(drop(old, ("facts", "orders", "#W0"))["facts"]["orders"]) == list(orders)[1:]
    assert orjson.dumps({"a": MappingProxyType({"b": 1})}, default=paths.plain) == b'{"a":{"b":1}}'
    assert repr(Wide({"a": 1})) == "Wide({'a': 1})"
    with pytest.raises(TypeError):
        orjson.dumps({"a": {1, 2}}, default=paths.plain)
