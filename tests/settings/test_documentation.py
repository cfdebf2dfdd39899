from acp_integration.configuration.keys import dotted, prefix_path
from acp_integration.configuration.schema import schema_of
from acp_integration.settings import AcpAgentSettings, AcpClientSettings
from acp_integration.settings.documentation import page

AGENT_KEYS = [
    "enabled",
    "request-timeout",
    "interaction-timeout",
    "cancel-grace-period",
    "max-prompt-duration",
    "max-concurrent-requests",
    "sync-threads",
    "drain-timeout",
    "abort-timeout",
    "session-idle-timeout",
    "detached-turn-timeout",
    "max-message-size",
    "shutdown-on-transport-end",
    "handler-executor",
    "session-store",
    "plugins",
    "transport.type",
    "transport.http.path",
    "transport.http.allowed-origins",
    "transport.http.allowed-hosts",
    "transport.http.require-auth",
    "transport.http.allow-stdio-mcp-servers",
    "transport.http.roots",
    "transport.http.max-post-body-size",
    "transport.http.keep-alive-interval",
    "transport.http.mailbox-capacity",
    "transport.http.max-pending-sse-events",
    "transport.http.max-web-socket-pending-frames",
    "transport.http.max-provisional-sessions",
    "transport.http.max-connections",
    "transport.http.max-connections-per-principal",
    "transport.http.connection-idle-timeout",
    "transport.http.shutdown-timeout",
    "transport.http.web-socket-idle-timeout",
    "transport.http.initialize-timeout",
    "transport.http.listener.host",
    "transport.http.listener.port",
    "transport.http.listener.max-concurrent-streams-per-connection",
    "backplane.url",
    "backplane.key",
]
CLIENT_KEYS = [
    "request-timeout",
    "prompt-timeout",
    "initialize-timeout",
    "max-message-size",
    "transport.type",
    "transport.stdio.command",
    "transport.stdio.args",
    "transport.stdio.env",
    "transport.stdio.cwd",
    "transport.stdio.inherit-environment",
    "transport.websocket.uri",
    "transport.websocket.connect-timeout",
    "transport.websocket.headers",
    "transport.http.uri",
    "transport.http.headers",
    "capabilities.read-text-file",
    "capabilities.write-text-file",
    "capabilities.terminal",
    "capabilities.elicitation-form",
    "capabilities.elicitation-url",
    "capabilities.boolean-config-options",
]


def keys(settings):
    return [dotted(path) for path in schema_of(settings).keys]


def test_the_page_is_what_the_code_says(repo_root):
    written = (repo_root / "docs" / "settings.md").read_text(encoding="utf-8")
    assert written == page(), "run: python -m acp_integration.settings.documentation > docs/settings.md"


def test_the_keys_are_exactly_these():
    assert keys(AcpAgentSettings) == AGENT_KEYS
    assert keys(AcpClientSettings) == CLIENT_KEYS


def test_every_key_has_a_row_with_a_meaning():
    text = page()
    for settings in (AcpAgentSettings, AcpClientSettings):
        for key in schema_of(settings).keys.values():
            assert f"| `{dotted(prefix_path(settings.default_prefix), key.path)}`<br>" in text
            assert key.meaning.endswith(".")
