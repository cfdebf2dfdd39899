from acp_integration.settings import AcpAgentSettings, AcpClientSettings, Backplane, ClientTransport, Stdio
from acp_integration.settings.report import Row, report


def rows(settings, origins=None):
    return {row.key: row for row in report(settings, origins or {})}


def test_every_unset_key_shows_its_default():
    found = rows(AcpAgentSettings())
    assert {row.origin for row in found.values()} == {"default"}
    assert found["request-timeout"].value == "1m"
    assert found["cancel-grace-period"].value == "5s"
    assert found["max-prompt-duration"].value == "no limit"
    assert found["max-message-size"].value == "32MB"
    assert found["enabled"].value == "true"
    assert found["session-store"].value == "none"
    assert found["transport.type"].value == "unset"
    assert found["transport.http.path"].value == "/acp"
    assert found["transport.http.listener.port"].value == "8080"
    assert rows(AcpClientSettings())["capabilities.terminal"].value == "false"
    assert rows(AcpClientSettings())["transport.websocket.connect-timeout"].value == "10s"


def test_a_set_key_shows_where_it_came_from(tmp_path):
    file = tmp_path / "acp.toml"
    file.write_text('[agent]\nplugins = ["a", "b"]', encoding="utf-8")
    loaded = AcpAgentSettings.load_with_origins(
        {"acp.agent.max-message-size": "1K"},
        environ={"ACP_AGENT_REQUEST_TIMEOUT": "90s"},
        files=file,
        arguments={"sync-threads": 2},
    )
    found = rows(loaded.settings, loaded.origins)
    assert found["request-timeout"] == Row("request-timeout", "90s", "environment (ACP_AGENT_REQUEST_TIMEOUT)")
    assert found["max-message-size"] == Row("max-message-size", "1KB", "mapping")
    assert found["plugins"] == Row("plugins", "a,b", str(file))
    assert found["sync-threads"] == Row("sync-threads", "2", "arguments")
    assert found["abort-timeout"] == Row("abort-timeout", "5s", "default")


def test_what_was_set_in_code_comes_from_arguments():
    assert rows(AcpAgentSettings(sync_threads=2))["sync-threads"] == Row("sync-threads", "2", "arguments")


def test_the_entries_of_a_table_name_all_their_places():
    loaded = AcpClientSettings.load_with_origins(
        {"acp.client.transport.stdio.env.B": "hush"},
        environ={"ACP_CLIENT_TRANSPORT_STDIO_ENV": '{"A": "hush"}'},
    )
    row = rows(loaded.settings, loaded.origins)["transport.stdio.env"]
    assert row.value == "A=**********, B=**********"
    assert row.origin == "environment (ACP_CLIENT_TRANSPORT_STDIO_ENV.A), mapping"


def test_secrets_are_masked():
    agent = AcpAgentSettings(backplane=Backplane(url="redis://me:hush@cache/0", key="hush"))
    assert rows(agent)["backplane.key"].value == "**********"
    assert rows(agent)["backplane.url"].value == "redis://**********@cache/0"
    client = AcpClientSettings(transport=ClientTransport(stdio=Stdio(env={"TOKEN": "hush"})))
    assert rows(client)["transport.stdio.env"].value == "TOKEN=**********"
