"""How tools run: Python, programs, servers, canned answers and people, each real and each with its failures."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from ledgercli import programs, servers
from ledgercli.errors import LedgerCliError
from ledgercli.executor import Executor, Replies, is_yes, load_function
from ledgercli.loading import load_toolset
from ledgercli.records import Proposal, Result
from ledgercli.results import parse_output
from tests.books import write

OPEN = "{a: {default: null}, b: {default: null}}"


def tools(folder: Path, name: str = "tools", **runs: str) -> Executor:
    """An executor of tools that are named with what their entries say."""
    entries = [f"  {tool}:\n    args: {OPEN}\n" + _indented(entry) for tool, entry in runs.items()]
    return Executor(
        load_toolset(write(folder, **{name: f"toolset: {name}\ntools:\n" + "".join(entries)})[name]), Replies()
    )


def _indented(entry: str) -> str:
    return "".join(f"    {line}\n" for line in dedent(entry).strip().splitlines())


def run(executor: Executor, tool: str, args: Mapping[str, Any] | None = None) -> Result:
    return executor.run(Proposal(tool, args or {}))


# ---- what counts as success


@pytest.mark.parametrize(
    ("returned", "result"),
    [
        ("hello", Result(success=True, data="hello")),
        (None, Result(success=True)),
        (7, Result(success=True, data=7)),
        ([1, 2], Result(success=True, data=[1, 2])),
        ({"a": 1}, Result(success=True, data={"a": 1})),
        ({"success": True, "a": 1}, Result(success=True, data={"a": 1})),
        ({"success": True, "a": 1, "data": [2]}, Result(success=True, data=[2])),
        ({"success": True, "data": None}, Result(success=True)),
        ({"success": True}, Result(success=True)),
        ({"success": True, "error": None, "a": 1}, Result(success=True, data={"a": 1})),
        ({"success": False, "error": "no", "code": 7}, Result(success=False, data={"code": 7}, error="no")),
        ({"success": False, "error": {"code": 7}}, Result(success=False, error='{"code": 7}')),
        ({"success": False}, Result(success=False, error="the tool failed")),
        ({"success": "yes"}, Result(success=True, data={"success": "yes"})),
        ('{"success": false, "error": "no"}', Result(success=False, error="no")),
        (' [1, {"a": 2}] ', Result(success=True, data=[1, {"a": 2}])),
        ('{"a": ', Result(success=True, data='{"a": ')),
        ("12", Result(success=True, data="12")),
        ('"text"', Result(success=True, data='"text"')),
        ("[" * 100_000, Result(success=True, data="[" * 100_000)),
        ("", Result(success=True, data="")),
    ],
)
def test_what_a_tool_returned_is_read_as_success_data_and_error(returned: Any, result: Result) -> None:
    assert parse_output(returned) == result


# ---- Python

CODE = """
    import asyncio, sys, time

    def plain(a, b): return {"a": a, "b": b}
    async def later(a, b):
        await asyncio.sleep(0)
        return f"{a}-{b}"
    def text(a, b): return '{"success": false, "error": "said no"}'
    def raises(a, b): raise ValueError("no such order")
    def silent(a, b): raise KeyError
    def leaves(a, b): sys.exit(3)
    def interrupts(a, b): raise KeyboardInterrupt
    def sleeps(a, b): time.sleep(5)
    async def sleeps_too(a, b): await asyncio.sleep(5)
    def narrow(a): return a
    NUMBER = 5
    calls = []
    def third(a, b):
        calls.append(a)
        if len(calls) < 3: raise OSError("not yet")
        return len(calls)
    class Made:
        def __init__(self, a, b): self.a = a
    def made(a, b): return Made(a, b)
