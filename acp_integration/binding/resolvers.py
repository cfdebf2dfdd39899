"""What supplies a handler's arguments beyond what the protocol itself gives."""

from collections.abc import Sequence
from inspect import Parameter
from typing import Any, Protocol

from acp_integration.context.invocation import Invocation


class ArgumentResolver(Protocol):
    """Supplies parameters of handlers; asked before the built-in rules, in the order given."""

    def supports_parameter(self, parameter: Parameter) -> bool:
        """Whether it supplies a parameter; asked once, when the agent is built."""
        ...

    def resolve_argument(self, parameter: Parameter, invocation: Invocation) -> Any:
        """The value for one call, or an awaitable of it; what it raises fails the call."""
        ...


class ReturnValueHandler(Protocol):
    """Makes answers of what handlers return; asked before the built-in rules, in the order given."""

    def supports_return_type(self, annotation: Any) -> bool:
        """Whether it takes what is annotated so; asked once, when the agent is built."""
        ...

    def handle(self, value: Any, invocation: Invocation) -> Any:
        """What the handler is to have returned instead, or an awaitable of it: one of the built-in kinds."""
        ...


def resolver_for(parameter: Parameter, resolvers: Sequence[ArgumentResolver]) -> ArgumentResolver | None:
    """The first resolver that supplies a parameter."""
    return next((resolver for resolver in resolvers if resolver.supports_parameter(parameter)), None)


def return_handler_for(annotation: Any, handlers: Sequence[ReturnValueHandler]) -> ReturnValueHandler | None:
    """The first handler that takes a return type."""
    return next((handler for handler in handlers if handler.supports_return_type(annotation)), None)
