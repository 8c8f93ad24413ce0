"""A sample of all forgeries (`slow/test_forgery_all` makes each), and what makes the sample one of everything."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from ledgercli.errors import LedgerCliError
from ledgercli.guard import Guard
from ledgercli.ledger.verify import verify
from ledgercli.replay.verifying import replay
from ledgercli.shelf import Shelf
from tests.books import lines_of
from tests.forging import MODELS, Search, choices, fields, item_of, model_of, models, orders, sealed
from tests.library import library
from tests.unfindable import REASONS, reviewed

EVERY = 397
PAGE = (Path(__file__).parent.parent / "docs" / "trust.md").read_text(encoding="utf-8")
NEVER = {("Finding", "effect", "allow")}  # a rule that fails asks for more than that


@pytest.fixture(scope="module")
def ledgers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The ledgers that are forged."""
    return library(tmp_path_factory.mktemp("library"))


def contract(model: type[BaseModel]) -> Iterator[type[BaseModel]]:
    """Yield a model and all that are in it."""
    yield model
    for field in fields(model).values():
        for kind in (field.annotation, item_of(field.annotation)):
            inner = model_of(kind)
            if inner is not None:
                yield from contract(inner)


def test_the_ledgers_hold_every_kind_of_line_every_key_and_every_choice(ledgers: dict[str, Path]) -> None:
    wanted: set[tuple[Any, ...]] = set()
    for kind, model in MODELS.items():
        wanted |= {(kind, key) for key in fields(model)}
        for part in contract(model):
            wanted |= {(part.__name__, key) for key in fields(part)}
            wanted |= {(part.__name__, key, one) for key, field in fields(part).items() for one in choices(field)}
    held: set[tuple[Any, ...]] = set()
    for line in (line for path in ledgers.values() for line in lines_of(path)):
        held |= {(line["kind"], key) for key in line}
        for part, value in models(MODELS[line["kind"]], line):
            held |= {(part.__name__, key) for key in value}
            held |= {(part.__name__, key, one) for key, one in value.items() if isinstance(one, str)}
    assert wanted - held == NEVER


def test_a_sample_of_forgeries_is_found_or_reviewed(ledgers: dict[str, Path]) -> None:
    allowed, shelf = reviewed(), Shelf()
    order = orders(map(lines_of, ledgers.values()))
    made = 0
    for path in ledgers.values():
        search = Search(path, shelf, order)
        for forged in search.all(EVERY):
            made += 1
            codes = search.plainly(forged)
            assert codes - {"anchor"} if forged.at + forged.over < len(search.lines) else codes, forged
            assert search.cleverly(forged) or forged.key in allowed, forged
    assert made > 100


def _first(lines: list[Any], kind: str) -> dict[str, Any]:
    return next(line for line in lines if line["kind"] == kind)


def _sets_any_part(lines: list[Any]) -> None:
    _first(lines, "resume")["state_diff"]["surprise"] = 1


def _sets_no_flag(lines: list[Any]) -> None:
    _first(lines, "resume")["state_diff"]["flags.logged_in"] = 1


def _judged_what_is_never_judged(lines: list[Any]) -> None:
    said = next(line for line in lines if line["kind"] == "step" and line["verdict"] is None)
    said["judged"], said["prev"] = 1, said.pop("prev")


def _branches_behind_a_rollback(lines: list[Any]) -> None:
    sealing = lines[lines.index(_first(lines, "rollback")) + 1]
    lines[lines.index(sealing)] = {
        key: value for name, one in sealing.items() for key, value in _before(name, one, "counterfactual_from", 1)
    }


def _before(name: str, value: Any, key: str, new: Any) -> list[tuple[str, Any]]:
    return [(key, new), (name, value)] if name == "lines" else [(name, value)]


def _lacks_a_fact(lines: list[Any]) -> None:
    del lines[0]["state"]["facts"]["note"]


def _has_a_fact_that_is_not_declared(lines: list[Any]) -> None:
    lines[0]["state"]["facts"]["surprise"] = 1


def _has_a_limit_that_is_no_number(lines: list[Any]) -> None:
    lines[0]["state"]["constraints"]["max_steps"] = None


def _keeps_one_text_less(lines: list[Any]) -> None:
    del lines[0]["files"][0]["text"]


def _overlaps_in_a_recording(lines: list[Any]) -> None:
    at = next(at for at, line in enumerate(lines) if line["kind"] == "intent" and lines[at - 1]["kind"] == "step")
    lines[at - 1], lines[at] = lines[at], lines[at - 1]


def _says_a_checkpoint_twice(lines: list[Any]) -> None:
    told = _first(lines, "checkpoint")
    lines.insert(lines.index(told), told)


@pytest.mark.parametrize(
    ("name", "forge", "by"),
    [
        ("torn", _sets_any_part, "replay"),
        ("torn", _sets_no_flag, "replay"),
        ("desk", _judged_what_is_never_judged, "replay"),
        ("reopened", _branches_behind_a_rollback, "replay"),
        ("completed", _lacks_a_fact, "replay"),
        ("completed", _has_a_fact_that_is_not_declared, "replay"),
        ("completed", _has_a_limit_that_is_no_number, "replay"),
        ("desk", _keeps_one_text_less, "replay"),
        ("lenient", _overlaps_in_a_recording, "replay"),
        ("desk", _says_a_checkpoint_twice, "validate"),
    ],
    ids=lambda value: value.__name__.strip("_") if callable(value) else "",
)
def test_what_no_run_writes_is_found(
    ledgers: dict[str, Path], tmp_path: Path, name: str, forge: Callable[[list[Any]], None], by: str
) -> None:
    lines = lines_of(ledgers[name])
    forge(lines)
    forged = tmp_path / "forged"
    forged.write_bytes(b"".join(sealed(lines)))
    assert verify(forged).ok == (by == "replay")
    assert by == "validate" or replay(forged, Shelf()).divergence is not None


def test_only_facts_constraints_and_flags_can_be_set(ledgers: dict[str, Path]) -> None:
    for sets, why in (({"status": "halted"}, "status cannot be set"), ({"flags.logged_in": 1}, "true or false")):
        with pytest.raises(LedgerCliError, match=why):
            Guard.resume(ledgers["limit"], sets=sets)


def test_the_page_on_trust_says_all_that_cannot_be_found_without_an_anchor() -> None:
    page = PAGE[PAGE.index("## What only an anchor finds") :]
    rows = re.findall(r"^\| ([^|]+) \| ([^|]+) \|$", page, re.MULTILINE)[1:]
    assert dict(rows) == {why: ", ".join(f"`{place}`" for place in places) for why, places in REASONS.items()}
