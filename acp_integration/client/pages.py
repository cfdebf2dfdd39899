"""A turn of an agent passed on to a page: each item as a kind and its JSON, or as a server-sent event."""

import json
import logging
from collections.abc import AsyncIterator
from typing import Any

from acp_integration.client.prompts import PromptResult
from acp_integration.client.session import ClientSession
from acp_integration.errors import AcpError

logger = logging.getLogger(__name__)


async def page_items(session: ClientSession, text: str) -> AsyncIterator[tuple[str, dict[str, Any]]]:
    """The updates of one turn, each with its kind, then ``result``, or ``error`` without any text of the error's.

    Left before its end, the turn is cancelled.
    """
    try:
        async with session.stream(text) as items:
            async for item in items:
                if isinstance(item, PromptResult):
                    yield item.kind, {"text": item.text, "stopReason": item.stop_reason}
                else:
                    yield item.kind, {"update": item.raw}
    except AcpError:
        logger.warning("A turn that was passed on to a page failed", exc_info=True)
        yield "error", {"message": "The agent failed"}


async def page_events(session: ClientSession, text: str) -> AsyncIterator[str]:
    """The same as server-sent events, each named for its kind."""
    async for kind, data in page_items(session, text):
        yield f"event: {kind}\ndata: {json.dumps(data)}\n\n"
