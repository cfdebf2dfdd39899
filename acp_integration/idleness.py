"""Closes the sessions of one connection that nobody uses."""

import time

import anyio

from acp_integration.dispatch import Dispatch
from acp_integration.peer import Peer


async def close_idle_sessions(peer: Peer, dispatch: Dispatch, timeout: float) -> None:
    """Close each session that was not used for so many seconds; one with a turn is in use."""
    while True:
        now = time.monotonic()
        for session in peer.sessions:
            if dispatch.uses(session.id):
                session.used = now
            elif now - session.used >= timeout:
                dispatch.close_session(session.id)
        oldest = min((session.used for session in peer.sessions), default=now)
        await anyio.sleep(max(oldest + timeout - time.monotonic(), timeout / 10))
