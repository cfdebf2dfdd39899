"""What an agent advertises: exactly what it has handlers for, with the author's own answer laid over it."""

import threading
from collections.abc import Container, Mapping
from importlib import import_module
from typing import Any, Final

import msgspec

from acp_integration import sdk
from acp_integration.binding import AnsweringHandler, BoundAgent
from acp_integration.context.capabilities import supports
from acp_integration.context.invocation import Invocation
from acp_integration.declared import Declared
from acp_integration.jsonrpc import encode
from acp_integration.turns import Call
from acp_integration.wire import methods
from acp_integration.wire.decoding import decode_result

SESSION_CAPABILITIES: Final = {
    methods.SESSION_RESUME: "resume",
    methods.SESSION_LIST: "list",
    methods.SESSION_CLOSE: "close",
    methods.SESSION_DELETE: "delete",
    methods.SESSION_FORK: "fork",
}
PROVIDERS: Final = (methods.PROVIDERS_LIST, methods.PROVIDERS_SET, methods.PROVIDERS_DISABLE)
NOT_ADVERTISED: Final = frozenset(
    {
        methods.INITIALIZE,
        methods.SESSION_NEW,
        methods.SESSION_PROMPT,
        methods.SESSION_CANCEL,
        methods.SESSION_SET_MODE,
        methods.SESSION_SET_CONFIG_OPTION,
    }
)
"""The methods that are announced by nothing at `initialize`: every agent has them, or each session says so."""


class Initialize(AnsweringHandler):
    """Answers `initialize` with what the agent's handlers amount to."""

    def __init__(self, agent: BoundAgent, declared: Declared) -> None:
        super().__init__(methods.INITIALIZE, "the derived initialize")
        self._own = agent.handlers.get(methods.INITIALIZE)
        self.derived = _derive(agent, declared)
        if self._own is not None:
            self.kind, self.name = self._own.kind, self._own.name
        self._uses_sdk = agent.uses_sdk
        self._withdraws = declared.for_sdk
        self._methods = frozenset(agent.handlers)

    async def __call__(self, call: Call) -> bytes:
        """Remember what the client can do, and say what the agent can."""
        call.peer.capabilities = call.capabilities = call.params.client_capabilities
        call.peer.info = call.params.client_info
        if self._uses_sdk and not sdk.is_loaded():
            # Nobody waits for it: a handler that needs the models before they are here loads them itself.
            call.after_answer(threading.Thread(target=sdk.load, name="acp-sdk", daemon=True).start)
        if self._own is None:
            answer = await super().__call__(call)
        else:
            answer = encode(_laid_over(msgspec.json.decode(await self._own(call)), self._for(call)))
        advertised = msgspec.json.decode(answer)
        if self._withdraws:
            answer = encode(advertised := _without(advertised, self._methods))
        decode_result(methods.INITIALIZE, answer)
        call.peer.advertised = advertised.get("agentCapabilities", {})
        call.peer.auth_methods = advertised.get("authMethods", ())
        return answer

    async def invoke(self, invocation: Invocation) -> Any:
        """The derived answer."""
        return self._for(invocation.call)

    async def answer(self, value: Any, invocation: Invocation) -> bytes:  # noqa: ARG002  # the same for every call
        """The JSON of the answer."""
        return sdk.to_json(value) if sdk.is_model(value) else encode(value)

    def _for(self, call: Call) -> dict[str, Any]:
        auth_methods = self.derived["authMethods"]
        if not supports(call.capabilities, "auth.terminal"):
            auth_methods = [method for method in auth_methods if method.get("type") != "terminal"]
        answer = {**self.derived, "authMethods": auth_methods}
        return answer if auth_methods else {name: value for name, value in answer.items() if name != "authMethods"}


def _derive(agent: BoundAgent, declared: Declared) -> dict[str, Any]:
    declaration, prompt = agent.declaration, agent.prompt_mark
    info = {"name": declaration.name, "version": declaration.version or _package_version(declaration.module)}
    acp = {"acp": True} if any(method.startswith("mcp/") for method in agent.handlers) else {}
    return {
        "protocolVersion": methods.PROTOCOL_VERSION,
        "agentCapabilities": {
            "loadSession": methods.SESSION_LOAD in agent.handlers,
            "mcpCapabilities": {"http": declaration.mcp_http, "sse": declaration.mcp_sse, **acp},
            "promptCapabilities": {
                "image": prompt.image,
                "audio": prompt.audio,
                "embeddedContext": prompt.embedded_context,
            },
            **_optional(agent),
        },
        "authMethods": list(declared.auth_methods),
        "agentInfo": info if not declaration.title else {**info, "title": declaration.title},
    }


def _optional(agent: BoundAgent) -> dict[str, Any]:
    sessions: dict[str, Any] = {name: {} for method, name in SESSION_CAPABILITIES.items() if method in agent.handlers}
    if agent.declaration.additional_directories:
        sessions["additionalDirectories"] = {}
    found: dict[str, Any] = {"sessionCapabilities": sessions} if sessions else {}
    if methods.LOGOUT in agent.handlers:
        found["auth"] = {"logout": {}}
    if any(method in agent.handlers for method in PROVIDERS):
        found["providers"] = {}
    return found


def _laid_over(own: Mapping[str, Any], derived: Mapping[str, Any]) -> dict[str, Any]:
    """The author's answer over the derived one: a capability that either names is there."""
    answer = {**derived, **{name: value for name, value in own.items() if value is not None}}
    answer["agentCapabilities"] = _united(derived["agentCapabilities"], own.get("agentCapabilities") or {})
    methods_by_id = {method["id"]: method for part in (derived, own) for method in part.get("authMethods") or ()}
    if methods_by_id:
        answer["authMethods"] = list(methods_by_id.values())
    return answer


def _united(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    united = dict(one)
    for name, value in other.items():
        before = united.get(name)
        if isinstance(value, Mapping) and isinstance(before, Mapping):
            united[name] = _united(before, value)
        elif value or (value is not None and name not in united):
            united[name] = value
    return united


def _without(answer: dict[str, Any], served: Container[str]) -> dict[str, Any]:
    """An answer without the methods that an agent announces and does not have."""
    capabilities = answer["agentCapabilities"]
    sessions = capabilities.get("sessionCapabilities", {})
    missing = {name for method, name in SESSION_CAPABILITIES.items() if method not in served}
    kept = {name: value for name, value in sessions.items() if name not in missing}
    loads = capabilities.get("loadSession", False) and methods.SESSION_LOAD in served
    return {**answer, "agentCapabilities": {**capabilities, "loadSession": loads, "sessionCapabilities": kept}}


def _package_version(module: str) -> str:
    """The version of the distribution named like the package that defines the agent."""
    metadata = import_module("importlib.metadata")  # as slow to import as a fifth of all the rest
    try:
        found: str = metadata.version(module.partition(".")[0])
    except (metadata.PackageNotFoundError, ValueError):
        return "unknown"
    return found
