"""Runs a program as a tool: argv from the toolset, the arguments as JSON on standard input, never through a shell.

Invariants:
* Whatever the program does, a `Result` comes back within the time; nothing that it started outlives it.
* Little more of its output is kept than a ledger holds.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from ledgercli.records import Result
from ledgercli.results import MAX_OUTPUT, failed, parse_output, parsed_text, timed_out


def run_program(command: Sequence[str], folder: Path, args: Mapping[str, Any], seconds: float) -> Result:
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
        return failed(timed_out(seconds))
    out, err = printed
    if max(len(out), len(err)) > MAX_OUTPUT:
        return failed(f"{command[0]} printed more than {MAX_OUTPUT:,} bytes")
    text = out.decode("utf-8", "replace").strip()
    if process.returncode:
        last = err.decode("utf-8", "replace").strip().rpartition("\n")[2]
        return failed(last or f"{command[0]} ended with exit code {process.returncode}", parsed_text(text) or None)
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
