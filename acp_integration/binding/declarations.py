"""The handlers of a declared agent: which functions they are, and what is wrong with their number."""

import inspect
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from acp_integration.binding.faults import HandlerSite, site_of
from acp_integration.errors import HandlerError
from acp_integration.handlers import HandlerMark, marks_of
from acp_integration.wire import methods


class DeclaredHandler(msgspec.Struct, frozen=True):
    """One function that handles one method.

    Attributes:
        owner: the class whose body holds the function, None for an agent that is a function.
        declared: the function as it stands in the class, unbound.
        function: the function bound to the agent's instance.
    """

    site: HandlerSite
    mark: HandlerMark
    owner: type | None
    declared: Callable[..., Any]
    function: Callable[..., Any]


def handlers_of(agent: Any, instance: Any) -> dict[str, DeclaredHandler]:
    """The handlers of a class and of those it inherits from, or the one of a function.

    Raises:
        HandlerError: if a method has two handlers, a function handles two methods, or nothing handles prompts.
    """
    found = defaultdict(list)
    for handler in _of_class(agent, instance) if inspect.isclass(agent) else _of_function(agent):
        found[handler.mark.method].append(handler)
    for method, handlers in found.items():
        if len(handlers) > 1:
            names = " and ".join(handler.site.name for handler in handlers)
            raise handlers[0].site.fault(f"{method} has two handlers, {names}: keep one")
    if methods.SESSION_PROMPT not in found:
        raise HandlerError(
            f"{agent.__module__}.{agent.__qualname__} handles no prompts: decorate one method with @on.prompt",
            owner=f"{agent.__module__}.{agent.__qualname__}",
        )
    return {method: handlers[0] for method, handlers in found.items()}


def _of_class(agent: type, instance: Any) -> Iterator[DeclaredHandler]:
    for name, member in inspect.getmembers_static(agent):
        declared = member.__func__ if isinstance(member, staticmethod | classmethod) else member
        marks = _inherited_marks(agent, name, declared)
        if not marks:
            continue
        site = site_of(declared, agent, marks[0].method)
        if len(marks) > 1:
            both = " and ".join(mark.method for mark in marks)
            raise site.fault(f"it handles {both}: give each its own method")
        owner = next(each for each in agent.__mro__ if name in vars(each))
        yield DeclaredHandler(site, marks[0], owner, declared, getattr(instance, name))


def _inherited_marks(agent: type, name: str, declared: Any) -> tuple[HandlerMark, ...]:
    """The marks of a function: an overriding one without marks of its own keeps those of the one it overrides."""
    if not callable(declared):
        return ()
    overridden = (vars(each).get(name) for each in agent.__mro__)
    return next((marks for each in overridden if (marks := marks_of(getattr(each, "__func__", each)))), ())


def _of_function(agent: Any) -> Iterator[DeclaredHandler]:
    mark = next(iter(marks_of(agent)), HandlerMark(methods.SESSION_PROMPT))
    yield DeclaredHandler(site_of(agent, agent, mark.method), mark, None, agent, agent)
