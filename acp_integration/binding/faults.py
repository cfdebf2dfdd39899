"""What is wrong with a handler, said so that it can be put right."""

from collections.abc import Callable
from typing import Any

import msgspec

from acp_integration.errors import HandlerError


class HandlerSite(msgspec.Struct, frozen=True):
    """Where a handler stands.

    Attributes:
        owner: the qualified name of the agent's class; of the function itself for an agent that is one.
        name: the name of the handler's function.
        method: the protocol method it handles.
    """

    owner: str
    name: str
    method: str

    @property
    def qualified(self) -> str:
        """The handler as errors and interceptors name it."""
        return self.owner if self.owner.rpartition(".")[2] == self.name else f"{self.owner}.{self.name}"

    def fault(self, problem: str, parameter: str = "") -> HandlerError:
        """The error for a problem of this handler."""
        place = f"{self.qualified} (parameter {parameter!r})" if parameter else self.qualified
        return HandlerError(f"{place}: {problem}", owner=self.owner, method=self.name, parameter=parameter)


def site_of(function: Callable[..., Any], owner: Any, method: str) -> HandlerSite:
    """Where a function stands as the handler of a method."""
    name = getattr(function, "__name__", type(function).__name__)
    return HandlerSite(f"{owner.__module__}.{owner.__qualname__}", name, method)
