"""`ledger prompt`: what a model would get, part by part."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ledgercli.cli.common import Command, format_option, output, report_option, write_json
from ledgercli.errors import ExitCode
from ledgercli.reports.screen import Screen

if TYPE_CHECKING:
    from ledgercli.cli.prompted import Asking

__all__ = ["command"]

_EXAMPLES = (
    "ledger prompt onboarding.yaml",
    "ledger prompt ledgers/refund-17.ledger.jsonl@9 --offer all",
    "ledger prompt onboarding.yaml --calls json_schema --template mine.jinja",
    "ledger prompt onboarding.yaml --model openai/gpt-4o --format json",
    "ledger prompt onboarding.yaml --model ollama/qwen3:8b --ask",
)


@click.command(cls=Command, examples=_EXAMPLES)
@click.argument("source", metavar="SCENARIO|FILE@STEP")
@click.option("--task", metavar="TEXT", help="Instead of the scenario's task.")
@click.option("--now", metavar="TIME", help="The time of the proposal, as 2026-08-01T12:00:00Z.")
@click.option("--calls", type=click.Choice(["tools", "json_schema"]), help="How the model says its call.")
@click.option("--offer", type=click.Choice(["permitted", "all"]), help="Which tools: without those forbidden outright.")
@click.option("--select", type=click.Choice(["relevant", "all"]), help="Which facts: those that may matter.")
@click.option("--template", metavar="FILE", help="A prompt template of your own (Jinja2).")
@click.option("--model", metavar="NAME", help="PROVIDER/NAME: its tokens are counted; who --ask asks.")
@click.option("--ask", is_flag=True, help="Ask once, and show what is proposed and the verdict.")
@click.option("--api-base", metavar="URL", help="With --ask: the model's server.")
@click.option("--temperature", type=click.FloatRange(0, 2), metavar="X", help="With --ask: how freely it chooses.")
@format_option("text", "json")
@report_option
def command(  # noqa: PLR0913 - one parameter an option
    *,
    source: str,
    task: str | None,
    now: str | None,
    calls: str | None,
    offer: str | None,
    select: str | None,
    template: str | None,
    model: str | None,
    ask: bool,
    api_base: str | None,
    temperature: float | None,
    form: str,
    report: str | None,
) -> ExitCode:
    """Print exactly what a model would get: before the first step of a scenario, or after a step of a ledger.

    It is made from the state, never from a chat history. How many tokens each part has stands on stderr: as litellm
    counts them for --model, else about (~): characters / 4.

    \b
    A template is a text with {{ task }}, {{ state }}, {{ goals }}, {{ tools }},
    {{ rules }}, {{ withheld }}, {{ said }}, {{ counts }}, {{ denials }},
    {{ earlier }}, {{ results }}, {{ last }}, {{ refused }}, {{ fault }},
    {{ examples }} and {{ answer_form }}; its blocks `system` and `user` become
    messages.

    Exit code: 0; 1 --ask got nothing that can be used; 2 something does not load; 4 the model cannot be asked.
    """  # noqa: D301 - \b keeps click from joining the lines
    from ledgercli.cli.prompt_sources import Wish

    flags = {"model": model, "api_base": api_base, "temperature": temperature}
    if not ask and (api_base is not None or temperature is not None):
        raise click.UsageError("--api-base and --temperature go with --ask", ctx=click.get_current_context())
    settings = {"calls": calls, "offer": offer, "select": select, "template": template}
    asking = Wish(source, task, now, _given(settings), _given(flags), ask).asking()
    with output(report) as screen:
        if form == "json":
            return _json(screen, asking, ask=ask)
        asking.write(screen)
        asking.write_tokens(Screen.stderr())
        return asking.ask().write(screen) if ask else ExitCode.YES


def _given(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options that were given."""
    return {name: value for name, value in options.items() if value is not None}


def _json(screen: Screen, asking: Asking, *, ask: bool) -> ExitCode:
    said: dict[str, Any] = asking.to_json()
    code = ExitCode.YES
    if ask:
        answer = asking.ask()
        said["answer"], code = answer.to_json(), answer.exit_code
    write_json(screen, said)
    return code
