"""The cases of packs as pytest items: `pytest` collects case files, each case a test of its own.

Invariants:
* In a project without case files nothing is collected, and nothing but pytest itself is imported.
* A file is a case file if its first key is `cases:`, whatever it is called; one called `*.cases.yaml` always is.
* A case that cannot be judged, and a file that does not load, are errors; a case that is skipped is skipped.

`ledger_cases = false` in pytest's settings turns it off.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from ledgercli.casework.judging import Judge
    from ledgercli.casework.preparing import Ready, Unready

_SUFFIXES = (".yaml", ".yml")
_NAMED = (".cases.yaml", ".cases.yml")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the setting."""
    parser.addini("ledger_cases", "collect the case files of ledgercli (default: true)", type="bool", default=True)


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Collect a case file."""
    if file_path.suffix not in _SUFFIXES or not parent.config.getini("ledger_cases"):
        return None
    if file_path.name.endswith(_NAMED) or _begins_with_cases(file_path):
        return CaseFile.from_parent(parent, path=file_path)
    return None


def _begins_with_cases(file: Path) -> bool:
    from ledgercli.sources import kind_of

    return kind_of(file) == "cases"


class NotLoadedError(Exception):
    """A case file, or a file that it names, does not load."""


class WrongVerdictError(Exception):
    """A verdict is not as expected, or could not be asked for."""


class CaseFile(pytest.File):
    """A case file."""

    def collect(self) -> Iterator[pytest.Item]:
        """Yield its cases.

        Raises:
            NotLoadedError: it does not load.

        """
        from ledgercli.casework.groups import Groups
        from ledgercli.casework.judging import Judge
        from ledgercli.casework.preparing import Preparer

        group, problems = Groups().of(_shown(self.path))
        errors = [problem for problem in problems if problem.severity == "error"]
        if group is None or errors:
            raise NotLoadedError("\n".join(map(str, errors)) or f"{self.path} holds no cases")
        judge = Judge(group)
        seen: dict[str, int] = {}
        for case in Preparer(group).all():
            seen[case.name] = seen.get(case.name, 0) + 1
            name = case.name if seen[case.name] == 1 else f"{case.name} ({seen[case.name]})"
            yield CaseItem.from_parent(self, name=name, case=case, judge=judge)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], *_: Any, **__: Any) -> Any:
        """Return why it does not load."""
        return str(excinfo.value) if isinstance(excinfo.value, NotLoadedError) else super().repr_failure(excinfo)


class CaseItem(pytest.Item):
    """One case."""

    def __init__(self, *, case: Ready | Unready, judge: Judge, **more: Any) -> None:
        super().__init__(**more)
        self._case, self._judge = case, judge

    def runtest(self) -> None:
        """Judge it.

        Raises:
            WrongVerdictError: it does not pass.

        """
        from ledgercli.casework.running import judged_case
        from ledgercli.reports.cases import plain_lines

        outcome = judged_case(self._judge, self._case)
        if outcome.came == "skipped":
            pytest.skip(outcome.why)
        if outcome.came != "passed":
            lines = plain_lines(outcome) or [outcome.why]
            raise WrongVerdictError("\n".join([f"{outcome.where}  {outcome.name}", *lines]))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], *_: Any, **__: Any) -> Any:
        """Return why it fails."""
        return str(excinfo.value) if isinstance(excinfo.value, WrongVerdictError) else super().repr_failure(excinfo)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """Return where it stands."""
        where = self._judge.where(self._case)
        return self.path, where.line - 1, self.name


def _shown(path: Path) -> str:
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)