"""


@pytest.fixture
def code(tmp_path: Path) -> Path:
    (tmp_path / "code.py").write_text(dedent(CODE))
    return tmp_path


def python(folder: Path, function: str, more: str = "") -> Executor:
    return tools(folder, act=f"run: {{python: 'code.py:{function}'}}\n{dedent(more)}")


@pytest.mark.parametrize(
    ("function", "result"),
    [
        ("plain", Result(success=True, data={"a": 1, "b": None})),
        ("later", Result(success=True, data="1-None")),
        ("text", Result(success=False, error="said no")),
        ("raises", Result(success=False, error="ValueError: no such order")),
        ("silent", Result(success=False, error="KeyError")),
        ("leaves", Result(success=False, error="SystemExit: 3")),
        ("interrupts", Result(success=False, error="KeyboardInterrupt")),
    ],
)
def test_a_python_function_runs_with_the_arguments_and_the_defaults(code: Path, function: str, result: Result) -> None:
    assert run(python(code, function), "act", {"a": 1}) == result


def test_a_function_that_takes_other_arguments_fails(code: Path) -> None:
    result = run(python(code, "narrow"), "act", {"a": 1})
    assert not result.success
    assert "unexpected keyword argument 'b'" in str(result.error)


@pytest.mark.parametrize("function", ["sleeps", "sleeps_too"])
def test_a_python_function_has_a_time_limit(code: Path, function: str) -> None:
    started = time.monotonic()
    result = run(python(code, function, "timeout: 0.1"), "act")
    assert time.monotonic() - started < 3
    assert result == Result(success=False, error="no answer within 0.1 s; whether it took effect is not known")


def test_only_reads_are_tried_again(code: Path) -> None:
    assert run(python(code, "third", "access: read\nretries: 5"), "act", {"a": 1}) == Result(success=True, data=3)


def test_a_write_is_tried_once(tmp_path: Path) -> None:
    (tmp_path / "code.py").write_text(dedent(CODE))
    assert run(python(tmp_path, "third", "retries: 5"), "act") == Result(success=False, error="OSError: not yet")


def test_a_read_is_not_tried_more_often_than_it_says(tmp_path: Path) -> None:
    (tmp_path / "code.py").write_text(dedent(CODE))
    assert not run(python(tmp_path, "third", "access: read\nretries: 1"), "act").success


def test_two_toolsets_may_each_have_a_file_of_the_same_name(tmp_path: Path) -> None:
    found = []
    for name in ("one", "two"):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "code.py").write_text(f"def act(a, b): return {name!r}\n")
        found.append(run(tools(folder, act="run: {python: 'code.py:act'}"), "act").data)
    assert found == ["one", "two"]


def test_a_file_is_imported_once_for_all_its_functions(tmp_path: Path) -> None:
    (tmp_path / "code.py").write_text(
        "n = []\ndef act(a, b):\n    n.append(1)\n    return len(n)\ndef more(a, b): return act(a, b)\n"
    )
    both = tools(tmp_path, act="run: {python: 'code.py:act'}", more="run: {python: 'code.py:more'}")
    assert [run(both, "act").data, run(both, "more").data, run(both, "act").data] == [1, 2, 3]


def test_a_function_of_an_installed_module_runs(tmp_path: Path) -> None:
    entry = "toolset: t\ntools:\n  join: {args: {a: {type: string}}, run: {python: 'posixpath:normpath'}}\n"
    mine = Executor(load_toolset(write(tmp_path, t=entry)["t"]), Replies())
    assert "unexpected keyword argument" in str(mine.run(Proposal("join", {"a": "x"})).error)
    assert load_function("posixpath:normpath", tmp_path)("a/../b") == "b"


@pytest.mark.parametrize(
    ("target", "why"),
    [
        ("none.py:act", "FileNotFoundError"),
        ("code.py:nothing", "AttributeError"),
        ("code.py:NUMBER", "NUMBER is not a function"),
        ("no_such_module_here:act", "ModuleNotFoundError"),
        ("broken.py:act", "ZeroDivisionError"),
        ("leaving.py:act", "SystemExit"),
    ],
)
def test_what_cannot_be_loaded_says_why(code: Path, target: str, why: str) -> None:
    (code / "broken.py").write_text("1 / 0\n")
    (code / "leaving.py").write_text("import sys\nsys.exit('bye')\n")
    for _ in range(2):  # a file that failed once is tried again, not half there
        with pytest.raises(LedgerCliError, match=why):
            load_function(target, code)


def test_a_function_that_cannot_be_loaded_is_a_failed_result(code: Path) -> None:
    (code / "broken.py").write_text("def act(a, b): pass\n1 / 0\n")
    result = run(tools(code, act="run: {python: 'broken.py:act'}"), "act")
    assert result == Result(success=False, error="cannot load broken.py:act: ZeroDivisionError: division by zero")


# ---- programs


def program(folder: Path, text: str, more: str = "") -> Executor:
    (folder / "program.py").write_text(dedent(text))
    return tools(folder, act=f"run: {{command: [{json.dumps(sys.executable)}, program.py]}}\n{more}")


def test_a_program_gets_its_arguments_as_json_on_standard_input(tmp_path: Path) -> None:
    echo = "import json, os, sys\nprint(json.dumps({'got': json.load(sys.stdin), 'here': os.getcwd()}))"
    result = run(program(tmp_path, echo), "act", {"a": "北京 $(rm -rf .) `x`"})
    assert result.data == {"got": {"a": "北京 $(rm -rf .) `x`", "b": None}, "here": os.path.realpath(tmp_path)}


def test_a_program_that_reads_nothing_is_no_trouble(tmp_path: Path) -> None:
    result = run(program(tmp_path, "import os; os.close(0); print('fine')"), "act", {"a": "x" * 1_000_000})
    assert result == Result(success=True, data="fine")


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("print('plain text')", Result(success=True, data="plain text")),
        ("print('[1, 2]')", Result(success=True, data=[1, 2])),
        ("pass", Result(success=True, data="")),
        ("import sys; print('why', file=sys.stderr); print('really', file=sys.stderr); sys.exit(3)", Result(success=False, error="really")),
        ("import sys; print('{\"code\": 7}'); sys.exit(3)", Result(success=False, data={"code": 7}, error=f"{sys.executable} ended with exit code 3")),
        ("import sys; sys.stdout.buffer.write(b'\\xff!')", Result(success=True, data="\ufffd!")),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", Result(success=False, error=f"{sys.executable} ended with exit code -9")),
    ],
)  # fmt: skip
def test_a_program_ends_well_or_badly(tmp_path: Path, text: str, result: Result) -> None:
    assert run(program(tmp_path, text), "act") == result


def test_a_program_that_is_not_there_is_a_failed_result(tmp_path: Path) -> None:
    result = run(tools(tmp_path, act="run: {command: [./nothing-here, '$HOME']}"), "act")
    assert result == Result(success=False, error="cannot run ./nothing-here: No such file or directory")


def test_a_time_limit_ends_the_program_and_what_it_started(tmp_path: Path) -> None:
    nested = f"""
        import subprocess, sys, time
        child = subprocess.Popen([{sys.executable!r}, "-c", "import time; time.sleep(60)"])
        open("pid", "w").write(str(child.pid))
        time.sleep(60)
    """
    started = time.monotonic()
    result = run(program(tmp_path, nested, "timeout: 1.5"), "act")
    assert result == Result(success=False, error="no answer within 1.5 s; whether it took effect is not known")
    assert time.monotonic() - started < 10
    child = int((tmp_path / "pid").read_text())
    assert gone(child)


def gone(pid: int) -> bool:
    """Whether a process has ended; one that nobody has waited for yet counts as ended."""
    for _ in range(100):
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except FileNotFoundError:
            return True
        if state == "Z":
            return True
        time.sleep(0.02)
    return False


def test_an_interruption_ends_the_program_too(tmp_path: Path) -> None:
    slow = program(tmp_path, "import os, time; open('pid', 'w').write(str(os.getpid())); time.sleep(60)")

    main = threading.main_thread().ident
    assert main is not None

    def interrupt() -> None:
        while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():
            time.sleep(0.01)
        signal.pthread_kill(main, signal.SIGINT)

    threading.Thread(target=interrupt, daemon=True).start()
    with pytest.raises(KeyboardInterrupt):
        run(slow, "act")
    assert gone(int((tmp_path / "pid").read_text()))


def test_a_program_that_leaves_its_output_to_another_has_a_time_limit_all_the_same(tmp_path: Path) -> None:
    leaves = f"""
        import subprocess, sys
        child = subprocess.Popen([{sys.executable!r}, "-c", "import time; time.sleep(3)"], start_new_session=True)
        print("started", flush=True)
    """
    started = time.monotonic()
    result = run(program(tmp_path, leaves, "timeout: 0.8"), "act")
    assert time.monotonic() - started < 2.5
    assert result == Result(success=False, error="no answer within 0.8 s; whether it took effect is not known")


def test_a_program_that_prints_too_much_is_a_failed_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "MAX_OUTPUT", 1000)
    result = run(program(tmp_path, "print('x' * 2000)"), "act")
    assert result == Result(success=False, error=f"{sys.executable} printed more than 1,000 bytes")


def test_a_program_that_never_stops_printing_is_ended(tmp_path: Path) -> None:
    started = time.monotonic()
    result = run(program(tmp_path, "while True: print('x' * 100_000)", "timeout: 20"), "act")
    assert result == Result(success=False, error=f"{sys.executable} printed more than 16,777,216 bytes")
    assert time.monotonic() - started < 15


# ---- servers


class Handler(BaseHTTPRequestHandler):
    """Answers by the path that is asked for, and remembers what was asked."""

    asked: list[tuple[str, str, dict[str, str], str]] = []  # noqa: RUF012 - shared on purpose

    def answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
        self.asked.append((self.command, self.path, dict(self.headers), body))
        path = self.path.partition("?")[0]
        if path.startswith("/status/"):
            self.say(int(path.split("/")[2]), b'{"why": "so"}')
        elif path == "/redirect":
            self.send_response(302)
            self.send_header("Location", "/ok")
            self.send_header("Content-Length", "0")
            self.end_headers()
        elif path == "/text":
            self.say(200, "纯文本".encode())
        elif path == "/huge":
            self.say(200, b"x" * 5000)
        elif path == "/short":
            self.send_response(200)
            self.send_header("Content-Length", "100")
            self.end_headers()
            self.wfile.write(b"only this")
            self.close_connection = True
        elif path == "/short-error":
            self.send_response(500)
            self.send_header("Content-Length", "100")
            self.end_headers()
            self.wfile.write(b"only this")
            self.close_connection = True
        elif path == "/garbage":
            self.wfile.write(b"this is no HTTP\r\n\r\n")
            self.close_connection = True
        elif path == "/drip":
            self.drip()
        elif path == "/silence":
            time.sleep(1.5)
        else:
            self.say(200, b'{"success": true, "data": {"n": 1}}')

    def drip(self) -> None:
        """A byte now and then: no single wait is long, the whole is."""
        self.send_response(200)
        self.send_header("Content-Length", "1000")
        self.end_headers()
        try:
            for _ in range(30):
                self.wfile.write(b"x")
                self.wfile.flush()
                time.sleep(0.1)
        except OSError:
            pass

    def say(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = do_PUT = do_DELETE = answer  # noqa: N815 - as the library calls them

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    httpd = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    httpd.daemon_threads = True
    threading.Thread(target=httpd.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    yield f"http://127.0.0.1:{httpd.server_address[1]}"
    httpd.shutdown()
    httpd.server_close()


def http(folder: Path, url: str, more: str = "", *, method: str = "GET", timeout: float = 5) -> Executor:
    entry = f"run: {{http: {{method: {method}, url: {json.dumps(url)}{more}}}}}\ntimeout: {timeout}"
    return tools(folder, act=entry)


def test_get_sends_arguments_in_the_query(tmp_path: Path, server: str) -> None:
    assert run(http(tmp_path, f"{server}/ok"), "act", {"a": "x y&z=北", "b": [1]}) == Result(
        success=True, data={"n": 1}
    )
    method, path, headers, body = Handler.asked[-1]
    assert (method, path, body) == ("GET", "/ok?a=x+y%26z%3D%E5%8C%97&b=%5B1%5D", "")
    assert headers["Accept"] == "application/json"


def test_a_query_that_is_there_already_is_kept(tmp_path: Path, server: str) -> None:
    run(http(tmp_path, f"{server}/ok?fixed=1"), "act", {"a": "x", "b": True})
    assert Handler.asked[-1][1] == "/ok?fixed=1&a=x&b=true"


@pytest.mark.parametrize("method", ["POST", "PUT"])
def test_post_sends_arguments_as_a_json_body(tmp_path: Path, server: str, method: str) -> None:
    run(http(tmp_path, f"{server}/ok", method=method), "act", {"a": {"k": "北京"}, "b": 120})
    got, path, headers, body = Handler.asked[-1]
    assert (got, path, headers["Content-Type"]) == (method, "/ok", "application/json")
    assert json.loads(body) == {"a": {"k": "北京"}, "b": 120}


def test_an_argument_in_the_url_is_encoded_and_not_sent_twice(tmp_path: Path, server: str) -> None:
    run(http(tmp_path, f"{server}/orders/{{action.args.a}}/x"), "act", {"a": "../#W1?x=1&y/é", "b": "q"})
    assert Handler.asked[-1][1] == "/orders/..%2F%23W1%3Fx%3D1%26y%2F%C3%A9/x?b=q"


def test_headers_come_from_the_file_or_the_environment(
    tmp_path: Path, server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = http(
        tmp_path, f"{server}/ok", ', headers: {X-Kind: test, Authorization: {env: SHOP_TOKEN, prefix: "Bearer "}}'
    )
    monkeypatch.delenv("SHOP_TOKEN", raising=False)
    asked = len(Handler.asked)
    assert run(mine, "act") == Result(success=False, error="the environment variable SHOP_TOKEN is not set")
    assert len(Handler.asked) == asked
    monkeypatch.setenv("SHOP_TOKEN", "s3cret\n")
    assert run(mine, "act").success
    headers = Handler.asked[-1][2]
    assert (headers["X-Kind"], headers["Authorization"]) == ("test", "Bearer s3cret")


def test_a_header_that_no_request_can_hold_never_shows_its_value(
    tmp_path: Path, server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = http(tmp_path, f"{server}/ok", ", headers: {Authorization: {env: SHOP_TOKEN}}")
    for value in ("s3cret\r\nX-Other: 1", "s3cret北"):
        monkeypatch.setenv("SHOP_TOKEN", value)
        result = run(mine, "act")
        assert not result.success
        assert "SHOP_TOKEN" in str(result.error)
        assert "s3cret" not in str(result.error)


@pytest.mark.parametrize("status", [400, 404, 500])
def test_an_error_status_is_a_failure_with_the_answer_as_data(tmp_path: Path, server: str, status: int) -> None:
    result = run(http(tmp_path, f"{server}/status/{status}"), "act")
    assert (result.success, result.data) == (False, {"why": "so"})
    assert str(result.error).startswith(f"HTTP {status} ")


def test_a_redirect_is_not_followed(tmp_path: Path, server: str) -> None:
    asked = len(Handler.asked)
    result = run(http(tmp_path, f"{server}/redirect"), "act")
    assert (result.success, result.error) == (False, "HTTP 302 Found")
    assert len(Handler.asked) == asked + 1


def test_an_answer_that_is_no_json_is_text(tmp_path: Path, server: str) -> None:
    assert run(http(tmp_path, f"{server}/text"), "act") == Result(success=True, data="纯文本")


def test_an_answer_that_is_too_long_is_a_failure(tmp_path: Path, server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(servers, "MAX_OUTPUT", 1000)
    assert run(http(tmp_path, f"{server}/huge"), "act") == Result(
        success=False, error="the server sent more than 1,000 bytes"
    )


@pytest.mark.parametrize("path", ["silence", "drip"])
def test_a_server_has_a_time_limit_for_the_whole_answer(tmp_path: Path, server: str, path: str) -> None:
    started = time.monotonic()
    result = run(http(tmp_path, f"{server}/{path}", timeout=0.3), "act")
    assert time.monotonic() - started < 1.3
    assert result == Result(success=False, error="no answer within 0.3 s; whether it took effect is not known")


@pytest.mark.parametrize("path", ["short", "short-error", "garbage"])
def test_an_answer_that_breaks_off_or_is_no_http_is_a_failure(tmp_path: Path, server: str, path: str) -> None:
    result = run(http(tmp_path, f"{server}/{path}"), "act")
    assert not result.success
    assert result.error


def test_a_server_that_is_not_there_is_a_failure(tmp_path: Path) -> None:
    httpd = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    port = httpd.server_address[1]
    httpd.server_close()
    result = run(http(tmp_path, f"http://127.0.0.1:{port}/ok"), "act")
    assert not result.success
    assert "GET failed: " in str(result.error)


@pytest.mark.parametrize("url", ["file:///etc/passwd", "ftp://127.0.0.1/x", "{action.args.a}"])
def test_only_http_and_https_are_asked(tmp_path: Path, url: str) -> None:
    result = run(http(tmp_path, url), "act", {"a": "file:///etc/passwd"})
    assert result == Result(success=False, error="the URL is neither http nor https")


def test_a_url_that_cannot_be_made_is_a_failure(tmp_path: Path, server: str) -> None:
    result = run(http(tmp_path, f"{server}/{{action.args.a.id}}"), "act", {"a": {}})
    assert not result.success
    assert "the URL cannot be made" in str(result.error)


# ---- canned answers and people


def test_the_first_canned_answer_whose_arguments_are_part_of_the_call_is_given(tmp_path: Path) -> None:
    entry = """
        run:
          canned:
            - {args: {a: 1, b: x}, result: both}
            - {args: {a: 1}, result: {success: false, error: only a}}
            - {args: {a: true}, result: bool}
            - {args: {a: 2.0}, result: '{"parsed": true}'}
            - {args: {a: {k: [1]}}, result: deep}
    """
    mine = tools(tmp_path, act=entry)
    assert run(mine, "act", {"a": 1, "b": "x"}) == Result(success=True, data="both")
    assert run(mine, "act", {"a": 1, "b": "y"}) == Result(success=False, error="only a")
    assert run(mine, "act", {"a": True}) == Result(success=True, data="bool")
    assert run(mine, "act", {"a": 2}) == Result(success=True, data={"parsed": True})
    assert run(mine, "act", {"a": {"k": [1]}}) == Result(success=True, data="deep")
    assert run(mine, "act", {"a": {"k": [True]}}) == Result(
        success=False, error="no canned result fits these arguments"
    )
    assert run(mine, "act", {"b": "x"}) == Result(success=False, error="no canned result fits these arguments")


class Someone:
    """A person at a terminal, who remembers what was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, Any]] = []

    def ask(self, tool: str, args: Mapping[str, Any]) -> str | None:
        self.asked.append((tool, dict(args)))
        return "from the terminal"

    def confirm(self, tool: str, args: Mapping[str, Any]) -> bool | None:
        self.asked.append((tool, dict(args)))
        return False


