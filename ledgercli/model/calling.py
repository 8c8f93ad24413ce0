"""Asks a model: the one door to litellm.

Invariants:
* litellm is imported here alone, inside the functions that need it, told to fetch nothing; it never retries and says
  nothing on the terminal.
* However a server behaves, asking ends: a reply is whole within `timeout`, tries are counted, and waits between them
  are bounded. Ctrl-C ends it at once.
* No key leaves this module: what servers say is scrubbed.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import logging
import math
import os
import queue
import random
import threading
import time
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, TypeVar

from ledgercli.errors import EngineError, LedgerCliError
from ledgercli.model.failing import PASSING, ModelError, again_after, kind_of
from ledgercli.model.reading import Called, Reply
from ledgercli.model.request import Request
from ledgercli.scenario import ModelSettings
from ledgercli.scrubbing import holds_key, keys, scrubbed

T = TypeVar("T")
EXTRA: Final = "python -m pip install 'ledgercli[llm]'"
LONGEST_WAIT: Final = 60.0  # seconds between the tries of one request, in all
_FIRST_WAIT: Final = 0.5
_OLDEST: Final = (1, 84)  # 1.82.7 and 1.82.8 were malicious
_NO_KEY: Final = "none"  # what a server of one's own gets that asks for no key
_LOGGERS: Final = ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy", "httpx", "openai")


@dataclass(frozen=True, slots=True)
class Usage:
    """What one reply took.

    Arguments:
        prompt: tokens that the model read; None where the server does not say.
        completion: tokens that it wrote.
        cost: US dollars; None where no price is known.
        seconds: from the first try to the whole reply.

    """

    prompt: int | None
    completion: int | None
    cost: float | None
    seconds: float


def ready(settings: ModelSettings) -> None:
    """See to it that a model can be asked, before anything else is done.

    Raises:
        LedgerCliError: litellm is missing or too old, or knows no such provider, or no price by which to hold max_cost.
        EngineError: a key is missing.

    """
    _refuse_missing(settings.model)
    litellm = _litellm()
    try:
        provider = litellm.get_llm_provider(settings.model, api_base=settings.api_base)[1]
    except Exception as error:
        raise LedgerCliError(
            f"litellm knows no provider of the model {settings.model}",
            fix=f"write PROVIDER/NAME: openai/{settings.model} for a server that speaks as OpenAI's does",
        ) from error
    if settings.api_key_env and not os.environ.get(settings.api_key_env):
        raise EngineError(f"no key for {provider}: {settings.api_key_env} is not set")
    if missing := _missing_keys(litellm, settings):
        raise EngineError(f"no key for {provider}: {' or '.join(missing)} is not set")
    if settings.max_cost is not None and _cost(litellm, settings.model, 1, 1) is None:
        raise LedgerCliError(
            f"no price is known for {settings.model}, so nothing can hold max_cost",
            fix="leave it out, and use max_tokens and max_steps",
        )


def native(model: str) -> bool:
    """Whether litellm says that a model has native tool calls."""
    return bool(_litellm().supports_function_calling(model=model))


def count(model: str, request: Request) -> int | None:
    """How many tokens litellm counts in a request; None where it is not installed."""
    if importlib.util.find_spec("litellm") is None:
        return None
    tools = request.more.get("tools")
    return int(_litellm().token_counter(model=model, messages=list(request.messages), tools=tools))


def ask(settings: ModelSettings, request: Request) -> tuple[Reply, Usage]:
    """Ask once, with as many tries as `retries` allows.

    Raises:
        ModelError: no reply came; `kind` says why.

    """
    litellm, began, waited = _litellm(), time.monotonic(), 0.0
    _hush()
    known = keys(settings.api_key_env)
    for tried in range(1, settings.retries + 2):
        try:
            reply, usage = _within(settings.timeout, lambda: _once(litellm, settings, request))
        except Exception as error:  # noqa: BLE001 - litellm raises anything
            failure = _failure(error, known)
        else:
            prompt, completion = usage
            cost = None if None in usage else _cost(litellm, settings.model, prompt or 0, completion or 0)
            return reply, Usage(prompt, completion, cost, time.monotonic() - began)
        wait = _wait(tried, failure.again_after)
        if failure.kind not in PASSING or tried > settings.retries or waited + wait > LONGEST_WAIT:
            raise _last(settings, failure, tried, wait)
        time.sleep(wait)
        waited += wait
    raise AssertionError  # the last try raises


def repeats_key(settings: ModelSettings, text: str) -> bool:
    """Whether a reply holds the key that it was asked with: then no part of it may be written."""
    used = [os.environ.get(settings.api_key_env or "", ""), *_own_keys(settings)]
    return holds_key(text, [key for key in used if key])


def clean(settings: ModelSettings, text: str) -> str:
    """Return a text without keys."""
    return scrubbed(text, keys(settings.api_key_env))


# ---- litellm


def _refuse_missing(model: str) -> None:
    if importlib.util.find_spec("litellm") is None:
        raise LedgerCliError(f"the engine {model} needs litellm, which is not installed", fix=EXTRA)
    version = importlib.metadata.version("litellm")
    if tuple(int(part) for part in version.split(".")[:2] if part.isdigit()) < _OLDEST:
        raise LedgerCliError(f"the engine {model} needs litellm 1.84 or newer; {version} is installed", fix=EXTRA)


@cache
def _litellm() -> Any:
    """Import litellm: about 4 seconds of CPU."""
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    os.environ["LITELLM_OFFLINE_MODE"] = "true"
    os.environ.pop("LITELLM_LOG", None)  # it would write whole requests to the terminal
    _hush()
    import litellm

    litellm.suppress_debug_info = True
    for name in _LOGGERS:
        logging.getLogger(name).disabled = True
    return litellm


def _hush() -> None:
    """Let nobody hear what litellm's own modules are warned of; it imports some when it is first asked."""
    for category in (UserWarning, DeprecationWarning):
        warnings.filterwarnings("ignore", category=category, module=r"(pydantic|litellm|httpx|openai)\b")


