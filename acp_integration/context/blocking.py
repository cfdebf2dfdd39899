"""The same turn for a sync handler: one line for each call, blocking its thread until the loop has done it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from acp_integration.caller import HttpRequest
from acp_integration.context.blocking_session import SyncAcpSession, SyncSender
from acp_integration.context.blocking_tools import SyncTerminal, SyncToolCall, blocking
from acp_integration.context.client import ConnectedClient
from acp_integration.context.content import SlashCommand
from acp_integration.context.elicitation import Elicitation
from acp_integration.context.permission import Permission
from acp_integration.context.terminals import Output
from acp_integration.context.turn import PromptContext


class SyncPromptContext(SyncSender):
    """One turn as its sync handler sees it; used on the handler's own threads.

    Once the turn was cancelled, every call that sends or asks something raises TurnCancelled, and one that blocks is
    woken.
    """

    __slots__ = ("_turn", "client", "mode", "options", "session")

    def __init__(self, turn: PromptContext) -> None:
        super().__init__(turn, turn.bridge)
        self._turn = turn
        self.client: ConnectedClient = turn.client
        self.mode = turn.mode
        self.options = turn.options
        self.session = SyncAcpSession(turn.session, turn.bridge)

    @property
    def text(self) -> str:
        """The text blocks of the prompt, joined."""
        return self._turn.text

    @property
    def content(self) -> Sequence[Any]:
        """The content blocks of the prompt: light structs with snake_case names."""
        return self._turn.content

    @property
    def command(self) -> SlashCommand | None:
        """The prompt as a command, if it is one: `/name` and the text behind it."""
        return self._turn.command

    @property
    def request(self) -> Any:
        """The prompt's params as the official SDK's `PromptRequest`; the first use may import the SDK."""
        return self._turn.request

    @property
    def meta(self) -> Mapping[str, Any]:
        """The `_meta` of the prompt."""
        return self._turn.meta

    @property
    def user(self) -> Any:
        """Who opened the connection, as the application calls it; None on stdio."""
        return self._turn.user

    @property
    def http(self) -> HttpRequest | None:
        """The request that opened the connection; None on stdio."""
        return self._turn.http

    @property
    def is_cancelled(self) -> bool:
        """Whether the turn was cancelled."""
        return self._turn.is_cancelled

    def on_cancel(self, callback: Callable[[], object]) -> None:
        """Call back once, on the connection's loop, when the turn is cancelled; keep it quick."""

        async def register() -> None:
            self._turn.on_cancel(callback)

        self._bridge.run_regardless(register)

    def wait_cancelled(self) -> None:
        """Block until the turn is cancelled."""
        self._turn.bridge.run_regardless(self._turn.call.cancellation.wait)

    def raise_if_cancelled(self) -> None:
        """Raise TurnCancelled if the turn was cancelled."""
        self._turn.raise_if_cancelled()

    @contextmanager
    def tool_call(
        self,
        title: str,
        *,
        kind: str = "other",
        tool_call_id: str | None = None,
        raw_input: Any = None,
        locations: Sequence[Any] = (),
    ) -> Iterator[SyncToolCall]:
        """Announce a tool call for the time of a block: completed at its end, failed if it raises."""
        given = {"kind": kind, "tool_call_id": tool_call_id, "raw_input": raw_input, "locations": locations}
        call = self._turn.tool_call(title, **given)
        with blocking(call, self._bridge) as running:
            yield SyncToolCall(running, self._bridge)

    def read_text_file(self, path: str, *, line: int | None = None, limit: int | None = None) -> str:
        """Read a file as the client sees it; see `PromptContext.read_text_file`."""
        return self._bridge.run(lambda: self._turn.read_text_file(path, line=line, limit=limit))

    def write_text_file(self, path: str, content: str) -> None:
        """Write a file through the client; see `PromptContext.write_text_file`."""
        self._bridge.run(self._turn.write_text_file, path, content)

    def request_permission(self, tool_call: Any, options: Sequence[Any]) -> Permission:
        """Ask the person for permission; see `PromptContext.request_permission`."""
        asked = tool_call.id if isinstance(tool_call, SyncToolCall) else tool_call
        return self._bridge.run(self._turn.request_permission, asked, options)

    def ask_permission(self, action: str, *, kind: str = "other") -> bool:
        """Ask the person whether an action may be done; False if it was rejected or the turn was cancelled."""
        return self._bridge.run(lambda: self._turn.ask_permission(action, kind=kind))

    def ask_choice(self, question: str, options: Sequence[str]) -> str | None:
        """Ask the person to choose one of at least two texts; None if the turn was cancelled."""
        return self._bridge.run(self._turn.ask_choice, question, options)

    def elicit_form(self, message: str, schema: Any) -> Elicitation:
        """Show the person a form; see `PromptContext.elicit_form`."""
        return self._bridge.run(self._turn.elicit_form, message, schema)

    def elicit_url(self, message: str, url: str, *, elicitation_id: str | None = None) -> Elicitation:
        """Ask the person to open a page; see `PromptContext.elicit_url`."""
        return self._bridge.run(lambda: self._turn.elicit_url(message, url, elicitation_id=elicitation_id))

    def complete_elicitation(self, elicitation_id: str) -> None:
        """Tell the client that what was to be done on a page is done."""
        self._bridge.run(self._turn.complete_elicitation, elicitation_id)

    def execute(
        self,
        program: str,
        *arguments: str,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        output_byte_limit: int | None = None,
        timeout: float | None = None,
    ) -> Output:
        """Run a command in a terminal of the client, to its end; see `PromptContext.execute`."""
        options = {"cwd": cwd, "env": env, "output_byte_limit": output_byte_limit, "timeout": timeout}
        return self._bridge.run(lambda: self._turn.execute(program, *arguments, **options))  # type: ignore[arg-type]  # as above

    @contextmanager
    def terminal(
        self,
        program: str,
        *arguments: str,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        output_byte_limit: int | None = None,
    ) -> Iterator[SyncTerminal]:
        """Run a command in a terminal of the client for the time of a block; see `PromptContext.terminal`."""
        opened = self._turn.terminal(program, *arguments, cwd=cwd, env=env, output_byte_limit=output_byte_limit)
        with blocking(opened, self._bridge) as terminal:
            yield SyncTerminal(terminal, self._bridge)

    def mcp(self, method: str, params: Mapping[str, Any]) -> Any:
        """Send an `mcp/*` request for an MCP server that lives in the client (unstable)."""
        return self._bridge.run(self._turn.mcp, method, params)

    def ext_request(self, method: str, params: Mapping[str, Any] | None = None) -> Any:
        """Send an extension request, whose name begins with an underscore."""
        return self._bridge.run(self._turn.ext_request, method, params)
