"""Which agent to serve: what modules define, and the rule that an application serves one."""

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from types import ModuleType
from typing import Any, Final, TypeVar

import msgspec

from acp_integration.agents import declaration_of
from acp_integration.errors import DiscoveryError, SeveralAgents
from acp_integration.handlers import marks_of

Target = str | ModuleType
NO_MODULE: Final = "There is no module"


class AgentCandidate(msgspec.Struct, frozen=True, dict=True):
    """An agent that could be served.

    Attributes:
        name: how whatever holds the agent calls it.
        agent_class: the class or function that the user declared, never that of a proxy.
        supplier: gives what is served, which may be a proxy; called at most once.
    """

    name: str
    agent_class: Callable[..., Any]
    supplier: Callable[[], Any]

    def __post_init__(self) -> None:
        for part, usable in (("name", self.name), ("agent_class", self.agent_class), ("supplier", self.supplier)):
            if not usable:
                message = f"An agent candidate needs a {part}"
                raise ValueError(message)

    @cached_property
    def instance(self) -> Any:
        """What is served; made when it is first asked for, and wrapped as the supplier wrapped it."""
        return self.supplier()


CandidateT = TypeVar("CandidateT", AgentCandidate, type[Any], str)


def require_single(candidates: Iterable[CandidateT], enabled_property: str | None = None) -> CandidateT | None:
    """The one agent among the candidates, or None if there is none.

    Args:
        candidates: candidates, classes, or names of classes where nothing may be imported yet.
        enabled_property: the key that switches serving off, for the error text.

    Raises:
        SeveralAgents: if there is more than one.
    """
    found = list(candidates)
    if len(found) > 1:
        names = sorted(class_name(candidate) for candidate in found)
        raise SeveralAgents(_several(names, enabled_property), names)
    return found[0] if found else None


def _several(names: list[str], enabled_property: str | None) -> str:
    listed = ", ".join(names)
    found = f"Found {len(names)} @acp_agent classes [{listed}], but an application serves one: "
    otherwise = f", or set {enabled_property}=false to serve none" if enabled_property else ""
    return f"{found}remove @acp_agent from all but one{otherwise}"


def class_name(candidate: Any) -> str:
    """The qualified name of the class or function a candidate stands for."""
    declared = candidate.agent_class if isinstance(candidate, AgentCandidate) else candidate
    return declared if isinstance(declared, str) else f"{declared.__module__}.{declared.__qualname__}"


def discovered(*targets: Target, group: str | None = None) -> list[AgentCandidate]:
    """The agents that modules define; what they only import belongs to somebody else.

    Nothing is imported but what is named. A package stands for all modules in it, save ``__main__``.

    Args:
        targets: modules and packages, or their names.
        group: a group of entry points, each of which is an agent or a module to look into.

    Raises:
        DiscoveryError: if something that was named cannot be imported.
    """
    found = [agent for target in targets for module in _modules(target) for agent in _defined(module)]
    for loaded in _entry_points(group) if group else ():
        found += _defined(loaded) if isinstance(loaded, ModuleType) else [loaded]
    return [candidate_of(agent) for agent in dict.fromkeys(found)]


def find_single(
    *targets: Target, group: str | None = None, enabled: bool = True, enabled_property: str | None = None
) -> AgentCandidate | None:
    """The one agent that modules define, or None; with `enabled` false nothing is looked at or imported.

    Raises:
        DiscoveryError: if something cannot be imported; a `SeveralAgents` if there is more than one.
    """
    return require_single(discovered(*targets, group=group), enabled_property) if enabled else None


def candidate_of(agent: Any, name: str | None = None) -> AgentCandidate:
    """The candidate for a declared class, which is instantiated once, or for a declared function or an instance.

    Raises:
        DiscoveryError: if it is not marked with ``@acp_agent``.
    """
    declared = agent if inspect.isclass(agent) or inspect.isfunction(agent) else type(agent)
    if declaration_of(declared) is None:
        message = f"{name or class_name(declared)} is not marked with @acp_agent"
        raise DiscoveryError(message)
    supplier = agent if inspect.isclass(agent) else lambda: agent
    return AgentCandidate(name or class_name(declared), declared, supplier)


