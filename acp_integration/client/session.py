"""One conversation with an agent, as the client holds it."""

from collections.abc import Mapping, Sequence
from typing import Any

from acp_integration.client.calls import AgentCalls
from acp_integration.client.prompts import PromptHandle, PromptResult
from acp_integration.client.stream import PromptStream
from acp_integration.types import to_wire
from acp_integration.wire import methods
from acp_integration.wire.session import SessionConfigOption, SessionModeState

Prompt = str | Sequence[Any]


class ClientSession:
    """A session of one agent, made by the client's `new_session`, `load_session`, `resume_session` or `fork_session`.

    Attributes:
        id: the agent's name for it.
        modes: the modes the agent offered and the one that was current then; None if it has none.
        config_options: the options the agent offered, as last told in an answer.
    """

    def __init__(
        self,
        calls: AgentCalls,
        session_id: str,
        modes: SessionModeState | None = None,
        config_options: Sequence[SessionConfigOption] | None = None,
    ) -> None:
        self.id = session_id
        self.modes = modes
        self.config_options = tuple(config_options or ())
        self._calls = calls

    def __repr__(self) -> str:
        return f"ClientSession({self.id!r})"

    async def prompt(self, prompt: Prompt, *, meta: Mapping[str, Any] | None = None) -> PromptResult:
        """Send a prompt and wait for the end of its turn; every update of it was handled by then.

        Cancelling the call cancels the turn. An update handler must not wait for the turn whose updates it handles.

        Args:
            prompt: text, or content blocks: text, values of `acp_integration.types`, mappings or the SDK's models.
            meta: the `_meta` of the request.

        Raises:
            CapabilityMissing: for content that the agent does not take; nothing was sent.
            PeerError: if the agent answered with an error.
            AgentTimeout: if it did not answer within the prompt timeout.
            AgentExited, ConnectionClosed: if the connection ended.
        """
        handle = await self.start(prompt, meta=meta)
        try:
            return await handle.result()
        finally:
            handle.leave()

    def stream(self, prompt: Prompt, *, meta: Mapping[str, Any] | None = None) -> PromptStream:
        """The updates of a prompt as they come, and last its result; raises what `prompt` raises.

        A reader that does not keep up makes the agent wait. Inside the loop, do not wait for another prompt of the same
        client.
        """
        return PromptStream(lambda: self._calls.start_prompt(self.id, _blocks(prompt), meta, stream=True))

    async def start(self, prompt: Prompt, *, meta: Mapping[str, Any] | None = None) -> PromptHandle:
        """Send a prompt and return at once, with a handle to follow, await or cancel its turn."""
        return await self._calls.start_prompt(self.id, _blocks(prompt), meta)

    async def cancel(self) -> None:
        """Cancel the session's turn, harmless when it is idle; what it asks of a person is answered as cancelled."""
        await self._calls.cancel_session(self.id)

    async def set_mode(self, mode_id: str) -> None:
        """Switch to one of the agent's modes."""
        await self._calls.call(methods.SESSION_SET_MODE, {"sessionId": self.id, "modeId": mode_id}, self.id)

    async def set_config_option(self, config_id: str, value: str | bool) -> Sequence[SessionConfigOption]:
        """Set an option; returns the complete list of options after it."""
        params: dict[str, Any] = {"sessionId": self.id, "configId": config_id, "value": value}
        if isinstance(value, bool):
            params["type"] = "boolean"
        answer = await self._calls.call(methods.SESSION_SET_CONFIG_OPTION, params, self.id)
        self.config_options = tuple(answer.config_options)
        return self.config_options

    async def close(self) -> None:
        """Cancel what the session does and free what it holds.

        Raises:
            CapabilityMissing: if the agent cannot; nothing was sent.
        """
        gate = "sessionCapabilities.close"
        await self._calls.call(methods.SESSION_CLOSE, {"sessionId": self.id}, self.id, gate=gate)

    async def delete(self) -> None:
        """Remove the session for good; CapabilityMissing if the agent cannot."""
        gate = "sessionCapabilities.delete"
        await self._calls.call(methods.SESSION_DELETE, {"sessionId": self.id}, self.id, gate=gate)


def _blocks(prompt: Prompt) -> list[dict[str, Any]]:
    return [to_wire(block) for block in ([prompt] if isinstance(prompt, str) else prompt)]
