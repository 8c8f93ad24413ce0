"""The JSON Schema of every kind of file.

Invariants:
* A schema is made from the model that reads the file, so the two never differ.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, get_args

from ledgercli.sources import Kind

if TYPE_CHECKING:
    from pydantic import BaseModel

KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
_DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"


def schema(kind: Kind) -> dict[str, Any]:
    """Return the JSON Schema of a kind of file; of a ledger that of a line."""
    if kind == "ledger":
        from ledgercli.ledger import entries

        return entries.schema()
    return {"$schema": _DIALECT, **_model(kind).model_json_schema(by_alias=True)}


def _model(kind: Kind) -> type[BaseModel]:
    """Return the model that reads a kind of file."""
    match kind:
        case "scenario":
            from ledgercli.scenario import ScenarioFile

            return ScenarioFile
        case "pack":
            from ledgercli.policy import PackFile

            return PackFile
        case "toolset":
            from ledgercli.toolset import ToolsetFile

            return ToolsetFile
        case "cases":
            from ledgercli.cases import CasesFile

            return CasesFile
        case "ledger":
            raise AssertionError("a ledger's schema is that of its lines")
