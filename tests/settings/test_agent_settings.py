import json
from datetime import timedelta

import pytest
from pydantic import BaseModel, ValidationError

from acp_integration import AcpAgentSettings
from acp_integration.errors import ConfigurationError
from acp_integration.options import EndpointOptions, HostOptions, ListenerOptions, RuntimeOptions
from acp_integration.settings import AgentTransport, Backplane, Http, Listener

PREFIXES = ["acp.agent", "spring.ai.acp.agent.", "quarkus.acp"]
"""The default, one with a trailing dot, one of two segments in somebody else's namespace."""


def prefixed(prefix, mapping):
    return {f"{prefix.removesuffix('.')}.{key}": value for key, value in mapping.items()}


def unset_keys(settings):
    values = settings.model_dump()
    pending, unset = [values], []
    while pending:
        for value in pending.pop().values():
            pending.append(value) if isinstance(value, dict) else unset.append(value is None)
    return unset


def test_everything_is_unset_by_default():
    assert all(unset_keys(AcpAgentSettings()))


def test_an_empty_source_equals_the_defaults():
    assert AcpAgentSettings.from_mapping({}) == AcpAgentSettings()
    assert AcpAgentSettings.load(environ={}) == AcpAgentSettings()


def test_unset_settings_give_the_default_options():
    settings = AcpAgentSettings()
    assert settings.runtime_options() == RuntimeOptions()
    assert settings.endpoint_options() == EndpointOptions()
    assert settings.listener_options() == ListenerOptions()
    assert settings.host_options() == HostOptions()
    assert settings.serves is None


@pytest.mark.parametrize("prefix", PREFIXES)
def test_every_key_binds(prefix):
    settings = AcpAgentSettings.from_mapping(
        prefixed(
            prefix,
            {
                "enabled": "FALSE",
                "request-timeout": "45s",
                "interaction-timeout": "1h",
                "cancel-grace-period": "PT2S",
                "max-prompt-duration": "10 m",
                "max-concurrent-requests": "7",
                "sync-threads": "8",
                "drain-timeout": "0s",
                "abort-timeout": "1500",
                "session-idle-timeout": "1d",
                "detached-turn-timeout": "PT1H30M",
                "max-message-size": "64MB",
                "shutdown-on-transport-end": "false",
                "handler-executor": "shop.threads:pool",
                "session-store": "sqlite:///var/acp.db",
                "plugins": "audit, billing",
                "transport.type": "WebSocket",
                "transport.http.path": "/agent",
                "transport.http.allowed-origins": "HTTPS://App.example/, vscode-webview://abc",
                "transport.http.allowed-hosts": "agents.example, [::1]:8080",
                "transport.http.require-auth": "false",
                "transport.http.allow-stdio-mcp-servers": "true",
                "transport.http.roots": "/srv/a,/srv/b",
                "transport.http.max-post-body-size": "2MB",
                "transport.http.keep-alive-interval": "5s",
                "transport.http.mailbox-capacity": "16",
                "transport.http.max-pending-sse-events": "17",
                "transport.http.max-web-socket-pending-frames": "18",
                "transport.http.max-provisional-sessions": "19",
                "transport.http.max-connections": "20",
                "transport.http.max-connections-per-principal": "21",
                "transport.http.connection-idle-timeout": "22s",
                "transport.http.shutdown-timeout": "23s",
                "transport.http.web-socket-idle-timeout": "24s",
                "transport.http.initialize-timeout": "250",
                "transport.http.listener.host": " 0.0.0.0 ",
                "transport.http.listener.port": "0",
                "transport.http.listener.max-concurrent-streams-per-connection": "25",
                "backplane.url": "redis://cache/0",
                "backplane.key": "s3cret",
            },
        ),
        prefix,
    )
    assert settings == AcpAgentSettings(
        enabled=False,
        request_timeout=timedelta(seconds=45),
        interaction_timeout=timedelta(hours=1),
        cancel_grace_period=timedelta(seconds=2),
        max_prompt_duration=timedelta(minutes=10),
        max_concurrent_requests=7,
        sync_threads=8,
        drain_timeout=timedelta(0),
        abort_timeout=timedelta(seconds=1.5),
        session_idle_timeout=timedelta(days=1),
        detached_turn_timeout=timedelta(minutes=90),
        max_message_size=64 * 1024 * 1024,
        shutdown_on_transport_end=False,
        handler_executor="shop.threads:pool",
        session_store="sqlite:///var/acp.db",
        plugins=("audit", "billing"),
        transport=AgentTransport(
            type="websocket",
            http=Http(
                path="/agent",
                allowed_origins=("https://app.example", "vscode-webview://abc"),
                allowed_hosts=("agents.example", "[::1]:8080"),
                require_auth=False,
                allow_stdio_mcp_servers=True,
                roots=("/srv/a", "/srv/b"),
                max_post_body_size=2 * 1024 * 1024,
                keep_alive_interval=timedelta(seconds=5),
                mailbox_capacity=16,
                max_pending_sse_events=17,
                max_web_socket_pending_frames=18,
                max_provisional_sessions=19,
                max_connections=20,
                max_connections_per_principal=21,
                connection_idle_timeout=timedelta(seconds=22),
                shutdown_timeout=timedelta(seconds=23),
                web_socket_idle_timeout=timedelta(seconds=24),
                initialize_timeout=timedelta(milliseconds=250),
                listener=Listener(host="0.0.0.0", port=0, max_concurrent_streams_per_connection=25),
            ),
        ),
        backplane=Backplane(url="redis://cache/0", key="s3cret"),
    )
    assert not any(unset_keys(settings))
    assert settings.serves == "http"


