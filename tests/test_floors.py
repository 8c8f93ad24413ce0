"""The house stands on floors: a module imports from the floors below it, never from its own or from above."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent / "ledgercli"

#: From the ground up. A folder stands for all that is in it.
FLOORS: tuple[tuple[str, ...], ...] = (
    ("errors", "cel", "wide", "grounding", "scrubbing"),
    ("paths", "names", "history", "foreign", "sources", "addresses", "processes"),
    ("state", "records", "recordings", "gathering"),
    ("functions", "redaction", "approvals", "documents", "ledger", "results", "where", "planning", "tally"),
    ("story",),
    ("listing", "tracing", "cases", "toolset", "summariser"),
    ("policy", "programs", "servers"),
    ("scenario", "executor", "starting", "expressions"),
    ("loading", "vocabulary"),
    ("toolschemas", "rules", "decision", "transitions", "responder"),
    ("enforcer", "runnable", "updater", "sentences", "expectations"),
    ("rulebook", "intake", "analysis"),
    ("books", "shelf"),
    ("past",),
    ("reopening", "prompting"),
    ("guard", "policytests", "amending"),
    ("loop", "model", "judging", "validation", "schemas", "documenting", "explanations"),
    ("engines",),
    ("runs", "why", "replay", "export"),
    ("resuming", "diff", "trials"),
    ("casework",),
    ("capture", "mutation"),
    ("reports",),
    ("cli", "pytest_plugin"),
    ("__main__",),
)


def floor_of(module: str) -> int:
    """The floor of a module, by its first name."""
    first = module.partition(".")[0]
    return next(number for number, names in enumerate(FLOORS) if first in names)


def imports(file: Path) -> Iterator[str]:
    """The modules of ours that a file imports, inside functions too."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        names: list[str] = []
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            inside = node.module.removeprefix("ledgercli").lstrip(".")
            if node.module.partition(".")[0] == "ledgercli":
                names = [inside] if inside else [alias.name for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [
                alias.name.removeprefix("ledgercli.") for alias in node.names if alias.name.startswith("ledgercli.")
            ]
        yield from (name for name in names if not name.startswith("__"))


def modules() -> list[tuple[str, Path]]:
    files = sorted(PACKAGE.rglob("*.py"))
    return [(".".join(file.relative_to(PACKAGE).with_suffix("").parts), file) for file in files]


def test_no_import_runs_up() -> None:
    wrong = [
        f"{module} imports {target}"
        for module, file in modules()
        if module != "__init__"
        for target in imports(file)
        if target.partition(".")[0] != module.partition(".")[0] and floor_of(target) >= floor_of(module)
    ]
    assert wrong == []


def test_every_module_has_a_floor_and_every_floor_its_modules() -> None:
    here = {module.partition(".")[0] for module, _ in modules()} - {"__init__"}
    named = [name for floor in FLOORS for name in floor]
    assert sorted(here) == sorted(named)


def test_the_policy_language_knows_nothing_of_agents() -> None:
    wrong = [
        f"{module} imports {target}"
        for module, file in modules()
        if module.startswith("cel.")
        for target in imports(file)
        if target.partition(".")[0] != "cel"
    ]
    assert wrong == []
