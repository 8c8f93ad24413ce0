"""Runs a validated action and returns what came of it as `{success, data, error}`.

Invariants:
* Only a call that a verdict let through gets here.
* Whatever a tool does, a `Result` comes back: an exception, a non-zero exit, HTTP 400 and above and a timeout are
  failed results, never a traceback. Only Ctrl-C goes through.
* A write is tried once. A read is tried again as often as its `retries` say.
* A tool's code is imported here and nowhere else.

Not here: whether `fails_when` calls a result a failure (`updater`), and what a result changes.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import importlib.util
import inspect
import queue
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol

from ledgercli.errors import LedgerCliError
from ledgercli.history import freeze
from ledgercli.programs import run_program
from ledgercli.records import Proposal, Result
from ledgercli.results import failed, parse_output, timed_out
from ledgercli.servers import ask_server
from ledgercli.toolset import (
    FINISH,
    CannedRun,
    CommandRun,
    ConfirmRun,
    HttpRun,
    PlanRun,
    PythonRun,
    Tool,
    Toolset,
    UserRun,
)

_IMPORTING = threading.RLock()  # several runs may be under way
_FAILED_TO_ANSWER = "there is nobody to ask: no reply is left and this is no terminal"


class Person(Protocol):
    """Whoever answers `user` and `confirm`."""

    def ask(self, tool: str, args: Mapping[str, Any]) -> str | None:
        """Return what the person says to a `user` tool's question; None if there is nobody."""

    def confirm(self, tool: str, args: Mapping[str, Any]) -> bool | None:
        """Return whether the person says yes to exactly this call; None if there is nobody."""

    def listen(self) -> str | None:
        """Return what the person says unasked, where nothing is left to do; '' or None for nothing."""


@dataclass(slots=True)
class Replies:
    """A person whose answers are written down beforehand; `terminal` answers once they are used up."""

    replies: list[str | bool] = field(default_factory=list)
    terminal: Person | None = None

    def ask(self, tool: str, args: Mapping[str, Any]) -> str | None:
        """Return the next reply."""
        if self.replies:
            return str(self.replies.pop(0))
        return self.terminal.ask(tool, args) if self.terminal else None

    def confirm(self, tool: str, args: Mapping[str, Any]) -> bool | None:
        """Return whether the next reply is a yes."""
        if self.replies:
            return is_yes(self.replies.pop(0))
        return self.terminal.confirm(tool, args) if self.terminal else None

    def listen(self) -> str | None:
        """Return what is said at the terminal; replies answer questions only."""
        return self.terminal.listen() if self.terminal else None


def is_yes(reply: str | bool) -> bool:  # noqa: FBT001 - a reply in YAML may be a bool
    """Whether a reply means yes; everything that is not clearly a yes is a no."""
    return reply is True or str(reply).strip().casefold() in {"yes", "y", "true", "ok", "confirm", "是", "好"}


