"""A client for tests of an agent: answers what the agent asks from a script and records everything."""

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import PurePath
from typing import Any

from acp_integration import jsonrpc
from acp_integration.client.builder import ClientBuilder
from acp_integration.client.client import AcpClient
from acp_integration.client.prompts import PromptResult
from acp_integration.client.session import ClientSession, Prompt
from acp_integration.errors import RequestError
from acp_integration.testing.connecting import connect
from acp_integration.types import Update
from acp_integration.wire.client import ReadTextFileRequest, RequestPermissionRequest, WriteTextFileRequest


class MockClient:
    """Connects to an agent in memory and plays its user.

    Used with ``async with``. It announces reading and writing files, and never a terminal.

    Args:
        agent: an agent class, function or instance.
        files: what `fs/read_text_file` finds, by absolute path; written files are added.
        permission: the kind of option to choose, ``allow_once`` for example; None answers cancelled.
        elicitation: the answer to every question, or None to announce no elicitation.
        more: what else `connect` takes.

    Attributes:
        files: the files as they are now.
        updates: every update so far.
        requests: every request of the agent so far.
    """

    def __init__(
        self,
        agent: Any,
        *,
        files: Mapping[str, str] | None = None,
        permission: str | None = "allow_once",
        elicitation: Mapping[str, Any] | None = None,
        **more: Any,
    ) -> None:
        self.files = dict(files or {})
        self.updates: list[Update] = []
        self.requests: list[Any] = []
        self._permission = permission
        self._elicitation = elicitation
        self._connecting: AbstractAsyncContextManager[AcpClient] = connect(agent, customizers=[self._customize], **more)
        self._client: AcpClient | None = None

    async def __aenter__(self) -> "MockClient":
        self._client = await self._connecting.__aenter__()
        return self

    async def __aexit__(self, *exception: Any) -> None:
        await self._connecting.__aexit__(*exception)

    @property
    def client(self) -> AcpClient:
        """The client itself."""
        assert self._client is not None, "use it with `async with`"
        return self._client

    async def new_session(self, cwd: str = "/") -> ClientSession:
        """Open a session."""
        return await self.client.new_session(cwd)

    async def prompt(self, prompt: Prompt) -> PromptResult:
        """Open a session for one prompt."""
        return await (await self.new_session()).prompt(prompt)

    def _customize(self, builder: ClientBuilder) -> None:
        builder.announce("read_text_file", "write_text_file")
        builder.on_update(self._record_update)
        builder.on_permission(self._decide)
        builder.on_read_text_file(self._read)
        builder.on_write_text_file(self._write)
        if self._elicitation is not None:
            builder.announce("elicitation_form", "elicitation_url")
            builder.on_elicitation(self._elicit)

    async def _record_update(self, update: Update) -> None:
        self.updates.append(update)

    async def _decide(self, request: RequestPermissionRequest) -> str | None:
        self.requests.append(request)
        return next((option.option_id for option in request.options if option.kind == self._permission), None)

    async def _read(self, request: ReadTextFileRequest) -> str:
        self.requests.append(request)
        try:
            return self.files[str(PurePath(request.path))]
        except KeyError:
            raise RequestError(jsonrpc.RESOURCE_NOT_FOUND, "No such file") from None

    async def _write(self, request: WriteTextFileRequest) -> None:
        self.requests.append(request)
        self.files[str(PurePath(request.path))] = request.content

    async def _elicit(self, request: Any) -> Mapping[str, Any] | None:
        self.requests.append(request)
        return self._elicitation
