"""What an agent with a session store answers without a handler: load, resume, list, close, delete."""

from collections.abc import Mapping
from typing import Any

from acp_integration.binding import AnsweringHandler, BoundAgent
from acp_integration.connection import Pace
from acp_integration.context.capabilities import supports
from acp_integration.context.invocation import Invocation
from acp_integration.context.updates import frame, frame_head
from acp_integration.declared import Declared
from acp_integration.defaults import EmptyAnswer
from acp_integration.errors import RequestError
from acp_integration.faults import unknown_session
from acp_integration.jsonrpc import encode
from acp_integration.returns import to_json
from acp_integration.sessions import SessionRecord
from acp_integration.store import SessionStore, StoredSession
from acp_integration.turns import Call
from acp_integration.wire import methods
from acp_integration.wire.updates import UPDATE_GATES


class StoredHandler(AnsweringHandler):
    """Answers one method from the store."""

    def __init__(self, method: str, store: SessionStore) -> None:
        super().__init__(method, f"the stored {method}")
        self.store = store

    async def answer(self, value: Any, invocation: Invocation) -> bytes:  # noqa: ARG002  # the same for every call
        """The JSON of the answer."""
        return to_json(value, self.method)


class ReopenStored(StoredHandler):
    """`session/load` and `session/resume`: the session was restored around this handler; a load replays it."""

    async def invoke(self, invocation: Invocation) -> Any:
        """Replay what was said, exactly as it was sent.

        Raises:
            RequestError: -32002 if the caller has no such session.
        """
        call = invocation.call
        journal = call.peer.sessions.get(call.session_id or "").journal
        if journal is None:
            fault = unknown_session(call.session_id or "")
            raise RequestError(fault.code, fault.message, fault.data)
        if self.method == methods.SESSION_LOAD:
            head, pace = frame_head(call.session_id or ""), Pace(call.connection.transport)
            for update in await journal.history():
                if not _takes(call, update):
                    continue
                call.connection.write(frame(head, encode(update)), call.session_id)
                if pace.due():
                    await pace.rest()
        return {}


class ListStored(StoredHandler):
    """`session/list`: the caller's sessions, newest first."""

    async def invoke(self, invocation: Invocation) -> Any:
        """One page."""
        params, owner = invocation.params, invocation.call.peer.caller.principal
        page = await self.store.page(owner, cwd=params.cwd, cursor=params.cursor)
        listed = {"sessions": [_described(session) for session in page.sessions]}
        return listed if page.next_cursor is None else {**listed, "nextCursor": page.next_cursor}


def add_stored_handlers(agent: BoundAgent, store: SessionStore) -> None:
    """Let the store answer what the agent has no handler for."""
    for method in (methods.SESSION_LOAD, methods.SESSION_RESUME):
        agent.handlers.setdefault(method, ReopenStored(method, store))
    agent.handlers.setdefault(methods.SESSION_LIST, ListStored(methods.SESSION_LIST, store))
    for method in (methods.SESSION_CLOSE, methods.SESSION_DELETE):
        agent.handlers.setdefault(method, EmptyAnswer(method))


async def keep(store: SessionStore, call: Call, record: SessionRecord) -> None:
    """Keep a session that was created."""
    session = StoredSession(
        id=record.id,
        owner=call.peer.caller.principal,
        cwd=record.cwd,
        additional_directories=record.additional_directories,
        **record.kept(),
    )
    record.journal = await store.create(session)


async def restore(store: SessionStore, call: Call, record: SessionRecord, declared: Declared) -> None:
    """Bring back what was kept of a session, if it was; a turn of it on this connection is cancelled first."""
    if record.journal is not None:
        await record.journal.release()
    found = await store.open(record.id, call.peer.caller.principal)
    if found is None:
        record.journal = None
        return
    session, record.journal = found
    record.title, record.mode, record.state = session.title, session.mode, dict(session.state)
    record.modes, record.config = declared.modes, declared.config
    for name, value in session.options.items():
        if record.takes_option(name, value):
            record.set_option(name, value)


def _takes(call: Call, update: Mapping[str, Any]) -> bool:
    """Whether this client can take an update that may have been sent to another one."""
    gate = UPDATE_GATES.get(update["sessionUpdate"])
    return gate is None or supports(call.capabilities, gate)


def _described(session: StoredSession) -> dict[str, Any]:
    fields = {"title": session.title, "updatedAt": session.updated_at}
    described = {"sessionId": session.id, "cwd": session.cwd}
    if session.additional_directories:
        described["additionalDirectories"] = list(session.additional_directories)  # type: ignore[assignment]
    return {**described, **{name: value for name, value in fields.items() if value is not None}}