class Executor:
    """Runs the tools of a toolset.

    Arguments:
        toolset: the tools; `python` files and commands are relative to its folder.
        person: who answers `user` and `confirm`.

    """

    def __init__(self, toolset: Toolset, person: Person) -> None:
        self._toolset = toolset
        self._person = person
        self._functions: dict[str, Callable[..., Any]] = {}

    def run(self, proposal: Proposal) -> Result:
        """Run one validated action, its defaults filled in, within its timeout."""
        tool = self._toolset.tools[proposal.tool]
        args = tool.filled(proposal.args)
        tries = 1 + (tool.retries if tool.access == "read" else 0)
        result = failed("the tool was not tried")
        for _ in range(tries):
            result = self._once(proposal.tool, tool, args)
            if result.success:
                break
        return result

    def _once(self, name: str, tool: Tool, args: Mapping[str, Any]) -> Result:
        match tool.run:
            case PythonRun(python=target):
                return self._python(target, tool, args)
            case CommandRun(command=command):
                return run_program(command, self._toolset.folder, args, tool.timeout)
            case HttpRun(http=http):
                return _within(tool.timeout, lambda: ask_server(http, args, tool.timeout))
            case CannedRun(canned=answers):
                return _canned(answers, args)
            case UserRun():
                said = self._person.ask(name, args)
                return failed(_FAILED_TO_ANSWER) if said is None else Result(success=True, data=said, error=None)
            case ConfirmRun():
                return self._confirmed(args)
            case PlanRun():
                return Result(success=True)  # the goals are part of the state (`updater`)
            case None if name == FINISH:
                return Result(success=True)
            case None:
                return failed(f"the toolset does not say how {name} runs")

    def _confirmed(self, args: Mapping[str, Any]) -> Result:
        asked = args.get("args") or {}
        if not isinstance(asked, Mapping):
            return failed("the arguments of the call to confirm are no map")
        yes = self._person.confirm(str(args.get("tool", "")), asked)
        return failed(_FAILED_TO_ANSWER) if yes is None else Result(success=True, data=yes, error=None)

    def _python(self, target: str, tool: Tool, args: Mapping[str, Any]) -> Result:
        with contextlib.redirect_stdout(sys.stderr):  # what a tool prints is talk, stdout is what was asked for
            try:
                function = self._functions.get(target) or load_function(target, self._toolset.folder)
                self._functions[target] = function
            except LedgerCliError as error:
                return failed(error.message)
            return _within(tool.timeout, lambda: _called(function, args))


def _called(function: Callable[..., Any], args: Mapping[str, Any]) -> Result:
    value = function(**args)
    return parse_output(asyncio.run(_awaited(value)) if inspect.isawaitable(value) else value)


async def _awaited(value: Any) -> Any:
    return await value


def _within(seconds: float, call: Callable[[], Result]) -> Result:
    """Run `call` in a thread and give up waiting after `seconds`: Python cannot end a thread, only leave it."""
    answers: queue.SimpleQueue[Result] = queue.SimpleQueue()

    def work() -> None:
        try:
            answers.put(call())
        except BaseException as error:  # noqa: BLE001 - whatever a tool raises is its failure, SystemExit included
            answers.put(failed(f"{type(error).__name__}: {error}" if str(error) else type(error).__name__))

    threading.Thread(target=work, daemon=True).start()
    try:
        return answers.get(timeout=seconds)
    except queue.Empty:
        return failed(timed_out(seconds))


def load_function(target: str, folder: Path) -> Callable[..., Any]:
    """Import the function that `file.py:function` or `package.module:function` names.

    Arguments:
        target: where the function is.
        folder: what a file is relative to.

    Raises:
        LedgerCliError: there is no such file, module or function, or importing it failed.

    """
    where, _, name = target.rpartition(":")
    try:
        module = _module(folder / where) if where.endswith(".py") else importlib.import_module(where)
        function = getattr(module, name)
    except (Exception, SystemExit) as error:
        raise LedgerCliError(f"cannot load {target}: {type(error).__name__}: {error}") from error
    if not callable(function):
        raise LedgerCliError(f"cannot load {target}: {name} is not a function")
    return function  # type: ignore[no-any-return]  # callable() cannot say more


def _module(file: Path) -> ModuleType:
    """Import a file under a name of its own, so that two toolsets may each have a `tools.py`."""
    name = f"ledgercli_tools_{file.resolve()}"
    with _IMPORTING:
        return sys.modules[name] if name in sys.modules else _imported(name, file)


def _imported(name: str, file: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None or not file.is_file():
        raise FileNotFoundError(f"no file {file}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _canned(answers: Sequence[Any], args: Mapping[str, Any]) -> Result:
    for answer in answers:
        if all(name in args and freeze(args[name]) == freeze(value) for name, value in answer.args.items()):
            return parse_output(answer.result)
    return failed("no canned result fits these arguments")
