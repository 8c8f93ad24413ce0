"""The template of a prompt: Jinja2 in a sandbox, which is imported here and nowhere else.

Invariants:
* A template gets texts and nothing that it could reach anything else with.
* What it writes is not read again: no value can become a part of the template.
* Whatever is wrong with one is an error with its file and line.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping
from functools import cache
from importlib.resources import files
from typing import Any, Final

from ledgercli.errors import LedgerCliError

ROLES: Final = ("system", "user")  # the blocks of a template that are messages of their own
STANDARD: Final = "prompt.jinja"
_LONGEST: Final = 1_000_000  # characters of a message


class TemplateError(LedgerCliError):
    """A template cannot be read, or not be filled in."""


def render(source: str | None, name: str, parts: Mapping[str, Any]) -> tuple[dict[str, str], ...]:
    """Return the messages that a template makes.

    Arguments:
        source: the template's text; None: the one that comes with the package.
        name: what it is called in errors.
        parts: the names that it may use.

    Raises:
        TemplateError: it is wrong.

    """
    template = _compiled(_standard() if source is None else source, name)

    def made(block: Callable[..., Any] | None) -> str:
        filled = "".join(block(template.new_context(dict(parts)))) if block else template.render(dict(parts))
        if len(filled) > _LONGEST:
            raise TemplateError(f"{name}: it makes a message of {len(filled):,} characters")
        return filled.strip("\n")

    try:
        blocks = {role: template.blocks[role] for role in ROLES if role in template.blocks}
        whole = {role: made(block) for role, block in blocks.items()} or {"user": made(None)}
    except TemplateError:
        raise
    except Exception as error:  # a template may do anything that fails; none of it is a bug of ours
        raise TemplateError(f"{name}:{_line(error, name)}: {_said(error)}", fix=_fix(error, parts)) from error
    return tuple({"role": role, "content": text} for role, text in whole.items() if text)


@cache
def _standard() -> str:
    return files(__package__).joinpath(STANDARD).read_text(encoding="utf-8")


@cache
def _compiled(source: str, name: str) -> Any:
    from jinja2 import StrictUndefined, TemplateSyntaxError
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    environment = ImmutableSandboxedEnvironment(
        undefined=StrictUndefined, autoescape=False, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True
    )
    environment.globals = {"range": environment.globals["range"]}
    try:
        code = environment.compile(source, name, name)
    except TemplateSyntaxError as error:
        raise TemplateError(f"{name}:{error.lineno}: {error.message}") from error
    return environment.template_class.from_code(environment, code, environment.make_globals(None), None)


def _line(error: BaseException, name: str) -> int:
    """Return the line of the template in which it went wrong; Jinja2 puts its lines into the traceback."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == name]
    return lines[-1] or 1 if lines else 1


def _said(error: Exception) -> str:
    return str(error) or type(error).__name__


def _fix(error: Exception, parts: Mapping[str, Any]) -> str | None:
    return f"there is {', '.join(parts)}" if type(error).__name__ == "UndefinedError" else None
