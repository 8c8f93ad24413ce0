"""A recorded run judged again by what it carries: the same, or the first line that comes out otherwise."""

from __future__ import annotations

from pathlib import Path

import pytest

from ledgercli.errors import InvalidDocumentError, LedgerFormatError, UnreadableInputError
from ledgercli.replay.verifying import Replayed, replay
from ledgercli.rulebook import Rulebook
from ledgercli.shelf import Shelf
from tests import shops
from tests.books import book, carry_out, guard, lines_of
from tests.library import library
from tests.shops import at_step, linked

SHELF = Shelf()


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A scripted run of two steps, whose state is written again after the first."""
    carry_out(shops.PROJECT / "fixtures/scenarios/weather.yaml", tmp_path / "a.ledger.jsonl", checkpoint=1)
    return tmp_path / "a.ledger.jsonl"


@pytest.fixture(scope="module")
def desk(tmp_path_factory) -> Rulebook:
    pack = tmp_path_factory.mktemp("desk") / "support.yaml"
    pack.write_text(shops.with_the_rule())
    return shops.book(pack)


def again(path: Path) -> Replayed:
    return replay(path, SHELF)


@pytest.mark.slow
def test_every_kind_of_line_is_understood(tmp_path: Path) -> None:
    """Runs that wait and are answered, go on, are rolled back, resumed, interrupted, repaired, forked, checkpointed, summed up."""
    written = library(tmp_path)
    found = {name: again(path) for name, path in written.items()}
    assert {name: one.divergence for name, one in found.items()} == dict.fromkeys(found)
    assert {line["kind"] for path in written.values() for line in lines_of(path)} == {
        "open", "intent", "step", "checkpoint", "approval", "rollback", "resume", "recovery", "summary", "close",
    }  # fmt: skip


def test_an_untouched_run_is_the_same(run: Path) -> None:
    assert again(run) == Replayed(str(run), steps=2)


def test_a_verdict_that_the_rules_do_not_give(desk: Rulebook, tmp_path: Path) -> None:
    """An order is made another customer's; the return that follows would have been refused."""

    def change(lines):
        order = at_step(lines, 2)
        order["state_diff"]['facts.orders["#W2000007"]']["user_id"] = "mia_li_3668"
        order["result"]["data"]["user_id"] = "mia_li_3668"

    found = again(linked(shops.refund(desk, tmp_path / "b.ledger.jsonl", 1), change)).divergence
    assert found is not None
    assert (found.step, found.layer, found.same) == (4, "verdict", 3)
    assert found.recorded["effect"] == "allow"
    assert (found.replayed["effect"], found.replayed["failed"][0]["rule"]) == ("deny", "support/refund_of_own_order")
    assert found.reads['state.facts.orders["#W2000007"].user_id'] == "mia_li_3668"


def test_behind_a_mask_what_may_hang_on_it_cannot_be_told(desk: Rulebook, tmp_path: Path) -> None:
    """The customer's code is a secret; a state that comes of hidden values is taken as it stands, and counted."""

    def change(lines):
        at_step(lines, 5)["state_diff"]["facts.notified"] = False

    path = shops.refund(desk, tmp_path / "b.ledger.jsonl", 1)
    assert b'"redacted":"hmac-sha256:' in path.read_bytes()
    assert again(path) == Replayed(str(path), steps=5)
    assert again(linked(path, change)) == Replayed(str(path), steps=5, untold=(5,))


def test_a_diff_that_the_transitions_do_not_make(run: Path) -> None:
    def change(lines):
        at_step(lines, 1)["state_diff"]["facts.location"] = "Tianjin"

    found = again(linked(run, change)).divergence
    assert found is not None
    assert (found.step, found.layer, found.same) == (1, "state", 0)
    assert found.recorded["state_diff"]["facts.location"] == "Tianjin"
    assert found.replayed["state_diff"]["facts.location"] == "Beijing"


def test_a_proposal_that_the_script_does_not_make(run: Path) -> None:
    found = again(linked(run, lambda lines: at_step(lines, 2)["action"]["args"].update(temperature=21))).divergence
    assert found is not None
    assert (found.step, found.layer, found.same) == (2, "proposal", 1)
    assert (found.recorded["args"]["temperature"], found.replayed["args"]["temperature"]) == (21, 22)