def resolve(target: str) -> Any:
    """The object that ``module:name`` names, or the module that ``module`` names.

    Raises:
        DiscoveryError: if there is no such module or nothing of that name in it.
    """
    module_name, separator, name = target.partition(":")
    segments = name.split(".")
    if not _is_dotted(module_name) or (separator and not _is_dotted(name)):
        message = f"{target!r} is not a target: write module:Name or module"
        raise DiscoveryError(message)
    found = _imported(module_name)
    for segment in segments if separator else ():
        if not hasattr(found, segment):
            message = f"{module_name} has no {name}{_offer(module_name)}"
            raise DiscoveryError(message)
        found = getattr(found, segment)
    return found


def resolve_agent(target: str) -> AgentCandidate:
    """The agent that ``module:Name`` names, or the only one that ``module`` defines.

    Raises:
        DiscoveryError: if there is no such agent; a `SeveralAgents` if a module defines more than one.
    """
    found = resolve(target)
    if not isinstance(found, ModuleType):
        return candidate_of(found, target)
    single = require_single(discovered(found))
    if single is None:
        raise DiscoveryError(f"{target} defines no @acp_agent class or function{hint_at_unmarked(found)}")
    return single


def hint_at_unmarked(*targets: Target) -> str:
    """The end of an error text: which classes look like agents and lack ``@acp_agent``; empty if none does."""
    names = [class_name(value) for target in targets for module in _modules(target) for value in _unmarked(module)]
    return f"; mark with @acp_agent what is to be served: {', '.join(names)}" if names else ""


def _is_dotted(name: str) -> bool:
    return all(segment.isidentifier() for segment in name.split("."))


def _offer(module_name: str) -> str:
    names = [agent.__qualname__ for agent in _defined(_imported(module_name))]
    return f"; its agents are [{', '.join(names)}]" if names else ""


def _modules(target: Target) -> Iterator[ModuleType]:
    module = _imported(target) if isinstance(target, str) else target
    yield module
    for inner in pkgutil.iter_modules(getattr(module, "__path__", ()), f"{module.__name__}."):
        if inner.name.rpartition(".")[2] != "__main__":
            yield from _modules(inner.name)


def _defined(module: ModuleType) -> list[Any]:
    agents = (value for value in vars(module).values() if inspect.isclass(value) or inspect.isfunction(value))
    return [agent for agent in agents if agent.__module__ == module.__name__ and declaration_of(agent) is not None]


def _unmarked(module: ModuleType) -> list[type[Any]]:
    classes = [
        value for value in vars(module).values() if inspect.isclass(value) and value.__module__ == module.__name__
    ]
    return [found for found in classes if declaration_of(found) is None and _has_handlers(found)]


def _has_handlers(found: type[Any]) -> bool:
    return any(name == "prompt" or marks_of(member) for name, member in vars(found).items())


def _entry_points(group: str) -> Iterator[Any]:
    # The standard library's metadata reader costs more to import than all of this package.
    for entry_point in importlib.import_module("importlib.metadata").entry_points(group=group):
        yield _loaded(entry_point.value, entry_point.load)


def _imported(name: str) -> ModuleType:
    module: ModuleType = _loaded(name, lambda: importlib.import_module(name))
    return module


def _loaded(name: str, load: Callable[[], Any]) -> Any:
    try:
        return load()
    except Exception as error:
        missing = getattr(error, "name", None) if isinstance(error, ModuleNotFoundError) else None
        ours = missing and f"{name.partition(':')[0]}.".startswith(f"{missing}.")
        message = f"{NO_MODULE} {missing}" if ours else f"{name} cannot be imported: {error!r}"
        raise DiscoveryError(message) from error
