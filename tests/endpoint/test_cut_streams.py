"""Streams that something on the way cuts at any byte: nothing is lost, and nothing repeated to who says what it has."""

import random
from contextlib import asynccontextmanager

import anyio
import httpx2

from tests.endpoint.counter import Counter, numbered
from tests.endpoint.driver import INITIALIZE, events_in, ids, prompt, request

CUTS = 200
UPDATES = 30
STREAM_BYTES = 9_000
SEED = 20261130


class Proxy:
    """Forwards bytes to a port, and cuts a connection when so many have come back."""

    def __init__(self, port):
        self.upstream = port
        self.cut_after = None

    async def serve(self, client):
        left = self.cut_after
        server = await anyio.connect_tcp("127.0.0.1", self.upstream)
        async with client, server, anyio.create_task_group() as tasks:
            tasks.start_soon(self._forward, client, server, None, tasks.cancel_scope)
            tasks.start_soon(self._forward, server, client, left, tasks.cancel_scope)

    async def _forward(self, source, target, left, scope):
        try:
            async for chunk in source:
                if left is not None and len(chunk) >= left:
                    await target.send(chunk[:left])
                    break
                await target.send(chunk)
                left = None if left is None else left - len(chunk)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            pass
        scope.cancel()


@asynccontextmanager
async def proxied(site):
    """The proxy, and a client whose every request is a connection of its own through it."""
    proxy = Proxy(site.port)
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    port = listener.extra(anyio.abc.SocketAttribute.local_port)
    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, proxy.serve)
        limits = httpx2.Limits(max_keepalive_connections=0)
        async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=20, limits=limits) as client:
            yield proxy, client
        tasks.cancel_scope.cancel()


async def read(client, connection, session, answer, last_id=None):
    """What one stream gives until a request is answered or it is cut: only whole events count."""
    headers = {"accept": "text/event-stream", **ids(connection, session)}
    if last_id is not None:
        headers["last-event-id"] = str(last_id)
    body = b""
    try:
        async with client.stream("GET", "/acp", headers=headers) as stream:
            async for chunk in stream.aiter_raw():
                body += chunk
                if is_answered(whole(body), answer):
                    break
    except httpx2.TransportError:
        pass
    return whole(body)


def is_answered(events, identifier):
    return any(message.get("id") == identifier for _, message in events)


def whole(body):
    return events_in(body[: body.rfind(b"\n\n") + 2])


async def session_with_a_turn(site):
    connection = (await site.http.post("/acp", json=INITIALIZE)).headers["acp-connection-id"]
    await site.http.post("/acp", json=request("session/new", 1, cwd="/", mcpServers=[]), headers=ids(connection, None))
    ((_, created),) = await read(site.http, connection, None, 1)
    session = created["result"]["sessionId"]
    await site.http.post("/acp", json=prompt(session, f"{UPDATES}", 2), headers=ids(connection, session))
    return connection, session


async def until_nobody_reads(site):
    """What a server sends before it sees that its client is gone is written, and lost to a client that does not say."""
    with anyio.fail_after(10):
        while any(served.transport.streams.readers for served in site.endpoint._run.service.connections):
            await anyio.sleep(0.002)


async def test_a_client_that_says_what_it_has_seen_loses_and_repeats_nothing(serve):
    site, chance, cut = await serve(Counter), random.Random(SEED), 0
    async with proxied(site) as (proxy, client):
        while cut < CUTS:
            connection, session = await session_with_a_turn(site)
            seen = []
            with anyio.fail_after(20):
                while not is_answered(seen, 2):
                    proxy.cut_after = chance.randrange(STREAM_BYTES)
                    cut += 1
                    seen += await read(client, connection, session, 2, seen[-1][0] if seen else 0)
            assert numbered(seen) == list(range(UPDATES))
            await site.http.delete("/acp", headers=ids(connection, None))


async def test_a_client_that_does_not_gets_everything_that_was_never_written_in_order(serve):
    site, chance = await serve(Counter), random.Random(SEED)
    async with proxied(site) as (proxy, client):
        for _ in range(CUTS // 4):
            connection, session = await session_with_a_turn(site)
            proxy.cut_after = chance.randrange(STREAM_BYTES)
            first = await read(client, connection, session, 2)
            await until_nobody_reads(site)
            await site.http.post("/acp", json=prompt(session, f"{UPDATES}", 3), headers=ids(connection, session))
            proxy.cut_after = None
            with anyio.fail_after(10):
                second = await read(client, connection, session, 3)
            rest = numbered(second)
            assert numbered(first) == list(range(len(numbered(first))))
            assert rest[-UPDATES:] == list(range(UPDATES))
            assert rest[:-UPDATES] == list(range(UPDATES))[UPDATES - len(rest) + UPDATES :]
            await site.http.delete("/acp", headers=ids(connection, None))
