"""Where the prompt of `ledger prompt` comes from: a scenario before its first step, or a ledger after one.

Invariants:
* What is said on the command line goes before what the scenario or the ledger says.
* A model is got ready only if it will be asked; else `calls: auto` counts as `tools`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ledgercli.cli.prompted import Asking, Moment, asking_at
from ledgercli.errors import LedgerCliError
from ledgercli.history import History
from ledgercli.prompting import Prompter
from ledgercli.rulebook import Rulebook
from ledgercli.scenario import ModelSettings

if TYPE_CHECKING:
    from ledgercli.model.settings import Settled

__all__ = ["Wish"]


@dataclass(frozen=True)
class Wish:
    """What is asked for.

    Arguments:
        source: the scenario's path, a ledger's, or `FILE@STEP`.
        task: what takes the place of the scenario's task.
        now: the time of the proposal.
        settings: calls, offer, select and template, if anything was said.
        flags: settings of the model, by name.
        ask: whether the model will be asked.

    """

    source: str
    task: str | None
    now: str | None
    settings: Mapping[str, Any]
    flags: Mapping[str, Any]
    ask: bool

    def asking(self) -> Asking:
        """Return the prompt.

        Raises:
            LedgerCliError: something does not load.

        """
        from ledgercli.addresses import step_address
        from ledgercli.sources import kind_of

        path, step = step_address(self.source)
        if step is None and kind_of(path) != "ledger":
            return self._of_scenario(path)
        if self.task is not None:
            raise LedgerCliError("--task takes the place of a scenario's task; a ledger's stands in it")
        return self._of_ledger(path, step)

    def _of_ledger(self, path: str, step: int | None) -> Asking:
        from ledgercli.prompting.recorded import recorded
        from ledgercli.runs import clock_of

        found = recorded(path, step, ledger=path, **self._own())
        now = found.now if self.now is None else clock_of(self.now)()
        at = Moment(found.prompter, found.rulebook, found.state, found.history, now)
        settled = self._settled(found.rulebook, found.engine)
        return asking_at(at, found.prompter.calls, self.flags.get("model"), settled)

    def _of_scenario(self, path: str) -> Asking:
        from ledgercli.loading import load_scenario, refuse
        from ledgercli.runs import clock_of

        scenario = load_scenario(path)
        rulebook = Rulebook(scenario.toolset, scenario.packs, scenario=scenario)
        refuse(rulebook.problems())
        settled = self._settled(rulebook, None)
        chosen = {} if settled is None else {"calls": settled.calls}
        prompter = Prompter(rulebook, **{**_said(scenario.file.decide.model, scenario.folder), **self._own(), **chosen})
        state = rulebook.initial_state(**({} if self.task is None else {"task": self.task}))
        prompter.take({"kind": "open", "state": state.opening()})
        at = Moment(prompter, rulebook, state, History(state.tree["task"]), clock_of(self.now or scenario.file.now)())
        return asking_at(at, prompter.calls, self.flags.get("model"), settled)

    def _own(self) -> dict[str, Any]:
        """Return what was said, the template as its text."""
        own = dict(self.settings)
        if "template" in own:
            own |= {"template": _text(own["template"]), "template_name": own["template"]}
        return own

    def _settled(self, rulebook: Rulebook, said: Mapping[str, Any] | None) -> Settled | None:
        """Return the model that is asked; None where a script proposes, or nothing is asked."""
        from ledgercli.model.settings import carried_template, chosen, settle

        if not self.ask:
            return None
        if rulebook.scenario is None:
            raise LedgerCliError("--ask needs the scenario of the run, and this one had none")
        if not self.flags and (rulebook.script is not None if said is None else said["kind"] == "script"):
            return None
        calls = {"calls": self.settings["calls"]} if "calls" in self.settings else {}
        settings = chosen(rulebook.scenario, {**self.flags, **(calls if self.flags else {})}, said)
        if settings is None:
            raise LedgerCliError("nobody proposes here who could be asked", fix="--model PROVIDER/NAME asks a model")
        return settle(settings, rulebook.scenario.folder, carried_template(said))


def _said(model: ModelSettings | None, folder: Path) -> dict[str, Any]:
    """Return how a scenario wants its prompts."""
    if model is None:
        return {}
    said: dict[str, Any] = {"offer": model.offer, "select": model.select}
    if model.calls != "auto":
        said["calls"] = model.calls
    if model.template is not None:
        said |= {"template": _text(str(folder / model.template)), "template_name": model.template}
    return said


def _text(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror.lower() if isinstance(error, OSError) and error.strerror else "it is no UTF-8 text"
        raise LedgerCliError(f"the template {path} cannot be read: {why}") from error
