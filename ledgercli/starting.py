"""Something to begin with: a scenario, its toolset and tools, a pack and its cases, copied into a folder.

Invariants:
* No file is ever overwritten; if one is in the way, nothing is written at all.
* What is copied is the weather assistant that the tests run; only the place of its pack differs.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from ledgercli.errors import LedgerCliError, LedgerWriteError, OutputExistsError
from ledgercli.policy import shipped_folder

#: Each file with what it is.
FILES: Final = {
    "weather.yaml": "the scenario: a task, and who decides what to do next",
    "weather.tools.yaml": "its tools, and what their results change",
    "weather_tools.py": "what the tools do",
    "policies/weather.yaml": "the rules that every call must pass",
    "weather.cases.yaml": "cases that say what the rules must answer",
}
_POLICIES: Final = "../../policies/"  # as the scenario names its pack where it comes from


def contents() -> dict[str, str]:
    """Return each file of the starter with its text."""
    return {name: _text(name) for name in FILES}


def begin(folder: Path) -> list[Path]:
    """Write the starter into a folder, which is made if it is missing.

    Returns:
        The files, in order.

    Raises:
        OutputExistsError: one of them is there already.
        LedgerCliError: the folder cannot be made or written.

    """
    texts = {folder / name: text for name, text in contents().items()}
    there = [path for path in texts if path.exists() or path.is_symlink()]
    if there:
        raise OutputExistsError(f"{there[0]} exists; nothing was written", fix="another folder")
    for path, text in texts.items():
        _write(path, text)
    return list(texts)


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8", newline="\n") as file:
            file.write(text)
    except (FileExistsError, NotADirectoryError) as error:
        raise LedgerCliError(f"{path.parent} is no folder", fix="another folder") from error
    except OSError as error:
        raise LedgerWriteError(f"{path} cannot be written: {(error.strerror or str(error)).lower()}") from error


def _text(name: str) -> str:
    if name.startswith("policies/"):
        return (shipped_folder() / name.removeprefix("policies/")).read_text(encoding="utf-8")
    return (_folder() / name).read_text(encoding="utf-8").replace(_POLICIES, "policies/")


def _folder() -> Path:
    """Return where the starter is: in the package, or among the fixtures of a checkout."""
    here = Path(__file__).resolve().parent
    installed = here / "starter"
    return installed if installed.is_dir() else here.parent / "fixtures" / "scenarios"
