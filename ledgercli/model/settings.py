"""Which model is asked, and how: as the scenario says, or the command line in its place.

Invariants:
* All that can be refused is refused here, before anything runs.
* A ledger's first line says all of it, but never a key: the name of the variable that holds one at most.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from ledgercli.errors import LedgerCliError
from ledgercli.model import calling
from ledgercli.model.reading import Calls
from ledgercli.scenario import ModelSettings, Scenario

_TEMPLATE = "template_text"  # beside the template's path, in a ledger


@dataclass(frozen=True, slots=True)
class Settled:
    """A model, ready to be asked.

    Arguments:
        settings: as they are in force.
        calls: how it says which tool it calls.
        template: the text of a prompt template.

    """

    settings: ModelSettings
    calls: Calls
    template: str | None = None

    def described(self) -> dict[str, Any]:
        """Who proposes, as a ledger's first line says it."""
        said = {"kind": "model", **self.settings.model_dump(exclude_none=True), "calls": self.calls}
        return said if self.template is None else {**said, _TEMPLATE: self.template}


def chosen(scenario: Scenario, flags: Mapping[str, Any], said: Mapping[str, Any] | None = None) -> ModelSettings | None:
    """Return which model proposes in a scenario; None if none does.

    Arguments:
        scenario: says it in `decide`.
        flags: what the command line says, by the names of settings.
        said: what the ledger says of a run that goes on, in place of the scenario.

    Raises:
        LedgerCliError: they do not go together.

    """
    base = _settings_of(said) if said is not None else scenario.file.decide.model
    if base is None and not flags:
        return None
    if scenario.file.decide.recording is not None:
        raise LedgerCliError(f"{scenario.name} is a recording, which holds what was proposed; no model is asked")
    if base is None and "model" not in flags:
        raise LedgerCliError(
            f"--{next(iter(flags)).replace('_', '-')} goes with a model, and {scenario.name} has a script",
            fix="--model PROVIDER/NAME asks a model in its place",
        )
    return _made({**(base.model_dump() if base else {}), **flags})


def carried_template(said: Mapping[str, Any] | None) -> str | None:
    """Return the text of the template that a ledger carries."""
    return None if said is None else said.get(_TEMPLATE)


def settle(settings: ModelSettings, folder: Path, template: str | None = None) -> Settled:
    """Get a model ready to be asked.

    Arguments:
        settings: as they are in force.
        folder: what the path of a template is relative to.
        template: its text, where that is not read there.

    Raises:
        LedgerCliError: it cannot be asked as the settings say.
        EngineError: its key is missing.

    """
    calling.ready(settings)
    calls: Calls = "json_schema"
    if settings.calls != "auto":
        calls = settings.calls
    elif calling.native(settings.model):
        calls = "tools"
    if template is None and settings.template is not None:
        template = _text(folder / settings.template)
    return Settled(settings, calls, template)


def _settings_of(said: Mapping[str, Any]) -> ModelSettings | None:
    """The settings that a ledger's line says; None where another engine stands there."""
    if said["kind"] != "model":
        return None
    return _made({key: value for key, value in said.items() if key not in ("kind", _TEMPLATE)})


def _made(values: Mapping[str, Any]) -> ModelSettings:
    try:
        return ModelSettings.model_validate(dict(values))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        name = ".".join(map(str, first["loc"]))
        message = str(first["msg"]).removeprefix("Value error, ")
        raise LedgerCliError(f"{name}: {message[0].lower()}{message[1:]}") from None


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise LedgerCliError(f"the prompt template {path} cannot be read: {error}") from error
