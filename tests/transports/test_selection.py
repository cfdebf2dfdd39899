import pytest

from acp_integration import AcpAgentSettings, AcpClientSettings
from acp_integration.errors import ConfigurationError, TransportSelectionError
from acp_integration.settings import AgentTransport
from acp_integration.transports.process import ProcessTransport
from acp_integration.transports.selection import client_transport_kind, require_served, select_client_transport

VALUES = {
    "stdio": {"transport.stdio.command": "agent"},
    "websocket": {"transport.websocket.uri": "ws://host/acp"},
    "http": {"transport.http.uri": "http://host/acp"},
}
REQUIRED = {"stdio": "stdio.command", "websocket": "websocket.uri", "http": "http.uri"}
PREFIXES = ["acp.client", "spring.ai.acp.client", "quarkus.acp"]


def settings(*kinds, **more):
    bare = {key: value for kind in kinds for key, value in VALUES[kind].items()}
    return AcpClientSettings.from_mapping({**bare, **more}, "")


def test_no_transport_is_configured():
    assert client_transport_kind(settings()) is None
    assert select_client_transport(settings()) is None
    assert not settings().has_transport


@pytest.mark.parametrize("kind", VALUES)
def test_the_only_one_configured_is_used(kind):
    assert client_transport_kind(settings(kind)) == kind


@pytest.mark.parametrize("kind", VALUES)
def test_an_explicit_type_wins_over_several(kind):
    assert client_transport_kind(settings(*VALUES, **{"transport.type": kind})) == kind


@pytest.mark.parametrize(
    ("prefix", "key"),
    [(prefix, f"{prefix}.transport.type") for prefix in PREFIXES]
    + [("acp.client.", "acp.client.transport.type"), ("", "transport.type")],
)
@pytest.mark.parametrize(
    ("kinds", "listed"),
    [
        (("stdio", "websocket", "http"), "STDIO, WEBSOCKET, HTTP"),
        (("http", "stdio"), "STDIO, HTTP"),
        (("websocket", "http"), "WEBSOCKET, HTTP"),
    ],
)
def test_several_are_refused_naming_those_found(kinds, listed, prefix, key):
    with pytest.raises(TransportSelectionError) as raised:
        select_client_transport(settings(*kinds), prefix)
    assert str(raised.value) == (f"Several ACP client transports are configured [{listed}]; choose one with {key}")


@pytest.mark.parametrize("prefix", PREFIXES)
@pytest.mark.parametrize("kind", VALUES)
def test_an_explicit_type_needs_its_own_value(kind, prefix):
    others = [other for other in VALUES if other != kind]
    with pytest.raises(TransportSelectionError) as raised:
        select_client_transport(settings(*others, **{"transport.type": kind}), prefix)
    assert str(raised.value) == f"{prefix}.transport.type={kind} requires {prefix}.transport.{REQUIRED[kind]}"


def test_a_selection_error_is_a_configuration_error():
    assert issubclass(TransportSelectionError, ConfigurationError)


def test_stdio_is_an_agent_process_that_was_not_started():
    transport = select_client_transport(
        settings("stdio", **{"transport.stdio.args": "a,b", "transport.stdio.env.KEY": "v", "transport.stdio.cwd": "/"})
    )
    assert isinstance(transport, ProcessTransport)
    assert transport.pid is None
    assert repr(transport) == "ProcessTransport('agent', 2 args, env=['KEY'], cwd='/')"


def test_stdio_without_variables_adds_none():
    transport = select_client_transport(settings("stdio"))
    assert repr(transport) == "ProcessTransport('agent', 0 args, env=[], cwd=None)"


@pytest.mark.parametrize("served", ["stdio", "http"])
def test_without_an_explicit_type_every_start_is_right(served):
    require_served(None, served)
    require_served(AcpAgentSettings(), served)


@pytest.mark.parametrize(("kind", "served"), [("stdio", "stdio"), ("http", "http"), ("websocket", "http")])
def test_a_start_that_agrees_with_the_type_is_right(kind, served):
    require_served(AcpAgentSettings(transport=AgentTransport(type=kind)), served)


@pytest.mark.parametrize(
    ("kind", "served", "named"),
    [
        ("stdio", "http", "HTTP and WebSocket"),
        ("http", "stdio", "standard input and output"),
        ("websocket", "stdio", "standard input and output"),
    ],
)
@pytest.mark.parametrize("prefix", ["acp.agent", "quarkus.acp"])
def test_a_start_that_contradicts_the_type_fails_naming_the_key(kind, served, named, prefix):
    with pytest.raises(TransportSelectionError) as raised:
        require_served(AcpAgentSettings(transport=AgentTransport(type=kind)), served, prefix)
    assert str(raised.value) == (
        f"{prefix}.transport.type={kind}, but this process was started to serve {named}: "
        "remove the key, or start it the other way"
    )


def test_a_websocket_is_not_connected_and_has_its_settings():
    transport = select_client_transport(
        settings(
            "websocket",
            **{"transport.websocket.connect-timeout": "2s", "transport.websocket.headers.Authorization": "Bearer x"},
        )
    )
    assert transport.kind == "websocket"
    assert transport.uri == "ws://host/acp"
    assert transport._connect_timeout == 2.0
    assert transport._headers == {"Authorization": "Bearer x"}


def test_the_websocket_has_ten_seconds_to_connect_by_default():
    assert select_client_transport(settings("websocket"))._connect_timeout == 10.0


def test_http_is_not_connected_and_has_its_settings():
    transport = select_client_transport(
        settings("http", **{"transport.http.headers.X-Key": "y", "max-message-size": "1K"})
    )
    assert transport.kind == "http"
    assert transport.uri == "http://host/acp"
    assert transport._headers == {"X-Key": "y"}
    assert transport._limit == 1024
