"""What neither `validate` nor `replay` can find of a clever forgery, and why nothing tells; with an anchor all is found.

The slow test holds it to be exact: whatever is found by nobody stands here, and whatever stands here is found by
nobody in at least one ledger.
"""

from __future__ import annotations

from collections.abc import Iterator

#: Reason, then who wrote the ledger (a `program`, the `loop`, `both`) and what was done: the places.
TABLE = """
a checkpoint, which only says what the lines before it come to
  both line removed: checkpoint
a cut, closed as the whole was
  both rest cut: intent, step
  loop rest cut: close
  program line removed: step
  program rest cut: approval, checkpoint, recovery, resume
a file that judges this run alike; without its text it is read where it was
  both changed: open.files[].text
  loop changed, removed: resume.files[].text
  loop removed: resume.files
a part of a result that nothing read
  both added: step.result.error
  both added, changed, removed, retyped: step.result.data.*
  both removed: step.result.data
  loop added, changed, retyped: step.result.data
a run's id
  both changed: open.run
a step with the same state
  loop changed: rollback.to
a time that no rule read
  both changed: step.now
a value of the start that nothing read: options and programs may give any
  both added, changed, removed, retyped: open.state.facts.*
  both changed: open.state.flags.*, open.state.task
  loop changed, retyped: open.state.constraints.*
  program added: open.state.constraints.*
an argument that nothing read, of a call that came to nothing
  program changed: step.action.args.*
an outcome that nobody saw
  program changed: step.outcome
how a model is asked, which options may say otherwise
  loop changed: open.engine.*
  loop changed, removed: resume.engine.*
  loop removed: resume.engine
how a program says that it ended, or that an interruption or an error came
  both changed: close.error, close.status
  both retyped: close.answer
  program added: close.counterfactual_from
  program added, changed, removed, retyped: close.answer.*
  program added, removed, retyped: close.error
that a run was taken up again, which alone changes nothing
  both line doubled, resume inserted: resume
  both resume inserted: close, intent, step
  loop resume inserted: checkpoint
  program line removed, line swapped: resume
  program resume inserted: recovery
that the run had stopped for a while
  loop line removed: close
  program close inserted: approval, recovery, resume
the engine's own name of a call, by which nothing is told apart
  both changed, removed: step.action.call_id
  program added: step.action.call_id
the mode of a run in which nothing was refused
  both changed: open.mode
the order of calls that overlapped, where nothing depends on it
  program added: step.judged
  program line swapped: intent, step
the order of keys, which nothing reads
  both reordered: open.state.facts, open.state.facts.*, open.state.flags, step.result.data
  loop reordered: checkpoint 0.state.constraints, checkpoint 0.state.facts, checkpoint 0.state.facts.*
  loop reordered: checkpoint 0.state.flags, checkpoint 0.state.goals, open.state.constraints, open.state.goals
  loop reordered: resume.state_diff
what a model made of steps, which only the next prompts read
  loop changed: summary.text
  loop line removed, line swapped: summary
  loop summary inserted: step
what asking a model took, which nothing else tells
  loop added, removed: close.engine.faults, step.engine.faults
  loop added: intent.engine.faults, summary.engine.faults
  loop changed, retyped: close.engine.tokens.completion, close.engine.tokens.prompt, intent.engine.cost
  loop changed, retyped: intent.engine.tokens.completion, intent.engine.tokens.prompt
  loop changed, retyped: step.engine.tokens.completion, step.engine.tokens.prompt
  loop changed: close.engine.faults[].kind, close.engine.faults[].said, close.engine.prompt, close.engine.seconds
  loop changed: intent.engine.prompt, intent.engine.seconds, step.engine.cost, step.engine.faults[].kind
  loop changed: step.engine.faults[].said, step.engine.prompt, step.engine.seconds
  loop changed, retyped: summary.engine.cost, summary.engine.tokens.completion, summary.engine.tokens.prompt
  loop changed: summary.engine.faults[].kind, summary.engine.faults[].said, summary.engine.prompt
  loop changed: summary.engine.seconds
  loop removed: close.engine, intent.engine, step.engine
  loop retyped: close.engine.cost, step.engine.cost
what a program says that it is
  program added: open.engine.*
  program changed: open.engine.kind
what a writer left torn, which is not here
  program changed: recovery.bytes, recovery.digest
  program line doubled, line removed, line swapped: recovery
  program recovery inserted: close, intent, resume, step
what another run left, whose ledger is not here
  loop added, changed, removed, reordered, retyped: checkpoint 0.history.*
  loop added, changed, removed, retyped: checkpoint 0.origins[].args.*
  loop changed: checkpoint 0.origins[].path, checkpoint 0.origins[].step, checkpoint 0.origins[].tool
  loop changed: open.from.digest, open.from.ledger, open.from.run, open.from.step
  loop removed, reordered: checkpoint 0.origins
when a line was written: clocks may be set
  both changed: approval.at, checkpoint.at, close.at, intent.at, open.at, resume.at, step.at
  loop changed: checkpoint 0.at, rollback.at, summary.at
  program changed: recovery.at
where a file was
  both changed: open.files[].path
  loop changed: resume.files[].path
who says so, and why: people are taken at their word
  both changed: approval.by
  both changed, removed: approval.reason
  loop added: approval.reason
  loop changed, removed: rollback.by, rollback.reason
"""


def _rows() -> Iterator[tuple[str, tuple[str, str, str]]]:
    """Yield the reason and the key of everything in the table."""
    why = ""
    for line in TABLE.strip().splitlines():
        if not line.startswith(" "):
            why = line
            continue
        done, _, places = line.strip().partition(": ")
        writer, _, hows = done.partition(" ")
        for by in ("program", "loop") if writer == "both" else (writer,):
            for how in hows.split(", "):
                yield from ((why, (by, place, how)) for place in places.split(", "))


def reviewed() -> dict[tuple[str, str, str], str]:
    """What a `Forgery.key` says → the reason."""
    return {key: why for why, key in _rows()}


#: Reason → places, as the page on trust says them.
REASONS: dict[str, tuple[str, ...]] = {
    why: tuple(sorted({key[1] for one, key in _rows() if one == why})) for why in dict(_rows())
}
