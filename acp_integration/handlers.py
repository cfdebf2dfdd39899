"""The handler decorators: each marks a method as the handler of one protocol method. Marks only, binds nothing."""

from collections.abc import Callable
from typing import Any, Final, Literal, TypeVar, overload

import msgspec

from acp_integration.errors import HandlerError
from acp_integration.wire import methods

F = TypeVar("F", bound=Callable[..., Any])

MARKS: Final = "__acp_handlers__"


class HandlerMark(msgspec.Struct, frozen=True):
    """What `on.*` says about a handler."""

    method: str
    image: bool = False
    audio: bool = False
    embedded_context: bool = False
    cooperative: bool = False
    notification: bool = False


def marks_of(function: Any) -> tuple[HandlerMark, ...]:
    """The handler marks of one function."""
    return tuple(getattr(function, MARKS, ()))


def _mark(function: F, mark: HandlerMark) -> F:
    plain = function.__func__ if isinstance(function, staticmethod | classmethod) else function
    setattr(plain, MARKS, (*marks_of(plain), mark))
    return function


class On:
    """The handler decorators; `on` is the one instance."""

    def initialize(self, handler: F, /) -> F:
        """Handle `initialize`: the answer is laid over the derived one; returning nothing keeps that."""
        return _mark(handler, HandlerMark(methods.INITIALIZE))

    def authenticate(self, handler: F, /) -> F:
        """Handle `authenticate`; raising refuses."""
        return _mark(handler, HandlerMark(methods.AUTHENTICATE))

    def logout(self, handler: F, /) -> F:
        """Handle `logout`."""
        return _mark(handler, HandlerMark(methods.LOGOUT))

    def new_session(self, handler: F, /) -> F:
        """Handle `session/new`; without a handler a session with a random id is opened."""
        return _mark(handler, HandlerMark(methods.SESSION_NEW))

    def load_session(self, handler: F, /) -> F:
        """Handle `session/load`: replay the session, then return."""
        return _mark(handler, HandlerMark(methods.SESSION_LOAD))

    def resume_session(self, handler: F, /) -> F:
        """Handle `session/resume`: open the session again, replaying nothing."""
        return _mark(handler, HandlerMark(methods.SESSION_RESUME))

    def list_sessions(self, handler: F, /) -> F:
        """Handle `session/list`."""
        return _mark(handler, HandlerMark(methods.SESSION_LIST))

    def close_session(self, handler: F, /) -> F:
        """Handle `session/close`; a turn of the session was cancelled and answered before."""
        return _mark(handler, HandlerMark(methods.SESSION_CLOSE))

    def delete_session(self, handler: F, /) -> F:
        """Handle `session/delete`; deleting what is not there is a success."""
        return _mark(handler, HandlerMark(methods.SESSION_DELETE))

    def fork_session(self, handler: F, /) -> F:
        """Handle `session/fork` (unstable)."""
        return _mark(handler, HandlerMark(methods.SESSION_FORK))

    def set_mode(self, handler: F, /) -> F:
        """Handle `session/set_mode`; the session's mode changes when the handler returns."""
        return _mark(handler, HandlerMark(methods.SESSION_SET_MODE))

    def set_config_option(self, handler: F, /) -> F:
        """Handle `session/set_config_option`; the option changes when the handler returns."""
        return _mark(handler, HandlerMark(methods.SESSION_SET_CONFIG_OPTION))

    def cancel(self, handler: F, /) -> F:
        """Be told of a `session/cancel`; the turn is cancelled without it too."""
        return _mark(handler, HandlerMark(methods.SESSION_CANCEL))

    def list_providers(self, handler: F, /) -> F:
        """Handle `providers/list` (unstable)."""
        return _mark(handler, HandlerMark(methods.PROVIDERS_LIST))

    def set_provider(self, handler: F, /) -> F:
        """Handle `providers/set` (unstable)."""
        return _mark(handler, HandlerMark(methods.PROVIDERS_SET))

    def disable_provider(self, handler: F, /) -> F:
        """Handle `providers/disable` (unstable)."""
        return _mark(handler, HandlerMark(methods.PROVIDERS_DISABLE))

    @overload
    def prompt(self, handler: F) -> F: ...
    @overload
    def prompt(
        self,
        *,
        image: bool = False,
        audio: bool = False,
        embedded_context: bool = False,
        cancellation: Literal["deliver", "cooperative"] = "deliver",
    ) -> Callable[[F], F]: ...
    def prompt(
        self,
        handler: Any = None,
        *,
        image: bool = False,
        audio: bool = False,
        embedded_context: bool = False,
        cancellation: Literal["deliver", "cooperative"] = "deliver",
    ) -> Any:
        """Handle `session/prompt`, the one handler every agent has; used bare or with arguments.

        Args:
            image: whether prompts may hold images.
            audio: whether prompts may hold audio.
            embedded_context: whether prompts may hold embedded resources.
            cancellation: `"deliver"` cancels an async handler once, `"cooperative"` only marks the turn.
        """
        cooperative = cancellation == "cooperative"
        mark = HandlerMark(methods.SESSION_PROMPT, image, audio, embedded_context, cooperative)
        return _mark(handler, mark) if handler is not None else lambda function: _mark(function, mark)

    def mcp(self, method: str) -> Callable[[F], F]:
        """Handle one `mcp/*` method, request and notification alike (unstable)."""
        if not method.startswith("mcp/"):
            raise HandlerError(f"on.mcp takes the name of an MCP method such as 'mcp/message', not {method!r}")
        return lambda function: _mark(function, HandlerMark(method))

    def ext_request(self, method: str) -> Callable[[F], F]:
        """Handle an extension request; its name begins with an underscore."""
        name = _extension(method)
        return lambda function: _mark(function, HandlerMark(name))

    def ext_notification(self, method: str) -> Callable[[F], F]:
        """Handle an extension notification; its name begins with an underscore."""
        name = _extension(method)
        return lambda function: _mark(function, HandlerMark(name, notification=True))


on: Final = On()


def _extension(method: str) -> str:
    if not method.startswith("_"):
        raise HandlerError(f"The name of an extension method begins with an underscore: '_{method}', not {method!r}")
    return method
