"""A host that stands still for longer than it is believed to live ends its streams, and is found again."""

import anyio
import httpx2
import psutil
import pytest

from tests.backplane.test_redis import SERVER
from tests.endpoint.driver import INITIALIZE, events_in, request
from tests.endpoint.test_worker_hosts import hosts, redis

__all__ = ["hosts", "redis"]

pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(SERVER is None, reason="redis-server is not installed: .ci/run installs it"),
]

STILL = 9.0
"""Longer than a sign of life lasts."""


def process_behind(url):
    """The server that listens at a URL, among the processes of this test."""
    port = httpx2.URL(url).port
    own = psutil.Process().children(recursive=True)
    [found] = [one for one in own if any(item.laddr.port == port for item in listening(one))]
    return found


def listening(process):
    return [item for item in process.net_connections("tcp") if item.status == psutil.CONN_LISTEN]


@pytest.mark.parametrize("still", ["owner", "other"])
async def test_a_host_that_stood_still_ends_the_streams_it_has_open_and_serves_again(hosts, still, bound):
    owner, other = hosts
    frozen = process_behind(owner if still == "owner" else other)
    async with httpx2.AsyncClient(trust_env=False, timeout=60) as client:
        opened = await client.post(owner, json=INITIALIZE)
        headers = {"acp-connection-id": opened.headers["acp-connection-id"], "accept": "text/event-stream"}
        async with client.stream("GET", other, headers=headers) as stream:
            chunks = stream.aiter_raw()
            await anext(chunks)
            frozen.suspend()
            try:
                with bound(3 * STILL):
                    if still == "owner":
                        assert [chunk async for chunk in chunks if b"data:" in chunk] == []  # ended by the other one
                    else:
                        await anyio.sleep(STILL)
            finally:
                frozen.resume()
            with bound(3 * STILL):
                assert [chunk async for chunk in chunks if b"data:" in chunk] == []
        with bound(30):
            new = request("session/new", 2, cwd="/", mcpServers=[])
            while (await client.post(other, json=new, headers=headers)).status_code != 202:
                await anyio.sleep(0.1)
            async with client.stream("GET", other, headers=headers) as stream:
                async for chunk in stream.aiter_raw():
                    if any("sessionId" in message["result"] for _, message in events_in(chunk)):
                        break
