"""How a framework's dependency injection enters a handler: it claims parameters, and surrounds the call."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from inspect import Parameter
from typing import Any, Protocol

from acp_integration.turns import Call

Proceed = Callable[[Mapping[str, Any]], Awaitable[bytes]]
Scoped = Callable[[Call, Proceed], Awaitable[bytes]]


class HandlerScope(Protocol):
    """Supplies the parameters of handlers that a framework knows how to fill."""

    def claims(self, parameter: Parameter) -> bool:
        """Whether the framework supplies a parameter; asked once, when the agent is built."""
        ...

    def prepare(self, handler: Callable[..., Any], parameters: Sequence[Parameter]) -> Scoped:
        """Plan the values of a handler's claimed parameters; asked once, when the agent is built.

        What is returned is called as ``await scoped(call, proceed)`` for each call; ``await proceed({name: value})``
        runs the handler to its end, a generator too, and gives its answer, which must be returned.

        Raises:
            HandlerError: if a parameter cannot be supplied.
        """
        ...
