import json
from datetime import timedelta

import pytest

from acp_integration import AcpClientSettings
from acp_integration.errors import ConfigurationError
from acp_integration.options import ClientOptions
from acp_integration.settings import Capabilities, ClientHttp, ClientTransport, Stdio, WebSocket

PREFIXES = ["acp.client", "spring.ai.acp.client.", "quarkus.acp"]


def test_the_defaults():
    settings = AcpClientSettings()
    assert settings == AcpClientSettings.from_mapping({})
    assert not settings.has_transport
    assert settings.client_options() == ClientOptions()
    assert settings.transport.stdio.args == ()
    assert settings.transport.stdio.env == {}


def test_closing_may_take_the_request_timeout_and_ten_seconds():
    assert AcpClientSettings().client_options().close_timeout == 70.0
    settings = AcpClientSettings(request_timeout=timedelta(seconds=5))
    assert settings.client_options().close_timeout == 15.0


def test_closing_is_bounded_also_without_a_request_timeout():
    settings = AcpClientSettings(request_timeout=timedelta(0))
    assert settings.client_options().request_timeout is None
    assert settings.client_options().close_timeout == 70.0


@pytest.mark.parametrize("prefix", PREFIXES)
def test_every_key_binds(prefix):
    base = prefix.removesuffix(".")
    settings = AcpClientSettings.from_mapping(
        {
            f"{base}.request-timeout": "45s",
            f"{base}.prompt-timeout": "PT10M",
            f"{base}.initialize-timeout": "2s",
            f"{base}.max-message-size": "1MB",
            f"{base}.transport.type": "Stdio",
            f"{base}.transport.stdio.command": "agent",
            f"{base}.transport.stdio.args": "--quiet, --model=x",
            f"{base}.transport.stdio.env.API_Key": "Abc",
            f"{base}.transport.stdio.env.dotted.name": "d",
            f"{base}.transport.stdio.cwd": "/srv",
            f"{base}.transport.stdio.inherit-environment": "false",
            f"{base}.transport.websocket.uri": "wss://host/acp",
            f"{base}.transport.websocket.connect-timeout": "3s",
            f"{base}.transport.websocket.headers.Authorization": "Bearer x",
            f"{base}.transport.http.uri": "https://host/acp",
            f"{base}.transport.http.headers": {"X-Key": "y"},
            f"{base}.capabilities.read-text-file": "true",
            f"{base}.capabilities.write-text-file": "true",
            f"{base}.capabilities.terminal": "true",
            f"{base}.capabilities.elicitation-form": "true",
            f"{base}.capabilities.elicitation-url": "true",
            f"{base}.capabilities.boolean-config-options": "true",
        },
        prefix,
    )
    assert settings == AcpClientSettings(
        request_timeout=timedelta(seconds=45),
        prompt_timeout=timedelta(minutes=10),
        initialize_timeout=timedelta(seconds=2),
        max_message_size=1024 * 1024,
        transport=ClientTransport(
            type="stdio",
            stdio=Stdio(
                command="agent",
                args=("--quiet", "--model=x"),
                env={"API_Key": "Abc", "dotted.name": "d"},
                cwd="/srv",
                inherit_environment=False,
            ),
            websocket=WebSocket(
                uri="wss://host/acp", connect_timeout=timedelta(seconds=3), headers={"Authorization": "Bearer x"}
            ),
            http=ClientHttp(uri="https://host/acp", headers={"X-Key": "y"}),
        ),
        capabilities=Capabilities(
            read_text_file=True,
            write_text_file=True,
            terminal=True,
            elicitation_form=True,
            elicitation_url=True,
            boolean_config_options=True,
        ),
    )


def test_set_values_are_passed_on_and_nothing_else():
    settings = AcpClientSettings.from_mapping(
        {
            "acp.client.prompt-timeout": "1m",
            "acp.client.transport.websocket.connect-timeout": "2s",
            "acp.client.transport.stdio.inherit-environment": "false",
        }
    )
    assert settings.client_options() == ClientOptions(
        prompt_timeout=60.0, connect_timeout=2.0, inherit_environment=False
    )


def test_a_prompt_timeout_of_zero_is_no_limit():
    settings = AcpClientSettings.from_mapping({"acp.client.prompt-timeout": "0"})
    assert settings.client_options().prompt_timeout is None


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("transport.type", "stdio"),
        ("transport.stdio.command", "agent"),
        ("transport.websocket.uri", "ws://host/acp"),
        ("transport.http.uri", "http://host/acp"),
    ],
)
def test_each_single_transport_setting_is_a_transport(key, value):
    assert AcpClientSettings.from_mapping({f"acp.client.{key}": value}).has_transport


def test_settings_of_a_transport_that_name_no_agent_are_no_transport():
    assert not AcpClientSettings.from_mapping({"acp.client.transport.stdio.args": "a"}).has_transport


