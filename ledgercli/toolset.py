"""Toolsets: the declared tools, how each runs, and the transitions that its result causes.

Invariants:
* A tool that says nothing about its access is a write; `user`, `confirm`, `plan` and `finish` are reads whatever the
  file says.
* `finish` is always there.
* Nothing here runs or imports a tool's code.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

import jsonschema_rs
from pydantic import Field, PositiveFloat, model_validator

from ledgercli.documents import Document, ExpressionText, ExpressionTree, Model, TemplateText

Access = Literal["read", "write"]
Finish = Literal["completed", "failed", "halted"]
FINISH = "finish"
USER = "user"
DEFAULT_TIMEOUT = 30.0  # seconds


class Block(Model):
    """A declared change of state; all blocks whose `when` holds apply, each reading the state before."""

    when: ExpressionText | None = Field(None, description="Only if this holds; judged per item where there is `each`.")
    each: ExpressionText | None = Field(None, description="A list; the block applies once per `item` of it.")
    set: dict[str, ExpressionTree] = Field({}, description="Path → expression for its new value.")
    unset: list[str] = Field([], description="Paths to remove.")
    finish: Finish | None = Field(None, description="Ends the run with this status.")


class HeaderFromEnvironment(Model):
    """A header whose value is a secret."""

    env: str = Field(description="The environment variable that holds the value.")
    prefix: str = Field("", description="What stands before the value, such as `Bearer `.")


class Http(Model):
    """A tool behind a URL; arguments go as query (GET, DELETE) or as a JSON body."""

    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE"] = Field("POST", description="The HTTP method.")
    url: TemplateText = Field(description="http or https; `{action.args.x}` is percent-encoded.")
    headers: dict[str, str | HeaderFromEnvironment] = Field({}, description="Literal values or `{env: NAME}`.")


class Canned(Model):
    """A recorded answer."""

    args: dict[str, Any] = Field({}, description="The arguments that must be part of the call's.")
    result: Any = Field(description="What the tool returns then.")


class Nothing(Model):
    """Says nothing more."""


class PythonRun(Model):
    """Runs a Python function."""

    python: str = Field(description="`file.py:function` or `package.module:function`; sync or async.")


class CommandRun(Model):
    """Runs a program, never through a shell."""

    command: list[str] = Field(min_length=1, description="argv; the arguments come on standard input as JSON.")


class HttpRun(Model):
    """Asks a server."""

    http: Http


class CannedRun(Model):
    """Answers from a list."""

    canned: list[Canned] = Field(description="The first whose `args` are part of the call's; none: failed.")


class UserRun(Model):
    """Asks the person, or takes the scenario's next reply."""

    user: Nothing


class ConfirmRun(Model):
    """Shows exactly one call (`tool`, `args`) to the person and succeeds with yes or no."""

    confirm: Nothing


class PlanRun(Model):
    """Changes the goals: `push` adds below the current one, `done` closes one."""

    plan: Nothing


Run = PythonRun | CommandRun | HttpRun | CannedRun | UserRun | ConfirmRun | PlanRun
RUN_KINDS: Mapping[str, type[Model]] = {
    "python": PythonRun,
    "command": CommandRun,
    "http": HttpRun,
    "canned": CannedRun,
    "user": UserRun,
    "confirm": ConfirmRun,
    "plan": PlanRun,
}
#: What a `plan` tool takes unless it says so itself.
PLAN_ARGS: Mapping[str, dict[str, Any]] = {
    "push": {
        "description": "Subgoals to add below the current goal.",
        "type": ["array", "string"],
        "items": {"type": "string"},
        "default": [],
    },
    "done": {"description": "The goal that is reached.", "type": "string", "default": ""},
}


