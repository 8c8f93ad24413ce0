"""What the subcommands share: the look of their help, and where their reports go."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

from ledgercli.reports.screen import Screen

F = TypeVar("F", bound=Callable[..., Any])


class Command(click.Command):
    """A subcommand whose help ends with examples.

    Arguments:
        examples: command lines, as they are typed; further lines of an example are indented.

    """

    def __init__(self, *arguments: Any, examples: Sequence[str] = (), **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._examples = examples

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples."""
        super().format_epilog(ctx, formatter)
        if self._examples:
            formatter.write("\nExamples:\n")
            for example in self._examples:
                formatter.write("".join(f"  {line}\n" for line in example.splitlines()))


report_option = click.option("--report", metavar="FILE", help="Write the report to this new file, not to stdout.")


def format_option(*forms: str) -> Callable[[F], F]:
    """Return the option `--format`; the first form is the default."""
    return click.option(
        "--format", "form", type=click.Choice(forms), default=forms[0], show_default=True, help="How it is written."
    )


def output(report: str | None) -> Screen:
    """Return where a report goes: to a new file, or to stdout."""
    return Screen.stdout() if report is None else Screen.file(report)


def write_json(screen: Screen, value: Any) -> None:
    """Write one JSON object, for people to read too."""
    import orjson

    from ledgercli import paths

    screen.data(orjson.dumps(value, paths.plain, orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))
