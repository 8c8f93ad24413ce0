"""Packs: the rules that judge proposals, as they stand in YAML.

Invariants:
* An included file is a pack of its own; a pack that is reached twice is judged once.
* `ledgercli:NAME` is a pack that comes with the package.
* Nothing is compiled here: `enforcer` does that, against a `vocabulary`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, Field, model_validator

from ledgercli.cases import CaseModel
from ledgercli.documents import Document, ExpressionText, Model, TemplateText
from ledgercli.names import type_named

Effect = Literal["allow", "warn", "require_approval", "deny"]
EFFECTS: tuple[Effect, ...] = ("allow", "warn", "require_approval", "deny")  # from mildest to strictest
SHIPPED = "ledgercli:"
BUILT_IN: Final = ("unknown_tool", "bad_arguments")  # rules that judge before all others


class OnFail(Model):
    """What a failed rule says and does."""

    error: TemplateText | None = Field(None, description="Why it was refused; made from the check if left out.")
    hint: TemplateText | None = Field(None, description="What to do instead.")
    effect: Literal["deny", "require_approval", "warn"] = Field("deny", description="What failing means.")
    halt: bool = Field(False, description="A denial ends the run.")


class RuleModel(Model):
    """One rule: a `check` that must hold, or a `grant` that opens, for the proposals it applies to."""

    name: str = Field(description="Its name, unique in the pack.")
    description: str = Field("", description="What it is for, in a sentence.")
    category: str = Field("", description="Groups rules in reports.")
    priority: int = Field(0, description="Under `resolve: priority` the highest decides.")
    mode: Literal["enforce", "shadow"] = Field("enforce", description="`shadow`: recorded, but decides nothing.")
    tools: list[str] | None = Field(None, description="Applies to these tools only.")
    condition: ExpressionText | None = Field(None, description="Applies only where this holds.")
    check: ExpressionText | None = Field(None, description="What must hold.")
    grant: ExpressionText | None = Field(None, description="What opens, under `resolve: priority` or `default: deny`.")
    on_fail: TemplateText | OnFail = Field(
        default_factory=OnFail, description="A message, or error, hint, effect, halt."
    )
    examples: list[CaseModel] = Field([], description="Inline cases, as under `tests:` of a case file.")

    @model_validator(mode="after")
    def _one_of(self) -> RuleModel:
        if (self.check is None) == (self.grant is None):
            raise ValueError("a rule has either a check or a grant")
        return self

    @property
    def failing(self) -> OnFail:
        """What a failure says and does, in the long form."""
        return self.on_fail if isinstance(self.on_fail, OnFail) else OnFail(error=self.on_fail)


def _named_type(text: str) -> str:
    type_named(text)
    return text


TypeName = Annotated[str, AfterValidator(_named_type)]


class Declared(Model):
    """Names that a pack must stand alone with; a type ending in `?` may be absent."""

    tools: dict[str, dict[str, TypeName]] = Field(
        {}, description="Tool → argument → type; it may be missing in a toolset."
    )
    tags: list[str] = Field([], description="Tags that a toolset may give its tools.")
    facts: dict[str, TypeName] = Field({}, description="Path below `state.facts` → type.")
    flags: list[str] = Field([], description="Flags that transitions may set.")
    constraints: dict[str, TypeName] = Field({}, description="Constraint → type.")


class PackFile(Model):
    """A pack of rules."""

    pack: str = Field(description="Its name.")
    description: str = Field("", description="What it is for.")
    version: int | str | None = Field(None, description="Shown in reports.")
    include: list[str] = Field([], description="Other packs: paths, or `ledgercli:NAME`.")
    active: ExpressionText | None = Field(
        None, description="A condition over the state; the pack is passed over if not."
    )
    resolve: Literal["strictest", "priority"] = Field("strictest", description="How its rules combine.")
    default: Literal["allow", "deny"] = Field("allow", description="`deny`: nothing is allowed without a grant.")
    constraints: dict[str, Any] = Field({}, description="Defaults that a scenario overrides.")
    vocabulary: Declared | None = Field(None, description="Names, for a pack that stands alone.")
    define: dict[str, ExpressionText] = Field({}, description="Name → expression, usable in this file.")
    rules: list[RuleModel] = Field([], description="The rules, in order.")


@dataclass(frozen=True, slots=True, eq=False)
class Pack:
    """A pack as it was read.

    Arguments:
        file: its contents.
        document: where they stand, for errors.

    """

    file: PackFile
    document: Document

    @property
    def name(self) -> str:
        """Its name."""
        return self.file.pack

    @property
    def digest(self) -> str:
        """SHA-256 of the file's bytes, as `sha256:…`."""
        return self.document.source.digest


def shipped_folder() -> Path:
    """Return the folder of the packs that come with the package."""
    here = Path(__file__).resolve().parent
    installed = here / "packs"
    return installed if installed.is_dir() else here.parent / "policies"


def shipped_names() -> list[str]:
    """Return the names of the packs that come with the package."""
    return sorted(path.stem for path in shipped_folder().glob("*.yaml") if not path.stem.endswith(".tools"))


def rule_names(packs: Sequence[Pack]) -> dict[str, list[str]]:
    """Return all that rules can be called in a file, each with the rules that it may mean, as verdicts name them."""
    names = {name: [name] for name in BUILT_IN}
    for pack in packs:
        own = [rule.name for rule in pack.file.rules] + (["default_deny"] if pack.file.default == "deny" else [])
        for name in dict.fromkeys(own):
            full = f"{pack.name}/{name}"
            names.setdefault(full, [full])
            if full not in names.setdefault(name, []):
                names[name].append(full)
    return names
