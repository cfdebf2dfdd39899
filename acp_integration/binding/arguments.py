"""The plan of a handler's arguments: for each parameter what supplies it, decided when the agent is built."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from inspect import Parameter
from typing import Any

import anyio.to_thread
import msgspec

from acp_integration import sdk
from acp_integration.binding.faults import HandlerSite
from acp_integration.binding.parameters import Kind, find_supplier
from acp_integration.binding.resolvers import ArgumentResolver, resolver_for
from acp_integration.binding.scope import HandlerScope, Scoped
from acp_integration.context.invocation import Invocation

_VARIADIC = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)


class ArgumentPlan(msgspec.Struct, frozen=True):
    """What supplies the arguments of one handler.

    Attributes:
        positional: the names of those that can only be given by position, in order.
        suppliers: what gives the value of each parameter; may give an awaitable where `waits` names it.
        waits: the parameters whose value may have to be awaited.
        kinds: the kinds of values among them.
        needs_sdk: whether there is a model of the SDK among them.
        scoped: what surrounds the call and supplies the parameters that are not among the suppliers.
    """

    positional: tuple[str, ...]
    suppliers: Mapping[str, Callable[[Invocation], Any]]
    waits: frozenset[str]
    kinds: frozenset[Kind]
    needs_sdk: bool
    scoped: Scoped | None

    def values(self, invocation: Invocation) -> dict[str, Any]:
        """The values of one call, by parameter; of those that `waits` names, what gives them."""
        return {name: supplier(invocation) for name, supplier in self.suppliers.items()}

    async def awaited(self, invocation: Invocation) -> dict[str, Any]:
        """The values of one call, each waited for."""
        if self.needs_sdk and not sdk.is_loaded():
            await anyio.to_thread.run_sync(sdk.load)
        values = self.values(invocation)
        for name in self.waits:
            if inspect.isawaitable(values[name]):
                values[name] = await values[name]
        return values

    def place(self, values: dict[str, Any], given: Mapping[str, Any]) -> tuple[Sequence[Any], Mapping[str, Any]]:
        """The arguments of one call, by position and by name; `given` are those of the surrounding scope."""
        if given:
            values.update(given)
        return [values.pop(name) for name in self.positional] if self.positional else (), values


def plan_arguments(
    site: HandlerSite,
    handler: Callable[..., Any],
    parameters: Sequence[Parameter],
    *,
    sync: bool,
    resolvers: Sequence[ArgumentResolver] = (),
    scope: HandlerScope | None = None,
) -> ArgumentPlan:
    """Find what supplies each parameter.

    Raises:
        HandlerError: naming the parameter that nothing supplies, or that is wrong here.
    """
    suppliers: dict[str, Callable[[Invocation], Any]] = {}
    waits: set[str] = set()
    kinds: set[Kind] = set()
    claimed: list[Parameter] = []
    for parameter in parameters:
        if parameter.kind in _VARIADIC:
            continue
        if scope is not None and scope.claims(parameter):
            claimed.append(parameter)
            continue
        resolver = resolver_for(parameter, resolvers)
        if resolver is not None:
            suppliers[parameter.name] = _resolving(resolver, parameter)
            waits.add(parameter.name)
            continue
        supplied = find_supplier(site, parameter, sync=sync)
        if supplied is None:
            continue
        if supplied.kind is Kind.EXTENSION_PARAMS and supplied.kind in kinds:
            raise site.fault("an extension has one parameter for its params: put them into one type", parameter.name)
        suppliers[parameter.name] = supplied.get
        kinds.add(supplied.kind)
    known = {*suppliers, *(parameter.name for parameter in claimed)}
    positional = (each.name for each in parameters if each.kind is Parameter.POSITIONAL_ONLY and each.name in known)
    scoped = scope.prepare(handler, claimed) if scope is not None and claimed else None
    needs_sdk = Kind.SDK_MODEL in kinds
    return ArgumentPlan(tuple(positional), suppliers, frozenset(waits), frozenset(kinds), needs_sdk, scoped)


def _resolving(resolver: ArgumentResolver, parameter: Parameter) -> Callable[[Invocation], Any]:
    return lambda invocation: resolver.resolve_argument(parameter, invocation)
