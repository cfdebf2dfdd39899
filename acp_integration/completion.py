"""From an agent's own handlers to all it answers: defaults, stored sessions, interceptors, effects, observers."""

from typing import Any

import msgspec

from acp_integration.binding import BoundAgent
from acp_integration.capabilities import Initialize
from acp_integration.declared import Declared, read_declaration
from acp_integration.defaults import EmptyAnswer
from acp_integration.effects import EFFECTS
from acp_integration.errors import HandlerError
from acp_integration.interception import Chain
from acp_integration.observers import ObservedPrompt, Observers
from acp_integration.peer import Peer
from acp_integration.store import SessionStore
from acp_integration.stored import add_stored_handlers
from acp_integration.wire import methods


def complete(agent: BoundAgent, chain: Chain, store: SessionStore | None, *, for_sdk: bool = False) -> BoundAgent:
    """Add what an agent answers without a handler, put the interceptors around it, and the effects around those.

    Args:
        agent: the agent with its own handlers.
        chain: the interceptors.
        store: what keeps sessions, if something does.
        for_sdk: whether it is a class written for the official SDK.

    Raises:
        HandlerError: if what the agent declares does not fit to its handlers.
    """
    declared = msgspec.structs.replace(read_declaration(agent.declaration), for_sdk=for_sdk)
    _check(agent, declared)
    handlers = agent.handlers
    if store is not None:
        add_stored_handlers(agent, store)
    for method in _defaults(declared):
        handlers.setdefault(method, EmptyAnswer(method))
    own = [*handlers.values()]
    for method in EFFECTS.keys() & handlers.keys():
        if store is not None or not EFFECTS[method].needs_store:
            handlers[method] = EFFECTS[method](handlers[method], declared, store)
    handlers[methods.INITIALIZE] = Initialize(agent, declared)
    if chain:
        for handler in (*own, handlers[methods.INITIALIZE]):
            handler.chain = chain
    return agent


def advertised(agent: BoundAgent) -> dict[str, Any]:
    """What the agent tells a client that can do everything, before the author's own answer is laid over it."""
    handler = agent.handlers[methods.INITIALIZE]
    assert isinstance(handler, Initialize)  # as `complete` made it
    return handler.derived


def observed(agent: BoundAgent, observers: Observers) -> BoundAgent:
    """Let observers be told of an agent's connections, sessions and turns."""
    if observers:

        def closed(peer: Peer) -> None:
            observers.tell("connection_closed", peer)

        agent.opened, agent.closed = observers.watch, closed
        agent.handlers[methods.SESSION_PROMPT] = ObservedPrompt(agent.handlers[methods.SESSION_PROMPT], observers)
    return agent


def _defaults(declared: Declared) -> list[str]:
    found = [methods.SESSION_NEW]
    if declared.modes:
        found.append(methods.SESSION_SET_MODE)
    if declared.config:
        found.append(methods.SESSION_SET_CONFIG_OPTION)
    return found


def _check(agent: BoundAgent, declared: Declared) -> None:
    handlers, name = agent.handlers, agent.declaration.name
    if declared.agent_auth_methods and methods.AUTHENTICATE not in handlers:
        raise HandlerError(f"{name}: its auth_methods need an @on.authenticate method, unless their type is terminal")
    announced = methods.SESSION_NEW in handlers
    if methods.SESSION_SET_MODE in handlers and not announced and not declared.modes:
        fix = "give @acp_agent(modes=...), or return them from @on.new_session"
        raise HandlerError(f"{name}: @on.set_mode needs modes: {fix}")
    if methods.SESSION_SET_CONFIG_OPTION in handlers and not announced and not declared.config:
        fix = "give @acp_agent(config_options=...), or return them from @on.new_session"
        raise HandlerError(f"{name}: @on.set_config_option needs options: {fix}")