class Tool(Model):
    """One tool that an engine may propose."""

    description: str = Field("", description="What it does, for people and models.")
    access: Access = Field("write", description="`read` has no effect outside; what says nothing is a write.")
    tags: list[str] = Field([], description="Groups that rules name, such as `charge`.")
    args: dict[str, dict[str, Any]] = Field({}, description="JSON Schema of each; required unless it has a default.")
    returns: dict[str, Any] | None = Field(None, description="JSON Schema of the data; types what follows.")
    run: Run | None = Field(None, description="How it runs; left out where something else runs it.")
    timeout: PositiveFloat = Field(DEFAULT_TIMEOUT, description="Seconds until a call counts as failed.")
    retries: Annotated[int, Field(ge=0, le=10)] = Field(0, description="More tries of a failed read.")
    fails_when: ExpressionText | None = Field(None, description="What counts as a failure instead of the usual signs.")
    on_success: Block | list[Block] = Field([], description="What changes after a success.")
    on_failure: Block | list[Block] = Field([], description="What changes after a failure.")

    @model_validator(mode="after")
    def _reads(self) -> Tool:
        if isinstance(self.run, (UserRun, ConfirmRun, PlanRun)):
            self.access = "read"
        if isinstance(self.run, PlanRun) and not self.args:
            self.args = dict(PLAN_ARGS)
        return self

    @property
    def asks_person(self) -> bool:
        """Whether what it returns is what a user said."""
        return isinstance(self.run, UserRun)

    @property
    def acts(self) -> bool:
        """Whether something outside runs it."""
        return isinstance(self.run, (PythonRun, CommandRun, HttpRun))

    @property
    def plans(self) -> bool:
        """Whether it changes the goals."""
        return isinstance(self.run, PlanRun)

    def blocks(self, *, success: bool) -> list[tuple[tuple[str | int, ...], Block]]:
        """Return the blocks that apply after success or failure, each with its place in the tool's entry."""
        name = "on_success" if success else "on_failure"
        blocks = self.on_success if success else self.on_failure
        if isinstance(blocks, Block):
            return [((name,), blocks)]
        return [((name, number), block) for number, block in enumerate(blocks)]

    @cached_property
    def defaults(self) -> dict[str, Any]:
        """Arguments that need not be given, with the values that they then have."""
        return {name: schema["default"] for name, schema in self.args.items() if "default" in schema}

    @cached_property
    def schema_of_args(self) -> dict[str, Any]:
        """JSON Schema of all arguments together; an argument that is not declared is refused."""
        return {
            "type": "object",
            "properties": self.args,
            "required": [name for name, schema in self.args.items() if "default" not in schema],
            "additionalProperties": False,
        }

    @cached_property
    def validator(self) -> Any:
        """The compiled schema of the arguments."""
        return jsonschema_rs.validator_for(self.schema_of_args)

    def filled(self, args: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return `args` with defaults for those that were left out."""
        return {**self.defaults, **args} if self.defaults else args


class ToolsetFile(Model):
    """A toolset: the tools, and how each runs and changes the state."""

    toolset: str = Field(description="Its name.")
    description: str = Field("", description="What these tools are for.")
    fails_when: ExpressionText | None = Field(None, description="For every tool that has none of its own.")
    redact: list[str] = Field([], description="`TOOL.args.x` or `TOOL.data.y`: masked before anything is written.")
    tools: dict[str, Tool] = Field(description="Name → tool.")


FINISH_TOOL = Tool.model_validate(
    {
        "description": "Ends the run with an answer.",
        "access": "read",
        "args": {"answer": {"default": None}},
        "on_success": {"set": {"final_answer": "action.args.answer"}, "finish": "completed"},
    }
)
USER_TOOL = Tool.model_validate(
    {"description": "What the user said, in a recording.", "access": "read", "run": {"user": {}}}
)
BUILT_IN: Mapping[str, Tool] = {FINISH: FINISH_TOOL}


@dataclass(frozen=True, eq=False)
class Toolset:
    """A toolset as it was read.

    Arguments:
        file: its contents.
        document: where they stand, for errors.
        folder: what its paths are relative to.

    """

    file: ToolsetFile
    document: Document
    folder: Path

    @property
    def name(self) -> str:
        """Its name."""
        return self.file.toolset

    @cached_property
    def tools(self) -> Mapping[str, Tool]:
        """All tools, the built-in ones included."""
        return {**BUILT_IN, **self.file.tools}
