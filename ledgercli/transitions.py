"""Transitions, compiled: what a toolset declares to change after a success or a failure of each tool.

Invariants:
* Every path is one that a transition may set, and every key in brackets is a text.
* What a path holds already is handed on as it stands; what is computed is made fit for a ledger.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ledgercli import cel, paths
from ledgercli.cel import Program
from ledgercli.documents import Document, Place
from ledgercli.expressions import Target, as_found
from ledgercli.functions import Moment
from ledgercli.toolset import Block, Tool
from ledgercli.vocabulary import Vocabulary, blocks_of

TRUTHS = ("flags", "goals")  # each of these is true or false
_JSON = ("state", "action", "result")  # what stands at a path below these is JSON already
Value = Callable[[Mapping[str, Any], Moment], cel.Answer]


@dataclass(frozen=True, slots=True)
class Setting:
    """One compiled path: fixed keys, and programs for those in brackets."""

    text: str
    parts: tuple[str | Program, ...]
    value: Value | None  # None: the path is removed
    fixed: paths.Path | None = None  # the path, where no key is computed


@dataclass(frozen=True, slots=True)
class CompiledBlock:
    """One block of a transition."""

    when: Program | None
    each: Program | None
    settings: tuple[Setting, ...]
    finish: str | None


class Transitions:
    """The transitions of a toolset.

    Arguments:
        vocabulary: the names; problems of transitions are added to its `problems`.

    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self.blocks: dict[tuple[str, bool], list[CompiledBlock]] = {}  # by tool, and whether it succeeded
        self.fails: dict[str, Program] = {}  # by tool: what counts as a failure
        if vocabulary.toolset is not None:
            for name, tool in vocabulary.toolset.tools.items():
                self._compile_tool(name, tool)

    def _compile_tool(self, name: str, tool: Tool) -> None:
        vocabulary = self._vocabulary
        assert vocabulary.toolset is not None
        file, document = vocabulary.toolset.file, vocabulary.toolset.document
        if name not in file.tools:
            self._compile_built_in(name, tool)
            return
        fails = tool.fails_when if tool.fails_when is not None else file.fails_when
        if fails is not None:
            place: Place = ("tools", name, "fails_when") if tool.fails_when is not None else ("fails_when",)
            checked = vocabulary.expression(document, place, fails, vocabulary.fails_env(name), cel.BOOL)
            if checked is not None:
                self.fails[name] = cel.compile(checked)
        for success, where, block in blocks_of(name, tool):
            compiled = self._compile_block(document, where, block, name, success=success)
            self.blocks.setdefault((name, success), []).append(compiled)

    def _compile_built_in(self, name: str, tool: Tool) -> None:
        """Compile a tool that stands in no file."""
        for success, _, block in blocks_of(name, tool):
            env = self._vocabulary.transition_env(name, success)
            settings = tuple(
                Setting(path, tuple(path.split(".")), cel.compile(cel.check(cel.parse(value), env)))
                for path, value in block.set.items()
            )
            self.blocks.setdefault((name, success), []).append(CompiledBlock(None, None, settings, block.finish))

    def _compile_block(
        self, document: Document, place: Place, block: Block, tool: str, *, success: bool
    ) -> CompiledBlock:
        vocabulary = self._vocabulary
        outer = vocabulary.transition_env(tool, success)
        each = None
        if block.each is not None:
            each = vocabulary.expression(document, (*place, "each"), block.each, outer)
            if each is not None and each.type != cel.DYN and not isinstance(each.type, cel.ListType):
                vocabulary.problem(document, (*place, "each"), "wrong-type", f"each takes a list, this is {each.type}")
        env = vocabulary.transition_env(tool, success, (*place, "each")) if block.each is not None else outer
        when = None
        if block.when is not None:
            when = vocabulary.expression(document, (*place, "when"), block.when, env, cel.BOOL)
        settings = [
            self._setting(document, where, path, env, self._value(document, where, value, env, path))
            for path, value in block.set.items()
            for where in [(*place, "set", path)]
        ]
        settings += [
            self._setting(document, (*place, "unset", number), path, env, None)
            for number, path in enumerate(block.unset)
        ]
        return CompiledBlock(
            cel.compile(when) if when else None,
            cel.compile(each) if each else None,
            tuple(setting for setting in settings if setting is not None),
            block.finish,
        )

    def _setting(
        self, document: Document, place: Place, path: str, env: cel.Env, value: Value | None
    ) -> Setting | None:
        vocabulary = self._vocabulary
        target = vocabulary.target(document, place, path, key=value is not None)
        if target is None or not self._has_depth(document, place, target, key=value is not None):
            return None
        if value is None:
            vocabulary.declared_path(document, place, target, env)
        parts: list[str | Program] = []
        for part in target.parts:
            checked = part if isinstance(part, str) else vocabulary.checked(part, env, cel.STRING)
            if checked is None:
                return None
            parts.append(checked if isinstance(checked, str) else cel.compile(checked))
        fixed = tuple(part for part in parts if isinstance(part, str))
        return Setting(target.text, tuple(parts), value, fixed if len(fixed) == len(parts) else None)

    def _has_depth(self, document: Document, place: Place, target: Target, *, key: bool) -> bool:
        """Whether a path names one fact, flag, constraint or goal, and nothing inside what has no inside."""
        root, depth = target.parts[0], len(target.parts)
        fits = depth == 1 if root in ("error", "final_answer") else depth == 2 if root in TRUTHS else depth > 1
        if not fits:
            shape = root if root in ("error", "final_answer") else f"{root}.NAME"
            message = f"{target.text} cannot be set: a transition sets {shape}"
            self._vocabulary.problem(document, place, "not-a-path", message, key=key)
        return fits

    def _value(self, document: Document, place: Place, value: Any, env: cel.Env, path: str = "") -> Value:
        """Compile an expression, or a map or list of them; `path` is what the whole is for."""
        if isinstance(value, str):
            checked = self._vocabulary.expression(document, place, value, env)
            if checked is None:
                return _constant(None)
            if path.partition(".")[0] in TRUTHS and checked.type not in (cel.BOOL, cel.DYN):
                message = f"{path} is true or false, this is {checked.type}"
                self._vocabulary.problem(document, place, "wrong-type", message)
            program = cel.compile(as_found(checked))
            found = cel.path_of(checked.node)
            return program if found and found[0] in _JSON else _json(program)
        if isinstance(value, Mapping):
            return _map({k: self._value(document, (*place, k), item, env) for k, item in value.items()})
        if isinstance(value, list):
            return _list([self._value(document, (*place, n), item, env) for n, item in enumerate(value)])
        return _constant(value)


def _constant(value: Any) -> Value:
    answer = cel.Answer(known=True, value=value)
    return lambda _roots, _moment: answer


def _json(program: Program) -> Value:
    """An expression whose value must be fit for a ledger."""

    def value(roots: Mapping[str, Any], moment: Moment) -> cel.Answer:
        answer = program(roots, moment)
        if not answer.known:
            return answer
        try:
            return cel.Answer(known=True, value=cel.to_json(answer.value))
        except cel.EvalError as error:
            return cel.Answer(known=False, error=str(error))

    return value


def _map(values: Mapping[str, Value]) -> Value:
    def value(roots: Mapping[str, Any], moment: Moment) -> cel.Answer:
        made = {}
        for key, inner in values.items():
            answer = inner(roots, moment)
            if not answer.known:
                return answer
            made[key] = answer.value
        return cel.Answer(known=True, value=made)

    return value


def _list(values: Sequence[Value]) -> Value:
    def value(roots: Mapping[str, Any], moment: Moment) -> cel.Answer:
        made = []
        for inner in values:
            answer = inner(roots, moment)
            if not answer.known:
                return answer
            made.append(answer.value)
        return cel.Answer(known=True, value=made)

    return value
