"""The pytest plugin in a project of its own, beside its own tests; and in one without case files."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from tests.desks import write

CASES = """
- {name: a customer pays, propose: {tool: pay, args: {amount: 5}}, expect: allow}
- {name: a guest pays, state: {facts: {user: guest}}, propose: {tool: pay, args: {amount: 5}}, expect: allow}
- {name: later, skip: waiting, propose: {tool: pay, args: {amount: 5}}, expect: deny}
- {name: nothing is paid, propose: {tool: pay}, expect: deny}
"""


def pytest_in(folder: Path, *arguments: str) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:hypothesispytest", *arguments],
        cwd=folder, capture_output=True, text=True, timeout=100, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout


def test_cases_run_beside_other_tests(tmp_path):
    write(tmp_path, CASES)
    (tmp_path / "other.yaml").write_text("a: 1\n")
    (tmp_path / "broken.yaml").write_text("cases: broken\npacks: [none.yaml]\ntoolset: desk.tools.yaml\ntests: []\n")
    (tmp_path / "test_own.py").write_text("def test_of_the_project():\n    pass\n")
    code, out = pytest_in(tmp_path, "-q", "--continue-on-collection-errors", "-rA")
    assert code == 1
    assert re.search(r"2 failed, 2 passed, 1 skipped, 1 error in", out), out
    assert "PASSED test_own.py::test_of_the_project" in out
    assert "PASSED desk.cases.yaml::a customer pays" in out
    assert "desk.cases.yaml:8  a guest pays\n" in out
    assert "because   known failed\n" in out
    assert "broken.yaml:2:9: error[unreadable-file]: no file none.yaml" in out
    assert "Traceback" not in out


def test_a_project_without_cases_sees_nothing_of_it(tmp_path):
    (tmp_path / "other.yaml").write_text("a: 1\n")
    (tmp_path / "test_own.py").write_text(
        "import sys\n\n\ndef test_nothing_heavy():\n"
        "    assert not {'ruamel.yaml', 'pydantic', 'ledgercli.cel', 'orjson'} & sys.modules.keys()\n"
    )
    code, out = pytest_in(tmp_path, "-q")
    assert (code, "1 passed" in out) == (0, True), out


def test_a_setting_turns_it_off(tmp_path):
    write(tmp_path, CASES)
    (tmp_path / "pytest.ini").write_text("[pytest]\nledger_cases = false\n")
    assert pytest_in(tmp_path, "-q", "--collect-only")[0] == 5
