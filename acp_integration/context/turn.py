"""What a prompt handler holds of its turn."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

from acp_integration import sdk
from acp_integration.caller import HttpRequest
from acp_integration.context import elicitation, files, permission, terminals
from acp_integration.context.bridge import ThreadBridge
from acp_integration.context.client import ConnectedClient
from acp_integration.context.content import SlashCommand, command_of, text_of
from acp_integration.context.elicitation import Elicitation
from acp_integration.context.permission import Permission
from acp_integration.context.sender import Sender
from acp_integration.context.session import AcpSession
from acp_integration.context.terminals import Command, Output, Terminal
from acp_integration.context.toolcalls import RunningToolCall, announcement, tool_call
from acp_integration.errors import TurnCancelled
from acp_integration.sessions import SessionRecord
from acp_integration.turns import Call


class PromptContext(Sender):
    """One turn as its async handler sees it; what is sent through it after the turn's answer is dropped."""

    __slots__ = ("_client", "_session", "bridge", "call", "mode", "options")

    def __init__(self, call: Call, record: SessionRecord) -> None:
        super().__init__(record, call.peer, call)
        self.call = call
        self.bridge = ThreadBridge(call)
        self.mode = record.mode
        self.options: Mapping[str, str | bool] = record.options
        self._session: AcpSession | None = None
        self._client: ConnectedClient | None = None

    @property
    def session(self) -> AcpSession:
        """The session, as it is now; sends through it reach the client after the turn's answer too."""
        if self._session is None:
            self._session = AcpSession(self._record, self.call.peer)
        return self._session

    @property
    def client(self) -> ConnectedClient:
        """The client at the other end, with the capabilities it had when the turn began."""
        if self._client is None:
            self._client = ConnectedClient(self.call)
        return self._client

    @property
    def text(self) -> str:
        """The text blocks of the prompt, joined."""
        return text_of(self.content)

    @property
    def content(self) -> Sequence[Any]:
        """The content blocks of the prompt: light structs with snake_case names."""
        blocks: Sequence[Any] = self.call.params.prompt
        return blocks

    @property
    def command(self) -> SlashCommand | None:
        """The prompt as a command, if it is one: `/name` and the text behind it."""
        return command_of(self.text)

    @property
    def request(self) -> Any:
        """The prompt's params as the official SDK's `PromptRequest`; the first use may import the SDK."""
        return sdk.request_model(self.call.method, self.call.params)

    @property
    def meta(self) -> Mapping[str, Any]:
        """The `_meta` of the prompt."""
        return self.call.params.meta or {}

    @property
    def user(self) -> Any:
        """Who opened the connection, as the application calls it; None on stdio."""
        return self.call.peer.caller.user

    @property
    def http(self) -> HttpRequest | None:
        """The request that opened the connection; None on stdio."""
        return self.call.peer.caller.http

    @property
    def is_cancelled(self) -> bool:
        """Whether the turn was cancelled."""
        return self.call.cancellation.is_cancelled

    def on_cancel(self, callback: Callable[[], object]) -> None:
        """Call back once when the turn is cancelled; keep it quick."""
        self.call.cancellation.on_cancel(callback)

    async def wait_cancelled(self) -> None:
        """Return when the turn is cancelled."""
        await self.call.cancellation.wait()

    def raise_if_cancelled(self) -> None:
        """Raise TurnCancelled if the turn was cancelled."""
        if self.is_cancelled:
            raise TurnCancelled(self.session.id)

    def tool_call(
        self,
        title: str,
        *,
        kind: str = "other",
        tool_call_id: str | None = None,
        raw_input: Any = None,
        locations: Sequence[Any] = (),
    ) -> AbstractAsyncContextManager[RunningToolCall]:
        """Announce a tool call for the time of a block: completed at its end, failed if it raises.

        Args:
            title: what a person sees.
            kind: read, edit, delete, move, search, execute, think, fetch, switch_mode or other.
            tool_call_id: names the call in its session; a random one if left out.
            raw_input: the tool's input, any JSON value.
            locations: the files it touches: absolute paths, or their wire form.
        """
        call = announcement(
            title, kind, identifier=tool_call_id, status="in_progress", raw_input=raw_input, locations=locations
        )
        return tool_call(self, call)

    async def read_text_file(self, path: str, *, line: int | None = None, limit: int | None = None) -> str:
        """Read a file as the client sees it, unsaved changes included.

        Args:
            path: an absolute path, or one from the session's directory.
            line: the first line to read, 1-based.
            limit: how many lines to read.

        Raises:
            CapabilityMissing: if the client reads no files; nothing was sent.
            TurnCancelled: if the turn was cancelled.
            PeerError: if the client cannot read it.
            TurnError: if the client did not answer in time.
        """
        return await files.read_text_file(self.call, files.absolute(path, self.session.cwd), line, limit)

    async def write_text_file(self, path: str, content: str) -> None:
        """Write a file through the client; `path` is absolute, or one from the session's directory.

        Raises:
            CapabilityMissing: if the client writes no files; nothing was sent.
            TurnCancelled: if the turn was cancelled.
            PeerError: if the client cannot write it.
            TurnError: if the client did not answer in time.
        """
        await files.write_text_file(self.call, files.absolute(path, self.session.cwd), content)

    async def request_permission(self, tool_call: Any, options: Sequence[Any]) -> Permission:
        """Ask the person for permission.

        Args:
            tool_call: what is asked about: a running tool call, its id, or its wire form.
            options: what can be selected, in their wire form: `optionId`, `name`, `kind`.
        """
        described = tool_call.id if isinstance(tool_call, RunningToolCall) else tool_call
        return await permission.request_permission(self.call, described, options)

    async def ask_permission(self, action: str, *, kind: str = "other") -> bool:
        """Ask the person whether an action may be done; False if it was rejected or the turn was cancelled."""
        decided = await self._ask(action, kind, permission.YES_OR_NO)
        return decided.option_id == permission.ALLOW

    async def ask_choice(self, question: str, options: Sequence[str]) -> str | None:
        """Ask the person to choose one of at least two texts; None if the turn was cancelled."""
        decided = await self._ask(question, "other", permission.choices(options))
        return None if decided.option_id is None else options[int(decided.option_id)]

    async def elicit_form(self, message: str, schema: Any) -> Elicitation:
        """Show the person a form; `schema` is a JSON Schema of one flat object, or just its properties.

        Raises:
            CapabilityMissing: if the client shows no forms; nothing was sent.
        """
        return await elicitation.elicit_form(self.call, message, schema)

    async def elicit_url(self, message: str, url: str, *, elicitation_id: str | None = None) -> Elicitation:
        """Ask the person to open a page.

        Raises:
            CapabilityMissing: if the client opens no pages; nothing was sent.
        """
        return await elicitation.elicit_url(self.call, message, url, elicitation_id)

    async def complete_elicitation(self, elicitation_id: str) -> None:
        """Tell the client that what was to be done on a page is done.

        Raises:
            CapabilityMissing: if the client opens no pages; nothing was sent.
        """
        elicitation.complete(self.call, elicitation_id)

    async def execute(
        self,
        program: str,
        *arguments: str,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        output_byte_limit: int | None = None,
        timeout: float | None = None,
    ) -> Output:
        """Run a command in a terminal of the client, to its end.

        Args:
            program: what to run.
            arguments: its arguments.
            cwd: an absolute path, or one from the session's directory, which is the default.
            env: environment variables to add.
            output_byte_limit: how many bytes of output to keep, the last ones.
            timeout: seconds after which the command is killed; None waits for as long as the turn lives.

        Raises:
            CapabilityMissing: if the client runs no commands; nothing was sent.
            TurnCancelled: if the turn was cancelled.
            PeerError: if the client cannot run it.
            TurnError: if the command did not end, or the client did not answer, in time.
        """
        command = Command(program, arguments, self._directory(cwd), env, output_byte_limit)
        return await terminals.execute(self.call, command, timeout)

    def terminal(
        self,
        program: str,
        *arguments: str,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        output_byte_limit: int | None = None,
    ) -> AbstractAsyncContextManager[Terminal]:
        """Run a command in a terminal of the client for the time of a block; arguments as for `execute`.

        Raises:
            CapabilityMissing: if the client runs no commands; nothing was sent.
        """
        command = Command(program, arguments, self._directory(cwd), env, output_byte_limit)
        return terminals.terminal(self.call, command)

    async def mcp(self, method: str, params: Mapping[str, Any]) -> Any:
        """Send an `mcp/*` request for an MCP server that lives in the client (unstable); see `ConnectedClient.mcp`."""
        return await self.client.mcp(method, params)

    async def ext_request(self, method: str, params: Mapping[str, Any] | None = None) -> Any:
        """Send an extension request, whose name begins with an underscore; see `ConnectedClient.ext_request`."""
        return await self.client.ext_request(method, params)

    async def _ask(self, title: str, kind: str, options: Sequence[Any]) -> Permission:
        call = announcement(title, kind, identifier=None, status="pending", raw_input=None, locations=())
        async with tool_call(self, call) as asked:
            decided = await self.request_permission(asked, options)
            if decided.cancelled:
                await asked.fail()
        return decided

    def _directory(self, path: str | None) -> str:
        return files.absolute(path or "", self.session.cwd)