@pytest.mark.parametrize("prefix", PREFIXES)
@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("transport.websocket.uri", "not a uri", "a URI"),
        ("transport.http.uri", "::", "a URI"),
        ("transport.websocket.uri", "http://host/acp", "a ws:// or wss:// URI"),
        ("transport.http.uri", "wss://host/acp", "an http:// or https:// URI"),
        ("transport.http.uri", "/acp", "an http:// or https:// URI"),
    ],
)
def test_a_bad_uri_is_named(prefix, key, value, expected):
    full = f"{prefix.removesuffix('.')}.{key}"
    with pytest.raises(ConfigurationError) as raised:
        AcpClientSettings.from_mapping({full: value}, prefix)
    assert str(raised.value) == f"{full}={value} is not {expected}"


def test_no_capability_is_announced_without_being_switched_on():
    assert Capabilities().protocol() == {"fs": {"readTextFile": False, "writeTextFile": False}, "terminal": False}


def test_every_capability_is_announced():
    on = Capabilities(**dict.fromkeys(Capabilities.__struct_fields__, True))
    assert on.protocol() == {
        "fs": {"readTextFile": True, "writeTextFile": True},
        "terminal": True,
        "elicitation": {"form": {}, "url": {}},
        "session": {"configOptions": {"boolean": {}}},
    }


def test_only_the_elicitation_mode_that_is_on_is_announced():
    assert Capabilities(elicitation_url=True).protocol()["elicitation"] == {"url": {}}


def test_lists_and_tables_are_copied_and_cannot_be_changed():
    args, env = ["a"], {"A": "1"}
    stdio = Stdio(command="agent", args=args, env=env)
    args.append("b")
    env["B"] = "2"
    assert stdio.args == ("a",)
    assert stdio.env == {"A": "1"}
    with pytest.raises(TypeError):
        stdio.env["B"] = "2"


def test_secrets_are_shown_nowhere():
    settings = AcpClientSettings.from_mapping(
        {"acp.client": {"transport": {"stdio": {"env": {"TOKEN": "hush"}}, "http": {"headers": {"X": "hush"}}}}}
    )
    assert "hush" not in repr(settings)
    assert "hush" not in str(settings.model_dump())
    assert "hush" not in settings.model_dump_json()
    assert json.loads(settings.model_dump_json())["transport"]["stdio"]["env"] == {"TOKEN": "**********"}
    assert settings.transport.stdio.env["TOKEN"] == "hush"


def test_a_blank_variable_of_the_agent_is_kept():
    settings = AcpClientSettings.from_mapping({"acp.client.transport.stdio.env": {"EMPTY": "", "NONE": None}})
    assert settings.transport.stdio.env == {"EMPTY": ""}


NAMED = {
    "acp.clients.claude.transport.stdio.command": "claude-agent-acp",
    "acp": {"clients": {"my_agent": {"request_timeout": "5s"}, "claude": {"prompt-timeout": "1h"}}},
}


def test_named_clients_are_read_from_a_mapping():
    assert AcpClientSettings.load_named(NAMED, environ={}) == {
        "claude": AcpClientSettings(
            prompt_timeout=timedelta(hours=1), transport=ClientTransport(stdio=Stdio(command="claude-agent-acp"))
        ),
        "my-agent": AcpClientSettings(request_timeout=timedelta(seconds=5)),
    }


def test_named_clients_are_read_from_the_environment():
    environ = {
        "ACP_CLIENTS": '{"first": {"request-timeout": "1s"}}',
        "ACP_CLIENTS_SECOND": '{"request_timeout": "2s", "transport.stdio.env": {"A_b": "c"}}',
        "ACP_CLIENTS_MY_THIRD_TRANSPORT_STDIO_COMMAND": "third",
        "ACP_CLIENTS_MY_THIRD_TRANSPORT_STDIO_ENV": '{"Key": "v"}',
    }
    assert AcpClientSettings.load_named(environ=environ) == {
        "first": AcpClientSettings(request_timeout=timedelta(seconds=1)),
        "second": AcpClientSettings(
            request_timeout=timedelta(seconds=2), transport=ClientTransport(stdio=Stdio(env={"A_b": "c"}))
        ),
        "my-third": AcpClientSettings(transport=ClientTransport(stdio=Stdio(command="third", env={"Key": "v"}))),
    }


def test_the_environment_wins_over_the_mapping_for_a_named_client():
    found = AcpClientSettings.load_named(NAMED, environ={"ACP_CLIENTS_CLAUDE_PROMPT_TIMEOUT": "2h"})
    assert found["claude"].prompt_timeout == timedelta(hours=2)
    assert found["claude"].transport.stdio.command == "claude-agent-acp"


def test_the_bad_keys_of_all_named_clients_are_one_error():
    with pytest.raises(ConfigurationError) as raised:
        AcpClientSettings.load_named(
            {"acp": {"clients": {"a": {"request-timeout": "x"}, "b": {"prompt-timeuot": "1s"}, "c": "agent"}}},
            environ={"ACP_CLIENTS_D": "{broken"},
        )
    assert raised.value.problems == (
        "acp.clients.b.prompt-timeuot is not a known key; did you mean acp.clients.b.prompt-timeout?",
        "ACP_CLIENTS_D={broken is not a JSON object",
        "acp.clients.c=agent is not a table of keys",
        "acp.clients.a.request-timeout=x is not a duration such as 30s or PT30S",
    )
