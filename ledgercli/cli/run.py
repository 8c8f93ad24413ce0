"""`ledger run`: run scenarios, write ledgers."""

from __future__ import annotations

import getpass
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import click

from ledgercli.cli.common import Command, write_json
from ledgercli.cli.progress import watched
from ledgercli.errors import ExitCode
from ledgercli.executor import is_yes
from ledgercli.ledger import Sync
from ledgercli.loop import Approver
from ledgercli.records import Proposal, Verdict
from ledgercli.reports.screen import Screen
from ledgercli.reports.terminal import Form, RunReport, call_text
from ledgercli.resuming import CHOICES, Choice, Told, go_on_from
from ledgercli.resuming import resume as go_on
from ledgercli.runs import Job, Options, prepare

__all__ = ["command"]

_EXAMPLES = (
    "ledger run --scenario weather.yaml",
    "ledger run weather.yaml --task Shanghai --set constraints.max_steps=3",
    "ledger run shop.yaml --pack stricter.yaml --out shop.ledger.jsonl",
    "ledger run recorded.yaml --mode shadow --out runs/",
    "ledger run weather.yaml --model ollama/qwen3:8b --temperature 0",
    "ledger run --resume w.ledger.jsonl",
    "ledger run --resume w.ledger.jsonl --unknown done --result '{\"id\": 5}'",
    "ledger run --from w.ledger.jsonl@3 --pack stricter.yaml",
    "ledger run shop.yaml --trials 10 --jobs 4 --min-pass 0.8",
    "L=$(ledger run -q weather.yaml)",
)


