"""What verifying does with a state in place is what `paths` does: each diff leads to the same state, or to the same error."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from ledgercli import paths
from ledgercli.ledger.states import States, _path
from tests import ledgers

KEYS = st.sampled_from(["a", "b", "#W1.2", "in", "x y", "北京", "", "[", '"', "\\", "a.b", "\n", "0"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(0, 3) | st.sampled_from(["", "x"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)
STEPS = st.lists(KEYS | st.integers(0, 2), min_size=1, max_size=4).map(tuple)
TEXTS = STEPS.map(paths.text) | st.text('ab.["]\\0 in京\n', max_size=12)

PLACES = STEPS.map(lambda path: paths.text(("facts", *path[:2]))) | TEXTS


def said(call: Any, *args: Any) -> Any:
    try:
        return call(*args)
    except paths.PathError as error:
        return error.message


@given(TEXTS)
@example('["x"]')
@example('a["x["]')
@example('a["b"]')
@example('a["in"]')
@example('a.["b c"]')
@example('a["b c"]["d e"]')
@example('a["b\u200bc"]')
def test_a_path_is_read_as_paths_reads_it(source: str) -> None:
    assert said(_path, source) == said(paths.parse, source)


@given(
    st.dictionaries(KEYS, VALUES, max_size=4),
    st.lists(st.tuples(st.dictionaries(PLACES, VALUES, max_size=2), st.lists(PLACES, max_size=2)), max_size=4),
)
def test_the_state_is_the_one_that_paths_makes(
    facts: dict[str, Any], diffs: list[tuple[dict[str, Any], list[str]]]
) -> None:
    opening = ledgers.opening(state=ledgers.STATE | {"facts": facts})
    states, expected = States(), copy.deepcopy(opening["state"])
    assert states.see(copy.deepcopy(opening), 1) == []
    for line, (sets, unsets) in enumerate(diffs, 2):
        wrong: list[str] = []
        for source in unsets:
            expected = applied(expected, {}, [source], "state_unset", wrong)
        for source, value in sets.items():
            expected = applied(expected, {source: value}, [], "state_diff", wrong)
        record = {"kind": "step", "state_diff": copy.deepcopy(sets), "state_unset": unsets}
        found = [one.message for one in states.see(record, line)]
        assert [message for message in found if "one begins the other" not in message] == wrong
        assert states.see({"kind": "checkpoint", "state": expected}, line) == []


def applied(state: Any, sets: dict[str, Any], unsets: list[str], which: str, wrong: list[str]) -> Any:
    changed = said(paths.patch, state, sets, unsets)
    if isinstance(changed, str):
        wrong.append(f"{which}: {changed}")
        return state
    return changed
