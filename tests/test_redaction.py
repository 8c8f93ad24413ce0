"""Secrets never reach the disk, and masking them damages nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ledgercli.guard import Guard
from ledgercli.paths import PathError, parse
from ledgercli.redaction import KEY_VARIABLE, Redactor
from tests.books import TOOLS, book, guard, kept, lines_of

REDACT = """
    redact: [login.args.user, look.data.card, look.data.lines.code, pay.args.note, keep.args.secret, keep.data.value]
"""
KEEP = """
      keep:
        args: {secret: {}, n: {type: integer, default: 0}}
        on_success:
          set:
            'facts.keys[string(action.args.secret)]': action.args.n
            facts.last: action.args.secret
        on_failure:
          unset: ['facts.keys[string(action.args.secret)]', facts.last]
"""
PACK = """
    pack: p
    rules:
      - name: not_twice
        tools: [pay, keep]
        check: "!succeeded(state.ledger, action.tool, action.args)"
        on_fail: "{action.tool} with {action.args} was done."
      - name: large
        tools: [pay]
        check: action.args.amount < 10.0 && action.args.note != state.facts.user
        on_fail: {error: "Ask about {action.args.note}.", hint: "Say {action.args.note} aloud.", effect: require_approval}
"""
CARD = "4111 1111 1111 1111"


def secret_books(folder: Path, redact: str = REDACT) -> Guard:
    head, tools = TOOLS.split("    tools:\n")
    rules = book(folder, PACK, tools=head + redact + "    tools:\n" + tools + KEEP)
    return guard(rules, ledger_of(folder))


def ledger_of(folder: Path) -> Path:
    return folder / "run.ledger.jsonl"


def texts(value: Any) -> Iterator[str]:
    """Every text of a JSON value, keys and the keys within paths included, and numbers as text."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield key
            if "[" in key or "." in key:
                yield from path_keys(key)
            yield from texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from texts(item)
    elif value is not None:
        yield str(value)
        if isinstance(value, str):
            yield from path_keys(value)


def path_keys(text: str) -> list[str]:
    try:
        return [str(part) for part in parse(text)]
    except PathError:
        return []


def hidden(lines: list[dict[str, Any]], *secrets: str) -> None:
    for line in lines:
        found = [text for text in texts({**line, "files": None}) if any(secret in text for secret in secrets)]
        assert not found, (line["kind"], line.get("step"), found)


