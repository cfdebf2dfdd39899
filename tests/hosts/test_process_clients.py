"""Clients for threads: opened once in a process, made anew after a fork, closed with all that was opened."""

import os
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from acp_integration import AcpClientSettings
from acp_integration.errors import ConfigurationError
from acp_integration.hosts.clients import DEFAULT, SharedClients
from acp_integration.hosts.process_clients import ProcessClients

SECONDS = 20


@pytest.fixture
def loads() -> list[SharedClients]:
    """What was made so far."""
    return []


@pytest.fixture
def clients(loads: list[SharedClients], repo_root: Path) -> Iterator[ProcessClients]:
    arguments = ["-m", "acp_integration", "stdio", "--app-dir", str(repo_root), "examples.agents:ProbeAgent"]
    settings = AcpClientSettings.from_mapping(
        {"acp.client": {"transport": {"stdio": {"command": sys.executable, "args": arguments}}}}
    )

    def load() -> SharedClients:
        loads.append(SharedClients({DEFAULT: settings}))
        return loads[-1]

    clients = ProcessClients(load)
    yield clients
    clients.close()


def threads_named(name: str) -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == name]


def test_nothing_is_made_before_a_client_is_asked_for(clients: ProcessClients, loads: list[SharedClients]) -> None:
    assert loads == []
    assert clients.opened(DEFAULT).result(SECONDS) is clients.opened(DEFAULT).result(SECONDS)
    assert len(loads) == 1


def test_a_name_that_is_not_set_is_said_with_the_key_to_set(clients: ProcessClients) -> None:
    with pytest.raises(ConfigurationError, match=r"'other': set acp\.clients\.other\.transport"):
        clients.opened("other").result(SECONDS)


def test_a_forked_process_makes_its_own(
    clients: ProcessClients, loads: list[SharedClients], monkeypatch: pytest.MonkeyPatch
) -> None:
    parents = clients.opened(DEFAULT).result(SECONDS)
    with monkeypatch.context() as forked:
        forked.setattr(os, "getpid", lambda: -1)
        assert clients.opened(DEFAULT).result(SECONDS) is not parents
        clients.close()
    assert len(loads) == 2
    assert clients.opened(DEFAULT).result(SECONDS) is parents


def test_closing_ends_the_thread_and_the_next_call_opens_again(clients: ProcessClients) -> None:
    first = clients.opened(DEFAULT).result(SECONDS)
    assert len(threads_named("acp-clients")) == 1
    clients.close()
    assert first.closed
    assert threads_named("acp-clients") == []
    assert clients.opened(DEFAULT).result(SECONDS) is not first


def test_clients_that_cannot_be_made_are_said_each_time() -> None:
    def load() -> SharedClients:
        raise ConfigurationError("acp.client is wrong")

    clients: Callable[..., object] = ProcessClients(load).opened
    for _ in range(2):
        with pytest.raises(ConfigurationError, match="is wrong"):
            clients(DEFAULT)
