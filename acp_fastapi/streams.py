"""A turn of an agent, streamed out of an application's own endpoint."""

from contextlib import suppress
from os import PathLike
from pathlib import Path
from typing import Final

from starlette.responses import StreamingResponse
from starlette.websockets import WebSocket, WebSocketDisconnect

from acp_integration.client.client import AcpClient
from acp_integration.client.pages import page_events, page_items
from acp_integration.client.session import ClientSession

_HEADERS: Final = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}


class TurnStream:
    """Streams turns of the agent that a client drives; a reader that leaves cancels its turn.

    Attributes:
        client: the client, connected.
    """

    def __init__(self, client: AcpClient) -> None:
        self.client = client

    async def events(
        self, text: str, *, cwd: str | PathLike[str] | None = None, session: ClientSession | None = None
    ) -> StreamingResponse:
        """One turn as server-sent events, each named for the kind of its update; the last one is ``result``.

        Args:
            text: the prompt.
            cwd: the directory of the session that is opened for it, by default that of this process.
            session: an open session to use instead.
        """
        session = session or await self._session(cwd)
        return StreamingResponse(page_events(session, text), media_type="text/event-stream", headers=_HEADERS)

    async def socket(self, websocket: WebSocket, *, cwd: str | PathLike[str] | None = None) -> None:
        """A conversation: each text the browser sends is a prompt, each update and result goes back as JSON."""
        session = await self._session(cwd)
        await websocket.accept()
        with suppress(WebSocketDisconnect):
            while True:
                async for kind, data in page_items(session, await websocket.receive_text()):
                    await websocket.send_json({"type": kind, **data})

    async def _session(self, cwd: str | PathLike[str] | None) -> ClientSession:
        return await self.client.new_session(Path(cwd or Path.cwd()).absolute())
