"""How an agent is declared: `@acp_agent` on a class or function. Declares only, binds nothing."""

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar, overload

import msgspec

from acp_integration.handlers import on

T = TypeVar("T")

DECLARATION: Final = "__acp_agent__"


class AgentDeclaration(msgspec.Struct, frozen=True, kw_only=True):
    """What `@acp_agent` says about an agent."""

    name: str
    module: str = ""
    title: str | None = None
    version: str | None = None
    auth_methods: tuple[Any, ...] = ()
    mcp_http: bool = False
    mcp_sse: bool = False
    additional_directories: bool = False
    modes: tuple[Any, ...] = ()
    config_options: tuple[Any, ...] = ()


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
def acp_agent(  # noqa: PLR0913  # one argument for each thing an agent says of itself
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
            module=agent.__module__,
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


__all__ = ["DECLARATION", "AgentDeclaration", "acp_agent", "declaration_of", "on"]
