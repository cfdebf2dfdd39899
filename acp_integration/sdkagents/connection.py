"""What an agent written for the official SDK is given as its connection: the SDK's `Client`, over our runtime."""

from collections.abc import Callable, Mapping
from contextvars import ContextVar
from typing import Any, Final

import msgspec

from acp_integration import sdk
from acp_integration.context.capabilities import supports
from acp_integration.context.sender import Sender
from acp_integration.errors import CapabilityMissing, PeerError, TurnCancelled
from acp_integration.jsonrpc import METHOD_NOT_FOUND, encode
from acp_integration.peer import Peer
from acp_integration.requests import Late, ask
from acp_integration.sessions import SessionRecord
from acp_integration.turns import Call
from acp_integration.types import to_wire
from acp_integration.wire import methods

current_call: Final[ContextVar[Call | None]] = ContextVar("acp_sdk_call", default=None)

_CANCELLED: Final = b'{"outcome":{"outcome":"cancelled"}}'
_CANCEL_ACTION: Final = b'{"action":"cancel"}'


class SdkConnection:
    """Lets an agent speak to its client with the calls of the SDK; extra keyword arguments become `_meta`.

    A request ends with the turn it is asked in. What the client did not announce is refused without being sent, with
    the error such a client answers with.
    """

    def __init__(self, peer: Peer) -> None:
        self._peer = peer

    async def session_update(self, session_id: str, update: Any, **meta: Any) -> None:
        """Send an update."""
        sender = Sender(self._record(session_id), self._peer)
        try:
            encoded = sender.encoded(update)
        except CapabilityMissing as missing:
            raise _not_found(missing.capability) from None
        turn = current_call.get()
        if turn is not None and turn.is_turn and turn.answered and turn.session_id == session_id:
            return
        if meta:
            params = encode({"sessionId": session_id, "update": msgspec.Raw(encoded), "_meta": meta})
            self._peer.connection.notify(methods.SESSION_UPDATE, params, session_id)
        else:
            sender.write(encoded)
        await sender.rest()

    async def request_permission(self, session_id: str, tool_call: Any, options: Any, **meta: Any) -> Any:
        """Ask the person for permission; `cancelled` when the turn is."""
        params = {"sessionId": session_id, "toolCall": tool_call, "options": options}
        return await self._ask_person(
            methods.SESSION_REQUEST_PERMISSION, params, meta, "RequestPermissionResponse", _CANCELLED
        )

    async def read_text_file(
        self, session_id: str, path: str, line: int | None = None, limit: int | None = None, **meta: Any
    ) -> Any:
        """Read a file."""
        params = {"sessionId": session_id, "path": path, "line": line, "limit": limit}
        return await self._request(methods.FS_READ_TEXT_FILE, params, meta, "ReadTextFileResponse")

    async def write_text_file(self, session_id: str, path: str, content: str, **meta: Any) -> Any:
        """Write a file."""
        params = {"sessionId": session_id, "path": path, "content": content}
        return await self._request(methods.FS_WRITE_TEXT_FILE, params, meta, "WriteTextFileResponse")

    async def create_terminal(  # the SDK's own signature
        self,
        session_id: str,
        command: str,
        args: list[str] | None = None,
        env: Any = None,
        cwd: str | None = None,
        output_byte_limit: int | None = None,
        **meta: Any,
    ) -> Any:
        """Start a command; a terminal that comes when nobody waits for it any more is given back."""
        params = {
            "sessionId": session_id,
            "command": command,
            "args": args,
            "env": env,
            "cwd": cwd,
            "outputByteLimit": output_byte_limit,
        }
        late = self._release_late(session_id)
        return await self._request(methods.TERMINAL_CREATE, params, meta, "CreateTerminalResponse", late)

    async def terminal_output(self, session_id: str, terminal_id: str, **meta: Any) -> Any:
        """The output of a command so far."""
        return await self._terminal(methods.TERMINAL_OUTPUT, session_id, terminal_id, meta, "TerminalOutputResponse")

    async def release_terminal(self, session_id: str, terminal_id: str, **meta: Any) -> Any:
        """Give a terminal back."""
        return await self._terminal(methods.TERMINAL_RELEASE, session_id, terminal_id, meta, "ReleaseTerminalResponse")

    async def wait_for_terminal_exit(self, session_id: str, terminal_id: str, **meta: Any) -> Any:
        """Wait for the end of a command, for as long as the turn lives."""
        name = "WaitForTerminalExitResponse"
        return await self._terminal(methods.TERMINAL_WAIT_FOR_EXIT, session_id, terminal_id, meta, name)

    async def kill_terminal(self, session_id: str, terminal_id: str, **meta: Any) -> Any:
        """End a command."""
        return await self._terminal(methods.TERMINAL_KILL, session_id, terminal_id, meta, "KillTerminalResponse")

    async def create_elicitation(self, message: str, mode: Any, **meta: Any) -> Any:
        """Ask the person a question; `cancel` when the turn is cancelled."""
        params = {**to_wire(mode), "message": message}
        params.setdefault("mode", "url" if "url" in params else "form")
        if not supports(self._peer.capabilities, f"elicitation.{params['mode']}"):
            raise _not_found(f"elicitation.{params['mode']}")
        name = "CreateElicitationResponse"
        return await self._ask_person(methods.ELICITATION_CREATE, params, meta, name, _CANCEL_ACTION)

    async def complete_elicitation(self, elicitation_id: str, **meta: Any) -> None:
        """Tell that what was to be done on a page is done."""
        self._peer.connection.notify(methods.ELICITATION_COMPLETE, _encoded({"elicitationId": elicitation_id}, meta))

    async def ext_method(self, method: str, params: Mapping[str, Any]) -> Any:
        """Send an extension request; the underscore before its name is added."""
        raw = await self._raw(f"_{method}", dict(params), {}, self._peer.options.request_timeout)
        return msgspec.json.decode(raw)

    async def ext_notification(self, method: str, params: Mapping[str, Any]) -> None:
        """Send an extension notification; the underscore before its name is added."""
        self._peer.connection.notify(f"_{method}", encode(params))

    def on_connect(self, conn: Any) -> None:
        """Nothing: this end was there first."""

    async def _terminal(
        self, method: str, session_id: str, terminal_id: str, meta: Mapping[str, Any], name: str
    ) -> Any:
        return await self._request(method, {"sessionId": session_id, "terminalId": terminal_id}, meta, name)

    async def _ask_person(
        self, method: str, params: dict[str, Any], meta: Mapping[str, Any], name: str, withdrawn: bytes
    ) -> Any:
        try:
            raw: bytes = await self._raw(method, params, meta, self._peer.options.interaction_timeout)
        except TurnCancelled:
            raw = withdrawn
        return sdk.validate(name, bytes(raw))

    async def _request(
        self, method: str, params: dict[str, Any], meta: Mapping[str, Any], name: str, late: Late | None = None
    ) -> Any:
        gate = methods.CLIENT_METHODS[method].gate
        if gate is not None and not supports(self._peer.capabilities, gate):
            raise _not_found(method)
        timeout = None if method == methods.TERMINAL_WAIT_FOR_EXIT else self._peer.options.request_timeout
        raw = bytes(await self._raw(method, params, meta, timeout, late))
        return sdk.validate(name, b"{}" if raw == b"null" else raw)

    async def _raw(
        self,
        method: str,
        params: dict[str, Any],
        meta: Mapping[str, Any],
        timeout: float | None,
        late: Late | None = None,
    ) -> msgspec.Raw:
        call = self._call(params.get("sessionId"))
        try:
            return await ask(call, method, _encoded(params, meta), timeout=timeout, late=late)
        except PeerError as error:
            raise sdk.request_error(error.code, error.message, error.data) from None

    def _call(self, session_id: str | None) -> Call:
        """The call on whose behalf something is asked: the one that runs, or one of its own for code between turns."""
        running = current_call.get()
        if running is not None and running.session_id in (session_id, None):
            return running
        call = Call(self._peer, None, "between turns", None, session_id)
        call.start()
        return call

    def _record(self, session_id: str) -> SessionRecord:
        record = self._peer.sessions.find(session_id)
        if record is not None:
            return record
        running = current_call.get()
        creating = running.record if running is not None else None
        return creating if creating is not None and creating.held is not None else SessionRecord(session_id)

    def _release_late(self, session_id: str) -> Callable[[msgspec.Raw], object]:
        def release(raw: msgspec.Raw) -> None:
            terminal = msgspec.json.decode(raw).get("terminalId")
            params = encode({"sessionId": session_id, "terminalId": terminal})
            pending = self._peer.connection.request(methods.TERMINAL_RELEASE, params, session_id)
            pending.future.add_done_callback(lambda future: future.cancelled() or future.exception())

        return release


def _encoded(params: Mapping[str, Any], meta: Mapping[str, Any]) -> bytes:
    plain = {name: _plain(value) for name, value in params.items() if value is not None}
    return encode({**plain, "_meta": meta} if meta else plain)


def _plain(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return to_wire(value) if sdk.is_model(value) else value


def _not_found(what: str) -> Exception:
    return sdk.request_error(METHOD_NOT_FOUND, f"The client does not support {what}", None)
