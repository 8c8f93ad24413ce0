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
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from http.client import HTTPException
from pathlib import Path
from types import ModuleType
from typing import IO, Any, Protocol

from ledgercli import cel
from ledgercli.errors import LedgerCliError
from ledgercli.history import freeze
from ledgercli.records import Proposal, Result
from ledgercli.toolset import (
    FINISH,
    CannedRun,
    CommandRun,
    ConfirmRun,
    HeaderFromEnvironment,
    Http,
    HttpRun,
    PythonRun,
    Tool,
    Toolset,
    UserRun,
)

MAX_OUTPUT = 16 * 1024 * 1024  # bytes of what a program or server returns; a ledger's line holds no more
_FAILED_TO_ANSWER = "there is nobody to ask: no reply is left and this is no terminal"


class Person(Protocol):
    """Whoever answers `user` and `confirm`."""

    def ask(self, tool: str, args: Mapping[str, Any]) -> str | None:
        """Return what the person says to a `user` tool's question; None if there is nobody."""

    def confirm(self, tool: str, args: Mapping[str, Any]) -> bool | None:
        """Return whether the person says yes to exactly this call; None if there is nobody."""


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


def is_yes(reply: str | bool) -> bool:  # noqa: FBT001 - a reply in YAML may be a bool
    """Whether a reply means yes; everything that is not clearly a yes is a no."""
    return reply is True or str(reply).strip().casefold() in {"yes", "y", "true", "ok", "confirm", "是", "好"}


def parse_output(value: Any) -> Result:
    """Turn what a tool returned into a result.

    A map with `success` says itself how it went: its other keys are the data unless it has `data`. Text that is a
    JSON object or list is parsed.
    """
    if isinstance(value, str):
        value = _parsed_text(value)
    if isinstance(value, Mapping) and isinstance(value.get("success"), bool):
        rest = {key: item for key, item in value.items() if key not in ("success", "error")}
        data = rest.get("data", rest or None)
        error = value.get("error")
        if value["success"]:
            return Result(success=True, data=data, error=None)
        return Result(success=False, data=data, error="the tool failed" if error is None else _text(error))
    return Result(success=True, data=value, error=None)


def _parsed_text(text: str) -> Any:
    if text.lstrip()[:1] in ("{", "["):
        with contextlib.suppress(ValueError, RecursionError):
            return json.loads(text)
    return text


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def failed(error: str, data: Any = None) -> Result:
    """Return a failed result."""
    return Result(success=False, data=data, error=error)


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
                return _command(command, self._toolset.folder, args, tool.timeout)
            case HttpRun(http=http):
                return _within(tool.timeout, lambda: _http(http, args, tool.timeout))
            case CannedRun(canned=answers):
                return _canned(answers, args)
            case UserRun():
                said = self._person.ask(name, args)
                return failed(_FAILED_TO_ANSWER) if said is None else Result(success=True, data=said, error=None)
            case ConfirmRun():
                asked = args.get("args") or {}
                if not isinstance(asked, Mapping):
                    return failed("the arguments of the call to confirm are no map")
                yes = self._person.confirm(str(args.get("tool", "")), asked)
                return failed(_FAILED_TO_ANSWER) if yes is None else Result(success=True, data=yes, error=None)
            case None if name == FINISH:
                return Result(success=True)
            case None:
                return failed(f"the toolset does not say how {name} runs")

    def _python(self, target: str, tool: Tool, args: Mapping[str, Any]) -> Result:
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
        return failed(_timed_out(seconds))


def _timed_out(seconds: float) -> str:
    return f"no answer within {seconds:g} s; whether it took effect is not known"


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
    if name in sys.modules:
        return sys.modules[name]
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


