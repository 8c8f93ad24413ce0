"""The books of a run, however they were come by: written live, read again, opened at a checkpoint, rolled back, inherited."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ledgercli import ledger, paths, story
from ledgercli.amending import roll_back
from ledgercli.books import Books
from ledgercli.errors import LedgerCliError, LedgerFormatError
from ledgercli.guard import Guard
from ledgercli.history import NEVER
from ledgercli.ledger import Entry
from ledgercli.past import Follower, after, before, each
from ledgercli.records import open_line, timestamp
from ledgercli.reopening import inherited
from ledgercli.rulebook import Rulebook
from ledgercli.shelf import Shelf
from tests.books import NOW, book, guard, kept, lines_of, plain

PACK = """
    pack: p
    rules:
      - {name: once, tools: [pay], check: 'count_calls(state.ledger, "pay", {"amount": action.args.amount}) < 2', on_fail: Twice.}
      - {name: asked, tools: [look], check: 'repeats(state.ledger, "look") < 4 || from_user(action.args.id) || from_tool(action.args.id, "login")', on_fail: Enough.}
      - name: large
        tools: [pay]
        check: action.args.amount < 8.0
        on_fail: {error: Large., effect: require_approval}
"""
IDS, AMOUNTS = ("W1", "#W2", "w.3"), (1, 2.5, 9)
Act = tuple[Any, ...]

ACTS: st.SearchStrategy[Act] = st.one_of(
    st.tuples(st.just("look"), st.sampled_from(IDS), st.integers(0, 3)),
    st.tuples(st.just("login"), st.booleans()),
    st.tuples(st.just("pay"), st.sampled_from(AMOUNTS), st.sampled_from(["ok", "error", "unknown", "cancelled"])),
    st.tuples(st.just("begin"), st.sampled_from(AMOUNTS)),
    st.tuples(st.just("end"), st.sampled_from(["ok", "error", "unknown"])),
    st.tuples(st.just("answer"), st.booleans()),
    st.tuples(st.just("say"), st.sampled_from(IDS)),
    st.tuples(st.just("sure"), st.booleans()),
)
PLANS = st.lists(ACTS, max_size=25)


def carried_out(run: Guard, plan: list[Act]) -> None:
    """Do all that a plan says, as far as the books let it."""
    begun: list[Any] = []
    for act in plan:
        match act:
            case ("look", id, price):
                verdict = run.check("look", {"id": id})
                if verdict.runs:
                    run.record(verdict, {"price": price})
            case ("login", vip):
                run.record(run.check("login", {"user": "mia"}), {"vip": vip})
            case ("pay", amount, outcome):
                verdict = run.check("pay", {"amount": amount})
                if verdict.runs:
                    run.record(verdict, "told", outcome=outcome)
            case ("begin", amount):
                verdict = run.check("pay", {"amount": amount, "note": "later"})
                begun += [verdict] if verdict.runs else []
            case ("end", outcome) if begun:
                run.record(begun.pop(0), "told", outcome=outcome)
            case ("answer", yes) if run._books.approvals.waiting:
                run.approve(max(run._books.approvals.waiting), yes=yes, by="mia")
            case ("say", text):
                run.said(f"about {text}")
            case ("sure", yes):
                run.record(run.check("really", {"tool": "pay", "args": {"amount": 1}}), yes)


def all_of(books: Books) -> dict[str, Any]:
    """Everything that books hold, to be compared."""
    return {
        "state": plain(books.state.tree),
        "origins": {path: (one.tool, plain(one.args), one.step) for path, one in books.state.origins.items()},
        "history": plain(books.history.to_json()),
        "steps": books.steps,
        "pending": {step: (one.proposal, one.write) for step, one in books.pending.items() if one.write},
        "waiting": sorted(books.approvals.waiting),
        "answers": [(one.step, one.yes, one.tool, dict(one.bound)) for one in books.approvals._answers],
        "closed": (books.closed or {}).get("status"),
    }


SHELF = Shelf()


@cache
def compiled() -> Rulebook:
    """The rules of all ledgers here, made once."""
    with TemporaryDirectory() as folder:
        return book(Path(folder), PACK)


class Written:
    """A ledger that a plan made, and the books of who wrote it."""

    def __init__(self, folder: Path, plan: list[Act], checkpoint: int | None = None) -> None:
        self.path = folder / "run.ledger.jsonl"
        self.rules = compiled()
        self.guard = guard(self.rules, self.path, checkpoint=checkpoint, engine={"kind": "guard"})
        carried_out(self.guard, plan)
        self.books = self.guard._books
        self.guard._let_go()  # as one that was killed


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(PLANS)
def test_books_that_are_read_are_the_books_that_were_written(plan: list[Act]) -> None:
    with TemporaryDirectory() as folder:
        made = Written(Path(folder), plan)
        found, wanted = all_of(after(made.path, SHELF)), all_of(made.books)
        if not (reads := {step for step, one in made.books.pending.items() if not one.write}):
            assert found["steps"] == wanted["steps"]
        assert reads == set()
        assert found == wanted


def whole(path: Path, step: int | None) -> Books:
    """The books after a step, from the first line on."""
    follower = Follower(path, SHELF)
    for entry in ledger.read(path):
        follower.see(entry)
        if entry.kind == ("step" if step else "open") and entry.record.get("step", 0) == step:
            break
    assert follower.books is not None
    return follower.books


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(PLANS, st.integers(1, 4), st.data())
def test_books_that_are_opened_at_a_checkpoint_are_those_of_the_whole_ledger(
    plan: list[Act], every: int, data: st.DataObject
) -> None:
    with TemporaryDirectory() as folder:
        made = Written(Path(folder), plan, every)
        assert all_of(after(made.path, SHELF)) == all_of(whole(made.path, None)) == all_of(made.books)
        done = [entry.record["step"] for entry in ledger.read(made.path) if entry.kind == "step"]
        if done:
            step = data.draw(st.sampled_from(done))
            assert all_of(after(made.path, SHELF, step)) == all_of(whole(made.path, step))
            judged = {one.get("step"): all_of(books) for books, one in Follower(made.path, SHELF).judged()}
            if step in judged:
                assert all_of(before(made.path, SHELF, step)[0]) == judged[step]


def opened_at(path: Path, monkeypatch: pytest.MonkeyPatch, step: int | None = None) -> list[str]:
    """The kinds of the lines that are taken in to come to a step."""
    seen: list[str] = []
    see = Follower.see

    def watched(self: Follower, entry: Entry) -> None:
        seen.append(entry.kind)
        see(self, entry)

    monkeypatch.setattr(Follower, "see", watched)
    after(path, SHELF, step)
    monkeypatch.setattr(Follower, "see", see)
    return seen


LOOKS: list[Act] = [("look", one, 1) for one in IDS] * 4


def test_a_checkpoint_spares_the_lines_before_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = Written(tmp_path, [("say", "W1"), *LOOKS[:8]], 4).path
    kinds = [line["kind"] for line in lines_of(path)]
    steps = ["step"] * 4
    assert kinds == ["open", *steps, "checkpoint", *steps, "checkpoint", "step"]
    assert opened_at(path, monkeypatch) == ["open", "checkpoint", "step"]
    assert opened_at(path, monkeypatch, 6) == ["open", "checkpoint", "step", "step"]
    assert opened_at(path, monkeypatch, 2) == ["open", "step", "step"]


def test_a_checkpoint_is_passed_over_where_a_rollback_leads_behind_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = Written(tmp_path, LOOKS[:6], 3).path
    roll_back(f"{path}@1", reason="r", by="mia")
    assert opened_at(path, monkeypatch)[:3] == ["open", "step", "step"]
    assert all_of(after(path, SHELF)) == all_of(whole(path, None))
    roll_back(f"{path}@5", reason="r", by="mia")
    assert all_of(after(path, SHELF)) == all_of(whole(path, None))


def test_a_checkpoint_of_a_damaged_ledger_is_not_believed(tmp_path: Path) -> None:
    path = Written(tmp_path, LOOKS[:6], 3).path
    lines = path.read_bytes().splitlines(keepends=True)
    assert b'"price":1' in lines[1]
    path.write_bytes(b"".join([lines[0], lines[1].replace(b'"price":1', b'"price":2'), *lines[2:]]))
    with pytest.raises(LedgerFormatError, match="line 3 does not follow line 2"):
        after(path, SHELF)


def test_a_long_ledger_with_checkpoints_opens_faster(tmp_path: Path) -> None:
    """At 4,000 steps; the figure is printed."""
    plan = [("look", IDS[number % 3], number % 4) for number in range(4000)]
    took = {}
    for name, every in (("without", None), ("with", 500)):
        folder = tmp_path / name
        folder.mkdir()
        path = Written(folder, [("say", "W1"), ("say", "#W2"), ("say", "w.3"), *plan], every).path
        shelf, best = SHELF, []
        after(path, shelf)  # the rulebook is compiled
        for _ in range(5):
            started = time.process_time()
            after(path, shelf)
            best.append(time.process_time() - started)
        took[name] = min(best)
    print(f"opening 4,000 steps: {took['without']:.3f} s, at a checkpoint {took['with']:.3f} s")
    assert took["with"] < took["without"] / 1.5


# ---- going back


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(PLANS, st.one_of(st.none(), st.integers(1, 4)), st.data())
def test_a_rolled_back_run_has_the_state_of_that_step(plan: list[Act], every: int | None, data: st.DataObject) -> None:
    with TemporaryDirectory() as folder:
        made = Written(Path(folder), plan, every)
        done = [0, *(entry.record["step"] for entry in ledger.read(made.path) if entry.kind == "step")]
        to = data.draw(st.sampled_from(done))
        then = whole(made.path, to)
        steps = made.books.steps
        try:
            roll_back(f"{made.path}@{to}", reason="r", by="mia")
        except LedgerCliError as error:
            assert "already" in error.message
            now, wanted = all_of(made.books), all_of(then)
            assert {**now["state"], "step": 0} == {**wanted["state"], "step": 0}
            return
        found = after(made.path, SHELF)
        now, wanted = all_of(found), all_of(then)
        assert {**now["state"], "step": 0} == {**wanted["state"], "step": 0}
        assert now["origins"] == wanted["origins"]
        assert (now["steps"], now["waiting"], now["answers"], now["pending"]) == (steps, [], [], {})
        assert now["closed"] == "interrupted"
        executed = made.books.history.count_calls("pay") + sum(one.write for one in made.books.pending.values())
        assert found.history.count_calls("pay") == executed  # what ran has run
        tree = plain(story.ended(made.path).tree)
        assert {**tree, "step": 0} == {**now["state"], "step": 0}
        kept(made.path)


# ---- a new run from a step of another


def questions(books: Books, step: int) -> Iterator[Any]:
    """What rules may ask of the steps before, as the next step would."""
    history = books.history
    for tool in ("look", "login", "pay", "really"):
        yield history.count_calls(tool), history.count_failures(tool), history.count_recent_failures(tool)
        yield history.count_denied(tool), history.repeats(tool), history.last(tool), history.succeeded(tool)
        since = history.steps_since(tool, step)
        yield since if since < NEVER else None
    for one in IDS:
        yield history.from_user(one), history.from_tool(one, "look"), history.count_calls("look", {"id": one})
        yield history.repeats_of_call("look", {"id": one})
    for amount in AMOUNTS:
        yield history.succeeded("pay", {"amount": amount}), history.sum_args("pay", "amount")
    yield history.confirmed("pay", {"amount": 1, "note": ""}), history.distinct_args("pay", "amount")


def leaves(value: Any, at: paths.Path = ()) -> Iterator[paths.Path]:
    if at:
        yield at
    if hasattr(value, "items"):
        for key, item in value.items():
            yield from leaves(item, (*at, key))


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(PLANS, PLANS, st.data())
def test_a_run_from_a_step_knows_what_was_known_there(plan: list[Act], more: list[Act], data: st.DataObject) -> None:
    with TemporaryDirectory() as folder:
        made = Written(Path(folder), plan)
        done = [0, *(entry.record["step"] for entry in ledger.read(made.path) if entry.kind == "step")]
        then = whole(made.path, data.draw(st.sampled_from(done)))
        state, history = inherited(then)
        path = Path(folder) / "new.ledger.jsonl"
        origin = {"ledger": str(made.path), "run": made.guard.run, "step": then.steps, "digest": "sha256:" + "0" * 64}
        run = guard(made.rules, path, state=state, origin=origin, history=history, engine={"kind": "guard"})
        assert {**plain(state.tree), "step": 0} == {**plain(then.state.tree), "step": 0}
        assert list(questions(run._books, 1)) == list(questions(then, then.steps + 1))
        for at in leaves(state.tree):
            here, there = state.origin(at), then.state.origin(at)
            assert (here and (here.tool, here.args)) == (there and (there.tool, there.args)), at
        assert all_of(after(path, SHELF)) == all_of(run._books)
        carried_out(run, more)
        run._let_go()
        assert all_of(after(path, SHELF)) == all_of(run._books)
        kept(path, codes=("unsealed",)) if not run.pending else None


def test_what_a_new_step_sets_counts_as_later_than_what_was_inherited(tmp_path: Path) -> None:
    made = Written(tmp_path, [("look", "W1", 1), ("look", "W1", 2), ("look", "#W2", 1)])
    state, history = inherited(made.books)
    run = guard(made.rules, state=state, history=history, origin={})
    run.record(run.check("look", {"id": "W1"}), {"price": 3})
    here, there = (run.state.origin(("facts", "orders", one, "price")) for one in ("W1", "#W2"))
    assert here is not None
    assert there is not None
    assert (here.step, here.args, there.step, there.args) == (1, {"id": "W1"}, 0, {"id": "#W2"})


def test_a_run_from_a_step_that_tells_nothing_of_its_past_is_refused(tmp_path: Path) -> None:
    rules, path = compiled(), tmp_path / "new.ledger.jsonl"
    origin = {"ledger": "x", "run": "r", "step": 1, "digest": "sha256:" + "0" * 64}
    opening = open_line(
        at=timestamp(), run="r", files=rules.files(), engine={"kind": "guard"}, state=rules.initial_state().opening(),
        origin=origin,
    )  # fmt: skip
    with ledger.Ledger.create(path, opening) as file:
        with pytest.raises(LedgerCliError, match="nothing was ever recorded"):
            Guard.resume(path)
        done = Books.opened(rules, {**opening, "seq": 0})
        _, _, then = done.check(_look(), NOW, timestamp())
        then()
        file.append(done.left(1, "cancelled", timestamp()).line)
    with pytest.raises(LedgerFormatError, match="no checkpoint tells what went before this run"):
        list(each(path, SHELF))


def _look() -> Any:
    from ledgercli.records import Proposal

    return Proposal("look", {"id": "W1"})
