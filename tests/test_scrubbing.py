"""No key gets through: neither one that the environment holds nor what looks like one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledgercli.scrubbing import keys, scrubbed

KEY = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=6, max_size=40).filter(
    lambda key: "[key]" not in key
)


@given(before=st.text(), key=KEY, after=st.text())
def test_a_known_key_is_in_no_text(before: str, key: str, after: str) -> None:
    said = scrubbed(f"{before}{key}{after}", [key])
    assert key not in said.replace("[key]", "\0")


@pytest.mark.parametrize(
    "key",
    [
        "sk-proj-abcDEF123456", "sk-ant-api03-abcdef123456", "gsk_abcdefgh12345678", "hf_abcdefgh12345678",
        "xai-abcdefgh12345678", "AIzaSyA1234567890abcdefghijklmnopqrs", "AKIAIOSFODNN7EXAMPLE", "sk-abc1********wxyz",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3In0.abcdef",
    ],
)  # fmt: skip
def test_what_looks_like_a_key_is_taken_out_wherever_it_stands(key: str) -> None:
    for text in (key, f"Incorrect API key provided: {key}.", f'{{"api_key":"{key}"}}', f"Bearer {key}", f"({key})"):
        said = scrubbed(text)
        assert key not in said
        assert "[key]" in said


@pytest.mark.parametrize(
    "text",
    [
        "task-oriented",
        "the key-value store",
        "pk_customer_identity",
        "api_key_environment",
        "api_base: http://x",
        "rk",
        "sk-",
        "北京 sk",
    ],
)
def test_ordinary_words_stay(text: str) -> None:
    assert scrubbed(text) == text


def test_the_environment_says_which_values_are_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"DESK": "the-desks", "X_API_KEY": "the-xs", "A_TOKEN": "one", "PLAIN": "nothing"}.items():
        monkeypatch.setenv(name, value)
    found = keys("DESK")
    assert {"the-desks", "the-xs"} <= set(found)
    assert not {"nothing", "one"} & set(found)  # too short: it would be found in ordinary words
    assert found == sorted(found, key=len, reverse=True)