@click.command(cls=Command, examples=_EXAMPLES)
@click.argument("paths", metavar="SCENARIO...", nargs=-1)
@click.option("--scenario", "scenarios", multiple=True, metavar="FILE", help="A scenario; - reads standard input.")
@click.option("--resume", metavar="LEDGER", help="Go on with a run, by what its ledger carries.")
@click.option(
    "--unknown",
    type=click.Choice(["ask", *CHOICES]),
    help="With --resume: what came of a call that was cut off. [ask]",
)
@click.option("--result", metavar="JSON", help="With --unknown done (or fail): what the call returned.")
@click.option("--from", "origin", metavar="FILE@N", help="Begin a new run with the state after step N of a ledger.")
@click.option("--out", metavar="PATH", help="The ledger to write; a folder for several runs. [ledgers/...]")
@click.option("--pack", "packs", multiple=True, metavar="FILE", help="Takes the place of the one of its name.")
@click.option(
    "--set", "sets", multiple=True, metavar="PATH=VALUE", help="facts.x, constraints.x or flags.x; JSON or text."
)
@click.option("--task", metavar="TEXT", help="Instead of the scenario's task.")
@click.option("--reply", "replies", multiple=True, metavar="TEXT", help="What the user says, in order.")
@click.option("--trials", type=click.IntRange(1), metavar="K", help="Run each scenario K times: how often it passes.")
@click.option("--jobs", "workers", type=click.IntRange(1), metavar="N", help="With --trials: N runs at once.")
@click.option("--min-pass", type=click.FloatRange(0, 1), metavar="R", help="With --trials: exit 1 if less pass. [1]")
@click.option("--allow-writes", is_flag=True, help="With --trials: run tools that have an effect, each time.")
@click.option("--max-steps", type=click.IntRange(0), metavar="N", help="Instead of the scenario's limit.")
@click.option("--now", metavar="TIME", help="The time of every proposal, as 2026-08-01T12:00:00Z.")
@click.option(
    "--mode",
    type=click.Choice(["enforce", "shadow"]),
    default="enforce",
    show_default=True,
    help="shadow: judge, but let everything run.",
)
@click.option("--approve", type=click.Choice(["ask", "yes", "no"]), help="Answer what needs approval. [ask]")
@click.option(
    "--sync",
    type=click.Choice(["step", "close", "none"]),
    default="step",
    show_default=True,
    help="When lines are forced to disk.",
)
@click.option("--model", metavar="NAME", help="PROVIDER/NAME proposes, in place of a script or another model.")
@click.option("--api-base", metavar="URL", help="The model's server.")
@click.option("--temperature", type=click.FloatRange(0, 2), metavar="X", help="How freely the model chooses.")
@click.option("--timeout", type=click.FloatRange(0, min_open=True), metavar="SECONDS", help="For one reply. [60]")
@click.option("--max-tokens", type=click.IntRange(1), metavar="N", help="The longest reply.")
@click.option("--max-cost", type=click.FloatRange(0, min_open=True), metavar="USD", help="Stops once it is spent.")
@click.option("--calls", type=click.Choice(["auto", "tools", "json_schema"]), help="How the model says its calls.")
@click.option("--keep-prompts", is_flag=True, help="Write whole prompts beside the ledger: NAME.prompts.jsonl.")
@click.option("--checkpoint", type=click.IntRange(1), metavar="N", help="Write the whole state every N steps.")
@click.option("--reference", is_flag=True, help="Keep digests of the files in the ledger, not their text.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json", "jsonl", "markdown"]),
    default="text",
    show_default=True,
    help="json: one object at the end; jsonl: the ledger's lines (a line a trial); markdown: of --trials.",
)
@click.option("-q", "--quiet", is_flag=True, help="Print the ledger's path only.")
@click.option("-v", "--verbose", count=True, help="More: what was read, whole digests; -vv: whole results.")
def command(  # noqa: PLR0913 - one parameter an option
    *,
    paths: tuple[str, ...],
    scenarios: tuple[str, ...],
    resume: str | None,
    unknown: Choice | None,
    result: str | None,
    origin: str | None,
    out: str | None,
    packs: tuple[str, ...],
    sets: tuple[str, ...],
    task: str | None,
    replies: tuple[str, ...],
    trials: int | None,
    workers: int | None,
    min_pass: float | None,
    allow_writes: bool,
    max_steps: int | None,
    now: str | None,
    mode: str,
    approve: str | None,
    sync: Sync,
    model: str | None,
    api_base: str | None,
    temperature: float | None,
    timeout: float | None,
    max_tokens: int | None,
    max_cost: float | None,
    calls: str | None,
    keep_prompts: bool,
    checkpoint: int | None,
    reference: bool,
    form: Form,
    quiet: bool,
    verbose: int,
) -> ExitCode:
    """Run scenarios under their packs; each run writes a ledger of its own.

    --resume goes on after a crash, a limit or an approval; nothing is judged again, and a call that was cut off is
    never repeated unless you say that it had no effect. --from begins a new run with the state after a step of another.

    --trials runs each scenario K times: how often it passes, and how likely k of k runs do (pass^k).

    Exit code: 0 completed, 1 failed, 3 halted, at a limit or awaiting approval, 4 an engine or server failed; with
    `expect:` in the scenario 0 if all is as expected, else 1. Of several runs the highest. With --trials 0 if all pass,
    or as many as --min-pass asks for.
    """
    from ledgercli.cli import NAMES

    names = (*paths, *scenarios)
    options = Options(
        out, packs, sets, task, replies, max_steps, now, mode == "shadow", sync, reference, checkpoint,
        model=_said(
            model=model, api_base=api_base, temperature=temperature, timeout=timeout, max_tokens=max_tokens,
            max_cost=max_cost, calls=calls,
        ),
        keep_prompts=keep_prompts,
        trials=trials,
        allow_writes=allow_writes,
    )  # fmt: skip
    _refuse_senseless(names, options, resume, origin, unknown, result)
    if trials is None:
        _refuse_without_trials(workers, min_pass, form, allow_writes=allow_writes)
    else:
        if resume or origin:
            raise click.UsageError("--trials begins each run anew; it does not go with --resume or --from")
        from ledgercli.cli.trying import Asked, try_all

        asked = Asked(trials, workers or 1, min_pass, form, quiet and form == "text", verbose > 0)
        return try_all(prepare(names, options), asked, _approver(approve if approve in ("yes", "no") else "unasked"))
    worst = ExitCode.YES
    summaries: list[dict[str, Any]] = []
    report = RunReport(form=form, verbosity=verbose, quiet=quiet and form == "text", commands=NAMES)
    if resume is not None:
        told = Told(unknown or "ask", result)
        job = go_on(
            resume, options, scenario=next(iter(names), None), told=told, asker=_ask, approver=_approver(approve)
        )
        prepared = [(job.scenario, iter([job]))]
    elif origin is not None:
        job = go_on_from(origin, names, options)
        prepared = [(job.scenario, iter([job]))]
    else:
        prepared = prepare(names, options)
    for scenario, jobs in prepared:
        many = scenario.file.decide.recording is not None and resume is None
        runs = list(_until_interrupted(watched(jobs, None, "runs") if many else jobs, report, approve))
        if many:
            report.many(scenario.name, runs)
        summaries += runs
        worst = max([worst, *(ExitCode(run["exit_code"]) for run in runs)])
        if worst is ExitCode.INTERRUPTED:
            break
    if form == "json":
        write_json(Screen.stdout(), {"schema": "run/1", "runs": summaries})
    return worst


def _said(**flags: Any) -> dict[str, Any]:
    """Return the flags that were given."""
    return {name: value for name, value in flags.items() if value is not None}


