"""What an answered request changes: the sessions of the connection, their modes and options, authentication.

Each effect stands around the handler of its method, an author's own and a default one alike.
"""

import os
from collections.abc import Mapping
from functools import partial
from typing import Any
from uuid import uuid4

import msgspec

from acp_integration.binding import BoundHandler
from acp_integration.cancellation import Cause
from acp_integration.context.capabilities import supports
from acp_integration.context.content import text_of
from acp_integration.context.updates import USER_MESSAGE, chunk, frame, frame_head
from acp_integration.declared import Declared
from acp_integration.errors import RequestError
from acp_integration.jsonrpc import AUTH_REQUIRED, INVALID_PARAMS, INVALID_REQUEST, encode
from acp_integration.sessions import SessionRecord
from acp_integration.store import SessionStore
from acp_integration.stored import keep, restore
from acp_integration.turns import Call
from acp_integration.wire import methods


class Effect(BoundHandler):
    """Stands around a handler, and passes for it.

    Attributes:
        needs_store: whether it does nothing without a session store.
    """

    needs_store = False

    def __init__(self, inner: BoundHandler, declared: Declared, store: SessionStore | None = None) -> None:
        super().__init__(inner.method, inner.name)
        self.inner = inner
        self.declared = declared
        self.store = store
        self.kind = inner.kind
        self.delivers_cancel = inner.delivers_cancel
        self.notification = inner.notification
        self.accepts_notifications = inner.accepts_notifications


class OpensSession(Effect):
    """What the three ways to open a session have in common: authentication first, then a directory and its answer."""

    def check(self, call: Call) -> None:
        """Refuse what must not be opened.

        Raises:
            RequestError: -32000 without authentication, -32602 for a directory that is not absolute, or for a system
                prompt that the agent did not say it takes.
        """
        announced = call.peer.auth_methods
        ways = self.declared.auth_methods if announced is None else announced
        locked = not self.declared.for_sdk and not call.peer.authenticated
        if locked and any(way.get("type") != "terminal" for way in ways):
            raise RequestError(AUTH_REQUIRED, "Authentication required")
        params = call.params
        _check_absolute("cwd", params.cwd)
        for position, directory in enumerate(params.additional_directories):
            _check_absolute(f"additionalDirectories[{position}]", directory)
        takes_prompt = call.peer.advertised.get("sessionCapabilities", {}).get("systemPrompt") is not None
        if params.system_prompt is not None and not takes_prompt:
            raise RequestError(INVALID_PARAMS, "Invalid params: params.systemPrompt is not supported by this agent")

    def describe(self, call: Call, record: SessionRecord, result: dict[str, Any]) -> bytes:
        """Take modes and options from the answer into the record, or the declared ones into both."""
        if record.modes == () and record.config == ():
            record.modes, record.config = self.declared.modes, self.declared.config
        _take_modes(record, result.get("modes"))
        if result.get("configOptions") is not None:
            record.config = tuple(result["configOptions"])
        if record.modes:
            result["modes"] = {"currentModeId": record.mode, "availableModes": list(record.modes)}
        booleans = supports(call.capabilities, "session.configOptions.boolean")
        if record.config:
            result["configOptions"] = record.shown_options(booleans=booleans)
        return encode(result)


class CreatesSession(OpensSession):
    """`session/new`: what is sent to the session before its answer was written is held until then."""

    async def __call__(self, call: Call) -> bytes:
        """Open the session that the handler answers with; without an id in the answer, one with a random id."""
        self.check(call)
        record = call.record = opened(str(uuid4()), call.params)
        record.held = []
        record.mode = self.declared.modes[0]["id"] if self.declared.modes else None
        result = msgspec.json.decode(await self.inner(call))
        record.id = result.setdefault("sessionId", record.id)
        answer = self.describe(call, record, result)
        if self.store is not None:
            await keep(self.store, call, record)
        call.peer.sessions.add(record)
        call.after_answer(lambda: _release(call, record))
        return answer


class ForksSession(OpensSession):
    """`session/fork`: opens the session that the handler answers with."""

    async def __call__(self, call: Call) -> bytes:
        """Open the copy, in the mode and with the options of the original."""
        self.check(call)
        result = msgspec.json.decode(await self.inner(call))
        record = opened(result["sessionId"], call.params)
        original = call.peer.sessions.find(call.session_id)
        if original is not None:
            record.modes, record.mode, record.config = original.modes, original.mode, original.config
        answer = self.describe(call, record, result)
        if self.store is not None:
            await keep(self.store, call, record)
        call.peer.sessions.add(record)
        return answer


class ReopensSession(OpensSession):
    """`session/load` and `session/resume`: the session is open while the handler runs, so that it can be replayed."""

    async def __call__(self, call: Call) -> bytes:
        """Open the session; a failure leaves it as it was."""
        self.check(call)
        sessions, name = call.peer.sessions, call.session_id or ""
        before = sessions.find(name)
        record = before or sessions.add(opened(name, call.params))
        record.replaying, journal = True, record.journal
        try:
            if self.store is not None:
                await restore(self.store, call, record, self.declared)
            result = msgspec.json.decode(await self.inner(call))
        except BaseException:
            record.journal = record.journal or journal
            if before is None:
                sessions.remove(name)
            raise
        finally:
            record.replaying = False
        reopened = opened(name, call.params)
        record.cwd, record.mcp_servers = reopened.cwd, reopened.mcp_servers
        record.additional_directories = reopened.additional_directories
        return self.describe(call, record, result or {})


