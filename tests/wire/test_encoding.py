"""What is written holds no nulls and no empty options, except where the protocol asks for them."""

import msgspec
import pytest

from acp_integration.jsonrpc import encode
from acp_integration.wire import agent, capabilities, client, content, elicitation, mcp, tools, updates
from acp_integration.wire.structure import SUPPORTED

WRITTEN = [
    (agent.PromptResponse(stop_reason="end_turn"), b'{"stopReason":"end_turn"}'),
    (agent.PromptResponse(stop_reason="cancelled", meta={"a": None}), b'{"stopReason":"cancelled","_meta":{"a":null}}'),
    (agent.InitializeResponse(protocol_version=1), b'{"protocolVersion":1}'),
    (agent.NewSessionRequest(cwd="/"), b'{"cwd":"/","mcpServers":[]}'),
    (agent.ResumeSessionRequest(session_id="s", cwd="/"), b'{"sessionId":"s","cwd":"/"}'),
    (agent.ListSessionsResponse(), b'{"sessions":[]}'),
    (agent.SetSessionConfigOptionResponse(), b'{"configOptions":[]}'),
    (mcp.McpServerStdio(name="n", command="c"), b'{"name":"n","command":"c","args":[],"env":[]}'),
    (mcp.McpServerHttp(name="n", url="u"), b'{"type":"http","name":"n","url":"u","headers":[]}'),
    (capabilities.SessionCapabilities(list=SUPPORTED), b'{"list":{}}'),
    (capabilities.AgentCapabilities(load_session=True), b'{"loadSession":true}'),
    (client.CreateTerminalRequest(session_id="s", command="c"), b'{"sessionId":"s","command":"c"}'),
    (client.TerminalOutputResponse(output="", truncated=False), b'{"output":"","truncated":false}'),
    (client.CancelledPermissionOutcome(), b'{"outcome":"cancelled"}'),
    (elicitation.ElicitationSchema(), b'{"type":"object"}'),
    (content.TextContent(text="t"), b'{"type":"text","text":"t"}'),
    (updates.AgentPlanUpdate(), b'{"sessionUpdate":"plan","entries":[]}'),
    (updates.AvailableCommandsUpdate(), b'{"sessionUpdate":"available_commands_update","availableCommands":[]}'),
    (updates.SessionInfoUpdate(), b'{"sessionUpdate":"session_info_update"}'),
    (updates.SessionInfoUpdate(title=None), b'{"sessionUpdate":"session_info_update","title":null}'),
    (tools.ToolCallUpdate(tool_call_id="t"), b'{"toolCallId":"t"}'),
    (
        updates.ToolCallStart(tool_call_id="t", title="T", raw_input={"a": None}),
        b'{"sessionUpdate":"tool_call","toolCallId":"t","title":"T","rawInput":{"a":null}}',
    ),
]


@pytest.mark.parametrize(
    ("value", "written"),
    WRITTEN,
    ids=lambda value: type(value).__name__ if isinstance(value, msgspec.Struct) else value.decode(),
)
def test_a_struct_is_written_without_what_says_nothing(value: msgspec.Struct, written: bytes):
    assert encode(value) == written


def test_lists_are_not_shared_between_structs():
    assert agent.NewSessionRequest(cwd="/").mcp_servers is not agent.NewSessionRequest(cwd="/").mcp_servers