PEOPLE = """
    toolset: people
    tools:
      ask: {args: {question: {type: string}}, run: {user: {}}}
      really: {args: {tool: {type: string}, args: {default: null}}, run: {confirm: {}}}
"""


def people(folder: Path, person: Replies) -> Executor:
    return Executor(load_toolset(write(folder, people=PEOPLE)["people"]), person)


def test_replies_are_taken_in_order_and_then_the_terminal_answers(tmp_path: Path) -> None:
    someone = Someone()
    mine = people(tmp_path, Replies(['{"a": 1}', "yes"], someone))
    assert run(mine, "ask", {"question": "?"}).data == '{"a": 1}'
    assert run(mine, "really", {"tool": "pay", "args": {"amount": 5}}) == Result(success=True, data=True)
    assert someone.asked == []
    assert run(mine, "ask", {"question": "now?"}).data == "from the terminal"
    assert run(mine, "really", {"tool": "pay", "args": {"amount": 5}}) == Result(success=True, data=False)
    assert someone.asked == [("ask", {"question": "now?"}), ("pay", {"amount": 5})]


def test_nobody_to_ask_is_a_failure(tmp_path: Path) -> None:
    mine = people(tmp_path, Replies())
    for tool, args in (("ask", {"question": "?"}), ("really", {"tool": "pay"})):
        assert run(mine, tool, args) == Result(
            success=False, error="there is nobody to ask: no reply is left and this is no terminal"
        )


@pytest.mark.parametrize(
    ("reply", "yes"),
    [(True, True), ("yes", True), (" YES ", True), ("y", True), ("是", True), (False, False), ("no", False),
     ("", False), ("yes, but not now", False), ("maybe", False), ("false", False)],
)  # fmt: skip
def test_only_a_clear_yes_is_one(reply: str | bool, yes: bool) -> None:
    assert is_yes(reply) is yes


def test_a_tool_that_nothing_runs_fails(tmp_path: Path) -> None:
    result = run(tools(tmp_path, act="access: read"), "act")
    assert result == Result(success=False, error="the toolset does not say how act runs")


def test_a_call_to_confirm_whose_arguments_are_no_map_fails(tmp_path: Path) -> None:
    result = run(people(tmp_path, Replies(["yes"])), "really", {"tool": "pay", "args": "all"})
    assert result == Result(success=False, error="the arguments of the call to confirm are no map")


def test_finish_runs_nothing(tmp_path: Path) -> None:
    assert run(people(tmp_path, Replies()), "finish", {"answer": 1}) == Result(success=True)
