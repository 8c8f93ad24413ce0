"""Help, schemas and completion."""

from __future__ import annotations

import json
import subprocess

import jsonschema_rs
import pytest

from ledgercli import cli
from ledgercli.schemas import KINDS
from tests.cli.conftest import GOLDEN, PROJECT


def test_the_help_names_every_command(golden):
    golden("help", "ledger --help", "ledger vaildate")
    shown = (GOLDEN / "help.txt").read_text()
    assert all(entry.name in shown for entry in cli.COMMANDS)


@pytest.mark.parametrize("name", sorted(cli.NAMES))
def test_each_command_has_a_help_that_fits_and_ends_with_examples(ledger, name):
    ran = ledger(name, "--help")
    assert (ran.code, ran.err) == (0, b"")
    text = ran.out.decode("ascii")
    assert text.startswith(f"Usage: ledger {name} ")
    examples = text.partition("\nExamples:\n")[2].splitlines()
    assert examples
    assert any(f"ledger {name}" in line for line in examples)
    assert all(len(line) <= 80 for line in text.splitlines())


def test_every_command_file_is_in_the_table_and_exports_its_command():
    helpers = {
        "__init__",
        "common",
        "failures",
        "judged",
        "progress",
        "prompt_sources",
        "prompted",
        "recounting",
        "trying",
    }
    files = {path.stem for path in (PROJECT / "ledgercli" / "cli").glob("*.py")} - helpers
    assert files == {name.replace("-", "_") for name in cli.NAMES}


@pytest.mark.parametrize("kind", KINDS)
def test_the_schema_of_each_kind_is_a_json_schema(ledger, kind):
    schema = json.loads(ledger("schema", kind).out)
    jsonschema_rs.meta.validate(schema)
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"


def test_the_schema_of_a_ledger_fits_its_lines(ledger, folder):
    ledger("run", "-q", "desk.yaml", "--approve", "yes", "--out", "w.ledger.jsonl")
    validator = jsonschema_rs.validator_for(json.loads(ledger("schema", "ledger").out))
    for line in (folder / "w.ledger.jsonl").read_text(encoding="utf-8").splitlines():
        validator.validate(json.loads(line))


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_what_each_shell_needs(ledger, shell):
    ran = ledger("completion", shell)
    assert ran.code == 0
    assert f"_LEDGER_COMPLETE={shell}_complete".encode() in ran.out


def test_bash_reads_the_completion(ledger):
    script = ledger("completion", "bash").out
    assert subprocess.run(["bash", "-n"], input=script, capture_output=True, check=False).stderr == b""


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        ("ledger va", b"plain,validate"),
        ("ledger run --appr", b"plain,--approve"),
        ("ledger schema sc", b"plain,scenario"),
    ],
)
def test_completion_completes_commands_options_and_choices(ledger, words, wanted):
    env = {"_LEDGER_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(len(words.split()) - 1)}
    assert ledger(env=env).out.splitlines() == [wanted]
