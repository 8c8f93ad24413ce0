"""`ledger completion`: what a shell needs to complete command lines."""

from __future__ import annotations

import click

from ledgercli.cli.common import Command
from ledgercli.errors import ExitCode

__all__ = ["command"]

EXAMPLES = (
    'eval "$(ledger completion bash)"                  # in ~/.bashrc',
    'eval "$(ledger completion zsh)"                   # in ~/.zshrc',
    "ledger completion fish > ~/.config/fish/completions/ledger.fish",
)


@click.command(cls=Command, examples=EXAMPLES)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def command(ctx: click.Context, /, *, shell: str) -> ExitCode:
    """Print the lines by which bash, zsh or fish complete commands, options and files."""
    from click.shell_completion import get_completion_class

    from ledgercli.cli import COMPLETE, PROGRAM

    kind = get_completion_class(shell)
    assert kind is not None, "click knows these shells"
    click.echo(kind(ctx.find_root().command, {}, PROGRAM, COMPLETE).source())
    return ExitCode.YES
