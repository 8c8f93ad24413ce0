"""Sources: files are found, told apart and read, or refused with a reason."""

import os
import stat

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledgercli.errors import InvalidDocumentError, UnreadableInputError
from ledgercli.sources import MAX_BYTES, Problem, Source, find, first_key, kind_of, read, shown


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def refusal(name):
    with pytest.raises(UnreadableInputError) as refused:
        read(name)
    return refused.value.message


def test_a_file_is_read_as_it_stands(folder):
    data = "\ufeffpack: 北京\r\n".encode()
    (folder / "a.yaml").write_bytes(data)
    source = read("a.yaml")
    assert source.data == data
    assert source.text.encode() == data
    assert source == Source.of("a.yaml", source.text)


def test_the_digest_is_that_of_sha256sum(folder):
    (folder / "a.yaml").write_bytes(b"abc")
    assert read("a.yaml").digest == "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"


def test_a_missing_file_is_named_with_the_nearest(folder):
    (folder / "policies").mkdir()
    (folder / "policies/support.yaml").touch()
    assert refusal("policies/suport.yaml") == "no file policies/suport.yaml; there is policies/support.yaml"
    assert refusal("polices/support.yaml") == "no file polices/support.yaml; there is policies/support.yaml"
    assert refusal("polices/suport.yaml") == "no file polices/suport.yaml; there is policies/support.yaml"
    assert refusal(str(folder / "policies/suport.yaml")).endswith(f"; there is {folder}/policies/support.yaml")
    assert refusal("./policies/../policies/suport.yaml").endswith("; there is policies/../policies/support.yaml")
    assert refusal("policies/other.yaml") == "no file policies/other.yaml"
    assert refusal("policy") == "no file policy"
    assert refusal("polices") == "no file polices"  # a folder is near, but no file
    assert refusal("policies/support.yaml/x") == "no file policies/support.yaml/x"


def test_what_is_no_regular_file_is_refused(folder):
    os.mkfifo(folder / "pipe")
    assert refusal(".") == ". is a folder, not a file"
    assert refusal("pipe") == "pipe is not a regular file"
    assert refusal("/dev/zero") == "/dev/zero is not a regular file"
    assert refusal("a\0b") == "'a\\x00b' is no file name"
    (folder / "loop").symlink_to("loop")
    assert refusal("loop").startswith("loop cannot be read: too many levels of symbolic links")


def test_a_link_is_followed(folder):
    (folder / "a.yaml").write_text("pack: p")
    (folder / "link.yaml").symlink_to("a.yaml")
    assert read("link.yaml").text == "pack: p"


def test_a_file_without_permission_is_refused(folder, monkeypatch):
    def denied(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", denied)
    assert refusal("a.yaml") == "a.yaml may not be read: permission denied"


def test_a_disk_that_fails_is_reported(folder, monkeypatch):
    (folder / "a.yaml").write_text("pack: p")

    def failing(*_):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "read", failing)
    assert refusal("a.yaml") == "a.yaml cannot be read: input/output error"


def test_a_folder_that_cannot_be_listed_has_no_nearest_file(folder, monkeypatch):
    monkeypatch.setattr("pathlib.Path.iterdir", lambda _: (_ for _ in ()).throw(PermissionError(13, "no")))
    assert refusal("x.yaml") == "no file x.yaml"


def test_a_file_that_is_too_large_is_refused(folder):
    (folder / "fits.yaml").write_bytes(b"#" * MAX_BYTES)
    (folder / "large.yaml").write_bytes(b"#" * (MAX_BYTES + 1))
    assert len(read("fits.yaml").data) == MAX_BYTES
    assert refusal("large.yaml") == "large.yaml is larger than 4 MiB"


@pytest.mark.parametrize(
    ("data", "line", "column", "message"),
    [
        (b"a: 1\nb: \xc3\xa9\xff\n", 2, 5, "byte 0xff is not UTF-8 here; save the file as UTF-8"),
        (b"\xef\xbb\xbfab\xe4\n", 1, 3, "byte 0xe4 is not UTF-8 here; save the file as UTF-8"),
        (b"a: \xed\xa0\x80", 1, 4, "byte 0xed is not UTF-8 here; save the file as UTF-8"),
        (b"a: 1\nb\0", 2, 2, "a NUL byte stands here; this is no text in UTF-8"),
        ("a: 1".encode("utf-16"), 1, 1, "this is UTF-16; save it as UTF-8"),
        (b"\xfe\xff\0a", 1, 1, "this is UTF-16; save it as UTF-8"),
        (b"\xff" + b"x" * 2000, 1, 1, "byte 0xff is not UTF-8 here; save the file as UTF-8"),
    ],
)
def test_what_is_not_utf_8_is_refused_where_it_stands(data, line, column, message):
    with pytest.raises(InvalidDocumentError) as refused:
        Source.of("f.yaml", data)
    [problem] = refused.value.problems
    assert (problem.code, problem.line, problem.column, problem.message) == ("not-utf-8", line, column, message)
    assert refused.value.message == f"f.yaml:{line}:{column}: {message}"