def test_set_values_are_passed_on_and_nothing_else():
    settings = AcpAgentSettings(
        request_timeout=timedelta(seconds=5),
        detached_turn_timeout=timedelta(seconds=6),
        max_message_size=1024,
        enabled=False,
        transport=AgentTransport(http=Http(path="/x", listener=Listener(port=0))),
    )
    assert settings.runtime_options() == RuntimeOptions(request_timeout=5.0, max_message_size=1024)
    assert settings.endpoint_options() == EndpointOptions(path="/x", detached_turn_timeout=6.0, max_message_size=1024)
    assert settings.listener_options() == ListenerOptions(port=0)
    assert settings.host_options() == HostOptions(enabled=False)


def test_only_an_own_listener_binds_a_host_and_limits_streams():
    listener = Listener(host="0.0.0.0", port=1, max_concurrent_streams_per_connection=2)
    settings = AcpAgentSettings(
        transport=AgentTransport(http=Http(allowed_origins=("https://a.example",), listener=listener))
    )
    assert settings.endpoint_options() == EndpointOptions(allowed_origins=("https://a.example",))
    assert settings.listener_options() == ListenerOptions(
        host="0.0.0.0", port=1, max_concurrent_streams_per_connection=2
    )


@pytest.mark.parametrize(
    "name", ["cancel_grace_period", "max_prompt_duration", "interaction_timeout", "session_idle_timeout"]
)
def test_a_duration_of_zero_is_no_limit_where_there_may_be_none(name):
    settings = AcpAgentSettings(**{name: timedelta(0)})
    assert getattr(settings.runtime_options(), name) is None


def test_a_keep_alive_interval_of_zero_sends_none():
    settings = AcpAgentSettings.from_mapping({"acp.agent.transport.http.keep-alive-interval": "0"})
    assert settings.endpoint_options().keep_alive_interval is None


@pytest.mark.parametrize("name", ["drain_timeout", "abort_timeout"])
def test_a_bound_of_zero_does_not_wait(name):
    assert getattr(AcpAgentSettings(**{name: timedelta(0)}).runtime_options(), name) == 0.0


@pytest.mark.parametrize(
    ("spelled", "seconds"),
    [
        ("250", 0.25),
        ("250ms", 0.25),
        ("30s", 30),
        ("30 S", 30),
        ("5m", 300),
        ("2H", 7200),
        ("1d", 86400),
        ("PT30S", 30),
        ("pt1m", 60),
        ("P1DT2H3M4.5S", 93784.5),
        (" 30s ", 30),
        (1500, 1.5),
    ],
)
def test_a_duration_is_read(spelled, seconds):
    settings = AcpAgentSettings.from_mapping({"acp.agent.request-timeout": spelled})
    assert settings.request_timeout == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    ("spelled", "size"),
    [
        ("10", 10),
        ("10B", 10),
        ("1k", 1024),
        ("1KB", 1024),
        ("2M", 2 * 1024**2),
        ("2 mb", 2 * 1024**2),
        ("3g", 3 * 1024**3),
        ("3GB", 3 * 1024**3),
        (4096, 4096),
    ],
)
def test_a_size_is_read_in_powers_of_1024(spelled, size):
    assert AcpAgentSettings.from_mapping({"acp.agent.max-message-size": spelled}).max_message_size == size


@pytest.mark.parametrize("blank", ["", "   ", None])
def test_blank_is_unset(blank):
    assert AcpAgentSettings.from_mapping({"acp.agent.request-timeout": blank}) == AcpAgentSettings()


def test_an_empty_prefix_reads_bare_keys():
    settings = AcpAgentSettings.from_mapping({"request-timeout": "3s", "transport.type": "HTTP"}, "")
    assert settings.request_timeout == timedelta(seconds=3)
    assert settings.transport.type == "http"


@pytest.mark.parametrize("spelled", ["stdio", "STDIO", " Http ", "webSocket"])
def test_a_transport_type_is_read_in_any_case(spelled):
    settings = AcpAgentSettings.from_mapping({"acp.agent.transport.type": spelled})
    assert settings.transport.type == spelled.strip().lower()


