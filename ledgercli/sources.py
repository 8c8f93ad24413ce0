"""Files that people wrote, before they are parsed: what they are, their bytes, and what is wrong with them.

Invariants:
* A `Problem` is data. Whoever finds one yields it; only reports print it.
* A `Source` holds exactly the bytes of the file: `text.encode() == data`, so that a ledger can carry the text and its
  digest can be checked years later. A byte-order mark and CR LF stay in it; the YAML reader copes with them.
* `kind_of` and `find` never raise on account of what a file holds: a damaged file is somebody else's finding.
* Only regular files (through symlinks too) are opened, never a device or a pipe; `-` is standard input.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import stat
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import BinaryIO, Literal

from ledgercli.errors import InvalidDocumentError, UnreadableInputError

Severity = Literal["error", "warning", "note"]
Kind = Literal["scenario", "pack", "toolset", "cases", "ledger"]

_LONGEST_WORD = 80
MAX_LINE = 1000  # characters; a longer line is not shown
MAX_BYTES = 4 * 1024 * 1024
STDIN = "<stdin>"
_HEAD_BYTES = 64 * 1024  # what `kind_of` looks at
_FIRST_KEY = re.compile(r"""\s*(?:\{\s*)?(?P<quote>["']?)(?P<word>[^\s"':{}\[\],#]+)(?P=quote)\s*(?::|$)""")
_SKIPPED = frozenset({"node_modules", "__pycache__", "site-packages"})
_SUFFIXES = (".yaml", ".yml", ".jsonl")
_MAX_SIBLINGS = 10_000  # names looked at when a file is missing


@dataclass(frozen=True, slots=True)
class Problem:
    """One finding about one file, with all that a report shows.

    Arguments:
        code: kebab-case name of the kind of finding, such as `yaml-tag`; see `documents.CODES`.
        message: one line.
        file: the name as the user typed it.
        line: from 1; 0 where the whole file is meant.
        column: from 1, in characters; 0 where the whole line is meant.
        length: how many characters of the line are meant.
        severity: an error refuses the file, a warning and a note do not.
        notes: lines that explain further, shown after `=`.
        inline: what to do, shown right after the caret.
        source_line: the line itself, without its end; None if it is overlong.

    """

    code: str
    message: str
    file: str
    line: int = 0
    column: int = 0
    length: int = 1
    severity: Severity = "error"
    notes: tuple[str, ...] = ()
    inline: str | None = None
    source_line: str | None = None

    def __lt__(self, other: Problem) -> bool:
        return self._order < other._order

    def __str__(self) -> str:
        place = ":".join(str(part) for part in (self.file, self.line, self.column) if part)
        return f"{place}: {self.severity}[{self.code}]: {self.message}"

    @property
    def _order(self) -> tuple[str, int, int, str, str]:
        return self.file, self.line, self.column, self.code, self.message


def shown(word: str) -> str:
    """Return a word of a file for a message, cut if it is overlong."""
    return word if len(word) <= _LONGEST_WORD else word[:_LONGEST_WORD] + "..."


@dataclass(frozen=True, slots=True)
class Source:
    """A file as it was read.

    Arguments:
        name: as the user typed it; `<stdin>` for standard input.
        data: the bytes.
        text: the same, decoded.
        digest: `sha256:` and the hexadecimal digest of the bytes.

    """

    name: str
    data: bytes = field(repr=False)
    text: str = field(repr=False)
    digest: str

    @classmethod
    def of(cls, name: str, content: str | bytes) -> Source:
        """Return the source of these bytes, or of this text (as a ledger carries it)."""
        data = content if isinstance(content, bytes) else content.encode("utf-8", "surrogatepass")
        text = _decode(name, data) if isinstance(content, bytes) else content
        return cls(name, data, text, f"sha256:{hashlib.sha256(data).hexdigest()}")


def read(path: str | os.PathLike[str]) -> Source:
    """Read a file of at most 4 MiB of UTF-8; `-` reads standard input.

    Raises:
        UnreadableInputError: there is no such file, or it cannot be opened, or is too large.
        InvalidDocumentError: it is not UTF-8 text; `problems` says where.

    """
    name = os.fspath(path)
    if name == "-":
        return Source.of(STDIN, _bounded(STDIN, _all_of(sys.stdin.buffer)))
    return Source.of(name, _bounded(name, _read_bytes(name, MAX_BYTES + 1)))


@lru_cache(maxsize=1)
def _all_of(stream: BinaryIO) -> bytes:
    """Read standard input, which can be read once but may be asked for twice."""
    return stream.read(MAX_BYTES + 1)


def _bounded(name: str, data: bytes) -> bytes:
    if len(data) > MAX_BYTES:
        raise UnreadableInputError(f"{name} is larger than {MAX_BYTES // 2**20} MiB")
    return data


def _read_bytes(name: str, limit: int) -> bytes:
    """Read up to `limit` bytes of a regular file."""
    try:
        # O_NONBLOCK: opening a pipe that nobody writes to must not hang.
        descriptor = os.open(name, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError) as error:
        raise _unreadable(name, error) from None
    chunks: list[bytes] = []
    try:
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISDIR(mode):
            raise UnreadableInputError(f"{name} is a folder, not a file")
        if not stat.S_ISREG(mode):
            raise UnreadableInputError(f"{name} is not a regular file", fix="pass it on standard input, as -")
        while limit > 0 and (chunk := os.read(descriptor, limit)):
            chunks.append(chunk)
            limit -= len(chunk)
    except OSError as error:
        raise _unreadable(name, error) from None
    finally:
        os.close(descriptor)
    return b"".join(chunks)


def _unreadable(name: str, error: OSError | ValueError) -> UnreadableInputError:
    if isinstance(error, ValueError):  # a NUL in the name
        return UnreadableInputError(f"{name!r} is no file name")
    if error.errno in {errno.ENOENT, errno.ENOTDIR}:
        near = _nearest_file(name)
        return UnreadableInputError(f"no file {name}" + (f"; there is {near}" if near else ""))
    if error.errno == errno.EACCES:
        return UnreadableInputError(f"{name} may not be read: permission denied")
    return UnreadableInputError(f"{name} cannot be read: {(error.strerror or str(error)).lower()}")


def _nearest_file(name: str) -> str | None:
    """Return the existing file whose path is most like `name`, one part at a time."""
    from ledgercli.cel import nearest

    found = Path()
    for part in Path(name).parts:
        if part == ".." or os.path.lexists(found / part):
            found /= part
            continue
        try:
            siblings = [path.name for path, _ in zip(found.iterdir(), range(_MAX_SIBLINGS), strict=False)]
        except OSError:
            return None
        near = nearest(part, siblings, 1)
        if not near:
            return None
        found /= near[0]
    return str(found) if found.is_file() else None


def _decode(name: str, data: bytes) -> str:
    """Decode UTF-8, or say where it is none."""
    if data[:2] in {b"\xff\xfe", b"\xfe\xff"}:
        raise _not_text(name, data, 0, "this is UTF-16; save it as UTF-8")
    if (nul := data.find(b"\0")) >= 0:
        raise _not_text(name, data, nul, "a NUL byte stands here; this is no text in UTF-8")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        message = f"byte 0x{data[error.start]:02x} is not UTF-8 here; save the file as UTF-8"
        raise _not_text(name, data, error.start, message) from None


def _not_text(name: str, data: bytes, offset: int, message: str) -> InvalidDocumentError:
    start = data.rfind(b"\n", 0, offset) + 1
    end = data.find(b"\n", offset)
    before = data[start:offset].decode("utf-8", "replace")
    line = data[start : end if end >= 0 else None].decode("utf-8", "replace")
    problem = Problem(
        "not-utf-8",
        message,
        name,
        line=data.count(b"\n", 0, offset) + 1,
        column=len(before.removeprefix("\ufeff")) + 1,
        source_line=line if len(line) <= MAX_LINE else None,
    )
    return InvalidDocumentError(f"{name}:{problem.line}:{problem.column}: {message}", problems=(problem,))


def first_key(text: str) -> tuple[str, int, int] | None:
    """Return the first key of a YAML or JSON text with its line and column, None where there is none."""
    lines = text.removeprefix("\ufeff").split("\n")
    for number, line in enumerate(lines, start=1):
        stripped = line.strip()
        if stripped in {"", "{"} or stripped.startswith(("#", "%", "---")):
            continue
        match = _FIRST_KEY.match(line)
        return (match["word"], number, match.start("word") + 1) if match else None
    return None


def kind_of(source: Source | str | os.PathLike[str]) -> Kind | None:
    """Tell what a file is by its first key, or by its first line where it is a ledger; None: none of ours."""
    if isinstance(source, Source):
        name, text = source.name, source.text[:_HEAD_BYTES]
    else:
        name = os.fspath(source)
        try:
            text = _read_bytes(name, _HEAD_BYTES).decode("utf-8", "replace")
        except UnreadableInputError:
            return None
    match first_key(text):
        case ("scenario" | "pack" | "toolset" | "cases" as word, _, _):
            return word
        case ("kind", _, _) if text.lstrip("\ufeff \t\r\n").startswith("{"):
            return "ledger"
    return "ledger" if name.endswith(".ledger.jsonl") else None


def find(paths: Iterable[str | os.PathLike[str]]) -> Iterator[str]:
    """Yield the named files, and the YAML and JSON Lines files under the named folders, each once and in order.

    Hidden folders, `node_modules` and virtual environments are left out, and no folder is entered twice.
    """
    seen: set[str] = set()
    for path in paths:
        name = os.fspath(path)
        for file in _walk(Path(name), set()) if Path(name).is_dir() else (name,):
            if file not in seen:
                seen.add(file)
                yield file


def _walk(folder: Path, entered: set[tuple[int, int]]) -> Iterator[str]:
    try:
        status = folder.stat()
        paths = sorted(folder.iterdir())
    except OSError:
        return
    if (status.st_dev, status.st_ino) in entered or (folder / "pyvenv.cfg").exists():
        return
    entered.add((status.st_dev, status.st_ino))
    for path in paths:
        if path.name.startswith(".") or path.name in _SKIPPED:
            continue
        if path.is_dir():
            yield from _walk(path, entered)
        elif path.suffix in _SUFFIXES and path.is_file():
            yield str(path)