def _missing_keys(litellm: Any, settings: ModelSettings) -> list[str]:
    """Name the keys that a provider wants and that are not there; a server of one's own may want none."""
    if settings.api_key_env or settings.api_base:
        return []
    said = litellm.validate_environment(settings.model)
    wanted = [name for name in said["missing_keys"] if name.endswith("_API_KEY")]
    return [] if any(os.environ.get(name) for name in wanted) else wanted


def _own_keys(settings: ModelSettings) -> list[str]:
    """The values of variables that are named after the provider."""
    provider = settings.model.partition("/")[0].upper().replace("-", "_")
    return [os.environ.get(f"{provider}_API_KEY", ""), os.environ.get("OPENAI_API_KEY", "")]


def _once(litellm: Any, settings: ModelSettings, request: Request) -> tuple[Reply, tuple[int | None, int | None]]:
    options: dict[str, Any] = {"temperature": settings.temperature, "max_tokens": settings.max_tokens}
    options |= {"api_base": settings.api_base, "api_key": _key(litellm, settings)}
    options |= {"stream_options": {"include_usage": True}} if settings.stream else {}
    answer = litellm.completion(
        model=settings.model,
        messages=[dict(message) for message in request.messages],
        **request.more,
        **{name: value for name, value in options.items() if value is not None},
        stream=settings.stream,
        timeout=settings.timeout,
        num_retries=0,
        max_retries=0,
    )
    return _streamed(answer) if settings.stream else _whole(answer)


def _key(litellm: Any, settings: ModelSettings) -> str | None:
    """The key of the variable that is named; else litellm takes the provider's, and a server of one's own any."""
    if settings.api_key_env:
        return os.environ.get(settings.api_key_env)
    if settings.api_base and not litellm.validate_environment(settings.model)["keys_in_environment"]:
        return _NO_KEY
    return None


