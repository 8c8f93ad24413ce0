"""Ledgers read for `ledger summarize`: one that is written step by step, or many that are only counted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ledgercli import paths
from ledgercli.addresses import no_such_step
from ledgercli.cli.common import write_json
from ledgercli.errors import LedgerFormatError
from ledgercli.gathering import one
from ledgercli.records import Line
from ledgercli.reports import recount as reports
from ledgercli.reports import recountmarkdown
from ledgercli.reports.screen import Screen
from ledgercli.reports.titles import heading
from ledgercli.story import follow, is_there
from ledgercli.summariser.recount import Recount

__all__ = ["OneRun", "read"]


def read(path: str) -> Recount:
    """Return what is known of a run at its end.

    Raises:
        LedgerCliError: the ledger cannot be read, or is damaged.

    """
    run = Recount(path)
    for _ in followed(run, None):
        pass
    return run


def followed(run: Recount, step: int | None) -> Iterator[tuple[Line, paths.Map]]:
    """Yield each line of a ledger up to a step, with the state after it, once the recount has seen it.

    Raises:
        LedgerCliError: there is no such ledger or step, or it is damaged.

    """
    for entry, story in follow(one(run.ledger)):
        line = entry.record
        try:
            run.see(line)
        except (KeyError, TypeError, ValueError) as error:
            raise LedgerFormatError(f"{run.ledger}:{entry.line}: it is not what such a line says") from error
        yield line, story.tree
        if step is not None and is_there(line, step, run.opening):
            return
    if step is not None:
        raise no_such_step(run.ledger, run.steps)


class OneRun:
    """One run, written step by step.

    Arguments:
        screen: where to.
        path: the ledger.
        step: the last step that counts; None: all.
        form: `text`, `json` or `markdown`.
        whole: whether nothing is cut or left out.

    """

    def __init__(self, screen: Screen, path: str, step: int | None, form: str, *, whole: bool) -> None:
        self._screen, self._form, self._whole = screen, form, whole
        self._run, self._step = Recount(path), step
        self._begun = False  # whether a step stands there already

    def write(self) -> None:
        """Read and write it.

        Raises:
            LedgerCliError: as `followed` does.

        """
        for _ in followed(Recount(self._run.ledger), self._step):
            pass  # nothing is written of a ledger that cannot be read to its end
        tree: paths.Map = {}
        steps: list[dict[str, Any]] = []
        for line, state in followed(self._run, self._step):
            tree = state
            if self._form == "json":
                steps += [reports.step_json(line)] if line["kind"] == "step" else []
            else:
                self._lines(self._of(line))
        if self._form == "json":
            facts = reports.fact_json(self._run.facts(tree))
            write_json(
                self._screen, {"schema": reports.SCHEMA, **self._run.to_json(), "timeline": steps, "facts": facts}
            )
        elif self._form == "markdown":
            self._lines(recountmarkdown.end(self._run, tree, self._step))
        else:
            self._lines(reports.end_lines(self._screen, self._run, tree, self._step, whole=self._whole))

    def _of(self, line: Line) -> Iterator[str]:
        if self._form == "markdown":
            if line["kind"] == "open":
                yield from recountmarkdown.head(self._run)
            elif line["kind"] == "step":
                yield recountmarkdown.step_row(line)
        elif line["kind"] == "open":
            yield from heading(self._screen, line)
        else:
            told = list(reports.step_lines(self._screen, line, whole=self._whole))
            yield from [""] if told and not self._begun else []
            self._begun = self._begun or bool(told)
            yield from told

    def _lines(self, lines: Iterator[str]) -> None:
        for line in lines:
            self._screen.line(line)