def _command(command: Sequence[str], folder: Path, args: Mapping[str, Any], seconds: float) -> Result:
    """Run a program in a process group of its own, so that a timeout ends what it started too."""
    try:
        process = subprocess.Popen(  # noqa: S603 - argv from the toolset, never through a shell
            command,
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        return failed(f"cannot run {command[0]}: {getattr(error, 'strerror', None) or error}")
    printed = _talk(process, json.dumps(args, ensure_ascii=False).encode(), seconds)
    if printed is None:
        return failed(_timed_out(seconds))
    out, err = printed
    if max(len(out), len(err)) > MAX_OUTPUT:
        return failed(f"{command[0]} printed more than {MAX_OUTPUT:,} bytes")
    text = out.decode("utf-8", "replace").strip()
    if process.returncode:
        last = err.decode("utf-8", "replace").strip().rpartition("\n")[2]
        return failed(last or f"{command[0]} ended with exit code {process.returncode}", _parsed_text(text) or None)
    return parse_output(text)


def _talk(process: subprocess.Popen[bytes], question: bytes, seconds: float) -> tuple[bytes, bytes] | None:
    """Give a program its input and return what it printed, of each stream little more than is kept; None: too late."""
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    printed = [b"", b""]

    def write(stream: IO[bytes]) -> None:
        with contextlib.suppress(OSError), stream:  # it need not read, and may be gone
            stream.write(question)

    def read(stream: IO[bytes], number: int) -> None:
        with stream:
            printed[number] = stream.read(MAX_OUTPUT + 1)
            if len(printed[number]) > MAX_OUTPUT:
                _end(process)

    threads = [
        threading.Thread(target=write, args=(process.stdin,), daemon=True),
        threading.Thread(target=read, args=(process.stdout, 0), daemon=True),
        threading.Thread(target=read, args=(process.stderr, 1), daemon=True),
    ]
    until = time.monotonic() + seconds
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(max(0.0, until - time.monotonic()))
        process.wait(max(0.0, until - time.monotonic()))
    except subprocess.TimeoutExpired:
        _end(process)
        return None
    except BaseException:
        _end(process)
        raise
    if any(thread.is_alive() for thread in threads):  # it has ended, but something that it started holds its output
        _end(process)
        return None
    return printed[0], printed[1]


def _end(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _http(http: Http, args: Mapping[str, Any], seconds: float) -> Result:
    """Ask a server; redirects are not followed, since they could carry a header elsewhere."""
    try:
        request = _request(http, args)
        with _answer(request, seconds) as answer:
            result = _read_answer(answer)
            bad = answer.status >= HTTPStatus.MULTIPLE_CHOICES
            return failed(f"HTTP {answer.status} {answer.reason}".strip(), result.data) if bad else result
    except LedgerCliError as error:
        return failed(error.message)
    except (OSError, ValueError, HTTPException) as error:
        reason = getattr(error, "reason", error)
        late = isinstance(reason, TimeoutError)
        return failed(_timed_out(seconds) if late else f"{http.method} failed: {reason or type(reason).__name__}")


def _request(http: Http, args: Mapping[str, Any]) -> urllib.request.Request:
    body = None
    sent = {"Accept": "application/json", "User-Agent": "ledgercli"}
    target, used = _address(http.url, args)
    rest = {name: value for name, value in args.items() if name not in used}
    if http.method in ("GET", "DELETE"):
        target += _query(target, rest)
    else:
        body = json.dumps(rest, ensure_ascii=False).encode()
        sent["Content-Type"] = "application/json"
    sent.update(_headers(http.headers))
    return urllib.request.Request(target, data=body, headers=sent, method=http.method)  # noqa: S310 - see _address


def _answer(request: urllib.request.Request, seconds: float) -> Any:
    try:
        return urllib.request.build_opener(_NoRedirect).open(request, timeout=seconds)
    except urllib.error.HTTPError as error:  # an answer like any other
        return error


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        """Refuse: the answer stands as the server gave it."""


def _address(url: str, args: Mapping[str, Any]) -> tuple[str, set[str]]:
    """Return the URL with its `{…}` filled in, percent-encoded, and the arguments that it used."""
    text = cel.parse_text(url)
    env = cel.Env({"action": cel.DYN}, strict=False)
    filled, used = [], set()
    for part in text.parts:
        if isinstance(part, str):
            filled.append(part)
            continue
        checked = cel.check(part, env)
        used |= {str(path[2]) for path in checked.paths if len(path) > 2}
        answer = cel.compile(checked)({"action": {"args": args}})
        if not answer.known:
            raise LedgerCliError(f"the URL cannot be made: {answer.error}")
        filled.append(urllib.parse.quote(str(answer.value), safe=""))
    address = "".join(filled)
    if urllib.parse.urlsplit(address).scheme not in ("http", "https"):
        raise LedgerCliError("the URL is neither http nor https")
    return address, used


def _query(target: str, args: Mapping[str, Any]) -> str:
    if not args:
        return ""
    plain = {name: value if isinstance(value, str) else json.dumps(value) for name, value in args.items()}
    return ("&" if "?" in target else "?") + urllib.parse.urlencode(plain)


def _headers(headers: Mapping[str, str | HeaderFromEnvironment]) -> Iterator[tuple[str, str]]:
    for name, value in headers.items():
        if isinstance(value, str):
            yield name, value
        elif value.env in os.environ:
            secret = os.environ[value.env].strip()
            if not (secret.isascii() and secret.isprintable()):  # what urllib says of it would show it
                raise LedgerCliError(f"the environment variable {value.env} holds what no header can")
            yield name, value.prefix + secret
        else:
            raise LedgerCliError(f"the environment variable {value.env} is not set")


def _read_answer(answer: Any) -> Result:
    body = answer.read(MAX_OUTPUT + 1)
    if len(body) > MAX_OUTPUT:
        return failed(f"the server sent more than {MAX_OUTPUT:,} bytes")
    if getattr(answer, "length", 0):
        raise OSError("the answer breaks off")
    return parse_output(body.decode("utf-8", "replace").strip())


def _canned(answers: Sequence[Any], args: Mapping[str, Any]) -> Result:
    for answer in answers:
        if all(name in args and freeze(args[name]) == freeze(value) for name, value in answer.args.items()):
            return parse_output(answer.result)
    return failed("no canned result fits these arguments")
