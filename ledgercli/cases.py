"""Cases as they stand in YAML: one expectation on one proposal in one state each.

Invariants:
* A case under `tests:` of a case file and one under a rule's `examples:` are written alike.
* Nothing is judged here; what is wrong with the names in a case is `policytests`' work.
"""

from __future__ import annotations

from typing import Any

from pydantic import Field

from ledgercli.documents import Model, TemplateText, TemplateTree


class StateModel(Model):
    """The parts of a state."""

    task: str | None = Field(None, description="What is to be done.")
    facts: dict[str, Any] = Field({}, description="What is known.")
    constraints: dict[str, Any] = Field({}, description="Limits, and what rules read.")
    flags: dict[str, bool] = Field({}, description="Flags that are set.")
    goals: dict[str, bool] = Field({}, description="Goals that are closed.")


class HistoryModel(Model):
    """One past step; it feeds the functions over past steps only."""

    tool: str = Field(description="The tool's name.")
    args: dict[str, Any] = Field({}, description="Its arguments.")
    success: bool = Field(True, description="Whether it went well.")
    data: Any = Field(None, description="What it returned.")
    denied: bool = Field(False, description="Whether it was refused.")


class ProposeModel(Model):
    """The proposal to judge."""

    tool: TemplateText = Field(description="The tool's name.")
    args: dict[str, TemplateTree] = Field({}, description="Its arguments.")


class ExpectModel(Model):
    """What the verdict must be."""

    effect: TemplateText | None = Field(None, description="allow, warn, require_approval or deny.")
    rules: list[str] | None = Field(None, description="Exactly these rules failed or warned.")
    rules_include: list[str] | None = Field(None, description="These are among them.")
    error: TemplateText | None = Field(None, description="The message.")
    hint: TemplateText | None = Field(None, description="The hint.")
    halts: bool | None = Field(None, description="Whether the run ends here.")

    @property
    def says_something(self) -> bool:
        """Whether any verdict at all is other than expected; that no certain rule is among those says nothing."""
        return bool(self.rules_include) or any(
            getattr(self, key) is not None for key in ("effect", "rules", "error", "hint", "halts")
        )


class CaseModel(Model):
    """One case."""

    name: TemplateText = Field(description="What it shows, in a sentence.")
    state: StateModel = Field(default_factory=StateModel, description="Merged over the file's state.")
    unset: list[str] = Field([], description="Paths that are not known.")
    history: list[HistoryModel] = Field([], description="Past steps.")
    propose: ProposeModel | None = Field(None, description="The proposal; as recorded if left out with `at`.")
    at: str | None = Field(None, description="LEDGER@STEP: the proposal as recorded, in the state before that step.")
    expect: TemplateText | ExpectModel = Field(description="The effect alone, or effect, rules, error and hint.")
    rows: list[dict[str, Any]] | None = Field(None, alias="for", description="One case per row; `row` is its values.")
    skip: str | None = Field(None, description="Why it is not judged at present.")

    @property
    def expected(self) -> ExpectModel:
        """What is expected, in the long form."""
        return self.expect if isinstance(self.expect, ExpectModel) else ExpectModel(effect=self.expect)


class CasesFile(Model):
    """Cases for one or more packs."""

    cases: str = Field(description="Its name.")
    description: str = Field("", description="What it proves.")
    packs: list[str] = Field(description="Paths, or `ledgercli:NAME`.")
    toolset: str = Field(description="Path of the toolset.")
    now: str | None = Field(None, description="The time of every proposal (RFC 3339).")
    state: StateModel = Field(default_factory=StateModel, description="The state of every case.")
    tests: list[CaseModel] = Field(description="The cases.")
