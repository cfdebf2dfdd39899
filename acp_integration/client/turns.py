"""The prompts under way on one connection, and whose turn it is."""

from collections import defaultdict
from collections.abc import Callable

from acp_integration.client.prompts import PromptHandle
from acp_integration.transports.transport import RequestId
from acp_integration.types import Update
from acp_integration.wire.client import RequestPermissionRequest


class RunningPrompts:
    """The prompts under way on one connection; the turns of a session end in the order in which they were asked for."""

    def __init__(self) -> None:
        self._sessions: defaultdict[str, list[PromptHandle]] = defaultdict(list)
        self._when_idle: defaultdict[str, list[Callable[[], None]]] = defaultdict(list)

    def add(self, handle: PromptHandle) -> None:
        """A prompt was sent."""
        self._sessions[handle.session_id].append(handle)

    async def follow(self, handle: PromptHandle, timeout: float | None) -> None:
        """Wait for the end of a prompt; the one task of it."""
        try:
            await handle.run(timeout)
        finally:
            self._remove(handle)

    def answered(self, identifier: RequestId | None) -> None:
        """A request was answered: if it was a prompt, the updates that come now belong to another turn."""
        for handle in [handle for running in self._sessions.values() for handle in running]:
            if handle.request_id == identifier:
                self._remove(handle)

    def _remove(self, handle: PromptHandle) -> None:
        running = self._sessions.get(handle.session_id, [])
        if handle in running:
            running.remove(handle)
        if handle.session_id in self._sessions and not running:
            del self._sessions[handle.session_id]
            for callback in self._when_idle.pop(handle.session_id, ()):
                callback()

    def record(self, update: Update) -> None:
        """Hand an update to the turn that is running in its session."""
        if running := self._sessions.get(update.session_id or ""):
            running[0].record(update)

    def deny(self, request: RequestPermissionRequest) -> None:
        """A permission was not given."""
        if running := self._sessions.get(request.session_id):
            running[0].denials.append(request)

    def alone(self, handle: PromptHandle) -> bool:
        """Whether no other prompt of the same session is under way."""
        return self._sessions.get(handle.session_id) == [handle]

    def when_idle(self, session_id: str, callback: Callable[[], None]) -> None:
        """Call back once no prompt of the session is under way, at once if that is now."""
        if session_id in self._sessions:
            self._when_idle[session_id].append(callback)
        else:
            callback()

    def session_of(self, identifier: RequestId) -> str | None:
        """The session of a prompt that is under way."""
        for session_id, running in self._sessions.items():
            if any(handle.request_id == identifier for handle in running):
                return session_id
        return None
