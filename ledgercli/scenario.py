"""Scenarios: the YAML file of a task, with everything that takes part in a run.

Invariants:
* A scenario names a toolset, packs, what is known from the start, and who proposes.
* Paths are relative to the scenario's own file (for standard input: to the current folder).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import ConfigDict, Field, PositiveFloat, PositiveInt, field_validator, model_validator
from typing_extensions import TypedDict

from ledgercli.documents import Document, ExpressionText, Model, TemplateText, TemplateTree
from ledgercli.policy import Pack
from ledgercli.state import Goal
from ledgercli.toolset import Toolset

RecordingFormat = Literal["tau-bench", "tau2-bench", "trajectories", "openai-chat"]


class Propose(Model):
    """A tool call to propose."""

    tool: TemplateText = Field(description="The tool's name.")
    args: dict[str, TemplateTree] = Field({}, description="Argument → text or value.")


class ScriptEntry(Model):
    """One entry of a script; the first whose `when` holds proposes."""

    when: ExpressionText | None = Field(None, description="A condition over the state.")
    propose: Propose


class RecordingModel(Model):
    """A recorded transcript to take proposals and results from."""

    file: str = Field(description="The transcript's path.")
    format: RecordingFormat = Field(description="How it is written.")


class ModelSettings(Model):
    """A language model, asked through litellm before every step."""

    model: str = Field(min_length=1, description="PROVIDER/NAME, as litellm calls it.")
    api_base: str | None = Field(None, description="The server's URL, where it is not the provider's own.")
    api_key_env: str | None = Field(None, description="The environment variable that holds the key, if another.")
    temperature: float | None = Field(None, ge=0, le=2, description="The provider's own if left out.")
    timeout: PositiveFloat = Field(60.0, description="Seconds until a reply must be there, whole.")
    max_tokens: PositiveInt | None = Field(None, description="Tokens of a reply; one that is cut there is not used.")
    max_cost: PositiveFloat | None = Field(None, description="US dollars; once they are spent nothing more is asked.")
    calls: Literal["auto", "tools", "json_schema"] = Field(
        "auto", description="Native tool calls, or one JSON object; auto: what litellm says that the model can do."
    )
    stream: bool = Field(False, description="Whether replies come in pieces.")
    offer: Literal["permitted", "all"] = Field(
        "permitted", description="permitted: without tools that a rule forbids outright in this state."
    )
    select: Literal["relevant", "all"] = Field("relevant", description="Which facts the prompt holds.")
    template: str | None = Field(None, description="Path of a prompt template of your own.")
    retries: int = Field(3, ge=0, le=10, description="More tries where a server cannot be reached, is busy or fails.")

    @field_validator("api_base")
    @classmethod
    def _is_url(cls, value: str | None) -> str | None:
        """A key in a URL would stand in the ledger."""
        url = urlsplit(value or "http://x")
        if url.scheme not in ("http", "https") or not url.hostname or url.username or url.password or url.query:
            raise ValueError("api_base is http:// or https://, a host and a path; a key never stands there")
        return value

    @field_validator("api_key_env")
    @classmethod
    def _is_name(cls, value: str | None) -> str | None:
        if value is not None and not re.fullmatch(r"[A-Z][A-Z0-9_]*", value):
            raise ValueError("api_key_env names an environment variable, as OPENAI_API_KEY; never the key itself")
        return value


class Decide(Model):
    """The decision engine: exactly one of these."""

    script: list[ScriptEntry] | None = Field(None, description="Read from the top before every step.")
    recording: RecordingModel | None = Field(None, description="Proposals and results of a recorded run.")
    model: ModelSettings | None = Field(None, description="A language model.")

    @model_validator(mode="after")
    def _one_of(self) -> Decide:
        if [self.script, self.recording, self.model].count(None) != 2:
            raise ValueError("decide has either a script, a recording or a model")
        return self


class GoalModel(Model):
    """A goal; its subgoals close it, or its `done_when`."""

    name: str = Field(description="How `goals.NAME` and `state.goal` call it.")
    done_when: ExpressionText | None = Field(None, description="Closes it once this holds.")
    goals: list[GoalModel] = Field([], description="What it consists of.")

    def goal(self) -> Goal:
        """Return the goal without its condition."""
        told = self.done_when is not None and not self.goals
        return Goal(self.name, tuple(below.goal() for below in self.goals), told=told)


class WrittenAnswer(Model):
    """An answer that a model writes; it sees the task and the final state, and nothing else."""

    model: ModelSettings = Field(description="The model; of its settings those about tool calls mean nothing here.")


class WrittenFolds(Model):
    """What older steps came to, written by a model in place of what is made of their counts."""

    model: ModelSettings = Field(description="The model; of its settings those about tool calls mean nothing here.")


class ExpectedRules(Model):
    """Which rules must have failed in some step, and which in none; `rule` or `pack/rule`."""

    failed: list[str] = Field([], description="Each must have failed or warned, also where it was only watched.")
    not_failed: list[str] = Field([], description="None may have.")


class ExpectedCall(Model):
    """A call that ran, whatever came of it."""

    tool: str = Field(description="The tool's name.")
    args: dict[str, Any] = Field({}, description="What must be part of its arguments.")


class Expect(TypedDict, total=False):
    """What passing means; every other key is `status`, `answer` or a path of the final state, with its value."""

    __pydantic_config__ = ConfigDict(extra="allow", strict=True)  # type: ignore[misc]

    rules: Annotated[ExpectedRules, Field(description="Rules that must have failed, and that must not.")]
    calls: Annotated[list[ExpectedCall], Field(description="Calls that must have run.")]
    no_calls: Annotated[list[ExpectedCall], Field(description="Calls that must not have run.")]


class ScenarioFile(Model):
    """A task: tools, initial facts, constraints, packs, decision engine."""

    scenario: str = Field(description="Its name.")
    description: str = Field("", description="What it shows.")
    task: str = Field("", description="What is to be done, in the user's words.")
    toolset: str = Field(description="Path of the toolset.")
    packs: list[str] = Field([], description="Paths, or `ledgercli:NAME`.")
    facts: dict[str, Any] = Field({}, description="What is known from the start.")
    constraints: dict[str, Any] = Field({}, description="Limits, and what rules read.")
    flags: dict[str, bool] = Field({}, description="Flags that are set from the start.")
    goals: list[GoalModel] = Field([], description="What is to be reached, in order.")
    replies: list[str | bool] = Field([], description="What the user says, in order.")
    now: str | None = Field(None, description="The time of every proposal (RFC 3339); the clock if left out.")
    decide: Decide
    answer: TemplateText | WrittenAnswer | None = Field(None, description="The answer, made from the final state.")
    summarise: WrittenFolds | None = Field(
        None, description="Who writes for the model that decides what older steps came to; counts tell it if left out."
    )
    expect: Expect | None = Field(None, description="What passing means: status, paths, rules, calls. Makes it a test.")

    @model_validator(mode="after")
    def _somebody_reads_folds(self) -> ScenarioFile:
        if self.summarise is not None and self.decide.model is None:
            raise ValueError("summarise goes with decide: {model: ...}; nobody else reads what older steps came to")
        return self

    @property
    def answer_text(self) -> str | None:
        """The text that the answer is made of; None where there is none, or a model writes it."""
        return self.answer if isinstance(self.answer, str) else None

    @property
    def writer(self) -> ModelSettings | None:
        """The model that writes the answer, if one does."""
        return self.answer.model if isinstance(self.answer, WrittenAnswer) else None

    @property
    def summariser(self) -> ModelSettings | None:
        """The model that writes what older steps came to, if one does."""
        return None if self.summarise is None else self.summarise.model


@dataclass(frozen=True, slots=True, eq=False)
class Scenario:
    """A scenario as it was read, with the files it names.

    Arguments:
        file: its contents.
        document: where they stand, for errors.
        folder: what its paths are relative to.
        toolset: the tools.
        packs: its packs and those they include, each once.
        replaced: names of packs whose place one of the command line took.
        added: names of packs that the command line added.

    """

    file: ScenarioFile
    document: Document
    folder: Path
    toolset: Toolset
    packs: Sequence[Pack]
    replaced: Sequence[str] = ()
    added: Sequence[str] = ()

    @property
    def name(self) -> str:
        """Its name."""
        return self.file.scenario

    @property
    def goals(self) -> tuple[Goal, ...]:
        """Its goals."""
        return tuple(goal.goal() for goal in self.file.goals)
