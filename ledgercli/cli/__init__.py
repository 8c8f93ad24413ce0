"""The table of subcommands, and what their failures become: a message and an exit code.

Invariants:
* `ledger --help` is written from the table alone; a subcommand's module is imported when it runs, and heavy libraries
  in the functions that need them.
* Every failure becomes an exit code here and nowhere else. A failure that is no `LedgerCliError` is a bug, and says so.
* Options come from the flag, then from LEDGER_COMMAND_OPTION (`LEDGER_RUN_OUT`).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any, Final, NamedTuple

import click

from ledgercli import __version__
from ledgercli.errors import ExitCode

PROGRAM: Final = "ledger"
COMPLETE: Final = "_LEDGER_COMPLETE"


class Entry(NamedTuple):
    """A subcommand of the table: the group it is listed in, its name, what it does."""

    group: str
    name: str
    help: str


COMMANDS: Final = (
    Entry("start", "init", "a scenario, toolset, pack and cases to begin with"),
    Entry("run", "run", "run scenarios; write ledgers"),
    Entry("run", "approve", "answer a run that waits"),
    Entry("run", "rollback", "go back to an earlier state"),
    Entry("look", "list", "find runs and steps"),
    Entry("look", "summarize", "one run, or many"),
    Entry("look", "why", "explain the verdict at LEDGER@STEP"),
    Entry("look", "diff", "compare two ledgers, folders or packs"),
    Entry("look", "replay", "judge again; --pack: what would these rules have done?"),
    Entry("rules", "validate", "check packs, toolsets, scenarios, cases and ledgers"),
    Entry("rules", "check", "judge one proposal by hand"),
    Entry("rules", "test-policies", "run the cases"),
    Entry("rules", "capture", "a case from LEDGER@STEP"),
    Entry("rules", "doc", "a pack in plain sentences"),
    Entry("more", "schema", "the JSON Schema of a kind of file"),
    Entry("more", "prompt", "what a model would get, part by part"),
    Entry("more", "export", "training data from recorded runs"),
    Entry("more", "completion", "completion for bash, zsh or fish"),
)
NAMES: Final = frozenset(entry.name for entry in COMMANDS)

_EXIT_CODES: Final = """\
Exit codes: 0 yes/done  1 no/differs/fails  2 could not ask  3 stopped early
            4 something outside failed
ledger COMMAND --help has examples."""


def help_text() -> str:
    """Return what `ledger --help` prints; under `more` stand names alone."""
    lines = ["Usage: ledger COMMAND ...", "", "Keep books on an agent's tool calls, under policy.", ""]
    group = ""
    width = max(len(entry.name) for entry in COMMANDS if entry.group != "more") + 2
    for entry in COMMANDS:
        if entry.group != "more":
            lines.append(f"{'' if entry.group == group else entry.group:<9}{entry.name:<{max(width, 15)}}{entry.help}")
        group = entry.group
    more = [entry.name for entry in COMMANDS if entry.group == "more"]
    return "\n".join([*lines, f"{'more':<9}{', '.join(more)}", "", _EXIT_CODES])


class Commands(click.Group):
    """The table as click sees it."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names, in the order of the table."""
        del ctx
        return [entry.name for entry in COMMANDS]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a subcommand; None if there is none of that name."""
        del ctx
        if cmd_name not in NAMES:
            return None
        module = import_module(f"{__name__}.{cmd_name.replace('-', '_')}")
        command: click.Command = module.command
        command.name = cmd_name
        command.short_help = next(entry.help for entry in COMMANDS if entry.name == cmd_name)
        return command

    def get_help(self, ctx: click.Context) -> str:
        """Return the help, from the table."""
        del ctx
        return help_text()

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the subcommand, or name the nearest one."""
        if args[0] not in NAMES and not args[0].startswith("-"):
            from difflib import get_close_matches

            near = get_close_matches(args[0], [entry.name for entry in COMMANDS], n=1)
            raise click.UsageError(f"no command {args[0]}" + (f"; there is {near[0]}" if near else ""), ctx=ctx)
        return super().resolve_command(ctx, args)


def _version(ctx: click.Context, _parameter: click.Parameter, value: bool) -> None:  # noqa: FBT001 - click's callback
    if value:
        click.echo(f"{PROGRAM} {__version__}")
        ctx.exit()


class _Version(click.Option):
    """`--version`, which LEDGER_VERSION in the environment does not ask for."""

    def resolve_envvar_value(self, ctx: click.Context) -> str | None:
        """Say that the environment has no value."""
        del ctx
        return None


command = Commands(
    PROGRAM,
    no_args_is_help=False,
    invoke_without_command=False,
    context_settings={"auto_envvar_prefix": "LEDGER", "help_option_names": ["-h", "--help"]},
    params=[_Version(["--version"], is_flag=True, is_eager=True, expose_value=False, callback=_version)],
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line and return its exit code."""
    from ledgercli.cli import failures

    with failures.as_exit_code() as code:
        code.value = int(_run([*(sys.argv[1:] if arguments is None else arguments)]) or 0)  # `list` is a module here
        failures.flush()
    failures.let_go()
    return code.value


def _run(arguments: list[str]) -> Any:
    if instruction := os.environ.get(COMPLETE):
        from click.shell_completion import shell_complete

        return shell_complete(command, {}, PROGRAM, COMPLETE, instruction)
    if not arguments:
        click.echo(help_text(), err=True)
        return ExitCode.UNASKED
    try:
        with command.make_context(PROGRAM, arguments) as ctx:
            return command.invoke(ctx)
    except click.exceptions.Exit as end:
        return end.exit_code
