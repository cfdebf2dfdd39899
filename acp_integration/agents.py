"""How an agent is declared: `@acp_agent` on a class or function, `on.*` on its handlers. Declares only, binds nothing."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeVar, overload

from acp_integration.errors import HandlerError
from acp_integration.wire import methods

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])

DECLARATION: Final = "__acp_agent__"
MARKS: Final = "__acp_handlers__"


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentDeclaration:
    """What `@acp_agent` says about an agent."""

    name: str
    title: str | None = None
    version: str | None = None
    auth_methods: tuple[Any, ...] = ()
    mcp_http: bool = False
    mcp_sse: bool = False
    additional_directories: bool = False
    modes: tuple[Any, ...] = ()
    config_options: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True)
class HandlerMark:
    """What `on.*` says about a handler."""

    method: str
    image: bool = False
    audio: bool = False
    embedded_context: bool = False
    cooperative: bool = False
    notification: bool = False


@overload
def acp_agent(target: T, /) -> T: ...
@overload
def acp_agent(
    name: str | None = None,
    *,
    title: str | None = None,
    version: str | None = None,
    auth_methods: Sequence[Any] = (),
    mcp_http: bool = False,
    mcp_sse: bool = False,
    additional_directories: bool = False,
    modes: Sequence[Any] = (),
    config_options: Sequence[Any] = (),
) -> Callable[[T], T]: ...
def acp_agent(
    name: Any = None,
    *,
    title: str | None = None,
    version: str | None = None,
    auth_methods: Sequence[Any] = (),
    mcp_http: bool = False,
    mcp_sse: bool = False,
    additional_directories: bool = False,
    modes: Sequence[Any] = (),
    config_options: Sequence[Any] = (),
) -> Any:
    """Declare a class or function to be an agent; used bare or with arguments.

    Args:
        name: the agent's name on the wire; the class's or function's own name if left out.
        title: a name for people.
        version: the agent's version; that of the package which defines it if left out.
        auth_methods: the ways a client can authenticate.
        mcp_http: whether MCP servers over HTTP are accepted.
        mcp_sse: whether MCP servers over SSE are accepted.
        additional_directories: whether sessions take more directories than `cwd`.
        modes: the modes of every session, the first being the one it starts in.
        config_options: the options of every session.
    """
    target = name if callable(name) else None

    def declare(agent: T) -> T:
        declaration = AgentDeclaration(
            name=name if isinstance(name, str) and name.strip() else agent.__name__,  # type: ignore[attr-defined]
            title=title,
            version=version,
            auth_methods=tuple(auth_methods),
            mcp_http=mcp_http,
            mcp_sse=mcp_sse,
            additional_directories=additional_directories,
            modes=tuple(modes),
            config_options=tuple(config_options),
        )
        setattr(agent, DECLARATION, declaration)
        return agent

    return declare(target) if target is not None else declare


def declaration_of(agent: Any) -> AgentDeclaration | None:
    """What the class or function itself was declared with; a subclass of an agent is none until it is declared."""
    declared = vars(agent).get(DECLARATION) if hasattr(agent, "__dict__") else None
    return declared if isinstance(declared, AgentDeclaration) else None


def marks_of(function: Any) -> tuple[HandlerMark, ...]:
    """The handler marks of one function."""
    return tuple(getattr(function, MARKS, ()))


def _mark(function: F, mark: HandlerMark) -> F:
    setattr(function, MARKS, (*marks_of(function), mark))
    return function


def _decorator(method: str) -> Callable[[F], F]:
    return lambda function: _mark(function, HandlerMark(method))


class On:
    """The handler decorators; each marks a method as the handler of one protocol method."""

    def __init__(self) -> None:
        self.initialize = _decorator(methods.INITIALIZE)
        self.authenticate = _decorator(methods.AUTHENTICATE)
        self.logout = _decorator(methods.LOGOUT)
        self.new_session = _decorator(methods.SESSION_NEW)
        self.load_session = _decorator(methods.SESSION_LOAD)
        self.resume_session = _decorator(methods.SESSION_RESUME)
        self.list_sessions = _decorator(methods.SESSION_LIST)
        self.close_session = _decorator(methods.SESSION_CLOSE)
        self.delete_session = _decorator(methods.SESSION_DELETE)
        self.fork_session = _decorator(methods.SESSION_FORK)
        self.set_mode = _decorator(methods.SESSION_SET_MODE)
        self.set_config_option = _decorator(methods.SESSION_SET_CONFIG_OPTION)
        self.cancel = _decorator(methods.SESSION_CANCEL)
        self.list_providers = _decorator(methods.PROVIDERS_LIST)
        self.set_provider = _decorator(methods.PROVIDERS_SET)
        self.disable_provider = _decorator(methods.PROVIDERS_DISABLE)

    @overload
    def prompt(self, handler: F, /) -> F: ...
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
        /,
        *,
        image: bool = False,
        audio: bool = False,
        embedded_context: bool = False,
        cancellation: Literal["deliver", "cooperative"] = "deliver",
    ) -> Any:
        """Handle `session/prompt`; used bare or with arguments.

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
        """Handle one `mcp/*` method (unstable)."""
        if not method.startswith("mcp/"):
            raise HandlerError(f"on.mcp takes the name of an MCP method such as 'mcp/message', not {method!r}")
        return _decorator(method)

    def ext_request(self, method: str) -> Callable[[F], F]:
        """Handle an extension request; its name begins with an underscore."""
        return _decorator(_extension(method))

    def ext_notification(self, method: str) -> Callable[[F], F]:
        """Handle an extension notification; its name begins with an underscore."""
        return lambda function: _mark(function, HandlerMark(_extension(method), notification=True))


on: Final = On()


def _extension(method: str) -> str:
    if not method.startswith("_"):
        raise HandlerError(f"The name of an extension method begins with an underscore: '_{method}', not {method!r}")
    return method