def _refuse_senseless(  # noqa: PLR0913 - what goes with what
    names: Sequence[str],
    options: Options,
    resume: str | None,
    origin: str | None,
    unknown: str | None,
    result: str | None,
) -> None:
    """Refuse options that say nothing together."""
    if resume is None and (unknown or result):
        raise click.UsageError("--unknown and --result go with --resume")
    if result is not None and unknown not in ("done", "fail"):
        raise click.UsageError("--result goes with --unknown done or --unknown fail")
    if resume is None and origin is None:
        if not names:
            raise click.UsageError("which scenario? ledger run FILE")
        return
    if resume and origin:
        raise click.UsageError("--resume goes on with a run, --from begins a new one; only one of them")
    which = "--resume" if resume else "--from"
    if len(names) > 1:
        raise click.UsageError(f"{which} takes one scenario at most")
    if options.task is not None:
        raise click.UsageError(f"--task does not go with {which}: the run has a task")
    if resume and options.out is not None:
        raise click.UsageError("--out does not go with --resume, which goes on in the same ledger")
    if resume and options.shadow:
        raise click.UsageError("--mode does not go with --resume: a run goes on in the mode that it began in")


def _refuse_without_trials(workers: int | None, least: float | None, form: str, *, allow_writes: bool) -> None:
    """Refuse options that say something of trials alone."""
    named = {"--jobs": workers, "--min-pass": least is not None, "--allow-writes": allow_writes}
    for option, said in named.items():
        if said:
            raise click.UsageError(f"{option} goes with --trials K")
    if form == "markdown":
        raise click.UsageError("--format markdown goes with --trials K; a run is told as text, json or jsonl")


def _until_interrupted(jobs: Iterable[Job], report: RunReport, approve: str | None) -> Iterator[dict[str, Any]]:
    """Run one after the other; Ctrl-C ends the run that it meets, and no other begins."""
    for job in jobs:
        run = _one(job, report, approve)
        yield run
        if run["exit_code"] == ExitCode.INTERRUPTED:
            return


def _one(job: Job, report: RunReport, approve: str | None) -> dict[str, Any]:
    report.begin(job)
    ended = job.run(_Terminal() if sys.stdin.isatty() else None, _approver(approve), report.line)
    summary = report.end(job, ended, job.unmet(ended))
    return {**summary, "exit_code": int(job.exit_code(ended))}


def _approver(approve: str | None) -> Approver:
    def answer(proposal: Proposal, verdict: Verdict) -> tuple[bool, str] | None:
        if approve in ("yes", "no"):
            return approve == "yes", f"--approve {approve}"
        if approve == "unasked" or not sys.stdin.isatty():
            return None
        question = f"{verdict.reason} Let {call_text(proposal.tool, proposal.args)} run?"
        try:
            return click.confirm(question, default=False, err=True), getpass.getuser()
        except click.Abort as error:  # what click makes of Ctrl-C
            raise KeyboardInterrupt from error

    return answer


def _ask(step: int, proposal: Proposal) -> Told | None:
    """Ask what came of a call that was begun; None without a terminal."""
    if not sys.stdin.isatty():
        return None
    lines = [
        f"{call_text(proposal.tool, proposal.args)} was begun at step {step}, and nobody recorded what came of it."
    ]
    lines += [f"  {choice:<6} {meaning}" for choice, meaning in CHOICES.items()]
    try:
        answer = click.prompt("\n".join(lines) + "\n", type=click.Choice(list(CHOICES)), show_choices=False, err=True)
        returned = click.prompt("What did it return, as JSON?", err=True) if answer == "done" else None
    except click.Abort as error:  # what click makes of Ctrl-C
        raise KeyboardInterrupt from error
    return Told(next(choice for choice in CHOICES if choice == answer), returned)


class _Terminal:
    """The person at the terminal."""

    def ask(self, tool: str, args: Mapping[str, Any]) -> str | None:
        """Show the question and return what is typed."""
        return _prompt(call_text(tool, args))

    def confirm(self, tool: str, args: Mapping[str, Any]) -> bool | None:
        """Show exactly the call and return whether the answer is yes."""
        return is_yes(_prompt(f"{call_text(tool, args)}\nyes or no"))

    def listen(self) -> str | None:
        """Ask for a word where the engine has no next step; an empty line ends the run."""
        return _prompt("there is no next step; say something, or press Enter to end", default="")


def _prompt(question: str, default: str | None = None) -> str:
    try:
        return str(click.prompt(question, default=default, show_default=False, prompt_suffix="\n> ", err=True))
    except click.Abort as error:  # what click makes of Ctrl-C
        raise KeyboardInterrupt from error
