"""What holds for all tests.

A session that installs what its tests need may not pass by skipping them. No example of a property has a deadline: how
long one takes hangs on what else the machine does.
"""

from __future__ import annotations

import os

import pytest
from hypothesis import settings

settings.register_profile("no deadline", deadline=None)
settings.load_profile("no deadline")
NO_SKIPS = "LEDGER_NO_SKIPS"  # set by the nox sessions `conformance` and `benchmarks`


def pytest_sessionfinish(session: pytest.Session) -> None:
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if os.environ.get(NO_SKIPS) and reporter is not None and reporter.stats.get("skipped"):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
