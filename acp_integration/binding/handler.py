"""A handler ready to be called, and an agent that is a table of them."""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from acp_integration.agents import AgentDeclaration
from acp_integration.context.invocation import Invocation
from acp_integration.handlers import HandlerMark
from acp_integration.interception import Chain
from acp_integration.peer import Peer
from acp_integration.turns import Call
from acp_integration.wire import methods


def _nobody(_peer: Peer) -> None:
    """Nobody is told."""


class BoundHandler(ABC):
    """One handler ready to be called.

    Attributes:
        name: the qualified name of what is called, for errors and interceptors.
        kind: where it runs: `async` on the loop, `sync` in the executor, `default` for what the author did not write.
        delivers_cancel: whether a cancel is delivered to the handler's task.
        notification: whether it handles a notification and so answers no request.
        accepts_notifications: whether a notification of its method reaches it.
        chain: the interceptors around it.
    """

    kind = "default"
    delivers_cancel = True
    notification = False
    accepts_notifications = False
    chain: Chain | None = None

    def __init__(self, method: str, name: str | None = None) -> None:
        self.method = method
        self.name = name or type(self).__qualname__

    @abstractmethod
    def __call__(self, call: Call) -> Awaitable[bytes]:
        """Run the handler; the result is JSON."""


class AnsweringHandler(BoundHandler):
    """A handler in two steps, with the interceptors around them: it is invoked, then what it returned is the answer."""

    def __call__(self, call: Call) -> Awaitable[bytes]:
        """Run the handler; the result is JSON."""
        return self.respond(Invocation(call, self.name))

    async def respond(self, invocation: Invocation) -> bytes:
        """Invoke inside the interceptors, and make the answer."""
        if self.chain is None:
            return await self.answer(await self.invoke(invocation), invocation)
        return await self.chain.run(invocation, self.invoke, self.answer)

    @abstractmethod
    async def invoke(self, invocation: Invocation) -> Any:
        """Do what the method asks for."""

    @abstractmethod
    async def answer(self, value: Any, invocation: Invocation) -> bytes:
        """The JSON of what `invoke` returned, or of what an interceptor put in its place."""


class BoundAgent(msgspec.Struct):
    """An agent ready to serve any number of connections.

    Attributes:
        handlers: what answers each method; what is not here is not answered.
        prompt_mark: what the prompt handler declared.
        uses_sdk: whether some handler wants models of the official SDK.
        connected: makes the agent that one connection uses; None if all use this one.
        opened: told when a connection begins.
        closed: told when a connection has ended.
    """

    declaration: AgentDeclaration
    handlers: dict[str, BoundHandler] = msgspec.field(default_factory=dict)
    prompt_mark: HandlerMark = msgspec.field(default_factory=lambda: HandlerMark(methods.SESSION_PROMPT))
    uses_sdk: bool = False
    connected: "Callable[[Peer], BoundAgent] | None" = None
    opened: Callable[[Peer], object] = _nobody
    closed: Callable[[Peer], object] = _nobody

    def connect(self, peer: Peer) -> "BoundAgent":
        """The agent as one connection uses it."""
        return self if self.connected is None else self.connected(peer)
