"""`ledger export`: training data from recorded runs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import click

from ledgercli.cli.common import Command
from ledgercli.errors import ExitCode
from ledgercli.reports.screen import Screen
from ledgercli.reports.summary import counted

if TYPE_CHECKING:
    from ledgercli.export import Exported, Kind
    from ledgercli.prompting import Calls

__all__ = ["command"]

_EXAMPLES = (
    "ledger export --to sft ledgers --out right-calls.jsonl",
    "ledger export --to dpo runs/*.ledger.jsonl --out preferences.jsonl",
)
_WHAT: Final = {"sft": "example", "dpo": "preference"}


@click.command(cls=Command, examples=_EXAMPLES)
@click.argument("paths", metavar="LEDGER...", nargs=-1)
@click.option("--to", type=click.Choice(["sft", "dpo"]), required=True, help="What the lines are for.")
@click.option("--calls", type=click.Choice(["tools", "json_schema"]), default="tools", help="As in a run.  [tools]")
@click.option("--out", metavar="FILE", help="Write this new file, not to stdout.")
def command(*, paths: tuple[str, ...], to: Kind, calls: Calls, out: str | None) -> ExitCode:
    """Write what recorded runs teach, as JSON Lines in the chat format: files, folders with all below, patterns.

    \b
    sft   messages and tools: what a model would be shown before a step, and
          the call that passed every rule there and succeeded
    dpo   prompt, chosen, rejected and tools: a call that was refused, and the
          next one that passed

    Prompts are those of `ledger prompt`. Masked values stay masked; a call with a masked argument is left out.

    Exit code: 0, 1 where there is nothing to learn, 2 where a ledger is damaged; it is left out.
    """  # noqa: D301 - \b keeps click from joining the lines
    if not paths:
        raise click.UsageError("which ledgers? ledger export --to sft LEDGER...", ctx=click.get_current_context())
    from ledgercli.cli.progress import watched
    from ledgercli.export import Exported
    from ledgercli.gathering import ledgers

    files = ledgers(paths)
    exported = Exported()
    with Screen.stdout() if out is None else Screen.file(out) as screen:
        for line in exported.lines(watched(files, len(files), "ledgers"), to, calls):
            screen.data(line)
    err = Screen.stderr()
    for told in _told(exported, to):
        err.line(err.safe(told))
    if exported.damaged:
        return ExitCode.UNASKED
    return ExitCode.YES if exported.samples else ExitCode.NO


def _told(exported: Exported, to: Kind) -> Iterator[str]:
    for _, message in exported.damaged:
        yield f"left out: {message}"
    yield f"{counted(exported.samples, _WHAT[to])} from {counted(exported.ledgers, 'ledger')}"
    if exported.masked:
        yield f"{counted(exported.masked, 'call')} left out: a part of it is masked"