@pytest.mark.parametrize(
    ("line", "part", "layer", "right"),
    [(0, "state", "open.state.status", "running"), (-1, None, "close.status", "completed or error or interrupted")],
    ids=["beginning", "end"],
)
def test_a_beginning_or_an_end_that_the_run_did_not_have(
    run: Path, line: int, part: str | None, layer: str, right: str
) -> None:
    def change(lines):
        (lines[line][part] if part else lines[line])["status"] = "halted"

    found = again(linked(run, change)).divergence
    assert found is not None
    assert (found.step, found.layer, found.recorded, found.replayed) == (None, layer, "halted", right)
    assert found.line == (1 if line == 0 else len(run.read_bytes().splitlines()))


def test_a_checkpoint_that_the_books_do_not_come_to(run: Path) -> None:
    def change(lines):
        next(line for line in lines if line["kind"] == "checkpoint")["state"]["facts"]["location"] = "Tianjin"

    found = again(linked(run, change)).divergence
    assert found is not None
    assert (found.layer, found.recorded["state"]["facts"]["location"]) == ("checkpoint", "Tianjin")


def test_what_is_behind_the_first_difference_is_not_compared(run: Path) -> None:
    def change(lines):
        at_step(lines, 1)["state_diff"] = {}
        at_step(lines, 2)["verdict"]["applied"] = 0

    found = again(linked(run, change))
    assert found.divergence is not None
    assert (found.divergence.step, found.steps) == (1, 2)


def test_a_run_without_an_end_is_judged_as_far_as_it_goes(run: Path) -> None:
    lines = run.read_bytes().splitlines(keepends=True)
    run.write_bytes(b"".join(lines[:-1]))
    assert (again(run).divergence, again(run).steps) == (None, 2)
    run.write_bytes(b"".join(lines[:-2]))
    assert again(run).divergence is None
    run.write_bytes(b"".join(lines[:-1]) + lines[-1][:20])  # a crash tore the last line
    assert (again(run).divergence, again(run).steps) == (None, 2)


@pytest.mark.parametrize("at", [0, 1])
def test_a_damaged_line_is_no_divergence_but_an_error(run: Path, at: int) -> None:
    lines = run.read_bytes().splitlines(keepends=True)
    lines[at] = lines[at].replace(b'"prev"', b'"pre"', 1)
    run.write_bytes(b"".join(lines))
    with pytest.raises(LedgerFormatError, match=rf"a\.ledger\.jsonl:{at + 1}"):
        again(run)


def test_a_file_that_is_empty_or_missing_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "empty.ledger.jsonl").touch()
    with pytest.raises(LedgerFormatError, match="not one whole line"):
        again(tmp_path / "empty.ledger.jsonl")
    with pytest.raises(UnreadableInputError):
        again(tmp_path / "missing.ledger.jsonl")


def test_ledgers_of_one_program_share_a_rulebook(desk: Rulebook, tmp_path: Path) -> None:
    """A rulebook takes long to compile, and thousands of runs differ in their tasks only."""
    shelf = Shelf()
    paths = [shops.refund(desk, tmp_path / f"{number}.ledger.jsonl", number) for number in range(3)]
    assert [replay(path, shelf).divergence for path in paths] == [None, None, None]
    assert len({id(shelf.recorded(lines_of(path)[0])) for path in paths}) == 1


def test_runs_that_know_other_things_from_the_start_do_not(tmp_path: Path) -> None:
    """What is known from the start has a type, which rules are checked against."""
    shelf, paths = Shelf(), []
    for number, code in enumerate((7, "7")):
        pack = f"pack: p\nrules: [{{name: r, tools: [pay], check: state.facts.code == {code!r}}}]\n"
        rules = book(tmp_path, pack.replace("'7'", '"7"') if number else pack, facts={"code": code})
        paths.append(tmp_path / f"{number}.ledger.jsonl")
        with guard(rules, paths[-1]) as desk:
            desk.check("look", {"id": "1"})
    opened = [lines_of(path)[0] for path in paths]
    opened[1]["files"] = opened[0]["files"]  # the same files, and another type of the same fact
    assert shelf.recorded(opened[0])
    with pytest.raises(InvalidDocumentError):
        shelf.recorded(opened[1])
