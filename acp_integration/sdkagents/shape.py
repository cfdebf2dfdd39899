"""A class written for the official SDK as a table of handlers, made anew for each connection."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any, Final

import anyio.to_thread
import msgspec

from acp_integration import sdk
from acp_integration.agents import AgentDeclaration, declaration_of
from acp_integration.binding import AnsweringHandler, BoundAgent, BoundHandler
from acp_integration.context.ambient import enter_turn
from acp_integration.context.invocation import Invocation
from acp_integration.errors import HandlerError, RequestError
from acp_integration.faults import method_not_found
from acp_integration.handlers import marks_of
from acp_integration.peer import Peer
from acp_integration.returns import settled, to_json
from acp_integration.sdkagents.connection import SdkConnection, current_call
from acp_integration.turns import Call
from acp_integration.wire import methods

METHODS: Final = {
    methods.INITIALIZE: "initialize",
    methods.AUTHENTICATE: "authenticate",
    methods.LOGOUT: "logout",
    methods.SESSION_NEW: "new_session",
    methods.SESSION_LOAD: "load_session",
    methods.SESSION_RESUME: "resume_session",
    methods.SESSION_LIST: "list_sessions",
    methods.SESSION_CLOSE: "close_session",
    methods.SESSION_DELETE: "delete_session",
    methods.SESSION_FORK: "fork_session",
    methods.SESSION_PROMPT: "prompt",
    methods.SESSION_SET_MODE: "set_session_mode",
    methods.SESSION_SET_CONFIG_OPTION: "set_config_option",
    methods.SESSION_CANCEL: "cancel",
    methods.PROVIDERS_LIST: "list_providers",
    methods.PROVIDERS_SET: "set_provider",
    methods.PROVIDERS_DISABLE: "disable_provider",
    methods.MCP_MESSAGE: "mcp_message",
}
"""The SDK's names of the protocol's methods."""


def is_sdk_agent(agent: Any) -> bool:
    """Whether a class is written for the SDK: it marks no handler, and has a `prompt` as the SDK calls it."""
    if not inspect.isclass(agent) or not _defines(agent, "prompt"):
        return False
    if any(marks_of(getattr(member, "__func__", member)) for _, member in inspect.getmembers_static(agent)):
        return False
    prompt = inspect.getattr_static(agent, "prompt")
    return {"prompt", "session_id"} <= inspect.signature(prompt).parameters.keys()


def _defines(agent: type, name: str) -> bool:
    """Whether a class has a method that is not only the SDK's description of one."""
    owner = next((each for each in agent.__mro__ if name in vars(each)), None)
    return owner is not None and owner.__module__.partition(".")[0] != "acp" and callable(getattr(agent, name))


class SdkAgentClass:
    """An agent class of the SDK's kind; every connection gets an instance of its own."""

    def __init__(self, agent: type, instance: Any = None) -> None:
        declaration = declaration_of(agent)
        if declaration is None:
            raise HandlerError(f"{agent!r} is not an agent: decorate it with @acp_agent")
        self.declaration: AgentDeclaration = declaration
        self._agent = agent
        self._instance = instance
        self._defined = {method: name for method, name in METHODS.items() if _defines(agent, name)}
        self._extends = _defines(agent, "ext_method"), _defines(agent, "ext_notification")
        self._check()

    def bind(self, peer: Peer | None = None) -> BoundAgent:
        """The agent for one connection; without one only its table of handlers, for checks and descriptions.

        Raises:
            HandlerError: if the one instance that was given is to serve a peer over the network.
        """
        instance = None if peer is None else self._connected(peer)
        handlers = _Handlers(_Extension(instance, *self._extends) if any(self._extends) else None)
        for method, name in self._defined.items():
            handlers[method] = SdkHandler(method, self._agent, name, instance, told="cancel" in self._defined.values())
        return BoundAgent(self.declaration, handlers, uses_sdk=True)

    def _connected(self, peer: Peer) -> Any:
        if self._instance is not None and peer.connection.transport.kind in ("http", "websocket"):
            name = f"{self._agent.__module__}.{self._agent.__qualname__}"
            raise HandlerError(f"{name} keeps one connection to itself: serve the class, not an instance", owner=name)
        instance = self._agent() if self._instance is None else self._instance
        if hasattr(instance, "on_connect"):
            instance.on_connect(SdkConnection(peer))
        return instance

    def _check(self) -> None:
        try:
            if self._instance is None:
                inspect.signature(self._agent).bind()
        except TypeError as error:
            name = f"{self._agent.__module__}.{self._agent.__qualname__}"
            problem = f"{name} cannot be made without arguments ({error}): give its constructor defaults"
            raise HandlerError(problem, owner=name) from None


