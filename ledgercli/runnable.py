"""What a toolset and a scenario say besides expressions, checked without running anything.

Invariants:
* No tool's code is imported: a Python file is parsed for its functions, a module is only looked for when it is run.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from pathlib import Path

from ledgercli import cel
from ledgercli.documents import Document, Place
from ledgercli.scenario import GoalModel, Scenario
from ledgercli.toolschemas import check_schemas
from ledgercli.toolset import FINISH, PLAN_ARGS, CannedRun, PythonRun, Toolset
from ledgercli.vocabulary import Vocabulary

LIMITS = ("max_steps", "max_seconds", "max_repeats", "max_denials")
_PARTS = ("args", "data")


def check_toolset(vocabulary: Vocabulary, toolset: Toolset) -> None:
    """Report files, functions and arguments that are not there, bad schemas, and what `redact` names in vain."""
    document = toolset.document
    check_schemas(vocabulary, toolset)
    for name, tool in toolset.file.tools.items():
        if name == FINISH:
            vocabulary.problem(document, ("tools", name), "built-in-tool", f"the tool {name} is built in", key=True)
        place: Place = ("tools", name, "run")
        if isinstance(tool.run, PythonRun):
            _check_python(vocabulary, toolset, (*place, "python"), tool.run.python)
        for arg in tool.args if tool.plans else ():
            if arg not in PLAN_ARGS:
                vocabulary.unknown(document, ("tools", name, "args", arg), "argument", arg, PLAN_ARGS, key=True)
        for index, answer in enumerate(tool.run.canned if isinstance(tool.run, CannedRun) else ()):
            for arg in answer.args:
                if arg not in tool.args:
                    vocabulary.unknown(
                        document, (*place, "canned", index, "args", arg), "argument", arg, tool.args, key=True
                    )
    for number, rule in enumerate(toolset.file.redact):
        _check_redaction(vocabulary, toolset, ("redact", number), rule)


def _check_python(vocabulary: Vocabulary, toolset: Toolset, place: Place, target: str) -> None:
    where, colon, function = target.rpartition(":")
    if not where or not colon or not function:
        note = "write file.py:function, or package.module:function"
        vocabulary.problem(toolset.document, place, "not-a-function", f"{target} names no function", notes=(note,))
        return
    if not where.endswith(".py"):
        return
    file = toolset.folder / where
    try:
        defined = functions_of(file)
    except OSError:
        vocabulary.problem(toolset.document, place, "no-file", f"no file {file}")
    except (SyntaxError, ValueError) as error:
        vocabulary.problem(toolset.document, place, "not-python", f"{file} is no Python: {error}")
    else:
        if function not in defined:
            vocabulary.unknown(toolset.document, place, "python-function", function, defined, start=len(where) + 1)


def functions_of(file: Path) -> set[str]:
    """Return the names that a Python file defines at its top, by parsing it only.

    Raises:
        OSError: it cannot be read.
        SyntaxError: it is no Python.
        ValueError: it holds what no Python file may.

    """
    names: set[str] = set()
    for node in ast.parse(file.read_bytes()).body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            names |= {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.Assign):
            names |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return names


def _check_redaction(vocabulary: Vocabulary, toolset: Toolset, place: Place, rule: str) -> None:
    document, tools = toolset.document, toolset.file.tools
    tool, _, rest = rule.partition(".")
    part, _, keys = rest.partition(".")
    if not keys or part not in _PARTS:
        note = "write TOOL.args.NAME or TOOL.data.NAME"
        vocabulary.problem(document, place, "not-a-path", f"{rule} names nothing to mask", notes=(note,))
    elif tool not in tools:
        vocabulary.unknown(document, place, "tool", tool, tools)
    elif part == "args" and keys.partition(".")[0] not in tools[tool].args:
        start = len(f"{tool}.{part}.")
        vocabulary.unknown(document, place, "argument", keys.partition(".")[0], tools[tool].args, start=start)


def check_scenario(vocabulary: Vocabulary, scenario: Scenario) -> None:
    """Report limits, times and goals that mean nothing."""
    document, file = scenario.document, scenario.file
    _check_limits(vocabulary, scenario)
    check_time(vocabulary, document, file.now)
    _check_goals(vocabulary, scenario, file.goals, ("goals",), set())
    recording, model = file.decide.recording, file.decide.model
    if recording is not None:
        _check_file(vocabulary, scenario, ("decide", "recording", "file"), recording.file)
    if model is not None and model.template is not None:
        _check_file(vocabulary, scenario, ("decide", "model", "template"), model.template)


def _check_file(vocabulary: Vocabulary, scenario: Scenario, place: Place, name: str) -> None:
    if not (scenario.folder / name).is_file():
        vocabulary.problem(scenario.document, place, "no-file", f"no file {scenario.folder / name}")


def check_time(vocabulary: Vocabulary, document: Document, now: str | None) -> None:
    """Report a `now:` that is no time."""
    if now is None:
        return
    try:
        cel.Timestamp.parse(now)
    except cel.EvalError as error:
        vocabulary.problem(document, ("now",), "not-a-time", f"{now} is no time", notes=(str(error),))


def _check_limits(vocabulary: Vocabulary, scenario: Scenario) -> None:
    for name, value in scenario.file.constraints.items():
        if name in LIMITS and (isinstance(value, bool) or not isinstance(value, (int, float)) or value < 0):
            message = f"{name} is a number from 0"
            vocabulary.problem(scenario.document, ("constraints", name), "not-a-limit", message)


def _check_goals(
    vocabulary: Vocabulary, scenario: Scenario, goals: Sequence[GoalModel], place: Place, seen: set[str]
) -> None:
    for number, goal in enumerate(goals):
        where = (*place, number)
        if goal.name in seen:
            message = f"a second goal is named {goal.name}"
            vocabulary.problem(scenario.document, (*where, "name"), "duplicate-goal", message)
        seen.add(goal.name)
        _check_goals(vocabulary, scenario, goal.goals, (*where, "goals"), seen)
