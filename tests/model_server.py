"""A server that speaks as OpenAI's does and says what a test has written down, on loopback, in a thread."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

USAGE = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}
_PIECE = 7  # characters that a stream says at once


@dataclass(frozen=True)
class Reply:
    """What is said to one request.

    Arguments:
        content: text, in place of calls.
        calls: name and arguments of each call, the arguments as text.
        finish: why the reply ends.
        status: the HTTP status; other than 200 an error is said.
        error: its message.
        code: its code.
        headers: more headers.
        hang: seconds of silence before anything is said.
        trickle: seconds between two pieces of a stream.
        cut: how many pieces (of a stream), or bytes, come before the connection ends.

    """

    content: str | None = None
    calls: Sequence[tuple[str, str]] = ()
    finish: str | None = None
    status: int = 200
    error: str = "no"
    code: str | None = None
    headers: dict[str, str] = field(default_factory=dict)
    hang: float = 0
    trickle: float = 0
    cut: int | None = None
    usage: dict[str, int] | None = field(default_factory=lambda: dict(USAGE))

    @property
    def finished(self) -> str:
        return self.finish or ("tool_calls" if self.calls else "stop")

    def whole(self, model: str) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": self.content}
        if self.calls:
            message["tool_calls"] = [_call(number, *call) for number, call in enumerate(self.calls)]
        choice = {"index": 0, "message": message, "finish_reason": self.finished}
        return {**_head(model, "chat.completion"), "choices": [choice], "usage": self.usage}

    def pieces(self, model: str) -> Iterator[dict[str, Any]]:
        head = _head(model, "chat.completion.chunk")
        yield {**head, "choices": [_delta({"role": "assistant", "content": ""})]}
        for at in range(0, len(self.content or ""), _PIECE):
            yield {**head, "choices": [_delta({"content": (self.content or "")[at : at + _PIECE]})]}
        for number, (name, args) in enumerate(self.calls):
            begun = {**_call(number, name, ""), "index": number}
            yield {**head, "choices": [_delta({"tool_calls": [begun]})]}
            for at in range(0, len(args), _PIECE):
                part = {"index": number, "function": {"arguments": args[at : at + _PIECE]}}
                yield {**head, "choices": [_delta({"tool_calls": [part]})]}
        yield {**head, "choices": [_delta({}, self.finished)]}
        if self.usage is not None:
            yield {**head, "choices": [], "usage": self.usage}


def _head(model: str, kind: str) -> dict[str, Any]:
    return {"id": "chatcmpl-1", "object": kind, "created": 1, "model": model}


def _call(number: int, name: str, args: str) -> dict[str, Any]:
    return {"id": f"call_{number}", "type": "function", "function": {"name": name, "arguments": args}}


def _delta(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
    return {"index": 0, "delta": delta, "finish_reason": finish}


class ModelServer:
    """Says one reply a request, in order; once they are used up, the last one again.

    `requests` are the bodies that came, `keys` what their `Authorization` said.
    """

    def __init__(self, *replies: Reply) -> None:
        self.replies = list(replies)
        self.requests: list[dict[str, Any]] = []
        self.keys: list[str | None] = []
        self.times: list[float] = []
        self._over = threading.Event()
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        outer = self

        class Answers(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                outer._answer(self, body)

            def log_message(self, *_: Any) -> None:
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
        self._http.daemon_threads = True
        threading.Thread(target=self._http.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._http.shutdown()
        self._http.server_close()

    @property
    def base(self) -> str:
        return f"http://127.0.0.1:{self._http.server_address[1]}/v1"

    def _answer(self, http: BaseHTTPRequestHandler, body: dict[str, Any]) -> None:
        with self._lock:
            reply = self.replies[min(len(self.requests), len(self.replies) - 1)]
            self.requests.append(body)
            self.keys.append(http.headers.get("Authorization"))
            self.times.append(time.monotonic())
        try:
            self._over.wait(reply.hang)
            self._say(http, reply, body)
        except (BrokenPipeError, ConnectionResetError):
            http.close_connection = True

    def _say(self, http: BaseHTTPRequestHandler, reply: Reply, body: dict[str, Any]) -> None:
        if reply.status != 200:
            said = {"error": {"message": reply.error, "type": "error", "param": None, "code": reply.code}}
            _whole(http, reply, json.dumps(said).encode())
        elif body.get("stream"):
            self._stream(http, reply, body["model"])
        else:
            _whole(http, reply, json.dumps(reply.whole(body["model"])).encode())

    def _stream(self, http: BaseHTTPRequestHandler, reply: Reply, model: str) -> None:
        http.send_response(200)
        http.send_header("Content-Type", "text/event-stream")
        http.send_header("Connection", "close")  # as many proxies do: the end of the stream is that of the connection
        http.end_headers()
        http.close_connection = True
        for number, piece in enumerate(reply.pieces(model)):
            if number == reply.cut:
                return
            http.wfile.write(b"data: " + json.dumps(piece).encode() + b"\n\n")
            http.wfile.flush()
            self._over.wait(reply.trickle)
        http.wfile.write(b"data: [DONE]\n\n")


def _whole(http: BaseHTTPRequestHandler, reply: Reply, data: bytes) -> None:
    http.send_response(reply.status)
    for name, value in {"Content-Type": "application/json", "Content-Length": str(len(data)), **reply.headers}.items():
        http.send_header(name, value)
    http.end_headers()
    http.wfile.write(data[: reply.cut])
    http.close_connection = http.close_connection or reply.cut is not None