@pytest.mark.parametrize("prefix", PREFIXES)
@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("enabled", "yes", "true or false"),
        ("request-timeout", "soon", "a duration such as 30s or PT30S"),
        ("cancel-grace-period", "1.5s", "a duration such as 30s or PT30S"),
        ("max-prompt-duration", "-1s", "a duration such as 30s or PT30S"),
        ("transport.type", "carrier pigeon", "stdio, websocket or http"),
        ("transport.http.max-post-body-size", "1TB", "a size such as 16MB"),
        ("transport.http.mailbox-capacity", "many", "an integer"),
        ("transport.http.listener.port", "http", "an integer"),
    ],
)
def test_a_value_that_cannot_be_read_is_named(prefix, key, value, expected):
    full = f"{prefix.removesuffix('.')}.{key}"
    with pytest.raises(ConfigurationError) as raised:
        AcpAgentSettings.from_mapping({full: f" {value} "}, prefix)
    assert str(raised.value) == f"{full}={value} is not {expected}"


def test_two_bad_keys_are_one_error_naming_both():
    with pytest.raises(ConfigurationError) as raised:
        AcpAgentSettings.from_mapping(
            {"acp.agent.request-timeout": "soon", "acp": {"agent": {"transport": {"http": {"mailbox_capacity": "x"}}}}}
        )
    assert raised.value.problems == (
        "acp.agent.request-timeout=soon is not a duration such as 30s or PT30S",
        "acp.agent.transport.http.mailbox_capacity=x is not an integer",
    )


@pytest.mark.parametrize("section", ["transport", "backplane"])
def test_the_parts_of_settings_are_required(section):
    with pytest.raises(ValueError, match=f"{section}: value is not a table of keys"):
        AcpAgentSettings(**{section: None})


def test_settings_made_in_code_are_read_like_any_other_and_name_every_field_that_is_wrong():
    assert Http(max_post_body_size="1MB", path=" /x ") == Http(max_post_body_size=1 << 20, path="/x")
    assert AcpAgentSettings(transport={"http": {"path": "/x"}}).transport.http.path == "/x"
    with pytest.raises(ValueError, match=r"transport.http.path: .*; backplane.key: value is not text") as raised:
        AcpAgentSettings(transport={"http": {"path": "x"}}, backplane={"key": 12345})
    assert "12345" not in str(raised.value)
    with pytest.raises(ValueError, match=r"transport\.http\.pat: pat is not a field of Http"):
        AcpAgentSettings(transport={"http": {"pat": "/x"}})
    with pytest.raises(TypeError, match="nothing"):
        AcpAgentSettings(nothing=1)


@pytest.mark.parametrize(
    "given",
    [
        {"backplane": {"url": "\udcff"}},
        {"backplane": {"key": "\udcff"}},
        {"plugins": ["\udcff"]},
        {"transport": {"http": {"roots": "/\udcff"}}},
    ],
    ids=["text", "secret", "list", "paths"],
)
def test_bytes_that_are_no_text_are_no_setting(given):
    with pytest.raises(ValueError, match=r"is not text$"):
        AcpAgentSettings(**given)


class Application(BaseModel):
    agent: AcpAgentSettings = AcpAgentSettings()


def test_settings_can_be_a_field_of_a_pydantic_model():
    application = Application.model_validate({"agent": {"request_timeout": "30s", "backplane": {"key": "hush"}}})
    assert application.agent == AcpAgentSettings(request_timeout=timedelta(seconds=30), backplane=Backplane(key="hush"))
    assert Application(agent=application.agent) == application
    dumped = json.loads(application.model_dump_json())["agent"]
    assert (dumped["request_timeout"], dumped["backplane"]["key"]) == ("PT30S", "**********")
    with pytest.raises(ValidationError, match="request_timeout: value is not a duration"):
        Application.model_validate({"agent": {"request_timeout": "soon"}})


def test_settings_cannot_be_changed():
    settings = AcpAgentSettings()
    with pytest.raises(AttributeError):
        settings.enabled = True
    with pytest.raises(AttributeError):
        settings.transport.http.path = "/x"


def test_lists_are_copied():
    origins = ["https://a.example"]
    settings = AcpAgentSettings(transport=AgentTransport(http=Http(allowed_origins=origins)))
    origins.append("https://b.example")
    assert settings.transport.http.allowed_origins == ("https://a.example",)


def test_equal_settings_are_equal_and_hash_alike():
    one, other = (AcpAgentSettings.from_mapping({"acp.agent.request-timeout": text}) for text in ("60s", "1m"))
    assert one == other
    assert hash(one) == hash(other)


def test_making_settings_reads_no_environment(monkeypatch):
    monkeypatch.setenv("REQUEST_TIMEOUT", "5s")
    monkeypatch.setenv("ACP_AGENT_REQUEST_TIMEOUT", "5s")
    assert AcpAgentSettings() == AcpAgentSettings.from_mapping({})
    assert AcpAgentSettings().request_timeout is None