class EndsSession(Effect):
    """`session/close` and `session/delete`: the session is open no more."""

    async def __call__(self, call: Call) -> bytes:
        """Remove the session when its handler succeeded."""
        result = await self.inner(call)
        record = call.peer.sessions.find(call.session_id)
        if record is not None:
            await _save(record)
        if self.store is not None and self.method == methods.SESSION_DELETE:
            await self.store.delete(call.session_id or "", call.peer.caller.principal)
        call.peer.sessions.remove(call.session_id or "")
        return result


class SwitchesMode(Effect):
    """`session/set_mode`: the session is in the mode when the handler succeeded."""

    async def __call__(self, call: Call) -> bytes:
        """Refuse an unknown mode without a call."""
        record = call.peer.sessions.get(call.session_id or "")
        record.check_mode(call.params.mode_id)
        result = await self.inner(call)
        record.mode = call.params.mode_id
        await _save(record, {"mode": record.mode})
        return result


class SetsOption(Effect):
    """`session/set_config_option`: answered with the complete list, whatever the handler returned."""

    async def __call__(self, call: Call) -> bytes:
        """Refuse an unknown option, or a value it does not have, without a call."""
        record, params = call.peer.sessions.get(call.session_id or ""), call.params
        if record.config:
            record.check_option(params.config_id, params.value)
        result = msgspec.json.decode(await self.inner(call))
        listed = result.get("configOptions")
        if listed:
            record.config = tuple(listed)
        elif record.config:
            record.set_option(params.config_id, params.value)
        await _save(record, {"options": record.options})
        booleans = supports(call.capabilities, "session.configOptions.boolean")
        return encode({**result, "configOptions": record.shown_options(booleans=booleans)})


class KeepsTurn(Effect):
    """`session/prompt` with a session store: what is said is kept, and only one connection at a time says it."""

    needs_store = True

    async def __call__(self, call: Call) -> bytes:
        """Keep the prompt, and what the turn changed when it has ended."""
        record = call.peer.sessions.get(call.session_id or "")
        journal = record.journal
        if journal is None:
            return await self.inner(call)
        grace = call.peer.options.cancel_grace_period
        prompt = [chunk(USER_MESSAGE, block) for block in call.params.prompt]
        record.title = record.title or text_of(call.params.prompt).strip().partition("\n")[0][:80] or None
        try:
            if not await journal.begin(prompt, lambda: call.cancel(Cause.SESSION_CLOSE, grace)):
                raise RequestError(INVALID_REQUEST, "The session is open elsewhere", {"sessionId": record.id})
            return await self.inner(call)
        finally:
            await journal.end(record.kept())


class Authenticates(Effect):
    """`authenticate`: the client is authenticated when the handler succeeded."""

    async def __call__(self, call: Call) -> bytes:
        """Refuse a way to authenticate that was not announced, or that the client runs itself."""
        announced = call.peer.auth_methods
        ways = self.declared.auth_methods if announced is None else announced
        served = [way["id"] for way in ways if way.get("type") != "terminal"]
        if ways and call.params.method_id not in served:
            raise RequestError(INVALID_PARAMS, "Invalid params: params.methodId is none of the agent's methods")
        result = await self.inner(call)
        call.peer.authenticated = True
        return result


class LogsOut(Effect):
    """`logout`: the client is authenticated no more."""

    async def __call__(self, call: Call) -> bytes:
        """Forget the authentication when the handler succeeded."""
        result = await self.inner(call)
        call.peer.authenticated = False
        return result


EFFECTS: Mapping[str, type[Effect]] = {
    methods.SESSION_NEW: CreatesSession,
    methods.SESSION_FORK: ForksSession,
    methods.SESSION_LOAD: ReopensSession,
    methods.SESSION_RESUME: ReopensSession,
    methods.SESSION_CLOSE: EndsSession,
    methods.SESSION_DELETE: EndsSession,
    methods.SESSION_SET_MODE: SwitchesMode,
    methods.SESSION_SET_CONFIG_OPTION: SetsOption,
    methods.SESSION_PROMPT: KeepsTurn,
    methods.AUTHENTICATE: Authenticates,
    methods.LOGOUT: LogsOut,
}


def opened(session_id: str, params: Any) -> SessionRecord:
    """The record of a session that is opened with these params."""
    return SessionRecord(
        session_id,
        cwd=params.cwd,
        additional_directories=tuple(params.additional_directories),
        mcp_servers=tuple(params.mcp_servers),
    )


def _take_modes(record: SessionRecord, answered: Any) -> None:
    if isinstance(answered, Mapping):
        record.modes = tuple(answered.get("availableModes", ()))
        record.mode = answered.get("currentModeId")
    elif record.modes and record.mode not in (mode["id"] for mode in record.modes):
        record.mode = record.modes[0]["id"]


def _check_absolute(field: str, path: str) -> None:
    if not os.path.isabs(path):
        raise RequestError(INVALID_PARAMS, f"Invalid params: params.{field} must be an absolute path")


def _release(call: Call, record: SessionRecord) -> None:
    held, record.held = record.held or [], None
    head = frame_head(record.id)
    for update in held:
        leave = partial(call.connection.write, frame(head, update), record.id)
        leave() if record.journal is None else record.journal.put(update, leave)


async def _save(record: SessionRecord, changes: Mapping[str, Any] | None = None) -> None:
    if record.journal is not None:
        await record.journal.settle(changes)