def _whole(answer: Any) -> tuple[Reply, tuple[int | None, int | None]]:
    if not answer.choices:
        return Reply(), _tokens(answer)
    choice = answer.choices[0]
    calls = [Called(one.function.name, one.function.arguments, one.id) for one in choice.message.tool_calls or ()]
    return Reply(choice.message.content, calls, choice.finish_reason), _tokens(answer)


def _streamed(pieces: Iterable[Any]) -> tuple[Reply, tuple[int | None, int | None]]:
    """Put a reply together from its pieces; one that says why it ends is whole."""
    content, finish = "", None
    usage: tuple[int | None, int | None] = (None, None)
    calls: dict[int, list[Any]] = {}
    for piece in pieces:
        usage = _tokens(piece) if getattr(piece, "usage", None) else usage
        if not piece.choices:
            continue
        choice = piece.choices[0]
        content += choice.delta.content or ""
        finish = choice.finish_reason or finish
        for one in choice.delta.tool_calls or ():
            call = calls.setdefault(one.index, [None, "", None])
            call[0] = one.function.name or call[0]
            call[1] += one.function.arguments or ""
            call[2] = one.id or call[2]
    nothing = not content and not calls and usage == (None, None)  # litellm ends that one itself
    if finish is None or nothing:
        raise ModelError("cut off", "the stream ended before the reply did")
    return Reply(content or None, [Called(*call) for _, call in sorted(calls.items())], finish), usage


def _tokens(answer: Any) -> tuple[int | None, int | None]:
    usage = getattr(answer, "usage", None)
    counts = [getattr(usage, name, None) for name in ("prompt_tokens", "completion_tokens")]
    prompt, completion = (value if isinstance(value, int) and value >= 0 else None for value in counts)
    return prompt, completion


def _cost(litellm: Any, model: str, prompt: int, completion: int) -> float | None:
    """What so many tokens cost; None where no price is known."""
    try:
        parts = litellm.cost_per_token(model=model, prompt_tokens=prompt, completion_tokens=completion)
    except Exception:  # noqa: BLE001 - there are several errors for this
        return None
    cost = float(sum(parts))
    return cost if math.isfinite(cost) and cost >= 0 else None


# ---- failures


def _failure(error: Exception, known: Iterable[str]) -> ModelError:
    if isinstance(error, ModelError):
        return error
    said = str(error).rpartition("Exception - ")[2]  # behind the names of litellm's errors
    return ModelError(kind_of(error), scrubbed(said, known), again_after(error))


def _wait(tried: int, wanted: float | None) -> float:
    """How long to wait before the next try: what the server wants, else twice as long each time; never all at once."""
    backoff = _FIRST_WAIT * 2 ** (tried - 1) * random.uniform(0.5, 1.5)  # noqa: S311 - no secret
    return backoff if wanted is None else wanted + random.uniform(0, 0.1)  # noqa: S311


def _last(settings: ModelSettings, failure: ModelError, tried: int, wait: float) -> EngineError:
    """What is told of the last failure."""
    more = f" (asked {tried} times)" if tried > 1 else ""
    if failure.kind in PASSING and tried <= settings.retries:
        more += f"; it wants to be asked again after {wait:.0f} s, which is too long"
    failure.message = f"{settings.model}: {failure.message}{more}"
    failure.args = (failure.message,)
    return failure


def _within(seconds: float, call: Callable[[], T]) -> T:
    """Call in a thread, and leave it after so many seconds: a server that says a little now and then never ends."""
    answers: queue.SimpleQueue[tuple[T | None, Exception | None]] = queue.SimpleQueue()

    def work() -> None:
        try:
            answers.put((call(), None))
        except Exception as error:  # noqa: BLE001 - it is raised where it is waited for
            answers.put((None, error))

    threading.Thread(target=work, daemon=True).start()
    try:
        value, error = answers.get(timeout=seconds)
    except queue.Empty:
        raise ModelError("timeout", f"{seconds:g} s") from None
    if error is not None:
        raise error
    return value  # type: ignore[return-value]  # there is a value where there is no error
