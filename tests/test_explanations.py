"""`validate --explain` knows every code that a finding can have: the sources are walked for them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from ledgercli import cel, documents
from ledgercli.explanations import explanations
from ledgercli.ledger import verify

PACKAGE = Path(__file__).resolve().parents[1] / "ledgercli"
ABOVE = {"cli", "reports", "explanations.py"}
KEBAB = re.compile(r"[a-z][a-z0-9]*(?:-[a-z0-9]+)+")
NO_CODES = {
    "openai-chat", "tau-bench", "tau2-bench",  # formats of recordings
    "utf-8", "utf-16", "unicode-escape",  # encodings
    "site-packages",  # a folder
    "date-time", "retry-after",  # a format of JSON Schema, a header
    "newly-denied", "newly-allowed", "newly-to-approve", "cannot-tell",  # answers of a replay
    "settable-path", "python-function", "fixed-point",  # parts of messages
}  # fmt: skip


def trees() -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(PACKAGE.rglob("*.py")):
        if path.relative_to(PACKAGE).parts[0] not in ABOVE:
            yield path.name, ast.parse(path.read_text(encoding="utf-8"))


def texts(tree: ast.AST) -> Iterator[str]:
    yield from (node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str))


def kinds_of_names() -> set[str]:
    """What `unknown-…` is said of: nouns of records, of enumerations, and what `unknown` is called with."""
    found = set()
    for _, tree in trees():
        for node in ast.walk(tree):
            if not isinstance(node, ast.Call):
                continue
            found |= {
                keyword.value.value
                for keyword in node.keywords
                if keyword.arg in ("noun", "what") and isinstance(keyword.value, ast.Constant)
            }
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if called in {"unknown", "_Word"}:
                found |= {argument.value for argument in node.args[1:4] if isinstance(argument, ast.Constant)}
    return {name for name in found if isinstance(name, str) and KEBAB.fullmatch(f"x-{name}")}


def test_every_code_in_the_sources_is_explained():
    codes = {text for _, tree in trees() for text in texts(tree) if KEBAB.fullmatch(text)} - NO_CODES
    assert len(codes) > 60
    assert codes - explanations().keys() == set()


def test_every_kind_of_unknown_name_is_explained():
    kinds = kinds_of_names()
    assert {"tool", "argument", "fact", "flag", "rule", "effect", "status", "access", "tag", "goal"} <= kinds
    assert {f"unknown-{kind}" for kind in kinds} - explanations().keys() == set()


def test_the_tables_of_the_modules_are_all_there():
    for table in (documents.CODES, cel.CODES, verify.CODES):
        assert table.keys() <= explanations().keys()


def test_nothing_is_explained_that_nobody_finds():
    written = {text for _, tree in trees() for text in texts(tree)}
    unknown = {f"unknown-{kind}" for kind in kinds_of_names()} | {
        "unknown-constraint",
        "unknown-field",
        "unknown-value",
    }
    assert explanations().keys() - written - unknown == set()


def test_every_explanation_is_a_sentence():
    for code, text in explanations().items():
        assert text[0].isupper() or text[0] in "`\"'", code
        assert text.rstrip("`").endswith((".", ")", "…", "ledger")), code