class _Handlers(dict[str, BoundHandler]):
    """The handlers by method; every extension has the same one."""

    def __init__(self, extension: BoundHandler | None) -> None:
        super().__init__()
        self._extension = extension

    def get(self, method: str, default: Any = None) -> Any:
        """The handler of a method."""
        found = super().get(method)
        return found or (self._extension if method.startswith("_") and self._extension else default)

    def __missing__(self, method: str) -> BoundHandler:
        found: BoundHandler | None = self.get(method)
        if found is None:
            raise KeyError(method)
        return found


class SdkHandler(AnsweringHandler):
    """Calls a method as the SDK does: fields by name, `_meta` to its `**kwargs` only."""

    def __init__(self, method: str, agent: type, name: str, instance: Any, *, told: bool) -> None:
        super().__init__(method, f"{agent.__module__}.{agent.__qualname__}.{name}")
        self.kind = "async"
        self.notification = method == methods.SESSION_CANCEL
        self.accepts_notifications = self.notification
        # A class that is told of cancels ends its turns itself; one that is not could not know.
        self.delivers_cancel = not told or method != methods.SESSION_PROMPT
        self._function: Callable[..., Any] = getattr(agent if instance is None else instance, name)
        parameters = inspect.signature(self._function).parameters
        self._names = frozenset(parameters)
        self._takes_more = any(each.kind is each.VAR_KEYWORD for each in parameters.values())

    async def __call__(self, call: Call) -> bytes:
        """Run the method and make its answer."""
        invocation = Invocation(call, self.name)
        current_call.set(call)
        if call.is_turn:
            enter_turn(invocation.turn)
        return await self.respond(invocation)

    async def invoke(self, invocation: Invocation) -> Any:
        """Call the method."""
        if not sdk.is_loaded():
            await anyio.to_thread.run_sync(sdk.load)
        return await settled(self._function(**self._arguments(invocation.request)))

    async def answer(self, value: Any, invocation: Invocation) -> bytes:
        """The JSON of the answer; nothing for a notification."""
        return b"" if invocation.call.id is None else to_json(value, self.method)

    def _arguments(self, request: Any) -> dict[str, Any]:
        fields = {name: getattr(request, name) for name in type(request).model_fields if name != "field_meta"}
        arguments = {name: value for name, value in fields.items() if name in self._names}
        meta: Mapping[str, Any] = getattr(request, "field_meta", None) or {}
        if self._takes_more:
            arguments.update({name: meta[name] for name in meta.keys() - fields.keys() - self._names})
        return arguments


class _Extension(AnsweringHandler):
    """Hands extension requests and notifications to the one method that a class has for each."""

    accepts_notifications = True

    def __init__(self, instance: Any, requests: bool, notifications: bool) -> None:  # both are meant
        super().__init__("ext_method")
        self._request = instance.ext_method if instance is not None and requests else None
        self._notification = instance.ext_notification if instance is not None and notifications else None

    async def __call__(self, call: Call) -> bytes:
        """Run the method."""
        current_call.set(call)
        return await self.respond(Invocation(call, call.method))

    async def invoke(self, invocation: Invocation) -> Any:
        """Call the method, with the name behind the underscore."""
        call = invocation.call
        function = self._request if call.id is not None else self._notification
        if function is None:
            fault = method_not_found(call.method)
            raise RequestError(fault.code, fault.message)
        return await settled(function(call.method[1:], msgspec.json.decode(call.params)))

    async def answer(self, value: Any, invocation: Invocation) -> bytes:
        """The JSON of the answer; nothing for a notification."""
        return b"" if invocation.call.id is None else to_json(value, invocation.method)
