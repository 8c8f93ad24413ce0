"""Every key of every kind of file does something: it has a case that changes the outcome, and one that does not.

The outcome is what `validate` says and, where all is well, how the run goes. What is only shown in reports changes none.
"""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from ledgercli import cases, schemas, sources
from ledgercli.documents import parse
from ledgercli.errors import LedgerCliError
from ledgercli.runs import Options, prepare
from ledgercli.scenario import ModelSettings
from ledgercli.validation import validate

from .keys_table import KEYS, WORLD, Edit, Key

#: They tell reports what to show, and nothing else.
SHOWN = {
    "pack PackFile.description",
    "pack PackFile.version",
    "pack RuleModel.description",
    "pack RuleModel.category",
    "toolset ToolsetFile.toolset",
    "toolset ToolsetFile.description",
    "toolset Tool.description",
    "scenario ScenarioFile.scenario",
    "scenario ScenarioFile.description",
    "cases CasesFile.cases",
    "cases CasesFile.description",
}
#: Maps and words that say everything by being there: the edit that changes nothing changes no data either.
BARE = {
    "toolset UserRun.user",
    "toolset ConfirmRun.confirm",
    "toolset PlanRun.plan",
    "scenario RecordingModel.format",
    "scenario GoalModel.name",
}
#: They are about a model: what each does, `model/test_settings.py` tells, in a session that has litellm.
ASKED = {"scenario Decide.model", *(f"scenario ModelSettings.{key}" for key in ModelSettings.model_fields)}
KINDS = ("pack", "toolset", "scenario", "cases")
VERDICT = ("effect", "failed", "warned", "overridden", "shadowed", "reason", "hint")


def keys_of(kind: Any) -> Iterator[str]:
    schema = schemas.schema(kind)
    for model, part in [(schema["title"], schema), *schema.get("$defs", {}).items()]:
        if kind == "pack" and hasattr(cases, model):  # a rule's examples are cases, whose keys have cases of their own
            continue
        yield from (f"{kind} {model}.{key}" for key in part.get("properties", {}))


def test_every_key_has_its_cases() -> None:
    assert {key for kind in KINDS for key in keys_of(kind)} - ASKED == set(KEYS)
    assert {key for key, case in KEYS.items() if case.changes is None} == SHOWN


class Echo(BaseHTTPRequestHandler):
    """Answers with what it was asked."""

    def _answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
        asked = [self.command, self.path, body, self.headers.get("X-Key")]
        text = json.dumps({"price": 1, "colours": asked}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    do_GET = do_POST = do_PUT = _answer  # noqa: N815 - what http.server calls

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Echo)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server.server_port
    server.shutdown()
    thread.join()
    server.server_close()


def edited(world: Mapping[str, str], edits: tuple[Edit, ...]) -> dict[str, str]:
    made = dict(world)
    for file, old, new in edits:
        assert old in made[file], (file, old)
        made[file] = made[file].replace(old, new, 1)
    return made


def outcome(world: Mapping[str, str], folder: Path, port: int) -> Any:
    """What `validate` says of a world; where all is well, how its run goes."""
    folder.mkdir()
    for name, text in world.items():
        (folder / name).write_text(text.replace("PORT", str(port)), encoding="utf-8")
    found = validate([str(folder)])
    if found.exit_code:
        return [(one.code, one.message.replace(str(folder), "")) for one in found.problems]
    recorded = "recording:" in world["scenario.yaml"]
    out = str(folder / "out") if recorded else str(folder / "run.ledger.jsonl")
    try:
        return _ran(str(folder / "scenario.yaml"), out)
    except LedgerCliError as error:
        return error.message.replace(str(folder), "")


def _ran(scenario: str, out: str) -> Any:
    [(_, jobs)] = prepare([scenario], Options(out=out, sync="none"))
    told = []
    for job in jobs:
        ended = job.run(None, lambda _proposal, _verdict: None, lambda _line: None)
        lines = [json.loads(line) for line in job.ledger.read_text(encoding="utf-8").splitlines()]
        steps = [_told(line) for line in lines if line["kind"] == "step"]
        told.append((ended.status, ended.answer, steps, job.unmet(ended)))
    return told


def _told(line: dict[str, Any]) -> Any:
    verdict = [line["verdict"].get(part) for part in VERDICT]
    args = {key: value for key, value in line["action"]["args"].items() if "hmac" not in str(value)}
    diff = {key: value for key, value in line.get("state_diff", {}).items() if not key.startswith("facts.seen[")}
    seen = sorted(key for key in line.get("state_diff", {}) if key.startswith("facts.seen"))
    return line["action"]["tool"], args, verdict, line["outcome"], line["result"], diff, seen, line.get("state_unset")


def keys_changed(kind: Any, before: str, after: str) -> set[str]:
    """The keys above all that differs between two files of a kind."""
    schema = schemas.schema(kind)
    first, second = (parse(sources.Source.of("x", text)).data for text in (before, after))
    return {f"{kind} {key}" for key in _changed(schema, schema.get("$defs", {}), first, second)}


def _changed(schema: Any, definitions: Mapping[str, Any], before: Any, after: Any) -> Iterator[str]:
    if before == after and type(before) is type(after):
        return
    for branch in _branches(schema, definitions):
        fixed, more = branch.get("properties", {}), branch.get("additionalProperties")
        for key in {*_keys(before), *_keys(after)}:
            one, other = _at(before, key), _at(after, key)
            if one == other and type(one) is type(other):
                continue
            if key in fixed:
                yield f"{branch['title']}.{key}"
            below = fixed.get(key, more if isinstance(key, str) else branch.get("items"))
            yield from _changed(below, definitions, one, other)


def _keys(value: Any) -> Any:
    return value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()


def _at(value: Any, key: Any) -> Any:
    if isinstance(value, dict):
        return value.get(key, _at)
    return value[key] if isinstance(value, list) and isinstance(key, int) and key < len(value) else _at


def _branches(schema: Any, definitions: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    if not isinstance(schema, Mapping):
        return
    if "$ref" in schema:
        schema = definitions[schema["$ref"].rpartition("/")[2]]
    below = list(itertools.chain(*(schema.get(word, ()) for word in ("anyOf", "oneOf", "allOf"))))
    for branch in below or [schema]:
        if below:
            yield from _branches(branch, definitions)
        else:
            yield branch


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("KEYS_TEST", "one"), ("KEYS_SAME", "one"), ("KEYS_OTHER", "two")):
        monkeypatch.setenv(name, value)


def touches(key: str, world: Mapping[str, str], edit: Edit) -> bool:
    changed = edited(world, (edit,))
    return key in keys_changed(key.partition(" ")[0], world[edit[0]], changed[edit[0]])


@pytest.mark.slow
@pytest.mark.parametrize("key", sorted(set(KEYS) - SHOWN))
def test_a_key_can_change_the_outcome(key: str, tmp_path: Path, port: int) -> None:
    case = KEYS[key]
    assert case.changes is not None
    world = edited(WORLD, case.given)
    assert touches(key, world, case.changes)
    before, after = outcome(world, tmp_path / "a", port), outcome(edited(world, (case.changes,)), tmp_path / "b", port)
    assert before != after


@pytest.mark.slow
@pytest.mark.parametrize("key", KEYS)
def test_a_key_need_not_change_the_outcome(key: str, tmp_path: Path, port: int) -> None:
    case: Key = KEYS[key]
    world = edited(WORLD, (*case.given, *case.quiet))
    assert touches(key, world, case.same) != (key in BARE)
    assert outcome(world, tmp_path / "a", port) == outcome(edited(world, (case.same,)), tmp_path / "b", port)
