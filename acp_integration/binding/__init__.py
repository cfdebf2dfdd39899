"""From a declared agent to a table of call plans, once for any number of calls."""

from acp_integration.binding.binder import Surroundings, bind
from acp_integration.binding.handler import AnsweringHandler, BoundAgent, BoundHandler
from acp_integration.binding.resolvers import ArgumentResolver, ReturnValueHandler
from acp_integration.binding.scope import HandlerScope

__all__ = [
    "AnsweringHandler",
    "ArgumentResolver",
    "BoundAgent",
    "BoundHandler",
    "HandlerScope",
    "ReturnValueHandler",
    "Surroundings",
    "bind",
]
