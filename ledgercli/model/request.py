"""What a model is sent: the messages, and the calls that it may make, as tools or as one JSON Schema.

Invariants:
* Pure; the same prompt and tools give the same bytes, and so the same digest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import orjson

from ledgercli import paths, records
from ledgercli.model.reading import Calls
from ledgercli.toolset import Tool


@dataclass(frozen=True)
class Request:
    """One request.

    Arguments:
        messages: role and content of each.
        more: `tools`, or `response_format`; neither where text is wanted.

    """

    messages: Sequence[Mapping[str, str]]
    more: Mapping[str, Any]

    @cached_property
    def body(self) -> dict[str, Any]:
        """All of it, as it is kept and digested."""
        return {"messages": list(self.messages), **self.more}

    @cached_property
    def digest(self) -> str:
        """The digest of the exact prompt."""
        return records.digest(orjson.dumps(self.body, paths.plain))


def request(
    messages: Sequence[Mapping[str, str]], offered: Sequence[str], tools: Mapping[str, Tool], calls: Calls
) -> Request:
    """Return the request for a call.

    Arguments:
        messages: the prompt.
        offered: the names of the tools that may be called.
        tools: all tools.
        calls: how the model says which it calls.

    """
    known = {name: tools[name] for name in offered if name in tools}
    if calls == "tools":
        return Request(messages, {"tools": [_function(name, tool) for name, tool in known.items()]})
    schema = {"oneOf": [_decision(name, tool) for name, tool in known.items()]}
    said = {"type": "json_schema", "json_schema": {"name": "decision", "schema": schema}}
    return Request(messages, {"response_format": said})


def _function(name: str, tool: Tool) -> dict[str, Any]:
    function = {"name": name, "description": tool.description, "parameters": _args(tool)}
    return {"type": "function", "function": function}


def _decision(name: str, tool: Tool) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {"tool": {"const": name}, "args": _args(tool)},
        "required": ["tool", "args"],
        "additionalProperties": False,
    }


def _args(tool: Tool) -> dict[str, Any]:
    return dict(tool.schema_of_args)