def test_a_problem_says_where_it_stands():
    assert str(Problem("x", "m", "f")) == "f: error[x]: m"
    assert str(Problem("x", "m", "f", 7)) == "f:7: error[x]: m"
    assert str(Problem("x", "m", "f", 7, 2, severity="note")) == "f:7:2: note[x]: m"
    assert min([Problem("x", "m", "g"), Problem("x", "m", "f", 10), Problem("x", "m", "f", 9, 3)]).line == 9


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("scenario: s\n", "scenario"), ("pack: p", "pack"), ("toolset: t\n", "toolset"), ("cases: c\n", "cases"),
        ("\ufeff# c\n\n%YAML 1.2\n---\n\npack: p\n", "pack"), ("'pack': p", "pack"), ('"pack" : p', "pack"),
        ('{"pack": "p"}', "pack"), ('{\n  "pack": "p"}', "pack"), ("{pack: p}", "pack"), ("pack:\n  p", "pack"),
        ('{"kind":"open","seq":0}\n', "ledger"), ("kind: open", None), ("pakc: p", None), ("", None), ("# c", None),
        ("- pack: p", None), ("[pack]", None), ("description: x\npack: p", None), ("packs: p", None), ("\x07", None),
    ],
)  # fmt: skip
def test_a_file_is_told_by_its_first_key(folder, text, kind):
    assert kind_of(Source.of("f.yaml", text)) == kind
    (folder / "f.yaml").write_text(text)
    assert kind_of(folder / "f.yaml") == kind


def test_a_damaged_ledger_is_told_by_its_name(folder):
    (folder / "r.ledger.jsonl").write_bytes(b"\xff\0garbage")
    assert kind_of("r.ledger.jsonl") == "ledger"
    (folder / "r.jsonl").write_bytes(b"\xff\0garbage")
    assert kind_of("r.jsonl") is None
    assert kind_of("none.yaml") is None
    assert kind_of(".") is None


@given(st.text())
def test_any_text_has_a_first_key_or_none(text):
    found = first_key(text)
    if found:
        word, line, column = found
        assert text.removeprefix("\ufeff").split("\n")[line - 1][column - 1 :].startswith(word)


def test_folders_are_searched_in_order_and_what_is_nobodys_is_left_out(folder):
    for name in ["b/z.yaml", "b/a.yml", "a/x.jsonl", "a/.hidden/x.yaml", ".venv/x.yaml", "node_modules/x.yaml",
                 "env/pyvenv.cfg", "env/x.yaml", "a/x.txt", "a/.x.yaml", "a/__pycache__/x.yaml"]:  # fmt: skip
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    (folder / "a/folder.yaml").mkdir()
    (folder / "a/up").symlink_to("..")
    (folder / "a/gone.yaml").symlink_to("none")
    os.mkfifo(folder / "a/pipe.yaml")
    assert list(find(["."])) == ["a/x.jsonl", "b/a.yml", "b/z.yaml"]
    assert list(find(["b/z.yaml", "b", "b/none.yaml"])) == ["b/z.yaml", "b/a.yml", "b/none.yaml"]
    assert list(find([folder / "b"])) == [f"{folder}/b/a.yml", f"{folder}/b/z.yaml"]


def test_a_folder_that_cannot_be_read_is_passed_over(folder, monkeypatch):
    (folder / "a").mkdir()
    monkeypatch.setattr("pathlib.Path.iterdir", lambda _: (_ for _ in ()).throw(PermissionError(13, "no")))
    assert list(find(["a"])) == []


def test_an_overlong_word_is_cut():
    assert shown("x" * 80) == "x" * 80
    assert shown("x" * 81) == "x" * 80 + "..."


def test_reading_leaves_a_file_alone(folder):
    (folder / "a.yaml").write_text("pack: p")
    (folder / "a.yaml").chmod(stat.S_IRUSR)
    before = (folder / "a.yaml").stat()
    read("a.yaml")
    assert (folder / "a.yaml").stat().st_mtime_ns == before.st_mtime_ns
