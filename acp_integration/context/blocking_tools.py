"""Tool calls and terminals for sync handlers."""

from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from typing import Any, TypeVar

from acp_integration.context.bridge import ThreadBridge
from acp_integration.context.terminals import ExitStatus, Output, Terminal
from acp_integration.context.toolcalls import RunningToolCall

T = TypeVar("T")


class SyncToolCall:
    """A tool call that was announced and is not settled yet, as a sync handler sees it."""

    __slots__ = ("_bridge", "_call", "id")

    def __init__(self, call: RunningToolCall, bridge: ThreadBridge) -> None:
        self.id = call.id
        self._call = call
        self._bridge = bridge

    def add(self, *content: Any) -> None:
        """Show more of what the call produces: text, or content blocks."""
        self._bridge.run(self._call.add, *content)

    def add_diff(self, path: str, new_text: str, old_text: str | None = None) -> None:
        """Show a change of a file; without an old text it is a new file. `path` is absolute."""
        self._bridge.run(self._call.add_diff, path, new_text, old_text)

    def add_terminal(self, terminal: "SyncTerminal | str") -> None:
        """Show a terminal as it runs, also after it was released."""
        self._bridge.run(self._call.add_terminal, terminal if isinstance(terminal, str) else terminal.id)

    def add_location(self, path: str, line: int | None = None) -> None:
        """Tell which file is worked on, so that the client can follow. `path` is absolute, `line` 1-based."""
        self._bridge.run(self._call.add_location, path, line)

    def set_output(self, output: Any) -> None:
        """Give the raw result, any JSON value."""
        self._bridge.run(self._call.set_output, output)

    def set_title(self, title: str) -> None:
        """Change the title."""
        self._bridge.run(self._call.set_title, title)

    def fail(self, *content: Any) -> None:
        """Settle as failed when the block ends, and show why."""
        self._bridge.run(self._call.fail, *content)

    def update(self, **fields: Any) -> None:
        """Change any fields, named as on the wire."""

        async def update() -> None:
            await self._call.update(**fields)

        self._bridge.run(update)


class SyncTerminal:
    """A command that runs in a terminal of the client, as a sync handler sees it."""

    __slots__ = ("_bridge", "_terminal", "id")

    def __init__(self, terminal: Terminal, bridge: ThreadBridge) -> None:
        self.id = terminal.id
        self._terminal = terminal
        self._bridge = bridge

    def output(self) -> Output:
        """What the command has written so far."""
        return self._bridge.run(self._terminal.output)

    def wait_for_exit(self) -> ExitStatus:
        """Block until the command has ended."""
        return self._bridge.run(self._terminal.wait_for_exit)

    def kill(self) -> None:
        """End the command; its output stays readable."""
        self._bridge.run(self._terminal.kill)


@contextmanager
def blocking(manager: AbstractAsyncContextManager[T], bridge: ThreadBridge) -> Iterator[T]:
    """Enter an async context manager on the loop; it is left there also after a cancel."""
    entered = bridge.run(manager.__aenter__)
    try:
        yield entered
    except BaseException as error:
        bridge.run_regardless(_leave, manager, error)
        raise
    bridge.run_regardless(_leave, manager, None)


async def _leave(manager: AbstractAsyncContextManager[Any], error: BaseException | None) -> None:
    try:
        await manager.__aexit__(type(error) if error else None, error, error.__traceback__ if error else None)
    except BaseException as raised:
        if raised is not error:
            raise
