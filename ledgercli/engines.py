"""Makes who proposes in a run: a script, or a model that an option or a ledger may put in its place.

Deliberately not here: recordings, which hold a run each (`runs`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ledgercli.decision import Engine
from ledgercli.errors import LedgerCliError
from ledgercli.loading import refuse
from ledgercli.model import calling
from ledgercli.model.engine import ModelEngine
from ledgercli.model.folding import FoldWriter
from ledgercli.model.settings import carried_template, chosen, settle
from ledgercli.rulebook import Rulebook
from ledgercli.scenario import Scenario
from ledgercli.shelf import ELSEWHERE


def described(engine: Engine) -> dict[str, Any]:
    """Who proposes, where it is no recording."""
    return engine.settled.described() if isinstance(engine, ModelEngine) else {"kind": "script"}


def engines(
    scenario: Scenario,
    book: Rulebook,
    flags: Mapping[str, Any],
    said: Mapping[str, Any] | None = None,
    *,
    again: bool = False,
) -> Callable[[], Engine]:
    """Return what makes the engine of each run of a scenario: a model's has a memory of its own.

    Arguments:
        scenario: says who proposes.
        book: its rules.
        flags: settings of a model that take the place of others, by name.
        said: what a ledger says of who proposes, in place of the scenario.
        again: whether the run goes on, where code that tools run may be elsewhere.

    Raises:
        InvalidDocumentError: the script does not compile.
        LedgerCliError: the model cannot be asked.

    """
    settings = chosen(scenario, flags, said)
    if settings is not None:
        settled = settle(settings, scenario.folder, carried_template(said))
        refuse(one for one in book.problems() if not again or one.code != ELSEWHERE)
        writes, most = scenario.file.summariser, settings.max_cost
        if writes is None:
            return lambda: ModelEngine(settled, book)
        calling.ready(writes if writes.max_cost is not None else writes.model_copy(update={"max_cost": most}))
        return lambda: ModelEngine(settled, book, folds=FoldWriter(writes, capped=most is not None))
    script = book.script
    refuse(one for one in book.problems() if not again or one.code != ELSEWHERE)
    if script is None:
        raise LedgerCliError(f"nothing proposes in {scenario.name}: its model did", fix="--model PROVIDER/NAME")
    return lambda: script
