"""One question about many files, asked in one process or several.

Invariants:
* Answers come in the order of the files, whatever the number of processes, so that reports are the same bytes.
* Processes end with whoever asked for them: at the end, at an error, at Ctrl-C.
"""

from __future__ import annotations

import multiprocessing
import signal
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any, Final, TypeVar

from ledgercli.errors import ExitCode, LedgerCliError

_CHUNK: Final = 8  # files that a process takes at once

T = TypeVar("T")
Answers = Callable[[str], T]

_answers: Answers[Any] | None = None  # of this process


def spread(files: Sequence[str], make: Callable[[], Answers[T]], jobs: int) -> Iterator[T]:
    """Yield the answer for each file.

    Arguments:
        files: the files.
        make: makes what answers; each process makes its own.
        jobs: the number of processes.

    Raises:
        LedgerCliError: a process was ended from outside.

    """
    if jobs <= 1 or len(files) <= 1:
        answers = make()
        return (answers(file) for file in files)
    jobs = min(jobs, len(files))
    pool = ProcessPoolExecutor(jobs, initializer=_begin, initargs=(make,))
    chunk = max(1, min(_CHUNK, len(files) // jobs))
    before = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT,))  # a process must not begin with a Ctrl-C
    try:
        asked = deque(pool.submit(_some, files[at : at + chunk]) for at in range(0, len(files), chunk))
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return _gathered(pool, asked)


def _gathered(pool: ProcessPoolExecutor, asked: deque[Future[list[T]]]) -> Iterator[T]:
    """Hand on what the processes find; end them once nobody wants more.

    Nothing is cancelled: the pool's own thread would stumble over it when it finds its processes gone.
    """
    whole = False
    try:
        while asked:
            yield from asked.popleft().result()
        whole = True
    except BrokenProcessPool:
        error = LedgerCliError("a process of --jobs was ended from outside", fix="fewer --jobs, if memory is short")
        error.exit_code = ExitCode.OUTSIDE
        raise error from None
    finally:
        if not whole:
            for process in multiprocessing.active_children():
                process.terminate()
        pool.shutdown()


def _begin(make: Callable[[], Answers[Any]]) -> None:
    global _answers  # noqa: PLW0603 - a process of the pool has one
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the first process takes it, and ends the others
    _answers = make()


def _some(files: Sequence[str]) -> list[Any]:
    assert _answers is not None
    return [_answers(file) for file in files]
