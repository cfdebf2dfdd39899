"""A turn of an agent, streamed out of an application's own endpoint."""

import json
import logging
from collections.abc import AsyncIterator
from os import PathLike
from pathlib import Path
from typing import Any

from starlette.responses import StreamingResponse
from starlette.websockets import WebSocket, WebSocketDisconnect

from acp_integration.client.client import AcpClient
from acp_integration.client.prompts import PromptResult
from acp_integration.client.session import ClientSession
from acp_integration.errors import AcpError
from acp_integration.types import Update

logger = logging.getLogger(__name__)

_HEADERS = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}


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
        return StreamingResponse(_events(session, text), media_type="text/event-stream", headers=_HEADERS)

    async def socket(self, websocket: WebSocket, *, cwd: str | PathLike[str] | None = None) -> None:
        """A conversation: each text the browser sends is a prompt, each update and result goes back as JSON."""
        session = await self._session(cwd)
        await websocket.accept()
        try:
            while True:
                text = await websocket.receive_text()
                async for kind, data in _items(session, text):
                    await websocket.send_json({"type": kind, **data})
        except WebSocketDisconnect:
            logger.debug("The browser left")

    async def _session(self, cwd: str | PathLike[str] | None) -> ClientSession:
        return await self.client.new_session(Path(cwd or Path.cwd()).absolute())


async def _events(session: ClientSession, text: str) -> AsyncIterator[str]:
    async for kind, data in _items(session, text):
        yield f"event: {kind}\ndata: {json.dumps(data)}\n\n"


async def _items(session: ClientSession, text: str) -> AsyncIterator[tuple[str, dict[str, Any]]]:
    try:
        async with session.stream(text) as items:
            async for item in items:
                yield item.kind, _data(item)
    except AcpError:
        logger.warning("A turn that was streamed out failed", exc_info=True)
        yield "error", {"message": "The agent failed"}


def _data(item: Update | PromptResult) -> dict[str, Any]:
    if isinstance(item, PromptResult):
        return {"text": item.text, "stopReason": item.stop_reason}
    return {"update": item.raw}
