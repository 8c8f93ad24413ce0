"""Asks a server as a tool, over HTTP.

Invariants:
* Whatever the server does, a `Result` comes back within the time; HTTP 400 and above is a failed one.
* Redirects are not followed, and no header's value ever stands in a message.
"""

from __future__ import annotations

import json
import os
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from http import HTTPStatus
from http.client import HTTPException
from typing import Any

from ledgercli import cel
from ledgercli.errors import LedgerCliError
from ledgercli.records import Result
from ledgercli.results import MAX_OUTPUT, failed, parse_output, timed_out
from ledgercli.toolset import HeaderFromEnvironment, Http


def ask_server(http: Http, args: Mapping[str, Any], seconds: float) -> Result:
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
        return failed(timed_out(seconds) if late else f"{http.method} failed: {reason or type(reason).__name__}")


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