def masks(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if set(value) == {"redacted"}:
            yield value["redacted"]
        for item in value.values():
            yield from masks(item)
    elif isinstance(value, list):
        for item in value:
            yield from masks(item)


def test_a_secret_is_nowhere_in_the_ledger_whatever_repeats_it(tmp_path: Path) -> None:
    books = secret_books(tmp_path)
    books.record(books.check("login", {"user": "mia-secret"}), {"vip": True, "greeting": "Hello mia-secret!"})
    books.record(
        books.check("look", {"id": "W1"}), {"card": CARD, "lines": [{"code": "code-one"}, {"code": "code-two"}]}
    )
    asks = books.check("pay", {"amount": 50, "note": "mia-secret"})
    books.approve(asks.step, yes=True, by="lei", reason=f"mia-secret has card {CARD}")
    pay = books.check("pay", {"amount": 50, "note": "mia-secret"})
    assert pay.runs
    books.record(pay, {"success": False, "error": f"card {CARD} of mia-secret was declined: code-two"})
    books.said(f"my card is {CARD}")
    books.record(books.check("keep", {"secret": "mia-secret"}), {"value": [CARD]})
    books.record(books.check("keep", {"secret": "mia-secret", "n": 2}), {"success": False, "error": "x"})
    assert books.check("keep", {"secret": "mia-secret"}).reason is not None
    books.close("failed", {"user": "mia-secret"}, error=f"could not charge {CARD}")
    hidden(kept(ledger_of(tmp_path)), "mia-secret", CARD, "code-one", "code-two")
    assert books.state.facts["user"] == "mia-secret"


def test_equal_values_have_equal_masks_and_others_do_not(tmp_path: Path) -> None:
    books = secret_books(tmp_path)
    for user in ("mia-secret", "lei-secret", "mia-secret"):
        books.record(books.check("login", {"user": user}), {"vip": True})
    books.close()
    found = [line["action"]["args"]["user"]["redacted"] for line in kept(ledger_of(tmp_path)) if line["kind"] == "step"]
    assert found[0] == found[2] != found[1]
    assert all(mask.startswith("hmac-sha256:") and len(mask) == 76 for mask in found)


def test_masks_are_made_with_the_key_of_the_environment_or_anew_for_each_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def mask_of(name: str) -> str:
        folder = tmp_path / name
        folder.mkdir()
        books = secret_books(folder)
        books.record(books.check("login", {"user": "mia"}), {"vip": True})
        mask: str = lines_of(ledger_of(folder))[1]["action"]["args"]["user"]["redacted"]
        return mask

    monkeypatch.delenv(KEY_VARIABLE, raising=False)
    assert mask_of("a") != mask_of("b")
    monkeypatch.setenv(KEY_VARIABLE, "k1")
    assert mask_of("c") == mask_of("d")
    with_one_key = mask_of("e")
    monkeypatch.setenv(KEY_VARIABLE, "k2")
    assert mask_of("f") != with_one_key


@pytest.mark.parametrize(
    "secret", ['quo"te-1', "back\\slash", "北京的秘密", "new\nline", "[0].x", "a.b.c.d", "\u2028sep", "emoji🙂x"]
)
def test_a_secret_that_is_a_key_is_masked_in_paths_and_questions_too(tmp_path: Path, secret: str) -> None:
    books = secret_books(tmp_path)
    books.record(books.check("keep", {"secret": secret}), "fine")
    books.record(books.check("keep", {"secret": secret, "n": 1}), {"success": False, "error": secret})
    books.check("keep", {"secret": secret})
    books.close()
    hidden(kept(ledger_of(tmp_path)), secret, json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1])


def test_two_secrets_that_are_keys_stay_two_keys(tmp_path: Path) -> None:
    books = secret_books(tmp_path)
    for secret in ("first-secret", "second-secret"):
        books.record(books.check("keep", {"secret": secret}), "fine")
    for secret in ("first-secret", "second-secret"):
        books.record(books.check("keep", {"secret": secret, "n": 1}), {"success": False, "error": "gone"})
    books.close()
    lines = kept(ledger_of(tmp_path))
    hidden(lines, "first-secret", "second-secret")
    paths = {path for line in lines for path in line.get("state_diff", {}) if path.startswith("facts.keys")}
    assert len(paths) == 2


def test_a_secret_that_is_part_of_another_leaves_nothing_of_it(tmp_path: Path) -> None:
    books = secret_books(tmp_path)
    books.record(books.check("login", {"user": "Anna"}), {"vip": True})
    books.record(books.check("login", {"user": "Anna Smith-1985"}), {"vip": True})
    books.said("I am Anna Smith-1985, not Anna.")
    books.close()
    hidden(kept(ledger_of(tmp_path)), "Anna", "Smith-1985")


@pytest.mark.parametrize("secret", [1234567, 12.75, "1234567", -98765])
def test_numbers_are_masked_as_numbers_and_as_text(tmp_path: Path, secret: Any) -> None:
    books = secret_books(tmp_path)
    books.record(books.check("keep", {"secret": secret}), {"n": secret, "f": float(secret), "t": f"it is {secret}."})
    books.record(books.check("look", {"id": "W1"}), {"again": secret, "text": f"{secret}!", "float": float(secret)})
    books.close()
    lines = kept(ledger_of(tmp_path))
    hidden(lines, str(secret))
    assert len(set(masks(lines))) == 1


