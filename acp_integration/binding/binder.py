"""From a declared agent to a table of call plans: signatures are read here, once, and never per call."""

import inspect
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Generator,
    Iterable,
    Iterator,
)
from typing import Any, Final, get_args, get_origin

import msgspec

from acp_integration import sdk
from acp_integration.agents import declaration_of
from acp_integration.binding import annotations
from acp_integration.binding.arguments import plan_arguments
from acp_integration.binding.declarations import DeclaredHandler, handlers_of
from acp_integration.binding.faults import HandlerSite
from acp_integration.binding.handler import BoundAgent
from acp_integration.binding.parameters import Kind
from acp_integration.binding.resolvers import ArgumentResolver, ReturnValueHandler, return_handler_for
from acp_integration.binding.scope import HandlerScope
from acp_integration.binding.user import UserHandler
from acp_integration.errors import HandlerError
from acp_integration.execution import HandlerExecutor
from acp_integration.handlers import HandlerMark
from acp_integration.returns import NEEDS_RESULT
from acp_integration.wire import methods
from acp_integration.wire.decoding import RESULTS

_AWAITED: Final = (Awaitable, Coroutine)
_ASYNC_STREAMS: Final = (AsyncGenerator, AsyncIterable, AsyncIterator)
_STREAMS: Final = (*_ASYNC_STREAMS, Generator, Iterable, Iterator)
_UNANNOTATED: Final = (inspect.Signature.empty, Any, object)


class Surroundings(msgspec.Struct, frozen=True, kw_only=True):
    """What an agent's handlers are bound with."""

    executor: HandlerExecutor
    resolvers: tuple[ArgumentResolver, ...] = ()
    return_handlers: tuple[ReturnValueHandler, ...] = ()
    scope: HandlerScope | None = None


def bind(agent: Any, instance: Any, surroundings: Surroundings) -> BoundAgent:
    """Find the handlers of a declared agent and bind them to its one instance.

    Raises:
        HandlerError: naming class, method, parameter and the fix.
    """
    declaration = declaration_of(agent)
    if declaration is None:
        raise HandlerError(f"{agent!r} is not an agent: decorate it with @acp_agent")
    bound = BoundAgent(declaration)
    for method, declared in handlers_of(agent, instance).items():
        handler = _bind_handler(declared, surroundings)
        bound.handlers[method] = handler
        bound.uses_sdk = bound.uses_sdk or handler.uses_sdk
        if method == methods.SESSION_PROMPT:
            bound.prompt_mark = declared.mark
    return bound


def _bind_handler(declared: DeclaredHandler, surroundings: Surroundings) -> UserHandler:
    returned = annotations.return_annotation(declared.declared, declared.owner)
    sync = not _is_async(declared.declared, returned)
    plan = plan_arguments(
        declared.site,
        declared.function,
        annotations.parameters_of(declared.function, declared.owner),
        sync=sync,
        resolvers=surroundings.resolvers,
        scope=surroundings.scope,
    )
    returns = return_handler_for(returned, surroundings.return_handlers)
    if returns is None:
        _check_return(declared.site, declared.mark, returned, silent=Kind.SESSION in plan.kinds)
    return UserHandler(
        declared.site, declared.mark, declared.function, plan, surroundings.executor, sync=sync, returns=returns
    )


def _is_async(function: Callable[..., Any], returned: Any) -> bool:
    """Whether a function is called on the loop: it is async, or it says that it returns something async."""
    plain = inspect.unwrap(function)
    if inspect.iscoroutinefunction(plain) or inspect.isasyncgenfunction(plain):
        return True
    return (get_origin(returned) or returned) in (*_AWAITED, *_ASYNC_STREAMS)


def _check_return(site: HandlerSite, mark: HandlerMark, returned: Any, *, silent: bool) -> None:
    """Refuse what cannot be an answer; `silent` is a handler that may return nothing, whatever its method."""
    if any(returned is kind for kind in _UNANNOTATED):
        return
    origin, parts = get_origin(returned) or returned, get_args(returned)
    if origin in _AWAITED:
        _check_return(site, mark, parts[-1] if parts else Any, silent=silent)
        return
    notification = mark.notification or site.method == methods.SESSION_CANCEL
    if notification:
        _check(site, returned in (None, type(None)), returned, "a notification has no answer: return nothing")
    elif origin in _STREAMS and site.method != methods.SESSION_PROMPT:
        _check(site, False, returned, "only a prompt handler yields: return the whole response")  # noqa: FBT003
    elif site.method == methods.SESSION_PROMPT:
        _check_kinds(site, returned, ("PromptResponse",), f"return {_PROMPT_RETURNS}")
    else:
        _check_response(site, returned, silent=silent)


_PROMPT_RETURNS: Final = "text, content, a PromptResponse, nothing, or yield updates"


def _check_response(site: HandlerSite, returned: Any, *, silent: bool) -> None:
    nothing = type(None) in (returned, *get_args(returned)) or returned is None
    if returned in (None, type(None)):
        needed = not silent and (site.method in NEEDS_RESULT or site.method not in RESULTS)
        _check(site, not needed, returned, f"return the response of {site.method}")
    expected = getattr(RESULTS.get(site.method), "__name__", "")
    if expected:
        _check_kinds(site, returned, (expected,), f"return {expected} or a mapping{' or nothing' if nothing else ''}")


def _check_kinds(site: HandlerSite, returned: Any, models: tuple[str, ...], fix: str) -> None:
    """A model of the SDK must be the method's own; plain numbers and the like are nobody's response."""
    for choice in annotations.choices(returned):
        name = annotations.model_name(choice)
        if name is not None and name.endswith(("Response", "Request")) and sdk.is_model_name(name):
            _check(site, name in models, returned, fix)
        plain = get_origin(choice) or choice
        refused = (int, float, bool, bytes, set) if site.method == methods.SESSION_PROMPT else (*_NO_RESPONSE,)
        _check(site, plain not in refused, returned, fix)


_NO_RESPONSE: Final = (str, int, float, bool, bytes, list, tuple, set)


def _check(site: HandlerSite, fine: bool, returned: Any, fix: str) -> None:
    if not fine:
        shown = getattr(returned, "__name__", None) or str(returned)
        raise site.fault(f"it returns {shown}, which cannot answer {site.method}: {fix}")
