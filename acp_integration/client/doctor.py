"""Tries the agent a client is configured for, one step after the other, and says what is wrong and what to do."""

import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from acp_integration.client.builder import ClientBuilder
from acp_integration.client.client import AcpClient
from acp_integration.errors import (
    AcpError,
    AgentExited,
    AgentTimeout,
    AuthRequired,
    ConfigurationError,
    ConnectionClosed,
    VersionMismatch,
)
from acp_integration.transports.selection import select_client_transport
from acp_integration.transports.transport import Transport

if TYPE_CHECKING:
    from acp_integration.settings import AcpClientSettings

Step = Callable[[AcpClient], Awaitable[str]]

_ADVICE: dict[type[AcpError], str] = {
    ConfigurationError: "correct the settings",
    AgentExited: "run the command by hand and read what it says",
    AgentTimeout: "it runs but does not speak the protocol: check its arguments, many agents need one for it",
    VersionMismatch: "install a version of the agent that speaks the same protocol version",
    AuthRequired: "log in with the agent's own program, hand it its key in transport.stdio.env, or call authenticate()",
    ConnectionClosed: "check that the command or the address is right and can be reached from here",
}


@dataclass(frozen=True, slots=True)
class Finding:
    """What one step showed.

    Attributes:
        step: transport, initialize, session, prompt, output or close.
        ok: whether it went well.
        text: what was found, and for a failure what to do.
    """

    step: str
    ok: bool
    text: str

    def __str__(self) -> str:
        return f"{'ok  ' if self.ok else 'FAIL'} {self.step}: {self.text}"


async def examine(
    settings: "AcpClientSettings", prefix: str = "acp.client", *, prompt: str | None = None
) -> AsyncIterator[Finding]:
    """Start the configured agent, initialize it, open a session and close it; never raises for what is wrong with it.

    Args:
        settings: the client's settings.
        prefix: how the settings are named in what is found.
        prompt: what to ask the agent, too; some want authentication only then.
    """
    try:
        transport = select_client_transport(settings, prefix)
    except ConfigurationError as error:
        yield _failure("transport", error)
        return
    if transport is None:
        keys = ", ".join(f"{prefix}.transport.{key}" for key in ("stdio.command", "websocket.uri", "http.uri"))
        yield Finding("transport", ok=False, text=f"no agent is configured: set one of {keys}")
        return
    yield Finding("transport", ok=True, text=repr(transport))
    # Without the application's handlers no capability can be announced; the agent is tried with none.
    client = ClientBuilder(transport, _Plain(settings), prefix=prefix).build()
    try:
        for name, step in _steps(prompt):
            finding = await _tried(name, step, client)
            yield finding
            if not finding.ok:
                return
        for finding in _noise(transport):
            yield finding
    finally:
        await client.aclose()
    yield Finding("close", ok=True, text="the agent ended")


class _Plain:
    """The settings of a client that announces nothing."""

    def __init__(self, settings: "AcpClientSettings") -> None:
        self.capabilities = None
        self.client_options = settings.client_options


def _steps(prompt: str | None) -> Iterator[tuple[str, Step]]:
    yield "initialize", _initialize
    yield "session", _open_session
    if prompt is not None:
        yield "prompt", partial(_ask, prompt)


async def _tried(name: str, step: Step, client: AcpClient) -> Finding:
    started = time.perf_counter()
    try:
        text = await step(client)
    except AcpError as error:
        return _failure(name, error)
    return Finding(name, ok=True, text=f"{text} ({time.perf_counter() - started:.2f} s)")


async def _initialize(client: AcpClient) -> str:
    await client.initialize()
    info = client.agent_info
    name = "an agent without a name" if info is None else f"{info.name} {info.version}"
    offered = sorted(client.agent.names) if client.agent is not None else []
    methods = ", ".join(method.id for method in client.auth_methods) or "none"
    return f"{name}; supports {', '.join(offered) or 'nothing optional'}; authentication methods: {methods}"


async def _open_session(client: AcpClient) -> str:
    with tempfile.TemporaryDirectory() as folder:
        session = await client.new_session(folder)
        if client.supports("sessionCapabilities.close"):
            await session.close()
    return f"opened session {session.id}"


async def _ask(prompt: str, client: AcpClient) -> str:
    with tempfile.TemporaryDirectory() as folder:
        result = await (await client.new_session(folder)).prompt(prompt)
    return f"{len(result.updates)} updates, then {result.stop_reason}"


def _noise(transport: Transport) -> list[Finding]:
    skipped = getattr(transport, "skipped_lines", 0)
    text = f"{skipped} lines on stdout were no protocol messages: make the agent log to stderr"
    return [Finding("output", ok=False, text=text)] if skipped else []


def _failure(step: str, error: AcpError) -> Finding:
    advice = next((text for kind, text in _ADVICE.items() if isinstance(error, kind)), "ask the agent's authors")
    return Finding(step, ok=False, text=f"{error}; {advice}")