def test_lists_and_maps_are_masked_leaf_by_leaf_but_for_bools_and_null(tmp_path: Path) -> None:
    books = secret_books(tmp_path)
    value = {"list": ["one-secret", {"deep": "two-secret"}], "yes": True, "none": None, "empty": ""}
    books.record(books.check("keep", {"secret": "x"}), {"value": value})
    books.close()
    lines = kept(ledger_of(tmp_path))
    hidden(lines, "one-secret", "two-secret")
    data = next(line for line in lines if line["kind"] == "step")["result"]["data"]["value"]
    assert (data["yes"], data["none"], data["empty"]) == (True, None, "")


def test_short_secrets_are_masked_where_they_stand_alone_only(tmp_path: Path) -> None:
    books = secret_books(tmp_path)
    books.record(books.check("keep", {"secret": "pin"}), "fine")
    books.record(books.check("look", {"id": "spinning"}), {"a": "pin", "b": "spin"})
    books.close()
    lines = kept(ledger_of(tmp_path))
    data = [line["result"]["data"] for line in lines if line["kind"] == "step"][1]
    assert data["b"] == "spin"
    assert "redacted" in data["a"]
    assert lines[-2]["action"]["args"]["id"] == "spinning"


@pytest.mark.parametrize(
    "secret", [1, 2, "1", "ok", "deny", "step", "completed", "running", "sha256", "p/not_twice", "facts", "redacted", "hmac", "yes", "require_approval", "true", True, None, ""]
)  # fmt: skip
def test_a_secret_spelled_like_a_part_of_the_ledger_damages_nothing(tmp_path: Path, secret: Any) -> None:
    books = secret_books(tmp_path)
    books.record(books.check("keep", {"secret": secret, "n": 1}), "fine")
    books.check("keep", {"secret": secret, "n": 1})
    asks = books.check("pay", {"amount": 50, "note": "x"})
    books.approve(asks.step, yes=True, by="lei")
    books.record(books.check("pay", {"amount": 50, "note": "x"}), {"n": 1})
    books.record(books.check("finish", {"answer": "completed"}))
    books.close(books.state.status)  # type: ignore[arg-type]
    lines = kept(ledger_of(tmp_path))
    assert [line.get("outcome") for line in lines if line["kind"] == "step"] == ["ok", "denied", "waiting", "ok", "ok"]
    assert [line["verdict"]["effect"] for line in lines if line["kind"] == "step"] == [
        "allow", "deny", "require_approval", "require_approval", "allow",
    ]  # fmt: skip
    assert lines[-2]["state_diff"]["status"] == "completed"


def test_the_digest_that_binds_an_approval_says_nothing_about_a_secret(tmp_path: Path) -> None:
    """A short secret could be found by trying all digests of it."""
    from ledgercli.records import digest_of

    books = secret_books(tmp_path)
    asks = books.check("pay", {"amount": 50, "note": "1234"})
    books.approve(asks.step, yes=True, by="lei")
    books.close()
    approval = kept(ledger_of(tmp_path))[2]
    assert approval["bound"]["args"] != digest_of({"amount": 50, "note": "1234"})


def test_without_redact_nothing_is_touched(tmp_path: Path) -> None:
    line = {"kind": "step", "action": {"tool": "t", "args": {"x": "secret"}}, "result": None}
    assert Redactor([]).masked(line) is line
    assert not Redactor([]).active
    other = Redactor(["other.args.x"])
    assert other.masked(line) is line
    missing = Redactor(["t.args.y", "t.args.x.deep", "t.data.z"])
    assert missing.masked(line) is line


@pytest.mark.parametrize(
    ("rule", "code"),
    [
        ("login.args.usr", "unknown-argument"),
        ("logn.args.user", "unknown-tool"),
        ("login.result.x", "not-a-path"),
        ("login", "not-a-path"),
    ],
)
def test_what_redact_names_must_be_there(tmp_path: Path, rule: str, code: str) -> None:
    from ledgercli.errors import InvalidDocumentError

    with pytest.raises(InvalidDocumentError) as caught:
        secret_books(tmp_path, f"    redact: [{rule}]\n")
    assert code in [getattr(problem, "code", "") for problem in caught.value.problems]
