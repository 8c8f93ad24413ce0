"""What a ledger says of a model that was asked, held against what can be known of it.

Invariants:
* Pure: lines come in, what they should say comes out.
* What asking took (tokens, cost, time, the prompt's digest) nothing else in a ledger tells; only its form is held, and
  that it was this model that was asked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import orjson
from pydantic import ValidationError

from ledgercli import paths
from ledgercli.decision import ENGINES
from ledgercli.scenario import ModelSettings

_ASKED: Final = ("model", "tokens", "cost", "seconds", "prompt", "faults")
_TOKENS: Final = ("prompt", "completion")
_FAULT: Final = ("kind", "said")
_TEMPLATE: Final = "template_text"


def engine_faults(said: Mapping[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    """Yield what a description of a model that proposes should say otherwise."""
    values = {key: value for key, value in said.items() if key not in ("kind", _TEMPLATE)}
    try:
        settings = ModelSettings.model_validate(values)
    except ValidationError as error:
        for one in error.errors(include_url=False):
            yield ".".join(("engine", *map(str, one["loc"]))), one["input"], one["msg"]
        return
    written = {"kind": "model", **settings.model_dump(exclude_none=True)}
    if settings.calls == "auto":
        yield "engine.calls", "auto", "tools or json_schema"
    if (_TEMPLATE in said) != (settings.template is not None):
        yield f"engine.{_TEMPLATE}", said.get(_TEMPLATE), settings.template
    elif isinstance(said.get(_TEMPLATE), str):
        written[_TEMPLATE] = said[_TEMPLATE]
    if not _same(written, said):
        yield "engine", said, written


def asking_faults(
    record: Mapping[str, Any], engine: Mapping[str, Any], writer: str | None = None, summariser: str | None = None
) -> Iterator[tuple[str, Any, Any]]:
    """Yield what a line should say otherwise of what asking took, or of who proposes from it on.

    Arguments:
        record: the line.
        engine: who proposes up to there, as a line says it.
        writer: the model that writes the answer at the end, if one does.
        summariser: the model that writes what older steps came to, if one does.

    """
    said, kind = record.get("engine"), record["kind"]
    if kind == "summary" and engine["kind"] in ENGINES:
        yield from _summary_faults(record, engine, summariser)
    elif said is None:
        if "engine" in record:
            yield "engine", None, "no such key"
    elif kind == "resume":
        yield from _going_on_faults(said, engine)
    else:
        proposes = engine["model"] if engine["kind"] == "model" else None
        models = [proposes, writer] if kind == "close" else [proposes]
        yield from _asked_faults(said, engine, [model for model in models if model is not None])


def _summary_faults(
    record: Mapping[str, Any], engine: Mapping[str, Any], summariser: str | None
) -> Iterator[tuple[str, Any, Any]]:
    """Yield what a summary that the loop wrote should say otherwise; its text nothing else tells."""
    text, said = record["text"], record.get("engine")
    if summariser is None or engine["kind"] != "model":
        yield "text", text, "no such line: no model sums up steps here"
    elif said is None:
        yield "engine", None, "what asking took"
    elif (text is None) != bool(said.get("faults")):
        yield "text", text, "null where there is a fault, and a text where there is none"
    else:
        yield from _asked_faults(said, engine, [summariser])


def _going_on_faults(said: Mapping[str, Any], engine: Mapping[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    """Yield what a resumption should say otherwise of who proposes from it on."""
    if engine["kind"] not in ("script", "model") or said["kind"] not in ("script", "model"):
        yield "engine.kind", said["kind"], engine["kind"]
    elif _same(said, engine):
        yield "engine", said, "nothing: it is the same as before"
    elif said["kind"] == "model":
        yield from engine_faults(said)


def _asked_faults(
    said: Mapping[str, Any], engine: Mapping[str, Any], models: Sequence[str]
) -> Iterator[tuple[str, Any, Any]]:
    """Yield what a line should say otherwise of what asking one of these models took."""
    if engine["kind"] in ("script", "recording") and not models:
        yield "engine", said, f"nothing: a {engine['kind']} is not asked"
        return
    if models and said["model"] not in models:
        yield "engine.model", said["model"], " or ".join(models)
    if not _same(written := _written(said), said):
        yield "engine", said, written


def _written(said: Mapping[str, Any]) -> dict[str, Any]:
    """What asking took, as it is written when it says this."""
    written = _ordered(said, _ASKED) | {"tokens": _ordered(said["tokens"], _TOKENS)}
    written["faults"] = [_ordered(one, _FAULT) for one in said.get("faults", ())]
    if not written["faults"]:
        del written["faults"]
    return written


def _ordered(part: Mapping[str, Any], keys: Sequence[str]) -> dict[str, Any]:
    return {key: part[key] for key in keys if key in part}


def _same(one: Any, other: Any) -> bool:
    return orjson.dumps(one, paths.plain) == orjson.dumps(other, paths.plain)
