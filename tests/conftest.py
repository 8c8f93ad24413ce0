"""A session that installs what its tests need may not pass by skipping them."""

from __future__ import annotations

import os

import pytest

NO_SKIPS = "LEDGER_NO_SKIPS"  # set by the nox sessions `conformance` and `benchmarks`


def pytest_sessionfinish(session: pytest.Session) -> None:
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if os.environ.get(NO_SKIPS) and reporter is not None and reporter.stats.get("skipped"):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
