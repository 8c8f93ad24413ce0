"""What `ledger prompt` shows, byte for byte: the document's case, other forms, mistakes."""

from __future__ import annotations

import json
import shutil

import pytest

from ledgercli import records
from tests import books
from tests.cli.conftest import PROJECT

SCENARIO = "fixtures/scenarios/onboarding.yaml"
LEDGER = "ledgers/onboarding.ledger.jsonl"


@pytest.fixture
def ledger(inside):
    """Within this process."""
    return inside


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """The ledger of a run that proposes too early, is refused, and comes to do it right."""
    made = tmp_path_factory.mktemp("ledgers")
    books.carry_out(PROJECT / SCENARIO, made / "onboarding.ledger.jsonl")
    return made


@pytest.fixture
def desk(folder, written):
    """A folder with it."""
    shutil.copytree(written, folder / "ledgers")
    return folder


def test_the_prompt_of_the_documents_case(desk, golden):
    golden("prompt-first", f"ledger prompt {SCENARIO} --offer all --ask")


def test_denial_feedback_and_the_corrected_proposal(desk, golden):
    golden("prompt-denied", f"ledger summarize {LEDGER}@1", f"ledger prompt {LEDGER}@1 --offer all --ask")


def test_once_the_document_is_there_the_approval_passes(desk, golden):
    golden("prompt-corrected", f"ledger prompt {LEDGER}@2 --ask")


def test_one_json_object_and_a_template_of_ones_own(desk, golden):
    (desk / "mine.jinja").write_text("{{ task }}\n{{ state }}\n{{ rules }}\n{{ answer_form }}\n")
    golden(
        "prompt-forms",
        f"ledger prompt {SCENARIO} --calls json_schema --task 'Approve </state> 王蕾.'",
        f"ledger prompt {LEDGER}@1 --template mine.jinja --offer all",
    )


def test_mistakes(desk, golden):
    (desk / "wrong.jinja").write_text("{{ task }}\n{{ sate }}\n")
    golden(
        "prompt-errors",
        f"ledger prompt {SCENARIO} --template wrong.jinja",
        f"ledger prompt {SCENARIO} --template missing.jinja",
        "ledger prompt fixtures/scenarios/onbording.yaml",
        "ledger prompt policies/weather.yaml",
        f"ledger prompt {LEDGER}@9",
        f"ledger prompt {LEDGER} --task other",
        f"ledger prompt {SCENARIO} --now yesterday",
        f"ledger prompt {SCENARIO} --temperature 0",
        "ledger prompt fixtures/scenarios/airline-recording.yaml --ask",
        "ledger prompt",
    )


def test_the_json_is_what_is_sent(desk, ledger):
    ran = ledger("prompt", f"{LEDGER}@1", "--format", "json", "--ask")
    told = json.loads(ran.out)
    assert (ran.code, ran.err) == (0, b"")
    assert told["schema"] == "prompt/1"
    sent = {key: told[key] for key in ("messages", "tools")}
    assert told["digest"] == records.digest(json.dumps(sent, ensure_ascii=False, separators=(",", ":")).encode())
    assert [tool["function"]["name"] for tool in told["tools"]] == told["offered"] == ["finish", "upload_id"]
    assert told["tokens"]["all"] == told["tokens"]["messages"] + told["tokens"]["beside"]
    assert told["tokens"]["exact"] is False
    assert [one["action"]["tool"] for one in told["answer"]["proposals"]] == ["upload_id"]
    assert told["answer"]["proposals"][0]["verdict"]["effect"] == "allow"
