"""Scenarios: the YAML file of a task, with everything that takes part in a run.

Invariants:
* A scenario names a toolset, packs, what is known from the start, and who proposes.
* Paths are relative to the scenario's own file (for standard input: to the current folder).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, model_validator

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


class Decide(Model):
    """The decision engine: exactly one of these."""

    script: list[ScriptEntry] | None = Field(None, description="Read from the top before every step.")
    recording: RecordingModel | None = Field(None, description="Proposals and results of a recorded run.")

    @model_validator(mode="after")
    def _one_of(self) -> Decide:
        if (self.script is None) == (self.recording is None):
            raise ValueError("decide has either a script or a recording")
        return self


class GoalModel(Model):
    """A goal; its subgoals close it, or its `done_when`."""

    name: str = Field(description="How `goals.NAME` and `state.goal` call it.")
    done_when: ExpressionText | None = Field(None, description="Closes it once this holds.")
    goals: list[GoalModel] = Field([], description="What it consists of.")

    def goal(self) -> Goal:
        """Return the goal without its condition."""
        return Goal(self.name, tuple(below.goal() for below in self.goals))


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
    answer: TemplateText | None = Field(None, description="The answer, made from the final state.")
    expect: dict[str, Any] | None = Field(None, description="Path → value; `status` too. Makes it a test.")


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
