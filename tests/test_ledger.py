"""Writing a ledger: whole lines or none, one chain whoever writes; and reading it back in little memory."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest

from ledgercli.errors import (
    ExitCode,
    LedgerCliError,
    LedgerFormatError,
    LedgerWriteError,
    OutputExistsError,
    UnreadableInputError,
)
from ledgercli.ledger import (
    NOTHING,
    Head,
    Ledger,
    LedgerLimitError,
    Sync,
    Torn,
    checkpoints,
    head,
    linebytes,
    read,
    reading,
)
from ledgercli.ledger.verify import verify
from tests import ledgers


def lines(path: Path) -> list[bytes]:
    return path.read_bytes().splitlines(keepends=True)


# Writing


def test_each_line_names_the_digest_of_the_line_before_as_sha256sum_has_it(tmp_path: Path) -> None:
    path = ledgers.write(tmp_path / "a.jsonl", *ledgers.STORY)
    written = lines(path)
    records = [orjson.loads(line) for line in written]
    assert [record["seq"] for record in records] == list(range(len(written)))
    assert records[0]["prev"] is None
    assert [record["prev"] for record in records[1:]] == [
        "sha256:" + hashlib.sha256(line).hexdigest() for line in written[:-1]
    ]
    assert list(records[1])[:3] == ["kind", "seq", "step"]
    assert all(list(record)[-1] == "prev" for record in records)
    assert records[-1]["lines"] == len(written)


def test_append_tells_where_the_line_is(tmp_path: Path) -> None:
    with Ledger.create(tmp_path / "a", ledgers.opening()) as ledger:
        first = ledger.head
        at = ledger.append(ledgers.step(1))
        assert at == Head(1, ledger.head)
        assert ledger.head != first
    assert head(tmp_path / "a") == at


@pytest.mark.parametrize("sync", ["step", "close", "none"])
def test_lines_are_forced_to_the_disk_when_it_was_asked_for(
    tmp_path: Path, sync: Sync, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[int] = []
    monkeypatch.setattr(os, "fdatasync", lambda fd: synced.append(os.fstat(fd).st_size))
    path = tmp_path / "a"
    with Ledger.create(path, ledgers.opening(), sync=sync) as ledger:
        sizes = [path.stat().st_size]
        for number in (1, 2):
            ledger.append(ledgers.step(number))
            sizes.append(path.stat().st_size)
        assert synced == (sizes if sync == "step" else [])
    assert synced == {"step": sizes, "close": sizes[-1:], "none": []}[sync]


def test_a_file_that_exists_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("mine")
    with pytest.raises(OutputExistsError, match="exists; a ledger is never overwritten") as caught:
        Ledger.create(path, ledgers.opening())
    assert caught.value.exit_code == ExitCode.UNASKED
    assert path.read_text() == "mine"


def test_symbolic_links_are_not_followed(tmp_path: Path) -> None:
    real = ledgers.write(tmp_path / "real")
    link = tmp_path / "link"
    link.symlink_to(real)
    with pytest.raises(LedgerCliError, match="is a symbolic link"):
        Ledger.open(link)
    dangling = tmp_path / "dangling"
    dangling.symlink_to(tmp_path / "nowhere")
    with pytest.raises(OutputExistsError):
        Ledger.create(dangling, ledgers.opening())


@pytest.mark.parametrize("kind", ["fifo", "device", "folder"])
def test_only_regular_files_are_written_and_read(tmp_path: Path, kind: str) -> None:
    path = {"fifo": tmp_path / "fifo", "device": Path("/dev/zero"), "folder": tmp_path}[kind]
    if kind == "fifo":
        os.mkfifo(path)
    with pytest.raises(LedgerCliError):
        Ledger.open(path)
    with pytest.raises(UnreadableInputError):
        list(read(path))


def test_a_missing_folder_is_made_only_when_asked(tmp_path: Path) -> None:
    path = tmp_path / "ledgers" / "deep" / "a"
    with pytest.raises(LedgerCliError, match="there is no folder") as caught:
        Ledger.create(path, ledgers.opening())
    assert caught.value.fix == f"mkdir -p {path.parent}"
    Ledger.create(path, ledgers.opening(), make_folder=True).close()
    assert head(path).seq == 0
    with pytest.raises(UnreadableInputError, match="there is no file"):
        Ledger.open(tmp_path / "none")


@pytest.mark.parametrize(
    ("code", "said"),
    [(errno.EACCES, "permission denied"), (errno.EROFS, "Read-only file system"), (errno.EIO, "Input/output error")],
)
def test_what_the_system_refuses_is_said_with_a_way_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, said: str
) -> None:
    def refuse(*_: object, **__: object) -> int:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(LedgerCliError, match=said):
        Ledger.create(tmp_path / "a", ledgers.opening())


def test_a_record_that_no_line_can_hold_is_refused_and_the_ledger_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "a"
    with Ledger.create(path, ledgers.opening(), sync="none") as ledger:
        before = path.read_bytes()
        with pytest.raises(LedgerLimitError, match=r"action\.args\.x is nan"):
            ledger.append(ledgers.step(1, x=float("nan")))
        assert path.read_bytes() == before
        ledger.append(ledgers.step(1))
        ledger.append(ledgers.closing(1))
    assert verify(path).ok
    Ledger.check({"a": 1}, ("args",))
    with pytest.raises(LedgerLimitError, match=r"args\.a is an integer of more than 64 bits"):
        Ledger.check({"a": 2**63}, ("args",))


def test_nothing_is_left_of_a_ledger_whose_first_line_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(LedgerLimitError):
        Ledger.create(tmp_path / "a", ledgers.opening(run=float("inf")))
    assert not list(tmp_path.iterdir())


def short_write(fd: int, data: bytes, real: Callable[[int, bytes], int] = os.write) -> int:
    return real(fd, data[:40])


def no_room(fd: int, data: bytes, real: Callable[[int, bytes], int] = os.write) -> int:
    real(fd, data[:7])
    raise OSError(errno.ENOSPC, "No space left on device")


def interrupted(fd: int, data: bytes, real: Callable[[int, bytes], int] = os.write) -> int:
    real(fd, data)
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("write", "raised"),
    [(short_write, LedgerWriteError), (no_room, LedgerWriteError), (interrupted, KeyboardInterrupt)],
)
def test_a_line_that_was_not_written_whole_is_taken_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write: Callable[[int, bytes], int], raised: type[BaseException]
) -> None:
    path = tmp_path / "a"
    with Ledger.create(path, ledgers.opening(), sync="none") as ledger:
        before = path.read_bytes()
        with monkeypatch.context() as patched:
            patched.setattr(os, "write", write)
            with pytest.raises(raised):
                ledger.append(ledgers.step(1))
        assert path.read_bytes() == before
        ledger.append(ledgers.step(1))
        ledger.append(ledgers.closing(1))
    assert verify(path).problems == ()


def test_a_line_that_did_not_reach_the_disk_is_taken_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a"
    with Ledger.create(path, ledgers.opening()) as ledger:
        before = path.read_bytes()

        def fail(_: int) -> None:
            raise OSError(errno.EIO, "Input/output error")

        monkeypatch.setattr(os, "fdatasync", fail)
        with pytest.raises(LedgerWriteError, match="could not be written: Input/output error") as caught:
            ledger.append(ledgers.step(1))
        assert caught.value.exit_code == ExitCode.OUTSIDE
        assert path.read_bytes() == before


def test_a_line_that_cannot_be_taken_back_is_said_to_be_torn_and_the_next_writer_repairs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a"
    with Ledger.create(path, ledgers.opening(), sync="none") as ledger:

        def fail(_fd: int, _size: int) -> None:
            raise OSError(errno.EIO, "Input/output error")

        with monkeypatch.context() as patched:
            patched.setattr(os, "write", short_write)
            patched.setattr(os, "ftruncate", fail)
            with pytest.raises(LedgerWriteError, match="in part and could not be taken back"):
                ledger.append(ledgers.step(1))
        assert not path.read_bytes().endswith(b"\n")
        ledger.append(ledgers.step(1))
    assert [entry.kind for entry in read(path)] == ["open", "recovery", "step"]


def test_a_closed_ledger_takes_no_lines(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "a", ledgers.opening())
    ledger.close()
    ledger.close()
    with pytest.raises(LedgerWriteError, match="is closed"):
        ledger.append(ledgers.step(1))


# Going on with a ledger


def test_a_ledger_goes_on_after_its_last_line(tmp_path: Path) -> None:
    path = ledgers.write(tmp_path / "a", ledgers.step(1))
    with Ledger.open(path) as ledger:
        assert ledger.head == head(path).digest
        ledger.append(ledgers.step(2))
        ledger.append(ledgers.closing(2))
    assert verify(path).problems == ()


TORN = b'{"kind":"step","seq":2,"st'


def test_a_torn_end_is_moved_beside_the_ledger_and_a_line_says_so(tmp_path: Path) -> None:
    path = ledgers.write(tmp_path / "a.jsonl", ledgers.step(1))
    size = path.stat().st_size
    with path.open("ab") as file:
        file.write(TORN)
    Ledger.open(path).close()
    moved = tmp_path / f"a.jsonl.torn-{size}"
    assert moved.read_bytes() == TORN
    record = orjson.loads(lines(path)[-1])
    assert {key: record[key] for key in ("kind", "seq", "offset", "bytes", "moved_to", "digest")} == {
        "kind": "recovery", "seq": 2, "offset": size, "bytes": len(TORN), "moved_to": moved.name, "digest": "sha256:" + hashlib.sha256(TORN).hexdigest(),
    }  # fmt: skip
    with Ledger.open(path) as ledger:
        ledger.append(ledgers.step(2))
        ledger.append(ledgers.closing(2))
    assert verify(path).problems == ()


def test_a_torn_end_that_is_long_or_was_half_moved_before_is_kept_whole(tmp_path: Path) -> None:
    path = ledgers.write(tmp_path / "a", ledgers.step(1))
    size = path.stat().st_size
    torn = b'{"x":"' + b"y" * 300_000
    with path.open("ab") as file:
        file.write(torn)
    half = tmp_path / f"a.torn-{size}"
    half.write_bytes(torn[:10])  # a recovery that crashed
    Ledger.open(path).close()
    assert half.read_bytes() == torn[:10]
    assert (tmp_path / f"a.torn-{size}-2").read_bytes() == torn
    assert orjson.loads(lines(path)[-1])["moved_to"] == f"a.torn-{size}-2"


def test_a_writer_repairs_what_another_left_torn(tmp_path: Path) -> None:
    path = tmp_path / "a"
    with Ledger.create(path, ledgers.opening(), sync="none") as ledger:
        with path.open("ab") as file:
            file.write(TORN)
        ledger.append(ledgers.step(1))
    assert [entry.kind for entry in read(path)] == ["open", "recovery", "step"]


def test_a_ledger_goes_on_behind_a_long_line(tmp_path: Path) -> None:
    path = ledgers.write(tmp_path / "a", ledgers.step(1, x="y" * 200_000))
    with Ledger.open(path) as ledger:
        ledger.append(ledgers.step(2))
        ledger.append(ledgers.closing(2))
    assert verify(path).problems == ()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "has no whole line"),
        (TORN, "has no whole line"),
        (b"{}\n", "its last line is damaged at column 1: it has no seq"),
        (b'{"seq":0}\nrubbish\n', "its last line is damaged at column 1"),
        (b'{"seq":"0"}\n', "it has no seq"),
        (b'{"seq":0, "x":1}\n', "damaged at column 10: space between values"),
        (b'{"seq":0,"x":"' + b"y" * linebytes.LINE_MAX + b'"}\n', "the line is 16,777,2"),
    ],
)
def test_a_ledger_whose_end_is_damaged_does_not_go_on(tmp_path: Path, content: bytes, said: str) -> None:
    path = tmp_path / "a"
    path.write_bytes(content)
    with pytest.raises(LedgerFormatError, match=said):
        Ledger.open(path)
    assert path.read_bytes() == content
    if b"\n" in content:
        with pytest.raises(LedgerFormatError, match=said):
            head(path)
    else:
        assert head(path) == NOTHING


def test_a_ledger_that_was_cut_while_it_was_open_takes_no_more_lines(tmp_path: Path) -> None:
    path = tmp_path / "a"
    with Ledger.create(path, ledgers.opening(), sync="none") as ledger:
        first = path.stat().st_size
        ledger.append(ledgers.step(1))
        os.truncate(path, first)
        with pytest.raises(LedgerFormatError, match="was cut from"):
            ledger.append(ledgers.step(2))


# Several writers


def test_several_objects_and_threads_write_one_chain(tmp_path: Path) -> None:
    path = tmp_path / "a"
    with Ledger.create(path, ledgers.opening(), sync="none") as one, Ledger.open(path, sync="none") as other:

        def work(ledger: Ledger, first: int) -> None:
            for number in range(first, first + 50):
                ledger.append(ledgers.step(number))

        threads = [
            threading.Thread(target=work, args=(ledger, 1 + 50 * at))
            for at, ledger in enumerate((one, other, one, other))
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        one.append(ledgers.closing(200))
    report = verify(path)
    assert report.problems == ()
    assert (report.lines, report.steps) == (202, 200)


def test_a_forked_child_does_not_share_its_parents_lock(tmp_path: Path) -> None:
    path = tmp_path / "a"
    with Ledger.create(path, ledgers.opening(), sync="none") as ledger:
        child = os.fork()
        if child == 0:
            try:
                for number in range(1, 101):
                    ledger.append(ledgers.step(number))
                os._exit(0)
            finally:
                os._exit(1)
        for number in range(101, 201):
            ledger.append(ledgers.step(number))
        assert os.waitpid(child, 0)[1] == 0
        ledger.append(ledgers.closing(200))
    assert verify(path).problems == ()


# Reading


def test_reading_gives_every_record_with_its_place(tmp_path: Path) -> None:
    path = ledgers.write(tmp_path / "a", *ledgers.STORY)
    written = lines(path)
    reader = read(str(path))
    entries = list(reader)
    assert reader.torn is None
    assert [entry.record for entry in entries] == [orjson.loads(line) for line in written]
    assert [entry.line for entry in entries] == list(range(1, len(written) + 1))
    assert [entry.seq for entry in entries] == list(range(len(written)))
    assert entries[-1].kind == "close"
    for entry, line in zip(entries, written, strict=True):
        assert entry.data == line
        assert path.read_bytes()[entry.offset : entry.offset + entry.length] == line
        assert entry.digest == "sha256:" + hashlib.sha256(line).hexdigest()
    assert head(path) == Head(entries[-1].seq, entries[-1].digest)


def test_reading_stops_at_a_torn_end_and_says_so(tmp_path: Path) -> None:
    path = ledgers.write(tmp_path / "a", ledgers.step(1))
    size = path.stat().st_size
    with path.open("ab") as file:
        file.write(TORN)
    reader = read(path)
    assert len(list(reader)) == 2
    assert reader.torn == Torn(3, size, len(TORN))
    assert head(path).seq == 1


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda all_lines: [*all_lines[:2], b"rubbish\n", *all_lines[3:]], ":3:1: unexpected character"),
        (lambda all_lines: all_lines[:2] + all_lines[3:], ":3:1: line 3 does not follow line 2"),
        (lambda all_lines: all_lines[1:], ":1:1: the first line follows another that is not here"),
        (
            lambda all_lines: [*all_lines[:2], all_lines[2].replace(b'"step":', b'"step": ')],
            ":3:33: space between values",
        ),
        (lambda _: [b'{"seq":0,"prev":null}\n'], ":1:1: the line has no kind"),
        (lambda _: [b'{"kind":"open","seq":"0","prev":null}\n'], ":1:1: it has no seq"),
        (
            lambda all_lines: [all_lines[0], b'{"x":"' + b"y" * (linebytes.LINE_MAX + 9) + b'"}\n', *all_lines[1:]],
            ":2:1: the line is 16,777,",
        ),
    ],
)
def test_damage_in_the_middle_is_an_error_with_line_and_column(tmp_path: Path, damage: Any, said: str) -> None:
    path = ledgers.write(tmp_path / "a", *ledgers.STORY)
    path.write_bytes(b"".join(damage(lines(path))))
    with pytest.raises(LedgerFormatError) as caught:
        list(read(path))
    assert said in caught.value.message
    assert caught.value.fix == f"ledger validate {path}"


def test_a_growing_ledger_is_judged_up_to_the_size_it_had(tmp_path: Path) -> None:
    path = tmp_path / "a"
    with Ledger.create(path, ledgers.opening(), sync="none") as ledger:
        ledger.append(ledgers.step(1))
        seen = []
        for entry in read(path):
            seen.append(entry.seq)
            ledger.append(ledgers.step(10 + len(seen)))
    assert seen == [0, 1]


def test_a_reader_waits_for_a_line_in_the_making(tmp_path: Path) -> None:
    path = ledgers.write(tmp_path / "a", ledgers.step(1))
    whole = path.read_bytes()
    path.write_bytes(whole[:-20])
    with path.open("ab", buffering=0) as writer:
        fcntl.flock(writer, fcntl.LOCK_EX)

        def finish() -> None:
            time.sleep(0.05)
            writer.write(whole[-20:])
            fcntl.flock(writer, fcntl.LOCK_UN)

        thread = threading.Thread(target=finish)
        thread.start()
        reader = read(path)
        assert len(list(reader)) == 2
        assert reader.torn is None
        thread.join()


def test_a_reader_does_not_wait_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "_PATIENCE", 2)
    path = ledgers.write(tmp_path / "a", ledgers.step(1))
    with path.open("ab") as writer:
        fcntl.flock(writer, fcntl.LOCK_EX)
        assert len(list(read(path))) == 2


def test_a_file_system_without_locks_can_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_fd: int, _how: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    path = ledgers.write(tmp_path / "a", ledgers.step(1))
    monkeypatch.setattr(reading, "flock", refuse)
    assert len(list(read(path))) == 2


def test_a_file_that_is_cut_while_it_is_read_is_an_error(tmp_path: Path) -> None:
    path = ledgers.write(tmp_path / "a", *(ledgers.step(number, x="y" * 10_000) for number in range(1, 30)))
    entries = iter(read(path))
    next(entries)
    os.truncate(path, 0)
    with pytest.raises(LedgerFormatError, match="was cut by somebody else"):
        list(entries)


def test_a_missing_file_is_said_to_be_missing(tmp_path: Path) -> None:
    with pytest.raises(UnreadableInputError, match="No such file"):
        list(read(tmp_path / "none"))


def test_an_endless_line_without_newline_is_torn(tmp_path: Path) -> None:
    path = ledgers.write(tmp_path / "a", ledgers.step(1))
    with path.open("ab") as file:
        file.write(b"x" * (linebytes.LINE_MAX + 100_000))
    reader = read(path)
    assert len(list(reader)) == 2
    assert reader.torn is not None
    assert reader.torn.length == linebytes.LINE_MAX + 100_000


# Beginning at a checkpoint


def test_reading_may_begin_behind_any_entry(tmp_path: Path) -> None:
    path = ledgers.live(tmp_path / "a")
    entries = list(read(path))
    for at, entry in enumerate(entries):
        assert list(read(path, behind=entry)) == entries[at + 1 :]


def test_behind_an_entry_the_next_line_must_follow_it(tmp_path: Path) -> None:
    path = ledgers.write(tmp_path / "a", *ledgers.STORY)
    third = list(read(path))[2]
    path.write_bytes(path.read_bytes().replace(b"2026-08-01", b"2026-08-02", 1))
    assert len(list(read(path, behind=third))) == len(ledgers.STORY) - 2  # what stands before is not looked at
    last = list(read(path, behind=third))[-1]
    damaged = lines(path)
    path.write_bytes(b"".join([*damaged[:3], *damaged[4:]]))
    with pytest.raises(LedgerFormatError, match=":4:1: line 4 does not follow line 3"):
        list(read(path, behind=third))
    with pytest.raises(LedgerFormatError, match=r"was cut by somebody else: byte [0-9,]+ is not there any more"):
        list(read(path, behind=last))


def test_checkpoints_are_found_from_the_end(tmp_path: Path) -> None:
    path = ledgers.live(tmp_path / "a")
    found = list(checkpoints(path))
    assert [entry.record["step"] for entry in found] == [3, 0]
    assert found == [entry for entry in reversed(list(read(path))) if entry.kind == "checkpoint"]
    with path.open("ab") as file:
        file.write(found[0].data[:-1])  # torn: not one yet
    assert list(checkpoints(path)) == found
    assert list(checkpoints(ledgers.write(tmp_path / "b", *ledgers.STORY))) == []


@pytest.mark.parametrize("size", [2, 20, 21, 22, 23, 100, 1000])
def test_checkpoints_are_found_wherever_the_pieces_that_are_read_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    told = '\n{"kind":"checkpoint"'  # in a text it is no line
    steps = [line for number in range(1, 9) for line in (ledgers.step(number, text=told), ledgers.checkpoint(number))]
    path = ledgers.write(tmp_path / "a", *steps, ledgers.closing(8))
    monkeypatch.setattr(reading, "CHUNK", size)
    assert [entry.record["step"] for entry in checkpoints(path)] == list(range(8, 0, -1))


def test_a_damaged_checkpoint_is_passed_over(tmp_path: Path) -> None:
    path = ledgers.live(tmp_path / "a")
    last = next(iter(checkpoints(path)))
    for spoiled in (
        last.data.replace(b'"at":', b'"at" :'),
        b'{"kind":"checkpoint","x":NaN}\n',
        b'{"kind":"checkpoint","seq":9}\n',
    ):
        path.write_bytes(path.read_bytes().replace(last.data, spoiled))
        assert [entry.record["step"] for entry in checkpoints(path)] == [0]
        path.write_bytes(path.read_bytes().replace(spoiled, last.data))


def test_a_line_of_one_byte_more_than_a_line_may_have_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "a"
    for more, found in ((0, {"schema", "unsealed"}), (1, {"bytes", "unsealed"})):
        path.write_bytes(
            b'{"kind":"open","seq":0,"prev":null,"x":"' + b"y" * (linebytes.LINE_MAX - 43 + more) + b'"}\n'
        )
        assert path.stat().st_size == linebytes.LINE_MAX + more
        assert {problem.code for problem in verify(path).problems} == found


def test_writing_imports_nothing_heavy() -> None:
    code = "import sys, ledgercli.ledger, ledgercli.ledger.verify; print(*{'pydantic', 'jsonlines', 'rich', 'deepdiff', 'ruamel', 'litellm'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
